//! Numbers with check digits: cards and bank accounts.

use super::{ValueInText, Verdict};

/// A card: a number that an issuer can have given out, with the right last digit.
pub(super) fn card(place: &ValueInText<'_>) -> Verdict {
    let digits = of(place.value);
    let repeats = digits.windows(2).filter(|pair| pair[0] == pair[1]).count() + 1 >= digits.len();
    let zeros = digits.iter().rev().take_while(|digit| **digit == 0).count();
    // Between hyphens it is a part of an id.
    let joined = place.last_before() == b'-'
        || (place.first_behind() == b'-'
            && place.behind.get(1).is_some_and(u8::is_ascii_alphanumeric));
    // Nineteen digits in a row are a number of a program.
    let row = digits.len() == 19 && place.value.len() == 19;
    if row
        || is_for_tests(&digits)
        || place.last_before() == b'/'
        || place.inside_more()
        || joined
        || repeats
        || zeros > 8
        || !issued(&digits)
        || decimal(place)
    {
        return Verdict::No;
    }
    if luhn(&digits) {
        Verdict::Yes
    } else {
        Verdict::Nearly
    }
}

/// Numbers that those who take cards tell everybody to test with: they belong to nobody.
const FOR_TESTS: &[&str] = &[
    "4242424242424242",
    "4012888888881881",
    "4222222222222",
    "5555555555554444",
    "5105105105105100",
    "5200828282828210",
    "5454545454545454",
    "2223003122003222",
    "4444333322221111",
    "378282246310005",
    "371449635398431",
    "378734493671000",
    "30569309025904",
    "38520000023237",
    "36227206271667",
    "6011000990139424",
    "3530111333300000",
    "3566002020360505",
    "4000056655665556",
    "4012000033330026",
    "4012000077777777",
    "4009348888881881",
    "5425233430109903",
    "2222420000001113",
    "4263982640269299",
    "374245455400126",
];

/// Whether a number is one to test with: a known one, or one with a long row of the same digit.
fn is_for_tests(digits: &[u8]) -> bool {
    let mut row = 1;
    for pair in digits.windows(2) {
        row = if pair[0] == pair[1] { row + 1 } else { 1 };
        if row >= 7 {
            return true;
        }
    }
    let same = |known: &&str| {
        known
            .bytes()
            .map(|byte| byte - b'0')
            .eq(digits.iter().copied())
    };
    FOR_TESTS.iter().any(same)
}

/// Behind a dot or before one, a number is a part of a fraction.
fn decimal(place: &ValueInText<'_>) -> bool {
    place.last_before() == b'.'
        || (place.first_behind() == b'.' && place.behind.get(1).is_some_and(u8::is_ascii_digit))
}

/// The ranges of the large issuers, and how many digits they use.
fn issued(digits: &[u8]) -> bool {
    let first = |count: usize| {
        digits
            .iter()
            .take(count)
            .fold(0_u32, |sum, digit| sum * 10 + u32::from(*digit))
    };
    let (two, three, four) = (first(2), first(3), first(4));
    match digits.len() {
        13 => digits[0] == 4,
        14 => (300..=305).contains(&three) || matches!(two, 36 | 38 | 39),
        15 => matches!(two, 34 | 37),
        16 => {
            digits[0] == 4
                || (51..=55).contains(&two)
                || (2221..=2720).contains(&four)
                || four == 6011
                || two == 65
                || (644..=649).contains(&three)
                || (3528..=3589).contains(&four)
                || two == 62
        }
        19 => digits[0] == 4 || two == 62,
        _ => false,
    }
}

/// The digits of a value, as numbers.
pub(super) fn of(value: &[u8]) -> Vec<u8> {
    let digits = value.iter().filter(|byte| byte.is_ascii_digit());
    digits.map(|byte| byte - b'0').collect()
}

/// Whether every other digit doubled makes a sum that ten divides.
pub(super) fn luhn(digits: &[u8]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(index, digit)| match (index % 2, u32::from(*digit)) {
            (0, digit) => digit,
            (_, digit) if digit > 4 => digit * 2 - 9,
            (_, digit) => digit * 2,
        })
        .sum();
    sum.is_multiple_of(10)
}

/// The lengths of bank accounts, by country.
const ACCOUNTS: &[(&[u8; 2], usize)] = &[
    (b"AD", 24),
    (b"AE", 23),
    (b"AL", 28),
    (b"AT", 20),
    (b"AZ", 28),
    (b"BA", 20),
    (b"BE", 16),
    (b"BG", 22),
    (b"BH", 22),
    (b"BR", 29),
    (b"BY", 28),
    (b"CH", 21),
    (b"CR", 22),
    (b"CY", 28),
    (b"CZ", 24),
    (b"DE", 22),
    (b"DK", 18),
    (b"DO", 28),
    (b"EE", 20),
    (b"EG", 29),
    (b"ES", 24),
    (b"FI", 18),
    (b"FO", 18),
    (b"FR", 27),
    (b"GB", 22),
    (b"GE", 22),
    (b"GI", 23),
    (b"GL", 18),
    (b"GR", 27),
    (b"GT", 28),
    (b"HR", 21),
    (b"HU", 28),
    (b"IE", 22),
    (b"IL", 23),
    (b"IQ", 23),
    (b"IS", 26),
    (b"IT", 27),
    (b"JO", 30),
    (b"KW", 30),
    (b"KZ", 20),
    (b"LB", 28),
    (b"LC", 32),
    (b"LI", 21),
    (b"LT", 20),
    (b"LU", 20),
    (b"LV", 21),
    (b"LY", 25),
    (b"MC", 27),
    (b"MD", 24),
    (b"ME", 22),
    (b"MK", 19),
    (b"MR", 27),
    (b"MT", 31),
    (b"MU", 30),
    (b"NL", 18),
    (b"NO", 15),
    (b"PK", 24),
    (b"PL", 28),
    (b"PS", 29),
    (b"PT", 25),
    (b"QA", 29),
    (b"RO", 24),
    (b"RS", 22),
    (b"SA", 24),
    (b"SC", 31),
    (b"SE", 24),
    (b"SI", 19),
    (b"SK", 24),
    (b"SM", 27),
    (b"ST", 25),
    (b"SV", 28),
    (b"TL", 23),
    (b"TN", 24),
    (b"TR", 26),
    (b"UA", 29),
    (b"VA", 22),
    (b"VG", 24),
    (b"XK", 20),
];

/// A bank account: of a country that has them, as long as they are there, with the right check digits.
pub(super) fn iban(value: &[u8]) -> Verdict {
    let compact: Vec<u8> = value
        .iter()
        .filter(|byte| byte.is_ascii_alphanumeric())
        .copied()
        .collect();
    let country = compact.get(..2).unwrap_or_default();
    let known = ACCOUNTS.iter().find(|(code, _)| code.as_slice() == country);
    if known.is_none_or(|(_, length)| *length != compact.len()) {
        return Verdict::No;
    }
    let turned = compact[4..].iter().chain(&compact[..4]);
    let rest = turned.fold(0_u32, |rest, byte| match byte {
        b'0'..=b'9' => (rest * 10 + u32::from(byte - b'0')) % 97,
        _ => (rest * 100 + u32::from(byte.to_ascii_uppercase() - b'A') + 10) % 97,
    });
    if rest == 1 {
        Verdict::Yes
    } else {
        Verdict::Nearly
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_card(before: &str, value: &str, behind: &str) -> Verdict {
        let text = format!("{before}{value}{behind}");
        card(&ValueInText::new(
            text.as_bytes(),
            before.len()..before.len() + value.len(),
        ))
    }

    #[test]
    fn cards_have_an_issuer_and_a_last_digit() {
        let number = "4111 1111 1111 1111".replace("1111 1111 1", "2345 6789 0");
        let digits = of(number.as_bytes());
        let right = (0..10)
            .find(|last| luhn(&[&digits[..15], &[*last]].concat()))
            .unwrap();
        let good = format!("{}{right}", &number[..number.len() - 1]);
        let bad = format!("{}{}", &number[..number.len() - 1], (right + 1) % 10);
        assert_eq!(of_card("card ", &good, ","), Verdict::Yes);
        assert_eq!(of_card("card ", &bad, ","), Verdict::Nearly);
        assert_eq!(of_card("0.", &good.replace(' ', ""), ""), Verdict::No);
        assert_eq!(of_card("id", &good, ""), Verdict::No);
        assert_eq!(of_card("", &good, "-1"), Verdict::No);
        assert_eq!(
            of_card("", &good.replace(' ', "-"), "-bbd5-93ac8b3c5577"),
            Verdict::No
        );
        assert_eq!(of_card("", "1792345678901", ""), Verdict::No);
    }

    #[test]
    fn accounts_have_a_length_and_check_digits() {
        let account = "DE89 3704 0044 0532 0130 00";
        assert_eq!(iban(account.as_bytes()), Verdict::Yes);
        assert_eq!(
            iban(account.replace("89", "88").as_bytes()),
            Verdict::Nearly
        );
        assert_eq!(iban(b"DE89370400440532013"), Verdict::No);
        assert_eq!(iban(b"XX89370400440532013000"), Verdict::No);
    }
}
