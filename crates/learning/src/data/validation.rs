//! Which training rows are for validation.
//!
//! # Definition
//! Of `n` training rows, `⌊share·n⌋` are drawn without replacement, each set of that size being equally likely, and set
//! aside before the rest is spread over clients. A product within a part in 10⁹ of a whole number is that number: of
//! 100 rows a share of 0.29 sets 29 aside.
//!
//! # Determinism
//! Stream (Example, 0, 22): the numbers of the rows are shuffled, the first of them are for validation.

use super::{DataError, Dataset, Targets};
use fedgenie_core::rng::{Purpose, Streams};
use ndarray::Array2;

/// Index of the stream.
const INDEX: u32 = 22;

/// The rows of a training set, in two ascending lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SetAside {
    /// Rows to train on.
    pub train: Vec<u32>,
    /// Rows for validation.
    pub valid: Vec<u32>,
}

impl SetAside {
    /// Draws the validation rows of a seed. `share` is theirs, at least 0 and below 1.
    ///
    /// # Errors
    /// [`DataError::Setting`] if one of both lists would be empty.
    pub fn draw(rows: usize, share: f64, streams: &Streams) -> Result<Self, DataError> {
        let count = whole(share * rows as f64);
        if count == 0 || count >= rows {
            let found = format!("{share} of {rows} training rows, which is {count} of them");
            let expected = "a share that leaves at least one row on each side";
            return Err(DataError::Setting { key: "validation".to_owned(), found, expected });
        }
        let mut order: Vec<u32> = (0..rows as u32).collect();
        streams.stream(Purpose::Example, 0, INDEX).shuffle(&mut order);
        let (valid, train) = order.split_at_mut(count);
        valid.sort_unstable();
        train.sort_unstable();
        Ok(Self { train: train.to_vec(), valid: valid.to_vec() })
    }

    /// Targets and groups of the rows to train on, without features, as a partition needs them.
    pub fn outline(&self, data: &Dataset) -> Dataset {
        let rows = || self.train.iter().map(|&row| row as usize);
        let targets = match data.targets() {
            Targets::Values(values) => Targets::Values(rows().map(|row| values[row]).collect()),
            Targets::Classes { labels, classes } => {
                Targets::Classes { labels: rows().map(|row| labels[row]).collect(), classes: *classes }
            }
        };
        let outline = Dataset::new(Array2::zeros((self.train.len(), 0)), targets);
        match data.groups() {
            Some(groups) => outline.with_groups(rows().map(|row| groups[row]).collect()),
            None => outline,
        }
    }
}

/// The largest whole number of at most a product, which may be rounded.
pub(super) fn whole(product: f64) -> usize {
    let nearest = product.round();
    let is_whole = (product - nearest).abs() <= 1e-9 * nearest;
    (if is_whole { nearest } else { product.floor() }) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_rounded_down() {
        let counts = [(0.1, 19), (0.1, 20), (0.29, 100), (0.3, 10), (0.999, 10), (0.5, 3)];
        assert_eq!(counts.map(|(share, rows)| whole(share * f64::from(rows))), [1, 2, 29, 3, 9, 1]);
        assert_eq!(0.29 * 100.0, 28.999_999_999_999_996);
    }

    #[test]
    fn every_row_is_in_one_list() {
        for seed in 0..20 {
            let SetAside { train, valid } = SetAside::draw(23, 0.2, &Streams::new(seed)).unwrap();
            assert_eq!((train.len(), valid.len()), (19, 4));
            assert!(train.is_sorted() && valid.is_sorted());
            let mut all = [train, valid].concat();
            all.sort_unstable();
            assert_eq!(all, (0..23).collect::<Vec<_>>());
        }
    }

    /// The rows are the first ones after Fisher and Yates' shuffle by the documented stream.
    #[test]
    fn rows_follow_from_the_stream() {
        for seed in [1, 7] {
            let streams = Streams::new(seed);
            let mut order: Vec<u32> = (0..9).collect();
            streams.stream(Purpose::Example, 0, 22).shuffle(&mut order);
            let mut first = order[..3].to_vec();
            first.sort_unstable();
            assert_eq!(SetAside::draw(9, 0.4, &streams).unwrap().valid, first);
        }
    }

    #[test]
    fn each_row_is_set_aside_equally_often() {
        let mut counts = [0.0; 10];
        for seed in 0..4_000 {
            let aside = SetAside::draw(10, 0.3, &Streams::new(seed)).unwrap();
            aside.valid.into_iter().for_each(|row| counts[row as usize] += 1.0);
        }
        // Pearson's statistic with 9 degrees of freedom, scaled for drawing without replacement; 27.9 is its 99.9 %
        // point.
        let statistic = counts.iter().map(|count| (count - 1_200.0_f64).powi(2) / 1_200.0).sum::<f64>() * 0.9 / 0.7;
        assert!(statistic < 27.9, "{statistic}");
    }

    #[test]
    fn both_sides_have_a_row() {
        for (share, rows) in [(0.1, 9), (0.9999999999, 3), (0.5, 1), (0.0, 5), (0.5, 0)] {
            let error = SetAside::draw(rows, share, &Streams::new(1)).unwrap_err().to_string();
            assert!(error.contains(&format!("{share} of {rows} training rows")), "{error}");
        }
    }

    #[test]
    fn an_outline_has_targets_and_groups() {
        let labels = vec![3, 0, 1, 2, 0];
        let data = Dataset::new(Array2::zeros((5, 2)), Targets::Classes { labels, classes: 4 })
            .with_groups(vec![0, 0, 1, 1, 2]);
        let aside = SetAside { train: vec![0, 2, 4], valid: vec![1, 3] };
        let outline = aside.outline(&data);
        assert_eq!((outline.examples(), outline.width()), (3, 0));
        assert_eq!(outline.classes(), Some((&[3, 1, 0][..], 4)));
        assert_eq!(outline.groups(), Some(&[0, 1, 2][..]));
        let numbers = Dataset::new(Array2::zeros((5, 2)), Targets::Values(vec![0.0, 1.0, 2.0, 3.0, 4.0]));
        assert_eq!(aside.outline(&numbers).values(), Some(&[0.0, 2.0, 4.0][..]));
    }
}
