//! Reads an Instrumentation as an API server with the operator's CustomResourceDefinition admits it.

use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::policy::document::Document;
use crate::policy::pruning::drop_nulls;
use crate::policy::schema::{Schema, SchemaProblemKind, TemplateMode};
use crate::policy::stored_schemas::INSTRUMENTATION;
use crate::yaml::value::Path;

static SCHEMA: Schema = Schema::Stored(&INSTRUMENTATION, "Instrumentation");

/// The resource as an API server stores it: null fields are dropped. Unknown fields are only warnings, because an API
/// server silently drops them.
///
/// # Errors
/// A version that clusters do not serve, and what does not fit the schema.
pub(super) fn admit<'t>(
    document: &Document<'t>,
    problems: &mut Vec<Diagnostic>,
) -> Result<Document<'t>, Vec<Diagnostic>> {
    let version = document.text(&["apiVersion"]).unwrap_or_default();
    if version != "opentelemetry.io/v1alpha1" {
        let message = format!("`{version}` is no version of Instrumentation that clusters serve");
        let problem = document.error(Code::NotSupported, &Path::of(&["apiVersion"]), message);
        return Err(vec![
            problem.help("write `apiVersion: opentelemetry.io/v1alpha1`"),
        ]);
    }
    let mut admitted = document.clone();
    drop_nulls(&mut admitted.value);
    let (ignored, wrong): (Vec<_>, Vec<_>) = SCHEMA
        .check(&admitted.value, TemplateMode::Filled)
        .into_iter()
        .partition(|problem| problem.kind == SchemaProblemKind::UnknownField);
    if !wrong.is_empty() {
        return Err(wrong
            .iter()
            .map(|problem| document.problem(problem))
            .collect());
    }
    problems.extend(ignored.iter().map(|problem| {
        let mut warning = document.problem(problem).with_severity(Severity::Warning);
        warning.code = Code::PartIgnored;
        warning
    }));
    Ok(admitted)
}
