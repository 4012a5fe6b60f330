//! Intervals of all numbers of a table at once.
//!
//! # Definition
//! Each number has an interval that misses it in 5 % of validations; one of twenty misses one of them in most. Holm's
//! procedure bounds the chance that any verdict of the family is wrong by 5 %: of `k` numbers all whose verdict is
//! decided by the interval that misses in `0.05/k` are decided, then of the `r` that are left those whose is by that of
//! `0.05/r`, and so on until none is. A number's interval is the one by which it was decided, or the last one.
//!
//! Where seeds were added until numbers were decided, the share that a number's interval misses in at its last look is
//! in the place of 0.05.
//!
//! The family are the judged numbers with an interval of Student's, of values or of their logarithms. Wider intervals
//! are those of the same mean and spread: `t_{1 − miss/2, n−1}` in the place of `t_{0.975, n−1}`.
//!
//! # Source
//! S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6(2), 1979.

use super::results::Row;
use super::statistic::Student;
use super::verdict::Verdict;
use fedgenie_core::math::statistics::{Miss, estimate_at};

/// A number among all of its table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Together {
    /// Its interval.
    pub interval: [f64; 2],
    /// The verdict by it.
    pub verdict: Verdict,
}

/// The rows of a family, each with its interval and verdict among them; `None` for rows that are not of it, and for all
/// where it has fewer than two.
pub fn together(rows: &[&Row]) -> Vec<Option<Together>> {
    let is_of_family = |row: &Row| {
        row.student.is_some() && row.ci95.is_some() && row.holds.is_some() && row.verdict != Verdict::NotJudged
    };
    let mut left: Vec<usize> = (0..rows.len()).filter(|&index| is_of_family(rows[index])).collect();
    let mut found = vec![None; rows.len()];
    if left.len() < 2 {
        return found;
    }
    loop {
        for &index in &left {
            found[index] = at(rows[index], left.len());
        }
        let before = left.len();
        left.retain(|&index| found[index].is_none_or(|found| found.verdict == Verdict::Undecided));
        if left.is_empty() || left.len() == before {
            return found;
        }
    }
}

/// A row among so many, with an interval that misses that much less often.
fn at(row: &Row, among: usize) -> Option<Together> {
    let usual = row.miss.map_or(Miss::USUAL, Miss::of);
    let misses = [usual, Miss::of(usual.share() / among as f64)];
    let interval = widened(row.ci95?, row.student?, row.n, misses)?;
    let verdict = row.holds?.judge_beside(row.value, Some(interval), row.none);
    // A wider interval decides nothing else: one that has left the margin of no difference leaves it open.
    Some(Together { interval, verdict: if verdict == row.verdict { verdict } else { Verdict::Undecided } })
}

/// Student's interval of `n` values that misses as often as the first says, made to miss as often as the second.
fn widened(interval: [f64; 2], student: Student, n: usize, misses: [Miss; 2]) -> Option<[f64; 2]> {
    // Both intervals of any n values that differ have the ratio of the quantiles.
    let values: Vec<f64> = (0..n).map(|value| value as f64).collect();
    let [before, after] = misses.map(|miss| estimate_at(&values, miss)?.half_width());
    let part = after? / before?;
    Some(student.narrowed(interval, part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::Rule;
    use fedgenie_core::math::float::ln;

    /// A row about values with this mean and standard error, five of them, of which a mean of at least 0 is claimed.
    fn row(mean: f64, error: f64) -> Row {
        // t with four degrees of freedom, 0.975.
        let half = 2.776_445_105 * error;
        let holds = Rule { at_least: Some(0.0), at_most: None };
        let ci95 = Some([mean - half, mean + half]);
        let verdict = holds.judge(mean, ci95);
        Row { value: mean, ci95, n: 5, verdict, holds: Some(holds), student: Some(Student::OfValues), ..Row::of_test() }
    }

    /// By hand: two-sided p of t = 3 with four degrees of freedom is 0.0399, of 4 is 0.0161, of 5 is 0.0075. Among
    /// three, 0.0075 is below 0.05/3, then 0.0161 below 0.05/2, then 0.0399 below 0.05.
    #[test]
    fn holm_decides_step_by_step() {
        let rows = [row(3.0, 1.0), row(-4.0, 1.0), row(5.0, 1.0)];
        let verdicts = |rows: &[Row]| -> Vec<Option<Verdict>> {
            let rows: Vec<&Row> = rows.iter().collect();
            together(&rows).into_iter().map(|found| found.map(|found| found.verdict)).collect()
        };
        let (yes, no, open) = (Some(Verdict::Supported), Some(Verdict::NotSupported), Some(Verdict::Undecided));
        assert_eq!(verdicts(&rows), [yes, no, yes]);
        // Without the one of 0.0075, the one of 0.0161 is below 0.05/2, and 0.0399 is below 0.05.
        assert_eq!(verdicts(&rows[..2]), [yes, no]);
        // Two of 0.0399: none is below 0.025, though each is alone.
        assert_eq!(verdicts(&[row(3.0, 1.0), row(3.0, 1.0)]), [open, open]);
        // Among many that are not decided 0.0161 is not enough.
        let many = [row(4.0, 1.0), row(0.1, 1.0), row(0.1, 1.0), row(0.1, 1.0)];
        assert_eq!(verdicts(&many), [open, open, open, open]);
        assert_eq!(verdicts(&rows[..1]), [None]);
        // By itself within a margin of 3, as one of two it has left it: the claim is not supported by that.
        let equal = Row { none: Some([-3.0, 3.0]), verdict: Verdict::NoDifference, ..row(1.5, 0.5) };
        assert_eq!(verdicts(&[equal.clone(), row(9.0, 1.0)]), [Some(Verdict::NoDifference), yes]);
        assert_eq!(verdicts(&[equal.clone(), equal]), [open, open]);
        let not_judged = Row { verdict: Verdict::NotJudged, ..row(9.0, 1.0) };
        assert_eq!(verdicts(&[rows[1].clone(), rows[2].clone(), not_judged]), [no, yes, None]);
    }

    /// t with four degrees of freedom: 0.975 at 2.7764, 0.9875 (misses in 0.025) at 3.4954.
    #[test]
    fn wider_intervals_have_the_same_middle() {
        let miss = [Miss::USUAL, Miss::of(0.025)];
        let [low, high] = widened([1.0, 3.0], Student::OfValues, 5, miss).unwrap();
        assert!((high - 2.0 - 3.495_406 / 2.776_445).abs() < 1e-5 && (low + high - 4.0).abs() < 1e-12);
        let [low, high] = widened([0.5, 2.0], Student::OfLogarithms, 5, miss).unwrap();
        assert!((low * high - 1.0).abs() < 1e-12 && (ln(high) - ln(2.0) * 3.495_406 / 2.776_445).abs() < 1e-5);
    }
}
