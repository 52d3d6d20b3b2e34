//! What a format could not carry, had to guess, or carries in a shape of its own.
//!
//! Every projection of the model fills one of these in as it goes, so that whoever asked for another
//! format is told what it cost. Counted by what it was, with the first place of each.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use quipu_model::{Body, Event, Fidelity, Header, Usage};
use serde::Serialize;

/// What became of the events that a format was given.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Loss {
    /// How many events there were.
    pub events: u64,
    /// How many of them are in what was written, in one shape or another.
    pub carried: u64,
    /// What was not carried, by the type of event or kind of note.
    pub dropped: BTreeMap<Cow<'static, str>, Tally>,
    /// What is carried, but in a shape that the format has for something else.
    pub wrapped: BTreeMap<Cow<'static, str>, Tally>,
    /// What the format asks for and the events do not say, and how it was filled in.
    pub inferred: BTreeMap<Cow<'static, str>, Tally>,
}

/// How often, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// How often.
    pub count: u64,
    /// The event where it was first met; 0 for what is true of the session as a whole.
    pub first_seq: u64,
    /// The first few events where it was met.
    pub examples: Vec<u64>,
}

/// How many places are named of each.
const EXAMPLES: usize = 3;

macro_rules! fields {
    ($($(#[$doc:meta])* $name:ident = $word:literal,)+) => {
        /// A field of events, or of the session as a whole, that a format has a place for or not. Where and by
        /// what a log was read is no part of the session, so it is not among them.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Field { $($(#[$doc])* $name,)+ }

        impl Field {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// All that have a place of their own.
            pub const NAMED: &'static [Self] = Self::ALL.split_at(Self::ALL.len() - 1).0;

            /// The name under which it is counted.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $word,)+ }
            }
        }
    };
}

fields! {
    /// When it happened.
    Timestamp = "time",
    /// The run that called this one.
    RunLinks = "parent_run_id",
    /// Where in a workflow it happened, and in which iteration.
    Place = "path",
    /// In which passes of nested loops, and at which attempt.
    Passes = "iterations, attempt",
    /// That a router saw it, not the agent alone.
    Fidelity = "fidelity",
    /// Its id in the log.
    NativeId = "native_id",
    /// The id of what it follows.
    ParentId = "parent_id",
    /// The sub-agent that acted.
    Subagent = "subagent_id",
    /// The model.
    Model = "model",
    /// Tokens: prompt and output.
    Usage = "usage",
    /// Tokens: which were read from or written to a cache.
    UsageCache = "usage.cache",
    /// Tokens: which are cached for an hour.
    UsageCache1h = "usage.cache_write_1h",
    /// Tokens: which were reasoning.
    UsageReasoning = "usage.reasoning",
    /// What it cost.
    Cost = "cost",
    /// The call to a model it belongs to.
    ModelCall = "model_call",
    /// Why an answer ended.
    StopReason = "stop_reason",
    /// How long it took.
    Duration = "duration_ms",
    /// How a tool call ended.
    Status = "status",
    /// The run of a sub-agent that it begins or ends.
    Child = "child",
    /// That something was attached: type, size, hash.
    Attachments = "attachments",
    /// That there is content that cannot be read.
    Opaque = "flags.opaque",
    /// That a program made it.
    Synthetic = "flags.synthetic",
    /// That a later event took its place.
    Superseded = "flags.superseded",
    /// That the log gives no time.
    Undated = "flags.undated",
    /// That a call has no result.
    Dangling = "flags.dangling",
    /// Of the session: title.
    Title = "session.title",
    /// Of the session: the call that began it.
    ParentCall = "session.parent_call",
    /// Of the session: what it was copied from.
    ForkedFrom = "session.forked_from",
    /// Of the session: the runs it called.
    Children = "session.children",
    /// Of the session: the agent.
    Agent = "source.agent",
    /// Of the session: its version.
    AgentVersion = "source.agent_version",
    /// Of the session: the session in the agent's own terms.
    SessionId = "source.session_id",
    /// Of the session: the directory.
    Cwd = "environment.cwd",
    /// Of the session: the branch.
    Branch = "environment.branch",
    /// Of the session: the repository.
    Repository = "environment.repository",
    /// Of the session: the commit.
    Commit = "environment.commit",
    /// Of the session: the operating system.
    Os = "environment.os",
    /// Of the session: the shell.
    Shell = "environment.shell",
    /// Fields of the record that have no place of their own. The last of all.
    Extra = "extra",
}

impl Loss {
    /// Counts the fields of an event that are set and that the format has no place for.
    pub fn fields(&mut self, event: &Event, carried: &[Field]) {
        let notes = &event.annotations;
        let flags = notes.flags;
        let usage = notes.usage.unwrap_or_default();
        let any = |of: [Option<u64>; 2]| of.into_iter().flatten().any(|n| n > 0);
        let set = [
            (Field::Timestamp, !flags.undated),
            (Field::RunLinks, event.parent_run_id.is_some()),
            (Field::Place, event.place != quipu_model::Place::run()),
            (Field::Passes, !event.place.is_flat()),
            (Field::Fidelity, is_of_router(&event.body)),
            (Field::NativeId, notes.native_id.is_some()),
            (Field::ParentId, notes.parent_id.is_some()),
            (Field::Subagent, notes.subagent_id.is_some()),
            (Field::Model, notes.model.is_some()),
            (Field::Usage, usage != Usage::default()),
            (
                Field::UsageCache,
                any([usage.cache_read, usage.cache_write]),
            ),
            (Field::UsageCache1h, any([usage.cache_write_1h, None])),
            (Field::UsageReasoning, any([usage.reasoning, None])),
            (Field::Cost, notes.cost.is_some()),
            (Field::ModelCall, notes.model_call.is_some()),
            (Field::StopReason, notes.stop_reason.is_some()),
            (Field::Duration, notes.duration_ms.is_some()),
            (Field::Status, notes.status.is_some()),
            (Field::Child, notes.child.is_some()),
            (Field::Attachments, !notes.attachments.is_empty()),
            (Field::Extra, notes.extra.is_some()),
            (Field::Opaque, flags.opaque),
            (Field::Synthetic, flags.synthetic),
            (Field::Superseded, flags.superseded),
            (Field::Undated, flags.undated),
            (Field::Dangling, flags.dangling),
        ];
        // Most formats carry all fields of an event: one comparison of masks shows that.
        let bits = set
            .iter()
            .map(|(field, is_set)| u64::from(*is_set) << *field as u32);
        let left_out = bits.fold(0, |all, bit| all | bit) & !mask(carried);
        if left_out == 0 {
            return;
        }
        for (field, _) in set
            .iter()
            .filter(|(field, _)| left_out >> *field as u32 & 1 == 1)
        {
            self.dropped(field.as_str(), event.seq);
        }
    }

    /// Counts what is known of a session as a whole and that the format has no place for.
    pub fn header(&mut self, header: &Header, carried: &[Field]) {
        let origin = header.origin.as_ref();
        let at = &header.environment;
        for (field, is_set) in [
            (Field::Title, header.title.is_some()),
            (Field::ParentCall, header.parent_call.is_some()),
            (Field::ForkedFrom, header.forked_from.is_some()),
            (Field::Children, !header.children.is_empty()),
            (Field::Agent, origin.is_some()),
            (
                Field::AgentVersion,
                origin.is_some_and(|it| it.agent_version.is_some()),
            ),
            (
                Field::SessionId,
                origin.is_some_and(|it| it.session_id.is_some()),
            ),
            (Field::Cwd, at.cwd.is_some()),
            (Field::Branch, at.git_branch.is_some()),
            (Field::Repository, at.repository.is_some()),
            (Field::Commit, at.commit.is_some()),
            (Field::Os, at.os.is_some()),
            (Field::Shell, at.shell.is_some()),
        ] {
            if is_set && !carried.contains(&field) {
                self.dropped(field.as_str(), 0);
            }
        }
    }

    /// Adds what became of another session's events.
    pub fn add(&mut self, other: &Self) {
        self.events += other.events;
        self.carried += other.carried;
        for (mine, theirs) in [
            (&mut self.dropped, &other.dropped),
            (&mut self.wrapped, &other.wrapped),
            (&mut self.inferred, &other.inferred),
        ] {
            for (what, tally) in theirs {
                mine.entry(what.clone())
                    .and_modify(|sum| sum.count += tally.count)
                    .or_insert_with(|| tally.clone());
            }
        }
    }

    /// Whether nothing was left out.
    pub fn is_complete(&self) -> bool {
        self.dropped.is_empty()
    }

    /// Notes that something was left out.
    pub fn dropped(&mut self, what: impl Into<Cow<'static, str>>, seq: u64) {
        tally(&mut self.dropped, what.into(), seq);
    }

    /// Notes that something was put into a shape that is not its own.
    pub fn wrapped(&mut self, what: impl Into<Cow<'static, str>>, seq: u64) {
        tally(&mut self.wrapped, what.into(), seq);
    }

    /// Notes that something was filled in.
    pub fn inferred(&mut self, what: impl Into<Cow<'static, str>>, seq: u64) {
        tally(&mut self.inferred, what.into(), seq);
    }
}

const _: () = assert!(Field::ALL.len() <= 64, "a field has a bit of its own");

/// A bit for each of these.
fn mask(fields: &[Field]) -> u64 {
    fields.iter().fold(0, |all, field| all | 1 << *field as u32)
}

fn is_of_router(body: &Body) -> bool {
    let is_router = |fidelity| fidelity == Fidelity::Router;
    match body {
        Body::ToolCall(call) => is_router(call.fidelity),
        Body::ToolResult(result) => is_router(result.fidelity),
        Body::Chunk(chunk) => is_router(chunk.fidelity),
        body => body
            .blocks()
            .is_some_and(|blocks| blocks.iter().any(|block| is_router(block.fidelity))),
    }
}

fn tally(of: &mut BTreeMap<Cow<'static, str>, Tally>, what: Cow<'static, str>, seq: u64) {
    of.entry(what)
        .and_modify(|tally| {
            tally.count += 1;
            tally.first_seq = tally.first_seq.min(seq);
            if tally.examples.len() < EXAMPLES && !tally.examples.contains(&seq) {
                tally.examples.push(seq);
            }
        })
        .or_insert_with(|| Tally {
            count: 1,
            first_seq: seq,
            examples: vec![seq],
        });
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} events carried", self.carried, self.events)?;
        for (name, of) in [
            ("not carried", &self.dropped),
            ("in another shape", &self.wrapped),
            ("filled in", &self.inferred),
        ] {
            for (n, (what, tally)) in of.iter().enumerate() {
                let lead = if n == 0 { "\n" } else { "; " };
                let name = if n == 0 { name } else { "" };
                let gap = if n == 0 { ": " } else { "" };
                write!(f, "{lead}{name}{gap}{} {what}", tally.count)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_by_what_it_was_and_keeps_the_first_place() {
        let mut loss = Loss {
            events: 4,
            carried: 2,
            ..Loss::default()
        };
        loss.dropped("note:todo", 9);
        loss.dropped("note:todo", 3);
        loss.dropped("note:title", 4);
        loss.inferred("stop_reason", 1);
        assert!(!loss.is_complete());
        let first = &loss.dropped["note:todo"];
        assert_eq!((first.count, first.first_seq), (2, 3));
        assert_eq!(first.examples, [9, 3]);
        assert_eq!(
            loss.to_string(),
            "2 of 4 events carried\nnot carried: 1 note:title; 2 note:todo\nfilled in: 1 stop_reason"
        );
    }

    proptest::proptest! {
        #[test]
        fn a_field_is_lost_where_it_is_set_and_has_no_place((header, events) in crate::arbitrary::session()) {
            let (mut all, mut none) = (Loss::default(), Loss::default());
            all.header(&header, Field::ALL);
            none.header(&header, &[]);
            for event in &events {
                all.fields(event, Field::ALL);
                none.fields(event, &[]);
            }
            proptest::prop_assert!(all.is_complete());
            let priced = events.iter().filter(|event| event.annotations.cost.is_some()).count();
            let counted = none.dropped.get("cost").map_or(0, |tally| tally.count);
            proptest::prop_assert_eq!(counted, priced as u64);
            proptest::prop_assert_eq!(none.dropped.contains_key("session.title"), header.title.is_some());
        }
    }
}
