//! What a policy does with objects other than its workloads: checksums of objects, and generated objects.

use std::ops::Range;
use std::sync::Arc;

use super::ResourceTemplate;
use super::expression::Expression;
use super::template::Template;

/// An entry of `checksums`: an annotation with the checksum of objects.
#[derive(Debug, Clone, PartialEq)]
pub struct ChecksumAnnotation {
    /// Its byte range in the policy's file.
    pub at: Range<usize>,
    /// The key of the annotation.
    pub annotation: ChecksumKey,
    /// Names of ConfigMaps to hash.
    pub config_maps: Vec<String>,
    /// Names of Secrets to hash.
    pub secrets: Vec<String>,
    /// Also hashes all ConfigMaps that the pod template refers to.
    pub all_config_maps: bool,
    /// Also hashes all Secrets that the pod template refers to.
    pub all_secrets: bool,
    /// The data keys to hash. Empty for all.
    pub keys: Vec<String>,
    /// If an object or a key is missing, the annotation is left out; otherwise that is an error.
    pub skips_missing: bool,
}

/// The key of a checksum annotation.
#[derive(Debug, Clone, PartialEq)]
pub enum ChecksumKey {
    /// One annotation for all objects.
    Text(String),
    /// One annotation for each object: a template with `ref.kind` or `ref.name`.
    OfEach(Arc<Template>),
}

/// An entry of `generate`.
#[derive(Debug, Clone)]
pub struct GenerateEntry {
    /// Its byte range in the policy's file.
    pub at: Range<usize>,
    /// The condition, which must be `true`; `None` to generate always.
    pub when: Option<Expression>,
    /// The object to generate.
    pub resource: Arc<ResourceTemplate>,
}
