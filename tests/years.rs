//! A repository for years: files of real manifests, policies that come, change and go, and people who edit what was injected.
//! A model knows what people wrote, workload by workload. After every step the manifests have the values that the newest
//! policies give what people wrote, a second run changes nothing, and undo gives the values that people wrote.
//!
//! `YEARS=100000 YEARS_SEED=7 cargo test --release --test integration years::` looks at more, and at others; `YEAR=42` at
//! one, with its steps.

use std::collections::{BTreeMap, HashMap};
use std::env;
use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use podgraft::diagnostic::Code;
use podgraft::edit::yaml_document;
use podgraft::graft::{Options, graft_on_threads};
use podgraft::inventory::Inventory;
use podgraft::options::TakeOut;
use podgraft::policy::Policy;
use podgraft::record::lock::{Lock, Locks};
use podgraft::report::{FileReport, splice};
use podgraft::yaml::parse::parse;
use podgraft::yaml::tree::{NodeId, Tree};
use podgraft::yaml::value::to_value;
use serde_json::{Value, json};
use walkdir::WalkDir;

use crate::promises;
use crate::yaml_files::mutants::Random;

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
    if !is_kind || !is_named || !is_block || names.is_empty() || names.iter().any(String::is_empty)
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
        .map(|own| own["name"].as_str().unwrap_or_default().to_owned())
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
        let joined = json!([{"name": "JAVA_TOOL_OPTIONS", "op": "Append", "value": format!("-javaagent:/agent-{version}.jar")}]);
        let shared = json!([{"name": "pg-shared", "emptyDir": {}}]);
        let mut inject = match self.shape {
            Shape::Agent => json!({
                "volumes": [{"name": "pg-agent", "emptyDir": {}}],
                "initContainers": [{
                    "name": "pg-agent", "image": format!("registry.example.com/agent:{version}"),
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
                    "type": "Container", "name": "pg-sidecar", "image": format!("registry.example.com/sidecar:{version}"),
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
            Shape::Agent => raise("/agent:", ""),
            Shape::Sidecar => raise("/sidecar:", ""),
            Shape::Part | Shape::Shipper | Shape::Level => {}
        }
        if self.shape == Shape::Part || self.shape == Shape::Agent && !self.is_split {
            raise("/agent-", ".jar");
        }
    }
}

fn read(policies: &[Given]) -> Vec<Policy> {
    let texts: Vec<String> = policies.iter().map(Given::text).collect();
    promises::policies(&texts.join("\n---\n")).unwrap_or_else(|problems| panic!("{problems:?}"))
}

/// What the policies give what people wrote.
fn wanted(human: &Value, policies: &[Policy]) -> Option<Value> {
    let text = yaml_document(human);
    let options = Options {
        marker: false,
        ..Options::default()
    };
    let name = Arc::from("input.yaml");
    let report = graft_on_threads(
        NonZeroUsize::MIN,
        &name,
        text.as_bytes(),
        policies,
        &options,
        &Inventory::default(),
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
            Value::Object(kept.filter(|(_, value)| !is_empty(value)).collect())
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
            let own = names_of(&values(&text)[0]);
            let variable = ["LEVEL", "JAVA_TOOL_OPTIONS"][random.below(2)];
            let text = with_variable(&text, &own[0], variable).unwrap_or(text);
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

    fn locks(&self) -> Locks {
        let lock = Lock::read(&self.lock).expect("podgraft wrote it");
        let files = self.files.keys();
        let known = files.map(|file| (Arc::from(file.as_str()), (0, file.clone())));
        Locks {
            locks: vec![lock],
            files: known.collect(),
        }
    }

    /// A run in place over all files. Nothing is written where one is refused.
    fn run(&mut self, policies: &[Policy], take_out: &TakeOut) -> Result<Ran, String> {
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
                policies,
                &options,
                &inventory,
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
        self.run(&read(&self.policies), &TakeOut::Nothing)
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
        match again.run(&[], &TakeOut::All) {
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

fn differs(what: &str, wanted: &Value, found: &Value) -> String {
    let text = |value: &Value| serde_yaml::to_string(&normal(value)).expect("a value is YAML");
    let (wanted, found) = (text(wanted), text(found));
    let diff = similar::TextDiff::from_lines(&wanted, &found);
    format!("{what}\n{}", diff.unified_diff())
}

/// The text with another scalar at a place.
fn with_scalar(text: &str, path: &[&str], new: &str) -> String {
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
    tree.children(list).find(|&own| {
        let found = tree.get(own, "name").and_then(|name| tree.scalar(name));
        found == Some(name)
    })
}

/// The text with another scalar in a container.
fn with_field(text: &str, name: &str, key: &str, new: &str) -> Option<String> {
    let tree = parse(text).ok()?;
    let span = tree.span(tree.get(container(&tree, name)?, key)?);
    Some(format!("{}{new}{}", &text[..span.start], &text[span.end..]))
}

/// The text with one more variable in a container, in front of the others.
fn with_variable(text: &str, name: &str, variable: &str) -> Option<String> {
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
            let own = format!(
                "{indent}env:{end}{indent}- name: {variable}{end}{indent}  value: mine{end}"
            );
            (line, own)
        }
    };
    Some(format!("{}{lines}{}", &text[..at], &text[at..]))
}

/// The text with the lines of a variable commented out.
fn without_variable(text: &str, name: &str, variable: &str) -> Option<String> {
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

/// A step of the repository's life, in words. `None`: it does not fit here.
fn step(repository: &mut Repository, random: &mut Random) -> Option<String> {
    let (name, file, at) = repository.pick(random);
    match random.below(3) {
        0 => {
            let own = names_of(&repository.human[&name]);
            let container = &own[random.below(own.len())];
            edit_by_hand(repository, random.below(6), (&name, &file, at), container)
        }
        1 => change_files(repository, random.below(6), (&name, &file, at)),
        _ => {
            let which = random.below(repository.policies.len().max(1));
            change_policies(repository, random.below(8), which)
        }
    }
}

/// What somebody does to a workload: its name, its file, its place in it.
fn edit_by_hand(
    repository: &mut Repository,
    what: usize,
    (name, file, at): (&str, &str, usize),
    container: &str,
) -> Option<String> {
    let text = repository.document(file, at).clone();
    let count = repository.next();
    let human = repository.human.get_mut(name).expect("it is there");
    let all = human["spec"]["template"]["spec"]["containers"]
        .as_array_mut()
        .expect("it is a list");
    let is_it = |own: &&mut Value| own["name"] == json!(container);
    let own = all.iter_mut().find(is_it).expect("it is there");
    let (edited, told) = match what {
        0 => {
            let image = format!("registry.example.com/own:{count}");
            own["image"] = json!(image);
            let edited = with_field(&text, container, "image", &image)?;
            (edited, format!("{name}: image of {container}"))
        }
        1 => {
            let variable = format!("OWN_{count}");
            if own["env"].is_null() {
                own["env"] = json!([]);
            }
            let env = own["env"].as_array_mut().expect("it is a list");
            env.insert(0, json!({"name": variable, "value": "mine"}));
            let edited = with_variable(&text, container, &variable)?;
            (
                edited,
                format!("{name}: variable {variable} of {container}"),
            )
        }
        2 => {
            let env = own["env"].as_array_mut()?;
            let is_mine = |item: &Value| {
                let name = item["name"].as_str().unwrap_or_default();
                name.starts_with("OWN_")
            };
            let variable = env.remove(env.iter().position(is_mine)?)["name"].clone();
            let edited = without_variable(&text, container, variable.as_str()?)?;
            (
                edited,
                format!("{name}: {variable} of {container} is commented out"),
            )
        }
        3 => {
            let new = format!("w{}", 100 + count);
            human["metadata"]["name"] = json!(new);
            let human = repository.human.remove(name).expect("it is there");
            repository.human.insert(new.clone(), human);
            let edited = with_scalar(&text, &["metadata", "name"], &new);
            (edited, format!("{name} is called {new}"))
        }
        4 => {
            let new = format!("c{count}");
            own["name"] = json!(new);
            let edited = with_field(&text, container, "name", &new)?;
            (
                edited,
                format!("{name}: container {container} is called {new}"),
            )
        }
        _ => {
            let injected = ["PG_SHIPPER", "JAVA_TOOL_OPTIONS"];
            let mut injected = injected.iter().filter(|own| text.contains(**own));
            let variable = injected.find(|injected| !own.to_string().contains(**injected))?;
            let edited = without_variable(&text, container, variable)?;
            (
                edited,
                format!("{name}: the injected {variable} of {container} is commented out"),
            )
        }
    };
    *repository.document(file, at) = edited;
    Some(told)
}

/// What somebody does to a file, or to the lock file.
fn change_files(
    repository: &mut Repository,
    what: usize,
    (name, file, at): (&str, &str, usize),
) -> Option<String> {
    let count = repository.next();
    let documents = repository.files.get_mut(file).expect("it is there");
    Some(match what {
        0 => {
            documents[at] = yaml_document(&values(&documents[at])[0]);
            let unix = |document: &mut String| *document = document.replace("\r\n", "\n");
            documents.iter_mut().for_each(unix);
            format!("{name} is formatted anew")
        }
        1 => {
            for document in documents {
                *document = match document.contains("\r\n") {
                    true => document.replace("\r\n", "\n"),
                    false => document.replace('\n', "\r\n"),
                };
            }
            format!("{file}: other line ends")
        }
        2 => {
            documents.reverse();
            format!("{file}: other order")
        }
        3 => {
            let new = format!("apps/n{count}.yaml");
            let document = documents.remove(at);
            if documents.is_empty() {
                repository.files.remove(file);
            }
            repository.files.insert(new.clone(), vec![document]);
            format!("{name} moves from {file} to {new}")
        }
        4 => {
            let new = format!("apps/m{count}.yaml");
            let documents = repository.files.remove(file).expect("it is there");
            repository.files.insert(new.clone(), documents);
            format!("{file} is called {new}")
        }
        _ => {
            // What people wrote where a policy won is in it alone.
            let has_won = |own: &Given| own.shape == Shape::Level;
            if repository.policies.iter().any(has_won) {
                return None;
            }
            repository.lock.clear();
            "the lock file is lost".to_owned()
        }
    })
}

/// What becomes of one of the policies.
fn change_policies(repository: &mut Repository, what: usize, which: usize) -> Option<String> {
    let count = repository.next();
    let number = repository.policies.len();
    let policy = repository.policies.get_mut(which)?;
    Some(match what {
        0 => {
            policy.version += 1;
            let policy = policy.clone();
            let documents = repository.files.values_mut().flatten();
            documents.for_each(|document| policy.raise_in(document));
            format!("{} is raised to {} in both", policy.name, policy.version)
        }
        1 | 2 => {
            policy.version += 1;
            format!("{} {}", policy.name, policy.version)
        }
        3 => {
            let new = format!("{:?}-{count}", policy.shape).to_lowercase();
            let was = std::mem::replace(&mut policy.name, new);
            let told = format!("{was} is called {}", policy.name);
            policy.was = Some(was);
            told
        }
        4 => {
            policy.is_suspended = !policy.is_suspended;
            format!("{} is suspended: {}", policy.name, policy.is_suspended)
        }
        5 => {
            let mut policies = repository.policies.iter_mut();
            let agent = policies.find(|own| own.shape == Shape::Agent && !own.is_split)?;
            agent.is_split = true;
            let part = Given {
                is_suspended: agent.is_suspended,
                ..Given::new(Shape::Part, agent.version)
            };
            repository.policies.push(part);
            "the agent's variable is a policy of its own".to_owned()
        }
        6 => {
            let shape = [Shape::Shipper, Shape::Sidecar, Shape::Level][count as usize % 3];
            if repository.policies.iter().any(|own| own.shape == shape) {
                return None;
            }
            repository.policies.push(Given::new(shape, 1));
            format!("{shape:?} is new")
        }
        _ if number > 1 => format!("{} is deleted", repository.policies.remove(which).name),
        _ => return None,
    })
}

/// Why a life is not as it should be; else how many steps were taken and how many of them refused.
fn examine(seed: u64, is_told: bool) -> Result<(usize, usize), String> {
    let mut random = Random::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let random = &mut random;
    (0..8).for_each(|_| {
        random.below(2);
    });
    let mut repository = Repository::new(random);
    let (mut taken, mut refused) = (0, 0);
    let mut told = vec!["the first run".to_owned()];
    for _ in 0..=12 {
        let before = repository.clone();
        let gone: Vec<String> = if taken == 0 {
            Vec::new()
        } else {
            let Some(what) = step(&mut repository, random) else {
                repository = before;
                continue;
            };
            told.push(what);
            let names = |repository: &Repository| {
                repository
                    .policies
                    .iter()
                    .map(|own| own.name.clone())
                    .collect::<Vec<_>>()
            };
            let now: Vec<Option<String>> = repository
                .policies
                .iter()
                .map(|own| own.was.clone())
                .collect();
            let kept = names(&repository);
            let is_gone =
                |name: &String| !kept.contains(name) && !now.contains(&Some(name.clone()));
            names(&before).into_iter().filter(is_gone).collect()
        };
        taken += 1;
        let failed = |why: String, repository: &Repository| {
            let files: Vec<String> = repository
                .files
                .keys()
                .map(|file| format!("# {file}\n{}", repository.text(file)))
                .collect();
            format!(
                "{}\n{why}\n{}\n{}",
                told.join("\n"),
                files.join("\n"),
                repository.lock
            )
        };
        let mut ran = Ran::Done;
        if !gone.is_empty() {
            ran = repository
                .run(&[], &TakeOut::Only(gone))
                .map_err(|why| failed(why, &before))?;
        }
        if matches!(ran, Ran::Done) {
            ran = repository.apply().map_err(|why| failed(why, &before))?;
        }
        if let Ran::Refused(why) = ran {
            if is_told {
                eprintln!("{} (refused: {why})", told[told.len() - 1]);
            }
            told.push(format!("  refused: {why}"));
            refused += 1;
            repository = before;
            if taken == 1 {
                return Ok((taken, refused));
            }
            continue;
        }
        if is_told {
            eprintln!("{}", told[told.len() - 1]);
        }
        if let Some(why) = repository.wrong() {
            return Err(failed(why, &repository));
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
