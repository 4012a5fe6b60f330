//! A policy whose needs the task does not meet is refused before the first round, by its name and the task's.

use super::{PROTOCOLS, experiment, run};
use fedgenie::experiment::Threads;
use fedgenie::failure::Failure;
use fedgenie::policy::{DeviationFrom, Policy, PolicyRng, Selection, SelectionRequest, ServerView, Wants};
use fedgenie::state::Stateful;

/// Wants this much and selects the first clients.
#[derive(Clone, Copy, Default, Stateful)]
struct Wanting {
    #[state(skip = "from the test")]
    wants: Wants,
    #[state(skip = "from the test")]
    kinds: &'static [&'static str],
    #[state(skip = "from the test")]
    losses: bool,
}

impl Policy for Wanting {
    fn wants(&self) -> Wants {
        self.wants
    }

    fn probe_kinds(&self) -> &[&'static str] {
        self.kinds
    }

    fn needs_losses(&self) -> bool {
        self.losses
    }

    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        _: &ServerView<'_>,
        _: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        selection.extend(ask.available.list().iter().take(ask.cohort));
        Ok(())
    }
}

const NONE: &str = "[task.none]\n";
const SCRIPTED: &str = "[task.scripted]\nvalues = [0.1, 0.2]\n";
const WITH_LOSSES: &str =
    "[task.scripted]\nvalues = [0.1, 0.2]\nclient_losses = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]\n";
const LINEAR: &str = "[task.linear-regression]\nexamples = 1_400\n";

/// The error of an experiment with such a policy; empty if it can be carried out.
fn error(protocol: &str, task: &str, wanting: Wanting) -> String {
    let mut experiment = experiment(protocol, task);
    experiment.add_policy("wanting", move |_| Ok(Box::new(wanting))).unwrap();
    match experiment.run(&Threads::new(1).unwrap()) {
        Ok(_) => String::new(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn what_the_task_lacks_is_named() {
    let all =
        Wants { loss_rms: true, quality: true, deviation: Some(DeviationFrom::Sent), update: true, ..Wants::default() };
    let rms = Wants { loss_rms: true, ..Wants::default() };
    let of = |wants| Wanting { wants, ..Wanting::default() };
    let kinds: &[&str] = &["entropy"];
    let cases = [
        (NONE, of(all), "wants loss_rms, quality, deviation, the parameters of updates, and this task (none) has"),
        (SCRIPTED, of(rms), "wants loss_rms of updates, and this task (scripted)"),
        (WITH_LOSSES, of(rms), ""),
        (WITH_LOSSES, of(all), "wants quality, deviation, the parameters of updates, and this task (scripted)"),
        (LINEAR, of(all), ""),
        (
            SCRIPTED,
            Wanting { losses: true, ..Wanting::default() },
            "compares losses of clients, and this task (scripted)",
        ),
        (WITH_LOSSES, Wanting { losses: true, ..Wanting::default() }, ""),
        (
            LINEAR,
            Wanting { kinds, ..Wanting::default() },
            "asks clients for \"entropy\", which this task (linear-regression) does not know; its clients answer to nothing",
        ),
    ];
    for (name, protocol) in PROTOCOLS {
        for (task, wanting, expected) in cases {
            let found = error(protocol, task, wanting);
            assert_eq!(found.is_empty(), expected.is_empty(), "{name}, {task}: {found}");
            assert!(found.contains(expected), "{name}: {found}");
            assert!(found.is_empty() || found.contains("policy.wanting"), "{name}: {found}");
        }
    }
}

/// The cloud does not see edge servers' training: the needs of edge servers' policies do not bind its policy.
#[test]
fn a_policy_of_the_cloud_that_needs_losses_is_refused() {
    let protocol =
        "[protocol.hierarchical]\nedges = 3\ncohort = 2\ncloud = { cohort = 2, policy = { power-of-choice = {} } }\n";
    let message = experiment(protocol, LINEAR).run(&Threads::new(1).unwrap()).unwrap_err().to_string();
    assert!(message.contains("the policy of the cloud: power-of-choice compares local losses"), "{message}");
    let protocol = protocol.replace("power-of-choice = {}", "round-robin = {}");
    let wants = Wants { loss_rms: true, quality: true, ..Wants::default() };
    assert_eq!(error(&protocol, LINEAR, Wanting { wants, ..Wanting::default() }), "");
    run(&experiment(&protocol, LINEAR));
}
