//! The server of a run, or its cloud: the global model, selections and measurements, and the end of a round.

mod close;
mod opening;

pub(in crate::run) use close::{Told, report_round};
pub(in crate::run) use opening::RoundUnderWay;

use super::settings::RunSettings;
use crate::metrics::{Offers, Participation};
use crate::policy::{AccuracyOn, Policy};
use crate::recorder::{RoundMark, RoundUpdates};
use crate::run::learning::{Learning, Sought};
use crate::run::meters::{Accuracies, Judged};
use crate::world::{Ledger, Metrics, World};
use fedgenie_core::id::{ClientId, Round, Turn};
use fedgenie_core::record::Regret;
use fedgenie_core::state::State;
use fedgenie_core::time::VirtualTime;
use fedgenie_learning::learned::SharedModels;
use serde_json::{Map, Value};

/// The round, the global model, selections and measurements.
pub(in crate::run) struct Server<'w> {
    pub label: String,
    pub settings: RunSettings,
    /// The round under way, or the last one.
    round: Round,
    /// Times each client was selected.
    pub counts: Vec<u32>,
    /// How evenly clients were selected.
    pub participation: Participation,
    /// How many clients selections were to have.
    pub offers: Offers,
    pub learning: Option<Learning<'w>>,
    /// The accountant of privacy, where there is one.
    ledger: Option<Ledger>,
    /// Of the last round, if it was evaluated.
    pub metrics: Metrics,
    /// The measures of each edge server, if servers were evaluated in the last round.
    pub server_measures: Vec<Option<Vec<f64>>>,
    /// Of the last round, where there is a reward.
    pub reward: Option<f64>,
    /// Cumulative.
    pub regret: Regret,
    /// Per named group since the last recorded round.
    pub group_selections: Vec<(String, u64)>,
    mark: RoundMark,
    /// Bytes down and up at the end of the last round, of clients or of edge servers.
    told_bytes: (u64, u64),
    /// Of the current model, where the policy wants to know it.
    quality: Option<f64>,
    /// Of the models of servers, where their policies want to know it.
    pub accuracies: Option<Accuracies>,
    /// Judgements in hindsight.
    pub hindsight: Judged,
    /// Of the selections of the round, where they are recorded.
    pub explanations: Vec<Map<String, Value>>,
    /// Of the round, where they are recorded.
    updates: RoundUpdates,
    /// Whether the budget pays for no further round.
    pub is_spent: bool,
    /// When clients have answered to the last evaluation, where they are charged for it.
    pub evaluated: VirtualTime,
}

/// An explanation with the numbers that tell the selections of a round apart.
pub(in crate::run) fn numbered(object: Map<String, Value>, turn: Turn, server: Option<Value>) -> Map<String, Value> {
    let server = server.map(|server| ("server".to_owned(), server));
    let numbers = [("turn".to_owned(), turn.0.into())].into_iter().chain(server);
    numbers.chain(object).collect()
}

impl<'w> Server<'w> {
    pub fn new(world: &'w World, label: &str, settings: RunSettings, ledger: Option<Ledger>) -> Self {
        let expected = ledger.as_ref().and_then(|ledger| ledger.expected(world.population.len()));
        let groups = world.population.groups();
        let named = groups.iter().any(|group| group.name.is_some());
        let name = |(index, group): (usize, &crate::population::Group)| {
            (group.name.clone().unwrap_or_else(|| format!("group {}", index + 1)), 0)
        };
        Self {
            label: label.to_owned(),
            settings,
            round: Round(0),
            counts: vec![0; world.population.len()],
            participation: Participation::new(world.population.len()),
            offers: Offers::default(),
            learning: world.task.as_deref().map(|task| Learning::new(world, task, world.clusters(), expected)),
            ledger,
            metrics: Vec::new(),
            server_measures: Vec::new(),
            reward: None,
            regret: Regret::default(),
            group_selections: if named { groups.iter().enumerate().map(name).collect() } else { Vec::new() },
            mark: RoundMark::default(),
            told_bytes: (0, 0),
            quality: None,
            accuracies: None,
            hindsight: Judged::default(),
            explanations: Vec::new(),
            updates: RoundUpdates::default(),
            is_spent: false,
            evaluated: VirtualTime::START,
        }
    }

    /// Between rounds: all but the state of a round under way.
    pub fn exchange(&mut self, state: &mut State<'_>, models: &mut SharedModels) {
        let Self {
            label: _,
            settings: _,
            round,
            counts,
            participation,
            offers,
            learning,
            ledger: _,
            metrics,
            server_measures,
            reward,
            regret,
            group_selections,
            mark: _,
            told_bytes,
            quality,
            accuracies,
            hindsight,
            explanations: _,
            updates: _,
            is_spent: _,
            evaluated,
        } = self;
        state.field(round);
        state.fields(counts);
        state.field(participation);
        state.field(offers);
        if let Some(learning) = learning {
            learning.exchange(state, models);
            learning.take_data_of(*round);
        }
        state.field(metrics);
        state.field(server_measures);
        state.field(reward);
        state.field(regret);
        group_selections.iter_mut().for_each(|(_, count)| state.field(count));
        state.field(told_bytes);
        state.field(quality);
        accuracies.iter_mut().for_each(|accuracies| state.field(accuracies));
        state.field(hindsight);
        state.field(evaluated);
    }

    /// Before the first round: measures the models that servers begin with, of those whose policies ask.
    pub fn measure_accuracies(&mut self, world: &World, wanted: Vec<Option<AccuracyOn>>) {
        let parallel = self.settings.parallel;
        let learning = self.learning.as_ref();
        self.accuracies = learning.and_then(|learning| Accuracies::new(world, learning, wanted, parallel));
    }

    /// Statistics of updates that a policy or the records want.
    pub fn sought(&self, policy: &dyn Policy) -> Sought {
        let probe = |kind| self.learning.as_ref()?.probe(kind);
        let answer = policy.wants_answer().and_then(probe);
        Sought { wants: self.settings.wants(policy), answer, subsets: policy.capabilities().subsets }
    }

    /// Counts a selection that is being carried out.
    pub fn count(&mut self, world: &World, selection: &[ClientId]) {
        for &client in selection {
            let count = &mut self.counts[client.index()];
            self.participation.count(*count);
            *count += 1;
            if let Some((_, count)) = self.group_selections.get_mut(world.population.group_of(client)) {
                *count += 1;
            }
        }
    }

    /// The share of these clients in all selections so far; 0 before the first.
    fn share_of(&self, clients: &[ClientId]) -> f64 {
        let theirs: u64 = clients.iter().map(|client| u64::from(self.counts[client.index()])).sum();
        theirs as f64 / self.participation.total().max(1) as f64
    }
}
