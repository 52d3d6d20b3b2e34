//! Real logs, read in place. They are not part of the project; where they are absent the test says so.

use std::path::{Path, PathBuf};

use super::*;

/// Larger ones have nothing in them that these have not, and tests are to be quick.
const LARGEST: usize = 64 << 10;

fn files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

#[test]
fn real_logs_stay_what_they_are() {
    let below = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures");
    let root = std::env::var_os("QUIPU_FIXTURES").map_or(below, PathBuf::from);
    if !root.is_dir() {
        #[expect(
            clippy::print_stderr,
            reason = "a test that does nothing has to say so"
        )]
        {
            eprintln!("skipped: no logs at {}", root.display());
        }
        return;
    }
    let mut paths = Vec::new();
    files(&root, &mut paths);
    let engine = Engine::new(&RuleSet::builtin(), |rule| rule.kind == Kind::Secret).unwrap();
    let nothing = Engine::new(&RuleSet::default(), |_| true).unwrap();
    let plain = RawOptions {
        files: false,
        ..options()
    };
    for path in paths {
        let bytes = std::fs::read(&path).unwrap();
        if bytes.len() > LARGEST {
            continue;
        }
        // With nothing to look for, nothing changes.
        assert!(
            run(&nothing, &plain, &bytes).bytes == bytes,
            "{}",
            path.display()
        );
        let once = run(&engine, &options(), &bytes);
        let twice = run(&engine, &options(), &once.bytes);
        assert!(once.bytes == twice.bytes, "{}", path.display());
        let lines = |bytes: &[u8]| {
            bytes
                .split(|byte| *byte == b'\n')
                .map(<[u8]>::to_vec)
                .collect::<Vec<_>>()
        };
        let valid = |line: &[u8]| serde_json::from_slice::<serde_json::Value>(line).is_ok();
        let (before, after) = (lines(&bytes), lines(&once.bytes));
        for (before, after) in before.iter().zip(&after) {
            assert!(!valid(before) || valid(after), "{}", path.display());
        }
    }
}
