//! Changes as verbs with an object, for sentences: `replace sidecar log`, where a list says `sidecar log replaced`.

use super::{Change, JoinPlace, Operation};

/// A verb of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Verb {
    /// The infinitive.
    pub(crate) infinitive: &'static str,
    /// The third person singular.
    pub(crate) third_person: &'static str,
}

const fn verb(infinitive: &'static str, third_person: &'static str) -> Verb {
    Verb {
        infinitive,
        third_person,
    }
}

impl Change {
    /// The verb of the sentence that says what is done.
    pub(crate) fn verb(&self) -> Verb {
        match &self.operation {
            Operation::Add => verb("add", "adds"),
            Operation::Replace => verb("replace", "replaces"),
            Operation::Extend => verb("extend", "extends"),
            Operation::Join(join) => match join.place {
                JoinPlace::Append => verb("append to", "appends to"),
                JoinPlace::Prepend => verb("prepend to", "prepends to"),
                JoinPlace::Merge => verb("merge into", "merges into"),
            },
            Operation::Remove => verb("remove", "removes"),
            Operation::Patch(_) => verb("apply", "applies"),
            Operation::Update | Operation::Reclassify { .. } | Operation::Record(_) => {
                verb("change", "changes")
            }
            Operation::TakeOut => verb("undo", "undoes"),
            Operation::Restore => verb("restore", "restores"),
            Operation::Adopt => verb("adopt", "adopts"),
        }
    }

    /// The object of the [`verb`](Change::verb): `volume agent`, `app: env JAVA_TOOL_OPTIONS`.
    pub(crate) fn object(&self) -> String {
        let target = &self.target;
        match &self.operation {
            Operation::Join(join) => format!("{target}{}", join.source()),
            Operation::Reclassify { before, now } => format!("{target} from {before} to {now}"),
            Operation::Patch(_) | Operation::Record(_) => self.to_string(),
            _ => target.to_string(),
        }
    }
}

/// The changes by verb: `add volume agent, app: mount /agent and replace sidecar log`.
pub(crate) fn in_sentence(changes: &[Change]) -> String {
    let mut verbs: Vec<Verb> = Vec::new();
    for verb in changes.iter().map(Change::verb) {
        if !verbs.contains(&verb) {
            verbs.push(verb);
        }
    }
    let parts = verbs.into_iter().map(|verb| {
        let matching = changes.iter().filter(|change| change.verb() == verb);
        let objects: Vec<String> = matching.map(Change::object).collect();
        format!("{} {}", verb.infinitive, objects.join(", "))
    });
    parts.collect::<Vec<_>>().join(" and ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::{ChangeTarget, Join, OriginalVariable, PodItem, RecordCause};

    #[test]
    fn each_operation_makes_a_sentence() {
        let sidecar = || ChangeTarget::PodItem(PodItem::Sidecar, "log".to_owned());
        let sentence = |operation, target| in_sentence(&[Change::new(operation, target)]);
        for (operation, words) in [
            (Operation::Add, "add sidecar log"),
            (Operation::Replace, "replace sidecar log"),
            (Operation::Extend, "extend sidecar log"),
            (Operation::Update, "change sidecar log"),
            (Operation::Remove, "remove sidecar log"),
            (Operation::TakeOut, "undo sidecar log"),
            (Operation::Restore, "restore sidecar log"),
            (Operation::Adopt, "adopt sidecar log"),
        ] {
            assert_eq!(sentence(operation, sidecar()), words);
        }
        let class = Operation::Reclassify {
            before: "BestEffort",
            now: "Burstable",
        };
        let words = "change pod from BestEffort to Burstable";
        assert_eq!(sentence(class, ChangeTarget::Pod), words);
        let patched = ChangeTarget::Patched {
            container: None,
            number: 1,
        };
        let patch = Operation::Patch(vec!["add /a".to_owned(), "remove /b".to_owned()]);
        let words = "apply patch 1: add /a and remove /b";
        assert_eq!(sentence(patch, patched), words);
        let record = Operation::Record(RecordCause::IntoLock);
        let words = "change only the record: moved to podgraft.lock";
        assert_eq!(sentence(record, ChangeTarget::Record), words);
    }

    #[test]
    fn changes_stand_by_their_verbs() {
        let env = |operation, name| Change::new(operation, ChangeTarget::env("app", name));
        let joined = Operation::Join(Join {
            place: JoinPlace::Append,
            original: Some(OriginalVariable {
                name: "PODGRAFT_ORIG_C".to_owned(),
                is_of_env_from: true,
            }),
        });
        let changes = [
            env(Operation::Add, "A"),
            env(joined, "C"),
            env(Operation::Add, "B"),
        ];
        assert_eq!(
            in_sentence(&changes),
            "add app: env A, app: env B and append to app: env C of envFrom, which is now PODGRAFT_ORIG_C"
        );
    }
}
