//! Reading what people and programs hand in, within bounds.

use crate::exit::{Exit, Failure};
use std::io::{BufRead, Read as _};
use std::path::Path;

/// Most bytes of a single body that are read.
const MAX_BODY: u64 = 64 * 1024 * 1024;

/// How reading a line ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Read {
    /// A line, without its end.
    Line,
    /// A line that was longer than allowed; it was skipped whole.
    TooLong,
    /// Nothing is left.
    End,
}

/// Reads a line of at most `max` bytes into `line`; a longer one is passed over without being kept.
pub(crate) fn line(input: &mut dyn BufRead, line: &mut Vec<u8>, max: usize) -> std::io::Result<Read> {
    let mut any = false;
    let mut too_long = false;
    loop {
        let chunk = input.fill_buf()?;
        if chunk.is_empty() {
            break;
        }
        any = true;
        let end = chunk.iter().position(|b| *b == b'\n');
        let part = chunk.get(..end.unwrap_or(chunk.len())).unwrap_or_default();
        too_long |= line.len() + part.len() > max;
        if !too_long {
            line.extend_from_slice(part);
        }
        let used = end.map_or(chunk.len(), |at| at + 1);
        input.consume(used);
        if end.is_some() {
            break;
        }
    }
    Ok(match (any, too_long) {
        (false, _) => Read::End,
        (true, true) => Read::TooLong,
        (true, false) => Read::Line,
    })
}

/// All of standard input, within the bound.
pub(crate) fn stdin() -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    std::io::stdin()
        .lock()
        .take(MAX_BODY)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::new(Exit::Usage, format!("cannot read standard input: {error}")))?;
    Ok(bytes)
}

/// A file, or standard input for `-`, within the bound.
pub(crate) fn file(path: &Path) -> Result<Vec<u8>, Failure> {
    if path == Path::new("-") {
        return stdin();
    }
    let fail = |error| Failure::new(Exit::Usage, format!("cannot read {}: {error}", path.display()));
    let mut bytes = Vec::new();
    std::fs::File::open(path).map_err(fail)?.take(MAX_BODY).read_to_end(&mut bytes).map_err(fail)?;
    Ok(bytes)
}

/// A raw HTTP response, as `curl -i` prints it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Response {
    /// From the status line.
    pub(crate) status: Option<u16>,
    /// In the order of the text.
    pub(crate) headers: Vec<(String, String)>,
    /// Everything behind the empty line.
    pub(crate) body: Vec<u8>,
}

/// Reads a raw response. Without a status line everything is the body.
pub(crate) fn response(raw: &[u8]) -> Response {
    if !raw.starts_with(b"HTTP/") {
        return Response { body: raw.to_vec(), ..Response::default() };
    }
    let mut rest = raw;
    let mut response = Response::default();
    let mut next = || {
        let end = rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
        let (line, tail) = rest.split_at(end);
        rest = tail.get(1..).unwrap_or_default();
        String::from_utf8_lossy(line).trim_end().to_owned()
    };
    response.status = next().split(' ').nth(1).and_then(|status| status.parse().ok());
    loop {
        let line = next();
        match line.split_once(':') {
            Some((name, value)) => response.headers.push((name.trim().to_owned(), value.trim().to_owned())),
            None => break,
        }
    }
    // An interim response (100 Continue, or a proxy's 200) stands before the real one.
    if rest.starts_with(b"HTTP/") {
        return self::response(rest);
    }
    response.body = rest.to_vec();
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_passed_over_and_the_next_one_is_read() {
        let mut input = std::io::BufReader::with_capacity(4, &b"abcdefghij\nok\nlast"[..]);
        let mut text = Vec::new();
        assert_eq!(line(&mut input, &mut text, 5).unwrap(), Read::TooLong);
        text.clear();
        assert_eq!((line(&mut input, &mut text, 5).unwrap(), text.as_slice()), (Read::Line, &b"ok"[..]));
        text.clear();
        assert_eq!((line(&mut input, &mut text, 5).unwrap(), text.as_slice()), (Read::Line, &b"last"[..]));
        assert_eq!(line(&mut input, &mut text, 5).unwrap(), Read::End);
    }

    #[test]
    fn a_raw_response_is_taken_apart() {
        let raw = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/2 429\r\nRetry-After: 7\r\n\r\n{\"a\":1}\n";
        let response = response(raw);
        assert_eq!(response.status, Some(429));
        assert_eq!(response.headers, [("Retry-After".to_owned(), "7".to_owned())]);
        assert_eq!(response.body, b"{\"a\":1}\n");
        assert_eq!(super::response(b"just text").body, b"just text");
    }
}
