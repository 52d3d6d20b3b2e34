//! Pictures to grey points.

use std::io::Cursor;

use image::{DynamicImage, ImageReader, Limits};

use super::DHash;

/// Pictures with more points are not looked at.
pub const MAX_PIXELS: u64 = 50_000_000;

/// What decoding one picture may take of memory.
const MAX_MEMORY: u64 = 512 << 20;

/// The widest and the highest picture.
const MAX_SIDE: u32 = 65_535;

/// Why a picture has no hash.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// It is of no kind that is known: PNG, JPEG, GIF, WebP.
    #[error("not a PNG, JPEG, GIF or WebP picture")]
    Unknown,
    /// It has more points than are looked at.
    #[error("{width} by {height} points, more than the {MAX_PIXELS} that are looked at")]
    TooLarge {
        /// How wide it is.
        width: u32,
        /// How high it is.
        height: u32,
    },
    /// It is damaged, or needs too much memory.
    #[error("the picture cannot be read: {0}")]
    Damaged(String),
}

/// The difference hash of a picture file; of its first frame where it moves.
///
/// # Errors
///
/// When it is not a picture that can be read, or too large a one.
pub fn of_image(bytes: &[u8]) -> Result<DHash, ImageError> {
    let damaged = |error: image::ImageError| ImageError::Damaged(error.to_string());
    let open = || {
        let reader = ImageReader::new(Cursor::new(bytes)).with_guessed_format();
        let mut reader = reader.map_err(|error| ImageError::Damaged(error.to_string()))?;
        let mut limits = Limits::default();
        limits.max_image_width = Some(MAX_SIDE);
        limits.max_image_height = Some(MAX_SIDE);
        limits.max_alloc = Some(MAX_MEMORY);
        reader.limits(limits);
        Ok(reader)
    };
    let reader = open()?;
    if reader.format().is_none() {
        return Err(ImageError::Unknown);
    }
    let (width, height) = match reader.into_dimensions() {
        Err(image::ImageError::Unsupported(_)) => return Err(ImageError::Unknown),
        dimensions => dimensions.map_err(damaged)?,
    };
    if u64::from(width) * u64::from(height) > MAX_PIXELS {
        return Err(ImageError::TooLarge { width, height });
    }
    let points = grey(&open()?.decode().map_err(damaged)?);
    let side = |side: u32| usize::try_from(side).unwrap_or(usize::MAX);
    DHash::of_grey(side(width), side(height), &points)
        .ok_or_else(|| ImageError::Damaged("it has no points".to_owned()))
}

/// The grey points of a picture, as Pillow makes them: transparency does not count, and of 16 bits the
/// upper 8, but for grey pictures of 16 bits, where all that is brighter than 255 is white.
fn grey(image: &DynamicImage) -> Vec<u8> {
    let high = |value: u16| value.to_be_bytes()[0];
    match image {
        DynamicImage::ImageLuma8(image) => image.as_raw().clone(),
        DynamicImage::ImageLumaA8(image) => image.pixels().map(|it| it.0[0]).collect(),
        DynamicImage::ImageLuma16(image) => {
            let clip = |value: &u16| u8::try_from(*value).unwrap_or(u8::MAX);
            image.as_raw().iter().map(clip).collect()
        }
        DynamicImage::ImageLumaA16(image) => image.pixels().map(|it| high(it.0[0])).collect(),
        DynamicImage::ImageRgb16(image) => image.pixels().map(|it| luma(it.0.map(high))).collect(),
        DynamicImage::ImageRgba16(image) => {
            let rgb = |it: &image::Rgba<u16>| luma([high(it.0[0]), high(it.0[1]), high(it.0[2])]);
            image.pixels().map(rgb).collect()
        }
        DynamicImage::ImageRgb8(image) => image.pixels().map(|it| luma(it.0)).collect(),
        other => {
            let image = other.to_rgba8();
            let rgb = |it: &image::Rgba<u8>| luma([it.0[0], it.0[1], it.0[2]]);
            image.pixels().map(rgb).collect()
        }
    }
}

/// How bright a colour is: the weights of ITU-R 601, in 16 binary digits, rounded.
fn luma([red, green, blue]: [u8; 3]) -> u8 {
    let sum = u32::from(red) * 19_595 + u32::from(green) * 38_470 + u32::from(blue) * 7_471;
    u8::try_from((sum + 0x8000) >> 16).unwrap_or(u8::MAX)
}
