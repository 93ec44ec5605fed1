//! `docs/cli.md` is what the command says of itself, and the tables hold everything that the code reads.

use super::*;
use clap::CommandFactory;
use std::collections::BTreeSet;
use std::fmt::Write as _;

const HEAD: &str = "# The command line

Generated from the command itself: `UPDATE_DOCS=1 cargo nextest run -p failover-cli reference`. A test compares.
Every command takes `--help`; `failover completions SHELL` and `failover man` print what shells and `man` want.
With `--json` an error is an object on standard error: `error`, `hint` (or null), and `exit`, its code.
";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn table(page: &mut String, head: [&str; 2], rows: impl Iterator<Item = (String, String)>) {
    let _ = writeln!(page, "\n| {} | {} |\n|---|---|", head[0], head[1]);
    for (name, what) in rows {
        let _ = writeln!(page, "| `{name}` | {what} |");
    }
}

fn commands(page: &mut String, command: &mut Command, path: &str) {
    for inner in command.get_subcommands_mut().filter(|inner| inner.get_name() != "help") {
        let path = format!("{path} {}", inner.get_name());
        let help = inner.render_long_help().to_string();
        let help: Vec<&str> = help.lines().map(str::trim_end).collect();
        let _ = writeln!(page, "\n## `{path}`\n\n```text\n{}\n```", help.join("\n").trim_end());
        commands(page, inner, &path);
    }
}

fn render() -> String {
    let mut page = HEAD.to_owned();
    page.push_str("\n## Exit codes\n");
    let codes = CODES.iter().map(|(_, code, meaning)| (code.to_string(), (*meaning).to_owned()));
    table(&mut page, ["code", "meaning"], codes);
    for (title, head, rows) in [
        ("Environment variables", ["variable", "what it does"], ENVIRONMENT),
        ("Files", ["path", "what it is"], FILES),
    ] {
        let _ = writeln!(page, "\n## {title}");
        table(&mut page, head, rows.iter().map(|(name, what)| ((*name).to_owned(), (*what).to_owned())));
    }
    let mut command = crate::Cli::command();
    command.build();
    commands(&mut page, &mut command, "failover");
    page
}

// spec: U-2
#[test]
fn the_page_of_commands_is_what_the_command_says() {
    let file = root().join("docs/cli.md");
    let page = render();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&file, &page).unwrap();
    }
    let written = std::fs::read_to_string(&file).unwrap_or_default();
    for (at, (wanted, found)) in page.lines().zip(written.lines()).enumerate() {
        assert_eq!(wanted, found, "docs/cli.md:{}: stale, see its head", at + 1);
    }
    assert_eq!(page.lines().count(), written.lines().count(), "docs/cli.md is stale, see its head");
}

/// Names of variables in the text: what stands in quotes and looks like one of ours.
fn variables(source: &str) -> impl Iterator<Item = &str> {
    source.split('"').filter(|word| {
        let ours = word.starts_with("FAILOVER_") || word.starts_with("OPENCLAW_");
        ours && word.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
    })
}

fn sources(dir: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if !matches!(name.as_str(), "tests" | "benches" | "examples" | "target" | "fuzz") {
                sources(&path, found);
            }
        } else if path.extension().is_some_and(|end| end == "rs")
            && name != "tests.rs"
            && name != "reference.rs"
        {
            let source = std::fs::read_to_string(&path).unwrap();
            let code = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
            found.extend(variables(code).map(str::to_owned));
        }
    }
}

#[test]
fn every_variable_that_the_code_reads_is_listed() {
    let mut found = BTreeSet::new();
    sources(&root().join("crates"), &mut found);
    let listed: BTreeSet<String> = ENVIRONMENT
        .iter()
        .map(|(name, _)| (*name).to_owned())
        .filter(|name| name.starts_with("FAILOVER_") || name.starts_with("OPENCLAW_"))
        .collect();
    assert_eq!(found, listed);
}

#[test]
fn manual_pages_name_codes_variables_and_files() {
    let dir = tempfile::tempdir().unwrap();
    let args = ManArgs { dir: Some(dir.path().to_owned()) };
    let mut said = Vec::new();
    man(&args, crate::Cli::command(), &mut said).unwrap();
    let main = std::fs::read_to_string(dir.path().join("failover.1")).unwrap();
    for wanted in ["EXIT STATUS", "ENVIRONMENT", "FAILOVER_HOME", "FILES", "failover.json5"] {
        assert!(main.contains(wanted), "{wanted} is missing");
    }
    let run = std::fs::read_to_string(dir.path().join("failover-run.1")).unwrap();
    assert!(run.contains("PROMPT"));
}
