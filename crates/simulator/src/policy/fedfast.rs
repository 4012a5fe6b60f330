//! FedFast: clients at random out of clusters of similar users, the clusters in turn.
//!
//! # Definition
//! Users are put into at most `clusters` clusters by k-means, started by k-means++. The clusters take turns: each time
//! a client is drawn out of the next one, every available client in it as likely as any other, and a cluster without
//! one is passed over. The turns go on from selection to selection.
//!
//! | `features` | users are compared by | when |
//! |---|---|---|
//! | `"metadata"` | numbers that describe users, such as those of `users.dat` | once, before the first selection |
//! | `"embeddings"` | answers to `embedding` of all available clients | in every selection |
//!
//! # Inputs
//! Users' metadata, which the server knows; or their embeddings. In a federated recommender embeddings are private:
//! with `"embeddings"` every client reveals its private state, in every round, for the comparison.
//!
//! # Explanation
//! With `[record] explain = true`: `cluster` of each available client, from 0; `null` of one that has none.
//!
//! # Source
//! K. Muhammad, Q. Wang, D. O'Reilly-Morgan, E. Tragos, B. Smyth, N. Hurley, J. Geraci, A. Lawlor, "FedFast: Going
//! Beyond Average for Faster Training of Federated Recommender Systems", KDD 2020: its sampling, ActvSAMP.
//!
//! # Deviations from the source
//! - Its aggregation, ActvAGG, which moves clients that were not selected along with those of their cluster, is left
//!   out: this is a policy.
//! - Numbers are compared as they are given. One that is not finite counts as 0.
//! - Clients that came while others were asked for their embeddings are a cluster of their own, the last.
//!
//! # Cost
//! O(K·clusters·features) for each of at most 100 passes over all users, once or in every round.
//!
//! # Determinism
//! Stream (policy, server, turn): a uniform for each centre where clusters are made, then, for each client selected, a
//! whole number below the size of its cluster. Clients of a cluster lie in ascending order; the last one takes the
//! place of one that was drawn.

use super::k_means::k_means;
use super::{
    BuildContext, Explanation, Policy, PolicyRng, PolicySettings, Probe, Selection, SelectionRequest, ServerView,
};
use fedgenie_core::config::Complaint;
use fedgenie_core::failure::Failure;
use fedgenie_core::id::ClientId;
use fedgenie_core::rng::StreamRng;
use fedgenie_core::state::Stateful;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The question for a client's embedding.
const EMBEDDING: &str = "embedding";
/// The cluster of a client that has none.
const NOWHERE: u32 = u32::MAX;

/// Parameters of `fedfast`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The most clusters.
    #[serde(default = "ten")]
    pub clusters: u32,
    /// The numbers by which users are compared.
    #[serde(default)]
    pub features: Features,
}

impl Default for Config {
    fn default() -> Self {
        Self { clusters: ten(), features: Features::default() }
    }
}

/// The numbers by which users are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Features {
    /// Their metadata.
    #[default]
    Metadata,
    /// Their private embeddings.
    Embeddings,
}

const fn ten() -> u32 {
    10
}

impl PolicySettings for Config {
    fn build(&self, context: &BuildContext<'_>) -> Result<Box<dyn Policy>, Complaint> {
        if self.clusters == 0 {
            return Err(Complaint::new("clusters", "found 0; expected at least 1"));
        }
        let described = match self.features {
            Features::Metadata => context.devices.features().ok_or_else(|| {
                let message = "\"metadata\" compares users by their metadata, such as users.dat of MovieLens, and the \
                               data of this task have none; take other data, or features = \"embeddings\"";
                Complaint::new("features", message)
            })?,
            Features::Embeddings if context.probes.iter().all(|kind| kind.name != EMBEDDING) => {
                let message = "\"embeddings\" asks clients for \"embedding\", which they do not know; it takes \
                               [task.recommendation] with a task.recommendation.model whose users have one, or \
                               features = \"metadata\"";
                return Err(Complaint::new("features", message));
            }
            Features::Embeddings => Vec::new(),
        };
        Ok(Box::new(FedFast {
            clusters: self.clusters as usize,
            features: self.features,
            described,
            cluster_of: vec![NOWHERE; context.clients],
            is_made: false,
            next: 0,
            asked: Vec::new(),
        }))
    }
}

#[derive(Stateful)]
#[state(check = Self::is_sound)]
struct FedFast {
    #[state(skip = "from the scenario")]
    clusters: usize,
    #[state(skip = "from the scenario")]
    features: Features,
    /// Metadata of each client, if users are compared by it.
    #[state(skip = "from the world")]
    described: Vec<Vec<f64>>,
    /// The clusters of the last selection.
    #[state(each)]
    cluster_of: Vec<u32>,
    /// Whether the clusters of metadata were made.
    is_made: bool,
    /// The cluster whose turn it is.
    next: u32,
    /// Clients asked for the selection under way.
    asked: Vec<ClientId>,
}

impl FedFast {
    /// Whether the loaded clusters and clients exist.
    fn is_sound(&self) -> bool {
        let Self { clusters, cluster_of, next, asked, .. } = self;
        let known = *clusters as u32;
        cluster_of.iter().all(|&cluster| cluster < known || cluster == NOWHERE)
            && *next <= known
            && asked.iter().all(|client| client.index() < cluster_of.len())
    }
}

impl FedFast {
    /// Puts clients into clusters; `width` numbers of each.
    fn make(&mut self, clients: &[ClientId], numbers: &[f64], width: usize, rng: &mut StreamRng) {
        let known: Vec<f64> = numbers.iter().map(|&number| if number.is_finite() { number } else { 0.0 }).collect();
        self.cluster_of.fill(NOWHERE);
        if width == 0 {
            clients.iter().for_each(|client| self.cluster_of[client.index()] = 0);
            return;
        }
        let found = k_means(&known, width, self.clusters, rng);
        clients.iter().zip(found).for_each(|(client, cluster)| self.cluster_of[client.index()] = cluster);
    }
}

impl Policy for FedFast {
    fn reads_declared_data(&self) -> bool {
        self.features == Features::Metadata
    }

    fn probes(&self) -> bool {
        self.features == Features::Embeddings
    }

    fn probe_kinds(&self) -> &[&'static str] {
        match self.features {
            Features::Metadata => &[],
            Features::Embeddings => &[EMBEDDING],
        }
    }

    fn probe(&mut self, ask: &SelectionRequest<'_>, _: &ServerView<'_>, rng: &mut StreamRng) -> Result<Probe, Failure> {
        if self.features == Features::Embeddings {
            self.asked = ask.available.list().to_vec();
            return Ok(Probe::Answers { clients: self.asked.clone(), kind: EMBEDDING });
        }
        if !self.is_made {
            let everyone = ask.available.scope();
            let rows: Vec<&[f64]> = everyone.iter().map(|client| &*self.described[client.index()]).collect();
            let (numbers, width) = (rows.concat(), rows.first().map_or(0, |row| row.len()));
            self.make(everyone, &numbers, width, rng);
            self.is_made = true;
        }
        Ok(Probe::None)
    }

    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        view: &ServerView<'_>,
        rng: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        if self.features == Features::Embeddings {
            let asked = std::mem::take(&mut self.asked);
            let width = view.answers.len() / asked.len().max(1);
            self.make(&asked, view.answers, width, rng.policy);
        }
        // Those without a cluster are the last.
        let mut members: Vec<Vec<ClientId>> = vec![Vec::new(); self.clusters + 1];
        for &client in ask.available.list() {
            let cluster = self.cluster_of[client.index()] as usize;
            members[cluster.min(self.clusters)].push(client);
        }
        let mut left = ask.sizes(ask.available.list()).0;
        while left > 0 {
            let cluster = &mut members[self.next as usize];
            if !cluster.is_empty() {
                selection.push(cluster.swap_remove(rng.policy.below(cluster.len() as u64) as usize));
                left -= 1;
            }
            self.next = (self.next + 1) % (self.clusters as u32 + 1);
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
        let cluster = |client: &ClientId| match self.cluster_of[client.index()] {
            NOWHERE => f64::NAN,
            cluster => f64::from(cluster),
        };
        explanation.clients(ask.available.list().iter().copied());
        explanation.array("cluster", ask.available.list().iter().map(cluster));
        Ok(())
    }

    fn warning(&self) -> Option<String> {
        (self.features == Features::Embeddings).then(|| {
            "fedfast with features = \"embeddings\" had every available client reveal its private state in every \
             selection"
                .to_owned()
        })
    }
}
