//! Providers: whether their addresses answer, whether TLS stands, and whether this machine's clock is theirs.

use super::{Findings, named_providers};
use crate::time;
use failover::Engine;
use failover::config::Loaded;
use failover::provider_openai::facts_for;
use failover::runner::SystemClock;
use failover::types::{Clock, ProviderId, Timestamp};
use failover_http::{Connected, HyperTransport, Transport, TransportError, TransportErrorKind};
use futures_util::future::join_all;
use std::time::Duration;

const AREA: &str = "providers";
/// How long a provider may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// A clock that is off by more makes waits that providers ask for too long or too short.
const SKEW: Duration = Duration::from_secs(30);

/// Asks every provider that the config names for its address, all at once.
pub(super) async fn look(loaded: &Loaded, engine: &Engine, findings: &mut Findings) {
    let transport = match HyperTransport::new() {
        Ok(transport) => transport,
        Err(error) => {
            return findings.problem(AREA, crate::exit::chain(&error), "see what the system says of TLS");
        }
    };
    let asked = named_providers(loaded, engine).into_iter().filter_map(|provider| {
        let url = base_url(loaded, &provider)?;
        let transport = &transport;
        Some(async move {
            let answer = ask(transport, &url).await;
            (provider, url, answer)
        })
    });
    for (provider, url, answer) in join_all(asked).await {
        told(&provider, &url, answer, findings);
    }
}

/// Where a provider is: as the config says, else as is known.
fn base_url(loaded: &Loaded, provider: &ProviderId) -> Option<String> {
    let settings = loaded.config.models.providers.get(provider);
    let written = settings.and_then(|settings| settings.base_url.clone());
    let known = match provider.as_str() {
        "anthropic" => Some("https://api.anthropic.com"),
        "google" => Some("https://generativelanguage.googleapis.com"),
        _ => facts_for(provider).base_url,
    };
    written.or_else(|| known.map(str::to_owned))
}

enum Answer {
    /// A response, whatever its status, and how far its clock is ahead of or behind ours.
    Answered {
        skew: Option<(Duration, bool)>,
    },
    Failed(TransportError),
    BadUrl,
    Silent,
}

async fn ask(transport: &HyperTransport, url: &str) -> Answer {
    let Ok(request) = http::Request::get(url).body(bytes::Bytes::new()) else { return Answer::BadUrl };
    let clock = SystemClock::new();
    let begun = clock.now();
    tokio::select! {
        sent = transport.send(request, Connected::new()) => match sent {
            Ok(response) => {
                let date = response.headers().get(http::header::DATE);
                let date = date.and_then(|date| read_date(date.to_str().ok()?));
                Answer::Answered { skew: date.map(|date| skew(date, begun, clock.now())) }
            }
            Err(error) => Answer::Failed(error),
        },
        () = clock.sleep_until(begun.after(PATIENCE)) => Answer::Silent,
    }
}

/// `Mon, 30 Nov 2026 05:58:59 GMT`.
fn read_date(text: &str) -> Option<Timestamp> {
    let time = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
    u64::try_from(time.as_millisecond()).ok().map(Timestamp::from_millis)
}

/// How far the provider's clock is from ours, and whether ours is behind. It tells whole seconds, and took a while.
fn skew(theirs: Timestamp, begun: Timestamp, ended: Timestamp) -> (Duration, bool) {
    let latest = theirs.after(Duration::from_secs(1));
    if theirs > ended { (theirs.since(ended), true) } else { (begun.since(latest), false) }
}

fn told(provider: &ProviderId, url: &str, answer: Answer, findings: &mut Findings) {
    let host = url.split('/').nth(2).unwrap_or(url);
    let local = host.starts_with("127.") || host.starts_with("localhost") || host.starts_with("[::1]");
    if url.starts_with("http://") && !local {
        let what = format!(
            "{provider} is asked over http at {host}: its key and your prompts can be read on the way"
        );
        findings.warn(AREA, what, "write its address with https");
    }
    match answer {
        Answer::Answered { skew: Some((skew, behind)) } if skew > SKEW => {
            let (off, which) = (time::duration(skew), if behind { "behind" } else { "ahead of" });
            findings.problem(
                AREA,
                format!("this machine's clock is {off} {which} that of {provider}"),
                "set the clock (NTP); until then tokens run out and windows end at the wrong time",
            );
        }
        Answer::Answered { .. } => findings.fine(AREA, format!("{provider} answers at {host}")),
        Answer::BadUrl => {
            findings.problem(AREA, format!("the address of {provider} is none"), "mend its baseUrl");
        }
        Answer::Silent => {
            let what = format!("{provider} did not answer within {} at {host}", time::duration(PATIENCE));
            findings.problem(AREA, what, "see whether the address, a proxy or a firewall stands in the way");
        }
        Answer::Failed(error) => {
            let cause = error.causes.last().map(|cause| format!(" ({})", cause.message)).unwrap_or_default();
            let mend = match error.kind {
                TransportErrorKind::Dns => {
                    "see whether the name is right, and whether this machine resolves names"
                }
                TransportErrorKind::Connect => {
                    "see whether it runs there, and whether a firewall stands in the way"
                }
                TransportErrorKind::Tls => {
                    "its certificate is not one that the Mozilla roots vouch for: see whether a proxy cuts in, or the clock is wrong"
                }
                TransportErrorKind::Broken | TransportErrorKind::Protocol | _ => {
                    "see whether that address is an HTTP API at all"
                }
            };
            findings.problem(AREA, format!("{provider} at {host}: {error}{cause}"), mend);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_case::test_case;

    #[test_case(100_000, 100_000, 100_500, 0, false; "the same second")]
    #[test_case(160_000, 100_000, 100_500, 59_500, true; "ours is behind")]
    #[test_case(100_000, 161_000, 161_500, 60_000, false; "ours is ahead")]
    fn clocks(theirs: u64, begun: u64, ended: u64, off: u64, behind: bool) {
        let at = Timestamp::from_millis;
        assert_eq!(skew(at(theirs), at(begun), at(ended)), (Duration::from_millis(off), behind));
    }

    #[test]
    fn a_date_header_is_read() {
        let date = read_date("Mon, 30 Nov 2026 05:58:59 GMT").unwrap();
        assert_eq!(time::date(date), "2026-11-30T05:58:59Z");
        assert_eq!(read_date("yesterday"), None);
    }
}
