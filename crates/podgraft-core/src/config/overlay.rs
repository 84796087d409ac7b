//! Overlays a policy with the `match` and `containers` fields of a configuration. The overlaid text keeps the line
//! numbers of the file, so that diagnostics still point to the right lines.

use serde_json::{Map, Value};

use super::ConfigParam;
use crate::diagnostic::{Code, Diagnostic};
use crate::policy::functions::sha256;
use crate::policy::read::PolicyFile;
use crate::source::Place;
use crate::yaml::parse::parse;
use crate::yaml::tree::{NodeId, Tree};
use crate::yaml::value::to_value;

/// An entry of `policies` in a configuration.
#[derive(Debug, Clone, Default)]
pub struct PolicyUse {
    /// The policy, as `-p` takes it. Paths are relative to the configuration's folder.
    pub given: String,
    /// The digest that the file must have, and its place.
    pub sha256: Option<(String, Place)>,
    /// The parameters, for this policy only.
    pub params: Vec<ConfigParam>,
    /// Fields that replace those of the policy's `match`.
    pub selects: Map<String, Value>,
    /// Fields that replace those of the policy's `containers`.
    pub containers: Map<String, Value>,
    /// The place of the entry.
    pub at: Option<Place>,
}

impl PolicyUse {
    /// Checks the digest and overlays the files of the policy.
    ///
    /// # Errors
    /// The digest differs, or the fields are not for exactly one `InjectionPolicy`.
    pub fn of_files(&self, files: Vec<PolicyFile>) -> Result<Vec<PolicyFile>, Diagnostic> {
        let Some(at) = &self.at else {
            return Ok(files);
        };
        let refuse = |message: String| {
            Diagnostic::error(Code::BadPolicy, message).at(at.clone(), "used here")
        };
        if self.sha256.is_none() && self.selects.is_empty() && self.containers.is_empty() {
            return Ok(files);
        }
        let file = match <[PolicyFile; 1]>::try_from(files) {
            Ok([file]) => file,
            Err(files) => {
                let message = format!("`{}` stands for {} files", self.given, files.len());
                return Err(refuse(message).help(
                    "`sha256`, `match`, and `containers` apply to one file: add an entry for each \
                     file",
                ));
            }
        };
        self.check_digest(&file)?;
        if self.selects.is_empty() && self.containers.is_empty() {
            return Ok(vec![file]);
        }
        let text = self.overlaid(&file.text).map_err(|reason| {
            refuse(format!("`{}` {reason}", self.given)).help(
                "`match` and `containers` apply to a file with one InjectionPolicy; `podgraft \
                 policy convert` converts another operator's resource to one",
            )
        })?;
        Ok(vec![PolicyFile { text, ..file }])
    }

    fn check_digest(&self, file: &PolicyFile) -> Result<(), Diagnostic> {
        let Some((wanted, at)) = &self.sha256 else {
            return Ok(());
        };
        let found = sha256(&file.text);
        if found.eq_ignore_ascii_case(wanted) {
            return Ok(());
        }
        let message = format!("`{}` does not match this digest", file.name);
        Err(Diagnostic::error(Code::DigestMismatch, message)
            .at(at.clone(), "expected")
            .help(format!(
                "review what changed in it, then set sha256: {found}"
            )))
    }

    /// The text of the policy with the overlaid fields.
    fn overlaid(&self, text: &str) -> Result<String, &'static str> {
        let tree = parse(text).map_err(|_| "is not valid YAML")?;
        let is_policy = |root: &&NodeId| {
            let kind = tree.scalar_at(**root, "kind");
            kind == Some("InjectionPolicy")
        };
        let roots: Vec<&NodeId> = tree.roots().iter().filter(is_policy).collect();
        let [root] = roots[..] else {
            return Err("does not contain exactly one InjectionPolicy");
        };
        let spec = tree.get(*root, "spec").ok_or("has no `spec`")?;
        let mut edits: Vec<(std::ops::Range<usize>, String)> = Vec::new();
        for (key, fields) in [("match", &self.selects), ("containers", &self.containers)] {
            if fields.is_empty() {
                continue;
            }
            edits.push(edit_of(&tree, spec, key, fields)?);
        }
        // From the end of the text, so that the remaining byte ranges stay valid.
        edits.sort_by_key(|(at, _)| std::cmp::Reverse(at.start));
        let mut overlaid = text.to_owned();
        for (at, replacement) in edits {
            overlaid.replace_range(at, &replacement);
        }
        Ok(overlaid)
    }
}

/// The edit that merges fields into a field of `spec`, written as JSON on one line. JSON is a part of YAML, so it fits
/// in block and flow style.
fn edit_of(
    tree: &Tree<'_>,
    spec: NodeId,
    key: &str,
    fields: &Map<String, Value>,
) -> Result<(std::ops::Range<usize>, String), &'static str> {
    let json =
        |value: &Map<String, Value>| serde_json::to_string(value).expect("a value is always JSON");
    let Some(node) = tree.get(spec, key) else {
        let at = tree.start(spec);
        let is_flow = tree.kind(spec).is_flow();
        let entry = match is_flow {
            true => format!("{key}: {}, ", json(fields)),
            // One new line. The lines behind it move by one, which diagnostics then show.
            false => {
                let line = tree.text()[..at].rfind('\n').map_or(0, |end| end + 1);
                format!("{key}: {}\n{}", json(fields), " ".repeat(at - line))
            }
        };
        let at = if is_flow { at + 1 } else { at };
        return Ok((at..at, entry));
    };
    let existing =
        to_value(tree, node).map_err(|_| "has a value that YAML readers disagree about")?;
    let mut whole = existing.as_object().cloned().unwrap_or_default();
    for (name, value) in fields {
        whole.insert(name.clone(), value.clone());
    }
    let span = tree.span(node);
    // As many line breaks as before keep the following lines in place.
    let lines = tree.text()[span.clone()].matches('\n').count();
    Ok((span, json(&whole) + &"\n".repeat(lines)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(json: &str) -> Map<String, Value> {
        serde_json::from_str(json).expect("it is JSON")
    }

    #[test]
    fn a_field_takes_the_place_of_the_policys_own_and_lines_stay() {
        let text = "kind: InjectionPolicy\nspec:\n  match:\n    kinds: [Job]\n    # why\n    selector:\n      \
                    matchLabels: {a: b}\n  inject: {}\n";
        let used = PolicyUse {
            selects: fields(r#"{"selector": {"matchLabels": {"c": "d"}}}"#),
            ..PolicyUse::default()
        };
        let overlaid = used.overlaid(text).expect("it is one policy");
        assert_eq!(
            overlaid.lines().position(|line| line == "  inject: {}"),
            text.lines().position(|line| line == "  inject: {}")
        );
        let tree = parse(&overlaid).expect("it is YAML");
        let value = to_value(&tree, tree.roots()[0]).expect("it is a value");
        assert_eq!(
            value["spec"]["match"],
            serde_json::json!({"kinds": ["Job"], "selector": {"matchLabels": {"c": "d"}}})
        );
    }

    #[test]
    fn a_field_that_is_not_there_is_added() {
        let used = PolicyUse {
            containers: fields(r#"{"names": ["app"]}"#),
            ..PolicyUse::default()
        };
        for text in [
            "kind: InjectionPolicy\nspec:\n  inject: {}\n",
            "kind: InjectionPolicy\nspec: {inject: {}}\n",
        ] {
            let overlaid = used.overlaid(text).expect("it is one policy");
            let tree = parse(&overlaid).expect("it is YAML");
            let value = to_value(&tree, tree.roots()[0]).expect("it is a value");
            let wanted = serde_json::json!({"containers": {"names": ["app"]}, "inject": {}});
            assert_eq!(value["spec"], wanted, "{text}");
        }
    }
}
