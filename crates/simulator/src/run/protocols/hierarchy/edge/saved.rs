//! An edge server between two rounds of the cloud, as it is saved.

use super::{Edge, Stage};
use crate::run::learning::Learning;
use crate::run::timeline::{JobId, Jobs};
use fedgenie_core::state::State;
use fedgenie_learning::learned::SharedModels;

/// State that edge servers share when a run is saved between two rounds of the cloud.
pub(in crate::run) struct Between<'a, 'w> {
    pub learning: Option<&'a Learning<'w>>,
    pub jobs: &'a Jobs,
    pub models: &'a mut SharedModels,
}

impl<'w> Edge<'w> {
    /// Between rounds of the cloud, when it rests; the state of its part in a round begins anew. Where the cloud does
    /// not wait for it, it may be at work, and goes on with that.
    pub fn exchange(&mut self, at: &mut Between<'_, 'w>, state: &mut State<'_>) {
        let Self {
            of,
            rule,
            selector,
            stage,
            round,
            sent_at,
            sent,
            left,
            opened,
            has_returned,
            model,
            cohort,
            asked_bytes,
            hindsight,
            asked_in,
            judged,
            invested,
            link,
        } = self;
        state.field(selector);
        state.field(&mut of.cluster);
        hindsight.iter_mut().for_each(|meter| state.field(meter));
        if rule.buffer.is_none() {
            let rests = *stage == Stage::Idle && cohort.jobs.is_empty() && selector.asked.is_none() && judged.is_none();
            assert!(rests || state.is_loading(), "an edge server rests between rounds of the cloud");
            state.require(rests);
            return;
        }
        state.field(stage);
        state.field(round);
        state.field(sent_at);
        at.models.exchange_option(sent, state);
        state.field(left);
        state.field(opened);
        state.field(has_returned);
        at.models.exchange_option(model, state);
        state.field(of);
        state.field(cohort);
        state.field(asked_bytes);
        state.field(asked_in);
        state.field(invested);
        state.field(link);
        let mut is_judged = judged.is_some();
        state.field(&mut is_judged);
        state.require(!is_judged || hindsight.is_some() && at.learning.is_some() && model.is_some());
        if state.is_loading()
            && let (true, Some(meter), Some(learning), Some(start)) = (is_judged, &*hindsight, at.learning, &*model)
        {
            *judged = Some(meter.begun(learning, start.clone(), of.clone()));
        }
        judged.iter_mut().for_each(|judged| judged.exchange(at.models, state));
        let is_its = |&id: &JobId| at.jobs.get(id).is_some_and(|job| of.members.contains(&job.client));
        state.require(cohort.jobs.iter().chain(&cohort.arrived).all(is_its));
        state.require(*stage == Stage::Idle || at.learning.is_none() || model.is_some() && sent.is_some());
    }
}
