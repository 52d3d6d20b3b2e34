//! Tokens that a machine made up.

use super::entropy;
use crate::engine::generic::wordy;

/// The shortest part that says anything.
const LEAST: usize = 14;

/// Whether the longest row of letters and digits is long, mixed, and cannot be spoken; or all of it, where joints are so few
/// that they are characters like the others.
///
/// Names in code have joints; what is between them is a word, a number, or short.
pub(super) fn random(value: &str) -> bool {
    let parts = value.split(|letter: char| !letter.is_ascii_alphanumeric());
    let joints = parts.clone().count() - 1;
    let Some(longest) = parts.max_by_key(|part| part.len()) else {
        return false;
    };
    let mix = Mix::of(longest);
    let mixed = mix.digits >= 2 && mix.digits < longest.len() || mix.upper >= 4 && mix.lower >= 4;
    if mixed && made_up(longest) {
        return true;
    }
    let all: String = value.chars().filter(char::is_ascii_alphanumeric).collect();
    let mix = Mix::of(&all);
    joints * 7 <= value.len() && mix.digits.min(mix.upper).min(mix.lower) >= 3 && made_up(&all)
}

fn made_up(part: &str) -> bool {
    part.len() >= LEAST && entropy(part.as_bytes()) >= 2.8 && !wordy(part)
}

struct Mix {
    digits: usize,
    upper: usize,
    lower: usize,
}

impl Mix {
    fn of(part: &str) -> Self {
        let count = |is: fn(&u8) -> bool| part.as_bytes().iter().filter(|byte| is(byte)).count();
        Self {
            digits: count(u8::is_ascii_digit),
            upper: count(u8::is_ascii_uppercase),
            lower: count(u8::is_ascii_lowercase),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::random;
    use crate::rule::expand;

    #[test]
    fn machines_make_up_tokens() {
        for template in [
            "acme_{alnum:32}",
            "acme-{hex:32}",
            "pat_{b64u:43}",
            "x.{lownum:40}.{lownum:6}",
            "ak_{alnum:20}",
        ] {
            let hits = (0..200).filter(|seed| random(&expand(template, *seed).unwrap().text));
            let hits = hits.count();
            assert!(hits >= 195, "{template}: {hits}");
        }
    }

    #[test]
    fn names_are_no_tokens() {
        for value in [
            "sk_X509_NAME_ENTRY_push_node_list_2",
            "sk-loading-spinner-chase-dot-before-after",
            "prf_hmac_sha256_with_long_context_name",
            "pk_constraintNameOfTheUserAccountTable",
            "rnd_00000000000000000000000000",
            "key_1234567890123456789012345678",
            "as-authenticationServiceConfig",
            "re_exportedConfigurationHelper2",
            "",
        ] {
            assert!(!random(value), "{value}");
        }
    }
}
