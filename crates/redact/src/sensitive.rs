//! Files whose whole content is secret: environments, keys, credentials, histories of shells.

/// Whether all of a file is to be removed, by its path.
pub fn is_sensitive(_path: &str) -> bool {
    false
}

/// The sensitive files that a command line reads or writes, such as `cat ~/.aws/credentials`.
pub fn named_in(_command: &str) -> bool {
    false
}
