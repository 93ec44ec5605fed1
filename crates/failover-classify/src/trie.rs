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
            for (place, label) in texts.iter_mut().skip(node.child as usize).zip(tree.labels(node)) {
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
        let mut steps = 0;
        let mut in_word = false;
        for (at, &byte) in text.iter().enumerate() {
            let word = byte.is_ascii_alphanumeric();
            if !(word && in_word) {
                steps += self.words.walk(text, at, &mut found);
            } else if !self.inside.is_empty() {
                steps += self.inside.walk(text, at, &mut found);
            }
            in_word = word;
        }
        steps
    }
}

/// A node's children and literals. Small, and what the walk needs at every step is in it.
#[derive(Clone, Copy, Debug, Default)]
struct Node {
    /// Its first child; the others stand behind it.
    child: u32,
    /// Its first literal in [`Tree::ends`].
    end: u32,
    children: u16,
    ends: u8,
    /// The byte that leads to the first child: most nodes have no other.
    label: u8,
}

/// A tree of bytes, level by level, so that the children of a node stand side by side.
#[derive(Debug, Default)]
struct Tree {
    nodes: Vec<Node>,
    /// Of each node: the byte that leads to it.
    labels: Vec<u8>,
    /// Literals by the node at which they end.
    ends: Vec<u32>,
    /// The nodes that two bytes lead to, 256 for each child of the root; 0 for none.
    pairs: Vec<u32>,
    /// The nodes that one byte leads to; 0 for none.
    firsts: Vec<u32>,
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
                let mut children = 0;
                for same in longer.chunk_by(|one, other| byte(one) == byte(other)) {
                    tree.labels.push(same.first().map(byte).unwrap_or_default());
                    next.push(same);
                    children += 1;
                }
                let label = longer.first().map(byte).unwrap_or_default();
                let ends = u8::try_from(here.len()).unwrap_or(u8::MAX);
                tree.nodes.push(Node { child, end, children, ends, label });
            }
            level = next;
            depth += 1;
        }
        tree.firsts = tree.row(0);
        let second = tree.nodes.get(1).map_or(1, |node| node.child);
        tree.pairs = (1..second).flat_map(|node| tree.row(node)).collect();
        tree
    }

    fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The children of a node by their byte; 0 for none.
    fn row(&self, node: u32) -> Vec<u32> {
        let mut row = vec![0; 256];
        let node = self.node(node);
        for (child, label) in (node.child..).zip(self.labels(node)) {
            if let Some(place) = row.get_mut(usize::from(*label)) {
                *place = child;
            }
        }
        row
    }

    #[inline]
    fn node(&self, number: u32) -> Node {
        self.nodes.get(number as usize).copied().unwrap_or_default()
    }

    /// The bytes that lead to a node's children.
    fn labels(&self, node: Node) -> &[u8] {
        let from = node.child as usize;
        self.labels.get(from..from + usize::from(node.children)).unwrap_or_default()
    }

    /// The literals that end at a node.
    fn ends(&self, node: Node) -> &[u32] {
        let from = node.end as usize;
        self.ends.get(from..from + usize::from(node.ends)).unwrap_or_default()
    }

    /// The child that a byte leads to.
    #[inline]
    fn child(&self, node: Node, byte: u8) -> Option<u32> {
        match node.children {
            0 => None,
            1 => (node.label == byte).then_some(node.child),
            _ => (node.child..)
                .zip(self.labels(node))
                .find(|(_, label)| **label == byte)
                .map(|(child, _)| child),
        }
    }

    #[inline]
    fn walk(&self, text: &[u8], start: usize, found: &mut impl FnMut(u32, usize)) -> u64 {
        let step = |table: &[u32], row: u32, at: usize| {
            let byte = text.get(at).copied().map_or(0, usize::from);
            table.get(row as usize * 256 + byte).copied().filter(|node| *node != 0)
        };
        let mut tell = |node: Node, end: usize| {
            if node.ends > 0 {
                self.ends(node).iter().for_each(|id| found(*id, end));
            }
        };
        let Some(first) = step(&self.firsts, 0, start) else { return 1 };
        tell(self.node(first), start + 1);
        let Some(mut number) = step(&self.pairs, first - 1, start + 1) else { return 2 };
        let mut end = start + 2;
        let rest = text.get(end..).unwrap_or_default();
        for &byte in rest {
            let node = self.node(number);
            tell(node, end);
            let Some(child) = self.child(node, byte) else { return (end - start) as u64 };
            number = child;
            end += 1;
        }
        tell(self.node(number), end);
        (end - start) as u64
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
