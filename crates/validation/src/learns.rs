//! When a comparison of policies on a learned task counts.
//!
//! # Definition
//! A claim file says in `[learns]` what its runs have to show, of the main metric on test data unless it names another:
//!
//! - *It learns.* The control `control` (`"centralised"` if left out) is better than the trivial control `trivial` (the
//!   best of them if left out) by more than the metric's margin, with its whole 95 % interval over seeds; and the
//!   policy `policy` (`"random"`) ends better than it, with its whole interval, and has gone at least half of the way
//!   from the untrained model to the control.
//! - *It has settled.* With `settled = 0.25`, the line through the means over seeds in the last quarter of the rounds
//!   changes by no more than the metric's margin over that quarter, for every policy. `settled = "stop"` says that the
//!   numbers are read where the paper stops.
//! - *Its settings were chosen beforehand.* With `tuned = ["NAME"]` there is a choice from each grid that was declared,
//!   in `tuning/NAME.chosen.toml` beside the folder of claims, which `validate --tune NAME` writes.
//!
//! Where something fails, no number that comes from these runs is judged (where one policy has not settled, those in
//! which it is compared), but for checks that say `learns = false`: of times, bytes and other numbers that no model
//! decides. Runs of the small budget are too short to learn, and are not looked at.

use super::laboratory::{ClaimRuns, Context, Seen};
use super::margin::{Margin, margin_of};
use super::statistic::Measurement;
use super::tuning;
use fedgenie_core::math::statistics::{Estimate, estimate, paired_difference};
use fedgenie_core::metric::{Better, Metric};
use fedgenie_experiment::error::Error;
use fedgenie_experiment::experiment::controls::{CENTRALISED, INITIAL, is_trivial};
use fedgenie_experiment::experiment::{RunSummary, number};
use fedgenie_experiment::scenario::Scenario;
use serde::Deserialize;
use std::collections::BTreeSet;

/// `[learns]`
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Learns {
    /// The scenarios whose runs are looked at, by name; all of the claim if left out.
    #[serde(default)]
    scenarios: Vec<String>,
    /// The metric, such as `test_accuracy`; the main one on test data if left out.
    #[serde(default)]
    metric: Option<String>,
    /// The largest difference that counts as none, in place of that of [`margin_of`].
    #[serde(default)]
    margin: Option<f64>,
    /// The control with all data in one place.
    #[serde(default = "centralised")]
    control: String,
    /// The control without a model; the best of them if left out.
    #[serde(default)]
    trivial: Option<String>,
    /// The policy whose training is looked at.
    #[serde(default = "random")]
    policy: String,
    /// When the numbers are read.
    settled: Settled,
    /// The grids by which settings were chosen.
    #[serde(default)]
    tuned: Vec<String>,
}

fn centralised() -> String {
    CENTRALISED.to_owned()
}

fn random() -> String {
    "random".to_owned()
}

/// When numbers are read.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged, expecting = "a share of the rounds such as 0.25, or \"stop\"")]
enum Settled {
    /// At the end of runs whose last part of so much is flat.
    Flat(f64),
    /// Where the paper stops.
    At(At),
}

/// `settled = "stop"`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum At {
    Stop,
}

impl Learns {
    /// Checks that need no runs.
    ///
    /// # Errors
    /// A sentence.
    pub(super) fn check(&self) -> Result<(), String> {
        match self.settled {
            Settled::Flat(share) if !(share > 0.0 && share < 1.0) => {
                Err(format!("learns.settled: found {share}; expected a share of the rounds between 0 and 1"))
            }
            _ => Ok(()),
        }
    }

    /// Whether the scenarios make the control with all data in one place, at every point.
    ///
    /// # Errors
    /// If one is wrong, or does not.
    pub(super) fn check_controls(&self, context: &Context<'_>) -> Result<(), Error> {
        for name in self.scenarios(context) {
            let experiment = context.experiment(&name)?;
            let lacks = |(_, scenario): &(_, Scenario)| scenario.sections.controls.centralised.is_none();
            if self.control == CENTRALISED && experiment.points.iter().any(lacks) {
                let what = format!("learns: {name} does not make the control {CENTRALISED}");
                return Err(Error::Usage(format!("{what}; give the scenario [controls]")));
            }
        }
        Ok(())
    }

    /// The names of the scenarios whose runs are looked at.
    fn scenarios(&self, context: &Context<'_>) -> Vec<String> {
        if self.scenarios.is_empty() {
            context.scenarios().map(str::to_owned).collect()
        } else {
            self.scenarios.clone()
        }
    }

    /// Which runs cannot decide, and why.
    ///
    /// # Errors
    /// If a scenario is wrong, a run fails, or the claim names something that its scenarios do not have.
    pub(super) fn objections(&self, context: &Context<'_>) -> Result<Objections, Error> {
        let mut found = Vec::new();
        for name in &self.scenarios(context) {
            let completed = context.runs(name)?;
            let mut object = |point: usize, policy: Option<&String>, why: String| {
                let why = format!("{name}{}: {why}", completed.at(point));
                found.push(Objection { scenario: name.clone(), point, policy: policy.cloned(), why });
            };
            let experiment = &completed.experiment;
            let settings = self.tuned.iter().map(|tuned| tuning::objection(&context.tuning(), tuned, experiment));
            let settings = settings.collect::<Result<Vec<_>, Error>>()?.into_iter().flatten().next();
            for point in 0..completed.experiment.points.len() {
                let (metric, margin) = self.measured(&completed, point)?;
                let name = metric.id.to_string();
                let runs = completed.of(&self.policy, point)?;
                let looked = Looked { runs: &runs, metric: &metric, name: &name };
                let why = match &settings {
                    Some(why) => Some(why.clone()),
                    None => self.does_not_learn(&looked, margin)?,
                };
                if let Some(why) = why {
                    object(point, None, why);
                    continue;
                }
                let Settled::Flat(share) = self.settled else { continue };
                for policy in completed.policies() {
                    if let Some(why) = unsettled(&completed.of(&policy, point)?, &policy, (&name, margin), share) {
                        object(point, Some(&policy), why);
                    }
                }
            }
        }
        Ok(Objections(found))
    }

    /// The metric at a point, and its margin.
    fn measured(&self, completed: &ClaimRuns<'_>, point: usize) -> Result<(Metric, f64), Error> {
        let metric = self.metric_of(completed.of(&self.policy, point)?[0])?;
        let name = metric.id.to_string();
        match self.margin.map(Margin::Of).or_else(|| margin_of(&format!("final.{name}"))) {
            Some(Margin::Of(margin)) => Ok((metric, margin)),
            _ => Err(Error::Usage(format!("learns: {name} has no margin; give margin = … in its unit"))),
        }
    }

    fn metric_of(&self, run: &RunSummary) -> Result<Metric, Error> {
        let is_it = |metric: &&Metric| match &self.metric {
            Some(name) => metric.id.is_called(name),
            None => metric.main,
        };
        run.measured.iter().find(is_it).cloned().ok_or_else(|| {
            let known: Vec<String> = run.measured.iter().map(|metric| metric.id.to_string()).collect();
            let asked = self.metric.as_deref().unwrap_or("a main metric");
            Error::Usage(format!("learns.metric: there is no {asked}; there are {}", known.join(", ")))
        })
    }

    fn does_not_learn(&self, looked: &Looked<'_>, margin: f64) -> Result<Option<String>, Error> {
        let (name, quality) = (looked.name, |value: f64| looked.metric.better.quality(value));
        let control = looked.control(&self.control)?;
        let names: BTreeSet<&String> = looked.runs.iter().flat_map(|run| run.controls.keys()).collect();
        let trivial: Vec<String> = match &self.trivial {
            Some(name) => vec![name.clone()],
            None => names.into_iter().filter(|name| is_trivial(name)).cloned().collect(),
        };
        let known = trivial.iter().filter_map(|name| Some((name.clone(), looked.control(name).ok()?)));
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let best = known.max_by(|(_, one), (_, other)| quality(mean(one)).total_cmp(&quality(mean(other))));
        let Some((trivial, floor)) = best else {
            return Err(Error::Usage(format!("learns.trivial: no run has a control without training of {name}")));
        };
        let gain = |values: &[f64]| looked.gain(values, &floor);
        let ends = looked.ends()?;
        if gain(&control).is_none_or(|[low, _]| low <= margin) {
            // Where the policy learns, it is the control whose epochs or settings are wrong.
            let what = match gain(&ends) {
                Some([low, _]) if low > 0.0 => {
                    format!("({}) does not learn, though {} does", self.control, self.policy)
                }
                _ => format!("({}) is no better than ({trivial})", self.control),
            };
            return Ok(Some(format!(
                "{what}: with all data in one place {name} is {}, and of ({trivial}) {}",
                number(mean(&control)),
                number(mean(&floor))
            )));
        }
        let gained = gain(&ends);
        if gained.is_none_or(|[low, _]| low <= 0.0) {
            // Means in the right order decide nothing where seeds differ more.
            let what = match gained {
                Some([low, high]) if quality(mean(&ends)) > quality(mean(&floor)) => {
                    format!("is not surely better than ({trivial}), by {} to {}", number(low), number(high))
                }
                _ => format!("ends no better than ({trivial})"),
            };
            return Ok(Some(format!(
                "{} {what}: {name} is {}, and of ({trivial}) {}",
                self.policy,
                number(mean(&ends)),
                number(mean(&floor))
            )));
        }
        let initial = mean(&looked.control(INITIAL)?);
        let way = quality(mean(&control)) - quality(initial);
        let gone = (quality(mean(&ends)) - quality(initial)) / way;
        Ok((gone < 0.5).then(|| {
            format!(
                "{} has gone {:.0} % of the way from the untrained model ({}) to all data in one place ({}): {name} {}",
                self.policy,
                100.0 * gone,
                number(initial),
                number(mean(&control)),
                number(mean(&ends))
            )
        }))
    }
}

/// Runs that cannot decide, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Objection {
    scenario: String,
    point: usize,
    /// The policy; all of the scenario's at the point if it is none.
    policy: Option<String>,
    why: String,
}

/// What runs of a claim cannot decide.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Objections(Vec<Objection>);

impl Objections {
    /// Why a number of a measurement is not judged. What is said of one policy concerns the number with that label, or
    /// all numbers where none has it: those of the policy that the others are compared with.
    pub fn to(&self, measurement: &Measurement, label: &str) -> Option<&str> {
        let has_label = |policy: &str| measurement.measured.iter().any(|measured| measured.label == policy);
        let concerns = |objection: &&Objection| {
            let is_there = |seen: &Seen| seen.scenario == objection.scenario && seen.point == objection.point;
            let mut there = measurement.seen.iter().filter(|seen| is_there(seen));
            match &objection.policy {
                // A statistic that carries scenarios out itself tells nothing of what it has looked at.
                _ if measurement.seen.is_empty() => true,
                None => there.next().is_some(),
                Some(policy) => there.any(|seen| seen.policy == *policy) && (policy == label || !has_label(policy)),
            }
        };
        self.0.iter().find(concerns).map(|objection| &*objection.why)
    }
}

/// Why the runs of a policy have not settled; `None` if they have.
fn unsettled(runs: &[&RunSummary], policy: &str, (metric, margin): (&str, f64), share: f64) -> Option<String> {
    let Some(change) = change_at_end(runs, metric, share) else {
        return Some(format!("{metric} of {policy} is known in too few rounds to tell whether it has settled"));
    };
    (change.abs() > margin).then(|| {
        format!(
            "{policy} has not settled: {metric} changes by {} over the last {:.0} % of the rounds, more than {}",
            number(change),
            100.0 * share,
            number(margin)
        )
    })
}

/// The runs of the policy that is looked at.
struct Looked<'a> {
    runs: &'a [&'a RunSummary],
    metric: &'a Metric,
    name: &'a str,
}

impl Looked<'_> {
    /// The values of a control, seed by seed.
    fn control(&self, control: &str) -> Result<Vec<f64>, Error> {
        let of = |run: &&RunSummary| run.controls.get(control)?.get(self.name).copied();
        let all: Option<Vec<f64>> = self.runs.iter().map(of).collect();
        all.ok_or_else(|| {
            let what = format!("learns: not every run has {} of the control {control}", self.name);
            Error::Usage(format!("{what}; give the scenario [controls]"))
        })
    }

    /// The final values, seed by seed.
    fn ends(&self) -> Result<Vec<f64>, Error> {
        let all: Option<Vec<f64>> = self.runs.iter().map(|run| run.final_metrics.get(self.name).copied()).collect();
        all.ok_or_else(|| Error::Usage(format!("learns: {} is not known at the end of every run", self.name)))
    }

    /// The interval of how much better values are than others.
    fn gain(&self, values: &[f64], than: &[f64]) -> Option<[f64; 2]> {
        let found: Estimate = match self.metric.better {
            Better::Higher => paired_difference(values, than)?,
            Better::Lower => paired_difference(than, values)?,
        };
        found.ci95
    }
}

/// The change of the line through the means over seeds within the last part of the rounds; `None` with fewer than three
/// evaluated rounds there.
fn change_at_end(runs: &[&RunSummary], metric: &str, share: f64) -> Option<f64> {
    let last = runs.iter().filter_map(|run| run.curve.iter().last()).map(|point| point.round).min()?;
    let from = (f64::from(last) * (1.0 - share)) as u32;
    let rounds: BTreeSet<u32> = runs.iter().flat_map(|run| run.curve.iter().map(|point| point.round)).collect();
    let mean = |round: u32| {
        let value = |run: &&RunSummary| {
            let point = run.curve.iter().find(|point| point.round == round)?;
            point.metrics.iter().find(|(id, _)| id.is_called(metric)).map(|&(_, value)| value)
        };
        let values: Option<Vec<f64>> = runs.iter().map(value).collect();
        Some((f64::from(round), estimate(&values?)?.mean))
    };
    let points: Vec<(f64, f64)> =
        rounds.into_iter().filter(|round| (from..=last).contains(round)).filter_map(mean).collect();
    if points.len() < 3 {
        return None;
    }
    let count = points.len() as f64;
    let [x, y] = [points.iter().map(|point| point.0).sum::<f64>(), points.iter().map(|point| point.1).sum()];
    let [x, y]: [f64; 2] = [x / count, y / count];
    let slope = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum::<f64>()
        / points.iter().map(|point| (point.0 - x) * (point.0 - x)).sum::<f64>();
    Some(slope * (points[points.len() - 1].0 - points[0].0))
}

#[cfg(test)]
mod tests {
    use super::super::statistic::Measured;
    use super::*;

    /// A measurement with rows of these labels, of runs of these policies at point 0 of `all`.
    fn measurement(labels: &[&str], policies: &[&str]) -> Measurement {
        let measured = |label: &&str| Measured {
            label: (*label).to_owned(),
            value: 0.0,
            ci95: None,
            n: 1,
            is_exact: true,
            student: None,
            none: None,
            note: None,
        };
        let seen = |policy: &&str| Seen { scenario: "all".to_owned(), point: 0, policy: (*policy).to_owned() };
        Measurement {
            measured: labels.iter().map(measured).collect(),
            seen: policies.iter().map(seen).collect(),
            ..Measurement::default()
        }
    }

    fn of(scenario: &str, point: usize, policy: Option<&str>) -> Objections {
        let (policy, why) = (policy.map(str::to_owned), "why".to_owned());
        Objections(vec![Objection { scenario: scenario.to_owned(), point, policy, why }])
    }

    #[test]
    fn what_is_said_of_a_policy_concerns_the_numbers_that_it_is_in() {
        let compared = measurement(&["b", "c"], &["a", "b", "c"]);
        let concerned = |objections: &Objections| ["b", "c"].map(|label| objections.to(&compared, label).is_some());
        assert_eq!(concerned(&of("all", 0, None)), [true, true]);
        assert_eq!(concerned(&of("all", 0, Some("b"))), [true, false]);
        assert_eq!(concerned(&of("all", 0, Some("a"))), [true, true], "all are compared with it");
        assert_eq!(concerned(&of("all", 0, Some("d"))), [false, false]);
        assert_eq!(concerned(&of("all", 1, None)), [false, false]);
        assert_eq!(concerned(&of("other", 0, None)), [false, false]);
        assert_eq!(concerned(&Objections::default()), [false, false]);
        // Nothing is known of a statistic that carries scenarios out itself.
        assert!(of("other", 3, Some("d")).to(&measurement(&["b"], &[]), "b").is_some());
    }
}
