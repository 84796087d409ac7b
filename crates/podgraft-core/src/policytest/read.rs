//! Reads the tests of a file.

use serde_json::Value;
use std::sync::Arc;

use super::PolicyTest;
use super::types::{PolicyTestFile, PolicyTestSpec};
use crate::config::{check_kind, misfits, typed};
use crate::diagnostic::{Code, Diagnosed, Diagnostic, unless};
use crate::policy::document::{Document, about};
use crate::policy::read::{PolicyFile, not_yaml};
use crate::policy::schema::{Schema, meant_code};
use crate::policy::stored_schemas::POLICY_TEST;
use crate::yaml::parse::parse;
use crate::yaml::tree::{NodeId, Tree};
use crate::yaml::value::Path;

/// The kind of a test.
pub const KIND: &str = "PolicyTest";

static SCHEMA: Schema = Schema::Stored(&POLICY_TEST, "PolicyTest");

/// The tests of a file, and all errors in them. Objects of other kinds are skipped.
pub fn read(file: PolicyFile) -> (Vec<PolicyTest>, Vec<Diagnostic>) {
    let file = Arc::new(file);
    let tree = match parse(&file.text) {
        Ok(tree) => tree,
        Err(error) => return (Vec::new(), vec![not_yaml(&file, error, "the test")]),
    };
    let (mut tests, mut problems) = (Vec::new(), Vec::new());
    let is_test = |root: &&NodeId| tree.scalar_at(**root, "kind") == Some(KIND);
    for &root in tree.roots().iter().filter(is_test) {
        match read_one(&file, &tree, root) {
            Ok(test) => tests.push(test),
            Err(found) => problems.extend(found),
        }
    }
    (tests, problems)
}

fn read_one(file: &Arc<PolicyFile>, tree: &Tree<'_>, root: NodeId) -> Diagnosed<PolicyTest> {
    let document =
        Document::of(file, tree, root).map_err(|problem| vec![about(problem, "the test")])?;
    check_kind(&document, KIND, "test")?;
    let mut problems = misfits(&document, &SCHEMA, "test");
    problems.extend(unknown_codes(&document));
    unless(problems, ())?;
    let test: PolicyTestFile = typed(&document, "test")?;
    let problems = contradictions(&document, &test.spec);
    unless(problems, ())?;
    let name = test.metadata.name.unwrap_or_default();
    let params = document.entries(&Path::of(&["spec", "params"]));
    Ok(PolicyTest {
        name,
        file: Arc::clone(&file.name),
        at: document.place(&Path::default()),
        params_at: params.iter().map(|at| document.place(at)).collect(),
        kube_version_at: document.place(&Path::of(&["spec", "kubeVersion"])),
        spec: test.spec,
    })
}

/// Errors for a test that tests nothing, or that cannot pass.
fn contradictions(document: &Document<'_>, spec: &PolicyTestSpec) -> Vec<Diagnostic> {
    let expect = &spec.expect;
    let expects_nothing = expect.output.is_none()
        && expect.refused.is_empty()
        && expect.warnings.is_none()
        && expect.results.is_empty();
    let rules: [(bool, &[&str], &str, &str); 4] = [
        (
            spec.policies.is_empty(),
            &["policies"],
            "the test has no policy",
            "name files, folders or `builtin:NAME`",
        ),
        (
            spec.inputs.is_empty(),
            &["inputs"],
            "the test has no manifests",
            "name files or folders",
        ),
        (
            expects_nothing,
            &["expect"],
            "the test expects nothing",
            "say what must come of it: `output`, `refused`, `warnings` or `results`",
        ),
        (
            expect.output.is_some() && !expect.refused.is_empty(),
            &["expect", "output"],
            "the test expects an output of a run that is refused",
            "leave out `output` or `refused`: a refused run has no output",
        ),
    ];
    let broken = rules.into_iter().filter(|(is_broken, ..)| *is_broken);
    let problems = broken.map(|(_, path, message, help)| {
        let at = Path::of(&[&["spec"], path].concat());
        let problem = document.key_error(Code::BadPolicy, &at, message);
        problem.help(help)
    });
    problems.collect()
}

/// Errors for unknown diagnostic codes, which no run could ever report.
fn unknown_codes(document: &Document<'_>) -> Vec<Diagnostic> {
    let mut problems = Vec::new();
    for list in ["refused", "warnings"] {
        for at in document.entries(&Path::of(&["spec", "expect", list])) {
            let code = at.get(&document.value).and_then(Value::as_str);
            if let Some(code) = code.filter(|code| Code::find(code).is_none()) {
                let message = format!("there is no diagnostic code `{code}`");
                let problem = document.error(Code::UnknownCode, &at, message);
                problems.push(problem.help(meant_code(code)));
            }
        }
    }
    problems
}
