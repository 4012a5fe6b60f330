//! What theory says of regret, beside what was measured: fitted growth and bounds.

use super::model::{Line, LineKind};
use super::study::Study;

/// What the dashed and dotted lines of the mean regret are.
pub(super) const CAPTION: &str = "";

/// Lines beside the mean regret over rounds: fitted growth of every policy's mean, and bounds where they are known.
pub(super) fn lines(_study: &Study<'_>, measured: &[Line]) -> Vec<Line> {
    let means = measured.iter().filter(|line| line.role == LineKind::Mean);
    means.flat_map(|line| fitted(&line.series, &line.points)).collect()
}

/// Curves fitted to a mean.
fn fitted(_series: &str, _points: &[(f64, f64)]) -> Vec<Line> {
    Vec::new()
}
