//! Who is let in: names, origins, tokens.

use crate::dialect::{ErrorBody, ErrorKind};
use crate::settings::{Caller, Settings, holder};
use http::header::{AUTHORIZATION, HOST, HeaderName, ORIGIN};
use http::{HeaderMap, HeaderValue, Method, Uri};
use std::net::IpAddr;

/// Where a browser says that a page's request comes from.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The name in an authority, without port and brackets.
fn host_of(authority: &str) -> &str {
    let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let host = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => match authority.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) && !host.contains(':') => host,
            _ => authority,
        },
    };
    host.trim_end_matches('.')
}

fn is_local(host: &str) -> bool {
    let name = host.rsplit('.').next().unwrap_or(host);
    name.eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
}

fn authority<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> Option<&'a str> {
    uri.authority().map(http::uri::Authority::as_str).or_else(|| headers.get(HOST)?.to_str().ok())
}

/// Refuses requests that a page in a browser of this machine makes behind its user's back: by a name that was made
/// to lead here (DNS rebinding), or to an origin that is not its own. Programs send no origin.
pub(crate) fn check_browser(
    settings: &Settings,
    loopback: bool,
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<(), ErrorBody> {
    let authority = authority(uri, headers);
    if loopback && let Some(authority) = authority {
        let host = host_of(authority);
        if !is_local(host) && !settings.hosts.contains(&host.to_ascii_lowercase()) {
            let text = format!(
                "this server answers to localhost, and was called {host:?}; list the name in gateway.allowedHosts if it is right"
            );
            return Err(ErrorBody::new(ErrorKind::Permission, text).with_code("wrong_host"));
        }
    }
    if matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS) {
        return Ok(());
    }
    let refuse = |text: &str| Err(ErrorBody::new(ErrorKind::Permission, text).with_code("cross_origin"));
    match headers.get(ORIGIN) {
        None => {
            let site = headers.get(&FETCH_SITE).and_then(|value| value.to_str().ok());
            if matches!(site, Some("cross-site" | "same-site")) {
                return refuse("a page of another site may not post here");
            }
        }
        Some(origin) => {
            let origin = origin.to_str().unwrap_or_default().to_ascii_lowercase();
            let own = origin.split_once("://").is_some_and(|(_, rest)| {
                authority.is_some_and(|authority| authority.eq_ignore_ascii_case(rest))
            });
            if !own && !settings.origins.contains(&origin) {
                return refuse(
                    "a page of another origin may not post here; list it in gateway.allowedOrigins if it may",
                );
            }
        }
    }
    Ok(())
}

/// The origin to allow to read the answer, where one is listed.
pub(crate) fn allowed_origin<'a>(settings: &Settings, headers: &'a HeaderMap) -> Option<&'a HeaderValue> {
    let origin = headers.get(ORIGIN)?;
    let text = origin.to_str().ok()?.to_ascii_lowercase();
    settings.origins.contains(&text).then_some(origin)
}

/// The token of a request, in any of the headers that clients put it into.
fn token(headers: &HeaderMap) -> Option<&[u8]> {
    if let Some(value) = headers.get(AUTHORIZATION) {
        let value = value.as_bytes();
        let (scheme, token) = value.split_at_checked(7)?;
        return scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii());
    }
    ["x-api-key", "api-key"].iter().find_map(|name| headers.get(*name)).map(HeaderValue::as_bytes)
}

/// Who asks. Without tokens in the config everybody on this machine may, and nobody is anybody.
pub(crate) fn caller<'a>(
    settings: &'a Settings,
    loopback: bool,
    headers: &HeaderMap,
) -> Result<Option<&'a Caller>, ErrorBody> {
    if settings.callers.is_empty() && loopback {
        return Ok(None);
    }
    known(&settings.callers, headers).map(Some)
}

/// Who wants to see or steer the server.
pub(crate) fn admin<'a>(settings: &'a Settings, headers: &HeaderMap) -> Result<&'a Caller, ErrorBody> {
    known(&settings.admins, headers)
}

fn known<'a>(callers: &'a [Caller], headers: &HeaderMap) -> Result<&'a Caller, ErrorBody> {
    let found = token(headers).and_then(|token| holder(callers, token));
    found.ok_or_else(|| {
        let text = "a token of this server is needed: `Authorization: Bearer …`";
        ErrorBody::new(ErrorKind::Authentication, text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use failover::config::load_text;
    use test_case::test_case;

    fn settings(text: &str) -> Settings {
        Settings::new(&load_text("x", text).unwrap().config)
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap())).collect()
    }

    // spec: G-7
    #[test_case("localhost:8787", true)]
    #[test_case("LOCALHOST", true)]
    #[test_case("app.localhost:1", true; "a name below localhost")]
    #[test_case("127.0.0.1:8787", true)]
    #[test_case("127.9.9.9", true)]
    #[test_case("[::1]:8787", true)]
    #[test_case("[::ffff:127.0.0.1]:1", true)]
    #[test_case("box.internal", true; "a listed name")]
    #[test_case("evil.example:8787", false)]
    #[test_case("localhost.evil.example", false)]
    #[test_case("127.0.0.1.evil.example", false)]
    #[test_case("192.168.0.1", false)]
    #[test_case("localhost@evil.example", false)]
    fn names_on_loopback(host: &str, right: bool) {
        let settings = settings("{gateway: {allowedHosts: ['Box.internal']}}");
        let uri = Uri::from_static("/v1/models");
        let checked = check_browser(&settings, true, &Method::GET, &uri, &headers(&[("host", host)]));
        assert_eq!(checked.is_ok(), right, "{checked:?}");
        assert!(check_browser(&settings, false, &Method::GET, &uri, &headers(&[("host", host)])).is_ok());
    }

    // spec: G-7
    #[test_case(&[], true; "a program")]
    #[test_case(&[("origin", "http://localhost:8787")], true; "our own page")]
    #[test_case(&[("origin", "https://app.example")], true; "a listed page")]
    #[test_case(&[("origin", "http://localhost:9999")], false; "another page of this machine")]
    #[test_case(&[("origin", "https://evil.example")], false)]
    #[test_case(&[("origin", "null")], false)]
    #[test_case(&[("sec-fetch-site", "cross-site")], false; "a form")]
    #[test_case(&[("sec-fetch-site", "same-origin")], true; "a form of ours")]
    fn posts_of_pages(extra: &[(&'static str, &str)], right: bool) {
        let settings = settings("{gateway: {allowedOrigins: ['https://app.example']}}");
        let mut all = headers(extra);
        all.insert("host", "localhost:8787".parse().unwrap());
        let uri = Uri::from_static("/v1/chat/completions");
        assert_eq!(check_browser(&settings, true, &Method::POST, &uri, &all).is_ok(), right);
    }

    // spec: G-7
    #[test]
    fn beyond_loopback_nobody_is_let_in_without_a_token() {
        let open = settings("{}");
        assert!(caller(&open, true, &headers(&[])).unwrap().is_none());
        assert!(caller(&open, false, &headers(&[])).is_err());
        assert!(admin(&open, &headers(&[])).is_err());
        let mut closed = open;
        closed.callers.push(Caller::of("app", "fo-good"));
        for good in [
            ("authorization", "Bearer fo-good"),
            ("authorization", "bearer fo-good"),
            ("x-api-key", "fo-good"),
        ] {
            assert_eq!(&*caller(&closed, true, &headers(&[good])).unwrap().unwrap().name, "app");
        }
        for bad in [("authorization", "Bearer fo-bad"), ("authorization", "fo-good"), ("x-api-key", "")] {
            assert!(caller(&closed, true, &headers(&[bad])).is_err());
        }
        assert!(admin(&closed, &headers(&[("x-api-key", "fo-good")])).is_err(), "a caller is no admin");
    }
}
