//! Transcripts and receipts of steps: as Flow Studio wraps them, and as the files are.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use http::HeaderMap;
use http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE, ETAG, HeaderValue,
};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;

use super::Studio;
use super::fault::{Answered, Fault};
use super::folder::{Flow, Folder, Named, stamp};
use super::lists::iterations;
use super::params::{Ids, Params, Reading};
use super::runs::Run;
use crate::answer::{JSON, Ready, is_known, json as answer};

/// The longest transcript that is wrapped. Longer ones are given as they are.
const WRAPPED: u64 = 64 << 20;

/// How much of a file is sent at once.
const PIECE: usize = 64 << 10;

const NDJSON: HeaderValue = HeaderValue::from_static("application/x-ndjson");

/// Which of several files of one step is meant.
#[derive(Debug, Default)]
struct Wanted {
    agent: Option<String>,
    engine: Option<String>,
    iteration: Option<u64>,
}

impl Wanted {
    fn of(params: &Params) -> Result<Self, Fault> {
        let text = |name: &str| params.text(name).filter(|text| !text.is_empty());
        let iteration = params.integer("iteration")?;
        let iteration = iteration.map(|number| u64::try_from(number).unwrap_or(0));
        Ok(Self {
            agent: text("agent").map(str::to_owned),
            engine: text("engine").map(str::to_owned),
            iteration,
        })
    }

    /// Receipts name the engine in full (`claude-step`), files in short.
    fn engine(&self) -> Option<&str> {
        let engine = self.engine.as_deref()?;
        Some(engine.strip_suffix("-step").unwrap_or(engine))
    }

    fn fits(&self, named: &Named, step: &str) -> bool {
        let name = &named.name;
        // Taken apart in another way: what is behind this step is the agent, as a whole.
        let is_rest = |agent: &str| {
            let both = format!("{}-{}", name.step, name.agent);
            let rest = both
                .strip_prefix(step)
                .and_then(|rest| rest.strip_prefix('-'));
            rest == Some(agent)
        };
        let by_agent = self.agent.as_deref().is_none_or(|agent| {
            if name.step == step {
                name.agent == agent
            } else {
                name.ambiguous && !agent.is_empty() && is_rest(agent)
            }
        });
        let by_engine = self
            .engine()
            .is_none_or(|engine| name.engine.as_deref() == Some(engine));
        let by_iteration = self
            .iteration
            .is_none_or(|number| name.iteration == Some(number));
        by_agent && by_engine && by_iteration
    }
}

/// The files of a flow, if it has any.
fn flow_of(folder: &Folder, key: &str) -> Flow {
    folder.flow(key).unwrap_or_default()
}

/// The files of a step that are meant, the likeliest first.
fn of_step<'f>(all: &'f [Named], step: &str, wanted: &Wanted) -> Vec<&'f Named> {
    let fitting = all
        .iter()
        .filter(|named| named.is_of(step) && wanted.fits(named, step));
    let mut fitting: Vec<&Named> = fitting.collect();
    fitting.sort_by_key(|named| named.rank(step));
    fitting
}

/// The same, also where the latest iteration is asked for by its number: the name of that file does not say it.
fn chosen<'f>(
    studio: &Studio,
    run: &Run,
    (directory, all): (PathBuf, &'f [Named]),
    step: &str,
    wanted: &Wanted,
) -> Result<Vec<&'f Named>, Fault> {
    let mut found = of_step(all, step, wanted);
    let (true, Some(number)) = (found.is_empty(), wanted.iteration) else {
        return Ok(found);
    };
    let any = Wanted {
        agent: wanted.agent.clone(),
        engine: wanted.engine.clone(),
        iteration: None,
    };
    found = of_step(all, step, &any);
    found.retain(|named| named.name.iteration.is_none());
    if !found.is_empty() {
        let numbers = iterations(studio, run)?;
        found.retain(|named| {
            let path = directory.join(&named.file);
            numbers.get(&*path.to_string_lossy()) == Some(&number)
        });
    }
    Ok(found)
}

fn names(all: &[Named]) -> Vec<String> {
    all.iter().map(|named| named.file.clone()).collect()
}

fn no_transcripts() -> Fault {
    Fault::missing("No transcripts available for this step")
        .hint("Transcripts are files <flow>/llm/<step>-<agent>-<engine>.jsonl in the run")
}

/// `GET …/steps/{step}/transcript`
pub(super) async fn transcript(
    ask: Reading,
    ids: Ids,
    params: Params,
    headers: HeaderMap,
) -> Answered {
    let wanted = Wanted::of(&params)?;
    let answered = ask.read(move |studio, _| {
        let run = studio.find(&ids.id)?;
        let folder = studio.folder(&run)?;
        let flow = flow_of(&folder, &ids.flow);
        if !flow.has_transcripts {
            return Err(no_transcripts());
        }
        let files = (Path::new(&flow.directory).join("llm"), &*flow.transcripts);
        let found = chosen(studio, &run, files, &ids.step, &wanted)?;
        let Some(first) = found.first() else {
            return Err(
                Fault::missing(format!("No transcript found for step '{}'", ids.step))
                    .with("available_files", names(&flow.transcripts)),
            );
        };
        let path = PathBuf::from(&flow.directory).join("llm").join(&first.file);
        let (messages, malformed) = messages(&folder, &path)?;
        let others: Vec<&str> = found[1..].iter().map(|named| named.file.as_str()).collect();
        // The messages go in as they are: their numbers and their order are the file's.
        let mut wrapped = json!({
            "run_id": ids.id,
            "flow_key": ids.flow,
            "step_id": ids.step,
            "engine": first.name.engine,
            "transcript_file": first.file,
            "agent_key": first.name.agent,
            "iteration": first.name.iteration.or(wanted.iteration),
            "ambiguous": first.name.ambiguous,
            "malformed_lines": malformed,
            "other_files": others,
        })
        .to_string()
        .into_bytes();
        wrapped.pop();
        wrapped.extend_from_slice(b",\"messages\":[");
        wrapped.extend_from_slice(&messages);
        wrapped.extend_from_slice(b"]}");
        Ok(Ready::bytes(wrapped, JSON))
    });
    Ok(answered.await?.respond(&headers))
}

/// The lines of a transcript as the items of a list, and how many lines are not JSON.
fn messages(folder: &Folder, path: &Path) -> Result<(Vec<u8>, u64), Fault> {
    let unreadable = |error: std::io::Error| Fault::unreadable("transcript", error);
    let file = folder.file(path).ok_or_else(no_transcripts)?;
    let mut bytes = Vec::new();
    file.take(WRAPPED + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if bytes.len() as u64 > WRAPPED {
        return Err(Fault::too_large("transcript", WRAPPED)
            .hint("/api/runs/{id}/transcript/{flow}/{step}/{agent}/{engine} gives the file"));
    }
    let (mut items, mut malformed) = (Vec::with_capacity(bytes.len()), 0);
    for line in bytes.split(|byte| *byte == b'\n') {
        let text = String::from_utf8_lossy(line);
        let text = text.trim_start_matches('\u{feff}').trim();
        if text.is_empty() {
            continue;
        }
        if serde_json::from_str::<&RawValue>(text).is_err() {
            malformed += 1;
            continue;
        }
        if !items.is_empty() {
            items.push(b',');
        }
        items.extend_from_slice(text.as_bytes());
    }
    Ok((items, malformed))
}

/// `GET …/steps/{step}/receipt`
pub(super) async fn receipt(
    ask: Reading,
    ids: Ids,
    params: Params,
    headers: HeaderMap,
) -> Answered {
    let wanted = Wanted::of(&params)?;
    let answered = ask.read(move |studio, _| {
        let run = studio.find(&ids.id)?;
        let folder = studio.folder(&run)?;
        let flow = flow_of(&folder, &ids.flow);
        if !flow.has_receipts {
            return Err(Fault::missing("No receipts available for this step")
                .hint("Receipts are files <flow>/receipts/<step>-<agent>.json in the run"));
        }
        let files = (Path::new(&flow.directory).join("receipts"), &*flow.receipts);
        let found = chosen(studio, &run, files, &ids.step, &wanted)?;
        let Some(first) = found.first() else {
            return Err(
                Fault::missing(format!("No receipt found for step '{}'", ids.step))
                    .with("available_files", names(&flow.receipts)),
            );
        };
        let path = PathBuf::from(&flow.directory)
            .join("receipts")
            .join(&first.file);
        let bytes = folder.bytes(&path).unwrap_or_default();
        let body: Value =
            serde_json::from_slice(&bytes).map_err(|error| Fault::unreadable("receipt", error))?;
        let others: Vec<&str> = found[1..].iter().map(|named| named.file.as_str()).collect();
        Ok(json!({
            "run_id": ids.id,
            "flow_key": ids.flow,
            "step_id": ids.step,
            "receipt": body,
            "receipt_file": first.file,
            "other_files": others,
        }))
    });
    Ok(answer(&answered.await?, &headers)?)
}

/// A file of a step as it is.
struct Raw {
    file: std::fs::File,
    length: u64,
    tag: HeaderValue,
}

impl Raw {
    fn open(folder: &Folder, path: &Path) -> Option<Self> {
        let file = folder.file(path)?;
        let (at, length) = stamp(&file)?;
        let tag = HeaderValue::from_str(&format!("W/\"{at:x}-{length:x}\"")).ok()?;
        Some(Self { file, length, tag })
    }

    /// The file, piece by piece. What is added meanwhile is not part of the answer.
    fn respond(self, kind: HeaderValue, headers: &HeaderMap) -> Response {
        if is_known(headers, &self.tag) {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = http::StatusCode::NOT_MODIFIED;
            response.headers_mut().insert(ETAG, self.tag);
            return response;
        }
        let file = tokio::fs::File::from_std(self.file).take(self.length);
        let pieces = stream::unfold(file, |mut file| async move {
            let mut piece = Vec::with_capacity(PIECE);
            match (&mut file).take(PIECE as u64).read_to_end(&mut piece).await {
                Ok(0) => None,
                Ok(_) => Some((Ok(Bytes::from(piece)), file)),
                Err(error) => Some((Err(error), file)),
            }
        });
        let mut response = Response::new(Body::from_stream(pieces));
        let to = response.headers_mut();
        to.insert(CONTENT_TYPE, kind);
        to.insert(CONTENT_LENGTH, self.length.into());
        to.insert(ETAG, self.tag);
        to.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        // A browser that is led here must not take what an agent wrote for a page.
        to.insert(CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
        response
    }
}

fn find_raw(
    studio: &Studio,
    ids: &Ids,
    part: &str,
    wanted: &Wanted,
    what: &str,
) -> Result<Raw, Fault> {
    let run = studio.find(&ids.id)?;
    let folder = studio.folder(&run)?;
    let flow = flow_of(&folder, &ids.flow);
    let all = if part == "llm" {
        &flow.transcripts
    } else {
        &flow.receipts
    };
    let directory = Path::new(&flow.directory).join(part);
    let found = chosen(studio, &run, (directory.clone(), all), &ids.step, wanted)?;
    let raw = found
        .first()
        .and_then(|named| Raw::open(&folder, &directory.join(&named.file)));
    raw.ok_or_else(|| {
        let Ids {
            flow: key,
            step,
            agent,
            ..
        } = ids;
        Fault::missing(format!(
            "No {what} of step '{step}' and agent '{agent}' in flow '{key}'"
        ))
        .with("available_files", names(all))
    })
}

/// `GET /api/runs/{id}/transcript/{flow}/{step}/{agent}/{engine}`: the lines of the file.
pub(super) async fn raw_transcript(
    ask: Reading,
    ids: Ids,
    params: Params,
    headers: HeaderMap,
) -> Answered {
    let wanted = Wanted {
        agent: Some(ids.agent.clone()),
        engine: Some(ids.engine.clone()),
        ..Wanted::of(&params)?
    };
    let raw = ask.read(move |studio, _| find_raw(studio, &ids, "llm", &wanted, "transcript"));
    Ok(raw.await?.respond(NDJSON, &headers))
}

/// `GET /api/runs/{id}/receipt/{flow}/{step}/{agent}`: the file.
pub(super) async fn raw_receipt(
    ask: Reading,
    ids: Ids,
    params: Params,
    headers: HeaderMap,
) -> Answered {
    let wanted = Wanted {
        agent: Some(ids.agent.clone()),
        engine: None,
        ..Wanted::of(&params)?
    };
    let raw = ask.read(move |studio, _| find_raw(studio, &ids, "receipts", &wanted, "receipt"));
    Ok(raw.await?.respond(JSON, &headers))
}

/// `GET /api/runs/{id}/wisdom/summary`: what the last flow of Flow Studio wrote.
pub(super) async fn wisdom(ask: Reading, ids: Ids, headers: HeaderMap) -> Answered {
    let raw = ask.read(move |studio, _| {
        let run = studio.find(&ids.id)?;
        let folder = studio.folder(&run)?;
        let path = Path::new("wisdom/wisdom_summary.json");
        let bytes = folder.bytes(path).ok_or_else(|| {
            Fault::missing("No wisdom summary available for this run")
                .hint("Flow Studio's wisdom_summarizer.py writes wisdom/wisdom_summary.json")
        })?;
        serde_json::from_slice::<&RawValue>(&bytes)
            .map_err(|error| Fault::unreadable("wisdom summary", error))?;
        Ok(Ready::bytes(bytes, JSON))
    });
    Ok(raw.await?.respond(&headers))
}
