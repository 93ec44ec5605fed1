//! The one normalized text that every rule reads, and the way back from it to the bytes of the body.

use crate::hans::simplified;
use crate::mask;
use crate::source::Source;
use std::ops::Range;

/// A body as rules see it: lower case, one space for any white space, `_` and `-`, no JSON escapes, plain quotes,
/// of HTML only title and headings, nothing of what a model or tool said.
#[derive(Debug, Default)]
pub(crate) struct View {
    text: Vec<u8>,
    /// `(offset in text, offset in the body)` wherever the distance changes.
    anchors: Vec<(u32, u32)>,
    /// The distance at the end: offset in the body less offset in text, wrapping.
    shift: usize,
    pub(crate) html: bool,
}

impl View {
    /// Reads another body. What was read before is forgotten, its memory is used again.
    pub(crate) fn read(&mut self, source: &Source<'_>) {
        self.text.clear();
        self.anchors.clear();
        self.shift = 0;
        self.html = false;
        self.text.reserve(source.head.len() + 16);
        self.fold(&source.head, 0);
        if let Some((base, tail)) = &source.tail {
            self.space(*base);
            self.fold(tail, *base);
        }
    }

    /// Bytes of memory held.
    pub(crate) fn memory(&self) -> usize {
        self.text.capacity() + self.anchors.capacity() * size_of::<(u32, u32)>()
    }

    /// The normal form of a phrase of a rule, without a space at its ends.
    pub(crate) fn normal(phrase: &str) -> String {
        let mut normal = String::with_capacity(phrase.len());
        for byte in phrase.trim().bytes() {
            match fold(byte) {
                // What needs a look around.
                0 => return Self::folded(phrase),
                b' ' if normal.is_empty() || normal.ends_with(' ') => {}
                folded => normal.push(char::from(folded)),
            }
        }
        normal.truncate(normal.trim_end().len());
        normal
    }

    fn folded(phrase: &str) -> String {
        let mut view = Self::default();
        view.fold(phrase, 0);
        String::from_utf8(view.text).unwrap_or_default().trim().to_owned()
    }

    /// Whether a text is in its normal form, as nearly all words of rules are written.
    pub(crate) fn is_normal(text: &str) -> bool {
        let mut last = b' ';
        let mut is_ascii = true;
        for byte in text.bytes() {
            if byte >= 0x80 {
                is_ascii = false;
            } else if fold(byte) != byte || !is_plain(byte, last) {
                return false;
            }
            last = byte;
        }
        last != b' ' && (is_ascii || text.chars().all(|ch| ch.is_ascii() || is_kept(ch)))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.text
    }

    pub(crate) fn slice(&self, range: Range<usize>) -> &[u8] {
        self.text.get(range.start.min(self.text.len())..range.end.min(self.text.len())).unwrap_or_default()
    }

    /// Where in the body an offset of the text came from.
    pub(crate) fn origin(&self, at: usize) -> usize {
        let index = self.anchors.partition_point(|&(text, _)| text as usize <= at);
        let (text, body) = index.checked_sub(1).and_then(|i| self.anchors.get(i)).copied().unwrap_or((0, 0));
        body as usize + (at - text as usize)
    }

    /// Finds where offsets came from that are asked for one after the other.
    pub(crate) fn walk(&self) -> Origins<'_> {
        Origins { anchors: &self.anchors, index: 0 }
    }

    /// Where in the body a span of the text came from.
    pub(crate) fn origins(&self, (start, end): (usize, usize)) -> (usize, usize) {
        let last = end.saturating_sub(1).max(start);
        (self.origin(start), self.origin(last) + 1)
    }

    #[inline]
    fn push(&mut self, byte: u8, from: usize) {
        self.mark(self.text.len(), from);
        self.text.push(byte);
    }

    /// Folds bytes that need no look around, and says how many there are at the front of `bytes`.
    #[inline]
    fn run(&mut self, bytes: &[u8], from: usize) -> usize {
        let mut last = self.text.last().copied().unwrap_or(b' ');
        if bytes.first().is_none_or(|&byte| !is_plain(fold(byte), last)) {
            return 0;
        }
        self.mark(self.text.len(), from);
        let (chunks, _) = bytes.as_chunks();
        let mut len = 0;
        for chunk in chunks {
            let Some(folded) = fold_chunk(chunk, last) else { break };
            self.text.extend_from_slice(&folded);
            last = folded.last().copied().unwrap_or_default();
            len += CHUNK;
        }
        // Up to what needs a look around, or to the end.
        let mut folded = [0; CHUNK];
        let mut count = 0;
        for (place, &byte) in folded.iter_mut().zip(bytes.get(len..).unwrap_or_default()) {
            *place = fold(byte);
            if !is_plain(*place, last) {
                break;
            }
            last = *place;
            count += 1;
        }
        self.text.extend_from_slice(folded.get(..count).unwrap_or_default());
        len + count
    }

    /// Keeps the distance between `at` in the text and `from` in the body, if it changed.
    #[inline]
    fn mark(&mut self, at: usize, from: usize) {
        if from.wrapping_sub(at) != self.shift {
            self.anchor(at, from);
        }
    }

    #[cold]
    fn anchor(&mut self, at: usize, from: usize) {
        let (Ok(at), Ok(from)) = (u32::try_from(at), u32::try_from(from)) else { return };
        self.anchors.push((at, from));
        self.shift = (from as usize).wrapping_sub(at as usize);
    }

    #[inline]
    fn space(&mut self, from: usize) {
        if self.text.last().is_some_and(|&last| last != b' ') {
            self.push(b' ', from);
        }
    }

    fn push_char(&mut self, ch: char, from: usize) {
        if is_kept(ch) {
            self.letter(ch, from);
            return;
        }
        let folded = match ch {
            '\u{2018}' | '\u{2019}' | '\u{201a}' | '\u{2032}' | '\u{ff07}' => '\'',
            '\u{201c}' | '\u{201d}' | '\u{201e}' | '\u{2033}' | '\u{ab}' | '\u{bb}' => '"',
            '\u{200b}'..='\u{200f}' | '\u{feff}' | '\u{ad}' => return,
            '\u{2500}'..='\u{257f}' | '\u{2010}'..='\u{2015}' | '\u{b7}' => ' ',
            '\u{3002}' => '.',
            '\u{3001}' => ',',
            // Full-width forms of ASCII.
            '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(ch) - 0xfee0).unwrap_or(ch),
            _ if ch.is_whitespace() || ch.is_control() => ' ',
            _ => simplified(ch),
        };
        if folded.is_ascii() {
            self.ascii(u8::try_from(folded).unwrap_or(b'?'), from);
            return;
        }
        self.letter(folded.to_lowercase().next().unwrap_or(folded), from);
    }

    /// Pushes a char. Its bytes share its start: a span never begins inside it.
    fn letter(&mut self, ch: char, from: usize) {
        self.mark(self.text.len(), from);
        self.text.extend_from_slice(ch.encode_utf8(&mut [0; 4]).as_bytes());
    }

    #[inline]
    fn ascii(&mut self, byte: u8, from: usize) {
        match (byte, fold(byte)) {
            (b'`' | b'*', _) => {}
            (b'-', _) | (_, b' ') => self.space(from),
            (_, 0) => self.push(byte, from),
            (_, folded) => self.push(folded, from),
        }
    }

    fn fold(&mut self, source: &str, base: usize) {
        let masks = mask::masked(source);
        self.fold_around(source, base, &masks);
    }

    fn fold_around(&mut self, source: &str, base: usize, masks: &[Range<usize>]) {
        let bytes = source.as_bytes();
        let mut masks = masks.iter().peekable();
        let mut i = 0;
        while let Some(&byte) = bytes.get(i) {
            if let Some(mask) = masks.peek()
                && i >= mask.start
            {
                // A mark in its place: something was said, the answer is not empty.
                if i == mask.start && says(bytes.get(mask.start..mask.end).unwrap_or_default()) {
                    self.push(b'~', base + i);
                }
                i = i.max(mask.end);
                masks.next();
                continue;
            }
            let limit = masks.peek().map_or(bytes.len(), |mask| mask.start);
            let plain = self.run(bytes.get(i..limit).unwrap_or_default(), base + i);
            if plain > 0 {
                i += plain;
                continue;
            }
            match byte {
                b'\\' => i = self.escape(bytes, i, base),
                b'<' if Self::html_at(source, i) => i = self.page(source, i, base),
                b'-' if bytes.get(i + 1).is_some_and(u8::is_ascii_digit)
                    && i.checked_sub(1)
                        .and_then(|p| bytes.get(p))
                        .is_some_and(|&b| b == b' ' || b == b':') =>
                {
                    self.push(byte, base + i);
                    i += 1;
                }
                b'&' => i = self.entity(source, i, base),
                b'%' => i = self.percent(bytes, i, base),
                0..=0x7f => {
                    self.ascii(byte, base + i);
                    i += 1;
                }
                _ => {
                    // Such chars come in runs.
                    let rest = source.get(i..limit).unwrap_or_default().chars();
                    let begin = i;
                    for ch in rest.take_while(|ch| !ch.is_ascii()) {
                        self.push_char(ch, base + i);
                        i += ch.len_utf8();
                    }
                    i = i.max(begin + 1);
                }
            }
        }
    }

    /// A run of backslashes and what it escapes, at any level of encoding.
    fn escape(&mut self, bytes: &[u8], start: usize, base: usize) -> usize {
        let mut i = start;
        while bytes.get(i) == Some(&b'\\') {
            i += 1;
        }
        match bytes.get(i) {
            Some(b'n' | b't' | b'r' | b'b' | b'f') => {
                self.space(base + start);
                i + 1
            }
            Some(b'u') => {
                let Some(unit) = hex4(bytes, i + 1) else { return i };
                let mut end = i + 5;
                let mut code = unit;
                if (0xd800..0xdc00).contains(&unit) {
                    let mut low = end;
                    while bytes.get(low) == Some(&b'\\') {
                        low += 1;
                    }
                    if let Some(second) = hex4(bytes, low + 1).filter(|unit| (0xdc00..0xe000).contains(unit))
                    {
                        code = 0x1_0000 + ((unit - 0xd800) << 10) + (second - 0xdc00);
                        end = low + 5;
                    }
                }
                self.push_char(char::from_u32(code).unwrap_or('?'), base + start);
                end
            }
            _ => i,
        }
    }

    /// `%20`: what gRPC and addresses make of a text.
    fn percent(&mut self, bytes: &[u8], start: usize, base: usize) -> usize {
        let digits = bytes.get(start + 1..start + 3).and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        if let Some(byte) = byte.filter(|byte| (b' '..0x7f).contains(byte)) {
            self.ascii(byte, base + start);
            return start + 3;
        }
        self.push(b'%', base + start);
        start + 1
    }

    fn entity(&mut self, source: &str, start: usize, base: usize) -> usize {
        const ENTITIES: [(&str, u8); 7] = [
            ("&quot;", b'"'),
            ("&#39;", b'\''),
            ("&#x27;", b'\''),
            ("&apos;", b'\''),
            ("&amp;", b'&'),
            ("&lt;", b'<'),
            ("&gt;", b'>'),
        ];
        let rest = source.get(start..).unwrap_or_default();
        for (name, byte) in ENTITIES {
            if rest.starts_with(name) {
                self.push(byte, base + start);
                return start + name.len();
            }
        }
        self.push(b'&', base + start);
        start + 1
    }

    fn html_at(source: &str, at: usize) -> bool {
        ["<html", "<!doctype", "<head>", "<body>", "<center>"].iter().any(|tag| has_at(source, at, tag))
    }

    /// Of a page only its title and headings count, and a word that says so.
    fn page(&mut self, source: &str, start: usize, base: usize) -> usize {
        self.html = true;
        let rest = source.get(start..).unwrap_or_default();
        let end = find_ignore_case(rest, "</html>").map_or(source.len(), |at| start + at + "</html>".len());
        let page = source.get(start..end).unwrap_or_default();
        for (open, close) in [("<title>", "</title>"), ("<h1", "</h1>")] {
            let Some(from) = find_ignore_case(page, open) else { continue };
            let inner = page.get(from + open.len()..).unwrap_or_default();
            let inner =
                inner.get(..find_ignore_case(inner, close).unwrap_or(inner.len().min(200))).unwrap_or("");
            let skip = if open == "<h1" { inner.find('>').map_or(0, |at| at + 1) } else { 0 };
            let inner = inner.get(skip..).unwrap_or_default();
            let from = base + start + from + open.len() + skip;
            for byte in b"title: " {
                self.push(*byte, from);
            }
            let mut tag = false;
            for (at, ch) in inner.char_indices() {
                match ch {
                    '<' => tag = true,
                    '>' => tag = false,
                    _ if !tag => self.push_char(ch, from + at),
                    _ => {}
                }
            }
            self.space(base + end);
        }
        end
    }
}

/// The way back to the body, for offsets that hardly ever lie further in front than the last one.
#[derive(Default)]
pub(crate) struct Origins<'v> {
    anchors: &'v [(u32, u32)],
    /// Of the first anchor behind the last offset.
    index: usize,
}

impl Origins<'_> {
    /// Where a range begins in the body, if nothing was left out or put in before its end.
    #[inline]
    pub(crate) fn stretch(&mut self, range: &Range<usize>) -> Option<usize> {
        let from = self.origin(range.start);
        let next = self.anchors.get(self.index);
        next.is_none_or(|&(text, _)| range.end <= text as usize).then_some(from)
    }

    /// [`View::origin`].
    #[inline]
    pub(crate) fn origin(&mut self, at: usize) -> usize {
        while self.anchors.get(self.index).is_some_and(|&(text, _)| text as usize <= at) {
            self.index += 1;
        }
        loop {
            let Some(before) = self.index.checked_sub(1) else { return at };
            let (text, body) = self.anchors.get(before).copied().unwrap_or_default();
            if text as usize <= at {
                return body as usize + (at - text as usize);
            }
            self.index = before;
        }
    }
}

/// Whether a string holds more than white space, escaped or not.
fn says(mut text: &[u8]) -> bool {
    while let [first, rest @ ..] = text {
        text = match (first, rest) {
            (b'\\', [b'n' | b't' | b'r' | b'\\', after @ ..]) => after,
            (byte, _) if byte.is_ascii_whitespace() => rest,
            _ => return true,
        };
    }
    false
}

/// What a byte becomes that needs no look around; 0 for the others.
const FOLDED: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte: u8 = 0;
    while byte < 0x80 {
        let folded = match byte {
            0..=b' ' | 0x7f | b'_' => b' ',
            b'\\' | b'<' | b'-' | b'&' | b'`' | b'*' | b'%' => 0,
            _ => byte.to_ascii_lowercase(),
        };
        #[expect(clippy::indexing_slicing, reason = "evaluated at compile time")]
        {
            table[byte as usize] = folded;
        }
        byte += 1;
    }
    table
};

/// So many bytes are folded at a time.
const CHUNK: usize = 16;

/// Folds bytes none of which needs a look around; `last` is what stands before them. Written without branches, for
/// the sake of instructions that work on all of them at once; says the same as [`FOLDED`].
#[inline]
fn fold_chunk(bytes: &[u8; CHUNK], last: u8) -> Option<[u8; CHUNK]> {
    let mut folded = [0; CHUNK];
    let mut spaces = [0; CHUNK];
    let mut odd = [0; CHUNK];
    for (((place, is_space), odd), &byte) in folded.iter_mut().zip(&mut spaces).zip(&mut odd).zip(bytes) {
        let space = u8::from(byte <= b' ') | u8::from(byte == 0x7f) | u8::from(byte == b'_');
        let lower = byte | u8::from(byte.is_ascii_uppercase()) << 5;
        *place = if space == 1 { b' ' } else { lower };
        *is_space = space;
        *odd = u8::from(byte >= 0x80);
        for special in [b'\\', b'<', b'-', b'&', b'`', b'*', b'%'] {
            *odd |= u8::from(byte == special);
        }
    }
    let spaces = u128::from_le_bytes(spaces);
    let doubled = spaces & (spaces << 8 | u128::from(last == b' '));
    (u128::from_le_bytes(odd) | doubled == 0).then_some(folded)
}

/// Whether a folded byte stands as it is behind another one.
#[inline]
fn is_plain(folded: u8, last: u8) -> bool {
    folded != 0 && (folded != b' ' || last != b' ')
}

#[inline]
fn fold(byte: u8) -> u8 {
    FOLDED.get(usize::from(byte)).copied().unwrap_or_default()
}

/// Letters beyond ASCII that a fold leaves as they are: small ones, those of scripts without small and capital ones, and
/// of Chinese, Japanese and Korean all but the traditional ones. Of others it may say no.
fn is_kept(ch: char) -> bool {
    match ch {
        '\u{df}'..='\u{ff}'
        | '\u{430}'..='\u{45f}'
        | '\u{5d0}'..='\u{6ff}'
        | '\u{900}'..='\u{97f}'
        | '\u{e00}'..='\u{e7f}'
        | '\u{ac00}'..='\u{d7a3}' => true,
        '\u{100}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}' => ch.is_lowercase(),
        '\u{3041}'..='\u{9fff}' => simplified(ch) == ch,
        _ => false,
    }
}

/// Whether a char is a letter: what the standard library says, and sooner of Chinese and Korean.
#[inline]
pub(crate) fn is_letter(ch: char) -> bool {
    matches!(ch, '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}') || ch.is_alphabetic()
}

fn hex4(bytes: &[u8], at: usize) -> Option<u32> {
    let digits = std::str::from_utf8(bytes.get(at..at + 4)?).ok()?;
    u32::from_str_radix(digits, 16).ok()
}

pub(crate) fn has_at(source: &str, at: usize, what: &str) -> bool {
    source
        .as_bytes()
        .get(at..at + what.len())
        .is_some_and(|found| found.eq_ignore_ascii_case(what.as_bytes()))
}

/// How common a byte is in texts, upper case like lower case.
const COMMON: [u8; 256] = {
    let mut table = [1; 256];
    let ranks: [(&[u8], u8); 4] =
        [(b" ", 9), (b"etaoinsrETAOINSR", 8), (b"hldcum\"HLDCUM", 6), (b"fgpwyb.,FGPWYB", 4)];
    let mut ranks: &[(&[u8], u8)] = &ranks;
    while let [(bytes, rank), rest @ ..] = ranks {
        let mut bytes: &[u8] = bytes;
        while let [byte, after @ ..] = bytes {
            #[expect(clippy::indexing_slicing, reason = "evaluated at compile time")]
            {
                table[*byte as usize] = *rank;
            }
            bytes = after;
        }
        ranks = rest;
    }
    table
};

/// The byte of `what` of which there is least in a text, and where it stands.
#[inline]
fn seldom(what: &str) -> Option<(usize, u8)> {
    let rank = |(_, byte): &(usize, u8)| COMMON.get(usize::from(*byte)).copied();
    what.bytes().enumerate().min_by_key(rank)
}

/// Where `what` stands in `source`.
pub(crate) fn find(source: &str, what: &str) -> Option<usize> {
    let (offset, byte) = seldom(what)?;
    memchr::memchr_iter(byte, source.as_bytes())
        .filter_map(|at| at.checked_sub(offset))
        .find(|&at| source.as_bytes().get(at..at + what.len()) == Some(what.as_bytes()))
}

/// Where `what` stands in `source`, without regard to case.
pub(crate) fn find_ignore_case(source: &str, what: &str) -> Option<usize> {
    // The seldom byte is looked for, and what stands around it compared.
    let (offset, byte) = seldom(what)?;
    memchr::memchr2_iter(byte.to_ascii_lowercase(), byte.to_ascii_uppercase(), source.as_bytes())
        .filter_map(|at| at.checked_sub(offset))
        .find(|&at| has_at(source, at, what))
}

/// Whether `what` is empty or stands in `source`, without regard to case.
pub(crate) fn find_ignore_case_or_empty(source: &str, what: &str) -> bool {
    what.is_empty() || find_ignore_case(source, what).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_those_of_the_standard_library() {
        assert!(('\0'..=char::MAX).all(|ch| is_letter(ch) == ch.is_alphabetic()));
    }
}
