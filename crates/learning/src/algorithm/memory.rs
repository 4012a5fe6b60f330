//! An algorithm's memory from round to round: numbers of the server, and of each client.

use super::{Algorithm, JobRule};
use crate::layout::{Layout, Update};
use crate::private::PrivateTable;
use fedgenie_core::id::ClientId;
use fedgenie_core::state::{State, Stateful};
use std::sync::Arc;

/// Names, in files, of what is remembered: `h` at the server makes `server.h.TENSOR`, `g` at clients
/// `client.K.g.TENSOR`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remembered {
    /// Of the server; `None` if it remembers nothing.
    pub server: Option<&'static str>,
    /// Of each client.
    pub client: &'static str,
}

/// Memory at the start of a job: the server's as sent to the client, and the client's own.
#[derive(Clone, Debug, Default)]
pub struct JobMemory {
    /// Of the server; `None` if it remembers nothing.
    pub server: Option<Arc<[f32]>>,
    /// Of the client; `None` before an update of it was aggregated.
    pub client: Option<Arc<[f32]>>,
    /// What encodings of its updates left over; `None` if nothing.
    pub error: Option<Arc<[f32]>>,
}

impl JobMemory {
    /// Whether there is nothing.
    pub const fn is_empty(&self) -> bool {
        self.server.is_none() && self.client.is_none() && self.error.is_none()
    }
}

/// Memory of server and clients. A clone shares the parts that did not change since.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// Of the server, a number for each parameter of the layout; empty if nothing is remembered.
    server: Arc<Vec<f64>>,
    /// The same as it travels; `None` if nothing is remembered.
    sent: Option<Arc<[f32]>>,
    clients: Arc<PrivateTable>,
    /// What encodings of clients' updates left over.
    errors: Arc<PrivateTable>,
}

impl Stateful for Memory {
    fn exchange(&mut self, state: &mut State<'_>) {
        let Self { server, sent, clients, errors } = self;
        state.fields(Arc::make_mut(server).as_mut_slice());
        state.field(Arc::make_mut(clients));
        state.field(Arc::make_mut(errors));
        // Jobs under way have a copy of their own.
        *sent = sent.as_ref().map(|_| rounded(server));
    }
}

fn rounded(numbers: &[f64]) -> Arc<[f32]> {
    numbers.iter().map(|&number| number as f32).collect()
}

impl Memory {
    /// Before the first round: zeros at the server, nothing at clients; nothing at all where nothing is remembered.
    pub fn new(algorithm: &Algorithm, parameters: usize, clients: usize) -> Self {
        let table =
            |is_kept: bool| Arc::new(if is_kept { PrivateTable::new(clients) } else { PrivateTable::default() });
        let remembered = algorithm.job.as_ref().and_then(|job| job.remembers());
        let has_server = remembered.is_some_and(|remembered| remembered.server.is_some());
        let server = vec![0.0; if has_server { parameters } else { 0 }];
        Self {
            sent: has_server.then(|| rounded(&server)),
            server: Arc::new(server),
            clients: table(remembered.is_some()),
            errors: table(algorithm.keeps_errors()),
        }
    }

    /// The memory that a client's job begins with.
    pub fn of(&self, client: ClientId) -> JobMemory {
        let [client, error] = [&self.clients, &self.errors].map(|table| table.get(client).cloned());
        JobMemory { server: self.sent.clone(), client, error }
    }

    /// Takes over what encodings of updates left over, in this order.
    pub fn take_errors(&mut self, left: &[(ClientId, &Update)]) {
        for (client, update) in left.iter().filter(|(_, update)| !update.error.is_empty()) {
            Arc::make_mut(&mut self.errors).set(*client, &update.error);
        }
    }

    /// Takes over the memory that updates leave with their clients, in this order.
    pub fn take(&mut self, rule: &dyn JobRule, layout: &Layout, left: &[(ClientId, &Update)], clients: usize) {
        let mut left = left.iter().filter(|(_, update)| !update.memory.is_empty()).peekable();
        if left.peek().is_none() {
            return;
        }
        let (server, table) = (Arc::make_mut(&mut self.server), Arc::make_mut(&mut self.clients));
        for &(client, update) in left {
            let before = table.get(client).cloned();
            let mut after = before.as_ref().map_or_else(|| vec![0.0; layout.len()], |before| before.to_vec());
            // A client may have trained on other rows since this job began.
            update.left(layout).for_each(|(range, part)| after[range].copy_from_slice(part));
            rule.gather(server, before.as_deref(), &after, clients);
            table.put(client, after.into());
        }
        self.sent = self.sent.is_some().then(|| rounded(server));
    }

    /// The server's numbers; empty if nothing is remembered.
    pub fn numbers(&self) -> &[f64] {
        &self.server
    }

    /// The server's numbers as they travel; `None` if nothing is remembered.
    pub fn server(&self) -> Option<&[f32]> {
        self.sent.as_deref()
    }

    /// Clients whose encodings left something over, and that, ascending.
    pub fn errors(&self) -> impl Iterator<Item = (ClientId, &[f32])> {
        self.errors.entries()
    }

    /// Clients that remember something, and their numbers, ascending.
    pub fn clients(&self) -> impl Iterator<Item = (ClientId, &[f32])> {
        self.clients.entries()
    }
}
