//! References of variables to others:
//! <https://kubernetes.io/docs/tasks/inject-data-application/define-interdependent-environment-variables/>

use serde_json::Value;

/// The names that a value refers to as `$(NAME)`. `$$(NAME)` is an escaped text, and `$()` is text, too.
pub(crate) fn references(value: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut rest = value;
    while let Some(at) = rest.find('$') {
        rest = &rest[at + 1..];
        if let Some(escaped) = rest.strip_prefix('$') {
            rest = escaped;
        } else if let Some((name, tail)) = rest
            .strip_prefix('(')
            .and_then(|inner| inner.split_once(')'))
        {
            names.extend(Some(name).filter(|name| !name.is_empty()));
            rest = tail;
        }
    }
    names
}

/// How many references in a list of variables are to one that stands before: only these are filled in.
pub(crate) fn count_filled(variables: &[Value]) -> usize {
    let text = |variable: &'_ Value, key: &str| variable.get(key)?.as_str().map(str::to_owned);
    let mut names: Vec<String> = Vec::new();
    let mut count = 0;
    for variable in variables {
        let value = text(variable, "value").unwrap_or_default();
        let used = references(&value).into_iter();
        count += used
            .filter(|used| names.iter().any(|name| name == used))
            .count();
        names.extend(text(variable, "name"));
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn references_are_names_in_parentheses_that_are_not_escaped() {
        assert_eq!(references("a$(X)b$$(Y)$(Z"), ["X"]);
        assert_eq!(references("$(A),$()$(B)"), ["A", "B"]);
    }

    #[test]
    fn a_reference_is_filled_in_behind_its_variable() {
        let [first, second] = [
            json!({"name": "A", "value": "1"}),
            json!({"name": "B", "value": "$(A)$(C)"}),
        ];
        assert_eq!(count_filled(&[first.clone(), second.clone()]), 1);
        assert_eq!(count_filled(&[second, first]), 0);
    }
}
