//! `quipu up --install-service`: a unit that starts Quipu with the user's session.

use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use etcetera::BaseStrategy as _;
use quipu_server::Listen;

use super::{Manner, settings};
use crate::args::{LogForm, Serve, address};
use crate::error::{CommandError, Exit, Result, io_error};
use crate::locate::HomePlace;
use crate::terminal::{BOLD, out};

/// Writes the unit, and says how to use and remove it. Nothing is started.
pub(crate) fn install(args: &Serve, place: &HomePlace) -> Result<Exit> {
    // What the service would stumble over is said now, where somebody reads it.
    settings::options(args, &Manner::default())?;
    let program = std::env::current_exe().map_err(io_error("cannot find this program"))?;
    let home = if place.is_named() {
        Some(place.home()?)
    } else {
        None
    };
    let words = command(&program, home.as_deref(), args);
    let unit = if cfg!(target_os = "macos") {
        launchd(&words)?
    } else {
        systemd(&words)?
    };
    let directory = unit.path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(directory)
        .map_err(io_error(format!("cannot make {}", directory.display())))?;
    let is_other = match std::fs::read(&unit.path) {
        Ok(there) => !String::from_utf8_lossy(&there).contains(MARK),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => false,
        Err(error) => {
            let about = format!("cannot read {}", unit.path.display());
            return Err(io_error(about)(error));
        }
    };
    if is_other {
        let message = format!(
            "{} is there, and Quipu did not write it",
            unit.path.display()
        );
        return Err(
            CommandError::new(Exit::Environment, anyhow::anyhow!(message))
                .hint("move it away, then try again"),
        );
    }
    let file = quipu_convert::output::NewFile::begin(&unit.path, true)
        .map_err(io_error(format!("cannot write {}", unit.path.display())))?;
    let about = format!("cannot write {}", unit.path.display());
    let written = file.writer().write_all(unit.text.as_bytes());
    written.map_err(io_error(about.clone()))?;
    file.finish().map_err(io_error(about))?;
    let mut out = out();
    writeln!(out, "Wrote {}.\n", unit.path.display())?;
    writeln!(out, "Start it, now and with every session:")?;
    for command in unit.start {
        writeln!(out, "  {BOLD}{command}{BOLD:#}")?;
    }
    writeln!(out, "Remove it:")?;
    for command in unit.remove {
        writeln!(out, "  {BOLD}{command}{BOLD:#}")?;
    }
    out.flush()?;
    Ok(Exit::Done)
}

/// What shows that Quipu wrote a unit.
const MARK: &str = "Written by `quipu up";

struct Unit {
    path: PathBuf,
    text: String,
    start: Vec<String>,
    remove: Vec<String>,
}

/// The command that a unit runs: this program, with everything that was asked for. It runs in another directory, so paths
/// are whole.
fn command(program: &Path, home: Option<&Path>, args: &Serve) -> Vec<OsString> {
    let mut words = vec![program.as_os_str().to_owned()];
    if let Some(home) = home {
        words.extend(["--home".into(), absolute(home)]);
    }
    // Nobody looks at the samples of a service, and what is sent to it is meant for the home.
    words.extend(["up".into(), "--no-samples".into()]);
    let Serve {
        listen,
        tls_cert,
        tls_key,
        host_name,
        require_keys,
        any_local_user,
        runs,
        work_dir,
        log,
        log_level,
    } = args;
    for at in listen {
        let at = match address(at) {
            Ok(Listen::Unix(path)) => absolute(&path),
            _ => at.into(),
        };
        words.push(flag("--listen", &at));
    }
    for (name, path) in [("--tls-cert", tls_cert), ("--tls-key", tls_key)] {
        words.extend(path.as_ref().map(|path| flag(name, &absolute(path))));
    }
    words.extend(host_name.iter().map(|it| flag("--host-name", it.as_ref())));
    for (name, is_given) in [
        ("--require-keys", *require_keys),
        ("--any-local-user", *any_local_user),
    ] {
        words.extend(is_given.then(|| name.into()));
    }
    words.extend(runs.iter().map(|path| flag("--runs", &absolute(path))));
    words.extend(work_dir.iter().map(|it| flag("--work-dir", &absolute(it))));
    if *log != LogForm::default() {
        words.push(flag("--log", name_of(log).as_ref()));
    }
    words.extend(log_level.map(|level| flag("--log-level", name_of(&level).as_ref())));
    words
}

fn flag(name: &str, value: &OsStr) -> OsString {
    let mut word = OsString::from(name);
    word.push("=");
    word.push(value);
    word
}

/// The word of the command line for a value.
fn name_of(value: &impl ValueEnum) -> String {
    let value = value.to_possible_value();
    value.map_or_else(String::new, |value| value.get_name().to_owned())
}

fn systemd(words: &[OsString]) -> Result<Unit> {
    let config = etcetera::base_strategy::choose_base_strategy()
        .map_err(|error| CommandError::new(Exit::Environment, anyhow::Error::new(error)))?
        .config_dir();
    let path = config.join("systemd/user/quipu.service");
    let shown = crate::commands::resume::quote(&path.to_string_lossy());
    Ok(Unit {
        path,
        text: systemd_text(words),
        start: vec![
            "systemctl --user daemon-reload".to_owned(),
            "systemctl --user enable --now quipu.service".to_owned(),
        ],
        remove: vec![
            "systemctl --user disable --now quipu.service".to_owned(),
            format!("rm {shown}"),
        ],
    })
}

fn systemd_text(words: &[OsString]) -> String {
    let words = words.iter().enumerate();
    // systemd fills in variables in arguments, and not in the name of the program.
    let words: Vec<_> = words.map(|(n, word)| systemd_word(word, n > 0)).collect();
    format!(
        "# {MARK} --install-service`.\n\
         [Unit]\n\
         Description=Quipu, the flight recorder and archive for agents\n\
         \n\
         [Service]\n\
         ExecStart={}\n\
         Restart=on-failure\n\
         Nice=10\n\
         UMask=0077\n\
         NoNewPrivileges=yes\n\
         \n\
         [Install]\n\
         WantedBy=default.target\n",
        words.join(" ")
    )
}

/// A word of a command in a unit: quoted, with what systemd would fill in written twice. What would end the line, or is no
/// text, is written as an escape.
fn systemd_word(word: &OsStr, has_variables: bool) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@+".contains(c);
    if let Some(word) = word.to_str()
        && !word.is_empty()
        && word.chars().all(is_plain)
    {
        return word.to_owned();
    }
    let mut quoted = String::from("\"");
    for part in word.as_bytes().utf8_chunks() {
        for c in part.valid().chars() {
            match c {
                '"' | '\\' => quoted.extend(['\\', c]),
                '%' => quoted.push_str("%%"),
                '$' if has_variables => quoted.push_str("$$"),
                c if c.is_ascii_control() => quoted.extend(escaped(&[c as u8])),
                c => quoted.push(c),
            }
        }
        quoted.extend(escaped(part.invalid()));
    }
    quoted.push('"');
    quoted
}

fn escaped(bytes: &[u8]) -> impl Iterator<Item = String> {
    bytes.iter().map(|byte| format!("\\x{byte:02x}"))
}

fn launchd(words: &[OsString]) -> Result<Unit> {
    let home = etcetera::home_dir()
        .map_err(|error| CommandError::new(Exit::Environment, anyhow::Error::new(error)))?;
    let path = home.join("Library/LaunchAgents/dev.quipu.up.plist");
    let shown = crate::commands::resume::quote(&path.to_string_lossy());
    Ok(Unit {
        path,
        text: launchd_text(words)?,
        start: vec![format!("launchctl bootstrap gui/$(id -u) {shown}")],
        remove: vec![
            "launchctl bootout gui/$(id -u)/dev.quipu.up".to_owned(),
            format!("rm {shown}"),
        ],
    })
}

fn launchd_text(words: &[OsString]) -> Result<String> {
    let mut list = String::new();
    for word in words {
        list.extend(["    <string>", &xml(word)?, "</string>\n"]);
    }
    // Two hyphens in a row would end the comment.
    Ok(format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <!-- {MARK}` with install-service. -->\n\
         <plist version=\"1.0\">\n<dict>\n\
         \x20 <key>Label</key><string>dev.quipu.up</string>\n\
         \x20 <key>ProgramArguments</key>\n  <array>\n{list}  </array>\n\
         \x20 <key>RunAtLoad</key><true/>\n\
         \x20 <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>\n\
         \x20 <key>Umask</key><integer>63</integer>\n\
         </dict>\n</plist>\n"
    ))
}

/// A text in XML, which has no way to say what is no text, nor most control characters.
fn xml(word: &OsStr) -> Result<String> {
    let text = word.to_str().filter(|text| {
        let is_refused = |c: char| c.is_control() && !matches!(c, '\t' | '\n');
        !text.contains(is_refused)
    });
    let Some(text) = text else {
        let message = format!("{} cannot be written into a plist", word.display());
        return Err(CommandError::usage(message).hint("use a path of plain text"));
    };
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    Ok(text.replace('>', "&gt;"))
}

fn absolute(path: &Path) -> OsString {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    path.into_os_string()
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt as _;

    use clap::Parser as _;

    use super::*;
    use crate::args::{Args, Command};

    /// The words for what somebody typed.
    fn typed(line: &[&str]) -> Vec<OsString> {
        let args = Args::try_parse_from(["quipu", "up", "--install-service"].iter().chain(line));
        let Some(Command::Up(up)) = args.unwrap().command else {
            unreachable!("it is `up`")
        };
        let program = Path::new("/opt/100% $x/quipu");
        command(program, Some(Path::new("/a \"home\"")), &up.serve)
    }

    const ALL: [&str; 20] = [
        "--listen",
        "/run/a b.sock",
        "--listen",
        "127.0.0.1:7000",
        "--tls-cert",
        "/c.pem",
        "--tls-key",
        "/<k>&.pem",
        "--host-name=-odd",
        "--require-keys",
        "--any-local-user",
        "--runs",
        "/r/$HOME",
        "--runs",
        "/r/2",
        "--work-dir",
        "/w",
        "--log",
        "json",
        "--log-level=debug",
    ];

    #[test]
    fn a_service_is_started_as_it_was_installed() {
        let words = typed(&ALL);
        let unit = systemd_text(&words);
        let line = unit
            .lines()
            .find_map(|line| line.strip_prefix("ExecStart="));
        assert_eq!(
            line.unwrap(),
            concat!(
                r#""/opt/100%% $x/quipu" --home "/a \"home\"" up --no-samples "--listen=/run/a b.sock" "#,
                r#"--listen=127.0.0.1:7000 --tls-cert=/c.pem "--tls-key=/<k>&.pem" --host-name=-odd --require-keys "#,
                r#"--any-local-user "--runs=/r/$$HOME" --runs=/r/2 --work-dir=/w --log=json --log-level=debug"#,
            )
        );
        let plist = launchd_text(&words).unwrap();
        let strings = plist.lines().filter_map(|line| {
            let line = line.strip_prefix("    <string>")?;
            line.strip_suffix("</string>")
        });
        let strings: Vec<String> = strings
            .map(|it| {
                it.replace("&lt;", "<")
                    .replace("&gt;", ">")
                    .replace("&amp;", "&")
            })
            .collect();
        assert_eq!(
            words,
            strings.iter().map(OsString::from).collect::<Vec<_>>()
        );
        assert!(plist.contains("/&lt;k&gt;&amp;.pem"), "{plist}");
        // And what is written is understood.
        let again = Args::try_parse_from(&words).unwrap();
        let Some(Command::Up(up)) = again.command else {
            unreachable!("it is `up`")
        };
        assert!(up.no_samples && !up.install_service);
        assert_eq!(again.home.as_deref(), Some(Path::new("/a \"home\"")));
        let program = Path::new("/opt/100% $x/quipu");
        assert_eq!(command(program, again.home.as_deref(), &up.serve), words);
    }

    #[test]
    fn nothing_is_written_that_was_not_asked_for() {
        let words = typed(&[]);
        let expected = [
            "/opt/100% $x/quipu",
            "--home",
            "/a \"home\"",
            "up",
            "--no-samples",
        ];
        assert_eq!(words, expected.map(OsString::from));
        // A path is whole, wherever it was typed.
        let words = typed(&["--listen", "./q.sock", "--runs", "src"]);
        let here = std::env::current_dir().unwrap();
        assert_eq!(words[5], flag("--listen", here.join("q.sock").as_os_str()));
        assert_eq!(words[6], flag("--runs", here.join("src").as_os_str()));
    }

    #[test]
    fn a_comment_of_a_plist_has_no_two_hyphens() {
        let plist = launchd_text(&typed(&[])).unwrap();
        let (_, rest) = plist.split_once("<!--").unwrap();
        let (comment, _) = rest.split_once("-->").unwrap();
        assert!(
            comment.contains(MARK) && !comment.contains("--"),
            "{comment}"
        );
        // Also what earlier versions wrote is Quipu's.
        assert!("Written by `quipu up --install-service`".contains(MARK));
    }

    #[test]
    fn odd_paths_stay_one_word() {
        let word = |text: &str| systemd_word(text.as_ref(), true);
        assert_eq!(word("/a b/100%/$x\"y\\"), r#""/a b/100%%/$$x\"y\\""#);
        assert_eq!(word("/a\nExecStart=/b"), r#""/a\x0aExecStart=/b""#);
        assert_eq!(word(""), r#""""#);
        assert_eq!(word("é"), "\"é\"");
        let odd = OsString::from_vec(b"/a\xff".to_vec());
        assert_eq!(systemd_word(&odd, true), r#""/a\xff""#);
        assert_eq!(xml("<a & b>".as_ref()).unwrap(), "&lt;a &amp; b&gt;");
        assert!(xml(&odd).is_err() && xml("a\u{1b}b".as_ref()).is_err());
    }
}
