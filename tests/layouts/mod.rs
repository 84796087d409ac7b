//! The small worlds in layouts as people write them, with generated objects and with texts that end in blanks or without a
//! line end. After every step nothing is a fault of our own and a second run changes nothing; at the end the bytes are those
//! of the beginning.
//!
//! `LAYOUTS=200000 LAYOUTS_SEED=7 cargo test --release --test integration layouts::` looks at more, and at others;
//! `LAYOUT=30064774225` at one, whose texts it prints.

use std::sync::Arc;
use std::{env, fmt};

use podgraft_core::diagnostic::Code;
use podgraft_core::graft::policy_diff::{PolicyVersions, against};
use podgraft_core::graft::{Options, graft, graft_with_locks};
use podgraft_core::options::RemovalSelection;
use podgraft_core::policy::Policy;
use podgraft_core::record::lock::{Lock, LockSet};
use podgraft_core::yaml::splice::splice;
use serde_json::{Value, json};

mod edits;
mod write;

use crate::worlds::{number, pick, pod, read, two_times};
use crate::yaml_files::mutants::Random;

use edits::HandEdit;

/// Texts that end in ways that need care.
const TEXTS: &[&str] = &[
    r#""v""#,
    r#""a\nb""#,
    r#""a\nb\n""#,
    r#""a\nb\n\n""#,
    r#""a\n\n\n""#,
    r#""a\n ""#,
    r#"" a\n""#,
    r#""""#,
];

const NAMES: &[&str] = &[r#""g""#, r#""h""#, r#""${workload.name}-g""#];

/// Objects of the user's own among the workloads.
fn config(random: &mut Random, at: usize) -> Value {
    let metadata = json!({"name": format!("own-{at}"), "namespace": "n"});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"k": pick(random, TEXTS)}})
}

fn input(random: &mut Random) -> String {
    let mut objects: Vec<Value> = (0..=random.below(2))
        .map(|name| pod(random, name))
        .collect();
    if random.below(3) == 0 {
        let at = random.below(objects.len() + 1);
        objects.insert(at, config(random, at));
    }
    for object in &mut objects {
        if random.below(6) == 0 {
            object["metadata"]["annotations"] = json!({"k": pick(random, TEXTS)});
        }
        if let Some(container) = object["spec"]["containers"].get_mut(0)
            && random.below(4) == 0
        {
            container["command"] = json!(["sh", "-c", pick(random, TEXTS)]);
        }
    }
    write::text(objects, random)
}

/// Lets policies generate objects and inject texts with line ends.
fn add_texts(policies: &mut [Value], random: &mut Random) {
    for policy in policies {
        if random.below(2) == 0 {
            let metadata = json!({"name": pick(random, NAMES), "namespace": "n"});
            policy["spec"]["generate"] = json!([{"resource": {
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"k": pick(random, TEXTS)},
            }}]);
        }
        if random.below(3) == 0 {
            policy["spec"]["inject"]["env"] = json!([{"name": "A", "value": pick(random, TEXTS)}]);
        }
        if random.below(4) == 0 {
            policy["spec"]["inject"]["podAnnotations"] = json!({"k": pick(random, TEXTS)});
        }
    }
}

/// A file, and what is recorded of it beside its annotations.
#[derive(Debug, Clone, PartialEq, Eq)]
struct State {
    text: String,
    /// The text of the lock file; none if the record is in the annotations.
    lock: Option<String>,
    /// Whether somebody has changed the file since the first run.
    is_edited: bool,
}

impl State {
    /// The state after one run: `None` where it is refused, an error where that is a fault of our own.
    fn run(
        &self,
        policies: &[Policy],
        take_out: &RemovalSelection,
    ) -> Result<Option<State>, String> {
        let name: Arc<str> = Arc::from("input.yaml");
        let mut locks = LockSet::default();
        if let Some(lock) = &self.lock {
            locks
                .locks
                .push(Lock::read(lock).expect("podgraft wrote it"));
            locks.files.insert(Arc::clone(&name), (0, name.to_string()));
        }
        let options = Options {
            record: self.lock.is_none() && !take_out.is_undo(),
            lock: self.lock.is_some(),
            take_out: take_out.clone(),
            ..Options::default()
        };
        let text = self.text.as_bytes();
        let report = graft_with_locks(&name, text, policies, &options, Arc::new(locks.clone()));
        let output = String::from_utf8(splice(text, &report.edits));
        let output = output.expect("text in text is text");
        let mut problems = report.diagnostics.iter();
        let faults = [Code::Internal, Code::InexactUndo];
        // Beside what somebody changed, places in the text may be lost, which is said.
        let faults = if self.is_edited {
            &faults[..1]
        } else {
            &faults[..]
        };
        if let Some(fault) = problems.find(|problem| faults.contains(&problem.code)) {
            let message = format!("{}: {}\n{output:?}", fault.code.name(), fault.message);
            return Err(message);
        }
        locks.put_all([(&*name, report.records.as_slice())]);
        Ok((!report.is_refused()).then(|| State {
            text: output,
            lock: self.lock.as_ref().map(|_| locks.locks[0].render()),
            is_edited: self.is_edited,
        }))
    }

    /// The state after a run and the same again, which changes nothing.
    fn step(
        &self,
        policies: &[Policy],
        take_out: &RemovalSelection,
    ) -> Result<Option<State>, String> {
        let Some(after) = self.run(policies, take_out)? else {
            return Ok(None);
        };
        match after.run(policies, take_out)? {
            Some(again) if again == after => Ok(Some(after)),
            Some(again) => Err(format!("not the same again:\n{after}\n=>\n{again}")),
            None => Err(format!("refused when applied again:\n{after}")),
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}=====\n{}",
            self.text,
            self.lock.as_deref().unwrap_or_default()
        )
    }
}

/// Whether `diff --against-policy` leads from the text of the old policies to that of the new ones.
fn leads_there(text: &str, old: &[Policy], new: &[Policy]) -> bool {
    let options = Options {
        authors: true,
        views: true,
        ..Options::default()
    };
    let text = text.as_bytes();
    let name = Arc::from("input.yaml");
    let [old, new] = [old, new].map(|policies| graft(&name, text, policies, &options));
    if old.is_refused() || new.is_refused() {
        return true;
    }
    let versions = PolicyVersions {
        old: &old,
        new: &new,
        upgrade: &new,
    };
    let (old_text, report) = against(text, versions);
    splice(&old_text, &report.edits) == splice(text, &new.edits)
}

/// A file, two generations of policies, and what somebody does to the file.
struct Story {
    input: String,
    first: Vec<Policy>,
    second: Vec<Policy>,
    /// The policies as text, for people.
    shown: String,
    /// The policy that is taken out before all others.
    gone: String,
    edit: Option<HandEdit>,
    edited_at: usize,
    has_lock: bool,
}

impl Story {
    /// `None` where podgraft does not take the policies.
    fn of(random: &mut Random) -> Option<Self> {
        let input = input(random);
        let number = 1 + random.below(2);
        let (mut first, mut second) = two_times(random, number);
        add_texts(&mut first, random);
        add_texts(&mut second, random);
        Some(Story {
            input,
            shown: format!("{first:#?}\n{second:#?}"),
            first: read(&first)?,
            second: read(&second)?,
            gone: format!("q{}", random.below(number)),
            edit: (random.below(2) == 0).then(|| HandEdit::pick(random)),
            edited_at: random.below(2),
            has_lock: random.below(2) == 0,
        })
    }

    /// The steps in which something is to do.
    fn steps(&self) -> impl Iterator<Item = (usize, &[Policy], RemovalSelection)> {
        let steps = [
            (self.first.as_slice(), RemovalSelection::Nothing),
            (self.second.as_slice(), RemovalSelection::Nothing),
            (&[], RemovalSelection::Only(vec![self.gone.clone()])),
            (&[], RemovalSelection::All),
        ];
        let steps = steps.into_iter().enumerate();
        let steps = steps.map(|(at, (policies, take_out))| (at, policies, take_out));
        steps.filter(|(_, policies, take_out)| !policies.is_empty() || take_out.is_undo())
    }

    /// The number of runs that wrote something.
    fn play(&self, random: &mut Random, is_shown: bool) -> Result<usize, String> {
        let mut state = State {
            text: self.input.clone(),
            lock: self.has_lock.then(String::new),
            is_edited: false,
        };
        let (mut edited, mut changed) = (None, 0);
        for (at, policies, take_out) in self.steps() {
            if is_shown {
                eprintln!("{state}");
            }
            let failed = |why: &str| self.told(&format!("step {at}: {why}\nof\n{state}"));
            if !leads_there(&state.text, &self.first, &self.second) {
                return Err(failed("the old policies do not lead to the new ones"));
            }
            let after = state.step(policies, &take_out);
            match after.map_err(|why| failed(&why))? {
                Some(after) => {
                    changed += usize::from(after.text != state.text);
                    state = after;
                }
                None if take_out == RemovalSelection::All => return Err(failed("undo is refused")),
                None => {}
            }
            if let Some(edit) = self.edit.filter(|_| at == self.edited_at) {
                state.text = edit.of(&state.text, &self.input, random);
                state.is_edited = true;
                edited = Some(state.text.clone());
            }
        }
        let lost = match &edited {
            None => (state.text != self.input).then_some("bytes"),
            Some(edited) => HandEdit::lost(edited, &state.text, &self.input),
        };
        let told = |lost| {
            self.told(&format!(
                "{lost}: undone to\n{:?}\nof\n{edited:?}",
                state.text
            ))
        };
        lost.map_or(Ok(changed), |lost| Err(told(lost)))
    }

    fn told(&self, why: &str) -> String {
        let (edit, at, input, shown) = (&self.edit, self.edited_at, &self.input, &self.shown);
        format!("{why}\n{edit:?} behind step {at}\n{input:?}\n{shown}")
    }
}

/// The number of runs that wrote something.
fn examine(seed: u64, is_shown: bool) -> Result<usize, String> {
    let mut random = Random::mixed(seed);
    let story = Story::of(&mut random);
    story.map_or(Ok(0), |story| story.play(&mut random, is_shown))
}

#[test]
fn whatever_the_layout_undo_gives_the_bytes_back() {
    let (worlds, first) = match env::var("LAYOUT") {
        Ok(number) => (1, number.parse().expect("a number")),
        Err(_) => (number("LAYOUTS", 500), number("LAYOUTS_SEED", 1) << 32),
    };
    let (mut wrong, mut changed) = (Vec::new(), 0);
    for seed in first..first + worlds {
        match examine(seed, worlds == 1) {
            Ok(steps) => changed += steps,
            Err(why) => wrong.push(format!("layout {seed}: {why}")),
        }
    }
    eprintln!("{worlds} layouts, {changed} changes, {} wrong", wrong.len());
    if let Ok(path) = env::var("LAYOUTS_LOG") {
        std::fs::write(path, wrong.join("\n\n\n")).expect("a log that can be written");
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong[0]);
    assert!(
        worlds < 100 || changed as u64 > worlds,
        "hardly anything was changed"
    );
}
