//! What third parties do, tried from outside: an adapter crate on the packaged crates, and one made from the template.

use crate::new;
use crate::run::{Faults, Outcome, cargo, check, files, root};
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

/// What the example depends on, and what that depends on in turn.
const PACKAGED: &[&str] = &[
    "failover-types",
    "failover-classify",
    "failover-store",
    "failover-provider",
    "failover-http",
    "failover-testkit",
];

const EXAMPLE: &str = "fixtures/outside-provider";
/// The functions that the template leaves to be filled in stand in these files.
const FILLED_IN: &[&str] = &["src/map.rs", "src/decode.rs"];

/// Runs both.
pub(crate) fn main(_args: &[String]) -> Outcome {
    let place = root().join("target/outside");
    if place.exists() {
        fs::remove_dir_all(&place).map_err(|error| io(&place, &error))?;
    }
    packaged(&place)?;
    template(&place)
}

fn io(path: &Path, error: &std::io::Error) -> Faults {
    Faults::one(format!("{}: {error}", path.display()))
}

fn copy(from: &Path, to: &Path) -> Outcome {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).map_err(|error| io(folder, &error))?;
    }
    fs::copy(from, to).map(|_| ()).map_err(|error| io(from, &error))
}

/// Packages the crates as they would be published, and runs the example's tests on those.
fn packaged(place: &Path) -> Outcome {
    let mut package = cargo(&["package", "--no-verify", "--allow-dirty", "--quiet"]);
    for name in PACKAGED {
        package.args(["--package", name]);
    }
    check(package)?;
    let crates = place.join("crates");
    fs::create_dir_all(&crates).map_err(|error| io(&crates, &error))?;
    let version = env!("CARGO_PKG_VERSION");
    let mut patch = "\n[patch.crates-io]\n".to_owned();
    for name in PACKAGED {
        let archive = root().join(format!("target/package/{name}-{version}.crate"));
        let mut tar = Command::new("tar");
        tar.arg("-xzf").arg(&archive).arg("-C").arg(&crates);
        check(tar)?;
        // Writing to a string does not fail.
        let _ = writeln!(patch, "{name} = {{ path = \"../crates/{name}-{version}\" }}");
    }
    let home = place.join("acme");
    for file in files()?.iter().filter(|file| file.starts_with(EXAMPLE)) {
        let inside = file.strip_prefix(EXAMPLE).unwrap_or(file).trim_start_matches('/');
        copy(&root().join(file), &home.join(inside))?;
    }
    let manifest = home.join("Cargo.toml");
    let text = fs::read_to_string(&manifest).map_err(|error| io(&manifest, &error))?;
    fs::write(&manifest, text + &patch).map_err(|error| io(&manifest, &error))?;
    // The same versions of everything else as here, so that they are not built again.
    copy(&root().join("Cargo.lock"), &home.join("Cargo.lock"))?;
    test(&home, &[])
}

/// Makes a crate from the template in a copy of the workspace, fills in its two functions, and runs its tests.
fn template(place: &Path) -> Outcome {
    let copied = place.join("workspace");
    for file in files()? {
        copy(&root().join(&file), &copied.join(&file))?;
    }
    new::provider(&copied, "scaffold")?;
    let home = copied.join("crates/failover-provider-scaffold");
    for file in FILLED_IN {
        copy(&root().join(EXAMPLE).join(file), &home.join(file))?;
    }
    test(&copied, &["--package", "failover-provider-scaffold"])
}

fn test(home: &Path, more: &[&str]) -> Outcome {
    let mut test = cargo(&["test", "--quiet"]);
    test.args(more).current_dir(home).env("CARGO_TARGET_DIR", root().join("target"));
    check(test)
}
