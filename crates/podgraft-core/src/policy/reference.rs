//! The functions of expressions. docs/expressions.md is their table: `podgraft policy functions` prints it, and names are
//! checked against it.

use std::sync::LazyLock;

/// The text of docs/expressions.md.
pub const PAGE: &str = podgraft_docs::EXPRESSIONS;

/// A function, a method or a macro.
#[derive(Debug)]
pub(super) struct Function {
    /// The name, with its namespace if it has one.
    pub name: &'static str,
    /// The ways to call it.
    pub signature: &'static str,
}

/// Functions that bind names in their arguments.
const MACROS: [&str; 10] = [
    "all",
    "exists",
    "exists_one",
    "existsOne",
    "filter",
    "has",
    "map",
    "sortBy",
    "transformList",
    "transformMap",
];

impl Function {
    /// The function of a row of the table.
    fn of([signature, _, example, _]: [&'static str; 4]) -> Self {
        let called = signature.split('(').next().unwrap_or_default();
        // An example calls a method on a value of its own, and a function of a namespace by its whole name.
        let name = match called.rsplit_once('.') {
            Some((_, method)) if !example.contains(called) => method,
            Some(_) | None => called,
        };
        Function { name, signature }
    }

    /// Whether it is a macro.
    pub(super) fn is_macro(&self) -> bool {
        MACROS.contains(&self.name)
    }
}

/// All functions. Those of the CEL library that are not here depend on the clock or differ from Kubernetes' CEL.
pub(super) fn functions() -> impl Iterator<Item = &'static Function> {
    static FUNCTIONS: LazyLock<Vec<Function>> =
        LazyLock::new(|| rows().map(Function::of).collect());
    FUNCTIONS.iter()
}

/// The rows of the page's table with signature, value, example and result.
fn rows() -> impl Iterator<Item = [&'static str; 4]> {
    let rows = PAGE
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.strip_suffix("` |"));
    rows.filter_map(|row| {
        let cells: Vec<&str> = row
            .split(" | ")
            .map(|cell| cell.trim_matches('`'))
            .collect();
        cells.try_into().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::expression::{Evaluator, Expression, ExpressionResult, Facts, LookupKey};
    use crate::policy::template::Evaluated;
    use crate::policy::vocabulary::Vocabulary;
    use serde_json::Value;

    struct NoValues;

    impl Facts for NoValues {
        fn fact(&self, _: &str, _: &str) -> Evaluated<Option<Value>> {
            Ok(None)
        }

        fn lookup(&self, _: &LookupKey) -> Evaluated<Option<Value>> {
            Ok(None)
        }
    }

    #[test]
    fn every_example_comes_to_what_the_table_says() {
        let mut vocabulary = Vocabulary::default();
        vocabulary.params.insert("none".to_owned(), None);
        for row in rows() {
            let [_, _, example, result] = row;
            let expression = Expression::compile(example, &vocabulary)
                .unwrap_or_else(|faults| panic!("{example}: {faults:?}"));
            let outcome = Evaluator::new(&vocabulary.params, &[], &NoValues).evaluate(&expression);
            let Ok(ExpressionResult::Value(value)) = outcome else {
                panic!("{example}: {outcome:?}");
            };
            assert_eq!(value.to_string(), result, "{example}");
            let Function { name, .. } = Function::of(row);
            let word = name.rsplit('.').next().unwrap_or_default();
            assert!(example.contains(word), "{name}");
        }
    }
}
