//! MAB-FRS (16): the exact walk against enumeration, and the greedy rule against the exact walk.
//!
//! Instances: utilities `S = U·R + 0.5·D̃` with relevance `U` uniform in [0, 1], reputation `R` normal around 0 with
//! deviation 0.3 (by the sum of twelve uniforms), data quality `D̃` uniform in [0, 1]; times: half of the clients have
//! eight times the cores of the other half, bandwidths are those of the paper's device table (1600, 100, 6, 2 Mbit/s),
//! work and payload uniform within a factor of four; divided by their 80 % quantile. `κ` is drawn from 0.25, 0.5, 1, 2.

use super::{Details, Measured, Measurement, shown};
use crate::clock::seconds_of;
use crate::laboratory::Context;
use fedgenie_core::math::statistics::{estimate, proportion, quantile};
use fedgenie_core::oracle::free_size::{enumerate, greedy, maximise};
use fedgenie_core::rng::{Purpose, StreamRng, Streams};
use fedgenie_experiment::error::Error;
use serde::Deserialize;

/// Parameters.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Number of instances per size.
    instances: u32,
    /// Numbers of clients; up to 16 they are enumerated.
    clients: Vec<u32>,
    /// The largest number of clients for which the time of the walk is shown.
    largest: u32,
}

const ENUMERATED: u32 = 16;
const SAME: f64 = 1e-9;

struct Instance {
    utilities: Vec<f64>,
    times: Vec<f64>,
    price: f64,
}

fn draw(clients: u32, rng: &mut StreamRng) -> Instance {
    const BANDWIDTHS: [f64; 4] = [1600.0, 100.0, 6.0, 2.0];
    let (mut utilities, mut times) = (Vec::new(), Vec::new());
    for client in 0..clients {
        let normal = (0..12).map(|_| rng.uniform()).sum::<f64>() - 6.0;
        utilities.push(rng.uniform() * 0.3 * normal + 0.5 * rng.uniform());
        let cores = if client % 2 == 0 { 8.0 } else { 1.0 };
        let compute = (1.0 + 3.0 * rng.uniform()) / cores;
        let payload_mbit = 4.0 * (1.0 + 3.0 * rng.uniform());
        times.push(compute + payload_mbit / BANDWIDTHS[rng.below(4) as usize]);
    }
    let mut sorted = times.clone();
    sorted.sort_by(f64::total_cmp);
    let boundary = quantile(&sorted, 0.8);
    times.iter_mut().for_each(|time| *time /= boundary);
    Instance { utilities, times, price: [0.25, 0.5, 1.0, 2.0][rng.below(4) as usize] }
}

impl Config {
    pub(super) fn measure(&self, context: &Context<'_>) -> Result<Measurement, Error> {
        let streams = Streams::new(1);
        let mut details = Details::new(
            format!("{} instances per size", self.instances),
            &["clients", "walk = enumeration", "greedy optimal", "mean gap of greedy", "largest gap", "mean optimum"],
        );
        let (mut enumerated, mut agreed, mut optimal, mut all) = (0, 0, 0, 0);
        let mut relative = Vec::new();
        for &clients in &self.clients {
            let numbers: Vec<u32> = (0..self.instances).collect();
            let found = context.map(&numbers, |&number| {
                let mut rng = streams.stream(Purpose::Resampling, number, clients);
                let Instance { utilities, times, price } = draw(clients, &mut rng);
                let (best, _) = maximise(&utilities, &times, price);
                let by_rule = greedy(&utilities, &times, price, times.len()).0;
                let by_force = (clients <= ENUMERATED).then(|| enumerate(&utilities, &times, price));
                Ok((best, by_rule, by_force))
            })?;
            let same =
                found.iter().filter(|(best, _, force)| force.is_some_and(|force| (force - best).abs() < SAME)).count();
            let gaps: Vec<f64> = found.iter().map(|(best, rule, _)| best - rule).collect();
            let solved = gaps.iter().filter(|gap| **gap < SAME).count();
            let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
            let bests: Vec<f64> = found.iter().map(|(best, ..)| *best).collect();
            let is_enumerated = clients <= ENUMERATED;
            details.rows.push(vec![
                clients.to_string(),
                if is_enumerated { format!("{same} of {}", found.len()) } else { "too many sets".to_owned() },
                format!("{solved} of {}", found.len()),
                shown(mean(&gaps)),
                shown(gaps.iter().copied().fold(0.0, f64::max)),
                shown(mean(&bests)),
            ]);
            if is_enumerated {
                (enumerated, agreed) = (enumerated + found.len(), agreed + same);
            }
            (all, optimal) = (all + found.len(), optimal + solved);
            // The interval of a quotient of means, by what each instance adds to it (delta method).
            let (ratio, best) = (mean(&gaps) / mean(&bests), mean(&bests));
            let parts: Vec<f64> =
                gaps.iter().zip(&bests).map(|(gap, one)| ratio + (gap - ratio * one) / best).collect();
            let label = format!("{clients} clients: mean gap of greedy over mean optimum");
            relative.extend(estimate(&parts).map(|found| Measured::estimate(label, found)));
        }
        let mut times =
            Details::new("Time of the exact walk", &["clients", "ms", "ns per client and log2 of their number"]);
        let mut clients = 1_000;
        while clients <= self.largest {
            let mut rng = streams.stream(Purpose::Resampling, 0, clients);
            let Instance { utilities, times: latencies, price } = draw(clients, &mut rng);
            let (_, seconds) = seconds_of(|| maximise(&utilities, &latencies, price));
            let scale = f64::from(clients) * f64::from(clients.ilog2());
            times.rows.push(vec![clients.to_string(), shown(1e3 * seconds), shown(1e9 * seconds / scale)]);
            clients *= 10;
        }
        let mut measured = vec![
            Measured::exact("instances in which walk and enumeration differ", (enumerated - agreed) as f64, enumerated),
            Measured::estimate("share of instances that greedy solves", proportion(optimal as u64, all as u64)),
        ];
        measured.extend(relative);
        Ok(Measurement::new(measured, vec![details, times]))
    }
}
