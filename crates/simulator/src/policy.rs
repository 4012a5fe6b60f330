//! Client-selection policies: one file each, all behind [`Policy`].
//!
//! A policy sees a server's knowledge ([`ServerView`]), returns a decision, and learns from [`Feedback`]; it never
//! changes anything itself. The runner checks every decision. Only a policy whose settings say so meets the knowledge
//! of the [genie](fedgenie_core::oracle::Genie).
//!
//! # Adding a policy
//! Write `policy/NAME.rs` with a `Config` (serde, JSON schema, defaults), its [`PolicySettings`] and the policy,
//! declare the module and add one line to [`PolicyConfig`] below. Scenario parser, `list`, `describe` and the JSON
//! schema follow from it.

mod actor_critic;
pub mod afl;
pub mod age;
mod answers;
mod bound;
pub mod bsfl;
mod building;
mod candidates;
mod capabilities;
pub mod clustered_sampling;
pub mod critical_fl;
pub mod cs_ucb;
pub mod cs_ucb_q;
pub mod delta;
pub mod divfl;
pub mod e3cs;
pub mod eafl;
mod explanation;
pub mod fedacs;
pub mod fedcor;
pub mod fedcs;
pub mod fedfast;
pub mod fedgst;
pub mod fedrl;
mod feedback;
pub mod flips;
pub mod genie;
pub mod gpfl;
pub mod haccs;
pub mod harmony_style;
pub mod hindsight;
mod k_means;
mod label_shares;
mod limited;
pub mod mab_frs;
mod means;
pub mod oort;
pub mod optimal_sampling;
pub mod pisces;
pub mod power_of_choice;
mod probe;
pub mod proxyrl;
pub mod pyramidfl;
pub mod random;
mod ranked;
pub mod rbcs_f;
pub mod recorded;
pub mod refl;
pub mod round_robin;
pub mod rpfl;
mod selection;
pub mod shapley;
pub mod thompson;
pub mod tifl;
pub mod ucb_cs;
mod view;

pub use answers::Answers;
pub use bound::{BoundWorld, RegretBound};
pub use building::{BuildContext, Devices, Known, PolicySettings};
pub use candidates::{Busy, Candidates};
pub(crate) use capabilities::tell_subsets;
pub use capabilities::{Bounds, Capabilities, Subsets};
pub use explanation::Explanation;
pub use feedback::{
    AccuracyOn, DeviationFrom, EdgeAccuracy, Feedback, JobReport, ModelQuality, RoundReport, TrainingReport, Waited,
    Wants,
};
pub(crate) use means::SampleMeans;
pub use probe::Probe;
pub use selection::Selection;
pub use view::{DeclaredDevice, SeenBatteries, SelectionRequest, ServerView};

/// `⌊x⌋` of `x ≥ 0`; a number just below a whole one, by rounding, counts as that one.
fn whole(x: f64) -> usize {
    floor(x + 1e-9) as usize
}

/// A duration in seconds, as a scenario writes it.
fn in_seconds(seconds: f64) -> Value {
    serde_json::json!(Amount::<Seconds>::new(seconds))
}

use fedgenie_core::components;
use fedgenie_core::config::Complaint;
use fedgenie_core::failure::Failure;
use fedgenie_core::id::ClientId;
use fedgenie_core::math::float::floor;
use fedgenie_core::rng::StreamRng;
use fedgenie_core::state::Stateful;
use fedgenie_core::units::{Amount, Seconds};
use fedgenie_learning::model::weights::Tensor;
use serde_json::Value;
use std::sync::Arc;

/// A client-selection policy.
///
/// A method with a `Result` may fail, for a reason of its own: the run ends, and keeps the reason. The others declare
/// facts, and are asked at any time.
///
/// Its state is its memory from selection to selection, which `#[derive(Stateful)]` saves: a new policy that loads a
/// saved state decides as the saved policy would.
pub trait Policy: Stateful + Send {
    /// Statistics of updates that it needs, beside their losses. The policy is refused before the run begins if the
    /// task lacks one of them, or something that [`Policy::probe_kinds`] or [`Policy::needs_losses`] requires.
    fn wants(&self) -> Wants {
        Wants::default()
    }

    /// Whether it may ask for a probe; a policy of the cloud may not, because edge servers give no answers.
    fn probes(&self) -> bool {
        false
    }

    /// Every kind that its [`Probe::Answers`] may name.
    fn probe_kinds(&self) -> &[&'static str] {
        &[]
    }

    /// Whether it is shown the truth: [`ServerView::genie`], [`ServerView::foreseen`]. By regret it is never the best.
    fn sees_truth(&self) -> bool {
        false
    }

    /// Probe whose answer every update carries: its client's, from the model that the client was sent. `None` if
    /// updates carry no answer.
    fn wants_answer(&self) -> Option<&'static str> {
        None
    }

    /// Whether sums over clients are enough for what it [wants](Policy::wants) of updates and asks of clients, so that
    /// no server has to see a single one's.
    fn needs_sums_alone(&self) -> bool {
        false
    }

    /// Knowledge that it needs beyond every server's. A policy that declares something its scenario does not give is
    /// refused before the run begins.
    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    /// Whether its selection may be empty: a round without a new model, which ends at once.
    fn can_be_empty(&self) -> bool {
        false
    }

    /// The probability with which it draws each available client by itself, whatever the others do and whatever it
    /// has learned; `None` if it does not.
    fn inclusion(&self) -> Option<f64> {
        None
    }

    /// Whether it decides by what clients declare of their data beside its amount: classes or features.
    fn reads_declared_data(&self) -> bool {
        false
    }

    /// Whether it decides by losses of clients, probed or reported with their updates.
    fn needs_losses(&self) -> bool {
        false
    }

    /// Whether it may ask for losses on mini-batches of clients' data, which not every task with losses has.
    fn needs_batch_losses(&self) -> bool {
        false
    }

    /// The probe that it needs before selecting; charged for. `rng` is the round's policy stream from its beginning,
    /// and `select` goes on where `probe` stopped.
    ///
    /// # Errors
    /// Whatever ends the run; so do those of the methods below.
    fn probe(
        &mut self,
        _ask: &SelectionRequest<'_>,
        _view: &ServerView<'_>,
        _rng: &mut StreamRng,
    ) -> Result<Probe, Failure> {
        Ok(Probe::None)
    }

    /// Largest size of the sets among which it needs the best one in hindsight before it selects; `None` if it needs
    /// none, as for every policy that does not [see the truth](Policy::sees_truth). Defined where a scenario meters the
    /// regret in hindsight of sets, in rounds of one server.
    ///
    /// # Errors
    /// Whatever ends the run.
    fn foresees(&self, _ask: &SelectionRequest<'_>) -> Result<Option<usize>, Failure> {
        Ok(None)
    }

    /// Decides: chooses at least one (or as many as a budget asks for, if so many are available) and at most `ask.most`
    /// available clients into the empty `selection`, in dispatch order, and sets the other parts open to it. Clients
    /// are distinct, unless they have weights.
    ///
    /// # Errors
    /// Whatever ends the run.
    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        view: &ServerView<'_>,
        rng: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure>;

    /// Learns. In each round of its server a policy is told, in this order: one [`Feedback::Job`] per job, in the order
    /// of arrival, missing ones last; one [`Feedback::Trained`] per update that is aggregated, ascending by client; one
    /// [`Feedback::Round`]. Under `buffered` a job is told as soon as it ends. A policy that chooses edge servers is
    /// told of no training. An edge server's policy is told nothing of a round that the cloud called off.
    ///
    /// # Errors
    /// Whatever ends the run.
    fn observe(&mut self, _feedback: &Feedback<'_>) -> Result<(), Failure> {
        Ok(())
    }

    /// Learns from averages of subsets of a round's updates, if its [capabilities](Capabilities) have that: told before
    /// the [`Feedback::Round`] of each round with updates.
    ///
    /// # Errors
    /// Whatever ends the run.
    fn judge(&mut self, _subsets: &Subsets<'_>) -> Result<(), Failure> {
        Ok(())
    }

    /// Learns the answer that came with an update, if [`Policy::wants_answer`] names one: told just before its
    /// [`Feedback::Trained`].
    ///
    /// # Errors
    /// Whatever ends the run.
    fn told_answer(&mut self, _client: ClientId, _kind: &'static str, _answer: &[f64]) -> Result<(), Failure> {
        Ok(())
    }

    /// Explains the selection just made, with the same question and view. Called only where the scenario records it.
    ///
    /// # Errors
    /// Whatever ends the run.
    fn explain(
        &self,
        _ask: &SelectionRequest<'_>,
        _view: &ServerView<'_>,
        _selection: &[ClientId],
        _explanation: &mut Explanation,
    ) -> Result<(), Failure> {
        Ok(())
    }

    /// Explains its knowledge of some clients after a round's feedback.
    ///
    /// # Errors
    /// Whatever ends the run.
    fn explain_after(&self, _clients: &[ClientId], _explanation: &mut Explanation) -> Result<(), Failure> {
        Ok(())
    }

    /// The weights of its networks, under their names in files; empty before its first selection.
    fn tensors(&self) -> Vec<Tensor> {
        Vec::new()
    }

    /// Values that it works out for parameters left open by its scenario, by key, in the scenario's form.
    fn effective(&self) -> Vec<(&'static str, Value)> {
        Vec::new()
    }

    /// A theorem's bound on its regret, if there is one in this world. Asked before the first round of one server's
    /// policy, where regret is metered; pages draw it, and a run that exceeds it warns.
    ///
    /// # Errors
    /// Whatever ends the run.
    fn bound(&self, _world: &BoundWorld<'_>) -> Result<Option<RegretBound>, Failure> {
        Ok(None)
    }

    /// A warning to the user about a finished run.
    fn warning(&self) -> Option<String> {
        None
    }
}

/// The two streams a selection may use: the policy's own and its solver's.
pub struct PolicyRng<'a> {
    /// For decisions.
    pub policy: &'a mut StreamRng,
    /// For heuristic solvers, apart from the decisions, so that changing a solver changes no other draw.
    pub solver: &'a mut StreamRng,
}

/// The policies of a run.
pub enum Policies {
    /// The policy of a single server.
    Server(Box<dyn Policy>),
    /// Policies under `hierarchical`.
    Tiers {
        /// The policy of each edge server.
        edges: Vec<Box<dyn Policy>>,
        /// The policy of the cloud, if one chooses among edge servers.
        cloud: Option<Box<dyn Policy>>,
    },
}

impl Policies {
    /// Whether any of them is [shown the truth](Policy::sees_truth).
    pub fn see_truth(&self) -> bool {
        match self {
            Self::Server(policy) => policy.sees_truth(),
            Self::Tiers { edges, cloud } => edges.iter().chain(cloud).any(|policy| policy.sees_truth()),
        }
    }
}

impl From<Box<dyn Policy>> for Policies {
    fn from(policy: Box<dyn Policy>) -> Self {
        Self::Server(policy)
    }
}

components! {
    /// A policy of a scenario: its kind and parameters.
    pub enum PolicyConfig: PolicySettings = "policy" {
        "random" => Random(random::Config) in "policy/random.rs";
        "recorded" => Recorded(recorded::Config) in "policy/recorded.rs";
        "round-robin" => RoundRobin(round_robin::Config) in "policy/round_robin.rs";
        "genie" => Genie(genie::Config) in "policy/genie.rs";
        "hindsight" => Hindsight(hindsight::Config) in "policy/hindsight.rs";
        "bsfl" => Bsfl(bsfl::Config) in "policy/bsfl.rs";
        "cs-ucb" => CsUcb(cs_ucb::Config) in "policy/cs_ucb.rs";
        "cs-ucb-q" => CsUcbQ(cs_ucb_q::Config) in "policy/cs_ucb_q.rs";
        "rbcs-f" => RbcsF(rbcs_f::Config) in "policy/rbcs_f.rs";
        "power-of-choice" => PowerOfChoice(power_of_choice::Config) in "policy/power_of_choice.rs";
        "mab-frs" => MabFrs(mab_frs::Config) in "policy/mab_frs.rs";
        "rpfl" => Rpfl(rpfl::Config) in "policy/rpfl.rs";
        "thompson" => Thompson(thompson::Config) in "policy/thompson.rs";
        "fedacs" => Fedacs(fedacs::Config) in "policy/fedacs.rs";
        "proxyrl" => Proxyrl(proxyrl::Config) in "policy/proxyrl.rs";
        "fedrl" => Fedrl(fedrl::Config) in "policy/fedrl.rs";
        "fedfast" => Fedfast(fedfast::Config) in "policy/fedfast.rs";
        "fedgst" => Fedgst(fedgst::Config) in "policy/fedgst.rs";
        "oort" => Oort(oort::Config) in "policy/oort.rs";
        "fedcs" => Fedcs(fedcs::Config) in "policy/fedcs.rs";
        "tifl" => Tifl(tifl::Config) in "policy/tifl.rs";
        "afl" => Afl(afl::Config) in "policy/afl.rs";
        "clustered-sampling" => ClusteredSampling(clustered_sampling::Config) in "policy/clustered_sampling.rs";
        "optimal-sampling" => OptimalSampling(optimal_sampling::Config) in "policy/optimal_sampling.rs";
        "refl" => Refl(refl::Config) in "policy/refl.rs";
        "e3cs" => E3cs(e3cs::Config) in "policy/e3cs.rs";
        "eafl" => Eafl(eafl::Config) in "policy/eafl.rs";
        "divfl" => Divfl(divfl::Config) in "policy/divfl.rs";
        "shapley" => Shapley(shapley::Config) in "policy/shapley.rs";
        "pyramidfl" => Pyramidfl(pyramidfl::Config) in "policy/pyramidfl.rs";
        "critical-fl" => CriticalFl(critical_fl::Config) in "policy/critical_fl.rs";
        "gpfl" => Gpfl(gpfl::Config) in "policy/gpfl.rs";
        "pisces" => Pisces(pisces::Config) in "policy/pisces.rs";
        "delta" => Delta(delta::Config) in "policy/delta.rs";
        "fedcor" => Fedcor(fedcor::Config) in "policy/fedcor.rs";
        "flips" => Flips(flips::Config) in "policy/flips.rs";
        "haccs" => Haccs(haccs::Config) in "policy/haccs.rs";
        "ucb-cs" => UcbCs(ucb_cs::Config) in "policy/ucb_cs.rs";
        "age" => Age(age::Config) in "policy/age.rs";
        "harmony-style" => HarmonyStyle(harmony_style::Config) in "policy/harmony_style.rs";
    }
}

impl PolicyConfig {
    /// See [`PolicySettings::resolve`].
    ///
    /// # Errors
    /// If a parameter has no default here.
    pub fn resolve(&mut self, known: Known<'_>) -> Result<(), Complaint> {
        self.settings_mut().resolve(known)
    }

    /// Makes the policy.
    ///
    /// # Errors
    /// If the parameters do not fit the scenario.
    pub fn build(&self, context: &BuildContext<'_>) -> Result<Box<dyn Policy>, Complaint> {
        self.settings().build(context)
    }

    /// Whether the policy is shown the truth.
    pub fn sees_truth(&self) -> bool {
        self.settings().sees_truth()
    }
}

/// Makes a policy for a server, from facts about the scenario.
pub type Factory = Arc<dyn Fn(&BuildContext<'_>) -> Result<Box<dyn Policy>, Complaint> + Send + Sync>;

/// A policy of a program.
#[derive(Clone)]
pub struct OutsidePolicy {
    /// The name of its kind in scenarios.
    pub kind: String,
    /// Its parameters, defaults written out.
    pub parameters: serde_json::Map<String, Value>,
    /// Makes it with these parameters.
    pub factory: Factory,
}

impl OutsidePolicy {
    /// A policy without parameters.
    pub fn new<F>(kind: &str, factory: F) -> Self
    where
        F: Fn(&BuildContext<'_>) -> Result<Box<dyn Policy>, Complaint> + Send + Sync + 'static,
    {
        Self { kind: kind.to_owned(), parameters: serde_json::Map::new(), factory: Arc::new(factory) }
    }
}

/// Where the policy of an arm comes from.
#[derive(Clone)]
pub enum PolicySource {
    /// A scenario: a policy of the catalogue.
    Scenario(PolicyConfig),
    /// A program that uses this library.
    Outside(OutsidePolicy),
    /// Another source's policy, limited to this many clients at once.
    Limited(Box<Self>, u32),
}

impl PolicySource {
    /// Makes the policy.
    ///
    /// # Errors
    /// If its parameters do not fit the scenario.
    pub fn build(&self, context: &BuildContext<'_>) -> Result<Box<dyn Policy>, Complaint> {
        match self {
            Self::Scenario(config) => config.build(context),
            Self::Outside(policy) => (policy.factory)(context),
            Self::Limited(source, most) => limited::build(source, *most as usize, context),
        }
    }

    /// Kind and parameters; `None` for a program's policy.
    pub fn config(&self) -> Option<&PolicyConfig> {
        match self {
            Self::Scenario(config) => Some(config),
            Self::Outside(_) => None,
            Self::Limited(source, _) => source.config(),
        }
    }
}

impl From<PolicyConfig> for PolicySource {
    fn from(config: PolicyConfig) -> Self {
        Self::Scenario(config)
    }
}

impl std::fmt::Debug for PolicySource {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Scenario(config) => config.fmt(formatter),
            Self::Outside(policy) => write!(formatter, "{} {:?}", policy.kind, policy.parameters),
            Self::Limited(source, most) => write!(formatter, "{source:?}, at most {most}"),
        }
    }
}
