//! The languages that the operator has agents for, and its words for them.

use std::fmt;

use crate::policy::schema::nearest;

/// In the order in which the operator resolves and applies them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Language {
    /// A Java agent.
    Java,
    /// Node.js.
    NodeJs,
    /// Python.
    Python,
    /// .NET.
    DotNet,
    /// Go, by eBPF from a sidecar.
    Go,
    /// The module of Apache HTTPD.
    ApacheHttpd,
    /// The module of nginx.
    Nginx,
    /// The variables alone.
    Sdk,
}

impl Language {
    /// All of them.
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

    /// As annotations and flags have it.
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

    /// The language of a word.
    pub fn find(word: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|language| language.word() == word)
    }

    /// The language of a word, of those that have an image.
    ///
    /// # Errors
    /// The words that there are.
    pub fn with_image(word: &str) -> Result<Self, String> {
        let mut languages = Self::ALL
            .into_iter()
            .filter(|&language| language != Language::Sdk);
        languages
            .clone()
            .find(|language| language.word() == word)
            .ok_or_else(|| {
                let words: Vec<&str> = languages.by_ref().map(Language::word).collect();
                format!(
                    "there is no image for `{word}`: the words are {}",
                    words.join(", ")
                )
            })
    }

    /// The field of the resource's spec; the SDK has none.
    pub fn field(self) -> Option<&'static str> {
        match self {
            Language::ApacheHttpd => Some("apacheHttpd"),
            Language::Sdk => None,
            _ => Some(self.word()),
        }
    }

    /// Its place in tables of those that have an image.
    pub fn index(self) -> usize {
        self as usize
    }

    /// The annotation that asks for it.
    pub fn inject_key(self) -> String {
        annotation(&format!("inject-{}", self.word()))
    }

    /// The annotation that names its containers. That of nginx is the odd one out.
    pub fn containers_key(self) -> String {
        match self {
            Language::Nginx => annotation("inject-nginx-container-names"),
            _ => annotation(&format!("{}-container-names", self.word())),
        }
    }

    /// The init container that brings the agent, of those that have the common shape; the volume is called alike.
    pub fn agent_name(self) -> String {
        format!("opentelemetry-auto-instrumentation-{}", self.word())
    }

    /// Where the agent is.
    pub fn agent_path(self) -> String {
        format!("/otel-auto-instrumentation-{}", self.word())
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

const PREFIX: &str = "instrumentation.opentelemetry.io/";

/// An annotation of the operator's prefix.
pub fn annotation(word: &str) -> String {
    format!("{PREFIX}{word}")
}

/// An annotation of the prefix that the operator does not know, and the one that was meant.
pub fn is_unknown(key: &str) -> Option<Option<String>> {
    key.strip_prefix(PREFIX)?;
    let suffixes = [
        "container-names",
        "otel-python-platform",
        "otel-dotnet-auto-runtime",
        "otel-go-auto-target-exe",
    ];
    let known: Vec<String> = Language::ALL
        .into_iter()
        .flat_map(|language| [language.inject_key(), language.containers_key()])
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
