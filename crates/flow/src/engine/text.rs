//! Pieces of texts.

/// The first bytes of a text, at most so many, in whole characters.
pub(super) fn first_bytes(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The last bytes of a text, at most so many, in whole characters: errors are at the end.
pub(super) fn last_bytes(text: &str, most: usize) -> &str {
    let mut start = text.len().saturating_sub(most);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_not_cut() {
        assert_eq!((first_bytes("aé", 2), last_bytes("éa", 2)), ("a", "a"));
        assert_eq!((first_bytes("aé", 9), last_bytes("éa", 9)), ("aé", "éa"));
    }
}
