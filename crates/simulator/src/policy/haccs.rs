//! HACCS: clusters of clients with similar labels are drawn by their losses and speed, and give their fastest clients.
//!
//! # Definition
//! Before the first selection the server's clients are grouped by the shares of classes (or categories) in their
//! training examples: two clients are in one cluster if a chain of clients joins them of which each is within
//! `distance` of the next; or by k-means, where `clusters` says how many. Clusters are numbered by their smallest ids.
//!
//! Of each cluster with candidates, `τ` is the mean of its candidates' declared latencies and `ℓ` the mean of their
//! squared losses. Its weight is
//! ```text
//! theta = rho·(1 − τ/τ_max) + (1 − rho)·ℓ/Σℓ
//! ```
//! with `τ_max` the largest `τ` and `Σℓ` over those clusters. `m` times a cluster is drawn, with replacement, in
//! proportion to `theta`, and its fastest candidate by declared latency who is not taken yet is selected, of equal ones
//! the smaller id. A cluster of which nobody is left is drawn no more; where all that are left have weight 0, they are
//! equally likely.
//!
//! `draws = "quasi-random"`: first each cluster, by number, gives `⌊m·theta/Σtheta⌋` clients or as many as it has, and
//! the places that are left are drawn.
//!
//! A client's loss is that of its last update that arrived, or with `losses = "fresh"` that of the model which is about
//! to be sent, on its examples, for which all candidates are asked. An unknown loss counts as the largest of a
//! candidate that is known; if none is, all are equal.
//!
//! # Inputs
//! Numbers of examples of each class and latencies, which clients declare; losses.
//!
//! # Explanation
//! With `[record] explain = true`: `cluster` of each candidate, from 0; of the whole decision `theta` of each cluster
//! (0 where it has no candidate) and `drawn`, the clusters of the selected clients, in their order.
//!
//! # Source
//! J. Wolfrath, N. Sreekumar, D. Kumar, Y. Wang, A. Chandra, "HACCS: Heterogeneity-Aware Clustered Client Selection for
//! Accelerated Federated Learning", IPDPS 2022; the program that its authors released, `scheduler.py` (`rho = 0.5`, the
//! weights, `"quasi-random"`) and `pyScheduler.py`, `cluster.py` (OPTICS with two neighbours, cut at a Euclidean
//! distance of 0.25, which joins as above).
//!
//! # Deviations from the source
//! - The program divides a cluster's sums over its available clients by the number of all; here means are over
//!   candidates, so that a cluster does not look faster and better because many of its clients are away.
//! - The program's loss is the error rate of every client's test data, in every round and without a price. Here it is
//!   the task's loss, of updates, or fresh and charged.
//! - Declared shares of classes have no noise. Histograms of features for each class are left out.
//!
//! # Cost
//! O(K log K) per round, with `"fresh"` an inference pass of every candidate. Once, `distance`: O(K²·classes), and so at
//! most 100,000 clients; `clusters`: O(K·clusters·classes) a step.
//!
//! # Determinism
//! Stream (policy, server, turn): the draws of k-means before the first selection, then a uniform for each cluster
//! that is drawn.

use super::k_means::k_means;
use super::label_shares::label_shares;
use super::{
    BuildContext, Explanation, Feedback, Policy, PolicyRng, PolicySettings, Probe, Selection, SelectionRequest,
    ServerView, whole,
};
use fedgenie_core::config::{Complaint, check};
use fedgenie_core::failure::Failure;
use fedgenie_core::id::ClientId;
use fedgenie_core::rng::StreamRng;
use fedgenie_core::state::Stateful;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most clients of which all pairs are compared: a minute's work.
const MOST_COMPARED: usize = 100_000;

/// The distance of the authors' program.
const DISTANCE: f64 = 0.25;

/// Parameters of `haccs`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Largest Euclidean distance between the shares of classes of clients that are joined, not negative; 0.25 where
    /// `clusters` is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distance: Option<f64>,
    /// Number of clusters by k-means, at least 1 and at most as many as clients, in the place of `distance`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clusters: Option<usize>,
    /// Weight of speed against loss, between 0 and 1.
    #[serde(default = "default_rho")]
    pub rho: f64,
    /// Which losses count.
    #[serde(default)]
    pub losses: Losses,
    /// How clusters are drawn.
    #[serde(default)]
    pub draws: Draws,
}

const fn default_rho() -> f64 {
    0.5
}

impl Default for Config {
    fn default() -> Self {
        let (losses, draws) = (Losses::default(), Draws::default());
        Self { distance: None, clusters: None, rho: default_rho(), losses, draws }
    }
}

/// Which losses count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Losses {
    /// Of each client's last update that arrived.
    #[default]
    LastKnown,
    /// Of the model that is about to be sent, for which all candidates are asked.
    Fresh,
}

/// How clusters are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Draws {
    /// All of them at random.
    #[default]
    Random,
    /// Each gets the whole part of its share, and chance fills the rest.
    QuasiRandom,
}

impl PolicySettings for Config {
    fn build(&self, context: &BuildContext<'_>) -> Result<Box<dyn Policy>, Complaint> {
        if self.distance.is_some() && self.clusters.is_some() {
            let message = "stands beside clusters; give the largest distance within a cluster, or how many clusters \
                           there are";
            return Err(Complaint::new("distance", message));
        }
        if let Some(found) = self.clusters.filter(|count| !(1..=context.among).contains(count)) {
            let message = format!("found {found}; expected between 1 and the number of clients ({})", context.among);
            return Err(Complaint::new("clusters", message));
        }
        if self.clusters.is_none() && context.among > MOST_COMPARED {
            let message = format!(
                "haccs compares all pairs of clients, and {} clients are too many; expected at most {MOST_COMPARED}, or \
                 clusters, their number by k-means",
                context.among
            );
            return Err(Complaint::new("", message));
        }
        let distance = check("distance", self.distance.unwrap_or(DISTANCE), 0.0.., "a number of at least 0")?;
        let declared = |client| context.devices.declared(ClientId::from_index(client)).seconds();
        Ok(Box::new(Haccs {
            grouping: self.clusters.map_or(Grouping::Distance(distance), Grouping::Clusters),
            rho: check("rho", self.rho, 0.0..=1.0, "a number between 0 and 1")?,
            losses: self.losses,
            draws: self.draws,
            shares: label_shares(context, "haccs")?,
            declared: (0..context.clients).map(declared).collect(),
            cluster: Vec::new(),
            last_known: vec![f64::NAN; context.clients],
            made: Decision::default(),
        }))
    }
}

/// How clients are grouped.
#[derive(Clone, Copy, Debug)]
enum Grouping {
    Distance(f64),
    Clusters(usize),
}

#[derive(Stateful)]
#[state(check = Self::is_sound)]
struct Haccs {
    #[state(skip = "from the scenario")]
    grouping: Grouping,
    #[state(skip = "from the scenario")]
    rho: f64,
    #[state(skip = "from the scenario")]
    losses: Losses,
    #[state(skip = "from the scenario")]
    draws: Draws,
    /// Of the classes in each client's examples.
    #[state(skip = "from the world")]
    shares: Vec<Vec<f64>>,
    /// Seconds of a job that each client declares.
    #[state(skip = "from the world")]
    declared: Vec<f64>,
    /// The cluster of each client of the server; empty before the first selection.
    cluster: Vec<u32>,
    /// NaN where no update arrived.
    #[state(each)]
    last_known: Vec<f64>,
    #[state(skip = "read before the next selection")]
    made: Decision,
}

/// The numbers behind a selection.
#[derive(Clone, Debug, Default)]
struct Decision {
    theta: Vec<f64>,
    drawn: Vec<usize>,
}

/// The cluster of each point, by chains of points within a distance; clusters are numbered by their first points.
fn joined(points: &[&[f64]], distance: f64) -> Vec<u32> {
    let is_near = |one: &[f64], other: &[f64]| {
        let squared: f64 = one.iter().zip(other).map(|(one, other)| (one - other) * (one - other)).sum();
        squared.sqrt() <= distance
    };
    let mut cluster = vec![u32::MAX; points.len()];
    let mut apart: Vec<usize> = (0..points.len()).collect();
    let mut number = 0;
    while let Some(&first) = apart.first() {
        let mut reached = vec![first];
        apart.remove(0);
        while let Some(place) = reached.pop() {
            cluster[place] = number;
            apart.retain(|&other| {
                let is_new = is_near(points[place], points[other]);
                if is_new {
                    reached.push(other);
                }
                !is_new
            });
        }
        number += 1;
    }
    cluster
}

/// The same clusters, numbered by their first points.
fn in_order(clusters: Vec<u32>) -> Vec<u32> {
    let mut first: Vec<u32> = Vec::new();
    let number = |cluster: u32| {
        let place = first.iter().position(|known| *known == cluster).unwrap_or_else(|| {
            first.push(cluster);
            first.len() - 1
        });
        place as u32
    };
    clusters.into_iter().map(number).collect()
}

/// The weight of each cluster, by the mean latency and the mean squared loss of its candidates; 0 without candidates.
fn weights(of_cluster: &[Vec<(f64, f64)>], rho: f64) -> Vec<f64> {
    let mean = |values: &[(f64, f64)], part: fn(&(f64, f64)) -> f64| {
        if values.is_empty() { 0.0 } else { values.iter().map(part).sum::<f64>() / values.len() as f64 }
    };
    let latencies: Vec<f64> = of_cluster.iter().map(|values| mean(values, |value| value.0)).collect();
    let losses: Vec<f64> = of_cluster.iter().map(|values| mean(values, |value| value.1 * value.1)).collect();
    let slowest = latencies.iter().copied().fold(0.0, f64::max);
    let all: f64 = losses.iter().sum();
    let there = of_cluster.iter().filter(|values| !values.is_empty()).count();
    let weight = |cluster: usize| {
        let speed = if slowest > 0.0 { 1.0 - latencies[cluster] / slowest } else { 0.0 };
        let loss = if all > 0.0 { losses[cluster] / all } else { 1.0 / there as f64 };
        if of_cluster[cluster].is_empty() { 0.0 } else { rho * speed + (1.0 - rho) * loss }
    };
    (0..of_cluster.len()).map(weight).collect()
}

/// A cluster of those that are open, in proportion to its weight.
fn draw(theta: &[f64], is_open: impl Fn(usize) -> bool, rng: &mut StreamRng) -> Option<usize> {
    let open: Vec<usize> = (0..theta.len()).filter(|&cluster| is_open(cluster)).collect();
    let all: f64 = open.iter().map(|&cluster| theta[cluster]).sum();
    let weight = |cluster: usize| if all > 0.0 { theta[cluster] } else { 1.0 };
    let mut left = rng.uniform() * if all > 0.0 { all } else { open.len() as f64 };
    let passed = open.iter().copied().find(|&cluster| {
        left -= weight(cluster);
        left < 0.0
    });
    // Rounding may leave a little after the last.
    passed.or_else(|| open.iter().copied().rfind(|&cluster| weight(cluster) > 0.0))
}

impl Haccs {
    /// Whether each client has a loaded cluster, or none has.
    fn is_sound(&self) -> bool {
        [0, self.shares.len()].contains(&self.cluster.len())
            && self.cluster.iter().all(|&cluster| (cluster as usize) < self.shares.len())
    }

    /// Groups the clients of a server, when they are first seen.
    fn group(&mut self, scope: &[ClientId], rng: &mut StreamRng) {
        if !self.cluster.is_empty() {
            return;
        }
        let points: Vec<&[f64]> = scope.iter().map(|client| &*self.shares[client.index()]).collect();
        let clusters = match self.grouping {
            Grouping::Distance(distance) => joined(&points, distance),
            Grouping::Clusters(count) => {
                let width = points.first().map_or(0, |point| point.len());
                in_order(k_means(&points.concat(), width, count, rng))
            }
        };
        self.cluster = vec![0; self.shares.len()];
        scope.iter().zip(clusters).for_each(|(client, cluster)| self.cluster[client.index()] = cluster);
    }

    /// The loss of each candidate, over the largest of them, whose square might be infinite.
    fn losses(&self, candidates: &[ClientId], view: &ServerView<'_>) -> Vec<f64> {
        let of = |client: &ClientId| match self.losses {
            Losses::LastKnown => self.last_known[client.index()],
            Losses::Fresh => {
                let place = view.probed.binary_search_by_key(client, |(client, _)| *client);
                place.map_or(f64::NAN, |place| view.probed[place].1)
            }
        };
        let losses: Vec<f64> = candidates.iter().map(of).collect();
        let largest = losses.iter().copied().filter(|loss| loss.is_finite()).map(f64::abs).fold(0.0, f64::max);
        let over = |loss: f64| match loss.is_finite() {
            true if largest > 0.0 => loss / largest,
            true => 0.0,
            false => 1.0,
        };
        losses.into_iter().map(over).collect()
    }
}

impl Policy for Haccs {
    fn reads_declared_data(&self) -> bool {
        true
    }

    fn needs_losses(&self) -> bool {
        true
    }

    fn probes(&self) -> bool {
        self.losses == Losses::Fresh
    }

    fn probe(&mut self, ask: &SelectionRequest<'_>, _: &ServerView<'_>, _: &mut StreamRng) -> Result<Probe, Failure> {
        Ok(match self.losses {
            Losses::LastKnown => Probe::None,
            Losses::Fresh => Probe::Losses(ask.available.list().to_vec()),
        })
    }

    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        view: &ServerView<'_>,
        rng: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        self.group(ask.available.scope(), rng.policy);
        let candidates = ask.available.list();
        let losses = self.losses(candidates, view);
        let clusters = self.cluster.iter().max().map_or(0, |last| *last as usize + 1);
        let mut values = vec![Vec::new(); clusters];
        // Candidates of each cluster, the fastest last.
        let mut left: Vec<Vec<ClientId>> = vec![Vec::new(); clusters];
        for (client, loss) in candidates.iter().zip(losses) {
            let cluster = self.cluster[client.index()] as usize;
            values[cluster].push((self.declared[client.index()], loss));
            left[cluster].push(*client);
        }
        for members in &mut left {
            let latency = |client: &ClientId| self.declared[client.index()];
            members.sort_unstable_by(|one, other| latency(other).total_cmp(&latency(one)).then(other.cmp(one)));
        }
        let theta = weights(&values, self.rho);
        let (cohort, _) = ask.sizes(candidates);
        let mut drawn = Vec::new();
        let mut take = |cluster: usize, left: &mut [Vec<ClientId>]| {
            let client = left[cluster].pop().expect("somebody of it is left");
            drawn.push(cluster);
            selection.push(client);
        };
        let all: f64 = theta.iter().sum();
        if self.draws == Draws::QuasiRandom && all > 0.0 {
            for (cluster, weight) in theta.iter().enumerate() {
                let sure = whole(weight / all * cohort as f64);
                (0..sure.min(left[cluster].len())).for_each(|_| take(cluster, &mut left));
            }
        }
        let remaining: usize = left.iter().map(Vec::len).sum();
        for _ in candidates.len() - remaining..cohort {
            let cluster = draw(&theta, |cluster| !left[cluster].is_empty(), rng.policy);
            let Some(cluster) = cluster else { break };
            take(cluster, &mut left);
        }
        self.made = Decision { theta, drawn };
        Ok(())
    }

    fn observe(&mut self, feedback: &Feedback<'_>) -> Result<(), Failure> {
        if let Feedback::Trained(update) = feedback
            && update.loss.is_finite()
        {
            self.last_known[update.client.index()] = update.loss;
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
        explanation.clients(candidates.iter().copied());
        explanation.array("cluster", candidates.iter().map(|client| f64::from(self.cluster[client.index()])));
        explanation.array("theta", self.made.theta.iter().copied());
        explanation.array("drawn", self.made.drawn.iter().map(|&cluster| cluster as f64));
        Ok(())
    }

    fn explain_after(&self, clients: &[ClientId], explanation: &mut Explanation) -> Result<(), Failure> {
        explanation.clients(clients.iter().copied());
        explanation.array("loss", clients.iter().map(|client| self.last_known[client.index()]));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedgenie_core::rng::{Purpose, Streams};

    /// 0, 0.2 and 0.4 are a chain of steps of 0.2; 0.7 is alone, and 1.1 and 1.3 are a chain again.
    #[test]
    fn chains_by_hand() {
        let points = [[0.4], [0.7], [0.0], [1.3], [0.2], [1.1]];
        let points: Vec<&[f64]> = points.iter().map(|point| &point[..]).collect();
        assert_eq!(joined(&points, 0.21), [0, 1, 0, 2, 0, 2]);
        assert_eq!(joined(&points, 0.19), [0, 1, 2, 3, 4, 5]);
        assert_eq!(joined(&points, 0.5), [0; 6]);
        assert_eq!(in_order(vec![4, 4, 0, 7, 0]), [0, 0, 1, 2, 1]);
    }

    /// Latencies 2 and 4, of which 4 is the largest; squared losses (1 + 0.25)/2 and 0.375, together 1: 0.5·(1 − ½) +
    /// 0.5·0.625 and 0.5·0.375. A cluster without candidates has none, and is no part of the sums.
    #[test]
    fn weights_by_hand() {
        let of_cluster = [vec![(1.0, 1.0), (3.0, 0.5)], vec![], vec![(4.0, 0.375_f64.sqrt())]];
        let found = weights(&of_cluster, 0.5);
        for (found, expected) in found.iter().zip([0.5625, 0.0, 0.1875]) {
            assert!((found - expected).abs() < 1e-15, "{found}");
        }
        let alike = [vec![(0.0, 0.0)], vec![], vec![(0.0, 0.0)]];
        assert_eq!(weights(&alike, 0.5), [0.25, 0.0, 0.25]);
        assert_eq!(weights(&of_cluster, 1.0), [0.5, 0.0, 0.0]);
    }

    /// Only open clusters are drawn, as often as their weights say, and those without weight at last.
    #[test]
    fn draws_follow_weights() {
        let mut counts = [0_usize; 4];
        for index in 1..4_001 {
            let mut rng = Streams::new(1).stream(Purpose::Policy, 0, index);
            counts[draw(&[0.25, 0.75, 0.0, 9.0], |cluster| cluster < 3, &mut rng).unwrap()] += 1;
            assert_eq!(draw(&[0.25, 0.75, 0.0], |cluster| cluster == 2, &mut rng), Some(2));
            assert_eq!(draw(&[0.25], |_| false, &mut rng), None);
        }
        assert!(counts[2] == 0 && counts[3] == 0, "{counts:?}");
        // Five standard deviations of a binomial count.
        assert!(counts[0].abs_diff(1_000) < 137, "{counts:?}");
    }
}
