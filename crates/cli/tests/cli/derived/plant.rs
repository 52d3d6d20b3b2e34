//! Logs of every dialect with secrets in them, and where such a secret is found again.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use quipu_model::json::{Kind, Node, Tape};
use quipu_redact::rule::expand;
use quipu_redact::{Guard, Kind as What, RuleSet};

/// How long the pieces of a secret are that are looked for.
const PIECE: usize = 12;

/// A text with a secret in it.
struct Sample {
    text: String,
    /// What of it must not be found anywhere.
    secret: String,
    /// The same of another secret of the same form: what both share is not secret.
    other: String,
}

/// Samples of every rule that finds secrets, one after the other, never the same twice.
pub(crate) struct Samples {
    templates: Vec<(String, String)>,
    guard: Guard,
    next: usize,
    /// The rules of which a sample was planted.
    pub(crate) rules: HashSet<String>,
}

impl Samples {
    pub(crate) fn new(first: usize) -> Self {
        let rules = RuleSet::builtin().rules;
        let secrets = rules.into_iter().filter(|rule| rule.kind == What::Secret);
        let templates = secrets.flat_map(|rule| {
            let id = rule.id.clone();
            let all = rule.examples.into_iter();
            all.map(move |template| (id.clone(), template))
        });
        Self {
            templates: templates.collect(),
            guard: Guard::secrets().unwrap(),
            next: first,
            rules: HashSet::new(),
        }
    }

    pub(crate) fn all_rules(&self) -> usize {
        let ids: HashSet<&String> = self.templates.iter().map(|(id, _)| id).collect();
        ids.len()
    }

    /// A value with the next secret in it that the rules find there.
    fn plant(&mut self, value: &str, fits: fn(&str) -> bool) -> (String, Sample) {
        loop {
            let (rule, template) = &self.templates[self.next % self.templates.len()];
            let seed = self.next as u64;
            self.next += 1;
            let (Some(one), Some(two)) = (
                expand(template, seed),
                expand(template, seed ^ 0x5555_5555_5555),
            ) else {
                continue;
            };
            let secret = |sample: &quipu_redact::rule::Sample| match &sample.secret {
                Some(range) => sample.text[range.clone()].to_owned(),
                None => sample.text.clone(),
            };
            let sample = Sample {
                secret: secret(&one),
                other: secret(&two),
                text: one.text.clone(),
            };
            let is_path = value.contains('/') && !value.contains(' ');
            // What is said may be told in pieces, and what comes next must not become a part of the secret.
            let (gap, end) = if is_path { ("/", "") } else { (" ", " ") };
            let planted = if value.is_empty() {
                format!("{}{end}", sample.text)
            } else {
                format!("{value}{gap}{}{end}", sample.text)
            };
            let pieces = sample.pieces();
            let masked = self.guard.mask(&planted, None);
            // How well rules find secrets in every place is not asked here.
            let is_found = pieces.iter().all(|piece| !contains(&masked, piece));
            // Adapters take names out of paths, so a secret that goes over several names of a path is none any more.
            let is_split = is_path && sample.text.contains('/');
            if pieces.is_empty() || !is_found || is_split || !fits(&sample.text) {
                continue;
            }
            self.rules.insert(rule.clone());
            return (planted, sample);
        }
    }
}

fn contains(text: &str, piece: &[u8]) -> bool {
    text.as_bytes()
        .windows(piece.len())
        .any(|window| window == piece)
}

impl Sample {
    /// Parts of the secret that nothing else has.
    fn pieces(&self) -> Vec<[u8; PIECE]> {
        let (one, other) = (self.secret.as_bytes(), self.other.as_bytes());
        if one.len() < PIECE || one.len() != other.len() {
            return Vec::new();
        }
        let last = one.len() - PIECE;
        let mut starts = vec![0, last / 2, last];
        starts.dedup();
        let piece = |at: usize| -> Option<[u8; PIECE]> {
            let (one, other) = (&one[at..at + PIECE], &other[at..at + PIECE]);
            let differ = one.iter().zip(other).filter(|(a, b)| a != b).count();
            (differ >= PIECE - 4).then(|| one.try_into().unwrap())
        };
        starts.into_iter().filter_map(piece).collect()
    }

    /// The words of the secret that nothing else has, as the search index keeps words.
    fn words(&self) -> Vec<String> {
        let mut other = HashSet::new();
        quipu_search::words::each(&self.other, |word| {
            other.insert(word.text.to_owned());
        });
        let mut words = Vec::new();
        quipu_search::words::each(&self.secret, |word| {
            if word.text.len() >= 10 && !word.part && !other.contains(word.text) {
                words.push(word.text.to_owned());
            }
        });
        words
    }
}

/// What was planted where.
#[derive(Default)]
pub(crate) struct Planted {
    /// The dialect and the field of each secret.
    pub(crate) fields: Vec<String>,
    pieces: HashMap<[u8; PIECE], usize>,
    words: HashMap<String, usize>,
    /// Which beginnings of pieces there are.
    begins: Vec<bool>,
}

fn begin(bytes: &[u8]) -> usize {
    usize::from(bytes[0]) << 12 ^ usize::from(bytes[1]) << 6 ^ usize::from(bytes[2])
}

impl Planted {
    fn note(&mut self, field: String, sample: &Sample) {
        self.begins.resize(1 << 20, false);
        let n = self.fields.len();
        self.fields.push(field);
        for piece in sample.pieces() {
            self.begins[begin(&piece)] = true;
            self.pieces.insert(piece, n);
        }
        for word in sample.words() {
            self.words.insert(word, n);
        }
    }

    /// The secrets that some bytes hold.
    pub(crate) fn found_in(&self, bytes: &[u8], found: &mut HashSet<usize>) {
        for window in bytes.windows(PIECE) {
            if self.begins[begin(window)]
                && let Some(n) = self.pieces.get(window)
            {
                found.insert(*n);
            }
        }
    }

    /// The secret that a word of the search index is of.
    pub(crate) fn found_as(&self, word: &str) -> Option<usize> {
        self.words.get(word).copied()
    }
}

/// A log of our own.
struct Log {
    dialect: String,
    name: String,
    ending: String,
    text: String,
}

/// The logs of our own, one or several a dialect.
fn logs() -> Vec<Log> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../agents/fixtures");
    let mut logs = Vec::new();
    let mut folders = below(&root);
    folders.sort();
    for folder in folders {
        let mut paths = below(&folder);
        paths.sort();
        for path in paths {
            let part = |part: Option<&std::ffi::OsStr>| part.unwrap().to_str().unwrap().to_owned();
            let ending = part(path.extension());
            if ending != "expected" {
                logs.push(Log {
                    dialect: part(folder.file_name()),
                    name: part(path.file_stem()),
                    text: std::fs::read_to_string(&path).unwrap(),
                    ending,
                });
            }
        }
    }
    assert!(logs.len() > 80, "a log for each dialect");
    logs
}

pub(crate) fn below(path: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// A text in a log: which field it is, and where it stands.
struct PlantedPlace {
    field: String,
    from: usize,
    to: usize,
    value: String,
    is_json: bool,
}

fn places(log: &Log) -> Vec<PlantedPlace> {
    let mut places = Vec::new();
    let mut tape = Tape::new();
    if let Ok(root) = tape.read(&log.text, 128) {
        walk(root, "", 0, &mut places);
        return places;
    }
    let mut at = 0;
    for line in log.text.split_inclusive('\n') {
        let json = line.find('{').unwrap_or(0);
        if let Ok(root) = tape.read(line[json..].trim_end(), 128) {
            walk(root, "", at + json, &mut places);
        } else if !line.trim().is_empty() && log.ending != "html" {
            let value = line.trim_end();
            let words: String = value.chars().take(4).collect();
            places.push(PlantedPlace {
                field: format!("line {}", words.trim()),
                from: at,
                to: at + value.len(),
                value: value.to_owned(),
                is_json: false,
            });
        }
        at += line.len();
    }
    places
}

fn walk(node: Node<'_>, field: &str, at: usize, places: &mut Vec<PlantedPlace>) {
    match node.kind() {
        Kind::String => {
            let from = at + node.offset();
            places.push(PlantedPlace {
                field: field.to_owned(),
                from,
                to: from + node.raw().get().len(),
                value: node.as_str().unwrap_or_default().into_owned(),
                is_json: true,
            });
        }
        Kind::List => {
            for item in node.items() {
                walk(item, field, at, places);
            }
        }
        Kind::Object => {
            for (key, value) in node.fields() {
                let key = key.to_text_lossy();
                walk(value, &format!("{field}.{key}"), at, places);
            }
        }
        Kind::Null | Kind::Bool | Kind::Number => {}
    }
}

fn is_line(text: &str) -> bool {
    !text.contains('\n')
}

/// Whether a directory can be called so.
fn is_name(text: &str) -> bool {
    is_line(text) && !text.contains('/') && text.len() < 200
}

/// Writes every log once for each of its fields, with a secret in that field and in no other; and once into a directory
/// with a secret in its name.
pub(crate) fn plant(
    samples: &mut Samples,
    wanted: impl Fn(usize) -> bool,
    mut write: impl FnMut(&str, &str),
) -> Planted {
    let mut planted = Planted::default();
    let mut nth = 0;
    for log in logs() {
        let (folder, sample) = samples.plant(&format!("/{}", log.dialect), is_name);
        planted.note(format!("{} (its path)", log.dialect), &sample);
        let file = format!("{}.{}", log.name, log.ending);
        write(&format!("{folder}/{file}"), &log.text);
        let places = places(&log);
        let mut fields: BTreeMap<&str, Vec<&PlantedPlace>> = BTreeMap::new();
        for place in &places {
            fields.entry(&place.field).or_default().push(place);
        }
        for (field, places) in fields {
            nth += 1;
            if !wanted(nth) {
                continue;
            }
            let mut text = log.text.clone();
            for place in places.into_iter().rev() {
                let fits = if place.is_json {
                    |_: &str| true
                } else {
                    is_line
                };
                let (value, sample) = samples.plant(&place.value, fits);
                let written = if place.is_json {
                    serde_json::Value::from(value).to_string()
                } else {
                    value
                };
                text.replace_range(place.from..place.to, &written);
                planted.note(format!("{} {field}", log.dialect), &sample);
            }
            write(&format!("/{}/{nth}/{file}", log.dialect), &text);
        }
    }
    planted
}
