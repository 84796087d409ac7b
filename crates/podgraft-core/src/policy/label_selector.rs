//! Label selectors of Kubernetes.

use std::fmt;
use std::ops::Range;

/// A label selector of Kubernetes: all requirements must hold. An entry of `matchLabels` is an `In` requirement with
/// one value.
#[derive(Debug, Clone, Default)]
pub struct LabelSelector {
    /// The requirements, in the policy's order.
    pub requirements: Vec<SelectorRequirement>,
}

/// One requirement of a label selector.
#[derive(Debug, Clone)]
pub struct SelectorRequirement {
    /// Its byte range in the policy's file.
    pub at: Range<usize>,
    /// The key of the label.
    pub key: String,
    /// The comparison.
    pub operator: SelectorOperator,
    /// The values for `In` and `NotIn`.
    pub values: Vec<String>,
}

/// The operators of label selectors:
/// <https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors>
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SelectorOperator {
    /// The label exists with one of the values.
    In,
    /// The label is absent, or has another value.
    NotIn,
    /// The label exists.
    Exists,
    /// The label is absent.
    DoesNotExist,
}

impl SelectorRequirement {
    /// Whether the value of a label, or its absence, meets the requirement.
    pub(crate) fn is_met(&self, value: Option<&str>) -> bool {
        let is_listed = |value: &str| self.values.iter().any(|wanted| wanted == value);
        match self.operator {
            SelectorOperator::In => value.is_some_and(is_listed),
            SelectorOperator::NotIn => !value.is_some_and(is_listed),
            SelectorOperator::Exists => value.is_some(),
            SelectorOperator::DoesNotExist => value.is_none(),
        }
    }
}

/// The requirement for messages, such as `runtime=java`.
impl fmt::Display for SelectorRequirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SelectorRequirement { key, values, .. } = self;
        let listed = values.join(", ");
        match self.operator {
            SelectorOperator::In if values.len() == 1 => write!(f, "{key}={listed}"),
            SelectorOperator::In => write!(f, "{key} in ({listed})"),
            SelectorOperator::NotIn => write!(f, "{key} not in ({listed})"),
            SelectorOperator::Exists => f.write_str(key),
            SelectorOperator::DoesNotExist => write!(f, "!{key}"),
        }
    }
}
