//! Selection by classes and latency: trained examples should have the class shares of all data, and no client be slow.
//!
//! # Definition
//! Clients are added, until as many are selected as can be, each time the one for which
//!
//! ```text
//! λ·½·‖H − h‖₁ + (1 − λ)·s/s_all
//! ```
//!
//! is smallest. `h` are the shares of classes, or of categories, in the training examples of all the server's clients,
//! as declared. `H` are the shares in everything trained so far, which is the examples of each aggregated update,
//! counted with every update, together with those of the set and of the client. `s` is the largest latency of set and
//! client, `s_all` that of all the server's clients. A latency is the declared one, the medians of download, compute
//! and upload, until updates have arrived; then the mean from their dispatch to arrival.
//!
//! # Inputs
//! Declared examples of each class and declared latencies; clients and latencies of aggregated updates.
//!
//! # Explanation
//! With `[record] explain = true`: of each available client `latency_s` and `cost`, the number above if it is the first
//! of the set; of the whole set `distance`, ½·‖H − h‖₁, and `slowest`, `s/s_all`.
//!
//! # Source
//! None of its own. It takes two aims from C. Tian, L. Li, Z. Shi, J. Wang, C. Xu, "HARMONY: Heterogeneity-Aware
//! Hierarchical Management for Federated Learning System", MICRO 2022: even classes, and devices that fit each other.
//!
//! # Deviations from the source
//! It is not HARMONY: that is a whole system with two levels of coordinators, which also changes what devices compute.
//! Here one round's set is selected, by one number.
//!
//! # Cost
//! O(K·m·C) a round with `C` classes.
//!
//! # Determinism
//! Uses no stream. Costs within 1e-12 of the smallest are equal, and the smallest id wins. Shares of no examples are 0,
//! and so is `s/s_all` if all latencies are 0. Clients are asked in the order in which they were added.

use super::{
    BuildContext, Explanation, Feedback, Policy, PolicyRng, PolicySettings, SampleMeans, Selection, SelectionRequest,
    ServerView,
};
use fedgenie_core::config::{Complaint, check};
use fedgenie_core::failure::Failure;
use fedgenie_core::id::ClientId;
use fedgenie_core::oracle::TIE;
use fedgenie_core::state::Stateful;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of `harmony-style`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Weight of data against latency, from 0 to 1.
    #[serde(default = "half")]
    pub lambda: f64,
}

const fn half() -> f64 {
    0.5
}

impl PolicySettings for Config {
    fn build(&self, context: &BuildContext<'_>) -> Result<Box<dyn Policy>, Complaint> {
        let lambda = check("lambda", self.lambda, 0.0..=1.0, "a number from 0 to 1")?;
        let Some(counts) = context.devices.categories() else {
            let message = "harmony-style compares classes or categories of examples, and the clients of this task have \
                           neither; take another task or policy";
            return Err(Complaint::new("", message));
        };
        let declared = |client| context.devices.declared(client).seconds();
        Ok(Box::new(HarmonyStyle {
            lambda,
            declared: (0..context.clients).map(ClientId::from_index).map(declared).collect(),
            observed: SampleMeans::new(context.clients),
            trained: vec![0; counts.first().map_or(0, Vec::len)],
            counts,
            costs: Vec::new(),
            whole: [0.0; 2],
        }))
    }
}

#[derive(Stateful)]
struct HarmonyStyle {
    #[state(skip = "from the scenario")]
    lambda: f64,
    /// Seconds.
    #[state(skip = "from the world")]
    declared: Vec<f64>,
    observed: SampleMeans,
    /// Examples of each class, client by client.
    #[state(skip = "from the world")]
    counts: Vec<Vec<u64>>,
    /// Trained examples of each class, over all updates so far.
    #[state(each)]
    trained: Vec<u64>,

    // Of the last selection.
    /// Cost of each available client as the first one.
    #[state(skip = "read before the next selection")]
    costs: Vec<f64>,
    /// Distance and slowest of the whole set.
    #[state(skip = "read before the next selection")]
    whole: [f64; 2],
}

impl HarmonyStyle {
    fn latency(&self, client: ClientId) -> f64 {
        match self.observed.of(client) {
            (_, 0) => self.declared[client.index()],
            (mean, _) => mean,
        }
    }
}

/// `½·‖H − h‖₁` if these examples are added to the trained ones.
fn distance(trained: &[u64], added: &[u64], shares: &[f64]) -> f64 {
    let all: u64 = trained.iter().zip(added).map(|(trained, added)| trained.saturating_add(*added)).sum();
    let of_class = |((trained, added), share): ((&u64, &u64), &f64)| {
        (trained.saturating_add(*added) as f64 / all.max(1) as f64 - share).abs()
    };
    trained.iter().zip(added).zip(shares).map(of_class).sum::<f64>() / 2.0
}

impl Policy for HarmonyStyle {
    fn reads_declared_data(&self) -> bool {
        true
    }

    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        _: &ServerView<'_>,
        _: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        let (scope, available) = (ask.available.scope(), ask.available.list());
        let mut of_all = vec![0_u64; self.trained.len()];
        for client in scope {
            of_all.iter_mut().zip(&self.counts[client.index()]).for_each(|(sum, count)| *sum += count);
        }
        let all = of_all.iter().sum::<u64>().max(1) as f64;
        let shares: Vec<f64> = of_all.iter().map(|&count| count as f64 / all).collect();
        let slowest = scope.iter().map(|&client| self.latency(client)).fold(0.0, f64::max);
        let relative = |latency: f64| if slowest > 0.0 { latency / slowest } else { 0.0 };
        let (mut trained, mut waited) = (self.trained.clone(), 0.0_f64);
        let mut is_taken = vec![false; available.len()];
        let mut costs = Vec::new();
        for turn in 0..ask.sizes(available).0 {
            costs.clear();
            costs.extend(available.iter().zip(&is_taken).map(|(&client, &is_taken)| {
                if is_taken {
                    return f64::INFINITY;
                }
                let distance = distance(&trained, &self.counts[client.index()], &shares);
                self.lambda * distance + (1.0 - self.lambda) * relative(waited.max(self.latency(client)))
            }));
            let least = costs.iter().copied().fold(f64::INFINITY, f64::min);
            let place = costs.iter().position(|cost| *cost <= least + TIE).expect("somebody is left to be added");
            let client = available[place];
            is_taken[place] = true;
            selection.push(client);
            trained.iter_mut().zip(&self.counts[client.index()]).for_each(|(sum, count)| *sum += count);
            waited = waited.max(self.latency(client));
            if turn == 0 {
                self.costs.clone_from(&costs);
            }
        }
        let nothing = vec![0; trained.len()];
        self.whole = [distance(&trained, &nothing, &shares), relative(waited)];
        Ok(())
    }

    fn observe(&mut self, feedback: &Feedback<'_>) -> Result<(), Failure> {
        if let Feedback::Trained(report) = feedback {
            self.observed.observe(report.client, report.latency.seconds());
            let counts = &self.counts[report.client.index()];
            self.trained.iter_mut().zip(counts).for_each(|(sum, count)| *sum = sum.saturating_add(*count));
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
        let available = ask.available.list();
        explanation.clients(available.iter().copied());
        explanation.array("latency_s", available.iter().map(|&client| self.latency(client)));
        explanation.array("cost", self.costs.iter().copied());
        let [distance, slowest] = self.whole;
        explanation.scalar("distance", distance);
        explanation.scalar("slowest", slowest);
        Ok(())
    }
}
