//! Parameters: assigns `--param` settings to the policies that declare them, and computes the values.

use regex_lite::Regex;
use std::collections::BTreeSet;
use std::fmt;

use super::conversion::ConversionContext;
use super::document::Document;
use super::native::types::Param;
use super::schema::{did_you_mean, meant, nearest};
use super::template::ParamValues;
use crate::diagnostic::{Code, Diagnostic};
use crate::mask;
use crate::source::Place;
use crate::yaml::value::Path;

/// One `--param [POLICY:]name=value`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParamSetting {
    /// The policy's identity, if stated.
    pub policy: Option<String>,
    /// The name of the parameter.
    pub name: String,
    /// The value, always a text.
    pub value: String,
    /// The place of the value in a configuration; `None` for a flag.
    pub at: Option<Place>,
}

impl fmt::Display for ParamSetting {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(policy) = &self.policy {
            write!(formatter, "{policy}:")?;
        }
        write!(formatter, "{}={}", self.name, self.value)
    }
}

/// A policy and the parameters that it declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclaredParams {
    /// The policy's identity.
    pub identity: String,
    /// The names, in the policy's order.
    pub names: Vec<String>,
    /// Names of parameters that an application's own configuration may set.
    pub overridable: Vec<String>,
    /// A resource of a policy with `source`. Its parameters are those of this policy.
    pub is_resource: bool,
    /// A policy with `source`. Its resources are applied in its stead.
    pub is_for_resources: bool,
}

/// The settings for each declared policy, in the order of `declared`, and errors for settings that match no policy, or
/// several.
pub(crate) fn assign<'s>(
    settings: &'s [ParamSetting],
    declared: &[DeclaredParams],
) -> (Vec<Vec<&'s ParamSetting>>, Vec<Diagnostic>) {
    let mut assigned = vec![Vec::new(); declared.len()];
    let mut problems = Vec::new();
    for setting in settings {
        match owner(setting, declared) {
            Ok(at) => assigned[at].push(setting),
            Err(problem) => problems.push(match &setting.at {
                Some(at) => problem.at(at.clone(), "here"),
                None => problem,
            }),
        }
    }
    (assigned, problems)
}

/// The one policy that declares the parameter of a setting: its index in `declared`. The problems have no place. Their
/// code is [`Code::UnknownPolicy`] if the policy of the setting is not given.
pub(crate) fn owner(
    setting: &ParamSetting,
    declared: &[DeclaredParams],
) -> Result<usize, Diagnostic> {
    let ParamSetting { policy, name, .. } = setting;
    // A parameter without a policy is meant for the policy, not for each of its resources.
    let is_scoped_to = |at: &usize| match policy {
        Some(policy) => *policy == declared[*at].identity,
        None => !declared[*at].is_resource,
    };
    let scope: Vec<usize> = (0..declared.len()).filter(is_scoped_to).collect();
    if let (Some(policy), []) = (policy, &scope[..]) {
        return Err(unknown_policy(policy, declared));
    }
    let declares = |at: &usize| declared[*at].names.contains(name);
    let owners: Vec<usize> = scope.iter().copied().filter(declares).collect();
    let policies = |indexes: Vec<usize>| indexes.into_iter().map(|at| &declared[at]);
    match owners[..] {
        [only] => Ok(only),
        [] => Err(unknown_param(name, policy.as_deref(), policies(scope))),
        _ => Err(ambiguous(name, policies(owners))),
    }
}

/// The error for a parameter that several policies declare.
fn ambiguous<'d>(name: &str, owners: impl Iterator<Item = &'d DeclaredParams>) -> Diagnostic {
    let settings = owners.map(|owner| format!("`{}:{name}=...`", owner.identity));
    let settings: Vec<String> = settings.collect();
    let message = format!("several policies have a parameter `{name}`");
    let problem = Diagnostic::error(Code::UnknownParam, message);
    problem.help(format!("specify the policy: {}", settings.join(" or ")))
}

fn unknown_policy(policy: &str, declared: &[DeclaredParams]) -> Diagnostic {
    let names = declared.iter().map(|declared| declared.identity.as_str());
    let message = format!("no given policy is named `{policy}`");
    let help = meant(policy, names, "given policies:");
    Diagnostic::error(Code::UnknownPolicy, message).help(help)
}

fn unknown_param<'d>(
    name: &str,
    policy: Option<&str>,
    scope: impl Iterator<Item = &'d DeclaredParams>,
) -> Diagnostic {
    let names = scope.flat_map(|declared| declared.names.iter().map(String::as_str));
    let names: BTreeSet<&str> = names.collect();
    let names: Vec<&str> = names.into_iter().collect();
    let help = match nearest(name, names.iter().copied()) {
        Some(near) => did_you_mean(near),
        None if names.is_empty() => "the policies declare no parameters".to_owned(),
        None => format!("valid parameters: {}", names.join(", ")),
    };
    let message = match policy {
        Some(policy) => format!("the policy `{policy}` has no parameter `{name}`"),
        None => format!("no given policy has a parameter `{name}`"),
    };
    Diagnostic::error(Code::UnknownParam, message).help(help)
}

/// The values of a policy's parameters: the last setting, or else the default. Values are checked against `pattern` and
/// `enum`.
pub fn values(
    document: &Document<'_>,
    declared: &[Param],
    given: &ConversionContext<'_>,
    problems: &mut Vec<Diagnostic>,
) -> ParamValues {
    let list = Path::of(&["spec", "params"]);
    let mut params = ParamValues::new();
    for (at, param) in declared.iter().enumerate() {
        let mut settings = given.settings.iter().rev();
        let declared = DeclaredParam {
            document,
            param,
            path: list.index(at),
            setting: settings.find(|setting| setting.name == param.name),
        };
        problems.extend(declared.name_errors(&params));
        let pattern = declared.pattern().unwrap_or_else(|problem| {
            problems.push(problem);
            None
        });
        let value = declared.value();
        match value {
            Some(value) => problems.extend(declared.check_value(value, pattern).err()),
            None if param.required && !given.reading.params_stay_open => {
                problems.push(declared.missing());
            }
            None => {}
        }
        params.insert(param.name.clone(), value.map(str::to_owned));
    }
    params
}

/// Whether a text is an identifier of CEL, so that expressions can use it as a name.
pub fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    let is_start = |char: char| char.is_ascii_alphabetic() || char == '_';
    chars.next().is_some_and(is_start)
        && chars.all(|char| char.is_ascii_alphanumeric() || char == '_')
}

/// A parameter where its policy declares it, with the setting of its value, if there is one.
struct DeclaredParam<'p, 't> {
    document: &'p Document<'t>,
    param: &'p Param,
    path: Path,
    setting: Option<&'p &'p ParamSetting>,
}

impl DeclaredParam<'_, '_> {
    fn value(&self) -> Option<&str> {
        // As written, because a default like `1.10` must not become the number 1.1.
        let default = || self.document.written(&self.path.key("default"));
        let default = self.param.default.as_ref().and_then(|_| default());
        let set = self.setting.map(|setting| setting.value.as_str());
        set.or(default)
    }

    fn error(&self, code: Code, key: &str, message: String) -> Diagnostic {
        self.document.error(code, &self.path.key(key), message)
    }

    fn name_errors(&self, earlier: &ParamValues) -> Vec<Diagnostic> {
        let name = &self.param.name;
        let mut messages = Vec::new();
        if !is_name(name) {
            messages.push(format!(
                "the parameter name `{name}` must contain only letters, digits, and `_`"
            ));
        }
        if earlier.contains_key(name) {
            messages.push(format!("the parameter `{name}` is declared twice"));
        }
        let messages = messages.into_iter();
        messages
            .map(|message| self.error(Code::BadPolicy, "name", message))
            .collect()
    }

    fn missing(&self) -> Diagnostic {
        let name = &self.param.name;
        let message = format!("the required parameter `{name}` has no value");
        let policy = self.document.identity();
        let mut help = format!("set it with `--param {policy}:{name}=VALUE`");
        if let Some(text) = &self.param.description {
            help.push_str(&format!(" ({text})"));
        }
        self.error(Code::BadParam, "name", message).help(help)
    }

    fn refuse_value(&self, message: String) -> Diagnostic {
        match self.setting {
            Some(ParamSetting { at: Some(at), .. }) => Diagnostic::error(Code::BadParam, message)
                .at(at.clone(), "here")
                .at(self.document.place(&self.path.key("name")), "declared here"),
            Some(_) => self.error(Code::BadParam, "name", message),
            None => self.error(Code::BadParam, "default", message),
        }
    }

    /// The compiled `pattern`. A wrong one is an error even where no value is compared with it.
    fn pattern(&self) -> Result<Option<Regex>, Diagnostic> {
        let Some(pattern) = &self.param.pattern else {
            return Ok(None);
        };
        // Anchored, so that `\d+` does not accept `80; rm`.
        let compiled = Regex::new(&format!("^(?:{pattern})$"));
        compiled.map(Some).map_err(|error| {
            let message = format!("`pattern` is not a valid regular expression: {error}");
            self.error(Code::BadPolicy, "pattern", message)
        })
    }

    fn check_value(&self, value: &str, pattern: Option<Regex>) -> Result<(), Diagnostic> {
        let name = &self.param.name;
        let shown = mask::value(name, value);
        if pattern.is_some_and(|pattern| !pattern.is_match(value)) {
            let pattern = self.param.pattern.as_deref().unwrap_or_default();
            return Err(self.refuse_value(format!(
                "the value `{shown}` of the parameter `{name}` does not match `{pattern}`"
            )));
        }
        let words: Vec<&str> = (0..self.param.r#enum.len())
            .filter_map(|at| self.document.written(&self.path.key("enum").index(at)))
            .collect();
        if !words.is_empty() && !words.contains(&value) {
            let problem = self.refuse_value(format!(
                "the value `{shown}` of the parameter `{name}` is not one of {}",
                words.join(", ")
            ));
            return Err(match nearest(value, words.into_iter()) {
                Some(near) => problem.help(did_you_mean(near)),
                None => problem,
            });
        }
        Ok(())
    }
}
