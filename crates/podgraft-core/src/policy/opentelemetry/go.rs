//! Injects the Go agent: a privileged sidecar that inspects the processes of the other containers by eBPF.

use serde_json::{Value, json};

use super::agents::add_resources;
use super::env::variable;
use super::injector::Injector;
use super::language::{Language, annotation};
use super::pod::{ContainerPosition, InstrumentedContainer};
use super::resource::LanguageAgent;

/// The name of the container of the agent.
pub(super) const SIDECAR: &str = "opentelemetry-auto-instrumentation";
const VOLUME: &str = "kernel-debug";
const FOLDER: &str = "/sys/kernel/debug";
const TARGET: &str = "OTEL_GO_AUTO_TARGET_EXE";

impl Injector<'_> {
    /// Adds the sidecar for the first of the named containers. Go agents have one target per pod.
    pub(super) fn go(&mut self, agent: &LanguageAgent, names: &[String]) {
        let Some(name) = names.first() else { return };
        if let Some(at) = self.pod.find_init(name) {
            let place = self.place(ContainerPosition::Init(at));
            let reason = format!("`{name}` is an init container");
            let help = "specify a container from `containers`";
            return self.warn_not_instrumented(place, &reason, help);
        }
        if self.pod.field("shareProcessNamespace") == &Value::Bool(false) {
            let reason = "the pod has `shareProcessNamespace: false`";
            let help = "remove it: the agent must see the processes of the other containers";
            return self.warn_not_instrumented(None, reason, help);
        }
        let key = match self.settings.is_multi() {
            true => Language::Go.containers_key(),
            false => annotation("container-names"),
        };
        let annotated = self.facts.annotations.get(&key);
        if annotated.is_some_and(|annotated| annotated.contains(',')) {
            let place = self.annotations.place(&key);
            let reason = format!("`{key}` lists several containers");
            return self.warn_not_instrumented(place, &reason, "specify one");
        }
        let before = self.pod.clone();
        self.add_sidecar(agent);
        // The operator looks for the container only now, so that the name may be that of the sidecar.
        let app = self.pod.find(name).unwrap_or(ContainerPosition::App(0));
        let sidecar = ContainerPosition::App(self.pod.apps.len() - 1);
        self.common(sidecar);
        self.sdk(sidecar, app);
        // The operator undoes the injection if nothing names the executable.
        if !self.pod.get(sidecar).env.has(TARGET) {
            *self.pod = before;
            let help = format!(
                "specify the program with `{}` on the pod template",
                annotation("otel-go-auto-target-exe")
            );
            self.warn_not_instrumented(None, &format!("nothing sets {TARGET}"), &help);
        }
    }

    fn add_sidecar(&mut self, agent: &LanguageAgent) {
        self.pod.set("shareProcessNamespace", Value::Bool(true));
        let mut sidecar = self.resource.container(SIDECAR, &self.image(&agent.image));
        // The operator reads this annotation from the pod only, not from the Namespace.
        let target = self
            .facts
            .annotations
            .get(&annotation("otel-go-auto-target-exe"));
        sidecar["env"] = match target {
            Some(target) => json!([variable(TARGET, target)]),
            None => json!([]),
        };
        add_resources(&mut sidecar, agent);
        sidecar["volumeMounts"] = json!([{"name": VOLUME, "mountPath": FOLDER}]);
        sidecar["securityContext"] = security_context(agent);
        if let Some(mut sidecar) = InstrumentedContainer::read(&sidecar) {
            sidecar.env.append_unset(&agent.env);
            self.pod.apps.push(sidecar);
        }
        self.pod.volumes.push(volume());
    }
}

/// The security context of the sidecar.
pub(super) fn security_context(agent: &LanguageAgent) -> Value {
    let stated = agent.security_context.clone();
    stated.unwrap_or_else(|| json!({"runAsUser": 0, "privileged": true}))
}

/// The volume of the sidecar.
pub(super) fn volume() -> Value {
    json!({"name": VOLUME, "hostPath": {"path": FOLDER}})
}
