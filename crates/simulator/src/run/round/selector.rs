//! A server's policy at work: its probe, the clients' answers, its selection.
//!
//! A selection has three steps, with time between the second and the third: [`Selector::probe`] returns the policy's
//! probe, [`Selector::ask_clients`] carries that out, [`Selector::select`] lets the policy choose.

use super::blamed::{Blamed, Of};
use super::probe::{Answered, Asking, Pending, carry_out};
use super::question::{Asker, Question, SelectionStreams};
use super::server::{Server, numbered};
use crate::policy::{Bounds, Policy, PolicyRng, Probe, SeenBatteries, Selection, SelectionRequest, ServerView};
use crate::population::Forecaster;
use crate::run::error::RunError;
use crate::run::timeline::{Engine, THE_SERVER};
use crate::world::World;
use fedgenie_core::id::{ClientId, EdgeId, Round, Turn};
use fedgenie_core::oracle::reward::Reward;
use fedgenie_core::state::{State, Stateful};
use fedgenie_core::time::VirtualTime;
use std::sync::Arc;

/// Bounds of a selection.
#[derive(Clone, Copy, Debug)]
pub(in crate::run) struct Limits {
    /// The server's round under way.
    pub round: Round,
    /// The fewest clients, where so many can be chosen.
    pub least: usize,
    /// The usual number of clients.
    pub cohort: usize,
    /// The largest.
    pub most: usize,
    pub take: usize,
    pub bounds: Bounds,
    /// Whether clients are selected for rounds, and not one by one.
    pub has_rounds: bool,
    /// Whether its updates may meet those of other selections in one aggregation.
    pub mixes: bool,
}

/// Knowledge of a policy that depends on the protocol.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::run) struct Known<'a> {
    /// Each client's share of its server's data, where that is not its share of all data.
    pub shares: Option<&'a [f64]>,
    pub gains: Option<(&'a Reward, &'a [f64])>,
    /// The best set in hindsight, and its value.
    pub foreseen: Option<(&'a [ClientId], f64)>,
}

/// The policy of a server that selects clients, and its selection under way.
pub(in crate::run) struct Selector<'w> {
    world: &'w World,
    asker: Asker,
    pub policy: Box<dyn Policy>,
    /// The policy's last selection.
    pub turn: Turn,
    /// Answers to the policy's questions about availability, if it asks any.
    forecaster: Option<Forecaster<'w>>,
    /// The selection that waits for answers, or for a client that can be chosen.
    pub asked: Option<Pending>,
}

impl Stateful for Selector<'_> {
    fn exchange(&mut self, state: &mut State<'_>) {
        let Self { world, asker, policy, turn, forecaster: _, asked } = self;
        let of = Of::Policy(*asker);
        state.field_of(&mut **policy, |source| Blamed { of, source }.into());
        state.field(turn);
        let mut is_asked = asked.is_some();
        state.field(&mut is_asked);
        if state.is_loading() {
            let streams = || SelectionStreams::new(world, *asker, *turn);
            let (answered, until) = (Answered::default(), VirtualTime::START);
            *asked = is_asked.then(|| Pending { streams: streams(), answered, until });
        }
        asked.iter_mut().for_each(|asked| state.field(asked));
    }
}

impl<'w> Selector<'w> {
    /// The policy of the one server.
    pub fn of_server(world: &'w World, policy: Box<dyn Policy>) -> Self {
        Self::new(world, Asker::Server, policy, None)
    }

    /// The policy of an edge server with these clients.
    pub fn of_edge(world: &'w World, edge: EdgeId, members: &'w [ClientId], policy: Box<dyn Policy>) -> Self {
        Self::new(world, Asker::Edge(edge), policy, Some(members))
    }

    fn new(world: &'w World, asker: Asker, policy: Box<dyn Policy>, members: Option<&'w [ClientId]>) -> Self {
        let asks = policy.capabilities().forecast;
        let forecaster = || Forecaster::new(&world.population, &world.streams, members);
        let forecaster = asks.then(forecaster).flatten();
        Self { world, asker, policy, turn: Turn(0), forecaster, asked: None }
    }

    /// The server whose clients it selects.
    const fn server(&self) -> EdgeId {
        match self.asker {
            Asker::Edge(edge) => edge,
            Asker::Server | Asker::Cloud => THE_SERVER,
        }
    }

    /// The question of a selection.
    pub fn question<'a>(&self, engine: &'a Engine<'_>, server: &'a Server<'_>, limits: Limits) -> Question<'a> {
        let Limits { round, least, cohort, most, take, bounds, has_rounds, mixes: _ } = limits;
        Question {
            world: engine.world,
            label: &server.label,
            asker: self.asker,
            turn: self.turn,
            round,
            now: engine.now(),
            least,
            cohort,
            most,
            take,
            bounds,
            has_rounds,
            candidates: engine.candidates(self.server()),
            explain: server.settings.explain,
        }
    }

    /// The policy's view of its clients before a selection, without answers to a probe. It has the truth, and other
    /// declared data, only if the policy declares that.
    fn view<'a>(
        (world, policy): (&'a World, &dyn Policy),
        (counts, bounds, known): (&'a [u32], Bounds, Known<'a>),
        (forecaster, batteries): (Option<&'a Forecaster<'a>>, Option<SeenBatteries<'a>>),
    ) -> ServerView<'a> {
        let Known { shares, gains, foreseen } = known;
        let declared = policy.capabilities();
        ServerView {
            data_sizes: world.population.data_sizes(),
            shares: shares.unwrap_or(&world.shares),
            counts,
            probed: &[],
            answers: &[],
            trained: &[],
            gains,
            genie: world.truth.as_ref().filter(|_| policy.sees_truth()).map(|truth| &truth.genie),
            foreseen,
            layout: world.task.as_ref().filter(|_| declared.layout).map(|task| task.layout()),
            bounds: declared.bounds.then_some(bounds),
            forecaster,
            batteries: batteries.filter(|_| declared.level),
        }
    }

    /// The policy's probe, and its random numbers after it.
    pub fn probe(
        &mut self,
        engine: &Engine<'_>,
        server: &Server<'_>,
        limits: Limits,
        known: Known<'_>,
    ) -> Result<(Probe, SelectionStreams), RunError> {
        let mut streams = SelectionStreams::new(self.world, self.asker, self.turn);
        let question = self.question(engine, server, limits);
        let Self { world, policy, forecaster, .. } = self;
        let forecaster = forecaster.as_ref().map(|forecaster| forecaster.at(engine.now()));
        let view =
            Self::view((world, &**policy), (&server.counts, limits.bounds, known), (forecaster, engine.batteries()));
        Ok((question.probe(&mut **policy, &view, &mut streams)?, streams))
    }

    /// Asks the clients of a probe, from a server's model. Returns their answers, and the bytes that they moved.
    pub fn ask_clients(
        &self,
        engine: &mut Engine<'_>,
        server: &Server<'_>,
        (round, model): (Round, Option<Arc<[f32]>>),
        (probe, streams): (Probe, SelectionStreams),
    ) -> Result<(Pending, [u64; 2]), RunError> {
        let Self { asker, turn, ref policy, .. } = *self;
        let asking = Asking { asker, turn, round, policy: &**policy, model };
        let asked = carry_out(engine, server, &asking, probe)?;
        let until = engine.now() + asked.span;
        Ok((Pending { streams, answered: asked.answered, until }, asked.bytes))
    }

    /// Lets the policy select, after the answers.
    pub fn select(
        &mut self,
        engine: &Engine<'_>,
        server: &mut Server<'_>,
        (limits, known): (Limits, Known<'_>),
        pending: &mut Pending,
        selection: &mut Selection,
    ) -> Result<(), RunError> {
        let Pending { streams, answered, until: _ } = pending;
        let question = self.question(engine, server, limits);
        let Self { world, asker, policy, turn, forecaster, .. } = self;
        let trained = answered.trained(&**policy);
        let forecaster = forecaster.as_ref().map(|forecaster| forecaster.at(engine.now()));
        let view =
            Self::view((world, &**policy), (&server.counts, limits.bounds, known), (forecaster, engine.batteries()));
        let view = answered.view(view, &trained);
        let offer = question.offer();
        let explained = question.ask(&mut **policy, &view, streams, selection)?;
        if limits.mixes {
            question.check_alike(&engine.jobs, selection)?;
        }
        server.offers.add(offer);
        let explained = explained.map(|object| match asker {
            // A round has one selection.
            Asker::Server | Asker::Cloud if limits.has_rounds => object,
            Asker::Server | Asker::Cloud => numbered(object, *turn, None),
            Asker::Edge(edge) => numbered(object, *turn, Some(edge.0.into())),
        });
        server.explanations.extend(explained);
        Ok(())
    }

    /// Shows a question as the policy would see it.
    pub fn look<T>(
        &self,
        engine: &Engine<'_>,
        server: &Server<'_>,
        (limits, known): (Limits, Known<'_>),
        Pending { streams, answered, until: _ }: &mut Pending,
        see: impl FnOnce(&SelectionRequest<'_>, &ServerView<'_>, &mut PolicyRng<'_>) -> T,
    ) -> T {
        let Self { world, policy, forecaster, .. } = self;
        let trained = answered.trained(&**policy);
        let forecaster = forecaster.as_ref().map(|forecaster| forecaster.at(engine.now()));
        let view =
            Self::view((world, &**policy), (&server.counts, limits.bounds, known), (forecaster, engine.batteries()));
        let view = answered.view(view, &trained);
        see(&self.question(engine, server, limits).request(), &view, &mut streams.rng())
    }
}
