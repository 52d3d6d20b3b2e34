//! What may follow the name of a model without changing its price.

/// What follows a listed name.
pub(super) struct Marks<'a> {
    /// Whose name it follows.
    pub(super) provider: &'a str,
    pub(super) rest: &'a str,
}

impl Marks<'_> {
    /// Whether it says nothing about the price: dates, versions of the same, and for names that others begin with
    /// a few words more. Other words may mean another model: `-mini`, `-fast`, `-free`.
    pub(super) fn change_nothing(&self, wider: bool) -> bool {
        let mut rest = self.rest;
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix("[1m]") {
                rest = after;
                continue;
            }
            if let Some(after) = after_date(rest) {
                rest = after;
                continue;
            }
            let Some(sign) = rest.chars().next().filter(|c| "-@:".contains(*c)) else {
                return false;
            };
            let end = rest[1..]
                .find(['-', '@', ':', '['])
                .map_or(rest.len(), |at| at + 1);
            let word = &rest[1..end];
            let is_number = !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit());
            let harmless = match word {
                "latest" => true,
                "default" => sign == '@',
                "minimal" | "low" | "medium" | "high" | "xhigh" => {
                    wider || self.provider == "openai"
                }
                "preview" | "exp" | "experimental" | "thinking" => wider,
                _ if is_number => match sign {
                    // A version of Amazon's, as in `-v1:0`.
                    ':' => self.provider == "aws",
                    // A version of Google's, as in `-001`, or for a family a date of some form.
                    _ => (word.len() == 3 && word.starts_with("00")) || (wider && word.len() > 1),
                },
                _ => {
                    let version = word.strip_prefix('v').unwrap_or_default();
                    let digits = !version.is_empty() && version.bytes().all(|b| b.is_ascii_digit());
                    digits && self.provider == "aws"
                }
            };
            if !harmless {
                return false;
            }
            rest = &rest[end..];
        }
        true
    }
}

/// What follows a date, as `-20251101`, `@20251101` or `-2025-11-01`.
fn after_date(text: &str) -> Option<&str> {
    let digits = text.strip_prefix(['-', '@'])?;
    let plain = || {
        let (date, rest) = digits.split_at_checked(8)?;
        is_date(&date[..4], date.get(4..6)?, date.get(6..)?).then_some(rest)
    };
    let dashed = || {
        let (date, rest) = digits.split_at_checked(10)?;
        let mut parts = date.split('-');
        let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
        is_date(year, month, day).then_some(rest)
    };
    let rest = plain().or_else(dashed)?;
    let ends = rest.is_empty() || rest.starts_with(['-', '@', ':', '[']);
    ends.then_some(rest)
}

fn is_date(year: &str, month: &str, day: &str) -> bool {
    let number = |text: &str| {
        let is_number = text.bytes().all(|b| b.is_ascii_digit());
        is_number.then(|| text.parse::<u16>().ok()).flatten()
    };
    let within = |text: &str, range: std::ops::RangeInclusive<u16>| {
        number(text).is_some_and(|number| range.contains(&number))
    };
    let lengths = (year.len(), month.len(), day.len()) == (4, 2, 2);
    lengths && within(year, 2020..=2039) && within(month, 1..=12) && within(day, 1..=31)
}

#[cfg(test)]
mod tests {
    use super::after_date;

    #[test]
    fn dates() {
        for (text, rest) in [
            ("-20251101", Some("")),
            ("@20251101", Some("")),
            ("-2025-11-01", Some("")),
            ("-20251101-v1:0", Some("-v1:0")),
            ("-20251301", None),
            ("-20251132", None),
            ("-19990101", None),
            ("-202511011", None),
            ("-2025-11-0", None),
            ("-äöüäöüäö", None),
            ("20251101", None),
        ] {
            assert_eq!(after_date(text), rest, "{text}");
        }
    }
}
