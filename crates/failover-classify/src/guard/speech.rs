//! Questions, notes and answers: texts that somebody wrote.

use super::openings::{
    ARTICLES, ASKED_ABROAD, GREETS, IF, KINDS, NAMED, OWN, REFUSES, REPORTED, SAYS, TASK_ENDS, TASK_OPENINGS,
    TASK_PARTS, TASKS, WHOLE,
};
use super::{has, starts, starts_with_any};

/// A question, of whatever length.
pub(super) fn is_question(line: &str) -> bool {
    const ASKS: &[&str] = &[
        "what ",
        "what's ",
        "how ",
        "why ",
        "can ",
        "could ",
        "should ",
        "does ",
        "do ",
        "is ",
        "are ",
        "when ",
        "where ",
        "which ",
        "who ",
        "will ",
        "would ",
        "did ",
        "has ",
        "have ",
        "am ",
        "wie ",
        "warum ",
        "comment ",
        "pourquoi ",
        "was ",
    ];
    const ASKED: &[&str] = &["とは何", "なぜ", "どうすれば", "どこで", "吗", "呢", "什么", "무엇"];
    const CHINESE: &[&str] = &["什么是", "如何", "怎么", "怎样", "为什么", "请问", "是否", "为何", "能不能"];
    let asked = line.ends_with('?') || line.ends_with('？');
    asked
        && (starts_with_any(line, ASKS)
            || is_asked_last(line)
            || starts_lower(line, ASKED_ABROAD)
            || ASKED.iter().any(|word| has(line, word)))
        || CHINESE.iter().any(|start| line.starts_with(start))
        || starts(line, "question:")
}

/// A text that tells something first and asks then: `It says "invalid key". Which part prints that?`
fn is_asked_last(line: &str) -> bool {
    const ASKS: [&str; 7] = ["which ", "why ", "how ", "what ", "who ", "where ", "when "];
    let after = [". ", "! ", "; "].iter().filter_map(|end| line.rsplit_once(end));
    let last = after.map(|(_, rest)| rest).min_by_key(|rest| rest.len());
    last.is_some_and(|last| starts_with_any(last, &ASKS))
}

/// A title, a heading of a list, a note to oneself, a release's notes.
pub(super) fn is_note(line: &str) -> bool {
    const BEGINS: &[&str] = &[
        "common errors",
        "todo",
        "fixme",
        "note:",
        "notes:",
        "tip:",
        "faq",
        "glossary",
        "changelog",
        "release notes",
        "lesson ",
        "chapter ",
        "title:",
        "subject:",
        "re:",
        "fwd:",
        "feature request",
        "weekly report",
        "daily report",
        "summary:",
        "[bug]",
        "[bug report",
        "[feature",
        "[question",
        "[docs",
        "[rfc]",
        "[discussion",
        "error codes:",
        "**root cause",
        "**cause",
        "**fix",
        "**summary",
        "**problem",
        "**根因",
        "**原因",
        "**问题",
        "**修复",
        "**结论",
        "根因：",
        "根因分析",
        "问题原因",
        "修复方案",
        "修复说明",
        "deprecated:",
        "see the ",
        "see also",
        "please review",
        "how to ",
        "understanding ",
        "a guide to ",
        "tutorial",
    ];
    starts_with_any(line, BEGINS)
        || line.strip_prefix('v').is_some_and(|rest| {
            rest.split_once(':').is_some_and(|(number, _)| {
                number.contains('.') && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
            })
        })
}

/// An assistant's or a colleague's words.
pub(super) fn is_answer(line: &str) -> bool {
    const BEGINS: &[&str] = &[
        "yes, ",
        "sure!",
        "sure,",
        "sure.",
        "of course",
        "certainly",
        "absolutely",
        "great question",
        "good question",
        "here's ",
        "here is ",
        "here are ",
        "let me ",
        "let's ",
        "done.",
        "done!",
        "all done",
        "my plan",
        "i've added",
        "i've updated",
        "i've fixed",
        "the user asked",
        "the user wants",
        "the function ",
        "the bug is",
        "this commit",
        "this pr ",
        "this patch",
        "this change ",
        "you could ",
        "once upon",
        "according to",
        "to avoid ",
        "to fix ",
        "to handle ",
        "to prevent ",
        "according to the",
        "thank you for reporting",
        "thank you for raising",
        "thank you for opening",
        "thank you for the report",
        "thanks for ",
        "closing ",
    ];
    const TOLD: &[&str] = &[
        "found",
        "looked",
        "added",
        "fixed",
        "renamed",
        "updated",
        "explained",
        "checked",
        "changed",
        "wrote",
        "implemented",
        "have ",
        "think ",
        "will ",
        "removed",
        "moved",
        "suggest",
        "ran ",
    ];
    if starts_with_any(line, BEGINS) {
        return true;
    }
    let first_person = line.strip_prefix("I ");
    first_person.is_some_and(|rest| TOLD.iter().any(|verb| rest.starts_with(verb))) || starts(line, "I'll ")
}

/// `` `code`: what it means``, `529 - `code`: …`, `RateLimitError (n.): …`.
pub(super) fn is_definition(line: &str) -> bool {
    let line =
        line.trim_start_matches(|ch: char| ch.is_ascii_digit() || matches!(ch, ' ' | '-' | '*' | '–' | '—'));
    if let Some((name, after)) = line.strip_prefix('`').and_then(|rest| rest.split_once('`')) {
        let after = after.trim_start();
        return !name.contains(' ')
            && (after.starts_with(':')
                || after.starts_with('-')
                || after.starts_with('—')
                || after.starts_with('–')
                || after.starts_with('='));
    }
    // `"rate_limit_exceeded" is listed among …`
    let named = line.strip_prefix('"').and_then(|rest| rest.split_once('"'));
    if named.is_some_and(|(name, rest)| {
        !name.contains(' ')
            && name.len() > 2
            && [" is ", " means ", " stands for ", " indicates "].iter().any(|verb| rest.starts_with(verb))
    }) {
        return true;
    }
    has(line, " (n.):") || has(line, " (noun)")
}

/// Somebody who tells what happened to him, or a story.
pub(super) fn is_narrative(text: &str) -> bool {
    const APOLOGIES: &[&str] = &[
        "i'm sorry",
        "i am sorry",
        "sorry",
        "i apologi",
        "i encountered",
        "i can't",
        "i cannot",
        "i'm unable",
        "i am unable",
    ];
    const OTHERS: [&str; 5] = ["she", "he", "her", "his", "him"];
    const SELF: [&str; 8] = ["i", "i'm", "i've", "my", "i'd", "i'll", "me", "myself"];
    // `"…," the machine read`: speech that goes on after its comma.
    let quoted = text.starts_with(['"', '\u{201c}'])
        && [",\" ", ",\u{201d} "].iter().any(|end| {
            text.split_once(end).is_some_and(|(_, rest)| rest.starts_with(|ch: char| ch.is_ascii_lowercase()))
        });
    if starts_with_any(text, APOLOGIES) {
        return false;
    }
    let greeted = starts_lower(text, GREETS);
    if quoted || greeted && SIGNED.iter().any(|end| has(text, end)) || is_spoken(text) {
        return true;
    }
    let parts = text.as_bytes().split(|byte| b" \n,.!?;\"".contains(byte));
    let (mut words, mut own, mut told) = (0_u32, 0_u32, false);
    for word in parts.filter(|word| !word.is_empty()) {
        words += 1;
        // None of the words is longer.
        if word.len() <= 6 {
            let is_any = |list: &[&str]| list.iter().any(|known| word.eq_ignore_ascii_case(known.as_bytes()));
            own += u32::from(is_any(&SELF));
            told |= is_any(&OTHERS);
        }
    }
    told && words >= 8 || own >= 1 && greeted || own >= 2 && words >= 12
}

/// How a mail ends.
const SIGNED: [&str; 12] = [
    "Best, ",
    "Best,\n",
    "Best regards",
    "Kind regards",
    "Regards,",
    "Cheers,",
    "Thanks,",
    "Sincerely",
    "Viele Grüße",
    "Cordialement",
    "Saludos",
    "С уважением",
];

/// Speech of a story in the quotation marks of other languages, and who says it: `« … », dit-elle`, `„…“, sagte er`.
fn is_spoken(text: &str) -> bool {
    const MARKS: [(char, char); 3] = [('«', '»'), ('„', '“'), ('»', '«')];
    MARKS.iter().any(|(open, close)| {
        let inner = text.strip_prefix(*open);
        inner.and_then(|inner| inner.split_once(*close)).is_some_and(|(_, rest)| {
            let rest = rest.trim_start_matches([' ', '\u{a0}']);
            rest.strip_prefix(',').is_some_and(|rest| {
                let word = rest.trim_start_matches([' ', '—', '–']);
                word.starts_with(char::is_lowercase)
            })
        })
    })
}

/// `text` without `start` at its front, without regard to case in any alphabet; `start` is lower case.
fn after<'a>(text: &'a str, start: &str) -> Option<&'a str> {
    let mut rest = text.chars();
    for wanted in start.chars() {
        let found = rest.next()?;
        if found != wanted && !found.to_lowercase().eq(std::iter::once(wanted)) {
            return None;
        }
    }
    Some(rest.as_str())
}

fn starts_lower(text: &str, list: &[&str]) -> bool {
    // The first byte nearly always settles it, of the first letter as it is or in lower case.
    let Some(first) = text.chars().next() else { return list.contains(&"") };
    let mut place = [0; 4];
    let byte = |ch: char, place: &mut [u8; 4]| ch.encode_utf8(place).bytes().next();
    let firsts = [byte(first, &mut place), first.to_lowercase().next().and_then(|ch| byte(ch, &mut place))];
    list.iter().any(|start| firsts.contains(&start.bytes().next()) && after(text, start).is_some())
}

/// A text that begins with the name of a kind of text: a manual, a chapter, an article.
pub(super) fn is_treatise(line: &str) -> bool {
    starts_lower(line, WHOLE)
        || starts_lower(line, KINDS)
        || ARTICLES.iter().any(|article| after(line, article).is_some_and(|rest| starts_lower(rest, KINDS)))
}

/// A text that speaks of an error by its name or its wording: `The "Server is busy" message means …`, `If you see …`.
pub(super) fn is_mention(line: &str) -> bool {
    const CLOSES: [&[u8]; 2] = ["\u{201d}".as_bytes(), "\u{2019}".as_bytes()];
    if starts_lower(line, IF) || is_case(line) || REPORTED.iter().any(|word| has(line, word)) {
        return true;
    }
    // A quotation, what it is, and what it does.
    let closes = |at: usize, byte: u8| match byte {
        b'"' | b'\'' | b'`' => true,
        // The last bytes of those above.
        0x9d | 0x99 => {
            line.as_bytes().get(..=at).is_some_and(|front| CLOSES.iter().any(|end| front.ends_with(end)))
        }
        _ => false,
    };
    line.bytes().enumerate().filter(|(at, byte)| closes(*at, *byte)).any(|(at, _)| {
        let rest = line.get(at + 1..).unwrap_or_default().trim_start_matches('*');
        let Some(rest) = rest.strip_prefix(' ') else { return false };
        NAMED.iter().any(|name| {
            starts(rest, name).then(|| rest.get(name.len()..).unwrap_or_default()).is_some_and(|rest| {
                let rest = rest.trim_start_matches(['s', ' ']);
                let near = rest.get(..crate::facts::floor(rest, 48)).unwrap_or_default();
                SAYS.iter().any(|verb| starts(rest, verb))
                    || near.contains(" indicat")
                    || near.contains(" means ")
            })
        })
    })
}

/// `When a node hits a rate limit, …`: what happens whenever it does, not that it did.
fn is_case(line: &str) -> bool {
    const MEETS: [&str; 7] =
        [" hits ", " hit ", " receives ", " receive ", " gets a ", " encounters ", " runs into "];
    let near = line.get(..crate::facts::floor(line, 64)).unwrap_or_default();
    (starts(line, "when a") || starts(line, "when the ") || starts(line, "when users "))
        && MEETS.iter().any(|verb| near.contains(verb))
}

/// Somebody who asks a model for something: `Please translate …`, `請幫我…`, `…説明してください`.
pub(super) fn is_task(line: &str) -> bool {
    let ended = line.trim_end_matches(['。', '.', '！', '!']);
    let rest = TASK_OPENINGS.iter().find_map(|opening| after(line, opening)).unwrap_or(line);
    starts_lower(rest, TASKS)
        || is_edit(line)
        || TASK_PARTS.iter().any(|part| has(line, part))
        || TASK_ENDS.iter().any(|end| ended.ends_with(end))
}

/// `Rename A to B everywhere.`: what a program's text is changed to, as a sentence.
fn is_edit(line: &str) -> bool {
    const VERBS: [&str; 5] = ["rename ", "replace ", "change ", "convert ", "move "];
    const ASKED: [&str; 3] = ["your ", "please ", "failed"];
    starts_with_any(line, &VERBS)
        && (line.contains(" to ") || line.contains(" with ") || line.contains(" into "))
        && !line.contains(": ")
        && !ASKED.iter().any(|word| line.contains(word))
}

/// Somebody who speaks of himself in another language than English, and does not refuse.
pub(super) fn is_first_person(line: &str) -> bool {
    OWN.iter().find_map(|own| after(line, own)).is_some_and(|rest| !starts_lower(rest, REFUSES))
}
