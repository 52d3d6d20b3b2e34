//! Traces that others made, read in place. They are not part of the project; where they are absent the test
//! says so.

use std::path::Path;

use crate::traces::{Checks, Traces};

#[test]
fn whatever_is_a_trace_is_kept_and_found() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let cases = workspace.join("../shared/vectors/agentlog/cases");
    let Ok(entries) = std::fs::read_dir(&cases) else {
        #[expect(
            clippy::print_stderr,
            reason = "a test that does nothing has to say so"
        )]
        {
            eprintln!("skipped: no traces at {}", cases.display());
        }
        return;
    };
    let home = tempfile::tempdir().unwrap();
    let traces = Traces::open(home.path()).unwrap();
    let mut kept = 0;
    for entry in entries {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        // Which are good is for the checker to say; here it is enough that nothing is lost or left behind.
        if let Ok(done) = traces.put(&bytes[..], &Checks::default()) {
            let found = traces.find(&done.name.to_string());
            let found = found
                .or_else(|_| traces.find(&done.name.root.to_string()))
                .unwrap();
            assert!(
                traces.read(&found).unwrap().starts_with(&bytes),
                "{}",
                path.display()
            );
            kept += 1;
        }
    }
    assert!(kept > 10, "{kept}");
    let left = std::fs::read_dir(home.path().join("traces/tmp")).unwrap();
    assert_eq!(left.count(), 0);
}
