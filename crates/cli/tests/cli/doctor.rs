use super::env::TestEnv;
use super::machine::{PROJECT, SESSION, assistant, furnish, json, text, user};

#[test]
fn an_empty_home_needs_nothing() {
    let env = TestEnv::new();
    let home = env.path("none");
    let ran = env.run(&["--home", home.to_str().unwrap(), "doctor"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    assert!(
        ran.stdout.contains("which is not there yet"),
        "{}",
        ran.stdout
    );
    assert!(
        ran.stdout.ends_with("Nothing needs attention.\n"),
        "{}",
        ran.stdout
    );
    assert!(!home.exists());
}

#[test]
fn what_is_not_known_is_listed_with_its_place() {
    let env = TestEnv::new();
    let odd = assistant(SESSION, 1, &text("hi")).replace("\"cwd\"", "\"mood\":\"good\",\"cwd\"");
    let log = user(SESSION, 0, "hello")
        + &odd
        + &odd.replace("-0001-", "-0002-").replace("\"m1\"", "\"m2\"");
    env.file(&format!("{PROJECT}/{SESSION}.jsonl"), log);
    let ran = env.run(&["import"]);
    assert_eq!(ran.code, 0);
    assert_eq!(
        ran.stderr,
        "2 records or fields that Quipu does not know were kept as they are; see `quipu doctor --drift`\n"
    );
    let ran = env.run(&["doctor", "--drift"]);
    assert_eq!(ran.code, 0, "drift alone is no fault");
    let row = ran.stdout.lines().nth(1).unwrap();
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(
        cells,
        [
            "claude-code",
            "2.1.200",
            "field",
            "line.mood",
            "2",
            "1",
            &format!("HOME/{PROJECT}/{SESSION}.jsonl:2")
        ]
    );
    let document = json(&env, &["doctor", "--json"]);
    assert_eq!(
        (
            &document["drift"][0]["sightings"],
            &document["drift"][0]["line"]
        ),
        (&2.into(), &2.into())
    );
    assert!(
        env.run(&["doctor"])
            .stdout
            .contains("`quipu doctor --drift` lists them")
    );
}

#[test]
fn damage_is_found() {
    let env = TestEnv::new();
    furnish(&env);
    json(&env, &["import", "--json"]);
    let ran = env.run(&["doctor", "--check"]);
    assert_eq!(ran.code, 0, "{}", ran.stdout);
    assert!(ran.stdout.contains("snapshots checked"), "{}", ran.stdout);
    // A chunk that holds something else.
    let chunks = env.path("archive/chunks");
    let fan = std::fs::read_dir(chunks)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let chunk = std::fs::read_dir(fan)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    std::fs::write(&chunk, "nonsense").unwrap();
    assert_eq!(env.run(&["doctor"]).code, 0, "nobody looked");
    let ran = env.run(&["doctor", "--check"]);
    assert_eq!(ran.code, 1);
    assert!(
        ran.stdout
            .contains("needs attention: 1 damage in the archive: `quipu import --rebuild`"),
        "{}",
        ran.stdout
    );
    // One that is not there is seen without reading any.
    std::fs::remove_file(&chunk).unwrap();
    assert_eq!(env.run(&["doctor"]).code, 1);
    std::fs::write(&chunk, "nonsense").unwrap();
    // A manifest that is no manifest.
    let sources = env.path("archive/sources");
    let fan = std::fs::read_dir(sources)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let manifest = std::fs::read_dir(fan)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    std::fs::write(&manifest, "{}\n{}\n").unwrap();
    let document = env.run(&["doctor", "--json"]);
    assert_eq!(document.code, 1);
    let document: serde_json::Value = serde_json::from_str(&document.stdout).unwrap();
    assert_eq!(document["archive"]["damaged"].as_array().unwrap().len(), 1);
}

#[test]
fn a_home_that_others_can_read_needs_attention() {
    use std::os::unix::fs::PermissionsExt as _;
    let env = TestEnv::new();
    furnish(&env);
    json(&env, &["import", "--json"]);
    std::fs::set_permissions(env.dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let ran = env.run(&["doctor"]);
    assert_eq!(ran.code, 1);
    assert!(
        ran.stdout.contains("others can look into HOME (mode 755)"),
        "{}",
        ran.stdout
    );
}

#[test]
fn a_home_that_cannot_be_reached_is_a_problem() {
    let env = TestEnv::new();
    let file = env.file("file", "x");
    for (home, why) in [
        (file.clone(), "HOME/file is not a directory"),
        (format!("{file}/home"), "cannot be reached"),
        (
            format!("{}/no/where", env.dir.path().display()),
            "neither is HOME/no",
        ),
    ] {
        let ran = env.run(&["--home", &home, "doctor"]);
        assert_eq!(ran.code, 1, "{home}: {}", ran.stdout);
        assert!(ran.stdout.contains(why), "{home}: {}", ran.stdout);
    }
}

#[test]
fn what_is_kept_and_not_in_the_catalogue_is_told() {
    let env = TestEnv::new();
    furnish(&env);
    json(&env, &["import", "--json"]);
    assert_eq!(env.run(&["doctor"]).code, 0);
    for name in ["index.sqlite", "index.sqlite-wal", "index.sqlite-shm"] {
        std::fs::remove_file(env.path(name)).ok();
    }
    drop(quipu_store::Store::open(env.dir.path()).unwrap());
    let ran = env.run(&["doctor"]);
    assert_eq!(ran.code, 1);
    let advice = "archived logs are not in the catalogue: run `quipu import --rebuild`";
    assert!(ran.stdout.contains(advice), "{}", ran.stdout);
    json(&env, &["import", "--rebuild", "--json"]);
    assert_eq!(env.run(&["doctor"]).code, 0);
}

/// Whatever a command says to do about something that is damaged helps.
#[test]
fn what_an_error_says_to_do_helps() {
    type Harm<'h> = (
        &'static str,
        &'static [&'static str],
        Box<dyn Fn(&TestEnv) + 'h>,
    );
    let garbage = |path: std::path::PathBuf| std::fs::write(path, [0x5a; 9000]).unwrap();
    let index = |env: &TestEnv, ending: &str| -> std::path::PathBuf {
        let files = std::fs::read_dir(env.path("search")).unwrap();
        let mut files = files.map(|it| it.unwrap().path());
        files
            .find(|path| path.extension().is_some_and(|it| it == ending))
            .unwrap()
    };
    let harms: [Harm<'_>; 6] = [
        (
            "`quipu import`",
            &["search", "look"],
            Box::new(|env| std::fs::remove_dir_all(env.path("search")).unwrap()),
        ),
        (
            "`quipu import --rebuild`",
            &["search", "look"],
            Box::new(|env| garbage(index(env, "term"))),
        ),
        (
            "`quipu import --rebuild`",
            &["search", "look"],
            Box::new(|env| std::fs::remove_file(index(env, "idx")).unwrap()),
        ),
        (
            "`quipu import --rebuild`",
            &["search", "look"],
            Box::new(|env| garbage(env.path("search/meta.json"))),
        ),
        (
            "`quipu import --rebuild`",
            &["list"],
            Box::new(|env| garbage(env.path("index.sqlite"))),
        ),
        (
            "`quipu import --rebuild`",
            &["list"],
            Box::new(|env| std::fs::remove_file(env.path("index.sqlite")).unwrap()),
        ),
    ];
    for (n, (remedy, command, harm)) in harms.iter().enumerate() {
        let env = TestEnv::new();
        furnish(&env);
        json(&env, &["import", "--json"]);
        let before = env.run(command);
        assert_eq!(before.code, 0, "{}", before.stderr);
        harm(&env);
        let ran = env.run(command);
        assert_eq!(ran.code, 4, "{n}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains(remedy), "{n}: {}", ran.stderr);
        assert!(!ran.stderr.contains("panicked"), "{n}: {}", ran.stderr);
        let doctor = env.run(&["doctor"]);
        assert_eq!(doctor.code, 1, "{n}: {}", doctor.stdout);
        let words = remedy.trim_matches('`').split(' ').skip(1);
        let ran = env.run(&words.collect::<Vec<_>>());
        assert_eq!(ran.code, 0, "{n}: {}{}", ran.stdout, ran.stderr);
        assert_eq!(env.run(command), before, "{n}");
        let doctor = env.run(&["doctor", "--check"]);
        assert_eq!(doctor.code, 0, "{n}: {}", doctor.stdout);
    }
}

#[test]
fn settings_that_cannot_be_read_need_attention() {
    let env = TestEnv::new();
    furnish(&env);
    json(&env, &["import", "--json"]);
    env.file("config.toml", "[budget]\nday = much\n");
    let ran = env.run(&["doctor"]);
    assert_eq!(ran.code, 1);
    assert!(
        ran.stdout.contains("HOME/config.toml:2: "),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.contains("move the file away"), "{}", ran.stdout);
}
