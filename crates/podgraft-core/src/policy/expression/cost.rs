//! Limits the cost of an evaluation. The CEL crate has no limit, and a policy must not exhaust the memory or run for
//! hours. A step is about one node of an expression, or 64 bytes of text that a function reads.

use cel::ExecutionError;
use cel::common::ast::{ComprehensionExpr, EntryExpr, Expr, IdedExpr};
use cel::common::types::{CelList, CelMap, CelString};
use cel::common::value::Val;
use std::cell::Cell;

use crate::policy::functions::MAX_TEXT;

/// Steps for all expressions of a policy over one container: at worst about a second.
pub(super) const MAX_STEPS: usize = 2_000_000;

const BYTES_A_STEP: usize = 64;

thread_local! {
    /// The steps left of the running evaluation. A thread local, because the crate passes no context to functions.
    static LEFT: Cell<usize> = const { Cell::new(0) };
}

/// Evaluates with the steps in `left` and stores what remains of them. Calls may be nested.
pub(super) fn with_budget<T>(left: &Cell<usize>, evaluate: impl FnOnce() -> T) -> T {
    let outer = LEFT.replace(left.get());
    let evaluated = evaluate();
    left.set(LEFT.replace(outer));
    evaluated
}

/// The nodes that are evaluated for each entry of a walked list.
pub(super) fn nodes_per_entry(walk: &ComprehensionExpr) -> i64 {
    [&walk.loop_cond, &walk.loop_step, &walk.result]
        .into_iter()
        .map(count)
        .sum()
}

/// The nodes of an expression. A nested walk counts once, because it charges for its own entries.
fn count(tree: &IdedExpr) -> i64 {
    let counted = match &tree.expr {
        Expr::Comprehension(walk) => vec![&walk.iter_range, &walk.loop_step, &walk.result],
        _ => parts(tree),
    };
    counted.into_iter().map(count).sum::<i64>() + 1
}

/// The expressions that an expression is made of.
pub(super) fn parts(tree: &IdedExpr) -> Vec<&IdedExpr> {
    match &tree.expr {
        Expr::Unspecified | Expr::Literal(_) | Expr::Ident(_) | Expr::Struct(_) => Vec::new(),
        Expr::Select(select) => vec![&select.operand],
        Expr::Call(call) => call
            .target
            .as_deref()
            .into_iter()
            .chain(&call.args)
            .collect(),
        Expr::Comprehension(walk) => vec![
            &walk.iter_range,
            &walk.accu_init,
            &walk.loop_cond,
            &walk.loop_step,
            &walk.result,
        ],
        Expr::List(list) => list.elements.iter().collect(),
        Expr::Map(map) => {
            let entries = map.entries.iter();
            let parts = entries.flat_map(|entry| match &entry.expr {
                EntryExpr::StructField(field) => vec![&field.value],
                EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
            });
            parts.collect()
        }
    }
}

/// Takes steps, or fails if not enough are left.
pub(super) fn spend(steps: usize) -> Result<(), ExecutionError> {
    match LEFT.get().checked_sub(steps) {
        Some(left) => {
            LEFT.set(left);
            Ok(())
        }
        None => {
            // Nothing is left, so that no other function of the expression goes on.
            LEFT.set(0);
            Err(ExecutionError::function_error(
                "limit exceeded",
                "evaluation takes too long; use shorter lists, shorter texts, or a simpler pattern",
            ))
        }
    }
}

/// Takes the steps of a function that reads a text a few times.
pub(super) fn spend_on_text(text: &str) -> Result<(), ExecutionError> {
    spend(1 + text.len() / BYTES_A_STEP)
}

/// Takes the steps for reading or copying a value with everything in it.
pub(super) fn spend_on(value: &dyn Val) -> Result<(), ExecutionError> {
    if let Some(text) = value.downcast_ref::<CelString>() {
        if text.inner().len() > MAX_TEXT {
            return Err(ExecutionError::function_error(
                "limit exceeded",
                "a text is longer than 1 MiB",
            ));
        }
        return spend_on_text(text.inner());
    }
    spend(1)?;
    if let Some(list) = value.downcast_ref::<CelList>() {
        return list
            .inner()
            .iter()
            .try_for_each(|entry| spend_on(entry.as_ref()));
    }
    if let Some(map) = value.downcast_ref::<CelMap>() {
        return map
            .inner()
            .values()
            .try_for_each(|entry| spend_on(entry.as_ref()));
    }
    Ok(())
}
