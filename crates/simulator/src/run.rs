//! One run: one policy in one world, round by round.
//!
//! ```text
//! policy.select ─▶ dispatch ─▶ kernel: download ▸ compute ▸ upload ─▶ boundary: who arrived?
//!       ▲                                                                 │
//!       └── feedback ◀── evaluate ◀── aggregate ◀── train arrivals ◀──────┘
//! ```
//!
//! A run has three parts. The *engine* (room `timeline`) plays jobs on the kernel and records events; the *server*
//! (rooms `learning`, `meters`, `round`) has the global model and the measurements; the *protocol* (room `protocols`)
//! has the policies, dispatches jobs and decides when a round ends. A room imports from those before it.
//!
//! Training is lazy: an update depends on the model at dispatch, the client's data and the client's streams, never on
//! the clock. All updates that count are therefore trained in one batch at the boundary; lost jobs and late ones that
//! are called off are never trained, but their virtual time and traffic are accounted.
//!
//! *Classes of simultaneous events*: phases end first, then clients are lost, then timers ring. An update that arrives
//! at the instant of the deadline counts.

mod asked;
mod checkpoint;
mod controls;
mod error;
mod initial;
mod learning;
mod meters;
mod owned;
mod protocols;
mod results;
mod round;
#[cfg(test)]
mod tests;
mod timeline;

pub use crate::world::Metrics;
pub use asked::Heard;
pub use controls::Part;
pub use error::{Role, RunError};
pub use learning::{Trial, Tuned};
pub use meters::{End, Evaluations};
pub use owned::OwnedRun;
pub use round::RunSettings;
pub use timeline::Accounts;

use crate::policy::{Policies, Policy};
use crate::protocol::Rule;
use crate::recorder::Sink;
use crate::world::World;
use protocols::{Buffered, Hierarchy, Rounds};
use round::Server;
use timeline::Engine;

enum Protocol<'w> {
    Rounds(Box<Rounds<'w>>),
    Buffered(Box<Buffered<'w>>),
    Hierarchy(Box<Hierarchy<'w>>),
}

impl Protocol<'_> {
    /// The edge servers; empty where there is one server.
    fn scopes(&self) -> Vec<learning::ServerScope<'_>> {
        match self {
            Self::Rounds(_) | Self::Buffered(_) => Vec::new(),
            Self::Hierarchy(hierarchy) => hierarchy.scopes(),
        }
    }
}

/// A run in progress.
pub struct Run<'w> {
    engine: Engine<'w>,
    server: Server<'w>,
    protocol: Protocol<'w>,
    /// Where the caller makes selections.
    desk: Option<asked::SharedDesk>,
}

impl<'w> Run<'w> {
    /// A run before its first round. The sink's contents can be read after the run if it is passed as `&mut sink`.
    ///
    /// # Panics
    /// If the policies are not those of the world's protocol: one of the server, or one of each edge server.
    pub fn new(
        world: &'w World,
        label: &str,
        policies: impl Into<Policies>,
        settings: RunSettings,
        sink: impl Sink + 'w,
    ) -> Self {
        Self::begin(world, label, policies.into(), settings, Box::new(sink))
    }

    fn begin(
        world: &'w World,
        label: &str,
        policies: Policies,
        settings: RunSettings,
        sink: Box<dyn Sink + 'w>,
    ) -> Self {
        let asking: Vec<&dyn Policy> = match &policies {
            Policies::Server(policy) => vec![&**policy],
            Policies::Tiers { edges, .. } => edges.iter().map(|policy| &**policy).collect(),
        };
        let wanted = asking.iter().map(|policy| policy.wants().edge_accuracy).collect();
        let mut engine = Engine::new(world, sink);
        // Edge servers have no private mean.
        let ledger = asking.first().and_then(|policy| world.ledger(*policy));
        let mut server = Server::new(world, label, settings, ledger);
        engine.brings = asking.iter().map(|policy| server.sought(*policy).bytes()).collect();
        let protocol = match (&world.protocol.rule, policies) {
            (Rule::Rounds(rule), Policies::Server(policy)) => {
                Protocol::Rounds(Box::new(Rounds::new(world, rule, policy)))
            }
            (Rule::Buffered(rule), Policies::Server(policy)) => {
                Protocol::Buffered(Box::new(Buffered::new(world, rule, policy)))
            }
            (Rule::Hierarchical(rule), Policies::Tiers { edges, cloud }) => {
                Protocol::Hierarchy(Box::new(Hierarchy::new(world, rule, edges, cloud)))
            }
            _ => panic!("a run has the policies of its protocol"),
        };
        server.measure_accuracies(world, wanted);
        Self { engine, server, protocol, desk: None }
    }

    /// Plays one round: until the global model has changed, or would have. Where the budget does not pay for a round,
    /// none is played, and [`Run::is_spent`] says so.
    ///
    /// # Errors
    /// If the policy's choice breaks the rules, code from outside fails, the run is stopped, a law gives an impossible
    /// duration, no client can ever be chosen again, or records cannot be kept.
    pub fn step(&mut self) -> Result<(), RunError> {
        let Self { engine, server, protocol, desk: _ } = self;
        // Of the measurements before the first round.
        server.learning.as_ref().map_or(Ok(()), |learning| learning.check_work(server.round()))?;
        match protocol {
            Protocol::Rounds(rounds) => rounds.step(engine, server),
            Protocol::Buffered(buffered) => buffered.step(engine, server),
            Protocol::Hierarchy(hierarchy) => hierarchy.step(engine, server),
        }
    }
}
