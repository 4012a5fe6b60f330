//! Who sees which example in which manner, and what is refused.

use super::*;
use crate::data::Targets;
use ndarray::Array2;
use serde_json::json;

fn read(value: serde_json::Value) -> FeatureSkew {
    let config: PartitionConfig = serde_json::from_value(json!({ "feature-skew": value })).unwrap();
    config.feature_skew().unwrap().clone()
}

const IMAGES: Shape = Shape { channels: 3, height: 2, width: 2 };

#[test]
fn manners_follow_from_the_streams() {
    let skew = read(json!({
        "rotation": { "choices": [0, 90, 180, 270] },
        "noise": { "ramp": [0, 0.5] },
        "colour": { "contrast": { "uniform": [0.5, 1.5] }, "brightness": { "each": [0.25, 0.5, 0.75] } },
    }));
    skew.check().unwrap();
    let streams = Streams::new(6);
    let manners = skew.manners(3, IMAGES, &streams).unwrap();
    for (client, manner) in (0..3).zip(&manners) {
        let uniform = |index| streams.stream(Purpose::Partition, client, index).uniform();
        assert_eq!(manner.rotation, (4.0 * uniform(16)).floor() * 90.0);
        assert_eq!(manner.noise, 0.25 * f64::from(client));
        let mut contrasts = streams.stream(Purpose::Partition, client, 18);
        let brightness = 0.25 * f64::from(client + 1);
        assert_eq!(manner.colour, [(); 3].map(|()| [0.5 + contrasts.uniform(), brightness]));
    }
    let alike = read(json!({ "colour": { "contrast": { "uniform": [0.5, 1.5] }, "alike": true } }));
    let alike = alike.manners(3, IMAGES, &streams).unwrap();
    assert!((0..3).all(|client| alike[client].colour == [[manners[client].colour[0][0], 0.0]; 3]));
    // Angles are those of the four choices, about equally often.
    let many = read(json!({ "rotation": { "choices": [0, 90, 180, 270] } })).manners(4_000, IMAGES, &streams).unwrap();
    for angle in [0.0, 90.0, 180.0, 270.0] {
        let count = many.iter().filter(|manner| manner.rotation == angle).count();
        assert!(count.abs_diff(1_000) < 130, "{angle}: {count}");
    }
}

/// Rows of clients have their manner, those that are held out too; others stay, or are seen by clients in proportion to
/// their examples.
#[test]
fn rows_are_seen_by_their_clients() {
    let rows =
        |count: usize| Dataset::new(Array2::zeros((count, 12)), Targets::Values(vec![0.0; count])).with_shape(IMAGES);
    let data = Split { train: rows(20), test: rows(4_000) };
    let (train, own) = (Partition::deal(vec![3, 1, 4, 15, 9], &[1, 3, 1]), Partition::deal(vec![2, 6, 5], &[0, 3, 0]));
    let stage = |test: &str| {
        let skew = read(json!({ "rotation": 30, "test": test }));
        skew.stage(&data, &[&train, &own], &[7, 8, 10], &Streams::new(1)).unwrap()
    };
    let plain = stage("unchanged");
    let mut expected = vec![None; 20];
    for (row, client) in [(3, 0), (1, 1), (4, 1), (15, 1), (9, 2), (2, 1), (6, 1), (5, 1)] {
        expected[row] = Some(client);
    }
    assert!(plain.train == expected && plain.test.is_empty() && plain.manners.len() == 3);
    let seen = stage("clients");
    let among = [7, 8, 10];
    for (row, own) in expected.iter().enumerate() {
        let found = seen.train[row];
        assert!(if among.contains(&row) { found.is_some() } else { found == *own });
    }
    // Of 8 examples 1, 6 and 1.
    for (client, expected) in [(0, 500_usize), (1, 3_000), (2, 500)] {
        let count = seen.test.iter().filter(|by| **by == Some(client)).count();
        assert!(count.abs_diff(expected) < 110, "{client}: {count}");
    }
}

#[test]
fn what_is_not_defined_is_refused() {
    for (value, path, said) in [
        (json!({}), "", "at least one of rotation, noise and colour"),
        (json!({ "colour": {} }), "colour", "contrast, brightness or both"),
        (json!({ "of": { "overlapping": { "size": 3 } }, "rotation": 90 }), "of", "overlapping is none"),
        (json!({ "of": { "feature-skew": { "noise": 1 } }, "rotation": 90 }), "of", "feature-skew is none"),
        (json!({ "of": { "dirichlet": { "alpha": 0 } }, "rotation": 90 }), "of.dirichlet.alpha", "found 0"),
        (json!({ "noise": -0.5 }), "noise", "found -0.5"),
        (json!({ "rotation": { "choices": [] } }), "rotation.choices", "at least one"),
        (json!({ "colour": { "contrast": { "uniform": [2, 1] } } }), "colour.contrast.uniform", "smaller number first"),
    ] {
        let refused = read(value).check().unwrap_err();
        assert!(refused.path == path && refused.message.contains(said), "{refused}");
    }
    let flat = Shape { channels: 12, height: 1, width: 1 };
    for (value, shape, said) in [
        (json!({ "rotation": 90 }), flat, "feature-skew.rotation: needs images"),
        (json!({ "colour": { "brightness": 1 } }), flat, "feature-skew.colour.brightness: needs images"),
        (json!({ "rotation": { "each": [1] } }), IMAGES, "feature-skew.rotation: found a list of 1 values; expected 3"),
        (json!({ "noise": { "normal": { "mean": -9, "sd": 0.1 } } }), flat, "feature-skew.noise: found -"),
    ] {
        let refused = read(value).manners(3, shape, &Streams::new(1)).unwrap_err().to_string();
        assert!(refused.contains(said), "{refused}");
    }
    assert!(read(json!({ "noise": 1 })).manners(3, flat, &Streams::new(1)).is_ok());
}
