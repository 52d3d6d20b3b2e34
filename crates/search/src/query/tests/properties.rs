//! What is true of every query.

use proptest::collection::vec;
use proptest::prelude::*;
use quipu_model::{Money, Status, Timestamp};

use super::*;

/// Words that may stand as they are: of code, of prose, of any script, signs only.
fn word() -> impl Strategy<Value = String> {
    let fixed = prop::sample::select(vec![
        "foo",
        "foo_bar",
        "src/x.rs",
        "main()",
        "f(x)(y).z",
        "--force",
        "->",
        "-=",
        "or",
        "std::fs",
        r"C:\x",
        "http://x.org/?a=b,c",
        "12:30",
        "foo:",
        "it's",
        "Ünï",
        "日本",
        "e\u{301}",
        "🎉",
        "{",
        "\\",
        "NEARBY",
        "~3",
        "~",
        ",",
        "a\0b",
        "\u{200b}",
        "#1",
        "_",
        "Agent",
        "localhost:80",
        "'",
    ]);
    prop_oneof![fixed.prop_map(str::to_owned), "[a-zA-Z_é][a-z0-9_.é-]{0,8}"]
        .prop_filter("operators are no words", |word| {
            !["OR", "AND", "NOT"].contains(&&**word)
        })
}

/// Anything that may stand between quotation marks.
fn text() -> impl Strategy<Value = String> {
    let fixed = prop::sample::select(vec![
        "a b", "*", "\"", "\\", "\\\"", "a\\", "“x”", "a,b", ":x", "(", "OR", " a ", "-a", "a*",
        "\n\0",
    ]);
    prop_oneof![fixed.prop_map(str::to_owned), any::<String>(), word()]
        .prop_filter("something has to be there", |text| !text.trim().is_empty())
}

fn pattern() -> impl Strategy<Value = Pattern> {
    prop_oneof![
        text().prop_map(Pattern::Exact),
        text().prop_map(Pattern::Prefix)
    ]
}

fn time() -> impl Strategy<Value = Timestamp> {
    let (least, most) = (
        Timestamp::MIN.as_nanosecond(),
        Timestamp::MAX.as_nanosecond(),
    );
    prop_oneof![
        (least..=most).prop_map(|nanos| Timestamp::from_nanosecond(nanos).unwrap()),
        Just(Timestamp::MIN),
        Just(Timestamp::MAX),
        Just(Timestamp::UNIX_EPOCH),
    ]
}

fn filter() -> impl Strategy<Value = Filter> {
    let comparison = prop::sample::select(Comparison::ALL.to_vec());
    let sum = prop_oneof![0_i128..10_i128.pow(21), 0..=i128::MAX].prop_map(Money::from_atto);
    prop_oneof![
        pattern().prop_map(Filter::Agent),
        pattern().prop_map(Filter::Model),
        pattern().prop_map(Filter::Tool),
        pattern().prop_map(Filter::Project),
        pattern().prop_map(Filter::Branch),
        text().prop_map(Filter::Path),
        text().prop_map(Filter::Session),
        text().prop_map(Filter::Title),
        prop::sample::select(Role::ALL).prop_map(Filter::Role),
        prop::sample::select(Has::ALL).prop_map(Filter::Has),
        prop::sample::select(Status::ALL).prop_map(Filter::Status),
        time().prop_map(Filter::Since),
        time().prop_map(Filter::Until),
        (comparison, sum).prop_map(|(comparison, sum)| Filter::Cost(comparison, sum)),
    ]
}

fn side() -> impl Strategy<Value = Side> {
    prop_oneof![word().prop_map(Side::Word), text().prop_map(Side::Phrase)]
}

fn expr() -> impl Strategy<Value = Expr> {
    let far = 0..=Query::MAX_DISTANCE;
    let leaf = prop_oneof![
        4 => (word(), any::<bool>()).prop_map(|(text, prefix)| Expr::Word {
            // `foo:*` would be a filter.
            prefix: prefix && !text.ends_with(':'),
            text,
        }),
        1 => text().prop_map(|text| Expr::Phrase { text, prefix: true, slop: 0 }),
        2 => (text(), prop_oneof![Just(0), far.clone()])
            .prop_map(|(text, slop)| Expr::Phrase { text, prefix: false, slop }),
        1 => (side(), side(), far)
            .prop_map(|(left, right, distance)| Expr::Near { left, right, distance }),
        3 => filter().prop_map(Expr::Filter),
    ];
    leaf.prop_recursive(6, 48, 5, |inner| {
        prop_oneof![
            inner.clone().prop_map(Expr::not),
            vec(inner.clone(), 1..5).prop_map(Expr::and),
            vec(inner, 1..5).prop_map(Expr::or),
        ]
    })
}

/// Text that is made of what the language is made of.
fn almost_a_query() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "a", "b c", " ", " ", "(", ")", "\"", "“", "”", "\\", "*", "~", "~2", "-", "--", "|", ",",
        ":", "OR", " OR ", " AND ", "NOT ", " NEAR ", " NEAR/3 ", "agent:", "role:", "user",
        "since:", "7d", "cost:", ">1", "..", "$", "xyz:", "http://", "é", "日", "\0", "\u{202e}",
        "\n", "\u{301}", "path:", "/", "12",
    ]);
    vec(pieces, 0..24).prop_map(|pieces| pieces.concat())
}

/// What is true of any text: it reads, and what is printed reads the same; or the place of the mistake is
/// in it, and can be shown.
fn holds(text: &str) -> Result<(), TestCaseError> {
    match Query::parse(text, &clock()) {
        Ok(query) => {
            let printed = query.to_string();
            prop_assert_eq!(
                Query::parse(&printed, &clock()),
                Ok(query.clone()),
                "{}",
                printed
            );
            for word in query.words() {
                prop_assert!(!word.text.trim().is_empty());
            }
        }
        Err(error) => {
            prop_assert!(text.get(error.at.clone()).is_some(), "{:?}", error.at);
            let drawn = error.render(text);
            prop_assert_eq!(drawn.lines().count(), 2);
            prop_assert!(drawn.chars().all(|c| c == '\n' || !c.is_control()));
            let widths: Vec<usize> = drawn
                .lines()
                .map(unicode_width::UnicodeWidthStr::width)
                .collect();
            prop_assert!(widths.iter().all(|width| *width <= 80), "{}", drawn);
            prop_assert!(!error.to_string().is_empty());
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    #[test]
    fn what_is_printed_reads_the_same(expr in expr()) {
        let query = Query { expr };
        let printed = query.to_string();
        prop_assert_eq!(Query::parse(&printed, &clock()), Ok(query), "{}", printed);
    }

    #[test]
    fn any_text_is_read_or_refused(text in any::<String>()) {
        holds(&text)?;
    }

    #[test]
    fn what_is_almost_a_query_is_read_or_refused(text in almost_a_query()) {
        holds(&text)?;
    }

    #[test]
    fn quoted_text_is_found_as_it_is(text in text()) {
        let written = format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
        let expected = Expr::Phrase { text, prefix: false, slop: 0 };
        prop_assert_eq!(read(&written).expr, expected);
    }
}
