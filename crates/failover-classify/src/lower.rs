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
