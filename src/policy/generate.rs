//! What a policy says of other objects than its workloads: checksums of them, and objects to generate.

use std::ops::Range;
use std::sync::Arc;

use super::ResourceTemplate;
use super::expression::Expression;
use super::template::Template;

/// An entry of `checksums`: an annotation with a checksum.
#[derive(Debug, Clone, PartialEq)]
pub struct ChecksumAnnotation {
    /// Where it stands in the policy's file.
    pub at: Range<usize>,
    /// The annotation's key.
    pub annotation: ChecksumKey,
    /// Names of ConfigMaps.
    pub config_maps: Vec<String>,
    /// Names of Secrets.
    pub secrets: Vec<String>,
    /// All ConfigMaps that the pod template names.
    pub all_config_maps: bool,
    /// All Secrets that the pod template names.
    pub all_secrets: bool,
    /// Only these keys. Empty: all.
    pub keys: Vec<String>,
    /// Without an object or a key of it: no annotation, instead of an error.
    pub skips_missing: bool,
}

/// The key of a checksum's annotation.
#[derive(Debug, Clone, PartialEq)]
pub enum ChecksumKey {
    /// One annotation for all objects.
    Text(String),
    /// One for each object: a text with `ref.kind` or `ref.name` in it.
    OfEach(Arc<Template>),
}

/// One entry of `generate`.
#[derive(Debug, Clone)]
pub struct GenerateEntry {
    /// Where it stands in the policy's file.
    pub at: Range<usize>,
    /// It must come to `true`.
    pub when: Option<Expression>,
    /// The object.
    pub resource: Arc<ResourceTemplate>,
}
