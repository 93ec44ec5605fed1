//! Running programs and finding files.

use std::fmt;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// How a command of this tool ends.
pub(crate) type Outcome = Result<(), Faults>;

/// What was wrong, a line each.
#[derive(Debug, Default)]
pub(crate) struct Faults(pub(crate) Vec<String>);

impl Faults {
    /// One fault.
    pub(crate) fn one(text: impl Into<String>) -> Self {
        Self(vec![text.into()])
    }

    /// `Ok` if there is none.
    pub(crate) fn into_outcome(self) -> Outcome {
        if self.0.is_empty() { Ok(()) } else { Err(self) }
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [one] => f.write_str(one),
            many => {
                write!(f, "{} faults", many.len())?;
                many.iter().try_for_each(|fault| write!(f, "\n  {fault}"))
            }
        }
    }
}

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// `cargo` with these arguments, at the root.
pub(crate) fn cargo(args: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args).current_dir(root());
    command
}

/// Whether a program is installed.
pub(crate) fn has(program: &str) -> bool {
    let asked = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    asked.is_ok_and(|status| status.success())
}

/// Runs a command; its output goes through.
pub(crate) fn check(mut command: Command) -> Outcome {
    let shown = show(&command);
    let status = command.status().map_err(|error| Faults::one(format!("{shown}: {error}")))?;
    if status.success() { Ok(()) } else { Err(Faults::one(format!("{shown}: {status}"))) }
}

/// Runs a command and returns what it prints on stdout.
pub(crate) fn read(mut command: Command) -> Result<String, Faults> {
    let shown = show(&command);
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| Faults::one(format!("{shown}: {error}")))?;
    if !output.status.success() {
        return Err(Faults::one(format!("{shown}: {}", output.status)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs a command, passes its stdout and stderr through, and hands each line to `line` too.
pub(crate) fn watch(mut command: Command, mut line: impl FnMut(&str)) -> Outcome {
    let shown = show(&command);
    let fail = |error: std::io::Error| Faults::one(format!("{shown}: {error}"));
    let (reader, writer) = std::io::pipe().map_err(fail)?;
    command.stdout(writer.try_clone().map_err(fail)?).stderr(writer);
    let mut child = command.spawn().map_err(fail)?;
    // The command holds the writing end too: the pipe would never end.
    drop(command);
    for text in BufReader::new(reader).lines().map_while(Result::ok) {
        println!("{text}");
        line(&text);
    }
    let status = child.wait().map_err(fail)?;
    if status.success() { Ok(()) } else { Err(Faults::one(format!("{shown}: {status}"))) }
}

fn show(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_stem().unwrap_or_default();
    let mut text = program.to_string_lossy().into_owned();
    for arg in command.get_args() {
        text.push(' ');
        text.push_str(&arg.to_string_lossy());
    }
    text
}

/// Every file that git knows or would add, as paths from the root. Deleted files are left out.
pub(crate) fn files() -> Result<Vec<String>, Faults> {
    let mut git = Command::new("git");
    git.args(["ls-files", "--cached", "--others", "--exclude-standard"]).current_dir(root());
    let mut files: Vec<String> = read(git)?.lines().map(str::to_owned).collect();
    files.retain(|file| root().join(file).exists());
    files.sort();
    files.dedup();
    Ok(files)
}

/// The text of a file of the workspace.
pub(crate) fn text(file: &str) -> Result<String, Faults> {
    std::fs::read_to_string(root().join(file)).map_err(|error| Faults::one(format!("{file}: {error}")))
}

/// Whether a file's name ends in `.rs`.
pub(crate) fn is_rust(file: &str) -> bool {
    Path::new(file).extension().is_some_and(|extension| extension == "rs")
}
