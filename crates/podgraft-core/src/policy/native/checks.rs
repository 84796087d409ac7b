//! Checks at read time what an API server would refuse: names, ports, mounts, variables.

use serde_json::Value;
use std::collections::BTreeSet;

use super::PolicyReader;
use crate::diagnostic::Code;
use crate::policy::validation::{self, Checker};
use crate::yaml::value::Path;
use crate::yaml::view::View;

/// Fields of a pod spec that have their own key in `inject`, each with the help text that names this key.
pub(crate) const NOT_IN_POD_SPEC: [(&str, &str); 5] = [
    ("containers", "use `sidecars` with `type: Container`"),
    (
        "initContainers",
        "use `inject.initContainers`, or `sidecars` with `type: Native`",
    ),
    ("ephemeralContainers", "use `inject.ephemeralContainers`"),
    ("volumes", "use `inject.volumes`"),
    ("imagePullSecrets", "use `inject.imagePullSecrets`"),
];

impl PolicyReader<'_, '_> {
    /// Reports each error that `check` finds in the value at a path.
    pub(super) fn report(&mut self, at: &Path, check: impl FnOnce(&mut Checker<'_>)) {
        if let Some(value) = at.get(&self.document.value) {
            self.report_in(value, at, check);
        }
    }

    /// [`Self::report`] for another value than the one at the path.
    pub(super) fn report_in(
        &mut self,
        value: &Value,
        at: &Path,
        check: impl FnOnce(&mut Checker<'_>),
    ) {
        for invalid in validation::check(&View::from(value), check) {
            let path = at.join(&invalid.path);
            let message = invalid.sentence(|| self.document.places.name(&path));
            self.problems
                .push(self.document.invalid_value(&path, message));
        }
    }

    /// [`Self::report`] for each entry of the list at a path.
    pub(super) fn report_each(&mut self, at: &Path, check: impl Fn(&mut Checker<'_>)) {
        for path in self.paths(at) {
            self.report(&path, &check);
        }
    }

    fn document_text(&self, at: &Path) -> String {
        at.get(&self.document.value)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    }

    /// Reports items of one list with the same merge key: the second would conflict with the first.
    pub(super) fn check_names(&mut self, at: &Path) {
        let lists = ["initContainers", "sidecars", "ephemeralContainers"];
        let containers = lists.map(|list| self.paths(&at.key(list))).concat();
        self.check_unique(&containers, "name");
        self.check_unique(&self.paths(&at.key("volumes")), "name");
        self.check_unique(&self.paths(&at.key("volumeMounts")), "mountPath");
        // Several entries may append to the same variable; only `Set` must be unique.
        let mut set = self.paths(&at.key("env"));
        set.retain(|path| matches!(self.document_text(&path.key("op")).as_str(), "" | "Set"));
        self.check_unique(&set, "name");
    }

    fn check_unique(&mut self, paths: &[Path], key: &str) {
        let mut seen = BTreeSet::new();
        for path in paths {
            let at = path.key(key);
            let text = self.document_text(&at);
            let identity = match key {
                "mountPath" => text.trim_end_matches('/'),
                _ => &text,
            };
            if !seen.insert(identity.to_owned()) {
                let message = format!("`{key}` `{text}` is used twice");
                let problem = self.document.error(Code::Invalid, &at, message);
                self.problems.push(problem);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::stored_schemas::INJECTION_POLICY;

    #[test]
    fn a_field_of_the_pod_spec_that_is_a_word_of_inject_is_refused_in_pod_spec() {
        let fields = |name| INJECTION_POLICY.get(name)["properties"].as_object();
        let of_pod = fields("PartOfPodSpec").expect("it has fields");
        let words = fields("Inject").expect("it has fields").keys();
        for word in words.filter(|word| of_pod.contains_key(*word)) {
            let mut refused = NOT_IN_POD_SPEC.iter().map(|(field, _)| field);
            assert!(
                refused.any(|field| field == word),
                "add `{word}` to NOT_IN_POD_SPEC"
            );
        }
    }
}
