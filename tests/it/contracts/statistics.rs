//! Statistics of updates with quality and deviation, for a policy that wants them all.

use super::{PROTOCOLS, experiment, run};
use fedgenie::failure::Failure;
use fedgenie::id::Turn;
use fedgenie::policy::{DeviationFrom, Feedback, Policy, PolicyRng, Selection, SelectionRequest, ServerView, Wants};
use fedgenie::state::Stateful;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// The feedback about an update.
#[derive(Clone, Debug)]
struct Told {
    run: usize,
    turn: Turn,
    examples: usize,
    loss: f64,
    loss_rms: f64,
    quality: f64,
    deviation: f64,
    update: Vec<f32>,
}

/// Selects the clients with the most valuable last updates: quality gained, plus examples times losses, less deviation.
#[derive(Stateful)]
struct Curious {
    worth: Vec<f64>,
    #[state(skip = "read by the test")]
    told: Arc<Mutex<Vec<Told>>>,
    /// Which policy of all runs it is: runs are carried out side by side.
    #[state(skip = "from the test")]
    run: usize,
}

impl Policy for Curious {
    fn wants(&self) -> Wants {
        Wants {
            loss_rms: true,
            quality: true,
            deviation: Some(DeviationFrom::Aggregated),
            update: true,
            ..Wants::default()
        }
    }

    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        _: &ServerView<'_>,
        rng: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        selection.extend(ask.available.list());
        rng.policy.shuffle(selection);
        selection.sort_by(|one, other| self.worth[other.index()].total_cmp(&self.worth[one.index()]));
        selection.truncate(ask.cohort);
        Ok(())
    }

    fn observe(&mut self, feedback: &Feedback<'_>) -> Result<(), Failure> {
        let Feedback::Trained(report) = feedback else { return Ok(()) };
        let told = Told {
            run: self.run,
            turn: report.turn,
            examples: report.examples,
            loss: report.loss,
            loss_rms: report.loss_rms.unwrap(),
            quality: report.quality.unwrap(),
            deviation: report.deviation.unwrap(),
            update: report.update.unwrap().to_vec(),
        };
        self.worth[report.client.index()] = told.quality + 0.01 * told.loss_rms - told.deviation;
        self.told.lock().unwrap().push(told);
        Ok(())
    }
}

const TASK: &str = "[task.linear-regression]\nexamples = 1_400\n[evaluate]\nevery = 3\n";

#[test]
fn a_policy_is_told_what_it_wants_under_every_protocol() {
    for (name, protocol) in PROTOCOLS {
        let mut experiment = experiment(protocol, TASK);
        let told = Arc::new(Mutex::new(Vec::new()));
        let kept = told.clone();
        let runs = AtomicUsize::new(0);
        experiment
            .add_policy("curious", move |context| {
                let run = runs.fetch_add(1, Ordering::Relaxed);
                Ok(Box::new(Curious { worth: vec![f64::INFINITY; context.clients], told: kept.clone(), run }))
            })
            .unwrap();
        let summary = run(&experiment);
        assert!(summary.runs.iter().all(|run| run.final_metrics["test_loss"] < 1.0), "{name}");
        let mut told = told.lock().unwrap();
        told.sort_by_key(|told| told.run);
        assert!(told.len() > 40, "{name}: {}", told.len());
        for update in told.iter() {
            assert_eq!((update.examples, update.update.len()), (100, 11));
            assert!(update.loss_rms >= update.loss && update.loss > 0.0, "{name}: {update:?}");
            assert!(update.quality < 0.0 && update.deviation >= 0.0, "a loss is the better the smaller it is");
        }
        if name == "synchronous" {
            deviations_are_those_from_the_mean_of_all(&told);
        }
    }
}

/// Clients have equally much data, so that the new model is the plain mean of the updates of a turn.
fn deviations_are_those_from_the_mean_of_all(told: &[Told]) {
    for turn in told.chunk_by(|one, next| (one.run, one.turn) == (next.run, next.turn)) {
        assert_eq!(turn.len(), 3);
        let mean = |place: usize| turn.iter().map(|told| f64::from(told.update[place])).sum::<f64>() / 3.0;
        for told in turn {
            let differences = (0..11).map(|place| (f64::from(told.update[place]) - mean(place)).abs());
            let expected = differences.sum::<f64>() / 11.0;
            assert!((told.deviation - expected).abs() < 1e-7, "{}, by hand {expected}", told.deviation);
        }
    }
}
