//! The model behind every transcript that Quipu records, imports, keeps or shows.
//!
//! A quipu is a record of knotted cords. A **run** is the main cord; its steps and child runs hang
//! from it; **events** are the knots. This crate is those words as types and nothing else: no
//! files, no clock, no threads. File formats are projections of it (`quipu-formats`), the recorder
//! makes its events (`quipu-record`).
//!
//! # What it promises
//!
//! * **Order is `seq`.** Times may collide and run backwards; [`Event::seq`] does neither.
//! * **There is one event.** The recorder, the readers of logs, the store and every format use [`Event`]. [`Body`]
//!   has one variant per event type, each with the payload of that type, so a `tool.result` with a
//!   step's payload does not compile.
//! * **Nothing is dropped.** What does not fit is handed over whole as [`Body::Unknown`] or
//!   [`Content::Unknown`]. A format that may hold less says so when it writes.
//! * **Values are kept as text.** Tool inputs and outputs are [`Json`], so no number, key order or
//!   spelling changes on the way through.
//! * **Usage is in disjoint buckets**, and unknown is not zero ([`Usage`]).
//!
//! # An example
//!
//! ```
//! use quipu_model::{Block, Body, Draft, EventType, Fidelity, Place};
//!
//! let said = Draft::new(
//!     Place::step("review").in_iteration(2),
//!     Body::AssistantMessage(vec![Block::text(Fidelity::AgentEmitted, "Found 2 issues.")]),
//! );
//! assert_eq!(said.body.event_type(), Some(EventType::AssistantMessage));
//! assert_eq!(said.body.texts().collect::<Vec<_>>(), ["Found 2 issues."]);
//! ```
//!
//! A payload that does not belong to the event type is not expressible:
//!
//! ```compile_fail
//! use quipu_model::{Body, Step};
//! let wrong = Body::ToolResult(Step::new("build", "command"));
//! ```

mod block;
mod body;
mod distinct;
mod event;
mod header;
pub mod hex;
mod id;
pub mod json;
mod money;
mod note;
mod place;
mod step;
pub mod tree;
mod usage;
mod vocabulary;

pub use block::{Block, Content};
pub use body::{
    Body, Chunk, Failure, HarnessEvent, ModelCall, Severity, ToolCall, ToolResult, Unknown,
};
pub use distinct::Distinct;
pub use event::{Annotations, Draft, Event, Flags, Notes, Source};
pub use header::{Environment, Header, Origin, Totals};
pub use id::{InvalidRunId, ModelCallId, NativeId, RunId, SessionId, SubagentId, ToolCallId};
pub use jiff::Timestamp;
pub use json::{InvalidJson, Json};
pub use money::Money;
pub use note::{Attachment, Note, NoteKind, Status};
pub use place::Place;
pub use step::{CustomKind, Step, StepEnd, StepKind};
pub use usage::{Service, Usage};
pub use vocabulary::{BlockType, EventType, Fidelity, Role, UnknownWord};
