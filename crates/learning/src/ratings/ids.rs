//! The names of the users and items of a data set, and their numbers.

use std::cmp::Ordering;
use std::collections::BTreeMap;

/// The names of users, items or groups, in the order of their numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ids {
    /// Numbers are names: `0 … n − 1`.
    AsTheyStand(u32),
    /// Whole numbers, ascending.
    Numbers(Vec<u64>),
    /// Texts, ascending by value if each is a number, else by their bytes.
    Texts(Vec<String>),
}

impl Ids {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Self::AsTheyStand(count) => *count as usize,
            Self::Numbers(numbers) => numbers.len(),
            Self::Texts(texts) => texts.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The data set's name of number `index`.
    ///
    /// # Panics
    /// If there is no such number.
    pub fn name(&self, index: u32) -> String {
        assert!((index as usize) < self.len(), "{index} is below the number of names");
        match self {
            Self::AsTheyStand(_) => index.to_string(),
            Self::Numbers(numbers) => numbers[index as usize].to_string(),
            Self::Texts(texts) => texts[index as usize].clone(),
        }
    }

    /// The number of a name.
    pub fn find(&self, name: &str) -> Option<u32> {
        match self {
            Self::AsTheyStand(count) => whole(name).and_then(|id| u32::try_from(id).ok()).filter(|id| id < count),
            Self::Numbers(numbers) => numbers.binary_search(&whole(name)?).ok().map(|index| index as u32),
            Self::Texts(texts) => {
                let by_value = are_numbers(texts);
                texts.binary_search_by(|text| compare(text, name, by_value)).ok().map(|index| index as u32)
            }
        }
    }

    /// The wanted ids, in the same order.
    #[must_use]
    pub(super) fn select(self, wanted: &[bool]) -> Self {
        fn chosen<T>(names: Vec<T>, wanted: &[bool]) -> Vec<T> {
            names.into_iter().zip(wanted).filter(|(_, wanted)| **wanted).map(|(name, _)| name).collect()
        }
        match self {
            Self::AsTheyStand(count) => Self::AsTheyStand(count),
            Self::Numbers(numbers) => Self::Numbers(chosen(numbers, wanted)),
            Self::Texts(texts) => Self::Texts(chosen(texts, wanted)),
        }
    }
}

/// A whole number as one writes it: digits alone, no zero before others.
pub(super) fn whole(name: &str) -> Option<u64> {
    let digits = name.as_bytes();
    let is_plain = (1..=19).contains(&digits.len())
        && digits.iter().all(u8::is_ascii_digit)
        && (digits[0] != b'0' || digits.len() == 1);
    if is_plain { name.parse().ok() } else { None }
}

fn value(name: &str) -> Option<f64> {
    name.parse().ok().filter(|value: &f64| value.is_finite())
}

fn are_numbers<T: AsRef<str>>(names: &[T]) -> bool {
    names.iter().all(|name| value(name.as_ref()).is_some())
}

/// The order of names: by value if all are numbers, names of equal value and others by their bytes.
fn compare(one: &str, other: &str, by_value: bool) -> Ordering {
    match (value(one), value(other)) {
        (Some(x), Some(y)) if by_value => x.total_cmp(&y).then_with(|| one.cmp(other)),
        _ => one.cmp(other),
    }
}

/// The names in a column, row by row, while it is read.
#[derive(Debug)]
pub(super) enum Column {
    /// As long as each is a whole number: most are, and then no text is kept.
    Numbers(Vec<u64>),
    Texts {
        known: BTreeMap<String, u32>,
        rows: Vec<u32>,
    },
}

impl Default for Column {
    fn default() -> Self {
        Self::Numbers(Vec::new())
    }
}

impl Column {
    pub fn push(&mut self, name: &str) {
        if let Self::Numbers(numbers) = self {
            if let Some(number) = whole(name) {
                numbers.push(number);
                return;
            }
            let mut texts = Self::Texts { known: BTreeMap::new(), rows: Vec::with_capacity(numbers.len() + 1) };
            numbers.iter().for_each(|number| texts.push(&number.to_string()));
            *self = texts;
        }
        let Self::Texts { known, rows } = self else { unreachable!("numbers became texts") };
        let next = known.len() as u32;
        rows.push(match known.get(name) {
            Some(&number) => number,
            None => *known.entry(name.to_owned()).or_insert(next),
        });
    }

    /// The number of each row's name, numbers in ascending order of the names.
    pub fn finish(self) -> (Vec<u32>, Ids) {
        match self {
            Self::Numbers(rows) => {
                let mut numbers = rows.clone();
                numbers.sort_unstable();
                numbers.dedup();
                let largest = numbers.last().map_or(0, |&largest| largest as usize);
                // Most data sets number what they have almost without gaps: looking up is then faster than searching.
                let codes = if largest < 4 * rows.len() {
                    let mut number_of = vec![0; largest + 1];
                    numbers.iter().zip(0..).for_each(|(&id, number)| number_of[id as usize] = number);
                    rows.iter().map(|&id| number_of[id as usize]).collect()
                } else {
                    rows.iter().map(|id| numbers.partition_point(|other| other < id) as u32).collect()
                };
                (codes, Ids::Numbers(numbers))
            }
            Self::Texts { known, mut rows } => {
                let mut names: Vec<(String, u32)> = known.into_iter().collect();
                let by_value = names.iter().all(|(name, _)| value(name).is_some());
                names.sort_by(|(one, _), (other, _)| compare(one, other, by_value));
                let mut numbers = vec![0; names.len()];
                names.iter().zip(0..).for_each(|((_, old), number)| numbers[*old as usize] = number);
                rows.iter_mut().for_each(|row| *row = numbers[*row as usize]);
                (rows, Ids::Texts(names.into_iter().map(|(name, _)| name).collect()))
            }
        }
    }

    /// The ids themselves, if each is a whole number below `count`.
    pub fn into_given(self, count: u32) -> Option<(Vec<u32>, Ids)> {
        let Self::Numbers(rows) = self else { return None };
        let codes = rows.into_iter().map(|id| u32::try_from(id).ok().filter(|id| *id < count));
        Some((codes.collect::<Option<_>>()?, Ids::AsTheyStand(count)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finished(names: &[&str]) -> (Vec<u32>, Vec<String>) {
        let mut column = Column::default();
        names.iter().for_each(|name| column.push(name));
        let (codes, ids) = column.finish();
        let sorted: Vec<String> = (0..ids.len() as u32).map(|index| ids.name(index)).collect();
        for (name, &code) in names.iter().zip(&codes) {
            assert_eq!((&*sorted[code as usize], ids.find(name)), (*name, Some(code)));
        }
        assert_eq!((ids.find("absent"), ids.find("77")), (None, None));
        (codes, sorted)
    }

    #[test]
    fn numbers_are_in_the_order_of_values_and_texts_in_that_of_bytes() {
        assert_eq!(finished(&["10", "9", "10", "0"]), (vec![2, 1, 2, 0], vec!["0".into(), "9".into(), "10".into()]));
        assert_eq!(finished(&["900000000000", "9"]).0, [1, 0]);
        // 1 and 1.0 are two names of equal value.
        assert_eq!(finished(&["10", "1.0", "9.5", "1", "-2"]).1, ["-2", "1", "1.0", "9.5", "10"]);
        assert_eq!(
            finished(&["10", "b", "9", "a", "b"]),
            (vec![0, 3, 1, 2, 3], ["10", "9", "a", "b"].map(str::to_owned).to_vec())
        );
        assert_eq!(finished(&["01", "1"]).1, ["01", "1"]);
    }

    #[test]
    fn given_ids_are_below_their_number() {
        let column = |names: &[&str]| {
            let mut column = Column::default();
            names.iter().for_each(|name| column.push(name));
            column
        };
        let (codes, ids) = column(&["2", "0"]).into_given(4).unwrap();
        assert_eq!(
            (codes, ids.len(), ids.find("3"), ids.find("4"), ids.name(3)),
            (vec![2, 0], 4, Some(3), None, "3".to_owned())
        );
        assert!(column(&["4"]).into_given(4).is_none() && column(&["a"]).into_given(4).is_none());
    }

    #[test]
    fn those_that_are_left_keep_their_order() {
        let ids = Ids::Numbers(vec![3, 5, 8]).select(&[true, false, true]);
        assert_eq!(ids, Ids::Numbers(vec![3, 8]));
        let ids = Ids::Texts(vec!["a".into(), "b".into()]).select(&[false, true]);
        assert_eq!((ids.find("b"), ids.is_empty()), (Some(0), false));
    }
}
