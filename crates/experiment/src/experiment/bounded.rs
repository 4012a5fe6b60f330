//! The regret of a run beside the bound that a theorem states of it.

use super::number;
use fedgenie_core::failure::Failure;
use fedgenie_core::id::Round;
use fedgenie_core::record::Regret;
use fedgenie_core::state::Stateful;
use fedgenie_simulator::policy::RegretBound;
use serde::{Deserialize, Serialize};

/// How near the regret of a run came to its bound, at any round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BoundedRegret {
    /// What states the bound.
    pub name: String,
    /// The meter that it bounds.
    pub meter: String,
    /// The largest ratio of regret and bound over all rounds for which there is a bound; `None` if it is infinite,
    /// because a bound is zero and the regret is not.
    pub ratio: Option<f64>,
    /// The round of that ratio.
    pub round: u32,
    /// The first round whose regret exceeds its bound, if one does.
    pub exceeded: Option<u32>,
}

/// Compares the regret after each round.
#[derive(Debug, Default, Stateful)]
pub(super) struct Bounded {
    #[state(skip = "from the policy and its world")]
    bound: Option<RegretBound>,
    /// The largest ratio so far, and its round.
    largest: Option<(f64, u32)>,
    /// The first round that exceeds the bound; its regret and its bound.
    exceeded: Option<(u32, [f64; 2])>,
}

impl Bounded {
    /// Takes the bound, which is not saved with the rest.
    pub fn take(&mut self, bound: Option<RegretBound>) {
        self.bound = bound;
    }

    /// Compares, and returns the bound of the round.
    ///
    /// # Errors
    /// If the bound cannot be told, or is no bound.
    pub fn observe(&mut self, round: Round, regret: &Regret) -> Result<Option<f64>, Failure> {
        let Some(bound) = &self.bound else { return Ok(None) };
        let (Some(at), Some(found)) = ((bound.at)(round)?, bound.meter.of(regret)) else { return Ok(None) };
        if at.is_nan() || at < 0.0 {
            return Err(format!("found {at}; expected a number of at least 0").into());
        }
        let exceeds = found > at;
        let ratio = match at > 0.0 {
            true => found / at,
            false if exceeds => f64::INFINITY,
            false => 0.0,
        };
        if self.largest.is_none_or(|(largest, _)| ratio > largest) {
            self.largest = Some((ratio, round.0));
        }
        if exceeds && self.exceeded.is_none() {
            self.exceeded = Some((round.0, [found, at]));
        }
        Ok(Some(at).filter(|at| at.is_finite()))
    }

    /// What was found in the end; `None` if there was a bound for no round.
    pub fn found(&self) -> Option<BoundedRegret> {
        let (bound, (ratio, round)) = (self.bound.as_ref()?, self.largest?);
        Some(BoundedRegret {
            name: bound.name.clone(),
            meter: bound.meter.name().to_owned(),
            ratio: Some(ratio).filter(|ratio| ratio.is_finite()),
            round,
            exceeded: self.exceeded.map(|(round, _)| round),
        })
    }

    /// A warning, if the regret exceeds its bound: the theorem, its premises or the policy are wrong.
    pub fn warning(&self) -> Option<String> {
        let (bound, (round, [found, at])) = (self.bound.as_ref()?, self.exceeded?);
        let RegretBound { meter, name, .. } = bound;
        Some(format!(
            "the regret ({}) exceeds the bound of {name} from round {round} on: {} > {}",
            meter.name(),
            number(found),
            number(at)
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedgenie_core::oracle::regret::Meter;

    fn bounded(at: fn(f64) -> Option<f64>) -> Bounded {
        let at = Box::new(move |round: Round| Ok(at(f64::from(round.0))));
        Bounded { bound: Some(RegretBound { meter: Meter::Mean, name: "a law".to_owned(), at }), ..Bounded::default() }
    }

    fn observe(bounded: &mut Bounded, regrets: &[f64]) -> Vec<Option<f64>> {
        let regrets = (1..).map(Round).zip(regrets);
        let of = |(round, &mean)| bounded.observe(round, &Regret { mean: Some(mean), ..Regret::default() }).unwrap();
        regrets.map(of).collect()
    }

    #[test]
    fn the_largest_ratio_is_that_of_any_round() {
        let mut below = bounded(|n| Some(2.0 * n));
        assert_eq!(observe(&mut below, &[1.0, 3.0, 3.0]), [Some(2.0), Some(4.0), Some(6.0)]);
        let found = below.found().unwrap();
        assert_eq!((found.ratio, found.round, found.exceeded), (Some(0.75), 2, None));
        assert_eq!((found.name.as_str(), found.meter.as_str(), below.warning()), ("a law", "mean", None));
        let mut above = bounded(|n| (n > 1.5).then_some(n));
        assert_eq!(observe(&mut above, &[9.0, 2.0, 3.5, 8.0]), [None, Some(2.0), Some(3.0), Some(4.0)]);
        let found = above.found().unwrap();
        assert_eq!((found.ratio, found.round, found.exceeded), (Some(2.0), 4, Some(3)));
        let warning = above.warning().unwrap();
        assert_eq!(warning, "the regret (mean) exceeds the bound of a law from round 3 on: 3.500 > 3");
    }

    #[test]
    fn a_bound_may_be_zero_or_nothing_and_no_other_number() {
        let mut zero = bounded(|n| Some(n - 1.0));
        observe(&mut zero, &[0.0, 0.5]);
        assert_eq!(zero.found().unwrap().ratio, Some(0.5));
        let mut exceeded = bounded(|n| Some(n - 1.0));
        observe(&mut exceeded, &[0.5]);
        assert_eq!((exceeded.found().unwrap().ratio, exceeded.found().unwrap().exceeded), (None, Some(1)));
        let mut none = bounded(|_| None);
        assert_eq!((observe(&mut none, &[1.0]), none.found()), (vec![None], None));
        let mut unlimited = bounded(|_| Some(f64::INFINITY));
        assert_eq!((observe(&mut unlimited, &[1.0]), unlimited.found().unwrap().ratio), (vec![None], Some(0.0)));
        for wrong in [f64::NAN, -1.0] {
            let at = Box::new(move |_| Ok(Some(wrong)));
            let bound = Some(RegretBound { meter: Meter::Mean, name: String::new(), at });
            let refused = Bounded { bound, ..Bounded::default() }
                .observe(Round(1), &Regret { mean: Some(0.0), ..Regret::default() })
                .unwrap_err();
            assert!(refused.to_string().contains("expected a number of at least 0"), "{refused}");
        }
    }
}
