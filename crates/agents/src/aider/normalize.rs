//! What the lines of a chat mean.

use quipu_model::{NoteKind, Timestamp};
use serde::{Deserialize, Serialize};

use super::wire::{RUN, TOOL, USER};
use crate::{Entry, Mended, Origin, Out, Reader, Session, Text, What, hash, time};

/// Reads a chat.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Chat {
    session: Session,
}

/// What a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It begins a run.
    Run,
    /// A person says it.
    User,
    /// Aider says it.
    Tool,
    /// The model says it.
    Assistant,
}

/// How lines are told apart. Aider ends the lines of a person, and its own, with two spaces, and a model
/// does not; a file that was tidied up has lost them.
#[derive(Debug, Clone, Copy)]
struct Marks {
    user: bool,
    tool: bool,
}

impl Marks {
    fn of(text: &str) -> Self {
        let ended = |prefix: &str| {
            text.lines()
                .any(|line| line.starts_with(prefix) && line.ends_with("  "))
        };
        Self {
            user: ended(USER),
            tool: ended(TOOL),
        }
    }

    fn kind(self, line: &str) -> Kind {
        let ends = |asked: bool| !asked || line.ends_with("  ");
        if line.starts_with(RUN) {
            Kind::Run
        } else if (line.starts_with(USER) || line.trim_end() == USER.trim_end()) && ends(self.user)
        {
            Kind::User
        } else if (line.starts_with(TOOL) || line.trim_end() == TOOL.trim_end()) && ends(self.tool)
        {
            Kind::Tool
        } else {
            Kind::Assistant
        }
    }
}

/// Lines of one kind that follow each other.
struct Section<'a> {
    kind: Kind,
    /// Where it begins.
    from: usize,
    text: &'a str,
}

fn sections(text: &str) -> Vec<Section<'_>> {
    let marks = Marks::of(text);
    let mut sections: Vec<Section<'_>> = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let kind = marks.kind(line.trim_end_matches(['\n', '\r']));
        let end = at + line.len();
        match sections.last_mut() {
            Some(last) if last.kind == kind && kind != Kind::Run => {
                last.text = &text[last.from..end];
            }
            _ => sections.push(Section {
                kind,
                from: at,
                text: line,
            }),
        }
        at = end;
    }
    sections
}

impl Chat {
    pub(super) fn new(origin: &Origin<'_>) -> Self {
        // The chat lies in the directory that it is about.
        let directory = origin.path.parent().and_then(|path| path.to_str());
        Self {
            session: Session {
                cwd: directory
                    .filter(|directory| !directory.is_empty())
                    .map(str::to_owned),
                ..Session::default()
            },
        }
    }

    fn section(&mut self, section: &Section<'_>, at: &mut Option<Timestamp>, out: &mut Out<'_>) {
        let unmarked = |mark: &str| -> String {
            let lines = section.text.lines().map(|line| {
                let line = line.strip_prefix(mark).unwrap_or_default();
                line.strip_prefix(' ').unwrap_or(line).trim_end()
            });
            lines.collect::<Vec<_>>().join("\n")
        };
        let entry = match section.kind {
            Kind::Run => {
                let began = section.text.trim_end();
                let time = began.strip_prefix(RUN).unwrap_or_default();
                // It is the time on the clock, and does not say where.
                *at = time::parse(time);
                if at.is_some() {
                    out.ledger().mend(Mended::Timestamp);
                }
                let began_at = at.map(Timestamp::as_millisecond);
                self.session.started_at = self.session.started_at.or(began_at);
                Entry::note(NoteKind::Session, began.trim_start_matches("# "))
            }
            Kind::User => {
                let text = unmarked(USER.trim_end());
                if self.session.id.is_none() {
                    let seed = format!("{:?} {text}", self.session.started_at);
                    self.session.id = Some(format!("aider-{:016x}", hash(seed.as_bytes())));
                }
                Entry::new(What::User(text.into()))
            }
            Kind::Tool => {
                let text = unmarked(TOOL.trim_end());
                Entry::note(tool_note(&text), text)
            }
            Kind::Assistant => Entry::new(What::Assistant(Text::from(section.text.trim()))),
        };
        out.push(Entry { at: *at, ..entry });
    }
}

/// What Aider's own lines are about.
fn tool_note(text: &str) -> NoteKind {
    let any = |marks: &[&str]| {
        text.lines()
            .any(|line| marks.iter().any(|mark| line.starts_with(mark)))
    };
    if any(&["Applied edit to ", "Creating empty file ", "Commit "]) {
        NoteKind::FileSnapshot
    } else if any(&["Tokens: "]) {
        NoteKind::Usage
    } else if any(&[
        "Add file to the chat",
        "Run shell command",
        "Allow edits to ",
    ]) {
        NoteKind::Permission
    } else {
        NoteKind::Session
    }
}

impl Reader for Chat {
    fn record(&mut self, _record: quipu_model::json::Node<'_>, _out: &mut Out<'_>) {}

    fn text(&mut self, text: &str, out: &mut Out<'_>) {
        let text = text.trim_start_matches('\u{feff}');
        let mut at = None;
        let mut begun = false;
        for section in sections(text) {
            begun |= section.kind == Kind::Run;
            // Blank lines, and what someone put before the first run.
            if section.text.trim().is_empty() {
                continue;
            }
            let position = out.locate(section.from);
            out.item(position, |out| {
                if begun {
                    self.section(&section, &mut at, out);
                } else {
                    out.push(Entry::note(NoteKind::Context, section.text.trim()));
                }
            });
        }
    }

    crate::state::keeps_session!();
}
