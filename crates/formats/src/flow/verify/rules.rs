//! The rules, as one table.

use quipu_exchange::rules;
pub use quipu_exchange::verify::Severity;

rules! {
    /// A file among the receipts cannot be read, or is too large.
    ReceiptUnreadable = "receipt-unreadable", Error, "a receipt is one JSON object; was the writer killed?";
    /// A file among the receipts is neither a receipt nor known to lie there.
    ReceiptUnknown = "receipt-unknown", Note, "nothing is read from it";
    /// A required field is not there.
    FieldMissing = "field-missing", Error, "the writer has to add it; older writers leave `transcript_path` out";
    /// A field holds another type than it should.
    FieldType = "field-type", Error, "the writer has to give the documented type";
    /// A time is not as RFC 3339 has it.
    TimeMalformed = "time-malformed", Warning, "read leniently; written anew by `quipu convert --to flow`";
    /// A time cannot be read at all.
    TimeUnreadable = "time-unreadable", Error, "such as 2025-12-09T14:30:22.123456Z";
    /// The status is neither `succeeded` nor `failed`.
    StatusUnknown = "status-unknown", Error, "succeeded or failed; a step that was skipped has no receipt";
    /// A count of tokens is negative, or no whole number.
    TokensInvalid = "tokens-invalid", Error, "counts are whole numbers from 0";
    /// Prompt and completion do not add up to the total.
    TokensSum = "tokens-sum", Error, "total is prompt and completion; cached tokens are part of the prompt";
    /// The duration is not the time from start to completion.
    DurationMismatch = "duration-mismatch", Warning, "believe the two times; some writers put both down when they write";
    /// A receipt has no transcript.
    TranscriptMissing = "transcript-missing", Error, "what the step said is lost, or was never written";
    /// A transcript has no receipt.
    ReceiptMissing = "receipt-missing", Warning, "the step may have failed; tokens and cost are not known";
    /// A transcript is newer than its receipt.
    TranscriptNewer = "transcript-newer", Warning, "it was changed, or belongs to a later execution whose receipt was not written";
    /// The transcript is not the one that the receipt was written for.
    HashMismatch = "hash-mismatch", Error, "it was changed after the receipt was written";
    /// The path of a transcript is absolute.
    PathAbsolute = "path-absolute", Warning, "relative to the directory of the flow, so that a run can be moved";
    /// A path leads out of the run.
    PathEscapes = "path-escapes", Error, "it is not followed";
    /// The name of a file and what stands in it are about different steps or agents.
    NameMismatch = "name-mismatch", Error, "the writer filed it under another step; believe the body, and ask which";
    /// The name of a file can be taken apart in several ways, and nothing tells which.
    NameAmbiguous = "name-ambiguous", Note, "a receipt beside it would tell";
    /// A receipt names another flow than the directory it is in.
    FlowMismatch = "flow-mismatch", Error, "the receipt was copied or misfiled";
    /// Two files say that they are the same iteration of a step.
    IterationDuplicate = "iteration-duplicate", Warning, "the plain name is the latest, and not a copy of it; it is read once";
    /// The directory has another name than the run.
    DirectoryName = "directory-name", Warning, "the run id inside of the files is believed";
    /// A file belongs to another run than the others.
    RunIdMismatch = "run-id-mismatch", Error, "files of two runs lie in one directory";
    /// A stub is presented as success.
    StubSuccess = "stub-success", Warning, "no work was done: a stub only pretends, and costs nothing";
    /// What the run cost goes down from one step to the next, or is less than the step.
    CostOrder = "cost-order", Error, "cumulative_run_usd is the sum of cost_usd until then";
    /// A line has none of the known shapes.
    LineShape = "line-shape", Warning, "it is kept as it stands";
    /// A line is not JSON.
    LineNotJson = "line-not-json", Error, "one JSON object a line";
    /// A line is longer than allowed.
    LineTooLong = "line-too-long", Error, "it is passed over";
    /// The last line is cut off.
    TornTail = "torn-tail", Error, "the writer was killed, or is still writing; the lines before it are whole";
    /// A document of the run cannot be read.
    DocumentUnreadable = "document-unreadable", Warning, "meta.json, spec.json and run.json are JSON objects";
    /// A line of the journal is not an event.
    EventUnreadable = "event-unreadable", Warning, "it is kept as a note";
    /// A number among the run's events is there twice.
    EventDuplicate = "event-duplicate", Error, "two writers, or a line written twice";
    /// A number among the run's events is left out.
    EventGap = "event-gap", Warning, "a line is lost, or they are out of order";
    /// The journal tells of an execution whose files a later one wrote over.
    ExecutionOverwritten = "execution-overwritten", Warning, "the journal is all that is left of it; import runs while they go on to keep every iteration";
}
