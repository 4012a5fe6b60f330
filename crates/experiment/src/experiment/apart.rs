//! Runs that are carried out on other machines, and gathered here as if one process had made them.
//!
//! ```text
//! Gathering (here)                                         Apart (there)
//! a folder, its runs so far, a ticket ──ticket, names──▶   the same experiment? ─▶ runs in a folder that is deleted
//! every run whole, of this build?     ◀─────pack────────   their files as one archive
//! ```
//!
//! Who carries names and packs about, and tries again what was lost, is another program's matter.

use super::artefacts::{Failure, RUNS_FOLDER, hash_file};
use super::conduct::Begun;
use super::execution::{Outputs, Silent, Threads, execute};
use super::kept::Found;
use super::options::RunOptions;
use super::program::Outside;
use super::shelf::Kind;
use super::{Experiment, ResultFolder, RunId, Summary, below, build};
use crate::error::Error;
use crate::scenario::{Kinds, Reach, ScenarioError, tree};
use fedgenie_simulator::recorder::RunFileOptions;
use fedgenie_simulator::task::DataCache;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// What an experiment must be elsewhere, so that runs made there are those that would be made here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ticket {
    version: String,
    build: String,
    /// The resolved scenario.
    scenario: String,
    /// Where relative names of files start from.
    base: PathBuf,
    data_folder: Option<PathBuf>,
    allow_paths: bool,
    /// BLAKE3 of every file that population and task read, by name.
    data: BTreeMap<String, String>,
    outside: Option<Outside>,
    events: bool,
    models: bool,
}

impl Ticket {
    /// The same with files elsewhere: in one folder that has all of them.
    #[must_use]
    pub fn with_files_in(self, folder: &Path) -> Self {
        Self { base: folder.to_owned(), data_folder: Some(folder.to_owned()), ..self }
    }
}

/// The first package of which two programs have other versions; each is a list such as `Python 3.12.1, numpy 2.2.0`. A
/// package that only one has loaded is of no concern.
fn other_version<'a>(here: &'a str, there: &'a str) -> Option<(&'a str, &'a str)> {
    let name = |package: &'a str| package.split(' ').next();
    let pairs = here.split(", ").flat_map(|own| there.split(", ").map(move |other| (own, other)));
    pairs.into_iter().find(|(own, other)| name(own) == name(other) && own != other)
}

/// An experiment of which runs are carried out for a [`Gathering`].
#[derive(Debug)]
pub struct Apart {
    experiment: Experiment,
    runs: BTreeMap<String, RunId>,
    cache: DataCache,
    files: RunFileOptions,
    models: bool,
}

impl Apart {
    /// The experiment of a ticket, with policies and tasks of a program.
    ///
    /// # Errors
    /// If this build is another one, the data are not there or are others, or the code of a policy or task is another.
    pub fn new(ticket: &Ticket, kinds: Kinds) -> Result<Self, Error> {
        let (version, own) = (env!("CARGO_PKG_VERSION"), build());
        if ticket.version != version || ticket.build != own {
            return Err(Error::Usage(format!(
                "FedGenie {version} (build {own}) is here, and {} (build {}) gave the task; install the same one",
                ticket.version, ticket.build
            )));
        }
        let root = tree::parse(Path::new("scenario.toml"), &ticket.scenario).map_err(ScenarioError::from)?;
        let reach = Reach { anywhere: ticket.allow_paths, ..Reach::below(&ticket.base, ticket.data_folder.as_deref()) };
        let experiment = Experiment::from_tree_with(root, reach, kinds)?;
        if experiment.resolved != ticket.scenario {
            return Err(Error::Usage("the scenario has other defaults here".to_owned()));
        }
        let found = experiment.data_digests()?;
        for (name, digest) in &ticket.data {
            let what = match found.get(name) {
                Some(here) if here == digest => continue,
                Some(_) => "is another file here than where the task was given",
                None => "is not here",
            };
            let places = [Some(&ticket.base), ticket.data_folder.as_ref()].into_iter().flatten();
            let places: Vec<String> = places.map(|place| place.display().to_string()).collect();
            return Err(Error::Usage(format!("{name} {what}; it is looked for in {}", places.join(" and "))));
        }
        let here = Outside::of(&experiment);
        if let Some(outside) = &ticket.outside {
            if let Some(what) = outside.differs(here.as_ref()) {
                return Err(Error::Usage(what.replace("of the runs there", "of where the task was given")));
            }
            let program = here.map(|here| here.program).unwrap_or_default();
            if let Some((own, other)) = other_version(&program, &outside.program) {
                return Err(Error::Usage(format!("{own} is here, and {other} gave the task; install the same")));
            }
        }
        let runs = experiment.runs().into_iter().map(|run| (run.name.clone(), run)).collect();
        let files = RunFileOptions { events: ticket.events, timeline: None };
        Ok(Self { experiment, runs, cache: DataCache::default(), files, models: ticket.models })
    }

    /// The warning that this machine trains slowly, if it does.
    pub fn warning(&self) -> Option<String> {
        self.experiment.warning_of_cpu()
    }

    /// Carries out runs, and returns their files as a pack; those of runs that failed with the reason. `folder` is an
    /// empty one, which the caller deletes.
    ///
    /// # Errors
    /// If there is no such run, a world cannot be built, a file cannot be written, or the runs were stopped.
    pub fn carry_out(&self, names: &[String], folder: &Path, threads: &Threads) -> Result<Vec<u8>, Error> {
        let of = |name: &String| {
            let found = self.runs.get(name).cloned();
            found.ok_or_else(|| Error::Usage(format!("the experiment has no run {name}")))
        };
        let runs: Vec<RunId> = names.iter().map(of).collect::<Result<_, _>>()?;
        let out = ResultFolder::for_packs(folder)?;
        let outputs = Outputs { folder: &out, files: &self.files, models: self.models, memory: None };
        for result in execute(&self.experiment, &runs, Some(outputs), threads, &self.cache, &Silent) {
            match result {
                Err(error) if Failure::of(&error).is_none() => return Err(error),
                _ => {}
            }
        }
        out.end_pack()?;
        let path = folder.join(Kind::New(0).path());
        fs::read(&path).map_err(|source| Error::Read { path, source })
    }
}

/// A result folder for runs that are carried out elsewhere.
#[derive(Debug)]
pub struct Gathering {
    experiment: Experiment,
    folder: ResultFolder,
    runs: BTreeMap<String, RunId>,
    pending: Vec<Vec<String>>,
    ticket: Ticket,
    arrived: AtomicUsize,
}

impl Gathering {
    /// Opens the folder of the options, and looks which runs it lacks. Their worlds are checked first. `allow_paths`
    /// is as in [`Overrides`](super::Overrides).
    ///
    /// # Errors
    /// As [`Experiment::run_with`] before its first run.
    pub fn open(experiment: Experiment, options: &RunOptions<'_>, allow_paths: bool) -> Result<Self, Error> {
        if options.accepts_checked {
            let message = "runs of another build are kept by `fedgenie run --accept-checked` alone";
            return Err(Error::Usage(message.to_owned()));
        }
        if experiment.until.is_some() {
            let message = "seeds are added until an answer is decided, which those who carry out some of the runs cannot know; \
                           give seeds a number";
            return Err(Error::Usage(message.to_owned()));
        }
        let Begun { folder, runs, kept } = experiment.begin(options, &DataCache::default())?;
        let Some(folder) = folder else {
            return Err(Error::Usage("runs from elsewhere need a folder".to_owned()));
        };
        options.progress.runs_repeated(&kept.damaged);
        let ticket = Ticket {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            build: build().to_owned(),
            scenario: experiment.resolved.clone(),
            base: experiment.base.clone(),
            data_folder: experiment.data.clone(),
            allow_paths,
            data: experiment.data_digests()?,
            outside: Outside::of(&experiment),
            events: options.files.events,
            models: options.models,
        };
        // The policies of a point and a seed share a world.
        let mut pairs: BTreeMap<(usize, u64), Vec<String>> = BTreeMap::new();
        let mut order = Vec::new();
        for run in runs {
            let pair = pairs.entry((run.point, run.seed)).or_insert_with(|| {
                order.push((run.point, run.seed));
                Vec::new()
            });
            pair.push(run.name);
        }
        let pending = order.iter().filter_map(|pair| pairs.remove(pair)).collect();
        let runs = experiment.runs().into_iter().map(|run| (run.name.clone(), run)).collect();
        Ok(Self { experiment, folder, runs, pending, ticket, arrived: AtomicUsize::new(0) })
    }

    /// Names of the runs to be made, those of one point and seed together.
    pub fn pending(&self) -> &[Vec<String>] {
        &self.pending
    }

    /// What the experiment must be elsewhere.
    pub const fn ticket(&self) -> &Ticket {
        &self.ticket
    }

    /// The experiment.
    pub const fn experiment(&self) -> &Experiment {
        &self.experiment
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The files that population and task read, by the names of the ticket.
    ///
    /// # Errors
    /// If one lies neither below the folder of the scenario nor below that of data, or two have one name.
    pub fn files(&self) -> Result<BTreeMap<String, PathBuf>, Error> {
        let places = [self.ticket.data_folder.as_ref(), Some(&self.ticket.base)];
        let mut files = BTreeMap::new();
        for (name, digest) in &self.ticket.data {
            if !below::is_below(name) {
                let message = format!("{name} lies outside the folders of scenario and data, and is not sent about");
                return Err(Error::Usage(message));
            }
            let found = places.into_iter().flatten().map(|place| place.join(name));
            let is_it = |path: &PathBuf| hash_file(path).is_ok_and(|found| found == *digest);
            let path = found.into_iter().find(is_it);
            let path = path.ok_or_else(|| Error::Usage(format!("{name} has changed since the experiment began")))?;
            files.insert(name.clone(), path);
        }
        Ok(files)
    }

    /// Takes the runs of a pack that [`Apart::carry_out`] made. Returns those that failed, with the reason.
    ///
    /// # Errors
    /// If one of the named runs is not in it, or is not whole; none is taken then. If a file cannot be written.
    pub fn admit(&self, names: &[String], pack: &[u8]) -> Result<Vec<(String, String)>, Error> {
        let place = self.folder.place_for(self.arrived.fetch_add(1, Ordering::Relaxed));
        let failed = |source| Error::Write { path: place.clone(), source };
        let path = place.join(Kind::New(0).path());
        fs::create_dir_all(place.join(RUNS_FOLDER)).and_then(|()| fs::write(&path, pack)).map_err(failed)?;
        let admitted = self.admit_from(names, &place);
        below::remove_folder(&place).map_err(failed)?;
        admitted
    }

    fn admit_from(&self, names: &[String], place: &Path) -> Result<Vec<(String, String)>, Error> {
        let kept = self.experiment.kept(place, &[]);
        let mut failures = Vec::new();
        for name in names {
            let refused = |why: &str| Error::Usage(format!("run {name} came back, and cannot be used: {why}"));
            let run = self.runs.get(name).ok_or_else(|| refused("the experiment has no such run"))?;
            match (kept.find(run), Failure::read(&kept.files, name)) {
                (Found::Complete(_), _) => {}
                (Found::Missing, Some(failure)) => failures.push((name.clone(), failure.error)),
                (Found::Missing, None) => return Err(refused("it is not there")),
                (Found::Damaged(why), _) => return Err(refused(&why)),
                (Found::OfAnotherBuild(_, build), _) => return Err(refused(&format!("it is of the build {build}"))),
            }
        }
        names.iter().try_for_each(|name| self.folder.receive(&kept.files, name))?;
        Ok(failures)
    }

    /// Notes that a run failed, and why: its process died whenever it was tried.
    ///
    /// # Errors
    /// If there is no such run, or the reason cannot be written.
    pub fn give_up(&self, name: &str, why: &str) -> Result<(), Error> {
        let run = self.runs.get(name).ok_or_else(|| Error::Usage(format!("the experiment has no run {name}")))?;
        match self.folder.give_up(run, Error::Lost { run: name.to_owned(), why: why.to_owned() }) {
            Error::Lost { .. } => Ok(()),
            error => Err(error),
        }
    }

    /// The results of the runs that are there by now.
    pub fn so_far(&self) -> Summary {
        self.experiment.so_far(self.folder.path())
    }

    /// Ends the work: writes the summary, if no other process is at work in the folder.
    ///
    /// # Errors
    /// If a file cannot be read or written.
    pub fn finish(self, options: &RunOptions<'_>) -> Result<(Experiment, Option<Summary>), Error> {
        let Self { experiment, folder, .. } = self;
        let path = folder.path().to_owned();
        let draw = |summary: &Summary, into: &Path| match options.draw {
            Some(draw) => draw(into, &path, &experiment, summary),
            None => Ok(()),
        };
        let summary = folder.finish(&experiment, &mut Vec::new(), draw)?;
        Ok((experiment, summary))
    }
}

impl Experiment {
    /// The results of the runs that a folder has by now, whether other processes are at work in it or not.
    pub fn so_far(&self, folder: &Path) -> Summary {
        let kept = self.kept(folder, &[]);
        let found = self.runs().into_iter().filter_map(|run| match kept.find(&run) {
            Found::Complete(summary) => Some(*summary),
            Found::OfAnotherBuild(..) | Found::Missing | Found::Damaged(_) => None,
        });
        self.summarise(found.collect(), &Failure::all(&kept.files, self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_where_both_have_loaded_a_package() {
        let here = "Python 3.12.1, numpy 2.2.0";
        assert_eq!(other_version(here, "Python 3.12.1, numpy 2.2.0, pandas 2.2.3"), None);
        assert_eq!(other_version(here, "Python 3.12.1, numpy 2.1.0"), Some(("numpy 2.2.0", "numpy 2.1.0")));
        assert_eq!(other_version(here, "Python 3.11.7"), Some(("Python 3.12.1", "Python 3.11.7")));
        assert_eq!(other_version("", ""), None);
    }
}
