//! Derived states: saved fields, loaded fields, refusals.

use fedgenie_core::state::{State, StateError, Stateful};
use std::collections::{BTreeMap, VecDeque};

/// Saves a component, loads the bytes into another one, and gives both back with the bytes.
fn round_trip<T: Stateful>(mut saved: T, mut loaded: T) -> (T, T, Vec<u8>) {
    let bytes = State::save(&mut saved).expect("nothing fails");
    State::load(&mut loaded, &bytes).expect("what was saved can be loaded");
    assert_eq!(State::save(&mut loaded).expect("nothing fails"), bytes, "what was loaded is saved alike");
    (saved, loaded, bytes)
}

mod before {
    #[derive(Default, fedgenie_core::state::Stateful)]
    pub struct Policy {
        pub turns: u32,
    }
}

/// The same type with a field more, and without any other change.
mod after {
    #[derive(Default, fedgenie_core::state::Stateful)]
    pub struct Policy {
        pub turns: u32,
        pub rewards: Vec<f64>,
    }
}

#[test]
fn a_new_field_is_saved_without_any_other_change() {
    let (_, loaded, bytes) = round_trip(before::Policy { turns: 3 }, before::Policy::default());
    assert_eq!((loaded.turns, &bytes[..]), (3, &[3, 0, 0, 0][..]));
    let (_, loaded, bytes) = round_trip(after::Policy { turns: 3, rewards: vec![0.5] }, after::Policy::default());
    assert_eq!((loaded.turns, loaded.rewards), (3, vec![0.5]));
    let by_hand = [&[3, 0, 0, 0][..], &1_u64.to_le_bytes(), &0.5_f64.to_le_bytes()].concat();
    assert_eq!(bytes, by_hand, "fields in the order of their declaration");
}

/// The implementation as a person would write it.
struct ByHand<'a>(&'a mut Server<'static>);

impl Stateful for ByHand<'_> {
    fn exchange(&mut self, state: &mut State<'_>) {
        let Server { name: _, stage, counts, memories, queues, updates: _, budget } = &mut *self.0;
        state.field(stage);
        counts.iter_mut().for_each(|count| state.field(count));
        for memory in memories {
            state.fields(memory);
        }
        state.field(queues);
        fraction(budget, state);
    }
}

#[derive(Clone, Debug, Default, PartialEq, Stateful)]
enum Stage {
    #[default]
    Idle,
    Waiting {
        seconds: f64,
        #[state(skip = "a buffer")]
        scores: Vec<f64>,
    },
    Done(u32, bool),
}

#[derive(Clone, Debug, PartialEq, Stateful)]
#[state(check = Self::is_sound)]
struct Server<'a> {
    #[state(skip = "from the scenario")]
    name: &'a str,
    stage: Stage,
    #[state(each)]
    counts: Option<u32>,
    #[state(each(each))]
    memories: Vec<Vec<f32>>,
    queues: BTreeMap<u32, VecDeque<Stage>>,
    #[state(empty = "updates are averaged when their round closes")]
    updates: Vec<u8>,
    #[state(with = fraction)]
    budget: (u32, u32),
}

fn fraction(budget: &mut (u32, u32), state: &mut State<'_>) {
    state.field(&mut budget.0);
}

impl Server<'_> {
    fn new(name: &'static str) -> Server<'static> {
        Server {
            name,
            stage: Stage::Idle,
            counts: Some(0),
            memories: vec![vec![0.0; 2], Vec::new()],
            queues: BTreeMap::new(),
            updates: Vec::new(),
            budget: (0, 9),
        }
    }

    fn is_sound(&self) -> bool {
        self.budget.0 <= self.budget.1
    }
}

fn busy() -> Server<'static> {
    Server {
        stage: Stage::Waiting { seconds: 2.5, scores: vec![1.0] },
        counts: Some(7),
        memories: vec![vec![0.5, -0.0], Vec::new()],
        queues: BTreeMap::from([(3, VecDeque::from([Stage::Done(4, true), Stage::Idle]))]),
        budget: (9, 9),
        ..Server::new("first")
    }
}

#[test]
fn enums_lists_and_lifetimes_come_back() {
    let (saved, loaded, bytes) = round_trip(busy(), Server::new("second"));
    let stage = Stage::Waiting { seconds: 2.5, scores: Vec::new() };
    assert_eq!(loaded, Server { name: "second", stage, ..saved });
    assert_eq!(bytes, State::save(&mut ByHand(&mut busy())).unwrap());
    // Variants, numbers, the list of queues with its one key and length, two variants in it, the numerator.
    assert_eq!(bytes.len(), (1 + 8) + 4 + 2 * 4 + (8 + 4 + 8) + (1 + 4 + 1) + 1 + 4);
}

#[test]
fn what_is_damaged_is_refused() {
    let bytes = State::save(&mut busy()).unwrap();
    for length in 0..bytes.len() {
        let found = State::load(&mut Server::new("other"), &bytes[..length]);
        assert!(matches!(found, Err(StateError::Damaged)), "{length} bytes");
    }
    let with = |place: usize, byte: u8| {
        let mut bytes = bytes.clone();
        bytes[place] = byte;
        State::load(&mut Server::new("other"), &bytes)
    };
    // No such variant; a numerator above the denominator.
    assert!(matches!(with(0, 3), Err(StateError::Damaged)));
    assert!(matches!(with(bytes.len() - 4, 10), Err(StateError::Damaged)));
    with(bytes.len() - 4, 8).unwrap();
    // Another shape.
    let mut other = Server { counts: None, ..Server::new("other") };
    assert!(State::load(&mut other, &bytes).is_err());
}

#[test]
#[should_panic(expected = "updates are averaged when their round closes")]
fn what_has_to_be_empty_is_looked_at() {
    let _ = State::save(&mut Server { updates: vec![1], ..busy() });
}

#[derive(Debug, PartialEq, Stateful)]
struct Heap<K, const N: usize> {
    entries: Vec<Entry<K>>,
    #[state(each)]
    best: [K; N],
    #[state(skip = "a mark of the type")]
    mark: std::marker::PhantomData<fn() -> NotSaved>,
}

#[derive(Debug, Default, PartialEq, Stateful)]
struct Entry<K>(K, u8);

/// Not a state: a parameter needs no bound if no saved field has its type.
#[derive(Debug, PartialEq)]
struct NotSaved;

#[derive(Debug, Default, PartialEq, Stateful)]
struct File<W> {
    #[state(skip = "the file itself")]
    out: Option<W>,
    bytes: u64,
}

#[derive(Debug, PartialEq, Stateful)]
enum Either<A, B> {
    One(A),
    Other { of: Option<B> },
}

#[derive(Debug, Default, PartialEq, Stateful)]
struct Nothing;

#[test]
fn type_parameters_need_what_their_fields_need() {
    let new = || Heap { entries: Vec::new(), best: [0, 0], mark: std::marker::PhantomData };
    let heap = Heap { entries: vec![Entry(3_u64, 1), Entry(5, 2)], best: [3, 5], ..new() };
    let (saved, loaded, bytes) = round_trip(heap, new());
    assert_eq!((saved, bytes.len()), (loaded, 8 + 2 * 9 + 2 * 8));

    let (_, loaded, bytes) = round_trip(File { out: Some(NotSaved), bytes: 3 }, File { out: None, bytes: 0 });
    assert_eq!((loaded, bytes.len()), (File { out: None, bytes: 3 }, 8));

    let (saved, loaded, _) = round_trip(Either::Other { of: Some(2_u8) }, Either::One(0.5_f64));
    assert_eq!(saved, loaded);
    let (saved, loaded, _) = round_trip(Either::One(0.5), Either::<f64, u8>::Other { of: None });
    assert_eq!(saved, loaded);

    assert!(State::save(&mut Nothing).unwrap().is_empty());
}

#[derive(Debug, PartialEq, Stateful)]
#[state(fixed)]
enum Estimator {
    Mean { sum: f64, count: u32 },
    Last(Vec<f64>),
}

#[test]
fn a_fixed_variant_is_not_saved() {
    let new = Estimator::Mean { sum: 0.0, count: 0 };
    let (saved, loaded, bytes) = round_trip(Estimator::Mean { sum: 0.5, count: 3 }, new);
    assert_eq!((saved, bytes.len()), (loaded, 8 + 4));
    let mut other = Estimator::Last(Vec::new());
    assert!(State::load(&mut other, &bytes).is_err());
    assert!(matches!(other, Estimator::Last(_)));
}

/// Names of a program that the implementation uses too.
#[derive(Debug, Default, PartialEq, Stateful)]
struct Names {
    state: u8,
    field_0: u8,
    item: u8,
    #[state(each)]
    variant: Vec<u8>,
}

#[test]
fn names_of_fields_do_not_meet_names_of_the_implementation() {
    let names = Names { state: 1, field_0: 2, item: 3, variant: vec![4] };
    let (saved, loaded, bytes) = round_trip(names, Names { variant: vec![0], ..Names::default() });
    assert_eq!((saved, bytes), (loaded, vec![1, 2, 3, 4]));
}
