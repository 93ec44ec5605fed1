//! The scenes, as data: what the providers do, what happens, and what must come of it.

use failover_testkit::upstream::{Answer, On, Respond, Step, Upstream};
use std::time::Duration;

/// One scene.
pub(crate) struct Scene {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) story: &'static str,
    /// How many keys OpenAI has.
    pub(crate) keys: usize,
    /// What the providers do.
    pub(crate) script: fn(&Upstream),
    /// What happens, in order.
    pub(crate) acts: &'static [Act],
    /// Who answers the last turn; `None` where nobody can.
    pub(crate) served: Option<&'static str>,
    /// How many calls each model gets in all.
    pub(crate) calls: &'static [(&'static str, usize)],
    /// What a reader takes home.
    pub(crate) lesson: &'static str,
}

/// One thing that happens in a scene.
#[derive(Clone, Copy)]
pub(crate) enum Act {
    /// The user asks something.
    Ask,
    /// The user asks, and while `during` is being asked picks another model by hand.
    AskAndPick {
        /// The model that is being asked at that moment.
        during: &'static str,
        /// The user's pick.
        pick: &'static str,
    },
    /// Time passes.
    Pass(Duration),
    /// The providers change their ways.
    Change(fn(&Upstream)),
}

const GPT: &str = "gpt-5";
const LLAMA: &str = "llama";
const LARGE: &str = "large";

pub(crate) const FIRST_KEY: &str = "demo-openai-first";
pub(crate) const SECOND_KEY: &str = "demo-openai-second";

const TPM: &str = r#"{"error":{"message":"Rate limit reached for gpt-5 on tokens per min (TPM): Limit 30000, Used 29100, Requested 1800. Please try again in 20s.","type":"tokens","code":"rate_limit_exceeded"}}"#;
const UNPAID: &str = r#"{"error":{"message":"Your account has a negative credit balance. Please add credits to continue.","type":"billing_error","code":"insufficient_balance"}}"#;
const BUSY: &str = r#"{"error":{"message":"The model is currently overloaded. Please try again later.","type":"overloaded_error"}}"#;
const CRASHED: &str =
    r#"{"error":{"message":"The server had an error while processing your request.","type":"server_error"}}"#;
const TOO_LONG: &str = r#"{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 131072 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#;

fn limited() -> Step {
    Step::Respond(
        Respond::new(429).header("content-type", "application/json").header("retry-after", "20").body(TPM),
    )
}

fn well(upstream: &Upstream, model: &str, text: &str) {
    upstream.script(On::model(model), [Step::text(text)]);
}

fn all_well(upstream: &Upstream) {
    well(upstream, GPT, "Because air scatters blue light most.");
    well(upstream, LLAMA, "Air scatters blue light more than red.");
    well(upstream, LARGE, "It is Rayleigh scattering.");
}

fn first_key(upstream: &Upstream, step: Step) {
    upstream.script(On::model(GPT).with_key(FIRST_KEY), [step]);
}

/// The scenes, in the order of the demo.
pub(crate) const SCENES: &[Scene] = &[
    Scene {
        name: "rate-limit",
        title: "A key hits its rate limit: the second key answers",
        story: "OpenAI says 429 to the first key. Another key is cheaper than another model.",
        keys: 2,
        script: |upstream| {
            all_well(upstream);
            first_key(upstream, limited());
        },
        acts: &[Act::Ask, Act::Ask],
        served: Some("openai/gpt-5"),
        calls: &[(GPT, 3)],
        lesson: "the second question does not ask the limited key again",
    },
    Scene {
        name: "both-limited",
        title: "Both keys are limited: the next model answers",
        story: "The same 429 for both keys. Two tries are enough; then the chain goes on.",
        keys: 2,
        script: |upstream| {
            all_well(upstream);
            upstream.script(On::model(GPT), [limited()]);
        },
        acts: &[Act::Ask],
        served: Some("groq/llama"),
        calls: &[(GPT, 2), (LLAMA, 1)],
        lesson: "the session stays on the fallback until the limit ends",
    },
    Scene {
        name: "billing",
        title: "402: a key without credit is taken out for hours",
        story: "The first key's account is empty. Asking it again each minute would help nobody.",
        keys: 2,
        script: |upstream| {
            all_well(upstream);
            first_key(upstream, Step::json(402, UNPAID));
        },
        acts: &[Act::Ask, Act::Pass(Duration::from_hours(1)), Act::Ask],
        served: Some("openai/gpt-5"),
        calls: &[(GPT, 3)],
        lesson: "an hour later the empty key is still left alone",
    },
    Scene {
        name: "overloaded",
        title: "The model is overloaded, and there is one key: the next model",
        story: "503 with capacity words is nobody's fault. Waiting is no answer.",
        keys: 1,
        script: |upstream| {
            all_well(upstream);
            upstream.script(On::model(GPT), [Step::json(503, BUSY)]);
        },
        acts: &[Act::Ask],
        served: Some("groq/llama"),
        calls: &[(GPT, 1), (LLAMA, 1)],
        lesson: "one call was spent, and no time was slept away",
    },
    Scene {
        name: "silent",
        title: "A provider says nothing at all",
        story: "It takes the request and stays silent. The first byte has 700 ms here.",
        keys: 1,
        script: |upstream| {
            all_well(upstream);
            upstream.script(On::model(GPT), [Step::silent()]);
        },
        acts: &[Act::Ask],
        served: Some("groq/llama"),
        calls: &[(GPT, 1), (LLAMA, 1)],
        lesson: "silence is never retried in place",
    },
    Scene {
        name: "cut",
        title: "The connection breaks before the first word",
        story: "200 OK, a stream begins, and the line goes dead. The caller saw nothing yet.",
        keys: 1,
        script: |upstream| {
            all_well(upstream);
            upstream.script(On::model(GPT), [Step::Answer(Answer::text(["Because air"]).cut_after(0))]);
        },
        acts: &[Act::Ask],
        served: Some("groq/llama"),
        calls: &[(GPT, 1), (LLAMA, 1)],
        lesson: "nothing of the broken answer reached the caller",
    },
    Scene {
        name: "overflow",
        title: "The prompt is too long: told at once, nothing retried",
        story: "No other key would make it shorter. The caller must compact, and learns it now.",
        keys: 2,
        script: |upstream| {
            all_well(upstream);
            upstream.script(On::model(GPT), [Step::json(400, TOO_LONG)]);
        },
        acts: &[Act::Ask],
        served: None,
        calls: &[(GPT, 1), (LLAMA, 0)],
        lesson: "one call in all, and no key was blamed",
    },
    Scene {
        name: "user-pick",
        title: "A user's pick during a failing attempt survives",
        story: "The fallback is being asked when the user picks mistral/large. It fails too.",
        keys: 1,
        script: |upstream| {
            all_well(upstream);
            upstream.script(On::model(GPT), [Step::json(503, BUSY)]);
            let busy = Respond::new(503).header("content-type", "application/json").body(BUSY);
            upstream.script(On::model(LLAMA), [Step::Respond(busy.after(Duration::from_millis(300)))]);
        },
        acts: &[Act::AskAndPick { during: LLAMA, pick: "mistral/large" }, Act::Ask],
        served: Some("mistral/large"),
        calls: &[(GPT, 1), (LLAMA, 1)],
        lesson: "clearing up after the failure did not touch the user's choice",
    },
    Scene {
        name: "all-down",
        title: "Everything is down: the truth, and when to come back",
        story: "Every provider fails. An honest summary beats a guess.",
        keys: 1,
        script: |upstream| {
            upstream.script(On::model(GPT), [limited()]);
            upstream.script(On::model(LLAMA), [Step::json(503, BUSY)]);
            upstream.script(On::model(LARGE), [Step::json(402, UNPAID)]);
        },
        acts: &[Act::Ask],
        served: None,
        calls: &[(GPT, 1), (LLAMA, 1), (LARGE, 1)],
        lesson: "the soonest time at which anything works again is part of the error",
    },
    Scene {
        name: "recovery",
        title: "The first choice recovers: back to it, with one notice",
        story: "OpenAI crashes, the fallback serves. Half a minute later OpenAI is well again.",
        keys: 1,
        script: |upstream| {
            all_well(upstream);
            upstream.script(On::model(GPT), [Step::json(500, CRASHED)]);
        },
        acts: &[
            Act::Ask,
            Act::Ask,
            Act::Change(all_well),
            Act::Pass(Duration::from_secs(31)),
            Act::Ask,
            Act::Ask,
        ],
        served: Some("openai/gpt-5"),
        calls: &[(GPT, 4), (LLAMA, 2)],
        lesson: "one notice when it left, one when it came back, none in between",
    },
];
