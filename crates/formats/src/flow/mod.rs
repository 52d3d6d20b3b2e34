//! Run directories: transcripts and receipts of workflow steps.
