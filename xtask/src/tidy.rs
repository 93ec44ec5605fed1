//! Habits of the house that no compiler checks.

use crate::layers;
use crate::run::{Faults, Outcome, files, is_rust, text};

/// Longest Rust file without its tests, in lines.
const MAX_LINES: usize = 800;

/// Files that may be longer, and why. A stale entry is a fault.
const LONG: &[(&str, &str)] = &[];

/// What may stand at the top level besides dot files.
const TOP: &[&str] = &[
    "Cargo.toml",
    "Cargo.lock",
    "crates",
    "xtask",
    "docs",
    "fixtures",
    "README.md",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "clippy.toml",
    "deny.toml",
    "rustfmt.toml",
];

/// Texts that betray the machine a file was written on, split so that this file does not hold them.
const STRAY: &[(&str, &str)] = &[("/wo", "rk/"), ("/ro", "ot/"), ("/fa", "rm/")];

/// Checks them all.
pub(crate) fn main(_args: &[String]) -> Outcome {
    let mut faults = Faults::default();
    let files = files()?;
    top_level(&files, &mut faults);
    for file in files.iter().filter(|file| is_rust(file)) {
        rust_file(file, &text(file)?, &mut faults);
    }
    for (file, reason) in LONG {
        if !files.iter().any(|known| known == file) || length(&text(file)?) <= MAX_LINES {
            faults.0.push(format!("{file} is listed as long ({reason}), and is not"));
        }
    }
    for file in files.iter().filter(|file| text_file(file) && !file.starts_with("fixtures/corpus/")) {
        stray(file, &text(file)?, &mut faults);
    }
    for file in files.iter().filter(|file| file.ends_with("/Cargo.toml") && !file.starts_with("fixtures/")) {
        if !file.ends_with("fuzz/Cargo.toml")
            && file != layers::APART
            && !text(file)?.contains("[lints]\nworkspace = true")
        {
            faults.0.push(format!("{file}: lacks `[lints] workspace = true`"));
        }
    }
    if !text(layers::APART)?.contains(&lints(&text("Cargo.toml")?)) {
        faults.0.push(format!("{}: its lints are not those of the workspace", layers::APART));
    }
    let is_page = |file: &str| file.rsplit('.').next() == Some("md") && !file.starts_with("fixtures/");
    for file in files.iter().filter(|file| is_page(file)) {
        links(file, &text(file)?, &files, &mut faults);
    }
    readme(&mut faults)?;
    faults.into_outcome()?;
    println!("{} files are tidy", files.len());
    Ok(())
}

fn top_level(files: &[String], faults: &mut Faults) {
    let mut seen: Vec<&str> = files.iter().filter_map(|file| file.split('/').next()).collect();
    seen.dedup();
    for name in seen.iter().filter(|name| !name.starts_with('.') && !TOP.contains(name)) {
        faults.0.push(format!("{name} does not belong at the top level"));
    }
}

fn text_file(file: &str) -> bool {
    [".rs", ".md", ".toml", ".json", ".json5", ".yml", "/run"].iter().any(|end| file.ends_with(end))
}

/// Lines up to the test module at the foot of the file.
fn length(source: &str) -> usize {
    source.lines().take_while(|line| *line != "#[cfg(test)]").count()
}

fn rust_file(file: &str, source: &str, faults: &mut Faults) {
    let in_tests = file.contains("/tests/") || file.ends_with("/tests.rs") || file.contains("/benches/");
    if !in_tests && length(source) > MAX_LINES && !LONG.iter().any(|(known, _)| *known == file) {
        faults.0.push(format!("{file}: {} lines without tests, at most {MAX_LINES}", length(source)));
    }
    let first = source.lines().next().unwrap_or_default();
    if !first.starts_with("//!") && !file.ends_with("/build.rs") {
        faults.0.push(format!("{file}: the first line says what the file is for (`//! …`)"));
    }
    for (at, line) in source.lines().enumerate() {
        let code = line.trim_start();
        for unfinished in ["todo!(", "unimplemented!(", "dbg!("] {
            if code.contains(unfinished) && !code.contains(&format!("\"{unfinished}")) {
                faults.0.push(format!("{file}:{}: {unfinished}…)", at + 1));
            }
        }
    }
}

fn stray(file: &str, source: &str, faults: &mut Faults) {
    for (at, line) in source.lines().enumerate() {
        if STRAY.iter().any(|(head, tail)| line.contains(&format!("{head}{tail}"))) {
            faults.0.push(format!("{file}:{}: a path of somebody's machine", at + 1));
        }
    }
}

/// The tables of lints that a workspace's manifest holds, as a crate outside of it writes them.
fn lints(manifest: &str) -> String {
    let mut inside = false;
    let mut tables = String::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            inside = line.starts_with("[workspace.lints");
        }
        if inside {
            tables.push_str(&line.replacen("[workspace.", "[", 1));
            tables.push('\n');
        }
    }
    tables
}

/// Links between pages lead somewhere.
fn links(file: &str, page: &str, files: &[String], faults: &mut Faults) {
    let dir = file.rsplit_once('/').map_or("", |(dir, _)| dir);
    for (at, line) in page.lines().enumerate() {
        let targets = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for target in targets.filter(|target| !target.contains("://") && !target.starts_with('#')) {
            let path = target.split('#').next().unwrap_or_default();
            let mut place: Vec<&str> = dir.split('/').filter(|part| !part.is_empty()).collect();
            for part in path.split('/') {
                match part {
                    ".." => drop(place.pop()),
                    part => place.push(part),
                }
            }
            let place = place.join("/");
            if !files.iter().any(|known| *known == place || known.starts_with(&format!("{place}/"))) {
                faults.0.push(format!("{file}:{}: the link to {target} leads nowhere", at + 1));
            }
        }
    }
}

/// The README's crate map lists every crate, and only crates that exist.
fn readme(faults: &mut Faults) -> Result<(), Faults> {
    let readme = text("README.md")?;
    let listed: Vec<&str> = readme
        .lines()
        .filter_map(|line| line.strip_prefix("| `failover"))
        .filter_map(|line| line.split('`').next())
        // A command (`failover run`) is not a crate.
        .filter(|tail| tail.is_empty() || tail.starts_with('-'))
        .collect();
    let mut known = layers::package_names()?;
    known.retain(|name| name.starts_with("failover"));
    for name in &known {
        let tail = name.strip_prefix("failover").unwrap_or(name);
        if !listed.contains(&tail) {
            faults.0.push(format!("README.md: the crate map lacks {name}"));
        }
    }
    for tail in listed {
        if !known.iter().any(|name| name.strip_prefix("failover") == Some(tail)) {
            faults.0.push(format!("README.md: the crate map lists failover{tail}, which does not exist"));
        }
    }
    Ok(())
}
