//! Tables that are read, and everything that is refused, with file, line and column.

use super::super::tests::{folder, rows};
use super::*;
use serde_json::{Value, json};

fn read(files: &[(&str, &str)], config: Value, filters: &Filters) -> Result<Ratings, String> {
    let folder = folder(files);
    let mut config: CsvConfig = serde_json::from_value(config).map_err(|error| error.to_string())?;
    config.check().map_err(|complaint| complaint.to_string())?;
    config.resolve_paths(folder.path(), None);
    config.load(filters, &Streams::new(1)).map_err(|error| error.to_string())
}

#[test]
fn one_file_with_all_columns() {
    let text = "when,book,reader,shelf,stars,is\n5,b,x,9,3.5,test\n\n 4 ,a,x,10,1,train\n3,a,\"y, z\",9,2,valid\n";
    let config = json!({
        "file": "a.csv", "user": "reader", "item": "book", "rating": "stars", "time": "when", "group": "shelf", "split": "is"
    });
    let found = read(&[("a.csv", text)], config, &Filters::default()).unwrap();
    let row = |user: &str, item: &str, value| (user.to_owned(), item.to_owned(), value);
    assert_eq!(rows(&found), [row("x", "b", 3.5), row("x", "a", 1.0), row("y, z", "a", 2.0)]);
    assert_eq!(
        found.ratings.iter().map(|rating| (rating.time, rating.group)).collect::<Vec<_>>(),
        [(5.0, 0), (4.0, 1), (3.0, 0)]
    );
    assert_eq!(found.parts.unwrap(), [Part::Test, Part::Train, Part::Valid]);
    assert_eq!(found.group_ids.unwrap().name(1), "10");
}

#[test]
fn several_files_share_users_and_items() {
    let files = [("a", "user,item\n2,1\n1,5\n"), ("b", "item,user\n1,1\n"), ("c", "user,item\n3,9\n")];
    let found = read(&files, json!({"train": "a", "valid": "b", "test": "c"}), &Filters::default()).unwrap();
    let pairs: Vec<_> = found.ratings.iter().map(|rating| (rating.user, rating.item)).collect();
    assert_eq!(pairs, [(1, 0), (0, 1), (0, 0), (2, 2)]);
    assert_eq!(found.parts.unwrap(), [Part::Train, Part::Train, Part::Valid, Part::Test]);
    assert!(!found.has_values && !found.has_times && found.group_ids.is_none());
}

#[test]
fn everything_wrong_in_own_files_is_named() {
    let filters = Filters { users: Some(3), items: Some(9), range: Some([1.0, 5.0]), ..Filters::default() };
    let config = json!({"file": "a", "rating": "r", "time": "t", "split": "s"});
    for (text, says) in [
        ("", "a:1: is empty"),
        ("user,item,r,t,s\n", "a:1: has a header only"),
        ("user,item,r,t\n", "a:1: there is no column \"s\" (the split); known: user, item, r, t"),
        ("user,item,r,t,s,r\n", "a:1: there are two columns \"r\""),
        ("user,item,r,t,s\n1,2,3\n", "a:2: found 3 fields; the header has 5 columns"),
        (
            "user,item,r,t,s\n1,2,3,4,train\n3,2,3,4,train\n",
            "a:3: column \"user\": found \"3\"; expected a whole number from 0 to 2",
        ),
        (
            "user,item,r,t,s\n1,x,3,4,train\n",
            "a:2: column \"item\": found \"x\"; expected a whole number from 0 to 8 (items = 9)",
        ),
        ("user,item,r,t,s\n1,,3,4,train\n", "a:2: column \"item\": found \"\"; expected a name"),
        ("user,item,r,t,s\n1,2,NaN,4,train\n", "a:2: column \"r\": found \"NaN\"; expected a finite number"),
        (
            "user,item,r,t,s\n1,2,1e39,4,train\n",
            "a:2: column \"r\": found \"1e39\"; expected a number within the range of f32",
        ),
        (
            "user,item,r,t,s\n1,2,6,4,train\n",
            "a:2: column \"r\": found \"6\"; expected a rating from 1 to 5 (range = [1, 5])",
        ),
        ("user,item,r,t,s\n1,2,5,,train\n", "a:2: column \"t\": found \"\"; expected a finite number"),
        ("user,item,r,t,s\n1,2,5,4,dev\n", "a:2: column \"s\": found \"dev\"; expected train, valid or test"),
        (
            "user,item,r,t,s\n1,2,5,4,train\n2,2,5,4,train\n1,2,3,9,test\n",
            "a:4: column \"item\": found \"2 of user \\\"1\\\"\"; expected each pair once; it stands in",
        ),
    ] {
        let error = read(&[("a", text)], config.clone(), &filters).unwrap_err();
        assert!(error.contains(says), "{error}");
    }
    // The same pair in two files.
    let files = [("a", "user,item\n1,2\n"), ("b", "user,item\n7,7\n1,2\n")];
    let error = read(&files, json!({"train": "a", "test": "b"}), &Filters::default()).unwrap_err();
    assert!(error.contains("b:3: ") && error.contains("a:2 before"), "{error}");
}

#[test]
fn what_makes_no_sense_is_refused_before_a_file_is_read() {
    for (config, says) in [
        (json!({}), "found neither file nor train"),
        (json!({"train": "a"}), "found train without test"),
        (json!({"file": "a", "test": "b"}), "found file beside train, valid or test"),
        (json!({"file": "a", "valid": "b"}), "found file beside train, valid or test"),
        (json!({"train": "a", "test": "b", "split": "s"}), "split: found a column beside files"),
        (json!({"file": "a", "rating": "user"}), "rating: found \"user\", which is user as well"),
        (json!({"file": "a", "score": "s"}), "unknown field `score`"),
    ] {
        let error = read(&[], config, &Filters::default()).unwrap_err();
        assert!(error.contains(says), "{error}");
    }
}
