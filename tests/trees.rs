//! Trees of manifests as people keep them: files are edited, moved, split and deleted between runs over a part of them.
//! Beside the tree stands what it would be without podgraft. Whatever happened, undo of all gives these bytes, or says why
//! not.
//!
//! `TREES=1000 TREES_SEED=7` tries more of them, `TREE=N` one, with all its steps.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::{env, fs};

use walkdir::WalkDir;

use crate::program::{Place, stderr_of};
use crate::worlds::number;
use crate::yaml_files::mutants::Random;

/// The versions of the policy. What they want stands in some manifests already.
const VERSIONS: [&str; 3] = [
    "    env: [{name: LEVEL, value: high}, {name: OPTIONS, op: Append, value: -Dagent=1}]
    initContainers: [{name: agent, image: 'registry.example.com/agent:1'}]
    volumes: [{name: logs, emptyDir: {}}]
",
    "    env: [{name: LEVEL, value: higher}, {name: OPTIONS, op: Append, value: -Dagent=2}]
    initContainers: [{name: agent, image: 'registry.example.com/agent:2'}]
    podAnnotations: {team: ours}
    volumes: [{name: settings, configMap: {name: '${workload.name}-settings'}}]
  generate:
  - resource:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: '${workload.name}-settings'}
      data: {level: high}
",
    "    env: [{name: OPTIONS, op: Append, value: -Dagent=1}]
    volumes: [{name: logs, emptyDir: {}}]
    volumeMounts: [{name: logs, mountPath: /logs}]
",
];
/// What undo says where it cannot give everything back. Without a word, nothing may be missing.
const SAID: [&str; 4] = ["bad-record", "changed-since", "no-record", "orphaned"];
const FOLDERS: [&str; 4] = ["", "a/", "a/deep/", "b/"];

struct Tree {
    place: Place,
    /// The texts without injections, by path.
    bare: BTreeMap<String, String>,
    made: usize,
    log: String,
}

impl Tree {
    fn new(random: &mut Random) -> Self {
        let place = Place::new();
        fs::create_dir(place.path(".git")).expect("a folder can be made");
        let mut tree = Tree {
            place,
            bare: BTreeMap::new(),
            made: 0,
            log: String::new(),
        };
        for folder in FOLDERS {
            tree.add_file(random, folder);
        }
        tree
    }

    fn add_file(&mut self, random: &mut Random, folder: &str) {
        let documents = (0..=random.below(2)).map(|_| self.workload(random));
        let text = documents.collect::<Vec<_>>().join("---\n");
        let path = format!("{folder}f{}.yaml", self.made);
        self.place.write(&path, &text);
        self.bare.insert(path, text);
    }

    fn workload(&mut self, random: &mut Random) -> String {
        self.made += 1;
        let number = self.made;
        let mut text = format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: w{number}x\nspec:\n  # edited 0\n  template:\n"
        );
        if random.below(3) == 0 {
            text += "    metadata:\n      annotations:\n        team: ours\n";
        }
        let _ = write!(
            text,
            "    spec:\n      containers:\n      - name: app\n        image: app:{number}\n"
        );
        let level = ["", "high", "higher", "low"][random.below(4)];
        let options = ["", "-Xmx1g", "-Dagent=1"][random.below(3)];
        if !level.is_empty() || !options.is_empty() {
            text += "        env:\n";
        }
        for (name, value) in [("LEVEL", level), ("OPTIONS", options)] {
            if !value.is_empty() {
                let _ = writeln!(
                    text,
                    "        - name: {name}\n          value: {value} # {number}"
                );
            }
        }
        if random.below(3) == 0 {
            text += "      volumes:\n      - name: logs\n        emptyDir: {}\n";
        }
        text
    }

    fn file(&self, random: &mut Random) -> String {
        let files: Vec<&String> = self.bare.keys().collect();
        files[random.below(files.len())].clone()
    }

    /// Changes a text and what it would be without podgraft alike.
    fn edit(&mut self, path: &str, edit: impl Fn(&str) -> String) {
        self.place.write(path, edit(&self.place.read(path)));
        let bare = edit(&self.bare[path]);
        self.bare.insert(path.to_owned(), bare);
    }

    /// Takes the last workload of a file out, with what is generated for it.
    fn take_last(&mut self, path: &str) -> Option<(String, String)> {
        let (rest, last) = self.bare[path].rsplit_once("---\n")?;
        let (rest, last) = (rest.to_owned(), last.to_owned());
        let live = self.place.read(path);
        let name = last
            .lines()
            .find_map(|line| line.strip_prefix("  name: "))?;
        let is_of_it = |text: &&str| {
            text.contains(&format!("  name: {name}\n"))
                || text.contains(&format!("  name: {name}-settings\n"))
        };
        let (taken, left): (Vec<&str>, Vec<&str>) = live.split("---\n").partition(is_of_it);
        self.place.write(path, left.join("---\n"));
        self.bare.insert(path.to_owned(), rest);
        Some((last, taken.join("---\n")))
    }

    fn change(&mut self, random: &mut Random) {
        let path = self.file(random);
        let folder = FOLDERS[random.below(FOLDERS.len())];
        match random.below(5) {
            0 => {
                let number = random.below(1000);
                let _ = writeln!(self.log, "edit {path}");
                self.edit(&path, |text| {
                    text.replace("# edited ", &format!("# edited {number}"))
                });
            }
            1 => {
                self.made += 1;
                let target = format!("{folder}moved{}.yaml", self.made);
                let _ = writeln!(self.log, "mv {path} {target}");
                self.place.write(&target, self.place.read(&path));
                fs::remove_file(self.place.path(&path)).expect("it is there");
                let bare = self.bare.remove(&path).expect("it is known");
                self.bare.insert(target, bare);
            }
            2 if self.bare.len() > 2 => {
                let _ = writeln!(self.log, "rm {path}");
                fs::remove_file(self.place.path(&path)).expect("it is there");
                self.bare.remove(&path);
            }
            3 => {
                if let Some((bare, live)) = self.take_last(&path) {
                    self.made += 1;
                    let target = format!("{folder}split{}.yaml", self.made);
                    let _ = writeln!(self.log, "split {path} into {target}");
                    self.place.write(&target, live);
                    self.bare.insert(target, bare);
                }
            }
            _ => {
                let _ = writeln!(self.log, "delete the last workload of {path}");
                self.take_last(&path);
            }
        }
    }

    /// The whole tree, a folder, or some files.
    fn paths(&self, random: &mut Random) -> Vec<String> {
        match random.below(3) {
            0 => vec![".".to_owned()],
            1 => {
                let folder = FOLDERS[random.below(FOLDERS.len())];
                let has_files = self.bare.keys().any(|path| path.starts_with(folder));
                vec![if has_files {
                    format!("./{folder}")
                } else {
                    ".".to_owned()
                }]
            }
            _ => (0..=random.below(2)).map(|_| self.file(random)).collect(),
        }
    }

    /// Runs podgraft in place. Refusals are right, as long as nothing is written.
    fn run(&mut self, random: &mut Random) -> Result<(), String> {
        let mut args = vec!["undo".to_owned(), "-i".to_owned()];
        if random.below(3) > 0 {
            let version = random.below(VERSIONS.len());
            let policy = format!(
                "apiVersion: podgraft.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {{name: agent}}\nspec:\n  onConflict: \
                 Replace\n  inject:\n{}",
                VERSIONS[version]
            );
            self.place.write("policy.txt", policy);
            let _ = writeln!(self.log, "version {version}");
            args = ["apply", "-i", "-p", "policy.txt"]
                .map(str::to_owned)
                .to_vec();
        }
        args.extend(self.paths(random));
        let _ = writeln!(self.log, "podgraft {}", args.join(" "));
        let output = self.place.run(&args);
        match output.status.code() {
            Some(0 | 2) => Ok(()),
            code => Err(format!("exit {code:?}: {}", stderr_of(&output))),
        }
    }

    /// Undoes all in a copy.
    fn check(&self) -> Result<(), String> {
        let copy = Place::new();
        for entry in WalkDir::new(self.place.root()) {
            let entry = entry.expect("it can be read");
            let path = entry
                .path()
                .strip_prefix(self.place.root())
                .expect("it is below");
            match entry.file_type().is_dir() {
                true => fs::create_dir_all(copy.path(path)).expect("a folder can be made"),
                false => copy.write(path, fs::read(entry.path()).expect("it can be read")),
            }
        }
        let output = copy.run(&["undo", "-i", "."]);
        let errors = stderr_of(&output);
        if SAID
            .iter()
            .any(|code| errors.lines().any(|line| line == *code))
        {
            return Ok(());
        }
        for (path, bare) in &self.bare {
            let text = copy.read(path);
            if text != *bare {
                return Err(format!("{path} is\n{text}\nand was\n{bare}\n{errors}"));
            }
        }
        Ok(())
    }
}

fn live(seed: u64) -> Result<(), String> {
    let random = &mut Random::mixed(seed);
    let mut tree = Tree::new(random);
    for _ in 0..8 {
        let done = match random.below(2) {
            0 => {
                tree.change(random);
                Ok(())
            }
            _ => tree.run(random),
        };
        let checked = done.and_then(|()| tree.check());
        checked.map_err(|why| format!("tree {seed}\n{}{why}", tree.log))?;
    }
    Ok(())
}

#[test]
fn whatever_happens_to_a_tree_undo_gives_the_bytes_back() {
    let (first, trees) = match env::var("TREE") {
        Ok(seed) => (seed.parse().expect("a number"), 1),
        Err(_) => (number("TREES_SEED", 1) << 32, number("TREES", 12)),
    };
    let wrong: Vec<String> = (first..first + trees)
        .filter_map(|seed| live(seed).err())
        .collect();
    assert!(
        wrong.is_empty(),
        "{} of {trees}:\n{}",
        wrong.len(),
        wrong.join("\n\n")
    );
}
