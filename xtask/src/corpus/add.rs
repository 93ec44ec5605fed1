//! A new case from a raw HTTP response: headers that matter are kept, and what is personal is replaced.

use super::{Bench, USAGE};
use crate::run::{Faults, Outcome, root};
use failover_classify::{AsSignal, KnownSecrets};
use failover_testkit::corpus::{Case, Expect};
use failover_types::FailoverReason;

/// Headers that say something of the error; names that end in `-` stand for all that begin so.
const HEADERS: &[&str] = &[
    "retry-after",
    "retry-after-ms",
    "content-type",
    "x-ratelimit-",
    "ratelimit-",
    "anthropic-ratelimit-",
    "x-amzn-errortype",
    "x-ms-error-code",
    "x-error-code",
    "x-should-retry",
    "grpc-status",
];

/// Beginnings of ids that name an account, a key or a request.
const IDS: &[&str] = &[
    "org-",
    "org_",
    "proj_",
    "proj-",
    "req_",
    "request-",
    "user-",
    "user_",
    "acct_",
    "acc_",
    "chatcmpl-",
    "resp_",
];

/// Fields whose values name somebody.
const NAMES: &[&str] = &[
    "user",
    "user_id",
    "username",
    "user_name",
    "account",
    "account_id",
    "account_name",
    "organization",
    "organization_id",
    "org",
    "org_id",
    "team",
    "team_id",
    "tenant",
    "tenant_id",
    "project",
    "project_id",
    "owner",
    "email",
    "workspace",
    "workspace_id",
    "request_id",
    "requestId",
    "RequestId",
    "trace_id",
    "ip",
];

pub(super) fn main(args: &[String]) -> Outcome {
    let asked = Asked::read(args)?;
    let raw = std::fs::read(&asked.from).map_err(|error| Faults::one(format!("{}: {error}", asked.from)))?;
    let raw = String::from_utf8(raw).map_err(|_| Faults::one(format!("{}: is not UTF-8", asked.from)))?;
    let mut case = response(&asked.provider, &raw, &KnownSecrets::new(asked.hide))?;
    let bench = Bench::load()?;
    let verdict = case.with_signal(|signal| bench.classifier.classify(signal));
    case.expect = match asked.reason {
        Some(reason) => Expect::new(reason),
        None => Expect::new(verdict.reason),
    };
    case.expect.retry_after_ms =
        verdict.hint.as_ref().and_then(failover_classify::RetryHint::after).map(failover_types::millis);
    case.expect.reset_at = verdict
        .hint
        .as_ref()
        .and_then(failover_classify::RetryHint::at)
        .map(failover_types::Timestamp::as_millis);
    let status = case.status.unwrap_or_default();
    case.id = asked.name.unwrap_or_else(|| {
        format!("{}-{status}-{}", asked.provider, verdict.reason.as_str().replace('_', "-"))
    });
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if ![&case.id, &case.provider].iter().all(|name| name.chars().all(fits) && !name.starts_with('.')) {
        return Err(Faults::one(
            "provider and case are file names of letters, digits, dots, dashes and underscores",
        ));
    }
    let file = format!("fixtures/corpus/{}/{}.toml", case.provider, case.id);
    let path = root().join(&file);
    if bench.corpus.cases.iter().any(|known| known.id == case.id) || path.exists() {
        return Err(Faults::one(format!("{} is taken: choose another with --name", case.id)));
    }
    let text = case.to_toml().map_err(|error| Faults::one(error.to_string()))?;
    let write =
        || std::fs::create_dir_all(path.parent().unwrap_or(&path)).and_then(|()| std::fs::write(&path, text));
    write().map_err(|error| Faults::one(format!("{file}: {error}")))?;
    println!("{file}: {} by {}", verdict.reason, verdict.evidence.rule);
    println!("now read it for what is left of names and keys, and fill in `seen` and `why`");
    if asked.reason.is_none() {
        println!("the expectation is the classifier's own verdict: correct it where it is wrong");
    }
    Ok(())
}

struct Asked {
    provider: String,
    from: String,
    reason: Option<FailoverReason>,
    name: Option<String>,
    hide: Vec<String>,
}

impl Asked {
    fn read(args: &[String]) -> Result<Self, Faults> {
        let [provider, rest @ ..] = args else { return Err(Faults::one(USAGE)) };
        let mut asked = Self {
            provider: provider.clone(),
            from: String::new(),
            reason: None,
            name: None,
            hide: Vec::new(),
        };
        for pair in rest.chunks(2) {
            let [flag, value] = pair else { return Err(Faults::one(USAGE)) };
            match flag.as_str() {
                "--from" => asked.from.clone_from(value),
                "--name" => asked.name = Some(value.clone()),
                "--hide" => asked.hide.push(value.clone()),
                "--reason" => {
                    asked.reason =
                        Some(value.parse().map_err(|error| Faults::one(format!("--reason: {error}")))?);
                }
                _ => return Err(Faults::one(USAGE)),
            }
        }
        if asked.from.is_empty() { Err(Faults::one(USAGE)) } else { Ok(asked) }
    }
}

/// A case from the text of a response: status line, headers, an empty line, body.
fn response(provider: &str, raw: &str, hide: &KnownSecrets) -> Result<Case, Faults> {
    let (head, body) = raw.split_once("\r\n\r\n").or_else(|| raw.split_once("\n\n")).unwrap_or((raw, ""));
    let mut lines = head.lines();
    let status = lines
        .next()
        .filter(|line| line.starts_with("HTTP/"))
        .and_then(|line| line.split_ascii_whitespace().nth(1))
        .and_then(|status| status.parse().ok())
        .ok_or_else(|| {
            Faults::one("the first line must be a status line such as `HTTP/1.1 429 Too Many Requests`")
        })?;
    let clean = |text: &str| dummies(&hide.redact(text));
    let mut case = Case::new("", provider, clean(body), Expect::new(FailoverReason::Unclassified));
    case.status = Some(status);
    case.headers = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.trim().to_ascii_lowercase(), clean(value.trim())))
        .filter(|(name, _)| {
            HEADERS.iter().any(|known| name == known || known.ends_with('-') && name.starts_with(known))
        })
        .collect();
    Ok(case)
}

/// Ids and the values of fields that name somebody become dummies of the same shape.
fn dummies(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut field = "";
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '@');
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end =
            if is_word(first) { rest.find(|c| !is_word(c)).unwrap_or(rest.len()) } else { first.len_utf8() };
        let (word, after) = rest.split_at(end);
        rest = after;
        if !is_word(first) {
            // A field's name holds over quotes, colons and spaces up to its value.
            if !matches!(first, '"' | '\'' | '\\' | ':' | ' ') {
                field = "";
            }
            clean.push(first);
            continue;
        }
        let id = IDS.iter().find(|id| word.starts_with(**id) && word.len() > id.len() + 5);
        if let Some(prefix) = id {
            clean.push_str(prefix);
            clean.extend(word.chars().skip(prefix.len()).map(dummy));
        } else if is_uuid(word) || NAMES.contains(&field) {
            clean.extend(word.chars().map(dummy));
        } else {
            clean.push_str(word);
        }
        let named = rest.starts_with(['"', '\'', '\\', ':']) && NAMES.contains(&word);
        field = if named {
            word
        } else if rest.starts_with(' ') {
            field
        } else {
            ""
        };
    }
    clean
}

fn dummy(c: char) -> char {
    match c {
        '0'..='9' => '0',
        'a'..='z' => 'x',
        'A'..='Z' => 'X',
        other => other,
    }
}

fn is_uuid(word: &str) -> bool {
    word.len() == 36
        && word.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_becomes_a_case_without_persons() -> Result<(), Faults> {
        let raw = "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 5\r\nSet-Cookie: a=b\r\nX-Ratelimit-Reset-Tokens: 6m0s\r\n\r\n\
            {\"user\": \"Jane Doe\", \"id\": \"12345678-1234-1234-1234-1234567890ab\", \"message\": \"org-AbCdEf123456 of Bob \
            reached its limit, key sk-abcdefghijklmnop1234\"}";
        let case = response("acme", raw, &KnownSecrets::new(["Jane Doe", "of Bob"]))?;
        assert_eq!(case.status, Some(429));
        assert_eq!(case.headers.keys().collect::<Vec<_>>(), ["retry-after", "x-ratelimit-reset-tokens"]);
        for personal in ["Jane", "Bob", "1234-", "AbCdEf", "abcdefgh"] {
            assert!(!case.body.contains(personal), "{personal} in {}", case.body);
        }
        assert!(case.body.contains("org-XxXxXx000000"), "{}", case.body);
        Ok(())
    }

    #[test]
    fn values_of_naming_fields_keep_their_shape_and_others_stay() {
        let text = "{\"user_id\":\"u-17\",\"message\":\"Limit 30000, project: none\",\"team\": \"Blue Sky\"}";
        assert_eq!(
            dummies(text),
            "{\"user_id\":\"x-00\",\"message\":\"Limit 30000, project: xxxx\",\"team\": \"Xxxx Xxx\"}"
        );
        assert!(response("acme", "no status line", &KnownSecrets::default()).is_err());
    }
}
