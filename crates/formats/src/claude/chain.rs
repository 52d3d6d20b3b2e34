//! Lines, and how each names the one before it.

use std::collections::HashMap;
use std::io::{self, Write};

use quipu_model::{Header, Timestamp, Usage};

use super::{ClaudeOptions, VERSION, cwd, session_id};
use crate::handover::{self, Lines};

/// Which line of thought a line belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane<'a> {
    /// What is sent when the session goes on.
    Live,
    /// Beside it: kept, and sent to no one.
    Aside,
    /// What was taken back: a branch that ends.
    Void,
    /// What a sub-agent did.
    Sub(&'a str),
}

/// Where in the session a line comes from.
#[derive(Debug, Clone, Copy)]
pub(super) struct At {
    pub(super) seq: u64,
    pub(super) time: Timestamp,
}

/// The lines of a session.
pub(super) struct Chain<'w> {
    pub(super) lines: Lines<'w>,
    pub(super) run: String,
    id: String,
    cwd: String,
    branch: String,
    live: Option<String>,
    void: Option<String>,
    subs: HashMap<String, String>,
    /// Whether the last line of the file is one that is sent. Claude Code goes on from the last line.
    pub(super) ends_live: bool,
    /// How many lines there are: each id follows from its place.
    count: u64,
}

impl<'w> Chain<'w> {
    pub(super) fn new(header: &Header, options: &ClaudeOptions, out: Box<dyn Write + 'w>) -> Self {
        Self {
            lines: Lines::new(out),
            run: header.run_id.to_string(),
            id: session_id(header, options),
            cwd: cwd(header, options).to_owned(),
            branch: header.environment.git_branch.clone().unwrap_or_default(),
            live: None,
            void: None,
            subs: HashMap::new(),
            ends_live: true,
            count: 0,
        }
    }

    /// A line without an envelope that names the session.
    pub(super) fn title(&mut self, title: &str) -> io::Result<()> {
        self.lines
            .raw(r#"{"type":"custom-title","customTitle":"#)
            .string(title)
            .raw(r#","sessionId":""#)
            .raw(&self.id)
            .raw("\"}")
            .end()
    }

    /// Begins a line, up to where its own fields come.
    pub(super) fn begin(&mut self, kind: &str, lane: Lane<'_>) -> String {
        self.count += 1;
        let uuid = handover::uuid(&["line", &self.id, &self.run, &self.count.to_string()]);
        let parent = match lane {
            Lane::Live | Lane::Aside => self.live.as_deref(),
            Lane::Void => self.void.as_deref().or(self.live.as_deref()),
            Lane::Sub(agent) => self.subs.get(agent).map(String::as_str),
        };
        self.lines.raw(r#"{"parentUuid":"#);
        match parent {
            Some(parent) => self.lines.raw("\"").raw(parent).raw("\""),
            None => self.lines.raw("null"),
        };
        let side = matches!(lane, Lane::Sub(_));
        self.lines
            .raw(r#","isSidechain":"#)
            .raw(if side { "true" } else { "false" });
        match lane {
            Lane::Live => {
                self.live = Some(uuid.clone());
                self.void = None;
                self.ends_live = true;
            }
            Lane::Aside => self.ends_live = false,
            Lane::Void => {
                self.void = Some(uuid.clone());
                self.ends_live = false;
            }
            Lane::Sub(agent) => {
                self.lines.field("agentId", Some(agent));
                self.subs.insert(agent.to_owned(), uuid.clone());
            }
        }
        self.lines.raw(r#","type":""#).raw(kind).raw("\"");
        uuid
    }

    /// Ends a line with what every line has.
    pub(super) fn end(&mut self, uuid: &str, at: At) -> io::Result<()> {
        self.lines
            .raw(r#","uuid":""#)
            .raw(uuid)
            .raw(r#"","timestamp":"#)
            .time(at.time)
            .raw(r#","userType":"external","entrypoint":"cli","cwd":"#)
            .string(&self.cwd)
            .raw(r#","sessionId":""#)
            .raw(&self.id)
            .raw(r#"","version":""#)
            .raw(VERSION)
            .raw(r#"","gitBranch":"#)
            .string(&self.branch)
            .raw("}")
            .end()
    }

    /// A line of the program's, which is shown and not sent.
    pub(super) fn said(&mut self, text: &str, header: Option<&Header>, at: At) -> io::Result<()> {
        let uuid = self.begin("system", Lane::Live);
        self.lines
            .raw(r#","subtype":"informational","content":"#)
            .string(text)
            .raw(r#","level":"warning","isMeta":false"#);
        if let Some(header) = header {
            self.lines
                .raw(r#","convertedFrom":"#)
                .converted_from(header);
        }
        self.end(&uuid, at)
    }

    /// A summary that takes the place of all before it.
    pub(super) fn summary(&mut self, text: &str, at: At) -> io::Result<()> {
        let before = self.live.take();
        let uuid = self.begin("system", Lane::Live);
        self.lines
            .field("logicalParentUuid", before.as_deref())
            .raw(r#","subtype":"compact_boundary","content":"Conversation compacted","level":"info""#)
            .raw(r#","isMeta":false,"compactMetadata":{"trigger":"auto","preTokens":0}"#);
        self.end(&uuid, at)?;
        let uuid = self.begin("user", Lane::Live);
        self.lines
            .raw(r#","message":{"role":"user","content":"#)
            .string(text)
            .raw(r#"},"isCompactSummary":true,"isVisibleInTranscriptOnly":true"#);
        self.end(&uuid, at)
    }

    /// Token counts, as they are written.
    pub(super) fn usage(&mut self, usage: &Usage) {
        let Usage {
            input,
            cache_read,
            cache_write,
            cache_write_1h,
            output,
            reasoning,
        } = *usage;
        // These two are always there.
        self.lines
            .raw(r#","usage":{"input_tokens":"#)
            .number(input.unwrap_or(0));
        for (key, count) in [
            ("cache_creation_input_tokens", cache_write),
            ("cache_read_input_tokens", cache_read),
        ] {
            if let Some(count) = count {
                self.lines.raw(",\"").raw(key).raw("\":").number(count);
            }
        }
        self.lines
            .raw(r#","output_tokens":"#)
            .number(output.unwrap_or(0));
        if let Some(hour) = cache_write_1h {
            let rest = cache_write.unwrap_or(0).saturating_sub(hour);
            self.lines
                .raw(r#","cache_creation":{"ephemeral_1h_input_tokens":"#)
                .number(hour)
                .raw(r#","ephemeral_5m_input_tokens":"#)
                .number(rest)
                .raw("}");
        }
        if let Some(reasoning) = reasoning {
            self.lines
                .raw(r#","output_tokens_details":{"thinking_tokens":"#)
                .number(reasoning)
                .raw("}");
        }
        self.lines.raw("}");
    }
}
