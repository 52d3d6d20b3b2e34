//! Which files are secret as a whole, by their names.

use std::sync::LazyLock;

use rustc_hash::FxHashSet;

/// Longer than any path is.
const LONGEST: usize = 4096;

/// Names of files, in lower case.
const NAMES: &[&str] = &[
    ".env",
    ".envrc",
    ".netrc",
    "_netrc",
    ".pgpass",
    "pgpass.conf",
    ".my.cnf",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".htpasswd",
    ".git-credentials",
    ".vault-token",
    ".s3cfg",
    ".boto",
    ".dockercfg",
    ".terraformrc",
    "terraform.rc",
    "terraform.tfstate",
    "terraform.tfstate.backup",
    "credentials.yml.enc",
    "master.key",
    "wp-config.php",
    "credentials.json",
    "client_secret.json",
    "application_default_credentials.json",
    "credentials.tfrc.json",
    "access_tokens.db",
    "credentials.db",
    "kubeconfig",
    "login.keychain",
    "login.keychain-db",
    "shadow",
    "gshadow",
    "sudoers",
    ".bash_history",
    ".zsh_history",
    ".sh_history",
    ".ash_history",
    ".ksh_history",
    ".history",
    ".zhistory",
    ".histfile",
    ".psql_history",
    ".mysql_history",
    ".sqlite_history",
    ".python_history",
    ".node_repl_history",
    ".rediscli_history",
    ".irb_history",
    "fish_history",
    "consolehost_history.txt",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ecdsa_sk",
    "id_ed25519",
    "id_ed25519_sk",
    "identity",
    "secring.gpg",
    "wallet.dat",
    "logins.json",
    "key4.db",
    "login data",
    "environ",
];

/// Some of those are names of other things as well, and only in these folders are they what is meant.
const ONLY_IN: &[(&str, &[&str])] = &[
    ("shadow", &["etc"]),
    ("gshadow", &["etc"]),
    ("sudoers", &["etc"]),
    ("identity", &[".ssh"]),
    ("environ", &["proc"]),
];

/// How names end, in lower case.
const ENDINGS: &[&str] = &[
    ".pem",
    ".key",
    ".p12",
    ".pfx",
    ".jks",
    ".keystore",
    ".kdbx",
    ".kdb",
    ".ppk",
    ".p8",
    ".pkcs12",
    ".ovpn",
    ".agekey",
    ".gpgkey",
    ".tfvars",
    ".tfvars.json",
    ".tfstate",
    ".keychain",
    ".keychain-db",
    ".mobileprovision",
    ".htpasswd",
    "-credentials.json",
    "_credentials.json",
    ".env",
];

/// A name and the folder it is in.
const PLACES: &[(&str, &str)] = &[
    (".aws", "credentials"),
    (".aws", "config"),
    (".docker", "config.json"),
    (".kube", "config"),
    (".gem", "credentials"),
    (".cargo", "credentials"),
    (".cargo", "credentials.toml"),
    (".config/gh", "hosts.yml"),
    ("gh", "hosts.yml"),
    (".gnupg", "secring.gpg"),
    (".codex", "auth.json"),
    (".claude", ".credentials.json"),
    (".gemini", "oauth_creds.json"),
    ("opencode", "auth.json"),
    (".azure", "accesstokens.json"),
    (".azure", "msal_token_cache.json"),
    (".config/hub", "hub"),
    ("rclone", "rclone.conf"),
];

/// What a template of a secret file is called.
const HARMLESS: &[&str] = &[
    "example",
    "examples",
    "sample",
    "template",
    "tmpl",
    "dist",
    "defaults",
    "schema",
    "test-example",
    "d.ts",
    "md",
];

/// Whether all of a file is to be removed, by its path. Case and the kind of separators do not matter.
pub fn is_sensitive(path: &str) -> bool {
    let path = path.trim_matches(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`'));
    if path.is_empty() || path.len() > LONGEST || !may_be(path) || path.contains('\n') {
        return false;
    }
    // Most words of command lines are not even paths.
    if !path.bytes().any(|byte| matches!(byte, b'.' | b'/' | b'\\')) {
        return by_name("", &path.to_ascii_lowercase());
    }
    let path = path.strip_prefix("file://").unwrap_or(path);
    if path.contains("://") {
        return false;
    }
    let lower = path.to_ascii_lowercase().replace('\\', "/");
    let (folder, name) = lower.rsplit_once('/').unwrap_or(("", &lower));
    by_name(folder, name) || by_folder(folder, name)
}

/// Whether all of a file is to be removed that is there to be looked into. A `.pem` may hold certificates alone; where it
/// holds a private key, that is known by its content.
pub fn is_secret_throughout(path: &str) -> bool {
    let lower = path.to_ascii_lowercase();
    let is_neutral = lower.strip_suffix(".pem").is_some_and(|stem| {
        let name = stem.rsplit(['/', '\\']).next().unwrap_or(stem);
        !["key", "priv"].iter().any(|word| name.contains(word))
    });
    !is_neutral && is_sensitive(path)
}

/// Whether it is worth a closer look: most paths are of sources, and end in what sources end in.
fn may_be(path: &str) -> bool {
    const SOURCES: [&str; 14] = [
        "rs", "ts", "tsx", "js", "jsx", "py", "go", "java", "c", "h", "cpp", "rb", "md", "html",
    ];
    let bytes = path.as_bytes();
    let dot = bytes.iter().rev().take(5).position(|byte| *byte == b'.');
    !dot.is_some_and(|dot| SOURCES.contains(&&path[path.len() - dot..]))
}

static KNOWN: LazyLock<FxHashSet<&str>> = LazyLock::new(|| NAMES.iter().copied().collect());

fn by_name(folder: &str, name: &str) -> bool {
    if let Some((_, folders)) = ONLY_IN.iter().find(|(only, _)| *only == name) {
        return folders
            .iter()
            .any(|only| folder.split('/').any(|part| part == *only));
    }
    // A pattern of a shell stands for all it may stand for.
    let name = name.trim_end_matches('*');
    if KNOWN.contains(name) {
        return true;
    }
    // All that follow have an ending, but for one.
    if !name.contains('.') {
        return name == "credentials";
    }
    if is_public(name) {
        return false;
    }
    if let Some(kind) = name
        .strip_prefix(".env.")
        .or_else(|| name.strip_prefix(".env-"))
    {
        return !harmless(kind);
    }
    if ENDINGS
        .iter()
        .any(|ending| name.len() > ending.len() && name.ends_with(ending))
    {
        return !harmless(name) && !is_open(name);
    }
    let stem = name.split('.').next().unwrap_or_default();
    let data = ["yml", "yaml", "json", "toml", "ini", "enc"]
        .iter()
        .any(|kind| name.rsplit('.').next() == Some(kind));
    match stem {
        "secrets" | "secret" | "service-account" | "serviceaccount" | "service_account" => {
            data && !harmless(name)
        }
        "credentials" => name == "credentials" || data && !harmless(name),
        _ => {
            let account = [
                "service-account",
                "service_account",
                "serviceaccount",
                "client_secret",
            ];
            name.rsplit('.').next() == Some("json")
                && account.iter().any(|word| name.starts_with(word))
        }
    }
}

fn by_folder(folder: &str, name: &str) -> bool {
    if folder.is_empty() {
        return false;
    }
    let inside = folder.rsplit('/').next().unwrap_or_default();
    match inside {
        ".ssh" => {
            let open = [
                "known_hosts",
                "known_hosts.old",
                "config",
                "authorized_keys",
            ];
            !name.is_empty() && !open.contains(&name) && !is_public(name)
        }
        "private-keys-v1.d" | "keychains" | ".password-store" => true,
        _ => PLACES.iter().any(|(place, file)| {
            *file == name
                && (folder == *place
                    || folder
                        .strip_suffix(place)
                        .is_some_and(|up| up.ends_with('/')))
        }),
    }
}

/// Whether a key is the half that may be seen.
fn is_public(name: &str) -> bool {
    name.rsplit_once('.')
        .is_some_and(|(_, ending)| ending == "pub")
}

/// Whether a name says that a file of keys holds what everybody may see: a certificate, a chain of them, a public key.
fn is_open(name: &str) -> bool {
    const WORDS: &[&str] = &[
        "cert",
        "certs",
        "certificate",
        "certificates",
        "crt",
        "ca",
        "cacert",
        "cacerts",
        "chain",
        "fullchain",
        "bundle",
        "root",
        "roots",
        "pub",
        "pubkey",
    ];
    let Some((stem, ending)) = name.rsplit_once('.') else {
        return false;
    };
    let parts = || stem.split(['.', '-', '_']);
    let private = stem.contains("priv") || parts().any(|part| part == "key");
    let key_of_packages = ending == "key" && parts().any(|part| part == "gpg" || part == "apt");
    let certificate = ending == "pem" && parts().any(|part| WORDS.contains(&part));
    !private && (name.contains("public") || key_of_packages || certificate)
}

/// Whether one of the parts of a name says that there is nothing in it.
fn harmless(name: &str) -> bool {
    name.split(['.', '-', '_'])
        .any(|part| HARMLESS.contains(&part))
        || HARMLESS.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_files_by_name() {
        for path in [
            ".env",
            "/code/app/.env.production",
            "C:\\Users\\ada\\app\\.ENV",
            "prod.env",
            ".env*",
            "~/.ssh/id_rsa",
            "/home/ada/.ssh/work",
            "/home/ada/.ssh/*",
            "server.pem",
            "tls/private.key",
            "tls/cert-key.pem",
            "ca.key",
            "privkey.pem",
            "certs/tls.key",
            "store.p12",
            "a.pfx",
            "a.jks",
            "a.kdbx",
            "~/.netrc",
            ".pgpass",
            ".npmrc",
            ".pypirc",
            "~/.aws/credentials",
            "~/.aws/config",
            "~/.docker/config.json",
            "/home/ada/.kube/config",
            ".git-credentials",
            "~/.bash_history",
            ".zsh_history",
            "application_default_credentials.json",
            "service-account-prod.json",
            "config/secrets.yml",
            "secrets.toml",
            "terraform.tfstate",
            "prod.tfvars",
            ".htpasswd",
            "/etc/shadow",
            "wp-config.php",
            "config/master.key",
            "config/credentials.yml.enc",
            ".vault-token",
            "file:///home/ada/.env",
            "\"/code/.env\"",
            "/proc/self/environ",
        ] {
            assert!(is_sensitive(path), "{path}");
        }
    }

    #[test]
    fn files_that_only_look_like_it() {
        for path in [
            "",
            ".env.example",
            ".env.sample",
            ".env.template",
            ".environment",
            "env.rs",
            "src/environ.rs",
            "~/.ssh/known_hosts",
            "~/.ssh/id_rsa.pub",
            "keys.rs",
            "monkey",
            "shadow",
            "src/credentials.rs",
            "secrets.rs",
            "docker/config.json",
            "https://example.com/.env",
            "public.pem",
            "src/key.ts",
            "cert.pem",
            "etc/ssl/fullchain.pem",
            "ca-bundle.pem",
            "server.crt.pem",
            "root-ca.pem",
            "jwt_pubkey.pem",
            "llvm-snapshot.gpg.key",
            "jwt.public.key",
            "README.md",
            "a.key\nb",
        ] {
            assert!(!is_sensitive(path), "{path}");
        }
    }

    #[test]
    fn a_pem_with_a_neutral_name_is_looked_into() {
        for path in ["server.pem", "test/nullbytecert.pem", "tls\\ffdh3072.PEM"] {
            assert!(!is_secret_throughout(path), "{path}");
        }
        for path in [
            "privkey.pem",
            "tls/cert-key.pem",
            "ssl_key.pem",
            "a/.env",
            "store.p12",
        ] {
            assert!(is_secret_throughout(path), "{path}");
        }
    }
}
