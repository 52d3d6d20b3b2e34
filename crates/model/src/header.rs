//! What is true of a transcript as a whole.

use jiff::Timestamp;

use crate::{AnyBody, Event, RunId};

/// Identity, origin, timing and links of a transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The run.
    pub run_id: RunId,
    /// The run that called this one.
    pub parent_run_id: Option<RunId>,
    /// The runs this one called, in the order it named them.
    pub children: Vec<RunId>,
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
    /// How many events it has.
    pub events: u64,
}

/// The agent or engine a transcript comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// E.g. `claude-code`.
    pub agent: String,
    /// Its version, where the log says.
    pub agent_version: Option<String>,
}

/// Where a run took place.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Environment {
    /// The working directory.
    pub cwd: Option<String>,
    /// The branch that was checked out.
    pub git_branch: Option<String>,
    /// The operating system.
    pub os: Option<String>,
}

impl Header {
    /// A header that knows the run only.
    pub fn new(run_id: RunId) -> Self {
        Self {
            run_id,
            parent_run_id: None,
            children: Vec::new(),
            title: None,
            origin: None,
            environment: Environment::default(),
            started_at: None,
            ended_at: None,
            events: 0,
        }
    }

    /// Takes in the next event of the run.
    pub fn observe(&mut self, event: &Event<AnyBody>) {
        self.events += 1;
        let at = event.timestamp;
        self.started_at = Some(self.started_at.map_or(at, |first| first.min(at)));
        self.ended_at = Some(self.ended_at.map_or(at, |last| last.max(at)));
        if self.parent_run_id.is_none() {
            self.parent_run_id.clone_from(&event.parent_run_id);
        }
        let AnyBody::Known(body) = &event.body else {
            return;
        };
        if let Some(child) = body.child_run_id()
            && !self.children.contains(child)
        {
            self.children.push(child.clone());
        }
        if let crate::Body::RunStarted(Some(step)) = body {
            self.title.get_or_insert_with(|| step.name.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Annotations, Body, Foreign, Json, Place, Shape, Step};

    #[test]
    fn a_header_is_what_its_events_say() {
        let run = |id: &str| RunId::new(id).unwrap();
        let at = |second| Timestamp::from_second(second).unwrap();
        let call = |child| Body::CallStarted {
            child_run_id: run(child),
            step: Step::new("call", "call_workflow"),
        };
        let foreign = AnyBody::Foreign(Foreign {
            event_type: "run.paused".to_owned(),
            child_run_id: None,
            shape: Shape::Null,
            payload: Json::null(),
        });
        let started = |name| Body::RunStarted(Some(Step::new(name, "workflow")));
        let mut header = Header::new(run("r"));
        for (second, parent, body) in [
            (5, None, AnyBody::Known(started("ship"))),
            (9, Some("p"), AnyBody::Known(call("b"))),
            (3, Some("q"), AnyBody::Known(call("a"))),
            (4, None, AnyBody::Known(call("b"))),
            (4, None, AnyBody::Known(started("again"))),
            (2, None, foreign),
        ] {
            header.observe(&Event {
                seq: header.events + 1,
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
            children: vec![run("b"), run("a")],
            title: Some("ship".to_owned()),
            started_at: Some(at(2)),
            ended_at: Some(at(9)),
            events: 6,
            ..Header::new(run("r"))
        };
        assert_eq!(header, expected);
    }
}
