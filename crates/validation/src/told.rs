//! Fills explanations with the numbers of runs.

use super::because::{Among, Because, Number, Part};
use super::laboratory::{ClaimRuns, Context};
use super::levels::reached;
use super::statistic::{Look, sample, shown};
use fedgenie_experiment::error::Error;

/// An explanation with the numbers of the runs. `own` is what the check compares.
///
/// # Errors
/// If a scenario is wrong, a run fails, or a number names no policy, no control or no value of the scenario.
pub(super) fn told(because: &Because, own: Option<&Look>, context: &Context<'_>) -> Result<String, Error> {
    let told = |part: &Part| match part {
        Part::Words(words) => Ok(words.clone()),
        Part::Number(number) => told_number(number, own, context),
    };
    because.0.iter().map(told).collect()
}

fn told_number(number: &Number, own: Option<&Look>, context: &Context<'_>) -> Result<String, Error> {
    let explain = |error: Error| match error {
        Error::Usage(message) => Error::Usage(format!("because: {}: {message}", number.by)),
        other => other,
    };
    let (scenario, point) = place(number, own, context)?;
    let completed = context.runs(&scenario)?;
    let found = match number.among {
        Among::Mean => level(number, &completed, &Look::new(&scenario, point, &number.value)),
        Among::Least => over_runs(number, &completed, point, f64::min),
        Among::Most => over_runs(number, &completed, point, f64::max),
    };
    let scale = if number.in_percent { 100.0 } else { 1.0 };
    Ok(found.map_err(explain)?.map_or_else(|| "–".to_owned(), |found| shown(found * scale)))
}

fn place(number: &Number, own: Option<&Look>, context: &Context<'_>) -> Result<(String, usize), Error> {
    let mut scenarios = context.scenarios();
    match (&number.place, own, (scenarios.next(), scenarios.next())) {
        (Some(place), ..) => Ok(place.clone()),
        (None, Some(own), _) => Ok((own.scenario.clone(), own.point)),
        (None, None, (Some(only), None)) => Ok((only.to_owned(), 0)),
        _ => Err(Error::Usage(format!("because: {}: expected SCENARIO/ before it: the claim has several", number.by))),
    }
}

/// The mean; `None` if no run gets there.
fn level(number: &Number, completed: &ClaimRuns<'_>, look: &Look) -> Result<Option<f64>, Error> {
    let all = reached(completed, look)?;
    if let Some(found) = all.iter().find(|level| level.by == number.by) {
        return Ok(Some(found.mean));
    }
    // Refuses an unknown policy, control or value.
    if number.by.starts_with('(') {
        let known = all.iter().map(|level| level.by.as_str()).filter(|by| by.starts_with('('));
        let known = Some(known.collect::<Vec<_>>().join(", ")).filter(|known| !known.is_empty());
        let known = known.unwrap_or_else(|| "none".to_owned());
        return Err(Error::Usage(format!("there is no such control with {}; there are {known}", look.value)));
    }
    sample(&number.value, &completed.of(&number.by, look.point)?).map(|_| None)
}

/// The least or the largest; `None` if no run gets there, and no largest if one does not.
fn over_runs(
    number: &Number,
    completed: &ClaimRuns<'_>,
    point: usize,
    of: fn(f64, f64) -> f64,
) -> Result<Option<f64>, Error> {
    let runs = completed.of(&number.by, point)?;
    let known: Vec<f64> = runs.iter().filter_map(|run| run.number(&number.value)).collect();
    sample(&number.value, &runs)?;
    let is_complete = known.len() == runs.len() || number.among == Among::Least;
    Ok(known.into_iter().reduce(of).filter(|_| is_complete))
}
