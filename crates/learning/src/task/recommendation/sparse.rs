//! Measures of the model alone: the age of items' rows, the share that was ever moved, the metrics of users that
//! trained, and the proxy's ranking of clients.
//!
//! # Definition
//! The metrics of items ([`OF_ITEMS`]) are not there where the whole table travels up: then nobody knows which rows
//! were moved. `test_participant_M` is measure `M` of [`ranking`](crate::ranking) on test data, over users whose home
//! has trained; NaN before anybody has. [`PROXY_RANK_CORRELATION`] is there where the model has a proxy.

use super::{Recommendation, Sent, Settings};
use crate::metric::item_staleness::ITEM_STALENESS;
use crate::metric::items_updated::ITEMS_UPDATED;
use crate::metric::longtail_updated::LONGTAIL_UPDATED;
use crate::metric::proxy_rank_correlation::PROXY_RANK_CORRELATION;
use crate::metric::{Definition, Items};
use crate::ranking::{Means, Ranker};
use crate::task::{Ask, JobKey, ModelState, On};
use fedgenie_core::halt::Effort;
use fedgenie_core::id::ClientId;
use fedgenie_core::metric::Measure;

/// Metrics of items, in the order of their values.
const OF_ITEMS: [&Definition; 3] = [&ITEM_STALENESS, &ITEMS_UPDATED, &LONGTAIL_UPDATED];

impl Settings {
    /// The measures of the model alone, in the order of their values.
    pub(super) fn of_model(&self, has_proxy: bool) -> Vec<Measure> {
        let mut measures = Vec::new();
        if self.transfer[1] == Sent::Rows {
            measures.extend(OF_ITEMS.map(|metric| metric.measure));
        }
        let of_participants = |measure: Measure| measure.named(&format!("test_participant_{}", measure.name));
        measures.extend(Ranker::measures(&self.cutoffs).into_iter().map(of_participants));
        if has_proxy {
            measures.push(PROXY_RANK_CORRELATION.measure);
        }
        measures
    }
}

impl Recommendation {
    /// The measures of the model alone; `participants` if they are known.
    pub(super) fn measure_model(
        &self,
        state: &ModelState<'_>,
        effort: Effort<'_>,
        participants: Option<Means>,
        values: &mut [f64],
    ) {
        let mut found = Vec::with_capacity(values.len());
        if self.settings.transfer[1] == Sent::Rows {
            let window = self.settings.staleness_window;
            let items = Items { moved: state.moved, round: state.round, window, long_tail: &self.long_tail };
            found.extend(OF_ITEMS.map(|metric| metric.of_items(&items)));
        }
        let participants = participants.unwrap_or_else(|| {
            let mut values = vec![f64::NAN; Ranker::count(self.settings.cutoffs.len())];
            let mut ask = Ask::new(On::Test, state, &mut values);
            self.ranked(self.source.everybody(), [&self.source.test], effort, [&mut ask])
        });
        found.extend(participants.values);
        if self.model.has_proxy() {
            found.push(self.rank_correlation(state, effort.parallel));
        }
        values.copy_from_slice(&found);
    }

    fn rank_correlation(&self, state: &ModelState<'_>, parallel: bool) -> f64 {
        let clients = (0..self.source.holdings.clients()).map(ClientId::from_index);
        let clients = clients.filter(|&client| self.source.holdings.examples(client) > 0);
        let keys: Vec<JobKey> = clients.map(|client| Self::next_job(client, state)).collect();
        let sums = self.sums(state, &keys, parallel);
        let [true_losses, predicted] = [0, 1].map(|which| sums.iter().map(|sums| sums[which]).collect::<Vec<f64>>());
        PROXY_RANK_CORRELATION.of_pairs(&true_losses, &predicted)
    }
}
