//! What values are given to by where they stand.

use super::*;
use std::sync::LazyLock;

static ENGINE: LazyLock<Engine> =
    LazyLock::new(|| Engine::new(&RuleSet::builtin(), |rule| rule.kind == Kind::Secret).unwrap());

/// What is left of a template, with dots for what stands in place of a secret; and the template with them.
fn dotted(template: &str, seed: u64) -> (String, String) {
    let sample = expand(template, seed).unwrap();
    let done = run(&ENGINE, &options(), sample.text.as_bytes());
    let mut left = done.text().to_owned();
    for finding in &done.findings {
        left = left.replace(&finding.placeholder, "…");
    }
    let mut expected = sample.text;
    if let Some(secret) = sample.secret {
        // What replaces a number is a string.
        let number = expected[secret.clone()]
            .bytes()
            .all(|byte| byte.is_ascii_digit());
        expected.replace_range(secret, if number { "\"…\"" } else { "…" });
    }
    (left, expected)
}

fn holds(templates: &[&str]) {
    for template in templates {
        for seed in 1..4 {
            let (left, expected) = dotted(template, seed);
            assert_eq!(left, expected, "{template}");
        }
    }
}

#[test]
fn numbers_are_given_to_names_of_passwords() {
    holds(&[
        r#"{{"password":«8473{digit:4}»}}"#,
        r#"{{"dbPassword":«8473{digit:4}»}}"#,
        r#"{{"USER_PIN":«8473{digit:2}»}}"#,
        r#"{{"passcode":{{"value":«8473{digit:4}»}}}}"#,
        r#"[{{"secret":«8473{digit:4}»}}]"#,
        // These count, or tell things apart, or are too short.
        r#"{{"max_tokens":8473{digit:4},"token_count":8473{digit:4},"spin":8473{digit:4}}}"#,
        r#"{{"password_id":8473{digit:4},"password_changed_at":17{digit:8},"secretVersion":8473{digit:4}}}"#,
        r#"{{"password":84731,"pin":8473.5{digit:4},"pincode":56{digit:4},"password_count":8473{digit:4}}}"#,
    ]);
}

#[test]
fn lists_of_arguments_are_read_as_command_lines() {
    holds(&[
        r#"{{"args":["--password","«Kx7-{alnum:12}»"]}}"#,
        r#"{{"argv":["tool","--api-key","«{alnum:32}»","--verbose"]}}"#,
        r#"["curl","-u","ada:«Kx7-{alnum:12}»","https://example.org"]"#,
        r#"{{"cmd":["/usr/bin/curl","-s","-u","ada:«Kx7-{alnum:12}»"]}}"#,
        r#"{{"args":["-H","Authorization: Bearer «{alnum:40}»"]}}"#,
        r#"{{"arguments":"{{\"args\":[\"--password\",\"«Kx7-{alnum:12}»\"]}}"}}"#,
        r#"{{"args":["--token","«{alnum:32}»"],"more":["x","y"]}}"#,
        // What is given to nothing, or to something else.
        r#"{{"args":["docker","run","-u","1000:1000"]}}"#,
        r#"{{"args":["--password","--verbose","--password-file","/run/secrets/db"]}}"#,
        r#"{{"lines":["-let password","+ Kx7-{alnum:12}","- token","Kx7-{alnum:12}"]}}"#,
        r#"{{"args":["--name","Kx7-{alnum:12}",["--password"],"Kx7-{alnum:12}"]}}"#,
    ]);
}

#[test]
fn a_list_that_was_seen_clean_is_looked_at_behind_a_flag() {
    let word = expand("Kx7-{alnum:12}", 5).unwrap().text;
    let plain = format!("{{\"args\":[\"x\",\"{word}\"]}}\n").repeat(4);
    let input = format!("{plain}{{\"args\":[\"--password\",\"{word}\"]}}\n{plain}");
    let done = run(&ENGINE, &options(), input.as_bytes());
    assert_eq!(done.findings.len(), 1);
    assert_eq!(done.findings[0].line, 5);
    assert_eq!(done.findings[0].field, "args[1]");
}

#[test]
fn headers_are_read_as_they_stand_in_a_request() {
    holds(&[
        r#"{{"name":"Authorization","value":"Token «{alnum:32}»"}}"#,
        r#"{{"value":"ApiKey «{alnum:32}»","header":"authorization"}}"#,
        r#"{{"headers":{{"Authorization":"Token «{alnum:32}»"}}}}"#,
        r#"{{"key":"API_KEY","value":"«{alnum:32}»"}}"#,
        r#"{{"variable":"DB_PASSWORD","value":"«Kx7-{alnum:12}»"}}"#,
        r#"{{"name":"Authorization","value":"Token missing"}}"#,
        r#"{{"name":"Accept","value":"Token {alnum:32}"}}"#,
    ]);
    // Also the second time.
    let line = expand(r#"{{"Authorization":"Token {alnum:32}"}}"#, 1).unwrap();
    let input = format!("{}\n", line.text).repeat(5);
    let done = run(&ENGINE, &options(), input.as_bytes());
    assert_eq!(done.findings.len(), 5);
}

#[test]
fn values_have_the_name_of_what_they_are_the_value_of() {
    holds(&[
        r#"{{"secret":{{"value":"«{alnum:32}»"}}}}"#,
        r#"{{"password":{{"stringValue":"«Kx7-{alnum:12}»"}}}}"#,
        r#"{{"api_key":{{"type":"string","plaintext":"«{alnum:32}»"}}}}"#,
        r#"{{"passwords":[{{"value":"«Kx7-{alnum:12}»"}}]}}"#,
        r#"{{"secrets":[{{"name":"db","value":"«{alnum:32}»"}}]}}"#,
        r#"{{"settings":[{{"name":"db","value":"{alnum:32}"}}]}}"#,
        r#"{{"password":{{"type":"Kx7-{alnum:12}","description":"Kx7-{alnum:12}"}}}}"#,
        r#"{{"color":{{"value":"Kx7-{alnum:12}"}}}}"#,
        r#"{{"value":"Kx7-{alnum:12}"}}"#,
    ]);
}

#[test]
fn a_rule_may_be_about_what_tells_records_apart() {
    let input = expand(r#"{{"uuid":"{uuid}","input_tokens":4711}}"#, 1).unwrap();
    assert!(
        run(&ENGINE, &options(), input.text.as_bytes())
            .findings
            .is_empty()
    );
    for pattern in [
        Pattern::Regex(r"\b[0-9a-f]{8}-[0-9a-f]{4}-".into()),
        Pattern::Named {
            names: vec!["tokens".into()],
            value: r"\d{4}".into(),
        },
        Pattern::Regex(r"\b[0-9]{4}\b".into()),
    ] {
        let rules = RuleSet {
            rules: vec![rule("own", "own", Kind::Pii, pattern)],
            allow: Vec::new(),
        };
        let engine = Engine::new(&rules, |_| true).unwrap();
        let findings = run(&engine, &options(), input.text.as_bytes()).findings;
        assert!(!findings.is_empty());
    }
}

/// Such an id stands on every line and is passed by, unless somebody says that it is a secret.
#[test]
fn an_id_is_removed_when_a_rule_is_about_it() {
    let id = "3f0c9a52-7b1e-4d6a-9c3f-5e8d7a1b2c40";
    let line = format!("{{\"uuid\":\"{id}\",\"input_tokens\":12345678}}\n");
    let mut rules = RuleSet::builtin();
    let found = |rules: &RuleSet| {
        let engine = Engine::new(rules, |_| true).unwrap();
        run(&engine, &options(), line.as_bytes()).text().to_owned()
    };
    assert_eq!(found(&rules), line);
    let regex = |text: &str| Pattern::Regex(text.into());
    rules
        .rules
        .push(rule("account", "account", Kind::Identity, regex(id)));
    assert!(!found(&rules).contains(id));
}
