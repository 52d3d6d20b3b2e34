//! The files that the arguments of a tool call name.

use std::collections::HashMap;

use quipu_api::tools::ToolFile;
use quipu_model::Json;
use quipu_redact::Guard;

use crate::search::named_files;

/// So many files are named for each tool, of so many that are told apart.
const NAMED: usize = 100;
const KNOWN: usize = 10_000;

/// Longer paths are not paths.
const LONGEST: usize = 4096;

/// Files, and how often each was named.
#[derive(Debug, Default)]
pub(super) struct Files {
    /// The places of paths, by their hash: most are not shown.
    known: HashMap<u64, usize>,
    shown: Vec<(String, u64, u64)>,
}

impl Files {
    /// Takes in the arguments of a call.
    pub(super) fn observe(&mut self, input: &Json, seq: u64) {
        let mut named = named_files(input.get());
        named.retain(|path| !path.is_empty() && path.len() <= LONGEST);
        named.sort_unstable();
        named.dedup();
        for path in named {
            let key = quipu_agents::hash(path.as_bytes());
            let next = self.known.len();
            if next >= KNOWN && !self.known.contains_key(&key) {
                continue;
            }
            let at = *self.known.entry(key).or_insert(next);
            if let Some((_, calls, _)) = self.shown.get_mut(at) {
                *calls += 1;
            } else if at == self.shown.len() && at < NAMED {
                self.shown.push((path, 1, seq));
            }
        }
    }

    /// How many different files were named; 10,000 are told apart.
    pub(super) fn total(&self) -> u64 {
        self.known.len() as u64
    }

    pub(super) fn document(self, guard: &Guard) -> Vec<ToolFile> {
        let file = |(path, calls, seq): (String, u64, u64)| ToolFile {
            path: guard.mask_path(&path).into_owned(),
            calls,
            seq,
        };
        self.shown.into_iter().map(file).collect()
    }
}
