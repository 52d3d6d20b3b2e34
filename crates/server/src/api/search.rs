//! Search over everything that is kept.

use axum::extract::State;
use axum::response::Response;
use http::HeaderMap;
use http::header::CACHE_CONTROL;
use jiff::tz::TimeZone;
use quipu_api::serve::SearchAnswer;
use quipu_search::query::{Clock, Query};
use quipu_store::documents;
use quipu_store::facade::Census;
use quipu_store::search::{Ask, SearchError, Show, Sort as Order};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::query::{Params, limit};
use crate::App;
use crate::access::MayRead;
use crate::answer::Ready;
use crate::problem::Problem;

/// What comes first.
#[derive(Debug, Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Sort {
    /// What fits best.
    #[default]
    Relevance,
    /// The latest.
    Newest,
    /// What was said in the dearest sessions.
    Cost,
}

/// What is looked for.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Wanted {
    /// Words, "phrases" and filters such as `agent:codex tool:bash since:7d`: as `quipu search` takes them.
    #[param(
        required = true,
        min_length = 1,
        max_length = 4096,
        example = "agent:codex tool:bash since:7d"
    )]
    q: String,
    /// What comes first.
    #[param(inline)]
    sort: Sort,
    /// How many at most: 1 to 200, 20 unless told.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<usize>,
    /// How many events before and after each: 0 to 10.
    #[param(maximum = 10)]
    context: Option<u64>,
    /// Also what was said in copies of sessions.
    copies: bool,
    /// How long snippets are, in bytes: 40 to 4,000, 300 unless told.
    #[param(minimum = 40, maximum = 4000)]
    snippet: Option<usize>,
    /// Answer a query that cannot be read with what is wrong with it (`problem`) and no hits, in place of 400: for fields that
    /// ask with every letter, where half a query is no error.
    lenient: bool,
}

/// The longest query.
const LONGEST: usize = 4096;

/// Events that say something. Secrets are hidden.
#[utoipa::path(
    get,
    path = "/api/v1/search",
    operation_id = "search",
    tag = "search",
    params(Wanted),
    responses((status = 200, body = SearchAnswer), (status = 400, body = Problem))
)]
pub(crate) async fn search(
    State(app): State<App>,
    _: MayRead,
    Params(wanted): Params<Wanted>,
    uri: http::Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    // A query may name times such as `7d`; the minute is part of the question.
    let minute = app.clock().now().as_second() / 60;
    let question = format!("search {minute} {}", uri.query().unwrap_or_default());
    let version = app.freshness().number();
    // Whoever just changed something asks for what is there now; the system may not have said so yet.
    let anew = headers
        .get(CACHE_CONTROL)
        .is_some_and(|it| it == "no-cache");
    if !anew && let Some(ready) = app.cache().get(&question, version) {
        return Ok(ready.respond(&headers));
    }
    let lenient = wanted.lenient;
    let answer = match look(&app, wanted).await {
        Err(problem) if lenient => SearchAnswer {
            problem: Some(problem.of_query("q").ok_or(problem)?),
            ..nothing()
        },
        answer => answer?,
    };
    let ready = Ready::json(&answer)?;
    app.cache().put(&question, version, &ready);
    Ok(ready.respond(&headers))
}

fn nothing() -> SearchAnswer {
    SearchAnswer {
        hits: Vec::new(),
        more: false,
        not_indexed: 0,
        problem: None,
    }
}

async fn look(app: &App, wanted: Wanted) -> Result<SearchAnswer, Problem> {
    let limit = limit(wanted.limit, 20, 200)?;
    let context = wanted.context.unwrap_or(0);
    let snippet = wanted.snippet.unwrap_or(300);
    if context > 10 {
        return Err(Problem::bad_parameter("context", "it is from 0 to 10"));
    }
    if !(40..=4000).contains(&snippet) {
        return Err(Problem::bad_parameter("snippet", "it is from 40 to 4,000"));
    }
    if wanted.q.trim().is_empty() {
        return Err(Problem::bad_parameter(
            "q",
            "it says what to look for, and is empty",
        ));
    }
    if wanted.q.len() > LONGEST {
        return Err(Problem::bad_parameter(
            "q",
            format!("it is longer than {LONGEST} bytes"),
        ));
    }
    let clock = Clock {
        now: app.clock().now(),
        zone: TimeZone::system(),
    };
    let query = Query::parse(&wanted.q, &clock).map_err(|error| {
        let problem = Problem::bad_parameter("q", &error.what).at(error.at.clone());
        match &error.hint {
            Some(hint) => problem.hint(hint.clone()),
            None => problem,
        }
    })?;
    let prices = app.prices().clone();
    app.read(move |store| {
        let ask = Ask {
            query: &query,
            sort: match wanted.sort {
                Sort::Relevance => Order::Relevance,
                Sort::Newest => Order::Newest,
                Sort::Cost => Order::Cost,
            },
            limit,
            context,
            copies: wanted.copies,
            snippet,
            guard: Show::Guarded,
        };
        let answer = match store.search(&ask, &prices) {
            // Nothing was imported, so there is nothing to find.
            Err(SearchError::NoIndex) if store.census()? == Census::default() => {
                return Ok(nothing());
            }
            answer => answer?,
        };
        let guard = store.guard()?;
        let hits = answer
            .found
            .iter()
            .map(|found| documents::hit(found, guard));
        Ok(SearchAnswer {
            hits: hits.collect(),
            more: answer.more,
            not_indexed: answer.not_indexed,
            problem: None,
        })
    })
    .await
}

impl From<SearchError> for Problem {
    fn from(error: SearchError) -> Self {
        match error {
            SearchError::NoIndex => Self::new(
                http::StatusCode::SERVICE_UNAVAILABLE,
                "no_index",
                "There is no search index yet",
            )
            .detail(error.to_string()),
            SearchError::Pattern(why) => Self::bad_parameter("q", why),
            SearchError::Read(error) => error.into(),
            error => Self::store(error),
        }
    }
}
