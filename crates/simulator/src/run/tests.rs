//! Worlds for unit tests, from a few lines of TOML.

use crate::population::PopulationConfig;
use crate::protocol::ProtocolConfig;
use crate::task::{DataCache, TaskConfig};
use crate::world::{BudgetPlan, Most, World, WorldPlan};
use fedgenie_core::kernel::Ties;
use fedgenie_core::oracle::hindsight::{HindsightPlan, SetSize};
use fedgenie_core::oracle::utility::UtilityConfig;
use fedgenie_core::units::Duration;
use fedgenie_learning::trainer::{Length, LocalTraining, Optimizer, OptimizerConfig, Schedule};
use serde::Deserialize;
use toml::{Table, Value};

/// A test's settings of its world.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Lines {
    population: PopulationConfig,
    task: TaskConfig,
    protocol: ProtocolConfig,
    training: Option<TrainingLines>,
    hindsight: Option<HindsightLines>,
    budget: Option<BudgetLines>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BudgetLines {
    traffic: u64,
    least: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TrainingLines {
    epochs: u32,
    batch: usize,
    lr: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HindsightLines {
    #[serde(default)]
    utility: UtilityConfig,
    kappa: f64,
    t_semi: Option<Duration>,
    #[serde(default)]
    size: SetSize,
    every: Option<u32>,
}

/// The world of seed 1 that `base` describes, after the lines of `more`, each `path = value`, were set in it.
pub fn world(base: &str, more: &str) -> World {
    let mut table: Table = base.parse().unwrap();
    for line in more.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (path, value) = line.split_once(" = ").unwrap();
        let mut value: Table = format!("value = {value}").parse().unwrap();
        set(&mut table, path, value.remove("value").unwrap());
    }
    let Lines { population, task, protocol, training, hindsight, budget } = table.try_into().unwrap();
    let TrainingLines { epochs, batch, lr } = training.unwrap_or(TrainingLines { epochs: 1, batch: 32, lr: 1.0 });
    let sgd = OptimizerConfig::Sgd { lr, momentum: 0.0, nesterov: false, weight_decay: 0.0, dampening: 0.0 };
    let plan = WorldPlan {
        adversary: None,
        compression: None,
        privacy: None,
        secure: None,
        controls: Default::default(),
        protocol,
        population,
        task: task.into_settings(),
        planned: None,
        evaluated: Default::default(),
        training: LocalTraining {
            length: Length::Epochs(epochs),
            lengths: None,
            batch,
            optimizer: Optimizer::new(&sgd).unwrap(),
            schedule: Schedule::default(),
            clip: None,
            proximal: 0.0,
            decays: Vec::new(),
            noise: None,
        },
        lengths: None,
        most_epochs: None,
        inference_share: 1.0 / 3.0,
        clusters: None,
        ties: Ties::Fifo,
        aggregation: Default::default(),
        algorithm: Default::default(),
        outside: None,
        reward: None,
        meters: Vec::new(),
        hindsight: hindsight.map(|HindsightLines { utility, kappa, t_semi, size, every }| HindsightPlan {
            utility,
            kappa,
            t_semi: t_semi.map(|unit| unit.0),
            size,
            every: every.unwrap_or(1),
        }),
        assignment_regret: false,
        rounds: None,
        budget: budget.map(|BudgetLines { traffic, least }| BudgetPlan { most: Some(Most::Traffic(traffic)), least }),
    };
    plan.build(1, &DataCache::default()).unwrap()
}

fn set(table: &mut Table, path: &str, value: Value) {
    match path.split_once('.') {
        None => drop(table.insert(path.to_owned(), value)),
        Some((key, rest)) => {
            let inner = table.entry(key).or_insert_with(|| Value::Table(Table::new()));
            set(inner.as_table_mut().unwrap(), rest, value);
        }
    }
}
