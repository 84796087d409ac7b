//! Converts resources of other operators to `InjectionPolicy` objects with the same effect, as YAML text for people to
//! keep and to change.

use crate::diagnostic::{Code, Diagnostic};
use crate::edit::emit;
use crate::policy::conversion::{ConvertedResource, ReadOptions};
use crate::policy::params::ParamSetting;
use crate::policy::read::{PolicyFile, convert_all};
use crate::wording::one_line;

/// Length of the longest comment line, in characters.
const WIDTH: usize = 118;

/// Returns one YAML document for each resource, with warnings about the resources.
///
/// # Errors
/// All problems of the resources; also if no resource is given.
pub fn convert(
    files: Vec<PolicyFile>,
    settings: &[ParamSetting],
    reading: ReadOptions,
) -> Result<(String, Vec<Diagnostic>), Vec<Diagnostic>> {
    let (converted, mut problems) = convert_all(files, settings, reading);
    if converted.is_empty() && !problems.iter().any(Diagnostic::is_error) {
        let problem = Diagnostic::error(
            Code::BadPolicy,
            "there is nothing to convert: all of it is InjectionPolicy",
        );
        problems.push(
            problem.help("`podgraft policy convert` is for the resources of other operators"),
        );
    }
    if problems.iter().any(Diagnostic::is_error) {
        return Err(problems);
    }
    let documents: Vec<String> = converted.iter().map(document).collect();
    Ok((documents.join("---\n"), problems))
}

fn document(converted: &ConvertedResource) -> String {
    let origin = format!(
        "Converted from {} ({}).",
        converted.identity,
        one_line(&converted.file)
    );
    let comments = converted.remarks.iter().map(String::as_str);
    let comments: Vec<String> = std::iter::once(origin.as_str())
        .chain(comments)
        .map(comment)
        .collect();
    comments.concat() + &emit::document(&converted.policy)
}

/// Wraps a paragraph to YAML comment lines.
fn comment(text: &str) -> String {
    let mut lines = String::new();
    let mut line = String::from("#");
    for word in text.split(' ') {
        if line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines.push_str(&line);
            lines.push('\n');
            line = String::from("#  ");
        }
        line.push(' ');
        line.push_str(word);
    }
    lines + &line + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn convert_text(text: &str) -> Result<String, Vec<Diagnostic>> {
        let file = PolicyFile {
            name: "p.yaml".into(),
            text: text.to_owned(),
        };
        convert(vec![file], &[], ReadOptions::default()).map(|(text, _)| text)
    }

    #[test]
    fn a_resource_becomes_a_policy_with_its_origin() {
        let text = "apiVersion: ualter.com/v1beta1\nkind: Podbuggertool\nmetadata: {name: shell, namespace: shop}\n\
                    spec: {label: app=payment, image: \"busybox:1.36\"}\n";
        let converted = convert_text(text).unwrap();
        assert!(converted.starts_with(
            "# Converted from Podbuggertool/shop/shell (p.yaml).\napiVersion: podgraft.dev/"
        ));
        assert!(
            converted.contains("\n        app: payment\n")
                && converted.contains("${containers.first.name}")
        );
    }

    #[test]
    fn what_is_a_policy_already_is_not_converted() {
        let text = "apiVersion: podgraft.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: a}\n\
                    spec: {inject: {podLabels: {a: b}}}\n";
        assert_eq!(convert_text(text).unwrap_err()[0].code, Code::BadPolicy);
    }

    #[test]
    fn a_long_remark_is_wrapped() {
        let text = comment(&"word ".repeat(60));
        assert!(
            text.lines()
                .all(|line| line.starts_with('#') && line.len() <= WIDTH)
                && text.lines().count() > 2
        );
    }
}
