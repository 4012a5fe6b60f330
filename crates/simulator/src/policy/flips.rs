//! FLIPS: clusters of clients with similar labels are selected equally often.
//!
//! # Definition
//! Before the first selection the server's clients are grouped by the shares of classes (or categories) in their
//! training examples, by k-means. Each of the `m` places goes to the cluster with the fewest selections so far, those
//! of this round included, among the clusters of which a candidate is left, then to the smaller one; and in it to the
//! candidate with the fewest selections, then to the smaller id. Nobody is selected twice in a round.
//!
//! Without `clusters` their number is at the elbow: with `W(k)` the sum of squared distances to the means of `k`
//! clusters, `k` from 1 to `k_max`, the least of 10 and the number of clients, the `k` with the largest distance of
//! `W(k)` below the straight line from `W(1)` to `W(k_max)`, of equal ones the smallest.
//!
//! # Inputs
//! Numbers of examples of each class, which clients declare.
//!
//! # Explanation
//! With `[record] explain = true`: `cluster` of each candidate, from 0, and `picks`, its selections before this one.
//!
//! # Source
//! R. A. Bhope, K. R. Jayaram, N. Venkatasubramanian, A. Verma, G. Thomas, "FLIPS: Federated Learning using Intelligent
//! Participant Selection", Middleware 2023 (arXiv 2308.03901): clusters of label distributions, equitably represented.
//!
//! # Deviations from the source
//! - It finds the number of clusters by the elbow of another index of clusters; here by that of squared distances.
//! - It selects more clients of a cluster whose clients did not answer. That is left out.
//! - Label distributions are known here without its trusted execution environment.
//!
//! # Cost
//! O(K log K) per round. Once, k-means: O(K·clusters) a step, without `clusters` for up to ten numbers of them.
//!
//! # Determinism
//! Stream (policy, server, 1), if that is its first selection: the draws of k-means, for one number of clusters after
//! the other.

use super::k_means::k_means;
use super::label_shares::label_shares;
use super::{BuildContext, Explanation, Policy, PolicyRng, PolicySettings, Selection, SelectionRequest, ServerView};
use fedgenie_core::config::Complaint;
use fedgenie_core::failure::Failure;
use fedgenie_core::id::ClientId;
use fedgenie_core::rng::StreamRng;
use fedgenie_core::state::Stateful;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most clusters that are tried for the elbow.
const MOST: usize = 10;

/// Parameters of `flips`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Number of clusters, at least 1 and at most as many as clients; by the elbow if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clusters: Option<usize>,
}

impl PolicySettings for Config {
    fn build(&self, context: &BuildContext<'_>) -> Result<Box<dyn Policy>, Complaint> {
        if let Some(found) = self.clusters.filter(|count| !(1..=context.among).contains(count)) {
            let message = format!("found {found}; expected between 1 and the number of clients ({})", context.among);
            return Err(Complaint::new("clusters", message));
        }
        Ok(Box::new(Flips {
            wanted: self.clusters,
            shares: label_shares(context, "flips")?,
            cluster: Vec::new(),
            picks: vec![0; context.clients],
            before: Vec::new(),
        }))
    }
}

#[derive(Stateful)]
#[state(check = Self::is_sound)]
struct Flips {
    #[state(skip = "from the scenario")]
    wanted: Option<usize>,
    /// Of the classes in each client's examples.
    #[state(skip = "from the world")]
    shares: Vec<Vec<f64>>,
    /// The cluster of each client of the server; empty before the first selection.
    cluster: Vec<u32>,
    /// Selections of each client.
    #[state(each)]
    picks: Vec<u32>,
    /// Those of the candidates before the selection.
    #[state(skip = "read before the next selection")]
    before: Vec<f64>,
}

/// The sum of squared distances of points to the means of their clusters.
fn within(points: &[&[f64]], joined: &[u32]) -> f64 {
    let clusters = joined.iter().max().map_or(0, |last| *last as usize + 1);
    let mut sum = 0.0;
    for cluster in 0..clusters {
        let members: Vec<&[f64]> = points
            .iter()
            .zip(joined)
            .filter(|(_, joined)| **joined as usize == cluster)
            .map(|(point, _)| *point)
            .collect();
        let width = members.first().map_or(0, |member| member.len());
        for number in 0..width {
            let mean = members.iter().map(|member| member[number]).sum::<f64>() / members.len() as f64;
            sum += members.iter().map(|member| (member[number] - mean) * (member[number] - mean)).sum::<f64>();
        }
    }
    sum
}

/// The place, from 0, at which a falling curve is furthest below the straight line between its ends.
fn elbow(curve: &[f64]) -> usize {
    let last = curve.len().saturating_sub(1);
    let below = |place: usize| {
        let share = place as f64 / last.max(1) as f64;
        curve[0] + share * (curve[last] - curve[0]) - curve[place]
    };
    // Rounding alone moves no elbow.
    (0..curve.len()).fold(0, |best, place| if below(place) > below(best) + 1e-12 { place } else { best })
}

/// The cluster of each point.
fn grouped(points: &[&[f64]], wanted: Option<usize>, rng: &mut StreamRng) -> Vec<u32> {
    let (flat, width) = (points.concat(), points.first().map_or(0, |point| point.len()));
    match wanted {
        Some(count) => k_means(&flat, width, count, rng),
        None => {
            let tried: Vec<Vec<u32>> =
                (1..=MOST.min(points.len())).map(|count| k_means(&flat, width, count, rng)).collect();
            let curve: Vec<f64> = tried.iter().map(|joined| within(points, joined)).collect();
            tried[elbow(&curve)].clone()
        }
    }
}

impl Flips {
    /// Whether each client has a loaded cluster, or none has.
    fn is_sound(&self) -> bool {
        [0, self.picks.len()].contains(&self.cluster.len())
            && self.cluster.iter().all(|&cluster| (cluster as usize) < self.picks.len())
    }
}

impl Policy for Flips {
    fn reads_declared_data(&self) -> bool {
        true
    }

    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        _: &ServerView<'_>,
        rng: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        if self.cluster.is_empty() {
            let scope = ask.available.scope();
            let points: Vec<&[f64]> = scope.iter().map(|client| &*self.shares[client.index()]).collect();
            self.cluster = vec![0; self.shares.len()];
            for (client, cluster) in scope.iter().zip(grouped(&points, self.wanted, rng.policy)) {
                self.cluster[client.index()] = cluster;
            }
        }
        let candidates = ask.available.list();
        let clusters = self.cluster.iter().max().map_or(0, |last| *last as usize + 1);
        // Selections of each cluster so far, and its candidates, the next one last.
        let mut picks = vec![0_u64; clusters];
        for client in ask.available.scope() {
            picks[self.cluster[client.index()] as usize] += u64::from(self.picks[client.index()]);
        }
        let mut left: Vec<Vec<ClientId>> = vec![Vec::new(); clusters];
        candidates.iter().for_each(|&client| left[self.cluster[client.index()] as usize].push(client));
        for members in &mut left {
            members.sort_unstable_by_key(|client| std::cmp::Reverse((self.picks[client.index()], *client)));
        }
        self.before = candidates.iter().map(|client| f64::from(self.picks[client.index()])).collect();
        while selection.len() < ask.cohort {
            let there = (0..clusters).filter(|&cluster| !left[cluster].is_empty());
            let Some(cluster) = there.min_by_key(|&cluster| (picks[cluster], cluster)) else { break };
            let client = left[cluster].pop().expect("somebody of it is left");
            picks[cluster] += 1;
            self.picks[client.index()] += 1;
            selection.push(client);
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
        explanation.array("picks", self.before.iter().copied());
        Ok(())
    }

    fn explain_after(&self, clients: &[ClientId], explanation: &mut Explanation) -> Result<(), Failure> {
        explanation.clients(clients.iter().copied());
        explanation.array("picks", clients.iter().map(|client| f64::from(self.picks[client.index()])));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedgenie_core::rng::{Purpose, Streams};

    /// 8, 2, 1, 0: the line falls by 8/3 a step, and is 10/3 above the second.
    #[test]
    fn the_elbow_by_hand() {
        assert_eq!(elbow(&[8.0, 2.0, 1.0, 0.0]), 1);
        assert_eq!(elbow(&[3.0, 3.0]), 0);
        assert_eq!(elbow(&[6.0, 5.0, 1.0, 0.5]), 2);
        assert_eq!(elbow(&[0.0]), 0);
    }

    /// Two points at 0 and 2 and one at 10: means of 1 and 10.
    #[test]
    fn distances_within_clusters_by_hand() {
        assert_eq!(within(&[&[0.0], &[2.0], &[10.0]], &[0, 0, 1]), 2.0);
        assert_eq!(within(&[&[0.0], &[2.0], &[10.0]], &[0, 0, 0]), 56.0);
    }

    /// Clients with one of three classes each are three clusters, for any seed.
    #[test]
    fn clusters_are_found_by_the_elbow() {
        let shares: Vec<[f64; 3]> =
            (0..12).map(|client| std::array::from_fn(|class| f64::from(u8::from(class == client % 3)))).collect();
        let points: Vec<&[f64]> = shares.iter().map(|share| &share[..]).collect();
        for index in 1..20 {
            let joined = grouped(&points, None, &mut Streams::new(1).stream(Purpose::Policy, 0, index));
            for one in 0..12 {
                for other in 0..12 {
                    assert_eq!(joined[one] == joined[other], one % 3 == other % 3, "{joined:?}");
                }
            }
        }
    }
}
