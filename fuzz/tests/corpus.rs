//! Runs every file of the corpus through its target, on any compiler.

use std::fs;
use std::path::Path;

#[test]
fn the_corpus_passes() {
    for (name, target) in quipu_fuzz::TARGETS {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("corpus")
            .join(name);
        let mut files = 0;
        for entry in fs::read_dir(dir).unwrap() {
            target(&fs::read(entry.unwrap().path()).unwrap());
            files += 1;
        }
        assert!(files >= 10, "{name} has {files} files");
    }
}
