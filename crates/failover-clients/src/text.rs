//! Clients that hand over words: a text, or a boxed error that only prints.

use crate::ClientError;
use crate::told::Told;
use failover_classify::{AsSignal, Signal};
use failover_provider::io_code;
use std::error::Error;

impl AsSignal for ClientError<String> {
    fn with_signal<R>(&self, with: impl FnOnce(&Signal<'_>) -> R) -> R {
        Told::text(&self.0).with_signal(with)
    }
}

impl AsSignal for ClientError<&str> {
    fn with_signal<R>(&self, with: impl FnOnce(&Signal<'_>) -> R) -> R {
        Told::text(self.0).with_signal(with)
    }
}

/// What the error prints, and what its causes print.
impl AsSignal for ClientError<Box<dyn Error + Send + Sync>> {
    fn with_signal<R>(&self, with: impl FnOnce(&Signal<'_>) -> R) -> R {
        Told::words(&*self.0, io_code).with_signal(with)
    }
}
