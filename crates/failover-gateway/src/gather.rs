//! What of a stream is written next, and whether to look for more of it first.
//!
//! A write costs many times what a look costs. Where pieces come faster than they are written, the next one is at hand
//! once all else that is ready has had its turn, and who reads from the provider among it. Nothing is waited for: where
//! nothing has come by then, what is there goes out.

use bytes::{Bytes, BytesMut};

/// As much as is written at once where more is ready.
const BATCH_BYTES: usize = 16 * 1024;
/// A buffer's first size: a few events of text.
const FIRST_BYTES: usize = 1024;
/// As many pieces are looked for, one after the other, before what is there is written.
const MOST_FOUND: u8 = 15;
/// Looks for one piece. The server's connection looks twice before it lets others have their turn.
const LOOKS: u8 = 2;
/// A stream whose pieces come one by one is looked at again before one write of so many.
const MOST_SKIPPED: u8 = 15;

/// Bytes to be written.
pub(crate) struct Gathered {
    /// A frame as it came: where nothing is written with it, it is not copied.
    frame: Bytes,
    bytes: BytesMut,
    /// Looks since the last piece, and how many pieces were found by looking.
    looks: u8,
    found: u8,
    /// Writes before which nothing is looked for: those that follow, and how many they were to be.
    skip: u8,
    skipped: u8,
}

impl Gathered {
    /// The first piece goes out at once, with the head.
    pub(crate) fn new() -> Self {
        let (frame, bytes) = (Bytes::new(), BytesMut::new());
        Self { frame, bytes, looks: 0, found: 0, skip: 1, skipped: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn is_full(&self) -> bool {
        self.len() >= BATCH_BYTES
    }

    /// Whether it is one frame, and nothing is looked for that might go with it.
    pub(crate) fn is_alone(&self) -> bool {
        self.skip > 0 && !self.frame.is_empty()
    }

    fn len(&self) -> usize {
        self.frame.len() + self.bytes.len()
    }

    /// Takes note that another piece has come.
    pub(crate) fn piece(&mut self) {
        if std::mem::take(&mut self.looks) > 0 {
            self.found += 1;
        }
    }

    /// Adds a frame.
    pub(crate) fn push(&mut self, frame: Bytes) {
        if self.is_empty() {
            self.frame = frame;
        } else {
            self.room().extend_from_slice(&frame);
        }
    }

    /// Where more is added.
    pub(crate) fn room(&mut self) -> &mut BytesMut {
        if self.bytes.capacity() == 0 {
            self.bytes.reserve(FIRST_BYTES);
        }
        self.bytes.extend_from_slice(&std::mem::take(&mut self.frame));
        &mut self.bytes
    }

    /// Whether to look for more once others have had their turn. To be asked where nothing more is there right now.
    pub(crate) fn looks_again(&mut self) -> bool {
        let again = self.skip == 0 && self.looks < LOOKS && self.found < MOST_FOUND;
        self.looks += u8::from(again);
        again
    }

    /// What is to be written now.
    pub(crate) fn take(&mut self) -> Bytes {
        let (looks, found) = (std::mem::take(&mut self.looks), std::mem::take(&mut self.found));
        if self.skip > 0 {
            self.skip -= 1;
        } else if found > 0 {
            self.skipped = 0;
        } else if looks > 0 {
            // In vain: the next look is for later, and later each time.
            self.skipped = (self.skipped * 2 + 1).min(MOST_SKIPPED);
            self.skip = self.skipped;
        }
        if self.frame.is_empty() {
            return std::mem::take(&mut self.bytes).freeze();
        }
        std::mem::take(&mut self.frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(gathered: &mut Gathered, text: &'static str) {
        gathered.piece();
        gathered.push(Bytes::from_static(text.as_bytes()));
    }

    #[test]
    fn the_first_piece_goes_out_as_it_came_and_others_together() {
        let mut gathered = Gathered::new();
        let first = Bytes::from_static(b"a");
        gathered.piece();
        gathered.push(first.clone());
        assert!(!gathered.looks_again());
        assert_eq!(gathered.take().as_ptr(), first.as_ptr());
        piece(&mut gathered, "b");
        for text in ["c", "d"] {
            assert!(gathered.looks_again());
            piece(&mut gathered, text);
        }
        assert!((0..LOOKS).all(|_| gathered.looks_again()));
        assert!(!gathered.looks_again(), "nothing has come");
        assert_eq!(gathered.take(), "bcd");
        assert!(gathered.is_empty());
    }

    #[test]
    fn a_stream_that_never_ends_is_written_all_the_same() {
        let mut gathered = Gathered::new();
        piece(&mut gathered, "a");
        gathered.take();
        piece(&mut gathered, "b");
        let found = (0..100).take_while(|_| {
            let again = gathered.looks_again();
            piece(&mut gathered, "c");
            again
        });
        assert_eq!(found.count(), usize::from(MOST_FOUND));
    }

    #[test]
    fn who_is_looked_for_in_vain_is_looked_for_less_often_until_something_is_found() {
        let mut gathered = Gathered::new();
        let mut looked = |found: bool| {
            piece(&mut gathered, "a");
            let looks = gathered.looks_again();
            if looks && found {
                piece(&mut gathered, "b");
            }
            gathered.take();
            looks
        };
        let vain: Vec<usize> = (0..64).filter(|_| looked(false)).collect();
        assert_eq!(vain, [1, 3, 7, 15, 31, 47, 63]);
        let until = (0..64).find(|_| looked(true));
        assert_eq!(until, Some(15));
        assert!((0..64).all(|_| looked(true)));
    }
}
