//! FedGenie: a deterministic discrete-event simulator of federated learning under client selection.
//!
//! # A tour
//!
//! A scenario describes clients, their task, when rounds close, and the policies that select clients. An
//! [`Experiment`](experiment::Experiment) carries out policies × seeds × points of a sweep. A policy of your own takes
//! part like any other:
//!
//! ```
//! use fedgenie::experiment::{Experiment, Threads, table};
//! use fedgenie::failure::Failure;
//! use fedgenie::policy::{Policy, PolicyRng, Selection, SelectionRequest, ServerView};
//! use fedgenie::scenario::tree;
//! use fedgenie::state::Stateful;
//! use std::path::Path;
//!
//! const SCENARIO: &str = r#"
//!     name = "tour"
//!     seeds = 2
//!     stop.rounds = 20
//!     protocol.synchronous = { cohort = 2 }
//!     task.linear-regression = { examples = 700 }
//!     training = { batch = 32, optimizer = { sgd = { lr = 0.01 } } }
//!
//!     [population]
//!     clients = 6
//!     [population.latency]
//!     download = { constant = "25 ms" }
//!     compute = { exponential = { mean = { uniform = ["0.1 s", "1 s"] } } }
//!     upload = { constant = "25 ms" }
//!
//!     [policy.random]
//! "#;
//!
//! /// Selects those with the most data. It remembers nothing from selection to selection.
//! #[derive(Stateful)]
//! struct Largest;
//!
//! impl Policy for Largest {
//!     fn select(
//!         &mut self,
//!         ask: &SelectionRequest<'_>,
//!         view: &ServerView<'_>,
//!         _: &mut PolicyRng<'_>,
//!         selection: &mut Selection,
//!     ) -> Result<(), Failure> {
//!         selection.extend(ask.available.list());
//!         selection.sort_by_key(|client| std::cmp::Reverse(view.data_sizes[client.index()]));
//!         selection.truncate(ask.cohort);
//!         Ok(())
//!     }
//! }
//!
//! # fn main() -> Result<(), fedgenie::error::Error> {
//! let tree = tree::parse(Path::new("tour.toml"), SCENARIO).expect("this is TOML");
//! let mut experiment = Experiment::from_tree(&tree, Path::new("."), None)?;
//! experiment.add_policy("largest", |_| Ok(Box::new(Largest)))?;
//! let summary = experiment.run(&Threads::new(1)?)?;
//! println!("{}", table(&summary));
//! assert_eq!(summary.runs.len(), 2 * 2);
//! # Ok(())
//! # }
//! ```
//!
//! # Where things are
//!
//! | to | look at |
//! |---|---|
//! | run scenarios | [`experiment`] |
//! | read result folders | [`experiment::stored::Reader`] |
//! | write a policy | [`policy::Policy`]; `examples/custom_policy.rs` |
//! | write a task | [`task::Task`], [`task::TaskSettings`], `Experiment::set_task` |
//! | declare a task's measures | [`metric::Measure`]; [`formulas`] has those of tasks here |
//! | write a rule of clusters | [`clusters::ClusterPolicy`], `Experiment::set_clusters` |
//! | fail for a reason of one's own | [`failure::Failure`], [`run::RunError::Outside`] |
//! | play a run round by round | [`world::World`], [`run::Run`], [`recorder::Sink`] |
//! | make the selections of a run, one by one | [`run::Run::asking`], [`run::OwnedRun`] |
//! | stop a run | [`experiment::Threads::cancel`], [`halt::Halt`] |
//! | compute rewards, genies, regret | [`oracle`] |
//! | train models | [`trainer`], [`model`], [`algorithm`], [`learned`] |

// The command line calls the library by its name.
extern crate self as fedgenie;

#[cfg(feature = "cli")]
pub mod cli;

pub use fedgenie_core::{
    catalogue, config, failure, halt, id, kernel, law, limits, math, metric, oracle, record, rng, text, time, units,
};
pub use fedgenie_experiment::{error, experiment, scenario};
#[cfg(feature = "fit")]
pub use fedgenie_fit as fit;
pub use fedgenie_learning::metric as formulas;
pub use fedgenie_learning::{
    algorithm, data, dense, lanes, layout, learned, matrix_factorisation, model, ranking, ratings, trainer,
};
#[cfg(feature = "report")]
pub use fedgenie_report as report;
pub use fedgenie_simulator::{clusters, metrics, policy, population, protocol, recorder, run, task, world};
#[cfg(feature = "validation")]
pub use fedgenie_validation as validation;

/// Saving and loading the memory of components.
pub mod state {
    pub use fedgenie_core::state::*;
    // Instead of the derive of `fedgenie_core`: its output names this crate.
    pub use fedgenie_derive::StatefulOfFacade as Stateful;
}
