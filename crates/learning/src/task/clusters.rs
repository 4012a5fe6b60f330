//! The networks of clusters of edge servers: the parts of a model that each cluster has, and their names in files.
//!
//! # Names
//! A tensor that all clusters share keeps its name, `global.conv1.weight`; that of cluster 3 is
//! `cluster.3.conv1.weight`, whether the model has a shared part or not.

use super::Task;
use crate::model::weights::{Tensor, WeightsError, read_tensors};
use crate::model::{Model, TensorLayout};
use std::path::Path;

/// The networks of clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterNetworks {
    /// Number of clusters.
    pub count: u32,
    /// Whether each starts from a draw of its own.
    pub distinct: bool,
}

/// The name of a tensor in the file of a run, whose model calls it `name`.
fn name_in_file(name: &str, cluster: usize) -> String {
    match name.split_once('.') {
        Some(("global", _)) => name.to_owned(),
        Some(("cluster", rest)) => format!("cluster.{cluster}.{rest}"),
        _ => format!("cluster.{cluster}.{name}"),
    }
}

/// Whether all clusters share a tensor that the model calls `name`.
fn is_shared(name: &str) -> bool {
    name.starts_with("global.")
}

/// The tensors of a task's models for a file: of its one model, or of those of all clusters, the shared ones first.
///
/// # Panics
/// If there is no model.
pub fn tensors_of_models(task: &dyn Task, models: &[&[f32]]) -> Vec<Tensor> {
    let tensors = task.tensors();
    if !task.layout().has_clusters() {
        return tensors.iter().map(|tensor| tensor.of(models[0])).collect();
    }
    let (shared, own): (Vec<_>, Vec<_>) = tensors.iter().partition(|tensor| is_shared(&tensor.name));
    let mut found: Vec<Tensor> = shared.iter().map(|tensor| tensor.of(models[0])).collect();
    for (cluster, parameters) in models.iter().enumerate() {
        let named =
            |tensor: &&TensorLayout| Tensor { name: name_in_file(&tensor.name, cluster), ..tensor.of(parameters) };
        found.extend(own.iter().map(named));
    }
    found
}

/// Reads the models of all clusters from a file that a run with as many has written.
///
/// # Errors
/// As [`read_tensors`].
pub fn read_clusters(model: &dyn Model, count: u32, path: &Path) -> Result<Vec<Vec<f32>>, WeightsError> {
    let layout = model.tensors();
    let of_cluster = |cluster: usize| {
        let read = layout.iter().filter(move |tensor| cluster == 0 || !is_shared(&tensor.name));
        read.map(move |tensor| (cluster, tensor))
    };
    let wanted: Vec<(usize, &TensorLayout)> = (0..count as usize).flat_map(of_cluster).collect();
    let named =
        |(cluster, tensor): &(usize, &TensorLayout)| (name_in_file(&tensor.name, *cluster), tensor.shape.clone());
    let tensors = read_tensors(path, wanted.iter().map(named).collect())?;
    let mut models = vec![vec![0.0; model.parameters()]; count as usize];
    for ((cluster, TensorLayout { name, offset, .. }), tensor) in wanted.into_iter().zip(tensors) {
        let holders = if is_shared(name) { 0..models.len() } else { cluster..cluster + 1 };
        for parameters in &mut models[holders] {
            parameters[*offset..][..tensor.values.len()].copy_from_slice(&tensor.values);
        }
    }
    Ok(models)
}
