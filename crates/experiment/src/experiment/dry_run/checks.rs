//! The checks before the first run, as far as there is time for them.

use super::super::clock::now;
use super::super::{Experiment, RunId};
use crate::scenario::ScenarioError;
use fedgenie_simulator::task::DataCache;
use std::collections::BTreeMap;

/// Seconds that the checks of further seeds may take.
const MOST_S: f64 = 1.0;

/// What was checked.
#[derive(Debug)]
pub(super) struct Checked {
    pub warnings: Vec<String>,
    /// Seconds that all checks take.
    pub whole_s: f64,
    /// Pairs of point and seed beyond the first seeds, and how many of these were checked.
    others: (usize, usize),
}

impl Checked {
    /// What was left out, in words.
    pub fn note(&self) -> Option<String> {
        let (all, done) = self.others;
        let left = all - done;
        (left > 0).then(|| {
            format!(
                "of {left} of {all} pairs of a point and a further seed the world was not checked, for lack of time; `run` \
                 checks them before its first run"
            )
        })
    }
}

/// Checks the world of the first seed at each point whole, and those of further seeds while there is time.
///
/// # Errors
/// The first thing that is wrong.
pub(super) fn check(experiment: &Experiment, runs: &[RunId], cache: &DataCache) -> Result<Checked, ScenarioError> {
    let (began, mut seeds) = (now(), BTreeMap::new());
    let (mut first, mut others) = (Vec::new(), BTreeMap::new());
    for run in runs {
        let (point, seed, variant) = experiment.place_of(run);
        match *seeds.entry((point, variant)).or_insert(seed) == seed {
            true => first.push(run.clone()),
            // Seed by seed, so that all points are among those that there is time for.
            false => drop(others.entry((seed, point, variant)).or_insert(run)),
        }
    }
    let warnings = experiment.check_worlds(&first, cache)?;
    let (first_s, begin, mut done) = (began.elapsed().as_secs_f64(), now(), 0);
    for run in others.values() {
        let scenario = &experiment.points[run.point].1;
        let checked = scenario.plan_of(run.arm).check(run.seed, cache);
        checked.map_err(|error| scenario.explain_of(run.arm, error))?;
        done += 1;
        if begin.elapsed().as_secs_f64() > MOST_S {
            break;
        }
    }
    let each = begin.elapsed().as_secs_f64() / f64::from(done.max(1));
    let others = (others.len(), done as usize);
    Ok(Checked { warnings, whole_s: first_s + each * others.0 as f64, others })
}
