//! How long runs take side by side, as [`execute`](super::super::execute) carries them out.
//!
//! # Definition
//! Each thread takes the next run. The first run of a world builds it, and the others of that world wait for it. As
//! soon as fewer runs are left than threads, those spread their training over all threads: a run of which the share `p`
//! can be spread goes on `1/(1 - p + p a/t)` times as fast while `a` runs are left on `t` threads.

/// A run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Work {
    /// The number of its world, from 0.
    pub world: usize,
    /// Seconds that building the world takes.
    pub build_s: f64,
    /// Seconds of the run itself, on one thread.
    pub run_s: f64,
    /// The share of these that can be spread over threads.
    pub spread: f64,
}

/// Seconds until the last of these runs ends.
pub(super) fn makespan(works: &[Work], threads: usize) -> f64 {
    let (mut waiting, mut now) = (works.iter(), 0.0);
    let worlds = works.iter().map(|work| work.world + 1).max().unwrap_or(0);
    // When each world is there.
    let mut built: Vec<Option<f64>> = vec![None; worlds];
    // Seconds left, and the share that can be spread.
    let mut active: Vec<(f64, f64)> = Vec::new();
    loop {
        while active.len() < threads
            && let Some(work) = waiting.next()
        {
            let there = *built[work.world].get_or_insert(now + work.build_s);
            active.push((work.run_s + (there - now).max(0.0), work.spread));
        }
        let busy = active.len() as f64 / threads as f64;
        let pace = |spread: f64| 1.0 / (1.0 - spread + spread * busy.min(1.0));
        let Some(step) = active.iter().map(|(left, spread)| left / pace(*spread)).reduce(f64::min) else {
            return now;
        };
        now += step;
        active.iter_mut().for_each(|(left, spread)| *left -= step * pace(*spread));
        active.retain(|(left, _)| *left > 1e-9);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-6, "{found}, not {expected}");
    }

    fn work(world: usize, run_s: f64, spread: f64) -> Work {
        Work { world, build_s: 0.0, run_s, spread }
    }

    #[test]
    fn runs_are_taken_in_turn() {
        assert_close(makespan(&[], 2), 0.0);
        let runs: Vec<Work> = [5.0, 1.0, 1.0, 4.0].map(|run_s| work(0, run_s, 0.0)).to_vec();
        assert_close(makespan(&runs, 1), 11.0);
        // The second thread has the three others.
        assert_close(makespan(&runs, 2), 6.0);
        assert_close(makespan(&runs, 8), 5.0);
    }

    #[test]
    fn runs_of_a_world_wait_for_it() {
        let runs = [0, 0, 1].map(|world| Work { build_s: 3.0, ..work(world, 1.0, 0.0) });
        // At 4 both have ended, and the second world takes three more.
        assert_close(makespan(&runs, 2), 8.0);
        assert_close(makespan(&runs, 3), 4.0);
    }

    #[test]
    fn the_last_run_is_spread_over_idle_threads() {
        assert_close(makespan(&[work(0, 6.0, 1.0)], 3), 2.0);
        assert_close(makespan(&[work(0, 6.0, 0.5)], 3), 4.0);
        // One second together, and the other five at twice the pace.
        assert_close(makespan(&[work(0, 1.0, 0.0), work(0, 6.0, 1.0)], 2), 1.0 + 2.5);
    }
}
