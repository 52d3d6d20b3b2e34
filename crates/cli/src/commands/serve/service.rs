//! `quipu up --install-service`: a unit that starts Quipu with the user's session.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy as _;

use crate::error::{CommandError, Exit, Result, io_error};
use crate::locate::HomePlace;
use crate::terminal::{BOLD, out};

/// Writes the unit, and says how to use and remove it. Nothing is started.
pub(crate) fn install(place: &HomePlace) -> Result<Exit> {
    let program = std::env::current_exe().map_err(io_error("cannot find this program"))?;
    let unit = if cfg!(target_os = "macos") {
        launchd(&program, place)?
    } else {
        systemd(&program, place)?
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
const MARK: &str = "Written by `quipu up --install-service`";

struct Unit {
    path: PathBuf,
    text: String,
    start: Vec<String>,
    remove: Vec<String>,
}

fn systemd(program: &Path, place: &HomePlace) -> Result<Unit> {
    let config = etcetera::base_strategy::choose_base_strategy()
        .map_err(|error| CommandError::new(Exit::Environment, anyhow::Error::new(error)))?
        .config_dir();
    let path = config.join("systemd/user/quipu.service");
    let mut words = vec![systemd_word(&program.to_string_lossy())];
    if place.is_named() {
        words.push("--home".to_owned());
        words.push(systemd_word(&absolute(&place.home()?)));
    }
    words.push("up".to_owned());
    let text = format!(
        "# {MARK}.\n\
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
    );
    let shown = crate::commands::resume::quote(&path.to_string_lossy());
    Ok(Unit {
        path,
        text,
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

/// A word of a command in a unit: quoted, with what systemd would fill in written twice.
fn systemd_word(word: &str) -> String {
    let mut quoted = String::from("\"");
    for c in word.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '%' | '$' => quoted.extend([c, c]),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

fn launchd(program: &Path, place: &HomePlace) -> Result<Unit> {
    let home = etcetera::home_dir()
        .map_err(|error| CommandError::new(Exit::Environment, anyhow::Error::new(error)))?;
    let path = home.join("Library/LaunchAgents/dev.quipu.up.plist");
    let mut words = vec![program.to_string_lossy().into_owned()];
    if place.is_named() {
        words.push("--home".to_owned());
        words.push(absolute(&place.home()?));
    }
    words.push("up".to_owned());
    let mut list = String::new();
    for word in &words {
        list.extend(["    <string>", &xml(word), "</string>\n"]);
    }
    let text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <!-- {MARK}. -->\n\
         <plist version=\"1.0\">\n<dict>\n\
         \x20 <key>Label</key><string>dev.quipu.up</string>\n\
         \x20 <key>ProgramArguments</key>\n  <array>\n{list}  </array>\n\
         \x20 <key>RunAtLoad</key><true/>\n\
         \x20 <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>\n\
         \x20 <key>Umask</key><integer>63</integer>\n\
         </dict>\n</plist>\n"
    );
    let shown = crate::commands::resume::quote(&path.to_string_lossy());
    Ok(Unit {
        path,
        text,
        start: vec![format!("launchctl bootstrap gui/$(id -u) {shown}")],
        remove: vec![
            "launchctl bootout gui/$(id -u)/dev.quipu.up".to_owned(),
            format!("rm {shown}"),
        ],
    })
}

fn xml(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;")
}

fn absolute(path: &Path) -> String {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_paths_stay_one_word() {
        assert_eq!(
            systemd_word("/a b/100%/$x\"y\\"),
            r#""/a b/100%%/$$x\"y\\""#
        );
        assert_eq!(xml("<a & b>"), "&lt;a &amp; b&gt;");
    }
}
