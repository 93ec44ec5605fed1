//! Where in a scenario a fault stands: file, line, column, and the line itself.

use crate::exit::{Exit, Failure};
use failover::runner::plan::PolicyError;
use failover::runner::simulate::ScenarioError;
use std::fmt::Write as _;

/// Widest piece of a line that is shown, in characters.
const WIDTH: usize = 72;

/// A text that is no scenario.
pub(super) fn syntax(name: &str, text: &str, error: &serde_json::Error) -> Failure {
    let (line, column) = (error.line(), error.column());
    // The place is told in front.
    let told = error.to_string();
    let what = told.split(" at line ").next().unwrap_or_default();
    Failure::new(Exit::Failed, at(name, text, line, column, what))
        .hint("`failover simulate --show first-answers` prints a scenario to begin with")
}

/// A scenario that cannot be played.
pub(super) fn meaning(name: &str, text: &str, error: &ScenarioError) -> Failure {
    let offset = match error {
        ScenarioError::NoChain => text.find("\"chain\""),
        ScenarioError::Text { text: faulty, .. } => find(text, faulty, 0),
        ScenarioError::Twice(run) => find(text, run, 1),
        ScenarioError::Policy(fault) => key_of(text, fault),
        _ => None,
    };
    let (line, column) = place(text, offset.unwrap_or(0));
    Failure::new(Exit::Failed, at(name, text, line, column, &error.to_string()))
}

/// Where the `nth` string with this content stands.
fn find(text: &str, content: &str, nth: usize) -> Option<usize> {
    let quoted = serde_json::to_string(content).ok()?;
    text.match_indices(&quoted).nth(nth).map(|(at, _)| at)
}

/// Where the setting stands that is out of its bounds; the last part of its path is its key.
fn key_of(text: &str, fault: &PolicyError) -> Option<usize> {
    let field = match fault {
        PolicyError::Range { field, .. } => field.rsplit('.').next()?,
        PolicyError::MinAboveMax { .. } => "runRetries",
        _ => return None,
    };
    text.find(&format!("\"{field}\""))
}

/// Line and column of a byte, from 1, the column in characters.
fn place(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or_default();
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    (line, before.get(start..).unwrap_or_default().chars().count() + 1)
}

/// The message, the line that it is about, and a mark under the column.
fn at(name: &str, text: &str, line: usize, column: usize, what: &str) -> String {
    let mut message = format!("{name}:{line}:{column}: {what}");
    let Some(shown) = text.lines().nth(line.saturating_sub(1)).filter(|shown| !shown.trim().is_empty())
    else {
        return message;
    };
    // A long line is shown around its fault.
    let column = column.max(1);
    let skip = column.saturating_sub(WIDTH - 8);
    let piece: String =
        shown.chars().skip(skip).take(WIDTH).map(|c| if c == '\t' { ' ' } else { c }).collect();
    let mark = " ".repeat(column.saturating_sub(skip + 1));
    let gutter = line.to_string();
    let margin = " ".repeat(gutter.len());
    let _ = write!(message, "\n {gutter} | {piece}\n {margin} | {mark}^");
    message
}

#[cfg(test)]
mod tests {
    use super::*;
    use failover::runner::simulate::{Scenario, play};

    fn told(text: &str) -> String {
        match serde_json::from_str::<Scenario>(text) {
            Err(error) => syntax("x.json", text, &error).message,
            Ok(scenario) => meaning("x.json", text, &play(&scenario).unwrap_err()).message,
        }
    }

    // spec: R-1, U-2
    #[test]
    fn a_fault_is_shown_where_it_stands() {
        let unknown = told("{\n  \"chain\": [\"a/m\"],\n  \"polcy\": {}\n}");
        assert!(unknown.starts_with("x.json:3:9: unknown field `polcy`, expected one of"), "{unknown}");
        assert!(unknown.ends_with("\n 3 |   \"polcy\": {}\n   |         ^"), "{unknown}");

        let no_model = told("{ \"chain\": [\"am\"] }");
        assert!(no_model.starts_with("x.json:1:17: \"am\" is not of the form provider/model"), "{no_model}");

        let nothing = told("{\n\n  \"chain\": []\n}");
        assert!(nothing.starts_with("x.json:3:3: the scenario has no chain"), "{nothing}");

        let run = r#"{ "atMs": 0, "what": { "run": { "name": "one" } } }"#;
        let twice = told(&format!("{{\n\"chain\": [\"a/m\"],\n\"events\": [{run},\n{run}]\n}}"));
        assert!(twice.starts_with("x.json:4:41: two runs are called \"one\""), "{twice}");

        let policy = told("{ \"chain\": [\"a/m\"],\n  \"policy\": { \"deadlineMs\": 0 } }");
        assert!(policy.starts_with("x.json:2:15: deadlineMs is 0"), "{policy}");
        assert!(told("").starts_with("x.json:1:0: EOF while parsing a value"));
    }
}
