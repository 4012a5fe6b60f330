//! `[privacy.secure-aggregation]`: where sums of updates are all that a server needs.
//! [`fedgenie_learning::secure_aggregation`] has the definition.

use super::{World, WorldError, WorldPlan};
use crate::policy::Policy;
use crate::protocol::Rule;
use fedgenie_core::config::Complaint;
use fedgenie_learning::algorithm::Algorithm;
use fedgenie_learning::secure_aggregation::{LEAST, SecureAggregationConfig, part};
use fedgenie_learning::task::Task;

const SECTION: &str = "privacy.secure-aggregation";

impl WorldPlan {
    /// What sums cost, if sums are to be all that the server learns and are enough for the rest of the scenario.
    ///
    /// # Errors
    /// If they are not, or if rounds have fewer updates than hide each other.
    pub(super) fn secure_sums(
        &self,
        rule: &mut Rule,
        task: Option<&dyn Task>,
        algorithm: &Algorithm,
    ) -> Result<Option<SecureAggregationConfig>, WorldError> {
        let Some(config) = &self.secure else { return Ok(None) };
        let refuse = |message: String| Err(WorldError::scenario(SECTION, message));
        if let Some(entry) = algorithm.combined_by
            && !algorithm.combine.as_ref().is_some_and(|combine| combine.needs_sums_alone())
        {
            return refuse(format!(
                "shows the server sums alone, and [algorithm.{entry}] combines single updates; take one of the two out"
            ));
        }
        let has_tables = task.is_some_and(|task| task.layout().rows() > 0 || task.partial().is_some());
        let encodes = self.compression.as_ref().is_some_and(|compression| compression.up.is_some());
        let attacks = self.adversary.as_ref().is_some_and(|adversary| adversary.attack.changes_updates());
        let carries = matches!(&*rule, Rule::Rounds(rule) if rule.carry.is_some());
        let why = match () {
            () if matches!(&*rule, Rule::Buffered(_)) => {
                "sums updates of clients that are selected together, and buffered selects one by one; take another protocol"
            }
            () if carries => "sums updates of one round, and late ones would join another; write late = \"drop\"",
            () if self.outside.is_some() => {
                "shows the server sums alone, and the program's algorithm combines single updates; take the section out"
            }
            () if task.is_some_and(|task| task.combination().is_some()) => {
                "shows the server sums alone, and the task combines single updates; take the section out"
            }
            () if has_tables => {
                "sums whole updates, and this task has tables, of which clients send some rows; take the section out"
            }
            () if encodes => {
                "sums updates, and a sum of encoded updates cannot be decoded; take up of [compression] out"
            }
            () if self.privacy.is_some() && attacks => {
                "has clients clip themselves for [privacy.dp-fedavg], which hostile ones would not do; take one of the two out"
            }
            () if self.population.recorded.is_some() => {
                "makes jobs longer, and those of a log are replayed as they are; take one of the two out"
            }
            () => "",
        };
        if !why.is_empty() {
            return refuse(why.to_owned());
        }
        if let Err(found) = rule.need(LEAST) {
            return refuse(format!(
                "hides an update among others, and the protocol waits for {found}; ask more clients"
            ));
        }
        if let Err((ask, take)) = rule.need_share(config.threshold) {
            let least = part(config.threshold, ask as f64);
            return Err(WorldError::scenario(
                &format!("{SECTION}.threshold"),
                format!(
                    "found {}: of {ask} clients {least} have to answer, and the protocol waits for {take}; lower it",
                    config.threshold
                ),
            ));
        }
        Ok(Some(config.clone()))
    }
}

impl World {
    /// Refuses a policy that looks at single updates, where the server sees sums.
    pub(super) fn check_sums(&self, policy: &dyn Policy) -> Result<(), Complaint> {
        let wants = policy.wants();
        let what = match () {
            () if self.training.algorithm.secure.is_none() || policy.needs_sums_alone() => return Ok(()),
            () if policy.capabilities().subsets => "the quality of subsets of updates",
            () if wants.looks_at_updates() => "single updates",
            () if policy.wants_answer().is_some() => "what each update brings beside itself",
            () => return Ok(()),
        };
        let message = format!(
            "looks at {what}, and [{SECTION}] shows the server sums alone; take another policy, or the section out"
        );
        Err(Complaint::new("", message))
    }

    /// A warning about what a policy reads of single clients, where the server sees sums of updates.
    pub(crate) fn beside_sums(&self, policy: &dyn Policy) -> Option<String> {
        self.training.algorithm.secure.as_ref()?;
        let has_losses = policy.needs_losses() || policy.needs_batch_losses() || policy.wants().loss_rms;
        let reads = [
            ("losses", has_losses),
            ("answers of clients", policy.probes() && !has_losses && !policy.needs_sums_alone()),
            ("what clients declare of their data", policy.reads_declared_data()),
        ];
        let reads: Vec<&str> = reads.into_iter().filter(|(_, reads)| *reads).map(|(what, _)| what).collect();
        (!reads.is_empty()).then(|| {
            format!(
                "secure aggregation hides updates, and the policy decides by {}, which each client sends by itself",
                reads.join(" and ")
            )
        })
    }
}
