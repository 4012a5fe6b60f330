//! What a deployment knows, and the refusal of policies that need more.

use super::Wishes;
use fedgenie::config::Complaint;
use fedgenie::error::Error;
use fedgenie::id::ClientId;
use fedgenie::policy::{
    Bounds, BuildContext, Capabilities, DeclaredDevice, Devices, Policy, PolicyConfig, PolicySource, Wants,
};
use fedgenie::time::Span;
use std::sync::{Mutex, PoisonError};

/// The knowledge of a deployment.
pub struct Offers<'a> {
    wishes: &'a Wishes,
    deadline: Option<Span>,
}

/// Declarations of clients, and what was asked of them that nobody knows.
#[derive(Debug)]
struct Declared<'a> {
    devices: Option<&'a [(f64, f64)]>,
    asked: Mutex<Vec<&'static str>>,
}

impl Declared<'_> {
    /// Remembers a question without an answer.
    fn unknown<T>(&self, what: &'static str, stand_in: T) -> T {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).push(what);
        stand_in
    }
}

impl Devices for Declared<'_> {
    fn declared(&self, client: ClientId) -> DeclaredDevice {
        match self.devices {
            Some(devices) => {
                let (compute_seconds, transfer_seconds) = devices[client.index()];
                DeclaredDevice { compute_seconds, transfer_seconds }
            }
            None => self.unknown(
                "what clients declare of their devices; give declared = a pair of seconds, computing and transfer, for \
                 each client",
                DeclaredDevice::default(),
            ),
        }
    }

    // A deployment has no laws of latencies. The stand-in is not used: the policy is refused.
    fn slowest_latency(&self, _: f64) -> f64 {
        self.unknown("a quantile of the latency of the slowest client; give the parameter as a duration", 1.0)
    }

    fn usual_latency(&self) -> f64 {
        self.unknown("the usual latency of clients; give the parameter as a duration", 1.0)
    }
}

const TRUTH: &str = "sees the truth, which nobody knows in a deployment; take a policy that learns";

/// Refuses a kind of the catalogue that sees the truth, before its scenario asks for the settings that show it.
pub fn refuse_truth(kind: &str) -> Result<(), Error> {
    let found = serde_json::from_value::<PolicyConfig>(serde_json::json!({ kind: {} }));
    match found.is_ok_and(|config| config.sees_truth()) {
        true => Err(Error::Usage(format!("policy {kind}: {TRUTH}"))),
        false => Ok(()),
    }
}

impl<'a> Offers<'a> {
    pub const fn new(wishes: &'a Wishes, deadline: Option<Span>) -> Self {
        Self { wishes, deadline }
    }

    /// The bounds of decisions: a deployment leaves size, waiting and work as they are.
    pub fn bounds(&self) -> Bounds {
        Bounds { deadline: self.deadline, ..Bounds::of_size(self.wishes.cohort) }
    }

    /// Makes a policy, unless it needs what a deployment does not know.
    pub fn build(&self, source: &PolicySource, explain: impl Fn(Complaint) -> Error) -> Result<Box<dyn Policy>, Error> {
        let refuse = |what: &str| Error::Usage(format!("policy {}: {what}", self.wishes.label));
        let devices = Declared { devices: self.wishes.declared.as_deref(), asked: Mutex::new(Vec::new()) };
        let built = source.build(&self.context(&devices));
        if let Some(what) = devices.asked.lock().unwrap_or_else(PoisonError::into_inner).first() {
            return Err(refuse(&format!("asks for {what}")));
        }
        let policy = built.map_err(explain)?;
        if policy.sees_truth() {
            return Err(refuse(TRUTH));
        }
        match self.lacking(&*policy) {
            Some(what) => Err(refuse(&what)),
            None => Ok(policy),
        }
    }

    fn context<'b>(&'b self, devices: &'b dyn Devices) -> BuildContext<'b> {
        let clients = self.wishes.data_sizes.len();
        BuildContext {
            seed: self.wishes.seed,
            clients,
            among: clients,
            cohort: self.wishes.cohort,
            take: self.wishes.cohort,
            per_model: self.wishes.cohort,
            bounds: self.bounds(),
            data_sizes: &self.wishes.data_sizes,
            in_rounds: true,
            trains: self.wishes.reports_loss,
            probes: &[],
            devices,
            metrics: &[],
            evaluates_every_round: false,
            budget: None,
            least: 1,
            has_empty_rounds: false,
        }
    }

    /// What a policy needs that is not there.
    fn lacking(&self, policy: &dyn Policy) -> Option<String> {
        let Wants { loss_rms, quality, deviation: _, norm: _, update: _, change: _, model_quality, edge_accuracy } =
            policy.wants();
        let Capabilities { layout, bounds: _, subsets, forecast, level } = policy.capabilities();
        let Wishes { reports_loss, reports_loss_rms, .. } = self.wishes;
        if policy.needs_losses() && !reports_loss {
            return Some("compares losses of clients; name the metric that clients report as their loss".to_owned());
        }
        if loss_rms && !reports_loss_rms {
            let what = "wants the root mean square of the losses of single examples; name the metric that clients report \
                        as loss_rms";
            return Some(what.to_owned());
        }
        let lacking = [
            (quality, "the quality of each update"),
            (model_quality || edge_accuracy.is_some(), "the quality of models before and after each round"),
            (layout, "the layout of the model"),
            (subsets, "the quality of subsets of updates"),
            (forecast, "forecasts of availability"),
            (level, "levels of batteries"),
        ];
        let asked = policy.wants_answer().map(|kind| format!("answers to {kind:?} with updates"));
        let what = lacking.into_iter().find(|(needs, _)| *needs).map(|(_, what)| what.to_owned()).or(asked)?;
        Some(format!("needs {what}, which a deployment does not know; take another policy"))
    }
}
