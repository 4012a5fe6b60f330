//! Losses of jobs, and the formulas that know of them.

use super::*;
use fedgenie_learning::trainer::{LocalTraining, OptimizerConfig};
use serde_json::{Value, json};

const DRAWS: u32 = 100_000;
const CUT: Span = Span(2_500_000_000);
const TAU_MIN: f64 = 0.5;

/// A client whose phases are 0.5 s, 1 s and more, and 0.5 s.
fn client(dropout: Value) -> Population {
    let latency = json!({
        "download": { "constant": "0.5 s" },
        "compute": { "lognormal": { "median": "1 s", "sigma": 0.5 } },
        "upload": { "constant": "0.5 s" },
    });
    let config: PopulationConfig =
        serde_json::from_value(json!({ "clients": 1, "latency": latency, "dropout": dropout })).unwrap();
    let sgd = OptimizerConfig::Sgd { lr: 0.1, momentum: 0.0, nesterov: false, weight_decay: 0.0, dampening: 0.0 };
    let training = LocalTraining::new(1, 4, &sgd).unwrap();
    config.build(&Work { data_sizes: None, training: &training, payload_bytes: 0 }, &Streams::new(3)).unwrap()
}

fn draws(population: &Population) -> impl Iterator<Item = JobDraw> + '_ {
    let streams = Streams::new(5);
    let of = move |job| population.draw(&streams, Purpose::Latency, ClientId(0), JobNumber(job), [1.0; 2]).unwrap();
    (0..DRAWS).map(of)
}

/// Fails if a share of draws is not that of a probability: beyond four standard deviations.
fn assert_share(found: usize, probability: f64, what: &str) {
    let (share, count) = (found as f64 / f64::from(DRAWS), f64::from(DRAWS));
    let deviation = fedgenie_core::math::float::sqrt(probability * (1.0 - probability) / count);
    assert!((share - probability).abs() <= 4.0 * deviation, "{what}: {share}, expected {probability} ± {deviation}");
}

#[test]
fn a_job_is_lost_with_its_probability_anywhere_in_its_duration() {
    let population = client(json!({ "probability": 0.2 }));
    let lost: Vec<(JobDraw, f64)> = draws(&population)
        .filter_map(|draw| {
            let (phase, span) = draw.loss?;
            let before: Span = draw.phases[..phase.index()].iter().copied().sum();
            assert!(span < draw.phases[phase.index()]);
            Some((draw, (before.0 + span.0) as f64 / draw.total().0 as f64))
        })
        .collect();
    assert_share(lost.len(), 0.2, "lost");
    for tenth in 1..10 {
        let place = f64::from(tenth) / 10.0;
        let before = lost.iter().filter(|(_, at)| *at < place).count();
        assert_share(before, 0.2 * place, "lost by this share of the duration");
    }
    // Long jobs are lost as often as short ones.
    let long = |draw: &JobDraw| draw.phases[1] > Span(1_000_000_000);
    assert_share(lost.iter().filter(|(draw, _)| long(draw)).count(), 0.1, "lost, and long");
}

#[test]
fn a_phase_is_lost_with_its_probability_and_of_several_losses_the_first_counts() {
    let population = client(json!({ "download": { "probability": 0.3 }, "upload": { "probability": 0.5 } }));
    let lost: Vec<(Phase, Span)> = draws(&population).filter_map(|draw| draw.loss).collect();
    let of = |phase| lost.iter().filter(|(lost, _)| *lost == phase).count();
    assert_share(of(Phase::Download), 0.3, "download");
    assert_eq!(of(Phase::Compute), 0);
    assert_share(of(Phase::Upload), 0.7 * 0.5, "upload, of those that got there");
    let early = lost.iter().filter(|(phase, span)| *phase == Phase::Download && span.0 < 250_000_000).count();
    assert_share(early, 0.15, "in the first half of the download");
}

#[test]
fn hazards_strike_as_before_where_probabilities_stand_beside_them() {
    let (alone, both) = (json!({ "compute": "0.2 /s" }), json!({ "compute": "0.2 /s", "probability": 0.3 }));
    let (alone, both) = (client(alone), client(both));
    let mut earlier = 0;
    for (one, other) in draws(&alone).zip(draws(&both)) {
        assert_eq!(one.phases, other.phases);
        let key = |(phase, span): (Phase, Span)| (phase.index(), span);
        match (one.loss.map(key), other.loss.map(key)) {
            (Some(struck), Some(lost)) => assert!(lost <= struck),
            (Some(_), None) => panic!("a hazard was forgotten"),
            (None, Some(_)) => earlier += 1,
            (None, None) => {}
        }
    }
    assert!(earlier > 0);
}

/// Mean speeds and cdfs against means over draws, which know the definition alone.
#[test]
fn formulas_are_means_over_draws() {
    for dropout in [
        json!({ "probability": 0.2 }),
        json!({ "probability": 0.2, "compute": "0.1 /s", "upload": { "probability": 0.1 } }),
        json!({ "download": { "probability": 0.1 }, "compute": { "probability": 0.25 } }),
    ] {
        let population = client(dropout.clone());
        let latency = population.job_latency(ClientId(0), Some(CUT));
        let (mut sum, mut squares, mut early) = (0.0, 0.0, 0);
        for draw in draws(&population) {
            let effective = draw.effective(Some(CUT));
            let speed = TAU_MIN / effective.seconds();
            (sum, squares) = (sum + speed, squares + speed * speed);
            early += usize::from(effective.seconds() <= 2.0);
        }
        let count = f64::from(DRAWS);
        let (mean, exact) = (sum / count, latency.mean_speed(TAU_MIN));
        let error = fedgenie_core::math::float::sqrt((squares / count - mean * mean) / count);
        assert!((mean - exact).abs() < 4.0 * error, "{dropout}: {mean} ± {error}, {exact}");
        assert_share(early, latency.effective_cdf(2.0), "within 2 s");
    }
}

#[test]
fn a_job_that_takes_no_time_is_lost_as_it_begins() {
    let group = Group {
        name: None,
        first: ClientId(0),
        count: 1,
        hazards: [0.0; 3],
        probabilities: [0.9999, 0.0, 0.0, 0.0],
        interruption: Interruption::Pause,
        has_links: false,
    };
    let mut rng = Streams::new(1).draw(Purpose::Dropout, 0, 0);
    assert_eq!(group.loss(&mut rng, &[Span::ZERO; 3]), Some((Phase::Download, Span::ZERO)));
}
