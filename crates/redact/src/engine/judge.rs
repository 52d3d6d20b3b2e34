//! What becomes of a match: whether it is a finding, nearly one, or none.

use std::ops::Range;
use std::sync::LazyLock;

use memchr::memmem::Finder;
use regex_automata::Input;
use regex_automata::util::captures::Captures;

use super::allow::Asked;
use super::assign::{self, Assignment, Style};
use super::check::{self, Verdict};
use super::generic::{self, Look};
use super::overlap::Candidate;
use super::{Certainty, Context, Engine, Found, Why, boundary, encoded, innocent};
use crate::rule::{Check, Pattern};
use crate::{Kind, Rule};

/// How many bits short something may be to be shown.
const SHORT: f64 = 0.6;

/// How a placeholder begins.
static PLACEHOLDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"[REDACTED:"));

/// A text and what it is looked at with.
pub(super) struct Job<'a> {
    pub(super) engine: &'a Engine,
    pub(super) text: &'a str,
    pub(super) context: Context<'a>,
}

impl<'a> Job<'a> {
    pub(super) fn new(engine: &'a Engine, text: &'a str, context: Context<'a>) -> Self {
        Self {
            engine,
            text,
            context,
        }
    }

    fn rule(&self, rule: usize) -> &'a Rule {
        &self.engine.rules.rules[rule]
    }

    /// Which of the groups is the secret.
    pub(super) fn secret(&self, rule: usize, captures: &Captures) -> Option<Range<usize>> {
        let groups = self.engine.plan.programs[rule].groups;
        let group = |index: usize| captures.get_group(index).map(|span| span.range());
        match self.rule(rule).secret_group {
            Some(index) => group(index),
            None => (1..=groups).filter_map(group).find(|span| !span.is_empty()),
        }
    }

    /// Searches a part of a text for a rule, one match behind the other.
    pub(super) fn search(
        &self,
        candidates: &mut Vec<Candidate>,
        rule: usize,
        span: Range<usize>,
        mut next: impl FnMut(&Input<'_>) -> Option<(Range<usize>, Option<Range<usize>>)>,
    ) {
        let bounded = self.engine.plan.programs[rule].boundary;
        let text = self.text.as_bytes();
        let mut at = span.start;
        while at <= span.end {
            let Some((whole, secret)) = next(&Input::new(text).span(at..span.end)) else {
                break;
            };
            if bounded && !boundary::begins(text, whole.start) {
                at = whole.start + 1;
                continue;
            }
            at = whole.end.max(whole.start + 1);
            self.consider(candidates, rule, whole.clone(), secret.unwrap_or(whole));
        }
    }

    /// Takes a match for what it is.
    pub(super) fn consider(
        &self,
        candidates: &mut Vec<Candidate>,
        rule: usize,
        matched: Range<usize>,
        secret: Range<usize>,
    ) {
        let (matched, secret) = (self.widened(matched), self.widened(secret));
        let value = &self.text[secret.clone()];
        let data = self.rule(rule);
        if value.is_empty() || self.was_redacted(&secret) || !self.in_its_file(rule) {
            return;
        }
        if data.kind == Kind::Secret
            && (Self::is_sample(value) || self.is_innocent(data, &matched, &secret))
        {
            return;
        }
        let mut why = None;
        if let Some(least) = data.entropy {
            let bits = check::entropy(value.as_bytes());
            if bits < least - SHORT {
                return;
            }
            why = (bits < least).then_some(Why::Entropy);
        }
        if let Some(known) = data.check {
            match check::look(
                known,
                &data.id,
                self.context.name,
                self.text,
                secret.clone(),
            ) {
                Verdict::Yes => {}
                Verdict::Nearly => why = Some(Why::Check),
                Verdict::No => return,
            }
        }
        let (before, open) = (candidates.len(), secret.end == matched.end);
        self.propose(candidates, rule, matched, secret, why);
        if open && let Some(added) = candidates.get_mut(before) {
            let span = &mut added.found.span;
            span.end = self.whole_end(data, span);
        }
    }

    /// Where a value ends by the text around it, where the expression of its rule does not say what is behind it:
    /// nothing of a password is left because of a sign in it.
    fn whole_end(&self, data: &Rule, span: &Range<usize>) -> usize {
        let judged = matches!(
            data.check,
            Some(Check::Secret | Check::Password | Check::Typed | Check::Drawn)
        );
        if data.kind != Kind::Secret || !judged || !matches!(data.pattern, Pattern::Regex(_)) {
            return span.end;
        }
        assign::word_end(self.text.as_bytes(), span.end)
    }

    fn propose(
        &self,
        candidates: &mut Vec<Candidate>,
        rule: usize,
        matched: Range<usize>,
        secret: Range<usize>,
        why: Option<Why>,
    ) {
        if why.is_some() && !self.context.near {
            return;
        }
        let asked = Asked {
            rule,
            text: self.text,
            file: self.context.file,
            matched,
            secret: secret.clone(),
        };
        let why = if self.engine.allows.allow(&asked) {
            Some(Why::Allowed)
        } else {
            why
        };
        if why.is_some() && !self.context.near {
            return;
        }
        candidates.push(Candidate {
            rank: self.engine.plan.programs[rule].rank,
            found: Found {
                rule,
                span: secret,
                certainty: why.map_or(Certainty::Sure, Certainty::Near),
            },
        });
    }

    /// Something that was found in what a part of the text says: it stands unless an allowlist is against it here.
    pub(super) fn adopt(&self, candidates: &mut Vec<Candidate>, found: &Found, span: Range<usize>) {
        let span = self.widened(span);
        let why = match found.certainty {
            Certainty::Sure => None,
            Certainty::Near(why) => Some(why),
        };
        if !self.was_redacted(&span) {
            self.propose(candidates, found.rule, span.clone(), span, why);
        }
    }

    /// Whether a placeholder is in it or right beside it. What stands there was looked at before, and its neighbours were
    /// others then.
    fn was_redacted(&self, span: &Range<usize>) -> bool {
        const LONGEST: usize = 96;
        let text = self.text.as_bytes();
        let low = span.start.saturating_sub(LONGEST);
        let high = text.len().min(span.end + b"[REDACTED:".len());
        PLACEHOLDER.find_iter(&text[low..high]).any(|at| {
            let begin = low + at;
            let rest = &text[begin..text.len().min(begin + LONGEST)];
            let end = memchr::memchr(b']', rest).map(|length| begin + length + 1);
            begin <= span.end && end.is_some_and(|end| end >= span.start)
        })
    }

    /// No finding ends within a character.
    fn widened(&self, mut span: Range<usize>) -> Range<usize> {
        while !self.text.is_char_boundary(span.start) {
            span.start -= 1;
        }
        while !self.text.is_char_boundary(span.end) {
            span.end += 1;
        }
        span
    }

    fn in_its_file(&self, rule: usize) -> bool {
        let path = &self.engine.paths[rule];
        path.as_ref()
            .is_none_or(|path| self.context.file.is_some_and(|file| path.is_match(file)))
    }

    /// Whether it is something that has a name, though it stands where a secret would.
    fn is_innocent(&self, rule: &Rule, matched: &Range<usize>, secret: &Range<usize>) -> bool {
        let value = &self.text[secret.clone()];
        let by_context = matched.start < secret.start;
        if !by_context {
            return innocent::in_file_name(self.text.as_bytes(), secret.start, secret.end);
        }
        if is_of_password(rule) {
            return innocent::calls_itself(value) || value.contains('=') && innocent::code(value);
        }
        innocent::code(value) || innocent::address(value)
    }

    /// What stands in documentation in place of a secret.
    fn is_sample(value: &str) -> bool {
        let has = |word: &str| memchr::memmem::find(value.as_bytes(), word.as_bytes()).is_some();
        let short = value.len() < 200;
        // Seven capitals in a row are not there by chance, however long the value is.
        has("EXAMPLE")
            || short
                && (has("example")
                    || has("xxxxxx")
                    || has("XXXXXX")
                    || has("******")
                    || (!value.starts_with('-') && has("..."))
                    || has("your-")
                    || has("your_")
                    || has("YOUR_"))
            || short && value.contains("${")
            || short && value.contains("{{")
    }

    /// Rules about whole files.
    pub(super) fn files(&self, candidates: &mut Vec<Candidate>) {
        for rule in &self.engine.plan.files {
            if !self.text.is_empty() && self.in_its_file(*rule) && !crate::is_placeholder(self.text)
            {
                self.propose(
                    candidates,
                    *rule,
                    0..self.text.len(),
                    0..self.text.len(),
                    None,
                );
            }
        }
    }

    /// Takes a whole text for what is given to a name. Says whether there may be a rule that goes by the name.
    pub(super) fn named_whole(
        &self,
        candidates: &mut Vec<Candidate>,
        joined: &mut Vec<u8>,
        name: &str,
    ) -> bool {
        let plan = &self.engine.plan;
        let trimmed = self.text.trim_ascii();
        if trimmed.is_empty() || name.len() > 160 {
            return true;
        }
        let mut known = false;
        let begin = self.text.len() - self.text.trim_ascii_start().len();
        assign::joined(name.as_bytes(), joined);
        let assignment = Assignment {
            name: 0..0,
            value: begin..begin + trimmed.len(),
            style: Style::Whole,
        };
        plan.words.find(name.as_bytes(), |word, _| {
            for (rule, place) in &plan.names[word] {
                known = true;
                self.named_as(
                    candidates,
                    joined,
                    name.as_bytes(),
                    *rule,
                    *place,
                    &assignment,
                );
            }
        });
        known
    }

    /// Holds what is given to a name against a rule.
    pub(super) fn named(
        &self,
        candidates: &mut Vec<Candidate>,
        joined: &[u8],
        rule: usize,
        place: usize,
        assignment: &Assignment,
    ) {
        let text = self.text.as_bytes();
        if innocent::in_arn(text, assignment.name.start) {
            return;
        }
        let name = &text[assignment.name.clone()];
        self.named_as(candidates, joined, name, rule, place, assignment);
    }

    fn named_as(
        &self,
        candidates: &mut Vec<Candidate>,
        joined: &[u8],
        name: &[u8],
        rule: usize,
        place: usize,
        assignment: &Assignment,
    ) {
        let data = self.rule(rule);
        let Pattern::Named { names, .. } = &data.pattern else {
            return;
        };
        let program = &self.engine.plan.programs[rule];
        let length = assignment.value.len();
        if length < program.least || program.most.is_some_and(|most| length > most) {
            return;
        }
        let known = names[place].as_bytes();
        if known.len() > joined.len() || memchr::memmem::find(joined, known).is_none() {
            return;
        }
        let span = self.widened(assignment.value.clone());
        let value = &self.text[span.clone()];
        let joined = std::str::from_utf8(joined).unwrap_or_default();
        let look = match data.check {
            _ if data.kind == Kind::Secret && is_named(data, joined, name, value) => Look::Other,
            Some(Check::Secret) => generic::secret(joined, value, assignment.style),
            Some(Check::Password) => {
                let name = std::str::from_utf8(name).unwrap_or_default();
                generic::password(joined, name, value, assignment.style)
            }
            // The value of a field is what the field says; between other words it may be what something is called.
            _ if data.kind == Kind::Secret
                && (generic::stand_in(value)
                    || generic::path(value)
                    || assignment.style != Style::Whole && generic::label(value)) =>
            {
                Look::Other
            }
            _ => Look::Secret,
        };
        if look == Look::Other || (look == Look::Nearly && !self.context.near) {
            return;
        }
        let Some(secret) = self.value(rule, span) else {
            return;
        };
        if look == Look::Nearly {
            self.propose(candidates, rule, secret.clone(), secret, Some(Why::Entropy));
        } else {
            self.consider(candidates, rule, secret.clone(), secret);
        }
    }

    /// What of a value the rule means, when all of it is as the rule says.
    fn value(&self, rule: usize, span: Range<usize>) -> Option<Range<usize>> {
        let regex = self.engine.plan.programs[rule].searched()?;
        let value = &self.text[span.clone()];
        if self.engine.plan.programs[rule].groups == 0 {
            return regex.is_match(value).then_some(span);
        }
        let mut captures = regex.create_captures();
        regex.captures(value, &mut captures);
        captures.get_match()?;
        let inside = self.secret(rule, &captures).unwrap_or(0..value.len());
        Some(span.start + inside.start..span.start + inside.end)
    }

    /// Things that look made up by a machine and whose name says nothing.
    pub(super) fn unnamed(&self, candidates: &mut Vec<Candidate>) {
        let rules = &self.engine.rules.rules;
        let generic = rules
            .iter()
            .position(|rule| rule.id == "generic-secret")
            .or_else(|| {
                rules
                    .iter()
                    .position(|rule| rule.check == Some(Check::Secret))
            });
        let Some(rule) = generic else { return };
        if self.context.name.is_some_and(is_id) {
            return;
        }
        encoded::runs(self.text.as_bytes(), 32, |span| {
            let value = &self.text[span.clone()];
            let has = |is: fn(&u8) -> bool| value.bytes().any(|byte| is(&byte));
            let mixed = has(u8::is_ascii_digit)
                && has(u8::is_ascii_lowercase)
                && has(u8::is_ascii_uppercase);
            let path = value.matches('/').count() > 2 || value.len() > 256;
            if mixed
                && !path
                && !is_numbered(value)
                && !generic::wordy(value)
                && check::entropy(value.as_bytes()) > 4.2
            {
                self.propose(candidates, rule, span.clone(), span, Some(Why::Unnamed));
            }
        });
    }
}

/// Whether a rule is about what people choose, which may be words.
fn is_of_password(rule: &Rule) -> bool {
    let chosen = |name: &&String| {
        ["pass", "basic", "snmp"]
            .iter()
            .any(|word| name.contains(word))
    };
    matches!(rule.check, Some(Check::Password | Check::Typed))
        || [&rule.id, &rule.label].iter().any(chosen)
}

/// Whether what is given to a name is itself a name: of code, of a thing, of a request.
fn is_named(rule: &Rule, joined: &str, name: &[u8], value: &str) -> bool {
    innocent::repeats(name, value)
        || innocent::of_file(name, value)
        || !is_of_password(rule)
            && (innocent::code(value)
                || innocent::slug(value)
                || innocent::of_request(joined, value))
}

/// Whether a name says that its value tells things apart, and opens nothing.
fn is_id(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    [
        "id",
        "ids",
        "uuid",
        "hash",
        "sha",
        "sha256",
        "digest",
        "checksum",
        "signature",
        "etag",
        "ref",
    ]
    .iter()
    .any(|end| lower.ends_with(end))
}

/// Whether a value is the number of a message, a call or a request, as agents and providers give them.
fn is_numbered(value: &str) -> bool {
    let Some((word, _)) = value.rsplit_once('_') else {
        return false;
    };
    [
        "toolu", "call", "msg", "req", "chatcmpl", "resp", "run", "thread", "fc", "rs", "srvtoolu",
        "asst", "file", "item",
    ]
    .iter()
    .any(|known| word == *known || word.ends_with(&format!("_{known}")))
}
