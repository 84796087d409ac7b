//! Parses and validates the text of a configuration. Unknown fields and wrong types are errors at their places.

use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;

use super::types::{
    ChangedPolicy, ConfigFile, FunctionFile, FunctionMode, OpenTelemetry, PolicyEntry, Settings,
};
use super::{Config, ConfigParam, PolicyUse, parse_namespace};
use crate::dangers::Danger;
use crate::diagnostic::{Code, Diagnosed, Diagnostic, unless};
use crate::glob::{self, GlobSubject};
use crate::options::{ImageEnv, PodTemplatePath, parse_kube_version};
use crate::policy::document::{Document, about};
use crate::policy::images::ImageMirror;
use crate::policy::opentelemetry::language::Language;
use crate::policy::opentelemetry::release::{self, OperatorFeature, Release};
use crate::policy::params::ParamSetting;
use crate::policy::read::{PolicyFile, not_yaml};
use crate::policy::schema::{Schema, TemplateMode, meant};
use crate::policy::{stored_schemas, template};
use crate::source::Place;
use crate::yaml::parse::parse;
use crate::yaml::value::Path;

const API_VERSION: &str = "podgraft.dev/v1alpha1";
const KIND: &str = "Config";
const SUBJECT: &str = "configuration";
/// The kind of the functionConfig that `podgraft fn` reads.
pub(crate) const FUNCTION_KIND: &str = "PodgraftFunction";

static CONFIG: Schema = Schema::Stored(&stored_schemas::CONFIG, "Config");
static FUNCTION: Schema = Schema::Stored(&stored_schemas::FUNCTION, "PodgraftFunction");

/// Reads a `podgraft.yaml`.
///
/// # Errors
/// All problems, with their places.
pub fn read(file: PolicyFile) -> Diagnosed<Config> {
    with_document(file, config)
}

fn config(document: &Document<'_>) -> Diagnosed<Config> {
    check_kind(document, KIND, SUBJECT)?;
    unless(misfits(document, &CONFIG, SUBJECT), ())?;
    let file: ConfigFile = typed(document, SUBJECT)?;
    let config = settings(document, file.settings, &Path::default())?;
    let mut reader = ConfigReader {
        document,
        problems: Vec::new(),
    };
    let root = Path::default();
    let config = Config {
        namespaces: reader.namespaces(&root.key("namespaces")),
        namespace: file
            .namespace
            .and_then(|text| reader.namespace(&text, &root.key("namespace"))),
        image_env: reader.image_env(&file.image_env, &root.key("imageEnv")),
        strict: file.strict,
        require: reader.requirements(file.require, &root.key("require")),
        acknowledged: reader.acknowledged(&file.acknowledge, &root.key("acknowledge")),
        ..config
    };
    // They are compiled later, with those of the flags.
    let check_glob = |text: &str| glob::compile(text, GlobSubject::Path);
    reader.each(&file.include, &root.key("include"), check_glob);
    reader.each(&file.exclude, &root.key("exclude"), check_glob);
    unless(reader.problems, ())?;
    Ok(Config {
        include: file.include,
        exclude: file.exclude,
        allow_application_config: file.allow_application_config,
        ..config
    })
}

/// Reads the functionConfig of kind `PodgraftFunction`.
///
/// # Errors
/// All problems, with their places.
pub fn read_function(file: PolicyFile) -> Diagnosed<(Config, FunctionMode)> {
    with_document(file, |document| {
        check_kind(document, FUNCTION_KIND, SUBJECT)?;
        unless(misfits(document, &FUNCTION, SUBJECT), ())?;
        let file: FunctionFile = typed(document, SUBJECT)?;
        let config = settings(document, file.spec.settings, &Path::of(&["spec"]))?;
        Ok((config, file.spec.mode))
    })
}

/// Reads the `podgraft.yaml` in an application's folder, which may only set parameters.
///
/// # Errors
/// All problems, and every field that an application may not set.
pub fn read_application(file: PolicyFile) -> Diagnosed<Vec<ConfigParam>> {
    with_document(file.clone(), refuse_other_fields)?;
    read(file).map(|config| config.params)
}

fn refuse_other_fields(document: &Document<'_>) -> Diagnosed {
    let allowed = ["apiVersion", "kind", "metadata", "params"];
    let fields = document.value.as_object().into_iter().flatten();
    let refused: Vec<Diagnostic> = fields
        .filter(|(key, _)| !allowed.contains(&key.as_str()))
        .map(|(key, _)| not_for_applications(document, key))
        .collect();
    unless(refused, ())
}

fn not_for_applications(document: &Document<'_>, key: &str) -> Diagnostic {
    let message = format!("an application's own configuration cannot set `{key}`");
    document
        .key_error(Code::BadPolicy, &Path::of(&[key]), message)
        .help(
            "set only `params` that a policy marks as `overridable`; everything else is for the \
             operator",
        )
}

/// Parses a file with exactly one document and passes it to `read`.
fn with_document<T>(
    file: PolicyFile,
    read: impl FnOnce(&Document<'_>) -> Diagnosed<T>,
) -> Diagnosed<T> {
    let file = Arc::new(file);
    let tree =
        parse(&file.text).map_err(|error| vec![not_yaml(&file, error, "the configuration")])?;
    let &[root] = tree.roots() else {
        let message = format!(
            "`{}` must contain one document, but it contains {}",
            file.name,
            tree.roots().len()
        );
        let problem = Diagnostic::error(Code::BadPolicy, message);
        return Err(vec![match tree.roots().get(1) {
            Some(&second) => problem.at(file.place(tree.span(second)), "the second document"),
            None => problem.at(file.place(0..0), "in this file"),
        }]);
    };
    let document = Document::of(&file, &tree, root)
        .map_err(|problem| vec![about(problem, "the configuration")])?;
    read(&document)
}

/// Refuses an object of another kind or version. `subject` is what the kind is called in messages.
pub(crate) fn check_kind(document: &Document<'_>, kind: &str, subject: &str) -> Diagnosed {
    for (key, wanted) in [("apiVersion", API_VERSION), ("kind", kind)] {
        if document.text(&[key]) != Some(wanted) {
            let message =
                format!("a {subject} must have `apiVersion: {API_VERSION}` and `kind: {kind}`");
            let at = Path::of(&[key]);
            return Err(vec![document.error(Code::BadPolicy, &at, message)]);
        }
    }
    Ok(())
}

/// What a schema refuses.
pub(crate) fn misfits(document: &Document<'_>, schema: &Schema, subject: &str) -> Vec<Diagnostic> {
    let found = schema.check(&document.value, TemplateMode::Filled);
    let problems = document.problems(&found).into_iter();
    let subject = format!("the {subject}");
    problems.map(|problem| about(problem, &subject)).collect()
}

/// The value of a document that fits its schema.
pub(crate) fn typed<T: DeserializeOwned>(document: &Document<'_>, subject: &str) -> Diagnosed<T> {
    serde_json::from_value(document.value.clone()).map_err(|error| {
        let message = format!("the {subject} is not valid: {error}");
        vec![document.error(Code::WrongType, &Path::default(), message)]
    })
}

fn settings(document: &Document<'_>, settings: Settings, at: &Path) -> Diagnosed<Config> {
    let mut reader = ConfigReader {
        document,
        problems: Vec::new(),
    };
    let config = Config {
        params: reader.params(&settings, &at.key("params")),
        pod_templates: reader.pod_templates(&settings.pod_templates, &at.key("podTemplates")),
        kube_minor: settings
            .kube_version
            .as_ref()
            .and_then(|_| reader.kube_version(&at.key("kubeVersion"))),
        image_mirrors: reader.image_mirrors(&settings, &at.key("imageMirrors")),
        opentelemetry: reader.opentelemetry(&settings.open_telemetry, &at.key("openTelemetry")),
        policies: reader.policies(&settings.policies, &at.key("policies")),
        context: reader.paths(settings.context, &at.key("context")),
        set: settings.set,
        record: settings.record,
        forbid: reader.forbid(&settings.forbid, &at.key("forbid")),
        ..Config::default()
    };
    reader.refuse_expressions(&at.key("params"));
    unless(reader.problems, config)
}

pub(super) struct ConfigReader<'d, 't> {
    pub document: &'d Document<'t>,
    pub problems: Vec<Diagnostic>,
}

impl ConfigReader<'_, '_> {
    pub(super) fn report_error(&mut self, path: &Path, message: impl Into<String>) {
        self.problems
            .push(self.document.error(Code::BadPolicy, path, message));
    }

    /// Reads each text of a list and reports errors at their entries.
    fn each<T>(
        &mut self,
        texts: &[String],
        at: &Path,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Vec<T> {
        let mut read = Vec::new();
        for (index, text) in texts.iter().enumerate() {
            match parse(text) {
                Ok(value) => read.push(value),
                Err(message) => self.report_error(&at.index(index), message),
            }
        }
        read
    }

    fn pod_templates(&mut self, texts: &[String], at: &Path) -> Vec<PodTemplatePath> {
        let paths = self.each(texts, at, PodTemplatePath::parse);
        match PodTemplatePath::contradiction(&paths) {
            Some((index, message)) if paths.len() == texts.len() => {
                self.report_error(&at.index(index), message);
            }
            _ => {}
        }
        paths
    }

    fn forbid(&mut self, words: &[String], at: &Path) -> Vec<Danger> {
        let mut dangers = Vec::new();
        for (index, word) in words.iter().enumerate() {
            match Danger::find(word) {
                Some(danger) => dangers.push(danger),
                None => {
                    let help = meant(word, Danger::names(), "valid values:");
                    let problem = self.document.error(
                        Code::BadPolicy,
                        &at.index(index),
                        format!("unknown danger `{word}`"),
                    );
                    self.problems.push(problem.help(help));
                }
            }
        }
        dangers
    }

    /// Reads parameter values as written, so that `1.10` does not become the number 1.1.
    fn params(&mut self, settings: &Settings, at: &Path) -> Vec<ConfigParam> {
        let mut params = Vec::new();
        for (policy, values) in &settings.params {
            for name in values.keys() {
                let param = self.param(Some(policy), name, &at.key(policy).key(name));
                params.push(ConfigParam {
                    policy_at: Some(self.document.key_place(&at.key(policy))),
                    ..param
                });
            }
        }
        params
    }

    fn param(&self, policy: Option<&String>, name: &str, path: &Path) -> ConfigParam {
        ConfigParam {
            setting: ParamSetting {
                policy: policy.cloned(),
                name: name.to_owned(),
                value: self.document.written(path).unwrap_or_default().to_owned(),
                at: Some(self.document.place(path)),
            },
            at: self.document.key_place(path),
            policy_at: None,
        }
    }

    fn policies(&mut self, entries: &[PolicyEntry], at: &Path) -> Vec<PolicyUse> {
        let mut found = Vec::new();
        for (index, entry) in entries.iter().enumerate() {
            let at = at.index(index);
            found.push(match entry {
                PolicyEntry::Given(given) => PolicyUse {
                    given: given.clone(),
                    at: Some(self.document.place(&at)),
                    ..PolicyUse::default()
                },
                PolicyEntry::Changed(changed) => self.policy_use(changed, &at),
            });
        }
        found
    }

    fn policy_use(&mut self, changed: &ChangedPolicy, at: &Path) -> PolicyUse {
        let fields = at.get(&self.document.value).unwrap_or(&Value::Null);
        let map = |key: &str| fields[key].as_object().cloned().unwrap_or_default();
        let (selects, containers) = (map("match"), map("containers"));
        let params = changed.params.keys();
        let params = params.map(|name| self.param(None, name, &at.key("params").key(name)));
        let params = params.collect();
        let digest = |text: &String| (text.clone(), self.document.place(&at.key("sha256")));
        let sha256 = changed.sha256.as_ref().map(digest);
        let is_digest =
            |text: &str| text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if sha256.as_ref().is_some_and(|(text, _)| !is_digest(text)) {
            self.report_error(
                &at.key("sha256"),
                "`sha256` must be 64 hexadecimal digits, as `sha256sum FILE` prints them",
            );
        }
        PolicyUse {
            given: changed.r#use.clone(),
            sha256,
            params,
            selects,
            containers,
            at: Some(self.document.place(at)),
        }
    }

    /// Reads paths, each with its place.
    fn paths(&self, paths: Vec<String>, at: &Path) -> Vec<(String, Place)> {
        let paths = paths.into_iter().enumerate();
        let placed = |(index, path)| (path, self.document.place(&at.index(index)));
        paths.map(placed).collect()
    }

    /// Reads `namespaces` from the JSON value, which keeps the order of the file: the first match counts.
    fn namespaces(&mut self, at: &Path) -> Vec<(globset::GlobMatcher, String)> {
        let entries = at.get(&self.document.value).and_then(Value::as_object);
        let mut found = Vec::new();
        for (folder, namespace) in entries.into_iter().flatten() {
            let plain = folder.trim_start_matches("./").trim_end_matches('/');
            let namespace = namespace.as_str().unwrap_or_default();
            let namespace = self.namespace(namespace, &at.key(folder));
            match glob::compile(plain, GlobSubject::Path) {
                Ok(glob) => found.extend(namespace.map(|namespace| (glob, namespace))),
                Err(message) => self.report_error(&at.key(folder), message),
            }
        }
        found
    }

    fn namespace(&mut self, text: &str, at: &Path) -> Option<String> {
        parse_namespace(text)
            .map_err(|message| self.report_error(at, message))
            .ok()
    }

    fn image_env(&mut self, entries: &[String], at: &Path) -> Vec<ImageEnv> {
        let mut found = self.each(entries, at, ImageEnv::parse);
        for image_env in &mut found {
            image_env.is_configured = true;
        }
        found
    }

    /// Reads the version as written: as a number, `1.30` would be 1.3.
    fn kube_version(&mut self, at: &Path) -> Option<u32> {
        parse_kube_version(self.document.written(at).unwrap_or_default())
            .map_err(|message| self.report_error(at, message))
            .ok()
    }

    fn image_mirrors(&mut self, settings: &Settings, at: &Path) -> Vec<ImageMirror> {
        for (index, image) in settings.image_mirrors.iter().enumerate() {
            for (field, message) in image.problems() {
                self.report_error(&at.index(index).key(field), message);
            }
            let news = [
                &image.new_name,
                &image.new_tag,
                &image.tag_suffix,
                &image.digest,
            ];
            if news.iter().all(|new| new.is_none()) {
                self.report_error(
                    &at.index(index),
                    "this changes nothing: add `newName`, `newTag`, `tagSuffix`, or `digest`",
                );
            }
        }
        settings.image_mirrors.clone()
    }

    fn opentelemetry(&mut self, stated: &OpenTelemetry, at: &Path) -> release::OperatorSettings {
        let mut settings = release::OperatorSettings::default();
        if let Some(version) = &stated.operator_release {
            match Release::parse(version) {
                Ok(release) => settings.set_release(release),
                Err(message) => self.report_error(&at.key("operatorRelease"), message),
            }
        }
        for feature in self.each(&stated.enable, &at.key("enable"), OperatorFeature::parse) {
            settings.enable(feature);
        }
        for feature in self.each(&stated.disable, &at.key("disable"), OperatorFeature::parse) {
            settings.disable(feature);
        }
        for (word, image) in &stated.images {
            match Language::with_image(word) {
                Ok(language) => settings.set_image(language, image),
                Err(message) => self.report_error(&at.key("images").key(word), message),
            }
        }
        settings
    }

    /// Refuses `${...}` in parameters. Values are plain texts, so it would never be evaluated.
    fn refuse_expressions(&mut self, at: &Path) {
        let Some(Value::Object(policies)) = at.get(&self.document.value) else {
            return;
        };
        for (policy, values) in policies {
            let Some(values) = values.as_object() else {
                continue;
            };
            for name in values
                .iter()
                .filter(|(_, value)| value.as_str().is_some_and(template::has_expression))
            {
                self.report_error(
                    &at.key(policy).key(name.0),
                    "a parameter cannot contain `${...}`: write the value itself",
                );
            }
        }
    }
}
