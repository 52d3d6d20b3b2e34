use std::collections::{BTreeMap, BTreeSet};

use super::*;

/// The lines behind the head, as provider, model and the rest.
fn all() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let rows = PRICES.lines().filter(|line| !line.starts_with('#'));
    rows.map(|line| {
        let mut columns = line.splitn(3, '\t');
        let mut next = || columns.next().unwrap();
        (next(), next(), next())
    })
}

#[test]
fn every_row_reads() {
    for (provider, model, rest) in all() {
        assert!(Row::parse(rest).is_some(), "{provider} {model} {rest}");
    }
}

#[test]
fn every_length_is_a_bound_of_a_class() {
    let lengths: BTreeSet<_> = all()
        .map(|(.., rest)| Row::parse(rest).unwrap().above)
        .collect();
    assert!(lengths.len() > 5);
    for length in lengths {
        assert!(Context::is_bound(length), "{length}");
    }
}

/// Halving finds lines only in a sorted text.
#[test]
fn both_files_are_sorted() {
    for text in [PRICES, NAMES] {
        let body: Vec<_> = text
            .lines()
            .skip_while(|line| line.starts_with('#'))
            .collect();
        assert!(body.len() > 1000);
        assert!(body.is_sorted_by(|a, b| a < b));
        assert!(!body.iter().any(|line| line.starts_with('#')));
        assert!(text.ends_with('\n') && !text.contains('\r'));
    }
}

#[test]
fn every_line_is_found() {
    let mut models = BTreeMap::new();
    for (provider, model, _) in all() {
        *models.entry((provider, model)).or_insert(0) += 1;
    }
    for ((provider, model), count) in models {
        assert_eq!(rows(provider, model).len(), count, "{provider} {model}");
    }
    for nothing in ["", "\u{0}", "anthropic", "zzz", "openai\tgpt-5\tx"] {
        assert_eq!(rows("openai", nothing), [], "{nothing}");
    }
}

#[test]
fn every_name_leads_to_a_price() {
    for line in NAMES.lines().filter(|line| !line.starts_with('#')) {
        let columns: Vec<_> = line.split('\t').collect();
        let [provider, name, rule, model] = columns.as_slice() else {
            panic!("{line}");
        };
        match *rule {
            ">" => assert_eq!(*name, "*"),
            "=" | "^" => assert!(!rows(provider, model).is_empty(), "{line}"),
            _ => panic!("{line}"),
        }
        assert_eq!(*name, crate::names::normal(name));
    }
}

/// A span that names some hours or long prompts also has a price for the rest.
#[test]
fn every_span_covers_the_day_and_all_prompts() {
    let mut spans: BTreeMap<_, Vec<Row>> = BTreeMap::new();
    for (provider, model, rest) in all() {
        let row = Row::parse(rest).unwrap();
        let span = (provider, model, row.service, row.from);
        spans.entry(span).or_default().push(row);
    }
    for (span, rows) in spans {
        for row in &rows {
            for (hours, above) in [(None, 0), (row.hours, 0), (None, row.above)] {
                let has = rows
                    .iter()
                    .any(|other| (other.hours, other.above) == (hours, above));
                assert!(has, "{span:?} {hours:?} {above}");
            }
        }
    }
}

/// The usual price is there for all time: only services begin on a day.
#[test]
fn every_model_has_a_usual_price() {
    let models: BTreeSet<_> = all()
        .map(|(provider, model, _)| (provider, model))
        .collect();
    for (provider, model) in models {
        let usual = |row: &Row| row.service == Service::Standard && row.from.is_none();
        assert!(
            rows(provider, model).iter().any(usual),
            "{provider} {model}"
        );
    }
}

#[test]
fn rows_that_are_none() {
    for text in [
        "",
        "standard",
        "standard\t-\t-\t0\t1\t-\t-\t-\t2\t-\t-",
        "standard\t-\t-\t0\t1\t-\t-\t-\t2\t-\t-\tx",
        "standard\t-\t-\t0\t-\t-\t-\t-\t2\t-\t-\tg",
        "slow\t-\t-\t0\t1\t-\t-\t-\t2\t-\t-\tg",
        "standard\t2026-13-01\t-\t0\t1\t-\t-\t-\t2\t-\t-\tg",
        "standard\t-\t25:00-26:00\t0\t1\t-\t-\t-\t2\t-\t-\tg",
        "standard\t-\t-\t0\t1\t-\t-\t-\t2\t-\t-\tg\tmore",
    ] {
        assert_eq!(Row::parse(text), None, "{text}");
    }
    let row =
        Row::parse("batch\t2026-03-13\t22:00-02:30\t200000\t1\t-\t-\t-\t2\t-\t10\tgl").unwrap();
    assert_eq!(row.hours.unwrap().to_string(), "22:00-02:30");
    assert_eq!((row.service, row.above), (Service::Batch, 200_000));
}

#[test]
fn hours_end_before_their_end() {
    let day = Hours::parse("01:00-04:00").unwrap();
    let night = Hours::parse("22:00-02:00").unwrap();
    for (minute, in_day, in_night) in [
        (0, false, true),
        (60, true, true),
        (119, true, true),
        (120, true, false),
        (239, true, false),
        (240, false, false),
        (22 * 60, false, true),
    ] {
        assert_eq!(
            (day.contains(minute), night.contains(minute)),
            (in_day, in_night),
            "{minute}"
        );
    }
}

#[test]
fn sources_say_what_they_are() {
    for (_, source) in Source::LETTERS {
        assert!(source.about().is_some(), "{source:?}");
    }
    let about = Source::GenaiPrices.about().unwrap();
    assert!(about.starts_with("genai-prices "), "{about}");
    assert_eq!(Source::Config.about(), None);
}
