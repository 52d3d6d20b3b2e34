//! Reading against a bare lazy parse of the same file.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use clap::ValueEnum;
use quipu_exchange::lines::{Limits, Lines};
use quipu_exchange::{Escapes, Item, Reader, encode, verify};
use quipu_model::{
    Annotations, Block, Body, Content, Event, Fidelity, Json, Place, Step, ToolCall, ToolCallId,
    ToolResult,
};

use crate::sample::run_id;
use crate::table::{Goal, Table, median};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Way {
    /// Lines only
    Lines,
    /// sonic-rs, each line as a lazy value: the limit
    Sonic,
    /// simd-json, each line to a tape
    Tape,
    /// `serde_json`, type and seq only, the payload skipped: what the scan would be without a cursor of our own
    Serde,
    /// Our reader, type and seq only
    Scan,
    /// Our reader, whole events
    Decode,
    /// `quipu verify`
    Verify,
}

pub(crate) fn measure(table: &mut Table, dir: &Path, bytes: u64, rounds: usize) -> Result<()> {
    let file = transcript(dir, bytes)?;
    let ways = [
        Way::Lines,
        Way::Sonic,
        Way::Tape,
        Way::Serde,
        Way::Scan,
        Way::Decode,
        Way::Verify,
    ];
    let mut speeds = vec![Vec::new(); ways.len()];
    let mut memory = vec![0u64; ways.len()];
    for _ in 0..rounds {
        for (n, way) in ways.iter().enumerate() {
            let (speed, peak) = in_child(*way, &file)?;
            speeds[n].push(speed);
            memory[n] = memory[n].max(peak);
        }
    }
    let sonic = median(speeds[1].clone());
    let text = format!("sonic lazy {sonic:.0} MB/s");
    for (n, way) in ways.iter().enumerate() {
        let ratio = median(
            speeds[n]
                .iter()
                .zip(&speeds[1])
                .map(|(ours, limit)| ours / limit)
                .collect(),
        );
        let goal = match way {
            Way::Scan | Way::Decode | Way::Verify => Goal::AtLeast(0.60),
            Way::Lines | Way::Sonic | Way::Tape | Way::Serde => Goal::Free,
        };
        let what = format!("read, {:.1} GB, {way:?}", bytes as f64 / 1e9);
        table.row(
            &what,
            &format!("{:.0} MB/s", sonic * ratio),
            &text,
            ratio,
            goal,
        );
    }
    let ratio = |of: usize, to: usize| {
        let pairs = speeds[of].iter().zip(&speeds[to]);
        median(pairs.map(|(of, to)| of / to).collect())
    };
    table.row(
        "read, type and seq of lines: times as fast",
        &format!("{:.0} MB/s", median(speeds[4].clone())),
        &format!("serde_json {:.0} MB/s", median(speeds[3].clone())),
        ratio(4, 3),
        Goal::AtLeast(1.2),
    );
    for (n, way) in ways.iter().enumerate().skip(4) {
        let peak = memory[n] as f64 / 1024.0;
        let what = format!("peak memory, {way:?}");
        table.row(
            &what,
            &format!("{peak:.1} MiB"),
            "64 MiB",
            peak / 64.0,
            Goal::AtMost(1.0),
        );
    }
    Ok(())
}

/// Reads in a process of its own, so that its memory is its own; gives MB/s and KiB.
fn in_child(way: Way, file: &Path) -> Result<(f64, u64)> {
    let name = way.to_possible_value().context("a name")?;
    let output = Command::new(std::env::current_exe()?)
        .args(["read", name.get_name()])
        .arg(file)
        .output()?;
    ensure!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout)?;
    let (speed, peak) = text.trim().split_once(' ').context("two figures")?;
    Ok((speed.parse()?, peak.parse()?))
}

pub(crate) fn measure_here(way: Way, path: &Path) -> Result<()> {
    let file = File::open(path)?;
    let len = file.metadata()?.len() as f64;
    let began = Instant::now();
    let events = match way {
        Way::Scan => {
            let (mut reader, mut events) = (Reader::new(file), 0);
            while let Some(item) = reader.next()? {
                if let Item::Event(found) = item {
                    events += found.scan.seq & 1;
                }
            }
            events
        }
        Way::Decode => {
            let (mut reader, mut events) = (Reader::new(file), 0);
            while let Some(item) = reader.next_decoded()? {
                events += u64::from(item.is_ok());
            }
            events
        }
        Way::Verify => {
            let report = verify::verify(&mut Reader::new(file))?;
            ensure!(report.is_clean(), "{:?}", report.counts);
            report.events
        }
        Way::Lines | Way::Sonic | Way::Tape | Way::Serde => bare(way, file)?,
    };
    ensure!(events > 0, "nothing read");
    let speed = len / 1e6 / began.elapsed().as_secs_f64();
    println!("{speed} {}", peak_kib()?);
    Ok(())
}

/// What a scan gives of a line.
#[derive(serde::Deserialize)]
struct Envelope<'l> {
    #[serde(rename = "type", borrow)]
    kind: std::borrow::Cow<'l, str>,
    seq: u64,
    #[serde(borrow)]
    payload: &'l serde_json::value::RawValue,
}

fn bare(way: Way, file: File) -> Result<u64> {
    let mut lines = Lines::new(file, Limits::default());
    let mut buffers = simd_json::Buffers::new(1 << 20);
    let (mut copy, mut seen) = (Vec::new(), 0);
    while lines.advance()?.is_some() {
        let line = lines.current();
        seen += match way {
            Way::Sonic => sonic_rs::from_slice::<sonic_rs::LazyValue<'_>>(line)?
                .as_raw_str()
                .len(),
            Way::Tape => {
                // It parses in place, so it needs a copy that it may change.
                copy.clear();
                copy.extend_from_slice(line);
                simd_json::to_tape_with_buffers(&mut copy, &mut buffers)?
                    .0
                    .len()
            }
            Way::Serde => {
                let envelope: Envelope<'_> = serde_json::from_slice(line)?;
                envelope.kind.len() + envelope.payload.get().len() + usize::from(envelope.seq > 0)
            }
            _ => line.len(),
        } as u64;
    }
    Ok(seen)
}

fn peak_kib() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM"))
        .context("VmHWM")?;
    Ok(line
        .split_ascii_whitespace()
        .nth(1)
        .context("a figure")?
        .parse()?)
}

/// A transcript of about `bytes` bytes: prompts, answers, tool calls with their results. Made once.
fn transcript(dir: &Path, bytes: u64) -> Result<PathBuf> {
    let path = dir.join(format!("transcript-{bytes}.jsonl"));
    if path.metadata().is_ok_and(|m| m.len() >= bytes) {
        return Ok(path);
    }
    let mut out = BufWriter::with_capacity(1 << 20, File::create(&path)?);
    let (mut written, mut seq, mut line) = (0, 0, Vec::new());
    let mut random = 0x2545_f491_4f6c_dd1du64;
    while written < bytes {
        seq += 1;
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        line.clear();
        encode(&event(seq, random), Escapes::Plain, &mut line).expect("a kind that files hold");
        out.write_all(&line)?;
        written += line.len() as u64;
    }
    out.flush()?;
    Ok(path)
}

fn event(seq: u64, random: u64) -> Event {
    let words = "Look at `src/main.rs`: the \"retry\" loop never ends.\nfn main() { run()?; }\n";
    let text = words.repeat(usize::try_from(random % 12).unwrap_or(0) + 1);
    let call_id = ToolCallId::from(format!("toolu_{:016x}", seq / 4));
    let body = match seq % 4 {
        0 => Body::StepStarted(Step::new("review", "agent")),
        1 => Body::AssistantMessage(vec![
            Block {
                fidelity: Fidelity::AgentEmitted,
                content: Content::Thinking(text.clone()),
            },
            Block::text(Fidelity::AgentEmitted, text),
        ]),
        2 => Body::ToolCall(ToolCall {
            name: "Bash".to_owned(),
            call_id,
            input: Json::of(&[("command", &text)]).ok(),
            fidelity: Fidelity::Router,
        }),
        _ => Body::ToolResult(ToolResult {
            name: "Bash".to_owned(),
            call_id,
            input: None,
            output: Some(Json::string(&text)),
            error: None,
            fidelity: Fidelity::Router,
        }),
    };
    let body = match body {
        Body::StepStarted(step) if seq.is_multiple_of(8) => {
            Body::StepCompleted(step.succeeded(None))
        }
        other => other,
    };
    Event {
        seq,
        run_id: run_id(0),
        parent_run_id: None,
        timestamp: quipu_model::Timestamp::from_microsecond(
            1_780_906_482_123_456 + i64::try_from(seq).unwrap_or(0) * 1_713,
        )
        .expect("in range"),
        place: Place::step("review"),
        body,
        annotations: Annotations::default(),
    }
}
