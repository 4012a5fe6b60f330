//! `[privacy.dp-fedavg]`: where it is defined, and what its accountant may count on.
//! [`fedgenie_learning::privacy`] has the definition.

use super::{AdversaryConfig, World, WorldError, WorldPlan};
use crate::policy::{Policy, Wants};
use crate::protocol::{RoundRule, Rule};
use fedgenie_core::config::Complaint;
use fedgenie_core::metric::{Measure, Measures};
use fedgenie_core::rng::Streams;
use fedgenie_learning::algorithm::privacy::{Accountant, DpFedAvg, DpFedAvgConfig, NoiseAt, PrivacyEntry, Released};
use fedgenie_learning::algorithm::{Algorithm, AlgorithmsConfig, Scene, personal_layers};
use fedgenie_learning::task::Task;
use std::sync::Arc;

/// The metric of what a run has told so far of whether a client took part.
pub const EPSILON: Measure = Measure::error("epsilon");

/// The measures of a task, with those of hostile clients and of privacy, where clients may keep a part of the model.
pub fn measures_of_run(
    adversary: Option<&AdversaryConfig>,
    privacy: Option<&DpFedAvgConfig>,
    algorithm: &AlgorithmsConfig,
    mut measures: Measures,
) -> Measures {
    if let Some(config) = adversary {
        config.add_measures(&mut measures);
    }
    if privacy.is_some_and(|config| config.noise_multiplier > 0.0) {
        measures.of_run.push(EPSILON);
    }
    measures.is_personal = personal_layers(algorithm).is_some();
    measures
}

/// The accountant of a run, with the reasons.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    accountant: Accountant,
    config: DpFedAvgConfig,
    /// Why sampling makes ε smaller, or does not.
    why: String,
    /// What ε does not cover.
    uncovered: Option<String>,
    /// ε of so many models, worked out last.
    known: (u64, Option<f64>),
}

impl Ledger {
    /// ε after so many models; `None` without noise.
    pub fn epsilon(&mut self, models: u64) -> Option<f64> {
        if self.known.0 != models {
            self.known = (models, self.accountant.epsilon(models));
        }
        self.known.1
    }

    /// What it says of the models so far.
    pub fn entry(&mut self, released: Released) -> PrivacyEntry {
        PrivacyEntry {
            epsilon: self.epsilon(released.models),
            delta: self.config.delta,
            sampling: self.accountant.sampling(),
            why: self.uncovered.iter().fold(self.why.clone(), |why, uncovered| format!("{why}; {uncovered}")),
            uncovered: self.uncovered.clone(),
            clip: self.config.adapts().then_some(released.clip),
        }
    }

    /// How many clients are drawn on average, where each is drawn by itself.
    pub fn expected(&self, clients: usize) -> Option<f64> {
        let q = self.accountant.sampling();
        (q < 1.0).then_some(q * clients as f64)
    }
}

impl World {
    /// The accountant of a run of a policy, where there is a private mean.
    pub(crate) fn ledger(&self, policy: &dyn Policy) -> Option<Ledger> {
        let config = self.training.algorithm.privacy.as_ref()?.config;
        let (sampling, why) = match self.sampled(&config, policy) {
            Ok(probability) => (probability, format!("each client is drawn by itself, with probability {probability}")),
            Err(reason) => (1.0, format!("no amplification by sampling: {reason}")),
        };
        let reads_updates = policy.wants() != Wants::default() || policy.capabilities().subsets;
        let asks = policy.probes() || policy.wants_answer().is_some();
        let reads = [
            ("losses", policy.needs_losses() || policy.needs_batch_losses()),
            ("updates", reads_updates),
            ("answers of clients", asks),
            ("what clients declare of their data", policy.reads_declared_data()),
        ];
        let reads: Vec<&str> = reads.into_iter().filter(|(_, reads)| *reads).map(|(what, _)| what).collect();
        let uncovered = (!reads.is_empty())
            .then(|| format!("the policy decides by {} without noise, which ε does not cover", reads.join(", ")));
        let accountant = Accountant::new(&config, sampling);
        let known = (0, accountant.epsilon(0));
        Some(Ledger { accountant, config, why, uncovered, known })
    }

    /// Refuses a policy under which no round makes a private model.
    pub(super) fn check_private_mean(&self, policy: &dyn Policy) -> Result<(), Complaint> {
        let Some(config) = self.training.algorithm.privacy.as_ref().map(|privacy| privacy.config) else {
            return Ok(());
        };
        let (Ok(probability), least) = (self.sampled(&config, policy), config.least_updates()) else { return Ok(()) };
        let expected = probability * self.population.len() as f64;
        match config.makes_models_of(expected) {
            true => Ok(()),
            false => Err(Complaint::new(
                "probability",
                format!(
                    "draws {expected} clients on average, and [privacy.dp-fedavg] leaves no noise to the changes of fewer than \
                     {least}; raise it, or write clip.count_sd"
                ),
            )),
        }
    }

    /// The probability with which each client is drawn by itself, or why that is not so.
    fn sampled(&self, config: &DpFedAvgConfig, policy: &dyn Policy) -> Result<f64, &'static str> {
        let Rule::Rounds(RoundRule { take, quorum, carry, .. }) = self.protocol.rule else {
            return Err("clients are not drawn in rounds of one server");
        };
        let Some(probability) = policy.inclusion() else {
            return Err("the policy does not draw each client by itself, whatever the others and the data are \
                        (random with a probability, a cohort of all clients and no least of a budget does)");
        };
        match () {
            () if config.at == NoiseAt::Clients => Err("clients add noise themselves"),
            () if take < self.population.len() => Err("a round takes in the first updates alone"),
            () if quorum > 0 => Err("rounds of few updates are abandoned"),
            () if carry.is_some() => Err("late updates join later rounds"),
            () => Ok(probability),
        }
    }
}

impl WorldPlan {
    /// The private mean, if it is defined for the rest of the scenario.
    ///
    /// # Errors
    /// If it is not, or if rounds have fewer updates than it needs.
    pub(super) fn private_mean(
        &self,
        (rule, task): (&Rule, Option<&dyn Task>),
        (scene, algorithm): (&Scene<'_>, &Algorithm),
        streams: &Streams,
    ) -> Result<Option<Arc<DpFedAvg>>, WorldError> {
        let Some(config) = self.privacy else { return Ok(None) };
        let below = |complaint: Complaint| complaint.below("privacy.dp-fedavg");
        let refuse = |message: String| Err(WorldError::Scenario(below(Complaint::new("", message))));
        scene.needs_whole_updates().and_then(|()| scene.needs_alike()).map_err(below)?;
        if let Some(entry) = algorithm.combined_by.filter(|entry| *entry != "fedavg") {
            return refuse(format!("combines updates, and so does [algorithm.{entry}]; take one of the two out"));
        }
        let at_clients = config.at == NoiseAt::Clients;
        let attacks = self.adversary.as_ref().is_some_and(|adversary| adversary.attack.changes_updates());
        let encodes = self.compression.as_ref().is_some_and(|compression| compression.up.is_some());
        let has_statistics = task.is_some_and(|task| task.layout().trained() < task.layout().len());
        let why = match () {
            () if self.outside.is_some() => {
                "combines updates, and so does the program's algorithm; take the section out"
            }
            () if self.aggregation.normalise => {
                "gives all changes the same weight; take normalise of [aggregation] out"
            }
            () if scene.has_edges => "is defined for one server; take another protocol",
            () if has_statistics => {
                "adds noise to all numbers, and running means and variances would break; take a model without batch \
                 normalisation"
            }
            () if at_clients && encodes => {
                "has clients add noise after they clip, which [compression] up would encode; write at = \"server\""
            }
            () if at_clients && attacks => {
                "has clients clip themselves, which hostile ones would not do; write at = \"server\""
            }
            () => "",
        };
        if !why.is_empty() {
            return refuse(why.to_owned());
        }
        // Whether rounds of fewer are abandoned depends on the policy: not where the mean number of clients is known.
        let least = config.least_updates();
        if let Err(found) = rule.clone().need(least) {
            return refuse(format!(
                "leaves no noise to the changes of fewer than {least} clients, since a twentieth of them is the deviation of \
                 the count's noise, and the protocol waits for {found}; ask more clients, or write clip.count_sd"
            ));
        }
        Ok(Some(Arc::new(DpFedAvg { config, streams: Arc::new(streams.clone()), expected: None })))
    }
}
