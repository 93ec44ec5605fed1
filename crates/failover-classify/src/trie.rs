//! The automaton: a tree of literals, walked from every place where one may begin.
//!
//! A literal that begins with a letter or digit begins where a word does, unless it is open to the left. So the walk
//! starts at words only, and the tree needs no links for failure. What leads from one fork to the next is one edge,
//! and forks lie in one table in which a byte is added to a place: a tree of some hundred thousand bytes is a few
//! hundred KiB, is built from sorted literals in a few milliseconds, and most walks end after a few bytes.

use crate::eight::front;

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
    tree: Tree,
    /// Where no word goes on, what is walked by the next two bytes.
    words: Pairs,
    /// Inside of words.
    inside: Pairs,
    /// What is done at a byte, outside of a word and (behind [`INSIDE`]) inside of one.
    steps: [u16; 2 * INSIDE],
}

/// [`Automaton::words`] is walked from here.
const WALK_WORDS: u16 = 1;
/// [`Automaton::inside`] is.
const WALK_INSIDE: u16 = 2;
/// A letter or digit of ASCII: the next byte stands inside of a word, and so far behind in [`Automaton::steps`].
const WORD: u16 = 256;
const INSIDE: usize = WORD as usize;

impl Automaton {
    pub(crate) fn new(entries: &[Entry<'_>]) -> Self {
        let open: Vec<Entry<'_>> = entries.iter().copied().filter(|entry| entry.open).collect();
        let first = |entry: &Entry<'_>| entry.text.bytes().next().unwrap_or_default();
        let mut steps = [0; 2 * INSIDE];
        let mut set = |byte: u8, inside: bool, step: u16| {
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
        let (mut tree, mut places) = (Tree { roots: vec![NO_EDGE], ..Tree::default() }, Places::default());
        let words = tree.plant(entries, &mut places);
        let inside = tree.plant(&open, &mut places);
        Self { tree, words, inside, steps }
    }

    /// Every literal once.
    pub(crate) fn literals(&self) -> Vec<Vec<u8>> {
        let mut literals = self.tree.literals();
        literals.sort_unstable();
        literals.dedup();
        literals
    }

    /// Tells `found` of each literal and of its ends, by the place where it begins; gives back the number of steps.
    #[inline]
    pub(crate) fn scan(&self, text: &[u8], mut found: impl FnMut(u32, usize, usize)) -> u64 {
        let mut count = text.len() as u64;
        let (mut at, mut inside) = (0, 0);
        while let Some(&byte) = text.get(at) {
            let step = self.steps.get(inside + usize::from(byte)).copied().unwrap_or_default();
            inside = usize::from(step & WORD);
            if step & (WALK_WORDS | WALK_INSIDE) != 0 {
                let pairs = if step & WALK_WORDS != 0 { &self.words } else { &self.inside };
                let bytes = front(text, at);
                let root = pairs.get((bytes & PAIR) as usize).copied().unwrap_or_default();
                if root > 0 {
                    count += self.tree.walk(root, bytes, text, at, &mut found);
                }
            }
            at += 1;
        }
        count
    }
}

/// What leads from one fork to the next.
#[derive(Clone, Copy, Debug)]
struct Edge {
    /// The first bytes of it, the very first lowest, and by how much they are shifted to leave out what is not of it.
    front: u64,
    shift: u8,
    /// How long it is; where more than [`FRONT`], the whole stands in [`Tree::labels`].
    len: u8,
    /// How many literals end here, and where they stand in [`Tree::ends`].
    ends: u8,
    end: u32,
    label: u32,
    /// The child that a byte leads to stands so many edges behind this place in [`Tree::edges`].
    base: u32,
}

/// So many bytes are compared at once.
const FRONT: u8 = 8;
/// By how much edges of one byte and of two are shifted.
const ONE: u8 = 8 * (FRONT - 1);
const TWO: u8 = 8 * (FRONT - 2);
/// Of a place that nothing leads on from: beyond all edges.
const NOWHERE: u32 = u32::MAX;
/// A place without an edge: such bytes stand in no text.
const NO_EDGE: Edge = Edge { front: u64::MAX, shift: 0, len: 0, ends: 0, end: 0, label: 0, base: NOWHERE };

impl Edge {
    /// The same edge with these bytes.
    fn of(self, bytes: &[u8]) -> Self {
        let len = u8::try_from(bytes.len()).unwrap_or(u8::MAX);
        Self { front: front(bytes, 0), shift: 8 * (FRONT - len.min(FRONT)), len, ..self }
    }

    fn is_vacant(&self) -> bool {
        self.front == u64::MAX
    }
}

/// A tree of bytes whose forks share one table: the child that a byte leads to stands that far behind the fork's own
/// place, and is its child if it bears that byte. No two forks have one place. What begins with the same two bytes
/// begins with one edge: near its root the tree forks at every byte, and most walks end there. (Where the first byte is a
/// literal, that is its edge, whatever follows.)
#[derive(Debug, Default)]
struct Tree {
    /// The first of them leads nowhere.
    roots: Vec<Edge>,
    edges: Vec<Edge>,
    /// The literals, one after the other.
    labels: Vec<u8>,
    /// Literals by the edge at whose end they end.
    ends: Vec<u32>,
}

/// Of how many literals that share their first bytes what is left to grow, from which byte on, and at which edge.
type Rest<'s, 't> = Vec<(&'s [Sorted<'t>], usize, usize)>;

/// By two bytes, the first one lowest: the edge in [`Tree::roots`] that a walk begins with.
type Pairs = Vec<u16>;

impl Tree {
    /// Adds literals of their own roots.
    fn plant(&mut self, entries: &[Entry<'_>], places: &mut Places) -> Pairs {
        let mut pairs = vec![0; 1 << 16];
        let mut sorted = in_order(entries);
        for entry in &mut sorted {
            entry.label = index(self.labels.len());
            self.labels.extend_from_slice(entry.text);
        }
        let mut rest = Vec::new();
        let byte =
            |entry: &Sorted<'_>, at: usize| usize::from(entry.text.get(at).copied().unwrap_or_default());
        for group in sorted.chunk_by(|one, other| byte(one, 0) == byte(other, 0)) {
            let Some(entry) = group.first() else { continue };
            if entry.text.len() == 1 {
                let root = self.root(group, 1, places, &mut rest);
                pairs.iter_mut().skip(byte(entry, 0)).step_by(1 << 8).for_each(|pair| *pair = root);
                continue;
            }
            for group in group.chunk_by(shares_two) {
                let root = self.root(group, 2, places, &mut rest);
                let pair = group.first().map_or(0, |entry| byte(entry, 0) | byte(entry, 1) << 8);
                pairs.iter_mut().skip(pair).take(1).for_each(|pair| *pair = root);
            }
        }
        while let Some((group, depth, place)) = rest.pop() {
            let grown = self.grow(group, depth, depth + 1, places, &mut rest);
            if let Some(edge) = self.edges.get_mut(place) {
                *edge = grown;
            }
        }
        pairs
    }

    /// The edge of literals that share their first bytes: its place in [`Tree::roots`].
    fn root<'s, 't>(
        &mut self,
        group: &'s [Sorted<'t>],
        depth: usize,
        places: &mut Places,
        rest: &mut Rest<'s, 't>,
    ) -> u16 {
        let edge = self.grow(group, 0, depth, places, rest);
        self.roots.push(edge);
        u16::try_from(self.roots.len() - 1).unwrap_or_default()
    }

    /// The edge of literals that share their first bytes, `depth` at least, of which it begins behind so many.
    fn grow<'s, 't>(
        &mut self,
        group: &'s [Sorted<'t>],
        begin: usize,
        depth: usize,
        places: &mut Places,
        rest: &mut Rest<'s, 't>,
    ) -> Edge {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { return NO_EDGE };
        let behind = |entry: &Sorted<'t>| entry.text.get(depth..).unwrap_or_default();
        let shared = behind(first).iter().zip(behind(last)).take(LONGEST_LABEL);
        let shared = shared.take_while(|(one, other)| one == other).count();
        let depth = depth + shared;
        let whole = group.partition_point(|entry| entry.text.len() == depth);
        let (here, longer) = group.split_at_checked(whole).unwrap_or((group, &[]));
        let end = index(self.ends.len());
        self.ends.extend(here.iter().map(|entry| entry.id));
        let base = self.fork(longer, depth, places, rest);
        let ends = u8::try_from(here.len()).unwrap_or(u8::MAX);
        let label = first.label + index(begin);
        let edge = Edge { ends, end, label, base, ..NO_EDGE };
        edge.of(first.text.get(begin..depth).unwrap_or_default())
    }

    /// Finds a place for the children of a fork, and leaves what follows them for later.
    fn fork<'s, 't>(
        &mut self,
        group: &'s [Sorted<'t>],
        depth: usize,
        places: &mut Places,
        rest: &mut Rest<'s, 't>,
    ) -> u32 {
        if group.is_empty() {
            return NOWHERE;
        }
        let byte = |entry: &Sorted<'_>| entry.text.get(depth).copied().unwrap_or_default();
        let from = rest.len();
        let mut bytes = [0_u8; 256];
        let mut count = 0;
        for (same, place) in group.chunk_by(|one, other| byte(one) == byte(other)).zip(&mut bytes) {
            rest.push((same, depth, 0));
            *place = same.first().map(byte).unwrap_or_default();
            count += 1;
        }
        let bytes = bytes.get(..count).unwrap_or_default();
        let base = places.find(bytes, &self.edges);
        for ((_, _, place), &byte) in rest.iter_mut().skip(from).zip(bytes) {
            *place = base + usize::from(byte);
            if self.edges.len() <= *place {
                self.edges.resize(*place + 1, NO_EDGE);
            }
            // What follows comes with the literals that go on here.
            if let Some(edge) = self.edges.get_mut(*place) {
                *edge = NO_EDGE.of(&[byte]);
            }
        }
        index(base)
    }

    /// Every literal, once for each root that leads to it.
    fn literals(&self) -> Vec<Vec<u8>> {
        let mut literals = Vec::new();
        let mut rest: Vec<(&Edge, Vec<u8>)> =
            self.roots.iter().skip(1).map(|root| (root, Vec::new())).collect();
        while let Some((edge, mut text)) = rest.pop() {
            text.extend_from_slice(self.label(edge));
            for byte in 0..u8::MAX {
                let next = self.edges.get(edge.base as usize + usize::from(byte));
                let next = next.filter(|next| next.front.to_le_bytes().first() == Some(&byte));
                rest.extend(next.map(|next| (next, text.clone())));
            }
            if edge.ends > 0 {
                literals.push(text);
            }
        }
        literals
    }

    fn label(&self, edge: &Edge) -> &[u8] {
        let from = edge.label as usize;
        self.labels.get(from..from + usize::from(edge.len)).unwrap_or_default()
    }

    /// Follows the text from `at`, where these bytes stand, as far as the tree leads, and says how many bytes were looked at.
    #[inline]
    fn walk(
        &self,
        root: u16,
        mut bytes: u64,
        text: &[u8],
        at: usize,
        found: &mut impl FnMut(u32, usize, usize),
    ) -> u64 {
        let mut edge = self.roots.get(usize::from(root));
        let mut end = at;
        while let Some(Edge { front: wanted, shift, len, ends, base, .. }) = edge {
            // Told apart though all could be one: where the next byte stands is then known without waiting for what the
            // edge says, and near the root nearly all edges are so short.
            if *shift == ONE {
                if (bytes ^ wanted) & BYTE != 0 {
                    break;
                }
                end += 1;
            } else if *shift == TWO {
                if (bytes ^ wanted) & PAIR != 0 {
                    break;
                }
                end += 2;
            } else {
                if (bytes ^ wanted) << shift != 0 {
                    break;
                }
                let is_long = *len > FRONT;
                let len = usize::from(*len);
                if is_long && text.get(end..end + len) != edge.map(|edge| self.label(edge)) {
                    break;
                }
                end += len;
            }
            if *ends > 0 {
                let from = edge.map_or(0, |edge| edge.end as usize);
                let ends = self.ends.get(from..from + usize::from(*ends)).unwrap_or_default();
                for id in ends {
                    found(*id, at, end);
                }
            }
            bytes = front(text, end);
            edge = self.edges.get(*base as usize + (bytes & BYTE) as usize);
        }
        (end - at) as u64
    }
}

/// Of what [`front`] gives, the first byte and the first two.
const BYTE: u64 = 0xff;
const PAIR: u64 = 0xffff;

/// Behind its first byte no edge is longer; what is goes on at the next one.
const LONGEST_LABEL: usize = 254;

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
    sorted.chunk_by_mut(shares_two).for_each(<[Sorted<'_>]>::sort_unstable);
    sorted
}

/// Whether two literals begin with the same two bytes.
fn shares_two(one: &Sorted<'_>, other: &Sorted<'_>) -> bool {
    one.front >> 112 == other.front >> 112
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
    /// A place from which these bytes lead to nothing that is taken.
    fn find(&mut self, bytes: &[u8], edges: &[Edge]) -> usize {
        let vacant = |at: usize| edges.get(at).is_none_or(Edge::is_vacant);
        let mut spare = 0;
        let size = bytes.len().min(self.from.len()) - 1;
        let from = self.from.get_mut(size).unwrap_or(&mut spare);
        let mut base = *from;
        while is_taken(&self.taken, base) || !bytes.iter().all(|&byte| vacant(base + usize::from(byte))) {
            base += 1;
        }
        *from = (*from).max(base.saturating_sub(MOST_TRIED));
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
        Automaton::new(&entries).scan(text.as_bytes(), |id, _, end| found.push((id, end)));
        found
    }

    #[test]
    fn literals_are_found_where_words_begin_and_open_ones_anywhere() {
        let entries =
            [("limit", false), ("limit is", false), ("mit", true), ("(", false), ("限", false), ("n", false)];
        assert_eq!(found(&entries, "limit is"), [(0, 5), (1, 8), (2, 5)]);
        assert_eq!(found(&entries, "a limit"), [(0, 7), (2, 7)]);
        assert_eq!(found(&entries, "unlimited"), [(2, 7)]);
        assert_eq!(found(&entries, "f(x"), [(3, 2)]);
        assert_eq!(found(&entries, "到限额"), [(4, 6)]);
        assert_eq!(found(&entries, "n: an"), [(5, 1)]);
    }

    #[test]
    fn nothing_is_found_by_no_literals() {
        assert_eq!(found(&[], "limit"), []);
    }
}
