//! Agents that keep their conversations as lists of messages, each in a shape of its own.
//!
//! Mistral Vibe, gptme and Hermes write messages of the Chat Completions kind; Posit Assistant, `QwenPaw`,
//! Muse, `OpenHands` and Codebuff have shapes of their own; `ChatGPT` and Claude.ai can be exported. Where many
//! sessions lie in one thing (an export, a database, a directory of events) they are taken out one by one.

mod codebuff;
mod discover;
mod exports;
mod gather;
mod muse;
mod normalize;
mod openhands;
mod posit;
mod qwenpaw;
mod wire;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use crate::{Dialect, Family, Framing, Gather, Origin, Reader, state};

/// See the module.
pub(crate) struct Chat;

pub(crate) const VIBE: Dialect = lines("vibe", "vibe");
pub(crate) const GPTME: Dialect = lines("gptme", "gptme");
pub(crate) const HERMES: Dialect = document("hermes", "hermes");
pub(crate) const HERMES_LINES: Dialect = lines("hermes-lines", "hermes");
pub(crate) const POSIT: Dialect = lines("posit-assistant", "posit-assistant");
pub(crate) const QWENPAW: Dialect = document("qwenpaw", "qwenpaw");
pub(crate) const MUSE: Dialect = lines("muse", "muse");
pub(crate) const OPENHANDS: Dialect = lines("openhands", "openhands");
pub(crate) const CODEBUFF: Dialect = document("codebuff", "codebuff");
pub(crate) const CHATGPT: Dialect = document("chatgpt-export", "chatgpt");
pub(crate) const CLAUDE_AI: Dialect = document("claude-ai-export", "claude-ai");
/// One session of many.
pub(crate) const PART: Dialect = lines("chat-part", "chat");

const fn lines(name: &'static str, brand: &'static str) -> Dialect {
    Dialect {
        name,
        brand,
        framing: Framing::Lines,
    }
}

const fn document(name: &'static str, brand: &'static str) -> Dialect {
    Dialect {
        name,
        brand,
        framing: Framing::Document,
    }
}

impl Family for Chat {
    crate::family::known!(
        "chat",
        [
            VIBE,
            GPTME,
            HERMES,
            HERMES_LINES,
            POSIT,
            QWENPAW,
            MUSE,
            OPENHANDS,
            CODEBUFF,
            CHATGPT,
            CLAUDE_AI,
            PART
        ]
    );
    crate::family::placed!();

    fn dialect_at(&self, brand: &str, path: &Path) -> Option<Dialect> {
        discover::dialect_at(brand, path)
    }

    fn open(
        &self,
        dialect: &Dialect,
        origin: &Origin<'_>,
        saved: Option<&[u8]>,
    ) -> Option<Box<dyn Reader>> {
        match *dialect {
            VIBE => state::open(saved, || normalize::Messages::vibe(origin)),
            GPTME => state::open(saved, || normalize::Messages::gptme(origin)),
            HERMES | HERMES_LINES => state::open(saved, || normalize::Messages::hermes(origin)),
            POSIT => state::open(saved, || posit::Posit::new(origin)),
            QWENPAW => state::open(saved, || qwenpaw::QwenPaw::new(origin)),
            MUSE => state::open(saved, muse::Muse::default),
            OPENHANDS => state::open(saved, || openhands::OpenHands::new(origin)),
            CODEBUFF => state::open(saved, || codebuff::Codebuff::new(origin)),
            CHATGPT | CLAUDE_AI => state::open(saved, exports::Exports::default),
            PART => state::open(saved, || gather::Part::new(origin)),
            _ => None,
        }
    }

    fn sidecars(&self, log: &Path) -> Vec<PathBuf> {
        discover::sidecars(log)
    }

    fn gather(&self) -> Option<&dyn Gather> {
        Some(&gather::Many)
    }
}
