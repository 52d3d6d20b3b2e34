//! What the page asks for first: the shape of a transcript, and who is looking at it.

use axum::extract::State;
use axum::response::Response;
use axum::{Extension, Json};
use http::HeaderMap;
use quipu_api::cord::{Cord, Me};

use super::analysis::worked_out;
use super::query::Path;
use crate::App;
use crate::access::{Caller, MayRead};
use crate::page::may_have_token;
use crate::problem::Problem;

/// A letter for each event, and the first lines of messages: the whole transcript at a glance.
#[utoipa::path(
    get,
    path = "/api/v1/transcripts/{id}/cord",
    operation_id = "getCord",
    tag = "transcripts",
    params(("id" = String, Path, description = "Its id, the beginning of one, or `last`")),
    responses((status = 200, body = Cord), (status = 404, body = Problem))
)]
pub(crate) async fn cord(
    State(app): State<App>,
    _: MayRead,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let question = format!("cord {id}");
    worked_out(&app, question, id, &headers, |store, row| {
        Ok(store.cord(row)?)
    })
    .await
}

/// Who asks, and what they may do. The page of the owner gets the token of this start here: pages of other sites cannot read
/// the answer, and other users are refused before.
#[utoipa::path(
    get,
    path = "/api/v1/me",
    operation_id = "getMe",
    tag = "server",
    responses((status = 200, body = Me))
)]
pub(crate) async fn me(State(app): State<App>, Extension(caller): Extension<Caller>) -> Json<Me> {
    let token = may_have_token(&app, &caller).then(|| app.token().expose().to_owned());
    let who = match &caller {
        Caller::Owner => "owner",
        Caller::Local => "local",
        Caller::Key(_) => "key",
        Caller::Nobody => "nobody",
    };
    Json(Me {
        who: who.to_owned(),
        read: caller.may_read(),
        write: caller.may_write() || token.is_some(),
        token,
    })
}
