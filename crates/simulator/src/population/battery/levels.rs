//! The levels of one run, worked out when somebody asks for them.
//!
//! A client's cell has its level at some instant, since when its draw is that of an idle phone, or of the phase that
//! its job is in. Bringing a cell up to a later instant changes no answer and no sum, whenever it is done.

use super::flow::{Flow, flow, until_empty, until_reached};
use super::{Bank, Batteries, Draw, Energy, Make};
use crate::population::{Cursors, Stretch};
use fedgenie_core::id::ClientId;
use fedgenie_core::limits::CLOCK_SECONDS;
use fedgenie_core::record::Phase;
use fedgenie_core::state::{State, Stateful};
use fedgenie_core::time::VirtualTime;
use std::cell::Cell;
use std::ops::ControlFlow;

/// No run goes beyond this instant.
const LATEST: u64 = CLOCK_SECONDS * 1_000_000_000;

/// A level, and when it was that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Stateful)]
struct Kept {
    level: u64,
    at: u64,
}

/// What a client is doing.
#[derive(Clone, Copy, Debug)]
pub enum Mode<'a> {
    /// Nothing.
    Idle,
    /// A phase of a job, whether its device is available or not.
    Phase(Phase),
    /// A phase of a job that waits while its device is away.
    Pausing(Phase, &'a Cursors<'a>),
}

/// Energy that phones drew and got, in a time in which cells were brought up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Stateful)]
pub struct Energies {
    /// Drawn: idle, receiving, computing, sending.
    pub drawn: [Energy; 4],
    /// What entered phones.
    pub charged: Energy,
    /// How often a level came to 0.
    pub emptied: u64,
}

impl Energies {
    fn add(&mut self, other: &Self) {
        self.drawn.iter_mut().zip(other.drawn).for_each(|(sum, more)| *sum += more);
        self.charged += other.charged;
        self.emptied += other.emptied;
    }

    /// What was drawn for jobs.
    pub fn of_jobs(&self) -> Energy {
        let [_, receive, compute, send] = self.drawn;
        receive + compute + send
    }
}

/// Energy of a run up to some instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EnergyUse {
    /// What phones drew and got.
    pub energies: Energies,
    /// The draw of jobs whose update was never used.
    pub wasted: Energy,
    /// Phones whose level is 0.
    pub empty: u64,
}

/// A battery as a policy sees it, with the powers that its client declares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seen {
    /// The level, in joules.
    pub level_j: f64,
    /// A full one's, in joules.
    pub capacity_j: f64,
    /// Draw of the three phases, in watts: receive, compute, send.
    pub draw_w: [f64; 3],
}

/// The levels of a run; see the [module](self).
#[derive(Debug)]
pub struct Levels<'a> {
    batteries: &'a Batteries,
    /// Of all clients; unused for those without a battery.
    cells: Box<[Cell<Kept>]>,
    energies: Cell<Energies>,
}

/// By client. The batteries are the world's.
impl Stateful for Levels<'_> {
    fn exchange(&mut self, state: &mut State<'_>) {
        let Self { batteries, cells, energies } = self;
        for (index, cell) in cells.iter_mut().enumerate() {
            state.field(cell.get_mut());
            let bank = batteries.bank(ClientId::from_index(index));
            state.require(bank.is_none_or(|bank| cell.get().level <= bank.make(ClientId::from_index(index)).capacity));
        }
        state.field(energies.get_mut());
    }
}

/// A piece of a walk, in which powers stay the same.
struct Step {
    from: u64,
    to: u64,
    /// The level at `from`.
    before: u64,
    charger: u64,
    draw: Draw,
    flow: Flow,
}

impl<'a> Levels<'a> {
    pub(super) fn new(batteries: &'a Batteries) -> Self {
        let start = |index: usize| {
            let client = ClientId::from_index(index);
            let level = batteries.bank(client).map_or(0, |bank| bank.make(client).start);
            Cell::new(Kept { level, at: 0 })
        };
        let cells = (0..batteries.clients).map(start).collect();
        Self { batteries, cells, energies: Cell::default() }
    }

    /// The battery of a client, if it has one, its number in its group and its cell.
    fn of(&self, client: ClientId) -> Option<(&'a Bank, &'a Make, &Cell<Kept>)> {
        let bank = self.batteries.bank(client)?;
        Some((bank, bank.make(client), &self.cells[client.index()]))
    }

    /// Walks from a cell on, up to an instant or until `look` has seen enough. Returns the cell there.
    fn walk(
        (bank, make): (&Bank, &Make),
        client: ClientId,
        from: Kept,
        until: u64,
        mode: Mode<'_>,
        mut look: impl FnMut(&Step) -> ControlFlow<()>,
    ) -> Kept {
        let in_group = client.index() - bank.first;
        let mut kept = from;
        let (steady, mut stretches) = match mode {
            Mode::Idle => (Some(Draw::Idle), None),
            Mode::Phase(phase) => (Some(Draw::Job(phase)), None),
            Mode::Pausing(phase, cursors) => {
                (None, Some((phase, cursors.stretches_from(client, VirtualTime(from.at)).peekable())))
            }
        };
        while kept.at < until {
            let piece = bank.charger.at(in_group, kept.at);
            let (draw, draw_until) = match (&steady, &mut stretches) {
                (None, Some((phase, stretches))) => {
                    while stretches.next_if(|stretch| stretch.until.0 <= kept.at).is_some() {}
                    let whole = Stretch { available: false, until: VirtualTime::MAX };
                    let Stretch { available, until } = stretches.peek().copied().unwrap_or(whole);
                    (if available { Draw::Job(*phase) } else { Draw::Idle }, until.0)
                }
                (draw, _) => (draw.unwrap_or(Draw::Idle), u64::MAX),
            };
            let to = piece.until.min(draw_until).min(until);
            let charger = if piece.is_on { make.charger } else { 0 };
            let flow = flow(make.capacity, kept.level, charger, make.draws[draw.index()], to - kept.at);
            let step = Step { from: kept.at, to, before: kept.level, charger, draw, flow };
            kept = Kept { level: step.flow.level, at: to };
            if look(&step).is_break() {
                break;
            }
        }
        kept
    }

    /// The level of a client at an instant from its cell's on, and the energies since.
    fn until(&self, client: ClientId, time: u64, mode: Mode<'_>) -> Option<(Kept, Energies)> {
        let (bank, make, cell) = self.of(client)?;
        let mut sums = Energies::default();
        let kept = Self::walk((bank, make), client, cell.get(), time, mode, |step| {
            sums.drawn[step.draw.index()] += make.energy(step.flow.drawn);
            sums.charged += make.energy(step.flow.charged);
            sums.emptied += u64::from(step.before > 0 && step.flow.level == 0);
            ControlFlow::Continue(())
        });
        Some((kept, sums))
    }

    /// Brings a client's cell up to an instant. Returns what its job drew.
    pub fn bring(&self, client: ClientId, time: VirtualTime, mode: Mode<'_>) -> Energy {
        if self.cells[client.index()].get().at == time.0 {
            return Energy::ZERO;
        }
        let Some((kept, sums)) = self.until(client, time.0, mode) else { return Energy::ZERO };
        self.cells[client.index()].set(kept);
        let mut all = self.energies.get();
        all.add(&sums);
        self.energies.set(all);
        sums.of_jobs()
    }

    /// Whether an idle client's level allows a job.
    pub fn is_ready(&self, client: ClientId, time: VirtualTime) -> bool {
        let Some((_, make, cell)) = self.of(client) else { return true };
        self.bring(client, time, Mode::Idle);
        cell.get().level >= make.need
    }

    /// The first instant from `time` on at which an idle client's level allows a job; `None` if there is none.
    pub fn next_ready(&self, client: ClientId, time: VirtualTime) -> Option<VirtualTime> {
        let Some((bank, make, cell)) = self.of(client) else { return Some(time) };
        // As it is, up to `time`, which may lie ahead.
        let mut kept = Self::walk((bank, make), client, cell.get(), time.0, Mode::Idle, |_| ControlFlow::Continue(()));
        if kept.level >= make.need {
            return Some(time);
        }
        let period = bank.charger.period(client.index() - bank.first).unwrap_or(u64::MAX);
        let mut found = None;
        while kept.at < LATEST {
            let before = kept.level;
            let until = kept.at.saturating_add(period);
            kept = Self::walk((bank, make), client, kept, until, Mode::Idle, |step| {
                let draw = make.draws[step.draw.index()];
                let after = until_reached(step.before, make.need, step.charger, draw);
                found = after.and_then(|after| step.from.checked_add(after)).filter(|found| *found <= step.to);
                if found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            // What a day without the level has not raised, no later day does.
            if found.is_some() || kept.level <= before {
                break;
            }
        }
        found.map(VirtualTime)
    }

    /// The first instant at which the level of a client whose job goes on is 0, up to `until`; its cell is of now.
    pub fn first_empty(&self, client: ClientId, until: VirtualTime, mode: Mode<'_>) -> Option<VirtualTime> {
        let (bank, make, cell) = self.of(client)?;
        let kept = cell.get();
        if kept.level == 0 {
            return Some(VirtualTime(kept.at));
        }
        let mut found = None;
        Self::walk((bank, make), client, kept, until.0, mode, |step| {
            let after = until_empty(step.before, step.charger, make.draws[step.draw.index()]);
            found = after.and_then(|after| step.from.checked_add(after)).filter(|found| *found <= step.to);
            if found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        found.map(VirtualTime)
    }

    /// The level of a client at an instant, in joules; `None` without a battery.
    pub fn level_j(&self, client: ClientId, time: VirtualTime, mode: Mode<'_>) -> Option<f64> {
        let (_, make, _) = self.of(client)?;
        let (kept, _) = self.until(client, time.0, mode)?;
        Some(make.energy(kept.level.into()).joules())
    }

    /// The battery of an idle client as a policy sees it.
    pub fn seen(&self, client: ClientId, time: VirtualTime) -> Option<Seen> {
        let (_, make, cell) = self.of(client)?;
        self.bring(client, time, Mode::Idle);
        let watts = |power: u64| make.energy(power.into()).0 as f64 / 1e9;
        let [_, receive, compute, send] = make.draws.map(watts);
        let joules = |level: u64| make.energy(level.into()).joules();
        Some(Seen {
            level_j: joules(cell.get().level),
            capacity_j: joules(make.capacity),
            draw_w: [receive, compute, send],
        })
    }

    /// The energies up to the instants of the clients' cells.
    pub const fn energies_so_far(&self) -> Energies {
        self.energies.get()
    }

    /// The energies by an instant, and the number of empty phones; `mode` says what each client has been doing since
    /// its cell. Changes nothing.
    pub fn energies<'m>(&self, time: VirtualTime, mode: impl Fn(ClientId) -> Mode<'m>) -> (Energies, u64) {
        let (mut all, mut empty) = (self.energies.get(), 0);
        for client in (0..self.cells.len()).map(ClientId::from_index) {
            if let Some((kept, sums)) = self.until(client, time.0, mode(client)) {
                all.add(&sums);
                empty += u64::from(kept.level == 0);
            }
        }
        (all, empty)
    }

    /// What a client's job has drawn since its cell.
    pub fn drawn_since(&self, client: ClientId, time: VirtualTime, mode: Mode<'_>) -> Energy {
        self.until(client, time.0, mode).map_or(Energy::ZERO, |(_, sums)| sums.of_jobs())
    }

    /// Energy of all batteries at the beginning, and at an instant.
    pub fn stored<'m>(&self, time: VirtualTime, mode: impl Fn(ClientId) -> Mode<'m>) -> [Energy; 2] {
        let mut stored = [Energy::ZERO; 2];
        for client in (0..self.cells.len()).map(ClientId::from_index) {
            let found = self.of(client).zip(self.until(client, time.0, mode(client)));
            if let Some(((_, make, _), (kept, _))) = found {
                stored[0] += make.energy(make.start.into());
                stored[1] += make.energy(kept.level.into());
            }
        }
        stored
    }
}

#[cfg(test)]
mod tests {
    use super::super::charger::Charger;
    use super::*;
    use crate::population::availability::Offsets;

    const HOUR: u64 = 3_600_000_000_000;
    const SECOND: u64 = 1_000_000_000;

    /// One phone: 1000 J, start and reserve as shares, idle and charger in watts, on the charger in these hours.
    fn one(shares: [f64; 2], idle: f64, charger: f64, hours: &[(u64, u64)]) -> Batteries {
        let make = Make::new(1000.0, shares, [idle, 2.0, 5.0, 3.0], charger);
        let hours = hours.iter().map(|(from, to)| (from * HOUR, to * HOUR)).collect();
        let charger = Charger::Hours(hours, Offsets::Shared(0));
        let bank = Bank { first: 0, makes: vec![make], charger, is_seen: true };
        Batteries { clients: 1, groups: vec![(0, Some(bank))] }
    }

    const PHONE: ClientId = ClientId(0);

    fn ready(batteries: &Batteries, at: u64) -> Option<u64> {
        Levels::new(batteries).next_ready(PHONE, VirtualTime(at)).map(|time| time.0)
    }

    #[test]
    fn the_reserve_is_waited_for_over_days() {
        let slow = one([0.05, 0.1], 0.0, 0.01, &[(0, 1)]);
        assert_eq!(ready(&slow, 0), Some(24 * HOUR + 1400 * SECOND), "36 J on day 1, 14 J on day 2");
        let draining = one([0.05, 0.1], 0.000_25, 0.01, &[(0, 1)]);
        // 35.1 J more in the first hour, then 20.7 J less over 23 h: 14.4 J a day. On day 3 it has 78.8 J at first.
        let left = 100.0 - (50.0 + 2.0 * 14.4);
        let expected = (2 * 24 * HOUR) as f64 + left / 0.009_75 * 1e9;
        assert!((ready(&draining, 0).unwrap() as f64 - expected).abs() < 2.0, "{:?}", ready(&draining, 0));
        let losing = one([0.05, 0.1], 0.001, 0.01, &[(0, 1)]);
        assert_eq!(ready(&losing, 0), None, "no day raises it");
        assert_eq!(ready(&one([0.2, 0.1], 1.0, 2.0, &[(0, 1)]), 5), Some(5));
    }

    #[test]
    fn an_empty_phone_is_no_candidate_and_begins_to_charge_with_its_charger() {
        let empty = one([0.0, 0.0], 1.0, 2.0, &[(3, 4)]);
        assert_eq!(ready(&empty, 0), Some(3 * HOUR + 1));
        let levels = Levels::new(&empty);
        assert!(!levels.is_ready(PHONE, VirtualTime(3 * HOUR)) && levels.is_ready(PHONE, VirtualTime(3 * HOUR + 1)));
        assert_eq!(levels.energies_so_far().emptied, 0, "it was empty from the beginning on");
    }

    /// Whenever somebody looks, answers and sums are the same.
    #[test]
    fn looking_changes_nothing() {
        let batteries = one([0.5, 0.1], 0.05, 1.0, &[(1, 2), (5, 6)]);
        let (often, once) = (Levels::new(&batteries), Levels::new(&batteries));
        for minute in 0..3_000 {
            often.is_ready(PHONE, VirtualTime(minute * 61 * SECOND + minute));
        }
        let end = VirtualTime(3_000 * 61 * SECOND);
        let [seen, unseen] = [&often, &once].map(|levels| levels.seen(PHONE, end).unwrap());
        assert_eq!(seen, unseen);
        assert_eq!(often.energies_so_far(), once.energies_so_far());
        assert_eq!(often.energies(end, |_| Mode::Idle), once.energies(end, |_| Mode::Idle));
        let [start, now] = once.stored(end, |_| Mode::Idle);
        let Energies { drawn, charged, .. } = once.energies_so_far();
        assert_eq!(start + charged, now + drawn[0]);
    }

    #[test]
    fn the_level_of_a_job_is_looked_at_ahead() {
        let batteries = one([0.5, 0.1], 1.0, 8.0, &[(1, 2)]);
        let levels = Levels::new(&batteries);
        let mode = Mode::Phase(Phase::Compute);
        let until = |seconds: u64| VirtualTime(seconds * SECOND);
        assert_eq!(levels.first_empty(PHONE, until(99), mode), None);
        assert_eq!(levels.first_empty(PHONE, until(100), mode), Some(until(100)));
        assert_eq!(levels.first_empty(PHONE, until(10_000), mode), Some(until(100)));
        assert_eq!(levels.bring(PHONE, until(40), mode), Energy(200 * 1_000_000_000_000_000_000));
        assert_eq!(levels.level_j(PHONE, until(50), Mode::Idle), Some(290.0));
    }

    #[test]
    fn units_leave_room_for_a_century() {
        let scale = |capacity: f64| Make::new(capacity, [1.0, 0.0], [0.0; 4], 0.0).scale;
        assert_eq!([1.0, 9.0, 10.0, 40_000.0, 1e9].map(scale), [1, 1, 10, 10_000, 1_000_000_000]);
        let make = Make::new(40_000.0, [0.6, 0.2], [0.05, 0.4, 2.0, 0.8], 5.0);
        assert_eq!(make.energy(make.start.into()), Energy(24_000 * 1_000_000_000_000_000_000));
        assert_eq!(make.energy(make.need.into()), Energy(8_000 * 1_000_000_000_000_000_000));
        assert_eq!(make.draws.map(|power| power * make.scale), [50_000_000, 400_000_000, 2_000_000_000, 800_000_000]);
    }
}
