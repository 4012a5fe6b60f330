//! Contents of files, kept for the other seeds and points of an experiment; what a seed draws, for its other points.

use super::DataError;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

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
    /// As `load`; then nothing is kept.
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

/// The values used last, by key and seed, as long as they take little memory together: every seed has its own, so that
/// those of many seeds would fill it.
#[derive(Debug)]
pub struct Recent<T> {
    /// The one used last is at the back.
    values: Mutex<VecDeque<Used<T>>>,
    /// The most bytes of all values.
    most: u64,
}

#[derive(Debug)]
struct Used<T> {
    key: (String, u64),
    value: Arc<T>,
    bytes: u64,
}

impl<T> Recent<T> {
    /// Room for values of so many bytes.
    pub const fn new(most: u64) -> Self {
        Self { values: Mutex::new(VecDeque::new()), most }
    }

    /// The value of a key and a seed, which `make` makes with its number of bytes if it is not there (any more).
    /// Threads may make different values side by side.
    ///
    /// # Errors
    /// As `make`; then nothing is kept.
    pub fn of<E>(&self, key: (String, u64), make: impl FnOnce() -> Result<(T, u64), E>) -> Result<Arc<T>, E> {
        if let Some(known) = self.find(&key) {
            return Ok(known);
        }
        let (value, bytes) = make()?;
        // Another thread may have made it meanwhile.
        let value = self.find(&key).unwrap_or_else(|| Arc::new(value));
        let mut values = self.lock();
        if bytes <= self.most && !values.iter().any(|used| used.key == key) {
            values.push_back(Used { key, value: value.clone(), bytes });
        }
        while values.iter().map(|used| used.bytes).sum::<u64>() > self.most {
            values.pop_front();
        }
        Ok(value)
    }

    fn find(&self, key: &(String, u64)) -> Option<Arc<T>> {
        let mut values = self.lock();
        let place = values.iter().position(|used| used.key == *key)?;
        let used = values.remove(place)?;
        let value = used.value.clone();
        values.push_back(used);
        Some(value)
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Used<T>>> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Values by key for as long as somebody uses them, so that several users at a time have one.
#[derive(Debug)]
pub struct InUse<T>(Mutex<BTreeMap<String, Weak<T>>>);

impl<T> Default for InUse<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> InUse<T> {
    /// The value of a key, made if nobody uses one.
    ///
    /// # Errors
    /// As `make`.
    pub fn of<E>(&self, key: String, make: impl FnOnce() -> Result<T, E>) -> Result<Arc<T>, E> {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lock().get(&key).and_then(Weak::upgrade) {
            return Ok(known);
        }
        let made = Arc::new(make()?);
        let mut values = lock();
        values.retain(|_, value| value.strong_count() > 0);
        // Another thread may have made it meanwhile.
        if let Some(known) = values.get(&key).and_then(Weak::upgrade) {
            return Ok(known);
        }
        values.insert(key, Arc::downgrade(&made));
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_used_last_are_kept_as_far_as_there_is_room() {
        let recent = Recent::new(10);
        let of = |seed: u64, bytes| {
            let mut is_made = false;
            let made = || {
                is_made = true;
                Ok::<_, DataError>((seed * 100, bytes))
            };
            assert_eq!(*recent.of(("a".to_owned(), seed), made).unwrap(), seed * 100);
            is_made
        };
        assert!(of(1, 4) && of(2, 4));
        assert!(!of(1, 4) && !of(2, 4) && !of(1, 4));
        // The third pushes the second out, which was not used for longest.
        assert!(of(3, 4) && !of(1, 4) && of(2, 4));
        // One that is too large is never kept, and pushes nothing out.
        assert!(of(4, 11) && of(4, 11) && !of(2, 4));
        let refused = || Err(DataError::Setting { key: "k".to_owned(), found: "f".to_owned(), expected: "e" });
        assert!(recent.of(("b".to_owned(), 1), refused).is_err());
        assert!(recent.of(("b".to_owned(), 1), || Ok::<_, DataError>((7, 1))).is_ok());
    }

    #[test]
    fn a_value_is_kept_while_it_is_used() {
        let values = InUse::default();
        let of = |made: u32| values.of("a".to_owned(), || Ok::<_, DataError>(made)).unwrap();
        let first = of(1);
        assert!(Arc::ptr_eq(&first, &of(2)));
        drop(first);
        assert_eq!(*of(3), 3);
    }

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
