//! Random letters told from words by the letters that follow each other.
//!
//! People and programs write words, and words are spelled by habit: `th` and `er` are everywhere, `qx` and `vj` nowhere.
//! Letters that a machine drew follow each other as chance has it, in whatever alphabet they are written.

/// How much more often two letters follow each other in words than by chance, in quarters of a bit: the row is the first
/// letter, the column the second. Counted over the words and parts of names in source code and its documentation, each word
/// by the root of how often the word has it.
const PAIRS: [[i8; 26]; 26] = [
    [
        -6, 5, 8, 6, -6, -3, 4, -12, 3, -16, -4, 10, 6, 10, -15, 5, -18, 10, 7, 13, 1, -3, -7, -4,
        -1, -12,
    ],
    [
        3, -6, -3, -6, 2, -6, -14, -18, 3, -5, -16, 5, -9, -12, 1, -10, -20, -2, -2, -8, 3, -16,
        -18, -18, -5, -18,
    ],
    [
        8, -5, 0, -5, 8, -4, -9, 7, 1, -20, 5, 3, -4, -8, 11, -4, -15, 3, 0, 8, 0, -8, -10, -15,
        -7, -20,
    ],
    [
        4, -5, -4, 1, 11, -4, -8, -10, 8, -14, -15, 0, -6, -8, 2, -6, -16, 1, 2, -5, -1, -8, -2,
        -11, -8, -20,
    ],
    [
        7, -2, 9, 11, 3, 4, 1, -8, -1, -16, -8, 7, 5, 12, -3, 3, -1, 15, 12, 10, -6, 3, -3, 6, -3,
        -16,
    ],
    [
        2, -7, -5, -4, 3, 5, -9, -15, 7, -20, -19, 2, -8, -6, 5, -9, -20, -1, -1, -4, -3, -19, -13,
        -17, -8, -20,
    ],
    [
        -3, -12, -9, -11, 7, -11, -7, -2, 0, -20, -18, -4, -8, -2, -4, -9, -20, 1, 0, -6, -3, -15,
        -17, -19, -15, -17,
    ],
    [
        5, -12, -9, -7, 6, -13, -17, -16, 2, -20, -15, -9, -7, -12, 3, -11, -20, -3, -7, -2, -5,
        -15, -11, -20, -9, -17,
    ],
    [
        3, 1, 7, 7, 3, 3, 4, -15, -11, -17, -9, 6, 5, 15, 10, 2, -15, 2, 7, 9, -13, 2, -16, -3,
        -20, 3,
    ],
    [
        -11, -20, -18, -20, -5, -20, -20, -20, -14, -20, -18, -20, -20, -20, -8, -18, -20, -20,
        -12, -20, -11, -20, -20, -20, -20, -20,
    ],
    [
        -7, -13, -12, -10, 4, -14, -14, -16, -2, -20, -20, -11, -14, -11, -13, -13, -20, -13, -2,
        -10, -11, -17, -14, -20, -16, -20,
    ],
    [
        7, -7, -7, 1, 11, -4, -8, -14, 10, -19, -9, 7, -8, -9, 8, 2, -20, -9, 1, 2, 1, -9, -13,
        -17, 2, -17,
    ],
    [
        8, -2, -7, -6, 9, -9, -12, -16, 5, -20, -13, -6, -2, -8, 3, 6, -13, -9, 1, -5, 0, -15, -16,
        -17, -11, -20,
    ],
    [
        6, -8, 6, 9, 9, 3, 10, -9, 4, -16, -2, -2, -8, -2, 5, -4, -16, -6, 8, 11, 1, -2, -9, -17,
        -7, -16,
    ],
    [
        -3, 0, 6, 4, -7, 0, -1, -13, -2, -13, -3, 6, 5, 13, 1, 6, -20, 11, 4, 4, 6, 0, 3, -7, -12,
        -19,
    ],
    [
        8, -8, -1, -4, 8, -5, -10, -1, 3, -20, -9, 4, -6, -7, 6, 3, -16, 8, 2, 4, 1, -8, -6, -15,
        -5, -20,
    ],
    [
        -19, -20, -19, -16, -18, -19, -20, -20, -20, -20, -20, -12, -16, -20, -17, -18, -20, -15,
        -14, -19, 1, -20, -19, -20, -20, -20,
    ],
    [
        10, -7, 2, 2, 14, -4, 0, -14, 9, -20, -3, -1, 2, 0, 9, -2, -14, 2, 6, 6, 1, -2, -9, -15, 1,
        -19,
    ],
    [
        3, -8, 4, -6, 11, -7, -5, 4, 9, -19, -3, -2, -3, -6, 3, 5, -9, -4, 6, 12, 4, -8, -6, -15,
        0, -3,
    ],
    [
        9, -7, 2, -3, 13, -3, -11, 7, 12, -20, -12, 0, -3, -7, 7, -1, -17, 9, 6, 3, 3, -9, -7, -7,
        5, -13,
    ],
    [
        -2, 1, -1, -5, 1, -1, -5, -20, 1, -20, -20, 4, 3, 7, -9, 2, -20, 5, 5, 6, -14, -17, -20,
        -10, -20, -17,
    ],
    [
        3, -15, -9, -13, 8, -12, -17, -16, 3, -20, -20, -11, -9, -14, -6, -10, -19, -13, -9, -10,
        -19, -20, -19, -16, -19, -20,
    ],
    [
        0, -13, -10, -9, -2, -12, -18, -4, 1, -20, -15, -9, -10, -3, -2, -9, -20, -3, -1, -11, -18,
        -19, -16, -18, -20, -18,
    ],
    [
        -6, -6, -5, -11, -3, -9, -17, -13, -6, -20, -20, -13, -12, -18, -13, -2, -19, -16, -11, 1,
        -17, -17, -18, -11, -12, -20,
    ],
    [
        -10, -12, -10, -14, -9, -15, -15, -18, -8, -20, -17, -8, -7, -5, -9, 2, -20, -12, -2, -5,
        -18, -16, -13, -20, -17, -16,
    ],
    [
        -8, -16, -14, -13, 3, -16, -20, -19, -8, -20, -20, -17, -17, -19, -10, -15, -20, -17, -11,
        -17, -16, -18, -20, -20, -17, -14,
    ],
];

/// What letters of both cases that follow each other say, in quarters of a bit: in a name, most are small.
const SMALL: i32 = 6;
const OTHERWISE: i32 = -6;
/// What digits between letters say: a name has few of them.
const DIGITS: i32 = -4;

/// Whether a machine drew the letters of a value. Most of it has to be letters; digits are not needed.
///
/// Of 20 random letters of any one alphabet it knows 97 of 100, of 32 all but a few of 1000.
pub(super) fn drawn(value: &str) -> bool {
    let Some(sum) = Sum::of(value.as_bytes()) else {
        return false;
    };
    // In tenths of a quarter for each pair: the fewer letters, the clearer they have to be.
    let least = match sum.pairs {
        ..8 => return false,
        8..15 => -30,
        15..19 => -24,
        _ => -16,
    };
    // A row of an alphabet or of a keyboard is not random, and few letters are a pattern.
    sum.score * 10 <= least * sum.pairs && sum.kinds >= 7 && sum.in_turn * 2 <= sum.pairs
}

struct Sum {
    score: i32,
    /// How many pairs it is of.
    pairs: i32,
    /// How many letters there are.
    kinds: u32,
    /// How many letters are followed by themselves or by a neighbour in the alphabet.
    in_turn: i32,
}

impl Sum {
    fn of(value: &[u8]) -> Option<Self> {
        let count = |is: fn(&u8) -> bool| value.iter().filter(|byte| is(byte)).count();
        let letters = count(u8::is_ascii_alphabetic);
        if letters < 9 || letters * 2 < value.len() {
            return None;
        }
        let both = count(u8::is_ascii_uppercase) >= 3 && count(u8::is_ascii_lowercase) >= 3;
        let mut sum = Self {
            score: 0,
            pairs: 0,
            kinds: 0,
            in_turn: 0,
        };
        let mut seen = 0_u32;
        for pair in value.windows(2) {
            let [first, second] = [pair[0], pair[1]];
            if second.is_ascii_digit() && first.is_ascii_alphabetic() {
                sum.score += DIGITS;
            }
            if !first.is_ascii_alphabetic() || !second.is_ascii_alphabetic() {
                continue;
            }
            let small = first.is_ascii_lowercase() && second.is_ascii_lowercase();
            if both {
                sum.score += if small { SMALL } else { OTHERWISE };
            }
            let place = |byte: u8| usize::from(byte.to_ascii_lowercase() - b'a');
            let (row, column) = (place(first), place(second));
            seen |= 1 << row | 1 << column;
            sum.in_turn += i32::from(column.abs_diff(row) <= 1);
            sum.pairs += 1;
            // A capital behind a small letter begins a word, and says nothing of the letter before.
            if !(first.is_ascii_lowercase() && second.is_ascii_uppercase()) {
                sum.score += i32::from(PAIRS[row][column]);
            }
        }
        sum.kinds = seen.count_ones();
        Some(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::drawn;
    use crate::rule::expand;

    #[test]
    fn random_letters_are_told_in_every_alphabet() {
        for (template, least) in [
            ("{lower:12}", 800),
            ("{lower:20}", 960),
            ("{upper:20}", 960),
            ("{alpha:20}", 970),
            ("{lower:32}", 990),
            ("{upper:32}", 990),
            ("{alpha:43}", 995),
            ("{b32:32}", 980),
        ] {
            let hits = (0..1000).filter(|seed| drawn(&expand(template, *seed).unwrap().text));
            let hits = hits.count();
            assert!(hits >= least, "{template}: {hits}");
        }
    }

    #[test]
    fn words_and_names_are_not_random() {
        for value in [
            "authenticationServiceConfiguration",
            "getAccessTokenFromRequestHeader",
            "XMLHttpRequestEventTarget",
            "kubernetes-dashboard-viewer",
            "TOKEN_TYPE_BEARER_VALUE",
            "passwortvergessenformular",
            "correct-horse-battery-staple",
            "abcdefghijklmnopqrstuvwxyz",
            "zyxwvutsrqponmlkjihgfedcba",
            "aaaaaaaaaaaaaaaaaaaaaaaa",
            "xyzxyzxyzxyzxyzxyzxyzxyz",
            "stdlibhttpdsrvcfg",
            "pkcs8PrivateKeyInfoDecoder",
            "nginxproxypassthrough",
            "usernameandpasswordauthenticationtoken",
            "com.example.myapp.settings.SecretProvider",
            "postgresqlconnectionstring",
            "",
        ] {
            assert!(!drawn(value), "{value}");
        }
    }
}
