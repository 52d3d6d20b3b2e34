//! Rows of a list of transcripts, with only those fields that were asked for.

use std::collections::{BTreeMap, HashMap};

use quipu_api::Usd;
use quipu_api::serve::ListedTranscript;
use quipu_prices::Prices;
use serde_json::{Map, Value};

use super::{did, spent, transcript};
use crate::Store;
use crate::catalogue::TranscriptRow;
use crate::facade::ListError;
use crate::stats::{Figures, Spent};

/// Which fields are asked for.
#[derive(Debug, Clone)]
pub struct Listed {
    fields: Vec<&'static str>,
}

/// There is no such field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a field")]
pub struct NoField(pub String);

/// What the catalogue says.
const PLAIN: &[&str] = &[
    "id",
    "run_id",
    "native",
    "agent",
    "agent_version",
    "title",
    "cwd",
    "branch",
    "repository",
    "commit",
    "parent",
    "parent_call",
    "forked_from",
    "copy_of",
    "original",
    "copied_events",
    "duplicate",
    "reconstructed",
    "started_at",
    "ended_at",
    "events",
    "notes",
    "prompts",
    "replies",
    "tool_calls",
    "failures",
    "denials",
    "errors",
    "compactions",
    "attachments",
    "dangling",
    "orphans",
    "calls",
    "models",
    "usage",
    "vendor_usage",
    "vendor_cost",
    "path",
    "part",
    "dialect",
    "key",
    "size",
    "modified",
    "received_from",
    "received_key",
];

/// What is worked out where it is asked for.
const FIGURES: [&str; 4] = ["usd", "spent", "did", "subagents"];
const LABELS: &str = "labels";

impl Listed {
    /// Names of fields, with commas between them.
    ///
    /// # Errors
    ///
    /// When one of them is not known, or there are none.
    pub fn parse(text: &str) -> Result<Self, NoField> {
        let names = text.split(',').map(str::trim);
        let mut fields = Vec::new();
        for name in names {
            let field = Self::all().find(|field| *field == name);
            let field = field.ok_or_else(|| NoField(name.chars().take(64).collect()))?;
            if !fields.contains(&field) {
                fields.push(field);
            }
        }
        Ok(Self { fields })
    }

    /// Every field that can be asked for.
    pub fn all() -> impl Iterator<Item = &'static str> {
        PLAIN.iter().copied().chain(FIGURES).chain([LABELS])
    }

    fn has(&self, name: &str) -> bool {
        self.fields.contains(&name)
    }

    /// These transcripts, with the fields that are asked for. What has to be worked out is worked out for all of them at once.
    ///
    /// # Errors
    ///
    /// When the catalogue or labels cannot be read.
    pub fn rows(
        &self,
        store: &Store,
        rows: &[TranscriptRow],
        prices: &Prices,
    ) -> Result<Vec<Map<String, Value>>, ListError> {
        let mut figures = if FIGURES.iter().any(|name| self.has(name)) {
            store.figures(rows, prices)?
        } else {
            HashMap::new()
        };
        let mut labels = if self.has(LABELS) {
            let addresses = rows.iter().map(|row| row.address.as_str());
            store.annotations().labels_of(addresses)?
        } else {
            BTreeMap::new()
        };
        let row = |row: &TranscriptRow| {
            let worked_out = ListedTranscript {
                labels: labels.remove(row.address.as_str()).unwrap_or_default(),
                ..worked_out(&figures.remove(&row.id).unwrap_or_default())
            };
            self.pick(&transcript(row), &worked_out)
        };
        Ok(rows.iter().map(row).collect())
    }

    fn pick(
        &self,
        transcript: &quipu_api::transcript::Transcript,
        worked_out: &ListedTranscript,
    ) -> Map<String, Value> {
        let object = |value: serde_json::Result<Value>| match value {
            Ok(Value::Object(fields)) => fields,
            _ => Map::new(),
        };
        let mut fields = object(serde_json::to_value(transcript));
        fields.retain(|name, _| self.has(name));
        if fields.len() < self.fields.len() {
            let more = object(serde_json::to_value(worked_out)).into_iter();
            fields.extend(more.filter(|(name, _)| self.has(name)));
        }
        fields
    }
}

fn worked_out(figures: &Figures) -> ListedTranscript {
    let known = Some(&figures.spent).filter(|it| **it != Spent::default());
    ListedTranscript {
        usd: known.and_then(Spent::dollars).map(Usd::of),
        spent: known.map(spent),
        did: did(&figures.did),
        subagents: figures.subagents,
        labels: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_known_by_their_names() {
        let listed = Listed::parse(" id,usd ,id").unwrap();
        assert_eq!(listed.fields, ["id", "usd"]);
        for (wrong, named) in [("", ""), ("id,", ""), ("id,cost", "cost")] {
            assert_eq!(Listed::parse(wrong).unwrap_err(), NoField(named.to_owned()));
        }
    }
}
