//! Observation of a run while it goes on: targets that its metrics reach, and whether it still improves.

mod converged;

pub use converged::{CONVERGENCE, Converged};

use super::ended::{Ended, Evaluated};
use super::measured::Named;
use crate::scenario::{PlateauConfig, Sections, StopConfig, TargetConfig};
use converged::Convergence;
use fedgenie_core::id::Round;
use fedgenie_core::metric::{Better, Metric, MetricId, named};
use fedgenie_core::state::Stateful;
use fedgenie_core::time::VirtualTime;
use fedgenie_simulator::population::Energy;
use fedgenie_simulator::run::{Accounts, End, Run};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// When a run's metric first reached a value, at the end of a round that was evaluated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Stateful)]
pub struct Reached {
    /// The target.
    #[serde(flatten)]
    #[state(skip = "from the scenario")]
    pub target: TargetConfig,
    /// The round; `None` if the target was not reached.
    pub round: Option<u32>,
    /// When the round closed, in virtual seconds.
    pub time_s: Option<f64>,
    /// Bytes sent to clients by then.
    #[serde(default)]
    pub down_bytes: Option<u64>,
    /// Bytes sent by clients by then.
    #[serde(default)]
    pub up_bytes: Option<u64>,
    /// Bytes from the cloud to edge servers by then, where there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edge_down_bytes: Option<u64>,
    /// Bytes from edge servers to the cloud by then, where there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edge_up_bytes: Option<u64>,
    /// Virtual seconds that clients had spent computing by then.
    #[serde(default)]
    pub compute_s: Option<f64>,
    /// Virtual seconds that clients had spent computing for probes by then; `compute_s` does not include them.
    #[serde(default)]
    pub probe_compute_s: Option<f64>,
    /// Joules that jobs had drawn by then, phases under way included, where clients have batteries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy_j: Option<f64>,
    /// The last earlier round with an evaluation below the target; 0 before the first evaluation. Where the target was
    /// not reached, the last evaluation of all.
    #[serde(default)]
    pub since_round: Option<u32>,
    /// When that round closed, in virtual seconds.
    #[serde(default)]
    pub since_s: Option<f64>,
    /// Bytes of clients, both ways, by then.
    #[serde(default)]
    pub since_bytes: Option<u64>,
    /// Joules of jobs by then, where clients have batteries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_energy_j: Option<f64>,
}

/// What a run has spent by the end of a round.
#[derive(Clone, Copy)]
struct Spent<'a> {
    round: Round,
    now: VirtualTime,
    accounts: &'a Accounts,
    /// What jobs have drawn from batteries, phases under way included, where clients have any.
    energy_j: Option<f64>,
}

impl<'a> Spent<'a> {
    fn of(run: &'a Run<'_>) -> Self {
        let energy_j = run.energy_of_jobs().map(Energy::joules);
        Self { round: run.round(), now: run.now(), accounts: run.accounts(), energy_j }
    }
}

impl Reached {
    /// A target not reached so far.
    fn pending(target: &TargetConfig) -> Self {
        Self {
            target: target.clone(),
            round: None,
            time_s: None,
            down_bytes: None,
            up_bytes: None,
            edge_down_bytes: None,
            edge_up_bytes: None,
            compute_s: None,
            probe_compute_s: None,
            energy_j: None,
            since_round: Some(0),
            since_s: Some(0.0),
            since_bytes: Some(0),
            since_energy_j: None,
        }
    }

    /// Notes the metrics of a round while the target has not been reached.
    fn see(&mut self, metrics: &[(MetricId, f64)], spent: Spent<'_>) {
        if self.round.is_some() {
            return;
        }
        if self.target.is_reached(metrics) {
            self.note(spent);
        } else if metrics.iter().any(|(id, _)| id.is_called(&self.target.metric)) {
            self.note_since(spent);
        }
    }

    /// Notes that it was not reached by then.
    fn note_since(&mut self, Spent { round, now, accounts, energy_j }: Spent<'_>) {
        (self.since_round, self.since_s) = (Some(round.0), Some(now.seconds()));
        (self.since_bytes, self.since_energy_j) = (Some(bytes(accounts)), energy_j);
    }

    /// Notes when it was reached, and the run's cost by then.
    fn note(&mut self, Spent { round, now, accounts, energy_j }: Spent<'_>) {
        (self.round, self.time_s, self.energy_j) = (Some(round.0), Some(now.seconds()), energy_j);
        // Before the first evaluation no job had drawn anything.
        self.since_energy_j = energy_j.map(|_| self.since_energy_j.unwrap_or(0.0));
        (self.down_bytes, self.up_bytes) = (Some(accounts.down_bytes), Some(accounts.up_bytes));
        self.compute_s = Some(accounts.compute.seconds());
        self.probe_compute_s = Some(accounts.probe_compute.seconds());
        let (down_bytes, up_bytes) = (accounts.edge_down_bytes, accounts.edge_up_bytes);
        if down_bytes > 0 || up_bytes > 0 {
            (self.edge_down_bytes, self.edge_up_bytes) = (Some(down_bytes), Some(up_bytes));
        }
    }

    /// Bytes of clients, both ways, until it was reached. Bytes between edge servers and the cloud do not count: they
    /// travel on other links, and would set protocols with edge servers apart from those without.
    pub fn bytes(&self) -> Option<u64> {
        Some(self.down_bytes?.saturating_add(self.up_bytes?))
    }

    /// The target in words: `test_accuracy >= 0.8`.
    pub fn name(&self) -> String {
        self.target.name()
    }
}

/// The watch over a run.
#[derive(Debug, Stateful)]
pub struct Watch<'a> {
    #[state(skip = "from the scenario")]
    stop: &'a StopConfig,
    #[state(skip = "from the scenario")]
    end: End,
    #[state(each)]
    plateau: Option<Plateau<'a>>,
    #[state(each)]
    reached: Vec<Reached>,
    #[state(each)]
    convergence: Option<Convergence<'a>>,
    evaluated: Evaluated,
    /// Selections of clients before which no target or plateau ends the run.
    #[state(skip = "from the scenario")]
    selections: u64,
}

/// Observations at the end of a run.
#[derive(Clone, Debug)]
pub struct Watched {
    /// The targets with their arrivals.
    pub reached: Vec<Reached>,
    /// When the run converged, if the scenario asks for it.
    pub converged: Option<Option<Converged>>,
    /// The best value of each metric of evaluated rounds.
    pub best: Named,
    /// By bytes, the metrics of the last evaluated round by whose end clients had moved at most these.
    pub at_bytes: BTreeMap<u64, Named>,
}

#[derive(Debug, Stateful)]
struct Plateau<'a> {
    #[state(skip = "from the scenario")]
    config: &'a PlateauConfig,
    #[state(skip = "from the task")]
    better: Better,
    best: Option<f64>,
    evaluations: u32,
}

impl<'a> Plateau<'a> {
    /// Before the first evaluation of one of these metrics.
    fn new(config: &'a PlateauConfig, metrics: &[Metric]) -> Self {
        let better = named(metrics, &config.metric).map_or(Better::Higher, |metric| metric.better);
        Self { config, better, best: None, evaluations: 0 }
    }

    /// Notes the metrics of a round; `metrics` is empty if it was not evaluated.
    fn see(&mut self, metrics: &[(MetricId, f64)]) {
        if let Some(&(_, value)) = metrics.iter().find(|(id, _)| id.is_called(&self.config.metric)) {
            self.observe(value);
        }
    }

    /// Whether the metric has not improved for the given number of evaluations.
    const fn is_reached(&self) -> bool {
        self.evaluations >= self.config.evaluations
    }

    fn observe(&mut self, value: f64) {
        if self.best.is_none_or(|best| self.config.improves(self.better, value, best)) {
            (self.best, self.evaluations) = (Some(value), 0);
        } else {
            self.evaluations += 1;
        }
    }
}

impl<'a> Watch<'a> {
    /// Before the first round.
    pub fn new(sections: &'a Sections, metrics: &[Metric]) -> Self {
        let Sections { stop, evaluate, budget, .. } = sections;
        let plateau = |config: &'a PlateauConfig| Plateau::new(config, metrics);
        Self {
            stop,
            end: stop.end(),
            plateau: stop.plateau.as_ref().map(plateau),
            reached: evaluate.targets.iter().map(Reached::pending).collect(),
            convergence: evaluate.converged.as_ref().map(|config| Convergence::new(plateau(config))),
            evaluated: Evaluated::new(metrics, &evaluate.at_bytes()),
            selections: budget.as_ref().map_or(0, |budget| budget.selections),
        }
    }

    /// Observes a round. Returns why the run is over, if it is.
    pub fn observe(&mut self, run: &Run<'_>) -> Option<Ended> {
        let metrics = run.metrics();
        self.evaluated.observe(metrics, bytes(run.accounts()));
        if !self.reached.is_empty() {
            let spent = Spent::of(run);
            self.reached.iter_mut().for_each(|reached| reached.see(metrics, spent));
        }
        if let Some(plateau) = &mut self.plateau {
            plateau.see(metrics);
        }
        if let Some(convergence) = &mut self.convergence {
            convergence.observe(run);
        }
        let is_reached = |end: End| end.is_reached(run.round(), run.now(), run.accounts());
        let End { rounds, time, bytes } = self.end;
        let is_enough = run.accounts().dispatched >= self.selections;
        let target = || self.stop.target.as_ref().is_some_and(|target| target.is_reached(metrics));
        let plateau = || self.plateau.as_ref().is_some_and(Plateau::is_reached);
        let reasons = [
            (Ended::Rounds, is_reached(End { rounds, ..End::default() })),
            (Ended::VirtualTime, is_reached(End { time, ..End::default() })),
            (Ended::Target, is_enough && target()),
            (Ended::Plateau, is_enough && plateau()),
            (Ended::Traffic, is_reached(End { bytes, ..End::default() })),
            (Ended::Budget, run.is_spent()),
        ];
        reasons.into_iter().find(|(_, is_reason)| *is_reason).map(|(reason, _)| reason)
    }

    /// The targets that were reached in this round, by index, if earlier rounds since the last evaluation may have
    /// reached them.
    pub fn reached_between(&self, round: Round) -> Vec<usize> {
        let is_between = |reached: &Reached| {
            reached.round == Some(round.0) && reached.since_round.is_some_and(|since| since + 1 < round.0)
        };
        (0..self.reached.len()).filter(|&target| is_between(&self.reached[target])).collect()
    }

    /// Observes a round between the evaluations before and after these targets were reached; targets that it reaches
    /// are no longer sought.
    pub fn refine(&mut self, sought: &mut Vec<usize>, metrics: &[(MetricId, f64)], run: &Run<'_>) {
        sought.retain(|&target| {
            let (reached, spent) = (&mut self.reached[target], Spent::of(run));
            let is_reached = reached.target.is_reached(metrics);
            if is_reached {
                reached.note(spent);
            } else {
                reached.note_since(spent);
            }
            !is_reached
        });
    }

    /// Whether a target has not been reached so far.
    pub fn is_pending(&self) -> bool {
        self.reached.iter().any(|reached| reached.round.is_none())
    }

    /// The observations at the end of a run, whose last round may have been evaluated after it had closed.
    pub fn end(mut self, metrics: &[(MetricId, f64)], at: (Round, VirtualTime), accounts: &Accounts) -> Watched {
        self.evaluated.observe(metrics, bytes(accounts));
        let energy_j = accounts.energy.as_ref().map(|energy| energy.energies.of_jobs().joules());
        let spent = Spent { round: at.0, now: at.1, accounts, energy_j };
        self.reached.iter_mut().for_each(|reached| reached.see(metrics, spent));
        let (best, at_bytes) = self.evaluated.into_parts();
        let converged = self.convergence.map(Convergence::into_found);
        Watched { reached: self.reached, converged, best, at_bytes }
    }

    /// The warning about a run that has selected fewer clients than it should.
    pub fn warning(&self, accounts: &Accounts) -> Option<String> {
        let Accounts { dispatched, .. } = accounts;
        (*dispatched < self.selections).then(|| {
            format!("ended after {dispatched} selections of clients; [budget] selections = {}", self.selections)
        })
    }
}

/// Bytes of clients, both ways together.
const fn bytes(accounts: &Accounts) -> u64 {
    accounts.down_bytes.saturating_add(accounts.up_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plateau_counts_evaluations_since_the_best() {
        let config = PlateauConfig { metric: "test_loss".to_owned(), evaluations: 3, least: 0.1 };
        let mut plateau = Plateau { config: &config, better: Better::Lower, best: None, evaluations: 0 };
        let counted: Vec<u32> = [2.0, 1.95, 1.8, 1.75, f64::NAN, 1.71, 1.6]
            .into_iter()
            .map(|value| {
                plateau.observe(value);
                plateau.evaluations
            })
            .collect();
        assert_eq!(counted, [0, 1, 0, 1, 2, 3, 0]);
        let config = PlateauConfig { metric: "test_accuracy".to_owned(), evaluations: 3, least: 0.0 };
        let mut plateau = Plateau { config: &config, better: Better::Higher, best: None, evaluations: 0 };
        let counted = [0.5, 0.5, 0.6, 0.4].map(|value| {
            plateau.observe(value);
            plateau.evaluations
        });
        assert_eq!(counted, [0, 1, 0, 1]);
    }
}
