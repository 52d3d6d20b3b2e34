//! Files that say what is written.

use std::io::Write as _;
use std::path::Path;

/// Compares with a file below this crate, or writes it when `QUIPU_BLESS` is set.
pub(crate) fn check(path: &str, written: &[u8]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var_os("QUIPU_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut file = std::fs::File::create(&path).unwrap();
        file.write_all(written).unwrap();
        return;
    }
    let kept = std::fs::read(&path).unwrap_or_default();
    if kept == written {
        return;
    }
    let (kept, written) = (
        String::from_utf8_lossy(&kept),
        String::from_utf8_lossy(written),
    );
    let at = kept
        .lines()
        .zip(written.lines())
        .position(|(a, b)| a != b)
        .unwrap_or(0);
    let show = |text: &str| {
        let line = text.lines().nth(at).unwrap_or_default();
        line.chars().take(300).collect::<String>()
    };
    panic!(
        "{} differs in line {}; QUIPU_BLESS=1 writes it anew\n  kept: {}\n   now: {}",
        path.display(),
        at + 1,
        show(&kept),
        show(&written)
    );
}
