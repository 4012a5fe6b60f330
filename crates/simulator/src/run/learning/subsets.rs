//! The quality of averages of subsets of a round's updates, for policies that declare that they evaluate them. The
//! definition is in [`crate::policy::Subsets`].

use super::folding::{contributions, edge_average, related};
use super::{EdgeState, Learning, Snapshot};
use crate::policy::{Policy, Subsets, tell_subsets};
use crate::protocol::{Combine, Rule};
use fedgenie_core::id::{ClientId, EdgeId, Round};
use fedgenie_learning::aggregate::{AggregationConfig, Contribution, ServerConfig, ServerOptimizer};
use fedgenie_learning::layout::Update;
use fedgenie_learning::task::{ModelState, PrivateView};
use std::sync::Arc;

/// What a round's aggregation began with.
pub(in crate::run) struct Before<'w> {
    round: Round,
    /// The models of all clusters, or an edge server's.
    models: Vec<Arc<[f32]>>,
    snapshot: Snapshot<'w>,
}

impl<'w> Learning<'w> {
    /// What the next aggregation of a round begins with: the server's, or an edge server's with this model.
    pub fn before(&self, round: Round, edge: Option<(Arc<[f32]>, EdgeState<'w>)>) -> Before<'w> {
        match edge {
            None => Before { round, models: self.models.clone(), snapshot: self.snapshot(None) },
            Some((model, edge)) => Before { round, models: vec![model], snapshot: self.snapshot(Some(edge)) },
        }
    }

    /// Tells a policy of the updates that were just aggregated.
    pub fn tell_subsets(&self, policy: &mut dyn Policy, before: &Before<'_>, parallel: bool) {
        let mut clients: Vec<ClientId> = self.folded.iter().map(|work| work.client).collect();
        clients.dedup();
        let quality = |members: &[ClientId]| self.quality_of(before, members, parallel);
        tell_subsets(policy, &Subsets::new(&clients, &quality));
    }

    /// How a subset is averaged: as its server averages, with `lr = 1`.
    fn averaging(&self, before: &Before<'_>) -> ServerOptimizer {
        let aggregation = &self.world.training.aggregation;
        match before.snapshot.edge {
            Some(_) => edge_average(aggregation, self.layout),
            None => {
                let config = AggregationConfig { server: ServerConfig::default(), ..aggregation.clone() };
                ServerOptimizer::new(&config, self.layout.clone()).with_aging(self.aging())
            }
        }
    }

    /// The quality of the model that the updates of some clients would have made; −∞ if it is not finite.
    fn quality_of(&self, before: &Before<'_>, members: &[ClientId], parallel: bool) -> f64 {
        let Before { round, ref models, ref snapshot } = *before;
        let is_member = |client: &ClientId| members.contains(client);
        let (work, updates): (Vec<_>, Vec<Update>) = {
            let both = self.folded.iter().zip(&self.updates).filter(|(work, _)| is_member(&work.client));
            both.map(|(work, update)| (work.clone(), update.clone())).unzip()
        };
        let ages: Vec<f64> = work.iter().map(|work| work.staleness_weight).collect();
        let combines_models =
            matches!(&self.world.protocol.rule, Rule::Buffered(rule) if rule.combine == Combine::Models);
        let current = combines_models.then_some(&**models);
        let sent: Vec<(ClientId, &[f32])> = work.iter().map(|work| (work.client, &*work.sent.model)).collect();
        let given: Vec<&Update> = updates.iter().collect();
        let weighting = self.world.training.aggregation.weighting;
        let related = related(self.task, weighting, &sent, &given, &ages);
        let ages = related.as_ref().map_or(&*ages, |related| &*related.ages);
        let contributions: Vec<Contribution<'_>> = contributions(self.task, &work, &updates, ages, current);
        let (server, cluster) = snapshot.edge.as_ref().map_or((EdgeId(0), 0), |edge| (edge.edge, edge.cluster));
        let mut model = models[0].to_vec();
        let (mut moved, mut memories) = (snapshot.moved.clone(), snapshot.memories.clone());
        if !contributions.is_empty() {
            self.averaging(before).apply(&mut model, &contributions, self.task.all_examples(), cluster);
        }
        if !model.iter().all(|parameter| parameter.is_finite()) {
            return f64::NEG_INFINITY;
        }
        let earlier = snapshot.edge.iter().flat_map(|edge| &edge.rows);
        let rows = updates.iter().flat_map(|update| &update.rows).chain(earlier);
        rows.for_each(|&row| moved[row as usize] = round);
        let mut clients = snapshot.edge.as_ref().map_or_else(Vec::new, |edge| edge.aggregated.clone());
        clients.extend(work.iter().map(|work| work.client));
        self.task.remember(round, server, &clients, &mut memories[server.index()]);
        let kept: Vec<&[f32]> = match &related {
            Some(related) => related.private.iter().map(|kept| &**kept).collect(),
            None => updates.iter().map(|update| &*update.private).collect(),
        };
        let instead = work.iter().map(|work| work.client).zip(kept);
        let instead: Vec<(ClientId, &[f32])> = instead.filter(|(_, kept)| !kept.is_empty()).collect();
        let private = PrivateView { table: &snapshot.private, instead: &instead };
        let state = ModelState { model: &model, private, round, moved: &moved, memories: &memories };
        self.score(&state, parallel).quality
    }
}
