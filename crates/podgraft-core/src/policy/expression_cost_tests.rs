//! The cost of an expression is bounded by steps, whatever it is made of.

use super::*;

/// An expression that would fill the memory, or run for hours, ends.
#[track_caller]
fn ends(variables: &[String], text: &str) {
    let mut vocabulary = Vocabulary::default();
    let mut known = Vec::new();
    let compile = |text: &str, vocabulary: &Vocabulary| {
        Expression::compile(text, vocabulary).unwrap_or_else(|faults| panic!("{text}: {faults:?}"))
    };
    for (number, text) in variables.iter().enumerate() {
        let (name, expression) = (format!("v{number}"), compile(text, &vocabulary));
        vocabulary.variables.insert(name.clone(), expression.uses);
        known.push(PolicyVariable {
            name,
            body: VariableBody::Expression(expression),
            at: 0..0,
        });
    }
    let expression = compile(text, &vocabulary);
    let evaluator = Evaluator::new(&vocabulary.params, &known, &TestPod);
    // A debug build takes ten times as long for a step.
    evaluator.steps_left.set(cost::MAX_STEPS / 20);
    let fault = evaluator.evaluate(&expression).expect_err(text);
    assert!(fault.problem.code == Code::BadExpression, "{fault:?}");
}

fn long_text() -> String {
    format!("'{}'", "a".repeat(3000))
}

/// A variable, and nineteen of which each is made of the one before it.
fn grown(first: String, next: impl Fn(usize, &str) -> String) -> Vec<String> {
    let next = |level: usize| next(level, &format!("variables.v{}", level - 1));
    std::iter::once(first).chain((1..20).map(next)).collect()
}

#[test]
fn cost_of_variables_that_grow_is_bounded_by_steps() {
    let eight = |name: &str| format!("[{}]", [name; 8].join(", "));
    let texts = grown(long_text(), |level, before| match level % 3 {
        0 => format!("{before} + {before} + {before} + {before}"),
        1 => format!("{}.join({before})", eight(before)),
        _ => format!("{before}.replace('', {before})"),
    });
    ends(&texts, "variables.v19");
    let lists = grown(list(1000), |_, before| {
        format!("{before} + {before} + {before} + {before}")
    });
    ends(&lists, "size(variables.v19)");
    let copies = grown("object".to_owned(), |_, before| eight(before));
    ends(&copies, "variables.v19 == variables.v19");
}

#[test]
fn cost_of_lists_within_lists_is_bounded_by_steps() {
    let variables = [list(1000), long_text()];
    for text in [
        "variables.v0.all(a, variables.v0.all(b, a == b && a + b == 2))",
        "variables.v0.all(a, variables.v0.all(b, sha256(variables.v1) != ''))",
        "variables.v0.all(a, variables.v1.matches('(a{50}){50}b'))",
        "variables.v0.map(a, variables.v0).map(b, b.map(c, variables.v0))",
        "variables.v0.map(a, object).map(b, variables.v0.map(c, b))",
    ] {
        ends(&variables, text);
    }
}
