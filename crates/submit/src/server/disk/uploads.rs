//! Uploads that have not ended.
//!
//! `<id>.json` says what it will be and how much of it is known to be on disk; `<id>.part` has the bytes, and its length is
//! how far the upload came. After all processes died, what is beyond what is known to be on disk is cut off: a crash of the
//! machine may have left anything there.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::time::SystemTime;

use quipu_model::Timestamp;
use serde::{Deserialize, Serialize};

use super::files::{read_json, remove_any, sync_directory, write_json};
use super::{Disk, UPLOADS, lock};
use crate::protocol::NewUpload;
use crate::server::OpenUpload;

/// What is kept of an upload beside its bytes.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct State {
    key_id: String,
    what: NewUpload,
    /// How many bytes are known to be on disk.
    settled: u64,
}

impl Disk {
    fn upload_path(&self, id: &str, ending: &str) -> io::Result<PathBuf> {
        // Part of a file name: nothing but what the server made.
        let is_id = id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_id {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(self.root.join(UPLOADS).join(format!("{id}.{ending}")))
    }

    pub(super) fn part_path(&self, id: &str) -> io::Result<PathBuf> {
        self.upload_path(id, "part")
    }

    fn write_state(&self, id: &str, state: &State) -> io::Result<()> {
        let stage = self.stage()?;
        let from = stage.path().join("state");
        write_json(&from, state)?;
        fs::rename(&from, self.upload_path(id, "json")?)
    }

    pub(super) fn begin_upload(&self, upload: &OpenUpload) -> io::Result<()> {
        // Between the one file and the other, nobody clears away what seems to be left over.
        let _lock = lock(&self.root)?;
        let path = self.part_path(&upload.id)?;
        let made = || {
            let part = quipu_files::options()
                .write(true)
                .create_new(true)
                .open(&path)?;
            part.set_modified(SystemTime::from(upload.touched_at))?;
            part.sync_all()?;
            self.write_state(
                &upload.id,
                &State {
                    key_id: upload.key_id.clone(),
                    what: upload.what.clone(),
                    settled: 0,
                },
            )?;
            sync_directory(&self.root.join(UPLOADS))
        };
        made().inspect_err(|_| {
            // What is left is cleared away by the next who opens the directory.
            drop(self.close_upload(&upload.id));
        })
    }

    pub(super) fn one_upload(&self, id: &str) -> io::Result<Option<OpenUpload>> {
        let Ok(path) = self.upload_path(id, "json") else {
            return Ok(None);
        };
        let Some(State { key_id, what, .. }) = read_json(&path)? else {
            return Ok(None);
        };
        let metadata = match fs::metadata(self.part_path(id)?) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            metadata => metadata?,
        };
        let touched_at = Timestamp::try_from(metadata.modified()?);
        Ok(Some(OpenUpload {
            id: id.to_owned(),
            key_id,
            what,
            offset: metadata.len(),
            touched_at: touched_at.unwrap_or(Timestamp::MIN),
        }))
    }

    pub(super) fn all_uploads(&self) -> io::Result<Vec<OpenUpload>> {
        let mut all = Vec::new();
        for id in self.upload_ids("json")? {
            match self.one_upload(&id) {
                Ok(upload) => all.extend(upload),
                // One that is damaged is of no use to anybody: it has to be sent again.
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                    self.close_upload(&id)?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(all)
    }

    fn upload_ids(&self, ending: &str) -> io::Result<Vec<String>> {
        let mut ids = Vec::new();
        for entry in fs::read_dir(self.root.join(UPLOADS))? {
            let name = entry?.file_name();
            let id = name.to_str().and_then(|name| name.split_once('.'));
            ids.extend(id.filter(|it| it.1 == ending).map(|it| it.0.to_owned()));
        }
        ids.sort_unstable();
        Ok(ids)
    }

    /// The bytes of an upload, with all others kept out; `None` when it is gone.
    fn locked_part(&self, id: &str) -> io::Result<Option<File>> {
        let opened = File::options().write(true).open(self.part_path(id)?);
        let part = match opened {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            part => part?,
        };
        part.lock()?;
        // While it waited, the upload may have ended.
        Ok(self.upload_path(id, "json")?.exists().then_some(part))
    }

    pub(super) fn append_upload(
        &self,
        id: &str,
        offset: u64,
        bytes: &[u8],
        now: Timestamp,
    ) -> io::Result<bool> {
        let Some(part) = self.locked_part(id)? else {
            return Ok(false);
        };
        if part.metadata()?.len() != offset {
            return Ok(false);
        }
        if let Err(error) = part.write_all_at(bytes, offset) {
            // Wholly or not at all. When this fails as well, what is there is the beginning of these bytes.
            drop(part.set_len(offset));
            return Err(error);
        }
        part.set_modified(SystemTime::from(now))?;
        Ok(true)
    }

    pub(super) fn settle_upload(&self, id: &str) -> io::Result<()> {
        let Some(part) = self.locked_part(id)? else {
            return Ok(());
        };
        let Some(state) = read_json::<State>(&self.upload_path(id, "json")?)? else {
            return Ok(());
        };
        let settled = part.metadata()?.len();
        if settled == state.settled {
            return Ok(());
        }
        part.sync_all()?;
        self.write_state(id, &State { settled, ..state })
    }

    pub(super) fn close_upload(&self, id: &str) -> io::Result<()> {
        // The state first: bytes without one are nobody's.
        remove_any(&self.upload_path(id, "json")?)?;
        remove_any(&self.part_path(id)?)
    }

    /// Makes uploads right that a crash left: bytes and state belong together, and nothing is beyond what is known to be
    /// on disk. While another process lives, its uploads may go further at any time.
    pub(super) fn recover_uploads(&self, alone: bool) -> io::Result<()> {
        for id in self.upload_ids("part")? {
            let is_id = self.upload_path(&id, "json");
            if is_id.is_ok_and(|path| !path.exists()) {
                remove_any(&self.part_path(&id)?)?;
            }
        }
        for id in self.upload_ids("json")? {
            let Ok(path) = self.upload_path(&id, "json") else {
                continue;
            };
            let state: Option<State> = match read_json(&path) {
                Err(error) if error.kind() == io::ErrorKind::InvalidData => None,
                state => state?,
            };
            let part = self.part_path(&id)?;
            let length = fs::metadata(&part).map(|it| it.len());
            match (state, length) {
                (Some(state), Ok(length)) if length >= state.settled => {
                    if alone && length > state.settled {
                        File::options()
                            .write(true)
                            .open(&part)?
                            .set_len(state.settled)?;
                    }
                }
                // Less is there than was: it has to be sent again.
                _ => self.close_upload(&id)?,
            }
        }
        Ok(())
    }
}
