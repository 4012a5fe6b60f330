//! Gradients against central differences, draws against their law, steps against plain sums.

use super::draw::{draw, log_probability, slopes};
use super::network::{Learner, Sizes};
use super::*;
use fedgenie_core::math::float::{exp, ln, power};
use fedgenie_core::rng::{Purpose, Streams};
use fedgenie_core::state::State;

fn plan(rule: Rule) -> Plan {
    let (clients, hidden) = (6, 5);
    Plan { rule, clients, hidden, actor_rate: 0.01, critic_rate: 0.02, discount: 0.9, window: 10 }
}

fn rng(index: u32) -> StreamRng {
    Streams::new(9).stream(Purpose::Policy, 0, index)
}

fn begun(rule: Rule) -> ActorCritic {
    let mut begun = ActorCritic::new(plan(rule));
    begun.begin(&mut rng(1));
    // Biases that are not 0, so that their slopes matter.
    for (index, parameter) in begun.actor.network.parameters.iter_mut().enumerate() {
        *parameter += 0.01 * f64::from(index as u32 % 7);
    }
    for (index, parameter) in begun.critic.network.parameters.iter_mut().enumerate() {
        *parameter += 0.01 * f64::from(index as u32 % 5);
    }
    begun
}

/// Four of six clients, as the rule sees them.
fn seen(rule: Rule) -> Seen {
    let clients = [0, 2, 3, 5].map(ClientId).to_vec();
    let features = match rule {
        Rule::Shared => vec![0.3, -1.0, 0.1, -1.2, 0.4, 0.2, 1.5, 0.9, 1.0, -0.6, -0.3, 0.7],
        _ => vec![0.3, -1.2, 1.5, -0.6],
    };
    Seen { clients, features }
}

const RULES: [Rule; 2] = [Rule::Dense, Rule::Shared];

/// Compares a gradient with central differences of its function, in every parameter.
fn assert_gradient(
    found: &[f64],
    begun: &mut ActorCritic,
    of: fn(&mut ActorCritic) -> &mut Vec<f64>,
    value: impl Fn(&ActorCritic) -> f64,
) {
    assert_eq!(found.len(), of(begun).len());
    for (index, found) in found.iter().enumerate() {
        let mut at = |step: f64| {
            of(begun)[index] += step;
            let value = value(begun);
            of(begun)[index] -= step;
            value
        };
        let expected = (at(1e-5) - at(-1e-5)) / 2e-5;
        assert!((found - expected).abs() < 1e-8, "parameter {index}: found {found}, expected {expected}");
    }
    assert!(found.iter().filter(|slope| slope.abs() > 1e-3).count() > found.len() / 4, "{found:?}");
}

#[test]
fn the_actors_gradient_is_that_of_central_differences() {
    for rule in RULES {
        let (mut begun, seen, drawn) = (begun(rule), seen(rule), [2, 0, 1]);
        let mut gradient = vec![7.0];
        begun.actor_gradient(&seen, &drawn, -0.7, &mut gradient);
        let value = |begun: &ActorCritic| -0.7 * log_probability(&begun.logits(&seen), &drawn);
        assert_gradient(&gradient, &mut begun, |begun| &mut begun.actor.network.parameters, value);
    }
}

#[test]
fn the_critics_gradient_is_that_of_central_differences() {
    for rule in RULES {
        let (mut begun, seen) = (begun(rule), seen(rule));
        let error = 1.3 - begun.value_of(&seen);
        let mut gradient = vec![7.0];
        begun.critic_gradient(&seen, -error, &mut gradient);
        let value = |begun: &ActorCritic| (1.3 - begun.value_of(&seen)).powi(2) / 2.0;
        assert_gradient(&gradient, &mut begun, |begun| &mut begun.critic.network.parameters, value);
    }
}

/// The probability of ordered draws, factor by factor.
fn by_hand(logits: &[f64], drawn: &[u32]) -> f64 {
    let mut left: Vec<u32> = (0..logits.len() as u32).collect();
    let mut probability = 1.0;
    for place in drawn {
        let sum: f64 = left.iter().map(|&place| exp(logits[place as usize])).sum();
        probability *= exp(logits[*place as usize]) / sum;
        left.retain(|other| other != place);
    }
    probability
}

/// All ordered draws of two out of four.
fn pairs() -> Vec<[u32; 2]> {
    let all = (0..4).flat_map(|one| (0..4).map(move |other| [one, other]));
    all.filter(|[one, other]| one != other).collect()
}

const LOGITS: [f64; 4] = [0.0, 1.0, -1.0, 0.5];

#[test]
fn probabilities_of_draws_are_products_of_their_factors() {
    let mut sum = 0.0;
    for drawn in pairs() {
        let found = exp(log_probability(&LOGITS, &drawn));
        approx::assert_relative_eq!(found, by_hand(&LOGITS, &drawn), max_relative = 1e-12);
        sum += found;
    }
    approx::assert_relative_eq!(sum, 1.0, max_relative = 1e-12);
    // All of them, in a given order: the last draw is certain.
    let all = [3, 1, 0, 2];
    approx::assert_relative_eq!(exp(log_probability(&LOGITS, &all)), by_hand(&LOGITS, &all), max_relative = 1e-12);
    assert_eq!(log_probability(&[0.3], &[0]), 0.0);
}

/// χ² with 11 degrees of freedom exceeds 31.3 with probability 0.001.
#[test]
fn draws_follow_plackett_and_luce() {
    const DRAWS: u32 = 60_000;
    let (pairs, mut drawn) = (pairs(), Vec::new());
    let mut counts = vec![0_u32; pairs.len()];
    for index in 0..DRAWS {
        draw(&LOGITS, 2, &mut rng(index), &mut drawn);
        counts[pairs.iter().position(|pair| pair[..] == drawn[..]).unwrap()] += 1;
    }
    let statistic: f64 = (pairs.iter().zip(&counts))
        .map(|(pair, &count)| {
            let expected = f64::from(DRAWS) * by_hand(&LOGITS, pair);
            (f64::from(count) - expected).powi(2) / expected
        })
        .sum();
    assert!(statistic < 31.3, "χ² = {statistic}: {counts:?}");
}

/// The keys are logits plus Gumbel noise of the candidates' uniforms, in their order.
#[test]
fn the_largest_keys_are_drawn_largest_first() {
    let (mut drawn, mut again) = (Vec::new(), rng(4));
    draw(&LOGITS, 3, &mut rng(4), &mut drawn);
    let keys = LOGITS.map(|logit| logit - ln(-ln(again.uniform())));
    let mut order: Vec<u32> = (0..4).collect();
    order.sort_by(|one, other| keys[*other as usize].total_cmp(&keys[*one as usize]));
    assert_eq!(drawn, order[..3]);
}

#[test]
fn slopes_of_draws_are_those_of_central_differences() {
    for drawn in [&[2, 0][..], &[1], &[3, 1, 0, 2]] {
        let found = slopes(&LOGITS, drawn);
        assert!(found.iter().sum::<f64>().abs() < 1e-12, "a constant added to all logits changes nothing");
        for (index, found) in found.into_iter().enumerate() {
            let at = |step: f64| {
                let mut logits = LOGITS;
                logits[index] += step;
                ln(by_hand(&logits, drawn))
            };
            let expected = (at(1e-5) - at(-1e-5)) / 2e-5;
            assert!((found - expected).abs() < 1e-9, "{drawn:?}, {index}: {found}, {expected}");
        }
    }
}

/// Of logits that no exponential holds: the likeliest draw is certain, others differ by whole logits.
#[test]
fn extreme_logits_stay_finite() {
    let logits = [3_000.0, -3_000.0, 0.0];
    assert_eq!(log_probability(&logits, &[0, 2, 1]), 0.0);
    approx::assert_relative_eq!(log_probability(&logits, &[1, 2]), -6_000.0 - 3_000.0, max_relative = 1e-12);
    assert_eq!(slopes(&logits, &[0, 2]), [0.0, 0.0, 0.0]);
    assert!(slopes(&logits, &[1, 2]).iter().all(|slope| slope.is_finite()));
}

/// Slopes 0.5 and then −0.25 at rate 0.1. After the first step `m̂ = g`, `v̂ = g²`: the parameter moves by the rate.
/// After the second `m̂ = (0.1·0.9·0.5 − 0.1·0.25)/0.19` and `v̂ = (0.001·0.999·0.25 + 0.001·0.0625)/0.001999`.
#[test]
fn steps_are_those_of_adam() {
    let mut learner = Learner::new(Sizes { inputs: 1, hidden: 1, outputs: 1 }, 0.1);
    learner.step(&[0.5, 0.0, 0.0, 0.0]);
    let after = -0.1 * 0.5 / (0.5 + 1e-8);
    approx::assert_relative_eq!(learner.network.parameters[0], after, max_relative = 1e-12);
    learner.step(&[-0.25, 0.0, 0.0, 0.0]);
    let (mean, square) = (0.02 / 0.19, 0.000_312_25 / 0.001_999);
    let after = after - 0.1 * mean / (power(square, 0.5) + 1e-8);
    approx::assert_relative_eq!(learner.network.parameters[0], after, max_relative = 1e-12);
    assert_eq!(learner.network.parameters[1..], [0.0; 3]);
    // At rate 0 there is no step, and nothing to remember.
    let mut frozen = Learner::new(Sizes { inputs: 1, hidden: 1, outputs: 1 }, 0.0);
    let before = State::save(&mut frozen).unwrap();
    frozen.step(&[1.0; 4]);
    assert_eq!(State::save(&mut frozen).unwrap(), before);
}

/// 1, 2, 3 and 6 have mean 3 and variance 3.5.
#[test]
fn numbers_are_standardised_over_the_known_ones() {
    let deviation = power(3.5, 0.5) + 1e-8;
    let found = standardised(&[1.0, f64::NAN, 2.0, 3.0, f64::INFINITY, 6.0]);
    let expected = [-2.0, 0.0, -1.0, 0.0, 0.0, 3.0].map(|difference| difference / deviation);
    for (found, expected) in found.iter().zip(expected) {
        approx::assert_relative_eq!(*found, expected, max_relative = 1e-14);
    }
    assert_eq!(standardised(&[7.0, 7.0]), [0.0, 0.0]);
    assert_eq!(standardised(&[f64::NAN, f64::NAN]), [0.0, 0.0]);
    assert_eq!(standardised(&[f64::MAX, f64::MAX]), [0.0, 0.0], "a sum that leaves its range");
}

/// `W1` within ±sqrt(6/(6 + 5)), `W2` of the critic within ±sqrt(6/(5 + 1)) = ±1; all of them are `f32`.
#[test]
fn weights_are_drawn_from_the_stream_in_order() {
    let mut begun = ActorCritic::new(plan(Rule::Dense));
    assert!(begun.tensors().is_empty());
    begun.begin(&mut rng(1));
    let tensors = begun.tensors();
    let names: Vec<(&str, &[usize])> =
        tensors.iter().map(|tensor| (tensor.name.as_str(), tensor.shape.as_slice())).collect();
    let expected: [(&str, &[usize]); 8] = [
        ("actor.0.weight", &[5, 6]),
        ("actor.0.bias", &[5]),
        ("actor.2.weight", &[6, 5]),
        ("actor.2.bias", &[6]),
        ("critic.0.weight", &[5, 6]),
        ("critic.0.bias", &[5]),
        ("critic.2.weight", &[1, 5]),
        ("critic.2.bias", &[1]),
    ];
    assert_eq!(names, expected);
    let mut stream = rng(1);
    for (tensor, bound) in tensors.iter().zip([6.0 / 11.0, 0.0, 6.0 / 11.0, 0.0, 6.0 / 11.0, 0.0, 1.0, 0.0]) {
        for &value in &tensor.values {
            let expected = if bound > 0.0 { power(bound, 0.5) * (2.0 * stream.uniform() - 1.0) } else { 0.0 };
            assert!((f64::from(value) - expected).abs() < 1e-7, "{}", tensor.name);
        }
    }
    assert!(begun.actor.network.parameters.iter().all(|&weight| f64::from(weight as f32) == weight));
    // Drawn once.
    begun.begin(&mut rng(2));
    assert_eq!(begun.tensors(), tensors);
}

/// `W2 relu(W1 x + b1) + b2` from tensors, as `rows` of outputs.
fn applied(tensors: &[Tensor], input: &[f64]) -> Vec<f64> {
    let layer = |weight: &Tensor, bias: &Tensor, input: &[f64]| -> Vec<f64> {
        let rows = weight.values.chunks(input.len()).zip(&bias.values);
        let sum = |row: &[f32]| row.iter().zip(input).map(|(weight, number)| f64::from(*weight) * number).sum::<f64>();
        rows.map(|(row, bias)| sum(row) + f64::from(*bias)).collect()
    };
    let hidden: Vec<f64> = layer(&tensors[0], &tensors[1], input).into_iter().map(|unit| unit.max(0.0)).collect();
    layer(&tensors[2], &tensors[3], &hidden)
}

/// Value, log-probability and TD error of two selections, worked out from the tensors; the step itself is that of the
/// gradients, which the tests above compare with differences.
#[test]
fn a_selection_learns_from_the_one_before() {
    for rule in RULES {
        let mut begun = ActorCritic::new(plan(rule));
        begun.begin(&mut rng(1));
        let first = seen(rule);
        let mut second = Seen { clients: [1, 2, 4, 5].map(ClientId).to_vec(), ..first.clone() };
        second.features.reverse();
        let value = |tensors: &[Tensor], seen: &Seen| -> f64 {
            if rule == Rule::Dense {
                let mut input = vec![0.0; 6];
                seen.clients.iter().zip(&seen.features).for_each(|(client, number)| input[client.index()] = *number);
                return applied(&tensors[4..], &input)[0];
            }
            // The output is linear: the mean over candidates of the outputs is the output of the mean.
            seen.features.chunks(3).map(|features| applied(&tensors[4..], features)[0]).sum::<f64>() / 4.0
        };
        let initial = begun.tensors();
        let drawn = begun.decide(first.clone(), 2, &mut rng(2)).to_vec();
        assert!(begun.td_error.is_nan() && begun.rewarded().is_nan());
        approx::assert_relative_eq!(begun.value, value(&initial, &first), max_relative = 1e-12);
        let logits: Vec<f64> = match rule {
            Rule::Dense => {
                let mut input = vec![0.0; 6];
                first.clients.iter().zip(&first.features).for_each(|(client, number)| input[client.index()] = *number);
                let outputs = applied(&initial, &input);
                first.clients.iter().map(|client| outputs[client.index()]).collect()
            }
            _ => first.features.chunks(3).map(|features| applied(&initial, features)[0]).collect(),
        };
        approx::assert_relative_eq!(exp(begun.log_probability), by_hand(&logits, &drawn), max_relative = 1e-12);
        begun.reward(0.4);
        let mut expected = begun.clone();
        let error = 0.4 + 0.9 * value(&initial, &second) - value(&initial, &first);
        let [mut actor, mut critic] = [Vec::new(), Vec::new()];
        expected.actor_gradient(&first, &drawn, -error, &mut actor);
        expected.critic_gradient(&first, -error, &mut critic);
        expected.actor.step(&actor);
        expected.critic.step(&critic);
        begun.decide(second.clone(), 2, &mut rng(3));
        approx::assert_relative_eq!(begun.td_error, error, max_relative = 1e-12);
        assert_eq!(begun.tensors(), expected.tensors());
        assert_ne!(begun.tensors(), initial);
        approx::assert_relative_eq!(begun.value, value(&begun.tensors(), &second), max_relative = 1e-5);
        // A selection without a reward teaches nothing.
        let before = begun.tensors();
        begun.decide(first, 2, &mut rng(4));
        assert!(begun.td_error.is_nan());
        assert_eq!(begun.tensors(), before);
    }
}

#[test]
fn frozen_networks_and_softmax_learn_nothing() {
    let frozen = Plan { actor_rate: 0.0, critic_rate: 0.0, ..plan(Rule::Dense) };
    assert!(!frozen.learns() && Plan { critic_rate: 0.1, ..frozen }.learns());
    let mut begun = ActorCritic::new(frozen);
    begun.begin(&mut rng(1));
    let initial = begun.tensors();
    for index in 2..5 {
        begun.decide(seen(Rule::Dense), 2, &mut rng(index));
        begun.reward(1.0);
    }
    assert_eq!(begun.tensors(), initial);
    assert!(begun.td_error.is_finite() && begun.value.is_finite());
    // Half the temperature, twice the logits.
    let rule = Rule::Softmax { temperature: 0.5 };
    let mut softmax = ActorCritic::new(plan(rule));
    assert_eq!(softmax.logits(&seen(rule)), [0.6, -2.4, 3.0, -1.2]);
    softmax.decide(seen(rule), 2, &mut rng(1));
    softmax.reward(1.0);
    softmax.decide(seen(rule), 2, &mut rng(2));
    assert!(softmax.td_error.is_nan() && softmax.value.is_nan() && softmax.tensors().is_empty());
    assert!(!plan(rule).learns());
}

#[test]
fn what_was_saved_goes_on_alike_and_nonsense_is_refused() {
    for rule in RULES {
        let mut begun = begun(rule);
        begun.is_drawn = true;
        begun.decide(seen(rule), 2, &mut rng(2));
        begun.reward(0.3);
        begun.decide(seen(rule), 3, &mut rng(3));
        begun.reward(0.1);
        let bytes = State::save(&mut begun).unwrap();
        let mut loaded = ActorCritic::new(plan(rule));
        State::load(&mut loaded, &bytes).unwrap();
        assert_eq!(loaded.decide(seen(rule), 2, &mut rng(4)), begun.decide(seen(rule), 2, &mut rng(4)));
        assert_eq!(State::save(&mut loaded).unwrap(), State::save(&mut begun).unwrap());
        assert!(State::load(&mut ActorCritic::new(plan(rule)), &bytes[1..]).is_err());
        let wrong: [fn(&mut ActorCritic); 4] = [
            |begun| begun.actor.network.parameters[0] = f64::NAN,
            |begun| begun.taken.as_mut().unwrap().drawn[0] = 4,
            |begun| begun.taken.as_mut().unwrap().seen.clients[0] = ClientId(6),
            |begun| begun.taken.as_mut().unwrap().seen.features.truncate(2),
        ];
        for wrong in wrong {
            let mut changed = begun.clone();
            wrong(&mut changed);
            let bytes = State::save(&mut changed).unwrap();
            assert!(State::load(&mut ActorCritic::new(plan(rule)), &bytes).is_err());
        }
    }
}

#[test]
fn wrong_numbers_are_named() {
    let path = |plan: Plan| plan.check().unwrap_err().to_string();
    let dense = plan(Rule::Dense);
    dense.check().unwrap();
    assert!(path(Plan { discount: 1.5, ..dense }).starts_with("gamma: found 1.5"));
    assert!(path(Plan { actor_rate: -1.0, ..dense }).starts_with("actor_lr: found -1"));
    assert!(path(Plan { critic_rate: f64::NAN, ..dense }).starts_with("critic_lr: found NaN"));
    assert!(path(Plan { hidden: 0, ..dense }).starts_with("hidden: found 0"));
    assert!(path(Plan { hidden: 100_000, ..dense }).starts_with("hidden: found 100000"));
    assert!(path(Plan { window: 0, ..dense }).starts_with("window: found 0"));
    let softmax = plan(Rule::Softmax { temperature: 0.0 });
    assert!(path(softmax).starts_with("actor.softmax.temperature: found 0"));
    Plan { clients: 50_000, hidden: 1, ..dense }.check().unwrap();
    let many = path(Plan { clients: 50_001, ..dense });
    assert!(many.contains("50001 clients, and goes up to 50000; take actor = \"shared\""), "{many}");
    Plan { clients: 50_001, ..plan(Rule::Shared) }.check().unwrap();
}
