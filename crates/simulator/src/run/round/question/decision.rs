//! The checks of a decision: the selected clients, their weights and work, and the round's longest duration.

use super::{Asker, Question};
use crate::policy::{Policy, Selection};
use crate::run::error::RunError;
use fedgenie_core::id::ClientId;

impl Question<'_> {
    /// Checks a decision, and puts the places of a client that is drawn several times together.
    pub(super) fn check(&self, policy: &dyn Policy, selection: &mut Selection) -> Result<(), RunError> {
        self.check_weights(selection)?;
        self.check_clients(policy, selection)?;
        self.check_work(selection)?;
        self.check_deadline(selection)
    }

    /// Between `least` and `most` clients, all available, none twice; or nobody, if the policy declares that.
    fn check_clients(&self, policy: &dyn Policy, selection: &[ClientId]) -> Result<(), RunError> {
        let most = self.request().most;
        // Who can be chosen is listed only where that matters.
        let least = if selection.len() < self.least { self.least.min(self.candidates.list().len()) } else { 1 };
        let least = least.min(most);
        if selection.is_empty() && policy.can_be_empty() {
            return self.check_empty();
        }
        if selection.len() < least || selection.len() > most {
            let found = selection.len();
            let remedy = match selection.get(most) {
                Some(client) => format!("leave out {client} and those after it, or raise the protocol's most"),
                None => "select more of those available".to_owned(),
            };
            let what = format!("selected {found} clients; expected between {least} and {most}: {remedy}");
            return Err(self.refuse(what));
        }
        if selection.len() > 1 {
            let mut sorted = selection.to_vec();
            sorted.sort_unstable();
            if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
                return Err(self.refuse(format!("selected {} twice", pair[0])));
            }
        }
        match selection.iter().find(|&&client| !self.candidates.contains(client)) {
            Some(client) => Err(self.refuse(format!("selected {client}, which is not available"))),
            None => Ok(()),
        }
    }

    /// Nobody can be selected where rounds are, and regret is not metered.
    fn check_empty(&self) -> Result<(), RunError> {
        if !self.has_rounds {
            return Err(self.refuse(
                "selected nobody, and a server that asks clients one by one has no round to be empty; select a client, \
                 or take a protocol with rounds",
            ));
        }
        match self.meters_regret() {
            true => Err(self.refuse(
                "selected nobody, and regret is not defined of a round without clients; select a client, or take \
                 [regret] out",
            )),
            false => Ok(()),
        }
    }

    fn meters_regret(&self) -> bool {
        self.world.truth.is_some() || self.world.hindsight.is_some()
    }

    /// One for each selected client, finite, not all 0; after this, each client has one place.
    fn check_weights(&self, selection: &mut Selection) -> Result<(), RunError> {
        let (found, clients) = (selection.weights.len(), selection.len());
        if found == 0 {
            return Ok(());
        }
        if found != clients {
            let what = format!("gave {found} weights to {clients} clients; give one for each, or none");
            return Err(self.refuse(what));
        }
        if self.asker == Asker::Cloud {
            let client = selection[0];
            let what = format!(
                "gave edge server {} a weight, and the cloud weighs models by [aggregation]; leave weights out",
                client.0
            );
            return Err(self.refuse(what));
        }
        if !self.world.takes_weights() {
            let what = format!(
                "gave {} a weight, and updates are combined in a way that has no weights; leave weights out, or take plain \
                 averaging",
                selection[0]
            );
            return Err(self.refuse(what));
        }
        let of_sets = self.world.hindsight.as_ref().is_some_and(|hindsight| hindsight.utility.of_sets().is_some());
        if of_sets {
            let what = format!(
                "gave {} a weight, and [regret] counterfactual judges sets by [aggregation] weighting; leave weights \
                 out, or take counterfactual out",
                selection[0]
            );
            return Err(self.refuse(what));
        }
        let has_work = selection.work.len();
        if has_work != 0 && has_work != clients {
            return Err(self.refuse_work(has_work, clients));
        }
        if let Err(client) = selection.merge() {
            return Err(
                self.refuse(format!("gave {client} several jobs with different work; give it the same in each"))
            );
        }
        let weighed = || selection.iter().zip(&selection.weights);
        if let Some((client, weight)) = weighed().find(|(_, weight)| !weight.is_finite()) {
            return Err(self.refuse(format!("gave {client} the weight {weight}; weights are finite")));
        }
        if weighed().all(|(_, &weight)| weight == 0.0) {
            let client = selection[0];
            let what = format!("gave {client} and all others the weight 0; give a client another one");
            return Err(self.refuse(what));
        }
        Ok(())
    }

    fn refuse_work(&self, found: usize, clients: usize) -> RunError {
        self.refuse(format!("gave {found} numbers of epochs to {clients} clients; give one for each, or none"))
    }

    /// Whole epochs, between 1 and the most that the scenario allows; the usual ones where regret is metered.
    fn check_work(&self, selection: &Selection) -> Result<(), RunError> {
        let (found, clients) = (selection.work.len(), selection.len());
        if found == 0 {
            return Ok(());
        }
        if found != clients {
            return Err(self.refuse_work(found, clients));
        }
        let Some((most, usual)) = self.bounds.most_epochs.zip(self.bounds.epochs) else {
            let client = selection[0];
            let (whose, remedy) = match self.asker {
                Asker::Cloud => (format!("edge server {}", client.0), "edge servers do not train; leave work out"),
                Asker::Server | Asker::Edge(_) => (
                    client.to_string(),
                    "jobs are counted in steps, or differ from client to client; give [training] one number of epochs",
                ),
            };
            return Err(self.refuse(format!("gave {whose} {} epochs, and {remedy}", selection.work[0])));
        };
        let mut given = selection.iter().zip(&selection.work);
        if let Some((client, epochs)) = given.clone().find(|&(_, epochs)| !(1..=most).contains(epochs)) {
            let what = format!(
                "gave {client} {epochs} epochs; expected between 1 and {most}, or raise [training] most_epochs"
            );
            return Err(self.refuse(what));
        }
        match given.find(|&(_, &epochs)| epochs != usual).filter(|_| self.meters_regret()) {
            None => Ok(()),
            Some((client, epochs)) => Err(self.refuse(format!(
                "gave {client} {epochs} epochs, and regret compares jobs of {usual}; give {usual}, or take [regret] out"
            ))),
        }
    }

    /// Between the shortest and the longest that the scenario allows.
    fn check_deadline(&self, selection: &Selection) -> Result<(), RunError> {
        let Some(found) = selection.deadline else { return Ok(()) };
        let seconds = found.seconds();
        let whose = selection.first().map_or(String::new(), |client| format!(" for {client} and its round"));
        let Some((least, longest)) = self.bounds.deadline_least.zip(self.bounds.deadline) else {
            let what = format!(
                "chose a deadline of {seconds} s{whose}, and none may be chosen here; give [protocol.deadline] \
                 deadline_least, or leave it out"
            );
            return Err(self.refuse(what));
        };
        if (least..=longest).contains(&found) {
            return Ok(());
        }
        let (least, longest) = (least.seconds(), longest.seconds());
        Err(self.refuse(format!(
            "chose a deadline of {seconds} s{whose}; expected between {least} s and {longest} s, or change deadline_least \
             and deadline of [protocol.deadline]"
        )))
    }
}
