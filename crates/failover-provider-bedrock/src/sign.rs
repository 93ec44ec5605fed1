//! Signature Version 4.

use crate::keys::Keys;
use aws_credential_types::Credentials;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign as signature};
use aws_sigv4::sign::v4;
use bytes::Bytes;
use failover_types::Secret;
use http::Request;
use std::time::SystemTime;

/// Puts the signature's headers on a request.
///
/// Errors say what of the request cannot be signed, and never quote it.
pub(crate) fn sign(
    request: &mut Request<Bytes>,
    keys: &Keys,
    region: &str,
    service: &str,
    now: SystemTime,
) -> Result<(), &'static str> {
    let session = keys.session.as_ref().map(|token| Secret::expose(token).to_owned());
    let credentials = Credentials::new(&keys.access, keys.secret.expose(), session, None, "failover");
    let identity = credentials.into();
    let params = v4::SigningParams::builder()
        .identity(&identity)
        .region(region)
        .name(service)
        .time(now)
        .settings(SigningSettings::default())
        .build()
        .map_err(|_| "the parameters of the signature are incomplete")?
        .into();
    let headers: Option<Vec<(&str, &str)>> =
        request.headers().iter().map(|(name, value)| Some((name.as_str(), value.to_str().ok()?))).collect();
    let headers = headers.ok_or("a header has characters that cannot be signed")?;
    let signable = SignableRequest::new(
        request.method().as_str(),
        request.uri().to_string(),
        headers.into_iter(),
        SignableBody::Bytes(request.body()),
    );
    let signed = signable.and_then(|signable| signature(signable, &params));
    let (instructions, _) = signed.map_err(|_| "the request cannot be signed")?.into_parts();
    instructions.apply_to_request_http1x(request);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::Login;
    use std::time::Duration;
    use test_case::test_case;

    /// Of the published test suite for Signature Version 4: its requests are dated 2015-08-30T12:36:00Z.
    const WHEN: Duration = Duration::from_mins(24_015_636);
    const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
    const TOKEN: &str = "6e86291e8372ff2a2260956d9b8aae1d763fbf315fa00fa31553b73ebf194267";

    // spec: P-7
    #[test_case("GET", "/", None, "host;x-amz-date, Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"; "get vanilla")]
    #[test_case("POST", "/", None, "host;x-amz-date, Signature=5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"; "post vanilla")]
    #[test_case("GET", "/", Some(TOKEN), "host;x-amz-date;x-amz-security-token, Signature=07ec1639c89043aa0e3e2de82b96708f198cceab042d4a97044c66dd9f74e7f8"; "session token")]
    fn published_vectors(method: &str, path: &str, token: Option<&str>, expected: &str) {
        let secret = format!("AKIDEXAMPLE:{SECRET}");
        // The suite's key id is older than today's prefixes.
        let json = format!(
            r#"{{"AccessKeyId":"AKIDEXAMPLE","SecretAccessKey":"{SECRET}","SessionToken":"{}"}}"#,
            token.unwrap_or_default()
        );
        let Ok(Login::Keys(keys)) = Login::read(&json) else { panic!("{secret}") };
        let mut request = Request::builder()
            .method(method)
            .uri(format!("https://example.amazonaws.com{path}"))
            .body(Bytes::new())
            .unwrap();
        sign(&mut request, &keys, "us-east-1", "service", SystemTime::UNIX_EPOCH + WHEN).unwrap();
        let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
        let start =
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=";
        assert_eq!(header("authorization"), Some(format!("{start}{expected}").as_str()));
        assert_eq!((header("x-amz-date"), header("x-amz-security-token")), (Some("20150830T123600Z"), token));
    }
}
