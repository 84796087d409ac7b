//! The built-in policies: the files of `policies/`, compiled in by the crate `podgraft-policies` there, and named
//! `builtin:NAME`.

use std::sync::LazyLock;

use super::read::PolicyFile;
use super::schema::{did_you_mean, nearest};
use crate::diagnostic::{Code, Diagnostic};

/// A built-in policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Builtin {
    /// The name in `builtin:NAME`, which is also the policy's `metadata.name`.
    pub name: &'static str,
    /// The group in which `policy list` shows it.
    pub group: Group,
    /// The group and kind in the policy's `source`; `None` without one.
    pub source: Option<(&'static str, &'static str)>,
    /// The text of the file.
    pub text: &'static str,
}

/// The groups of `policy list`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Agents and settings that follow no operator.
    Agents,
    /// What the webhooks of cloud providers inject: identities and connections.
    Clouds,
    /// What injectors of secrets do, and restarts when a Secret changes.
    Secrets,
    /// What service meshes and application runtimes inject.
    Meshes,
    /// What the injectors of monitoring products inject.
    Monitoring,
    /// Policies with `source`, for the resources of other operators. Used when such a resource is given.
    Operators,
}

impl Group {
    /// The heading in the list.
    pub fn title(self) -> &'static str {
        match self {
            Group::Agents => "Agents and settings",
            Group::Clouds => "Cloud identities and databases",
            Group::Secrets => "Secrets",
            Group::Meshes => "Service meshes and runtimes",
            Group::Monitoring => "Monitoring products",
            Group::Operators => "Custom resources of operators, passed with -p FILE",
        }
    }
}

/// The files of each group, in the order of the list.
pub const GROUPS: [(Group, &[&str]); 6] = [
    (Group::Agents, podgraft_policies::AGENTS),
    (Group::Clouds, podgraft_policies::CLOUDS),
    (Group::Secrets, podgraft_policies::SECRETS),
    (Group::Meshes, podgraft_policies::MESHES),
    (Group::Monitoring, podgraft_policies::MONITORING),
    (Group::Operators, podgraft_policies::OPERATORS),
];

/// All built-in policies, sorted by name.
pub static BUILTINS: LazyLock<Vec<Builtin>> = LazyLock::new(|| {
    let of_group = |(group, texts): &(Group, &'static [&'static str])| {
        let group = *group;
        texts.iter().map(move |text| Builtin::of(group, text))
    };
    let mut builtins: Vec<Builtin> = GROUPS.iter().flat_map(of_group).collect();
    builtins.sort_by_key(|builtin| builtin.name);
    builtins
});

/// The groups and kinds of the resources that built-in policies are for.
pub fn kinds_of_resources() -> impl Iterator<Item = (&'static str, &'static str)> + Clone {
    BUILTINS.iter().filter_map(|builtin| builtin.source)
}

/// The built-in policy for resources of a group and kind.
pub(crate) fn for_resources(group: &str, kind: &str) -> Option<&'static Builtin> {
    let mut builtins = BUILTINS.iter();
    builtins.find(|builtin| builtin.source == Some((group, kind)))
}

impl Builtin {
    fn of(group: Group, text: &'static str) -> Self {
        let source = behind(text, "\n  source:\n").and_then(|source| {
            let (group, _) = field(source, "apiVersion: ")?.split_once('/')?;
            Some((group, field(source, "kind: ")?))
        });
        let name = behind(text, "\nmetadata:\n").and_then(|metadata| field(metadata, "name: "));
        Builtin {
            name: name.expect("every policy has a name"),
            group,
            source,
            text,
        }
    }

    /// The purpose: the first line of the file, which is a comment.
    pub fn summary(&self) -> &'static str {
        let line = self.text.lines().next().unwrap_or_default();
        line.trim_start_matches(['#', ' ']).trim_end_matches('.')
    }

    /// The policy file, named `builtin:NAME`.
    pub fn file(&self) -> PolicyFile {
        PolicyFile {
            name: format!("builtin:{}", self.name).into(),
            text: self.text.to_owned(),
        }
    }
}

/// The lines behind a line. The file is searched as text, because parsing all of them would slow down each start.
fn behind(text: &'static str, line: &str) -> Option<&'static str> {
    let at = memchr::memmem::find(text.as_bytes(), line.as_bytes())?;
    Some(&text[at + line.len()..])
}

/// The value of a field in the mapping that a text begins with.
fn field(mapping: &'static str, key: &str) -> Option<&'static str> {
    let mut lines = mapping.lines().take_while(|line| line.starts_with("  "));
    lines.find_map(|line| line.trim_start().strip_prefix(key))
}

/// The names of the built-in policies for a message. Those with `source` need a resource of an operator and come last.
pub fn list_names() -> String {
    let (of_resources, standalone): (Vec<&Builtin>, Vec<&Builtin>) = BUILTINS
        .iter()
        .partition(|builtin| builtin.source.is_some());
    let list = |builtins: &[&Builtin]| {
        let names = builtins.iter().map(|builtin| builtin.name);
        names.collect::<Vec<_>>().join(", ")
    };
    format!(
        "{}; for the resources of operators: {}",
        list(&standalone),
        list(&of_resources)
    )
}

/// The built-in policy of a name, or an error with the nearest name.
pub fn find(name: &str) -> Result<&'static Builtin, Diagnostic> {
    if let Some(found) = BUILTINS.iter().find(|builtin| builtin.name == name) {
        return Ok(found);
    }
    let names = || BUILTINS.iter().map(|builtin| builtin.name);
    let help = match nearest(name, names()) {
        Some(near) => did_you_mean(&format!("builtin:{near}")),
        None => format!("built-in policies: {}", list_names()),
    };
    let message = format!("there is no built-in policy `{name}`");
    Err(Diagnostic::error(Code::UnknownPolicy, message).help(help))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::conversion::ReadOptions;
    use crate::policy::read::read_as;

    #[test]
    fn every_file_is_a_policy_of_its_name_with_a_page_of_comment() {
        let looking = ReadOptions {
            params_stay_open: true,
            ..ReadOptions::default()
        };
        for builtin in BUILTINS.iter() {
            let (policies, problems) = read_as(vec![builtin.file()], &[], looking.clone());
            assert_eq!(problems, [], "{}", builtin.name);
            // Without a resource there is no policy.
            assert_eq!(policies.is_empty(), builtin.source.is_some());
            for policy in &policies {
                assert_eq!(policy.identity, builtin.name);
                assert!(
                    policy.selects.selector.is_some()
                        || !policy.match_conditions.is_empty()
                        || policy.opt_in.is_some(),
                    "{} is opt-in",
                    builtin.name
                );
            }
            assert!(builtin.summary().len() > 20, "{}", builtin.name);
            assert!(
                builtin
                    .text
                    .lines()
                    .take_while(|line| line.starts_with('#'))
                    .count()
                    > 20
            );
            assert!(
                builtin.text.lines().all(|line| line.len() <= 120),
                "{}",
                builtin.name
            );
        }
        assert!(BUILTINS.is_sorted_by_key(|builtin| builtin.name));
    }
}
