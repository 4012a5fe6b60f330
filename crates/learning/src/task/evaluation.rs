//! Evaluations of a task: models, and the data that they are measured on.

use super::{PrivateView, Task};
use fedgenie_core::failure::Failure;
use fedgenie_core::halt::Effort;
use fedgenie_core::id::{ClientId, EdgeId, Round};

/// The data on which a model is evaluated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum On<'a> {
    /// The test data.
    Test,
    /// The validation data.
    Valid,
    /// A client's own data: training data, unless the task says otherwise.
    Client(ClientId),
    /// The data of the clients of an edge server.
    Server(EdgeId, &'a [ClientId]),
    /// The test data of a server with these clients: where the task deals test examples to servers, these.
    ServerTest(EdgeId, &'a [ClientId], &'a [u32]),
    /// No data.
    Model,
}

impl<'a> On<'a> {
    /// The data on which an edge server's model is measured: its test examples, where the task deals these to servers,
    /// or else the data of its clients.
    pub const fn of_server(server: EdgeId, members: &'a [ClientId], test: Option<&'a [u32]>) -> Self {
        match test {
            Some(examples) => Self::ServerTest(server, members, examples),
            None => Self::Server(server, members),
        }
    }

    /// The clients of the edge server whose data these are.
    pub const fn members(&self) -> Option<&'a [ClientId]> {
        match *self {
            Self::Server(_, members) | Self::ServerTest(_, members, _) => Some(members),
            _ => None,
        }
    }

    /// The client whose data these are; `None` if they are not those of a client alone.
    pub const fn client(&self) -> Option<ClientId> {
        match *self {
            Self::Client(client) => Some(client),
            _ => None,
        }
    }
}

/// A model to be evaluated, with clients' private state.
#[derive(Clone, Copy, Debug)]
pub struct ModelState<'a> {
    /// The parameters that travel.
    pub model: &'a [f32],
    /// Clients' private state.
    pub private: PrivateView<'a>,
    /// The server's round after which this is the model.
    pub round: Round,
    /// For each row of a table, the round in which it was last moved; round 0 if never.
    pub moved: &'a [Round],
    /// Each server's memory; of one server, or of every edge server.
    pub memories: &'a [Vec<f64>],
}

/// One evaluation of a model, and its result.
#[derive(Debug)]
pub struct Ask<'a> {
    /// The data to measure on.
    pub on: On<'a>,
    /// The model.
    pub state: &'a ModelState<'a>,
    /// One place for each measure in the order in which the task declares them: the measures of data, on [`On::Model`]
    /// those of the model alone. NaN where there is nothing to measure on.
    pub values: &'a mut [f64],
    /// The weight of the values with which parts can be put together, such as a number of examples; 0 where there is
    /// nothing to measure on.
    pub weight: f64,
}

impl<'a> Ask<'a> {
    /// A question without a result.
    pub const fn new(on: On<'a>, state: &'a ModelState<'a>, values: &'a mut [f64]) -> Self {
        Self { on, state, values, weight: 0.0 }
    }

    /// Whether two questions are about the same model.
    pub fn is_same_model(&self, other: &Self) -> bool {
        std::ptr::eq(self.state, other.state)
    }

    /// Whether the next question is about the validation data of the model whose test data this one is about: then a
    /// task that scores a user or a client once for both can share that work.
    pub(crate) fn goes_with(&self, next: &Self) -> bool {
        self.is_same_model(next) && self.on == On::Test && next.on == On::Valid
    }
}

impl dyn Task {
    /// One evaluation: writes the measures, and returns their weight.
    ///
    /// # Errors
    /// If the task fails.
    pub fn measure<'a>(
        &self,
        on: On<'_>,
        state: &ModelState<'_>,
        effort: impl Into<Effort<'a>>,
        values: &mut [f64],
    ) -> Result<f64, Failure> {
        let mut asks = [Ask::new(on, state, values)];
        self.evaluate(&mut asks, effort.into())?;
        Ok(asks[0].weight)
    }

    /// All measures of a model: those of data on test data, and on validation data where there is a second list, then
    /// those of the model alone, where there are any.
    ///
    /// # Errors
    /// If the task fails.
    pub fn measure_all<'a>(
        &self,
        state: &ModelState<'_>,
        effort: impl Into<Effort<'a>>,
        held_out: &mut [Vec<f64>],
        of_model: &mut [f64],
    ) -> Result<(), Failure> {
        let places = [On::Test, On::Valid].into_iter().zip(held_out);
        let mut asks: Vec<Ask<'_>> = places.map(|(on, values)| Ask::new(on, state, values)).collect();
        if !of_model.is_empty() {
            asks.push(Ask::new(On::Model, state, of_model));
        }
        self.evaluate(&mut asks, effort.into())
    }

    /// The same measures of several models, each with values of its own. Returns the weight, which is the same of all.
    ///
    /// # Errors
    /// If the task fails.
    pub fn measure_each<'a>(
        &self,
        on: On<'_>,
        states: &[ModelState<'_>],
        effort: impl Into<Effort<'a>>,
        values: &mut [Vec<f64>],
    ) -> Result<f64, Failure> {
        let mut asks: Vec<Ask<'_>> =
            states.iter().zip(values).map(|(state, values)| Ask::new(on, state, values)).collect();
        self.evaluate(&mut asks, effort.into())?;
        Ok(asks.last().map_or(0.0, |ask| ask.weight))
    }
}
