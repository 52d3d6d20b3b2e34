//! What the catalogue says of a transcript.

use jiff::Timestamp;
use quipu_api::Time;
use quipu_api::transcript::{self, Transcript};
use quipu_model::Usage;

use super::path;
use crate::catalogue::TranscriptRow;

/// All that the catalogue says of a transcript.
pub fn transcript(row: &TranscriptRow) -> Transcript {
    let at = |millis: Option<i64>| {
        millis
            .and_then(|it| Timestamp::from_millisecond(it).ok())
            .map(Time::of)
    };
    let figures = &row.figures;
    Transcript {
        id: Some(row.address.clone()).filter(|address| !address.is_empty()),
        run_id: row.run_id.clone(),
        native: row.native.clone(),
        agent: row.agent.clone(),
        agent_version: row.agent_version.clone(),
        title: row.title.clone(),
        cwd: row.cwd.clone(),
        branch: row.branch.clone(),
        repository: row.repository.clone(),
        commit: row.commit.clone(),
        parent: row.parent.clone(),
        parent_call: row.parent_call.clone(),
        forked_from: row.forked_from.clone(),
        copy_of: row.copy_of.clone(),
        original: row.original.clone(),
        copied_events: row.copied_events,
        duplicate: row.duplicate,
        reconstructed: row.reconstructed,
        started_at: at(row.started_at),
        ended_at: at(row.ended_at),
        events: figures.events,
        notes: figures.notes,
        prompts: figures.prompts,
        replies: figures.replies,
        tool_calls: figures.tool_calls,
        failures: figures.failures,
        denials: figures.denials,
        errors: figures.errors,
        compactions: figures.compactions,
        attachments: figures.attachments,
        dangling: figures.dangling,
        orphans: figures.orphans,
        calls: figures.calls,
        models: row.models.clone(),
        usage: usage(&row.usage),
        vendor_usage: usage(&row.vendor_usage),
        vendor_cost: row.vendor_cost.clone(),
        path: path(&row.path),
        part: row.part.clone(),
        dialect: row.dialect.clone(),
        key: row.key.clone(),
        size: row.size,
        modified: row.modified.and_then(nanos).map(Time::of),
        received_from: row.received_from.clone(),
        received_key: row.received_key.clone(),
    }
}

fn usage(usage: &Usage) -> transcript::Usage {
    transcript::Usage {
        input: usage.input,
        cache_read: usage.cache_read,
        cache_write: usage.cache_write,
        output: usage.output,
        reasoning: usage.reasoning,
    }
}

fn nanos(nanos: i64) -> Option<Timestamp> {
    Timestamp::from_nanosecond(i128::from(nanos)).ok()
}
