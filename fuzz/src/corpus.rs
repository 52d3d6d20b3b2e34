//! Runs every file of the corpus through its target, on any compiler.

use std::fs;
use std::path::Path;

/// Every adapter has a target, and every target of an adapter something to begin with.
#[test]
fn every_adapter_has_a_corpus() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for family in quipu_agents::FAMILIES {
        let name = format!("agent_{}", family.name());
        assert!(
            root.join("fuzz_targets")
                .join(&name)
                .with_extension("rs")
                .exists(),
            "{name}"
        );
        let mut files = 0;
        for entry in fs::read_dir(root.join("corpus").join(&name)).unwrap() {
            let bytes = fs::read(entry.unwrap().path()).unwrap();
            // Also in pieces, and with each dialect of the family.
            for dialect in 0..family.dialects().len() {
                for cut in [0, 64, 128, 255] {
                    let mut input = vec![u8::try_from(dialect).unwrap(), cut];
                    input.extend_from_slice(&bytes[2..]);
                    crate::agent(family.name(), &input);
                }
            }
            files += 1;
        }
        assert!(files >= 1, "{name} has no corpus");
    }
}

#[test]
fn the_corpus_passes() {
    for (name, target) in crate::TARGETS {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("corpus")
            .join(name);
        let mut files = 0;
        for entry in fs::read_dir(dir).unwrap() {
            target(&fs::read(entry.unwrap().path()).unwrap());
            files += 1;
        }
        assert!(files >= 8, "{name} has {files} files");
    }
}
