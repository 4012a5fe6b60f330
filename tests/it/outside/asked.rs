//! A run that asks its caller: in two halves it is the run that asks its policy.

use super::super::support::{SETTINGS, Seen, world};
use super::{EIGHT, PROTOCOLS, Settings, experiment};
use fedgenie::experiment::{Experiment, Threads};
use fedgenie::policy::{Policy, PolicyRng, Selection};
use fedgenie::recorder::NoSink;
use fedgenie::run::{End, Evaluations, Heard, OwnedRun, Run, RunError, RunSettings};
use fedgenie::task::DataCache;
use fedgenie::world::World;
use std::sync::{Arc, Mutex};

/// Protocols in rounds of one server, with clients that come and go, and a budget.
fn scenarios() -> Vec<String> {
    let away = "[population.availability]\non-off = { on = { exponential = { mean = \"8 s\" } }, off = { exponential = { mean \
                = \"2 s\" } } }\n";
    let regret = "[regret]\nalpha = 2.0\n";
    let mut all: Vec<String> = PROTOCOLS[..3].iter().map(|(_, protocol)| (*protocol).to_owned()).collect();
    all.push(format!("{}{away}", PROTOCOLS[1].1));
    all.push(format!("{}{regret}", PROTOCOLS[0].1));
    all.push(format!("{}[budget]\ntraffic = \"900 B\"\n", PROTOCOLS[0].1));
    all
}

fn settings() -> RunSettings {
    let end = End { rounds: Some(6), ..End::default() };
    RunSettings { evaluate: Evaluations { end, ..Evaluations::every(1) }, ..SETTINGS }
}

/// What a run ends with: its digests, its rounds.
type Ended = (String, String, u32);

fn ended(run: &Run<'_>) -> Ended {
    (run.digests().timeline.hex(), run.digests().model.hex(), run.round().0)
}

/// The policy of an arm, in the run.
fn inside(world: &World, policy: Box<dyn Policy>) -> Ended {
    let mut run = Run::new(world, "mine", policy, settings(), NoSink);
    while run.round().0 < 6 && !run.is_spent() {
        run.step().unwrap();
    }
    ended(&run)
}

/// One question after the other, answered by the policy outside of the run, which is told the feedback.
fn outside(run: &mut Run<'_>, mut policy: Box<dyn Policy>) -> Ended {
    let mut questions = 0;
    while run.ask(|_, _, _| ()).unwrap().is_some() {
        // Looking changes nothing.
        let turns = [1, 2].map(|_| run.ask(|ask, _, _| (ask.turn, ask.available.list().to_vec())).unwrap());
        assert_eq!(turns[0], turns[1]);
        let selection = run.ask(|ask, view, PolicyRng { policy: of_policy, solver }| {
            let mut selection = Selection::default();
            policy.select(ask, view, &mut PolicyRng { policy: of_policy, solver }, &mut selection).unwrap();
            selection
        });
        let heard = run.tell(selection.unwrap().unwrap()).unwrap();
        assert!(matches!(heard.last(), Some(Heard::Round { .. })));
        heard.iter().for_each(|heard| policy.observe(&heard.feedback()).unwrap());
        questions += 1;
        assert_eq!(run.round().0, questions);
    }
    ended(run)
}

fn of(experiment: &Experiment, arm: usize, world: &World) -> Box<dyn Policy> {
    world.policy(&experiment.first().arms[arm].source()).unwrap()
}

#[test]
fn the_caller_draws_as_the_policy() {
    for more in scenarios() {
        let more = format!("{more}[policy.round-robin]\n[policy.cs-ucb]\n[policy.thompson]\n");
        let experiment = experiment("", &more, Settings::default());
        assert_eq!(experiment.first().arms.len(), 4);
        let world = experiment.world(0, 1, &DataCache::default()).unwrap();
        for arm in 0..4 {
            let expected = inside(&world, of(&experiment, arm, &world));
            let mut run = Run::asking(&world, "mine", settings(), NoSink).unwrap();
            assert_eq!(outside(&mut run, of(&experiment, arm, &world)), expected, "{more}");
            assert_eq!(run.ask(|_, _, _| ()).unwrap(), None, "it is over");
        }
    }
}

/// The run of an experiment and that of a caller are the same.
#[test]
fn the_digests_are_those_of_the_experiment() {
    let experiment = experiment(PROTOCOLS[0].1, "", Settings::default());
    let summary = experiment.run(&Threads::new(1).unwrap()).unwrap();
    let world = experiment.world(0, 1, &DataCache::default()).unwrap();
    let mut run = Run::asking(&world, "random", settings(), NoSink).unwrap();
    let (timeline, model, rounds) = outside(&mut run, of(&experiment, 0, &world));
    assert_eq!(
        (timeline, model, rounds),
        (summary.runs[0].digest.timeline.clone(), summary.runs[0].digest.model.clone(), 6)
    );
}

/// The question waits until it is answered well, and nothing is saved in between.
#[test]
fn a_selection_that_breaks_the_rules_can_be_told_again() {
    let world =
        world(&format!("{}{}[policy.random]\n", &EIGHT[..EIGHT.find("[training]").unwrap()], PROTOCOLS[0].1), 1);
    let mut seen = Seen::default();
    let mut run = Run::asking(&world, "mine", settings(), &mut seen).unwrap();
    let first = run.ask(|ask, _, _| ask.available.list()[..ask.cohort].to_vec()).unwrap().unwrap();
    let tell = |run: &mut Run<'_>, clients: &[_]| {
        let mut selection = Selection::default();
        selection.extend(clients.iter().copied());
        run.tell(selection).map(|heard| heard.len())
    };
    let error = tell(&mut run, &[first[0], first[0]]).unwrap_err();
    assert!(matches!(error, RunError::BadSelection { .. }), "{error}");
    let text = run.step().unwrap_err().to_string();
    assert!(text.contains("no selection was told"), "{text}");
    assert!(run.save().unwrap_err().to_string().contains("waits for a selection"));
    assert_eq!(tell(&mut run, &first).unwrap(), first.len() + 1);
    run.save().unwrap();
    run.ask(|_, _, _| ()).unwrap();
    assert_eq!(tell(&mut run, &[]).unwrap(), 1, "an empty round");
    drop(run);
    assert_eq!(seen.rounds.len(), 2);
}

#[test]
fn other_protocols_are_refused() {
    for (of, protocol) in &PROTOCOLS[3..] {
        let experiment = experiment(protocol, "", Settings::default());
        let world = experiment.world(0, 1, &DataCache::default()).unwrap();
        let Err(complaint) = Run::asking(&world, "mine", settings(), NoSink) else { panic!("{of}") };
        assert!(complaint.to_string().contains("write a policy"), "{complaint}");
    }
}

/// An owned run moves between threads, and is the same run.
#[test]
fn a_run_may_own_its_world() {
    let experiment = experiment(PROTOCOLS[2].1, "", Settings::default());
    let world = Arc::new(experiment.world(0, 1, &DataCache::default()).unwrap());
    let expected = inside(&world, of(&experiment, 0, &world));
    let policy = of(&experiment, 0, &world);
    let mut owned = OwnedRun::new(world.clone(), |world| Run::asking(world, "mine", settings(), NoSink)).unwrap();
    let policy = Arc::new(Mutex::new(Some(policy)));
    let found = std::thread::spawn(move || owned.with(move |run| outside(run, policy.lock().unwrap().take().unwrap())));
    assert_eq!(found.join().unwrap(), expected);

    // Step by step, with nothing but its own between the steps.
    let policy = of(&experiment, 0, &world);
    let mut owned =
        OwnedRun::new(world.clone(), |world| Ok::<_, RunError>(Run::new(world, "mine", policy, settings(), NoSink)))
            .unwrap();
    drop(world);
    (0..6).for_each(|_| owned.with(|run| run.step()).unwrap());
    assert_eq!(owned.with(|run| ended(run)), expected);
    assert!(
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| owned.with(|_| panic!("in the middle")))).is_err()
    );
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| owned.with(|_| ()))).is_err(), "it cannot go on");

    let experiment = super::experiment(PROTOCOLS[3].1, "", Settings::default());
    let world = Arc::new(experiment.world(0, 1, &DataCache::default()).unwrap());
    assert!(OwnedRun::new(world, |world| Run::asking(world, "mine", settings(), NoSink)).is_err());
}
