//! The models of a run and the algorithm's memory, as the contents of files.

use super::Learning;
use fedgenie_learning::algorithm::Remembered;
use fedgenie_learning::model::weights::{Tensor, to_safetensors};
use fedgenie_learning::task::{PrivateView, tensors_of_models};

impl Learning<'_> {
    /// The contents of a file with the models and the private state of clients.
    pub fn file(&self) -> Vec<u8> {
        let models: Vec<&[f32]> = self.state.models.iter().map(|model| &**model).collect();
        let mut tensors = tensors_of_models(self.task, &models);
        let private = PrivateView::of(&self.state.private);
        tensors.extend(self.task.private().map_or_else(Vec::new, |task| task.in_file(&private)));
        to_safetensors(&tensors)
    }

    /// The contents of a file with the algorithm's memory, if it has one: `server.c.TENSOR` and, of clients that have
    /// some, `client.K.c.TENSOR`, with the names and shapes of the model's file; `server.centre.TENSOR` is the last
    /// change of the model, where the combination remembers it, `server.mixture` its number for each client,
    /// `client.K.error.TENSOR` what encodings left over, `client.K.model.TENSOR` a client's own model, or its part of
    /// one.
    pub fn memory_file(&self) -> Option<Vec<u8>> {
        let memory = &self.state.memory;
        let of_job = self.learner.algorithm.job.as_ref().and_then(|job| job.remembers());
        let (last, mixture) = (self.state.servers[0].last_change(), self.state.servers[0].mixture());
        let mut errors = memory.errors().peekable();
        let own = self.task.private().map_or_else(Vec::new, |state| state.tensors());
        if of_job.is_none() && last.is_empty() && mixture.is_empty() && errors.peek().is_none() && own.is_empty() {
            return None;
        }
        let named = |of: String, numbers: &[f32]| {
            let tensors = tensors_of_models(self.task, &[numbers]).into_iter();
            tensors.map(move |tensor| Tensor { name: format!("{of}.{}", tensor.name), ..tensor })
        };
        let mut tensors: Vec<Tensor> = Vec::new();
        if !last.is_empty() {
            let last: Vec<f32> = last.iter().map(|&number| number as f32).collect();
            tensors.extend(named("server.centre".to_owned(), &last));
        }
        if !mixture.is_empty() {
            let values: Vec<f32> = mixture.iter().map(|&number| number as f32).collect();
            tensors.push(Tensor { name: "server.mixture".to_owned(), shape: vec![values.len()], values });
        }
        if let Some(Remembered { server: of_server, client: of_client }) = of_job {
            let server = of_server.zip(memory.server());
            tensors.extend(server.into_iter().flat_map(|(name, server)| named(format!("server.{name}"), server)));
            let of_clients =
                memory.clients().map(|(client, numbers)| named(format!("client.{}.{of_client}", client.0), numbers));
            tensors.extend(of_clients.flatten());
        }
        for (client, numbers) in self.state.private.entries() {
            let named =
                |tensor: Tensor| Tensor { name: format!("client.{}.model.{}", client.0, tensor.name), ..tensor };
            tensors.extend(own.iter().map(|tensor| named(tensor.of(numbers))));
        }
        tensors.extend(errors.flat_map(|(client, numbers)| named(format!("client.{}.error", client.0), numbers)));
        Some(to_safetensors(&tensors))
    }
}
