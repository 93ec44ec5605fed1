//! Ids of tool calls: mapped to what the server accepts, the same way throughout one attempt.

use crate::{ChatRequest, Part};
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// Length of an id that is made where only an upper bound is given.
const MADE_LENGTH: usize = 24;

/// What a server accepts as the id of a tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolIds {
    /// Letters, digits, `_` and `-`, at most so many of them.
    UpTo(usize),
    /// Exactly so many letters and digits.
    Exactly(usize),
}

impl ToolIds {
    /// Whether an id can be sent as it is.
    pub fn fits(self, id: &str) -> bool {
        fits(self, id)
    }
}

/// The ids of one attempt. An id that fits is kept; another one is replaced by a hash of it.
#[derive(Debug)]
pub struct IdMap {
    rule: ToolIds,
    known: HashMap<String, String>,
    taken: HashSet<String>,
}

impl IdMap {
    /// The map of one attempt. Ids that fit are reserved first, so that a made one never meets them.
    pub fn new<'a>(rule: ToolIds, ids: impl IntoIterator<Item = &'a str>) -> Self {
        let taken = ids.into_iter().filter(|id| fits(rule, id)).map(str::to_owned).collect();
        Self { rule, known: HashMap::new(), taken }
    }

    /// The map for every call id that a request speaks of.
    pub fn of(rule: ToolIds, request: &ChatRequest) -> Self {
        let parts = request.messages.iter().flat_map(|message| &message.parts);
        let ids = parts.filter_map(|part| match part {
            Part::ToolCall(call) => Some(call.id.as_str()),
            Part::ToolResult(result) => Some(result.call_id.as_str()),
            Part::Text(_) | Part::Image(_) | Part::File(_) | Part::Reasoning { .. } | Part::Opaque(_) => None,
        });
        Self::new(rule, ids)
    }

    /// The id to send for this one.
    pub fn get(&mut self, id: &str) -> String {
        if fits(self.rule, id) {
            return id.to_owned();
        }
        if let Some(made) = self.known.get(id) {
            return made.clone();
        }
        let mut salt = 0;
        let mut made = make(self.rule, id, salt);
        // 62^9 ids are enough for any conversation, so this ends.
        while self.taken.contains(&made) {
            salt += 1;
            made = make(self.rule, id, salt);
        }
        self.taken.insert(made.clone());
        self.known.insert(id.to_owned(), made.clone());
        made
    }
}

fn fits(rule: ToolIds, id: &str) -> bool {
    match rule {
        ToolIds::UpTo(most) => {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
            !id.is_empty() && id.len() <= most && id.bytes().all(plain)
        }
        ToolIds::Exactly(length) => id.len() == length && id.bytes().all(|byte| byte.is_ascii_alphanumeric()),
    }
}

fn make(rule: ToolIds, id: &str, salt: u64) -> String {
    let length = match rule {
        ToolIds::UpTo(most) => most.min(MADE_LENGTH),
        ToolIds::Exactly(length) => length,
    };
    let mut bits = 0_u64;
    (0..length)
        .map(|at| {
            // A 64-bit hash gives ten digits of base 62.
            if at % 10 == 0 {
                let mut hasher = DefaultHasher::new();
                (id, salt, at).hash(&mut hasher);
                bits = hasher.finish();
            }
            let digit = usize::try_from(bits % 62).unwrap_or_default();
            bits /= 62;
            char::from(*ALPHABET.get(digit).unwrap_or(&b'0'))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: P-5
    #[test]
    fn ids_are_mapped_consistently_and_never_collide() {
        let rule = ToolIds::Exactly(9);
        let foreign: Vec<String> = (0..500).map(|at| format!("toolu_{at:020}")).collect();
        let all = foreign.iter().map(String::as_str).chain(["abcdefgh1"]);
        let mut map = IdMap::new(rule, all);
        let made: Vec<String> = foreign.iter().map(|id| map.get(id)).collect();
        assert!(made.iter().all(|id| fits(rule, id)), "{made:?}");
        assert_eq!(made.iter().collect::<HashSet<_>>().len(), 500);
        assert_eq!(foreign.iter().map(|id| map.get(id)).collect::<Vec<_>>(), made);
        assert_eq!(map.get("abcdefgh1"), "abcdefgh1", "what fits is kept");
        let mut again = IdMap::new(rule, []);
        assert_eq!(again.get(&foreign[0]), made[0], "the same in the next attempt");
    }

    #[test]
    fn long_and_odd_ids_are_replaced() {
        let mut map = IdMap::new(ToolIds::UpTo(40), []);
        for id in ["", "call|1", &"x".repeat(41)] {
            assert!(fits(ToolIds::UpTo(40), &map.get(id)));
        }
    }
}
