//! Source code and settings, told from errors that quote a line of it.

use super::{LINES, ends, has, has_byte, has_lines, starts, starts_with_any};

/// Source code: every line reads as code, and the first beyond doubt.
pub(super) fn is_code(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty()).take(LINES);
    let Some(first) = lines.next() else { return false };
    if is_code_line(first) && lines.all(|line| is_codeish(line) || is_code_line(line)) || is_mapping(first) {
        return true;
    }
    has_lines(text)
        && (is_import(first) && lines_of_code(text) >= 3
            || is_settings(text)
            || is_block(text)
            || text.lines().take(2).nth(1).is_some_and(|second| {
                is_name_line(first) && second.starts_with("  ") && is_mapping(second.trim())
            }))
}

/// `import requests`, `from x import y`.
fn is_import(line: &str) -> bool {
    let named = |text: &str| {
        text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b',' | b' '))
    };
    ["import ", "from ", "use "].iter().find_map(|word| line.strip_prefix(word)).is_some_and(named)
}

/// How many lines read as code.
fn lines_of_code(text: &str) -> usize {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty()).take(LINES);
    lines.filter(|line| is_import(line) || is_codeish(line) || is_code_line(line)).count()
}

/// Lines of `name: value` or `name = value` whose values are single words: settings.
fn is_settings(text: &str) -> bool {
    const OF_ERRORS: &[&str] =
        &["code", "status", "error", "message", "type", "reason", "detail", "event", "data", "id", "retry"];
    let mut count = 0;
    for line in text.lines().filter(|line| !line.trim().is_empty()).take(LINES) {
        let Some((name, value)) = line.split_once(": ").or_else(|| line.split_once(" = ")) else {
            return false;
        };
        let plain = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        if !plain || OF_ERRORS.contains(&name) || value.trim().contains([' ', '{', '"', '<']) {
            return false;
        }
        count += 1;
    }
    count >= 2
}

/// A block of YAML under a name of its own: `ratelimit:`, then lines of `name: value` further in.
fn is_block(text: &str) -> bool {
    const OF_ERRORS: &[&str] =
        &["error", "errors", "exception", "detail", "details", "response", "body", "data", "cause"];
    let mut lines = text.lines().filter(|line| !line.trim().is_empty()).take(LINES);
    let Some(first) = lines.next() else { return false };
    let name = first.trim_end().strip_suffix(':').unwrap_or_default();
    let plain = |name: &str| {
        !name.is_empty()
            && name.bytes().all(|byte| {
                byte.is_ascii_lowercase() || matches!(byte, b'_' | b'-' | b'.') || byte.is_ascii_digit()
            })
    };
    let mut count = 0;
    plain(name)
        && !OF_ERRORS.contains(&name)
        && lines.all(|line| {
            count += 1;
            let inner = line.trim_start();
            let inner = inner.strip_prefix("- ").unwrap_or(inner);
            let key = inner.split_once(": ").map_or(inner.strip_suffix(':'), |(key, _)| Some(key));
            line.starts_with(' ') && (key.is_some_and(plain) || line.trim_start().starts_with("- "))
        })
        && count >= 2
}

/// `errors.New("context length exceeded")`: nothing but a call.
fn is_call(line: &str) -> bool {
    if !line.ends_with("\")") {
        return false;
    }
    let Some((name, rest)) = line.split_once("(\"") else { return false };
    let named = !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b':' | b'!'));
    // `RateLimitError("…")` is how clients print an error.
    let error = ["error", "exception", "err"].iter().any(|end| ends(name, end));
    named && !error && rest.ends_with("\")")
}

fn is_code_line(line: &str) -> bool {
    const SURE: &[&str] = &[
        "if (",
        "if err",
        "} else",
        "} catch",
        "catch (",
        "for (",
        "while (",
        "switch (",
        "const ",
        "let mut ",
        "var ",
        "throw new ",
        "assert_",
        "assert!(",
        "assert(",
        "expect(",
        "console.",
        "println!",
        "eprintln!",
        "print(",
        "@pytest",
        "#[",
        "//",
        "/*",
        "#!/",
        "def ",
        "async def ",
        "async fn ",
        "pub fn ",
        "pub ",
        "impl ",
        "enum ",
        "struct ",
        "export ",
        "import ",
        "func ",
        "function ",
        "it(\"",
        "it('",
        "test(\"",
        "test('",
        "describe(\"",
        "type ",
        "elif ",
        "try {",
        "return err(",
        "logger.",
        "#include",
    ];
    const WORDED: &[&str] = &[
        "if ", "let ", "return ", "raise ", "except ", "match ", "case ", "class ", "fn ", "await ", "with ",
    ];
    let ends_as_code = line.ends_with([';', '{', '}', ')', ':', ',']) || line.ends_with("=>");
    if starts_with_any(line, SURE) {
        let comment = line.starts_with("//") && !line.starts_with("//:")
            || line.starts_with("/*")
            || line.starts_with('#');
        if starts(line, "type ") {
            return line.contains(" = ") && line.ends_with([';', '{']);
        }
        return comment || ends_as_code || line.contains('(') || line.contains('=') || line.contains("; //");
    }
    if WORDED.iter().any(|word| line.starts_with(word)) {
        return ends_as_code
            && (line.contains(['(', '{', '=']) || line.ends_with(':') || line.contains("=>"));
    }
    // A diff's line, a constant, a table of a program.
    let diff = line.strip_prefix(['+', '-']).filter(|rest| rest.starts_with("  ") || rest.starts_with('\t'));
    if diff.is_some_and(|rest| is_codeish(rest.trim())) {
        return true;
    }
    if is_call(line) || line.starts_with("assert \"") {
        return true;
    }
    let constant = has_byte(line, b'=')
        && line.split_once(" = ").is_some_and(|(name, _)| {
            name.len() > 2
                && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_' || byte.is_ascii_digit())
        });
    constant
        || line.starts_with("{ ") && line.ends_with("},")
        || line.starts_with("- name: ")
        || line.ends_with(';') && line.contains('(') && line.contains(')') && !line.contains(". ")
}

/// A line that may well stand among code.
fn is_codeish(line: &str) -> bool {
    line.ends_with([';', '{', '}', '(', ')', ':', ',', '[', ']'])
        || line.starts_with(['}', ')', ']', '.', '#', '@', '+', '-'])
        || line.starts_with("//")
        || line.starts_with("if ")
        || line.starts_with("return ")
        || line.starts_with("assert ")
        || line.starts_with("raise ")
        || line.starts_with("yield ")
        || has(line, " = ")
        || has(line, "=> ")
}

/// `"rate_limit_exceeded": "You are …",`: a table of messages by name.
fn is_mapping(line: &str) -> bool {
    if memchr::memchr2(b'_', b'"', line.as_bytes()).is_none() {
        return false;
    }
    let line = line.strip_suffix(',').unwrap_or(line);
    let Some((name, value)) = line.split_once(": ") else { return false };
    let name = name.trim_matches('"');
    let is_name = name.contains('_') && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    let known = name.starts_with("error_")
        || name.ends_with("_message")
        || name.ends_with("_error")
        || name.ends_with("_code")
        || name.ends_with("_msg");
    is_name && !known && value.len() > 2 && value.starts_with('"') && value.ends_with('"')
        || name == "\"scripts"
        || line.trim_start().starts_with("\"scripts\":")
}

/// `errors:`, alone on its line.
fn is_name_line(line: &str) -> bool {
    line.strip_suffix(':').is_some_and(|name| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
    })
}
