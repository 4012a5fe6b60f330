//! Data, partitions and trained models keep their bits: across versions, processors, compilers and optimisation levels.

use fedgenie::algorithm::Contribution;
use fedgenie::algorithm::fold::federated_average;
use fedgenie::data::partition::{
    Partition, dirichlet, exponential_quantile,
    gamma::{GammaSizes, gamma},
};
use fedgenie::data::{Dataset, Split, Targets, synthetic::LinearData};
use fedgenie::id::{ClientId, JobNumber, Round};
use fedgenie::model::{LinearRegression, Model, SoftmaxRegression};
use fedgenie::rng::Streams;
use fedgenie::trainer::{LocalTraining, OptimizerConfig, Trainer, TrainingJob, Update};

fn digest(numbers: &[f32]) -> String {
    let mut hasher = blake3::Hasher::new();
    numbers.iter().for_each(|number| {
        hasher.update(&number.to_le_bytes());
    });
    hasher.finalize().to_hex()[..16].to_string()
}

fn data() -> Split {
    LinearData { examples: 1_400, features: 21, noise: 0.5 }.generate(&Streams::new(11)).unwrap()
}

/// The same features with the class that the target falls into.
fn classified(data: &Dataset) -> Dataset {
    let labels = data.values().unwrap().iter().map(|&target| (target as u8).min(6)).collect();
    Dataset::new(data.features().into_owned(), Targets::Classes { labels, classes: 7 })
}

fn all_examples(partition: &Partition) -> Vec<f32> {
    (0..partition.clients())
        .flat_map(|client| {
            let client = ClientId::from_index(client);
            std::iter::once(partition.size(client) as u32).chain(partition.client(client).into_owned())
        })
        .map(|number| number as f32)
        .collect()
}

/// Three rounds of federated averaging over all clients.
fn learned(model: &dyn Model, data: &Dataset, partition: &Partition) -> Vec<f32> {
    let streams = Streams::new(11);
    let optimizer =
        OptimizerConfig::Sgd { lr: 0.01, momentum: 0.0, nesterov: false, weight_decay: 0.0, dampening: 0.0 };
    let settings = LocalTraining::new(2, 10, &optimizer).unwrap();
    let mut global = vec![0.0; model.parameters()];
    let mut updates = vec![Update::default(); partition.clients()];
    for round in (1..=3).map(Round) {
        let start = global.clone();
        let clients = (0..partition.clients()).map(ClientId::from_index);
        let shares: Vec<_> = clients.map(|client| (client, partition.client(client))).collect();
        let job =
            |(client, examples)| TrainingJob { client, round, number: JobNumber(round.0), start: &start, examples };
        let jobs: Vec<TrainingJob<'_>> = shares.iter().map(|(client, examples)| job((*client, examples))).collect();
        Trainer { model, data, settings: &settings, streams: &streams }.train(&jobs, true, &mut updates);
        let contributions: Vec<Contribution<'_>> = jobs
            .iter()
            .zip(&updates)
            .map(|(job, update)| Contribution {
                client: job.client,
                number: job.number,
                cluster: 0,
                examples: job.examples.len(),
                staleness_weight: 1.0,
                start: job.start,
                parameters: &update.parameters,
                rows: &[],
                loss: None,
                steps: None,
                rate: 0.0,
                weight: None,
            })
            .collect();
        federated_average(&mut global, &contributions);
    }
    global
}

#[test]
fn learning_keeps_its_bits() {
    let data = data();
    let classes = classified(&data.train);
    let streams = Streams::new(11);
    let by_size = gamma(1_200, 30, &GammaSizes::default(), &exponential_quantile, &streams).unwrap();
    let settings = dirichlet::DirichletClasses { alpha: 1.0, minimum: 3 };
    let by_class = dirichlet::dirichlet(&classes, 30, &settings, &exponential_quantile, &streams).unwrap();
    let digests = [
        digest(data.train.numbers().unwrap().values),
        digest(data.train.values().unwrap()),
        digest(&all_examples(&by_size)),
        digest(&all_examples(&by_class)),
        digest(&learned(&LinearRegression::new(21), &data.train, &by_size)),
        digest(&learned(&SoftmaxRegression::new(21, 7), &classes, &by_class)),
    ];
    let expected = [
        "0b13f90de28110bc",
        "ced82b5bb444a07f",
        "e79d3aa051d7a86a",
        "08038b18c4ea89b4",
        "621557c1c730a4a4",
        "fde528c63f125bf7",
    ];
    assert_eq!(digests, expected);
}
