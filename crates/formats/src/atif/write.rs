//! Writes a trajectory.

use std::collections::HashMap;
use std::io::{self, Write};

use quipu_model::{Attachment, Body, Event, Header, RunId, SessionId, SubagentId};

use super::attach::Gallery;
use super::json::{Object, comma};
use super::step::{Source, Step};
use super::track::Track;
use super::{AtifOptions, CARRIES, Version};
use crate::loss::Loss;
use crate::normalized;
use crate::plain;
use crate::projection::{Beside, Projection};

/// As much is written at once.
const CHUNK: usize = 64 << 10;

/// How deep trajectories of sub-agents stand inside each other. Those of deeper ones stand beside.
const DEEPEST: usize = 4;

/// See [`super::writer`].
pub(super) struct Writer<'w> {
    out: Box<dyn Write + 'w>,
    pub(super) gallery: Gallery<'w>,
    pub(super) loss: Loss,
    version: Version,
    run_id: String,
    session_id: SessionId,
    agent: String,
    agent_version: String,
    /// The session's own, and one for each sub-agent.
    pub(super) tracks: Vec<Track>,
    subagents: Vec<SubagentId>,
    by_name: HashMap<SubagentId, usize>,
    /// What is left to write at the end.
    rest: Vec<u8>,
}

impl<'w> Writer<'w> {
    pub(super) fn new(
        header: &Header,
        options: &AtifOptions,
        out: Box<dyn Write + 'w>,
        beside: Box<dyn Beside + 'w>,
    ) -> Self {
        let mut loss = Loss::default();
        loss.header(header, CARRIES);
        let origin = header.origin.as_ref();
        if origin.is_none() {
            loss.inferred("agent.name", 0);
        }
        let version = origin.and_then(|origin| origin.agent_version.clone());
        if version.is_none() {
            loss.inferred("agent.version", 0);
        }
        let unknown = || "unknown".to_owned();
        let session_id = origin.and_then(|origin| origin.session_id.clone());
        let mut writer = Self {
            out,
            gallery: Gallery::new(beside, options.version),
            loss,
            version: options.version,
            run_id: header.run_id.to_string(),
            session_id: session_id.unwrap_or_else(|| header.run_id.as_str().into()),
            agent: header.agent().map_or_else(unknown, str::to_owned),
            agent_version: version.unwrap_or_else(unknown),
            tracks: vec![Track::default()],
            subagents: vec![SubagentId::default()],
            by_name: HashMap::new(),
            rest: Vec::new(),
        };
        // What is known of the session stands before its steps, so that these can be written as they come.
        let mut head = Vec::new();
        let models = &header.totals.models;
        let about = about(header, options);
        writer.head(0, models.first().map(String::as_str), &about, &mut head);
        writer.tracks[0].done = head;
        writer
    }

    /// A trajectory up to its steps.
    fn head(&self, track: usize, model: Option<&str>, about: &[u8], out: &mut Vec<u8>) {
        let mut object = Object::begin(out);
        object.text("schema_version", self.version.as_str());
        object.text("session_id", &self.session_id);
        object.text("trajectory_id", &self.trajectory_id(track));
        let mut agent = Object::begin(object.key("agent"));
        agent.text("name", &self.agent);
        agent.text("version", &self.agent_version);
        agent.maybe("model_name", model);
        agent.end();
        let mut extra = Object::begin(object.key("extra"));
        extra.around("quipu", *b"{}", about);
        extra.end();
        object.key("steps").push(b'[');
    }

    fn trajectory_id(&self, track: usize) -> String {
        match track {
            0 => self.run_id.clone(),
            // What it is called where it was read, unless that could be another's.
            n if !self.subagents[n].is_empty() && !self.subagents[n].starts_with(&self.run_id) => {
                self.subagents[n].to_string()
            }
            n => format!("{}.{n}", self.run_id),
        }
    }

    /// The trajectory that an event belongs to.
    fn track(&mut self, event: &Event) -> usize {
        let Some(name) = &event.annotations.subagent_id else {
            return 0;
        };
        if let Some(&at) = self.by_name.get(name) {
            return at;
        }
        let at = self.tracks.len();
        self.tracks.push(Track::default());
        self.subagents.push(name.clone());
        self.by_name.insert(name.clone(), at);
        at
    }

    /// Writes the steps of a trajectory that are done.
    fn release(&mut self, track: usize, all: bool) -> io::Result<()> {
        while let Some(step) = self.tracks[track].pop(all) {
            let refs: Vec<Option<String>> = step
                .results
                .iter()
                .map(|result| self.claim(track, &result.names))
                .collect();
            self.settle(track, &step, &refs)?;
        }
        Ok(())
    }

    fn settle(&mut self, track: usize, step: &Step, refs: &[Option<String>]) -> io::Result<()> {
        if track == 0 && self.tracks[0].steps == 0 {
            // The head stands where the steps will, because it is written with them.
            let head = std::mem::take(&mut self.tracks[0].done);
            self.out.write_all(&head)?;
        }
        self.tracks[track].settle(step, refs);
        if track == 0 && self.tracks[0].done.len() >= CHUNK {
            self.out.write_all(&self.tracks[0].done)?;
            self.tracks[0].done.clear();
        }
        Ok(())
    }

    /// The trajectory of the sub-agent that goes by one of these names, if nothing refers to it yet.
    fn claim(&mut self, from: usize, names: &[String]) -> Option<String> {
        let child = names
            .iter()
            .find_map(|name| self.by_name.get(name.as_str()).copied())?;
        if self.tracks[child].parent.is_some() {
            return None;
        }
        let mut chain = vec![from];
        while let Some(parent) = chain.last().and_then(|at| self.tracks[*at].parent) {
            chain.push(parent);
        }
        let below = self.tracks[child].height + 1;
        if chain.contains(&child) || chain.len() - 1 + below > DEEPEST {
            return None;
        }
        for (above, at) in chain.iter().enumerate() {
            let height = &mut self.tracks[*at].height;
            *height = (*height).max(below + above);
        }
        self.tracks[child].parent = Some(from);
        Some(self.trajectory_id(child))
    }

    /// The steps that every trajectory must have.
    fn fill(&mut self, track: usize) -> io::Result<()> {
        if self.tracks[track].steps > 0 {
            return Ok(());
        }
        let about = if self.tracks[track].waiting.is_empty() {
            "This session has no events."
        } else {
            "This session has notes only."
        };
        self.loss.inferred("steps", 0);
        let mut step = Step::empty(Source::System);
        step.filler = true;
        step.parts.text(about);
        self.tracks[track].push(step);
        self.release(track, true)
    }

    /// A trajectory behind its steps.
    fn tail(&mut self, track: usize, children: &[Vec<usize>]) -> io::Result<()> {
        let of = &self.tracks[track];
        self.rest.extend_from_slice(b"],\"final_metrics\":");
        of.metrics.write_final(of.steps, &mut self.rest);
        if let Some(below) = children.get(track).filter(|below| !below.is_empty()) {
            self.rest.extend_from_slice(b",\"subagent_trajectories\":[");
            for (n, &child) in below.iter().enumerate() {
                if n > 0 {
                    self.rest.push(b',');
                }
                self.whole(child, children)?;
            }
            self.rest.push(b']');
        }
        self.rest.push(b'}');
        Ok(())
    }

    /// The trajectory of a sub-agent. They are no deeper inside each other than [`DEEPEST`].
    fn whole(&mut self, track: usize, children: &[Vec<usize>]) -> io::Result<()> {
        let mut about = Vec::new();
        Object::within(&mut about).text("subagent_id", &self.subagents[track]);
        let mut rest = std::mem::take(&mut self.rest);
        let of = &mut self.tracks[track];
        let (done, model) = (std::mem::take(&mut of.done), of.model.take());
        self.head(track, model.as_deref(), &about, &mut rest);
        rest.extend_from_slice(&done);
        self.rest = rest;
        if self.rest.len() >= CHUNK {
            self.out.write_all(&self.rest)?;
            self.rest.clear();
        }
        self.tail(track, children)
    }
}

/// What is known of a session as a whole and has no field.
fn about(header: &Header, options: &AtifOptions) -> Vec<u8> {
    let mut out = Vec::new();
    let mut object = Object::within(&mut out);
    object.text("run_id", header.run_id.as_str());
    let parent = header.parent_run_id.as_ref();
    object.maybe("parent_run_id", parent.map(RunId::as_str));
    object.maybe("parent_call", header.parent_call.as_deref());
    object.maybe("forked_from", header.forked_from.as_deref());
    if !header.children.is_empty() {
        let mut list = Vec::new();
        for child in &header.children {
            comma(&mut list);
            super::json::string(child.as_str(), &mut list);
        }
        object.around("children", *b"[]", &list);
    }
    object.maybe("title", header.title.as_deref());
    if let Some(origin) = &header.origin {
        object.maybe("adapter", origin.adapter.as_deref());
        object.maybe("path", origin.path.as_deref());
    }
    let at = &header.environment;
    let mut inside = Vec::new();
    let mut environment = Object::within(&mut inside);
    for (name, value) in [
        ("cwd", &at.cwd),
        ("branch", &at.git_branch),
        ("repository", &at.repository),
        ("commit", &at.commit),
        ("os", &at.os),
        ("shell", &at.shell),
    ] {
        environment.maybe(name, value.as_deref());
    }
    if !inside.is_empty() {
        object.around("environment", *b"{}", &inside);
    }
    if let Some(shared) = &options.shared {
        let (submitter, privacy) =
            normalized::shared(shared.submitter.as_ref(), shared.privacy.as_ref());
        for (key, json) in [("submitter", submitter), ("privacy", privacy)] {
            if let Some(json) = json {
                object.raw(key, &json);
            }
        }
    }
    out
}

impl Projection for Writer<'_> {
    fn blob(&mut self, attachment: &Attachment, bytes: &[u8]) -> io::Result<()> {
        self.gallery.put(attachment, bytes)
    }

    fn event(&mut self, event: &Event) -> io::Result<()> {
        self.loss.events += 1;
        self.loss.carried += 1;
        plain::count(event, &mut self.loss);
        let event = &*plain::plain(event);
        self.loss.fields(event, CARRIES);
        let track = self.track(event);
        self.settle_early(track, Some(event));
        match &event.body {
            Body::UserMessage(blocks) => {
                self.said(track, event, Source::User, blocks);
            }
            Body::SystemMessage(blocks) => self.said(track, event, Source::System, blocks),
            Body::AssistantMessage(blocks) => {
                self.said(track, event, Source::Agent, blocks);
            }
            Body::ToolCall(call) => self.call(track, event, &call.into()),
            Body::ToolResult(result) => {
                self.result(track, event, &result.into());
            }
            Body::Note(note) => self.note(track, event, note),
            body => self.lifecycle(track, event, body),
        }
        self.release(track, false)
    }

    fn finish(mut self: Box<Self>) -> io::Result<Loss> {
        for track in 0..self.tracks.len() {
            self.settle_early(track, None);
            self.release(track, true)?;
            self.fill(track)?;
        }
        let mut children = vec![Vec::new(); self.tracks.len()];
        for track in 1..self.tracks.len() {
            let parent = self.tracks[track].parent;
            if parent.is_none() {
                self.loss.wrapped("sub-agent without a call", 0);
            }
            children[parent.unwrap_or(0)].push(track);
        }
        self.rest = std::mem::take(&mut self.tracks[0].done);
        self.tail(0, &children)?;
        self.rest.push(b'\n');
        self.out.write_all(&self.rest)?;
        self.out.flush()?;
        Ok(self.loss)
    }
}
