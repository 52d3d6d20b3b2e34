//! Names made of content.

use std::fmt;
use std::str::FromStr;

/// The id of a record: the SHA-256 of its payload's canonical form.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContentId(pub [u8; 32]);

/// A text that is no id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an id: `sha256:` and 64 lowercase hexadecimal digits")]
pub struct NotAnId;

impl ContentId {
    const PREFIX: &str = "sha256:";

    /// The 64 digits without what comes before them.
    pub fn hex(&self) -> String {
        self.to_string().split_off(Self::PREFIX.len())
    }
}

impl fmt::Display for ContentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [0; 71];
        text[..7].copy_from_slice(Self::PREFIX.as_bytes());
        for (pair, byte) in text[7..].chunks_exact_mut(2).zip(self.0) {
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 15)];
        }
        f.write_str(str::from_utf8(&text).expect("it is ASCII"))
    }
}

impl fmt::Debug for ContentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for ContentId {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, NotAnId> {
        let digits = text.strip_prefix(Self::PREFIX).ok_or(NotAnId)?.as_bytes();
        let digits: &[u8; 64] = digits.try_into().map_err(|_| NotAnId)?;
        let mut id = [0; 32];
        let mut wrong = false;
        for (byte, pair) in id.iter_mut().zip(digits.chunks_exact(2)) {
            let (high, low) = (VALUES[usize::from(pair[0])], VALUES[usize::from(pair[1])]);
            wrong |= (high | low) > 15;
            *byte = (high << 4) | (low & 15);
        }
        if wrong { Err(NotAnId) } else { Ok(Self(id)) }
    }
}

/// The value of each lowercase hexadecimal digit; more than 15 for anything else.
const VALUES: [u8; 256] = {
    let mut values = [0xff; 256];
    let mut n = 0;
    while n < 16 {
        #[expect(clippy::cast_possible_truncation, reason = "it is below 16")]
        let value = n as u8;
        values[DIGITS[n] as usize] = value;
        n += 1;
    }
    values
};

const DIGITS: &[u8; 16] = b"0123456789abcdef";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_writes_and_nothing_else() {
        let id = ContentId(std::array::from_fn(|n| u8::try_from(n * 7).unwrap_or(255)));
        let text = id.to_string();
        assert_eq!(text.parse(), Ok(id));
        assert_eq!(format!("sha256:{}", id.hex()), text);
        let upper = text.to_uppercase().replace("SHA256", "sha256");
        for wrong in [
            "",
            "sha256:",
            &text[1..],
            &text[..70],
            &format!("{text}0"),
            &upper,
        ] {
            assert_eq!(wrong.parse::<ContentId>(), Err(NotAnId), "{wrong}");
        }
    }
}
