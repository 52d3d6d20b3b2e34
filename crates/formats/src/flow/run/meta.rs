//! What the documents of a run say of it: `meta.json`, `spec.json`, and `run.json` of older ones.

use quipu_model::json::Node;
use quipu_model::{Json, Step, Timestamp};

use crate::flow::receipt::is_success;
use crate::flow::scan::{self, Root};
use crate::flow::time;
use crate::flow::verify::{Findings, Rule};

/// What is known of a run apart from its steps.
#[derive(Debug, Default)]
pub(super) struct Meta {
    /// Whether there is any such document.
    pub(super) is_there: bool,
    pub(super) id: Option<String>,
    pub(super) title: Option<String>,
    pub(super) status: Option<String>,
    pub(super) error: Option<String>,
    pub(super) result: Option<Json>,
    pub(super) step: Option<Step>,
    pub(super) ended: Option<Step>,
    pub(super) agent: Option<String>,
    pub(super) agent_version: Option<String>,
    pub(super) parent_run_id: Option<String>,
    pub(super) created_at: Option<Timestamp>,
    pub(super) started_at: Option<Timestamp>,
    pub(super) completed_at: Option<Timestamp>,
}

/// The documents that say what the run is.
pub(super) const DOCUMENTS: [&str; 3] = ["meta.json", "spec.json", "run.json"];

/// The fields of `meta.json` that have a place. The last row is added by this program.
const KNOWN: &[&str] = &[
    "id",
    "title",
    "status",
    "error",
    "created_at",
    "started_at",
    "completed_at",
    "updated_at",
    "schema_version",
    "run",
    "ended",
    "result",
    "source",
    "parent_run_id",
];

impl Meta {
    pub(super) fn read(root: &Root, findings: &mut Findings) -> Self {
        let mut meta = Self::default();
        for name in DOCUMENTS {
            let file = root.file(root.path().join(name));
            // A link could lead anywhere.
            let is_file = std::fs::symlink_metadata(&file.path).is_ok_and(|meta| meta.is_file());
            if !is_file {
                continue;
            }
            meta.is_there = true;
            let read = scan::document(&file.path, |node| meta.take(name, node, findings));
            if let Err(why) = read {
                findings.add(Rule::DocumentUnreadable, name, None, || why);
            }
        }
        meta
    }

    fn take(&mut self, name: &str, node: Node<'_>, findings: &mut Findings) {
        let text = |key: &str| {
            node.text(key)
                .filter(|text| !text.is_empty())
                .map(Into::into)
        };
        if name != "spec.json" {
            self.title = self.title.take().or_else(|| text("title"));
        }
        if name == "meta.json" {
            self.id = text("id");
            self.status = text("status");
            self.error = text("error");
            self.parent_run_id = text("parent_run_id");
            self.result = node
                .get("result")
                .filter(|n| !n.is_null())
                .map(|n| n.raw().into());
            let step = |key: &str| {
                let step = node.get(key)?;
                Some(Step::new(step.text("name")?, &*step.text("kind")?))
            };
            self.step = step("run");
            self.ended = step("ended");
            let source = node.get("source");
            let of_source = |key: &str| source?.text(key).map(Into::into);
            self.agent = of_source("agent");
            self.agent_version = of_source("agent_version");
            let mut when = |key: &str| {
                crate::flow::verify::check_time(node, key, name, findings);
                node.text(key)
                    .and_then(|text| time::parse(&text))
                    .map(|time| time.at)
            };
            self.created_at = when("created_at");
            self.started_at = when("started_at");
            self.completed_at = when("completed_at");
        }
    }

    /// Whether the run says of itself that it has not ended.
    pub(super) fn goes_on(&self) -> bool {
        self.status.as_deref().is_some_and(is_under_way) && self.completed_at.is_none()
    }

    /// The word for how the run ended, where it did not end well: `failed`, `canceled`, ….
    pub(super) fn ended_badly(&self) -> Option<&str> {
        let status = self.status.as_deref()?;
        (!is_success(status) && !is_under_way(status)).then_some(status)
    }
}

/// Whether a document of the run says more than the events of the run do.
pub(super) fn says_more(node: Node<'_>) -> bool {
    let known = |key: quipu_model::json::RawStr<'_>| KNOWN.iter().any(|known| key.is(known));
    node.fields()
        .any(|(key, value)| !value.is_null() && !known(key))
}

fn is_under_way(status: &str) -> bool {
    matches!(
        status,
        "pending" | "running" | "stopping" | "pausing" | "paused"
    )
}
