//! One run from its first round, or from where an earlier process left it, to its end.

use super::artefacts::{MEMORY_FILE, POLICY_FILES};
use super::bounded::Bounded;
use super::checkpoint::Checkpoints;
use super::controls::INITIAL;
use super::execution::Threads;
use super::last::LastRounds;
use super::measured::{by_name, cluster_numbers};
use super::pace::{Pace, Unwatched};
use super::refine::Refine;
use super::warnings::of_run;
use super::{Curve, CurvePoint, Ended, Experiment, RunId, RunSummary, Watch, files};
use crate::error::Error;
use crate::scenario::Sections;
use fedgenie_core::id::{ClientId, Round};
use fedgenie_core::limits;
use fedgenie_core::metric::{Measure, Metric, Place, statistics};
use fedgenie_core::state::{State, StateError, Stateful};
use fedgenie_core::time::VirtualTime;
use fedgenie_simulator::metrics::{Bins, Metered};
use fedgenie_simulator::policy::PolicyConfig;
use fedgenie_simulator::population::Energy;
use fedgenie_simulator::recorder::{NoSink, Sink};
use fedgenie_simulator::run::{Evaluations, Run, RunError, RunSettings, Tuned};
use fedgenie_simulator::task::{Appendix, On};
use fedgenie_simulator::world::{TrainedControl, World};
use std::path::Path;

/// Observations of a run beside the records of its sink.
#[derive(Stateful)]
struct Course<'a> {
    curve: Curve,
    watch: Watch<'a>,
    last: LastRounds,
    refine: Refine,
    bounded: Bounded,
    /// Rounds that have closed at this instant, where nothing else ends the run.
    standstill: u32,
    before: VirtualTime,
}

impl<'a> Course<'a> {
    fn new(sections: &'a Sections, metrics: &[Metric]) -> Self {
        Self {
            curve: Curve::default(),
            watch: Watch::new(sections, metrics),
            last: LastRounds::new(sections.evaluate.last),
            // Where every round is evaluated, no round lies between two evaluations.
            refine: Refine::new(sections.evaluate.refine && sections.evaluate.every != Some(1)),
            bounded: Bounded::default(),
            standstill: 0,
            before: VirtualTime::START,
        }
    }

    /// Observes a round. Returns why the run is over, if it is.
    fn observe(&mut self, run: &Run<'_>, is_bounded: bool) -> Result<Option<Ended>, RunError> {
        let now = run.now();
        self.standstill = if now > self.before || is_bounded { 0 } else { self.standstill + 1 };
        self.before = now;
        if self.standstill >= limits::ROUNDS_AT_ONE_INSTANT {
            return Err(RunError::Standstill { time: now, rounds: self.standstill });
        }
        let mut metrics = run.metrics().to_vec();
        if !metrics.is_empty() {
            metrics.extend(cluster_numbers(run));
        }
        let regret = run.regret();
        let bound = self.bounded.observe(run.round(), &regret).map_err(|failure| run.bound_failed(failure))?;
        self.curve.push(CurvePoint {
            round: run.round().0,
            time_s: now.seconds(),
            bytes: run.accounts().down_bytes.saturating_add(run.accounts().up_bytes),
            regret,
            bound,
            metrics,
            unique_clients: run.participation().unique(),
            jain: run.participation().jain(),
            selections: run.participation().total(),
            clusters: run.clusters().map_or_else(Vec::new, |clusters| clusters.assignment.clone()),
            energy_j: run.energy_of_jobs().map(Energy::joules),
            empty: run.empty_phones(),
        });
        self.last.observe(run);
        Ok(self.watch.observe(run))
    }
}

/// Where a run goes on, and where it is saved on the way.
pub(super) struct Keeping<'a, 'b> {
    /// The part of a checkpoint after the sink's.
    pub from: Option<&'a mut State<'b>>,
    /// The checkpoints to write.
    pub checkpoints: &'a mut Checkpoints,
    /// The folder of the run's files.
    pub folder: &'a Path,
}

impl Experiment {
    /// Carries out one run in its world, and writes the final model to a file if asked to.
    ///
    /// # Errors
    /// If the run ends early; the sink has the records up to then.
    pub fn run_one(
        &self,
        id: &RunId,
        world: &World,
        sink: &mut dyn Sink,
        threads: &Threads,
        model_file: Option<&Path>,
    ) -> Result<RunSummary, Error> {
        self.run_paced(id, world, sink, (threads, &mut Unwatched), model_file)
    }

    /// As [`Self::run_one`], before somebody's eyes.
    pub(super) fn run_paced(
        &self,
        id: &RunId,
        world: &World,
        sink: &mut dyn Sink,
        paced: (&Threads, &mut dyn Pace),
        model_file: Option<&Path>,
    ) -> Result<RunSummary, Error> {
        let played = self.play(id, world, sink, paced, model_file, None)?;
        Ok(played.expect("a run that is not loaded cannot be loaded wrongly"))
    }

    /// As [`Self::run_one`], with checkpoints on the way. Returns `None` if the checkpoint does not fit: it is of
    /// another run or program.
    pub(super) fn play(
        &self,
        id: &RunId,
        world: &World,
        sink: &mut dyn Sink,
        (threads, pace): (&Threads, &mut dyn Pace),
        model_file: Option<&Path>,
        keeping: Option<Keeping<'_, '_>>,
    ) -> Result<Option<RunSummary>, Error> {
        let scenario = &self.points[id.point].1;
        let arm = &scenario.arms[id.arm];
        let policies = world.policies(&arm.source()).map_err(|error| scenario.explain_policy(&arm.label, error))?;
        let sees_truth = arm.policy.config().map_or_else(|| policies.see_truth(), PolicyConfig::sees_truth);
        let sections = scenario.sections_of(id.arm);
        let settings = settings_of(sections);
        let speeds = world.truth.as_ref().map(|truth| &*truth.genie.mean_speeds);
        let metered = Metered::new(sink, Bins::new(&world.population, speeds));
        let mut metered = if sections.record.explain { metered.explained() } else { metered };
        let (from, mut checkpoints, folder) = match keeping {
            None => (None, None, None),
            Some(Keeping { from, checkpoints, folder }) => (from, Some(checkpoints), Some(folder)),
        };
        let [initial_file, policy_file] =
            POLICY_FILES.map(|name| folder.filter(|_| sections.record.explain).map(|folder| folder.join(name)));
        let (metrics, mut rounds) = (sections.metrics(&world.measures), threads.rounds());
        let mut course = Course::new(sections, &metrics);
        let failed = |source: RunError| told(id, source);
        let mut run = match from {
            None => Run::new(world, &arm.label, policies, settings.clone(), &mut metered),
            Some(state) => {
                state.field(&mut metered);
                let mut run = Run::new(world, &arm.label, policies, settings.clone(), &mut metered);
                state.field(&mut course);
                state.field(&mut run);
                if !is_loaded(state).map_err(failed)? {
                    return Ok(None);
                }
                run
            }
        };
        course.bounded.take(run.bound().map_err(failed)?);
        pace.begin(&mut run);
        let ended = loop {
            let before = run.round();
            rounds.step(&mut run).map_err(failed)?;
            if run.round() == before {
                break Ended::Budget;
            }
            // A policy draws its weights in its first selection, and learns from it in the second at the earliest.
            if run.round() == Round(1) {
                write_policy(initial_file.as_deref(), &run)?;
            }
            let ended = course.observe(&run, sections.stop.rounds.is_some()).map_err(failed)?;
            let Course { watch, refine, .. } = &mut course;
            let (settings, unheard) = (&settings, &mut NoSink);
            let again = move || {
                let policies = world.policies(&arm.source()).expect("policies that were made before");
                Run::new(world, &arm.label, policies, settings.clone(), unheard)
            };
            refine.look(&mut run, watch, again, |again| rounds.step(again)).map_err(failed)?;
            let stopped = pace.closed(&run, ended.is_some()).map_err(failed)?;
            if let Some(ended) = ended.or(stopped) {
                break ended;
            }
            let is_cancelled = threads.is_cancelled();
            if let Some(checkpoints) = &mut checkpoints
                && checkpoints.are_due(run.round(), is_cancelled)
            {
                checkpoints.write(run.round(), |state| {
                    run.save_sink(state)?;
                    state.field(&mut course);
                    state.field(&mut run);
                    Ok(())
                })?;
            }
            if is_cancelled {
                return Err(Error::Cancelled);
            }
        };
        write_models(model_file, &run)?;
        write_policy(policy_file.as_deref(), &run)?;
        let tuned = tuned(&run, sections).map_err(failed)?;
        let Course { curve, watch, last, bounded, .. } = course;
        let warnings = watch.warning(run.accounts()).into_iter().chain(run.warnings()).chain(bounded.warning());
        let mut warnings: Vec<String> = warnings.collect();
        let effective = self.effective(id, world, &run);
        let controls = controls_of(world, sections, &settings.evaluate, threads).map_err(failed)?;
        warnings.extend(not_tuned(&tuned));
        let mut summary = RunSummary::of(id, &arm.label, run, curve, (ended, watch)).map_err(failed)?;
        summary.final_metrics.extend(by_name(tuned.metrics));
        last.tell(&world.measures, &mut summary);
        summary.budget_bytes = world.budget.bytes;
        (summary.with, summary.sees_truth) = (arm.overridden(), Some(sees_truth));
        (summary.metrics, summary.outcomes) = metered.finish(summary.metrics.clients.take());
        summary.bound = bounded.found();
        summary.effective = effective.into();
        warnings.extend(summary.add_controls(controls));
        summary.warnings = of_run(world, &summary).into_iter().chain(warnings).collect();
        summary.heavy_tails = world.heavy_tails();
        summary.measured = scenario.compared_by(metrics);
        add_data(&mut summary, world);
        Ok(Some(summary))
    }
}

/// How a run of a scenario is carried out.
fn settings_of(sections: &Sections) -> RunSettings {
    RunSettings {
        evaluate: sections.evaluate.plan(sections.stop.end()),
        record_every: sections.record.every,
        explain: sections.record.explain,
        updates: sections.record.updates,
        battery: sections.record.battery,
        parallel: false,
    }
}

/// The controls of a run's world that belong to no task: the model before training, and those that are trained.
fn controls_of(
    world: &World,
    sections: &Sections,
    evaluate: &Evaluations,
    threads: &Threads,
) -> Result<Vec<TrainedControl>, RunError> {
    let mut all = world.trained_controls(threads.halt())?;
    if sections.controls.initial {
        let metrics = world.initial_metrics(evaluate)?.into_iter().filter(|(_, value)| !value.is_nan()).collect();
        all.push(TrainedControl { name: INITIAL, metrics, models: 1, diverged: 0 });
    }
    Ok(all)
}

/// What clients make of the last model, if the scenario asks for that.
fn tuned(run: &Run<'_>, sections: &Sections) -> Result<Tuned, RunError> {
    sections.evaluate.fine_tune.map_or(Ok(Tuned::default()), |tune| run.tuned(tune.epochs))
}

/// A warning of clients whose models diverged when they trained them further.
fn not_tuned(tuned: &Tuned) -> Option<String> {
    let Tuned { models, diverged, .. } = *tuned;
    (diverged > 0).then(|| {
        format!(
            "{diverged} of {models} clients' models diverged when they were trained further, and are not measured; a smaller \
             learning rate may help"
        )
    })
}

/// Adds counts of the data, and the controls that the task knows.
fn add_data(summary: &mut RunSummary, world: &World) {
    let Some(task) = &world.task else { return };
    let counts = task.describe().counts.iter();
    summary.data = counts.map(|&(name, count)| (name.to_owned(), count)).collect();
    let Appendix { controls, graph, .. } = task.appendix();
    summary.graph = graph;
    controls.into_iter().for_each(|(name, values)| summary.add_control(name, by_name(values)));
    let clients = (0..world.population.len()).map(|client| On::Client(ClientId::from_index(client)));
    let clients = if world.evaluated.clients { clients.collect() } else { Vec::new() };
    let servers = if world.evaluated.servers { world.data_of_servers() } else { Vec::new() };
    for (place, parts) in [(Place::Clients, clients), (Place::Servers, servers)] {
        let of_parts = if parts.is_empty() { Vec::new() } else { task.controls_on(&parts) };
        for (name, found) in of_parts {
            let of_measure = |(index, measure): (usize, &Measure)| {
                let values: Vec<f64> = found.iter().flatten().filter_map(|values| values.get(index).copied()).collect();
                statistics(place, measure, &values).collect::<Vec<_>>()
            };
            let all = world.measures.of_data.iter().enumerate().flat_map(of_measure);
            summary.add_control(name, by_name(all.filter(|(_, value)| value.is_finite())));
        }
    }
}

/// A run's error; one that was stopped at the user's request has not failed.
fn told(id: &RunId, source: RunError) -> Error {
    match source {
        RunError::Halted => Error::Cancelled,
        source => Error::Run { run: id.name.clone(), source },
    }
}

/// Whether everything was loaded: not if the bytes are of another run or program.
///
/// # Errors
/// If a component failed.
fn is_loaded(state: &mut State<'_>) -> Result<bool, RunError> {
    match std::mem::replace(state, State::Loading(None)).ended() {
        Ok(()) => Ok(true),
        Err(StateError::Failed(failure)) => Err(RunError::of_state(failure)),
        Err(StateError::Damaged | StateError::TooLong(_)) => Ok(false),
    }
}

/// Writes a run's models and what the algorithm remembers, where there is a file for them.
fn write_models(file: Option<&Path>, run: &Run<'_>) -> Result<(), Error> {
    let Some((file, contents)) = file.zip(run.model_file()) else { return Ok(()) };
    files::write_file(file, &contents)?;
    let memory = run.memory_file();
    memory.map_or(Ok(()), |contents| files::write_file(&file.with_file_name(MEMORY_FILE), &contents))
}

/// Writes the weights of a policy's networks, where there is a file for them and the policy has any.
fn write_policy(file: Option<&Path>, run: &Run<'_>) -> Result<(), Error> {
    match file.zip(run.policy_file()) {
        Some((file, contents)) => files::write_file(file, &contents),
        None => Ok(()),
    }
}
