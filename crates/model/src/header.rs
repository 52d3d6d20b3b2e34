//! What is true of a transcript as a whole.

use jiff::Timestamp;

use crate::{Body, Content, Distinct, Event, Money, RunId, SessionId, ToolCallId, Usage};

/// Identity, origin, timing and links of a transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The run.
    pub run_id: RunId,
    /// The run that called this one.
    pub parent_run_id: Option<RunId>,
    /// The tool call in the parent that began it.
    pub parent_call: Option<ToolCallId>,
    /// The session this was branched or copied from, by its native id.
    pub forked_from: Option<SessionId>,
    /// The runs this one called, in the order it named them.
    pub children: Distinct<RunId>,
    /// What the run is called: the workflow's name, or a title.
    pub title: Option<String>,
    /// The agent or engine it comes from.
    pub origin: Option<Origin>,
    /// Where it ran.
    pub environment: Environment,
    /// The earliest time seen.
    pub started_at: Option<Timestamp>,
    /// The latest time seen.
    pub ended_at: Option<Timestamp>,
    /// What its events come to.
    pub totals: Totals,
}

/// The agent or engine a transcript comes from, and the log it was read from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Origin {
    /// E.g. `claude-code`.
    pub agent: String,
    /// Its version, where the log says.
    pub agent_version: Option<String>,
    /// Which reader made events of its log: the name of a dialect.
    pub adapter: Option<String>,
    /// The session in the agent's own terms.
    pub session_id: Option<SessionId>,
    /// The log it was read from.
    pub path: Option<String>,
}

/// Where a run took place.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Environment {
    /// The working directory.
    pub cwd: Option<String>,
    /// The branch that was checked out.
    pub git_branch: Option<String>,
    /// The repository's address.
    pub repository: Option<String>,
    /// The commit at the beginning.
    pub commit: Option<String>,
    /// The operating system.
    pub os: Option<String>,
    /// The shell.
    pub shell: Option<String>,
}

/// What the events of a transcript come to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Totals {
    /// All events, notes among them.
    pub events: u64,
    /// Messages that say something: of people, programs and the agent, reasoning not counted.
    pub messages: u64,
    /// Calls of tools.
    pub tool_calls: u64,
    /// Tokens.
    pub usage: Usage,
    /// What the calls to models cost, as far as that is known.
    pub cost: Option<Money>,
    /// The models that were called, in the order of their first calls.
    pub models: Vec<String>,
}

impl Header {
    /// A header that knows the run only.
    pub fn new(run_id: RunId) -> Self {
        Self {
            run_id,
            parent_run_id: None,
            parent_call: None,
            forked_from: None,
            children: Distinct::default(),
            title: None,
            origin: None,
            environment: Environment::default(),
            started_at: None,
            ended_at: None,
            totals: Totals::default(),
        }
    }

    /// The agent's name, where it is known.
    pub fn agent(&self) -> Option<&str> {
        self.origin.as_ref().map(|origin| origin.agent.as_str())
    }

    /// Takes in the next event.
    pub fn observe(&mut self, event: &Event) {
        let body = &event.body;
        let notes = &event.annotations;
        let totals = &mut self.totals;
        totals.events += 1;
        if let Some(usage) = &notes.usage {
            totals.usage.add(usage);
        }
        if let Some(cost) = notes.cost {
            totals.cost = Some(totals.cost.map_or(cost, |sum| sum.saturating_add(cost)));
        }
        if let Some(model) = &notes.model
            && !totals.models.contains(model)
        {
            totals.models.push(model.clone());
        }
        match body {
            Body::ToolCall(_) => totals.tool_calls += 1,
            Body::SystemMessage(_) => totals.messages += 1,
            body if says_something(body) => totals.messages += 1,
            _ => {}
        }
        let at = event.timestamp;
        if !notes.flags.undated {
            self.started_at = Some(self.started_at.map_or(at, |first| first.min(at)));
            self.ended_at = Some(self.ended_at.map_or(at, |last| last.max(at)));
        }
        if self.parent_run_id.is_none() {
            self.parent_run_id.clone_from(&event.parent_run_id);
        }
        let child = body.child_run_id().or(notes.child.as_ref());
        if let Some(child) = child {
            self.children.add(child);
        }
        if let Body::RunStarted(Some(step)) = body {
            self.title.get_or_insert_with(|| step.name.clone());
        }
    }
}

/// Whether a message has a text, or a block that may be one.
fn says_something(body: &Body) -> bool {
    let blocks = body.blocks().unwrap_or_default();
    blocks
        .iter()
        .any(|block| matches!(block.content, Content::Text(_) | Content::Unknown(_)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Annotations, Json, Place, Step, Unknown};

    /// Twice as many child runs take twice as long, not four times.
    #[test]
    fn a_run_may_call_very_many_runs() {
        let mut header = Header::new(RunId::new("r").unwrap());
        for n in 0..200_000 {
            header.observe(&Event {
                seq: n + 1,
                run_id: RunId::new("r").unwrap(),
                parent_run_id: None,
                timestamp: Timestamp::UNIX_EPOCH,
                place: Place::run(),
                body: Body::CallStarted {
                    child_run_id: RunId::new(&format!("c{}", n / 2)).unwrap(),
                    step: Step::new("call", "call_workflow"),
                },
                annotations: Annotations::default(),
            });
        }
        assert_eq!(header.children.len(), 100_000);
    }

    #[test]
    fn a_header_is_what_its_events_say() {
        let run = |id: &str| RunId::new(id).unwrap();
        let at = |second| Timestamp::from_second(second).unwrap();
        let call = |child| Body::CallStarted {
            child_run_id: run(child),
            step: Step::new("call", "call_workflow"),
        };
        let foreign = Body::Unknown(Unknown {
            event_type: "run.paused".to_owned(),
            child_run_id: None,
            payload: Json::null(),
        });
        let started = |name| Body::RunStarted(Some(Step::new(name, "workflow")));
        let mut header = Header::new(run("r"));
        for (second, parent, body) in [
            (5, None, started("ship")),
            (9, Some("p"), call("b")),
            (3, Some("q"), call("a")),
            (4, None, call("b")),
            (4, None, started("again")),
            (2, None, foreign),
        ] {
            header.observe(&Event {
                seq: header.totals.events + 1,
                run_id: run("r"),
                parent_run_id: parent.map(run),
                timestamp: at(second),
                place: Place::run(),
                body,
                annotations: Annotations::default(),
            });
        }
        let expected = Header {
            parent_run_id: Some(run("p")),
            children: [run("b"), run("a")].into_iter().collect(),
            title: Some("ship".to_owned()),
            started_at: Some(at(2)),
            ended_at: Some(at(9)),
            totals: Totals {
                events: 6,
                ..Totals::default()
            },
            ..Header::new(run("r"))
        };
        assert_eq!(header, expected);
    }
}
