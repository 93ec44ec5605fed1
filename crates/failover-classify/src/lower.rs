//! Short texts in lower case, without an allocation.

/// The first `N` bytes of a text in lower case, kept inline.
#[derive(Debug)]
pub(crate) struct Lower<const N: usize> {
    bytes: [u8; N],
    len: usize,
}

impl<const N: usize> Lower<N> {
    pub(crate) fn of(text: &str) -> Self {
        let text = text.get(..crate::facts::floor(text, N)).unwrap_or_default();
        let mut lower = Self { bytes: [0; N], len: text.len() };
        if let Some(place) = lower.bytes.get_mut(..text.len()) {
            place.copy_from_slice(text.as_bytes());
            place.make_ascii_lowercase();
        }
        lower
    }

    pub(crate) fn as_str(&self) -> &str {
        self.bytes.get(..self.len).and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or_default()
    }
}

/// By a byte: which of a list's words, at most as many as the type has bits, have it at this place. A bit each, so that
/// the first bytes of a text tell nearly always which few words of a long list it can begin with, if any.
macro_rules! words_by_byte {
    ($list:expr, $at:expr, $bits:ty) => {{
        let mut table: [$bits; 256] = [0; 256];
        let mut index = 0;
        #[expect(clippy::indexing_slicing, reason = "evaluated at compile time")]
        while index < $list.len() {
            let word = $list[index].0.as_bytes();
            if $at < word.len() {
                table[word[$at] as usize] |= 1 << index;
            }
            index += 1;
        }
        table
    }};
}
pub(crate) use words_by_byte;
