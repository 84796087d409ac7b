//! What happens to a repository between two runs.

use podgraft_core::edit::yaml_document;
use serde_json::{Value, json};

use super::texts::{with_field, with_scalar, with_variable, without_variable};
use super::{Given, Repository, Shape, names_of, values};
use crate::yaml_files::mutants::Random;

/// A step of the repository's life, in words. `None`: it does not fit here.
pub fn step(repository: &mut Repository, random: &mut Random) -> Option<String> {
    let (name, file, at) = repository.pick(random);
    match random.below(3) {
        0 => {
            let containers = names_of(&repository.human[&name]);
            let container = &containers[random.below(containers.len())];
            match random.below(6) {
                3 => {
                    let new = format!("w{}", 100 + repository.next());
                    rename(repository, &name, &file, at, &new);
                    Some(format!("{name} is called {new}"))
                }
                edit => edit_by_hand(repository, edit, (&name, &file, at), container),
            }
        }
        1 => change_files(repository, random.below(7), (&name, &file, at)),
        _ => {
            let which = random.below(repository.policies.len().max(1));
            change_policies(repository, random.below(8), which)
        }
    }
}

fn rename(repository: &mut Repository, name: &str, file: &str, at: usize, new: &str) {
    let mut human = repository.human.remove(name).expect("it is there");
    human["metadata"]["name"] = json!(new);
    repository.human.insert(new.to_owned(), human);
    let document = repository.document(file, at);
    *document = with_scalar(document, &["metadata", "name"], new);
}

/// What somebody does to a container of a workload: its name, its file, its place in it.
fn edit_by_hand(
    repository: &mut Repository,
    edit: usize,
    (name, file, at): (&str, &str, usize),
    container: &str,
) -> Option<String> {
    let text = repository.document(file, at).clone();
    let count = repository.next();
    let human = repository.human.get_mut(name).expect("it is there");
    let all = human["spec"]["template"]["spec"]["containers"]
        .as_array_mut()
        .expect("it is a list");
    let is_it = |value: &&mut Value| value["name"] == json!(container);
    let value = all.iter_mut().find(is_it).expect("it is there");
    let (edited, description) = edit_container(value, &text, edit, count)?;
    *repository.document(file, at) = edited;
    Some(format!("{name}: {description}"))
}

/// Edits a container in a text and as a value. Returns the new text, and what was done.
fn edit_container(
    value: &mut Value,
    text: &str,
    edit: usize,
    count: u64,
) -> Option<(String, String)> {
    let container = &value["name"].as_str().expect("it has a name").to_owned();
    Some(match edit {
        0 => {
            let image = format!("registry.example.com/own:{count}");
            value["image"] = json!(image);
            let edited = with_field(text, container, "image", &image)?;
            (edited, format!("image of {container}"))
        }
        1 => {
            let variable = format!("OWN_{count}");
            if value["env"].is_null() {
                value["env"] = json!([]);
            }
            let env = value["env"].as_array_mut().expect("it is a list");
            env.insert(0, json!({"name": variable, "value": "mine"}));
            let edited = with_variable(text, container, &variable)?;
            (edited, format!("variable {variable} of {container}"))
        }
        2 => {
            let env = value["env"].as_array_mut()?;
            let name = |item: &Value| item["name"].as_str().unwrap_or_default().to_owned();
            let mine = env.iter().position(|item| name(item).starts_with("OWN_"))?;
            let variable = name(&env.remove(mine));
            let edited = without_variable(text, container, &variable)?;
            (
                edited,
                format!("{variable} of {container} is commented out"),
            )
        }
        4 => {
            let new = format!("c{count}");
            value["name"] = json!(new);
            let edited = with_field(text, container, "name", &new)?;
            (edited, format!("container {container} is called {new}"))
        }
        _ => {
            let injected = ["PG_SHIPPER", "JAVA_TOOL_OPTIONS"];
            let mut injected = injected.iter().filter(|name| text.contains(**name));
            let variable = injected.find(|injected| !value.to_string().contains(**injected))?;
            let edited = without_variable(text, container, variable)?;
            let description = format!("the injected {variable} of {container} is commented out");
            (edited, description)
        }
    })
}

/// What somebody does to a file, or to the lock file.
fn change_files(
    repository: &mut Repository,
    change: usize,
    (name, file, at): (&str, &str, usize),
) -> Option<String> {
    let count = repository.next();
    let documents = repository.files.get_mut(file).expect("it is there");
    Some(match change {
        0 => {
            documents[at] = yaml_document(&values(&documents[at])[0]);
            let unix = |document: &mut String| *document = document.replace("\r\n", "\n");
            documents.iter_mut().for_each(unix);
            format!("{name} is formatted anew")
        }
        1 => {
            documents.iter_mut().for_each(change_line_ends);
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
        5 => {
            let names: Vec<String> = documents.iter().map(|document| name_of(document)).collect();
            for (at, name) in names.iter().enumerate() {
                rename(repository, name, file, at, &format!("r{count}-{name}"));
            }
            format!("the workloads of {file} are called r{count}-...")
        }
        _ => {
            // What people wrote where a policy won is in it alone.
            let has_won = |given: &Given| given.shape == Shape::Level;
            if repository.policies.iter().any(has_won) {
                return None;
            }
            repository.lock.clear();
            "the lock file is lost".to_owned()
        }
    })
}

fn change_line_ends(document: &mut String) {
    *document = match document.contains("\r\n") {
        true => document.replace("\r\n", "\n"),
        false => document.replace('\n', "\r\n"),
    };
}

fn name_of(document: &str) -> String {
    let name = &values(document)[0]["metadata"]["name"];
    name.as_str().expect("it has a name").to_owned()
}

/// What becomes of one of the policies.
fn change_policies(repository: &mut Repository, change: usize, which: usize) -> Option<String> {
    let count = repository.next();
    let number = repository.policies.len();
    let policy = repository.policies.get_mut(which)?;
    Some(match change {
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
            let description = format!("{was} is called {}", policy.name);
            policy.was = Some(was);
            description
        }
        4 => {
            policy.is_suspended = !policy.is_suspended;
            format!("{} is suspended: {}", policy.name, policy.is_suspended)
        }
        5 => {
            let mut policies = repository.policies.iter_mut();
            let agent = policies.find(|given| given.shape == Shape::Agent && !given.is_split)?;
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
            if repository.policies.iter().any(|given| given.shape == shape) {
                return None;
            }
            repository.policies.push(Given::new(shape, 1));
            format!("{shape:?} is new")
        }
        _ if number > 1 => format!("{} is deleted", repository.policies.remove(which).name),
        _ => return None,
    })
}
