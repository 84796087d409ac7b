//! `rookout.rookout.com Rookout`: the Java agent for live debugging, in the containers that its matchers choose.
//!
//! The fields and defaults are those of `api/v1alpha1/rookout_types.go` and `controllers/rookout_controller.go` of
//! <https://github.com/Rookout/rookout-k8s-operator>. What that does wrong is not done here: it drops the containers that
//! no matcher chooses, names the volume after the mount path, and doubles `JAVA_TOOL_OPTIONS` with `valueFrom`.

use k8s_openapi::api::core::v1::EnvVar;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

use super::conversion::{self, Conversion, Given, literal, literals};
use super::document::Document;
use super::functions::is_latest;
use super::schema::Schema;
use super::stored::ROOKOUT;
use crate::diagnostic::{Code, Diagnostic};
use crate::yaml::value::Path;

/// The resource.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "fields that stand there for the schema alone")]
pub(crate) struct Rookout {
    api_version: String,
    kind: String,
    metadata: ObjectMeta,
    /// Which containers get the agent, and from which image.
    #[serde(default)]
    spec: Spec,
    status: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[expect(dead_code, reason = "fields that stand there for the schema alone")]
struct Spec {
    /// The first that fits a container wins.
    #[serde(default)]
    matchers: Vec<Matcher>,
    /// Where the agent comes from.
    #[serde(default)]
    init_container: InitContainer,
    /// How often the operator looks again, in nanoseconds.
    requeue_after: Option<i64>,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct Matcher {
    /// A part of the Deployment's name.
    #[serde(default)]
    deployment: String,
    /// A part of the container's name.
    #[serde(default)]
    container: String,
    /// A part of the namespace's name.
    #[serde(default)]
    namespace: String,
    /// The Deployment's own labels.
    #[serde(default)]
    labels: BTreeMap<String, String>,
    /// Variables of the agent.
    #[serde(default)]
    env_vars: Vec<EnvVar>,
}

#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct InitContainer {
    /// The image with `/rook.jar`.
    #[serde(default)]
    image: String,
    /// When it is pulled.
    #[serde(default)]
    image_pull_policy: String,
    /// Its name.
    #[serde(default)]
    container_name: String,
    /// Where the agent is in the containers.
    #[serde(default)]
    shared_volume_mount_path: String,
    /// The volume's name.
    #[serde(default)]
    shared_volume_name: String,
}

const IMAGE: &str = "docker.io/rookout/k8s-operator-init-container:latest";
const PULL_POLICY: &str = "Always";
const CONTAINER: &str = "agent-init-container";
const MOUNT_PATH: &str = "/rookout";
const VOLUME: &str = "rookout-agent-shared-volume";

/// What the report says of a workload that has the agent from elsewhere.
const NO_OTHER: &str = "no agent of somebody else";

const TOKEN: &str = "ROOKOUT_TOKEN";
const CONTROLLER: &str = "ROOKOUT_CONTROLLER_HOST";
const PREFIX: &str = "ROOKOUT_";

static SCHEMA: Schema = Schema::Stored(&ROOKOUT, "Rookout");

/// What the resource becomes.
///
/// # Errors
/// All that is wrong with it.
pub fn convert(document: &Document<'_>, _given: &Given<'_>) -> Result<Conversion, Vec<Diagnostic>> {
    let resource: Rookout = conversion::read(document, &SCHEMA)?;
    let mut reader = Reader {
        document,
        agent: Agent::of(&resource.spec.init_container),
        conversion: Conversion::of(
            document,
            "Load the Rookout Java agent, as the Rookout operator does.",
        ),
    };
    reader.read(&resource.spec);
    Ok(reader.conversion)
}

/// How the agent gets into a pod, defaults filled in.
struct Agent {
    image: String,
    pull_policy: String,
    container: String,
    /// Without a slash at its end.
    mount_path: String,
    volume: String,
}

impl Agent {
    /// An empty text is the default, as the operator has it.
    fn of(stated: &InitContainer) -> Self {
        let or = |text: &str, default: &str| {
            if text.is_empty() {
                default.to_owned()
            } else {
                text.to_owned()
            }
        };
        let mount_path = or(&stated.shared_volume_mount_path, MOUNT_PATH);
        Agent {
            image: or(&stated.image, IMAGE),
            pull_policy: or(&stated.image_pull_policy, PULL_POLICY),
            container: or(&stated.container_name, CONTAINER),
            mount_path: mount_path.trim_end_matches('/').to_owned(),
            volume: or(&stated.shared_volume_name, VOLUME),
        }
    }

    fn mount(&self) -> Value {
        json!({"name": literal(&self.volume), "mountPath": literal(&self.mount_path)})
    }

    /// The image copies to `/rookout` by itself.
    fn init_container(&self) -> Value {
        let mut container = json!({
            "name": literal(&self.container),
            "image": literal(&self.image),
            "imagePullPolicy": literal(&self.pull_policy),
        });
        if self.mount_path != MOUNT_PATH {
            container["command"] = json!([
                "cp",
                "/rook.jar",
                literal(&format!("{}/rook.jar", self.mount_path))
            ]);
        }
        container["volumeMounts"] = json!([self.mount()]);
        container
    }

    fn inject(&self, own: Vec<Value>) -> Value {
        let flag = json!({
            "name": "JAVA_TOOL_OPTIONS",
            "op": "Append",
            "value": literal(&format!("-javaagent:{}/rook.jar", self.mount_path)),
        });
        json!({
            "volumes": [{"name": literal(&self.volume), "emptyDir": {}}],
            "initContainers": [self.init_container()],
            "volumeMounts": [self.mount()],
            "env": own.into_iter().chain([flag]).collect::<Vec<_>>(),
        })
    }
}

struct Reader<'d, 't> {
    document: &'d Document<'t>,
    agent: Agent,
    conversion: Conversion,
}

impl Reader<'_, '_> {
    fn read(&mut self, spec: &Spec) {
        let at = Path::of(&["spec"]);
        if spec.matchers.is_empty() {
            let warning = Diagnostic::warning(
                Code::NothingToDo,
                "the resource has no matchers, so nothing gets the agent",
            );
            let place = self.document.place(&at.key("matchers"));
            self.conversion.problems.push(
                warning
                    .at(place, "here")
                    .help("say under `spec.matchers` which Deployments and containers are meant"),
            );
            return self.conversion.suspend();
        }
        self.check_mount_path(&at.key("init_container"));
        self.warn_of_latest(&at.key("init_container").key("image"));
        let name = self
            .agent
            .container
            .replace('\\', "\\\\")
            .replace('\'', "\\'");
        let expression =
            format!("!pod.spec.?initContainers.orValue([]).exists(c, c.name == '{name}')");
        self.conversion
            .set("match", json!({"kinds": ["Deployment"]}));
        self.conversion.set(
            "matchConditions",
            json!([{"name": NO_OTHER, "expression": expression}]),
        );
        self.rules(&spec.matchers, &at.key("matchers"));
        self.conversion
            .remarks
            .push("Only Deployments, as the operator: widen `kinds` for others.".to_owned());
        if spec
            .matchers
            .iter()
            .any(|matcher| !matcher.deployment.is_empty() || !matcher.container.is_empty())
        {
            let remark = "Names are compared by their parts, as the operator does: write `app` for `*app*` to mean one.";
            self.conversion.remarks.push(remark.to_owned());
        }
    }

    /// One matcher is the policy itself; of several the first that fits a container counts.
    fn rules(&mut self, matchers: &[Matcher], at: &Path) {
        let mut rules: Vec<Value> = Vec::new();
        for (index, matcher) in matchers.iter().enumerate() {
            let target = if matchers.len() == 1 {
                "/spec".to_owned()
            } else {
                format!("/spec/rules/{index}")
            };
            self.name_origins(&target, index);
            rules.push(self.rule(matcher, &at.index(index), &target));
        }
        if rules.len() > 1 {
            self.conversion.set("applyRules", json!("One"));
            return self.conversion.set("rules", Value::Array(rules));
        }
        for (key, value) in rules.into_iter().filter_map(only_object).flatten() {
            match (key.as_str(), value) {
                ("name", _) => {}
                ("match", Value::Object(fields)) => {
                    for (field, value) in fields {
                        self.conversion.policy["spec"]["match"][field] = value;
                    }
                }
                (_, value) => self.conversion.set(&key, value),
            }
        }
    }

    fn name_origins(&mut self, target: &str, index: usize) {
        let matcher = format!("/spec/matchers/{index}");
        let inject = format!("{target}/inject");
        for (part, origin) in [
            (target.to_owned(), matcher.clone()),
            (
                format!("{target}/match/names"),
                format!("{matcher}/deployment"),
            ),
            (
                format!("{target}/match/namespaces"),
                format!("{matcher}/namespace"),
            ),
            (
                format!("{target}/match/workloadSelector/matchLabels"),
                format!("{matcher}/labels"),
            ),
            (
                format!("{target}/containers/names"),
                format!("{matcher}/container"),
            ),
            (inject.clone(), matcher),
            (
                format!("{inject}/initContainers/0"),
                "/spec/init_container".to_owned(),
            ),
            (
                format!("{inject}/initContainers/0/name"),
                "/spec/init_container/container_name".to_owned(),
            ),
            (
                format!("{inject}/initContainers/0/imagePullPolicy"),
                "/spec/init_container/image_pull_policy".to_owned(),
            ),
            (
                format!("{inject}/initContainers/0/volumeMounts/0/mountPath"),
                "/spec/init_container/shared_volume_mount_path".to_owned(),
            ),
            (
                format!("{inject}/initContainers/0/volumeMounts/0/name"),
                "/spec/init_container/shared_volume_name".to_owned(),
            ),
            (
                format!("{inject}/volumes/0/name"),
                "/spec/init_container/shared_volume_name".to_owned(),
            ),
            (
                format!("{inject}/volumeMounts/0/name"),
                "/spec/init_container/shared_volume_name".to_owned(),
            ),
            (
                format!("{inject}/volumeMounts/0"),
                "/spec/init_container/shared_volume_mount_path".to_owned(),
            ),
        ] {
            self.conversion.comes_from(&part, &origin);
        }
    }

    fn rule(&mut self, matcher: &Matcher, at: &Path, target: &str) -> Value {
        self.check_connection(matcher, at);
        let mut filter = Map::new();
        let part = |text: &str| format!("*{}*", globset::escape(text));
        if !matcher.deployment.is_empty() {
            filter.insert("names".to_owned(), json!([part(&matcher.deployment)]));
        }
        if !matcher.namespace.is_empty() {
            filter.insert("namespaces".to_owned(), json!([part(&matcher.namespace)]));
        }
        if !matcher.labels.is_empty() {
            filter.insert(
                "workloadSelector".to_owned(),
                json!({"matchLabels": self.value(&at.key("labels"))}),
            );
        }
        let name_part = (!matcher.deployment.is_empty()).then(|| {
            (
                matcher.deployment.clone(),
                self.document.span(&at.key("deployment")),
            )
        });
        self.conversion.beyond.name_parts.push(name_part);
        let mut rule = json!({"name": at.name()});
        if !filter.is_empty() {
            rule["match"] = Value::Object(filter);
        }
        if !matcher.container.is_empty() {
            rule["containers"] = json!({"names": [part(&matcher.container)]});
        }
        let variables = self.variables(matcher, at, target);
        rule["inject"] = self.agent.inject(variables);
        rule
    }

    /// Without one of the two the agent does not know whom to talk to, and the operator refuses the whole resource.
    fn check_connection(&mut self, matcher: &Matcher, at: &Path) {
        if matcher
            .env_vars
            .iter()
            .any(|var| var.name == TOKEN || var.name == CONTROLLER)
        {
            return;
        }
        let message =
            format!("the matcher sets neither `{TOKEN}` nor `{CONTROLLER}` under `env_vars`");
        let help = format!(
            "set `{TOKEN}` from a Secret (`valueFrom: {{secretKeyRef: {{name: rookout, key: token}}}}`), or \
             `{CONTROLLER}` to your own controller"
        );
        self.conversion
            .problems
            .push(self.document.error(Code::BadPolicy, at, message).help(help));
    }

    /// The matcher's own variables. The operator takes those of the agent alone.
    fn variables(&mut self, matcher: &Matcher, at: &Path, target: &str) -> Vec<Value> {
        let mut variables: Vec<(Value, Path)> = Vec::new();
        for (index, var) in matcher.env_vars.iter().enumerate() {
            let at = at.key("env_vars").index(index);
            let value = self.value(&at);
            if !var.name.starts_with(PREFIX) {
                self.warn_of_other_variable(&var.name, &at);
                continue;
            }
            match variables
                .iter()
                .find(|(other, _)| other["name"] == value["name"])
            {
                Some((twin, _)) if *twin == value => continue,
                Some((_, first)) => {
                    let first = self.document.place(first);
                    let message = format!(
                        "the variable `{}` stands twice with different content",
                        var.name
                    );
                    let problem = self
                        .document
                        .error(Code::Conflict, &at, message)
                        .at(first, "first here");
                    self.conversion
                        .problems
                        .push(problem.help("keep one of them"));
                    continue;
                }
                None => {}
            }
            self.warn_of_clear_token(var, &at);
            self.conversion
                .comes_from_path(&format!("{target}/inject/env/{}", variables.len()), &at);
            variables.push((value, at));
        }
        variables.into_iter().map(|(value, _)| value).collect()
    }

    /// What stands at a path of the resource, as it has to stand in a policy.
    fn value(&self, at: &Path) -> Value {
        at.get(&self.document.value)
            .map(literals)
            .unwrap_or_default()
    }

    fn warn_of_other_variable(&mut self, name: &str, at: &Path) {
        let message = format!(
            "the variable `{name}` is left out: only names that begin with `{PREFIX}` are set"
        );
        let warning = Diagnostic::warning(Code::PartIgnored, message)
            .at(self.document.place(&at.key("name")), "here");
        let help = "the operator leaves it out, too; to set it, use an InjectionPolicy (`podgraft policy convert`)";
        self.conversion.problems.push(warning.help(help));
    }

    /// The warning must not spread the token itself.
    fn warn_of_clear_token(&mut self, var: &EnvVar, at: &Path) {
        let Some(token) = var
            .value
            .as_deref()
            .filter(|value| var.name == TOKEN && !value.is_empty())
        else {
            return;
        };
        let mut place = self.document.place(&at.key("name"));
        place.excerpt = place.excerpt.replace(token, &"*".repeat(token.len()));
        let message = format!("`{TOKEN}` stands here in clear text, and will in every workload");
        let warning = Diagnostic::warning(Code::ClearSecret, message).at(place, "here");
        let help = "put it into a Secret and write `valueFrom: {secretKeyRef: {name: rookout, key: token}}`";
        self.conversion.problems.push(warning.help(help));
    }

    fn warn_of_latest(&mut self, stated: &Path) {
        if !is_latest(&self.agent.image) {
            return;
        }
        let is_stated = stated.get(&self.document.value).is_some();
        let (at, why) = match is_stated {
            true => (stated.clone(), "here"),
            false => (
                Path::of(&["metadata", "name"]),
                "this resource names no image, so it is the operator's default",
            ),
        };
        let message = format!(
            "the image `{}` may be another one tomorrow",
            self.agent.image
        );
        let warning =
            Diagnostic::warning(Code::LatestImage, message).at(self.document.place(&at), why);
        let help = "name a version or a digest under `spec.init_container.image`";
        self.conversion.problems.push(warning.help(help));
    }

    fn check_mount_path(&mut self, at: &Path) {
        if self.agent.mount_path.starts_with('/') {
            return;
        }
        let message = "`shared_volume_mount_path` must be an absolute path, and not `/` itself";
        let at = at.key("shared_volume_mount_path");
        self.conversion.problems.push(
            self.document
                .error(Code::Invalid, &at, message)
                .help("write `/rookout`, for example"),
        );
    }
}

fn only_object(value: Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(map) => Some(map),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            None
        }
    }
}
