//! Every split on small data: sizes, order, and that nothing is in two parts.

use super::super::tests::split_of;
use super::*;
use serde_json::json;

/// Ratings of three users with 10, 3 and 2 of them, each at its own time or at `time`.
fn data(time: Option<f64>) -> Ratings {
    let rows: Vec<(u32, u32, f32)> = [(0, 10), (1, 3), (2, 2)]
        .iter()
        .flat_map(|&(user, count)| (0..count).map(move |item| (user, item, 1.0)))
        .collect();
    let mut ratings = Ratings::clone(&split_of(&rows, 0).data);
    ratings.has_times = true;
    for (rating, place) in ratings.ratings.iter_mut().zip(0..) {
        rating.time = time.unwrap_or(f64::from(-place));
    }
    ratings
}

fn split(config: serde_json::Value, data: Ratings, seed: u64) -> Result<RatingsSplit, String> {
    let config: SplitConfig = serde_json::from_value(config).map_err(|error| error.to_string())?;
    config.check().map_err(|complaint| complaint.to_string())?;
    config.split(Arc::new(data), &Streams::new(seed)).map_err(|error| error.to_string())
}

/// Numbers of users' ratings in each part.
fn counts(split: &RatingsSplit) -> [[usize; 3]; 3] {
    let mut all = [&split.train[..], &split.valid, &split.test].concat();
    all.sort_unstable();
    assert_eq!(all, (0..split.data.ratings.len() as u32).collect::<Vec<_>>());
    [Part::Train, Part::Valid, Part::Test]
        .map(|part| [0, 1, 2].map(|user| split.part(part).filter(|rating| rating.user == user).count()))
}

#[test]
fn shares_of_each_user_are_rounded_down() {
    let config = json!({"per-user": {"test": 0.34, "valid": 0.2}});
    for seed in 0..20 {
        let found = split(config.clone(), data(None), seed).unwrap();
        assert_eq!(counts(&found), [[5, 2, 2], [2, 0, 0], [3, 1, 0]]);
        assert_eq!((found.users_without(Part::Test), found.users_without(Part::Train)), (1, 0));
        assert!(found.train.is_sorted() && found.test.is_sorted());
    }
    assert_eq!(split(config.clone(), data(None), 1), split(config.clone(), data(None), 1));
    assert_ne!(split(config.clone(), data(None), 1), split(config, data(None), 2));
    let usual: SplitConfig = serde_json::from_value(json!({"per-user": {}})).unwrap();
    assert_eq!(usual, SplitConfig::default());
}

#[test]
fn shares_of_all_are_rounded_down() {
    let found = split(json!({"random": {"test": 0.4, "valid": 0.13}}), data(None), 1).unwrap();
    assert_eq!((found.test.len(), found.valid.len(), found.train.len()), (6, 1, 8));
    counts(&found);
    // 0.29 of 100 is 28.999999999999996 in doubles.
    assert_eq!([share(100, 0.29), share(10, 0.7), share(30, 0.1), share(99, 0.29)], [29, 7, 3, 28]);
}

#[test]
fn the_last_two_of_each_user_are_left_out() {
    // Time runs backwards.
    let found = split(json!("leave-one-out"), data(None), 1).unwrap();
    assert_eq!((found.test.clone(), found.valid.clone()), (vec![0, 10], vec![1, 11]));
    assert_eq!(counts(&found)[0], [8, 1, 2]);
    assert_eq!([Part::Test, Part::Valid].map(|part| found.excluded(part).of(1).to_vec()), [vec![1, 2], vec![2]]);
    // At the same time, the file decides.
    let found = split(json!("leave-one-out"), data(Some(7.0)), 1).unwrap();
    assert_eq!((found.test, found.valid), (vec![9, 12], vec![8, 11]));
    let mut some_missing = data(Some(7.0));
    some_missing.ratings[9].time = f64::NEG_INFINITY;
    assert_eq!(split(json!("leave-one-out"), some_missing, 1).unwrap().test, [8, 12]);
}

#[test]
fn the_datas_own_split_is_taken() {
    let mut own = data(None);
    let parts = (0..15).map(|row| [Part::Train, Part::Test, Part::Valid][row % 3]);
    own.parts = Some(parts.collect());
    assert_eq!(split(json!("file"), own, 1).unwrap().test, [1, 4, 7, 10, 13]);
}

#[test]
fn what_cannot_be_split_is_refused() {
    let mut timeless = data(None);
    timeless.has_times = false;
    for (config, data, says) in [
        (json!("file"), data(None), "split = file: has to be another one, because these data say nothing of a split"),
        (json!("leave-one-out"), timeless, "split = leave-one-out: has to be another one"),
        (json!({"random": {"test": 0.0}}), data(None), "random.test: found 0; expected a share above 0"),
        (
            json!({"per-user": {"test": 0.5, "valid": 0.5}}),
            data(None),
            "per-user.valid: found 0.5; expected 0 or a share",
        ),
        (json!({"random": {"test": 0.01}}), data(None), "split = random of 15 ratings, none of which is for testing"),
        (json!({"per-user": {"valid": 0.01}}), data(None), "none of which is for validation"),
        (json!({"random": {"tests": 0.1}}), data(None), "unknown field `tests`"),
    ] {
        let error = split(config, data, 1).unwrap_err();
        assert!(error.contains(says), "{error}");
    }
    let found = split(json!({"per-user": {"valid": 0.0}}), data(None), 1).unwrap();
    assert!(found.valid.is_empty() && found.test.len() == 2);
}
