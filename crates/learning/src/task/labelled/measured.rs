//! Measures of labelled rows.

use super::Labelled;
use crate::metric::accuracy::ACCURACY;
use crate::metric::loss::LOSS;
use crate::metric::{Definition, Scores};
use crate::model::{Batch, Evaluation, outputs};
use fedgenie_core::halt::Effort;
use fedgenie_core::metric::Measures;

impl Labelled {
    /// The metrics where examples have classes, or numbers, in the order of the values; `more` are those that a
    /// scenario adds.
    pub(super) fn metrics(classifies: bool, more: &[&'static Definition]) -> Vec<&'static Definition> {
        let mut metrics = vec![&LOSS];
        if classifies {
            metrics.push(&ACCURACY);
        }
        metrics.extend(more);
        metrics
    }

    /// The measures for examples with classes, or with numbers. `more` are metrics that a scenario adds; models are
    /// compared by the last of the others.
    pub fn measures(classifies: bool, more: &[&'static Definition], has_valid: bool) -> Measures {
        let of_data = Self::metrics(classifies, more).into_iter().map(|metric| metric.measure).collect();
        Measures { main: usize::from(classifies), of_data, has_valid, ..Measures::default() }
    }

    /// Writes the measures of a model on some examples, of which the sums are known, and returns the number of
    /// examples. Outputs are worked out only if some metric needs them.
    pub(super) fn measured(
        &self,
        sums: Evaluation,
        (model, batches): (&[f32], &[Batch<'_>]),
        effort: Effort<'_>,
        values: &mut [f64],
    ) -> f64 {
        let needs_outputs = !self.exchanged.is_empty() || self.metrics.iter().any(|metric| metric.needs_outputs());
        let found = needs_outputs.then(|| outputs(&*self.model, model, batches, effort));
        // Some of the outputs may be missing.
        if effort.halt.is_due() {
            return 0.0;
        }
        let of = |metric: &&Definition| metric.of_examples(&sums, found.as_ref());
        let success = found.as_ref().and_then(Scores::of).map_or(f64::NAN, |scores| self.exchanged_share(&scores));
        let all = self.metrics.iter().map(of).chain([success]);
        values.iter_mut().zip(all).for_each(|(value, found)| *value = found);
        sums.examples as f64
    }

    /// Of the examples of the first class of a pair that hostile clients exchange, the share that is taken for the
    /// second; NaN without such examples.
    fn exchanged_share(&self, scores: &Scores<'_>) -> f64 {
        let (mut all, mut taken) = (0_u32, 0_u32);
        for (class, found) in scores.predictions() {
            if let Some([_, to]) = self.exchanged.iter().find(|[from, _]| *from as usize == class) {
                all += 1;
                taken += u32::from(*to as usize == found);
            }
        }
        f64::from(taken) / f64::from(all)
    }
}
