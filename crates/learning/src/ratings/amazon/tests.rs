//! Every published form with the same reviews, and wrong files.

use super::super::Dropped;
use super::*;
use serde_json::json;
use tempfile::TempDir;

fn load(text: &str, more: serde_json::Value, filters: &Filters) -> Result<Ratings, String> {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("reviews"), text).unwrap();
    let mut settings = json!({"file": "reviews"});
    more.as_object().unwrap().iter().for_each(|(key, value)| settings[key] = value.clone());
    let mut config: AmazonConfig = serde_json::from_value(settings).unwrap();
    config.resolve_paths(folder.path(), None);
    let found = config.load(filters, &Streams::new(1)).map_err(|error| error.to_string());
    found.map_err(|error| error.replace(&*folder.path().to_string_lossy(), "DIR"))
}

/// User, item, value and time of each rating, by names.
fn named(ratings: &Ratings) -> Vec<(String, String, f32, f64)> {
    let name = |rating: &super::super::Rating| {
        let (user, item) = (ratings.user_ids.name(rating.user), ratings.item_ids.name(rating.item));
        (user.to_string(), item.to_string(), rating.value, rating.time)
    };
    ratings.ratings.iter().map(name).collect()
}

#[test]
fn every_form_has_the_same_reviews() {
    let older = "{\"reviewerID\": \"A1\", \"asin\": \"B7\", \"overall\": 5.0, \"reviewText\": \"a \\\"b\\\",\\nc\", \"unixReviewTime\": 30}\n\
                 \n\
                 {\"overall\": 2.0, \"verified\": true, \"reviewerID\": \"A2\", \"asin\": \"B\\u0037\", \"unixReviewTime\": 10}\r\n\
                 {\"reviewerID\": \"A1\", \"asin\": \"B7\", \"overall\": 1.0, \"unixReviewTime\": 20}";
    let newer = "{\"rating\": 5, \"user_id\": \"A1\", \"asin\": \"B0\", \"parent_asin\": \"B7\", \"timestamp\": 30, \"images\": []}\n\
                 {\"rating\": 2, \"user_id\": \"A2\", \"asin\": \"B7\", \"timestamp\": 10}\n\
                 {\"rating\": 1, \"user_id\": \"A1\", \"asin\": \"B9\", \"parent_asin\": \"B7\", \"timestamp\": 20}\n";
    let header = "user_id,parent_asin,rating,timestamp,history\nA1,B7,5.0,30,\nA2,B7,2.0,10,B1 B2\nA1,B7,1.0,20,\n";
    let other = "unix_time,reviewer_id,asin,rating\n30,A1,B7,5.0\n10,A2,B7,2.0\n20,A1,B7,1.0\n";
    let users_first = "A1,B7,5.0,30\nA2,B7,2.0,10\nA1,B7,1.0,20\n";
    let items_first = "B7,A1,5.0,30\nB7,A2,2.0,10\nB7,A1,1.0,20\n";
    for (text, order) in [
        (older, json!({})),
        (newer, json!({})),
        (header, json!({})),
        (other, json!({})),
        (users_first, json!({"order": "user-item"})),
        (items_first, json!({"order": "item-user"})),
    ] {
        let found = load(text, order, &Filters::default()).unwrap();
        let of = |user: &str, value, time| (user.to_owned(), "B7".to_owned(), value, time);
        assert_eq!(named(&found), [of("A1", 5.0, 30.0), of("A2", 2.0, 10.0)], "{text}");
        assert_eq!(found.dropped, Dropped { repeated: 1, ..Dropped::default() });
        let few = load(newer, json!({}), &Filters { range: Some([3.0, 5.0]), ..Filters::default() }).unwrap();
        assert_eq!((few.ratings.len(), few.dropped.outside), (1, 1));
    }
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    let user_item = || json!({"order": "user-item"});
    for (text, more, says) in [
        ("", json!({}), "DIR/reviews:1: is empty"),
        ("A1,B7,5.0,30\n", json!({}), "reviews:1: there is no header"),
        ("A1,B7,5.0,30\n", json!({}), "order = \"item-user\""),
        ("A1,B7,5.0,30\nA1,B8,5.0\n", user_item(), "reviews:2: found 3 fields; expected 4"),
        ("A1,B7,much,30\n", user_item(), "reviews:1: column \"rating\": found \"much\""),
        ("user_id,asin,rating,timestamp\n", json!({}), "reviews:1: has a header only"),
        ("user_id,asin,rating,timestamp\nA,B,1,2\n", user_item(), "reviews:1: the columns have names"),
        ("{\"user_id\": 1}\n", user_item(), "reviews:1: lines of JSON have names"),
        (
            "\n{\"user_id\": \"A\", \"asin\": \"B\", \"rating\": 3}\n",
            json!({}),
            "reviews:2: found missing field `time`",
        ),
        (
            "{\"user_id\": \"A\", \"rating\": 3, \"timestamp\": 1}\n",
            json!({}),
            "reviews:1: found no item; expected a review",
        ),
        (
            "{\"user_id\": \"A\", \"asin\": \"\", \"rating\": 3, \"timestamp\": 1}\n",
            json!({}),
            "column \"item\": found \"\"",
        ),
        ("{\"user_id\": \"A\", \"asin\": \"B\", \"rating\": 1e99, \"timestamp\": 1}\n", json!({}), "range of f32"),
        ("{\"user_id\": \"A\", \"asin\"\n", json!({}), "reviews:1: found "),
    ] {
        let error = load(text, more, &Filters::default()).unwrap_err();
        assert!(error.contains(says), "{text}: {error}");
    }
}
