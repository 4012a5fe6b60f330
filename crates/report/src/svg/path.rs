//! Paths of SVG in few letters: relative steps of tenths of a pixel.

use super::pen::Point;
use fedgenie_core::math::float;

/// A number in the fewest letters, with one decimal.
pub(super) fn number(value: f64) -> String {
    tenths(tenth(value))
}

/// Tenths of a pixel. Far beyond every picture there is no difference.
fn tenth(value: f64) -> i64 {
    float::floor(value.clamp(-1e7, 1e7) * 10.0 + 0.5) as i64
}

/// A number of tenths: `12`, `-.5`, `3.1`.
fn tenths(count: i64) -> String {
    let (sign, whole, part) = (if count < 0 { "-" } else { "" }, count.abs() / 10, count.abs() % 10);
    match (whole, part) {
        (whole, 0) => format!("{sign}{whole}"),
        (0, part) => format!("{sign}.{part}"),
        (whole, part) => format!("{sign}{whole}.{part}"),
    }
}

/// Lines, each from its first to its last point.
pub(super) fn open(parts: &[Vec<Point>]) -> String {
    let mut last = None;
    parts.iter().map(|points| one(points, &mut last)).collect()
}

/// Shapes, whose last corners are joined to their first.
pub(super) fn closed(shapes: &[Vec<Point>]) -> String {
    let shape = |corners: &Vec<Point>| one(corners, &mut None) + "z";
    shapes.iter().filter(|corners| corners.len() > 2).map(shape).collect()
}

/// One line; `last` is the end of the line before.
fn one(points: &[Point], last: &mut Option<(i64, i64)>) -> String {
    let mut written = String::new();
    let mut command = ' ';
    for &(x, y) in points {
        let at = (tenth(x), tenth(y));
        let before = last.replace(at);
        if command == ' ' {
            let absolute = pair(at.0, at.1);
            let moved = before.map(|(left, top)| pair(at.0 - left, at.1 - top));
            written = match moved.filter(|moved| moved.len() < absolute.len()) {
                Some(moved) => format!("m{moved}"),
                None => format!("M{absolute}"),
            };
            command = 'M';
            continue;
        }
        let (left, top) = before.unwrap_or(at);
        let (right, down) = (at.0 - left, at.1 - top);
        let (next, numbers) = match (right, down) {
            (0, 0) => continue,
            (right, 0) => ('h', tenths(right)),
            (0, down) => ('v', tenths(down)),
            (right, down) => ('l', pair(right, down)),
        };
        if next != command {
            written.push(next);
        } else if !numbers.starts_with('-') {
            written.push(' ');
        }
        written.push_str(&numbers);
        command = next;
    }
    written
}

/// A line without the points that lie within an eighth of a pixel of the line through the others (Ramer 1972, Douglas
/// and Peucker 1973).
pub(super) fn simplified(points: &[Point]) -> Vec<Point> {
    const NEAR: f64 = 0.125;
    let mut is_kept = vec![false; points.len()];
    let mut parts = vec![(0, points.len().saturating_sub(1))];
    while let Some((first, last)) = parts.pop() {
        for end in [first, last] {
            is_kept.iter_mut().skip(end).take(1).for_each(|kept| *kept = true);
        }
        let far = (first + 1..last).map(|point| (point, distance(points[point], [points[first], points[last]])));
        if let Some((middle, _)) = far.filter(|(_, far)| *far > NEAR).max_by(|one, other| one.1.total_cmp(&other.1)) {
            parts.extend([(first, middle), (middle, last)]);
        }
    }
    points.iter().zip(is_kept).filter(|(_, is_kept)| *is_kept).map(|(&point, _)| point).collect()
}

/// The distance of a point from a segment.
fn distance((x, y): Point, [from, to]: [Point; 2]) -> f64 {
    let (right, down) = (to.0 - from.0, to.1 - from.1);
    let length = right * right + down * down;
    let along = ((x - from.0) * right + (y - from.1) * down) / length;
    let share = if length > 0.0 { along.clamp(0.0, 1.0) } else { 0.0 };
    let (aside, above) = (x - from.0 - share * right, y - from.1 - share * down);
    float::sqrt(aside * aside + above * above)
}

/// Two numbers; a sign parts them as well as a space.
fn pair(first: i64, second: i64) -> String {
    let space = if second < 0 { "" } else { " " };
    format!("{}{space}{}", tenths(first), tenths(second))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_one_decimal_and_no_more_letters_than_needed() {
        let found = [0.0, -0.04, 0.5, -0.5, 12.0, -3.13, 1e9].map(number);
        assert_eq!(found, ["0", "0", ".5", "-.5", "12", "-3.1", "10000000"]);
    }

    /// A straight line keeps its ends, a peak and a step stay.
    #[test]
    fn points_on_a_line_are_left_out() {
        let straight: Vec<Point> = (0..100).map(|step| (f64::from(step), 0.5 * f64::from(step))).collect();
        assert_eq!(simplified(&straight), [(0.0, 0.0), (99.0, 49.5)]);
        let peak = [(0.0, 0.0), (1.0, 0.1), (2.0, 9.0), (3.0, 0.0), (3.0, 4.0)];
        assert_eq!(simplified(&peak), [(0.0, 0.0), (1.0, 0.1), (2.0, 9.0), (3.0, 0.0), (3.0, 4.0)]);
        assert_eq!(simplified(&[(0.0, 0.0), (5.0, 0.0), (0.0, 0.0)]).len(), 3, "there and back");
        assert_eq!((simplified(&[]).len(), simplified(&[(1.0, 1.0)]).len()), (0, 1));
    }

    /// Steps are between rounded places, so that errors do not add up.
    #[test]
    fn steps_lead_to_rounded_places() {
        let line = vec![(1.0, 2.0), (3.5, 2.0), (5.5, 2.0), (5.5, 1.0), (5.51, 1.04), (6.0, 0.0), (7.0, 0.5)];
        assert_eq!(open(&[line]), "M1 2h2.5 2v-1l.5-1 1 .5");
        let many: Vec<Point> = (0..=1000).map(|step| (f64::from(step) * 0.13, 0.0)).collect();
        let sum: f64 =
            open(&[many])[4..].trim_start_matches('h').split(' ').map(|step| step.parse::<f64>().unwrap()).sum();
        assert!((sum - 130.0).abs() < 1e-9, "{sum}");
        assert_eq!(closed(&[vec![(0.0, 0.0), (2.0, 0.0), (2.0, 1.0)], vec![(0.0, 0.0)]]), "M0 0h2v1z");
        assert_eq!(open(&[vec![(0.0, 0.0), (1.0, 0.0)], vec![(5.0, 5.0), (5.0, -5.0)]]), "M0 0h1M5 5v-10");
        // The shorter of two ways to begin the next line.
        assert_eq!(open(&[vec![(50.0, 80.5), (51.0, 80.5)], vec![(52.0, 80.5), (52.0, 85.5)]]), "M50 80.5h1m1 0v5");
    }
}
