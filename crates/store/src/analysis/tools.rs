//! How tools were used: in one transcript, from its events; over many, from the sums of the catalogue.

use std::collections::{BTreeMap, HashSet};

use quipu_api::tools::{EventLink, ToolLedger, ToolRow, ToolTime};
use quipu_model::Status;

use super::calls::{Paired, ToolCalls, ToolFact};
use super::files::Files;
use super::names::Names;
use super::parts::{self, Part};
use crate::Store;
use crate::catalogue::{Filter, Result, TranscriptRow};
use crate::events::ALL;
use crate::import::ImportError;
use crate::stats::{slots, subjects};

/// So many failures of each tool are named, and so many tools at all.
const FAILURES: usize = 5;
const TOOLS: usize = 1_000;

/// How a tool was used.
#[derive(Debug, Default)]
struct Used {
    calls: u64,
    failures: u64,
    denials: u64,
    dangling: u64,
    untimed: u64,
    bytes_in: u64,
    bytes_out: u64,
    /// How long each call took, and where it is.
    took: Vec<(u64, u64)>,
    first_failures: Vec<u64>,
    files: Files,
}

impl Store {
    /// How tools were used in a transcript, by its events.
    ///
    /// # Errors
    ///
    /// When the transcript cannot be read.
    pub fn tools(&self, row: &TranscriptRow) -> std::result::Result<ToolLedger, ImportError> {
        let mut names = Names::default();
        let mut calls = ToolCalls::new(row.recorded);
        let mut used: Vec<Used> = Vec::new();
        let mut all = Used::default();
        for batch in self.batches(row, &ALL)? {
            for event in batch? {
                parts::each(&event, row.recorded, |part| match part {
                    Part::Call(call) => {
                        let name = names.number(call.name);
                        used.resize_with(names.len(), Used::default);
                        if let Paired::Began(_) = calls.call(&event, &call, name) {
                            let tool = &mut used[name as usize];
                            tool.bytes_in += parts::input_bytes(&call);
                            if let Some(input) = call.input {
                                tool.files.observe(input, event.seq);
                                all.files.observe(input, event.seq);
                            }
                        }
                    }
                    Part::Result(outcome) => {
                        if let Paired::Ended(at) = calls.result(&event, &outcome) {
                            used[calls.all[at].name as usize].bytes_out += outcome.bytes;
                        }
                    }
                    _ => {}
                });
            }
        }
        for call in &calls.all {
            let (took, _) = call.duration(row.recorded);
            for tool in [&mut used[call.name as usize], &mut all] {
                tool.count(call, took);
            }
        }
        for tool in &used {
            all.bytes_in += tool.bytes_in;
            all.bytes_out += tool.bytes_out;
        }
        let guard = self.guard()?;
        let link = |seq| EventLink {
            transcript: super::address(row),
            seq,
        };
        let name = |at: usize| u32::try_from(at).ok().and_then(|at| names.get(at).cloned());
        let rows = used.into_iter().enumerate();
        let rows = rows.filter(|(_, tool)| tool.calls > 0);
        let rows = rows.map(|(at, tool)| tool.document(name(at), &link, guard));
        let (tools, other_tools) = sorted(rows.collect());
        Ok(ToolLedger {
            transcript: super::address(row),
            transcripts: u64::from(!calls.all.is_empty()),
            from_events: true,
            tools,
            other_tools,
            total: all.document(None, &link, guard),
            orphans: Some(calls.orphans),
            outdated_logs: None,
        })
    }

    /// How tools were used in the transcripts that a filter means, by the sums that the catalogue keeps: calls and
    /// failures. Times are of the calls, to the quarter of an hour; copies are never counted, sub-agents always.
    ///
    /// # Errors
    ///
    /// When the catalogue cannot be used.
    pub fn tools_over(
        &self,
        filter: &Filter,
        directories: Option<&[String]>,
    ) -> Result<ToolLedger> {
        let of = Filter {
            since: None,
            until: None,
            subagents: true,
            duplicates: true,
            received: filter.received.in_figures(),
            ..filter.clone()
        };
        let meant = subjects(self.catalogue(), &of, directories)?;
        let mut sums: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        let mut transcripts = HashSet::new();
        self.catalogue().each_tool_use(&slots(filter), &mut |row| {
            if !meant.contains_key(&row.transcript) {
                return;
            }
            transcripts.insert(row.transcript);
            let (calls, failures) = match sums.get_mut(row.tool) {
                Some(sum) => sum,
                None => sums.entry(row.tool.to_owned()).or_default(),
            };
            *calls = calls.saturating_add(row.did.tool_calls);
            *failures = failures.saturating_add(row.did.failures);
        })?;
        let mut total = (0_u64, 0_u64);
        for (calls, failures) in sums.values() {
            total.0 = total.0.saturating_add(*calls);
            total.1 = total.1.saturating_add(*failures);
        }
        let rows = sums.into_iter().map(|(tool, sum)| summed(Some(tool), sum));
        let (tools, other_tools) = sorted(rows.collect());
        Ok(ToolLedger {
            transcript: None,
            transcripts: transcripts.len() as u64,
            from_events: false,
            tools,
            other_tools,
            total: summed(None, total),
            orphans: None,
            outdated_logs: Some(self.catalogue().outdated()?),
        })
    }
}

/// The tools with most calls first, and how many are left out.
fn sorted(mut tools: Vec<ToolRow>) -> (Vec<ToolRow>, u64) {
    tools.sort_by(|a, b| b.calls.cmp(&a.calls).then_with(|| a.tool.cmp(&b.tool)));
    let left_out = tools.len().saturating_sub(TOOLS);
    tools.truncate(TOOLS);
    (tools, left_out as u64)
}

/// A row of which only sums are known.
fn summed(tool: Option<String>, (calls, failures): (u64, u64)) -> ToolRow {
    ToolRow {
        tool,
        calls,
        failures,
        denials: None,
        dangling: None,
        time: None,
        untimed: None,
        bytes_in: None,
        bytes_out: None,
        first_failures: Vec::new(),
        files_total: None,
        files: Vec::new(),
    }
}

impl Used {
    fn count(&mut self, call: &ToolFact, took: Option<u64>) {
        let seq = call.seq_from;
        self.calls += 1;
        self.dangling += u64::from(call.is_dangling());
        match call.status {
            Some(Status::Denied) => self.denials += 1,
            Some(Status::Error | Status::Timeout) => {
                self.failures += 1;
                if self.first_failures.len() < FAILURES {
                    // What went wrong is in the result.
                    self.first_failures.push(call.seq_to.unwrap_or(seq));
                }
            }
            Some(Status::Ok) | None => {}
        }
        match took {
            Some(took) => self.took.push((took, seq)),
            None => self.untimed += 1,
        }
    }

    fn document(
        mut self,
        tool: Option<String>,
        link: &dyn Fn(u64) -> EventLink,
        guard: &quipu_redact::Guard,
    ) -> ToolRow {
        let failures = self.first_failures.iter();
        ToolRow {
            tool,
            calls: self.calls,
            failures: self.failures,
            denials: Some(self.denials),
            dangling: Some(self.dangling),
            time: took(&mut self.took, link),
            untimed: Some(self.untimed),
            bytes_in: Some(self.bytes_in),
            bytes_out: Some(self.bytes_out),
            first_failures: failures.map(|seq| link(*seq)).collect(),
            files_total: Some(self.files.total()),
            files: self.files.document(guard),
        }
    }
}

/// How long calls took. `None` where nothing says so of any of them.
fn took(all: &mut [(u64, u64)], link: &dyn Fn(u64) -> EventLink) -> Option<ToolTime> {
    // Of two that took as long the first counts as the slowest.
    all.sort_unstable_by_key(|(took, seq)| (*took, std::cmp::Reverse(*seq)));
    let (slowest_ms, slowest) = *all.last()?;
    // The smallest that so many of a hundred do not exceed.
    let at = |percent: usize| {
        let rank = (all.len() * percent).div_ceil(100).max(1);
        all[rank - 1].0
    };
    Some(ToolTime {
        calls: all.len() as u64,
        total_ms: all
            .iter()
            .fold(0, |sum, (took, _)| sum.saturating_add(*took)),
        median_ms: at(50),
        p95_ms: at(95),
        slowest_ms,
        slowest: link(slowest),
    })
}
