//! Profiles as TOML.

use std::path::{Path, PathBuf};

use quipu_formats::normalized::ToolOutput;
use serde::Deserialize;

use super::{Environment, Numbers, Profile, Pseudonyms, Times};
use crate::rule::Kind;

/// The built-in ones, from what keeps most to what keeps least.
const BUILT_IN: &[(&str, &str)] = &[
    ("local", include_str!("../../profiles/local.toml")),
    ("team", include_str!("../../profiles/team.toml")),
    (
        "hiring-signal",
        include_str!("../../profiles/hiring-signal.toml"),
    ),
    ("research", include_str!("../../profiles/research.toml")),
    ("public", include_str!("../../profiles/public.toml")),
    (
        "structure-only",
        include_str!("../../profiles/structure-only.toml"),
    ),
];

/// How many profiles may extend one another.
const DEEPEST: usize = 8;

/// What is wrong with a profile. None of it is used.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// It is no TOML, or not what a profile looks like.
    #[error("{}:{line}: {why}", file.display())]
    Syntax {
        /// The file.
        file: PathBuf,
        /// The line, from one.
        line: usize,
        /// What is wrong.
        why: String,
    },
    /// It extends what there is not, or itself.
    #[error("{}: it extends {name:?}: {why}", file.display())]
    Extends {
        /// The file.
        file: PathBuf,
        /// What it extends.
        name: String,
        /// What is wrong with that.
        why: &'static str,
    },
    /// The file cannot be read.
    #[error("cannot read {}: {source}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
}

/// What a file says. What it does not say is as in the one that it extends.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Written {
    name: Option<String>,
    description: Option<String>,
    extends: Option<String>,
    kinds: Option<Vec<KindWord>>,
    rules_off: Option<Vec<String>>,
    reasoning: Option<bool>,
    file_contents: Option<bool>,
    tool_output: Option<Part>,
    tool_input: Option<Part>,
    text: Option<Part>,
    max_text: Option<u32>,
    max_events: Option<u32>,
    max_bytes: Option<u64>,
    environment: Option<EnvironmentWord>,
    times: Option<TimesWord>,
    numbers: Option<NumbersWord>,
    pseudonyms: Option<PseudonymsWord>,
    identity_linked: Option<bool>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum KindWord {
    Secret,
    Pii,
    Path,
    Identity,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Part {
    Full,
    Truncated,
    MetadataOnly,
    None,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum EnvironmentWord {
    Keep,
    Pseudonym,
    Drop,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum TimesWord {
    Keep,
    Shift,
    Relative,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum NumbersWord {
    Keep,
    Rounded,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum PseudonymsWord {
    Person,
    Transcript,
}

impl Profile {
    /// The names of those that are built in, from what keeps most to what keeps least.
    pub const NAMES: &'static [&'static str] = &[
        "local",
        "team",
        "hiring-signal",
        "research",
        "public",
        "structure-only",
    ];

    /// A built-in one.
    pub fn builtin(name: &str) -> Option<Self> {
        let (_, text) = BUILT_IN.iter().find(|(known, _)| *known == name)?;
        // A test reads all of them.
        load(text, Path::new(name), DEEPEST, &|| Some(everything_kept())).ok()
    }

    /// Reads one from a file.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or is no profile; the error names the line.
    pub fn load(file: &Path) -> Result<Self, ProfileError> {
        load_file(file, DEEPEST)
    }

    /// Reads one from a text. `file` is what errors name, and what it may extend is beside it.
    ///
    /// # Errors
    ///
    /// It is no profile; the error names the line.
    pub fn parse(text: &str, file: &Path) -> Result<Self, ProfileError> {
        load(text, file, DEEPEST, &public)
    }
}

fn load_file(file: &Path, deepest: usize) -> Result<Profile, ProfileError> {
    let text = std::fs::read_to_string(file).map_err(|source| ProfileError::Io {
        file: file.to_owned(),
        source,
    })?;
    load(&text, file, deepest, &public)
}

/// What a file extends that extends nothing.
fn public() -> Option<Profile> {
    Profile::builtin("public")
}

fn load(
    text: &str,
    file: &Path,
    deepest: usize,
    default: &dyn Fn() -> Option<Profile>,
) -> Result<Profile, ProfileError> {
    let written: Written = toml::from_str(text).map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start));
        ProfileError::Syntax {
            file: file.to_owned(),
            line: before.map_or(1, |before| before.matches('\n').count() + 1),
            why: error.message().to_owned(),
        }
    })?;
    let wrong = |name: &str, why| ProfileError::Extends {
        file: file.to_owned(),
        name: name.to_owned(),
        why,
    };
    let base = match written.extends.as_deref() {
        Some(name) if deepest == 0 => {
            return Err(wrong(name, "too many profiles extend one another"));
        }
        Some(name) if is_file(name) => {
            let beside = file.parent().unwrap_or(Path::new("")).join(name);
            load_file(&beside, deepest - 1)?
        }
        Some(name) => match BUILT_IN.iter().find(|(known, _)| *known == name) {
            Some((_, text)) => load(text, Path::new(name), deepest - 1, &|| {
                Some(everything_kept())
            })?,
            None => {
                return Err(wrong(
                    name,
                    "there is no such profile; a file is named with .toml",
                ));
            }
        },
        None => default().ok_or_else(|| wrong("public", "it is not built in"))?,
    };
    Ok(written.over(base, file))
}

fn is_file(name: &str) -> bool {
    Path::new(name)
        .extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("toml"))
}

/// Nothing is removed.
fn everything_kept() -> Profile {
    Profile {
        name: String::new(),
        description: String::new(),
        kinds: Vec::new(),
        rules_off: Vec::new(),
        reasoning: true,
        file_contents: true,
        tool_output: ToolOutput::Full,
        tool_input: ToolOutput::Full,
        text: ToolOutput::Full,
        max_text: usize::MAX,
        max_events: u64::MAX,
        max_bytes: u64::MAX,
        environment: Environment::Keep,
        times: Times::Keep,
        numbers: Numbers::Keep,
        pseudonyms: Pseudonyms::Person,
        identity_linked: false,
    }
}

impl Written {
    /// What this says, and where it says nothing, what the other does.
    fn over(self, base: Profile, file: &Path) -> Profile {
        let stem = || {
            file.file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned()
        };
        let limit = |n: u64| if n == 0 { u64::MAX } else { n };
        Profile {
            name: self.name.unwrap_or_else(stem),
            description: self.description.unwrap_or(base.description),
            kinds: self.kinds.map_or(base.kinds, kinds),
            rules_off: self.rules_off.unwrap_or(base.rules_off),
            reasoning: self.reasoning.unwrap_or(base.reasoning),
            file_contents: self.file_contents.unwrap_or(base.file_contents),
            tool_output: self.tool_output.map_or(base.tool_output, part),
            tool_input: self.tool_input.map_or(base.tool_input, part),
            text: self.text.map_or(base.text, part),
            max_text: self.max_text.map_or(base.max_text, |n| {
                usize::try_from(limit(n.into())).unwrap_or(usize::MAX)
            }),
            max_events: self.max_events.map_or(base.max_events, |n| limit(n.into())),
            max_bytes: self.max_bytes.map_or(base.max_bytes, limit),
            environment: self
                .environment
                .map_or(base.environment, |word| match word {
                    EnvironmentWord::Keep => Environment::Keep,
                    EnvironmentWord::Pseudonym => Environment::Pseudonym,
                    EnvironmentWord::Drop => Environment::Drop,
                }),
            times: self.times.map_or(base.times, |word| match word {
                TimesWord::Keep => Times::Keep,
                TimesWord::Shift => Times::Shift,
                TimesWord::Relative => Times::Relative,
            }),
            numbers: self.numbers.map_or(base.numbers, |word| match word {
                NumbersWord::Keep => Numbers::Keep,
                NumbersWord::Rounded => Numbers::Rounded,
            }),
            pseudonyms: self.pseudonyms.map_or(base.pseudonyms, |word| match word {
                PseudonymsWord::Person => Pseudonyms::Person,
                PseudonymsWord::Transcript => Pseudonyms::Transcript,
            }),
            identity_linked: self.identity_linked.unwrap_or(base.identity_linked),
        }
    }
}

fn kinds(words: Vec<KindWord>) -> Vec<Kind> {
    let mut kinds: Vec<Kind> = words
        .into_iter()
        .map(|word| match word {
            KindWord::Secret => Kind::Secret,
            KindWord::Pii => Kind::Pii,
            KindWord::Path => Kind::Path,
            KindWord::Identity => Kind::Identity,
        })
        .collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

fn part(word: Part) -> ToolOutput {
    match word {
        Part::Full => ToolOutput::Full,
        Part::Truncated => ToolOutput::Truncated,
        Part::MetadataOnly => ToolOutput::MetadataOnly,
        Part::None => ToolOutput::None,
    }
}
