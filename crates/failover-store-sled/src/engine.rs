//! The engine behind a store, which can be opened anew while the store lives.

use crate::store::Trees;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

/// How often and how long somebody waits for calls under way to leave the engine. A call lasts milliseconds.
const LEAVE: (u32, Duration) = (400, Duration::from_millis(5));

/// sled and its trees.
pub(crate) struct Engine {
    pub(crate) db: sled::Db,
    pub(crate) trees: Trees,
}

/// Where the engine of a store is found; empty while it is being opened anew.
pub(crate) struct EngineCell(RwLock<Option<Arc<Engine>>>);

impl EngineCell {
    pub(crate) fn new(engine: Engine) -> Self {
        Self(RwLock::new(Some(Arc::new(engine))))
    }

    /// The engine, for one call.
    pub(crate) fn get(&self) -> Option<Arc<Engine>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn put(&self, engine: Arc<Engine>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(engine);
    }

    /// Takes the engine out, once nobody is in it any more; `None` where somebody stays, or it is out already.
    pub(crate) fn take(&self) -> Option<Engine> {
        let mut engine = self.0.write().unwrap_or_else(PoisonError::into_inner).take()?;
        for _ in 0..LEAVE.0 {
            match Arc::try_unwrap(engine) {
                Ok(engine) => return Some(engine),
                Err(shared) => engine = shared,
            }
            std::thread::sleep(LEAVE.1);
        }
        self.put(engine);
        None
    }
}
