//! Run control: workflows that are started, followed, cancelled, approved, answered and resumed over HTTP.
//!
//! ```text
//!  POST /executions ──► launch ──► Engine::run_as ──► transcripts/<id>.jsonl ──► whoever follows it
//!        │                 │
//!        │                 └─ runs: one entry per run of this process: steps, questions, cost, end
//!        └─ others: runs of other processes, from their transcripts and from who holds the lock on them
//! ```
//!
//! * **The transcript is the state.** What is in memory is what a transcript cannot say: the token of an approval, the
//!   question that waits, whom to tell to stop. After the server was killed its runs are `lost`, and can be resumed.
//! * **A run that was cancelled has ended**: the answer comes when its processes are gone and its end is recorded.
//! * **Only workflows that can be named are run**, in directories beneath [`Options::work_directory`](crate::Options), with the inputs
//!   that they declare. Inputs become variables of commands; a caller who could name any would choose `PATH`.
//! * **Who approves is who asks**: the id of the key, or the user of the system who runs the server.

mod actions;
mod body;
mod executions;
mod launch;
mod others;
mod runs;
#[cfg(test)]
mod tests;
mod view;
mod workflows;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use quipu_flow::launch::system_user;
use quipu_flow::process::ProcessTree;
use quipu_record::Masker;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::App;
use crate::access::Caller;
use runs::Runs;

pub(crate) use actions::{Ended, WAIT, end};
pub(crate) use others::is_locked;

/// What run control keeps.
pub(crate) struct Control {
    runs: Runs,
    others: others::Others,
    /// Who runs the server.
    user: String,
    masker: OnceLock<Arc<Masker>>,
}

impl Control {
    /// Runs at most so many at once.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            runs: Runs::new(most),
            others: others::Others::default(),
            user: system_user(),
            masker: OnceLock::new(),
        }
    }

    /// Who somebody is for a workflow that says who may approve.
    fn user_of(&self, caller: &Caller) -> String {
        match caller {
            Caller::Key(key) => key.key_id.clone(),
            Caller::Owner | Caller::Local | Caller::Nobody => self.user.clone(),
        }
    }

    /// What sees every event before it is recorded. There is always one, so that values of secret inputs are masked.
    fn masker(&self) -> Arc<Masker> {
        let nothing = || Arc::new(|_: &mut _| {}) as Arc<Masker>;
        self.masker.get().cloned().unwrap_or_else(nothing)
    }
}

/// Masks what is recorded of runs that this server starts, as `[redact] record` asks for. For the program around the server,
/// before it serves; the first one holds.
pub fn mask_with(app: &App, masker: Arc<Masker>) {
    drop(app.control().masker.set(masker));
}

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(workflows::list))
        .routes(routes!(workflows::validate))
        .routes(routes!(workflows::one))
        .routes(routes!(executions::list, executions::start))
        .routes(routes!(executions::one))
        .routes(routes!(actions::cancel))
        .routes(routes!(actions::approve))
        .routes(routes!(actions::deny))
        .routes(routes!(actions::answer))
        .routes(routes!(actions::resume))
}

/// Cancels all runs and waits until they have ended and said so in their transcripts, but not longer than `grace`. What is left
/// then is killed; such runs are lost, and can be resumed.
pub(crate) async fn finish(app: &App, grace: Duration) {
    let running = app.control().runs.end();
    let all = async {
        for run in &running {
            run.ended().await;
        }
    };
    if tokio::time::timeout(grace, all).await.is_err() {
        ProcessTree::kill_all_below(std::process::id());
    }
}
