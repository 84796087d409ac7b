//! Assigns the parameters of configurations to the given policies. Reports those that no policy declares, and those
//! that an application may not set.

use super::ConfigParam;
use crate::diagnostic::{Code, Diagnostic};
use crate::policy::params::{DeclaredParams, ParamSetting};
use crate::policy::schema::{did_you_mean, nearest};
use crate::source::Place;

/// Whether the policies of a run come from the configuration that sets the parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PolicySource {
    /// They do: a parameter for another policy is an error.
    #[default]
    WithParams,
    /// They come from elsewhere, such as `-p`: parameters for policies that are not given are ignored.
    Elsewhere,
}

/// The settings for the given policies, and errors. `operator` is the configuration of the platform's operator; the
/// application's settings come behind it, because the last one wins.
pub fn choose(
    operator: &[(PolicySource, ConfigParam)],
    application: &[ConfigParam],
    declared: &[DeclaredParams],
) -> (Vec<ParamSetting>, Vec<Diagnostic>) {
    let (mut settings, mut problems) = (Vec::new(), Vec::new());
    for (given, param) in operator {
        match owner(param, declared) {
            Ok(_) => settings.push(param.setting.clone()),
            Err(UnmatchedParam::Policy(_)) if *given == PolicySource::Elsewhere => {}
            Err(UnmatchedParam::Policy(problem) | UnmatchedParam::Param(problem)) => {
                problems.push(*problem)
            }
        }
    }
    for param in application {
        match owner(param, declared) {
            Ok(policy) if policy.overridable.contains(&param.setting.name) => {
                settings.push(param.setting.clone())
            }
            Ok(policy) => problems.push(not_overridable(param, policy)),
            Err(UnmatchedParam::Policy(problem) | UnmatchedParam::Param(problem)) => {
                problems.push(*problem)
            }
        }
    }
    // Each parameter of an unknown policy has the problem of the policy.
    problems.dedup();
    (settings, problems)
}

/// Why a parameter has no owner: its policy is not given, or does not declare it.
enum UnmatchedParam {
    Policy(Box<Diagnostic>),
    Param(Box<Diagnostic>),
}

fn owner<'d>(
    param: &ConfigParam,
    declared: &'d [DeclaredParams],
) -> Result<&'d DeclaredParams, UnmatchedParam> {
    let ParamSetting { policy, name, .. } = &param.setting;
    let scope = declared.iter().filter(|known| match policy {
        Some(policy) => *policy == known.identity,
        None => !known.is_resource,
    });
    let owners = scope.clone().filter(|known| known.names.contains(name));
    let owners: Vec<&DeclaredParams> = owners.collect();
    match owners[..] {
        [] => {}
        [owner] => return Ok(owner),
        _ => return Err(UnmatchedParam::Param(Box::new(ambiguous(param, &owners)))),
    }
    let policy = policy.clone().unwrap_or_default();
    if scope.clone().next().is_none() {
        let identities: Vec<&str> = declared.iter().map(|known| &*known.identity).collect();
        let message = format!("no given policy is called `{policy}`");
        let code = Code::UnknownPolicy;
        let at = param.policy_at.as_ref().unwrap_or(&param.at);
        let problem = unknown_name(at, code, message, &policy, &identities);
        return Err(UnmatchedParam::Policy(problem));
    }
    let names: Vec<&str> = scope
        .flat_map(|known| known.names.iter().map(String::as_str))
        .collect();
    let message = match policy.is_empty() {
        true => format!("no given policy has a parameter `{name}`"),
        false => format!("the policy `{policy}` has no parameter `{name}`"),
    };
    let problem = unknown_name(&param.at, Code::UnknownParam, message, name, &names);
    Err(UnmatchedParam::Param(problem))
}

/// The error for a parameter that several policies declare.
fn ambiguous(param: &ConfigParam, owners: &[&DeclaredParams]) -> Diagnostic {
    let name = &param.setting.name;
    let names = owners.iter();
    let names = names.map(|owner| format!("`{}:{name}`", owner.identity));
    let names: Vec<String> = names.collect();
    let message = format!("several policies have a parameter `{name}`");
    let problem = Diagnostic::error(Code::UnknownParam, message);
    let problem = problem.at(param.at.clone(), "here");
    problem.help(format!("say which: {}", names.join(" or ")))
}

fn unknown_name(
    at: &Place,
    code: Code,
    message: String,
    name: &str,
    known: &[&str],
) -> Box<Diagnostic> {
    let problem = Diagnostic::error(code, message).at(at.clone(), "here");
    Box::new(match nearest(name, known.iter().copied()) {
        Some(near) => problem.help(did_you_mean(near)),
        None if known.is_empty() => problem,
        None => problem.help(format!("there are {}", known.join(", "))),
    })
}

fn not_overridable(param: &ConfigParam, policy: &DeclaredParams) -> Diagnostic {
    let message = format!(
        "the parameter `{}` of `{}` is not an application's to set",
        param.setting.name, policy.identity
    );
    let help = match policy.overridable.as_slice() {
        [] => "the policy marks no parameter `overridable`".to_owned(),
        names => format!("the policy lets an application set {}", names.join(", ")),
    };
    Diagnostic::error(Code::BadParam, message)
        .at(param.at.clone(), "here")
        .help(help)
}
