//! A corpus of provider errors: cases as files, the runner that classifies them, and what a reviewer reads of it.
//!
//! A corpus is a directory with one directory a provider and one `<case>.toml` an error. Crates that bring rows of
//! their own keep a corpus of the same shape and run it with the same functions:
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use failover_testkit::corpus::{self, Corpus};
//!
//! let classifier = failover_classify::Classifier::standard()?;
//! let corpus = Corpus::load("corpus")?;
//! for run in corpus::run(&classifier, &corpus) {
//!     assert!(run.faults().is_empty(), "{}: {:?}", run.case.path(), run.faults());
//! }
//! # Ok(())
//! # }
//! ```

mod case;
mod census;
mod lists;
mod snapshot;

pub use case::{Case, Corpus, CorpusError, Expect, Origin};
pub use census::{Conflict, conflicts, orphans, unknown_evidence, wins};
pub use lists::{Known, Lists, Settled, Unseen};
pub use snapshot::{Summary, body_of, hint_words, render, wall_text, words};

use failover_classify::{AsSignal, Classifier, Explanation};

/// A case and what the classifier says of it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Run<'c> {
    /// The case.
    pub case: &'c Case,
    /// The verdict and everything that matched.
    pub explanation: Explanation,
}

impl Run<'_> {
    /// Where the verdict is not what the case expects, a sentence each.
    pub fn faults(&self) -> Vec<String> {
        self.case.faults(&self.explanation.verdict)
    }

    /// Whether the reason is one that the case accepts.
    pub fn is_reason_right(&self) -> bool {
        self.case.accepts(self.explanation.verdict.reason)
    }
}

/// Classifies every case, in the order of the corpus.
pub fn run<'c>(classifier: &Classifier, corpus: &'c Corpus) -> Vec<Run<'c>> {
    corpus
        .cases
        .iter()
        .map(|case| Run { case, explanation: case.with_signal(|signal| classifier.explain(signal)) })
        .collect()
}
