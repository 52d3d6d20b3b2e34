//! What a disk holds after things went wrong.

use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;

use super::*;
use crate::protocol::{DeletedAs, Encoding, NewUpload, Receipt, Sha256 as Digest};
use crate::testkit::fresh_id;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn listed(id: &TranscriptId, bytes: &[u8]) -> Listed {
    Listed {
        receipt: Receipt {
            transcript_id: id.clone(),
            key_id: "key_2a9f0c51b7d3".into(),
            pseudonym: "anon_7c41d09e55aa0b1c".into(),
            identity_linked: false,
            sha256: digest(bytes),
            bytes: bytes.len() as u64,
            events: 3,
            received_at: at("2026-06-22T10:00:00Z"),
            duplicate: false,
        },
        agent: Some("claude-code".into()),
        title: None,
        started_at: None,
        ended_at: None,
    }
}

fn digest(bytes: &[u8]) -> Digest {
    Digest::parse(&hex::encode(&Sha256::digest(bytes))).unwrap()
}

fn keep(disk: &Disk, id: &TranscriptId, bytes: &[u8]) -> Option<Held> {
    let mut spool = disk.spool().unwrap();
    spool.write_all(bytes).unwrap();
    disk.keep(&listed(id, bytes), &mut spool).unwrap()
}

fn deletion(id: &TranscriptId, bytes: &[u8]) -> Deletion {
    let receipt = listed(id, bytes).receipt;
    Deletion {
        transcript_id: id.clone(),
        sha256: receipt.sha256,
        bytes: receipt.bytes,
        key_id: receipt.key_id.clone(),
        pseudonym: receipt.pseudonym,
        received_at: receipt.received_at,
        deleted_at: at("2026-06-23T10:00:00Z"),
        deleted_by: receipt.key_id,
        deleted_as: DeletedAs::Submitter,
        reason: None,
    }
}

fn upload(size: u64) -> OpenUpload {
    OpenUpload {
        id: hex::encode(&Sha256::digest(fresh_id().unwrap().as_str())[..16]),
        key_id: "key_2a9f0c51b7d3".into(),
        what: NewUpload {
            transcript_id: fresh_id().unwrap(),
            sha256: digest(b""),
            size,
            encoding: Encoding::Identity,
        },
        offset: 0,
        touched_at: at("2026-06-22T10:00:00Z"),
    }
}

/// Opens a directory as after a kill: the session of the one before is left as it was, and its lock is free.
fn killed(disk: Disk) -> Disk {
    let root = disk.root().to_owned();
    let left = disk.session.clone();
    let aside = root.join("aside");
    fs::create_dir(&aside).unwrap();
    for entry in fs::read_dir(&left).unwrap() {
        let entry = entry.unwrap();
        let to = aside.join(entry.file_name());
        fs::rename(entry.path(), to).unwrap();
    }
    drop(disk);
    fs::rename(&aside, &left).unwrap();
    Disk::open(&root).unwrap()
}

fn overwrite(path: &Path, text: &str) -> io::Result<()> {
    File::create(path)?.write_all(text.as_bytes())
}

fn files(root: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(files(&path));
        } else {
            all.push(path);
        }
    }
    all
}

#[test]
fn a_transcript_is_kept_as_it_is_and_privately() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("submissions");
    let disk = Disk::open(&root).unwrap();
    let id = fresh_id().unwrap();
    assert_eq!(keep(&disk, &id, b"{\"a\": 1}"), None);
    let path = disk.path(&id).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"{\"a\": 1}");
    assert_eq!(Disk::id_of_document(&path), Some(id.clone()));
    assert_eq!(Disk::id_of_document(&path.with_file_name("x.json")), None);
    let body = disk.document(&id).unwrap().unwrap();
    assert_eq!(body.into_bytes().unwrap(), b"{\"a\": 1}");
    for path in files(&root) {
        let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{}", path.display());
        let above = fs::metadata(path.parent().unwrap()).unwrap();
        assert_eq!(above.permissions().mode() & 0o777, 0o700);
    }
    // Another process, and after this one ended.
    let second = Disk::open(&root).unwrap();
    let there = Some(Held::There(Box::new(listed(&id, b"{\"a\": 1}"))));
    assert_eq!(second.held(&id).unwrap(), there);
    assert_eq!(keep(&second, &id, b"{}"), there, "the first one counts");
    drop(disk);
    assert_eq!(Disk::open(&root).unwrap().held(&id).unwrap(), there);
}

#[test]
fn what_was_not_whole_is_swept_and_what_lives_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Disk::open(directory.path()).unwrap();
    let mut spool = disk.spool().unwrap();
    spool.write_all(b"half a docu").unwrap();
    let left = spool.path().to_owned();
    let other = Disk::open(directory.path()).unwrap();
    assert!(left.exists(), "its process lives");
    drop(other);
    std::mem::forget(spool);
    let disk = killed(disk);
    assert!(!left.exists(), "its process does not live");
    assert_eq!(fs::read_dir(disk.root.join(TMP)).unwrap().count(), 1);
}

#[test]
fn a_deletion_stays_and_the_document_does_not() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Disk::open(directory.path()).unwrap();
    let id = fresh_id().unwrap();
    assert_eq!(keep(&disk, &id, b"secret plans"), None);
    let deletion = deletion(&id, b"secret plans");
    assert_eq!(disk.remove(&deletion).unwrap(), deletion);
    let later = Deletion {
        deleted_at: at("2026-06-24T10:00:00Z"),
        ..deletion.clone()
    };
    assert_eq!(
        disk.remove(&later).unwrap(),
        deletion,
        "the first one counts"
    );
    let gone = Some(Held::Gone(Box::new(deletion.clone())));
    assert_eq!(disk.held(&id).unwrap(), gone);
    assert_eq!(keep(&disk, &id, b"secret plans"), gone, "it stays deleted");
    assert!(disk.document(&id).unwrap().is_none());
    assert!(disk.scan(None, 10).unwrap().found.is_empty());
    for path in files(directory.path()) {
        let bytes = fs::read(&path).unwrap();
        let has = String::from_utf8_lossy(&bytes).contains("secret plans");
        assert!(!has, "{}", path.display());
    }
    // Killed after the deletion was put down and before the document went.
    let second = fresh_id().unwrap();
    assert_eq!(keep(&disk, &second, b"more plans"), None);
    let deletion = self::deletion(&second, b"more plans");
    let shard_of = disk.root.join(DELETED).join(shard(&second));
    quipu_files::create_directory(&shard_of).unwrap();
    write_json(&shard_of.join(format!("{second}.json")), &deletion).unwrap();
    assert!(matches!(disk.held(&second).unwrap(), Some(Held::Gone(_))));
    let disk = killed(disk);
    assert!(!disk.path(&second).unwrap().exists());
}

#[test]
fn a_list_goes_through_everything_once() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Disk::open(directory.path()).unwrap();
    let mut ids: Vec<TranscriptId> = (0..60).map(|_| fresh_id().unwrap()).collect();
    for id in &ids {
        assert_eq!(keep(&disk, id, b"{}"), None);
    }
    let damaged = ids.pop().unwrap();
    overwrite(&directory_below(&disk.root, &damaged).join(RECEIPT), "{").unwrap();
    for limit in [1, 7, 59, 1000] {
        let (mut seen, mut after, mut unreadable) = (Vec::new(), None, 0);
        for _ in 0..100 {
            let scanned = disk.scan(after.as_ref(), limit).unwrap();
            assert!(scanned.found.len() <= limit);
            seen.extend(scanned.found.into_iter().map(|it| it.receipt.transcript_id));
            unreadable += scanned.unreadable;
            if scanned.is_end {
                break;
            }
            after = scanned.last;
        }
        seen.sort();
        ids.sort();
        assert_eq!(seen, ids, "{limit}");
        assert_eq!(unreadable, 1);
    }
}

#[test]
fn an_upload_goes_on_after_a_restart_from_what_is_known_to_be_there() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Disk::open(directory.path()).unwrap();
    let upload = upload(10);
    disk.begin(&upload).unwrap();
    let now = at("2026-06-22T10:01:00Z");
    assert!(disk.append(&upload.id, 0, b"0123", now).unwrap());
    disk.settle(&upload.id).unwrap();
    assert!(disk.append(&upload.id, 4, b"45", now).unwrap());
    assert!(
        !disk.append(&upload.id, 4, b"xx", now).unwrap(),
        "not twice"
    );
    let there = disk.upload(&upload.id).unwrap().unwrap();
    assert_eq!((there.offset, there.touched_at), (6, now));
    // Another process opens the directory: what this one adds is left alone.
    let other = Disk::open(directory.path()).unwrap();
    assert_eq!(other.upload(&upload.id).unwrap().unwrap().offset, 6);
    drop(other);
    let disk = killed(disk);
    let there = disk.upload(&upload.id).unwrap().unwrap();
    assert_eq!((there.offset, &there.what), (4, &upload.what));
    assert!(disk.append(&upload.id, 4, b"456789", now).unwrap());
    let mut bytes = Vec::new();
    disk.uploaded(&upload.id)
        .unwrap()
        .read_to_end(&mut bytes)
        .unwrap();
    assert_eq!(bytes, b"0123456789");
    disk.expire(now).unwrap();
    assert_eq!(disk.uploads(&upload.key_id).unwrap().len(), 1);
    disk.expire(at("2026-06-22T10:01:01Z")).unwrap();
    assert_eq!(disk.uploads(&upload.key_id).unwrap(), []);
    assert!(!disk.append(&upload.id, 10, b"x", now).unwrap());
    disk.close(&upload.id).unwrap();
}

#[test]
fn uploads_that_a_crash_left_half_are_gone() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Disk::open(directory.path()).unwrap();
    let uploads = [upload(10), upload(10), upload(10)];
    let now = at("2026-06-22T10:01:00Z");
    for it in &uploads {
        disk.begin(it).unwrap();
        assert!(disk.append(&it.id, 0, b"0123456789", now).unwrap());
        disk.settle(&it.id).unwrap();
    }
    let [bytes_only, damaged, lost] = &uploads;
    fs::remove_file(
        disk.root
            .join(UPLOADS)
            .join(format!("{}.json", bytes_only.id)),
    )
    .unwrap();
    overwrite(
        &disk.root.join(UPLOADS).join(format!("{}.json", damaged.id)),
        "",
    )
    .unwrap();
    // The machine lost what was said to be on disk.
    let part = disk.part_path(&lost.id).unwrap();
    File::options()
        .write(true)
        .open(&part)
        .unwrap()
        .set_len(3)
        .unwrap();
    let disk = killed(disk);
    assert_eq!(disk.uploads(&lost.key_id).unwrap(), []);
    assert_eq!(fs::read_dir(disk.root.join(UPLOADS)).unwrap().count(), 0);
    assert!(disk.upload("../../../../etc/passwd").unwrap().is_none());
}

#[test]
fn of_several_at_once_one_is_kept_by_however_many_processes() {
    let directory = tempfile::tempdir().unwrap();
    let disks = [
        Disk::open(directory.path()).unwrap(),
        Disk::open(directory.path()).unwrap(),
    ];
    for _ in 0..20 {
        let id = &fresh_id().unwrap();
        let kept: Vec<bool> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|n| {
                    let disk = &disks[n % 2];
                    scope.spawn(move || keep(disk, id, format!("{n}").as_bytes()).is_none())
                })
                .collect();
            threads.into_iter().map(|it| it.join().unwrap()).collect()
        });
        assert_eq!(kept.iter().filter(|kept| **kept).count(), 1, "{kept:?}");
        let winner = kept.iter().position(|kept| *kept).unwrap();
        let path = disks[0].path(id).unwrap();
        assert_eq!(fs::read(path).unwrap(), format!("{winner}").as_bytes());
    }
    // Also of deleting and keeping: what is deleted stays so.
    for _ in 0..20 {
        let id = &fresh_id().unwrap();
        keep(&disks[0], id, b"x");
        std::thread::scope(|scope| {
            scope.spawn(|| disks[0].remove(&deletion(id, b"x")).unwrap());
            scope.spawn(|| keep(&disks[1], id, b"x"));
        });
        assert!(matches!(disks[1].held(id).unwrap(), Some(Held::Gone(_))));
        assert!(!disks[1].path(id).unwrap().exists());
    }
}
