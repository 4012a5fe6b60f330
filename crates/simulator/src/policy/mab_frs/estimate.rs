//! Estimates of a client's next reward from those it had: a mean, (20), (21), or a regression on features, (19).

use super::Estimate;
use super::context::Context;
use crate::policy::SampleMeans;
use fedgenie_core::config::{Complaint, check};
use fedgenie_core::id::{ClientId, Turn};
use fedgenie_core::math::float::power;
use fedgenie_core::math::ridge::{Factored, Ridge};
use fedgenie_core::state::Stateful;

/// What was seen so far, of all clients.
#[derive(Clone, Debug, Stateful)]
#[state(fixed)]
pub(super) enum Estimator {
    Mean(SampleMeans),
    Discounted {
        #[state(skip = "from the scenario")]
        factor: f64,
        sums: Vec<Discounted>,
    },
    Window {
        #[state(skip = "from the scenario")]
        size: usize,
        last: Vec<Vec<f64>>,
    },
    Contextual(Box<Ridge<7>>),
}

/// Sums of rewards and of weights, as they stood when the client was pulled last.
#[derive(Clone, Copy, Debug, Default, Stateful)]
pub(super) struct Discounted {
    rewards: f64,
    weights: f64,
    pulled: Turn,
}

impl Estimate {
    /// Before the first reward.
    pub(super) fn estimator(&self, clients: usize) -> Result<Estimator, Complaint> {
        let below = |complaint: Complaint, kind: &str| complaint.below(kind).below("estimate");
        Ok(match *self {
            Self::Mean => Estimator::Mean(SampleMeans::new(clients)),
            Self::Discounted { factor } => {
                let open = f64::MIN_POSITIVE..1.0;
                let factor = check("factor", factor, open, "a number between 0 and 1, exclusive")
                    .map_err(|complaint| below(complaint, "discounted"))?;
                Estimator::Discounted { factor, sums: vec![Discounted::default(); clients] }
            }
            Self::Window { size: 0 } => {
                let complaint = Complaint::new("size", "found 0; expected a number of rewards of at least 1");
                return Err(below(complaint, "window"));
            }
            Self::Window { size } => Estimator::Window { size: size as usize, last: vec![Vec::new(); clients] },
            Self::Contextual { ridge } => {
                let ridge = check("ridge", ridge, f64::MIN_POSITIVE.., "a number above 0")
                    .map_err(|complaint| below(complaint, "contextual"))?;
                Estimator::Contextual(Box::new(Ridge::new(ridge)))
            }
        })
    }
}

impl Estimator {
    /// A reward of a pull, under the context in which the client was selected.
    pub fn observe(&mut self, client: ClientId, turn: Turn, reward: f64, context: &Context) {
        match self {
            Self::Mean(means) => means.observe(client, reward),
            Self::Discounted { factor, sums } => {
                let sums = &mut sums[client.index()];
                // Both sums shrink alike from round to round, so that their ratio changes with a new reward alone.
                let faded = power(*factor, f64::from(turn.0 - sums.pulled.0));
                sums.rewards = sums.rewards * faded + reward;
                sums.weights = sums.weights * faded + 1.0;
                sums.pulled = turn;
            }
            Self::Window { size, last } => {
                let last = &mut last[client.index()];
                if last.len() == *size {
                    last.remove(0);
                }
                last.push(reward);
            }
            Self::Contextual(ridge) => ridge.observe(context, reward),
        }
    }

    /// For the estimates of a selection.
    pub fn ready(&self) -> Ready<'_> {
        match self {
            Self::Contextual(ridge) => Ready::Contextual(Box::new(ridge.factored())),
            _ => Ready::Own(self),
        }
    }
}

/// An estimator with what its estimates need.
pub(super) enum Ready<'a> {
    Own(&'a Estimator),
    Contextual(Box<Factored<7>>),
}

impl Ready<'_> {
    /// The estimate for a client; 0 if it was never pulled.
    pub fn of(&self, client: ClientId, context: &Context) -> f64 {
        match self {
            Self::Contextual(ridge) => ridge.predict(context).0,
            Self::Own(Estimator::Mean(means)) => means.of(client).0,
            Self::Own(Estimator::Discounted { sums, .. }) => {
                let sums = &sums[client.index()];
                if sums.weights > 0.0 { sums.rewards / sums.weights } else { 0.0 }
            }
            Self::Own(Estimator::Window { last, .. }) => {
                let last = &last[client.index()];
                last.iter().sum::<f64>() / last.len().max(1) as f64
            }
            Self::Own(Estimator::Contextual(_)) => unreachable!("a regression is factored before it is asked"),
        }
    }
}
