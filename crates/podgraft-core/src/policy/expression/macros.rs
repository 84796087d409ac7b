//! Macros that the CEL crate lacks: comprehensions with two variables, for key or index, and value. They expand to
//! comprehensions over the keys, with the value bound for each.

use cel::common::ast::operators::{
    ADD, CONDITIONAL, INDEX, LOGICAL_AND, LOGICAL_NOT, LOGICAL_OR, NOT_STRICTLY_FALSE,
};
use cel::common::ast::{CallExpr, ComprehensionExpr, Expr, IdedExpr, ListExpr, LiteralValue};
use cel::parser::{Macro, MacroExprHelper};
use cel::{DeclarationError, Env, ParseError};

/// The sorted keys of a map, or the indexes of a list.
pub(super) const KEYS: &str = "@keys";
/// Makes a map from a list of `[key, value]` pairs.
pub(super) const MAP_OF: &str = "@map_of";
/// The name that the target of a two-variable macro is bound to.
const RANGE: &str = "@range";
const RESULT: &str = "@result";

type ExpansionResult = Result<Option<IdedExpr>, ParseError>;

/// Adds the macros.
pub(super) fn add(env: &mut Env) -> Result<(), DeclarationError> {
    for (name, count, kind) in [
        ("all", 3, MacroKind::All),
        ("exists", 3, MacroKind::Exists),
        ("transformList", 3, MacroKind::List),
        ("transformList", 4, MacroKind::List),
        ("transformMap", 3, MacroKind::Map),
        ("transformMap", 4, MacroKind::Map),
    ] {
        env.add_macro(Macro::receiver(name, count, move |helper, target, args| {
            expand(helper, target, args, kind)
        }))?;
    }
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MacroKind {
    All,
    Exists,
    List,
    Map,
}

/// The names that a macro gives to a key and its entry.
struct LoopNames {
    key: String,
    value: String,
}

/// A node of an expression. Ids are places in the text, which nodes of ours have none.
fn node(expr: Expr) -> IdedExpr {
    IdedExpr { id: 0, expr }
}

fn ident(name: &str) -> IdedExpr {
    node(Expr::Ident(name.to_owned()))
}

/// A call of a function.
pub(super) fn call(name: &str, args: Vec<IdedExpr>) -> IdedExpr {
    node(Expr::Call(CallExpr {
        func_name: name.to_owned(),
        target: None,
        args,
    }))
}

fn method(target: IdedExpr, name: &str) -> IdedExpr {
    node(Expr::Call(CallExpr {
        func_name: name.to_owned(),
        target: Some(Box::new(target)),
        args: Vec::new(),
    }))
}

fn list(items: Vec<IdedExpr>) -> IdedExpr {
    node(Expr::List(ListExpr::new(items)))
}

/// A literal.
pub(super) fn literal(literal: LiteralValue) -> IdedExpr {
    node(Expr::Literal(literal))
}

fn flag(flag: bool) -> IdedExpr {
    literal(LiteralValue::Boolean(flag.into()))
}

/// Binds a name to a value within an expression, as a comprehension over an empty list: CEL has no `let`.
fn bind(name: &str, value: IdedExpr, within: IdedExpr) -> IdedExpr {
    node(Expr::Comprehension(Box::new(ComprehensionExpr {
        iter_range: list(Vec::new()),
        iter_var: "#unused".to_owned(),
        iter_var2: None,
        accu_var: name.to_owned(),
        accu_init: value,
        loop_cond: flag(false),
        loop_step: ident(name),
        result: within,
    })))
}

impl LoopNames {
    /// Binds the second variable to the entry of the current key.
    fn with_value(&self, within: IdedExpr) -> IdedExpr {
        let value = call(INDEX, vec![ident(RANGE), ident(&self.key)]);
        bind(&self.value, value, within)
    }
}

fn expand(
    helper: &mut MacroExprHelper<'_>,
    target: &mut Option<IdedExpr>,
    args: &mut Vec<IdedExpr>,
    kind: MacroKind,
) -> ExpansionResult {
    let [Expr::Ident(key), Expr::Ident(value)] = [&args[0].expr, &args[1].expr] else {
        let is_name = |arg: &&IdedExpr| matches!(arg.expr, Expr::Ident(_));
        let wrong = args
            .iter()
            .find(|arg| !is_name(arg))
            .map_or(0, |arg| arg.id);
        return Err(helper.new_error(wrong, "the first two arguments must be names"));
    };
    let names = LoopNames {
        key: key.clone(),
        value: value.clone(),
    };
    let mut rest = args.split_off(2);
    let value = rest.pop().unwrap_or_default();
    let step = step(&names, value, rest.pop(), kind);
    let result = || ident(RESULT);
    let (accu_init, loop_cond, result) = match kind {
        MacroKind::All => (
            flag(true),
            call(NOT_STRICTLY_FALSE, vec![result()]),
            result(),
        ),
        MacroKind::Exists => {
            let none = call(LOGICAL_NOT, vec![result()]);
            let is_open = call(NOT_STRICTLY_FALSE, vec![none]);
            (flag(false), is_open, result())
        }
        MacroKind::List => (list(Vec::new()), flag(true), result()),
        MacroKind::Map => (list(Vec::new()), flag(true), call(MAP_OF, vec![result()])),
    };
    let walk = node(Expr::Comprehension(Box::new(ComprehensionExpr {
        iter_range: call(KEYS, vec![ident(RANGE)]),
        iter_var: names.key,
        iter_var2: None,
        accu_var: RESULT.to_owned(),
        accu_init,
        loop_cond,
        loop_step: step,
        result,
    })));
    Ok(Some(bind(RANGE, target.take().unwrap_or_default(), walk)))
}

/// The step of a comprehension: adds the entry of a key to the accumulator.
fn step(names: &LoopNames, value: IdedExpr, filter: Option<IdedExpr>, kind: MacroKind) -> IdedExpr {
    let value = names.with_value(value);
    let result = ident(RESULT);
    let added = match kind {
        MacroKind::All => return call(LOGICAL_AND, vec![result, value]),
        MacroKind::Exists => return call(LOGICAL_OR, vec![result, value]),
        MacroKind::List => value,
        MacroKind::Map => list(vec![ident(&names.key), value]),
    };
    let grown = call(ADD, vec![result, list(vec![added])]);
    match filter {
        None => grown,
        Some(filter) => {
            let filter = names.with_value(filter);
            call(CONDITIONAL, vec![filter, grown, ident(RESULT)])
        }
    }
}

/// Whether a comprehension only binds a name, as `bind` and `lazily` make them.
pub(super) fn is_binding(walk: &ComprehensionExpr) -> bool {
    matches!(&walk.iter_range.expr, Expr::List(list) if list.elements.is_empty())
        && matches!(&walk.loop_cond.expr, Expr::Literal(_))
}

/// Rewrites `a.orValue(b)` and `a.or(b)` so that `b` is evaluated only if `a` is empty. The crate evaluates both.
pub(super) fn lazily(or: CallExpr) -> IdedExpr {
    const OPTIONAL: &str = "@optional";
    let present = match or.func_name.as_str() {
        "orValue" => method(ident(OPTIONAL), "value"),
        _ => ident(OPTIONAL),
    };
    let fallback = or.args.into_iter().next().unwrap_or_default();
    let has_value = method(ident(OPTIONAL), "hasValue");
    let optional = or.target.map(|target| *target).unwrap_or_default();
    bind(
        OPTIONAL,
        optional,
        call(CONDITIONAL, vec![has_value, present, fallback]),
    )
}
