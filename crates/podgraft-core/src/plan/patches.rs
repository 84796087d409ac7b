//! Carries out JSON patches (RFC 6902) on the draft, so that edits, reports and checks are those of any other item.

use json_patch::PatchOperation;
use json_patch::jsonptr::Pointer;
use json_patch::jsonptr::index::Index;
use serde_json::Value;

use crate::change::{ChangeTarget, Operation};
use crate::diagnostic::{Code, Diagnostic};
use crate::manifest::pod::Container;
use crate::policy::{PatchEntry, PatchScope};

use super::draft::{DraftValue, OpenId, OpenedCollection};
use super::patch_guard::InjectedItem;
use super::patch_limits::{GrowthError, PatchGrowth};
use super::planner::{PlanError, PlanResult, Planner};
use super::{order, reconcile};

/// The value at which the paths of a patch begin.
#[derive(Debug, Clone)]
enum PatchTarget<'t> {
    Workload,
    PodTemplate,
    Container(Box<Container<'t>>),
}

/// A patch, and where it is carried out.
struct PatchJob<'c> {
    target: PatchTarget<'c>,
    entry: &'c PatchEntry,
}

impl PatchJob<'_> {
    /// The target of its change.
    fn changed(&self) -> ChangeTarget {
        let container = match &self.target {
            PatchTarget::Container(container) => Some(container.name.to_owned()),
            PatchTarget::Workload | PatchTarget::PodTemplate => None,
        };
        ChangeTarget::Patched {
            container,
            number: self.entry.index + 1,
        }
    }
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
        self.unpatched = self.is_partial.then(|| self.draft.clone());
        let injected = self.injected_items();
        for job in self.patch_jobs() {
            self.attempt(|planner| planner.patch(&job, &injected));
        }
    }

    /// The patches with their targets, in the policy's order. A patch of containers comes once for each chosen one.
    fn patch_jobs(&self) -> Vec<PatchJob<'c>> {
        let mut jobs = Vec::new();
        for entry in &self.inject.patches {
            let target = match entry.scope {
                PatchScope::Workload => PatchTarget::Workload,
                PatchScope::PodTemplate => PatchTarget::PodTemplate,
                PatchScope::Container => continue,
            };
            jobs.push(PatchJob { target, entry });
        }
        for (container, inject) in self.chosen.iter().zip(self.container_injects()) {
            let is_for_container = |entry: &&PatchEntry| entry.scope == PatchScope::Container;
            for entry in inject.patches.iter().filter(is_for_container) {
                let target = PatchTarget::Container(Box::new(container.clone()));
                jobs.push(PatchJob { target, entry });
            }
        }
        jobs.sort_by_key(|job| job.entry.index);
        jobs
    }

    /// Applies all operations of a patch, or none.
    fn patch(&mut self, job: &PatchJob<'_>, injected: &[InjectedItem]) -> PlanResult {
        let (before, growth) = (self.draft.clone(), self.growth);
        let (identity, faults) = (self.identity(), self.faults());
        let result = self.carry_out(job);
        let applies = !matches!(result, Err(PatchError::Test(_)));
        *self.patch_results.entry(job.entry.index).or_default() |= applies;
        let done = match result {
            Ok(done) if !done.is_empty() => done,
            Ok(_) => {
                self.replace_draft(before);
                return Ok(());
            }
            Err(PatchError::Test(path)) => {
                self.replace_draft(before);
                self.problems.push(self.not_applied(job, &path));
                return Ok(());
            }
            Err(PatchError::Other(error)) => {
                self.replace_draft(before);
                return Err(error);
            }
        };
        let allowed = self
            .check_identity(&identity, job.entry)
            .and_then(|()| self.refuse_lost_items(injected, job.entry))
            .and_then(|()| self.refuse_not_idempotent(job, growth))
            .and_then(|()| self.refuse_new_faults(&faults, job.entry));
        if allowed.is_err() {
            // Take the refused patch back, so that the next one is checked on its own.
            self.replace_draft(before);
            return allowed;
        }
        self.report(Operation::Patch(done), || job.changed());
        Ok(())
    }

    fn not_applied(&self, job: &PatchJob<'_>, path: &str) -> Diagnostic {
        let message = format!(
            "{} does not apply to {}",
            job.changed(),
            self.workload.title()
        );
        Diagnostic::note(Code::PatchNotApplied, message)
            .at(self.workload.name_place(), "this workload")
            .at(
                self.policy.text.place(job.entry.item.at.clone()),
                format!("its test of `{path}` fails"),
            )
    }

    /// Carries out the operations. Returns those that changed something, each as `replace /spec/replicas`.
    fn carry_out(&mut self, job: &PatchJob<'_>) -> Result<Vec<String>, PatchError> {
        let mut done = Vec::new();
        for operation in &job.entry.patch.0 {
            let is_done = self.operation(job, operation)?;
            self.invalidate_opened();
            if is_done {
                done.push(format!("{} {}", word(operation), operation.path()));
            }
        }
        Ok(done)
    }

    fn operation(&mut self, job: &PatchJob<'_>, operation: &PatchOperation) -> PatchResult {
        let path = tokens(operation.path());
        match operation {
            PatchOperation::Add(add) => self.put_value(job, &path, &add.value, PutMode::Add),
            PatchOperation::Replace(replace) => {
                self.put_value(job, &path, &replace.value, PutMode::Replace)
            }
            PatchOperation::Remove(_) => self.remove_value(job, &path),
            PatchOperation::Copy(copy) => {
                let value = self.value_at(job, &copy.from)?;
                self.copied.push(job.entry.part(operation, value.clone()));
                self.put_value(job, &path, &value, PutMode::Add)
            }
            PatchOperation::Move(from_to) if from_to.from == from_to.path => Ok(false),
            PatchOperation::Move(from_to) => {
                let value = self.value_at(job, &from_to.from)?;
                self.copied.push(job.entry.part(operation, value.clone()));
                self.remove_value(job, &tokens(&from_to.from))?;
                self.put_value(job, &path, &value, PutMode::Add)?;
                Ok(true)
            }
            PatchOperation::Test(test) => {
                let existing = self
                    .find(job, &path)
                    .and_then(|part| self.draft.value(&part));
                // As in the patches of an API server, a test for null holds where there is nothing.
                match existing.unwrap_or(Value::Null) == test.value {
                    true => Ok(false),
                    false => Err(PatchError::Test(test.path.to_string())),
                }
            }
        }
    }

    fn target_part(&self, job: &PatchJob<'_>) -> Option<DraftValue> {
        match &job.target {
            PatchTarget::Workload => Some(self.draft.root()),
            PatchTarget::PodTemplate => Some(self.template_part()),
            PatchTarget::Container(container) => self.container_part(container),
        }
    }

    fn open_target(&mut self, job: &PatchJob<'_>) -> PlanResult<OpenId> {
        match &job.target {
            PatchTarget::Workload => Ok(self.draft.open_root()?),
            PatchTarget::PodTemplate => Ok(self.open_template()?),
            PatchTarget::Container(container) => self.open_container(container),
        }
    }

    fn find(&self, job: &PatchJob<'_>, path: &[String]) -> Option<DraftValue> {
        path.iter().try_fold(self.target_part(job)?, |part, token| {
            if self.draft.is_list(&part) {
                self.draft.item(&part, index(token)?)
            } else {
                self.draft.get(&part, token)
            }
        })
    }

    fn value_at(&self, job: &PatchJob<'_>, path: &Pointer) -> Result<Value, PatchError> {
        let found = self
            .find(job, &tokens(path))
            .and_then(|part| self.draft.value(&part));
        found.ok_or_else(|| self.patch_error(job, format!("there is nothing at `{path}`")))
    }

    fn patch_error(&self, job: &PatchJob<'_>, reason: String) -> PatchError {
        let message = format!(
            "{} cannot be applied to {}: {reason}",
            job.changed(),
            self.workload.title()
        );
        let help = "narrow `match`, or add a `test` first, so that the patch applies only where \
                    the test passes";
        let problem = self.problem(Code::BadPatch, message, &job.entry.item);
        problem.help(help).into()
    }

    fn put_value(
        &mut self,
        job: &PatchJob<'_>,
        path: &[String],
        value: &Value,
        mode: PutMode,
    ) -> PatchResult {
        let Some((last, parents)) = path.split_last() else {
            return Ok(false);
        };
        let existing = self.find(job, path);
        if mode == PutMode::Replace && existing.is_none() {
            let reason = format!("there is nothing at `{}` to replace", pointer(path));
            return Err(self.patch_error(job, reason));
        }
        let parent = self.find(job, parents);
        let is_list = parent.is_some_and(|parent| self.draft.is_list(&parent));
        let is_new_item = mode == PutMode::Add && is_list;
        // Adding to a list always inserts. Elsewhere, an equal value needs no change.
        if !is_new_item && existing.and_then(|part| self.draft.value(&part)).as_ref() == Some(value)
        {
            return Ok(false);
        }
        self.check_growth(job, path, value)?;
        let id = self.open_parents(job, parents, last)?;
        let order = self.order(job, parents);
        match self.draft.opened(id) {
            OpenedCollection::Mapping { .. } => {
                reconcile::set_field(&mut self.draft, id, last, value.clone(), order)?;
            }
            OpenedCollection::List { items, .. } => {
                let length = items.len();
                let at = last.parse::<Index>().ok();
                let Some(at) = at.and_then(|at| at.for_len_incl(length).ok()) else {
                    let reason = format!(
                        "`{}` is out of range for a list of length {length}",
                        pointer(path)
                    );
                    return Err(self.patch_error(job, reason));
                };
                match mode {
                    PutMode::Replace => reconcile::replace_item(&mut self.draft, id, at, value)?,
                    PutMode::Add => self.draft.insert(id, at, value.clone()),
                }
            }
        }
        Ok(true)
    }

    /// Counts a value against the limits. Without them, copies of copies would double the object with each operation.
    fn check_growth(
        &mut self,
        job: &PatchJob<'_>,
        path: &[String],
        value: &Value,
    ) -> Result<(), PatchError> {
        let template = self.workload.pod_kind.path.len();
        let above = match &job.target {
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
            job.changed(),
            self.workload.title(),
            pointer(path)
        );
        let help = "copy only what is needed, and nothing into itself";
        Err(self
            .problem(code, message, &job.entry.item)
            .help(help)
            .into())
    }

    fn remove_value(&mut self, job: &PatchJob<'_>, path: &[String]) -> PatchResult {
        let Some((last, parents)) = path.split_last() else {
            return Ok(false);
        };
        if self.find(job, path).is_none() {
            let reason = format!("there is nothing at `{}` to remove", pointer(path));
            return Err(self.patch_error(job, reason));
        }
        let id = self.open_parents(job, parents, last)?;
        match (self.draft.opened(id), index(last)) {
            (OpenedCollection::List { .. }, Some(at)) => self.draft.remove(id, at)?,
            _ => self.draft.remove_field(id, last)?,
        }
        Ok(true)
    }

    /// Opens the collection that holds the last token of a path. Missing parents are created.
    fn open_parents(
        &mut self,
        job: &PatchJob<'_>,
        parents: &[String],
        last: &str,
    ) -> Result<OpenId, PatchError> {
        let mut id = self.open_target(job)?;
        for (depth, token) in parents.iter().enumerate() {
            let path = &parents[..=depth];
            let existing = self.find(job, path);
            if existing
                .as_ref()
                .is_some_and(|part| self.draft.is_scalar(part))
            {
                let reason = format!("`{}` is neither a mapping nor a list", pointer(path));
                return Err(self.patch_error(job, reason));
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
                            return Err(self.patch_error(job, reason));
                        }
                    }
                }
                OpenedCollection::Mapping { .. } => {
                    let order = self.order(job, &parents[..depth]);
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
    fn order(&self, job: &PatchJob<'_>, path: &[String]) -> &'static [&'static str] {
        let template = &self.workload.pod_kind.path;
        let of_template: Option<&[String]> = match &job.target {
            PatchTarget::Workload => path.strip_prefix(template.as_slice()),
            PatchTarget::PodTemplate => Some(path),
            PatchTarget::Container(_) => None,
        };
        let words: Vec<&str> = path.iter().map(String::as_str).collect();
        match (&job.target, words.as_slice()) {
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
    fn refuse_not_idempotent(&mut self, job: &PatchJob<'_>, growth: PatchGrowth) -> PlanResult {
        let after = self.draft.clone();
        // The next run starts from zero, so the second application does not count against the limit of this one.
        let grown = std::mem::replace(&mut self.growth, growth);
        let outcome = self.carry_out(job);
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
            "{} would change its own result again in every run",
            job.changed()
        );
        let help = "add a `test` before it, so that it applies only once; `value: null` tests that \
                    nothing is there";
        let problem = self.problem(Code::BadPatch, message, &job.entry.item);
        Err(problem.help(help).into())
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
