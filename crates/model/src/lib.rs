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
//! * **The vocabulary is closed for whoever makes events.** [`Body`] has one variant per event
//!   type, each with the payload of that type, so a `tool.result` with a step's payload does not
//!   compile.
//! * **And open for whoever reads them.** A reader yields `Event<AnyBody>`: what does not fit is
//!   handed over whole as [`Foreign`] or [`AnyBlock::Unknown`], never dropped.
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
//!     Place::step("review").iteration(2),
//!     Body::AssistantMessage(vec![Block::text(Fidelity::AgentEmitted, "Found 2 issues.")]),
//! );
//! assert_eq!(said.body.event_type(), EventType::AssistantMessage);
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
mod distinct;
mod event;
mod header;
pub mod hex;
mod id;
pub mod json;
mod log;
mod money;
pub mod tree;
mod usage;
mod vocabulary;

pub use block::{Block, Content};
pub use distinct::Distinct;
pub use event::{
    Annotations, AnyBlock, AnyBody, Body, Draft, Event, Flags, Foreign, Notes, Place, Shape,
    Source, Step, StepEnd, ToolCall, ToolResult,
};
pub use header::{Environment, Header, Origin, Totals};
pub use id::{InvalidRunId, RunId};
pub use jiff::Timestamp;
pub use json::{InvalidJson, Json};
pub use log::{Attachment, LogBody, Note, NoteKind, Status};
pub use money::Money;
pub use usage::{Service, Usage};
pub use vocabulary::{BlockType, EventType, Fidelity, Role, UnknownWord};
