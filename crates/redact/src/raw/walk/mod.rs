//! Walks over a JSON text: every key, string and number, with what is known of it from where it stands.

mod frame;
mod given;
mod joint;
mod mark;
mod place;
mod said;
mod sealed;

use std::ops::Range;

use quipu_model::json::{Kind, Node, RawStr};
use rustc_hash::FxHashSet;

use self::frame::{Frame, Here, Outer, Spot, Taint};
use self::mark::lane;
use self::place::{field, placed};
use self::sealed::unique;
use super::asked::LONGEST_COUNT;
use super::edit::What;
use super::escape::Cursor;
use super::keys::{Class, Known, Name};
use super::scan::{Analysis, Marked, Scanner};
use super::taint::Tainted;
use crate::Context;
use crate::engine::Certainty;
use crate::sensitive::Exposes;

pub(super) use self::frame::Level;

/// How many strings deep JSON in strings is followed.
const MAX_STRINGS: u8 = 2;

/// Keys that tell something of the fields beside them.
const TELLING: Class = Class::PATH
    .and(Class::COMMAND)
    .and(Class::ID)
    .and(Class::CALL)
    .and(Class::NAME)
    .and(Class::MEDIA)
    .and(Class::TYPE);

/// The longest word of a format.
const LONGEST_WORD: usize = 64;

/// One walk over a record.
pub(super) struct Walk<'w, 'p> {
    scanner: &'w mut Scanner<'p>,
    tainted: &'w Tainted,
    out: &'w mut Analysis,
    base: usize,
    /// Something in the record came of a call that shows this.
    hit: Option<Exposes>,
    /// Whether the walk began knowing that.
    knew: bool,
    /// Something is told once more outside of what came of the call.
    told_again: bool,
    learnt: bool,
    /// Calls that were found to show something, by how deep and where they are.
    marked: FxHashSet<(u8, u32, Exposes)>,
}

impl<'w, 'p> Walk<'w, 'p> {
    pub(super) fn new(
        scanner: &'w mut Scanner<'p>,
        tainted: &'w Tainted,
        hit: Option<Exposes>,
        base: usize,
        out: &'w mut Analysis,
    ) -> Self {
        Self {
            scanner,
            tainted,
            out,
            base,
            hit,
            knew: hit.is_some(),
            told_again: false,
            learnt: false,
            marked: FxHashSet::default(),
        }
    }

    /// Whether something was learnt that changes what the walk would have found.
    pub(super) fn again(&self) -> bool {
        self.learnt || self.hit.is_some() && !self.knew && self.told_again
    }

    /// What something in the record shows.
    pub(super) fn hit(&self) -> Option<Exposes> {
        self.hit
    }

    /// Walks over a text.
    pub(super) fn tree(
        &mut self,
        depth: u8,
        text: &str,
        root: Node<'_>,
        outer: Option<&Outer<'_>>,
    ) {
        let here = Here {
            depth,
            text,
            root,
            outer,
        };
        let mut level = self.scanner.kept.levels.pop().unwrap_or_default();
        level.frames.clear();
        level.blocks.clear();
        level.given.clear();
        let mut place = 0;
        let end = root.place_behind();
        while place < end {
            while level.frames.last().is_some_and(|frame| place >= frame.end) {
                level.frames.pop();
            }
            let key = match level.frames.last_mut() {
                Some(frame) if frame.object => Some(place),
                Some(frame) => {
                    frame.items += 1;
                    None
                }
                None => None,
            };
            place = self.value(&mut level, here, key, place + u32::from(key.is_some()));
        }
        // Places in strings of strings are only found quickly in order, which these are not.
        if level.blocks.len() > 1 && depth < MAX_STRINGS {
            self.blocks(&level, here);
        }
        level.shrink();
        self.scanner.kept.levels.push(level);
    }

    /// Looks at a value, and says where the next one is.
    fn value(&mut self, level: &mut Level, here: Here<'_>, key: Option<u32>, at: u32) -> u32 {
        let node = here.root.go_to(at);
        let kind = node.kind();
        let known = match (key, level.frames.last()) {
            (Some(key), _) => self.key(level, here, key),
            (None, Some(frame)) => Known {
                class: frame.class,
                name: match frame.key {
                    Some(key) => level.known[key as usize].name,
                    None => Name::NONE,
                },
            },
            (None, None) => Known {
                class: here.outer.map_or(Class::NONE, |outer| outer.class),
                name: Name::OTHER,
            },
        };
        let taint = self.taint(level.frames.last(), here.outer, known.class);
        match kind {
            Kind::Null | Kind::Bool => {}
            Kind::List | Kind::Object => self.enter(level, here, key, at, known.class, taint),
            Kind::String | Kind::Number => self.leaf(level, here, key, node, known, taint),
        }
        at + 1
    }

    /// Looks at a string or a number.
    fn leaf(
        &mut self,
        level: &mut Level,
        here: Here<'_>,
        key: Option<u32>,
        node: Node<'_>,
        known: Known,
        taint: Taint,
    ) {
        let class = known.class;
        let frame = level.frames.last();
        let pair = frame
            .filter(|_| key.is_some() && class.any(Class::VALUE))
            .and_then(|frame| frame.pair);
        let file = frame
            .filter(|_| class.any(Class::CONTENT))
            .and_then(|frame| frame.file);
        // What is only the value of something has the name of that.
        let outer = frame
            .filter(|_| key.is_some() && class.any(Class::INNER))
            .and_then(|frame| frame.key);
        let number = match outer {
            _ if pair.is_some() || file.is_some() => Name::OTHER,
            Some(outer) => level.known[outer as usize].name,
            None => known.name,
        };
        // Of these more is to be seen than what they say by themselves.
        let more = matches!(taint, Taint::Whole(_))
            || class.any(Class::COMMAND)
            || key.is_some() && class.any(Class::TEXT)
            || !level.given.is_empty();
        if !more && self.clean(node, class, number) {
            return;
        }
        let slot = pair.or(outer).or(key).or_else(|| match frame {
            Some(frame) => frame.key,
            None => here.outer.and_then(|outer| outer.key),
        });
        // A text that is a string as a whole has the name that the string has.
        let root = match (frame, here.outer) {
            (None, Some(outer)) => outer.root,
            _ => here.root,
        };
        let name = slot.and_then(|slot| root.go_to(slot).as_str());
        let file = file.and_then(|file| here.root.go_to(file).as_str());
        let spot = Spot {
            name: name.as_deref(),
            number,
            file: file.as_deref().or(self.scanner.plan.file),
            key,
            class,
            taint,
            media: frame.is_some_and(|frame| frame.media) && class.any(Class::DATA),
            lane: frame.and_then(|frame| frame.lane),
        };
        if node.kind() == Kind::Number {
            self.number(level, here, node, spot);
            return;
        }
        let before = self.out.edits.len();
        self.string(level, here, node, spot);
        // In `{"secrets":[{"name":"a","value":"b"}]}` the name is only that of one of them.
        if let (Some(_), Some(outer)) = (pair, outer)
            && self.out.edits.len() == before
            && let Some(plain) = node.as_raw_str().and_then(RawStr::plain)
        {
            let name = here.root.go_to(outer).as_str();
            let spot = Spot {
                name: name.as_deref(),
                ..spot
            };
            self.scan(plain, Vec::new(), level, here, node, spot);
        }
    }

    /// Whether it is known that nothing is to be found in a value, by itself. Those that may be JSON are looked at
    /// otherwise.
    #[inline]
    fn clean(&self, node: Node<'_>, class: Class, name: Name) -> bool {
        let passes = self.scanner.plan.passes;
        let Some(plain) = node.plain_bytes() else {
            return node.kind() == Kind::Number
                && passes
                && class.any(Class::COUNT)
                && node.bytes().len() <= LONGEST_COUNT;
        };
        if matches!(plain, [b'{' | b'[' | b' ', ..]) {
            return false;
        }
        passes && class.any(Class::UNIQUE) && unique(plain)
            || self.scanner.kept.clean.knows(name, plain)
    }

    fn taint(&self, frame: Option<&Frame>, outer: Option<&Outer<'_>>, class: Class) -> Taint {
        let Some(frame) = frame else {
            return match outer {
                Some(outer) => outer.taint,
                None if self.scanner.plan.secret_file => Taint::Whole(Exposes::File),
                None => Taint::None,
            };
        };
        if frame.taint == Taint::None
            && !frame.content
            && frame.results.is_none()
            && self.hit.is_none()
        {
            return Taint::None;
        }
        if let Taint::Whole(_) = frame.taint {
            return frame.taint;
        }
        if frame.content && class.any(Class::CONTENT) {
            return Taint::Whole(Exposes::File);
        }
        if class.any(Class::AGAIN)
            && let Some(exposes) = self.hit
        {
            return Taint::Whole(exposes);
        }
        let seek = match frame.taint {
            Taint::Seek(exposes) => Some(exposes),
            _ => frame.results,
        };
        match seek {
            Some(_) if class.any(Class::INPUT) => Taint::None,
            Some(exposes) if class.any(Class::RESULT) => Taint::Whole(exposes),
            Some(exposes) if class.any(Class::WRAP) || frame.results.is_none() => {
                Taint::Seek(exposes)
            }
            _ => Taint::None,
        }
    }

    /// What is known of a key. Those that were not seen before are looked at themselves.
    #[inline]
    fn key(&mut self, level: &mut Level, here: Here<'_>, key: u32) -> Known {
        let known = level.known[key as usize];
        if known.name != Name::OTHER {
            return known;
        }
        self.new_key(level, here, key, known)
    }

    fn new_key(&mut self, level: &mut Level, here: Here<'_>, key: u32, known: Known) -> Known {
        let node = here.root.go_to(key);
        let before = self.out.edits.len();
        let spot = Spot {
            name: None,
            number: Name::NONE,
            file: self.scanner.plan.file,
            key: Some(key),
            class: Class::NONE,
            taint: Taint::None,
            media: false,
            lane: None,
        };
        let text = node.as_str().unwrap_or_default();
        self.scan(&text, Vec::new(), level, here, node, spot);
        if self.out.edits.len() == before
            && let Some(plain) = node.plain_bytes()
        {
            let known = self.scanner.kept.keys.remember(plain, known.class);
            level.known[key as usize] = known;
            return known;
        }
        known
    }

    /// Opens a list or an object.
    fn enter(
        &mut self,
        level: &mut Level,
        here: Here<'_>,
        key: Option<u32>,
        at: u32,
        class: Class,
        taint: Taint,
    ) {
        let node = here.root.go_to(at);
        let parent = level.frames.last();
        let object = node.kind() == Kind::Object;
        let end = node.place_behind();
        let mut frame = Frame {
            at,
            end,
            object,
            key: key.or_else(|| parent.and_then(|parent| parent.key)),
            class,
            has: Class::NONE,
            items: 0,
            many: !object && at + 1 < end && here.root.go_to(at + 1).place_behind() < end,
            taint,
            content: false,
            results: None,
            pair: None,
            file: None,
            media: false,
            lane: parent.and_then(|parent| parent.lane),
        };
        if class.any(Class::DELTA) && frame.lane.is_none() {
            frame.lane = Some(lane(here, &level.frames));
        }
        level.given.clear();
        if !object {
            level.frames.push(frame);
            if frame.many && here.root.go_to(at + 1).kind() == Kind::String {
                self.arguments(level, here, &frame);
            }
            return;
        }
        if level.known.len() < end as usize {
            level.known.resize(end as usize, Known::default());
        }
        level.telling.clear();
        let mut place = at + 1;
        while place < end {
            let known = here
                .root
                .go_to(place)
                .plain_bytes()
                .map_or_else(Known::default, |key| self.scanner.kept.keys.known(key));
            frame.has = frame.has.and(known.class);
            level.known[place as usize] = known;
            if known.class.any(TELLING) {
                level.telling.push(place);
            }
            place = here.root.go_to(place + 1).place_behind();
        }
        self.told_again |= frame.has.any(Class::AGAIN);
        level.frames.push(frame);
        if frame.has.any(TELLING) || !self.scanner.kept.local.is_empty() {
            self.telling(level, here, &frame);
        }
    }

    /// Looks for what rules find in a text.
    fn scan(
        &mut self,
        text: &str,
        marked: Vec<Marked>,
        level: &Level,
        here: Here<'_>,
        node: Node<'_>,
        spot: Spot<'_>,
    ) {
        let context = Context {
            name: spot.name,
            file: spot.file,
            near: self.scanner.plan.near,
        };
        let mut found = Vec::new();
        self.scanner
            .spans(text, context, spot.number, marked, &mut |edit| {
                found.push(edit);
            });
        if found.is_empty() {
            return;
        }
        let path = field(level, here, spot.key);
        let mut cursor = Cursor::default();
        for edit in found {
            if let What::Rule(rule) = edit.what
                && !self.scanner.plan.fields.is_empty()
                && self.scanner.plan.fields.allow(&path, rule)
            {
                continue;
            }
            let last = self.out.edits.last();
            let number = node.kind() == Kind::Number;
            let edit = placed(edit, self.base, here, node, &path, &mut cursor);
            // A number is replaced as a whole, and once.
            if !(number && last.is_some_and(|last| last.raw == edit.raw)) {
                self.out.edits.push(edit);
            }
        }
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "where a value is takes as many words"
    )]
    fn push(
        &mut self,
        text: &str,
        ranges: impl Iterator<Item = Range<usize>>,
        what: What,
        level: &Level,
        here: Here<'_>,
        node: Node<'_>,
        key: Option<u32>,
    ) {
        let path = field(level, here, key);
        let mut cursor = Cursor::default();
        for range in ranges {
            let edit = super::scan::edit(text, range, what, Certainty::Sure);
            let edit = placed(edit, self.base, here, node, &path, &mut cursor);
            self.out.edits.push(edit);
        }
    }
}
