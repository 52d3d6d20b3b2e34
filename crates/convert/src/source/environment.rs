//! Where a session ran: what its log says of it, and what is known of this machine.

use std::path::Path;

use quipu_agents::{Entry, Family, Host, What};

/// A longer text is somebody's, not an agent's word on where it runs.
const LONGEST: usize = 64 << 10;

/// What the texts are known by in which agents tell their models where they run.
const MARKS: [&str; 6] = [
    "<environment_context>",
    "<environment_details>",
    "<env>",
    "<user_info>",
    "<system_info>",
    "My operating system is",
];

/// How an operating system is told, and a shell.
const SYSTEMS: [&str; 5] = [
    "<operating_system>",
    "My operating system is:",
    "Operating System:",
    "Platform:",
    "OS Version:",
];
const SHELLS: [&str; 4] = ["<shell>", "Default Shell:", "Shell:", "The user's shell is"];

/// What is told of where a session ran.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Told {
    /// The operating system, by the word that most programs have for it.
    pub(super) os: Option<String>,
    /// The shell's name.
    pub(super) shell: Option<String>,
}

impl Told {
    /// What one says, and what another says where it says nothing.
    pub(super) fn or(self, other: impl FnOnce() -> Self) -> Self {
        if self.os.is_some() && self.shell.is_some() {
            return self;
        }
        let other = other();
        Self {
            os: self.os.or(other.os),
            shell: self.shell.or(other.shell),
        }
    }

    /// Looks whether an entry says where the agent runs.
    pub(super) fn look(&mut self, entry: &Entry<'_>) {
        let (What::User(text)
        | What::System(text)
        | What::Note {
            text: Some(text), ..
        }) = &entry.what
        else {
            return;
        };
        let text = text.read();
        if text.len() > LONGEST || !MARKS.iter().any(|mark| text.contains(mark)) {
            return;
        }
        if self.os.is_none() {
            self.os = SYSTEMS.iter().find_map(|lead| system(behind(&text, lead)?));
        }
        if self.shell.is_none() {
            self.shell = SHELLS.iter().find_map(|lead| shell(behind(&text, lead)?));
        }
    }
}

/// The text after a word, up to the end of its line or the next tag.
fn behind<'t>(text: &'t str, lead: &str) -> Option<&'t str> {
    let at = text.find(lead)? + lead.len();
    let rest = &text[at..];
    let end = rest.find(['\n', '<']).unwrap_or(rest.len());
    Some(rest[..end].trim())
}

/// The word for an operating system, of which there are few.
fn system(told: &str) -> Option<String> {
    let told = told.to_ascii_lowercase();
    let known = [
        ("darwin", "darwin"),
        ("macos", "darwin"),
        ("mac os", "darwin"),
        ("win32", "windows"),
        ("windows", "windows"),
        ("linux", "linux"),
        ("ubuntu", "linux"),
        ("debian", "linux"),
        ("freebsd", "freebsd"),
    ];
    let found = known.iter().find(|(word, _)| told.starts_with(word));
    found.map(|(_, name)| (*name).to_owned())
}

/// The name of a shell, of which the path may be told.
fn shell(told: &str) -> Option<String> {
    let path = told.trim_matches(['"', '\'', '`', '.']);
    let name = path.rsplit(['/', '\\']).next()?.trim();
    let name = name.strip_suffix(".exe").unwrap_or(name);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let is_name = !name.is_empty() && name.len() <= 20 && name.chars().all(is_plain);
    is_name.then(|| name.to_ascii_lowercase())
}

/// This machine, where it has a home for somebody.
pub(super) fn machine() -> Option<Host> {
    let home = std::env::home_dir().filter(|home| home.is_absolute())?;
    Some(Host::new(home, |name| std::env::var_os(name)))
}

/// What is known of this machine, where the log lies where its agent puts logs on it.
pub(super) fn here(path: &Path, family: &dyn Family) -> Told {
    let Some(host) = machine() else {
        return Told::default();
    };
    let is_own = |root: &Path| root.components().count() > 2 && path.starts_with(root);
    if !family.places(&host).iter().any(|place| is_own(&place.root)) {
        return Told::default();
    }
    let own = std::env::var("SHELL").ok();
    Told {
        os: Some(match std::env::consts::OS {
            "macos" => "darwin".to_owned(),
            other => other.to_owned(),
        }),
        shell: own.as_deref().and_then(shell),
    }
}

#[cfg(test)]
mod tests {
    use quipu_agents::Text;

    use super::*;

    fn told(text: &str) -> (Option<String>, Option<String>) {
        let mut told = Told::default();
        told.look(&Entry::new(What::User(Text::from(text.to_owned()))));
        (told.os, told.shell)
    }

    #[test]
    fn agents_tell_their_models_where_they_run() {
        let some = |os: &str, shell: &str| (Some(os.to_owned()), Some(shell.to_owned()));
        for (text, expected) in [
            (
                "<environment_context>\n  <cwd>/x</cwd>\n  <operating_system>Ubuntu 24.04</operating_system>\n  <shell>bash</shell>\n</environment_context>",
                some("linux", "bash"),
            ),
            (
                "<env>\nPlatform: win32\nShell: C:\\bin\\PowerShell.exe\n</env>",
                some("windows", "powershell"),
            ),
            (
                "<user_info>\nOS Version: darwin 24.0.0\nShell: /bin/zsh\n</user_info>",
                some("darwin", "zsh"),
            ),
            // What a person says is not what the agent runs on.
            ("Platform: linux\nShell: bash", (None, None)),
            ("<env>\nPlatform: the moon\n</env>", (None, None)),
        ] {
            assert_eq!(told(text), expected, "{text}");
        }
    }
}
