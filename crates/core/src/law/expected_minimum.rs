//! Expected speed of the slowest client of a set, for all sets of one population.
//!
//! # Definition
//! `E min_{k ∈ S} τ_min/τ_k = ∫₀^∞ Π_{k ∈ S} P(τ_k ≤ τ_min/v) dv`, with the effective latencies τ_k independent. The
//! integral is a weighted sum over a mesh shared by all sets, so the cdfs are tabulated once.
//!
//! ```text
//!   v:  0 ─┬──┬──┬───────┬───────────┬─ greatest speed     panels of 16 Gauss–Legendre points, split at every
//!          │  │  │       │           │                     breakpoint of a cdf and where a panel is not yet exact
//!   F₁  [ 1.0 … 0.98 …  0.7 …       0.0 ]                  one row per distinct client
//!   F₂  [ 1.0 … 1.00 …  0.9 …       0.2 ]
//! ```
//!
//! # Inputs
//! The clients' [`JobLatency`](super::JobLatency)s or [`LossyLatency`]s, and their mean speeds, against which the mesh
//! is checked.
//!
//! # Source
//! The identity is `E Y = ∫ P(Y ≥ v) dv` for the smallest speed Y; the mesh is adaptive Gauss–Legendre quadrature.
//!
//! # Cost
//! Building: 48 evaluations per panel and distinct client. [`ExpectedMinimum::of`]: one multiplication per node and
//! member of the set; a mesh has some hundreds of nodes for smooth laws. At most 2^26 values (512 MiB) are stored.
//!
//! # Determinism
//! No random number, and sums in a fixed order; a set's value depends on the order of its members by roundings only.
//!
//! # Example
//! ```
//! use fedgenie_core::law::{AnyLaw, Constant, ExpectedMinimum, JobLatency, Uniform};
//! let link = AnyLaw::from(Constant::new(0.05)?);
//! let compute = AnyLaw::from(Uniform::new(0.1, 0.9)?);
//! let job = JobLatency { phases: [&link, &compute, &link], hazards: [0.0; 3], cut: None };
//! let clients = [job; 20];
//! let speeds = clients.map(|client| client.mean_speed(0.2));
//! let minima = ExpectedMinimum::new(0.2, &clients, &speeds)?;
//! assert!((minima.of(&[7]) - speeds[7]).abs() < 1e-9);
//! assert!(minima.of(&[0, 1, 2]) < minima.of(&[0, 1]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use super::LossyLatency;
use super::latency::Parts;
use crate::math::quadrature::{ABSCISSAS, POINTS, WEIGHTS};

/// The most values a table may hold.
const LIMIT: usize = 1 << 26;

/// The first tolerance of a panel, relative to a client's mean speed; tightened if the sum is not exact.
const PANEL_TOLERANCE: f64 = 1e-11;

/// The accuracy of every single client's mean speed.
const ACCURACY: f64 = 1e-9;

const BLOCK: usize = 64;

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct ExpectedMinimum {
    weights: Vec<f64>,
    /// For each distinct client, its cdf at every node.
    rows: Vec<Vec<f64>>,
    row_of: Vec<usize>,
}

/// Why there is no table. Nothing was kept; means over draws give the same numbers.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ExpectedMinimumError {
    /// The table would not fit.
    #[error("the expected minimum needs more than {limit} stored values for {clients} distinct clients")]
    TooLarge {
        /// The number of distinct clients.
        clients: usize,
        /// The most values a table may hold.
        limit: usize,
    },
    /// A client's mean speed is infinite or not a number.
    #[error("client {client} has the mean speed {speed}; it must be a positive finite number")]
    BadSpeed {
        /// The index of the client.
        client: usize,
        /// Its mean speed.
        speed: f64,
    },
    /// The mesh does not give a client's known mean speed.
    #[error("client {client}: the mesh gives the mean speed {found} instead of {expected}")]
    NotReproduced {
        /// The index of the client.
        client: usize,
        /// The value of the mesh.
        found: f64,
        /// The known mean speed.
        expected: f64,
    },
}

/// A stretch of the mesh: of speeds v with x = τ_min/v, or of latencies y with x = τ_min·y and `dv = dy/y²`.
#[derive(Clone, Copy)]
struct Panel {
    low: f64,
    high: f64,
    by_speed: bool,
    depth: u32,
}

impl Panel {
    /// Latency and weight of each node.
    fn nodes(&self, tau_min: f64) -> [(f64, f64); POINTS] {
        let (middle, half) = (0.5 * (self.low + self.high), 0.5 * (self.high - self.low));
        std::array::from_fn(|k| {
            let at = middle + half * ABSCISSAS[k];
            let weight = half * WEIGHTS[k];
            if self.by_speed { (tau_min / at, weight) } else { (tau_min * at, weight / (at * at)) }
        })
    }

    fn halves(&self) -> Option<[Self; 2]> {
        let middle = 0.5 * (self.low + self.high);
        let splits = self.low < middle && middle < self.high && self.depth < 60;
        let depth = self.depth + 1;
        splits.then_some([Self { high: middle, depth, ..*self }, Self { low: middle, depth, ..*self }])
    }
}

/// The cdf of every distinct client at the nodes of one panel, and the integrals that must not change when it is split.
struct Tabulated {
    weights: [f64; POINTS],
    values: Vec<[f64; POINTS]>,
}

impl Tabulated {
    fn new(panel: &Panel, tau_min: f64, clients: &[Parts<'_>]) -> Self {
        let nodes = panel.nodes(tau_min);
        let values = clients.iter().map(|client| nodes.map(|(x, _)| client.effective_cdf(x))).collect();
        Self { weights: nodes.map(|(_, weight)| weight), values }
    }

    /// For each client its own integral and those of two powers, which stand for sets of like clients; and last that
    /// of the product of all clients.
    fn integrals(&self) -> Vec<f64> {
        let mut integrals = Vec::with_capacity(3 * self.values.len() + 1);
        let mut product = self.weights;
        for row in &self.values {
            let mut sums = [0.0; 3];
            for (k, value) in row.iter().enumerate() {
                let fourth = value * value * value * value;
                let sixteenth = fourth * fourth * fourth * fourth;
                for (sum, power) in sums.iter_mut().zip([*value, fourth, sixteenth]) {
                    *sum += self.weights[k] * power;
                }
                product[k] *= value;
            }
            integrals.extend(sums);
        }
        integrals.push(product.iter().sum());
        integrals
    }
}

impl ExpectedMinimum {
    /// Tabulates the cdfs of the clients' effective latencies.
    ///
    /// `known_mean_speeds` are those of [`LossyLatency::mean_speed`], in the order of the clients.
    ///
    /// # Errors
    /// A table that would be too large, a mean speed that is not positive and finite, or one that the mesh does not
    /// reproduce to 1e-9.
    ///
    /// # Panics
    /// If the numbers of clients and of speeds differ.
    pub fn new<'a, L: Copy + Into<LossyLatency<'a>>>(
        tau_min: f64,
        clients: &[L],
        known_mean_speeds: &[f64],
    ) -> Result<Self, ExpectedMinimumError> {
        let clients: Vec<LossyLatency<'a>> = clients.iter().map(|&client| client.into()).collect();
        Self::tabulate(tau_min, &clients, known_mean_speeds)
    }

    fn tabulate(
        tau_min: f64,
        clients: &[LossyLatency<'_>],
        known_mean_speeds: &[f64],
    ) -> Result<Self, ExpectedMinimumError> {
        assert_eq!(clients.len(), known_mean_speeds.len(), "each client has one known mean speed");
        for (client, speed) in known_mean_speeds.iter().copied().enumerate() {
            if !(speed > 0.0 && speed < f64::INFINITY) {
                return Err(ExpectedMinimumError::BadSpeed { client, speed });
            }
        }
        let mut first_of_row: Vec<usize> = Vec::new();
        let mut row_of = Vec::with_capacity(clients.len());
        for (index, client) in clients.iter().enumerate() {
            let row = first_of_row.iter().position(|first| clients[*first] == *client).unwrap_or_else(|| {
                first_of_row.push(index);
                first_of_row.len() - 1
            });
            row_of.push(row);
        }
        let distinct: Vec<_> = first_of_row.iter().map(|first| &clients[*first]).collect();
        let prepared: Vec<_> = distinct.iter().map(|client| client.tabulated()).collect();
        let speeds: Vec<_> = first_of_row.iter().map(|first| known_mean_speeds[*first]).collect();
        let start = first_panels(tau_min, &distinct);
        let mut tolerance = PANEL_TOLERANCE;
        loop {
            let (weights, rows) = mesh(tau_min, &prepared, &speeds, &start, tolerance)?;
            let table = Self { weights, rows, row_of: row_of.clone() };
            let found = |client: &usize| table.of(&[*client]);
            let wrong = first_of_row
                .iter()
                .find(|client| (found(client) / known_mean_speeds[**client] - 1.0).abs() > ACCURACY)
                .copied();
            match wrong {
                None => return Ok(table),
                Some(_) if tolerance > 1e-14 => tolerance *= 0.03,
                Some(client) => {
                    let (found, expected) = (found(&client), known_mean_speeds[client]);
                    return Err(ExpectedMinimumError::NotReproduced { client, found, expected });
                }
            }
        }
    }

    /// E min over the set of τ_min/τ_eff; the set holds indices into the clients. Zero for the empty set.
    ///
    /// # Panics
    /// If an index is out of range.
    pub fn of(&self, set: &[usize]) -> f64 {
        if set.is_empty() {
            return 0.0;
        }
        let mut sum = 0.0;
        for (block, weights) in self.weights.chunks(BLOCK).enumerate() {
            let mut products = [0.0; BLOCK];
            let products = &mut products[..weights.len()];
            products.copy_from_slice(weights);
            for client in set {
                let row = &self.rows[self.row_of[*client]][block * BLOCK..];
                for (product, value) in products.iter_mut().zip(row) {
                    *product *= value;
                }
            }
            sum += products.iter().sum::<f64>();
        }
        sum
    }

    /// The number of nodes of the mesh.
    pub fn nodes(&self) -> usize {
        self.weights.len()
    }
}

/// Panels between the breakpoints of all clients, the slowest speeds first.
fn first_panels(tau_min: f64, clients: &[&LossyLatency<'_>]) -> Vec<Panel> {
    let mut latencies = Vec::new();
    for client in clients {
        client.job.breakpoints(&mut latencies);
    }
    let fastest = latencies.iter().copied().fold(f64::INFINITY, f64::min);
    let turn = if fastest > 0.0 { fastest } else { tau_min };
    let between = |edges: Vec<f64>, by_speed| {
        let mut edges = edges;
        edges.sort_by(f64::total_cmp);
        edges.dedup_by(|later, earlier| *later - *earlier < 1e-14 * later.max(1.0));
        let panel = move |edge: &[f64]| Panel { low: edge[0], high: edge[1], by_speed, depth: 0 };
        edges.windows(2).map(panel).collect::<Vec<_>>()
    };
    let slow = latencies.iter().filter(|x| **x > turn).map(|x| tau_min / x);
    let mut panels = between(slow.chain([0.0, tau_min / turn]).collect(), true);
    if fastest <= 0.0 {
        let fast = latencies.iter().filter(|x| **x < turn).map(|x| x / tau_min);
        panels.extend(between(fast.chain([0.0, turn / tau_min]).collect(), false));
    }
    panels
}

/// Bisects panels until splitting one changes no client's integral.
fn mesh(
    tau_min: f64,
    clients: &[Parts<'_>],
    speeds: &[f64],
    start: &[Panel],
    tolerance: f64,
) -> Result<(Vec<f64>, Vec<Vec<f64>>), ExpectedMinimumError> {
    let slowest = speeds.iter().copied().fold(f64::INFINITY, f64::min);
    let allowed = |k: usize| tolerance * speeds.get(k / 3).copied().unwrap_or(slowest);
    let most_nodes = LIMIT / clients.len().max(1);
    let too_large = ExpectedMinimumError::TooLarge { clients: clients.len(), limit: LIMIT };
    let (mut weights, mut rows) = (Vec::new(), vec![Vec::new(); clients.len()]);
    let mut keep = |table: &Tabulated| {
        weights.extend(table.weights);
        for (row, values) in rows.iter_mut().zip(&table.values) {
            row.extend(values);
        }
        weights.len()
    };
    if start.len() > most_nodes / POINTS {
        return Err(too_large);
    }
    let mut pending: Vec<(Panel, Option<Tabulated>)> = start.iter().rev().map(|panel| (*panel, None)).collect();
    while let Some((panel, table)) = pending.pop() {
        let whole = table.unwrap_or_else(|| Tabulated::new(&panel, tau_min, clients));
        let Some(halves) = panel.halves() else {
            keep(&whole);
            continue;
        };
        let [left, right] = halves.map(|half| Tabulated::new(&half, tau_min, clients));
        let parts = left.integrals().into_iter().zip(right.integrals()).map(|(left, right)| left + right);
        let settled =
            whole.integrals().into_iter().zip(parts).enumerate().all(|(k, (one, two))| (one - two).abs() <= allowed(k));
        if !settled {
            let [low, high] = halves;
            pending.push((high, Some(right)));
            pending.push((low, Some(left)));
        } else if keep(&whole) > most_nodes {
            return Err(too_large);
        }
        if pending.len() > most_nodes / POINTS + 100 {
            return Err(too_large);
        }
    }
    Ok((weights, rows))
}

#[cfg(test)]
mod tests;
