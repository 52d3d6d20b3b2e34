//! Implementations that keep everything in memory.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use quipu_model::Timestamp;

use crate::FileError;
use crate::events::{BlockWriter, Blocks, EventBlocks, Fault};
use crate::live::{Bus, Change, Changes, Heard};
use crate::objects::{Look, Object, ObjectName, Objects};

/// Bytes, and when they were put.
type Kept = (Arc<[u8]>, Timestamp);

/// Objects in memory.
#[derive(Debug, Default)]
pub struct MemoryObjects {
    kept: Mutex<BTreeMap<ObjectName, Kept>>,
}

impl Objects for MemoryObjects {
    fn put_if_absent(&self, name: &ObjectName, bytes: &[u8]) -> Result<bool, FileError> {
        let mut kept = self.kept.lock();
        if kept.contains_key(name) {
            return Ok(false);
        }
        kept.insert(name.clone(), (bytes.into(), Timestamp::now()));
        Ok(true)
    }

    fn replace(&self, name: &ObjectName, bytes: &[u8]) -> Result<(), FileError> {
        let object = (bytes.into(), Timestamp::now());
        self.kept.lock().insert(name.clone(), object);
        Ok(())
    }

    fn open(&self, name: &ObjectName) -> Result<Option<Box<dyn Object>>, FileError> {
        let kept = self.kept.lock();
        let object = kept.get(name).map(|(bytes, _)| InMemory(bytes.clone()));
        Ok(object.map(|object| Box::new(object) as Box<dyn Object>))
    }

    fn look(&self, name: &ObjectName) -> Result<Option<Look>, FileError> {
        let look = |(bytes, written): &Kept| Look {
            len: bytes.len() as u64,
            written: Some(*written),
        };
        Ok(self.kept.lock().get(name).map(look))
    }

    fn list(&self, prefix: &str) -> Box<dyn Iterator<Item = Result<ObjectName, FileError>> + Send> {
        let kept = self.kept.lock();
        let names = kept.keys().filter(|name| name.as_str().starts_with(prefix));
        let names: Vec<_> = names.cloned().map(Ok).collect();
        Box::new(names.into_iter())
    }

    fn delete(&self, name: &ObjectName) -> Result<bool, FileError> {
        Ok(self.kept.lock().remove(name).is_some())
    }

    fn touch(&self, name: &ObjectName) {
        if let Some((_, written)) = self.kept.lock().get_mut(name) {
            *written = Timestamp::now();
        }
    }

    fn sync(&self) -> Result<(), FileError> {
        Ok(())
    }

    fn place(&self, name: &ObjectName) -> PathBuf {
        Path::new("memory").join(name.as_str())
    }
}

#[derive(Debug)]
struct InMemory(Arc<[u8]>);

impl Object for InMemory {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<()> {
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        let bytes = self.0.get(from..).and_then(|rest| rest.get(..into.len()));
        into.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

/// Event blocks in memory.
#[derive(Debug, Default, Clone)]
pub struct MemoryEvents {
    kept: Arc<Mutex<HashMap<String, Arc<Finished>>>>,
}

#[derive(Debug, Default)]
struct Finished {
    bytes: Vec<u8>,
    tail: Vec<u8>,
}

impl MemoryEvents {
    fn writer(&self, key: &str, bytes: Vec<u8>) -> Box<dyn BlockWriter> {
        Box::new(MemoryWriter {
            into: self.clone(),
            key: key.to_owned(),
            bytes,
        })
    }
}

impl EventBlocks for MemoryEvents {
    fn open(&self, key: &str) -> Result<Box<dyn Blocks>, Fault> {
        let kept = self.kept.lock().get(key).cloned();
        let finished = kept.ok_or(Fault::Missing)?;
        Ok(Box::new(MemoryBlocks {
            finished,
            place: self.place(key),
        }))
    }

    fn begin(&self, key: &str) -> io::Result<Box<dyn BlockWriter>> {
        Ok(self.writer(key, Vec::new()))
    }

    fn resume(&self, key: &str) -> io::Result<Option<Box<dyn BlockWriter>>> {
        let kept = self.kept.lock().get(key).cloned();
        Ok(kept.map(|finished| self.writer(key, finished.bytes.clone())))
    }

    fn remove(&self, key: &str) -> Result<(), FileError> {
        self.kept.lock().remove(key);
        Ok(())
    }

    fn keys(&self) -> HashSet<String> {
        self.kept.lock().keys().cloned().collect()
    }

    fn bytes(&self) -> u64 {
        let kept = self.kept.lock();
        let len = |it: &Arc<Finished>| (it.bytes.len() + it.tail.len()) as u64;
        kept.values().map(len).sum()
    }

    fn place(&self, key: &str) -> PathBuf {
        Path::new("memory").join(key)
    }
}

#[derive(Debug)]
struct MemoryBlocks {
    finished: Arc<Finished>,
    place: PathBuf,
}

impl Blocks for MemoryBlocks {
    fn tail(&self) -> &[u8] {
        &self.finished.tail
    }

    fn read(&self, at: u64, len: usize) -> io::Result<Vec<u8>> {
        let from = usize::try_from(at).unwrap_or(usize::MAX);
        let bytes = self.finished.bytes.get(from..);
        let bytes = bytes.and_then(|rest| rest.get(..len));
        Ok(bytes.ok_or(io::ErrorKind::UnexpectedEof)?.to_vec())
    }

    fn place(&self) -> PathBuf {
        self.place.clone()
    }
}

#[derive(Debug)]
struct MemoryWriter {
    into: MemoryEvents,
    key: String,
    bytes: Vec<u8>,
}

impl BlockWriter for MemoryWriter {
    fn append(&mut self, block: &[u8]) -> io::Result<u64> {
        let at = self.bytes.len() as u64;
        self.bytes.extend_from_slice(block);
        Ok(at)
    }

    fn taken(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn finish(self: Box<Self>, tail: &[u8]) -> io::Result<()> {
        let finished = Finished {
            bytes: self.bytes,
            tail: tail.to_vec(),
        };
        self.into.kept.lock().insert(self.key, Arc::new(finished));
        Ok(())
    }
}

/// So much is kept for a follower that does not listen.
const HELD: usize = 1024;

/// A bus in memory, for the threads of one process.
#[derive(Debug, Default)]
pub struct MemoryBus {
    followers: Mutex<Vec<Weak<Queue>>>,
}

#[derive(Debug, Default)]
struct Queue {
    heard: Mutex<VecDeque<Heard>>,
    more: Condvar,
}

impl Bus for MemoryBus {
    fn publish(&self, changes: &[Change]) -> io::Result<()> {
        let mut followers = self.followers.lock();
        followers.retain(|follower| {
            let Some(queue) = follower.upgrade() else {
                return false;
            };
            let mut heard = queue.heard.lock();
            for change in changes {
                if heard.len() >= HELD {
                    heard.clear();
                    heard.push_back(Heard::Missed);
                }
                heard.push_back(Heard::Change(change.clone()));
            }
            queue.more.notify_all();
            true
        });
        Ok(())
    }

    fn follow(&self) -> io::Result<Box<dyn Changes>> {
        let queue = Arc::new(Queue::default());
        self.followers.lock().push(Arc::downgrade(&queue));
        Ok(Box::new(MemoryFollower(queue)))
    }
}

#[derive(Debug)]
struct MemoryFollower(Arc<Queue>);

impl Changes for MemoryFollower {
    fn next(&mut self, wait: Duration) -> io::Result<Heard> {
        let until = Instant::now() + wait;
        let mut heard = self.0.heard.lock();
        loop {
            if let Some(heard) = heard.pop_front() {
                return Ok(heard);
            }
            if self.0.more.wait_until(&mut heard, until).timed_out() {
                return Ok(heard.pop_front().unwrap_or(Heard::Nothing));
            }
        }
    }
}
