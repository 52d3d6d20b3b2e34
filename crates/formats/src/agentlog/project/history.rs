//! What was said so far: the messages of a request.
//!
//! A log says what was answered, seldom what was asked. A request is put together from all that was said
//! before it. For a long session that would be quadratic, so from some length on a request has only the
//! messages that are new since the one before, and says how many it leaves out.

use super::lane::When;

/// The messages that the next request has.
#[derive(Debug, Default)]
pub(super) struct History {
    messages: Vec<Message>,
    bytes: usize,
    /// How many of the messages were in the request before.
    sent: usize,
    /// How many messages came before those that are held.
    omitted: u64,
    why: Why,
}

#[derive(Debug)]
struct Message {
    json: String,
    superseded: bool,
    /// Of a prompt or an instruction, which only requests say: its event. Answers and results have records of
    /// their own.
    asked: Option<(u64, When)>,
}

impl Message {
    fn is_taken_back(&self) -> bool {
        self.superseded && self.asked.is_some()
    }
}

/// Why messages are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Why {
    /// None are.
    #[default]
    None,
    /// The agent condensed what came before.
    Compacted,
    /// The request would be too long.
    TooLong,
}

impl Why {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::None => "all",
            Self::Compacted => "since_compaction",
            Self::TooLong => "new",
        }
    }
}

/// The messages of a request.
pub(super) struct Asked {
    pub(super) messages: String,
    pub(super) why: Why,
    pub(super) omitted: u64,
}

impl History {
    /// An answer, or what a tool gave back.
    pub(super) fn push(&mut self, json: String, superseded: bool) {
        self.add(json, superseded, None);
    }

    /// A prompt or an instruction.
    pub(super) fn push_asked(&mut self, json: String, superseded: bool, seq: u64, when: When) {
        self.add(json, superseded, Some((seq, when)));
    }

    fn add(&mut self, json: String, superseded: bool, asked: Option<(u64, When)>) {
        self.bytes += json.len() + 1;
        self.messages.push(Message {
            json,
            superseded,
            asked,
        });
    }

    /// What came before is not sent again. A prompt that was not sent yet is still to be answered.
    pub(super) fn compacted(&mut self) {
        let before = self.messages.len();
        let unsent = self.messages.split_off(self.sent);
        self.messages = unsent;
        self.messages.retain(|message| message.asked.is_some());
        self.omitted += (before - self.messages.len()) as u64;
        (self.sent, self.why) = (0, Why::Compacted);
        self.weigh();
    }

    fn weigh(&mut self) {
        self.bytes = self.messages.iter().map(|it| it.json.len() + 1).sum();
    }

    /// The last prompt that is in no request yet.
    pub(super) fn unsent(&self) -> Option<(u64, When)> {
        let unsent = self.messages[self.sent..].iter();
        unsent.rev().find_map(|message| message.asked)
    }

    /// The last prompt that is in no request yet and was taken back, so that the next request will not have it.
    pub(super) fn taken_back(&self) -> Option<(u64, When)> {
        let unsent = self.messages[self.sent..].iter();
        unsent.rev().find(|it| it.is_taken_back())?.asked
    }

    /// The messages of a request that ends with the last prompt that was taken back.
    pub(super) fn ask_taken_back(&mut self, max_bytes: usize) -> Asked {
        let last = self.messages.iter().rposition(Message::is_taken_back);
        let behind = self.messages.split_off(last.map_or(0, |last| last + 1));
        self.weigh();
        let asked = self.ask(max_bytes, true);
        self.messages.extend(behind);
        self.weigh();
        asked
    }

    /// The messages of a request that is made now. What was taken back is only in the requests of what
    /// was taken back with it.
    pub(super) fn ask(&mut self, max_bytes: usize, superseded: bool) -> Asked {
        if !superseded && self.messages.iter().any(|message| message.superseded) {
            let held = self.messages[..self.sent]
                .iter()
                .filter(|it| !it.superseded);
            self.sent = held.count();
            self.messages.retain(|message| !message.superseded);
            self.weigh();
        }
        if self.bytes > max_bytes || self.why == Why::TooLong {
            self.why = Why::TooLong;
            self.omitted += self.sent as u64;
            self.messages.drain(..self.sent);
        }
        let asked = Asked {
            messages: super::text::list(self.messages.iter().map(|it| it.json.as_str())),
            why: self.why,
            omitted: self.omitted,
        };
        if self.why == Why::TooLong {
            self.omitted += self.messages.len() as u64;
            self.messages = Vec::new();
            self.bytes = 0;
        }
        self.sent = self.messages.len();
        asked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_history_is_sent_in_parts() {
        let mut history = History::default();
        history.push("1".into(), false);
        history.push("22".into(), false);
        let first = history.ask(10, false);
        assert_eq!((first.messages.as_str(), first.why), ("[1,22]", Why::None));
        history.push("333333".into(), false);
        let second = history.ask(10, false);
        assert_eq!((second.messages.as_str(), second.omitted), ("[333333]", 2));
        history.push("4".into(), false);
        let third = history.ask(10, false);
        assert_eq!((third.messages.as_str(), third.omitted), ("[4]", 3));
        assert_eq!(third.why, Why::TooLong);
    }

    #[test]
    fn what_was_taken_back_is_not_sent_again() {
        let mut history = History::default();
        history.push("1".into(), false);
        history.push("2".into(), true);
        assert_eq!(history.ask(99, true).messages, "[1,2]");
        history.push("3".into(), false);
        let asked = history.ask(99, false);
        assert_eq!((asked.messages.as_str(), asked.omitted), ("[1,3]", 0));
        history.compacted();
        history.push("4".into(), false);
        let asked = history.ask(99, false);
        assert_eq!((asked.messages.as_str(), asked.omitted), ("[4]", 2));
        assert_eq!(asked.why.as_str(), "since_compaction");
    }
}
