//! Durations: `30`, `1.5`, `500ms`, `1m30s`.

use std::time::Duration;

/// Reads a duration: a number of seconds, or numbers with the units `ns`, `us`, `ms`, `s`, `m`, `h`, `d`.
///
/// # Errors
///
/// When it is not one; the text says why.
pub fn parse(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let wrong = || format!("{text:?} is not a duration; write seconds, or 500ms, 1.5s, 1m30s");
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).map_err(|_| wrong());
    }
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest.is_empty() {
        return Err(wrong());
    }
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !(c.is_ascii_digit() || c == '.'))
            .ok_or_else(wrong)?;
        let number: f64 = rest[..digits].parse().map_err(|_| wrong())?;
        rest = &rest[digits..];
        let end = rest
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(rest.len());
        let unit = match &rest[..end] {
            "ns" => 1e-9,
            "us" | "µs" | "μs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            "d" => 86_400.0,
            _ => return Err(wrong()),
        };
        rest = &rest[end..];
        let part = Duration::try_from_secs_f64(number * unit).map_err(|_| wrong())?;
        total = total.checked_add(part).ok_or_else(wrong)?;
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_units_are_read_and_parts_of_a_second_kept() {
        for (text, millis) in [
            ("30", 30_000),
            ("1.5", 1_500),
            ("500ms", 500),
            ("1.5s", 1_500),
            ("1m30s", 90_000),
            ("1h", 3_600_000),
            ("0", 0),
            ("2d", 172_800_000),
            (" 10s ", 10_000),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn what_is_not_a_duration_is_refused() {
        for text in [
            "", "abc", "-1", "-5s", "10x", "s", "1e400", "5 s", "..s", "NaN", "inf",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
