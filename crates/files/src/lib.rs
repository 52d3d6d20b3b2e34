//! Files and directories that only their owner can look into. What Quipu keeps is nobody else's business, so
//! everything it writes is made here: files with mode 0600, directories with 0700.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

const FILE: u32 = 0o600;
const DIRECTORY: u32 = 0o700;

/// How a file is opened that is private if it has to be made.
pub fn options() -> OpenOptions {
    let mut options = File::options();
    options.mode(FILE);
    options
}

/// Opens a file that is only there to be locked, and makes it where it is missing.
pub fn open_lock(path: &Path) -> io::Result<File> {
    let mut options = options();
    options.write(true).create(true).truncate(false).open(path)
}

/// Makes a directory and those above it. What is there already stays as it is.
pub fn create_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(DIRECTORY)
        .create(path)
}

/// The permissions of a private file.
pub fn file_permissions() -> Permissions {
    Permissions::from_mode(FILE)
}

/// The permissions of a private directory.
pub fn directory_permissions() -> Permissions {
    Permissions::from_mode(DIRECTORY)
}

/// Makes a file private that others can look into. Where that is refused, the file is not ours to restrict.
pub fn restrict(path: &Path) {
    let is_open = |it: std::fs::Metadata| it.is_file() && it.permissions().mode() & 0o077 != 0;
    if path.metadata().is_ok_and(is_open) {
        drop(std::fs::set_permissions(path, file_permissions()));
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn what_is_made_is_private() {
        let root = tempfile::tempdir().unwrap();
        let (deep, below) = (root.path().join("a"), root.path().join("a/b"));
        create_directory(&below).unwrap();
        assert_eq!([mode(&deep), mode(&below)], [0o700, 0o700]);
        let (file, lock) = (below.join("file"), below.join("lock"));
        let mut made = options().write(true).create_new(true).open(&file).unwrap();
        made.write_all(b"kept").unwrap();
        open_lock(&lock).unwrap();
        assert_eq!([mode(&file), mode(&lock)], [0o600, 0o600]);
        // A lock that is there keeps what is in it.
        open_lock(&file).unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"kept");
    }

    #[test]
    fn what_others_can_look_into_is_restricted_and_the_rest_is_left_alone() {
        let root = tempfile::tempdir().unwrap();
        let (open, own) = (root.path().join("open"), root.path().join("own"));
        for (path, mode) in [(&open, 0o644), (&own, 0o400)] {
            File::create(path).unwrap();
            std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
            restrict(path);
        }
        assert_eq!([mode(&open), mode(&own)], [0o600, 0o400]);
        restrict(&root.path().join("nowhere"));
    }
}
