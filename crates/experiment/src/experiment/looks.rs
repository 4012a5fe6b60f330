//! Seeds that are added until the first answer is decided: [`crate::scenario::seeds`] defines how.
//!
//! ```text
//! seeds of a look ─▶ runs ─▶ answers ─▶ decided? ─▶ summary
//!       ▲                                  │ no
//!       └── next look, without dropped ◀───┘
//! ```
//!
//! A folder has the number of seeds so far, and who was dropped, in its scenario. What is found at a look depends on
//! the runs alone, so that an experiment that was interrupted goes on as it would have.

use super::answer::{Answer, Name};
use super::artefacts::SCENARIO_FILE;
use super::compared::is_told_apart;
use super::{Earlier, Experiment, Outcome, RunOptions, Shard, Summary, Threads, below};
use crate::error::Error;
use crate::scenario::{ScenarioError, Seeds, UntilDecided};
use fedgenie_simulator::task::DataCache;

impl Experiment {
    /// Carries out look after look until the first answer is decided.
    ///
    /// # Errors
    /// As [`Self::run_with`]; and if nothing can be decided.
    pub(super) fn run_until_decided(
        &self,
        plan: &UntilDecided,
        options: &RunOptions<'_>,
        threads: &Threads,
    ) -> Result<Outcome, Error> {
        self.check_looks(plan, options)?;
        let cache = DataCache::default();
        let mut experiment = self.at_look(self.look_to_go_on(plan, options))?;
        let mut known = Vec::new();
        let mut earlier = options.earlier;
        loop {
            let options = RunOptions { earlier, files: options.files.clone(), ..*options };
            let carried = experiment.carry_out(&options, threads, &cache, std::mem::take(&mut known))?;
            let plan = experiment.until.as_ref().unwrap_or(plan);
            let next = match carried.is_whole() {
                true => {
                    let summary = experiment.summarise(carried.complete.clone(), &Default::default());
                    let next = next_look(&summary, plan);
                    options.progress.looked(&told(&summary, plan, next.as_ref()));
                    next
                }
                false => None,
            };
            let Some(next) = next else {
                let outcome = experiment.end(carried, &options)?;
                return Ok(Outcome { grown: Some(Box::new(experiment)), ..outcome });
            };
            if options.folder.is_none() {
                known = carried.complete;
            }
            (experiment, earlier) = (experiment.at_look(next)?, Earlier::Resume);
        }
    }

    /// Checks that there is something to decide, and that this process can.
    pub(super) fn check_looks(&self, plan: &UntilDecided, options: &RunOptions<'_>) -> Result<(), Error> {
        if options.shard != Shard::WHOLE {
            let message = "seeds are added until an answer is decided, which a shard cannot know: it has a part of the runs; take \
                           the shard out, or give seeds a number";
            return Err(Error::Usage(message.to_owned()));
        }
        let wrong = |path: &str, message: &str| Err(ScenarioError::new(&self.root, path, message).into());
        let (policies, points) = (self.labels().len(), self.points.len());
        if policies < 2 && points < 2 {
            return wrong(
                "seeds.until",
                "there is nothing to decide: give a second policy or a sweep, or seeds a number",
            );
        }
        if plan.race && (policies < 2 || points > 1) {
            return wrong(
                "seeds.race",
                "is about the policies of one point: what is worse at one may be best at another",
            );
        }
        Ok(())
    }

    /// The look that a folder has come to with this plan, if it is continued; else the first.
    fn look_to_go_on(&self, plan: &UntilDecided, options: &RunOptions<'_>) -> UntilDecided {
        let (Some(folder), Earlier::Resume) = (options.folder, options.earlier) else { return plan.anew() };
        let written = below::read_to_string(folder, SCENARIO_FILE).ok();
        let table: Option<toml::Table> = written.and_then(|text| text.parse().ok());
        match table.as_ref().and_then(Seeds::until_of) {
            Some(known) if known.is_plan_of(plan) => known,
            Some(_) => {
                options.progress.warned(
                    "seeds were added by another plan here before; an answer that is decided by a plan that was made after a look \
                     at the runs may be wrong more often than it says",
                );
                plan.anew()
            }
            None => plan.anew(),
        }
    }
}

/// The answer that decides.
fn first(summary: &Summary) -> Option<&Answer> {
    summary.answers.first()
}

/// The plan with the seeds of the next look; `None` if the answer is decided, or this was the last look.
fn next_look(summary: &Summary, plan: &UntilDecided) -> Option<UntilDecided> {
    let answer = first(summary);
    if answer.is_some_and(|answer| answer.looks.is_some_and(|looks| looks.decided)) {
        return None;
    }
    let seeds = plan.next()?;
    let mut next = UntilDecided { so_far: Some(seeds), ..plan.clone() };
    for other in answer.iter().filter(|_| plan.race).flat_map(|answer| &answer.others) {
        if let (Name::Label(label), None, true) = (&other.name, other.dropped, is_told_apart(&other.found)) {
            next.dropped.insert(label.clone(), plan.seeds());
        }
    }
    Some(next)
}

/// A look in a sentence.
fn told(summary: &Summary, plan: &UntilDecided, next: Option<&UntilDecided>) -> String {
    let seeds = plan.seeds();
    let Some(next) = next else {
        let is_decided = first(summary).and_then(|answer| answer.looks).is_some_and(|looks| looks.decided);
        return match is_decided {
            true => format!("after {seeds} seeds it is decided"),
            false => format!("after {seeds} seeds, the most, it is not decided"),
        };
    };
    let dropped: Vec<&str> =
        next.dropped.keys().filter(|label| !plan.dropped.contains_key(*label)).map(String::as_str).collect();
    let without = if dropped.is_empty() { String::new() } else { format!(", without {}", dropped.join(", ")) };
    format!("after {seeds} seeds it is not decided; on to {}{without}", next.seeds())
}
