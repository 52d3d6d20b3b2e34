//! Lines of a rollout.

use std::io::{self, Write};

use quipu_model::{Header, Timestamp, Usage};

use super::{CodexOptions, VERSION, began, cwd, session_id};
use crate::handover::{self, Lines};

/// The lines of a rollout.
pub(super) struct Items<'w> {
    pub(super) lines: Lines<'w>,
    pub(super) run: String,
    id: String,
    cwd: String,
    /// What was counted so far.
    total: Usage,
    turns: u64,
}

impl<'w> Items<'w> {
    pub(super) fn new(header: &Header, options: &CodexOptions, out: Box<dyn Write + 'w>) -> Self {
        Self {
            lines: Lines::new(out),
            run: header.run_id.to_string(),
            id: session_id(header, options),
            cwd: cwd(header, options).to_owned(),
            total: Usage::default(),
            turns: 0,
        }
    }

    /// Begins a line, up to where the fields of its payload come.
    pub(super) fn begin(&mut self, kind: &str, at: Timestamp) -> &mut Lines<'w> {
        self.lines
            .raw(r#"{"timestamp":"#)
            .time(at)
            .raw(r#","type":""#)
            .raw(kind)
            .raw(r#"","payload":{"#)
    }

    /// Ends a line.
    pub(super) fn end(&mut self) -> io::Result<()> {
        self.lines.raw("}}").end()
    }

    /// The first line.
    pub(super) fn meta(&mut self, header: &Header, options: &CodexOptions) -> io::Result<()> {
        let at = began(header);
        let (id, cwd) = (self.id.clone(), self.cwd.clone());
        let git = &header.environment;
        let lines = self.begin("session_meta", at);
        lines
            .raw(r#""id":""#)
            .raw(&id)
            .raw(r#"","session_id":""#)
            .raw(&id)
            .raw(r#"","timestamp":"#)
            .time(at)
            .raw(r#","cwd":"#)
            .string(&cwd)
            .raw(r#","originator":"quipu","cli_version":""#)
            .raw(VERSION)
            .raw(r#"","source":"cli""#)
            .field("model_provider", options.model_provider.as_deref());
        let facts = [
            ("commit_hash", &git.commit),
            ("branch", &git.git_branch),
            ("repository_url", &git.repository),
        ];
        for (index, (key, fact)) in facts
            .into_iter()
            .filter_map(|(key, fact)| Some((key, fact.as_ref()?)))
            .enumerate()
        {
            lines
                .raw(if index == 0 { r#","git":{""# } else { ",\"" })
                .raw(key)
                .raw("\":")
                .string(fact);
        }
        if facts.iter().any(|(_, fact)| fact.is_some()) {
            lines.raw("}");
        }
        lines.raw(r#","converted_from":"#).converted_from(header);
        self.end()?;
        let title = handover::title(header);
        self.begin("event_msg", at)
            .raw(r#""type":"thread_name_updated","thread_id":""#)
            .raw(&id)
            .raw(r#"","thread_name":"#)
            .string(&title);
        self.end()
    }

    /// The settings of a turn. Only the model is known; the rest has to be there.
    pub(super) fn context(&mut self, model: &str, at: Timestamp) -> io::Result<()> {
        self.turns += 1;
        let turn = handover::uuid(&["turn", &self.id, &self.run, &self.turns.to_string()]);
        let cwd = self.cwd.clone();
        self.begin("turn_context", at)
            .raw(r#""turn_id":""#)
            .raw(&turn)
            .raw(r#"","cwd":"#)
            .string(&cwd)
            .raw(
                r#","approval_policy":"on-request","sandbox_policy":{"type":"read-only"},"model":"#,
            )
            .string(model)
            .raw(r#","summary":"auto""#);
        self.end()
    }

    /// A text that is sent.
    pub(super) fn message(&mut self, role: &str, text: &str, at: Timestamp) -> io::Result<()> {
        let kind = if role == "assistant" {
            "output_text"
        } else {
            "input_text"
        };
        self.begin("response_item", at)
            .raw(r#""type":"message","role":""#)
            .raw(role)
            .raw(r#"","content":[{"type":""#)
            .raw(kind)
            .raw(r#"","text":"#)
            .string(text)
            .raw("}]");
        self.end()
    }

    /// An image that is sent.
    pub(super) fn image(&mut self, mime: &str, data: &str, at: Timestamp) -> io::Result<()> {
        self.begin("response_item", at)
            .raw(r#""type":"message","role":"user","content":[{"type":"input_image","image_url":"data:"#)
            .raw(mime)
            .raw(";base64,")
            .raw(data)
            .raw("\"}]");
        self.end()
    }

    /// A text that is shown.
    pub(super) fn shown(
        &mut self,
        kind: &str,
        key: &str,
        text: &str,
        at: Timestamp,
    ) -> io::Result<()> {
        self.begin("event_msg", at)
            .raw(r#""type":""#)
            .raw(kind)
            .raw("\"")
            .field(key, Some(text));
        self.end()
    }

    /// Says that the last turns do not count.
    pub(super) fn rolled_back(&mut self, turns: u64, at: Timestamp) -> io::Result<()> {
        self.begin("event_msg", at)
            .raw(r#""type":"thread_rolled_back","num_turns":"#)
            .number(turns);
        self.end()
    }

    /// A running total of tokens, and what was added to it.
    pub(super) fn tokens(&mut self, added: &Usage, at: Timestamp) -> io::Result<()> {
        self.total.add(added);
        let total = self.total;
        let lines = self.begin("event_msg", at);
        lines.raw(r#""type":"token_count","info":{"total_token_usage":"#);
        counted(lines, &total);
        lines.raw(r#","last_token_usage":"#);
        counted(lines, added);
        lines.raw(r#","model_context_window":null},"rate_limits":null"#);
        self.end()
    }
}

/// Token counts as the provider has them: what was cached is inside the input, reasoning inside the output.
fn counted(lines: &mut Lines<'_>, usage: &Usage) {
    let Usage {
        input,
        cache_read,
        cache_write,
        output,
        reasoning,
        cache_write_1h: _,
    } = *usage;
    let [read, write, output] = [cache_read, cache_write, output].map(|n| n.unwrap_or(0));
    let prompt = input
        .unwrap_or(0)
        .saturating_add(read)
        .saturating_add(write);
    lines
        .raw(r#"{"input_tokens":"#)
        .number(prompt)
        .raw(r#","cached_input_tokens":"#)
        .number(read);
    if write > 0 {
        lines.raw(r#","cache_write_input_tokens":"#).number(write);
    }
    lines
        .raw(r#","output_tokens":"#)
        .number(output)
        .raw(r#","reasoning_output_tokens":"#)
        .number(reasoning.unwrap_or(0))
        .raw(r#","total_tokens":"#)
        .number(prompt.saturating_add(output))
        .raw("}");
}
