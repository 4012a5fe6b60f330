//! Whether lines cross a box.

use super::pen::Point;

/// Left, top, right, bottom.
pub(super) type Box = [f64; 4];

/// Whether a line has a point within a box, its edge included.
pub(super) fn crosses(line: &[Point], within: Box) -> bool {
    match line {
        [point] => is_in(*point, within),
        line => line.windows(2).any(|pair| segment_crosses(pair[0], pair[1], within)),
    }
}

pub(super) fn is_in((x, y): Point, [left, top, right, bottom]: Box) -> bool {
    (left..=right).contains(&x) && (top..=bottom).contains(&y)
}

/// Liang and Barsky (1984).
fn segment_crosses(from: Point, to: Point, [left, top, right, bottom]: Box) -> bool {
    let (mut first, mut last) = (0.0_f64, 1.0_f64);
    for (start, end, low, high) in [(from.0, to.0, left, right), (from.1, to.1, top, bottom)] {
        let step = end - start;
        if step == 0.0 {
            if !(low..=high).contains(&start) {
                return false;
            }
            continue;
        }
        let (enters, leaves) = ((low - start) / step, (high - start) / step);
        first = first.max(enters.min(leaves));
        last = last.min(enters.max(leaves));
    }
    first <= last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_cross_boxes_also_between_their_points() {
        let within = [0.0, 0.0, 10.0, 1.0];
        for (line, expected) in [
            (vec![(-2.0, 0.5), (12.0, 0.5)], true),
            (vec![(-2.0, 2.0), (-2.0, -2.0)], false),
            (vec![(9.0, -1.0), (11.0, 1.0)], true),
            (vec![(9.5, -1.0), (11.5, 1.0)], false),
            (vec![(20.0, 20.0), (30.0, 0.5), (5.0, 3.0)], false),
            (vec![(5.0, 0.5)], true),
            (vec![(5.0, 1.5)], false),
            (vec![], false),
        ] {
            assert_eq!(crosses(&line, within), expected, "{line:?}");
        }
    }
}
