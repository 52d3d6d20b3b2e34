use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use super::{PathError, Root};

/// A root with a directory, a file, and links of every kind out of it; beside it a secret.
struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        std::fs::create_dir_all(root.join("sub")).unwrap();
        std::fs::create_dir(dir.path().join("out")).unwrap();
        put(&dir.path().join("out/secret"), "secret");
        put(&root.join("sub/file"), "inside");
        symlink("../out", root.join("up")).unwrap();
        symlink("../../out/secret", root.join("sub/secret")).unwrap();
        symlink(dir.path().join("out"), root.join("far")).unwrap();
        symlink(dir.path().join("out/secret"), root.join("far-file")).unwrap();
        symlink("file", root.join("sub/link")).unwrap();
        Self { dir }
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("root")
    }

    fn secret(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("out/secret")).unwrap()
    }

    /// The root as the kernel keeps it, and as it is kept step by step.
    fn both(&self) -> [Root; 2] {
        let root = self.root();
        [
            Root::open(&root).unwrap(),
            Root::open_by_steps(&root).unwrap(),
        ]
    }
}

fn put(path: &Path, text: &str) {
    std::io::Write::write_all(&mut std::fs::File::create(path).unwrap(), text.as_bytes()).unwrap();
}

/// Paths that lead out of the root.
pub(crate) const ESCAPES: [&str; 9] = [
    "../out/secret",
    "sub/../../out/secret",
    "./../out/secret",
    "up/secret",
    "sub/secret",
    "far/secret",
    "far-file",
    "sub/../up/secret",
    "..//out/./secret",
];

#[test]
fn no_path_leads_out_to_read_write_append_remove_or_enter() {
    let place = Place::new();
    for root in place.both() {
        for path in ESCAPES {
            let path = root.relative(path).unwrap();
            root.read(&path).expect_err("reading");
            root.kind(&path).expect_err("looking");
            root.append(&path, b"x").expect_err("appending");
            root.write(&path, b"x").expect_err("writing");
            assert_eq!(place.secret(), "secret", "{}", path.display());
        }
        for path in ["..", "up", "far", "sub/../..", "sub/../up"] {
            root.directory(Path::new(path)).expect_err(path);
            root.real_directory(Path::new(path)).expect_err(path);
        }
        for path in ["../out/secret", "up/secret", "far/secret"] {
            root.remove(Path::new(path)).expect_err(path);
        }
        assert_eq!(place.secret(), "secret");
    }
}

#[test]
fn absolute_paths_are_fine_inside_the_root_and_refused_outside() {
    let place = Place::new();
    for root in place.both() {
        let inside = place.root().join("sub/file");
        let path = root.relative(inside.to_str().unwrap()).unwrap();
        assert_eq!(root.read_all(&path, 100).unwrap(), b"inside");
        let outside = place.dir.path().join("out/secret");
        let error = root.relative(outside.to_str().unwrap()).unwrap_err();
        assert!(matches!(error, PathError::Outside { .. }), "{error}");
        root.relative("/etc/passwd").unwrap_err();
        // A directory whose name only begins like the root's.
        let like = format!("{}2/x", place.root().display());
        root.relative(&like).unwrap_err();
    }
}

#[test]
fn pipes_and_devices_are_refused_without_waiting() {
    let place = Place::new();
    let pipe = place.root().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    for root in place.both() {
        for attempt in [
            root.read(Path::new("pipe")).map(|_| ()),
            root.write(Path::new("pipe"), b"x"),
            root.append(Path::new("pipe"), b"x"),
        ] {
            attempt.expect_err("a pipe is not a file");
        }
        let error = root.read(Path::new("sub")).unwrap_err().to_string();
        assert!(error.contains("a directory"), "{error}");
    }
    let dev = Root::open(Path::new("/dev")).unwrap();
    let error = dev.read(Path::new("null")).unwrap_err().to_string();
    assert!(error.contains("a device"), "{error}");
}

#[test]
fn replacing_a_file_keeps_its_permissions_and_leaves_nothing_behind() {
    let place = Place::new();
    let file = place.root().join("sub/file");
    for root in place.both() {
        let script = std::fs::Permissions::from_mode(0o750);
        std::fs::set_permissions(&file, script).unwrap();
        root.write(Path::new("sub/file"), b"new").unwrap();
        let mode = std::fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o750);
        assert_eq!(std::fs::read(&file).unwrap(), b"new");
        let names = std::fs::read_dir(place.root().join("sub")).unwrap();
        assert_eq!(names.count(), 3, "no temporary file is left");
    }
}

#[test]
fn writing_by_way_of_a_link_inside_the_root_changes_the_file_it_leads_to() {
    let place = Place::new();
    let root = Root::open(&place.root()).unwrap();
    root.write(Path::new("sub/link"), b"by the link").unwrap();
    let link = place.root().join("sub/link");
    assert!(link.symlink_metadata().unwrap().is_symlink());
    assert_eq!(
        root.read_all(Path::new("sub/file"), 99).unwrap(),
        b"by the link"
    );
}

#[test]
fn missing_directories_are_made_beneath_the_root_only() {
    let place = Place::new();
    for (n, root) in place.both().into_iter().enumerate() {
        let path = format!("new{n}/deep/er/file");
        root.write(Path::new(&path), b"x").unwrap();
        assert_eq!(root.read_all(Path::new(&path), 9).unwrap(), b"x");
        for path in [
            "../made/file",
            "up/made/file",
            "far/made/file",
            "new/../../made/file",
        ] {
            root.write(Path::new(path), b"x").expect_err(path);
        }
        assert!(!place.dir.path().join("made").exists());
        assert!(!place.dir.path().join("out/made").exists());
    }
}

#[test]
fn a_file_over_the_limit_is_not_read() {
    let place = Place::new();
    for root in place.both() {
        let error = root.read_all(Path::new("sub/file"), 5).unwrap_err();
        assert!(matches!(error, PathError::TooLarge { .. }), "{error}");
        assert_eq!(root.read_all(Path::new("sub/file"), 6).unwrap().len(), 6);
    }
}

#[test]
fn links_that_are_swapped_all_the_time_never_lead_out() {
    let place = Place::new();
    let root = place.root();
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let swapping = std::thread::spawn({
        let (root, stop) = (root.clone(), stop.clone());
        move || {
            let (real, link) = (root.join("real"), root.join("link"));
            std::fs::create_dir(&real).unwrap();
            put(&real.join("secret"), "mine");
            symlink("../out", &link).unwrap();
            let at = root.join("swap");
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                std::fs::rename(&real, &at).unwrap();
                std::fs::rename(&at, &real).unwrap();
                std::fs::rename(&link, &at).unwrap();
                std::fs::rename(&at, &link).unwrap();
            }
        }
    });
    let roots = place.both();
    let mut read = 0;
    for n in 0..40_000 {
        let root = &roots[n % 2];
        if let Ok(found) = root.read_all(Path::new("swap/secret"), 99) {
            assert_eq!(found, b"mine");
            read += 1;
        }
        if let Ok(dir) = root.real_directory(Path::new("swap")) {
            assert!(dir.starts_with(root.path()), "{}", dir.display());
        }
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    swapping.join().unwrap();
    assert!(read > 0, "the swapped directory was met");
    assert_eq!(place.secret(), "secret");
}
