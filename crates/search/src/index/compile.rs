//! From a query to what the engine understands.

use std::ops::Bound;

use tantivy::query::doc_predicate_query::{DocPredicateQuery, FunctionPredicate};
use tantivy::query::{
    AllQuery, BooleanQuery, ConstScoreQuery, EmptyQuery, InvertedIndexRangeQuery, Occur,
    PhrasePrefixQuery, PhraseQuery, Query as Engine, RangeQuery, TermQuery,
};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocId, Searcher, SegmentReader, Term};

use super::phrase::Phrase;
use super::schema::{Fields, PASS};
use super::{Passes, Result, Sessions};
use crate::query::{Expr, Filter, Pattern, Query, Role, Side};
use crate::{Facet, Tag, words};

/// How many words the beginning of a word may stand for in a phrase.
const EXPANSIONS: u32 = 1_000;

/// A shorter beginning of a hash is likely to be another word.
const SHORTEST_HASH: usize = 7;

type Boxed = Box<dyn Engine>;

pub(super) struct Compiler<'c> {
    pub(super) fields: Fields,
    pub(super) searcher: &'c Searcher,
    pub(super) sessions: &'c dyn Sessions,
}

impl Compiler<'_> {
    /// The words in a row that are all that a query asks for.
    pub(super) fn phrase(&self, query: &Query) -> Option<Phrase> {
        match &query.expr {
            Expr::Word {
                text,
                prefix: false,
            }
            | Expr::Phrase {
                text,
                prefix: false,
                slop: 0,
            } => Phrase::new(terms(self.fields.text, text)),
            _ => None,
        }
    }

    /// What finds the events that a query asks for.
    pub(super) fn query(&self, query: &Query) -> Result<Boxed> {
        self.expr(&query.expr)
    }

    /// What finds the events that a query asks for, but for those of hidden passes.
    pub(super) fn visible(&self, query: &Query, hidden: &Passes) -> Result<Boxed> {
        let found = self.query(query)?;
        if hidden.is_empty() {
            return Ok(found);
        }
        let hidden = within(hidden.clone());
        Ok(Box::new(BooleanQuery::new(vec![
            (Occur::Must, found),
            (Occur::MustNot, hidden),
        ])))
    }

    // A query is nested only so deep: see `Query::MAX_DEPTH`.
    fn expr(&self, expr: &Expr) -> Result<Boxed> {
        Ok(match expr {
            Expr::All => Box::new(AllQuery),
            Expr::Word { text, prefix } => self.words(self.fields.text, text, *prefix, 0),
            Expr::Phrase { text, prefix, slop } => {
                self.words(self.fields.text, text, *prefix, *slop)
            }
            Expr::Near {
                left,
                right,
                distance,
            } => self.near(left, right, *distance),
            Expr::Filter(filter) => silent(self.filter(filter)?),
            Expr::Not(inner) => Box::new(BooleanQuery::new(vec![
                (Occur::Must, silent(Box::new(AllQuery))),
                (Occur::MustNot, self.expr(inner)?),
            ])),
            Expr::And(parts) => {
                let mut clauses = Vec::with_capacity(parts.len());
                let wordless = parts.iter().all(is_wordless);
                for part in parts.iter().filter(|part| wordless || !is_wordless(part)) {
                    clauses.push(match part {
                        Expr::Not(inner) => (Occur::MustNot, self.expr(inner)?),
                        part => (Occur::Must, self.expr(part)?),
                    });
                }
                if clauses.iter().all(|(occur, _)| *occur == Occur::MustNot) {
                    clauses.push((Occur::Must, silent(Box::new(AllQuery))));
                }
                Box::new(BooleanQuery::new(clauses))
            }
            Expr::Or(parts) => {
                let parts = parts
                    .iter()
                    .filter(|part| !is_wordless(part))
                    .map(|part| Ok((Occur::Should, self.expr(part)?)));
                Box::new(BooleanQuery::new(parts.collect::<Result<_>>()?))
            }
        })
    }

    /// Words in a row; one word may also be a part of one.
    fn words(&self, field: Field, text: &str, prefix: bool, slop: u32) -> Boxed {
        let mut terms = terms(field, text);
        match terms.len() {
            0 => Box::new(EmptyQuery),
            1 if prefix => self.begins(&terms[0]),
            1 if is_hash(text) => self.begins(&terms[0]),
            1 => self.word(terms.remove(0)),
            _ if prefix => {
                let mut phrase = PhrasePrefixQuery::new(terms);
                phrase.set_max_expansions(EXPANSIONS);
                Box::new(phrase)
            }
            _ => {
                let mut phrase = PhraseQuery::new(terms);
                phrase.set_slop(slop);
                Box::new(phrase)
            }
        }
    }

    fn word(&self, term: Term) -> Boxed {
        let part = self.as_part(&term);
        let is_part = part.as_ref().is_some_and(|part| {
            let known = self.searcher.doc_freq(part);
            known.unwrap_or(0) > 0
        });
        let whole = Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs));
        match part.filter(|_| is_part) {
            None => whole,
            Some(part) => any(vec![
                whole,
                Box::new(TermQuery::new(part, IndexRecordOption::Basic)),
            ]),
        }
    }

    fn begins(&self, term: &Term) -> Boxed {
        let mut both = vec![beginning(term)];
        both.extend(self.as_part(term).map(|part| beginning(&part)));
        any(both)
    }

    /// The same word as a part of one. Paths have no parts.
    fn as_part(&self, term: &Term) -> Option<Term> {
        let text = term.value();
        let text = text.as_str().filter(|_| term.field() == self.fields.text)?;
        Some(Term::from_field_text(self.fields.part, text))
    }

    fn near(&self, left: &Side, right: &Side, distance: u32) -> Boxed {
        let side = |side: &Side| {
            let (Side::Word(text) | Side::Phrase(text)) = side;
            terms(self.fields.text, text)
        };
        let (left, right) = (side(left), side(right));
        if left.is_empty() && right.is_empty() {
            return Box::new(EmptyQuery);
        }
        if left.len() + right.len() == 1 {
            let one = left.into_iter().chain(right).next();
            return one.map_or_else(|| Box::new(EmptyQuery) as Boxed, |one| self.word(one));
        }
        let row = |first: &[Term], second: &[Term]| -> Boxed {
            let terms = first.iter().chain(second).cloned().enumerate().collect();
            Box::new(PhraseQuery::new_with_offset_and_slop(terms, distance))
        };
        any(vec![row(&left, &right), row(&right, &left)])
    }

    fn filter(&self, filter: &Filter) -> Result<Boxed> {
        Ok(match filter {
            // As everywhere, an agent is named by the beginning of its name.
            Filter::Agent(name) => self.tag(Facet::Agent, &Pattern::Prefix(name.text().to_owned())),
            Filter::Model(name) => self.tag(Facet::Model, name),
            Filter::Tool(name) => self.tag(Facet::Tool, name),
            Filter::Role(Role::Tool) => any(vec![
                self.tagged(Facet::Role, Role::ToolCall.as_str()),
                self.tagged(Facet::Role, Role::ToolResult.as_str()),
            ]),
            Filter::Role(role) => self.tagged(Facet::Role, role.as_str()),
            Filter::Status(status) => self.tagged(Facet::Status, status.as_str()),
            Filter::Has(has) => self.tagged(Facet::Has, has.as_str()),
            Filter::Path(path) => self.words(self.fields.path, path, false, 0),
            Filter::Since(at) => {
                self.between(Bound::Included(at.as_millisecond()), Bound::Unbounded)
            }
            Filter::Until(at) => self.between(
                // What has no time was not said before anything.
                Bound::Excluded(i64::MIN),
                Bound::Excluded(at.as_millisecond()),
            ),
            Filter::Project(_)
            | Filter::Branch(_)
            | Filter::Cost(..)
            | Filter::Session(_)
            | Filter::Title(_) => within(self.sessions.passes(filter)?),
        })
    }

    fn between(&self, from: Bound<i64>, to: Bound<i64>) -> Boxed {
        let term = |at: i64| Term::from_field_i64(self.fields.at, at);
        Box::new(RangeQuery::new(from.map(term), to.map(term)))
    }

    fn tag(&self, facet: Facet, name: &Pattern) -> Boxed {
        match name {
            Pattern::Exact(name) => self.tagged(facet, name),
            Pattern::Prefix(name) => {
                let tag = Tag::new(facet, name);
                beginning(&Term::from_field_text(self.fields.tag, &tag.0))
            }
        }
    }

    fn tagged(&self, facet: Facet, name: &str) -> Boxed {
        let tag = Tag::new(facet, name);
        let term = Term::from_field_text(self.fields.tag, &tag.0);
        Box::new(TermQuery::new(term, IndexRecordOption::Basic))
    }
}

/// Whether it looks for something in which there is no word, such as `->`. Beside anything else that is of no
/// consequence; by itself it finds nothing.
fn is_wordless(expr: &Expr) -> bool {
    let none = |text: &str| {
        let mut none = true;
        words::whole(text, |_| none = false);
        none
    };
    match expr {
        Expr::Word { text, .. } | Expr::Phrase { text, .. } => none(text),
        Expr::Near { left, right, .. } => {
            let side = |side: &Side| {
                let (Side::Word(text) | Side::Phrase(text)) = side;
                none(text)
            };
            side(left) && side(right)
        }
        Expr::Not(inner) => is_wordless(inner),
        Expr::All | Expr::Filter(_) | Expr::And(_) | Expr::Or(_) => false,
    }
}

fn terms(field: Field, text: &str) -> Vec<Term> {
    let mut terms = Vec::new();
    words::whole(text, |word| {
        terms.push(Term::from_field_text(field, word.text));
    });
    terms
}

fn any(mut parts: Vec<Boxed>) -> Boxed {
    if parts.len() == 1 {
        return parts.remove(0);
    }
    let parts = parts.into_iter().map(|part| (Occur::Should, part));
    Box::new(BooleanQuery::new(parts.collect()))
}

/// What does not say how well an event fits.
fn silent(query: Boxed) -> Boxed {
    Box::new(ConstScoreQuery::new(query, 0.0))
}

/// Terms that begin like this one.
fn beginning(term: &Term) -> Boxed {
    let value = term.value();
    let text = value.as_str().unwrap_or_default();
    let lower = Bound::Included(term.clone());
    // The first text behind all that begin like this: its last character that has one is the next one.
    let mut chars: Vec<char> = text.chars().collect();
    let mut upper = Bound::Unbounded;
    while let Some(last) = chars.pop() {
        if let Some(next) = (u32::from(last) + 1..=u32::from(char::MAX)).find_map(char::from_u32) {
            chars.push(next);
            let behind: String = chars.into_iter().collect();
            upper = Bound::Excluded(Term::from_field_text(term.field(), &behind));
            break;
        }
    }
    Box::new(InvertedIndexRangeQuery::new(lower, upper))
}

/// Whether a word seems to be the beginning of a hash, as people cut them.
pub(crate) fn is_hash(text: &str) -> bool {
    text.len() >= SHORTEST_HASH
        && text.bytes().all(|byte| byte.is_ascii_hexdigit())
        && text.bytes().any(|byte| byte.is_ascii_digit())
        && text.bytes().any(|byte| byte.is_ascii_alphabetic())
}

/// Events of these passes.
fn within(passes: Passes) -> Boxed {
    let predicate = FunctionPredicate::from(move |segment: &SegmentReader| {
        let pass = segment.fast_fields().u64(PASS)?.first_or_default_col(0);
        let passes = passes.clone();
        Ok(move |doc: DocId| passes.has(pass.get_val(doc)))
    });
    Box::new(DocPredicateQuery::from(predicate))
}
