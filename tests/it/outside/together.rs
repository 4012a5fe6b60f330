//! A task that trains the jobs of a round in one call learns the same as one that trains them one by one.

use super::{PROTOCOLS, Settings, Way, experiment};
use fedgenie::experiment::{Summary, Threads};

#[test]
fn jobs_in_one_call_give_the_same_bits() {
    let algorithms = [
        "",
        "[algorithm.scaffold]\noption = 1\n[aggregation]\nweighting = \"uniform\"\n",
        "[algorithm.scaffold]\noption = 2\n[aggregation]\nweighting = \"uniform\"\n",
        "[regret]\ncounterfactual = true\nmeters = []\nutility = \"loss-drop\"\n",
    ];
    for (of, protocol) in PROTOCOLS {
        for more in algorithms {
            // Which updates count does not depend on the other clients.
            if more.contains("[regret]") && !["synchronous", "buffered", "hierarchical"].contains(&of) {
                continue;
            }
            let run = |way, threads| {
                let experiment = experiment(protocol, more, Settings { way, ..Settings::default() });
                experiment.run(&Threads::new(threads).unwrap()).unwrap()
            };
            let of_runs = |summary: Summary| -> Vec<_> {
                let regrets = |run: &fedgenie::experiment::RunSummary| run.regret.hindsight.map(f64::to_bits);
                summary.runs.iter().map(|run| (run.digest.clone(), regrets(run))).collect()
            };
            let one_by_one = of_runs(run(Way::OneByOne, 1));
            assert_eq!(one_by_one.len(), 2);
            for threads in [1, 3] {
                assert_eq!(of_runs(run(Way::Together, threads)), one_by_one, "{of}, {more}");
            }
            assert_eq!(of_runs(run(Way::OneByOne, 3)), one_by_one, "{of}, {more}");
        }
    }
}
