//! Keeps secrets out of what is made of logs.
//!
//! A log is kept as it is. Everything that is made of it (the catalogue, the search index, reports) is made of what
//! passed here, so that a secret is masked before it is cut short, counted or put down, and nobody who prints it
//! has to think of it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quipu_agents::{Checkpoint, Entry, Ledger, Session, Summary, What};
use quipu_model::json::{Kind, Node, Tape};
use quipu_redact::Guard;

/// How many names are remembered to hold no secret. Most events name a tool or a model that one before them named.
const CLEAN: usize = 64;

/// How deep the parts of records nest.
const DEEPEST: usize = 128;

/// Whether what the catalogue knows as the address of a log may be masked. The archive has it as it is.
pub(crate) fn is_masked(path: &Path, part: Option<&str>) -> bool {
    const MARK: &str = "[REDACTED:";
    path.to_string_lossy().contains(MARK) || part.is_some_and(|part| part.contains(MARK))
}

/// Masks what a guard finds.
#[derive(Debug)]
pub(crate) struct Hide {
    guard: Arc<Guard>,
    /// Hashes of names that hold no secret, each at its place.
    clean: Box<[u64; CLEAN]>,
}

impl Hide {
    pub(crate) fn new(guard: &Arc<Guard>) -> Self {
        Self {
            guard: Arc::clone(guard),
            clean: Box::new([0; CLEAN]),
        }
    }

    /// A text without its secrets.
    pub(crate) fn text<'t>(&self, text: &'t str, name: Option<&str>) -> Cow<'t, str> {
        self.guard.mask(text, name)
    }

    /// What stands for a name that holds a secret; `None` for all others.
    fn name(&mut self, name: &str) -> Option<String> {
        if name.is_empty() {
            return None;
        }
        let hash = quipu_agents::hash(name.as_bytes());
        let place = usize::try_from(hash).unwrap_or(0) % CLEAN;
        if self.clean[place] == hash {
            return None;
        }
        if let Cow::Owned(masked) = self.path(name) {
            return Some(masked);
        }
        self.clean[place] = hash;
        None
    }

    /// A path without its secrets.
    pub(crate) fn path<'t>(&self, path: &'t str) -> Cow<'t, str> {
        self.guard.mask_path(path)
    }

    /// What stands for an id that holds a secret; `None` for all others. Two ids never become one: what is masked
    /// has a hash of the id behind it.
    fn id(&mut self, id: &str) -> Option<String> {
        let masked = self.name(id)?;
        Some(format!(
            "{masked}-{:016x}",
            quipu_agents::hash(id.as_bytes())
        ))
    }

    /// What stands for the address of a log that holds a secret: its path, and which session of several it is.
    pub(crate) fn address(&mut self, path: &mut PathBuf, part: &mut Option<String>) {
        if let Some(masked) = self.id(&path.to_string_lossy()) {
            *path = masked.into();
        }
        if let Some(masked) = part.as_deref().and_then(|part| self.id(part)) {
            *part = Some(masked);
        }
    }

    /// An event whose names hold no secret. What it says is not looked at: whoever takes it out masks it.
    pub(crate) fn entry<'e, 'a>(&mut self, entry: &'e Entry<'a>) -> Cow<'e, Entry<'a>> {
        let mut hidden = Cow::Borrowed(entry);
        if let What::Call { name, .. } | What::Result { name, .. } = &entry.what
            && let Some(masked) = self.name(name)
            && let What::Call { name, .. } | What::Result { name, .. } = &mut hidden.to_mut().what
        {
            *name = masked.into();
        }
        if let Some(masked) = entry.model.as_deref().and_then(|model| self.name(model)) {
            hidden.to_mut().model = Some(masked.into());
        }
        if let Some(masked) = entry.subagent.as_deref().and_then(|name| self.name(name)) {
            hidden.to_mut().subagent = Some(masked.into());
        }
        let charged = entry.charge.as_ref();
        if let Some(model) = charged.and_then(|charge| charge.model.as_deref())
            && let Some(masked) = self.name(model)
            && let Some(charge) = &mut hidden.to_mut().charge
        {
            charge.model = Some(masked);
        }
        // The session that a call began is put down with the call's id.
        let Some(child) = &entry.child else {
            return hidden;
        };
        if let Some(masked) = self.id(child) {
            hidden.to_mut().child = Some(masked.into());
        }
        if let What::Call { id, .. } | What::Result { id, .. } = &entry.what
            && let Some(masked) = self.id(id)
            && let What::Call { id, .. } | What::Result { id, .. } = &mut hidden.to_mut().what
        {
            *id = masked.into();
        }
        hidden
    }

    /// Sums up an event of which [`Self::entry`] was made.
    pub(crate) fn observe(&self, summary: &mut Summary, hidden: &Entry<'_>) {
        summary.observe_hiding(hidden, &|text| self.guard.mask(text, None));
    }

    /// Masks what a log says of its session.
    pub(crate) fn session(&mut self, session: &mut Session) {
        let Session {
            id,
            agent,
            version,
            title,
            cwd,
            branch,
            repository,
            commit,
            os,
            shell,
            parent,
            parent_call,
            forked_from,
            started_at: _,
            reconstructed: _,
            vendor_usage: _,
            vendor_cost,
        } = session;
        for id in [id, parent, parent_call, forked_from] {
            if let Some(masked) = id.as_deref().and_then(|id| self.id(id)) {
                *id = Some(masked);
            }
        }
        for text in [
            agent,
            version,
            title,
            cwd,
            branch,
            repository,
            commit,
            os,
            shell,
            vendor_cost,
        ] {
            if let Some(masked) = text.as_deref().and_then(|text| self.name(text)) {
                *text = Some(masked);
            }
        }
    }

    /// Masks the names that an adapter does not know.
    pub(crate) fn ledger(&mut self, ledger: &mut Ledger) {
        let unknown = &mut ledger.drift.unknown;
        let masked: BTreeMap<String, String> = unknown
            .keys()
            .filter_map(|name| Some((name.clone(), self.name(name)?)))
            .collect();
        for (name, masked) in masked {
            let Some(sighting) = unknown.remove(&name) else {
                continue;
            };
            unknown
                .entry(masked)
                .and_modify(|other| other.count += sighting.count)
                .or_insert(sighting);
        }
    }

    /// Whether a checkpoint may be put down. One that holds a secret is not: reading it again from the beginning
    /// is what is left.
    pub(crate) fn may_keep(&mut self, checkpoint: &Checkpoint) -> bool {
        let texts = checkpoint.texts();
        let mut tape = Tape::new();
        texts.iter().all(|text| {
            // Parts of records that a reader holds on to are JSON, and a secret is looked for as it reads.
            let is_json = matches!(text.trim_start().as_bytes(), [b'{' | b'[', ..]);
            let record = tape.read(text, DEEPEST).ok().filter(|_| is_json);
            let is_clean = record.is_none_or(|record| !self.is_in(record, None));
            is_clean && self.name(text).is_none()
        })
    }

    /// Whether a secret is in a value.
    fn is_in(&self, value: Node<'_>, name: Option<&str>) -> bool {
        let hides = |text: &str| matches!(self.guard.mask(text, name), Cow::Owned(_));
        match value.kind() {
            Kind::Object => value.fields().any(|(key, value)| {
                let key = key.to_text_lossy();
                hides(&key) || self.is_in(value, Some(&key))
            }),
            Kind::List => value.items().any(|item| self.is_in(item, name)),
            Kind::String => value.as_str().is_some_and(|text| hides(&text)),
            Kind::Number => hides(value.raw().get()),
            Kind::Null | Kind::Bool => false,
        }
    }
}
