//! What is done with normalized transcripts.

use quipu_formats::normalized::{
    Beyond, NormalizedError, Read, Writer, embedded, read_with, verify,
};
use quipu_model::Event;

type Document = (Read, Vec<(Event, Beyond)>);

fn read(bytes: &[u8]) -> Result<Document, NormalizedError> {
    let mut events = Vec::new();
    let read = read_with(bytes, &mut |event, beyond| events.push((event, beyond)))?;
    Ok((read, events))
}

fn write((read, events): &Document) -> Vec<u8> {
    let mut writer = Writer::new(&read.header, &read.options, Vec::new()).expect("a Vec takes it");
    for (event, beyond) in events {
        writer.write(event, beyond).expect("a Vec takes it");
    }
    let (loss, bytes) = writer.end().expect("a Vec takes it");
    assert_eq!((loss.events, loss.carried), (read.events, read.events));
    bytes
}

/// Checks and reads a document, and writes what was read: it reads back as the same.
pub fn reader(bytes: &[u8]) {
    verify(bytes).expect("a slice can be read");
    // A page is looked through for one.
    drop(read_with(embedded(bytes), &mut |_, _| {}));
    let Ok(first) = read(bytes) else {
        return;
    };
    let again = write(&first);
    let second = match read(&again) {
        Ok(second) => second,
        // What is kept whole is a little deeper in what is written.
        Err(NormalizedError::NotJson { why, .. }) if why.contains("deeply") => return,
        Err(error) => panic!("{error}"),
    };
    assert_eq!(first.0.header, second.0.header);
    let bodies = |document: &Document| -> Vec<Event> {
        document.1.iter().map(|(event, _)| event.clone()).collect()
    };
    assert_eq!(bodies(&first), bodies(&second));
    assert_eq!(write(&second), again);
}
