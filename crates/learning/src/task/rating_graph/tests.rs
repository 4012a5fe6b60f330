//! Clients' graphs, measures over clients, features, and the training of factor models.

use super::factors::{Kind as FactorKind, RatingFactors, Settings};
use super::*;
use crate::graph_network::Kind;
use crate::metric::of_known;
use crate::ratings::SplitConfig;
use crate::ratings::social::dealt::Dealt;
use crate::ratings::social::{SocialConfig, SocialPartition, SocialSource, SyntheticSocial};
use crate::task::job_tests::check;
use crate::task::{JobKey, PrivateTable, PrivateView};
use crate::trainer::OptimizerConfig;
use fedgenie_core::halt::NEVER;
use fedgenie_core::id::{EdgeId, JobNumber, Round};
use std::collections::BTreeSet;
use std::sync::LazyLock;

fn small() -> SyntheticSocial {
    SyntheticSocial {
        users: 60,
        items: 90,
        ratings: 900,
        categories: 9,
        communities: 3,
        trust: 120,
        ..SyntheticSocial::default()
    }
}

pub(super) fn holdings(seed: u64, clients: Option<usize>, transition: bool) -> Holdings {
    holdings_of(small(), seed, clients, transition)
}

fn holdings_of(drawn: SyntheticSocial, seed: u64, clients: Option<usize>, transition: bool) -> Holdings {
    let streams = Streams::new(seed);
    let config = SocialConfig::Source(SocialSource::Synthetic(drawn));
    let social = config.load(None, &streams, &Default::default()).unwrap();
    let split = SplitConfig::Random { test: 0.1, valid: 0.1 }.split(social.ratings.clone(), &streams).unwrap();
    let dealt = match clients {
        Some(clients) => SocialPartition::default().deal(&split, clients, &streams).unwrap(),
        None => Dealt::whole(&split),
    };
    Holdings::new(social, split, dealt, transition)
}

const SHAPE: Shape = Shape { kind: Kind::Gcn, layers: 2, hidden: 8, embedding: 6 };

/// Nobody keeps anything.
static NOTHING: LazyLock<PrivateTable> = LazyLock::new(|| PrivateTable::new(0));

fn state(model: &[f32]) -> ModelState<'_> {
    ModelState { model, private: PrivateView::of(&NOTHING), round: Round(0), moved: &[], memories: &[] }
}

#[test]
fn clients_hold_graphs_of_their_ratings_and_of_the_trust_between_their_users() {
    let holdings = holdings(1, Some(4), true);
    let data = &holdings.split().data;
    let users = holdings.users();
    let trust: BTreeSet<(u32, u32)> = holdings.trust().iter().copied().collect();
    let mut seen = 0;
    for client in holdings.clients() {
        let parts = [Part::Train, Part::Valid, Part::Test].map(|part| client.part(part));
        seen += parts.iter().map(|pairs| pairs.ends.len()).sum::<usize>();
        // Nodes: users and items of its ratings, whatever these are for.
        let nodes: BTreeSet<u32> = parts
            .iter()
            .flat_map(|pairs| pairs.ends.iter().flat_map(|&(user, item)| [user, item]))
            .map(|node| client.nodes[node as usize])
            .collect();
        assert!(nodes.iter().eq(&client.nodes) && client.nodes[client.users] as usize >= users);
        let mut edges = BTreeSet::new();
        for (node, &global) in client.nodes.iter().enumerate() {
            for &other in client.graph.around(node).iter().filter(|&&other| other as usize > node) {
                edges.insert((global, client.nodes[other as usize]));
            }
        }
        let of_ratings = parts[0].ends.iter().map(|&(u, i)| (client.nodes[u as usize], client.nodes[i as usize]));
        let own: BTreeSet<u32> = client.nodes[..client.users].iter().copied().collect();
        let of_trust = trust.iter().copied().filter(|(one, other)| own.contains(one) && own.contains(other));
        let expected: BTreeSet<(u32, u32)> = of_ratings.chain(of_trust).collect();
        assert_eq!(edges, expected);
        assert_eq!(client.graph.edges(), client.trust + parts[0].ends.len());
        for pairs in parts {
            for (&(user, item), &value) in pairs.ends.iter().zip(&pairs.values) {
                let pair = (client.nodes[user as usize], client.nodes[item as usize] - users as u32);
                let found = data.ratings.iter().find(|rating| (rating.user, rating.item) == pair).unwrap();
                assert_eq!(found.value, value);
            }
        }
    }
    assert_eq!(seen, data.ratings.len());
    let described = holdings.described();
    let nodes = |client: usize| holdings.clients()[client].nodes.iter().collect::<BTreeSet<_>>();
    let common = |one, other| nodes(one).intersection(&nodes(other)).count();
    for one in 0..4 {
        for other in 0..4 {
            assert_eq!(described["overlap"][one][other], common(one, other));
        }
    }
    assert!(described["prefix_intersection"][0].is_null());
    let union: BTreeSet<_> = nodes(0).union(&nodes(1)).copied().collect();
    let share = union.intersection(&nodes(2)).count() as f64 / union.len() as f64;
    assert_eq!(described["prefix_intersection"][2], share);
    assert_eq!(described["clients"][1]["trust"], holdings.clients()[1].trust);
    let controls = holdings.controls(&metrics(&[]));
    assert_eq!((controls[0].0, controls[1].0, &*controls[1].1[0].0.to_string()), ("mean", "bias", "test_rmse"));
    assert!(controls[1].1[0].1 < controls[0].1[0].1);
}

/// The mean of the ratings that clients hold, on those that they hold: every third rating is nobody's.
#[test]
fn controls_know_only_ratings_that_somebody_holds() {
    let streams = Streams::new(3);
    let social = SocialConfig::Source(SocialSource::Synthetic(small())).load(None, &streams, &Default::default());
    let social = social.unwrap();
    let split = SplitConfig::Random { test: 0.1, valid: 0.1 }.split(social.ratings.clone(), &streams).unwrap();
    let mut dealt = SocialPartition::default().deal(&split, 4, &streams).unwrap();
    dealt.holders.iter_mut().step_by(3).for_each(|holder| *holder = None);
    let held = |numbers: &[u32]| -> Vec<f64> {
        let all = numbers.iter().filter(|&&number| dealt.holders[number as usize].is_some());
        all.map(|&number| f64::from(split.data.ratings[number as usize].value)).collect()
    };
    let [train, test] = [held(&split.train), held(&split.test)];
    let mean = train.iter().sum::<f64>() / train.len() as f64;
    let error = (test.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / test.len() as f64).sqrt();
    let whole = split.test.len();
    let holdings = Holdings::new(social, split, dealt, false);
    let found = holdings.controls(&metrics(&[]))[0].1[0].1;
    assert!(test.len() < whole && (found - error).abs() < 1e-9, "{found}, by hand {error}");
}

#[test]
fn measures_are_pooled_over_clients_and_the_same_on_any_number_of_threads() {
    let streams = Streams::new(3);
    let task = RatingGraph::new(SHAPE, holdings(3, Some(4), true), &Features::Random, None, &streams);
    let dynamic: &dyn Task = &task;
    let model = dynamic.initial_model(0, &streams);
    let mut apart = Vec::new();
    for client in (0..4).map(ClientId) {
        let mut values = [0.0; 3];
        let weight = dynamic.measure(On::Client(client), &state(&model), false, &mut values).unwrap();
        assert!((values[0] * values[0] - values[2]).abs() < 1e-9 && values[1] <= values[0]);
        apart.push((weight, values));
    }
    let mut test = [0.0; 3];
    let mut valid = [0.0; 3];
    let state_of_both = state(&model);
    let asks = [Ask::new(On::Test, &state_of_both, &mut test), Ask::new(On::Valid, &state_of_both, &mut valid)];
    task.evaluate(&mut { asks }, true.into()).unwrap();
    let total: f64 = apart.iter().map(|(weight, _)| weight).sum();
    let loss = apart.iter().map(|(weight, values)| weight * values[2]).sum::<f64>() / total;
    assert!((loss - test[2]).abs() < 1e-9 * loss && total == task.holdings().split().test.len() as f64);
    let mut alone = [0.0; 3];
    for (on, both) in [(On::Test, test), (On::Valid, valid)] {
        dynamic.measure(on, &state(&model), false, &mut alone).unwrap();
        assert_eq!(alone, both);
    }
    // By hand: predictions on a client's own graph.
    let losses = task.rating_losses(ClientId(2), &model, &mut Scratch::default());
    let mean = losses.iter().sum::<f64>() / losses.len() as f64;
    assert_eq!(task.client_loss(ClientId(2), &state(&model)).unwrap(), mean);
    assert_eq!(losses.len(), dynamic.examples(ClientId(2)));
}

#[test]
fn features_are_those_that_were_asked_for_and_the_same_on_every_client() {
    let streams = Streams::new(2);
    let wide = Shape { kind: Kind::Gat { heads: 2 }, embedding: 64, ..SHAPE };
    let of = |features: &Features| RatingGraph::new(wide, holdings(2, Some(3), true), features, None, &streams);
    let drawn = random(&holdings(2, Some(3), true), 64, &streams);
    let variance = drawn.iter().map(|x| f64::from(x * x)).sum::<f64>() / drawn.len() as f64;
    assert!((variance * 64.0 - 1.0).abs() < 0.05, "{variance}");
    let table = of(&Features::Table(drawn.clone()));
    let random = of(&Features::Random);
    assert_eq!(table.prepared, random.prepared);
    let degree = of(&Features::Degree);
    assert_ne!(degree.prepared, random.prepared);
    assert_ne!(of(&Features::Constant).prepared, degree.prepared);
}

/// Errors of items with and without a training rating, of a model and of the controls, by hand from single predictions.
#[test]
fn items_that_nobody_has_rated_for_training_are_measured_apart() {
    let streams = Streams::new(5);
    // Many items for few ratings: some are rated once.
    let drawn = SyntheticSocial { items: 400, ..small() };
    let more: Vec<_> = of_known().collect();
    let task = RatingGraph::new(SHAPE, holdings_of(drawn, 5, Some(4), true), &Features::Random, None, &streams);
    let task = task.with_metrics(&more);
    let model = (&task as &dyn Task).initial_model(0, &streams);
    let (holdings, users) = (task.holdings(), task.holdings().users() as u32);
    let rated: BTreeSet<u32> = holdings.split().part(Part::Train).map(|rating| rating.item + users).collect();
    // Squares and numbers of seen and unseen, of the model, of the mean and of the biases, at each client.
    let biases = crate::ratings::reference::Biases::fit(holdings.split());
    let mut sums = vec![[[(0.0, 0.0); 2]; 3]; 4];
    for (client, graph) in holdings.clients().iter().enumerate() {
        let network = task.network(ClientId::from_index(client));
        let mut scratch = Scratch::default();
        network.embed(&model, &mut scratch);
        let pairs = graph.part(Part::Test);
        for (number, (&(user, item), &value)) in pairs.ends.iter().zip(&pairs.values).enumerate() {
            let [user, item] = [user, item].map(|node| graph.nodes[node as usize]);
            let of_model = f64::from(network.errors(&model, pairs, &[number as u32], &mut scratch)[0]);
            let value = f64::from(value);
            let errors = [of_model, biases.mean - value, biases.predict(user, item - users) - value];
            for (sums, error) in sums[client].iter_mut().zip(errors) {
                let (squares, count) = &mut sums[usize::from(!rated.contains(&item))];
                *squares += error * error;
                *count += 1.0;
            }
        }
    }
    let root = |who: usize, kind: usize| {
        let (squares, count) =
            sums.iter().map(|sums| sums[who][kind]).fold((0.0, 0.0), |all, one| (all.0 + one.0, all.1 + one.1));
        assert!(count > 5.0, "{who}, {kind}: {count}");
        f64::sqrt(squares / count)
    };
    let near = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-9, "{found}, by hand {expected}");
    let mut values = [0.0; 5];
    (&task as &dyn Task).measure(On::Test, &state(&model), false, &mut values).unwrap();
    near(values[3], root(0, 0));
    near(values[4], root(0, 1));
    for (who, (_, control)) in task.appendix().controls.iter().enumerate() {
        let of = |name: &str| control.iter().find(|(id, _)| id.to_string() == name).unwrap().1;
        near(of("test_rmse_seen"), root(1 + who, 0));
        near(of("test_rmse_unseen"), root(1 + who, 1));
    }
    // The same at each client, where the mean over clients is of.
    let clients: Vec<ClientId> = (0..4).map(ClientId).collect();
    let parts: Vec<On<'_>> = clients.iter().map(|&client| On::Client(client)).collect();
    for (who, (_, found)) in task.controls_on(&parts).into_iter().enumerate() {
        for (client, values) in found.into_iter().enumerate() {
            let (squares, count) =
                sums[client][1 + who].iter().fold((0.0, 0.0), |all, one| (all.0 + one.0, all.1 + one.1));
            near(values.unwrap()[0], f64::sqrt(squares / count));
        }
    }
    let pair = [On::Server(EdgeId(0), &clients[1..3])];
    let [(_, of_server), _] = &task.controls_on(&pair)[..] else { panic!("two controls") };
    let both = [1, 2].iter().flat_map(|&client| sums[client][1]);
    let (squares, count) = both.fold((0.0, 0.0), |all, one| (all.0 + one.0, all.1 + one.1));
    near(of_server[0].as_ref().unwrap()[0], f64::sqrt(squares / count));
}

fn trained(task: &dyn Task, streams: &Streams, steps: u32, lr: f64) -> (Vec<f32>, f64) {
    let adam = OptimizerConfig::Adam { lr, beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay: 0.0 };
    let settings = LocalTraining::new(steps, usize::MAX, &adam).unwrap();
    let start = task.initial_model(0, streams);
    let key = JobKey { client: ClientId(0), number: JobNumber(1) };
    let job = Job {
        client: key.client,
        round: Round(1),
        number: key.number,
        start: &start,
        private: None,
        epochs: None,
        correction: None,
        contrast: None,
    };
    let context = Context { settings: &settings, streams, loss_rms: true, halt: &NEVER };
    let mut update = Update::default();
    task.train(&job, &context, &mut Worker::default(), &mut update).unwrap();
    assert!(!update.diverged && update.loss_rms.unwrap() >= update.first_loss);
    (update.parameters, update.first_loss)
}

#[test]
fn factors_learn_more_than_the_mean() {
    let streams = Streams::new(4);
    // SoRec's errors are those of ratings brought to [0, 1]: a sixteenth.
    for (kind, lambda) in
        [(FactorKind::Mf, 4.0), (FactorKind::SoRec { trust: 0.01 }, 0.25), (FactorKind::SoReg { trust: 0.5 }, 4.0)]
    {
        let settings = Settings { kind, factors: 4, lambda, range: [1.0, 5.0] };
        let drawn = SyntheticSocial { ratings: 3_600, noise: 0.3, ..small() };
        let task = RatingFactors::new(settings, holdings_of(drawn, 4, None, true), None);
        let (model, first) = trained(&task, &streams, 150, 0.02);
        let mut values = [0.0; 3];
        let count = (&task as &dyn Task).measure(On::Test, &state(&model), false, &mut values).unwrap();
        let mean = task.appendix().controls[0].1[0].1;
        assert!(values[0] < mean && count == 360.0, "{kind:?}: {values:?}, {mean}, {first}");
    }
}

#[test]
fn jobs_have_gradients_corrections_and_epochs() {
    let streams = Streams::new(3);
    for kind in [Kind::Gcn, Kind::Gat { heads: 2 }] {
        let shape = Shape { kind, ..SHAPE };
        let task = RatingGraph::new(shape, holdings(3, Some(4), true), &Features::Random, None, &streams);
        check(&task, ClientId(2), true, true);
    }
    for kind in [FactorKind::Mf, FactorKind::SoRec { trust: 0.01 }, FactorKind::SoReg { trust: 0.5 }] {
        let settings = Settings { kind, factors: 4, lambda: 0.25, range: [1.0, 5.0] };
        check(&RatingFactors::new(settings, holdings(4, None, true), None), ClientId(0), true, true);
    }
}
