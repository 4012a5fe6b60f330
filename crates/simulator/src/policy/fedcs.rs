//! FedCS: as many clients as finish before the deadline, one upload after the other.
//!
//! # Definition
//! Times are declared: medians of download, computing and upload. The model goes to all at once, in the time of the
//! slowest of them, and then updates come one after the other, while clients compute side by side:
//! ```text
//! D' = max(D, down_k),  Θ' = Θ + up_k + max(0, compute_k − Θ)        D = Θ = 0 at first
//! ```
//! Again and again, of the candidates left, the one with the least `D' − D + Θ' − Θ` is considered. It is taken if
//! `D' + Θ'` is below the deadline, and then `D` and `Θ` are as with it; otherwise it is passed over. This ends when
//! `most` are taken, or nobody is left. Where nobody fits, nobody is selected.
//!
//! # Inputs
//! Declared devices; the protocol's deadline and the most clients of a selection.
//!
//! # Explanation
//! With `[record] explain = true`: the candidates; `order`, ids as they are considered, those passed over too;
//! `finish_s`, `D' + Θ'` when each of the candidates is considered, `null` if it is not.
//!
//! # Source
//! T. Nishio, R. Yonetani, "Client Selection for Federated Learning with Heterogeneous Resources in Mobile Edge", ICC
//! 2019 (arXiv 1804.08333), Algorithm 3.
//!
//! # Deviations from the source
//! - It takes the time of selection and aggregation off the deadline; here these take none.
//! - It takes the candidate with the largest `1/(…)`, which is the same.
//! - Uploads one after the other are its model of a shared link. Jobs of a run have links of their own, so that a round
//!   ends earlier than `finish_s`.
//! - It has nobody whom it does not choose because enough are taken; here `most` limits a selection.
//!
//! # Cost
//! O(K·most) per round: once a candidate does not fit, none of the others does.
//!
//! # Determinism
//! With `candidates`, stream (policy, server, turn): a Fisher–Yates shuffle of the available clients, ascending, as far
//! as it is needed; if that many are there, all are candidates, and nothing is drawn. Sums that are equal: the smaller
//! id.

use super::random::draw_first;
use super::{
    Bounds, BuildContext, Capabilities, Explanation, Policy, PolicyRng, PolicySettings, Selection, SelectionRequest,
    ServerView,
};
use fedgenie_core::config::Complaint;
use fedgenie_core::failure::Failure;
use fedgenie_core::id::ClientId;
use fedgenie_core::state::Stateful;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of `fedcs`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Candidates that are asked for their times, drawn at random; all who are available if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidates: Option<usize>,
}

impl PolicySettings for Config {
    fn build(&self, context: &BuildContext<'_>) -> Result<Box<dyn Policy>, Complaint> {
        let Bounds { deadline, most, .. } = context.bounds;
        let Some(deadline) = deadline else {
            let message = "fedcs fills the time until the deadline, and this protocol has none; take \
                           [protocol.deadline], or give a timeout";
            return Err(Complaint::new("", message));
        };
        if let Some(found) = self.candidates.filter(|count| !(1..=context.among).contains(count)) {
            let message = format!("found {found}; expected between 1 and the number of clients ({})", context.among);
            return Err(Complaint::new("candidates", message));
        }
        let times = |index: usize| {
            let client = ClientId::from_index(index);
            let [download, upload] = context.devices.links(client)?;
            Some(Times { download, compute: context.devices.declared(client).compute_seconds, upload })
        };
        let Some(times) = (0..context.clients).map(times).collect::<Option<Vec<Times>>>() else {
            let message = "fedcs needs the times of download and upload apart, and clients declare their sum alone";
            return Err(Complaint::new("", message));
        };
        let deadline = deadline.seconds();
        let alone = |times: &Times| times.download + times.compute + times.upload;
        let least = times.iter().map(alone).fold(f64::INFINITY, f64::min);
        if least >= deadline {
            let message = format!(
                "nobody would ever be selected: the fastest client declares {least} s, and the deadline is \
                 {deadline} s; raise the deadline"
            );
            return Err(Complaint::new("", message));
        }
        Ok(Box::new(FedCs { candidates: self.candidates, deadline, most, times, made: Decision::default() }))
    }
}

/// Declared medians, in seconds.
#[derive(Clone, Copy, Debug)]
struct Times {
    download: f64,
    compute: f64,
    upload: f64,
}

#[derive(Stateful)]
struct FedCs {
    #[state(skip = "from the scenario")]
    candidates: Option<usize>,
    #[state(skip = "from the scenario")]
    deadline: f64,
    #[state(skip = "from the scenario")]
    most: usize,
    #[state(skip = "from the world")]
    times: Vec<Times>,
    #[state(skip = "read before the next selection")]
    made: Decision,
}

/// The numbers behind a selection.
#[derive(Clone, Debug, Default)]
struct Decision {
    candidates: Vec<ClientId>,
    /// The order in which they are considered, and `D' + Θ'` then.
    order: Vec<(ClientId, f64)>,
}

/// `D` and `Θ` of those taken so far.
#[derive(Clone, Copy, Debug, Default)]
struct Schedule {
    download: f64,
    upload: f64,
}

impl Schedule {
    fn with(self, times: Times) -> Self {
        Self {
            download: self.download.max(times.download),
            upload: self.upload + times.upload + (times.compute - self.upload).max(0.0),
        }
    }

    /// By how much a client makes it longer.
    fn added(self, times: Times) -> f64 {
        let with = self.with(times);
        (with.download - self.download) + (with.upload - self.upload)
    }

    fn finish(self) -> f64 {
        self.download + self.upload
    }
}

impl FedCs {
    fn consider(&mut self, selection: &mut Selection) {
        let Self { deadline, most, times, made, .. } = self;
        let times = |client: ClientId| times[client.index()];
        let mut left = made.candidates.clone();
        let order =
            |one: &(f64, ClientId), other: &(f64, ClientId)| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1));
        let mut schedule = Schedule::default();
        made.order.clear();
        while selection.len() < *most && !left.is_empty() {
            let cost = |place: usize| (schedule.added(times(left[place])), left[place]);
            let costs = (0..left.len()).map(|place| (cost(place), place));
            let sooner = |one: ((f64, ClientId), usize), other: ((f64, ClientId), usize)| {
                if order(&other.0, &one.0).is_lt() { other } else { one }
            };
            let (_, place) = costs.reduce(sooner).expect("somebody is left");
            let client = left[place];
            let with = schedule.with(times(client));
            if with.finish() < *deadline {
                left.remove(place);
                made.order.push((client, with.finish()));
                selection.push(client);
                schedule = with;
                continue;
            }
            // Nobody else adds less, and so none of those left fits.
            left.sort_by(|one, other| {
                order(&(schedule.added(times(*one)), *one), &(schedule.added(times(*other)), *other))
            });
            made.order.extend(left.iter().map(|&client| (client, schedule.with(times(client)).finish())));
            break;
        }
    }
}

impl Policy for FedCs {
    fn capabilities(&self) -> Capabilities {
        Capabilities { bounds: true, ..Capabilities::default() }
    }

    fn can_be_empty(&self) -> bool {
        true
    }

    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        _: &ServerView<'_>,
        rng: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        let mut candidates = ask.available.list().to_vec();
        if let Some(count) = self.candidates.filter(|&count| count < candidates.len()) {
            draw_first(&mut candidates, count, rng.policy);
            candidates.sort_unstable();
        }
        self.made.candidates = candidates;
        self.consider(selection);
        Ok(())
    }

    fn explain(
        &self,
        _: &SelectionRequest<'_>,
        _: &ServerView<'_>,
        _: &[ClientId],
        explanation: &mut Explanation,
    ) -> Result<(), Failure> {
        let Decision { candidates, order } = &self.made;
        let mut finish = vec![f64::NAN; candidates.len()];
        for (client, seconds) in order {
            finish[candidates.binary_search(client).expect("those considered are candidates")] = *seconds;
        }
        explanation.clients(candidates.iter().copied());
        explanation.ids("order", order.iter().map(|(client, _)| *client));
        explanation.array("finish_s", finish);
        Ok(())
    }

    fn explain_after(&self, clients: &[ClientId], explanation: &mut Explanation) -> Result<(), Failure> {
        explanation.clients(clients.iter().copied());
        Ok(())
    }
}
