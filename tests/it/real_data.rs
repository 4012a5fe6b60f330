//! Fashion-MNIST as published: its counts, its pixels, and the accuracy of softmax regression; a sample of CIFAR-10 and
//! its moments; published partitions against the generator's distribution; ratings with trust, their counts and the
//! errors of mean and biases; MovieLens' metadata of users; the games of those who reviewed ten; the
//! reviews of Amazon's Fashion.
//!
//! Runs where the data is: `FEDGENIE_DATA`, or `../shared/data`, is a folder that contains `fashion-mnist/`,
//! `cifar10/`, `fl-traces/`, `ciao/`, `epinions/`, `filmtrust/`, `ml-100k/`, `ml-1m/` and `amazon/`.

use fedgenie::data::partition::counts::{ClassCounts, Scale, class_counts};
use fedgenie::data::partition::dirichlet::{DirichletClasses, dirichlet};
use fedgenie::data::partition::iid::iid;
use fedgenie::data::source::DataConfig;
use fedgenie::data::{Dataset, Partition, Shape, Split, Targets};
use fedgenie::formulas::rmse::RMSE;
use fedgenie::id::{ClientId, JobNumber, Round};
use fedgenie::law::{Gamma, Law};
use fedgenie::model::{Batch, Model, SoftmaxRegression, evaluate};
use fedgenie::ratings::reference::Biases;
use fedgenie::ratings::social::dealt::Distribution;
use fedgenie::ratings::social::{SocialCache, SocialConfig, SocialPartition};
use fedgenie::ratings::{Filters, Part, RatingsCache, RatingsConfig, SplitConfig};
use fedgenie::rng::{Purpose, Streams};
use fedgenie::task::DataCache;
use fedgenie::trainer::{LocalTraining, OptimizerConfig, Trainer, TrainingJob, Update};
use ndarray::{Array2, ArrayView1};
use std::path::PathBuf;
use std::sync::Arc;

/// The folder of a data set, or none, with a line that says so.
fn folder(name: &str) -> Option<PathBuf> {
    let root = std::env::var_os("FEDGENIE_DATA").map_or_else(|| PathBuf::from("../shared/data"), PathBuf::from);
    let folder = root.join(name);
    if folder.is_dir() {
        Some(folder)
    } else {
        println!("skipped: there is no {}; set FEDGENIE_DATA to the folder that contains {name}/", folder.display());
        None
    }
}

/// The data of a scenario that names this folder.
fn loaded(folder: PathBuf) -> Arc<Split> {
    DataConfig::Folder(folder).load(false, &Streams::new(1), &DataCache::default()).unwrap()
}

/// Number of examples of each class.
fn histogram(data: &Dataset) -> Vec<usize> {
    let (labels, classes) = data.classes().unwrap();
    let mut counts = vec![0; classes];
    labels.iter().for_each(|&label| counts[usize::from(label)] += 1);
    counts
}

/// Mean and deviation of a channel.
fn moments(data: &Dataset, channel: usize) -> (f64, f64) {
    let area = data.shape().height * data.shape().width;
    let features = data.features();
    let images = || features.rows().into_iter();
    let channel = |image: ArrayView1<'_, f32>| image.to_vec()[channel * area..][..area].to_vec();
    let pixels = || images().flat_map(channel).map(f64::from);
    let count = (data.examples() * area) as f64;
    let mean = pixels().sum::<f64>() / count;
    (mean, (pixels().map(|pixel| (pixel - mean).powi(2)).sum::<f64>() / count).sqrt())
}

#[test]
fn a_sample_of_cifar_10_is_read_and_standardised() {
    let Some(folder) = folder("cifar10") else { return };
    let split = loaded(folder);
    for (data, of_class) in [(&split.train, 2_000), (&split.test, 500)] {
        assert_eq!(data.shape(), Shape { channels: 3, height: 32, width: 32 });
        assert_eq!(histogram(data), [of_class; 10]);
    }
    // The sample's provenance, to three digits.
    for (channel, (mean, deviation)) in [(0.494, 0.248), (0.484, 0.244), (0.449, 0.263)].into_iter().enumerate() {
        let found = moments(&split.train, channel);
        println!("CIFAR-10 sample, channel {channel}: mean {:.4}, deviation {:.4}", found.0, found.1);
        assert!((found.0 - mean).abs() < 1e-3 && (found.1 - deviation).abs() < 1e-3, "channel {channel}: {found:?}");
    }
    let normal = Split::clone(&split).normalized().unwrap();
    for channel in 0..3 {
        let (mean, deviation) = moments(&normal.train, channel);
        assert!(mean.abs() < 1e-6 && (deviation - 1.0).abs() < 1e-6, "channel {channel}: {mean} {deviation}");
        let (mean, deviation) = moments(&normal.test, channel);
        // 5,000 images of the same kind.
        assert!(mean.abs() < 0.05 && (deviation - 1.0).abs() < 0.05, "channel {channel}: {mean} {deviation}");
    }
}

#[test]
fn fashion_mnist_is_read_dealt_out_and_learned() {
    let Some(folder) = folder("fashion-mnist") else { return };
    let split = loaded(folder);

    for (data, examples) in [(&split.train, 60_000), (&split.test, 10_000)] {
        assert_eq!(data.shape(), Shape { channels: 1, height: 28, width: 28 });
        assert_eq!(histogram(data), [examples / 10; 10]);
    }
    let (mean, deviation) = moments(&split.train, 0);
    // Published: 0.2860 and 0.3530, to four digits.
    assert!((mean - 0.2860).abs() < 5e-5, "{mean}");
    assert!((deviation - 0.3530).abs() < 5e-5, "{deviation}");

    let streams = Streams::new(1);
    let partition = iid(&split.train, 500, true, &streams).unwrap();
    let (labels, _) = split.train.classes().unwrap();
    for client in (0..500).map(ClientId) {
        let mut counts = [0; 10];
        partition.client(client).iter().for_each(|&example| counts[usize::from(labels[example as usize])] += 1);
        assert_eq!(counts, [12; 10]);
    }

    let model = SoftmaxRegression::new(784, 10);
    let start = vec![0.0; model.parameters()];
    let examples: Vec<u32> = (0..60_000).collect();
    let job = TrainingJob {
        client: ClientId(0),
        round: Round::FIRST,
        number: JobNumber(1),
        start: &start,
        examples: &examples,
    };
    let sgd = OptimizerConfig::Sgd { lr: 0.05, momentum: 0.0, nesterov: false, weight_decay: 0.0, dampening: 0.0 };
    let settings = LocalTraining::new(3, 32, &sgd).unwrap();
    let mut updates = [Update::default()];
    Trainer { model: &model, data: &split.train, settings: &settings, streams: &streams }.train(
        &[job],
        false,
        &mut updates,
    );
    let test: Vec<u32> = (0..10_000).collect();
    let evaluation = evaluate(&model, &updates[0].parameters, Batch { data: &split.test, examples: &test }, true);
    println!("Fashion-MNIST, 3 epochs: accuracy {:.4}, loss {:.4}", evaluation.accuracy(), evaluation.loss());
    assert!(evaluation.accuracy() > 0.80, "{}", evaluation.accuracy());
}

/// Labels 0, 1, …, 9, 0, 1, … without any features.
fn labels_only(examples: usize, classes: usize) -> Dataset {
    let labels = (0..examples).map(|example| (example % classes) as u8).collect();
    Dataset::new(Array2::zeros((examples, 0)), Targets::Classes { labels, classes })
}

const STATISTICS: [&str; 6] = [
    "size Gini",
    "mean label entropy",
    "mean distance",
    "largest share of a class",
    "share of zeros",
    "smallest client",
];

fn statistics(partition: &Partition, data: &Dataset) -> [f64; 6] {
    let (labels, classes) = data.classes().unwrap();
    let (mut zeros, mut largest) = (0, vec![0; classes]);
    for client in (0..partition.clients()).map(ClientId::from_index) {
        let mut counts = vec![0; classes];
        partition.client(client).iter().for_each(|&example| counts[usize::from(labels[example as usize])] += 1);
        zeros += counts.iter().filter(|&&count| count == 0).count();
        largest.iter_mut().zip(&counts).for_each(|(largest, &count)| *largest = count.max(*largest));
    }
    let skew = partition.skew(data);
    let label = skew.labels.unwrap();
    // The mean over classes of the largest share that one client has.
    let largest = largest.iter().sum::<usize>() as f64 / data.examples() as f64;
    let zeros = zeros as f64 / (partition.clients() * classes) as f64;
    [skew.size_gini, label.mean_entropy, label.mean_distance, largest, zeros, skew.smallest as f64]
}

/// The publisher's splitter: a client that has its even share already gets no more, class after class, and
/// everything is drawn again until the smallest client has 40 examples. Returns the sizes per client and class as a
/// table.
fn publishers_splitter(alpha: f64, clients: usize, classes: usize, of_class: usize, seed: u64) -> Vec<Vec<usize>> {
    let law = Gamma::new(alpha, 1.0).unwrap();
    let mut rng = Streams::new(seed).stream(Purpose::Partition, u32::MAX, u32::MAX);
    loop {
        let mut counts = vec![vec![0; classes]; clients];
        for class in 0..classes {
            let weights: Vec<f64> = counts
                .iter()
                .map(|mine: &Vec<usize>| {
                    let weight = law.quantile(rng.uniform());
                    if mine.iter().sum::<usize>() < of_class * classes / clients { weight } else { 0.0 }
                })
                .collect();
            let total: f64 = weights.iter().sum();
            let (mut before, mut cut) = (0.0, 0);
            for (client, weight) in weights.iter().enumerate() {
                before += weight / total;
                let end = if client + 1 == clients { of_class } else { (before * of_class as f64) as usize };
                counts[client][class] = end - cut;
                cut = end;
            }
        }
        if counts.iter().all(|mine| mine.iter().sum::<usize>() >= 40) {
            return counts;
        }
    }
}

/// The share of values below, ties counting half.
fn quantile_of(value: f64, values: impl Iterator<Item = f64>) -> f64 {
    let (mut below, mut count) = (0.0, 0.0);
    for other in values {
        below += if other < value { 1.0 } else { f64::from(u8::from(other == value)) / 2.0 };
        count += 1.0;
    }
    below / count
}

#[test]
fn published_dirichlet_partitions_are_those_of_their_splitter() {
    let Some(folder) = folder("cifar10") else { return };
    const DRAWS: u64 = 100;
    let data = labels_only(60_000, 10);
    for alpha in [0.1, 0.3] {
        let table =
            ClassCounts::read(&folder.join(format!("pfllib_partition_dirichlet_{alpha}_100clients.csv.gz"))).unwrap();
        // Scale::None: every class sums to 6,000 at most.
        let published = class_counts(&data, 100, &table, Scale::None, &Streams::new(1)).unwrap();
        assert_eq!(published.examples(), 60_000);
        let found = statistics(&published, &data);

        let law = Gamma::new(alpha, 1.0).unwrap();
        let settings = DirichletClasses { alpha, minimum: 0 };
        let ours: Vec<[f64; 6]> = (0..DRAWS)
            .map(|seed| {
                let deal = dirichlet(&data, 100, &settings, &|u| law.quantile(u), &Streams::new(seed));
                statistics(&deal.unwrap(), &data)
            })
            .collect();
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("counts.csv");
        let theirs: Vec<[f64; 6]> = (0..DRAWS)
            .map(|seed| {
                let rows = publishers_splitter(alpha, 100, 10, 6_000, seed);
                let row = |row: &Vec<usize>| row.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
                std::fs::write(&path, rows.iter().map(row).collect::<Vec<_>>().join("\n")).unwrap();
                let table = ClassCounts::read(&path).unwrap();
                statistics(&class_counts(&data, 100, &table, Scale::None, &Streams::new(1)).unwrap(), &data)
            })
            .collect();
        for (place, name) in STATISTICS.iter().enumerate() {
            let mean = |all: &[[f64; 6]]| all.iter().map(|one| one[place]).sum::<f64>() / DRAWS as f64;
            let quantile = |all: &[[f64; 6]]| quantile_of(found[place], all.iter().map(|one| one[place]));
            println!(
                "alpha {alpha}, {name}: published {:.4}; the law {:.4}, quantile {:.3}; its splitter {:.4}, quantile {:.3}",
                found[place],
                mean(&ours),
                quantile(&ours),
                mean(&theirs),
                quantile(&theirs)
            );
            // The splitter's own statistics: the published partition is an ordinary draw of it.
            assert!((0.005..=0.995).contains(&quantile(&theirs)), "alpha {alpha}, {name}: no draw of its splitter");
        }
        // It is none of the law's: clients that have their share are passed over, so that sizes are more alike and
        // clients have fewer classes. One client's share of a single class is the law's nevertheless.
        let quantile = |place: usize| quantile_of(found[place], ours.iter().map(|one| one[place]));
        assert!(quantile(0) < 0.05 && quantile(1) < 0.05 && quantile(4) > 0.95, "alpha {alpha}: the law's after all");
        assert!((0.005..=0.995).contains(&quantile(3)), "alpha {alpha}: no share of a class as the law has it");
    }
}

#[test]
fn published_tables_of_clients_are_dealt_out_as_they_say() {
    let Some(folder) = folder("fl-traces").map(|folder| folder.join("oort")) else { return };
    let expected = [
        ("openimage_client_x_class_counts", 12_745, 50, 524_028_u64),
        ("quickdraw_client_x_class_counts", 240, 350, 46_255_044),
        ("speech_commands_client_x_label_counts", 2_187, 35, 103_171),
    ];
    for (name, clients, classes, examples) in expected {
        let table = ClassCounts::read(&folder.join(format!("{name}.tsv.gz"))).unwrap();
        assert_eq!((table.clients(), table.classes()), (clients, classes));
        let sum = |class: usize| (0..clients).map(|client| u64::from(table.client(client)[class])).sum::<u64>();
        let totals: Vec<u64> = (0..classes).map(sum).collect();
        assert_eq!(totals.iter().sum::<u64>(), examples);
        // A data set numbers at most 256 classes.
        if classes > 256 {
            continue;
        }
        let labels: Vec<u8> =
            (0..).zip(&totals).flat_map(|(class, &total)| std::iter::repeat_n(class, total as usize)).collect();
        let data = Dataset::new(Array2::zeros((labels.len(), 0)), Targets::Classes { labels, classes });
        let partition = class_counts(&data, clients, &table, Scale::None, &Streams::new(1)).unwrap();
        assert_eq!(partition.examples() as u64, examples);
        for client in 0..clients {
            let size = table.client(client).iter().map(|&count| count as usize).sum::<usize>();
            assert_eq!(partition.size(ClientId::from_index(client)), size);
        }
        println!("{name}: {:?}", partition.skew(&data));
    }
}

/// The remaining ratings with trust.
struct Social {
    name: &'static str,
    /// Without trust, outside the range, repeated.
    dropped: [usize; 3],
    users: usize,
    items: usize,
    categories: usize,
    /// Training, validation and test under a random split of 8:1:1.
    parts: [usize; 3],
    /// Pairs of users with trust in both directions.
    trust: usize,
    /// Test RMSE of mean and biases.
    errors: [f64; 2],
}

const CIAO: Social = Social {
    name: "ciao",
    dropped: [766, 34, 1_419],
    users: 7_317,
    items: 104_957,
    categories: 28,
    parts: [225_495, 28_186, 28_186],
    trust: 85_205,
    errors: [1.054, 0.946],
};
/// Of 764,693 ratings by users with trust 8,015 repeat a pair.
const EPINIONS: Social = Social {
    name: "epinions",
    dropped: [157_574, 0, 8_015],
    users: 18_097,
    items: 261_679,
    categories: 0,
    parts: [605_344, 75_667, 75_667],
    trust: 286_969,
    errors: [1.168, 1.028],
};
const FILMTRUST: Social = Social {
    name: "filmtrust",
    dropped: [0; 3],
    users: 740,
    items: 1_957,
    categories: 0,
    parts: [14_930, 1_866, 1_866],
    trust: 1_126,
    errors: [0.955, 0.848],
};

/// Reads, splits and compares; partitions that a scenario would use hold every rating once.
fn check(expected: &Social, partition: &SocialPartition) {
    let Some(folder) = folder(expected.name) else { return };
    let streams = Streams::new(1);
    let social = SocialConfig::Folder(folder).load(None, &streams, &SocialCache::default()).unwrap();
    let data = &social.ratings;
    let dropped = [social.without_trust, data.dropped.outside, data.dropped.repeated];
    let categories = data.group_ids.as_ref().map_or(0, |ids| ids.len());
    assert_eq!((dropped, categories, social.trust.len()), (expected.dropped, expected.categories, expected.trust));
    assert_eq!((data.user_ids.len(), data.item_ids.len()), (expected.users, expected.items));
    let split = SplitConfig::Random { test: 0.1, valid: 0.1 }.split(data.clone(), &streams).unwrap();
    assert_eq!([split.train.len(), split.valid.len(), split.test.len()], expected.parts);
    assert_eq!(data.ratings.len(), expected.parts.iter().sum::<usize>());
    let test = split.part(Part::Test).map(|rating| (rating.user, rating.item, rating.value, true));
    let found = Biases::fit(&split).errors(test).map(|(_, errors)| RMSE.of_ratings(&errors));
    println!("{}: test RMSE of the mean {:.4}, of mean and biases {:.4}", expected.name, found[0], found[1]);
    for (found, expected) in found.into_iter().zip(expected.errors) {
        assert!((found - expected).abs() < 0.01, "{found}, {expected}");
    }
    let dealt = partition.deal(&split, 10, &streams).unwrap();
    let mut names: Vec<String> = dealt.categories.iter().flatten().map(ToString::to_string).collect();
    assert!(
        dealt.categories.iter().all(|own| (2..=3).contains(&own.len())) && dealt.holders.iter().all(Option::is_some)
    );
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), dealt.names.len());
}

#[test]
fn ciao_is_read_and_dealt_out_by_its_categories() {
    check(&CIAO, &SocialPartition::default());
}

#[test]
fn epinions_and_filmtrust_are_read_and_dealt_out_by_communities() {
    for (expected, count) in [(&EPINIONS, 27), (&FILMTRUST, 28)] {
        check(expected, &SocialPartition::Communities { count, distribution: Distribution::Average });
    }
}

#[test]
fn movielens_says_who_its_users_are() {
    // Users, men, and how many names occupations have: the publishers' counts.
    for (name, users, men, occupations) in [("ml-100k", 943, 670, 21), ("ml-1m", 6_040, 4_331, 21)] {
        let Some(folder) = folder(name) else { continue };
        let config = RatingsConfig::Folder(folder);
        let ratings = config.load(&Filters::default(), &Streams::new(1), &RatingsCache::default()).unwrap();
        let found = config.metadata(&ratings.user_ids).unwrap().unwrap();
        assert_eq!((found.len(), found[0].len()), (users, 2 + occupations));
        assert_eq!(found.iter().filter(|user| user[0] == 1.0).count(), men);
        let ages = || found.iter().map(|user| user[1]);
        let (mean, square) =
            (ages().sum::<f64>() / users as f64, ages().map(|age| age * age).sum::<f64>() / users as f64);
        assert!(mean.abs() < 1e-9 && (square - 1.0).abs() < 1e-9, "ages are standardised: {mean}, {square}");
        assert!(found.iter().all(|user| user[2..].iter().sum::<f64>() == 1.0), "everybody has one occupation");
    }
}

#[test]
fn amazons_fashion_is_read_with_its_repeated_reviews_dropped() {
    let Some(folder) = folder("amazon") else { return };
    let file = folder.join("fashion_5core_ratings.csv.gz");
    let config: RatingsConfig = serde_json::from_value(serde_json::json!({ "amazon": { "file": file } })).unwrap();
    let found = config.load(&Filters::default(), &Streams::new(1), &RatingsCache::default()).unwrap();
    let counts = (found.ratings.len(), found.user_ids.len(), found.item_ids.len(), found.dropped.repeated);
    // 3,176 rows have 3,042 pairs of user and item, counted by sorting them.
    assert_eq!(counts, (3_042, 406, 31, 3_176 - 3_042));
}

/// ProxyRL-FRS prints a hit ratio at 20 of 0.2315 and an NDCG at 20 of 0.0163 for one method on these data.
#[test]
fn games_of_those_who_reviewed_ten() {
    if folder("amazon").is_none() {
        return;
    }
    let config = RatingsConfig::Folder(folder("amazon").unwrap().with_file_name("video-games"));
    let filters = Filters { min_per_user: 10, ..Filters::default() };
    let streams = Streams::new(1);
    let ratings = config.load(&filters, &streams, &RatingsCache::default()).unwrap();
    let counts = (ratings.user_ids.len(), ratings.item_ids.len(), ratings.ratings.len());
    assert_eq!(counts, (7_519, 19_977, 145_520));
    let split = SplitConfig::Random { test: 0.1, valid: 0.1 }.split(ratings, &streams).unwrap();
    let test = split.lists(Part::Test);
    // The least NDCG of so many users with a hit: one hit each, at rank 20, of those with the longest test lists.
    let discount = |rank: usize| 1.0 / (rank as f64 + 1.0).log2();
    let ideal = |relevant: usize| (1..=relevant.min(20)).map(discount).sum::<f64>();
    let of_user = |user| test.of(user).len();
    let mut least: Vec<f64> = (0..7_519)
        .map(of_user)
        .filter(|&relevant| relevant > 0)
        .map(|relevant| discount(20) / ideal(relevant))
        .collect();
    least.sort_by(f64::total_cmp);
    let hits = (0.2315 * least.len() as f64).floor() as usize;
    let bound = least[..hits].iter().sum::<f64>() / least.len() as f64;
    println!("{} users with test items, a hit ratio of 0.2315 forces an NDCG of {bound:.5}", least.len());
    assert!(bound > 0.0185 && bound < 0.02, "{bound}");
}
