//! The documented layout, read with nothing of ours.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::PermissionsExt as _;

use sha2::Digest as _;

use super::*;
use crate::archive::{CHUNK, Swept, Usage};

fn sha256_hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = String::new();
    for byte in sha2::Sha256::digest(bytes) {
        write!(text, "{byte:02x}").unwrap();
    }
    text
}

/// How many bytes all frames of a chunk claim to hold.
fn claimed(mut chunk: &[u8]) -> u64 {
    let mut claimed = 0;
    while !chunk.is_empty() {
        let frame = zstd::zstd_safe::find_frame_compressed_size(chunk).unwrap();
        // The list at the end holds nothing.
        let held = zstd::zstd_safe::get_frame_content_size(&chunk[..frame]);
        claimed += held.unwrap_or_default().unwrap_or(0);
        chunk = &chunk[frame..];
    }
    claimed
}

/// Follows `docs/archive.md` by hand: manifest by name, lines, chunks of zstd frames.
#[test]
fn a_log_can_be_read_with_zstd_alone() {
    let kit = Kit::new();
    let bytes = noise(CHUNK + 5000, 1);
    let first = kit.begin(&key("a"), &bytes[..2000]);
    kit.grow(&first, &bytes[2000..]);

    let id = sha256_hex(b"claude\0/logs/a.jsonl\0");
    let manifest = kit
        .root()
        .join("sources")
        .join(&id[..2])
        .join(format!("{}.jsonl", &id[2..]));
    let mut content: Vec<u8> = Vec::new();
    for line in std::fs::read_to_string(manifest).unwrap().lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["v"], 1);
        assert_eq!(line["path"], "/logs/a.jsonl");
        assert_eq!(line["part"], serde_json::Value::Null);
        content.truncate(usize::try_from(line["keep"].as_u64().unwrap()).unwrap());
        for chunk in line["chunks"].as_array().unwrap() {
            let id = chunk["id"].as_str().unwrap();
            let path = format!("chunks/{}/{}.zst", &id[..2], &id[2..]);
            let frame = std::fs::read(kit.root().join(path)).unwrap();
            // Other tools can tell its size without unpacking it.
            assert_eq!(claimed(&frame), chunk["len"].as_u64().unwrap());
            let decoded = zstd::decode_all(&frame[..]).unwrap();
            assert_eq!(sha256_hex(&decoded), id);
            content.extend(decoded);
        }
        assert_eq!(line["size"], content.len());
    }
    assert!(content == bytes);
}

#[test]
fn a_line_is_as_documented() {
    let kit = Kit::new();
    let mut writer = kit.archive.begin(&key("a").with_part("p")).unwrap();
    writer.write(b"abc").unwrap();
    let meta = serde_json::from_str(r#"{"rows":1}"#).unwrap();
    writer.finish(time(0), Some(time(-1)), Some(meta)).unwrap();
    let text = std::fs::read_to_string(kit.manifest(&key("a").with_part("p"))).unwrap();
    assert_eq!(
        text,
        concat!(
            r#"{"v":1,"agent":"claude","path":"/logs/a.jsonl","part":"p","#,
            r#""taken":"2026-09-21T14:13:20Z","size":3,"modified":"2026-09-21T14:13:19Z","#,
            r#""grown":false,"keep":0,"chunks":[{"id":"#,
            r#""ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad","len":3}],"#,
            r#""meta":{"rows":1},"sum":"SUM"}"#,
            "\n"
        )
        .replace(
            "SUM",
            &sha256_hex(text.split(",\"sum\"").next().unwrap().as_bytes())[..16]
        )
    );
}

#[test]
fn a_path_need_not_be_text() {
    let kit = Kit::new();
    let path = |bytes: &[u8]| PathBuf::from(OsString::from_vec(bytes.to_vec()));
    let keys = [&b"/logs/\xff\n.jsonl"[..], b"/logs/\xfe\n.jsonl"]
        .map(|bytes| SourceKey::new("codex", path(bytes)));
    for key in &keys {
        let kept = kit.begin(key, key.id().as_bytes());
        assert_eq!(kit.latest(key), kept);
        kit.grow(&kept, b"!");
    }
    let mut found: Vec<_> = kit.archive.sources().map(|s| s.unwrap().key).collect();
    found.sort();
    assert_eq!(found, [keys[1].clone(), keys[0].clone()]);
    let line = std::fs::read_to_string(kit.manifest(&keys[0])).unwrap();
    assert!(line.contains(r#""path":"/logs/�\n.jsonl""#), "{line}");
    assert!(
        line.contains(r#""path_hex":"2f6c6f67732fff0a2e6a736f6e6c""#),
        "{line}"
    );
}

#[test]
fn everything_is_private() {
    fn walk(path: &Path, seen: &mut Vec<PathBuf>) {
        let metadata = std::fs::symlink_metadata(path).unwrap();
        let expected = if metadata.is_dir() { 0o700 } else { 0o600 };
        let mode = metadata.permissions().mode() & 0o777;
        assert_eq!(mode, expected, "{}", path.display());
        seen.push(path.to_owned());
        if metadata.is_dir() {
            for entry in std::fs::read_dir(path).unwrap() {
                walk(&entry.unwrap().path(), seen);
            }
        }
    }
    let kit = Kit::new();
    let kept = kit.begin(&key("a"), b"secret");
    kit.grow(&kept, b"more");
    let mut seen = Vec::new();
    walk(&kit.root(), &mut seen);
    assert_eq!(seen.len(), 1 + 3 + 2 + (2 + 2) + (1 + 1), "{seen:#?}");
}

#[test]
fn opening_and_looking_makes_nothing() {
    let kit = Kit::new();
    let archive = &kit.archive;
    assert_eq!(archive.latest(&key("a")).unwrap(), None);
    assert_eq!(archive.sources().count(), 0);
    assert_eq!(archive.sweep(time(0), false).unwrap(), Swept::default());
    assert_eq!(archive.usage().unwrap(), Usage::default());
    assert!(!archive.forget(&key("a")).unwrap());
    archive.sync().unwrap();
    assert!(!kit.root().exists());
}
