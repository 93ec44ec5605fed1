//! Nothing usable came, or nothing was said of why.

use super::text;
use crate::rule::{Fact, Family, Rule};
use failover_types::FailoverReason::{EmptyResponse, NoErrorDetails};

const fn row(id: &'static str, any: &'static [&'static str]) -> Rule {
    text(id, Family::Empty, EmptyResponse, any)
}

pub(crate) const ROWS: &[Rule] = &[
    text("core/no-error-details", Family::NotAFailure, NoErrorDetails, &[
        "no error details in response",
        "no error details provided",
        "no error details available",
    ]),
    row("core/empty-words", &[
        "empty {response|stream|stop|completion|output|message|content|reply|answer|result|choices|response text|assistant message|model response|text response|response body|candidates|candidate|generation|turn}",
        "{response|stream|output|completion|content|reply|candidates|candidate|choices|body|message|result} {was|is|were|came back|returned|are} {empty|blank|null|missing}",
        "returned {nothing|no content|no text|no output|an empty|empty|no response|no choices|no candidates|no message|no completion|no result|no data|no tokens|null}",
        "no {content|text|output|response|choices|candidates|completion|message content|usable content|answer|message|generations|tokens|response text} {was |were |}{produced|generated|returned|received|in response|found in response|from model|present|in the response|provided by the model|from the model}",
        "sorry, no response was returned",
        "{did not|didn't|failed to} {return|produce|generate|provide} {any |a |}{content|text|output|response|usable|valid|tokens|choices}",
        "produced no {content|output|text|response|tokens|reply}",
        "without {any |}{content|text|output|response text|producing}",
        "no response text",
        "{stopped|finished|ended} without {saying|writing|producing|returning} {anything|a word|any text}",
        "{got|received|returned} {0|zero|no} {choices|candidates|tokens|messages}",
        "no {valid|usable|parsable|parseable|meaningful} .. {was |were |}{generated|produced|returned}",
        "(empty)",
        "received no {content|response|data|choices|output}",
        "malformed function call",
        "{choices|candidates} {array |}is empty",
        "response with no choices",
        "content=content( role='model' )",
        "malformed tool call",
        "unexpected tool call",
        "{invalid|malformed|unparsable|unparseable} {tool call|function call|tool calls|tool use} {from|by|generated|returned|produced|emitted|json|in model}",
        "{model|assistant} {generated|produced|returned|emitted|output} {an |a |}{invalid|malformed|broken|unparsable} {tool|function|json|response}",
        "length limit was reached",
        "only {reasoning|thinking}",
        "thinking only response",
        "空响应",
        "parts 为空",
        "{响应|回复|输出|内容|结果|返回值} {为空|是空的}",
        "空回复",
        "返回为空",
        "返回空",
        "内容为空",
        "没有返回",
        "未返回",
        "响应为空",
        "空の応答",
        "空のレスポンス",
        "応答が空",
        "빈 응답",
        "응답이 비어",
        "пустой ответ",
        "пустым ответом",
        "leere antwort",
        "réponse vide",
        "respuesta vacía",
        "resposta vazia",
    ])
    .none(&[
        "must not be empty",
        "cannot be empty",
        "can not be empty",
        "empty reply from server",
        "context size",
        "no body",
        "should not be empty",
        "message content is empty",
        "stream error",
        "messages",
        "text content blocks",
        "retry limit",
        "content filter",
        "safety",
        "response headers",
        "return headers",
    ]),
    row("core/empty-literal", &["(empty)", "no response", "empty", "null", "none"]).facts(&[Fact::Short, Fact::NoStatus, Fact::Bare]),
];
