//! How the OpenTelemetry Operator is set up, whose work an Instrumentation asks for.

use clap::Args;
use podgraft_core::policy::opentelemetry::language::Language;
use podgraft_core::policy::opentelemetry::release::{OperatorFeature, OperatorSettings, Release};

/// The operator's release and its flags.
#[derive(Debug, Default, Clone, Args)]
pub struct OpenTelemetryArgs {
    /// The OpenTelemetry Operator release whose images an Instrumentation uses [default: 0.158.0]
    #[arg(long = "otel-operator-release", value_name = "VERSION", value_parser = Release::parse, help_heading = "Policies")]
    pub release: Option<&'static Release>,
    /// Features of the operator to enable: go, nginx; separated by commas
    #[arg(long = "otel-enable", value_name = "FEATURE,...", value_delimiter = ',', value_parser = OperatorFeature::parse, help_heading = "Policies")]
    pub enable: Vec<OperatorFeature>,
    /// Features of the operator to disable: java, nodejs, python, dotnet, apache-httpd, multi-instrumentation;
    /// separated by commas
    #[arg(long = "otel-disable", value_name = "FEATURE,...", value_delimiter = ',', value_parser = OperatorFeature::parse, help_heading = "Policies")]
    pub disable: Vec<OperatorFeature>,
    /// The image for a language if the Instrumentation specifies none, such as java=registry.example.com/java:2;
    /// repeatable
    #[arg(long = "otel-image", value_name = "LANGUAGE=IMAGE", value_parser = parse_image, help_heading = "Policies")]
    pub images: Vec<(Language, String)>,
    /// What the configuration says.
    #[arg(skip)]
    pub configured: OperatorSettings,
}

impl OpenTelemetryArgs {
    /// As the library has them: the flags over the configuration.
    pub fn settings(&self) -> OperatorSettings {
        let mut settings = self.configured.clone();
        if let Some(release) = self.release {
            settings.set_release(release);
        }
        for (language, image) in &self.images {
            settings.set_image(*language, image);
        }
        for feature in &self.enable {
            settings.enable(*feature);
        }
        for feature in &self.disable {
            settings.disable(*feature);
        }
        settings
    }
}

fn parse_image(text: &str) -> Result<(Language, String), String> {
    match text.split_once('=') {
        Some((word, image)) if !image.is_empty() => {
            Language::with_image(word).map(|language| (language, image.to_owned()))
        }
        _ => Err("expected LANGUAGE=IMAGE, such as java=registry.example.com/java:2".to_owned()),
    }
}
