//! A policy of one's own, with a parameter, against `random`.
//!
//! `cargo run --release --example custom_policy -- DIR` carries it out into a folder, and
//! `cargo run --release --example custom_policy -- verify DIR` replays that folder.

use fedgenie::config::Complaint;
use fedgenie::error::Error;
use fedgenie::experiment::verify::{ReplayOptions, verify_within};
use fedgenie::experiment::{Experiment, Overrides, RunOptions, Threads, table};
use fedgenie::failure::Failure;
use fedgenie::policy::{BuildContext, Feedback, Policy, PolicyRng, Selection, SelectionRequest, ServerView};
use fedgenie::report::write_with_records;
use fedgenie::scenario::{Details, Given, Kinds};
use fedgenie::state::Stateful;
use std::path::Path;

/// Selects the clients with the shortest mean time, in which the last answer has the weight `newest`; those never
/// asked come first.
#[derive(Stateful)]
struct Fastest {
    #[state(skip = "from the scenario")]
    newest: f64,
    seconds: Vec<f64>,
}

impl Fastest {
    fn build(context: &BuildContext<'_>, given: Given<'_>) -> Result<Box<dyn Policy>, Complaint> {
        match given.parameters["newest"].as_f64() {
            Some(newest) if newest > 0.0 && newest <= 1.0 => {
                Ok(Box::new(Self { newest, seconds: vec![0.0; context.clients] }))
            }
            _ => {
                Err(Complaint::new("newest", format!("found {}; expected 0 < newest <= 1", given.parameters["newest"])))
            }
        }
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
            let (known, waited) = (&mut self.seconds[job.client.index()], job.waited.observed().0.seconds());
            *known = if *known == 0.0 { waited } else { *known + self.newest * (waited - *known) };
        }
        Ok(())
    }
}

/// What this program adds to scenarios: `kind = "fastest"`.
fn kinds() -> Result<Kinds, Error> {
    let mut kinds = Kinds::of("custom_policy 1.0");
    let defaults = [("newest".to_owned(), 0.5.into())].into_iter().collect();
    let added = kinds.policy("fastest", Details { defaults, ..Details::default() }, Fastest::build);
    added.map_err(|complaint| Error::Usage(complaint.message))?;
    Ok(kinds)
}

fn main() -> Result<(), Error> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (kinds, threads) = (kinds()?, Threads::new(0)?);
    if let [word, folder] = &words[..]
        && word == "verify"
    {
        let verdict = verify_within(Path::new(folder), &ReplayOptions { kinds, ..ReplayOptions::default() }, &threads)?;
        println!("{} runs replayed, difference: {:?}", verdict.runs, verdict.difference);
        return Ok(());
    }
    let folder = words.first().map_or("custom-policy", String::as_str);
    let set = vec![("stop.rounds".to_owned(), "100".to_owned())];
    let overrides = Overrides { set, kinds, ..Overrides::default() };
    let experiment = Experiment::load(Path::new("scenarios/custom_policy.toml"), &overrides)?;
    let options = RunOptions { draw: Some(&write_with_records), ..RunOptions::into(Path::new(folder)) };
    println!("{}", table(&experiment.run_with(&options, &threads)?.whole()?));
    Ok(())
}
