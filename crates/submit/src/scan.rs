//! Looks for what must not be in a document, once more.
//!
//! A server does not believe that a transcript was redacted. What it looks with is its own affair ([`Scan`]);
//! [`EngineScan`] is the engine over every string, name and number of the document.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Read};

use quipu_formats::normalized::{LISTS, MAX_PART};
use quipu_model::json::{Kind as Json, Node, Part, Parts, PartsError, RawStr, Tape};
use quipu_redact::{Certainty, Context, Engine, Found, Kind, Scratch, is_placeholder};

/// How deep a document may nest. A valid transcript does not nest deeper.
const MAX_DEPTH: usize = 128;
/// What stands for a name that is itself a finding.
const HIDDEN: &str = "*";
/// No more than this are told: a document may consist of nothing else.
const MAX_LEAKS: usize = 10_000;
/// The longest field that is named.
const MAX_FIELD: usize = 200;

/// Something that must not be there, by its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leak {
    /// The id of the rule.
    pub rule: String,
    /// The field, `tool.input.env.TOKEN`; of an event when `seq` says which. A name that is itself a finding is `*`.
    pub field: String,
    /// The event.
    pub seq: Option<u64>,
}

/// Why a document could not be looked at.
#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    /// It could not be read.
    #[error("the document cannot be read")]
    Io(#[from] io::Error),
    /// It is no JSON, or not as a transcript has it. Which byte it is that is wrong is said, and not what it is.
    #[error("the document is not a transcript")]
    NotADocument,
}

/// Looks for what must not be in a document.
pub trait Scan: Send + Sync {
    /// What is in it, in the order it stands there.
    ///
    /// # Errors
    ///
    /// It cannot be looked at as a whole; what was found up to there says nothing then.
    fn scan(&self, document: &mut dyn Read) -> Result<Vec<Leak>, ScanError>;
}

/// Looks with an engine.
#[derive(Debug)]
pub struct EngineScan {
    engine: Engine,
    kinds: Vec<Kind>,
}

impl EngineScan {
    /// Looks for secrets: what opens something. Names and addresses are for the submitter to decide about.
    pub fn for_secrets(engine: Engine) -> Self {
        Self::new(engine, &[Kind::Secret])
    }

    /// Looks for some kinds of things.
    pub fn new(engine: Engine, kinds: &[Kind]) -> Self {
        let kinds = kinds.to_vec();
        Self { engine, kinds }
    }
}

impl Scan for EngineScan {
    fn scan(&self, document: &mut dyn Read) -> Result<Vec<Leak>, ScanError> {
        let mut pass = Pass {
            of: self,
            scratch: Scratch::default(),
            found: Vec::new(),
            leaks: Vec::new(),
            field: String::new(),
            seq: None,
            broken: false,
        };
        let mut tape = Tape::new();
        each_part(document, &mut |part| pass.part(part, &mut tape))?;
        if pass.broken {
            return Err(ScanError::NotADocument);
        }
        Ok(pass.leaks)
    }
}

/// Hands over a document part by part.
pub(crate) fn each_part(
    document: &mut dyn Read,
    take: &mut dyn FnMut(Part<'_>),
) -> Result<(), ScanError> {
    let wrong = |_: PartsError| ScanError::NotADocument;
    let mut parts = Parts::new(LISTS, MAX_PART);
    let mut piece = vec![0; 128 << 10];
    loop {
        match document.read(&mut piece) {
            Ok(0) => return parts.finish().map_err(wrong),
            Ok(n) => parts.push(&piece[..n], &mut *take).map_err(wrong)?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
}

struct Pass<'a> {
    of: &'a EngineScan,
    scratch: Scratch,
    found: Vec<Found>,
    leaks: Vec<Leak>,
    /// The field at hand.
    field: String,
    seq: Option<u64>,
    broken: bool,
}

impl Pass<'_> {
    fn part(&mut self, part: Part<'_>, tape: &mut Tape) {
        let Ok(text) = std::str::from_utf8(part.value) else {
            self.broken = true;
            return;
        };
        let Ok(node) = tape.read(text, MAX_DEPTH) else {
            self.broken = true;
            return;
        };
        self.field.clear();
        self.seq = None;
        let mut name = None;
        if part.index.is_some() && part.key == "events" {
            self.seq = node.get("seq").and_then(|seq| seq.as_u64());
        } else {
            self.name(part.key);
            name = Some(part.key);
        }
        self.value(node, name);
        tape.shrink();
    }

    /// Looks at the name of a field, and adds it to the field at hand.
    fn name(&mut self, key: &str) {
        let hidden = self.text(key, None, ".*");
        if !self.field.is_empty() {
            self.field.push('.');
        }
        let fits = self.field.len() + key.len() <= MAX_FIELD;
        let plain = !hidden && fits && !key.chars().any(char::is_control);
        self.field.push_str(if plain { key } else { HIDDEN });
    }

    /// Goes down into a value. The tape does not nest deeper than it was told to, so neither does this.
    fn value(&mut self, node: Node<'_>, name: Option<&str>) {
        let length = self.field.len();
        match node.kind() {
            Json::Object => {
                for (key, value) in node.fields() {
                    let key = key.to_text_lossy();
                    self.name(&key);
                    self.value(value, Some(&key));
                    self.field.truncate(length);
                }
            }
            Json::List => {
                // A list of secrets is named as one secret would be. Writing to a string does not fail.
                for (index, item) in node.items().enumerate() {
                    write!(self.field, "[{index}]").unwrap_or_default();
                    self.value(item, name);
                    self.field.truncate(length);
                }
            }
            Json::String => {
                let text = node
                    .as_raw_str()
                    .map_or(Cow::Borrowed(""), RawStr::to_text_lossy);
                self.text(&text, name, "");
            }
            Json::Number => {
                self.text(node.raw().get(), name, "");
            }
            Json::Null | Json::Bool => {}
        }
    }

    /// Whether something is in a text. `behind` is added to the field then.
    fn text(&mut self, text: &str, name: Option<&str>, behind: &str) -> bool {
        let context = Context {
            name,
            ..Context::default()
        };
        self.found.clear();
        let engine = &self.of.engine;
        engine.scan(&mut self.scratch, text, context, &mut self.found);
        let mut any = false;
        for found in &self.found {
            let rule = &engine.rules().rules[found.rule];
            let is_sure = found.certainty == Certainty::Sure;
            let what = text.get(found.span.clone()).unwrap_or_default();
            if !is_sure || !self.of.kinds.contains(&rule.kind) || is_placeholder(what) {
                continue;
            }
            any = true;
            if self.leaks.len() < MAX_LEAKS {
                self.leaks.push(Leak {
                    rule: rule.id.clone(),
                    field: format!("{}{behind}", self.field)
                        .trim_start_matches('.')
                        .to_owned(),
                    seq: self.seq,
                });
            }
        }
        any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quipu_redact::rule::Pattern;
    use quipu_redact::{Rule, RuleSet};

    fn rule(id: &str, kind: Kind, pattern: Pattern) -> Rule {
        Rule {
            description: id.into(),
            group: "test".into(),
            label: "test".into(),
            ..Rule::new(id, kind, pattern)
        }
    }

    fn scan(document: &str) -> Result<Vec<Leak>, ScanError> {
        let regex = |text: &str| Pattern::Regex(text.into());
        let named = Pattern::Named {
            names: vec!["password".into()],
            value: ".+".into(),
        };
        let rules = RuleSet {
            rules: vec![
                rule("acme", Kind::Secret, regex("acme_[0-9]{8}")),
                rule("pin", Kind::Secret, regex("\\b1234[0-9]{8}\\b")),
                rule("name", Kind::Pii, regex("Ada")),
                rule("named", Kind::Secret, named),
            ],
            allow: Vec::new(),
        };
        let engine = Engine::new(&rules, |_| true).unwrap();
        EngineScan::for_secrets(engine).scan(&mut document.as_bytes())
    }

    fn places(document: &str) -> Vec<(String, String, Option<u64>)> {
        let leaks = scan(document).unwrap().into_iter();
        leaks
            .map(|leak| (leak.rule, leak.field, leak.seq))
            .collect()
    }

    #[test]
    fn strings_numbers_and_names_are_looked_at() {
        let found = places(
            r#"{"session":{"title":"Ada: acme_00000001"},
            "events":[{"seq":4,"text":"fine"},
                      {"seq":7,"tool":{"input":{"a":["x",123400000000],"\u0061cme_00000002":{"b":"acme_\u00300000003"}}}}],
            "acme_00000004":null}"#,
        );
        let expected = [
            ("acme", "session.title", None),
            ("pin", "tool.input.a[1]", Some(7)),
            ("acme", "tool.input.*", Some(7)),
            ("acme", "tool.input.*.b", Some(7)),
            ("acme", "*", None),
        ];
        let expected = expected.map(|(rule, field, seq)| (rule.to_owned(), field.to_owned(), seq));
        assert_eq!(found, expected);
    }

    #[test]
    fn a_placeholder_is_no_secret() {
        let found = places(
            r#"{"events":[{"seq":1,"tool":{"input":{"password":"[REDACTED:password]","passwords":["hT7kQ2mX9pLw"]}}}]}"#,
        );
        let expected = (
            "named".to_owned(),
            "tool.input.passwords[0]".to_owned(),
            Some(1),
        );
        assert_eq!(found, [expected]);
    }

    #[test]
    fn what_is_no_document_is_not_taken_for_a_clean_one() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(500), "]".repeat(500));
        for document in ["", "[]", "{\"a\":1", "{\"a\":x}", "{\"events\":[{]}", &deep] {
            assert!(scan(document).is_err(), "{document}");
        }
    }
}
