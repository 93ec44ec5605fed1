//! The program as servers run it: built once to count which of its code is used, put under load, and built again, laid
//! out by what was counted. What is used stands together then, and what is not is out of the way.

use crate::bench;
use crate::run::{Faults, Outcome, cargo, check, read, root};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Endurance is shown the code too that bears faults: for a few seconds, with few streams.
const FAULTS: [&str; 5] = ["soak", "--minutes", "0.2", "--streams", "100"];

/// Builds into `target/guided/TARGET/dist`, which `bench gateway --built` takes.
pub(crate) fn main(args: &[String]) -> Outcome {
    if !args.is_empty() {
        return Err(Faults::one("usage: cargo xtask dist"));
    }
    let (host, profdata) = tools()?;
    let home = root().join("target/guided");
    let (counting, counts, merged) =
        (home.join("counting"), home.join("counts"), home.join("merged.profdata"));
    // Counts of other code, and what was built by them.
    for old in [&counts, &home.join(&host)] {
        match std::fs::remove_dir_all(old) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(io(old, &error)),
            _ => {}
        }
    }
    build(&counting, &host, &format!("-Cprofile-generate={}", counts.display()), &["-p", "failover-cli"])?;
    let built = counting.join(&host).join("dist");
    load(&built)?;

    let mut merge = Command::new(profdata);
    merge.arg("merge").arg("-o").arg(&merged).arg(&counts);
    check(merge)?;
    let used = format!("-Cprofile-use={}", merged.display());
    build(&home, &host, &used, &["-p", "failover-cli", "-p", "xtask"])?;
    println!("built: {}", home.join(&host).join("dist").display());
    Ok(())
}

fn io(path: &Path, error: &std::io::Error) -> Faults {
    Faults::one(format!("{}: {error}", path.display()))
}

/// What the compiler builds for, and the tool of its own version that reads what was counted.
fn tools() -> Result<(String, PathBuf), Faults> {
    let mut rustc = Command::new("rustc");
    rustc.arg("-vV");
    let told = read(rustc)?;
    let host = told.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.ok_or_else(|| Faults::one("rustc does not say what it builds for"))?;
    let mut rustc = Command::new("rustc");
    rustc.args(["--print", "sysroot"]);
    let sysroot = read(rustc)?;
    let tool = Path::new(sysroot.trim()).join("lib/rustlib").join(host).join("bin/llvm-profdata");
    if tool.exists() {
        Ok((host.to_owned(), tool))
    } else {
        Err(Faults::one("llvm-profdata is missing; `rustup component add llvm-tools` installs it"))
    }
}

/// With a target named, the flags are for the program alone, and not for what runs at build time.
fn build(into: &Path, host: &str, flags: &str, packages: &[&str]) -> Outcome {
    let mut cargo = cargo(&["build", "--locked", "--profile", "dist", "--target", host]);
    cargo.arg("--target-dir").arg(into).args(packages).env("RUSTFLAGS", flags);
    check(cargo)
}

/// Everything that is measured, every dialect, and faults.
fn load(built: &Path) -> Outcome {
    let (own, tool) = (std::env::current_exe(), built.join("xtask"));
    own.and_then(|own| std::fs::copy(own, &tool)).map_err(|error| io(&tool, &error))?;
    let at = built.display().to_string();
    for bench in [&["train"][..], &FAULTS] {
        let args = bench.iter().copied().chain(["--built", &at]).map(str::to_owned);
        bench::main(&args.collect::<Vec<_>>())?;
    }
    Ok(())
}
