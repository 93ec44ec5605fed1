//! Families of English wordings built from slots: who, what happened to it, and to which thing.

use super::text;
use crate::rule::{Fact, Family, Rule};
use failover_types::FailoverReason::{
    Aborted, Auth, AuthPermanent, Billing, ContentRefusal, ContextOverflow, EmptyResponse, Format,
    LocalCoordination, ModelNotFound, Overloaded, RateLimit, ServerError, SessionExpired, Timeout,
};
use failover_types::Scope;

pub(crate) const ROWS: &[Rule] = &[
    text("core/wordings-window", Family::RateWindow, RateLimit, &[
        "{usage|message|session} {cap|allowance} {hit|reached|exhausted|used up}",
        "{hourly|daily|weekly} {message|token|request|usage} {allowance|cap|quota|limit} {hit|reached|exhausted|used up|exceeded|consumed|spent|gone|depleted|is gone|is spent|has run out|ran out}",
        "{consumed|used up|exhausted|spent|hit|reached} .. {hourly|daily|weekly|5 hour} .. {allowance|cap|quota|limit}",
        "{used up|exhausted} for {today|this hour|this week|the day}",
        "0 of .. requests left",
    ])
    .scope(Scope::Credential)
    .none(&["context", "budget", "credits have"]),
    text("core/wordings-rate", Family::Rate, RateLimit, &[
        "sending {messages|requests} too {quickly|fast|frequently|often}",
        "{you|your} .. {are|is} sending too much {traffic|load}",
        "operating on this conversation",
        "connecterror: [resource exhausted]",
        "unusually many requests",
        "only .. {simultaneous|concurrent|parallel} {streams|requests|sessions|connections}",
        "already have .. {generations|requests|streams|runs} {running|in progress|active}",
    ]),
    text("core/wordings-billing", Family::Billing, Billing, &[
        "{spend|spending|cost} ceiling .. {hit|reached|exceeded}",
        "{suspended|blocked|disabled|on hold} .. {nonpayment|non payment|unpaid}",
        "credits {have|has} {run out|expired|been used up|been exhausted}",
        "no active {billing plan|billing account|billing|subscription|plan}",
        "{spent|used up} .. {whole|entire|full|all} .. budget",
        "budget .. is spent",
        "credit balance: {$0*|0}",
        "{purchase|buy} more to {keep|continue}",
        "balance of - .. {settled|paid}",
        "invoice .. is {unpaid|overdue}",
        "payment {bounced|was declined|did not go through|was not successful}",
        "need an active subscription",
    ])
    .none(&["rate limit"]),
    text("core/wordings-auth", Family::Auth, Auth, &[
        "{key|token|credential|credentials} {was|were|is|are} not {accepted|recognised|recognized}",
        "{token|credential|session token} has lapsed",
        "could not find {an|any|the|your} {api key|credentials|token}",
        "must be {signed|logged} in",
        "{bad|invalid|wrong} {login|username|username or token|user name|password}",
        "signature we calculated does not match",
        "{key|token} {may|can} only be used {from|by|for}",
        "{isn't|is not} available in your {country|region}",
    ])
    .none(&["tool call", "model"]),
    text("core/wordings-gone", Family::AccountGone, AuthPermanent, &[
        "{account|organization|workspace} {was|has been|is} permanently {closed|disabled|banned|suspended|deleted}",
        "terminated your {access|account}",
    ])
    .none(&["payment", "billing", "invoice"]),
    text("core/wordings-overloaded", Family::Overloaded, Overloaded, &[
        "at full load",
        "all {gpus|workers|replicas|slots|instances} are {in use|busy|taken|occupied}",
        "{servers|service|system} {is|are} swamped",
        "no spare {slots|capacity|gpus|workers}",
        "{experiencing|receiving|under|due to|because of|handling|there is|with|seeing} too much {traffic|load|demand}",
        "request shed",
        "waiting for a free {worker|slot|gpu}",
    ]),
    text("core/wordings-transport", Family::Transport, Timeout, &[
        "{did not|didn't|failed to|never} {respond|answer|reply} {in time|within*}",
        "gave up waiting for {a |the |its |}{response|reply|answer|server|model|provider|upstream|first token|first byte|headers|data|stream|connection|completion}",
        "unexpectedeof",
        "proxy answered",
        "certificate of the server has expired",
        "lost connection to {the |}{server|provider|upstream|host}",
        "client connection is closing",
        "response code error: ', 5*",
        "http error', {504|524|522|408}",
        "524) a timeout",
    ])
    .none(&["mcp server"]),
    text("core/wordings-server", Family::Server, ServerError, &[
        "{broken|garbled|corrupt} {json|reply|answer|response}",
        "error {has |}occurred on the server",
        "asyncenginedead*",
        "background loop has errored",
        "unexpected token '<', \"<*",
        "unexpected token {'<'|<} in json",
        "unexpected token '<' .. is not valid json",
        "validation errors for chatcompletion*",
    ]),
    text("core/wordings-model", Family::Model, ModelNotFound, &[
        "{no|not a} {deployment|model|engine} {called|named|by that name|of that name}",
        "{gpt*|claude*|gemini*|o1*|o3*|llama*|mistral*|deepseek*} {was shut down|is no longer offered|has been retired|is no longer available|has been shut down|was retired|is retired}",
        "plan {doesn't|does not} give access to",
        "model {can't|cannot|can not} {do|accept|use|call|process|take|handle} {function|functions|tool|tools|images|image|audio|video|files}*",
        "{isn't|is not} recogni{s|z}ed by this api version",
        "llm provider not provided",
        "ai nosuchmodelerror",
        "nosuchmodelerror",
        "ai unsupportedfunctionalityerror",
        "unsupportedfunctionalityerror",
    ]),
    text("core/wordings-format", Family::Format, Format, &[
        "uploaded an unsupported {image|file|document}",
        "{unsupported|invalid} {image|file|audio|document} .. {one of|supported formats|following formats|formats: *}",
        "role '{system|assistant|user|tool|developer|function|model}' is not {allowed|supported|valid|permitted}",
        "message role .. is not {allowed|supported|valid}",
        "no matching tool {message|result|response|call}",
        "first message needs to",
        "{temperature|top p|top k|max tokens|n|presence penalty|frequency penalty} {out of range|must lie between|is out of range|not in range}",
        "cannot unmarshal .. into go struct field",
        "image could not be {decoded|processed|read}",
        "in request json at position",
        "property '*' is unsupported",
        "property .. is unsupported",
    ])
    .none(&["npm", "test"]),
    text("core/wordings-overflow", Family::Overflow, ContextOverflow, &[
        "no longer fits .. {window|context}",
        "{won't|will not|doesn't|does not|cannot|can't} fit {in|into|inside|within} .. {context|window}",
        "{prompt|input|request} has .. tokens but the limit",
        "{chat|thread|conversation} {is|has become|got} too long",
        "n ctx exceeded",
        "body exceeded .. limit",
        "more tokens than the model {can|is able|supports}",
    ]),
    text("core/wordings-refusal", Family::Refusal, ContentRefusal, &[
        "goes against our {usage|content|safety} {rules|policy|policies|guidelines}",
        "{withheld|blocked|stopped|caught|suppressed|flagged|paused} by {the|our|a} {safety|content} {layer|filter|filters|classifier|system|checks}",
        "caught by our content filters",
        "tripped {a|the|our} {safety|content} {classifier|filter|check}",
        "safety {filters|filter|classifier|classifiers} {flagged|blocked|stopped|paused} {this|the|your} {chat|message|prompt|conversation|request|answer|response}",
        "blockreason: *",
        "promptfeedback.blockreason*",
    ]),
    text("core/wordings-empty", Family::Empty, EmptyResponse, &[
        "{response|reply|answer|result|stream|completion|model|provider} {has|had|contained|contains|returned|gave|with|included} {no|zero|0} {choices|candidates|content|generations|output|outputs|text|messages|message|parts}",
        "{no|zero} {choices|candidates|generations|generation chunks|content|output|completions} {in|were|was|found in|from|provided|received|returned}",
        "no generations found",
        "{model|assistant} did not {provide|return|produce|generate|give} any",
        "error: no {content|choices|candidates|generations|output|completions} provided",
        "must include at least one {choice|candidate|generation}",
        "expected at least one {choice|candidate|generation|completion}",
        "{stream|response} {ended|finished|completed|closed|stopped} with {no|zero} {output|content|text|choices|tokens}",
        "list index out of range .. choices",
        "'nonetype' object is not subscriptable .. choices",
        "cannot read propert* .. reading '{choices|candidates|message|delta|content|0}'",
    ])
    .facts(&[Fact::Short])
    .none(&["messages must", "must not be empty", "content provided for", "retry limit", "safety", "content filter"]),
    text("core/wordings-session", Family::Session, SessionExpired, &[
        "no such {conversation|thread|session|chat|response}",
        "{thread|conversation|session|chat} .. {resuming|resumed} is gone",
    ])
    .none(&["login", "token"]),
    text("core/wordings-machine", Family::Machine, LocalCoordination, &[
        "another .. process is using its {local data|data|profile|state|database}",
        "exclusive access to .. {db|sqlite|file|state|directory}",
        "{directory|folder|profile|database} is locked",
        "{execution|command|tool|permission|edit} was {denied|rejected|declined} by the user",
    ]),
    text("core/wordings-abort", Family::Machine, Aborted, &["user pressed {ctrl c|escape|esc}", "user hit {ctrl c|escape|esc}"]),
];
