//! The commands for those who write policies.

use clap::{Args, ValueEnum};

/// Of `podgraft policy schema`.
pub const SCHEMA_EXAMPLES: &str = "\
Example:
  podgraft policy schema > injectionpolicy.schema.json

and as the first line of a policy, for editors with yaml-language-server:
  # yaml-language-server: $schema=injectionpolicy.schema.json";

/// Of `podgraft policy crd`.
pub const CRD_EXAMPLES: &str = "\
Example:
  podgraft policy crd | kubectl apply --server-side -f -";

/// `podgraft policy schema`.
#[derive(Debug, Args)]
pub struct Schema {
    /// The kind: InjectionPolicy, Config, PodgraftFunction
    #[arg(default_value = "InjectionPolicy")]
    pub kind: String,
}

/// `podgraft policy crd`.
#[derive(Debug, Args)]
pub struct Crd {
    /// Whether policies belong to a namespace there
    #[arg(long, value_enum, default_value_t = CrdScope::Namespaced, value_name = "SCOPE")]
    pub scope: CrdScope,
}

/// Whether policies belong to a namespace in a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CrdScope {
    /// Each touches its own namespace
    #[value(name = "Namespaced", alias = "namespaced")]
    Namespaced,
    /// Each touches all namespaces
    #[value(name = "Cluster", alias = "cluster")]
    Cluster,
}
