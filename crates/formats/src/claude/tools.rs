//! Calls of tools, and what they gave back.

use std::io;

use quipu_model::{Json, Notes, Status, ToolResult};

use super::chain::{At, Chain, Lane};
use super::session::{Open, Session};
use crate::handover;
use crate::handover::content::{Output, Part};

impl<'w> Session<'w> {
    pub(super) fn call(
        &mut self,
        name: &str,
        id: &str,
        input: Option<&Json>,
        notes: &Notes,
        lane: Lane<'_>,
        at: At,
    ) -> io::Result<()> {
        let seq = at.seq.to_string();
        let plain = handover::tool_name(name);
        let mut written =
            handover::call_id(id, &self.chain.run, &seq).unwrap_or_else(|| id.to_owned());
        if lane == Lane::Live && self.taken.contains(&written) {
            // Agents may count their calls anew in each turn, which the provider refuses.
            written = format!(
                "call_{}",
                handover::short(&["again", &self.chain.run, &seq, id])
            );
        }
        if written != id {
            self.loss.wrapped("tool.call (id)", at.seq);
        }
        if plain.is_some() {
            self.loss.wrapped("tool.call (name)", at.seq);
        }
        let input = input.map_or("null", Json::get);
        let is_object = input.starts_with('{');
        if input != "null" && !is_object {
            self.loss.wrapped("tool.call (input)", at.seq);
        }
        let write = |chain: &mut Chain<'w>| {
            chain
                .lines
                .raw(r#"{"type":"tool_use","id":"#)
                .string(&written)
                .raw(r#","name":"#)
                .string(plain.as_deref().unwrap_or(name))
                .raw(r#","input":"#);
            match input {
                "null" => chain.lines.raw("{}}"),
                _ if is_object => chain.lines.raw(input).raw("}"),
                _ => chain.lines.raw(r#"{"input":"#).raw(input).raw("}}"),
            };
        };
        let (reply, line) = self.reply(write, notes, lane, at)?;
        if lane == Lane::Live {
            self.taken.insert(written.clone());
            self.open.push(Open {
                id: id.to_owned(),
                written,
                reply,
                line,
                at,
                dangling: notes.flags.dangling,
            });
        }
        Ok(())
    }

    pub(super) fn gave_back(
        &mut self,
        id: &str,
        output: Output,
        failed: bool,
        denied: bool,
        lane: Lane<'_>,
        at: At,
    ) -> io::Result<()> {
        let seq = at.seq.to_string();
        let call = match lane {
            Lane::Live => self.open.iter().position(|open| open.id == id),
            _ => None,
        };
        let call = call.map(|index| self.open.remove(index));
        let Some(call) = call else {
            let lane = if lane == Lane::Live {
                self.loss.wrapped("tool.result (without its call)", at.seq);
                Lane::Aside
            } else {
                lane
            };
            let id = handover::call_id(id, &self.chain.run, &seq).unwrap_or_else(|| id.to_owned());
            return self.result(&id, None, output, failed, denied, lane, at);
        };
        self.reply = None;
        self.result(
            &call.written,
            Some(&call.line),
            output,
            failed,
            denied,
            lane,
            at,
        )
    }

    #[expect(clippy::too_many_arguments, reason = "each is a field of the line")]
    pub(super) fn result(
        &mut self,
        id: &str,
        call: Option<&str>,
        output: Output,
        failed: bool,
        denied: bool,
        lane: Lane<'_>,
        at: At,
    ) -> io::Result<()> {
        let line = self.chain.begin("user", lane);
        let lines = &mut self.chain.lines;
        lines
            .raw(r#","message":{"role":"user","content":[{"tool_use_id":"#)
            .string(id)
            .raw(r#","type":"tool_result""#);
        match output {
            Output::Nothing => {}
            Output::Text(text) => {
                lines.raw(r#","content":"#).raw(&text);
            }
            Output::Value(value) => {
                self.loss.wrapped("tool.result (output)", at.seq);
                lines.raw(r#","content":"#).string(&value);
            }
            Output::Parts(parts) => {
                for (index, part) in parts.iter().enumerate() {
                    lines.raw(if index == 0 { r#","content":["# } else { "," });
                    match part {
                        Part::Text(text) => {
                            lines.raw(r#"{"type":"text","text":"#).raw(text).raw("}")
                        }
                        Part::Image { mime, data } => lines
                            .raw(r#"{"type":"image","source":{"type":"base64","media_type":""#)
                            .raw(mime)
                            .raw(r#"","data":"#)
                            .string(data)
                            .raw("}}"),
                    };
                }
                lines.raw("]");
            }
        }
        if failed {
            lines.raw(r#","is_error":true"#);
        }
        lines.raw("}]}");
        if denied {
            lines.raw(r#","toolDenialKind":"user-rejected""#);
        }
        lines.field("sourceToolAssistantUUID", call);
        self.chain.end(&line, at)
    }

    pub(super) fn tool_result(
        &mut self,
        result: &ToolResult,
        notes: &Notes,
        lane: Lane<'_>,
        at: At,
    ) -> io::Result<()> {
        let mut output = Output::of(result.output.as_ref(), &mut self.blobs);
        if result.input.is_some() {
            self.loss.dropped("tool.result (input)", at.seq);
        }
        if let Some(error) = &result.error {
            output = output.with_error(error);
        }
        if notes.status == Some(Status::Timeout) {
            self.loss.wrapped("status", at.seq);
        }
        let bad = matches!(
            notes.status,
            Some(Status::Error | Status::Denied | Status::Timeout)
        );
        let denied = notes.status == Some(Status::Denied);
        self.gave_back(
            &result.call_id,
            output,
            bad || result.error.is_some(),
            denied,
            lane,
            at,
        )
    }
}
