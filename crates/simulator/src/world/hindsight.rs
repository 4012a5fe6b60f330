//! Where a regret in hindsight is defined, and its unit of time.

use super::WorldError;
use crate::population::Population;
use crate::protocol::Rule;
use fedgenie_core::id::ClientId;
use fedgenie_core::law::Law;
use fedgenie_core::oracle::hindsight::{Hindsight, HindsightPlan};
use fedgenie_core::record::Phase;
use fedgenie_core::time::Span;

/// Where the keys are.
const PATH: &str = "regret.counterfactual";

/// What is metered, if that is defined here. `trains` says whether clients learn anything.
pub(super) fn define(
    plan: &HindsightPlan,
    population: &Population,
    rule: &Rule,
    trains: bool,
) -> Result<Hindsight, WorldError> {
    if let Some(message) = undefined(population, rule, trains) {
        return Err(WorldError::scenario(PATH, message));
    }
    let t_semi = match plan.t_semi {
        Some(t_semi) => t_semi,
        None => usual_latency(population)?,
    };
    Ok(Hindsight { utility: plan.utility, kappa: plan.kappa, t_semi })
}

/// Why it is not defined, if it is not.
fn undefined(population: &Population, rule: &Rule, trains: bool) -> Option<&'static str> {
    let Rule::Rounds(rule) = rule else {
        return Some("is defined for rounds of one server only; take it out, or take another protocol");
    };
    if !trains {
        return Some("compares what clients would have learned, and this task does not train; take it out");
    }
    if rule.take < rule.ask {
        return Some(
            "is not defined where fewer updates are waited for than clients are asked: which updates count depends on who else \
             is asked; take as many as you ask, or take it out",
        );
    }
    if rule.carry.is_some() {
        return Some(
            "is not defined where late updates join a later round, for which nobody knows what they are worth; give \
             late = \"drop\", or take it out",
        );
    }
    if rule.quorum > 0 {
        return Some(
            "is not defined with a quorum: what an update is worth would depend on how many others arrive; take one of the \
             two out",
        );
    }
    if population.has_traced_links() || population.has_interruptions() {
        return Some(
            "is not defined where links follow a trace or clients go away in the middle of their jobs, so that a latency \
             depends on when the job begins; give downlink and uplink as rates and interrupted = \"run-on\", or take it out",
        );
    }
    None
}

/// The 80th percentile, by nearest rank, over clients of the sum of their phases' mean durations.
fn usual_latency(population: &Population) -> Result<Span, WorldError> {
    let mean = |client| Phase::ALL.into_iter().map(|phase| population.law(client, phase).mean()).sum();
    let mut means: Vec<f64> = (0..population.len()).map(ClientId::from_index).map(mean).collect();
    means.sort_unstable_by(f64::total_cmp);
    let seconds = means[(4 * means.len()).div_ceil(5) - 1];
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
