//! Whether a policy with a Beta posterior for each client learns the clients' contributions.
//!
//! For each server and client two numbers are compared at the end of a run: the posterior mean `α/(α + β)` of the
//! policy's last explanation (`[record] explain = true`), and the client's true contribution: the mean value of the
//! sets of a round's size with it less that of the sets without, over all sets, averaged over the judged rounds
//! (`counterfactual` with a utility of sets). The statistic is Kendall's τ-b between the two over the clients of a
//! server, averaged over the servers of a run on which it is defined: 1 if the posterior ranks all clients as they
//! contribute, 0 for an unrelated order. Its interval is over seeds.

use super::{Details, Measured, Measurement, runs_of, shown, usage};
use crate::laboratory::Context;
use fedgenie_core::id::ClientId;
use fedgenie_core::math::statistics::{estimate, kendall};
use fedgenie_core::record::Record;
use fedgenie_experiment::error::Error;
use fedgenie_simulator::recorder::{RoundMark, RoundSummary, Sink};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::io;

/// Parameters.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    scenario: String,
    /// Of its sweep: 0 is the first point.
    #[serde(default)]
    point: usize,
    policy: String,
}

/// Records of a run so far.
#[derive(Default)]
struct Told {
    /// By client: the sum of its contributions over rounds, and their number.
    contributed: BTreeMap<ClientId, (f64, u32)>,
    /// By server, which is empty where there is one: each client's posterior mean.
    posteriors: BTreeMap<String, BTreeMap<ClientId, f64>>,
}

impl Told {
    /// Adds a policy's explanation after a round.
    fn hear(&mut self, explanation: &Map<String, Value>) {
        let Some(after) = explanation.get("after") else { return };
        let numbers = |name: &str| -> Vec<f64> {
            let list = after[name].as_array().map_or(&[][..], |list| list);
            list.iter().map(|number| number.as_f64().unwrap_or(f64::NAN)).collect()
        };
        let [clients, alpha, beta] = ["clients", "alpha", "beta"].map(numbers);
        let server = explanation.get("server").map_or_else(String::new, ToString::to_string);
        let of_server = self.posteriors.entry(server).or_default();
        for (client, (alpha, beta)) in clients.into_iter().zip(alpha.into_iter().zip(beta)) {
            of_server.insert(ClientId(client as u32), alpha / (alpha + beta));
        }
    }

    /// τ-b of each server on which it is defined.
    fn agreement(&self) -> Vec<f64> {
        let of_server = |posteriors: &BTreeMap<ClientId, f64>| {
            let pair = |(client, posterior): (&ClientId, &f64)| {
                let (sum, rounds) = self.contributed.get(client)?;
                Some((*posterior, sum / f64::from(*rounds)))
            };
            kendall(&posteriors.iter().filter_map(pair).collect::<Vec<_>>())
        };
        self.posteriors.values().filter_map(of_server).collect()
    }
}

impl Sink for Told {
    fn record(&mut self, _: &Record<'_>) -> io::Result<()> {
        Ok(())
    }

    fn round(&mut self, summary: &RoundSummary<'_>, _: bool, _: &RoundMark) -> io::Result<()> {
        for &(client, contribution) in summary.hindsight.iter().flat_map(|judged| &judged.contributions) {
            let (sum, rounds) = self.contributed.entry(client).or_default();
            *sum += contribution;
            *rounds += 1;
        }
        summary.explain.unwrap_or_default().iter().for_each(|explanation| self.hear(explanation));
        Ok(())
    }
}

impl Config {
    pub(super) fn measure(&self, context: &Context<'_>) -> Result<Measurement, Error> {
        let experiment = context.experiment(&self.scenario)?;
        let mut runs = runs_of(&experiment, &self.policy)?;
        runs.retain(|run| run.point == self.point);
        if runs.is_empty() {
            return usage(format!("there is no point {}", self.point));
        }
        let found = context.map(&runs, |run| {
            let world = experiment.world_of(run, context.laboratory.cache())?;
            let mut told = Told::default();
            experiment.run_one(run, &world, &mut told, context.laboratory.threads(), None)?;
            if told.contributed.is_empty() {
                return usage(format!("{}: no round has the contributions of clients", run.name));
            }
            if told.posteriors.values().all(BTreeMap::is_empty) {
                return usage(format!("{}: no explanation has alpha and beta after a round", run.name));
            }
            Ok((run.seed, told.agreement()))
        })?;
        let title = format!("Kendall's τ between the posteriors of {} and contributions", self.policy);
        let mut details = Details::new(title, &["seed", "mean over servers", "smallest", "largest", "servers"]);
        let mut means = Vec::new();
        for (seed, of_servers) in &found {
            let mean = of_servers.iter().sum::<f64>() / of_servers.len() as f64;
            let least = of_servers.iter().copied().fold(f64::INFINITY, f64::min);
            let most = of_servers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let row = [seed.to_string(), shown(mean), shown(least), shown(most), of_servers.len().to_string()];
            details.rows.push(row.to_vec());
            means.push(mean);
        }
        match estimate(&means) {
            Some(found) => Ok(Measurement::new(vec![Measured::estimate(&*self.policy, found)], vec![details])),
            None => usage("in a run all posteriors, or all contributions, of each server are equal"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Server 0 ranks three clients as they contribute, server 1 two of them the other way round; the first explanation
    /// no longer counts.
    #[test]
    fn posteriors_and_contributions_by_hand() {
        let mut told = Told::default();
        let say = |told: &mut Told, server: u32, clients: &[u32], alpha: &[f64]| {
            let beta = vec![1.0; alpha.len()];
            let said = json!({ "server": server, "after": { "clients": clients, "alpha": alpha, "beta": beta } });
            told.hear(said.as_object().unwrap());
        };
        say(&mut told, 0, &[0, 1, 2], &[9.0, 1.0, 1.0]);
        say(&mut told, 0, &[0, 1, 2], &[1.0, 2.0, 4.0]);
        say(&mut told, 1, &[3, 4], &[1.0, 2.0]);
        for (client, contributions) in
            [(0, [0.0, 0.25]), (1, [0.5, 0.0]), (2, [0.25, 0.75]), (3, [0.5; 2]), (4, [0.0; 2])]
        {
            told.contributed.insert(ClientId(client), (contributions.iter().sum(), 2));
        }
        assert_eq!(told.agreement(), [1.0, -1.0]);
    }
}
