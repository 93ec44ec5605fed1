//! What of a request an attempt leaves out, gathered while it is mapped.

use crate::{AttemptScope, Loss, LossReason, Opaque};

/// The losses of one mapping, each told once.
#[derive(Debug, Default)]
pub struct Losses(Vec<Loss>);

impl Losses {
    /// None so far.
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes that something is left out.
    pub fn note(&mut self, what: &str, reason: LossReason) {
        let loss = Loss::new(what, reason);
        if !self.0.contains(&loss) {
            self.0.push(loss);
        }
    }

    /// Whether an opaque field goes back to where it came from; if not, its loss is noted.
    pub fn is_at_home(&mut self, opaque: &Opaque, scope: &AttemptScope<'_>) -> bool {
        let home = opaque.origin.is_target_of(scope);
        if !home {
            self.note(&opaque.name, LossReason::ForeignOrigin);
        }
        home
    }

    /// For [`crate::ReplyHead::losses`], in the order in which they were met.
    pub fn into_vec(self) -> Vec<Loss> {
        self.0
    }
}
