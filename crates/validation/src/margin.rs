//! Margins of equivalence: the largest difference of a number that counts as none, declared before any run.
//!
//! # Definition
//! | number | margin |
//! |---|---|
//! | `final.…`, `best.…`, `converged.…`, `at_bytes.N.…` of hit ratio, NDCG, recall, precision, F1, AUC | 0.01 |
//! | of accuracy | 0.005 |
//! | of RMSE and MAE | 0.005 |
//! | times and bytes | 2 % of what they are compared with |
//!
//! Other numbers, such as losses and regrets, have none, and a check can name its own: `margin = 0.02`, in the number's
//! unit; of a ratio, the part by which it may differ from 1.

/// A margin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Margin {
    /// So much, in the number's unit.
    Of(f64),
    /// Such a part of the number that it is compared with.
    Share(f64),
}

/// The measures that have 0.01; more may follow their names, such as a cutoff.
const OF_RANKINGS: [&str; 6] = ["hr", "ndcg", "recall", "precision", "f1", "auc"];

/// Beginnings of the numbers that are metrics.
const OF_METRICS: [&str; 3] = ["final.", "best.", "converged."];

/// Times and bytes, and spending until targets.
const SPENT: [&str; 11] = [
    "up_bytes",
    "down_bytes",
    "virtual_time_s",
    "compute_s",
    "probe_compute_s",
    "time_to.",
    "compute_to.",
    "probe_compute_to.",
    "bytes_to.",
    "wasted_compute_s",
    "energy.",
];

/// The margin of a number of runs; `None` if it has none.
pub fn margin_of(value: &str) -> Option<Margin> {
    if SPENT.iter().any(|spent| value.starts_with(spent)) {
        return Some(Margin::Share(0.02));
    }
    let within = || value.strip_prefix("at_bytes.")?.split_once('.').map(|(_, metric)| metric);
    let metric = OF_METRICS.iter().find_map(|beginning| value.strip_prefix(beginning)).or_else(within)?;
    let words: Vec<&str> = metric.split('_').collect();
    let has = |names: &[&str]| words.iter().any(|word| names.contains(word));
    if has(&OF_RANKINGS) {
        Some(Margin::Of(0.01))
    } else if has(&["accuracy", "rmse", "mae"]) {
        Some(Margin::Of(0.005))
    } else {
        None
    }
}

impl Margin {
    /// The differences that count as none, to something with this mean.
    pub fn around_zero(self, mean: f64) -> [f64; 2] {
        let most = match self {
            Self::Of(most) => most,
            Self::Share(share) => share * mean.abs(),
        };
        [-most, most]
    }

    /// The ratios that count as none; `None` of a margin in the number's unit.
    pub fn around_one(self) -> Option<[f64; 2]> {
        match self {
            Self::Of(_) => None,
            Self::Share(share) => Some([1.0 / (1.0 + share), 1.0 + share]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn margins_are_those_of_the_table() {
        let of = |value: &str| margin_of(value);
        assert_eq!(of("final.test_hr_20"), Some(Margin::Of(0.01)));
        assert_eq!(of("converged.test_ndcg_20"), Some(Margin::Of(0.01)));
        assert_eq!(of("final.test_participant_hr_20"), Some(Margin::Of(0.01)));
        assert_eq!(of("best.server_accuracy_mean_last"), Some(Margin::Of(0.005)));
        assert_eq!(of("final.test_rmse"), Some(Margin::Of(0.005)));
        assert_eq!(of("time_to.test_auc >= 0.82"), Some(Margin::Share(0.02)));
        assert_eq!(of("at_bytes.5000000.test_rmse"), Some(Margin::Of(0.005)));
        assert_eq!(of("virtual_time_s"), Some(Margin::Share(0.02)));
        for without in ["final.test_loss", "regret.mean", "unique_share", "final.threshold"] {
            assert_eq!(of(without), None, "{without}");
        }
        assert_eq!(Margin::Share(0.02).around_zero(-50.0), [-1.0, 1.0]);
        assert_eq!(Margin::Of(0.01).around_one(), None);
    }
}
