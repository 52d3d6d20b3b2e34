//! Pictures made here, and what `imagehash.dhash` (4.3.2, with Pillow 13.0.0) says of the same files.

#![cfg(feature = "images")]

use super::{DHash, ImageError, NEAR, of_image};

/// The sizes of the pictures: smaller than what is compared, of that size, and larger, one side or both.
const SIZES: [(u32, u32); 7] = [
    (1, 1),
    (9, 8),
    (3, 40),
    (9, 31),
    (50, 8),
    (64, 48),
    (131, 77),
];

/// Bits a sample, the colour type of PNG, whether there is a list of transparencies; the hash at each size.
#[rustfmt::skip]
const PICTURES: [(u32, u8, bool, [&str; 7]); 14] = [
    (1, 0, false, [
        "0000000000000000",
        "0000000000020840",
        "78f806601ffc0001",
        "13000a800fbc8000",
        "959595973435252a",
        "2ad5ad52cdb552da",
        "9424aa518b8b4512",
    ]),
    (2, 0, false, [
        "0000000000000000",
        "2000000208800002",
        "0000e0f8fcff0000",
        "5de8002ffb7e6001",
        "d594943525286a6a",
        "65d1ac56a9255298",
        "9254b556984cc3ba",
    ]),
    (4, 0, false, [
        "0000000000000000",
        "2212120a08524821",
        "f80707fc0f0000ff",
        "ffd8d5fbeff0000f",
        "95b6352a6968eaeb",
        "54b32556ab4de594",
        "a942c925d06699b6",
    ]),
    (8, 0, false, [
        "0000000000000000",
        "da5ada4b4e573e30",
        "1ff8fef8f0000fff",
        "489a75efb8c80f7f",
        "34256aebe8eacad9",
        "dca763daaa49a5b4",
        "a25192cce735934d",
    ]),
    (16, 0, false, [
        "0000000000000000",
        "0000000000000209",
        "f0070f000007fff0",
        "e677108400093ee0",
        "6aeacacadb935615",
        "992a55ad245bada4",
        "49a423d9f232bd24",
    ]),
    (8, 2, false, [
        "0000000000000000",
        "7f3b5b7cd389f6b9",
        "0a3f0f07f8020000",
        "d76da2aa6d3bdcc0",
        "c9cad29597b6b52b",
        "2a54a86a4db5534c",
        "4295168634a53243",
    ]),
    (16, 2, false, [
        "0000000000000000",
        "373a13354ee976d9",
        "1f1fe00f50ff0000",
        "5fec2225abdff080",
        "d0d49595b4352c69",
        "29d5a9539da653d5",
        "c45b2925a5960936",
    ]),
    (4, 3, false, [
        "0000000000000000",
        "0001048009241040",
        "4060070fe00f07ff",
        "2295cd244a404ff4",
        "684acadadb991516",
        "aa2db099d492596a",
        "c99221144cac64d2",
    ]),
    (8, 3, false, [
        "0000000000000000",
        "a68c2c185459aa93",
        "0ff0fc0ff00ff0e0",
        "6c96356daa9aada8",
        "69642edae75a9195",
        "4204d55571d93970",
        "db904d68535253e1",
    ]),
    (8, 3, true, [
        "0000000000000000",
        "d2b437225545ab1b",
        "0ff007f0f8e0f8ff",
        "5b5366ccd6eb95a2",
        "4a6959264654546b",
        "9561c2abcd92631d",
        "38b5ca2a69eb13c9",
    ]),
    (8, 4, false, [
        "0000000000000000",
        "65dd6433e61b2a35",
        "0ff0f80f0fe0001f",
        "7fb5a3ffb7f8000d",
        "95b5b525286aeaeb",
        "5d933552ab4d7692",
        "b942d229e673da66",
    ]),
    (16, 4, false, [
        "0000000000000000",
        "d54dec23561d2eb4",
        "0fe0f0f8ff000fff",
        "35ad7a577e6007f7",
        "3427296aeaeaeacb",
        "d4a86dd6aa48a5b3",
        "8e09922ea9488bc8",
    ]),
    (8, 6, false, [
        "0000000000000000",
        "6c2525e67b2e59a4",
        "040ff8070f1f0f40",
        "2d7b7aa4a3673fdc",
        "6b4acad9d3929495",
        "b865d6a15d938868",
        "46ac57813ac64448",
    ]),
    (16, 6, false, [
        "0000000000000000",
        "7d27676cb9e4bb6c",
        "200f20f007f8f800",
        "d53ff06432af7ef0",
        "caced7d7929495b6",
        "29448a2555a35a4d",
        "54aa2dd604854a94",
    ]),
];

/// A sample of a picture.
fn sample(x: u32, y: u32, channel: u32, seed: u32) -> u8 {
    let plain = x * x * 7 / 16 + y * 13 + x * y * 3 / 8 + channel * 85 + seed * 31;
    (plain ^ (x * 5 / 3 + y * 2)).to_le_bytes()[0]
}

fn crc(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = crc >> 1 ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 };
        }
    }
    !crc
}

fn chunk(out: &mut Vec<u8>, name: [u8; 4], data: &[u8]) {
    out.extend(u32::try_from(data.len()).unwrap().to_be_bytes());
    let begin = out.len();
    out.extend(name);
    out.extend(data);
    let crc = crc(&out[begin..]);
    out.extend(crc.to_be_bytes());
}

/// Bytes in the form of zlib, not compressed.
fn stored(bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![0x78, 0x01];
    let mut blocks = bytes.chunks(0xffff).peekable();
    while let Some(block) = blocks.next() {
        let len = u16::try_from(block.len()).unwrap();
        out.push(u8::from(blocks.peek().is_none()));
        out.extend(len.to_le_bytes());
        out.extend((!len).to_le_bytes());
        out.extend(block);
    }
    let (mut a, mut b) = (1_u32, 0_u32);
    for byte in bytes {
        a = (a + u32::from(*byte)) % 65_521;
        b = (b + a) % 65_521;
    }
    out.extend((b << 16 | a).to_be_bytes());
    out
}

fn png(width: u32, height: u32, depth: u32, color: u8, see_through: bool, seed: u32) -> Vec<u8> {
    let channels = [1, 0, 3, 1, 2, 0, 4][usize::from(color)];
    let mut raw = Vec::new();
    for y in 0..height {
        raw.push(0);
        let (mut bits, mut n) = (0_u8, 0);
        for (x, channel) in (0..width).flat_map(|x| (0..channels).map(move |channel| (x, channel)))
        {
            let sample = sample(x, y, channel, seed);
            match depth {
                8 => raw.push(sample),
                // Grey ones of 16 bits stay dark, because all that is brighter than 255 is white.
                16 => raw.extend([
                    if color == 0 { sample >> 6 } else { sample },
                    sample.wrapping_mul(3),
                ]),
                _ => {
                    bits = bits << depth | sample >> (8 - depth);
                    n += depth;
                    if n == 8 {
                        raw.push(std::mem::take(&mut bits));
                        n = 0;
                    }
                }
            }
        }
        if n > 0 {
            raw.push(bits << (8 - n));
        }
    }
    let mut out = b"\x89PNG\r\n\x1a\n".to_vec();
    let mut header = [width.to_be_bytes(), height.to_be_bytes()].concat();
    header.extend([depth.to_le_bytes()[0], color, 0, 0, 0]);
    chunk(&mut out, *b"IHDR", &header);
    if color == 3 {
        let entries = 1 << depth;
        let colors = (0..entries).flat_map(|at| (0..3).map(move |channel| (at, channel)));
        let palette: Vec<u8> = colors
            .map(|(at, channel)| sample(at, channel * 40, channel, seed + 9))
            .collect();
        chunk(&mut out, *b"PLTE", &palette);
        if see_through {
            let alphas: Vec<u8> = (0..entries).map(|at| (at * 37).to_le_bytes()[0]).collect();
            chunk(&mut out, *b"tRNS", &alphas);
        }
    }
    chunk(&mut out, *b"IDAT", &stored(&raw));
    chunk(&mut out, *b"IEND", b"");
    out
}

#[test]
fn the_same_as_the_package_says() {
    for (kind, (depth, color, see_through, hashes)) in (0..).zip(PICTURES) {
        for (n, ((width, height), hash)) in (0..).zip(SIZES.into_iter().zip(hashes)) {
            let png = png(width, height, depth, color, see_through, kind + n);
            let what = format!("{width}x{height}, {depth} bits of type {color}");
            assert_eq!(of_image(&png).unwrap().to_string(), hash, "{what}");
        }
    }
}

#[test]
fn what_is_nearly_the_same_is_near() {
    let points = |change: u8| -> Vec<u8> {
        let sample = |at: u32| sample(at % 64, at / 64, 0, 1);
        (0..64 * 48)
            .map(|at| sample(at).saturating_add(change))
            .collect()
    };
    let [one, brighter] = [0, 3].map(|change| DHash::of_grey(64, 48, &points(change)).unwrap());
    assert!(one.is_near(brighter), "{}", one.distance(brighter));
    let mut turned = points(0);
    turned.reverse();
    let turned = DHash::of_grey(64, 48, &turned).unwrap();
    assert!(one.distance(turned) > NEAR, "{}", one.distance(turned));
}

#[test]
fn what_is_no_picture_or_too_large_a_one_is_told() {
    assert!(matches!(of_image(b"text"), Err(ImageError::Unknown)));
    assert!(matches!(
        of_image(b"BM\0\0\0\0\0\0"),
        Err(ImageError::Unknown)
    ));
    let whole = png(64, 48, 8, 2, false, 1);
    for end in 0..whole.len() - 12 {
        // Cut anywhere: an error, or what is there of it, but never the end of the process.
        drop(of_image(&whole[..end]));
    }
    let mut huge = b"\x89PNG\r\n\x1a\n".to_vec();
    let side = 60_000_u32.to_be_bytes();
    chunk(
        &mut huge,
        *b"IHDR",
        &[&side[..], &side, &[8, 2, 0, 0, 0]].concat(),
    );
    chunk(&mut huge, *b"IDAT", &stored(&[0; 64]));
    chunk(&mut huge, *b"IEND", b"");
    let error = of_image(&huge).unwrap_err();
    assert!(
        matches!(error, ImageError::TooLarge { width: 60_000, .. }),
        "{error}"
    );
    assert_eq!(DHash::of_grey(0, 0, &[]), None);
    assert_eq!(DHash::of_grey(2, 2, &[1, 2, 3]), None);
}
