//! What expressions came to before: most workloads of a fleet say the same where a policy looks.

use cel::common::ast::operators::{IN, INDEX, OPT_INDEX, OPT_SELECT};
use cel::common::ast::{EntryExpr, Expr, IdedExpr, LiteralValue};
use cel::common::types::{
    CelBool, CelDouble, CelInt, CelList, CelMap, CelMapKey, CelNull, CelOptional, CelString,
    CelUInt,
};
use cel::common::value::{FromVal, Val};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, OnceLock};

use super::evaluator::Bound;
use super::shared::Shared;
use super::{Outcome, WHOLE, Wants};

/// Values that are kept of each expression.
const KEPT: usize = 4;

/// What an expression reads: a field, or of a field that is a map some entries.
#[derive(Debug, Clone)]
struct Input {
    root: String,
    field: String,
    /// `None`: all of it.
    keys: Option<Vec<CelMapKey<'static>>>,
}

/// What was read of an input.
#[derive(Debug)]
enum Read {
    All(Option<Shared>),
    Entries(Vec<Option<Shared>>),
}

/// What an expression came to once.
#[derive(Debug)]
pub(super) struct Remembered {
    read: Vec<Read>,
    /// Its value.
    pub value: Shared,
    /// What it cost.
    pub steps: usize,
    /// The value in JSON, as it was asked for beside these variables.
    pub outcome: OnceLock<(usize, Outcome)>,
}

/// What an expression came to for the last workloads.
#[derive(Debug)]
pub(super) struct Memo {
    inputs: Vec<Input>,
    kept: Mutex<Vec<Arc<Remembered>>>,
}

impl Memo {
    /// What it came to when it read the same.
    pub(super) fn find(&self, bound: &Bound) -> Option<Arc<Remembered>> {
        let mut kept = self.kept.try_lock().ok()?;
        let is_it = |one: &Arc<Remembered>| {
            let mut both = self.inputs.iter().zip(&one.read);
            both.all(|(input, read)| input.is_as_read(bound, read))
        };
        let at = kept.iter().position(is_it)?;
        kept[..=at].rotate_right(1);
        Some(Arc::clone(&kept[0]))
    }

    /// Keeps what it came to.
    pub(super) fn keep(&self, bound: &Bound, value: &Shared, steps: usize) -> Arc<Remembered> {
        let remembered = Arc::new(Remembered {
            read: self.inputs.iter().map(|input| input.read(bound)).collect(),
            value: value.clone(),
            steps,
            outcome: OnceLock::new(),
        });
        if let Ok(mut kept) = self.kept.try_lock() {
            kept.truncate(KEPT - 1);
            kept.insert(0, Arc::clone(&remembered));
        }
        remembered
    }
}

impl Input {
    fn value<'b>(&self, bound: &'b Bound) -> Option<&'b Shared> {
        let fields = bound.get(&self.root)?;
        let (_, value) = fields.iter().find(|(field, _)| *field == self.field)?;
        Some(value)
    }

    fn entries<'b>(
        &self,
        bound: &'b Bound,
    ) -> Option<(&[CelMapKey<'static>], &'b CelMap<'static>)> {
        let map = self.value(bound)?.downcast_ref::<CelMap<'static>>()?;
        Some((self.keys.as_deref()?, map))
    }

    fn read(&self, bound: &Bound) -> Read {
        let Some((keys, map)) = self.entries(bound) else {
            return Read::All(self.value(bound).cloned());
        };
        let own = |value: &(dyn Val + 'static)| Shared::from(value.clone_as_boxed());
        let entries = keys.iter().map(|key| entry(map, key).map(own));
        Read::Entries(entries.collect())
    }

    fn is_as_read(&self, bound: &Bound, read: &Read) -> bool {
        let both = |one: Option<&dyn Val>, other: Option<&Shared>| match (one, other) {
            (Some(one), Some(other)) => is_same(one, &**other),
            (one, other) => one.is_none() && other.is_none(),
        };
        match (self.entries(bound), read) {
            (None, Read::All(read)) => both(self.value(bound).map(|value| &**value), read.as_ref()),
            (Some((keys, map)), Read::Entries(read)) => keys
                .iter()
                .zip(read)
                .all(|(key, read)| both(entry(map, key), read.as_ref())),
            (None, Read::Entries(_)) | (Some(_), Read::All(_)) => false,
        }
    }
}

fn entry<'m>(
    map: &'m CelMap<'static>,
    key: &CelMapKey<'static>,
) -> Option<&'m (dyn Val + 'static)> {
    map.inner().get(key).map(AsRef::as_ref)
}

/// Both as values of one type, where they are.
fn both<'b, 'v, T: FromVal<'b, 'v>>(
    one: &'b (dyn Val + 'v),
    other: &'b (dyn Val + 'v),
) -> Option<(&'b T, &'b T)> {
    one.downcast_ref().zip(other.downcast_ref())
}

/// Whether two values are the same in everything that an expression can ask: `1` is not `1.0`.
fn is_same<'v>(one: &(dyn Val + 'v), other: &(dyn Val + 'v)) -> bool {
    if let Some((one, other)) = both::<CelString>(one, other) {
        return one.inner() == other.inner();
    }
    if let Some((one, other)) = both::<CelList>(one, other) {
        let (one, other) = (one.inner(), other.inner());
        let mut items = one.iter().zip(other);
        return std::ptr::eq(one, other)
            || one.len() == other.len()
                && items.all(|(one, other)| is_same(one.as_ref(), other.as_ref()));
    }
    if let Some((one, other)) = both::<CelMap>(one, other) {
        let (one, other) = (one.inner(), other.inner());
        let mut entries = one.iter();
        return std::ptr::eq(one, other)
            || one.len() == other.len()
                && entries.all(|(key, value)| {
                    let other = other.get(key);
                    other.is_some_and(|other| is_same(value.as_ref(), other.as_ref()))
                });
    }
    if let Some((one, other)) = both::<CelBool>(one, other) {
        return one.inner() == other.inner();
    }
    if let Some((one, other)) = both::<CelInt>(one, other) {
        return one.inner() == other.inner();
    }
    if let Some((one, other)) = both::<CelUInt>(one, other) {
        return one.inner() == other.inner();
    }
    if let Some((one, other)) = both::<CelDouble>(one, other) {
        return one.inner().to_bits() == other.inner().to_bits();
    }
    if let Some((one, other)) = both::<CelOptional>(one, other) {
        return match (one.option(), other.option()) {
            (Some(one), Some(other)) => is_same(one, other),
            (one, other) => one.is_none() && other.is_none(),
        };
    }
    // Of other types nothing is known.
    both::<CelNull>(one, other).is_some()
}

/// Which entries of fields an expression reads.
#[derive(Default)]
pub(super) struct Reads {
    keys: BTreeMap<(String, String), BTreeSet<String>>,
    /// Fields that it reads in another way, too.
    whole: BTreeSet<(String, String)>,
    /// Names that comprehensions bring in.
    bound: BTreeSet<String>,
}

impl Reads {
    /// For an expression as it is parsed.
    pub(super) fn of(tree: &IdedExpr) -> Self {
        let mut reads = Reads::default();
        reads.look(tree);
        reads
    }

    /// `None` for an expression that reads more than fields.
    pub(super) fn memo(&self, wants: &Wants) -> Option<Memo> {
        let mut roots = wants.iter().map(|(root, _)| root.as_str());
        if roots.any(|root| WHOLE.contains(&root) || self.bound.contains(root)) {
            return None;
        }
        let input = |(root, field): &(String, Option<String>)| {
            let name = (root.clone(), field.clone()?);
            let keys = self.keys.get(&name).filter(|_| !self.whole.contains(&name));
            Some(Input {
                keys: keys.map(|keys| keys.iter().cloned().map(CelMapKey::from).collect()),
                root: name.0,
                field: name.1,
            })
        };
        Some(Memo {
            inputs: wants.iter().map(input).collect::<Option<_>>()?,
            kept: Mutex::default(),
        })
    }

    fn look(&mut self, tree: &IdedExpr) {
        match &tree.expr {
            Expr::Unspecified | Expr::Literal(_) | Expr::Ident(_) => {}
            Expr::Select(select) => match field_of(tree) {
                Some(name) => drop(self.whole.insert(name)),
                None => match field_of(&select.operand) {
                    Some(name) => self.reads(name, &select.field),
                    None => self.look(&select.operand),
                },
            },
            Expr::Call(call) => {
                let map_and_key = match (call.func_name.as_str(), call.args.as_slice()) {
                    (INDEX | OPT_INDEX | OPT_SELECT, [map, key]) => field_of(map).zip(text_of(key)),
                    (IN, [key, map]) if is_of_texts(map) => field_of(map).zip(text_of(key)),
                    _ => None,
                };
                // `pod['annotations']`.
                if let [of, key] = call.args.as_slice()
                    && let (Expr::Ident(root), Some(field)) = (&of.expr, text_of(key))
                {
                    self.whole.insert((root.clone(), field.to_owned()));
                }
                match map_and_key {
                    Some((name, key)) => self.reads(name, key),
                    None => {
                        let target = call.target.as_deref().into_iter();
                        target.chain(&call.args).for_each(|inner| self.look(inner));
                    }
                }
            }
            Expr::Comprehension(walk) => {
                let names = [&walk.iter_var, &walk.accu_var].into_iter();
                self.bound.extend(names.chain(&walk.iter_var2).cloned());
                let steps = [&walk.loop_cond, &walk.loop_step, &walk.result];
                let lists = [&walk.iter_range, &walk.accu_init];
                let parts = lists.into_iter().chain(steps);
                parts.for_each(|part| self.look(part));
            }
            Expr::List(list) => list.elements.iter().for_each(|inner| self.look(inner)),
            Expr::Map(map) => map.entries.iter().for_each(|entry| match &entry.expr {
                EntryExpr::StructField(field) => self.look(&field.value),
                EntryExpr::MapEntry(entry) => {
                    self.look(&entry.key);
                    self.look(&entry.value);
                }
            }),
            Expr::Struct(_) => {}
        }
    }

    fn reads(&mut self, name: (String, String), key: &str) {
        self.keys.entry(name).or_default().insert(key.to_owned());
    }
}

/// Labels or annotations: whether a key is there costs the same whatever else is.
pub(super) fn is_of_texts(tree: &IdedExpr) -> bool {
    field_of(tree).is_some_and(|(root, field)| {
        matches!(root.as_str(), "pod" | "workload")
            && matches!(field.as_str(), "annotations" | "labels")
    })
}

/// `root.field`, and nothing else.
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
