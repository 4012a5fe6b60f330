//! Local training of networks: the cases that `validation/compare/pytorch_lenet.py` times in PyTorch, and evaluation.

use crate::measure::{Seconds, descent, jobs, measure};
use fedgenie::data::{Dataset, Shape, Targets};
use fedgenie::lanes::Path;
use fedgenie::model::families::lenet5::Config;
use fedgenie::model::families::{Family, lenet5, resnet18, simple_cnn};
use fedgenie::model::{Batch, Model, Network, evaluate, evaluate_each};
use fedgenie::rng::{Purpose, Streams};
use fedgenie::trainer::optimizer::Decay;
use fedgenie::trainer::{Length, LocalTraining, Trainer, Update};
use ndarray::Array2;
use std::hint::black_box;

pub struct Case {
    pub name: &'static str,
    build: fn(Shape, usize) -> Network,
    shape: Shape,
    clients: usize,
    size: usize,
    batch: usize,
    momentum: f64,
    epochs: u32,
    /// Whether gradients are clipped and weights decay, those of clusters' networks more.
    is_regularised: bool,
    /// Whether images are counted rather than passes of a client over its images.
    counts_images: bool,
    /// Whether each thread has so many clients.
    per_thread: bool,
    repetitions: usize,
}

const MNIST: Shape = Shape { channels: 1, height: 28, width: 28 };
const CIFAR: Shape = Shape { channels: 3, height: 32, width: 32 };

pub const CASES: &[Case] = &[
    Case {
        name: "lenet",
        build: |shape, classes| lenet5(shape, 1.0, classes),
        shape: MNIST,
        clients: 20,
        size: 600,
        batch: 32,
        momentum: 0.9,
        epochs: 1,
        is_regularised: false,
        counts_images: false,
        per_thread: false,
        repetitions: 15,
    },
    Case {
        name: "fed-bac",
        build: |shape, classes| Family::Lenet5(Config { width: 1.0 }).additive(shape, classes).expect("LeNet-5 fits"),
        shape: MNIST,
        clients: 80,
        size: 600,
        batch: 32,
        momentum: 0.9,
        epochs: 5,
        is_regularised: true,
        counts_images: false,
        per_thread: false,
        repetitions: 3,
    },
    Case {
        name: "simple-cnn",
        build: simple_cnn,
        shape: CIFAR,
        clients: 50,
        size: 50,
        batch: 10,
        momentum: 0.0,
        epochs: 1,
        is_regularised: false,
        counts_images: false,
        per_thread: false,
        repetitions: 9,
    },
    Case {
        name: "resnet18",
        build: resnet18,
        shape: CIFAR,
        clients: 1,
        size: 128,
        batch: 32,
        momentum: 0.0,
        epochs: 1,
        is_regularised: false,
        counts_images: true,
        per_thread: true,
        repetitions: 5,
    },
];

fn data(shape: Shape, examples: usize) -> Dataset {
    let mut rng = Streams::new(1).stream(Purpose::Example, 0, 0);
    let features = Array2::from_shape_simple_fn((examples, shape.len()), || rng.uniform() as f32);
    let labels = (0..examples).map(|_| rng.below(10) as u8).collect();
    Dataset::new(features, Targets::Classes { labels, classes: 10 })
}

/// Rate and share of the peak of `threads` cores.
pub struct Rate {
    pub unit: &'static str,
    pub median: f64,
    pub best: f64,
    pub peak_share: f64,
}

impl Case {
    /// Trains on a number of threads, of which each has `peak` operations per second.
    pub fn train(&self, path: Path, threads: usize, peak: f64) -> Rate {
        // Where training is fifty times slower, a client is enough to see it.
        let (clients, repetitions) = match (path.has_fma(), self.per_thread) {
            (false, _) => (1, 1),
            (true, true) => (self.clients * threads, self.repetitions),
            (true, false) => (self.clients, self.repetitions),
        };
        let data = data(self.shape, clients * self.size);
        let model = (self.build)(self.shape, 10);
        let streams = Streams::new(1);
        let mut start = vec![0.0; model.parameters()];
        model.init(&mut streams.stream(Purpose::ModelInit, 0, 0), &mut start);
        let examples: Vec<u32> = (0..(clients * self.size) as u32).collect();
        let jobs = jobs(&start, &examples, self.size);
        let settings = self.settings(&model);
        let mut updates = vec![Update::default(); jobs.len()];
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads can be started");
        let seconds = measure(repetitions, || {
            pool.install(|| {
                Trainer { model: &model, data: &data, settings: &settings, streams: &streams }.train_on(
                    path,
                    &jobs,
                    true,
                    black_box(&mut updates),
                );
            });
        });
        assert!(updates.iter().all(|update| !update.diverged), "the models learn");
        let images = (clients * self.size) as f64 * f64::from(self.epochs);
        let operations = 2.0 * model.multiplications() as f64 * images;
        let units = if self.counts_images { images } else { clients as f64 * f64::from(self.epochs) };
        Rate {
            unit: if self.counts_images { "images/s" } else { "client-epochs/s" },
            median: units / seconds.median,
            best: units / seconds.shortest,
            peak_share: operations / seconds.shortest / (peak * threads as f64),
        }
    }

    /// Seconds of the evaluation of ten clusters' models on all threads, and of eleven passes of one of their networks:
    /// the work of an assignment that compares losses, and its lower limit. `None` without networks of clusters.
    pub fn evaluate_clusters(&self) -> Option<[Seconds; 2]> {
        const COUNT: usize = 2_048;
        const CLUSTERS: usize = 10;
        let model = (self.build)(self.shape, 10);
        model.layout().has_clusters().then(|| {
            let data = data(self.shape, COUNT);
            let examples: Vec<u32> = (0..COUNT as u32).collect();
            let batch = Batch { data: &data, examples: &examples };
            let start = |model: &Network| {
                let mut start = vec![0.0; model.parameters()];
                model.init(&mut Streams::new(1).stream(Purpose::ModelInit, 0, 0), &mut start);
                start
            };
            let models: Vec<Vec<f32>> = (0..CLUSTERS).map(|_| start(&model)).collect();
            let models: Vec<&[f32]> = models.iter().map(|model| &**model).collect();
            let single = lenet5(self.shape, 1.0, 10);
            let alone = start(&single);
            let together = measure(7, || _ = black_box(evaluate_each(&model, &models, &[batch], true)));
            let apart = measure(7, || {
                (0..=CLUSTERS).for_each(|_| _ = black_box(evaluate(&single, &alone, batch, true)));
            });
            [together, apart]
        })
    }

    fn settings(&self, model: &Network) -> LocalTraining {
        let mut settings = descent(self.batch, 0.01, self.momentum);
        settings.length = Length::Epochs(self.epochs);
        if self.is_regularised {
            settings.clip = Some(1.0);
            let decay = |range, rate| Decay { range, rate };
            let own: Vec<_> = model.layout().trained_of_clusters().collect();
            let shared = own.first().map_or(0..model.trained(), |own| 0..own.start);
            settings.decays = std::iter::once(decay(shared, 5e-4))
                .chain(own.into_iter().map(|range| decay(range, 5e-4 + 0.001)))
                .collect();
        }
        settings
    }

    /// Images per second of an evaluation on all threads of the pool.
    pub fn evaluate(&self) -> (usize, Seconds) {
        let count = if self.counts_images { 128 } else { 2_048 };
        let data = data(self.shape, count);
        let model = (self.build)(self.shape, 10);
        let mut start = vec![0.0; model.parameters()];
        model.init(&mut Streams::new(1).stream(Purpose::ModelInit, 0, 0), &mut start);
        let examples: Vec<u32> = (0..count as u32).collect();
        (
            count,
            measure(5, || _ = black_box(evaluate(&model, &start, Batch { data: &data, examples: &examples }, true))),
        )
    }
}
