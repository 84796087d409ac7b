//! The table of names and functions in expressions. `podgraft policy functions` and docs/expressions.md are generated
//! from it, and names are checked against it.

mod table;
mod values;

use table::FUNCTIONS;

/// A function, a method or a macro.
#[derive(Debug, Clone, Copy)]
pub struct Function {
    /// The name, with its namespace if it has one.
    pub name: &'static str,
    /// The ways to call it.
    pub signature: &'static str,
    /// What it returns, for the page.
    pub text: &'static str,
    /// An expression that uses it.
    pub example: &'static str,
    /// The result of the example, as JSON.
    pub result: &'static str,
    /// It is a macro, which binds names in its arguments.
    pub is_macro: bool,
}

/// All functions. Those of the CEL library that are not here depend on the clock or differ from Kubernetes' CEL.
pub fn functions() -> impl Iterator<Item = &'static Function> {
    FUNCTIONS.iter().chain(values::FUNCTIONS)
}

/// The root names and what each stands for.
pub const NAMES: &[(&str, &str)] = &[
    ("params", "the parameters, always texts: `params.NAME`"),
    ("variables", "the variables above: `variables.NAME`"),
    (
        "workload",
        "the workload: `name`, `kind`, `apiVersion`, `namespace`, `labels`, `annotations`, `selector`",
    ),
    ("pod", "its pod template: `labels`, `annotations`, `spec`"),
    ("object", "the whole object"),
    (
        "container",
        "the chosen container, with all fields of a Container and its `type`: `Container`, `InitContainer` or `Sidecar`",
    ),
    (
        "containers",
        "`containers.first`, the first container of the pod",
    ),
    ("namespaceObject", "the Namespace of the workload, or null"),
    (
        "source",
        "the resource that the policy is for, if the policy has a `source`",
    ),
    (
        "sources",
        "all resources that the policy is for, by name; with `scope: Namespaced`, those in the namespace of the resource",
    ),
    (
        "ref",
        "in `annotation` of `checksums`: `kind` and `name` of an object that the pod refers to",
    ),
];

/// The text of docs/expressions.md.
pub fn page() -> String {
    let mut page = "# Expressions\n\nExpressions are [CEL](https://cel.dev), as in Kubernetes. `podgraft policy functions` prints \
        this page, which is made\nof the table against which the program checks names.\n\n## Names\n\n| name | meaning \
        |\n|---|---|\n"
        .to_owned();
    for (name, text) in NAMES {
        page.push_str(&format!("| `{name}` | {text} |\n"));
    }
    page.push_str("\n## Functions\n\n| function | value | example | result |\n|---|---|---|---|\n");
    for function in functions() {
        let Function {
            signature,
            text,
            example,
            result,
            ..
        } = function;
        page.push_str(&format!(
            "| `{signature}` | {text} | `{example}` | `{result}` |\n"
        ));
    }
    page.push_str(
        "\n## Bounds\n\n`orValue`, `or`, `&&`, `||` and `?:` evaluate only what they need. An expression has at most 16,384 \
        characters. A list\nthat is iterated has at most 1,024 entries, and iterations nest at most two deep; lists that the \
        policy writes out, or makes\nof its own text, do not count. All expressions of a policy take at most two million steps \
        for one container, about a second,\nso an expression always ends.\n",
    );
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::expression::{Evaluator, Expression, ExpressionResult, Facts, LookupKey};
    use crate::policy::template::TemplateError;
    use crate::policy::vocabulary::Vocabulary;
    use serde_json::Value;

    struct NoValues;

    impl Facts for NoValues {
        fn fact(&self, _: &str, _: &str) -> Result<Option<Value>, TemplateError> {
            Ok(None)
        }

        fn lookup(&self, _: &LookupKey) -> Result<Option<Value>, TemplateError> {
            Ok(None)
        }
    }

    #[test]
    fn every_example_comes_to_what_the_table_says() {
        let mut vocabulary = Vocabulary::default();
        vocabulary.params.insert("none".to_owned(), None);
        for function in functions() {
            let expression = Expression::compile(function.example, &vocabulary)
                .unwrap_or_else(|faults| panic!("{}: {faults:?}", function.example));
            let outcome = Evaluator::new(&vocabulary.params, &[], &NoValues).evaluate(&expression);
            let Ok(ExpressionResult::Value(value)) = outcome else {
                panic!("{}: {outcome:?}", function.example);
            };
            assert_eq!(value.to_string(), function.result, "{}", function.example);
            let word = function.name.rsplit('.').next().unwrap_or_default();
            assert!(function.example.contains(word), "{}", function.name);
        }
    }
}
