//! The discrete-event kernel: a virtual clock and two stores of pending events. It knows nothing of learning.
//!
//! ```text
//!            schedule, cancel(handle)                 set_timer, clear_timer(id)
//!                     │                                        │
//!              EventQueue (4-ary heap)              timers (priority queue by id)
//!                     └───────────────┬────────────────────────┘
//!                             next() = the smaller key
//!                                     ▼
//!                       clock := key.time, never backwards
//! ```
//!
//! *Order.* Every pending event has the key (time, class, sequence). `class` orders events of the same instant by
//! meaning (the caller documents its classes), `sequence` is the order of scheduling, so that equal events are first
//! in, first out. Keys are unique; nothing depends on the layout of a heap or on a hash.
//!
//! *Two stores.* The flood of phase completions goes to [`EventQueue`], where cancelling costs one counter and the
//! entry is skipped when it surfaces. Events that are known by an id and often moved or withdrawn (deadlines,
//! timeouts, wake-ups) are timers in a `priority_queue::PriorityQueue`, which removes and re-prioritises by id.

mod queue;

pub use queue::{EventQueue, Handle};

use crate::state::{State, Stateful};
use crate::time::VirtualTime;
use priority_queue::PriorityQueue;
use std::cmp::Reverse;
use std::hash::Hash;

/// Where an event stands among all others: earlier time first, then lower class, then earlier scheduling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Stateful)]
pub struct Key {
    /// When the event happens.
    pub time: VirtualTime,
    /// Class in the upper 8 bits, sequence number in the lower 56.
    order: u64,
}

impl Key {
    const SEQUENCE_BITS: u32 = 56;

    fn new(time: VirtualTime, class: u8, sequence: u64) -> Self {
        assert!(sequence >> Self::SEQUENCE_BITS == 0, "a run schedules fewer than 2^56 events");
        Self { time, order: u64::from(class) << Self::SEQUENCE_BITS | sequence }
    }

    /// The class given when the event was scheduled.
    pub const fn class(self) -> u8 {
        (self.order >> Self::SEQUENCE_BITS) as u8
    }
}

impl Ord for Key {
    /// One 128-bit comparison: without branches, which is worth a third of the time of a heap operation.
    #[inline]
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let whole = |key: &Self| u128::from(key.time.0) << 64 | u128::from(key.order);
        whole(self).cmp(&whole(other))
    }
}

impl PartialOrd for Key {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// What [`Kernel::next`] hands out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occurrence<E, T> {
    /// A scheduled event.
    Event(E),
    /// A timer, known by its id; it is no longer set.
    Timer(T),
}

/// The virtual clock and all pending events.
#[derive(Debug, Stateful)]
pub struct Kernel<E, T: Hash + Eq> {
    now: VirtualTime,
    sequence: u64,
    #[state(skip = "from the command line")]
    ties: Ties,
    queue: EventQueue<E>,
    timers: PriorityQueue<T, Reverse<Key>>,
}

impl<E: Copy, T: Hash + Eq> Default for Kernel<E, T> {
    fn default() -> Self {
        Self {
            now: VirtualTime::START,
            sequence: 0,
            ties: Ties::Fifo,
            queue: EventQueue::default(),
            timers: PriorityQueue::new(),
        }
    }
}

/// By key, so that the bytes do not depend on the layout of the heap.
impl<T: Clone + Default + Eq + Hash + Stateful> Stateful for PriorityQueue<T, Reverse<Key>> {
    fn exchange(&mut self, state: &mut State<'_>) {
        let mut list: Vec<(T, Key)> = self.iter().map(|(timer, Reverse(key))| (timer.clone(), *key)).collect();
        list.sort_unstable_by_key(|(_, key)| *key);
        state.field(&mut list);
        if state.is_loading() {
            *self = list.into_iter().map(|(timer, key)| (timer, Reverse(key))).collect();
        }
    }
}

impl<E: Copy, T: Hash + Eq> Kernel<E, T> {
    /// An empty kernel that breaks ties in a certain way.
    pub fn with_ties(ties: Ties) -> Self {
        Self { ties, ..Self::default() }
    }

    /// The instant of the event handed out last.
    pub const fn now(&self) -> VirtualTime {
        self.now
    }

    /// Number of events and timers that will still fire.
    pub fn pending(&self) -> usize {
        self.queue.len() + self.timers.len()
    }

    /// Schedules an event, which [`Kernel::cancel`] can withdraw. O(log n).
    ///
    /// # Panics
    /// If `time` lies before now.
    pub fn schedule(&mut self, time: VirtualTime, class: u8, event: E) -> Handle {
        let key = self.next_key(time, class);
        self.queue.push(key, event)
    }

    /// Withdraws a scheduled event; false if it has already fired or was withdrawn before. O(1), amortised.
    pub fn cancel(&mut self, handle: Handle) -> bool {
        self.queue.cancel(handle)
    }

    /// Sets the timer `id`, moving it if it was already set. O(log n).
    ///
    /// # Panics
    /// If `time` lies before now.
    pub fn set_timer(&mut self, id: T, time: VirtualTime, class: u8) {
        let key = self.next_key(time, class);
        self.timers.push(id, Reverse(key));
    }

    /// Clears the timer `id`; false if it was not set. O(log n).
    pub fn clear_timer(&mut self, id: &T) -> bool {
        self.timers.remove(id).is_some()
    }

    /// The instant of the next event or timer.
    pub fn peek(&mut self) -> Option<VirtualTime> {
        self.peek_key().map(|key| key.time)
    }

    fn peek_key(&mut self) -> Option<Key> {
        let event = self.queue.peek();
        let timer = self.timers.peek().map(|(_, Reverse(key))| *key);
        match (event, timer) {
            (Some(event), Some(timer)) => Some(event.min(timer)),
            (event, timer) => event.or(timer),
        }
    }

    /// Advances the clock to the next event or timer and hands it out. O(log n).
    #[expect(clippy::should_implement_trait, reason = "a kernel is no iterator: events are scheduled between calls")]
    pub fn next(&mut self) -> Option<Occurrence<E, T>> {
        let timer = self.timers.peek().map(|(_, Reverse(key))| *key);
        let timer_is_first = timer.is_some_and(|timer| self.queue.peek().is_none_or(|event| timer < event));
        let (key, occurrence) = if timer_is_first {
            self.timers.pop().map(|(id, Reverse(key))| (key, Occurrence::Timer(id)))?
        } else {
            self.queue.pop().map(|(key, event)| (key, Occurrence::Event(event)))?
        };
        assert!(key.time >= self.now, "virtual time never goes back");
        self.now = key.time;
        Some(occurrence)
    }

    fn next_key(&mut self, time: VirtualTime, class: u8) -> Key {
        assert!(time >= self.now, "an event cannot be scheduled in the past");
        self.sequence += 1;
        Key::new(time, class, self.ties.order(self.sequence))
    }
}

/// The order of events of the same instant and class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ties {
    /// In the order in which they were scheduled.
    #[default]
    Fifo,
    /// In an order that only the seed decides, to see what depends on it.
    Shuffled(u64),
}

impl Ties {
    /// The rank of the event that was scheduled as number `sequence`: a permutation of the numbers of 56 bits, by a
    /// Feistel network of four rounds on halves of 28 bits.
    fn order(self, sequence: u64) -> u64 {
        const HALF: u64 = (1 << 28) - 1;
        let Self::Shuffled(seed) = self else { return sequence };
        let (mut left, mut right) = (sequence >> 28, sequence & HALF);
        for round in 0..4 {
            (left, right) = (right, left ^ (scramble(right ^ seed.rotate_left(round * 16)) & HALF));
        }
        left << 28 | right
    }
}

/// 64 bits well mixed (the finaliser of `SplitMix64`, Steele, Lea, Flood 2014).
const fn scramble(bits: u64) -> u64 {
    let bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanoseconds: u64) -> VirtualTime {
        VirtualTime(nanoseconds)
    }

    #[test]
    fn time_then_class_then_order_of_scheduling() {
        let mut kernel: Kernel<&str, u8> = Kernel::default();
        kernel.schedule(at(20), 0, "late");
        kernel.schedule(at(10), 1, "second class");
        kernel.schedule(at(10), 0, "first, scheduled first");
        kernel.schedule(at(10), 0, "first, scheduled second");
        kernel.set_timer(7, at(10), 2);
        let order: Vec<_> = std::iter::from_fn(|| kernel.next().map(|fired| (kernel.now().0, fired))).collect();
        assert_eq!(
            order,
            [
                (10, Occurrence::Event("first, scheduled first")),
                (10, Occurrence::Event("first, scheduled second")),
                (10, Occurrence::Event("second class")),
                (10, Occurrence::Timer(7)),
                (20, Occurrence::Event("late")),
            ]
        );
    }

    #[test]
    fn shuffled_ties_are_a_permutation_within_instant_and_class() {
        let order = |ties: Ties| {
            let mut kernel: Kernel<u64, u8> = Kernel::with_ties(ties);
            for event in 0..1_000 {
                kernel.schedule(at(event / 500), (event / 100 % 2) as u8, event);
            }
            std::iter::from_fn(|| kernel.next().map(|fired| (kernel.now().0, fired))).collect::<Vec<_>>()
        };
        let (fifo, one, two) = (order(Ties::Fifo), order(Ties::Shuffled(1)), order(Ties::Shuffled(2)));
        assert!(fifo != one && one != two && one == order(Ties::Shuffled(1)));
        let kind = |&(now, fired): &(u64, Occurrence<u64, u8>)| match fired {
            Occurrence::Event(event) => (now, event / 100 % 2),
            Occurrence::Timer(_) => unreachable!("no timer was set"),
        };
        assert!(fifo.iter().map(kind).eq(one.iter().map(kind)), "instants and classes stay in order");
        let mut sorted = one;
        let event =
            |&(_, fired): &(u64, Occurrence<u64, u8>)| if let Occurrence::Event(event) = fired { event } else { 0 };
        sorted.sort_by_key(event);
        assert!(sorted.iter().map(event).eq(0..1_000), "every event once");
    }

    #[test]
    fn a_cancelled_event_and_a_cleared_timer_never_fire() {
        let mut kernel: Kernel<u32, u8> = Kernel::default();
        let first = kernel.schedule(at(1), 0, 1);
        let second = kernel.schedule(at(2), 0, 2);
        kernel.set_timer(0, at(3), 0);
        assert!(kernel.cancel(first));
        assert!(!kernel.cancel(first), "a second withdrawal finds nothing");
        assert!(kernel.clear_timer(&0));
        assert!(!kernel.clear_timer(&0));
        assert_eq!(kernel.pending(), 1);
        assert_eq!(kernel.next(), Some(Occurrence::Event(2)));
        assert!(!kernel.cancel(second), "an event that fired cannot be withdrawn");
        assert_eq!(kernel.next(), None);
    }

    #[test]
    fn a_timer_that_is_set_again_moves() {
        let mut kernel: Kernel<u32, u8> = Kernel::default();
        kernel.set_timer(0, at(5), 0);
        kernel.set_timer(0, at(9), 0);
        assert_eq!(kernel.next(), Some(Occurrence::Timer(0)));
        assert_eq!(kernel.now(), at(9));
        assert_eq!(kernel.next(), None);
    }

    #[test]
    #[should_panic(expected = "cannot be scheduled in the past")]
    fn the_past_cannot_be_scheduled() {
        let mut kernel: Kernel<u32, u8> = Kernel::default();
        kernel.schedule(at(5), 0, 0);
        kernel.next();
        kernel.schedule(at(4), 0, 0);
    }
}
