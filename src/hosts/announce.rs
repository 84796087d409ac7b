//! `podgraft argocd parameters`: announces what an Application may set, as Argo CD's UI reads it.

use podgraft_core::diagnostic::Diagnosed;
use podgraft_core::policy::read::declared;
use serde_json::{Map, Value, json};

use super::fail;
use super::parameters::{PARAMS, POLICIES};
use crate::args;
use crate::diagnostics::Console;
use crate::exit::Exit;
use crate::policies::{checked_offers, choices, offered_files};
use crate::settings::{Caller, complete};
use crate::stdout::print;

/// Prints the announcement: the offered policies, and the parameters that an Application may set with their defaults.
pub fn announce(args: &args::ParametersArgs) -> Exit {
    let run = args::RunArgs {
        policies: args.policies.clone(),
        ..args::RunArgs::default()
    };
    let console = Console::new(&run.output);
    let printed = announcement(args, &run)
        .and_then(|text| print(text.as_bytes()).map_err(|problem| vec![problem]));
    printed.map_or_else(|problems| fail(&problems, console), |()| Exit::Done)
}

fn announcement(args: &args::ParametersArgs, run: &args::RunArgs) -> Diagnosed<String> {
    let run = complete(run, Caller::Host)?;
    let mut files = offered_files(&run.policies.given)?;
    let offered = checked_offers(&args.offered)?;
    let choice: Vec<String> = choices(&offered).collect();
    files.extend(offered);
    let mut announced = Vec::new();
    if !choice.is_empty() {
        announced.push(json!({
            "name": POLICIES, "title": "Policies", "collectionType": "array", "array": [],
            "tooltip": format!(
                "Which of {} to apply in addition to those of the operator", choice.join(", ")),
        }));
    }
    let mut map = Map::new();
    if run.policies.configured.allows_application_config {
        for policy in declared(&files) {
            let params = policy
                .overridable
                .iter()
                .map(|name| format!("{}:{name}", policy.identity));
            map.extend(params.map(|key| (key, Value::String(String::new()))));
        }
    }
    if !map.is_empty() {
        let names: Vec<&str> = map.keys().map(String::as_str).collect();
        let tooltip = format!("POLICY:NAME and a value; available: {}", names.join(", "));
        announced.push(json!({
            "name": PARAMS, "title": "Parameters of the policies", "collectionType": "map", "tooltip": tooltip, "map": {},
        }));
    }
    Ok(serde_json::to_string(&announced).expect("strings and lists are always JSON") + "\n")
}
