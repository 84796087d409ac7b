//! Macros that the CEL crate lacks: comprehensions with two variables, for key or index, and value. They expand to
//! comprehensions over the keys, with the value bound for each.

use cel::common::ast::operators::{ADD, NOT_STRICTLY_FALSE};
use cel::common::ast::operators::{CONDITIONAL, INDEX, LOGICAL_AND, LOGICAL_NOT, LOGICAL_OR};
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

struct ExprBuilder<'h, 'p> {
    helper: &'h mut MacroExprHelper<'p>,
}

impl ExprBuilder<'_, '_> {
    fn ident(&mut self, name: &str) -> IdedExpr {
        self.helper.next_expr(Expr::Ident(name.to_owned()))
    }

    fn call(&mut self, name: &str, args: Vec<IdedExpr>) -> IdedExpr {
        self.helper.next_expr(Expr::Call(CallExpr {
            func_name: name.to_owned(),
            target: None,
            args,
        }))
    }

    fn list(&mut self, items: Vec<IdedExpr>) -> IdedExpr {
        self.helper.next_expr(Expr::List(ListExpr::new(items)))
    }

    fn flag(&mut self, flag: bool) -> IdedExpr {
        let literal = LiteralValue::Boolean(flag.into());
        self.helper.next_expr(Expr::Literal(literal))
    }

    /// Binds a name to a value within an expression, as a comprehension over an empty list: CEL has no `let`.
    fn bind(&mut self, name: &str, value: IdedExpr, within: IdedExpr) -> IdedExpr {
        let bound = ComprehensionExpr {
            iter_range: self.list(Vec::new()),
            iter_var: "#unused".to_owned(),
            iter_var2: None,
            accu_var: name.to_owned(),
            accu_init: value,
            loop_cond: self.flag(false),
            loop_step: self.ident(name),
            result: within,
        };
        self.helper.next_expr(Expr::Comprehension(Box::new(bound)))
    }

    /// Binds the second variable to the entry of the current key.
    fn with_value(&mut self, names: &LoopNames, within: IdedExpr) -> IdedExpr {
        let (range, key) = (self.ident(RANGE), self.ident(&names.key));
        let value = self.call(INDEX, vec![range, key]);
        self.bind(&names.value, value, within)
    }
}

fn expand(
    helper: &mut MacroExprHelper<'_>,
    target: &mut Option<IdedExpr>,
    args: &mut Vec<IdedExpr>,
    kind: MacroKind,
) -> ExpansionResult {
    for arg in &args[..2] {
        if !matches!(arg.expr, Expr::Ident(_)) {
            return Err(helper.new_error(arg.id, "the first two arguments must be names"));
        }
    }
    let mut args = std::mem::take(args).into_iter();
    let mut name = || match args.next().map(|arg| arg.expr) {
        Some(Expr::Ident(name)) => name,
        _ => String::new(),
    };
    let names = LoopNames {
        key: name(),
        value: name(),
    };
    let mut rest: Vec<IdedExpr> = args.collect();
    let value = rest.pop().unwrap_or_default();
    let filter = rest.pop();
    let mut build = ExprBuilder { helper };
    let step = step(&mut build, &names, value, filter, kind);
    let walk = walk(&mut build, names.key, step, kind);
    let walk = build.helper.next_expr(Expr::Comprehension(Box::new(walk)));
    let target = target.take().unwrap_or_default();
    Ok(Some(build.bind(RANGE, target, walk)))
}

/// The comprehension over the keys that evaluates `step` for each.
fn walk(
    build: &mut ExprBuilder<'_, '_>,
    key: String,
    step: IdedExpr,
    kind: MacroKind,
) -> ComprehensionExpr {
    let (init, condition) = match kind {
        MacroKind::All => (build.flag(true), Some(build.ident(RESULT))),
        MacroKind::Exists => {
            let found = build.ident(RESULT);
            let none = build.call(LOGICAL_NOT, vec![found]);
            (build.flag(false), Some(none))
        }
        MacroKind::List | MacroKind::Map => (build.list(Vec::new()), None),
    };
    let loop_cond = match condition {
        Some(condition) => build.call(NOT_STRICTLY_FALSE, vec![condition]),
        None => build.flag(true),
    };
    let range = build.ident(RANGE);
    let mut result = build.ident(RESULT);
    if kind == MacroKind::Map {
        result = build.call(MAP_OF, vec![result]);
    }
    ComprehensionExpr {
        iter_range: build.call(KEYS, vec![range]),
        iter_var: key,
        iter_var2: None,
        accu_var: RESULT.to_owned(),
        accu_init: init,
        loop_cond,
        loop_step: step,
        result,
    }
}

/// The step of a comprehension: adds the entry of a key to the accumulator.
fn step(
    build: &mut ExprBuilder<'_, '_>,
    names: &LoopNames,
    value: IdedExpr,
    filter: Option<IdedExpr>,
    kind: MacroKind,
) -> IdedExpr {
    let value = build.with_value(names, value);
    let result = build.ident(RESULT);
    let added = match kind {
        MacroKind::All => return build.call(LOGICAL_AND, vec![result, value]),
        MacroKind::Exists => return build.call(LOGICAL_OR, vec![result, value]),
        MacroKind::List => value,
        MacroKind::Map => {
            let key = build.ident(&names.key);
            build.list(vec![key, value])
        }
    };
    let added = build.list(vec![added]);
    let grown = build.call(ADD, vec![result, added]);
    match filter {
        None => grown,
        Some(filter) => {
            let filter = build.with_value(names, filter);
            let unchanged = build.ident(RESULT);
            build.call(CONDITIONAL, vec![filter, grown, unchanged])
        }
    }
}

/// Whether a comprehension only binds a name, as `bind` and `lazily` make them.
pub(super) fn is_binding(walk: &ComprehensionExpr) -> bool {
    matches!(&walk.iter_range.expr, Expr::List(list) if list.elements.is_empty())
        && matches!(&walk.loop_cond.expr, Expr::Literal(_))
}

fn method_call(target: IdedExpr, name: &str) -> IdedExpr {
    let call = CallExpr {
        func_name: name.to_owned(),
        target: Some(Box::new(target)),
        args: Vec::new(),
    };
    IdedExpr {
        id: 0,
        expr: Expr::Call(call),
    }
}

/// Rewrites `a.orValue(b)` and `a.or(b)` so that `b` is evaluated only if `a` is empty. The crate evaluates both.
pub(super) fn lazily(call: CallExpr) -> Expr {
    const OPTIONAL: &str = "@optional";
    let node = |expr| IdedExpr { id: 0, expr };
    let ident = || node(Expr::Ident(OPTIONAL.to_owned()));
    let is_value = call.func_name == "orValue";
    let present = if is_value {
        method_call(ident(), "value")
    } else {
        ident()
    };
    let fallback = call.args.into_iter().next().unwrap_or_default();
    let result = CallExpr {
        func_name: CONDITIONAL.to_owned(),
        target: None,
        args: vec![method_call(ident(), "hasValue"), present, fallback],
    };
    Expr::Comprehension(Box::new(ComprehensionExpr {
        iter_range: node(Expr::List(ListExpr::new(Vec::new()))),
        iter_var: "#unused".to_owned(),
        iter_var2: None,
        accu_var: OPTIONAL.to_owned(),
        accu_init: call.target.map(|target| *target).unwrap_or_default(),
        loop_cond: node(Expr::Literal(LiteralValue::Boolean(false.into()))),
        loop_step: ident(),
        result: node(Expr::Call(result)),
    }))
}
