//! Phone numbers that can be dialled.

use super::{ValueInText, digits};

/// With a country: ten to fifteen digits in groups. Without: where the text speaks of phones.
pub(super) fn phone(place: &ValueInText<'_>) -> bool {
    let digits = digits::of(place.value);
    let repeats = digits.iter().all(|digit| *digit == digits[0]);
    let rises = digits
        .windows(2)
        .filter(|pair| pair[1] == (pair[0] + 1) % 10)
        .count()
        + 2
        >= digits.len();
    if digits.is_empty() || repeats || (rises && digits.len() > 7) || place.inside_more() {
        return false;
    }
    // Numbers of films.
    let fiction = digits.windows(5).any(|five| five == [5, 5, 5, 0, 1]);
    let groups = place
        .value
        .split(|byte| !byte.is_ascii_digit())
        .filter(|group| !group.is_empty());
    let grouped = groups.clone().count();
    if place.value.first() == Some(&b'+') {
        // One digit by itself is the first behind the country: `+33 6 12 34 56 78`.
        let alone = |(index, group): (usize, &[u8])| group.len() >= 2 || index == 1;
        let short = groups.clone().enumerate().all(alone)
            || grouped <= 2
            || digits[0] == 1
            || digits[0] == 7;
        // A number with a sign: a fraction, a date far off, bits.
        let signed = grouped == 2 && place.value.contains(&b'.')
            || digits.iter().all(|digit| *digit < 2)
            || far_date(place.value);
        // `+1234567890` without a blank is also what a diff or a sum looks like.
        let plain = grouped == 1 && digits.len() < 11 && !spoken(place);
        return (10..=15).contains(&digits.len())
            && digits[0] != 0
            && short
            && !plain
            && !signed
            && !fiction;
    }
    if digits[0] == 0 {
        return (9..=12).contains(&digits.len()) && !dated(place) && spoken(place);
    }
    let ten = digits.len() == 10 || (digits.len() == 11 && digits[0] == 1);
    let area = digits.len().saturating_sub(10);
    let plausible = ten && digits[area] >= 2 && digits[area + 3] >= 2;
    plausible && !fiction && (spoken(place) || place.value.first() == Some(&b'('))
}

/// `+100000-01-01`, which is a year that has so many digits.
fn far_date(value: &[u8]) -> bool {
    let lengths: Vec<usize> = value.split(|byte| *byte == b'-').map(<[u8]>::len).collect();
    matches!(lengths.as_slice(), [year, 2, 2] if *year > 4)
}

/// Day, month and year in some order.
fn dated(place: &ValueInText<'_>) -> bool {
    let groups: Vec<&[u8]> = place.value.split(|byte| !byte.is_ascii_digit()).collect();
    matches!(groups.as_slice(), [day, month, year] if day.len() <= 2 && month.len() <= 2 && matches!(year.len(), 2 | 4))
}

fn spoken(place: &ValueInText<'_>) -> bool {
    place.after_one_of(
        &[
            "phone", "tel", "mobile", "mobil", "cell", "fax", "call ", "whatsapp", "sms", "handy",
        ],
        32,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_can_be_dialled() {
        for (before, value, expected) in [
            ("at ", "+49 30 9018 2084", true),
            ("at ", "+14155238886", true),
            ("at ", "+1 415-555-0123", false),
            ("phone: ", "415-523-8886", true),
            ("build ", "415-523-8886", false),
            ("", "(415) 523-8886", true),
            ("", "+1234567890", false),
            ("", "+0000000000", false),
            ("1", "+49 30 9018 2084", false),
            ("at ", "+33 6 12 34 56 78", true),
            ("at ", "+31 6 12345678", true),
            ("at ", "+49 30 123456-78", true),
            ("", "(415) 555-2671", true),
            ("phone ", "020 7946 0958", true),
            ("Tel.: ", "06 12 34 56 78", true),
            ("lines ", "06 12 34 56 78", false),
            ("tel ", "01-02-2026", false),
            ("at ", "+12 3 4 56 78 90", false),
            ("", "+1441497364.649", false),
            ("", "+999999-12-25", false),
            ("", "+10011010010", false),
            ("tel:", "+31-641044153", true),
        ] {
            let text = format!("{before}{value}");
            let place = ValueInText::new(text.as_bytes(), before.len()..text.len());
            assert_eq!(phone(&place), expected, "{text}");
        }
    }
}
