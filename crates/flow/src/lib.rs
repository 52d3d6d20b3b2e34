//! Workflows whose every step, message and tool call is on the record.
//!
//! A workflow is a YAML file of steps and the ways between them. The crate reads and checks it, runs it, and records
//! what happens as a run like any other: one transcript per run, one event per thing that happened.
//!
//! # What it promises
//!
//! * **The transcript is the state.** No other file says how far a run came. A run that was killed goes on from its
//!   transcript; steps that ended answer from it, and nothing that completed runs twice.
//! * **Every execution of a step has a place**: its dot path, the passes through the loops around it, the attempt.
//!   Messages and tool calls have it too, so agents that run at once can be told apart.
//! * **What an agent was sent is what the transcript says**: prompt and system prompt, to the letter.
//! * **What was said is kept**, also of an agent that fails, hangs or is cancelled.
//! * **Cancelling ends everything that a run started**, and the transcript says so.
//! * **A run that cannot be recorded stops** before the next side effect.
//! * **Tools stay below the workflow's root.** Paths are opened, not compared.
//!
//! # An example
//!
//! ```
//! use std::sync::Arc;
//! use quipu_flow::agent::{AgentOptions, Agents, Stub};
//! use quipu_flow::definition::{load::parse, places::Places};
//! use quipu_flow::engine::{Engine, EngineOptions, RunStatus};
//!
//! let root = tempfile::tempdir()?;
//! let places = Places::from_env(root.path());
//! let text = r#"
//! name: greet
//! states:
//!   initial: hello
//!   hello: {type: command, command: "printf hello", on_success: done}
//!   done: {type: terminal, status: success, message: "{{.states.hello.Output}}, world"}
//! "#;
//! let loaded = parse(text, "greet.yaml".as_ref(), &places)?;
//!
//! let mut options = EngineOptions::new(root.path(), root.path(), places);
//! options.agents = Agents::new(AgentOptions { stub: Some(Stub::Fixed), ..AgentOptions::default() });
//! let running = Engine::new(options);
//! let outcome = tokio::runtime::Runtime::new()?.block_on(async {
//!     running.run(Arc::new(loaded.workflow), Default::default(), &Default::default()).await
//! })?;
//! assert_eq!(outcome.status, RunStatus::Succeeded);
//! assert_eq!(outcome.message.as_deref(), Some("hello, world"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Where things are
//!
//! | module | what it owns |
//! |---|---|
//! | [`definition`] | the file: reading, checking, drawing, planning, its JSON Schema |
//! | [`template`], [`expression`] | texts with `{{…}}`, conditions |
//! | [`engine`] | running: steps, values, recording, resuming, budgets, the audit file |
//! | [`launch`] | what every program that runs workflows sets up in the same way |
//! | [`agent`] | providers: what each agent is given, how its stream is heard, stubs |
//! | [`tools`] | the router, tools for files and the shell, MCP servers |
//! | [`operation`] | what Quipu can do by itself in a step |
//! | [`plugin`] | programs that give operations, kinds of steps and tools |
//! | [`process`] | programs that end with all that they started |
//! | [`beneath`] | files below a root, and nowhere else |
//! | [`http`] | requests with limits |

pub mod agent;
pub mod beneath;
pub mod definition;
pub mod engine;
pub mod expression;
pub mod http;
pub mod launch;
mod names;
pub mod operation;
pub mod plugin;
pub mod process;
pub mod template;
pub mod tools;
