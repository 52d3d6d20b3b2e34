//! Reading pieces of a snapshot, from any place of it.

use std::io;
use std::ops::Range;

use zstd::bulk::Decompressor;
use zstd::zstd_safe::{compress_bound, find_frame_compressed_size, get_frame_content_size};

use super::chunk::{Loader, Unloadable};
use super::seek::Table;
use super::{Archive, ArchiveError, CHUNK, ChunkFault, Snapshot};
use crate::FileError;
use crate::objects::Object;

/// So many chunks are opened at once, so that they can be read even if the log is forgotten meanwhile.
const OPENED: usize = 64;

/// How many frames are held: a record may lie in two of them.
const HELD: usize = 2;

impl Archive {
    /// Pieces of a snapshot.
    pub(crate) fn slices(&self, snapshot: &Snapshot) -> Slices {
        let open = |id| self.inner.chunks.open(id).ok().flatten();
        let chunks = &snapshot.chunks;
        let open = match chunks.len() {
            // Whoever wants a chunk that is not there is told then.
            ..=OPENED => chunks.iter().map(|chunk| open(&chunk.id)).collect(),
            _ => Vec::new(),
        };
        Slices {
            archive: self.clone(),
            snapshot: snapshot.clone(),
            open,
        }
    }
}

/// A snapshot that is read piece by piece.
#[derive(Debug)]
pub(crate) struct Slices {
    archive: Archive,
    snapshot: Snapshot,
    /// Chunks that are open already.
    open: Vec<Option<Box<dyn Object>>>,
}

impl Slices {
    /// Reads pieces of it.
    pub(crate) fn reader(&self) -> SliceReader<'_> {
        SliceReader {
            slices: self,
            chunk: None,
            held: [Held::default(), Held::default()],
            packed: Vec::new(),
            decompressor: None,
            loader: None,
        }
    }
}

/// Reads pieces of a snapshot. Quick where they are close to each other: what was unpacked last is held.
pub(crate) struct SliceReader<'s> {
    slices: &'s Slices,
    /// The chunk that was read last.
    chunk: Option<Chunk<'s>>,
    /// What was unpacked, the latest first.
    held: [Held; HELD],
    packed: Vec<u8>,
    decompressor: Option<Decompressor<'static>>,
    loader: Option<Loader>,
}

struct Chunk<'s> {
    index: usize,
    object: Opened<'s>,
    /// Its frames; `None` when it is read as a whole.
    table: Option<Table>,
}

enum Opened<'s> {
    Before(&'s dyn Object),
    Now(Box<dyn Object>),
}

/// Bytes of the log, and where they are in it.
#[derive(Debug, Default)]
struct Held {
    at: Range<u64>,
    bytes: Vec<u8>,
}

impl SliceReader<'_> {
    /// Appends a piece of the log.
    ///
    /// # Errors
    ///
    /// When a chunk is missing or damaged, or the log is not that long.
    pub(crate) fn append(
        &mut self,
        offset: u64,
        len: usize,
        into: &mut Vec<u8>,
    ) -> Result<(), ArchiveError> {
        // Before anything is put into memory: a length may be made up.
        let end = offset.checked_add(len as u64);
        let size = self.slices.snapshot.size;
        let end = end
            .filter(|end| *end <= size)
            .ok_or_else(|| self.beyond())?;
        let mut from = offset;
        while from < end {
            if !self.held[0].at.contains(&from) {
                self.held.rotate_right(1);
                if !self.held[0].at.contains(&from) {
                    self.held[0].at = 0..0;
                    self.unpack(from)?;
                }
            }
            let Held { at, bytes } = &self.held[0];
            let within = |place: u64| usize::try_from(place - at.start).unwrap_or(usize::MAX);
            let to = end.min(at.end);
            let piece = bytes.get(within(from)..within(to)).unwrap_or_default();
            into.extend_from_slice(piece);
            from = to;
        }
        Ok(())
    }

    fn beyond(&self) -> ArchiveError {
        let of = self.slices.snapshot.key.path.clone();
        ArchiveError::Beyond { of }
    }

    /// Unpacks what has this byte of the log, into the first that is held.
    fn unpack(&mut self, byte: u64) -> Result<(), ArchiveError> {
        let chunks = &self.slices.snapshot.chunks;
        let index = chunks.partition_point(|chunk| chunk.end() <= byte);
        let of = &self.slices.snapshot.key.path;
        let wanted = chunks.get(index).ok_or_else(|| self.beyond())?;
        let path = self.slices.archive.inner.chunks.path_of(&wanted.id);
        let fault = |unloadable| match unloadable {
            Unloadable::File(e) => ArchiveError::File(e),
            Unloadable::Fault(fault) => ArchiveError::Chunk {
                path: path.clone(),
                of: of.clone(),
                fault,
            },
        };
        let refused = |source: io::Error| match source.kind() {
            io::ErrorKind::NotFound => Unloadable::Fault(ChunkFault::Missing),
            _ => Unloadable::File(FileError::at("read", &path)(source)),
        };
        let chunk = match self.chunk.take() {
            Some(chunk) if chunk.index == index => self.chunk.insert(chunk),
            _ => {
                let object = if let Some(Some(object)) = self.slices.open.get(index) {
                    Opened::Before(&**object)
                } else {
                    let opened = self.slices.archive.inner.chunks.open(&wanted.id)?;
                    let missing = Unloadable::Fault(ChunkFault::Missing);
                    Opened::Now(opened.ok_or(missing).map_err(fault)?)
                };
                let table = Table::read(object.get(), u64::from(wanted.len));
                self.chunk.insert(Chunk {
                    index,
                    table: table.map_err(refused).map_err(fault)?,
                    object,
                })
            }
        };
        let held = &mut self.held[0];
        let frame = chunk
            .table
            .as_ref()
            .and_then(|table| table.frame(byte - wanted.offset));
        if let Some(frame) = frame {
            let decompressor = match &mut self.decompressor {
                Some(decompressor) => decompressor,
                none => none.insert(Decompressor::new().map_err(refused).map_err(fault)?),
            };
            let (packed, plain) = (&frame.packed, &frame.plain);
            let lens = (packed.end - packed.start, plain.end - plain.start);
            self.packed.clear();
            if read_frame(chunk.object.get(), packed.start, lens, &mut self.packed)
                && unpack_frame(decompressor, &self.packed, lens.1, &mut held.bytes)
            {
                held.at = wanted.offset + plain.start..wanted.offset + plain.end;
                return Ok(());
            }
        }
        // The chunk as a whole says whether the list of its frames is wrong or they are.
        chunk.table = None;
        let loader = match &mut self.loader {
            Some(loader) => loader,
            none => none.insert(Loader::new().map_err(refused).map_err(fault)?),
        };
        let bytes = loader
            .load_open(chunk.object.get(), &path, &wanted.id, wanted.len as usize)
            .map_err(fault)?;
        held.bytes.clear();
        held.bytes.extend_from_slice(bytes);
        held.at = wanted.offset..wanted.end();
        Ok(())
    }
}

impl Opened<'_> {
    fn get(&self) -> &dyn Object {
        match self {
            Self::Before(object) => *object,
            Self::Now(object) => &**object,
        }
    }
}

/// Reads a frame that should have so many bytes, packed and plain, and says whether it is there.
fn read_frame(
    object: &dyn Object,
    offset: u64,
    (packed, plain): (u64, u64),
    into: &mut Vec<u8>,
) -> bool {
    let (Ok(packed), Ok(plain)) = (usize::try_from(packed), usize::try_from(plain)) else {
        return false;
    };
    if plain > CHUNK || packed > compress_bound(plain) {
        return false;
    }
    into.resize(packed, 0);
    object.read_at(into, offset).is_ok()
}

/// Unpacks one frame that should hold `plain` bytes, and says whether it does. Its checksum is compared.
fn unpack_frame(
    decompressor: &mut Decompressor<'static>,
    packed: &[u8],
    plain: u64,
    into: &mut Vec<u8>,
) -> bool {
    let said = get_frame_content_size(packed).ok().flatten();
    if said != Some(plain) || find_frame_compressed_size(packed) != Ok(packed.len()) {
        return false;
    }
    into.clear();
    into.reserve_exact(usize::try_from(plain).unwrap_or(0));
    let unpacked = decompressor.decompress_to_buffer(packed, into);
    unpacked.is_ok_and(|len| len as u64 == plain)
}
