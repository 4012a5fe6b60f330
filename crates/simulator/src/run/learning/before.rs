//! The start of a round's aggregation, kept so that other updates can be folded in the place of the round's.

use super::Learning;
use super::faults::FOLD;
use fedgenie_core::id::{ClientId, EdgeId, Round};
use fedgenie_core::state::{State, Stateful};
use fedgenie_learning::learned::{self, Arrival, Remember, Tier, Unfolded};
use fedgenie_learning::training::JobFailure;
use std::sync::Arc;

/// An edge server in the middle of a round of the cloud.
#[derive(Clone, Debug, Stateful)]
pub(in crate::run) struct EdgeState<'w> {
    #[state(skip = "from the scenario")]
    pub edge: EdgeId,
    /// All its clients.
    #[state(skip = "from the scenario")]
    pub members: &'w [ClientId],
    /// The cluster of its model; 0 where there is one.
    #[state(skip = "saved with the edge server")]
    pub cluster: u32,
    /// The rows of tables that its clients have moved in this round of the cloud.
    pub rows: Vec<u32>,
    /// The clients whose updates its model has of this round of the cloud.
    pub aggregated: Vec<ClientId>,
}

impl<'w> EdgeState<'w> {
    /// Before the first round.
    pub const fn new(edge: EdgeId, members: &'w [ClientId]) -> Self {
        Self { edge, members, cluster: 0, rows: Vec::new(), aggregated: Vec::new() }
    }

    /// The edge server has a new model of the cloud.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.aggregated.clear();
    }
}

/// The start of a round's aggregation: the one server's, or an edge server's.
#[derive(Clone, Debug)]
pub(in crate::run) struct Before<'w> {
    round: Round,
    state: learned::State,
    /// `None` of the one server.
    edge: Option<EdgeState<'w>>,
}

impl Before<'_> {
    pub const fn round(&self) -> Round {
        self.round
    }

    pub fn edge(&self) -> Option<&EdgeState<'_>> {
        self.edge.as_ref()
    }

    /// The cluster of the model; 0 where there is one.
    pub fn cluster(&self) -> u32 {
        self.edge.as_ref().map_or(0, |edge| edge.cluster)
    }

    /// The models of all clusters.
    pub fn models(&self) -> &[Arc<[f32]>] {
        &self.state.models
    }

    /// Whether the model that an edge server sends has the update of a client already.
    pub fn has(&self, client: ClientId) -> bool {
        self.edge.as_ref().is_some_and(|edge| edge.aggregated.contains(&client))
    }

    /// An edge server's. Its optimizer follows from the scenario, and its model is saved with its round.
    pub fn exchange(&mut self, start: &Arc<[f32]>, state: &mut State<'_>) {
        let cluster = self.cluster();
        let Self { round, state: learned, edge } = self;
        let learned::State { round: learned_round, models, servers: _, private, moved, memories, memory } = learned;
        state.field(round);
        state.field(learned_round);
        models[cluster as usize] = start.clone();
        state.field(Arc::make_mut(private));
        state.fields(Arc::make_mut(moved).as_mut_slice());
        Arc::make_mut(memories).iter_mut().for_each(|memory| state.fields(memory));
        state.field(memory);
        edge.iter_mut().for_each(|edge| state.field(edge));
    }
}

impl<'w> Learning<'w> {
    /// The start of the next aggregation: the one server's, or an edge server's with this model.
    pub fn before(&self, round: Round, edge: Option<(Arc<[f32]>, EdgeState<'w>)>) -> Before<'w> {
        match edge {
            None => Before { round, state: self.state.clone(), edge: None },
            Some((model, edge)) => {
                Before { round, state: self.state.at_edge(edge.cluster, model, &edge.rows, round), edge: Some(edge) }
            }
        }
    }

    /// The state that other updates would have made; `None` if its model is not finite. `alone` is how the one server
    /// folds.
    pub(super) fn made_of(&self, before: &Before<'_>, alone: Tier, arrivals: &[Arrival<'_>]) -> Option<learned::State> {
        let Before { round, state, edge } = before;
        let (tier, server, mut clients) = match edge {
            None => (alone, EdgeId(0), Vec::new()),
            Some(edge) => (Tier::Edge(edge.cluster), edge.edge, edge.aggregated.clone()),
        };
        let mut state = state.clone();
        clients.extend(arrivals.iter().map(|arrival| arrival.client));
        let open = state.open(*round, self.task);
        match state.fold(&self.learner, open, tier, arrivals, Remember::One(server, &clients)) {
            Ok(_) => Some(state),
            Err(Unfolded::NotFinite) => None,
            Err(Unfolded::Failed(source)) => {
                self.faults.note(Err(JobFailure { client: None, method: FOLD, source }));
                None
            }
        }
    }
}
