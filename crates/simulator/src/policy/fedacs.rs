//! FedACS: a bandit that chooses the number of clients, and a second one that chooses the clients.
//!
//! # Definition
//! With `N = min(clients, cohort)` there is an arm for each number `m` of clients from 1 to `N`, and one for each
//! client. After a round `t` in which `|V_t|` clients were selected and `metric` is `r_t`,
//!
//! ```text
//! R̂_m ← R̂_m + (1 − r_t/Tg)·ln t − b_t/B     for m = |V_t|                                     (14)
//! R̄_i ← R̄_i + (1 − r_t/Tg)·ln t             for each i whose update arrived                    (15)
//! ```
//!
//! with `Tg` the `target`, `B` the `budget` and `b_t` the bytes of the round, both ways, probes included. Where larger
//! values of the metric are better, `1 − r_t/Tg` changes its sign. `N̂_m` and `N̄_i` count how often an arm was
//! rewarded. Before round `t`
//!
//! ```text
//! F_m = R̂_m/N̂_m + sqrt(2·ln t / N̂_m),  +∞ if N̂_m = 0                                          (16)
//! I_i = R̄_i/N̄_i + sqrt(2·ln t / N̄_i),  +∞ if N̄_i = 0                                          (17)
//! ```
//!
//! Allowed are numbers from `L`, the fewest clients of a round (`[budget] least`, or else 1), to as many clients as are
//! available, the cohort lets in and the rest of the budget pays for. Where these are fewer than `L`, all of them.
//!
//! | round | number | clients |
//! |---|---|---|
//! | 1 | the largest allowed, `N` if everybody is there | at random |
//! | 2 … `N` | the next of a random permutation of `L … N−1` that is allowed; if there is none, as later | at random |
//! | later | the allowed number with the largest `F_m` | the available clients with the largest `I_i` |
//!
//! `number = "random"` and `clients = "random"` take, in later rounds, an allowed number, or clients, at random: each
//! as likely as any other.
//!
//! # Inputs
//! `metric` of each round, its traffic, and the clients whose updates arrived before it closed. A round without the
//! metric rewards nobody. Late updates that join a later round earn nothing.
//!
//! # Explanation
//! With `[record] explain = true`: `mean` reward, `count` and `score` (17) of each available client, before the
//! selection, whether it is by score or at random; in `number` the same of each number from 1 to `N`, by (16). Where an
//! arm was never rewarded, mean and score are `null`.
//!
//! # Source
//! H. Xu, X. Gao, J. Liu, Q. Ma, L. Huang, "FedACS: An Adaptive Client Selection Framework for Communication-Efficient
//! Federated Graph Learning", Algorithm 1 and equations (14)–(17).
//!
//! # Deviations from the source
//! - `t` is the finished round in (14) and (15), the coming one in (16) and (17).
//! - With the logarithm of (14), round 1 earns the number `N` nothing but its price: whatever came later, `N` keeps the
//!   best mean as long as the metric is short of the target, so that round `N + 1` mostly has everybody again.
//! - The source has no clients that are away or do not answer: a round in which nothing arrives rewards its number.
//! - With `L` above 1 fewer than `N − 1` numbers are left to be tried, and scores decide from an earlier round on.
//! - The source rewards by the test metric. `metric = "valid_rmse"` keeps test data out of the decisions.
//!
//! # Cost
//! O(K + N) a round.
//!
//! # Determinism
//! Stream (policy, 0, round): in round 1 a Fisher–Yates shuffle of `L … N−1`, from the last place down; then, in any
//! round, first a random number if there is one (uniform below the count of allowed ones, added to the smallest), then
//! random clients as `random` draws them. Scores within 1e-12 of the largest, or of the last one taken, are equal: the
//! smallest number wins, and the smallest ids. Clients are asked in ascending order.

use super::random::{Deck, draw_uniform};
use super::{
    BuildContext, Explanation, Feedback, Known, Policy, PolicyRng, PolicySettings, RoundReport, Selection,
    SelectionRequest, ServerView,
};
use fedgenie_core::config::{Complaint, check};
use fedgenie_core::failure::Failure;
use fedgenie_core::id::ClientId;
use fedgenie_core::math::float::{ln, sqrt};
use fedgenie_core::metric::{Better, MetricId, asked, value_of};
use fedgenie_core::oracle::top_m;
use fedgenie_core::record::Outcome;
use fedgenie_core::rng::StreamRng;
use fedgenie_core::state::Stateful;
use fedgenie_core::units::{Amount, Bytes};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Parameters of `fedacs`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The metric that rewards: any that is measured after each round.
    #[serde(default = "test_rmse")]
    pub metric: String,
    /// The value `Tg` that the metric is expected to reach, positive; that of `[stop] target` if left out, where that
    /// names the same metric.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<f64>,
    /// The traffic `B` that rounds are charged for; that of `[budget]` if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Amount<Bytes>>,
    /// How the number of clients is chosen after all were tried.
    #[serde(default)]
    pub number: By,
    /// How the clients are chosen from then on.
    #[serde(default)]
    pub clients: By,
}

fn test_rmse() -> String {
    "test_rmse".to_owned()
}

/// How one of the two is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// By the largest upper confidence bound.
    #[default]
    Ucb,
    /// At random, each as likely as any other.
    Random,
}

impl PolicySettings for Config {
    fn resolve(&mut self, known: Known<'_>) -> Result<(), Complaint> {
        let of_stop = known.target.filter(|(metric, _)| *metric == self.metric).map(|(_, value)| value);
        self.target = self.target.or(of_stop);
        Ok(())
    }

    fn build(&self, context: &BuildContext<'_>) -> Result<Box<dyn Policy>, Complaint> {
        if !context.in_rounds {
            let message = "fedacs learns from the rounds of one server; take synchronous, over-selection or deadline";
            return Err(Complaint::new("", message));
        }
        let metric = asked(context.metrics, "metric", &self.metric)?;
        if !context.evaluates_every_round {
            let message = "fedacs is rewarded by a metric of every round; give every = 1 in [evaluate]";
            return Err(Complaint::new("", message));
        }
        let Some(target) = self.target else {
            let message = format!(
                "is missing, and there is no [stop] target of {} to take it from; write for example target = 1.05",
                self.metric
            );
            return Err(Complaint::new("target", message));
        };
        let budget = match (self.budget, context.budget) {
            (Some(budget), _) => budget.0,
            (None, Some(budget)) => budget as f64,
            (None, None) => {
                let message = "is missing, and there is no [budget] to take it from; write for example \
                               budget = \"30 MB\"";
                return Err(Complaint::new("budget", message));
            }
        };
        let most = context.among.min(context.cohort);
        if context.least > most {
            let message = format!(
                "fedacs has to choose at least {} clients a round, and may choose at most {most}; lower [budget] least",
                context.least
            );
            return Err(Complaint::new("", message));
        }
        Ok(Box::new(FedAcs {
            metric: metric.id,
            better: metric.better,
            target: check("target", target, f64::MIN_POSITIVE.., "a number above 0")?,
            budget: check("budget", budget, f64::MIN_POSITIVE.., "a positive amount of traffic")?,
            number: self.number,
            clients: self.clients,
            least: context.least.max(1),
            most,
            untried: Vec::new(),
            has_explored: false,
            of_number: Arms::new(most),
            of_client: Arms::new(context.clients),
            arrived: Vec::new(),
            deck: Deck::default(),
            chosen: Vec::new(),
            scores: [Vec::new(), Vec::new()],
        }))
    }
}

/// The rewards of arms.
#[derive(Clone, Debug, Default, Stateful)]
struct Arms {
    #[state(each)]
    rewards: Vec<f64>,
    #[state(each)]
    counts: Vec<u32>,
}

impl Arms {
    fn new(arms: usize) -> Self {
        Self { rewards: vec![0.0; arms], counts: vec![0; arms] }
    }

    fn reward(&mut self, arm: usize, reward: f64) {
        self.rewards[arm] += reward;
        self.counts[arm] += 1;
    }

    /// Mean reward; NaN for an arm that was never played.
    fn mean(&self, arm: usize) -> f64 {
        match self.counts[arm] {
            0 => f64::NAN,
            count => self.rewards[arm] / f64::from(count),
        }
    }

    /// (16) and (17), with the logarithm of the coming round.
    fn score(&self, arm: usize, ln_t: f64) -> f64 {
        match self.counts[arm] {
            0 => f64::INFINITY,
            count => self.mean(arm) + sqrt(2.0 * ln_t / f64::from(count)),
        }
    }

    fn explain(&self, arms: impl Iterator<Item = usize> + Clone, scores: &[f64], explanation: &mut Explanation) {
        explanation.array("mean", arms.clone().map(|arm| self.mean(arm)));
        explanation.array("count", arms.map(|arm| f64::from(self.counts[arm])));
        explanation.array("score", scores.iter().copied());
    }
}

#[derive(Stateful)]
#[state(check = Self::is_sound)]
struct FedAcs {
    #[state(skip = "from the scenario")]
    metric: MetricId,
    #[state(skip = "from the task")]
    better: Better,
    #[state(skip = "from the scenario")]
    target: f64,
    #[state(skip = "from the scenario")]
    budget: f64,
    #[state(skip = "from the scenario")]
    number: By,
    #[state(skip = "from the scenario")]
    clients: By,
    /// `L`.
    #[state(skip = "from the scenario")]
    least: usize,
    /// `N`.
    #[state(skip = "from the scenario")]
    most: usize,
    /// The rest of the permutation, in its order.
    untried: Vec<u32>,
    /// Whether some round found no number left to try.
    has_explored: bool,
    /// The number `m` is arm `m − 1`.
    of_number: Arms,
    of_client: Arms,
    /// Clients whose updates have arrived in the round under way.
    arrived: Vec<ClientId>,
    #[state(skip = "a buffer of one selection")]
    deck: Deck,
    #[state(skip = "a buffer of one selection")]
    chosen: Vec<u32>,
    /// Scores of numbers and of available clients, in the last selection.
    #[state(skip = "read before the next selection")]
    scores: [Vec<f64>; 2],
}

impl FedAcs {
    /// Whether the loaded numbers, clients and rewards are possible.
    fn is_sound(&self) -> bool {
        let Self { most, untried, of_number, of_client, arrived, .. } = self;
        untried.iter().all(|&number| (1..=*most).contains(&(number as usize)))
            && arrived.iter().all(|client| client.index() < of_client.counts.len())
            && of_number.rewards.iter().chain(&of_client.rewards).all(|reward| reward.is_finite())
    }
}

impl FedAcs {
    /// The number of clients, at most `most`, and whether they are drawn at random because numbers are still being
    /// tried.
    fn choose_number(&mut self, ask: &SelectionRequest<'_>, most: usize, rng: &mut StreamRng) -> (usize, bool) {
        if ask.round.0 == 1 {
            self.untried = (self.least as u32..self.most as u32).collect();
            rng.shuffle(&mut self.untried);
            return (most, true);
        }
        let least = self.least.min(most);
        let is_allowed = |&number: &u32| (least..=most).contains(&(number as usize));
        if ask.round.0 as usize <= self.most
            && let Some(place) = self.untried.iter().position(is_allowed)
        {
            return (self.untried.remove(place) as usize, true);
        }
        self.has_explored = true;
        match self.number {
            By::Random => (least + rng.below((most - least + 1) as u64) as usize, false),
            By::Ucb => {
                top_m(&self.scores[0][least - 1..most], 1, &mut self.chosen);
                (least + self.chosen[0] as usize, false)
            }
        }
    }

    /// (14) and (15).
    fn learn(&mut self, report: &RoundReport<'_>) {
        let value = value_of(report.metrics, self.metric).filter(|value| value.is_finite());
        let (Some(value), Some(arm)) = (value, report.selected.len().checked_sub(1)) else { return };
        if arm >= self.most {
            return;
        }
        self.arrived.sort_unstable();
        self.arrived.dedup();
        let short = match self.better {
            Better::Lower => 1.0 - value / self.target,
            Better::Higher => value / self.target - 1.0,
        };
        let reward = short * ln(f64::from(report.round.0));
        let bytes = report.down_bytes.saturating_add(report.up_bytes) as f64;
        self.of_number.reward(arm, reward - bytes / self.budget);
        self.arrived.iter().for_each(|client| self.of_client.reward(client.index(), reward));
    }
}

impl Policy for FedAcs {
    fn effective(&self) -> Vec<(&'static str, Value)> {
        vec![("budget", serde_json::json!(Amount::<Bytes>::new(self.budget))), ("target", self.target.into())]
    }

    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        _: &ServerView<'_>,
        rng: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        let available = ask.available.list();
        let ln_t = ln(f64::from(ask.round.0));
        let [of_numbers, of_clients] = &mut self.scores;
        of_numbers.clear();
        of_numbers.extend((0..self.most).map(|arm| self.of_number.score(arm, ln_t)));
        of_clients.clear();
        of_clients.extend(available.iter().map(|client| self.of_client.score(client.index(), ln_t)));
        let most = self.most.min(ask.sizes(available).0);
        let (number, is_trying) = self.choose_number(ask, most, rng.policy);
        if is_trying || self.clients == By::Random {
            draw_uniform(&ask.available, number, &mut self.deck, rng.policy, selection);
            selection.sort_unstable();
        } else {
            top_m(&self.scores[1], number, &mut self.chosen);
            selection.extend(self.chosen.iter().map(|&index| available[index as usize]));
        }
        Ok(())
    }

    fn observe(&mut self, feedback: &Feedback<'_>) -> Result<(), Failure> {
        match feedback {
            Feedback::Job(job) if job.outcome == Outcome::Arrived => self.arrived.push(job.client),
            Feedback::Round(report) => {
                self.learn(report);
                self.arrived.clear();
            }
            Feedback::Job(_) | Feedback::Trained(_) => {}
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
        let available = ask.available.list();
        explanation.clients(available.iter().copied());
        let [of_numbers, of_clients] = &self.scores;
        self.of_client.explain(available.iter().map(|client| client.index()), of_clients, explanation);
        let mut number = Explanation::default();
        self.of_number.explain(0..self.most, of_numbers, &mut number);
        explanation.part("number", number);
        Ok(())
    }

    fn warning(&self) -> Option<String> {
        (!self.has_explored).then(|| {
            format!(
                "the run was over before fedacs chose anything by its rewards: its first rounds try all numbers of \
                 clients up to {}; give a larger budget or more rounds, or a smaller cohort",
                self.most
            )
        })
    }
}
