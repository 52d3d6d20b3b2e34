//! The page of a folder of sessions.
//!
//! Its head is YAML that the Hub reads, its body is Markdown that people do. Names in it come from logs, so they
//! are written in such a way that neither takes them for anything else. Titles and prompts are left out: a page
//! is read by more people than a session.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use quipu_model::Usage;

/// One session of a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CardEntry {
    /// Its file, relative to the page.
    pub file: String,
    /// The agent.
    pub agent: Option<String>,
    /// The models that were called.
    pub models: Vec<String>,
    /// How many events it has.
    pub events: u64,
    /// The tokens it took.
    pub usage: Usage,
    /// Whether it is the agent's own log, byte for byte.
    pub as_is: bool,
    /// The profile by which something was removed from it, where one was named.
    pub profile: Option<String>,
}

/// What the one who publishes decides.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CardOptions {
    /// What the folder is called.
    pub name: Option<String>,
    /// Under which licence it is published. Without one, a line is left to fill in.
    pub license: Option<String>,
    /// The languages that are spoken in it, by their codes.
    pub languages: Vec<String>,
    /// Tags beside those that are always there.
    pub tags: Vec<String>,
}

/// The tags that are always there.
const TAGS: [&str; 2] = ["agent-traces", "quipu"];

/// The text of `README.md` for a folder of sessions.
///
/// ```
/// use quipu_formats::sts::{CardEntry, CardOptions, card};
///
/// let entry = CardEntry { file: "sessions/a.jsonl".into(), events: 3, ..CardEntry::default() };
/// let page = card(&[entry], &CardOptions::default());
/// assert!(page.starts_with("---\n"));
/// assert!(page.contains("path: \"sessions/*.jsonl\""));
/// assert!(page.contains("Not redacted"));
/// ```
pub fn card(entries: &[CardEntry], options: &CardOptions) -> String {
    let mut page = String::from("---\n");
    head(entries, options, &mut page);
    page.push_str("---\n\n");
    body(entries, options, &mut page);
    page
}

/// Formatting into a `String` does not fail.
macro_rules! put {
    ($to:expr, $($what:tt)*) => {
        writeln!($to, $($what)*).expect("writing to a String cannot fail")
    };
}

fn head(entries: &[CardEntry], options: &CardOptions, page: &mut String) {
    if let Some(name) = &options.name {
        put!(page, "pretty_name: {}", yaml(name));
    }
    match &options.license {
        Some(license) => put!(page, "license: {}", yaml(license)),
        None => put!(
            page,
            "# license: say here under which licence you publish this"
        ),
    }
    list(
        "language",
        options.languages.iter().map(String::as_str),
        page,
    );
    let own = options.tags.iter().map(String::as_str);
    list("tags", TAGS.into_iter().chain(own), page);
    let groups = groups(entries);
    if groups.is_empty() {
        return;
    }
    put!(page, "configs:");
    for (name, files, _) in &groups {
        put!(page, "  - config_name: {}", yaml(name));
        put!(page, "    data_files:\n      - split: \"train\"");
        match &files[..] {
            [one] => put!(page, "        path: {}", yaml(one)),
            many => {
                put!(page, "        path:");
                for file in many {
                    put!(page, "          - {}", yaml(file));
                }
            }
        }
    }
    // Without this, columns are guessed from the first lines that are read.
    let mut of_ours = groups.iter().filter(|(_, _, is_ours)| *is_ours).peekable();
    if of_ours.peek().is_some() {
        put!(page, "dataset_info:");
    }
    for (name, _, _) in of_ours {
        put!(page, "  - config_name: {}", yaml(name));
        page.push_str(FEATURES);
    }
}

/// What the lines of a session are, as columns.
const FEATURES: &str = "    features:
      - name: \"type\"
        dtype: \"string\"
      - name: \"harness\"
        dtype: \"string\"
      - name: \"id\"
        dtype: \"string\"
      - name: \"name\"
        dtype: \"string\"
      - name: \"message\"
        struct:
          - name: \"role\"
            dtype: \"string\"
          - name: \"content\"
            dtype: \"string\"
          - name: \"reasoningContent\"
            dtype: \"string\"
          - name: \"toolCalls\"
            list:
              - name: \"id\"
                dtype: \"string\"
              - name: \"function\"
                struct:
                  - name: \"name\"
                    dtype: \"string\"
                  - name: \"arguments\"
                    dtype: \"string\"
          - name: \"toolCallId\"
            dtype: \"string\"
          - name: \"timestamp\"
            dtype: \"int64\"
          - name: \"model\"
            dtype: \"string\"
";

/// The tables of a folder: a name, the files, and whether they hold the lines of the Hub.
type Group = (String, Vec<String>, bool);

/// Logs of different kinds have different fields, so each folder is a table of its own, and so is each kind in a folder that
/// holds both.
fn groups(entries: &[CardEntry]) -> Vec<Group> {
    let mut found: BTreeMap<(String, bool), Vec<String>> = BTreeMap::new();
    for entry in entries {
        let key = (glob(&entry.file), !entry.as_is);
        found.entry(key).or_default().push(entry.file.clone());
    }
    let is_only = found.len() == 1;
    let is_mixed = |glob: &String| found.keys().filter(|(other, _)| other == glob).count() > 1;
    let mut names = BTreeSet::new();
    let mut groups = Vec::new();
    for (n, ((glob, is_ours), files)) in found.iter().enumerate() {
        let folder = config_name(glob);
        let mut name = match (is_only, is_mixed(glob), is_ours) {
            (true, ..) => "default".to_owned(),
            (false, true, true) if folder.is_empty() => "sessions".to_owned(),
            (false, true, false) if folder.is_empty() => "native".to_owned(),
            (false, true, false) => format!("{folder}-native"),
            _ => folder,
        };
        if name.is_empty() || !names.insert(name.clone()) {
            name = format!("files-{n}");
        }
        let files = if is_mixed(glob) {
            files.clone()
        } else {
            vec![glob.clone()]
        };
        groups.push((name, files, *is_ours));
    }
    groups
}

/// A name for the files of a folder: the folder's, in characters that any name may have.
fn config_name(glob: &str) -> String {
    let folder = glob.rsplit_once('/').map_or("", |(folder, _)| folder);
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let name = folder.chars().map(|c| if plain(c) { c } else { '-' });
    name.take(40).collect()
}

fn list<'a>(name: &str, items: impl Iterator<Item = &'a str>, page: &mut String) {
    let items: Vec<&str> = items.collect();
    if !items.is_empty() {
        put!(page, "{name}:");
    }
    for item in items {
        put!(page, "  - {}", yaml(item));
    }
}

/// All files of the same kind in the same folder.
fn glob(file: &str) -> String {
    let (folder, name) = match file.rsplit_once('/') {
        Some((folder, name)) => (format!("{folder}/"), name),
        None => (String::new(), file),
    };
    match name.rsplit_once('.') {
        Some((_, ending)) => format!("{folder}*.{ending}"),
        None => format!("{folder}*"),
    }
}

fn body(entries: &[CardEntry], options: &CardOptions, page: &mut String) {
    let name = options.name.as_deref().unwrap_or("Agent sessions");
    put!(page, "# {}\n", markdown(name));
    redacted(entries, page);
    let mut usage = Usage::default();
    let mut events = 0_u64;
    let mut agents: BTreeMap<&str, u64> = BTreeMap::new();
    let mut models: BTreeMap<&str, u64> = BTreeMap::new();
    for entry in entries {
        usage.add(&entry.usage);
        events = events.saturating_add(entry.events);
        *agents
            .entry(entry.agent.as_deref().unwrap_or("unknown"))
            .or_default() += 1;
        let own: BTreeSet<&str> = entry.models.iter().map(String::as_str).collect();
        for model in own {
            *models.entry(model).or_default() += 1;
        }
    }
    put!(page, "| | |\n|---|---|");
    put!(page, "| sessions | {} |", entries.len());
    put!(page, "| events | {events} |");
    for (what, count) in [
        ("prompt tokens, not cached", usage.input),
        ("prompt tokens, read from a cache", usage.cache_read),
        ("prompt tokens, written to a cache", usage.cache_write),
        ("tokens of output", usage.output),
    ] {
        match count {
            Some(count) => put!(page, "| {what} | {count} |"),
            None => put!(page, "| {what} | not known |"),
        }
    }
    for (what, counts) in [("agent", agents), ("model", models)] {
        if counts.is_empty() {
            continue;
        }
        put!(page, "\n| {what} | sessions |\n|---|---|");
        for (name, count) in counts {
            put!(page, "| {} | {count} |", markdown(name));
        }
    }
    let as_is = entries.iter().filter(|entry| entry.as_is).count();
    put!(page, "\n## How it was made\n");
    put!(
        page,
        "By Quipu, from the logs that agents keep. {as_is} of {} files are an agent's own log, byte",
        entries.len()
    );
    put!(
        page,
        "for byte. The others are in the session format of the Hub: what was said and done, when and by which model. That"
    );
    put!(
        page,
        "format has no place for tokens, ids and notes; Quipu's loss report says what was left out of each."
    );
}

/// Says what was removed, and of how many.
fn redacted(entries: &[CardEntry], page: &mut String) {
    let bare = entries
        .iter()
        .filter(|entry| entry.profile.is_none())
        .count();
    if bare == entries.len() {
        put!(
            page,
            "> **Not redacted.** Quipu wrote these files as the sessions were. Prompts, file contents, paths, names and"
        );
        put!(
            page,
            "> credentials that were in a session are still in it. Read them before you publish them.\n"
        );
        return;
    }
    let profiles = entries.iter().filter_map(|entry| entry.profile.as_deref());
    let profiles: BTreeSet<String> = profiles.map(markdown).collect();
    let profiles: Vec<String> = profiles.into_iter().collect();
    put!(
        page,
        "> **Redacted.** Quipu removed what the profile {} removes from {} of {} sessions. It finds shapes and names, and",
        profiles.join(", "),
        entries.len() - bare,
        entries.len()
    );
    put!(
        page,
        "> does not understand sentences. Read them before you publish them.\n"
    );
}

/// A text as a YAML scalar, whatever is in it: quoted, and plain ASCII.
fn yaml(text: &str) -> String {
    let mut quoted = String::from("\"");
    for char in text.chars() {
        match char {
            '"' | '\\' => {
                quoted.push('\\');
                quoted.push(char);
            }
            ' '..='~' => quoted.push(char),
            _ => {
                let code = u32::from(char);
                let written = if code > 0xffff {
                    write!(quoted, "\\U{code:08x}")
                } else {
                    write!(quoted, "\\u{code:04x}")
                };
                written.expect("writing to a String cannot fail");
            }
        }
    }
    quoted.push('"');
    quoted
}

/// A text that Markdown shows as it is, on one line. What cannot be seen is left out.
fn markdown(text: &str) -> String {
    let mut shown = String::new();
    for char in text.chars() {
        let is_hidden = char.is_control()
            || matches!(char, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200b}'..='\u{200f}' | '\u{feff}');
        if is_hidden {
            shown.push(' ');
            continue;
        }
        if char.is_ascii_punctuation() && !"-./,'\"();?%+=".contains(char) {
            shown.push('\\');
        }
        shown.push(char);
    }
    let words: Vec<&str> = shown.split_whitespace().collect();
    words.join(" ")
}
