//! From the names in logs to the models of the table.
//!
//! The rules, in their order:
//!
//! 1. A name that says who served it (`groq/…`, `bedrock/…`, `us.anthropic.…`, `models/…`) is looked up with that
//!    provider, and with those whose models it passes on.
//! 2. A bare name is looked up with the maker of such names (`claude…` is Anthropic's), at the maker's price.
//! 3. What is found with neither is not priced. If others list it, they are named: that is not for us to choose.
//!
//! Within a provider the longest listed name wins. What follows it in the name asked for must be marks that change
//! no price: a date, `-latest`, `[1m]`. What may follow is known for all models alike, but for names of which
//! the table says that others begin with them; these may be followed by a few more. If nothing is found, versions
//! are tried with a point for a dash.

mod marks;
mod words;

use marks::Marks;
use words::{MAKERS, PROVIDERS, REGIONS, VENDORS};

use crate::error::Unpriced;
use crate::quote::Rule;
use crate::table::{NAMES, lines};

/// No name of a model is longer. Others are not looked for.
const LONGEST: usize = 160;

/// No name of a model is followed by more marks.
const MOST_MARKS: usize = 12;

/// A model of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) provider: &'static str,
    pub(crate) model: &'static str,
    pub(crate) rule: Rule,
}

/// The form in which names are compared.
pub(crate) fn normal(name: &str) -> String {
    name.trim().to_lowercase().replace(' ', "-")
}

/// Looks for a name in its normal form.
pub(crate) fn find(name: &str) -> Result<Found, Unpriced> {
    let unknown = || Unpriced::Unknown {
        model: name.to_owned(),
    };
    if name.len() > LONGEST || name.contains(char::is_control) {
        return Err(unknown());
    }
    let respelt = respelt(name);
    for name in std::iter::once(name).chain(respelt.as_deref()) {
        if let Some(found) = served(name).or_else(|| made(name)) {
            return Ok(found);
        }
    }
    // Without the provider, if that is said and does not have it.
    let bare = said(name).map_or(name, |(_, rest)| rest);
    let providers: Vec<_> = providers()
        .filter(|provider| {
            let has = |name: &str| listed(provider, name, "=").is_some();
            has(name) || has(bare)
        })
        .collect();
    if providers.is_empty() {
        return Err(unknown());
    }
    Err(Unpriced::Unsaid {
        model: name.to_owned(),
        providers,
    })
}

/// A name with points in its versions, if it has dashes there: `claude-sonnet-4-6` for `claude-sonnet-4.6`. Numbers of
/// one digit are versions, longer ones are dates and sizes.
fn respelt(name: &str) -> Option<String> {
    let is_digit = |at: usize| name.as_bytes().get(at).is_some_and(u8::is_ascii_digit);
    let is_between = |at: usize| {
        at > 1 && is_digit(at - 1) && !is_digit(at - 2) && is_digit(at + 1) && !is_digit(at + 2)
    };
    let respelt: String = name
        .char_indices()
        .map(|(at, c)| if c == '-' && is_between(at) { '.' } else { c })
        .collect();
    (respelt != name).then_some(respelt)
}

/// Every provider once.
fn providers() -> impl Iterator<Item = &'static str> {
    let mut all: Vec<_> = PROVIDERS.iter().map(|(_, provider)| *provider).collect();
    all.sort_unstable();
    all.dedup();
    all.into_iter()
}

/// The provider that a name begins with, and what follows.
fn said(name: &str) -> Option<(&'static str, &str)> {
    let (word, rest) = name.split_once(['/', ':'])?;
    let (_, provider) = PROVIDERS.iter().find(|(known, _)| *known == word)?;
    Some((provider, rest))
}

/// A name that says who served it.
fn served(name: &str) -> Option<Found> {
    // A suffix of OpenRouter's own.
    let free = name.ends_with(":free").then(|| sold("openrouter", name));
    if let Some(found) = free.flatten() {
        return Some(found);
    }
    if let Some((provider, rest)) = said(name) {
        // The whole is a name of some, and the last part is what paths of a cloud lead to.
        let last = rest.rsplit('/').next().filter(|_| is_path(provider, rest));
        let mut names = [Some(rest), Some(name), last].into_iter().flatten();
        return names.find_map(|name| sold(provider, name));
    }
    let profile = name
        .strip_prefix("arn:aws")
        .and_then(|arn| arn.rsplit('/').next());
    let name = profile.unwrap_or(name);
    let (vendor, _) = regional(name).split_once('.')?;
    VENDORS.contains(&vendor).then(|| sold("aws", name))?
}

/// Whether slashes are those of a path, not of names that have a slash.
fn is_path(provider: &str, rest: &str) -> bool {
    rest.contains('/') && matches!(provider, "aws" | "google")
}

/// A bare name, with its maker.
fn made(name: &str) -> Option<Found> {
    let (_, makers) = MAKERS.iter().find(|(start, _)| name.starts_with(start))?;
    makers.iter().find_map(|maker| within(maker, name))
}

/// A name with a provider, or with those whose models it passes on.
fn sold(provider: &'static str, name: &str) -> Option<Found> {
    if let Some(found) = within(provider, name) {
        return Some(found);
    }
    if provider == "aws" {
        let bare = regional(name);
        let (_, model) = bare.split_once('.').unwrap_or(("", bare));
        return within(provider, bare).or_else(|| within(provider, model));
    }
    let passed_on = format!("{provider}\t*\t>\t");
    lines(NAMES, &passed_on).find_map(|other| within(other, name))
}

/// A name of Amazon's without the region.
fn regional(name: &str) -> &str {
    match name.split_once('.') {
        Some((region, rest)) if REGIONS.contains(&region) => rest,
        _ => name,
    }
}

/// A name with one provider: the longest listed name that it begins with, if the rest is marks.
fn within(provider: &'static str, name: &str) -> Option<Found> {
    let cuts = name.rmatch_indices(['-', '@', ':', '[']).map(|(at, _)| at);
    for cut in std::iter::once(name.len()).chain(cuts.take(MOST_MARKS)) {
        let (start, rest) = name.split_at(cut);
        let marks = Marks { provider, rest };
        let found = |kind, rule| {
            listed(provider, start, kind).map(|model| Found {
                provider,
                model,
                rule,
            })
        };
        if rest.is_empty() {
            let named = found("=", Rule::Listed).or_else(|| found("^", Rule::Listed));
            if named.is_some() {
                return named;
            }
        } else {
            let marked = found("=", Rule::Marked).filter(|_| marks.change_nothing(false));
            let begun = || found("^", Rule::Begins).filter(|_| marks.change_nothing(true));
            if let Some(found) = marked.or_else(begun) {
                return Some(found);
            }
        }
    }
    None
}

fn listed(provider: &str, name: &str, kind: &str) -> Option<&'static str> {
    lines(NAMES, &format!("{provider}\t{name}\t{kind}\t")).next()
}

#[cfg(test)]
mod tests;
