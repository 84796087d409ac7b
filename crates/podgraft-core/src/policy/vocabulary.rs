//! The names that expressions may use, and error messages for all others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use super::expression::ObjectKinds;
use super::reference::functions;
use super::schema::{did_you_mean, meant, nearest};
use super::template::{Evaluated, ParamValues, TemplateError};
use crate::diagnostic::Code;

/// Root names of expressions. Roots with a fixed set of fields list them; an empty list allows any field.
pub(crate) const ROOTS: [(&str, &[&str]); 11] = [
    ("params", &[]),
    ("variables", &[]),
    (
        "workload",
        &[
            "name",
            "kind",
            "apiVersion",
            "namespace",
            "labels",
            "annotations",
            "selector",
        ],
    ),
    ("pod", &["labels", "annotations", "spec"]),
    (
        "container",
        &[
            "name",
            "image",
            "args",
            "command",
            "env",
            "envFrom",
            "imagePullPolicy",
            "lifecycle",
            "livenessProbe",
            "ports",
            "readinessProbe",
            "resizePolicy",
            "resources",
            "restartPolicy",
            "restartPolicyRules",
            "securityContext",
            "startupProbe",
            "stdin",
            "stdinOnce",
            "terminationMessagePath",
            "terminationMessagePolicy",
            "tty",
            "type",
            "volumeDevices",
            "volumeMounts",
            "workingDir",
        ],
    ),
    ("containers", &["first"]),
    ("object", &[]),
    ("namespaceObject", &[]),
    ("source", &[]),
    ("sources", &[]),
    ("ref", &["kind", "name"]),
];

/// Type names, which `type(x)` can be compared with.
const TYPES: [&str; 10] = [
    "bool",
    "bytes",
    "double",
    "int",
    "list",
    "map",
    "null_type",
    "string",
    "type",
    "uint",
];

/// The names that a policy defines, and the state of its resource.
#[derive(Debug, Clone, Default)]
pub struct Vocabulary {
    /// The parameters and their values.
    pub params: ParamValues,
    /// Parameters without a value yet. What reads them is evaluated later.
    pub open: BTreeSet<String>,
    /// The variables defined so far, and what each depends on.
    pub variables: BTreeMap<String, ExpressionUses>,
    /// Whether `source` can be read.
    pub source: SourceState,
    /// The kinds of objects that its expressions look up. Shared, because compiling an expression adds to it.
    pub kinds: Arc<Mutex<ObjectKinds>>,
}

/// Whether the policy has `source`, and whether its resource is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SourceState {
    /// The policy has no `source`.
    #[default]
    NoSource,
    /// The policy has `source` and is read without a resource.
    Unbound,
    /// The policy is read for one resource of its `source`.
    Bound,
}

/// What an expression depends on, directly or through variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExpressionUses {
    /// The workload, or a value that is not known yet. Then it cannot be evaluated when the policy is read.
    pub workload: bool,
    /// The chosen container.
    pub container: bool,
    /// The object of a checksum (`ref`).
    pub reference: bool,
    /// Something outside of the policy's own text: a parameter, the resource or the workload.
    pub outside: bool,
    /// A variable that is wrong, which was reported.
    pub broken: bool,
}

impl ExpressionUses {
    /// The union of two sets of dependencies.
    pub fn and(self, other: Self) -> Self {
        ExpressionUses {
            workload: self.workload || other.workload,
            container: self.container || other.container,
            reference: self.reference || other.reference,
            outside: self.outside || other.outside,
            broken: self.broken || other.broken,
        }
    }
}

/// How an expression accesses a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldAccess {
    /// `a.b`: an absent field is an error.
    Required,
    /// `has(a.b)` or `a.?b`: the field may be absent.
    Optional,
}

impl Vocabulary {
    /// Adds kinds of objects that an expression looks up.
    pub(crate) fn note_kinds(&self, kinds: impl IntoIterator<Item = (String, String)>) {
        let mut known = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        known.extend(kinds);
    }

    /// The kinds of objects that the expressions look up.
    pub(crate) fn looked_up(&self) -> ObjectKinds {
        let known = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        known.clone()
    }

    /// Whether a value is missing that will be known when the policy is applied.
    pub fn is_open(&self) -> bool {
        !self.open.is_empty() || self.source == SourceState::Unbound
    }

    /// Checks a root name that no comprehension binds.
    pub(crate) fn check_root(&self, name: &str) -> Evaluated<()> {
        if matches!(name, "source" | "sources") && self.source == SourceState::NoSource {
            let help = "set `spec.source` to the kind of resource that the policy is for";
            let message = format!("`{name}` is only available in a policy with `spec.source`");
            return Err(TemplateError::new(Code::BadExpression, message, help));
        }
        if ROOTS.iter().any(|(root, _)| *root == name) || TYPES.contains(&name) {
            return Ok(());
        }
        let names = ROOTS.iter().map(|(root, _)| *root);
        Err(TemplateError::new(
            Code::BadExpression,
            format!("unknown name `{name}`"),
            meant(name, names, "valid names:"),
        ))
    }

    /// Checks a field of a root name.
    pub(crate) fn check_field(&self, root: &str, field: &str, asked: FieldAccess) -> Evaluated<()> {
        match (root, fields_of(root)) {
            ("params", _) => self.check_param(field, asked),
            ("variables", _) => {
                check_name(field, self.variables.keys().map(String::as_str), || {
                    let message = format!("there is no variable `{field}` before this point");
                    let help = "define it under `variables`, before it is used";
                    TemplateError::new(Code::BadExpression, message, help)
                })
            }
            (_, []) => Ok(()),
            (_, fields) => check_name(field, fields.iter().copied(), || {
                let message = format!("`{root}` has no field `{field}`");
                let help = format!("valid fields: {}", fields.join(", "));
                TemplateError::new(Code::BadExpression, message, help)
            }),
        }
    }

    fn check_param(&self, name: &str, asked: FieldAccess) -> Evaluated<()> {
        match self.params.get(name) {
            Some(None) if asked == FieldAccess::Required && !self.open.contains(name) => {
                let help = format!("set it with `--param {name}=VALUE`, or add a `default`");
                Err(TemplateError::new(
                    Code::BadParam,
                    format!("the parameter `{name}` has no value"),
                    help,
                ))
            }
            Some(_) => Ok(()),
            None => check_name(name, self.params.keys().map(String::as_str), || {
                let message = format!("the policy has no parameter `{name}`");
                TemplateError::new(Code::BadExpression, message, "declare it under `params`")
            }),
        }
    }

    /// The dependencies of a root name, or of one of its fields.
    pub fn uses(&self, root: &str, field: Option<&str>) -> ExpressionUses {
        let is_type = TYPES.contains(&root);
        let uses = ExpressionUses {
            workload: match (root, field) {
                // An open parameter is treated like the workload: the expression waits for it.
                ("params", Some(field)) => self.open.contains(field),
                ("params", None) => !self.open.is_empty(),
                ("source" | "sources", _) => self.source == SourceState::Unbound,
                _ => !is_type,
            },
            container: root == "container",
            reference: root == "ref",
            outside: !is_type,
            broken: false,
        };
        match (root, field) {
            ("variables", Some(field)) => self.variables.get(field).copied().unwrap_or_default(),
            ("variables", None) => self
                .variables
                .values()
                .fold(ExpressionUses::default(), |total, uses| total.and(*uses)),
            _ => uses,
        }
    }
}

/// Checks that a name is known. The help of the fault gives way to the nearest name.
fn check_name<'n>(
    name: &str,
    known: impl Iterator<Item = &'n str> + Clone,
    fault: impl FnOnce() -> TemplateError,
) -> Evaluated<()> {
    if known.clone().any(|candidate| candidate == name) {
        return Ok(());
    }
    let mut fault = fault();
    if let Some(near) = nearest(name, known) {
        fault.problem.help = Some(did_you_mean(near));
    }
    Err(fault)
}

/// The fixed fields of a root name; empty if it can have any field.
pub(crate) fn fields_of(root: &str) -> &'static [&'static str] {
    ROOTS
        .iter()
        .find(|(name, _)| *name == root)
        .map_or(&[], |(_, fields)| fields)
}

/// Checks the name of a function or method.
pub(crate) fn check_function(name: &str) -> Evaluated<()> {
    match functions().find(|function| function.name == name) {
        // The parser expands macros, so a call that is left has the wrong form.
        Some(function) if function.is_macro() => Err(TemplateError::new(
            Code::BadExpression,
            format!("invalid call of `{name}`"),
            format!("write `{}`", function.signature.replace("), ", ")` or `")),
        )),
        Some(_) => Ok(()),
        None => {
            let names: Vec<&str> = functions().map(|function| function.name).collect();
            check_name(name, names.into_iter(), || {
                let message = format!("unknown function `{name}`");
                let help = "run `podgraft policy functions` to list all functions";
                TemplateError::new(Code::BadExpression, message, help)
            })
        }
    }
}
