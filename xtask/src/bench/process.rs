//! Processes on a core of their own, and what they cost.

use super::io;
use crate::run::{Faults, read};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How long a process that is asked to end may take.
const FAREWELL: Duration = Duration::from_secs(5);

/// A process that ends with its owner, in its own way where it can: one that counts what it does tells at its end.
pub(super) struct Process {
    child: Child,
    what: String,
}

impl Process {
    /// Starts a program on one core; its output goes to `log`.
    pub(super) fn start(
        core: usize,
        program: &Path,
        args: &[String],
        environment: &[(&str, String)],
        log: &Path,
    ) -> Result<Self, Faults> {
        let what = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let file = std::fs::File::create(log).map_err(|error| io(&what, error))?;
        let child = pinned(core, program, args)
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(file)
            .spawn()
            .map_err(|error| io(&what, error))?;
        Ok(Self { child, what })
    }

    /// Starts a program on one core and reads the first line that it prints.
    pub(super) fn telling(core: usize, program: &Path, args: &[String]) -> Result<(Self, String), Faults> {
        let what = args.iter().take(2).cloned().collect::<Vec<_>>().join(" ");
        let mut child = pinned(core, program, args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| io(&what, error))?;
        let mut line = String::new();
        if let Some(out) = child.stdout.take() {
            BufReader::new(out).read_line(&mut line).map_err(|error| io(&what, error))?;
        }
        let this = Self { child, what };
        if line.is_empty() {
            Err(io(&this.what, "it ended before it said anything"))
        } else {
            Ok((this, line))
        }
    }

    /// Processor time so far, in seconds. `taskset` becomes what it starts, so that this is the program's own.
    pub(super) fn cpu(&self) -> Result<f64, Faults> {
        let path = format!("/proc/{}/stat", self.child.id());
        let text = std::fs::read_to_string(path).map_err(|error| io(&self.what, error))?;
        // The name before the fields may hold anything; user and system time are the 12th and 13th behind it.
        let fields: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok());
        let ticks = ticks(11).zip(ticks(12)).ok_or_else(|| io(&self.what, "no times"))?;
        Ok((ticks.0 + ticks.1) / TICKS_A_SECOND)
    }

    /// Memory in use, in bytes.
    pub(super) fn memory(&self) -> Result<f64, Faults> {
        let path = format!("/proc/{}/status", self.child.id());
        let text = std::fs::read_to_string(path).map_err(|error| io(&self.what, error))?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        Ok(kib.ok_or_else(|| io(&self.what, "no memory"))? * 1024.0)
    }

    /// Whether it is still there.
    pub(super) fn lives(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

/// `USER_HZ`, which Linux shows to programs on every architecture.
const TICKS_A_SECOND: f64 = 100.0;

impl Drop for Process {
    fn drop(&mut self) {
        let pid = self.child.id().to_string();
        let asked = Command::new("kill").args(["-TERM", &pid]).status().is_ok_and(|status| status.success());
        let pause = Duration::from_millis(20);
        let mut patience = if asked { FAREWELL } else { Duration::ZERO };
        while !patience.is_zero() && self.lives() {
            std::thread::sleep(pause);
            patience = patience.saturating_sub(pause);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn pinned(core: usize, program: &Path, args: &[String]) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", &core.to_string()]).arg(program).args(args);
    command
}

/// Runs a program on one core to its end and returns what it prints.
pub(super) fn output(core: usize, program: &Path, args: &[String]) -> Result<String, Faults> {
    read(pinned(core, program, args))
}
