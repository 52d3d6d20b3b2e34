//! A transcript in any format, with or without what a profile removes.

use std::io::{self, Write};

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use http::HeaderMap;
use http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE, HeaderValue};
use quipu_api::convert::Conversion;
use quipu_api::serve::{ExportFormat, PreviewedEvent, PreviewedRule, RedactionPreview};
use quipu_convert::output::Folder;
use quipu_convert::source::Redacted;
use quipu_convert::{Format, Report, Shape, Source, SourceError, TargetOptions};
use quipu_formats::parquet::Tables;
use quipu_formats::projection::Nowhere;
use quipu_redact::Certainty;
use quipu_store::Store;
use quipu_store::documents;
use serde::Deserialize;
use utoipa::IntoParams;

use super::query::{Params, Path};
use super::transcripts::find;
use crate::App;
use crate::access::MayRead;
use crate::answer::json;
use crate::problem::Problem;
use crate::stream::{body, pipe};

/// As what.
#[derive(Debug, Default, Clone, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Wanted {
    /// The format: `/api/v1/formats` lists them.
    #[param(required = true, min_length = 1, example = "markdown")]
    format: String,
    /// What is removed before it leaves: `local` (nothing), `team`, `research`, `public`, ….
    profile: Option<String>,
}

impl Wanted {
    fn format(&self) -> Result<Format, Problem> {
        Format::from_word(&self.format).ok_or_else(|| {
            let all: Vec<&str> = Format::ALL.iter().map(|format| format.as_str()).collect();
            Problem::bad_parameter("format", format!("{:?} is not a format", self.format))
                .hint(format!("formats are {}", all.join(", ")))
        })
    }
}

/// The formats that transcripts can be exported in.
#[utoipa::path(
    get,
    path = "/api/v1/formats",
    operation_id = "listFormats",
    tag = "export",
    responses((status = 200, body = Vec<ExportFormat>))
)]
pub(crate) async fn formats(_: MayRead, headers: HeaderMap) -> Result<Response, Problem> {
    let all = Format::ALL.iter().map(|format| ExportFormat {
        name: format.as_str().to_owned(),
        ending: ending(*format).to_owned(),
        about: format.about().to_owned(),
        archive: format.shape() != Shape::File,
    });
    json(&all.collect::<Vec<_>>(), &headers)
}

fn ending(format: Format) -> &'static str {
    match format.shape() {
        Shape::File => format.ending(),
        Shape::Directory | Shape::Tables => ".zip",
    }
}

/// Nothing of an export runs in the page of this server: it is a download, also where it is a page.
fn kind(format: Format) -> &'static str {
    if format.shape() != Shape::File {
        return "application/zip";
    }
    match format.ending() {
        ".json" => "application/json",
        ".jsonl" | ".agentlog" => "application/x-ndjson",
        ".md" => "text/markdown; charset=utf-8",
        ".txt" => "text/plain; charset=utf-8",
        ".html" => "text/html; charset=utf-8",
        _ => "application/octet-stream",
    }
}

/// A transcript in a format. It is made while it is sent; what fails on the way cuts the connection.
#[utoipa::path(
    get,
    path = "/api/v1/transcripts/{id}/export",
    operation_id = "exportTranscript",
    tag = "export",
    params(("id" = String, Path, description = "Its id, the beginning of one, or `last`"), Wanted),
    responses(
        (status = 200, description = "The transcript in that format, as an attachment", content(
            (serde_json::Value = "application/json"),
            (String = "application/x-ndjson"),
            (String = "application/zip"),
            (String = "application/octet-stream"),
            (String = "text/html"),
            (String = "text/markdown"),
            (String = "text/plain")
        )),
        (status = 400, body = Problem),
        (status = 404, body = Problem),
        (status = 422, body = Problem)
    )
)]
pub(crate) async fn export(
    State(app): State<App>,
    _: MayRead,
    Path(id): Path<String>,
    Params(wanted): Params<Wanted>,
) -> Result<Response, Problem> {
    let format = wanted.format()?;
    let (writer, mut from) = pipe();
    let worker = app.clone();
    let (named, name) = tokio::sync::oneshot::channel();
    let making = tokio::spawn(async move {
        let inner = worker.clone();
        worker
            .download(move |store| {
                writer.make(|writer| {
                    let (mut source, id) = source(&inner, store, &id, &wanted)?;
                    // Whoever asked may be gone.
                    drop(named.send(id));
                    made(&mut *source, format, Box::new(writer)).map(drop)
                })
            })
            .await
    });
    // Nothing was promised before the first piece: what fails until then is an answer of its own.
    let first = if let Some(Ok(first)) = from.recv().await {
        first
    } else {
        making.await.map_err(|_| Problem::internal())??;
        Bytes::new()
    };
    let name = name.await.unwrap_or_else(|_| "transcript".to_owned());
    let mut response = body(from, Some(first)).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind(format)));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let safe = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let name: String = name
        .chars()
        .map(|c| if safe(c) { c } else { '_' })
        .collect();
    let disposition = format!("attachment; filename=\"{name}{}\"", ending(format));
    if let Ok(disposition) = HeaderValue::from_str(&disposition) {
        headers.insert(CONTENT_DISPOSITION, disposition);
    }
    Ok(response)
}

/// What a transcript would lose on its way to a format.
#[utoipa::path(
    get,
    path = "/api/v1/transcripts/{id}/export/report",
    operation_id = "getExportReport",
    tag = "export",
    params(("id" = String, Path, description = "Its id, the beginning of one, or `last`"), Wanted),
    responses((status = 200, body = Conversion), (status = 404, body = Problem), (status = 422, body = Problem))
)]
pub(crate) async fn report(
    State(app): State<App>,
    _: MayRead,
    Path(id): Path<String>,
    Params(wanted): Params<Wanted>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let format = wanted.format()?;
    let inner = app.clone();
    let report = app
        .work(move |store| {
            let (mut source, _) = source(&inner, store, &id, &wanted)?;
            made(&mut *source, format, Box::new(io::sink()))
        })
        .await?;
    json(&documents::conversion(&report), &headers)
}

/// What is exported, and its name.
fn source(
    app: &App,
    store: &Store,
    id: &str,
    wanted: &Wanted,
) -> Result<(Box<dyn Source>, String), Problem> {
    let row = find(store, id)?;
    let name = row.run_id.clone();
    let source = store.export(&row, app.prices())?;
    let Some(profile) = &wanted.profile else {
        return Ok((source, name));
    };
    let removal = app.removals().by(profile)?;
    if removal.profile.changes_nothing() {
        return Ok((source, name));
    }
    Ok((Box::new(Redacted::new(source, removal)), name))
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "it is what `map_err` hands over"
)]
fn refused(error: SourceError) -> Problem {
    Problem::new(
        http::StatusCode::UNPROCESSABLE_ENTITY,
        "cannot_export",
        "This cannot be exported",
    )
    .detail(error.to_string())
}

fn made(
    source: &mut dyn Source,
    format: Format,
    out: Box<dyn Write + '_>,
) -> Result<Report, Problem> {
    let options = TargetOptions::default();
    match format.shape() {
        Shape::File => {
            quipu_convert::write(source, format, &options, out, Box::new(Nowhere)).map_err(refused)
        }
        Shape::Directory => {
            let directory = tempfile::tempdir().map_err(Problem::store)?;
            let beside = Box::new(Folder::new(directory.path()));
            let report =
                quipu_convert::write(source, format, &options, Box::new(io::sink()), beside)
                    .map_err(refused)?;
            zipped(directory.path(), out).map_err(Problem::store)?;
            Ok(report)
        }
        Shape::Tables => {
            let directory = tempfile::tempdir().map_err(Problem::store)?;
            let file = |name: &str| std::fs::File::create_new(directory.path().join(name));
            let events = file("events.parquet").map_err(Problem::store)?;
            let calls = file("calls.parquet").map_err(Problem::store)?;
            let (events, calls) = (io::BufWriter::new(events), io::BufWriter::new(calls));
            let mut tables =
                Tables::new(events, calls, &options.parquet).map_err(Problem::store)?;
            let report = quipu_convert::add(source, &mut tables).map_err(refused)?;
            let (mut events, mut calls) = tables.close().map_err(Problem::store)?;
            events
                .flush()
                .and_then(|()| calls.flush())
                .map_err(Problem::store)?;
            zipped(directory.path(), out).map_err(Problem::store)?;
            Ok(report)
        }
    }
}

/// All files below a directory, as one archive.
fn zipped(directory: &std::path::Path, out: Box<dyn Write + '_>) -> io::Result<()> {
    let mut archive = zip::ZipWriter::new_stream(out);
    let options = zip::write::SimpleFileOptions::default().unix_permissions(0o600);
    let mut waiting = vec![directory.to_owned()];
    while let Some(folder) = waiting.pop() {
        let mut entries = std::fs::read_dir(&folder)?.collect::<io::Result<Vec<_>>>()?;
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            let path = entry.path();
            if entry.file_type()?.is_dir() {
                waiting.push(path);
                continue;
            }
            let name = path.strip_prefix(directory).unwrap_or(&path);
            archive.start_file(name.to_string_lossy(), options)?;
            io::copy(&mut std::fs::File::open(&path)?, &mut archive)?;
        }
    }
    archive.finish()?.into_inner().flush()
}

/// What a profile is called.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Previewed {
    /// The profile: `team`, `research`, `public`, ….
    #[param(required = true, min_length = 1, example = "team")]
    profile: String,
}

/// How many events a preview names.
const EVENTS: usize = 1000;

/// What a profile would remove from a transcript, without any of the values.
#[utoipa::path(
    get,
    path = "/api/v1/transcripts/{id}/redaction",
    operation_id = "getRedactionPreview",
    tag = "export",
    params(("id" = String, Path, description = "Its id, the beginning of one, or `last`"), Previewed),
    responses((status = 200, body = RedactionPreview), (status = 400, body = Problem), (status = 404, body = Problem))
)]
pub(crate) async fn preview(
    State(app): State<App>,
    _: MayRead,
    Path(id): Path<String>,
    Params(wanted): Params<Previewed>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let inner = app.clone();
    let preview = app
        .work(move |store| {
            let row = find(store, &id)?;
            let removal = inner.removals().by(&wanted.profile)?;
            let source = store.export(&row, inner.prices())?;
            previewed(&mut Redacted::new(source, removal), &wanted.profile)
        })
        .await?;
    json(&preview, &headers)
}

fn previewed(source: &mut Redacted, profile: &str) -> Result<RedactionPreview, Problem> {
    use std::collections::{BTreeMap, BTreeSet};
    #[derive(Default)]
    struct Rule {
        kind: String,
        removed: u64,
        nearly: u64,
        values: BTreeSet<String>,
    }
    let mut rules: BTreeMap<String, Rule> = BTreeMap::new();
    let mut events: BTreeMap<u64, (u64, BTreeSet<String>)> = BTreeMap::new();
    let (mut removed, mut nearly, mut more) = (0, 0, BTreeSet::new());
    let each = |item: &quipu_redact::session::Finding<'_>| {
        let rule = rules.entry(item.rule.to_owned()).or_default();
        item.kind.clone_into(&mut rule.kind);
        if item.certainty != Certainty::Sure {
            rule.nearly += 1;
            nearly += 1;
            return;
        }
        rule.removed += 1;
        removed += 1;
        rule.values.insert(item.hash.to_string());
        if events.len() >= EVENTS && !events.contains_key(&item.seq) {
            more.insert(item.seq);
            return;
        }
        let event = events.entry(item.seq).or_default();
        event.0 += 1;
        event.1.insert(item.field.to_owned());
    };
    source.review(Box::new(each)).map_err(refused)?;
    let rules = rules.into_iter().map(|(rule, seen)| PreviewedRule {
        rule,
        kind: seen.kind,
        removed: seen.removed,
        values: seen.values.len() as u64,
        nearly: seen.nearly,
    });
    let events = events
        .into_iter()
        .map(|(seq, (removed, fields))| PreviewedEvent {
            seq,
            removed,
            fields: fields.into_iter().collect(),
        });
    Ok(RedactionPreview {
        profile: profile.to_owned(),
        removed,
        nearly,
        rules: rules.collect(),
        events: events.collect(),
        more_events: more.len() as u64,
    })
}
