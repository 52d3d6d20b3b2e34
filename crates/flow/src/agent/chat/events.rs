//! Server-sent events, piece by piece.

/// The longest event that is held.
const LONGEST: usize = 10_000_000;

/// Divides bytes into the data of events.
#[derive(Debug, Default)]
pub(super) struct Events {
    pending: Vec<u8>,
    data: String,
    is_too_long: bool,
}

impl Events {
    /// Takes bytes, and gives the data of the events that end in them.
    pub(super) fn push(&mut self, bytes: &[u8], take: &mut dyn FnMut(&str)) {
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            self.pending.extend_from_slice(&rest[..end]);
            rest = &rest[end + 1..];
            let line = std::mem::take(&mut self.pending);
            self.line(&line, take);
        }
        self.pending.extend_from_slice(rest);
        if self.pending.len() > LONGEST {
            self.pending = Vec::new();
            self.is_too_long = true;
        }
    }

    /// The end: an event may lack its last empty line.
    pub(super) fn finish(&mut self, take: &mut dyn FnMut(&str)) {
        let line = std::mem::take(&mut self.pending);
        self.line(&line, take);
        self.line(b"", take);
    }

    /// Whether an event was too long to be held.
    pub(super) fn is_too_long(&self) -> bool {
        self.is_too_long
    }

    fn line(&mut self, line: &[u8], take: &mut dyn FnMut(&str)) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            if !self.data.is_empty() {
                take(&std::mem::take(&mut self.data));
            }
        } else if let Some(data) = line.strip_prefix(b"data:") {
            let data = data.strip_prefix(b" ").unwrap_or(data);
            if !self.data.is_empty() {
                self.data.push('\n');
            }
            self.data.push_str(&String::from_utf8_lossy(data));
            if self.data.len() > LONGEST {
                self.data = String::new();
                self.is_too_long = true;
            }
        }
    }
}
