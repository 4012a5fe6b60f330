//! The quality of averages of subsets of a round's updates, for policies that declare that they evaluate them. The
//! definition is in [`crate::policy::Subsets`].

use super::{Before, Learning, arrivals};
use crate::policy::{Policy, Subsets, tell_subsets};
use crate::protocol::{Combine, Rule};
use fedgenie_core::failure::Failure;
use fedgenie_core::id::ClientId;
use fedgenie_learning::learned::{self, Tier};

impl Learning<'_> {
    /// Tells a policy of the updates that were just aggregated.
    pub fn tell_subsets(&self, policy: &mut dyn Policy, before: &Before<'_>, parallel: bool) -> Result<(), Failure> {
        let mut clients: Vec<ClientId> = self.folded.iter().map(|work| work.client).collect();
        clients.dedup();
        let quality = |members: &[ClientId]| self.quality_of(before, members, parallel);
        tell_subsets(policy, &Subsets::new(&clients, &quality))
    }

    /// The quality of the model that the updates of some clients would have made, averaged as their server averages and
    /// with `lr = 1`; −∞ if it is not finite.
    fn quality_of(&self, before: &Before<'_>, members: &[ClientId], parallel: bool) -> f64 {
        let combines_models =
            matches!(&self.world.protocol.rule, Rule::Buffered(rule) if rule.combine == Combine::Models);
        let current = combines_models.then_some(before.models());
        let mut arrivals = arrivals(self.world, self.task, (&self.folded, &self.updates), current);
        arrivals.retain(|arrival| members.contains(&arrival.client));
        let averaged = self.made_of(before, Tier::Mean, &arrivals);
        let quality = |state: learned::State| self.score(&state.current(before.cluster()), parallel).quality;
        averaged.map_or(f64::NEG_INFINITY, quality)
    }
}
