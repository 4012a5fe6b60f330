//! Saving and loading the memory of a component: one list of fields serves both ways.
//!
//! # Definition
//! The state of a component is the state of its fields, in the order of their declaration: `#[derive(Stateful)]` saves
//! and loads all but those that carry an attribute with a reason. [`State::field`] appends the bytes of a field while
//! saving, and reads them while loading. Numbers are little endian, floats by their bits, lists with their length
//! before them. A state is bound to the version of the program that saved it; it has no version of its own.
//!
//! # Example
//! ```
//! use fedgenie_core::state::{State, Stateful};
//!
//! #[derive(Default, Stateful)]
//! struct Mean {
//!     sum: f64,
//!     counts: Vec<u32>,
//!     #[state(skip = "buffer of one selection")]
//!     scores: Vec<f64>,
//! }
//!
//! let bytes = State::save(&mut Mean { sum: 0.5, counts: vec![1, 2], scores: vec![3.0] }).unwrap();
//! let mut loaded = Mean::default();
//! State::load(&mut loaded, &bytes).unwrap();
//! assert_eq!((loaded.sum, loaded.counts, loaded.scores), (0.5, vec![1, 2], vec![]));
//! assert!(State::load(&mut Mean::default(), &bytes[1..]).is_err());
//! ```
//!
//! Where the derive does not fit, an implementation by hand names all fields in a pattern, so that a new field does not
//! compile before it is saved or left out.

pub use fedgenie_derive::Stateful;

use crate::failure::Failure;
use crate::id::{ClientId, EdgeId, JobNumber, Round, Turn};
use crate::time::{Span, TotalTime, VirtualTime};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// A component that cannot be saved, or not be loaded from these bytes.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// They end too early, or say something impossible.
    #[error("the saved state ends too early or is damaged")]
    Damaged,
    /// Some are left.
    #[error("the saved state has {0} bytes too many")]
    TooLong(usize),
    /// The component itself failed: see [`State::fail`].
    #[error("{0}")]
    Failed(#[source] Failure),
}

/// A component's state on its way out or in.
#[derive(Debug)]
pub enum State<'a> {
    /// Bytes so far.
    Saving(&'a mut Vec<u8>),
    /// Bytes that are left; none once they did not suffice.
    Loading(Option<&'a [u8]>),
    /// A component failed. Fields are neither saved nor loaded any more.
    Failed(Failure),
}

/// Something that can be saved and loaded. The derive macro of this name writes the implementation.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be saved",
    note = "derive `Stateful` for it, or say why the field is not saved: `#[state(skip = \"reason\")]`"
)]
pub trait Stateful {
    /// Saves or loads all fields that differ from those of a new component, in a fixed order. A component that cannot
    /// do so says it by [`State::fail`].
    fn exchange(&mut self, state: &mut State<'_>);
}

/// Items that others may share, whose number is that of a new component: for `#[state(with = each_shared)]`.
pub fn each_shared<T: Stateful + Clone>(items: &mut Arc<Vec<T>>, state: &mut State<'_>) {
    state.fields(Arc::make_mut(items).as_mut_slice());
}

impl State<'_> {
    /// A component's state as bytes.
    ///
    /// # Errors
    /// If the component [fails](State::fail).
    pub fn save<T: Stateful + ?Sized>(component: &mut T) -> Result<Vec<u8>, StateError> {
        let mut bytes = Vec::new();
        let mut state = State::Saving(&mut bytes);
        component.exchange(&mut state);
        state.saved()?;
        Ok(bytes)
    }

    /// Whether everything was saved.
    ///
    /// # Errors
    /// If a component failed.
    pub fn saved(self) -> Result<(), StateError> {
        match self {
            Self::Failed(failure) => Err(StateError::Failed(failure)),
            Self::Saving(_) | Self::Loading(_) => Ok(()),
        }
    }

    /// A component cannot be saved or loaded, for this reason. The first one counts.
    pub fn fail(&mut self, failure: impl Into<Failure>) {
        if !matches!(self, Self::Failed(_)) {
            *self = Self::Failed(failure.into());
        }
    }

    /// One field, whose failure is told as `told` of it.
    pub fn field_of<T: Stateful + ?Sized>(&mut self, value: &mut T, told: impl FnOnce(Failure) -> Failure) {
        let has_failed = matches!(self, Self::Failed(_));
        self.field(value);
        if !has_failed {
            self.told(told);
        }
    }

    /// Tells a failure so far, if there is one, as `told` of it.
    pub fn told(&mut self, told: impl FnOnce(Failure) -> Failure) {
        if let Self::Failed(failure) = self {
            *failure = told(std::mem::replace(failure, "".into()));
        }
    }

    /// Loads a saved state into a new component.
    ///
    /// # Errors
    /// If the bytes are of another component, or the component fails. It is unusable then.
    pub fn load<T: Stateful + ?Sized>(component: &mut T, bytes: &[u8]) -> Result<(), StateError> {
        let mut state = State::Loading(Some(bytes));
        component.exchange(&mut state);
        state.ended()
    }

    /// Whether everything was loaded, and nothing is left.
    ///
    /// # Errors
    /// If something was refused, bytes are left, or a component failed.
    pub fn ended(self) -> Result<(), StateError> {
        match self {
            Self::Loading(Some([])) => Ok(()),
            Self::Loading(Some(rest)) => Err(StateError::TooLong(rest.len())),
            Self::Failed(failure) => Err(StateError::Failed(failure)),
            Self::Saving(_) | Self::Loading(None) => Err(StateError::Damaged),
        }
    }

    /// One field.
    pub fn field<T: Stateful + ?Sized>(&mut self, value: &mut T) {
        value.exchange(self);
    }

    /// Whether fields are read.
    pub const fn is_loading(&self) -> bool {
        matches!(self, Self::Loading(_))
    }

    /// The next bytes, out or in; zeros where there are none left.
    fn bytes<const N: usize>(&mut self, value: [u8; N]) -> [u8; N] {
        match self {
            Self::Saving(bytes) => {
                bytes.extend_from_slice(&value);
                value
            }
            Self::Loading(rest) => match rest.and_then(|bytes| bytes.split_first_chunk::<N>()) {
                Some((value, after)) => {
                    *rest = Some(after);
                    *value
                }
                None => {
                    *rest = None;
                    [0; N]
                }
            },
            Self::Failed(_) => value,
        }
    }

    /// Items whose number is that of a new component.
    pub fn fields<T: Stateful>(&mut self, items: &mut [T]) {
        items.iter_mut().for_each(|item| self.field(item));
    }

    /// One of a few values, saved as its index among them.
    pub fn choice<T: Copy + PartialEq>(&mut self, value: &mut T, all: &[T]) {
        let mut place = all.iter().position(|known| known == value).unwrap_or(all.len()) as u64;
        self.field(&mut place);
        match all.get(place as usize) {
            Some(known) => *value = *known,
            None => self.require(false),
        }
    }

    /// Refuses the loaded bytes unless this holds. Saved state always satisfies it.
    pub fn require(&mut self, holds: bool) {
        if let Self::Loading(rest) = self
            && !holds
        {
            *rest = None;
        }
    }

    /// Whether loading was refused, the bytes ended too early, or a component failed.
    pub const fn is_refused(&self) -> bool {
        matches!(self, Self::Loading(None) | Self::Failed(_))
    }

    /// The length of a list whose items have at least one byte; 0 if there cannot be so many.
    pub fn length(&mut self, length: usize) -> usize {
        let mut length = length as u64;
        self.field(&mut length);
        match self {
            Self::Loading(rest)
                if rest.is_none_or(|rest| rest.len() as u64 <= length.saturating_sub(1)) && length > 0 =>
            {
                *rest = None;
                0
            }
            _ => length as usize,
        }
    }
}

macro_rules! numbers {
    ($($number:ty),+) => {
        $(impl Stateful for $number {
            fn exchange(&mut self, state: &mut State<'_>) {
                *self = Self::from_le_bytes(state.bytes(self.to_le_bytes()));
            }
        })+
    };
}
numbers!(u8, u32, u64, u128, i64, f32, f64);

macro_rules! wrapped {
    ($($wrapped:ty),+) => {
        $(impl Stateful for $wrapped {
            fn exchange(&mut self, state: &mut State<'_>) {
                state.field(&mut self.0);
            }
        })+
    };
}
wrapped!(ClientId, EdgeId, JobNumber, Round, Turn, Span, TotalTime, VirtualTime);

impl Stateful for usize {
    fn exchange(&mut self, state: &mut State<'_>) {
        let mut wide = *self as u64;
        state.field(&mut wide);
        *self = wide as Self;
    }
}

impl Stateful for bool {
    fn exchange(&mut self, state: &mut State<'_>) {
        let mut byte = u8::from(*self);
        state.field(&mut byte);
        *self = byte != 0;
    }
}

impl<T: Stateful + Default> Stateful for Option<T> {
    fn exchange(&mut self, state: &mut State<'_>) {
        let mut is_some = self.is_some();
        state.field(&mut is_some);
        if state.is_loading() {
            *self = is_some.then(T::default);
        }
        if let Some(value) = self {
            state.field(value);
        }
    }
}

impl<T: Stateful + Default> Stateful for Vec<T> {
    fn exchange(&mut self, state: &mut State<'_>) {
        let length = state.length(self.len());
        if !state.is_loading() {
            self.iter_mut().for_each(|item| state.field(item));
            return;
        }
        self.clear();
        // Memory is taken for bytes that are there, not for the length that the file claims.
        for _ in 0..length {
            let mut item = T::default();
            state.field(&mut item);
            if state.is_refused() {
                return;
            }
            self.push(item);
        }
    }
}

impl<K: Stateful + Default + Ord, V: Stateful + Default> Stateful for BTreeMap<K, V> {
    fn exchange(&mut self, state: &mut State<'_>) {
        let mut pairs: Vec<(K, V)> = std::mem::take(self).into_iter().collect();
        state.field(&mut pairs);
        let ascend = |pair: &[(K, V)]| pair[0].0 < pair[1].0;
        state.require(pairs.windows(2).all(ascend));
        *self = pairs.into_iter().collect();
    }
}

impl<K: Stateful + Default + Ord> Stateful for BTreeSet<K> {
    fn exchange(&mut self, state: &mut State<'_>) {
        let mut items: Vec<K> = std::mem::take(self).into_iter().collect();
        state.field(&mut items);
        state.require(items.is_sorted());
        *self = items.into_iter().collect();
    }
}

impl Stateful for String {
    fn exchange(&mut self, state: &mut State<'_>) {
        let mut bytes = std::mem::take(self).into_bytes();
        state.field(&mut bytes);
        match Self::from_utf8(bytes) {
            Ok(text) => *self = text,
            Err(_) => state.require(false),
        }
    }
}

impl Stateful for Cow<'_, str> {
    fn exchange(&mut self, state: &mut State<'_>) {
        let mut text = std::mem::take(self).into_owned();
        state.field(&mut text);
        *self = text.into();
    }
}

impl<T: Stateful + Default> Stateful for VecDeque<T> {
    fn exchange(&mut self, state: &mut State<'_>) {
        let mut items = Vec::from(std::mem::take(self));
        state.field(&mut items);
        *self = items.into();
    }
}

impl<T: Stateful + ?Sized> Stateful for Box<T> {
    fn exchange(&mut self, state: &mut State<'_>) {
        state.field(&mut **self);
    }
}

impl Stateful for Arc<[f32]> {
    fn exchange(&mut self, state: &mut State<'_>) {
        let length = state.length(self.len());
        if state.is_loading() {
            *self = (0..length).map(|_| f32::from_le_bytes(state.bytes([0; 4]))).collect();
        } else {
            self.iter().for_each(|&(mut number)| state.field(&mut number));
        }
    }
}

impl<T: Stateful, const N: usize> Stateful for [T; N] {
    fn exchange(&mut self, state: &mut State<'_>) {
        self.iter_mut().for_each(|item| state.field(item));
    }
}

impl<A: Stateful, B: Stateful> Stateful for (A, B) {
    fn exchange(&mut self, state: &mut State<'_>) {
        state.field(&mut self.0);
        state.field(&mut self.1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Debug, Default, PartialEq, Stateful)]
    struct Everything {
        numbers: (f64, f32),
        list: Vec<Option<(u32, bool)>>,
        more: [Vec<u8>; 2],
        time: VirtualTime,
        turn: Turn2,
        name: String,
        model: Arc<[f32]>,
        wide: u128,
        #[state(with = choose)]
        chosen: char,
        places: BTreeMap<u32, String>,
        seen: BTreeSet<(u32, u32)>,
        text: Cow<'static, str>,
        queue: VecDeque<u32>,
        boxed: Box<u32>,
    }

    #[derive(Clone, Debug, Default, PartialEq, Stateful)]
    struct Turn2(u64);

    fn choose(chosen: &mut char, state: &mut State<'_>) {
        state.choice(chosen, &['\0', 'a', 'b']);
    }

    fn everything() -> Everything {
        Everything {
            numbers: (f64::NEG_INFINITY, -0.0),
            list: vec![None, Some((7, true)), Some((0, false))],
            more: [vec![1, 2, 3], Vec::new()],
            time: VirtualTime(5),
            turn: Turn2(u64::MAX),
            name: "näme".to_owned(),
            model: [0.5, f32::NEG_INFINITY].into(),
            wide: u128::MAX - 7,
            chosen: 'b',
            places: BTreeMap::from([(3, "three".to_owned()), (5, String::new())]),
            seen: BTreeSet::from([(1, 2), (1, 3)]),
            text: Cow::Borrowed("borrowed"),
            queue: VecDeque::from([5, 6]),
            boxed: Box::new(7),
        }
    }

    #[test]
    fn what_is_saved_is_loaded() {
        let bytes = State::save(&mut everything()).unwrap();
        let mut loaded = Everything { list: vec![None; 9], ..Everything::default() };
        State::load(&mut loaded, &bytes).unwrap();
        assert_eq!(loaded, everything());
        assert_eq!(State::save(&mut loaded).unwrap(), bytes);
    }

    #[test]
    fn damaged_states_are_refused() {
        let bytes = State::save(&mut everything()).unwrap();
        for length in 0..bytes.len() {
            let found = State::load(&mut Everything::default(), &bytes[..length]);
            assert!(matches!(found, Err(StateError::Damaged)), "{length} bytes");
        }
        let longer = [&bytes[..], &[0]].concat();
        assert!(matches!(State::load(&mut Everything::default(), &longer), Err(StateError::TooLong(1))));
        // A length that no memory could hold.
        let mut huge = bytes;
        huge[12..20].fill(0xff);
        assert!(matches!(State::load(&mut Everything::default(), &huge), Err(StateError::Damaged)));
    }

    /// Fails as a component whose disk is full, between two that are saved.
    struct Full(u32);

    impl Stateful for Full {
        fn exchange(&mut self, state: &mut State<'_>) {
            state.field(&mut self.0);
            state.fail(std::io::Error::from(std::io::ErrorKind::StorageFull));
            state.fail("a later reason");
            state.field(&mut self.0);
        }
    }

    #[test]
    fn a_component_that_fails_says_why() {
        let mut parts = (vec![1_u32, 2], (Full(3), vec![Some(4_u32)]));
        let of = |error: StateError| match error {
            StateError::Failed(failure) => failure.downcast_ref::<std::io::Error>().unwrap().kind(),
            other => panic!("{other}"),
        };
        assert_eq!(of(State::save(&mut parts).unwrap_err()), std::io::ErrorKind::StorageFull);
        assert_eq!(of(State::load(&mut parts, &[0; 90]).unwrap_err()), std::io::ErrorKind::StorageFull);
        let mut bytes = Vec::new();
        let mut state = State::Saving(&mut bytes);
        state.field_of(&mut Full(3), |failure| format!("part 3: {failure}").into());
        state.field_of(&mut Full(3), |_| panic!("it has failed before"));
        assert!(state.saved().unwrap_err().to_string().starts_with("part 3: "));
    }
}
