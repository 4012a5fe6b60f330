//! Edge servers and the data of their clients: the partition's, and data that move.

use super::{Change, WorldError, WorldPlan};
use crate::protocol::Rule;
use crate::task::Task;
use fedgenie_core::id::ClientId;
use fedgenie_learning::data::partition::two_level::clients_of;

impl WorldPlan {
    /// Checks that the partition deals to these edge servers, if it deals to servers.
    ///
    /// # Errors
    /// A complaint about the protocol.
    pub(super) fn check_servers(&self, rule: &Rule) -> Result<(), WorldError> {
        let servers = self.task.partition().and_then(|partition| Some((partition.kind(), partition.servers()?)));
        let (Some((kind, servers)), Rule::Hierarchical(rule)) = (servers, rule) else { return Ok(()) };
        let edges = rule.members.len();
        if edges != servers {
            let message =
                format!("found {edges}; the partition {kind} deals to servers = {servers}: give the same number");
            return Err(WorldError::scenario("protocol.hierarchical.edges", message));
        }
        let clients = rule.members.iter().map(Vec::len).sum();
        let are_its = |(server, members): (usize, &Vec<ClientId>)| {
            clients_of(server, servers, clients).eq(members.iter().map(|client| client.index()))
        };
        if !rule.members.iter().enumerate().all(are_its) {
            let message = format!(
                "gives edge servers other clients than the partition {kind} does, whose servers have the first clients, \
                 the next, and so on; take assign = \"blocks\""
            );
            return Err(WorldError::scenario("protocol.hierarchical.assign", message));
        }
        Ok(())
    }

    /// When data move, and the task with the data moved; `None` without a task.
    ///
    /// # Errors
    /// If there are no edge servers, or they have different numbers of clients.
    pub(super) fn drift(&self, rule: &Rule, task: Option<&dyn Task>) -> Result<Option<Change>, WorldError> {
        let Some(drift) = self.task.about().drift else { return Ok(None) };
        let path = format!("task.{}.drift", self.task.about().name);
        let Rule::Hierarchical(rule) = rule else {
            let message = "moves data between edge servers; take it out, or take [protocol.hierarchical]";
            return Err(WorldError::scenario(&path, message));
        };
        let sizes = rule.members.iter().map(Vec::len);
        let (least, most) = (sizes.clone().min().unwrap_or(0), sizes.max().unwrap_or(0));
        if least < most {
            let message = format!(
                "needs edge servers with equally many clients, whose data they exchange; found {least} to {most}"
            );
            return Err(WorldError::scenario(&path, message));
        }
        let Some(task) = task else { return Ok(None) };
        let mut sources: Vec<ClientId> = rule.members.concat();
        for (server, members) in rule.members.iter().enumerate() {
            let from = &rule.members[drift.source(server, rule.members.len())];
            members.iter().zip(from).for_each(|(client, source)| sources[client.index()] = *source);
        }
        let moved = task.dealt().and_then(|dealt| dealt.with_data_of(&sources));
        Ok(moved.map(|moved| Change::new(drift.round, moved, Some(drift))))
    }
}
