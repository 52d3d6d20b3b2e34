//! What is done to a trace and timed, in a process of its own.

use std::hint::black_box;
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use clap::ValueEnum;
use quipu_exchange::lines::Limits;
use quipu_formats::agentlog::record::Field;
use quipu_formats::agentlog::verify::VerifyOptions;
use quipu_formats::agentlog::{
    Canon, ContentId, Draft, Item, Kind, LIMITS, Parent, Reader, Writer,
};
use quipu_model::json::Tape;
use quipu_model::{Json, Timestamp};
use sha2::{Digest as _, Sha256};

use crate::cpu::cpu;

/// What is done to a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Way {
    /// Reads its records and derives each id again
    Verify,
    /// Checks all that `quipu verify` checks, with one thread
    Check,
    /// Reads its records
    Parse,
    /// Writes records that were read
    Write,
    /// Writes records that have no id yet
    Append,
    /// Writes the canonical form of each payload
    Canon,
    /// Hashes the canonical forms: the limit of verifying
    Hash,
    /// Copies the canonical forms: the limit of writing them
    Copy,
}

/// As long as anyone likes.
const NO_LIMITS: Limits = Limits {
    max_total_bytes: u64::MAX,
    ..LIMITS
};

/// What a way took.
#[derive(Debug, Clone, Copy)]
pub(super) struct Took {
    /// Seconds of the processor.
    pub(super) cpu: f64,
    /// What came out: records or bytes. Whoever does the same has to come to the same.
    pub(super) made: u64,
}

impl Took {
    /// Reads what [`print`](Self::print) writes; other programs write it as well.
    pub(super) fn read(text: &str) -> Result<Self> {
        let (cpu, made) = text.trim().split_once(' ').context("two figures")?;
        Ok(Self {
            cpu: cpu.parse()?,
            made: made.parse()?,
        })
    }

    fn print(self) {
        println!("{} {}", self.cpu, self.made);
    }
}

/// Does it and prints what it took. What is not part of it is done before the clock starts.
pub(crate) fn measure_here(way: Way, trace: &Path) -> Result<()> {
    let bytes = std::fs::read(trace)?;
    let took = match way {
        Way::Verify => timed(|| verify(&bytes)),
        Way::Check => timed(|| check(&bytes)),
        Way::Parse => timed(|| parse(&bytes)),
        Way::Write => {
            let held = Held::of(&bytes)?;
            timed(|| Ok(held.write(bytes.len())))
        }
        Way::Append => append(&bytes),
        Way::Canon => {
            let held = Held::of(&bytes)?;
            timed(|| held.canon())
        }
        Way::Hash | Way::Copy => {
            let forms = Held::of(&bytes)?.forms()?;
            timed(|| Ok(forms.iter().map(|form| limit(way, form)).sum()))
        }
    }?;
    took.print();
    Ok(())
}

fn timed(work: impl FnOnce() -> Result<u64>) -> Result<Took> {
    let began = cpu();
    let made = black_box(work()?);
    Ok(Took {
        cpu: cpu() - began,
        made,
    })
}

fn verify(bytes: &[u8]) -> Result<u64> {
    let (mut reader, mut canon, mut right) =
        (Reader::with_limits(bytes, NO_LIMITS), Canon::new(), 0);
    while let Some(item) = reader.next()? {
        let Item::Record(record) = item else {
            bail!("no record: {item:?}");
        };
        let derived = record.content_id_by(&mut canon)?;
        right += u64::from(record.id() == Some(derived));
    }
    Ok(right)
}

fn check(bytes: &[u8]) -> Result<u64> {
    let options = VerifyOptions {
        limits: NO_LIMITS,
        ..VerifyOptions::default()
    };
    let report = quipu_formats::agentlog::verify::verify(bytes, &options)?;
    ensure!(report.is_clean(), "{:?}", report.counts);
    Ok(report.records)
}

fn parse(bytes: &[u8]) -> Result<u64> {
    let (mut reader, mut records) = (Reader::with_limits(bytes, NO_LIMITS), 0);
    while let Some(item) = reader.next()? {
        let Item::Record(record) = item else {
            bail!("no record: {item:?}");
        };
        records += u64::from(record.get(Field::Id).is_some());
    }
    Ok(records)
}

/// Records that were read, all at once.
struct Held<'a>(Vec<(&'a str, Tape)>);

impl<'a> Held<'a> {
    fn of(bytes: &'a [u8]) -> Result<Self> {
        let lines = str::from_utf8(bytes)?.lines();
        let held = lines.filter(|line| !line.is_empty()).map(|line| {
            let mut tape = Tape::new();
            tape.read(line, Json::MAX_DEPTH)?;
            Ok((line, tape))
        });
        held.collect::<Result<_>>().map(Self)
    }

    fn write(&self, len: usize) -> u64 {
        let mut out = Vec::with_capacity(len);
        for (line, tape) in &self.0 {
            out.extend_from_slice(tape.root(line).raw().get().as_bytes());
            out.push(b'\n');
        }
        out.len() as u64
    }

    fn canon(&self) -> Result<u64> {
        let (mut canon, mut form, mut len) = (Canon::new(), Vec::new(), 0);
        for (line, tape) in &self.0 {
            let payload = tape.root(line).get("payload").context("a payload")?;
            form.clear();
            canon.write(payload, &mut form)?;
            len += black_box(&form).len() as u64;
        }
        Ok(len)
    }

    fn forms(&self) -> Result<Vec<Vec<u8>>> {
        let mut canon = Canon::new();
        let forms = self.0.iter().map(|(line, tape)| {
            let mut form = Vec::new();
            let payload = tape.root(line).get("payload").context("a payload")?;
            canon.write(payload, &mut form)?;
            Ok(form)
        });
        forms.collect()
    }
}

/// What the canonical form of a payload is held against.
fn limit(way: Way, form: &[u8]) -> u64 {
    if way == Way::Hash {
        black_box(Sha256::digest(form));
    } else {
        black_box(black_box(form).to_vec());
    }
    form.len() as u64
}

/// A record as it is before it has an id.
struct Drafted {
    kind: Kind,
    ts: Timestamp,
    parent: Option<ContentId>,
    meta: Option<Json>,
    payload: Json,
}

fn append(bytes: &[u8]) -> Result<Took> {
    let (mut reader, mut drafted) = (Reader::with_limits(bytes, NO_LIMITS), Vec::new());
    while let Some(item) = reader.next()? {
        let Item::Record(record) = item else {
            bail!("no record: {item:?}");
        };
        let json = |field| record.get(field).map(|node| Json::parse(node.raw().get()));
        drafted.push(Drafted {
            kind: record.kind().context("a kind that is known")?,
            ts: record.ts().context("a time")?,
            parent: match record.parent() {
                Parent::Id(id) => Some(id),
                _ => None,
            },
            meta: json(Field::Meta).transpose()?,
            payload: json(Field::Payload).context("a payload")??,
        });
    }
    let mut writer = Writer::new(Vec::with_capacity(bytes.len()));
    let took = timed(|| {
        for draft in &drafted {
            let Drafted {
                kind,
                ts,
                parent,
                meta,
                payload,
            } = draft;
            let meta = meta.as_ref();
            let draft = Draft {
                kind: *kind,
                ts: *ts,
                parent: *parent,
                meta,
                payload,
            };
            writer.append(&draft)?;
        }
        Ok(0)
    })?;
    let out = writer.into_inner();
    ensure!(!out.is_empty(), "nothing written");
    let made = out.len() as u64;
    Ok(Took { made, ..took })
}
