//! The derive macro for components whose state can be saved and loaded.
//!
//! `fedgenie_core::state` exports it beside the trait, as `fedgenie::state` does for programs that use the facade.

mod attributes;
mod expand;

use proc_macro::TokenStream;

/// Derives `Stateful`: the state of a component is the state of all its fields, in the order of their declaration.
///
/// # Definition
/// A field belongs to the state unless an attribute says otherwise. So a new field is saved without another line, and
/// it does not compile if its type cannot be saved. An enum saves the number of its variant before the fields of the
/// variant; loading makes the variant with `Default` in each field, then loads the fields.
///
/// ```
/// use fedgenie_core::state::{State, Stateful};
///
/// #[derive(Stateful, Debug, Default, PartialEq)]
/// enum Stage {
///     #[default]
///     Idle,
///     Waiting { seconds: f64 },
///     Done(u32, bool),
/// }
///
/// #[derive(Stateful, Debug, Default, PartialEq)]
/// struct Server {
///     stage: Stage,
///     counts: Vec<u32>,
/// }
///
/// let mut server = Server { stage: Stage::Waiting { seconds: 2.5 }, counts: vec![3, 4] };
/// let bytes = State::save(&mut server).unwrap();
/// let mut loaded = Server::default();
/// State::load(&mut loaded, &bytes).unwrap();
/// assert_eq!(loaded, server);
/// ```
///
/// # Attributes of a field
///
/// | attribute | the field |
/// |---|---|
/// | `#[state(skip = "reason")]` | is not saved; loading leaves it as it is |
/// | `#[state(empty = "reason")]` | is not saved; it is empty whenever the component is saved, or saving panics |
/// | `#[state(each)]` | has as many items as that of a new component: each is saved, their number is not |
/// | `#[state(each(each))]` | has items of this kind |
/// | `#[state(with = path)]` | is saved by `path(field: &mut Type, state: &mut State<'_>)` |
///
/// `each` serves lists, arrays, and an `Option` whose presence follows from the scenario.
///
/// ```
/// use fedgenie_core::state::{State, StateError, Stateful};
///
/// #[derive(Stateful)]
/// struct Means {
///     #[state(skip = "from the scenario")]
///     rate: f64,
///     /// Of every client.
///     #[state(each)]
///     means: Vec<f64>,
///     /// Of every client's last rounds.
///     #[state(each(each))]
///     last: Vec<[f64; 2]>,
///     #[state(empty = "updates are averaged when their round closes")]
///     updates: Vec<f64>,
///     #[state(with = fraction)]
///     share: (u32, u32),
/// }
///
/// /// The denominator follows from the scenario.
/// fn fraction(share: &mut (u32, u32), state: &mut State<'_>) {
///     state.field(&mut share.0);
///     state.require(share.0 <= share.1);
/// }
///
/// let new = |rate| Means { rate, means: vec![0.0; 2], last: vec![[0.0; 2]; 2], updates: vec![], share: (0, 7) };
/// let mut means = Means { means: vec![0.5, 1.5], share: (3, 7), ..new(0.1) };
/// let bytes = State::save(&mut means).unwrap();
/// assert_eq!(bytes.len(), 2 * 8 + 4 * 8 + 4);
///
/// let mut loaded = new(0.9);
/// State::load(&mut loaded, &bytes).unwrap();
/// assert_eq!((loaded.rate, loaded.means, loaded.share), (0.9, vec![0.5, 1.5], (3, 7)));
///
/// // Of another number of clients.
/// let mut other = Means { means: vec![0.0], ..new(0.1) };
/// assert!(State::load(&mut other, &bytes).is_err());
/// ```
///
/// # Attributes of a type
///
/// | attribute | the type |
/// |---|---|
/// | `#[state(check = path)]` | refuses loaded bytes unless `path(&Self) -> bool` holds |
/// | `#[state(fixed)]` | is an enum whose variant follows from the scenario: the fields are saved, the variant is not |
///
/// ```
/// use fedgenie_core::state::{State, StateError, Stateful};
///
/// #[derive(Stateful)]
/// #[state(check = Self::is_sound)]
/// struct Share(f64);
///
/// impl Share {
///     fn is_sound(&self) -> bool {
///         (0.0..=1.0).contains(&self.0)
///     }
/// }
///
/// let bytes = State::save(&mut Share(7.0)).unwrap();
/// assert!(matches!(State::load(&mut Share(0.0), &bytes), Err(StateError::Damaged)));
///
/// #[derive(Stateful)]
/// #[state(fixed)]
/// enum Estimator {
///     Mean { sum: f64, count: u32 },
///     Last(#[state(each)] Vec<f64>),
/// }
///
/// let bytes = State::save(&mut Estimator::Last(vec![0.5, 0.25])).unwrap();
/// let mut loaded = Estimator::Last(vec![0.0; 2]);
/// State::load(&mut loaded, &bytes).unwrap();
/// assert!(matches!(loaded, Estimator::Last(last) if last == [0.5, 0.25]));
/// ```
///
/// # What does not compile
/// A field without a reason why it is not saved:
///
/// ```compile_fail
/// use fedgenie_core::state::Stateful;
///
/// #[derive(Stateful)]
/// struct Policy {
///     #[state(skip)]
///     rate: f64,
/// }
/// ```
///
/// An empty reason:
///
/// ```compile_fail
/// use fedgenie_core::state::Stateful;
///
/// #[derive(Stateful)]
/// struct Policy {
///     #[state(skip = " ")]
///     rate: f64,
/// }
/// ```
///
/// A field that cannot be saved, without an attribute:
///
/// ```compile_fail
/// use fedgenie_core::state::Stateful;
///
/// #[derive(Stateful)]
/// struct Policy {
///     solver: Box<dyn Fn()>,
/// }
/// ```
///
/// An unknown attribute:
///
/// ```compile_fail
/// use fedgenie_core::state::Stateful;
///
/// #[derive(Stateful)]
/// struct Policy {
///     #[state(ignore = "from the scenario")]
///     rate: f64,
/// }
/// ```
///
/// A union:
///
/// ```compile_fail
/// use fedgenie_core::state::Stateful;
///
/// #[derive(Stateful)]
/// union Number {
///     wide: u64,
///     narrow: u32,
/// }
/// ```
#[proc_macro_derive(Stateful, attributes(state))]
pub fn stateful(input: TokenStream) -> TokenStream {
    expand::expand(input.into(), "::fedgenie_core::state").into()
}

/// The same derive, for programs that name this project's crates by its facade alone; `fedgenie::state` exports it.
#[proc_macro_derive(StatefulOfFacade, attributes(state))]
pub fn stateful_of_facade(input: TokenStream) -> TokenStream {
    expand::expand(input.into(), "::fedgenie::state").into()
}
