//! An experiment: policies × seeds × the points of a sweep, run in parallel over runs and over clients.
//!
//! All policies of one (point, seed) share one world. Policies that override part of the scenario still share clients,
//! data and draws. So their differences are paired. Results do not depend on the number of threads: runs are
//! independent, and inside a run only index-addressed work is parallel.
//!
//! *Threads.* As many runs are under way as there are threads. As soon as fewer runs are left than threads, the runs
//! that remain spread the training of their clients over all threads; before that, each run stays on its own.

pub mod answer;
pub mod answers;
pub mod apart;
pub mod artefacts;
mod asked;
pub mod below;
mod bounded;
mod build_id;
mod checkpoint;
mod clock;
pub mod compared;
mod conduct;
pub mod controls;
pub mod cpu;
mod curve;
mod dry_run;
mod effective;
mod ended;
mod estimates;
mod execution;
pub mod files;
mod folder;
pub mod heavy;
mod incomplete;
pub mod kept;
mod last;
mod looks;
mod measured;
pub mod merge;
mod names;
mod options;
mod outside;
mod pace;
mod play;
mod program;
pub mod recorded;
mod refine;
mod reported;
mod run_file;
pub mod sample;
pub mod shelf;
mod shown;
pub mod stored;
mod summary;
mod table;
mod taken_over;
pub mod until;
pub mod verify;
mod warnings;
mod watch;

pub use asked::Asked;
pub use bounded::BoundedRegret;
pub use build_id::build;
pub use checkpoint::Interval;
pub use conduct::{Conclusion, Outcome};
pub use curve::{Curve, CurvePoint};
pub use dry_run::{Basis, Count, Forecast, Kind, MemoryForecast};
pub use ended::Ended;
pub use estimates::{difference_of, estimate_of};
pub use execution::{Outputs, Progress, Silent, Threads, execute};
pub use folder::{Earlier, ResultFolder, Shard, note_written};
pub use heavy::{MedianOf, are_heavy, is_time};
pub use incomplete::{Incomplete, counted, in_words, without_results};
pub use measured::{ACTIVE_CLUSTERS, Named, REASSIGNMENTS, is_loss};
pub use options::{Draw, RunOptions};
pub use program::{Code, Outside};
pub use run_file::clients_of;
pub use shown::{INTERVAL_SEEDS, ROUNDING, number, show, show_rounded};
pub use summary::{
    ArmSummary, Comparison, EnergySummary, PREFIX_INTERSECTION, PointComparison, RunSummary, Summary, Traffic,
};
pub use table::{is_told_who_was_asked, overridden, show_until, table};
pub use taken_over::{LookedAt, ROUNDS_PER_LOOK};
use warnings::backward_targets;
pub use warnings::warnings;
pub use watch::{CONVERGENCE, Converged, Reached, Watch};

use crate::error::Error;
use crate::scenario::tree::{self, Node};
use crate::scenario::{
    Kinds, Point, Reach, Scenario, ScenarioError, Seeds, Surroundings, Sweep, UntilDecided, expand_sweep,
};
use fedgenie_core::limits;
use fedgenie_core::text;
use fedgenie_simulator::task::{self, DataCache};
use fedgenie_simulator::world::World;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Changes of a scenario without editing the file.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// `path=value` pairs, in order.
    pub set: Vec<(String, String)>,
    /// Number of seeds.
    pub seeds: Option<u32>,
    /// The policy that the others are compared with.
    pub reference: Option<String>,
    /// Folder of data sets.
    pub data: Option<PathBuf>,
    /// Whether the scenario may read files outside its own folder and the folder of data sets.
    pub allow_paths: bool,
    /// Policies and tasks of the program.
    pub kinds: Kinds,
}

impl Overrides {
    /// Changes a scenario; `names` are those of the changes in messages.
    fn apply(&self, root: &mut Node, [set, seeds, reference]: [&str; 3]) -> Result<(), ScenarioError> {
        for (key, value) in &self.set {
            match value.is_empty() {
                true => root.remove(key, set)?,
                false => root.set(key, tree::parse_value(value, set))?,
            }
        }
        if let Some(count) = self.seeds {
            root.set("seeds", tree::parse_value(&count.to_string(), seeds))?;
        }
        if let Some(policy) = &self.reference {
            root.set("report.reference", Node::text(policy, reference))?;
        }
        Ok(())
    }
}

fn absolute(folder: &Path) -> Result<PathBuf, Error> {
    std::path::absolute(folder).map_err(|source| Error::Read { path: folder.to_owned(), source })
}

/// A checked experiment.
#[derive(Debug)]
pub struct Experiment {
    /// The scenario at every point of its sweep; one without a sweep.
    pub points: Vec<(Point, Scenario)>,
    /// The seeds; those so far, where seeds are added.
    pub seeds: Vec<u64>,
    /// The plan by which seeds are added until the first answer is decided.
    pub until: Option<UntilDecided>,
    /// The resolved scenario with its sweep, as TOML.
    pub resolved: String,
    /// Settings that policies override outside the sweep: label, path, value.
    pub with: BTreeMap<String, BTreeMap<String, String>>,
    /// The folder that the names of files in the scenario are relative to.
    pub base: PathBuf,
    /// The folder of data sets, if the user gave one.
    pub data: Option<PathBuf>,
    reach: Reach,
    /// Policies, tasks and rules of the program.
    kinds: Kinds,
    /// The scenario as it was read, with the arms of the program.
    root: Node,
}

/// Which run of the experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunId {
    /// Index of the point.
    pub point: usize,
    /// The seed.
    pub seed: u64,
    /// Index of the arm.
    pub arm: usize,
    /// Name of the run's folder.
    pub name: String,
}

/// The text of a scenario file, up to the limit of its size.
fn read_scenario(path: &Path) -> Result<String, Error> {
    let failed = |source| Error::Read { path: path.to_owned(), source };
    let file = fs::File::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    file.take(limits::SCENARIO_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > limits::SCENARIO_BYTES {
        let (path, most) = (text::path(path), limits::SCENARIO_BYTES);
        return Err(Error::Usage(format!("{path} has more than {most} bytes, which is the most of a scenario")));
    }
    String::from_utf8(bytes).map_err(|_| failed(io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text")))
}

/// Checks how many runs an experiment has.
fn check_runs(runs: u128) -> Result<(), String> {
    if runs > limits::RUNS as u128 {
        return Err(format!("policies × seeds × points are {runs} runs; expected at most {}", limits::RUNS));
    }
    let needed = runs * u128::from(limits::RUN_BYTES);
    limits::afford(format!("an experiment of {runs} runs"), needed).map_err(|error| error.to_string())
}

/// The name of a run, from its policy's label, its point (index and number of points) and its seed.
pub fn run_name(label: &str, (point, points): (usize, usize), seed: u64) -> String {
    match points {
        1 => format!("{label}-s{seed}"),
        _ => format!("{label}-p{point}-s{seed}"),
    }
}

impl Experiment {
    /// Reads a scenario file and checks every point of its sweep.
    ///
    /// # Errors
    /// If the file cannot be read or anything in it is wrong. Worlds are not built yet.
    pub fn load(path: &Path, overrides: &Overrides) -> Result<Self, Error> {
        Self::load_compared(path, overrides, None)
    }

    /// As [`Self::load`]; files with a digest in a manifest are compared with it before any is opened.
    fn load_compared(
        path: &Path,
        overrides: &Overrides,
        manifest: Option<&artefacts::Manifest>,
    ) -> Result<Self, Error> {
        let text = read_scenario(path)?;
        let mut root = tree::parse(path, &text).map_err(ScenarioError::from)?;
        overrides.apply(&mut root, ["--set", "--seeds", "--reference"])?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let (folder, data) = (absolute(folder)?, overrides.data.as_deref().map(absolute).transpose()?);
        let mut reach = Reach::below(&folder, data.as_deref());
        reach.anywhere = overrides.allow_paths;
        // The scenario of a result folder names files relative to the folder of the original.
        if let Some((origin, known)) = artefacts::origin(path) {
            artefacts::refuse_lacking(&folder, &overrides.kinds)?;
            reach.base = if origin.base.is_dir() { origin.base } else { folder };
            reach.data = data.or_else(|| origin.data.filter(|data| data.is_dir()));
            reach.known = manifest.map_or(known, |manifest| manifest.data.clone());
            reach.compares = manifest.is_some();
        }
        Self::from_tree_with(root, reach, overrides.kinds.clone())
    }

    /// Checks every point of the sweep of a scenario that is a text of a program, with a name for messages. Its folder
    /// is the current one, and changes are named as arguments of a function.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn from_text(name: &str, text: &str, overrides: &Overrides) -> Result<Self, Error> {
        let mut root = tree::parse(Path::new(name), text).map_err(ScenarioError::from)?;
        overrides.apply(&mut root, ["set", "seeds", "reference"])?;
        let data = overrides.data.as_deref().map(absolute).transpose()?;
        let reach =
            Reach { anywhere: overrides.allow_paths, ..Reach::below(&absolute(Path::new("."))?, data.as_deref()) };
        Self::from_tree_with(root, reach, overrides.kinds.clone())
    }

    /// Checks every point of a tree's sweep. Files are looked for below `base`, and before that below `data`, the
    /// folder of data sets.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn from_tree(root: &Node, base: &Path, data: Option<&Path>) -> Result<Self, Error> {
        Self::from_tree_with(root.clone(), Reach::below(base, data), Kinds::default())
    }

    /// As [`Self::from_tree`], with the files that may be read, and with policies and tasks of a program.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn from_tree_with(mut root: Node, reach: Reach, kinds: Kinds) -> Result<Self, Error> {
        kinds.complete(&mut root)?;
        let read = |tree: &Node, point: &Point| {
            let mut scenario = Scenario::new(tree, Surroundings { reach: &reach, kinds: &kinds, point })?;
            scenario.set_rules(&kinds)?;
            Ok::<_, ScenarioError>(scenario)
        };
        let mut points = Vec::new();
        for (point, tree) in expand_sweep(&root)? {
            let scenario = read(&tree, &point).map_err(|error| error.within_sweep(&point))?;
            points.push((point, scenario));
        }
        // The scenario outside the sweep is checked as well: this one is written out.
        let outside = if root.get("sweep").is_some() { Some(read(&root, &Point::default())?) } else { None };
        let whole = outside.as_ref().unwrap_or(&points[0].1);
        if let Some((point, _)) = points.iter().find(|(_, scenario)| !same_labels(scenario, whole)) {
            let message = format!("the policies differ at {:?}", point.settings);
            return Err(ScenarioError::new(&root, "sweep", message).into());
        }
        let (seeds, resolved) = (whole.sections.seeds.list(), whole.to_toml());
        let until = whole.sections.seeds.until().cloned();
        let most = until.as_ref().map_or(seeds.len(), |until| until.at_most as usize);
        let runs = [points.len(), most, whole.arms.len()].iter().map(|&count| count as u128).product();
        check_runs(runs).map_err(|message| ScenarioError::new(&root, "seeds", message))?;
        let overriding = whole.arms.iter().filter(|arm| !arm.with.is_empty());
        let with = overriding.map(|arm| (arm.label.clone(), arm.overridden())).collect();
        let (base, data) = (reach.base.clone(), reach.data.clone());
        Ok(Self { points, seeds, until, resolved, with, base, data, reach, kinds, root })
    }

    /// The same experiment with the seeds that a plan has so far.
    ///
    /// # Errors
    /// None, unless a file has changed meanwhile.
    pub(super) fn at_look(&self, until: UntilDecided) -> Result<Self, Error> {
        let mut root = self.root.clone();
        let seeds = toml::Value::try_from(Seeds::Until(until)).expect("a plan has only values that TOML can write");
        root.set("seeds", tree::parse_value(&seeds.to_string(), "seeds")).map_err(ScenarioError::from)?;
        Self::from_tree_with(root, self.reach.clone(), self.kinds.clone())
    }

    /// The scenario at its first point.
    pub fn first(&self) -> &Scenario {
        &self.points[0].1
    }

    /// The policies' labels.
    pub fn labels(&self) -> Vec<String> {
        self.first().arms.iter().map(|arm| arm.label.clone()).collect()
    }

    /// Whether its runs are kept in packs, and not in a folder each.
    pub fn is_packed(&self) -> bool {
        let first = self.first();
        let runs = self.points.len() * self.seeds.len() * first.arms.len();
        first.sections.record.packed.unwrap_or(runs > limits::LOOSE_RUNS)
    }

    /// All runs: point by point, seed by seed, policy by policy.
    pub fn runs(&self) -> Vec<RunId> {
        let mut runs = Vec::new();
        for (point, (_, scenario)) in self.points.iter().enumerate() {
            for &seed in &self.seeds {
                let has = |label: &str| self.until.as_ref().is_none_or(|until| until.has(label, seed));
                for (arm, described) in scenario.arms.iter().enumerate().filter(|(_, arm)| has(&arm.label)) {
                    let name = run_name(&described.label, (point, self.points.len()), seed);
                    runs.push(RunId { point, seed, arm, name });
                }
            }
        }
        runs
    }

    /// The name of a summary's run.
    pub fn name_of(&self, run: &RunSummary) -> String {
        run_name(&run.arm, (run.point, self.points.len()), run.seed)
    }

    /// The results of runs, given in any order. Runs that are left out are missing, or failed if `failed` has a reason
    /// under the run's name.
    pub fn summarise(&self, mut runs: Vec<RunSummary>, failed: &BTreeMap<String, String>) -> Summary {
        let order: BTreeMap<String, usize> = self.runs().into_iter().map(|run| run.name).zip(0..).collect();
        runs.sort_by_cached_key(|run| order.get(&self.name_of(run)).copied());
        let points: Vec<_> = self.points.iter().map(|(point, _)| point.clone()).collect();
        let sections = &self.first().sections;
        let settings: Vec<BTreeMap<String, String>> =
            points.iter().map(|point| point.settings.iter().cloned().collect()).collect();
        let sweep = Sweep::of(&self.resolved.parse().unwrap_or_default(), &settings);
        let (named, labels) = ((sections.name.as_str(), sections.title.as_deref()), self.labels());
        let complete: BTreeSet<String> = runs.iter().map(|run| self.name_of(run)).collect();
        let others = self.runs().into_iter().filter(|run| !complete.contains(&run.name));
        let incomplete = others.map(|run| {
            let reason = failed.get(&run.name).cloned();
            Incomplete::new(&labels[run.arm], (run.point, run.seed), reason)
        });
        let incomplete = incomplete.collect();
        Summary {
            incomplete,
            ..Summary::new(
                named,
                (&points, sweep),
                (&labels, sections.report.clone(), self.until.clone()),
                runs,
                answers::answers,
            )
        }
    }

    /// BLAKE3 of every file that population and task read, by its name as far as it is below the folder of data sets or
    /// of the scenario.
    ///
    /// # Errors
    /// If a file is there and cannot be read.
    pub fn data_digests(&self) -> Result<BTreeMap<String, String>, Error> {
        let tasks = self.points.iter().flat_map(|(_, scenario)| scenario.plans()).map(|plan| &plan.task);
        let files = tasks.flat_map(|task| task::files(&**task));
        let named = self.points.iter().flat_map(|(_, scenario)| {
            scenario.files.iter().chain(scenario.variants.iter().flat_map(|part| &part.files)).cloned()
        });
        let mut digests = BTreeMap::new();
        for path in files.chain(named).filter(|path| path.is_file()) {
            if let Entry::Vacant(entry) = digests.entry(self.reach.name_of(&path)) {
                entry.insert(artefacts::hash_file(&path)?);
            }
        }
        // Files that are not here are those of the folder in which the scenario lies.
        for (name, digest) in &self.reach.known {
            digests.entry(name.clone()).or_insert_with(|| digest.clone());
        }
        Ok(digests)
    }

    /// Builds the world of one point and seed, for policies without overrides.
    ///
    /// # Errors
    /// Inconsistent settings or data, with file and line.
    pub fn world(&self, point: usize, seed: u64, cache: &DataCache) -> Result<World, ScenarioError> {
        let scenario = &self.points[point].1;
        scenario.plan.build(seed, cache).map_err(|error| scenario.explain(error))
    }

    /// Builds the world of a run, for its point, seed and overrides.
    ///
    /// # Errors
    /// Inconsistent settings or data, with file and line.
    pub fn world_of(&self, run: &RunId, cache: &DataCache) -> Result<World, ScenarioError> {
        let scenario = &self.points[run.point].1;
        let plan = scenario.plan_of(run.arm);
        plan.build(run.seed, cache).map_err(|error| scenario.explain_of(run.arm, error))
    }

    /// The key of a run's world: point, seed, and the scenario after its policy's overrides.
    pub(crate) fn place_of(&self, run: &RunId) -> (usize, u64, Option<usize>) {
        (run.point, run.seed, self.points[run.point].1.arms[run.arm].variant)
    }

    /// Checks the worlds and the policies of some runs before anything is written: a draw per client can be valid with
    /// one seed and invalid with another. At every point the world of the first seed is built whole, with its policies.
    /// Returns the worlds' warnings, each once.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check_worlds(&self, runs: &[RunId], cache: &DataCache) -> Result<Vec<String>, ScenarioError> {
        let mut warnings = BTreeSet::new();
        let numbers = self.points.iter().flat_map(|(_, scenario)| reported::numbers(scenario)).collect();
        for (_, scenario) in &self.points {
            scenario.check_metrics()?;
            scenario.check_report(&numbers)?;
            warnings.extend(backward_targets(scenario));
        }
        // By point, and by the overrides there.
        let mut places: BTreeMap<_, Vec<&RunId>> = BTreeMap::new();
        for run in runs {
            let (point, _, variant) = self.place_of(run);
            places.entry((point, variant)).or_default().push(run);
        }
        for runs in places.into_values() {
            let (scenario, first) = (&self.points[runs[0].point].1, runs[0]);
            let arms: BTreeSet<usize> = runs.iter().map(|run| run.arm).collect();
            let mut seeds: Vec<u64> = runs.iter().map(|run| run.seed).collect();
            seeds.dedup();
            let world = self.world_of(first, cache)?;
            scenario.check_measured(first.arm, &world.measures)?;
            for arm in arms.into_iter().map(|arm| &scenario.arms[arm]) {
                world.policies(&arm.source()).map_err(|error| scenario.explain_policy(&arm.label, error))?;
            }
            warnings.extend(world.warnings);
            for &seed in &seeds[1..] {
                let checked = scenario.plan_of(first.arm).check(seed, cache);
                checked.map_err(|error| scenario.explain_of(first.arm, error))?;
            }
        }
        Ok(warnings.into_iter().collect())
    }
}

fn same_labels(one: &Scenario, other: &Scenario) -> bool {
    one.arms.iter().map(|arm| &arm.label).eq(other.arms.iter().map(|arm| &arm.label))
}
