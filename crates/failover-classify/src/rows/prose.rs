//! Texts that are no failure of a model call: prose, tool output, compilers, a client's own fallback text.

use super::text;
use crate::rule::{Fact, Family, Rule};
use failover_types::FailoverReason::Unclassified;

const fn row(id: &'static str, any: &'static [&'static str]) -> Rule {
    text(id, Family::NotAFailure, Unclassified, any)
}

/// A text about errors. It comes before codes, because a text that explains a code holds it.
const fn talk(id: &'static str, facts: &'static [Fact]) -> Rule {
    Rule::new(id, crate::Tier::Local, Family::NotAFailure, Unclassified)
        .facts(facts)
        .evidence("docs:architecture")
}

pub(crate) const ROWS: &[Rule] = &[
    talk("core/talk-record", &[Fact::Record]),
    talk("core/talk-speech", &[Fact::Speech]),
    talk("core/talk-words", &[Fact::Plain]).any(&[
        "{yesterday|last week|last night|tonight|this morning|earlier today}",
        "means that {the|a|an|you|your|too many}",
        "{is|are} {raised|returned|thrown|sent} {when|if}",
        "{it|which|that|requests|calls} {returns|return|fail with|fails with|answers with} {|a |an }{4xx|5xx|400|401|402|403|404|429|500|503|529}",
        "{nothing to do with|so we|we decided|we moved|we changed}",
        "{rate limits|limits} are measured",
        // Somebody tells what was, or asks for something to be written.
        "{gestern|vorgestern|letzte woche|hier soir|la semaine dernière|avant hier|anoche|la semana pasada|semana passada|ieri|la settimana scorsa|вчера|позавчера|на прошлой неделе|昨天|前天|上周|昨日|先週|어제|지난주|hôm qua|tuần trước|kemarin|minggu lalu|wczoraj|w zeszłym tygodniu}",
        "{schreib|schreibe|schreiben sie|formuliere|rédige|rédigez|écris|écrivez|escribe|escriba|redacta|escreva|redija|scrivi|scrivere|напишите|напиши|составь|napisz|tolong|hãy viết|viết một} .. {text|brief|mail|e mail|email|courriel|lettre|correo|carta|texto|testo|lettera|письмо|текст|tekst|list|bài|surat|nachricht|message|mensaje}*",
        "{写一封|写一篇|写一段|帮我写|请帮我|教えてください|考えてください|書いてください|作成してください|説明してください|작성해 주세요|써 주세요|알려 주세요|설명해 주세요}",
        // A letter, and a description of an interface.
        "{asunto|betreff|assunto|oggetto|objet|件名|主题}: {re|aw|fwd|fw|wg|tr|rv|enc}:",
        "{'200'|'400'|'401'|'402'|'403'|'404'|'429'|'500'|'503'}: description:",
        "bedeutet, dass",
        "を意味します",
        "signifie que",
        "significa que",
        "是指",
        "速率限制是",
        "的意思",
    ])
    .none(&["so we {paused|suspended|disabled|blocked|stopped|cannot|can't|could not|couldn't|have|had|are|were|refused|rejected|limited}"]),
    Rule::new("core/prose", crate::Tier::Message, Family::NotAFailure, Unclassified)
        .facts(&[Fact::Prose, Fact::NoStatus]),
    row("core/own-fallback", &["llm request failed with an unknown error"])
        .facts(&[Fact::Short])
        .evidence("spec:C-17"),
    // A warning beside an answer: the call itself went through.
    row(
        "core/limit-ahead",
        &[
            "{approaching|nearing|close to|near|getting close to|about to reach|about to hit|almost at|almost reached} .. {limit|limits|quota|cap|allowance}",
            "{you've used|you have used|you've already used|you used|used} .. % of {your|the|this|its}",
            "{have|has} .. {requests|messages|credits|tokens} {left|remaining} {today|this|for|until|in}",
            "% of {your|the} .. {limit|quota|allowance|budget} {used|consumed|reached}",
        ],
    )
    .facts(&[Fact::Short, Fact::NoStatus])
    .none(&["{have|has} {0|no} *", "{used|have used} 100*", "100%*", "100 %*", "exceeded", "exceeds", "has been reached", "limit reached"]),
    // A notice of what is to come: the model answers until then.
    row(
        "core/retirement-ahead",
        &[
            "{model|models|deployment|endpoint|version|engine} .. {will be|is going to be|are going to be|is scheduled to be|is scheduled for} {retired|deprecated|removed|shut down|sunset|discontinued|turned off|switched off|retirement|deprecation|removal|shutdown}",
            "{model|models|deployment|endpoint|version|engine} .. will {reach|be at} {its |}{end of life|end of support}",
        ],
    )
    .facts(&[Fact::Short, Fact::NoStatus])
    .none(&["not found", "does not exist", "not available", "no longer", "error", "failed", "cannot", "not supported", "unavailable"]),
    row(
        "core/compiler",
        &[
            "error: ambiguous overload",
            "overloaded operator",
            "no overload matches this call",
            "overloaded function",
            "candidate function not viable",
            "error: use of",
            "error[e0*",
            "error ts*: ",
            "undefined reference to",
        ],
    ),
    row(
        "core/explanation",
        &[
            "based on the error message",
            "the vendor's api",
            "the error means",
            "this error {means|indicates|occurs when|usually means|typically occurs|happens when}",
            "{here is|here's|here are} .. {how|what|an explanation|a summary|some}",
            "we can identify the following",
            "in this {article|tutorial|guide|section|example|post}",
            "to {handle|avoid|fix|implement|prevent} .. {rate limits|rate limiting|timeouts|errors}, ",
            "you {can|should|could|may want to} {implement|use|add|consider|handle} .. {backoff|retry|retries|rate limiting|caching|circuit breaker}",
            "recursion limit of",
            "common causes",
            "{有可能是|可能的原因|常见原因}",
            "for many reasons",
            "i suggest",
            "in my opinion",
            "best practices for",
            "according to the {docs|documentation}",
            "non retryable error: 'provider returned error'",
            "maxfilereadtokenexceeded*",
            "requested context size too large for model",
            "token indices sequence length is longer",
            "type validation failed",
        ],
    ),
];
