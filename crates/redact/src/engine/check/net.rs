//! Addresses of machines that belong to somebody.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::ValueInText;

/// Servers that answer everybody, by which nobody is found.
const PUBLIC: [[u8; 4]; 10] = [
    // And those that are made up wherever one is wanted.
    [123, 45, 67, 89],
    [12, 34, 56, 78],
    [8, 8, 8, 8],
    [8, 8, 4, 4],
    [1, 1, 1, 1],
    [1, 0, 0, 1],
    [9, 9, 9, 9],
    [208, 67, 222, 222],
    [208, 67, 220, 220],
    [4, 2, 2, 2],
];

/// An address of the fourth version: one of the net, and no version of a program.
pub(super) fn ipv4(place: &ValueInText<'_>) -> bool {
    let Some(address) = std::str::from_utf8(place.value)
        .ok()
        .and_then(|text| text.parse::<Ipv4Addr>().ok())
    else {
        return false;
    };
    let [a, b, c, d] = address.octets();
    let reserved = address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_broadcast()
        || address.is_documentation()
        || address.is_multicast()
        || a == 0
        || a >= 240
        || (a == 100 && (64..128).contains(&b))
        || (a == 198 && (18..20).contains(&b))
        || (a == 192 && b == 0 && c == 0);
    // Small numbers all along are a version, or a number of a chapter.
    let version = a < 20 && b < 20 && c < 100 && d < 100 && (c < 20 || d < 20);
    // What certificates are made of has numbers that look alike.
    let object = matches!((a, b, c), (2, 5, 4 | 29) | (1, 3, 101));
    let masks = d == 0 && (a == 255 || c == 0);
    !reserved
        && !version
        && !object
        && !masks
        && !PUBLIC.contains(&address.octets())
        && !versioned(place)
}

/// Whether what is around it says that it is no address.
fn versioned(place: &ValueInText<'_>) -> bool {
    let words = [
        "version",
        "ver.",
        "ver ",
        "ver:",
        "release",
        "build",
        "upgrade",
        "downgrade",
        "firmware",
        "driver",
        "v8",
        "chrom",
        "electron",
        "==",
        ">=",
        "<=",
        "~=",
        "@",
    ];
    let behind = place.first_behind();
    // A port behind it, and a user before it, say that it is an address.
    let port = behind == b':' && place.behind.get(1).is_some_and(u8::is_ascii_digit);
    if port && !matches!(place.last_before(), b'.' | b':' | b'-' | b'_') {
        return place.last_before().is_ascii_alphanumeric();
    }
    place.inside_more()
        || matches!(
            place.last_before(),
            b'v' | b'V' | b'-' | b'.' | b'_' | b'^' | b'~'
        )
        || matches!(behind, b'-' | b'_')
        || (behind == b'.' && place.behind.get(1).is_some_and(u8::is_ascii_alphanumeric))
        || (behind == b'/' && place.behind.get(1).is_some_and(u8::is_ascii_digit))
        || place.after_one_of(&words, place.on_line(16))
        || product(place)
        || among_numbers(place)
}

/// Whether the numbers beside it are not addresses, as in the path of a drawing: `.37.22 1.15.36.55 0 .78`.
fn among_numbers(place: &ValueInText<'_>) -> bool {
    let Some(before) = place.before.strip_suffix(b" ") else {
        return false;
    };
    let number = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(**byte, b'.' | b'-');
    let length = before.iter().rev().take(40).take_while(number).count();
    let number = &before[before.len() - length..];
    let address = std::str::from_utf8(number).is_ok_and(|text| text.parse::<Ipv4Addr>().is_ok());
    let digits = number.iter().filter(|byte| byte.is_ascii_digit()).count();
    !address && number.contains(&b'.') && digits * 2 >= number.len()
}

/// Whether it stands behind the name of a program, as in `Chrome/120.0.6099.109`.
fn product(place: &ValueInText<'_>) -> bool {
    let Some(before) = place.before.strip_suffix(b"/") else {
        return false;
    };
    let is = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(**byte, b'_' | b'-');
    let length = before.iter().rev().take(40).take_while(is).count();
    let (before, name) = before.split_at(before.len() - length);
    name.first().is_some_and(u8::is_ascii_uppercase)
        && !matches!(before.last(), Some(b'/' | b'.' | b':' | b'\\'))
}

/// An address of a network card: six bytes and no more, not all the same, and none that counts.
pub(super) fn mac(place: &ValueInText<'_>) -> bool {
    let joint = |byte: u8| matches!(byte, b':' | b'-');
    let hex = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_hexdigit);
    let before = place
        .before
        .len()
        .checked_sub(2)
        .and_then(|at| place.before.get(at));
    let more = joint(place.last_before()) && hex(before)
        || joint(place.first_behind()) && hex(place.behind.get(1));
    let text = String::from_utf8_lossy(place.value);
    let bytes: Vec<u8> = text
        .split([':', '-'])
        .filter_map(|byte| u8::from_str_radix(byte, 16).ok())
        .collect();
    let steps: Vec<u8> = bytes
        .windows(2)
        .map(|pair| pair[1].wrapping_sub(pair[0]))
        .collect();
    let counts = steps.windows(2).all(|pair| pair[0] == pair[1]);
    // `12:34:56:78:9a:bc`, by its digits.
    let digits: Vec<u32> = text
        .chars()
        .filter_map(|digit| digit.to_digit(16))
        .collect();
    let rises = digits
        .windows(2)
        .filter(|pair| pair[1] == (pair[0] + 1) % 16 || (pair[0], pair[1]) == (9, 0))
        .count();
    bytes.len() == 6 && !more && !counts && rises < 9
}

/// Whether the name of a field says that what it holds is a version.
pub(super) fn version_name(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    ["version", "release", "build"]
        .iter()
        .any(|word| lower.contains(word))
}

/// An address of the sixth version: one of the net, written as one.
pub(super) fn ipv6(place: &ValueInText<'_>) -> bool {
    let Some(address) = std::str::from_utf8(place.value)
        .ok()
        .and_then(|text| text.parse::<Ipv6Addr>().ok())
    else {
        return false;
    };
    let joins = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':');
    if (joins(place.last_before()) && !super::super::boundary::begins_behind(place.before))
        || joins(place.first_behind())
    {
        return false;
    }
    let segments = address.segments();
    let first = segments[0];
    let global = (0x2000..0x4000).contains(&first) && !(first == 0x2001 && segments[1] == 0x0db8);
    let groups = place
        .value
        .split(|byte| *byte == b':')
        .filter(|group| !group.is_empty())
        .count();
    // The servers that answer everybody.
    let public = matches!(
        (first, segments[1]),
        (0x2001, 0x4860) | (0x2606, 0x4700) | (0x2620, 0x00fe)
    ) && groups <= 5;
    global && groups >= 3 && !public
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place<T>(text: &str, look: impl Fn(&ValueInText<'_>) -> T) -> T {
        let begin = text.find('<').unwrap();
        let end = text.find('>').unwrap() - 1;
        let text = text.replace(['<', '>'], "");
        look(&ValueInText::new(text.as_bytes(), begin..end))
    }

    #[test]
    fn addresses_belong_to_somebody() {
        for (text, expected) in [
            ("from <81.2.69.160> port", true),
            ("\\n<81.2.69.160>", true),
            ("from <10.2.69.160>", false),
            ("from <203.0.113.9>", false),
            ("v<81.2.69.160>", false),
            ("Chrome/<120.0.6099.109>", false),
            ("version <81.2.69.160>", false),
            ("<81.2.69.160>-beta", false),
            ("<81.2.69.160>.4", false),
            ("section <4.3.2.1>", false),
            ("pkg==<41.32.21.1>", false),
            ("<8.8.8.8>", false),
            ("MySQLConnector/<8.0.32.1>", false),
            ("ObjectIdentifier(\"<2.5.29.28>\")", false),
            ("including <3.6.23.1>, a call", false),
            ("from <3.120.181.40> port", true),
            ("upgraded to release <8.0.32.1>", false),
            ("http://<81.2.69.160>/x", true),
            ("GET /lookup/<81.2.69.160>", true),
        ] {
            assert_eq!(place(text, ipv4), expected, "{text}");
        }
        for (text, expected) in [
            ("ether <a4:83:e7:2b:90:1c> txq", true),
            ("addr <a4-83-e7-2b-90-1c>", true),
            ("SHA256: <a4:83:e7:2b:90:1c>:55:01", false),
            ("9f:<a4:83:e7:2b:90:1c>", false),
            ("<00:01:02:03:04:05>", false),
            ("<00:11:22:33:44:55>", false),
            ("<aa:bb:cc:dd:ee:ff>", false),
            ("<12:34:56:78:9a:bc>", false),
            ("<12:34:56:78:90:ab>", false),
            ("<00:00:00:00:00:00>", false),
        ] {
            assert_eq!(place(text, mac), expected, "{text}");
        }
        for (text, expected) in [
            ("from <2a02:8071:b84:1f00::17>", true),
            ("from <2001:db8:1:2::17>", false),
            ("<fe80::1:2:3>", false),
            ("<::1>", false),
            ("x<2a02:8071:b84:1f00::17>", false),
        ] {
            assert_eq!(place(text, ipv6), expected, "{text}");
        }
    }
}
