//! What was spent and done, and the proof of it.

use axum::extract::State;
use axum::response::Response;
use http::HeaderMap;
use jiff::tz::TimeZone;
use quipu_api::explain::ExplainedSession;
use quipu_api::stats::{Budgets, Stats, WasteReport};
use quipu_store::catalogue::Filter;
use quipu_store::documents;
use quipu_store::stats::By;
use serde::Deserialize;
use utoipa::IntoParams;

use super::query::{Params, Path, Which};
use super::transcripts::{find, with_question};
use crate::App;
use crate::access::MayRead;
use crate::answer::{Ready, json};
use crate::problem::Problem;

/// Which figures.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Wanted {
    /// Only these agents, by name or the beginning of it; several with commas.
    agent: Option<String>,
    /// Only this directory and those below it, or directories with this name in their path.
    project: Option<String>,
    /// Only this branch.
    branch: Option<String>,
    /// Only models with this in their name.
    model: Option<String>,
    /// Only titles with this in them.
    title: Option<String>,
    /// Only what went on at this time or later: a date, RFC 3339, or an age such as `7d`.
    since: Option<String>,
    /// Only what began before the end of this.
    until: Option<String>,
    /// How figures are grouped: `day`, `week`, `month`, `agent`, `model`, `project`, `branch`, `tool`, `session`,
    /// `subagent`; several with commas. By day unless told.
    by: Option<String>,
    /// Count what others submitted as well. Without this, only one's own sessions are counted.
    received: bool,
    /// The time zone that days are of, also those of `since` and `until`, such as `Europe/Berlin`. That of the server unless told.
    zone: Option<String>,
}

/// Which waste.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct WasteWanted {
    /// Only these agents, by name or the beginning of it; several with commas.
    agent: Option<String>,
    /// Only this directory and those below it, or directories with this name in their path.
    project: Option<String>,
    /// Only this branch.
    branch: Option<String>,
    /// Only models with this in their name.
    model: Option<String>,
    /// Only titles with this in them.
    title: Option<String>,
    /// Only what went on at this time or later: a date, RFC 3339, or an age such as `7d`.
    since: Option<String>,
    /// Only what began before the end of this.
    until: Option<String>,
    /// Count what others submitted as well. Without this, only one's own sessions are counted.
    received: bool,
    /// The time zone that days are of, also those of `since` and `until`, such as `Europe/Berlin`. That of the server unless told.
    zone: Option<String>,
    /// How many sessions of each kind, the worst first: 0 to 100, 5 unless told.
    #[param(maximum = 100)]
    worst: Option<usize>,
}

impl WasteWanted {
    fn which(&self) -> Which {
        Which {
            agent: self.agent.clone(),
            project: self.project.clone(),
            branch: self.branch.clone(),
            model: self.model.clone(),
            title: self.title.clone(),
            since: self.since.clone(),
            until: self.until.clone(),
            received: self.received,
        }
    }
}

impl Wanted {
    fn which(&self) -> Which {
        Which {
            agent: self.agent.clone(),
            project: self.project.clone(),
            branch: self.branch.clone(),
            model: self.model.clone(),
            title: self.title.clone(),
            since: self.since.clone(),
            until: self.until.clone(),
            received: self.received,
        }
    }

    fn by(&self) -> Result<Vec<By>, Problem> {
        let Some(text) = &self.by else {
            return Ok(vec![By::Day]);
        };
        let words = text
            .split(',')
            .map(str::trim)
            .filter(|word| !word.is_empty());
        let by = words.map(|word| {
            let known = By::ALL.iter().find(|by| by.as_str() == word);
            known.copied().ok_or_else(|| {
                let all: Vec<&str> = By::ALL.iter().map(|by| by.as_str()).collect();
                Problem::bad_parameter("by", format!("{word:?} is not a group"))
                    .hint(format!("groups are {}", all.join(", ")))
            })
        });
        by.collect()
    }
}

pub(crate) fn zone(name: Option<&str>) -> Result<TimeZone, Problem> {
    match name {
        None => Ok(TimeZone::system()),
        Some(name) => TimeZone::get(name)
            .map_err(|_| Problem::bad_parameter("zone", format!("{name:?} is not a time zone"))),
    }
}

/// Tokens and dollars by group.
#[utoipa::path(
    get,
    path = "/api/v1/stats",
    operation_id = "getStats",
    tag = "figures",
    params(Wanted),
    responses((status = 200, body = Stats), (status = 400, body = Problem))
)]
pub(crate) async fn stats(
    State(app): State<App>,
    _: MayRead,
    Params(wanted): Params<Wanted>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (by, zone) = (wanted.by()?, zone(wanted.zone.as_deref())?);
    let listing = wanted.which().listing(app.clock().now(), &zone)?;
    let prices = app.prices().clone();
    let stats = app
        .read(move |store| {
            with_question(store, &listing, &by, &prices, &zone, |question| {
                question
                    .check()
                    .map_err(|error| Problem::bad_parameter("by", error))?;
                Ok(documents::stats(&store.stats(question)?))
            })
        })
        .await?;
    json(&stats, &headers)
}

/// What need not have been paid for.
#[utoipa::path(
    get,
    path = "/api/v1/waste",
    operation_id = "getWaste",
    tag = "figures",
    params(WasteWanted),
    responses((status = 200, body = WasteReport), (status = 400, body = Problem))
)]
pub(crate) async fn waste(
    State(app): State<App>,
    _: MayRead,
    Params(wanted): Params<WasteWanted>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let zone = zone(wanted.zone.as_deref())?;
    let listing = wanted.which().listing(app.clock().now(), &zone)?;
    let worst = wanted.worst.unwrap_or(5);
    if worst > 100 {
        return Err(Problem::bad_parameter("worst", "it is from 0 to 100"));
    }
    let prices = app.prices().clone();
    let report = app
        .read(move |store| {
            with_question(store, &listing, &[], &prices, &zone, |question| {
                let waste = store.waste(question, worst)?;
                Ok(WasteReport {
                    waste: waste.iter().map(documents::waste).collect(),
                })
            })
        })
        .await?;
    json(&report, &headers)
}

/// In which days.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct BudgetsWanted {
    /// The time zone that days are of, such as `Europe/Berlin`. That of the configuration unless told, or else of the server.
    zone: Option<String>,
}

/// Budgets that the configuration sets, and what was spent of them: what `quipu stats budget` says. Of sessions, those that
/// went on today and exceed their limit.
#[utoipa::path(
    get,
    path = "/api/v1/budgets",
    operation_id = "getBudgets",
    tag = "figures",
    params(BudgetsWanted),
    responses((status = 200, body = Budgets), (status = 400, body = Problem))
)]
pub(crate) async fn budgets(
    State(app): State<App>,
    _: MayRead,
    Params(wanted): Params<BudgetsWanted>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let own = app.options().zone.clone();
    let zone = match (wanted.zone.as_deref(), own) {
        (None, Some(own)) => own,
        (asked, _) => zone(asked)?,
    };
    let now = app.clock().now();
    // A day may end; the minute is part of the question.
    let minute = now.as_second() / 60;
    let named = wanted.zone.as_deref().unwrap_or_default();
    let question = format!("budgets {minute} {named}");
    let version = app.freshness().number();
    if let Some(ready) = app.cache().get(&question, version) {
        return Ok(ready.respond(&headers));
    }
    let (prices, inner) = (app.prices().clone(), app.clone());
    let found = app
        .read(move |store| {
            let limits = &inner.options().budgets;
            let balances = store.balances(limits, now, &zone, &prices)?;
            Ok(Budgets {
                budgets: balances.iter().map(documents::balance).collect(),
            })
        })
        .await?;
    let ready = Ready::json(&found)?;
    app.cache().put(&question, version, &ready);
    Ok(ready.respond(&headers))
}

/// What a transcript cost, call by call: the proof of its figure.
#[utoipa::path(
    get,
    path = "/api/v1/transcripts/{id}/cost",
    operation_id = "getCost",
    tag = "transcripts",
    params(("id" = String, Path, description = "Its id, the beginning of one, or `last`")),
    responses((status = 200, body = ExplainedSession), (status = 404, body = Problem))
)]
pub(crate) async fn cost(
    State(app): State<App>,
    _: MayRead,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let prices = app.prices().clone();
    let explained = app
        .work(move |store| {
            let row = find(store, &id)?;
            let explained = store.explain(row, &Filter::default(), &prices)?;
            Ok(documents::explained(&explained))
        })
        .await?;
    json(&explained, &headers)
}
