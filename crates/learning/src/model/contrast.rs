//! Contrast of representations: the outputs of a network's last hidden layer are drawn towards those of one model, and
//! away from those of another.
//!
//! # Definition
//! For an example with the representation `z`, and `a` and `b` those of two other models, the contrast is
//! `−ln(e^(cos(z, a)/T) / (e^(cos(z, a)/T) + e^(cos(z, b)/T)))`. Its mean over a batch, times `mu`, is added to the
//! loss. The cosine with a vector of zeros is 0, and so are its slopes.
//!
//! # Determinism
//! In `f64`, example by example, in the order of the features.

use fedgenie_core::math::float::{exp, ln_1p, sqrt};

/// The representations that a batch is contrasted with.
#[derive(Clone, Copy, Debug)]
pub struct Contrast<'a> {
    /// Weight of the contrast in the loss.
    pub mu: f64,
    /// `T`.
    pub temperature: f64,
    /// Representations to be near to, example by example.
    pub near: &'a [f32],
    /// Representations to be far from, example by example.
    pub far: &'a [f32],
}

/// The cosine of two vectors, and its slopes by the first, which are appended to a list.
fn cosine(one: &[f64], other: &[f32], slopes: &mut Vec<f64>) -> f64 {
    let (mut product, mut squares, mut other_squares) = (0.0, 0.0, 0.0);
    for (one, other) in one.iter().zip(other) {
        let other = f64::from(*other);
        product += one * other;
        squares += one * one;
        other_squares += other * other;
    }
    let norms = sqrt(squares) * sqrt(other_squares);
    if norms == 0.0 {
        slopes.extend(one.iter().map(|_| 0.0));
        return 0.0;
    }
    let found = product / norms;
    slopes.extend(one.iter().zip(other).map(|(one, other)| f64::from(*other) / norms - found * one / squares));
    found
}

impl Contrast<'_> {
    /// The contrast of example `index` with this representation; its slopes, times `mu`, overwrite a list.
    pub fn of(&self, index: usize, representation: &[f64], slopes: &mut Vec<f64>) -> f64 {
        let Self { mu, temperature, near, far } = *self;
        let width = representation.len();
        let other = index * width..(index + 1) * width;
        slopes.clear();
        let to_near = cosine(representation, &near[other.clone()], slopes);
        let to_far = cosine(representation, &far[other], slopes);
        let lead = (to_far - to_near) / temperature;
        // ln(1 + e^lead), and its slope by lead, without overflow.
        let (contrast, slope) = match lead > 0.0 {
            true => (lead + ln_1p(exp(-lead)), 1.0 / (1.0 + exp(-lead))),
            false => (ln_1p(exp(lead)), exp(lead) / (1.0 + exp(lead))),
        };
        let factor = mu * slope / temperature;
        let (of_near, of_far) = slopes.split_at_mut(width);
        of_near.iter_mut().zip(of_far).for_each(|(near, far)| *near = factor * (*far - *near));
        slopes.truncate(width);
        contrast
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At right angles to one and along the other: cosines 0 and 1.
    #[test]
    fn a_contrast_by_hand() {
        let contrast = Contrast { mu: 2.0, temperature: 0.5, near: &[0.0, 3.0], far: &[2.0, 0.0] };
        let mut slopes = Vec::new();
        let found = contrast.of(0, &[4.0, 0.0], &mut slopes);
        approx::assert_relative_eq!(found, (1.0 + 2.0_f64.exp()).ln(), max_relative = 1e-14);
        // Along itself nothing changes; across, the cosine to the near one grows by 1/4 a unit.
        let share = 1.0 / (1.0 + (-2.0_f64).exp());
        approx::assert_relative_eq!(slopes[1], -2.0 * share / 0.5 / 4.0, max_relative = 1e-14);
        assert_eq!((slopes[0], slopes.len()), (0.0, 2));
        let same = Contrast { far: &[0.0, 3.0], ..contrast };
        approx::assert_relative_eq!(same.of(0, &[4.0, 1.0], &mut slopes), 2.0_f64.ln(), max_relative = 1e-14);
        assert_eq!(slopes, [0.0; 2], "two equal models draw both ways");
        assert_eq!(same.of(0, &[0.0, 0.0], &mut slopes), 2.0_f64.ln());
    }

    #[test]
    fn slopes_are_differences() {
        let contrast = Contrast { mu: 0.7, temperature: 0.3, near: &[0.5, -1.0, 2.0], far: &[1.0, 0.25, -0.5] };
        let (point, step) = ([0.3, 0.8, -0.2], 1e-6);
        let mut slopes = Vec::new();
        contrast.of(0, &point, &mut slopes);
        for place in 0..3 {
            let at = |by: f64| {
                let mut moved = point;
                moved[place] += by;
                0.7 * contrast.of(0, &moved, &mut Vec::new())
            };
            approx::assert_relative_eq!(slopes[place], (at(step) - at(-step)) / (2.0 * step), max_relative = 1e-7);
        }
    }
}
