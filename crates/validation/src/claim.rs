//! The file of a claim.
//!
//! ```toml
//! title = "BSFL beats random selection"
//! source = "Ben Ami et al., IEEE Access 2025, Fig. 7"
//! paper = "bsfl"                                               # optional: the transcript of the paper that makes it
//! item = "Fig. 7"                                              # optional: its table or figure; a check may name another
//! differs = "ten seeds of our own choice"                      # optional: in what its runs differ from what the paper states
//! looks = [5, 8, 12, 20]                                       # optional: adds seeds until all numbers are decided
//! run = "named"                                                # optional: only if the claim is named, because it takes long
//! takes = "an hour on two cores"                               # then: how long, and which data it needs
//!
//! [scenario.fig7]
//! file = "../../scenarios/bsfl/fig7_iid.toml"                  # relative to this file
//! seeds = 20                                                   # left out beside `looks`
//! set = { "stop.virtual_time" = "100 s" }                      # optional, as `--set`
//! without = ["policy.genie"]                                   # optional, as `--set policy.genie=`
//! open = "rates"                                               # optional: each policy with its own choice of this grid
//! smoke = { seeds = 4, set = { "stop.virtual_time" = "20 s" } } # changes of the small budget
//!
//! [learns]                                                     # optional: when a comparison of learned models counts
//! settled = 0.25
//!
//! [[check]]
//! claim = "The regret of BSFL is below that of random selection"
//! paper = "lower"                                              # the paper's value, if it gives one
//! statistic.difference = { scenario = "fig7", value = "regret.mean", policy = "bsfl", against = ["random"] }
//! holds = { at-most = 0 }
//! expected = "supported"
//! because = "It ends at {bsfl: regret.mean}, …"                 # optional; numbers in braces are those of the runs
//! smoke = { expected = "undecided", set = { } }                # optional: other parameters of the statistic, other verdict
//! ```

use super::because::Because;
use super::learns::Learns;
use super::statistic::StatisticConfig;
use super::verdict::{Rule, Verdict};
use fedgenie_experiment::error::Error;
use fedgenie_experiment::experiment::artefacts::hash;
use fedgenie_experiment::scenario::UntilDecided;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The extent of a validation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Budget {
    /// A minute: tests that everything works.
    Smoke,
    /// Enough to decide.
    Full,
}

/// When a claim runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum When {
    /// With all others, and when it is named.
    #[default]
    Always,
    /// Only when it is named; else it is listed as not run.
    Named,
}

/// A claim.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The file's name without its ending.
    pub name: String,
    /// The folder of the file.
    pub folder: PathBuf,
    /// The claim in a line.
    pub title: String,
    /// Its source.
    pub source: String,
    /// The paper that makes it, by the name of its transcript.
    pub paper: Option<String>,
    /// The table or figure that its checks are about, but for those that name another.
    pub item: Option<String>,
    /// In what its runs differ from those that the paper states; `None` if in nothing.
    pub differs: Option<String>,
    /// The looks by which seeds are added until every number is decided; `None` where scenarios have their own seeds.
    pub looks: Option<UntilDecided>,
    /// When it runs.
    pub run: When,
    /// What it takes, in words, and the data that it needs; every claim that runs only when it is named says it.
    pub takes: Option<String>,
    /// The scenarios, by name.
    pub scenarios: BTreeMap<String, ScenarioUse>,
    /// When a comparison on a learned task counts.
    pub learns: Option<Learns>,
    /// The checks.
    pub checks: Vec<Check>,
    /// A digest of what its runs are made of, as far as the claim says it: scenarios with their files, looks, and what
    /// `[learns]` asks.
    pub made_of: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ClaimFile {
    title: String,
    source: String,
    #[serde(default)]
    paper: Option<String>,
    #[serde(default)]
    item: Option<String>,
    #[serde(default)]
    differs: Option<String>,
    #[serde(default)]
    looks: Vec<u32>,
    #[serde(default)]
    run: When,
    #[serde(default)]
    takes: Option<String>,
    #[serde(default, rename = "scenario")]
    scenarios: BTreeMap<String, ScenarioUse>,
    #[serde(default)]
    learns: Option<Learns>,
    #[serde(rename = "check")]
    checks: Vec<CheckFile>,
}

/// A scenario, as a claim uses it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScenarioUse {
    /// The file, relative to the claim's folder.
    pub file: PathBuf,
    /// Seeds 1 to this; `None` where the claim has looks.
    #[serde(default)]
    pub seeds: Option<u32>,
    /// Values by path, as `--set`.
    #[serde(default)]
    pub set: toml::Table,
    /// Keys that are taken out, as `--set KEY=`: policies that the claim does not compare.
    #[serde(default)]
    pub without: Vec<String>,
    /// The grid whose choices policies have for themselves.
    #[serde(default)]
    pub open: Option<String>,
    /// The changes of the small budget.
    #[serde(default)]
    smoke: Option<SmokeUse>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SmokeUse {
    seeds: u32,
    #[serde(default)]
    set: toml::Table,
}

impl ScenarioUse {
    /// Number of seeds, and paths with their values as text; at a look, the plan with its seeds so far is one of these.
    pub fn overrides(&self, budget: Budget, look: Option<&UntilDecided>) -> (Option<u32>, Vec<(String, String)>) {
        let mut set = self.set.clone();
        let mut seeds = self.seeds;
        if let (Budget::Smoke, Some(smoke)) = (budget, &self.smoke) {
            seeds = Some(smoke.seeds);
            set.extend(smoke.set.clone());
        }
        if let Some(look) = look {
            let plan = toml::Value::try_from(look).expect("a plan has only values that TOML can write");
            set.insert("seeds".to_owned(), plan);
        }
        let set = set.into_iter().map(|(path, value)| (path, value.to_string()));
        (seeds, set.chain(self.without.iter().map(|path| (path.clone(), String::new()))).collect())
    }

    /// Refuses seeds beside looks, and neither.
    fn check(&self, has_looks: bool) -> Result<(), String> {
        match (self.seeds, &self.smoke, has_looks) {
            (Some(_), _, true) => {
                Err("seeds: the claim has looks, which say how many; take one of the two out".to_owned())
            }
            (None, _, false) => Err("seeds: expected a number, or looks of the claim".to_owned()),
            (None, None, true) => Err("smoke: expected the seeds of the small budget, which has no looks".to_owned()),
            _ => Ok(()),
        }
    }
}

/// One number of a claim and its rule.
#[derive(Clone, Debug)]
pub struct Check {
    /// The claim about the number.
    pub claim: String,
    /// The paper's value.
    pub paper: Option<String>,
    /// The table or figure that it is about.
    pub item: Option<String>,
    /// The statistic.
    pub statistic: StatisticConfig,
    /// The statistic of the small budget.
    pub smoke_statistic: StatisticConfig,
    /// The judged numbers of the statistic; all, if none is named.
    pub measure: Vec<String>,
    /// The rule for the number.
    pub holds: Rule,
    /// The expected verdict by the number's label; the empty label is for all others.
    pub expected: BTreeMap<String, Verdict>,
    /// The same with the small budget.
    pub smoke_expected: BTreeMap<String, Verdict>,
    /// The explanation.
    pub because: Option<Because>,
    /// Whether a model decides its numbers, which then count only if that learns.
    pub learns: bool,
    /// The statistic and its judged numbers, as they are written.
    pub measured: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CheckFile {
    claim: String,
    #[serde(default)]
    paper: Option<String>,
    #[serde(default)]
    item: Option<String>,
    statistic: toml::Table,
    #[serde(default)]
    measure: Vec<String>,
    holds: Rule,
    expected: Expected,
    #[serde(default)]
    because: Option<String>,
    #[serde(default = "yes")]
    learns: bool,
    #[serde(default)]
    smoke: SmokeCheck,
}

const fn yes() -> bool {
    true
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct SmokeCheck {
    #[serde(default)]
    expected: Option<Expected>,
    #[serde(default)]
    set: toml::Table,
}

/// One verdict for all numbers, or one for each.
#[derive(Clone, Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "supported, not-supported, no-difference, undecided or not-judged, or a table of these by label"
)]
enum Expected {
    All(Verdict),
    Each(BTreeMap<String, Verdict>),
}

impl Expected {
    fn by_label(self) -> BTreeMap<String, Verdict> {
        match self {
            Self::All(verdict) => BTreeMap::from([(String::new(), verdict)]),
            Self::Each(verdicts) => {
                let name = |name: String| if name == "others" { String::new() } else { name };
                verdicts.into_iter().map(|(label, verdict)| (name(label), verdict)).collect()
            }
        }
    }
}

impl Check {
    fn new(file: CheckFile) -> Result<Self, String> {
        file.holds.check()?;
        let mut smoke = file.statistic.clone();
        if let Some((_, toml::Value::Table(parameters))) = smoke.iter_mut().next() {
            parameters.extend(file.smoke.set);
        }
        let read = |table: toml::Table| {
            if table.len() != 1 {
                return Err(format!("found {} statistics; expected one", table.len()));
            }
            StatisticConfig::deserialize(toml::Value::Table(table)).map_err(|error| error.message().to_owned())
        };
        let expected = file.expected.by_label();
        let measured = format!("{}{:?}", file.statistic, file.measure);
        Ok(Self {
            measured,
            claim: file.claim,
            paper: file.paper,
            item: file.item,
            statistic: read(file.statistic)?,
            smoke_statistic: read(smoke)?,
            measure: file.measure,
            holds: file.holds,
            smoke_expected: file.smoke.expected.map_or_else(|| expected.clone(), Expected::by_label),
            expected,
            because: file.because.as_deref().map(Because::read).transpose()?,
            learns: file.learns,
        })
    }

    /// Refuses numbers of its explanation that are of no certain scenario of several: before the runs, not after them.
    fn says_of_which(self, scenarios: usize) -> Result<Self, String> {
        let is_known = scenarios == 1 || !self.statistic.looks().is_empty();
        match self.because.as_ref().and_then(Because::without_place).filter(|_| !is_known) {
            Some(by) => Err(format!("because: {by}: expected SCENARIO/ before it: the claim has several")),
            None => Ok(self),
        }
    }

    /// The statistic for a budget.
    pub fn statistic(&self, budget: Budget) -> &StatisticConfig {
        match budget {
            Budget::Smoke => &self.smoke_statistic,
            Budget::Full => &self.statistic,
        }
    }

    /// The expected verdict on a number.
    pub fn expected(&self, label: &str, budget: Budget) -> Option<Verdict> {
        let expected = match budget {
            Budget::Smoke => &self.smoke_expected,
            Budget::Full => &self.expected,
        };
        expected.get(label).or_else(|| expected.get("")).copied()
    }
}

impl Claim {
    fn read(path: &Path) -> Result<Self, Error> {
        let text = fs::read_to_string(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
        let wrong = |message: String| Error::Usage(format!("{}: {}", path.display(), message.trim_end()));
        let file: ClaimFile = toml::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        file.learns.as_ref().map_or(Ok(()), Learns::check).map_err(wrong)?;
        if file.run == When::Named && file.takes.is_none() {
            return Err(wrong(
                "a claim that runs only when it is named says what it takes: takes = \"an hour\"".to_owned(),
            ));
        }
        let has_looks = !file.looks.is_empty();
        let looks = has_looks.then(|| UntilDecided::of_looks(&file.looks)).transpose();
        let looks = looks.map_err(|complaint| wrong(complaint.to_string()))?;
        for (name, scenario) in &file.scenarios {
            scenario.check(has_looks).map_err(|message| wrong(format!("scenario.{name}: {message}")))?;
        }
        let folder = path.parent().unwrap_or(Path::new("."));
        let made_of = made_of(&text, folder, &file.scenarios)?;
        let scenarios = file.scenarios.len();
        let check = |(index, check): (usize, CheckFile)| {
            let claim = check.claim.clone();
            let read = Check::new(check).and_then(|check| match has_looks && !check.statistic.suits_looks() {
                true => Err("its statistic has no interval that is valid under looks".to_owned()),
                false => check.says_of_which(scenarios),
            });
            read.map_err(|message| wrong(format!("check {} ({claim:?}): {message}", index + 1)))
        };
        Ok(Self {
            name: path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
            folder: folder.to_owned(),
            made_of,
            title: file.title,
            source: file.source,
            paper: file.paper,
            item: file.item,
            differs: file.differs,
            looks,
            run: file.run,
            takes: file.takes,
            scenarios: file.scenarios,
            learns: file.learns,
            checks: file.checks.into_iter().enumerate().map(check).collect::<Result<_, _>>()?,
        })
    }

    /// The first of its looks, with the full budget, if it has some.
    pub fn first_look(&self, budget: Budget) -> Option<UntilDecided> {
        self.looks.clone().filter(|_| budget == Budget::Full)
    }

    /// Whether it runs when these claims are named; an empty list stands for all.
    pub fn runs_among(&self, names: &[String]) -> bool {
        self.run == When::Always || names.contains(&self.name)
    }

    /// Adds the claim to an error.
    pub(super) fn explain_whole(&self, error: Error) -> Error {
        match error {
            Error::Usage(message) => Error::Usage(format!("claim {}: {message}", self.name)),
            Error::Scenario(error) => Error::Usage(format!("claim {}: {error}", self.name)),
            other => other,
        }
    }

    /// Adds the check to an error.
    pub(super) fn explain(&self, check: &Check, error: Error) -> Error {
        match error {
            Error::Usage(message) => Error::Usage(format!("claim {}: {:?}: {message}", self.name, check.claim)),
            Error::Scenario(error) => Error::Usage(format!("claim {}: {:?}: {error}", self.name, check.claim)),
            other => other,
        }
    }
}

/// See [`Claim::made_of`]. Comments do not count, nor does what the small budget changes.
fn made_of(text: &str, folder: &Path, scenarios: &BTreeMap<String, ScenarioUse>) -> Result<String, Error> {
    let read = |text: &str| toml::from_str::<toml::Table>(text).map_err(|error| Error::Usage(error.to_string()));
    let mut all = read(text)?;
    all.retain(|key, _| matches!(key, "scenario" | "learns" | "looks"));
    if let Some(toml::Value::Table(scenarios)) = all.get_mut("scenario") {
        scenarios.iter_mut().filter_map(|(_, scenario)| scenario.as_table_mut()).for_each(|scenario| {
            scenario.remove("smoke");
        });
    }
    let mut parts = vec![all.to_string()];
    for scenario in scenarios.values() {
        // What cannot be read is an error when the scenario is.
        let text = fs::read_to_string(folder.join(&scenario.file)).unwrap_or_default();
        parts.push(read(&text).map_or(text, |scenario| scenario.to_string()));
    }
    Ok(hash(parts.join("\0").as_bytes())[..16].to_owned())
}

/// Reads the claims of a folder, in the order of their names; of `names` only, if any are given.
///
/// # Errors
/// If the folder has no claims, a name is not among them, or a file is wrong.
pub fn read_claims(folder: &Path, names: &[String]) -> Result<Vec<Claim>, Error> {
    let none = || {
        Error::Usage(format!(
            "there are no claims (*.toml) in {}; --claims names their folder, which is validation/claims of FedGenie's sources",
            folder.display()
        ))
    };
    let entries = fs::read_dir(folder).map_err(|_| none())?;
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(|source| Error::Read { path: folder.to_owned(), source })?.path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            paths.push(path);
        }
    }
    paths.sort();
    if paths.is_empty() {
        return Err(none());
    }
    let stem = |path: &PathBuf| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    if let Some(name) = names.iter().find(|&name| !paths.iter().any(|path| stem(path) == **name)) {
        let known: Vec<String> = paths.iter().map(stem).collect();
        return Err(Error::Usage(format!("there is no claim {name:?}; there are {}", known.join(", "))));
    }
    paths.retain(|path| names.is_empty() || names.contains(&stem(path)));
    paths.iter().map(|path| Claim::read(path)).collect()
}
