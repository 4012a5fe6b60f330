//! Laws whose moments are infinite, so that means over runs say little.

use super::{Group, Population};
use fedgenie_core::id::ClientId;
use fedgenie_core::law::Law;
use fedgenie_core::record::Phase;

impl Population {
    /// One sentence for each group and phase with a law of infinite mean or variance, with the heaviest tail of its
    /// clients.
    pub fn heavy_tails(&self) -> Vec<String> {
        let of_group = |group: &Group| -> Vec<String> {
            Phase::ALL.into_iter().filter_map(|phase| self.heavy_tail(group, phase)).collect()
        };
        self.groups.iter().flat_map(of_group).collect()
    }

    fn heavy_tail(&self, group: &Group, phase: Phase) -> Option<String> {
        const FINITE_VARIANCE: f64 = 2.0;
        let index = |client: usize| self.laws[self.law_of[client][phase.index()] as usize].tail_index();
        let clients = (group.first.index()..group.first.index() + group.count).map(|client| (client, index(client)));
        let (client, index) = clients.min_by(|one, other| one.1.total_cmp(&other.1))?;
        let who = match &group.name {
            Some(name) => format!("group {name:?}, {}", ClientId::from_index(client)),
            None => ClientId::from_index(client).to_string(),
        };
        let moment = if index <= 1.0 { "mean" } else { "variance" };
        (index <= FINITE_VARIANCE).then(|| {
            format!(
                "{who}, {phase}: the law has an infinite {moment} (its tail falls as x^-{index}), so that means of times over \
                 seeds settle slowly or never"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::population::{PopulationConfig, Work};
    use fedgenie_core::rng::Streams;
    use fedgenie_learning::trainer::{LocalTraining, OptimizerConfig};

    fn tails(scenario: &str) -> Vec<String> {
        let config: PopulationConfig = toml::from_str(scenario).unwrap();
        let sgd = OptimizerConfig::Sgd { lr: 1.0, momentum: 0.0, nesterov: false, weight_decay: 0.0, dampening: 0.0 };
        let training = LocalTraining::new(1, 32, &sgd).unwrap();
        let work = Work { data_sizes: None, training: &training, payload_bytes: 0 };
        config.build(&work, &Streams::new(1)).unwrap_or_else(|error| panic!("{}", error.message)).heavy_tails()
    }

    /// Two of three clients have a Pareto law; the second of these has no mean. A mixture is as heavy as its heaviest
    /// part; shapes above 2, and laws with finite moments, cause no sentence.
    #[test]
    fn heavy_tails_are_named() {
        let found = tails(
            "[[group]]\nname = \"phones\"\ncount = 3\nlatency.download = { constant = \"1 s\" }\n\
             latency.compute = { pareto = { shape = { each = [2.5, 1.0, 1.5] }, minimum = \"1 s\" } }\n\
             latency.upload = { weibull = { shape = 0.3, scale = \"1 s\" } }\n\
             [[group]]\ncount = 2\nlatency.download = { constant = \"1 s\" }\n\
             latency.compute = { lognormal = { median = \"1 s\", sigma = 2 } }\n\
             latency.upload = { mixture = [{ weight = 1, constant = \"1 s\" }, \
             { weight = 9, pareto = { shape = 2, minimum = \"1 s\" } }] }\n",
        );
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("group \"phones\", client 1, compute: the law has an infinite mean"), "{found:?}");
        assert!(found[1].starts_with("client 3, upload: the law has an infinite variance"), "{found:?}");
        assert!(found[1].contains("x^-2)"), "{found:?}");
    }
}
