//! Walks over a JSON text: every key, string and number, with what is known of it from where it stands.

use std::borrow::Cow;
use std::cell::Cell;
use std::ops::Range;

use quipu_model::json::{Kind, Node, Tape};

use super::edit::{Edit, Form, What, settle};
use super::escape::{self, Cursor};
use super::join;
use super::keys::Class;
use super::scan::{Analysis, MAX_DEPTH, Piece, Scanner, environment};
use super::taint::{self, Tainted};
use crate::engine::Certainty;
use crate::sensitive::{Exposes, exposed_by, in_patch, is_sensitive, written_by};
use crate::{Context, is_placeholder};

/// How many strings deep JSON in strings is followed.
const MAX_STRINGS: u8 = 2;

/// The longest word of a format.
const LONGEST_WORD: usize = 64;

/// The longest path that is told.
const LONGEST_PATH: usize = 256;

/// What is used again for each JSON text.
#[derive(Debug, Default)]
pub(super) struct Level {
    frames: Vec<Frame>,
    blocks: Vec<Block>,
    decoded: String,
}

/// A list or an object that is open.
#[derive(Debug, Clone, Copy)]
struct Frame {
    /// Where it is on the tape, and where it ends.
    at: u32,
    end: u32,
    object: bool,
    /// The key it stands under, by its place; that of the list for what is in one.
    key: Option<u32>,
    /// What that key tells.
    class: Class,
    /// What its own keys tell.
    has: Class,
    /// How many items were begun.
    items: u32,
    /// Whether a list has more than one item.
    many: bool,
    taint: Taint,
    /// A secret file is named in it: what else is in it is of the file.
    content: bool,
    /// It is of a call that shows something.
    results: Option<Exposes>,
    /// What its `value` is the value of, by its place.
    pair: Option<u32>,
    /// The file that its content is of, by its place.
    file: Option<u32>,
    /// Its data is a picture or the like.
    media: bool,
    /// It is of a stream, and which.
    lane: Option<u64>,
}

/// How much of a value is secret because of where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taint {
    None,
    /// What came of a call is somewhere in it.
    Seek(Exposes),
    /// All of it.
    Whole(Exposes),
}

/// A text that may go on in the next item of its list.
#[derive(Debug)]
struct Block {
    list: u32,
    item: u32,
    raw: Range<usize>,
    field: String,
}

/// The string that a JSON text is in.
pub(super) struct Outer<'a> {
    root: Node<'a>,
    frames: &'a [Frame],
    key: Option<u32>,
    class: Class,
    taint: Taint,
    /// Where what is between the quotes begins, in the text around it.
    start: usize,
    raw: &'a str,
    cursor: Cell<Cursor>,
    up: Option<&'a Outer<'a>>,
}

impl Outer<'_> {
    /// The place in the outermost text that says what stands at a place.
    fn lift(&self, at: usize) -> usize {
        let mut cursor = self.cursor.get();
        let here = self.start + cursor.find(self.raw, at);
        self.cursor.set(cursor);
        self.up.map_or(here, |up| up.lift(here))
    }
}

/// What is known of a value.
#[derive(Clone, Copy)]
struct Spot<'a> {
    name: Option<&'a str>,
    file: Option<&'a str>,
    key: Option<u32>,
    class: Class,
    taint: Taint,
    media: bool,
    lane: Option<u64>,
}

/// Where a walk is.
#[derive(Clone, Copy)]
struct Here<'a> {
    depth: u8,
    text: &'a str,
    root: Node<'a>,
    outer: Option<&'a Outer<'a>>,
}

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
        let mut level = self.scanner.levels.pop().unwrap_or_default();
        level.frames.clear();
        level.blocks.clear();
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
        if level.blocks.len() > 1 {
            self.blocks(&level, here);
        }
        self.scanner.levels.push(level);
    }

    /// Looks at a value, and says where the next one is.
    fn value(&mut self, level: &mut Level, here: Here<'_>, key: Option<u32>, at: u32) -> u32 {
        let node = here.root.go_to(at);
        let kind = node.kind();
        let frame = level.frames.last();
        let class = match (key, frame) {
            (Some(key), _) => self.key(level, here, key),
            (None, Some(frame)) => frame.class,
            (None, None) => here.outer.map_or(Class::NONE, |outer| outer.class),
        };
        let taint = self.taint(level.frames.last(), here.outer, class);
        match kind {
            Kind::Null | Kind::Bool => at + 1,
            Kind::List | Kind::Object => {
                self.enter(level, here, key, at, class, taint);
                at + 1
            }
            Kind::String | Kind::Number => {
                let frame = level.frames.last();
                let slot = match (key, frame) {
                    (Some(_), Some(frame)) if frame.pair.is_some() && class.any(Class::VALUE) => {
                        frame.pair
                    }
                    (Some(key), _) => Some(key),
                    (None, Some(frame)) => frame.key,
                    (None, None) => here.outer.and_then(|outer| outer.key),
                };
                // A text that is a string as a whole has the name that the string has.
                let root = match (frame, here.outer) {
                    (None, Some(outer)) => outer.root,
                    _ => here.root,
                };
                let name = slot.and_then(|slot| root.go_to(slot).as_str());
                let file = frame
                    .filter(|_| class.any(Class::CONTENT))
                    .and_then(|frame| here.root.go_to(frame.file?).as_str());
                let spot = Spot {
                    name: name.as_deref(),
                    file: file.as_deref().or(self.scanner.plan.file),
                    key,
                    class,
                    taint,
                    media: frame.is_some_and(|frame| frame.media) && class.any(Class::DATA),
                    lane: frame.and_then(|frame| frame.lane),
                };
                if kind == Kind::Number {
                    self.number(level, here, node, spot);
                } else {
                    self.string(level, here, node, spot);
                }
                at + 1
            }
        }
    }

    fn taint(&self, frame: Option<&Frame>, outer: Option<&Outer<'_>>, class: Class) -> Taint {
        let Some(frame) = frame else {
            return match outer {
                Some(outer) => outer.taint,
                None if self.scanner.plan.secret_file => Taint::Whole(Exposes::File),
                None => Taint::None,
            };
        };
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

    /// What a key tells. Those that were not seen before are looked at themselves.
    fn key(&mut self, level: &mut Level, here: Here<'_>, key: u32) -> Class {
        let node = here.root.go_to(key);
        let plain = node.plain_bytes();
        if let Some(class) = plain.and_then(|plain| self.scanner.keys.known(plain)) {
            if class.any(Class::AGAIN) {
                self.told_again = true;
            }
            return class;
        }
        let class = plain.map_or(Class::NONE, Class::of);
        self.told_again |= class.any(Class::AGAIN);
        let before = self.out.edits.len();
        let spot = Spot {
            name: None,
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
            && let Some(plain) = plain
        {
            self.scanner.keys.remember(plain, class);
        }
        class
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
        if !object {
            level.frames.push(frame);
            return;
        }
        let mut place = at + 1;
        while place < end {
            if let Some(key) = here.root.go_to(place).plain_bytes() {
                let class = self
                    .scanner
                    .keys
                    .known(key)
                    .unwrap_or_else(|| Class::of(key));
                frame.has = frame.has.and(class);
            }
            place = here.root.go_to(place + 1).place_behind();
        }
        level.frames.push(frame);
        const TELLING: Class = Class::PATH
            .and(Class::COMMAND)
            .and(Class::ID)
            .and(Class::CALL)
            .and(Class::NAME)
            .and(Class::MEDIA)
            .and(Class::TYPE);
        if frame.has.any(TELLING) || !self.scanner.local.is_empty() {
            self.telling(level, here, &frame);
        }
    }

    /// Looks at the fields of an object that tell something of others.
    fn telling(&mut self, level: &mut Level, here: Here<'_>, frame: &Frame) {
        let object = here.root.go_to(frame.at);
        let mut known = *frame;
        let plan = self.scanner.plan;
        let calls = plan.files && frame.has.any(Class::RESULT.and(Class::WRAP));
        for (key, value) in object.fields() {
            let Some(plain) = key.plain() else { continue };
            let plain = plain.as_bytes();
            let class = self
                .scanner
                .keys
                .known(plain)
                .unwrap_or_else(|| Class::of(plain));
            if class == Class::NONE {
                continue;
            }
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
        if calls && !self.scanner.local.is_empty() {
            let place = taint::place(here.depth, object.offset());
            known.results = known
                .results
                .or_else(|| self.scanner.local.get(&place).copied());
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
        let before = self.scanner.local.get(&id).copied();
        if before.is_none() || before == Some(Exposes::Environment) && exposes == Exposes::File {
            self.scanner.local.insert(id, exposes);
            self.learnt = true;
        }
    }

    fn number(&mut self, level: &Level, here: Here<'_>, node: Node<'_>, spot: Spot<'_>) {
        let text = node.raw().get();
        // Nothing that opens anything is shorter.
        if text.len() >= 4 {
            self.scan(text, Vec::new(), level, here, node, spot);
        }
    }

    fn string(&mut self, level: &mut Level, here: Here<'_>, node: Node<'_>, spot: Spot<'_>) {
        let inner = &node.bytes()[1..];
        let raw = &inner[..inner.len() - 1];
        if raw.is_empty() || sealed(raw, spot) {
            return;
        }
        let word = spot.class.any(Class::FORM)
            && raw.len() <= LONGEST_WORD
            && !raw.iter().any(|byte| matches!(byte, b' ' | b'\\'));
        let mut decoded = std::mem::take(&mut level.decoded);
        let text = if let Some(plain) = node.as_raw_str().and_then(|raw| raw.plain()) {
            plain
        } else {
            decoded.clear();
            escape::decode(
                &here.text[node.offset() + 1..node.offset() + 1 + raw.len()],
                &mut decoded,
            );
            &decoded
        };
        match spot.taint {
            Taint::Whole(Exposes::File) if !word => {
                if !is_placeholder(text) {
                    self.push(
                        text,
                        vec![0..text.len()],
                        What::File,
                        level,
                        here,
                        node,
                        spot.key,
                    );
                }
            }
            Taint::Whole(Exposes::Environment) if !word => {
                let values = environment(text);
                if values.is_empty() {
                    self.content(text, level, here, node, spot);
                }
                self.push(text, values, What::Environment, level, here, node, spot.key);
            }
            _ => self.content(text, level, here, node, spot),
        }
        if decoded.capacity() > 16 << 20 {
            decoded = String::new();
        }
        level.decoded = decoded;
    }

    /// Looks at what a string says.
    fn content(
        &mut self,
        text: &str,
        level: &mut Level,
        here: Here<'_>,
        node: Node<'_>,
        spot: Spot<'_>,
    ) {
        if here.depth < MAX_STRINGS
            && looks_like_json(text)
            && self.nested(text, level, here, node, spot)
        {
            return;
        }
        let mut secret = Vec::new();
        if self.scanner.plan.files {
            if spot.class.any(Class::COMMAND)
                && memchr::memchr2(b'>', b'|', text.as_bytes()).is_some()
            {
                secret = written_by(text);
            }
            if secret.is_empty() && text.len() > 16 {
                secret = in_patch(text);
            }
        }
        if spot.class.any(Class::TEXT) && spot.key.is_some()
            || spot.key.is_none() && text.ends_with('\n')
        {
            self.goes_on(text, level, here, node, spot);
        }
        self.scan(text, secret, level, here, node, spot);
    }

    /// A text that may go on elsewhere is remembered.
    fn goes_on(
        &mut self,
        text: &str,
        level: &mut Level,
        here: Here<'_>,
        node: Node<'_>,
        spot: Spot<'_>,
    ) {
        let raw = node.offset() + 1..node.offset() + node.bytes().len() - 1;
        if let Some(lane) = spot.lane
            && here.depth == 0
        {
            self.out.pieces.push(Piece {
                lane: lane ^ taint::hash(spot.name.unwrap_or_default().as_bytes()),
                raw: self.base + raw.start..self.base + raw.end,
                text: text.to_owned(),
                field: field(level, here, spot.key),
            });
        }
        // In an object that is an item of a list, or itself one.
        let list = match (spot.key, level.frames.as_slice()) {
            (Some(_), [.., list, _]) | (None, [.., list]) if !list.object => list,
            _ => return,
        };
        if list.many {
            let block = Block {
                list: list.at,
                item: list.items,
                raw,
                field: field(level, here, spot.key),
            };
            level.blocks.push(block);
        }
    }

    /// Looks at a string that is JSON as JSON, and says whether it is.
    fn nested(
        &mut self,
        text: &str,
        level: &Level,
        here: Here<'_>,
        node: Node<'_>,
        spot: Spot<'_>,
    ) -> bool {
        let mut tape = self.scanner.tapes.pop().unwrap_or_default();
        let read = tape.read(text, MAX_DEPTH / 8).is_ok();
        if read {
            let start = node.offset() + 1;
            let outer = Outer {
                root: here.root,
                frames: &level.frames,
                key: spot
                    .key
                    .or_else(|| level.frames.last().and_then(|frame| frame.key)),
                class: spot.class,
                taint: spot.taint,
                start,
                raw: &here.text[start..start + node.bytes().len() - 2],
                cursor: Cell::default(),
                up: here.outer,
            };
            self.tree(here.depth + 1, text, tape.root(text), Some(&outer));
        }
        Tape::shrink(&mut tape);
        self.scanner.tapes.push(tape);
        read
    }

    /// Looks for what rules find in a text.
    fn scan(
        &mut self,
        text: &str,
        secret: Vec<Range<usize>>,
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
            .spans(text, context, secret, &mut |edit| found.push(edit));
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
        ranges: Vec<Range<usize>>,
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

    /// Looks at what texts say together that follow each other in a list.
    fn blocks(&mut self, level: &Level, here: Here<'_>) {
        let mut more = Vec::new();
        let mut from = 0;
        for to in 1..=level.blocks.len() {
            let goes_on = level.blocks.get(to).is_some_and(|next| {
                let last = &level.blocks[to - 1];
                next.list == last.list && next.item == last.item + 1
            });
            if !goes_on {
                if to - from > 1 {
                    self.joint(&level.blocks[from..to], here, &mut more);
                }
                from = to;
            }
        }
        settle(&mut self.out.edits, more);
    }

    fn joint(&mut self, blocks: &[Block], here: Here<'_>, more: &mut Vec<Edit>) {
        let texts: Vec<String> = blocks
            .iter()
            .map(|block| {
                let mut text = String::new();
                escape::decode(&here.text[block.raw.clone()], &mut text);
                text
            })
            .collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let scanner = &mut *self.scanner;
        for spread in join::spread(scanner.plan, &mut scanner.scratch, &texts) {
            for (place, (piece, span)) in spread.parts.iter().enumerate() {
                let block = &blocks[*piece];
                let raw = &here.text[block.raw.clone()];
                let mut cursor = Cursor::default();
                let from = block.raw.start + cursor.find(raw, span.start);
                let to = block.raw.start + cursor.find(raw, span.end);
                more.push(Edit {
                    raw: self.base + lift(here, from)..self.base + lift(here, to),
                    what: What::Rule(spread.rule),
                    certainty: Certainty::Sure,
                    value: if place == 0 {
                        spread.value.clone()
                    } else {
                        String::new()
                    },
                    field: block.field.clone(),
                    form: if place == 0 {
                        Form::Text(here.depth + 1)
                    } else {
                        Form::Cut
                    },
                });
            }
        }
    }
}

fn lift(here: Here<'_>, at: usize) -> usize {
    here.outer.map_or(at, |outer| outer.lift(at))
}

/// An edit of what a value says, as an edit of the record.
fn placed(
    mut edit: Edit,
    base: usize,
    here: Here<'_>,
    node: Node<'_>,
    path: &str,
    cursor: &mut Cursor,
) -> Edit {
    let (start, len) = (node.offset(), node.bytes().len());
    let (from, to) = if node.kind() == Kind::Number {
        edit.form = Form::Number(here.depth);
        (start, start + len)
    } else {
        edit.form = Form::Text(here.depth + 1);
        if node.plain_bytes().is_some() {
            (start + 1 + edit.raw.start, start + 1 + edit.raw.end)
        } else {
            let raw = &here.text[start + 1..start + len - 1];
            let from = start + 1 + cursor.find(raw, edit.raw.start);
            (from, start + 1 + cursor.find(raw, edit.raw.end))
        }
    };
    edit.raw = base + lift(here, from)..base + lift(here, to);
    path.clone_into(&mut edit.field);
    edit
}

/// Where a value stands: `message.content[0].text`.
fn field(level: &Level, here: Here<'_>, key: Option<u32>) -> String {
    let mut path = String::new();
    if let Some(outer) = here.outer {
        around(outer, &mut path);
    }
    within(&level.frames, here.root, key, &mut path);
    path
}

fn around(outer: &Outer<'_>, path: &mut String) {
    if let Some(up) = outer.up {
        around(up, path);
    }
    let key = outer
        .frames
        .last()
        .filter(|frame| frame.object)
        .and(outer.key);
    within(outer.frames, outer.root, key, path);
}

fn within(frames: &[Frame], root: Node<'_>, key: Option<u32>, path: &mut String) {
    use std::fmt::Write as _;
    for (place, frame) in frames.iter().enumerate() {
        if path.len() > LONGEST_PATH {
            path.push('…');
            return;
        }
        let next = frames.get(place + 1);
        if !frame.object {
            // Writing to a string does not fail.
            write!(path, "[{}]", frame.items.saturating_sub(1)).unwrap_or_default();
            continue;
        }
        let key = match next {
            Some(next) => next.key,
            None => key,
        };
        let name = key
            .and_then(|key| root.go_to(key).as_str())
            .unwrap_or_default();
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(&name[..join::floor(&name, LONGEST_PATH)]);
    }
}

/// Which stream the pieces in an object are of: by the keys it stands under, and what tells streams apart.
fn lane(here: Here<'_>, frames: &[Frame]) -> u64 {
    let mut all = 0_u64;
    for frame in frames {
        if !frame.object {
            all = all.rotate_left(7) ^ u64::from(frame.items);
            continue;
        }
        if let Some(key) = frame.key {
            all = all.rotate_left(5) ^ taint::hash(here.root.go_to(key).bytes());
        }
        for (key, value) in here.root.go_to(frame.at).fields() {
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
    let word = |word: &[u8]| memchr::memmem::find(kind, word).is_some();
    kind.len() <= LONGEST_WORD
        && kind.len() >= 5
        && (word(b"delta") || word(b"chunk") || word(b"stream"))
}

/// Whether a string is for machines alone: what a provider encrypted or signed, or a picture.
fn sealed(raw: &[u8], spot: Spot<'_>) -> bool {
    const DATA_URL: usize = 64;
    if spot.media || spot.class.any(Class::SEALED) && raw.len() >= 64 {
        return raw.iter().all(|byte| is_base64(*byte));
    }
    if raw.starts_with(b"data:image/")
        || raw.starts_with(b"data:audio/")
        || raw.starts_with(b"data:video/")
    {
        let comma = memchr::memchr(b',', &raw[..raw.len().min(DATA_URL)]);
        return comma.is_some_and(|comma| {
            raw[..comma].ends_with(b";base64")
                && raw[comma + 1..].iter().all(|byte| is_base64(*byte))
        });
    }
    false
}

const fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_')
}

/// Whether it is worth reading a text as JSON.
fn looks_like_json(text: &str) -> bool {
    let bytes = text.as_bytes();
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    let last = bytes.iter().rev().find(|byte| !byte.is_ascii_whitespace());
    matches!(
        (first, last),
        (Some(b'{'), Some(b'}')) | (Some(b'['), Some(b']'))
    )
}
