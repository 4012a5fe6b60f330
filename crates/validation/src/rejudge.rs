//! Kept numbers, judged by their claims as these are written now.
//!
//! # Definition
//! Sentence, paper's value, table, bound, expected verdict and explanation of a check are those of the claim's file;
//! its numbers are kept ones of the same quantity, policies, scenario and point. Other statistics have to be written as
//! they were; in older results, which do not say how, the sentence has to be the same. What runs could not decide stays
//! not judged. The interval of a share of runs is made anew from the share and the number of runs; older results have
//! another, or none. An explanation with numbers of runs has to be the kept one, or its numbers are kept levels.
//!
//! Scenarios, their files, seeds, looks and `[learns]` have to be those of the runs ([`Claim::made_of`]).

use super::because::{Among, Because, Number, Part};
use super::claim::{Budget, Check, Claim};
use super::kept::{KeptCheck, KeptClaim};
use super::results::{Provenance, Row};
use super::statistic::{Look, Meaning, shown};
use super::verdict::Verdict;
use fedgenie_experiment::error::Error;
use fedgenie_experiment::experiment::estimate_of;

/// A kept number with its check.
type Known<'a> = (&'a KeptCheck, &'a Row);

impl KeptClaim {
    /// These numbers under the claim as it is now, judged at a commit on a date.
    ///
    /// # Errors
    /// If the claim asks for something that is not kept: then it has to be carried out.
    pub fn rejudged(&self, claim: &Claim, now: &Provenance) -> Result<Self, Error> {
        if self.made_of.as_ref().is_some_and(|made_of| *made_of != claim.made_of) {
            let what = "its scenarios, their files, seeds, looks or what [learns] asks are not those of the runs";
            return Err(claim.explain_whole(Error::Usage(format!("{what}; carry it out"))));
        }
        let check = |check: &Check| self.check(claim, check).map_err(|why| claim.explain(check, Error::Usage(why)));
        let judged = Self {
            title: claim.title.clone(),
            source: claim.source.clone(),
            paper: claim.paper.clone(),
            checks: claim.checks.iter().map(check).collect::<Result<_, Error>>()?,
            ..self.clone()
        };
        // Where nothing has changed nothing was judged again.
        Ok(if judged == *self { judged } else { Self { rejudged: Some(now.clone()), ..judged } })
    }

    fn check(&self, claim: &Claim, check: &Check) -> Result<KeptCheck, String> {
        let (meaning, looks) = (check.statistic.meaning(), check.statistic.looks());
        let is_said = |known: &Known<'_>| known.1.claim == check.claim;
        let is_measured = |known: &Known<'_>| match &known.0.measured {
            Some(measured) => *measured == check.measured,
            None => is_said(known),
        };
        let all: Vec<Known<'_>> = self.checks.iter().flat_map(|of| of.rows.iter().map(move |row| (of, row))).collect();
        let found: Vec<(String, Known<'_>)> = match &meaning {
            None => all.into_iter().filter(is_measured).map(|known| (known.1.label.clone(), known)).collect(),
            Some(meaning) => {
                let is_asked = |label: &&String| check.measure.is_empty() || check.measure.contains(label);
                let find = |label: &String| {
                    let is_it = |&(of, row): &Known<'_>| match &of.meaning {
                        Some(kept) if of.looks == looks => kept.is_like(meaning) && kept.policy(&row.label) == label,
                        // Older results say less of what they are.
                        _ if of.looks.is_empty() => row.claim == check.claim && meaning.policy(&row.label) == label,
                        None if of.looks == looks => meaning.policy(&row.label) == label,
                        _ => false,
                    };
                    let mut known: Vec<Known<'_>> = all.iter().copied().filter(is_it).collect();
                    if looks.is_empty() {
                        known.retain(is_measured);
                    } else if known.iter().any(is_said) {
                        known.retain(is_said);
                    }
                    match known[..] {
                        [first, ref others @ ..] if others.iter().all(|(_, row)| is_one(first.1, row)) => {
                            Ok((label.clone(), first))
                        }
                        _ => Err(format!("of {label} there is no such number, or several; carry it out")),
                    }
                };
                meaning.others().iter().filter(is_asked).map(find).collect::<Result<_, String>>()?
            }
        };
        if found.is_empty() {
            return Err("there is no such number; carry it out".to_owned());
        }
        let has_several = found.len() > 1;
        // What older results do not say they do not say now either.
        let says = found.iter().all(|(_, (of, _))| of.measured.is_some());
        // A share at another time, or less another number, has no level.
        let share = meaning.as_ref().filter(|_| !looks.is_empty()).and_then(Meaning::share);
        let row = |(label, (_, row)): &(String, Known<'_>)| {
            let row = share.map_or_else(|| Row::clone(row), |share| as_share(row, share));
            judged(check, &row, (label, has_several))
        };
        let rows = found.iter().map(row).collect::<Result<_, String>>()?;
        Ok(KeptCheck {
            item: check.item.clone().or_else(|| claim.item.clone()),
            because: self.because(claim, (check, &looks))?,
            measured: says.then(|| check.measured.clone()),
            meaning,
            looks,
            rows,
        })
    }

    /// The explanation: words alone, the kept one of the same words, or one whose numbers are all among the levels.
    fn because(&self, claim: &Claim, (check, looks): (&Check, &[Look])) -> Result<Option<String>, String> {
        let Some(because) = &check.because else { return Ok(None) };
        let mut kept = self.checks.iter().filter_map(|of| of.because.as_ref());
        if let Some(found) = kept.find(|text| is_told(because, text)) {
            return Ok(Some(found.clone()));
        }
        let own = match (looks.first(), claim.scenarios.keys().next()) {
            (Some(look), _) => Some((look.scenario.clone(), look.point)),
            (None, Some(only)) if claim.scenarios.len() == 1 => Some((only.clone(), 0)),
            _ => None,
        };
        let told = |part: &Part| match part {
            Part::Words(words) => Some(words.clone()),
            Part::Number(number) => self.level(number, own.as_ref()),
        };
        let text: Option<String> = because.0.iter().map(told).collect();
        text.map(Some).ok_or_else(|| "its explanation has numbers of runs that are not kept; carry it out".to_owned())
    }

    /// A number of an explanation that is one of the levels.
    fn level(&self, number: &Number, own: Option<&(String, usize)>) -> Option<String> {
        let (scenario, point) = number.place.as_ref().or(own).filter(|_| number.among == Among::Mean)?;
        let look = Look::new(scenario, *point, &number.value);
        let reached = &self.levels.iter().find(|level| level.look == look)?.reached;
        let scale = if number.in_percent { 100.0 } else { 1.0 };
        reached.iter().find(|reached| reached.by == number.by).map(|reached| shown(reached.mean * scale))
    }
}

/// Whether two rows have the same number.
fn is_one(one: &Row, other: &Row) -> bool {
    one.value.to_bits() == other.value.to_bits() && one.ci95 == other.ci95 && one.n == other.n
}

/// A share of runs with the interval that it has by its number of runs.
fn as_share(row: &Row, value: &str) -> Row {
    let arrived = row.value * row.n as f64;
    let runs: Vec<f64> = (0..row.n).map(|run| f64::from(run as f64 + 0.5 < arrived)).collect();
    let ci95 = estimate_of(value, &runs).and_then(|found| found.ci95);
    Row { ci95, student: None, ..row.clone() }
}

fn judged(check: &Check, row: &Row, (label, has_several): (&str, bool)) -> Result<Row, String> {
    let verdict = match (row.verdict, row.ci95) {
        (Verdict::NotJudged, _) if !check.learns => {
            return Err("it was not judged, and would be now; carry it out".to_owned());
        }
        (open @ Verdict::NotJudged, _) | (open @ Verdict::Undecided, None) => open,
        (_, interval) => check.holds.judge_beside(row.value, interval, row.none),
    };
    Ok(Row {
        claim: check.claim.clone(),
        label: if has_several { label.to_owned() } else { String::new() },
        paper: check.paper.clone(),
        rule: check.holds.to_string(),
        verdict,
        expected: check.expected(label, Budget::Full),
        holds: Some(check.holds),
        ..row.clone()
    })
}

/// Whether a text is an explanation with its numbers.
fn is_told(because: &Because, text: &str) -> bool {
    let words = |part: &Part| match part {
        Part::Words(words) => Some(words.clone()),
        Part::Number(_) => None,
    };
    // Words and numbers take turns, and words are first and last.
    let words: Vec<String> = because.0.iter().filter_map(words).collect();
    let [first, middle @ .., last] = &words[..] else { return words == [text] };
    let Some(mut rest) = text.strip_prefix(first.as_str()).and_then(|rest| rest.strip_suffix(last.as_str())) else {
        return false;
    };
    for words in middle {
        let Some((_, after)) = rest.split_once(words.as_str()) else { return false };
        rest = after;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Wilson's intervals of 1, 3 and none of 3: (k + z²/2 ± z √(k (n − k)/n + z²/4))/(n + z²) with z² = 3.8415.
    #[test]
    fn a_kept_share_has_the_interval_of_its_number_of_runs() {
        let row = |value: f64, ci95: Option<[f64; 2]>| Row {
            claim: "It arrives".to_owned(),
            label: String::new(),
            paper: None,
            rule: String::new(),
            value,
            ci95,
            n: 3,
            verdict: Verdict::Undecided,
            expected: None,
            holds: None,
            student: Some(crate::statistic::Student::OfValues),
            none: None,
            miss: None,
            note: None,
            is_smoke: false,
        };
        let kept = [(1.0 / 3.0, Some([-1.1, 1.77])), (1.0, None), (0.0, None)];
        for ((value, ci95), expected) in kept.into_iter().zip([[0.0615, 0.7923], [0.4385, 1.0], [0.0, 0.5615]]) {
            let found = as_share(&row(value, ci95), "reached.test_accuracy >= 0.5");
            let [low, high] = found.ci95.unwrap();
            assert!((low - expected[0]).abs() < 5e-5 && (high - expected[1]).abs() < 5e-5, "{value}: {low} to {high}");
            assert_eq!(found, Row { ci95: found.ci95, student: None, ..row(value, ci95) });
        }
    }

    #[test]
    fn an_explanation_is_known_by_its_words() {
        let because = Because::read("It ends at {a: final.x}, not {b: final.x}.").unwrap();
        assert!(is_told(&because, "It ends at 0.5, not 0.25."));
        for other in ["It ends at 0.5.", "It ends at 0.5, not 0.25. More", "So it ends at 0.5, not 0.25.", ""] {
            assert!(!is_told(&because, other), "{other}");
        }
        let last = Because::read("Up to {a: n}").unwrap();
        assert!(is_told(&last, "Up to 12") && !is_told(&last, "Down to 12"));
        let plain = Because::read("Nobody has.").unwrap();
        assert!(is_told(&plain, "Nobody has.") && !is_told(&plain, "Nobody has"));
    }
}
