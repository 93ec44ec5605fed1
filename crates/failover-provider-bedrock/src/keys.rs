//! What the secret of a credential is: a bearer token, or a pair of keys to sign with.

use failover_types::Secret;
use serde::Deserialize;

/// How to log in.
pub(crate) enum Login {
    /// Sent as it is.
    Bearer(Secret),
    /// Never sent: requests are signed with them.
    Keys(Keys),
}

/// Keys of an identity of AWS.
pub(crate) struct Keys {
    /// No secret: it is sent with each request.
    pub(crate) access: String,
    pub(crate) secret: Secret,
    /// Of temporary keys.
    pub(crate) session: Option<Secret>,
}

/// A secret that looks like keys and is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the credential is neither an API key nor AWS keys: give ACCESS_KEY_ID:SECRET_ACCESS_KEY[:SESSION_TOKEN], \
     or a JSON object with AccessKeyId, SecretAccessKey and SessionToken"
)]
pub(crate) struct NoLogin;

/// What credential processes print.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Exported {
    access_key_id: String,
    secret_access_key: String,
    #[serde(default)]
    session_token: Option<String>,
}

impl Login {
    /// Reads a secret.
    pub(crate) fn read(secret: &str) -> Result<Self, NoLogin> {
        let secret = secret.trim();
        if secret.starts_with('{') {
            let exported: Exported = serde_json::from_str(secret).map_err(|_| NoLogin)?;
            return Keys::new(
                &exported.access_key_id,
                &exported.secret_access_key,
                exported.session_token.as_deref(),
            )
            .map(Login::Keys);
        }
        // Access key ids of users and of roles begin like this (IAM user guide, "IAM identifiers"); API keys do not.
        if !["AKIA", "ASIA"].iter().any(|prefix| secret.starts_with(prefix)) {
            return Ok(Self::Bearer(Secret::new(secret)));
        }
        let (access, rest) = secret.split_once(':').ok_or(NoLogin)?;
        let (secret, session) =
            rest.split_once(':').map_or((rest, None), |(secret, token)| (secret, Some(token)));
        Keys::new(access, secret, session).map(Login::Keys)
    }

    /// Everything in it that must not come back.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = Secret> {
        let (secret, session) = match self {
            Self::Bearer(token) => (token, None),
            Self::Keys(keys) => (&keys.secret, keys.session.as_ref()),
        };
        [secret].into_iter().chain(session).cloned()
    }
}

impl Keys {
    fn new(access: &str, secret: &str, session: Option<&str>) -> Result<Self, NoLogin> {
        if access.is_empty() || secret.is_empty() {
            return Err(NoLogin);
        }
        let session = session.filter(|token| !token.is_empty()).map(Secret::new);
        Ok(Self { access: access.to_owned(), secret: Secret::new(secret), session })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_case::test_case;

    fn described(login: &Login) -> (Option<&str>, &str, Option<&str>) {
        match login {
            Login::Bearer(token) => (None, token.expose(), None),
            Login::Keys(keys) => {
                (Some(&keys.access), keys.secret.expose(), keys.session.as_ref().map(Secret::expose))
            }
        }
    }

    #[test_case("ABSKQmVkcm9jaw==", None, "ABSKQmVkcm9jaw==", None; "api key")]
    #[test_case("AKIAX:s/e+c", Some("AKIAX"), "s/e+c", None; "pair")]
    #[test_case("ASIAX:sec:tok:en", Some("ASIAX"), "sec", Some("tok:en"); "temporary")]
    #[test_case(r#"{"Version":1,"AccessKeyId":"ASIAX","SecretAccessKey":"sec","SessionToken":"tok"}"#, Some("ASIAX"), "sec", Some("tok"); "exported")]
    fn logins(text: &str, access: Option<&str>, secret: &str, session: Option<&str>) {
        let login = Login::read(text).unwrap();
        assert_eq!(described(&login), (access, secret, session));
        let secrets: Vec<Secret> = login.secrets().collect();
        assert!(secrets.iter().any(|known| known.expose() == secret));
        assert_eq!(secrets.len(), 1 + usize::from(session.is_some()));
    }

    #[test_case("AKIAX"; "half a pair")]
    #[test_case("AKIAX:"; "no secret")]
    #[test_case("{\"AccessKeyId\":\"A\"}"; "half an object")]
    fn what_is_none_is_refused_without_being_quoted(text: &str) {
        let error = Login::read(text).err().unwrap().to_string();
        assert!(!error.contains(text), "{error}");
    }
}
