//! DivFL: clients whose updates stand for those of all others.
//!
//! # Definition
//! `d(k, i)` is the Euclidean distance of the changes of two clients. Of the candidates whose change is known, the one
//! is added again and again that makes
//! ```text
//! Σ_k min_{i∈S} d(k, i)        k over all candidates with a known change
//! ```
//! least, of equal ones the smaller id: the greedy rule for a facility location. With `sample = s`, each step considers
//! `s` of those that are left, drawn at random (stochastic greedy).
//!
//! | `updates` | changes |
//! |---|---|
//! | `last-known` | of each client's last update that was aggregated; those that have examples and no update yet come first, smaller ids first |
//! | `fresh` | of a job that every candidate does for the selection, and sends; candidates without one come last |
//!
//! Where updates are the last ones, candidates without examples come last, smaller ids first.
//!
//! With `last-known`, a client whose updates never arrive comes first again and again: where rounds have a deadline,
//! let late updates join (`late = { carry = {} }`).
//!
//! # Inputs
//! Changes of all trained parameters, from updates or by a probe.
//!
//! # Explanation
//! With `[record] explain = true`: `distance` of each candidate to the nearest selected one, `null` where a change is
//! unknown; `total`, their sum; `unknown`, ids selected without a known change. `after`: `known`, 1 or 0, of those
//! selected.
//!
//! # Source
//! R. Balakrishnan, T. Li, T. Zhou, N. Himayat, V. Smith, J. Bilmes, "Diverse Client Selection for Federated Learning
//! via Submodular Maximization", ICLR 2022, equations (5) and (6) and Algorithm 1.
//!
//! # Deviations from the source
//! - It has all gradients at the beginning; with `last-known` clients are first selected until their changes are known.
//! - It compares gradients; here changes by a whole job, as its "no-overhead" variant does.
//! - In that variant it keeps all clients in the sum; here those that are candidates.
//! - The weight of a selected client is the server's, and not the number of those that it stands for.
//!
//! # Cost
//! The change of every client is kept: `4·K` bytes for each parameter, and `8·K²` bytes of distances. `O(K·p)` for each
//! new change of `p` parameters, `O(m·K²)` for each selection (`O(m·s·K)` with a sample). `fresh`: a job of every
//! candidate, and its update.
//!
//! # Determinism
//! With a sample, stream (policy, server, turn): a Fisher–Yates shuffle of those left, ascending, as far as it is
//! needed, in each step; if no more than `s` are left, nothing is drawn. Sums are added up by ascending id.

use super::random::draw_first;
use super::{
    Answers, BuildContext, Explanation, Feedback, Policy, PolicyRng, PolicySettings, Probe, Selection,
    SelectionRequest, ServerView, Wants,
};
use fedgenie_core::config::Complaint;
use fedgenie_core::failure::Failure;
use fedgenie_core::id::ClientId;
use fedgenie_core::math::float::sqrt;
use fedgenie_core::rng::StreamRng;
use fedgenie_core::state::Stateful;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bytes of changes and distances up to which a scenario is accepted.
const MOST_BYTES: u64 = 8 << 30;

/// Parameters of `divfl`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The updates that are compared.
    #[serde(default)]
    pub updates: Updates,
    /// Candidates considered in each step, at least 1; all if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<usize>,
}

/// The updates that are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Updates {
    /// The last one of each client.
    #[default]
    LastKnown,
    /// Of jobs done for the selection.
    Fresh,
}

impl PolicySettings for Config {
    fn build(&self, context: &BuildContext<'_>) -> Result<Box<dyn Policy>, Complaint> {
        if self.sample == Some(0) {
            return Err(Complaint::new("sample", "found 0; expected at least 1"));
        }
        let bytes = 8 * (context.clients as u64).pow(2);
        if bytes > MOST_BYTES {
            let message = format!(
                "divfl compares all pairs of clients: their distances would take {} GiB, and {} GiB is the most",
                bytes >> 30,
                MOST_BYTES >> 30
            );
            return Err(Complaint::new("", message));
        }
        Ok(Box::new(DivFl {
            updates: self.updates,
            sample: self.sample,
            changes: vec![None; context.clients],
            distances: vec![Vec::new(); context.clients],
            made: Decision::default(),
        }))
    }
}

#[derive(Stateful)]
struct DivFl {
    #[state(skip = "from the scenario")]
    updates: Updates,
    #[state(skip = "from the scenario")]
    sample: Option<usize>,
    /// The change of each client, where it is known.
    #[state(each)]
    changes: Vec<Option<Vec<f32>>>,
    /// Of each client to all others, where it has been worked out for its present change; otherwise empty.
    #[state(skip = "follows from the changes")]
    distances: Vec<Vec<f64>>,
    #[state(skip = "read before the next selection")]
    made: Decision,
}

/// The numbers behind a selection.
#[derive(Clone, Debug, Default)]
struct Decision {
    /// Of each candidate to the nearest selected one; NaN where it is unknown.
    nearest: Vec<f64>,
    total: f64,
    unknown: Vec<ClientId>,
}

/// The Euclidean distance of two changes.
fn distance(one: &[f32], other: &[f32]) -> f64 {
    let square = |(one, other): (&f32, &f32)| {
        let apart = f64::from(*one) - f64::from(*other);
        apart * apart
    };
    sqrt(one.iter().zip(other).map(square).sum())
}

impl DivFl {
    fn learn(&mut self, client: ClientId, change: Option<Vec<f32>>) {
        let change = change.filter(|change| change.iter().all(|number| number.is_finite()));
        self.changes[client.index()] = change;
        self.distances[client.index()].clear();
    }

    /// Works out the distances that are missing, of all known changes to each other.
    fn measure(&mut self) {
        let Self { changes, distances, .. } = self;
        for client in 0..changes.len() {
            let Some(change) = &changes[client] else { continue };
            if !distances[client].is_empty() {
                continue;
            }
            let to = |other: &Option<Vec<f32>>| other.as_ref().map_or(f64::NAN, |other| distance(change, other));
            let row: Vec<f64> = changes.iter().map(to).collect();
            for (other, &apart) in row.iter().enumerate() {
                if let Some(place) = distances[other].get_mut(client) {
                    *place = apart;
                }
            }
            distances[client] = row;
        }
    }

    /// Adds clients of `known`, ascending, to a selection, which has none of them yet; at most `count`. Returns the
    /// distance of each to the nearest one selected.
    fn add(&self, known: &[ClientId], count: usize, rng: &mut StreamRng, selection: &mut Selection) -> Vec<f64> {
        let mut nearest = vec![f64::INFINITY; known.len()];
        let mut left: Vec<ClientId> = known.to_vec();
        for _ in 0..count.min(known.len()) {
            let mut considered = left.clone();
            if let Some(sample) = self.sample.filter(|&sample| sample < left.len()) {
                draw_first(&mut considered, sample, rng);
                considered.sort_unstable();
            }
            let total = |client: &ClientId| -> f64 {
                let row = &self.distances[client.index()];
                known.iter().zip(&nearest).map(|(other, nearest)| row[other.index()].min(*nearest)).sum()
            };
            let totals: Vec<f64> = considered.iter().map(total).collect();
            let least = totals.iter().copied().fold(f64::INFINITY, f64::min);
            let place = totals.iter().position(|total| *total == least).expect("somebody is considered");
            let client = considered[place];
            let row = &self.distances[client.index()];
            known.iter().zip(&mut nearest).for_each(|(other, nearest)| *nearest = nearest.min(row[other.index()]));
            left.retain(|other| *other != client);
            selection.push(client);
        }
        nearest
    }
}

impl Policy for DivFl {
    fn wants(&self) -> Wants {
        Wants { change: true, ..Wants::default() }
    }

    fn probes(&self) -> bool {
        self.updates == Updates::Fresh
    }

    fn probe(&mut self, ask: &SelectionRequest<'_>, _: &ServerView<'_>, _: &mut StreamRng) -> Result<Probe, Failure> {
        Ok(match self.updates {
            Updates::LastKnown => Probe::None,
            Updates::Fresh => Probe::Training { clients: ask.available.list().to_vec(), answers: Answers::Update },
        })
    }

    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        view: &ServerView<'_>,
        rng: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        if self.updates == Updates::Fresh {
            self.changes.fill(None);
            self.distances.iter_mut().for_each(Vec::clear);
            for report in view.trained {
                self.learn(report.client, report.change.map(<[f32]>::to_vec));
            }
        }
        self.measure();
        let candidates = ask.available.list();
        let (cohort, _) = ask.sizes(candidates);
        let (known, mut unknown): (Vec<ClientId>, Vec<ClientId>) =
            candidates.iter().partition(|client| self.changes[client.index()].is_some());
        // Who has no examples will never have a change.
        let mut never = Vec::new();
        if self.updates == Updates::LastKnown {
            let has_examples = |client: &ClientId| view.data_sizes[client.index()] > 0;
            (unknown, never) = unknown.into_iter().partition(has_examples);
            unknown.truncate(cohort);
            selection.extend(&unknown);
        }
        let nearest = self.add(&known, cohort - selection.len(), rng.policy, selection);
        if self.updates == Updates::Fresh {
            unknown.truncate(cohort - selection.len());
            selection.extend(&unknown);
        }
        never.truncate(cohort - selection.len());
        selection.extend(&never);
        unknown.extend(never);
        let place = |client: &ClientId| known.binary_search(client).ok().map(|place| nearest[place]);
        let of_all = candidates.iter().map(|client| place(client).filter(|far| far.is_finite()).unwrap_or(f64::NAN));
        let total = if known.is_empty() { f64::NAN } else { nearest.iter().sum() };
        self.made = Decision { nearest: of_all.collect(), total, unknown };
        Ok(())
    }

    fn observe(&mut self, feedback: &Feedback<'_>) -> Result<(), Failure> {
        if let (Feedback::Trained(update), Updates::LastKnown) = (feedback, self.updates) {
            let change = update.change.expect("wanted statistics of updates are told");
            self.learn(update.client, Some(change.to_vec()));
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
        explanation.clients(ask.available.list().iter().copied());
        explanation.array("distance", self.made.nearest.iter().copied());
        explanation.scalar("total", self.made.total);
        explanation.ids("unknown", self.made.unknown.iter().copied());
        Ok(())
    }

    fn explain_after(&self, clients: &[ClientId], explanation: &mut Explanation) -> Result<(), Failure> {
        let is_known = |client: &ClientId| f64::from(u8::from(self.changes[client.index()].is_some()));
        explanation.clients(clients.iter().copied());
        explanation.array("known", clients.iter().map(is_known));
        Ok(())
    }
}
