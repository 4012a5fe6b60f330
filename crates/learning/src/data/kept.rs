//! Data read from files, kept for the other seeds and points of an experiment.

use super::DataError;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Loaded values by key.
#[derive(Debug)]
pub struct Kept<T>(Mutex<BTreeMap<String, Arc<T>>>);

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Kept<T> {
    /// The value of a key, loaded at the first call.
    ///
    /// # Errors
    /// Those of loading it; then nothing is kept.
    pub fn once(&self, key: String, load: impl FnOnce() -> Result<T, DataError>) -> Result<Arc<T>, DataError> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = kept.get(&key) {
            return Ok(found.clone());
        }
        let loaded = Arc::new(load()?);
        kept.insert(key, loaded.clone());
        Ok(loaded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_loaded_once_and_an_error_is_not_kept() {
        let kept = Kept::default();
        let refused = || Err(DataError::Setting { key: "k".to_owned(), found: "f".to_owned(), expected: "e" });
        assert!(kept.once("a".to_owned(), refused).is_err());
        let first = kept.once("a".to_owned(), || Ok(1)).unwrap();
        let again = kept.once("a".to_owned(), || panic!("it is kept")).unwrap();
        assert!(Arc::ptr_eq(&first, &again));
        assert_eq!(*kept.once("b".to_owned(), || Ok(2)).unwrap(), 2);
    }
}
