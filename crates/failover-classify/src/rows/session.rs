//! Something remembered at the provider is gone or cannot be read.

use super::text;
use crate::rule::{Family, Rule};
use failover_types::FailoverReason::SessionExpired;

const fn row(id: &'static str, any: &'static [&'static str]) -> Rule {
    text(id, Family::Session, SessionExpired, any)
}

/// What else such words may be about.
const NOT_LOST: &[&str] = &[
    "session token",
    "jwt",
    "authorization session",
    "oauth",
    "log in",
    "sign in",
    "cookie",
    "new token",
    "login",
    "session limit",
    "no session has exceeded",
    "model .. does not exist",
    "model .. not found",
    "session file",
    "credential",
    "credentials",
    "api key",
    "usage limit",
    "database",
    "is already in use",
    "host not found",
    "runtime",
    "conversation config",
    "tool result",
];

pub(crate) const ROWS: &[Rule] = &[
    row("core/session-lost", &[
        "resp .. not found;",
        "{conversation|session|thread|previous response|response id|chat session|cached content|cachedcontent|assistant thread|context cache|interaction|container|vector store|session id|conversation id|thread id|prompt cache|previous response id|previous interaction|run|conversation state} {not found|was not found|is not found|does not exist|doesn't exist|has expired|expired|no longer exists|is no longer available|no longer available|has been deleted|was deleted|is expired|is invalid|could not be found|cannot be found|not exist|not exists|is gone|has ended|timed out|has timed out|unavailable|is closed|invalid}",
        "{conversation|session|thread|previous response|cached content|cachedcontent|container|interaction} .. {not found|does not exist|doesn't exist|no longer exists|has expired|is expired|could not be found|cannot be found}",
        "no {conversation|session|thread|chat} {found|with|exists|matching|matches}",
        "no {conversation|session|thread} .. found",
        "{thread|conversation|session|cache|container} .. {was|is|were|has been} {purged|gone|stale|evicted|dropped}",
        "{unknown|invalid|expired|stale} {session|conversation|thread|previous response|session id|conversation id|thread id|previous response id|cached content|response id}",
        "could not find {session|conversation|thread|the session|the conversation|response|previous response}",
        "items are not persisted when store",
        "item with id .. not found",
        "session hit the maximum duration",
        "session duration {expired|exceeded|has expired|limit}",
        "maximum duration of .. minutes",
        "session .. {maximum duration|too old|was closed|terminated by|has ended|has been closed}",
        "cached content .. {not found|expired|permission denied}",
        "requires a valid session id",
        "resume .. {session|conversation} .. {not found|not exist|failed}",
        "conversation may need to restart",
        "response .. has been deleted",
        "the file .. or it may not exist",
        "file not found: file*",
        "{file|files} .. {has expired|no longer available|was deleted}",
        "会话不存在",
        "会话已过期",
        "会话已失效",
        "对话不存在",
        "对话已过期",
        "会话 .. {不存在|过期|失效}",
        "線程不存在",
        "セッションが{見つかりません|期限切れ|無効}*",
        "会話が見つかりません",
        "세션이 {만료|존재하지}*",
        "대화를 찾을 수 없",
        "сессия {не найдена|истекла|устарела}",
        "диалог не найден",
        "sitzung {nicht gefunden|abgelaufen|ist abgelaufen}",
        "session {introuvable|expirée|non trouvée}",
        "{sesión|sessão} {no encontrada|não encontrada|expirada|caducada|ha expirado|expirou}",
    ])
    .none(NOT_LOST),
    row("core/session-proof", &[
        "{thought|thinking|reasoning} signature .. {does not|doesn't|did not} match",
        "{reasoning|thinking|encrypted|state} {blob|block|data|payload|state|trace} .. {could not be|cannot be|can't be|failed to be} {decrypted|decoded|read|opened|verified}",
        "{encrypted content|encrypted reasoning|reasoning content|thinking signature|signature} .. {could not be verified|cannot be verified|could not be decrypted|cannot be decrypted|could not be read|invalid|not valid|verification failed|failed to}",
        "{could not|cannot|can't|couldn't|failed to|unable to|not able to} {decrypt|verify|decode|read|validate} .. {encrypted content|encrypted reasoning|encrypted item|reasoning item|reasoning content|thinking signature|thought signature}",
        "invalid encrypted content",
        "invalid signature in thinking",
    ])
    .none(NOT_LOST),
];
