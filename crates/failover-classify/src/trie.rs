//! The automaton: a tree of literals, walked from every place where one may begin.
//!
//! A literal that begins with a letter or digit begins where a word does, unless it is open to the left. So the walk
//! starts at words only, and the tree needs no links for failure: it is built in a few milliseconds, and most walks
//! end after a few bytes.

/// A literal to find.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry<'t> {
    pub(crate) id: u32,
    pub(crate) text: &'t str,
    /// It may begin inside of a word.
    pub(crate) open: bool,
}

/// Finds literals in a text.
#[derive(Debug, Default)]
pub(crate) struct Automaton {
    /// Walked where no word goes on.
    words: Tree,
    /// Walked inside of words.
    inside: Tree,
}

impl Automaton {
    pub(crate) fn new(entries: &[Entry<'_>]) -> Self {
        let open: Vec<Entry<'_>> = entries.iter().copied().filter(|entry| entry.open).collect();
        Self { words: Tree::new(entries.to_vec()), inside: Tree::new(open) }
    }

    /// Every literal once.
    pub(crate) fn literals(&self) -> Vec<Vec<u8>> {
        let tree = &self.words;
        let mut texts = vec![Vec::new(); tree.labels.len()];
        for node in 0..index(tree.labels.len()) {
            let text = texts.get(node as usize).cloned().unwrap_or_default();
            let node = tree.node(node);
            for (place, label) in texts.iter_mut().skip(node.child as usize).zip(tree.labels(&node)) {
                place.clone_from(&text);
                place.push(*label);
            }
        }
        let ends = |node: &(u32, Vec<u8>)| tree.node(node.0).ends > 0;
        (0..).zip(texts).filter(ends).map(|(_, text)| text).collect()
    }

    /// Tells `found` of each literal and its end, by the place where it begins; gives back the number of steps.
    #[inline]
    pub(crate) fn scan(&self, text: &[u8], mut found: impl FnMut(u32, usize)) -> u64 {
        let mut steps = text.len() as u64;
        let has_open = !self.inside.ends.is_empty();
        let mut in_word = false;
        for (at, &byte) in text.iter().enumerate() {
            let goes_on = in_word && is_word(byte);
            in_word = is_word(byte);
            if goes_on && !has_open {
                continue;
            }
            let tree = if goes_on { &self.inside } else { &self.words };
            let node = tree.first(byte);
            if node != 0 {
                steps += tree.walk(node, text.get(at + 1..).unwrap_or_default(), at + 1, &mut found);
            }
        }
        steps
    }
}

/// Letters and digits of ASCII.
const WORD: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte: u8 = 0;
    while byte < 0x80 {
        #[expect(clippy::indexing_slicing, reason = "evaluated at compile time")]
        {
            table[byte as usize] = byte.is_ascii_alphanumeric();
        }
        byte += 1;
    }
    table
};

#[inline]
fn is_word(byte: u8) -> bool {
    WORD.get(usize::from(byte)).copied().unwrap_or_default()
}

/// A node's children and literals. Small, and what the walk needs at every step is in it.
#[derive(Clone, Copy, Debug, Default)]
struct Node {
    /// Its first child; the others stand behind it.
    child: u32,
    /// Its first literal in [`Tree::ends`].
    end: u32,
    /// Where its row in [`Tree::rows`] begins, if it has many children.
    row: u32,
    children: u16,
    ends: u8,
    /// The byte that leads to the first child: most nodes have no other.
    label: u8,
}

/// A node with more children than this has a row.
const MANY: usize = 3;

/// A tree of bytes, level by level, so that the children of a node stand side by side.
#[derive(Debug, Default)]
struct Tree {
    nodes: Vec<Node>,
    /// Of each node: the byte that leads to it.
    labels: Vec<u8>,
    /// Literals by the node at which they end.
    ends: Vec<u32>,
    /// Of each byte: the node that it leads to; 0 for none.
    firsts: Box<[u32]>,
    /// Rows of 256: which child a byte leads to, from 1; 0 for none.
    rows: Vec<u8>,
}

impl Tree {
    fn new(mut entries: Vec<Entry<'_>>) -> Self {
        entries.sort_unstable_by_key(|entry| (entry.text, entry.id));
        let mut tree = Self { labels: vec![0], ..Self::default() };
        // Entries that share what leads to a node; the length of that is their level.
        let mut level = vec![entries.as_slice()];
        let mut depth = 0;
        while !level.is_empty() {
            let mut next = Vec::new();
            for &group in &level {
                let (child, end) = (index(tree.labels.len()), index(tree.ends.len()));
                let whole = group.partition_point(|entry| entry.text.len() == depth);
                let (here, longer) = group.split_at_checked(whole).unwrap_or((group, &[]));
                tree.ends.extend(here.iter().map(|entry| entry.id));
                let byte = |entry: &Entry<'_>| entry.text.as_bytes().get(depth).copied().unwrap_or_default();
                let before = next.len();
                next.extend(longer.chunk_by(|one, other| byte(one) == byte(other)));
                let children = next.get(before..).unwrap_or_default();
                let labels: Vec<u8> = children.iter().filter_map(|same| same.first().map(byte)).collect();
                let row = tree.row(&labels);
                tree.nodes.push(Node {
                    child,
                    end,
                    row,
                    children: u16::try_from(labels.len()).unwrap_or(u16::MAX),
                    ends: u8::try_from(here.len()).unwrap_or(u8::MAX),
                    label: labels.first().copied().unwrap_or_default(),
                });
                tree.labels.extend(labels);
            }
            level = next;
            depth += 1;
        }
        let root = tree.node(0);
        tree.firsts = (0..=u8::MAX).map(|byte| tree.child(&root, byte)).collect();
        tree
    }

    /// The node that a literal's first byte leads to; 0 for none.
    #[inline]
    fn first(&self, byte: u8) -> u32 {
        self.firsts.get(usize::from(byte)).copied().unwrap_or_default()
    }

    /// Adds the row of a node with many children, and says where it begins.
    fn row(&mut self, labels: &[u8]) -> u32 {
        let from = self.rows.len();
        if labels.len() > MANY {
            self.rows.resize(from + 256, 0);
            for (child, label) in (1_u8..).zip(labels) {
                if let Some(place) = self.rows.get_mut(from + usize::from(*label)) {
                    *place = child;
                }
            }
        }
        index(from)
    }

    #[inline]
    fn node(&self, number: u32) -> Node {
        self.nodes.get(number as usize).copied().unwrap_or_default()
    }

    /// The bytes that lead to a node's children.
    fn labels(&self, node: &Node) -> &[u8] {
        let from = node.child as usize;
        self.labels.get(from..from + usize::from(node.children)).unwrap_or_default()
    }

    /// The literals that end at a node.
    fn ends(&self, node: &Node) -> &[u32] {
        let from = node.end as usize;
        self.ends.get(from..from + usize::from(node.ends)).unwrap_or_default()
    }

    /// The child that a byte leads to; 0, the root, for none.
    #[inline]
    fn child(&self, node: &Node, byte: u8) -> u32 {
        if usize::from(node.children) > MANY {
            let child = self.rows.get(node.row as usize + usize::from(byte)).copied().unwrap_or_default();
            return if child == 0 { 0 } else { node.child + u32::from(child) - 1 };
        }
        if node.label == byte && node.children > 0 {
            return node.child;
        }
        if node.children > 1 { self.other_child(node, byte) } else { 0 }
    }

    fn other_child(&self, node: &Node, byte: u8) -> u32 {
        let others = self.labels(node).iter().skip(1).position(|label| *label == byte);
        others.map_or(0, |others| node.child + 1 + index(others))
    }

    /// Goes on from a node, as far as `rest` leads, which begins at `end` of the text.
    #[inline(never)]
    fn walk(&self, first: u32, rest: &[u8], mut end: usize, found: &mut impl FnMut(u32, usize)) -> u64 {
        let begin = end;
        let mut rest = rest.iter();
        let mut number = first;
        while let Some(node) = self.nodes.get(number as usize) {
            if node.ends > 0 {
                self.ends(node).iter().for_each(|id| found(*id, end));
            }
            let Some(&byte) = rest.next() else { break };
            number = self.child(node, byte);
            if number == 0 {
                break;
            }
            end += 1;
        }
        (end - begin) as u64 + 1
    }
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
