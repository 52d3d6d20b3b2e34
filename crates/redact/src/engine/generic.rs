//! Whether a value is a secret when only its name says so.
//!
//! Code is full of names that speak of tokens and keys. What is given to most of them is a word, another name, a path, a
//! type, a call. A secret was made up by a machine and looks it; a password was made up by somebody, and looks like neither.

use super::assign::Style;
use super::check::entropy;
use super::letters::drawn;

/// What a value looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// A secret.
    Secret,
    /// Nearly one: not random enough.
    Nearly,
    /// Something else.
    Other,
}

/// Names that speak of something beside a secret, in lower case and joined.
const OTHER_NAMES: &[&str] = &[
    "tokenize",
    "tokencount",
    "counttoken",
    "maxtoken",
    "mintoken",
    "numtoken",
    "totaltoken",
    "inputtoken",
    "outputtoken",
    "prompttoken",
    "tokenlimit",
    "tokenusage",
    "tokenbudget",
    "tokenlength",
    "pagetoken",
    "nexttoken",
    "continuationtoken",
    "synctoken",
    "tokentype",
    "tokenurl",
    "tokenuri",
    "tokenendpoint",
    "tokenname",
    "tokenid",
    "tokenpath",
    "tokenfile",
    "tokenaddress",
    "authurl",
    "authtype",
    "authmethod",
    "authmode",
    "authprovider",
    "author",
    "publickey",
    "pubkey",
    "keyid",
    "keyname",
    "keypath",
    "keyfile",
    "keytype",
    "keycode",
    "keyword",
    "keyboard",
    "keydown",
    "keyup",
    "keypress",
    "cachekey",
    "primarykey",
    "foreignkey",
    "sortkey",
    "partitionkey",
    "idempotencykey",
    "monkey",
    "turkey",
    "hotkey",
    "secretname",
    "secretarn",
    "secretid",
    "secretref",
    "secretpath",
    "secretsmanager",
    "passwordfield",
    "passwordhash",
    "passwordfile",
    "passwordpath",
    "passwordlength",
    "passwordreset",
    "commit",
    "sha1",
    "sha256",
    "sha512",
    "checksum",
    "digest",
    "integrity",
    "etag",
    "fingerprint",
    "thumbprint",
    "hash",
    "md5",
    "resolved",
    "csstoken",
    "scrollbar",
    "designtoken",
    "tokenprice",
    "requestid",
    "traceid",
    "spanid",
    "messageid",
    "toolcallid",
    "csrf",
    "nonce",
    "integrity",
    "issuer",
    "audience",
];
/// Words that stand in what somebody is to put something else in place of.
const STAND_INS: &[&str] = &[
    "your",
    "example",
    "changeme",
    "change_me",
    "change-me",
    "changethis",
    "placeholder",
    "redacted",
    "dummy",
    "fake",
    "sample",
    "insert",
    "todo",
    "replace",
    "mock",
    "_here",
    "-here",
    "foobar",
    "lorem",
    "default",
    "secret_key",
    "secret-key",
    "api_key",
    "api-key",
    "apikey",
    "process.env",
    "environ",
    "getenv",
    "env.",
    "config.",
    "settings.",
    "secrets.",
    "undefined",
    "masked",
    "hidden",
    "removed",
    "censored",
    "not-a-real",
    "notreal",
    "invalid",
    "testtest",
    "none",
    "null",
    "import",
    "require",
    "function",
    "const ",
    "string",
];

/// Rows that nobody draws.
const ROWS: &[&str] = &[
    "xxxx",
    "****",
    "....",
    "123456789",
    "abcdefgh",
    "qwerty",
    "deadbeef",
    "00000000",
    "abc123",
    "abcdef123",
    "123456abc",
];

/// Whether a name speaks of something beside a secret. `name` is in lower case and joined.
pub(super) fn other_name(name: &str) -> bool {
    // Several tokens are a number of them; one that ends so is the id of something.
    name.ends_with("tokens")
        || name.ends_with("id") && !name.ends_with("sid")
        || OTHER_NAMES.iter().any(|word| name.contains(word))
}

/// Whether somebody is to put something else in its place, or a program does.
pub(super) fn stand_in(value: &str) -> bool {
    let bytes = value.as_bytes();
    let lower = value.to_ascii_lowercase();
    let mut seen = [false; 256];
    for byte in bytes {
        seen[usize::from(byte.to_ascii_lowercase())] = true;
    }
    let kinds = seen.iter().filter(|seen| **seen).count();
    let few = kinds <= 2 || (bytes.len() >= 16 && kinds <= 4);
    let around = |open: &str, close: &str| value.starts_with(open) && value.ends_with(close);
    few || value.starts_with('$')
        || value.contains("${")
        || value.contains("$(")
        || value.contains("{{")
        || around("<", ">")
        || around("%", "%")
        || (around("[", "]") && !value.contains(','))
        || around("{", "}")
        || around("(", ")")
        || around("__", "__")
        || around("@", "@")
        || matches!(
            lower.as_str(),
            "true"
                | "false"
                | "nil"
                | "str"
                | "yes"
                | "no"
                | "password"
                | "passwd"
                | "secret"
                | "token"
                | "admin"
                | "test"
        )
        || lower.starts_with("my_")
        || lower.starts_with("my-")
        // By chance, what is long holds every short word.
        || value.len() <= 80
            && (has(ROWS, &lower) || has(STAND_INS, &lower) && !holds_random(&lower))
}

fn has(words: &[&str], value: &str) -> bool {
    words.iter().any(|word| value.contains(word))
}

/// Whether a long part of a value cannot be a word: then it is not to be replaced, whatever is said beside it.
fn holds_random(lower: &str) -> bool {
    let parts = lower.split(|letter: char| !letter.is_ascii_alphanumeric());
    parts.into_iter().any(|part| {
        let digits = part.bytes().filter(u8::is_ascii_digit).count();
        part.len() >= 24
            && part.len() < lower.len()
            && digits >= 4
            && entropy(part.as_bytes()) >= 3.0
            && !wordy(part)
    })
}

/// Whether it is a path of words, whatever its name.
pub(super) fn path(value: &str) -> bool {
    value.bytes().filter(|byte| *byte == b'/').count() > 1 && wordy(value)
}

/// Whether it is what something is called: words in lower case with a joint between them, and no digit.
pub(super) fn label(value: &str) -> bool {
    let joint = |byte: u8| matches!(byte, b'-' | b'_');
    value.bytes().any(joint)
        && value
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || joint(byte))
        && value.split(['-', '_']).all(|word| !word.is_empty())
        && wordy(value)
}

/// Looks at what is given to a name that says secret, token or key.
pub(super) fn secret(name: &str, value: &str, style: Style) -> Look {
    // What costs least is asked first: most values are none.
    if value.len() < 10 || !plain(value) {
        return Look::Other;
    }
    let traits = Traits::of(value);
    let random = drawn(value);
    let bare = matches!(style, Style::Bare | Style::Line);
    if bare && (traits.digits == 0 && !random || value.contains(['(', '[', '{'])) {
        return Look::Other;
    }
    let words = wordy(value) && !random;
    if words || other_name(name) || stand_in(value) || structured(value, name) {
        return Look::Other;
    }
    let certain = random && (value.len() >= 20 || value.len() >= 12 && speaks(name));
    let mixed = traits.digits > 0 && traits.letters() > 0
        || (traits.lower > 3 && traits.upper > 3 && value.len() >= 20)
        || certain;
    let all_hex = value
        .bytes()
        .all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    let least = match value.len() {
        _ if all_hex => 2.6,
        ..16 => 2.9,
        16..24 => 3.2,
        24..40 => 3.5,
        _ => 3.8,
    };
    let bits = entropy(value.as_bytes());
    match () {
        () if !mixed => Look::Other,
        () if bits >= least && (value.len() >= 16 || traits.digits >= 2 || certain) => Look::Secret,
        () if certain && bits >= least - 0.3 => Look::Secret,
        () if bits >= least - 0.5 => Look::Nearly,
        () => Look::Other,
    }
}

/// Looks at what is given to a name that says password.
pub(super) fn password(name: &str, raw_name: &str, value: &str, style: Style) -> Look {
    let traits = Traits::of(value);
    let path = value.bytes().filter(|byte| *byte == b'/').count() > 1;
    let random = value.len() >= 10 && drawn(value);
    let firm = style == Style::Line;
    let chosen = firm && (phrase(value) || with_sign(value, &traits));
    // Without quotes and without a digit, a word is a name of something.
    let plain_word = traits.digits == 0
        && !random
        && !chosen
        && (wordy(value) || value.len() < 10 || traits.upper < 2 || traits.lower < 2);
    let bare = matches!(style, Style::Bare | Style::Line)
        && (plain_word || value.len() < 8 || path && !random);
    if bare
        || value.len() < 6
        || !plain(value)
        || other_name(name)
        || stand_in(value)
        || structured(value, name)
    {
        return Look::Other;
    }
    let shouted = !raw_name.is_empty() && raw_name.bytes().all(|byte| !byte.is_ascii_lowercase());
    if style == Style::Quoted && shouted && !wordy(value) {
        return Look::Secret;
    }
    let code = value.contains(['(', ')', '[', ']', '{', '}', '<', '>', '|', ';']);
    if matches!(style, Style::Bare | Style::Line) && code {
        return Look::Other;
    }
    if random || chosen {
        return Look::Secret;
    }
    let mixed = traits.letters() > 0 && (traits.digits > 0 || traits.signs > 0)
        || traits.digits > 0 && traits.signs > 0;
    let drawn = value.len() >= 10 && traits.upper > 1 && traits.lower > 1 && !wordy(value);
    let mixed = mixed || drawn;
    match () {
        // Somebody's word with a number or a sign at its end is a password as well, and a name with a joint is none.
        () if value.len() < 8 || !mixed => Look::Other,
        () if traits.digits == 0 && wordy(value) => Look::Other,
        () if matches!(style, Style::Bare | Style::Line) && wordy(value) => Look::Nearly,
        () if entropy(value.as_bytes()) < 2.0 => Look::Nearly,
        () => Look::Secret,
    }
}

/// Words with a joint between them, as people are told to make up passwords. Fewer than four are what something is called.
fn phrase(value: &str) -> bool {
    let speaks_of_itself =
        |word: &str| matches!(word, "password" | "secret" | "passphrase" | "name" | "key");
    ['-', '+'].into_iter().any(|joint| {
        let mut words = value.split(joint);
        words.clone().count() >= 4
            && words.all(|word| {
                word.len() >= 3
                    && word.bytes().all(|byte| byte.is_ascii_alphanumeric())
                    && !speaks_of_itself(&word.to_ascii_lowercase())
            })
    })
}

/// Words with digits and a sign that no name has, as people make passwords out of words.
fn with_sign(value: &str, traits: &Traits) -> bool {
    let sign = |byte: u8| {
        matches!(
            byte,
            b'!' | b'@' | b'#' | b'%' | b'^' | b'&' | b'*' | b'?' | b'+' | b'~' | b'$'
        )
    };
    value.len() >= 8
        && traits.digits > 0
        && traits.letters() >= 3
        && value.bytes().any(sign)
        && !value.starts_with(['*', '&', '@', '!', '$', '%', '?', '+'])
        && !value.contains(['=', '\\'])
        && !value.contains("//")
}

/// Letters, digits and signs of ASCII, and no blanks.
fn plain(value: &str) -> bool {
    value.len() <= 1024 && value.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Whether it has the form of something that is no secret.
fn structured(value: &str, name: &str) -> bool {
    let bytes = value.as_bytes();
    let is = |byte: &u8, more: &[u8]| byte.is_ascii_alphanumeric() || more.contains(byte);
    let path = (value.starts_with('/') || value.starts_with(['~', '.', '#']) && wordy(value))
        && !random_tail(value)
        || value.contains("://")
        || value.contains("../")
        || value.starts_with("@/");
    let version = bytes.iter().all(|byte| {
        byte.is_ascii_digit()
            || matches!(byte, b'.' | b'-' | b':' | b'T' | b'Z' | b'+' | b'_' | b'/')
    });
    let labelled = [
        "sha1-",
        "sha256-",
        "sha384-",
        "sha512-",
        "sha256:",
        "sha1:",
        "md5:",
        "ssh-",
        "data:",
        "urn:",
        "arn:",
        "refs/",
        "$2a$",
        "$2b$",
        "$2y$",
        "[REDACTED:",
        "file:",
        "sk-ant-oat",
    ];
    let digest = matches!(bytes.len(), 32 | 40 | 64)
        && bytes.iter().all(u8::is_ascii_hexdigit)
        && !speaks(name);
    let uuid = bytes.len() == 36
        && bytes.iter().enumerate().all(|(at, byte)| {
            if matches!(at, 8 | 13 | 18 | 23) {
                *byte == b'-'
            } else {
                byte.is_ascii_hexdigit()
            }
        });
    let call = value.ends_with(')')
        && value.contains('(')
        && bytes.first().is_some_and(u8::is_ascii_alphabetic);
    let member = value.split('.').count() > 1
        && value.split('.').all(|part| {
            part.bytes()
                .next()
                .is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
                && part.bytes().all(|byte| is(&byte, b"_?!"))
        })
        && value.split('.').all(|part| wordy(part) || part.len() < 4);
    let file = value.rsplit_once('.').is_some_and(|(_, end)| {
        matches!(
            end,
            "js" | "ts"
                | "tsx"
                | "json"
                | "py"
                | "rs"
                | "go"
                | "md"
                | "txt"
                | "yml"
                | "yaml"
                | "toml"
                | "pem"
                | "key"
                | "env"
                | "png"
                | "svg"
                | "com"
                | "org"
                | "html"
                | "css"
        )
    });
    path || version
        || labelled.iter().any(|label| value.starts_with(label))
        || digest
        || (uuid && !speaks(name))
        || call
        || member
        || file
}

/// A name that cannot mean anything but a secret, whatever the value.
fn speaks(name: &str) -> bool {
    [
        "secret",
        "token",
        "password",
        "passwd",
        "apikey",
        "accesskey",
        "authkey",
        "privatekey",
        "credential",
        "signingkey",
        "encryptionkey",
        "masterkey",
        "ingestionkey",
        "licensekey",
        "writekey",
        "agentkey",
        "passphrase",
    ]
    .iter()
    .any(|word| name.contains(word))
}

/// `/+abc…=` is base64 that begins with a slash; `/usr/lib` is a path.
fn random_tail(value: &str) -> bool {
    value.starts_with('/') && value.len() >= 24 && value.ends_with('=')
}

struct Traits {
    lower: usize,
    upper: usize,
    digits: usize,
    signs: usize,
}

impl Traits {
    fn of(value: &str) -> Self {
        let count = |is: fn(&u8) -> bool| value.as_bytes().iter().filter(|byte| is(byte)).count();
        Self {
            lower: count(u8::is_ascii_lowercase),
            upper: count(u8::is_ascii_uppercase),
            digits: count(u8::is_ascii_digit),
            signs: count(u8::is_ascii_punctuation),
        }
    }

    fn letters(&self) -> usize {
        self.lower + self.upper
    }
}

/// Whether most of it is words: letters in a row that can be spoken.
pub(super) fn wordy(value: &str) -> bool {
    let bytes = value.as_bytes();
    let (mut spoken, mut all) = (0, 0);
    let mut at = 0;
    while at < bytes.len() {
        let begin = at;
        // A capital begins a word, and a row of capitals is one.
        while at < bytes.len() && bytes[at].is_ascii_uppercase() {
            at += 1;
        }
        if at - begin <= 1 {
            while at < bytes.len() && bytes[at].is_ascii_lowercase() {
                at += 1;
            }
        }
        if at == begin {
            all += usize::from(bytes[at].is_ascii_alphanumeric());
            at += 1;
            continue;
        }
        all += at - begin;
        if can_be_spoken(&bytes[begin..at]) {
            spoken += at - begin;
        }
    }
    // Letters between many digits can be spoken by chance.
    let digits = bytes.iter().filter(|byte| byte.is_ascii_digit()).count();
    let share = if digits * 8 > all { 85 } else { 70 };
    all == 0 || spoken * 100 >= all * share
}

fn can_be_spoken(word: &[u8]) -> bool {
    let vowel = |byte: &u8| b"aeiouy".contains(&byte.to_ascii_lowercase());
    let vowels = word.iter().filter(|byte| vowel(byte)).count();
    let (mut row, mut longest) = (0, 0);
    for byte in word {
        row = if vowel(byte) { 0 } else { row + 1 };
        longest = longest.max(row);
    }
    word.len() >= 3 && vowels * 5 >= word.len() && longest <= 4 && vowels * 4 <= word.len() * 3
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::expand;

    #[test]
    fn machines_make_up_secrets() {
        for template in [
            "{alnum:32}",
            "{hex:32}",
            "{b64:40}",
            "{b64u:24}",
            "{lownum:20}",
            "{hex:64}",
            "{uuid}",
        ] {
            let hits = (0..100).filter(|seed| {
                let value = expand(template, *seed).unwrap().text;
                secret("clientsecret", &value, Style::Quoted) == Look::Secret
            });
            let hits = hits.count();
            assert!(hits >= 97, "{template}: {hits}");
        }
    }

    #[test]
    fn code_is_no_secret() {
        for (name, value) in [
            ("token", "await"),
            ("apikey", "config.foo.apiKey"),
            ("password", "z.string().min(8)"),
            ("token", "getFooToken(bar)"),
            ("tokencount", "1234567890123"),
            ("maxtokens", "4096"),
            ("nextpagetoken", "a8f3b2c1d4e5f6071829"),
            ("key", "user.name"),
            ("token", "some-css-class-name-2"),
            ("apikey", "sk-your-key-here"),
            ("apikey", "${API_KEY}"),
            ("secret", "process.env.SECRET"),
            ("token", "[REDACTED:github]"),
            ("token", "************"),
            ("commitsha", "4c2754b228b1aeb932860747b8fe659f257d6105"),
            ("secret", "AuthenticationService2"),
            ("token", "2026-06-22T10:00:03Z"),
            ("key", "/usr/local/lib/node_modules/x1"),
            ("token", "TOKEN_TYPE_BEARER_V2"),
            ("authtoken", "https://x.dev/a1b2c3d4e5f6"),
        ] {
            for style in [Style::Quoted, Style::Bare, Style::Env] {
                assert_ne!(
                    secret(name, value, style),
                    Look::Secret,
                    "{name} {value} {style:?}"
                );
            }
        }
    }

    #[test]
    fn people_make_up_passwords() {
        for value in [
            "hunter2!",
            "Tr0ub4dor&3",
            "s3cr3tP@ss",
            "correct-h0rse-battery",
        ] {
            assert_eq!(
                password("password", "password", value, Style::Quoted),
                Look::Secret,
                "{value}"
            );
            assert_eq!(
                password("dbpassword", "DB_PASSWORD", value, Style::Env),
                Look::Secret,
                "{value}"
            );
        }
        for value in [
            "password",
            "Passwort",
            "user.password",
            "changeme",
            "<password>",
            "process.env.PW",
            "string",
            "form-control",
            "********",
            "Password is required",
        ] {
            assert_ne!(
                password("password", "password", value, Style::Quoted),
                Look::Secret,
                "{value}"
            );
        }
    }
}
