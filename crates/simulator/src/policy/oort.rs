//! Oort: clients with large losses that answer in time, beside some that were never asked.
//!
//! # Definition
//! Of a client whose update has arrived are known, from its last update, `U_i = n_i·loss_rms` (`n_i` its examples,
//! `loss_rms` the root mean square of their losses), `L_i`, the selection in whose round it arrived, and `D_i`, from
//! dispatch to arrival. Before, it is *unexplored*, and `D_i` is the declared latency: the medians of download, compute
//! and upload. With `R` the number of the selection from 1 and `K` the number of clients to be selected:
//!
//! | | `variant = "paper"` | `variant = "released"` |
//! |---|---|---|
//! | base of the score | `u_i = min(U_i, c)` | `u_i = (min(U_i, c) − low)/max(high − low, 1e-4)`, `high = max U`, `low = 0.999·min U` |
//! | preferred duration `T` | `Δ` at first | the `D` at place `⌊threshold/100·count⌋` of all the server's clients, ascending from 0; infinite from 100 on |
//! | every `W` rounds, from `2W` on | `T ← T + Δ` if `a < b` | threshold up by `pacer_delta`, to 100 at most, if `\|a − b\| ≤ 0.1·b`; else down, to `pacer_delta` at least, if `\|a − b\| ≥ 5·b` |
//! | `a`, `b`: sums over the last `W` rounds, and over the `W` before, of | `ΣU` of the round's updates | the mean `U` of those exploited whose updates came; 0 if none did |
//! | `cutoff` | 0.95 | 0.7 |
//! | unexplored clients are drawn | in proportion to `1/D_i` | in proportion to `n_i·min(1, T/D_i)^penalty`, of the `5X` with the largest |
//!
//! ```text
//! score_i = (u_i + sqrt(0.1·ln R / L_i)) · min(1, T/D_i)^penalty
//! c       = the U at place ⌊clip·count⌋ of the explored candidates, ascending from 0
//! ε       ← max(0.98·ε, 0.2) before each selection, from `exploration`
//! E       = ⌊K(1 − ε)⌋ are exploited, X = K − E explore; if there are too few of one kind, more of the other
//! ```
//!
//! *Admitted* are explored candidates whose score is at least `cutoff` times the `E`-th largest. `E` of them are drawn
//! one after the other, each in proportion to the scores of those left; then `X` unexplored ones.
//!
//! With `blacklist_rounds = n`, clients of which more than `n` updates have arrived are candidates no more: those with
//! the most updates, at most 30 % of the server's clients; unless nobody else is there.
//!
//! # Inputs
//! Losses, examples and latencies of updates; data sizes and declared latencies.
//!
//! # Explanation
//! With `[record] explain = true`: `score` of each candidate, `null` if unexplored; `epsilon`, `preferred_s` (`T`,
//! `null` if infinite), `clip` (`c`) and `cutoff` (the smallest score admitted), `null` if nothing is exploited;
//! `exploit` and `explore`, how many; `admitted`, ids. `after`: `utility` (`U`) and `latency_s` (`D`) of those
//! selected.
//!
//! # Source
//! F. Lai, X. Zhu, H. V. Madhyastha, M. Chowdhury, "Oort: Efficient Federated Learning via Guided Participant
//! Selection", OSDI 2021, Algorithm 1; the program `oort.py` that its authors released.
//!
//! # Deviations from the source
//! - Rounds are the policy's selections. A late update counts in the round that it joins.
//! - Algorithm 1 leaves open where Δ comes from: by default it is the median of declared latencies. Its sums of `U` are
//!   of all updates of a round.
//! - The program estimates losses by the last mini-batch in some of its descendants; here all examples count, in both
//!   variants. It adds at least ten times as many admitted clients as are exploited, and counts the cut-off from the
//!   rank after the last; here both are as in Algorithm 1.
//! - A threshold above 100 stays, and no client is ever too slow: the program is shipped with 101, of which a window
//!   with five times the utility of the one before takes 10.
//! - ε is not raised where it begins below its least value, and exploration goes on whenever somebody
//!   unexplored is there; the program ends it for good when nobody is left. The program's scale leaves out clients
//!   without loss.
//! - Where all weights are 0, all are alike.
//!
//! # Cost
//! A forward pass over the examples of each update; O(K log K) a selection.
//!
//! # Determinism
//! Stream (policy, server, turn): a uniform for each one admitted, by ascending id, if anybody is exploited; then one
//! for each unexplored candidate that is considered, by ascending id, if anybody explores. Whose exponential clock
//! `−ln(u)/weight` rings first comes first, which is the law of successive draws; then the smaller id. Equal weights at
//! the end of the best `5X` go to smaller ids.

pub(in crate::policy) mod config;
mod pacer;

pub use config::{Config, Step, Variant};

use super::random::draw_by_weight;
use super::{
    Explanation, Feedback, Policy, PolicyRng, Selection, SelectionRequest, ServerView, TrainingReport, Wants,
    in_seconds, whole,
};
use fedgenie_core::failure::Failure;
use fedgenie_core::id::ClientId;
use fedgenie_core::math::float::{floor, ln, power, sqrt};
use fedgenie_core::state::Stateful;
use pacer::Pacer;
use serde_json::Value;

/// The most clients that are blacklisted, as a share of all.
const BLACKLISTED: f64 = 0.3;
/// Unexplored clients considered for each one that is to explore.
const CONSIDERED: usize = 5;

/// The policy; `pyramidfl` has one inside.
#[derive(Stateful)]
#[state(check = Self::is_sound)]
pub(super) struct Oort {
    #[state(skip = "from the scenario")]
    variant: Variant,
    pacer: Pacer,
    #[state(skip = "from the scenario")]
    cutoff: f64,
    #[state(skip = "from the scenario")]
    penalty: f64,
    #[state(skip = "from the scenario")]
    clip: f64,
    /// ε of the last selection.
    epsilon: f64,
    #[state(skip = "from the scenario")]
    decay: f64,
    #[state(skip = "from the scenario")]
    least: f64,
    #[state(skip = "from the scenario")]
    blacklist: Option<u32>,
    /// The last selection.
    turn: u32,
    /// Seconds, declared or as last observed.
    #[state(each)]
    latency: Vec<f64>,
    /// `U`; NaN for unexplored clients.
    #[state(each)]
    utility: Vec<f64>,
    /// The selection in whose round the last update came.
    #[state(each)]
    last: Vec<u32>,
    #[state(each)]
    updates: Vec<u32>,
    /// Whether the client was exploited when it was last selected.
    #[state(each)]
    is_exploited: Vec<bool>,
    #[state(skip = "a buffer of one selection")]
    race: Vec<(f64, ClientId)>,
    #[state(skip = "read before the next selection")]
    made: Decision,
}

/// The numbers behind a selection.
#[derive(Clone, Debug, Default)]
struct Decision {
    candidates: Vec<ClientId>,
    /// NaN for unexplored clients.
    scores: Vec<f64>,
    /// What stands in the place of scores, where another policy says so.
    ranks: Option<Vec<f64>>,
    preferred: f64,
    clip: f64,
    cutoff: f64,
    exploit: usize,
    explore: usize,
    admitted: Vec<ClientId>,
}

impl Oort {
    /// Whether the loaded rates, latencies and utilities are possible.
    fn is_sound(&self) -> bool {
        let Self { epsilon, turn, latency, utility, last, .. } = self;
        let is_known =
            |(utility, last): (&f64, &u32)| utility.is_nan() || *utility >= 0.0 && (1..=*turn).contains(last);
        (0.0..=1.0).contains(epsilon)
            && latency.iter().all(|seconds| *seconds >= 0.0)
            && utility.iter().zip(last).all(is_known)
    }
}

impl Oort {
    /// The candidates of the last selection, without those that are blacklisted.
    pub(super) fn candidates(&self) -> &[ClientId] {
        &self.made.candidates
    }

    fn is_explored(&self, client: ClientId) -> bool {
        !self.utility[client.index()].is_nan()
    }

    /// `min(1, T/D)^penalty`.
    fn penalty(&self, client: ClientId) -> f64 {
        let (latency, preferred) = (self.latency[client.index()], self.made.preferred);
        if latency > preferred { power(preferred / latency, self.penalty) } else { 1.0 }
    }

    /// Finds the candidates: available clients that are not blacklisted.
    fn find_candidates(&mut self, scope: &[ClientId], available: &[ClientId]) {
        let candidates = &mut self.made.candidates;
        candidates.clear();
        candidates.extend(available);
        let Some(rounds) = self.blacklist else { return };
        let updates = |client: &ClientId| self.updates[client.index()];
        let mut black: Vec<ClientId> = scope.iter().copied().filter(|client| updates(client) > rounds).collect();
        black.sort_by_key(|client| (std::cmp::Reverse(updates(client)), *client));
        black.truncate(floor(BLACKLISTED * scope.len() as f64) as usize);
        black.sort_unstable();
        candidates.retain(|client| black.binary_search(client).is_err());
        if candidates.is_empty() {
            candidates.extend(available);
        }
    }

    /// Clip and score of each candidate.
    fn score(&mut self) {
        let mut known: Vec<f64> = self.made.candidates.iter().map(|client| self.utility[client.index()]).collect();
        known.retain(|utility| !utility.is_nan());
        known.sort_unstable_by(f64::total_cmp);
        let place = floor(self.clip * known.len() as f64) as usize;
        let clip = known.get(place).or(known.last()).copied().unwrap_or(f64::NAN);
        let [low, high] = [known.first(), known.last()].map(|utility| utility.copied().unwrap_or(f64::NAN));
        let ln_turn = ln(f64::from(self.turn));
        let of = |client: &ClientId| {
            let utility = self.utility[client.index()];
            if utility.is_nan() {
                return f64::NAN;
            }
            let clipped = utility.min(clip);
            let base = match self.variant {
                Variant::Paper => clipped,
                Variant::Released => (clipped - 0.999 * low) / (high - 0.999 * low).max(1e-4),
            };
            (base + sqrt(0.1 * ln_turn / f64::from(self.last[client.index()]))) * self.penalty(*client)
        };
        let scores: Vec<f64> = self.made.candidates.iter().map(of).collect();
        (self.made.scores, self.made.clip) = (scores, clip);
    }

    /// The numbers of clients that are exploited and that explore, of `count` in all, and the admitted clients.
    fn admit(&mut self, count: usize) {
        let made = &mut self.made;
        let scores = made.ranks.as_ref().unwrap_or(&made.scores);
        let mut sorted: Vec<f64> = scores.iter().copied().filter(|score| !score.is_nan()).collect();
        let unexplored = made.candidates.len() - sorted.len();
        let wanted = whole(count as f64 * (1.0 - self.epsilon));
        made.exploit = wanted.max(count.saturating_sub(unexplored)).min(sorted.len());
        made.explore = (count - made.exploit).min(unexplored);
        sorted.sort_unstable_by(|one, other| other.total_cmp(one));
        made.cutoff = match made.exploit {
            0 => f64::NAN,
            // Scores are never below 0, and what stands in their place admits its own last rank.
            exploit => sorted[exploit - 1].min(self.cutoff * sorted[exploit - 1]),
        };
        made.admitted.clear();
        let is_admitted = |(_, score): &(&ClientId, &f64)| **score >= made.cutoff;
        made.admitted.extend(made.candidates.iter().zip(scores).filter(is_admitted).map(|(client, _)| *client));
    }

    /// The unexplored candidates that are considered, each with its weight, by ascending id.
    fn considered(&self, view: &ServerView<'_>) -> Vec<(ClientId, f64)> {
        let unexplored = self.made.candidates.iter().copied().filter(|client| !self.is_explored(*client));
        if self.variant == Variant::Paper {
            // A latency of nothing is taken for a nanosecond.
            return unexplored.map(|client| (client, 1.0 / self.latency[client.index()].max(1e-9))).collect();
        }
        let size = |client: ClientId| f64::from(view.data_sizes[client.index()]);
        let mut weighed: Vec<_> = unexplored.map(|client| (client, size(client) * self.penalty(client))).collect();
        let best = CONSIDERED * self.made.explore;
        if best < weighed.len() {
            weighed.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
            weighed.truncate(best);
            weighed.sort_unstable_by_key(|(client, _)| *client);
        }
        weighed
    }

    /// Draws `count`, one after the other, in proportion to weight.
    fn draw(&mut self, weighed: &[(ClientId, f64)], count: usize, rng: &mut PolicyRng<'_>, out: &mut Vec<ClientId>) {
        if count == 0 {
            return;
        }
        let ids: Vec<ClientId> = weighed.iter().map(|(client, _)| *client).collect();
        let is_flat = weighed.iter().all(|(_, weight)| *weight == 0.0);
        let weight = |client: ClientId| {
            let place = ids.binary_search(&client).expect("a drawn client was weighed");
            if is_flat { 1.0 } else { weighed[place].1 }
        };
        draw_by_weight(&ids, weight, count, rng.policy, &mut self.race, out);
    }

    /// Ranks the candidates of a selection: who they are, and their scores.
    pub(super) fn rank(&mut self, ask: &SelectionRequest<'_>) {
        self.turn = ask.turn.0;
        if self.epsilon > self.least {
            self.epsilon = (self.epsilon * self.decay).max(self.least);
        }
        let scope = ask.available.scope();
        self.made.preferred = self.pacer.preferred(scope, &self.latency);
        self.find_candidates(scope, ask.available.list());
        self.score();
        self.made.ranks = None;
    }

    /// The scores of the candidates of the last selection; NaN for unexplored ones.
    pub(super) fn scores(&self) -> &[f64] {
        &self.made.scores
    }

    /// Lets other numbers stand in the place of the candidates' scores, NaN for unexplored ones.
    pub(super) fn replace_scores(&mut self, ranks: Vec<f64>) {
        self.made.ranks = Some(ranks);
    }

    /// Chooses among ranked candidates.
    pub(super) fn choose(
        &mut self,
        ask: &SelectionRequest<'_>,
        view: &ServerView<'_>,
        rng: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) {
        self.admit(ask.sizes(&self.made.candidates).0);
        let scores = self.made.ranks.as_ref().unwrap_or(&self.made.scores);
        let score = |client: &ClientId| {
            let place = self.made.candidates.binary_search(client).expect("an admitted client is a candidate");
            (*client, scores[place].max(0.0))
        };
        let admitted: Vec<(ClientId, f64)> = self.made.admitted.iter().map(score).collect();
        self.draw(&admitted, self.made.exploit, rng, selection);
        let exploited = selection.len();
        if self.made.explore > 0 {
            let considered = self.considered(view);
            // Drawn into a list of its own: those exploited stay in front.
            let mut explored = Vec::new();
            self.draw(&considered, self.made.explore, rng, &mut explored);
            selection.extend(explored);
        }
        for (place, client) in selection.iter().enumerate() {
            self.is_exploited[client.index()] = place < exploited;
        }
    }

    fn learn(&mut self, report: &TrainingReport<'_>) {
        let client = report.client.index();
        let loss_rms = report.loss_rms.expect("wanted statistics of updates are told");
        let utility = report.examples as f64 * loss_rms;
        self.latency[client] = report.latency.seconds();
        if utility.is_finite() {
            self.utility[client] = utility;
            self.last[client] = self.turn;
            self.updates[client] = self.updates[client].saturating_add(1);
            self.pacer.achieve(utility, self.is_exploited[client]);
        }
    }
}

impl Policy for Oort {
    fn wants(&self) -> Wants {
        Wants { loss_rms: true, ..Wants::default() }
    }

    fn needs_losses(&self) -> bool {
        true
    }

    fn effective(&self) -> Vec<(&'static str, Value)> {
        self.pacer.delta().map(|delta| ("pacer_delta", in_seconds(delta))).into_iter().collect()
    }

    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        view: &ServerView<'_>,
        rng: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        self.rank(ask);
        self.choose(ask, view, rng, selection);
        Ok(())
    }

    fn observe(&mut self, feedback: &Feedback<'_>) -> Result<(), Failure> {
        match feedback {
            Feedback::Trained(report) => self.learn(report),
            Feedback::Round(_) => self.pacer.close_round(),
            Feedback::Job(_) => {}
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
        let made = &self.made;
        explanation.clients(made.candidates.iter().copied());
        explanation.array("score", made.scores.iter().copied());
        explanation.scalar("epsilon", self.epsilon);
        explanation.scalar("preferred_s", made.preferred);
        explanation.scalar("clip", made.clip);
        explanation.scalar("cutoff", made.cutoff);
        explanation.scalar("exploit", made.exploit as f64);
        explanation.scalar("explore", made.explore as f64);
        explanation.ids("admitted", made.admitted.iter().copied());
        Ok(())
    }

    fn explain_after(&self, clients: &[ClientId], explanation: &mut Explanation) -> Result<(), Failure> {
        explanation.clients(clients.iter().copied());
        explanation.array("utility", clients.iter().map(|client| self.utility[client.index()]));
        explanation.array("latency_s", clients.iter().map(|client| self.latency[client.index()]));
        Ok(())
    }
}
