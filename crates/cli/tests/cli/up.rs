use super::env::TestEnv;
use super::machine::{figures, furnish, listing};

#[test]
fn a_machine_without_sessions_gets_samples_in_a_home_of_their_own() {
    let env = TestEnv::new();
    let home = env.path("data");
    let home = home.to_str().unwrap();
    let ran = env.run(&["--home", home, "up", "--once"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    assert!(
        ran.stdout.starts_with(
            "No sessions of any agent were found on this machine. These are samples that come with Quipu,\n\
             in a home of their own: HOME/data-samples\n"
        ),
        "{}",
        ran.stdout
    );
    assert!(!env.path("data").exists(), "the real one stays empty");
    let rows = figures(&env, "data-samples");
    let agents: std::collections::BTreeSet<&str> = rows
        .iter()
        .map(|row| row["agent"].as_str().unwrap())
        .collect();
    for agent in ["claude-code", "codex", "copilot-cli", "opencode", "quipu"] {
        assert!(agents.contains(agent), "{agents:?}");
    }
    // Every command that it names works.
    let next: Vec<&str> = ran
        .stdout
        .lines()
        .filter_map(|line| line.trim().strip_prefix("quipu "))
        .collect();
    assert_eq!(next.len(), 3, "{}", ran.stdout);
    for command in next {
        let command = command.replace("HOME", env.dir.path().to_str().unwrap());
        let ran = env.run(&command.split(' ').collect::<Vec<_>>());
        assert_eq!(ran.code, 0, "{command}: {}", ran.stderr);
    }
    // And a second time changes nothing.
    let ran = env.run(&["--home", home, "up", "--once", "--demo"]);
    assert_eq!(ran.code, 0);
    assert!(ran.stdout.contains("Nothing new"), "{}", ran.stdout);
    assert_eq!(rows, figures(&env, "data-samples"));
}

#[test]
fn the_samples_have_something_of_everything() {
    let env = TestEnv::new();
    let home = env.path("data");
    let ran = env.run(&["--home", home.to_str().unwrap(), "up", "--once", "--demo"]);
    assert_eq!(
        (ran.code, ran.stderr.as_str()),
        (0, ""),
        "no problems, no drift: {}",
        ran.stdout
    );
    let rows = figures(&env, "data-samples");
    let sum = |key: &str| {
        rows.iter()
            .map(|row| row[key].as_u64().unwrap())
            .sum::<u64>()
    };
    assert!(
        sum("failures") > 0 && sum("denials") > 0 && sum("errors") > 0,
        "{rows:?}"
    );
    assert!(rows.iter().any(|row| row["reconstructed"] == true));
    assert!(
        rows.iter()
            .any(|row| row["agent"] == "claude-code" && !row["parent"].is_null())
    );
    for row in rows
        .iter()
        .filter(|row| row["agent"] != "quipu" && row["reconstructed"] == false)
    {
        assert!(row["usage"]["output"].as_u64() > Some(0), "{row}");
        assert_eq!(
            (&row["dangling"], &row["orphans"]),
            (&0.into(), &0.into()),
            "{row}"
        );
    }
    let samples = env.path("data-samples");
    let samples = samples.to_str().unwrap();
    let show = env.run(&["--home", samples, "show", "5d2c", "--full"]);
    for secret in ["AKIAIOSFODNN7EXAMPLE", "ghp_0000"] {
        assert!(
            show.stdout.contains(secret),
            "planted, and fake: {}",
            show.stdout
        );
    }
    let runs = [
        "sample-nightly-review",
        "sample-build-release",
        "sample-publish",
    ];
    let mut verify = vec!["--home", samples, "verify"];
    verify.extend(runs);
    let ran = env.run(&verify);
    assert_eq!(ran.code, 0, "{}", ran.stdout);
    let tree = env.run(&["--home", samples, "tree", runs[0]]);
    for part in [
        "checks parallel ok",
        "review #1 agent ok",
        "upload command failed",
        "run sample-publish",
    ] {
        assert!(tree.stdout.contains(part), "{part} in {}", tree.stdout);
    }
    let ran = env.run(&["--home", samples, "doctor", "--check", "--drift"]);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (0, "Everything that was read is known.\n")
    );
}

#[test]
fn what_is_here_is_imported() {
    let env = TestEnv::new();
    furnish(&env);
    let before = listing(&env.path("person"));
    let home = env.path("data");
    let home = home.to_str().unwrap();
    let ran = env.run(&["--home", home, "up", "--once"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    assert!(
        ran.stdout.contains("11111111")
            && ran.stdout.contains("quipu --home HOME/data show 11111111"),
        "{}",
        ran.stdout
    );
    assert!(!ran.stdout.contains("sample") && !env.path("data-samples").exists());
    assert!(before == listing(&env.path("person")));
    // Samples on request, beside it.
    assert_eq!(env.run(&["--home", home, "up", "--once", "--demo"]).code, 0);
    assert!(
        figures(&env, "data")
            .iter()
            .all(|row| row["agent"] == "claude-code")
    );
    // When the agent has deleted everything, there is still what is kept.
    std::fs::remove_dir_all(env.path("person")).unwrap();
    let ran = env.run(&["--home", home, "up", "--once"]);
    assert!(ran.stdout.contains("11111111"), "{}", ran.stdout);
}

#[test]
fn is_drawn_in_ascii_where_the_locale_asks_for_it() {
    let env = TestEnv::new();
    let home = env.path("data");
    let args = ["--home", home.to_str().unwrap(), "up", "--once"];
    let output = env.command(&args).env("LANG", "C").output().unwrap();
    assert!(output.status.success());
    assert!(
        output.stdout.is_ascii(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
}
