//! Ridge regression of a number on a few features, one observation after the other.
//!
//! # Definition
//! `θ̂ = H⁻¹b` with `H = λI + Σ c·cᵀ` and `b = Σ y·c` over the observations of features `c` and numbers `y`. Both are
//! kept; a prediction factors `H = LLᵀ` anew, so that nothing depends on how often it was asked for.
//!
//! # Cost
//! O(N²) an observation, O(N³) a prediction.
//!
//! # Determinism
//! Sums in the order of the observations and of the features.

use super::float::sqrt;
use crate::state::Stateful;

/// See the [module](self). `N` features.
#[derive(Clone, Debug, Stateful)]
pub struct Ridge<const N: usize> {
    /// `H`, symmetric and positive definite.
    gram: [[f64; N]; N],
    /// `b`.
    moment: [f64; N],
}

/// `H` factored, for several predictions.
#[derive(Clone, Debug)]
pub struct Factored<const N: usize> {
    /// The lower triangle `L`.
    factor: [[f64; N]; N],
    /// `L⁻¹b`.
    moment: [f64; N],
}

impl<const N: usize> Default for Ridge<N> {
    fn default() -> Self {
        Self::new(0.0)
    }
}

impl<const N: usize> Ridge<N> {
    /// Before any observation; `ridge` is `λ`, positive.
    pub fn new(ridge: f64) -> Self {
        let gram = std::array::from_fn(|i| std::array::from_fn(|j| if i == j { ridge } else { 0.0 }));
        Self { gram, moment: [0.0; N] }
    }

    /// Takes in an observation.
    pub fn observe(&mut self, features: &[f64; N], number: f64) {
        for i in 0..N {
            for j in 0..N {
                self.gram[i][j] += features[i] * features[j];
            }
            self.moment[i] += number * features[i];
        }
    }

    /// What predictions need.
    pub fn factored(&self) -> Factored<N> {
        let factor = cholesky(&self.gram);
        Factored { moment: forward(&factor, &self.moment), factor }
    }
}

impl<const N: usize> Factored<N> {
    /// `cᵀθ̂`, and `sqrt(cᵀH⁻¹c)`.
    pub fn predict(&self, features: &[f64; N]) -> (f64, f64) {
        let y = forward(&self.factor, features);
        (dot(&y, &self.moment), sqrt(dot(&y, &y)))
    }
}

fn dot<const N: usize>(a: &[f64; N], b: &[f64; N]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The lower triangle `L` with `LLᵀ = matrix`.
fn cholesky<const N: usize>(matrix: &[[f64; N]; N]) -> [[f64; N]; N] {
    let mut factor = [[0.0; N]; N];
    for i in 0..N {
        for j in 0..=i {
            let rest = matrix[i][j] - (0..j).map(|k| factor[i][k] * factor[j][k]).sum::<f64>();
            factor[i][j] = if i == j { sqrt(rest) } else { rest / factor[j][j] };
        }
    }
    factor
}

/// Solves `L x = right`.
fn forward<const N: usize>(factor: &[[f64; N]; N], right: &[f64; N]) -> [f64; N] {
    let mut x = [0.0; N];
    for i in 0..N {
        x[i] = (right[i] - (0..i).map(|k| factor[i][k] * x[k]).sum::<f64>()) / factor[i][i];
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One observation y = 2 of c = (1, 0, 1) with λ = 1: H = [[2,0,1],[0,1,0],[1,0,2]], b = (2, 0, 2).
    /// H⁻¹ = 1/3·[[2,0,−1],[0,3,0],[−1,0,2]], θ̂ = (2/3, 0, 2/3), cᵀθ̂ = 4/3, cᵀH⁻¹c = (2−1−1+2)/3 = 2/3.
    #[test]
    fn one_observation_by_hand() {
        let mut regression = Ridge::new(1.0);
        assert_eq!(regression.factored().predict(&[1.0, 0.0, 1.0]), (0.0, 2.0f64.sqrt()));
        regression.observe(&[1.0, 0.0, 1.0], 2.0);
        let (found, width) = regression.factored().predict(&[1.0, 0.0, 1.0]);
        approx::assert_relative_eq!(found, 4.0 / 3.0, max_relative = 1e-14);
        approx::assert_relative_eq!(width, (2.0f64 / 3.0).sqrt(), max_relative = 1e-14);
    }

    /// Seven features, against the normal equations solved by elimination.
    #[test]
    fn many_observations_by_elimination() {
        let streams = crate::rng::Streams::new(7);
        let mut rng = streams.stream(crate::rng::Purpose::Resampling, 0, 0);
        let mut regression = Ridge::<7>::new(0.5);
        let mut rows: Vec<[f64; 8]> = (0..7).map(|i| std::array::from_fn(|j| if i == j { 0.5 } else { 0.0 })).collect();
        for _ in 0..40 {
            let features: [f64; 7] = std::array::from_fn(|_| rng.uniform() - 0.5);
            let number = 2.0 * features[0] - features[3] + 0.1 * rng.uniform();
            regression.observe(&features, number);
            for i in 0..7 {
                (0..7).for_each(|j| rows[i][j] += features[i] * features[j]);
                rows[i][7] += number * features[i];
            }
        }
        for pivot in 0..7 {
            for other in (0..7).filter(|&other| other != pivot) {
                let times = rows[other][pivot] / rows[pivot][pivot];
                let from = rows[pivot];
                rows[other].iter_mut().zip(from).for_each(|(entry, from)| *entry -= times * from);
            }
        }
        let features: [f64; 7] = std::array::from_fn(|i| i as f64 - 2.0);
        let expected: f64 = (0..7).map(|i| features[i] * rows[i][7] / rows[i][i]).sum();
        approx::assert_relative_eq!(regression.factored().predict(&features).0, expected, max_relative = 1e-10);
    }
}
