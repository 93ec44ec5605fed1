//! The config file: whether it can be read, and what in it is seldom meant.

use super::{Findings, loaded_path};
use crate::exit::{Failure, chain};
use failover::config::{Diagnostics, LoadError, Loaded};
use failover::types::AgentId;
use std::path::Path;

const AREA: &str = "config";

/// Reads the config and says what is wrong with it; `None` where nothing can be made of it.
pub(super) fn look(named: Option<&Path>, findings: &mut Findings) -> Option<Loaded> {
    let path = match loaded_path(named) {
        Ok(path) => path,
        Err(Failure { message, hint, .. }) => {
            findings.problem(AREA, message, hint.unwrap_or_default());
            return None;
        }
    };
    let loaded = match failover::config::load(&path) {
        Ok(loaded) => loaded,
        Err(LoadError::Invalid(faults)) => {
            tell(&faults, findings);
            return None;
        }
        Err(error) => {
            let mend = "write one, or name another with --config; `failover config schema` tells what may stand in it";
            findings.problem(AREA, chain(&error), mend);
            return None;
        }
    };
    findings.fine(AREA, format!("{} can be read", path.display()));
    if let Err(faults) = failover::check(&loaded) {
        // No engine can be made of it.
        tell(&faults, findings);
        return None;
    }
    for agent in agents(&loaded) {
        models(&loaded, &agent, findings);
    }
    Some(loaded)
}

/// The default agent, and every one that the config lists.
fn agents(loaded: &Loaded) -> Vec<AgentId> {
    let listed = loaded.config.agents.list.iter().filter_map(|agent| AgentId::new(&agent.id).ok());
    let mut agents: Vec<AgentId> = listed.collect();
    if agents.is_empty() {
        agents.push(AgentId::main());
    }
    agents
}

fn tell(faults: &Diagnostics, findings: &mut Findings) {
    for fault in &faults.faults {
        let what = format!("{}:{}:{}: {}", fault.file, fault.line, fault.column, fault.message);
        findings.problem(AREA, what, fault.hint.as_str());
    }
}

/// The chain of an agent: whether there is one, what of it cannot be read, and whether one is dropped (H-12).
fn models(loaded: &Loaded, agent: &AgentId, findings: &mut Findings) {
    let chain_config = match failover::chain_config(loaded, agent) {
        Ok(chain_config) => chain_config,
        Err(error) => return findings.problem(AREA, chain(&error), "mend the value that it names"),
    };
    match chain_config.selection() {
        Ok(selection) => {
            let resolved = failover::chain::resolve(&selection, &chain_config, None);
            for left_out in resolved.unresolved() {
                let mend = "write it as provider/model, or give the alias that it names to a model";
                findings.problem(AREA, format!("a model is left out of the chain: {left_out}"), mend);
            }
            let models = resolved.candidates().len();
            if models == 1 && chain_config.dropped_chain().is_none() {
                let what = format!("{agent} has one model and no fallback: {}", selection.model());
                findings.warn(AREA, what, "list others under agents.defaults.model.fallbacks");
            } else {
                findings
                    .fine(AREA, format!("{agent} begins with {}, {models} in the chain", selection.model()));
            }
        }
        Err(error) => findings.problem(AREA, chain(&error), "name one, or select a model for each session"),
    }
    if let Some(dropped) = chain_config.dropped_chain() {
        let place = dropped.primary.origin.as_ref().map(|origin| format!(" at {origin}")).unwrap_or_default();
        let list: Vec<&str> = dropped.dropped.iter().map(|reference| reference.text.as_str()).collect();
        let what = format!(
            "the plain model string of {agent}{place} drops the fallbacks of the defaults ({})",
            list.join(", ")
        );
        let mend = format!(
            "write {{ primary: \"{0}\", fallbacks: […] }}; where none is meant, {{ primary: \"{0}\", fallbacks: [] }}",
            dropped.primary.text
        );
        findings.warn(AREA, what, mend);
    }
}
