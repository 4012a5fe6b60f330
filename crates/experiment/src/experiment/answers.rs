//! The answers of an experiment: which policy, or which setting, and what is not told apart from it.
//!
//! # Definition
//! Of several policies an experiment asks which one: at each point of a sweep anew, for a point may be a world in which
//! another is best. Of one policy it asks which point of the sweep. Where several policies are compared over points that
//! set none of the world's sections, which point is asked for each of them as well. Each question is asked in the main
//! quantity ([`Aim::of`]), and policies' also in the first measured regret.
//!
//! An answer ranks only what can be compared: candidates that are fairly watched ([`until`](super::until)) and of which
//! one has the seeds of all. Otherwise it says why not, and the settings under which they could be.
//!
//! Sentences are made of answers alone.

mod remedy;
mod sentences;

pub use sentences::sentences;

use super::compared::{Aim, Unranked, is_same, is_told_apart, rank, seeds_needed};
use super::sample::Sample;
use super::until::is_until;
use super::{INTERVAL_SEEDS, RunSummary, Summary};
use fedgenie_core::math::statistics::Estimate;
use serde::Serialize;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    /// Which policy.
    Policy,
    /// Which point of the sweep.
    Setting,
}

/// A candidate: the label of a policy, or the index of a point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Name {
    /// A policy.
    Label(String),
    /// A point.
    Point(usize),
}

/// A candidate beside the best.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Other {
    /// Which.
    pub name: Name,
    /// Its value minus the best's.
    pub difference: f64,
    /// The 95 % interval of the difference; `None` for a single seed.
    pub ci95: Option<[f64; 2]>,
    /// Its value divided by the best's; `None` unless both are above 0.
    pub ratio: Option<f64>,
    /// About how many seeds would tell the two apart, where they are not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seeds_needed: Option<u64>,
    #[serde(skip)]
    found: Estimate,
}

/// A candidate without a full set of values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Partial {
    /// Which.
    pub name: Name,
    /// Its runs that arrive, or have the quantity.
    pub arrived: usize,
    /// Its runs.
    pub runs: usize,
}

/// An answer to one question.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// What is asked for.
    pub question: Question,
    /// The point at which policies are compared; `None` without a sweep, and for settings.
    pub point: Option<usize>,
    /// The policy whose settings are compared; `None` for policies.
    pub policy: Option<String>,
    /// The quantity: a key of `values`.
    pub by: String,
    /// The quantity in words.
    pub quantity: String,
    /// Its unit, empty for a pure number.
    pub unit: &'static str,
    /// Whether candidates are ranked.
    pub ranked: bool,
    /// Why they are not.
    pub reason: Option<String>,
    /// Settings for `--set` under which they could be.
    pub remedy: Vec<String>,
    /// The best.
    pub best: Option<Name>,
    /// Its mean over seeds.
    pub value: Option<Estimate>,
    /// The end of the shortest watch of a run without arrival, with which such runs count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub horizon: Option<f64>,
    /// Whether the best setting is the `least` or the `most` that was tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edge: Option<&'static str>,
    /// Candidates that are not told apart from the best.
    pub equal: Vec<Name>,
    /// All others with as many seeds, the nearest first.
    pub others: Vec<Other>,
    /// Candidates of which not all runs arrive, or have the quantity.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub partial: Vec<Partial>,
    /// Policies that see the truth, which are no candidates in a regret, and their means.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sees_truth: Vec<(String, Option<Estimate>)>,
}

/// Candidates of one question.
struct Field {
    question: Question,
    point: Option<usize>,
    policy: Option<String>,
    names: Vec<Name>,
    candidates: Vec<Sample>,
    /// Policies that are left out since they are shown the truth, as the genie.
    knowing: Vec<(String, Sample)>,
}

/// Sections that describe the world rather than what is done in it.
const WORLD: [&str; 4] = ["population", "task", "regret", "seeds"];

fn labels(summary: &Summary) -> Vec<&str> {
    let mut labels: Vec<&str> = Vec::new();
    for arm in &summary.arms {
        if !labels.contains(&arm.arm.as_str()) {
            labels.push(&arm.arm);
        }
    }
    labels
}

fn fields(summary: &Summary, aim: &Aim) -> Vec<Field> {
    let labels = labels(summary);
    let sample = |label: &str, point: usize| {
        let runs = summary.runs.iter().filter(|run| run.point == point && run.arm == label);
        Sample::of(&aim.key, &runs.map(|run| (run.seed, run)).collect())
    };
    let is_regret = aim.is_regret();
    let is_sweep = summary.points.len() > 1;
    let of_point = |point: usize| {
        let all = labels.iter().map(|label| ((*label).to_owned(), sample(label, point)));
        let is_left_out = |(label, sample): &(String, Sample)| is_regret && sees_truth(summary, label, sample);
        let (knowing, others): (Vec<_>, Vec<_>) = all.partition(is_left_out);
        let (names, candidates) = others.into_iter().map(|(label, sample)| (Name::Label(label), sample)).unzip();
        let point = is_sweep.then_some(point);
        Field { question: Question::Policy, point, policy: None, names, candidates, knowing }
    };
    let of_label = |label: &&str| Field {
        question: Question::Setting,
        point: None,
        policy: Some((*label).to_owned()),
        names: (0..summary.points.len()).map(Name::Point).collect(),
        candidates: (0..summary.points.len()).map(|point| sample(label, point)).collect(),
        knowing: Vec::new(),
    };
    let mut fields = Vec::new();
    if labels.len() > 1 {
        fields.extend((0..summary.points.len().max(1)).map(of_point));
    }
    // Regrets in different rewards are not comparable.
    if is_sweep && !(is_regret && summary.sweep.moves("regret")) && (labels.len() == 1 || !is_of_worlds(summary)) {
        fields.extend(labels.iter().map(of_label));
    }
    fields.retain(|field| field.candidates.len() > 1);
    fields
}

/// Whether a sweep changes the world, so that its points are no choice.
fn is_of_worlds(summary: &Summary) -> bool {
    let mut paths = summary.sweep.axes.iter().flat_map(|axis| &axis.paths);
    paths.any(|path| WORLD.contains(&path.split('.').next().unwrap_or_default()))
}

/// Whether a policy is shown the truth. In a folder without this field, a policy without any regret counts as one.
fn sees_truth(summary: &Summary, label: &str, regret: &Sample) -> bool {
    let said = summary.runs.iter().filter(|run| run.arm == label).find_map(|run| run.sees_truth);
    said.unwrap_or_else(|| regret.is_zero())
}

/// The questions of an experiment: its main quantity, and the first measured regret.
pub fn questions(summary: &Summary) -> Vec<Aim> {
    let Some(main) = Aim::of(summary) else { return Vec::new() };
    let is_there = |aim: &&Aim| summary.arms.iter().any(|arm| arm.values.contains_key(&aim.key));
    let all = Aim::all(summary);
    let regret = all.iter().filter(|aim| aim.is_regret()).find(is_there).filter(|regret| regret.key != main.key);
    [Some(&main), regret].into_iter().flatten().cloned().collect()
}

/// The answers of an experiment, those to its first question first; empty if there is nothing to compare.
pub fn answers(summary: &Summary) -> Vec<Answer> {
    let of = |aim: &Aim| {
        let answer = |field: Field| answer(summary, aim, &field);
        fields(summary, aim).into_iter().filter_map(answer).collect::<Vec<Answer>>()
    };
    questions(summary).iter().flat_map(of).collect()
}

/// The answers of an experiment in sentences for people.
pub fn told(summary: &Summary) -> Vec<String> {
    sentences(&answers(summary), &summary.points)
}

fn answer(summary: &Summary, aim: &Aim, field: &Field) -> Option<Answer> {
    let found = rank(&field.candidates, aim.better)?;
    let follow_up = Sample::follow_up(&field.candidates);
    let name = |index: usize| field.names[index].clone();
    let mut answer = Answer {
        question: field.question,
        point: field.point,
        policy: field.policy.clone(),
        by: aim.key.clone(),
        quantity: aim.words.clone(),
        unit: aim.unit,
        ranked: found.is_ok(),
        reason: None,
        remedy: Vec::new(),
        best: None,
        value: None,
        horizon: Some(follow_up.horizon).filter(|end| end.is_finite()),
        edge: None,
        equal: Vec::new(),
        others: Vec::new(),
        partial: Vec::new(),
        sees_truth: field.knowing.iter().map(|(label, sample)| (label.clone(), sample.estimate(follow_up))).collect(),
    };
    let most = field.candidates.iter().map(Sample::len).max().unwrap_or(0);
    let partial = |(index, sample): (usize, &Sample)| {
        let arrived = sample.arrived();
        (arrived < most).then(|| Partial { name: name(index), arrived, runs: most })
    };
    answer.partial = field.candidates.iter().enumerate().filter_map(partial).collect();
    let ranking = match found {
        Ok(ranking) => ranking,
        Err(Unranked::OtherSeeds) => {
            answer.reason = Some("they have runs of different seeds".to_owned());
            return Some(answer);
        }
        Err(Unranked::Unfair(follow_up)) => {
            let is_asked = |run: &&RunSummary| match field.question {
                Question::Policy => run.point == field.point.unwrap_or(run.point),
                Question::Setting => field.policy.as_ref() == Some(&run.arm),
            };
            let runs: Vec<&RunSummary> = summary.runs.iter().filter(is_asked).collect();
            (answer.reason, answer.remedy) = remedy::of_unfair(aim, follow_up, &runs);
            return Some(answer);
        }
    };
    answer.best = Some(name(ranking.best));
    answer.value = Some(ranking.value);
    answer.edge = edge(summary, field, ranking.best);
    let mut others = ranking.others;
    others.sort_by(|(_, one), (_, other)| one.mean.abs().total_cmp(&other.mean.abs()));
    let is_open = |found: &Estimate| ranking.value.n >= INTERVAL_SEEDS && !is_told_apart(found);
    answer.equal = others.iter().filter(|(_, found)| is_open(found)).map(|(index, _)| name(*index)).collect();
    let other = |(index, found): (usize, Estimate)| {
        let value = field.candidates[index].estimate(follow_up).map(|value| value.mean);
        Other {
            name: name(index),
            difference: found.mean,
            ci95: found.ci95,
            ratio: value
                .filter(|&value| value > 0.0 && ranking.value.mean > 0.0)
                .map(|value| value / ranking.value.mean),
            seeds_needed: seeds_needed(&found),
            found,
        }
    };
    answer.others = others.into_iter().map(other).collect();
    Some(answer)
}

/// Whether the best setting lies at an end of the one range that was swept: better ones may lie beyond it.
fn edge(summary: &Summary, field: &Field, best: usize) -> Option<&'static str> {
    let [axis] = &summary.sweep.axes[..] else { return None };
    let (numbers, _) = axis.numbers.as_ref().filter(|_| field.question == Question::Setting)?;
    let place = *axis.places.get(best)?;
    if numbers.len() < 3 {
        None
    } else if place == 0 {
        Some("least")
    } else if place + 1 == numbers.len() {
        Some("most")
    } else {
        None
    }
}

impl Answer {
    /// Whether the quantity is spending until a target.
    fn is_until(&self) -> bool {
        is_until(&self.by)
    }

    /// The others of which every pair is alike.
    fn same(&self) -> impl Iterator<Item = &Other> {
        self.others.iter().filter(|other| is_same(&other.found))
    }
}

#[cfg(test)]
mod tests;
