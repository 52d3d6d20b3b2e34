//! Templates of samples: texts of which some characters are made up each time.
//!
//! `{alnum:36}` is 36 letters and digits. The words for characters: `alnum`, `alpha`, `lower`, `upper`, `digit`, `lownum`
//! (a-z0-9), `upnum` (A-Z0-9), `hex`, `HEX`, `b64` (with `+/`), `b64u` (with `-_`), `b32` (A-Z2-7), `b58` and `bech` (without what looks alike), `print` (what passwords are
//! made of). `{uuid}` is a UUID, `{lines:N}` N lines of 64 base64 characters, `{{` and `}}` are braces. What is within
//! `«…»` is what has to be removed; without it, what the rule finds is not looked at more closely.

/// A text made of a template.
#[derive(Clone, PartialEq, Eq)]
pub struct Sample {
    /// The text.
    pub text: String,
    /// What of it has to be removed, where the template says it.
    pub secret: Option<std::ops::Range<usize>>,
}

impl std::fmt::Debug for Sample {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sample").finish_non_exhaustive()
    }
}

/// Makes a text of a template; which one depends on the seed. `None` when the template is none.
pub fn expand(template: &str, seed: u64) -> Option<Sample> {
    let mut random = Random(seed ^ 0x9E37_79B9_7F4A_7C15);
    let (mut text, mut begin, mut secret) = (String::new(), None, None);
    let mut rest = template;
    while let Some(at) = rest.find(['{', '}', '«', '»']) {
        text.push_str(&rest[..at]);
        let (before, behind) = rest[at..].split_at(rest[at..].chars().next()?.len_utf8());
        rest = behind;
        match before {
            "«" => begin = Some(text.len()),
            "»" => secret = Some(begin.take()?..text.len()),
            brace if rest.starts_with(brace) => {
                text.push_str(brace);
                rest = &rest[1..];
            }
            "{" => {
                let (inside, behind) = rest.split_once('}')?;
                rest = behind;
                fill(inside, &mut random, &mut text)?;
            }
            _ => return None,
        }
    }
    text.push_str(rest);
    begin.is_none().then_some(Sample { text, secret })
}

fn fill(inside: &str, random: &mut Random, text: &mut String) -> Option<()> {
    if inside == "uuid" {
        for (index, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
            if index > 0 {
                text.push('-');
            }
            random.fill(HEX, length, text);
        }
        return Some(());
    }
    let (word, count) = inside.split_once(':')?;
    let count: usize = count.parse().ok().filter(|count| *count <= 10_000)?;
    if word == "lines" {
        for index in 0..count {
            if index > 0 {
                text.push('\n');
            }
            random.fill(&set("b64")?, 64, text);
        }
        return Some(());
    }
    random.fill(&set(word)?, count, text);
    Some(())
}

const HEX: &[u8] = b"0123456789abcdef";

fn set(word: &str) -> Option<Vec<u8>> {
    let lower = || b'a'..=b'z';
    let upper = || b'A'..=b'Z';
    let digit = || b'0'..=b'9';
    Some(match word {
        "alnum" => lower().chain(upper()).chain(digit()).collect(),
        "alpha" => lower().chain(upper()).collect(),
        "lower" => lower().collect(),
        "upper" => upper().collect(),
        "digit" => digit().collect(),
        "lownum" => lower().chain(digit()).collect(),
        "upnum" => upper().chain(digit()).collect(),
        "hex" => HEX.to_vec(),
        "HEX" => b"0123456789ABCDEF".to_vec(),
        "b64" => lower()
            .chain(upper())
            .chain(digit())
            .chain(*b"+/")
            .collect(),
        "b64u" => lower()
            .chain(upper())
            .chain(digit())
            .chain(*b"-_")
            .collect(),
        "b58" => lower()
            .chain(upper())
            .chain(digit())
            .filter(|byte| !b"0OIl".contains(byte))
            .collect(),
        "bech" => b"qpzry9x8gf2tvdw0s3jn54khce6mua7l".to_vec(),
        "b32" => upper().chain(b'2'..=b'7').collect(),
        "print" => lower()
            .chain(upper())
            .chain(digit())
            .chain(*b"!#%*+-.:=?@_~")
            .collect(),
        _ => return None,
    })
}

/// Numbers that only look random, the same for the same seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn fill(&mut self, set: &[u8], count: usize, text: &mut String) {
        for _ in 0..count {
            let pick = self.next() % set.len() as u64;
            text.push(char::from(set[usize::try_from(pick).unwrap_or(0)]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_filled_in() {
        let sample = expand("KEY=«ghp_{alnum:36}» {{x}} {uuid}", 1).unwrap();
        let secret = &sample.text[sample.secret.clone().unwrap()];
        assert_eq!(secret.len(), 40);
        assert!(secret.starts_with("ghp_"));
        assert!(sample.text.contains(" {x} "), "{}", sample.text);
        assert_eq!(
            expand("KEY=«ghp_{alnum:36}» {{x}} {uuid}", 1).unwrap(),
            sample
        );
        for broken in ["{", "{alnum}", "{what:3}", "}", "«x", "{alnum:99999}"] {
            assert_eq!(expand(broken, 1), None, "{broken}");
        }
    }
}
