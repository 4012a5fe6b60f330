//! Pisces: clients with large losses whose updates will not be old, for servers that do not wait; outliers are left
//! out.
//!
//! # Definition
//! Of a client's updates that have joined a model,
//! ```text
//! U_i     = n_i·loss_rms_i             of the last one: its examples, and the root mean square of their losses
//! τ_i     = the mean staleness of the last `history` ones: models made between the one sent and the one joined
//! score_i = U_i/(τ_i + 1)^beta         0 before the first
//! ```
//! A client is *explored* once it was selected. Of `m` that are selected, `X` explore, at most as many as candidates
//! are unexplored: at the first selection all, then the number of `m` independent tries that succeed with probability
//! `ε`, which is `exploration` at the second selection, and after each further one `max(exploration_decay·ε,
//! exploration_min)`. The `m − X` explored candidates with the largest scores are selected, the largest first, of equal
//! ones the smaller id; then unexplored ones at random; if there are too few of one kind, more of the other.
//!
//! With `outliers = true`, each update that joins, by ascending client, is compared with the last updates of all
//! clients whose jobs were dispatched in the same round as its own or in one of the `versions − 1` before. If these are
//! at least `pool` (those that make a model, if left out), their `loss_rms` are clustered by DBSCAN: a loss is in the
//! core if at least `neighbours` of them, itself counted, are within `distance` of it, and an outlier if none of the
//! core is. Outliers lose one of `credits`; a client without credits is a candidate no more, unless nobody else is
//! there.
//!
//! # Inputs
//! Losses, examples and staleness of updates.
//!
//! # Explanation
//! With `[record] explain = true`: `utility` (`U`), `staleness` (`τ`), both `null` before the first update, `score` and
//! `credits` of each candidate; `epsilon`, `null` at the first selection; `explore` (`X`). `after`: `utility` and
//! `staleness` of those selected.
//!
//! # Source
//! Z. Jiang, W. Wang, B. Li, B. Li, "Pisces: Efficient Federated Learning via Guided Asynchronous Training", SoCC 2022
//! (arXiv 2206.09264), participant selection; its program in Plato, `pisces_server.py`, and the later
//! `pisces_selection_strategy.py`. `exploration = 0.9`, `exploration_decay = 0.98`, `exploration_min = 0.3` and `beta =
//! 0.5` are of the program's scenario, the other numbers of the program.
//!
//! # Deviations from the source
//! - It also weighs updates by the same factor of staleness, and waits so that none becomes too old: here the server's
//!   part (`[protocol.buffered]`).
//! - The program clusters `U`; here losses are clustered, which do not depend on how many examples there are.
//! - Of each client the last update alone is compared, with its own round; the program keeps all of them.
//! - The program looks for outliers only when it is told to. Its later version also prefers fast clients; not here.
//!
//! # Cost
//! A forward pass over the examples of each update; O(K log K) a selection; with outliers O(P²) for each update, among
//! `P` that are compared.
//!
//! # Determinism
//! Stream (policy, server, turn): from the second selection on `m` uniforms, each of which is a success if it is below
//! `ε`; then a Fisher–Yates shuffle of the unexplored candidates, ascending, as far as it is needed.

use super::random::draw_first;
use super::ranked::largest;
use super::{
    BuildContext, Explanation, Feedback, Policy, PolicyRng, PolicySettings, Selection, SelectionRequest, ServerView,
    TrainingReport, Wants,
};
use fedgenie_core::config::{Complaint, check};
use fedgenie_core::failure::Failure;
use fedgenie_core::id::ClientId;
use fedgenie_core::math::float::power;
use fedgenie_core::rng::StreamRng;
use fedgenie_core::state::Stateful;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Parameters of `pisces`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Exponent of the staleness that is expected, at least 0.
    #[serde(default = "default_beta")]
    pub beta: f64,
    /// Updates over which a client's staleness is averaged, at least 1.
    #[serde(default = "five")]
    pub history: usize,
    /// Share ε that explores at the second selection, from 0 to 1.
    #[serde(default = "of_exploration")]
    pub exploration: f64,
    /// Factor of ε after each selection, above 0 and at most 1.
    #[serde(default = "of_decay")]
    pub exploration_decay: f64,
    /// Where ε stops falling, from 0 to 1.
    #[serde(default = "of_least")]
    pub exploration_min: f64,
    /// Whether outliers are left out.
    #[serde(default = "yes")]
    pub outliers: bool,
    /// How close losses are to be alike, above 0.
    #[serde(default = "of_distance")]
    pub distance: f64,
    /// Rounds whose updates are compared, at least 1.
    #[serde(default = "five_versions")]
    pub versions: u32,
    /// Updates below which nothing is compared, at least 1; those that make a model if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<usize>,
    /// Losses that make a core, itself counted, at least 1; half of `pool`, rounded down, and at least 2, if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub neighbours: Option<usize>,
    /// How often a client may be an outlier before it is left out, at least 1.
    #[serde(default = "five_versions")]
    pub credits: u32,
}

const fn default_beta() -> f64 {
    0.5
}
const fn five() -> usize {
    5
}
const fn five_versions() -> u32 {
    5
}
const fn of_exploration() -> f64 {
    0.9
}
const fn of_decay() -> f64 {
    0.98
}
const fn of_least() -> f64 {
    0.3
}
const fn yes() -> bool {
    true
}
const fn of_distance() -> f64 {
    0.5
}

impl Default for Config {
    fn default() -> Self {
        Self {
            beta: default_beta(),
            history: five(),
            exploration: of_exploration(),
            exploration_decay: of_decay(),
            exploration_min: of_least(),
            outliers: yes(),
            distance: of_distance(),
            versions: five_versions(),
            pool: None,
            neighbours: None,
            credits: five_versions(),
        }
    }
}

impl PolicySettings for Config {
    fn build(&self, context: &BuildContext<'_>) -> Result<Box<dyn Policy>, Complaint> {
        let share = |key, value| check(key, value, 0.0..=1.0, "a number from 0 to 1");
        let pool = self.pool.unwrap_or(context.per_model);
        let neighbours = self.neighbours.unwrap_or((pool / 2).max(2));
        let counts = [
            ("history", self.history),
            ("versions", self.versions as usize),
            ("pool", pool),
            ("neighbours", neighbours),
            ("credits", self.credits as usize),
        ];
        if let Some((key, _)) = counts.into_iter().find(|(_, count)| *count == 0) {
            return Err(Complaint::new(key, "found 0; expected at least 1"));
        }
        let decay = self.exploration_decay;
        Ok(Box::new(Pisces {
            beta: check("beta", self.beta, 0.0.., "a number of at least 0")?,
            history: self.history,
            epsilon: share("exploration", self.exploration)?,
            decay: check("exploration_decay", decay, f64::MIN_POSITIVE..=1.0, "a number above 0 and at most 1")?,
            least: share("exploration_min", self.exploration_min)?,
            outliers: self.outliers,
            distance: check("distance", self.distance, f64::MIN_POSITIVE.., "a number above 0")?,
            versions: self.versions,
            pool,
            neighbours,
            known: vec![Known { credits: self.credits, ..Known::default() }; context.clients],
            made: Decision::default(),
        }))
    }
}

#[derive(Stateful)]
#[state(check = Self::is_sound)]
struct Pisces {
    #[state(skip = "from the scenario")]
    beta: f64,
    #[state(skip = "from the scenario")]
    history: usize,
    /// ε of the next selection, if it is not the first.
    epsilon: f64,
    #[state(skip = "from the scenario")]
    decay: f64,
    #[state(skip = "from the scenario")]
    least: f64,
    #[state(skip = "from the scenario")]
    outliers: bool,
    #[state(skip = "from the scenario")]
    distance: f64,
    #[state(skip = "from the scenario")]
    versions: u32,
    #[state(skip = "from the scenario")]
    pool: usize,
    #[state(skip = "from the scenario")]
    neighbours: usize,
    #[state(each)]
    known: Vec<Known>,
    #[state(skip = "read before the next selection")]
    made: Decision,
}

/// What is known of a client.
#[derive(Clone, Debug, Default, Stateful)]
struct Known {
    /// `U`, `loss_rms`, and the round in which the job was dispatched, of the last update that joined.
    last: Option<(f64, (f64, u32))>,
    /// Staleness of the last updates.
    staleness: VecDeque<u32>,
    credits: u32,
}

impl Known {
    fn utility(&self) -> f64 {
        self.last.map_or(f64::NAN, |(utility, _)| utility)
    }

    /// τ.
    fn staleness(&self) -> f64 {
        let sum: f64 = self.staleness.iter().map(|&staleness| f64::from(staleness)).sum();
        sum / self.staleness.len() as f64
    }

    fn score(&self, beta: f64) -> f64 {
        self.last.map_or(0.0, |(utility, _)| utility / power(self.staleness() + 1.0, beta))
    }
}

/// The numbers behind a selection.
#[derive(Clone, Debug, Default)]
struct Decision {
    candidates: Vec<ClientId>,
    epsilon: f64,
    explore: usize,
}

/// The places of losses that are in no cluster of DBSCAN.
fn outliers(losses: &[f64], distance: f64, neighbours: usize) -> Vec<usize> {
    let near = |one: f64| losses.iter().filter(move |other| (one - **other).abs() <= distance).count();
    let core: Vec<f64> = losses.iter().copied().filter(|&loss| near(loss) >= neighbours).collect();
    let is_out = |place: &usize| core.iter().all(|core| (core - losses[*place]).abs() > distance);
    (0..losses.len()).filter(is_out).collect()
}

impl Pisces {
    /// Whether the loaded share is possible.
    fn is_sound(&self) -> bool {
        (0.0..=1.0).contains(&self.epsilon)
    }

    /// How many of a selection explore, if there are enough.
    fn tries(&mut self, is_first: bool, count: usize, rng: &mut StreamRng) -> usize {
        if is_first {
            self.made.epsilon = f64::NAN;
            return count;
        }
        self.made.epsilon = self.epsilon;
        let successes = (0..count).filter(|_| rng.uniform() < self.epsilon).count();
        self.epsilon = (self.epsilon * self.decay).max(self.least);
        successes
    }

    fn learn(&mut self, report: &TrainingReport<'_>) {
        let loss_rms = report.loss_rms.expect("wanted statistics of updates are told");
        let utility = report.examples as f64 * loss_rms;
        if !utility.is_finite() {
            return;
        }
        let (round, history) = (report.round.0, self.history);
        let known = &mut self.known[report.client.index()];
        known.last = Some((utility, (loss_rms, round)));
        known.staleness.push_back(report.staleness);
        if known.staleness.len() > history {
            known.staleness.pop_front();
        }
        if self.outliers {
            self.compare(round);
        }
    }

    /// Looks for outliers among the updates of a round and of those before.
    fn compare(&mut self, round: u32) {
        let rounds = round.saturating_sub(self.versions - 1)..=round;
        let of = |known: &Known| known.last.filter(|(_, (_, round))| rounds.contains(round)).map(|(_, last)| last.0);
        let (places, losses): (Vec<usize>, Vec<f64>) =
            self.known.iter().enumerate().filter_map(|(place, known)| Some((place, of(known)?))).unzip();
        if losses.len() < self.pool {
            return;
        }
        for outlier in outliers(&losses, self.distance, self.neighbours) {
            let credits = &mut self.known[places[outlier]].credits;
            *credits = credits.saturating_sub(1);
        }
    }
}

impl Policy for Pisces {
    fn wants(&self) -> Wants {
        Wants { loss_rms: true, ..Wants::default() }
    }

    fn needs_losses(&self) -> bool {
        true
    }

    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        view: &ServerView<'_>,
        rng: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        let has_credits = |client: &ClientId| self.known[client.index()].credits > 0;
        let mut candidates: Vec<ClientId> = ask.available.list().iter().copied().filter(has_credits).collect();
        if candidates.is_empty() {
            candidates.extend(ask.available.list());
        }
        let (cohort, _) = ask.sizes(&candidates);
        let is_explored = |client: &ClientId| view.counts[client.index()] > 0;
        let (explored, mut unexplored): (Vec<ClientId>, Vec<ClientId>) =
            candidates.iter().partition(|client| is_explored(client));
        let wanted = self.tries(ask.turn.0 == 1, cohort, rng.policy);
        let explore = wanted.min(unexplored.len()).max(cohort.saturating_sub(explored.len()));
        let score = |client: &ClientId| self.known[client.index()].score(self.beta);
        let scores: Vec<f64> = explored.iter().map(score).collect();
        selection.extend(largest(&explored, &scores, cohort - explore));
        draw_first(&mut unexplored, explore, rng.policy);
        selection.extend(unexplored);
        self.made = Decision { candidates, explore, epsilon: self.made.epsilon };
        Ok(())
    }

    fn observe(&mut self, feedback: &Feedback<'_>) -> Result<(), Failure> {
        if let Feedback::Trained(report) = feedback {
            self.learn(report);
        }
        Ok(())
    }

    fn explain(
        &self,
        _: &SelectionRequest<'_>,
        _: &ServerView<'_>,
        _: &[ClientId],
        explanation: &mut Explanation,
    ) -> Result<(), Failure> {
        let known = || self.made.candidates.iter().map(|client| &self.known[client.index()]);
        explanation.clients(self.made.candidates.iter().copied());
        explanation.array("utility", known().map(Known::utility));
        explanation.array("staleness", known().map(Known::staleness));
        explanation.array("score", known().map(|known| known.score(self.beta)));
        explanation.array("credits", known().map(|known| f64::from(known.credits)));
        explanation.scalar("epsilon", self.made.epsilon);
        explanation.scalar("explore", self.made.explore as f64);
        Ok(())
    }

    fn explain_after(&self, clients: &[ClientId], explanation: &mut Explanation) -> Result<(), Failure> {
        let known = || clients.iter().map(|client| &self.known[client.index()]);
        explanation.clients(clients.iter().copied());
        explanation.array("utility", known().map(Known::utility));
        explanation.array("staleness", known().map(Known::staleness));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Within 0.5 of each other are 1, 1.2 and 1.5, and 1.5 and 2: with three neighbours 1, 1.2 and 1.5 are the core
    /// (1.5 has 1, 1.2, itself and 2), 2 is beside it, and 5 and 9 are out. With four 1.5 alone is, and with two 5 and
    /// 5.4 would be a cluster of their own.
    #[test]
    fn outliers_by_hand() {
        let losses = [5.0, 1.0, 9.0, 1.5, 1.2, 2.0];
        assert_eq!(outliers(&losses, 0.5, 3), [0, 2]);
        assert_eq!(outliers(&losses, 0.5, 4), [0, 2]);
        assert_eq!(outliers(&losses, 0.5, 5), [0, 1, 2, 3, 4, 5]);
        assert_eq!(outliers(&[5.0, 5.4, 1.0], 0.5, 2), [2]);
        assert_eq!(outliers(&losses, 0.5, 1), [0_usize; 0]);
    }
}
