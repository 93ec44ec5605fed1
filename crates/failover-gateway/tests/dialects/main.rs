//! The clients' dialects: golden files in both directions, and the adapters of the same vendors as their peers.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "test helpers"
)]

mod chat;
mod hostile;
mod messages;
mod responses;
mod support;

use failover_gateway::dialect::{ModelEntry, ModelsShape, render_models};

// spec: G-1
#[test]
fn models_are_listed_in_the_clients_shape() {
    let mut model = ModelEntry::new("main", "failover");
    model.created = 1_764_490_000;
    let models = [model, ModelEntry::new("openai/large", "openai")];
    for (shape, name) in
        [(ModelsShape::OpenAi, "models_openai"), (ModelsShape::Anthropic, "models_anthropic")]
    {
        insta::assert_snapshot!(name, String::from_utf8(render_models(shape, &models).to_vec()).unwrap());
    }
}
