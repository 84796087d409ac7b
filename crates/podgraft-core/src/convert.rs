//! Converts resources of other operators to `InjectionPolicy` objects with the same effect, as YAML text for people to
//! keep and to change.

use crate::diagnostic::{Code, Diagnosed, Diagnostic};
use crate::edit::emit;
use crate::policy::conversion::{ConvertedResource, ReadOptions};
use crate::policy::params::ParamSetting;
use crate::policy::read::{PolicyFile, TranslationResults, read, translate};
use crate::wording::{one_line, wrap_options};

/// Length of the longest comment line, in characters.
const WIDTH: usize = 118;

/// Returns one YAML document for each resource, with warnings about the resources.
///
/// # Errors
/// All problems of the resources and of the policies that they become; also if no resource is given.
pub fn convert(
    files: Vec<PolicyFile>,
    settings: &[ParamSetting],
    reading: ReadOptions,
) -> Diagnosed<(String, Vec<Diagnostic>)> {
    let TranslationResults {
        converted,
        mut problems,
        ..
    } = translate(files, settings, reading);
    if converted.is_empty() && !problems.iter().any(Diagnostic::is_error) {
        let problem = Diagnostic::error(
            Code::BadPolicy,
            "nothing to convert: every policy is already an InjectionPolicy",
        );
        problems
            .push(problem.help("pass resources of other operators to `podgraft policy convert`"));
    }
    if problems.iter().any(Diagnostic::is_error) {
        return Err(problems);
    }
    let documents: Vec<String> = converted.iter().map(document).collect();
    let text = documents.join("---\n");
    match refused(&text) {
        refused if refused.is_empty() => Ok((text, problems)),
        refused => Err(refused),
    }
}

/// The errors of converted policies: an operator may inject what no API server takes, but a policy may not.
fn refused(text: &str) -> Vec<Diagnostic> {
    let file = PolicyFile {
        name: "the converted policy".into(),
        text: text.to_owned(),
    };
    let (_, mut problems) = read(vec![file], &[]);
    problems.retain(Diagnostic::is_error);
    problems
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
    let options = wrap_options(WIDTH, "#   ").initial_indent("# ");
    textwrap::fill(text, options) + "\n"
}
