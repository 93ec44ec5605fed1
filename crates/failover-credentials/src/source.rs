//! Reading a secret from where it is kept, at each use, within bounds.

use failover_types::{Clock, Secret, SecretError, SecretSource};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};

/// Longest value read, in bytes: more than any key, less than a harmful file.
const MAX_BYTES: u64 = 64 * 1024;

/// Why a secret cannot be had. Never the secret itself, nor the arguments of a command, which may hold one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The variable is not set.
    #[error("the environment variable {name} is not set; set it, or store the key itself")]
    NoVariable {
        /// Its name.
        name: String,
    },
    /// The file cannot be read.
    #[error("the secret file {} cannot be read", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A directory, a pipe or a device.
    #[error("{} is no regular file", path.display())]
    NotAFile {
        /// Which file.
        path: PathBuf,
    },
    /// Others may read the file.
    #[error("the secret file {} can be read by others (mode {mode:03o}); run: chmod 600 {}", path.display(), path.display())]
    Exposed {
        /// Which file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The program cannot be started.
    #[error("the secret command {program} cannot be run")]
    Command {
        /// The program, without its arguments.
        program: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A command without a program.
    #[error("the secret command is empty; name a program")]
    NoCommand,
    /// The program failed.
    #[error("the secret command {program} failed ({status})")]
    CommandFailed {
        /// The program, without its arguments.
        program: String,
        /// How it ended.
        status: String,
    },
    /// The source gave nothing in time.
    #[error("{what} gave no secret within {} ms", limit.as_millis())]
    TooSlow {
        /// Which source.
        what: String,
        /// The limit.
        limit: Duration,
    },
    /// The source gives more than 64 KiB, or no text.
    #[error("{what} gives no text of at most {MAX_BYTES} bytes")]
    NoText {
        /// Which source.
        what: String,
    },
    /// What the source gives cannot be a secret.
    #[error("what {what} gives is no secret")]
    Unfit {
        /// Which source.
        what: String,
        /// What is wrong with it.
        #[source]
        source: SecretError,
    },
    /// This software knows no such source.
    #[error("this version knows no such source of secrets; upgrade to use it")]
    Unknown,
}

/// How the environment is looked up.
pub type Environment = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Reads secrets from their sources.
#[derive(Clone)]
pub struct Secrets {
    clock: Arc<dyn Clock>,
    environment: Environment,
    limit: Duration,
    force: bool,
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secrets")
            .field("limit", &self.limit)
            .field("force", &self.force)
            .finish_non_exhaustive()
    }
}

impl Secrets {
    /// Reads from the process's own environment, with 10 s for files and commands.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let environment: Environment = Arc::new(process_environment);
        Self { clock, environment, limit: Duration::from_secs(10), force: false }
    }

    /// Looks variables up elsewhere.
    #[must_use]
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = environment;
        self
    }

    /// Gives files and commands so long.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Takes secret files that others can read, too.
    #[must_use]
    pub fn force(mut self, force: bool) -> Self {
        self.force = force;
        self
    }

    /// Reads a secret.
    ///
    /// # Errors
    ///
    /// [`SourceError`] says which source failed and what to do, without any secret.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: a command that is still running is killed.
    pub async fn read(&self, source: &SecretSource) -> Result<Secret, SourceError> {
        if let Some(read) = self.at_hand(source) {
            return read;
        }
        match source {
            SecretSource::File(path) => {
                let what = format!("the file {}", path.display());
                let (owned, force) = (path.clone(), self.force);
                // A file on a dead network drive must not hold up the runtime.
                let read = tokio::task::spawn_blocking(move || read_file(&owned, force));
                let bytes = self.within(&what, read).await?.map_err(|lost| SourceError::File {
                    path: path.clone(),
                    source: std::io::Error::other(lost),
                })??;
                fit(|| what, &bytes)
            }
            SecretSource::Command(argv) => {
                let (program, arguments) = argv.split_first().ok_or(SourceError::NoCommand)?;
                let what = format!("the command {program}");
                let bytes = self.within(&what, run(program, arguments)).await??;
                fit(|| what, &bytes)
            }
            SecretSource::Literal(_) | SecretSource::Env(_) | _ => Err(SourceError::Unknown),
        }
    }

    /// As [`Secrets::read`], for a source that nobody need wait for; `None` for the others.
    pub fn at_hand(&self, source: &SecretSource) -> Option<Result<Secret, SourceError>> {
        match source {
            SecretSource::Literal(secret) => Some(Ok(secret.clone())),
            SecretSource::Env(name) => Some(match (self.environment)(name) {
                Some(text) => fit(|| format!("the environment variable {name}"), text.as_bytes()),
                None => Err(SourceError::NoVariable { name: name.clone() }),
            }),
            SecretSource::File(_) | SecretSource::Command(_) | _ => None,
        }
    }

    async fn within<T>(&self, what: &str, work: impl Future<Output = T>) -> Result<T, SourceError> {
        let deadline = self.clock.now().after(self.limit);
        tokio::select! {
            biased;
            done = work => Ok(done),
            () = self.clock.sleep_until(deadline) => {
                Err(SourceError::TooSlow { what: what.to_owned(), limit: self.limit })
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the secret source that reads the environment")]
fn process_environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn fit(what: impl FnOnce() -> String, bytes: &[u8]) -> Result<Secret, SourceError> {
    let Ok(text) = std::str::from_utf8(bytes) else { return Err(SourceError::NoText { what: what() }) };
    Secret::parse(text).map_err(|source| SourceError::Unfit { what: what(), source })
}

fn read_file(path: &Path, force: bool) -> Result<Vec<u8>, SourceError> {
    let failed = |source| SourceError::File { path: path.to_owned(), source };
    // Opening a pipe would wait for a writer: look before.
    if !std::fs::metadata(path).map_err(failed)?.is_file() {
        return Err(SourceError::NotAFile { path: path.to_owned() });
    }
    let mut file = File::open(path).map_err(failed)?;
    check_private(path, &file, force)?;
    let mut bytes = Vec::new();
    file.by_ref().take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(SourceError::NoText { what: format!("the file {}", path.display()) });
    }
    Ok(bytes)
}

/// Looks at the file that was opened, not at the path again.
#[cfg(unix)]
fn check_private(path: &Path, file: &File, force: bool) -> Result<(), SourceError> {
    use std::os::unix::fs::PermissionsExt;
    let metadata = file.metadata().map_err(|source| SourceError::File { path: path.to_owned(), source })?;
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o077 != 0 && !force {
        return Err(SourceError::Exposed { path: path.to_owned(), mode });
    }
    Ok(())
}

#[cfg(not(unix))]
fn check_private(_: &Path, _: &File, _: bool) -> Result<(), SourceError> {
    Ok(())
}

async fn run(program: &str, arguments: &[String]) -> Result<Vec<u8>, SourceError> {
    let failed = |source| SourceError::Command { program: program.to_owned(), source };
    let mut child = tokio::process::Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        // What it says there may quote the secret: it is not shown, and so not read.
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(failed)?;
    let bytes = match child.stdout.take() {
        Some(output) => read_some(output).await.map_err(failed)?,
        None => Vec::new(),
    };
    if bytes.len() as u64 > MAX_BYTES {
        return Err(SourceError::NoText { what: format!("the command {program}") });
    }
    let status = child.wait().await.map_err(failed)?;
    if !status.success() {
        return Err(SourceError::CommandFailed { program: program.to_owned(), status: status.to_string() });
    }
    Ok(bytes)
}

async fn read_some(output: impl AsyncRead + Unpin) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    output.take(MAX_BYTES + 1).read_to_end(&mut bytes).await?;
    Ok(bytes)
}
