//! Overlapping shares: each client draws its examples from the whole pool, apart from all others.
//!
//! # Definition
//! Client `k` has `n_k` of the `N` training examples: `size` of the partition, or else the `data_size` that the
//! population declares. With `alpha` it has a mixture of classes `p ~ Dirichlet(α, …, α)` of its own, without one the
//! pool's. The class of each of its examples is drawn by the mixture, from the classes of which it does not yet have
//! all examples; if the mixture gives these nothing, in proportion to what is left of them. Its examples of a class are
//! a uniformly random subset of the class. So no client has an example twice, and clients share examples: there may be
//! any number of them. In expectation two examples of a client are of one class with probability (α + 1)/(C·α + 1) in a
//! pool of C equal classes.
//!
//! # Inputs
//! `size`, or without it `data_size` of `[population]` or of its groups.
//!
//! # Deviations from the source
//! None: there is no published one. The mixture is that of `dirichlet` turned round: there a class is spread over
//! clients, here a client over classes.
//!
//! # Cost
//! Nobody keeps a client's examples: they are drawn again whenever they are asked for, in O(n_k·C + N/64) time and at
//! most N/8 bytes. An idle client takes no memory with `size`, and 4 bytes with sizes of the population. Of more than
//! 1,000 clients, statements about classes are of the first 1,000.
//!
//! # Determinism
//! Stream (Partition, client, 14): with `alpha` a Gamma(α) variate for each class, ascending (its logarithm, by G.
//! Marsaglia and W. W. Tsang, "A simple method for generating gamma variables", ACM Transactions on Mathematical
//! Software 26(3), 2000: of shape α + 1, then a uniform to the power 1/α); the class of each example; then the members
//! of each class, ascending, by Floyd's algorithm. A client's examples are ordered by class, and ascend within it.

use super::{Partition, PartitionError, PartitionSettings, check_positive, check_shape};
use crate::data::Dataset;
use fedgenie_core::config::Complaint;
use fedgenie_core::id::ClientId;
use fedgenie_core::math::float::{exp, ln, sqrt};
use fedgenie_core::math::special::normal_quantile;
use fedgenie_core::rng::{Purpose, StreamRng, Streams};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Index of the streams.
const STREAM: u32 = 14;

/// Settings of the partition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Overlapping {
    /// Examples of each client, at least 1: a number; or, as `data_size` of the population, a law, a list or a table.
    /// The population's `data_size` if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "number_or_table")]
    pub size: Option<u32>,
    /// Concentration of clients' mixtures of classes, from 0.001 to 100000; small is skewed. The pool's mixture if left
    /// out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alpha: Option<f64>,
}

/// A table is read as the population's `data_size`, before the partition is.
fn number_or_table(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "anyOf": [{ "type": "integer", "minimum": 1 }, { "type": "object" }] })
}

impl PartitionSettings for Overlapping {
    fn check(&self) -> Result<(), Complaint> {
        self.alpha.map_or(Ok(()), |alpha| check_shape("alpha", alpha))
    }

    fn is_declared(&self) -> bool {
        self.size.is_none()
    }

    fn deal(
        &self,
        data: &Dataset,
        clients: usize,
        sizes: &[u32],
        streams: &Streams,
    ) -> Result<Partition, PartitionError> {
        let sizes = self.size.map_or_else(|| Sizes::Each(sizes.into()), |size| Sizes::All { size, clients });
        Drawn::new(data, sizes, self.alpha, streams.clone()).map(Partition::drawn)
    }
}

/// How many examples clients have.
#[derive(Clone, Debug, PartialEq)]
enum Sizes {
    /// Each of `clients` the same number.
    All { size: u32, clients: usize },
    /// Each its own.
    Each(Arc<[u32]>),
}

/// Shares that are drawn whenever they are asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawn {
    sizes: Sizes,
    alpha: Option<f64>,
    /// The rows of each class, ascending; all in one where classes do not count.
    pool: Arc<[Vec<u32>]>,
    streams: Streams,
    /// Whose share client `k` has, if not its own.
    sources: Option<Arc<[ClientId]>>,
}

impl Drawn {
    fn new(data: &Dataset, sizes: Sizes, alpha: Option<f64>, streams: Streams) -> Result<Self, PartitionError> {
        let examples = data.examples();
        let (clients, largest) = match &sizes {
            Sizes::All { size, clients } => (*clients, *size),
            Sizes::Each(sizes) => (sizes.len(), sizes.iter().copied().max().unwrap_or(0)),
        };
        if clients == 0 {
            return Err(PartitionError::NoClients);
        }
        let least = if matches!(sizes, Sizes::All { .. }) { 1 } else { 0 };
        if !(least..=examples).contains(&(largest as usize)) {
            return Err(PartitionError::OutOfRange { key: "size", found: largest as usize, least, most: examples });
        }
        let rows = 0..u32::try_from(examples).expect("examples are numbered in 32 bits");
        let pool = match alpha {
            None => vec![rows.collect()],
            Some(alpha) => {
                check_positive("alpha", alpha)?;
                let (labels, classes) =
                    data.classes().ok_or(PartitionError::NoClasses { kind: "an overlapping partition with alpha" })?;
                super::by_class(rows.collect(), labels, classes)
            }
        };
        Ok(Self { sizes, alpha, pool: pool.into(), streams, sources: None })
    }

    /// Number of clients.
    pub fn clients(&self) -> usize {
        match (&self.sources, &self.sizes) {
            (Some(sources), _) => sources.len(),
            (None, Sizes::All { clients, .. }) => *clients,
            (None, Sizes::Each(sizes)) => sizes.len(),
        }
    }

    /// Whose share a client has.
    fn source(&self, client: ClientId) -> ClientId {
        self.sources.as_ref().map_or(client, |sources| sources[client.index()])
    }

    /// Number of examples of a client.
    pub fn size(&self, client: ClientId) -> usize {
        match &self.sizes {
            Sizes::All { size, .. } => *size as usize,
            Sizes::Each(sizes) => sizes[self.source(client).index()] as usize,
        }
    }

    /// The examples of a client.
    pub fn client(&self, client: ClientId) -> Vec<u32> {
        let mut rng = self.streams.stream(Purpose::Partition, self.source(client).0, STREAM);
        let size = self.size(client);
        let mut examples = Vec::with_capacity(size);
        for (members, count) in self.pool.iter().zip(self.counts(size, &mut rng)) {
            subset(members, count, &mut rng, &mut examples);
        }
        examples
    }

    /// How many examples of each class a client has.
    fn counts(&self, size: usize, rng: &mut StreamRng) -> Vec<usize> {
        let Some(alpha) = self.alpha else { return vec![size] };
        let mut weights = mixture(self.pool.len(), alpha, rng);
        let left = |counts: &[usize]| -> Vec<usize> {
            self.pool.iter().zip(counts).map(|(members, count)| members.len() - count).collect()
        };
        let mut counts = vec![0; self.pool.len()];
        let mut sum = close(&mut weights, &left(&counts));
        for _ in 0..size {
            let class = pick(&weights, sum, rng);
            counts[class] += 1;
            if counts[class] == self.pool[class].len() {
                sum = close(&mut weights, &left(&counts));
            }
        }
        counts
    }

    /// Number of examples that clients draw from.
    pub fn pool_len(&self) -> usize {
        self.pool.iter().map(Vec::len).sum()
    }

    /// The shares of other clients.
    pub fn rearranged(&self, sources: &[ClientId]) -> Self {
        Self { sources: Some(sources.iter().map(|&client| self.source(client)).collect()), ..self.clone() }
    }

    /// With row `rows[i]` in the place of row `i`.
    pub fn of_rows(&self, rows: &[u32]) -> Self {
        let of_class = |members: &Vec<u32>| members.iter().map(|&row| rows[row as usize]).collect();
        Self { pool: self.pool.iter().map(of_class).collect(), ..self.clone() }
    }
}

/// Weights of a symmetric Dirichlet law, the largest of which is 1: from logarithms, so that those of a small shape do
/// not all vanish.
fn mixture(classes: usize, alpha: f64, rng: &mut StreamRng) -> Vec<f64> {
    let mut weights: Vec<f64> = (0..classes).map(|_| ln_gamma_variate(alpha, rng)).collect();
    let most = weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    weights.iter_mut().for_each(|weight| *weight = exp(*weight - most));
    weights
}

/// The logarithm of a Gamma(α) variate.
fn ln_gamma_variate(alpha: f64, rng: &mut StreamRng) -> f64 {
    let d = alpha + 2.0 / 3.0;
    let c = 1.0 / sqrt(9.0 * d);
    loop {
        let x = normal_quantile(rng.uniform());
        let v = 1.0 + c * x;
        if v <= 0.0 {
            continue;
        }
        let cube = v * v * v;
        if ln(rng.uniform()) < 0.5 * x * x + d * (1.0 - cube + ln(cube)) {
            return ln(d * cube) + ln(rng.uniform()) / alpha;
        }
    }
}

/// Takes the weight of classes of which nothing is left. Where the others have none, they have it by what is left.
/// Returns the sum of the weights.
fn close(weights: &mut [f64], left: &[usize]) -> f64 {
    for (weight, &left) in weights.iter_mut().zip(left) {
        if left == 0 {
            *weight = 0.0;
        }
    }
    if weights.iter().all(|&weight| weight == 0.0) {
        weights.iter_mut().zip(left).for_each(|(weight, &left)| *weight = left as f64);
    }
    weights.iter().sum()
}

/// A class, by weights of which one is positive.
fn pick(weights: &[f64], sum: f64, rng: &mut StreamRng) -> usize {
    let mut place = rng.uniform() * sum;
    let mut last = 0;
    for (class, &weight) in weights.iter().enumerate() {
        if weight > 0.0 {
            last = class;
            if place < weight {
                return class;
            }
            place -= weight;
        }
    }
    // Rounding may leave a rest behind the last class.
    last
}

/// Subsets up to this size are looked through, larger ones marked in a set of bits.
const FEW: usize = 48;

/// Adds a uniformly random subset, ascending: Floyd's algorithm (J. Bentley, B. Floyd, Communications of the ACM 30,
/// 1987).
fn subset(members: &[u32], count: usize, rng: &mut StreamRng, examples: &mut Vec<u32>) {
    let begin = examples.len();
    let lasts = members.len() - count..members.len();
    if count <= FEW {
        for last in lasts {
            let found = rng.below(last as u64 + 1) as u32;
            let is_there = examples[begin..].contains(&found);
            examples.push(if is_there { last as u32 } else { found });
        }
        examples[begin..].sort_unstable();
    } else {
        let mut chosen = vec![0_u64; members.len().div_ceil(64)];
        for last in lasts {
            let found = rng.below(last as u64 + 1) as usize;
            let is_there = chosen[found / 64] >> (found % 64) & 1 == 1;
            let place = if is_there { last } else { found };
            chosen[place / 64] |= 1 << (place % 64);
        }
        for (word, mut bits) in chosen.into_iter().enumerate() {
            while bits != 0 {
                examples.push(64 * word as u32 + bits.trailing_zeros());
                bits &= bits - 1;
            }
        }
    }
    examples[begin..].iter_mut().for_each(|place| *place = members[*place as usize]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::Array2;

    /// `each` examples of each of four classes, in turn.
    fn data(each: usize) -> Dataset {
        let rows = 4 * each;
        let labels = (0..rows).map(|row| (row % 4) as u8).collect();
        Dataset::new(Array2::zeros((rows, 1)), crate::data::Targets::Classes { labels, classes: 4 })
    }

    fn drawn(each: usize, settings: &Overlapping, clients: usize, sizes: &[u32]) -> Partition {
        settings.deal(&data(each), clients, sizes, &Streams::new(5)).unwrap()
    }

    const SKEWED: Overlapping = Overlapping { size: Some(12), alpha: Some(0.3) };

    #[test]
    fn no_client_has_an_example_twice_and_all_are_drawn_apart() {
        let (few, many) = (drawn(50, &SKEWED, 3, &[]), drawn(50, &SKEWED, 2_000, &[]));
        for client in (0..2_000).map(ClientId) {
            let mut examples = many.client(client).into_owned();
            assert_eq!(examples, *many.client(client));
            examples.sort_unstable();
            examples.dedup();
            assert!(examples.len() == 12 && many.size(client) == 12 && examples[11] < 200);
        }
        assert_eq!(few.client(ClientId(2)), many.client(ClientId(2)));
        assert_ne!(many.client(ClientId(2)), many.client(ClientId(3)));
        assert_eq!((many.clients(), many.examples()), (2_000, 24_000));
    }

    /// Two examples are of one class with probability (α + 1)/(C·α + 1), and each row is as likely as any other.
    #[test]
    fn mixtures_are_those_of_a_dirichlet_law() {
        for alpha in [0.1_f64, 1.0, 30.0] {
            let settings = Overlapping { size: Some(6), alpha: Some(alpha) };
            let clients = 40_000;
            let found = drawn(500, &settings, clients, &[]);
            let (mut same, mut of_row) = (0_usize, vec![0_u32; 2_000]);
            for client in (0..clients).map(ClientId::from_index) {
                let examples = found.client(client);
                examples.iter().for_each(|&row| of_row[row as usize] += 1);
                let mut counts = [0_usize; 4];
                examples.iter().for_each(|row| counts[*row as usize % 4] += 1);
                same += counts.iter().map(|count| count * count.saturating_sub(1)).sum::<usize>();
            }
            let share = same as f64 / (30 * clients) as f64;
            let expected = (alpha + 1.0) / (4.0 * alpha + 1.0);
            assert!((share - expected).abs() < 0.006, "{alpha}: {share} and {expected}");
            // 120 expected of each row; by class its variance is larger.
            let mean = of_row.iter().sum::<u32>() as f64 / 2_000.0;
            assert!(mean == 120.0 && of_row.iter().all(|&count| (50..200).contains(&count)), "{alpha}: {of_row:?}");
        }
    }

    #[test]
    fn subsets_are_as_likely_as_any_other_both_ways() {
        let members: Vec<u32> = (0..60).map(|member| 3 * member).collect();
        for count in [FEW, FEW + 1] {
            let mut rng = Streams::new(2).stream(Purpose::Example, 0, 0);
            let mut times = [0_u32; 60];
            for _ in 0..4_000 {
                let mut found = vec![7];
                subset(&members, count, &mut rng, &mut found);
                assert!(found[0] == 7 && found.len() == count + 1 && found[1..].is_sorted_by(|one, next| one < next));
                found[1..].iter().for_each(|member| times[*member as usize / 3] += 1);
            }
            let expected = 4_000 * count as u32 / 60;
            assert!(times.iter().all(|&times| times.abs_diff(expected) < 120), "{times:?}");
        }
    }

    /// Mean and variance of a variate's logarithm are digamma(α) and trigamma(α).
    #[test]
    fn logarithms_of_gamma_variates_have_their_moments() {
        let mut rng = Streams::new(3).stream(Purpose::Example, 0, 0);
        for (alpha, mean, variance) in
            [(0.3, -3.502_524_2, 12.245_36), (1.0, -0.577_215_7, 1.644_934), (20.0, 2.970_524, 0.051_270_8)]
        {
            let drawn: Vec<f64> = (0..200_000).map(|_| ln_gamma_variate(alpha, &mut rng)).collect();
            let found = drawn.iter().sum::<f64>() / 2e5;
            let spread = drawn.iter().map(|x| (x - found) * (x - found)).sum::<f64>() / 2e5;
            assert!((found - mean).abs() < 5.0 * sqrt(variance / 2e5), "{alpha}: {found}");
            assert!((spread / variance - 1.0).abs() < 0.03, "{alpha}: {spread}");
        }
    }

    #[test]
    fn a_class_is_not_drawn_beyond_its_end() {
        let settings = Overlapping { size: Some(11), alpha: Some(0.001) };
        let found = drawn(3, &settings, 100, &[]);
        for client in (0..100).map(ClientId) {
            let mut examples = found.client(client).into_owned();
            examples.sort_unstable();
            examples.dedup();
            assert_eq!(examples.len(), 11);
        }
        let all = Overlapping { size: Some(12), alpha: Some(0.3) };
        let mut everything = drawn(3, &all, 1, &[]).client(ClientId(0)).into_owned();
        everything.sort_unstable();
        assert_eq!(everything, (0..12).collect::<Vec<u32>>());
    }

    #[test]
    fn sizes_are_those_of_the_population_without_size() {
        let settings = Overlapping { size: None, alpha: None };
        assert!(settings.is_declared() && !SKEWED.is_declared());
        let found = drawn(10, &settings, 3, &[0, 7, 40]);
        assert_eq!([0, 1, 2].map(|client| found.client(ClientId(client)).len()), [0, 7, 40]);
        let others = found.rearranged(&[ClientId(2), ClientId(1), ClientId(1), ClientId(0)]);
        assert_eq!((others.clients(), others.examples()), (4, 54));
        assert_eq!(others.client(ClientId(2)), found.client(ClientId(1)));
        let again = others.rearranged(&[ClientId(2)]);
        assert_eq!(again.client(ClientId(0)), found.client(ClientId(1)));
        let doubled: Vec<u32> = (0..40).map(|row| 2 * row).collect();
        let rows = found.clone().of_rows(&doubled);
        let expected: Vec<u32> = found.client(ClientId(1)).iter().map(|row| 2 * row).collect();
        assert_eq!(*rows.client(ClientId(1)), expected);
    }

    #[test]
    fn what_cannot_be_drawn_is_refused() {
        let deal = |settings: Overlapping, clients, sizes: &[u32]| {
            settings.deal(&data(3), clients, sizes, &Streams::new(1)).unwrap_err().to_string()
        };
        let size = |size| Overlapping { size: Some(size), alpha: None };
        assert_eq!(deal(size(13), 2, &[]), "size = 13: has to be 1 to 12");
        assert_eq!(deal(size(0), 2, &[]), "size = 0: has to be 1 to 12");
        assert_eq!(deal(Overlapping::default(), 2, &[1, 13]), "size = 13: has to be 0 to 12");
        assert!(deal(size(1), 0, &[]).contains("no clients"));
        let check = Overlapping { size: None, alpha: Some(0.0) }.check();
        assert!(check.unwrap_err().to_string().contains("0.001"), "alpha is checked");
    }
}
