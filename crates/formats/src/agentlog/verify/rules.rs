//! The rules, as one table.

pub use quipu_exchange::verify::Severity;

macro_rules! rules {
    ($($(#[doc = $doc:literal])* $rule:ident = $name:literal, $section:literal, $severity:ident $(/ $permissive:ident)?, $hint:literal;)+) => {
        quipu_exchange::names! { $($(#[doc = $doc])* $rule = $name,)+ }

        impl Rule {
            /// The section of the specification that it is from; a dash for what that leaves open.
            pub const fn section(self) -> &'static str {
                match self { $(Self::$rule => $section,)+ }
            }

            /// How much breaking it matters.
            pub const fn severity(self, strict: bool) -> Severity {
                match self {
                    $(Self::$rule => {
                        $(if !strict { return Severity::$permissive; })?
                        _ = strict;
                        Severity::$severity
                    })+
                }
            }

            /// How to mend it.
            pub const fn hint(self) -> &'static str {
                match self { $(Self::$rule => $hint,)+ }
            }
        }
    };
}

// What is after a slash is the severity where a newer format is allowed for (permissive).
rules! {
    /// There is no record in the file.
    EmptyTrace = "empty-trace", "§3.3", Error, "a trace begins with a metadata record; was the recording killed before it wrote?";
    /// The file ends in the middle of a record.
    TornTail = "torn-tail", "§1.1", Error, "`quipu repair --drop-torn` leaves it out; the records before it are whole";
    /// A line is longer than allowed.
    LineTooLong = "line-too-long", "–", Error, "--max-line allows longer ones; large content belongs in a blob";
    /// A record nests deeper than allowed.
    TooDeep = "too-deep", "–", Error, "--max-depth allows deeper ones";
    /// A line has more values than are held at once.
    TooManyValues = "too-many-values", "–", Error, "4,194,304 values, keys counted, are the most; large content belongs in a blob";
    /// A line is not UTF-8.
    NotUtf8 = "not-utf-8", "§5.2", Error, "write the file as UTF-8; the line cannot be mended without its author";
    /// A line is not JSON.
    NotJson = "not-json", "§1.1", Error, "one JSON object a line, nothing before or behind it";
    /// A line is JSON, but no object.
    NotARecord = "not-a-record", "§3", Error, "a record is an object with the fields of the envelope";
    /// An object has a key twice, perhaps in two spellings.
    DuplicateKey = "duplicate-key", "§5.1", Error, "which of them counts is not defined; the writer has to decide";
    /// A string holds half of a surrogate pair.
    LoneSurrogate = "lone-surrogate", "§5.2", Error, "it is no text and has no hash; cut strings between characters";
    /// A number is beyond a double.
    NumberRange = "number-range", "§5.3", Error, "write it as a string";
    /// A required field is not there.
    FieldMissing = "field-missing", "§3.1, §4", Error, "`quipu repair --rehash --relink` adds an id or a parent; others are for the writer to add";
    /// A field holds another type than it should.
    FieldType = "field-type", "§3.1, §4", Error, "the writer has to give the type that the specification names";
    /// A number is negative, or no whole number, where it counts something.
    FieldRange = "field-range", "§4", Error, "counts, sizes and milliseconds are whole numbers from 0";
    /// The version is not written as one.
    VersionForm = "version-form", "§3.1", Error, "the version is \"0.1\"";
    /// The version is of a format that is not known.
    VersionUnknown = "version-unknown", "§13", Error / Note, "--permissive reads it as the version that is known";
    /// The version is newer, and adds to the one that is known.
    VersionNewer = "version-newer", "§13", Note, "what it adds is passed over";
    /// The kind is not known.
    UnknownKind = "unknown-kind", "§4, §13", Error / Note, "--permissive passes over it";
    /// An id is not written as one.
    IdForm = "id-form", "§3.1", Error, "`sha256:` and 64 lowercase hexadecimal digits; `quipu repair --rehash` makes it";
    /// The id is not the hash of the payload.
    IdMismatch = "id-mismatch", "§6", Error, "changed after it was written, or hashed otherwise; if the content is trusted, `quipu repair --rehash`";
    /// The time is not as RFC 3339 has it, in UTC, with `T` and `Z`.
    TsForm = "ts-form", "§3.1", Error, "such as 2026-04-24T10:00:00.000Z";
    /// The time is not to the millisecond.
    TsPrecision = "ts-precision", "§3.1", Warning, "three digits of a second, such as 10:00:00.000Z";
    /// The parent is neither an id nor null.
    ParentForm = "parent-form", "§3.1", Error, "the id of a record before it; `quipu repair --relink`";
    /// The first record is no metadata.
    RootKind = "root-kind", "§3.3", Error, "a trace begins with a metadata record; is this the end of another file?";
    /// The first record has a parent.
    RootParent = "root-parent", "§3.3", Error, "null; `quipu repair --relink`";
    /// A record after the first has no parent.
    ParentNull = "parent-null", "§3.3", Error, "two traces joined? `quipu repair --relink` hangs it under the record before it";
    /// A record is its own parent.
    ParentSelf = "parent-self", "§3.3", Error, "`quipu repair --relink`";
    /// The parent is not among the records before.
    ParentUnknown = "parent-unknown", "§3.3", Error, "records are missing or out of order; `quipu repair --relink` hangs it under the record before it";
    /// The parent is not among the records before, but a line before could not be read.
    ParentUnread = "parent-unread", "§3.3", Warning, "mend the line that could not be read, and check again";
    /// The time is before that of the record before.
    TsOrder = "ts-order", "§3.3", Error, "times are not changed by any repair; order the records when they are written";
    /// A session begins, but does not follow the record before it.
    MarkerParent = "marker-parent", "§3.3", Error, "`quipu repair --relink`";
    /// The role of a message is not known.
    MessageRole = "message-role", "§4.1", Error / Note, "system, user, assistant or tool; --permissive allows others";
    /// A tool is described without its description or its input.
    ToolIncomplete = "tool-incomplete", "§4.1", Note, "name, description and input_schema";
    /// A parameter is outside of what it should be.
    ParamsRange = "params-range", "§4.1.1", Warning, "temperature 0 to 2, top_p 0 to 1, max_tokens above 0, stop a list or null";
    /// A part of a content is of a type that is not known.
    PartType = "part-type", "§4.2", Note, "read as it stands";
    /// Bytes are in a content that should be outside of the trace.
    InlineBase64 = "inline-base64", "§4.10", Error, "more than 4096 bytes are to be a blob_ref";
    /// The reason for the end of a response is not known.
    StopReason = "stop-reason", "§4.2", Error / Note, "end_turn, tool_use, max_tokens, stop_sequence, content_filter or error; --permissive allows others";
    /// A response does not follow a request.
    ResponseParent = "response-parent", "§4.2", Error, "`quipu repair --relink` hangs it under the request before it";
    /// A tool is called that no response asked for.
    ToolCallId = "tool-call-id", "§4.3", Warning, "tool_call_id is the id of a tool_use in a response before it";
    /// The result of a tool does not follow its call.
    ResultParent = "result-parent", "§4.4", Error, "`quipu repair --relink` hangs it under the call with its tool_call_id";
    /// The result of a tool names another call than the one it follows.
    ResultCallId = "result-call-id", "§4.4", Error, "the call and its result have one tool_call_id";
    /// The name or version of the program is no text.
    SdkText = "sdk-text", "§4.5", Note, "read as it stands";
    /// Where an error is from is not known.
    ErrorSource = "error-source", "§4.6", Error / Note, "sdk, llm, tool or user; --permissive allows others";
    /// A summary does not follow the last record that is none.
    SummaryParent = "summary-parent", "§4.7", Error, "`quipu repair --relink`";
    /// A chunk does not follow a request.
    ChunkParent = "chunk-parent", "§4.8", Error, "`quipu repair --relink` hangs it under the request before it";
    /// The chunks of a request are not numbered from 0 without gaps.
    ChunkIndex = "chunk-index", "§4.8", Error, "chunks are missing, twice or out of order";
    /// A chunk came before the chunk before it.
    ChunkTime = "chunk-time", "§4.8", Warning, "the clock was set back, or the chunks are out of order";
    /// After chunks there is no response.
    ChunkResponse = "chunk-response", "§4.8", Warning, "the stream broke off, or chunks were written after their response";
    /// The category of an event is not known.
    HarnessCategory = "harness-category", "§4.9", Error / Note, "one of the nine of the specification; --permissive allows others";
    /// The severity of an event is not known.
    HarnessSeverity = "harness-severity", "§4.9", Error / Note, "info, warning, error or fatal; --permissive allows others";
    /// A media type is not written as one.
    Mime = "mime", "§4.10", Error, "a type and a subtype, such as image/png";
    /// The id of a blob is not written as one.
    BlobId = "blob-id", "§4.10", Error, "`sha256:` and 64 lowercase hexadecimal digits: the hash of the bytes";
    /// The address of a blob is not that of its id.
    BlobUri = "blob-uri", "§4.10", Error, "agentlog-blob://STORE/ and the digits of blob_id";
    /// A blob is kept somewhere else.
    BlobElsewhere = "blob-elsewhere", "§4.10", Note, "read as it stands";
    /// A perceptual hash is not written as one.
    Phash = "phash", "§4.10", Error, "algo dhash64 and 16 hexadecimal digits";
    /// A perceptual hash is of a kind that is not known.
    PhashAlgo = "phash-algo", "§4.10", Note, "read as it stands; it cannot be compared";
    /// An embedding has not as many numbers as it says.
    EmbeddingDim = "embedding-dim", "§4.10", Error, "dim is the length of vec";
    /// The envelope has a field that the format does not have.
    ExtraField = "extra-field", "§13", Note, "it is kept, and not hashed";
    /// A known key of meta holds something else.
    MetaKey = "meta-key", "§3.1", Note, "redacted is true; trace_id has 32 hexadecimal digits";
    /// The file begins with a byte order mark.
    ByteOrderMark = "byte-order-mark", "–", Note, "other programs refuse it";
    /// Lines end in CR LF.
    CrLf = "cr-lf", "–", Note, "written or edited by something that changes line ends";
    /// Blank lines.
    BlankLine = "blank-line", "–", Note, "other programs refuse those with spaces";
    /// The last line has no end.
    Unterminated = "unterminated", "–", Note, "whoever appends to the file has to end the line first";
    /// So many calls or streams are open that pairing was not checked to the end.
    PairingCapped = "pairing-capped", "–", Note, "tool-call-id and the rules for chunks are checked up to there";
    /// So many ids do not match that not all of them were explained.
    DiagnosisCapped = "diagnosis-capped", "–", Note, "the others are wrong as well; why was not looked for";
}
