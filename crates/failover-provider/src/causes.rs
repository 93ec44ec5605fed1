//! Reading the chain of causes of somebody's error.

use crate::FailureCause;
use std::error::Error;
use std::io;

/// Causes kept, at most.
const MOST: usize = 25;

impl FailureCause {
    /// The chain of an error, outermost first and itself included, at most 25 of them. `code` names those it knows.
    pub fn chain(
        error: &(dyn Error + 'static),
        mut code: impl FnMut(&(dyn Error + 'static)) -> Option<&'static str>,
    ) -> Vec<Self> {
        let mut causes: Vec<Self> = Vec::new();
        let mut next = Some(error);
        while let Some(error) = next.filter(|_| causes.len() < MOST) {
            let mut cause = Self::new(error.to_string());
            cause.code = code(error).map(str::to_owned);
            // A wrapper that prints what it wraps adds nothing.
            if causes.last().is_none_or(|last| last.message != cause.message || cause.code.is_some()) {
                causes.push(cause);
            }
            // `source` of an `io::Error` passes over the error inside it.
            let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
            next = inner.map(|inner| inner as &(dyn Error + 'static)).or_else(|| error.source());
        }
        causes
    }
}

/// The operating system's name for an error of its own, where the error is one and has a name.
#[expect(clippy::wildcard_enum_match_arm, reason = "an open list: kinds without a name stay without one")]
pub fn io_code(error: &(dyn Error + 'static)) -> Option<&'static str> {
    Some(match error.downcast_ref::<io::Error>()?.kind() {
        io::ErrorKind::ConnectionRefused => "ECONNREFUSED",
        io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof => "ECONNRESET",
        io::ErrorKind::ConnectionAborted => "ECONNABORTED",
        io::ErrorKind::BrokenPipe => "EPIPE",
        io::ErrorKind::TimedOut => "ETIMEDOUT",
        io::ErrorKind::HostUnreachable => "EHOSTUNREACH",
        io::ErrorKind::NetworkUnreachable => "ENETUNREACH",
        io::ErrorKind::AddrNotAvailable => "EADDRNOTAVAIL",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("outer")]
    struct Outer(#[source] io::Error);

    // spec: C-19
    #[test]
    fn the_chain_looks_inside_io_errors_too() {
        let inner: io::Error = io::ErrorKind::ConnectionReset.into();
        let text = inner.to_string();
        let error = Outer(io::Error::other(Outer(inner)));
        let chain = FailureCause::chain(&error, io_code);
        let told: Vec<_> =
            chain.iter().map(|cause| (cause.message.as_str(), cause.code.as_deref())).collect();
        // What lies between prints what it wraps, and is passed over.
        assert_eq!(told, [("outer", None), (text.as_str(), Some("ECONNRESET"))]);
    }
}
