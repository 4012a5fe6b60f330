//! A policy of one's own against `random`: `cargo run --release --example custom_policy -- FOLDER`.

use fedgenie::config::Complaint;
use fedgenie::error::Error;
use fedgenie::experiment::{Experiment, Overrides, RunOptions, Threads, table};
use fedgenie::failure::Failure;
use fedgenie::policy::{BuildContext, Feedback, Policy, PolicyRng, Selection, SelectionRequest, ServerView};
use fedgenie::report::write_with_records;
use fedgenie::state::Stateful;
use std::path::Path;

/// Selects the clients that answered fastest the last time; those never asked come first.
#[derive(Stateful)]
struct Fastest {
    seconds: Vec<f64>,
}

impl Fastest {
    fn build(context: &BuildContext<'_>) -> Result<Box<dyn Policy>, Complaint> {
        Ok(Box::new(Self { seconds: vec![0.0; context.clients] }))
    }
}

impl Policy for Fastest {
    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        _view: &ServerView<'_>,
        _rng: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        selection.extend(ask.available.list());
        selection.sort_by(|one, other| self.seconds[one.index()].total_cmp(&self.seconds[other.index()]));
        selection.truncate(ask.cohort);
        Ok(())
    }

    fn observe(&mut self, feedback: &Feedback<'_>) -> Result<(), Failure> {
        if let Feedback::Job(job) = feedback {
            self.seconds[job.client.index()] = job.waited.observed().0.seconds();
        }
        Ok(())
    }
}

fn main() -> Result<(), Error> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "custom-policy".to_owned());
    let set = vec![("stop.rounds".to_owned(), "100".to_owned())];
    let scenario = Path::new("scenarios/custom_policy.toml");
    let mut experiment = Experiment::load(scenario, &Overrides { set, ..Overrides::default() })?;
    experiment.add_policy("fastest", Fastest::build)?;
    let options = RunOptions { draw: Some(&write_with_records), ..RunOptions::into(Path::new(&folder)) };
    println!("{}", table(&experiment.run_with(&options, &Threads::new(0)?)?.whole()?));
    Ok(())
}
