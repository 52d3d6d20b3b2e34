//! Takes parts out of JSON values: of strings, names of fields, and numbers. All else is copied as it is.

use std::ops::Range;

use quipu_formats::normalized::{ToolOutput, path};
use quipu_model::Json;
use quipu_model::json::{Kind, Node, Tape};

use super::files;
use super::mask::{Cut, Mask, POLICY};
use crate::Context;
use crate::sensitive::Exposes;

/// How deep values may nest; those of the model do not nest deeper.
const DEEPEST: usize = 128;

/// Fields of an object that are named by their names; those behind them by their place, which needs no looking at others.
const LOOKED_AT: usize = 256;

/// What is left out of a value, whatever it says.
#[derive(Debug, Clone, Copy)]
pub(super) struct How<'h> {
    /// How much of it is there.
    pub(super) part: &'h ToolOutput,
    /// What it is called in a placeholder.
    pub(super) what: &'static str,
    /// Characters of it at most, where it is truncated.
    pub(super) most: usize,
    /// Contents of files in it.
    pub(super) contents: Contents,
    /// What it shows of files that are secret as a whole.
    pub(super) exposes: Option<Exposes>,
    /// The file that it is of.
    pub(super) file: Option<&'h str>,
    /// The name it is given to.
    pub(super) name: Option<&'h str>,
}

/// What becomes of contents of files in a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Contents {
    /// They stay.
    Stay,
    /// Those of patches go.
    Patches,
    /// Those, and what is named so.
    Named,
    /// Those, and all texts of several lines.
    Lines,
}

/// A step of the way to a value.
#[derive(Debug, Clone, Copy)]
enum Step<'n> {
    Item(usize),
    /// The object, which of its fields, and whether that field's name was changed.
    Field(Node<'n>, usize, &'n str, bool),
}

struct Walk<'m, 'a, 'h, 'n> {
    mask: &'m mut Mask<'a>,
    how: How<'h>,
    root: &'h str,
    steps: Vec<Step<'n>>,
    source: &'n str,
    out: String,
    copied: usize,
    left: usize,
}

impl Mask<'_> {
    /// Takes parts out of a value.
    pub(super) fn json(&mut self, field: &str, json: &mut Json, how: How<'_>) {
        match how.part {
            ToolOutput::Full | ToolOutput::Truncated => {}
            ToolOutput::MetadataOnly => {
                let label = format!("[REDACTED:{}-{}]", how.what, described(json));
                return self.whole_json(field, json, &rule(how.what), POLICY, label);
            }
            ToolOutput::None | ToolOutput::Other(_) => {
                let label = format!("[REDACTED:{}]", how.what);
                return self.whole_json(field, json, &rule(how.what), POLICY, label);
            }
        }
        let mut tape = Tape::new();
        let Ok(node) = tape.read(json.get(), DEEPEST) else {
            // More values than are held: nothing is known of what is in it.
            let label = "[REDACTED:unread]".to_owned();
            return self.whole_json(field, json, "unread", POLICY, label);
        };
        let is_cut = *how.part == ToolOutput::Truncated;
        let mut walk = Walk {
            mask: self,
            how,
            root: field,
            steps: Vec::new(),
            source: json.get(),
            out: String::new(),
            copied: 0,
            left: if is_cut { how.most } else { usize::MAX },
        };
        let name = how.name;
        walk.value(node, name);
        if walk.copied == 0 {
            return;
        }
        let Walk {
            mut out,
            copied,
            source,
            ..
        } = walk;
        out.push_str(&source[copied..]);
        if let Ok(changed) = Json::parse(&out) {
            *json = changed;
        }
    }
}

impl<'n> Walk<'_, '_, '_, 'n> {
    fn value(&mut self, node: Node<'n>, name: Option<&str>) {
        match node.kind() {
            Kind::Object => self.object(node),
            Kind::List => {
                for (index, item) in node.items().enumerate() {
                    self.steps.push(Step::Item(index));
                    self.value(item, name);
                    self.steps.pop();
                }
            }
            Kind::String => self.string(node, name),
            Kind::Number => self.number(node, name),
            Kind::Null | Kind::Bool => {}
        }
    }

    fn object(&mut self, node: Node<'n>) {
        for (index, (key, value)) in node.fields().enumerate() {
            let name = key.to_text_lossy();
            let at = Way {
                root: self.root,
                steps: &self.steps,
                name_of: Some(index),
            };
            let cuts = self.mask.cuts(
                &|| at.build(),
                &name,
                Context {
                    file: self.how.file,
                    ..Context::default()
                },
                &[],
            );
            let changed = !cuts.is_empty();
            if changed {
                let said = self.mask.apply(&|| at.build(), &name, &cuts);
                let place = node.go_to(value.place() - 1);
                self.replace(
                    place.offset()..place.offset() + place.raw().get().len(),
                    &said,
                );
            }
            let raw = key.raw().get();
            self.steps.push(Step::Field(node, index, raw, changed));
            self.value(value, Some(&*name));
            self.steps.pop();
        }
    }

    fn number(&mut self, node: Node<'n>, name: Option<&str>) {
        let text = node.raw().get();
        // Shorter ones are counts.
        if text.len() < 6 {
            return;
        }
        let context = Context {
            name,
            file: self.how.file,
            near: false,
        };
        let at = Way {
            root: self.root,
            steps: &self.steps,
            name_of: None,
        };
        let cuts = self.mask.cuts(&|| at.build(), text, context, &[]);
        if let Some(first) = cuts.into_iter().next() {
            // What stands for a part of a number is none: all of it goes.
            let cut = Cut {
                span: 0..text.len(),
                ..first
            };
            let said = self.mask.apply(&|| at.build(), text, &[cut]);
            self.replace(node.offset()..node.offset() + text.len(), &said);
        }
    }

    fn string(&mut self, node: Node<'n>, name: Option<&str>) {
        let Some(text) = node.as_str() else { return };
        let at = Way {
            root: self.root,
            steps: &self.steps,
            name_of: None,
        };
        let cuts = if let Some(cuts) = self.contents(&text, name) {
            cuts
        } else {
            let context = Context {
                name,
                file: self.how.file,
                near: false,
            };
            let exposes = self.how.exposes;
            let mut given = exposes.map_or_else(Vec::new, |it| files::exposed(it, &text));
            if self.how.contents != Contents::Stay {
                given.extend(files::patch(&text));
            }
            let cuts = self.mask.cuts(&|| at.build(), &text, context, &given);
            truncate(&text, cuts, &mut self.left)
        };
        if !cuts.is_empty() {
            let said = self.mask.apply(&|| at.build(), &text, &cuts);
            self.replace(node.offset()..node.offset() + node.raw().get().len(), &said);
        }
    }

    /// What of a string is the content of a file; `None` when nothing is.
    fn contents(&self, text: &str, name: Option<&str>) -> Option<Vec<Cut>> {
        let is_named = || name.is_some_and(files::is_content);
        let is_whole = match self.how.contents {
            Contents::Stay => return None,
            Contents::Patches => false,
            Contents::Named => is_named(),
            Contents::Lines => is_named() || text.contains('\n'),
        };
        if is_whole && !text.is_empty() {
            let done = crate::is_placeholder(text);
            return Some(if done {
                Vec::new()
            } else {
                vec![files::cut(text, 0..text.len())]
            });
        }
        None
    }

    fn replace(&mut self, raw: Range<usize>, said: &str) {
        self.out.push_str(&self.source[self.copied..raw.start]);
        self.out.push_str(Json::string(said).get());
        self.copied = raw.end;
    }
}

/// The way to a value, to be written down if anything is found there.
#[derive(Clone, Copy)]
struct Way<'w, 'n> {
    root: &'w str,
    steps: &'w [Step<'n>],
    /// The name of a field of it.
    name_of: Option<usize>,
}

impl Way<'_, '_> {
    fn build(self) -> String {
        let mut path = self.root.to_owned();
        for step in self.steps {
            match step {
                Step::Item(index) => path::push_index(&mut path, *index),
                Step::Field(object, index, key, changed) => {
                    let before = object.fields().take(*index);
                    // A name that is there twice, or is none any more, does not lead there.
                    if *changed
                        || *index >= LOOKED_AT
                        || before
                            .into_iter()
                            .any(|(other, _)| same(other.raw().get(), key))
                    {
                        path::push_index(&mut path, *index);
                    } else {
                        let name = Json::parse(key)
                            .ok()
                            .and_then(|key| key.as_str().map(std::borrow::Cow::into_owned));
                        match name {
                            Some(name) => path::push_name(&mut path, &name),
                            None => path::push_index(&mut path, *index),
                        }
                    }
                }
            }
        }
        if let Some(index) = self.name_of {
            path::push_name_of(&mut path, index);
        }
        path
    }
}

/// Whether two names say the same.
fn same(one: &str, other: &str) -> bool {
    one == other
        || (one.contains('\\') || other.contains('\\'))
            && Json::parse(one).is_ok_and(|one| {
                Json::parse(other)
                    .is_ok_and(|other| one.as_str().is_some() && one.as_str() == other.as_str())
            })
}

/// The rule that receipts name for what a profile leaves out.
pub(super) fn rule(what: &str) -> String {
    format!("policy-{what}")
}

/// What a value is and how long, in the words of a placeholder.
fn described(json: &Json) -> String {
    if let Some(text) = json.as_str() {
        return described_text(&text);
    }
    let kind = match json.get().as_bytes().first() {
        Some(b'{') => "object",
        Some(b'[') => "list",
        Some(b't' | b'f') => "boolean",
        Some(b'"') => "text",
        _ => "number",
    };
    format!("{kind}-{}-bytes", json.get().len())
}

/// The same of a text.
pub(super) fn described_text(text: &str) -> String {
    format!(
        "text-{}-characters-{}-lines",
        text.chars().count(),
        text.lines().count()
    )
}

/// Cuts off what is beyond the characters that are left.
pub(super) fn truncate(text: &str, mut cuts: Vec<Cut>, left: &mut usize) -> Vec<Cut> {
    if *left == usize::MAX || is_truncated(text) {
        return cuts;
    }
    let end = text.char_indices().nth(*left).map(|(at, _)| at);
    let Some(mut end) = end else {
        *left -= text.chars().count();
        return cuts;
    };
    *left = 0;
    if let Some(cut) = cuts
        .iter()
        .find(|cut| cut.span.start < end && end < cut.span.end)
    {
        end = cut.span.end;
    }
    cuts.retain(|cut| cut.span.start < end);
    if end < text.len() && !crate::is_placeholder(text) {
        cuts.push(Cut {
            span: end..text.len(),
            rule: rule("truncated"),
            kind: POLICY,
            placeholder: format!(
                "[REDACTED:truncated-{}-characters]",
                text[end..].chars().count()
            ),
        });
    }
    cuts
}

/// Whether the end of a text was cut off before.
fn is_truncated(text: &str) -> bool {
    text.rfind("[REDACTED:truncated-")
        .is_some_and(|at| text.ends_with("-characters]") && crate::is_placeholder(&text[at..]))
}
