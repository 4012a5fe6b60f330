//! A policy that may choose fewer clients than the protocol lets it: `[policy.X] cohort = n`.

use super::{
    BoundWorld, Bounds, BuildContext, Capabilities, Explanation, Feedback, Policy, PolicyRng, PolicySource, Probe,
    RegretBound, Selection, SelectionRequest, ServerView, Subsets, Wants,
};
use fedgenie_core::config::Complaint;
use fedgenie_core::failure::Failure;
use fedgenie_core::id::ClientId;
use fedgenie_core::rng::StreamRng;
use fedgenie_core::state::Stateful;
use fedgenie_learning::model::weights::Tensor;
use serde_json::Value;

/// Makes a policy whose cohort, wait and bounds are cut to `most` clients.
pub(super) fn build(
    source: &PolicySource,
    most: usize,
    context: &BuildContext<'_>,
) -> Result<Box<dyn Policy>, Complaint> {
    let (cohort, take) = (context.cohort.min(most), context.take.min(most));
    if most < context.least {
        let message = format!("found {most}; the budget asks for rounds of at least {} clients", context.least);
        return Err(Complaint::new("cohort", message));
    }
    let policy = source.build(&BuildContext { cohort, take, bounds: limited(context.bounds, most), ..*context })?;
    Ok(Box::new(Limited { most, policy }))
}

/// Bounds of a policy that may choose fewer.
fn limited(bounds: Bounds, most: usize) -> Bounds {
    Bounds { cohort: bounds.cohort.min(most), most: bounds.most.min(most), ..bounds }
}

#[derive(Stateful)]
struct Limited {
    #[state(skip = "from the scenario")]
    most: usize,
    policy: Box<dyn Policy>,
}

impl Limited {
    fn asked<'a>(&self, ask: &SelectionRequest<'a>) -> SelectionRequest<'a> {
        let (cohort, most) = (ask.cohort.min(self.most), ask.most.min(self.most));
        SelectionRequest { cohort, most, take: ask.take.min(self.most), ..*ask }
    }
}

/// A view with the bounds of the limited policy.
fn seen<'a>(view: &ServerView<'a>, most: usize) -> ServerView<'a> {
    ServerView { bounds: view.bounds.map(|bounds| limited(bounds, most)), ..*view }
}

impl Policy for Limited {
    fn wants(&self) -> Wants {
        self.policy.wants()
    }

    fn probes(&self) -> bool {
        self.policy.probes()
    }

    fn capabilities(&self) -> Capabilities {
        self.policy.capabilities()
    }

    fn can_be_empty(&self) -> bool {
        self.policy.can_be_empty()
    }

    fn reads_declared_data(&self) -> bool {
        self.policy.reads_declared_data()
    }

    fn inclusion(&self) -> Option<f64> {
        self.policy.inclusion()
    }

    fn probe_kinds(&self) -> &[&'static str] {
        self.policy.probe_kinds()
    }

    fn sees_truth(&self) -> bool {
        self.policy.sees_truth()
    }

    fn wants_answer(&self) -> Option<&'static str> {
        self.policy.wants_answer()
    }

    fn needs_losses(&self) -> bool {
        self.policy.needs_losses()
    }

    fn needs_sums_alone(&self) -> bool {
        self.policy.needs_sums_alone()
    }

    fn needs_batch_losses(&self) -> bool {
        self.policy.needs_batch_losses()
    }

    fn probe(
        &mut self,
        ask: &SelectionRequest<'_>,
        view: &ServerView<'_>,
        rng: &mut StreamRng,
    ) -> Result<Probe, Failure> {
        self.policy.probe(&self.asked(ask), &seen(view, self.most), rng)
    }

    fn foresees(&self, ask: &SelectionRequest<'_>) -> Result<Option<usize>, Failure> {
        self.policy.foresees(&self.asked(ask))
    }

    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        view: &ServerView<'_>,
        rng: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        self.policy.select(&self.asked(ask), &seen(view, self.most), rng, selection)
    }

    fn observe(&mut self, feedback: &Feedback<'_>) -> Result<(), Failure> {
        self.policy.observe(feedback)
    }

    fn judge(&mut self, subsets: &Subsets<'_>) -> Result<(), Failure> {
        self.policy.judge(subsets)
    }

    fn told_answer(&mut self, client: ClientId, kind: &'static str, answer: &[f64]) -> Result<(), Failure> {
        self.policy.told_answer(client, kind, answer)
    }

    fn tensors(&self) -> Vec<Tensor> {
        self.policy.tensors()
    }

    fn explain(
        &self,
        ask: &SelectionRequest<'_>,
        view: &ServerView<'_>,
        selection: &[ClientId],
        explanation: &mut Explanation,
    ) -> Result<(), Failure> {
        self.policy.explain(&self.asked(ask), &seen(view, self.most), selection, explanation)
    }

    fn explain_after(&self, clients: &[ClientId], explanation: &mut Explanation) -> Result<(), Failure> {
        self.policy.explain_after(clients, explanation)
    }

    fn effective(&self) -> Vec<(&'static str, Value)> {
        self.policy.effective()
    }

    fn bound(&self, world: &BoundWorld<'_>) -> Result<Option<RegretBound>, Failure> {
        // With fewer clients than the genie selects, another theorem would be needed.
        if self.most < world.cohort { Ok(None) } else { self.policy.bound(world) }
    }

    fn warning(&self) -> Option<String> {
        self.policy.warning()
    }
}
