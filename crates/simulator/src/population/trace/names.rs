//! Numbers for names, in the order of their first occurrence.
//!
//! A file may have millions: their letters lie in one text, and a name is found by one look into a table.

use std::hash::{DefaultHasher, Hash, Hasher};

/// A place of the table.
#[derive(Clone, Copy)]
struct Place {
    /// Hash of the name, whose last bits give its place. Few names share a hash.
    hash: u32,
    number: u32,
}

/// A place without a name.
const EMPTY: Place = Place { hash: 0, number: u32::MAX };

/// Names of two parts; see the [module](self).
#[derive(Default)]
pub struct Names {
    letters: String,
    /// Where the parts of each name end.
    ends: Vec<[usize; 2]>,
    /// Names, each at the place of its hash or in the next free place after it. The number of places is a power of two,
    /// and at least half of them are empty.
    table: Vec<Place>,
}

fn hash(name: [&str; 2]) -> u32 {
    // With fixed keys: the same on every run.
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish() as u32
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
        let mask = self.table.len().checked_sub(1)?;
        let hash = hash(name);
        let mut at = hash as usize & mask;
        loop {
            let place = self.table[at];
            if place.number == EMPTY.number {
                return None;
            }
            if place.hash == hash && self.get(place.number as usize) == name {
                return Some(place.number as usize);
            }
            at = (at + 1) & mask;
        }
    }

    /// Adds a name that is not there.
    pub fn add(&mut self, name: [&str; 2]) -> usize {
        if 2 * (self.len() + 1) > self.table.len() {
            let larger = vec![EMPTY; (2 * self.table.len()).max(16)];
            let places = std::mem::replace(&mut self.table, larger);
            places.into_iter().filter(|place| place.number != EMPTY.number).for_each(|place| self.put(place));
        }
        for part in name {
            self.letters.push_str(part);
        }
        let (end, number) = (self.letters.len(), self.len());
        self.ends.push([end - name[1].len(), end]);
        self.put(Place { hash: hash(name), number: number as u32 });
        number
    }

    fn put(&mut self, place: Place) {
        let mask = self.table.len() - 1;
        let mut at = place.hash as usize & mask;
        while self.table[at].number != EMPTY.number {
            at = (at + 1) & mask;
        }
        self.table[at] = place;
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
            // Names whose parts give the same text when joined are different.
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
