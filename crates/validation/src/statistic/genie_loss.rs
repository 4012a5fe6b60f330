//! The genie's own loss per round, when its realised rewards are compared with `min μ`.
//!
//! `min_{k∈G} μ_k − min_{k∈G} τ_min/τ_{k,t}` averaged over rounds, and beside it the theory for the same sets:
//! `min_{k∈G} μ_k − E[min_{k∈G} τ_min/τ_k]`, by quadrature. Their difference has mean zero, which checks both.

use super::{Measured, Measurement, runs_of, usage};
use crate::laboratory::Context;
use fedgenie_core::id::ClientId;
use fedgenie_core::math::statistics::{estimate, paired_difference};
use fedgenie_core::record::Record;
use fedgenie_experiment::error::Error;
use fedgenie_simulator::recorder::{RoundMark, RoundSummary, Sink};
use serde::Deserialize;
use std::io;

/// Parameters.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    scenario: String,
    /// The label of the genie or of another policy.
    policy: String,
}

/// The selection of each round, and its duration in seconds.
#[derive(Default)]
struct Rounds(Vec<(Vec<ClientId>, f64)>);

impl Sink for Rounds {
    fn record(&mut self, _: &Record<'_>) -> io::Result<()> {
        Ok(())
    }

    fn round(&mut self, summary: &RoundSummary<'_>, _: bool, _: &RoundMark) -> io::Result<()> {
        self.0.push((summary.jobs.selected.clone(), (summary.closed - summary.opened).seconds()));
        Ok(())
    }
}

impl Config {
    pub(super) fn measure(&self, context: &Context<'_>) -> Result<Measurement, Error> {
        let experiment = context.experiment(&self.scenario)?;
        let losses = context.map(&runs_of(&experiment, &self.policy)?, |run| {
            let world = experiment.world_of(run, context.laboratory.cache())?;
            let Some((genie, Some(expected))) = world.truth.as_ref().map(|truth| (&truth.genie, &truth.expected))
            else {
                return usage("the scenario needs the meter `expected`");
            };
            let mut sink = Rounds::default();
            experiment.run_one(run, &world, &mut sink, context.laboratory.threads(), None)?;
            let Rounds(rounds) = sink;
            let tau_min = genie.reward.tau_min.seconds();
            let (mut realised, mut theory) = (0.0, 0.0);
            for (selected, duration) in &rounds {
                let ids: Vec<usize> = selected.iter().map(|client| client.index()).collect();
                let mean = ids.iter().map(|&id| genie.means[id]).fold(f64::INFINITY, f64::min);
                // The round waits for its slowest client.
                realised += mean - tau_min / duration;
                theory += mean - expected.of(&ids);
            }
            let rounds = rounds.len() as f64;
            Ok((realised / rounds, theory / rounds))
        })?;
        let (realised, theory): (Vec<f64>, Vec<f64>) = losses.into_iter().unzip();
        let mut measured = Vec::new();
        for (label, found) in [
            ("realised loss per round", estimate(&realised)),
            ("min E − E[min] per round", estimate(&theory)),
            ("their difference", paired_difference(&realised, &theory)),
        ] {
            match found {
                Some(found) => measured.push(Measured::estimate(label, found)),
                None => return usage("the loss is not finite"),
            }
        }
        Ok(Measurement::new(measured, Vec::new()))
    }
}
