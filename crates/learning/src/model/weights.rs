//! Weights in files: safetensors, under the names of PyTorch.
//!
//! # Definition
//! Each tensor of the parameter vector is a tensor of the file: `f32`, row-major, with the name and shape of PyTorch's
//! `state_dict`. Where there are running statistics, PyTorch's counter `num_batches_tracked` is written as 0, and
//! overlooked when read. `model.load_state_dict(safetensors.torch.load_file("model.safetensors"))` reads it in PyTorch.
//!
//! # Source
//! The format: <https://huggingface.co/docs/safetensors>.

use super::Model;
use safetensors::tensor::{Dtype, SafeTensors, TensorView, serialize};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// A named part of the parameter vector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorLayout {
    /// The name that PyTorch's `state_dict` gives it.
    pub name: String,
    /// Its shape, row-major.
    pub shape: Vec<usize>,
    /// Where it begins in the parameter vector.
    pub offset: usize,
}

impl TensorLayout {
    /// Number of entries.
    pub fn entries(&self) -> usize {
        self.shape.iter().product()
    }

    /// The tensor in a model with these numbers.
    ///
    /// # Panics
    /// If the model ends before it.
    pub fn of(&self, parameters: &[f32]) -> Tensor {
        let values = parameters[self.offset..][..self.entries()].to_vec();
        Tensor { name: self.name.clone(), shape: self.shape.clone(), values }
    }

    /// Tensors of these names and shapes that follow each other in a model, from its beginning.
    pub fn in_turn(tensors: impl IntoIterator<Item = (String, Vec<usize>)>) -> Vec<Self> {
        let mut offset = 0;
        let one = |(name, shape)| {
            let tensor = Self { name, shape, offset };
            offset += tensor.entries();
            tensor
        };
        tensors.into_iter().map(one).collect()
    }
}

/// Why weights cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum WeightsError {
    /// The file.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Its contents.
    #[error("{}: {message}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// The fault and the remedy.
        message: String,
    },
}

const COUNTER: &str = "num_batches_tracked";

/// A named array of numbers, row-major.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// Its name in files.
    pub name: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Its entries.
    pub values: Vec<f32>,
}

/// The tensors of a model with such parameters.
///
/// # Panics
/// If there are not as many parameters as the model has.
pub fn tensors_of(model: &dyn Model, parameters: &[f32]) -> Vec<Tensor> {
    assert_eq!(parameters.len(), model.parameters(), "the parameter vector is the model's");
    model.tensors().iter().map(|tensor| tensor.of(parameters)).collect()
}

/// The contents of a safetensors file.
///
/// # Panics
/// If a tensor has not as many entries as its shape says, or two have the same name.
pub fn to_safetensors(tensors: &[Tensor]) -> Vec<u8> {
    let zero = 0_i64.to_le_bytes();
    let bytes = |tensor: &Tensor| -> Vec<u8> { tensor.values.iter().flat_map(|value| value.to_le_bytes()).collect() };
    let contents: Vec<Vec<u8>> = tensors.iter().map(bytes).collect();
    let mut views = Vec::new();
    for (Tensor { name, shape, .. }, bytes) in tensors.iter().zip(&contents) {
        if let Some(layer) = name.strip_suffix("running_mean") {
            let counter = TensorView::new(Dtype::I64, Vec::new(), &zero).expect("a counter has eight bytes");
            views.push((format!("{layer}{COUNTER}"), counter));
        }
        let view = TensorView::new(Dtype::F32, shape.clone(), bytes).expect("a tensor has four bytes for each entry");
        views.push((name.clone(), view));
    }
    serialize(views, None).expect("tensors have their sizes and different names")
}

/// Reads the parameters of a model from a safetensors file.
///
/// # Errors
/// As [`read_tensors`].
pub fn read_safetensors(model: &dyn Model, path: &Path) -> Result<Vec<f32>, WeightsError> {
    let layout = model.tensors();
    let expected = layout.iter().map(|tensor| (tensor.name.clone(), tensor.shape.clone())).collect();
    let mut parameters = vec![0.0; model.parameters()];
    for (tensor, TensorLayout { offset, .. }) in read_tensors(path, expected)?.iter().zip(layout) {
        parameters[offset..][..tensor.values.len()].copy_from_slice(&tensor.values);
    }
    Ok(parameters)
}

/// Bytes of a file beside the numbers of the model.
const HEADER_MAX: u64 = 1 << 26;

/// Reads tensors of these names and shapes, and no others, from a safetensors file.
///
/// # Errors
/// If the file cannot be read, lacks a tensor, holds another one, or a tensor has another shape or type or a number
/// that is not finite.
pub fn read_tensors(path: &Path, expected: Vec<(String, Vec<usize>)>) -> Result<Vec<Tensor>, WeightsError> {
    let wrong = |message: String| WeightsError::Content { path: path.to_owned(), message };
    let unread = |source| WeightsError::Read { path: path.to_owned(), source };
    // Names, shapes and counters take little beside the numbers.
    let most = expected.iter().map(|(_, shape)| shape.iter().product::<usize>() as u64 * 4).sum::<u64>() + HEADER_MAX;
    let mut bytes = Vec::new();
    File::open(path).and_then(|file| file.take(most + 1).read_to_end(&mut bytes)).map_err(unread)?;
    if bytes.len() as u64 > most {
        return Err(wrong(format!("has more than {most} bytes, which are more than the model has")));
    }
    let file = SafeTensors::deserialize(&bytes).map_err(|error| wrong(format!("is no safetensors file: {error}")))?;
    let mut names = file.names();
    names.sort_unstable();
    let is_known = |name: &str| name.ends_with(COUNTER) || expected.iter().any(|(expected, _)| expected == name);
    if let Some(name) = names.into_iter().find(|name| !is_known(name)) {
        let known: Vec<&str> = expected.iter().map(|(name, _)| name.as_str()).collect();
        return Err(wrong(format!(
            "holds a tensor {name:?} that the model does not have; it has {}",
            known.join(", ")
        )));
    }
    let mut tensors = Vec::new();
    for (name, shape) in expected {
        let found = file.tensor(&name).map_err(|_| wrong(format!("holds no tensor {name:?} of shape {shape:?}")))?;
        if found.dtype() != Dtype::F32 || found.shape() != shape {
            let (dtype, found) = (found.dtype(), found.shape());
            return Err(wrong(format!("{name:?} is {dtype:?} of shape {found:?}; expected F32 of shape {shape:?}")));
        }
        let values: Vec<f32> = found.data().as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        if let Some(index) = values.iter().position(|value| !value.is_finite()) {
            return Err(wrong(format!("entry {index} of {name:?} is {}; expected a finite number", values[index])));
        }
        tensors.push(Tensor { name, shape, values });
    }
    Ok(tensors)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Shape;
    use crate::model::families::{lenet5, resnet18};
    use crate::model::{LinearRegression, SoftmaxRegression};
    use fedgenie_core::rng::{Purpose, Streams};

    fn file(contents: &[u8]) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), contents).unwrap();
        file
    }

    fn message(model: &dyn Model, contents: &[u8]) -> String {
        read_safetensors(model, file(contents).path()).unwrap_err().to_string()
    }

    #[test]
    fn what_is_written_is_read_bit_by_bit() {
        let shape = Shape { channels: 3, height: 16, width: 16 };
        let models: [&dyn Model; 4] =
            [&lenet5(shape, 1.0, 10), &resnet18(shape, 10), &SoftmaxRegression::new(7, 3), &LinearRegression::new(5)];
        for model in models {
            let mut rng = Streams::new(1).stream(Purpose::ModelInit, 0, 0);
            let parameters: Vec<f32> = (0..model.parameters()).map(|_| rng.uniform() as f32 - 0.5).collect();
            let read = read_safetensors(model, file(&to_safetensors(&tensors_of(model, &parameters))).path()).unwrap();
            assert!(read == parameters);
        }
    }

    #[test]
    fn the_file_has_pytorchs_names_and_shapes() {
        let model = resnet18(Shape { channels: 3, height: 8, width: 8 }, 10);
        let contents = to_safetensors(&tensors_of(&model, &vec![0.5; model.parameters()]));
        let file = SafeTensors::deserialize(&contents).unwrap();
        // 122 entries of torchvision's state_dict: 62 trained, 40 statistics, 20 counters.
        assert_eq!(file.len(), 122);
        assert_eq!(file.tensor("layer3.0.downsample.0.weight").unwrap().shape(), [256, 128, 1, 1]);
        assert_eq!(file.tensor("bn1.num_batches_tracked").unwrap().dtype(), Dtype::I64);
        let model = SoftmaxRegression::new(7, 3);
        let contents = to_safetensors(&tensors_of(&model, &vec![0.5; model.parameters()]));
        assert_eq!(SafeTensors::deserialize(&contents).unwrap().tensor("linear.weight").unwrap().shape(), [3, 7]);
    }

    #[test]
    fn a_file_that_does_not_fit_is_named_with_what_would() {
        let model = SoftmaxRegression::new(7, 3);
        let write =
            |model: &dyn Model, number: f32| to_safetensors(&tensors_of(model, &vec![number; model.parameters()]));
        assert!(message(&model, b"nonsense").contains("is no safetensors file"));
        let truncated = write(&model, 0.5);
        assert!(message(&model, &truncated[..truncated.len() - 1]).contains("is no safetensors file"));
        let other = write(&SoftmaxRegression::new(8, 3), 0.5);
        assert!(message(&model, &other).contains("[3, 8]; expected F32 of shape [3, 7]"));
        assert!(message(&model, &write(&model, f32::NAN)).contains("entry 0 of \"linear.weight\" is NaN"));
        let network = lenet5(Shape { channels: 1, height: 16, width: 16 }, 1.0, 10);
        assert!(message(&model, &write(&network, 0.5)).contains("the model does not have"));
        assert!(read_safetensors(&model, Path::new("/nowhere")).unwrap_err().to_string().contains("/nowhere"));
    }
}
