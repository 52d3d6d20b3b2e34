//! Records on their way out: times that do not run backwards, ids, and what stands beside the payload.

use std::io;

use quipu_model::json::{Cursor, Tape};
use quipu_model::{Attachment, Json, Notes, Timestamp};

use super::mend;
use super::text::Object;
use super::{Made, Sink};
use crate::agentlog::inline::{self, MAX_INLINE, Moved};
use crate::agentlog::{Canon, CanonError, ContentId, Draft, Kind, LIMITS, encode};
use crate::ended::Ended;
use crate::loss::Loss;

/// How much a line has beside payload and meta, at most.
const ENVELOPE: usize = 512;

/// The earliest time that can be written.
const EARLIEST: Timestamp = Timestamp::constant(-62_167_219_200, 0);

/// A record that is to be written.
#[derive(Debug, Clone)]
pub(super) struct Making {
    pub(super) kind: Kind,
    pub(super) seq: u64,
    pub(super) at: Timestamp,
    /// Whether `at` is a time that was made up, so that nothing is lost when it moves.
    pub(super) vague: bool,
    pub(super) payload: String,
    /// What is to be known of it beside what is hashed.
    pub(super) marks: Object,
}

impl Making {
    /// A record of what an event says.
    pub(super) fn of(kind: Kind, seq: u64, at: Timestamp, notes: &Notes, payload: String) -> Self {
        Self {
            kind,
            seq,
            at,
            vague: notes.flags.undated,
            payload,
            marks: marks(notes),
        }
    }
}

/// What the annotations of an event say that a record has no field for.
pub(super) fn marks(notes: &Notes) -> Object {
    let status = notes
        .status
        .filter(|status| *status != quipu_model::Status::Ok);
    let own = |word: &&str| Ended::of(word).map(|it| it.in_traces(false)) != Some(*word);
    Object::new()
        .text_if("native_id", notes.native_id.as_deref())
        .text_if("subagent", notes.subagent_id.as_deref())
        .text_if("model_call", notes.model_call.as_deref())
        .text_if("stop_reason", notes.stop_reason.as_deref().filter(own))
        .text_if(
            "cost_usd",
            notes.cost.map(|cost| cost.to_string()).as_deref(),
        )
        .text_if(
            "child_run_id",
            notes.child.as_ref().map(quipu_model::RunId::as_str),
        )
        .text_if("status", status.map(quipu_model::Status::as_str))
        .flag_if("superseded", notes.flags.superseded)
        .flag_if("synthetic", notes.flags.synthetic)
        .flag_if("opaque", notes.flags.opaque)
        .flag_if("undated", notes.flags.undated)
        .flag_if("dangling", notes.flags.dangling)
}

/// Writes records to a sink.
#[derive(Debug)]
pub(super) struct Out {
    canon: Canon,
    tape: Tape,
    line: Vec<u8>,
    last: Option<Timestamp>,
    session: String,
    trace: String,
    /// The last record, and the last that is not what a replay came to.
    pub(super) before: Option<ContentId>,
    pub(super) before_summaries: Option<ContentId>,
    /// The last event before the run was closed, while records are written because of that.
    pub(super) closing: Option<u64>,
    pub(super) loss: Loss,
}

impl Out {
    pub(super) fn new(session: &str, trace: String) -> Self {
        Self {
            canon: Canon::new(),
            tape: Tape::new(),
            line: Vec::new(),
            last: None,
            session: session.to_owned(),
            trace,
            before: None,
            before_summaries: None,
            closing: None,
            loss: Loss::default(),
        }
    }

    /// The time of the record before, or `at` where that is later.
    pub(super) fn not_before(&self, at: Timestamp) -> Timestamp {
        self.last.map_or(at, |last| last.max(at))
    }

    /// Writes a record; gives its id. `None` when it cannot be written at all, which is counted.
    pub(super) fn put(
        &mut self,
        making: Making,
        parent: Option<ContentId>,
        sink: &mut dyn Sink,
    ) -> io::Result<Option<ContentId>> {
        let seq = making.seq;
        let at = whole_millis(making.at);
        // RFC 3339 has no years before 0.
        let ts = self.not_before(at.max(EARLIEST));
        let mut marks = Object::new().number("seq", seq);
        if ts != at && !making.vague {
            marks = marks.text("ts", &crate::agentlog::write::stamp(at));
            self.loss
                .inferred("ts of the record before, for an event that is earlier", seq);
        }
        marks = marks.number_if("flushed", self.closing);
        let mut payload = making.payload;
        let mut draft = Line {
            kind: making.kind,
            ts,
            parent,
            marks: marks.and(&making.marks),
            mended: false,
            moved_out: false,
        };
        if let Some(moved) = self.without_files(&payload) {
            for file in &moved.files {
                self.loss
                    .wrapped("files that were written inline, as a blob", seq);
                let attachment = Attachment {
                    mime: file.media_type.clone().unwrap_or_default(),
                    bytes: file.bytes.len() as u64,
                    sha256: file.id.hex(),
                };
                self.put_blob(&attachment, &file.bytes, (seq, at, parent), sink)?;
            }
            moved.payload.get().clone_into(&mut payload);
            draft.moved_out = true;
        }
        if let Some((shorter, moved)) = self.without_base64(draft.kind, &payload) {
            for moved in moved {
                self.loss
                    .wrapped("base64 of a kind that is not known, as a blob", seq);
                let bytes = moved.text.as_bytes();
                self.put_blob(&moved.attachment, bytes, (seq, at, parent), sink)?;
            }
            payload = shorter;
            draft.moved_out = true;
        }
        let mut id = self.encode(&draft, &payload);
        if id.is_err() {
            let Some(mended) = mend::canonical(&payload) else {
                self.loss
                    .dropped(format!("{}: no canonical form", draft.kind), seq);
                return Ok(None);
            };
            payload = mended;
            draft.mended = true;
            self.loss
                .inferred("values that have no canonical form", seq);
            id = self.encode(&draft, &payload);
        }
        if self.line.len() > LIMITS.max_line_bytes {
            let beside = self.line.len() - payload.len() + ENVELOPE;
            let room = LIMITS.max_line_bytes.saturating_sub(beside);
            let Some((shorter, moved)) = mend::move_out(&payload, room) else {
                self.loss
                    .dropped(format!("{}: longer than a line can be", draft.kind), seq);
                return Ok(None);
            };
            for moved in moved {
                self.loss
                    .wrapped("text beyond the limit of a line, as a blob", seq);
                let bytes = moved.text.as_bytes();
                self.put_blob(&moved.attachment, bytes, (seq, at, parent), sink)?;
            }
            draft.moved_out = true;
            id = self.encode(&draft, &shorter);
        }
        let Ok(id) = id else {
            self.loss
                .dropped(format!("{}: no canonical form", draft.kind), seq);
            return Ok(None);
        };
        self.last = Some(ts);
        self.before = Some(id);
        if draft.kind != Kind::ReplaySummary {
            self.before_summaries = Some(id);
        }
        let (kind, line) = (draft.kind, &self.line[..]);
        sink.record(&Made {
            seq,
            id,
            kind,
            line,
        })?;
        if self.line.capacity() > 1 << 20 {
            self.line = Vec::new();
            self.tape.shrink();
        }
        Ok(Some(id))
    }

    /// A payload without files that are written inline and are too long for that.
    fn without_files(&mut self, payload: &str) -> Option<Moved> {
        if payload.len() <= MAX_INLINE {
            return None;
        }
        inline::move_out(self.tape.read(payload, LIMITS.max_depth).ok()?)
    }

    /// A payload without base64 that is too long to be inline, where it is not known what file it is.
    fn without_base64(&mut self, kind: Kind, payload: &str) -> Option<(String, Vec<mend::Moved>)> {
        if payload.len() <= MAX_INLINE || !matches!(kind, Kind::ChatRequest | Kind::ChatResponse) {
            return None;
        }
        let long = inline::in_parts(self.tape.read(payload, LIMITS.max_depth).ok()?);
        (!long.is_empty()).then(|| mend::move_strings(payload, long))
    }

    /// Keeps bytes outside, and writes a record that refers to them.
    fn put_blob(
        &mut self,
        attachment: &Attachment,
        bytes: &[u8],
        (seq, at, parent): (u64, Timestamp, Option<ContentId>),
        sink: &mut dyn Sink,
    ) -> io::Result<()> {
        sink.blob(attachment, bytes)?;
        let reference = Making {
            kind: Kind::BlobRef,
            seq,
            at,
            vague: true,
            payload: blob_ref(attachment),
            marks: Object::new(),
        };
        self.put(reference, parent, sink).map(drop)
    }

    fn encode(&mut self, line: &Line, payload: &str) -> Result<ContentId, CanonError> {
        let meta = Object::new()
            .text("session_tag", &self.session)
            .text("trace_id", &self.trace)
            .raw("quipu", &line.marks().end())
            .end();
        let (meta, payload) = (json(&meta), json(payload));
        let draft = Draft::new(line.kind, line.ts, line.parent, &payload).with_meta(&meta);
        self.line.clear();
        encode(&draft, &mut self.canon, &mut self.tape, &mut self.line)
    }
}

struct Line {
    kind: Kind,
    ts: Timestamp,
    parent: Option<ContentId>,
    marks: Object,
    mended: bool,
    moved_out: bool,
}

impl Line {
    fn marks(&self) -> Object {
        let marks = self.marks.clone();
        marks
            .flag_if("mended", self.mended)
            .flag_if("moved_out", self.moved_out)
    }
}

/// A text that is known to be JSON.
fn json(text: &str) -> Json {
    Cursor::new(text, LIMITS.max_depth)
        .value()
        .map_or_else(|_| Json::string(text), Json::from)
}

/// Records have times to the millisecond; what is below that is cut off.
fn whole_millis(at: Timestamp) -> Timestamp {
    Timestamp::from_millisecond(at.as_millisecond()).unwrap_or(at)
}

/// The payload of a reference to what is kept outside.
pub(super) fn blob_ref(attachment: &Attachment) -> String {
    Object::new()
        .text("mime", mime(attachment))
        .number("size_bytes", attachment.bytes)
        .text("blob_id", &format!("sha256:{}", attachment.sha256))
        .text("uri", &blob_uri(attachment))
        .end()
}

/// A media type that the format takes.
pub(super) fn mime(attachment: &Attachment) -> &str {
    match attachment.mime.as_str() {
        mime if inline::is_mime(mime) => mime,
        _ => "application/octet-stream",
    }
}

pub(super) fn blob_uri(attachment: &Attachment) -> String {
    format!("agentlog-blob://quipu/{}", attachment.sha256)
}
