//! What a pattern cannot say of a value.

mod digits;
mod mail;
mod national;
mod net;
mod phone;
mod random;

use std::ops::Range;

use super::assign::Style;
use super::generic::{self, Look};
use crate::rule::Check;

/// What a check says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is one.
    Yes,
    /// It has the form of one, and its check digits are wrong.
    Nearly,
    /// It is something else.
    No,
}

impl From<bool> for Verdict {
    fn from(is: bool) -> Self {
        if is { Self::Yes } else { Self::No }
    }
}

/// Looks at a value where it stands. `name` is what the whole text is given to, where that is known.
pub(super) fn look(
    check: Check,
    rule: &str,
    name: Option<&str>,
    text: &str,
    span: Range<usize>,
) -> Verdict {
    let place = ValueInText::new(text.as_bytes(), span.clone());
    match check {
        Check::Luhn => digits::card(&place),
        Check::Iban => digits::iban(place.value),
        Check::Ipv4 => (!name.is_some_and(net::version_name) && net::ipv4(&place)).into(),
        Check::Ipv6 => net::ipv6(&place).into(),
        Check::Mac => net::mac(&place).into(),
        Check::Phone => phone::phone(&place).into(),
        Check::Email => mail::mail(&place).into(),
        Check::Jwt => jwt(place.value).into(),
        Check::NationalId => national::id(rule, &place),
        Check::Typed => typed(&text[span]).into(),
        Check::Random => random::random(&text[span]).into(),
        // What brackets follow is called.
        Check::Drawn => (place.first_behind() != b'(' && drawn(&text[span])).into(),
        // These are about a name and its value.
        Check::Secret | Check::Password => Verdict::Yes,
    }
}

/// A value and what is around it.
struct ValueInText<'a> {
    before: &'a [u8],
    value: &'a [u8],
    behind: &'a [u8],
}

impl<'a> ValueInText<'a> {
    fn new(text: &'a [u8], span: Range<usize>) -> Self {
        Self {
            before: &text[..span.start],
            value: &text[span.clone()],
            behind: &text[span.end..],
        }
    }

    fn last_before(&self) -> u8 {
        self.before.last().copied().unwrap_or(b' ')
    }

    fn first_behind(&self) -> u8 {
        self.behind.first().copied().unwrap_or(b' ')
    }

    /// Whether one of these words, in lower case, stands shortly before it.
    fn after_one_of(&self, words: &[&str], reach: usize) -> bool {
        let near = &self.before[self.before.len().saturating_sub(reach)..];
        let near = near.to_ascii_lowercase();
        words
            .iter()
            .any(|word| memchr::memmem::find(&near, word.as_bytes()).is_some())
    }

    /// How much of what is before it, up to so many bytes, is on the same line.
    fn on_line(&self, reach: usize) -> usize {
        let near = self.before.iter().rev().take(reach);
        near.take_while(|byte| **byte != b'\n').count()
    }

    /// Whether it is a piece of a longer number, word or dotted thing.
    fn inside_more(&self) -> bool {
        let joins = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let dotted = |edge: u8, beyond: Option<&u8>| {
            matches!(edge, b'.' | b'-' | b'/' | b':') && beyond.is_some_and(u8::is_ascii_digit)
        };
        let before = self.before.len().checked_sub(2).map(|at| &self.before[at]);
        (joins(self.last_before()) && !super::boundary::begins_behind(self.before))
            || joins(self.first_behind())
            || dotted(self.last_before(), before)
            || dotted(self.first_behind(), self.behind.get(1))
    }
}

/// Whether a value looks like a password wherever it stands.
fn typed(value: &str) -> bool {
    generic::password("password", "password", value, Style::Line) == Look::Secret
}

/// Whether a machine made a value up, where what is before it leaves no doubt that it opens something.
fn drawn(value: &str) -> bool {
    let value = value.trim_end_matches(['.', ',', ':', '!', '?']);
    generic::secret("clientsecret", value, Style::Quoted) == Look::Secret
        || random::random(value) && !generic::stand_in(value) && !generic::path(value)
}

/// Bits per character.
pub(super) fn entropy(value: &[u8]) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in value {
        counts[usize::from(*byte)] += 1;
    }
    let length = f64::from(u32::try_from(value.len()).unwrap_or(u32::MAX).max(1));
    let share = |count: &u32| {
        let share = f64::from(*count) / length;
        -share * share.log2()
    };
    counts.iter().filter(|count| **count > 0).map(share).sum()
}

/// Whether the first part is a header: JSON that names an algorithm or a type.
fn jwt(value: &[u8]) -> bool {
    use base64::Engine as _;
    let header = value.split(|byte| *byte == b'.').next().unwrap_or_default();
    let header = &header[..header.len().min(4096)];
    let decoded = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(header);
    decoded.is_ok_and(|json| {
        let has = |word: &[u8]| memchr::memmem::find(&json, word).is_some();
        json.first() == Some(&b'{')
            && (has(b"\"alg\"") || has(b"\"typ\"") || has(b"\"enc\"") || has(b"\"kid\""))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entropy_is_bits_per_character() {
        assert!(entropy(b"aaaa") < 0.01);
        assert!((entropy(b"abcd") - 2.0).abs() < 0.01);
        assert!((entropy(b"") - 0.0).abs() < 0.01);
    }

    #[test]
    fn tokens_have_a_header() {
        assert!(jwt(b"eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.x.y"));
        assert!(!jwt(b"eyJoZWxsbyI6MX0.x.y"));
        assert!(!jwt(b"eyJ!.x.y"));
    }
}
