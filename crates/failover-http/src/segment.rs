//! Names of models as parts of a path.

use std::fmt::Write;

/// A text as one segment of a path: what RFC 3986 (section 2.3) does not reserve stays, everything else is escaped.
pub fn path_segment(text: &str) -> String {
    let mut segment = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            segment.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _ = write!(segment, "%{byte:02X}");
        }
    }
    segment
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_case::test_case;

    #[test_case("gemini-2.5-pro", "gemini-2.5-pro")]
    #[test_case("arn:aws:x/y", "arn%3Aaws%3Ax%2Fy"; "separators")]
    #[test_case("a?b#c d%", "a%3Fb%23c%20d%25"; "what would end the path")]
    #[test_case("\u{e4}", "%C3%A4"; "other letters")]
    fn segments(text: &str, expected: &str) {
        assert_eq!(path_segment(text), expected);
    }
}
