//! Every edge server has a contextual bandit of its own, whose arms are the clusters.
//!
//! # Definition
//! After each round `t` of the cloud that `every` divides, for each server: `L_k` is the mean loss of cluster `k`'s
//! model on the training examples of its clients, `c` its cluster in that round, `a` the cluster with the smallest loss
//! of the others, empty ones included, the smallest index if several have it. `n_k` servers belong to cluster `k`, and
//! the server to `c` for `τ` rounds in a row, this one included. With `T = stop.rounds`
//!
//! ```text
//! x = ( ln((L_c + ε)/(L_a + ε)),  (n_c − n_a)/(n_c + n_a),  min(τ/(2·every), 1),  t/T )
//! r = (L_a − L_c)/(L_a + L_c + ε)
//! A_c ← A_c + x·xᵀ,  b_c ← b_c + r·x
//! score_k = xᵀA_k⁻¹b_k + alpha·sqrt(xᵀA_k⁻¹x)
//! ```
//!
//! with `A_k = I`, `b_k = 0` before, for each server and cluster. The server moves to the cluster with the largest
//! score; scores within 1e-12 of it are equal, and `ties` decides between them. Losses and `n_k` are those before any
//! server has moved.
//!
//! A cluster whose loss is not finite is no alternative, and is not chosen. A server whose own loss is not finite moves
//! to `a`; it stays if no other loss is finite, or `x` is not. Nothing is learned then.
//!
//! # Inputs
//! `every`: rounds of the cloud between assignments. `alpha`: weight of uncertainty, at least 0. `epsilon`: `ε`, above
//! 0. `ties`: `"random"` or `"first"`, the smallest index. There must be two clusters, and `stop.rounds`.
//!
//! # Records
//! `reassign` has `alternative` (`a`), `context` (`x`), `reward` (`r`) and `scores` of each server.
//!
//! # Cost
//! One pass of each cluster's model over all training examples for each assignment; O(4³) for each cluster that a
//! server has belonged to, O(1) for the others.
//!
//! # Determinism
//! One uniform `u` from the round's stream for each server in order, whether it is needed or not, if `ties` is
//! `"random"`: of `n` equal clusters in order it takes number `⌊u·n⌋`. So a draw belongs to server and round.
//!
//! # Source
//! Bashir, Dagiuklas, Iqbal, Fed-BAC, arXiv:2605.11815, equations (7) to (10) and Algorithm 1; there, sizes of clusters
//! may be those after earlier servers have moved, and ties are not mentioned.
//!
//! # Example
//! ```toml
//! [clusters]
//! count = 10
//! assign = { linucb = { every = 20, alpha = 0.3 } }
//! ```

use super::{AssignmentRequest, ClusterContext, ClusterPolicy, ClusterSettings, Weighed, best_other, check_every};
use fedgenie_core::config::{Complaint, check};
use fedgenie_core::failure::Failure;
use fedgenie_core::id::{EdgeId, Round};
use fedgenie_core::math::float::ln;
use fedgenie_core::math::ridge::Ridge;
use fedgenie_core::rng::StreamRng;
use fedgenie_core::state::Stateful;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Features of a context.
const FEATURES: usize = 4;

/// Scores that differ by less are equal.
const EQUAL: f64 = 1e-12;

/// Parameters of `linucb`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Rounds of the cloud between assignments.
    #[serde(default = "twenty")]
    pub every: u32,
    /// Weight of the width of a score's confidence interval; at least 0.
    #[serde(default = "default_alpha")]
    pub alpha: f64,
    /// Added to losses that are divided; above 0.
    #[serde(default = "default_epsilon")]
    pub epsilon: f64,
    /// The rule for ties between the largest scores.
    #[serde(default)]
    pub ties: Ties,
}

/// The rule for ties between the largest scores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ties {
    /// Any of them, with equal probability.
    #[default]
    Random,
    /// The one with the smallest index.
    First,
}

const fn twenty() -> u32 {
    20
}
const fn default_alpha() -> f64 {
    0.3
}
const fn default_epsilon() -> f64 {
    1e-8
}

impl Default for Config {
    fn default() -> Self {
        Self { every: twenty(), alpha: default_alpha(), epsilon: default_epsilon(), ties: Ties::default() }
    }
}

impl ClusterSettings for Config {
    fn check(&self, context: &ClusterContext<'_>) -> Result<(), Complaint> {
        check_every(self.every)?;
        check("alpha", self.alpha, 0.0.., "a number of at least 0")?;
        check("epsilon", self.epsilon, f64::MIN_POSITIVE.., "a number above 0")?;
        if context.clusters < 2 {
            let message = "chooses among several clusters, and count is 1; write a larger one, or another rule";
            return Err(Complaint::new("", message));
        }
        if context.rounds.is_none() {
            return Err(Complaint::new("", "needs the number of rounds of a run; write rounds into [stop]"));
        }
        Ok(())
    }

    fn needs_losses(&self) -> bool {
        true
    }

    fn every(&self) -> Option<u32> {
        Some(self.every)
    }

    fn build(&self, context: &ClusterContext<'_>) -> Box<dyn ClusterPolicy> {
        let rounds = context.rounds.expect("the settings are checked before a rule is built of them");
        let servers = context.initial.iter().map(|_| Server { since: Round(0), arms: BTreeMap::new() }).collect();
        Box::new(Linucb { config: self.clone(), clusters: context.clusters, rounds, servers, weighed: None })
    }
}

#[derive(Stateful)]
#[state(check = Self::is_sound)]
struct Linucb {
    #[state(skip = "from the scenario")]
    config: Config,
    #[state(skip = "from the scenario")]
    clusters: u32,
    /// `T`.
    #[state(skip = "from the scenario")]
    rounds: u32,
    #[state(each)]
    servers: Vec<Server>,
    /// The numbers of the last assignment.
    #[state(skip = "read before the next question")]
    weighed: Option<Weighed>,
}

/// The bandit of an edge server.
#[derive(Stateful)]
struct Server {
    /// The last round in which it belonged to another cluster.
    since: Round,
    /// `A` and `b` of each cluster with a reward; the other clusters are in their initial state.
    arms: BTreeMap<u32, Ridge<FEATURES>>,
}

impl Linucb {
    /// Whether the clusters of all arms are there.
    fn is_sound(&self) -> bool {
        self.servers.iter().all(|server| server.arms.keys().all(|cluster| *cluster < self.clusters))
    }
}

impl ClusterPolicy for Linucb {
    fn assign(
        &mut self,
        ask: &AssignmentRequest<'_>,
        rng: &mut StreamRng,
        assignment: &mut [u32],
    ) -> Result<(), Failure> {
        self.weighed = None;
        let Self { config, clusters, rounds, servers, weighed } = self;
        if !ask.is_due(config.every) {
            return Ok(());
        }
        let mut sizes = vec![0_u32; *clusters as usize];
        assignment.iter().for_each(|&cluster| sizes[cluster as usize] += 1);
        let (mut found, mut losses) = (Weighed::default(), Vec::new());
        for (index, (cluster, server)) in assignment.iter_mut().zip(servers).enumerate() {
            ask.losses(EdgeId::from_index(index), &mut losses);
            let draw = match config.ties {
                Ties::Random => rng.uniform(),
                Ties::First => 0.0,
            };
            let alternative = best_other(&losses, *cluster);
            let known = alternative.and_then(|alternative| {
                let own = [losses[*cluster as usize], f64::from(sizes[*cluster as usize])];
                let other = [losses[alternative as usize], f64::from(sizes[alternative as usize])];
                let stay = ask.round.0 - server.since.0;
                let phase = f64::from(ask.round.0) / f64::from(*rounds);
                config.context(own, other, stay, phase).map(|context| (context, config.reward(own[0], other[0])))
            });
            let chosen = match known {
                Some((context, reward)) => {
                    server.arms.entry(*cluster).or_insert_with(|| Ridge::new(1.0)).observe(&context, reward);
                    let scores = server.scores(&context, config.alpha, &losses);
                    let chosen = best(&scores, draw);
                    found.scores.push(Some(scores));
                    chosen
                }
                None => {
                    found.scores.push(None);
                    alternative.filter(|_| !losses[*cluster as usize].is_finite())
                }
            };
            found.alternative.push(alternative);
            found.context.push(known.map(|(context, _)| context.to_vec()));
            found.reward.push(known.map(|(_, reward)| reward));
            let chosen = chosen.unwrap_or(*cluster);
            if chosen != *cluster {
                (*cluster, server.since) = (chosen, ask.round);
            }
        }
        *weighed = Some(found);
        Ok(())
    }

    fn weighed(&self) -> Option<&Weighed> {
        self.weighed.as_ref()
    }
}

impl Config {
    /// Equation (7), from loss and size of the server's cluster and of the best other one; `None` if it is not finite.
    fn context(&self, own: [f64; 2], other: [f64; 2], stay: u32, phase: f64) -> Option<[f64; FEATURES]> {
        let ([loss, size], [other_loss, other_size]) = (own, other);
        let ratio = ln((loss + self.epsilon) / (other_loss + self.epsilon));
        let balance = (size - other_size) / (size + other_size);
        let stability = (f64::from(stay) / (2.0 * f64::from(self.every))).min(1.0);
        let context = [ratio, balance, stability, phase];
        context.iter().all(|feature| feature.is_finite()).then_some(context)
    }

    /// Equation (9).
    fn reward(&self, own: f64, other: f64) -> f64 {
        (other - own) / (other + own + self.epsilon)
    }
}

impl Server {
    /// Equation (8); NaN for clusters without a finite loss.
    fn scores(&self, context: &[f64; FEATURES], alpha: f64, losses: &[f64]) -> Vec<f64> {
        let score = |arm: &Ridge<FEATURES>| {
            let (mean, width) = arm.factored().predict(context);
            mean + alpha * width
        };
        // The score of every cluster without a reward.
        let first = score(&Ridge::new(1.0));
        let mut scores = vec![first; losses.len()];
        self.arms.iter().for_each(|(&cluster, arm)| scores[cluster as usize] = score(arm));
        let unknown = scores.iter_mut().zip(losses).filter(|(_, loss)| !loss.is_finite());
        unknown.for_each(|(score, _)| *score = f64::NAN);
        scores
    }
}

/// The cluster with the largest score; `draw`, in [0, 1), decides between equal ones.
fn best(scores: &[f64], draw: f64) -> Option<u32> {
    let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let equal = || (0..).zip(scores).filter(|(_, score)| **score >= largest - EQUAL);
    let place = (draw * equal().count() as f64) as usize;
    equal().nth(place).map(|(cluster, _)| cluster)
}

#[cfg(test)]
mod tests {
    use super::super::Weighed;
    use super::super::tests::{asked, rule};
    use super::best;
    use approx::assert_relative_eq;
    use fedgenie_core::math::float::{ln, sqrt};
    use fedgenie_core::state::State;

    const FIRST: &str = "{ linucb = { every = 2, ties = \"first\" } }";

    fn dot(a: &[f64], b: &[f64]) -> f64 {
        a.iter().zip(b).map(|(a, b)| a * b).sum()
    }

    /// Score of an arm with one observation: A⁻¹ = I − x₀x₀ᵀ/(1 + |x₀|²), so that θ̂ᵀx = r₀·x₀ᵀx/(1 + |x₀|²).
    fn after_one(x: &[f64], [r0, alpha]: [f64; 2], x0: &[f64]) -> f64 {
        let (mixed, scale) = (dot(x, x0), 1.0 + dot(x0, x0));
        r0 * mixed / scale + alpha * sqrt(dot(x, x) - mixed * mixed / scale)
    }

    fn assert_close(found: &[f64], expected: &[f64]) {
        assert_eq!(found.len(), expected.len());
        found.iter().zip(expected).for_each(|(found, expected)| {
            assert_relative_eq!(found, expected, max_relative = 1e-12);
        });
    }

    fn assert_weighed(weighed: &Weighed, server: usize, (x, r): (&[f64], f64), scores: &[f64]) {
        assert_close(weighed.context[server].as_ref().unwrap(), x);
        assert_relative_eq!(weighed.reward[server].unwrap(), r, max_relative = 1e-12);
        assert_close(weighed.scores[server].as_ref().unwrap(), scores);
    }

    /// Three servers and clusters, T = 10, by hand: both servers of cluster 0 are weighed before either moves.
    #[test]
    fn two_assignments_by_hand() {
        let mut rule = rule(FIRST, &[0, 0, 1], 3, Some(10));
        let mut assignment = [0, 0, 1];
        let losses = [[1.0, 0.5, 0.8], [0.25, 0.75, 0.5], [1.0, 2.0, 1.0]];
        assert!(asked(&mut *rule, 1, &losses, &mut assignment).is_none());
        let weighed = asked(&mut *rule, 2, &losses, &mut assignment).unwrap();
        assert_eq!(weighed.alternative, [Some(1), Some(2), Some(0)]);
        let e = 1e-8;
        let x0 = [ln((1.0 + e) / (0.5 + e)), 1.0 / 3.0, 0.5, 0.2];
        let x1 = [ln((0.25 + e) / (0.5 + e)), 1.0, 0.5, 0.2];
        let x2 = [ln((2.0 + e) / (1.0 + e)), -1.0 / 3.0, 0.5, 0.2];
        let (r0, r1, r2) = (-0.5 / (1.5 + e), 0.25 / (0.75 + e), -1.0 / (3.0 + e));
        let fresh = |x: &[f64]| 0.3 * sqrt(dot(x, x));
        assert_weighed(&weighed, 0, (&x0, r0), &[after_one(&x0, [r0, 0.3], &x0), fresh(&x0), fresh(&x0)]);
        assert_weighed(&weighed, 1, (&x1, r1), &[after_one(&x1, [r1, 0.3], &x1), fresh(&x1), fresh(&x1)]);
        assert_weighed(&weighed, 2, (&x2, r2), &[fresh(&x2), after_one(&x2, [r2, 0.3], &x2), fresh(&x2)]);
        // Server 1 is rewarded and stays, the others take the first of two equal clusters.
        assert_eq!(assignment, [1, 0, 0]);

        // Rounds 3 and 4: server 0 in cluster 1 for two rounds, server 1 in cluster 0 for four.
        let losses = [[0.5, 0.25, 0.5], [0.25, 0.75, 0.5], [0.5, f64::NAN, 0.5]];
        let weighed = asked(&mut *rule, 4, &losses, &mut assignment).unwrap();
        let y0 = [ln((0.25 + e) / (0.5 + e)), -1.0 / 3.0, 0.5, 0.4];
        let q0 = 0.25 / (0.75 + e);
        let scores = [after_one(&y0, [r0, 0.3], &x0), after_one(&y0, [q0, 0.3], &y0), fresh(&y0)];
        assert_weighed(&weighed, 0, (&y0, q0), &scores);
        let y1 = weighed.context[1].as_ref().unwrap();
        assert_close(y1, &[x1[0], 1.0, 1.0, 0.4]);
        let y2 = [0.0, 1.0, 0.5, 0.4];
        assert_eq!(weighed.context[2].as_deref(), Some(&y2[..]), "the cluster without a finite loss is no alternative");
        let scores = weighed.scores[2].as_ref().unwrap();
        assert!(scores[1].is_nan());
        assert_close(&[scores[0], scores[2]], &[after_one(&y2, [0.0, 0.3], &y2), fresh(&y2)]);
        assert_eq!(assignment[2], 2);
    }

    /// The own loss is not finite, no other one is, or the logarithm is not defined: nothing is learned.
    #[test]
    fn what_is_not_finite_is_not_chosen() {
        let mut rule = rule(FIRST, &[0; 4], 3, Some(10));
        let mut assignment = [0; 4];
        let bad = f64::INFINITY;
        let losses = [[bad, 0.5, 0.5], [1.0, bad, f64::NAN], [bad, bad, bad], [-2.0, 1.0, 1.0]];
        let weighed = asked(&mut *rule, 2, &losses, &mut assignment).unwrap();
        assert_eq!(assignment, [1, 0, 0, 0]);
        assert_eq!(weighed.alternative, [Some(1), None, None, Some(1)]);
        assert_eq!((&*weighed.context, &*weighed.reward), (&[const { None }; 4][..], &[None; 4][..]));
        assert_eq!(weighed.scores, [const { None }; 4]);
        let weighed = asked(&mut *rule, 4, &[[1.0, 1.0, 1.0]; 4], &mut assignment).unwrap();
        // Server 1 is in its cluster since round 0; it is of three servers, and the best other cluster has one.
        assert_close(weighed.context[1].as_ref().unwrap(), &[0.0, 0.5, 1.0, 0.4]);
        let x = weighed.context[0].as_ref().unwrap();
        let untouched = 0.3 * sqrt(dot(x, x));
        let scores = weighed.scores[0].as_ref().unwrap();
        assert_close(&[scores[0], scores[2]], &[untouched; 2]);
    }

    #[test]
    fn equal_scores() {
        assert_eq!(best(&[0.5, 1.0, f64::NAN, 1.0 - 5e-13, 1.0 - 2e-12], 0.0), Some(1));
        assert_eq!(best(&[0.5, 1.0, f64::NAN, 1.0 - 5e-13, 1.0 - 2e-12], 0.5), Some(3));
        assert_eq!(best(&[f64::NAN; 2], 0.9), None);
        // One draw for each server, needed or not: the draw of the last does not depend on the others.
        let mut seen = [0; 8];
        for seed in 1..=400 {
            let text = format!("{{ linucb = {{ every = {seed} }} }}");
            let choices = [[1.0, 2.0, f64::NAN], [1.0, 1.0, 1.0]].map(|losses| {
                let mut rule = rule(&text, &[0; 2], 8, Some(400));
                let mut assignment = [0; 2];
                let pad = |losses: [f64; 3]| [losses[0], losses[1], losses[2], 1.0, 1.0, 1.0, 1.0, 1.0];
                asked(&mut *rule, seed, &[pad(losses), [1.0; 8]], &mut assignment).unwrap();
                assignment[1]
            });
            assert_eq!(choices[0], choices[1]);
            seen[choices[0] as usize] += 1;
        }
        // Cluster 0 was observed, so that its width is smaller; of 400 draws each of seven others gets 57 ± 7.
        assert_eq!(seen[0], 0);
        assert!(seen[1..].iter().all(|count| (29..=85).contains(count)), "{seen:?}");
    }

    #[test]
    fn it_goes_on_where_it_was_saved() {
        let losses = |round: u32| [0.0, 1.0].map(|server| [1.0, 0.5 + server / f64::from(round), 0.8]);
        let (mut whole, mut assignment) = (rule(FIRST, &[0, 2], 3, Some(20)), [0, 2]);
        let mut copy = rule(FIRST, &[0, 2], 3, Some(20));
        for round in (2..=20).step_by(2) {
            let bytes = State::save(&mut *whole).unwrap();
            copy = rule(FIRST, &[0, 2], 3, Some(20));
            State::load(&mut *copy, &bytes).unwrap();
            let mut other = assignment;
            let found = asked(&mut *whole, round, &losses(round), &mut assignment);
            assert!(found.is_some());
            assert_eq!((asked(&mut *copy, round, &losses(round), &mut other), other), (found, assignment));
        }
        let bytes = State::save(&mut *copy).unwrap();
        assert!(State::load(&mut *rule(FIRST, &[0, 1], 2, Some(20)), &bytes).is_err(), "cluster 2 is not there");
    }
}
