//! Takes out of a text what is to be taken out, and writes the receipt.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memmem;
use quipu_formats::normalized::Redaction;
use quipu_model::Json;
use quipu_model::json::{Kind as JsonKind, Node, Tape};

use super::escape::escaped;
use super::files;
use super::names::{Names, home_of};
use super::numbers::round_placeholder;
use super::old::{Old, moved};
use super::review::{Decisions, Excerpt, Finding, Review, Shown, ValueHash};
use super::traces::Traces;
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
    /// What pseudonyms are made with.
    pub(super) naming: Key,
    /// Finds what gives back times and digests.
    pub(super) traces: Traces,
    /// Whether lengths in placeholders are rounded.
    pub(super) rounds: bool,
    /// What commitments are salted with; without one there are none, nor receipts.
    pub(super) salts: Option<Key>,
    pub(super) names: Names,
    pub(super) decisions: &'a Decisions,
    pub(super) review: Option<Box<Review<'a>>>,
    /// Whether what is taken out is kept to be shown.
    pub(super) shows: bool,
    /// What was taken out of the event at hand, to be shown when it is handed on.
    pub(super) pending: Vec<Shown>,
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
    Rule(usize),
    Name(usize),
    Given(Cut),
}

/// How a field is named, when it has to be.
pub(super) type Field<'f> = &'f dyn Fn() -> String;

impl Mask<'_> {
    /// Whether nothing is looked for.
    fn is_idle(&self) -> bool {
        !self.secrets
            && !self.wanted.contains(&true)
            && self.names.is_empty()
            && self.traces.is_idle()
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
            .map(|candidate| self.cut(text, candidate))
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
        let kept = self.decisions;
        let is_kept = |span: &Range<usize>| {
            !kept.keep.is_empty()
                && kept
                    .keep
                    .contains(&ValueHash::of(&self.key, &text[span.clone()]))
        };
        names.retain(|(span, _)| !is_kept(span));
        if !self.traces.is_idle() {
            let cuts = self.traces.find(text).into_iter();
            Self::free(cuts.filter(|cut| !is_kept(&cut.span)), to);
        }
        to.extend(names.drain(..).map(|(span, index)| Candidate {
            span,
            of: Of::Name(index),
        }));
    }

    /// Adds what no rule found: what a rule found is what it is, whatever it looks like.
    fn free(cuts: impl Iterator<Item = Cut>, to: &mut Vec<Candidate>) {
        let mut found: Vec<Range<usize>> = to.iter().map(|it| it.span.clone()).collect();
        found.sort_by_key(|span| span.start);
        // Each ends where the last of those before it does, so that one look tells.
        let mut end = 0;
        for span in &mut found {
            end = end.max(span.end);
            span.end = end;
        }
        for cut in cuts {
            let before = found.partition_point(|it| it.start < cut.span.end);
            if before == 0 || found[before - 1].end <= cut.span.start {
                to.push(Candidate {
                    span: cut.span.clone(),
                    of: Of::Given(cut),
                });
            }
        }
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
                self.show_near(field, text, &span, found.rule, found.certainty);
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
            of: Of::Rule(found.rule),
        });
    }

    fn show_near(
        &mut self,
        field: Field<'_>,
        text: &str,
        span: &Range<usize>,
        rule: usize,
        certainty: Certainty,
    ) {
        let Some(review) = &mut self.review else {
            return;
        };
        let rule = &self.engine.rules().rules[rule];
        review(&Finding {
            seq: self.seq,
            field: &field(),
            rule: &rule.id,
            kind: rule.kind.as_str(),
            severity: Some(rule.severity),
            certainty,
            placeholder: None,
            hash: ValueHash::of(&self.key, &text[span.clone()]),
            excerpt: Excerpt::of(text, span),
        });
    }

    /// Keeps what is taken out until it is known that the event is handed on.
    fn show_later(&mut self, field: &str, text: &str, cut: &Cut) {
        if !self.shows {
            return;
        }
        let rules = &self.engine.rules().rules;
        let rule = rules.iter().find(|rule| rule.id == cut.rule);
        let hash = ValueHash::of(&self.key, &text[cut.span.clone()]);
        self.pending.push(Shown::new(
            self.seq,
            field,
            text,
            cut,
            hash,
            rule.map(|rule| rule.severity),
        ));
    }

    /// Shows what was taken out of the event at hand.
    pub(super) fn show_pending(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        if let Some(review) = &mut self.review {
            for shown in &pending {
                review(&shown.finding());
            }
        }
    }

    /// Forgets what was taken out of the event at hand: all of it goes.
    pub(super) fn forget(&mut self) {
        self.list.clear();
        self.pending.clear();
    }

    /// Of what overlaps, the most secret and then the longest gives the name to all of it.
    fn merge(&self, candidates: &mut Vec<Candidate>) {
        candidates.sort_by_key(|it| (it.span.start, std::cmp::Reverse(it.span.end)));
        let rank = |it: &Candidate| {
            let kind = match &it.of {
                Of::Rule(rule) => self.rule(*rule).kind.as_str(),
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

    fn cut(&mut self, text: &str, candidate: Candidate) -> Cut {
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
            Of::Rule(rule) => {
                let label = &self.engine.rules().rules[rule].label;
                let placeholder = self.kit.placeholders.of(label, &text[span.clone()]);
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
        if texts.len() < 2 || self.is_idle() {
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
        // The text that a part begins in, where it goes over the end of it.
        let crossed = |span: &Range<usize>| {
            let first = starts.partition_point(|start| *start <= span.start);
            let first = first.saturating_sub(1);
            (span.end > starts[first] + texts[first].len()).then_some(first)
        };
        let mut over: Vec<Cut> = Vec::new();
        for found in found {
            let span = super::floor(&all, found.span.start)..super::ceil(&all, found.span.end);
            let is_wanted =
                found.certainty == Certainty::Sure && self.wanted.get(found.rule) == Some(&true);
            if is_wanted && crossed(&span).is_some() {
                let label = &self.engine.rules().rules[found.rule].label;
                let placeholder = self.kit.placeholders.of(label, &all[span.clone()]);
                over.push(self.of_rule(found.rule, span, placeholder));
            }
        }
        over.extend(self.traces.find(&all));
        for (span, index) in self.names.find(&all) {
            let of = Of::Name(index);
            over.push(self.cut(&all, Candidate { span, of }));
        }
        for cut in over {
            let span = cut.span.clone();
            let Some(first) = crossed(&span) else {
                continue;
            };
            let hash = ValueHash::of(&self.key, &all[span.clone()]);
            if self.decisions.keep.contains(&hash) {
                continue;
            }
            for (index, text) in texts.iter().enumerate().skip(first) {
                let start = starts[index];
                if start >= span.end {
                    break;
                }
                let from = super::floor(text, span.start.saturating_sub(start));
                let to = super::ceil(text, (span.end - start).min(text.len()));
                if from < to {
                    parts[index].push(Cut {
                        span: from..to,
                        ..cut.clone()
                    });
                }
            }
        }
        parts
    }

    /// Takes parts out of a text and writes the receipts.
    pub(super) fn apply(&mut self, field: Field<'_>, text: &str, cuts: &[Cut]) -> String {
        let field = field();
        let old = self.old.take(&field);
        let rounded: Vec<Cut>;
        let cuts = if self.rounds {
            let is_policy = |cut: &Cut| cut.kind == POLICY;
            rounded = cuts
                .iter()
                .map(|cut| Cut {
                    placeholder: if is_policy(cut) {
                        round_placeholder(&cut.placeholder)
                    } else {
                        cut.placeholder.clone()
                    },
                    ..cut.clone()
                })
                .collect();
            &rounded
        } else {
            cuts
        };
        for cut in cuts {
            self.show_later(&field, text, cut);
        }
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
        let mut tape = Tape::new();
        // Half a character in a text is what every reader makes of it.
        let text = tape.read(json.get(), 1).ok();
        let text = text.and_then(|node| node.as_str().map(Cow::into_owned));
        let mut text = text.unwrap_or_else(|| json.get().to_owned());
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
