//! What is read for facts: the manifests, `--context`, and what stands beside policies in their files.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

use podgraft::diagnostic::Diagnostic;
use podgraft::graft::{Options, foresee};
use podgraft::inventory::{DataIndex, Inventory, Needs, SourceText, Standing, read, read_part};
use podgraft::outcome::ObjectName;
use podgraft::policy::Policy;
use podgraft::policy::read::PolicyFile;

use crate::policies::InputText;
use crate::threads::map_in_order;
use crate::walk::{PathFilter, unreadable, walk};

/// Where facts may stand.
pub struct Sources<'s> {
    /// The manifests.
    pub manifests: Vec<Arc<dyn SourceText>>,
    /// Their texts, beside whose workloads policies generate.
    pub texts: &'s [InputText<'s>],
    /// The files of the policies.
    pub policy_files: &'s [PolicyFile],
    /// `--context`.
    pub context: &'s [PathBuf],
    /// The manifests go by once, and nobody knows what they hold.
    pub is_stream: bool,
}

/// What all sources say.
#[derive(Default)]
pub struct Facts {
    /// What policies ask for.
    pub inventory: Inventory,
    /// Each object that policies generate, and the number of the first text with a workload that wants it, which is
    /// where it is written.
    pub writers: BTreeMap<ObjectName, usize>,
    /// What is wrong.
    pub problems: Vec<Diagnostic>,
}

/// What all sources say together, as far as the policies ask. Where they ask for nothing, nothing is read.
pub fn gather(
    sources: Sources<'_>,
    policies: &[Policy],
    options: &Options,
    threads: Option<NonZeroUsize>,
) -> Facts {
    let mut problems = Vec::new();
    let mut writers = BTreeMap::new();
    let needs = Needs::of(policies);
    // A path that is not there is wrong, whether or not a policy asks.
    let context = match sources.context {
        [] => Vec::new(),
        paths => {
            let walked = walk(paths, &PathFilter::default());
            problems.extend(walked.problems);
            walked.inputs
        }
    };
    let mut inventory = Inventory::default();
    if needs.is_nothing() {
        return Facts {
            inventory,
            writers,
            problems,
        };
    }
    let read_text = |name: &Arc<str>, text: &[u8], standing: Standing| {
        read(name, text, standing, &needs, options)
    };
    // What ConfigMaps and Secrets of the manifests hold is read when a workload asks for it.
    let needs_at_once = Needs {
        data: false,
        ..needs.clone()
    };
    let of_manifests = map_in_order(&sources.manifests, threads, |text| {
        let (mut found, mut problems) = (Inventory::default(), Vec::new());
        if needs_at_once.is_nothing() {
            return (found, problems);
        }
        let scanned = text.scan(&mut |part| {
            let (name, part) = (text.name(), (part.text, part.first_line));
            let (said, wrong) = read_part(name, part, Standing::Manifest, &needs_at_once, options);
            found.add(said);
            problems.extend(wrong);
        });
        problems.extend(scanned.err().map(|error| unreadable(text.name(), &error)));
        (found, problems)
    });
    let of_policy_files = sources
        .policy_files
        .iter()
        .map(|file| read_text(&file.name, file.text.as_bytes(), Standing::Context));
    let of_context = map_in_order(&context, threads, |input| match input.read() {
        Ok(text) => read_text(&input.name, &text, Standing::Context),
        Err(problem) => (Inventory::default(), vec![problem]),
    });
    for (found, wrong) in of_manifests
        .into_iter()
        .chain(of_policy_files)
        .chain(of_context)
    {
        inventory.add(found);
        problems.extend(wrong);
    }
    if needs.data && !sources.is_stream {
        inventory.index = Some(DataIndex::of(sources.manifests, options)).into();
    }
    let foreseen = map_in_order(sources.texts, threads, |text| {
        foresee(
            NonZeroUsize::MIN,
            text.name,
            text.text,
            policies,
            options,
            &inventory,
        )
    });
    for (number, companions) in foreseen.into_iter().enumerate() {
        for companion in companions {
            writers.entry(companion.name.clone()).or_insert(number);
            inventory.add_companion(companion);
        }
    }
    Facts {
        inventory,
        writers,
        problems,
    }
}
