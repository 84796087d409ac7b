//! What the annotations of a pod and of its Namespace say together.

use std::collections::BTreeMap;

use super::language::{Language, annotation};

/// The annotations that decide.
#[derive(Debug, Clone, Copy)]
pub(super) struct Annotations<'a> {
    /// Of the pod template.
    pub pod: &'a BTreeMap<String, String>,
    /// Of the Namespace; empty where it is not known.
    pub namespace: &'a BTreeMap<String, String>,
}

impl<'a> Annotations<'a> {
    /// What counts under a key; empty where neither says anything.
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

    /// Whether the value that counts under a key is the pod's own.
    pub(super) fn is_of_pod(&self, key: &str) -> bool {
        self.pod
            .get(key)
            .is_some_and(|value| value == self.value(key))
    }

    /// What a language asks for: a resource's name, or `true`; `None` where nobody asks.
    pub(super) fn requested(&self, language: Language) -> Option<&'a str> {
        let value = self.value(&language.inject_key());
        (!value.is_empty() && !value.eq_ignore_ascii_case("false")).then_some(value)
    }

    /// The names of containers under a key.
    ///
    /// # Errors
    /// A text with characters that the operator does not take.
    pub(super) fn names(&self, key: &str) -> Result<Vec<String>, &'a str> {
        let text = self.value(key);
        let is_right = |char: char| char.is_ascii_alphanumeric() || matches!(char, '-' | ',');
        if !text.chars().all(is_right) {
            return Err(text);
        }
        let names = text.split(',').map(str::to_owned);
        Ok(if text.is_empty() {
            Vec::new()
        } else {
            names.collect()
        })
    }
}

/// The annotation with the names of containers for all languages.
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
