//! RPFL: representatives of clusters of clients whose updates point the same way.
//!
//! # Definition
//! Seats of a selection go
//!
//! 1. to clients that were never selected, by id;
//! 2. to heard clients, by clusters of their last updates: each client's change of the model that it was sent;
//! 3. to clients that were selected and not heard, longest unselected first.
//!
//! The second of these, with the seats that the first leaves,
//!
//! - centres the last updates of all that were heard and projects them on their first `components` principal
//!   components;
//! - clusters the projections by Lloyd's algorithm, `clusters` of them, at most the seats: the first centre is the
//!   point farthest from the mean, each next one the point farthest from its nearest centre;
//! - gives every cluster one seat, and the other seats in proportion to the clusters' sizes by largest remainders;
//! - fills a cluster's seats with its available clients, least selected first, and seats that it cannot fill with any
//!   other heard clients, by the same rule.
//!
//! A client is heard when its update is aggregated. A client without examples is never heard, and comes last.
//!
//! # Inputs
//! Each update's change of each trained parameter. Rounds of one server.
//!
//! # Explanation
//! With `[record] explain = true`: `cluster` of each available client (`null` for a client that was not heard, and for
//! all if no seat was left to clusters), and how often it was `selected`. `after`: whether each selected client was
//! ever `heard`, 1 or 0.
//!
//! # Source
//! C. Feng, D. Feng, G. Huang, Z. Liu, Z. Wang, X.-G. Xia, "Robust Privacy-Preserving Recommendation Systems Driven by
//! Multimodal Federated Learning" (RPFL), IEEE TNNLS 36(5), 2025, as the baseline that MAB-FRS (Liu, Goudarzi, Toosi
//! 2025, V-C) describes in one sentence: principal components of uploaded gradients, clusters, representatives.
//!
//! # Deviations from the source
//! All but that sentence is this project's: the number of components and clusters, how seats are shared, and which
//! clients represent a cluster. That sentence also says that RPFL "seeks to maximize the number of participants per
//! round". Here it takes the protocol's cohort; an arm whose `with` sets that to all clients asks everybody.
//!
//! A client that is always late keeps no seat: it is asked once, and then where clusters leave a seat. A client that
//! was lost by chance the first time waits as long.
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
    BuildContext, Explanation, Feedback, Policy, PolicyRng, PolicySettings, Selection, SelectionRequest, ServerView,
    Wants,
};
use cluster::NONE;
use fedgenie_core::config::Complaint;
use fedgenie_core::failure::Failure;
use fedgenie_core::id::{ClientId, Turn};
use fedgenie_core::state::Stateful;
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
    /// Clusters, at least 1; never more than there are seats for them.
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
        Ok(Box::new(Rpfl {
            components: self.components as usize,
            clusters: (self.clusters as usize).min(context.cohort),
            changes: vec![Vec::new(); context.clients],
            has_examples: context.data_sizes.iter().map(|&size| size > 0).collect(),
            selected_in: vec![None; context.clients],
            is_new: false,
            seats: 0,
            cluster_of: Vec::new(),
        }))
    }
}

#[derive(Stateful)]
struct Rpfl {
    #[state(skip = "from the scenario")]
    components: usize,
    #[state(skip = "from the scenario")]
    clusters: usize,
    /// Each client's last update; empty before the first.
    changes: Vec<Vec<f32>>,
    #[state(skip = "from the world")]
    has_examples: Vec<bool>,
    /// The turn of each client's last selection.
    selected_in: Vec<Option<Turn>>,
    /// Whether an update has come since the clusters were made.
    is_new: bool,
    /// The seats that the clusters were made for.
    seats: usize,
    /// The cluster of each client; empty where the last selection left no seat to clusters.
    cluster_of: Vec<u32>,
}

impl Rpfl {
    fn is_heard(&self, client: ClientId) -> bool {
        !self.changes[client.index()].is_empty()
    }

    /// Clusters all clients that have an update, for so many seats.
    fn cluster(&mut self, seats: usize) {
        let heard: Vec<usize> = (0..self.changes.len()).filter(|&client| !self.changes[client].is_empty()).collect();
        let changes: Vec<&[f32]> = heard.iter().map(|&client| &*self.changes[client]).collect();
        let points = components::projected(&changes, self.components);
        let found = cluster::lloyd(&points, self.clusters.min(seats));
        self.cluster_of = vec![NONE; self.changes.len()];
        heard.into_iter().zip(found).for_each(|(client, cluster)| self.cluster_of[client] = cluster);
        (self.is_new, self.seats) = (false, seats);
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
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        let available = ask.available.list();
        let cohort = ask.sizes(available).0;
        let (mut heard, silent): (Vec<ClientId>, Vec<ClientId>) =
            available.iter().copied().partition(|&client| self.is_heard(client));
        let is_new = |client: &ClientId| view.counts[client.index()] == 0 && self.has_examples[client.index()];
        let (new, mut silent): (Vec<ClientId>, Vec<ClientId>) = silent.into_iter().partition(is_new);
        selection.extend(new.into_iter().take(cohort));
        let seats = cohort - selection.len();
        if seats == 0 || heard.is_empty() {
            self.cluster_of.clear();
        } else {
            if self.is_new || self.cluster_of.is_empty() || self.seats != seats {
                self.cluster(seats);
            }
            heard.sort_by_key(|client| (view.counts[client.index()], *client));
            selection.extend(cluster::seated(&self.cluster_of, &heard, seats));
        }
        silent.sort_by_key(|client| (!self.has_examples[client.index()], self.selected_in[client.index()], *client));
        let left = cohort - selection.len();
        selection.extend(silent.into_iter().take(left));
        selection.iter().for_each(|client| self.selected_in[client.index()] = Some(ask.turn));
        Ok(())
    }

    fn observe(&mut self, feedback: &Feedback<'_>) -> Result<(), Failure> {
        if let Feedback::Trained(report) = feedback {
            let change = report.change.expect("wanted statistics of updates are told");
            self.changes[report.client.index()] = change.to_vec();
            self.is_new = true;
        }
        Ok(())
    }

    fn explain(
        &self,
        ask: &SelectionRequest<'_>,
        view: &ServerView<'_>,
        _: &[ClientId],
        explanation: &mut Explanation,
    ) -> Result<(), Failure> {
        let available = ask.available.list();
        let of = |client: &ClientId| self.cluster_of.get(client.index()).filter(|&&cluster| cluster != NONE);
        let cluster = |client: &ClientId| of(client).map_or(f64::NAN, |&cluster| f64::from(cluster));
        explanation.clients(available.iter().copied());
        explanation.array("cluster", available.iter().map(cluster));
        explanation.array("selected", available.iter().map(|client| f64::from(view.counts[client.index()])));
        Ok(())
    }

    fn explain_after(&self, clients: &[ClientId], explanation: &mut Explanation) -> Result<(), Failure> {
        explanation.clients(clients.iter().copied());
        let heard = |client: &ClientId| f64::from(u8::from(!self.changes[client.index()].is_empty()));
        explanation.array("heard", clients.iter().map(heard));
        Ok(())
    }
}
