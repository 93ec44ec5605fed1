//! The scenarios that ship, by name.

/// `("name", text)`.
macro_rules! bundled {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../../fixtures/scenarios/", $name, ".json")))),*]
    };
}

/// In alphabetical order; a test compares the list with the directory.
pub(super) const BUNDLED: &[(&str, &str)] = bundled![
    "abort-is-raised",
    "all-of-the-chain",
    "attempts-are-bounded",
    "auth-skips-provider",
    "billing-probed-slowly",
    "burst-on-a-good-key",
    "burst-on-a-well-key",
    "cleared-by-hand",
    "committed",
    "committed-replay-safe",
    "dead-credential-crowd",
    "deadline-share-fails-twice",
    "deadline-shared-by-all",
    "failed-fallback-rolled-back",
    "first-answers",
    "format-repaired",
    "format-returned",
    "host-compacts",
    "killed-in-the-middle",
    "late-failure",
    "live-switch-jumps",
    "live-switch-to-current",
    "long-hint-moves-on",
    "lost-session-repaired",
    "model-scoped-limit",
    "next-model",
    "origin-probe-fails",
    "overflow-chain",
    "overflow-returned",
    "paused-profile",
    "probe-near-the-end",
    "provider-outage",
    "rate-limit-widens",
    "recovery-one-goes-first",
    "refusal-chain",
    "request-too-large-for-quota",
    "reset-clears-override",
    "retry-in-place-crash",
    "retry-in-place-hint",
    "rotation-auth",
    "rotation-rate-limit",
    "session-moves-and-returns",
    "sibling-answers",
    "sibling-once-per-run",
    "silent-provider",
    "subscription-reset",
    "turn-local",
    "two-runs-one-session",
    "user-choice-survives",
    "user-pin-strict",
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn every_scenario_ships() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/scenarios");
        let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
        let json = files.filter(|file| file.extension().is_some_and(|end| end == "json"));
        let mut names: Vec<String> =
            json.map(|file| file.file_stem().unwrap().to_string_lossy().into_owned()).collect();
        names.sort();
        let shipped: Vec<&str> = BUNDLED.iter().map(|(name, _)| *name).collect();
        assert_eq!(shipped, names);
    }
}
