//! Questions, notes and answers: texts that somebody wrote.

use super::{starts, starts_with_any};

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
    asked && (starts_with_any(line, ASKS) || ASKED.iter().any(|word| line.contains(word)))
        || CHINESE.iter().any(|start| line.starts_with(start))
        || starts(line, "question:")
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
        "deprecated:",
        "see the ",
        "see also",
        "please review",
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
    line.contains(" (n.):") || line.contains(" (noun)")
}
