//! The private mean by hand, its noise, and its accountant beside another one.

use super::*;
use crate::layout::{Scope, Segment};
use fedgenie_core::id::{ClientId, JobNumber};
use fedgenie_core::math::quadrature;

const START: [f32; 3] = [1.0, -1.0, 2.0];

fn config(clip: Clip, noise_multiplier: f64) -> DpFedAvgConfig {
    DpFedAvgConfig { clip, noise_multiplier, at: NoiseAt::Server, delta: 1e-5, accountant: Accounting::Rdp }
}

fn private(config: DpFedAvgConfig, expected: Option<f64>) -> DpFedAvg {
    DpFedAvg { config, streams: Arc::new(Streams::new(7)), expected }
}

/// Δ of changes of clients, by their jobs.
fn mean(of: &DpFedAvg, released: &mut Released, changes: &[(u32, [f32; 3])]) -> Option<Vec<f64>> {
    let after: Vec<[f32; 3]> = changes.iter().map(|(_, change)| [0, 1, 2].map(|i| START[i] + change[i])).collect();
    let jobs: Vec<Contribution<'_>> = (1..)
        .zip(changes.iter().zip(&after))
        .map(|(number, ((client, _), parameters))| Contribution {
            client: ClientId(*client),
            number: JobNumber(number),
            cluster: 0,
            examples: 4,
            weight: None,
            staleness_weight: 1.0,
            start: &START,
            parameters,
            rows: &[],
            loss: None,
            steps: Some(1),
            rate: 0.1,
        })
        .collect();
    let jobs: Vec<&Contribution<'_>> = jobs.iter().collect();
    of.mean(released, &Layout::dense(3, 3), &jobs)
}

#[test]
fn changes_are_shortened_by_hand() {
    let of = private(config(Clip::Fixed(2.5), 0.0), None);
    let mut released = of.begin();
    // Norms 5 and 1: (3, 4, 0)/2 and (0, 0, 1).
    let found = mean(&of, &mut released, &[(0, [3.0, 4.0, 0.0]), (4, [0.0, 0.0, 1.0])]).unwrap();
    assert_eq!(found, [0.75, 1.0, 0.5]);
    // Client 0 twice: its sum (3, 4, 0) counts once, among two clients.
    let twice = [(0, [1.0, 1.0, 0.0]), (0, [2.0, 3.0, 0.0]), (4, [0.0, 0.0, 1.0])];
    assert_eq!(mean(&of, &mut released, &twice).unwrap(), [0.75, 1.0, 0.5]);
    assert_eq!(mean(&of, &mut released, &[]), None);
    assert_eq!(released, Released { clip: 2.5, models: 2 });
    // Of eight expected clients two came, or none.
    let of = private(config(Clip::Fixed(2.5), 0.0), Some(8.0));
    assert_eq!(mean(&of, &mut released, &twice).unwrap(), [0.1875, 0.25, 0.125]);
    assert_eq!(mean(&of, &mut released, &[]).unwrap(), [0.0; 3]);
}

#[test]
fn the_noise_is_that_of_the_streams() {
    let changes = [(0, [3.0, 4.0, 0.0]), (4, [0.0, 0.0, 1.0])];
    let plain = [0.75, 1.0, 0.5];
    let streams = Streams::new(7);
    let normal = |entity, index| {
        let mut stream = streams.stream(Purpose::Privacy, entity, index);
        move || normal_quantile(stream.uniform())
    };
    let of = private(config(Clip::Fixed(2.5), 0.8), None);
    let mut released = of.begin();
    for model in [1, 2] {
        let mut next = normal(u32::MAX, model);
        // zS/m = 0.8·2.5/2.
        for (found, plain) in mean(&of, &mut released, &changes).unwrap().iter().zip(plain) {
            assert!((found - (plain + next())).abs() < 1e-12);
        }
    }
    let of = private(DpFedAvgConfig { at: NoiseAt::Clients, ..config(Clip::Fixed(2.5), 0.8) }, None);
    let (mut one, mut two) = (normal(0, 1), normal(4, 2));
    // Each zS/√m, the mean of both.
    for (found, plain) in mean(&of, &mut of.begin(), &changes).unwrap().iter().zip(plain) {
        assert!((found - (plain + 2.0 / sqrt(2.0) * (one() + two()) / 2.0)).abs() < 1e-12);
    }
    // Nobody came, and four were expected.
    let of = private(config(Clip::Fixed(2.5), 0.8), Some(4.0));
    let mut next = normal(u32::MAX, 1);
    for found in mean(&of, &mut of.begin(), &[]).unwrap() {
        assert!((found - 0.5 * next()).abs() < 1e-12);
    }
}

#[test]
fn the_bound_follows_a_quantile() {
    let adaptive = AdaptiveClip { start: 2.0, quantile: 0.25, lr: 0.5, count_sd: None };
    let of = private(config(Clip::Adaptive(adaptive), 0.0), None);
    let mut released = of.begin();
    let changes = [(0, [3.0, 4.0, 0.0]), (4, [0.0, 0.0, 1.0])];
    mean(&of, &mut released, &changes).unwrap();
    // One of two is within: b − γ = ¼.
    assert!((released.clip - 2.0 * exp(-0.125)).abs() < 1e-15);
    assert_eq!(of.config.least_updates(), 0, "no noise has to be shared");

    // z = 0.15: two clients leave z_Δ = (1/0.0225 − 1/0.04)^(−½); σ_b = 0.1.
    let of = private(config(Clip::Adaptive(adaptive), 0.15), None);
    assert_eq!(of.config.least_updates(), 2);
    let z = 1.0 / sqrt(1.0 / 0.0225 - 1.0 / 0.04);
    let mut stream = of.streams.stream(Purpose::Privacy, u32::MAX, 1);
    let mut next = || normal_quantile(stream.uniform());
    let mut released = of.begin();
    let found = mean(&of, &mut released, &changes).unwrap();
    for (found, plain) in found.iter().zip([0.6, 0.8, 0.5]) {
        assert!((found - (plain + z * next())).abs() < 1e-7, "{found}");
    }
    let within = (1.0 + 0.1 * next()) / 2.0;
    assert!((released.clip - 2.0 * exp(-0.5 * (within - 0.25))).abs() < 1e-12);
    assert_eq!(mean(&of, &mut released, &changes[..1]), None, "one client is too few");
    assert_eq!(released.models, 1);
}

/// 400,000 numbers: mean 0 and deviation zS/m, within four standard errors.
#[test]
fn the_noise_has_its_deviation() {
    let count = 400_000;
    let layout = Layout::new(vec![Segment::dense("a", count, Scope::Shared)]);
    for at in [NoiseAt::Server, NoiseAt::Clients] {
        let of = private(DpFedAvgConfig { at, ..config(Clip::Fixed(0.5), 3.0) }, None);
        let start = vec![0.0; count];
        let jobs: Vec<Contribution<'_>> = (0..3)
            .map(|client| Contribution {
                client: ClientId(client),
                number: JobNumber(1),
                cluster: 0,
                examples: 4,
                weight: None,
                staleness_weight: 1.0,
                start: &start,
                parameters: &start,
                rows: &[],
                loss: None,
                steps: Some(1),
                rate: 0.1,
            })
            .collect();
        let jobs: Vec<&Contribution<'_>> = jobs.iter().collect();
        let found = of.mean(&mut of.begin(), &layout, &jobs).unwrap();
        let mean = found.iter().sum::<f64>() / count as f64;
        let sd = sqrt(found.iter().map(|number| number * number).sum::<f64>() / count as f64);
        assert!(mean.abs() < 4.0 * 0.5 / sqrt(count as f64), "{mean}");
        assert!((sd - 0.5).abs() < 4.0 * 0.5 / sqrt(2.0 * count as f64), "{sd}");
    }
}

#[test]
fn ranges() {
    let of = |start, quantile, lr, count_sd| Clip::Adaptive(AdaptiveClip { start, quantile, lr, count_sd });
    for (config, path) in [
        (config(Clip::Fixed(0.0), 1.0), "clip"),
        (config(Clip::Fixed(1.0), -1.0), "noise_multiplier"),
        (config(Clip::Fixed(1.0), f64::NAN), "noise_multiplier"),
        (config(of(f64::INFINITY, 0.5, 0.2, None), 1.0), "clip.start"),
        (config(of(1.0, 1.0, 0.2, None), 1.0), "clip.quantile"),
        (config(of(1.0, 0.5, 0.0, None), 1.0), "clip.lr"),
        (config(of(1.0, 0.5, 0.2, Some(0.5)), 1.0), "clip.count_sd"),
        (DpFedAvgConfig { delta: 1.0, ..config(Clip::Fixed(1.0), 1.0) }, "delta"),
        (DpFedAvgConfig { delta: 1e-12, accountant: Accounting::Pld, ..config(Clip::Fixed(1.0), 1.0) }, "delta"),
    ] {
        assert_eq!(config.check().unwrap_err().path, path, "{config:?}");
    }
    assert_eq!(config(of(1.0, 0.5, 0.2, Some(0.6)), 1.0).check(), Ok(()));
    assert_eq!(DpFedAvgConfig { delta: 1e-12, ..config(Clip::Fixed(1.0), 1.0) }.check(), Ok(()));
}

/// Found by dp-accounting 0.6.0 with the same orders.
#[test]
fn another_accountant_agrees() {
    for (q, z, models, delta, known) in [
        (0.01, 1.1, 1_000, 1e-5, 1.725_290_818_044_944_5),
        (0.05, 1.0, 200, 1e-5, 5.371_115_403_362_253),
        (0.1, 2.0, 500, 1e-6, 6.696_858_854_966_253),
        (0.5, 3.0, 100, 1e-5, 9.226_472_109_979_191),
        (0.001, 0.6, 5_000, 1e-5, 3.294_926_641_474_133_6),
        (0.2, 0.8, 10, 1e-3, 6.492_588_107_801_22),
        (0.02, 4.0, 10_000, 1e-7, 2.712_298_532_378_488_5),
        (1.0, 1.0, 10, 1e-5, 19.801_691_480_042_894),
        (1.0, 5.0, 300, 1e-6, 23.952_984_026_539_92),
        (0.01, 0.5, 100, 1e-5, 10.661_181_335_284_864),
    ] {
        let settings = DpFedAvgConfig { delta, ..config(Clip::Fixed(1.0), z) };
        let accountant = Accountant::new(&settings, q);
        let found = accountant.epsilon(models).unwrap();
        assert!((found / known - 1.0).abs() < 1e-10, "q {q}, z {z}: {found} beside {known}");
        let exact = Accountant::new(&DpFedAvgConfig { accountant: Accounting::Pld, ..settings }, q);
        assert!(exact.epsilon(models).unwrap() < found, "divergences bound ε from above");
        assert_eq!(accountant.epsilon(0), Some(0.0));
    }
    assert_eq!(Accountant::new(&config(Clip::Fixed(1.0), 0.0), 0.1).epsilon(5), None);
}

/// `ρ(α)` is `ln E[(1 − q + q e^((2x − 1)/(2z²)))^α]/(α − 1)` over `x` of N(0, z²), integrated.
#[test]
fn divergences_are_those_of_integration() {
    for (order, q, z) in [(2, 0.5, 3.0), (3, 0.01, 1.0), (8, 0.2, 2.0), (32, 0.05, 4.0), (5, 1e-4, 0.9)] {
        let alpha = f64::from(order);
        // Less 1, so that small divergences keep their digits.
        let term = |x: f64| {
            let ratio = fedgenie_core::math::float::expm1((2.0 * x * z - 1.0) / (2.0 * z * z));
            fedgenie_core::math::float::expm1(alpha * fedgenie_core::math::float::ln_1p(q * ratio))
        };
        let gain = quadrature::normal(term, 1e-14).value;
        let expected = fedgenie_core::math::float::ln_1p(gain) / (alpha - 1.0);
        let found = rdp_order(order, q, z);
        assert!((found / expected - 1.0).abs() < 1e-6, "α {order}, q {q}, z {z}: {found} beside {expected}");
    }
}
