//! The maximum of a smooth function of one or two numbers, and its curvature there.
//!
//! # Source
//! J. A. Nelder, R. Mead, "A simplex method for function minimization", The Computer Journal 7 (1965), with the usual
//! coefficients 1, 2, 1/2 and 1/2.

/// Where a function of `N` numbers is largest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Maximum<const N: usize> {
    /// The place.
    pub at: [f64; N],
    /// The value.
    pub value: f64,
}

/// The width of the simplex at which the search ends.
const TOLERANCE: f64 = 1e-8;

/// The most steps; simplices in two dimensions take about a hundred.
const STEPS: usize = 2000;

/// The maximum near `start`, with first steps of about `step`. `f` may be minus infinity or NaN outside its range.
pub(crate) fn maximum<const N: usize>(start: [f64; N], step: f64, f: impl Fn(&[f64; N]) -> f64) -> Option<Maximum<N>> {
    let value = |at: &[f64; N]| Some(f(at)).filter(|value| !value.is_nan()).unwrap_or(f64::NEG_INFINITY);
    let mut corners: Vec<Maximum<N>> = vec![Maximum { at: start, value: value(&start) }];
    for axis in 0..N {
        let mut at = start;
        at[axis] += step;
        corners.push(Maximum { at, value: value(&at) });
    }
    for _ in 0..STEPS {
        corners.sort_by(|one, other| other.value.total_cmp(&one.value));
        let (best, worst) = (corners[0], corners[N]);
        let width = corners.iter().flat_map(|corner| (0..N).map(|axis| (corner.at[axis] - best.at[axis]).abs()));
        if width.fold(0.0, f64::max) < TOLERANCE {
            break;
        }
        let centre = |axis: usize| corners[..N].iter().map(|corner| corner.at[axis]).sum::<f64>() / N as f64;
        let along = |factor: f64| {
            let at: [f64; N] = std::array::from_fn(|axis| centre(axis) + factor * (worst.at[axis] - centre(axis)));
            Maximum { at, value: value(&at) }
        };
        let reflected = along(-1.0);
        let next = if reflected.value > best.value {
            let expanded = along(-2.0);
            Some(if expanded.value > reflected.value { expanded } else { reflected })
        } else if reflected.value > corners[N - 1].value {
            Some(reflected)
        } else {
            let contracted = along(if reflected.value > worst.value { -0.5 } else { 0.5 });
            Some(contracted).filter(|found| found.value > worst.value.max(reflected.value))
        };
        match next {
            Some(next) => corners[N] = next,
            None => {
                for corner in &mut corners[1..] {
                    corner.at = std::array::from_fn(|axis| 0.5 * (corner.at[axis] + best.at[axis]));
                    corner.value = value(&corner.at);
                }
            }
        }
    }
    corners.sort_by(|one, other| other.value.total_cmp(&one.value));
    Some(corners[0]).filter(|found| found.value.is_finite())
}

/// The standard errors of one or two numbers: roots of the diagonal of the inverse of minus the second derivatives of
/// the log-likelihood at its maximum. `None` where that is not curved downwards.
pub(crate) fn standard_errors<const N: usize>(at: &[f64; N], f: impl Fn(&[f64; N]) -> f64) -> Option<[f64; N]> {
    // The fourth root of the precision, at which errors of rounding and of the difference are about equal.
    let steps = at.map(|x| 2e-4 * x.abs().max(1.0));
    let moved = |by: &[f64; N]| f(&std::array::from_fn(|axis| at[axis] + by[axis] * steps[axis]));
    let unit = |axis: usize, size: f64| std::array::from_fn(|other| if other == axis { size } else { 0.0 });
    let here = f(at);
    let curved =
        |axis: usize| -(moved(&unit(axis, 1.0)) - 2.0 * here + moved(&unit(axis, -1.0))) / (steps[axis] * steps[axis]);
    let diagonal: [f64; N] = std::array::from_fn(curved);
    let variances: [f64; N] = if N == 1 {
        std::array::from_fn(|axis| 1.0 / diagonal[axis])
    } else {
        let corner = |one: f64, other: f64| {
            moved(&std::array::from_fn(|axis| match axis {
                0 => one,
                _ => other,
            }))
        };
        let mixed = -(corner(1.0, 1.0) - corner(1.0, -1.0) - corner(-1.0, 1.0) + corner(-1.0, -1.0))
            / (4.0 * steps[0] * steps[1]);
        let determinant = diagonal[0] * diagonal[1] - mixed * mixed;
        std::array::from_fn(|axis| diagonal[1 - axis] / determinant)
    };
    let is_curved = variances.iter().all(|variance| *variance > 0.0 && variance.is_finite());
    is_curved.then(|| variances.map(f64::sqrt))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `−(x−1)² − 2(y+3)² − (x−1)(y+3)`: the inverse of its curvature is [[4, −1], [−1, 2]]/7.
    #[test]
    fn a_paraboloid_has_its_maximum_and_curvature() {
        let f = |at: &[f64; 2]| {
            let (x, y) = (at[0] - 1.0, at[1] + 3.0);
            -x * x - 2.0 * y * y - x * y
        };
        let found = maximum([10.0, 10.0], 1.0, f).unwrap();
        assert!((found.at[0] - 1.0).abs() < 1e-6 && (found.at[1] + 3.0).abs() < 1e-6, "{found:?}");
        let errors = standard_errors(&found.at, f).unwrap();
        assert!((errors[0] * errors[0] - 4.0 / 7.0).abs() < 1e-5, "{errors:?}");
        assert!((errors[1] * errors[1] - 2.0 / 7.0).abs() < 1e-5, "{errors:?}");
        assert_eq!(standard_errors(&[0.0], |at| at[0] * at[0]), None);
    }

    #[test]
    fn what_is_outside_the_range_is_left() {
        let f = |at: &[f64; 1]| if at[0] < 0.0 { f64::NAN } else { -(at[0] - 0.25) * (at[0] - 0.25) };
        assert!((maximum([3.0], 1.0, f).unwrap().at[0] - 0.25).abs() < 1e-6);
        assert_eq!(maximum([0.0], 1.0, |_| f64::NAN), None);
    }
}
