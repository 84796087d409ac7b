//! The part of SARIF 2.1.0 that podgraft needs: one run of one tool, its rules and its results.
//! Source: <https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html>; GitHub's code scanning reads the first
//! location, the texts of the rule and the fingerprints.

use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::diagnostic::Severity;
use crate::policy::functions::sha256;
use crate::wording;

/// A log with one run. Results refer to rules by index.
#[derive(Default)]
pub(super) struct SarifLog {
    rules: Vec<Value>,
    results: Vec<LoggedResult>,
    /// How many results there are of each finding that is the same but for its line.
    twins: BTreeMap<String, usize>,
}

/// A result, the index of its rule, and its fingerprint if it has a location. It becomes JSON only when the log is
/// written, one at a time: a log may have a hundred thousand of them.
struct LoggedResult {
    rule: usize,
    result: SarifResult,
    fingerprint: Option<String>,
}

#[derive(Serialize)]
struct Log<'l> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    version: &'static str,
    runs: [Run<'l>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Run<'l> {
    tool: Value,
    column_kind: &'static str,
    #[serde(serialize_with = "serialize_results")]
    results: &'l SarifLog,
}

/// A rule of the SARIF log.
pub(super) struct SarifRule {
    pub id: String,
    pub short: String,
    pub full: String,
    pub markdown: Option<String>,
}

/// One result.
pub(super) struct SarifResult {
    pub level: Severity,
    /// One or more sentences.
    pub message: String,
    /// Sentences behind the message. They are no part of what makes a result the same: help names paths as given.
    pub help: String,
    pub location: Option<SarifLocation>,
    /// Further places, each with what is there.
    pub related: Vec<(SarifLocation, String)>,
    /// `Deployment shop/orders`.
    pub workload: Option<String>,
    /// The fix, as changes to the file of `location`.
    pub replacements: Vec<SarifReplacement>,
}

/// Removed lines and inserted text in the file of the result.
pub(super) struct SarifReplacement {
    /// The 1-based first line that is removed. If no line is removed, the text is inserted before it.
    pub line: usize,
    /// The number of removed lines.
    pub lines: usize,
    /// The inserted text.
    pub text: String,
}

/// A place in a file.
pub(super) struct SarifLocation {
    pub file: String,
    pub line: usize,
    pub column: Option<usize>,
}

impl SarifLog {
    pub(super) fn push(&mut self, rule: SarifRule, result: SarifResult) {
        let known = self.rules.iter().position(|known| known["id"] == rule.id);
        let location = result.location.as_ref();
        let fingerprint = location.map(|location| self.fingerprint(&rule.id, &result, location));
        self.results.push(LoggedResult {
            rule: known.unwrap_or(self.rules.len()),
            fingerprint,
            result,
        });
        if known.is_none() {
            self.rules.push(described(rule));
        }
    }

    pub(super) fn render(self) -> String {
        let driver = json!({
            "name": "podgraft",
            "semanticVersion": env!("CARGO_PKG_VERSION"),
            "rules": self.rules,
        });
        wording::pretty_json(&Log {
            schema: "https://json.schemastore.org/sarif-2.1.0.json",
            version: "2.1.0",
            runs: [Run {
                tool: json!({"driver": driver}),
                column_kind: "unicodeCodePoints",
                results: &self,
            }],
        })
    }

    fn value_of(&self, logged: &LoggedResult) -> Value {
        let result = &logged.result;
        let mut value = json!({
            "ruleId": self.rules[logged.rule]["id"],
            "ruleIndex": logged.rule,
            "level": wording::severity(result.level),
            "message": {"text": format!("{}{}", result.message, result.help)},
        });
        if let Some(location) = &result.location {
            value["locations"] = json!([place(location, result.workload.as_deref())]);
            value["partialFingerprints"] = json!({"podgraft/v1": logged.fingerprint});
            if !result.replacements.is_empty() {
                value["fixes"] = json!([fix(&result.replacements, location)]);
            }
        }
        if !result.related.is_empty() {
            let related = result.related.iter().map(|(location, text)| {
                let mut related = place(location, None);
                related["message"] = json!({"text": text});
                related
            });
            value["relatedLocations"] = related.collect();
        }
        value
    }

    /// A stable hash by which code scanning tracks a finding. It does not include the line, so that it stays the same
    /// when lines above are added or removed; equal findings are numbered.
    fn fingerprint(
        &mut self,
        rule: &str,
        result: &SarifResult,
        location: &SarifLocation,
    ) -> String {
        let workload = result.workload.as_deref().unwrap_or_default();
        let key = format!("{rule}\n{}\n{workload}\n{}", location.file, result.message);
        let twin = self.twins.entry(key.clone()).or_default();
        *twin += 1;
        sha256(&format!("{key}\n{twin}"))[..32].to_owned()
    }
}

fn serialize_results<S: Serializer>(log: &SarifLog, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(log.results.iter().map(|logged| log.value_of(logged)))
}

fn described(rule: SarifRule) -> Value {
    let mut value = json!({
        "id": rule.id,
        "shortDescription": {"text": rule.short},
        "fullDescription": {"text": rule.full},
    });
    if let Some(markdown) = &rule.markdown {
        value["help"] = json!({"text": markdown, "markdown": markdown});
    }
    value
}

fn place(location: &SarifLocation, workload: Option<&str>) -> Value {
    let mut region = json!({"startLine": location.line});
    if let Some(column) = location.column {
        region["startColumn"] = json!(column);
    }
    let mut value = json!({"physicalLocation": {"artifactLocation": {"uri": uri(&location.file)}, "region": region}});
    if let Some(workload) = workload {
        value["logicalLocations"] = json!([{"name": workload, "kind": "object"}]);
    }
    value
}

fn fix(replacements: &[SarifReplacement], location: &SarifLocation) -> Value {
    let replacements = replacements.iter().map(|replacement| {
        json!({
            "deletedRegion": {"startLine": replacement.line, "startColumn": 1, "endLine": replacement.line + replacement.lines, "endColumn": 1},
            "insertedContent": {"text": replacement.text},
        })
    });
    let change = json!({
        "artifactLocation": {"uri": uri(&location.file)},
        "replacements": replacements.collect::<Vec<_>>(),
    });
    json!({"description": {"text": "What `podgraft apply` does here."}, "artifactChanges": [change]})
}

/// A path as a relative URI reference, percent-encoded. The brackets of `<stdin>` are removed.
fn uri(path: &str) -> String {
    let mut uri = String::new();
    let path = path.trim_start_matches('<').trim_end_matches('>');
    for byte in path.trim_start_matches("./").bytes() {
        if byte.is_ascii_alphanumeric() || b"/.-_~@+,".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri
}
