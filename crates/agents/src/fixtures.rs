//! Logs of our own: `fixtures/<dialect>/<case>.<ending>`, and beside each what is expected of it.
//!
//! A file that is put there is a test. `QUIPU_BLESS=1` writes what is expected of every log anew. All logs are
//! written by us, so whoever has the source can test every adapter.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::testkit::{Read, read_as};
use crate::{Doubt, FAMILIES, Family, Framing, Head, Host, Known, Lies, Match, Pick};

/// Dialects that are not looked for in content: whoever takes such lines out of a database knows what they are.
const TAKEN_OUT: [&str; 1] = ["chat-part"];

/// What is expected of a log is in a file with this ending.
const EXPECTED: &str = "expected";

struct Case {
    /// The dialect and the file.
    name: String,
    dialect: String,
    path: PathBuf,
    log: Vec<u8>,
}

fn cases() -> Vec<Case> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let mut paths = Vec::new();
    crate::corpus::files(&root, &mut paths);
    paths.retain(|path| path.extension().is_some_and(|ending| ending != EXPECTED));
    let case = |path: PathBuf| {
        let name = path.strip_prefix(&root).unwrap().to_str().unwrap();
        let (dialect, _) = name.split_once('/').expect("a folder for each dialect");
        Case {
            name: name.to_owned(),
            dialect: dialect.to_owned(),
            log: std::fs::read(&path).unwrap(),
            path,
        }
    };
    let cases: Vec<Case> = paths.into_iter().map(case).collect();
    assert!(!cases.is_empty());
    cases
}

/// The logs, by name.
pub(crate) fn logs() -> impl Iterator<Item = (String, Vec<u8>)> {
    cases().into_iter().map(|case| (case.name, case.log))
}

#[test]
fn every_dialect_has_a_log_of_our_own() {
    let there: BTreeSet<String> = cases().into_iter().map(|case| case.dialect).collect();
    let dialects = FAMILIES.iter().flat_map(|family| family.dialects());
    let known: BTreeSet<String> = dialects.map(|dialect| dialect.name.to_owned()).collect();
    assert_eq!(there, known);
}

/// Each log is known by its content, reads in pieces as it does at once, has each record accounted for, and
/// says what is expected.
#[test]
fn logs_of_our_own_read_as_expected() {
    let bless = std::env::var_os("QUIPU_BLESS").is_some();
    let mut wrong = Vec::new();
    for case in cases() {
        let known = if TAKEN_OUT.contains(&&*case.dialect) {
            crate::dialect(&case.dialect)
        } else {
            crate::identify(&case.log, true)
        };
        let Some((family, dialect)) = known else {
            wrong.push(format!("{}: not known", case.name));
            continue;
        };
        if dialect.name != case.dialect {
            wrong.push(format!("{}: known as {}", case.name, dialect.name));
            continue;
        }
        let read = read_as(family, dialect, &case.log, &case.name);
        let says = summary(&read);
        let expected = case.path.with_extension(EXPECTED);
        if bless {
            let mut file = File::create(&expected).unwrap();
            file.write_all(says.as_bytes()).unwrap();
        } else if std::fs::read_to_string(&expected).ok().as_ref() != Some(&says) {
            wrong.push(format!("{}:\n{says}", case.name));
        }
    }
    assert!(
        wrong.is_empty(),
        "not as expected (QUIPU_BLESS=1 writes what is expected anew):\n{}",
        wrong.join("\n")
    );
}

/// A log in few words.
fn summary(read: &Read) -> String {
    /// How much of an event is shown.
    const LONGEST: usize = 200;
    let mut says = vec![format!("dialect {}", read.dialect.name)];
    let session = &read.session;
    for (key, value) in [
        ("id", &session.id),
        ("title", &session.title),
        ("cwd", &session.cwd),
        ("version", &session.version),
        ("parent", &session.parent),
    ] {
        says.extend(value.as_ref().map(|value| format!("{key} {value}")));
    }
    let ledger = &read.ledger;
    let (records, mapped, noted) = (ledger.records, ledger.mapped, ledger.noted);
    says.push(format!("records {records}: {mapped} events, {noted} notes"));
    let dropped = ledger.dropped.iter();
    says.extend(dropped.map(|(why, n)| format!("dropped {n}: {}", why.as_str())));
    let unknown = ledger.drift.unknown.iter();
    says.extend(unknown.map(|(name, seen)| format!("unknown {}: {name}", seen.count)));
    says.extend(read.error.as_ref().map(|error| format!("error {error}")));
    for event in &read.events {
        let mut line = Vec::new();
        quipu_exchange::encode_log(event, &mut line);
        let line: Value = serde_json::from_slice(&line).unwrap();
        let payload: String = line["payload"].to_string().chars().take(LONGEST).collect();
        let model = event.annotations.model.as_ref();
        let model = model.map_or_else(String::new, |model| format!(" [{model}]"));
        let usage = event.annotations.usage.as_ref();
        let usage = usage.map_or_else(String::new, |usage| format!(" {}", tokens(usage)));
        let (seq, word) = (event.seq, event.body.type_word());
        says.push(format!("{seq} {word}{model}{usage} {payload}"));
    }
    says.join("\n") + "\n"
}

fn tokens(usage: &quipu_model::Usage) -> String {
    let counts = [
        ("in", usage.input),
        ("read", usage.cache_read),
        ("write", usage.cache_write),
        ("out", usage.output),
        ("reasoning", usage.reasoning),
    ];
    let counts = counts
        .iter()
        .filter_map(|(key, n)| n.map(|n| format!("{key}={n}")));
    counts.collect::<Vec<_>>().join(" ")
}

/// Where logs of a dialect lie: the agent, and a path below the home directory.
const PLACES: &[(&str, &str, &str)] = &[
    ("claude", "claude-code", ".claude/projects/-code/s.jsonl"),
    (
        "codex",
        "codex",
        ".codex/sessions/2026/01/02/rollout-s.jsonl",
    ),
    (
        "copilot",
        "copilot-cli",
        ".copilot/session-state/s/events.jsonl",
    ),
    (
        "copilot-history",
        "copilot-cli",
        ".copilot/history-session-state/s.json",
    ),
    (
        "copilot-chat",
        "copilot-chat",
        ".config/Code/User/workspaceStorage/w/chatSessions/s.json",
    ),
    (
        "copilot-chat-journal",
        "copilot-chat",
        ".config/Code/User/workspaceStorage/w/chatSessions/s.jsonl",
    ),
    (
        "gemini",
        "gemini-cli",
        ".gemini/tmp/p/chats/session-s.jsonl",
    ),
    (
        "gemini-document",
        "gemini-cli",
        ".gemini/tmp/p/chats/session-s.json",
    ),
    (
        "antigravity",
        "antigravity",
        ".gemini/antigravity/brain/s/.system_generated/logs/transcript.jsonl",
    ),
    (
        "cursor",
        "cursor",
        ".cursor/projects/p/agent-transcripts/s/s.jsonl",
    ),
    (
        "cursor-text",
        "cursor",
        ".cursor/projects/p/agent-transcripts/s.txt",
    ),
    ("pi", "pi", ".pi/agent/sessions/--code--/s.jsonl"),
    ("omp", "omp", ".omp/agent/sessions/--code--/s.jsonl"),
    ("qwen", "qwen-code", ".qwen/projects/p/chats/s.jsonl"),
    (
        "kimi",
        "kimi-code",
        ".kimi-code/sessions/w/s/agents/main/wire.jsonl",
    ),
    ("kimi-wire", "kimi-cli", ".kimi/sessions/h/s/wire.jsonl"),
    ("cline", "cline", ".cline/data/sessions/s/s.messages.json"),
    ("droid", "droid", ".factory/sessions/p/s.jsonl"),
    ("goose", "goose", ".local/share/goose/sessions/s.jsonl"),
    ("amp", "amp", ".local/share/amp/threads/T-1.json"),
    ("atif", "devin", ".local/share/devin/cli/transcripts/s.json"),
    ("kiro", "kiro", ".kiro/sessions/cli/s.jsonl"),
    (
        "kiro-chat",
        "kiro",
        ".config/Kiro/User/globalStorage/kiro.kiroagent/p/s.chat",
    ),
    ("grok", "grok", ".grok/sessions/p/s/updates.jsonl"),
    ("vibe", "vibe", ".vibe/logs/session/s/messages.jsonl"),
    ("hermes", "hermes", ".hermes/sessions/s.json"),
    ("hermes-lines", "hermes", ".hermes/sessions/s.jsonl"),
    (
        "gptme",
        "gptme",
        ".local/share/gptme/logs/s/conversation.jsonl",
    ),
    (
        "posit-assistant",
        "posit-assistant",
        ".posit/assistant/workspaces/w/conversations/s/lm-messages.jsonl",
    ),
    (
        "codebuff",
        "codebuff",
        ".config/manicode/projects/p/chats/s/chat-messages.json",
    ),
];

/// The family in a place of which a log lies at this path, if it picks it as a log.
fn at_home(path: &str) -> Vec<(&'static str, &'static dyn Family)> {
    let home = Path::new("/home/me");
    let path = home.join(path);
    let host = Host::new(home, |_| None);
    let mut found = Vec::new();
    for family in FAMILIES {
        for place in family.places(&host) {
            if let Ok(below) = path.strip_prefix(&place.root)
                && below.components().count() <= place.depth + 1
                && (place.pick)(below) == Pick::Log
            {
                found.push((place.brand, *family));
            }
        }
    }
    found
}

/// Every log that an agent keeps in a place of its own has a dialect there, which is the fallback.
#[test]
fn places_say_how_their_logs_read() {
    for (dialect, brand, path) in PLACES {
        let found = at_home(path);
        let found: Vec<_> = found
            .iter()
            .map(|(brand, family)| {
                let known = family.dialect_at(brand, Path::new(path));
                (*brand, known.map(|dialect| dialect.name))
            })
            .collect();
        assert_eq!(found, [(*brand, Some(*dialect))], "{path}");
    }
}

/// A log and where it lies, decided by both.
fn recognise(log: &[u8], dialect: &str, in_place: bool) -> Option<Known> {
    let place = PLACES.iter().find(|(name, ..)| *name == dialect);
    let lies = place.filter(|_| in_place).map(|(_, brand, path)| Lies {
        brand,
        family: at_home(path)[0].1,
        path: Path::new(path),
    });
    Head::look(log, true, |head| crate::recognise(head, lies))
}

/// The lines of a log, or the one document that it is. Empty where the log is not JSON.
fn records(case: &Case) -> Vec<String> {
    let (_, dialect) = crate::dialect(&case.dialect).unwrap();
    let text = std::str::from_utf8(&case.log).unwrap();
    let lines: Vec<String> = match dialect.framing {
        Framing::Lines => text.lines().map(str::to_owned).collect(),
        Framing::Document | Framing::Parts => vec![text.trim().to_owned()],
        Framing::Sse | Framing::Text | Framing::Page => Vec::new(),
    };
    lines
        .into_iter()
        .filter(|it| it.ends_with(['}', ']']))
        .collect()
}

fn is_lines(case: &Case) -> bool {
    let known = crate::dialect(&case.dialect);
    known.is_some_and(|(_, dialect)| dialect.framing == Framing::Lines)
}

/// A record with a field that nobody knows, behind those it has.
fn with_more(record: &str) -> String {
    const MORE: &str = "\"xNewField\":{\"a\":[1,\"b\"]}";
    match record.strip_suffix('}') {
        Some(object) if object.trim_end().ends_with('{') => format!("{object}{MORE}}}"),
        Some(object) => format!("{object},{MORE}}}"),
        None => record.to_owned(),
    }
}

/// What a log looks like after its agent changed in some way, by what was changed.
fn changed(case: &Case) -> Vec<(String, String)> {
    const FOREIGN: &str = r#"{"xKind":"pulse","xAt":7,"xBody":{"ok":true}}"#;
    let records = records(case);
    if records.is_empty() {
        return Vec::new();
    }
    let more: Vec<String> = records.iter().map(|record| with_more(record)).collect();
    let mut changes = vec![("a field that is new".to_owned(), more.join("\n"))];
    if is_lines(case) {
        for (place, at) in [("first", 0), ("second", 1), ("last", records.len())] {
            let mut more = records.clone();
            more.insert(at.min(records.len()), FOREIGN.to_owned());
            let what = format!("a new kind of record that is {place}");
            changes.push((what, more.join("\n") + "\n"));
        }
    }
    changes
}

/// A log is still known when its agent begins to write a field, or a kind of record, that is new.
#[test]
fn what_is_new_does_not_hide_whose_log_it_is() {
    let mut wrong = Vec::new();
    let mut tried = 0;
    for case in cases() {
        if TAKEN_OUT.contains(&&*case.dialect) {
            continue;
        }
        for (what, log) in changed(&case) {
            for in_place in [false, true] {
                tried += 1;
                let known = recognise(log.as_bytes(), &case.dialect, in_place);
                let name = known.map(|known| known.dialect.name);
                if name != Some(&*case.dialect) {
                    let name = name.unwrap_or(NOTHING);
                    let place = if in_place { ", in its place" } else { "" };
                    wrong.push(format!("{} with {what}{place}: {name}", case.name));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(tried > 400, "{tried}");
}

/// A log without any one of its fields is not taken for the log of another agent when it lies where its own
/// keeps them.
#[test]
fn what_is_left_out_does_not_make_it_the_log_of_another() {
    let mut wrong = Vec::new();
    for case in cases() {
        let Some((_, brand, _)) = PLACES.iter().find(|(name, ..)| *name == case.dialect) else {
            continue;
        };
        let records = records(&case);
        let parsed: Vec<Value> = records
            .iter()
            .filter_map(|record| serde_json::from_str(record).ok())
            .collect();
        let objects = parsed.iter().filter_map(Value::as_object);
        let keys: BTreeSet<String> = objects.flat_map(Map::keys).cloned().collect();
        for key in keys {
            let mut less = parsed.clone();
            for record in &mut less {
                if let Value::Object(object) = record {
                    object.remove(&key);
                }
            }
            let less: Vec<String> = less.iter().map(Value::to_string).collect();
            let known = recognise(less.join("\n").as_bytes(), &case.dialect, true);
            let (own, _) = crate::dialect(&case.dialect).unwrap();
            if let Some(known) = known
                && known.family.name() != own.name()
            {
                let other = known.dialect.name;
                wrong.push(format!("{} of {brand} without {key}: {other}", case.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Where the place decides, that is said; where the content does, nothing is.
#[test]
fn what_is_decided_by_place_is_said() {
    for case in cases() {
        let known = recognise(&case.log, &case.dialect, true);
        let doubt = known.and_then(|known| known.doubt);
        assert_eq!(doubt, None, "{}", case.name);
    }
    let lies = |path: &'static str| {
        let (brand, family) = at_home(path)[0];
        Some(Lies {
            brand,
            family,
            path: Path::new(path),
        })
    };
    let vibe = ".vibe/logs/session/s/messages.jsonl";
    let recognise =
        |log: &str, lies| Head::look(log.as_bytes(), true, |head| crate::recognise(head, lies));
    let bare = "{\"role\":\"user\",\"content\":\"hi\",\"x\":1}\n";
    assert!(recognise(bare, None).is_none());
    let known = recognise(bare, lies(vibe)).unwrap();
    assert_eq!(known.dialect.name, "vibe");
    assert_eq!(known.doubt, Some(Doubt::LogPlace { brand: "vibe" }));
    assert!(known.is_by_place());
    // One that looks like the log of another, who is not sure of it.
    let gptme = "{\"role\":\"user\",\"content\":\"hi\",\"timestamp\":\"2026-01-02T03:04:05.1\"}\n";
    assert_eq!(recognise(gptme, None).unwrap().dialect.name, "gptme");
    let known = recognise(gptme, lies(vibe)).unwrap();
    let (brand, other) = ("vibe", "gptme");
    assert_eq!(known.doubt, Some(Doubt::PlaceAgainst { brand, other }));
    assert!(known.warning().unwrap().contains("gptme"));
    // What is surely another's stays that other's, and what nothing can be made of stays unread.
    let claude = include_str!("../fixtures/claude/session.jsonl");
    let known = recognise(claude, lies(vibe)).unwrap();
    assert_eq!((known.dialect.name, known.doubt), ("claude", None));
    assert!(recognise("{\"x\":1}\n", lies(vibe)).is_none());
    assert!(recognise("some prose\n", lies(vibe)).is_none());
}

/// No log of ours is claimed by two families that are both sure.
#[test]
fn no_log_of_our_own_is_claimed_twice() {
    for case in cases() {
        let sure = Head::look(&case.log, true, |head| {
            let claims = crate::claims(head).into_iter();
            let sure = claims.filter(|(_, claim): &(_, Match)| claim.sure);
            sure.map(|(family, _)| family.name()).collect::<Vec<_>>()
        });
        assert!(sure.len() < 2, "{}: {sure:?}", case.name);
    }
}

/// What the log of each folder of others' logs is. Folders hold what one agent writes; what else is in them
/// is named.
#[test]
fn logs_of_others_are_known_as_what_they_are() {
    let Some(root) = crate::corpus::fixtures() else {
        return;
    };
    let manifest = std::fs::read_to_string(root.join("MANIFEST.tsv")).unwrap();
    let mut wrong = Vec::new();
    let mut seen: BTreeMap<&str, u64> = BTreeMap::new();
    for row in manifest.lines().skip(1) {
        let file = row.split('\t').next().unwrap();
        let folder = file.split('/').next().unwrap();
        *seen.entry(folder).or_default() += 1;
        let log = std::fs::read(root.join(file)).unwrap();
        let known = crate::identify(&log, true).map_or(NOTHING, |(_, dialect)| dialect.name);
        let named = EXCEPTIONS.iter().find(|(part, _)| file.contains(part));
        let expected = match named {
            Some((_, expected)) => std::slice::from_ref(expected),
            None => FOLDERS
                .iter()
                .find(|(name, _)| *name == folder)
                .map_or(&[][..], |(_, expected)| *expected),
        };
        if !expected.contains(&known) {
            wrong.push(format!("{file}: {known}, not {}", expected.join(" or ")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen.len() > 30, "{seen:?}");
}

/// The dialects of each folder.
const FOLDERS: &[(&str, &[&str])] = &[
    ("amp", &["claude-stream"]),
    (
        "anthropic-http",
        &["anthropic-body", "anthropic-chunks", "anthropic-sse"],
    ),
    ("antigravity", &["antigravity"]),
    ("atif", &["atif"]),
    ("awf-run", &["exchange"]),
    ("claude", &["claude", "claude-document"]),
    ("claude-stream", &["claude-stream", "claude-document"]),
    ("cline", &["cline"]),
    ("codex", &["codex"]),
    ("codex-exec", &["codex-exec", "codex"]),
    ("copilot", &["copilot"]),
    ("cursor", &["cursor"]),
    ("droid", &["droid", "droid-stream"]),
    ("gemini", &["gemini", "gemini-document"]),
    ("gemini-http", &["google-body", "google-chunks"]),
    ("gemini-stream", &["gemini-stream"]),
    ("gptme", &["gptme"]),
    ("grok", &["grok", "grok-chat"]),
    ("hermes", &["hermes"]),
    ("iflow", &["claude"]),
    ("kimi", &["kimi"]),
    ("kiro", &["kiro-conversation"]),
    ("muse", &["muse"]),
    // Values of single columns, not whole rows.
    ("omnigent", &[NOTHING]),
    ("omp", &["omp"]),
    (
        "openai-chat-http",
        &["openai-chat-body", "openai-chat-chunks"],
    ),
    (
        "openai-responses-http",
        &["openai-responses-body", "openai-responses-chunks"],
    ),
    ("openclaw", &["pi"]),
    (
        "opencode",
        &["opencode-events", "opencode-export", "opencode-run"],
    ),
    ("pi", &["pi", "omp", "pi-stream"]),
    ("posit-assistant", &["posit-assistant"]),
    ("qwen", &["qwen"]),
    ("qwenpaw", &["qwenpaw"]),
    ("traex", &["codex"]),
    ("vibe", &["vibe"]),
    ("visualstudio-copilot", &["visualstudio-copilot"]),
];

/// What no family knows.
const NOTHING: &str = "nothing";

/// Files that are something else, by a part of their path.
const EXCEPTIONS: &[(&str, &str)] = &[
    // Documents beside a log.
    (".meta.json", NOTHING),
    ("__meta.json", NOTHING),
    ("grok__summary.json", NOTHING),
    ("subagent__summary.json", NOTHING),
    ("__signals.json", NOTHING),
    ("as-kimi__state.json", NOTHING),
    ("__11111111__conversation.json", NOTHING),
    ("__index.json", NOTHING),
    ("__workspace.json", NOTHING),
    // What other programs said of a log.
    ("duplicate-assistant-response-2", NOTHING),
    ("failed_deserializations", NOTHING),
    ("tool_use_captures__tool_msg_9.json", NOTHING),
    // Filed under the wrong agent by who found it.
    ("claude/cli-1c493048", "gemini-document"),
    // The protocol that the agent speaks to editors.
    ("acp-session-updates", "acp"),
    ("daemon-events", "acp"),
    // Both interfaces of the vendor word an error in the same way.
    ("openai-error.1.json", "openai-chat-body"),
    ("reasoning-model-temperature-error", "openai-chat-body"),
];

/// The rows of the table in `docs/agents.md`: the family, the dialects that are tested on real logs, and those
/// that are tested on ours only.
fn documented() -> Vec<(String, Vec<String>, Vec<String>)> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/agents.md");
    let text = std::fs::read_to_string(path).unwrap();
    let named = |cell: &str| -> Vec<String> {
        let words = cell.split('`').skip(1).step_by(2);
        words.map(str::to_owned).collect()
    };
    let rows = text.lines().filter(|line| line.starts_with("| "));
    let rows = rows.map(|line| line.split('|').map(str::trim).collect::<Vec<_>>());
    let rows = rows.filter(|cells| cells.len() == 6 && crate::family(cells[1]).is_some());
    rows.map(|cells| (cells[1].to_owned(), named(cells[3]), named(cells[4])))
        .collect()
}

#[test]
fn the_documents_name_every_dialect_once() {
    let mut documented: Vec<(String, String)> = documented()
        .into_iter()
        .flat_map(|(family, real, ours)| {
            let both = real.into_iter().chain(ours);
            both.map(move |dialect| (family.clone(), dialect))
        })
        .collect();
    documented.sort();
    let mut known: Vec<(String, String)> = FAMILIES
        .iter()
        .flat_map(|family| {
            let dialects = family.dialects().iter();
            dialects.map(|dialect| (family.name().to_owned(), dialect.name.to_owned()))
        })
        .collect();
    known.sort();
    assert_eq!(documented, known);
}

/// A dialect is said to be tested on real logs if there is one of it.
#[test]
fn the_documents_say_which_logs_are_real() {
    let Some(root) = crate::corpus::fixtures() else {
        return;
    };
    let manifest = std::fs::read_to_string(root.join("MANIFEST.tsv")).unwrap();
    let mut real: BTreeSet<String> = BTreeSet::new();
    for row in manifest.lines().skip(1) {
        let cells: Vec<&str> = row.split('\t').collect();
        if cells[4] == "real" {
            let log = std::fs::read(root.join(cells[0])).unwrap();
            let known = crate::identify(&log, true);
            real.extend(known.map(|(_, dialect)| dialect.name.to_owned()));
        }
    }
    let documented = documented().into_iter();
    let documented: BTreeSet<String> = documented.flat_map(|(_, real, _)| real).collect();
    assert_eq!(documented, real);
}
