//! Three thin policies that decide more than the selection, each under every protocol, with timelines and models by
//! hand.

use super::{FOUR, play_in, source, world_of};
use crate::support::changed;
use fedgenie::failure::Failure;
use fedgenie::id::ClientId;
use fedgenie::policy::{Capabilities, Feedback, Policy, PolicyRng, Selection, SelectionRequest, ServerView, Subsets};
use fedgenie::state::{State, Stateful};
use fedgenie::time::Span;
use fedgenie::world::World;
use std::path::Path;
use std::sync::{Arc, Mutex};

const DEADLINE: &str = "[protocol.deadline]\ncohort = 2\nmost = 4\ndeadline = \"10 s\"\ndeadline_least = \"3 s\"\n";

const PROTOCOLS: [&str; 5] = [
    "[protocol.synchronous]\ncohort = 2\nmost = 4\n",
    "[protocol.over-selection]\nask = 2\ntake = 1\nmost = 4\n",
    DEADLINE,
    "[protocol.buffered]\nconcurrency = 1\nbuffer = 1\n",
    "[protocol.hierarchical]\nedges = 2\ncohort = 1\nmost = 2\n",
];

/// Plays two rounds under every protocol, and compares when they closed and which models they made.
#[track_caller]
fn compare(world: impl Fn(&str) -> World, policy: impl Policy + Clone + Sync + 'static, expected: [[[f32; 2]; 2]; 5]) {
    for (protocol, [closed, models]) in PROTOCOLS.iter().zip(expected) {
        let course = play_in(&world(protocol), &source(policy.clone()), 2).unwrap();
        course.assert(&closed.map(f64::from), &models);
    }
}

fn plain(protocol: &str) -> World {
    world_of(&format!("{FOUR}{protocol}"))
}

/// Draws clients with replacement, each with the probability 1/n of n: their shares times n, over the draws, are
/// weights whose sum expects the average of all clients. The draws of turn t are the clients t − 1, t, t − 1 of n, from
/// 0.
#[derive(Clone)]
struct Unbiased;

impl Stateful for Unbiased {
    fn exchange(&mut self, _: &mut State<'_>) {}
}

impl Policy for Unbiased {
    fn capabilities(&self) -> Capabilities {
        Capabilities { bounds: true, ..Capabilities::default() }
    }

    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        view: &ServerView<'_>,
        _: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        let (scope, turn) = (ask.available.scope(), ask.turn.0 as usize);
        let draws: &[usize] = if view.bounds.unwrap().most == 1 { &[turn - 1] } else { &[turn - 1, turn, turn - 1] };
        for draw in draws {
            let client = scope[draw % scope.len()];
            selection.push(client);
            let clients = scope.len() as f64;
            selection.weights.push(clients * view.shares[client.index()] / draws.len() as f64);
        }
        Ok(())
    }
}

/// Shares are 0.1 to 0.4, changes 2 to 8. Of all: 8/3·0.1·2 + 4/3·0.2·4 = 1.6, then 8/3·0.2·4 + 4/3·0.3·6.
/// Over-selection takes the first of them. One by one: 4·0.1·2, then 4·0.2·4. Shares of servers are 1/3, 2/3 and 3/7,
/// 4/7: the cloud's rounds are 0.3·8/3 + 0.7·136/21, then 0.3·4 + 0.7·164/21.
#[test]
fn an_unbiased_sampler_under_every_protocol() {
    let six = [6.0, 12.0];
    let rounds = [1.6, 1.6 + 2.133_333 + 2.4];
    let expected = [
        [six, rounds],
        [six, [0.533_333, 0.533_333 + 2.133_333]],
        [six, rounds],
        [six, [0.8, 4.0]],
        [six, [5.333_333, 12.0]],
    ];
    compare(plain, Unbiased, expected);
}

/// Gives each client the most epochs after which it is still online, and in time; closes the round when they end.
#[derive(Clone)]
struct Pacer;

impl Stateful for Pacer {
    fn exchange(&mut self, _: &mut State<'_>) {}
}

/// Duration of a job of so many epochs.
const fn duration(epochs: u32) -> Span {
    Span((2 + 2 * epochs as u64) * 1_000_000_000)
}

impl Policy for Pacer {
    fn capabilities(&self) -> Capabilities {
        Capabilities { bounds: true, forecast: true, ..Capabilities::default() }
    }

    fn can_be_empty(&self) -> bool {
        true
    }

    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        view: &ServerView<'_>,
        _: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        let bounds = view.bounds.unwrap();
        for &client in ask.available.list() {
            let fits = |epochs: &u32| {
                let span = duration(*epochs);
                let is_in_time = bounds.deadline.is_none_or(|deadline| span <= deadline);
                is_in_time && view.forecast(client, ask.now, ask.now + span).unwrap()
            };
            let most = (1..=bounds.most_epochs.unwrap()).rev().find(fits);
            if let (Some(epochs), true) = (most, selection.len() < ask.most) {
                selection.push(client);
                selection.work.push(epochs);
            }
        }
        let longest = selection.work.iter().map(|&epochs| duration(epochs)).max();
        selection.deadline = longest.filter(|_| bounds.deadline_least.is_some());
        Ok(())
    }
}

/// Client 0 is always there, client 1 until 7 s, client 2 until 5 s and from 9 s, client 3 from 12 s.
const THERE: &str = "client,start_s,end_s\na,0,100\nb,0,7\nb,50,100\nc,0,5\nc,9,100\nd,12,100\n";

/// Epochs are 6, 2 and 1 at 0 s, by data size (6 + 2·4 + 3·3)/6; at 14 s client 1 is away: (6 + 3·18 + 4·24)/8.
/// Under the deadline of 10 s they are 4, 2, 1, then 4 and 4 of clients 0 and 2. Over-selection takes client 2 at 4 s;
/// then clients 1 and 2 would go too soon. Servers: (6 + 8)/3 and 3; then 6 and (54 + 96)/7.
#[test]
fn a_pacer_under_every_protocol() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("there.csv"), THERE).unwrap();
    let base: &Path = folder.path();
    let more = "[population.availability.trace]\nfile = \"there.csv\"\nwindow = \"100 s\"\n\
                [population.forecast]\nhorizon = \"1 h\"\naccuracy = 1.0\n[training]";
    let text = changed(FOUR, "[training]", more);
    let world = |protocol: &str| {
        let experiment = super::experiment_of(&format!("{text}{protocol}"), base);
        experiment.world(0, 1, &fedgenie::task::DataCache::default()).unwrap()
    };
    let expected = [
        [[14.0, 28.0], [23.0 / 6.0, 23.0 / 6.0 + 19.5]],
        [[4.0, 18.0], [3.0, 9.0]],
        [[10.0, 20.0], [3.5, 13.5]],
        [[14.0, 28.0], [6.0, 12.0]],
        [[14.0, 28.0], [3.5, 20.3]],
    ];
    compare(world, Pacer, expected);
}

/// The value of a subset, by its clients.
type Worth = Vec<(Vec<u32>, f64)>;

/// Selects two clients, and from then on the one whose update alone was worth most; looks at the model's layout first.
#[derive(Clone, Default)]
struct Chooser {
    best: Option<u32>,
    worth: Arc<Mutex<Worth>>,
    layout: Arc<Mutex<Vec<(String, usize)>>>,
}

impl Stateful for Chooser {
    fn exchange(&mut self, state: &mut State<'_>) {
        state.field(&mut self.best);
    }
}

impl Policy for Chooser {
    fn capabilities(&self) -> Capabilities {
        Capabilities { layout: true, subsets: true, ..Capabilities::default() }
    }

    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        view: &ServerView<'_>,
        _: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        let segments = view.layout.unwrap().segments().iter();
        *self.layout.lock().unwrap() = segments.map(|segment| (segment.name.clone(), segment.len)).collect();
        match self.best {
            Some(best) => selection.push(ClientId(best)),
            None => selection.extend(ask.available.scope().iter().take(ask.most.min(2))),
        }
        Ok(())
    }

    fn judge(&mut self, subsets: &Subsets<'_>) -> Result<(), Failure> {
        let clients = subsets.clients();
        let mut worth = self.worth.lock().unwrap();
        let mut of = |members: &[ClientId]| {
            let value = subsets.quality(members);
            worth.push((members.iter().map(|client| client.0).collect(), value));
            value
        };
        of(&[]);
        of(clients);
        let single: Vec<(ClientId, f64)> = clients.iter().map(|&client| (client, of(&[client]))).collect();
        self.best = single.iter().max_by(|one, other| one.1.total_cmp(&other.1)).map(|(client, _)| client.0);
        Ok(())
    }

    fn observe(&mut self, feedback: &Feedback<'_>) -> Result<(), Failure> {
        if let Feedback::Round(report) = feedback {
            assert!(report.selected.len() <= 2);
        }
        Ok(())
    }
}

/// The first two clients move the model by 2 and 4, together by 10/3; the second one is closer to 10. Over-selection
/// and one by one know the first alone. Of servers' models 2, 4 and 6, 8, the second ones are closer: 0.3·10/3 +
/// 0.7·50/7, then 0.3·4 + 0.7·8 more.
#[test]
fn a_chooser_under_every_protocol() {
    let six = [6.0, 12.0];
    let rounds = [10.0 / 3.0, 10.0 / 3.0 + 4.0];
    let expected = [[six, rounds], [six, [2.0, 4.0]], [six, rounds], [six, [2.0, 4.0]], [six, [6.0, 12.8]]];
    compare(plain, Chooser::default(), expected);
    let chooser = Chooser::default();
    play_in(&plain(PROTOCOLS[0]), &source(chooser.clone()), 2).unwrap();
    assert_eq!(*chooser.layout.lock().unwrap(), [("weight".to_owned(), 1)]);
    let both = 10.0 / 3.0;
    let expected: [(&[u32], f64); 7] = [
        (&[], -10.0),
        (&[0, 1], both - 10.0),
        (&[0], -8.0),
        (&[1], -6.0),
        (&[], both - 10.0),
        (&[1], both - 6.0),
        (&[1], both - 6.0),
    ];
    let worth = chooser.worth.lock().unwrap();
    for ((members, value), (clients, by_hand)) in worth.iter().zip(expected) {
        assert!(members == clients && (value - by_hand).abs() < 1e-5, "{members:?} {value}, by hand {by_hand}");
    }
}

/// Weights, staleness and the model that a late update counts from: see `weights`. The quality of all is that of the
/// new model under `average`.
#[test]
fn subsets_count_with_their_weights_and_ages() {
    #[derive(Clone)]
    struct Late(super::Told, Arc<Mutex<Worth>>);
    impl Stateful for Late {
        fn exchange(&mut self, _: &mut State<'_>) {}
    }
    impl Policy for Late {
        fn capabilities(&self) -> Capabilities {
            Capabilities { subsets: true, ..Capabilities::default() }
        }
        fn select(
            &mut self,
            ask: &SelectionRequest<'_>,
            view: &ServerView<'_>,
            rng: &mut PolicyRng<'_>,
            selection: &mut Selection,
        ) -> Result<(), Failure> {
            self.0.select(ask, view, rng, selection)?;
            Ok(())
        }
        fn judge(&mut self, subsets: &Subsets<'_>) -> Result<(), Failure> {
            let one = |members: &[ClientId]| {
                (members.iter().map(|client| client.0).collect::<Vec<_>>(), subsets.quality(members))
            };
            let singles = subsets.clients().iter().map(|client| one(&[*client]));
            self.1.lock().unwrap().extend(singles.chain([one(subsets.clients())]));
            Ok(())
        }
    }
    let late = "late = { carry = { staleness = { polynomial = { exponent = 1.0 } } } }\n";
    let first = super::decision(&[0, 1], &[0.5, 0.25], &[1, 3], Some(5.0));
    let second = super::decision(&[2], &[1.0], &[1], None);
    let worth = Arc::new(Mutex::new(Vec::new()));
    let decisions = vec![first, second];
    let told = super::Told { decisions, can_be_empty: false, capabilities: Capabilities::default() };
    play_in(&plain(&format!("{DEADLINE}{late}")), &source(Late(told, worth.clone())), 2).unwrap();
    let expected: [(&[u32], f64); 5] =
        [(&[0], -9.5), (&[0], -9.5), (&[1], 1.25 - 10.0), (&[2], 3.5 - 10.0), (&[1, 2], 4.25 - 10.0)];
    let worth = worth.lock().unwrap();
    for ((members, value), (clients, by_hand)) in worth.iter().zip(expected) {
        assert!(members == clients && (value - by_hand).abs() < 1e-5, "{members:?} {value}, by hand {by_hand}");
    }
}
