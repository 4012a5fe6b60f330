//! Synthetic(α, β): clients whose models and features differ, drawn from the seed.
//!
//! # Definition
//! Each of `clients` has a linear model and features of its own. For client `k`: `u_k ~ N(0, alpha²)`, `B_k ~ N(0,
//! beta²)`; entries of the matrix `W_k` (`features` × `classes`) and of `b_k` are `N(u_k, 1)`, entries of `v_k` are
//! `N(B_k, 1)`. An example is `x ~ N(v_k, Σ)` with the diagonal `Σ_jj = j^−1.2` (`j` from 1), and its class the largest
//! entry of `x W_k + b_k`, the smallest class on ties. The client has `⌊exp(N(size_mean, size_sd²))⌋ + least` examples,
//! of which the first `⌊(1 − test)·n⌋` are for training. Rows have the client's number as their group, so that
//! `partition = "by-column"` gives each client its own.
//!
//! So `alpha` says how much models of clients differ, and `beta` how much their features do.
//!
//! # Source
//! T. Li et al., "Federated optimization in heterogeneous networks" (FedProx), MLSys 2020, Section 5.1 and Appendix
//! C.1. Numbers that the text does not give are those of the authors' generator: 30 clients, 60 features, 10 classes,
//! sizes by a log-normal law with 4 and 2, and 50; `alpha` and `beta` are deviations there, where the text could mean
//! variances.
//!
//! # Deviations from the source
//! Other random numbers. Synthetic-IID, where all have one model, is not among these.
//!
//! # Cost
//! A normal variate for each feature, and the model's products.
//!
//! # Determinism
//! Stream (Example, client, 23): `u`, `B`, the size, `W` row by row, `b`, `v`; stream (Example, client, 24): its
//! examples, one after the other. A client therefore does not depend on how many others there are. Classes are decided
//! by `x` as it is kept, in `f32`, with sums in `f64`.
//!
//! # Example
//! ```toml
//! data = { synthetic-clients = { alpha = 1.0, beta = 1.0, clients = 30 } }
//! partition = "by-column"
//! ```

use super::source::{DataCache, SourceSettings};
use super::{DataError, Dataset, Split, Targets};
use fedgenie_core::config::Complaint;
use fedgenie_core::limits::afford;
use fedgenie_core::math::float::{exp, ln, sqrt};
use fedgenie_core::math::special::normal_quantile;
use fedgenie_core::rng::{Purpose, StreamRng, Streams};
use ndarray::Array2;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Index of the stream of a client's model.
const MODEL: u32 = 23;

/// Index of the stream of a client's examples.
const EXAMPLES: u32 = 24;

/// The largest number of features (examples × features) that is generated: 2^28, or 1 GiB.
const ENTRIES_MAX: f64 = (1_u64 << 28) as f64;

/// `{ synthetic-clients = { .. } }`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SyntheticClients {
    /// How much clients' models differ: a standard deviation, at least 0.
    #[serde(default = "one")]
    pub alpha: f64,
    /// How much clients' features differ: a standard deviation, at least 0.
    #[serde(default = "one")]
    pub beta: f64,
    /// Number of clients; 1 to 1,000,000.
    #[serde(default = "thirty")]
    pub clients: usize,
    /// Number of features; 1 to 10,000.
    #[serde(default = "sixty")]
    pub features: usize,
    /// Number of classes; 2 to 256.
    #[serde(default = "ten")]
    pub classes: usize,
    /// Mean of the logarithm of a client's amount of examples.
    #[serde(default = "four")]
    pub size_mean: f64,
    /// Standard deviation of that logarithm; at least 0.
    #[serde(default = "two")]
    pub size_sd: f64,
    /// Examples that are added to each client's; at least 2, so that none has only examples for testing.
    #[serde(default = "fifty")]
    pub least: usize,
    /// The share of each client's examples for testing; above 0 and below 1.
    #[serde(default = "tenth")]
    pub test: f64,
}

const fn one() -> f64 {
    1.0
}
const fn two() -> f64 {
    2.0
}
const fn four() -> f64 {
    4.0
}
const fn tenth() -> f64 {
    0.1
}
const fn ten() -> usize {
    10
}
const fn thirty() -> usize {
    30
}
const fn fifty() -> usize {
    50
}
const fn sixty() -> usize {
    60
}

impl SourceSettings for SyntheticClients {
    fn check(&self) -> Result<(), Complaint> {
        let refuse = |key: &str, found: &dyn std::fmt::Display, expected: &str| {
            Err(Complaint::new(key, format!("found {found}; expected {expected}")))
        };
        for (key, found) in [("alpha", self.alpha), ("beta", self.beta), ("size_sd", self.size_sd)] {
            if !(found.is_finite() && found >= 0.0) {
                return refuse(key, &found, "a number of at least 0");
            }
        }
        for (key, found, least, most) in [
            ("clients", self.clients, 1, 1_000_000),
            ("features", self.features, 1, 10_000),
            ("classes", self.classes, 2, 256),
            ("least", self.least, 2, 1_000_000_000),
        ] {
            if !(least..=most).contains(&found) {
                return refuse(key, &found, &format!("from {least} to {most}"));
            }
        }
        if !self.size_mean.is_finite() {
            return refuse("size_mean", &self.size_mean, "a number");
        }
        match self.test > 0.0 && self.test < 1.0 {
            true => Ok(()),
            false => refuse("test", &self.test, "a share above 0 and below 1"),
        }
    }

    fn is_each_seeds_own(&self) -> bool {
        true
    }

    fn load(&self, streams: &Streams, _: &DataCache) -> Result<Split, DataError> {
        self.draw(streams)
    }
}

/// A client's model and features.
#[derive(Debug)]
struct Drawn {
    /// Number of its examples.
    size: f64,
    /// `W`, row by row.
    weights: Vec<f64>,
    /// `b`
    bias: Vec<f64>,
    /// `v`
    centre: Vec<f64>,
}

fn normal(rng: &mut StreamRng) -> f64 {
    normal_quantile(rng.uniform())
}

/// Rows of one part.
#[derive(Default)]
struct Part {
    features: Vec<f32>,
    labels: Vec<u8>,
    groups: Vec<u32>,
}

impl SyntheticClients {
    fn client(&self, streams: &Streams, client: u32) -> Drawn {
        let mut rng = streams.stream(Purpose::Example, client, MODEL);
        let (level, middle) = (self.alpha * normal(&mut rng), self.beta * normal(&mut rng));
        let size = exp(self.size_mean + self.size_sd * normal(&mut rng)).floor() + self.least as f64;
        let mut around =
            |mean: f64, count: usize| -> Vec<f64> { (0..count).map(|_| mean + normal(&mut rng)).collect() };
        let weights = around(level, self.features * self.classes);
        let bias = around(level, self.classes);
        Drawn { size, weights, bias, centre: around(middle, self.features) }
    }

    /// Draws the examples of a seed.
    fn draw(&self, streams: &Streams) -> Result<Split, DataError> {
        let clients = 0..self.clients as u32;
        let total: f64 = clients.clone().map(|client| self.client(streams, client).size).sum();
        let entries = total * self.features as f64;
        if entries > ENTRIES_MAX {
            let found = format!("{} clients with {total} examples of {} numbers", self.clients, self.features);
            let expected = "at most 2^28 numbers together; take fewer clients, or a smaller size_mean or size_sd";
            return Err(DataError::Setting { key: "clients".to_owned(), found, expected });
        }
        afford(format!("{total} examples of {} numbers", self.features), 8 * (entries + total) as u128)
            .map_err(|source| DataError::Memory { place: "clients".to_owned(), source })?;
        let deviations: Vec<f64> = (1..=self.features).map(|j| sqrt(exp(-1.2 * ln(j as f64)))).collect();
        let mut parts: [Part; 2] = Default::default();
        for number in clients {
            let client = self.client(streams, number);
            let count = client.size as usize;
            let train = ((1.0 - self.test) * client.size).floor() as usize;
            let mut rng = streams.stream(Purpose::Example, number, EXAMPLES);
            for example in 0..count {
                let part = &mut parts[usize::from(example >= train.max(1))];
                let start = part.features.len();
                let pairs = client.centre.iter().zip(&deviations);
                part.features.extend(pairs.map(|(centre, sd)| (centre + sd * normal(&mut rng)) as f32));
                part.labels.push(self.class(&client, &part.features[start..]));
                part.groups.push(number);
            }
        }
        let [train, test] = parts.map(|Part { features, labels, groups }| {
            let rows = labels.len();
            let features = Array2::from_shape_vec((rows, self.features), features).expect("rows of one length");
            Dataset::new(features, Targets::Classes { labels, classes: self.classes }).with_groups(groups)
        });
        Ok(Split { train, test })
    }

    /// The class of the largest score.
    fn class(&self, client: &Drawn, example: &[f32]) -> u8 {
        let mut scores = client.bias.clone();
        for (weights, &feature) in client.weights.chunks_exact(self.classes).zip(example) {
            scores.iter_mut().zip(weights).for_each(|(score, weight)| *score += weight * f64::from(feature));
        }
        let best = (0..self.classes).rev().max_by(|&one, &other| scores[one].total_cmp(&scores[other]));
        best.expect("there are classes") as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(alpha: f64, beta: f64) -> SyntheticClients {
        toml::from_str(&format!("alpha = {alpha:?}\nbeta = {beta:?}\nsize_sd = 0.5")).unwrap()
    }

    fn drawn(settings: &SyntheticClients, seed: u64) -> Split {
        settings.load(&Streams::new(seed), &DataCache::default()).unwrap()
    }

    /// Features of a client lie around its centre with variances j^−1.2; classes follow from them by its own model.
    #[test]
    fn features_have_their_law_and_classes_their_model() {
        let settings = SyntheticClients { clients: 3, least: 4_000, ..settings(0.5, 0.5) };
        let streams = Streams::new(3);
        let split = drawn(&settings, 3);
        for client in 0..3 {
            let known = settings.client(&streams, client);
            let groups = split.train.groups().unwrap();
            let rows: Vec<usize> = (0..groups.len()).filter(|&row| groups[row] == client).collect();
            assert_eq!(rows.len(), (0.9 * known.size).floor() as usize);
            let numbers = split.train.numbers().unwrap();
            let (labels, _) = split.train.classes().unwrap();
            for feature in [0, 1, 9, 59] {
                let values: Vec<f64> = rows.iter().map(|&row| f64::from(numbers.row(row as u32)[feature])).collect();
                let mean = values.iter().sum::<f64>() / values.len() as f64;
                let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64;
                let expected = ((feature + 1) as f64).powf(-1.2);
                // Of 3,600 values the mean is known to sd/60, the variance to 2.4 %; four deviations.
                assert!((mean - known.centre[feature]).abs() < 4.0 * expected.sqrt() / 60.0, "{feature}: {mean}");
                assert!((variance / expected - 1.0).abs() < 0.1, "{feature}: {variance} beside {expected}");
            }
            for &row in rows.iter().take(200) {
                let score = |class: usize| {
                    let products = numbers.row(row as u32).iter().enumerate();
                    let sum: f64 = products.map(|(j, x)| f64::from(*x) * known.weights[j * 10 + class]).sum();
                    sum + known.bias[class]
                };
                let mine = usize::from(labels[row]);
                assert!((0..10).all(|class| score(class) <= score(mine) + 1e-9));
            }
        }
    }

    /// Over 2,000 clients: u and B have their deviations, sizes their log-normal law, W lies around u.
    #[test]
    fn clients_differ_by_alpha_and_beta() {
        let settings = SyntheticClients { features: 200, classes: 2, ..settings(3.0, 0.25) };
        let streams = Streams::new(8);
        let all: Vec<Drawn> = (0..2_000).map(|client| settings.client(&streams, client)).collect();
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let sd = |values: &[f64]| mean(&values.iter().map(|value| value * value).collect::<Vec<_>>()).sqrt();
        let levels: Vec<f64> = all.iter().map(|client| mean(&client.weights)).collect();
        let middles: Vec<f64> = all.iter().map(|client| mean(&client.centre)).collect();
        // A mean of 400 or 200 entries adds a variance of 1/400 or 1/200.
        assert!((sd(&levels) / (9.0_f64 + 0.0025).sqrt() - 1.0).abs() < 0.05, "{}", sd(&levels));
        assert!((sd(&middles) / (0.0625_f64 + 0.005).sqrt() - 1.0).abs() < 0.05, "{}", sd(&middles));
        let logarithms: Vec<f64> = all.iter().map(|client| (client.size - 50.0 + 0.5).ln()).collect();
        assert!((mean(&logarithms) - 4.0).abs() < 0.05, "{}", mean(&logarithms));
        let inner = |client: &Drawn| mean(&client.bias) - mean(&client.weights);
        assert!(sd(&all.iter().map(inner).collect::<Vec<_>>()) < 0.8, "b lies around the same u");
    }

    #[test]
    fn a_client_does_not_depend_on_the_others() {
        let few = drawn(&SyntheticClients { clients: 2, ..settings(1.0, 1.0) }, 4);
        let many = drawn(&SyntheticClients { clients: 5, ..settings(1.0, 1.0) }, 4);
        let rows = few.train.examples();
        assert_eq!(few.train.numbers().unwrap().values, &many.train.numbers().unwrap().values[..rows * 60]);
        assert_eq!(few.train.classes().unwrap().0, &many.train.classes().unwrap().0[..rows]);
        assert_ne!(few, drawn(&SyntheticClients { clients: 2, ..settings(1.0, 1.0) }, 5));
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        for (text, key) in [
            ("alpha = -1.0", "alpha"),
            ("beta = inf", "beta"),
            ("clients = 0", "clients"),
            ("classes = 1", "classes"),
            ("least = 1", "least"),
            ("test = 1.0", "test"),
            ("size_mean = nan", "size_mean"),
        ] {
            let settings: SyntheticClients = toml::from_str(text).unwrap();
            assert_eq!(settings.check().unwrap_err().path, key, "{text}");
        }
        let huge: SyntheticClients = toml::from_str("size_mean = 30.0").unwrap();
        let error = huge.load(&Streams::new(1), &DataCache::default()).unwrap_err().to_string();
        assert!(error.contains("2^28"), "{error}");
    }
}
