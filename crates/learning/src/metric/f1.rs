//! F1 score, the plain mean over classes (macro F1).
//!
//! # Definition
//! Of class `c`, `F1_c = 2·TP / (2·TP + FP + FN)`: TP examples of the class that are predicted as it, FP others that
//! are predicted as it, FN examples of it that are not. The metric is the mean over the classes that some example has
//! or is predicted as. The predicted class has the largest score, the smallest class on ties. NaN without examples.
//!
//! # Source
//! Y. Yang, X. Liu, "A re-examination of text categorization methods", SIGIR 1999 (macro-averaged F1), over the same
//! classes as scikit-learn's `f1_score(average="macro")`.

use super::{Definition, Formula, Scores};
use fedgenie_core::metric::Measure;

/// Macro F1.
pub static F1: Definition = Definition { measure: Measure::share("f1"), formula: Formula::Scores(macro_f1) };

fn macro_f1(scores: &Scores<'_>) -> f64 {
    // Of each class: true positives, then false positives and false negatives together.
    let mut counts = vec![(0_u64, 0_u64); scores.classes];
    for (label, predicted) in scores.predictions() {
        if label == predicted {
            counts[label].0 += 1;
        } else {
            counts[label].1 += 1;
            counts[predicted].1 += 1;
        }
    }
    let of_class = |&(hits, misses): &(u64, u64)| 2.0 * hits as f64 / (2 * hits + misses) as f64;
    let there: Vec<f64> = counts.iter().filter(|&&counts| counts != (0, 0)).map(of_class).collect();
    there.iter().sum::<f64>() / there.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f1_by_hand() {
        // Predictions 0, 1, 0, 2, 1 of classes 0, 0, 1, 2, 1; class 3 is neither there nor predicted.
        let rows: [[f32; 4]; 5] = [
            [2.0, 1.0, 0.0, 0.0],
            [0.0, 1.0, 0.5, 0.0],
            [1.0, 1.0, 0.0, 0.5],
            [0.0, 0.1, 3.0, 0.0],
            [0.0, 9.0, 0.0, 1.0],
        ];
        let scores = Scores { scores: &rows.concat(), classes: 4, labels: &[0, 0, 1, 2, 1] };
        // Class 0: TP 1, FP 1, FN 1; class 1 the same; class 2: TP 1.
        assert_eq!(macro_f1(&scores), (0.5 + 0.5 + 1.0) / 3.0);
        // A class that is predicted and never there counts as 0.
        assert_eq!(macro_f1(&Scores { labels: &[0, 0, 0, 0, 0], ..scores }), (2.0 * 2.0 / 7.0) / 3.0);
        assert!(macro_f1(&Scores { scores: &[], labels: &[], ..scores }).is_nan());
    }
}
