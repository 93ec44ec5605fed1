//! The corpus of provider errors: run it, add to it, and see what moved.

mod add;
mod moved;

pub(crate) use moved::{Moved, counts, moved, text as moved_text};

use crate::run::{Faults, Outcome, root};
use failover_classify::Classifier;
use failover_testkit::corpus::{self, Corpus, Lists, Run};

const USAGE: &str = "usage: cargo xtask corpus [add PROVIDER --from FILE [--reason REASON] [--name CASE] [--hide TEXT]... | diff REV]";

/// Runs the corpus, or one of its subcommands.
pub(crate) fn main(args: &[String]) -> Outcome {
    match args.first().map(String::as_str) {
        None => check(),
        Some("add") => add::main(args.get(1..).unwrap_or_default()),
        Some("diff") => diff(args.get(1..).unwrap_or_default()),
        Some(_) => Err(Faults::one(USAGE)),
    }
}

/// Everything that the corpus commands work on.
pub(crate) struct Bench {
    pub(crate) classifier: Classifier,
    pub(crate) corpus: Corpus,
    pub(crate) lists: Lists,
}

impl Bench {
    /// Reads corpus and lists of the working tree.
    pub(crate) fn load() -> Result<Self, Faults> {
        let fault = |error: &dyn std::error::Error| Faults::one(error.to_string());
        let directory = root().join("fixtures/corpus");
        Ok(Self {
            classifier: Classifier::standard().map_err(|error| fault(&error))?,
            lists: Lists::load(&directory).map_err(|error| fault(&error))?,
            corpus: Corpus::load(directory).map_err(|error| fault(&error))?,
        })
    }

    /// Classifies every case.
    pub(crate) fn run(&self) -> Vec<Run<'_>> {
        corpus::run(&self.classifier, &self.corpus)
    }
}

fn check() -> Outcome {
    let bench = Bench::load()?;
    let runs = bench.run();
    let right = runs.iter().filter(|run| run.is_reason_right()).count();
    let rows = bench.classifier.rows().count();
    let winning = corpus::wins(&runs);
    let seen = bench.classifier.rows().filter(|row| winning.contains_key(row.id)).count();
    println!(
        "reason right in {right} of {} cases, {} deviations are listed",
        runs.len(),
        bench.lists.known.len()
    );
    println!(
        "{seen} of {rows} rows decide a case, {} say why they stand without one",
        bench.lists.unseen.len()
    );
    let mut faults = bench.lists.deviations(&runs);
    faults.extend(bench.lists.coverage(&bench.classifier, &runs));
    faults.extend(corpus::unknown_evidence(&bench.classifier, &bench.corpus));
    faults.extend(bench.lists.conflicts(&runs));
    let orphans = corpus::orphans(&bench.corpus).map_err(|error| Faults::one(error.to_string()))?;
    faults.extend(orphans.into_iter().map(|file| format!("{file} belongs to no case")));
    let moved = moved(None, &runs)?;
    faults.extend(
        moved.iter().map(|moved| format!("{} is not as its snapshot says: {}", moved.case, moved.pair())),
    );
    Faults(faults).into_outcome()
}

fn diff(args: &[String]) -> Outcome {
    let [revision] = args else { return Err(Faults::one(USAGE)) };
    let bench = Bench::load()?;
    let moved = moved(Some(revision), &bench.run())?;
    print!("{}", moved_text(revision, &moved));
    Ok(())
}
