//! Several threads at once.

use super::*;

#[test]
fn an_archive_can_be_shared() {
    fn shared<T: Send + Sync + Clone>() {}
    fn sent<T: Send>() {}
    shared::<Archive>();
    sent::<crate::archive::SnapshotWriter>();
    sent::<crate::archive::SnapshotReader>();
}

#[test]
fn threads_grow_different_sources() {
    let kit = Kit::tiny();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let kit = &kit;
            scope.spawn(move || {
                let (key, bytes) = (key(&thread.to_string()), noise(3000, thread));
                let mut kept = kit.begin(&key, b"");
                for piece in bytes.chunks(37) {
                    kept = kit.grow(&kept, piece);
                }
            });
        }
    });
    for thread in 0..4 {
        let kept = kit.latest(&key(&thread.to_string()));
        assert!(kit.read(&kept) == noise(3000, thread));
    }
    assert_eq!(kit.archive.sources().count(), 4);
}

#[test]
fn threads_write_the_same_chunks() {
    let kit = Kit::tiny();
    let bytes = noise(6400, 1);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (kit, bytes) = (&kit, &bytes);
            scope.spawn(move || kit.begin(&key(&thread.to_string()), bytes));
        }
    });
    assert_eq!(kit.stored().0, 100);
    for thread in 0..4 {
        assert!(kit.read(&kit.latest(&key(&thread.to_string()))) == bytes);
    }
    let tmp = std::fs::read_dir(kit.root().join("tmp")).unwrap();
    assert_eq!(tmp.count(), 0);
}

/// Of threads that keep the same source, each line is by one who saw the line before.
#[test]
fn threads_contend_for_one_source() {
    let kit = Kit::tiny();
    kit.begin(&key("a"), b"");
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            let kit = &kit;
            scope.spawn(move || {
                let mut done = 0;
                while done < 20 {
                    let mut writer = kit.archive.grow(&kit.latest(&key("a"))).unwrap();
                    writer.write(&[thread; 10]).unwrap();
                    match writer.finish(time(0), None, None) {
                        Ok(_) => done += 1,
                        Err(ArchiveError::Conflict { .. }) => {}
                        Err(e) => panic!("{e}"),
                    }
                }
            });
        }
    });
    let bytes = kit.read(&kit.latest(&key("a")));
    assert_eq!(bytes.len(), 4 * 20 * 10);
    for thread in 0..4 {
        let pieces = bytes.chunks(10).filter(|piece| piece == &[thread; 10]);
        assert_eq!(pieces.count(), 20);
    }
}

/// Who appends waits for another who is about to, and notices what that one did.
#[test]
fn a_manifest_has_one_writer_at_a_time() {
    use std::io::Write as _;
    let kit = Kit::tiny();
    let first = kit.begin(&key("a"), b"first");
    let mut manifest = std::fs::OpenOptions::new()
        .append(true)
        .open(kit.manifest(&key("a")))
        .unwrap();
    manifest.lock().unwrap();
    let writer = kit.archive.grow(&first).unwrap();
    let waiting = std::thread::spawn(move || writer.finish(time(0), None, None));
    std::thread::sleep(std::time::Duration::from_millis(50));
    assert!(!waiting.is_finished());
    let line = std::fs::read(kit.manifest(&key("a"))).unwrap();
    manifest.write_all(&line).unwrap();
    manifest.unlock().unwrap();
    let error = waiting.join().unwrap().unwrap_err();
    assert!(matches!(error, ArchiveError::Conflict { .. }), "{error}");
    assert_eq!(kit.latest(&key("a")).version, 2);
}

/// A sweep that comes between removes nothing that a writer counts on.
#[test]
fn sweeping_while_threads_write() {
    let kit = Kit::tiny();
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..3)
            .map(|thread: u64| {
                let kit = &kit;
                scope.spawn(move || {
                    let key = key(&thread.to_string());
                    let mut kept = kit.begin(&key, b"");
                    // The same bytes in all, so that they count on each other's chunks.
                    for piece in noise(2000, 1).chunks(29) {
                        kept = kit.grow(&kept, piece);
                    }
                })
            })
            .collect();
        while !writers
            .iter()
            .all(std::thread::ScopedJoinHandle::is_finished)
        {
            match kit.archive.sweep(time(0), false) {
                Ok(_) | Err(ArchiveError::Busy { .. }) => {}
                Err(e) => panic!("{e}"),
            }
        }
    });
    for thread in 0..3 {
        assert!(kit.read(&kit.latest(&key(&thread.to_string()))) == noise(2000, 1));
    }
}
