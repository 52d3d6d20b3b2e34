//! Chunks: compressing and storing them, loading and checking them.

use std::io;
use std::path::Path;

use zstd::bulk::{Compressor, Decompressor};
use zstd::zstd_safe::compress_bound;

use super::{ArchiveError, CHUNK, ChunkFault, Inner, seek};
use crate::FileError;
use crate::address::{Digest, Shelf};
use crate::objects::{Object, read_whole};

/// Compression level: beyond it, logs get little smaller and much slower.
const LEVEL: i32 = 3;

/// A chunk of a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkRef {
    /// The SHA-256 of its bytes, which is its name.
    pub id: Digest,
    /// How many bytes of the log it holds; at least 1, at most [`CHUNK`].
    pub len: u32,
    /// Where in the log they are.
    pub offset: u64,
}

impl ChunkRef {
    /// Where in the log it ends.
    pub fn end(&self) -> u64 {
        self.offset + u64::from(self.len)
    }
}

/// Compresses and stores chunks, reusing its memory.
pub(super) struct Storer {
    compressor: Compressor<'static>,
    frame: Vec<u8>,
    compressed: Vec<u8>,
    loader: Loader,
}

impl Storer {
    pub(super) fn new() -> io::Result<Self> {
        let mut compressor = Compressor::new(LEVEL)?;
        compressor.include_checksum(true)?;
        compressor.include_contentsize(true)?;
        Ok(Self {
            compressor,
            frame: Vec::new(),
            compressed: Vec::new(),
            loader: Loader::new()?,
        })
    }

    /// Stores bytes, whose digest is `id`, as a chunk, unless it is there.
    ///
    /// A file of that name is not trusted, but read: from now on a manifest says that these bytes are
    /// kept, and a crash may have left less. That is cheaper than compressing them again.
    pub(super) fn store(
        &mut self,
        archive: &Inner,
        id: &Digest,
        bytes: &[u8],
    ) -> Result<(), ArchiveError> {
        let is_missing = match self.loader.load(&archive.chunks, id, bytes.len()) {
            Ok(_) => return Ok(()),
            Err(Unloadable::Fault(fault)) => fault == ChunkFault::Missing,
            Err(Unloadable::File(e)) => return Err(e.into()),
        };
        let (chunks, name) = (archive.chunks.objects(), archive.chunks.name_of(id));
        self.compress(bytes, archive.sizes.frame)
            .map_err(FileError::at("compress", chunks.place(&name)))?;
        if is_missing {
            // Somebody else may have been quicker, with the same bytes.
            chunks.put_if_absent(&name, &self.compressed)?;
        } else {
            chunks.replace(&name, &self.compressed)?;
        }
        Ok(())
    }

    /// Compresses a chunk: frame by frame, and then a list of the frames if there are several.
    fn compress(&mut self, bytes: &[u8], frame: usize) -> io::Result<()> {
        self.compressed.clear();
        let mut table = seek::Table::default();
        for plain in bytes.chunks(frame) {
            self.frame.clear();
            self.frame.reserve_exact(compress_bound(plain.len()));
            self.compressor.compress_to_buffer(plain, &mut self.frame)?;
            self.compressed.extend_from_slice(&self.frame);
            table.push(self.frame.len(), plain.len());
        }
        if bytes.len() > frame {
            table.write(&mut self.compressed);
        }
        Ok(())
    }

    pub(super) fn loader(&mut self) -> &mut Loader {
        &mut self.loader
    }
}

/// Why a chunk was not loaded.
pub(super) enum Unloadable {
    /// The system refused to read it.
    File(FileError),
    /// It is not there, or not what it should be.
    Fault(ChunkFault),
}

/// Loads and checks chunks, reusing its memory.
pub(super) struct Loader {
    decompressor: Decompressor<'static>,
    compressed: Vec<u8>,
    bytes: Vec<u8>,
}

impl Loader {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            decompressor: Decompressor::new()?,
            compressed: Vec::new(),
            bytes: Vec::new(),
        })
    }

    /// The bytes of a chunk, which are `len` bytes with the digest `id`.
    pub(super) fn load(
        &mut self,
        chunks: &Shelf,
        id: &Digest,
        len: usize,
    ) -> Result<&[u8], Unloadable> {
        self.bytes.clear();
        match chunks.open(id) {
            Ok(None) => Err(Unloadable::Fault(ChunkFault::Missing)),
            Err(e) => Err(Unloadable::File(e)),
            Ok(Some(object)) => self.load_open(&*object, &chunks.path_of(id), id, len),
        }
    }

    /// As [`Loader::load`], for a chunk that is open.
    ///
    /// A frame can claim any size and hold far more than its file; the buffer is made as large as the
    /// chunk should be, and zstd stops at its end.
    pub(super) fn load_open(
        &mut self,
        object: &dyn Object,
        path: &Path,
        id: &Digest,
        len: usize,
    ) -> Result<&[u8], Unloadable> {
        self.bytes.clear();
        let cap = (compress_bound(len.min(CHUNK)) + seek::LONGEST) as u64;
        let whole = read_whole(object, cap, &mut self.compressed)
            .map_err(|e| Unloadable::File(FileError::at("read", path)(e)))?;
        if whole.is_none() {
            return Err(Unloadable::Fault(ChunkFault::TooLarge));
        }
        self.bytes.reserve_exact(len.min(CHUNK));
        self.decompressor
            .decompress_to_buffer(&self.compressed, &mut self.bytes)
            .map_err(|e| Unloadable::Fault(ChunkFault::Zstd(e.to_string())))?;
        if self.bytes.len() != len || Digest::of(&self.bytes) != *id {
            self.bytes.clear();
            return Err(Unloadable::Fault(ChunkFault::Content));
        }
        Ok(&self.bytes)
    }

    /// What was loaded last; nothing if that failed.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// As [`Loader::load`], for a chunk of the log `of`.
    pub(super) fn load_chunk(
        &mut self,
        archive: &Inner,
        chunk: &ChunkRef,
        of: &Path,
    ) -> Result<&[u8], ArchiveError> {
        self.load(&archive.chunks, &chunk.id, chunk.len as usize)
            .map_err(|e| match e {
                Unloadable::File(e) => e.into(),
                Unloadable::Fault(fault) => ArchiveError::Chunk {
                    path: archive.chunks.path_of(&chunk.id),
                    of: of.to_owned(),
                    fault,
                },
            })
    }
}
