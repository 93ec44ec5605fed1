//! What third parties do, tried from outside: an adapter and a store on the packaged crates, and an adapter that is
//! made from the template.

use crate::new;
use crate::run::{Faults, Outcome, cargo, check, files, root};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the examples depend on, and what that depends on in turn.
const PACKAGED: &[&str] = &[
    "failover-types",
    "failover-classify",
    "failover-store",
    "failover-provider",
    "failover-http",
    "failover-testkit",
];

/// The adapter, whose two functions also go into the template.
const ADAPTER: &str = "fixtures/outside-provider";
const STORE: &str = "fixtures/outside-store";
/// The functions that the template leaves to be filled in stand in these files.
const FILLED_IN: &[&str] = &["src/map.rs", "src/decode.rs"];
/// The crate that is made from the template.
const SCAFFOLD: &str = "scaffold";
/// What of the workspace a crate in it needs.
const WORKSPACE: &[&str] = &["crates/", "xtask/", "Cargo.", "README.md"];

/// Runs them all.
pub(crate) fn main(_args: &[String]) -> Outcome {
    let place = root().join("target/outside");
    let versions = unpacked(&place.join("crates"))?;
    for example in [ADAPTER, STORE] {
        packaged(&place, example, &versions)?;
    }
    template(&place.join("workspace"))
}

fn io(path: &Path, error: &std::io::Error) -> Faults {
    Faults::one(format!("{}: {error}", path.display()))
}

fn read(path: &Path) -> Result<Vec<u8>, Faults> {
    fs::read(path).map_err(|error| io(path, &error))
}

/// Makes a folder hold these files and no others. What is the same already keeps its time stamp: cargo looks at nothing
/// else when it decides what to build again.
fn mirror(folder: &Path, wanted: Vec<(String, Vec<u8>)>) -> Outcome {
    let mut stale: BTreeSet<PathBuf> = BTreeSet::new();
    list(folder, &mut stale)?;
    for (name, bytes) in wanted {
        let path = folder.join(name);
        stale.remove(&path);
        if fs::read(&path).is_ok_and(|known| known == bytes) {
            continue;
        }
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(|error| io(parent, &error))?;
        }
        fs::write(&path, bytes).map_err(|error| io(&path, &error))?;
    }
    stale.iter().try_for_each(|path| fs::remove_file(path).map_err(|error| io(path, &error)))
}

/// Every file below a folder; none where there is no folder.
fn list(folder: &Path, found: &mut BTreeSet<PathBuf>) -> Outcome {
    if !folder.exists() {
        return Ok(());
    }
    for entry in fs::read_dir(folder).map_err(|error| io(folder, &error))? {
        let path = entry.map_err(|error| io(folder, &error))?.path();
        if path.is_dir() {
            list(&path, found)?;
        } else {
            found.insert(path);
        }
    }
    Ok(())
}

/// The files of the repository that `keep` names anew.
fn copies(keep: impl Fn(&str) -> Option<String>) -> Result<Vec<(String, Vec<u8>)>, Faults> {
    let named = files()?.into_iter().filter_map(|file| keep(&file).map(|name| (file, name)));
    named.map(|(file, name)| Ok((name, read(&root().join(file))?))).collect()
}

/// Packages the crates as they would be published, and unpacks them: the lines that put them in the registry's place.
fn unpacked(crates: &Path) -> Result<String, Faults> {
    let mut package = cargo(&["package", "--no-verify", "--allow-dirty", "--quiet"]);
    for name in PACKAGED {
        package.args(["--package", name]);
    }
    check(package)?;
    let fresh = crates.with_extension("fresh");
    if fresh.exists() {
        fs::remove_dir_all(&fresh).map_err(|error| io(&fresh, &error))?;
    }
    fs::create_dir_all(&fresh).map_err(|error| io(&fresh, &error))?;
    let version = env!("CARGO_PKG_VERSION");
    let mut patch = "\n[patch.crates-io]\n".to_owned();
    for name in PACKAGED {
        let archive = root().join(format!("target/package/{name}-{version}.crate"));
        let mut tar = Command::new("tar");
        tar.arg("-xzf").arg(&archive).arg("-C").arg(&fresh);
        check(tar)?;
        // Writing to a string does not fail.
        let _ = writeln!(patch, "{name} = {{ path = \"../crates/{name}-{version}\" }}");
    }
    // Everything in an archive has the same old date.
    let mut found = BTreeSet::new();
    list(&fresh, &mut found)?;
    let relative = |path: &Path| path.strip_prefix(&fresh).unwrap_or(path).to_string_lossy().into_owned();
    let wanted: Result<Vec<_>, Faults> = found.iter().map(|path| Ok((relative(path), read(path)?))).collect();
    mirror(crates, wanted?)?;
    Ok(patch)
}

/// Runs an example's tests on the packaged crates.
fn packaged(place: &Path, example: &str, patch: &str) -> Outcome {
    let inside = |file: &str| file.strip_prefix(example)?.strip_prefix('/').map(str::to_owned);
    let mut wanted = copies(inside)?;
    for (name, bytes) in &mut wanted {
        if name == "Cargo.toml" {
            bytes.extend_from_slice(patch.as_bytes());
        }
    }
    // The same versions of everything else as here, so that they are not built again.
    wanted.push(("Cargo.lock".to_owned(), read(&root().join("Cargo.lock"))?));
    let home = place.join(Path::new(example).file_name().unwrap_or_default());
    mirror(&home, wanted)?;
    test(&home, &[])
}

/// Makes a crate from the template in a copy of the workspace, fills in its two functions, and runs its tests.
fn template(copied: &Path) -> Outcome {
    let home = format!("crates/failover-provider-{SCAFFOLD}");
    let part = |file: &str| WORKSPACE.iter().any(|part| file.starts_with(part)).then(|| file.to_owned());
    let made = copied.join(&home);
    if made.exists() {
        fs::remove_dir_all(&made).map_err(|error| io(&made, &error))?;
    }
    mirror(copied, copies(part)?)?;
    new::provider(copied, SCAFFOLD)?;
    for file in FILLED_IN {
        let path = made.join(file);
        let filled = read(&root().join(ADAPTER).join(file))?;
        fs::write(&path, filled).map_err(|error| io(&path, &error))?;
    }
    test(copied, &["--package", &format!("failover-provider-{SCAFFOLD}")])
}

fn test(home: &Path, more: &[&str]) -> Outcome {
    let mut test = cargo(&["test", "--quiet"]);
    test.args(more).current_dir(home).env("CARGO_TARGET_DIR", root().join("target"));
    // As the workspace has it for what it depends on, so that this is built once.
    test.env("CARGO_PROFILE_DEV_DEBUG", "false");
    check(test)
}
