//! The languages that the operator can instrument, and the names that it gives to their parts.

use std::fmt;
use std::sync::LazyLock;

use crate::policy::schema::nearest;

/// A language, in the order in which the operator resolves and applies them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Language {
    /// Java.
    Java,
    /// Node.js.
    NodeJs,
    /// Python.
    Python,
    /// .NET.
    DotNet,
    /// Go, instrumented by eBPF from a sidecar.
    Go,
    /// Apache HTTPD, instrumented by a module.
    ApacheHttpd,
    /// nginx, instrumented by a module.
    Nginx,
    /// No agent: only the variables of the SDK.
    Sdk,
}

impl Language {
    /// All languages, in order.
    pub const ALL: [Language; 8] = [
        Language::Java,
        Language::NodeJs,
        Language::Python,
        Language::DotNet,
        Language::Go,
        Language::ApacheHttpd,
        Language::Nginx,
        Language::Sdk,
    ];

    /// The name in annotations and in command-line flags.
    pub fn word(self) -> &'static str {
        match self {
            Language::Java => "java",
            Language::NodeJs => "nodejs",
            Language::Python => "python",
            Language::DotNet => "dotnet",
            Language::Go => "go",
            Language::ApacheHttpd => "apache-httpd",
            Language::Nginx => "nginx",
            Language::Sdk => "sdk",
        }
    }

    /// The languages that have an image: all but the SDK.
    pub(crate) fn with_images() -> impl Iterator<Item = Self> {
        let mut languages = Self::ALL.into_iter();
        languages.next_back();
        languages
    }

    /// The language of a name, if it has an image.
    ///
    /// # Errors
    /// A message with the valid names.
    pub fn with_image(word: &str) -> Result<Self, String> {
        let found = Self::with_images().find(|language| language.word() == word);
        found.ok_or_else(|| {
            let words: Vec<&str> = Self::with_images().map(Language::word).collect();
            let words = words.join(", ");
            format!("there is no image for `{word}`; valid values: {words}")
        })
    }

    /// The field in the spec of an Instrumentation. The SDK has none.
    pub fn field(self) -> Option<&'static str> {
        match self {
            Language::ApacheHttpd => Some("apacheHttpd"),
            Language::Sdk => None,
            _ => Some(self.word()),
        }
    }

    /// The index in tables of languages with an image. The SDK is last, so it needs no entry.
    pub fn index(self) -> usize {
        self as usize
    }

    /// The annotation that requests the language.
    pub(crate) fn inject_key(self) -> &'static str {
        static KEYS: LazyLock<Vec<String>> = LazyLock::new(|| {
            let words = Language::ALL.into_iter().map(Language::word);
            words
                .map(|word| annotation(&format!("inject-{word}")))
                .collect()
        });
        &KEYS[self.index()]
    }

    /// The annotation that names the containers. nginx deviates from the pattern.
    pub(crate) fn containers_key(self) -> String {
        match self {
            Language::Nginx => annotation("inject-nginx-container-names"),
            _ => annotation(&format!("{}-container-names", self.word())),
        }
    }

    /// The name of the init container that copies the agent, and of its volume.
    pub(crate) fn agent_name(self) -> String {
        format!("opentelemetry-auto-instrumentation-{}", self.word())
    }

    /// The mount path of the agent's volume.
    pub(crate) fn agent_path(self) -> String {
        format!("/otel-auto-instrumentation-{}", self.word())
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

const PREFIX: &str = "instrumentation.opentelemetry.io/";

/// The annotation of a word, with the operator's prefix.
pub fn annotation(word: &str) -> String {
    format!("{PREFIX}{word}")
}

/// For an annotation with the operator's prefix that the operator does not know: the known annotation that was probably
/// meant, if any. `None` for every other annotation.
pub(crate) fn is_unknown(key: &str) -> Option<Option<String>> {
    key.strip_prefix(PREFIX)?;
    let suffixes = [
        "container-names",
        "otel-python-platform",
        "otel-dotnet-auto-runtime",
        "otel-go-auto-target-exe",
    ];
    let known: Vec<String> = Language::ALL
        .into_iter()
        .flat_map(|language| [language.inject_key().to_owned(), language.containers_key()])
        .chain(suffixes.map(annotation))
        .collect();
    let word = key.strip_suffix("-container-names").unwrap_or(key);
    let of_nginx = (word == annotation("nginx")).then(|| Language::Nginx.containers_key());
    let near = || nearest(key, known.iter().map(String::as_str)).map(str::to_owned);
    (!known.iter().any(|known_key| known_key == key)).then(|| of_nginx.or_else(near))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotations_that_the_operator_does_not_know_are_found() {
        let meant = |word: &str| is_unknown(&annotation(word));
        assert_eq!(meant("inject-nginx-container-names"), None);
        assert_eq!(meant("inject-java"), None);
        assert_eq!(is_unknown("sidecar.opentelemetry.io/inject"), None);
        for (word, wanted) in [
            (
                "nginx-container-names",
                Some("inject-nginx-container-names"),
            ),
            ("inject-node", Some("inject-nodejs")),
            ("java-containers-names", Some("java-container-names")),
        ] {
            assert_eq!(meant(word), Some(wanted.map(annotation)), "{word}");
        }
    }
}
