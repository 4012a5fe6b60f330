//! CriticalFL: more clients at random while the norms of updates move, in critical learning periods.
//!
//! # Definition
//! `M` clients are drawn uniformly, `M` the cohort at first, and from then on
//!
//! | | `variant = "paper"` | `variant = "released"` |
//! |---|---|---|
//! | `F` of a round's updates | `Σ n_i·‖change_i‖²/Σ n_i` | the mean of `‖change_i‖²` |
//! | looks | before each selection, if a round with updates has closed since the last look | likewise, before each second selection (`t` even) |
//! | `N`, `O` | the last `F`; the one of the look before, at least 1e-7 | the mean of the last `window` looks, with zeros for those before the first; the same without the last look, at least 1e-7 |
//! | critical, if | `(N − O)/O ≥ delta`, or this is the first look | `(N − O)/O > delta`, or this is one of the first five looks |
//! | then | `M ← 2M` | `M ← 2M`, unless `M` has been `most` at a look |
//! | otherwise | `M ← max(⌊M/2⌋, cohort)` | `M ← max(M − max(⌊M/2⌋, 1), cohort)` |
//!
//! always at most `most`, the largest selection that the protocol allows. `M` does not depend on how many are there.
//!
//! # Inputs
//! Rounds that may have more clients than the cohort (`most`). Norms of the changes of updates; their examples.
//!
//! # Explanation
//! With `[record] explain = true`: `size` (`M`); `norm` (`F` of the last look) and `change` (`(N − O)/O`), `null`
//! before they are known; `critical`, 1 or 0, as the last look had it, `null` before. `clients` are the candidates.
//! `after`: `norm` (`‖change‖²`) of those selected, of the last update of each, `null` if there was none.
//!
//! # Source
//! G. Yan, H. Wang, X. Yuan, J. Li, "CriticalFL: A Critical Learning Periods Augmented Client Selection Framework for
//! Efficient Federated Learning", KDD 2023: the federated gradient norm, `delta = 0.01`; the program that its authors
//! released, `Util.py` and `Main.py` (`released`).
//!
//! # Deviations from the source
//! - It has the norms of gradients over the steps of a job, times the rate; here the change by the whole job stands for
//!   the sum of its steps. Only the ratio of norms counts.
//! - What counts at the first look of the paper's rule is open there; a critical period is expected at the beginning.
//! - The program grows to three quarters of all clients; here `most` says how far. Where the norms before are all 0,
//!   any growth is critical.
//! - In critical periods it also lets clients send the largest fifth of their change alone; here they send all.
//! - It augments other policies as well; here clients are drawn at random.
//!
//! # Cost
//! O(K) per round.
//!
//! # Determinism
//! Stream (policy, server, turn): a Fisher–Yates shuffle of the candidates, ascending, as far as it is needed. Sums
//! are added up by ascending id.

use super::random::draw_first;
use super::{
    BuildContext, Capabilities, Explanation, Feedback, Policy, PolicyRng, PolicySettings, Selection, SelectionRequest,
    ServerView, TrainingReport, Wants,
};
use fedgenie_core::config::{Complaint, check};
use fedgenie_core::failure::Failure;
use fedgenie_core::id::ClientId;
use fedgenie_core::state::Stateful;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Looks of the released program that are critical whatever they find.
const FIRST_LOOKS: u32 = 5;
/// The least norm that another is compared with.
const LEAST_NORM: f64 = 1e-7;

/// Parameters of `critical-fl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The variant's rules.
    #[serde(default)]
    pub variant: Variant,
    /// Relative growth of norms from which on a period is critical, at least 0.
    #[serde(default = "default_delta")]
    pub delta: f64,
    /// `released`: looks of a window, at least 1; 10 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<usize>,
}

/// The variant's rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Variant {
    /// One round against the one before.
    #[default]
    Paper,
    /// The program: windows of looks.
    Released,
}

const fn default_delta() -> f64 {
    0.01
}
const WINDOW: usize = 10;

impl Default for Config {
    fn default() -> Self {
        Self { variant: Variant::default(), delta: default_delta(), window: None }
    }
}

impl PolicySettings for Config {
    fn resolve(&mut self, _: super::Known<'_>) -> Result<(), Complaint> {
        match (self.variant, self.window) {
            (Variant::Released, None) => self.window = Some(WINDOW),
            (Variant::Paper, Some(_)) => {
                let message = "is of variant = \"released\"; take it out, or take that variant";
                return Err(Complaint::new("window", message));
            }
            _ => {}
        }
        Ok(())
    }

    fn build(&self, context: &BuildContext<'_>) -> Result<Box<dyn Policy>, Complaint> {
        let window = self.window.unwrap_or(WINDOW);
        if window == 0 {
            return Err(Complaint::new("window", "found 0; expected at least 1"));
        }
        if context.bounds.most <= context.cohort {
            let message = format!(
                "critical-fl selects more clients than the cohort ({}) in critical periods, and here at most {} may be; \
                 give the protocol a larger most, which rounds have, and the policy no cohort of its own",
                context.cohort, context.bounds.most
            );
            return Err(Complaint::new("", message));
        }
        Ok(Box::new(CriticalFl {
            variant: self.variant,
            delta: check("delta", self.delta, 0.0.., "a number of at least 0")?,
            window,
            cohort: context.cohort,
            most: context.bounds.most,
            size: context.cohort,
            looks: 0,
            history: vec![0.0; window + 1],
            round: Vec::new(),
            is_open: false,
            has_round: false,
            has_grown: false,
            last: None,
            norms: vec![f64::NAN; context.clients],
        }))
    }
}

#[derive(Stateful)]
#[state(check = Self::is_sound)]
struct CriticalFl {
    #[state(skip = "from the scenario")]
    variant: Variant,
    #[state(skip = "from the scenario")]
    delta: f64,
    #[state(skip = "from the scenario")]
    window: usize,
    /// The least M, and the largest.
    #[state(skip = "from the scenario")]
    cohort: usize,
    #[state(skip = "from the scenario")]
    most: usize,
    /// M.
    size: usize,
    looks: u32,
    /// F of the last looks, the latest one last, zeros before the first.
    #[state(each)]
    history: Vec<f64>,
    /// Examples and squared norm of each update of the last round that had any.
    round: Vec<(f64, f64)>,
    /// Whether more updates of that round are told.
    #[state(skip = "false between rounds")]
    is_open: bool,
    /// Whether that round has closed since the last look.
    has_round: bool,
    /// Whether `most` was reached at a look.
    has_grown: bool,
    /// Change and verdict of the last look.
    last: Option<(f64, bool)>,
    /// Squared norm of each client's last update; NaN if there was none.
    #[state(each)]
    norms: Vec<f64>,
}

impl CriticalFl {
    /// Whether the loaded size is possible.
    fn is_sound(&self) -> bool {
        self.size > 0
    }

    /// F of the last round's updates.
    fn norm(&self) -> f64 {
        let weight = |examples: f64| if self.variant == Variant::Paper { examples } else { 1.0 };
        let all: f64 = self.round.iter().map(|&(examples, _)| weight(examples)).sum();
        let sum: f64 = self.round.iter().map(|&(examples, norm)| weight(examples) * norm).sum();
        if all > 0.0 { sum / all } else { 0.0 }
    }

    /// Looks at the last round, and changes the size.
    fn look(&mut self) {
        self.has_round = false;
        self.looks = self.looks.saturating_add(1);
        let norm = self.norm();
        self.history.remove(0);
        self.history.push(norm);
        let mean = |norms: &[f64]| norms.iter().sum::<f64>() / norms.len() as f64;
        let (now, before) = match self.variant {
            Variant::Paper => (norm, self.history[self.window - 1]),
            Variant::Released => (mean(&self.history[1..]), mean(&self.history[..self.window])),
        };
        let change = (now - before) / before.max(LEAST_NORM);
        let is_critical = match self.variant {
            Variant::Paper => self.looks == 1 || change >= self.delta,
            Variant::Released => self.looks <= FIRST_LOOKS || change > self.delta,
        };
        self.last = Some((if self.looks == 1 { f64::NAN } else { change }, is_critical));
        self.has_grown |= self.size >= self.most;
        let may_grow = self.variant == Variant::Paper || !self.has_grown;
        let half = match self.variant {
            Variant::Paper => self.size / 2,
            Variant::Released => self.size - (self.size / 2).max(1),
        };
        match is_critical {
            true if may_grow => self.size = (2 * self.size).min(self.most),
            true => {}
            false => self.size = half.max(self.cohort),
        }
    }

    fn learn(&mut self, report: &TrainingReport<'_>) {
        let norm = report.norm.expect("wanted statistics of updates are told");
        if !std::mem::replace(&mut self.is_open, true) {
            self.round.clear();
        }
        if norm.is_finite() {
            self.norms[report.client.index()] = norm * norm;
            self.round.push((report.examples as f64, norm * norm));
        }
    }
}

impl Policy for CriticalFl {
    fn wants(&self) -> Wants {
        Wants { norm: true, ..Wants::default() }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { bounds: true, ..Capabilities::default() }
    }

    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        _: &ServerView<'_>,
        rng: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        let is_due = self.variant == Variant::Paper || ask.turn.0.is_multiple_of(2);
        if is_due && self.has_round {
            self.look();
        }
        let mut clients = ask.available.list().to_vec();
        draw_first(&mut clients, self.size.min(ask.most), rng.policy);
        selection.extend(clients);
        Ok(())
    }

    fn observe(&mut self, feedback: &Feedback<'_>) -> Result<(), Failure> {
        match feedback {
            Feedback::Trained(report) => self.learn(report),
            Feedback::Round(_) => self.has_round |= std::mem::take(&mut self.is_open),
            Feedback::Job(_) => {}
        }
        Ok(())
    }

    fn explain(
        &self,
        ask: &SelectionRequest<'_>,
        _: &ServerView<'_>,
        _: &[ClientId],
        explanation: &mut Explanation,
    ) -> Result<(), Failure> {
        let (change, critical) =
            self.last.map_or((f64::NAN, f64::NAN), |(change, is_critical)| (change, f64::from(u8::from(is_critical))));
        let norm = if self.looks > 0 { self.history[self.window] } else { f64::NAN };
        explanation.clients(ask.available.list().iter().copied());
        explanation.scalar("size", self.size as f64);
        explanation.scalar("norm", norm);
        explanation.scalar("change", change);
        explanation.scalar("critical", critical);
        Ok(())
    }

    fn explain_after(&self, clients: &[ClientId], explanation: &mut Explanation) -> Result<(), Failure> {
        explanation.clients(clients.iter().copied());
        explanation.array("norm", clients.iter().map(|client| self.norms[client.index()]));
        Ok(())
    }
}
