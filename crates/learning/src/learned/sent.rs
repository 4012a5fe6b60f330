//! The state that a client's job begins with, and how it is saved: models that many jobs share are saved once.

use super::State as Learned;
use crate::algorithm::JobMemory;
use fedgenie_core::id::ClientId;
use fedgenie_core::state::State;
use std::sync::Arc;

/// The state that a client's job begins with.
#[derive(Clone, Debug)]
pub struct Sent {
    /// The model it was sent.
    pub model: Arc<[f32]>,
    /// Its private state at that moment; `None` if no update of it was ever aggregated.
    pub private: Option<Arc<[f32]>>,
    /// The algorithm's memory: the server's as sent, and the client's own.
    pub memory: JobMemory,
    /// The cluster of the model.
    pub cluster: u32,
}

impl Learned {
    /// The state that a client's job begins with now, given this model of a cluster.
    pub fn sent(&self, model: Arc<[f32]>, cluster: u32, client: ClientId) -> Sent {
        Sent { model, private: self.private.get(client).cloned(), memory: self.memory.of(client), cluster }
    }
}

/// Models that jobs, servers and the run share, each of them saved once.
#[derive(Debug)]
pub struct SharedModels {
    /// Parameters of a model.
    length: usize,
    models: Vec<Arc<[f32]>>,
}

impl SharedModels {
    /// No model yet; all will have this many parameters.
    pub const fn new(length: usize) -> Self {
        Self { length, models: Vec::new() }
    }

    /// Saves or loads a model.
    pub fn exchange(&mut self, model: &mut Arc<[f32]>, state: &mut State<'_>) {
        let known = self.models.iter().rposition(|known| Arc::ptr_eq(known, model));
        let mut place = known.unwrap_or(self.models.len()) as u64;
        state.field(&mut place);
        if let Some(known) = self.models.get(place as usize) {
            *model = known.clone();
            return;
        }
        state.field(model);
        state.require(place == self.models.len() as u64 && model.len() == self.length);
        self.models.push(model.clone());
    }

    /// Saves or loads a model that may be missing.
    pub fn exchange_option(&mut self, model: &mut Option<Arc<[f32]>>, state: &mut State<'_>) {
        let mut is_some = model.is_some();
        state.field(&mut is_some);
        if state.is_loading() {
            *model = is_some.then(|| Arc::from([]));
        }
        if let Some(model) = model {
            self.exchange(model, state);
        }
    }

    /// Saves or loads the state that a client's job begins with, if there is one.
    pub fn exchange_sent(&mut self, sent: &mut Option<Sent>, state: &mut State<'_>) {
        let mut is_some = sent.is_some();
        state.field(&mut is_some);
        if state.is_loading() {
            let memory = JobMemory::default();
            *sent = is_some.then(|| Sent { model: Arc::from([]), private: None, memory, cluster: 0 });
        }
        if let Some(Sent { model, private, memory: JobMemory { server, client, error }, cluster }) = sent {
            self.exchange(model, state);
            state.field(private);
            self.exchange_option(server, state);
            state.field(client);
            state.field(error);
            state.field(cluster);
        }
    }
}
