//! Takes out of a text what is to be taken out, and writes the receipt.

use std::ops::Range;

use memchr::memmem;
use quipu_formats::normalized::Redaction;
use quipu_model::Json;
use quipu_model::json::{Kind as JsonKind, Node, Tape};

use super::escape::escaped;
use super::files;
use super::names::{Names, home_of};
use super::old::{Old, moved};
use super::review::{Decisions, Excerpt, Finding, Review, ValueHash};
use crate::rule::Kind;
use crate::{
    Certainty, Context, Engine, Found, Key, Placeholders, Rule, Scratch, is_placeholder, receipt,
};

/// The type of a receipt of what a profile leaves out whatever it says.
pub(super) const POLICY: &str = "policy";

/// What is reused from text to text, and what is remembered of a transcript.
#[derive(Debug)]
pub(super) struct Kit {
    scratch: Scratch,
    found: Vec<Found>,
    tape: Tape,
    placeholders: Placeholders,
}

impl Kit {
    pub(super) fn new(placeholders: Placeholders) -> Self {
        Self {
            scratch: Scratch::default(),
            found: Vec::new(),
            tape: Tape::new(),
            placeholders,
        }
    }
}

/// Takes things out of texts.
pub(super) struct Mask<'a> {
    pub(super) engine: &'a Engine,
    /// Which of its rules are applied.
    pub(super) wanted: Vec<bool>,
    /// Whether secrets are looked for, those that files are as a whole among them.
    pub(super) secrets: bool,
    pub(super) key: Key,
    /// What commitments are salted with; without one there are none, nor receipts.
    pub(super) salts: Option<Key>,
    pub(super) names: Names,
    pub(super) decisions: &'a Decisions,
    pub(super) review: Option<Box<Review<'a>>>,
    pub(super) kit: Kit,
    /// The event at hand; 0 for the header.
    pub(super) seq: u64,
    /// What was taken out of it.
    pub(super) list: Vec<Redaction>,
    /// What had been taken out of it before.
    pub(super) old: Old,
    /// How many were nearly findings.
    pub(super) near: u64,
}

/// Something that is to be taken out of a text.
#[derive(Debug, Clone)]
pub(super) struct Cut {
    pub(super) span: Range<usize>,
    pub(super) rule: String,
    pub(super) kind: &'static str,
    pub(super) placeholder: String,
}

/// Something that may be taken out.
struct Candidate {
    span: Range<usize>,
    of: Of,
}

#[derive(Clone)]
enum Of {
    Rule(usize, Certainty),
    Name(usize),
    Given(Cut),
}

/// How a field is named, when it has to be.
pub(super) type Field<'f> = &'f dyn Fn() -> String;

impl Mask<'_> {
    /// Whether nothing is looked for.
    fn is_idle(&self) -> bool {
        !self.secrets && !self.wanted.contains(&true) && self.names.is_empty()
    }

    /// What is to be taken out of a text, in order and without overlaps.
    pub(super) fn cuts(
        &mut self,
        field: Field<'_>,
        text: &str,
        context: Context<'_>,
        given: &[Cut],
    ) -> Vec<Cut> {
        let mut candidates: Vec<Candidate> = given
            .iter()
            .map(|given| Candidate {
                span: given.span.clone(),
                of: Of::Given(given.clone()),
            })
            .collect();
        if !self.is_idle() && !text.is_empty() {
            self.look(field, text, context, &mut candidates);
        }
        if candidates.is_empty() {
            return Vec::new();
        }
        spare(text, &mut candidates);
        self.merge(&mut candidates);
        candidates
            .into_iter()
            .map(|candidate| self.cut(field, text, candidate))
            .collect()
    }

    fn look(
        &mut self,
        field: Field<'_>,
        text: &str,
        context: Context<'_>,
        to: &mut Vec<Candidate>,
    ) {
        let near = self.review.is_some() || !self.decisions.remove.is_empty();
        let mut found = std::mem::take(&mut self.kit.found);
        found.clear();
        let context = Context { near, ..context };
        self.engine
            .scan(&mut self.kit.scratch, text, context, &mut found);
        let mut names = self.names.find(text);
        if let Some(inner) = self.inner(text, context) {
            found.extend(inner);
        }
        for found in found.drain(..) {
            self.weigh(field, text, &found, &names, to);
        }
        if self.secrets {
            let secret = files::secret_parts(text, context.name).into_iter();
            to.extend(secret.map(|span| Candidate {
                span: span.clone(),
                of: Of::Given(files::secret(span)),
            }));
        }
        self.kit.found = found;
        to.extend(names.drain(..).map(|(span, index)| Candidate {
            span,
            of: Of::Name(index),
        }));
    }

    /// What is found in the strings of a text that is JSON, one level deep, by the keys that they have there.
    fn inner(&mut self, text: &str, context: Context<'_>) -> Option<Vec<Found>> {
        const DEEPEST: usize = 64;
        if !matches!(text.trim_start().as_bytes(), [b'{' | b'[', ..]) {
            return None;
        }
        let mut tape = std::mem::take(&mut self.kit.tape);
        let mut found = Vec::new();
        if let Ok(node) = tape.read(text, DEEPEST) {
            self.strings(node, context, &mut found);
        }
        tape.shrink();
        self.kit.tape = tape;
        Some(found)
    }

    fn strings(&mut self, node: Node<'_>, context: Context<'_>, to: &mut Vec<Found>) {
        match node.kind() {
            JsonKind::Object => {
                for (key, value) in node.fields() {
                    let key = key.to_text_lossy();
                    self.strings(
                        value,
                        Context {
                            name: Some(&*key),
                            ..context
                        },
                        to,
                    );
                }
            }
            JsonKind::List => {
                for item in node.items() {
                    self.strings(item, context, to);
                }
            }
            JsonKind::String => {
                let Some(text) = node.as_str() else { return };
                let from = to.len();
                self.engine.scan(&mut self.kit.scratch, &text, context, to);
                let raw = node.raw().get();
                for found in &mut to[from..] {
                    found.span = escaped(raw, &found.span, node.offset());
                }
            }
            JsonKind::Number => {
                let from = to.len();
                self.engine
                    .scan(&mut self.kit.scratch, node.raw().get(), context, to);
                for found in &mut to[from..] {
                    found.span = found.span.start + node.offset()..found.span.end + node.offset();
                }
            }
            JsonKind::Null | JsonKind::Bool => {}
        }
    }

    /// Decides about something that was found.
    fn weigh(
        &mut self,
        field: Field<'_>,
        text: &str,
        found: &Found,
        names: &[(Range<usize>, usize)],
        to: &mut Vec<Candidate>,
    ) {
        if !self.wanted.get(found.rule).copied().unwrap_or(false) {
            return;
        }
        let mut span =
            super::floor(text, found.span.start)..super::ceil(text, found.span.end.min(text.len()));
        let value = &text[span.clone()];
        if value.is_empty() || is_placeholder(value) {
            return;
        }
        let decided =
            !self.decisions.keep.is_empty() || matches!(found.certainty, Certainty::Near(_));
        if decided {
            let hash = ValueHash::of(&self.key, value);
            if self.decisions.keep.contains(&hash) {
                return;
            }
            if matches!(found.certainty, Certainty::Near(_))
                && !self.decisions.remove.contains(&hash)
            {
                self.near += 1;
                self.show(field, text, &span, found.rule, found.certainty, None);
                return;
            }
        }
        if self.engine.rules().rules[found.rule].kind == Kind::Path {
            // The session's own places have names of their own, and what is below them stays.
            let next = names.partition_point(|(name, _)| name.end <= span.start);
            if names
                .get(next)
                .is_some_and(|(name, _)| name.start < span.end)
            {
                return;
            }
            if let Some(home) = home_of(value) {
                span.end = span.start + home.end;
            }
        }
        to.push(Candidate {
            span,
            of: Of::Rule(found.rule, found.certainty),
        });
    }

    fn show(
        &mut self,
        field: Field<'_>,
        text: &str,
        span: &Range<usize>,
        rule: usize,
        certainty: Certainty,
        placeholder: Option<&str>,
    ) {
        let Some(review) = &mut self.review else {
            return;
        };
        review(&Finding {
            seq: self.seq,
            field: &field(),
            rule: &self.engine.rules().rules[rule],
            certainty,
            placeholder,
            hash: ValueHash::of(&self.key, &text[span.clone()]),
            excerpt: Excerpt::of(text, span),
        });
    }

    /// Of what overlaps, the most secret and then the longest gives the name to all of it.
    fn merge(&self, candidates: &mut Vec<Candidate>) {
        candidates.sort_by_key(|it| (it.span.start, std::cmp::Reverse(it.span.end)));
        let rank = |it: &Candidate| {
            let kind = match &it.of {
                Of::Rule(rule, _) => self.rule(*rule).kind.as_str(),
                Of::Given(cut) => cut.kind,
                Of::Name(_) => "name",
            };
            // What goes whatever it says goes as what it is.
            let order = ["path", "identity", "name", "pii", "secret", POLICY];
            (order.iter().position(|word| *word == kind), it.span.len())
        };
        let mut merged: Vec<Candidate> = Vec::new();
        for candidate in candidates.drain(..) {
            match merged.last_mut() {
                Some(last) if candidate.span.start < last.span.end => {
                    let union = last.span.start..last.span.end.max(candidate.span.end);
                    if rank(&candidate) > rank(last) {
                        last.of = candidate.of;
                    }
                    last.span = union;
                }
                _ => merged.push(candidate),
            }
        }
        *candidates = merged;
    }

    fn rule(&self, rule: usize) -> &Rule {
        &self.engine.rules().rules[rule]
    }

    fn cut(&mut self, field: Field<'_>, text: &str, candidate: Candidate) -> Cut {
        let Candidate { span, of } = candidate;
        match of {
            Of::Name(index) => {
                let (of, stands) = self.names.get(index);
                Cut {
                    span,
                    rule: of.rule().to_owned(),
                    kind: Kind::Identity.as_str(),
                    placeholder: stands.to_owned(),
                }
            }
            Of::Given(cut) => Cut { span, ..cut },
            Of::Rule(rule, certainty) => {
                let label = &self.engine.rules().rules[rule].label;
                let placeholder = self.kit.placeholders.of(label, &text[span.clone()]);
                self.show(field, text, &span, rule, certainty, Some(&placeholder));
                self.of_rule(rule, span, placeholder)
            }
        }
    }

    fn of_rule(&self, rule: usize, span: Range<usize>, placeholder: String) -> Cut {
        let rule = self.rule(rule);
        Cut {
            span,
            rule: rule.id.clone(),
            kind: rule.kind.as_str(),
            placeholder,
        }
    }

    /// What goes over the ends of texts that follow each other: for each of them, which parts of it.
    pub(super) fn across(&mut self, texts: &[&str]) -> Vec<Vec<Cut>> {
        let mut parts: Vec<Vec<Cut>> = vec![Vec::new(); texts.len()];
        if texts.len() < 2 || !self.wanted.contains(&true) {
            return parts;
        }
        let all = texts.concat();
        let mut starts = Vec::with_capacity(texts.len());
        let mut end = 0;
        for text in texts {
            starts.push(end);
            end += text.len();
        }
        let mut found = Vec::new();
        self.engine
            .scan(&mut self.kit.scratch, &all, Context::default(), &mut found);
        for found in found {
            let span = found.span;
            let first = starts
                .partition_point(|start| *start <= span.start)
                .saturating_sub(1);
            let is_wanted =
                found.certainty == Certainty::Sure && self.wanted.get(found.rule) == Some(&true);
            if !is_wanted || span.is_empty() || span.end <= starts[first] + texts[first].len() {
                continue;
            }
            let label = &self.engine.rules().rules[found.rule].label;
            let value = &all[super::floor(&all, span.start)..super::ceil(&all, span.end)];
            if self
                .decisions
                .keep
                .contains(&ValueHash::of(&self.key, value))
            {
                continue;
            }
            let placeholder = self.kit.placeholders.of(label, value);
            for (index, text) in texts.iter().enumerate().skip(first) {
                let start = starts[index];
                if start >= span.end {
                    break;
                }
                let from = super::floor(text, span.start.saturating_sub(start));
                let to = super::ceil(text, (span.end - start).min(text.len()));
                if from < to {
                    let part = self.of_rule(found.rule, from..to, placeholder.clone());
                    parts[index].push(part);
                }
            }
        }
        parts
    }

    /// Takes parts out of a text and writes the receipts.
    pub(super) fn apply(&mut self, field: Field<'_>, text: &str, cuts: &[Cut]) -> String {
        let field = field();
        let old = self.old.take(&field);
        let mut out = String::with_capacity(text.len());
        let mut receipts: Vec<(Redaction, Option<Range<usize>>)> = Vec::new();
        let (mut at, mut seen, mut written) = (0, 0, 0);
        let mut old = old.into_iter().peekable();
        for cut in cuts {
            let kept = &text[at..cut.span.start];
            let length = kept.chars().count() as u64;
            moved(&mut old, &mut receipts, seen..seen + length, written);
            out.push_str(kept);
            (seen, written) = (seen + length, written + length);
            let removed = text[cut.span.clone()].chars().count() as u64;
            // What had been taken out of what is taken out now is gone with it.
            while old
                .next_if(|old| old.start < Some(seen + removed))
                .is_some()
            {}
            let end = written + cut.placeholder.chars().count() as u64;
            receipts.push((
                Redaction {
                    field: field.clone(),
                    rule_id: cut.rule.clone(),
                    kind: cut.kind.to_owned(),
                    placeholder: cut.placeholder.clone(),
                    start: Some(written),
                    end: Some(end),
                    commitment: None,
                },
                Some(cut.span.clone()),
            ));
            out.push_str(&cut.placeholder);
            (seen, written, at) = (seen + removed, end, cut.span.end);
        }
        moved(&mut old, &mut receipts, seen..u64::MAX, written);
        out.push_str(&text[at..]);
        for (n, (mut receipt, span)) in receipts.into_iter().enumerate() {
            if let (Some(span), Some(salts)) = (span, &self.salts) {
                receipt.commitment = Some(receipt::commit(
                    salts,
                    self.seq,
                    &field,
                    n as u64,
                    &text[span],
                ));
            }
            self.list.push(receipt);
        }
        out
    }

    /// Takes parts out of a text, by rules alone.
    pub(super) fn text(&mut self, field: Field<'_>, text: &mut String, context: Context<'_>) {
        let cuts = self.cuts(field, text, context, &[]);
        if !cuts.is_empty() {
            *text = self.apply(field, text, &cuts);
        }
    }

    pub(super) fn optional(&mut self, field: &str, text: &mut Option<String>) {
        if let Some(text) = text {
            self.text(&|| field.to_owned(), text, Context::default());
        }
    }

    /// Takes out all of a text, whatever it says.
    pub(super) fn whole(
        &mut self,
        field: &str,
        text: &mut String,
        rule: &str,
        kind: &'static str,
        placeholder: String,
    ) {
        if text.is_empty() || super::names::is_stand_in(text) {
            return;
        }
        let cut = Cut {
            span: 0..text.len(),
            rule: rule.to_owned(),
            kind,
            placeholder,
        };
        *text = self.apply(&|| field.to_owned(), text, &[cut]);
    }

    /// Takes out all of a value, whatever it is. What was committed to is its JSON, unless it is a text.
    pub(super) fn whole_json(
        &mut self,
        field: &str,
        json: &mut Json,
        rule: &str,
        kind: &'static str,
        placeholder: String,
    ) {
        if json.is_null() {
            return;
        }
        let mut text = match json.as_str() {
            Some(text) => text.into_owned(),
            None => json.get().to_owned(),
        };
        let was = self.list.len();
        // What had been taken out of it before is gone with it.
        self.old.forget_inside(field);
        self.whole(field, &mut text, rule, kind, placeholder);
        if self.list.len() > was {
            *json = Json::string(&text);
        }
    }
}

/// Leaves out what stands for something already.
fn spare(text: &str, candidates: &mut Vec<Candidate>) {
    const BEGIN: &[u8] = b"[REDACTED:";
    let mut there: Vec<Range<usize>> = Vec::new();
    for start in memmem::find_iter(text.as_bytes(), BEGIN) {
        let rest = &text.as_bytes()[start..text.len().min(start + 80)];
        if let Some(length) = memchr::memchr(b']', rest)
            && is_placeholder(&text[start..=start + length])
        {
            there.push(start..start + length + 1);
        }
    }
    if there.is_empty() {
        return;
    }
    let mut spared = Vec::new();
    for candidate in candidates.drain(..) {
        // What goes whatever it says goes with what stands in it.
        if matches!(&candidate.of, Of::Given(cut) if cut.kind == POLICY) {
            spared.push(candidate);
            continue;
        }
        let mut from = candidate.span.start;
        let first = there.partition_point(|it| it.end <= candidate.span.start);
        for it in there[first..]
            .iter()
            .take_while(|it| it.start < candidate.span.end)
        {
            if from < it.start {
                spared.push(Candidate {
                    span: from..it.start,
                    of: candidate.of.clone(),
                });
            }
            from = it.end;
        }
        if from < candidate.span.end {
            spared.push(Candidate {
                span: from..candidate.span.end,
                of: candidate.of,
            });
        }
    }
    *candidates = spared;
}
