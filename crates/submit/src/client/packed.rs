//! A document, packed and measured, to be sent as often as it takes.

use std::fmt;
use std::io::{self, Read, Seek as _, SeekFrom, Write as _};

use tempfile::SpooledTempFile;

use crate::bytes::Measured;
use crate::protocol::{Encoding, NewUpload, Sha256, TranscriptId};

/// Up to here it stays in memory; a file that has no name holds what is longer.
const IN_MEMORY: usize = 4 << 20;
/// How well it is packed: what the network takes is more than what the packing takes.
const ZSTD_LEVEL: i32 = 9;

/// A document, packed and measured. It was redacted before; here it is bytes.
pub struct Packed {
    id: TranscriptId,
    sha256: Sha256,
    bytes: u64,
    encoding: Encoding,
    size: u64,
    spool: SpooledTempFile,
}

impl fmt::Debug for Packed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packed")
            .field("id", &self.id)
            .field("sha256", &self.sha256)
            .field("bytes", &self.bytes)
            .field("encoding", &self.encoding)
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}

impl Packed {
    /// Packs a document of any length. The same document gives the same bytes, so that an upload can be gone on with.
    ///
    /// # Errors
    ///
    /// It cannot be read, or there is no room for it.
    pub fn new(id: TranscriptId, document: impl Read, encoding: Encoding) -> io::Result<Self> {
        let mut document = Measured::new(document);
        let mut spool = SpooledTempFile::new(IN_MEMORY);
        match encoding {
            Encoding::Identity => {
                io::copy(&mut document, &mut spool)?;
            }
            Encoding::Gzip => {
                let level = flate2::Compression::default();
                let mut packer = flate2::write::GzEncoder::new(&mut spool, level);
                io::copy(&mut document, &mut packer)?;
                packer.finish()?;
            }
            Encoding::Zstd => {
                let mut packer = zstd::Encoder::new(&mut spool, ZSTD_LEVEL)?;
                io::copy(&mut document, &mut packer)?;
                packer.finish()?;
            }
        }
        spool.flush()?;
        let size = spool.stream_position()?;
        let (bytes, hash) = document.finish();
        Ok(Self {
            id,
            sha256: Sha256::parse(&hash).map_err(io::Error::other)?,
            bytes,
            encoding,
            size,
            spool,
        })
    }

    /// What it is submitted as.
    pub fn id(&self) -> &TranscriptId {
        &self.id
    }

    /// The SHA-256 of the document.
    pub fn sha256(&self) -> Sha256 {
        self.sha256
    }

    /// How many bytes the document has.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How it is packed.
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// How many bytes are sent.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// What begins its upload.
    pub fn upload(&self) -> NewUpload {
        NewUpload {
            transcript_id: self.id.clone(),
            sha256: self.sha256,
            size: self.size,
            encoding: self.encoding,
        }
    }

    /// Some of the bytes that are sent, at most so many.
    pub(crate) fn piece(&mut self, at: u64, most: usize) -> io::Result<Vec<u8>> {
        self.spool.seek(SeekFrom::Start(at))?;
        let mut piece = Vec::new();
        (&mut self.spool)
            .take(most as u64)
            .read_to_end(&mut piece)?;
        Ok(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn unpacked(packed: &mut Packed) -> Vec<u8> {
        let bytes = packed.piece(0, usize::MAX).unwrap();
        let mut plain = Vec::new();
        match packed.encoding() {
            Encoding::Identity => plain = bytes,
            Encoding::Gzip => {
                let mut decoder = flate2::read::GzDecoder::new(&bytes[..]);
                decoder.read_to_end(&mut plain).unwrap();
            }
            Encoding::Zstd => plain = zstd::decode_all(&bytes[..]).unwrap(),
        }
        plain
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn what_is_packed_unpacks_and_packs_the_same(document: Vec<u8>, at in 0u64..64) {
            let id = TranscriptId::parse("00000000").unwrap();
            for encoding in Encoding::ALL {
                let mut packed = Packed::new(id.clone(), &document[..], encoding).unwrap();
                let mut again = Packed::new(id.clone(), &document[..], encoding).unwrap();
                prop_assert_eq!(unpacked(&mut packed), &document[..]);
                prop_assert_eq!(packed.bytes(), document.len() as u64);
                prop_assert_eq!(packed.upload(), again.upload());
                let whole = packed.piece(0, usize::MAX).unwrap();
                prop_assert_eq!(&again.piece(0, usize::MAX).unwrap(), &whole);
                let from = usize::try_from(at).unwrap().min(whole.len());
                prop_assert_eq!(again.piece(from as u64, usize::MAX).unwrap(), &whole[from..]);
            }
        }
    }
}
