//! What stands where a secret would, and is something that programs and people call by a name: a name of code, the name of
//! a model, a version or a date, the number of a request.
//!
//! Each of these is known by its parts. A machine that draws a token does not spell words; somebody who names a thing does
//! little else.

/// Names of tokens that tell one request from another, or where a list goes on. In lower case and joined.
const REQUESTS: &[&str] = &[
    "clientrequesttoken",
    "changetoken",
    "locktoken",
    "idempotencytoken",
    "startingtoken",
    "forwardtoken",
    "backwardtoken",
    "lifecycleactiontoken",
    "updatetoken",
];

/// Letters that follow `a`, `b` and so on in words of source code and its documentation, but for the rarest.
const FOLLOWS: [&[u8]; 26] = [
    b"bcdfgiklmnprstuvwxy",
    b"aceijlorsu",
    b"acehiklorstuy",
    b"adeilorsuy",
    b"abcdefgilmnopqrstuvwxy",
    b"aefilorstuy",
    b"aeghilnorsu",
    b"aeiortuy",
    b"abcdefglmnoprstvxz",
    b"e",
    b"aeis",
    b"adefilopstuvy",
    b"abeilmopsu",
    b"acdefgiklnopstuvy",
    b"abcdefgiklmnoprstuvwx",
    b"adehiloprstuy",
    b"u",
    b"abcdefgiklmnoprstuvwy",
    b"acefhiklmnopstuwy",
    b"acefhilmoprstuwy",
    b"abcdefgilmnprst",
    b"aeio",
    b"aehinors",
    b"aceipt",
    b"eimnopst",
    b"ae",
];

/// Words that are not spelled as words are.
const SHORT: &[&[u8]] = &[
    b"http", b"https", b"html", b"json", b"jwt", b"sql", b"mysql", b"ssl", b"tls", b"ssh", b"xml",
    b"css", b"dns", b"grpc", b"ctx", b"cfg", b"str", b"msg", b"src", b"tmp", b"img", b"cmd",
    b"gpt", b"haiku", b"cfn", b"aws",
];

/// Whether a value is a name of code, or an expression that is made of such: `self._session_token`, `HeadModelV2`.
pub(super) fn code(value: &str) -> bool {
    // The number of a curve is in many names, and is longer than numbers of names are.
    let value = value.replace("25519", "");
    let value = value.trim_end_matches([':', ',', ';', '=', '?']);
    let (mut parts, mut joined, mut spelled) = (0, false, false);
    for part in value.split(|c: char| !is_identifier(c)) {
        joined |= part.trim_matches('_').contains('_') || is_camel(part);
        parts += usize::from(!part.is_empty());
        spelled |= part.len() > 3 && !part.bytes().all(|byte| byte.is_ascii_digit());
        if !part.is_empty() && !identifier(part) {
            return false;
        }
    }
    let written = |c: char| is_identifier(c) || ".?!=:&|<>()[],".contains(c);
    spelled && (parts > 1 || joined) && value.chars().all(written)
}

/// Whether a value is what a thing is called, with numbers and dates in it: `claude-sonnet-4-5-20250929`, `bedrock-2023-05-31`.
pub(super) fn slug(value: &str) -> bool {
    let (mut parts, mut words, mut numbers) = (0, 0, 0);
    for part in value.split(['-', '_', '.', ':', '/', '@', ',']) {
        parts += 1;
        let letters = part.trim_end_matches(|c: char| c.is_ascii_digit());
        let digits = part.len() - letters.len();
        let is_alphabetic =
            !letters.is_empty() && letters.bytes().all(|byte| byte.is_ascii_alphabetic());
        let fits = match () {
            () if letters.is_empty() => digits <= 4 || digits == 8 && part.starts_with("20"),
            () if is_alphabetic && digits <= 3 => letters.len() <= 4 || identifier(letters),
            () => part.len() <= 4 && part.bytes().all(|byte| byte.is_ascii_alphanumeric()),
        };
        if !fits {
            return false;
        }
        if is_alphabetic && letters.len() > 2 {
            words += letters.len();
        }
        numbers += digits;
    }
    parts > 1 && words * 5 >= (value.len() - numbers) * 2
}

/// Whether a name speaks of a token that opens nothing. `name` is in lower case and joined.
pub(super) fn of_request(name: &str, value: &str) -> bool {
    REQUESTS.iter().any(|word| name.contains(word))
        || (name.ends_with("clienttoken") || name.ends_with("requesttoken")) && is_uuid(value)
}

/// Whether a value is the digest of the file that its name is: `"src/token.rs":"0f…"`.
pub(super) fn of_file(name: &[u8], value: &str) -> bool {
    const ENDINGS: &[&[u8]] = &[
        b"rs", b"a", b"c", b"h", b"cc", b"cpp", b"go", b"py", b"js", b"mjs", b"cjs", b"ts", b"tsx",
        b"css", b"html", b"json", b"toml", b"yml", b"yaml", b"md", b"txt", b"sh", b"sql", b"svg",
        b"png", b"map", b"der", b"p8", b"pem", b"bin", b"lib", b"so", b"dll", b"lock",
    ];
    let ending = name.rsplit(|byte| *byte == b'.').next().unwrap_or_default();
    matches!(value.len(), 32 | 40 | 64 | 128)
        && ending.len() < name.len()
        && ENDINGS.contains(&ending)
        && value.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Whether a value repeats the name that it is given to, or is a name that shares a word with it: `"svm_password", "svm_name"`.
pub(super) fn repeats(name: &[u8], value: &str) -> bool {
    let name = String::from_utf8_lossy(name);
    if name.is_empty() {
        return false;
    }
    let (mut shared, digits) = (0, value.bytes().filter(u8::is_ascii_digit).count());
    words(&name, |word| {
        words(value, |other| {
            shared += usize::from(word.len() > 2 && word.eq_ignore_ascii_case(other));
        });
    });
    // A password of words has a number, and a word may be that of its name.
    let joined = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let enough = shared > usize::from(digits > 1) && value.bytes().all(joined);
    same(&name, value) || enough && (code(value) || slug(value))
}

/// Whether both are the same but for what joins their words.
fn same(one: &str, other: &str) -> bool {
    let letters = |text: &str| -> Vec<u8> {
        let bytes = text.bytes().filter(u8::is_ascii_alphanumeric);
        bytes.map(|byte| byte.to_ascii_lowercase()).collect()
    };
    letters(one) == letters(other)
}

/// Whether a name is a part of the number of a resource or of a model: `arn:aws:secretsmanager:us-east-1:123456789012:secret:name`.
pub(super) fn in_arn(text: &[u8], name: usize) -> bool {
    const LONGEST: usize = 160;
    if name == 0 || text[name - 1] != b':' {
        return false;
    }
    let near = &text[name.saturating_sub(LONGEST)..name];
    let ends = |byte: &u8| byte.is_ascii_whitespace() || b"\"'`<>(".contains(byte);
    let begin = near.iter().rposition(ends).map_or(0, |at| at + 1);
    let run = &near[begin..];
    memchr::memmem::find(run, b"ft:gpt").is_some() || memchr::memmem::find(run, b"arn:").is_some()
}

/// Whether a value says that it is a password, and is made of words: `new-passphrase`, `CONFIG_PASSWORD`.
pub(super) fn calls_itself(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    ["password", "passphrase", "passwd"]
        .iter()
        .any(|word| lower.contains(word))
        && value.bytes().filter(u8::is_ascii_digit).count() < 2
        && (code(value) || slug(value))
}

/// Whether a place is within the name of a file that a build made, or within a digest: `locale/sk-0f….json`, `sha256=ak_…`.
pub(super) fn in_file_name(text: &[u8], begin: usize, end: usize) -> bool {
    let (before, behind) = (&text[..begin], &text[end..]);
    let digest = [
        &b"sha256="[..],
        b"sha256-",
        b"sha256:",
        b"sha384-",
        b"sha512-",
        b"sha512=",
    ]
    .iter()
    .any(|word| before.ends_with(word));
    let ending = [
        &b".json"[..],
        b".js",
        b".mjs",
        b".css",
        b".map",
        b".svg",
        b".html",
        b".png",
    ]
    .iter()
    .any(|ending| behind.starts_with(ending));
    digest || ending && before.ends_with(b"/")
}

/// Whether a value is an address without a password in it.
pub(super) fn address(value: &str) -> bool {
    (value.starts_with("https://") || value.starts_with("http://")) && !value.contains(['@', '?'])
}

fn is_identifier(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '$')
}

fn is_uuid(value: &str) -> bool {
    value.len() == 36
        && value.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// Whether a capital begins a word that is not the first.
fn is_camel(part: &str) -> bool {
    let begins = |three: &[u8]| {
        let [before, here, behind] = [three[0], three[1], three[2]];
        here.is_ascii_uppercase()
            && behind.is_ascii_lowercase()
            && (before.is_ascii_lowercase() || before.is_ascii_digit())
    };
    let ends = |pair: &[u8]| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase();
    part.as_bytes().windows(3).any(begins) || part.as_bytes().windows(2).any(ends)
}

/// Whether a part can be a name in a program: words, few digits.
fn identifier(part: &str) -> bool {
    let digits = part.bytes().filter(u8::is_ascii_digit).count();
    if part.len() <= 3 || digits == part.len() {
        return part.len() <= 4;
    }
    let before_letter = |pair: &&[u8]| pair[0].is_ascii_digit() && pair[1].is_ascii_alphabetic();
    let inside = part.as_bytes().windows(2).filter(before_letter).count();
    if inside > 1 || digits > 2 && (digits > 4 || digits * 5 > part.len()) {
        return false;
    }
    let (mut spelled, mut letters, mut short, mut all) = (0, 0, 0, true);
    let small = part.bytes().any(|byte| byte.is_ascii_lowercase());
    words(part, |word| {
        let length = word.len();
        // Several words by their first letters: `GPTLM`.
        let initials = length <= 7 && word.iter().all(u8::is_ascii_uppercase);
        match () {
            () if length < 3 => short += 1,
            () if can_be_spelled(word) => spelled += length,
            () => all &= initials,
        }
        letters += if initials && small { 0 } else { length };
    });
    // By chance, letters between digits and capitals can be spelled as well; long words seldom are.
    all && spelled * 10 >= letters * 7 && short * 5 <= spelled
}

/// Goes over the words of a name: letters up to a joint, a digit or a capital.
fn words(name: &str, mut each: impl FnMut(&[u8])) {
    let bytes = name.as_bytes();
    let mut begin = 0;
    for at in 0..=bytes.len() {
        let letter = bytes.get(at).is_some_and(u8::is_ascii_alphabetic);
        let goes_on = letter && begin < at && {
            let (before, here) = (bytes[at - 1], bytes[at]);
            let ends_capitals = bytes.get(at + 1).is_some_and(u8::is_ascii_lowercase);
            if here.is_ascii_uppercase() {
                before.is_ascii_uppercase() && !ends_capitals
            } else {
                true
            }
        };
        if begin < at && !goes_on {
            each(&bytes[begin..at]);
        }
        if !goes_on {
            begin = if letter { at } else { at + 1 };
        }
    }
}

/// Whether letters can be a word: they follow each other as letters of words do, but for a pair in a long word, and there are vowels.
fn can_be_spelled(word: &[u8]) -> bool {
    let vowel = |byte: &u8| b"aeiouy".contains(&byte.to_ascii_lowercase());
    let seldom = |pair: &&[u8]| {
        let (first, second) = (pair[0].to_ascii_lowercase(), pair[1].to_ascii_lowercase());
        !FOLLOWS[usize::from(first - b'a')].contains(&second)
    };
    let seldom = word.windows(2).filter(seldom).count();
    let known = |short: &&[u8]| word.eq_ignore_ascii_case(short);
    SHORT.iter().any(known) || word.iter().any(vowel) && seldom <= word.len() / 5
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::expand;

    #[test]
    fn names_and_expressions_of_code() {
        for value in [
            "self._session_token",
            "exports2.STRICT_TOKEN",
            "REACT_OPTIMISTIC_KEY:",
            "c.value!==void",
            "t.toUint8Array",
            "curve2.constants.SEED_BYTE_LENGTH",
            "resource_metadata=",
            "exports.SORT_KEY=exports.CACHE_KEY=",
            "Ed25519PrivateKey",
            "SalesforceTriggerV11Node",
            "OpenAIHeadModel",
            "this.options.httpPort??2773",
            "binaryauthorization_1.binaryauthorization",
        ] {
            assert!(code(value), "{value}");
        }
    }

    #[test]
    fn names_of_things_with_numbers_and_dates() {
        for value in [
            "claude-sonnet-4-5-20250929",
            "prompt-caching-2024-07-31",
            "bedrock-2023-05-31",
            "gpt-4o-mini",
            "gemini/gemini-2.5-pro-exp-03-25",
            "openai/gpt-4o-mini",
            "context-1m-2025-08-07",
            "vertex_ai-ai21_models",
            "tool_search_tool_regex_20251119",
        ] {
            assert!(slug(value), "{value}");
        }
    }

    #[test]
    fn what_a_machine_drew_is_neither() {
        for template in [
            "{alnum:16}",
            "{alnum:20}",
            "{alnum:32}",
            "{alnum:40}",
            "{hex:32}",
            "{b64u:24}",
            "{b64u:43}",
            "{b64:40}",
            "{lownum:20}",
            "{lownum:32}",
            "{uuid}",
            "{alnum:8}-{alnum:16}",
            "{hex:8}-{hex:4}-{hex:12}",
            "{alnum:24}.{alnum:6}.{b64u:27}",
            "{upnum:20}",
            "s.{alnum:24}",
        ] {
            let wrong = (0..2000).filter(|seed| {
                let value = expand(template, *seed).unwrap().text;
                code(&value) || slug(&value)
            });
            let wrong = wrong.count();
            assert!(wrong <= 4, "{template}: {wrong} of 2000");
        }
    }

    #[test]
    fn a_name_given_to_a_name() {
        for (name, value) in [
            ("svm_password", "svm_name"),
            ("snmpAuthPassphrase", "snmpAuthPassphrase"),
            ("nss_base_passwd", "nss-base-passwd"),
            ("old_password", "new_password1"),
            ("PASSWORD", "CONFIG_PASSWORD"),
        ] {
            assert!(repeats(name.as_bytes(), value), "{name} {value}");
        }
        for (name, value) in [
            ("password", "correct-h0rse-battery"),
            ("password", "Tr0ub4dor&3"),
            ("db_password", "db2024!x"),
            ("password", "password123!"),
            ("password", "StrongPassword!"),
        ] {
            assert!(!repeats(name.as_bytes(), value), "{name} {value}");
        }
    }

    #[test]
    fn parts_of_an_arn() {
        let text = b"\"arn:aws:secretsmanager:eu-west-1:123456789012:secret:name-a1b2c3\"";
        let at = memchr::memmem::find(text, b":secret:").unwrap() + 1;
        assert!(in_arn(text, at));
        assert!(!in_arn(b"x:secret:name", 2));
        assert!(!in_arn(b"secret:name", 0));
    }
}
