//! How a scenario says which training examples go to which client.

use super::super::counts::{Scale, TableOfCounts};
use super::super::dirichlet::DirichletClasses;
use super::super::gamma::GammaSizes;
use super::super::shards::LabelShards;
use super::super::two_level::{Law, TwoLevel};
use super::*;
use serde_json::{Value, json};

fn parsed(value: Value) -> PartitionConfig {
    serde_json::from_value(value).unwrap()
}

#[test]
fn every_kind_is_read_with_its_defaults_and_dealt_out() {
    let labels = (0..600).map(|example| (example % 3) as u8).collect();
    let data = Dataset::new(Array2::zeros((600, 0)), Targets::Classes { labels, classes: 3 })
        .with_groups((0..600).map(|example| example / 20).collect());
    let kinds = [
        json!({"dirichlet-two-level": {"servers": 3, "alpha_server": 0.5, "alpha_client": 0.5}}),
        json!({"dirichlet-two-level": {"servers": 3, "alpha_server": 0.5, "alpha_client": 0.5, "law": "by-owner"}}),
        json!({"label-shards": {}}),
        json!({"zipf-sized": {}}),
        json!({"user-balance": {"profile": "exponential", "index": 0.1}}),
        json!({"user-balance": {"profile": "linear", "index": 0.1, "shuffled": true}}),
        json!({"user-balance": {"profile": "linear", "index": 0.1, "shuffled": false, "largest": "last", "by": "groups"}}),
        json!({"by-column": {}}),
    ];
    for kind in kinds {
        let config = parsed(kind);
        config.check().unwrap();
        let partition = config.build(&data, 12, &[], &Streams::new(1)).unwrap();
        assert_eq!((partition.clients(), partition.examples()), (12, 600), "{config:?}");
        assert!(partition.skew(&data).smallest > 0, "{config:?}");
    }
    let drawn = parsed(json!({"overlapping": {"size": 40, "alpha": 0.5}}));
    drawn.check().unwrap();
    let partition = drawn.build(&data, 12, &[], &Streams::new(1)).unwrap();
    assert_eq!((partition.clients(), partition.examples(), drawn.is_declared()), (12, 480, false));
    let declared = parsed(json!({"overlapping": {}}));
    assert!(declared.is_declared());
    let sizes: Vec<u32> = (0..12).collect();
    assert_eq!(declared.build(&data, 12, &sizes, &Streams::new(1)).unwrap().examples(), 66);
    let two = |law: &str| {
        format!(r#"{{"dirichlet-two-level": {{"servers": 3, "alpha_server": 1, "alpha_client": 1{law}}}}}"#)
    };
    let two = |law: &str| serde_json::from_str::<PartitionConfig>(&two(law));
    assert_eq!(two("").unwrap(), two(r#", "law": "by-class""#).unwrap());
    assert!(two(r#", "law": "by-server""#).unwrap_err().to_string().contains("`by-class` or `by-owner`"));
    assert_eq!(parsed(json!({"label-shards": {}})), PartitionConfig::LabelShards(LabelShards { shards_per_client: 2 }));
}

#[test]
fn every_shape_that_is_accepted_deals_out_all_examples() {
    let labels = (0..600).map(|example| (example % 3) as u8).collect();
    let data = Dataset::new(Array2::zeros((600, 0)), Targets::Classes { labels, classes: 3 });
    for shape in [0.001, 0.002, 0.009, 0.01, 1.0, 1e4, 1.1e4, 1e5] {
        for kind in [
            json!({"dirichlet": {"alpha": shape}}),
            json!({"dirichlet-two-level": {"servers": 3, "alpha_server": shape, "alpha_client": shape}}),
            json!({"dirichlet-two-level": {"servers": 1, "alpha_server": shape, "alpha_client": shape, "law": "by-owner"}}),
            json!({"gamma-sized": {"shape": shape}}),
        ] {
            let config = parsed(kind);
            config.check().unwrap();
            let partition = config.build(&data, 6, &[], &Streams::new(1)).unwrap();
            let skew = partition.skew(&data);
            assert_eq!(partition.examples(), 600, "{config:?}");
            // Sizes that are drawn have a deviation of at least √(600·1/6·5/6) = 9.
            let most = if format!("{config:?}").contains("ByOwner") { 150 } else { 105 };
            assert!(
                if shape < 0.1 { skew.largest >= 195 } else { shape == 1.0 || skew.largest <= most },
                "{config:?} {skew:?}"
            );
        }
    }
    for shape in [0.0, 9e-4, 1.001e5, f64::NAN] {
        for config in [
            PartitionConfig::Dirichlet(DirichletClasses { alpha: shape, minimum: 1 }),
            PartitionConfig::GammaSized(GammaSizes { shape, minimum: 1 }),
            PartitionConfig::DirichletTwoLevel(TwoLevel {
                servers: 1,
                alpha_server: 1.0,
                alpha_client: shape,
                minimum: 1,
                law: Law::ByClass,
            }),
        ] {
            let error = config.check().unwrap_err();
            assert!(error.message.ends_with("expected a number from 0.001 to 100000"), "{error:?}");
        }
    }
}

#[test]
fn wrong_parameters_are_named() {
    let two = |servers: usize, server: f64, client: f64| json!({"dirichlet-two-level": {"servers": servers, "alpha_server": server, "alpha_client": client}});
    let wrong = [
        (two(0, 1.0, 1.0), "dirichlet-two-level.servers"),
        (two(1, 0.0, 1.0), "dirichlet-two-level.alpha_server"),
        (two(1, 1.0, -1.0), "dirichlet-two-level.alpha_client"),
        (json!({"label-shards": {"shards_per_client": 0}}), "label-shards.shards_per_client"),
        (json!({"zipf-sized": {"exponent": -1.0}}), "zipf-sized.exponent"),
        (json!({"user-balance": {"profile": "linear", "index": 0.0}}), "user-balance.index"),
        (json!({"user-balance": {"profile": "linear", "index": 1.5}}), "user-balance.index"),
        (
            json!({"user-balance": {"profile": "linear", "index": 0.5, "shuffled": true, "largest": "last"}}),
            "user-balance.largest",
        ),
    ];
    for (value, key) in wrong {
        assert_eq!(parsed(value).check().unwrap_err().path, key);
    }
}

#[test]
fn a_table_is_looked_for_in_the_data_folder_or_beside_the_scenario() {
    let config = parsed(json!({"class-counts": {"file": "counts.csv", "scale": "fit"}}));
    for (data, expected) in [(None, "/here/counts.csv"), (Some(Path::new("/data")), "/data/counts.csv")] {
        let mut config = config.clone();
        config.resolve_paths(Path::new("/here"), data);
        assert_eq!(config, PartitionConfig::ClassCounts(TableOfCounts { file: expected.into(), scale: Scale::Fit }));
    }
}
