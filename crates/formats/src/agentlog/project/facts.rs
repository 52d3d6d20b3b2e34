//! What is known of a session as a whole, and the root of its trace.

use quipu_model::json::Tape;
use quipu_model::{Header, RunId, SessionId, Timestamp, ToolCallId};
use sha2::{Digest as _, Sha256};

use super::text::Object;
use crate::agentlog::{ContentId, LIMITS};

/// What is known of a session before its events are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// The run. Makes the root of the trace one of its own.
    pub run_id: RunId,
    /// When it began, where that is known apart from its events.
    pub started_at: Option<Timestamp>,
    /// The agent it was imported from; `None` for a run that was recorded here.
    pub agent: Option<String>,
    /// The agent's version.
    pub agent_version: Option<String>,
    /// What it is called.
    pub title: Option<String>,
    /// The directory it went on in.
    pub cwd: Option<String>,
    /// The branch that was checked out.
    pub branch: Option<String>,
    /// The session in the agent's own terms.
    pub session_id: Option<SessionId>,
    /// The log it was read from.
    pub path: Option<String>,
    /// The repository, and the commit that was checked out.
    pub repository: Option<String>,
    /// The commit that was checked out.
    pub commit: Option<String>,
    /// The operating system it went on under.
    pub os: Option<String>,
    /// The shell it used.
    pub shell: Option<String>,
    /// What it is a copy or a branch of.
    pub forked_from: Option<SessionId>,
    /// The call of the run before it that began it.
    pub parent_call: Option<ToolCallId>,
    /// The root of the trace it was read from, where it was one.
    pub metadata: Option<String>,
}

impl Facts {
    /// Of a run that was recorded: the events say the rest.
    pub fn recorded(run_id: RunId) -> Self {
        Self {
            run_id,
            started_at: None,
            agent: None,
            agent_version: None,
            title: None,
            cwd: None,
            branch: None,
            session_id: None,
            path: None,
            repository: None,
            commit: None,
            os: None,
            shell: None,
            forked_from: None,
            parent_call: None,
            metadata: None,
        }
    }

    /// Of a session, by what is known of it.
    pub fn of(header: &Header) -> Self {
        let origin = header.origin.as_ref();
        Self {
            run_id: header.run_id.clone(),
            started_at: header.started_at,
            agent: origin.map(|origin| origin.agent.clone()),
            agent_version: origin.and_then(|origin| origin.agent_version.clone()),
            title: header.title.clone(),
            cwd: header.environment.cwd.clone(),
            branch: header.environment.git_branch.clone(),
            session_id: origin.and_then(|origin| origin.session_id.clone()),
            path: origin.and_then(|origin| origin.path.clone()),
            repository: header.environment.repository.clone(),
            commit: header.environment.commit.clone(),
            os: header.environment.os.clone(),
            shell: header.environment.shell.clone(),
            forked_from: header.forked_from.clone(),
            parent_call: header.parent_call.clone(),
            metadata: None,
        }
    }

    /// The 128 bits that tell this trace from others, in hexadecimal: the same for the same run.
    pub fn trace_id(&self) -> String {
        let hash = Sha256::digest(format!("quipu run {}", self.run_id).as_bytes());
        let mut digits = ContentId(hash.into()).hex();
        digits.truncate(32);
        digits
    }

    /// The payload of the root.
    pub(super) fn root(&self, parent: Option<&RunId>) -> String {
        let sdk = Object::new()
            .text("name", "quipu")
            .text("version", env!("CARGO_PKG_VERSION"))
            .end();
        let tags = Object::new()
            .text("run", self.run_id.as_str())
            .text_if("parent_run", parent.map(RunId::as_str))
            .text_if("agent", self.agent.as_deref())
            .text_if("agent_version", self.agent_version.as_deref())
            .text_if("project", self.cwd.as_deref())
            .text_if("branch", self.branch.as_deref())
            .text_if("repository", self.repository.as_deref())
            .text_if("commit", self.commit.as_deref())
            .text_if("forked_from", self.forked_from.as_deref())
            .text_if("parent_call", self.parent_call.as_deref())
            .text_if("title", self.title.as_deref())
            .end();
        let mut root = Object::new().raw("sdk", &sdk).raw("tags", &tags);
        let mut tape = Tape::new();
        let before = self.metadata.as_deref();
        let before = before.and_then(|json| tape.read(json, LIMITS.max_depth).ok());
        let runtime = Object::new()
            .text_if("os", self.os.as_deref())
            .text_if("shell", self.shell.as_deref());
        let told = before.and_then(|root| root.get("runtime"));
        match told {
            Some(told) => root = root.raw("runtime", told.raw().get()),
            None if !runtime.is_empty() => root = root.raw("runtime", &runtime.end()),
            None => {}
        }
        if let Some(baseline) = before.and_then(|root| root.get("baseline_of")) {
            root = root.raw("baseline_of", baseline.raw().get());
        }
        let Some(agent) = &self.agent else {
            return root.end();
        };
        let mut from = Object::new()
            .text("agent", agent)
            .text_if("session_id", self.session_id.as_deref())
            .text_if("path", self.path.as_deref());
        if let Some(before) = before {
            from = from.raw("metadata", before.raw().get());
        }
        root.raw("imported_from", &from.end()).end()
    }
}
