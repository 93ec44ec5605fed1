//! What an error tells, until it is shown as a signal.

use failover_classify::{Cause, Signal, Surface};
use failover_provider::FailureCause;
use std::borrow::Cow;
use std::error::Error;

/// What an error tells.
#[derive(Debug, Default)]
pub(crate) struct Told<'a> {
    pub(crate) surface: Surface,
    pub(crate) status: Option<u16>,
    pub(crate) headers: Vec<(&'a str, Cow<'a, str>)>,
    pub(crate) code: Option<Cow<'a, str>>,
    pub(crate) body: Cow<'a, [u8]>,
    pub(crate) causes: Vec<FailureCause>,
}

impl<'a> Told<'a> {
    pub(crate) fn new(surface: Surface) -> Self {
        Self { surface, ..Self::default() }
    }

    /// A message in words, the status and the body that stand in it included: the classifier finds them.
    pub(crate) fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::new(Surface::SdkMessage).with_body(text)
    }

    /// An error that only prints: its words, and those of its causes. `code` names what it knows.
    pub(crate) fn words(
        error: &(dyn Error + 'static),
        code: impl FnMut(&(dyn Error + 'static)) -> Option<&'static str>,
    ) -> Self {
        let mut causes = FailureCause::chain(error, code).into_iter();
        let own = causes.next().unwrap_or_default();
        let told = Self::text(own.message).with_causes(causes.collect());
        Self { code: own.code.map(Into::into), ..told }
    }

    pub(crate) fn with_body(mut self, body: impl Into<Cow<'a, str>>) -> Self {
        self.body = match body.into() {
            Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
            Cow::Owned(text) => Cow::Owned(text.into_bytes()),
        };
        self
    }

    pub(crate) fn with_causes(mut self, causes: Vec<FailureCause>) -> Self {
        self.causes = causes;
        self
    }

    /// Shows it.
    pub(crate) fn with_signal<R>(&self, with: impl FnOnce(&Signal<'_>) -> R) -> R {
        let headers: Vec<(&str, &str)> = self.headers.iter().map(|(name, value)| (*name, &**value)).collect();
        let causes: Vec<Cause<'_>> = self
            .causes
            .iter()
            .map(|own| {
                let mut cause = Cause::new(&own.message);
                cause.code = own.code.as_deref();
                cause
            })
            .collect();
        let mut signal =
            Signal::new(self.surface).with_headers(&headers).with_body(&self.body).with_causes(&causes);
        signal.status = self.status;
        signal.code = self.code.as_deref();
        with(&signal)
    }
}

#[cfg(any(feature = "reqwest", feature = "aws"))]
mod below_http {
    use super::Told;
    use failover_classify::Surface;
    use failover_provider::{FailureCause, io_code};
    use std::error::Error;

    impl Told<'_> {
        /// The connection: not made, or broken.
        pub(crate) fn transport(error: &(dyn Error + 'static)) -> Self {
            let mut over_http = false;
            let causes = FailureCause::chain(error, |error| {
                over_http |= error.is::<hyper::Error>();
                code(error)
            });
            let told = causes.iter().find_map(|cause| cause.code.clone());
            // A connection that the peer was closing when it was used, a stream that it reset, a farewell by HTTP/2.
            let told = told.or_else(|| over_http.then(|| "ECONNRESET".to_owned()));
            Self { code: told.map(Into::into), ..Self::new(Surface::Transport).with_causes(causes) }
        }

        /// The connection broke inside an answer. No code: the runner repeats at once where one says that a connection
        /// broke, and here the provider had begun to answer.
        pub(crate) fn cut(error: &(dyn Error + 'static)) -> Self {
            Self::new(Surface::Transport).with_causes(FailureCause::chain(error, |_| None))
        }

        /// A connection that failed, where a limit of the client's ended it: the code of a limit, whatever was going on.
        pub(crate) fn timeout(error: &(dyn Error + 'static)) -> Self {
            Self { code: Some("ETIMEDOUT".into()), ..Self::transport(error) }
        }
    }

    /// Whether somewhere in the chain a connection failed.
    pub(crate) fn broke(error: &(dyn Error + 'static)) -> bool {
        let mut broke = false;
        FailureCause::chain(error, |error| {
            broke |= error.is::<hyper::Error>() || error.is::<std::io::Error>();
            None
        });
        broke
    }

    fn code(error: &(dyn Error + 'static)) -> Option<&'static str> {
        let Some(error) = error.downcast_ref::<hyper::Error>() else { return io_code(error) };
        if error.is_parse() {
            return Some("EPROTO");
        }
        // The peer closed politely in the middle, which the operating system has no name for.
        error.is_incomplete_message().then_some("ECONNRESET")
    }
}

#[cfg(any(feature = "reqwest", feature = "aws"))]
pub(crate) use below_http::broke;

#[cfg(feature = "reqwest")]
mod answered {
    use super::Told;
    use http::HeaderMap;

    impl<'a> Told<'a> {
        /// An answer with its status, headers and body.
        pub(crate) fn answer(status: u16, headers: Option<&'a HeaderMap>, body: &'a [u8]) -> Self {
            let headers = headers.into_iter().flatten();
            let headers =
                headers.map(|(name, value)| (name.as_str(), String::from_utf8_lossy(value.as_bytes())));
            Self { status: Some(status), headers: headers.collect(), body: body.into(), ..Self::default() }
        }
    }
}
