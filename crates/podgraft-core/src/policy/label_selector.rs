//! Label selectors of Kubernetes.

use serde_json::Value;
use std::fmt;
use std::ops::Range;

use super::document::Document;
use super::names;
use crate::diagnostic::{Code, Diagnostic};
use crate::yaml::value::Path;

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

impl LabelSelector {
    /// Reads a selector from the value at a path, which keeps the order of `matchLabels`. `None` if there is none.
    pub(crate) fn read(
        document: &Document<'_>,
        at: &Path,
        problems: &mut Vec<Diagnostic>,
    ) -> Option<Self> {
        let selector = at.get(&document.value)?;
        let labels = selector.get("matchLabels").and_then(Value::as_object);
        let mut requirements = Vec::new();
        for (key, value) in labels.into_iter().flatten() {
            let path = at.key("matchLabels").key(key);
            let value = value
                .as_str()
                .expect("the schema checked that labels are strings");
            check_label(document, key, value, &path, problems);
            requirements.push(SelectorRequirement {
                at: document.span(&path),
                key: key.clone(),
                operator: SelectorOperator::In,
                values: vec![value.into()],
            });
        }
        for path in document.entries(&at.key("matchExpressions")) {
            requirements.extend(SelectorRequirement::read(document, &path, problems));
        }
        Some(LabelSelector { requirements })
    }
}

/// Checks the key and the value of a label.
pub(super) fn check_label(
    document: &Document<'_>,
    key: &str,
    value: &str,
    at: &Path,
    problems: &mut Vec<Diagnostic>,
) {
    problems.extend(document.invalid(at, names::check_label_key(key)));
    if let Err(rule) = names::check_label_value(value) {
        let message = format!("the value of `{key}` {rule}");
        problems.push(document.invalid_value(at, message));
    }
}

impl SelectorRequirement {
    /// Reads an entry of `matchExpressions`.
    fn read(document: &Document<'_>, at: &Path, problems: &mut Vec<Diagnostic>) -> Option<Self> {
        let expression = at.get(&document.value)?;
        let key = expression.get("key")?.as_str()?;
        let values = expression.get("values").and_then(Value::as_array);
        let values = values.into_iter().flatten().filter_map(Value::as_str);
        let values: Vec<String> = values.map(str::to_owned).collect();
        problems.extend(document.invalid(&at.key("key"), names::check_label_key(key)));
        let (operator, takes_values) = match expression.get("operator")?.as_str()? {
            "In" => (SelectorOperator::In, true),
            "NotIn" => (SelectorOperator::NotIn, true),
            "Exists" => (SelectorOperator::Exists, false),
            "DoesNotExist" => (SelectorOperator::DoesNotExist, false),
            unknown => {
                let message = format!("unknown label selector operator `{unknown}`");
                let problem = document.error(Code::BadPolicy, &at.key("operator"), message);
                problems.push(problem.help("valid operators: In, NotIn, Exists, DoesNotExist"));
                return None;
            }
        };
        if takes_values == values.is_empty() {
            let rule = match takes_values {
                true => "requires `values`",
                false => "does not accept `values`",
            };
            let message = format!("the operator {operator:?} {rule}");
            problems.push(document.error(Code::Invalid, at, message));
        }
        Some(SelectorRequirement {
            at: document.span(at),
            key: key.to_owned(),
            operator,
            values,
        })
    }

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
