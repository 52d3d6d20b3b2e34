//! The list of runs, one run, and those to learn from.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::response::IntoResponse as _;
use http::{HeaderMap, StatusCode};
use quipu_model::RunId;
use quipu_store::Store;
use serde_json::{Map, Value, json};

use super::Studio;
use super::brief::{Brief, is_over};
use super::facts::dollars;
use super::fault::{Answered, Fault};
use super::folder::Folder;
use super::params::{Ids, Params, Reading, Writing};
use super::record::iso;
use super::runs::Run;
use crate::access::MayWrite;
use crate::answer::json as answer;
use crate::control::{self, Ended};

const LIMIT: i64 = 100;
const LARGEST: i64 = 500;

/// Marks of people, by the path of a run.
type Marks = BTreeMap<String, bool>;

/// All runs: examples first, then the newest.
pub(super) fn sorted(studio: &Studio) -> Vec<(Run, Arc<Brief>)> {
    let all = studio.places.all().into_iter();
    let mut all: Vec<_> = all
        .map(|run| {
            let brief = studio.brief(&run);
            (run, brief)
        })
        .collect();
    all.sort_by(|(a, about_a), (b, about_b)| {
        let key = |run: &Run, brief: &Brief| (run.kind, Reverse(brief.order));
        key(a, about_a)
            .cmp(&key(b, about_b))
            .then_with(|| b.id.cmp(&a.id))
    });
    all
}

fn marks(studio: &Studio) -> Result<Marks, Fault> {
    let marks = studio.exemplars.all();
    marks.map_err(|error| Fault::unreadable("the marks of runs", error))
}

fn is_exemplar(run: &Run, brief: &Brief, marks: &Marks) -> bool {
    let marked = marks.get(&*run.path().to_string_lossy());
    marked.copied().unwrap_or(brief.is_exemplar)
}

/// A row of the list.
fn row(studio: &Studio, store: &Store, run: &Run, brief: &Brief, marks: &Marks) -> Value {
    let time = |at: Option<quipu_model::Timestamp>| at.map(iso);
    let folder = run.directory.as_deref().and_then(Folder::open);
    let facts = folder.map(|folder| studio.facts(&folder, run));
    let (mut tokens, mut cost) = (Value::Null, Value::Null);
    if let Some(facts) = &facts {
        tokens = facts.totals.tokens();
        cost = facts.totals.cost();
    }
    if let Some(transcript) = &run.transcript
        && let Ok(rows) = store.transcripts_at(transcript)
        && let [kept] = rows.as_slice()
    {
        if tokens.is_null() && !kept.usage.is_empty() {
            let usage = &kept.usage;
            let prompt = [usage.input, usage.cache_read, usage.cache_write];
            let prompt = prompt.into_iter().flatten().reduce(u64::saturating_add);
            let both = prompt.zip(usage.output);
            let total = both.map(|(a, b)| a.saturating_add(b));
            tokens = json!({ "prompt": prompt, "completion": usage.output, "total": total });
        }
        let said = kept
            .vendor_cost
            .as_deref()
            .and_then(quipu_model::Money::parse);
        if cost.is_null()
            && let Some(said) = said
        {
            cost = dollars(said);
        }
    }
    let simulated = facts.as_ref().map(|facts| {
        let totals = &facts.totals;
        totals.receipts > 0 && totals.simulated == totals.receipts
    });
    let mut row = json!({
        "run_id": run.id,
        "run_type": run.kind.word(),
        "path": run.path().to_string_lossy(),
        "title": brief.title,
        "description": brief.description,
        "tags": brief.tags,
        "is_exemplar": is_exemplar(run, brief, marks),
        "status": brief.status,
        "created_at": time(brief.created.or(brief.started)),
        "started_at": time(brief.started),
        "completed_at": time(brief.completed),
        "tokens": tokens,
        "cost_usd": cost,
        "simulated": simulated,
        "recorded": run.transcript.is_some(),
    });
    // Clients take it for a text when it is there.
    if let (Value::Object(fields), Some(backend)) = (&mut row, &brief.backend) {
        fields.insert("backend".to_owned(), backend.clone().into());
    }
    row
}

/// `GET /api/runs`
pub(super) async fn list(ask: Reading, params: Params, headers: HeaderMap) -> Answered {
    let limit = params.integer("limit")?.unwrap_or(LIMIT).clamp(1, LARGEST);
    let offset = params.integer("offset")?.unwrap_or(0).max(0);
    let answered = ask.read(move |studio, store| {
        let all = sorted(studio);
        let marks = marks(studio)?;
        let (skip, take) = (
            usize::try_from(offset).unwrap_or(usize::MAX),
            usize::try_from(limit).unwrap_or(1),
        );
        let page = all.iter().skip(skip).take(take);
        let rows = page.map(|(run, brief)| row(studio, store, run, brief, &marks));
        let rows: Vec<Value> = rows.collect();
        Ok(json!({
            "runs": rows,
            "total": all.len(),
            "limit": limit,
            "offset": offset,
            "has_more": skip.saturating_add(take) < all.len(),
        }))
    });
    Ok(answer(&answered.await?, &headers)?)
}

/// `GET /api/runs/{id}`
pub(super) async fn one(ask: Reading, ids: Ids, headers: HeaderMap) -> Answered {
    let answered = ask.read(move |studio, store| {
        let run = studio.find(&ids.id)?;
        let brief = studio.brief(&run);
        let mut row = row(studio, store, &run, &brief, &marks(studio)?);
        if let Value::Object(fields) = &mut row {
            let folder = studio.folder(&run)?;
            fields.insert("flows".to_owned(), folder.flow_keys().into());
            fields.insert("error".to_owned(), brief.error.clone().into());
            fields.insert("meta".to_owned(), brief.meta.clone().into());
        }
        Ok(row)
    });
    Ok(answer(&answered.await?, &headers)?)
}

/// `GET /api/runs/exemplars`
pub(super) async fn exemplars(ask: Reading, headers: HeaderMap) -> Answered {
    let answered = ask.read(|studio, _| {
        let marks = marks(studio)?;
        let all = sorted(studio).into_iter();
        let marked = all.filter(|(run, brief)| is_exemplar(run, brief, &marks));
        let runs: Vec<Value> = marked
            .map(|(run, brief)| {
                let mut meta = match &brief.meta {
                    Some(Value::Object(meta)) => meta.clone(),
                    _ => Map::new(),
                };
                meta.entry("id").or_insert_with(|| run.id.clone().into());
                meta.insert("run_id".to_owned(), run.id.clone().into());
                meta.insert("is_exemplar".to_owned(), true.into());
                Value::Object(meta)
            })
            .collect();
        Ok(json!({ "runs": runs }))
    });
    Ok(answer(&answered.await?, &headers)?)
}

/// `POST /api/runs/{id}/exemplar`
pub(super) async fn set_exemplar(
    Writing(ask): Writing,
    ids: Ids,
    params: Params,
    headers: HeaderMap,
) -> Answered {
    let is_exemplar = params.truth("is_exemplar")?.unwrap_or(true);
    let answered = ask.read(move |studio, _| {
        let Some(run) = studio.places.find(&ids.id) else {
            return Err(Fault::missing("Run not found").with("run_id", ids.id));
        };
        let set = studio.exemplars.set(run.path(), is_exemplar);
        set.map_err(|error| {
            let why = format!("The mark could not be kept: {error}");
            Fault::new(StatusCode::INTERNAL_SERVER_ERROR, why)
        })?;
        Ok(json!({ "status": "updated", "run_id": run.id, "is_exemplar": is_exemplar }))
    });
    Ok(answer(&answered.await?, &headers)?)
}

/// `POST /api/runs/{id}/cancel`: our own runs are cancelled as by `/api/v1`; those of other programs are not ours to stop.
pub(super) async fn cancel(
    Writing(ask): Writing,
    MayWrite(caller): MayWrite,
    ids: Ids,
) -> Answered {
    let asked = ids.id.clone();
    let found = ask.read(move |studio, _| {
        let run = studio.places.find(&asked);
        let is_own = run.as_ref().is_some_and(|run| run.transcript.is_some());
        let run = run.filter(|run| {
            let status = studio.brief(run).status.clone();
            status.as_deref().is_some_and(|status| !is_over(status))
        });
        Ok((run.is_some(), is_own))
    });
    let (goes_on, is_own) = found.await?;
    let over = || Fault::missing("Run not found or already completed").with("run_id", &*ids.id);
    if let Some(id) = RunId::new(&ids.id).ok().filter(|_| is_own) {
        let wait = Duration::from_secs(control::WAIT);
        let ended = control::end(&ask.app, &caller, &id, wait).await;
        let ended = ended.map_err(|problem| Fault::from(problem).with("run_id", &*ids.id))?;
        let (status, word) = match ended {
            Ended::Before => return Err(over()),
            Ended::Now => (StatusCode::OK, "cancelled"),
            Ended::Soon => (StatusCode::ACCEPTED, "stopping"),
        };
        let said = json!({ "status": word, "run_id": ids.id });
        return Ok((status, axum::Json(said)).into_response());
    }
    if goes_on {
        let fault = Fault::new(StatusCode::CONFLICT, "This server does not execute the run");
        return Err(fault
            .with("run_id", ids.id)
            .hint("stop it in the program that executes it"));
    }
    Err(over())
}

/// `POST /api/run`: there is no orchestrator of Flow Studio here.
pub(super) async fn start(Writing(_ask): Writing) -> Answered {
    Err(Fault::bad("This server has no backend that starts flows")
        .with("run_id", Value::Null)
        .with("status", "error")
        .hint("POST /api/v1/executions starts a workflow"))
}

/// `GET /api/backends`: what recorded the runs that are here.
pub(super) async fn backends(ask: Reading, headers: HeaderMap) -> Answered {
    let answered = ask.read(|studio, _| {
        let all = sorted(studio);
        let mut names: Vec<&str> = vec!["quipu"];
        for (_, brief) in &all {
            if let Some(backend) = brief.backend.as_deref()
                && !names.contains(&backend)
                && names.len() < 256
            {
                names.push(backend);
            }
        }
        let backends = names.iter().map(|name| {
            json!({
                "id": name,
                "label": if *name == "quipu" { "Quipu" } else { name },
                "supports_streaming": true,
                "supports_events": true,
                "supports_cancel": *name == "quipu",
                "supports_replay": true,
            })
        });
        let backends: Vec<Value> = backends.collect();
        Ok(json!({ "backends": backends }))
    });
    Ok(answer(&answered.await?, &headers)?)
}
