//! Metadata of users in data sets: gender, age, occupation.
//!
//! # Definition
//! A user's numbers, in this order: 1 for `M` and 0 for `F`; the age, less the mean over users and over their standard
//! deviation (divisor n); a 1 in the place of the occupation and 0 in those of the others, in the order of their names.
//!
//! # Inputs
//! `users.dat` of MovieLens 1M: user, gender, age, occupation, postal code, separated by `::`. `u.user` of MovieLens
//! 100K: user, age, gender, occupation, postal code, separated by `|`. Plain or packed with gzip.
//!
//! # Source
//! F. M. Harper, J. A. Konstan, "The MovieLens datasets: history and context", ACM TiiS 5(4), 2015.
//!
//! # Trust
//! None: a malformed line, or a user of the ratings without metadata, is an error with file and line.

use super::Ids;
use super::named::present;
use crate::data::DataError;
use crate::data::rows::Rows;
use fedgenie_core::math::float::sqrt;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Name of the file, separator, number of fields, and the places of user, gender, age and occupation.
type Format = (&'static str, u8, usize, [usize; 4]);

// Between two colons is an empty field.
const FORMATS: [Format; 2] = [("users.dat", b':', 9, [0, 2, 4, 6]), ("u.user", b'|', 5, [0, 2, 1, 3])];

fn find(folder: &Path) -> Option<(PathBuf, Format)> {
    FORMATS.into_iter().find_map(|format| Some((present(folder, format.0)?, format)))
}

/// The file of a folder that describes users, if it has one.
pub fn file(folder: &Path) -> Option<PathBuf> {
    find(folder).map(|(path, _)| path)
}

/// The numbers of each of the ratings' users; `None` if the folder has no such file.
///
/// # Errors
/// See [`DataError`]; file and line of the first thing that is wrong.
pub fn read_users(folder: &Path, ids: &Ids) -> Result<Option<Vec<Vec<f64>>>, DataError> {
    let Some((path, (_, separator, fields, places))) = find(folder) else { return Ok(None) };
    let mut rows = Rows::open_separated(&path, separator)?;
    let mut found: Vec<Option<(f64, f64, String)>> = vec![None; ids.len()];
    let mut last = 1;
    while let Some(line) = rows.advance()? {
        last = line;
        let wrong = |message: String| DataError::Table { path: path.clone(), line, message };
        if rows.record.len() != fields {
            return Err(wrong(format!("found {} fields; expected {fields}", rows.record.len())));
        }
        let [user, gender, age, occupation] = places.map(|place| rows.record[place].trim());
        let gender = match gender {
            "F" => 0.0,
            "M" => 1.0,
            other => return Err(wrong(format!("the gender is {other:?}; expected F or M"))),
        };
        let years = age.parse::<u32>().map_err(|_| wrong(format!("the age is {age:?}; expected a whole number")))?;
        // Of users without ratings nothing is asked.
        if let Some(user) = ids.find(user) {
            found[user as usize] = Some((gender, f64::from(years), occupation.to_owned()));
        }
    }
    if let Some(user) = found.iter().position(Option::is_none) {
        let message = format!("there is no line of user {}, who has ratings", ids.name(user as u32));
        return Err(DataError::Table { path: path.clone(), line: last, message });
    }
    let found: Vec<(f64, f64, String)> = found.into_iter().flatten().collect();
    let count = found.len() as f64;
    let mean = found.iter().map(|(_, age, _)| age).sum::<f64>() / count;
    let deviation = sqrt(found.iter().map(|(_, age, _)| (age - mean) * (age - mean)).sum::<f64>() / count);
    let occupations: BTreeSet<&str> = found.iter().map(|(_, _, occupation)| &**occupation).collect();
    let numbers = |(gender, age, own): &(f64, f64, String)| {
        let age = if deviation > 0.0 { (age - mean) / deviation } else { 0.0 };
        let work = occupations.iter().map(|&occupation| f64::from(u8::from(occupation == own)));
        [*gender, age].into_iter().chain(work).collect()
    };
    Ok(Some(found.iter().map(numbers).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, text: &str, users: u32) -> Result<Option<Vec<Vec<f64>>>, String> {
        let folder = tempfile::TempDir::new().unwrap();
        std::fs::write(folder.path().join(name), text).unwrap();
        read_users(folder.path(), &Ids::AsTheyStand(users)).map_err(|error| error.to_string())
    }

    #[test]
    fn both_files_by_hand() {
        // Ages 20 and 30: mean 25, deviation 5.
        let expected = vec![vec![1.0, 1.0, 0.0, 1.0], vec![0.0, -1.0, 1.0, 0.0]];
        let of_1m = "1::F::20::3::12345\n0::M::30::7::1\n9::M::99::9::1\n";
        assert_eq!(read("users.dat", of_1m, 2), Ok(Some(expected.clone())));
        assert_eq!(read("u.user", "0|30|M|writer|x\n1|20|F|other|y\n", 2), Ok(Some(expected)));
        assert_eq!(read("other", "", 2), Ok(None));
        // Everybody has the same age.
        assert_eq!(read("u.user", "0|30|M|x|x\n", 1), Ok(Some(vec![vec![1.0, 0.0, 1.0]])));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (text, says) in [
            ("0|30|M|x\n", "u.user:1: found 4 fields; expected 5"),
            ("0|30|M|x|y\n1|30|Q|x|y\n", "u.user:2: the gender is \"Q\""),
            ("0|-3|M|x|y\n", "u.user:1: the age is \"-3\""),
            ("0|30|M|x|y\n", "u.user:1: there is no line of user 1, who has ratings"),
        ] {
            let error = read("u.user", text, 2).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }
}
