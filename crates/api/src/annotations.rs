//! Labels and notes of people.

use crate::Time;
use crate::describe::document;

document! {
    /// The labels and notes of a transcript. They are kept beside it, never inside.
    pub struct Annotations {
        /// The id of the transcript.
        pub transcript: String,
        /// The labels, of the transcript first, then by event.
        pub labels: Vec<Label>,
        /// The notes, of the transcript first, then by event.
        pub notes: Vec<PersonNote>,
    }
}

document! {
    /// A label on a transcript or on an event of it.
    pub struct Label {
        /// The id of the label on this transcript.
        pub id: String,
        /// The label.
        pub label: String,
        /// The seq of the event; null for the transcript as a whole.
        pub seq: Option<u64>,
        /// Who put it there.
        pub by: String,
        /// When.
        pub at: Time,
    }
}

document! {
    /// A note on a transcript or on an event of it.
    pub struct PersonNote {
        /// Its id.
        pub id: String,
        /// What it says.
        pub text: String,
        /// The seq of the event; null for the transcript as a whole.
        pub seq: Option<u64>,
        /// Who wrote it.
        pub by: String,
        /// When.
        pub at: Time,
        /// Who changed it last; null when nobody did.
        pub edited_by: Option<String>,
        /// When.
        pub edited_at: Option<Time>,
    }
}

document! {
    /// A label, and how often it is there.
    pub struct LabelCount {
        /// The label.
        pub label: String,
        /// On how many transcripts, those that are no longer kept included.
        pub transcripts: u64,
        /// On how many events of them.
        pub events: u64,
    }
}
