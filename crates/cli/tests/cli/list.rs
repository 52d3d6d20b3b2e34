use super::env::TestEnv;
use super::machine::{PROJECT, SESSION, assistant, furnish, json, text, user};

fn ids(env: &TestEnv, more: &[&str]) -> Vec<String> {
    let mut args = vec!["list", "--json"];
    args.extend(more);
    let rows = json(env, &args);
    rows.as_array()
        .unwrap()
        .iter()
        .map(|row| row["run_id"].as_str().unwrap()[..4].to_owned())
        .collect()
}

/// Three sessions: 1111 (large, oldest), 2222 (other directory and branch), 3333 (other model, newest).
fn three(env: &TestEnv) {
    let id = |n: u64| format!("{}-2222-4333-8444-555555555555", n.to_string().repeat(8));
    let large: String = (0..9).map(|n| user(&id(1), n, "again and again")).collect();
    env.file(
        &format!("{PROJECT}/{}.jsonl", id(1)),
        large + &assistant(&id(1), 9, &text("ok")),
    );
    let other = user(&id(2), 70, "Tidy up\nplease")
        .replace("/w/demo", "/w/Other")
        .replace("main", "wip");
    env.file(&format!("{PROJECT}/{}.jsonl", id(2)), other);
    let last = user(&id(3), 130, "Last")
        + &assistant(&id(3), 131, &text("a"))
        + &assistant(&id(3), 132, &text("b"));
    env.file(
        &format!("{PROJECT}/{}.jsonl", id(3)),
        last.replace("claude-test-1", "claude-test-2"),
    );
    json(env, &["import", "--json"]);
}

#[test]
fn filters_and_orders() {
    let env = TestEnv::new();
    three(&env);
    assert_eq!(ids(&env, &[]), ["3333", "2222", "1111"]);
    for (args, expected) in [
        (&["--sort", "oldest"][..], &["1111", "2222", "3333"][..]),
        (&["--sort", "size"], &["1111", "3333", "2222"]),
        (&["--sort", "events"], &["1111", "3333", "2222"]),
        (&["--sort", "tokens"], &["3333", "1111", "2222"]),
        (&["--limit", "1"], &["3333"]),
        (&["--limit", "0"], &["3333", "2222", "1111"]),
        (&["--agent", "claude"], &["3333", "2222", "1111"]),
        (&["--agent", "codex"], &[]),
        (
            &["--agent", "codex", "--agent", "claude-code"],
            &["3333", "2222", "1111"],
        ),
        (&["--project", "other"], &["2222"]),
        (&["--branch", "wip"], &["2222"]),
        (&["--model", "test-2"], &["3333"]),
        (&["--title", "tidy"], &["2222"]),
        (&["--since", "2026-11-03"], &["3333"]),
        (
            &["--since", "2026-11-02", "--until", "2026-11-02"],
            &["2222"],
        ),
        (&["--until", "2026-11-01T12:00:00Z"], &["1111"]),
        (&["--since", "0h"], &[]),
    ] {
        assert_eq!(ids(&env, args), expected, "{args:?}");
    }
}

#[test]
fn a_table_for_people() {
    let env = TestEnv::new();
    three(&env);
    let ran = env.run(&["list"]);
    assert_eq!(
        ran.stdout,
        "ID        WHEN              AGENT        PROJECT  TITLE            ASKED  TOOLS  TOKENS
33333333  2026-11-03 10:12  claude-code  demo     Last                 1      0     230
22222222  2026-11-02 10:10  claude-code  Other    Tidy up              1      0
11111111  2026-11-01 10:09  claude-code  demo     again and again      9      0     115
"
    );
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let ran = env.run(&["list", "--limit", "2"]);
    assert_eq!(ran.stderr, "the first 2 of 3; --limit 0 shows all\n");
    let coloured = env.run(&["--color", "always", "list"]);
    assert!(coloured.stdout.contains("\x1b["));
    let output = env
        .command(&["list"])
        .env("NO_COLOR", "1")
        .env("CLICOLOR_FORCE", "0")
        .output()
        .unwrap();
    assert!(!output.stdout.contains(&b'\x1b'));
}

#[test]
fn sub_agents_and_recorded_runs_have_their_marks() {
    let env = TestEnv::new();
    furnish(&env);
    json(&env, &["import", "--json"]);
    let started = r#"{"type":"run.started","payload":{"name":"nightly","kind":"workflow"}}"#;
    env.run_with(&["emit", "--run", "nightly-1"], started)
        .code
        .to_string();
    let ran = env.run(&["list"]);
    assert!(
        ran.stdout.contains("1 sub-agent") && ran.stdout.contains("reconstructed"),
        "{}",
        ran.stdout
    );
    assert!(
        ran.stdout.lines().nth(1).unwrap().starts_with("nightly-1 "),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.contains("quipu"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("agent-a1"));
    let all = env.run(&["list", "--all"]);
    assert!(
        all.stdout.contains(&format!("{SESSION}.agent-a1")),
        "{}",
        all.stdout
    );
    let lines = env.run(&["list", "--all", "--jsonl", "--agent", "quipu"]);
    let row: serde_json::Value = serde_json::from_str(lines.stdout.trim_end()).unwrap();
    assert_eq!(
        (&row["run_id"], &row["events"], &row["title"]),
        (&"nightly-1".into(), &1.into(), &"nightly".into())
    );
}

#[test]
fn ids_are_as_short_as_they_can_be() {
    let env = TestEnv::new();
    for id in ["0199aaaa-1111", "0199aaaa-2222", "77777777-1111"] {
        let id = format!("{id}-4333-8444-555555555555");
        env.file(&format!("{PROJECT}/{id}.jsonl"), user(&id, 0, "hi"));
    }
    json(&env, &["import", "--json"]);
    let ran = env.run(&["list"]);
    let mut shown: Vec<&str> = ran
        .stdout
        .lines()
        .skip(1)
        .map(|line| line.split(' ').next().unwrap())
        .collect();
    shown.sort_unstable();
    assert_eq!(shown, ["0199aaaa-1", "0199aaaa-2", "77777777"]);
    for id in shown {
        assert_eq!(env.run(&["show", id]).code, 0, "{id}");
    }
    let ran = env.run(&["show", "0199"]);
    assert_eq!(
        (ran.code, ran.stderr.as_str()),
        (
            3,
            "error: \"0199\" is the beginning of several sessions or runs
  ID          WHEN              AGENT        TITLE
  0199aaaa-1  2026-11-01 10:00  claude-code  hi
  0199aaaa-2  2026-11-01 10:00  claude-code  hi
hint: give more of the id
"
        )
    );
    assert_eq!(env.run(&["show", "7"]).code, 0);
}

#[test]
fn an_empty_home_says_what_to_do() {
    let env = TestEnv::new();
    let ran = env.run(&["list"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""));
    assert!(ran.stderr.contains("`quipu up --once`"), "{}", ran.stderr);
    assert_eq!(env.run(&["list", "--json"]).stdout, "[]\n");
    assert_eq!(env.run(&["list", "--jsonl"]).stdout, "");
    assert!(!env.path("index.sqlite").exists());
}

#[test]
fn lines_fit_the_width() {
    let env = TestEnv::new();
    furnish(&env);
    let long = "44444444-2222-4333-8444-555555555555";
    let wide = user(long, 0, &"漢字かな ".repeat(30))
        .replace("/w/demo", &format!("/w/{}", "x".repeat(60)));
    env.file(&format!("{PROJECT}/{long}.jsonl"), wide);
    json(&env, &["import", "--json"]);
    for columns in [60, 80, 100, 120] {
        for args in [
            &["list"][..],
            &["prune", "--older-than", "0h"],
            &["show", long],
        ] {
            let output = env
                .command(args)
                .env("COLUMNS", columns.to_string())
                .output()
                .unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            for line in text.lines() {
                // Behind the table is prose.
                if line.is_empty() && args[0] == "prune" {
                    break;
                }
                // The path of a log and the id of a sub-agent or copy are there to be copied.
                if line.starts_with('/') || line.starts_with(&format!("{SESSION}.")) {
                    continue;
                }
                let width = line.chars().count() + line.chars().filter(|c| *c > '\u{3000}').count();
                assert!(width <= columns, "{args:?} {columns}: {width} {line}");
            }
        }
    }
    let output = env
        .command(&["list"])
        .env("COLUMNS", "80")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let header = text.lines().next().unwrap();
    assert!(
        header.contains("TITLE") && !header.contains("ASKED"),
        "{text}"
    );
}

#[test]
fn projects_are_directories_or_names() {
    let env = TestEnv::new();
    three(&env);
    for (project, expected) in [
        ("demo", &["3333", "1111"][..]),
        ("de", &["3333", "1111"]),
        ("emo", &[]),
        ("/w/demo", &["3333", "1111"]),
        ("/w/demo/", &["3333", "1111"]),
        ("/w/", &["3333", "2222", "1111"]),
        ("/w/dem", &[]),
        (".", &[]),
    ] {
        assert_eq!(ids(&env, &["--project", project]), expected, "{project}");
    }
    let output = env
        .command(&["list", "--project", ".", "--jsonl"])
        .current_dir("/")
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap().lines().count(), 3);
    let ran = env.run(&["list", "--agent", "claud-code"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
    assert!(ran.stderr.contains("claude-code, cline"), "{}", ran.stderr);
    assert_eq!(ids(&env, &["--agent", "quipu"]), [""; 0]);
    for since in ["today", "yesterday", "3mo", "1y"] {
        assert_eq!(env.run(&["list", "--since", since]).code, 0, "{since}");
    }
}

#[test]
fn documents_have_no_characters_that_act() {
    let env = TestEnv::new();
    let id = "44444444-2222-4333-8444-555555555555";
    let odd = "a\u{9b}b\u{7f}c\u{202e}d\u{200b}e";
    env.file(&format!("{PROJECT}/{id}.jsonl"), user(id, 0, odd));
    json(&env, &["import", "--json"]);
    for args in [
        &["list", "--json"][..],
        &["list", "--jsonl"],
        &["show", id, "--json"],
        &["show", id, "--jsonl"],
        &["tree", id, "--json"],
        &["prune", "--older-than", "0h", "--json"],
    ] {
        let ran = env.run(args);
        assert!(
            ran.stdout.contains("a\\u009bb\\u007fc\\u202ed\\u200be"),
            "{args:?}: {}",
            ran.stdout
        );
        assert!(
            !ran.stdout
                .contains(['\u{9b}', '\u{7f}', '\u{202e}', '\u{200b}']),
            "{args:?}"
        );
    }
}

#[test]
fn a_day_means_the_same_to_list_and_search() {
    let env = TestEnv::new();
    three(&env);
    let ids = |rows: &serde_json::Value| {
        let rows = rows.as_array().unwrap().iter();
        let mut ids: Vec<String> = rows
            .map(|row| row["id"].as_str().unwrap().to_owned())
            .collect();
        ids.sort();
        ids.dedup();
        ids
    };
    for day in ["2026-11-01", "2026-11-02", "2026-11-03"] {
        let listed = json(&env, &["list", "--json", "--since", day, "--until", day]);
        let query = format!("since:{day} until:{day}");
        let found = json(&env, &["search", &query, "--json", "--limit", "0"]);
        assert_eq!(ids(&listed).len(), 1, "{day}");
        assert_eq!(ids(&listed), ids(&found), "{day}");
    }
}
