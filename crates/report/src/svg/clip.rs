//! Lines cut off at a frame.

/// The parts of a line within a frame of `[[left, right], [bottom, top]]` (Liang and Barsky, 1984).
pub(super) fn clipped(points: &[(f64, f64)], frame: [[f64; 2]; 2]) -> Vec<Vec<(f64, f64)>> {
    let mut parts: Vec<Vec<(f64, f64)>> = Vec::new();
    for pair in points.windows(2) {
        let Some([from, to]) = segment(pair[0], pair[1], frame) else { continue };
        match parts.last_mut().filter(|part| part.last() == Some(&from)) {
            Some(part) => part.push(to),
            None => parts.push(vec![from, to]),
        }
    }
    parts
}

/// The part of a segment within the frame.
fn segment(from: (f64, f64), to: (f64, f64), frame: [[f64; 2]; 2]) -> Option<[(f64, f64); 2]> {
    let (mut first, mut last) = (0.0_f64, 1.0_f64);
    for (start, end, [low, high]) in [(from.0, to.0, frame[0]), (from.1, to.1, frame[1])] {
        let step = end - start;
        if step == 0.0 {
            if !(low..=high).contains(&start) {
                return None;
            }
            continue;
        }
        let (enters, leaves) = ((low - start) / step, (high - start) / step);
        first = first.max(enters.min(leaves));
        last = last.min(enters.max(leaves));
    }
    let at = |share: f64| match share {
        0.0 => from,
        1.0 => to,
        _ => (from.0 + share * (to.0 - from.0), from.1 + share * (to.1 - from.1)),
    };
    (first <= last).then(|| [at(first), at(last)])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A zigzag through a frame from 0 to 10 and 0 to 1: it leaves at the top, comes back, and ends at the right.
    #[test]
    fn what_lies_beyond_the_frame_is_cut_off() {
        let line = [(-2.0, 0.5), (2.0, 0.5), (4.0, 2.5), (6.0, 0.5), (12.0, 0.5)];
        let found = clipped(&line, [[0.0, 10.0], [0.0, 1.0]]);
        assert_eq!(found, [vec![(0.0, 0.5), (2.0, 0.5), (2.5, 1.0)], vec![(5.5, 1.0), (6.0, 0.5), (10.0, 0.5)]]);
        assert!(clipped(&[(0.0, 5.0), (9.0, 5.0)], [[0.0, 10.0], [0.0, 1.0]]).is_empty());
        let open = [f64::NEG_INFINITY, f64::INFINITY];
        assert_eq!(clipped(&line, [open, open]), [line.to_vec()]);
    }
}
