//! Reads an Instrumentation as an API server with the operator's CustomResourceDefinition admits it.

use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::policy::document::Document;
use crate::policy::pruning::{drop_field, drop_nulls};
use crate::policy::schema::{Schema, SchemaProblemKind, TemplateMode};
use crate::policy::stored_schemas::INSTRUMENTATION;
use crate::yaml::value::Path;

static SCHEMA: Schema = Schema::Stored(&INSTRUMENTATION, "Instrumentation");

/// The resource as an API server stores it: without null and unknown fields. Unknown ones are warnings here, because an
/// API server drops them silently.
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
    let (ignored, mut wrong): (Vec<_>, Vec<_>) = SCHEMA
        .check(&admitted.value, TemplateMode::Filled)
        .into_iter()
        .partition(|problem| problem.kind == SchemaProblemKind::UnknownField);
    for problem in &ignored {
        drop_field(&mut admitted.value, &problem.path);
        let mut warning = document.problem(problem).with_severity(Severity::Warning);
        warning.code = Code::PartIgnored;
        problems.push(warning);
    }
    if !ignored.is_empty() {
        // A misspelt field that is required is missing now.
        wrong = SCHEMA.check(&admitted.value, TemplateMode::Filled);
    }
    if wrong.is_empty() {
        return Ok(admitted);
    }
    let refused = wrong.iter().map(|problem| document.problem(problem));
    Err(refused.collect())
}
