//! Whether what is kept is sound.

use std::path::{Path, PathBuf};

use quipu_api::doctor as api;

use crate::facade::Diagnosis;

/// Whether what is kept in a home is sound.
pub fn doctor(found: &Diagnosis, home: &Path) -> api::Doctor {
    let Diagnosis { census, health, .. } = found;
    let paths = |paths: &[PathBuf]| paths.iter().map(|path| super::path(path)).collect();
    let unreadable = found.unreadable.iter().map(|(path, what)| api::Unreadable {
        path: super::path(path),
        what: what.clone(),
    });
    let agents = found.places.iter().map(|(brand, there)| api::AgentPlaces {
        agent: (*brand).to_owned(),
        places: paths(there),
    });
    let problems = found.problems.iter();
    let problems = problems.map(|(what, (logs, path))| api::LogProblem {
        what: what.clone(),
        logs: *logs,
        path: path.clone(),
    });
    let drift = found.drift.iter().map(|row| api::Drift {
        agent: row.agent.clone(),
        version: row.version.clone(),
        name: row.name.clone(),
        sightings: row.sightings,
        logs: row.logs,
        path: super::path(&row.path),
        line: row.line,
        offset: row.offset,
    });
    let index = health.index.iter().chain(&health.index_anew);
    let blobs = health.blobs.iter().chain(&health.loose_blobs);
    api::Doctor {
        home: super::path(home),
        mode: found.permissions.map(|mode| format!("{mode:o}")),
        catalogue_version: found.catalogue_version,
        unreachable: found.unreachable.clone(),
        transcripts: census.sessions + census.subagents + census.copies,
        sessions: census.sessions,
        subagents: census.subagents,
        copies: census.copies,
        uncatalogued: health.uncatalogued,
        catalogue_damaged: health.catalogue.clone(),
        lost: paths(&health.lost),
        blobs_damaged: blobs.cloned().collect(),
        outdated_logs: health.outdated,
        events_damaged: health.events.clone(),
        sessions_without_events: health.without_events,
        search_index_damaged: index.cloned().collect(),
        unreadable: unreadable.collect(),
        archive: api::ArchiveHealth {
            sources: health.usage.sources,
            versions: health.usage.versions,
            original_bytes: health.usage.original_bytes,
            chunks: health.usage.chunks,
            compressed_bytes: health.usage.compressed_bytes,
            checked: health.checked,
            damaged: health.archive.clone(),
        },
        agents: agents.collect(),
        problems: problems.collect(),
        dropped: found.dropped.iter().cloned().collect(),
        drift: drift.collect(),
        attention: found.attention.clone(),
    }
}
