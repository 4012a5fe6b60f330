//! How much of an experiment's work is done, and how long the rest takes.
//!
//! # Definition
//! A run of which a share `s` took `t` seconds here has a cost of `t/s`; runs of one policy at one point cost the same,
//! and those of which none has begun as much as the others on average. The rest is the cost of what is left, divided by
//! the number of runs under way at once.

use fedgenie::experiment::RunId;
use std::collections::BTreeMap;

/// Policy and point of a run.
type Kind = (usize, usize);

/// Runs of a kind.
#[derive(Clone, Copy, Debug, Default)]
struct Kept {
    /// Runs that have not begun.
    waiting: usize,
    /// Shares of runs that were done here, added up.
    share: f64,
    /// Seconds that took.
    seconds: f64,
}

/// A run under way.
#[derive(Clone, Copy, Debug)]
struct Active {
    kind: Kind,
    /// When it began here, and what of it was done by then.
    began: (f64, f64),
    /// When it last told its share, and the share.
    told: (f64, f64),
}

/// The work. Times are seconds since the first run.
#[derive(Debug, Default)]
pub struct Work {
    runs: usize,
    ended: usize,
    kinds: BTreeMap<Kind, Kept>,
    active: BTreeMap<String, Active>,
}

/// What is left.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Left {
    /// The share of the work that is done.
    pub share: f64,
    /// Seconds until the end.
    pub seconds: f64,
}

impl Work {
    /// Of runs that are about to begin.
    pub fn of(runs: &[RunId]) -> Self {
        let mut work = Self { runs: runs.len(), ..Self::default() };
        for run in runs {
            work.kinds.entry((run.arm, run.point)).or_default().waiting += 1;
        }
        work
    }

    /// Runs that have ended, and all runs.
    pub const fn counts(&self) -> (usize, usize) {
        (self.ended, self.runs)
    }

    /// A run has come so far; the first time it says where it begins.
    pub fn advance(&mut self, run: &RunId, share: f64, now: f64) {
        if let Some(active) = self.active.get_mut(&run.name) {
            active.told = (now, share);
            return;
        }
        let kind = (run.arm, run.point);
        let kept = self.kinds.entry(kind).or_default();
        kept.waiting = kept.waiting.saturating_sub(1);
        self.active.insert(run.name.clone(), Active { kind, began: (now, share), told: (now, share) });
    }

    /// A run has ended.
    pub fn end(&mut self, run: &RunId, now: f64) {
        self.ended += 1;
        let kept = self.kinds.entry((run.arm, run.point)).or_default();
        match self.active.remove(&run.name) {
            Some(Active { began: (began, share), .. }) => {
                kept.share += 1.0 - share;
                kept.seconds += now - began;
            }
            // It failed before its first round.
            None => kept.waiting = kept.waiting.saturating_sub(1),
        }
    }

    /// What is left; `None` while no run has told a share of its work.
    pub fn left(&self, now: f64) -> Option<Left> {
        let mut known = self.kinds.clone();
        for Active { kind, began, told } in self.active.values() {
            let kept = known.entry(*kind).or_default();
            kept.share += told.1 - began.1;
            kept.seconds += told.0 - began.0;
        }
        let total = |of: fn(&Kept) -> f64| known.values().map(of).sum::<f64>();
        let of_all = total(|kept| kept.seconds) / total(|kept| kept.share);
        if !of_all.is_finite() {
            return None;
        }
        let cost = |kind: &Kind| {
            let Kept { share, seconds, .. } = known[kind];
            if share > 0.0 { seconds / share } else { of_all }
        };
        let waiting: f64 = known.iter().map(|(kind, kept)| kept.waiting as f64 * cost(kind)).sum();
        let of_run = |Active { kind, told, .. }: &Active| ((1.0 - told.1) * cost(kind) - (now - told.0)).max(0.0);
        let under_way: f64 = self.active.values().map(of_run).sum();
        let done: f64 = self.kinds.values().map(|kept| kept.seconds).sum::<f64>()
            + self.active.values().map(|active| now - active.began.0).sum::<f64>();
        let left = waiting + under_way;
        let at_once = self.active.len().max(1) as f64;
        // The longest run under way ends last, however many there are.
        let seconds = (left / at_once).max(self.active.values().map(of_run).fold(0.0, f64::max));
        Some(Left { share: if done + left > 0.0 { done / (done + left) } else { 1.0 }, seconds })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(arm: usize, seed: u64) -> RunId {
        RunId { point: 0, seed, arm, name: format!("{arm}-s{seed}") }
    }

    #[test]
    fn one_long_run_has_a_time_left() {
        let mut work = Work::of(&[run(0, 1)]);
        assert_eq!(work.left(1.0), None);
        work.advance(&run(0, 1), 0.0, 0.0);
        assert_eq!(work.left(1.0), None, "no round has closed");
        work.advance(&run(0, 1), 0.25, 10.0);
        assert_eq!(work.left(10.0), Some(Left { share: 0.25, seconds: 30.0 }));
        assert_eq!(work.left(15.0), Some(Left { share: 0.375, seconds: 25.0 }), "it goes on between two messages");
        work.end(&run(0, 1), 40.0);
        assert_eq!((work.counts(), work.left(40.0)), ((1, 1), Some(Left { share: 1.0, seconds: 0.0 })));
    }

    #[test]
    fn dear_policies_weigh_more() {
        let runs = [run(0, 1), run(1, 1), run(0, 2), run(1, 2)];
        let mut work = Work::of(&runs);
        let play = |work: &mut Work, run: &RunId, begin: f64, end: f64| {
            work.advance(run, 0.0, begin);
            work.end(run, end);
        };
        play(&mut work, &runs[0], 0.0, 1.0);
        // Of the other policy nothing is known yet.
        assert_eq!(work.left(1.0).unwrap().seconds, 3.0);
        play(&mut work, &runs[1], 1.0, 10.0);
        assert_eq!(work.left(10.0), Some(Left { share: 0.5, seconds: 10.0 }));
        play(&mut work, &runs[2], 10.0, 11.0);
        assert_eq!(work.left(11.0), Some(Left { share: 0.55, seconds: 9.0 }));
    }

    #[test]
    fn a_run_that_goes_on_costs_its_rest() {
        let runs = [run(0, 1), run(0, 2)];
        let mut work = Work::of(&runs);
        work.advance(&runs[0], 0.5, 0.0);
        work.advance(&runs[0], 0.75, 1.0);
        // A quarter took a second: one is left of this run, and four of the next.
        assert_eq!(work.left(1.0).unwrap().seconds, 5.0);
        work.advance(&runs[1], 0.0, 1.0);
        assert_eq!(work.left(1.0).unwrap().seconds, 4.0, "beside each other, and the longer one ends last");
    }
}
