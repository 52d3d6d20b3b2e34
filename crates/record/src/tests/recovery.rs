//! What is left when a process dies, and how it is taken up again.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use quipu_exchange::lines::Limits;
use quipu_exchange::verify::Severity;
use quipu_model::{Body, Draft, Fidelity, Json, Place, ToolResult};

use super::{Site, dense, run_id, said};
use crate::faulty::FaultyFile;
use crate::medium::Medium as _;
use crate::recover::survey;
use crate::{Error, RecorderOptions, repair, torn_path};

fn append(path: &std::path::Path, bytes: &[u8]) {
    OpenOptions::new()
        .append(true)
        .open(path)
        .unwrap()
        .write_all(bytes)
        .unwrap();
}

#[test]
fn a_run_is_continued() {
    let site = Site::new();
    for n in 1..=3 {
        let recorder = site.record("r");
        assert_eq!(recorder.last_seq(), n - 1);
        assert!(recorder.mended().is_empty());
        assert_eq!(recorder.record(&said(&n.to_string())).unwrap(), n);
    }
    assert_eq!(dense(&site.path("r")), ["1", "2", "3"]);
}

/// Cuts a file at every byte of its last two lines and takes it up again.
#[test]
fn cut_at_every_byte() {
    let original = Site::new();
    let recorder = original.record("r");
    for text in ["one", "two", "three \u{1f9f6}"] {
        recorder.record(&said(text)).unwrap();
    }
    drop(recorder);
    let bytes = fs::read(original.path("r")).unwrap();
    let ends: Vec<usize> = bytes
        .iter()
        .enumerate()
        .filter(|(_, b)| **b == b'\n')
        .map(|(at, _)| at + 1)
        .collect();
    let site = Site::new();
    let path = site.path("r");
    fs::create_dir(path.parent().unwrap()).unwrap();
    let torn = torn_path(&path);
    for cut in ends[0]..=bytes.len() {
        fs::write(&path, &bytes[..cut]).unwrap();
        let whole = ends.iter().filter(|&&end| end <= cut).count();
        // All but the line end is an event all the same.
        let only_the_newline = ends.contains(&(cut + 1));
        let kept = whole + usize::from(only_the_newline);
        let recorder = site.record("r");
        let mended = recorder.mended();
        assert_eq!(mended.ended_line, only_the_newline, "cut at {cut}");
        let start = if whole == 0 { 0 } else { ends[whole - 1] };
        let fragment = &bytes[start..cut];
        match &mended.set_aside {
            Some(aside) => {
                assert_eq!(
                    (aside.offset, aside.bytes),
                    (start as u64, fragment.len() as u64)
                );
                let kept = fs::read(&torn).unwrap();
                assert_eq!(kept, [fragment, b"\n"].concat());
                assert_eq!(torn.metadata().unwrap().permissions().mode() & 0o777, 0o600);
                fs::remove_file(&torn).unwrap();
            }
            None => assert!(fragment.is_empty() || only_the_newline, "cut at {cut}"),
        }
        assert_eq!(
            recorder.record(&said("next")).unwrap(),
            kept as u64 + 1,
            "cut at {cut}"
        );
        drop(recorder);
        let said = dense(&path);
        assert_eq!(
            (said.len(), said.last().unwrap().as_str()),
            (kept + 1, "next")
        );
    }
}

/// A line of the format, as a tool may give it out.
fn nested(run: &str, seq: u64) -> String {
    format!(
        r#"{{"seq":{seq},"run_id":"{run}","type":"run.started","path":"","iteration":0,"timestamp":"2026-06-08T08:14:42Z","payload":null}}"#
    )
}

fn gave(output: &str) -> Draft {
    Draft::new(
        Place::step("look"),
        Body::ToolResult(ToolResult {
            name: "Bash".to_owned(),
            call_id: "c".into(),
            input: None,
            output: Some(Json::parse(output).unwrap()),
            error: None,
            fidelity: Fidelity::Router,
        }),
    )
}

/// Tools print events, of this run and of others. Wherever a line with such an output is cut off, all of it is torn.
#[test]
fn cut_at_every_byte_of_events_that_hold_events() {
    let original = Site::new();
    let recorder = original.record("r");
    let (other, past, next) = (nested("q", 7), nested("r", 1), nested("r", 3));
    recorder.record(&said("one")).unwrap();
    for output in [
        format!(r#"{{"events":[{other},{past},{next}]}}"#),
        format!(r#"[{next},{{"last":{next}}}]"#),
        // As text, and as the whole of the output.
        Json::string(&format!("{next}\n{next}")).get().to_owned(),
        nested("r", 5),
    ] {
        recorder.record(&gave(&output)).unwrap();
    }
    drop(recorder);
    let bytes = fs::read(original.path("r")).unwrap();
    let ends: Vec<usize> = memchr::memchr_iter(b'\n', &bytes)
        .map(|at| at + 1)
        .collect();
    assert_eq!(ends.len(), 5);
    let site = Site::new();
    let path = site.path("r");
    fs::create_dir(path.parent().unwrap()).unwrap();
    let torn = torn_path(&path);
    for cut in ends[0]..=bytes.len() {
        let whole = ends.iter().filter(|&&end| end <= cut).count();
        let only_the_newline = ends.contains(&(cut + 1));
        let kept = whole + usize::from(only_the_newline);
        let fragment = &bytes[ends[whole - 1]..cut];
        let is_torn = !fragment.is_empty() && !only_the_newline;
        let medium = FaultyFile::default();
        medium.append(&bytes[..cut]).unwrap();
        for is_dense in [true, false] {
            let found = survey(&medium, &path, Limits::default(), is_dense).unwrap();
            assert_eq!(found.last_seq, kept as u64, "cut at {cut}");
            let tail = if is_torn { fragment.len() } else { 0 };
            assert_eq!(found.tail, tail as u64, "cut at {cut}");
            assert_eq!(found.lacks_newline, only_the_newline, "cut at {cut}");
        }
        // Bringing torn bytes to disk takes time. Where an event inside ends is where it was told wrong.
        let behind_an_event = bytes[..cut].ends_with(b"null}");
        if !behind_an_event && cut % 41 != 0 {
            continue;
        }
        for repaired in [false, true] {
            fs::write(&path, &bytes[..cut]).unwrap();
            fs::remove_file(&torn).ok();
            if repaired {
                let mended = repair(&path, Default::default()).unwrap();
                assert_eq!(mended.set_aside.is_some(), is_torn, "cut at {cut}");
            }
            let recorder = site.record("r");
            assert_eq!(recorder.last_seq(), kept as u64, "cut at {cut}");
            assert_eq!(recorder.mended().set_aside.is_some(), is_torn && !repaired);
            assert_eq!(recorder.record(&said("on")).unwrap(), kept as u64 + 1);
            drop(recorder);
            assert_eq!(dense(&path).len(), kept + 1, "cut at {cut}");
            let aside = fs::read(&torn).unwrap_or_default();
            let expected = if is_torn {
                [fragment, b"\n"].concat()
            } else {
                Vec::new()
            };
            assert_eq!(aside, expected, "cut at {cut}");
        }
    }
}

/// Turns bits of a file that a recorder wrote, continued and mended.
#[test]
fn verify_notices_every_bit_that_is_turned() {
    let site = Site::new();
    let path = site.path("r");
    for text in ["one", "two \u{1f9f6}", "three"] {
        let recorder = site.record("r");
        recorder.record(&said(text)).unwrap();
        recorder.record(&gave(&nested("r", 9))).unwrap();
        drop(recorder);
        append(&path, b"{\"seq\":");
    }
    repair(&path, Default::default()).unwrap();
    let rules = |path: &std::path::Path| {
        let report = site.storage.verify(path, Limits::default()).unwrap();
        report.counts
    };
    let whole = rules(&path);
    assert!(whole.keys().all(|rule| rule.severity() != Severity::Error));
    let bytes = fs::read(&path).unwrap();
    // A fixed row of places, far apart and near each other.
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    for _ in 0..1_000 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let bit = usize::try_from(state >> 33).unwrap() % (8 * bytes.len());
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        fs::write(&path, &damaged).unwrap();
        let seen = rules(&path);
        assert!(
            seen.keys().any(|rule| rule.severity() == Severity::Error),
            "bit {bit} in {}",
            String::from_utf8_lossy(&damaged)
        );
    }
}

#[test]
fn torn_bytes_are_kept_one_after_the_other() {
    let site = Site::new();
    site.record("r").record(&said("one")).unwrap();
    for fragment in ["{\"seq\":2,\"ru", "garbage", "\0\0\0\0"] {
        append(&site.path("r"), fragment.as_bytes());
        let recorder = site.record("r");
        assert_eq!(
            recorder.mended().set_aside.as_ref().unwrap().bytes,
            fragment.len() as u64
        );
    }
    let torn = fs::read(torn_path(&site.path("r"))).unwrap();
    assert_eq!(torn, b"{\"seq\":2,\"ru\ngarbage\n\0\0\0\0\n");
    assert_eq!(dense(&site.path("r")), ["one"]);
}

#[test]
fn garbage_lines_at_the_end_are_set_aside_too() {
    let site = Site::new();
    site.record("r").record(&said("one")).unwrap();
    append(&site.path("r"), b"\0\0\0\0\n{\"seq\":\n\n{\"half");
    let mended = repair(&site.path("r"), Default::default()).unwrap();
    assert_eq!(mended.set_aside.unwrap().bytes, 20);
    assert_eq!(dense(&site.path("r")), ["one"]);
    assert!(
        repair(&site.path("r"), Default::default())
            .unwrap()
            .is_empty(),
        "nothing is left to do"
    );
}

#[test]
fn what_is_not_ours_to_continue_is_left_alone() {
    for (name, contents, why) in [
        (
            "gap",
            "1,3",
            "line 2 should be event 2, but is event 3 after event 1",
        ),
        (
            "restart",
            "1,1",
            "line 2 should be event 2, but is event 1 after event 1",
        ),
        (
            "start",
            "2",
            "line 1 should be event 1, but is event 2 after event 0",
        ),
        (
            "bad line",
            "1,x,2",
            "line 3 should be event 3, but is event 2 after event 1",
        ),
    ] {
        let site = Site::new();
        let path = site.path("r");
        fs::create_dir(path.parent().unwrap()).unwrap();
        let mut text = String::new();
        for seq in contents.split(',') {
            text += &match seq {
                "x" => "x\n".to_owned(),
                seq => format!(
                    "{{\"seq\":{seq},\"run_id\":\"r\",\"type\":\"run.started\",\"path\":\"\",\
                     \"iteration\":0,\"timestamp\":\"2026-06-08T08:14:42Z\",\"payload\":null}}\n"
                ),
            };
        }
        text += "{torn";
        fs::write(&path, &text).unwrap();
        let error = site
            .storage
            .record(&run_id("r"), RecorderOptions::default())
            .unwrap_err();
        assert!(error.to_string().contains(why), "{name}: {error}");
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            text,
            "{name}: not a byte changed"
        );
        // Repair does not judge the numbers; it takes the torn end off.
        let mended = repair(&path, Default::default()).unwrap();
        assert_eq!(mended.set_aside.unwrap().bytes, 5);
    }
}

#[test]
fn another_run_s_file_is_refused() {
    let site = Site::new();
    site.record("a").record(&said("one")).unwrap();
    fs::rename(site.path("a"), site.path("b")).unwrap();
    let error = site
        .storage
        .record(&run_id("b"), RecorderOptions::default())
        .unwrap_err();
    assert!(matches!(error, Error::OtherRun { .. }), "{error}");
}

#[test]
fn links_directories_and_pipes_are_refused() {
    let site = Site::new();
    site.record("real").record(&said("one")).unwrap();
    symlink(site.path("real"), site.path("link")).unwrap();
    symlink("/nonexistent/target", site.path("dangling")).unwrap();
    fs::create_dir(site.path("dir")).unwrap();
    let pipe = std::ffi::CString::new(site.path("pipe").to_str().unwrap()).unwrap();
    #[expect(unsafe_code, reason = "there is no safe mkfifo in std")]
    // SAFETY: the path is a valid C string.
    let made = unsafe { libc::mkfifo(pipe.as_ptr(), 0o600) };
    assert_eq!(made, 0);
    for name in ["link", "dangling", "dir", "pipe"] {
        let error = site
            .storage
            .record(&run_id(name), RecorderOptions::default())
            .unwrap_err();
        assert!(matches!(error, Error::NotAFile(_)), "{name}: {error}");
    }
    assert_eq!(dense(&site.path("real")), ["one"]);
}

#[test]
fn a_torn_file_that_is_a_link_is_not_followed() {
    let site = Site::new();
    site.record("r").record(&said("one")).unwrap();
    let precious = site.dir.path().join("precious");
    fs::write(&precious, "keep").unwrap();
    symlink(&precious, torn_path(&site.path("r"))).unwrap();
    append(&site.path("r"), b"torn");
    assert!(repair(&site.path("r"), Default::default()).is_err());
    assert_eq!(fs::read_to_string(&precious).unwrap(), "keep");
    assert!(
        fs::read_to_string(site.path("r"))
            .unwrap()
            .ends_with("torn"),
        "nothing is cut"
    );
}

#[test]
fn a_file_others_can_read_is_made_private() {
    let site = Site::new();
    site.record("r").record(&said("one")).unwrap();
    fs::set_permissions(site.path("r"), fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(site.record("r").mended().made_private, Some(0o644));
    assert_eq!(
        site.path("r").metadata().unwrap().permissions().mode() & 0o777,
        0o600
    );
}

#[test]
fn a_file_replaced_under_the_writer_is_noticed_before_anything_is_acknowledged() {
    let site = Site::new();
    let options = RecorderOptions {
        durability: crate::Durability::Each,
        ..RecorderOptions::default()
    };
    let recorder = site.storage.record(&run_id("r"), options).unwrap();
    recorder.record(&said("one")).unwrap();
    let path = site.path("r");
    fs::rename(&path, path.with_extension("moved")).unwrap();
    fs::write(&path, "").unwrap();
    let error = recorder.record(&said("two")).unwrap_err();
    assert!(
        error.to_string().contains("moved, deleted or replaced"),
        "{error}"
    );
}

#[test]
fn torn_bytes_glued_to_the_last_event_are_the_tail() {
    for (behind, lacks) in [("{\"seq\":2,\"ru", true), (" garbage\n", true)] {
        let site = Site::new();
        site.record("r").record(&said("one")).unwrap();
        let path = site.path("r");
        let whole = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{}{behind}", whole.trim_end())).unwrap();
        let mended = repair(&path, Default::default()).unwrap();
        assert_eq!(mended.ended_line, lacks);
        assert_eq!(mended.set_aside.unwrap().bytes, behind.len() as u64);
        assert_eq!(fs::read_to_string(&path).unwrap(), whole);
    }
}

#[test]
fn what_is_no_transcript_is_left_alone() {
    for contents in ["buy milk\nand bread\n", "notes", "{}\n{}\n", "\u{1f9f6}"] {
        let site = Site::new();
        let path = site.path("r");
        fs::create_dir(path.parent().unwrap()).unwrap();
        fs::write(&path, contents).unwrap();
        let refused = repair(&path, Default::default()).unwrap_err();
        assert!(
            matches!(refused, Error::NotATranscript(_)),
            "{contents:?}: {refused}"
        );
        assert!(
            site.storage
                .record(&run_id("r"), RecorderOptions::default())
                .is_err()
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), contents);
    }
    // But a first event that was cut off is a transcript that got no further.
    let site = Site::new();
    let path = site.path("r");
    fs::create_dir(path.parent().unwrap()).unwrap();
    fs::write(&path, "{\"seq\":1,\"run").unwrap();
    assert_eq!(site.record("r").record(&said("one")).unwrap(), 1);
}

#[test]
fn a_file_cut_short_by_others_is_not_acknowledged() {
    let site = Site::new();
    let options = RecorderOptions {
        durability: crate::Durability::Each,
        ..RecorderOptions::default()
    };
    let recorder = site.storage.record(&run_id("r"), options).unwrap();
    recorder.record(&said("one")).unwrap();
    recorder.record(&said("two")).unwrap();
    fs::write(site.path("r"), "").unwrap();
    let error = recorder.record(&said("three")).unwrap_err();
    assert!(
        error.to_string().contains("changed by something else"),
        "{error}"
    );
    assert!(recorder.close().is_err());
}

#[test]
fn what_was_not_synced_before_is_synced_before_it_is_called_durable() {
    let site = Site::new();
    site.record("r").record(&said("one")).unwrap();
    let recorder = site.record("r");
    assert_eq!(recorder.durable_seq(), 0, "whoever wrote it did not sync");
    recorder.wait_durable(1).unwrap();
    assert_eq!(recorder.durable_seq(), 1);
}

/// A whole line beyond a limit is an event for all that can be told: it keeps its place and its number.
#[test]
fn a_whole_line_beyond_the_limits_is_left_alone() {
    let deep = format!("{}{}", "[".repeat(90), "]".repeat(90));
    let long = Json::string(&"x".repeat(5_000)).get().to_owned();
    for (output, why) in [
        (long, "more than the 4096 allowed"),
        (deep, "nested deeper than 64"),
    ] {
        for behind in ["", "{\"seq\":4,\"torn", "\0\0\0"] {
            for first in [0, 2] {
                let site = Site::new();
                let recorder = site.record("r");
                (0..first).for_each(|_| assert!(recorder.record(&said("x")).is_ok()));
                recorder.record(&gave(&output)).unwrap();
                drop(recorder);
                let path = site.path("r");
                append(&path, behind.as_bytes());
                let before = fs::read(&path).unwrap();
                let mut options = RecorderOptions::default();
                options.limits.max_line_bytes = 4096;
                options.limits.max_depth = 64;
                let limits = options.limits;
                for error in [
                    repair(&path, limits).unwrap_err(),
                    site.storage.record(&run_id("r"), options).unwrap_err(),
                ] {
                    assert!(matches!(error, Error::BeyondLimits { .. }), "{error}");
                    let said = error.to_string();
                    assert!(said.contains(why), "{said}");
                    assert!(said.contains(&format!("line {} ", first + 1)), "{said}");
                }
                assert_eq!(fs::read(&path).unwrap(), before, "not a byte changed");
                assert!(!torn_path(&path).exists());
                assert_eq!(
                    site.record("r").last_seq(),
                    first + 1,
                    "with its own limits it is continued"
                );
            }
        }
    }
}

/// What has no line end was never acknowledged, and what is not JSON is garbage, however long or deep.
#[test]
fn torn_bytes_beyond_the_limits_are_set_aside() {
    let limits = Limits {
        max_line_bytes: 4096,
        ..Limits::default()
    };
    for behind in [
        format!("{{\"seq\":2,\"x\":\"{}", "x".repeat(5_000)),
        format!("{{\"seq\":2,\"x\":{}", "[".repeat(500)),
        format!("{{\"seq\":2,\"x\":{}\n", "[".repeat(500)),
    ] {
        let site = Site::new();
        site.record("r").record(&said("one")).unwrap();
        append(&site.path("r"), behind.as_bytes());
        let mended = repair(&site.path("r"), limits).unwrap();
        assert_eq!(mended.set_aside.unwrap().bytes, behind.len() as u64);
        assert_eq!(dense(&site.path("r")), ["one"]);
    }
}

#[test]
fn limits_hold_when_a_run_is_reopened() {
    let site = Site::new();
    let mut options = RecorderOptions::default();
    options.limits.max_line_bytes = 80 << 20;
    let recorder = site.storage.record(&run_id("r"), options.clone()).unwrap();
    recorder.record(&said(&"x".repeat(70 << 20))).unwrap();
    drop(recorder);
    assert_eq!(
        site.storage
            .record(&run_id("r"), options)
            .unwrap()
            .last_seq(),
        1
    );
}
