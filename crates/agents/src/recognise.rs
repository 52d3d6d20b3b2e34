//! Whose log this is: by its content, and by its place where the content leaves a doubt.
//!
//! Content comes first, because a folder proves little: agents keep copies of each other's logs. But an agent
//! may add a field or a kind of record any day, and a log that its adapter could read all the same must not
//! stay unread for that. So the place decides between several families that claim a log, and it is the
//! fallback where none does. What was decided in this way is said ([`Known::doubt`]).

use std::path::Path;

use crate::registry::claims;
use crate::{Collect, Dialect, FAMILIES, Family, Feed, Head, Host, LogPlace, Match, Origin, Pick};

/// Where a log lies.
#[derive(Clone, Copy)]
pub struct Lies<'a> {
    /// The agent that keeps its logs there.
    pub brand: &'static str,
    /// The family of that agent.
    pub family: &'static dyn Family,
    /// The log.
    pub path: &'a Path,
}

impl<'a> Lies<'a> {
    /// The agent that keeps a log at this path on this machine.
    pub fn at(host: &Host, path: &'a Path) -> Option<Self> {
        let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let found = real(path);
        let is_kept = |place: &LogPlace| {
            let below = found.strip_prefix(real(&place.root)).ok();
            below.is_some_and(|below| (place.pick)(below) == Pick::Log)
        };
        FAMILIES.iter().find_map(|&family| {
            let place = family.places(host).into_iter().find(is_kept)?;
            Some(Self {
                brand: place.brand,
                family,
                path,
            })
        })
    }
}

/// Whose log it is.
#[derive(Clone, Copy)]
pub struct Known {
    /// The family that reads it.
    pub family: &'static dyn Family,
    /// How it reads.
    pub dialect: Dialect,
    /// What is doubtful about that.
    pub doubt: Option<Doubt>,
}

/// Why it is not certain whose log it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doubt {
    /// Its content does not say. The agent in whose place it lies is this one.
    LogPlace {
        /// The agent.
        brand: &'static str,
    },
    /// It looks like a log of this other dialect. The agent in whose place it lies decided.
    PlaceAgainst {
        /// The agent.
        brand: &'static str,
        /// The other dialect.
        other: &'static str,
    },
    /// It looks like a log of this other dialect as well, and no place decides.
    Several {
        /// The other dialect.
        other: &'static str,
    },
}

impl Known {
    /// Whether the place of the log decided.
    pub fn is_by_place(&self) -> bool {
        matches!(
            self.doubt,
            Some(Doubt::LogPlace { .. } | Doubt::PlaceAgainst { .. })
        )
    }

    /// What is doubtful, for people.
    pub fn warning(&self) -> Option<String> {
        let name = self.dialect.name;
        Some(match self.doubt? {
            Doubt::LogPlace { brand } => format!(
                "its content does not say whose log it is; it is read as {name}, because {brand} keeps its logs there"
            ),
            Doubt::PlaceAgainst { brand, other } => format!(
                "looks like a log of {other}; it is read as {name}, because {brand} keeps its logs there"
            ),
            Doubt::Several { other } => {
                format!("looks like a log of {name} and of {other}; it is read as {name}")
            }
        })
    }
}

/// Whose log this is. `lies` says where it lies, when that is a place of an agent.
pub fn recognise(head: &Head<'_>, lies: Option<Lies<'_>>) -> Option<Known> {
    let claims = claims(head);
    let sure: Vec<_> = claims.iter().filter(|(_, claim)| claim.sure).collect();
    let own = |claims: &[&(&'static dyn Family, Match)]| {
        let lies = lies?;
        let mut claims = claims.iter();
        claims
            .find(|(family, _)| family.name() == lies.family.name())
            .map(|claim| (**claim, lies.brand))
    };
    match sure.as_slice() {
        [] => unsure(head, &claims, lies),
        [(family, claim)] => Some(known(*family, claim.dialect, None)),
        [first, second, ..] => {
            if let Some(((family, claim), brand)) = own(&sure) {
                let other = if first.1 == claim { second } else { first };
                let other = other.1.dialect.name;
                let doubt = Doubt::PlaceAgainst { brand, other };
                return Some(known(family, claim.dialect, Some(doubt)));
            }
            let other = second.1.dialect.name;
            let doubt = Doubt::Several { other };
            Some(known(first.0, first.1.dialect, Some(doubt)))
        }
    }
}

/// Nobody is sure. What lies in the place of an agent is that agent's, if it reads as such.
fn unsure(
    head: &Head<'_>,
    claims: &[(&'static dyn Family, Match)],
    lies: Option<Lies<'_>>,
) -> Option<Known> {
    let by_content = claims.first().copied();
    let usual = lies.and_then(|lies| Some((lies, lies.family.dialect_at(lies.brand, lies.path)?)));
    if let Some((lies, dialect)) = usual {
        let other = by_content.map(|(_, claim)| claim.dialect.name);
        if other == Some(dialect.name) {
            return Some(known(lies.family, dialect, None));
        }
        if reads(head, lies, dialect) {
            let brand = lies.brand;
            let doubt = match other {
                Some(other) => Doubt::PlaceAgainst { brand, other },
                None => Doubt::LogPlace { brand },
            };
            return Some(known(lies.family, dialect, Some(doubt)));
        }
    }
    by_content.map(|(family, claim)| known(family, claim.dialect, None))
}

/// Whether a reader makes something of the beginning of a log: anything but notes.
fn reads(head: &Head<'_>, lies: Lies<'_>, dialect: Dialect) -> bool {
    let origin = Origin {
        path: lies.path,
        part: None,
    };
    let Some(reader) = lies.family.open(&dialect, &origin, None) else {
        return false;
    };
    let mut feed = Feed::new(dialect.framing, reader);
    let mut sink = Collect::default();
    feed.push(head.text().as_bytes(), &mut sink);
    // The end may be cut off. What counts is whether anything before it was read.
    feed.finish(&mut sink).ok();
    feed.ledger().mapped > 0
}

fn known(family: &'static dyn Family, dialect: Dialect, doubt: Option<Doubt>) -> Known {
    Known {
        family,
        dialect,
        doubt,
    }
}
