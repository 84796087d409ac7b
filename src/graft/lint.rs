//! Lints objects that are no workloads.

use crate::diagnostic::{Code, Diagnostic};
use crate::manifest::object::Object;
use crate::manifest::workload::group_of;
use crate::source::Source;
use crate::yaml::tree::Tree;

pub(super) const API_SERVICE: &str = "APIService";

/// Checks that the name of an APIService is `<version>.<group>`, by which it is looked up. Source:
/// <https://kubernetes.io/docs/tasks/extend-kubernetes/configure-aggregation-layer/> and the validation of
/// kube-aggregator, which wants `spec.version + "." + spec.group`.
pub(super) fn api_service(
    object: &Object,
    tree: &Tree<'_>,
    source: &Source<'_>,
) -> Option<Diagnostic> {
    if object.kind != API_SERVICE || group_of(&object.api_version) != "apiregistration.k8s.io" {
        return None;
    }
    let under = |key: &str, field: &str| tree.get(tree.get(object.node, key)?, field);
    let text = |node| tree.scalar(node).unwrap_or_default();
    let name = under("metadata", "name")?;
    let group = under("spec", "group").map(text).unwrap_or_default();
    let wanted = format!(
        "{}.{group}",
        under("spec", "version").map(text).unwrap_or_default()
    );
    if text(name) == wanted {
        return None;
    }
    let problem = Diagnostic::error(
        Code::WrongName,
        format!(
            "the APIService `{}` has a name that is not its version and group",
            text(name)
        ),
    );
    Some(
        problem
            .at(source.place(tree.span(name)), "this name")
            .help(format!("call it `{wanted}`")),
    )
}
