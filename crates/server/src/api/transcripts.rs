//! One transcript, and many.

use axum::extract::State;
use axum::response::Response;
use http::HeaderMap;
use quipu_api::serve::{
    Lineage, ListedTranscript, Relative, TranscriptDetail, TranscriptParts, Transcripts,
};
use quipu_store::Store;
use quipu_store::catalogue::{After, Filter, NotFound, Received, TranscriptRow};
use quipu_store::documents::{self, Listed};
use quipu_store::facade::Listing;
use quipu_store::stats::Question;
use serde::Deserialize;
use serde_json::Value;
use utoipa::openapi::schema::{AnyOfBuilder, Schema};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{IntoParams, PartialSchema, ToSchema};

use super::query::{Params, Path, Sort, Which, after, cursor, limit, short};
use crate::App;
use crate::access::MayRead;
use crate::answer::Ready;
use crate::control::is_locked;
use crate::problem::Problem;

/// Which transcripts are listed, and how. The filters are those of [`Which`]: a flattened struct could not reject unknown
/// parameters.
#[derive(Debug, Default, PartialEq, Eq, Deserialize, IntoParams)]
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
    /// Only those with this label.
    label: Option<String>,
    /// Only what others submitted to this home.
    received: bool,
    /// Only what this submitter sent: a pseudonym, or the beginning of one.
    submitter: Option<String>,
    /// Sub-agents and copies as well.
    all: bool,
    /// What comes first.
    #[param(inline)]
    sort: Sort,
    /// How many at most: 1 to 1,000, or to 5,000 with `fields`; 100 unless told.
    #[param(minimum = 1, maximum = 5000)]
    limit: Option<usize>,
    /// Where the page begins: `next` of the page before.
    cursor: Option<String>,
    /// Only these fields of each transcript, such as `id,title,usd`; several with commas. Beside the fields of a transcript there
    /// are some that are worked out with its sub-agents: `usd`, `spent`, `did`, `subagents`; and `labels`.
    fields: Option<String>,
    /// Only these, by their ids: several with commas, at most 100, and no other filter beside it. Those that are not there are
    /// left out.
    ids: Option<String>,
}

/// So many can be asked for by their ids.
const MOST_IDS: usize = 100;

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
            received: false,
        }
    }

    /// Which fields are asked for, where not all are.
    fn listed(&self) -> Result<Option<Listed>, Problem> {
        short("fields", self.fields.as_deref())?;
        let listed = self.fields.as_deref().map(Listed::parse).transpose();
        listed.map_err(|error| {
            let all: Vec<&str> = Listed::all().collect();
            Problem::bad_parameter("fields", error).hint(format!("fields are {}", all.join(", ")))
        })
    }

    /// The ids that are asked for, where some are.
    fn ids(&self) -> Result<Option<Vec<String>>, Problem> {
        let Some(ids) = &self.ids else {
            return Ok(None);
        };
        let alone = Self {
            ids: self.ids.clone(),
            fields: self.fields.clone(),
            ..Self::default()
        };
        if *self != alone {
            let why = "only `fields` can be asked for beside it";
            return Err(Problem::bad_parameter("ids", why));
        }
        let ids: Vec<String> = ids.split(',').map(|id| id.trim().to_owned()).collect();
        if ids.len() > MOST_IDS || ids.iter().any(|id| id.is_empty() || id.len() > LONGEST) {
            let why = format!("it is a list of 1 to {MOST_IDS} ids");
            return Err(Problem::bad_parameter("ids", why));
        }
        Ok(Some(ids))
    }

    /// Whether what others submitted is asked for.
    fn received(&self) -> Received {
        match &self.submitter {
            Some(submitter) => Received::From(submitter.clone()),
            None if self.received => Received::Only,
            None => Received::With,
        }
    }
}

/// A page of transcripts: whole, or with the fields that are asked for.
struct TranscriptPage;

impl PartialSchema for TranscriptPage {
    fn schema() -> RefOr<Schema> {
        // Parts that name every field are like the whole, so either of them may be meant.
        let whole = Ref::from_schema_name(Transcripts::name());
        let parts = Ref::from_schema_name(TranscriptParts::name());
        AnyOfBuilder::new().item(whole).item(parts).into()
    }
}

impl ToSchema for TranscriptPage {
    fn schemas(all: &mut Vec<(String, RefOr<Schema>)>) {
        all.push((Transcripts::name().into_owned(), Transcripts::schema()));
        Transcripts::schemas(all);
        all.push((
            TranscriptParts::name().into_owned(),
            TranscriptParts::schema(),
        ));
        TranscriptParts::schemas(all);
        // What `fields` may name beside the fields of a transcript.
        all.push((
            ListedTranscript::name().into_owned(),
            ListedTranscript::schema(),
        ));
        ListedTranscript::schemas(all);
    }
}

/// Transcripts, with the filters of `quipu list`, page by page.
#[utoipa::path(
    get,
    path = "/api/v1/transcripts",
    operation_id = "listTranscripts",
    tag = "transcripts",
    params(Wanted),
    responses((status = 200, body = TranscriptPage), (status = 400, body = Problem))
)]
pub(crate) async fn list(
    State(app): State<App>,
    _: MayRead,
    Params(wanted): Params<Wanted>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let zone = jiff::tz::TimeZone::system();
    let mut listing = wanted.which().listing(app.clock().now(), &zone)?;
    short("label", wanted.label.as_deref())?;
    short("submitter", wanted.submitter.as_deref())?;
    let (listed, ids) = (wanted.listed()?, wanted.ids()?);
    let most = if listed.is_some() { 5000 } else { 1000 };
    let limit = limit(wanted.limit, 100, most)?;
    listing.label.clone_from(&wanted.label);
    listing.order = wanted.sort.into();
    listing.limit = Some(limit + 1);
    listing.filter.received = wanted.received();
    listing.filter.subagents = wanted.all;
    listing.filter.duplicates = wanted.all;
    if let Some(cursor) = &wanted.cursor {
        listing.filter.after = Some(after(wanted.sort, cursor)?);
    }
    let prices = app.prices().clone();
    let page = app
        .read(move |store| {
            let mut rows = match ids {
                Some(ids) => found(store, &ids)?,
                None => store.list(&listing)?,
            };
            let more = rows.len() > limit;
            rows.truncate(limit);
            let last = rows.last().filter(|_| more);
            let next = last.map(|row| cursor(wanted.sort, &After::of(listing.order, row)));
            let Some(listed) = listed else {
                let transcripts = rows.iter().map(documents::transcript).collect();
                return Ready::json(&Transcripts { transcripts, next });
            };
            let rows = listed.rows(store, &rows, &prices)?;
            let transcripts = rows.into_iter().map(Value::Object).collect();
            Ready::json(&TranscriptParts { transcripts, next })
        })
        .await?;
    Ok(page.respond(&headers))
}

/// The transcripts that these ids mean, each once.
fn found(store: &Store, ids: &[String]) -> Result<Vec<TranscriptRow>, Problem> {
    let mut rows: Vec<TranscriptRow> = Vec::with_capacity(ids.len());
    for id in ids {
        match store.find(id) {
            Ok(row) if rows.iter().all(|known| known.id != row.id) => rows.push(row),
            Ok(_) | Err(NotFound::None(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(rows)
}

/// One transcript: header, lineage, counts and cost.
#[utoipa::path(
    get,
    path = "/api/v1/transcripts/{id}",
    operation_id = "getTranscript",
    tag = "transcripts",
    params(("id" = String, Path, description = "Its id, the beginning of one, or `last`")),
    responses((status = 200, body = TranscriptDetail), (status = 404, body = Problem))
)]
pub(crate) async fn one(
    State(app): State<App>,
    _: MayRead,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let version = app.freshness().number();
    let question = format!("transcript {id}");
    if let Some(ready) = app.cache().get(&question, version) {
        return Ok(ready.respond(&headers));
    }
    let prices = app.prices().clone();
    let (ready, live) = app
        .read(move |store| {
            let row = find(store, &id)?;
            let detail = detail(store, &row, &prices)?;
            Ok((Ready::json(&detail)?, detail.live))
        })
        .await?;
    // That a recorder lets go of its file changes no file.
    if !live {
        app.cache().put(&question, version, &ready);
    }
    Ok(ready.respond(&headers))
}

/// The longest id.
const LONGEST: usize = 512;

/// The transcript that an id means. Recorded runs are looked for again when it is not known.
pub(crate) fn find(store: &Store, id: &str) -> Result<TranscriptRow, Problem> {
    if id.len() > LONGEST || id.contains('\0') {
        return Err(Problem::bad_parameter("id", "it is not an id"));
    }
    match store.find(id) {
        // A run that was begun since is not in the catalogue yet.
        Err(NotFound::None(_)) => {
            refresh(store, id)?;
            Ok(store.find(id)?)
        }
        found => Ok(found?),
    }
}

/// Reads runs that were begun since. Where the file of a run is there, an import that is at work is waited for.
fn refresh(store: &Store, id: &str) -> Result<(), Problem> {
    const TIMES: u32 = 40;
    const WAIT: std::time::Duration = std::time::Duration::from_millis(50);
    let is_name = !id.contains(['/', '\\']) && !id.starts_with('.');
    let file = store.home().join("transcripts").join(format!("{id}.jsonl"));
    for _ in 0..TIMES {
        if store.try_refresh_runs()?.is_some() || !is_name || !file.is_file() {
            break;
        }
        std::thread::sleep(WAIT);
    }
    Ok(())
}

fn detail(
    store: &Store,
    row: &TranscriptRow,
    prices: &quipu_prices::Prices,
) -> Result<TranscriptDetail, Problem> {
    let written = store.annotations().list(&row.address)?;
    let mut labels: Vec<String> = written.labels.into_iter().map(|it| it.label).collect();
    labels.sort();
    labels.dedup();
    Ok(TranscriptDetail {
        lineage: lineage(store, row)?,
        spent: documents::spent(&store.spent(row, prices)?),
        live: row.recorded && is_locked(&row.path),
        labels,
        notes: written.notes.len() as u64,
        transcript: documents::transcript(row),
    })
}

fn relative(row: &TranscriptRow) -> Relative {
    Relative {
        id: Some(row.address.clone()).filter(|address| !address.is_empty()),
        run_id: row.run_id.clone(),
        title: row.title.clone(),
        call: row.parent_call.clone(),
    }
}

fn lineage(store: &Store, row: &TranscriptRow) -> Result<Lineage, Problem> {
    let named = |id: &Option<String>| -> Result<Option<Relative>, Problem> {
        let Some(id) = id else {
            return Ok(None);
        };
        match store.find(id) {
            Ok(row) => Ok(Some(relative(&row))),
            Err(NotFound::Catalogue(error)) => Err(error.into()),
            Err(_) => Ok(Some(Relative {
                id: None,
                run_id: id.clone(),
                title: None,
                call: None,
            })),
        }
    };
    let children = store.children(&row.native)?;
    let children = children.iter().filter(|child| child.id != row.id);
    Ok(Lineage {
        parent: named(&row.parent)?,
        children: children.map(relative).collect(),
        forked_from: named(&row.forked_from)?,
        copy_of: named(&row.original.clone().or_else(|| row.copy_of.clone()))?,
    })
}

/// The directories of the project that is asked for, where one is.
pub(crate) fn directories(
    store: &Store,
    listing: &Listing,
) -> Result<Option<Vec<String>>, Problem> {
    let Some(project) = &listing.project else {
        return Ok(None);
    };
    let mut all = store.directories()?;
    all.retain(|directory| project.has(directory));
    Ok(Some(all))
}

/// What is asked of figures: which transcripts, and their directories where a project is named.
pub(crate) fn with_question<T>(
    store: &Store,
    listing: &Listing,
    by: &[quipu_store::stats::By],
    prices: &quipu_prices::Prices,
    zone: &jiff::tz::TimeZone,
    ask: impl FnOnce(&Question<'_>) -> Result<T, Problem>,
) -> Result<T, Problem> {
    let directories = directories(store, listing)?;
    let filter = Filter {
        subagents: true,
        ..listing.filter.clone()
    };
    ask(&Question {
        filter: &filter,
        directories: directories.as_deref(),
        by,
        zone,
        prices,
    })
}
