//! The answers of an experiment: which policy, or which setting, and what is not told apart from it.
//!
//! # Definition
//! Of several policies an experiment asks which one: at each point of a sweep anew, for a point may be a world in which
//! another is best. Of one policy it asks which point of the sweep. Where several policies are compared over points
//! that set none of the world's sections, which point is asked for each of them as well. Each question is asked in the
//! main quantity ([`Aim::of`]), and policies' also in the first measured regret. If the main quantity is a metric, the
//! time to the level that all reach is compared as well (`answers/level.rs`). Of a target that no run reaches it is
//! told who comes nearest (`answers/unreached.rs`).
//!
//! An answer ranks only what can be compared: candidates that are fairly watched ([`until`]) and of which
//! one has the seeds of all. Otherwise it says why not, and the settings under which they could be.
//!
//! Sentences are made of answers alone.

mod level;
mod remedy;
mod sentences;
mod unreached;

pub(super) use remedy::of_unfair;
pub use sentences::{Told, sentences};

use super::answer::{Answer, Beside, Looked, Name, Other, Partial, Question};
use super::compared::{Aim, Unranked, is_told_apart, rank_at, seeds_needed};
use super::controls;
use super::sample::Sample;
use super::until::{self, FollowUp};
use super::{INTERVAL_SEEDS, RunSummary, Summary};
use crate::scenario::UntilDecided;
use fedgenie_core::math::statistics::{Estimate, Miss};
use std::collections::{BTreeMap, BTreeSet};

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

impl Field {
    /// The same question of these candidates, but for policies that are shown the truth, which are named beside them.
    fn of(&self, summary: &Summary, candidates: impl IntoIterator<Item = (Name, Sample)>) -> Self {
        let mut field = Self {
            question: self.question,
            point: self.point,
            policy: self.policy.clone(),
            names: Vec::new(),
            candidates: Vec::new(),
            knowing: Vec::new(),
        };
        let sees = |label: &String| summary.runs.iter().any(|run| run.arm == *label && run.sees_truth == Some(true));
        for (name, sample) in candidates {
            match name {
                Name::Label(label) if sees(&label) => field.knowing.push((label, sample)),
                name => {
                    field.names.push(name);
                    field.candidates.push(sample);
                }
            }
        }
        field
    }

    /// Whether it has the candidates of the same question, in another quantity.
    fn is_of(&self, other: &Self) -> bool {
        let of = |field: &Self| (field.question, field.point, field.policy.clone(), field.names.clone());
        of(self) == of(other)
    }
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
        // What is shown the truth is no choice, so that it decides nothing either.
        let may_leave_out = is_regret || summary.until.is_some();
        let is_left_out = |(label, sample): &(String, Sample)| may_leave_out && sees_truth(summary, label, sample);
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
        // The regret of a policy that is shown the truth says nothing about its settings.
        let is_asked = |label: &&&str| {
            !(is_regret && summary.runs.iter().any(|run| run.arm == **label && run.sees_truth == Some(true)))
        };
        fields.extend(labels.iter().filter(is_asked).map(of_label));
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

/// The answers of an experiment, those to its first question first; empty if there is nothing to compare, and every
/// target is reached.
pub fn answers(summary: &Summary) -> Vec<Answer> {
    let questions = questions(summary);
    let (mut all, mut of_levels) = (Vec::new(), Vec::new());
    // Where no target is reached, that is the first thing to know.
    let is_until = questions.first().is_some_and(|aim| until::is_until(&aim.key));
    let (before, after) = match unreached::answers(summary) {
        unreached if is_until => (Vec::new(), unreached),
        unreached => (unreached, Vec::new()),
    };
    all.extend(before);
    for (place, aim) in questions.iter().enumerate() {
        // Both quantities of each question: the one that is compared, and the one beside it.
        let beside = beside(summary, aim);
        let mut besides: Vec<Field> = beside.iter().flat_map(|aim| fields(summary, aim)).collect();
        for field in fields(summary, aim) {
            let same = besides.iter().position(|other| other.is_of(&field));
            let beside = beside.as_ref().zip(same.map(|index| besides.swap_remove(index)));
            let Some(found) = answer(summary, aim, &field, beside.as_ref()) else { continue };
            if place == 0 {
                of_levels.extend(level::answer(summary, aim, &field));
            }
            let among = beside.filter(|_| place == 0).and_then(|beside| among_equals(summary, &found, beside));
            all.push(found);
            all.extend(among);
        }
    }
    all.extend(after);
    all.extend(of_levels);
    all
}

/// The quantity beside another: the time of as many rounds beside a metric, the metric beside a time.
fn beside(summary: &Summary, aim: &Aim) -> Option<Aim> {
    let is_other = |other: &Aim| match aim.key.split('.').next() {
        Some("bytes_to") => other.key.starts_with("best."),
        Some("time_to") => other.key.starts_with("final."),
        Some("final") => other.key == "virtual_time_s",
        _ => false,
    };
    let is_there = |aim: &Aim| summary.arms.iter().any(|arm| arm.values.contains_key(&aim.key));
    Aim::all(summary).into_iter().filter(is_other).find(is_there)
}

/// Of candidates that are not told apart in the main quantity, the one that is better in another: the faster where a
/// metric was compared, the one with the better metric where a time was. Policies that see the truth are no choice.
/// `None` if that tells nobody apart.
fn among_equals(summary: &Summary, first: &Answer, (aim, field): (&Aim, Field)) -> Option<Answer> {
    let best = first.best.as_ref()?;
    let is_open = |other: &&Other| other.dropped.is_none() && !is_told_apart(&other.found);
    let open: Vec<&Name> = first.others.iter().filter(is_open).map(|other| &other.name).collect();
    if open.is_empty() || first.value.is_none_or(|value| value.n < INTERVAL_SEEDS) {
        return None;
    }
    let is_equal = |name: &Name| name == best || open.contains(&name);
    let all = field.names.iter().cloned().zip(field.candidates.iter().cloned());
    let found = answer(summary, aim, &field.of(summary, all.filter(|(name, _)| is_equal(name))), None)?;
    let tells = found.others.iter().any(|other| is_told_apart(&other.found));
    let (among, among_words) = (Some(first.by.clone()), first.quantity.clone());
    tells.then_some(Answer { among, among_words, edge: None, ..found })
}

/// The answers of an experiment in sentences for people.
pub fn told(summary: &Summary) -> Told {
    let Told { mut first, rest } = sentences(&summary.answers, &summary.points);
    first.extend(controls::learning(summary));
    Told { first, rest }
}

/// The answer to one question. `beside` is another quantity of the same candidates.
fn answer(summary: &Summary, aim: &Aim, field: &Field, beside: Option<&(&Aim, Field)>) -> Option<Answer> {
    let against = field.candidates.len() - 1;
    let plan = plan_of(summary, aim);
    let plan = plan.as_ref();
    let found = rank_at(&field.candidates, aim.better, miss_of(plan, against))?;
    let follow_up = Sample::follow_up(&field.candidates);
    let name = |index: usize| field.names[index].clone();
    let mut answer = unanswered(aim, (field, plan), follow_up);
    answer.ranked = found.is_ok();
    let ranking = match found {
        Ok(ranking) => ranking,
        Err(Unranked::OtherSeeds) => {
            return Some(Answer { reason: Some("they have runs of different seeds".to_owned()), ..answer });
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
    let others = others_of(field, ranking.others, (ranking.best, plan, follow_up));
    let is_equal = |found: &Estimate| match plan.and_then(|plan| plan.margin) {
        Some(margin) => found.n >= INTERVAL_SEEDS && is_within(found, margin),
        None => ranking.value.n >= INTERVAL_SEEDS && !is_told_apart(found),
    };
    let equal = others.iter().filter(|(_, found, dropped)| dropped.is_none() && is_equal(found));
    answer.equal = equal.map(|(index, ..)| name(*index)).collect();
    answer.looks = plan.map(|plan| looked(plan, against, &others));
    let difference_beside = |index: usize| {
        let (aim, field) = beside?;
        let found = field.candidates[index].minus(&field.candidates[ranking.best], FollowUp::ENDLESS)?;
        Some(Beside { by: aim.key.clone(), quantity: aim.words.clone(), found })
    };
    let other = |(index, found, dropped): Beaten| {
        let value = field.candidates[index].estimate(follow_up).map(|value| value.mean);
        Other {
            name: name(index),
            difference: found.mean,
            ci95: found.ci95,
            ratio: value
                .filter(|&value| value > 0.0 && ranking.value.mean > 0.0)
                .map(|value| value / ranking.value.mean),
            seeds_needed: seeds_needed(&found).filter(|_| plan.is_none()),
            dropped,
            beside: difference_beside(index),
            found,
        }
    };
    answer.others = others.into_iter().map(other).collect();
    Some(answer)
}

/// The plan by which seeds are added, for answers in a quantity: margin and dropped policies are of the one that
/// decides.
fn plan_of(summary: &Summary, aim: &Aim) -> Option<UntilDecided> {
    let plan = summary.until.clone()?;
    let decides = questions(summary).first().is_some_and(|first| first.key == aim.key);
    Some(if decides { plan } else { UntilDecided { margin: None, dropped: BTreeMap::new(), ..plan } })
}

/// An answer before candidates are ranked.
fn unanswered(aim: &Aim, (field, plan): (&Field, Option<&UntilDecided>), follow_up: FollowUp) -> Answer {
    Answer {
        question: field.question,
        point: field.point,
        policy: field.policy.clone(),
        among: None,
        among_words: String::new(),
        by: aim.key.clone(),
        is_common_level: false,
        quantity: aim.words.clone(),
        unit: aim.unit,
        better: aim.better,
        ranked: false,
        reason: None,
        remedy: Vec::new(),
        best: None,
        value: None,
        horizon: Some(follow_up.horizon).filter(|end| end.is_finite()),
        edge: None,
        nearest: None,
        equal: Vec::new(),
        looks: plan.map(|plan| looked(plan, field.candidates.len() - 1, &[])),
        others: Vec::new(),
        partial: partial(field, plan),
        sees_truth: field.knowing.iter().map(|(label, sample)| (label.clone(), sample.estimate(follow_up))).collect(),
    }
}

/// A candidate beside the best: its place, its difference, and its seeds if it got no more.
type Beaten = (usize, Estimate, Option<u32>);

/// The candidates beside the best, the nearest first: those that were ranked, and those that got no further seeds.
fn others_of(
    field: &Field,
    ranked: Vec<(usize, Estimate)>,
    (best, plan, follow_up): (usize, Option<&UntilDecided>, FollowUp),
) -> Vec<Beaten> {
    let against = field.candidates.len() - 1;
    let dropped = dropped(field, plan).filter(|&(index, _)| index != best).filter_map(|(index, seeds)| {
        let miss = plan.map_or(Miss::USUAL, |plan| plan.miss(seeds, against));
        let found = field.candidates[index].minus_at(&field.candidates[best], follow_up, miss)?;
        Some((index, found, Some(seeds)))
    });
    let mut others: Vec<Beaten> =
        ranked.into_iter().map(|(index, found)| (index, found, None)).chain(dropped).collect();
    others.sort_by(|(_, one, _), (_, other, _)| one.mean.abs().total_cmp(&other.mean.abs()));
    others
}

/// Whether the whole interval of a difference lies within a margin on either side of 0.
fn is_within(found: &Estimate, margin: f64) -> bool {
    found.ci95.is_some_and(|[low, high]| -margin <= low && high <= margin)
}

/// How often intervals may miss, with so many others: less often where the runs are looked at several times.
fn miss_of(plan: Option<&UntilDecided>, against: usize) -> Miss {
    plan.map_or(Miss::USUAL, |plan| plan.miss(plan.seeds(), against))
}

/// The policies that got no further seeds: their places, and their numbers of seeds.
fn dropped(field: &Field, plan: Option<&UntilDecided>) -> impl Iterator<Item = (usize, u32)> {
    let seeds = move |name: &Name| match name {
        Name::Label(label) => plan?.dropped.get(label).copied(),
        Name::Point(_) => None,
    };
    field.names.iter().enumerate().filter_map(move |(index, name)| Some((index, seeds(name)?)))
}

/// How far a plan of looks has come: differences of the others, and which of them were dropped.
fn looked(plan: &UntilDecided, against: usize, others: &[Beaten]) -> Looked {
    let seeds = plan.seeds();
    let is_decided = |(_, found, dropped): &Beaten| {
        let is_equal = plan.margin.is_some_and(|margin| found.n >= INTERVAL_SEEDS && is_within(found, margin));
        dropped.is_some() || is_told_apart(found) || is_equal
    };
    Looked {
        look: plan.look_of(seeds),
        of: plan.looks.len(),
        seeds,
        miss: plan.miss(seeds, against).share(),
        margin: plan.margin,
        decided: others.len() == against && others.iter().all(is_decided),
    }
}

/// The candidates of which not all runs arrive, or have the quantity; but for those that got fewer seeds.
fn partial(field: &Field, plan: Option<&UntilDecided>) -> Vec<Partial> {
    let dropped: BTreeSet<usize> = dropped(field, plan).map(|(index, _)| index).collect();
    let most = field.candidates.iter().map(Sample::len).max().unwrap_or(0);
    let partial = |(index, sample): (usize, &Sample)| {
        let arrived = sample.arrived();
        let is_partial = arrived < most && !dropped.contains(&index);
        is_partial.then(|| Partial { name: field.names[index].clone(), arrived, runs: most })
    };
    field.candidates.iter().enumerate().filter_map(partial).collect()
}

/// Whether the best setting lies at an end of the one range that was swept: better ones may lie beyond it. A world is
/// no setting.
fn edge(summary: &Summary, field: &Field, best: usize) -> Option<&'static str> {
    let [axis] = &summary.sweep.axes[..] else { return None };
    let is_setting = field.question == Question::Setting && !is_of_worlds(summary);
    let (numbers, _) = axis.numbers.as_ref().filter(|_| is_setting)?;
    let place = *axis.places.get(best)?;
    if numbers.len() < 3 {
        None
    } else if place == 0 {
        // Below 0 there is nothing to try.
        numbers.first().is_none_or(|least| *least != 0.0).then_some("least")
    } else if place + 1 == numbers.len() {
        Some("most")
    } else {
        None
    }
}

#[cfg(test)]
mod tests;
