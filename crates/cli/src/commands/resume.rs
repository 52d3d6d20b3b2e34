//! `quipu resume`: the agent's own command that continues a session.

use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use quipu_store::Store;
use quipu_store::catalogue::TranscriptRow;

use crate::args::Resume;
use crate::error::{CommandError, Exit, Result};
use crate::locate::HomePlace;
use crate::terminal::{is_active, say};

pub(crate) fn run(args: &Resume, place: &HomePlace) -> Result<Exit> {
    let (store, row) = place.session(&args.id)?;
    if row.recorded {
        let error = anyhow::anyhow!("{} is a recorded run", row.run_id);
        return Err(CommandError::new(Exit::Data, error)
            .hint("give the id of an imported session; `quipu list` shows them"));
    }
    let log = row.path.clone();
    let (command, directory) = command(&store, row)?;
    if !log.exists() {
        say(&format!(
            "note: the agent's own log {} is gone, so it may not know this session any more",
            log.display()
        ));
    }
    if args.run {
        if let Some(directory) = &directory
            && !Path::new(directory).is_dir()
        {
            let error = anyhow::anyhow!("the session's directory {directory} is not there");
            return Err(CommandError::new(Exit::Environment, error));
        }
        let mut run = Command::new(&command[0]);
        run.args(&command[1..]);
        if let Some(directory) = &directory {
            run.current_dir(directory);
        }
        // Comes back only when it could not be done.
        let error = anyhow::Error::new(run.exec()).context(format!("could not run {}", command[0]));
        return Err(CommandError::new(Exit::Environment, error)
            .hint("is the agent installed, and in PATH?"));
    }
    let words: Vec<String> = command.iter().map(|word| quote(word)).collect();
    let line = match &directory {
        Some(directory) => format!("{} && {}", cd(directory), words.join(" ")),
        None => words.join(" "),
    };
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(Exit::Done)
}

/// The command, and the directory to run it in.
fn command(store: &Store, row: TranscriptRow) -> Result<(Vec<String>, Option<String>)> {
    let refuse = |why: String, hint: String| {
        Err(CommandError::new(Exit::Data, anyhow::Error::msg(why)).hint(hint))
    };
    if row.received_from.is_some() {
        return refuse(
            format!("somebody else submitted session {}", row.run_id),
            "`quipu show` has what was said in it".to_owned(),
        );
    }
    if row.reconstructed {
        return refuse(
            format!("the log of session {} is gone", row.run_id),
            "its prompts are left: `quipu show` has them".to_owned(),
        );
    }
    if let Some(parent) = &row.parent {
        return refuse(
            format!("session {} is a sub-agent", row.run_id),
            format!("continue the session that called it: `quipu resume {parent}`"),
        );
    }
    let family = row.dialect.as_deref().and_then(quipu_agents::dialect);
    let (agent, run_id) = (row.agent.clone(), row.run_id.clone());
    let directory = match &row.cwd {
        // Masked; the log has it as it is.
        Some(cwd) if cwd.contains("[REDACTED:") => store.read(row.clone())?.session.cwd,
        cwd => cwd.clone(),
    };
    let id = native_id(store, row)?;
    let command = family.and_then(|(family, _)| family.resume(&agent, &id));
    let Some(command) = command.filter(|command| !command.is_empty()) else {
        return refuse(
            format!("{agent} has no command that continues session {run_id}"),
            "`quipu show` has what was said in it".to_owned(),
        );
    };
    // A log could name its session like a flag, and have the agent do what nobody asked for.
    if id.starts_with('-') || id.contains('\0') {
        return refuse(
            format!("the id of session {run_id} is no id but a flag"),
            "look at the log with `quipu show`".to_owned(),
        );
    }
    Ok((command, directory))
}

/// The session's id in the agent's own terms.
fn native_id(store: &Store, row: TranscriptRow) -> Result<String> {
    // An id that does not fit was changed, and has a hash at its end.
    let hashed = row.native.rsplit_once('-').is_some_and(|(_, hash)| {
        hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
    });
    let native = row.native.clone();
    if !hashed {
        return Ok(native);
    }
    Ok(store.read(row)?.session.id.unwrap_or(native))
}

fn cd(directory: &str) -> String {
    if directory.starts_with('-') {
        return format!("cd -- {}", quote(directory));
    }
    format!("cd {}", quote(directory))
}

/// A word as any POSIX shell reads it back. What a terminal would act on is spelled out, so that it can also be
/// looked at: `$'…'` would be shorter, but not every shell knows it.
pub(crate) fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    let single = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
    let is_hidden = |c: char| c.is_control() || is_active(c);
    if !word.contains(is_hidden) {
        return single(word);
    }
    // A shell cuts line ends off what a command writes.
    let (body, ends) = word.split_at(word.trim_end_matches('\n').len());
    let mut format = String::new();
    for c in body.chars() {
        match c {
            '\\' => format.push_str(r"\\"),
            '%' => format.push_str("%%"),
            // What begins so would be taken for a flag.
            '-' if format.is_empty() => format.push_str(r"\055"),
            c if is_hidden(c) => {
                let mut buffer = [0; 4];
                for byte in c.encode_utf8(&mut buffer).bytes() {
                    let digits = [byte >> 6, byte >> 3 & 7, byte & 7];
                    format.push('\\');
                    format.extend(digits.map(|digit| char::from(b'0' + digit)));
                }
            }
            c => format.push(c),
        }
    }
    let ends = if ends.is_empty() {
        String::new()
    } else {
        single(ends)
    };
    format!("\"$(printf {})\"{ends}", single(&format))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell() {
        for (word, quoted) in [
            ("claude", "claude"),
            ("/home/ada/my project", "'/home/ada/my project'"),
            ("it's", r"'it'\''s'"),
            ("$(reboot)", "'$(reboot)'"),
            ("", "''"),
            ("a\x1b[31m'b\\", r#""$(printf 'a\033[31m'\''b\\')""#),
            ("\u{202e}x", r#""$(printf '\342\200\256x')""#),
            ("é", "'é'"),
        ] {
            assert_eq!(quote(word), quoted);
        }
        assert_eq!(cd("-x"), "cd -- -x");
    }

    /// Whatever a log calls its directory, a shell that is given the line takes it for that name and for nothing else.
    #[test]
    fn every_shell_reads_a_word_back_as_it_was() {
        let pieces = [
            "'",
            "\"",
            "\\",
            "$",
            "`",
            "$(touch pwned)",
            "`touch pwned`",
            ";touch pwned;",
            "\n",
            "\t",
            " ",
            "*",
            "?",
            "[a]",
            "~",
            "#",
            "!",
            "!!",
            "&",
            "|",
            "<",
            ">",
            "(",
            ")",
            "{a,b}",
            "%",
            "%s",
            "%n",
            "\x1b",
            "\x1b';touch pwned;'",
            "\x1b]0;x\x07",
            "\u{9b}31m",
            "\u{202e}",
            "\u{61c}",
            "\u{200d}",
            "\r",
            "\x08",
            "\x7f",
            "-n",
            "-e",
            "\\033",
            "\\c",
            "\\0",
            "é",
            "日本",
            "x",
        ];
        let mut words: Vec<String> = pieces.iter().map(|piece| (*piece).to_owned()).collect();
        for one in pieces {
            for other in pieces {
                words.push(format!("{one}{other}"));
                words.push(format!("a{one}\x1b{other}\n\n"));
            }
        }
        let directory = tempfile::tempdir().unwrap();
        let mut tried = 0;
        for shell in [
            "/bin/sh",
            "/bin/dash",
            "/bin/bash",
            "/bin/zsh",
            "/bin/busybox",
        ] {
            if !Path::new(shell).exists() {
                continue;
            }
            tried += 1;
            let lines = words
                .iter()
                .map(|word| format!("printf '%s\\0' {}\n", quote(word)));
            let script: String = lines.collect();
            let file = directory.path().join("script");
            std::io::Write::write_all(
                &mut std::fs::File::create(&file).unwrap(),
                script.as_bytes(),
            )
            .unwrap();
            let mut command = Command::new(shell);
            if shell.ends_with("busybox") {
                command.arg("sh");
            }
            let ran = command
                .arg(&file)
                .current_dir(directory.path())
                .output()
                .unwrap();
            let read: Vec<&[u8]> = ran.stdout.split(|byte| *byte == 0).collect();
            let said = String::from_utf8_lossy(&ran.stderr);
            assert_eq!(read.len(), words.len() + 1, "{shell}: {said}");
            for (word, read) in words.iter().zip(read) {
                assert_eq!(word.as_bytes(), read, "{shell}: {}", quote(word));
            }
            assert!(!directory.path().join("pwned").exists(), "{shell}");
        }
        assert!(tried > 0, "there is no shell");
    }
}
