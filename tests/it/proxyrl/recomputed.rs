//! Every step of actor and critic, worked out again from the files of a run: the weights that were drawn, what
//! `rounds.jsonl` says of each decision, and the weights in the end.

use super::{LEARNING, SYNCHRONOUS, Toy, ids, numbers, of_policy, rounds, written};
use crate::support::Workplace;
use fedgenie::model::weights::read_tensors;
use fedgenie::rng::{Purpose, Streams};
use serde_json::Value;

const CLIENTS: usize = 12;
const EXAMPLES: fn(usize) -> f64 = |client| (1 + client % 4) as f64;

/// A layer: a row of weights and a bias for each output.
#[derive(Clone)]
struct Layer {
    weights: Vec<Vec<f64>>,
    biases: Vec<f64>,
}

impl Layer {
    fn apply(&self, input: &[f64]) -> Vec<f64> {
        let sum = |row: &Vec<f64>| row.iter().zip(input).map(|(weight, number)| weight * number).sum::<f64>();
        self.weights.iter().zip(&self.biases).map(|(row, bias)| sum(row) + bias).collect()
    }

    fn zeros(&self) -> Self {
        Self {
            weights: self.weights.iter().map(|row| vec![0.0; row.len()]).collect(),
            biases: vec![0.0; self.biases.len()],
        }
    }

    fn numbers(&mut self) -> impl Iterator<Item = &mut f64> {
        self.weights.iter_mut().flatten().chain(&mut self.biases)
    }
}

/// Two layers, with Adam's moments.
#[derive(Clone)]
struct Net {
    layers: [Layer; 2],
    moments: [Vec<f64>; 2],
    steps: i32,
}

impl Net {
    fn hidden(&self, input: &[f64]) -> Vec<f64> {
        self.layers[0].apply(input).into_iter().map(|unit| unit.max(0.0)).collect()
    }

    fn apply(&self, input: &[f64]) -> Vec<f64> {
        self.layers[1].apply(&self.hidden(input))
    }

    /// Adds the gradient of `Σ slopes·outputs`.
    fn add_gradient(&self, input: &[f64], slopes: &[f64], gradient: &mut [Layer; 2]) {
        let hidden = self.hidden(input);
        for (output, slope) in slopes.iter().enumerate() {
            gradient[1].biases[output] += slope;
            for (unit, value) in hidden.iter().enumerate() {
                gradient[1].weights[output][unit] += slope * value;
                let through = if *value > 0.0 { slope * self.layers[1].weights[output][unit] } else { 0.0 };
                gradient[0].biases[unit] += through;
                for (place, number) in input.iter().enumerate() {
                    gradient[0].weights[unit][place] += through * number;
                }
            }
        }
    }

    fn step(&mut self, rate: f64, mut gradient: [Layer; 2]) {
        self.steps += 1;
        let slopes: Vec<f64> = gradient.iter_mut().flat_map(Layer::numbers).map(|slope| *slope).collect();
        let corrections = [1.0 - 0.9_f64.powi(self.steps), 1.0 - 0.999_f64.powi(self.steps)];
        let [mean, square] = &mut self.moments;
        mean.resize(slopes.len(), 0.0);
        square.resize(slopes.len(), 0.0);
        for (index, parameter) in self.layers.iter_mut().flat_map(Layer::numbers).enumerate() {
            mean[index] = 0.9 * mean[index] + 0.1 * slopes[index];
            square[index] = 0.999 * square[index] + 0.001 * slopes[index].powi(2);
            *parameter -= rate * (mean[index] / corrections[0]) / ((square[index] / corrections[1]).sqrt() + 1e-8);
        }
    }

    fn zeros(&self) -> [Layer; 2] {
        self.layers.each_ref().map(Layer::zeros)
    }
}

/// Actor and critic of a file.
fn read(place: &Workplace, name: &str, [inputs, hidden, outputs]: [usize; 3]) -> [Net; 2] {
    let of = |net: &str, outputs: usize| {
        [
            (format!("{net}.0.weight"), vec![hidden, inputs]),
            (format!("{net}.0.bias"), vec![hidden]),
            (format!("{net}.2.weight"), vec![outputs, hidden]),
            (format!("{net}.2.bias"), vec![outputs]),
        ]
    };
    let expected = of("actor", outputs).into_iter().chain(of("critic", 1)).collect();
    let tensors = read_tensors(&place.path(name), expected).unwrap();
    let values = |index: usize| tensors[index].values.iter().map(|&value| f64::from(value)).collect::<Vec<f64>>();
    [0, 4].map(|first| {
        let layer = |index: usize, width: usize| Layer {
            weights: values(index).chunks(width).map(<[f64]>::to_vec).collect(),
            biases: values(index + 1),
        };
        let layers = [layer(first, inputs), layer(first + 2, hidden)];
        Net { layers, moments: [Vec::new(), Vec::new()], steps: 0 }
    })
}

fn standardised(numbers: &[f64]) -> Vec<f64> {
    let mean = numbers.iter().sum::<f64>() / numbers.len() as f64;
    let variance = numbers.iter().map(|number| (number - mean).powi(2)).sum::<f64>() / numbers.len() as f64;
    numbers.iter().map(|number| (number - mean) / (variance.sqrt() + 1e-8)).collect()
}

/// One decision.
struct Decision {
    /// Inputs of the networks: one of all clients, or one for each.
    inputs: Vec<Vec<f64>>,
    drawn: Vec<usize>,
}

impl Decision {
    fn logits(&self, actor: &Net) -> Vec<f64> {
        self.inputs.iter().flat_map(|input| actor.apply(input)).collect()
    }

    fn value(&self, critic: &Net) -> f64 {
        self.inputs.iter().map(|input| critic.apply(input)[0]).sum::<f64>() / self.inputs.len() as f64
    }

    /// The softmax over those left before each draw.
    fn shares(&self, logits: &[f64]) -> Vec<Vec<f64>> {
        let before = |draw: usize| {
            let is_left = |client: usize| !self.drawn[..draw].contains(&client);
            let sum: f64 = (0..CLIENTS).filter(|&client| is_left(client)).map(|client| logits[client].exp()).sum();
            let share = |client: usize| if is_left(client) { logits[client].exp() / sum } else { 0.0 };
            (0..CLIENTS).map(share).collect()
        };
        (0..self.drawn.len()).map(before).collect()
    }

    fn log_probability(&self, actor: &Net) -> f64 {
        let shares = self.shares(&self.logits(actor));
        shares.iter().zip(&self.drawn).map(|(shares, &client)| shares[client].ln()).sum()
    }

    /// Steps of both networks with an error δ.
    fn teach(&self, [actor, critic]: &mut [Net; 2], rates: [f64; 2], error: f64) {
        let mut slopes = [0.0; CLIENTS];
        for (shares, &drawn) in self.shares(&self.logits(actor)).iter().zip(&self.drawn) {
            slopes[drawn] -= error;
            slopes.iter_mut().zip(shares).for_each(|(slope, share)| *slope += error * share);
        }
        let mut gradient = actor.zeros();
        let each = CLIENTS / self.inputs.len();
        for (input, slopes) in self.inputs.iter().zip(slopes.chunks(each)) {
            actor.add_gradient(input, slopes, &mut gradient);
        }
        if rates[0] > 0.0 {
            actor.step(rates[0], gradient);
        }
        let mut gradient = critic.zeros();
        for input in &self.inputs {
            critic.add_gradient(input, &[-error / self.inputs.len() as f64], &mut gradient);
        }
        if rates[1] > 0.0 {
            critic.step(rates[1], gradient);
        }
    }
}

fn assert_close(found: &Value, expected: f64, what: &str) {
    match found.as_f64() {
        Some(found) => {
            assert!((found - expected).abs() < 1e-8 * expected.abs().max(1.0), "{what}: {found}, {expected}")
        }
        None => assert!(expected.is_nan(), "{what}: null, {expected}"),
    }
}

/// What a case of [`LEARNING`] says.
struct Case {
    is_shared: bool,
    hidden: usize,
    window: f64,
    rates: [f64; 2],
    /// λ; none of FedRL.
    lambda: Option<f64>,
}

/// Plays the decisions of a run again. Returns how far its weights have moved.
fn recompute(index: usize, case: &Case) -> f64 {
    let (kind, lines) = LEARNING[index];
    let place = written(&of_policy(SYNCHRONOUS, (kind, lines), Toy::default()));
    let folder = format!("out/runs/{kind}-s1");
    let sizes = if case.is_shared { [3, case.hidden, 1] } else { [CLIENTS, case.hidden, CLIENTS] };
    let mut nets = read(&place, &format!("{folder}/policy_initial.safetensors"), sizes);
    let initial = nets.clone();
    let weights = (nets.clone().iter_mut().flat_map(|net| &mut net.layers))
        .map(|layer| layer.weights.iter().flatten().count())
        .sum::<usize>();
    let (mut before, mut accuracy): (Option<(Decision, f64)>, f64) = (None, f64::NAN);
    let mut selected_in = [0_u32; CLIENTS];
    for (number, round) in (1_u32..).zip(rounds(&place, kind)) {
        let explained = &round["explain"][0];
        assert_eq!(ids(&explained["clients"]), (0..CLIENTS as u32).collect::<Vec<_>>());
        let state = standardised(&numbers(&explained[if kind == "fedrl" { "loss" } else { "state" }]));
        let inputs = if case.is_shared {
            let sizes = standardised(&(0..CLIENTS).map(|client| EXAMPLES(client).ln()).collect::<Vec<_>>());
            let waited = |client: usize| f64::from(number - selected_in[client]);
            assert_eq!(numbers(&explained["rounds_since"]), (0..CLIENTS).map(waited).collect::<Vec<_>>());
            let features = |client| vec![state[client], sizes[client], waited(client).min(case.window) / case.window];
            (0..CLIENTS).map(features).collect()
        } else {
            vec![state]
        };
        let drawn: Vec<usize> = ids(&round["selected"]).into_iter().map(|client| client as usize).collect();
        drawn.iter().for_each(|&client| selected_in[client] = number);
        let decision = Decision { inputs, drawn };
        let error = match &before {
            Some((last, reward)) => reward + 0.9 * decision.value(&nets[1]) - last.value(&nets[1]),
            None => f64::NAN,
        };
        assert_close(&explained["td_error"], error, "td_error");
        if let (Some((last, _)), true) = (&before, error.is_finite()) {
            last.teach(&mut nets, case.rates, error);
        }
        assert_close(&explained["value"], decision.value(&nets[1]), "value");
        assert_close(&explained["log_probability"], decision.log_probability(&nets[0]), "log_probability");
        // The largest keys: logits with noise from the policy's stream, in which the weights come first.
        let mut stream = Streams::new(1).stream(Purpose::Policy, 0, number);
        if number == 1 {
            for _ in 0..weights {
                stream.uniform();
            }
        }
        let keys = decision.logits(&nets[0]).into_iter().map(|logit| logit - (-stream.uniform().ln()).ln());
        let mut keys: Vec<(usize, f64)> = keys.enumerate().collect();
        keys.sort_by(|one, other| other.1.total_cmp(&one.1));
        assert_eq!(keys[..3].iter().map(|(client, _)| *client).collect::<Vec<_>>(), decision.drawn);
        // (17), or the gain.
        let metric = |name: &str| round["metrics"][name].as_f64().unwrap();
        let now = metric("valid_hr_20");
        let reward = match case.lambda {
            Some(lambda) => lambda * now - (1.0 - lambda) * metric("item_staleness"),
            None => now - accuracy,
        };
        accuracy = now;
        assert_close(&explained["after"]["reward"], reward, "reward");
        before = Some((decision, reward));
    }
    let mut moved: f64 = 0.0;
    let found = read(&place, &format!("{folder}/policy.safetensors"), sizes);
    for ((mut found, mut expected), mut initial) in found.into_iter().zip(nets).zip(initial) {
        let numbers = |net: &mut Net| net.layers.iter_mut().flat_map(Layer::numbers).map(|n| *n).collect::<Vec<_>>();
        let initial = numbers(&mut initial);
        for ((found, expected), initial) in numbers(&mut found).into_iter().zip(numbers(&mut expected)).zip(initial) {
            assert!((found - expected).abs() < 1e-6, "{found}, {expected}");
            moved = moved.max((expected - initial).abs());
        }
    }
    moved
}

#[test]
fn every_step_follows_from_what_was_written() {
    let dense = Case { is_shared: false, hidden: 4, window: 100.0, rates: [0.05; 2], lambda: Some(0.6) };
    assert!(recompute(0, &dense) > 0.1);
    assert!(recompute(1, &Case { hidden: 3, rates: [1e-3; 2], lambda: Some(1.0), ..dense }) > 1e-3);
    let shared = Case { is_shared: true, window: 3.0, ..dense };
    assert!(recompute(2, &shared) > 0.1);
    // The actor of rate 0 stays, the critic of this rate does not; accuracy is not measured.
    assert!(recompute(3, &Case { hidden: 3, rates: [0.0, 1e-3], lambda: Some(0.0), ..dense }) > 1e-3);
    assert_eq!(recompute(4, &Case { hidden: 3, rates: [0.0; 2], window: 100.0, ..shared }), 0.0);
    assert!(recompute(5, &Case { lambda: None, window: 4.0, ..shared }) > 0.1);
}
