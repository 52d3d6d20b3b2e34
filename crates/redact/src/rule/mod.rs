//! Rules as data.
//!
//! A rule file is TOML, and a configuration of gitleaks is one: what it has, this has under the same names. What this
//! has beside it is `kind`, `group`, `label`, `severity`, `names` and `value`, `check`, and samples to test a rule by.
//!
//! ```toml
//! [[rules]]
//! id = "github-pat"                        # what findings and receipts name
//! description = "GitHub personal access token"
//! group = "source-hosts"                   # the file it is in, by default
//! kind = "secret"                          # secret (by default), pii, path, identity
//! label = "github"                         # [REDACTED:github]; the id by default
//! severity = "high"                        # high (by default), medium, low
//! keywords = ["ghp_"]                      # one of them stands in every match, whatever its case
//! regex = '''\bghp_[0-9A-Za-z]{36}\b'''
//! secretGroup = 0                          # which group is the secret; the first there is by default
//! entropy = 3.0                            # bits per character that the secret has at least
//! examples = ["GITHUB_TOKEN=ghp_{alnum:36}"]
//! counterexamples = ["ghp_{alnum:12}"]
//!
//! [[rules]]
//! id = "heroku-api-key"                    # a value whose shape is nothing special, by the name it is given to
//! names = ["heroku"]                       # stands in the name, whatever its case and however words are joined
//! value = '''[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}'''
//!
//! [[rules]]
//! id = "credit-card"
//! kind = "pii"
//! regex = '''…'''
//! check = "luhn"                           # luhn, iban, ipv4, ipv6, mac, phone, email, jwt, national-id, secret, password, typed, random, drawn
//!
//! [[rules.allowlists]]                     # as in gitleaks: regexes, stopwords, paths, regexTarget, condition
//! stopwords = ["example"]
//!
//! [[allowlists]]                           # for all rules, or those in targetRules
//! values = ["sha256:9f86d0…"]              # by the hash of a value
//! fields = ["message.usage", "**.signature"]   # by JSON path
//! ```
//!
//! Examples are templates, so that no file holds anything that looks like a secret: `{alnum:36}` is 36 random characters.

pub(crate) mod builtin;
mod digest;
mod expression;
mod load;
mod sample;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub(crate) use expression::{Expression, build, build_with};
pub use load::Remark;
pub use sample::{Sample, expand};

/// What is looked for, and what is not.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct RuleSet {
    /// The rules, in the order they were read.
    pub rules: Vec<Rule>,
    /// What none of them is to find, or only those that are named.
    pub allow: Vec<Allow>,
}

/// Something that is looked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    /// What findings and receipts name.
    pub id: String,
    /// What it finds, in a few words.
    pub description: String,
    /// What is found, as far as people are concerned.
    pub kind: Kind,
    /// The rules that are turned on and off together.
    pub group: String,
    /// What stands in the placeholder.
    pub label: String,
    /// How bad it is when it is not removed.
    pub severity: Severity,
    /// Words of which one stands in every match, in lower case. Without any, every text is looked at.
    pub keywords: Vec<String>,
    /// How it is found.
    pub pattern: Pattern,
    /// Which group of the expression is what is removed; the first there is without one.
    pub secret_group: Option<usize>,
    /// How many bits a character of it has at least.
    pub entropy: Option<f64>,
    /// What a pattern cannot say.
    pub check: Option<Check>,
    /// Only in files whose path matches.
    pub path: Option<String>,
    /// What it is not to find.
    pub allow: Vec<Allow>,
    /// Templates of texts in which it finds something.
    pub examples: Vec<String>,
    /// Templates of texts in which it finds nothing.
    pub counterexamples: Vec<String>,
    /// Whether it came with the program. Of such rules it is known what they are not about.
    pub comes_along: bool,
}

impl Rule {
    /// A rule that finds what a pattern says, and asks for nothing else. Its label is its id.
    pub fn new(id: &str, kind: Kind, pattern: Pattern) -> Self {
        Self {
            id: id.to_owned(),
            description: String::new(),
            kind,
            group: String::new(),
            label: id.to_owned(),
            severity: Severity::High,
            keywords: Vec::new(),
            pattern,
            secret_group: None,
            entropy: None,
            check: None,
            path: None,
            allow: Vec::new(),
            examples: Vec::new(),
            counterexamples: Vec::new(),
            comes_along: false,
        }
    }
}

/// How a rule finds what it finds.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Pattern {
    /// By what it looks like.
    Regex(String),
    /// By the name it is given to, and by what its value looks like as a whole.
    Named {
        /// Words that stand in the name, in lower case and without what joins words.
        names: Vec<String>,
        /// The expression that the whole value matches.
        value: String,
    },
    /// By the file it is in: all of it.
    File,
}

/// What is found, as far as people are concerned. The word of it is the `type` of a receipt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Kind {
    /// What opens something.
    Secret,
    /// What tells who somebody is or how to reach them.
    Pii,
    /// Where a file is.
    Path,
    /// What a person or a machine is called.
    Identity,
}

impl Kind {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Secret => "secret",
            Self::Pii => "pii",
            Self::Path => "path",
            Self::Identity => "identity",
        }
    }
}

/// How bad it is when something is not removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Severity {
    /// Nuisance.
    Low,
    /// It tells of somebody.
    Medium,
    /// It opens something.
    High,
}

impl Severity {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// What a pattern cannot say of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Check {
    /// The last digit of a card's number.
    Luhn,
    /// The check digits of a bank account.
    Iban,
    /// An address of the fourth version that belongs to somebody: neither private nor reserved, and no version.
    Ipv4,
    /// The same of the sixth.
    Ipv6,
    /// An address of a network card, rather than a piece of a longer row of bytes, or one that counts.
    Mac,
    /// A phone number that can be dialled.
    Phone,
    /// An address for mail that belongs to somebody.
    Email,
    /// The header of a JSON web token.
    Jwt,
    /// A national id with check digits, of the country that is named by the rule's id.
    NationalId,
    /// A value that its name calls a secret and that looks made up by a machine: no word, no path, no placeholder.
    Secret,
    /// The same of what its name calls a password: shorter ones, and those that people make up.
    Password,
    /// A value that stands where passwords do, and looks like one: no word, no path, no code.
    Typed,
    /// A token whose longest part looks made up by a machine: for prefixes that begin other things as well.
    Random,
    /// A value that a machine made up, in whatever alphabet: where what is before it says that it opens something.
    Drawn,
}

impl Check {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Luhn => "luhn",
            Self::Iban => "iban",
            Self::Ipv4 => "ipv4",
            Self::Ipv6 => "ipv6",
            Self::Mac => "mac",
            Self::Phone => "phone",
            Self::Email => "email",
            Self::Jwt => "jwt",
            Self::NationalId => "national-id",
            Self::Secret => "secret",
            Self::Password => "password",
            Self::Typed => "typed",
            Self::Random => "random",
            Self::Drawn => "drawn",
        }
    }

    /// The check that a word stands for.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|check| check.as_str() == word)
    }

    const ALL: [Self; 14] = [
        Self::Luhn,
        Self::Iban,
        Self::Ipv4,
        Self::Ipv6,
        Self::Mac,
        Self::Phone,
        Self::Email,
        Self::Jwt,
        Self::NationalId,
        Self::Secret,
        Self::Password,
        Self::Typed,
        Self::Random,
        Self::Drawn,
    ];
}

/// What is not to be found.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Allow {
    /// The rules it is about; all of them without any.
    pub rules: Vec<String>,
    /// Expressions.
    pub regexes: Vec<String>,
    /// What the expressions are held against.
    pub target: Target,
    /// Words that stand in what was found, in lower case.
    pub stopwords: Vec<String>,
    /// Expressions of file names.
    pub files: Vec<String>,
    /// JSON paths: keys joined by dots, `*` for any one, `**` for any number.
    pub fields: Vec<String>,
    /// Hashes of values, SHA-256 in hex.
    pub values: Vec<String>,
    /// Whether all that is set has to hold, rather than one of it.
    pub all: bool,
    /// Whether it came with the program, so that tests have read its expressions.
    pub comes_along: bool,
}

/// What an expression of an allowlist is held against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum Target {
    /// What would be removed.
    #[default]
    Secret,
    /// What the rule matched.
    Match,
    /// The line it stands on.
    Line,
}

/// What is wrong with a file of rules. None of it is used.
#[derive(Debug, thiserror::Error)]
pub enum RuleError {
    /// It is no TOML, or not what rules look like.
    #[error("{}:{line}: {why}", file.display())]
    Syntax {
        /// The file.
        file: PathBuf,
        /// The line, from one.
        line: usize,
        /// What is wrong.
        why: String,
    },
    /// A rule cannot be used.
    #[error("{}: rule {rule}: {why}", file.display())]
    Rule {
        /// The file.
        file: PathBuf,
        /// The id of the rule, or its place in the file.
        rule: String,
        /// What is wrong with it.
        why: String,
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
