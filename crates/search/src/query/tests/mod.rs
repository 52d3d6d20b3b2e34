//! Each rule by a table: what is written, and what it means in prefix form.

mod docs;
mod errors;
mod properties;

use jiff::tz::TimeZone;

use super::*;

/// Noon of a Sunday, in a zone that is an hour ahead of UTC in winter.
pub(super) fn clock() -> Clock {
    Clock {
        now: "2026-11-15T11:00:00Z".parse().unwrap(),
        zone: TimeZone::get("Europe/Berlin").unwrap(),
    }
}

pub(super) fn read(text: &str) -> Query {
    Query::parse(text, &clock()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// An expression in a form that shows its structure, and is not the one that queries are printed in.
fn shape(expr: &Expr) -> String {
    let star = |prefix: &bool| if *prefix { "*" } else { "" };
    let list = |name: &str, parts: &[Expr]| {
        let parts: Vec<String> = parts.iter().map(shape).collect();
        format!("({name} {})", parts.join(" "))
    };
    match expr {
        Expr::All => "all".to_owned(),
        Expr::Word { text, prefix } => format!("<{text}>{}", star(prefix)),
        Expr::Phrase { text, prefix, slop } => match slop {
            0 => format!("[{text}]{}", star(prefix)),
            slop => format!("[{text}]{}~{slop}", star(prefix)),
        },
        Expr::Near {
            left,
            right,
            distance,
        } => {
            let [left, right] = [left, right].map(|side| match side {
                Side::Word(text) => format!("<{text}>"),
                Side::Phrase(text) => format!("[{text}]"),
            });
            format!("(near {distance} {left} {right})")
        }
        Expr::Filter(filter) => format!("{filter:?}"),
        Expr::Not(expr) => format!("(not {})", shape(expr)),
        Expr::And(parts) => list("and", parts),
        Expr::Or(parts) => list("or", parts),
    }
}

fn check(table: &[(&str, &str)]) {
    for (text, expected) in table {
        assert_eq!(shape(&read(text).expr), *expected, "{text}");
    }
}

#[test]
fn nothing_is_everything() {
    check(&[("", "all"), (" \t\n\u{3000}", "all")]);
}

#[test]
fn words_are_taken_as_they_are() {
    check(&[
        ("foo", "<foo>"),
        ("foo_bar", "<foo_bar>"),
        ("src/x.rs", "<src/x.rs>"),
        ("getUserName", "<getUserName>"),
        ("don't", "<don't>"),
        ("a,b;c", "<a,b;c>"),
        ("foo  bar", "(and <foo> <bar>)"),
        ("größe 大きさ", "(and <größe> <大きさ>)"),
        ("foo\u{a0}bar", "(and <foo> <bar>)"),
        ("or and not near", "(and <or> <and> <not> <near>)"),
        (
            "Or ORDER ANDROID NOTE NEARBY",
            "(and <Or> <ORDER> <ANDROID> <NOTE> <NEARBY>)",
        ),
        ("x -> y", "(and <x> <->> <y>)"),
        ("&& <= == ;", "(and <&&> <<=> <==> <;>)"),
        (r"a\b", r"<a\b>"),
    ]);
}

#[test]
fn a_colon_does_not_make_a_filter() {
    for word in [
        "http://example.org/a?b=c",
        "https://example.org",
        "std::fs",
        "path::PathBuf",
        "model::",
        r"C:\x",
        r"c:\x",
        "c:/x",
        "12:30",
        "foo:",
        "foo::bar:baz",
        "TODO:x",
        "Foo:x",
        "main.rs:42",
        "foo_bar:x",
        "localhost:8080",
        "localhost:8080/api",
        "python:3.12-slim",
        ":x",
        "--agent:x",
        "a1:b",
        "größe:x",
    ] {
        assert_eq!(shape(&read(word).expr), format!("<{word}>"));
    }
}

#[test]
fn operators() {
    check(&[
        ("a AND b", "(and <a> <b>)"),
        ("a OR b", "(or <a> <b>)"),
        ("a | b || c|d", "(or <a> <b> <c> <d>)"),
        ("-a", "(not <a>)"),
        ("NOT a", "(not <a>)"),
        ("-a -b", "(and (not <a>) (not <b>))"),
        ("a NOT b", "(and <a> (not <b>))"),
        ("a AND NOT b", "(and <a> (not <b>))"),
        ("a OR -b", "(or <a> (not <b>))"),
        ("NOT NOT a", "<a>"),
        ("NOT -a", "<a>"),
        ("-(-a)", "<a>"),
        ("NOT NOT NOT a", "(not <a>)"),
        ("a-b", "<a-b>"),
        ("-\"a b\"", "(not [a b])"),
        ("-agent:x", "(not Agent(Exact(\"x\")))"),
        ("-_x", "(not <_x>)"),
        ("-/tmp", "(not </tmp>)"),
        ("-é", "(not <é>)"),
        ("-🎉", "(not <🎉>)"),
        // Options of commands and signs of code are words.
        ("--force", "<--force>"),
        ("NOT --force", "(not <--force>)"),
        ("->", "<->>"),
        ("--", "<-->"),
        ("-=", "<-=>"),
    ]);
}

#[test]
fn or_binds_weaker_than_and() {
    check(&[
        ("a b OR c d", "(or (and <a> <b>) (and <c> <d>))"),
        ("a AND b OR c", "(or (and <a> <b>) <c>)"),
        ("a (b OR c) d", "(and <a> (or <b> <c>) <d>)"),
        ("-(a b) OR c", "(or (not (and <a> <b>)) <c>)"),
        ("NOT a b", "(and (not <a>) <b>)"),
        ("NOT (a OR b)", "(not (or <a> <b>))"),
        ("a|b c", "(or <a> (and <b> <c>))"),
    ]);
}

#[test]
fn groups_are_flattened() {
    check(&[
        ("(a)", "<a>"),
        ("((a b))", "(and <a> <b>)"),
        ("(a b) c (d (e f))", "(and <a> <b> <c> <d> <e> <f>)"),
        ("(a OR b) | (c OR (d))", "(or <a> <b> <c> <d>)"),
        ("(a OR b)(c OR d)", "(and (or <a> <b>) (or <c> <d>))"),
        ("(a)b", "(and <a> <b>)"),
    ]);
}

#[test]
fn parentheses_of_code_stay_in_their_word() {
    check(&[
        ("main()", "<main()>"),
        ("(main() OR x)", "(or <main()> <x>)"),
        ("f(g(x))(y).z", "<f(g(x))(y).z>"),
        ("(f(x))", "<f(x)>"),
        ("f(x y)", "(and <f> <x> <y>)"),
        ("println!(\"a b\")", "(and <println!> [a b])"),
        ("a OR(b)", "(or <a> <b>)"),
        ("a AND(b) NOT(c)", "(and <a> <b> (not <c>))"),
        ("f(a|b)", "(and <f> (or <a> <b>))"),
        ("-f()", "(not <f()>)"),
        ("title:f(a,b)", "Title(\"f(a,b)\")"),
    ]);
}

#[test]
fn phrases() {
    check(&[
        ("\"a b\"", "[a b]"),
        ("\" a \"", "[ a ]"),
        ("\"a b\"~3", "[a b]~3"),
        ("\"a b\"~0", "[a b]"),
        ("\"a b\"*", "[a b]*"),
        ("(\"a b\"~3)", "[a b]~3"),
        (r#""say \"hi\"""#, r#"[say "hi"]"#),
        (r#""a\\""#, r"[a\]"),
        (r#""C:\new\dir""#, r"[C:\new\dir]"),
        (r#""\\\" \x""#, r#"[\" \x]"#),
        ("“a b”", "[a b]"),
        ("„a b“", "[a b]"),
        ("”a b”", "[a b]"),
        ("“a b\"", "[a b]"),
        (r"“a \” b”", "[a ” b]"),
        ("\"a “b” c\"", "[a “b” c]"),
        ("a\"b c\"d", "(and <a> [b c] <d>)"),
        ("\"a\"\"b\"", "(and [a] [b])"),
        // All that is quoted is text.
        ("\"*\"", "[*]"),
        (
            "\"a*b\" \"OR\" \"agent:x\" \"(\"",
            "(and [a*b] [OR] [agent:x] [(])",
        ),
        ("\"a\nb\"", "[a\nb]"),
    ]);
}

#[test]
fn prefixes() {
    check(&[
        ("foo*", "<foo>*"),
        ("-foo*", "(not <foo>*)"),
        ("(foo*)", "<foo>*"),
        ("foo_*|b*", "(or <foo_>* <b>*)"),
        ("f()*", "<f()>*"),
    ]);
}

#[test]
fn nearness() {
    check(&[
        ("a NEAR b", "(near 10 <a> <b>)"),
        ("a NEAR/5 \"b c\"", "(near 5 <a> [b c])"),
        ("a NEAR/0 b", "(near 0 <a> <b>)"),
        ("x a NEAR b y", "(and <x> (near 10 <a> <b>) <y>)"),
        ("x OR a NEAR b", "(or <x> (near 10 <a> <b>))"),
        (
            "a NEAR/1 b NEAR/2 c",
            "(and (near 1 <a> <b>) (near 2 <b> <c>))",
        ),
        ("-(a NEAR b)", "(not (near 10 <a> <b>))"),
        ("a near b", "(and <a> <near> <b>)"),
    ]);
}

#[test]
fn filters() {
    check(&[
        ("agent:claude", r#"Agent(Exact("claude"))"#),
        ("Agent:claude", r#"Agent(Exact("claude"))"#),
        ("model:claude-*", r#"Model(Prefix("claude-"))"#),
        ("tool:\"my *\"", r#"Tool(Exact("my *"))"#),
        ("tool:\"my \"*", r#"Tool(Prefix("my "))"#),
        ("project:\"my app\"", r#"Project(Exact("my app"))"#),
        ("project:“my app”", r#"Project(Exact("my app"))"#),
        ("path:src/main.rs", r#"Path("src/main.rs")"#),
        (r"path:C:\x", r#"Path("C:\\x")"#),
        ("branch:feature/*", r#"Branch(Prefix("feature/"))"#),
        ("session:0a1b", r#"Session("0a1b")"#),
        ("title:login", r#"Title("login")"#),
        ("agent:a,b", r#"(or Agent(Exact("a")) Agent(Exact("b")))"#),
        (
            "agent:a,\"b,c\"",
            r#"(or Agent(Exact("a")) Agent(Exact("b,c")))"#,
        ),
        (
            "-agent:a,b x",
            r#"(and (not (or Agent(Exact("a")) Agent(Exact("b")))) <x>)"#,
        ),
        ("agent:a OR x,y", r#"(or Agent(Exact("a")) <x,y>)"#),
        ("(agent:a)", r#"Agent(Exact("a"))"#),
        ("status:ok,Timeout", "(or Status(Ok) Status(Timeout))"),
        (
            "has:error has:attachment",
            "(and Has(Error) Has(Attachment))",
        ),
        ("tool:a|tool:b", r#"(or Tool(Exact("a")) Tool(Exact("b")))"#),
    ]);
}

#[test]
fn roles() {
    for role in Role::ALL {
        check(&[(&format!("role:{role}"), &format!("Role({role:?})"))]);
    }
    check(&[
        ("role:thinking", "Role(Reasoning)"),
        ("role:call,result", "(or Role(ToolCall) Role(ToolResult))"),
        ("role:\"tool\"", "Role(Tool)"),
    ]);
}

#[test]
fn times() {
    for (text, expected) in [
        ("since:2026-11-01", "since:2026-10-31T23:00:00Z"),
        ("until:2026-11-01", "until:2026-11-01T23:00:00Z"),
        ("since:today", "since:2026-11-14T23:00:00Z"),
        ("until:yesterday", "until:2026-11-14T23:00:00Z"),
        ("since:Friday", "since:2026-11-12T23:00:00Z"),
        ("since:24h", "since:2026-11-14T11:00:00Z"),
        (
            "until:2026-11-01T08:00:00+02:00",
            "until:2026-11-01T06:00:00Z",
        ),
        ("since:\"2026-11-01 08:00\"", "since:2026-11-01T07:00:00Z"),
    ] {
        assert_eq!(read(text).to_string(), expected);
    }
    // What is from a day up to its end is what is of that day, also when it has 25 hours.
    let day = read("since:2026-10-25 until:2026-10-25");
    assert_eq!(
        day.to_string(),
        "since:2026-10-24T22:00:00Z until:2026-10-25T23:00:00Z"
    );
}

#[test]
fn costs() {
    for (text, expected) in [
        ("cost:>1.50", "cost:>1.5"),
        ("cost:>=$2", "cost:>=2"),
        ("cost:<0.000001", "cost:<0.000001"),
        ("cost:<=3", "cost:<=3"),
        ("cost:=4", "cost:=4"),
        ("cost:4", "cost:=4"),
        ("cost:\"> 4\"", "cost:>4"),
        ("cost:1..5", "cost:>=1 cost:<=5"),
        ("cost:$1..$5 x", "cost:>=1 cost:<=5 x"),
        ("-cost:1..5", "-(cost:>=1 cost:<=5)"),
        ("cost:1..", "cost:>=1"),
        ("cost:..5", "cost:<=5"),
        ("cost:5..5", "cost:>=5 cost:<=5"),
    ] {
        assert_eq!(read(text).to_string(), expected);
    }
}

#[test]
fn printing_has_one_form() {
    for (text, expected) in [
        ("", ""),
        ("  a   AND b ", "a b"),
        ("(a | b) c", "(a OR b) c"),
        ("(a b) | c", "a b OR c"),
        ("NOT (a b)", "-(a b)"),
        ("NOT a", "-a"),
        ("NOT --a", "NOT --a"),
        ("NOT ->", "NOT ->"),
        ("a NEAR b", "a NEAR/10 b"),
        ("“say \\\" it”~2", "\"say \\\" it\"~2"),
        ("agent:\"x\"", "agent:x"),
        ("agent:x,y", "agent:x OR agent:y"),
        ("z agent:x,y", "z (agent:x OR agent:y)"),
        ("project:\"my app\"*", "project:\"my app\"*"),
        ("path:\"a,b\"", "path:\"a,b\""),
        ("path:\":x\"", "path:\":x\""),
        ("role:call", "role:tool_call"),
    ] {
        let query = read(text);
        assert_eq!(query.to_string(), expected, "{text}");
        assert_eq!(read(expected), query, "{text}");
    }
    // What the parser would not make is printed as what comes nearest.
    let word = |text: &str| Expr::Word {
        text: text.to_owned(),
        prefix: true,
    };
    assert_eq!(Expr::not(word("a b")).to_string(), "-\"a b\"*");
    let operator = Side::Word("OR".to_owned());
    let near = Expr::Near {
        left: operator.clone(),
        right: operator,
        distance: 1,
    };
    assert_eq!(near.to_string(), "\"OR\" NEAR/1 \"OR\"");
    assert_eq!(word("foo:").to_string(), "\"foo:\"*");
    assert_eq!(word("agent:x").to_string(), "\"agent:x\"*");
}

#[test]
fn parts_are_put_together_in_one_form() {
    let word = |text: &str| Expr::Word {
        text: text.to_owned(),
        prefix: false,
    };
    let [a, b, c] = ["a", "b", "c"].map(word);
    let both = Expr::and(vec![
        Expr::All,
        a.clone(),
        Expr::and(vec![b.clone(), c.clone()]),
    ]);
    assert_eq!(both, Expr::And(vec![a.clone(), b.clone(), c]));
    assert_eq!(Expr::or(vec![a.clone(), Expr::All]), Expr::All);
    assert_eq!(Expr::or(vec![Expr::or(vec![a.clone()])]), a);
    assert_eq!(Expr::and(vec![]), Expr::All);
    assert_eq!(Expr::not(Expr::not(b.clone())), b);
}

#[test]
fn words_are_those_that_are_looked_for() {
    let query = read(r#"a -b ("c d"~2 OR NOT e) f* g NEAR "h i" role:user -(j OR k) "l m"*"#);
    let words: Vec<_> = query.words().map(|word| (word.text, word.prefix)).collect();
    assert_eq!(
        words,
        [
            ("a", false),
            ("c d", false),
            ("f", true),
            ("g", false),
            ("h i", false),
            ("l m", true)
        ]
    );
    assert_eq!(
        read("").words().count() + read("-a agent:b").words().count(),
        0
    );
}

#[test]
fn many_terms_are_one_list() {
    let words: Vec<String> = (0..Query::MAX_TERMS).map(|n| format!("word{n}")).collect();
    for (text, and) in [
        (words.join(" "), true),
        (words.join(" AND "), true),
        (words.join(" OR "), false),
        (words.join("|"), false),
        (format!("({})", words.join(" ")), true),
    ] {
        let query = read(&text);
        let (Expr::And(parts) | Expr::Or(parts)) = &query.expr else {
            panic!("{:?}", query.expr);
        };
        assert_eq!(parts.len(), Query::MAX_TERMS);
        assert_eq!(matches!(query.expr, Expr::And(_)), and);
        assert_eq!(query.words().count(), Query::MAX_TERMS);
        assert_eq!(read(&query.to_string()), query);
    }
    let list = format!("agent:{}", words.join(","));
    assert!(matches!(read(&list).expr, Expr::Or(parts) if parts.len() == Query::MAX_TERMS));
}

#[test]
fn groups_may_be_nested_so_deep() {
    let nested = |depth| {
        format!(
            "{}a{}",
            "(b OR (c ".repeat(depth / 2),
            "))".repeat(depth / 2)
        )
    };
    let query = read(&nested(Query::MAX_DEPTH));
    assert_eq!(read(&query.to_string()), query);
    let text = nested(Query::MAX_DEPTH + 2);
    let error = Query::parse(&text, &clock()).unwrap_err();
    assert_eq!(error.what, Problem::TooDeep);
    // One after the other is not deep.
    read(&"(a OR b) ".repeat(1_000));
    read(&format!("{}a", "NOT ".repeat(50_000)));
}
