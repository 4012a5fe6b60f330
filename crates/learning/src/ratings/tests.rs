//! Filters, numbering and dirt, on small tables; real data where it is.

use super::csv::CsvConfig;
use super::source::RatingsSettings;
use super::*;
use fedgenie_core::rng::Streams;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

/// Ratings as they stand, of which the last are for testing.
pub(crate) fn split_of(rows: &[(u32, u32, f32)], test: usize) -> RatingsSplit {
    let count = |number: fn(&(u32, u32, f32)) -> u32| rows.iter().map(number).max().unwrap() + 1;
    let rating = |&(user, item, value): &(u32, u32, f32)| Rating { user, item, value, group: 0, time: 0.0 };
    let ratings = Ratings {
        ratings: rows.iter().map(rating).collect(),
        user_ids: Ids::AsTheyStand(count(|row| row.0)),
        item_ids: Ids::AsTheyStand(count(|row| row.1)),
        group_ids: None,
        has_values: true,
        has_times: false,
        parts: None,
        dropped: Dropped::default(),
    };
    let (train, rest): (Vec<u32>, Vec<u32>) = (0..rows.len() as u32).partition(|&row| row as usize + test < rows.len());
    RatingsSplit { data: Arc::new(ratings), train, valid: Vec::new(), test: rest }
}

/// A folder with files of this content.
pub(super) fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = TempDir::new().unwrap();
    files.iter().for_each(|(name, text)| std::fs::write(folder.path().join(name), text).unwrap());
    folder
}

/// Users, items and values by their ids.
pub(super) fn rows(ratings: &Ratings) -> Vec<(String, String, f32)> {
    let name = |rating: &Rating| (ratings.user_ids.name(rating.user), ratings.item_ids.name(rating.item), rating.value);
    ratings.ratings.iter().map(name).collect()
}

/// Reads a named set from its one file.
fn named_set(name: &str, text: &str, filters: &Filters) -> Result<Ratings, String> {
    let folder = folder(&[(name, text)]);
    named::load_ratings_folder(folder.path(), filters).map_err(|error| error.to_string())
}

#[test]
fn filters_apply_one_after_the_other_and_once() {
    let text = "7\t1\t5\t1\n7\t2\t1\t2\n7\t1\t3\t3\n8\t1\t9\t4\n8\t3\t4\t5\n9\t5\t4\t6\n9\t2\t5\t7\n10\t2\t2\t8\n";
    let filters =
        Filters { range: Some([1.0, 5.0]), positive_at_least: Some(3.0), min_per_user: 2, ..Filters::default() };
    let ratings = named_set("u.data", text, &filters).unwrap();
    let dropped = Dropped { repeated: 1, outside: 1, below: 2, users: 2, of_few: 2 };
    assert_eq!(ratings.dropped, dropped);
    assert_eq!(rows(&ratings), [("9".into(), "5".into(), 4.0), ("9".into(), "2".into(), 5.0)]);
    // The remaining ids are numbered without gaps; item 2 comes before item 5.
    assert_eq!((ratings.user_ids.len(), ratings.item_ids.len(), ratings.ratings[0].item), (1, 2, 1));
    let all = named_set("u.data", text, &Filters::default()).unwrap();
    assert_eq!((all.ratings.len(), all.user_ids.len(), all.item_ids.len(), all.dropped.repeated), (7, 4, 4, 1));
    assert_eq!(all.ratings[0], Rating { user: 0, item: 0, value: 5.0, group: 0, time: 1.0 });
}

#[test]
fn given_numbers_of_users_and_items_keep_ids_and_those_unseen() {
    let text = "3 1\n0 4\n";
    let filters = Filters { users: Some(5), items: Some(6), ..Filters::default() };
    let ratings = named_set("Video.txt", text, &filters).unwrap();
    assert_eq!((ratings.user_ids.len(), ratings.item_ids.len(), ratings.has_values), (5, 6, false));
    assert_eq!(ratings.ratings.iter().map(|rating| (rating.user, rating.item)).collect::<Vec<_>>(), [(3, 1), (0, 4)]);
    let error = named_set("Video.txt", text, &Filters { users: Some(3), ..filters }).unwrap_err();
    assert!(
        error.contains("Video.txt:1: column \"user\": found \"3\"; expected a whole number from 0 to 2 (users = 3)")
    );
}

#[test]
fn what_needs_values_is_refused_where_there_are_none() {
    let with = |filters| named_set("Video.txt", "1 1\n", &filters).unwrap_err();
    let error = with(Filters { positive_at_least: Some(4.0), ..Filters::default() });
    assert!(error.starts_with("positive_at_least = 4: has to be left out"), "{error}");
    let error = with(Filters { range: Some([1.0, 5.0]), ..Filters::default() });
    assert!(error.starts_with("range = [1, 5]: has to be left out"), "{error}");
    for (filters, path) in [
        (Filters { users: Some(0), ..Filters::default() }, "users"),
        (Filters { items: Some(0), ..Filters::default() }, "items"),
        (Filters { range: Some([5.0, 1.0]), ..Filters::default() }, "range"),
        (Filters { range: Some([f64::NAN, 1.0]), ..Filters::default() }, "range"),
        (Filters { positive_at_least: Some(f64::INFINITY), ..Filters::default() }, "positive_at_least"),
    ] {
        assert_eq!(filters.check().unwrap_err().path, path);
    }
    assert_eq!(Filters { range: Some([1.0, 1.0]), ..Filters::default() }.check(), Ok(()));
}

#[test]
fn every_form_of_data_is_read_and_written_alike() {
    for form in [
        json!("ml-100k"),
        json!({"csv": {"file": "a", "user": "u", "item": "i", "rating": "r", "time": "t", "group": "g", "split": "s"}}),
        json!({"csv": {"train": "a", "valid": "b", "test": "c", "user": "user", "item": "item"}}),
        json!({"synthetic": {"users": 4, "items": 6, "ratings": 10, "factors": 2, "noise": 0.25}}),
    ] {
        let config: RatingsConfig = serde_json::from_value(form.clone()).unwrap();
        config.check().unwrap();
        assert_eq!(serde_json::to_value(&config).unwrap(), form);
    }
    let usual: RatingsConfig = serde_json::from_value(json!({"synthetic": {}})).unwrap();
    assert_eq!(usual, RatingsConfig::default());
    for wrong in
        [json!(7), json!({}), json!({"cvs": {}}), json!({"csv": {"files": "a"}}), json!({"csv": {}, "idx": {}})]
    {
        assert!(serde_json::from_value::<RatingsConfig>(wrong.clone()).is_err(), "{wrong}");
    }
}

#[test]
fn files_are_read_once_and_drawn_ratings_are_each_seeds_own() {
    let folder = folder(&[("a.csv", "user,item\n1,2\n")]);
    let path = folder.path().join("a.csv");
    let config: RatingsConfig = serde_json::from_value(json!({"csv": {"file": path}})).unwrap();
    let (cache, filters) = (RatingsCache::default(), Filters::default());
    let load = |config: &RatingsConfig, seed| config.load(&filters, &Streams::new(seed), &cache);
    let first = load(&config, 1).unwrap();
    assert_eq!(config.files(), std::slice::from_ref(&path));
    std::fs::remove_file(&path).unwrap();
    assert!(Arc::ptr_eq(&first, &load(&config, 2).unwrap()));
    let other = Filters { min_per_user: 2, ..Filters::default() };
    assert!(config.load(&other, &Streams::new(1), &cache).unwrap_err().to_string().contains("there is no such file"));
    let drawn = RatingsConfig::default();
    assert_ne!(load(&drawn, 1).unwrap(), load(&drawn, 2).unwrap());
}

#[test]
fn names_of_files_are_made_whole() {
    let mut config = CsvConfig { file: Some("a".into()), ..serde_json::from_value(json!({})).unwrap() };
    config.resolve_paths(Path::new("/here"), Some(Path::new("/data")));
    assert_eq!(config.files(), [PathBuf::from("/data/a")]);
    let mut config: RatingsConfig = serde_json::from_value(json!("ml-1m")).unwrap();
    config.resolve_paths(Path::new("/here"), Some(Path::new("/data")));
    assert_eq!(config, RatingsConfig::Folder("/data/ml-1m".into()));
    assert!(config.files().is_empty() && !config.has_split());
}
