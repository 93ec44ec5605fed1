//! Texts that talk about errors and are none: commits, lines of a test run, code, tables, log lines, questions, answers.
//!
//! Rows look for words, and such texts hold the same words as errors do. What tells them apart is their shape, so this
//! is the one place where shape is judged. Three questions, from the surest to the weakest:
//!
//! - [`is_record`]: a text that a tool wrote (a commit's subject, a test's line, code, a table, a transcript).
//!   Asked of any text that stands for itself, that is without a status or code of its own.
//! - [`is_speech`]: a text that somebody wrote (a question, a note, an answer). Asked only where nothing in
//!   the text reports a failure.
//! - [`reports`]: a text that has the shape of an error, whatever else it says.
//!
//! A text that is not clearly one of these is an error: to miss a failure costs more than to see one too many.

mod code;
mod openings;
mod speech;

use code::is_code;
use speech::{
    is_answer, is_definition, is_first_person, is_mention, is_narrative, is_note, is_question, is_task,
    is_treatise,
};

/// No more of a text is looked at.
const FRONT: usize = 2048;
/// Nor more lines.
const LINES: usize = 24;

/// Whether a tool wrote this down, and not because a call failed.
pub(crate) fn is_record(text: &str) -> bool {
    let text = front(text);
    if text.is_empty() || is_trace(text) {
        return false;
    }
    let line = first_line(text);
    is_commit(line)
        || is_test_run(text, line)
        || is_table(text, line)
        || is_transcript(text, line)
        || is_log(text, line)
        || is_of_database(line)
        || is_of_system(line)
        || is_dialogue(line)
        || is_data(text)
        || is_title(line)
        || is_explained(line)
        || is_warning(line)
        || is_sheet(line)
        || is_code(text)
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default().trim()
}

/// Whether there is a second line. Shapes of many lines are not looked for in one.
fn has_lines(text: &str) -> bool {
    has_byte(text, b'\n')
}

/// Whether somebody says this, and no program reports it.
pub(crate) fn is_speech(text: &str) -> bool {
    let text = front(text);
    if has_shape(text) {
        return false;
    }
    let line = first_line(text);
    is_note(line)
        || is_treatise(line)
        || is_mention(line)
        || is_answer(line)
        || is_task(line)
        || is_first_person(line)
        || !cites(text) && (is_question(line) || is_definition(line) || is_narrative(text))
}

/// Whether the text has the shape of an error: it begins as one, quotes a status, or holds an error object or a trace.
pub(crate) fn reports(text: &str) -> bool {
    has_shape(text) || cites(front(text))
}

/// The same without a status that is only quoted.
fn has_shape(text: &str) -> bool {
    const BEGINS: &[&str] = &[
        "error",
        "[error",
        "err:",
        "failed",
        "failure",
        "fatal",
        "exception",
        "api error",
        "unable",
        "cannot",
        "could not",
        "unexpected",
        "invalid",
        "✗",
        "×",
        "❌",
        "⚠",
        "{",
        "[",
        "<",
        "data:",
        "event:",
        "panic",
    ];
    const HOLDS: &[&str] = &[
        "error:",
        "exception:",
        "statuscode",
        "api error",
        "http/1.1 4",
        "http/1.1 5",
        "errno",
        "(os error",
        "\"error\"",
        "'error'",
        "error -",
    ];
    let text = front(text);
    starts_with_any(text, BEGINS) || is_trace(text) || HOLDS.iter().any(|part| holds(text, part))
}

/// Whether the text quotes a status, as talk about errors does too.
fn cites(text: &str) -> bool {
    const HOLDS: &[&str] = &["error code", "status code", "status:", "http 4", "http 5"];
    HOLDS.iter().any(|part| holds(text, part))
}

fn front(text: &str) -> &str {
    let cut = crate::facts::floor(text, FRONT);
    text.get(..cut).unwrap_or_default().trim()
}

#[inline]
fn starts(text: &str, with: &str) -> bool {
    let (text, with) = (text.as_bytes(), with.as_bytes());
    // The first byte nearly always settles it.
    let (Some(first), Some(wanted)) = (text.first(), with.first()) else { return with.is_empty() };
    first.eq_ignore_ascii_case(wanted)
        && text.get(..with.len()).is_some_and(|front| front.eq_ignore_ascii_case(with))
}

fn ends(text: &str, with: &str) -> bool {
    let bytes = text.as_bytes();
    bytes
        .len()
        .checked_sub(with.len())
        .and_then(|at| bytes.get(at..))
        .is_some_and(|end| end.eq_ignore_ascii_case(with.as_bytes()))
}

fn holds(text: &str, part: &str) -> bool {
    crate::view::find_ignore_case(text, part).is_some()
}

/// The same with regard to case. Quicker than what the standard library has, for short texts that mostly do not hold it.
fn has(text: &str, part: &str) -> bool {
    crate::view::find(text, part).is_some()
}

fn has_byte(text: &str, byte: u8) -> bool {
    memchr::memchr(byte, text.as_bytes()).is_some()
}

fn starts_with_any(text: &str, list: &[&str]) -> bool {
    list.iter().any(|start| starts(text, start))
}

/// A stack trace: what it was thrown with is an error.
fn is_trace(text: &str) -> bool {
    const SIGNS: &[&str] = &[
        "traceback (most recent call last)",
        "\n    at ",
        "\nat ",
        "\ncaused by",
        "file \"",
        "stack backtrace",
        "\n  caused by",
    ];
    has_lines(text) && SIGNS.iter().any(|sign| holds(text, sign))
}

/// The subject of a commit: `feat(x): …`, `1a2b3c4 docs: …`, a merge, or an imperative that changes a program.
fn is_commit(line: &str) -> bool {
    const KINDS: &[&str] = &[
        "feat", "fix", "chore", "docs", "doc", "refactor", "test", "tests", "style", "perf", "ci", "build",
        "revert", "deps", "hotfix", "release", "wip",
    ];
    const MERGES: &[&str] =
        &["merge pull request #", "merge branch ", "merge remote-tracking", "revert \"", "bump "];
    const CHINESE: [&str; 9] = ["修复", "新增", "优化", "重构", "文档", "测试", "添加", "更新", "移除"];
    let mut rest = line.trim_start_matches(['*', '-', '>', '|', ' ']);
    if let Some((hash, after)) = rest.split_once(' ')
        && (7..=40).contains(&hash.len())
        && hash.bytes().all(|byte| byte.is_ascii_hexdigit() && !byte.is_ascii_uppercase())
        && hash.bytes().any(|byte| byte.is_ascii_digit())
    {
        rest = after.trim_start();
        if let Some((_, after)) = rest.strip_prefix('(').and_then(|inner| inner.split_once(") ")) {
            rest = after;
        }
        return !reports(rest);
    }
    if starts_with_any(rest, MERGES) || is_logged(rest) {
        return true;
    }
    let word = rest.len() - rest.trim_start_matches(|ch: char| ch.is_ascii_lowercase()).len();
    let (kind, after) = rest.split_at(word);
    if KINDS.contains(&kind) {
        let after = match after.strip_prefix('(').and_then(|inner| inner.split_once(')')) {
            Some((_, after)) => after,
            None => after,
        };
        if after.trim_start_matches('!').starts_with(": ") {
            return true;
        }
    }
    let subject = CHINESE.iter().find_map(|kind| rest.strip_prefix(kind));
    if subject.is_some_and(|rest| rest.starts_with([':', '：'])) {
        return true;
    }
    let numbered = rest
        .strip_suffix(')')
        .and_then(|rest| rest.rsplit_once(" (#"))
        .is_some_and(|(_, number)| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()));
    numbered || is_change(rest)
}

/// `commit 1a2b3c4…`, `stash@{0}: …`: how lists of commits and of what is put aside begin.
fn is_logged(line: &str) -> bool {
    line.starts_with("stash@{")
        || line.strip_prefix("commit ").and_then(|rest| rest.split(' ').next()).is_some_and(|hash| {
            (7..=64).contains(&hash.len())
                && hash.bytes().all(|byte| byte.is_ascii_hexdigit() && !byte.is_ascii_uppercase())
        })
}

/// `Add backoff for 429 responses`: a short imperative about a program, without a full stop and without anybody
/// whom it asks. What an error asks for (`Add credits to continue`) is asked of somebody, or ends as a sentence.
fn is_change(line: &str) -> bool {
    /// What is done to programs, and seldom to accounts or requests.
    const VERBS: &[&str] = &[
        "add",
        "bump",
        "cover",
        "document",
        "drop",
        "ensure",
        "expose",
        "extract",
        "fix",
        "handle",
        "honor",
        "honour",
        "implement",
        "improve",
        "introduce",
        "prevent",
        "propagate",
        "refactor",
        "remove",
        "rename",
        "replace",
        "respect",
        "revert",
        "simplify",
        "surface",
        "treat",
        "tweak",
        "update",
    ];
    /// Words of somebody who is asked, and of sentences.
    const ASKED: &[&str] = &[
        "you", "your", "please", "must", "cannot", "has", "have", "failed", "again", "continue", "external",
    ];
    /// A subject is no longer.
    const SUBJECT: usize = 72;
    let mut words = line.split(' ');
    let first = words.next().unwrap_or_default();
    line.len() <= SUBJECT
        && !line.ends_with(['.', '!', '?', ':', ';', '}'])
        && !line.contains(": ")
        && VERBS.iter().any(|verb| first.eq_ignore_ascii_case(verb))
        && line.split(' ').count() >= 3
        && !words.any(|word| ASKED.iter().any(|asked| word.eq_ignore_ascii_case(asked)))
}

/// A line of a test runner.
fn is_test_run(text: &str, line: &str) -> bool {
    const BEGINS: &[&str] = &[
        "✓",
        "✔",
        "√",
        "pass ",
        "--- pass",
        "--- fail",
        "=== run",
        "[ run",
        "[       ok",
        "test suites:",
        "test result:",
        "collected ",
        "running ",
    ];
    if (line.starts_with("PASSED ") || line.starts_with("FAILED ")) && line.contains("::") {
        return true;
    }
    if starts_with_any(line, BEGINS) {
        return !starts(line, "running ") || holds(line, " test");
    }
    let outcome = [" ... ok", " ... failed", " ... ignored", " passed", " failed", " skipped"];
    if (line.starts_with("test ") || line.contains("::")) && outcome.iter().any(|end| ends(line, end)) {
        return true;
    }
    let tap = line.strip_prefix("not ok ").or_else(|| line.strip_prefix("ok "));
    if tap.is_some_and(|rest| rest.starts_with(|ch: char| ch.is_ascii_digit())) {
        return true;
    }
    if starts(line, "fail ") && (line.contains(".test.") || line.contains(".spec.")) {
        return true;
    }
    let digits = line.len() - line.trim_start_matches(|ch: char| ch.is_ascii_digit()).len();
    digits > 0 && line.get(digits..).is_some_and(|rest| rest.starts_with(" passed")) && !holds(text, "error:")
}

/// A row of a table, a line of a glossary in Markdown, a heading, or lines of comma-separated words.
fn is_table(text: &str, line: &str) -> bool {
    if line.len() > 2 && line.starts_with('|') && line.ends_with('|') {
        return line.matches('|').count() >= 3;
    }
    let heading = line.trim_start_matches('#');
    if heading.len() < line.len() && heading.starts_with(' ') {
        return true;
    }
    has_lines(text) && (is_separated(text) || is_list_of_codes(text))
        || has_byte(text, b'+') && is_grid(text)
        || line.starts_with("**Q")
        || line.starts_with("- [ ] ")
        || line.starts_with("- [x] ")
}

/// Two lines or more of the same number of values, parted by commas and without spaces, under a line of names.
fn is_separated(text: &str) -> bool {
    let mut lines = text.lines().take(LINES);
    let header = lines.next().unwrap_or_default();
    let commas = header.matches(',').count();
    let named =
        commas >= 1 && header.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b','));
    let mut rows = lines.filter(|line| !line.is_empty()).peekable();
    named && rows.peek().is_some() && rows.all(|row| row.matches(',').count() == commas && !row.contains(' '))
}

/// `- 429: rate limited`, line after line: what codes mean.
fn is_list_of_codes(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty()).take(LINES).peekable();
    let mut count = 0;
    lines.all(|line| {
        count += 1;
        let item = line.strip_prefix(['-', '*', '•']).map(|rest| rest.trim_start_matches([' ', '*', '`']));
        item.is_some_and(|item| item.bytes().take_while(u8::is_ascii_digit).count() == 3)
    }) && count >= 2
}

/// A result of `psql` or `mysql`: names, a rule of hyphens, values.
fn is_grid(text: &str) -> bool {
    let is_rule = |line: &str| {
        line.len() > 4
            && line.contains("--")
            && line.contains('+')
            && line.bytes().all(|byte| matches!(byte, b'-' | b'+' | b'|' | b' '))
    };
    text.lines().take(2).any(is_rule)
}

/// What a shell or an agent's tool printed.
fn is_transcript(text: &str, line: &str) -> bool {
    const BEGINS: &[&str] = &[
        "diff --git",
        "@@ -",
        "<tool_result",
        "<function_result",
        "<tool_output",
        "<system-reminder",
        "npm warn",
        "npm notice",
        "warning: unused",
        "warning: `",
        "total ",
        "compiling ",
        "usage: ",
        "plan: ",
    ];
    const COMMANDS: [&str; 10] =
        ["grep -", "rg -", "sed -", "awk ", "git log", "git show", "git diff", "cat ", "ls -", "cargo "];
    let typed = ["> ", "% ", "# "].iter().find_map(|prompt| line.strip_prefix(prompt)).unwrap_or(line);
    if starts_with_any(typed, &COMMANDS)
        || line.starts_with("$ ") && !reports(text.get(2..).unwrap_or_default()) && !holds(text, "\"error")
    {
        return true;
    }
    if starts_with_any(line, BEGINS) {
        return match line.split_once(' ') {
            Some((first, rest)) if first.eq_ignore_ascii_case("total") => {
                rest.bytes().all(|byte| byte.is_ascii_digit())
                    && text.contains("\n-rw") | text.contains("\ndrw")
            }
            Some((first, rest)) if first.eq_ignore_ascii_case("compiling") => rest.contains(" v"),
            _ => true,
        };
    }
    if starts(line, "found ") && holds(line, " match") {
        return true;
    }
    let found = text.starts_with("{\"results\"") && text.contains("\"snippet\"");
    found || is_hit(line) || is_healthy(text)
}

/// JSON that describes, counts or confirms something: no error, whatever numbers and words stand in it.
pub(crate) fn is_data(text: &str) -> bool {
    const DESCRIBES: [&str; 9] = [
        "\"openapi\"",
        "\"swagger\"",
        "\"$schema\"",
        "\"paths\"",
        "\"components\"",
        "\"responses\"",
        "\"$defs\"",
        "\"definitions\"",
        "\"info\"",
    ];
    let text = front(text);
    let first = text.strip_prefix('{').map(str::trim_start).unwrap_or_default();
    let described = starts_with_any(first, &DESCRIBES)
        && (holds(text, "\"description\"") || holds(text, "\"type\"") || holds(text, "\"title\""))
        && !holds(text, "\"error\"");
    described || is_healthy(text)
}

/// `src/lib.rs:42:    code`, `README.md:17:text`: what a search found.
fn is_hit(line: &str) -> bool {
    const TEXTS: [&str; 12] =
        [".md", ".txt", ".rst", ".html", ".toml", ".yml", ".yaml", ".json", ".css", ".adoc", ".mdx", ".csv"];
    let Some((path, rest)) = line.split_once(':') else { return false };
    let Some((number, found)) = rest.split_once(':') else { return false };
    let is_path = path.contains('.') && !path.contains(' ') && path.is_ascii();
    is_path
        && !number.is_empty()
        && number.bytes().all(|byte| byte.is_ascii_digit())
        && (found.starts_with("    ") || found.starts_with('\t') || TEXTS.iter().any(|end| ends(path, end)))
}

/// An answer that says that all is well, and nothing of an error.
fn is_healthy(text: &str) -> bool {
    const WELL: [&str; 5] =
        ["\"ok\":true", "\"ok\": true", "\"status\":\"ok\"", "\"status\": \"ok\"", "\"success\":true"];
    text.starts_with('{')
        && WELL.iter().any(|sign| text.contains(sign))
        && !holds(text, "error")
        && !holds(text, "code\"")
}

/// A log line below warnings that reports no failure, or a request that was served.
fn is_log(text: &str, line: &str) -> bool {
    const METHODS: &[&str] = &["get /", "post /", "put /", "patch /", "delete /", "head /"];
    const LEVELS: &[&str] = &[
        "info ",
        "info:",
        "[info]",
        "debug ",
        "debug:",
        "[debug]",
        "trace ",
        "level=info",
        "level=debug",
        "[trace]",
        "notice:",
    ];
    const TROUBLE: &[&str] = &[
        "error",
        "fail",
        "exception",
        "exceeded",
        "refused",
        "denied",
        "timed out",
        "rejected",
        "http/1.1 4",
        "http/1.1 5",
        "unavailable",
        "overloaded",
        "too many",
        "invalid",
    ];
    if starts_with_any(line, LEVELS) {
        return !TROUBLE.iter().any(|word| holds(text, word));
    }
    starts_with_any(line, METHODS)
        && line.split(' ').nth(2).is_some_and(|status| status.len() == 3 && status.starts_with(['2', '3']))
}

/// `2026-11-30 11:02:19.429 UTC [503] FATAL:  …`: a line of a database's log, its process in brackets.
fn is_of_database(line: &str) -> bool {
    const LEVELS: [&str; 7] = ["LOG:", "FATAL:", "ERROR:", "STATEMENT:", "DETAIL:", "HINT:", "PANIC:"];
    let dated = line.as_bytes().get(..4).is_some_and(|year| year.iter().all(u8::is_ascii_digit))
        && line.as_bytes().get(4) == Some(&b'-');
    let process = || line.split_once(" [").and_then(|(_, rest)| rest.split_once("] "));
    dated
        && process().is_some_and(|(number, rest)| {
            !number.is_empty()
                && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
                && LEVELS.iter().any(|level| {
                    rest.split_once(level).is_some_and(|(before, after)| {
                        !before.contains(' ') && after.starts_with("  ")
                            || before.contains('@') && after.starts_with("  ")
                    })
                })
        })
}

/// `Nov 30 11:02:19 host kernel: …`: what a machine's own services log.
fn is_of_system(line: &str) -> bool {
    const SERVICES: [&str; 10] = [
        "kernel:",
        "systemd[",
        "systemd:",
        "sshd[",
        "CRON[",
        "dockerd[",
        "containerd[",
        "sudo:",
        "sudo[",
        "kubelet[",
    ];
    let mut words = line.split(' ').filter(|word| !word.is_empty());
    let month = words
        .next()
        .is_some_and(|word| word.len() == 3 && word.starts_with(|ch: char| ch.is_ascii_uppercase()));
    let is_day = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    let is_clock = |word: &str| word.len() == 8 && word.matches(':').count() == 2;
    month
        && words.next().is_some_and(is_day)
        && words.next().is_some_and(is_clock)
        && words.nth(1).is_some_and(|word| SERVICES.iter().any(|service| word.starts_with(service)))
}

/// A turn of a conversation, its speaker before a colon.
fn is_dialogue(line: &str) -> bool {
    const SPEAKERS: &[&str] = &[
        "assistant: ",
        "user: ",
        "human: ",
        "q: ",
        "a: ",
        "**user**",
        "**assistant**",
        "### user",
        "### assistant",
    ];
    starts_with_any(line, SPEAKERS)
}

/// The title of an issue: `[BUG] 429 when …`.
fn is_title(line: &str) -> bool {
    const TAGS: [&str; 8] =
        ["[bug", "[feature", "[question", "[docs", "[rfc", "[discussion", "[enhancement", "[help"];
    let numbered = ["pr #", "issue #", "pull request #"]
        .iter()
        .any(|name| starts(line, name) && line.as_bytes().get(name.len()).is_some_and(u8::is_ascii_digit));
    numbered || starts_with_any(line, &TAGS)
}

/// `A 429 status code means …`, `HTTP 503 indicates …`: a status, and what it stands for.
fn is_explained(line: &str) -> bool {
    const MEANS: [&str; 8] =
        [" means ", " indicates ", " stands for ", " is returned ", " bedeutet", "を意味", "是指", "表示"];
    let rest = ["a ", "an ", "the ", "http "]
        .iter()
        .find_map(|word| starts(line, word).then(|| line.get(word.len()..)))
        .flatten();
    let rest = rest.unwrap_or(line).trim_start_matches(['`', '"']);
    let rest = if starts(rest, "http ") { rest.get(5..).unwrap_or_default() } else { rest };
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let near = crate::facts::floor(line, 64);
    digits == 3 && MEANS.iter().any(|word| line.get(..near).is_some_and(|front| front.contains(word)))
}

/// `DeprecationWarning: …`, `lib.py:12: FutureWarning: …`: what a library says while the call goes on.
fn is_warning(line: &str) -> bool {
    const CLASSES: [&str; 6] = [
        "DeprecationWarning: ",
        "FutureWarning: ",
        "PendingDeprecationWarning: ",
        "ExperimentalWarning: ",
        "ResourceWarning: ",
        "LangChainDeprecationWarning: ",
    ];
    has(line, "Warning: ")
        && CLASSES.iter().any(|class| {
            line.split_once(class).is_some_and(|(before, _)| {
                before.is_empty()
                    || before.ends_with(": ")
                    || before.ends_with("] ")
                    || before.ends_with(") ")
            })
        })
}

/// `Tokens per minute (TPM) = 75,000; Requests per minute (RPM) = 75`: names of limits and their values, no use of them.
fn is_sheet(line: &str) -> bool {
    const USED: [&str; 8] =
        ["used", "current", "requested", "actual", "observed", "got", "remaining", "exceed"];
    if !has_byte(line, b'=') {
        return false;
    }
    let values = line.split(';').filter(|item| {
        item.split_once(" = ").is_some_and(|(name, value)| {
            let name = name.rsplit(':').next().unwrap_or_default();
            value.trim_start().starts_with(|ch: char| ch.is_ascii_digit())
                && name.contains(' ')
                && !USED.iter().any(|word| starts(name.trim_start(), word))
        })
    });
    values.count() >= 2 && !holds(line, "error") && !holds(line, "exceeded")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_told_by_their_shape() {
        for text in [
            "feat: handle 429",
            "fix(retry)!: respect Retry-After",
            "1a2b3c4 (HEAD -> main) Handle expired tokens",
            "Merge pull request #88 from x/insufficient-balance",
            "test rate_limit::parses ... ok",
            "✓ returns 401 when the API key is invalid",
            "tests/test_billing.py::test_balance PASSED",
            "throw new Error(\"Insufficient balance\");",
            "except openai.RateLimitError as e:\n    time.sleep(20)",
            "| 402 | Insufficient balance | Top up |",
            "src/lib.rs:42:        Err(Error::RateLimited) => retry(),",
            "INFO server: rate limiter enabled",
            "Treat 529 as overloaded",
            "commit 5031f4290c5d2b71\nAuthor: Dev <dev@example.org>\n\n    Treat insufficient_quota as billing",
            "sdk.py:88: DeprecationWarning: The model 'x' is deprecated and will reach end-of-life soon.",
            "Defaults: tokens per minute (TPM) = 60,000; requests per minute (RPM) = 500",
            "Drop retries on 401 from the gateway",
            " id  | tenant | used\n-----+--------+------\n 429 | acme   |  503\n(1 row)",
            "2026-11-30 11:02:19.429 UTC [503] FATAL:  sorry, too many clients already",
            "{\"responses\":{\"429\":{\"description\":\"Rate limit reached\"}}}",
            "GET /billing 200 in 34ms",
            "<tool_result>curl: (28) Operation timed out</tool_result>",
        ] {
            assert!(is_record(text), "{text}");
        }
    }

    #[test]
    fn errors_are_no_records() {
        for text in [
            "429 Too Many Requests",
            "Error code: 429 - {'error': {'message': 'Rate limit reached'}}",
            "Traceback (most recent call last):\n  File \"x.py\", line 1\n    raise RateLimitError()\nopenai.RateLimitError: 429",
            "foo.js:12\n    throw new Error('x');\nError: Insufficient balance\n    at main (foo.js:12)",
            "{ name: \"MessageAbortedError\", message: \"User cancelled\" }",
            "When using `tool_choice`, `tools` must be set.",
            "Add credits to continue",
            "Update your payment method",
            "Handle is not recognized: model missing",
            "Treat as failed: 429 from upstream",
            "INFO:httpx:HTTP Request: POST https://api.openai.com/v1/chat/completions \"HTTP/1.1 429 Too Many Requests\"",
            "✗ Model call failed: {\"code\":\"rate_limited\"}",
            "Request timed out.",
            "I encountered an error while processing your request: APIStatusError: Error code: 402",
        ] {
            assert!(!is_record(text), "{text}");
            assert!(!is_speech(text) || reports(text), "{text}");
        }
    }

    #[test]
    fn speech_is_told_by_how_it_begins() {
        for text in [
            "What is the rate limit for gpt-4o?",
            "如何解决 429 错误？",
            "`invalid_api_key`: the key is wrong.",
            "TODO: decide what to do when the model is not found.",
            "I found 3 places where `insufficient_quota` is handled.",
            "Sure! A rate limit error happens when you send too many requests.",
            "The \"Server is busy\" message indicates that the system is under high demand.",
            "If you see the 'High Load' banner, wait for a while.",
            "Le manuel explique que le crédit insuffisant bloque la machine.",
            "\"Insufficient balance,\" the machine read, and she laughed.",
            "Hi, since last week I get 429 rate limit, so I waited an hour and tried again.",
            "How to Fix 'No Healthy Upstream' Quickly",
            "A customer reads \"invalid api key\" on our page. Which component prints that?",
            "« Solde insuffisant », murmura la machine.",
            "Hello all, invoice #40290 is overdue; please pay it this week. Best, Accounting",
            "When users hit rate limits (429), they get a generic error.",
            "この関数は、レート制限に達した場合の動作を調べるためのものです。",
        ] {
            assert!(is_speech(text) && !reports(text), "{text}");
        }
    }
}
