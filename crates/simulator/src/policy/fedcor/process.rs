//! A Gaussian process of loss changes: a vector for each client, whose products are covariances.
//!
//! With `X` the vectors of some clients as columns and `M = XXᵀ + ν·1`, of as many rows as a vector has numbers,
//! `XΣ⁻¹ = M⁻¹X` and `Σ⁻¹y = (y − XᵀM⁻¹Xy)/ν`. So no matrix of all pairs is needed.

use fedgenie_core::id::ClientId;
use fedgenie_core::math::float::sqrt;
use fedgenie_core::state::Stateful;
use std::collections::VecDeque;

/// How vectors are fitted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fit {
    /// Weight of an observation from round to round.
    pub gamma: f64,
    pub iterations: u32,
    pub rate: f64,
}

/// Changes of the losses of some clients, ascending, by a round.
#[derive(Clone, Debug, Default, Stateful)]
pub(super) struct Observation {
    pub round: u32,
    pub changes: Vec<(usize, f64)>,
}

/// The vectors of all clients.
#[derive(Clone, Debug, Stateful)]
pub(super) struct Process {
    #[state(skip = "from the scenario")]
    dimension: usize,
    /// ν, the square of the noise.
    #[state(skip = "from the scenario")]
    noise: f64,
    /// One after the other.
    #[state(each)]
    vectors: Vec<f64>,
}

/// Covariances of candidates, as those that are known leave them.
#[derive(Clone, Debug)]
pub(super) struct Posterior<'a> {
    process: &'a Process,
    candidates: &'a [ClientId],
    shares: &'a [f64],
    /// `Σ_kk` of each.
    pub variances: Vec<f64>,
    /// `Σ_i share_i·Σ_ik` of each.
    pub covered: Vec<f64>,
    /// Of each known client its column over the root of its variance.
    columns: Vec<Vec<f64>>,
}

fn product(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

impl Process {
    /// Vectors of zeros.
    pub(super) fn new(clients: usize, dimension: usize, noise: f64) -> Self {
        Self { dimension, noise, vectors: vec![0.0; clients * dimension] }
    }

    pub(super) const fn dimension(&self) -> usize {
        self.dimension
    }

    /// Gives some clients vectors.
    pub(super) fn place(&mut self, clients: &[ClientId], mut number: impl FnMut() -> f64) {
        for client in clients {
            let from = client.index() * self.dimension;
            self.vectors[from..from + self.dimension].iter_mut().for_each(|place| *place = number());
        }
    }

    fn vector(&self, client: usize) -> &[f64] {
        &self.vectors[client * self.dimension..(client + 1) * self.dimension]
    }

    pub(super) fn variance(&self, client: ClientId) -> f64 {
        let vector = self.vector(client.index());
        product(vector, vector) + self.noise
    }

    /// Adds the slope of `−weight·ln N(observation)` by the vectors.
    fn add_slope(&self, observation: &Observation, weight: f64, slope: &mut [f64]) {
        let d = self.dimension;
        let mut matrix = vec![0.0; d * d];
        let mut sums = vec![0.0; d];
        for &(client, change) in &observation.changes {
            let vector = self.vector(client);
            for row in 0..d {
                sums[row] += vector[row] * change;
                for column in 0..d {
                    matrix[row * d + column] += vector[row] * vector[column];
                }
            }
        }
        (0..d).for_each(|at| matrix[at * d + at] += self.noise);
        let factor = cholesky(&matrix, d);
        let along = solve(&factor, d, &sums);
        for &(client, change) in &observation.changes {
            let vector = self.vector(client);
            let solved = solve(&factor, d, vector);
            // The client's number of Σ⁻¹y.
            let rest = (change - product(vector, &along)) / self.noise;
            let own = &mut slope[client * d..(client + 1) * d];
            for (at, sum) in own.iter_mut().enumerate() {
                *sum += weight * (solved[at] - along[at] * rest);
            }
        }
    }

    /// Fits the vectors to observations, `now` the last round.
    pub(super) fn fit(&mut self, fit: &Fit, observations: &VecDeque<Observation>, now: u32) {
        let (mut first, mut second) = (vec![0.0; self.vectors.len()], vec![0.0; self.vectors.len()]);
        let mut powers = (1.0, 1.0);
        for _ in 0..fit.iterations {
            let mut slope = vec![0.0; self.vectors.len()];
            for observation in observations {
                let age = now - observation.round;
                let weight = (0..age).fold(1.0, |weight, _| weight * fit.gamma);
                self.add_slope(observation, weight, &mut slope);
            }
            powers = (powers.0 * 0.9, powers.1 * 0.999);
            for (at, number) in self.vectors.iter_mut().enumerate() {
                first[at] = 0.9 * first[at] + (1.0 - 0.9) * slope[at];
                second[at] = 0.999 * second[at] + (1.0 - 0.999) * slope[at] * slope[at];
                let (mean, square) = (first[at] / (1.0 - powers.0), second[at] / (1.0 - powers.1));
                *number -= fit.rate * mean / (sqrt(square) + 1e-8);
            }
        }
    }

    /// Covariances of candidates of which nothing is known, with these shares of all.
    pub(super) fn posterior<'a>(&'a self, candidates: &'a [ClientId], shares: &'a [f64]) -> Posterior<'a> {
        let mut mean = vec![0.0; self.dimension];
        for (client, share) in candidates.iter().zip(shares) {
            let vector = self.vector(client.index());
            mean.iter_mut().zip(vector).for_each(|(sum, number)| *sum += share * number);
        }
        let covered =
            |(client, share): (&ClientId, &f64)| product(self.vector(client.index()), &mean) + self.noise * share;
        Posterior {
            process: self,
            candidates,
            shares,
            variances: candidates.iter().map(|&client| self.variance(client)).collect(),
            covered: candidates.iter().zip(shares).map(covered).collect(),
            columns: Vec::new(),
        }
    }
}

impl Posterior<'_> {
    /// Takes the loss of a candidate for known.
    pub(super) fn know(&mut self, place: usize) {
        let variance = self.variances[place];
        if variance <= 0.0 {
            return;
        }
        let own = self.process.vector(self.candidates[place].index());
        let root = sqrt(variance);
        let column: Vec<f64> = (0..self.candidates.len())
            .map(|other| {
                let noise = if other == place { self.process.noise } else { 0.0 };
                let prior = product(self.process.vector(self.candidates[other].index()), own) + noise;
                let taken: f64 = self.columns.iter().map(|column| column[other] * column[place]).sum();
                (prior - taken) / root
            })
            .collect();
        let share = product(self.shares, &column);
        for (other, number) in column.iter().enumerate() {
            self.variances[other] -= number * number;
            self.covered[other] -= share * number;
        }
        self.variances[place] = 0.0;
        self.columns.push(column);
    }
}

/// The lower factor of a positive matrix of `d` rows.
fn cholesky(matrix: &[f64], d: usize) -> Vec<f64> {
    let mut factor = vec![0.0; d * d];
    for row in 0..d {
        for column in 0..=row {
            let taken = product(&factor[row * d..row * d + column], &factor[column * d..column * d + column]);
            let left = matrix[row * d + column] - taken;
            factor[row * d + column] =
                if row == column { sqrt(left.max(f64::MIN_POSITIVE)) } else { left / factor[column * d + column] };
        }
    }
    factor
}

/// The solution of a system whose matrix has this factor.
fn solve(factor: &[f64], d: usize, right: &[f64]) -> Vec<f64> {
    let mut found = right.to_vec();
    for row in 0..d {
        let taken = product(&factor[row * d..row * d + row], &found[..row]);
        found[row] = (found[row] - taken) / factor[row * d + row];
    }
    for row in (0..d).rev() {
        let taken: f64 = (row + 1..d).map(|below| factor[below * d + row] * found[below]).sum();
        found[row] = (found[row] - taken) / factor[row * d + row];
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process() -> Process {
        let mut process = Process::new(3, 2, 0.25);
        let mut numbers = [1.0, 0.0, 1.0, 1.0, 0.0, 2.0].into_iter();
        process.place(&[0, 1, 2].map(ClientId), || numbers.next().unwrap());
        process
    }

    /// Vectors (1, 0), (1, 1) and (0, 2): Σ has 1.25, 2.25 and 4.25 on its diagonal, 1, 0 and 2 beside it. Shares of a
    /// half, a quarter and a quarter cover 0.875, 1.5625 and 1.5625. When 1 is known, 0 keeps 1.25 − 1/2.25, 2 keeps
    /// 4.25 − 4/2.25, and they have −2/2.25 in common.
    #[test]
    fn three_clients_by_hand() {
        let (process, clients, shares) = (process(), [0, 1, 2].map(ClientId), [0.5, 0.25, 0.25]);
        let mut posterior = process.posterior(&clients, &shares);
        assert_eq!(posterior.variances, [1.25, 2.25, 4.25]);
        assert_eq!(posterior.covered, [0.875, 1.5625, 1.5625]);
        posterior.know(1);
        let (left, right, common) = (1.25 - 1.0 / 2.25, 4.25 - 4.0 / 2.25, -2.0 / 2.25);
        let expected = [left, 0.0, right, 0.5 * left + 0.25 * common, 0.0, 0.5 * common + 0.25 * right];
        let found = [&posterior.variances[..], &posterior.covered].concat();
        assert!(found.iter().zip(expected).all(|(found, by_hand)| (found - by_hand).abs() < 1e-12), "{found:?}");
    }

    /// ½·ln det Σ + ½·yᵀΣ⁻¹y by Gaussian elimination.
    fn surprise(process: &Process, changes: &[(usize, f64)]) -> f64 {
        let count = changes.len();
        let mut rows: Vec<Vec<f64>> = changes
            .iter()
            .map(|&(one, change)| {
                let noise = |other: usize| if one == other { process.noise } else { 0.0 };
                let of =
                    |&(other, _): &(usize, f64)| product(process.vector(one), process.vector(other)) + noise(other);
                changes.iter().map(of).chain([change]).collect()
            })
            .collect();
        let (mut log, mut square) = (0.0, 0.0);
        for at in 0..count {
            log += rows[at][at].ln();
            square += rows[at][count] * rows[at][count] / rows[at][at];
            for below in at + 1..count {
                let factor = rows[below][at] / rows[at][at];
                let pivot = rows[at].clone();
                rows[below].iter_mut().zip(pivot).for_each(|(number, pivot)| *number -= factor * pivot);
            }
        }
        0.5 * (log + square)
    }

    #[test]
    fn slopes_are_differences() {
        let process = process();
        for changes in [vec![(0, 0.5), (1, -1.0), (2, 0.25)], vec![(0, 0.5), (2, 3.0)]] {
            let observation = Observation { round: 1, changes: changes.clone() };
            let mut slope = vec![0.0; 6];
            process.add_slope(&observation, 2.0, &mut slope);
            for (at, found) in slope.iter().enumerate() {
                let moved = |by: f64| {
                    let mut moved = process.clone();
                    moved.vectors[at] += by;
                    surprise(&moved, &changes)
                };
                let expected = 2.0 * (moved(1e-6) - moved(-1e-6)) / 2e-6;
                assert!((found - expected).abs() < 1e-6, "{at}: {found}, {expected}");
            }
        }
    }

    #[test]
    fn a_fit_makes_observations_likelier() {
        let mut process = process();
        let observations: VecDeque<Observation> = [(3, [(0, 1.0), (1, 1.1)]), (4, [(0, -0.8), (1, -0.9)])]
            .map(|(round, changes)| Observation { round, changes: changes.to_vec() })
            .into();
        let sum = |process: &Process| {
            let of = |(observation, weight): (&Observation, f64)| weight * surprise(process, &observation.changes);
            observations.iter().zip([0.5, 1.0]).map(of).sum::<f64>()
        };
        let before = sum(&process);
        process.fit(&Fit { gamma: 0.5, iterations: 50, rate: 0.01 }, &observations, 4);
        assert!(sum(&process) < before - 0.1, "{before}, {}", sum(&process));
        assert_eq!(process.vector(2), [0.0, 2.0], "a client that told nothing stays where it is");
    }
}
