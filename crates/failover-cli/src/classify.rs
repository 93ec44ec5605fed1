//! `failover classify`: one signal from flags, a file or a raw response; or a batch of JSON lines.

use crate::exit::{Exit, Failure};
use crate::input;
use clap::Args;
use failover::classify::{Classifier, Explanation, RetryHint, RetryWhen, Signal, Surface, Verdict, redact};
use failover::config::Loaded;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::io::{BufRead, IsTerminal, Write};
use std::path::PathBuf;

/// Longest line of a batch, in bytes: a body is cut by the classifier anyway, but a line is held in memory.
const MAX_LINE: usize = 64 * 1024 * 1024;

/// Some editors put it before the first line.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Says why a call failed: reason, scope, wait, and the rule that decided. Without anything that describes the error, it
/// is read from standard input: a raw HTTP response, or a text.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  failover classify --provider openai --status 429 --body 'Rate limit reached'
  curl -si https://… | failover classify --explain
  tail -1 errors.txt | failover classify --provider openai
  failover classify --jsonl errors.jsonl > verdicts.jsonl")]
pub(crate) struct ClassifyArgs {
    /// Classify each line of a file of JSON objects; `-` reads standard input.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["provider", "status", "header", "code", "surface", "body", "body_file", "http", "explain", "json"])]
    jsonl: Option<String>,
    /// Provider id: openai, anthropic, …
    #[arg(long)]
    provider: Option<String>,
    /// HTTP status.
    #[arg(long, value_parser = clap::value_parser!(u16).range(100..=999))]
    status: Option<u16>,
    /// A response header, `Name: value`; may be given again.
    #[arg(long, value_name = "NAME: VALUE")]
    header: Vec<String>,
    /// Error code that the client had apart from the body.
    #[arg(long)]
    code: Option<String>,
    /// Where the error came from: http, `stream_event`, `sdk_message`, transport, local, cancelled.
    #[arg(long)]
    surface: Option<String>,
    /// Body or message text.
    #[arg(long, conflicts_with = "body_file")]
    body: Option<String>,
    /// A file with the body or message; `-` reads standard input.
    #[arg(long, value_name = "FILE")]
    body_file: Option<PathBuf>,
    /// Take standard input for a raw HTTP response (status line, headers, body), whatever it begins with.
    #[arg(long, conflicts_with_all = ["body", "body_file"])]
    http: bool,
    /// Show every rule that matched, and why the winner won.
    #[arg(long)]
    explain: bool,
    /// One JSON object for machines.
    #[arg(long)]
    json: bool,
    /// A config whose classifier rules count too.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl ClassifyArgs {
    /// Whether anything is known of the failure. A provider alone says nothing of it.
    fn is_told_something(&self) -> bool {
        self.status.is_some()
            || self.code.is_some()
            || self.body.is_some()
            || self.body_file.is_some()
            || self.surface.is_some()
            || self.http
            || !self.header.is_empty()
    }
}

/// A line of a batch. Unknown fields are somebody else's; a field of an odd type is read for what it is worth, so that
/// one field does not cost the verdict.
#[derive(Deserialize)]
struct Line<'a> {
    /// As written; it comes back to the byte.
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(default)]
    provider: Value,
    #[serde(default)]
    surface: Value,
    #[serde(default)]
    status: Value,
    #[serde(default)]
    headers: Value,
    #[serde(default)]
    code: Value,
    /// As written: spans count in it.
    #[serde(borrow)]
    body: Option<&'a RawValue>,
}

/// What stands for a line that cannot be read. The names are a contract.
#[derive(Serialize)]
struct Malformed {
    id: Option<Value>,
    error: String,
}

/// A verdict as batches print it. The names are a contract.
#[derive(Serialize)]
struct Row<'a> {
    id: Option<&'a RawValue>,
    reason: &'static str,
    scope: &'static str,
    retry_after_ms: Option<u64>,
    reset_at: Option<u64>,
    rule: &'a str,
    layer: failover::classify::Tier,
    span: Option<(usize, usize)>,
}

impl<'a> Row<'a> {
    fn new(id: Option<&'a RawValue>, verdict: &'a Verdict) -> Self {
        // A provider may say both: a wait, and a time.
        let hint = verdict.hint.as_ref();
        let retry_after_ms = hint.and_then(RetryHint::after).map(failover::types::millis);
        let reset_at = hint.and_then(RetryHint::at).map(failover::types::Timestamp::as_millis);
        Self {
            id,
            reason: verdict.reason.as_str(),
            scope: verdict.scope.as_str(),
            retry_after_ms,
            reset_at,
            rule: &verdict.evidence.rule,
            layer: verdict.evidence.tier,
            span: verdict.evidence.span,
        }
    }
}

/// Runs the command.
pub(crate) fn run(args: &ClassifyArgs, out: &mut dyn Write) -> Result<Exit, Failure> {
    let loaded = match &args.config {
        Some(path) => crate::home::load_config(path)?,
        None => empty_config()?,
    };
    let classifier =
        failover::classifier(&loaded).map_err(|error| Failure::new(Exit::Config, error.to_string()))?;
    match args.jsonl.as_deref() {
        Some("-") => batch(&classifier, &mut std::io::stdin().lock(), out),
        Some(path) => {
            let file = std::fs::File::open(path)
                .map_err(|error| Failure::new(Exit::Usage, format!("cannot read {path}: {error}")))?;
            batch(&classifier, &mut std::io::BufReader::new(file), out)
        }
        None => one(&classifier, args, out),
    }
}

fn empty_config() -> Result<Loaded, Failure> {
    failover::config::load_text("", "{}").map_err(|error| Failure::new(Exit::Config, error.to_string()))
}

/// Every line in order; a malformed one is reported in its place, and the rest goes on.
fn batch(classifier: &Classifier, input: &mut dyn BufRead, out: &mut dyn Write) -> Result<Exit, Failure> {
    let mut out = std::io::BufWriter::new(out);
    let mut exit = Exit::Ok;
    let mut line = Vec::new();
    let mut first = true;
    loop {
        line.clear();
        let read = input::line(input, &mut line, MAX_LINE)
            .map_err(|error| Failure::new(Exit::Failed, format!("cannot read the input: {error}")))?;
        if first && line.starts_with(BYTE_ORDER_MARK) {
            line.drain(..BYTE_ORDER_MARK.len());
        }
        first = false;
        let error = match read {
            input::Read::End => break,
            input::Read::Line if line.iter().all(u8::is_ascii_whitespace) => continue,
            input::Read::Line => classify_line(classifier, &line, &mut out)?,
            input::Read::TooLong => Some(format!("the line is longer than {MAX_LINE} bytes")),
        };
        if let Some(error) = error {
            exit = Exit::Failed;
            serde_json::to_writer(&mut out, &Malformed { id: None, error })?;
        }
        out.write_all(b"\n")?;
    }
    out.flush()?;
    Ok(exit)
}

/// Writes the verdict of one line; gives back what is wrong with the line otherwise.
fn classify_line(
    classifier: &Classifier,
    line: &[u8],
    out: &mut dyn Write,
) -> Result<Option<String>, Failure> {
    let text = String::from_utf8_lossy(line);
    // A sequence would be read as fields by position.
    if !text.trim_start().starts_with('{') {
        return Ok(Some("not a signal: expected a JSON object".to_owned()));
    }
    let text = whole_surrogates(&text);
    let parsed: Line<'_> = match serde_json::from_str(&text) {
        Ok(parsed) => parsed,
        Err(error) => return Ok(Some(format!("not a signal: {error}"))),
    };
    let body = match parsed.body.map(RawValue::get) {
        None => String::new(),
        Some(structure) if structure.starts_with(['{', '[']) => structure.to_owned(),
        Some(scalar) => serde_json::from_str(scalar).ok().and_then(|value| plain(&value)).unwrap_or_default(),
    };
    let filled = |value: &Value| plain(value).filter(|text| !text.is_empty());
    let code = filled(&parsed.code);
    let provider = filled(&parsed.provider).map(|provider| provider.to_ascii_lowercase());
    let headers = headers(&parsed.headers);
    let borrowed: Vec<(&str, &str)> =
        headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let mut signal = Signal::new(surface(parsed.surface)).with_headers(&borrowed).with_body(body.as_bytes());
    signal.provider = provider.as_deref();
    signal.status = status(&parsed.status);
    signal.code = code.as_deref();
    let verdict = classifier.classify(&signal);
    serde_json::to_writer(out, &Row::new(parsed.id, &verdict))?;
    Ok(None)
}

/// A surface that nobody knows is read as a client's message, which promises least; none is the default.
fn surface(value: Value) -> Surface {
    if value.is_null() {
        return Surface::default();
    }
    serde_json::from_value(value).unwrap_or(Surface::SdkMessage)
}

/// A status, also as text (`"429"`) or with a fraction of nothing (`429.0`); none where it is no status.
fn status(value: &Value) -> Option<u16> {
    let text = plain(value)?;
    let text = text.trim();
    text.strip_suffix(".0").unwrap_or(text).parse().ok().filter(|status| (1..1000).contains(status))
}

/// Puts the replacement character in the place of each half of a surrogate pair that stands alone, as programs write
/// that keep undecodable bytes in their texts. JSON's grammar allows them, text does not.
fn whole_surrogates(text: &str) -> Cow<'_, str> {
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let mut mended = String::new();
    let (mut kept, mut at) = (0, 0);
    while let Some(found) = text.get(at..).and_then(|rest| rest.find('\\')) {
        at += found;
        match unit(at) {
            Some(0xD800..=0xDBFF) if matches!(unit(at + 6), Some(0xDC00..=0xDFFF)) => at += 12,
            Some(0xD800..=0xDFFF) => {
                mended.push_str(text.get(kept..at).unwrap_or_default());
                mended.push_str("\\ufffd");
                at += 6;
                kept = at;
            }
            // An escape and what it escapes: a backslash behind a backslash opens none.
            _ => at += 2,
        }
    }
    if mended.is_empty() {
        return text.into();
    }
    mended.push_str(text.get(kept..).unwrap_or_default());
    mended.into()
}

/// The text of a string or number; nothing for `null`; `None` for what has structure.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::Null => Some(String::new()),
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(boolean) => Some(boolean.to_string()),
        Value::Array(_) | Value::Object(_) => None,
    }
}

/// A header as it stands in a response.
fn pair(line: &str) -> Option<(String, String)> {
    let (name, value) = line.split_once(':')?;
    Some((name.trim().to_owned(), value.trim().to_owned()))
}

/// A header in a list: a pair, an object with `name` and `value`, a small object of headers, or a line.
fn listed(item: &Value) -> Vec<(String, String)> {
    let text = |value: Option<&Value>| value.and_then(plain);
    match (text(item.get(0)), text(item.get(1)), text(item.get("name")), text(item.get("value"))) {
        (Some(name), Some(value), ..) | (_, _, Some(name), Some(value)) => vec![(name, value)],
        _ if item.is_array() => Vec::new(),
        _ => headers(item),
    }
}

/// Headers as pairs: from an object of texts or lists of texts, from a list, or from lines.
fn headers(value: &Value) -> Vec<(String, String)> {
    let texts = |value: &Value| -> Vec<String> {
        match value {
            Value::Array(values) => values.iter().filter_map(plain).collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
                plain(value).into_iter().collect()
            }
        }
    };
    match value {
        Value::Object(map) => map
            .iter()
            .flat_map(|(name, value)| texts(value).into_iter().map(move |value| (name.clone(), value)))
            .collect(),
        Value::Array(items) => items.iter().flat_map(listed).collect(),
        Value::String(text) => text.lines().filter_map(pair).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

/// One signal from flags, a file or a raw response.
fn one(classifier: &Classifier, args: &ClassifyArgs, out: &mut dyn Write) -> Result<Exit, Failure> {
    let piped = !args.is_told_something();
    if piped && std::io::stdin().is_terminal() {
        return Err(nothing());
    }
    let mut headers: Vec<(String, String)> = Vec::new();
    for header in &args.header {
        headers.push(pair(header).ok_or_else(|| {
            Failure::new(Exit::Usage, "a header without a colon")
                .hint("write it as --header 'Retry-After: 20'")
        })?);
    }
    let (mut status, mut body) = (args.status, args.body.clone().unwrap_or_default().into_bytes());
    if args.http || piped {
        let raw = input::stdin()?;
        if piped && raw.trim_ascii().is_empty() {
            return Err(nothing());
        }
        if args.http || raw.starts_with(b"HTTP/") {
            let response = input::response(&raw);
            status = status.or(response.status);
            headers.extend(response.headers);
            body = response.body;
        } else {
            body = raw;
        }
    } else if let Some(path) = &args.body_file {
        body = input::file(path)?;
    }
    let surface: Surface = match &args.surface {
        Some(name) => serde_json::from_value(Value::String(name.clone())).map_err(|_| {
            Failure::new(Exit::Usage, format!("no surface is called {name:?}"))
                .hint("one of http, stream_event, sdk_message, transport, local, cancelled")
        })?,
        None if status.is_some() || !headers.is_empty() => Surface::Http,
        None => Surface::SdkMessage,
    };
    let borrowed: Vec<(&str, &str)> =
        headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let mut signal = Signal::new(surface).with_headers(&borrowed).with_body(&body);
    let provider = args.provider.as_ref().map(|provider| provider.to_ascii_lowercase());
    signal.provider = provider.as_deref();
    signal.status = status;
    signal.code = args.code.as_deref();
    let explanation = classifier.explain(&signal);
    if args.json {
        if args.explain {
            serde_json::to_writer_pretty(&mut *out, &explanation_json(&explanation))?;
        } else {
            serde_json::to_writer(&mut *out, &explanation.verdict)?;
        }
        writeln!(out)?;
        return Ok(Exit::Ok);
    }
    show(&explanation, &body, args.explain, out)?;
    Ok(Exit::Ok)
}

fn nothing() -> Failure {
    Failure::new(Exit::Usage, "nothing to classify").hint(
        "give --status, --code, --header, --body, --body-file, --surface or --jsonl, or an error on standard input",
    )
}

/// The tier's name, as verdicts are serialized.
fn tier_name(tier: failover::classify::Tier) -> String {
    match serde_json::to_value(tier) {
        Ok(Value::String(name)) => name,
        _ => String::new(),
    }
}

fn explanation_json(explanation: &Explanation) -> Value {
    let matched: Vec<Value> = explanation
        .matched
        .iter()
        .map(|found| {
            serde_json::json!({
                "rule": found.rule,
                "tier": found.tier,
                "reason": found.reason,
                "scope": found.scope,
                "asked": found.asked,
                "source": found.source,
                "span": found.span,
            })
        })
        .collect();
    serde_json::json!({
        "verdict": explanation.verdict,
        "why": explanation.why,
        "status": explanation.status,
        "codes": explanation.codes,
        "matched": matched,
    })
}

/// So much of what a rule asks for is shown: a rule of wordings asks for any of a hundred.
const ASKED: usize = 200;

fn show(explanation: &Explanation, body: &[u8], all: bool, out: &mut dyn Write) -> Result<(), Failure> {
    let verdict = &explanation.verdict;
    writeln!(out, "reason   {} (blames the {})", verdict.reason, verdict.scope)?;
    if let Some(hint) = &verdict.hint {
        let when = match &hint.when {
            RetryWhen::After(wait) => format!("in {}", crate::time::exact(*wait)),
            RetryWhen::At(at) => format!("at {}", crate::time::date(*at)),
            RetryWhen::Wall { text, zone } => match zone {
                Some(zone) => format!("at {text} ({zone})"),
                None => format!("at {text}"),
            },
        };
        writeln!(out, "retry    {when}, says {}", hint.source)?;
    }
    if let Some(tokens) = &verdict.tokens {
        let count = |count: Option<u64>| count.map_or_else(|| "?".to_owned(), |count| count.to_string());
        writeln!(out, "tokens   {} of {} allowed", count(tokens.observed), count(tokens.allowed))?;
    }
    let evidence = &verdict.evidence;
    let span = evidence.span.map(|(start, end)| format!(", bytes {start}–{end}")).unwrap_or_default();
    writeln!(out, "rule     {} (tier {}{span})", evidence.rule, tier_name(evidence.tier))?;
    if !evidence.preview.is_empty() {
        writeln!(out, "text     {}", evidence.preview)?;
    }
    if all {
        writeln!(out, "why      {}", explanation.why)?;
        writeln!(out, "\nrules that matched, the winner first")?;
        for found in &explanation.matched {
            let span = found.span.map(|(start, end)| format!(", bytes {start}–{end}")).unwrap_or_default();
            writeln!(out, "  {} -> {} (tier {}{span})", found.rule, found.reason, tier_name(found.tier))?;
            if let Some(said) = found.span.and_then(|(start, end)| body.get(start..end)) {
                writeln!(out, "      found {:?}", redact(&String::from_utf8_lossy(said)))?;
            }
            let shown = found.asked.char_indices().nth(ASKED).map(|(at, _)| found.asked.split_at(at).0);
            match shown {
                Some(front) => writeln!(out, "      asks for {front}… (all of it with --json)")?,
                None => writeln!(out, "      asks for {}", found.asked)?,
            }
        }
    }
    Ok(())
}
