//! Implementations that keep everything in memory.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use quipu_model::Timestamp;

use crate::FileError;
use crate::objects::{Look, Object, ObjectName, Objects};

/// Objects in memory.
#[derive(Debug, Default)]
pub struct MemoryObjects {
    kept: Mutex<BTreeMap<ObjectName, (Arc<[u8]>, Timestamp)>>,
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
        let look = |(bytes, written): &(Arc<[u8]>, Timestamp)| Look {
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
