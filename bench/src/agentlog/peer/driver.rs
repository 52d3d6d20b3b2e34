//! Has shadow-diff's core do one thing to a trace, and prints the seconds of CPU time and what came out.
//! Built apart from the workspace.

use std::hint::black_box;
use std::io::Cursor;

use shadow_core::agentlog::parser::Parser;
use shadow_core::agentlog::{Record, canonical, hash, writer};

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, way, path] = &arguments[..] else {
        panic!("a way and a trace");
    };
    let data = std::fs::read(path).expect("a trace");
    let parse = || Parser::new(Cursor::new(&data[..])).map(|record| record.expect("a record"));
    let mut records: Vec<Record> = match way.as_str() {
        "verify" | "parse" => Vec::new(),
        _ => parse().collect(),
    };
    let mut out = Vec::with_capacity(data.len());
    let began = cpu();
    let made = match way.as_str() {
        "verify" => parse().filter(Record::verify_id).count(),
        "parse" => parse().filter(|record| !record.id.is_empty()).count(),
        "write" => {
            writer::write_all(&mut out, &records).expect("memory");
            out.len()
        }
        "append" => {
            for record in &mut records {
                record.id = hash::content_id(&record.payload);
                writer::write_record(&mut out, record).expect("memory");
            }
            out.len()
        }
        "canon" => records
            .iter()
            .map(|record| canonical::to_bytes(&record.payload).len())
            .sum(),
        _ => panic!("unknown: {way}"),
    };
    println!("{} {}", cpu() - began, black_box(made));
}

/// What this process has used so far, in seconds.
fn cpu() -> f64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the place may be written to, and a zeroed rusage is a valid one.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}
