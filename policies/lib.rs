//! The policies of this folder that podgraft has built in, by the groups of `podgraft policy list`. What they mean is the
//! matter of the library, which reads them.

/// Agents and settings that follow no operator.
pub const AGENTS: &[&str] = &[
    include_str!("debug-tools.yaml"),
    include_str!("jmx-exporter.yaml"),
    include_str!("opentelemetry-dotnet.yaml"),
    include_str!("opentelemetry-java.yaml"),
    include_str!("opentelemetry-nodejs.yaml"),
    include_str!("opentelemetry-python.yaml"),
    include_str!("prometheus-scrape.yaml"),
    include_str!("rookout-java.yaml"),
];

/// What the webhooks of cloud providers inject: identities and connections.
pub const CLOUDS: &[&str] = &[
    include_str!("aws-irsa.yaml"),
    include_str!("aws-pod-identity.yaml"),
    include_str!("azure-workload-identity.yaml"),
    include_str!("cloud-sql-proxy.yaml"),
];

/// What injectors of secrets do, and restarts when a Secret changes.
pub const SECRETS: &[&str] = &[
    include_str!("onepassword.yaml"),
    include_str!("reloader.yaml"),
    include_str!("vault-agent.yaml"),
];

/// What service meshes and application runtimes inject.
pub const MESHES: &[&str] = &[include_str!("dapr.yaml"), include_str!("linkerd.yaml")];

/// What the injectors of monitoring products inject.
pub const MONITORING: &[&str] = &[
    include_str!("datadog-config.yaml"),
    include_str!("elastic-apm-java.yaml"),
    include_str!("newrelic-java.yaml"),
];

/// Policies with `source`, for the resources of other operators.
pub const OPERATORS: &[&str] = &[
    include_str!("operators/config-monitor.yaml"),
    include_str!("operators/podbuggertool.yaml"),
    include_str!("operators/jmx-exporter.yaml"),
    include_str!("operators/rookout.yaml"),
];
