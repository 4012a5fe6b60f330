//! Facts of a world that no server could know: mean speeds, and the yardsticks of the regret meters.

use super::WorldError;
use crate::population::Population;
use crate::protocol::Rule;
use fedgenie_core::id::ClientId;
use fedgenie_core::law::{ExpectedMinimum, Law};
use fedgenie_core::oracle::Genie;
use fedgenie_core::oracle::regret::{AllSets, MOST_SETS, Meter, Meters, most_subsets};
use fedgenie_core::oracle::reward::Reward;
use fedgenie_core::record::Phase;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The truth about the clients' speeds, where a scenario has a reward.
#[derive(Debug)]
pub struct Truth {
    /// The reward and every client's mean speed under it.
    pub genie: Genie,
    /// The regret meters asked for.
    pub meters: Vec<Meter>,
    /// For the `expected` meters.
    pub expected: Option<Arc<ExpectedMinimum>>,
    /// For `expected-exact`.
    pub all_sets: Option<Arc<AllSets>>,
}

impl Truth {
    /// Works out mean speeds and, where metered, expected minima. Warnings about them are added to `warnings`.
    pub(super) fn new(
        reward: Reward,
        meters: &[Meter],
        population: &Population,
        rule: &Rule,
        warnings: &mut Vec<String>,
    ) -> Result<Self, WorldError> {
        let tau_min = reward.tau_min.seconds();
        let mut known = BTreeMap::new();
        let mean_speeds: Vec<f64> = clients(population)
            .map(|client| {
                let mean = || population.job_latency(client, rule.cut()).mean_speed(tau_min);
                *known.entry(population.latency_key(client)).or_insert_with(mean)
            })
            .collect();
        let mut truth =
            Self { genie: Genie::new(reward, mean_speeds), meters: meters.to_vec(), expected: None, all_sets: None };
        if let Some(client) = truth.genie.ambiguous_means().first() {
            warnings.push(format!(
                "the mean speed of {client} lies within 1e-6 of a half step of the quantum: which way it is rounded is \
                 a matter of the last digits"
            ));
        }
        if meters.iter().any(|meter| matches!(meter, Meter::Expected | Meter::ExpectedExact)) {
            let expected = expected_minimum(&truth.genie, population, rule, warnings)?;
            if meters.contains(&Meter::ExpectedExact) {
                if most_subsets(population.len(), rule.ask()) > MOST_SETS {
                    let message = format!(
                        "`expected-exact` enumerates at most {MOST_SETS} sets of each size up to the cohort; take it out \
                         of the meters"
                    );
                    return Err(WorldError::scenario("regret.meters", message));
                }
                truth.all_sets = Some(Arc::new(AllSets::new(population.len(), rule.ask(), &expected)));
            }
            truth.expected = Some(Arc::new(expected));
        }
        Ok(truth)
    }

    /// Checks that the truth is defined, without working it out.
    pub(super) fn check(reward: &Reward, population: &Population, rule: &Rule) -> Result<(), WorldError> {
        check_speeds_are_defined(population)?;
        check_tau_min(reward, population, rule)
    }

    /// The regret meters of a run, before its first round.
    pub fn meters(&self) -> Meters {
        Meters::new(&self.meters, self.expected.clone(), self.all_sets.clone())
    }
}

fn clients(population: &Population) -> impl Iterator<Item = ClientId> + Clone {
    (0..population.len()).map(ClientId::from_index)
}

fn expected_minimum(
    genie: &Genie,
    population: &Population,
    rule: &Rule,
    warnings: &mut Vec<String>,
) -> Result<ExpectedMinimum, WorldError> {
    if rule.take() < rule.ask() {
        let message = "`expected` is not defined under over-selection; take it out of the meters";
        return Err(WorldError::scenario("regret.meters", message));
    }
    let latencies: Vec<_> = clients(population).map(|client| population.job_latency(client, rule.cut())).collect();
    if latencies.iter().any(|latency| !latency.has_closed_form_cdf()) {
        warnings.push(
            "the latency of some clients has no distribution function in closed form; the `expected` meter integrates it \
             numerically"
                .to_owned(),
        );
    }
    ExpectedMinimum::new(genie.reward.tau_min.seconds(), &latencies, &genie.mean_speeds)
        .map_err(|error| WorldError::scenario("regret.meters", error.to_string()))
}

/// A mean speed is that of a client that is there all the time, on links that do not change.
fn check_speeds_are_defined(population: &Population) -> Result<(), WorldError> {
    if population.has_traced_links() {
        let message = "a client's link follows a trace, so that its latency depends on when it is asked for and its mean \
                       speed is not defined; leave [regret] out, or give downlink and uplink as rates";
        return Err(WorldError::scenario("regret", message));
    }
    if population.recording().is_some() {
        let message = "clients replay a log, whose jobs have no law; leave [regret] out, or fit a fleet to the log \
                       (fedgenie fit)";
        return Err(WorldError::scenario("regret", message));
    }
    if !population.batteries().is_empty() {
        let message = "clients have batteries, which run empty in the middle of jobs, so that who answers depends on when a job \
                       begins and a client's mean speed is not defined; leave [regret] out, or population.battery";
        return Err(WorldError::scenario("regret", message));
    }
    if population.has_interruptions() {
        let message = "clients go away in the middle of their jobs, so that a job's latency depends on when it begins \
                       and a client's mean speed is not defined; leave [regret] out, or give interrupted = \"run-on\"";
        return Err(WorldError::scenario("regret", message));
    }
    Ok(())
}

/// Speeds must not exceed 1: no client's latency may fall below `tau_min`.
fn check_tau_min(reward: &Reward, population: &Population, rule: &Rule) -> Result<(), WorldError> {
    let tau_min = reward.tau_min.seconds();
    for client in clients(population) {
        let shortest: f64 = Phase::ALL.into_iter().map(|phase| population.law(client, phase).minimum()).sum();
        if shortest < tau_min * (1.0 - 1e-12) {
            let message = format!(
                "found {tau_min} s, but the latency of {client} can fall to {shortest} s; tau_min is the shortest \
                 conceivable latency, so give at most that, or a latency law with a larger minimum"
            );
            return Err(WorldError::scenario("regret.tau_min", message));
        }
    }
    match rule.cut() {
        Some(cut) if cut < reward.tau_min => {
            let message = format!(
                "found {tau_min} s, longer than the timeout or deadline of {} s, at which every round would end",
                cut.seconds()
            );
            Err(WorldError::scenario("regret.tau_min", message))
        }
        _ => Ok(()),
    }
}
