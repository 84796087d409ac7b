//! Assigns the parameters of configurations to the given policies. Reports those that no policy declares, and those
//! that an application may not set.

use super::ConfigParam;
use crate::diagnostic::{Code, Diagnostic};
use crate::policy::params::{self, DeclaredParams, ParamSetting};

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
            Err(problem)
                if problem.code == Code::UnknownPolicy && *given == PolicySource::Elsewhere => {}
            Err(problem) => problems.push(problem),
        }
    }
    for param in application {
        match owner(param, declared) {
            Ok(policy) if policy.overridable.contains(&param.setting.name) => {
                settings.push(param.setting.clone())
            }
            Ok(policy) => problems.push(not_overridable(param, policy)),
            Err(problem) => problems.push(problem),
        }
    }
    // Each parameter of an unknown policy has the problem of the policy.
    problems.dedup();
    (settings, problems)
}

/// The policy of a parameter. Problems are at its place in the configuration.
fn owner<'d>(
    param: &ConfigParam,
    declared: &'d [DeclaredParams],
) -> Result<&'d DeclaredParams, Diagnostic> {
    let found = params::owner(&param.setting, declared);
    found.map(|at| &declared[at]).map_err(|problem| {
        let at = match problem.code {
            Code::UnknownPolicy => param.policy_at.as_ref().unwrap_or(&param.at),
            _ => &param.at,
        };
        problem.at(at.clone(), "here")
    })
}

fn not_overridable(param: &ConfigParam, policy: &DeclaredParams) -> Diagnostic {
    let message = format!(
        "an application cannot set the parameter `{}` of `{}`",
        param.setting.name, policy.identity
    );
    let help = match policy.overridable.as_slice() {
        [] => "the policy marks no parameter as `overridable`".to_owned(),
        names => format!("an application can set {}", names.join(", ")),
    };
    Diagnostic::error(Code::BadParam, message)
        .at(param.at.clone(), "here")
        .help(help)
}
