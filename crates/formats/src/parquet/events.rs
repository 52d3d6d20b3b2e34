//! The table of events: a row for each.

use std::io::{self, Write};

use quipu_model::{
    Block, Body, Content, Event, Fidelity, Header, Json, Note, Notes, Step, StepEnd, Timestamp,
};

use super::column::{Kind, Required, Spec};
use super::table::Table;
use super::values;
use crate::loss::Loss;

macro_rules! columns {
    ($($name:ident = $word:literal, $kind:ident, $required:ident;)+) => {
        /// The columns, in order.
        #[derive(Debug, Clone, Copy)]
        enum Col { $($name,)+ }

        /// What they are.
        pub(super) const COLUMNS: &[Spec] = &[$(($word, Kind::$kind, Required::$required),)+];
    };
}
pub(super) use columns;

columns! {
    RunId = "run_id", Word, Yes;
    Seq = "seq", Count, Yes;
    Time = "timestamp", Time, No;
    Type = "type", Word, Yes;
    Role = "role", Word, No;
    Text = "text", Text, No;
    Thinking = "thinking", Text, No;
    Blocks = "blocks", Text, No;
    ToolName = "tool_name", Word, No;
    CallId = "call_id", Text, No;
    ToolInput = "tool_input", Text, No;
    ToolOutput = "tool_output", Text, No;
    OutputIsJson = "tool_output_is_json", Flag, No;
    Error = "error", Text, No;
    Status = "status", Word, No;
    Duration = "duration_ms", Count, No;
    StepName = "step_name", Word, No;
    StepKind = "step_kind", Word, No;
    Result = "result", Text, No;
    NoteKind = "note_kind", Word, No;
    Raw = "raw", Text, No;
    Model = "model", Word, No;
    ModelCall = "model_call", Word, No;
    StopReason = "stop_reason", Word, No;
    Input = "input_tokens", Count, No;
    CacheRead = "cache_read_tokens", Count, No;
    CacheWrite = "cache_write_tokens", Count, No;
    CacheWrite1h = "cache_write_1h_tokens", Count, No;
    Output = "output_tokens", Count, No;
    Reasoning = "reasoning_tokens", Count, No;
    Cost = "cost_usd", Money, No;
    Subagent = "subagent_id", Word, No;
    Path = "path", Word, Yes;
    Iteration = "iteration", Count, Yes;
    Fidelity = "fidelity", Word, No;
    NativeId = "native_id", Text, No;
    ParentId = "parent_id", Text, No;
    ParentRun = "parent_run_id", Word, No;
    Child = "child_run_id", Word, No;
    Opaque = "is_opaque", Flag, Yes;
    Synthetic = "is_synthetic", Flag, Yes;
    Superseded = "is_superseded", Flag, Yes;
    Undated = "is_undated", Flag, Yes;
    Dangling = "is_dangling", Flag, Yes;
    Attachments = "attachments", Text, No;
    Extra = "extra", Text, No;
    SourceFile = "source_file", Word, No;
    SourceLine = "source_line", Count, No;
    SourceOffset = "source_offset", Count, No;
    Agent = "agent", Word, No;
    AgentVersion = "agent_version", Word, No;
    Adapter = "adapter", Word, No;
    SessionId = "session_id", Word, No;
    LogPath = "log_path", Word, No;
    Title = "title", Word, No;
    ParentCall = "parent_call", Word, No;
    ForkedFrom = "forked_from", Word, No;
    Cwd = "cwd", Word, No;
    Branch = "git_branch", Word, No;
    Repository = "repository", Word, No;
    Commit = "commit", Word, No;
    Os = "os", Word, No;
    Shell = "shell", Word, No;
}

/// Adds a row for an event, which happened at a time, if anything tells of one.
pub(super) fn write<W: Write + Send>(
    table: &mut Table<W>,
    header: &Header,
    (event, word): (&Event, &str),
    at: Option<Timestamp>,
    loss: &mut Loss,
) -> io::Result<()> {
    let mut row = Row {
        table,
        seq: event.seq,
        loss,
    };
    row.event(event, at, header);
    row.text(Col::Type, word);
    row.body(&event.body);
    row.child(event);
    row.notes(&event.annotations);
    row.session(header);
    table.end_row()
}

/// A row that fills.
struct Row<'a, W: Write + Send> {
    table: &'a mut Table<W>,
    seq: u64,
    loss: &'a mut Loss,
}

impl<W: Write + Send> Row<'_, W> {
    fn text(&mut self, column: Col, text: &str) {
        self.table.text(column as usize, text);
    }

    fn text_if(&mut self, column: Col, text: Option<&str>) {
        self.table.text_if(column as usize, text);
    }

    fn json_if(&mut self, column: Col, json: Option<&Json>) {
        self.text_if(column, json.map(Json::get));
    }

    fn event(&mut self, event: &Event, at: Option<Timestamp>, header: &Header) {
        self.text(Col::RunId, event.run_id.as_str());
        self.table.count(Col::Seq as usize, event.seq);
        if let Some(at) = at {
            values::micros(at, event.seq, self.loss);
            self.table.time(Col::Time as usize, at);
        }
        self.text(Col::Path, &event.place.path);
        self.table
            .count(Col::Iteration as usize, event.place.iteration());
        let parent = event.parent_run_id.as_ref();
        let parent = parent.or(header.parent_run_id.as_ref());
        self.text_if(Col::ParentRun, parent.map(quipu_model::RunId::as_str));
    }

    fn body(&mut self, body: &Body) {
        match body {
            Body::SystemMessage(blocks) => self.message("system", blocks),
            Body::Note(note) => self.note(note),
            // They are notes here.
            Body::ModelCall(_)
            | Body::Chunk(_)
            | Body::Harness(_)
            | Body::Blob(_)
            | Body::Error(_)
            | Body::Unknown(_) => {}
            Body::UserMessage(blocks) => self.message("user", blocks),
            Body::AssistantMessage(blocks) => self.message("assistant", blocks),
            Body::ToolCall(call) => {
                self.tool(
                    &call.name,
                    &call.call_id,
                    call.input.as_ref(),
                    call.fidelity,
                );
            }
            Body::ToolResult(result) => {
                let input = result.input.as_ref();
                self.tool(&result.name, &result.call_id, input, result.fidelity);
                self.text_if(Col::Error, result.error.as_deref());
                if let Some(output) = &result.output {
                    let is_json = values::is_json(output);
                    self.table.flag(Col::OutputIsJson as usize, is_json);
                    let column = Col::ToolOutput as usize;
                    let mut whole = true;
                    self.table
                        .text_with(column, |to| whole = values::plain(output, to));
                    if !whole {
                        self.loss.wrapped(values::HALF, self.seq);
                    }
                }
            }
            Body::RunStarted(step) => self.step(step.as_ref(), None),
            Body::RunCompleted(end) => {
                self.step(end.as_ref().map(|end| &end.step), end.as_ref());
            }
            Body::StepStarted(step) | Body::CallStarted { step, .. } => {
                self.step(Some(step), None);
            }
            Body::StepCompleted(end) | Body::CallCompleted { end, .. } => {
                self.step(Some(&end.step), Some(end));
            }
        }
    }

    /// A message: its texts in one column, its thoughts in another, and where that does not say all of
    /// it, its blocks in a third.
    fn message(&mut self, role: &str, blocks: &[Block]) {
        self.text(Col::Role, role);
        let text = |block: &Block| matches!(block.content, Content::Text(_));
        if blocks.iter().any(text) {
            self.table.text_with(Col::Text as usize, |to| {
                values::join(blocks.iter().filter_map(values::text_of), to);
            });
        }
        let thought = |block: &Block| matches!(block.content, Content::Thinking(_));
        if blocks.iter().any(thought) {
            self.table.text_with(Col::Thinking as usize, |to| {
                values::join(blocks.iter().filter_map(values::thought_of), to);
            });
        }
        let is_all = matches!(
            blocks,
            [Block {
                content: Content::Text(_) | Content::Thinking(_),
                ..
            }]
        );
        if !is_all {
            self.table
                .text_with(Col::Blocks as usize, |to| values::blocks(blocks, to));
        }
        let router = |block: &Block| block.fidelity == Fidelity::Router;
        if blocks.iter().any(router) {
            self.text(Col::Fidelity, Fidelity::Router.as_str());
        }
    }

    /// The run that an event begins or ends.
    fn child(&mut self, event: &Event) {
        let told = event.body.child_run_id();
        let noted = event.annotations.child.as_ref();
        if let (Some(told), Some(noted)) = (told, noted)
            && told != noted
        {
            self.loss.dropped("child, where there are two", self.seq);
        }
        let child = told.or(noted).map(quipu_model::RunId::as_str);
        self.text_if(Col::Child, child);
    }

    fn tool(&mut self, name: &str, id: &str, input: Option<&Json>, fidelity: Fidelity) {
        self.text(Col::ToolName, name);
        self.text(Col::CallId, id);
        self.json_if(Col::ToolInput, input);
        self.text(Col::Fidelity, fidelity.as_str());
    }

    fn step(&mut self, step: Option<&Step>, end: Option<&StepEnd>) {
        if let Some(step) = step {
            self.text(Col::StepName, &step.name);
            self.text(Col::StepKind, &step.kind);
        }
        if let Some(end) = end {
            self.text_if(Col::Error, end.error.as_deref());
            self.json_if(Col::Result, end.result.as_ref());
        }
    }

    fn note(&mut self, note: &Note) {
        self.text(Col::NoteKind, note.kind.as_str());
        self.text_if(Col::Text, note.text.as_deref());
        self.json_if(Col::Raw, note.raw.as_ref());
    }

    fn notes(&mut self, notes: &Notes) {
        self.text_if(Col::NativeId, notes.native_id.as_deref());
        self.text_if(Col::ParentId, notes.parent_id.as_deref());
        self.text_if(Col::Subagent, notes.subagent_id.as_deref());
        self.text_if(Col::Model, notes.model.as_deref());
        self.text_if(Col::ModelCall, notes.model_call.as_deref());
        self.text_if(Col::StopReason, notes.stop_reason.as_deref());
        self.json_if(Col::Extra, notes.extra.as_ref());
        self.text_if(Col::Status, notes.status.map(quipu_model::Status::as_str));
        self.table
            .count_if(Col::Duration as usize, notes.duration_ms);
        if let Some(usage) = &notes.usage {
            for (column, count) in [
                (Col::Input, usage.input),
                (Col::CacheRead, usage.cache_read),
                (Col::CacheWrite, usage.cache_write),
                (Col::CacheWrite1h, usage.cache_write_1h),
                (Col::Output, usage.output),
                (Col::Reasoning, usage.reasoning),
            ] {
                self.table.count_if(column as usize, count);
            }
        }
        if let Some(cost) = notes.cost
            && !self.table.money(Col::Cost as usize, cost)
        {
            self.loss.dropped("cost of more than 38 digits", self.seq);
        }
        if let Some(source) = &notes.source {
            self.text(Col::SourceFile, &source.file);
            self.table.count(Col::SourceLine as usize, source.line);
            self.table.count(Col::SourceOffset as usize, source.offset);
        }
        let flags = notes.flags;
        for (column, flag) in [
            (Col::Opaque, flags.opaque),
            (Col::Synthetic, flags.synthetic),
            (Col::Superseded, flags.superseded),
            (Col::Undated, flags.undated),
            (Col::Dangling, flags.dangling),
        ] {
            self.table.flag(column as usize, flag);
        }
        if !notes.attachments.is_empty() {
            self.table.text_with(Col::Attachments as usize, |to| {
                values::attachments(&notes.attachments, to);
            });
        }
    }

    /// What is the same in all rows of a session. It takes next to no room: a column keeps it once.
    fn session(&mut self, header: &Header) {
        if let Some(origin) = &header.origin {
            self.text(Col::Agent, &origin.agent);
            self.text_if(Col::AgentVersion, origin.agent_version.as_deref());
            self.text_if(Col::Adapter, origin.adapter.as_deref());
            self.text_if(Col::SessionId, origin.session_id.as_deref());
            self.text_if(Col::LogPath, origin.path.as_deref());
        }
        self.text_if(Col::Title, header.title.as_deref());
        self.text_if(Col::ParentCall, header.parent_call.as_deref());
        self.text_if(Col::ForkedFrom, header.forked_from.as_deref());
        let at = &header.environment;
        self.text_if(Col::Cwd, at.cwd.as_deref());
        self.text_if(Col::Branch, at.git_branch.as_deref());
        self.text_if(Col::Repository, at.repository.as_deref());
        self.text_if(Col::Commit, at.commit.as_deref());
        self.text_if(Col::Os, at.os.as_deref());
        self.text_if(Col::Shell, at.shell.as_deref());
    }
}
