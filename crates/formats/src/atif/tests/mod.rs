mod any;
mod validator;
mod verify;
mod write;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;

use quipu_model::{
    Annotations, Attachment, Body, Event, Header, Notes, Origin, Place, RunId, Timestamp,
};

use super::{AtifOptions, writer};
use crate::loss::Loss;
use crate::projection::{Beside, Nowhere};

/// Files that were put beside a document.
#[derive(Clone, Default)]
struct Folder(Rc<RefCell<BTreeMap<String, Vec<u8>>>>);

impl Beside for Folder {
    fn put(&mut self, name: &str, bytes: &[u8]) -> io::Result<bool> {
        self.0.borrow_mut().insert(name.to_owned(), bytes.to_vec());
        Ok(true)
    }
}

fn written(header: &Header, events: &[Event]) -> (String, Loss) {
    written_with(header, events, &AtifOptions::default(), Nowhere, &[])
}

fn written_with<'w>(
    header: &Header,
    events: &[Event],
    options: &AtifOptions,
    beside: impl Beside + 'w,
    blobs: &[(&Attachment, &[u8])],
) -> (String, Loss) {
    let mut out = Vec::new();
    let mut to = writer(header, options, Box::new(&mut out), Box::new(beside)).unwrap();
    for event in events {
        for (attachment, bytes) in blobs {
            if event.annotations.attachments.contains(attachment) {
                to.blob(attachment, bytes).unwrap();
            }
        }
        to.event(event).unwrap();
    }
    let loss = to.finish().unwrap();
    (String::from_utf8(out).unwrap(), loss)
}

/// Events of a session, one after the other.
struct Story {
    header: Header,
    events: Vec<Event>,
}

impl Story {
    fn new() -> Self {
        let mut header = Header::new(RunId::new("run-1").unwrap());
        header.origin = Some(Origin {
            agent: "claude-code".to_owned(),
            agent_version: Some("2.1.0".to_owned()),
            adapter: Some("claude".to_owned()),
            session_id: Some("s-1".into()),
            path: Some("/home/ada/s-1.jsonl".to_owned()),
        });
        Self {
            header,
            events: Vec::new(),
        }
    }

    fn add(&mut self, body: Body, notes: Notes) {
        let seq = self.events.len() as u64 + 1;
        let second = 1_767_323_045 + i64::try_from(seq).unwrap();
        let event = Event {
            seq,
            run_id: self.header.run_id.clone(),
            parent_run_id: None,
            timestamp: Timestamp::from_second(second).unwrap(),
            place: Place::run(),
            body,
            annotations: Annotations::from(notes),
        };
        self.header.observe(&event);
        self.events.push(event);
    }

    fn written(&self) -> (String, Loss) {
        let (text, loss) = written(&self.header, &self.events);
        assert_eq!(validator::wrongs(&text), Vec::<String>::new(), "{text}");
        (text, loss)
    }

    fn document(&self) -> serde_json::Value {
        serde_json::from_str(&self.written().0).unwrap()
    }
}
