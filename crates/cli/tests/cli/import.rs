use std::io::Write as _;
use std::time::Duration;

use super::env::TestEnv;
use super::machine::{
    DELETED, PROJECT, SESSION, assistant, database, figures, furnish, json, listing, text, user,
};

#[test]
fn imports_everything_that_a_home_has() {
    let env = TestEnv::new();
    furnish(&env);
    let ran = env.run(&["import"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{}", ran.stdout);
    assert!(
        ran.stdout.starts_with(
            "AGENT        LOGS  NEW  RECORDS  EVENTS  NOTES  REPEATS  SKIPPED
claude-code"
        ),
        "{}",
        ran.stdout
    );
    assert!(
        !ran.stdout.contains('\x1b'),
        "no escapes where there is no terminal"
    );
    let rows = figures(&env, "");
    let ids: Vec<&str> = rows
        .iter()
        .map(|row| row["run_id"].as_str().unwrap())
        .collect();
    let sub = format!("{SESSION}.agent-a1");
    assert!(
        ids.contains(&SESSION) && ids.contains(&&*sub) && ids.contains(&DELETED),
        "{ids:?}"
    );
    let row = |id: &str| rows.iter().find(|row| row["run_id"] == id).unwrap();
    let main = row(SESSION);
    assert_eq!(
        (
            &main["prompts"],
            &main["tool_calls"],
            &main["failures"],
            &main["denials"],
            &main["dangling"]
        ),
        (&1.into(), &5.into(), &1.into(), &1.into(), &1.into())
    );
    assert_eq!(row(&sub)["parent"], SESSION);
    assert_eq!(row(&sub)["parent_call"], "t5");
    assert_eq!(
        (&row(DELETED)["reconstructed"], &row(DELETED)["prompts"]),
        (&true.into(), &2.into())
    );
}

#[test]
fn the_json_summary_accounts_for_every_record() {
    let env = TestEnv::new();
    furnish(&env);
    let report = json(&env, &["import", "--json"]);
    for key in [
        "files",
        "unchanged",
        "read",
        "kept",
        "unknown",
        "empty",
        "credentials",
        "bytes",
        "new_bytes",
        "copies",
    ] {
        assert!(report[key].is_u64(), "{key}: {report}");
    }
    assert_eq!(
        (&report["credentials"], &report["unchanged"]),
        (&1.into(), &0.into())
    );
    assert!(report["problems"].as_array().unwrap().is_empty());
    assert!(report["unknown_files"].as_array().unwrap().is_empty());
    let claude = &report["agents"]["claude-code"];
    let n = |key: &str| claude[key].as_u64().unwrap();
    let dropped: u64 = claude["dropped"]
        .as_object()
        .unwrap()
        .values()
        .map(|n| n.as_u64().unwrap())
        .sum();
    assert_eq!(n("records"), n("mapped") + n("noted") + dropped);
    assert!(n("events") >= n("mapped") && n("sessions") >= 3 && claude["mended"].is_object());
}

#[test]
fn what_has_not_changed_is_not_read_again() {
    let env = TestEnv::new();
    furnish(&env);
    let first = json(&env, &["import", "--json"]);
    let before = figures(&env, "");
    let second = json(&env, &["import", "--json"]);
    assert_eq!(
        (&second["read"], &second["new_bytes"]),
        (&0.into(), &0.into()),
        "{second}"
    );
    assert!(second["unchanged"].as_u64() > Some(0) && first["read"].as_u64() > Some(0));
    assert_eq!(before, figures(&env, ""));
    assert!(env.run(&["import"]).stdout.starts_with("Nothing new"));
}

#[test]
fn a_log_that_grew_is_read_from_where_it_ended() {
    let env = TestEnv::new();
    furnish(&env);
    json(&env, &["import", "--json"]);
    let log = env.path(&format!("{PROJECT}/{SESSION}.jsonl"));
    let more = user(SESSION, 30, "One more thing") + &assistant(SESSION, 31, &text("Sure."));
    let mut file = std::fs::OpenOptions::new().append(true).open(log).unwrap();
    file.write_all(more.as_bytes()).unwrap();
    let report = json(&env, &["import", "--json"]);
    assert_eq!(report["new_bytes"], more.len());
    assert_eq!(report["agents"]["claude-code"]["events"], 2);
    assert_eq!(report["agents"]["claude-code"]["sessions"], 0, "no new one");
    let shown = env.run(&["show", SESSION, "--jsonl"]);
    assert_eq!(shown.stdout.matches("One more thing").count(), 1);
}

#[test]
fn a_dry_run_leaves_nothing_behind() {
    let env = TestEnv::new();
    furnish(&env);
    let home = env.path("new/home");
    let ran = env.run(&["--home", home.to_str().unwrap(), "import", "--dry-run"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("Nothing was kept."), "{}", ran.stdout);
    assert!(!home.exists() && !env.path("new").exists());
}

#[test]
fn nothing_of_the_agents_is_touched() {
    let env = TestEnv::new();
    furnish(&env);
    let open = database(&env);
    let before = listing(&env.path("person"));
    assert!(
        before
            .iter()
            .any(|file| file.0.ends_with("opencode.db-wal"))
    );
    for args in [
        &["import"][..],
        &["import", "--rebuild"],
        &["up", "--once"],
        &["list"],
        &["show", SESSION],
        &["show", "ses_1"],
        &["doctor", "--check"],
        &["prune", "--agent", "claude-code", "--yes"],
        &[],
    ] {
        let ran = env.run(args);
        assert_eq!(ran.code, 0, "{args:?}: {}{}", ran.stdout, ran.stderr);
        let after = listing(&env.path("person"));
        let names = |files: &[(std::path::PathBuf, i64, i64, Vec<u8>)]| -> Vec<String> {
            files
                .iter()
                .map(|file| file.0.display().to_string())
                .collect()
        };
        assert_eq!(names(&before), names(&after), "{args:?}");
        assert!(before == after, "{args:?}");
    }
    drop(open);
}

#[test]
fn what_is_given_is_what_is_read() {
    let env = TestEnv::new();
    let log = env.file(
        "elsewhere/x.jsonl",
        user(SESSION, 0, "hi") + &assistant(SESSION, 1, &text("yes")),
    );
    let report = json(&env, &["import", "--json", &log]);
    assert_eq!(report["agents"]["claude-code"]["events"], 2);

    // A path that is not there, and one without anything known in it.
    let ran = env.run(&["import", "nowhere"]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(ran.stderr.contains("nowhere"), "{}", ran.stderr);
    let ran = env.run(&["import", &env.file("elsewhere/notes.txt", "just text\n")]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("notes.txt is not known, for one"),
        "{}",
        ran.stderr
    );

    // What is wrong with one log does not fail the others.
    env.file("elsewhere/bad.jsonl", b"\x00\xff\xfe\n{\"oops");
    let ran = env.run(&["import", env.path("elsewhere").to_str().unwrap()]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

#[test]
fn only_the_agents_that_are_asked_for() {
    let env = TestEnv::new();
    furnish(&env);
    let report = json(&env, &["import", "--json", "--agent", "codex"]);
    assert_eq!((&report["files"], &report["read"]), (&0.into(), &0.into()));
    let report = json(
        &env,
        &["import", "--json", "--agent", "codex", "--agent", "claude"],
    );
    assert!(report["read"].as_u64() > Some(0));
}

#[test]
fn a_home_that_cannot_be_used_is_the_environments_fault() {
    let env = TestEnv::new();
    furnish(&env);
    let file = env.file("file", "");
    let ran = env.run(&["--home", &format!("{file}/home"), "import"]);
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    assert!(
        ran.stderr.starts_with("error: cannot use HOME/file/home"),
        "{}",
        ran.stderr
    );
    // A catalogue that is none.
    env.file(
        "index.sqlite",
        "this is no database, although it is long enough to be one".repeat(30),
    );
    let ran = env.run(&["import"]);
    assert_eq!(ran.code, 4, "{}", ran.stderr);
}

#[test]
fn the_catalogue_can_be_made_again() {
    let env = TestEnv::new();
    furnish(&env);
    json(&env, &["import", "--json"]);
    let before = figures(&env, "");
    for file in ["index.sqlite", "index.sqlite-wal", "index.sqlite-shm"] {
        std::fs::remove_file(env.path(file)).ok();
    }
    std::fs::remove_dir_all(env.path("person")).unwrap();
    let report = json(&env, &["import", "--rebuild", "--json"]);
    assert!(report["read"].as_u64() > Some(0));
    assert_eq!(before, figures(&env, ""));
    assert!(env.run(&["show", SESSION]).stdout.contains("Make it work"));
}

#[test]
fn changes_are_imported_as_they_happen() {
    let env = TestEnv::new();
    furnish(&env);
    let watching = env.start(&["import", "--watch"]);
    assert!(watching.error_line().starts_with("watching "));
    let log = env.path(&format!("{PROJECT}/{SESSION}.jsonl"));
    let mut file = std::fs::OpenOptions::new().append(true).open(log).unwrap();
    file.write_all(user(SESSION, 40, "while you watch").as_bytes())
        .unwrap();
    drop(file);
    let said = loop {
        let line = watching.line();
        if line.contains("+1 event") {
            break line;
        }
    };
    assert!(
        said.contains("claude-code") && said.contains(SESSION),
        "{said}"
    );
    // A session that begins while it watches.
    let other = "22222222-2222-4333-8444-555555555555";
    env.file(
        &format!("{PROJECT}/{other}.jsonl"),
        user(other, 0, "a new one"),
    );
    let said = watching.line();
    assert!(said.contains(other) && said.contains("a new one"), "{said}");
    drop(watching);
    assert!(env.run(&["show", other]).stdout.contains("a new one"));
}

/// Kill -9 at several instants; what is done afterwards is what an undisturbed import does.
#[test]
fn killed_while_importing() {
    const SESSIONS: u64 = 400;
    let env = TestEnv::new();
    furnish(&env);
    for n in 0..SESSIONS {
        let session = format!("{n:08}-aaaa-4333-8444-555555555555");
        let lines: String = (0..40)
            .map(|at| {
                user(&session, 2 * at, &format!("prompt {at} of {n}"))
                    + &assistant(&session, 2 * at + 1, &text(&"word ".repeat(40)))
            })
            .collect();
        env.file(&format!("{PROJECT}/{session}.jsonl"), lines);
    }
    let run = |home: &str, args: &[&str]| {
        let home = env.path(home);
        let mut all = vec!["--home", home.to_str().unwrap()];
        all.extend(args);
        env.run(&all)
    };
    let ran = run("calm", &["import"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let calm = figures(&env, "calm");
    assert!(calm.len() as u64 >= SESSIONS);
    let found = |home: &str| -> u64 {
        let ran = run(home, &["search", "word", "--count"]);
        assert!(
            ran.code == 0 || ran.stderr.contains("import"),
            "{}",
            ran.stderr
        );
        ran.stdout.trim().parse().unwrap_or(0)
    };
    assert_eq!(found("calm"), SESSIONS * 40);
    let mut unfinished = 0;
    for round in 0..6_u64 {
        let home = format!("round-{round}");
        // Killed more than once, at instants that differ.
        for time in [20 + 25 * round, 60 + 40 * round] {
            let mut child = env
                .command(&[
                    "--home",
                    env.path(&home).to_str().unwrap(),
                    "import",
                    "--threads",
                    "2",
                ])
                .stdout(std::process::Stdio::null())
                .stderr(std::process::Stdio::null())
                .spawn()
                .unwrap();
            std::thread::sleep(Duration::from_millis(time));
            child.kill().unwrap();
            unfinished += u32::from(!child.wait().unwrap().success());
            // What counts is found, and only once, whatever was being done.
            assert!(found(&home) <= SESSIONS * 40, "round {round}");
        }
        let ran = run(&home, &["import"]);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "round {round}");
        assert!(calm == figures(&env, &home), "round {round}");
        assert_eq!(found(&home), SESSIONS * 40, "round {round}");
        let ran = run(&home, &["doctor", "--check"]);
        assert_eq!(ran.code, 0, "round {round}: {}", ran.stdout);
    }
    assert!(unfinished > 0, "the test must have something to test");
}

/// Runs a command and kills it after so long. Gives whether it was killed before its end.
fn killed(env: &TestEnv, args: &[&str], after: Duration) -> bool {
    let mut child = env
        .command(args)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(after);
    child.kill().unwrap();
    !child.wait().unwrap().success()
}

/// What a home shows of each of its transcripts.
fn shown(env: &TestEnv, home: &str) -> Vec<String> {
    let at = env.path(home);
    let show = |row: &serde_json::Value| {
        let id = row["run_id"].as_str().unwrap();
        let ran = env.run(&["--home", at.to_str().unwrap(), "show", id, "--jsonl"]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ran.stdout
    };
    figures(env, home).iter().map(show).collect()
}

/// Kill -9 while the catalogue or the events are made again: the same result as undisturbed.
#[test]
fn killed_while_things_are_made_again() {
    const SESSIONS: usize = 60;
    let env = TestEnv::new();
    furnish(&env);
    for n in 0..SESSIONS {
        let session = format!("{n:08}-aaaa-4333-8444-555555555555");
        let lines: String = (0..30)
            .map(|at| {
                user(
                    &session,
                    at,
                    &format!("prompt {at} of {n} {}", "word ".repeat(30)),
                )
            })
            .collect();
        env.file(&format!("{PROJECT}/{session}.jsonl"), lines);
    }
    let at = env.path("home");
    let home = at.to_str().unwrap();
    assert_eq!(env.run(&["--home", home, "import"]).code, 0);
    let (calm, events) = (figures(&env, "home"), shown(&env, "home"));
    let mut unfinished = 0;
    for round in 0..6 {
        for args in [&["import", "--rebuild"][..], &["import"]] {
            if args.len() == 1 {
                std::fs::remove_dir_all(at.join("events")).unwrap();
            }
            let all = [&["--home", home], args].concat();
            for after in [8 + 9 * round, 30 + 17 * round] {
                unfinished += u32::from(killed(&env, &all, Duration::from_millis(after)));
            }
            let ran = env.run(&all);
            assert_eq!(ran.code, 0, "{args:?}, round {round}: {}", ran.stderr);
            assert!(figures(&env, "home") == calm, "{args:?}, round {round}");
            let ran = env.run(&["--home", home, "doctor", "--check"]);
            assert_eq!(ran.code, 0, "{args:?}, round {round}: {}", ran.stdout);
        }
    }
    assert!(shown(&env, "home") == events);
    let found = env.run(&["--home", home, "search", "word", "--count"]);
    assert_eq!(found.stdout.trim(), (SESSIONS * 30).to_string());
    assert!(unfinished > 0, "the test must have something to test");
}

/// Kill -9 while a home of an earlier version is brought up to date: the same result as undisturbed.
#[test]
fn killed_while_an_old_home_is_brought_up_to_date() {
    fn copy(from: &std::path::Path, to: &std::path::Path) {
        std::fs::create_dir_all(to).unwrap();
        for entry in std::fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            let to = to.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                copy(&entry.path(), &to);
            } else {
                std::fs::copy(entry.path(), to).unwrap();
            }
        }
    }
    let releases =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../store/fixtures/stores");
    let env = TestEnv::new();
    let (mut homes, mut unfinished) = (0, 0);
    for entry in std::fs::read_dir(releases).unwrap() {
        let release = entry.unwrap().path();
        let name = |what: &str| format!("{homes}-{what}");
        let calm = env.path(&name("calm"));
        copy(&release, &calm);
        let import = |home: &std::path::Path| {
            let ran = env.run(&["--home", home.to_str().unwrap(), "import"]);
            assert_eq!(ran.code, 0, "{}", ran.stderr);
        };
        import(&calm);
        let (expected, events) = (figures(&env, &name("calm")), shown(&env, &name("calm")));
        assert!(!expected.is_empty());
        for round in 0..5 {
            let home = env.path(&name(&round.to_string()));
            copy(&release, &home);
            let args = ["--home", home.to_str().unwrap(), "import"];
            for after in [1 + 3 * round, 12 + 7 * round] {
                unfinished += u32::from(killed(&env, &args, Duration::from_millis(after)));
            }
            import(&home);
            let home = name(&round.to_string());
            assert!(figures(&env, &home) == expected, "{home}");
            assert!(shown(&env, &home) == events, "{home}");
        }
        homes += 1;
    }
    assert!(
        homes > 0 && unfinished > 0,
        "the test must have something to test"
    );
}

/// A disk that takes no more, as far as a limit on the size of files can play one: the import ends and says
/// why, and when there is room again it is as if nothing had been.
#[test]
fn no_room() {
    let env = TestEnv::new();
    furnish(&env);
    // What does not compress.
    let mut state = 1_u64;
    let noise: String = (0..1_000_000)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            char::from(b'a' + u8::try_from(state >> 33 & 15).unwrap())
        })
        .collect();
    let session = "33333333-2222-4333-8444-555555555555";
    env.file(
        &format!("{PROJECT}/{session}.jsonl"),
        user(session, 0, &noise),
    );
    let home = |name: &str| env.path(name).to_str().unwrap().to_owned();
    let calm = home("calm");
    assert_eq!(env.run(&["--home", &calm, "import"]).code, 0);
    let tight = home("tight");
    assert_eq!(env.run(&["--home", &tight, "list"]).code, 0);
    let binary = env!("CARGO_BIN_EXE_quipu");
    let script = format!("ulimit -f 200; exec {binary} --home {tight} import --threads 1");
    let mut shell = std::process::Command::new("bash");
    shell.args(["-c", &script]).env_clear();
    shell.env("HOME", env.path("person"));
    let output = shell.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("error: "), "{said}");
    assert_eq!(env.run(&["--home", &tight, "import"]).code, 0);
    assert!(figures(&env, "calm") == figures(&env, "tight"));
}
