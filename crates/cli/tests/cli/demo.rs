use super::env::TestEnv;

#[test]
fn records_shows_and_verifies_a_nested_run() {
    let env = TestEnv::new();
    let ran = env.run(&["demo", "--storage", env.dir.path().to_str().unwrap()]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    assert_eq!(
        ran.stdout.matches("verified  run ").count(),
        3,
        "{}",
        ran.stdout
    );
    for part in [
        "nightly-review ok",
        "│  ├─ review #1 agent ok",
        "└─ upload command ok",
    ] {
        assert!(ran.stdout.contains(part), "{part} in {}", ran.stdout);
    }
    let files: Vec<_> = std::fs::read_dir(env.path("transcripts"))
        .unwrap()
        .map(|entry| entry.unwrap().path().to_str().unwrap().to_owned())
        .collect();
    let mut args = vec!["verify"];
    args.extend(files.iter().map(String::as_str));
    let ran = env.run(&args);
    assert_eq!((files.len(), ran.code), (3, 0), "{}", ran.stdout);
}

#[test]
fn needs_no_home_and_no_locale() {
    let env = TestEnv::new();
    let output = env
        .command(&["demo", "--storage", env.dir.path().to_str().unwrap()])
        .env_clear()
        .env("LC_ALL", "C")
        .output()
        .unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success());
    assert!(
        stdout.contains("`- upload command ok"),
        "drawn in ASCII: {stdout}"
    );
    assert!(stdout.is_ascii());
}
