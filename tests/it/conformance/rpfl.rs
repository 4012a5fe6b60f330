//! RPFL asked directly, nine rounds of three clients, its updates numbers on a line.

use super::NoDevices;
use fedgenie::id::{ClientId, Round, Turn};
use fedgenie::policy::{
    Bounds, BuildContext, Feedback, Policy, PolicyConfig, PolicyRng, Selection, SelectionRequest, ServerView,
    TrainingReport,
};
use fedgenie::rng::{Purpose, Streams};
use fedgenie::time::{Span, VirtualTime};

/// The updates of clients 0, 1, …; 7 has no examples.
const CHANGES: [[f32; 1]; 8] = [[0.0], [1.0], [10.0], [12.0], [0.0], [11.0], [0.0], [0.0]];
const SIZES: [u32; 8] = [1, 1, 1, 1, 1, 1, 1, 0];

struct Asked {
    policy: Box<dyn Policy>,
    turn: u32,
    counts: [u32; 8],
}

impl Asked {
    fn new() -> Self {
        let config: PolicyConfig = serde_json::from_str(r#"{ "rpfl": { "components": 1, "clusters": 2 } }"#).unwrap();
        let context = BuildContext {
            seed: 1,
            clients: 8,
            among: 8,
            cohort: 3,
            take: 3,
            per_model: 3,
            bounds: Bounds::of_size(3),
            data_sizes: &SIZES,
            in_rounds: true,
            trains: true,
            probes: &[],
            budget: None,
            least: 1,
            has_empty_rounds: false,
            devices: &NoDevices,
            metrics: &[],
            evaluates_every_round: true,
        };
        Self { policy: config.build(&context).unwrap(), turn: 0, counts: [0; 8] }
    }

    /// Plays a round in which these clients are there, and the updates of all but the `late` arrive.
    fn round(&mut self, there: &[u32], late: &[u32]) -> Vec<u32> {
        self.turn += 1;
        let there: Vec<ClientId> = there.iter().copied().map(ClientId).collect();
        let (turn, round) = (Turn(self.turn), Round(self.turn));
        let ask = SelectionRequest {
            turn,
            round,
            now: VirtualTime::START,
            cohort: 3,
            most: 3,
            take: 3,
            available: there.as_slice().into(),
        };
        let view = ServerView {
            data_sizes: &SIZES,
            shares: &[0.125; 8],
            counts: &self.counts,
            probed: &[],
            answers: &[],
            trained: &[],
            gains: None,
            genie: None,
            foreseen: None,
            layout: None,
            bounds: None,
            forecaster: None,
            batteries: None,
        };
        let [mut policy, mut solver] =
            [Purpose::Policy, Purpose::Solver].map(|purpose| Streams::new(1).stream(purpose, 0, self.turn));
        let mut selection = Selection::default();
        self.policy
            .select(&ask, &view, &mut PolicyRng { policy: &mut policy, solver: &mut solver }, &mut selection)
            .unwrap();
        for &client in &selection {
            self.counts[client.index()] += 1;
            if late.contains(&client.0) {
                continue;
            }
            self.policy
                .observe(&Feedback::Trained(TrainingReport {
                    client,
                    turn,
                    round,
                    staleness: 0,
                    latency: Span(1),
                    examples: 1,
                    loss: 1.0,
                    loss_rms: None,
                    quality: None,
                    deviation: None,
                    update: None,
                    norm: None,
                    change: Some(&CHANGES[client.index()]),
                }))
                .unwrap();
        }
        selection.iter().map(|client| client.0).collect()
    }
}

#[test]
fn never_selected_then_clusters_of_those_heard_then_longest_unselected() {
    let mut asked = Asked::new();
    let but_six = [0, 1, 2, 3, 4, 5, 7];
    // Never selected first, by id; 4 and 5 are late.
    assert_eq!(asked.round(&but_six, &[]), [0, 1, 2]);
    assert_eq!(asked.round(&but_six, &[4, 5]), [3, 4, 5]);
    // Heard are 0, 1, 10 and 12 with mean 5.75: 12 is farthest, then 0. Clusters {2, 3} and {0, 1}, a seat each; the
    // third goes to the first, as both remainders are 2 of 4. 4 and 5 wait.
    assert_eq!(asked.round(&but_six, &[]), [2, 3, 0]);
    assert_eq!(asked.round(&but_six, &[]), [2, 3, 1], "1 was selected once, 0 twice");
    // The seats of 2 and 3, who are away, go to others that were heard, and what is left to 4 and 5, both selected in
    // round 2; then 5 has waited longer.
    assert_eq!(asked.round(&[0, 1, 4, 5, 7], &[4]), [0, 1, 4]);
    assert_eq!(asked.round(&[0, 1, 4, 5, 7], &[]), [0, 1, 5]);
    // 5 was heard: the mean of 0, 1, 10, 12, 11 is 6.8, so that 0 is the first centre and 12 the second. {0, 1} has a
    // seat, {2, 3, 5} two (remainders 2 and 3 of 5). Selected so far: 0 and 1 four times, 2 and 3 three times, 5 twice.
    assert_eq!(asked.round(&but_six, &[]), [0, 5, 2]);
    // 6 comes, and leaves a seat to each cluster: 1 (four times, 0 five), and 3 (three times, as 5; 2 four).
    assert_eq!(asked.round(&[0, 1, 2, 3, 4, 5, 6, 7], &[6]), [6, 1, 3]);
    // No heard client is available: 4 was selected in round 5, 6 in round 8. 7 has nothing to train on.
    assert_eq!(asked.round(&[4, 6, 7], &[4, 6, 7]), [4, 6, 7]);
    assert_eq!(asked.counts, [5, 5, 4, 4, 3, 3, 2, 1]);
}
