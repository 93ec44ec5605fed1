//! The workspace's own tools, each a plain function: `cargo xtask help` lists them.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool")]

mod audit;
mod bench;
mod ci;
mod corpus;
mod dist;
mod keys;
mod layers;
mod new;
mod outside;
mod rules;
mod run;
mod spec;
mod tidy;
mod weights;

use run::Outcome;
use std::process::ExitCode;

/// A command takes the arguments behind its name.
type Command = fn(&[String]) -> Outcome;

/// One line per command: name, what it does, the function.
const COMMANDS: &[(&str, &str, Command)] = &[
    (
        "ci",
        "everything the pipeline checks, in order, stopping at the first failure; [--full] what is dear, too",
        ci::main,
    ),
    ("tidy", "sizes, module docs, lints, top level, README facts, stray paths", tidy::main),
    ("layers", "crates depend downwards only, and pure crates stay pure", layers::main),
    ("corpus", "run the corpus of provider errors; `add` a case, `diff` against a revision", corpus::main),
    ("rules", "write docs/rules.md from the rows, or check it with --check", rules::main),
    ("keys", "write docs/config.md from the config's types, or check it with --check", keys::main),
    ("audit", "the report that a reviewer of the classifier reads: [REV] [--text] [--out FILE]", audit::main),
    (
        "bench",
        "measure this machine: `gateway` against a bare proxy and nginx, `soak` for endurance",
        bench::main,
    ),
    (
        "dist",
        "build the program as servers run it, laid out by what a load of every kind uses: target/guided",
        dist::main,
    ),
    ("new", "`new provider NAME` writes an adapter crate; see docs/add-provider.md", new::main),
    (
        "outside",
        "what third parties do: an adapter on the packaged crates, one from the template",
        outside::main,
    ),
    (
        "weights",
        "learn what words weigh from fixtures/wordings and the corpus, and write the classifier's table",
        weights::main,
    ),
    ("spec", "the numbered requirements that no test names yet", spec::main),
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let name = args.first().map_or("help", String::as_str);
    let Some((_, _, command)) = COMMANDS.iter().find(|(known, _, _)| *known == name) else {
        println!("usage: cargo xtask COMMAND\n");
        for (name, what, _) in COMMANDS {
            println!("  {name:8} {what}");
        }
        return if name == "help" { ExitCode::SUCCESS } else { ExitCode::from(2) };
    };
    match command(args.get(1..).unwrap_or_default()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(faults) => {
            eprintln!("xtask {name}: {faults}");
            ExitCode::FAILURE
        }
    }
}
