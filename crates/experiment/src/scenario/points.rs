//! Short names of a sweep's points, without their common settings.
//!
//! A name has the values by which a point differs from the others, in the order of the paths; the whole setting belongs
//! beside it once, in a legend.

use fedgenie_core::text::escaped;
use fedgenie_core::units;
use std::collections::{BTreeMap, BTreeSet};
use toml::Value;

/// A point in full, as it stands in the scenario: `protocol.deadline.cohort = 3, …`.
pub fn in_full(point: &BTreeMap<String, String>) -> String {
    point.iter().map(|(path, value)| format!("{path} = {value}")).collect::<Vec<_>>().join(", ")
}

/// A name for each point: `exponential 0.0146` for one of several
/// `task.recommendation.partition = { user-balance = { profile = …, index = … } }`, `cohort = 3, late = drop` for two
/// paths. A path is cut to its unique end. A value that is a table keeps only the entries that differ between points:
/// texts, and a single number, by their values alone, others after their keys. If two points had the same name, all
/// have their full ones.
pub fn names(points: &[BTreeMap<String, String>]) -> Vec<String> {
    let all_in_full = || points.iter().map(in_full).collect();
    let paths: BTreeSet<&String> = points.iter().flat_map(BTreeMap::keys).collect();
    let differs = |path: &&String| points.iter().any(|point| point.get(*path) != points[0].get(*path));
    let paths: Vec<&String> = paths.into_iter().filter(differs).collect();
    let mut names = vec![Vec::new(); points.len()];
    for &path in &paths {
        let read = |point: &BTreeMap<String, String>| Some(parsed(point.get(path)?));
        let values: Vec<Option<Value>> = points.iter().map(read).collect();
        let known: Vec<&Value> = values.iter().flatten().collect();
        // A table names itself.
        let is_clear = paths.len() == 1 && known.iter().all(|value| value.is_table());
        let short = cut(path, &paths);
        for (name, value) in names.iter_mut().zip(&values) {
            let Some(value) = value else { continue };
            let words = words(value, &known);
            name.push(if is_clear { words } else { format!("{short} = {words}") });
        }
    }
    let names: Vec<String> = names.iter().map(|parts| parts.join(", ")).collect();
    let distinct: BTreeSet<&String> = names.iter().collect();
    if distinct.len() < points.len() || names.iter().any(String::is_empty) { all_in_full() } else { names }
}

/// A name for each point without the path, where one path makes them and its values are clear by themselves: `20 s`.
/// Plain numbers are not, and keep the path: as [`names`].
pub fn bare_names(points: &[BTreeMap<String, String>]) -> Vec<String> {
    let paths: Vec<&String> = points.first().into_iter().flat_map(BTreeMap::keys).collect();
    let [path] = paths[..] else { return names(points) };
    let texts: Vec<String> = points.iter().map(|point| point.get(path).cloned().unwrap_or_default()).collect();
    if texts.iter().any(|text| text.parse::<f64>().is_ok()) { names(points) } else { values(&texts) }
}

/// Short names of the values of one path; the values as they stand if two had the same name.
pub fn values(texts: &[String]) -> Vec<String> {
    let values: Vec<Value> = texts.iter().map(|text| parsed(text)).collect();
    let others: Vec<&Value> = values.iter().collect();
    let names: Vec<String> = values.iter().map(|value| words(value, &others)).collect();
    let distinct: BTreeSet<&String> = names.iter().collect();
    let different: BTreeSet<&String> = texts.iter().collect();
    if distinct.len() < different.len() || names.iter().any(String::is_empty) { texts.to_vec() } else { names }
}

/// A name for each path: its unique end, in words; of a law of latencies with its phase, `compute constant`.
pub fn titles(paths: &[&String]) -> Vec<String> {
    let end = |path: &str| path.strip_prefix("population.latency.").map(str::to_owned);
    let title = |path: &&String| end(path).unwrap_or_else(|| cut(path, paths).to_owned()).replace(['_', '.'], " ");
    paths.iter().map(title).collect()
}

/// A legend of the names: each with the whole setting, for people, where the name alone may not say it; empty where
/// every value is a plain one or a kind without parameters.
pub fn legend(points: &[BTreeMap<String, String>]) -> Vec<[String; 2]> {
    let is_empty = |value: &Value| value.as_table().is_some_and(toml::Table::is_empty);
    let is_plain = |text: &String| match parsed(text) {
        Value::Table(table) => table.values().all(is_empty),
        _ => true,
    };
    if points.len() < 2 || points.iter().flat_map(BTreeMap::values).all(is_plain) {
        return Vec::new();
    }
    names(points).into_iter().zip(points.iter().map(in_full)).map(Into::into).collect()
}

/// A number with its unit, empty for a plain one: a quantity is in its base unit, `"2 min"` is 120 and `s`.
pub fn number(text: &str) -> Option<(f64, &'static str)> {
    let plain = text.parse().ok().filter(|value: &f64| value.is_finite());
    plain.map(|value| (value, "")).or_else(|| units::any(text))
}

/// A value as it stands in a scenario; an unreadable one is a text.
pub(super) fn parsed(text: &str) -> Value {
    let table: Option<toml::Table> = format!("value = {text}").parse().ok();
    table.and_then(|mut table| table.remove("value")).unwrap_or_else(|| Value::String(text.to_owned()))
}

/// The shortest end of a path that no other path has.
fn cut<'a>(path: &'a str, paths: &[&String]) -> &'a str {
    let ends = path.rmatch_indices('.').map(|(dot, _)| &path[dot + 1..]).chain(std::iter::once(path));
    let is_other = |end: &str, other: &str| other != path && (other == end || other.ends_with(&format!(".{end}")));
    let mut ends = ends.filter(|end| !paths.iter().any(|other| is_other(end, other)));
    ends.next().unwrap_or(path)
}

/// The part of a value that differs from the others in the same place.
fn words(value: &Value, others: &[&Value]) -> String {
    let Value::Table(table) = value else { return plain(value) };
    let of_key = |key: &str| -> Vec<Option<&Value>> { others.iter().map(|other| other.get(key)).collect() };
    // Each entry that is not alike everywhere, and whether it is everywhere.
    let entries: Vec<(&String, &Value, Vec<&Value>, bool)> = table
        .iter()
        .map(|(key, value)| {
            let of_key = of_key(key);
            let is_everywhere = of_key.iter().all(Option::is_some);
            (key, value, of_key.into_iter().flatten().collect::<Vec<_>>(), is_everywhere)
        })
        .filter(|(_, value, known, is_everywhere)| !is_everywhere || known.iter().any(|other| other != value))
        .collect();
    let is_number = |value: &Value| !value.is_table() && !value.is_str();
    let numbers = entries.iter().filter(|(_, value, _, _)| is_number(value)).count();
    let entry = |(key, value, known, is_everywhere): &(&String, &Value, Vec<&Value>, bool)| {
        let differs = known.iter().any(|other| other != value);
        let inner = if differs || is_number(value) || value.is_str() { words(value, known) } else { String::new() };
        let is_bare = *is_everywhere && (value.is_table() || value.is_str() || numbers == 1);
        [if is_bare { "" } else { key.as_str() }, &inner]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join(" ")
    };
    let entries: Vec<String> = entries.iter().map(entry).filter(|words| !words.is_empty()).collect();
    entries.join(" ")
}

/// A text without quotation marks, or anything else as it is written.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => escaped(text).into_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(points: &[&[(&str, &str)]]) -> Vec<String> {
        let point = |point: &&[(&str, &str)]| -> BTreeMap<String, String> {
            point.iter().map(|(path, value)| (path.to_string(), value.to_string())).collect()
        };
        names(&points.iter().map(point).collect::<Vec<_>>())
    }

    #[test]
    fn tables_are_named_by_what_differs_in_them() {
        let path = "task.recommendation.partition";
        let one =
            |profile: &str, index: &str| format!("{{ user-balance = {{ profile = \"{profile}\", index = {index} }} }}");
        let texts = [one("exponential", "0.0146"), one("exponential", "0.1172"), one("linear", "0.0146")];
        let points: Vec<[(&str, &str); 1]> = texts.iter().map(|text| [(path, text.as_str())]).collect();
        let points: Vec<&[(&str, &str)]> = points.iter().map(|point| &point[..]).collect();
        assert_eq!(of(&points), ["exponential 0.0146", "exponential 0.1172", "linear 0.0146"]);
        // Common entries are left out, at every depth.
        assert_eq!(of(&points[..2]), ["0.0146", "0.1172"]);
        // Two numbers are told apart by their keys.
        let adam = |lr, beta| format!("{{ adam = {{ lr = {lr}, beta1 = {beta}, beta2 = 0.999 }} }}");
        let (left, right) = (adam(0.1, 0.8), adam(0.1, 0.9));
        assert_eq!(of(&[&[("o", &left)], &[("o", &right)]]), ["0.8", "0.9"]);
        let right = adam(0.2, 0.9);
        assert_eq!(of(&[&[("o", &left)], &[("o", &right)]]), ["lr 0.1 beta1 0.8", "lr 0.2 beta1 0.9"]);
    }

    #[test]
    fn kinds_that_differ_are_named_by_their_keys() {
        let path = "task.mlp.partition";
        let kinds =
            [&[(path, "\"iid\"")][..], &[(path, "{ dirichlet = { alpha = 0.1 } }")], &[(path, "{ shards = {} }")]];
        assert_eq!(of(&kinds), ["partition = iid", "partition = dirichlet", "partition = shards"]);
        let two = [&[(path, "{ dirichlet = { alpha = 0.1 } }")][..], &[(path, "{ dirichlet = { alpha = 1.0 } }")]];
        assert_eq!(of(&two), ["0.1", "1.0"]);
        let with = [two[0], two[1], &[(path, "{ sizes = { lognormal = 1 } }")]];
        assert_eq!(of(&with), ["dirichlet 0.1", "dirichlet 1.0", "sizes"]);
    }

    #[test]
    fn paths_are_cut_to_what_tells_them_apart() {
        let values = |cohort, late| [("protocol.deadline.cohort", cohort), ("protocol.deadline.late", late)];
        let (one, two) = (values("3", "\"drop\""), values("4", "{ carry = {} }"));
        assert_eq!(of(&[&one, &two]), ["cohort = 3, late = drop", "cohort = 4, late = carry"]);
        let alphas = |a, b| [("policy.one.alpha", a), ("policy.two.alpha", b)];
        let (one, two) = (alphas("0.5", "1.0"), alphas("1.0", "1.0"));
        // The second does not differ: its path and value are left out.
        assert_eq!(of(&[&one, &two]), ["alpha = 0.5", "alpha = 1.0"]);
        let bare: Vec<BTreeMap<String, String>> =
            [one, two].map(|point| point.map(|(path, value)| (path.to_owned(), value.to_owned())).into()).to_vec();
        assert_eq!(bare_names(&bare), ["alpha = 0.5", "alpha = 1.0"], "two paths");
        let two = alphas("1.0", "2.0");
        let expected = ["one.alpha = 0.5, two.alpha = 1.0", "one.alpha = 1.0, two.alpha = 2.0"];
        assert_eq!(of(&[&one, &two]), expected);
        assert_eq!(cut("seeds", &[&"a.seeds".to_owned(), &"seeds".to_owned()]), "seeds");
    }

    #[test]
    fn axes_are_titled_by_the_ends_of_their_paths() {
        let titles = |paths: [&str; 2]| super::titles(&paths.map(str::to_owned).iter().collect::<Vec<_>>());
        assert_eq!(titles(["protocol.deadline.deadline", "training.batch"]), ["deadline", "batch"]);
        assert_eq!(titles(["policy.one.alpha", "policy.two.alpha"]), ["one alpha", "two alpha"]);
        let laws = ["population.latency.compute.constant", "population.latency.upload.exponential.mean"];
        assert_eq!(titles(laws), ["compute constant", "upload exponential mean"]);
        assert_eq!(titles(["task.mlp.data_size", "stop.rounds"]), ["data size", "rounds"]);
    }

    #[test]
    fn names_that_would_be_the_same_are_full_ones() {
        let one = [("a", "\"1\"")];
        let two = [("a", "1")];
        assert_eq!(of(&[&one, &two]), ["a = \"1\"", "a = 1"]);
        assert_eq!(of(&[&[("a", "1")]]), ["a = 1"], "a point alone");
        let values = |texts: [&str; 2]| super::values(&texts.map(str::to_owned));
        assert_eq!(values(["\"drop\"", "{ carry = {} }"]), ["drop", "carry"]);
        let point = |value: &str| BTreeMap::from([("protocol.deadline.deadline".to_owned(), value.to_owned())]);
        assert_eq!(bare_names(&[point("16 s"), point("20 s")]), ["16 s", "20 s"]);
        assert_eq!(bare_names(&[point("16"), point("20")]), ["deadline = 16", "deadline = 20"]);
        assert_eq!(values(["\"1\"", "1"]), ["\"1\"", "1"]);
        assert_eq!(values(["2", "2"]), ["2", "2"]);
    }

    #[test]
    fn plain_values_need_no_legend() {
        let point = |value: &str| BTreeMap::from([("protocol.synchronous.cohort".to_owned(), value.to_owned())]);
        assert!(legend(&[point("3"), point("4")]).is_empty());
        assert!(legend(&[point("drop"), point("{ carry = {} }")]).is_empty());
        let legend = legend(&[point("{ a = 1 }"), point("{ a = 2 }")]);
        assert_eq!(legend[1], ["2".to_owned(), "protocol.synchronous.cohort = { a = 2 }".to_owned()]);
    }
}
