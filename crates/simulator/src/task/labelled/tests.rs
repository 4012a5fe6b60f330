//! Keys of labelled tasks, and the rows that are set aside.

use super::*;
use fedgenie_learning::data::{Dataset, Targets};
use ndarray::Array2;

#[test]
fn numbers_are_no_classes() {
    let numbers = Dataset::new(Array2::zeros((2, 1)), Targets::Values(vec![0.5, 1.5]));
    let error = classes(&Split { train: numbers.clone(), test: numbers }).unwrap_err().to_string();
    assert_eq!(error, "the model predicts classes, the data has numbers as targets");
}
