//! Checks an expression when its policy is read: every name in it must be known. Also rewrites calls so that their cost
//! is counted, and so that functions of the crate without limits are replaced by limited ones.

use cel::common::ast::operators::{
    CONDITIONAL, IN, INDEX, LOGICAL_AND, LOGICAL_OR, OPT_INDEX, OPT_SELECT,
};
use cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, SelectExpr,
};
use std::collections::BTreeSet;

use super::kubernetes::{NAMESPACES, ON_LISTS, nodes_of};
use super::library::{CHARGED, CHARGED_EACH, WALKED, is_free};
use super::macros::{call, is_binding, lazily, literal};
use super::memo::{FieldReads, Memo, is_label_map};
use super::{FieldReferences, MAX_DEPTH, MAX_WALKS, ObjectKinds, cost, replacements, too_deep};
use crate::diagnostic::{Code, unless};
use crate::manifest::workload::group_of;
use crate::policy::template::TemplateError;
use crate::policy::vocabulary::{FieldAccess, Vocabulary, check_function};

/// Walks the tree of an expression, checks its names and rewrites its calls.
pub(super) struct ExpressionChecker<'c> {
    vocabulary: &'c Vocabulary,
    /// Names that are bound by comprehensions around the current node.
    bound: Vec<String>,
    /// The number of lists that are walked around the current node.
    walks: usize,
    depth: usize,
    references: FieldReferences,
    kinds: ObjectKinds,
    /// Root and field of each presence test seen so far, such as `has(params.a)`.
    tested: BTreeSet<(String, String)>,
    /// Some operand may be left unevaluated, as with `&&`.
    is_lazy: bool,
    faults: Vec<TemplateError>,
}

/// A parsed and checked expression.
#[derive(Debug)]
pub(super) struct ParsedExpression {
    pub tree: IdedExpr,
    /// The names and fields that have to be bound before evaluation.
    pub references: FieldReferences,
    /// The kinds of objects that it looks up.
    pub kinds: ObjectKinds,
    /// Fields that it tests for presence. Their values must be known before evaluation; others may be missing if
    /// nothing reads them. `None` if every field must be known.
    pub tested: Option<FieldReferences>,
    /// Results of earlier evaluations.
    pub memo: Option<Memo>,
}

impl ParsedExpression {
    /// Whether it calls `lookup`.
    pub(super) fn looks_up(&self) -> bool {
        !self.kinds.is_empty()
    }
}

impl<'c> ExpressionChecker<'c> {
    /// A checker that has seen nothing yet.
    pub(super) fn new(vocabulary: &'c Vocabulary) -> Self {
        ExpressionChecker {
            vocabulary,
            bound: Vec::new(),
            walks: 0,
            depth: 0,
            references: FieldReferences::new(),
            kinds: ObjectKinds::new(),
            tested: BTreeSet::new(),
            is_lazy: false,
            faults: Vec::new(),
        }
    }

    /// Checks and rewrites a parsed tree. The error has all problems.
    pub(super) fn checked(
        mut self,
        mut tree: IdedExpr,
    ) -> Result<ParsedExpression, Vec<TemplateError>> {
        // Before the rewriting, which hides the fields in calls of its own.
        let reads = FieldReads::of(&tree);
        self.expression(&mut tree);
        unless(self.faults, ())?;
        let tested = self.tested.into_iter();
        let tested = tested.map(|(root, field)| (root, Some(field))).collect();
        Ok(ParsedExpression {
            memo: reads
                .memo(&self.references)
                .filter(|_| self.kinds.is_empty()),
            tree,
            references: self.references,
            kinds: self.kinds,
            tested: self.is_lazy.then_some(tested),
        })
    }

    fn expression(&mut self, tree: &mut IdedExpr) {
        self.depth += 1;
        // Reported once, on the way down.
        if self.depth == MAX_DEPTH + 1 {
            self.faults.push(too_deep());
        }
        match &mut tree.expr {
            Expr::Unspecified | Expr::Literal(_) => {}
            Expr::Ident(name) => self.name(name),
            Expr::Select(select) => self.select(select),
            Expr::Call(call) => {
                self.call(call);
                self.is_lazy |= matches!(
                    call.func_name.as_str(),
                    CONDITIONAL | LOGICAL_AND | LOGICAL_OR
                );
                let is_lazy = matches!(call.func_name.as_str(), "or" | "orValue")
                    && call.target.is_some()
                    && call.args.len() == 1
                    && matches!(call.args[0].expr, Expr::Call(_) | Expr::Select(_));
                if is_lazy {
                    self.is_lazy = true;
                    *tree = lazily(std::mem::take(call));
                }
            }
            Expr::Comprehension(comprehension) => self.comprehension(comprehension),
            Expr::List(list) => list
                .elements
                .iter_mut()
                .for_each(|entry| self.add_charge(entry, CHARGED)),
            Expr::Map(map) => map
                .entries
                .iter_mut()
                .for_each(|entry| self.entry(&mut entry.expr)),
            Expr::Struct(message) => {
                let help = "use a map instead: `{'key': value}`";
                self.fault(format!("unknown type `{}`", message.type_name), help);
            }
        }
        self.depth -= 1;
    }

    fn fault(&mut self, message: String, help: &str) {
        let fault = TemplateError::new(Code::BadExpression, message, help);
        self.faults.push(fault);
    }

    fn entry(&mut self, entry: &mut EntryExpr) {
        match entry {
            EntryExpr::StructField(field) => self.expression(&mut field.value),
            EntryExpr::MapEntry(entry) => {
                self.expression(&mut entry.key);
                self.add_charge(&mut entry.value, CHARGED);
            }
        }
    }

    fn name(&mut self, name: &str) {
        if self.is_bound(name) {
            return;
        }
        match self.vocabulary.check_root(name) {
            Ok(()) => {
                // `variables` as a whole is all variables defined above, which are the ones known so far.
                let above = self
                    .vocabulary
                    .variables
                    .keys()
                    .filter(|_| name == "variables");
                self.references
                    .extend(above.map(|variable| (name.to_owned(), Some(variable.clone()))));
                self.references.insert((name.to_owned(), None));
            }
            Err(fault) => self.faults.push(fault),
        }
    }

    /// Whether a name is bound by a comprehension. Names with `@` are only made by rewriting.
    fn is_bound(&self, name: &str) -> bool {
        name.starts_with('@') || self.bound.iter().any(|bound| bound == name)
    }

    fn select(&mut self, select: &mut SelectExpr) {
        let asked = match select.test {
            true => FieldAccess::Optional,
            false => FieldAccess::Required,
        };
        let root = free_name(&select.operand).filter(|name| !self.is_bound(name));
        match root.map(str::to_owned) {
            Some(root) => self.field(&root, &select.field, asked),
            None => {
                if let Expr::Select(inner) = &select.operand.expr
                    && free_name(&inner.operand) == Some("containers")
                    && !self.is_bound("containers")
                    && let Err(fault) =
                        self.vocabulary
                            .check_field("container", &select.field, asked)
                {
                    self.faults.push(fault);
                }
                self.expression(&mut select.operand);
            }
        }
    }

    fn field(&mut self, root: &str, field: &str, asked: FieldAccess) {
        // A plain read after a presence test is taken to be guarded by it: `has(params.a) ? params.a : ...`.
        let is_tested = !self.tested.insert((root.to_owned(), field.to_owned()));
        let asked = match asked {
            FieldAccess::Required if !is_tested => {
                self.tested.remove(&(root.to_owned(), field.to_owned()));
                FieldAccess::Required
            }
            FieldAccess::Required | FieldAccess::Optional => FieldAccess::Optional,
        };
        let checked = self
            .vocabulary
            .check_root(root)
            .and_then(|()| self.vocabulary.check_field(root, field, asked));
        match checked {
            Ok(()) => {
                self.references
                    .insert((root.to_owned(), Some(field.to_owned())));
            }
            Err(fault) => self.faults.push(fault),
        }
    }

    fn call(&mut self, call: &mut CallExpr) {
        if let Some((root, field, asked)) = self.field_access(call) {
            return self.field(&root, &field, asked);
        }
        let namespace = call.target.as_deref().and_then(free_name);
        let namespace = namespace.filter(|name| NAMESPACES.contains(name) && !self.is_bound(name));
        let is_qualified = namespace.is_some();
        let name = match namespace {
            Some(namespace) => format!("{namespace}.{}", call.func_name),
            None => call.func_name.clone(),
        };
        let is_operator = !call
            .func_name
            .starts_with(|char: char| char.is_ascii_alphabetic());
        if !is_operator && let Err(fault) = check_function(&name) {
            self.faults.push(fault);
            // It may be an unknown macro, so names in its arguments would be unknown, too.
            return;
        }
        if name == "lookup" {
            self.lookup(call);
        }
        if let Some(target) = call.target.as_mut().filter(|_| !is_qualified) {
            let charge = match call.func_name.as_str() {
                "split" => CHARGED_EACH,
                _ => CHARGED,
            };
            self.add_charge(target, charge);
        }
        self.arguments(call);
        if let Some(name) = replacements::name_for(&call.func_name, call.args.len()) {
            call.func_name = name.to_owned();
        }
    }

    /// The root and field of an access that is not a plain selection: `pod['labels']`, `pod.?labels`.
    fn field_access(&self, call: &CallExpr) -> Option<(String, String, FieldAccess)> {
        let asked = match call.func_name.as_str() {
            INDEX => FieldAccess::Required,
            OPT_INDEX | OPT_SELECT => FieldAccess::Optional,
            _ => return None,
        };
        let [of, key] = call.args.as_slice() else {
            return None;
        };
        let Expr::Literal(LiteralValue::String(field)) = &key.expr else {
            return None;
        };
        let root = free_name(of).filter(|root| !self.is_bound(root))?;
        Some((root.to_owned(), field.inner().to_owned(), asked))
    }

    /// Limits the length of a list that a function walks, and charges for the arguments.
    fn arguments(&mut self, call: &mut CallExpr) {
        let is_free = is_free(&call.func_name);
        let is_bound = self.is_bound("pod") || self.is_bound("workload");
        let is_in = call.func_name == IN && !is_bound;
        let listed = match &mut call.target {
            Some(target) => Some(&mut **target),
            None => call.args.first_mut(),
        };
        if let Some(listed) = listed.filter(|_| ON_LISTS.contains(&call.func_name.as_str())) {
            limit(listed, nodes_of(&call.func_name));
        }
        for arg in &mut call.args {
            if is_free || is_in && is_label_map(arg) {
                self.expression(arg)
            } else {
                self.add_charge(arg, CHARGED)
            }
        }
    }

    /// Collects the kind of a `lookup`. It must be a literal, because only objects of the policy's kinds are read.
    fn lookup(&mut self, call: &CallExpr) {
        let text = |at: usize| match &call.args.get(at)?.expr {
            Expr::Literal(LiteralValue::String(text)) => Some(text.inner().to_owned()),
            _ => None,
        };
        match (text(0), text(1)) {
            (Some(api_version), Some(kind)) => {
                let group = group_of(&api_version).to_owned();
                self.kinds.insert((group, kind));
            }
            _ => {
                let message = "the apiVersion and kind of `lookup` must be string literals";
                let help = "write `lookup('v1', 'ServiceAccount', name)`: only the name and the \
                            namespace can be computed";
                self.fault(message.to_owned(), help);
            }
        }
    }

    /// Checks an expression and wraps it in a call that charges for its value, which is read or copied as a whole.
    fn add_charge(&mut self, tree: &mut IdedExpr, charge: &str) {
        self.expression(tree);
        let is_accumulator = free_name(tree).is_some_and(|name| name.starts_with('@'));
        if is_accumulator || matches!(tree.expr, Expr::Literal(_)) && charge == CHARGED {
            return;
        }
        *tree = call(charge, vec![std::mem::take(tree)]);
    }

    /// Whether a list comes from the policy alone, written out or made from its own text. Its length is then limited by
    /// that of the policy, and a walk over it does not count as nested.
    fn is_from_policy(&self, list: &IdedExpr) -> bool {
        match &list.expr {
            Expr::List(_) | Expr::Literal(_) | Expr::Map(_) => true,
            Expr::Select(select) if free_name(&select.operand) == Some("variables") => {
                let uses = self.vocabulary.uses("variables", Some(&select.field));
                !self.is_bound("variables") && !uses.outside
            }
            Expr::Comprehension(walk) => self.is_from_policy(&walk.iter_range),
            Expr::Call(call) if call.func_name == "split" => call
                .target
                .as_ref()
                .is_some_and(|text| self.is_from_policy(text)),
            _ => false,
        }
    }

    fn comprehension(&mut self, walk: &mut ComprehensionExpr) {
        let is_from_policy = self.is_from_policy(&walk.iter_range);
        self.expression(&mut walk.iter_range);
        self.expression(&mut walk.accu_init);
        let before = self.bound.len();
        self.bound
            .extend([walk.iter_var.clone(), walk.accu_var.clone()]);
        self.bound.extend(walk.iter_var2.clone());
        let is_binding = is_binding(walk);
        let is_walk = !is_binding && !is_from_policy;
        self.walks += usize::from(is_walk);
        if self.walks == MAX_WALKS + 1 {
            let help = "move the inner iteration into `variables`";
            let message = format!(
                "the expression iterates over nested lists more than {MAX_WALKS} levels deep"
            );
            self.fault(message, help);
        }
        for part in [&mut walk.loop_cond, &mut walk.loop_step, &mut walk.result] {
            self.expression(part);
        }
        self.walks -= usize::from(is_walk);
        self.bound.truncate(before);
        if is_binding {
            return;
        }
        let nodes = cost::nodes_per_entry(walk);
        limit(&mut walk.iter_range, nodes);
    }
}

/// Wraps a list in a call that limits its length, and charges `nodes` steps for each entry.
fn limit(list: &mut IdedExpr, nodes: i64) {
    let nodes = literal(LiteralValue::Int(nodes.into()));
    *list = call(WALKED, vec![std::mem::take(list), nodes]);
}

/// The name, if an expression is nothing but a name.
fn free_name(tree: &IdedExpr) -> Option<&str> {
    match &tree.expr {
        Expr::Ident(name) => Some(name),
        _ => None,
    }
}
