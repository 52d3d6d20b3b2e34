//! Bytes in hexadecimal, and back.

/// Bytes in lowercase hexadecimal.
pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    text.extend(bytes.iter().flat_map(|byte| pair(*byte)).map(char::from));
    text
}

/// Appends bytes in lowercase hexadecimal.
pub fn write(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend(bytes.iter().flat_map(|byte| pair(*byte)));
}

/// Writes bytes in lowercase hexadecimal into a place that has two digits for each.
pub fn write_into(bytes: &[u8], digits: &mut [u8]) {
    for (digits, byte) in digits.chunks_exact_mut(2).zip(bytes) {
        digits.copy_from_slice(&pair(*byte));
    }
}

/// The bytes that hexadecimal stands for, in either case.
pub fn decode(text: impl AsRef<[u8]>) -> Option<Vec<u8>> {
    let text = text.as_ref();
    let mut bytes = vec![0; text.len() / 2];
    fill(text, &mut bytes).then_some(bytes)
}

/// The same, when it is as many bytes as are wanted.
pub fn decode_array<const N: usize>(text: impl AsRef<[u8]>) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    fill(text.as_ref(), &mut bytes).then_some(bytes)
}

/// Whether a text is nothing but lowercase digits: for what has only one spelling.
pub fn is_lowercase(text: impl AsRef<[u8]>) -> bool {
    let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    text.as_ref().iter().all(is_digit)
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

fn pair(byte: u8) -> [u8; 2] {
    [byte >> 4, byte & 15].map(|digit| DIGITS[usize::from(digit)])
}

/// Reads text into bytes; whether it is as many and every one is written in digits.
fn fill(text: &[u8], bytes: &mut [u8]) -> bool {
    let (pairs, []) = text.as_chunks::<2>() else {
        return false;
    };
    let mut wrong = pairs.len() != bytes.len();
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        let (high, low) = (VALUES[usize::from(*high)], VALUES[usize::from(*low)]);
        wrong |= (high | low) > 15;
        *byte = (high << 4) | (low & 15);
    }
    !wrong
}

/// The value of each digit; more than 15 for anything else.
const VALUES: [u8; 256] = {
    let mut values = [0xff; 256];
    let mut value = 0;
    while value < 16 {
        let digit = DIGITS[value as usize];
        values[digit as usize] = value;
        values[digit.to_ascii_uppercase() as usize] = value;
        value += 1;
    }
    values
};

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bytes_read_back_in_either_case(bytes: Vec<u8>) {
            let text = encode(&bytes);
            let mut written = b"x".to_vec();
            write(&bytes, &mut written);
            prop_assert_eq!(&written[1..], text.as_bytes());
            prop_assert!(is_lowercase(&text));
            prop_assert_eq!(decode(text.to_uppercase()), Some(bytes.clone()));
            prop_assert_eq!(decode(&text), Some(bytes));
        }

        #[test]
        fn other_texts_and_other_lengths_are_none(text in "[0-9a-fA-F+ gé]{0,6}", bytes: [u8; 16]) {
            let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
            prop_assert_eq!(decode_array::<2>(&text).is_some(), is_hex && text.len() == 4);
            prop_assert_eq!(decode(&text).is_some(), is_hex && text.len().is_multiple_of(2));
            prop_assert_eq!(decode_array::<15>(encode(&bytes)), None);
            prop_assert_eq!(decode_array::<16>(encode(&bytes)), Some(bytes));
        }
    }
}
