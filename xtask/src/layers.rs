//! Directions between crates: downwards only, and pure crates stay pure. And no two of them share a place for pages.

use crate::run::{Faults, Outcome, cargo, read};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The layer of every crate. A crate may depend on lower layers only; see `docs/architecture.md`.
const LAYERS: &[(&str, u8)] = &[
    ("failover-types", 0),
    ("failover-classify", 1),
    ("failover-store", 1),
    ("failover-provider", 2),
    ("failover-auth", 2),
    ("failover-session", 2),
    ("failover-chain", 2),
    ("failover-credentials", 3),
    ("failover-runner", 3),
    ("failover-config", 3),
    ("failover-http", 3),
    ("failover-store-sled", 4),
    ("failover-store-redis", 4),
    ("failover-store-redb", 4),
    ("failover-clients", 4),
    ("failover", 5),
    ("failover-gateway", 5),
    ("failover-testkit", 5),
    ("failover-cli", 6),
    ("xtask", 7),
];

/// The dependencies allowed inside a layer: (from, to).
const SIDEWAYS: &[(&str, &str)] = &[("failover-auth", "failover-provider"), ("failover-gateway", "failover")];

/// Crates below a layer that adapters and stores must not see.
const BLIND: &[(&str, &str)] =
    &[("failover-provider-", "failover-runner"), ("failover-store-", "failover-runner")];

/// What has no place in the normal dependency tree of a pure crate: runtimes, clients, files, randomness.
const IMPURE: &[&str] = &[
    "tokio",
    "async-std",
    "smol",
    "hyper",
    "reqwest",
    "ureq",
    "rand",
    "getrandom",
    "sled",
    "redb",
    "chrono",
];

/// Pure crates, checked without default features: a driver behind a feature does not count.
const PURE: &[&str] = &[
    "failover-types",
    "failover-classify",
    "failover-store",
    "failover-provider",
    "failover-auth",
    "failover-session",
    "failover-chain",
    "failover-runner",
];

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    dependencies: Vec<Dependency>,
    features: BTreeMap<String, Vec<String>>,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    /// Whether `cargo doc` writes pages for it.
    doc: bool,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    kind: Option<String>,
}

/// The manifest of the crate that is no member of the workspace, and says why itself.
pub(crate) const APART: &str = "crates/failover-clients/Cargo.toml";

fn metadata(manifest: &str) -> Result<Metadata, Faults> {
    let args = ["metadata", "--format-version", "1", "--no-deps", "--locked", "--manifest-path", manifest];
    let json = read(cargo(&args))?;
    serde_json::from_str(&json).map_err(|error| Faults::one(format!("cargo metadata: {error}")))
}

/// The workspace's crates, and those apart.
fn packages() -> Result<Vec<Package>, Faults> {
    let mut packages = metadata("Cargo.toml")?.packages;
    packages.extend(metadata(APART)?.packages);
    Ok(packages)
}

/// Crates of the workspace that have features, by name.
pub(crate) fn packages_with_features() -> Result<Vec<String>, Faults> {
    let packages = metadata("Cargo.toml")?.packages;
    Ok(packages
        .into_iter()
        .filter(|package| !package.features.is_empty())
        .map(|package| package.name)
        .collect())
}

/// Names of all crates of the repository.
pub(crate) fn package_names() -> Result<Vec<String>, Faults> {
    Ok(packages()?.into_iter().map(|package| package.name).collect())
}

/// Adapters are not listed: a new one changes nothing here.
const ADAPTERS: (&str, u8) = ("failover-provider-", 4);

fn layer(name: &str) -> Option<u8> {
    if name.starts_with(ADAPTERS.0) {
        return Some(ADAPTERS.1);
    }
    LAYERS.iter().find(|(known, _)| *known == name).map(|(_, layer)| *layer)
}

/// Checks directions and purity.
pub(crate) fn main(_args: &[String]) -> Outcome {
    let packages = packages()?;
    let mut faults = directions(&packages);
    faults.0.extend(shared_pages(&packages).0);
    let ours: Vec<&str> = packages.iter().map(|package| package.name.as_str()).collect();
    for name in PURE.iter().filter(|name| ours.contains(name)) {
        let tree = read(cargo(&[
            "tree",
            "--package",
            name,
            "--edges",
            "normal",
            "--no-default-features",
            "--prefix",
            "none",
            "--locked",
        ]))?;
        let found = tree.lines().filter_map(|line| line.split(' ').next());
        for crate_name in found.filter(|crate_name| IMPURE.contains(crate_name)) {
            faults.0.push(format!("{name} must stay pure, and depends on {crate_name}"));
        }
    }
    faults.into_outcome()?;
    println!("{} crates point downwards; the pure ones are pure; each has its own pages", packages.len());
    Ok(())
}

fn directions(packages: &[Package]) -> Faults {
    let mut faults = Faults::default();
    for package in packages {
        let name = package.name.as_str();
        let Some(own) = layer(name) else {
            faults.0.push(format!("{name} has no layer: add it to the table in xtask/src/layers.rs"));
            continue;
        };
        let normal = package.dependencies.iter().filter(|dependency| dependency.kind.is_none());
        for to in normal.map(|dependency| dependency.name.as_str()) {
            let Some(below) = layer(to) else { continue };
            if below >= own && !SIDEWAYS.contains(&(name, to)) {
                faults.0.push(format!("{name} (L{own}) must not depend on {to} (L{below})"));
            }
            if BLIND.iter().any(|(from, hidden)| name.starts_with(from) && to == *hidden) {
                faults.0.push(format!("{name} must not see {to}"));
            }
        }
    }
    faults
}

/// Targets whose pages go to one directory: `cargo doc` runs both at once, and now and then one deletes what the other
/// writes.
fn shared_pages(packages: &[Package]) -> Faults {
    let mut faults = Faults::default();
    let mut places: BTreeMap<String, &str> = BTreeMap::new();
    for package in packages {
        for target in package.targets.iter().filter(|target| target.doc) {
            let place = target.name.replace('-', "_");
            if let Some(other) = places.insert(place, &package.name) {
                let (own, name) = (&package.name, &target.name);
                faults.0.push(format!(
                    "{own} and {other} both document a `{name}`: set `doc = false` at one of them"
                ));
            }
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, to: &str) -> Package {
        let dependency = Dependency { name: to.into(), kind: None };
        let target = Target { name: name.into(), doc: true };
        Package {
            name: name.into(),
            dependencies: vec![dependency],
            features: BTreeMap::new(),
            targets: vec![target],
        }
    }

    #[test]
    fn two_targets_with_pages_of_one_name_are_a_fault() {
        let mut packages = [package("some-lib", "serde"), package("some-tool", "serde")];
        assert!(shared_pages(&packages).0.is_empty());
        packages[1].targets[0].name = "some_lib".into();
        assert_eq!(shared_pages(&packages).0.len(), 1);
        packages[1].targets[0].doc = false;
        assert!(shared_pages(&packages).0.is_empty());
    }

    #[test]
    fn upward_and_sideways_edges_are_faults() {
        let wrong = [
            package("failover-types", "failover-classify"),
            package("failover-chain", "failover-session"),
            package("failover-provider-openai", "failover-runner"),
            package("somebody-new", "serde"),
        ];
        assert_eq!(directions(&wrong).0.len(), wrong.len());
        let right = [package("failover-auth", "failover-provider"), package("failover-cli", "failover")];
        assert!(directions(&right).0.is_empty());
    }
}
