//! ε from the distribution of the loss, beside closed forms and another accountant.

use super::*;

/// One round: δ(ε) of the mechanism itself, in both directions.
#[test]
fn one_round_is_known_in_closed_form() {
    for (q, z, delta) in [(0.01, 1.0, 1e-5), (0.2, 0.8, 1e-3), (0.5, 2.0, 1e-6), (0.05, 0.4, 1e-7)] {
        let mixture = Mixture { q, z };
        let found = epsilon(q, z, 1, delta);
        let of = |direction| {
            let [own, other] = mixture.cell(direction, found, f64::INFINITY);
            own - exp(found) * other
        };
        let exact = of(Direction::Less).max(of(Direction::More));
        assert!(exact <= delta, "q {q}, z {z}: {found} is no upper bound: {exact}");
        let less = (1.0 - 1e-3) * found;
        let of = |direction| {
            let [own, other] = mixture.cell(direction, less, f64::INFINITY);
            own - exp(less) * other
        };
        assert!(of(Direction::Less).max(of(Direction::More)) > delta, "q {q}, z {z}: {found} is too large");
    }
}

/// Nearly all clients are drawn: the grid has to find what is known in closed form of all.
#[test]
fn many_rounds_of_nearly_all_clients_are_those_of_all() {
    for (z, rounds, delta) in [(2.0, 10, 1e-5), (8.0, 300, 1e-6), (20.0, 50, 1e-3)] {
        let (all, nearly) = (
            epsilon(1.0, z, rounds, delta),
            composed(Mixture { q: 1.0 - 1e-12, z }, Direction::Less, rounds, delta, 1 << 15),
        );
        assert!((nearly / all - 1.0).abs() < 1e-3, "z {z}: {nearly} beside {all}");
    }
    // μ = 1: δ(1) = Φ(−½) − e Φ(−3/2).
    let delta = normal_cdf(-0.5) - exp(1.0) * normal_cdf(-1.5);
    assert!((gaussian(1.0, delta) - 1.0).abs() < 1e-12);
}

/// Found by dp-accounting 0.6.0 with a grid of 1e-4, which rounds losses up as well.
#[test]
fn another_accountant_agrees() {
    for (q, z, rounds, delta, known) in [
        (0.01, 1.1, 1_000, 1e-5, 1.515_370_248),
        (0.05, 1.0, 200, 1e-5, 4.765_920_019),
        (0.1, 2.0, 500, 1e-6, 6.216_700_001),
        (0.2, 0.8, 10, 1e-3, 4.700_911_257),
        (0.02, 4.0, 10_000, 1e-7, 2.548_070_470),
        (0.01, 0.5, 100, 1e-5, 6.476_210_218),
        (1.0, 1.0, 10, 1e-5, 17.856_586_831),
        (1.0, 5.0, 300, 1e-6, 21.839_216_405),
    ] {
        let found = epsilon(q, z, rounds, delta);
        assert!((found / known - 1.0).abs() < 2e-4, "q {q}, z {z}: {found} beside {known}");
    }
}

#[test]
fn the_transform_has_a_way_back() {
    let numbers: Vec<f64> = (0..64).map(|index| f64::from(index * index % 17)).collect();
    let (mut real, mut imaginary) = (numbers.clone(), vec![0.0; 64]);
    transform(&mut real, &mut imaginary);
    // By the definition, for a few frequencies.
    for frequency in [0, 1, 7, 40] {
        let angle = |place: usize| -2.0 * PI * (frequency * place) as f64 / 64.0;
        let cosines: f64 = numbers.iter().enumerate().map(|(place, number)| number * cos(angle(place))).sum();
        assert!((real[frequency] - cosines).abs() < 1e-10);
    }
    imaginary.iter_mut().for_each(|number| *number = -*number);
    transform(&mut real, &mut imaginary);
    for (found, number) in real.iter().zip(&numbers) {
        assert!((found / 64.0 - number).abs() < 1e-12);
    }
}
