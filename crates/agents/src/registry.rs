//! Every family there is.

use crate::{Dialect, Family, Head, Host, Match};
use crate::{
    acp, agentlog, aider, amp, anthropic, atif, chat, claude, cline, codex, copilot, cursor, droid,
    entire, exchange, flow, gemini, google, goose, inspect, kimi, kiro, normalized, omnigent,
    openai_chat, openai_responses, opencode, otlp, pi, qwen, sts, zed,
};

/// The families, in the order in which they are asked.
pub static FAMILIES: &[&dyn Family] = &[
    &claude::Claude,
    &codex::Codex,
    &opencode::OpenCode,
    &copilot::Copilot,
    &gemini::Gemini,
    &cursor::Cursor,
    &pi::Pi,
    &qwen::Qwen,
    &kimi::Kimi,
    &cline::Cline,
    &droid::Droid,
    &goose::Goose,
    &amp::Amp,
    &aider::Aider,
    &kiro::Kiro,
    &zed::Zed,
    &omnigent::Omnigent,
    &acp::Acp,
    &agentlog::AgentLog,
    &exchange::Exchange,
    &entire::Entire,
    &atif::Atif,
    &sts::Sts,
    &normalized::Normalized,
    &inspect::Inspect,
    &otlp::Otlp,
    &anthropic::Anthropic,
    &openai_responses::OpenAiResponses,
    &openai_chat::OpenAiChat,
    &google::Google,
    &flow::Flow,
    &chat::Chat,
];

/// The family of this name.
pub fn family(name: &str) -> Option<&'static dyn Family> {
    FAMILIES
        .iter()
        .copied()
        .find(|family| family.name() == name)
}

/// The family whose sessions a file holds that begins so, where it holds many.
pub fn holder(begin: &[u8]) -> Option<&'static dyn Family> {
    let mut families = FAMILIES.iter().copied();
    families.find(|family| {
        family
            .gather()
            .is_some_and(|gather| gather.holds_file(begin))
    })
}

/// Who says that a log is theirs: those that are sure first, else in the order in which they are asked.
pub fn claims(head: &Head<'_>) -> Vec<(&'static dyn Family, Match)> {
    let mut claims: Vec<(&'static dyn Family, Match)> = FAMILIES
        .iter()
        .filter_map(|family| Some((*family, family.sniff(head)?)))
        .collect();
    claims.sort_by_key(|(_, claim)| !claim.sure);
    claims
}

/// Whose log this is: the family that is sure, or else the first that finds it likely.
pub fn sniff(head: &Head<'_>) -> Option<(&'static dyn Family, Dialect)> {
    let first = claims(head).into_iter().next();
    first.map(|(family, claim)| (family, claim.dialect))
}

/// Whose log begins with these bytes. `whole` says that there are no more.
pub fn identify(bytes: &[u8], whole: bool) -> Option<(&'static dyn Family, Dialect)> {
    Head::look(bytes, whole, sniff)
}

/// The agent of this name, when a family reads its logs.
pub(crate) fn brand(agent: &str) -> Option<&'static str> {
    let nowhere = Host::new("/", |_| None);
    FAMILIES.iter().find_map(|family| {
        let dialects = family.dialects().iter().map(|dialect| dialect.brand);
        let places = family.places(&nowhere).into_iter().map(|place| place.brand);
        dialects.chain(places).find(|brand| *brand == agent)
    })
}

/// The dialect of this name, for streams whose format is known beforehand.
pub fn dialect(name: &str) -> Option<(&'static dyn Family, Dialect)> {
    FAMILIES.iter().copied().find_map(|family| {
        let dialect = family.dialects().iter().find(|d| d.name == name)?;
        Some((family, *dialect))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_are_unique() {
        let mut names = HashSet::new();
        for family in FAMILIES {
            for known in family.dialects() {
                assert!(
                    names.insert(known.name),
                    "two dialects are named {}",
                    known.name
                );
                let (found, same) = dialect(known.name).unwrap();
                assert_eq!((found.name(), same), (family.name(), *known));
            }
        }
    }
}
