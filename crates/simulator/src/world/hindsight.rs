//! Where a regret in hindsight is defined, and its unit of time.

use super::{Budget, WorldError};
use crate::population::Population;
use crate::protocol::Rule;
use fedgenie_core::id::ClientId;
use fedgenie_core::metric::{Measures, Place};
use fedgenie_core::oracle::hindsight::{Hindsight, HindsightPlan, SetSize};
use fedgenie_core::oracle::regret::subsets;
use fedgenie_core::oracle::utility::aggregate::TRAFFIC;
use fedgenie_core::time::Span;
use fedgenie_learning::task::Task;
use std::collections::BTreeMap;

/// The path of the keys.
const PATH: &str = "regret.counterfactual";

/// The meter, if it is defined here. `measures` are the task's, if clients learn anything that can be judged.
pub(super) fn define(
    plan: &HindsightPlan,
    population: &Population,
    rule: &Rule,
    (measures, task): (Option<&Measures>, Option<&dyn Task>),
    budget: Budget,
) -> Result<Hindsight, WorldError> {
    if let Some(message) = undefined(population, rule, measures.is_some()) {
        return Err(WorldError::scenario(PATH, message));
    }
    let HindsightPlan { utility, kappa, size, every, .. } = plan.clone();
    let has_loss = measures.is_some_and(|measures| measures.loss().is_some());
    if utility.needs_loss() && !has_loss {
        let message = "loss-drop, which is the default, compares losses, and this task measures none; take \
                       { contribution = {} }, or a metric: { aggregate = { test_auc = 1.0 } }";
        return Err(WorldError::scenario("regret.utility", message));
    }
    if let Some(name) = utility.of_answers() {
        let kind = task.and_then(|task| task.probe_kinds().iter().find(|kind| kind.name == name));
        if !kind.map_or(task.is_some_and(|task| task.describe().has_losses), |kind| kind.numbers == 1) {
            let message = format!(
                "adds up clients' answers to {name:?}, or else their losses, and the clients \
                 of this task know neither; take a metric: {{ aggregate = {{ test_auc = 1.0 }} }}"
            );
            return Err(WorldError::scenario("regret.utility", message));
        }
    }
    if let Some(weights) = utility.of_sets() {
        check_metrics(weights, measures)?;
        // If jobs cost different amounts, the cost of a set does not follow from its size.
        let is_alike = weighs(weights).is_none() || task.is_some_and(|task| task.partial().is_none());
        let is_summed = direction(weights).is_some()
            && task.and_then(Task::script).is_some_and(|script| script.adds(ClientId(0)).is_some());
        let is_sorted = is_alike && is_summed;
        let servers = match rule {
            _ if is_sorted => Vec::new(),
            Rule::Rounds(rule) => vec![(population.len(), rule.ask)],
            Rule::Buffered(_) => vec![(population.len(), 1)],
            Rule::Hierarchical(rule) => {
                rule.members.iter().zip(&rule.edge).map(|(members, rule)| (members.len(), rule.ask)).collect()
            }
        };
        servers
            .into_iter()
            .try_for_each(|(clients, ask)| check_sets(clients, ask.min(clients), (size, budget.least)))?;
    }
    let t_semi = match plan.t_semi {
        Some(t_semi) => t_semi,
        // Without a price of time its unit does not matter.
        None if kappa == 0.0 => Span(1_000_000_000),
        None => usual_latency(population)?,
    };
    let traffic = utility.of_sets().and_then(weighs).map(|weight| priced(weight, budget)).transpose()?;
    Ok(Hindsight { utility, kappa, t_semi, size, every, least: budget.least, traffic })
}

/// The weight of a set's bytes, if they have one.
fn weighs(weights: &BTreeMap<String, f64>) -> Option<f64> {
    weights.get(TRAFFIC).copied().filter(|weight| *weight != 0.0)
}

/// The weight, and the budget that bytes are a share of.
fn priced(weight: f64, budget: Budget) -> Result<(f64, u64), WorldError> {
    let path = format!("regret.utility.aggregate.{TRAFFIC}");
    let message = "is the weight of a set's bytes as a share of the budget, and there is none; give traffic or \
                   full_rounds of [budget], or take it out";
    budget.bytes.map(|bytes| (weight, bytes)).ok_or_else(|| WorldError::scenario(&path, message))
}

/// Most sets that are enumerated in a round.
const MOST_SETS: u64 = 20_000;

/// Refuses more sets than can be enumerated.
fn check_sets(clients: usize, cohort: usize, (size, least): (SetSize, usize)) -> Result<(), WorldError> {
    let sets = match size {
        SetSize::Exactly => subsets(clients, cohort),
        // Fewer clients may be available than the fewest of a round.
        SetSize::AtMost => {
            (least.min(cohort)..=cohort).fold(0, |sum: u64, size| sum.saturating_add(subsets(clients, size)))
        }
    };
    if sets <= MOST_SETS {
        return Ok(());
    }
    let message = format!(
        "a round of {clients} clients has {sets} sets to aggregate and evaluate; expected at most {MOST_SETS}: take fewer \
         clients, a smaller cohort, or a utility that is a sum"
    );
    Err(WorldError::scenario("regret.utility.aggregate", message))
}

/// The common sign of all metrics' weights: whether more of each is better, or less. `None` if metrics do not matter.
pub(crate) fn direction(weights: &BTreeMap<String, f64>) -> Option<f64> {
    let of_metrics = || weights.iter().filter(|(name, _)| *name != TRAFFIC).map(|(_, weight)| weight);
    let all = |is_such: fn(&f64) -> bool| of_metrics().all(is_such);
    if all(|weight| *weight == 0.0) {
        return None;
    }
    match (all(|weight| *weight >= 0.0), all(|weight| *weight <= 0.0)) {
        (true, _) => Some(1.0),
        (false, true) => Some(-1.0),
        (false, false) => None,
    }
}

/// Refuses metrics that a set does not have.
fn check_metrics(weights: &BTreeMap<String, f64>, measures: Option<&Measures>) -> Result<(), WorldError> {
    let metrics = measures.map_or_else(Vec::new, |measures| measures.metrics(&[]));
    let mut names: Vec<String> = metrics.into_iter().map(|metric| metric.id.to_string()).collect();
    let of_data = measures.iter().flat_map(|measures| &measures.of_data);
    names.extend(of_data.map(|measure| measure.at(Place::Servers).to_string()));
    if names.iter().any(|name| name == TRAFFIC) && weights.contains_key(TRAFFIC) {
        let message = "is a metric of the task, and is the weight of a set's bytes here; give the metric another name";
        return Err(WorldError::scenario(&format!("regret.utility.aggregate.{TRAFFIC}"), message));
    }
    let is_unknown = |name: &&String| !names.contains(name) && *name != TRAFFIC;
    let Some(name) = weights.keys().find(is_unknown) else { return Ok(()) };
    let message = format!("is no metric of a set here; there are {}", names.join(", "));
    Err(WorldError::scenario(&format!("regret.utility.aggregate.{name}"), message))
}

/// Why it is not defined; `None` if it is.
fn undefined(population: &Population, rule: &Rule, trains: bool) -> Option<&'static str> {
    if !trains {
        return Some("compares updates of clients, and this task does not train; take it out");
    }
    if population.has_traced_links() || population.has_interruptions() {
        return Some(
            "is not defined where links follow a trace or clients go away in the middle of their jobs, so that a latency \
             depends on when the job begins; give downlink and uplink as rates and interrupted = \"run-on\", or take it out",
        );
    }
    if !population.batteries().is_empty() {
        return Some(
            "is not defined where clients have batteries, which run empty in the middle of jobs, so that who answers depends \
             on when a job begins; leave population.battery out, or take it out",
        );
    }
    let rule = match rule {
        Rule::Rounds(rule) => rule,
        // Edge servers' rules are equal in everything that matters here.
        Rule::Hierarchical(rule) => &rule.edge[0],
        // Clients are asked one by one.
        Rule::Buffered(_) => return None,
    };
    if rule.take < rule.ask {
        return Some(
            "is not defined where fewer updates are waited for than clients are asked: which updates count depends on the \
             other clients; take as many as you ask, or take it out",
        );
    }
    if rule.carry.is_some() {
        return Some(
            "is not defined where late updates join a later round, where their value is unknown; give \
             late = \"drop\", or take it out",
        );
    }
    if rule.quorum > 0 {
        return Some(
            "is not defined where rounds of few updates are abandoned (by a quorum, secure aggregation, or a combination \
             that needs so many): an update's value would depend on how many others arrive; take one of the two out",
        );
    }
    None
}

/// [`Population::usual_latency`], if it is a unit of time.
fn usual_latency(population: &Population) -> Result<Span, WorldError> {
    let seconds = population.usual_latency();
    match Span::from_seconds(seconds) {
        Ok(span) if span > Span::ZERO => Ok(span),
        _ => {
            let message = format!(
                "is missing, and the 80th percentile of the clients' mean latencies, {seconds} s, is no unit of time; write \
                 for example t_semi = \"1 s\""
            );
            Err(WorldError::scenario("regret.t_semi", message))
        }
    }
}
