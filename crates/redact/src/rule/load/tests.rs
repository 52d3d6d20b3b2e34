//! Files of rules, good and bad.

use super::*;
use crate::rule::Target;

fn parse(text: &str) -> Result<(RuleSet, Vec<Remark>), RuleError> {
    RuleSet::parse_with_remarks(text, Path::new("mine.toml"))
}

fn problem(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

/// What configurations of gitleaks are made of.
const GITLEAKS: &str = r#"
title = "gitleaks config"
[extend]
useDefault = false
disabledRules = ["nothing"]
[allowlist]
description = "global"
paths = ['''(?i)\.(?:bmp|gif)$''']
regexes = ['''^\${(?:[A-Z_]+|[a-z_]+)}$''', '''^\$(?:\d+|{\d+})$''']
stopwords = ["014df517-39d1"]
commits = ["abc"]
[[rules]]
id = "adafruit"
description = "x"
regex = '''(?i)[\w.-]{0,50}?(?:adafruit)(?:[ \t\w.-]{0,20})[\s'"]{0,3}(?:=|>|:{1,3}=|\|\||:|=>|\?=|,)[\x60'"\s=]{0,5}([a-z0-9_-]{32})(?:[\x60'"\s;]|\\[nr]|$)'''
entropy = 2
secretGroup = 1
keywords = ["Adafruit"]
tags = ["key"]
[rules.allowlist]
regexTarget = "match"
regexes = ['''x''']
[[rules.allowlists]]
condition = "AND"
stopwords = ["Example"]
[[rules.required]]
id = "other"
[[rules]]
id = "pkcs12-file"
path = '''(?i)(?:^|\/)[^\/]+\.p(?:12|fx)$'''
"#;

#[test]
fn configurations_of_gitleaks_are_read_as_they_are() {
    let (rules, remarks) = parse(GITLEAKS).unwrap();
    assert_eq!(rules.rules.len(), 2);
    let rule = &rules.rules[0];
    assert_eq!(rule.keywords, ["adafruit"]);
    assert_eq!((rule.entropy, rule.secret_group), (Some(2.0), Some(1)));
    assert_eq!((rule.kind, rule.severity), (Kind::Secret, Severity::High));
    assert_eq!(
        (rule.label.as_str(), rule.group.as_str()),
        ("adafruit", "mine")
    );
    assert_eq!(rule.allow[0].target, Target::Match);
    assert!(rule.allow[1].all);
    assert_eq!(rule.allow[1].stopwords, ["example"]);
    assert_eq!(rules.rules[1].pattern, Pattern::File);
    assert_eq!(rules.allow.len(), 1);
    let what: Vec<&str> = remarks.iter().map(|remark| remark.what.as_str()).collect();
    assert_eq!(what.len(), 3, "{what:?}");
    assert!(crate::Engine::new(&rules, |_| true).is_ok());
}

#[test]
fn what_is_wrong_is_named_with_its_file_and_rule() {
    let rule = |rest: &str| {
        format!("[[rules]]\nid = \"good\"\nregex = 'a'\n\n[[rules]]\nid = \"mine\"\n{rest}\n")
    };
    for (rest, why) in [
        ("regex = '(a'", "no expression"),
        ("regex = 'a'\nkind = \"what\"", "no such kind: what"),
        ("regex = 'a'\nseverity = \"huge\"", "no such severity: huge"),
        ("regex = 'a'\ncheck = \"maybe\"", "no such check: maybe"),
        ("regex = 'a'\nsecretGroup = 3", "fewer groups"),
        ("regex = '(?:(?:a{1000}){1000}){1000}'", "expression"),
        ("keywords = ['a']", "neither"),
        ("regex = 'a'\nnames = ['b']", "both"),
        (
            "regex = 'a'\n[[rules.allowlists]]\nregexes = ['[']",
            "allowlist",
        ),
        (
            "regex = 'a'\n[[rules.allowlists]]\ncondition = 'XOR'",
            "no such condition",
        ),
    ] {
        let problem = problem(&rule(rest));
        assert!(problem.starts_with("mine.toml: rule mine: "), "{problem}");
        assert!(
            problem.contains(why) && problem.contains("(line 5)"),
            "{problem}"
        );
    }
    assert!(problem("[[rules]]\nregex = 'a'").contains("rule number 1"));
    assert!(
        problem("[[rules]]\nid = 'a'\nregex = 'a'\n[[rules]]\nid = 'a'\nregex = 'b'")
            .contains("two rules")
    );
    assert!(problem("a = 1\nb = [").starts_with("mine.toml:2: "));
    assert!(problem("[[rules]]\nid = 3").starts_with("mine.toml:2: "));
}

#[test]
fn a_key_that_there_is_not_is_no_key() {
    let rule = "[[rules]]\nid = \"mine\"\nregex = 'a'\n";
    for (text, begin, why) in [
        (
            format!("{rule}keyword = ['a']"),
            "mine.toml: rule mine: ",
            "`keyword`; `keywords` is one (line 1)",
        ),
        (
            format!("{rule}[[rules]]\nregex = 'a'\nsecret_group = 1"),
            "mine.toml: rule number 2: ",
            "`secret_group`; `secretGroup` is one (line 4)",
        ),
        (
            format!("{rule}[[rules.allowlists]]\nregextarget = 'match'"),
            "mine.toml: rule mine: ",
            "`allowlists.regextarget`; `regexTarget` is one",
        ),
        (
            format!("{rule}\n[allowlist]\nwhat = 'match'"),
            "mine.toml:6: ",
            "no key `allowlist.what`",
        ),
        (
            format!("[extend]\nuse_default = true\n{rule}"),
            "mine.toml:2: ",
            "`extend.use_default`; `useDefault` is one",
        ),
        (
            format!("rule = 1\n{rule}"),
            "mine.toml:1: ",
            "`rules` is one",
        ),
    ] {
        let problem = problem(&text);
        assert!(problem.starts_with(begin), "{problem}");
        assert!(problem.contains(why), "{problem}");
    }
}

/// Those of another kind of configuration, as far as they are not used here.
#[test]
fn keys_of_others_are_passed_over() {
    let text = "title = 't'\nminVersion = 'v1'\nprefilter = 'x'\nfilter = 'y'\n[[rules]]\nid = 'a'\nregex = 'a'\n\
        confidence = 'high'\nfilter = 'z'\nvalidate = 'v'\nskipReport = true\nanalyze = 'a'\nrevoke = 'r'\n\
        specificity = 3\ntags = ['t']\nvalueGroup = 1\n[[rules.components]]\nid = 'b'\nwithin = 3\n";
    assert_eq!(parse(text).unwrap().0.rules.len(), 1);
}

#[test]
fn the_rules_that_come_along_are_all_read() {
    for (name, text) in super::super::builtin::FILES {
        let (rules, remarks) = RuleSet::parse_with_remarks(text, Path::new(name)).unwrap();
        assert!(!rules.rules.is_empty() && remarks.is_empty(), "{name}");
    }
}

#[test]
fn files_stand_on_others() {
    let folder = std::env::temp_dir().join(format!("quipu-rules-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let put = |name: &str, text: &str| {
        use std::io::Write as _;
        let mut file = std::fs::File::create(folder.join(name)).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    };
    put(
        "base.toml",
        "[[rules]]\nid = 'a'\nregex = 'a'\n[[rules]]\nid = 'b'\nregex = 'b'",
    );
    put(
        "own.toml",
        "[extend]\npath = 'base.toml'\ndisabledRules = ['a']\n[[rules]]\nid = 'b'\nregex = 'c'",
    );
    put("loop.toml", "[extend]\npath = 'loop.toml'");
    put("all.toml", "[extend]\nuseDefault = true");
    let rules = RuleSet::load(&folder.join("own.toml")).unwrap();
    assert_eq!(rules.rules.len(), 1);
    assert_eq!(rules.rules[0].pattern, Pattern::Regex("c".to_owned()));
    assert!(
        RuleSet::load(&folder.join("loop.toml"))
            .unwrap_err()
            .to_string()
            .contains("too deep")
    );
    assert!(matches!(
        RuleSet::load(&folder.join("none.toml")),
        Err(RuleError::Io { .. })
    ));
    let all = RuleSet::load(&folder.join("all.toml")).unwrap();
    assert_eq!(all.digest(), RuleSet::builtin().digest());
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn the_digest_is_of_what_decides() {
    let digest = |text: &str| parse(text).unwrap().0.digest();
    let base = "[[rules]]\nid = 'a'\nregex = 'a'\n";
    assert_eq!(digest(base).len(), 64);
    assert_eq!(
        digest(base),
        digest(&format!("{base}description = 'x'\nexamples = ['y']"))
    );
    for more in [
        "entropy = 3",
        "check = 'luhn'",
        "keywords = ['a']",
        "path = 'x'",
        "[[rules.allowlists]]\nstopwords = ['s']",
        "secretGroup = 0\nlabel = 'l'",
    ] {
        assert_ne!(digest(base), digest(&format!("{base}{more}")), "{more}");
    }
}
