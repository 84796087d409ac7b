//! Carries out JSON patches (RFC 6902) on the draft, so that edits, reports and checks are those of any other item.

use json_patch::PatchOperation;
use json_patch::jsonptr::Pointer;
use json_patch::jsonptr::index::Index;
use serde_json::Value;

use crate::change::{self, Operation};
use crate::diagnostic::{Code, Diagnostic};
use crate::manifest::pod::Container;
use crate::policy::{PatchEntry, PatchScope};

use super::draft::{DraftValue, OpenId, OpenedCollection};
use super::order;
use super::patch_limits::{GrowthError, PatchGrowth};
use super::planner::{PlanError, PlanResult, Planner};

/// The value at which the paths of a patch begin.
#[derive(Debug, Clone)]
enum PatchTarget<'t> {
    Workload,
    PodTemplate,
    Container(Box<Container<'t>>),
}

/// Why a patch failed.
enum PatchError {
    /// The path of a `test` that does not hold.
    Test(String),
    Other(PlanError),
}

impl<E: Into<PlanError>> From<E> for PatchError {
    fn from(error: E) -> Self {
        PatchError::Other(error.into())
    }
}

/// Whether an operation changed something.
type PatchResult = Result<bool, PatchError>;

/// Whether a value is added or replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PutMode {
    Add,
    Replace,
}

impl<'c, 't> Planner<'c, 't> {
    pub(super) fn patches(&mut self) {
        let mut injects = self.expanded.injects();
        let has_patches = injects.any(|inject| !inject.patches.is_empty());
        // On an incomplete plan, a patch could fail for reasons that are not its own.
        if !has_patches || self.problems.iter().any(Diagnostic::is_error) {
            return;
        }
        for (target, entry) in self.patch_jobs() {
            self.attempt(|planner| planner.patch(&target, entry));
        }
    }

    /// The patches with their targets, in the policy's order. A patch of containers comes once for each chosen one.
    fn patch_jobs(&self) -> Vec<(PatchTarget<'c>, &'c PatchEntry)> {
        let mut jobs = Vec::new();
        for entry in &self.inject.patches {
            match entry.scope {
                PatchScope::Workload => jobs.push((PatchTarget::Workload, entry)),
                PatchScope::PodTemplate => jobs.push((PatchTarget::PodTemplate, entry)),
                PatchScope::Container => {}
            }
        }
        for (container, inject) in self.chosen.iter().zip(self.container_injects()) {
            let entries = inject
                .patches
                .iter()
                .filter(|entry| entry.scope == PatchScope::Container);
            jobs.extend(
                entries.map(|entry| (PatchTarget::Container(Box::new(container.clone())), entry)),
            );
        }
        jobs.sort_by_key(|(_, entry)| entry.index);
        jobs
    }

    /// Applies all operations of a patch, or none.
    fn patch(&mut self, target: &PatchTarget<'_>, entry: &PatchEntry) -> PlanResult {
        let (before, growth) = (self.draft.clone(), self.growth);
        let (identity, faults) = (self.identity(), self.faults());
        let done = match self.carry_out(target, entry) {
            Ok(done) if !done.is_empty() => done,
            Ok(_) => {
                self.replace_draft(before);
                return Ok(());
            }
            Err(PatchError::Test(path)) => {
                self.replace_draft(before);
                self.problems.push(self.not_applied(target, entry, &path));
                return Ok(());
            }
            Err(PatchError::Other(error)) => {
                self.replace_draft(before);
                return Err(error);
            }
        };
        let allowed = self
            .check_identity(&identity, entry)
            .and_then(|()| self.refuse_not_idempotent(target, entry, growth))
            .and_then(|()| self.refuse_new_faults(&faults, entry));
        if allowed.is_err() {
            // Take the refused patch back, so that the next one is checked on its own.
            self.replace_draft(before);
            return allowed;
        }
        self.report(Operation::Patch(done), || patched(target, entry));
        Ok(())
    }

    fn not_applied(&self, target: &PatchTarget<'_>, entry: &PatchEntry, path: &str) -> Diagnostic {
        let message = format!(
            "{} does not apply to {}",
            patched(target, entry),
            self.workload.title()
        );
        Diagnostic::note(Code::PatchNotApplied, message)
            .at(self.workload.name_place(), "this workload")
            .at(
                self.policy.text.place(entry.item.at.clone()),
                format!("its test of `{path}` does not hold"),
            )
    }

    /// Carries out the operations. Returns those that changed something, each as `replace /spec/replicas`.
    fn carry_out(
        &mut self,
        target: &PatchTarget<'_>,
        entry: &PatchEntry,
    ) -> Result<Vec<String>, PatchError> {
        let mut done = Vec::new();
        for operation in &entry.patch.0 {
            let is_done = self.operation(target, operation, entry)?;
            self.invalidate_opened();
            if is_done {
                done.push(format!("{} {}", word(operation), operation.path()));
            }
        }
        Ok(done)
    }

    fn operation(
        &mut self,
        target: &PatchTarget<'_>,
        operation: &PatchOperation,
        entry: &PatchEntry,
    ) -> PatchResult {
        let path = tokens(operation.path());
        match operation {
            PatchOperation::Add(add) => {
                self.put_value(target, &path, &add.value, PutMode::Add, entry)
            }
            PatchOperation::Replace(replace) => {
                self.put_value(target, &path, &replace.value, PutMode::Replace, entry)
            }
            PatchOperation::Remove(_) => self.remove_value(target, &path, entry),
            PatchOperation::Copy(copy) => {
                let value = self.value_at(target, &copy.from, entry)?;
                self.put_value(target, &path, &value, PutMode::Add, entry)
            }
            PatchOperation::Move(from_to) if from_to.from == from_to.path => Ok(false),
            PatchOperation::Move(from_to) => {
                let value = self.value_at(target, &from_to.from, entry)?;
                self.remove_value(target, &tokens(&from_to.from), entry)?;
                self.put_value(target, &path, &value, PutMode::Add, entry)?;
                Ok(true)
            }
            PatchOperation::Test(test) => {
                let existing = self
                    .find(target, &path)
                    .and_then(|part| self.draft.value(&part));
                // As in the patches of an API server, a test for null holds where there is nothing.
                match existing.unwrap_or(Value::Null) == test.value {
                    true => Ok(false),
                    false => Err(PatchError::Test(test.path.to_string())),
                }
            }
        }
    }

    fn target_part(&self, target: &PatchTarget<'_>) -> Option<DraftValue> {
        match target {
            PatchTarget::Workload => Some(self.draft.root()),
            PatchTarget::PodTemplate => Some(self.template_part()),
            PatchTarget::Container(container) => self.container_part(container),
        }
    }

    fn open_target(&mut self, target: &PatchTarget<'_>) -> PlanResult<OpenId> {
        match target {
            PatchTarget::Workload => Ok(self.draft.open_root()?),
            PatchTarget::PodTemplate => Ok(self.open_template()?),
            PatchTarget::Container(container) => self.open_container(container),
        }
    }

    fn find(&self, target: &PatchTarget<'_>, path: &[String]) -> Option<DraftValue> {
        path.iter()
            .try_fold(self.target_part(target)?, |part, token| {
                if self.draft.is_list(&part) {
                    self.draft.item(&part, index(token)?)
                } else {
                    self.draft.get(&part, token)
                }
            })
    }

    fn value_at(
        &self,
        target: &PatchTarget<'_>,
        path: &Pointer,
        entry: &PatchEntry,
    ) -> Result<Value, PatchError> {
        let found = self
            .find(target, &tokens(path))
            .and_then(|part| self.draft.value(&part));
        found
            .ok_or_else(|| self.patch_error(target, entry, format!("there is nothing at `{path}`")))
    }

    fn patch_error(
        &self,
        target: &PatchTarget<'_>,
        entry: &PatchEntry,
        reason: String,
    ) -> PatchError {
        let message = format!(
            "{} does not fit {}: {reason}",
            patched(target, entry),
            self.workload.title()
        );
        let help =
            "narrow `match`, or put a `test` first: the patch then applies only where it holds";
        let problem = self.problem(Code::BadPatch, message, &entry.item);
        problem.help(help).into()
    }

    fn put_value(
        &mut self,
        target: &PatchTarget<'_>,
        path: &[String],
        value: &Value,
        mode: PutMode,
        entry: &PatchEntry,
    ) -> PatchResult {
        let Some((last, parents)) = path.split_last() else {
            return Ok(false);
        };
        let existing = self.find(target, path);
        if mode == PutMode::Replace && existing.is_none() {
            let reason = format!("there is nothing at `{}` to replace", pointer(path));
            return Err(self.patch_error(target, entry, reason));
        }
        let parent = self.find(target, parents);
        let is_list = parent.is_some_and(|parent| self.draft.is_list(&parent));
        let is_new_item = mode == PutMode::Add && is_list;
        // Adding to a list always inserts. Elsewhere, an equal value needs no change.
        if !is_new_item && existing.and_then(|part| self.draft.value(&part)).as_ref() == Some(value)
        {
            return Ok(false);
        }
        self.check_growth(target, path, value, entry)?;
        let id = self.open_parents(target, parents, last, entry)?;
        match self.draft.opened(id) {
            OpenedCollection::Mapping { .. } => {
                let order = self.order(target, parents);
                self.draft.set(id, last, value.clone(), order)?;
            }
            OpenedCollection::List { items, .. } => {
                let length = items.len();
                let at = last.parse::<Index>().ok();
                let Some(at) = at.and_then(|at| at.for_len_incl(length).ok()) else {
                    let reason = format!("`{}` is no place in a list of {length}", pointer(path));
                    return Err(self.patch_error(target, entry, reason));
                };
                match mode {
                    PutMode::Replace => self.draft.replace(id, at, value.clone())?,
                    PutMode::Add => self.draft.insert(id, at, value.clone()),
                }
            }
        }
        Ok(true)
    }

    /// Counts a value against the limits. Without them, copies of copies would double the object with each operation.
    fn check_growth(
        &mut self,
        target: &PatchTarget<'_>,
        path: &[String],
        value: &Value,
        entry: &PatchEntry,
    ) -> Result<(), PatchError> {
        let template = self.workload.pod_kind.path.len();
        let above = match target {
            PatchTarget::Workload => 0,
            PatchTarget::PodTemplate => template,
            // `spec`, the list, and the index.
            PatchTarget::Container(_) => template + 3,
        };
        let Err(GrowthError { code, reason }) = self.growth.add(above + path.len(), value) else {
            return Ok(());
        };
        let message = format!(
            "{} on {} would make the object {reason} at `{}`",
            patched(target, entry),
            self.workload.title(),
            pointer(path)
        );
        let help = "copy less: only what is needed, and nothing into itself";
        Err(self.problem(code, message, &entry.item).help(help).into())
    }

    fn remove_value(
        &mut self,
        target: &PatchTarget<'_>,
        path: &[String],
        entry: &PatchEntry,
    ) -> PatchResult {
        let Some((last, parents)) = path.split_last() else {
            return Ok(false);
        };
        if self.find(target, path).is_none() {
            let reason = format!("there is nothing at `{}` to take out", pointer(path));
            return Err(self.patch_error(target, entry, reason));
        }
        let id = self.open_parents(target, parents, last, entry)?;
        match (self.draft.opened(id), index(last)) {
            (OpenedCollection::List { .. }, Some(at)) => self.draft.remove(id, at)?,
            _ => self.draft.remove_field(id, last)?,
        }
        Ok(true)
    }

    /// Opens the collection that holds the last token of a path. Missing parents are created.
    fn open_parents(
        &mut self,
        target: &PatchTarget<'_>,
        parents: &[String],
        last: &str,
        entry: &PatchEntry,
    ) -> Result<OpenId, PatchError> {
        let mut id = self.open_target(target)?;
        for (depth, token) in parents.iter().enumerate() {
            let path = &parents[..=depth];
            let existing = self.find(target, path);
            if existing
                .as_ref()
                .is_some_and(|part| self.draft.is_scalar(part))
            {
                let reason = format!("`{}` is neither a mapping nor a list", pointer(path));
                return Err(self.patch_error(target, entry, reason));
            }
            let next = parents.get(depth + 1).map_or(last, String::as_str);
            let is_list = match existing.filter(|part| !self.draft.is_null(part)) {
                Some(part) => self.draft.is_list(&part),
                // A missing parent is created as a list if the next token is the index of the first item or the end.
                None => matches!(next, "-" | "0"),
            };
            id = match self.draft.opened(id) {
                OpenedCollection::List { items, .. } => {
                    match index(token).filter(|at| *at < items.len()) {
                        Some(at) if is_list => self.draft.open_item_list(id, at)?,
                        Some(at) => self.draft.open_item(id, at)?,
                        None => {
                            let reason = format!("there is no item `{}`", pointer(path));
                            return Err(self.patch_error(target, entry, reason));
                        }
                    }
                }
                OpenedCollection::Mapping { .. } => {
                    let order = self.order(target, &parents[..depth]);
                    match is_list {
                        true => self.draft.open_list(id, token, order)?,
                        false => self.draft.open_mapping(id, token, order)?,
                    }
                }
            };
        }
        Ok(id)
    }

    /// The usual order of keys in the mapping at a path.
    fn order(&self, target: &PatchTarget<'_>, path: &[String]) -> &'static [&'static str] {
        let template = &self.workload.pod_kind.path;
        let of_template: Option<&[String]> = match target {
            PatchTarget::Workload => path.strip_prefix(template.as_slice()),
            PatchTarget::PodTemplate => Some(path),
            PatchTarget::Container(_) => None,
        };
        let words: Vec<&str> = path.iter().map(String::as_str).collect();
        match (target, words.as_slice()) {
            (PatchTarget::Container(_), []) | (_, [.., "containers" | "initContainers", _]) => {
                order::CONTAINER
            }
            (PatchTarget::Workload, []) => order::OBJECT,
            (_, [.., "metadata"]) => order::METADATA,
            (_, [.., "env", _]) => order::ENV_VAR,
            _ => match of_template {
                Some([]) if template.is_empty() => order::OBJECT,
                Some([]) => order::TEMPLATE,
                Some([spec]) if spec == "spec" => order::POD_SPEC,
                Some(_) | None => &[],
            },
        }
    }

    /// Refuses a patch that would change its own result: the next run applies it again.
    fn refuse_not_idempotent(
        &mut self,
        target: &PatchTarget<'_>,
        entry: &PatchEntry,
        growth: PatchGrowth,
    ) -> PlanResult {
        let after = self.draft.clone();
        // The next run starts from zero, so the second application does not count against the limit of this one.
        let grown = std::mem::replace(&mut self.growth, growth);
        let outcome = self.carry_out(target, entry);
        self.growth = grown;
        let reapplied = self.replace_draft(after);
        let is_idempotent = match outcome {
            Err(PatchError::Test(_)) => true,
            Err(PatchError::Other(_)) => false,
            Ok(done) if done.is_empty() => true,
            // Without a value that all readers agree on, the two results cannot be compared.
            Ok(_) => reapplied
                .value(&reapplied.root())
                .is_some_and(|value| self.draft.value(&self.draft.root()) == Some(value)),
        };
        if is_idempotent {
            return Ok(());
        }
        let message = format!(
            "{} would change its own result again with every run",
            patched(target, entry)
        );
        let help = "add a `test` before it, so that it applies once; `value: null` says that nothing is there";
        let problem = self.problem(Code::BadPatch, message, &entry.item);
        Err(problem.help(help).into())
    }
}

fn patched(target: &PatchTarget<'_>, entry: &PatchEntry) -> change::ChangeTarget {
    let container = match target {
        PatchTarget::Container(container) => Some(container.name.to_owned()),
        PatchTarget::Workload | PatchTarget::PodTemplate => None,
    };
    change::ChangeTarget::Patched {
        container,
        number: entry.index + 1,
    }
}

fn word(operation: &PatchOperation) -> &'static str {
    match operation {
        PatchOperation::Add(_) => "add",
        PatchOperation::Remove(_) => "remove",
        PatchOperation::Replace(_) => "replace",
        PatchOperation::Move(_) => "move",
        PatchOperation::Copy(_) => "copy",
        PatchOperation::Test(_) => "test",
    }
}

fn tokens(pointer: &Pointer) -> Vec<String> {
    let tokens = pointer.tokens();
    tokens.map(|token| token.decoded().into_owned()).collect()
}

fn pointer(path: &[String]) -> String {
    json_patch::jsonptr::PointerBuf::from_tokens(path).to_string()
}

/// The index that a token names in a list. `None` if it is none, or `-`, which is the end.
fn index(token: &str) -> Option<usize> {
    match token.parse() {
        Ok(Index::Num(index)) => Some(index),
        Ok(Index::Next) | Err(_) => None,
    }
}
