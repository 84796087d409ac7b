//! Words that the policy language has and this version does not do: refused at their place, never ignored.
//! Supporting one is to take it out of its list and to translate it.

use serde_json::Value;

use crate::diagnostic::{Code, Diagnostic};
use crate::policy::document::Document;
use crate::yaml::value::Path;

const OF_SPEC: [&str; 1] = ["generate"];

/// Every such word of a policy.
pub fn refuse(document: &Document<'_>) -> Vec<Diagnostic> {
    let spec = Path::of(&["spec"]);
    let mut found = Vec::new();
    refuse_keys(document, &spec, &OF_SPEC, &mut found);
    found
}

fn refuse_keys(document: &Document<'_>, at: &Path, words: &[&str], found: &mut Vec<Diagnostic>) {
    let Some(Value::Object(map)) = at.get(&document.value) else { return };
    for word in words.iter().filter(|&&word| map.contains_key(word)) {
        let message = format!("`{word}` comes with a later version of podgraft");
        let problem = document.key_error(Code::NotSupported, &at.key(word), message);
        found.push(problem.help("take it out: this version would not do what it says"));
    }
}
