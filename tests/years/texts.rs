//! Manifests as people edit them: one scalar, one variable, the rest as it was.

use podgraft_core::yaml::parse::parse;
use podgraft_core::yaml::tree::{NodeId, Tree};

/// The text with another scalar at a place.
pub fn with_scalar(text: &str, path: &[&str], new: &str) -> String {
    let tree = parse(text).expect("it was read before");
    let node = path
        .iter()
        .try_fold(tree.roots()[0], |node, key| tree.get(node, key));
    let span = tree.span(node.expect("it is there"));
    format!("{}{new}{}", &text[..span.start], &text[span.end..])
}

fn container(tree: &Tree<'_>, name: &str) -> Option<NodeId> {
    let path = ["spec", "template", "spec", "containers"];
    let list = path
        .iter()
        .try_fold(tree.roots()[0], |node, key| tree.get(node, key))?;
    tree.children(list).find(|&item| {
        let found = tree.get(item, "name").and_then(|name| tree.scalar(name));
        found == Some(name)
    })
}

/// The text with another scalar in a container.
pub fn with_field(text: &str, name: &str, key: &str, new: &str) -> Option<String> {
    let tree = parse(text).ok()?;
    let span = tree.span(tree.get(container(&tree, name)?, key)?);
    Some(format!("{}{new}{}", &text[..span.start], &text[span.end..]))
}

/// The text with one more variable in a container, in front of the others.
pub fn with_variable(text: &str, name: &str, variable: &str) -> Option<String> {
    let tree = parse(text).ok()?;
    let container = container(&tree, name)?;
    if tree.kind(container).is_flow() {
        return None;
    }
    let end = tree.line_end();
    let (at, lines) = match tree.get(container, "env") {
        Some(env) if tree.kind(env).is_flow() || !tree.kind(env).is_sequence() => return None,
        Some(env) => {
            let first = tree.children(env).next()?;
            let line = text[..tree.start(first)].rfind('\n')? + 1;
            let dash = &text[line..tree.start(first)];
            let indent = " ".repeat(dash.find('-').filter(|_| dash.trim() == "-")?);
            (
                line,
                format!("{indent}- name: {variable}{end}{indent}  value: mine{end}"),
            )
        }
        None => {
            let image = tree.get(container, "image")?;
            let line = text[tree.span(image).end..].find('\n')? + tree.span(image).end + 1;
            let start = text[..tree.start(image)].rfind('\n')? + 1;
            let indent = " ".repeat(text[start..].find("image:")?);
            let list = format!(
                "{indent}env:{end}{indent}- name: {variable}{end}{indent}  value: mine{end}"
            );
            (line, list)
        }
    };
    Some(format!("{}{lines}{}", &text[..at], &text[at..]))
}

/// The text with the lines of a variable commented out.
pub fn without_variable(text: &str, name: &str, variable: &str) -> Option<String> {
    let tree = parse(text).ok()?;
    let env = tree.get(container(&tree, name)?, "env")?;
    let items: Vec<NodeId> = tree.children(env).collect();
    let item = *items.iter().find(|&&item| {
        let found = tree.get(item, "name").and_then(|name| tree.scalar(name));
        found == Some(variable)
    })?;
    if tree.kind(env).is_flow() || tree.kind(item).is_flow() || items.len() < 2 {
        return None;
    }
    let span = tree.span(item);
    let start = text[..span.start].rfind('\n')? + 1;
    let end = text[..span.end].trim_end().len();
    let lines: String = text[start..end]
        .split_inclusive('\n')
        .map(|line| format!("# {line}"))
        .collect();
    Some(format!("{}{lines}{}", &text[..start], &text[end..]))
}
