use super::env::TestEnv;
use super::machine::{DELETED, PROJECT, SESSION, furnish, json, user};

fn resume(env: &TestEnv, session: &str, cwd: &str) -> String {
    let cwd = serde_json::Value::from(cwd).to_string();
    let log = user(session, 0, "hi").replace("\"/w/demo\"", &cwd);
    env.file(&format!("{PROJECT}/{session}.jsonl"), log);
    json(env, &["import", "--json"]);
    let ran = env.run(&["resume", session]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    ran.stdout
}

#[test]
fn prints_what_a_shell_can_run() {
    let env = TestEnv::new();
    let command = |n: u64, cwd: &str| {
        let session = format!("{n:08}-2222-4333-8444-555555555555");
        let line = resume(&env, &session, cwd);
        let end = format!(" && claude --resume {session}\n");
        line.strip_suffix(&end)
            .unwrap_or_else(|| panic!("{line}"))
            .to_owned()
    };
    for (n, (cwd, shown)) in [
        ("/w/plain", "cd /w/plain"),
        ("/w/two words", "cd '/w/two words'"),
        ("/w/it's; rm -rf ~", r"cd '/w/it'\''s; rm -rf ~'"),
        ("/w/$(reboot)`x`", "cd '/w/$(reboot)`x`'"),
        ("-P", "cd -- -P"),
        ("/w/a\nb\u{1b}[31m", r#"cd "$(printf '/w/a\012b\033[31m')""#),
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(command(n as u64, cwd), shown);
    }
}

#[test]
fn runs_it_where_the_session_was() {
    let env = TestEnv::new();
    let project = env.path("it's here");
    std::fs::create_dir(&project).unwrap();
    resume(&env, SESSION, project.to_str().unwrap());
    let agent = env.file("bin/claude", "#!/bin/sh\npwd\necho \"$@\"\nexit 7\n");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(&agent, mode).unwrap();
    let output = env
        .command(&["resume", SESSION, "--run"])
        .env(
            "PATH",
            format!("{}:/usr/bin:/bin", env.path("bin").display()),
        )
        .output()
        .unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = stdout.lines().collect();
    assert_eq!(
        lines,
        [
            project.canonicalize().unwrap().to_str().unwrap(),
            &format!("--resume {SESSION}")
        ]
    );
    assert_eq!(output.status.code(), Some(7), "the agent's own code");
    std::fs::remove_dir(&project).unwrap();
    let ran = env.run(&["resume", SESSION, "--run"]);
    assert_eq!(ran.code, 4);
    assert!(ran.stderr.contains("is not there"), "{}", ran.stderr);
}

#[test]
fn what_cannot_be_continued_is_said() {
    let env = TestEnv::new();
    furnish(&env);
    json(&env, &["import", "--json"]);
    env.run_with(
        &["emit", "--run", "recorded"],
        r#"{"type":"run.started","payload":null}"#,
    )
    .code
    .to_string();
    for (id, code, why) in [
        (DELETED, 3, "is gone"),
        (&*format!("{SESSION}.agent-a1"), 3, "is a sub-agent"),
        ("recorded", 3, "is a recorded run"),
        ("nothing-like-it", 3, "begins with \"nothing-like-it\""),
    ] {
        let ran = env.run(&["resume", id]);
        assert_eq!(ran.code, code, "{}", ran.stderr);
        assert!(ran.stderr.contains(why), "{}", ran.stderr);
        assert_eq!(ran.stdout, "");
    }
}

/// A log could name its session like a flag of the agent.
#[test]
fn an_id_is_no_flag() {
    let env = TestEnv::new();
    let log = user(SESSION, 0, "hi").replace(SESSION, "--dangerously-skip-permissions");
    env.file(&format!("{PROJECT}/x.jsonl"), log);
    json(&env, &["import", "--json"]);
    let rows = json(&env, &["list", "--json"]);
    let id = rows[0]["run_id"].as_str().unwrap();
    let ran = env.run(&["resume", id]);
    assert_eq!((ran.code, ran.stdout.as_str()), (3, ""), "{}", ran.stderr);
    assert!(ran.stderr.contains("is no id but a flag"), "{}", ran.stderr);
}

#[test]
fn a_log_that_is_gone_is_said() {
    let env = TestEnv::new();
    resume(&env, SESSION, "/w/demo");
    std::fs::remove_file(env.path(&format!("{PROJECT}/{SESSION}.jsonl"))).unwrap();
    let ran = env.run(&["resume", SESSION]);
    assert_eq!(
        (ran.code, ran.stdout),
        (0, format!("cd /w/demo && claude --resume {SESSION}\n"))
    );
    assert!(ran.stderr.contains("is gone"), "{}", ran.stderr);
}
