//! Measurements that take too long, or depend too much on the machine, for a test.
#![expect(clippy::cast_precision_loss, reason = "figures are rounded anyway")]

mod faults;
mod gateway;
mod load;
mod process;
mod proxy;
mod soak;
mod upstream;

use crate::run::{Faults, Outcome};

/// What can be measured, and the parts that measurements run as processes of their own.
const BENCHES: &[(&str, &str, crate::Command)] = &[
    ("gateway", "the gateway against a bare proxy and nginx: [--quick] [--built DIR]", gateway::main),
    (
        "soak",
        "2,000 streams, then ten minutes of faults: [--minutes N] [--streams N] [--built DIR]",
        soak::main,
    ),
    ("train", "(part) what a gateway is laid out for, see `dist`: --built DIR", gateway::train),
    ("faults", "(part) a scripted upstream with faults", faults::main),
    ("upstream", "(part) a scripted upstream", upstream::main),
    ("proxy", "(part) a proxy that only forwards", proxy::main),
    ("load", "(part) requests and streams in a closed loop", load::main),
    ("hold", "(part) streams that are opened and held", load::hold),
];

/// Runs one of them.
pub(crate) fn main(args: &[String]) -> Outcome {
    let name = args.first().map(String::as_str).unwrap_or_default();
    let Some((_, _, bench)) = BENCHES.iter().find(|(known, _, _)| *known == name) else {
        let lines = BENCHES.iter().filter(|(_, what, _)| !what.starts_with('('));
        let names: Vec<String> = lines.map(|(name, what, _)| format!("{name} ({what})")).collect();
        return Err(Faults::one(format!("name what to measure: {}", names.join(", "))));
    };
    bench(args.get(1..).unwrap_or_default())
}

/// A fault of the machine.
fn io(what: &str, error: impl std::fmt::Display) -> Faults {
    Faults::one(format!("{what}: {error}"))
}

/// The value of `--name value` as a number.
fn number<T: std::str::FromStr>(args: &[String], name: &str) -> Result<T, Faults> {
    text(args, name)?.parse().map_err(|_| Faults::one(format!("{name} takes a number")))
}

/// The value of `--name value`.
fn text<'a>(args: &'a [String], name: &str) -> Result<&'a str, Faults> {
    let at = args.iter().position(|arg| arg == name);
    let value = at.and_then(|at| args.get(at + 1)).map(String::as_str);
    value.ok_or_else(|| Faults::one(format!("{name} is missing")))
}

/// One thread, as every part of a measurement has.
fn runtime() -> Result<tokio::runtime::Runtime, Faults> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| io("runtime", error))
}
