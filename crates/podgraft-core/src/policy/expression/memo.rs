//! Remembers results of expressions by the values that they read: most workloads of a fleet are alike where a policy
//! looks.

use cel::common::ast::operators::{IN, INDEX, OPT_INDEX, OPT_SELECT};
use cel::common::ast::{Expr, IdedExpr, LiteralValue};
use cel::common::types::{CelDouble, CelList, CelMap, CelMapKey, CelOptional, CelString};
use cel::common::value::{FromVal, Val};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, OnceLock};

use super::cost::parts;
use super::evaluator::Bindings;
use super::shared::SharedValue;
use super::{ExpressionResult, FieldReferences, WHOLE};

/// The number of results kept for each expression.
const CACHE_SIZE: usize = 4;

/// An input of an expression: a field, or some entries of a field that is a map.
#[derive(Debug, Clone)]
struct MemoInput {
    root: String,
    field: String,
    /// The entries that are read; `None` for the whole field.
    keys: Option<Vec<CelMapKey<'static>>>,
}

/// The value of an input during an evaluation.
#[derive(Debug)]
enum MemoRead {
    All(Option<SharedValue>),
    Entries(Vec<Option<SharedValue>>),
}

/// The result of an evaluation and the values that it read.
#[derive(Debug)]
pub(super) struct MemoEntry {
    read: Vec<MemoRead>,
    /// The value of the expression.
    pub value: SharedValue,
    /// The steps that the evaluation took.
    pub steps: usize,
    /// The value as JSON, with the key of the variables that determined its key order (see `Evaluator::evaluate`).
    pub outcome: OnceLock<(usize, ExpressionResult)>,
}

/// The last results of an expression, most recently used first.
#[derive(Debug)]
pub(super) struct Memo {
    inputs: Vec<MemoInput>,
    cache: Mutex<Vec<Arc<MemoEntry>>>,
}

impl Memo {
    /// The result of an earlier evaluation with the same inputs.
    pub(super) fn find(&self, bound: &Bindings) -> Option<Arc<MemoEntry>> {
        // Never waits: if another thread has the lock, the expression is just evaluated again.
        let mut kept = self.cache.try_lock().ok()?;
        let is_match = |remembered: &Arc<MemoEntry>| {
            let mut both = self.inputs.iter().zip(&remembered.read);
            both.all(|(input, read)| input.is_unchanged(bound, read))
        };
        let at = kept.iter().position(is_match)?;
        kept[..=at].rotate_right(1);
        Some(Arc::clone(&kept[0]))
    }

    /// Stores a result in place of the least recently used one.
    pub(super) fn remember(
        &self,
        bound: &Bindings,
        value: &SharedValue,
        steps: usize,
    ) -> Arc<MemoEntry> {
        let remembered = Arc::new(MemoEntry {
            read: self.inputs.iter().map(|input| input.read(bound)).collect(),
            value: value.clone(),
            steps,
            outcome: OnceLock::new(),
        });
        if let Ok(mut kept) = self.cache.try_lock() {
            kept.truncate(CACHE_SIZE - 1);
            kept.insert(0, Arc::clone(&remembered));
        }
        remembered
    }
}

impl MemoInput {
    fn value<'b>(&self, bound: &'b Bindings) -> Option<&'b SharedValue> {
        let fields = bound.get(&self.root)?;
        let (_, value) = fields.iter().find(|(field, _)| *field == self.field)?;
        Some(value)
    }

    fn entries<'b>(
        &self,
        bound: &'b Bindings,
    ) -> Option<(&[CelMapKey<'static>], &'b CelMap<'static>)> {
        let map = self.value(bound)?.downcast_ref::<CelMap<'static>>()?;
        Some((self.keys.as_deref()?, map))
    }

    fn read(&self, bound: &Bindings) -> MemoRead {
        let Some((keys, map)) = self.entries(bound) else {
            return MemoRead::All(self.value(bound).cloned());
        };
        let to_shared = |value: &(dyn Val + 'static)| SharedValue::from(value.clone_as_boxed());
        let entries = keys.iter().map(|key| entry(map, key).map(to_shared));
        MemoRead::Entries(entries.collect())
    }

    fn is_unchanged(&self, bound: &Bindings, read: &MemoRead) -> bool {
        let both = |left: Option<&dyn Val>, right: Option<&SharedValue>| match (left, right) {
            (Some(left), Some(right)) => is_same(left, &**right),
            (left, right) => left.is_none() && right.is_none(),
        };
        match (self.entries(bound), read) {
            (None, MemoRead::All(read)) => {
                both(self.value(bound).map(|value| &**value), read.as_ref())
            }
            (Some((keys, map)), MemoRead::Entries(read)) => keys
                .iter()
                .zip(read)
                .all(|(key, read)| both(entry(map, key), read.as_ref())),
            (None, MemoRead::Entries(_)) | (Some(_), MemoRead::All(_)) => false,
        }
    }
}

fn entry<'m>(
    map: &'m CelMap<'static>,
    key: &CelMapKey<'static>,
) -> Option<&'m (dyn Val + 'static)> {
    map.inner().get(key).map(AsRef::as_ref)
}

/// Both values as one type, if they have it.
fn downcast_both<'b, 'v, T: FromVal<'b, 'v>>(
    left: &'b (dyn Val + 'v),
    right: &'b (dyn Val + 'v),
) -> Option<(&'b T, &'b T)> {
    left.downcast_ref().zip(right.downcast_ref())
}

/// Whether no expression can tell two values apart: `1` and `1.0` differ, and so do `0.0` and `-0.0`.
fn is_same<'v>(left: &(dyn Val + 'v), right: &(dyn Val + 'v)) -> bool {
    if let Some((left, right)) = downcast_both::<CelString>(left, right) {
        return left.inner() == right.inner();
    }
    if let Some((left, right)) = downcast_both::<CelList>(left, right) {
        let (left, right) = (left.inner(), right.inner());
        let mut items = left.iter().zip(right);
        return std::ptr::eq(left, right)
            || left.len() == right.len()
                && items.all(|(left, right)| is_same(left.as_ref(), right.as_ref()));
    }
    if let Some((left, right)) = downcast_both::<CelMap>(left, right) {
        let (left, right) = (left.inner(), right.inner());
        let mut entries = left.iter();
        return std::ptr::eq(left, right)
            || left.len() == right.len()
                && entries.all(|(key, value)| {
                    let right = right.get(key);
                    right.is_some_and(|right| is_same(value.as_ref(), right.as_ref()))
                });
    }
    // By bits, so that NaN is itself.
    if let Some((left, right)) = downcast_both::<CelDouble>(left, right) {
        return left.inner().to_bits() == right.inner().to_bits();
    }
    if let Some((left, right)) = downcast_both::<CelOptional>(left, right) {
        return match (left.option(), right.option()) {
            (Some(left), Some(right)) => is_same(left, right),
            (left, right) => left.is_none() && right.is_none(),
        };
    }
    left.get_type() == right.get_type() && left.equals(right)
}

/// Collects which fields, and which entries of them, an expression reads.
#[derive(Default)]
pub(super) struct FieldReads {
    keys: BTreeMap<(String, String), BTreeSet<String>>,
    /// Fields that are also read otherwise than by a literal key.
    whole: BTreeSet<(String, String)>,
    /// Names that are bound by comprehensions.
    bound: BTreeSet<String>,
}

impl FieldReads {
    /// The reads of a parsed expression, before the check rewrites it.
    pub(super) fn of(tree: &IdedExpr) -> Self {
        let mut reads = FieldReads::default();
        reads.visit(tree);
        reads
    }

    /// A memo for the expression. `None` if it reads whole objects, or if a name of it is also bound by a
    /// comprehension: then it cannot be told apart which is meant.
    pub(super) fn memo(&self, references: &FieldReferences) -> Option<Memo> {
        let mut roots = references.iter().map(|(root, _)| root.as_str());
        if roots.any(|root| WHOLE.contains(&root) || self.bound.contains(root)) {
            return None;
        }
        let inputs = references
            .iter()
            .map(|(root, field)| self.memo_input(root, field.as_ref()?));
        Some(Memo {
            inputs: inputs.collect::<Option<_>>()?,
            cache: Mutex::default(),
        })
    }

    fn memo_input(&self, root: &str, field: &str) -> Option<MemoInput> {
        let name = (root.to_owned(), field.to_owned());
        let keys = self.keys.get(&name).filter(|_| !self.whole.contains(&name));
        Some(MemoInput {
            keys: keys.map(|keys| keys.iter().cloned().map(CelMapKey::from).collect()),
            root: name.0,
            field: name.1,
        })
    }

    fn visit(&mut self, tree: &IdedExpr) {
        if let Some(name) = field_of(tree).or_else(|| indexed_field_of(tree)) {
            self.whole.insert(name);
        } else if let Some((name, key)) = key_of(tree) {
            self.keys.entry(name).or_default().insert(key.to_owned());
        } else {
            if let Expr::Comprehension(walk) = &tree.expr {
                let names = [&walk.iter_var, &walk.accu_var].into_iter();
                self.bound.extend(names.chain(&walk.iter_var2).cloned());
            }
            parts(tree).into_iter().for_each(|part| self.visit(part));
        }
    }
}

/// Root and field, if an expression is a field that is read by index, such as `pod['annotations']`.
fn indexed_field_of(tree: &IdedExpr) -> Option<(String, String)> {
    let Expr::Call(call) = &tree.expr else {
        return None;
    };
    match (call.func_name.as_str(), call.args.as_slice()) {
        (INDEX | OPT_INDEX | OPT_SELECT, [of, key]) => match &of.expr {
            Expr::Ident(root) => Some((root.clone(), text_of(key)?.to_owned())),
            _ => None,
        },
        _ => None,
    }
}

/// A field and a literal key of it, if an expression reads nothing but that entry.
fn key_of(tree: &IdedExpr) -> Option<((String, String), &str)> {
    match &tree.expr {
        Expr::Select(select) => Some((field_of(&select.operand)?, &select.field)),
        Expr::Call(call) => match (call.func_name.as_str(), call.args.as_slice()) {
            (INDEX | OPT_INDEX | OPT_SELECT, [map, key]) => field_of(map).zip(text_of(key)),
            (IN, [key, map]) if is_label_map(map) => field_of(map).zip(text_of(key)),
            _ => None,
        },
        _ => None,
    }
}

/// Whether an expression is a map of labels or annotations. `key in` such a map has the same cost whatever else is in
/// it, so only the key is read.
pub(super) fn is_label_map(tree: &IdedExpr) -> bool {
    field_of(tree).is_some_and(|(root, field)| {
        matches!(root.as_str(), "pod" | "workload")
            && matches!(field.as_str(), "annotations" | "labels")
    })
}

/// Root and field, if an expression is `root.field` and not a presence test.
fn field_of(tree: &IdedExpr) -> Option<(String, String)> {
    let Expr::Select(select) = &tree.expr else {
        return None;
    };
    let Expr::Ident(root) = &select.operand.expr else {
        return None;
    };
    (!select.test).then(|| (root.clone(), select.field.clone()))
}

fn text_of(tree: &IdedExpr) -> Option<&str> {
    match &tree.expr {
        Expr::Literal(LiteralValue::String(text)) => Some(text.inner()),
        _ => None,
    }
}
