//! As much of HTTP/1.1 as a scripted upstream needs, by hand: a library would refuse to misbehave.

use std::io;
use tokio::io::{AsyncRead, AsyncReadExt};

const MAX_HEAD_BYTES: usize = 64 * 1024;
const MAX_BODY_BYTES: usize = 64 * 1024 * 1024;

/// A request as it came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Request {
    /// `POST` and the like.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// Names in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Request {
    /// The target without its query.
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// The first header of this name (lower case).
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }
}

/// A part of a path without its escapes.
pub(super) fn unescape(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, more @ ..] = rest {
        let escaped = match rest {
            [b'%', digits @ ..] => digits.get(..2).and_then(|two| std::str::from_utf8(two).ok()),
            _ => None,
        };
        let byte = escaped.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { more.get(2..).unwrap_or_default() } else { more };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn bad(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

/// Reads one request; `None` where the client closed between two.
pub(super) async fn read_request(
    stream: &mut (impl AsyncRead + Unpin),
    buffer: &mut Vec<u8>,
) -> io::Result<Option<Request>> {
    let head_end = loop {
        if let Some(end) = find(buffer, b"\r\n\r\n") {
            break end;
        }
        if buffer.first().is_some_and(|byte| !byte.is_ascii_uppercase()) {
            return Err(bad("not http: a TLS handshake, perhaps"));
        }
        if buffer.len() > MAX_HEAD_BYTES {
            return Err(bad("request head too long"));
        }
        if stream.read_buf(buffer).await? == 0 {
            return if buffer.is_empty() { Ok(None) } else { Err(bad("cut inside the request head")) };
        }
    };
    let mut rest = buffer.split_off(head_end + 4);
    let head = String::from_utf8_lossy(buffer).into_owned();
    buffer.clear();
    let mut lines = head.split("\r\n").filter(|line| !line.is_empty());
    let mut first = lines.next().unwrap_or_default().split(' ');
    let (method, target) = (first.next().unwrap_or_default(), first.next().unwrap_or_default());
    let headers = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let mut request = Request { method: method.into(), target: target.into(), headers, body: Vec::new() };
    let chunked = request.header("transfer-encoding").is_some_and(|value| value.contains("chunked"));
    if chunked {
        request.body = read_chunks(stream, &mut rest).await?;
    } else if let Some(length) = request.header("content-length") {
        let length: usize = length.parse().map_err(|_| bad("content-length is no number"))?;
        fill(stream, &mut rest, length).await?;
        let next = rest.split_off(length);
        request.body = std::mem::replace(&mut rest, next);
    }
    *buffer = rest;
    Ok(Some(request))
}

async fn read_chunks(stream: &mut (impl AsyncRead + Unpin), rest: &mut Vec<u8>) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line_end = loop {
            if let Some(end) = find(rest, b"\r\n") {
                break end;
            }
            let wanted = rest.len() + 1;
            fill(stream, rest, wanted).await?;
        };
        let size = String::from_utf8_lossy(rest.get(..line_end).unwrap_or_default()).into_owned();
        let size = usize::from_str_radix(size.split(';').next().unwrap_or_default().trim(), 16)
            .map_err(|_| bad("chunk size is no number"))?;
        rest.drain(..line_end + 2);
        fill(stream, rest, size + 2).await?;
        body.extend(rest.drain(..size));
        rest.drain(..2);
        if size == 0 {
            return Ok(body);
        }
        if body.len() > MAX_BODY_BYTES {
            return Err(bad("request body too long"));
        }
    }
}

/// Reads until the buffer holds at least `length` bytes.
async fn fill(stream: &mut (impl AsyncRead + Unpin), buffer: &mut Vec<u8>, length: usize) -> io::Result<()> {
    if length > MAX_BODY_BYTES {
        return Err(bad("request body too long"));
    }
    while buffer.len() < length {
        if stream.read_buf(buffer).await? == 0 {
            return Err(bad("cut inside the request body"));
        }
    }
    Ok(())
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

/// A status line and headers.
pub(super) fn head(status: u16, headers: &[(String, String)]) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {status} Scripted\r\n");
    for (name, value) in headers {
        head.push_str(name);
        head.push_str(": ");
        head.push_str(value);
        head.push_str("\r\n");
    }
    head.push_str("\r\n");
    head.into_bytes()
}

/// One chunk of a chunked body; empty bytes give the terminating one.
pub(super) fn chunk(bytes: &[u8]) -> Vec<u8> {
    let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
    chunk.extend_from_slice(bytes);
    chunk.extend_from_slice(b"\r\n");
    chunk
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn reads_requests_one_after_the_other() {
        let mut bytes: &[u8] = b"POST /a?b HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi\
            POST /c HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n1;x\r\nd\r\n0\r\n\r\n";
        let mut buffer = Vec::new();
        let first = read_request(&mut bytes, &mut buffer).await.unwrap().unwrap();
        assert_eq!((first.path(), first.header("host"), &*first.body), ("/a", Some("x"), &b"hi"[..]));
        let second = read_request(&mut bytes, &mut buffer).await.unwrap().unwrap();
        assert_eq!((second.path(), &*second.body), ("/c", &b"abcd"[..]));
        assert!(read_request(&mut bytes, &mut buffer).await.unwrap().is_none());
    }

    #[test]
    fn escapes_are_read() {
        assert_eq!(unescape("a%3Ab%2F%C3%A4%"), "a:b/\u{e4}%");
    }

    #[tokio::test]
    async fn a_cut_request_is_an_error() {
        let mut buffer = Vec::new();
        let mut bytes: &[u8] = b"POST /a HTTP/1.1\r\nContent-Length: 5\r\n\r\nhi";
        assert!(read_request(&mut bytes, &mut buffer).await.is_err());
    }
}
