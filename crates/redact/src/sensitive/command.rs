//! Command lines that show what is secret.
//!
//! A command line is divided into simple commands and their words the way a shell does it, but for expansion. It is
//! not run through a grammar: what cannot be told is taken for what shows more.

use std::ops::Range;

use super::is_sensitive;

/// What a command or a call shows; what shows more comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Exposes {
    /// What is in a secret file: all of it is secret.
    File,
    /// What a command prints that shows a secret file, or asks a keeper of secrets. It prints other things as well:
    /// what [looks like secrets](looks_secret) is all secret.
    Printed,
    /// The environment: the names may be seen, the values may not.
    Environment,
}

/// Commands that are given secret files without showing what is in them.
const QUIET: &[&str] = &[
    "ls",
    "rm",
    "chmod",
    "chown",
    "touch",
    "stat",
    "test",
    "[",
    "[[",
    "mkdir",
    "find",
    "file",
    "wc",
    "du",
    "which",
    "ssh",
    "ssh-add",
    "ssh-keygen",
    "scp",
    "rsync",
    "docker",
    "docker-compose",
    "sha256sum",
    "shasum",
    "md5sum",
    "echo",
    "printf",
    "ll",
    "dir",
    "realpath",
    "dirname",
    "basename",
    "readlink",
    "unlink",
    "shred",
    "curl",
    "wget",
    "kubectl",
    "cd",
    "for",
    "if",
    "test-path",
    "remove-item",
    "get-childitem",
    "get-item",
    "mv",
    "fd",
    "tree",
    "npm",
    "pnpm",
    "yarn",
    "cargo",
    "ansible-playbook",
    "terraform",
    "nginx",
];

/// Parts of git that print no contents.
const QUIET_GIT: &[&str] = &[
    "add",
    "rm",
    "mv",
    "check-ignore",
    "status",
    "ls-files",
    "commit",
    "restore",
    "checkout",
    "reset",
    "update-index",
];

/// Words that stand before the command itself.
const BEFORE: &[&str] = &[
    "sudo", "time", "command", "exec", "nohup", "builtin", "then", "do", "else", "!", "{", "(",
    "doas",
];

/// Commands whose whole output is a secret, by the words they begin with.
const KEEPERS: &[&[&str]] = &[
    &["gh", "auth", "token"],
    &["aws", "configure", "get"],
    &["aws", "configure", "export-credentials"],
    &["aws", "secretsmanager", "get-secret-value"],
    &["aws", "ssm", "get-parameter"],
    &["aws", "sts", "get-session-token"],
    &["gcloud", "auth", "print-access-token"],
    &["gcloud", "auth", "print-identity-token"],
    &["gcloud", "secrets", "versions"],
    &["az", "account", "get-access-token"],
    &["az", "keyvault", "secret"],
    &["security", "find-generic-password"],
    &["security", "find-internet-password"],
    &["security", "dump-keychain"],
    &["pass", "show"],
    &["op", "read"],
    &["op", "item", "get"],
    &["bw", "get"],
    &["vault", "read"],
    &["vault", "kv", "get"],
    &["kubectl", "get", "secret"],
    &["kubectl", "get", "secrets"],
    &["doppler", "secrets"],
    &["secret-tool", "lookup"],
    &["git", "credential", "fill"],
    &["npm", "token"],
    &["keyring", "get"],
    &["heroku", "auth:token"],
    &["heroku", "config"],
];

/// Whether a command line reads or writes a secret file, such as `cat ~/.aws/credentials`, or shows the environment.
pub fn named_in(command: &str) -> bool {
    exposed_by(command).is_some()
}

/// What a command line shows, if anything. A secret file weighs more than the environment.
pub fn exposed_by(command: &str) -> Option<Exposes> {
    let commands = simple_commands(command);
    commands
        .iter()
        .filter_map(|simple| shown_by(command, simple))
        .min()
}

/// Where, in a command line, something is written to a secret file: what `echo` is given, the lines of a heredoc.
pub fn written_by(command: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let commands = simple_commands(command);
    // `echo … | tee .env` writes what the command before the pipe says.
    let mut pipe_ends_in_secret = false;
    for simple in commands.iter().rev() {
        let to_secret = simple.redirects.iter().any(|word| secret(command, word))
            || verb(command, simple).is_some_and(|(at, verb)| {
                verb == "tee" && simple.words[at..].iter().any(|word| secret(command, word))
            })
            || simple.piped && pipe_ends_in_secret;
        pipe_ends_in_secret = to_secret;
        if !to_secret {
            continue;
        }
        if let Some(body) = &simple.heredoc {
            found.push(body.clone());
        }
        let Some((at, verb)) = verb(command, simple) else {
            continue;
        };
        if matches!(
            verb.as_str(),
            "echo" | "printf" | "write-output" | "set-content" | "add-content"
        ) && let (Some(first), Some(last)) = (simple.words.get(at + 1), simple.words.last())
            && first.start < last.end
        {
            found.push(first.start..last.end);
        }
    }
    found.sort_by_key(|range| (range.start, range.end));
    found
}

/// One command of a line: words that are not where output goes to, and where it goes to.
#[derive(Debug, Default)]
struct Simple {
    words: Vec<Range<usize>>,
    redirects: Vec<Range<usize>>,
    /// Files that are read from.
    sources: Vec<Range<usize>>,
    heredoc: Option<Range<usize>>,
    /// Whether its output goes to the command behind it.
    piped: bool,
}

fn secret(command: &str, word: &Range<usize>) -> bool {
    let word = &command[word.clone()];
    is_sensitive(word)
        || word
            .rsplit_once(['=', ':', '@', '('])
            .is_some_and(|(_, rest)| is_sensitive(rest.trim_end_matches(')')))
}

/// The command that is run, and which word it is.
fn verb(command: &str, simple: &Simple) -> Option<(usize, String)> {
    let bare = |range: &Range<usize>| {
        let word = command[range.clone()].trim_matches(['"', '\'', '`', '$', '(', ')', '{']);
        let word = word
            .rsplit(['/', '\\'])
            .next()
            .unwrap_or(word)
            .to_ascii_lowercase();
        word.strip_suffix(".exe").map(str::to_owned).unwrap_or(word)
    };
    for (at, range) in simple.words.iter().enumerate() {
        let word = bare(range);
        let assignment = command[range.clone()]
            .split_once('=')
            .is_some_and(|(name, _)| {
                !name.is_empty()
                    && name
                        .bytes()
                        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            });
        if !assignment && !word.is_empty() && !BEFORE.contains(&word.as_str()) {
            return Some((at, word));
        }
    }
    None
}

fn shown_by(command: &str, simple: &Simple) -> Option<Exposes> {
    let written = simple.redirects.iter().chain(&simple.sources);
    if written.clone().any(|word| secret(command, word)) {
        return Some(Exposes::Printed);
    }
    let (at, verb) = verb(command, simple)?;
    let rest: Vec<&str> = simple.words[at + 1..]
        .iter()
        .map(|range| command[range.clone()].trim_matches(['"', '\'']))
        .collect();
    let begins = |words: &[&str]| {
        words.first() == Some(&verb.as_str())
            && words.len() <= rest.len() + 1
            && words[1..]
                .iter()
                .zip(&rest)
                .all(|(word, given)| word.eq_ignore_ascii_case(given))
    };
    if KEEPERS.iter().any(|words| begins(words))
        || verb == "gpg" && rest.iter().any(|word| word.starts_with("--export-secret"))
    {
        return Some(Exposes::Printed);
    }
    if shows_environment(&verb, &rest) {
        return Some(Exposes::Environment);
    }
    // A shell that is given a command line as one word.
    if matches!(
        verb.as_str(),
        "bash" | "sh" | "zsh" | "dash" | "pwsh" | "powershell" | "cmd" | "xargs" | "eval"
    ) && simple.words[at + 1..].iter().any(|range| {
        let word = command[range.clone()].trim_matches(['"', '\'']);
        word.len() < range.len() && word.contains(' ') && named_in(word)
    }) {
        return Some(Exposes::Printed);
    }
    let named = simple.words[at + 1..].iter().enumerate();
    let searches = matches!(
        verb.as_str(),
        "grep" | "rg" | "egrep" | "fgrep" | "ag" | "ack"
    );
    let mut pattern = searches
        && !rest
            .iter()
            .any(|word| matches!(*word, "-e" | "-f" | "--regexp"));
    let mut shows = false;
    for (place, range) in named {
        if pattern && !rest[place].starts_with('-') {
            pattern = false;
            continue;
        }
        shows |= secret(command, range);
    }
    let quiet = || {
        QUIET.contains(&verb.as_str())
            || verb == "git" && rest.first().is_some_and(|part| QUIET_GIT.contains(part))
    };
    (shows && !quiet()).then_some(Exposes::Printed)
}

fn shows_environment(verb: &str, rest: &[&str]) -> bool {
    match verb {
        "printenv" => true,
        // With a command behind it, that one is run.
        "env" => rest
            .iter()
            .all(|word| word.starts_with('-') && *word != "-i"),
        "set" | "export" => rest.is_empty() || rest == ["-p"],
        "declare" | "typeset" => matches!(rest, ["-x" | "-p" | "-xp" | "-px"]),
        "get-childitem" | "gci" | "dir" | "ls" => rest
            .iter()
            .any(|word| word.to_ascii_lowercase().trim_end_matches('\\') == "env:"),
        _ => false,
    }
}

/// Divides a command line.
fn simple_commands(command: &str) -> Vec<Simple> {
    let bytes = command.as_bytes();
    let mut commands = vec![Simple::default()];
    let mut into = Into::Words;
    let mut heredoc: Option<(String, usize)> = None;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'\n' => {
                at += 1;
                into = Into::Words;
                if let Some((end, place)) = heredoc.take() {
                    let body = heredoc_body(command, at, &end);
                    at = body.end;
                    commands[place].heredoc = (!body.is_empty()).then_some(body);
                }
                commands.push(Simple::default());
            }
            b' ' | b'\t' | b'\r' => at += 1,
            b'&' if bytes.get(at + 1) == Some(&b'>') => at += 1,
            b';' | b'&' | b'|' => {
                let pipe = bytes[at] == b'|' && bytes.get(at + 1) != Some(&b'|');
                if let Some(last) = commands.last_mut() {
                    last.piped = pipe;
                }
                at += 1;
                into = Into::Words;
                commands.push(Simple::default());
            }
            b'<' if bytes[at..].starts_with(b"<<") && bytes.get(at + 2) != Some(&b'<') => {
                at += 2;
                into = Into::Heredoc;
                if bytes.get(at) == Some(&b'-') {
                    at += 1;
                }
            }
            b'<' => {
                at += 1;
                into = Into::Sources;
            }
            b'>' => {
                at += 1;
                into = Into::Redirects;
            }
            _ => {
                let word = word(bytes, at);
                at = word.end;
                let place = commands.len() - 1;
                let simple = &mut commands[place];
                match into {
                    Into::Words => simple.words.push(word),
                    Into::Sources => simple.sources.push(word),
                    Into::Redirects => simple.redirects.push(word),
                    Into::Heredoc => {
                        let end = command[word].trim_matches(['"', '\'', '\\']).to_owned();
                        heredoc = Some((end, place));
                    }
                }
                into = Into::Words;
            }
        }
    }
    commands
}

/// What the next word is.
enum Into {
    Words,
    Sources,
    Redirects,
    Heredoc,
}

/// The word that begins at a place. It is as long as its quotes say.
fn word(bytes: &[u8], start: usize) -> Range<usize> {
    let mut at = start;
    let mut quote = None;
    while let Some(&byte) = bytes.get(at) {
        match (quote, byte) {
            (Some(open), _) if open == byte => quote = None,
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, b' ' | b'\t' | b'\r' | b'\n' | b';' | b'|' | b'&' | b'<' | b'>') => break,
            _ => {}
        }
        at += 1;
    }
    // A quote that is never closed would swallow all that follows.
    if quote.is_some() {
        let ends = |byte: &u8| {
            matches!(
                byte,
                b' ' | b'\t' | b'\n' | b';' | b'|' | b'&' | b'<' | b'>'
            )
        };
        at = bytes[start..]
            .iter()
            .position(ends)
            .map_or(bytes.len(), |len| start + len);
    }
    start..at.max(start + 1)
}

/// The lines up to the one that ends a heredoc.
fn heredoc_body(command: &str, from: usize, end: &str) -> Range<usize> {
    let mut at = from;
    for line in command[from..].split_inclusive('\n') {
        if line.trim() == end {
            break;
        }
        at += line.len();
    }
    let body = command[from..at].trim_end_matches(['\n', '\r']);
    from..from + body.len()
}

/// Whether what a command printed looks like what is in a secret file: it is one long word, or most of its lines, and
/// more than one, assign something or are of a key. A listing, an error or source code does not.
pub fn looks_secret(text: &str) -> bool {
    let text = text.trim();
    let (mut lines, mut telling, mut sections) = (0_usize, 0_usize, false);
    for line in text.lines() {
        let line = line.trim();
        if !line.is_empty() {
            lines += 1;
            sections |= is_section(line);
            telling += usize::from(tells(line, sections));
        }
    }
    telling > 1 && telling * 2 > lines
        || lines == 1 && text.len() >= 16 && !text.contains([' ', '='])
}

/// `[default]`
fn is_section(line: &str) -> bool {
    line.starts_with('[') && line.ends_with(']') && !line.contains([' ', '"', ','])
}

/// Whether a line is one of those that secret files are made of. Spaces around `=`, and names that are not in capitals,
/// are for files with sections: elsewhere that is code, or the log of something.
fn tells(line: &str, sections: bool) -> bool {
    // Behind its number, or the name of its file.
    let line = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let line = line.trim_start_matches([':', '-', '\t', ' ']);
    let line = line.strip_prefix("export ").unwrap_or(line);
    let name = |text: &str| {
        let text = if sections { text.trim_end() } else { text };
        let word = |byte: u8| {
            byte.is_ascii_uppercase()
                || byte.is_ascii_digit()
                || byte == b'_'
                || sections && (byte.is_ascii_lowercase() || matches!(byte, b'-' | b'.'))
        };
        !text.is_empty() && text.len() <= 64 && text.bytes().all(word)
    };
    if let Some((before, behind)) = line.split_once('=') {
        return name(before)
            && !behind.starts_with(['=', '>'])
            && !behind.ends_with([';', '{', '(', ',']);
    }
    let netrc = ["machine ", "login ", "password ", "default"];
    let base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    is_section(line)
        || line.starts_with("-----")
        || netrc.iter().any(|word| line.starts_with(word))
        || line.len() >= 40 && line.bytes().all(base64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn commands_that_show_secret_files() {
        for command in [
            "cat .env",
            "cd /code && cat ./app/.env | head -5",
            "less ~/.aws/credentials",
            "head -n 3 .env.local",
            "tail -f ~/.bash_history",
            "bat id_rsa",
            "type C:\\app\\.env",
            "Get-Content .env",
            "sed -n '1,3p' .env",
            "grep KEY .env",
            "awk -F= '{print $2}' .env",
            "cp .env /code/x",
            "echo A=1 > .env",
            "echo A=1 >> .env",
            "echo A=1 | tee .env",
            "source .env && run",
            "sudo cat /etc/shadow",
            "gpg --export-secret-keys ada",
            "security find-generic-password -s x -w",
            "aws configure get aws_secret_access_key",
            "gh auth token",
            "cat > .env <<'EOF'\nA=1\nEOF",
            "bash -lc 'cat .env'",
            "bash -lc cat .env",
            "git show HEAD:.env",
            "cat < .env",
            "xargs -a \"x\" cat \"/code/my app/.env\"",
        ] {
            assert_eq!(exposed_by(command), Some(Exposes::Printed), "{command}");
        }
        for command in [
            "printenv",
            "env",
            "env | grep X",
            "set",
            "export -p",
            "cd x; printenv HOME",
        ] {
            assert_eq!(exposed_by(command), Some(Exposes::Environment), "{command}");
        }
    }

    #[test]
    fn commands_that_do_not() {
        for command in [
            "",
            "ls -la .env",
            "rm .env",
            "git add .env",
            "chmod 600 id_rsa",
            "test -f .env",
            "[ -f .env ] && run",
            "echo .env >> .gitignore",
            "grep -rn '.env' README.md",
            "grep .env .gitignore",
            "cat .env.example",
            "env FOO=1 make",
            "set -euo pipefail",
            "export A=1",
            "ssh -i key.pem ada@host.example",
            "cat src/main.rs",
            "echo 'unclosed",
        ] {
            assert_eq!(exposed_by(command), None, "{command}");
        }
    }

    #[test]
    fn what_is_written_to_secret_files() {
        let shown = |command: &'static str| -> Vec<&str> {
            written_by(command)
                .into_iter()
                .map(|range| &command[range])
                .collect()
        };
        assert_eq!(shown("cat > .env <<EOF\nA=1\nB=2\nEOF\nls"), ["A=1\nB=2"]);
        assert_eq!(shown("cat <<'EOF' > .env\nA=1\nEOF"), ["A=1"]);
        assert_eq!(shown("echo \"A=1 2\" > .env; echo hi"), ["\"A=1 2\""]);
        assert_eq!(shown("printf 'A=%s' x | tee -a .env"), ["'A=%s' x"]);
        assert_eq!(shown("cat > a.txt <<EOF\nA=1\nEOF"), Vec::<&str>::new());
        assert_eq!(shown("cat .env"), Vec::<&str>::new());
    }

    #[test]
    fn what_looks_like_secrets() {
        for text in [
            "A=1\nB=2",
            "# comment\nA=1\nB=two words\nC=\"x\"\n",
            "     1\tA=1\n     2\tB=2",
            "[default]\naws_access_key_id = x\naws_secret_access_key = y",
            "machine x\nlogin y\npassword z",
            "one-word-that-is-a-token",
        ] {
            assert!(looks_secret(text), "{text}");
        }
        for text in [
            "",
            "cat: .env: No such file or directory",
            "total 8\ndrwxr-xr-x 2 ada ada 4096 x\n-rw------- 1 ada ada 12 .env",
            "fn main() {\n    let a = b;\n}\nA=1",
            "A=1",
            "x = [y for y in z]",
            "time=1 level=info\nid=2",
            "if a == b {\nx = y(\n}",
        ] {
            assert!(!looks_secret(text), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_command_is_too_odd(command in "([a-z.]{0,6}|[ \n;|&<>'\"=$()é]|<<EOF\n|cat \\.env){0,20}") {
            named_in(&command);
            for range in written_by(&command) {
                prop_assert!(command.get(range).is_some());
            }
        }
    }
}
