//! The quality of averages of subsets of a round's updates, for policies that declare that they evaluate them. The
//! definition is in [`crate::policy::Subsets`].

use super::{EdgeState, Learning, arrivals};
use crate::policy::{Policy, Subsets, tell_subsets};
use crate::protocol::{Combine, Rule};
use fedgenie_core::id::{ClientId, EdgeId, Round};
use fedgenie_learning::learned::{self, Tier};
use std::sync::Arc;

/// What a round's aggregation began with.
pub(in crate::run) struct Before<'w> {
    round: Round,
    state: learned::State,
    /// None of the one server.
    edge: Option<EdgeState<'w>>,
}

impl<'w> Learning<'w> {
    /// What the next aggregation of a round begins with: the server's, or an edge server's with this model.
    pub fn before(&self, round: Round, edge: Option<(Arc<[f32]>, EdgeState<'w>)>) -> Before<'w> {
        match edge {
            None => Before { round, state: self.state.clone(), edge: None },
            Some((model, edge)) => {
                Before { round, state: self.state.at_edge(edge.cluster, model, &edge.rows, round), edge: Some(edge) }
            }
        }
    }

    /// Tells a policy of the updates that were just aggregated.
    pub fn tell_subsets(&self, policy: &mut dyn Policy, before: &Before<'_>, parallel: bool) {
        let mut clients: Vec<ClientId> = self.folded.iter().map(|work| work.client).collect();
        clients.dedup();
        let quality = |members: &[ClientId]| self.quality_of(before, members, parallel);
        tell_subsets(policy, &Subsets::new(&clients, &quality));
    }

    /// The quality of the model that the updates of some clients would have made, averaged as their server averages and
    /// with `lr = 1`; −∞ if it is not finite.
    fn quality_of(&self, before: &Before<'_>, members: &[ClientId], parallel: bool) -> f64 {
        let Before { round, ref state, ref edge } = *before;
        let combines_models =
            matches!(&self.world.protocol.rule, Rule::Buffered(rule) if rule.combine == Combine::Models);
        let current = combines_models.then_some(&*state.models);
        let mut arrivals = arrivals(self.world, self.task, (&self.folded, &self.updates), current);
        arrivals.retain(|arrival| members.contains(&arrival.client));
        let (tier, server, cluster, mut clients) = match edge {
            None => (Tier::Mean, EdgeId(0), 0, Vec::new()),
            Some(edge) => (Tier::Edge(edge.cluster), edge.edge, edge.cluster, edge.aggregated.clone()),
        };
        clients.extend(arrivals.iter().map(|arrival| arrival.client));
        let mut averaged = state.clone();
        let open = averaged.open(round, self.task);
        if averaged.fold(&self.learner, &open, tier, &arrivals).is_err() {
            return f64::NEG_INFINITY;
        }
        averaged.remember_at(&open, server, &clients);
        self.score(&averaged.current(cluster), parallel).quality
    }
}
