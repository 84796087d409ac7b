//! Releases of the operator: the images of their agents, and what the flags of the operator enable.

use std::sync::Arc;

use super::language::Language;
use crate::policy::schema::{did_you_mean, nearest};

/// A release of the operator. The images are in the order of [`Language::ALL`], without the SDK.
#[derive(Debug, PartialEq, Eq)]
pub struct Release {
    /// The version, without `v`.
    pub version: &'static str,
    images: [&'static str; 7],
}

/// The releases whose behaviour is implemented, newest first. Images are from `versions.txt` of each release in
/// <https://github.com/open-telemetry/opentelemetry-operator>.
pub(crate) const RELEASES: &[Release] = &[Release {
    version: "0.158.0",
    images: [
        "ghcr.io/open-telemetry/opentelemetry-operator/autoinstrumentation-java:2.30.0",
        "ghcr.io/open-telemetry/opentelemetry-operator/autoinstrumentation-nodejs:0.78.0",
        "ghcr.io/open-telemetry/opentelemetry-operator/autoinstrumentation-python:0.64b0",
        "ghcr.io/open-telemetry/opentelemetry-operator/autoinstrumentation-dotnet:1.16.0",
        "ghcr.io/open-telemetry/opentelemetry-go-instrumentation/autoinstrumentation-go:v0.24.0",
        "ghcr.io/open-telemetry/opentelemetry-operator/autoinstrumentation-apache-httpd:1.0.4",
        "ghcr.io/open-telemetry/opentelemetry-operator/autoinstrumentation-apache-httpd:1.0.4",
    ],
}];

impl Release {
    /// The release of a version, which may begin with `v`.
    ///
    /// # Errors
    /// A message with the known versions.
    pub fn parse(version: &str) -> Result<&'static Self, String> {
        let wanted = version.strip_prefix('v').unwrap_or(version);
        let found = RELEASES.iter().find(|release| release.version == wanted);
        found.ok_or_else(|| {
            let versions: Vec<&str> = RELEASES.iter().map(|release| release.version).collect();
            format!("unknown release; known releases: {}", versions.join(", "))
        })
    }
}

/// A feature that a flag of the operator enables or disables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperatorFeature {
    /// The agent of a language.
    Language(Language),
    /// Pods may name the containers of each language.
    MultiInstrumentation,
}

impl OperatorFeature {
    /// The feature of a name. The SDK has no flag.
    ///
    /// # Errors
    /// A message with the nearest name, or with all names.
    pub fn parse(word: &str) -> Result<Self, String> {
        const MULTI: &str = "multi-instrumentation";
        if word == MULTI {
            return Ok(OperatorFeature::MultiInstrumentation);
        }
        let mut languages = Language::with_images();
        if let Some(language) = languages.find(|language| language.word() == word) {
            return Ok(OperatorFeature::Language(language));
        }
        let words = || Language::with_images().map(Language::word).chain([MULTI]);
        Err(match nearest(word, words()) {
            Some(near) => format!("unknown feature `{word}`; {}", did_you_mean(near)),
            None => {
                let words = words().collect::<Vec<_>>().join(", ");
                format!("unknown feature `{word}`; valid values: {words}")
            }
        })
    }
}

/// The settings of the operator: its release, images and flags. What is not stated is as in the operator.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct OperatorSettings {
    release: Option<&'static Release>,
    images: [Option<Arc<str>>; 7],
    languages: [Option<bool>; 8],
    multi: Option<bool>,
}

impl OperatorSettings {
    /// Takes from `others` what is not stated here.
    pub fn complete(&mut self, others: &OperatorSettings) {
        self.release = self.release.or(others.release);
        self.multi = self.multi.or(others.multi);
        for (language, other) in self.languages.iter_mut().zip(others.languages) {
            *language = language.or(other);
        }
        for (image, other) in self.images.iter_mut().zip(&others.images) {
            *image = image.take().or_else(|| other.clone());
        }
    }

    /// Uses the images of a release.
    pub fn set_release(&mut self, release: &'static Release) {
        self.release = Some(release);
    }

    /// Replaces the image of a language. Does nothing for the SDK.
    pub fn set_image(&mut self, language: Language, image: &str) {
        if let Some(place) = self.images.get_mut(language.index()) {
            *place = Some(image.into());
        }
    }

    /// Enables a feature.
    pub fn enable(&mut self, feature: OperatorFeature) {
        *self.switch(feature) = Some(true);
    }

    /// Disables a feature.
    pub fn disable(&mut self, feature: OperatorFeature) {
        *self.switch(feature) = Some(false);
    }

    fn switch(&mut self, feature: OperatorFeature) -> &mut Option<bool> {
        match feature {
            OperatorFeature::Language(language) => &mut self.languages[language.index()],
            OperatorFeature::MultiInstrumentation => &mut self.multi,
        }
    }

    /// Whether a language is enabled. Go and nginx are disabled by default.
    pub(crate) fn is_on(&self, language: Language) -> bool {
        let standard = !matches!(language, Language::Go | Language::Nginx);
        self.languages[language.index()].unwrap_or(standard)
    }

    /// Multi-instrumentation: pods may name the containers of each language, and must if they request several
    /// languages.
    pub(crate) fn is_multi(&self) -> bool {
        self.multi.unwrap_or(true)
    }

    /// The newest release by default.
    fn release(&self) -> &'static Release {
        self.release.unwrap_or(&RELEASES[0])
    }

    /// The image of a language if the resource states none.
    pub fn image(&self, language: Language) -> &str {
        let at = language.index();
        let configured = self.images.get(at).and_then(Option::as_deref);
        configured
            .or_else(|| self.release().images.get(at).copied())
            .unwrap_or_default()
    }

    /// The release, and the settings that differ from its defaults, for messages.
    pub fn title(&self) -> String {
        let mut title = format!("OpenTelemetry Operator {}", self.release().version);
        let standard = OperatorSettings::default();
        for (is_on, state) in [(true, "enabled"), (false, "disabled")] {
            let differs = |language: &Language| {
                self.is_on(*language) == is_on && standard.is_on(*language) != is_on
            };
            let languages = Language::ALL.into_iter().filter(differs);
            let words: Vec<&str> = languages.map(Language::word).collect();
            if !words.is_empty() {
                title.push_str(&format!(", {} {state}", words.join(" and ")));
            }
        }
        if !self.is_multi() {
            title.push_str(", multi-instrumentation disabled");
        }
        title
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_say_what_is_not_as_the_release_has_it() {
        let mut settings = OperatorSettings::default();
        assert_eq!(settings.title(), "OpenTelemetry Operator 0.158.0");
        settings.enable(OperatorFeature::Language(Language::Go));
        settings.enable(OperatorFeature::Language(Language::Nginx));
        settings.disable(OperatorFeature::Language(Language::Java));
        assert!(
            settings
                .title()
                .ends_with(", go and nginx enabled, java disabled"),
            "{}",
            settings.title()
        );
        settings.set_image(Language::Java, "registry.example.com/java:1");
        assert_eq!(
            settings.image(Language::Java),
            "registry.example.com/java:1"
        );
        assert!(Release::parse("v0.158.0").is_ok() && Release::parse("0.1.0").is_err());
        assert!(OperatorFeature::parse("sdk").is_err());
    }
}
