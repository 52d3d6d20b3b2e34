//! The rules that come with the program.

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../rules/", $name)))),*]
    };
}

/// The files, by name. What comes first wins where two rules find the same.
#[cfg_attr(not(test), expect(dead_code, reason = "read by the loader"))]
pub(super) const FILES: &[(&str, &str)] = files![
    "cloud.toml",
    "vaults.toml",
    "source-hosts.toml",
    "chat.toml",
    "payments.toml",
    "ai.toml",
];

#[cfg(test)]
mod tests;
