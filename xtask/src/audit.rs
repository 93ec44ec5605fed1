//! The report that a reviewer of the classifier reads instead of code.

use crate::corpus::{Bench, Moved, counts, moved, moved_text};
use crate::run::{Faults, Outcome};
use failover_classify::redact;
use failover_testkit::corpus::{self, Run};
use std::collections::BTreeMap;
use std::fmt::Write as _;

const USAGE: &str = "usage: cargo xtask audit [REV] [--text] [--out FILE]";
const STYLE: &str = include_str!("audit.css");
/// Where the page goes unless told otherwise.
const OUT: &str = "target/audit.html";
/// Bytes of a body around what matched.
const AROUND: usize = 500;

/// Writes the report. Without a revision, verdicts are held against the snapshots of the working tree.
pub(crate) fn main(args: &[String]) -> Outcome {
    let (mut revision, mut plain, mut out) = (None, false, None);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--text" => plain = true,
            "--out" => out = Some(args.next().ok_or_else(|| Faults::one(USAGE))?.clone()),
            flag if flag.starts_with('-') => return Err(Faults::one(USAGE)),
            rev => revision = Some(rev.to_owned()),
        }
    }
    let bench = Bench::load()?;
    let runs = bench.run();
    let moved = moved(revision.as_deref(), &runs)?;
    let against = revision.as_deref().unwrap_or("the accepted snapshots");
    let report = if plain { text(&runs, &moved, against) } else { page(&bench, &runs, &moved, against) };
    let file = match (out, plain) {
        (None, true) => {
            print!("{report}");
            return Ok(());
        }
        (out, _) => out.unwrap_or_else(|| crate::run::root().join(OUT).display().to_string()),
    };
    std::fs::write(&file, report).map_err(|error| Faults::one(format!("{file}: {error}")))?;
    println!("{} cases, {} moved: {file}", runs.len(), moved.len());
    Ok(())
}

fn by_provider<'r, 'c>(runs: &'r [Run<'c>]) -> BTreeMap<&'r str, Vec<&'r Run<'c>>> {
    let mut providers: BTreeMap<&str, Vec<&Run<'_>>> = BTreeMap::new();
    for run in runs {
        providers.entry(&run.case.provider).or_default().push(run);
    }
    providers
}

fn text(runs: &[Run<'_>], moved: &[Moved], against: &str) -> String {
    let mut text = moved_text(against, moved);
    for (provider, runs) in by_provider(runs) {
        // Writing to a string cannot fail.
        let _ = write!(text, "\n\n{provider}: {} cases\n", runs.len());
        for run in runs {
            let _ = write!(text, "\n{}\n{}", run.case.path(), corpus::render(run));
            for fault in run.faults() {
                let _ = writeln!(text, "differs  {fault}");
            }
        }
    }
    text
}

fn page(bench: &Bench, runs: &[Run<'_>], moved: &[Moved], against: &str) -> String {
    let right = runs.iter().filter(|run| run.is_reason_right()).count();
    let providers = by_provider(runs);
    let wins = corpus::wins(runs);
    let rows = bench.classifier.rows().count();
    let bare: Vec<&str> =
        bench.classifier.rows().map(|row| row.id).filter(|id| !wins.contains_key(*id)).collect();
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>Audit of the classifier</title><style>{STYLE}</style></head><body>\n\
         <header><h1>Audit of the classifier</h1><p>{} cases of {} providers; the reason is right in {right}. \
         {rows} rows, {} of them decide a case. {} verdicts moved against {}.</p></header>\n\
         <nav><ul class=\"index\">",
        runs.len(),
        providers.len(),
        rows - bare.len(),
        moved.len(),
        escape(against)
    );
    for (provider, runs) in &providers {
        let name = escape(provider);
        let _ = writeln!(
            page,
            "<li><a href=\"#p-{name}\">{name}</a> <span class=\"soft\">{}</span></li>",
            runs.len()
        );
    }
    page.push_str("</ul></nav>\n<main>\n");
    moved_section(&mut page, moved, against);
    exceptions(&mut page, bench, runs);
    for (provider, runs) in &providers {
        let name = escape(provider);
        let _ = writeln!(
            page,
            "<section id=\"p-{name}\"><h2>{name}</h2><table class=\"cases\"><thead><tr><th>Case and input</th>\
             <th>Verdict</th><th>Deciding row</th><th>Rows that lost</th></tr></thead><tbody>"
        );
        for run in runs {
            case(&mut page, run);
        }
        page.push_str("</tbody></table></section>\n");
    }
    if !bare.is_empty() {
        page.push_str("<section><h2>Rows that decide no case</h2><ul class=\"plain\">");
    }
    for id in &bare {
        let why =
            bench.lists.unseen.iter().find(|unseen| unseen.rule == *id).map_or("", |unseen| &unseen.reason);
        let _ = writeln!(
            page,
            "<li><code>{}</code> <span class=\"soft\">{}</span></li>",
            escape(id),
            escape(why)
        );
    }
    if !bare.is_empty() {
        page.push_str("</ul></section>\n");
    }
    page.push_str("</main></body></html>\n");
    page
}

/// What is not as it should be, and what was settled by hand: each with its reason.
fn exceptions(page: &mut String, bench: &Bench, runs: &[Run<'_>]) {
    let wrong: Vec<&Run<'_>> = runs.iter().filter(|run| !run.faults().is_empty()).collect();
    let _ = write!(page, "<section id=\"exceptions\"><h2>Not as expected</h2><ul class=\"plain\">");
    for run in &wrong {
        let path = run.case.path();
        let why = bench
            .lists
            .known
            .iter()
            .find(|known| known.case == path)
            .map_or("not listed", |known| &known.reason);
        let _ = writeln!(
            page,
            "<li><a href=\"#c-{0}\"><code>{0}</code></a> <span class=\"bad\">{1}</span> <span class=\"soft\">{2}</span></li>",
            escape(&path),
            escape(&run.faults().join("; ")),
            escape(why)
        );
    }
    if wrong.is_empty() {
        page.push_str("<li>Nothing.</li>");
    }
    page.push_str("</ul><h2>Conflicts inside a family that were settled by hand</h2><ul class=\"plain\">");
    for settled in &bench.lists.settled {
        let _ = writeln!(
            page,
            "<li><code>{}</code> before <code>{}</code> <span class=\"soft\">{}</span></li>",
            escape(&settled.first),
            escape(&settled.second),
            escape(&settled.reason)
        );
    }
    if bench.lists.settled.is_empty() {
        page.push_str("<li>None.</li>");
    }
    page.push_str("</ul></section>\n");
}

fn moved_section(page: &mut String, moved: &[Moved], against: &str) {
    let _ = write!(page, "<section id=\"moved\"><h2>Moved against {}</h2>", escape(against));
    if moved.is_empty() {
        page.push_str("<p>Nothing moved.</p></section>\n");
        return;
    }
    page.push_str(
        "<table><thead><tr><th class=\"num\">Cases</th><th>Old and new verdict</th></tr></thead><tbody>\n",
    );
    for (pair, count) in counts(moved) {
        let _ = writeln!(page, "<tr><td class=\"num\">{count}</td><td>{}</td></tr>", escape(&pair));
    }
    page.push_str("</tbody></table>\n<table><thead><tr><th>Case</th><th>What moved</th><th>Deciding row</th></tr></thead><tbody>\n");
    for one in moved {
        let rule = |summary: &Option<corpus::Summary>| {
            summary.as_ref().map_or("-".into(), |summary| escape(&summary.rule))
        };
        let case = escape(&one.case);
        let _ = writeln!(
            page,
            "<tr><td><a href=\"#c-{case}\"><code>{case}</code></a></td><td>{}</td><td><code>{}</code> → <code>{}</code></td></tr>",
            escape(&one.pair()),
            rule(&one.old),
            rule(&one.new)
        );
    }
    page.push_str("</tbody></table></section>\n");
}

fn case(page: &mut String, run: &Run<'_>) {
    let case = run.case;
    let verdict = &run.explanation.verdict;
    let path = escape(&case.path());
    let status = case.status.map_or_else(|| "no status".to_owned(), |status| format!("status {status}"));
    let code =
        case.code.as_deref().map_or_else(String::new, |code| format!(", code {}", escape(&redact(code))));
    let _ = write!(
        page,
        "<tr id=\"c-{path}\"><td><strong><code>{}</code></strong><br><span class=\"soft\">{}, {}, {status}{code}</span>",
        escape(&case.id),
        case.source.as_str(),
        corpus::words(&case.surface)
    );
    for (name, value) in &case.headers {
        let _ = write!(page, "<br><code>{}: {}</code>", escape(name), escape(&redact(value)));
    }
    let _ = write!(
        page,
        "<pre>{}</pre><span class=\"why\">{}</span></td>",
        body(&case.body, verdict.evidence.span),
        escape(&case.why)
    );
    let hint = corpus::hint_words(verdict).map_or_else(String::new, |hint| format!("<br>{}", escape(&hint)));
    let _ = write!(
        page,
        "<td data-label=\"Verdict\"><strong>{}</strong>, blames {}{hint}",
        verdict.reason, verdict.scope
    );
    for fault in run.faults() {
        let _ = write!(page, "<br><span class=\"bad\">differs: {}</span>", escape(&fault));
    }
    let _ = write!(
        page,
        "</td><td data-label=\"Deciding row\"><code>{}</code><br><span class=\"soft\">tier {}</span></td>\
         <td{}><ul class=\"lost\">",
        escape(&verdict.evidence.rule),
        corpus::words(&verdict.evidence.tier),
        if run.explanation.matched.len() > 1 { " data-label=\"Rows that lost\"" } else { "" }
    );
    for lost in run.explanation.matched.iter().skip(1) {
        let _ = write!(page, "<li><code>{}</code> {}</li>", escape(&lost.rule), lost.reason);
    }
    page.push_str("</ul></td></tr>\n");
}

/// The body with what matched marked; redacted bodies have no marks, because their bytes moved.
fn body(body: &str, span: Option<(usize, usize)>) -> String {
    let clean = matches!(redact(body), std::borrow::Cow::Borrowed(_));
    let parts = span
        .filter(|_| clean)
        .and_then(|(start, end)| Some((body.get(..start)?, body.get(start..end)?, body.get(end..)?)));
    let Some((before, matched, after)) = parts else {
        return escape(&corpus::body_of(body, 2 * AROUND));
    };
    let mut from = before.len().saturating_sub(AROUND);
    while !before.is_char_boundary(from) {
        from += 1;
    }
    let dots = if from > 0 { "… " } else { "" };
    let before = before.get(from..).unwrap_or_default();
    let after = if after.is_empty() { String::new() } else { corpus::body_of(after, AROUND) };
    let matched = if matched.is_empty() { String::new() } else { corpus::body_of(matched, 2 * AROUND) };
    let shown = if before.is_empty() { String::new() } else { corpus::body_of(before, AROUND) };
    format!("{dots}{}<mark>{}</mark>{}", escape(&shown), escape(&matched), escape(&after))
}

fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_bodies_stay_text() {
        let shown = body("<script>alert('x')</script> quota", Some((28, 33)));
        assert!(!shown.contains("<script"), "{shown}");
        assert!(shown.ends_with("<mark>quota</mark>"), "{shown}");
    }

    #[test]
    fn a_redacted_body_shows_no_secret_and_no_mark() {
        let shown = body("bad key sk-abcdefghijklmnop1234", Some((0, 3)));
        assert_eq!(shown, "bad key [redacted]");
    }
}
