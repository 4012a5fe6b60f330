//! What is noticed of a run while it goes on: targets that its metrics reach, and whether it still improves.

use crate::scenario::{PlateauConfig, StopConfig, TargetConfig};
use fedgenie_core::id::Round;
use fedgenie_core::metric::{Better, Metric};
use fedgenie_core::state::{State, Stateful};
use fedgenie_core::time::VirtualTime;
use fedgenie_simulator::run::{Accounts, End, Run};
use serde::{Deserialize, Serialize};

/// When a run's metric first reached a value, at the end of a round that was evaluated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reached {
    /// The target.
    #[serde(flatten)]
    pub target: TargetConfig,
    /// The round; none if the target was not reached.
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
}

impl Stateful for Reached {
    fn exchange(&mut self, state: &mut State<'_>) {
        let Self { target: _, round, time_s, down_bytes, up_bytes, edge_down_bytes, edge_up_bytes, compute_s } = self;
        state.field(round);
        state.field(time_s);
        state.field(down_bytes);
        state.field(up_bytes);
        state.field(edge_down_bytes);
        state.field(edge_up_bytes);
        state.field(compute_s);
    }
}

impl Reached {
    /// Not reached so far.
    fn pending(target: &TargetConfig) -> Self {
        let target = target.clone();
        let (edge_down_bytes, edge_up_bytes) = (None, None);
        let (round, time_s, down_bytes, up_bytes, compute_s) = (None, None, None, None, None);
        Self { target, round, time_s, down_bytes, up_bytes, edge_down_bytes, edge_up_bytes, compute_s }
    }

    /// Notes when it was reached, and what the run had cost by then.
    fn note(&mut self, round: Round, now: VirtualTime, accounts: &Accounts) {
        (self.round, self.time_s) = (Some(round.0), Some(now.seconds()));
        (self.down_bytes, self.up_bytes) = (Some(accounts.down_bytes), Some(accounts.up_bytes));
        self.compute_s = Some(accounts.compute.seconds());
        let (down_bytes, up_bytes) = (accounts.edge_down_bytes, accounts.edge_up_bytes);
        if down_bytes > 0 || up_bytes > 0 {
            (self.edge_down_bytes, self.edge_up_bytes) = (Some(down_bytes), Some(up_bytes));
        }
    }

    /// Bytes of clients, both ways, until it was reached. Those between edge servers and the cloud are not among them:
    /// they travel on other links, and would set protocols with edge servers apart from those without.
    pub fn bytes(&self) -> Option<u64> {
        Some(self.down_bytes?.saturating_add(self.up_bytes?))
    }

    /// The target in words: `test_accuracy >= 0.8`.
    pub fn name(&self) -> String {
        let TargetConfig { metric, at_least, at_most } = &self.target;
        match (at_least, at_most) {
            (Some(least), _) => format!("{metric} >= {least}"),
            (_, most) => format!("{metric} <= {}", most.unwrap_or_default()),
        }
    }
}

/// The watch over a run.
#[derive(Debug)]
pub struct Watch<'a> {
    stop: &'a StopConfig,
    end: End,
    plateau: Option<Plateau<'a>>,
    reached: Vec<Reached>,
}

#[derive(Debug)]
struct Plateau<'a> {
    config: &'a PlateauConfig,
    better: Better,
    best: Option<f64>,
    evaluations: u32,
}

impl Stateful for Plateau<'_> {
    fn exchange(&mut self, state: &mut State<'_>) {
        let Self { config: _, better: _, best, evaluations } = self;
        state.field(best);
        state.field(evaluations);
    }
}

impl Plateau<'_> {
    fn observe(&mut self, value: f64) {
        if self.best.is_none_or(|best| self.config.improves(self.better, value, best)) {
            (self.best, self.evaluations) = (Some(value), 0);
        } else {
            self.evaluations += 1;
        }
    }
}

impl Stateful for Watch<'_> {
    fn exchange(&mut self, state: &mut State<'_>) {
        let Self { stop: _, end: _, plateau, reached } = self;
        plateau.iter_mut().for_each(|plateau| state.field(plateau));
        state.fields(reached);
    }
}

impl<'a> Watch<'a> {
    /// Before the first round.
    pub fn new(stop: &'a StopConfig, targets: &[TargetConfig], metrics: &[Metric]) -> Self {
        let plateau = |config: &'a PlateauConfig| {
            let metric = metrics.iter().find(|metric| metric.name == config.metric);
            let better = metric.map_or(Better::Higher, |metric| metric.better);
            Plateau { config, better, best: None, evaluations: 0 }
        };
        Self {
            stop,
            end: stop.end(),
            plateau: stop.plateau.as_ref().map(plateau),
            reached: targets.iter().map(Reached::pending).collect(),
        }
    }

    /// Takes in a round. Returns whether the run is over.
    pub fn observe(&mut self, run: &Run<'_>) -> bool {
        let metrics = run.metrics();
        for reached in self.reached.iter_mut().filter(|reached| reached.round.is_none()) {
            if reached.target.is_reached(metrics) {
                reached.note(run.round(), run.now(), run.accounts());
            }
        }
        if let Some(plateau) = &mut self.plateau
            && let Some(&(_, value)) = metrics.iter().find(|(name, _)| *name == plateau.config.metric)
        {
            plateau.observe(value);
        }
        self.stop.target.as_ref().is_some_and(|target| target.is_reached(metrics))
            || self.plateau.as_ref().is_some_and(|plateau| plateau.evaluations >= plateau.config.evaluations)
            || self.end.is_reached(run.round(), run.now(), run.accounts())
    }

    /// What became of the targets.
    pub fn into_reached(self) -> Vec<Reached> {
        self.reached
    }
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
