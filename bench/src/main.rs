//! x
use quipu_formats::exchange::*;
use quipu_formats::lines::*;
use std::time::Instant;
#[derive(serde::Deserialize)]
struct Env<'a> {
    seq: u64,
    #[serde(rename = "type", borrow)]
    ty: &'a str,
    #[serde(borrow)]
    payload: sonic_rs::LazyValue<'a>,
}
fn main() {
    let f = std::env::args().nth(1).unwrap();
    let len = std::fs::metadata(&f).unwrap().len() as f64;
    for _ in 0..3 {
        for mode in [
            "lines",
            "sonic-lazy",
            "sonic-env",
            "tape",
            "scan",
            "decode",
            "verify",
        ] {
            let t = Instant::now();
            let mut n = 0u64;
            let file = std::fs::File::open(&f).unwrap();
            match mode {
                "scan" => {
                    let mut r = Reader::new(file);
                    while let Some(i) = r.next().unwrap() {
                        if let Item::Event(e) = i {
                            n += e.scan.seq
                        }
                    }
                }
                "decode" => {
                    let mut r = Reader::new(file);
                    while let Some(i) = r.next_decoded().unwrap() {
                        n += i.unwrap().event.seq
                    }
                }
                "verify" => {
                    let mut r = Reader::new(file);
                    n = verify::verify(&mut r).unwrap().events
                }
                _ => {
                    let mut l = Lines::new(file, Limits::default());
                    let mut b = simd_json::Buffers::new(1 << 20);
                    let mut v = Vec::new();
                    while let Some(_) = l.advance().unwrap() {
                        match mode {
                            "lines" => n += 1,
                            "sonic-lazy" => {
                                let v: sonic_rs::LazyValue =
                                    sonic_rs::from_slice(l.current()).unwrap();
                                n += v.as_raw_str().len() as u64
                            }
                            "sonic-env" => {
                                let v: Env = sonic_rs::from_slice(l.current()).unwrap();
                                n += v.seq + v.ty.len() as u64 + v.payload.as_raw_str().len() as u64
                            }
                            _ => {
                                v.clear();
                                v.extend_from_slice(l.current());
                                let t = simd_json::to_tape_with_buffers(&mut v, &mut b).unwrap();
                                n += t.0.len() as u64
                            }
                        }
                    }
                }
            }
            let s = t.elapsed().as_secs_f64();
            println!("{mode:10} {n} {:.0} MB/s", len / 1e6 / s);
        }
    }
}
