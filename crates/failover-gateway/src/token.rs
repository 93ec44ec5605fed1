//! Tokens for callers: made here, kept by them, known to the config by their hash only.

use crate::settings::hash;
use failover::types::Secret;
use ring::rand::{SecureRandom, SystemRandom};
use std::fmt::Write as _;

/// Bytes of randomness in a token.
const RANDOM_BYTES: usize = 32;

/// The system gives no random numbers. Nobody's fault but the machine's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this machine gives no random numbers, so no token can be made")]
#[non_exhaustive]
pub struct NoRandomness;

/// A token that was just made.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NewToken {
    /// What its caller sends.
    pub token: Secret,
    /// What the config holds, as `sha256`.
    pub sha256: String,
}

impl NewToken {
    /// Makes one.
    ///
    /// # Errors
    ///
    /// [`NoRandomness`].
    pub fn make() -> Result<Self, NoRandomness> {
        let mut random = [0; RANDOM_BYTES];
        SystemRandom::new().fill(&mut random).map_err(|_| NoRandomness)?;
        let token = format!("fo-{}", hex(&random));
        let sha256 = hex(&hash(token.as_bytes()));
        Ok(Self { token: Secret::new(token), sha256 })
    }
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: G-7
    #[test]
    fn a_token_is_new_each_time_and_its_hash_is_what_config_takes() {
        let (one, two) = (NewToken::make().unwrap(), NewToken::make().unwrap());
        assert_ne!(one.token.expose(), two.token.expose());
        let text = format!("{{gateway: {{tokens: [{{name: 'a', sha256: '{}'}}]}}}}", one.sha256);
        let config = failover::config::load_text("x", &text).unwrap().config;
        let settings = crate::settings::Settings::new(&config);
        let token = one.token.expose().as_bytes();
        assert!(crate::settings::holder(&settings.callers, token).is_some());
        assert!(!format!("{one:?}").contains(one.token.expose()));
    }
}
