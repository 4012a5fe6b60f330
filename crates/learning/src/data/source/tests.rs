//! Forms of `data` in a scenario, and their results.

use super::*;
use crate::data::synthetic_images::SyntheticImages;
use serde_json::{Value, json};
use tempfile::TempDir;

fn parsed(value: Value) -> DataConfig {
    serde_json::from_value(value).unwrap()
}

fn load(config: &DataConfig, seed: u64, cache: &DataCache) -> Arc<Split> {
    config.check().unwrap();
    config.load(false, &Streams::new(seed), cache).unwrap()
}

fn refused(config: &DataConfig) -> String {
    config.load(false, &Streams::new(1), &DataCache::default()).unwrap_err().to_string()
}

#[test]
fn every_form_is_read_and_written_alike() {
    let forms = [
        json!("folder"),
        json!("csv"),
        json!({"idx": "folder"}),
        json!({"cifar10": "folder"}),
        json!({"cifar100": "folder"}),
        json!({"svhn": "folder"}),
        json!({"csv": {"train": "a", "test": "b", "label": "y", "group": "user", "shape": [3, 2, 1]}}),
        json!({"csv": {"train": "a", "test_fraction": 0.25, "target": "y"}}),
        json!({"npy": {"train": "a", "train_labels": "b", "test": "c", "test_labels": "d"}}),
        json!({"npy": {"train": "a", "train_labels": "b", "test": "c", "test_labels": "d", "shape": [1, 28, 28]}}),
        json!({"synthetic": {"classes": 3, "channels": 2, "height": 4, "width": 5, "train": 6, "test": 7,
                             "noise": 0.5, "deformation": 1.0}}),
    ];
    for form in forms {
        let config = parsed(form.clone());
        config.check().unwrap();
        assert_eq!(serde_json::to_value(&config).unwrap(), form);
        assert_eq!(matches!(config, DataConfig::Folder(_)), form.is_string());
    }
}

#[test]
fn the_defaults_of_synthetic_images_are_the_generators() {
    let DataConfig::Source(DataSource::Synthetic(config)) = parsed(json!({"synthetic": {}})) else { unreachable!() };
    assert_eq!(config.generator(), SyntheticImages::default());
}

#[test]
fn every_relative_name_is_looked_for_in_the_data_folder_or_beside_the_scenario() {
    let config = json!([
        "a", {"idx": "a"}, {"cifar10": "a"}, {"cifar100": "a"}, {"svhn": "a"},
        {"csv": {"train": "a", "test": "a", "label": "y"}}, {"csv": {"train": "a", "test_fraction": 0.5, "label": "y"}},
        {"npy": {"train": "a", "train_labels": "a", "test": "a", "test_labels": "a"}}
    ]);
    for (data, expected) in [(None, "\"/here/a\""), (Some(Path::new("/data")), "\"/data/a\"")] {
        for form in config.as_array().unwrap() {
            let mut config = parsed(form.clone());
            config.resolve_paths(Path::new("/here"), data);
            let written = serde_json::to_string(&config).unwrap();
            assert_eq!(written, serde_json::to_string(form).unwrap().replace("\"a\"", expected));
            let mut absolute = config.clone();
            absolute.resolve_paths(Path::new("/elsewhere"), data);
            assert_eq!(absolute, config);
        }
    }
}

#[test]
fn what_makes_no_sense_is_refused_before_a_file_is_read() {
    let csv = |more: Value| {
        let mut table = json!({"train": "a"});
        more.as_object().unwrap().iter().for_each(|(key, value)| table[key] = value.clone());
        json!({"csv": table})
    };
    for (value, key, message) in [
        (csv(json!({"test": "b"})), "csv", "found neither label nor target"),
        (csv(json!({"test": "b", "label": "y", "target": "y"})), "csv", "found both label and target"),
        (csv(json!({"label": "y"})), "csv", "found neither test nor test_fraction"),
        (csv(json!({"label": "y", "test": "b", "test_fraction": 0.5})), "csv", "found both test and test_fraction"),
        (csv(json!({"label": "y", "test_fraction": 0.0})), "csv.test_fraction", "found 0; expected a number above 0"),
        (csv(json!({"label": "y", "test_fraction": 1.0})), "csv.test_fraction", "found 1; expected"),
        (json!({"synthetic": {"classes": 1}}), "synthetic.classes", "found 1; expected from 2 to 256"),
        (json!({"synthetic": {"channels": 0}}), "synthetic.channels", "found 0; expected at least 1"),
        (json!({"synthetic": {"height": 0}}), "synthetic.height", "found 0"),
        (json!({"synthetic": {"width": 0}}), "synthetic.width", "found 0"),
        (json!({"synthetic": {"train": 0}}), "synthetic.train", "found 0"),
        (json!({"synthetic": {"test": usize::MAX}}), "synthetic.test", "at most 2^28"),
        (json!({"synthetic": {"noise": -1.0}}), "synthetic.noise", "found -1; expected finite and not negative"),
        (json!({"synthetic": {"deformation": -1.0}}), "synthetic.deformation", "found -1"),
    ] {
        let error = parsed(value).check().unwrap_err();
        assert!(error.path == key && error.message.contains(message), "{error:?}");
    }
    for wrong in [
        json!(7),
        json!({}),
        json!({"idx": "a", "csv": {}}),
        json!({"cvs": {}}),
        json!({"csv": {"train": "a", "labels": "y"}}),
        json!({"csv": {"train": "a", "test": "b", "label": "y", "shape": [1, 2]}}),
        json!({"csv": {"train": "a", "test": "b", "label": "y", "shape": [1, 2, 3, 4]}}),
        json!({"csv": {"train": "a", "test": "b", "label": "y", "shape": [1, 0, 3]}}),
        json!({"csv": {"train": "a", "test": "b", "label": "y", "shape": [1u64 << 40, 1u64 << 40, 1]}}),
        json!({"synthetic": {"examples": 5}}),
    ] {
        assert!(serde_json::from_value::<DataConfig>(wrong.clone()).is_err(), "{wrong}");
    }
}

fn words(words: &[u32], data: &[u8]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).chain(data.iter().copied()).collect()
}

fn write_idx(folder: &Path) {
    let write = |name: &str, bytes: Vec<u8>| std::fs::write(folder.join(name), bytes).unwrap();
    write("train-images-idx3-ubyte", words(&[2051, 2, 1, 2], &[0, 255, 51, 102]));
    write("train-labels-idx1-ubyte", words(&[2049, 2], &[0, 1]));
    write("t10k-images-idx3-ubyte", words(&[2051, 1, 1, 2], &[255, 0]));
    write("t10k-labels-idx1-ubyte", words(&[2049, 1], &[1]));
}

fn write_cifar(folder: &Path, train: &str, test: &str, labels: &[u8]) {
    let row: Vec<u8> = labels.iter().copied().chain(std::iter::repeat_n(7, 3_072)).collect();
    std::fs::write(folder.join(train), &row).unwrap();
    std::fs::write(folder.join(test), &row).unwrap();
}

#[test]
fn a_folder_is_recognised_by_its_files() {
    let cache = DataCache::default();
    let (idx, ten, hundred) = (TempDir::new().unwrap(), TempDir::new().unwrap(), TempDir::new().unwrap());
    write_idx(idx.path());
    write_cifar(ten.path(), "train_1.bin", "test_batch.bin", &[9]);
    write_cifar(hundred.path(), "train.bin", "test.bin", &[1, 99]);
    std::fs::write(hundred.path().join("fine_label_names.txt"), "").unwrap();
    for (folder, key, classes, width) in
        [(&idx, "idx", 2, 2), (&ten, "cifar10", 10, 3_072), (&hundred, "cifar100", 100, 3_072)]
    {
        let plain = load(&DataConfig::Folder(folder.path().to_owned()), 1, &cache);
        assert_eq!((plain.train.classes().unwrap().1, plain.test.width()), (classes, width));
        assert_eq!(*plain, *load(&parsed(json!({ key: folder.path() })), 1, &cache));
    }
    let empty = TempDir::new().unwrap();
    let text = refused(&DataConfig::Folder(empty.path().to_owned()));
    assert!(text.contains("has no file of a known name") && text.contains("data_batch_1.bin"), "{text}");
    let text = refused(&DataConfig::Folder(empty.path().join("none")));
    assert!(text.contains("none: there is no such folder; `--data DIR` says where"), "{text}");
    assert!(text.contains("DIR, then beside the scenario); expected either the IDX files"), "{text}");
    write_idx(ten.path());
    let text = refused(&DataConfig::Folder(ten.path().to_owned()));
    assert!(text.contains("has files of several data sets' names; say which with { idx = .. }, { cifar10"), "{text}");
    // A file taken for CIFAR-10 that has rows of CIFAR-100 is refused with the remedy.
    std::fs::remove_file(hundred.path().join("fine_label_names.txt")).unwrap();
    let text = refused(&DataConfig::Folder(hundred.path().to_owned()));
    assert!(text.contains("{ cifar100 = \"folder\" }"), "{text}");
}

#[test]
fn files_are_read_once_and_rows_for_testing_drawn_for_each_seed() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name);
    let rows: String = (0..40).map(|row| format!("{row},{},{}\n", row % 4, row % 5)).collect();
    std::fs::write(path("a.csv"), format!("x,y,user\n{rows}")).unwrap();
    let two = parsed(json!({"csv": {"train": path("a.csv"), "test": path("a.csv"), "label": "y", "group": "user"}}));
    let one = parsed(json!({"csv": {"train": path("a.csv"), "test_fraction": 0.25, "label": "y", "group": "user"}}));
    let cache = DataCache::default();
    let (both, drawn) = (load(&two, 1, &cache), load(&one, 1, &cache));
    assert_eq!((drawn.train.examples(), drawn.test.examples(), drawn.train.classes().unwrap().1), (30, 10, 4));
    assert!(drawn.train.groups().is_some() && drawn.test.groups().is_some());

    // Gone, and nevertheless there for another seed.
    std::fs::remove_file(path("a.csv")).unwrap();
    assert!(Arc::ptr_eq(&both, &load(&two, 2, &cache)));
    assert!(Arc::ptr_eq(&drawn, &load(&one, 1, &cache)), "drawn once for a seed");
    assert_ne!(*drawn, *load(&one, 2, &cache));
    assert!(refused(&one).contains("a.csv: there is no such file"));
}

#[test]
fn synthetic_images_are_each_seeds_own() {
    let config = parsed(json!({"synthetic": {"train": 20, "test": 10, "height": 6, "width": 5, "channels": 3}}));
    let cache = DataCache::default();
    let split = load(&config, 1, &cache);
    assert_eq!((split.train.examples(), split.test.examples(), split.train.width()), (20, 10, 90));
    assert!(Arc::ptr_eq(&split, &load(&config, 1, &cache)), "drawn once for a seed");
    assert_eq!(*split, *load(&config, 1, &DataCache::default()));
    assert_ne!(*split, *load(&config, 2, &cache));
}

#[test]
fn normalized_or_not_are_two() {
    let folder = TempDir::new().unwrap();
    write_idx(folder.path());
    let cache = DataCache::default();
    let config = DataConfig::Folder(folder.path().to_owned());
    let plain = load(&config, 1, &cache);
    let normal = config.load(true, &Streams::new(1), &cache).unwrap();
    assert_eq!(*normal, Split::clone(&plain).normalized().unwrap());
    assert_ne!(*normal, *plain);
    let drawn = parsed(json!({"synthetic": {"train": 20, "test": 10}}));
    let normal = drawn.load(true, &Streams::new(1), &cache).unwrap();
    assert_eq!(*normal, Split::clone(&load(&drawn, 1, &cache)).normalized().unwrap());
}

#[test]
fn a_single_row_cannot_be_divided() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.csv");
    std::fs::write(&path, "x,y\n1,0.5\n").unwrap();
    let text = refused(&parsed(json!({"csv": {"train": path, "test_fraction": 0.5, "target": "y"}})));
    assert!(text.starts_with("data.csv.test_fraction = 0.5 of a single row: has to be of at least two rows"), "{text}");
}
