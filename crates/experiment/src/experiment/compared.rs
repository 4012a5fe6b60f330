//! The best policy or point of a sweep, and the candidates not told apart from it.
//!
//! # Definition
//! Candidates are compared in one quantity, of which each has a [`Sample`], to their common horizon. The *best* has the
//! best mean among candidates with a value for every seed that any has. Each other is compared with it by the
//! differences of common seeds, with their 95 % interval: Student's t with n − 1 degrees of freedom, unless
//! [`sample`](super::sample) says otherwise. It is *told apart* if the interval excludes 0 and rests on at least
//! [`INTERVAL_SEEDS`] pairs. In a regret, which measures the distance to the known best, policies that are shown the
//! truth are no candidates: they are named beside the others, with their regret.
//!
//! # Interpretation
//! Two candidates that are equal in truth are told apart in 5 % of studies. Of more, the best was chosen from the same
//! runs, so that it is partly the luckiest; each comparison is at 95 % by itself, and nothing is corrected for their
//! number. "Not told apart from the best" is thus a list of candidates that may be as good as the best. A candidate
//! outside the list is worse at 95 % if it was suspected beforehand, and less surely if there were many.

use super::sample::Sample;
use super::{ArmSummary, CONVERGENCE, INTERVAL_SEEDS, ROUNDING, Reached, RunSummary, Summary, number, show};
use crate::scenario::points;
use fedgenie_core::math::statistics::{Estimate, values_needed};
use fedgenie_core::metric::{Better, Metric, MetricId, Place, Statistic};

/// The most candidates that a sentence names, and the most sentences about seeds.
const MOST_NAMED: usize = 4;

/// Whether a difference is more than chance: its interval excludes 0.
pub fn is_told_apart(difference: &Estimate) -> bool {
    let excludes = |[low, high]: [f64; 2]| low > 0.0 || high < 0.0;
    difference.n >= INTERVAL_SEEDS && difference.ci95.is_some_and(excludes)
}

/// Whether all pairs are alike.
pub fn is_same(difference: &Estimate) -> bool {
    difference.mean == 0.0 && difference.half_width().is_none_or(|half| half == 0.0)
}

/// About how many seeds would tell a difference from 0; `None` where it is told already, is 0, or too few seeds are
/// known for its spread.
pub fn seeds_needed(difference: &Estimate) -> Option<u64> {
    let is_open = difference.n >= INTERVAL_SEEDS && !is_told_apart(difference);
    let needed = Some(difference).filter(|_| is_open).and_then(values_needed)?;
    // The spread is too uncertain for a third digit.
    let mut unit = 1;
    while needed / unit >= 100 {
        unit *= 10;
    }
    Some(needed.div_ceil(unit) * unit)
}

/// Candidates beside the best of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranking {
    /// Index of the best.
    pub best: usize,
    /// Its mean.
    pub value: Estimate,
    /// Every other candidate with as many seeds, with its difference to the best.
    pub others: Vec<(usize, Estimate)>,
    /// Candidates with fewer seeds, whose means would be of other seeds, or with runs that do not arrive; each with its
    /// number of arrivals.
    pub incomplete: Vec<(usize, usize)>,
}

/// Compares candidates with the best of them; of equal ones the first is the best. `None` if no candidate has a value.
pub fn rank(candidates: &[Sample], better: Better) -> Option<Ranking> {
    let candidates = &Sample::alike(candidates)[..];
    let most = candidates.iter().map(Sample::len).max().filter(|&most| most > 0)?;
    let horizon = Sample::horizon(candidates);
    let mut best: Option<(usize, Estimate)> = None;
    let complete = || (0..candidates.len()).filter(|&index| candidates[index].len() == most);
    for index in complete() {
        let Some(found) = candidates[index].estimate(horizon) else { continue };
        let margin = |known: f64| ROUNDING * known.abs().max(found.mean.abs());
        if best.is_none_or(|(_, known)| better.quality(found.mean) > better.quality(known.mean) + margin(known.mean)) {
            best = Some((index, found));
        }
    }
    let (best, value) = best?;
    let minus = |index: usize| candidates[index].minus(&candidates[best], horizon);
    let others = complete().filter(|&index| index != best).filter_map(|index| Some((index, minus(index)?))).collect();
    let arrived = candidates.iter().map(|candidate| candidate.arrived(horizon)).enumerate();
    Some(Ranking { best, value, others, incomplete: arrived.filter(|&(_, arrived)| arrived < most).collect() })
}

/// A quantity by which candidates are ranked.
#[derive(Clone, Debug, PartialEq)]
pub struct Aim {
    /// Its key in `RunSummary::numbers`.
    pub key: String,
    /// In words.
    pub words: String,
    /// Its unit, empty for a pure number.
    pub unit: &'static str,
    /// Which values are better.
    pub better: Better,
}

impl Aim {
    /// The main quantity of an experiment: the time to the hardest target that is often reached, or else the main
    /// metric of the task, or else regret. `with_regret` says whether regrets are measured in the same reward.
    pub fn of(summary: &Summary, with_regret: bool) -> Option<Self> {
        let all = Self::all(summary, with_regret);
        let counts = |aim: &Self| -> Vec<usize> {
            let count = |arm: &ArmSummary| match arm.until.get(&aim.key) {
                Some(until) => until.arrived,
                None => arm.values.get(&aim.key).map_or(0, |value| value.n),
            };
            summary.arms.iter().map(count).collect()
        };
        // A quantity that some candidate has in half of its runs tells them apart; one that all runs lack does not.
        let is_usual = |(arm, count): (&ArmSummary, usize)| 2 * count >= arm.runs;
        let is_reached = |aim: &&Self| summary.arms.iter().zip(counts(aim)).any(is_usual);
        let is_there = |aim: &&Self| counts(aim).into_iter().any(|count| count > 0);
        all.iter().find(is_reached).or_else(|| all.iter().find(is_there)).cloned()
    }

    /// All candidates for the main quantity, the first first.
    pub fn all(summary: &Summary, with_regret: bool) -> Vec<Self> {
        let Some(first) = summary.runs.first() else { return Vec::new() };
        let lower = |key: String, words: String, unit| Self { key, words, unit, better: Better::Lower };
        let time_to = |name: String| lower(format!("time_to.{name}"), format!("virtual time to {name}"), "s");
        let mut all: Vec<Self> = first.reached.iter().rev().map(Reached::name).map(time_to).collect();
        all.extend(first.converged.iter().map(|_| time_to(CONVERGENCE.to_owned())));
        let is_main = |metric: &&Metric| metric.main && metric.id.place == Place::Test;
        // Where no target is reached, its metric says most.
        let is_aimed_at =
            |metric: &&Metric| first.reached.iter().any(|reached| metric.id.is_called(&reached.target.metric));
        let aimed_at = first.measured.iter().filter(is_aimed_at);
        for metric in aimed_at.chain(first.measured.iter().filter(is_main)) {
            // Where test data are dealt to edge servers, models are compared by the mean over these.
            let of_servers = metric.id.over(Place::Servers, Statistic::Mean);
            let of_servers = [of_servers.last(), of_servers].into_iter().filter(|_| metric.id.place == Place::Test);
            let of = |id: MetricId| Self {
                key: format!("final.{id}"),
                words: format!("final {}", id.words()),
                unit: "",
                better: metric.better,
            };
            all.extend(of_servers.chain([metric.id]).map(of));
        }
        let meters = ["mean", "realised", "expected", "expected-exact", "counterfactual", "assignment"];
        let regret = |name: &str| lower(format!("regret.{name}"), format!("{name} regret"), "");
        all.extend(meters.iter().filter(|_| with_regret).map(|name| regret(name)));
        // Less time is better for the same number of rounds.
        if summary.runs.windows(2).all(|pair| pair[0].rounds == pair[1].rounds) {
            all.push(lower("virtual_time_s".to_owned(), "virtual time of the run".to_owned(), "s"));
        }
        all
    }

    /// A mean or a difference with its interval and unit.
    fn show(&self, value: &Estimate) -> String {
        format!("{}{}{}", show(value), if self.unit.is_empty() { "" } else { " " }, self.unit)
    }
}

/// The candidates that an experiment compares in a quantity: the points of a sweep, for each policy, or else the
/// policies.
struct Field {
    /// The beginning of its sentence.
    begin: String,
    names: Vec<String>,
    candidates: Vec<Sample>,
    /// Pairs to tell apart.
    pairs: Vec<(usize, usize)>,
    /// Policies that are left out since they are shown the truth, as the genie.
    knowing: Vec<(String, Sample)>,
}

fn fields(summary: &Summary, aim: &Aim) -> Vec<Field> {
    let mut labels: Vec<&str> = Vec::new();
    for arm in &summary.arms {
        if !labels.contains(&arm.arm.as_str()) {
            labels.push(&arm.arm);
        }
    }
    let values = |label: &str, point: usize| {
        let runs = summary.runs.iter().filter(|run| run.point == point && run.arm == label);
        Sample::of(&aim.key, &runs.map(|run| (run.seed, run)).collect())
    };
    if summary.points.len() <= 1 {
        let all: Vec<(String, Sample)> = labels.iter().map(|label| ((*label).to_owned(), values(label, 0))).collect();
        let is_regret = aim.key.starts_with("regret.");
        let is_left_out = |(label, sample): &(String, Sample)| is_regret && sees_truth(summary, label, sample);
        let (knowing, others): (Vec<_>, Vec<_>) = all.into_iter().partition(is_left_out);
        let (names, candidates): (Vec<_>, Vec<_>) = others.into_iter().unzip();
        let pairs = (0..names.len()).flat_map(|one| (0..one).map(move |other| (other, one))).collect();
        return vec![Field { begin: "best".to_owned(), names, candidates, pairs, knowing }];
    }
    let names = points::bare_names(&summary.points);
    let before = |point| summary.sweep.before(point).into_iter().map(move |(_, other)| (other, point));
    let neighbours: Vec<(usize, usize)> = (0..names.len()).flat_map(before).collect();
    let of_label = |label: &&str| Field {
        begin: if labels.len() == 1 { "best".to_owned() } else { format!("best for {label}") },
        candidates: (0..names.len()).map(|point| values(label, point)).collect(),
        names: names.clone(),
        pairs: neighbours.clone(),
        knowing: Vec::new(),
    };
    labels.iter().map(of_label).collect()
}

/// Whether a policy is shown the truth. In a folder without this field, a policy without any regret counts as one.
fn sees_truth(summary: &Summary, label: &str, regret: &Sample) -> bool {
    let said = summary.runs.iter().filter(|run| run.arm == label).find_map(|run| run.sees_truth);
    said.unwrap_or_else(|| regret.is_zero())
}

/// The questions of an experiment, those with a difference told apart first: its main quantity, and, where policies are
/// compared, the first measured regret.
pub fn questions(summary: &Summary) -> Vec<Aim> {
    let is_sweep = summary.points.len() > 1;
    let Some(main) = Aim::of(summary, !(is_sweep && summary.sweep.moves("regret"))) else { return Vec::new() };
    let is_there = |aim: &&Aim| summary.arms.iter().any(|arm| arm.values.contains_key(&aim.key));
    let all = Aim::all(summary, !is_sweep);
    let regret = all.iter().filter(|aim| aim.key.starts_with("regret.")).find(is_there).cloned();
    let regret = regret.filter(|regret| regret.key != main.key);
    let tells = |aim: &Aim| {
        let field = |field: &Field| rank(&field.candidates, aim.better);
        let others =
            fields(summary, aim).iter().filter_map(field).flat_map(|ranking| ranking.others).collect::<Vec<_>>();
        others.iter().any(|(_, difference)| is_told_apart(difference))
    };
    match regret {
        Some(regret) if !tells(&main) && tells(&regret) => vec![regret, main],
        regret => std::iter::once(main).chain(regret).collect(),
    }
}

/// The findings of an experiment, in lines for people: for each of its [`questions`] the best point of each policy's
/// sweep, or, without a sweep, the best policy; and the number of seeds that would tell apart the other candidates in
/// the first question. Empty if there is nothing to compare.
pub fn answers(summary: &Summary) -> Vec<String> {
    let (mut best, mut seeds) = (Vec::new(), Vec::new());
    let questions = questions(summary);
    for aim in &questions {
        for field in fields(summary, aim) {
            let Some((sentence, ranking)) = told(aim, &field) else { continue };
            best.push(format!("{sentence}{}", out_of_reach(summary, aim)));
            let by = if questions.len() > 1 { format!(", by {}", aim.words) } else { String::new() };
            seeds.extend(seeds_lines(&field, ranking.best).into_iter().map(|line| line + &by));
        }
    }
    best.append(&mut seeds);
    best
}

/// Targets left out of the ranking, since hardly any run reaches them.
fn out_of_reach(summary: &Summary, aim: &Aim) -> String {
    let targets: Vec<String> =
        summary.runs.first().into_iter().flat_map(|run| &run.reached).map(Reached::name).collect();
    if targets.is_empty() || aim.key.starts_with("time_to.") || aim.key.starts_with("regret.") {
        return String::new();
    }
    let reached = |target: &&String| {
        let of = |run: &RunSummary| run.reached.iter().any(|found| found.name() == **target && found.round.is_some());
        summary.runs.iter().filter(|run| of(run)).count()
    };
    let words = |target: &String| match reached(&target) {
        0 => format!("no run reaches {target}"),
        count => format!("{count} of {} runs reach {target}", summary.runs.len()),
    };
    format!("; {}", targets.iter().map(words).collect::<Vec<_>>().join(", "))
}

/// The best of some candidates in words.
fn told(aim: &Aim, Field { begin, names, candidates, knowing, .. }: &Field) -> Option<(String, Ranking)> {
    let ranking = rank(candidates, aim.better).filter(|_| candidates.len() > 1)?;
    let mut parts = vec![format!("{begin}: {} ({})", names[ranking.best], aim.show(&ranking.value))];
    let open: Vec<&(usize, Estimate)> = ranking.others.iter().filter(|(_, found)| !is_told_apart(found)).collect();
    let described =
        |(index, found): &(usize, Estimate)| format!("{} is not told apart ({})", names[*index], signed(aim, found));
    let (same, mut open): (Vec<_>, Vec<_>) = open.into_iter().partition(|(_, found)| is_same(found));
    // Those nearest to the best are named.
    open.sort_by(|(_, one), (_, other)| one.mean.abs().total_cmp(&other.mean.abs()));
    if ranking.value.n < INTERVAL_SEEDS && !ranking.others.is_empty() {
        let seeds = if ranking.value.n == 1 { "1 seed is" } else { "2 seeds are" };
        parts.push(format!("{seeds} too few to tell it from the others"));
    } else {
        parts.extend(same.iter().take(MOST_NAMED).map(|(index, _)| format!("{} is the same", names[*index])));
        parts.extend(open.iter().take(MOST_NAMED).map(described));
        let rest = same.len().saturating_sub(MOST_NAMED) + open.len().saturating_sub(MOST_NAMED);
        if rest > 0 {
            parts.push(format!("nor are {rest} more"));
        }
        let apart = ranking.others.len() - same.len() - open.len();
        if apart > 0 && apart < ranking.others.len() {
            parts.push(if apart == 1 {
                "1 other is told apart".to_owned()
            } else {
                format!("{apart} others are told apart")
            });
        }
        if same.is_empty() && open.is_empty() && !ranking.others.is_empty() {
            parts.push(match &ranking.others[..] {
                [(index, found)] => format!("{} is told apart ({})", names[*index], signed(aim, found)),
                others => {
                    let nearest = |(_, one): &&(usize, Estimate), (_, two): &&(usize, Estimate)| {
                        one.mean.abs().total_cmp(&two.mean.abs())
                    };
                    let nearest = others
                        .iter()
                        .min_by(nearest)
                        .map(|(index, found)| format!(", {} is next ({})", names[*index], signed(aim, found)));
                    let all = if others.len() == 2 { "both".to_owned() } else { format!("all {}", others.len()) };
                    format!("{all} others are told apart{}", nearest.unwrap_or_default())
                }
            });
        }
    }
    let most = ranking.value.n;
    let verb = if aim.key.starts_with("time_to.") { "gets there" } else { "has it" };
    let missing = |&(index, has): &(usize, usize)| format!("{} {verb} in {has} of {most} runs", names[index]);
    let (own, others): (Vec<_>, Vec<_>) = ranking.incomplete.iter().partition(|(index, _)| *index == ranking.best);
    parts.extend(own.into_iter().map(missing));
    match &others[..] {
        few @ ([] | [_] | [_, _]) => parts.extend(few.iter().copied().map(missing)),
        many => {
            let all = if aim.key.starts_with("time_to.") { "get there" } else { "have it" };
            parts.push(format!("{} others {all} in fewer than {most} runs", many.len()));
        }
    }
    let horizon = Sample::horizon(candidates);
    let of_knowing = |(name, sample): &(String, Sample)| {
        let value = sample.estimate(horizon).filter(|_| !sample.is_zero()).map(|value| aim.show(&value));
        format!("{name}, which sees the truth, has {}", value.unwrap_or_else(|| "none".to_owned()))
    };
    parts.extend(knowing.iter().map(of_knowing));
    let seeds = ranking.value.n;
    parts.push(format!("by {}, {seeds} seed{}", aim.words, if seeds == 1 { "" } else { "s" }));
    Some((parts.join("; "), ranking))
}

fn signed(aim: &Aim, found: &Estimate) -> String {
    format!("{}{}", if found.mean > 0.0 { "+" } else { "" }, aim.show(found))
}

/// How many seeds would tell pairs apart, those with the best first.
fn seeds_lines(Field { begin, names, candidates, pairs, .. }: &Field, best: usize) -> Vec<String> {
    let mut pairs = pairs.clone();
    let horizon = Sample::horizon(candidates);
    pairs.sort_by_key(|&(one, other)| one != best && other != best);
    let needed = |&(one, other): &(usize, usize)| {
        let needed = seeds_needed(&candidates[one].minus(&candidates[other], horizon)?)?;
        Some(format!("to tell {} from {}: about {} seeds", names[one], names[other], number(needed as f64)))
    };
    let all: Vec<String> = pairs.iter().filter_map(needed).collect();
    let whose = begin.strip_prefix("best").unwrap_or_default();
    let mut lines: Vec<String> = all.iter().take(MOST_NAMED).map(|line| format!("{line}{whose}")).collect();
    if all.len() > MOST_NAMED {
        lines.push(format!("… and {} more pairs that are not told apart{whose}", all.len() - MOST_NAMED));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seeds(values: &[f64]) -> Sample {
        Sample::of_numbers("x", (1..).zip(values.iter().copied()))
    }

    fn paired(one: &Sample, other: &Sample) -> Option<Estimate> {
        one.minus(other, f64::INFINITY)
    }

    /// Differences 2, 4, 6: mean 4, s = 2, t(0.975, 2) = 4.3026527, half-width 4.3026527·2/√3 = 4.9682754.
    #[test]
    fn pairs_are_formed_by_seed() {
        let one = seeds(&[12.0, 24.0, 36.0, 99.0]);
        let found = paired(&one, &seeds(&[10.0, 20.0, 30.0])).unwrap();
        assert_eq!((found.mean, found.n), (4.0, 3));
        assert!((found.half_width().unwrap() - 4.968_275_4).abs() < 1e-6);
        assert!(!is_told_apart(&found) && !is_same(&found));
        // 4.3 or 3.18 times 2/√n below 4: n = 4 gives 3.1824463·2/2 = 3.18.
        assert_eq!(seeds_needed(&found), Some(4));
        assert_eq!(paired(&one, &Sample::of_numbers("x", [(9, 1.0)])), None);
        // Three runs against four: Welch.
        let unpaired = one.minus_independent(&seeds(&[10.0, 20.0, 30.0]), f64::INFINITY);
        assert_eq!(unpaired.unwrap().mean, 42.75 - 20.0);
        let same = paired(&seeds(&[0.1 + 0.2, 1.0, 2.0]), &seeds(&[0.3, 1.0, 2.0])).unwrap();
        assert!(is_same(&same) && seeds_needed(&same).is_none(), "but for rounding");
    }

    #[test]
    fn the_best_has_all_seeds_and_of_equals_the_first_wins() {
        let all = [seeds(&[5.0, 6.0, 7.0]), seeds(&[1.0, 2.0]), seeds(&[4.0, 5.0, 6.0]), seeds(&[4.0, 5.0, 6.0])];
        let found = rank(&all, Better::Lower).unwrap();
        assert_eq!((found.best, found.value.mean), (2, 5.0));
        assert_eq!(
            found.others.iter().map(|(index, other)| (*index, other.mean)).collect::<Vec<_>>(),
            [(0, 1.0), (3, 0.0)]
        );
        assert_eq!(found.incomplete, [(1, 2)]);
        assert_eq!(rank(&all, Better::Higher).unwrap().best, 0);
        assert_eq!(rank(&[seeds(&[]), seeds(&[])], Better::Lower), None);
    }

    fn aim() -> Aim {
        Aim { key: "time_to.x".to_owned(), words: "virtual time to x".to_owned(), unit: "s", better: Better::Lower }
    }

    fn lines(candidates: &[Sample]) -> Vec<String> {
        let names: Vec<String> = (0..candidates.len()).map(|index| format!("{} s", 12 + 4 * index)).collect();
        let field = Field {
            begin: "best for random".to_owned(),
            pairs: (1..names.len()).map(|point| (point - 1, point)).collect(),
            names,
            candidates: candidates.to_vec(),
            knowing: Vec::new(),
        };
        let Some((sentence, ranking)) = told(&aim(), &field) else { return Vec::new() };
        std::iter::once(sentence).chain(seeds_lines(&field, ranking.best)).collect()
    }

    /// Of 20 s: mean 5, s = 1, half-width 4.3026527/√3 = 2.4841. 16 s minus 20 s: −1, 1, 3, mean 1, s = 2, half-width
    /// 4.968; 18 seeds would tell it (`values_needed_by_hand`). 24 s is 10 later in each run.
    #[test]
    fn a_sentence_names_the_best_and_what_is_not_told_apart() {
        let all = [seeds(&[9.0]), seeds(&[3.0, 6.0, 9.0]), seeds(&[4.0, 5.0, 6.0]), seeds(&[14.0, 15.0, 16.0])];
        assert_eq!(
            lines(&all),
            [
                "best for random: 20 s (5 ± 2.484 s); 16 s is not told apart (+1 ± 4.968 s); 1 other is told apart; 12 s gets there in 1 of 3 runs; by \
                 virtual time to x, 3 seeds",
                "to tell 16 s from 20 s: about 18 seeds for random",
            ]
        );
        assert_eq!(
            lines(&all[2..]),
            ["best for random: 12 s (5 ± 2.484 s); 16 s is told apart (+10 s); by virtual time to x, 3 seeds"]
        );
        // Of five that are not told apart, the four nearest to the best, in this order.
        let late = |by: f64| seeds(&[3.0 + by, 6.0 + by, 9.0 + by]);
        let many = [late(2.0), late(1.0), late(2.5), late(1.5), late(3.0), all[2].clone()];
        let found = &lines(&many)[0];
        let order: Vec<usize> = ["16 s is", "24 s is", "12 s is", "20 s is", "nor are 1 more"]
            .map(|part| found.find(part).unwrap_or_else(|| panic!("{part} in {found}")))
            .to_vec();
        assert!(order.is_sorted() && !found.contains("28 s"), "{found}");
        let same = [all[2].clone(), all[2].clone()];
        assert_eq!(
            lines(&same),
            ["best for random: 12 s (5 ± 2.484 s); 16 s is the same; by virtual time to x, 3 seeds"]
        );
        let few = [seeds(&[1.0, 2.0]), seeds(&[2.0, 2.0])];
        let words = "best for random: 12 s (1.500 s); 2 seeds are too few to tell it from the others; by virtual time to x, 2 seeds";
        assert_eq!(lines(&few), [words]);
        assert_eq!(lines(&all[..1]), [""; 0], "nothing to compare");
    }

    /// A world whose truth is known: equal points are told apart in at most 5 % of 1000 studies (two standard
    /// deviations of the binomial allowed: 6.4 %), and a true difference lies in its interval in 95 %.
    #[test]
    fn equal_points_are_rarely_told_apart() {
        // The generator SplitMix64.
        let mut state = 0_u64;
        let mut uniform = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
        };
        // Nearly normal: a sum of twelve uniforms.
        let mut normal = || (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
        let (mut apart, mut covered) = (0, 0);
        for _ in 0..1000 {
            let common: Vec<f64> = (0..5).map(|_| 100.0 * normal()).collect();
            let mut point = |truth: f64| -> Sample {
                seeds(&common.iter().map(|common| common + truth + normal()).collect::<Vec<_>>())
            };
            let found = rank(&[point(10.0), point(10.0)], Better::Lower).unwrap();
            apart += usize::from(is_told_apart(&found.others[0].1));
            let [low, high] = paired(&point(10.1), &point(10.0)).unwrap().ci95.unwrap();
            covered += usize::from(low <= 0.1 && 0.1 <= high);
        }
        assert!((30..=64).contains(&apart), "{apart} of 1000");
        assert!((936..=970).contains(&covered), "{covered} of 1000");
    }
}
