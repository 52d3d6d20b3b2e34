//! What a search found.

use quipu_api::Time;
use quipu_api::search::{Hit, HitEvent};
use quipu_redact::Guard;

use crate::search::{Found, Spoken};

/// An event that was found. What the guard finds in its path is hidden.
pub fn hit(found: &Found, guard: &Guard) -> Hit {
    let row = &found.row;
    let event = |event: &Spoken| HitEvent {
        seq: event.seq,
        timestamp: event.at.map(Time::of),
        role: event.role.to_owned(),
        tool: event.tool.clone(),
        text: event.text.clone(),
    };
    let snippet = found.event.text.get(found.snippet.clone());
    let matches = found.marks.iter();
    let step = found.event.place.as_ref();
    Hit {
        id: row.address.clone(),
        run_id: row.run_id.clone(),
        seq: found.event.seq,
        agent: row.agent.clone(),
        project: row.cwd.clone(),
        branch: row.branch.clone(),
        title: row.title.clone(),
        timestamp: found.event.at.map(Time::of),
        role: found.event.role.to_owned(),
        tool: found.event.tool.clone(),
        path: step.map(|place| guard.mask_path(&place.path).into_owned()),
        iterations: step
            .map(|place| place.iterations.clone())
            .unwrap_or_default(),
        snippet: snippet.map(str::to_owned),
        snippet_offset: found.snippet.start as u64,
        matches: matches
            .map(|mark| [mark.start as u64, mark.end as u64])
            .collect(),
        text_bytes: found.event.text.len() as u64,
        score: f64::from(found.score),
        copies: found.copies,
        before: found.before.iter().map(event).collect(),
        after: found.after.iter().map(event).collect(),
        problem: found.problem.clone(),
    }
}
