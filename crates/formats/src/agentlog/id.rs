//! Names made of content.

use std::fmt;
use std::str::FromStr;

use quipu_model::hex;

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
        hex::encode(&self.0)
    }
}

impl fmt::Display for ContentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [0; 71];
        text[..7].copy_from_slice(Self::PREFIX.as_bytes());
        hex::write_into(&self.0, &mut text[7..]);
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
        let digits = text.strip_prefix(Self::PREFIX);
        let digits = digits.filter(|digits| hex::is_lowercase(digits));
        digits.and_then(hex::decode_array).map(Self).ok_or(NotAnId)
    }
}

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
