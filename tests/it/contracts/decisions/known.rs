//! A policy knows exactly the capabilities that it declares and the scenario gives.

use super::{FOUR, SYNCHRONOUS, Told, decision, source, world_of};
use crate::support::{SETTINGS, Seen, changed};
use fedgenie::failure::Failure;
use fedgenie::policy::{
    Bounds, BuildContext, Capabilities, OutsidePolicy, Policies, Policy, PolicyRng, PolicySource, Selection,
    SelectionRequest, ServerView,
};
use fedgenie::population::ForecastError;
use fedgenie::run::{Run, RunError};
use fedgenie::state::{State, Stateful};
use fedgenie::time::{Span, VirtualTime};
use fedgenie::world::World;
use std::sync::{Arc, Mutex};

const FORECAST: &str = "[population.forecast]\nhorizon = \"1 h\"\n[training]";

fn forecast_world() -> World {
    world_of(&format!("{}{SYNCHRONOUS}", changed(FOUR, "[training]", FORECAST)))
}

/// Asks for a forecast of so many seconds, whatever it declares, and selects client 0.
#[derive(Clone)]
struct Asking {
    capabilities: Capabilities,
    /// Client, beginning and end of the interval, in seconds after now.
    question: (u32, u64, u64),
    answers: Arc<Mutex<Vec<Result<bool, ForecastError>>>>,
    bounds: Arc<Mutex<Vec<Option<Bounds>>>>,
}

impl Asking {
    fn new(capabilities: Capabilities, question: (u32, u64, u64)) -> Self {
        Self { capabilities, question, answers: Arc::default(), bounds: Arc::default() }
    }
}

impl Stateful for Asking {
    fn exchange(&mut self, _: &mut State<'_>) {}
}

impl Policy for Asking {
    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        view: &ServerView<'_>,
        _: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        let (client, from, to) = self.question;
        let at = |seconds: u64| ask.now + Span(seconds * 1_000_000_000);
        let answer = view.forecast(fedgenie::id::ClientId(client), at(from), at(to));
        self.answers.lock().unwrap().push(answer);
        self.bounds.lock().unwrap().push(view.bounds);
        assert_eq!(view.layout.is_some(), self.capabilities.layout);
        selection.extend(ask.available.list().iter().take(1));
        Ok(())
    }
}

/// A policy that ignores the error of its question fails all the same, and names client and remedy.
#[test]
fn questions_beyond_the_horizon_end_the_run() {
    let all = Capabilities { layout: true, bounds: true, subsets: true, forecast: true, level: false };
    let world = forecast_world();
    let step = |question| {
        let asking = Asking::new(all, question);
        let mut run =
            Run::new(&world, "asking", world.policies(&source(asking.clone())).unwrap(), SETTINGS, Seen::default());
        let first = run.step();
        (first.and_then(|()| run.step()), asking)
    };
    let (ended, asking) = step((3, 10, 3_600));
    ended.unwrap();
    assert_eq!(*asking.answers.lock().unwrap(), [Ok(true), Ok(true)]);
    let expected =
        Bounds { cohort: 2, most: 4, deadline: None, deadline_least: None, epochs: Some(2), most_epochs: Some(6) };
    assert_eq!(*asking.bounds.lock().unwrap(), [Some(expected); 2]);
    for (question, said) in [
        (
            (3, 10, 3_601),
            "asks for a forecast of client 3 until 3601 s, and forecasts reach until 3600 s; ask for less",
        ),
        ((3, 11, 10), "asks for a forecast of client 3 from 11 s until 10 s"),
        ((4, 0, 1), "asks for a forecast of client 4, which is no client of its server"),
    ] {
        let (ended, asking) = step(question);
        let error = ended.unwrap_err();
        assert!(matches!(error, RunError::BadSelection { .. }), "{error:?}");
        let message = error.to_string();
        assert!(
            message.starts_with("policy \"asking\", selection 1 in round 1: ") && message.contains(said),
            "{message}"
        );
        assert!(asking.answers.lock().unwrap()[0].is_err());
    }
}

#[test]
fn a_policy_sees_nothing_that_it_does_not_declare() {
    let world = forecast_world();
    let asking = Asking::new(Capabilities::default(), (0, 0, 1));
    let mut run =
        Run::new(&world, "asking", world.policies(&source(asking.clone())).unwrap(), SETTINGS, Seen::default());
    run.step().unwrap();
    assert_eq!(*asking.answers.lock().unwrap(), [Err(ForecastError::Undeclared)]);
    assert_eq!(*asking.bounds.lock().unwrap(), [None]);
}

#[test]
fn what_a_scenario_does_not_give_is_refused_before_the_run() {
    let refused = |world: &World, capabilities: Capabilities| {
        let asking = Asking::new(capabilities, (0, 0, 1));
        world.policies(&source(asking)).err().map(|error| error.message)
    };
    let world = world_of(&format!("{FOUR}{SYNCHRONOUS}"));
    let forecast = Capabilities { forecast: true, ..Capabilities::default() };
    assert!(refused(&world, forecast).unwrap().contains("give [population.forecast] horizon"));
    let others = Capabilities { layout: true, bounds: true, subsets: true, forecast: false, level: false };
    assert_eq!(refused(&world, others), None);
    let level = Capabilities { level: true, ..Capabilities::default() };
    assert!(refused(&world, level).unwrap().contains("give [population.battery]"));
    let nothing = crate::support::world(crate::support::PLAIN, 1);
    let layout = Capabilities { layout: true, ..Capabilities::default() };
    assert!(refused(&nothing, layout).unwrap().contains("this task has no model"));
    let subsets = Capabilities { subsets: true, ..Capabilities::default() };
    assert!(refused(&nothing, subsets).unwrap().contains("the quality of subsets"));
}

/// A limit of a policy's own cuts its bounds as well, and forwards its declarations.
#[test]
fn a_limited_policy_decides_within_its_limit() {
    let world = world_of(&format!("{FOUR}{SYNCHRONOUS}"));
    let bounds = Arc::new(Mutex::new(Vec::new()));
    let kept = bounds.clone();
    let factory = move |context: &BuildContext<'_>| {
        kept.lock().unwrap().push(context.bounds);
        let capabilities = Capabilities { bounds: true, ..Capabilities::default() };
        let asking = Asking { bounds: Arc::default(), ..Asking::new(capabilities, (0, 0, 1)) };
        Ok(Box::new(asking) as Box<dyn Policy>)
    };
    let limited = PolicySource::Limited(Box::new(PolicySource::Outside(OutsidePolicy::new("mine", factory))), 3);
    let Policies::Server(policy) = world.policies(&limited).unwrap() else { panic!("one server") };
    assert_eq!((policy.capabilities().bounds, policy.can_be_empty()), (true, false));
    let found = bounds.lock().unwrap()[0];
    assert_eq!((found.cohort, found.most), (2, 3));
    let empty =
        Told { decisions: vec![decision(&[], &[], &[], None)], can_be_empty: true, capabilities: Default::default() };
    let limited = PolicySource::Limited(Box::new(source(empty)), 1);
    let mut run = Run::new(&world, "limited", world.policies(&limited).unwrap(), SETTINGS, Seen::default());
    run.step().unwrap();
    assert_eq!(run.now(), VirtualTime::START);
}

#[test]
fn forecasts_have_a_horizon_and_a_probability() {
    let build = |lines: &str| {
        let text = changed(FOUR, "[training]", &format!("[population.forecast]\n{lines}[training]"));
        let experiment = super::experiment_of(&format!("{text}{SYNCHRONOUS}"), std::path::Path::new("."));
        experiment.world(0, 1, &fedgenie::task::DataCache::default()).map(|_| ()).map_err(|error| error.to_string())
    };
    build("horizon = \"1 h\"\naccuracy = 0.0\n").unwrap();
    assert!(build("horizon = \"0 s\"\n").unwrap_err().contains("found 0; expected a positive duration"));
    assert!(build("horizon = \"1 h\"\naccuracy = 1.5\n").unwrap_err().contains("a probability between 0 and 1"));
}
