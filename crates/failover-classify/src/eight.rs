//! Eight bytes of a text, looked at together: in words and JSON one of a kind stands every few bytes, too often for a
//! search that starts anew behind each.

/// So many bytes are looked at together.
pub(crate) const COUNT: usize = 8;

/// The bytes of a text from a place on, the first lowest; behind its end there is nothing but zeros.
#[inline]
pub(crate) fn front(text: &[u8], at: usize) -> u64 {
    match text.get(at..).and_then(|rest| rest.first_chunk()) {
        Some(bytes) => u64::from_le_bytes(*bytes),
        None => last(text.get(at..).unwrap_or_default()),
    }
}

#[cold]
fn last(rest: &[u8]) -> u64 {
    let mut bytes = [0; COUNT];
    bytes.iter_mut().zip(rest).for_each(|(place, byte)| *place = *byte);
    u64::from_le_bytes(bytes)
}

/// Of eight bytes the first so many, one at least; zeros for the others.
#[inline]
pub(crate) const fn first(bytes: u64, count: usize) -> u64 {
    bytes & u64::MAX >> (8 * COUNT.saturating_sub(count))
}

/// The highest bit of each byte that is `LOW`, `HIGH` or between them; both are of ASCII.
#[inline]
pub(crate) const fn within<const LOW: u8, const HIGH: u8>(bytes: u64) -> u64 {
    let low = bytes & all(0x7f);
    (low + all(0x80 - LOW)) & !(low + all(0x7f - HIGH)) & !bytes & all(0x80)
}

/// The place of the first byte of which a bit is set; [`COUNT`] if there is none.
#[inline]
pub(crate) const fn place(bits: u64) -> usize {
    bits.trailing_zeros() as usize / 8
}

const fn all(byte: u8) -> u64 {
    u64::from_le_bytes([byte; COUNT])
}

/// How many small letters of ASCII stand at a place.
#[inline]
pub(crate) fn small_letters(text: &[u8], at: usize) -> usize {
    let mut len = 0;
    loop {
        let others = !within::<b'a', b'z'>(front(text, at + len)) & all(0x80);
        len += place(others);
        if others != 0 {
            return len;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_told_at_every_place() {
        for byte in 0..=u8::MAX {
            for at in 0..COUNT {
                let mut bytes = [0; COUNT];
                bytes[at] = byte;
                let wanted = if byte.is_ascii_uppercase() { 0x80 << (8 * at) } else { 0 };
                assert_eq!(within::<b'A', b'Z'>(u64::from_le_bytes(bytes)), wanted, "{byte} at {at}");
            }
        }
    }

    #[test]
    fn letters_are_counted_up_to_the_first_other_byte_or_the_end() {
        let text = b"abcdefghijklmnopqr stuZ";
        assert_eq!([0, 17, 18, 19, 22, 23].map(|at| small_letters(text, at)), [18, 1, 0, 3, 0, 0]);
        assert_eq!(first(front(text, 19), 2), u64::from_le_bytes(*b"st\0\0\0\0\0\0"));
    }
}
