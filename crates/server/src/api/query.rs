//! What requests ask with: parameters, and which transcripts they mean.

use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequestParts, Query};
use http::request::Parts;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use quipu_search::when::{self, Clock};
use quipu_store::catalogue::{After, Filter, Order, Received};
use quipu_store::facade::{Listing, Project};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

use crate::App;
use crate::problem::Problem;

/// The parameters of a request. Those that are not known are rejected, so that a misspelt filter is not taken for none.
#[derive(Debug)]
pub(crate) struct Params<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequestParts<App> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _app: &App) -> Result<Self, Problem> {
        let read = Query::<T>::try_from_uri(&parts.uri);
        read.map(|Query(params)| Self(params)).map_err(|error| {
            use std::error::Error as _;
            let why = error
                .source()
                .map_or_else(|| error.to_string(), ToString::to_string);
            Problem::bad_request(format!("the parameters cannot be read: {why}"))
                .hint("/api/v1/openapi.json lists the parameters of each address")
        })
    }
}

/// What the address of a request names.
#[derive(Debug)]
pub(crate) struct Path<T>(pub(crate) T);

impl<T: DeserializeOwned + Send> FromRequestParts<App> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let read = axum::extract::Path::<T>::from_request_parts(parts, app).await;
        read.map(|axum::extract::Path(named)| Self(named))
            .map_err(|rejected| match rejected {
                PathRejection::FailedToDeserializePathParams(error) => {
                    Problem::bad_request(format!("the address cannot be read: {error}"))
                }
                _ => Problem::internal(),
            })
    }
}

/// How transcripts are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Sort {
    /// The latest first.
    #[default]
    Newest,
    /// The earliest first.
    Oldest,
    /// The most tokens first.
    Tokens,
    /// The longest logs first.
    Size,
    /// The most events first.
    Events,
}

impl From<Sort> for Order {
    fn from(sort: Sort) -> Self {
        match sort {
            Sort::Newest => Self::Newest,
            Sort::Oldest => Self::Oldest,
            Sort::Tokens => Self::Tokens,
            Sort::Size => Self::Size,
            Sort::Events => Self::Events,
        }
    }
}

/// Which transcripts figures are of: the filters of `quipu stats`.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Which {
    /// Only these agents, by name or the beginning of it; several with commas.
    pub(crate) agent: Option<String>,
    /// Only this directory and those below it, or directories with this name in their path.
    pub(crate) project: Option<String>,
    /// Only this branch.
    pub(crate) branch: Option<String>,
    /// Only models with this in their name.
    pub(crate) model: Option<String>,
    /// Only titles with this in them.
    pub(crate) title: Option<String>,
    /// Only what went on at this time or later: a date, RFC 3339, or an age such as `7d`.
    pub(crate) since: Option<String>,
    /// Only what began before the end of this.
    pub(crate) until: Option<String>,
    /// Count what others submitted as well. Without this, only one's own sessions are counted.
    pub(crate) received: bool,
}

/// Refuses a filter that is too long.
pub(crate) fn short(name: &'static str, value: Option<&str>) -> Result<(), Problem> {
    match value {
        Some(value) if value.len() > LONGEST => Err(Problem::bad_parameter(
            name,
            format!("longer than {LONGEST} bytes"),
        )),
        _ => Ok(()),
    }
}

/// The longest filter.
const LONGEST: usize = 1024;

impl Which {
    /// What is asked for, now. Days are those of a zone.
    pub(crate) fn listing(&self, now: Timestamp, zone: &TimeZone) -> Result<Listing, Problem> {
        let all = [
            ("agent", &self.agent),
            ("project", &self.project),
            ("branch", &self.branch),
            ("model", &self.model),
            ("title", &self.title),
        ];
        for (name, value) in all {
            short(name, value.as_deref())?;
        }
        let clock = Clock {
            now,
            zone: zone.clone(),
        };
        let wrong = |name: &'static str| {
            move |error: when::WhenError| Problem::bad_parameter(name, &error).hint(error.hint())
        };
        let since = self.since.as_deref().map(|text| when::since(text, &clock));
        let until = self.until.as_deref().map(|text| when::until(text, &clock));
        let since = since.transpose().map_err(wrong("since"))?;
        let until = until.transpose().map_err(wrong("until"))?;
        let agents = self.agent.as_deref().unwrap_or_default().split(',');
        let agents = agents.map(str::trim).filter(|name| !name.is_empty());
        let project = self.project.as_deref().map(|text| Project::new(text, None));
        let project = project.transpose();
        Ok(Listing {
            filter: Filter {
                agents: agents.map(str::to_lowercase).collect(),
                branch: self.branch.clone(),
                model: self.model.clone(),
                title: self.title.clone(),
                since: since.map(Timestamp::as_millisecond),
                until: until.map(Timestamp::as_millisecond),
                received: if self.received {
                    Received::With
                } else {
                    Received::AsUsual
                },
                ..Filter::default()
            },
            project: project.map_err(|error| Problem::bad_parameter("project", error))?,
            ..Listing::default()
        })
    }
}

/// Where a page begins, as it is told and sent back.
#[derive(Debug, Serialize, Deserialize)]
struct Cursor(Sort, Option<i64>, String);

/// Writes where the next page begins.
pub(crate) fn cursor(sort: Sort, after: &After) -> String {
    use base64::Engine as _;
    let cursor = Cursor(sort, after.key, after.run_id.clone());
    let text = serde_json::to_vec(&cursor).unwrap_or_default();
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(text)
}

/// Reads where a page begins.
pub(crate) fn after(sort: Sort, text: &str) -> Result<After, Problem> {
    use base64::Engine as _;
    let wrong = || Problem::bad_parameter("cursor", "it is not one that this server gave out");
    if text.len() > 4 * LONGEST {
        return Err(wrong());
    }
    let bytes = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(text);
    let bytes = bytes.map_err(|_| wrong())?;
    let Cursor(of, key, run_id) = serde_json::from_slice(&bytes).map_err(|_| wrong())?;
    if of != sort {
        let why = "it is of another order";
        return Err(Problem::bad_parameter("cursor", why).hint("send the same `sort` with it"));
    }
    Ok(After {
        order: sort.into(),
        key,
        run_id,
    })
}

/// The largest number of an event: those beyond are not exact in JavaScript.
const LAST: u64 = (1 << 53) - 1;

/// The first event that is asked for.
pub(crate) fn first(asked: Option<u64>) -> Result<u64, Problem> {
    match asked {
        None => Ok(1),
        Some(0) => Err(Problem::bad_parameter("from", "events are numbered from 1")),
        Some(seq) if seq > LAST => Err(Problem::bad_parameter(
            "from",
            format!("{seq} is more than {LAST}"),
        )),
        Some(seq) => Ok(seq),
    }
}

/// A number of things, within what is allowed.
pub(crate) fn limit(asked: Option<usize>, usual: usize, most: usize) -> Result<usize, Problem> {
    match asked {
        None => Ok(usual),
        Some(n) if (1..=most).contains(&n) => Ok(n),
        Some(n) => Err(Problem::bad_parameter(
            "limit",
            format!("{n} is not from 1 to {most}"),
        )),
    }
}
