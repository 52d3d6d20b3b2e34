//! The hash tree over every value of a document.

use quipu_formats::normalized::path;
use quipu_model::json::{Kind, Node, SyntaxError, Tape};
use sha2::{Digest as _, Sha256};

/// How the tree is made: its name in documents.
pub const ALGORITHM: &str = "quipu-tree-1";

/// How deep values may nest.
pub(super) const DEEPEST: usize = 128;

/// The section that is no part of the tree: whoever submits a transcript fills it in.
const OUTSIDE: &str = "submitter";

/// A hash tree that grows at its end. It holds one hash per level, however many leaves there are.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tree {
    /// Roots of whole trees, the largest first: as many as the number of leaves has ones in base two.
    roots: Vec<[u8; 32]>,
    leaves: u64,
}

impl Tree {
    fn push(&mut self, leaf: [u8; 32]) {
        self.roots.push(leaf);
        let mut joins = self.leaves.trailing_ones();
        self.leaves += 1;
        while joins > 0 {
            joins -= 1;
            if let (Some(right), Some(left)) = (self.roots.pop(), self.roots.pop()) {
                self.roots.push(node(&left, &right));
            }
        }
    }

    /// The root, and how many leaves there are.
    pub(crate) fn root(&self) -> ([u8; 32], u64) {
        let mut roots = self.roots.iter().rev();
        let last = roots.next().copied();
        let root = last.map(|last| roots.fold(last, |right, left| node(left, &right)));
        (
            root.unwrap_or_else(|| Sha256::digest(b"").into()),
            self.leaves,
        )
    }
}

fn node(left: &[u8; 32], right: &[u8; 32]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update([1]);
    hash.update(left);
    hash.update(right);
    hash.finalize().into()
}

/// The values of a document, in order.
#[derive(Debug, Default)]
pub(crate) struct Leaves {
    tree: Tree,
    tape: Tape,
    path: String,
}

impl Leaves {
    /// Takes in an event, as it is written. `index` is its place, which is its number where it has none.
    pub(crate) fn event(&mut self, json: &[u8], index: u64) -> Result<(), SyntaxError> {
        let text = String::from_utf8_lossy(json);
        let mut tape = std::mem::take(&mut self.tape);
        let result = tape
            .read(&text, DEEPEST)
            .map(|node| self.of_event(node, index));
        tape.shrink();
        self.tape = tape;
        result
    }

    /// The same of an event that was read.
    pub(super) fn of_event(&mut self, node: Node<'_>, index: u64) {
        let seq = node.get("seq").and_then(|seq| seq.as_u64());
        self.path.clear();
        self.value(seq.unwrap_or(index + 1), node);
    }

    /// Takes in a section, after all events.
    pub(super) fn section(&mut self, key: &str, node: Node<'_>) {
        if key == OUTSIDE {
            return;
        }
        self.path.clear();
        path::push_name(&mut self.path, key);
        if key != "privacy" || node.kind() != Kind::Object {
            return self.value(0, node);
        }
        for (name, value) in node.fields().filter(|(name, _)| !name.is("commitment")) {
            self.field(0, &name.to_text_lossy(), value);
        }
    }

    pub(crate) fn end(self) -> Tree {
        self.tree
    }

    fn field(&mut self, seq: u64, name: &str, value: Node<'_>) {
        let length = self.path.len();
        path::push_name(&mut self.path, name);
        self.value(seq, value);
        self.path.truncate(length);
    }

    fn value(&mut self, seq: u64, node: Node<'_>) {
        match node.kind() {
            Kind::Object if node.fields().next().is_some() => {
                for (name, value) in node.fields() {
                    self.field(seq, &name.to_text_lossy(), value);
                }
            }
            Kind::List if node.items().next().is_some() => {
                for (index, item) in node.items().enumerate() {
                    let length = self.path.len();
                    path::push_index(&mut self.path, index);
                    self.value(seq, item);
                    self.path.truncate(length);
                }
            }
            _ => {
                let leaf = match node
                    .as_raw_str()
                    .and_then(quipu_model::json::RawStr::to_text)
                {
                    Some(text) => leaf(seq, &self.path, b's', &text),
                    None => leaf(seq, &self.path, b'j', node.raw().get()),
                };
                self.tree.push(leaf);
            }
        }
    }
}

fn leaf(seq: u64, path: &str, tag: u8, value: &str) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update([0]);
    hash.update(seq.to_be_bytes());
    hash.update((path.len() as u64).to_be_bytes());
    hash.update(path);
    hash.update([tag]);
    hash.update(value);
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By the definition: the left half is the largest power of two that is smaller than all.
    fn by_definition(leaves: &[[u8; 32]]) -> [u8; 32] {
        match leaves {
            [] => Sha256::digest(b"").into(),
            [one] => *one,
            many => {
                let half = many.len().next_power_of_two() / 2;
                node(&by_definition(&many[..half]), &by_definition(&many[half..]))
            }
        }
    }

    #[test]
    fn a_tree_that_grows_is_the_tree_by_its_definition() {
        let leaves: Vec<[u8; 32]> = (0..70u8).map(|n| [n; 32]).collect();
        let mut tree = Tree::default();
        for n in 0..leaves.len() {
            assert_eq!(tree.root(), (by_definition(&leaves[..n]), n as u64));
            tree.push(leaves[n]);
            assert!(tree.roots.len() <= 7);
        }
    }

    #[test]
    fn no_value_is_taken_for_another() {
        let root = |json: &str| {
            let mut leaves = Leaves::default();
            leaves.event(json.as_bytes(), 0).unwrap();
            leaves.end().root()
        };
        let all = [
            r#"{"a":"1"}"#,
            r#"{"a":1}"#,
            r#"{"a":1.0}"#,
            r#"{"a":null}"#,
            r#"{"a":"null"}"#,
            r#"{"a":{}}"#,
            r#"{"a":[]}"#,
            r#"{"a":{"b":1}}"#,
            r#"{"a.b":1}"#,
            r#"{"a":[1]}"#,
            r#"{"a[0]":1}"#,
            r#"{"a":"1","b":"2"}"#,
            r#"{"b":"2","a":"1"}"#,
            r#"{"seq":1,"a":"1"}"#,
            r#"{"seq":2,"a":"1"}"#,
            r#"{"a":"\ud800"}"#,
            r#"{"a":"\ufffd"}"#,
            "{}",
            r#"{"":1}"#,
        ];
        for (index, one) in all.iter().enumerate() {
            for other in &all[..index] {
                assert_ne!(root(one), root(other), "{one} {other}");
            }
        }
        // What is written otherwise and says the same is the same.
        assert_eq!(
            root(r#"{"a":"é","b":[1]}"#),
            root("{ \"a\" : \"\\u00e9\",\n\"b\":[ 1 ]}")
        );
    }
}
