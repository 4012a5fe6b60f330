//! The quantities by which policies are compared.

use super::{Arm, Quantity, Study, regret_words};
use fedgenie_core::metric::{Better, Metric, MetricId, Place, Statistic};
use fedgenie_experiment::experiment::{CONVERGENCE, is_loss, is_told_who_was_asked};
use std::collections::BTreeSet;

impl Study<'_> {
    /// The quantities by which policies are compared, the most important first; those that are zero everywhere are left
    /// out.
    pub fn quantities(&self) -> Vec<Quantity> {
        let mut all = if self.limits_traffic() { self.best_metrics() } else { Vec::new() };
        all.extend(self.final_metrics());
        if self.limits_traffic() {
            all.extend(self.metrics_at_bytes());
        }
        let regret =
            |name: &str| Quantity::new(format!("regret.{name}"), regret_words(name), None, Some(Better::Lower));
        all.extend(self.meters().into_iter().map(|name| regret(name).main()));
        all.extend(self.until_targets());
        if self.arms.iter().flat_map(Arm::all_runs).any(|run| run.converged.is_some()) {
            all.extend(until_convergence());
        }
        all.extend(self.of_whole_runs());
        let is_there = |key: &str| {
            self.arms.iter().flat_map(Arm::all_runs).any(|run| run.number(key).is_some_and(|value| value != 0.0))
        };
        // That no run reaches a target is worth a column.
        all.retain(|quantity| quantity.key.starts_with("time_to.") || is_there(&quantity.key));
        all.sort_by_key(|quantity| !quantity.is_main);
        all
    }

    fn final_metrics(&self) -> Vec<Quantity> {
        let (declared, targets) = (self.measured(), self.targets());
        let of = |id: MetricId| {
            // Over the last evaluated rounds, and of models that are trained further, as at the end.
            let plain = id.plain();
            let known = declared.iter().find(|metric| metric.id == plain && plain.over != Some(Statistic::Sd));
            let better = known.map(|metric| metric.better);
            let is_aimed_at = targets.iter().any(|reached| id.is_called(&reached.target.metric));
            let of_servers = |metric: &Metric| metric.main && plain == metric.id.over(Place::Servers, Statistic::Mean);
            let is_main = is_aimed_at
                || id.place == Place::Test && is_loss(id)
                || known.is_some_and(|metric| metric.main)
                || declared.iter().any(of_servers);
            let words = format!("final {}", id.words());
            Quantity { is_main, ..Quantity::new(format!("final.{id}"), words, None, better) }
        };
        self.metrics().into_iter().map(of).collect()
    }

    fn best_metrics(&self) -> Vec<Quantity> {
        let best = |metric: Metric| {
            let words = format!("best {}", metric.id.words());
            Quantity::new(format!("best.{}", metric.id), words, None, Some(metric.better)).main()
        };
        self.measured().into_iter().filter(|metric| metric.main).map(best).collect()
    }

    fn metrics_at_bytes(&self) -> Vec<Quantity> {
        let amounts: BTreeSet<u64> =
            self.arms.iter().flat_map(Arm::all_runs).flat_map(|run| run.at_bytes.keys().copied()).collect();
        let at = |metric: &Metric, bytes: u64| {
            let words = format!("{} at {bytes} B", metric.id.words());
            Quantity::new(format!("at_bytes.{bytes}.{}", metric.id), words, None, Some(metric.better))
        };
        let main: Vec<Metric> = self.measured().into_iter().filter(|metric| metric.main).collect();
        main.iter().flat_map(|metric| amounts.iter().map(move |&bytes| at(metric, bytes))).collect()
    }

    fn until_targets(&self) -> Vec<Quantity> {
        let of = |name: String| {
            let to = |what: &str, words: &str, unit| {
                let (key, words) = (format!("{what}.{name}"), format!("{words} {name}"));
                Quantity::new(key, words, Some(unit), Some(Better::Lower))
            };
            let bytes = to("bytes_to", "traffic to", "B");
            let bytes = if self.limits_traffic() { bytes.main() } else { bytes };
            let words = format!("share of runs that reach {name}");
            let share = Quantity::new(format!("reached.{name}"), words, None, Some(Better::Higher));
            let joules = self.has_batteries().then(|| to("joules_to", "energy of jobs to", "J"));
            [to("time_to", "virtual time to", "s").main(), bytes].into_iter().chain(joules).chain([share.main()])
        };
        self.targets().into_iter().flat_map(|reached| of(reached.name())).collect()
    }

    fn of_whole_runs(&self) -> Vec<Quantity> {
        // Less time is better for the same number of rounds; where time ends the run, it has no direction.
        let rounds: BTreeSet<u32> = self.arms.iter().flat_map(Arm::all_runs).map(|run| run.rounds).collect();
        let time = (rounds.len() == 1).then_some(Better::Lower);
        let lower = Some(Better::Lower);
        let mut all = vec![
            Quantity::new("virtual_time_s", "virtual time of the run", Some("s"), time).main(),
            Quantity::new("rounds", "rounds", None, None),
            Quantity::new("wasted_compute_s", "wasted computing", Some("s"), lower),
            Quantity::new("wasted_down_bytes", "wasted download", Some("B"), lower),
            Quantity::new("wasted_up_bytes", "wasted upload", Some("B"), lower),
        ];
        if self.has_batteries() {
            all.push(Quantity::new("energy.emptied", "times that phones ran empty", None, lower).main());
            all.push(Quantity::new("energy.wasted_j", "energy of unused jobs", Some("J"), lower));
            for (key, words) in [("receive", "downloading"), ("compute", "computing"), ("send", "uploading")] {
                let words = format!("energy of {words}");
                all.push(Quantity::new(format!("energy.{key}_j"), words, Some("J"), None));
            }
        }
        if self.results.iter().any(|results| is_told_who_was_asked(&results.summary)) {
            all.push(Quantity::new("asked_mean", "clients asked at once", None, None));
            all.push(Quantity::new("arrived_mean", "updates that arrived of them", None, None));
        }
        all.push(Quantity::new("unique_clients", "clients selected at least once", None, None));
        all.push(Quantity::new("jain", "Jain's index of selections", None, None));
        all.push(Quantity::new("gini", "Gini index of selections", None, None));
        all
    }
}

fn until_convergence() -> [Quantity; 4] {
    let to = |what: &str, words: &str, unit| {
        let (key, words) = (format!("{what}.{CONVERGENCE}"), format!("{words} convergence"));
        Quantity::new(key, words, Some(unit), Some(Better::Lower))
    };
    let words = "share of runs that converge";
    [
        to("time_to", "virtual time to", "s").main(),
        to("bytes_to", "traffic to", "B"),
        to("compute_to", "computing to", "s"),
        Quantity::new(format!("reached.{CONVERGENCE}"), words, None, None).main(),
    ]
}
