//! Gathers the inventory of a run from the manifests, `--context`, and the objects that stand beside policies in their
//! files.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;

use podgraft_core::diagnostic::Diagnostic;
use podgraft_core::graft::{Options, RunContext, generated_companions};
use podgraft_core::inventory::{
    DataIndex, Inventory, InventoryNeeds, SourceRole, SourceText, map_parts, read_part,
};
use podgraft_core::outcome::ObjectName;
use podgraft_core::policy::Policy;
use podgraft_core::policy::read::PolicyFile;
use podgraft_core::record::lock::LockSet;

use crate::locks::LockFiles;
use crate::problems::unreadable;
use crate::texts::InputBytes;
use crate::threads::{map_in_order, number};
use crate::walk::{FileWalk, Input};

/// The texts that may hold what policies look up.
pub struct FactSources<'s> {
    /// The manifests.
    pub manifests: Vec<Arc<dyn SourceText>>,
    /// The files of the policies.
    pub policy_files: &'s [PolicyFile],
    /// The files of `--context`. A missing path is an error even if no policy looks anything up.
    pub context: FileWalk,
    /// The lock files of the manifests, and the files beside them.
    pub lock_files: &'s LockFiles,
    /// The manifests are a stream and cannot be read ahead.
    pub is_stream: bool,
}

/// For each generated object, the index of the text that it is written to.
pub type Writers = BTreeMap<ObjectName, usize>;

/// The facts of all sources of a run.
#[derive(Default)]
pub struct RunFacts {
    /// What the policies look up.
    pub inventory: Inventory,
    /// Each object that policies generate, with the index of the first text that has a workload for it. There it is
    /// written.
    pub writers: Writers,
    /// Errors and warnings of reading the sources.
    pub problems: Vec<Diagnostic>,
}

/// Reads all sources, as far as the policies look something up; otherwise no source is read. `texts` are the manifests,
/// beside whose workloads policies generate objects.
pub fn gather(
    sources: FactSources<'_>,
    texts: &[InputBytes],
    policies: &[Policy],
    options: &Options,
    threads: Option<NonZeroUsize>,
) -> RunFacts {
    let mut facts = RunFacts {
        problems: sources.context.problems,
        ..RunFacts::default()
    };
    facts
        .inventory
        .add_locks(Arc::clone(&sources.lock_files.locks));
    let asking = InventoryRequest {
        needs: &InventoryNeeds::of(policies),
        options,
        threads,
    };
    if asking.needs.is_nothing() {
        return facts;
    }
    let of_manifests = asking.read_manifests(&sources.manifests, &sources.lock_files.locks);
    let of_policy_files = sources.policy_files.iter();
    let of_policy_files =
        of_policy_files.map(|file| asking.read_context(&file.name, file.text.as_bytes()));
    let of_context = map_in_order(&sources.context.inputs, threads, |input| {
        match input.read() {
            Ok(text) => asking.read_context(&input.name, &text),
            Err(problem) => (Inventory::default(), vec![problem]),
        }
    });
    let of_other_files = asking.read_recorded_files(&sources.lock_files.other_files);
    let all = of_manifests.into_iter().chain(of_policy_files);
    for (found, part_problems) in all.chain(of_context).chain(of_other_files) {
        facts.inventory.add(found);
        facts.problems.extend(part_problems);
    }
    if asking.needs.data && !sources.is_stream {
        let index = DataIndex::of(sources.manifests, number(threads), options);
        facts.inventory.index = Some(Arc::new(index));
    }
    let present = facts.add_companions(texts, policies, options, threads);
    facts
        .inventory
        .set_removed_aside(policies, options, &present);
    facts
}

impl RunFacts {
    /// Adds the objects that policies will generate beside the workloads of the texts, so that lookups find them in any
    /// text. Returns the names of those that are there already.
    fn add_companions(
        &mut self,
        texts: &[InputBytes],
        policies: &[Policy],
        options: &Options,
        threads: Option<NonZeroUsize>,
    ) -> Vec<ObjectName> {
        let run = RunContext::new(policies, options, &self.inventory);
        let foreseen = map_in_order(texts, threads, |(input, text)| {
            generated_companions(&input.name, text, run)
        });
        let mut present = Vec::new();
        for (number, generated) in foreseen.into_iter().enumerate() {
            present.extend(generated.present);
            for companion in generated.missing {
                let writer = self.writers.entry(companion.name.clone());
                writer.or_insert(number);
                self.inventory.add_companion(companion);
            }
        }
        present
    }
}

/// What to read from every source.
struct InventoryRequest<'a> {
    needs: &'a InventoryNeeds,
    options: &'a Options,
    threads: Option<NonZeroUsize>,
}

/// The inventory of one source, and its problems.
type SourceFacts = (Inventory, Vec<Diagnostic>);

impl InventoryRequest<'_> {
    fn read_context(&self, name: &Arc<str>, text: &[u8]) -> SourceFacts {
        let role = SourceRole::Context;
        read_part(name, text, 1, role, self.needs, self.options)
    }

    /// Reads the files that are not of this run, for the objects that earlier runs generated: there must not be two.
    fn read_recorded_files(&self, files: &[Input]) -> Vec<SourceFacts> {
        let needs = self.needs.only_generated();
        if needs.is_nothing() {
            return Vec::new();
        }
        let role = SourceRole::RecordedFile;
        map_in_order(files, self.threads, |file| match file.read() {
            Ok(text) => read_part(&file.name, &text, 1, role, &needs, self.options),
            Err(problem) => (Inventory::default(), vec![problem]),
        })
    }

    /// Reads the manifests, but not the data of their ConfigMaps and Secrets: that is read lazily, through
    /// [`DataIndex`].
    fn read_manifests(
        &self,
        manifests: &[Arc<dyn SourceText>],
        locks: &LockSet,
    ) -> Vec<SourceFacts> {
        let mut needs = self.needs.clone();
        needs.add_recorded(locks);
        needs.data = false;
        if needs.is_nothing() {
            return Vec::new();
        }
        let role = SourceRole::Manifest;
        let parts = map_parts(manifests, number(self.threads), |index, part| {
            let (name, first_line) = (manifests[index].name(), part.first_line);
            read_part(name, &part.text, first_line, role, &needs, self.options)
        });
        let facts = parts.into_iter().map(|(index, facts)| {
            facts.unwrap_or_else(|error| {
                let problem = unreadable(manifests[index].name(), &error);
                (Inventory::default(), vec![problem])
            })
        });
        facts.collect()
    }
}
