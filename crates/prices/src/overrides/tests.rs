use super::*;

fn error(text: &str) -> String {
    Overrides::parse(text).unwrap_err().to_string()
}

#[test]
fn numbers_are_taken_as_they_are_written() {
    let overrides = Overrides::parse(
        r#"
        [[model]]
        name = "A B"
        input = 0.1
        cache_read = "0.01"
        cache_write = 3
        cache_write_1h = 1e-3
        output = 15.25
        reasoning = 16
        service = "batch"
        from = "2026-03-13"
        "#,
    )
    .unwrap();
    let (name, rows) = overrides.rows("a-b").unwrap();
    assert_eq!(name, "a-b");
    let [row] = rows else { panic!("{rows:?}") };
    let rates = row.rates;
    let shown = [
        Some(rates.input),
        rates.cache_read,
        rates.write_5m,
        rates.write_1h,
        Some(rates.output),
        rates.reasoning,
    ]
    .map(|rate| rate.unwrap().to_string());
    assert_eq!(shown, ["0.1", "0.01", "3", "0.001", "15.25", "16"]);
    assert_eq!(row.service, Service::Batch);
    assert_eq!(row.from.unwrap().to_string(), "2026-03-13");
}

#[test]
fn mistakes_are_named_with_their_place() {
    for (text, what, line) in [
        ("modle = []", "modle", 1),
        ("[[model]]\nname = \"a\"\ninptu = 1", "inptu", 3),
        ("[[model]]\nname = \"\"\nfree = true", "empty", 2),
        (
            "[[model]]\nname = \"a\"\ninput = \"x\"\noutput = 1",
            "decimal number",
            3,
        ),
        (
            "[[model]]\nname = \"a\"\ninput = -1\noutput = 1",
            "not negative",
            3,
        ),
        (
            "[[model]]\nname = \"a\"\ninput = nan\noutput = 1",
            "decimal number",
            3,
        ),
        (
            "[[model]]\nname = \"a\"\ninput = true\noutput = 1",
            "dollars per million",
            3,
        ),
        (
            "[[model]]\nname = \"a\"\nfree = true\nabove = 7",
            "above is one of 0, 32000",
            4,
        ),
        (
            "[[model]]\nname = \"a\"\nfree = true\nservice = \"slow\"",
            "standard, batch",
            4,
        ),
        (
            "[[model]]\nname = \"a\"\nfree = true\nfrom = 5",
            "2026-03-13",
            4,
        ),
        (
            "[[model]]\nname = \"a\"\nfree = true\nfrom = 2026-03-13T00:00:00Z",
            "2026-03-13",
            4,
        ),
    ] {
        let error = error(text);
        assert!(error.contains(what), "{text}\n{error}");
        assert!(error.contains(&format!("line {line}")), "{text}\n{error}");
    }
}

#[test]
fn mistakes_of_a_whole_entry_name_the_model() {
    for (text, what) in [
        ("name = \"a\"\noutput = 1", "model \"a\": input is missing"),
        ("name = \"a\"\ninput = 1", "model \"a\": output is missing"),
        (
            "name = \"a\"\nfree = true\ninput = 1",
            "model \"a\": free and a price",
        ),
        (
            "name = \"a\"\nfree = true\n[[model]]\nname = \"A\"\nfree = true",
            "two prices",
        ),
        (
            "name = \"a\"\nfree = true\nabove = 200000",
            "a price with above needs one without",
        ),
    ] {
        let error = error(&format!("[[model]]\n{text}"));
        assert!(error.contains(what), "{text}\n{error}");
    }
    let second = error("[[model]]\nname = \"a\"\nfree = true\n[[model]]\nname = \"b\"\ninput = 1");
    assert!(second.contains("line 4"), "{second}");
    let looped = error("[aliases]\na = \"b\"\nb = \"c\"");
    assert!(looped.contains("\"b\" is itself an alias"), "{looped}");
}

#[test]
fn a_table_of_another_reader_will_do() {
    let config: toml::Table =
        toml::from_str("[prices.aliases]\na = \"b\"\n[[prices.model]]\nname = \"c\"\nfree = true\nfrom = 2026-03-13")
            .unwrap();
    let overrides: Overrides = config["prices"].clone().try_into().unwrap();
    assert_eq!(overrides.alias("a"), Some("b"));
    assert!(overrides.rows("c").is_some());
    assert!(!overrides.is_empty());
    assert!(Overrides::parse("").unwrap().is_empty());
}

#[test]
fn the_very_name_comes_before_patterns_and_they_in_their_order() {
    let overrides = Overrides::parse(
        r#"
        model = [
            { name = "gw/*", input = 1, output = 1 },
            { name = "gw/opus-*", input = 2, output = 2 },
            { name = "gw/opus-5", input = 3, output = 3 },
        ]
        "#,
    )
    .unwrap();
    for (name, pattern) in [
        ("gw/x", "gw/*"),
        ("gw/opus-4", "gw/*"),
        ("gw/opus-5", "gw/opus-5"),
    ] {
        assert_eq!(overrides.rows(name).unwrap().0, pattern);
    }
    assert_eq!(overrides.rows("gw"), None);
}

#[test]
fn later_overrides_come_first() {
    let first = Overrides::parse("[aliases]\na = \"b\"\nc = \"d\"").unwrap();
    let second = Overrides::parse("[aliases]\na = \"e\"").unwrap();
    let mut both = first;
    both.extend(&second);
    assert_eq!((both.alias("a"), both.alias("c")), (Some("e"), Some("d")));
}

#[test]
fn stars_stand_for_anything() {
    for (pattern, name, fits) in [
        ("*", "", true),
        ("*", "x", true),
        ("a*", "a", true),
        ("a*b", "ab", true),
        ("a*b", "axb", true),
        ("a*b", "axc", false),
        ("a*b*c", "a-b-b-c", true),
        ("a*b*c", "a-c-b", false),
        ("*a*", "bab", true),
        ("*a*a", "a", false),
        ("**", "x", true),
        ("a", "a", true),
        ("a", "ab", false),
    ] {
        assert_eq!(
            Pattern(pattern.to_owned()).fits(name),
            fits,
            "{pattern} {name}"
        );
    }
}
