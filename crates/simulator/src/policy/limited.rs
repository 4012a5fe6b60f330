//! A policy that may choose fewer clients than the protocol lets it: `[policy.X] cohort = n`.

use super::{
    BuildContext, Explanation, Feedback, Policy, PolicyRng, PolicySource, Probe, SelectionRequest, ServerView, Wants,
};
use fedgenie_core::config::Complaint;
use fedgenie_core::id::ClientId;
use fedgenie_core::rng::StreamRng;
use fedgenie_core::state::Stateful;
use fedgenie_learning::model::weights::Tensor;
use serde_json::Value;

/// Makes a policy that is asked for at most so many clients, and is told that there are no more.
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
    let policy = source.build(&BuildContext { cohort, take, ..*context })?;
    Ok(Box::new(Limited { most, policy }))
}

#[derive(Stateful)]
struct Limited {
    #[state(skip = "from the scenario")]
    most: usize,
    policy: Box<dyn Policy>,
}

impl Limited {
    fn asked<'a>(&self, ask: &SelectionRequest<'a>) -> SelectionRequest<'a> {
        SelectionRequest { cohort: ask.cohort.min(self.most), take: ask.take.min(self.most), ..*ask }
    }
}

impl Policy for Limited {
    fn wants(&self) -> Wants {
        self.policy.wants()
    }

    fn probes(&self) -> bool {
        self.policy.probes()
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

    fn probe(&mut self, ask: &SelectionRequest<'_>, view: &ServerView<'_>, rng: &mut StreamRng) -> Probe {
        self.policy.probe(&self.asked(ask), view, rng)
    }

    fn foresees(&self, ask: &SelectionRequest<'_>) -> Option<usize> {
        self.policy.foresees(&self.asked(ask))
    }

    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        view: &ServerView<'_>,
        rng: &mut PolicyRng<'_>,
        selection: &mut Vec<ClientId>,
    ) {
        self.policy.select(&self.asked(ask), view, rng, selection);
    }

    fn observe(&mut self, feedback: &Feedback<'_>) {
        self.policy.observe(feedback);
    }

    fn told_answer(&mut self, client: ClientId, kind: &'static str, answer: &[f64]) {
        self.policy.told_answer(client, kind, answer);
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
    ) {
        self.policy.explain(&self.asked(ask), view, selection, explanation);
    }

    fn explain_after(&self, clients: &[ClientId], explanation: &mut Explanation) {
        self.policy.explain_after(clients, explanation);
    }

    fn effective(&self) -> Vec<(&'static str, Value)> {
        self.policy.effective()
    }

    fn warning(&self) -> Option<String> {
        self.policy.warning()
    }
}
