//! Exit codes: one table, shown by `failover help` and compared with the documents by a test.

use std::fmt::Write as _;

/// How the command ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It worked.
    Ok,
    /// The request failed, or a line of a batch could not be read.
    Failed,
    /// The command line is wrong.
    Usage,
    /// The config is missing or wrong.
    Config,
    /// The state directory cannot be used.
    State,
    /// Every candidate failed or was skipped.
    Exhausted,
    /// A port or another resource of this machine is taken.
    Busy,
    /// Interrupted by the user.
    Interrupted,
}

/// Code and meaning of each.
pub(crate) const CODES: &[(Exit, u8, &str)] = &[
    (Exit::Ok, 0, "it worked"),
    (Exit::Failed, 1, "the request failed, or a line of a batch could not be read"),
    (Exit::Usage, 2, "the command line is wrong"),
    (Exit::Config, 3, "the config is missing or wrong"),
    (Exit::State, 4, "the state directory cannot be used"),
    (Exit::Exhausted, 5, "every candidate failed or was skipped"),
    (Exit::Busy, 6, "a port or another resource of this machine is taken"),
    (Exit::Interrupted, 130, "interrupted"),
];

impl Exit {
    /// The number that the shell sees.
    pub(crate) fn code(self) -> u8 {
        CODES.iter().find(|(exit, ..)| *exit == self).map_or(1, |(_, code, _)| *code)
    }
}

/// The table as help shows it.
pub(crate) fn help() -> String {
    let mut text = String::from("Exit codes:\n");
    for (_, code, meaning) in CODES {
        let _ = writeln!(text, "  {code:>3}  {meaning}");
    }
    text
}

/// A failure of a command: one clear message and how the process ends.
#[derive(Debug)]
pub(crate) struct Failure {
    /// How the process ends.
    pub(crate) exit: Exit,
    /// What went wrong; empty where everything was said already.
    pub(crate) message: String,
    /// What to do, where that can be said.
    pub(crate) hint: Option<String>,
}

impl Failure {
    /// A failure with a message.
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), hint: None }
    }

    /// A failure that has been shown already.
    pub(crate) fn shown(exit: Exit) -> Self {
        Self::new(exit, "")
    }

    /// Adds what to do.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// A reader that went away ends the command quietly.
impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            return Self::shown(Exit::Ok);
        }
        Self::new(Exit::Failed, format!("cannot write the output: {error}"))
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        if error.is_io() {
            std::io::Error::from(error).into()
        } else {
            Self::new(Exit::Failed, error.to_string())
        }
    }
}

/// A name on the command line that nothing stands behind.
pub(crate) fn unknown(unknown: &failover::UnknownName) -> Failure {
    Failure::new(Exit::Usage, unknown.to_string()).hint(unknown.hint())
}

/// The model that is meant on the command line: an alias of the config, or `provider/model`, either with `@profile`.
pub(crate) fn model(
    chain: &failover::chain::ChainConfig,
    written: &str,
) -> Result<failover::types::ModelSelector, Failure> {
    chain.aliases.read(written).map_err(|error| {
        let hint = "write provider/model, provider/model@provider:profile, or an alias of the config";
        Failure::new(Exit::Usage, error.to_string()).hint(hint)
    })
}

/// An error with its causes, in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}
