//! A value that is read once, however often a configuration is built.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// See the [module](self). Copies share the value; comparisons ignore it.
pub struct Memo<T>(Arc<Mutex<Option<Arc<T>>>>);

impl<T> Memo<T> {
    /// The value kept, or that of reading now; a failure is not kept.
    pub fn get<E: fmt::Display>(&self, read: impl FnOnce() -> Result<T, E>) -> Result<Arc<T>, String> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = &*kept {
            return Ok(value.clone());
        }
        let value = Arc::new(read().map_err(|error| error.to_string())?);
        *kept = Some(value.clone());
        Ok(value)
    }
}

impl<T: Clone + Default> Memo<T> {
    /// Changes the value kept, which is empty at first.
    pub fn update<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        change(Arc::make_mut(kept.get_or_insert_with(Arc::default)))
    }
}

impl<T> Default for Memo<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T> Clone for Memo<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> fmt::Debug for Memo<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Memo")
    }
}

impl<T> PartialEq for Memo<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
