//! The strings in a body that is JSON or holds some, as they read.

use memchr::{memchr, memchr2};
use std::ops::Range;

/// How often a string may hold JSON again.
const DEEPEST: usize = 3;

/// Where the first string stands that `is_it`, or that holds one in JSON of its own.
pub(crate) fn find(text: &str, is_it: &dyn Fn(&str) -> bool) -> Option<Range<usize>> {
    search(text, DEEPEST, is_it)
}

fn search(text: &str, depth: usize, is_it: &dyn Fn(&str) -> bool) -> Option<Range<usize>> {
    let mut from = 0;
    loop {
        let start = from + memchr(b'"', text.as_bytes().get(from..)?)? + 1;
        let end = start + closing(text.as_bytes().get(start..)?)?;
        from = end + 1;
        // What is no string after all reads as none.
        let read = text.get(start - 1..from).and_then(|quoted| serde_json::from_str::<String>(quoted).ok());
        let Some(read) = read else { continue };
        if is_it(&read) || depth > 0 && read.contains('"') && search(&read, depth - 1, is_it).is_some() {
            return Some(start..end);
        }
    }
}

/// The quote that ends a string, from behind the one that begins it.
fn closing(text: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + memchr2(b'"', b'\\', text.get(from..)?)?;
        if text.get(at) == Some(&b'"') {
            return Some(at);
        }
        from = at + 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_case::test_case;

    #[test_case(r#"{"error":{"message":"say \"no\" now"}}"#, Some(r#"say \"no\" now"#); "escaped")]
    #[test_case(r#"429 - {"a":"b","c":"say \"no\" now"}"#, Some(r#"say \"no\" now"#); "behind a prefix")]
    #[test_case(r#"{"m":"{\"m\":\"say \\\"no\\\" now\"}"}"#, Some(r#"{\"m\":\"say \\\"no\\\" now\"}"#); "JSON in JSON")]
    #[test_case(r#"{"m":"say \u0022no\u0022 now"}"#, Some(r"say \u0022no\u0022 now"); "by number")]
    #[test_case(r#"{"m":"say \"no\" now or never"}"#, None; "more than it")]
    #[test_case(r#"{"m":"say \"no\" now"#, None; "cut")]
    #[test_case("", None; "nothing")]
    fn strings_are_found_as_they_read(text: &str, expected: Option<&str>) {
        let found = find(text, &|read| read == "say \"no\" now");
        assert_eq!(found.map(|range| &text[range]), expected);
    }
}
