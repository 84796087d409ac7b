//! Combines the annotations of a pod and of its Namespace as the operator does.

use std::collections::BTreeMap;

use super::language::{Language, annotation};
use crate::yaml::value::Path;

/// The annotations of a pod and of its Namespace.
#[derive(Debug, Clone, Copy)]
pub(super) struct Annotations<'a> {
    /// Of the pod template.
    pub pod: &'a BTreeMap<String, String>,
    /// Of the Namespace; empty if the Namespace is unknown.
    pub namespace: &'a BTreeMap<String, String>,
}

impl<'a> Annotations<'a> {
    /// The effective value of a key, empty if unset. The pod's value wins, except that `true` on the pod yields to the
    /// name of a resource on the Namespace.
    pub(super) fn value(&self, key: &str) -> &'a str {
        let text = |annotations: &'a BTreeMap<String, String>| {
            annotations.get(key).map_or("", String::as_str)
        };
        let (pod, namespace) = (text(self.pod), text(self.namespace));
        let is = |text: &str, word: &str| text.eq_ignore_ascii_case(word);
        if namespace.is_empty() {
            pod
        } else if pod.is_empty() || is(pod, "true") && !is(namespace, "false") {
            namespace
        } else {
            pod
        }
    }

    /// The path of an annotation in the pod template, if the pod's value is the effective one.
    pub(super) fn place(&self, key: &str) -> Option<Path> {
        let value = self.pod.get(key)?;
        (value == self.value(key)).then(|| Path::of(&["metadata", "annotations", key]))
    }

    /// The resource that a language requests, by name or as `true`; `None` if it is not requested.
    pub(super) fn requested(&self, language: Language) -> Option<&'a str> {
        let value = self.value(language.inject_key());
        (!value.is_empty() && !value.eq_ignore_ascii_case("false")).then_some(value)
    }

    /// The container names in an annotation, separated by commas.
    ///
    /// # Errors
    /// The text, if it has characters that the operator does not accept.
    pub(super) fn names(&self, key: &str) -> Result<Vec<String>, &'a str> {
        let text = self.value(key);
        let is_right = |char: char| char.is_ascii_alphanumeric() || matches!(char, '-' | ',');
        if !text.chars().all(is_right) {
            return Err(text);
        }
        Ok(match text {
            "" => Vec::new(),
            names => names.split(',').map(str::to_owned).collect(),
        })
    }
}

/// The annotation that names containers for all languages.
pub(super) fn common_containers() -> String {
    annotation("container-names")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_namespace_beats_a_pod_that_says_true() {
        for (pod, namespace, wanted) in [
            ("", "", ""),
            ("agents", "", "agents"),
            ("", "agents", "agents"),
            ("true", "agents", "agents"),
            ("TRUE", "False", "TRUE"),
            ("false", "true", "false"),
            ("own", "agents", "own"),
        ] {
            let map = |text: &str| BTreeMap::from([("k".to_owned(), text.to_owned())]);
            let (pod, namespace) = (map(pod), map(namespace));
            let both = Annotations {
                pod: &pod,
                namespace: &namespace,
            };
            assert_eq!(both.value("k"), wanted);
        }
    }
}
