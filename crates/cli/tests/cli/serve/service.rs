//! `quipu up --install-service`

use crate::cli::env::TestEnv;

#[test]
#[cfg(target_os = "linux")]
fn a_unit_is_written_once_and_can_be_removed() {
    let env = TestEnv::new();
    let config = env.path("my config");
    let install = || {
        let output = env
            .command(&["up", "--install-service"])
            .env("XDG_CONFIG_HOME", &config)
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        (
            output.status.code(),
            text(&output.stdout),
            text(&output.stderr),
        )
    };
    let (code, stdout, stderr) = install();
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    let path = config.join("systemd/user/quipu.service");
    let unit = std::fs::read_to_string(&path).unwrap();
    assert!(
        unit.contains("[Service]")
            && unit.contains("Restart=on-failure")
            && unit.contains(" up --no-samples\n"),
        "{unit}"
    );
    // The home of the environment is the home of the service.
    assert!(unit.contains(env.dir.path().to_str().unwrap()), "{unit}");
    assert!(
        stdout.contains("Remove it:")
            && stdout.contains("systemctl --user disable --now quipu.service")
            && stdout.contains(&format!("rm '{}'", path.display())),
        "{stdout}"
    );
    // Nothing is served, and nothing was made but the unit.
    assert!(!env.path("server.json").exists());
    assert_eq!(install(), (Some(0), stdout, String::new()));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), unit);
    // One that Quipu wrote earlier is renewed; one of somebody else is left alone.
    std::fs::write(&path, unit.replace("Nice=10", "Nice=5")).unwrap();
    assert_eq!(install().0, Some(0));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), unit);
    std::fs::write(&path, "[Service]\nExecStart=/bin/true\n").unwrap();
    let (code, _, stderr) = install();
    assert_eq!(code, Some(4), "{stderr}");
    assert!(
        stderr.contains("quipu.service is there, and Quipu did not write it")
            && stderr.contains("hint: move it away"),
        "{stderr}"
    );
    assert_eq!(
        std::fs::read_to_string(&path).unwrap(),
        "[Service]\nExecStart=/bin/true\n"
    );
    let mode = std::fs::metadata(&path).unwrap().permissions();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode) & 0o022, 0);
    // Neither is one that is not text.
    std::fs::write(&path, b"\xff\xfe").unwrap();
    assert_eq!(install().0, Some(4));
    assert_eq!(std::fs::read(&path).unwrap(), b"\xff\xfe");
}

#[test]
#[cfg(target_os = "linux")]
fn a_unit_has_what_was_asked_for_and_what_cannot_work_is_refused() {
    let env = TestEnv::new();
    std::fs::create_dir(env.path("runs of swarm")).unwrap();
    let install = |more: &[&str]| {
        let args = [&["up", "--install-service"][..], more].concat();
        let mut command = env.command(&args);
        let command = command.env("XDG_CONFIG_HOME", env.path("config"));
        let output = command.current_dir(env.dir.path()).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), stderr)
    };
    let path = env.path("config/systemd/user/quipu.service");
    for (more, why) in [
        (["--runs", "none"], "--runs: there is no directory none"),
        (["--listen", "nowhere"], "is neither ADDRESS:PORT"),
    ] {
        let (code, stderr) = install(&more);
        assert_eq!(code, Some(2), "{stderr}");
        assert!(stderr.contains(why), "{stderr}");
        assert!(!path.exists());
    }
    let asked = [
        "--require-keys",
        "--listen",
        "./q.sock",
        "--runs",
        "runs of swarm",
    ];
    assert_eq!(install(&asked), (Some(0), String::new()));
    let unit = std::fs::read_to_string(&path).unwrap();
    let dir = env.dir.path().to_str().unwrap();
    let command = format!(
        " --home {dir} up --no-samples --listen={dir}/q.sock --require-keys \"--runs={dir}/runs of swarm\"\n"
    );
    assert!(unit.contains(&command), "{unit}");
}
