//! Optimal client sampling: clients with larger updates are more likely, and weigh less, so that the mean is right.
//!
//! # Definition
//! Every candidate does its job and tells how far it would move: `u_i = ‖n_i/Σn·change_i‖`. With `K` candidates and `m`
//! wanted,
//! ```text
//! p_i = 1                                      of the K − l largest u
//! p_i = (m + l − K)·u_i/Σ(the l smallest)      of the others
//! ```
//! where `l` is the largest number with `0 < m + l − K ≤ Σ(the l smallest)/u_(l)`, `u_(l)` the l-th smallest. Each
//! candidate is selected with probability `p_i`, independently of the others, so that there are `m` on average, and its
//! weight is `n_i/Σn/p_i`. These probabilities make the variance of the weighted sum least.
//!
//! `approximate = true` needs sums alone, which a server can have without seeing single norms: `p = min(m·u/Σu, 1)`,
//! then up to `iterations` times `C = (m − K + #{p < 1})/Σ_{p<1} p`, and `p ← min(C·p, 1)` of those below 1, until `C ≤
//! 1`.
//!
//! Where no update moves anything, `p = m/K`. `[aggregation] weighting` is not used.
//!
//! # Inputs
//! Rounds that may have everybody (`most`). Norms of the changes of all candidates, by a probe: each does its whole
//! job, of which a number travels up. Data sizes.
//!
//! # Explanation
//! With `[record] explain = true`: `norm` (`u`) and `p` of each candidate.
//!
//! # Source
//! W. Chen, S. Horváth, P. Richtárik, "Optimal Client Sampling for Federated Learning", TMLR 2022 (arXiv 2010.13723),
//! equation (7) and Algorithms 1 and 2.
//!
//! # Deviations from the source
//! - A selected client trains once more, to the same update, because a probe's job is forgotten: the round takes its
//!   time twice. In the source it keeps its update.
//! - A candidate whose job diverges counts as one that does not move.
//! - Who is available changes `Σn`: over those who are there the mean is right. Candidates are those who were asked and
//!   are still there when they have answered.
//!
//! # Cost
//! A job of every candidate for each selection; O(K log K).
//!
//! # Determinism
//! Stream (policy, server, turn): a uniform for each candidate, by ascending id, who is selected if it is below `p`.

use super::{
    Answers, BuildContext, Capabilities, Explanation, Policy, PolicyRng, PolicySettings, Probe, Selection,
    SelectionRequest, ServerView, Wants,
};
use fedgenie_core::config::Complaint;
use fedgenie_core::failure::Failure;
use fedgenie_core::id::ClientId;
use fedgenie_core::rng::StreamRng;
use fedgenie_core::state::Stateful;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of `optimal-sampling`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Whether probabilities are approximated, by sums of norms alone.
    #[serde(default)]
    pub approximate: bool,
    /// Most corrections of approximated probabilities, at least 1.
    #[serde(default = "default_iterations")]
    pub iterations: u32,
}

const fn default_iterations() -> u32 {
    4
}

impl Default for Config {
    fn default() -> Self {
        Self { approximate: false, iterations: default_iterations() }
    }
}

impl PolicySettings for Config {
    fn build(&self, context: &BuildContext<'_>) -> Result<Box<dyn Policy>, Complaint> {
        if self.iterations == 0 {
            return Err(Complaint::new("iterations", "found 0; expected at least 1"));
        }
        if context.bounds.most < context.among {
            let message = format!(
                "optimal-sampling may select everybody, since each client is drawn by itself, and here at most {} of {} \
                 may be; give the protocol most = {}, which rounds of one server have, and the policy no cohort of its \
                 own",
                context.bounds.most, context.among, context.among
            );
            return Err(Complaint::new("", message));
        }
        Ok(Box::new(OptimalSampling {
            iterations: self.approximate.then_some(self.iterations),
            asked: Vec::new(),
            norms: Vec::new(),
            p: Vec::new(),
        }))
    }
}

#[derive(Stateful)]
struct OptimalSampling {
    /// Of approximated probabilities.
    #[state(skip = "from the scenario")]
    iterations: Option<u32>,
    /// Those who were asked, and then the candidates among them.
    asked: Vec<ClientId>,
    #[state(skip = "read before the next selection")]
    norms: Vec<f64>,
    #[state(skip = "read before the next selection")]
    p: Vec<f64>,
}

/// The probabilities that make the variance least.
fn exact(norms: &[f64], m: usize) -> Vec<f64> {
    let count = norms.len();
    if count == 0 {
        return Vec::new();
    }
    let mut sorted = norms.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let mut sum = 0.0;
    let mut found = None;
    for (l, norm) in (1..).zip(&sorted) {
        sum += norm;
        // A norm of 0 has no bound: its l is allowed.
        if m + l > count && (m + l - count) as f64 * norm <= sum {
            found = Some((l, sum));
        }
    }
    // With l = K − m + 1 the smallest are allowed in any case, so that there is one.
    let (l, sum) = found.expect("the least l is allowed");
    // Of equal norms some may be among the l smallest and others not; their probability is 1 either way.
    let largest = sorted[l - 1];
    let wanted = (m + l - count) as f64;
    // Where the l smallest are 0, they are alike.
    let share = |norm: f64| if sum > 0.0 { wanted * (norm / sum) } else { wanted / l as f64 };
    norms.iter().map(|&norm| if norm > largest { 1.0 } else { share(norm).min(1.0) }).collect()
}

/// Probabilities from sums alone.
fn approximate(norms: &[f64], m: usize, iterations: u32) -> Vec<f64> {
    let count = norms.len();
    let all: f64 = norms.iter().sum();
    if all <= 0.0 {
        return vec![m as f64 / count as f64; count];
    }
    let mut p: Vec<f64> = norms.iter().map(|norm| (m as f64 * norm / all).min(1.0)).collect();
    for _ in 0..iterations {
        let below: Vec<f64> = p.iter().copied().filter(|p| *p < 1.0).collect();
        let sum: f64 = below.iter().sum();
        let wanted = (m + below.len()) as f64 - count as f64;
        if sum <= 0.0 || wanted <= sum {
            break;
        }
        let factor = wanted / sum;
        p.iter_mut().filter(|p| **p < 1.0).for_each(|p| *p = (factor * *p).min(1.0));
    }
    p
}

impl Policy for OptimalSampling {
    fn wants(&self) -> Wants {
        Wants { norm: true, ..Wants::default() }
    }

    fn probes(&self) -> bool {
        true
    }

    fn needs_sums_alone(&self) -> bool {
        self.iterations.is_some()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { bounds: true, ..Capabilities::default() }
    }

    fn can_be_empty(&self) -> bool {
        true
    }

    fn probe(&mut self, ask: &SelectionRequest<'_>, _: &ServerView<'_>, _: &mut StreamRng) -> Result<Probe, Failure> {
        self.asked = ask.available.list().to_vec();
        Ok(Probe::Training { clients: self.asked.clone(), answers: Answers::Norm })
    }

    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        view: &ServerView<'_>,
        rng: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        self.asked.retain(|&client| ask.available.contains(client));
        let candidates = &self.asked;
        let (cohort, _) = ask.sizes(candidates);
        let size = |client: &ClientId| f64::from(view.data_sizes[client.index()]);
        let all: f64 = candidates.iter().map(size).sum();
        let norm = |client: &ClientId| {
            let place = view.trained.binary_search_by_key(client, |report| report.client);
            let norm = place.ok().and_then(|place| view.trained[place].norm).filter(|norm| norm.is_finite());
            norm.map_or(0.0, |norm| size(client) / all * norm)
        };
        self.norms = candidates.iter().map(norm).collect();
        self.p = match self.iterations {
            None => exact(&self.norms, cohort),
            Some(iterations) => approximate(&self.norms, cohort, iterations),
        };
        for (client, &p) in candidates.iter().zip(&self.p) {
            if rng.policy.uniform() < p {
                selection.push(*client);
                selection.weights.push(if all > 0.0 { size(client) / all / p } else { 0.0 });
            }
        }
        Ok(())
    }

    fn explain(
        &self,
        _: &SelectionRequest<'_>,
        _: &ServerView<'_>,
        _: &[ClientId],
        explanation: &mut Explanation,
    ) -> Result<(), Failure> {
        explanation.clients(self.asked.iter().copied());
        explanation.array("norm", self.norms.iter().copied());
        explanation.array("p", self.p.iter().copied());
        Ok(())
    }

    fn explain_after(&self, clients: &[ClientId], explanation: &mut Explanation) -> Result<(), Failure> {
        explanation.clients(clients.iter().copied());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// u = 8, 4, 2, 1, 1 and three wanted of five. l = 5: 3 ≤ 16/8 does not hold; l = 4: 2 ≤ 8/4 holds. So the largest
    /// has 1, the others 2/8 of their norm: 1, ½, ¼, ¼. From sums: 3/16 of each gives 1, ¾, ⅜, 3/16, 3/16; four are
    /// below 1, which should have 2 and have 1½, so that C is 4/3: 1, ½, ¼, ¼, as before.
    #[test]
    fn probabilities_by_hand() {
        let norms = [8.0, 4.0, 2.0, 1.0, 1.0];
        assert_eq!(exact(&norms, 3), [1.0, 1.0, 0.5, 0.25, 0.25]);
        assert_eq!(approximate(&norms, 3, 4), [1.0, 1.0, 0.5, 0.25, 0.25]);
        // Without a correction that is enough, fewer than three are expected.
        let once: f64 = approximate(&[100.0, 10.0, 1.0, 1.0, 1.0], 3, 1).iter().sum();
        assert!(once < 3.0 - 1e-3);
        let enough: f64 = approximate(&[100.0, 10.0, 1.0, 1.0, 1.0], 3, 4).iter().sum();
        assert!((enough - 3.0).abs() < 1e-12);
    }

    #[test]
    fn probabilities_add_up_where_anything_moves() {
        for (norms, m) in [
            (vec![0.0; 4], 2),
            (vec![1.0; 4], 2),
            (vec![1.0; 4], 4),
            (vec![0.0, 0.0, 3.0, 5.0], 2),
            (vec![0.0, 0.0, 3.0, 5.0], 3),
            (vec![5e-324, 5e-324, 5e-324], 1),
            (vec![1e-300, 2e-300, 1.0], 2),
        ] {
            let all: f64 = exact(&norms, m).iter().sum();
            assert!((all - m as f64).abs() < 1e-9, "{norms:?}: {:?}", exact(&norms, m));
        }
    }
}
