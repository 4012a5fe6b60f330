//! Seeds of an experiment: how many, which, or until when.
//!
//! # Definition
//! `seeds = 5` are seeds 1 to 5, `seeds = [3, 14, 15]` these. All random numbers of a run belong to its seed.
//!
//! `seeds = { until = "decided", … }` adds seeds until the first answer of the experiment is decided: which policy is
//! best by its main quantity, at the first point of a sweep; of one policy, which point. Policies that are shown the
//! truth are no candidates. At each of the `looks`, which are numbers of seeds, the best is compared with each other,
//! by the differences of common seeds. An other is *told apart* if the interval of its difference excludes 0, and
//! *equal* if it lies within ± `margin`; the answer is decided when each other is one of the two. After the last
//! look, at `at_most` seeds, it ends in any case. Where runs cannot be ranked, as by the time to a target that none
//! reaches, nothing is decided.
//!
//! Looking often, and at several others, gives chance more to find. At look `k` the share
//! `α_k = 0.05 (n_k − n_{k−1})/n_K` of intervals may miss, with `n_k` seeds then and none before the first look,
//! divided by the number of others. The sum over looks and others is 5 %. Whichever candidate is best in truth, each of
//! the others has its share of error against it, half on either side. So with 97.5 % at least, at no look the best is
//! told to be worse than another, and with 95 % it is not told equal to one either that is worse by more than the
//! margin.
//! This holds as far as each interval has its level: exactly for normal differences. That two of the others are told
//! apart, which are both as good, is not covered.
//!
//! With `race`, a policy that is told apart from the best gets no further seeds; `dropped` in the scenario of a result
//! folder says after how many, and `so_far` how many seeds the others have. Margin and race are about the quantity that
//! decides; other answers have intervals that allow for the looks as well.
//!
//! # Source
//! K. K. G. Lan, D. L. DeMets, "Discrete sequential boundaries for clinical trials", Biometrika 70 (1983), spending of
//! error; K. Kim, D. L. DeMets, "Design and analysis of group sequential tests based on the type I error spending rate
//! function", Biometrika 74 (1987), the rate that is linear in the number of observations.
//!
//! # Deviations from the source
//! Boundaries are those of the sum of errors over looks (Bonferroni), not of the joint law of the looks, which is not
//! known for few differences of unknown variance: they are a little wider, and valid for Student's intervals.

use fedgenie_core::config::Complaint;
use fedgenie_core::limits;
use fedgenie_core::math::statistics::Miss;
use schemars::JsonSchema;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{self, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// The source of this file, which opens with the definition of `seeds`.
pub const DOCUMENTED: &str = include_str!("seeds.rs");

/// The first looks that are made where none are named; later ones have twice the seeds of the one before.
const FIRST_LOOKS: [u32; 4] = [5, 8, 12, 20];

/// Fewest seeds of a look.
const LEAST: u32 = 3;

/// `seeds = 20` (seeds 1 to 20), `seeds = [1, 2, 3]`, or `seeds = { until = "decided", at_most = 100 }`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Seeds {
    /// Seeds 1 to n.
    Count(u32),
    /// These seeds.
    List(Vec<u64>),
    /// Seeds from 1 on, until the first answer is decided.
    Until(UntilDecided),
}

/// `seeds = { until = "decided", at_most = 100, margin = 0.005 }`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct UntilDecided {
    /// What ends it.
    pub until: End,
    /// Most seeds.
    pub at_most: u32,
    /// The largest difference that counts as none, in the unit of the quantity; without it nothing is told equal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub margin: Option<f64>,
    /// Whether policies that are surely worse get no further seeds.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub race: bool,
    /// Numbers of seeds after which the runs are looked at, ascending; 5, 8, 12, 20 and doubling without it, up to
    /// `at_most`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub looks: Vec<u32>,
    /// Seeds so far, written by the program into the scenario of a result folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub so_far: Option<u32>,
    /// Policies that were dropped, and their seeds, written by the program.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub dropped: BTreeMap<String, u32>,
}

/// Reads a number, a list or a table, each with the faults of its own.
impl<'de> Deserialize<'de> for Seeds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Seeds;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(
                    "a number of seeds of at least 1, a list of seeds such as [1, 2, 3], or { until = \"decided\", at_most \
                     = 100 }",
                )
            }

            fn visit_i64<E: de::Error>(self, count: i64) -> Result<Seeds, E> {
                u32::try_from(count).map(Seeds::Count).map_err(|_| E::invalid_value(Unexpected::Signed(count), &self))
            }

            fn visit_u64<E: de::Error>(self, count: u64) -> Result<Seeds, E> {
                u32::try_from(count).map(Seeds::Count).map_err(|_| E::invalid_value(Unexpected::Unsigned(count), &self))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Seeds, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(Seeds::List)
            }

            fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<Seeds, A::Error> {
                UntilDecided::deserialize(MapAccessDeserializer::new(table)).map(Seeds::Until)
            }
        }

        deserializer.deserialize_any(Reader)
    }
}

/// `until = "decided"`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum End {
    /// The best is told apart from each other, or equal to it.
    Decided,
}

impl Seeds {
    /// The seeds, in their order; those so far.
    pub fn list(&self) -> Vec<u64> {
        match self {
            Self::Count(count) => (1..=u64::from(*count)).collect(),
            Self::List(seeds) => seeds.clone(),
            Self::Until(until) => (1..=u64::from(until.seeds())).collect(),
        }
    }

    /// Until when seeds are added.
    pub const fn until(&self) -> Option<&UntilDecided> {
        match self {
            Self::Until(until) => Some(until),
            Self::Count(_) | Self::List(_) => None,
        }
    }

    /// The plan of looks of a resolved scenario.
    pub fn until_of(scenario: &toml::Table) -> Option<UntilDecided> {
        let seeds = Self::deserialize(scenario.get("seeds")?.clone()).ok()?;
        seeds.until().cloned()
    }

    /// The one way of writing them down that equal seeds share: as a number, where they are 1 to n; with looks.
    #[must_use]
    pub fn canonical(self) -> Self {
        if let Self::Until(until) = self {
            return Self::Until(until.resolved());
        }
        let count = self.list().len() as u32;
        if self.list() == Self::Count(count).list() && count > 0 { Self::Count(count) } else { self }
    }

    /// Checks their number, and that each is there once.
    ///
    /// # Errors
    /// A complaint with a path from the scenario's root.
    pub(super) fn check(&self) -> Result<(), Complaint> {
        let complain = |path: &str, message: String| Err(Complaint::new(path, message));
        let found = match self {
            Self::Count(count) => *count as usize,
            Self::List(seeds) => seeds.len(),
            Self::Until(until) => until.at_most as usize,
        };
        if !(1..=limits::SEEDS).contains(&found) {
            let most = limits::SEEDS;
            return complain("seeds", format!("found {found} seeds; expected between 1 and {most}"));
        }
        if let Self::Until(until) = self {
            return until.check().map_err(|complaint| complaint.below("seeds"));
        }
        let mut sorted = self.list();
        sorted.sort_unstable();
        match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => complain("seeds", format!("seed {} is listed twice", pair[0])),
            None if sorted.iter().any(|&seed| i64::try_from(seed).is_err()) => {
                complain("seeds", "a seed is at most 9223372036854775807".to_owned())
            }
            None => Ok(()),
        }
    }
}

impl UntilDecided {
    /// At most so many seeds, without a margin.
    pub const fn most(at_most: u32) -> Self {
        Self {
            until: End::Decided,
            at_most,
            margin: None,
            race: false,
            looks: Vec::new(),
            so_far: None,
            dropped: BTreeMap::new(),
        }
    }

    /// These looks, of which the last has the most seeds; at the first of them.
    ///
    /// # Errors
    /// A complaint with a path below `looks`.
    pub fn of_looks(looks: &[u32]) -> Result<Self, Complaint> {
        let plan = Self { looks: looks.to_vec(), ..Self::most(looks.last().copied().unwrap_or(0)) };
        plan.check()?;
        Ok(plan.resolved())
    }

    fn check(&self) -> Result<(), Complaint> {
        let complain = |path: &str, message: String| Err(Complaint::new(path, message));
        if self.at_most < LEAST {
            let message =
                format!("found {}; expected at least {LEAST}, the fewest seeds of a comparison", self.at_most);
            return complain("at_most", message);
        }
        if let Some(margin) = self.margin.filter(|margin| !(margin.is_finite() && *margin > 0.0)) {
            return complain("margin", format!("found {margin}; expected a number above 0"));
        }
        if let Some(&first) = self.looks.first().filter(|&&first| first < LEAST) {
            let message = format!("found {first}; expected at least {LEAST} seeds, the fewest of a comparison");
            return complain("looks", message);
        }
        if let Some(pair) = self.looks.windows(2).find(|pair| pair[0] >= pair[1]) {
            return complain("looks", format!("found {} after {}; expected ascending numbers", pair[1], pair[0]));
        }
        match self.looks.last().filter(|&&last| last > self.at_most) {
            Some(last) => complain("looks", format!("found {last}; expected at most at_most, {}", self.at_most)),
            None => Ok(()),
        }
    }

    /// With all looks and the number of seeds so far.
    fn resolved(mut self) -> Self {
        if self.looks.is_empty() {
            let doubled = std::iter::successors(FIRST_LOOKS.last().copied(), |look| look.checked_mul(2)).skip(1);
            self.looks = FIRST_LOOKS.into_iter().chain(doubled).take_while(|look| *look < self.at_most).collect();
        }
        if self.looks.last() != Some(&self.at_most) {
            self.looks.push(self.at_most);
        }
        self.so_far.get_or_insert(self.looks[0]);
        self
    }

    /// The number of seeds so far.
    pub fn seeds(&self) -> u32 {
        self.so_far.or_else(|| self.looks.first().copied()).unwrap_or(FIRST_LOOKS[0]).min(self.at_most)
    }

    /// The same plan from its first look on.
    #[must_use]
    pub fn anew(&self) -> Self {
        Self { so_far: self.looks.first().copied(), dropped: BTreeMap::new(), ..self.clone() }
    }

    /// Whether it is the same plan, however far it has come.
    pub fn is_plan_of(&self, other: &Self) -> bool {
        self.anew() == other.anew()
    }

    /// The number of the look after so many seeds, from 1; that of the next one if there is none.
    pub fn look_of(&self, seeds: u32) -> usize {
        (self.looks.partition_point(|&look| look < seeds) + 1).min(self.looks.len())
    }

    /// The share of intervals that may miss at the look after so many seeds, with so many others.
    pub fn miss(&self, seeds: u32, others: usize) -> Miss {
        let look = self.look_of(seeds);
        let before = look.checked_sub(2).map_or(0, |before| self.looks[before]);
        let spent = f64::from(self.looks[look - 1] - before) / f64::from(self.at_most);
        Miss::of(Miss::USUAL.share() * spent / others.max(1) as f64)
    }

    /// The seeds of the next look; `None` after the last.
    pub fn next(&self) -> Option<u32> {
        self.looks.iter().copied().find(|&look| look > self.seeds())
    }

    /// Whether a policy has this seed.
    pub fn has(&self, label: &str, seed: u64) -> bool {
        self.dropped.get(label).is_none_or(|&last| seed <= u64::from(last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_go_up_to_the_last() {
        let of = |at_most| UntilDecided::most(at_most).resolved().looks;
        assert_eq!(of(100), [5, 8, 12, 20, 40, 80, 100]);
        assert_eq!(of(20), [5, 8, 12, 20]);
        assert_eq!(of(21), [5, 8, 12, 20, 21]);
        assert_eq!(of(3), [3]);
        let named = UntilDecided { looks: vec![4, 9], ..UntilDecided::most(10) };
        assert_eq!((named.check(), named.resolved().looks), (Ok(()), vec![4, 9, 10]));
    }

    #[test]
    fn errors_of_all_looks_and_others_sum_to_five_per_cent() {
        let plan = UntilDecided::most(100).resolved();
        for others in [1, 4] {
            let spent: f64 = plan.looks.iter().map(|&seeds| plan.miss(seeds, others).share() * others as f64).sum();
            assert!((spent - 0.05).abs() < 1e-14, "{spent}");
        }
        assert!((plan.miss(12, 2).share() - 0.05 * 4.0 / 100.0 / 2.0).abs() < 1e-16);
        assert_eq!((plan.look_of(5), plan.look_of(12), plan.look_of(100)), (1, 3, 7));
    }

    #[test]
    fn a_plan_is_the_same_however_far_it_has_come() {
        let plan = UntilDecided::most(40).resolved();
        let later = UntilDecided { so_far: Some(12), dropped: [("a".to_owned(), 8)].into(), ..plan.clone() };
        assert!(plan.is_plan_of(&later) && later.anew() == plan);
        assert!(!plan.is_plan_of(&UntilDecided { margin: Some(0.1), ..plan.clone() }));
        assert_eq!((later.next(), UntilDecided { so_far: Some(40), ..plan.clone() }.next()), (Some(20), None));
        assert!(later.has("a", 8) && !later.has("a", 9) && later.has("b", 12));
    }

    #[test]
    fn plans_that_cannot_be_are_refused() {
        let refused = |change: &dyn Fn(&mut UntilDecided), key: &str| {
            let mut plan = UntilDecided::most(40);
            change(&mut plan);
            assert_eq!(plan.check().unwrap_err().path, key);
        };
        refused(&|plan| plan.at_most = 2, "at_most");
        refused(&|plan| plan.margin = Some(0.0), "margin");
        refused(&|plan| plan.margin = Some(f64::NAN), "margin");
        refused(&|plan| plan.looks = vec![2, 8], "looks");
        refused(&|plan| plan.looks = vec![8, 8], "looks");
        refused(&|plan| plan.looks = vec![8, 41], "looks");
    }
}
