//! The automaton: a tree of literals, walked from every place where one may begin.
//!
//! A literal that begins with a letter or digit begins where a word does, unless it is open to the left. So the walk
//! starts at words only, and the tree needs no links for failure. What leads from one fork to the next is one edge,
//! and forks lie in one table in which a byte is added to a place: a tree of some hundred thousand bytes is a few
//! hundred KiB, is built from sorted literals in a few milliseconds, and most walks end after a few bytes.

/// A literal to find.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry<'t> {
    pub(crate) id: u32,
    pub(crate) text: &'t str,
    /// It may begin inside of a word.
    pub(crate) open: bool,
}

/// Finds literals in a text.
#[derive(Debug)]
pub(crate) struct Automaton {
    /// Walked where no word goes on.
    words: Tree,
    /// Walked inside of words.
    inside: Tree,
    /// What is done at a byte, outside of a word and (behind [`INSIDE`]) inside of one.
    steps: [u8; 2 * INSIDE],
}

/// [`Automaton::words`] is walked from here.
const WALK_WORDS: u8 = 1;
/// [`Automaton::inside`] is.
const WALK_INSIDE: u8 = 2;
/// A letter or digit of ASCII: the next byte stands inside of a word.
const WORD: u8 = 4;
/// The first place of a byte inside of a word in [`Automaton::steps`].
const INSIDE: usize = 256;

impl Automaton {
    pub(crate) fn new(entries: &[Entry<'_>]) -> Self {
        let open: Vec<Entry<'_>> = entries.iter().copied().filter(|entry| entry.open).collect();
        let first = |entry: &Entry<'_>| entry.text.bytes().next().unwrap_or_default();
        let mut steps = [0; 2 * INSIDE];
        let mut set = |byte: u8, inside: bool, step: u8| {
            if let Some(place) = steps.get_mut(usize::from(byte) + if inside { INSIDE } else { 0 }) {
                *place |= step;
            }
        };
        for byte in (0..=u8::MAX).filter(u8::is_ascii_alphanumeric) {
            set(byte, false, WORD);
            set(byte, true, WORD);
        }
        for byte in entries.iter().map(first) {
            set(byte, false, WALK_WORDS);
            if !byte.is_ascii_alphanumeric() {
                set(byte, true, WALK_WORDS);
            }
        }
        for byte in open.iter().map(first) {
            set(byte, true, WALK_INSIDE);
        }
        Self { words: Tree::new(entries), inside: Tree::new(&open), steps }
    }

    /// Every literal once.
    pub(crate) fn literals(&self) -> Vec<Vec<u8>> {
        self.words.literals()
    }

    /// Tells `found` of each literal and its end, by the place where it begins; gives back the number of steps.
    #[inline]
    pub(crate) fn scan(&self, text: &[u8], mut found: impl FnMut(u32, usize)) -> u64 {
        let mut count = text.len() as u64;
        let mut inside = 0;
        for (at, &byte) in text.iter().enumerate() {
            let step = self.steps.get(inside + usize::from(byte)).copied().unwrap_or_default();
            if step & WALK_WORDS != 0 {
                count += self.words.walk(text, at, &mut found);
            } else if step & WALK_INSIDE != 0 {
                count += self.inside.walk(text, at, &mut found);
            }
            inside = if step & WORD != 0 { INSIDE } else { 0 };
        }
        count
    }
}

/// A byte that leads from a fork, the edge behind it, and the fork at its end.
#[derive(Clone, Copy, Debug)]
struct Edge {
    /// The child that a byte leads to stands so many edges behind this place in [`Tree::edges`].
    base: u32,
    /// What follows the first byte: where it stands in [`Tree::labels`], and how long it is.
    label: u32,
    len: u8,
    /// How many literals end here, and where they stand in [`Tree::ends`].
    ends: u8,
    end: u32,
    /// The first byte; [`VACANT`] if there is no edge at this place.
    byte: u16,
}

/// No byte.
const VACANT: u16 = 256;
/// Of a place that nothing leads on from: beyond all edges.
const NOWHERE: u32 = u32::MAX;
const NO_EDGE: Edge = Edge { base: NOWHERE, label: 0, len: 0, ends: 0, end: 0, byte: VACANT };

/// A tree of bytes whose forks share one table: the child that a byte leads to stands that far behind the fork's own
/// place, and is its child if it bears that byte. No two forks have one place.
#[derive(Debug, Default)]
struct Tree {
    edges: Vec<Edge>,
    /// The literals, one after the other.
    labels: Vec<u8>,
    /// Literals by the edge at whose end they end.
    ends: Vec<u32>,
}

impl Tree {
    fn new<'t>(entries: &[Entry<'t>]) -> Self {
        let mut tree = Self::default();
        let mut sorted = in_order(entries);
        for entry in &mut sorted {
            entry.label = index(tree.labels.len());
            tree.labels.extend_from_slice(entry.text);
        }
        let mut places = Places::default();
        // Entries that share what leads to an edge, its length, and the place of the edge: the first byte of the
        // root's edges is at the front of the table.
        let mut rest: Vec<(&[Sorted<'_>], usize, usize)> = Vec::new();
        tree.fork(&sorted, 0, &mut places, &mut rest);
        while let Some((group, depth, place)) = rest.pop() {
            let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
            let behind = |entry: &Sorted<'t>| entry.text.get(depth..).unwrap_or_default();
            let shared = behind(first).iter().zip(behind(last)).take(LONGEST_LABEL);
            let shared = shared.take_while(|(one, other)| one == other).count();
            let depth_here = depth + shared;
            let whole = group.partition_point(|entry| entry.text.len() == depth_here);
            let (here, longer) = group.split_at_checked(whole).unwrap_or((group, &[]));
            let end = index(tree.ends.len());
            tree.ends.extend(here.iter().map(|entry| entry.id));
            let base = tree.fork(longer, depth_here, &mut places, &mut rest);
            if let Some(edge) = tree.edges.get_mut(place) {
                edge.base = base;
                edge.label = first.label + index(depth);
                edge.len = u8::try_from(shared).unwrap_or(u8::MAX);
                edge.ends = u8::try_from(here.len()).unwrap_or(u8::MAX);
                edge.end = end;
            }
        }
        tree
    }

    /// Finds a place for the children of a fork, and leaves what follows them for later.
    fn fork<'s, 't>(
        &mut self,
        group: &'s [Sorted<'t>],
        depth: usize,
        places: &mut Places,
        rest: &mut Vec<(&'s [Sorted<'t>], usize, usize)>,
    ) -> u32 {
        if group.is_empty() && depth > 0 {
            return NOWHERE;
        }
        let byte = |entry: &Sorted<'_>| entry.text.get(depth).copied().unwrap_or_default();
        let from = rest.len();
        let mut bytes = [0_u8; 256];
        let mut count = 0;
        for (same, place) in group.chunk_by(|one, other| byte(one) == byte(other)).zip(&mut bytes) {
            rest.push((same, depth + 1, 0));
            *place = same.first().map(byte).unwrap_or_default();
            count += 1;
        }
        let bytes = bytes.get(..count).unwrap_or_default();
        let base = places.find(bytes, depth == 0, &self.edges);
        for ((_, _, place), &byte) in rest.iter_mut().skip(from).zip(bytes) {
            *place = base + usize::from(byte);
            if self.edges.len() <= *place {
                self.edges.resize(*place + 1, NO_EDGE);
            }
            if let Some(edge) = self.edges.get_mut(*place) {
                edge.byte = u16::from(byte);
            }
        }
        index(base)
    }

    /// Every literal once.
    fn literals(&self) -> Vec<Vec<u8>> {
        let mut literals = Vec::new();
        let mut rest = vec![(0_usize, Vec::new())];
        while let Some((base, text)) = rest.pop() {
            for byte in 0..=u8::MAX {
                let Some(edge) = self.edge(base, byte) else { continue };
                let mut text: Vec<u8> = text.clone();
                text.push(byte);
                text.extend_from_slice(self.label(edge));
                if edge.ends > 0 {
                    literals.push(text.clone());
                }
                rest.push((edge.base as usize, text));
            }
        }
        literals
    }

    /// The edge that a byte leads to from a fork.
    #[inline]
    fn edge(&self, base: usize, byte: u8) -> Option<&Edge> {
        self.edges.get(base + usize::from(byte)).filter(|edge| edge.byte == u16::from(byte))
    }

    #[inline]
    fn label(&self, edge: &Edge) -> &[u8] {
        let from = edge.label as usize;
        self.labels.get(from..from + usize::from(edge.len)).unwrap_or_default()
    }

    /// Follows the text from `at`, as far as the tree leads, and says how many bytes were looked at.
    #[inline]
    fn walk(&self, text: &[u8], at: usize, found: &mut impl FnMut(u32, usize)) -> u64 {
        let (mut base, mut end) = (0, at);
        while let Some(&byte) = text.get(end)
            && let Some(edge) = self.edge(base, byte)
        {
            end += 1;
            if edge.len > 0 {
                let label = self.label(edge);
                let rest = text.get(end..).unwrap_or_default();
                end += label.len();
                if end > text.len() || rest.iter().zip(label).any(|(one, other)| one != other) {
                    break;
                }
            }
            if edge.ends > 0 {
                self.ended(edge, end, found);
            }
            base = edge.base as usize;
        }
        (end - at) as u64
    }

    /// Apart from the walk, which seldom comes here.
    #[inline(never)]
    fn ended(&self, edge: &Edge, end: usize, found: &mut impl FnMut(u32, usize)) {
        let from = edge.end as usize;
        let ends = self.ends.get(from..from + usize::from(edge.ends)).unwrap_or_default();
        for id in ends {
            found(*id, end);
        }
    }
}

/// No edge is longer; what is goes on at the next one.
const LONGEST_LABEL: usize = 255;

/// A literal in the order of its bytes. The first of them stand apart, for they nearly always tell.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Sorted<'t> {
    front: u128,
    text: &'t [u8],
    id: u32,
    /// Where it stands in [`Tree::labels`].
    label: u32,
}

impl<'t> Sorted<'t> {
    fn of(entry: &Entry<'t>) -> Self {
        let text = entry.text.as_bytes();
        let mut front = [0; 16];
        front.iter_mut().zip(text).for_each(|(place, byte)| *place = *byte);
        Self { front: u128::from_be_bytes(front), text, id: entry.id, label: 0 }
    }
}

/// The entries in the order of their bytes: laid apart by the first two, then sorted among those that share them.
fn in_order<'t>(entries: &[Entry<'t>]) -> Vec<Sorted<'t>> {
    let two = |entry: &Entry<'_>| {
        let mut bytes = entry.text.bytes();
        usize::from(u16::from_be_bytes([bytes.next().unwrap_or_default(), bytes.next().unwrap_or_default()]))
    };
    let mut ends = vec![0_usize; 1 << 16];
    for entry in entries {
        if let Some(count) = ends.get_mut(two(entry)) {
            *count += 1;
        }
    }
    let mut sum = 0;
    for end in &mut ends {
        sum += *end;
        *end = sum;
    }
    let mut sorted = vec![Sorted { front: 0, text: &[], id: 0, label: 0 }; entries.len()];
    for entry in entries {
        let Some(end) = ends.get_mut(two(entry)) else { continue };
        *end -= 1;
        if let Some(place) = sorted.get_mut(*end) {
            *place = Sorted::of(entry);
        }
    }
    let shares = |one: &Sorted<'_>, other: &Sorted<'_>| one.front >> 112 == other.front >> 112;
    sorted.chunk_by_mut(shares).for_each(<[Sorted<'_>]>::sort_unstable);
    sorted
}

/// Which places of the table are taken.
#[derive(Default)]
struct Places {
    /// Places that forks have, a bit each.
    taken: Vec<u64>,
    /// Where forks look from: the more children they have, the further on. What was tried in vain often is not tried
    /// again.
    from: [usize; 8],
}

impl Places {
    /// A place from which these bytes lead to nothing that is taken. That of the root is 0.
    fn find(&mut self, bytes: &[u8], root: bool, edges: &[Edge]) -> usize {
        let vacant = |at: usize| edges.get(at).is_none_or(|edge| edge.byte == VACANT);
        let mut base = 0;
        if !root {
            let mut spare = 0;
            let size = bytes.len().min(self.from.len()) - 1;
            let from = self.from.get_mut(size).unwrap_or(&mut spare);
            base = *from + 1;
            while is_taken(&self.taken, base) || !bytes.iter().all(|&byte| vacant(base + usize::from(byte))) {
                base += 1;
            }
            *from = (*from).max(base.saturating_sub(MOST_TRIED));
        }
        self.take(base);
        base
    }

    fn take(&mut self, base: usize) {
        if self.taken.len() <= base / 64 {
            self.taken.resize(base / 64 + 1, 0);
        }
        if let Some(bits) = self.taken.get_mut(base / 64) {
            *bits |= 1 << (base % 64);
        }
    }
}

/// A fork looks for its place from here behind the place of the last one of its size.
const MOST_TRIED: usize = 16;

fn is_taken(taken: &[u64], base: usize) -> bool {
    taken.get(base / 64).is_some_and(|bits| bits >> (base % 64) & 1 == 1)
}

fn index(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(entries: &[(&'static str, bool)], text: &str) -> Vec<(u32, usize)> {
        let entries: Vec<Entry<'_>> =
            (0..).zip(entries).map(|(id, &(text, open))| Entry { id, text, open }).collect();
        let mut found = Vec::new();
        Automaton::new(&entries).scan(text.as_bytes(), |id, end| found.push((id, end)));
        found
    }

    #[test]
    fn literals_are_found_where_words_begin_and_open_ones_anywhere() {
        let entries = [("limit", false), ("limit is", false), ("mit", true), ("(", false), ("限", false)];
        assert_eq!(found(&entries, "limit is"), [(0, 5), (1, 8), (2, 5)]);
        assert_eq!(found(&entries, "a limit"), [(0, 7), (2, 7)]);
        assert_eq!(found(&entries, "unlimited"), [(2, 7)]);
        assert_eq!(found(&entries, "f(x"), [(3, 2)]);
        assert_eq!(found(&entries, "到限额"), [(4, 6)]);
    }

    #[test]
    fn nothing_is_found_by_no_literals() {
        assert_eq!(found(&[], "limit"), []);
    }
}
