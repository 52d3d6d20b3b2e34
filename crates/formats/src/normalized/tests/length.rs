//! Documents of any length, in bounded memory.

use std::io;

use crate::normalized::read;

/// A document of at least so many bytes that is nowhere as a whole.
struct Long {
    head: Vec<u8>,
    item: Vec<u8>,
    left: usize,
    tail: &'static [u8],
    /// What is given out now, and how much of it was.
    now: Vec<u8>,
    at: usize,
    state: u8,
}

impl Long {
    fn new(bytes: usize) -> Self {
        let text = "The quick brown fox \\\"jumps\\\" over {lazy} [dogs].\\n".repeat(40);
        let item = format!(
            "{{\"id\":\"x\",\"type\":\"assistant_message\",\"timestamp\":\"2026-06-22T10:00:03Z\",\"text\":\"{text}\"}}"
        );
        Self {
            head: b"{\"schemaVersion\":\"0.1.0\",\"source\":{\"agent\":\"a\"},\"events\":["
                .to_vec(),
            left: bytes / item.len() + 1,
            item: item.into_bytes(),
            tail: b"]}",
            now: Vec::new(),
            at: 0,
            state: 0,
        }
    }

    fn more(&mut self) -> bool {
        self.at = 0;
        self.now.clear();
        match self.state {
            0 => {
                self.now.extend_from_slice(&self.head);
                self.now.extend_from_slice(&self.item);
                self.state = 1;
            }
            1 if self.left > 1 => {
                self.left -= 1;
                self.now.push(b',');
                self.now.extend_from_slice(&self.item);
            }
            1 => {
                self.now.extend_from_slice(self.tail);
                self.state = 2;
            }
            _ => return false,
        }
        true
    }
}

impl io::Read for Long {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let mut given = 0;
        while given < to.len() {
            if self.at == self.now.len() && !self.more() {
                break;
            }
            let n = (to.len() - given).min(self.now.len() - self.at);
            to[given..given + n].copy_from_slice(&self.now[self.at..self.at + n]);
            self.at += n;
            given += n;
        }
        Ok(given)
    }
}

#[test]
fn a_document_of_half_a_gigabyte_is_held_event_by_event() {
    let bytes: usize = if cfg!(debug_assertions) {
        120 << 20
    } else {
        500 << 20
    };
    let (mut events, mut texts) = (0_u64, 0_usize);
    let read = read(Long::new(bytes), &mut |event| {
        events += 1;
        texts += event.body.texts().map(str::len).sum::<usize>();
    })
    .unwrap();
    assert_eq!(read.events, events);
    assert!(texts > bytes / 2);
    assert!(read.held < 64 * 1024, "{} bytes were held", read.held);
}
