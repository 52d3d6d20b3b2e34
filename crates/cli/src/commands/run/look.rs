//! Looking at workflows without running them.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use quipu_flow::definition::Workflow;
use quipu_flow::definition::graph::{self, Format};
use quipu_flow::definition::places::Places;
use quipu_flow::definition::plan::plan;
use quipu_flow::definition::schema::json_schema;
use quipu_record::Storage;

use crate::args::{GraphFormat, Run};
use crate::error::{CommandError, Exit, Result, io_error};
use crate::terminal::{clean, out, say};

/// Shows a workflow as it was asked for.
pub(super) fn at(args: &Run, workflow: &Workflow) -> Result<Exit> {
    let mut out = out();
    if let Some(format) = args.graph {
        let format = match format {
            GraphFormat::Mermaid => Format::Mermaid,
            GraphFormat::Dot => Format::Dot,
            GraphFormat::Svg => Format::Svg,
            GraphFormat::Text => Format::Text,
        };
        write!(out, "{}", graph::render(workflow, format))?;
    }
    if args.dry_run {
        let given = super::inputs(&args.inputs)?;
        let inputs = super::resolved(workflow, &given)?;
        let plan = plan(workflow, &inputs);
        if args.json {
            serde_json::to_writer_pretty(&mut out, &plan)
                .map_err(|error| CommandError::new(Exit::Environment, error))?;
            writeln!(out)?;
        } else {
            write!(out, "{}", clean(&plan.to_string()))?;
        }
    }
    out.flush()?;
    Ok(Exit::Done)
}

/// Lists the workflows that can be run by name.
pub(super) fn list(places: &Places) -> Result<Exit> {
    let listed = places.list();
    if listed.is_empty() {
        say("no workflows in .quipu/workflows, .awf/workflows or the configuration directory");
    }
    let mut out = out();
    for one in &listed {
        let hidden = if one.hidden {
            "  (hidden by another of the same name)"
        } else {
            ""
        };
        writeln!(
            out,
            "{:<32} {}{hidden}",
            clean(&one.name),
            clean(&one.path.display().to_string())
        )?;
    }
    out.flush()?;
    Ok(Exit::Done)
}

/// Prints the JSON Schema of workflow files.
pub(super) fn schema() -> Result<Exit> {
    let mut out = out();
    serde_json::to_writer_pretty(&mut out, &json_schema())
        .map_err(|error| CommandError::new(Exit::Environment, error))?;
    writeln!(out)?;
    out.flush()?;
    Ok(Exit::Done)
}

/// The file of the run that was written to last.
pub(super) fn last_run(storage: &Storage) -> Result<PathBuf> {
    let any =
        quipu_model::RunId::new("any").map_err(|error| CommandError::new(Exit::Data, error))?;
    let of_any = storage.path_of(&any);
    let directory = of_any.parent().unwrap_or(&of_any);
    let entries = std::fs::read_dir(directory)
        .map_err(io_error(format!("cannot read {}", directory.display())))?;
    let mut runs: Vec<(Option<SystemTime>, PathBuf)> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "jsonl"))
        .map(|path| {
            let modified = std::fs::metadata(&path).and_then(|file| file.modified());
            (modified.ok(), path)
        })
        .collect();
    runs.sort();
    // A run that another one called goes on with that one.
    let newest = runs.into_iter().rev().map(|(_, path)| path);
    let newest = newest.into_iter().find(|path| !was_called(path));
    newest.ok_or_else(|| {
        CommandError::new(
            Exit::Data,
            anyhow::anyhow!("no runs in {}", directory.display()),
        )
    })
}

/// Whether the first event of a transcript names a run that called it.
fn was_called(path: &Path) -> bool {
    let log = quipu_record::RunLog::open_read_only(path);
    let page = log.and_then(|log| log.page(1, 1));
    let events = page.map(|page| page.events).unwrap_or_default();
    let first = events.first();
    first.is_some_and(|event| event.decoded.event.parent_run_id.is_some())
}
