//! A check of Signature Version 4 that shares no code with the signer: from the documentation, over ring.

use failover_testkit::upstream::{Answer, Asked, Converse, Dialect, Frame, Request};
use ring::{digest, hmac};

/// Bedrock's dialect, where a request's key is known only if its signature is right.
pub(crate) struct Signed {
    pub(crate) access: &'static str,
    pub(crate) secret: &'static str,
    pub(crate) token: Option<&'static str>,
    pub(crate) region: &'static str,
    pub(crate) service: &'static str,
}

fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or_default();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

fn sha256(bytes: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, bytes).as_ref())
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes()).as_ref().to_vec()
}

/// A path that is escaped already, escaped once more: what every service but S3 wants.
fn escaped_twice(path: &str) -> String {
    let escape = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    path.bytes().map(escape).collect()
}

impl Signed {
    fn verified(&self, request: &Request) -> Option<()> {
        let authorization = request.header("authorization")?.strip_prefix("AWS4-HMAC-SHA256 ")?;
        let field = |name: &str| {
            let mut fields = authorization.split(", ");
            fields.find_map(|field| field.strip_prefix(name)?.strip_prefix('='))
        };
        let date = request.header("x-amz-date")?;
        let day = date.get(..8)?;
        let scope = format!("{day}/{}/{}/aws4_request", self.region, self.service);
        let names = field("SignedHeaders")?;
        let must_be_signed =
            ["host", "x-amz-date"].into_iter().chain(self.token.map(|_| "x-amz-security-token"));
        let mut signed = names.split(';');
        let complete = must_be_signed.clone().all(|name| names.split(';').any(|signed| signed == name));
        let headers: Option<String> = signed
            .try_fold(String::new(), |all, name| Some(format!("{all}{name}:{}\n", request.header(name)?)));
        let canonical = format!(
            "{}\n{}\n\n{}\n{names}\n{}",
            request.method,
            escaped_twice(request.path()),
            headers?,
            sha256(&request.body)
        );
        let to_sign = format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{}", sha256(canonical.as_bytes()));
        let key = [day, self.region, self.service, "aws4_request"]
            .iter()
            .fold(format!("AWS4{}", self.secret).into_bytes(), |key, text| mac(&key, text));
        let right = complete
            && field("Credential")? == format!("{}/{scope}", self.access)
            && request.header("x-amz-security-token") == self.token
            && field("Signature")? == hex(&mac(&key, &to_sign));
        right.then_some(())
    }
}

impl Dialect for Signed {
    fn read(&self, request: &Request) -> Option<Asked> {
        let mut asked = Converse::default().read(request)?;
        asked.key = self.verified(request).map(|()| self.access.to_owned());
        Some(asked)
    }

    fn complete(&self, asked: &Asked, answer: &Answer) -> Vec<u8> {
        Converse::default().complete(asked, answer)
    }

    fn frames(&self, asked: &Asked, answer: &Answer) -> Vec<Frame> {
        Converse::default().frames(asked, answer)
    }

    fn stream_type(&self) -> &'static str {
        Converse::default().stream_type()
    }
}
