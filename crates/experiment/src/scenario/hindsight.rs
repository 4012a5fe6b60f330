//! The keys of `[regret]` that belong to its `counterfactual`.

use super::RegretConfig;
use fedgenie_core::config::Complaint;
use fedgenie_core::oracle::hindsight::HindsightPlan;
use fedgenie_core::oracle::utility::UtilityConfig;
use fedgenie_core::time::Span;

/// κ if it is left out.
const KAPPA: f64 = 0.5;

impl RegretConfig {
    /// Writes the defaults out.
    pub(super) fn resolve(&mut self) {
        if self.counterfactual {
            self.utility.get_or_insert_default();
            let prices_time = self.utility.as_ref().is_none_or(UtilityConfig::prices_time);
            self.kappa.get_or_insert(if prices_time { KAPPA } else { 0.0 });
            self.size.get_or_insert_default();
            self.every.get_or_insert(1);
        }
    }

    /// The plan of the meter, if the scenario asks for it.
    pub(super) fn hindsight(&self) -> Option<HindsightPlan> {
        self.counterfactual.then(|| HindsightPlan {
            utility: self.utility.clone().unwrap_or_default(),
            kappa: self.kappa.unwrap_or(KAPPA),
            t_semi: self.t_semi.map(|unit| unit.0),
            size: self.size.unwrap_or_default(),
            every: self.every.unwrap_or(1),
        })
    }

    /// Checks the keys that belong to the regret in hindsight; the path of a complaint is below `regret`.
    pub(super) fn check_hindsight(&self) -> Result<(), Complaint> {
        let refuse = |key: &str, message: &str| Err(Complaint::new(key, message));
        if !self.counterfactual {
            let given = [
                ("utility", self.utility.is_some()),
                ("kappa", self.kappa.is_some()),
                ("t_semi", self.t_semi.is_some()),
                ("size", self.size.is_some()),
                ("every", self.every.is_some()),
            ];
            return match given.iter().find(|(_, is_given)| *is_given) {
                Some((key, _)) => refuse(key, "is for counterfactual = true, which is not given"),
                None => Ok(()),
            };
        }
        if self.every == Some(0) {
            return refuse("every", "found 0; expected a number of rounds of at least 1");
        }
        if let Some(kappa) = self.kappa
            && !(kappa.is_finite() && kappa >= 0.0)
        {
            return refuse("kappa", &format!("found {kappa}; expected a number of at least 0"));
        }
        if self.t_semi.is_some_and(|unit| unit.0 == Span::ZERO) {
            return refuse("t_semi", "found 0; expected a positive duration");
        }
        let Some(utility) = &self.utility else { return Ok(()) };
        if utility.is_of_slope() && self.kappa.is_some_and(|kappa| kappa > 0.0) {
            return refuse(
                "kappa",
                "influence is a mean over a set, in which time has no price; write 0, or take the key out",
            );
        }
        utility.check().map_err(|complaint| complaint.below(utility.kind()).below("utility"))
    }
}
