//! Vectors and cases that are not ours.

use std::path::{Path, PathBuf};

use super::*;
use crate::agentlog::CanonProblem;

/// Vectors and cases, read in place. They are not part of the project; where they are absent the test says so.
fn vectors() -> Option<PathBuf> {
    let below = "shared/vectors/agentlog";
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let given = std::env::var_os("QUIPU_VECTORS").map(PathBuf::from);
    let path = given.unwrap_or_else(|| workspace.join("..").join(below));
    if path.is_dir() {
        return Some(path);
    }
    #[expect(
        clippy::print_stderr,
        reason = "a test that does nothing has to say so"
    )]
    {
        eprintln!("skipped: no vectors at {}", path.display());
    }
    None
}

#[test]
fn cases_come_out_as_they_should() {
    let Some(vectors) = vectors() else { return };
    let cases = std::fs::read(vectors.join("cases.json")).unwrap();
    let cases: Vec<BTreeMap<String, String>> = serde_json::from_slice(&cases).unwrap();
    assert!(cases.len() > 40);
    for case in cases {
        let (name, verdict) = (&case["file"], &case["verdict"]);
        let bytes = std::fs::read(vectors.join("cases").join(name)).unwrap();
        let report = check(&bytes);
        let accepted = verdict.starts_with("accept") || verdict.starts_with("tolerate");
        if verdict.contains("no depth rule") {
            // It is about depth alone: its id is that of another payload, and so is not right.
            assert_eq!(names(&report), ["id-mismatch", "sdk-text"], "{name}");
            continue;
        }
        assert_eq!(
            report.is_clean(),
            accepted,
            "{name}: {verdict}: {report:#?}"
        );
        if verdict.contains("permissive") {
            assert!(permissive(&bytes).is_clean(), "{name}");
        }
        if verdict.contains("keep line 1") {
            assert_eq!(report.records, 1);
            assert_eq!(report.findings[0].at.unwrap().line, 2);
        }
    }
}

#[test]
fn id_vectors_come_out_as_they_should() {
    let Some(vectors) = vectors() else { return };
    let text = std::fs::read_to_string(vectors.join("ids.jsonl")).unwrap();
    let mut seen = 0;
    for line in text.lines() {
        let vector: BTreeMap<String, serde_json::Value> = serde_json::from_str(line).unwrap();
        let Some(id) = vector.get("id").and_then(|id| id.as_str()) else {
            continue;
        };
        let mut tape = Tape::new();
        let node = tape.read(vector["input"].as_str().unwrap(), 1024).unwrap();
        match Canon::new().id(node) {
            Ok(made) => assert_eq!(made.to_string(), id, "{line}"),
            // The vectors have what the reference program makes of a key that is there twice.
            Err(error) => assert!(
                matches!(error.what, CanonProblem::DuplicateKey(_)),
                "{line}"
            ),
        }
        seen += 1;
    }
    assert!(seen > 30, "{seen}");
}
