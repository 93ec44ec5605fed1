//! Whether the JSON of a tool call is complete, piece by piece.

/// Follows brackets and strings.
#[derive(Clone, Debug, Default)]
pub(super) struct Nesting {
    depth: u32,
    in_string: bool,
    escaped: bool,
    /// An object or a list was closed again.
    complete: bool,
}

impl Nesting {
    /// Takes the next piece.
    pub(super) fn push(&mut self, piece: &str) {
        for byte in piece.bytes() {
            if self.in_string {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => self.in_string = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth = self.depth.saturating_add(1),
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    self.complete |= self.depth == 0;
                }
                _ => {}
            }
        }
    }

    /// Whether nothing but white space can follow. Before the first piece it is not known, and so not the case.
    pub(super) fn is_complete(&self) -> bool {
        self.complete
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_case::test_case;

    #[test_case("", false)]
    #[test_case("{}", true)]
    #[test_case("{\"a\":[1,{\"b\":2}]", false)]
    #[test_case("{\"a\":[1,{\"b\":2}]}", true; "nested")]
    #[test_case("{\"a\":\"}\"", false; "bracket in a string")]
    #[test_case("{\"a\":\"\\\"}\"", false; "escaped quote")]
    #[test_case("{\"a\":\"\\\\\"}", true; "escaped backslash")]
    fn completeness(text: &str, expected: bool) {
        let mut nesting = Nesting::default();
        text.split_inclusive(|_| true).for_each(|piece| nesting.push(piece));
        assert_eq!(nesting.is_complete(), expected);
    }
}
