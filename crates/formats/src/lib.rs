//! File formats: bytes to the model and back.
//!
//! One module per format. Each says, as data, what it cannot carry; reading never fails as a whole,
//! it gives what was understood and says what was not; writing is strict.
//!
//! | module | format |
//! |---|---|
//! | [`agentlog`] | `.agentlog` traces: content-addressed records |
//! | [`atif`] | ATIF, the trajectory format of Harbor |
//! | [`claude`], [`codex`] | session files that those agents resume |
//! | [`exchange`] | sessions as exchange transcripts, the format of `quipu-exchange` |
//! | [`flow`] | run directories: transcripts and receipts of workflow steps |
//! | [`html`], [`markdown`], [`text`] | for people |
//! | [`normalized`] | the normalized transcript, which has a place for everything |
//! | [`otlp`] | OpenTelemetry traces |
//! | `parquet` | tables of events and calls (feature `parquet`) |
//! | [`sts`] | sessions as the Hugging Face Hub shows them |
//!
//! [`projection`] is the seam of all that write sessions.
//!
//! `quipu-exchange` has the lines of transcripts and the reader of lines; [`loss`] is what formats say they cannot carry.
//!
//! ```
//! use quipu_exchange::{encode, Escapes, Reader};
//! use quipu_model::{Annotations, Body, Event, Place, RunId, Step};
//!
//! let event = Event {
//!     seq: 1,
//!     run_id: RunId::new("r1").unwrap(),
//!     parent_run_id: None,
//!     timestamp: "2026-06-08T08:14:42.123Z".parse().unwrap(),
//!     place: Place::step("build"),
//!     body: Body::StepStarted(Step::new("build", "command")),
//!     annotations: Annotations::default(),
//! };
//! let mut line = Vec::new();
//! encode(&event, Escapes::Plain, &mut line);
//! assert_eq!(
//!     String::from_utf8_lossy(&line),
//!     concat!(
//!         r#"{"seq":1,"run_id":"r1","type":"step.started","path":"build","iteration":0,"#,
//!         r#""timestamp":"2026-06-08T08:14:42.123Z","payload":{"name":"build","kind":"command"}}"#,
//!         "\n",
//!     ),
//! );
//! let mut reader = Reader::new(&line[..]);
//! let read = reader.next_decoded().unwrap().unwrap().unwrap();
//! assert_eq!(read.event, event);
//! ```

pub mod agentlog;
pub mod atif;
pub mod claude;
pub mod codex;
mod ended;
pub mod exchange;
pub mod flow;
mod handover;
pub mod html;
pub mod loss;
pub mod markdown;
pub mod normalized;
pub mod otlp;
#[cfg(feature = "parquet")]
pub mod parquet;
pub mod plain;
pub mod projection;
mod shape;
pub mod sts;
pub mod text;

#[cfg(any(test, feature = "testkit"))]
pub mod arbitrary;
