//! A thing and what became of it, in English: credits and run out, a model and not served here, a queue and full.
//!
//! Nobody can list how every gateway words an error, but few things fail in few ways. A row pairs the synonyms of
//! the thing with the synonyms of its state; what else such a pair could mean stands under `none`.

use super::text;
use crate::rule::{Fact, Family, Rule};
use failover_types::FailoverReason::{
    Auth, AuthPermanent, Billing, ContentRefusal, ContextOverflow, EmptyResponse, LocalCoordination,
    ModelNotFound, Overloaded, RateLimit, ServerError, SessionExpired, Timeout,
};
use failover_types::Scope;

pub(crate) const ROWS: &[Rule] = &[
    text("core/pairs-window", Family::RateWindow, RateLimit, &[
        "{hourly|daily|weekly|5 hour|five hour|24 hour|rolling|today's|this week's|this hour's} .. {allowance|allotment|cap|quota|ceiling|limit|ration|counter|messages|requests|calls|prompts|queries|turns|generations} .. {used up|exhausted|spent|reached|hit|exceeded|consumed|depleted|gone|ran out|run out|is over|maxed out|met|expended|drained|all used}",
        "{out of|no more|run out of|ran out of|used all|used all of|used up|exhausted|gone through|spent|used every one of} .. {messages|requests|prompts|queries|calls|turns|tokens|generations|uses} .. {for today|this hour|this week|for now|of the day|of the hour|in this window|this window|this period|allotted|per day|a day|per week}",
        "{5 hour|five hour|hour|minute|day|rolling|weekly|daily|hourly|session} window {is |has been |was |}{exhausted|spent|used up|full|reached|exceeded|closed|consumed}",
        "{quota|rate|usage|request|token|message|call} window .. {full|exhausted|closed|spent|used up|reached|exceeded|over|filled|depleted|maxed out}",
    ])
    .scope(Scope::Credential)
    .none(&["context", "spend", "spending", "cost", "payment method", "a payment", "retry limit", "capacity", "queue"]),
    text("core/pairs-pace", Family::RateWindow, RateLimit, &[
        "{counter|counters|meter|tally|allowance|allotment|quota|count} .. {resets|renews|refills|refreshes|restarts|rolls over|replenishes|will reset|is reset|will renew|will refill|starts over} .. {at|on|in|after|every|tomorrow|by itself|on its own|automatically|once|when}",
        "{allowance|allotment|quota|limit|cap|budget|messages|requests|tokens|credits|usage} .. {it|they|this} {refills|refill|renews|renew|resets|reset|replenishes|replenish|recovers|comes back|will refill|will reset|will renew} {on its own|by itself|automatically|in|at|on|every|tomorrow|after|within}",
        "{exceeded|exhausted|over|spent|used up|reached|hit|blew|blown|past|beyond|above|ran through} .. {request|requests|token|tokens|call|calls|message|messages|query|queries|prompt} .. {budget|allowance|allotment|quota|cap|ceiling|ration} .. {minute|hour|second}",
        "{requests|tokens|calls|messages|queries|prompts|generations|completions} .. {per|a|an|each|every} .. {minute|hour|day|second|week} .. {budget|allowance|allotment|cap|ceiling|quota|ration|maximum|figure} .. {used|used up|spent|exhausted|reached|hit|gone|consumed|depleted|full|exceeded|met|maxed out}",
        "{minute|hour|day|second|week} {allotment|allowance|quota|cap|ceiling|ration} .. {spent|used up|exhausted|gone|reached|hit|used|consumed|depleted|full|exceeded}",
        "{consumed|used|used up|spent|exhausted|exceeded|reached|hit|burned|overran|over|no} .. {allowance|allotment|quota|cap|ceiling|limit|ration} {for|of|in} {this|the current|the|each|a} {minute|hour|second}",
        "{rps|rpm|tpm|qps|tpd|rpd|burst|spike|throughput} .. {budget|ceiling|cap|threshold|quota|allowance|limit} .. {overrun|crossed|exceeded|reached|hit|breached|spent|used up|exhausted|surpassed|blown|maxed out}",
        "{above|over|beyond|exceeds|exceed|exceeded|more than|higher than|past} {the |our |your |}{permitted|allowed|permissible|maximum|configured|agreed|contracted} .. per {second|minute|hour|day}",
    ])
    .none(&["context", "maximum context length", "retry limit", "spend", "spending", "cost", "payment", "invoice", "capacity", "queue"]),
    text("core/pairs-rate", Family::Rate, RateLimit, &[
        "limiting {requests|connections}, {excess|by}*",
        "{inflight|in flight|concurrent|concurrency|parallel|parallelism|simultaneous} .. {cap|limit|maximum|ceiling|slots|quota|allowance} .. {hit|reached|exceeded|full|used|taken|exhausted|met|in use|occupied}",
        "{inflight|in flight|concurrent|parallel|simultaneous} {requests|calls|streams|sessions|generations|jobs} .. {exceed|exceeds|exceeded|above|over|beyond|limit|maximum|allowed|permitted|max}",
        "too many {open|active|running|ongoing|outstanding|unfinished|in flight|inflight|overlapping|live} .. {requests|streams|calls|generations|jobs|sessions|conversations|completions|runs}",
        "{requests|calls|streams|generations|jobs|completions|runs} .. {running|in progress|in flight|open|active|outstanding|underway} {for|on|with|under|by} {this|your|the} .. {key|account|user|api key|token|project|tenant|plan}",
        "{wait|hold on|retry} {for|until|till|after|once} .. {other|previous|running|earlier|ongoing|current|in flight|pending|active} .. {requests|request|calls|call|generation|generations|jobs|streams} .. {finish|finished|complete|completed|end|ended|return|done}",
        "{sending|sent|making|made|issuing|firing|posting|submitting|calling|hitting} .. {faster than|too fast|too quickly|too often|too rapidly|quicker than|more often than|more frequently than}",
        "{faster|more often|more quickly|more frequently|quicker|at a higher rate} than .. {policy|plan|limit|tier|quota|allowance|rate|we|key|account|rules} .. {permits|permit|allows|allow|tolerates|accept|accepts}",
        "{request|requests|call|calls|message|query|calling|polling} {frequency|rate|pace|cadence|throughput} .. {above|over|beyond|higher than|exceeds|exceeded|past|greater than|too high|too fast|surpass*}",
        "{calls|requests|messages|queries|prompts} {come|came|arrive|arrived|arriving|coming|are coming|follow} .. {too fast|too quickly|too often|faster than|too close together|too close to each other}",
        "{limiter|rate limiter|throttler|leaky bucket|token bucket|traffic shaper|rate governor} .. {rejected|refused|blocked|denied|kicked in|tripped|exhausted|empty|engaged|dropped|full|stopped}",
        "{number|amount|count|quantity} of {requests|calls|queries|messages|prompts} .. {above|over|exceeds|exceeded|beyond|higher than|greater than|surpass*} .. {allowed|permitted|limit|maximum|quota|threshold|cap|ceiling}",
        "{request|requests|call} {rejected|refused|denied|dropped|not admitted|not accepted|declined|turned away} .. {rate|quota|throttle|burst|pace|frequency} .. {limit|limits|cap|policy|rule|control|ceiling|exceeded}",
        "{rejected|refused|turned away|denied|blocked|held back|stopped|limited|dropped} {by|at|because of|due to|under} .. {concurrency|rate|request rate|burst|throughput|fair use|parallelism} .. {cap|limit|limiter|ceiling|policy|control|governor}",
        "{requests|calls|generations|jobs|streams} of yours .. {still |already |}{outstanding|running|open|active|in progress|in flight|pending}",
        "{please|kindly|you must|must|should|and|you need to} {back off|ease off|slow your requests|slow your calls|space out|pace your}",
        "{space|spread} {out |}{your|the} {requests|calls|messages|queries}",
    ])
    .none(&["context length", "context window", "queue is full", "balance", "credits", "output token", "retry limit", "database"]),
    text("core/pairs-billing", Family::Billing, Billing, &[
        "{used|spent|consumed|burned|burnt|reached|over} .. {$*|usd*|eur*|€*|£*|¥*} .. {of|against|beyond|over} .. {budget|spend limit|spending limit|cap|allowance|ceiling}",
        "{budget|spend|spending|cost} {guard|guardrail|control|controls|cap|ceiling|threshold|quota|limiter|policy|allowance} .. {hit|reached|exceeded|used|blocked|tripped|over|spent|exhausted|stopped|consumed}",
        "{wallet|balance|credit|credits|funds|deposit|prepaid amount|prepayment|account balance|credit line} .. {below zero|below the|ran dry|run dry|is dry|at zero|hit zero|reached zero|in the red|overdrawn|drained|does not cover|do not cover|doesn't cover|don't cover|cannot cover|can't cover|too small|falls short|is short|nothing left|all gone|has lapsed|have lapsed|not sufficient|insufficient|not suffice}",
        "{settle|pay|clear} {the|your|an|any|all|this|that} .. {invoice|invoices|bill|bills|balance|charges|debt|amount due}",
        "{outstanding|unsettled|overdue|delinquent} {invoice|invoices|bill|balance|charges|payment|payments|debt} .. {must|before|until|first|due|blocked|suspended|paused|on your|on this|on the account|disabled|stopped|required}",
        "{account|balance|wallet|organization|project} .. {in the red|overdrawn|in debt}",
        "{invoice|payment|charge|direct debit|renewal|card} {bounced|declined|refused|rejected|unpaid|overdue}",
        "{need|needs|requires|require|without} a paid {seat|tier|licence|license|account|plan|membership}",
        "{invoice|bill|payment|charge|direct debit|renewal} .. {is|was|are|has|were|remains|still} .. {overdue|unpaid|bounced|declined|failed|rejected|refused|outstanding|past due|not paid|not been paid|returned}",
        "{subscription|membership|licence|license|contract|paid plan|pro plan|trial|evaluation|free period} .. {lapsed|ran out|run out|was cancelled|was canceled|not renewed|not been renewed|has ended|is over|came to an end|has expired|no longer active}",
        "{refill|reload|replenish|fund|recharge} {your|the} {wallet|balance|account|credits|card}",
        "{card|payment method|payment details|billing details} {is missing|are missing|not on file|is needed|are needed}",
        "no {payment|card|billing|credit card} .. on file",
        "{free|trial|promotional|promo|starter|welcome|complimentary|sign up|signup|gift|bonus} .. {credits|credit|tokens|quota|allowance|tier|grant|balance} .. {gone|spent|used|exhausted|expired|over|ended|run out|ran out|finished|consumed|depleted|exceeded}",
        "{account|organization|organisation|workspace|project|team|tenant|you} .. {owes|owe|is in debt|is overdrawn|is in arrears|has an unpaid|has unpaid|have an unpaid|have unpaid}",
        "{not enough|too few|too little|insufficient|lacking|short of|short on} {prepaid |remaining |account |available |}{credit|credits|money|funds|balance|cash}",
        "{credit|credits|balance|funds|money} .. {is |are |}{not enough|too little|too low|insufficient} {for|to}",
        "{costs|cost|price|priced|needs|requires} .. {but|and|while|whereas} .. {balance|wallet|account|credits|funds} .. {has|have|holds|only|is|left|remain|remains}",
        "{buy|purchase|order|get} {more |additional |another |extra |}{credits|credit pack|tokens|quota|usage|token pack}",
    ])
    .none(&[
        "rate limit", "per minute", "resets", "shared pool", "try again in", "in flight requests", "usage limit", "context", "credentials", "capacity",
        "{it|they} {renews|renew|refills|reset}",
    ]),
    text("core/pairs-gone", Family::AccountGone, AuthPermanent, &[
        "{found|spotted|detected|discovered|seen|saw|located} {this|your|the|that} .. {key|token|secret|credential} .. {public|github|repository|repo|internet|leak*|pastebin|exposed}",
        "{key|token|credential|secret} .. {public|leaked|exposed|published|compromised|stolen} .. {disabled|revoked|deactivated|invalidated|cancelled|canceled|killed|blocked|withdrawn|retired}",
        "{key|token|credential|secret|api key|access token|refresh token} {has been|was|is|had been|got} .. {cancelled|canceled|withdrawn|invalidated|destroyed|erased|wiped|killed|rescinded|nullified|voided|terminated|retired|decommissioned}",
        "{key|token|credential|secret} {has been|was} .. {cancelled|canceled|withdrawn|invalidated|revoked|disabled|deactivated|deleted|removed} .. {by|at|on|because|after|when|from}",
        "{account|organization|organisation|workspace|tenant|user} {has been|was|is|have been|were} .. {barred|shut down|shut|erased|wiped|cancelled|canceled|decommissioned|dissolved|revoked|expelled|excluded|archived|offboarded|deprovisioned}",
        "{account|organization|organisation|workspace|tenant} {no longer exists|does not exist any more|is gone}",
        "{we|administrator|admin|owner} .. {closed|terminated|suspended|disabled|deactivated|banned|barred|blocked|revoked|deleted|shut down} {your|this|the} {account|organization|organisation|workspace|key|api key|token|access}",
    ])
    .none(&[
        "billing", "payment", "payments", "invoice", "invoices", "balance", "overdue", "credits", "subscription", "temporarily", "try again in",
        "region", "country", "model", "session", "conversation", "nonpayment", "unpaid", "expired", "request was cancelled", "request was canceled",
        "deployment", "tool", "stop token",
    ]),
    text("core/pairs-overloaded", Family::Overloaded, Overloaded, &[
        "{exceeds|exceeded|exceed|over|reached|at|hit|past} .. {maximum|max|allowed|permitted|} queue {size|length|depth|capacity|limit}",
        "{queue|request queue|scheduler queue|waiting line|waiting room|backlog|work queue} .. {full|overflowing|overflowed|exhausted|too long|too deep|too big|backed up|at its limit|maxed out|saturated|jammed|out of room|growing faster}",
        "{assistants|servers|systems|models|engines|gpus|nodes|machines|workers|we|we're|service|fleet|cluster|region|backend|model|server|pods|inference} .. {swamped|slammed|snowed under|inundated|oversubscribed|overrun|overstretched|jammed|stretched thin|overbooked|maxed out|under strain|under pressure|bogged down|choked|clogged|hammered}",
        "{no|zero|0|not a single|none of the} .. {accelerator|accelerators|decoder|decoders|pod|pods|runner|runners|seat|seats|compute|gpu memory|engines|executor|executors|inference slot|inference slots|computing resources|h100*|a100*} .. {free|available|left|idle|remaining|at the moment|right now|currently|could}",
        "{every|each|all} {accelerator|gpu|worker|replica|node|slot|instance|server|pod|engine} {in|of|on|is|we} .. {busy|taken|occupied|full|in use|saturated|claimed|allocated}",
        "{every|each|all} .. {gpu|gpus|worker|workers|replica|replicas|node|nodes|slot|slots|engine|instance|instances|server|servers|machine|machines|pod|pods|seat|seats|accelerators|backend|backends} .. {is|are|in the pool is|in the pool are|in the cluster is|we have is} .. {busy|taken|occupied|full|in use|saturated|working|claimed|allocated|tied up|engaged}",
        "{model|deployment|replica|replicas|instance|endpoint|engine|container|worker|server|weights|machine|pod} .. {scaling up|warming up|spinning up|cold starting|booting|still starting|being started|waking up|still loading|not warm|coming up|being brought up|being warmed}",
        "queue position",
        "position in {the |}queue",
        "{you are|you're|request is|requests are|currently|now} .. in {the|a} {queue|waiting line|waiting room}",
        "{demand|load|traffic|usage|interest} .. {outstrips|outstripping|exceeds|exceeding|exceeded|outpaces|outpacing|surpasses|above|beyond|higher than|overwhelming|too high|too great|extremely high} .. {capacity|supply|what|expected|resources|can|usual|normal|at the moment|right now}",
        "{run out|ran out|running out|short} {of|on} .. {capacity|gpus|gpu|compute|workers|servers|resources|gpu capacity|compute capacity}",
        "{capacity|resources|compute|gpu|gpus|throughput} .. {fully|all|currently|temporarily|already|now} .. {used|booked|allocated|taken|occupied|consumed|exhausted|committed|in use|tied up}",
        "{too many|so many} {people|users|customers|clients|visitors|callers} .. {using|at once|right now|at the moment|same time|online|waiting}",
        "{service|system|platform|model|site|server} .. {under |experiencing |facing |seeing |}{strain|pressure|rush|rush hour|a rush|a surge|surge|peak hours|extraordinary demand|record demand|unprecedented demand|intense demand|massive demand}",
        "{surge|spike|flood|wave|burst} {of|in} {traffic|demand|requests|usage|load|users}",
        "insufficient {capacity|system resource|system resources|compute|gpu|gpus|resources}",
    ])
    .none(&[
        "your capacity", "database", "connection pool", "disk", "overload resolution", "your usage", "provisioned throughput", "quota",
        "failed to load", "error loading", "per minute", "has been resolved", "context",
    ]),
    text("core/pairs-model", Family::Model, ModelNotFound, &[
        "no {adapter|lora|checkpoint|variant|weights|engine|snapshot|fine tune|finetune} {named|called|loaded|found|deployed|registered|matches|matching|by that name|of that name|with}",
        "{adapter|lora|checkpoint|weights|fine tune|finetune|fine tuned model|snapshot|model alias|alias} .. {not found|does not exist|doesn't exist|unknown|not loaded|is not loaded|not present|are not present|not available|missing|not registered|not installed|not deployed|absent|could not be found|cannot be found}",
        "{model|models|deployment|engine} .. {reserved for|restricted to|exclusive to|exclusively for|open only to|available only to|available only for|locked to|off limits|limited to|only for|not part of your|not included in your|outside your|not covered by}",
        "{snapshot|checkpoint|model version|gpt*|claude*|gemini*|o1*|o3*|o4*|llama*|mistral*|deepseek*|qwen*|grok*|command*|glm*|kimi*|phi*|yi*|gemma*|mixtral*} .. {is not known|is unknown|does not exist|doesn't exist|is not served|isn't served|not hosted|is not deployed|isn't deployed|is not loaded|is not installed|is not offered|isn't offered|is not supported|isn't supported|is gone|no longer served|no longer hosted|no longer exists|no longer supported|not found|was switched off|has been switched off|was withdrawn|was retired|is retired|reserved for|restricted to|is not enabled|isn't enabled}",
        "{cannot|can't|does not|doesn't|unable to|not able to|can not|will not|won't} {read|see|view|process|understand|accept|interpret|analyze|analyse|take|hear|handle|ingest|parse|watch|listen to} {images|pictures|photos|image|pdfs|pdf files|audio|video|videos|documents|attachments|files|tools|tool calls|functions|function calls|sound|speech|images or*|any images|tool definitions|image parts|image inputs|image input}",
        "{images|image parts|image content|pictures|audio|tools|tool definitions|files|attachments|videos} {are|is} not {understood|read|seen|accepted|processed|handled|recognised|recognized|taken}",
        "{not|isn't|aren't} {among|one of|in the list of|part of|on the list of|in} .. {the|our|your|these|its} .. {models|engines|deployments|available models|supported models|hosted models|served models|model list|catalog|catalogue|line up|lineup}",
        "{model|engine|alias|deployment|model name} .. {points nowhere|points to nothing|resolves to nothing|maps to nothing|leads nowhere|is not mapped|not mapped to|cannot be resolved}",
        "{pick|choose|use|select|try|switch to|needs|requires} {a|an|another} {vision|multimodal|audio|tool capable|vision capable|image capable|text only|chat|reasoning|embedding|instruct} model",
        "{text only|blind|text to text} model",
        "is {infeasible|impossible|not possible|not feasible|not implemented|not offered|not available} for .. {model|models|publishers|projects}*",
        "{cannot|can't|could not|couldn't|unable to|failed to|did not|didn't} {find|locate|identify|recognise|recognize|resolve} .. {model|deployment|engine|model alias|model id|model name|adapter}",
        "{model|deployment|engine|variant} .. {is not known|isn't known|not known|has no home|not hosted|isn't hosted|isn't deployed|isn't served|not on this server|not on any|not among|not one of|isn't one of|isn't part of|not listed|isn't listed|superseded|withdrawn|been replaced|was replaced|been pulled|been switched off|switched off|switched off on|no longer served|no longer hosted|no longer exists|no longer offered|no longer runs|no longer part|was taken offline|been taken offline|has left|been discontinued|has been sunset|does not ring|not in our|not in this|not in the catalog|went away|is gone}",
        "{nothing|no one|nobody|no host|no node|no server|no region|no provider|no backend} .. {serves|hosts|runs|knows|provides|offers} {that|this|the|a|such a|any} {model|deployment|engine}",
        "{we|this region|this endpoint|this cluster|this server|this gateway|this provider|server|gateway} {do not|don't|does not|doesn't|no longer} {know|run|serve|host|offer|carry|provide|have} .. {model|engine|deployment}",
        "{function calling|tool calling|tool use|tools|vision|images|audio|streaming|json mode|structured output|structured outputs|image input|embeddings|reasoning effort|thinking} {is|are} {beyond|outside|not among|not something|not part of|not implemented|unsupported|not supported} .. {model|deployment|engine}",
        "{model|deployment|engine} {has no|lacks|is without|comes without} {vision|tool|tools|function|image|audio|support|streaming|chat template|such capability}",
    ])
    .none(&[
        "temporarily", "context length", "maximum context", "overloaded", "capacity", "balance", "try again later", "role", "max tokens", "previous response",
        "cached content", "no module named", "command not found", "billing", "parameter", "pydantic*", "tokens", "conversation", "busy", "api key",
        "rate limit", "in your region or", "user location", "sensitive",
    ]),
    text("core/pairs-overflow", Family::Overflow, ContextOverflow, &[
        "{too long|too big|too large|too much} to fit",
        "{cannot|can't|could not|couldn't|won't|will not|does not|doesn't|don't|do not|unable to|impossible to|failed to} fit .. {window|context|history|kv cache|model|limit|tokens|budget|sequence}",
        "{input|prompt|context|request|history|conversation|messages|message|text|document|transcript|payload|chat} {of|with|at|has|counts|is|came to|comes to|totals|measures|weighs} .. {tokens|characters|chars|token} .. {does not fit|doesn't fit|is above|are above|exceeds|exceed|over|larger|beyond|outside|is more than|surpasses|greater than|will not fit|won't fit|too many|too much}",
        "{tokens|chars|characters} {is|are|were} .. {above|over|beyond|past|more than|higher than|greater than|in excess of} .. {the|our|this|its|what} .. {tokens|limit|window|maximum|max|ceiling|context|model|allows|allowed}",
        "{trim|shorten|drop|remove|cut|prune|compact|summarize|summarise|condense|discard} {some |}{earlier|older|previous|old|past|early|of the|the oldest|oldest} .. {turns|history|context|exchanges}",
        "{outgrown|outgrew|outgrows} the {model|window|context|engine|limit}",
        "too much {text|input|content|history|context}",
        "{overruns|overrun|overran|overflows|overflowed|overshoots|overshot|blows|blew|bursts} the {token|context|input|prompt|model} {window|budget|limit|size}",
        "{tokens|positions|characters|chars} {is|are|were} .. {beyond|above|over|more than|past} .. {supported|allowed|permitted|possible|window|maximum}",
        "{body|payload|request|upload|content} .. {over|above|beyond} .. {permitted|allowed|maximum|limit of} .. {mb|kb|mib|gb|kib|bytes|megabytes}",
        "body buffer overflow",
        "toobigbody*",
        "{body|payload|request|upload|request body|post body} {is |was |}{over|above|beyond|larger than|bigger than|heavier than|in excess of} .. {mb|kb|mib|kib|bytes|limit|megabytes|maximum|allowed}",
        "{history|chat|conversation|thread|dialog|dialogue|transcript|context|prompt|input} {has grown|grew|is|became|got|has become|has gotten|ran|runs|goes|went|reaches|stretches} .. {too long|too large|too big|beyond the|past the|over the|larger than|longer than|out of the}",
        "{context|token|attention|sequence|input} {window|limit|length|budget|space} .. {exceeded|overrun|overflowed|exhausted|blown|surpassed|used up|filled|burst|too small for|is full|insufficient for|overshot}",
        "{prompt|input|text|document|conversation|message|question|request} .. {longer than|larger than|bigger than|too long for|too large for|too big for|more than} {what |}{this model|the model|our model|the engine|model|the window|this engine|the selected model|the chosen model|we can|it can}",
        "{tokens|length|size} .. {but|while|whereas|and|yet} .. {model|window|limit|maximum|engine|context|ceiling} .. {is|takes|holds|accepts|allows|permits|has|supports|fits|handles|stops|ends}",
        "{prompt|input|context|request|sequence} {length|size|tokens} .. {exceeds|exceeded|over|above|beyond|out of} .. {range|limit|maximum|max|window|bound|bounds|allowed|permitted|capacity}",
    ])
    .none(&[
        "per {minute|min|day|hour|second}", "tpm", "tpd", "output tokens", "completion tokens", "rate limit", "credits", "balance", "quota", "call id", "image",
        "images", "tool name", "file name", "max tokens must", "queue", "disk", "argument list", "pages", "log", "commit",
    ]),
    text("core/pairs-refusal", Family::Refusal, ContentRefusal, &[
        "{guardrail|guardrails|firewall for ai|ai firewall|content firewall|safety layer|safety filter|safety system|safety model|moderation|content filter|policy engine|prompt shield|safety classifier|content shield|content guard|input rail|output rail} .. {intercepted|blocked|stopped|withheld|rejected|flagged|caught|denied|matched|tripped|triggered|refused|declined|vetoed|suppressed}",
        "{intercepted|blocked|stopped|caught|withheld|flagged|halted|rejected|denied|refused|vetoed|suppressed|held back|filtered out} by .. {guardrail|guardrails|firewall for ai|ai firewall|safety|moderation|content|policy engine|prompt shield|input rail|output rail|trust and safety|abuse|content guard|ethics}*",
        "{response|output|answer|reply|generation|completion|text} .. {withheld|suppressed|held back|halted|redacted|removed|cut off|retracted|blanked} .. {toxic*|policy|policies|rule|safety|harm*|copyright*|lyrics|protected|hate*|violen*|sexual*|weapon*|moderation|guideline*}",
        "{generation|response|output|completion|answer} {halted|stopped|withheld|blocked|cut}: .. {protected|copyright*|lyrics|verbatim|recitation|unsafe|harm*|toxic*|policy|sensitive}",
        "{declined|declines|refuse|refused|refuses|won't|unable|cannot|can't|not able|not going} {to |}{answer|respond|help|assist|continue|process|generate|comply|reply|discuss} .. {policy|policies|rules|guidelines|acceptable use|terms of|safety|standards|harm*|unsafe|illegal|inappropriate}",
        "{breaches|breach|violates|breaks|infringes|contravenes|conflicts with|goes against|runs afoul of|does not comply with|is against|runs counter to|not in line with|contrary to} .. {acceptable use|usage rules|content rules|community standards|usage policy|content policy|content standards|safety rules|house rules|content guidelines|safety policy|use policy|moderation rules|responsible use|responsible ai}",
        "{reproduced|reproduces|reproduce|contains|quotes|repeats|recites|copies} .. {protected|copyrighted|licensed|verbatim} {lyrics|text|material|content|work|works|passages|source*}",
        "{toxic|toxicity|hateful|abusive|violent|sexual|explicit|obscene|defamatory|dangerous|disallowed|forbidden|banned|illicit|extremist} {content|language|material|topic|topics|words|text|request} .. {blocked|detected|rule|filter|not allowed|not permitted|refused|rejected|matched|withheld|found|removed|prohibited}",
        "{finishreasonsafety|finishreasonrecitation|finishreasonprohibitedcontent|finishreasonblocklist|finishreasonspii|blockreasonsafety|blockreasonother|blockreasonblocklist|blockreasonprohibitedcontent|blockedreasonsafety}",
        "{prompt|question|request|message|input|query|topic|subject} .. {not something|is not a topic|off limits|touches on|falls under|considered|classed as|classified as|deemed|judged|rated} .. {unsafe|harmful|toxic|disallowed|prohibited|forbidden|inappropriate|sensitive|violent|sexual|hate|illegal|dangerous|discuss|allowed to answer}",
        "{safety|content|moderation|harm|toxicity|risk} {score|rating|category|level|verdict} .. {threshold|exceeds|exceeded|above|blocked|too high|violence|sexual|hate|self harm|unsafe}",
    ])
    .none(&[
        "ip address", "waf", "account", "too many requests", "region", "country", "api key", "url", "rate limit", "messages must", "schema", "sandbox",
        "json", "credential", "content type", "file type",
    ]),
    text("core/pairs-session", Family::Session, SessionExpired, &[
        "{cached|cache} {prefix|content|contents|context|entry|handle|item|prompt} .. {has expired|is expired|expired|gone|evicted|unknown|is invalid|not found|no longer|timed out|purged|dropped|does not exist}",
        "{conversation|thread|chat|chat session|dialogue|dialog|interaction|assistant run|previous response|stored response|response id|previous turn} .. {forgotten|wiped|cleared|no record|lost|pruned|discarded|aged out|not retained|no longer stored|no longer held|no longer kept|no longer known|no longer retained|not stored|cannot be resumed|can't be resumed|could not be resumed|cannot be continued|past its retention|retention period|has lapsed|was removed|were removed|been removed|been archived|timed out after|idle too long}",
        "{no|cannot find|can't find|could not find|couldn't find|unable to find|lost|have no|has no|without} .. {record|trace|memory|recollection|state|history} {of|for} .. {that|this|the|your|a|such a} .. {conversation|thread|session|chat|response|dialogue|interaction|run}",
        "{previous response|response|resp*|conversation|thread} .. {is not|isn't|is no longer|was not|no longer} {stored|retained|known|kept|resumable|in our store|in the store|held|remembered|persisted}",
        "{start|begin|open} .. {new|fresh} {conversation|thread|chat|session}, .. {expired|gone|closed|ended|old|deleted|not found|unknown}",
        "{conversation|thread|chat|session|dialogue} .. {expired|gone|closed|ended|deleted|not found|unknown|too old} .. {start|begin|open} .. {new|fresh} {one|conversation|thread|chat|session}",
        "{reasoning|thinking|encrypted} {item|items|block|blocks|blob|payload|token|content} .. {expired|not readable|unreadable|cannot be read|can't be read|not decrypt*|cannot be decrypt*|stale|unknown to|not recognised|not recognized|other key|another key|tampered}",
    ])
    .none(&[
        "login", "log in", "sign in", "api key", "oauth", "jwt", "usage limit", "rate limit", "model .. not found", "database", "tool result", "context length",
        "too long", "queue", "parameter", "worktree", "disk",
    ])
    .facts(&[Fact::Short]),
    text("core/pairs-auth", Family::Auth, Auth, &[
        "{key|token|api key|credential|credentials|secret|signature|bearer|password|access key|subscription key|licence|license key|client secret} .. {is unknown|unknown to|not known|not accepted|is refused|was refused|not on file|doesn't match|does not match|do not match|mismatched|could not be matched|not registered|not recognised|garbled|truncated|not yet valid|too old|stale|outdated|lapsed|out of date|past its|doesn't belong|does not belong|belongs to another|belongs to a different|not usable|unusable|no good|corrupt|unreadable|not genuine|is blank|is absent|was absent|isn't valid|isn't recognized|isn't recognised|doesn't work|does not work|turned down}",
        "{garbled|bad|corrupt|truncated|stale|outdated|lapsed|unrecognised|unregistered|unusable|mismatched|mangled|foreign} {api key|api token|access key|credential|credentials|secret key|bearer token|access token}",
        "{x date|date header|timestamp|request time|clock|signing time|signed at} .. {too far|skew*|minutes away|seconds away|minutes from|out of sync|outside|too old|in the future|drift*|too late|differs from} .. {server|credential|signature|rejected|time|request|allowed|window}*",
        "{clock skew|request time too skewed|requesttimetooskewed|signature expired|signaturedoesnotmatch}",
        "{credential|credentials} .. {rejected|refused|declined|not honored|not honoured|insufficient|not accepted|turned away}",
        "{we|server|gateway|service} .. {do not|don't|does not|doesn't|did not|didn't|could not|couldn't|cannot|can't} .. {know|recognise|recognize|accept|match|trust|honor|honour|like} .. {this|that|your|the|the supplied|the provided} .. {key|token|credential|credentials|secret|signature|login}",
        "{who are you|identify yourself|prove your identity|tell us who you are}",
        "{no|without|lacks|lacking|missing} {api key|access token|bearer token|authorization header|credentials|credential|signature|auth header} {on|in|with|was|were|accompan*|came|attached|present|supplied|sent}",
        "{key|token|account|user|caller|role|principal|service account|client|identity} {may not|is not allowed to|isn't allowed to|has no right to|has no permission|lacks permission|is not entitled to|does not hold|isn't permitted to|is not cleared|has no access} .. {call|use|access|invoke|reach|resource|endpoint|api|service|operation|this|scope}",
        "{login|sign in|sign on|authentication|session cookie|sso session} {has lapsed|lapsed|is needed|needed|ran out|is stale|has run out|did not succeed|was unsuccessful|was refused}",
        "{log|sign} {back in|in once more|in anew|in afresh}",
        "{ip|address|network|origin|domain|referrer} .. {not on the allow list|not on the allowlist|not allowlisted|not whitelisted|not in the allow list|is not allowed|not permitted|not trusted} .. {key|token|account|project|access|organization}",
    ])
    .none(&[
        "model", "tool call", "unexpected token", "max token*", "stop token*", "token count", "url", "json", "schema", "object key", "conversation", "session key",
        "primary key", "foreign key", "public key", "certificate", "proxy", "parse", "sandbox", "deployment", "tokens", "context",
    ]),
    text("core/pairs-timeout", Family::Transport, Timeout, &[
        "{abandoned|aborted|stopped|killed|cut|cut off|terminated|given up|dropped|interrupted} .. {ran past|exceeded|exceeding|longer than|past|passed|overran|over} .. {second|seconds|minute|minutes|time|deadline|s|ms} .. {limit|server limit|time limit|deadline|budget|ceiling|timeout|maximum}",
        "{ran|running|runs|run|went|goes} {past|over|beyond} .. {our|the|its|your|a} .. {second|seconds|minute|minutes|time|deadline|timeout}",
        "{took|taking|needed|lasted|ran|running|exceeded|exceeds} {longer than|more than|beyond} .. {seconds|s|ms|minutes|minute|second|limit|allowed|permitted|allotted time}",
        "{time|duration} {allowance|budget|limit|allotment|cap} .. {exceeded|used up|over|reached|elapsed|passed|ran out|exhausted}",
        "{model|request|generation|upstream|server|inference|call|completion|job|provider|we} {ran out of time|is out of time|has run out of time}",
        "{gave up|giving up|stopped} after waiting",
        "{no|without|not a single|not one} {answer|reply|response|word|sign of life|byte|first byte|token|first token|chunk|event} .. {within|after|in time|in the allotted|inside|before the} .. {seconds|s|ms|minutes|minute|time|deadline|limit}",
        "{stopped|gave up|quit|done} {waiting|listening}",
        "{stopped|gave up|tired of|done} waiting {for|on|after}",
        "{failed|unable|could not|did not|didn't|cannot|couldn't|never} .. {answer|respond|reply|finish|complete|return|deliver} {within|before|inside|in the} .. {time|deadline|limit|timeout|window|seconds|s|ms|minutes}",
        "{hung|stalled|froze|went silent|went quiet|fell silent|got stuck|became unresponsive|unresponsive|not responding|stopped responding}",
        "{peer|server|upstream|remote|origin|backend|provider|far end|other end} .. {vanished|went away|disappeared|slammed|dropped us|cut us off|abandoned|stopped sending|quit}",
        "{stream|connection|response|transfer|socket|link|line|sse} {broke off|cut short|went dead|died|snapped|broke down|fell over|was severed|collapsed|ended early|stopped early|stopped midway|was cut short|ended midway|ended abruptly}",
        "{cannot|can't|could not|couldn't|unable to|failed to|failing to} .. {reach|contact|talk to|get through to|dial|get hold of|raise} .. {server|host|api|provider|upstream|backend|origin|endpoint|model server|inference server|service|gateway}",
    ])
    .none(&["sandbox", "session", "database", "sqlite", "lock", "tool", "mcp", "test", "budget of $*", "build", "command"]),
    text("core/pairs-server", Family::Server, ServerError, &[
        "{backend|upstream|provider|server|engine|origin|service|inference|worker|gateway} .. {returned|sent|gave|produced|emitted|responded with|answered with|replied with|delivered} .. {malformed|garbled|unparsable|unparseable|invalid|corrupt|corrupted|broken|nonsense|unexpected|illegal|unreadable|undecodable|non json|not json|an unknown}",
        "{unhandled|uncaught|fatal|unrecoverable|unforeseen|unanticipated|undefined|unspecified} .. {exception|error|failure|fault|condition|problem} .. {server|backend|service|inference|model|worker|while|in|upstream|provider|occurred|happened|engine}",
        "{something|it|things|we} {broke|went wrong|blew up|went sideways|messed up|tripped over|hit a snag|hit a bug|hit a problem|failed} .. {our|server|inside|internally|backend|us|here|service|end|side}",
        "{hiccup|glitch|mishap|gremlins|snafu} .. {our|server|end|backend|service|inference|side}",
        "{our|the} {backend|server|service|inference engine|engine|inference|model server|inference worker|worker|cluster|database} {fell over|blew up|broke|broke down|is broken|choked|tripped|misbehaved|gave up|is sick|is unwell|is not healthy|is unhealthy|hit an error|ran into a problem|ran into an error|ran into trouble|faulted|died|has died|threw an exception|threw an error|panicked|segfaulted|core dumped}",
        "{internal|server side|backend|system} {fault|problem|trouble|breakdown|malfunction|defect|bug|mishap|issue|hiccup|assertion failed|inconsistency}",
        "{hit|ran into|encountered|experienced|suffered|had} {an|a} {internal|unexpected|unforeseen|technical} {snag|hiccup|glitch|bug|problem|crash|fault|trouble|issue|failure|condition}",
        "{assertion|kernel|illegal memory access|segmentation fault|device side assert} {error|failure|failed|encountered|triggered|in|during|was}",
        "{nccl|cublas|cudnn|triton|xla|tensorrt} {error|failure|exception|internal error|status}",
    ])
    .none(&["json schema", "schema", "tool call", "function call", "parameter", "tool", "request body", "your request", "test", "compil*", "api key", "credential*", "quota", "billing"]),
    text("core/pairs-empty", Family::Empty, EmptyResponse, &[
        "{answer|reply|response|completion|output|message|generation|candidate|result} .. {came back|arrived|turned out|is|was|turned up|ended up|comes} .. {blank|void|hollow|without content|without text|without any text|with nothing in it|with nothing|with no text|with no content|devoid of}",
        "{model|assistant|provider|upstream|server} {said nothing|answered nothing|wrote nothing|stayed silent|kept silent|had nothing to say|gave no answer|gave no reply|gave no output|sent nothing|sent back nothing|returned blank|replied with silence|produced nothing|generated nothing|gave nothing|gave us nothing|did not say anything|didn't say anything|did not answer anything}",
        "{nothing|no words|not a word} .. {generated|produced|said|written|emitted|came back|back from|to show|to return|in the answer|in the reply|in the response}",
        "{zero|0|no} {output|completion|generated|visible} {tokens|text|content|characters} .. {generated|produced|returned|answer|response|reply|came|emitted|received}",
    ])
    .facts(&[Fact::Short])
    .none(&["messages must", "must not be", "cannot be", "retry limit", "safety", "filter", "time", "within", "after"]),
    text("core/pairs-machine", Family::Machine, LocalCoordination, &[
        "{denied|rejected|blocked|refused|declined|forbidden|vetoed} by .. {approval|sandbox|permission|permissions|exec|execution|security|command|tool|host} .. {policy|policies|rules|rule|settings|mode|profile|hook}",
        "approval {denied|not granted|was not granted|was denied|rejected|was rejected|declined|was declined|required but|missing|refused}",
        "{requires|needs|awaiting|without|lacks} approval .. {none|denied|not granted|rejected|refused|interactive|headless}",
        "{lock|lockfile|lock file|pid file|mutex|workspace lock|session lock} {is |was |}{held by|owned by|taken by|in use by|already held|already taken|still held}",
        "{no space|not enough space|out of space|no room} {left |}on {the |this |}{device|disk|volume|drive|disc|filesystem}",
    ])
    .none(&["http", "status code", "api error"]),
];
