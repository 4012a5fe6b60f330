//! Clustered sampling: one client from each of `m` distributions, which clients fill by size, or group by group.
//!
//! # Definition
//! In integers of `Σn`, `n` the candidates' numbers of examples: each candidate has `m·n_i` units, and each of the `m`
//! distributions holds `Σn`. From each distribution one client is drawn in proportion to its units there. The weight of
//! a client is how often it was drawn, over `m`, and it trains once.
//!
//! | `algorithm` | distributions |
//! |---|---|
//! | `size` | candidates, by falling number of examples, fill the distributions one after the other; what does not fit goes into the next one |
//! | `similarity` | by groups, as below |
//!
//! With `similarity`, a candidate first fills distributions alone while it has units for a whole one. The others are
//! grouped by what they have left: Ward's hierarchical clustering with the distances
//! ```text
//! d(i, j) = arccos(change_i · change_j/(‖change_i‖·‖change_j‖))     0 if one of them is unknown or 0
//! ```
//! of the last changes that were aggregated, and of its tree the largest subtrees with at most `Σn` units. The groups
//! with the most units begin a distribution each; the clients of the other groups, larger groups first, by ascending
//! id, fill what is left, from the first distribution on. So clients of which nothing is known are alike.
//!
//! A client with `m·n_i ≥ Σn` is drawn at least `⌊m·n_i/Σn⌋` times. Over draws the weight of each client is `n_i/Σn`.
//!
//! `[aggregation] weighting` is not used.
//!
//! # Inputs
//! Data sizes. `similarity`: changes of all trained parameters.
//!
//! # Explanation
//! With `[record] explain = true`: `distributions`, for each of them the units of each candidate; `drawn`, an id for
//! each distribution. `similarity`: `group` of each candidate, from 0, by falling units, `null` if it fills
//! distributions alone; `unknown`, ids of candidates without a known change.
//!
//! # Source
//! Y. Fraboni, R. Vidal, L. Kameni, M. Lorenzi, "Clustered Sampling: Low-Variance and Improved Representativity for
//! Clients Selection in Federated Learning", ICML 2021 (arXiv 2105.05883), Algorithms 1 and 2; the program that its
//! authors released (`clustering.py`) has the distance of a client of which nothing is known.
//!
//! # Deviations from the source
//! - Of equal sizes the smaller id comes first, which it leaves open. Where not all clients are available, the
//!   candidates alone fill the distributions.
//! - Algorithm 2 has nobody with more than a distribution; here such a client fills whole ones first.
//! - The program takes the rows of the matrix of distances for points, and clusters these by their Euclidean distances;
//!   here distances are those of the matrix, by the formula of Lance and Williams. It fills with the smallest of the
//!   other groups first, and with their clients in random order.
//!
//! # Cost
//! O(K log K + m log K) per round. `similarity`: the change of every client is kept, `4·K` bytes for each parameter,
//! and `8·K²` bytes of angles; `O(K·p)` for each new change of `p` parameters, and at least `O(K²)` for each selection.
//!
//! # Determinism
//! Stream (policy, server, turn): an index below `Σn` for each distribution, in their order; it points into the units
//! of its clients in the order in which they filled it. Of groups with as many units the one with the smaller first id
//! comes first; of pairs of groups that are as near, those with the smaller first ids are joined. Sums are added up by
//! ascending place.

mod ward;

use super::{
    BuildContext, Explanation, Feedback, Policy, PolicyRng, PolicySettings, Selection, SelectionRequest, ServerView,
    Wants,
};
use fedgenie_core::config::Complaint;
use fedgenie_core::failure::Failure;
use fedgenie_core::id::ClientId;
use fedgenie_core::math::float::{acos, sqrt};
use fedgenie_core::state::Stateful;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ward::Distances;

/// Bytes of angles up to which a scenario is accepted.
const MOST_BYTES: u64 = 8 << 30;

/// Parameters of `clustered-sampling`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// What clients are grouped by.
    #[serde(default)]
    pub algorithm: Algorithm,
}

/// What clients are grouped by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// Their numbers of examples.
    #[default]
    Size,
    /// The directions of their last changes.
    Similarity,
}

impl PolicySettings for Config {
    fn build(&self, context: &BuildContext<'_>) -> Result<Box<dyn Policy>, Complaint> {
        if context.data_sizes.iter().all(|&size| size == 0) {
            let message = "clustered-sampling draws clients by their examples, and nobody has any";
            return Err(Complaint::new("", message));
        }
        let bytes = 8 * (context.clients as u64).pow(2);
        if self.algorithm == Algorithm::Similarity && bytes > MOST_BYTES {
            let message = format!(
                "clustered-sampling by similarity compares all pairs of clients: their angles would take {} GiB, and {} \
                 GiB is the most; take algorithm = \"size\"",
                bytes >> 30,
                MOST_BYTES >> 30
            );
            return Err(Complaint::new("algorithm", message));
        }
        Ok(Box::new(ClusteredSampling {
            algorithm: self.algorithm,
            changes: vec![None; context.clients],
            angles: vec![Vec::new(); context.clients],
            filled: Vec::new(),
            drawn: Vec::new(),
            groups: Vec::new(),
        }))
    }
}

/// Clients in the order in which they fill a distribution, each with its units there.
type Filled = Vec<(ClientId, u64)>;

#[derive(Stateful)]
struct ClusteredSampling {
    #[state(skip = "from the scenario")]
    algorithm: Algorithm,
    /// The last change of each client, where it is known, finite and not 0.
    #[state(each)]
    changes: Vec<Option<Vec<f32>>>,
    /// Of each client's change to all others, where it has been worked out for its present one; otherwise empty.
    #[state(skip = "follows from the changes")]
    angles: Vec<Vec<f64>>,
    #[state(skip = "read before the next selection")]
    filled: Vec<Filled>,
    #[state(skip = "read before the next selection")]
    drawn: Vec<ClientId>,
    /// Number of each candidate's group; NaN for those that fill distributions alone.
    #[state(skip = "read before the next selection")]
    groups: Vec<f64>,
}

/// The angle between two changes.
fn angle(one: &[f32], other: &[f32]) -> f64 {
    let (mut product, mut squares) = (0.0, [0.0, 0.0]);
    for (one, other) in one.iter().zip(other) {
        let (one, other) = (f64::from(*one), f64::from(*other));
        product += one * other;
        squares[0] += one * one;
        squares[1] += other * other;
    }
    acos((product / sqrt(squares[0] * squares[1])).clamp(-1.0, 1.0))
}

/// Fills distributions that hold as many units each, one after the other.
struct Pouring {
    all: u64,
    /// The distribution at hand, and its room.
    at: usize,
    room: u64,
}

impl Pouring {
    /// Begins with a distribution.
    fn from(filled: &[Filled], all: u64, at: usize) -> Self {
        let mut pouring = Self { all, at, room: 0 };
        pouring.look(filled);
        pouring
    }

    /// Finds the room of the distribution at hand.
    fn look(&mut self, filled: &[Filled]) {
        let units = |filled: &Filled| filled.iter().map(|(_, units)| units).sum::<u64>();
        self.room = filled.get(self.at).map_or(0, |filled| self.all - units(filled));
    }

    fn pour(&mut self, filled: &mut [Filled], client: ClientId, mut units: u64) {
        while units > 0 {
            let part = units.min(self.room);
            if part > 0 {
                filled[self.at].push((client, part));
            }
            units -= part;
            self.room -= part;
            if self.room == 0 {
                self.at += 1;
                self.look(filled);
            }
        }
    }
}

impl ClusteredSampling {
    /// Works out the angles that are missing, of all known changes to each other.
    fn measure(&mut self) {
        let Self { changes, angles, .. } = self;
        for client in 0..changes.len() {
            let Some(change) = &changes[client] else { continue };
            if !angles[client].is_empty() {
                continue;
            }
            let to = |other: &Option<Vec<f32>>| other.as_ref().map_or(0.0, |other| angle(change, other));
            let row: Vec<f64> = changes.iter().map(to).collect();
            for (other, &apart) in row.iter().enumerate() {
                if let Some(place) = angles[other].get_mut(client) {
                    *place = apart;
                }
            }
            angles[client] = row;
        }
    }

    /// Distributions of candidates by falling size, each of which has so many units.
    fn fill_by_size(&mut self, candidates: &[ClientId], units: &[u64], all: u64) {
        let mut order: Vec<usize> = (0..candidates.len()).collect();
        order.sort_unstable_by_key(|&place| (std::cmp::Reverse(units[place]), place));
        let mut pouring = Pouring::from(&self.filled, all, 0);
        for place in order {
            pouring.pour(&mut self.filled, candidates[place], units[place]);
        }
    }

    /// Distributions of groups of candidates.
    fn fill_by_similarity(&mut self, candidates: &[ClientId], units: &[u64], all: u64) {
        self.measure();
        self.groups = vec![f64::NAN; candidates.len()];
        let mut at = 0;
        for (client, units) in candidates.iter().zip(units) {
            for _ in 0..units / all {
                self.filled[at].push((*client, all));
                at += 1;
            }
        }
        let left: Vec<usize> = (0..candidates.len()).filter(|&place| !units[place].is_multiple_of(all)).collect();
        let weights: Vec<u64> = left.iter().map(|&place| units[place] % all).collect();
        let angle = |one: usize, other: usize| {
            let [one, other] = [one, other].map(|place| candidates[left[place]].index());
            if self.changes[other].is_some() { self.angles[one].get(other).copied().unwrap_or(0.0) } else { 0.0 }
        };
        let found = ward::groups(Distances::of(left.len(), angle), &weights, all);
        let weight = |group: &Vec<usize>| group.iter().map(|&place| weights[place]).sum::<u64>();
        let mut groups: Vec<(u64, Vec<usize>)> = found.into_iter().map(|group| (weight(&group), group)).collect();
        groups.sort_by(|one, other| other.0.cmp(&one.0).then(one.1.cmp(&other.1)));
        for ((_, group), own) in groups.iter().zip(&mut self.filled[at..]) {
            own.extend(group.iter().map(|&place| (candidates[left[place]], weights[place])));
        }
        let own = self.filled.len() - at;
        let mut pouring = Pouring::from(&self.filled, all, at);
        for (number, (_, group)) in groups.iter().enumerate() {
            for &place in group {
                let client = candidates[left[place]];
                self.groups[left[place]] = number as f64;
                if number >= own {
                    pouring.pour(&mut self.filled, client, weights[place]);
                }
            }
        }
    }

    /// The client to which a unit of a distribution belongs.
    fn owner(filled: &Filled, unit: u64) -> ClientId {
        let mut end = 0;
        let found = filled.iter().find(|(_, units)| {
            end += units;
            unit < end
        });
        found.expect("a distribution is full").0
    }
}

impl Policy for ClusteredSampling {
    fn wants(&self) -> Wants {
        Wants { change: self.algorithm == Algorithm::Similarity, ..Wants::default() }
    }

    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        view: &ServerView<'_>,
        rng: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        let candidates = ask.available.list();
        let (cohort, _) = ask.sizes(candidates);
        let sizes: Vec<u64> = candidates.iter().map(|client| u64::from(view.data_sizes[client.index()])).collect();
        let all: u64 = sizes.iter().sum();
        let units: Vec<u64> = sizes.iter().map(|size| cohort as u64 * size).collect();
        self.filled = vec![Vec::new(); cohort];
        self.groups = vec![f64::NAN; candidates.len()];
        self.drawn.clear();
        if all == 0 {
            // Those who are there have no examples: as good as each other, and without weight.
            self.drawn.extend(&candidates[..cohort]);
        } else {
            match self.algorithm {
                Algorithm::Size => self.fill_by_size(candidates, &units, all),
                Algorithm::Similarity => self.fill_by_similarity(candidates, &units, all),
            }
            self.drawn.extend(self.filled.iter().map(|filled| Self::owner(filled, rng.policy.below(all))));
        }
        selection.extend(&self.drawn);
        selection.weights.resize(cohort, 1.0 / cohort as f64);
        Ok(())
    }

    fn observe(&mut self, feedback: &Feedback<'_>) -> Result<(), Failure> {
        if let (Feedback::Trained(update), Algorithm::Similarity) = (feedback, self.algorithm) {
            let change = update.change.expect("wanted statistics of updates are told");
            let is_sound = change.iter().all(|number| number.is_finite()) && change.iter().any(|number| *number != 0.0);
            self.changes[update.client.index()] = is_sound.then(|| change.to_vec());
            self.angles[update.client.index()].clear();
        }
        Ok(())
    }

    fn explain(
        &self,
        ask: &SelectionRequest<'_>,
        _: &ServerView<'_>,
        _: &[ClientId],
        explanation: &mut Explanation,
    ) -> Result<(), Failure> {
        let candidates = ask.available.list();
        let mut distributions = vec![vec![0.0; candidates.len()]; self.drawn.len()];
        for (distribution, filled) in distributions.iter_mut().zip(&self.filled) {
            for (client, units) in filled {
                let place = candidates.binary_search(client).expect("those who fill are candidates");
                distribution[place] += *units as f64;
            }
        }
        explanation.clients(candidates.iter().copied());
        explanation.table("distributions", distributions);
        explanation.ids("drawn", self.drawn.iter().copied());
        if self.algorithm == Algorithm::Similarity {
            explanation.array("group", self.groups.iter().copied());
            let unknown = candidates.iter().copied().filter(|client| self.changes[client.index()].is_none());
            explanation.ids("unknown", unknown);
        }
        Ok(())
    }

    fn explain_after(&self, clients: &[ClientId], explanation: &mut Explanation) -> Result<(), Failure> {
        explanation.clients(clients.iter().copied());
        Ok(())
    }
}
