//! Reader, generator, partitions and communities on small data: dropped records, refusals, clients' ratings.

use super::*;
use crate::ratings::{Part, SplitConfig};
use std::collections::BTreeSet;

fn folder(ratings: &str, trust: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("ratings.tsv"), ratings).unwrap();
    std::fs::write(folder.path().join("social.tsv"), trust).unwrap();
    folder
}

fn load(ratings: &str, trust: &str, range: Option<[f64; 2]>) -> Result<Arc<SocialRatings>, DataError> {
    let folder = folder(ratings, trust);
    let config = SocialConfig::Folder(folder.path().to_owned());
    config.load(range, &Streams::new(1), &SocialCache::default())
}

const RATINGS: &str = "user_id\tproduct_id\tcategory_id\trating\thelpfulness
7\t1\t3\t4\t1
9\t1\t3\t0\t1
9\t2\t5\t5\t1
9\t2\t5\t1\t1
12\t2\t5\t3\t1
4\t8\t1\t2\t1
7\t2\t5\t0\t1
";

#[test]
fn what_is_dropped_is_counted_in_its_order() {
    // 4 trusts nobody who is there, but is trusted by 99, who rated nothing: that is trust as well. 12 has none.
    let found = load(RATINGS, "truster\ttrustee\n7\t9\n9\t7\n7\t7\n99\t4\n", None).unwrap();
    let Ratings { ratings, user_ids, item_ids, group_ids, dropped, .. } = &*found.ratings;
    assert_eq!((found.without_trust, dropped.outside, dropped.repeated), (1, 2, 1));
    let names = |ids: &crate::ratings::Ids| (0..ids.len() as u32).map(|index| ids.name(index)).collect::<Vec<_>>();
    assert_eq!(
        (names(user_ids), names(item_ids)),
        (["4", "7", "9"].map(str::to_owned).to_vec(), vec!["1".into(), "2".into(), "8".into()])
    );
    assert_eq!(names(group_ids.as_ref().unwrap()), ["1", "3", "5"]);
    let rows: Vec<(u32, u32, f32, u32)> = ratings.iter().map(|r| (r.user, r.item, r.value, r.group)).collect();
    assert_eq!(rows, [(1, 0, 4.0, 1), (2, 1, 5.0, 2), (0, 2, 2.0, 0)]);
    assert_eq!(found.trust, [(1, 2)], "both ways is once, nobody trusts themselves, and 99 rated nothing");
    // A wider range keeps the zeros; then the second rating of a pair is the one that goes.
    let found = load(RATINGS, "truster\ttrustee\n7\t9\n12\t4\n", Some([0.0, 5.0])).unwrap();
    assert_eq!((found.without_trust, found.ratings.dropped.repeated, found.ratings.ratings.len()), (0, 1, 6));
}

#[test]
fn codes_are_half_stars_and_a_split_is_read() {
    let ratings = "user\titem\trating_code\tsplit\n0\t0\t3\ttrain\n1\t1\t7\tvalid\n1\t0\t0\ttest\n";
    let found = load(ratings, "user\tneighbour\n0\t1\n", None).unwrap();
    let values: Vec<f32> = found.ratings.ratings.iter().map(|rating| rating.value).collect();
    assert_eq!(values, [2.0, 4.0, 0.5]);
    assert_eq!(found.ratings.parts, Some(vec![Part::Train, Part::Valid, Part::Test]));
    assert!(found.ratings.group_ids.is_none());
    let folder = folder(ratings, "a\tb\n");
    assert!(SocialConfig::Folder(folder.path().to_owned()).has_split());
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    let trust = "a\tb\n1\t2\n";
    for (ratings, trust, expected) in [
        (
            "user\titem\n1\t2\n",
            trust,
            "ratings.tsv:1: the header is \"user item\"; expected a column rating or rating_code",
        ),
        ("user\trating\n1\t2\n", trust, "expected a column item or item_id or product_id"),
        ("user\titem\trating\n1\t2\tgood\n", trust, "ratings.tsv:2: column \"rating\": found \"good\""),
        ("user\titem\trating\n1\t\t3\n", trust, "ratings.tsv:2: column \"item\": found \"\""),
        ("user\titem\trating\tsplit\n1\t1\t3\ttset\n", trust, "found \"tset\"; expected train, valid or test"),
        ("user\titem\trating\n1\t2\t3\n", "a\n1\n", "social.tsv:1: the header has one column"),
        ("user\titem\trating\n1\t2\t3\n", "", "social.tsv:1: the file is empty"),
        ("", trust, "ratings.tsv:1: the file is empty"),
        ("user\titem\trating\trating_code\n1\t2\t3\t3\n", trust, "the columns rating and rating_code; expected one"),
        ("user\tuser_id\titem\trating\n1\t2\t3\t3\n", trust, "the columns user and user_id; expected one of them"),
        ("user\titem\trating\n1\t2\t3\n", "a\tb\n1\t2\n3\n", "social.tsv:3: column \"user\": found \"\""),
    ] {
        let message = load(ratings, trust, None).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    }
    let both = folder("user\titem\trating\n1\t2\t3\n", trust);
    std::fs::write(both.path().join("trust.tsv"), trust).unwrap();
    let config = SocialConfig::Folder(both.path().to_owned());
    let message = config.load(None, &Streams::new(1), &SocialCache::default()).unwrap_err().to_string();
    assert!(message.contains("there are trust.tsv and social.tsv"), "{message}");
    let empty = tempfile::tempdir().unwrap();
    let config = SocialConfig::Folder(empty.path().to_owned());
    let message = config.load(None, &Streams::new(1), &SocialCache::default()).unwrap_err().to_string();
    assert!(message.contains("expected ratings.tsv and trust.tsv (or social.tsv)"), "{message}");
}

fn drawn(settings: &SyntheticSocial, seed: u64) -> SocialRatings {
    settings.check().unwrap();
    settings.load(None, &Streams::new(seed)).unwrap()
}

#[test]
fn the_generator_makes_communities_that_like_and_trust_alike() {
    let settings = SyntheticSocial::default();
    let found = drawn(&settings, 3);
    assert_eq!((found.ratings.ratings.len(), found.without_trust), (12_000, 0));
    assert_eq!((found.ratings.user_ids.len(), found.ratings.dropped.repeated), (400, 0));
    assert!(found.ratings.group_ids.as_ref().unwrap().len() <= 28 && (1_600..=1_700).contains(&found.trust.len()));
    assert_eq!(found, drawn(&settings, 3));
    assert_ne!(found, drawn(&settings, 4));
    // Zipf: a tenth of the items has a third of the ratings.
    let mut counts = vec![0_u32; 1_200];
    found.ratings.ratings.iter().for_each(|rating| counts[rating.item as usize] += 1);
    counts.sort_unstable();
    assert!(counts.iter().rev().take(120).sum::<u32>() > 4_000);
    // Users with trust rate the same items more often than others do.
    let mut rated = vec![BTreeSet::new(); 400];
    found.ratings.ratings.iter().for_each(|rating| {
        rated[rating.user as usize].insert(rating.item);
    });
    let common = |one: u32, other: u32| {
        let (one, other) = (&rated[one as usize], &rated[other as usize]);
        one.intersection(other).count() as f64 / (one.len().min(other.len()) as f64)
    };
    let near = found.trust.iter().map(|&(one, other)| common(one, other)).sum::<f64>() / found.trust.len() as f64;
    let far = (0..400).map(|user| common(user, (user + 137) % 400)).sum::<f64>() / 400.0;
    assert!(near > 1.1 * far, "{near}, {far}");
    let alone = SyntheticSocial { homophily: 1.0, communities: 400, ..settings };
    assert_eq!(drawn(&alone, 1).without_trust, 0, "everybody trusts somebody");
}

#[test]
fn categories_are_dealt_whole_and_once() {
    let data = drawn(&SyntheticSocial::default(), 2);
    let split = SplitConfig::Random { test: 0.1, valid: 0.1 };
    let split = split.split(data.ratings, &Streams::new(2)).unwrap();
    for partition in [
        SocialPartition::default(),
        SocialPartition::Communities { count: 23, distribution: dealt::Distribution::Skewed },
    ] {
        let dealt = partition.deal(&split, 10, &Streams::new(2)).unwrap();
        let mut names: Vec<String> = dealt.categories.iter().flatten().map(ToString::to_string).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), dealt.names.len());
        for (rating, holder) in dealt.of_ratings.iter().zip(&dealt.holders) {
            assert!(dealt.categories[holder.unwrap() as usize].contains(&dealt.names[*rating as usize]));
        }
        let again = partition.deal(&split, 10, &Streams::new(2)).unwrap();
        assert_eq!(dealt, again);
    }
    // Communities: bounded in size, and a user's ratings lie closer together than dealt out at random.
    let of_items = communities::communities(&split.data, 8, &Streams::new(2));
    let mut sizes = [0_usize; 8];
    let mut own = vec![[0_u32; 8]; 400];
    for rating in &split.data.ratings {
        let community = of_items[rating.item as usize] as usize;
        sizes[community] += 1;
        own[rating.user as usize][community] += 1;
    }
    let largest: u32 = own.iter().map(|counts| counts.iter().max().unwrap()).sum();
    assert!(sizes.iter().all(|size| (375..=1_875).contains(size)) && largest > 12_000 / 3, "{sizes:?}, {largest}");
}

#[test]
fn assignments_are_checked() {
    let data = drawn(&SyntheticSocial::default(), 2);
    let split = SplitConfig::Random { test: 0.1, valid: 0.1 }.split(data.ratings, &Streams::new(2)).unwrap();
    let number = |of: &[u64]| of.iter().map(|&one| dealt::CategoryName::Number(one)).collect::<Vec<_>>();
    let assigned = SocialPartition::Assignment(vec![number(&[5, 1]), number(&[2])]);
    let dealt = assigned.deal(&split, 2, &Streams::new(1)).unwrap();
    assert_eq!(dealt.categories, [number(&[1, 5]), number(&[2])]);
    assert!(dealt.holders.contains(&None) && dealt.holders.contains(&Some(1)));
    let refused = |clients: Vec<Vec<dealt::CategoryName>>, count: usize| {
        let partition = SocialPartition::Assignment(clients);
        let deal = || partition.deal(&split, count, &Streams::new(1)).map(|_| ());
        partition.check().and_then(|()| deal()).unwrap_err().to_string()
    };
    assert!(refused(vec![number(&[1]), number(&[99])], 2).contains("there is no category 99; the data have 1, 2, 3"));
    assert!(refused(vec![number(&[1]), number(&[1])], 2).contains("category 1 is assigned twice"));
    assert!(refused(vec![number(&[1]), vec![]], 2).contains("client 1 has no category"));
    assert!(refused(vec![number(&[1])], 2).contains("assigns categories to 1 clients; expected 2"));
    let mut without = (*split.data).clone();
    without.group_ids = None;
    let split = crate::ratings::RatingsSplit { data: Arc::new(without), ..split };
    let message = SocialPartition::default().deal(&split, 10, &Streams::new(1)).unwrap_err().to_string();
    assert!(message.contains("the data have no categories"), "{message}");
}
