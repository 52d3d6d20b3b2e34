//! The rules that come with the program.

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../rules/", $name)))),*]
    };
}

/// The files, by name. What comes first wins where two rules find the same.
pub(crate) const FILES: &[(&str, &str)] = files![
    "keys.toml",
    "cloud.toml",
    "vaults.toml",
    "source-hosts.toml",
    "chat.toml",
    "payments.toml",
    "ai.toml",
    "registries.toml",
    "databases.toml",
    "ci.toml",
    "monitoring.toml",
    "email-sms.toml",
    "saas.toml",
    "crypto.toml",
    "urls.toml",
    "headers.toml",
    "generic.toml",
    "pii.toml",
    "paths.toml",
    "identity.toml",
];

#[cfg(test)]
mod tests;
#[cfg(test)]
mod whole;
