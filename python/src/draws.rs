//! The random numbers of a decision: the very stream that a policy in Rust draws from.

use crate::arrays;
use crate::asked::{self, Asked, Read};
use crate::choice;
use fedgenie::id::ClientId;
use fedgenie::policy::Candidates;
use fedgenie::policy::random::draw_uniform;
use fedgenie::rng::StreamRng;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use std::sync::Arc;

/// Which of the two streams.
#[derive(Clone, Copy)]
pub enum Stream {
    Policy,
    Solver,
}

/// A stream of random numbers that belongs to one question.
#[pyclass(module = "fedgenie", frozen, name = "Rng")]
pub struct Draws {
    number: u64,
    stream: Stream,
    read: Arc<Read>,
}

impl Draws {
    pub const fn new(number: u64, stream: Stream, read: Arc<Read>) -> Self {
        Self { number, stream, read }
    }

    fn draw<R>(&self, draw: impl FnOnce(&mut StreamRng, &Asked<'_>) -> PyResult<R>) -> PyResult<R> {
        asked::with(self.number, |asked| {
            let (policy, solver) =
                asked.streams.ok_or_else(|| PyRuntimeError::new_err("an explanation draws no random numbers"))?;
            let stream = match self.stream {
                Stream::Policy => policy,
                Stream::Solver => solver,
            };
            draw(&mut stream.borrow_mut(), asked)
        })
    }
}

#[pymethods]
impl Draws {
    /// A number between 0 and 1, or an array of them.
    #[pyo3(signature = (size = None))]
    fn random<'py>(&self, py: Python<'py>, size: Option<usize>) -> PyResult<Bound<'py, PyAny>> {
        self.draw(|stream, _| match size {
            None => Ok(stream.uniform().into_pyobject(py)?.into_any()),
            Some(size) => Ok(arrays::own(py, (0..size).map(|_| stream.uniform()).collect())),
        })
    }

    /// A whole number from 0 to `n` − 1, or an array of them.
    #[pyo3(signature = (n, size = None))]
    fn integers<'py>(&self, py: Python<'py>, n: i64, size: Option<usize>) -> PyResult<Bound<'py, PyAny>> {
        let below = u64::try_from(n).ok().filter(|&n| n > 0);
        let below =
            below.ok_or_else(|| PyValueError::new_err(format!("found n = {n}; there is no whole number below it")))?;
        self.draw(|stream, _| match size {
            None => Ok(stream.below(below).into_pyobject(py)?.into_any()),
            Some(size) => Ok(arrays::own(py, (0..size).map(|_| stream.below(below) as i64).collect())),
        })
    }

    /// Up to `m` different ones of some clients, every set equally likely, as `random` draws them.
    fn sample<'py>(&self, py: Python<'py>, ids: &Bound<'py, PyAny>, m: usize) -> PyResult<Bound<'py, PyAny>> {
        let is_available = self.read.available.get(py).is_some_and(|available| available.is(ids));
        let clients = if is_available { Vec::new() } else { choice::clients(ids)?.0 };
        let clients: Vec<ClientId> = clients.into_iter().map(ClientId).collect();
        self.draw(|stream, Asked { ask, deck, .. }| {
            let mut selection = Vec::new();
            // The candidates themselves draw as `random` does, also where some of the server's clients are away.
            let is_available = is_available || clients == ask.available.list();
            let candidates = if is_available { ask.available } else { Candidates::from(&clients[..]) };
            draw_uniform(&candidates, m, &mut deck.borrow_mut(), stream, &mut selection);
            Ok(arrays::own(py, selection.iter().map(|client| client.0).collect()))
        })
    }

    /// The items in a random order, as a new array.
    fn shuffled<'py>(&self, py: Python<'py>, ids: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let mut clients = choice::clients(ids)?.0;
        self.draw(|stream, _| {
            stream.shuffle(&mut clients);
            Ok(arrays::own(py, clients))
        })
    }

    /// A generator of NumPy, seeded by the next four numbers of the stream.
    fn numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let seed = self.draw(|stream, _| Ok([0; 4].map(|_| stream.bits()).to_vec()))?;
        let random = py.import("numpy.random")?;
        let bits = random.getattr("PCG64")?.call1((seed,))?;
        random.getattr("Generator")?.call1((bits,))
    }
}
