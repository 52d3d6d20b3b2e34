//! Looking for a pattern in everything that is kept, without the index.
//!
//! What is looked at is what events say, as in any search. To read every log would be slow, so the bytes of a
//! log are first searched for a text that the pattern cannot do without, at the speed of unpacking them.

use std::io::BufRead as _;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use ::regex::{Regex, RegexBuilder};
use aho_corasick::AhoCorasick;
use quipu_agents::{Entry, Position, Sink, What};
use quipu_model::Timestamp;
use quipu_redact::Guard;
use regex_syntax::hir::{Hir, HirKind, literal::Extractor};

use super::document::{EventText, role};
use super::lookup::{Found, SearchError, Show};
use super::window::{self, Spoken};
use crate::archive::Archive;
use crate::catalogue::{Filter, Order, TranscriptRow};
use crate::events::ALL;
use crate::import::Store;
use crate::transcript::Kept;

/// How large a pattern may become.
const LARGEST: usize = 10 << 20;

/// A shorter text is found in almost every log.
const SHORTEST: usize = 3;

/// How many matches are marked in one event.
const MARKS: usize = 1_000;

/// ASCII may be written like this in JSON, though nobody does. A log in which it is so is read.
const ESCAPES: [&str; 5] = ["\\u003", "\\u004", "\\u005", "\\u006", "\\u007"];

/// A pattern that is looked for in the archive.
#[derive(Debug)]
pub struct Pattern {
    regex: Regex,
    /// Finds what a log must have in it; `None` when that cannot be told.
    needs: Option<AhoCorasick>,
}

/// What was found by a pattern.
#[derive(Debug)]
pub struct Matches {
    /// The events, those of the latest sessions first.
    pub found: Vec<Found>,
    /// Whether there are more.
    pub more: bool,
    /// Transcripts that could not be read, and why.
    pub problems: Vec<(TranscriptRow, String)>,
}

impl Pattern {
    /// Understands a pattern.
    pub fn new(pattern: &str) -> Result<Self, SearchError> {
        let regex = RegexBuilder::new(pattern)
            .size_limit(LARGEST)
            .dfa_size_limit(LARGEST)
            .nest_limit(200)
            .multi_line(true)
            .build()
            .map_err(|error| SearchError::Pattern(error.to_string()))?;
        let hir = regex_syntax::ParserBuilder::new()
            .multi_line(true)
            .nest_limit(200)
            .build()
            .parse(pattern)
            .map_err(|error| SearchError::Pattern(error.to_string()))?;
        let needs = needs(&hir).and_then(|needs| {
            let needs = needs.iter().map(String::as_str).chain(ESCAPES);
            AhoCorasick::new(needs).ok()
        });
        Ok(Self { regex, needs })
    }

    /// Whether a log can have it at all.
    fn may_be_in(&self, archive: &Archive, row: &TranscriptRow) -> bool {
        let Some(needs) = &self.needs else {
            return true;
        };
        let Ok(snapshot) = crate::transcript::snapshot(archive, row) else {
            return true;
        };
        let mut from = archive.read(&snapshot);
        // What stands across two chunks is looked for in both ends together.
        let mut seam: Vec<u8> = Vec::new();
        let overlap = needs.max_pattern_len();
        loop {
            let Ok(bytes) = from.fill_buf() else {
                return true;
            };
            if bytes.is_empty() {
                return false;
            }
            let head = &bytes[..bytes.len().min(overlap)];
            seam.extend_from_slice(head);
            if needs.is_match(bytes) || needs.is_match(&seam) {
                return true;
            }
            seam.clear();
            seam.extend_from_slice(&bytes[bytes.len().saturating_sub(overlap)..]);
            let read = bytes.len();
            from.consume(read);
        }
    }
}

/// Texts of which one must be there, as they also stand in JSON.
fn needs(hir: &Hir) -> Option<Vec<String>> {
    let all = required(hir)?;
    let plain: Vec<String> = all.iter().map(|text| plain(text)).collect();
    let long = plain.iter().all(|text| text.len() >= SHORTEST);
    (long && !plain.is_empty()).then_some(plain)
}

/// Texts of which one must be there.
fn required(hir: &Hir) -> Option<Vec<String>> {
    match hir.kind() {
        HirKind::Literal(literal) => {
            let text = String::from_utf8(literal.0.to_vec()).ok()?;
            Some(vec![text])
        }
        HirKind::Capture(capture) => required(&capture.sub),
        HirKind::Repetition(repeated) if repeated.min > 0 => required(&repeated.sub),
        // Of all that must be there, what is hardest to find.
        HirKind::Concat(parts) => parts
            .iter()
            .filter_map(|part| required(part).filter(|texts| !texts.is_empty()))
            .max_by_key(|texts| texts.iter().map(|text| plain(text).len()).min()),
        HirKind::Alternation(parts) => {
            let each: Option<Vec<Vec<String>>> = parts.iter().map(required).collect();
            Some(each?.concat())
        }
        HirKind::Class(_) => {
            let found = Extractor::new().extract(hir);
            let texts = found.literals()?.iter();
            texts
                .map(|text| String::from_utf8(text.as_bytes().to_vec()).ok())
                .collect()
        }
        HirKind::Empty | HirKind::Look(_) | HirKind::Repetition(_) => None,
    }
}

/// The longest part of a text that is written in JSON as it is.
fn plain(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " _.-,:;()".contains(c);
    let parts = text.split(|c| !is_plain(c));
    parts
        .max_by_key(|part| part.len())
        .unwrap_or_default()
        .to_owned()
}

impl Store {
    /// Looks for a pattern in what is kept, the latest sessions first.
    pub fn search_pattern(
        &self,
        pattern: &Pattern,
        limit: usize,
        copies: bool,
        (snippet, show): (usize, &Show),
        stop: &AtomicBool,
    ) -> Result<Matches, SearchError> {
        let guard = self.shown(show)?;
        let filter = Filter {
            subagents: true,
            duplicates: copies,
            ..Filter::default()
        };
        let rows = self.catalogue().list(&filter, Order::Newest, None)?;
        let (archive, kept) = (self.archive(), self.kept());
        let (next, count) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let done = Mutex::new(Vec::new());
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            for _ in 0..threads.min(rows.len()) {
                scope.spawn(|| {
                    // Sessions are begun in order, so that none is left out before one that is not.
                    while count.load(Ordering::Relaxed) <= limit && !stop.load(Ordering::Relaxed) {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        let Some(row) = rows.get(at) else {
                            return;
                        };
                        let found = one((archive, &kept), row, pattern, guard, limit, snippet);
                        if let Ok(found) = &found {
                            count.fetch_add(found.len(), Ordering::Relaxed);
                        }
                        done.lock()
                            .unwrap_or_else(std::sync::PoisonError::into_inner)
                            .push((at, found));
                    }
                });
            }
        });
        let mut done = done
            .into_inner()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        done.sort_by_key(|(at, _)| *at);
        let (mut found, mut problems) = (Vec::new(), Vec::new());
        for (at, of_session) in done {
            match of_session {
                Ok(events) => found.extend(events),
                Err(why) => problems.push((rows[at].clone(), why)),
            }
        }
        let more = found.len() > limit;
        found.truncate(limit);
        Ok(Matches {
            found,
            more,
            problems,
        })
    }
}

/// The events of a session that match, the latest first.
fn one(
    (archive, kept): (&Archive, &Kept),
    row: &TranscriptRow,
    pattern: &Pattern,
    guard: Option<&Arc<Guard>>,
    limit: usize,
    snippet: usize,
) -> Result<Vec<Found>, String> {
    if !pattern.may_be_in(archive, row) {
        return Ok(Vec::new());
    }
    let mut matching = Matching {
        pattern,
        row,
        limit,
        snippet,
        said: window::said(guard),
        found: std::collections::VecDeque::new(),
    };
    let events = kept.open(row, &ALL).map_err(|error| error.to_string())?;
    events
        .replay(&ALL, &mut matching)
        .map_err(|error| error.to_string())?;
    Ok(matching.found.into_iter().rev().collect())
}

struct Matching<'m> {
    pattern: &'m Pattern,
    row: &'m TranscriptRow,
    limit: usize,
    snippet: usize,
    said: EventText,
    /// The last ones.
    found: std::collections::VecDeque<Found>,
}

impl Sink for Matching<'_> {
    fn entry(&mut self, seq: u64, _at: Timestamp, _position: Position, entry: &Entry<'_>) {
        let text = self.said.text(entry);
        let marks: Vec<_> = self
            .pattern
            .regex
            .find_iter(text)
            .take(MARKS)
            .map(|found| found.range())
            .collect();
        let Some(first) = marks.first().cloned() else {
            return;
        };
        let mark = quipu_search::snippet::Mark {
            range: first,
            sought: 0,
        };
        let shown = quipu_search::snippet::snippet(text, &[mark], self.snippet);
        let tool = match &entry.what {
            What::Call { name, .. } | What::Result { name, .. } if !name.is_empty() => {
                Some(name.clone().into_owned())
            }
            _ => None,
        };
        // One more than is wanted tells whether there are more.
        if self.found.len() > self.limit {
            self.found.pop_front();
        }
        self.found.push_back(Found {
            row: self.row.clone(),
            event: Spoken {
                seq,
                at: entry.at,
                role: role(&entry.what),
                tool,
                place: super::window::place_of(entry),
                text: text.to_owned(),
            },
            snippet: shown.range,
            marks,
            score: 0.0,
            copies: 0,
            before: Vec::new(),
            after: Vec::new(),
            problem: None,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needed(pattern: &str) -> Option<Vec<String>> {
        needs(&regex_syntax::parse(pattern).expect("a pattern"))
    }

    #[test]
    fn what_a_pattern_cannot_do_without() {
        for (pattern, expected) in [
            ("zanzibar tuple", Some(vec!["zanzibar tuple"])),
            (r"fn \w+_handler\(", Some(vec!["_handler("])),
            ("error|failure", Some(vec!["error", "failure"])),
            ("(abc)+x?", Some(vec!["abc"])),
            (r#"say "hello there""#, Some(vec!["hello there"])),
            ("(?i)error", None),
            ("a|b", None),
            (".*", None),
            ("(abc)?", None),
            ("[ab]cd", None),
        ] {
            let expected = expected.map(|all| all.into_iter().map(str::to_owned).collect());
            assert_eq!(needed(pattern), expected, "{pattern}");
        }
    }

    #[test]
    fn patterns_that_grow_too_large_are_refused() {
        assert!(matches!(
            Pattern::new(r"\w{1000}{1000}"),
            Err(SearchError::Pattern(_))
        ));
        assert!(matches!(Pattern::new("("), Err(SearchError::Pattern(_))));
        Pattern::new("(a+)+$").expect("this one is harmless here");
    }
}
