//! Three rounds of each algorithm by hand, with two clients that hold a row each; and invariants of folding.

use super::*;
use crate::algorithm::{AlgorithmsConfig, Done, JobMemory, JobRule, Remembered, RowDivisor, Scene};
use crate::data::partition::Partition;
use crate::data::{Dataset, Split, Targets};
use crate::model::LinearRegression;
use crate::task::{Context, Job, Labelled};
use crate::trainer::{LocalTraining, OptimizerConfig};
use crate::training::{Assignment, Rules, train};
use fedgenie_core::halt::NEVER;
use ndarray::Array2;

const SGD: OptimizerConfig =
    OptimizerConfig::Sgd { lr: 0.125, momentum: 0.0, nesterov: false, weight_decay: 0.0, dampening: 0.0 };

/// A learner under some algorithm, with its task.
pub struct Case<'a> {
    pub task: &'a dyn Task,
    pub learner: Learner,
    pub settings: LocalTraining,
    pub streams: Streams,
    pub state: State,
}

impl<'a> Case<'a> {
    pub fn new(task: &'a dyn Task, clients: usize, optimizer: &OptimizerConfig, entries: &str) -> Self {
        let (server, streams) = (ServerConfig::default(), Streams::new(1));
        let scene = Scene {
            optimizer,
            proximal: 0.0,
            has_noise: false,
            weighting: Weighting::Uniform,
            server: &server,
            protocol: "synchronous",
            has_edges: false,
            has_clusters: false,
            weighs_age: false,
            task: "rows",
            has_model: true,
            has_gradient: true,
            rows: RowDivisor::Selected,
            has_losses: true,
            has_hidden: false,
            has_rows: false,
            has_own_combination: false,
        };
        let entries: AlgorithmsConfig = toml::from_str(entries).unwrap();
        let algorithm = Algorithm::new(&entries, &scene).unwrap();
        let aggregation = AggregationConfig { weighting: Some(Weighting::Uniform), ..AggregationConfig::default() };
        let learner = Learner::new(task.layout(), &algorithm, &aggregation, Aging::Relative, clients);
        let mut settings = LocalTraining::new(1, usize::MAX, optimizer).unwrap();
        settings.proximal = learner.algorithm.proximal as f32;
        let state = State::new(task, &learner, 1, 1, &streams);
        Self { task, learner, settings, streams, state }
    }

    /// A round in which some clients train for so many epochs.
    pub fn round(&mut self, clients: &[(ClientId, u32)]) {
        let Self { task, learner, settings, streams, state } = self;
        let round = state.round.next();
        let (start, number) = (state.models[0].clone(), JobNumber(round.0));
        let kept: Vec<Option<Arc<[f32]>>> =
            clients.iter().map(|&(client, _)| state.private.get(client).cloned()).collect();
        let mut jobs = Vec::new();
        for (&(client, epochs), private) in clients.iter().zip(&kept) {
            let (private, epochs) = (private.as_deref(), Some(epochs));
            let job = Job { client, round, number, start: &start, private, epochs, correction: None, contrast: None };
            jobs.push(Assignment { job, memory: state.memory.of(client) });
        }
        let mut updates = vec![Update::default(); jobs.len()];
        let context = Context { settings, streams, loss_rms: false, halt: &NEVER };
        train(
            (*task, Rules { job: learner.algorithm.job.as_deref(), ..Rules::default() }),
            &context,
            &jobs,
            false,
            &mut updates,
        )
        .unwrap();
        let mut arrivals = Vec::new();
        for (&(client, _), update) in clients.iter().zip(&updates) {
            arrivals.push(Arrival {
                client,
                number,
                cluster: 0,
                examples: task.examples(client),
                age: 1.0,
                weight: None,
                rate: Some(f64::from(settings.rate(round))),
                start: &start,
                update,
            });
        }
        let open = state.open(round, *task);
        assert!(state.fold(learner, open, Tier::Server, &arrivals, Remember::Nobody).unwrap().is_new);
    }

    /// The memories of a client and of the server.
    pub fn memory(&self, client: ClientId) -> [Vec<f32>; 2] {
        let of = self.state.memory.of(client);
        [of.client, of.server].map(|numbers| numbers.map_or_else(Vec::new, |numbers| numbers.to_vec()))
    }
}

/// Client 0 holds `x = 1, y = 4`, client 1 `x = 1, y = −4`: with `s = w + b`, both slopes are `2(s − y)`.
fn task() -> Labelled {
    let data = Dataset::new(Array2::ones((2, 1)), Targets::Values(vec![4.0, -4.0]));
    let partition = Partition::deal(vec![0, 1], &[1, 1]);
    Labelled::new(
        Arc::new(Split { train: data.clone(), test: data }),
        Box::new(LinearRegression::new(1)),
        partition,
        None,
    )
}

/// Client 0 makes one step a round, client 1 two. Weight and bias are the same number throughout. Each round: the
/// model, `c_0`, `c_1`, `c`.
fn assert_rounds(entries: &str, rounds: [f64; 3], memories: Option<[[f32; 3]; 3]>) {
    let task = task();
    let mut case = Case::new(&task, 2, &SGD, entries);
    for (index, model) in rounds.into_iter().enumerate() {
        case.round(&[(ClientId(0), 1), (ClientId(1), 2)]);
        assert_eq!(*case.state.models[0], [model as f32; 2], "{entries}, round {}", index + 1);
        let [of_zero, server] = case.memory(ClientId(0));
        let [of_one, _] = case.memory(ClientId(1));
        match memories {
            Some(memories) => assert_eq!([of_zero, of_one, server], memories[index].map(|c| vec![c; 2]), "{entries}"),
            None => assert!([of_zero, of_one, server].iter().all(Vec::is_empty)),
        }
    }
}

#[test]
fn scaffold_by_hand() {
    // Round 2: client 0 steps by −9 + 8 − 1 = −2, client 1 by 7 − 6 − 1 = 0, twice.
    let memories = [[-8.0, 6.0, -1.0], [-9.0, 7.0, -1.0], [-8.5, 7.625, -0.4375]];
    assert_rounds("[scaffold]\n", [-0.25, -0.125, -0.046875], Some(memories));
    // Round 2: −9 + 8 + 0 = −1; 7 − 8 + 0 = −1, then 7.5 − 8 = −0.5.
    let memories = [[-8.0, 8.0, 0.0], [-9.0, 7.0, -1.0], [-8.375, 7.625, -0.375]];
    assert_rounds("[scaffold]\noption = 1\n", [-0.25, -0.09375, -0.03515625], Some(memories));
}

#[test]
fn averages_by_hand() {
    // Round 1: changes 1 and −1.5; FedNova: τ = 1.5, 1.5 (1/2 · 1/1 − 1/2 · 1.5/2).
    assert_rounds("", [-0.25, -0.34375, -0.37890625], None);
    assert_rounds("[fedavg]\n", [-0.25, -0.34375, -0.37890625], None);
    assert_rounds("[fednova]\n", [0.1875, 0.251953125, 0.27410888671875], None);
    // Client 1's second step: by 4 − 1, 3.625 − 0.90625, 3.47265625 − 0.8681640625.
    assert_rounds("[fedprox]\nmu = 1.0\n", [-0.1875, -0.263671875, -0.29461669921875], None);
    // Nothing of two changes is trimmed.
    assert_rounds("[trimmed-mean]\nfraction = 0.4\n", [-0.25, -0.34375, -0.37890625], None);
}

/// Dynamic regularisation (D. A. E. Acar et al., "Federated learning based on dynamic regularization", ICLR 2021) with
/// α = 1: a rule whose server moves by its memory, and that does not send it.
#[derive(Debug)]
struct Dynamic;

impl JobRule for Dynamic {
    fn remembers(&self) -> Option<Remembered> {
        Some(Remembered { server: Some("h"), client: "g" })
    }

    fn correct(&self, layout: &Layout, memory: &JobMemory, correction: &mut Vec<f32>) -> bool {
        correction.clear();
        correction.extend((0..layout.len()).map(|index| -memory.client.as_ref().map_or(0.0, |client| client[index])));
        true
    }

    fn leave(&self, done: &Done<'_>, left: &mut Vec<f32>) {
        let before = |index: usize| done.memory.client.as_ref().map_or(0.0, |client| client[index]);
        let moved = done.update.parameters.iter().zip(done.start).map(|(after, start)| after - start);
        left.extend(moved.enumerate().map(|(index, change)| before(index) - change));
    }

    fn gather(&self, server: &mut [f64], before: Option<&[f32]>, after: &[f32], clients: usize) {
        for (index, (sum, &after)) in server.iter_mut().zip(after).enumerate() {
            *sum += f64::from(after - before.map_or(0.0, |before| before[index])) / clients as f64;
        }
    }

    fn shift(&self) -> f64 {
        -1.0
    }
}

/// `x ← x + mean(δ_k) − h`, with the `h` of the same round.
#[test]
fn a_server_may_move_by_its_memory() {
    let task = task();
    let mut case = Case::new(&task, 2, &SGD, "[fedprox]\nmu = 1.0\n");
    case.learner.algorithm.job = Some(Arc::new(Dynamic));
    case.state = State::new(&task, &case.learner, 1, 1, &case.streams);
    // Changes 1 and −1.375, then 1.0625 and −0.880859375.
    for (model, memories) in
        [(-0.375_f64, [-1.0_f64, 1.375, 0.1875]), (-0.380859375, [-2.0625, 2.255859375, 0.0966796875])]
    {
        case.round(&[(ClientId(0), 1), (ClientId(1), 2)]);
        assert_eq!(*case.state.models[0], [model as f32; 2]);
        let [[of_zero, server], [of_one, _]] = [0, 1].map(|client| case.memory(ClientId(client)));
        assert_eq!([of_zero, of_one, server], memories.map(|number| vec![number as f32; 2]));
    }
    assert_eq!(case.learner.algorithm.beside([2; 2]), [0; 2]);
}

/// Corrections and another combination compose: the first round of FedNova, since corrections are still 0, with the
/// memory of SCAFFOLD.
#[test]
fn a_job_and_a_combination_compose() {
    let task = task();
    let mut case = Case::new(&task, 2, &SGD, "[scaffold]\n[fednova]\n");
    case.round(&[(ClientId(0), 1), (ClientId(1), 2)]);
    assert_eq!(*case.state.models[0], [0.1875; 2]);
    assert_eq!(case.memory(ClientId(0)), [vec![-8.0; 2], vec![-1.0; 2]]);
}

/// A client whose update is not aggregated keeps its memory, and `c` stays the mean of all.
#[test]
fn memory_changes_with_aggregated_updates_alone() {
    let task = task();
    let mut case = Case::new(&task, 2, &SGD, "[scaffold]\n");
    case.round(&[(ClientId(0), 1)]);
    assert_eq!(case.memory(ClientId(1)), [vec![], vec![-4.0; 2]]);
    case.round(&[(ClientId(1), 3)]);
    let [of_zero, server] = case.memory(ClientId(0));
    let [of_one, _] = case.memory(ClientId(1));
    assert_eq!(of_zero, [-8.0; 2]);
    assert_eq!(server, [(of_zero[0] + of_one[0]) / 2.0; 2]);
}

/// A clone that is folded leaves its original as it was.
#[test]
fn a_fold_on_a_clone_changes_nothing_else() {
    let task = task();
    let mut case = Case::new(&task, 2, &SGD, "[scaffold]\n");
    case.round(&[(ClientId(0), 1), (ClientId(1), 2)]);
    let before = case.state.clone();
    let (model, memory) = (before.models[0].clone(), case.memory(ClientId(0)));
    case.round(&[(ClientId(0), 1), (ClientId(1), 2)]);
    assert_ne!(*case.state.models[0], *model);
    case.state = before;
    assert_eq!(*case.state.models[0], *model);
    assert_eq!(case.memory(ClientId(0)), memory);
}
