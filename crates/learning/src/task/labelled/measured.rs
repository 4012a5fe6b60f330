//! Measures of labelled rows.

use super::Labelled;
use crate::metric::Definition;
use crate::metric::accuracy::ACCURACY;
use crate::metric::loss::LOSS;
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
        Measures { main: usize::from(classifies), of_data, of_model: Vec::new(), has_valid }
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
        let needs_outputs = self.metrics.iter().any(|metric| metric.needs_outputs());
        let found = needs_outputs.then(|| outputs(&*self.model, model, batches, effort));
        // Some of the outputs may be missing.
        if effort.halt.is_due() {
            return 0.0;
        }
        let of = |metric: &&Definition| metric.of_examples(&sums, found.as_ref());
        values.iter_mut().zip(self.metrics.iter().map(of)).for_each(|(value, found)| *value = found);
        sums.examples as f64
    }
}
