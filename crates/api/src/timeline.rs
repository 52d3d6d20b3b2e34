//! When what went on in a transcript.

use crate::Time;
use crate::describe::document;

document! {
    /// The spans of a transcript: what went on from which event to which, and what that comes to in time. Spans are in the order of their first events, never of their times.
    pub struct Timeline {
        /// The id of the transcript.
        pub transcript: Option<String>,
        /// Its events.
        pub events: u64,
        /// How many spans it has.
        pub spans_total: u64,
        /// The spans of this page. It ends between two events: spans that begin with the same event are on the same page.
        pub spans: Vec<TimelineSpan>,
        /// The `from` of the next page; null when this is the last one.
        pub next: Option<u64>,
        /// What lanes keep apart.
        pub axis: Axis,
        /// How many lanes there are.
        pub lanes: u64,
        /// What all spans come to, whichever page this is.
        pub totals: TimelineTotals,
        /// Sub-agents of this session that no event of it names.
        pub unplaced: Vec<ChildTranscript>,
    }
}

document! {
    /// Something that went on for a while.
    pub struct TimelineSpan {
        /// Its number among the spans of the transcript, from 0. It stays the same while the transcript grows.
        pub span: u64,
        /// What kind it is.
        pub kind: SpanKind,
        /// The tool, the model, the step, the sub-agent or the workflow; null where the log does not name it.
        pub name: Option<String>,
        /// The kind of a step: `agent`, `command`, …; null for all other spans.
        pub step_kind: Option<String>,
        /// The step that it is, or happened in: its names with dots between them; empty outside of steps.
        pub path: String,
        /// The turns of the loops around the step, the outermost first.
        pub iterations: Vec<u64>,
        /// Which attempt at the step, from 1.
        pub attempt: u64,
        /// The id of the tool call or of the model call, as the log gives it.
        pub call_id: Option<String>,
        /// The seq of its first event.
        pub seq_from: u64,
        /// The seq of its last event so far.
        pub seq_to: u64,
        /// When it began; null when the log does not say.
        pub start: Option<Time>,
        /// When it ended; null when the log does not say, or it has not ended.
        pub end: Option<Time>,
        /// How long it took; null when nothing says so.
        pub duration_ms: Option<u64>,
        /// How the duration is known.
        pub timing: Timing,
        /// How it ended.
        pub status: SpanStatus,
        /// The span that it is part of, by number.
        pub parent: Option<u64>,
        /// Where it can be drawn so that it covers no other span; null when it has no place on the axis.
        pub lane: Option<u64>,
        /// Whether the whole would have been shorter without it, as far as times tell.
        pub critical: bool,
        /// The id of the transcript that has its inside: a sub-agent's session, a run that was called. Null when there is none, or it is not kept.
        pub transcript: Option<String>,
        /// The run or session that it began, as the log names it.
        pub child: Option<String>,
    }
}

document! {
    /// Kinds of spans.
    pub words enum SpanKind {
        /// A recorded run as a whole.
        Run,
        /// A step of a workflow.
        Step,
        /// A run that a step called.
        ChildRun,
        /// A sub-agent: the tool call that began it, or its own events where it shares the log.
        Subagent,
        /// A call of a model: from the input before it until its answer.
        Model,
        /// A tool call: from the call until its result.
        Tool,
    }
}

document! {
    /// How a duration is known.
    pub words enum Timing {
        /// It is the difference of two times in the log.
        Measured,
        /// The log says how long it took.
        Stated,
        /// Neither: a time is missing, or the clock went back in between.
        Unknown,
    }
}

document! {
    /// How a span ended.
    pub words enum SpanStatus {
        /// It ended, and nothing says that it failed.
        Ok,
        /// It failed.
        Failed,
        /// It was not allowed.
        Denied,
        /// It took too long.
        Timeout,
        /// It has not ended: it goes on, or it was broken off.
        Open,
        /// Nothing says how it ended.
        Unknown,
    }
}

document! {
    /// What lanes keep apart.
    pub words enum Axis {
        /// Spans whose times overlap. Those without times have no lane.
        Time,
        /// Spans whose events overlap, because the log has no times.
        Seq,
    }
}

document! {
    /// What the spans of a transcript come to. Tool calls, model calls, sub-agents, called runs and steps without any of these count as work.
    pub struct TimelineTotals {
        /// The earliest time in the log.
        pub first: Option<Time>,
        /// The latest time in the log.
        pub last: Option<Time>,
        /// From the first to the last; null when the log has no times. It is the sum of the next three.
        pub wall_ms: Option<u64>,
        /// Time in which any work went on.
        pub busy_ms: Option<u64>,
        /// Time in which the agent had answered and waited for a person.
        pub waiting_ms: Option<u64>,
        /// Time in which nothing went on that the log tells of.
        pub idle_ms: Option<u64>,
        /// Time in which two or more went on at once.
        pub overlap_ms: Option<u64>,
        /// How many went on at once at most.
        pub most_at_once: u64,
        /// How many stretches of waiting and idle time there are.
        pub gaps_total: u64,
        /// The longest of them, the longest first.
        pub gaps: Vec<TimelineGap>,
        /// How long the critical path is: the work that the end had to wait for. Of work that went on at once, that which ended last counts.
        pub critical_ms: Option<u64>,
        /// How many spans are on the critical path.
        pub critical_total: u64,
        /// The longest of them, by number, in their order.
        pub critical_spans: Vec<u64>,
        /// Events that are earlier than the event before them. Nothing is put in order: times are as the log has them.
        pub clock_went_back: u64,
        /// Events without a time.
        pub undated: u64,
        /// Spans whose duration is not known.
        pub unknown_durations: u64,
        /// Results without a tool call, and ends without a beginning.
        pub orphans: u64,
    }
}

document! {
    /// A stretch in which nothing went on.
    pub struct TimelineGap {
        /// When it began.
        pub from: Time,
        /// When it ended.
        pub to: Time,
        /// How long it is.
        pub duration_ms: u64,
        /// Whether a person was waited for. Otherwise nobody knows.
        pub person: bool,
        /// The seq of the event that ended it; null when none did.
        pub seq: Option<u64>,
    }
}

document! {
    /// A transcript below another one.
    pub struct ChildTranscript {
        /// Its id.
        pub id: String,
        /// Its title.
        pub title: Option<String>,
        /// When it began.
        pub started_at: Option<Time>,
        /// When the last thing in it happened.
        pub ended_at: Option<Time>,
    }
}
