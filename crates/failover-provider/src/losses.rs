//! What of a request an attempt leaves out, gathered while it is mapped.

use crate::{AttemptScope, Dialect, Home, Loss, LossReason, Opaque};

/// The losses of one mapping, each told once.
#[derive(Debug, Default)]
pub struct Losses {
    losses: Vec<Loss>,
    dialect: Option<Dialect>,
}

impl Losses {
    /// None so far.
    pub fn new() -> Self {
        Self::default()
    }

    /// None so far, of an adapter that speaks a dialect of callers.
    pub fn of(dialect: Dialect) -> Self {
        Self { losses: Vec::new(), dialect: Some(dialect) }
    }

    /// Notes that something is left out.
    pub fn note(&mut self, what: &str, reason: LossReason) {
        let loss = Loss::new(what, reason);
        if !self.losses.contains(&loss) {
            self.losses.push(loss);
        }
    }

    /// Whether an opaque field belongs where the attempt goes.
    pub fn may_go(&self, opaque: &Opaque, scope: &AttemptScope<'_>) -> bool {
        opaque.may_go(self.dialect, scope)
    }

    /// Whether an opaque field belongs where the attempt goes; if not, its loss is noted.
    pub fn is_at_home(&mut self, opaque: &Opaque, scope: &AttemptScope<'_>) -> bool {
        let home = self.may_go(opaque, scope);
        if !home {
            self.leave_out(
                opaque,
                match opaque.home {
                    Home::Dialect(_) => LossReason::NoPlace,
                    Home::Origin(_) | Home::History(_) => LossReason::ForeignOrigin,
                },
            );
        }
        home
    }

    /// Notes that an opaque field is left out, where it says something that the rest of the request does not.
    pub fn leave_out(&mut self, opaque: &Opaque, reason: LossReason) {
        if !opaque.translated {
            self.note(&opaque.name, reason);
        }
    }

    /// For [`crate::ReplyHead::losses`], in the order in which they were met.
    pub fn into_vec(self) -> Vec<Loss> {
        self.losses
    }
}
