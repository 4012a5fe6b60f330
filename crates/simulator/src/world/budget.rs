//! Traffic, and the budget of a run: most bytes of clients, and the fewest clients of a round that they have to pay
//! for.

use super::{Training, World, WorldError, WorldPlan};
use crate::protocol::Rule;
use fedgenie_core::halt::NEVER;
use fedgenie_core::id::{ClientId, JobNumber};
use fedgenie_core::rng::Streams;
use fedgenie_learning::algorithm::Algorithm;
use fedgenie_learning::layout::Parcel;
use fedgenie_learning::task::{Context, JobKey, Task};
use fedgenie_learning::trainer::LocalTraining;

/// `B`, as a scenario writes it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Most {
    /// So many bytes of clients, both ways together.
    Traffic(u64),
    /// A multiple of the traffic of a first round in which every client takes part.
    FullRounds(f64),
}

/// The budget that a scenario asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BudgetPlan {
    /// `B`; `None` if traffic is not limited.
    pub most: Option<Most>,
    /// `L`, the fewest clients of a round.
    pub least: usize,
}

/// The budget of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// `B`: most bytes of clients, both ways together; `None` if traffic is not limited.
    pub bytes: Option<u64>,
    /// `L`, the fewest clients of a round, at least 1.
    pub least: usize,
}

impl Default for Budget {
    /// No limits.
    fn default() -> Self {
        Self { bytes: None, least: 1 }
    }
}

/// The bytes that a job moves, down and up: the model or its rows, and the algorithm's own numbers; of so many jobs
/// whose updates are summed.
pub(super) fn transfer(
    (task, payload_bytes, algorithm): (Option<&dyn Task>, u64, &Algorithm),
    context: &Context<'_>,
    (client, number): (ClientId, JobNumber),
    selected: usize,
) -> [u64; 2] {
    let job = JobKey { client, number };
    let Some(task) = task.filter(|task| !task.layout().is_empty() || task.partial().is_some()) else {
        // What nobody learns stands for a model of singles.
        return algorithm.bytes([payload_bytes; 2], [payload_bytes.div_ceil(4); 2], selected);
    };
    let parcels = task.partial().map(|partial| partial.transfer(job, context));
    let of_model = parcels.map_or([payload_bytes; 2], |parcels| parcels.map(Parcel::bytes));
    // The ids of rows travel once.
    let numbers = parcels.unwrap_or([task.layout().whole(); 2]).map(|parcel| parcel.numbers);
    algorithm.bytes(of_model, numbers, selected)
}

impl BudgetPlan {
    /// The budget in a world, where the first job of client `i` moves `prices[i]` bytes.
    ///
    /// # Errors
    /// If the protocol has no rounds that it could pay for, or it does not pay for a single one.
    pub(super) fn define(&self, rule: &Rule, prices: impl Iterator<Item = u64>) -> Result<Budget, WorldError> {
        let Self { most, least } = *self;
        if matches!(rule, Rule::Hierarchical(_)) {
            let message = "is of one server that selects, and edge servers select apart from each other; take another \
                           protocol, or stop.traffic in its place";
            return Err(WorldError::scenario("budget", message));
        }
        let ask = rule.ask();
        if !(1..=ask).contains(&least) {
            let message = format!("found {least}; expected between 1 and the clients of a selection ({ask})");
            return Err(WorldError::scenario("budget.least", message));
        }
        let Some(most) = most else { return Ok(Budget { bytes: None, least }) };
        let (mut everybody, mut dearest) = (0_u64, 0);
        for price in prices {
            everybody = everybody.saturating_add(price);
            dearest = dearest.max(price);
        }
        let round = dearest.saturating_mul(least as u64);
        let (key, bytes) = match most {
            Most::Traffic(bytes) => ("budget.traffic", bytes),
            // A product beyond the range is its end.
            Most::FullRounds(rounds) => ("budget.full_rounds", (rounds * everybody as f64) as u64),
        };
        if everybody == 0 {
            let message = "limits traffic, and the jobs of this scenario move no bytes; take the key out";
            return Err(WorldError::scenario(key, message));
        }
        if bytes < round {
            let clients = if least == 1 { "1 client".to_owned() } else { format!("{least} clients") };
            let message = format!("found {bytes} B; a round of {clients} moves {round} B, both ways together");
            return Err(WorldError::scenario(key, message));
        }
        Ok(Budget { bytes: Some(bytes), least })
    }
}

impl WorldPlan {
    /// The budget in a world; without a plan, no limits.
    pub(super) fn budget(
        &self,
        (rule, clients): (&Rule, usize),
        task: (Option<&dyn Task>, u64, &Algorithm),
        (settings, streams): (&LocalTraining, &Streams),
        warnings: &mut Vec<String>,
    ) -> Result<Budget, WorldError> {
        let Some(plan) = &self.budget else { return Ok(Budget::default()) };
        let context = Context { settings, streams, loss_rms: false, halt: &NEVER };
        let price = |client: usize| {
            let first = (ClientId::from_index(client), JobNumber(1));
            let [down, up] = transfer(task, &context, first, rule.most());
            down.saturating_add(up)
        };
        let budget = plan.define(rule, (0..clients).map(price))?;
        if let Rule::Rounds(rule) = rule
            && budget.bytes.is_some()
            && budget.least < rule.quorum
        {
            warnings.push(format!(
                "at its end the budget may pay for rounds of fewer than {} clients, which are abandoned; give \
                 [budget] least = {}",
                rule.quorum, rule.quorum
            ));
        }
        Ok(budget)
    }
}

impl World {
    /// Bytes of the dense parts of a model and of these rows of its tables.
    pub fn bytes_of(&self, rows: &[u32]) -> u64 {
        match &self.task {
            Some(task) if task.layout().rows() > 0 => task.layout().parcel_of(rows).bytes(),
            _ => self.training.payload_bytes,
        }
    }

    /// The bytes that a job of so many epochs, or of the usual work, moves down and up, if its update is one of so many
    /// that are summed; 0 if it is of none.
    pub fn transfer(&self, client: ClientId, number: JobNumber, (epochs, selected): (Option<u32>, usize)) -> [u64; 2] {
        let Training { payload_bytes, algorithm, .. } = &self.training;
        let task = (self.task.as_deref(), *payload_bytes, algorithm);
        match self.training.local.of_job(client, epochs) {
            None => transfer(task, &self.context(), (client, number), selected),
            Some(settings) => {
                transfer(task, &Context { settings: &settings, ..self.context() }, (client, number), selected)
            }
        }
    }

    /// The largest price of a job: its bytes, both ways together, with all the epochs that a policy may choose, in a
    /// round of as many clients as it may choose. A longer job moves the rows of a shorter one, and others.
    pub fn price(&self, client: ClientId, number: JobNumber) -> u64 {
        let is_summed = self.training.algorithm.secure.is_some();
        let selected = if is_summed { self.protocol.rule.most() } else { 0 };
        let [down, up] = self.transfer(client, number, (self.training.longest(), selected));
        down.saturating_add(up)
    }

    /// The price of every job, if all cost the same.
    pub fn one_price(&self) -> Option<u64> {
        let is_same = self.task.as_ref().is_none_or(|task| task.partial().is_none());
        is_same.then(|| self.price(ClientId(0), JobNumber(1)))
    }

    /// The largest price among some clients' jobs, `number` being that of each one's job.
    pub fn dearest(&self, clients: &[ClientId], number: impl Fn(ClientId) -> JobNumber) -> u64 {
        let price = |&client: &ClientId| self.price(client, number(client));
        self.one_price().unwrap_or_else(|| clients.iter().map(price).max().unwrap_or(0))
    }
}
