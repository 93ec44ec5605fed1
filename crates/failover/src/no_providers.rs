//! Providers of a build without any adapter: nothing is known of them.

use crate::EngineError;
use failover_config::Config;
use failover_credentials::Environment;
use failover_provider::ProviderAdapter;
use failover_types::ProviderId;
use std::sync::Arc;

/// Whether a provider of this name is known to want a key.
pub(crate) fn wants_key(_: &ProviderId) -> bool {
    false
}

/// The variables in which a provider's key is kept by custom.
pub(crate) fn variables(id: &ProviderId) -> Vec<String> {
    vec![crate::keys::variable(id)]
}

/// Makes no adapters.
pub(crate) struct Providers;

impl Providers {
    pub(crate) fn new(_: &Config, _: &Environment) -> Self {
        Self
    }

    #[expect(clippy::unnecessary_wraps, clippy::unused_self, reason = "the same signature as with adapters")]
    pub(crate) fn adapter(
        &mut self,
        _: &ProviderId,
    ) -> Result<Option<Arc<dyn ProviderAdapter>>, EngineError> {
        Ok(None)
    }
}
