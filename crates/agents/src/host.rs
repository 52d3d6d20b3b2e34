//! The machine, as far as finding logs is concerned.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Looks a variable up.
type Environment = Box<dyn Fn(&str) -> Option<OsString> + Send + Sync>;

/// Where things are on this machine. Nothing is looked up behind the caller's back: tests give a host of
/// their own.
pub struct Host {
    home: PathBuf,
    env: Environment,
    quipu: Option<PathBuf>,
}

impl Host {
    /// A machine with this home directory and environment.
    pub fn new(
        home: impl Into<PathBuf>,
        env: impl Fn(&str) -> Option<OsString> + Send + Sync + 'static,
    ) -> Self {
        Self {
            home: home.into(),
            env: Box::new(env),
            quipu: None,
        }
    }

    /// With the home of Quipu in this directory. Otherwise it is where Quipu puts it by itself.
    #[must_use]
    pub fn with_quipu(mut self, home: impl Into<PathBuf>) -> Self {
        self.quipu = Some(home.into());
        self
    }

    /// The home of Quipu: what other programs sent to it lies below.
    pub fn quipu(&self) -> PathBuf {
        let own = self.quipu.clone().or_else(|| self.env("QUIPU_HOME"));
        own.unwrap_or_else(|| self.data("quipu"))
    }

    /// A path below the home directory.
    pub fn home(&self, below: &str) -> PathBuf {
        self.home.join(below)
    }

    /// The directory that a variable names, if it is set and absolute.
    pub fn env(&self, name: &str) -> Option<PathBuf> {
        let path = PathBuf::from((self.env)(name).filter(|value| !value.is_empty())?);
        path.is_absolute().then_some(path)
    }

    /// The directory that a variable names, or else one below the home directory.
    pub fn env_or_home(&self, name: &str, below: &str) -> PathBuf {
        self.env(name).unwrap_or_else(|| self.home(below))
    }

    /// A path below the directory for programs' data (`~/.local/share`).
    pub fn data(&self, below: &str) -> PathBuf {
        self.env_or_home("XDG_DATA_HOME", ".local/share")
            .join(below)
    }

    /// A path below the directory for programs' settings (`~/.config`).
    pub fn config(&self, below: &str) -> PathBuf {
        self.env_or_home("XDG_CONFIG_HOME", ".config").join(below)
    }

    /// The directories in which editors of the Visual Studio Code kind keep what their extensions
    /// store, each with `globalStorage` below it.
    pub fn editors(&self) -> Vec<PathBuf> {
        const EDITORS: [&str; 6] = [
            "Code",
            "Code - Insiders",
            "VSCodium",
            "Cursor",
            "Windsurf",
            "Antigravity",
        ];
        let mut roots: Vec<PathBuf> = Vec::new();
        for editor in EDITORS {
            roots.push(self.config(editor).join("User"));
            let mac = self.home("Library/Application Support");
            roots.push(mac.join(editor).join("User"));
        }
        roots.push(self.home(".vscode-server/data/User"));
        roots
    }
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host")
            .field("home", &self.home)
            .finish_non_exhaustive()
    }
}

/// Whether a file by its name holds credentials. Such files lie beside the logs of several agents; they
/// are never opened.
pub fn is_credential(path: &Path) -> bool {
    /// Directories of which nothing is opened.
    const DIRECTORIES: [&str; 5] = [".ssh", ".aws", ".gnupg", ".kube", "credentials"];
    /// Files of these names.
    const STEMS: [&str; 10] = [
        ".claude",
        ".netrc",
        ".npmrc",
        ".pypirc",
        "apps",
        "google_accounts",
        "hosts",
        "id_dsa",
        "id_ecdsa",
        "id_ed25519",
    ];
    /// Words in the names of settings that are credentials.
    const WORDS: [&str; 8] = [
        "auth",
        "credential",
        "creds",
        "oauth",
        "rsa",
        "secret",
        "token",
        "key",
    ];
    let lower = |name: &std::ffi::OsStr| name.to_string_lossy().to_ascii_lowercase();
    let Some(name) = path.file_name().map(lower) else {
        return false;
    };
    let mut above = path.ancestors().skip(1).filter_map(Path::file_name);
    if above.any(|name| DIRECTORIES.contains(&lower(name).as_str())) {
        return true;
    }
    let (stem, ending) = match name.rsplit_once('.') {
        Some((stem, ending)) if !stem.is_empty() => (stem, ending),
        _ => (name.as_str(), ""),
    };
    let settings = matches!(
        ending,
        "" | "json" | "yaml" | "yml" | "toml" | "ini" | "encrypted" | "enc" | "dat"
    );
    let is_word = |word: &str| {
        let one = word.strip_suffix('s').unwrap_or(word);
        WORDS.contains(&word) || WORDS.contains(&one)
    };
    let named = STEMS.contains(&stem) || stem.split(['-', '_', '.', ' ']).any(is_word);
    (settings && named)
        || name == ".env"
        || name.starts_with(".env.")
        || matches!(ending, "pem" | "key" | "p12" | "pfx" | "keychain")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_known_by_name() {
        for name in [
            "auth-profiles.json",
            "/x/credentials/kimi.json",
            "mcp-oauth-tokens-v2.json",
            "mcp-auth.json",
            "auth.encrypted",
            "secrets.yaml",
            "/home/x/.aws/config",
            "id_ecdsa",
            "id_rsa",
            ".claude.json",
            "oauth_creds.json",
            "google_accounts.json",
            "auth.json",
            "/x/.codex/AUTH.JSON",
            ".env",
            ".env.local",
            "a.pem",
        ] {
            assert!(is_credential(Path::new(name)), "{name}");
        }
        for name in [
            "tokenizer.json",
            "my-token-session.jsonl",
            "session-2026.json",
            "ses_0key.json",
            "events.jsonl",
            "environment.json",
            "author.json",
            "/x/auth.json/y",
        ] {
            assert!(!is_credential(Path::new(name)), "{name}");
        }
    }
}
