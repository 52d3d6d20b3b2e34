//! The engine with the rules that come with the program, held to the slow one.

use std::path::Path;
use std::sync::LazyLock;

use base64::Engine as _;
use proptest::prelude::*;

use super::*;
use crate::rule::{Pattern, Rule, expand};

static ENGINE: LazyLock<Engine> =
    LazyLock::new(|| Engine::new(&RuleSet::builtin(), |_| true).unwrap());
static SECRETS: LazyLock<Engine> =
    LazyLock::new(|| Engine::new(&RuleSet::builtin(), |rule| rule.kind == Kind::Secret).unwrap());

fn scan(engine: &Engine, text: &str, context: Context<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    engine.scan(&mut Scratch::default(), text, context, &mut found);
    found
}

fn ids(engine: &Engine, text: &str) -> Vec<String> {
    let found = scan(engine, text, Context::default());
    found
        .iter()
        .map(|found| engine.rules().rules[found.rule].id.clone())
        .collect()
}

fn token() -> String {
    expand("ghp_{alnum:36}", 7).unwrap().text
}

/// All of them, but for those that go by what a value looks like: chance makes up words.
#[test]
fn every_rule_finds_its_examples() {
    let mut missed = Vec::new();
    for rule in &ENGINE.rules().rules {
        let looks = matches!(
            rule.check,
            Some(
                crate::rule::Check::Secret
                    | crate::rule::Check::Password
                    | crate::rule::Check::Typed
                    | crate::rule::Check::Random
                    | crate::rule::Check::Drawn
            )
        );
        for template in &rule.examples {
            let misses = (0..20).filter(|seed| !is_found(template, *seed)).count();
            if misses > if looks { 2 } else { 0 } {
                missed.push((rule.id.as_str(), template.as_str(), misses));
            }
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

fn is_found(template: &str, seed: u64) -> bool {
    let sample = expand(template, seed).unwrap();
    let found = scan(&ENGINE, &sample.text, Context::default());
    let covers = |secret: &Range<usize>| {
        let mut at = secret.start;
        for found in &found {
            if found.span.start <= at && found.span.end > at {
                at = found.span.end;
            }
        }
        at >= secret.end
    };
    sample.secret.as_ref().map_or(!found.is_empty(), covers)
}

#[test]
fn no_rule_finds_its_counterexamples() {
    let mut wrong = Vec::new();
    for (index, rule) in ENGINE.rules().rules.iter().enumerate() {
        for template in &rule.counterexamples {
            let sample = expand(template, 3).unwrap();
            let found = scan(&ENGINE, &sample.text, Context::default());
            if found.iter().any(|found| found.rule == index) {
                wrong.push((rule.id.as_str(), template.as_str()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn escapes_and_colours_hide_nothing() {
    let token = token();
    for before in [
        "",
        " ",
        "\\n",
        "\\t",
        "%20",
        "%3D",
        "\x1b[32m",
        "\\u001b[1;31m",
        "\\u0022",
        "=",
        "\"",
        "é",
    ] {
        let text = format!("x{before}{token} y");
        let text = if before.is_empty() {
            token.clone()
        } else {
            text
        };
        assert!(
            ids(&SECRETS, &text).contains(&"github-pat".to_owned()),
            "{before:?}"
        );
    }
    // What begins nothing else is found behind a letter too, and other tokens are not.
    assert_eq!(ids(&SECRETS, &format!("x{token}")), ["github-pat"]);
    let other = expand("xrubygems_{hex:48}", 7).unwrap().text;
    assert_eq!(ids(&SECRETS, &other), Vec::<String>::new());
}

#[test]
fn what_is_encoded_is_found_as_a_whole() {
    let token = token();
    let encoded =
        base64::engine::general_purpose::STANDARD.encode(format!("token is {token}, keep it"));
    let text = format!("data: {encoded} end");
    let found = scan(&SECRETS, &text, Context::default());
    assert_eq!(found.len(), 1);
    assert_eq!(&text[found[0].span.clone()], encoded);

    let text = format!("https://x.dev/?q={}%5F{}&y=1", &token[..3], &token[4..]);
    let found = scan(&SECRETS, &text, Context::default());
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(
        &text[found[0].span.clone()],
        format!("{}%5F{}", &token[..3], &token[4..])
    );
}

#[test]
fn letters_that_look_like_others_hide_nothing() {
    let token = token();
    let zero_width = format!(
        "{}\u{200B}{}\u{2060}{}",
        &token[..2],
        &token[2..9],
        &token[9..]
    );
    let fullwidth: String = token
        .chars()
        .map(|letter| char::from_u32(u32::from(letter) + 0xFEE0).unwrap())
        .collect();
    let cyrillic = token.replacen('p', "\u{440}", 1);
    let homoglyph = token.replacen('h', "\u{4BB}", 1);
    let unseen = [
        '\u{200E}',
        '\u{202E}',
        '\u{2066}',
        '\u{61C}',
        '\u{FE0F}',
        '\u{E0041}',
    ];
    let unseen = unseen.map(|letter| format!("{}{letter}{}", &token[..6], &token[6..]));
    for hidden in [zero_width, fullwidth, cyrillic, homoglyph]
        .into_iter()
        .chain(unseen)
    {
        let text = format!("key {hidden} end");
        let found = scan(&SECRETS, &text, Context::default());
        assert_eq!(found.len(), 1, "{hidden}");
        assert_eq!(&text[found[0].span.clone()], hidden);
    }
}

#[test]
fn names_from_outside_count() {
    let value = expand("{alnum:40}", 5).unwrap().text;
    let named = |name, text: &str| {
        let context = Context {
            name: Some(name),
            ..Context::default()
        };
        scan(&SECRETS, text, context).len()
    };
    assert_eq!(named("api_key", &value), 1);
    assert_eq!(named("clientSecret", &value), 1);
    assert_eq!(named("title", &value), 0);
    assert_eq!(
        named("token", "a long text about tokens and what they are for"),
        0
    );
    assert_eq!(named("max_tokens", "4096"), 0);
}

/// A list of what rules are called is no list of names and values.
#[test]
fn what_things_are_called_is_no_secret() {
    let ids_of_rules = ["upcloud-password", "bitbucket-client-secret"];
    assert_eq!(
        ids(&SECRETS, &format!("{ids_of_rules:?}")),
        Vec::<String>::new()
    );
    let text = "\"upcloud-password\",\"bitbucket-client-secret\",\"heroku-api-key\"";
    assert_eq!(ids(&SECRETS, text), Vec::<String>::new());
}

#[test]
fn allowlists_let_pass_what_they_name() {
    let token = token();
    let allowed = |toml: &str, text: &str| {
        let mut rules = RuleSet::builtin();
        rules.extend(RuleSet::parse(toml, Path::new("own.toml")).unwrap());
        let engine = Engine::new(&rules, |rule| rule.kind == Kind::Secret).unwrap();
        scan(&engine, text, Context::default()).is_empty()
    };
    let line = format!("a = {token}");
    assert!(!allowed("", &line));
    let hash = Engine::hash(&token);
    assert!(allowed(
        &format!("[[allowlists]]\nvalues = [\"sha256:{hash}\"]"),
        &line
    ));
    assert!(allowed(
        "[[allowlists]]\ntargetRules = [\"github-pat\"]\nregexes = [\"^ghp_\"]",
        &line
    ));
    assert!(!allowed(
        "[[allowlists]]\ntargetRules = [\"gitlab-pat\"]\nregexes = [\"^ghp_\"]",
        &line
    ));
    assert!(allowed(
        "[[allowlists]]\nregexTarget = \"line\"\nregexes = [\"^a = \"]",
        &line
    ));
    assert!(!allowed(
        "[[allowlists]]\ncondition = \"AND\"\nregexes = [\"^ghp_\"]\nstopwords = [\"-\"]",
        &line
    ));
    for comment in [
        "gitleaks:allow",
        "quipu:allow",
        "pragma: allowlist secret",
        "nosecret",
    ] {
        assert!(
            allowed("", &format!("{line} # {comment}\nnext")),
            "{comment}"
        );
        assert!(!allowed("", &format!("{line}\n# {comment}")), "{comment}");
    }
}

#[test]
fn what_is_nearly_one_is_shown_when_asked_for() {
    let near = Context {
        near: true,
        ..Context::default()
    };
    let text = format!("id {} x", expand("{alnum:40}", 2).unwrap().text);
    let found = scan(&SECRETS, &text, near);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].certainty, Certainty::Near(Why::Unnamed));
    let text = format!("{} # quipu:allow", token());
    assert!(
        scan(&SECRETS, &text, near)
            .iter()
            .any(|found| found.certainty == Certainty::Near(Why::Allowed))
    );
    assert!(scan(&SECRETS, &text, Context::default()).is_empty());
}

/// The work that hostile texts make is no more than that of eight times as much text by eight, and some.
#[test]
fn work_grows_with_the_text_and_with_nothing_else() {
    let repeated = [
        "eyJhbGciOiJIUzI1NiJ9-",
        "eyJ-",
        "-----BEGIN RSA PRIVATE KEY-----\n",
        "://a:",
        "a.a.a.a@",
        "token=",
        "token='\"`",
        "password:\"",
        "1.1.1.1.",
        "4111-",
        "00:11:",
        "ghp_",
        "sk-ant-api03-",
        "AKIA",
        "curl -H \"Authorization: ",
        "%41%42",
        "a\u{200B}",
        "postgres://u:p@",
        "+1 ",
        "DE89 3704 ",
        "AccountKey=",
        "/home/",
        "eyJhbGciOiJIUzI1NiJ9.eyJhbGciOiJIUzI1NiJ9.",
        "password is ",
        "_auth = ",
        "token-token.token_",
        "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n",
    ];
    for piece in repeated {
        let work = |length: usize| {
            let text = piece.repeat(length / piece.len());
            let mut scratch = Scratch::default();
            ENGINE.scan(&mut scratch, &text, Context::default(), &mut Vec::new());
            scratch.work()
        };
        let (small, large) = (work(20_000), work(160_000));
        assert!(
            large <= small * 12 + 400_000,
            "{piece:?}: {small} and {large}"
        );
    }
}

fn pieces() -> impl Strategy<Value = String> {
    let examples: Vec<String> = ENGINE
        .rules()
        .rules
        .iter()
        .flat_map(|rule| rule.examples.clone())
        .collect();
    let counter: Vec<String> = ENGINE
        .rules()
        .rules
        .iter()
        .flat_map(|rule| rule.counterexamples.clone())
        .collect();
    let made = |templates: Vec<String>| {
        (0..templates.len(), any::<u64>())
            .prop_map(move |(index, seed)| expand(&templates[index], seed).unwrap().text)
    };
    let words = [
        "the ",
        "\n",
        "\\n",
        " = ",
        "\"",
        "token",
        "password: ",
        "key",
        "://",
        "@",
        "%20",
        "[REDACTED:aws]",
        "é",
        "\u{200B}",
        "\u{440}",
        "-",
        "eyJ",
        "12:30:45 ",
        "81.2.69.160",
        "\x1b[32m",
        "`",
        "'",
        ", ",
        "{",
        "}",
        "=",
        "123-45-6789",
        "_",
        "A",
        "0",
    ];
    prop_oneof![
        3 => made(examples),
        1 => made(counter),
        4 => prop::sample::select(words.to_vec()).prop_map(str::to_owned),
        1 => any::<String>(),
        1 => "[a-zA-Z0-9+/_-]{1,60}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn both_engines_find_the_same(pieces in prop::collection::vec(pieces(), 1..12), near in any::<bool>()) {
        let text = pieces.concat();
        let context = Context { near, ..Context::default() };
        let fast = scan(&ENGINE, &text, context);
        let mut slow = Vec::new();
        whole::scan(&ENGINE, &text, context, &mut slow);
        let id = |found: &Found| (ENGINE.rules().rules[found.rule].id.as_str(), found.span.clone(), found.certainty);
        prop_assert_eq!(fast.iter().map(id).collect::<Vec<_>>(), slow.iter().map(id).collect::<Vec<_>>());
    }

    #[test]
    fn findings_are_in_order_and_whole_characters(text in any::<String>(), pieces in prop::collection::vec(pieces(), 0..6)) {
        let text = format!("{text}{}{text}", pieces.concat());
        let found = scan(&ENGINE, &text, Context { near: true, name: Some("password"), file: Some("/code/.env") });
        let mut end = 0;
        for found in &found {
            prop_assert!(found.span.start >= end && found.span.end > found.span.start);
            prop_assert!(text.get(found.span.clone()).is_some());
            end = found.span.end;
        }
    }

    /// Pieces on lines of their own: where a secret runs into a name, only its removal lets the name be seen.
    #[test]
    fn redacting_twice_changes_nothing(pieces in prop::collection::vec(pieces(), 1..10)) {
        let once = redact(&pieces.join("\n"));
        prop_assert_eq!(redact(&once), once);
    }
}

fn redact(text: &str) -> String {
    let mut out = String::new();
    let mut at = 0;
    for found in scan(&ENGINE, text, Context::default()) {
        out.push_str(&text[at..found.span.start]);
        let label = &ENGINE.rules().rules[found.rule].label;
        out.extend(["[REDACTED:", label, "]"]);
        at = found.span.end;
    }
    out.push_str(&text[at..]);
    out
}

#[test]
fn names_and_values_in_tables_and_sentences() {
    for template in [
        "| `DD_API_KEY` | `«{hex:32}»` |",
        "set `DD_API_KEY` to `«{hex:32}»`",
        "**DD_API_KEY**: «{hex:32}»",
        "**Password:** «xK29{alnum:8}»",
        "server 52.31.77.9:443 is up",
        "aGVsbG8==\n«81.2.69.160» is where it is",
        "| `token` | `string` |",
        "set `password` to `your-password`",
        "the `key` to `config.name`",
    ] {
        let sample = expand(template, 3).unwrap();
        let found = scan(&ENGINE, &sample.text, Context::default());
        let covers = |span: &std::ops::Range<usize>| {
            found
                .iter()
                .any(|found| found.span.start <= span.start && found.span.end >= span.end)
        };
        match sample.secret {
            Some(span) => assert!(covers(&span), "{template}"),
            None if template.starts_with("server") => assert_eq!(found.len(), 1, "{template}"),
            None => assert!(found.is_empty(), "{template}"),
        }
    }
}

/// Words of which only some have to begin and end as such.
#[test]
fn boundaries_of_some_alternatives_count() {
    let source = r"(?:\b(?:[Pp]asswort|[Ss]enha)\b|密码)(?: ist)?(?:\s{0,2}[:：=]\s{0,3}|\s{1,3})([a-z0-9]{6,64})";
    let mut rule = Rule::new("word", Kind::Secret, Pattern::Regex(source.into()));
    rule.keywords = ["passwort", "senha", "密码"].map(str::to_owned).to_vec();
    let rules = RuleSet {
        rules: vec![rule],
        allow: Vec::new(),
    };
    let engine = Engine::new(&rules, |_| true).unwrap();
    for (text, found) in [
        ("Das Passwort ist ab12cd34", true),
        ("senha: ab12cd34", true),
        ("é senha: ab12cd34", true),
        ("密码: ab12cd34", true),
        ("xsenha: ab12cd34", false),
    ] {
        let all = scan(&engine, text, Context::default());
        assert_eq!(all.len() == 1, found, "{text}: {all:?}");
        let mut slow = Vec::new();
        whole::scan(&engine, text, Context::default(), &mut slow);
        assert_eq!(all, slow, "{text}");
    }
}

/// A text is looked at in parts, and what stands where two of them meet is found all the same.
#[test]
fn what_stands_between_two_parts_is_found() {
    let part = 32 << 10;
    let hidden = base64::engine::general_purpose::STANDARD.encode(format!("key {} end", token()));
    let name = format!("api_key = \"{}\"", expand("{alnum:40}", 3).unwrap().text);
    for piece in [token(), hidden, name, "ada@acme-works.org".to_owned()] {
        for before in [0, 1, 7, 8, 20, 33, 60, piece.len(), 120] {
            let text = format!(
                "{} {piece} {}",
                "x ".repeat(part)[before..part - 1].trim_start(),
                "y ".repeat(part)
            );
            let all = scan(&ENGINE, &text, Context::default());
            assert_eq!(all.len(), 1, "{before} {}", piece.len());
            let mut slow = Vec::new();
            whole::scan(&ENGINE, &text, Context::default(), &mut slow);
            assert_eq!(all, slow, "{before}");
        }
    }
}
