//! Numbers of names, in the order in which they come.
//!
//! A file may have millions: their letters lie in one text, and a name is found by one look into a table.

use std::hash::{DefaultHasher, Hash, Hasher};

/// A place of the table without a name.
const EMPTY: u32 = u32::MAX;

/// Names of two parts; see the [module](self).
#[derive(Default)]
pub struct Names {
    letters: String,
    /// Where the parts of each name end.
    ends: Vec<[usize; 2]>,
    /// Numbers, each where its name's hash says or in the next free place after it; a power of two of them, of which
    /// half at least are empty.
    table: Vec<u32>,
}

fn hash(name: [&str; 2]) -> usize {
    // With fixed keys: the same on every run.
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish() as usize
}

impl Names {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// A name by its number.
    pub fn get(&self, number: usize) -> [&str; 2] {
        let begin = number.checked_sub(1).map_or(0, |before| self.ends[before][1]);
        let [middle, end] = self.ends[number];
        [&self.letters[begin..middle], &self.letters[middle..end]]
    }

    /// The number of a name.
    pub fn find(&self, name: [&str; 2]) -> Option<usize> {
        self.place(name).and_then(|place| self.table.get(place)).filter(|&&number| number != EMPTY).map(|&n| n as usize)
    }

    /// Where a name stands in the table, or would; none while there is no table.
    fn place(&self, name: [&str; 2]) -> Option<usize> {
        let mask = self.table.len().checked_sub(1)?;
        let mut place = hash(name) & mask;
        while self.table[place] != EMPTY && self.get(self.table[place] as usize) != name {
            place = (place + 1) & mask;
        }
        Some(place)
    }

    /// Adds a name that is not there.
    pub fn add(&mut self, name: [&str; 2]) -> usize {
        if 2 * (self.len() + 1) > self.table.len() {
            self.grow();
        }
        let place = self.place(name);
        for part in name {
            self.letters.push_str(part);
        }
        let end = self.letters.len();
        self.ends.push([end - name[1].len(), end]);
        let number = self.len() - 1;
        if let Some(place) = place {
            self.table[place] = number as u32;
        }
        number
    }

    fn grow(&mut self) {
        self.table = vec![EMPTY; (2 * self.table.len()).max(16)];
        for number in 0..self.len() {
            if let Some(place) = self.place(self.get(number)) {
                self.table[place] = number as u32;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn names_are_found_by_both_parts() {
        let (mut names, mut expected) = (Names::default(), BTreeMap::new());
        for number in 0_usize..5_000 {
            // Parts whose letters run together alike are different names.
            let text = format!("{}", number * number % 7_919);
            let (set, name) = text.split_at(number % (text.len() + 1));
            let found = names.find([set, name]);
            assert_eq!(found, expected.get(&[set.to_owned(), name.to_owned()]).copied(), "{set:?} {name:?}");
            if found.is_none() {
                assert_eq!(names.add([set, name]), expected.len());
                expected.insert([set.to_owned(), name.to_owned()], expected.len());
            }
        }
        assert!(names.len() == expected.len() && names.len() > 3_000);
        for (name, number) in expected {
            assert_eq!(names.get(number), [&*name[0], &*name[1]]);
        }
    }
}
