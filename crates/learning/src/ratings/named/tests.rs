//! Small files of every format; the published counts where the data is.

use super::super::tests::{folder, rows};
use super::super::{Dropped, Filters, Ratings};
use super::*;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;

fn load(files: &[(&str, &str)]) -> Result<Ratings, String> {
    let folder = folder(files);
    load_ratings_folder(folder.path(), &Filters::default()).map_err(|error| error.to_string())
}

#[test]
fn every_format_is_told_by_its_file() {
    let expected = [("1".to_owned(), "8".to_owned(), 4.0), ("2".to_owned(), "7".to_owned(), 3.0)];
    let filmtrust = "user\titem\trating_code\tsplit\n1\t8\t4\ttest\n2\t7\t3\ttrain\n";
    for (name, text, times) in [
        ("u.data", "1\t8\t4\t900\n2\t7\t3\t800\n", Some([900.0, 800.0])),
        ("ratings.dat", "1::8::4::900\n2::7::3::800\n", Some([900.0, 800.0])),
        ("ratings_with_order.dat", "1::8::4::2\n2::7::3::\n", Some([2.0, f64::NEG_INFINITY])),
        ("ratings.tsv", "user_id\tproduct_id\tcategory_id\trating\thelpfulness\n1\t8\t3\t4\t1\n2\t7\t3\t3\t1\n", None),
        ("ratings.tsv", "user_id\titem_id\trating\tfold\n1\t8\t4\t1\n2\t7\t3\t5\n", None),
        ("ratings.tsv", filmtrust, None),
    ] {
        let found = load(&[(name, text)]).unwrap();
        assert_eq!(rows(&found), expected, "{name}");
        assert_eq!(found.has_times, times.is_some());
        if let Some(times) = times {
            assert_eq!([found.ratings[0].time, found.ratings[1].time], times);
        }
        assert_eq!(found.parts.is_some(), text == filmtrust);
        let packed = tempfile::TempDir::new().unwrap();
        let file = std::fs::File::create(packed.path().join(format!("{name}.gz"))).unwrap();
        let mut encoder = GzEncoder::new(file, Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap();
        assert_eq!(load_ratings_folder(packed.path(), &Filters::default()).unwrap(), found);
    }
    let games = load(&[("video_games_5core_sasrec.txt", "1 8\n1 7\n2 7\n")]).unwrap();
    assert!(games.has_times && !games.has_values && games.ratings[0].time < games.ratings[1].time);
}

#[test]
fn the_set_of_games_is_found_beside() {
    let root = tempfile::TempDir::new().unwrap();
    std::fs::create_dir(root.path().join("amazon")).unwrap();
    std::fs::write(root.path().join("amazon/Video.txt"), "1 2\n").unwrap();
    let (named, path) = recognise(&root.path().join("video-games")).unwrap();
    assert_eq!((named, path.clone()), (Named::VideoGames, root.path().join("amazon/Video.txt")));
    assert_eq!(files(&root.path().join("video-games")), [path]);
    assert!(recognise(&root.path().join("games")).is_err());
}

#[test]
fn what_is_no_known_set_is_refused() {
    for (files, says) in [
        (&[][..], "has no file of a known name; expected one of the files u.data (ml-100k), ratings.dat (ml-1m)"),
        (&[("u.data", ""), ("Video.txt", "")], "has the files of two sets"),
        (&[("ratings.tsv", "user\titem\n")], "ratings.tsv:1: the header is that of no known set"),
        (&[("u.data", "1\t2\t3\n")], "u.data:1: found 3 fields; expected 4"),
        (&[("u.data", "1\t2\tx\t4\n")], "u.data:1: column \"rating\": found \"x\"; expected a finite number"),
        (&[("u.data", "1\t2\tNaN\t4\n")], "column \"rating\": found \"NaN\""),
        (&[("u.data", "1\t2\t3\t4\n\t2\t3\t4\n")], "u.data:2: column \"user\": found \"\"; expected a name"),
        (&[("ratings.tsv", "user\titem\trating_code\tsplit\n1\t2\t3\tdev\n")], "ratings.tsv:2: the split is \"dev\""),
    ] {
        let error = load(files).unwrap_err();
        assert!(error.contains(says), "{error}");
    }
    let error = recognise(Path::new("/nowhere/ml-100k")).unwrap_err().to_string();
    assert!(error.contains("/nowhere/ml-100k: there is no such folder; `--data DIR`"), "{error}");
    assert!(error.contains("--data"), "{error}");
}

/// A folder of real data, if it is there: below `FEDGENIE_DATA`, else in `shared/data` beside the repository.
fn real(name: &str) -> Option<PathBuf> {
    // Unit tests run in the crate's folder.
    let beside = || PathBuf::from("../../../shared/data");
    let root = std::env::var_os("FEDGENIE_DATA").map_or_else(beside, PathBuf::from);
    let folder = root.join(name);
    if recognise(&folder).is_err() {
        println!("skipped: there is no {}; set FEDGENIE_DATA to the folder that contains {name}/", folder.display());
        return None;
    }
    Some(folder)
}

#[test]
fn published_sets_have_the_published_counts() {
    // Ratings after repeated pairs were dropped, users, items, repeated pairs; the values and how often each is there.
    type Expected = (usize, usize, usize, usize, f32, &'static [usize]);
    let sets: [(&str, Expected); 6] = [
        ("ml-100k", (100_000, 943, 1_682, 0, 1.0, &[6_110, 11_370, 27_145, 34_174, 21_201])),
        ("ml-1m", (1_000_209, 6_040, 3_706, 0, 1.0, &[56_174, 107_557, 261_197, 348_971, 226_310])),
        ("video-games", (287_107, 31_013, 23_715, 0, 1.0, &[287_107])),
        ("ciao", (282_650, 7_375, 105_114, 1_436, 0.0, &[])),
        ("epinions", (912_441, 22_164, 296_277, 9_826, 1.0, &[])),
        ("filmtrust", (18_662, 740, 1_957, 0, 0.0, &[557, 687, 862, 1_692, 2_192, 4_113, 3_851, 4_708])),
    ];
    for (name, (count, users, items, repeated, first, values)) in sets {
        let summary = ENTRIES.iter().find(|entry| entry.name == name).unwrap().summary;
        for number in [count, users, items] {
            // With a comma between thousands.
            let digits = number.to_string();
            let commas = digits.len().checked_sub(3).map(|at| [&digits[..at], &digits[at..]]);
            let written = match commas {
                Some([thousands, rest]) if thousands.len() > 3 => {
                    let at = thousands.len() - 3;
                    format!("{},{},{rest}", &thousands[..at], &thousands[at..])
                }
                Some(["", rest]) => rest.to_owned(),
                Some([thousands, rest]) => format!("{thousands},{rest}"),
                None => digits,
            };
            assert!(summary.contains(&format!(" {written} ")), "{name}: {written} is not in {summary:?}");
        }
        let Some(folder) = real(name) else { continue };
        let found = load_ratings_folder(&folder, &Filters::default()).unwrap();
        assert_eq!((found.ratings.len(), found.user_ids.len(), found.item_ids.len()), (count, users, items), "{name}");
        assert_eq!(found.dropped, Dropped { repeated, ..Dropped::default() }, "{name}");
        for (&expected, place) in values.iter().zip(0..) {
            let value = first + place as f32;
            let number = found.ratings.iter().filter(|rating| rating.value == value).count();
            assert_eq!(number, expected, "{name}: {value}");
        }
    }
}

#[test]
fn ciaos_ratings_of_zero_are_outside_its_range() {
    let Some(folder) = real("ciao") else { return };
    let filters = Filters { range: Some([1.0, 5.0]), ..Filters::default() };
    let found = load_ratings_folder(&folder, &filters).unwrap();
    assert_eq!(found.ratings.len() + found.dropped.outside + found.dropped.repeated, 284_086);
    assert!((30..=34).contains(&found.dropped.outside), "{:?}", found.dropped);
    println!("ciao: {:?}, {} users, {} items", found.dropped, found.user_ids.len(), found.item_ids.len());
}

#[test]
fn ranks_in_time_are_missing_in_598_rows_of_movielens_1m() {
    let Some(folder) = real("ml-1m") else { return };
    let found = load_ratings_folder(&folder, &Filters::default()).unwrap();
    assert_eq!(found.ratings.iter().filter(|rating| rating.time == f64::NEG_INFINITY).count(), 598);
}
