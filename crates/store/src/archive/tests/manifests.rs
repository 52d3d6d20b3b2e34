//! Manifests: torn, damaged, misplaced, contested.

use super::*;

#[test]
fn a_line_torn_at_any_byte_is_as_if_never_written() {
    let kit = Kit::new();
    let first = kit.begin(&key("a"), b"first\n");
    let before = std::fs::read(kit.manifest(&key("a"))).unwrap();
    kit.grow(&first, b"second\n");
    let after = std::fs::read(kit.manifest(&key("a"))).unwrap();
    for cut in before.len()..after.len() {
        overwrite(&kit.manifest(&key("a")), &after[..cut]);
        let kept = kit.latest(&key("a"));
        assert_eq!(kept, first, "{cut}");
        // The next line is not glued to what is left of this one.
        let grown = kit.grow(&kept, b"second\n");
        assert_eq!(kit.latest(&key("a")), grown);
        assert_eq!(kit.read(&grown), b"first\nsecond\n");
        assert_eq!(
            std::fs::read(kit.manifest(&key("a"))).unwrap(),
            after,
            "{cut}"
        );
    }
    // The first line can be torn as well; then the source was never kept.
    for cut in 0..before.len() {
        overwrite(&kit.manifest(&key("a")), &after[..cut]);
        assert_eq!(kit.archive.latest(&key("a")).unwrap(), None);
        assert_eq!(kit.archive.sources().count(), 0);
        kit.begin(&key("a"), b"first\n");
        assert_eq!(std::fs::read(kit.manifest(&key("a"))).unwrap(), before);
    }
}

#[test]
fn a_damaged_manifest_is_named_and_the_rest_goes_on() {
    let kit = Kit::tiny();
    let kept = kit.begin(&key("a"), &noise(100, 1));
    kit.grow(&kept, &noise(100, 2));
    kit.begin(&key("b"), b"fine");
    let good = std::fs::read_to_string(kit.manifest(&key("a"))).unwrap();
    let damage = |from: &str, to: &str, line: usize| {
        let bad = good.replacen(from, to, 1);
        assert_ne!(bad, good, "{from}");
        overwrite(&kit.manifest(&key("a")), bad.as_bytes());
        let error = kit.archive.latest(&key("a")).unwrap_err();
        let ArchiveError::Manifest { path, line: at, .. } = &error else {
            panic!("{error}")
        };
        assert_eq!((path, *at), (&kit.manifest(&key("a")), line), "{error}");
        let (good, bad): (Vec<_>, Vec<_>) = kit.archive.sources().partition(Result::is_ok);
        assert_eq!((good.len(), bad.len()), (1, 1));
        assert_eq!(kit.archive.usage().unwrap().damaged, 1);
        // Nobody knows which chunks it needs.
        let chunks = kit.stored().0;
        assert!(kit.archive.sweep(time(0), false).is_err());
        assert_eq!(kit.stored().0, chunks);
        // Nothing may be built on it; it can only be forgotten.
        assert!(matches!(
            kit.archive
                .begin(&key("a"))
                .unwrap()
                .finish(time(0), None, None),
            Err(ArchiveError::Conflict { .. })
        ));
    };
    damage("{\"v\"", "\"v\"", 1);
    damage("\"size\":100,", "\"size\":101,", 1);
    damage("\"size\":200,", "\"size\":18446744073709551615,", 2);
    damage("\"keep\":100,", "\"keep\":99,", 2);
    damage("\"keep\":100,", "\"keep\":64,", 2);
    damage("\"len\":64}", "\"len\":0}", 1);
    damage("\"len\":64}", "\"len\":4194305}", 1);
    damage("\"taken\":\"2026", "\"taken\":\"x026", 1);
    damage(
        "\n{\"v\":1,\"agent\":\"claude\"",
        "\n{\"v\":1,\"agent\":\"codex\"",
        2,
    );
    damage("{\"id\":\"", "{\"id\":\"../", 1);
    damage("\n{", "\n\n{", 2);
    assert!(kit.archive.forget(&key("a")).unwrap());
    kit.begin(&key("a"), b"anew");
}

#[test]
fn a_log_that_has_grown_cannot_be_shorter() {
    let kit = Kit::tiny();
    let kept = kit.begin(&key("a"), &noise(100, 1));
    kit.rewrite(&kept, b"short");
    let text = std::fs::read_to_string(kit.manifest(&key("a"))).unwrap();
    let text = without_sums(&text);
    let (first, second) = text.split_once('\n').unwrap();
    let second = second.replace("\"grown\":false", "\"grown\":true");
    let bad = format!("{first}\n{second}");
    overwrite(&kit.manifest(&key("a")), bad.as_bytes());
    let error = kit.archive.latest(&key("a")).unwrap_err().to_string();
    assert!(error.contains("shorter"), "{error}");
}

/// Also where the line still reads, and says something else.
#[test]
fn a_line_that_is_not_what_was_written_is_noticed() {
    let kit = Kit::new();
    kit.begin(&key("a"), b"x");
    let manifest = kit.manifest(&key("a"));
    let good = std::fs::read(&manifest).unwrap();
    for at in 0..good.len() {
        for bit in 0..8 {
            let mut bad = good.clone();
            bad[at] ^= 1 << bit;
            overwrite(&manifest, &bad);
            // A sum under another name is not found; then the rest of the line is as it was.
            match kit.archive.latest(&key("a")) {
                Ok(Some(kept)) => {
                    assert_eq!((kept.size, kept.taken), (1, time(0)), "{at}.{bit}");
                    assert_eq!(kit.read(&kept), b"x");
                }
                Ok(None) => assert_eq!(at, good.len() - 1, "the end of the line is gone"),
                Err(error) => {
                    let is_newer = matches!(error, ArchiveError::Newer { .. });
                    assert!(!is_newer, "byte {at} is damage: {error}");
                }
            }
        }
    }
    // Lines of an earlier version have none.
    overwrite(
        &manifest,
        without_sums(std::str::from_utf8(&good).unwrap()).as_bytes(),
    );
    assert_eq!(kit.latest(&key("a")).size, 1);
}

#[test]
fn a_later_format_is_not_guessed_at() {
    let kit = Kit::new();
    kit.begin(&key("a"), b"x");
    let good = std::fs::read_to_string(kit.manifest(&key("a"))).unwrap();
    let good = without_sums(&good);
    for bad in [
        good.replace("\"v\":1", "\"v\":2"),
        "{\"v\":2,\"all\":\"new\"}\n".to_owned(),
    ] {
        overwrite(&kit.manifest(&key("a")), bad.as_bytes());
        let error = kit.archive.latest(&key("a")).unwrap_err();
        assert!(
            matches!(error, ArchiveError::Newer { format: 2, .. }),
            "{error}"
        );
    }
    // Fields that are not known yet are no harm.
    overwrite(
        &kit.manifest(&key("a")),
        good.replace("\"v\":1", "\"v\":1,\"new\":[]").as_bytes(),
    );
    assert_eq!(kit.latest(&key("a")).size, 1);
}

#[test]
fn a_manifest_under_another_name_is_refused() {
    let kit = Kit::new();
    kit.begin(&key("a"), b"x");
    let other = kit.manifest(&key("b"));
    std::fs::create_dir_all(other.parent().unwrap()).unwrap();
    std::fs::copy(kit.manifest(&key("a")), other).unwrap();
    let error = kit.archive.latest(&key("b")).unwrap_err().to_string();
    assert!(error.contains("/logs/a.jsonl"), "{error}");
}

#[test]
fn of_two_who_build_on_the_same_snapshot_one_wins() {
    let kit = Kit::new();
    let first = kit.begin(&key("a"), b"first\n");
    let conflict = |result: Result<Snapshot, ArchiveError>| {
        let error = result.unwrap_err();
        assert!(matches!(error, ArchiveError::Conflict { .. }), "{error}");
        assert!(error.to_string().contains("/logs/a.jsonl"));
    };
    let mut slow = kit.archive.grow(&first).unwrap();
    slow.write(b"slow\n").unwrap();
    let grown = kit.grow(&first, b"fast\n");
    conflict(slow.finish(time(0), None, None));
    assert_eq!(kit.latest(&key("a")), grown);
    conflict(
        kit.archive
            .begin(&key("a"))
            .unwrap()
            .finish(time(0), None, None),
    );

    let slow = kit.archive.grow(&grown).unwrap();
    kit.archive.forget(&key("a")).unwrap();
    conflict(slow.finish(time(0), None, None));
    assert_eq!(kit.archive.latest(&key("a")).unwrap(), None);
}

#[test]
fn a_manifest_that_is_a_link_is_not_followed() {
    let kit = Kit::new();
    let target = kit.home.path().join("elsewhere");
    let manifest = kit.manifest(&key("a"));
    std::fs::create_dir_all(manifest.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(&target, &manifest).unwrap();
    let writer = kit.archive.begin(&key("a")).unwrap();
    assert!(writer.finish(time(0), None, None).is_err());
    assert!(!target.exists());
}
