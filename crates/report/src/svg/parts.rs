//! Parts of bars: colours and hatching.

use super::canvas::Canvas;
use super::pen::{BRIGHT, Colour, DIM, Pen, Point};

/// How a part of bars looks: parts are told apart by lightness and by hatching; their colours are none of the series'.
pub(super) struct Part {
    pub fill: Colour,
    pub hatch: Hatch,
}

pub(super) const PARTS: [Part; 6] = [
    Part { fill: [59, 77, 97], hatch: Hatch::None },
    Part { fill: [185, 196, 207], hatch: Hatch::Rising },
    Part { fill: [124, 144, 164], hatch: Hatch::Dots },
    Part { fill: [216, 211, 199], hatch: Hatch::Falling },
    Part { fill: [95, 107, 92], hatch: Hatch::Across },
    Part { fill: [168, 159, 140], hatch: Hatch::Upright },
];

impl Part {
    fn is_dark(&self) -> bool {
        self.fill[1] < 150
    }

    pub fn hatch_colour(&self) -> Colour {
        if self.is_dark() { [190, 200, 210] } else { [110, 116, 122] }
    }

    /// Letters on dark parts are not quite white, which is the colour of paper.
    pub fn letters(&self) -> Colour {
        if self.is_dark() { BRIGHT } else { DIM }
    }
}

#[derive(Clone, Copy)]
pub(super) enum Hatch {
    None,
    Rising,
    Falling,
    Across,
    Upright,
    Dots,
}

impl Hatch {
    /// The lines within a rectangle (left, top, width, height).
    pub fn lines(self, [left, top, width, height]: [f64; 4]) -> Vec<Vec<Point>> {
        const STEP: f64 = 8.0;
        let steps = |to: f64| (1..).map(|count| f64::from(count) * STEP - STEP / 2.0).take_while(move |&at| at < to);
        let at = |x: f64, y: f64| (left + x, top + y);
        // A diagonal has x + y = sum, between the edges.
        let diagonal = |sum: f64| {
            let (from, to) = ((sum - height).max(0.0), sum.min(width));
            [(from, sum - from), (to, sum - to)]
        };
        match self {
            Self::None => Vec::new(),
            Self::Rising => steps(width + height).map(|sum| diagonal(sum).map(|(x, y)| at(x, y)).to_vec()).collect(),
            Self::Falling => {
                steps(width + height).map(|sum| diagonal(sum).map(|(x, y)| at(x, height - y)).to_vec()).collect()
            }
            Self::Across => steps(height).map(|y| vec![at(0.0, y), at(width, y)]).collect(),
            Self::Upright => steps(width).map(|x| vec![at(x, 0.0), at(x, height)]).collect(),
            Self::Dots => {
                let row = |y: f64| steps(width - 1.0).map(move |x| vec![at(x, y), at(x + 1.5, y)]);
                steps(height).flat_map(row).collect()
            }
        }
    }
}

/// Draws one part (left, top, width, height).
pub(super) fn part(canvas: &mut Canvas, index: usize, rectangle: [f64; 4]) {
    let part = &PARTS[index % PARTS.len()];
    canvas.rectangle(rectangle, part.fill, "");
    let lines = part.hatch.lines(rectangle);
    if !lines.is_empty() {
        canvas.lines(&lines, Pen::of(part.hatch_colour(), 1.0), "");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All hatching stays within its rectangle, and none is empty but the first.
    #[test]
    fn hatching_stays_within_its_bar() {
        for part in &PARTS {
            let lines = part.hatch.lines([10.0, 20.0, 33.0, 22.0]);
            assert_eq!(lines.is_empty(), matches!(part.hatch, Hatch::None));
            for (x, y) in lines.into_iter().flatten() {
                assert!((10.0..=43.0).contains(&x) && (20.0..=42.0).contains(&y), "{x} {y}");
            }
        }
        let rising = Hatch::Rising.lines([0.0, 0.0, 10.0, 5.0]);
        assert_eq!(rising[0], [(0.0, 4.0), (4.0, 0.0)]);
        assert_eq!(rising[1], [(7.0, 5.0), (10.0, 2.0)]);
    }
}
