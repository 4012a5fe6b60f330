//! A method that fails ends its run, and no other; its reason is kept.

use super::super::support::{SETTINGS, Seen, Workplace};
use super::{Broken, PROTOCOLS, Settings, Way, experiment};
use fedgenie::clusters::{AssignmentRequest, ClusterPolicy, EdgeFeedback};
use fedgenie::error::Error;
use fedgenie::experiment::{
    Earlier, Experiment, Interval, Outputs, ResultFolder, RunSummary, Shard, Silent, Threads, execute,
};
use fedgenie::failure::Failure;
use fedgenie::id::{ClientId, Round};
use fedgenie::policy::{
    Capabilities, Explanation, Feedback, Policies, Policy, PolicyRng, Probe, Selection, SelectionRequest, ServerView,
    Subsets,
};
use fedgenie::recorder::RunFileOptions;
use fedgenie::rng::StreamRng;
use fedgenie::run::{Role, Run, RunError};
use fedgenie::state::{State, StateError, Stateful};
use fedgenie::task::DataCache;
use std::error::Error as _;

/// Selects the first clients, until one of its methods fails.
#[derive(Clone, Copy)]
struct Fragile {
    fails: &'static str,
    /// From this selection on.
    from: u32,
    turn: u32,
    probe: &'static str,
}

impl Fragile {
    const fn new(fails: &'static str, from: u32) -> Self {
        Self { fails, from, turn: 0, probe: "losses" }
    }

    fn fail(&self, method: &str) -> Result<(), Failure> {
        match self.fails == method && self.turn >= self.from {
            true => Err(Broken(self.turn).into()),
            false => Ok(()),
        }
    }
}

impl Stateful for Fragile {
    fn exchange(&mut self, state: &mut State<'_>) {
        let Self { fails: _, from: _, turn, probe: _ } = self;
        state.field(turn);
        if let Err(failure) = self.fail("exchange") {
            state.fail(failure);
        }
    }
}

impl Policy for Fragile {
    fn probes(&self) -> bool {
        true
    }

    fn probe_kinds(&self) -> &[&'static str] {
        &["level"]
    }

    fn wants_answer(&self) -> Option<&'static str> {
        Some("level")
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { subsets: true, ..Capabilities::default() }
    }

    fn probe(&mut self, ask: &SelectionRequest<'_>, _: &ServerView<'_>, _: &mut StreamRng) -> Result<Probe, Failure> {
        self.turn = ask.turn.0;
        self.fail("probe")?;
        let clients = ask.available.list().to_vec();
        Ok(match self.probe {
            "losses" => Probe::Losses(clients),
            "answers" => Probe::Answers { clients, kind: "level" },
            _ => Probe::None,
        })
    }

    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        _: &ServerView<'_>,
        _: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        self.turn = ask.turn.0;
        self.fail("select")?;
        selection.extend(ask.available.list().iter().take(ask.cohort));
        Ok(())
    }

    fn observe(&mut self, feedback: &Feedback<'_>) -> Result<(), Failure> {
        let method = match feedback {
            Feedback::Job(_) => "observe a job",
            Feedback::Trained(_) => "observe training",
            Feedback::Round(_) => "observe a round",
        };
        self.fail(method)
    }

    fn judge(&mut self, subsets: &Subsets<'_>) -> Result<(), Failure> {
        subsets.quality(subsets.clients());
        self.fail("judge")
    }

    fn told_answer(&mut self, _: ClientId, _: &'static str, _: &[f64]) -> Result<(), Failure> {
        self.fail("told_answer")
    }

    fn explain(
        &self,
        _: &SelectionRequest<'_>,
        _: &ServerView<'_>,
        _: &[ClientId],
        _: &mut Explanation,
    ) -> Result<(), Failure> {
        self.fail("explain")
    }

    fn explain_after(&self, _: &[ClientId], _: &mut Explanation) -> Result<(), Failure> {
        self.fail("explain_after")
    }
}

/// All runs of an experiment, by arm.
fn results(experiment: &Experiment, threads: usize) -> Vec<(String, Result<RunSummary, Error>)> {
    let (threads, runs) = (Threads::new(threads).unwrap(), experiment.runs());
    let results = execute(experiment, &runs, None, &threads, &DataCache::default(), &Silent);
    runs.into_iter().map(|run| run.name).zip(results).collect()
}

/// The parts of an error of outside code, whose reason is the test's.
fn outside(error: Error) -> (Role, &'static str, Option<ClientId>, Round, u32) {
    assert_eq!(error.exit_code(), 3);
    // The reason is the last of the chain of sources.
    let of_run = error.source().unwrap();
    assert!(of_run.source().unwrap().is::<Broken>(), "{error}");
    let Error::Run { source: RunError::Outside { role, method, client, round, source }, .. } = error else {
        panic!("{error}")
    };
    (role, method, client, round, source.downcast::<Broken>().unwrap().0)
}

/// All runs of an arm fail alike, on one thread and on three, and those of `random` do not.
fn failure_of(experiment: &Experiment, arm: &str) -> (Role, &'static str, Option<ClientId>, Round, u32) {
    let found = [1, 3].map(|threads| {
        let mut found = Vec::new();
        for (name, result) in results(experiment, threads) {
            match (name.starts_with(arm), result) {
                (true, Err(error)) => found.push(outside(error)),
                (false, Ok(summary)) => assert_eq!(summary.rounds, 6),
                (_, other) => panic!("{name}: {other:?}"),
            }
        }
        found
    });
    assert_eq!((found[0].len(), &found[0]), (2, &found[1]), "two seeds");
    found[0][0].clone()
}

#[test]
fn each_method_of_a_policy_ends_its_run_alone() {
    let methods = [
        ("probe", "probe"),
        ("select", "select"),
        ("observe a job", "observe"),
        ("observe training", "observe"),
        ("observe a round", "observe"),
        ("judge", "judge"),
        ("told_answer", "told_answer"),
        ("explain", "explain"),
        ("explain_after", "explain_after"),
    ];
    for (of, protocol) in PROTOCOLS {
        for (fails, method) in methods {
            let mut experiment = experiment(protocol, "", Settings::default());
            experiment.add_policy("mine", move |_| Ok(Box::new(Fragile::new(fails, 3)))).unwrap();
            let (role, found, client, Round(round), turn) = failure_of(&experiment, "mine");
            let Role::Policy(name) = &role else { panic!("{role:?}") };
            let is_edge = protocol.contains("hierarchical");
            assert!(name.starts_with("\"mine\"") && name.contains("edge server") == is_edge, "{of}: {name}");
            assert_eq!((found, client), (method, None), "{of}");
            assert!(turn >= 3 && round >= 1, "{of}, {fails}: round {round}, turn {turn}");
            if !is_edge && !protocol.contains("buffered") {
                assert_eq!((round, turn), (3, 3), "{of}, {fails}");
            }
        }
    }
}

#[test]
fn the_text_names_the_policy_and_the_method() {
    let mut experiment = experiment(PROTOCOLS[0].1, "", Settings::default());
    experiment.add_policy("mine", |_| Ok(Box::new(Fragile::new("select", 4)))).unwrap();
    let (_, failed) = results(&experiment, 1).pop().unwrap();
    let text = failed.unwrap_err().to_string();
    assert_eq!(text, "run mine-s2 failed: policy \"mine\" failed in select, round 4: broken part 4");
}

/// The folder says why, keeps the rounds before, and the other runs are whole.
#[test]
fn the_folder_keeps_the_other_runs() {
    let place = Workplace::new();
    for (fails, method) in [("observe a round", "observe"), ("exchange", "exchange")] {
        let mut experiment = experiment(PROTOCOLS[0].1, "", Settings::default());
        experiment.add_policy("mine", move |_| Ok(Box::new(Fragile::new(fails, 4)))).unwrap();
        let folder = place.path(method);
        let results = ResultFolder::open(&folder, &experiment, Earlier::Refuse, Shard::WHOLE).unwrap();
        let results = results.saving(Interval::Rounds(2));
        let (files, threads, runs) = (RunFileOptions::default(), Threads::new(2).unwrap(), experiment.runs());
        let outputs = Outputs { folder: &results, files: &files, models: false, memory: None };
        let found = execute(&experiment, &runs, Some(outputs), &threads, &DataCache::default(), &Silent);
        for (run, found) in runs.iter().zip(found) {
            let of = format!("{method}/runs/{}", run.name);
            if run.name.starts_with("random") {
                assert_eq!(found.unwrap().rounds, 6);
                assert!(place.path(&format!("{of}/run.json")).is_file());
                continue;
            }
            let (_, found, _, round, _) = outside(found.unwrap_err());
            assert_eq!((found, round), (method, Round(4)));
            let said = place.json(&format!("{of}/failed.json"))["error"].as_str().unwrap().to_owned();
            assert_eq!(said, format!("policy \"mine\" failed in {method}, round 4: broken part 4"));
        }
    }
}

/// A policy of the cloud has no name but that.
#[test]
fn a_policy_of_the_cloud_fails_as_one() {
    let protocol = "[protocol.hierarchical]\nedges = 3\ncohort = 2\ncloud = { cohort = 2, policy = { random = {} } }\n";
    let experiment = experiment(protocol, "", Settings::default());
    let world = experiment.world(0, 1, &DataCache::default()).unwrap();
    for fails in ["select", "observe a job", "observe a round", "exchange"] {
        let edge = || -> Box<dyn Policy> { Box::new(FirstOnes) };
        let cloud: Box<dyn Policy> = Box::new(OfCloud(Fragile::new(fails, 2)));
        let policies = Policies::Tiers { edges: vec![edge(), edge(), edge()], cloud: Some(cloud) };
        let mut run = Run::new(&world, "mine", policies, SETTINGS, Seen::default());
        run.step().unwrap();
        let error = match fails {
            "exchange" => {
                run.step().unwrap();
                run.save().map(drop).unwrap_err()
            }
            _ => run.step().unwrap_err(),
        };
        let method = fails.split(' ').next().unwrap();
        assert_eq!(error.to_string(), format!("policy of the cloud failed in {method}, round 2: broken part 2"));
    }
}

/// Selects the first clients.
#[derive(Stateful)]
struct FirstOnes;

impl Policy for FirstOnes {
    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        _: &ServerView<'_>,
        _: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        selection.extend(ask.available.list().iter().take(ask.cohort));
        Ok(())
    }
}

/// The same without what edge servers cannot give.
#[derive(Stateful)]
struct OfCloud(Fragile);

impl Policy for OfCloud {
    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        view: &ServerView<'_>,
        rng: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        self.0.select(ask, view, rng, selection)
    }

    fn observe(&mut self, feedback: &Feedback<'_>) -> Result<(), Failure> {
        self.0.observe(feedback)
    }
}

/// A state that fails to load is another thing than bytes that do not fit.
#[test]
fn an_exchange_that_fails_is_told_when_saving_and_when_loading() {
    let experiment = experiment(PROTOCOLS[3].1, "", Settings::default());
    let world = experiment.world(0, 1, &DataCache::default()).unwrap();
    let start = |fails, from| {
        let policy: Box<dyn Policy> = Box::new(Fragile::new(fails, from));
        Run::new(&world, "mine", policy, SETTINGS, Seen::default())
    };
    let mut run = start("nothing", 0);
    (0..2).for_each(|_| run.step().unwrap());
    let saved = run.save().unwrap();
    let error = start("exchange", 1).load(&saved).unwrap_err();
    let StateError::Failed(failure) = error else { panic!("{error}") };
    let text = failure.to_string();
    assert!(text.starts_with("policy \"mine\" failed in exchange, round 2: broken part "), "{text}");
    assert!(failure.downcast::<RunError>().unwrap().source().unwrap().is::<Broken>());
    assert!(matches!(start("exchange", 1_000).load(&saved[1..]), Err(StateError::Damaged | StateError::TooLong(_))));
    let mut run = start("exchange", 0);
    run.step().unwrap();
    assert!(run.save().unwrap_err().source().unwrap().is::<Broken>());
}

fn of_task(protocol: &str, more: &str, settings: Settings, probe: &'static str) -> (&'static str, Option<u32>, u32) {
    let mut experiment = experiment(protocol, more, settings);
    experiment.add_policy("mine", move |_| Ok(Box::new(Fragile { probe, ..Fragile::new("nothing", 0) }))).unwrap();
    let all = [1, 3].map(|threads| {
        let of_mine = results(&experiment, threads).into_iter().filter(|(name, _)| name.starts_with("mine"));
        let (role, method, client, Round(round), _) = outside(of_mine.last().unwrap().1.unwrap_err());
        assert_eq!(role, Role::Task);
        (method, client.map(|client| client.0), round)
    });
    assert_eq!(all[0], all[1]);
    all[0]
}

#[test]
fn each_method_of_a_task_ends_the_run() {
    let at = |method| Settings { fails: Some((method, 2)), ..Settings::default() };
    for (of, protocol) in PROTOCOLS {
        let (method, client, _) = of_task(protocol, "", at("train"), "none");
        assert!((method, client.is_some()) == ("train", true), "{of}");
        assert_eq!(of_task(protocol, "", at("evaluate"), "none").0, "evaluate", "{of}");
        let together = Settings { way: Way::Together, ..at("train_many") };
        assert_eq!(of_task(protocol, "", together, "none").0, "train_many", "{of}");
        let (method, client, _) = of_task(protocol, "", at("client_loss"), "losses");
        assert!((method, client.is_some()) == ("client_loss", true), "{of}");
        assert_eq!(of_task(protocol, "", at("answer"), "answers").0, "answers", "{of}");
        // Of control variates one server alone knows all.
        if protocol.contains("hierarchical") {
            continue;
        }
        let scaffold = "[algorithm.scaffold]\noption = 1\n[aggregation]\nweighting = \"uniform\"\n";
        let (method, client, _) = of_task(protocol, scaffold, at("gradient"), "none");
        assert!((method, client.is_some()) == ("gradient", true), "{of}");
    }
    let answer = Settings { fails: Some(("answer", 1)), ..Settings::default() };
    assert_eq!(of_task(PROTOCOLS[0].1, "", answer, "none"), ("answer", Some(0), 2), "with its update");
}

/// Clients that nobody asked train for the regret in hindsight.
#[test]
fn a_task_may_fail_in_hindsight() {
    let of = |utility: &str, method: &'static str, from| {
        let regret = format!("[regret]\ncounterfactual = true\nmeters = []\nutility = {utility}\n");
        let settings = Settings { fails: Some((method, from)), ..Settings::default() };
        of_task(PROTOCOLS[0].1, &regret, settings, "none")
    };
    for utility in ["\"loss-drop\"", "{ contribution = {} }", "{ aggregate = { test_loss = -1.0 } }", "\"influence\""] {
        assert_eq!(of(utility, "train of client 7", 0), ("train", Some(7), 1), "{utility}");
    }
    assert_eq!(of("\"influence\"", "slope", 1), ("slope", None, 2));
    assert_eq!(of("{ contribution = {} }", "squared_losses", 1), ("squared_losses", Some(0), 1));
    assert_eq!(of("{ aggregate = { test_loss = -1.0 } }", "evaluate", 1).0, "evaluate");
}

/// A task that cannot be set up is a fault of the scenario's world.
#[test]
fn a_task_that_cannot_be_set_up_says_why() {
    let settings = Settings { fails: Some(("material", 0)), ..Settings::default() };
    let experiment = experiment(PROTOCOLS[0].1, "", settings);
    let error = experiment.world(0, 1, &DataCache::default()).unwrap_err();
    assert!(error.to_string().contains("broken part 0"), "{error}");
}

/// Fails in one of its methods after the second round.
#[derive(Clone, Copy)]
struct Rule(&'static str, u32);

impl Stateful for Rule {
    fn exchange(&mut self, state: &mut State<'_>) {
        state.field(&mut self.1);
        if (self.0, self.1) == ("exchange", 2) {
            state.fail(Broken(2));
        }
    }
}

impl ClusterPolicy for Rule {
    fn assign(&mut self, ask: &AssignmentRequest<'_>, _: &mut StreamRng, _: &mut [u32]) -> Result<(), Failure> {
        self.1 = ask.round.0;
        if (self.0, self.1) == ("assign", 2) { Err(Broken(2).into()) } else { Ok(()) }
    }

    fn observe(&mut self, feedback: &EdgeFeedback<'_>) -> Result<(), Failure> {
        match feedback {
            EdgeFeedback::Round(round) if self.0 == "observe" && round.round == Round(2) => Err(Broken(2).into()),
            _ => Ok(()),
        }
    }
}

#[test]
fn a_rule_of_clusters_may_fail() {
    for fails in ["assign", "observe", "exchange"] {
        let mut experiment = experiment(PROTOCOLS[4].1, "[clusters]\n", Settings::default());
        experiment.set_clusters(move |_| Box::new(Rule(fails, 0))).unwrap();
        let id = &experiment.runs()[0];
        let world = experiment.world(0, 1, &DataCache::default()).unwrap();
        let error = if fails == "exchange" {
            let policies = world.policies(&experiment.first().arms[0].source()).unwrap();
            let mut run = Run::new(&world, "random", policies, SETTINGS, Seen::default());
            (0..2).for_each(|_| run.step().unwrap());
            Error::Run { run: id.name.clone(), source: run.save().map(drop).unwrap_err() }
        } else {
            let threads = Threads::new(1).unwrap();
            experiment.run_one(id, &world, &mut Seen::default(), &threads, None).unwrap_err()
        };
        assert_eq!(
            error.to_string(),
            format!("run random-s1 failed: the rule of clusters failed in {fails}, round 2: broken part 2")
        );
        assert_eq!(outside(error), (Role::Clusters, fails, None, Round(2), 2));
    }
}
