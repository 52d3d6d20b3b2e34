//! What is wrong, where, and what is said about it.

use super::*;

fn fails(text: &str) -> QueryError {
    match Query::parse(text, &clock()) {
        Ok(query) => panic!("{text} reads as {query}"),
        Err(error) => error,
    }
}

/// Each with the marks that are drawn below it, and what is said.
fn check(table: &[(&str, &str, &str)]) {
    for (text, marks, said) in table {
        let error = fails(text);
        let drawn = error.render(text);
        let below = drawn.lines().nth(1).unwrap();
        assert_eq!(
            (below, error.what.to_string().as_str()),
            (&*format!("  {marks}"), *said),
            "{text}"
        );
    }
}

#[test]
fn pairs() {
    check(&[
        (r#"a "b c"#, "  ^", "the quotation mark is never closed"),
        (r#"a "b c\""#, "  ^", "the quotation mark is never closed"),
        ("a “b", "  ^", "the quotation mark is never closed"),
        (
            r#"agent:"b c"#,
            "      ^",
            "the quotation mark is never closed",
        ),
        ("a (b (c)", "  ^", "the parenthesis is never closed"),
        ("a (", "  ^", "the parenthesis is never closed"),
        ("a f(b", "   ^", "the parenthesis is never closed"),
        ("a) b", " ^", "the parenthesis was never opened"),
        (")", "^", "the parenthesis was never opened"),
        ("(a))", "   ^", "the parenthesis was never opened"),
        ("a ()", "  ^^", "there is nothing between the parentheses"),
        ("a ( )", "  ^^^", "there is nothing between the parentheses"),
        (
            r#"a """#,
            "  ^^",
            "there is nothing between the quotation marks",
        ),
        ("“ ”", "^^^", "there is nothing between the quotation marks"),
    ]);
}

#[test]
fn operators() {
    check(&[
        ("a OR", "  ^^", "there is nothing after OR"),
        ("a | ", "  ^", "there is nothing after OR"),
        ("OR a", "^^", "there is nothing before OR"),
        ("OR", "^^", "there is nothing before OR"),
        ("a OR OR b", "  ^^", "there is nothing after OR"),
        ("a OR AND b", "  ^^", "there is nothing after OR"),
        ("(a OR)", "   ^^", "there is nothing after OR"),
        ("(OR a)", " ^^", "there is nothing before OR"),
        ("a AND", "  ^^^", "there is nothing after AND"),
        ("AND a", "^^^", "there is nothing before AND"),
        ("a NOT", "  ^^^", "there is nothing after NOT"),
        ("NOT OR a", "^^^", "there is nothing after NOT"),
        ("a - b", "  ^", "there is nothing after -"),
        ("-", "^", "there is nothing after -"),
        ("(a -)", "   ^", "there is nothing after -"),
        ("-OR", "^", "there is nothing after -"),
        ("-AND b", "^", "there is nothing after -"),
    ]);
}

#[test]
fn stars() {
    check(&[
        ("f*o", " ^", "* may only stand at the end of a word"),
        ("*foo", "^", "* may only stand at the end of a word"),
        ("foo**", "   ^", "* may only stand at the end of a word"),
        ("a *", "  ^", "* may only stand at the end of a word"),
        ("tool:*", "     ^", "* may only stand at the end of a word"),
        (
            "tool:a*b",
            "      ^",
            "* may only stand at the end of a word",
        ),
        ("session:0a*", "          ^", "session: takes no *"),
        ("path:src/*", "         ^", "path: takes no *"),
        ("role:\"us\"*", "         ^", "role: takes no *"),
        ("since:2026*", "          ^", "since: takes no *"),
    ]);
}

#[test]
fn distances() {
    check(&[
        ("\"a b\"~", "      ^", "\"\" is no distance"),
        ("\"a b\"~x", "      ^", "\"x\" is no distance"),
        ("\"a b\"~-1", "      ^^", "\"-1\" is no distance"),
        ("\"a b\"~1001", "      ^^^^", "\"1001\" is no distance"),
        ("\"a b\"*~2", "      ^^", "a phrase takes * or ~, not both"),
        ("\"a b\"~2*", "     ^^^", "a phrase takes * or ~, not both"),
        ("a NEAR/ b", "       ^", "\"\" is no distance"),
        ("a NEAR/x b", "       ^", "\"x\" is no distance"),
        (
            "a NEAR/99999999999 b",
            "       ^^^^^^^^^^^",
            "\"99999999999\" is no distance",
        ),
    ]);
    let near = "NEAR takes a word or a phrase on each side";
    check(&[
        ("a (b NEAR) c", "     ^^^^", near),
        ("(a b) NEAR c", "      ^^^^", near),
        ("NEAR b", "^^^^", near),
        ("a NEAR", "  ^^^^", near),
        ("a NEAR/3", "  ^^^^^^", near),
        ("a NEAR OR b", "  ^^^^", near),
        ("a NEAR -b", "  ^^^^", near),
        ("-a NEAR b", "   ^^^^", near),
        ("NOT a NEAR b", "      ^^^^", near),
        ("a NEAR (b)", "  ^^^^", near),
        ("(a) NEAR b", "    ^^^^", near),
        ("a NEAR role:user", "  ^^^^", near),
        ("role:user NEAR a", "          ^^^^", near),
        ("a* NEAR b", "   ^^^^", near),
        ("a NEAR \"b c\"~2", "  ^^^^", near),
        ("a OR NEAR b", "  ^^", "there is nothing after OR"),
    ]);
}

#[test]
fn filters() {
    check(&[
        ("a agnet:x", "  ^^^^^^", "there is no filter \"agnet:\""),
        ("-foo:bar", " ^^^^", "there is no filter \"foo:\""),
        ("foo:\"b c\"", "^^^^", "there is no filter \"foo:\""),
        ("agent:", "^^^^^^", "agent: has no value"),
        ("x (agent: claude)", "   ^^^^^^", "agent: has no value"),
        ("agent:a,", "^^^^^^^^", "agent: has no value"),
        ("agent:a, b", "^^^^^^^^", "agent: has no value"),
        ("agent:,a", "^^^^^^", "agent: has no value"),
        ("agent:(a OR b)", "^^^^^^", "agent: has no value"),
        (
            "agent:\"\"",
            "      ^^",
            "there is nothing between the quotation marks",
        ),
        ("role:usr", "     ^^^", "\"usr\" is no value of role:"),
        (
            "role:user,tol",
            "          ^^^",
            "\"tol\" is no value of role:",
        ),
        (
            "status:failed",
            "       ^^^^^^",
            "\"failed\" is no value of status:",
        ),
        ("has:tests", "    ^^^^^", "\"tests\" is no value of has:"),
        ("since:soon", "      ^^^^", "\"soon\" is no time"),
        (
            "until:2026-13-01 x",
            "      ^^^^^^^^^^",
            "\"2026-13-01\" is no time",
        ),
        (
            "since:99999999y",
            "      ^^^^^^^^^",
            "\"99999999y\" is out of the range of times",
        ),
        ("since:1d,2d", "      ^^^^^", "since: takes one value"),
        ("cost:1,50", "     ^^^^", "cost: takes one value"),
        ("cost:>", "     ^", "\"\" is no sum of dollars"),
        ("cost:>x", "     ^^", "\"x\" is no sum of dollars"),
        ("cost:-1", "     ^^", "\"-1\" is no sum of dollars"),
        ("cost:€5", "     ^^", "\"€5\" is no sum of dollars"),
        ("cost:..", "     ^^", "\"..\" is no sum of dollars"),
        ("cost:5..1", "     ^^^^", "the range ends before it begins"),
        (
            "cost:1..2..3",
            "     ^^^^^^^",
            "\"2..3\" is no sum of dollars",
        ),
    ]);
}

#[test]
fn hints_say_what_to_write() {
    for (text, hint) in [
        (
            "agnet:x",
            "did you mean agent:? to look for the text, quote it: \"agnet:x\"",
        ),
        (
            "sicne:7d",
            "did you mean since:? to look for the text, quote it: \"sicne:7d\"",
        ),
        (
            "file:x",
            "did you mean path:? to look for the text, quote it: \"file:x\"",
        ),
        ("node:fs", "to look for the text, quote it: \"node:fs\""),
        ("node:\"x y\"", "to look for the text, quote it"),
        ("node:\u{202e}x", "to look for the text, quote it"),
        ("f*o", "to look for the text, quote it: \"f*o\""),
        (
            "role:usr",
            "did you mean user? there are user, assistant, reasoning, system, tool_call, tool_result, tool, note",
        ),
        ("status:failed", "there are ok, error, denied, timeout"),
        ("has:x", "there are error, attachment"),
        ("agent:(a OR b)", "write several values as agent:one,other"),
        (
            "-a NEAR b",
            "to rule both out, put them into parentheses: -(one NEAR other)",
        ),
        (
            r#""a\""#,
            r"a quotation mark after \ is text; a \ before the last one is written \\",
        ),
        ("cost:1,5", "write 1.50 with a point, a range as 1..5"),
    ] {
        assert_eq!(fails(text).hint.as_deref(), Some(hint), "{text}");
    }
    for text in [
        "a OR",
        "-",
        "a (b",
        "NEAR",
        "since:x",
        "cost:x",
        "session:a*",
        "\"a",
        "agent:",
    ] {
        assert!(fails(text).hint.is_some(), "{text}");
    }
}

#[test]
fn the_first_mistake_is_told() {
    for (text, at) in [
        ("role:usr \"open", 5),
        ("f*o role:usr", 1),
        ("OR \"open", 0),
        ("() f*o", 0),
        ("a NEAR/x role:usr", 7),
    ] {
        assert_eq!(fails(text).at.start, at, "{text}");
    }
}

#[test]
fn there_are_limits() {
    let long = "é".repeat(Query::MAX_BYTES);
    let error = fails(&format!("x{long}"));
    assert_eq!(error.what, Problem::TooLong);
    assert_eq!(error.at.start, Query::MAX_BYTES - 1, "between two letters");
    assert_eq!(read(&"a".repeat(Query::MAX_BYTES)).words().count(), 1);

    let many = "a ".repeat(Query::MAX_TERMS + 1);
    let error = fails(&many);
    assert_eq!(error.what, Problem::TooManyTerms);
    assert_eq!(error.at, many.len() - 2..many.len() - 1);
    let values = format!("agent:a{}", ",a".repeat(Query::MAX_TERMS));
    assert_eq!(fails(&values).what, Problem::TooManyTerms);

    let deep = "(".repeat(100_000);
    assert_eq!(fails(&deep).what, Problem::TooDeep);
    assert_eq!(fails(&deep).at.start, Query::MAX_DEPTH);
    assert_eq!(fails(&"a(".repeat(100_000)).what, Problem::TooDeep);
    assert_eq!(fails(&"NOT (".repeat(50_000)).what, Problem::TooDeep);
}

#[test]
fn messages_are_short_and_of_one_line() {
    let long = "\u{202e}\x1b[31m\n".replace('\n', "") + &"x".repeat(100_000);
    for text in [
        format!("role:{long}"),
        format!("since:{long}"),
        format!("cost:{long}"),
        format!("{}:x", "x".repeat(100_000)),
        format!("foo:{long}"),
        format!("a*{long}"),
        format!("\"a\"~{long}"),
    ] {
        let error = fails(&text);
        let hint = error.hint.clone().unwrap_or_default();
        let (said, drawn) = (error.to_string(), error.render(&text));
        assert!(
            said.len() < 200 && hint.len() < 200 && drawn.len() < 500,
            "{said} {hint}"
        );
        let clean = |text: &str| !text.contains(['\x1b', '\u{202e}', '\n']);
        assert!(
            clean(&said) && clean(&hint) && drawn.lines().all(clean),
            "{said:?}"
        );
    }
}
