//! Making grey pictures smaller or larger exactly as Pillow does.
//!
//! A hash is only good for comparing when everyone's arithmetic is the same, down to the rounding: a
//! Lanczos filter of three lobes over rows and over columns, its weights rounded to 22 binary digits, and what
//! a pass gives rounded to a byte before the next.

use std::f64::consts::PI;

/// How many binary digits of a weight are behind the point: a byte and two digits for what is beyond a byte
/// fit before it.
const DIGITS: u32 = 32 - 8 - 2;

/// How far the filter reaches, in points of the larger of the two pictures.
const REACH: f64 = 3.0;

/// What one point of the result is made of.
struct Window {
    /// The first point that counts.
    first: usize,
    /// How much it and those behind it count.
    weights: Vec<i64>,
}

/// A picture at another size.
pub(super) fn resize(
    width: usize,
    height: usize,
    points: &[u8],
    to_width: usize,
    to_height: usize,
) -> Vec<u8> {
    if is_tall(width, height, to_width, to_height) {
        let now = columns(width, height, points, to_height);
        rows(width, &now, to_width)
    } else {
        let now = rows(width, points, to_width);
        columns(to_width, height, &now, to_height)
    }
}

/// Whether columns come before rows. Each pass rounds, so the order shows. Pillow 13 turns it around for
/// pictures that lose more than twice as many rows as columns; before, rows always came first.
fn is_tall(width: usize, height: usize, to_width: usize, to_height: usize) -> bool {
    height > to_height && height - to_height + 2 * to_width > 2 * width
}

/// Every row at another width.
fn rows(width: usize, points: &[u8], to: usize) -> Vec<u8> {
    if width == to {
        return points.to_vec();
    }
    let windows = windows(width, to);
    points
        .chunks_exact(width)
        .flat_map(|row| windows.iter().map(|window| window.of(row, 0, 1)))
        .collect()
}

/// Every column at another height.
fn columns(width: usize, height: usize, points: &[u8], to: usize) -> Vec<u8> {
    if height == to {
        return points.to_vec();
    }
    windows(height, to)
        .iter()
        .flat_map(|window| (0..width).map(|column| window.of(points, column, width)))
        .collect()
}

impl Window {
    /// The point that this window makes of every `step`th point from `start` on.
    fn of(&self, points: &[u8], start: usize, step: usize) -> u8 {
        let half = 1_i64 << (DIGITS - 1);
        let points = points[start..].iter().step_by(step).skip(self.first);
        let sum: i64 = self
            .weights
            .iter()
            .zip(points)
            .map(|(weight, point)| weight * i64::from(*point))
            .sum();
        u8::try_from(((half + sum) >> DIGITS).clamp(0, 255)).unwrap_or(u8::MAX)
    }
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "sizes of pictures are far below 2^52, and what is cut off is meant to be"
)]
fn windows(from: usize, to: usize) -> Vec<Window> {
    let scale = from as f64 / to as f64;
    // A picture that gets larger is filtered at its own scale.
    let stretch = scale.max(1.0);
    let support = REACH * stretch;
    let squeeze = 1.0 / stretch;
    (0..to)
        .map(|at| {
            let center = (at as f64 + 0.5) * scale;
            let first = (center - support + 0.5).max(0.0) as usize;
            let end = ((center + support + 0.5) as usize).min(from);
            let exact: Vec<f64> = (first..end)
                .map(|point| lanczos((point as f64 - center + 0.5) * squeeze))
                .collect();
            let total: f64 = exact.iter().sum();
            let weights = exact.iter().map(|weight| {
                let weight = if total == 0.0 {
                    *weight
                } else {
                    weight / total
                };
                // Away from zero, as a cast to a whole number of what is half more does.
                let scaled = weight * f64::from(1_u32 << DIGITS);
                (scaled + 0.5_f64.copysign(weight)) as i64
            });
            Window {
                first,
                weights: weights.collect(),
            }
        })
        .collect()
}

fn lanczos(x: f64) -> f64 {
    if (-REACH..REACH).contains(&x) {
        sinc(x) * sinc(x / REACH)
    } else {
        0.0
    }
}

fn sinc(x: f64) -> f64 {
    if x == 0.0 {
        return 1.0;
    }
    let x = x * PI;
    x.sin() / x
}
