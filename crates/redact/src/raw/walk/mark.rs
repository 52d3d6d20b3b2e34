//! What objects tell of what is in them: the files they are of, the calls, the streams.

use std::borrow::Cow;

use quipu_model::json::{Kind, Node};

use super::frame::{Frame, Here, Level};
use super::{LONGEST_WORD, Walk};
use crate::raw::keys::Class;
use crate::raw::taint;
use crate::sensitive::{Exposes, exposed_by, is_sensitive};

impl Walk<'_, '_> {
    /// Looks at the fields of an object that tell something of others.
    pub(super) fn telling(&mut self, level: &mut Level, here: Here<'_>, frame: &Frame) {
        let object = here.root.go_to(frame.at);
        let mut known = *frame;
        let plan = self.scanner.plan;
        let calls = plan.files && frame.has.any(Class::RESULT.and(Class::WRAP));
        for at in 0..level.telling.len() {
            let place = level.telling[at];
            let class = level.known[place as usize].class;
            let value = here.root.go_to(place + 1);
            if class.any(Class::COMMAND) && plan.files {
                self.command(level, here, value);
            }
            if value.kind() != Kind::String {
                continue;
            }
            if class.any(Class::PATH) && plan.files {
                known.file = known.file.or(Some(value.place()));
                if value.as_str().is_some_and(|path| is_sensitive(&path)) {
                    known.content = true;
                    self.mark(&level.frames, here, Exposes::File, false);
                }
            }
            if class.any(Class::ID.and(Class::CALL)) && calls {
                let id = taint::hash(value.bytes());
                self.out.refs.push(id);
                known.results = known.results.or_else(|| self.known(id));
            }
            if class.any(Class::NAME) && frame.has.any(Class::VALUE) {
                known.pair = known.pair.or(Some(value.place()));
            }
            if class.any(Class::MEDIA) {
                let kind = value.plain_bytes().unwrap_or_default();
                let seen = [&b"image/"[..], b"audio/", b"video/", b"application/pdf"];
                known.media |= seen.iter().any(|head| kind.starts_with(head));
            }
            if class.any(Class::TYPE) && known.lane.is_none() {
                let kind = value.plain_bytes().unwrap_or_default();
                if streams(kind) {
                    known.lane = Some(lane(here, &level.frames));
                }
            }
        }
        if calls && !self.scanner.kept.local.is_empty() {
            let place = taint::place(here.depth, object.offset());
            known.results = known
                .results
                .or_else(|| self.scanner.kept.local.get(&place).copied());
        }
        if known.results.is_some() && self.hit.is_none() {
            self.hit = known.results;
        }
        if let Some(last) = level.frames.last_mut() {
            *last = known;
        }
    }

    fn known(&self, id: u64) -> Option<Exposes> {
        self.scanner
            .kept
            .local
            .get(&id)
            .copied()
            .or_else(|| self.tainted.get(id))
    }

    /// Looks at a command line, or at one that is a list of words.
    fn command(&mut self, level: &Level, here: Here<'_>, value: Node<'_>) {
        let line = match value.kind() {
            Kind::String => value.as_str(),
            Kind::List => {
                let words: Vec<Cow<'_, str>> =
                    value.items().filter_map(|item| item.as_str()).collect();
                Some(Cow::Owned(words.join(" ")))
            }
            _ => None,
        };
        if let Some(exposes) = line.and_then(|line| exposed_by(&line)) {
            self.mark(&level.frames, here, exposes, true);
        }
    }

    /// Something secret is named: what came of the call that it is the input of is secret as well. The call is the
    /// nearest object around it that has an id, reached through what a call is made with.
    fn mark(&mut self, frames: &[Frame], here: Here<'_>, exposes: Exposes, input: bool) {
        let (mut root, mut frames, mut depth) = (here.root, frames, here.depth);
        let mut up = here.outer;
        let mut through = input;
        loop {
            for frame in frames.iter().rev() {
                if through && !frame.object {
                    return;
                }
                let object = root.go_to(frame.at);
                if frame.has.any(Class::CALL) || through && frame.has.any(Class::ID) {
                    // Each call is looked at once, however many files it names.
                    if !self.marked.insert((depth, frame.at, exposes)) {
                        return;
                    }
                    for (key, value) in object.fields() {
                        let is = |plain: &str| {
                            Class::of(plain.as_bytes()).any(Class::ID.and(Class::CALL))
                        };
                        if value.kind() == Kind::String && key.plain().is_some_and(is) {
                            self.learn(taint::hash(value.bytes()), exposes, true);
                        }
                    }
                    return;
                }
                if through && frame.has.any(Class::RESULT.and(Class::WRAP)) {
                    self.learn(taint::place(depth, object.offset()), exposes, false);
                }
                through |= frame.class.any(Class::INPUT);
            }
            let Some(outer) = up else { return };
            through |= outer.class.any(Class::INPUT);
            (root, frames, up) = (outer.root, outer.frames, outer.up);
            depth -= 1;
        }
    }

    fn learn(&mut self, id: u64, exposes: Exposes, everywhere: bool) {
        if everywhere {
            self.out.taints.push((id, exposes));
        }
        let before = self.scanner.kept.local.get(&id).copied();
        if before.is_none_or(|before| exposes < before) {
            self.scanner.kept.local.insert(id, exposes);
            self.learnt = true;
        }
    }
}

/// Which stream the pieces in an object are of: by the keys it stands under, and what tells streams apart.
pub(super) fn lane(here: Here<'_>, frames: &[Frame]) -> u64 {
    let mut all = 0_u64;
    // What tells streams apart is near, and of few words; looking further would make long records slow.
    for frame in frames.iter().rev().take(8) {
        if !frame.object {
            all = all.rotate_left(7) ^ u64::from(frame.items);
            continue;
        }
        if let Some(key) = frame.key {
            all = all.rotate_left(5) ^ taint::hash(here.root.go_to(key).bytes());
        }
        for (key, value) in here.root.go_to(frame.at).fields().take(32) {
            let tells = |plain: &str| Class::of(plain.as_bytes()).any(Class::LANE);
            if key.plain().is_some_and(tells)
                && value.bytes().len() <= 256
                && value.kind() != Kind::Object
            {
                all = all.rotate_left(9) ^ taint::hash(value.bytes());
            }
        }
    }
    all
}

/// Whether what an object says it is means that it is a piece of something.
fn streams(kind: &[u8]) -> bool {
    kind.len() <= LONGEST_WORD
        && kind
            .windows(5)
            .any(|part| matches!(part, b"delta" | b"chunk" | b"strea"))
}
