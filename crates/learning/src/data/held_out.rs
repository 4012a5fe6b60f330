//! Which rows of a single table are for testing.
//!
//! # Definition
//! Of `n` examples, `round(f·n)` are drawn without replacement, each set of that size being equally likely; at least
//! one, and not all. Both parts keep the order of the table. Classes stay as they are; groups that have training
//! examples are numbered 0, 1, … in the order they had, those without after them.
//!
//! # Determinism
//! Stream (Example, 0, 3): the numbers of the examples are shuffled, the first of them are for testing.

use super::{DataError, Dataset, Split};
use fedgenie_core::rng::{Purpose, Streams};
use std::collections::BTreeMap;

/// Draws the test examples of a seed; `fraction` is their share.
///
/// # Errors
/// [`DataError::Setting`] if the share is not above 0 and below 1, or the table has a single example.
pub fn held_out(data: &Dataset, fraction: f64, streams: &Streams) -> Result<Split, DataError> {
    let refuse = |found, expected| Err(DataError::Setting { key: "test_fraction".to_owned(), found, expected });
    if !(fraction > 0.0 && fraction < 1.0) {
        return refuse(fraction.to_string(), "above 0 and below 1");
    }
    if data.examples() < 2 {
        return refuse(format!("{fraction} of a single row"), "of at least two rows, so that both parts have one");
    }
    let mut order: Vec<u32> = (0..data.examples() as u32).collect();
    streams.stream(Purpose::Example, 0, 3).shuffle(&mut order);
    let count = (fraction * data.examples() as f64).round() as usize;
    let (test, train) = order.split_at_mut(count.clamp(1, data.examples() - 1));
    let numbers = data.groups().map(|groups| renumbered(groups, train));
    let [train, test] = [train, test].map(|rows| {
        rows.sort_unstable();
        part(data, rows, numbers.as_ref())
    });
    Ok(Split { train, test })
}

/// New numbers of the groups: first those with training examples.
fn renumbered(groups: &[u32], train: &[u32]) -> BTreeMap<u32, u32> {
    let mut trains: BTreeMap<u32, bool> = groups.iter().map(|&group| (group, false)).collect();
    trains.extend(train.iter().map(|&row| (groups[row as usize], true)));
    let first = trains.iter().filter(|&(_, &trains)| trains);
    let rest = trains.iter().filter(|&(_, &trains)| !trains);
    first.chain(rest).map(|(&group, _)| group).zip(0..).collect()
}

/// The given rows of a table.
fn part(data: &Dataset, rows: &[u32], numbers: Option<&BTreeMap<u32, u32>>) -> Dataset {
    let indices: Vec<usize> = rows.iter().map(|&row| row as usize).collect();
    let part = data.select(&indices);
    match data.groups().zip(numbers) {
        Some((groups, numbers)) => part.with_groups(indices.iter().map(|&row| numbers[&groups[row]]).collect()),
        None => part,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Shape, Targets};
    use ndarray::Array2;

    fn table(examples: usize) -> Dataset {
        let features = Array2::from_shape_fn((examples, 2), |(row, column)| (2 * row + column) as f32);
        let labels = (0..examples).map(|row| (row % 3) as u8).collect();
        Dataset::new(features, Targets::Classes { labels, classes: 5 })
            .with_shape(Shape { channels: 1, height: 1, width: 2 })
            .with_groups((0..examples).map(|row| (row / 4) as u32).collect())
    }

    fn rows(part: &Dataset) -> Vec<usize> {
        part.features().rows().into_iter().map(|row| row[0] as usize / 2).collect()
    }

    #[test]
    fn every_row_is_in_one_part_in_order_and_complete() {
        let data = table(103);
        for seed in 0..20 {
            let Split { train, test } = held_out(&data, 0.2, &Streams::new(seed)).unwrap();
            let (train_rows, test_rows) = (rows(&train), rows(&test));
            assert_eq!((train_rows.len(), test_rows.len()), (82, 21));
            let mut all = [train_rows, test_rows].concat();
            assert!(all[..82].is_sorted() && all[82..].is_sorted());
            all.sort_unstable();
            assert_eq!(all, (0..103).collect::<Vec<_>>());
            let mut numbers = BTreeMap::new();
            for part in [&train, &test] {
                assert_eq!((part.shape(), part.classes().unwrap().1), (data.shape(), 5));
                for (index, row) in rows(part).into_iter().enumerate() {
                    assert_eq!(part.features()[[index, 1]], (2 * row + 1) as f32);
                    assert_eq!(usize::from(part.classes().unwrap().0[index]), row % 3);
                    let group = part.groups().unwrap()[index];
                    assert_eq!(*numbers.entry(row / 4).or_insert(group), group);
                }
            }
            let trained = train.groups().unwrap().iter().max().unwrap() + 1;
            let mut distinct: Vec<u32> = numbers.into_values().collect();
            distinct.sort_unstable();
            assert_eq!(distinct, (0..26).collect::<Vec<_>>());
            assert!((0..trained).all(|group| train.groups().unwrap().contains(&group)));
        }
        assert_ne!(held_out(&data, 0.2, &Streams::new(1)).unwrap(), held_out(&data, 0.2, &Streams::new(2)).unwrap());
    }

    #[test]
    fn groups_without_training_examples_come_last() {
        assert_eq!(renumbered(&[0, 1, 2, 3, 3], &[1, 4]), BTreeMap::from([(0, 2), (1, 0), (2, 3), (3, 1)]));
    }

    #[test]
    fn each_row_is_held_out_equally_often() {
        let data = table(10);
        let mut counts = [0.0; 10];
        for seed in 0..4_000 {
            let split = held_out(&data, 0.3, &Streams::new(seed)).unwrap();
            rows(&split.test).into_iter().for_each(|row| counts[row] += 1.0);
        }
        // Pearson's statistic with 9 degrees of freedom, scaled for drawing without replacement; 27.9 is its 99.9 %
        // point.
        let statistic = counts.iter().map(|count| (count - 1_200.0_f64).powi(2) / 1_200.0).sum::<f64>() * 0.9 / 0.7;
        assert!(statistic < 27.9, "{statistic}");
    }

    #[test]
    fn both_parts_have_an_example() {
        for (fraction, test) in [(1e-9, 1), (0.5, 1), (0.999, 2)] {
            let split = held_out(&table(3), fraction, &Streams::new(1)).unwrap();
            assert_eq!(split.test.examples(), if fraction == 0.5 { 2 } else { test });
        }
        for fraction in [0.0, 1.0, -0.5, f64::NAN] {
            assert!(held_out(&table(3), fraction, &Streams::new(1)).unwrap_err().to_string().contains("below 1"));
        }
        let error = held_out(&table(1), 0.5, &Streams::new(1)).unwrap_err().to_string();
        assert!(error.contains("0.5 of a single row"), "{error}");
    }
}
