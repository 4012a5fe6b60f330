//! Numbers, laws, links, saved states and worlds: nothing is built, and earlier values are unchanged.

use super::{Case, PLAIN, TRAINING, contents, refused_world, told};
use crate::support::{Workplace, changed};
use fedgenie::config::check;
use fedgenie::id::ClientId;
use fedgenie::law::empirical::SampleFileError;
use fedgenie::law::{Constant, Empirical, ExpectedMinimum, ExpectedMinimumError, Exponential, JobLatency, LawConfig};
use fedgenie::limits::{Budget, SAMPLES, afford};
use fedgenie::oracle::annealing::{Annealing, Config, Search};
use fedgenie::policy::ServerView;
use fedgenie::population::link::LinkTrace;
use fedgenie::population::{ForecastError, Forecaster};
use fedgenie::state::{State, StateError};
use fedgenie::time::{Span, VirtualTime};
use fedgenie::trainer::{LocalTraining, OptimizerConfig};

/// A file of samples is refused, and is as it was.
fn samples(text: Option<String>) -> SampleFileError {
    let place = Workplace::new();
    text.iter().for_each(|text| place.write("samples", text));
    let before = contents(&place.path(""));
    let error = Empirical::read(place.path("samples")).unwrap_err();
    assert_eq!(contents(&place.path("")), before);
    error
}

/// The table of one client's expected speeds with a mean speed that is said to be known.
fn minimum(known: fn(f64) -> f64) -> ExpectedMinimumError {
    let (link, law) = (Constant::new(0.025).unwrap().into(), Exponential::new(0.4, 0.1).unwrap().into());
    let client = JobLatency { phases: [&link, &law, &link], hazards: [0.0; 3], cut: None };
    let speed = client.mean_speed(0.1);
    let error = ExpectedMinimum::new(0.1, &[client], &[known(speed)]).unwrap_err();
    assert!(ExpectedMinimum::new(0.1, &[client], &[speed]).is_ok(), "with what is so it can be made");
    error
}

fn too_many_points() -> ExpectedMinimumError {
    let link = Constant::new(0.025).unwrap().into();
    let samples: Vec<f64> = (0..5_000_000).map(|sample| 0.1 + f64::from(sample) * 1e-6).collect();
    let law = Empirical::new(&samples).unwrap().into();
    let client = JobLatency { phases: [&link, &law, &link], hazards: [0.0; 3], cut: None };
    ExpectedMinimum::new(0.1, &[client], &[0.1]).unwrap_err()
}

/// Bytes that are no state; a new component then takes a good state.
fn state(bytes: &[u8]) -> StateError {
    let error = State::load(&mut vec![0_u32; 3], bytes).unwrap_err();
    let mut fresh: Vec<u32> = Vec::new();
    State::load(&mut fresh, &State::save(&mut vec![7_u32, 8]).unwrap()).unwrap();
    assert_eq!(fresh, [7, 8]);
    error
}

fn link(times: &[u64], rates: &[f64]) -> fedgenie::population::link::LinkError {
    let times: Vec<Span> = times.iter().map(|&time| Span(time)).collect();
    LinkTrace::new(&times, rates, Span(9), true).unwrap_err()
}

fn law(text: &str) -> fedgenie::law::BuildError {
    serde_json::from_str::<LawConfig<f64>>(text).unwrap().build().unwrap_err()
}

/// A question that has no answer, in seconds; the next one has one.
fn forecast(client: u32, from: u64, to: u64) -> ForecastError {
    let text = changed(PLAIN, "[population.latency]", "[population.forecast]\nhorizon = \"1 h\"\n[population.latency]");
    let world = crate::support::world(&text, 1);
    let forecaster = Forecaster::new(&world.population, &world.streams, None).unwrap();
    let at = |seconds: u64| VirtualTime(seconds * 1_000_000_000);
    let error = forecaster.ask(ClientId(client), at(from), at(to)).unwrap_err();
    assert_eq!((forecaster.refused(), forecaster.ask(ClientId(4), at(0), at(3_600))), (Some(error), Ok(true)));
    error
}

pub const CASES: &[Case] = &[
    ("SpanError::NotANumber", || told(Span::from_seconds(f64::NAN).unwrap_err())),
    ("SpanError::Negative", || told(Span::from_seconds(-1.0).unwrap_err())),
    ("SpanError::TooLong", || told(Span::from_seconds(3_153_600_001.0).unwrap_err())),
    ("ForecastError::Beyond", || told(forecast(0, 0, 3_601))),
    ("ForecastError::Backwards", || told(forecast(0, 2, 1))),
    ("ForecastError::Stranger", || told(forecast(5, 0, 1))),
    ("ForecastError::Undeclared", || {
        let (sizes, world) = ([1; 5], crate::support::world(PLAIN, 1));
        let view = ServerView {
            data_sizes: &sizes,
            shares: &world.shares,
            counts: &[0; 5],
            probed: &[],
            answers: &[],
            trained: &[],
            gains: None,
            genie: None,
            foreseen: None,
            layout: None,
            bounds: None,
            forecaster: None,
            batteries: None,
        };
        told(view.forecast(ClientId(0), VirtualTime(0), VirtualTime(1)).unwrap_err())
    }),
    ("LawError", || told(Exponential::new(0.0, 1.0).unwrap_err())),
    ("BuildError::Parameter", || told(law(r#"{"exponential": {"mean": -1.0}}"#))),
    ("BuildError::Samples", || told(law(r#"{"empirical": {"file": "there/is/none"}}"#))),
    ("SampleFileError::Unreadable", || told(samples(None))),
    ("SampleFileError::BadLine", || told(samples(Some("1\n-2\n".to_owned())))),
    ("SampleFileError::TooLarge", || told(samples(Some("1\n".repeat(SAMPLES + 1))))),
    ("SampleFileError::Empty", || told(samples(Some("\n \n".to_owned())))),
    ("ExpectedMinimumError::TooLarge", || told(too_many_points())),
    ("ExpectedMinimumError::BadSpeed", || told(minimum(|_| f64::INFINITY))),
    ("ExpectedMinimumError::NotReproduced", || told(minimum(|speed| speed * (1.0 + 1e-8)))),
    ("ConfigError::DeltaMax", || {
        let search = Search::Plain;
        told(Annealing::build(Config { search, steps: 1, delta_max: f64::NAN, trace: false }).unwrap_err())
    }),
    ("StateError::Damaged", || told(state(&[9, 0]))),
    ("StateError::Failed", || {
        let mut bytes = Vec::new();
        let mut state = State::Saving(&mut bytes);
        state.fail("the disk is full");
        state.field(&mut 7_u32);
        let error = state.saved().unwrap_err();
        assert!(bytes.is_empty(), "nothing is saved after it");
        told(error)
    }),
    ("StateError::TooLong", || told(state(&[0; 11]))),
    ("Unaffordable", || {
        // The first of it is still counted as before.
        let mut budget = Budget::default();
        assert!(budget.take(u64::MAX).is_err() && budget.take(1).is_ok());
        told(afford("everything", u128::MAX).unwrap_err())
    }),
    ("Complaint", || told(check("alpha", f64::NAN, 0.0.., "a number").unwrap_err())),
    ("TrainingError", || {
        let optimizer: OptimizerConfig = serde_json::from_str(r#"{"sgd": {"lr": 0.1}}"#).unwrap();
        told(LocalTraining::new(1, 0, &optimizer).unwrap().check().unwrap_err())
    }),
    ("LinkError::Points", || told(link(&[0, 1], &[1.0]))),
    ("LinkError::Time", || told(link(&[0, 5, 5], &[1.0; 3]))),
    ("LinkError::Rate", || told(link(&[0, 5], &[1.0, f64::NAN]))),
    ("WorldError::Scenario", || {
        // A latency below the shortest that regret is measured against.
        told(refused_world(&format!("{PLAIN}[regret]\ntau_min = \"5 s\"\n"), &[]))
    }),
    ("WorldError::Task", || {
        let task = format!("[task.linear-regression]\nexamples = 5\n{TRAINING}");
        told(refused_world(&changed(&format!("{PLAIN}{task}"), "clients = 5", "clients = 9"), &[]))
    }),
];
