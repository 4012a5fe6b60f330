//! A policy that states a bound on its regret: every round is compared, pages draw it, and a wrong one is told.

use super::super::support::{Workplace, changed, unheard};
use super::super::validation::WORLD;
use super::Broken;
use fedgenie::error::Error;
use fedgenie::experiment::{Earlier, Experiment, Outcome, Overrides, RunOptions, RunSummary, Threads};
use fedgenie::failure::Failure;
use fedgenie::id::Round;
use fedgenie::oracle::regret::Meter;
use fedgenie::policy::{
    BoundWorld, BuildContext, Policy, PolicyRng, RegretBound, Selection, SelectionRequest, ServerView,
};
use fedgenie::report::{Chart, LineKind, Report};
use fedgenie::run::RunError;
use fedgenie::scenario::{Details, Given, Kinds};
use fedgenie::state::{State, Stateful};
use std::sync::Arc;

/// The bound after a round, given the largest gap of a round.
type Law = Arc<dyn Fn(f64, u32) -> Result<Option<f64>, Failure> + Send + Sync>;

/// Selects the clients with the largest ids, which are slow, and states a bound.
struct Bounding {
    meter: Meter,
    law: Law,
}

impl Stateful for Bounding {
    fn exchange(&mut self, _: &mut State<'_>) {}
}

impl Policy for Bounding {
    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        _: &ServerView<'_>,
        _: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        selection.extend(ask.available.list().iter().rev().take(ask.cohort));
        Ok(())
    }

    fn bound(&self, world: &BoundWorld<'_>) -> Result<Option<RegretBound>, Failure> {
        assert_eq!((world.clients(), world.cohort, world.take), (6, 2, 2));
        assert!(world.waits_for_all && world.is_always_available);
        let means = &world.genie.means;
        let [least, most] = [f64::min, f64::max].map(|of| means.iter().copied().reduce(of).unwrap());
        let (gap, law) = (most - least + 2.0 * world.genie.reward.alpha, self.law.clone());
        let at = Box::new(move |round: Round| law(gap, round.0));
        Ok(Some(RegretBound { meter: self.meter, name: "the trivial law".to_owned(), at }))
    }
}

fn kinds(meter: Meter, law: Law) -> Kinds {
    let mut kinds = Kinds::of("program");
    let make =
        move |_: &BuildContext<'_>, _: Given<'_>| Ok(Box::new(Bounding { meter, law: law.clone() }) as Box<dyn Policy>);
    kinds.policy("mine", Details::default(), make).unwrap();
    kinds
}

/// The world with the policy in the place of the genie, on two seeds.
fn place() -> Workplace {
    let world = changed(WORLD, "seeds = 1", "seeds = 2");
    let world = changed(&world, "\"expected\"]", "\"realised\"]");
    Workplace::with(&changed(&world, "[policy.genie]", "[policy.mine]"))
}

fn run(place: &Workplace, meter: Meter, law: Law, settings: &[(&str, &str)]) -> Outcome {
    let set = settings.iter().map(|&(path, value)| (path.to_owned(), value.to_owned())).collect();
    let overrides = Overrides { kinds: kinds(meter, law), set, ..Overrides::default() };
    let experiment = Experiment::load(&place.path("scenario.toml"), &overrides).unwrap();
    let folder = place.path("out");
    let options = RunOptions { earlier: Earlier::Overwrite, ..RunOptions::into(&folder) };
    experiment.run_with(&options, &Threads::new(1).unwrap()).unwrap()
}

fn mine(outcome: &Outcome) -> Vec<&RunSummary> {
    outcome.summary.runs.iter().filter(|run| run.arm == "mine").collect()
}

fn bounds(place: &Workplace, id: &str) -> Vec<Vec<(f64, f64)>> {
    let report = Report::load(&[place.path("out")], &unheard()).unwrap();
    let figure = report.figures.iter().find(|figure| figure.id == id).unwrap();
    let Chart::Lines { lines, .. } = &figure.chart else { panic!("{id} has no lines") };
    let stated = lines.iter().filter(|line| line.role == LineKind::Bound);
    stated.map(|line| line.points.clone()).collect()
}

/// `n` times the largest gap bounds every policy. The ratios are those of the rounds, worked out again.
#[test]
fn every_round_is_compared_and_the_page_draws_the_bound() {
    let place = place();
    let outcome = run(&place, Meter::Mean, Arc::new(|gap, n| Ok(Some(gap * f64::from(n)))), &[]);
    for run in mine(&outcome) {
        let found = run.bound.as_ref().unwrap();
        let ratios = run.curve.iter().map(|point| (point.regret.mean.unwrap() / point.bound.unwrap(), point.round));
        let (ratio, round) = ratios.fold((0.0, 0), |best, of| if of.0 > best.0 { of } else { best });
        assert_eq!((run.curve.len(), found.ratio, found.round), (40, Some(ratio), round));
        assert!(ratio > 0.01 && ratio <= 1.0, "{ratio}");
        assert_eq!((found.exceeded, found.name.as_str(), found.meter.as_str()), (None, "the trivial law", "mean"));
        assert!(!run.warnings.iter().any(|warning| warning.contains("exceeds")), "{:?}", run.warnings);
    }
    let runs = &outcome.summary.runs;
    assert!(runs.iter().all(|run| run.bound.is_some() == (run.arm == "mine")), "bsfl has no quantum here");
    let (drawn, of_runs) = (bounds(&place, "regret"), mine(&outcome));
    let last: Vec<f64> = of_runs.iter().map(|run| run.curve.last().unwrap().bound.unwrap()).collect();
    let (round, mean) = *drawn[0].last().unwrap();
    assert!(drawn.len() == 1 && round == 40.0 && (mean / (0.5 * (last[0] + last[1])) - 1.0).abs() < 1e-3, "{drawn:?}");
    assert!(bounds(&place, "regret-realised").is_empty());
}

/// Of another meter, from round 5 on, and too small: every command says so.
#[test]
fn a_bound_that_does_not_hold_is_told() {
    let place = place();
    let law: Law = Arc::new(|_, n| Ok((n >= 5).then_some(0.01)));
    let outcome = run(&place, Meter::Realised, law, &[]);
    for run in mine(&outcome) {
        let found = run.bound.as_ref().unwrap();
        let at = |round: usize| run.curve[round - 1].regret.realised.unwrap() / 0.01;
        let largest = (5..=40).map(at).fold(0.0, f64::max);
        let first = (5..=40).find(|&round| at(round) > 1.0).unwrap();
        assert_eq!((found.ratio, found.exceeded), (Some(largest), Some(first as u32)));
        assert_eq!(run.curve.iter().filter(|point| point.bound.is_some()).count(), 36);
        let told = "exceeds the bound of the trivial law from round";
        assert!(run.warnings.iter().any(|warning| warning.contains(told)), "{:?}", run.warnings);
    }
    let first = |points: &[(f64, f64)]| points[0].0;
    assert_eq!(bounds(&place, "regret-realised").iter().map(|points| first(points)).collect::<Vec<_>>(), [5.0]);
    assert!(bounds(&place, "regret").is_empty());
    for command in [&["report", "out"][..], &["export", "out", "--to", "csv", "-o", "tables"], &["diff", "out", "out"]]
    {
        let answer = place.fedgenie(command);
        let told = [answer.stdout.as_str(), &answer.stderr].concat();
        assert!(told.contains("exceeds the bound of the trivial law"), "{command:?}: {answer:?}");
    }
}

/// No bound where its meter is not in use, and none of a policy that may select fewer clients.
#[test]
fn a_bound_needs_its_meter_and_its_cohort() {
    let place = place();
    let law: Law = Arc::new(|_, _| Ok(Some(1.0)));
    let outcome = run(&place, Meter::Expected, law.clone(), &[]);
    assert!(
        mine(&outcome).iter().all(|run| run.bound.is_none() && run.curve.iter().all(|point| point.bound.is_none()))
    );
    let outcome = run(&place, Meter::Mean, law.clone(), &[("policy.mine.cohort", "1")]);
    assert!(mine(&outcome).iter().all(|run| run.bound.is_none()));
    let outcome = run(&place, Meter::Mean, law, &[("policy.mine.cohort", "2")]);
    assert!(mine(&outcome).iter().all(|run| run.bound.is_some()));
}

/// A bound that fails, or is no number, ends its run like any other method of a policy.
#[test]
fn a_bound_that_fails_ends_its_run() {
    let place = place();
    let broken: Law = Arc::new(|_, n| if n == 7 { Err(Broken(7).into()) } else { Ok(None) });
    let negative: Law = Arc::new(|_, n| Ok(Some(7.0 - f64::from(n))));
    let cases = [
        (broken, "bound, round 7: broken part 7"),
        (negative, "bound, round 8: found -1; expected a number of at least 0"),
    ];
    for (law, message) in cases {
        let outcome = run(&place, Meter::Mean, law, &[]);
        assert_eq!((outcome.failures.len(), mine(&outcome).len()), (2, 0));
        let told = outcome.failures[0].1.to_string();
        assert!(told.contains("policy \"mine\" failed in") && told.contains(message), "{told}");
        assert!(matches!(outcome.failures[0].1, Error::Run { source: RunError::Outside { method: "bound", .. }, .. }));
    }
}
