//! A repository for years: files of real manifests, policies that come, change and go, and people who edit what was injected.
//! A model knows what people wrote, workload by workload. After every step the manifests have the values that the newest
//! policies give what people wrote, a second run changes nothing, and undo gives the values that people wrote.
//!
//! `YEARS=100000 YEARS_SEED=7 cargo test --release --test integration years::` looks at more, and at others; `YEAR=42` at
//! one, with its steps.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroUsize;
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, LazyLock};
use std::{env, fs};

use podgraft_core::diagnostic::Code;
use podgraft_core::edit::yaml_document;
use podgraft_core::graft::{Options, RunContext, graft_on_threads};
use podgraft_core::inventory::Inventory;
use podgraft_core::options::RemovalSelection;
use podgraft_core::outcome::FileReport;
use podgraft_core::policy::Policy;
use podgraft_core::record::lock::{Lock, LockSet};
use podgraft_core::yaml::parse::parse;
use podgraft_core::yaml::splice::splice;
use podgraft_core::yaml::value::to_value;
use serde_json::{Map, Value, json};
use walkdir::WalkDir;

mod steps;
mod texts;

use crate::promises;
use crate::yaml_files::mutants::Random;

use steps::step;
use texts::{with_scalar, with_variable};

fn number(name: &str, default: u64) -> u64 {
    env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

/// Documents of real manifests, and of the golden cases, that are one workload in block style.
static MANIFESTS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = [root.join("testdata/cases"), root.join("../shared/corpus")];
    let walked = folders
        .iter()
        .flat_map(|folder| WalkDir::new(folder).sort_by_file_name());
    let is_yaml = |path: &Path| {
        path.extension()
            .is_some_and(|end| end == "yaml" || end == "yml")
    };
    let mut found = Vec::new();
    for entry in walked
        .filter_map(Result::ok)
        .filter(|entry| is_yaml(entry.path()))
    {
        let Ok(text) = fs::read_to_string(entry.path()) else {
            continue;
        };
        for document in documents(&text) {
            if is_usable(&document) {
                found.push(document);
            }
        }
    }
    assert!(found.len() > 100, "{} manifests", found.len());
    found
});

/// The documents of a text, each with its last line end.
fn documents(text: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    for line in text.split_inclusive('\n') {
        if line.trim_end() == "---" {
            all.push(String::new());
        } else {
            all.last_mut().expect("one is there").push_str(line);
        }
    }
    all.retain(|document| !document.trim().is_empty());
    all
}

fn is_usable(document: &str) -> bool {
    let is_wanted = document.ends_with('\n')
        && document.len() < 20_000
        && !document.contains("podgraft.dev/")
        && !document.contains(['&', '\r', '\u{feff}']);
    let Ok(tree) = parse(document) else {
        return false;
    };
    let Some(&root) = tree
        .roots()
        .first()
        .filter(|_| is_wanted && tree.roots().len() == 1)
    else {
        return false;
    };
    let Some(value) = to_value(&tree, root).ok() else {
        return false;
    };
    let is_kind = ["Deployment", "StatefulSet", "DaemonSet"]
        .contains(&value["kind"].as_str().unwrap_or_default());
    let is_named = value["metadata"]["name"].is_string();
    let names = names_of(&value);
    let is_block = tree
        .get(root, "spec")
        .is_some_and(|spec| !tree.kind(spec).is_flow());
    // What an empty variable was before a text took its place, a lost lock file alone knows.
    let is_empty = |variable: &Value| {
        variable["name"] == "JAVA_TOOL_OPTIONS"
            && variable["valueFrom"].is_null()
            && variable["value"].as_str().is_none_or(str::is_empty)
    };
    let all = containers(&value).as_array().into_iter().flatten();
    let mut variables = all
        .filter_map(|container| container["env"].as_array())
        .flatten();
    let has_empty = variables.any(is_empty);
    // Whose containers have one name cannot be recorded.
    let has_twins = (1..names.len()).any(|at| names[..at].contains(&names[at]));
    if has_twins
        || has_empty
        || !is_kind
        || !is_named
        || !is_block
        || names.is_empty()
        || names.iter().any(String::is_empty)
    {
        return false;
    }
    // What the policies have nothing against.
    let policies: Vec<Given> = Shape::ALL.map(|shape| Given::new(shape, 1)).into();
    wanted(&value, &read(&policies)).is_some()
}

fn containers(object: &Value) -> &Value {
    &object["spec"]["template"]["spec"]["containers"]
}

fn names_of(object: &Value) -> Vec<String> {
    let all = containers(object).as_array().cloned().unwrap_or_default();
    all.iter()
        .map(|container| container["name"].as_str().unwrap_or_default().to_owned())
        .collect()
}

/// What a policy puts into a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// An init container with a volume, its mounts, and a text joined to a variable.
    Agent,
    /// The same volume as another, a variable, an annotation.
    Shipper,
    /// A sidecar with a volume that another policy has, too.
    Sidecar,
    /// A part of the agent in a policy of its own.
    Part,
    /// A variable that wins over what people wrote.
    Level,
}

impl Shape {
    const ALL: [Shape; 5] = [
        Shape::Agent,
        Shape::Shipper,
        Shape::Sidecar,
        Shape::Part,
        Shape::Level,
    ];
}

/// A policy of the repository.
#[derive(Debug, Clone)]
struct Given {
    shape: Shape,
    name: String,
    version: u64,
    was: Option<String>,
    is_suspended: bool,
    /// The variable is in a policy of its own.
    is_split: bool,
}

impl Given {
    fn new(shape: Shape, version: u64) -> Self {
        Given {
            shape,
            name: format!("{shape:?}").to_lowercase(),
            version,
            was: None,
            is_suspended: false,
            is_split: false,
        }
    }

    fn text(&self) -> String {
        let version = self.version;
        let joined = json!([{"name": "JAVA_TOOL_OPTIONS", "op": "Append", "value": format!("-javaagent:/pg-agent-{version}.jar")}]);
        let shared = json!([{"name": "pg-shared", "emptyDir": {}}]);
        let mut inject = match self.shape {
            Shape::Agent => json!({
                "volumes": [{"name": "pg-agent", "emptyDir": {}}],
                "initContainers": [{
                    "name": "pg-agent", "image": format!("registry.example.com/pg-agent:{version}"),
                    "volumeMounts": [{"name": "pg-agent", "mountPath": "/pg/agent"}],
                }],
                "volumeMounts": [{"name": "pg-agent", "mountPath": "/pg/agent"}],
            }),
            Shape::Shipper => json!({
                "volumes": shared,
                "env": [{"name": "PG_SHIPPER", "value": format!("v{version}")}],
                "volumeMounts": [{"name": "pg-shared", "mountPath": "/pg/logs"}],
                "podAnnotations": {"example.com/shipper": format!("v{version}")},
            }),
            Shape::Sidecar => json!({
                "volumes": shared,
                "sidecars": [{
                    "type": "Container", "name": "pg-sidecar", "image": format!("registry.example.com/pg-sidecar:{version}"),
                    "volumeMounts": [{"name": "pg-shared", "mountPath": "/pg/logs"}],
                }],
            }),
            Shape::Part => json!({"env": joined}),
            Shape::Level => json!({"env": [{"name": "LEVEL", "value": format!("v{version}")}]}),
        };
        if self.shape == Shape::Agent && !self.is_split {
            inject["env"] = joined;
        }
        let mut policy = json!({
            "apiVersion": "podgraft.dev/v1alpha1", "kind": "InjectionPolicy",
            "metadata": {"name": self.name}, "spec": {"inject": inject, "suspend": self.is_suspended},
        });
        if self.shape == Shape::Level {
            policy["spec"]["onConflict"] = json!("Replace");
        }
        if let Some(was) = &self.was {
            policy["metadata"]["annotations"] = json!({"podgraft.dev/renamed-from": was});
        }
        policy.to_string()
    }

    /// Writes its version into what it had injected, as a bot does.
    fn raise_in(&self, document: &mut String) {
        let (new, old) = (self.version, self.version - 1);
        let mut raise = |before: &str, behind: &str| {
            let text = |version| format!("{before}{version}{behind}");
            *document = document.replace(&text(old), &text(new));
        };
        match self.shape {
            Shape::Agent => raise("/pg-agent:", ""),
            Shape::Sidecar => raise("/pg-sidecar:", ""),
            Shape::Part | Shape::Shipper | Shape::Level => {}
        }
        if self.shape == Shape::Part || self.shape == Shape::Agent && !self.is_split {
            raise("/pg-agent-", ".jar");
        }
    }
}

thread_local! {
    /// What was read already, by its text: most steps leave the policies as they are.
    static READ: RefCell<HashMap<String, Rc<Vec<Policy>>>> = RefCell::default();
}

fn read(policies: &[Given]) -> Rc<Vec<Policy>> {
    let texts: Vec<String> = policies.iter().map(Given::text).collect();
    let text = texts.join("\n---\n");
    READ.with_borrow_mut(|read| {
        if read.len() > 1000 {
            read.clear();
        }
        let policies = read.entry(text).or_insert_with_key(|text| {
            let policies = promises::policies(text);
            Rc::new(policies.unwrap_or_else(|problems| panic!("{problems:?}")))
        });
        Rc::clone(policies)
    })
}

/// What the policies give what people wrote.
fn wanted(human: &Value, policies: &[Policy]) -> Option<Value> {
    let text = yaml_document(human);
    let options = Options {
        no_marker: true,
        ..Options::default()
    };
    let name = Arc::from("input.yaml");
    let report = graft_on_threads(
        NonZeroUsize::MIN,
        &name,
        text.as_bytes(),
        RunContext::new(policies, &options, &Inventory::default()),
    );
    if !promises::errors(&report).is_empty() {
        return None;
    }
    let output = String::from_utf8(splice(text.as_bytes(), &report.edits)).ok()?;
    values(&output).pop()
}

fn values(text: &str) -> Vec<Value> {
    let tree = parse(text).unwrap_or_else(|error| panic!("{error:?}\n{text}"));
    let value = |&root| to_value(&tree, root).expect("it has a value");
    tree.roots().iter().map(value).collect()
}

/// Without what podgraft says about itself, without what is empty, and lists in one order.
fn normal(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields
                .iter()
                .filter(|(key, _)| !key.starts_with("podgraft.dev/"));
            let kept = kept.map(|(key, value)| (key.clone(), normal(value)));
            let mut kept: Map<String, Value> = kept.filter(|(_, value)| !is_empty(value)).collect();
            kept.sort_keys(); // the text of an item is what lists are sorted by
            Value::Object(kept)
        }
        Value::Array(items) if items.iter().all(Value::is_object) => {
            let mut items: Vec<Value> = items.iter().map(normal).collect();
            items.sort_by_key(Value::to_string);
            Value::Array(items)
        }
        other => other.clone(),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// Files, the lock file, the policies, and what people wrote by the name of the workload.
#[derive(Debug, Clone)]
struct Repository {
    files: BTreeMap<String, Vec<String>>,
    lock: String,
    policies: Vec<Given>,
    human: BTreeMap<String, Value>,
    count: u64,
}

/// What came of a run.
enum Ran {
    Done,
    Refused(String),
}

impl Repository {
    fn new(random: &mut Random) -> Self {
        let mut repository = Repository {
            files: BTreeMap::new(),
            lock: String::new(),
            policies: vec![Given::new(Shape::Agent, 1)],
            human: BTreeMap::new(),
            count: 0,
        };
        for number in 0..1 + random.below(3) {
            let text = &MANIFESTS[random.below(MANIFESTS.len())];
            let (name, file) = (
                format!("w{number}"),
                format!("apps/f{}.yaml", random.below(2)),
            );
            let text = with_scalar(text, &["metadata", "name"], &name);
            let names = names_of(&values(&text)[0]);
            let variable = ["LEVEL", "JAVA_TOOL_OPTIONS"][random.below(2)];
            // Of two variables of one name the last counts.
            let text = match text.contains(variable) {
                true => text,
                false => with_variable(&text, &names[0], variable).unwrap_or(text),
            };
            repository.human.insert(name, values(&text).remove(0));
            repository.files.entry(file).or_default().push(text);
        }
        repository
    }

    fn text(&self, file: &str) -> String {
        let documents = &self.files[file];
        let is_crlf = documents[0].contains("\r\n");
        documents.join(if is_crlf { "---\r\n" } else { "---\n" })
    }

    fn locks(&self) -> LockSet {
        let lock = Lock::read(&self.lock).expect("podgraft wrote it");
        let files = self.files.keys();
        let known = files.map(|file| (Arc::from(file.as_str()), (0, file.clone())));
        LockSet {
            locks: vec![lock],
            files: known.collect(),
            ..LockSet::default()
        }
    }

    /// A run in place over all files. Nothing is written where one is refused.
    fn run(&mut self, policies: &[Policy], take_out: &RemovalSelection) -> Result<Ran, String> {
        let mut locks = self.locks();
        let mut inventory = Inventory::default();
        inventory.add_locks(Arc::new(locks.clone()));
        let options = Options {
            lock: true,
            take_out: take_out.clone(),
            ..Options::default()
        };
        let mut after: HashMap<String, (String, FileReport)> = HashMap::new();
        let mut refused = None;
        for file in self.files.keys() {
            let text = self.text(file);
            let name = Arc::from(file.as_str());
            let report = graft_on_threads(
                NonZeroUsize::MIN,
                &name,
                text.as_bytes(),
                RunContext::new(policies, &options, &inventory),
            );
            for problem in promises::errors(&report) {
                if problem.code == Code::Internal {
                    return Err(format!("{}\n{text}", problem.message));
                }
                refused
                    .get_or_insert_with(|| format!("{}: {}", problem.code.name(), problem.message));
            }
            let output = String::from_utf8(splice(text.as_bytes(), &report.edits))
                .expect("text in text is text");
            after.insert(file.clone(), (output, report));
        }
        if let Some(why) = refused {
            return Ok(Ran::Refused(why));
        }
        locks.locks[0].retain(|key| {
            let text = after.get(&key.file).map(|(text, _)| text);
            text.is_some_and(|text| text.contains(&key.name))
        });
        let reports = after.iter();
        locks
            .put_all(reports.map(|(file, (_, report))| (file.as_str(), report.records.as_slice())));
        self.lock = locks.locks[0].render();
        for (file, (text, _)) in after {
            self.files.insert(file, documents(&text));
        }
        Ok(Ran::Done)
    }

    fn apply(&mut self) -> Result<Ran, String> {
        self.run(&read(&self.policies), &RemovalSelection::Nothing)
    }

    /// Every workload with its values.
    fn workloads(&self) -> BTreeMap<String, Value> {
        let texts = self.files.keys().flat_map(|file| values(&self.text(file)));
        texts
            .map(|value| {
                (
                    value["metadata"]["name"]
                        .as_str()
                        .expect("it has a name")
                        .to_owned(),
                    value,
                )
            })
            .collect()
    }

    /// What is wrong after a run; `None` where nothing is.
    fn wrong(&self) -> Option<String> {
        let policies = read(&self.policies);
        let found = self.workloads();
        for (name, human) in &self.human {
            let Some(found) = found.get(name) else {
                return Some(format!("{name} is gone"));
            };
            let Some(wanted) = wanted(human, &policies) else {
                return Some(format!(
                    "{name}: what people wrote is refused, and this is not"
                ));
            };
            if normal(found) != normal(&wanted) {
                return Some(differs("not what the policies give", &wanted, found));
            }
        }
        let mut again = self.clone();
        match again.apply() {
            Err(why) => return Some(why),
            Ok(Ran::Refused(why)) => return Some(format!("refused when applied again: {why}")),
            Ok(Ran::Done) if again.files != self.files => {
                return Some("not the same again".to_owned());
            }
            Ok(Ran::Done) if again.lock != self.lock => {
                return Some(format!(
                    "another lock file:\n{}\n=>\n{}",
                    self.lock, again.lock
                ));
            }
            Ok(Ran::Done) => {}
        }
        match again.run(&[], &RemovalSelection::All) {
            Err(why) => return Some(why),
            Ok(Ran::Refused(why)) => return Some(format!("undo is refused: {why}")),
            Ok(Ran::Done) => {}
        }
        let undone = again.workloads();
        for (name, human) in &self.human {
            if normal(&undone[name]) != normal(human) {
                return Some(differs("undo gives something else", human, &undone[name]));
            }
        }
        None
    }

    /// Takes out the policies that are gone, and applies the others.
    fn follow(&mut self, gone: Vec<String>) -> Result<Ran, String> {
        if !gone.is_empty()
            && let Ran::Refused(why) = self.run(&[], &RemovalSelection::Only(gone))?
        {
            return Ok(Ran::Refused(why));
        }
        self.apply()
    }

    fn next(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    /// One of the workloads: its name, its file, and its place in the file.
    fn pick(&self, random: &mut Random) -> (String, String, usize) {
        let names: Vec<&String> = self.human.keys().collect();
        let name = names[random.below(names.len())].clone();
        for (file, documents) in &self.files {
            let is_it = |text: &String| values(text)[0]["metadata"]["name"] == json!(name);
            if let Some(at) = documents.iter().position(is_it) {
                return (name, file.clone(), at);
            }
        }
        panic!("{name} is in no file");
    }

    fn document(&mut self, file: &str, at: usize) -> &mut String {
        &mut self.files.get_mut(file).expect("it is there")[at]
    }
}

fn differs(title: &str, wanted: &Value, found: &Value) -> String {
    let text = |value: &Value| serde_yaml::to_string(&normal(value)).expect("a value is YAML");
    let (wanted, found) = (text(wanted), text(found));
    let diff = similar::TextDiff::from_lines(&wanted, &found);
    format!("{title}\n{}", diff.unified_diff())
}

/// The names of the policies that one repository has and the other has not, under another name either.
fn gone(before: &Repository, now: &Repository) -> Vec<String> {
    let is_kept = |name: &String| {
        let mut policies = now.policies.iter();
        policies.any(|policy| policy.name == *name || policy.was.as_ref() == Some(name))
    };
    let names = before.policies.iter().map(|policy| &policy.name);
    names.filter(|name| !is_kept(name)).cloned().collect()
}

/// What went wrong, behind the steps that led there, with all files.
fn story(steps: &[String], why: &str, repository: &Repository) -> String {
    let files: Vec<String> = repository
        .files
        .keys()
        .map(|file| format!("# {file}\n{}", repository.text(file)))
        .collect();
    format!(
        "{}\n{why}\n{}\n{}",
        steps.join("\n"),
        files.join("\n"),
        repository.lock
    )
}

/// Why a life is not as it should be; else how many steps were taken and how many of them refused.
fn examine(seed: u64, is_told: bool) -> Result<(usize, usize), String> {
    let random = &mut Random::mixed(seed);
    let mut repository = Repository::new(random);
    let (mut taken, mut refused) = (0, 0);
    let mut steps = vec!["the first run".to_owned()];
    for _ in 0..=12 {
        let before = repository.clone();
        if taken > 0 {
            let Some(step_taken) = step(&mut repository, random) else {
                repository = before;
                continue;
            };
            steps.push(step_taken);
        }
        taken += 1;
        let ran = repository
            .follow(gone(&before, &repository))
            .map_err(|why| story(&steps, &why, &before))?;
        if let Ran::Refused(why) = ran {
            if is_told {
                eprintln!("{} (refused: {why})", steps[steps.len() - 1]);
            }
            steps.push(format!("  refused: {why}"));
            refused += 1;
            repository = before;
            if taken == 1 {
                return Ok((taken, refused));
            }
            continue;
        }
        if is_told {
            eprintln!("{}", steps[steps.len() - 1]);
        }
        if let Some(why) = repository.wrong() {
            return Err(story(&steps, &why, &repository));
        }
    }
    Ok((taken, refused))
}

#[test]
fn a_repository_has_what_people_wrote_and_what_its_policies_want() {
    if let Ok(seed) = env::var("YEAR") {
        let found = examine(seed.parse().expect("a number"), true);
        return assert!(found.is_ok(), "{}", found.unwrap_err());
    }
    let (number, seed) = (number("YEARS", 30), number("YEARS_SEED", 1) << 32);
    let (mut taken, mut refused, mut wrong) = (0, 0, Vec::new());
    for seed in seed..seed + number {
        match examine(seed, false) {
            Ok((steps, of_these)) => (taken, refused) = (taken + steps, refused + of_these),
            Err(why) => wrong.push(format!("YEAR={seed}: {why}")),
        }
    }
    eprintln!(
        "{taken} steps, {refused} refused, {} of {number} wrong",
        wrong.len()
    );
    let shown: Vec<&str> = wrong.iter().take(5).map(String::as_str).collect();
    assert!(wrong.is_empty(), "{}", shown.join("\n\n"));
    assert!(
        refused * 10 < taken,
        "{refused} of {taken} steps are refused"
    );
}
