//! Personal layers: tensors of a model that stay with clients. `fedper`, `lg-fedavg` and `fedrep` have them.
//!
//! # Definition
//! A name is that of a tensor, or of a layer, which is that of its tensors up to a point: `fc` has `fc.weight` and
//! `fc.bias`. The others are *shared*: they alone travel, are aggregated, and are numbers of the layout.

use crate::layout::Layout;
use crate::model::weights::TensorLayout;
use fedgenie_core::config::Complaint;
use std::ops::Range;

/// Which parts of the model stay with clients, and how they are trained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersonalLayers {
    /// Names of layers or tensors.
    pub names: Vec<String>,
    /// Epochs in which they are trained alone, before the others are; `None` where all are trained together.
    pub private_epochs: Option<u32>,
}

/// A model's parameters in two parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Divided {
    /// Where the shared parameters lie in the whole vector, in ascending ranges.
    pub shared: Vec<Range<usize>>,
    /// Where the private ones do.
    pub private: Vec<Range<usize>>,
    /// The tensors of the shared part, at their places in it.
    pub shared_tensors: Vec<TensorLayout>,
    /// The tensors of the private part, at their places in it.
    pub private_tensors: Vec<TensorLayout>,
    /// The shared part as it travels.
    pub layout: Layout,
}

impl PersonalLayers {
    /// Divides the tensors of a model, of which the first `trained` parameters are trained.
    ///
    /// # Errors
    /// A complaint with a path below the entry: a name is of no tensor, or all parameters or none would be shared.
    pub fn divide(&self, tensors: &[TensorLayout], trained: usize) -> Result<Divided, Complaint> {
        let refuse = |message: String| Err(Complaint::new("private", message));
        if let Some(name) = self.names.iter().find(|name| !tensors.iter().any(|tensor| is_of(tensor, name))) {
            let mut layers: Vec<&str> = Vec::new();
            for tensor in tensors {
                let layer = tensor.name.rsplit_once('.').map_or(&*tensor.name, |(layer, _)| layer);
                if !layers.contains(&layer) {
                    layers.push(layer);
                }
            }
            let first: Vec<&str> = tensors.iter().take(4).map(|tensor| &*tensor.name).collect();
            let more = if tensors.len() > first.len() { ", …" } else { "" };
            let (layers, first) = (layers.join(", "), first.join(", "));
            return refuse(format!(
                "found {name:?}; the layers of this model are: {layers} (its tensors: {first}{more})"
            ));
        }
        let mut ordered: Vec<&TensorLayout> = tensors.iter().collect();
        ordered.sort_unstable_by_key(|tensor| tensor.offset);
        let is_private = |tensor: &&TensorLayout| self.names.iter().any(|name| is_of(tensor, name));
        let (private, shared): (Vec<&TensorLayout>, Vec<&TensorLayout>) = ordered.into_iter().partition(is_private);
        if private.is_empty() {
            return refuse("names nothing; name a layer, or take the entry out".to_owned());
        }
        if !shared.iter().any(|tensor| tensor.offset < trained) {
            return refuse("names all layers, and nothing would be learned together; name fewer".to_owned());
        }
        let (shared, shared_tensors) = part(&shared);
        let (private, private_tensors) = part(&private);
        let len = |range: &Range<usize>| range.len();
        let of_trained = shared.iter().filter(|range| range.start < trained).map(len).sum();
        let layout = Layout::dense(shared.iter().map(len).sum(), of_trained);
        Ok(Divided { shared, private, shared_tensors, private_tensors, layout })
    }
}

/// Whether a tensor has this name, or is of the layer of this name.
fn is_of(tensor: &TensorLayout, name: &str) -> bool {
    tensor.name.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Where some tensors lie in the whole vector, and the same tensors one after the other.
fn part(tensors: &[&TensorLayout]) -> (Vec<Range<usize>>, Vec<TensorLayout>) {
    let ranges = tensors.iter().map(|tensor| tensor.offset..tensor.offset + tensor.entries()).collect();
    let in_turn = TensorLayout::in_turn(tensors.iter().map(|tensor| (tensor.name.clone(), tensor.shape.clone())));
    (ranges, in_turn)
}

impl Divided {
    /// The shared parameters of a whole vector.
    pub fn shared_of<'a>(&'a self, whole: &'a [f32]) -> impl Iterator<Item = f32> + 'a {
        self.shared.iter().flat_map(|range| whole[range.clone()].iter().copied())
    }

    /// The private parameters of a whole vector.
    pub fn private_of<'a>(&'a self, whole: &'a [f32]) -> impl Iterator<Item = f32> + 'a {
        self.private.iter().flat_map(|range| whole[range.clone()].iter().copied())
    }

    /// The whole vector of two parts.
    ///
    /// # Panics
    /// If a part is too short.
    pub fn whole(&self, shared: &[f32], private: &[f32]) -> Vec<f32> {
        let mut whole = vec![0.0; shared.len() + private.len()];
        for (ranges, mut rest) in [(&self.shared, shared), (&self.private, private)] {
            for range in ranges {
                let (part, after) = rest.split_at(range.len());
                whole[range.clone()].copy_from_slice(part);
                rest = after;
            }
        }
        whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two layers of 2 + 1 and 3 trained numbers, and two statistics of the first.
    fn tensors() -> Vec<TensorLayout> {
        let named = [("a.weight", 2), ("a.bias", 1), ("ab.weight", 3), ("a.mean", 1), ("ab.mean", 1)];
        TensorLayout::in_turn(named.map(|(name, len)| (name.to_owned(), vec![len])))
    }

    fn divided(names: &[&str]) -> Result<Divided, Complaint> {
        let names = names.iter().map(|&name| name.to_owned()).collect();
        PersonalLayers { names, private_epochs: None }.divide(&tensors(), 6)
    }

    #[test]
    fn a_model_is_divided_by_the_names_of_layers() {
        let found = divided(&["a"]).unwrap();
        assert_eq!((&*found.private, &*found.shared), (&[0..2, 2..3, 6..7][..], &[3..6, 7..8][..]));
        assert_eq!((found.layout.len(), found.layout.trained()), (4, 3));
        let named = |tensors: &[TensorLayout]| -> Vec<_> {
            tensors.iter().map(|tensor| (tensor.name.clone(), tensor.offset)).collect()
        };
        assert_eq!(named(&found.shared_tensors), [("ab.weight".to_owned(), 0), ("ab.mean".to_owned(), 3)]);
        let whole: Vec<f32> = (0..8_u8).map(f32::from).collect();
        let [shared, private]: [Vec<f32>; 2] = [found.shared_of(&whole).collect(), found.private_of(&whole).collect()];
        assert_eq!((&*shared, &*private), (&[3.0, 4.0, 5.0, 7.0][..], &[0.0, 1.0, 2.0, 6.0][..]));
        assert_eq!(found.whole(&shared, &private), whole);
        assert_eq!(divided(&["a.bias", "a.mean"]).unwrap().private, [2..3, 6..7]);
    }

    #[test]
    fn names_that_divide_nothing_are_refused() {
        let said = |names: &[&str]| divided(names).unwrap_err().message;
        assert_eq!(
            said(&["b"]),
            "found \"b\"; the layers of this model are: a, ab (its tensors: a.weight, a.bias, ab.weight, a.mean, …)"
        );
        assert!(said(&["a", "ab"]).contains("all layers") && said(&[]).contains("names nothing"));
        // Statistics alone are nothing to learn together.
        assert!(said(&["a", "ab.weight"]).contains("all layers"));
    }
}
