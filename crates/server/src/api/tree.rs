//! The tree of a transcript: the steps of a run across its child runs, or a session with its sub-agents.

use std::collections::HashSet;

use axum::extract::State;
use axum::response::Response;
use http::HeaderMap;
use quipu_api::tree::{Forest, SessionTree, TreeSession};
use quipu_exchange::lines::Limits;
use quipu_record::Storage;
use quipu_store::Store;
use quipu_store::catalogue::TranscriptRow;
use quipu_store::documents;
use serde::Serialize;
use utoipa::ToSchema;

use super::query::Path;
use super::transcripts::find;
use crate::App;
use crate::access::MayRead;
use crate::answer::json;
use crate::problem::Problem;

/// The tree of a transcript.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Tree {
    /// The steps of a recorded run, and of the runs that it called.
    Run(Forest),
    /// A session with its sub-agents.
    Session(SessionTree),
}

/// The steps of a run, or the sub-agents of a session.
#[utoipa::path(
    get,
    path = "/api/v1/transcripts/{id}/tree",
    operation_id = "getTree",
    tag = "transcripts",
    params(("id" = String, Path, description = "Its id, the beginning of one, or `last`")),
    responses((status = 200, body = Tree), (status = 404, body = Problem))
)]
pub(crate) async fn tree(
    State(app): State<App>,
    _: MayRead,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let tree = app
        .work(move |store| {
            let row = find(store, &id)?;
            if row.recorded {
                run(store, &row)
            } else {
                sessions(store, row)
            }
        })
        .await?;
    json(&tree, &headers)
}

fn run(store: &Store, row: &TranscriptRow) -> Result<Tree, Problem> {
    let mut forest = Storage::around(&row.path)
        .forest(&row.path, Limits::default(), |_| {})
        .map_err(Problem::store)?;
    documents::hide_names(&mut forest, store.guard()?);
    Ok(Tree::Run(documents::forest(&forest)))
}

/// How many sessions are followed, and how deep.
const MOST: usize = 10_000;
const DEEPEST: u64 = 64;

fn sessions(store: &Store, row: TranscriptRow) -> Result<Tree, Problem> {
    let (mut stack, mut sessions) = (vec![(row, 0)], Vec::new());
    let mut seen = HashSet::new();
    while let Some((row, depth)) = stack.pop() {
        let again = !seen.insert(row.id);
        sessions.push(TreeSession {
            transcript: documents::transcript(&row),
            depth,
        });
        if again || depth >= DEEPEST || sessions.len() + stack.len() >= MOST {
            continue;
        }
        let children = store.children(&row.native)?;
        stack.extend(children.into_iter().rev().map(|child| (child, depth + 1)));
    }
    Ok(Tree::Session(SessionTree { sessions }))
}
