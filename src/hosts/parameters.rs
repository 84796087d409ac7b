//! Reads `ARGOCD_APP_PARAMETERS`, which an Application, or a file in its folder (`.argocd-source.yaml`), sets.

use std::collections::BTreeMap;

use podgraft_core::diagnostic::{Code, Diagnosed, Diagnostic, unless};
use podgraft_core::policy::schema::{did_you_mean, nearest};
use serde_json::{Value, from_value};

/// The list of chosen policies.
pub const POLICIES: &str = "policies";
/// The map of parameter values.
pub const PARAMS: &str = "params";
/// Whether warnings fail.
pub const STRICT: &str = "strict";

/// The parameters of an Argo CD Application.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ApplicationParameters {
    /// The names of the chosen policies, among those that the operator offers.
    pub policies: Vec<String>,
    /// Values by `[POLICY:]NAME`.
    pub params: BTreeMap<String, String>,
    /// Fail on warnings.
    pub strict: bool,
}

impl ApplicationParameters {
    /// Reads the JSON that Argo CD passes: a list of `{name, string | array | map}`. Unset, empty and `null` mean no
    /// parameters; Argo CD sends all three. `others` are the names of parameters for other programs.
    ///
    /// # Errors
    /// Text of another shape, and parameters with unknown names.
    pub fn read(text: Option<&str>, others: &[String]) -> Diagnosed<Self> {
        let text = text.unwrap_or_default();
        if text.trim().is_empty() {
            return Ok(ApplicationParameters::default());
        }
        let entries = match serde_json::from_str(text) {
            Ok(Value::Null) => Vec::new(),
            Ok(Value::Array(entries)) => entries,
            Ok(_) | Err(_) => return Err(vec![invalid("it is not a JSON list")]),
        };
        let (mut parameters, mut problems) = (ApplicationParameters::default(), Vec::new());
        for entry in &entries {
            problems.extend(parameters.add(entry, others).err());
        }
        unless(problems, parameters)
    }

    fn add(&mut self, entry: &Value, others: &[String]) -> Result<(), Diagnostic> {
        let Some(name) = entry["name"].as_str() else {
            return Err(invalid("an entry has no `name`"));
        };
        let expected =
            |type_name: &str| invalid(&format!("the parameter `{name}` must be {type_name}"));
        match name {
            POLICIES => self.policies = texts(entry).ok_or_else(|| expected("a list"))?,
            PARAMS => self.params = map(entry).ok_or_else(|| expected("a map"))?,
            STRICT => match entry["string"].as_str() {
                Some("true") => self.strict = true,
                Some("false" | "") => {}
                _ => return Err(expected("`true` or `false`")),
            },
            unrecognized if others.iter().any(|known| known == unrecognized) => {}
            unrecognized => return Err(unknown(unrecognized)),
        }
        Ok(())
    }
}

/// The texts of an array, or of one string, separated by commas. For an empty list, the UI sends an array of one empty
/// string.
fn texts(entry: &Value) -> Option<Vec<String>> {
    let mut texts: Vec<String> = match (&entry["array"], &entry["string"]) {
        (array @ Value::Array(_), _) => from_value(array.clone()).ok()?,
        (Value::Null, Value::String(text)) => {
            text.split(',').map(|text| text.trim().to_owned()).collect()
        }
        (Value::Null, Value::Null) if entry["map"].is_null() => Vec::new(),
        _ => return None,
    };
    texts.retain(|text| !text.is_empty());
    Some(texts)
}

fn map(entry: &Value) -> Option<BTreeMap<String, String>> {
    match &entry["map"] {
        Value::Null if entry["string"].is_null() && entry["array"].is_null() => {
            Some(BTreeMap::new())
        }
        map @ Value::Object(_) => from_value(map.clone()).ok(),
        _ => None,
    }
}

fn invalid(reason: &str) -> Diagnostic {
    Diagnostic::error(
        Code::BadParam,
        format!("invalid ARGOCD_APP_PARAMETERS: {reason}"),
    )
}

fn unknown(name: &str) -> Diagnostic {
    let known = [POLICIES, PARAMS, STRICT];
    let problem = Diagnostic::error(
        Code::UnknownParam,
        format!("the Application sets the unknown parameter `{name}`"),
    );
    match nearest(name, known.into_iter()) {
        Some(near) => problem.help(did_you_mean(near)),
        None => problem.help(format!(
            "valid parameters: {}; if another program uses this one, add `--other-parameter \
             {name}`",
            known.join(", ")
        )),
    }
}
