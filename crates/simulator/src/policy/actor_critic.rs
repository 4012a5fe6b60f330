//! An actor that scores candidates and a critic that values what it sees, both trained from round to round.
//!
//! # Definition
//! Both are networks of two layers, `W2 relu(W1 x + b1) + b2`, with Xavier-uniform weights and biases 0. Of each
//! candidate they see its number `z`, standardised over the candidates.
//!
//! | actor | logits | value `V(s)` |
//! |---|---|---|
//! | `dense` | one output for each of the `K` clients, from all `K` numbers; a client that is no candidate has input 0, and its output is not used | one output, from the same numbers |
//! | `shared` | one network for all clients, from a candidate's own features | that of the mean over candidates of the hidden layer, from the same features |
//! | `softmax` | `z/temperature` | none |
//!
//! Features of `shared` are `z`, the logarithm of the number of examples, standardised like `z`, and the rounds since
//! the client was selected last (since round 0 if never), at most `T`, over `T`.
//!
//! Clients are drawn one after the other by the softmax of the logits of those left (`draw.rs`). With the reward `r` of
//! a selection from `s` and the next state `s'`,
//!
//! ```text
//! δ = r + γ·V(s') − V(s)
//! ```
//!
//! and one step of Adam each is taken on `−δ ln π` (δ constant) by the actor and on `δ²/2` (`V(s')` constant) by the
//! critic, before the selection from `s'`. A reward that is not finite, or that never came, teaches nothing: no step.
//! Nor does the last selection of a run.
//!
//! # Determinism
//! `f64` throughout. Sums over clients are in their order, products with rows of weights in four parts (`network.rs`).
//! The first selection draws the weights first: actor, then critic, each `W1`, then `W2`, row by row.

mod draw;
mod network;
#[cfg(test)]
mod tests;

use super::{BuildContext, Explanation, SelectionRequest, ServerView};
use fedgenie_core::config::{Complaint, check};
use fedgenie_core::id::ClientId;
use fedgenie_core::limits;
use fedgenie_core::math::float::{ln, sqrt};
use fedgenie_core::rng::StreamRng;
use fedgenie_core::state::Stateful;
use fedgenie_learning::model::weights::Tensor;
use network::{Learner, Sizes};

/// Features of a candidate, where one network scores all.
const FEATURES: usize = 3;

/// How logits come about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Rule {
    /// From all clients' numbers at once.
    Dense,
    /// From each candidate's own features.
    Shared,
    /// In proportion to the numbers.
    Softmax {
        /// What the numbers are divided by.
        temperature: f64,
    },
}

/// Sizes and rates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Plan {
    pub rule: Rule,
    /// `K`.
    pub clients: usize,
    /// Hidden units of each network.
    pub hidden: usize,
    pub actor_rate: f64,
    pub critic_rate: f64,
    /// γ.
    pub discount: f64,
    /// `T`, of [`Rule::Shared`].
    pub window: u32,
}

impl Plan {
    /// Checks the numbers under their names in scenarios; `actor` is the key that chooses the rule.
    ///
    /// # Errors
    /// The first key whose value is wrong.
    pub fn check(&self) -> Result<(), Complaint> {
        let share = |key, value| check(key, value, 0.0..=1.0, "a number from 0 to 1");
        share("gamma", self.discount)?;
        share("actor_lr", self.actor_rate)?;
        share("critic_lr", self.critic_rate)?;
        if let Rule::Softmax { temperature } = self.rule {
            check("actor.softmax.temperature", temperature, 1e-6.., "a number of at least 1e-6")?;
        }
        let wrong = |key, found: usize, expected: String| {
            Err(Complaint::new(key, format!("found {found}; expected {expected}")))
        };
        if self.hidden == 0 || self.hidden > limits::LAYER_OUTPUTS {
            return wrong("hidden", self.hidden, format!("from 1 to {} units", limits::LAYER_OUTPUTS));
        }
        if self.window == 0 {
            return wrong("window", 0, "at least 1 round".to_owned());
        }
        if self.rule == Rule::Dense && self.clients > limits::DENSE_CLIENTS {
            let message = format!(
                "\"dense\" has an input and an output for each of {} clients, and goes up to {}; take actor = \"shared\", \
                 one network that scores every client",
                self.clients,
                limits::DENSE_CLIENTS
            );
            return Err(Complaint::new("actor", message));
        }
        let what = format!("an actor and a critic with {} hidden units", self.hidden);
        limits::afford(what, self.bytes()).map_err(|error| Complaint::new("hidden", error.to_string()))
    }

    /// Checks that every round is one selection with a reward.
    ///
    /// # Errors
    /// If rewards are not those of a selection, or not of every round.
    pub fn check_rounds(&self, context: &BuildContext<'_>) -> Result<(), Complaint> {
        let wrong = |message| Err(Complaint::new("", message));
        if !context.in_rounds {
            return wrong(
                "an actor that learns is rewarded for the one selection of each round of one server; take synchronous, \
                 over-selection or deadline",
            );
        }
        match context.evaluates_every_round {
            true => Ok(()),
            false => {
                wrong("an actor that learns is rewarded by what every round measures; give every = 1 in [evaluate]")
            }
        }
    }

    /// Whether weights change.
    pub fn learns(&self) -> bool {
        !matches!(self.rule, Rule::Softmax { .. }) && (self.actor_rate > 0.0 || self.critic_rate > 0.0)
    }

    fn sizes(&self) -> [Sizes; 2] {
        let (inputs, outputs) = match self.rule {
            Rule::Dense => (self.clients, self.clients),
            Rule::Shared => (FEATURES, 1),
            Rule::Softmax { .. } => return [Sizes { inputs: 0, hidden: 0, outputs: 0 }; 2],
        };
        let hidden = self.hidden;
        [Sizes { inputs, hidden, outputs }, Sizes { inputs, hidden, outputs: 1 }]
    }

    /// Bytes of the networks, their moments and a gradient.
    fn bytes(&self) -> u128 {
        self.sizes().iter().map(|sizes| 4 * 8 * sizes.parameters() as u128).sum()
    }
}

/// The candidates of a selection, ascending, and what the networks see of them.
#[derive(Clone, Debug, Default, PartialEq, Stateful)]
struct Seen {
    clients: Vec<ClientId>,
    /// As many for each candidate: its `z`, or its features.
    features: Vec<f64>,
}

/// A selection that has not taught anything so far.
#[derive(Clone, Debug, Default, Stateful)]
struct Taken {
    seen: Seen,
    /// Places among the candidates, in the order of the draws.
    drawn: Vec<u32>,
    /// NaN before it is known.
    reward: f64,
}

/// See the module.
#[derive(Clone, Debug, Stateful)]
#[state(check = Self::is_sound)]
pub(super) struct ActorCritic {
    #[state(skip = "from the scenario")]
    plan: Plan,
    actor: Learner,
    critic: Learner,
    /// Whether the weights were drawn.
    is_drawn: bool,
    /// The round in which each client was selected last, 0 if never; of [`Rule::Shared`].
    #[state(each)]
    selected_in: Vec<u32>,
    /// Of the last selection, of [`Rule::Shared`]: the rounds since each candidate was selected.
    #[state(skip = "read before the next selection")]
    waited: Vec<f64>,
    taken: Option<Taken>,
    /// Of the last selection: `ln π`, `V(s)`, and the δ that was learned from before it.
    #[state(skip = "read before the next selection")]
    log_probability: f64,
    #[state(skip = "read before the next selection")]
    value: f64,
    #[state(skip = "read before the next selection")]
    td_error: f64,
    /// Kept from step to step, because it is large.
    #[state(skip = "a buffer of one step")]
    gradient: Vec<f64>,
}

impl ActorCritic {
    /// Whether candidates and draws of what was loaded are there.
    fn is_sound(&self) -> bool {
        let Self { plan, taken, .. } = self;
        let width = if plan.rule == Rule::Shared { FEATURES } else { 1 };
        let fits = |Taken { seen: Seen { clients, features }, drawn, .. }: &Taken| {
            clients.iter().all(|client| client.index() < plan.clients)
                && features.len() == width * clients.len()
                && drawn.iter().all(|&place| (place as usize) < clients.len())
        };
        taken.as_ref().is_none_or(fits)
    }
}

impl ActorCritic {
    /// One whose weights will be drawn.
    pub fn new(plan: Plan) -> Self {
        let [actor, critic] = plan.sizes();
        Self {
            plan,
            actor: Learner::new(actor, plan.actor_rate),
            critic: Learner::new(critic, plan.critic_rate),
            is_drawn: false,
            selected_in: if plan.rule == Rule::Shared { vec![0; plan.clients] } else { Vec::new() },
            waited: Vec::new(),
            taken: None,
            log_probability: f64::NAN,
            value: f64::NAN,
            td_error: f64::NAN,
            gradient: Vec::new(),
        }
    }

    const fn has_networks(&self) -> bool {
        !matches!(self.plan.rule, Rule::Softmax { .. })
    }

    /// Draws the weights, before anything else is drawn from the stream; later calls do nothing.
    pub fn begin(&mut self, rng: &mut StreamRng) {
        if self.has_networks() && !self.is_drawn {
            self.actor.network.draw(rng);
            self.critic.network.draw(rng);
            self.is_drawn = true;
        }
    }

    /// Learns from the selection before, and selects among the candidates, of which these are the numbers. One that is
    /// not finite counts as their mean.
    pub fn select(
        &mut self,
        numbers: &[f64],
        (ask, view): (&SelectionRequest<'_>, &ServerView<'_>),
        rng: &mut StreamRng,
        selection: &mut Vec<ClientId>,
    ) {
        // Where a policy is asked without a probe before.
        self.begin(rng);
        let clients = ask.available.list();
        let mut features = standardised(numbers);
        if self.plan.rule == Rule::Shared {
            let size = |client: &ClientId| ln(f64::from(view.data_sizes[client.index()]));
            let sizes = standardised(&clients.iter().map(size).collect::<Vec<f64>>());
            let waited = |client: &ClientId| f64::from(ask.round.0.saturating_sub(self.selected_in[client.index()]));
            self.waited = clients.iter().map(waited).collect();
            let window = f64::from(self.plan.window);
            let rows = features.iter().zip(sizes).zip(&self.waited);
            features = rows.flat_map(|((number, size), waited)| [*number, size, waited.min(window) / window]).collect();
        }
        let seen = Seen { clients: clients.to_vec(), features };
        let drawn = self.decide(seen, ask.sizes(clients).0, rng);
        selection.extend(drawn.iter().map(|&place| clients[place as usize]));
        if self.plan.rule == Rule::Shared {
            selection.iter().for_each(|client| self.selected_in[client.index()] = ask.round.0);
        }
    }

    /// Learns from the selection before, and draws `count` of the candidates. Returns their places, in the order of the
    /// draws.
    fn decide(&mut self, seen: Seen, count: usize, rng: &mut StreamRng) -> &[u32] {
        self.td_error = match self.taken.take() {
            Some(taken) if self.has_networks() => self.learn(&taken, &seen),
            _ => f64::NAN,
        };
        self.value = if self.has_networks() { self.value_of(&seen) } else { f64::NAN };
        let logits = self.logits(&seen);
        let mut drawn = Vec::new();
        draw::draw(&logits, count, rng, &mut drawn);
        self.log_probability = draw::log_probability(&logits, &drawn);
        &self.taken.insert(Taken { seen, drawn, reward: f64::NAN }).drawn
    }

    /// The reward of the last selection.
    pub fn reward(&mut self, reward: f64) {
        if let Some(taken) = &mut self.taken {
            taken.reward = reward;
        }
    }

    /// The reward that it was told last; NaN if none.
    pub fn rewarded(&self) -> f64 {
        self.taken.as_ref().map_or(f64::NAN, |taken| taken.reward)
    }

    /// Every client's number, for the dense networks.
    fn spread(&self, seen: &Seen) -> Vec<f64> {
        let mut input = vec![0.0; self.plan.clients];
        seen.clients.iter().zip(&seen.features).for_each(|(client, number)| input[client.index()] = *number);
        input
    }

    /// The logit of each candidate.
    fn logits(&self, seen: &Seen) -> Vec<f64> {
        let (network, mut hidden, mut outputs) = (&self.actor.network, Vec::new(), Vec::new());
        match self.plan.rule {
            Rule::Softmax { temperature } => seen.features.iter().map(|number| number / temperature).collect(),
            Rule::Dense => {
                network.hidden(&self.spread(seen), &mut hidden);
                network.outputs(&hidden, &mut outputs);
                seen.clients.iter().map(|client| outputs[client.index()]).collect()
            }
            Rule::Shared => {
                for features in seen.features.chunks_exact(FEATURES) {
                    network.hidden(features, &mut hidden);
                    network.outputs(&hidden, &mut outputs);
                }
                outputs
            }
        }
    }

    /// The critic's hidden layer: of the numbers, or its mean over candidates.
    fn pooled(&self, seen: &Seen) -> Vec<f64> {
        let (network, mut hidden) = (&self.critic.network, Vec::new());
        if self.plan.rule == Rule::Dense {
            network.hidden(&self.spread(seen), &mut hidden);
            return hidden;
        }
        let mut mean = vec![0.0; self.plan.hidden];
        for features in seen.features.chunks_exact(FEATURES) {
            network.hidden(features, &mut hidden);
            mean.iter_mut().zip(&hidden).for_each(|(sum, unit)| *sum += unit);
        }
        mean.iter_mut().for_each(|sum| *sum /= seen.clients.len() as f64);
        mean
    }

    fn value_of(&self, seen: &Seen) -> f64 {
        let mut value = Vec::with_capacity(1);
        self.critic.network.outputs(&self.pooled(seen), &mut value);
        value[0]
    }

    /// δ of a selection, after a step of both networks if it is finite.
    fn learn(&mut self, taken: &Taken, next: &Seen) -> f64 {
        let Taken { seen, drawn, reward } = taken;
        let error = reward + self.plan.discount * self.value_of(next) - self.value_of(seen);
        if !error.is_finite() {
            return f64::NAN;
        }
        let mut gradient = std::mem::take(&mut self.gradient);
        if self.actor.learns() {
            self.actor_gradient(seen, drawn, -error, &mut gradient);
            self.actor.step(&gradient);
        }
        if self.critic.learns() {
            self.critic_gradient(seen, -error, &mut gradient);
            self.critic.step(&gradient);
        }
        self.gradient = gradient;
        error
    }

    /// The gradient of `scale·ln π`.
    fn actor_gradient(&self, seen: &Seen, drawn: &[u32], scale: f64, gradient: &mut Vec<f64>) {
        let mut slopes = draw::slopes(&self.logits(seen), drawn);
        slopes.iter_mut().for_each(|slope| *slope *= scale);
        let network = &self.actor.network;
        gradient.clear();
        gradient.resize(network.parameters.len(), 0.0);
        let mut hidden = Vec::new();
        let mut below = vec![0.0; self.plan.hidden];
        if self.plan.rule == Rule::Dense {
            let input = self.spread(seen);
            let mut of_all = vec![0.0; self.plan.clients];
            seen.clients.iter().zip(slopes).for_each(|(client, slope)| of_all[client.index()] = slope);
            network.hidden(&input, &mut hidden);
            network.outputs_back(&hidden, &of_all, gradient, &mut below);
            network.hidden_back(&input, &hidden, &below, gradient);
            return;
        }
        for (features, slope) in seen.features.chunks_exact(FEATURES).zip(slopes) {
            below.fill(0.0);
            network.hidden(features, &mut hidden);
            network.outputs_back(&hidden, &[slope], gradient, &mut below);
            network.hidden_back(features, &hidden, &below, gradient);
        }
    }

    /// The gradient of `scale·V(s)`.
    fn critic_gradient(&self, seen: &Seen, scale: f64, gradient: &mut Vec<f64>) {
        let network = &self.critic.network;
        gradient.clear();
        gradient.resize(network.parameters.len(), 0.0);
        let mut hidden = self.pooled(seen);
        let mut below = vec![0.0; self.plan.hidden];
        network.outputs_back(&hidden, &[scale], gradient, &mut below);
        if self.plan.rule == Rule::Dense {
            network.hidden_back(&self.spread(seen), &hidden, &below, gradient);
            return;
        }
        below.iter_mut().for_each(|slope| *slope /= seen.clients.len() as f64);
        for features in seen.features.chunks_exact(FEATURES) {
            network.hidden(features, &mut hidden);
            network.hidden_back(features, &hidden, &below, gradient);
        }
    }

    /// The weights, once they were drawn.
    pub fn tensors(&self) -> Vec<Tensor> {
        if !self.is_drawn {
            return Vec::new();
        }
        [self.actor.network.tensors("actor"), self.critic.network.tensors("critic")].concat()
    }

    /// The numbers behind the last selection.
    pub fn explain(&self, explanation: &mut Explanation) {
        if self.plan.rule == Rule::Shared {
            explanation.array("rounds_since", self.waited.iter().copied());
        }
        explanation.scalar("log_probability", self.log_probability);
        explanation.scalar("value", self.value);
        explanation.scalar("td_error", self.td_error);
    }
}

/// Numbers minus their mean, over their standard deviation (divisor n) plus 1e-8. What is not finite is left out of
/// both and becomes 0, the mean.
fn standardised(numbers: &[f64]) -> Vec<f64> {
    let known = || numbers.iter().filter(|number| number.is_finite());
    let count = known().count() as f64;
    let mean = known().sum::<f64>() / count;
    let deviation = sqrt(known().map(|number| (number - mean) * (number - mean)).sum::<f64>() / count);
    let one = |number: &f64| (number - mean) / (deviation + 1e-8);
    numbers.iter().map(one).map(|number| if number.is_finite() { number } else { 0.0 }).collect()
}
