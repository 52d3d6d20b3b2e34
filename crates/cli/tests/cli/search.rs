use super::env::TestEnv;
use super::machine::{PROJECT, SESSION, furnish, json, user};

fn furnished() -> TestEnv {
    let env = TestEnv::new();
    furnish(&env);
    json(&env, &["import", "--json"]);
    env
}

#[test]
fn shows_where_it_was_said_and_how_to_get_there() {
    let env = furnished();
    let ran = env.run(&["search", "look role:assistant"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    assert_eq!(
        ran.stdout,
        "\
claude-code  demo  2026-11-02 10:01  assistant
    I will look.
    quipu show 11111111 --from 3
"
    );
    let open = ran.stdout.lines().last().unwrap().trim();
    let words: Vec<&str> = open.split(' ').skip(1).collect();
    let shown = env.run(&words);
    assert!(shown.stdout.contains("I will look."), "{}", shown.stdout);
}

#[test]
fn finds_commands_paths_errors_and_titles() {
    let env = furnished();
    for (query, seqs) in [
        ("\"ls -l\"", &[4][..]),
        ("path:demo/a.rs", &[8]),
        ("has:error tool:bash", &[7, 11]),
        ("status:denied", &[11]),
        ("role:reasoning broken", &[2]),
        ("\"ls -l\" -tool:bash", &[]),
        ("agent:claude since:2026-11-02 look", &[3]),
    ] {
        let query = format!("{query} session:{SESSION} -agent:pi");
        let found = json(&env, &["search", &query, "--json"]);
        let mut found: Vec<u64> = found
            .as_array()
            .unwrap()
            .iter()
            .filter(|it| it["run_id"] == SESSION)
            .map(|it| it["seq"].as_u64().unwrap())
            .collect();
        found.sort_unstable();
        assert_eq!(found, seqs, "{query}");
    }
}

#[test]
fn json_gives_ids_seqs_and_offsets() {
    let env = furnished();
    let found = json(
        &env,
        &["search", "\"I will look\"", "--json", "--context", "1"],
    );
    let [found] = found.as_array().unwrap().as_slice() else {
        panic!("{found:#}");
    };
    assert_eq!(found["run_id"], SESSION);
    let shown = json(&env, &["show", found["id"].as_str().unwrap(), "--json"]);
    assert_eq!(shown["session"]["run_id"], SESSION);
    assert_eq!(found["seq"], 3);
    assert_eq!(found["snippet"], "I will look.");
    assert_eq!(found["snippet_offset"], 0);
    assert_eq!(found["matches"], serde_json::json!([[0, 11]]));
    assert_eq!(found["role"], "assistant");
    assert_eq!(found["before"][0]["text"], "It is broken.");
    assert_eq!(found["after"][0]["tool"], "Bash");
}

#[test]
fn a_wrong_query_is_shown_with_the_place() {
    let env = furnished();
    let ran = env.run(&["search", "panic rule:tool"]);
    assert_eq!(ran.code, 2);
    assert_eq!(
        ran.stderr,
        "\
error: there is no filter \"rule:\"
    panic rule:tool
          ^^^^^
hint: did you mean role:? to look for the text, quote it: \"rule:tool\"
"
    );
    for wrong in ["(", "a OR", "\"x"] {
        assert_eq!(env.run(&["search", wrong]).code, 2, "{wrong}");
    }
}

#[test]
fn what_is_ruled_out_may_come_first() {
    let env = furnished();
    let ran = env.run(&["search", "--count", "--", "-agent:claude", "Done"]);
    assert_eq!(
        (ran.stdout.as_str(), ran.code),
        ("0\n", 0),
        "{}",
        ran.stderr
    );
}

#[test]
fn snippets_cannot_act_on_the_terminal() {
    let env = TestEnv::new();
    let evil = "needle \u{1b}]0;pwned\u{7}\u{1b}[31m\u{202e}evil\u{0}\u{9b}1m needle";
    let name = "aaaaaaaa-2222-4333-8444-555555555555";
    env.file(&format!("{PROJECT}/{name}.jsonl"), user(name, 0, evil));
    json(&env, &["import", "--json"]);
    for args in [
        &["search", "needle"][..],
        &["search", "needle", "--jsonl"],
        &["search", "--regex", "need.e"],
    ] {
        let ran = env.run(args);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let active = |c: char| c.is_control() && c != '\n' || c == '\u{202e}' || c == '\u{9b}';
        assert!(ran.stdout.contains("needle"));
        assert!(!ran.stdout.contains(active), "{:?}", ran.stdout);
    }
}

#[test]
fn patterns_are_refused_or_found() {
    let env = furnished();
    let ran = env.run(&["search", "--regex", r"I w\w+ look\.", "--jsonl"]);
    assert_eq!(
        (ran.code, ran.stdout.lines().count()),
        (0, 1),
        "{}",
        ran.stderr
    );
    let ran = env.run(&["search", "--regex", "(unclosed"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("unclosed group"), "{}", ran.stderr);
    let ran = env.run(&["search", "--regex", r"\w{1000}{1000}{1000}"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
}

#[test]
fn an_index_that_is_gone_is_said_and_made_again() {
    let env = furnished();
    let before = env.run(&["search", "look", "--count"]).stdout;
    assert_ne!(before, "0\n");
    std::fs::remove_dir_all(env.path("search")).unwrap();
    let ran = env.run(&["search", "look"]);
    assert_eq!(ran.code, 4);
    assert!(ran.stderr.contains("`quipu import`"), "{}", ran.stderr);
    let ran = env.run(&["import"]);
    assert!(
        ran.stderr.contains("search index was made again"),
        "{}",
        ran.stderr
    );
    assert_eq!(env.run(&["search", "look", "--count"]).stdout, before);
}

#[test]
fn nothing_kept_is_no_error() {
    let env = TestEnv::new();
    let ran = env.run(&["search", "anything"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""));
    assert!(ran.stderr.contains("nothing is kept yet"));
    assert_eq!(env.run(&["search", "anything", "--json"]).stdout, "[]\n");
    assert_eq!(env.run(&["search"]).code, 2);
}
