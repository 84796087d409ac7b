//! The fields of `opentelemetry.io/v1alpha1 Instrumentation`, for their types: what stands there is read elsewhere.
//!
//! They are those of `apis/v1alpha1/instrumentation_types.go` of
//! <https://github.com/open-telemetry/opentelemetry-operator>. JSON names that surprise are the operator's.

#![expect(dead_code, reason = "the types stand there for the schema alone")]

use k8s_openapi::api::core::v1::{
    EnvVar, PersistentVolumeClaimSpec, ResourceRequirements, SecurityContext,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::JsonSchema;
use serde_json::Value;
use std::collections::BTreeMap;

/// How pods are instrumented, for the OpenTelemetry Operator.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub struct InstrumentationFile {
    api_version: String,
    kind: String,
    metadata: ObjectMeta,
    spec: Option<InstrumentationSpec>,
    status: Option<Value>,
}

#[derive(JsonSchema)]
#[schemars(rename = "Spec", rename_all = "camelCase")]
struct InstrumentationSpec {
    exporter: Option<Exporter>,
    resource: Option<Resource>,
    propagators: Option<Vec<Propagator>>,
    sampler: Option<Sampler>,
    defaults: Option<InstrumentationDefaults>,
    env: Option<Vec<EnvVar>>,
    java: Option<Java>,
    nodejs: Option<Agent>,
    python: Option<Agent>,
    dotnet: Option<Agent>,
    go: Option<Go>,
    apache_httpd: Option<ApacheHttpd>,
    nginx: Option<Nginx>,
    image_pull_policy: Option<String>,
    init_container_security_context: Option<SecurityContext>,
}

#[derive(JsonSchema)]
struct Exporter {
    endpoint: Option<String>,
    tls: Option<Tls>,
}

#[derive(JsonSchema)]
struct Tls {
    #[schemars(rename = "secretName")]
    secret_name: Option<String>,
    #[schemars(rename = "configMapName")]
    config_map_name: Option<String>,
    ca_file: Option<String>,
    cert_file: Option<String>,
    key_file: Option<String>,
}

#[derive(JsonSchema)]
struct Resource {
    #[schemars(rename = "resourceAttributes")]
    attributes: Option<BTreeMap<String, String>>,
    #[schemars(rename = "addK8sUIDAttributes")]
    add_uids: Option<bool>,
}

#[derive(JsonSchema)]
struct Sampler {
    r#type: Option<SamplerType>,
    argument: Option<String>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
enum Propagator {
    TraceContext,
    Baggage,
    B3,
    B3Multi,
    Jaeger,
    XRay,
    OtTrace,
    None,
}

// Those of the CustomResourceDefinition. The operator's webhook also knows `parentbased_jaeger_remote`.
#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
enum SamplerType {
    AlwaysOn,
    AlwaysOff,
    #[schemars(rename = "traceidratio")]
    TraceIdRatio,
    #[schemars(rename = "parentbased_always_on")]
    ParentBasedAlwaysOn,
    #[schemars(rename = "parentbased_always_off")]
    ParentBasedAlwaysOff,
    #[schemars(rename = "parentbased_traceidratio")]
    ParentBasedTraceIdRatio,
    JaegerRemote,
    #[schemars(rename = "xray")]
    XRay,
}

#[derive(JsonSchema)]
#[schemars(rename = "Defaults", rename_all = "camelCase")]
struct InstrumentationDefaults {
    use_labels_for_resource_attributes: Option<bool>,
}

/// As the operator reads it: one whose `spec` says nothing is none.
#[derive(JsonSchema)]
struct ClaimTemplate {
    metadata: Option<ObjectMeta>,
    spec: PersistentVolumeClaimSpec,
}

/// What the agents of Node.js, Python and .NET have.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
struct Agent {
    image: Option<String>,
    volume_claim_template: Option<ClaimTemplate>,
    volume_limit_size: Option<Quantity>,
    env: Option<Vec<EnvVar>>,
    resource_requirements: Option<ResourceRequirements>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
struct Java {
    image: Option<String>,
    volume_claim_template: Option<ClaimTemplate>,
    volume_limit_size: Option<Quantity>,
    env: Option<Vec<EnvVar>>,
    resources: Option<ResourceRequirements>,
    extensions: Option<Vec<Extension>>,
}

#[derive(JsonSchema)]
struct Extension {
    image: String,
    dir: String,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
struct Go {
    image: Option<String>,
    volume_claim_template: Option<ClaimTemplate>,
    volume_limit_size: Option<Quantity>,
    env: Option<Vec<EnvVar>>,
    resource_requirements: Option<ResourceRequirements>,
    security_context: Option<SecurityContext>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
struct ApacheHttpd {
    image: Option<String>,
    volume_claim_template: Option<ClaimTemplate>,
    volume_limit_size: Option<Quantity>,
    env: Option<Vec<EnvVar>>,
    attrs: Option<Vec<EnvVar>>,
    version: Option<String>,
    config_path: Option<String>,
    resource_requirements: Option<ResourceRequirements>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
struct Nginx {
    image: Option<String>,
    volume_claim_template: Option<ClaimTemplate>,
    volume_limit_size: Option<Quantity>,
    env: Option<Vec<EnvVar>>,
    attrs: Option<Vec<EnvVar>>,
    config_file: Option<String>,
    resource_requirements: Option<ResourceRequirements>,
}
