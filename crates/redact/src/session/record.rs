//! Takes secrets out of what is recorded, before it is written.

use std::sync::{Arc, Mutex, PoisonError};

use quipu_formats::normalized::Beyond;
use quipu_model::{Block, Body, Content, Draft, ModelCallId, NativeId, SubagentId};

use super::content::Shaper;
use super::files::Files;
use super::mask::{Kit, Mask};
use super::names::Names;
use super::old::Old;
use super::review::Decisions;
use super::traces::Traces;
use crate::{Engine, Key, Placeholders, Profile};

/// What takes secrets out of a draft: what the recorder calls with each. Rules of the kinds that the profile applies are
/// applied, and files that are secret as a whole go; nothing else changes, whatever the profile leaves out when it is
/// shared.
///
/// The same value has the same placeholder as long as this lives. What is cut in two by the end of an event is not
/// found: each draft is looked at by itself.
pub fn masker(
    engine: Arc<Engine>,
    profile: &Profile,
    key: &Key,
) -> impl Fn(&mut Draft) + Send + Sync + use<> {
    let wanted: Vec<bool> = engine
        .rules()
        .rules
        .iter()
        .map(|rule| profile.wants(rule))
        .collect();
    let policy = Profile::builtin("local").map_or_else(
        || profile.clone(),
        |local| Profile {
            kinds: profile.kinds.clone(),
            ..local
        },
    );
    let placeholders = Placeholders::new(key.derive("placeholders", "record"));
    let state = Mutex::new((Kit::new(placeholders), Files::default()));
    let key = key.clone();
    move |draft| {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        let (kit, files) = &mut *state;
        let decisions = Decisions::default();
        let fresh = || Kit::new(Placeholders::new(key.clone()));
        let mut mask = Mask {
            engine: &engine,
            wanted: wanted.clone(),
            secrets: policy.kinds.contains(&crate::Kind::Secret),
            key: key.clone(),
            salts: None,
            naming: key.clone(),
            names: Names::default(),
            traces: Traces::default(),
            rounds: false,
            decisions: &decisions,
            review: None,
            shows: false,
            pending: Vec::new(),
            kit: std::mem::replace(kit, fresh()),
            seq: 0,
            list: Vec::new(),
            old: Old::default(),
            near: 0,
        };
        let mut shaper = Shaper {
            mask: &mut mask,
            profile: &policy,
            files,
            is_exposed: false,
        };
        shaper.body(&mut draft.body, &[], &mut Beyond::default());
        shaper.annotations(&mut draft.annotations);
        for label in labels(draft) {
            shaper.name("label", label);
        }
        *kit = mask.kit;
    }
}

/// What names an event, rather than being said in it: whoever hands events in may put anything there. The same name
/// has the same placeholder, so that calls and their results still find each other.
fn labels(draft: &mut Draft) -> Vec<&mut String> {
    fn ids(blocks: &mut [Block]) -> impl Iterator<Item = &mut String> {
        blocks
            .iter_mut()
            .filter_map(|block| match &mut block.content {
                Content::ToolUse { id, .. } | Content::ToolResult { id, .. } => Some(id.text_mut()),
                _ => None,
            })
    }
    let Draft {
        place,
        body,
        annotations,
    } = draft;
    let mut labels = vec![&mut place.path];
    match body {
        Body::ToolCall(call) => labels.push(call.call_id.text_mut()),
        Body::ToolResult(result) => labels.push(result.call_id.text_mut()),
        Body::UserMessage(blocks)
        | Body::AssistantMessage(blocks)
        | Body::SystemMessage(blocks) => labels.extend(ids(blocks)),
        _ => {}
    }
    // To change annotations is to make them, and most events have none.
    if !annotations.is_empty() {
        let notes = &mut **annotations;
        let named = [
            notes.native_id.as_mut().map(NativeId::text_mut),
            notes.parent_id.as_mut().map(NativeId::text_mut),
            notes.subagent_id.as_mut().map(SubagentId::text_mut),
            notes.model.as_mut(),
            notes.model_call.as_mut().map(ModelCallId::text_mut),
        ];
        labels.extend(named.into_iter().flatten());
        labels.extend(notes.source.iter_mut().map(|source| &mut source.file));
        let mimes = notes.attachments.iter_mut().map(|it| &mut it.mime);
        labels.extend(mimes);
    }
    labels
}
