//! RPFL: representatives of clusters of clients whose updates point the same way.
//!
//! # Definition
//! Clients that were never heard come first; places left over go to those selected least often. Once everybody was
//! heard, each selection
//!
//! 1. centres everyone's last update (what a client changed of the model that it was sent) and projects all on their
//!    first `components` principal components;
//! 2. clusters the projections by Lloyd's algorithm, `clusters` of them, at most the cohort: the first centre is the
//!    point farthest from the mean, each next one the point farthest from its nearest centre;
//! 3. gives every cluster one seat, and the other seats in proportion to the clusters' sizes by largest remainders;
//! 4. fills a cluster's seats with those of it that can be selected, least selected first, and seats that it cannot
//!    fill with any others by the same rule.
//!
//! # Inputs
//! What each update changed of each trained parameter. Rounds of one server.
//!
//! # Explanation
//! With `[record] explain = true`: `cluster` of each available client, `null` while somebody was never heard, and how
//! often it was `selected`. `after`: whether those selected were `heard`, 1 or 0.
//!
//! # Source
//! C. Feng, D. Feng, G. Huang, Z. Liu, Z. Wang, X.-G. Xia, "Robust Privacy-Preserving Recommendation Systems Driven by
//! Multimodal Federated Learning" (RPFL), IEEE TNNLS 36(5), 2025, as the baseline that MAB-FRS (Liu, Goudarzi, Toosi
//! 2025, V-C) describes in one sentence: principal components of uploaded gradients, clusters, representatives.
//!
//! # Deviations from the source
//! All but that sentence is this project's: the number of components and clusters, how seats are shared, and who
//! represents a cluster.
//!
//! # Cost
//! K numbers of every trained parameter in memory. A selection with new updates is O(K²·d) for K clients and d
//! parameters, and O(K³) for the components.
//!
//! # Determinism
//! Uses no random stream. Sums run in the order of clients and parameters; of points that are equally far, and of
//! centres that are equally near within 1e-12, the first wins; ids break ties.

mod cluster;
mod components;

use super::{
    BuildContext, Explanation, Feedback, Policy, PolicyRng, PolicySettings, SelectionRequest, ServerView, Wants,
};
use cluster::NONE;
use fedgenie_core::config::Complaint;
use fedgenie_core::id::ClientId;
use fedgenie_core::state::{State, Stateful};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Parameters of `rpfl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Principal components that updates are projected on, at least 1.
    #[serde(default = "two")]
    pub components: u32,
    /// Clusters, at least 1; never more than clients are selected.
    #[serde(default = "three")]
    pub clusters: u32,
}

const fn two() -> u32 {
    2
}
const fn three() -> u32 {
    3
}

/// The most clients whose updates are compared with one another.
const MOST_CLIENTS: usize = 2_000;

impl PolicySettings for Config {
    fn build(&self, context: &BuildContext<'_>) -> Result<Box<dyn Policy>, Complaint> {
        if !context.in_rounds {
            let message = "rpfl learns from the rounds of one server; take synchronous, over-selection or deadline";
            return Err(Complaint::new("", message));
        }
        for (key, value) in [("components", self.components), ("clusters", self.clusters)] {
            if value == 0 {
                return Err(Complaint::new(key, "found 0; expected at least 1"));
            }
        }
        if context.clients > MOST_CLIENTS {
            let message = format!(
                "rpfl compares every client's last update with every other's, and {} clients are too many; expected at \
                 most {MOST_CLIENTS}",
                context.clients
            );
            return Err(Complaint::new("", message));
        }
        // A client without examples has no update to wait for.
        let can_be_heard = context.data_sizes.iter().map(|&size| size > 0).collect();
        Ok(Box::new(Rpfl {
            components: self.components as usize,
            clusters: (self.clusters as usize).min(context.cohort),
            changes: vec![Vec::new(); context.clients],
            can_be_heard,
            is_new: false,
            cluster_of: Vec::new(),
        }))
    }
}

struct Rpfl {
    components: usize,
    clusters: usize,
    /// Everyone's last update; empty of those never heard.
    changes: Vec<Vec<f32>>,
    can_be_heard: Vec<bool>,
    /// Whether an update has come since the clusters were made.
    is_new: bool,
    /// The cluster of each client; empty while somebody was never heard.
    cluster_of: Vec<u32>,
}

impl Stateful for Rpfl {
    fn exchange(&mut self, state: &mut State<'_>) {
        let Self { changes, is_new, cluster_of, .. } = self;
        state.field(changes);
        state.field(is_new);
        state.field(cluster_of);
    }
}

impl Rpfl {
    fn is_heard(&self, client: usize) -> bool {
        !self.changes[client].is_empty() || !self.can_be_heard[client]
    }

    /// Clusters all clients that have an update.
    fn cluster(&mut self, cohort: usize) {
        let heard: Vec<usize> = (0..self.changes.len()).filter(|&client| !self.changes[client].is_empty()).collect();
        let changes: Vec<&[f32]> = heard.iter().map(|&client| &*self.changes[client]).collect();
        let points = components::projected(&changes, self.components);
        let found = cluster::lloyd(&points, self.clusters.min(cohort));
        self.cluster_of = vec![NONE; self.changes.len()];
        heard.into_iter().zip(found).for_each(|(client, cluster)| self.cluster_of[client] = cluster);
        self.is_new = false;
    }
}

impl Policy for Rpfl {
    fn wants(&self) -> Wants {
        Wants { change: true, ..Wants::default() }
    }

    fn effective(&self) -> Vec<(&'static str, Value)> {
        vec![("clusters", self.clusters.into())]
    }

    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        view: &ServerView<'_>,
        _: &mut PolicyRng<'_>,
        selection: &mut Vec<ClientId>,
    ) {
        let mut order: Vec<ClientId> = ask.available.list().to_vec();
        let cohort = ask.sizes(&order).0;
        order.sort_by_key(|client| (view.counts[client.index()], *client));
        if !(0..self.changes.len()).all(|client| self.is_heard(client)) {
            order.sort_by_key(|client| self.is_heard(client.index()));
            selection.extend(&order[..cohort]);
            return;
        }
        if self.is_new || self.cluster_of.is_empty() {
            self.cluster(cohort);
        }
        cluster::seated(&self.cluster_of, &order, cohort, selection);
    }

    fn observe(&mut self, feedback: &Feedback<'_>) {
        if let Feedback::Trained(report) = feedback {
            let change = report.change.expect("what a policy wants to know of updates is told");
            self.changes[report.client.index()] = change.to_vec();
            self.is_new = true;
        }
    }

    fn explain(
        &self,
        ask: &SelectionRequest<'_>,
        view: &ServerView<'_>,
        _: &[ClientId],
        explanation: &mut Explanation,
    ) {
        let available = ask.available.list();
        let of = |client: &ClientId| self.cluster_of.get(client.index()).filter(|&&cluster| cluster != NONE);
        let cluster = |client: &ClientId| of(client).map_or(f64::NAN, |&cluster| f64::from(cluster));
        explanation.clients(available.iter().copied());
        explanation.array("cluster", available.iter().map(cluster));
        explanation.array("selected", available.iter().map(|client| f64::from(view.counts[client.index()])));
    }

    fn explain_after(&self, clients: &[ClientId], explanation: &mut Explanation) {
        explanation.clients(clients.iter().copied());
        let heard = |client: &ClientId| f64::from(u8::from(!self.changes[client.index()].is_empty()));
        explanation.array("heard", clients.iter().map(heard));
    }
}
