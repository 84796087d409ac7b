//! How the OpenTelemetry Operator is set up, whose work an Instrumentation asks for.

use clap::Args;
use podgraft::policy::opentelemetry::language::Language;
use podgraft::policy::opentelemetry::release::{Feature, Release, Settings};
use podgraft::policy::schema::{did_you_mean, nearest};

/// The operator's release and its flags.
#[derive(Debug, Default, Clone, Args)]
pub struct OpenTelemetry {
    /// The release of the OpenTelemetry Operator whose images an Instrumentation gets [default: 0.158.0]
    #[arg(long = "otel-operator-release", value_name = "VERSION", value_parser = parse_release, help_heading = "Policies")]
    pub release: Option<&'static Release>,
    /// What is on in that operator beside its defaults: go, nginx; separated by commas
    #[arg(long = "otel-enable", value_name = "FEATURE,...", value_delimiter = ',', value_parser = parse_feature, help_heading = "Policies")]
    pub enable: Vec<Feature>,
    /// What is off in that operator: java, nodejs, python, dotnet, apache-httpd, multi-instrumentation; separated by commas
    #[arg(long = "otel-disable", value_name = "FEATURE,...", value_delimiter = ',', value_parser = parse_feature, help_heading = "Policies")]
    pub disable: Vec<Feature>,
    /// The image of that operator for a language whose Instrumentation states none, such as java=registry.example.com/java:2; repeatable
    #[arg(long = "otel-image", value_name = "LANGUAGE=IMAGE", value_parser = parse_image, help_heading = "Policies")]
    pub images: Vec<(Language, String)>,
}

impl OpenTelemetry {
    /// As the library has them.
    pub fn settings(&self) -> Settings {
        let mut settings = Settings::default();
        if let Some(release) = self.release {
            settings.set_release(release);
        }
        for (language, image) in &self.images {
            settings.set_image(*language, image);
        }
        for (features, is_on) in [(&self.enable, true), (&self.disable, false)] {
            for feature in features {
                settings.switch(*feature, is_on);
            }
        }
        settings
    }
}

fn parse_release(text: &str) -> Result<&'static Release, String> {
    Release::find(text)
        .ok_or_else(|| format!("the releases that are known are {}", Release::known()))
}

fn parse_feature(text: &str) -> Result<Feature, String> {
    Feature::find(text).ok_or_else(|| match nearest(text, Feature::words()) {
        Some(near) => did_you_mean(near),
        None => format!(
            "the words are {}",
            Feature::words().collect::<Vec<_>>().join(", ")
        ),
    })
}

fn parse_image(text: &str) -> Result<(Language, String), String> {
    let parsed = text.split_once('=').and_then(|(word, image)| {
        let language = Language::find(word).filter(|language| *language != Language::Sdk)?;
        (!image.is_empty()).then(|| (language, image.to_owned()))
    });
    parsed
        .ok_or_else(|| "wanted LANGUAGE=IMAGE, such as java=registry.example.com/java:2".to_owned())
}
