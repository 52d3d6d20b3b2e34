//! Arguments that come in pieces: `{"jsonPath":"$.items[0].name","stringValue":"ap","willContinue":true}`.

use quipu_model::Json;
use quipu_model::json::Node;
use serde::{Deserialize, Serialize};

/// The deepest path that is followed.
const DEPTH: usize = 64;

/// The values that have come, with their paths, in order.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Pieces(Vec<Piece>);

#[derive(Debug, Serialize, Deserialize)]
struct Piece {
    path: String,
    /// A string is added to until it ends. Anything else comes whole, as JSON.
    value: String,
    is_text: bool,
    open: bool,
}

impl Pieces {
    pub(super) fn add(&mut self, piece: Node<'_>) {
        let path = piece.text("jsonPath").unwrap_or_default();
        let goes_on = piece.get("willContinue").and_then(|n| n.as_bool()) == Some(true);
        let text = piece.text("stringValue");
        if let (Some(last), Some(text)) = (self.0.last_mut(), &text)
            && last.open
            && last.is_text
            && last.path == path
        {
            last.value.push_str(text);
            last.open = goes_on;
            return;
        }
        let whole = ["numberValue", "boolValue"]
            .iter()
            .find_map(|key| piece.get(key));
        self.0.push(Piece {
            path: path.into_owned(),
            is_text: text.is_some(),
            value: match text {
                Some(text) => text.into_owned(),
                None => whole.map_or("null", |whole| whole.raw().get()).to_owned(),
            },
            open: goes_on,
        });
    }

    /// The arguments, put together. `{}` when there are none.
    pub(super) fn whole(&self) -> Json {
        let mut tree = Tree::Object(Vec::new());
        for piece in &self.0 {
            let json = if piece.is_text {
                Json::string(&piece.value).get().to_owned()
            } else {
                piece.value.clone()
            };
            tree.set(&steps(&piece.path), json);
        }
        let mut made = String::new();
        tree.write(&mut made);
        Json::parse(&made).unwrap_or_else(|_| Json::null())
    }
}

/// One step of a path.
enum Step<'p> {
    Key(&'p str),
    Index(usize),
}

/// `$.a.b[0]['c d']`, step by step.
fn steps(path: &str) -> Vec<Step<'_>> {
    let mut rest = path.strip_prefix('$').unwrap_or(path);
    let mut steps = Vec::new();
    while !rest.is_empty() && steps.len() < DEPTH {
        if let Some(inner) = rest.strip_prefix('[') {
            let quoted = inner.strip_prefix(['\'', '"']);
            let (end, skip) = match quoted {
                Some(quoted) => (quoted.find(['\'', '"']), 2),
                None => (inner.find(']'), 1),
            };
            let within = quoted.unwrap_or(inner);
            let end = end.unwrap_or(within.len());
            let (name, behind) = within.split_at(end);
            rest = behind.get(skip..).unwrap_or_default();
            steps.push(match name.parse() {
                Ok(index) if quoted.is_none() => Step::Index(index),
                _ => Step::Key(name),
            });
        } else {
            let name = rest.strip_prefix('.').unwrap_or(rest);
            let end = name.find(['.', '[']).unwrap_or(name.len());
            let (name, behind) = name.split_at(end);
            if !name.is_empty() {
                steps.push(Step::Key(name));
            }
            rest = behind;
        }
    }
    steps
}

/// A value that is being put together.
enum Tree {
    Object(Vec<(String, Tree)>),
    List(Vec<Tree>),
    Leaf(String),
}

impl Tree {
    fn set(&mut self, path: &[Step<'_>], json: String) {
        let mut at = self;
        for step in path {
            at = match step {
                Step::Key(key) => at.field(key),
                Step::Index(index) => at.item(*index),
            };
        }
        *at = Self::Leaf(json);
    }

    fn field(&mut self, key: &str) -> &mut Self {
        if !matches!(self, Self::Object(_)) {
            *self = Self::Object(Vec::new());
        }
        let Self::Object(fields) = self else {
            unreachable!("it was made an object")
        };
        let known = fields.iter().position(|(name, _)| name == key);
        let at = known.unwrap_or_else(|| {
            fields.push((key.to_owned(), Self::Leaf("null".to_owned())));
            fields.len() - 1
        });
        &mut fields[at].1
    }

    /// An item, or a new one at the end: a list never grows by more than one.
    fn item(&mut self, index: usize) -> &mut Self {
        if !matches!(self, Self::List(_)) {
            *self = Self::List(Vec::new());
        }
        let Self::List(items) = self else {
            unreachable!("it was made a list")
        };
        let at = index.min(items.len());
        if at == items.len() {
            items.push(Self::Leaf("null".to_owned()));
        }
        &mut items[at]
    }

    /// As JSON. No deeper than a path can be.
    fn write(&self, to: &mut String) {
        match self {
            Self::Leaf(json) => to.push_str(json),
            Self::List(items) => {
                to.push('[');
                for (n, item) in items.iter().enumerate() {
                    if n > 0 {
                        to.push(',');
                    }
                    item.write(to);
                }
                to.push(']');
            }
            Self::Object(fields) => {
                to.push('{');
                for (n, (key, value)) in fields.iter().enumerate() {
                    if n > 0 {
                        to.push(',');
                    }
                    to.push_str(Json::string(key).get());
                    to.push(':');
                    value.write(to);
                }
                to.push('}');
            }
        }
    }
}
