//! Speed of each stage on Helm-style manifests that the policy changes: `cargo bench --bench stages`. Whole processes are
//! measured with `benches/streams.py` and `benches/peers.py`.

use divan::Bencher;
use divan::counter::BytesCount;
use podgraft_core::edit::{TextCache, lower};
use podgraft_core::graft::{Options, RunContext, graft_on_threads};
use podgraft_core::inventory::Inventory;
use podgraft_core::manifest::object::{DocumentContent, Object, find_objects};
use podgraft_core::manifest::pod::Workload;
use podgraft_core::manifest::prefilter::classify;
use podgraft_core::manifest::workload::PodKinds;
use podgraft_core::plan::draft::Draft;
use podgraft_core::plan::plan;
use podgraft_core::policy::Policy;
use podgraft_core::policy::read::{PolicyFile, read};
use podgraft_core::source::Source;
use podgraft_core::verify::verify;
use podgraft_core::yaml::parse::{ReplacedRange, parse, reparse};
use podgraft_core::yaml::splice::{Edit, splice_text};
use podgraft_core::yaml::stream::chunks;
use podgraft_core::yaml::tree::Tree;
use std::num::NonZeroUsize;
use std::sync::{Arc, LazyLock};

/// Bundles of a ServiceAccount, a ConfigMap, a Service and a Deployment: about two megabytes.
static INPUT: LazyLock<String> = LazyLock::new(|| {
    include_str!("sample.yaml")
        .replace("lang: java", "runtime: java")
        .repeat(400)
});

static WORKLOAD: LazyLock<&str> = LazyLock::new(|| {
    let mut documents =
        chunks(INPUT.as_bytes()).map(|chunk| std::str::from_utf8(chunk.text).expect("UTF-8"));
    documents
        .find(|document| document.contains("kind: Deployment"))
        .expect("the sample has a workload")
});

static POLICIES: LazyLock<Vec<Policy>> = LazyLock::new(|| {
    let text = include_str!("policy.yaml").to_owned();
    let (policies, problems) = read(
        vec![PolicyFile {
            name: "policy.yaml".into(),
            text,
        }],
        &[],
    );
    assert!(problems.is_empty(), "{problems:?}");
    policies
});

static OPTIONS: LazyLock<Options> = LazyLock::new(|| Options {
    no_marker: true,
    brief: true,
    ..Options::default()
});

static KINDS: LazyLock<PodKinds> = LazyLock::new(|| PodKinds::of(&OPTIONS));

fn main() {
    divan::main();
}

fn bytes(text: &str) -> BytesCount {
    BytesCount::of_str(text)
}

#[divan::bench]
fn split(bencher: Bencher<'_, '_>) {
    bencher
        .counter(bytes(&INPUT))
        .bench(|| chunks(INPUT.as_bytes()).count());
}

#[divan::bench]
fn prefilter(bencher: Bencher<'_, '_>) {
    let text = INPUT.replace("kind: Deployment", "kind: Gateway");
    let documents: Vec<&[u8]> = chunks(text.as_bytes()).map(|chunk| chunk.text).collect();
    bencher.counter(bytes(&text)).bench(|| {
        for document in &documents {
            divan::black_box(classify(document, &KINDS));
        }
    });
}

#[divan::bench]
fn parse_workload(bencher: Bencher<'_, '_>) {
    bencher
        .counter(bytes(&WORKLOAD))
        .bench(|| parse(&WORKLOAD).is_ok());
}

/// What the stages behind the parser work on.
struct Parsed {
    tree: Tree<'static>,
    source: Source<'static>,
}

impl Parsed {
    fn new() -> Self {
        let tree = parse(&WORKLOAD).expect("the sample is YAML");
        Parsed {
            tree,
            source: Source::new("sample.yaml", &WORKLOAD),
        }
    }

    fn object(&self) -> Object {
        match find_objects(&self.tree, &KINDS).remove(0) {
            DocumentContent::Object(object) => object,
            DocumentContent::Untyped { .. } => unreachable!("the sample says what it is"),
        }
    }

    fn draft(&self) -> Draft<'_> {
        let object = self.object();
        let kind = KINDS
            .find(&object.api_version, &object.kind)
            .expect("a Deployment holds pods");
        let workload = Workload::read(&self.tree, &self.source, object, kind, None)
            .expect("it has a pod template");
        let inventory = Inventory::default();
        let run = RunContext::new(&POLICIES, &OPTIONS, &inventory);
        let planned = plan(&workload, run, None);
        assert!(
            planned.draft.is_changed(),
            "the policy selects the sample's workload"
        );
        planned.draft
    }

    fn edits(&self) -> Vec<Edit> {
        lower(&self.draft(), self.object().node, &mut TextCache::default())
            .expect("the sample is plain")
    }
}

#[divan::bench]
fn plan_workload(bencher: Bencher<'_, '_>) {
    let parsed = Parsed::new();
    bencher
        .counter(bytes(&WORKLOAD))
        .bench_local(|| parsed.draft().is_changed());
}

#[divan::bench]
fn edit_workload(bencher: Bencher<'_, '_>) {
    let parsed = Parsed::new();
    let (draft, object, mut written) = (parsed.draft(), parsed.object(), TextCache::default());
    bencher
        .counter(bytes(&WORKLOAD))
        .bench_local(|| lower(&draft, object.node, &mut written).is_ok());
}

#[divan::bench]
fn splice_workload(bencher: Bencher<'_, '_>) {
    let edits = Parsed::new().edits();
    bencher
        .counter(bytes(&WORKLOAD))
        .bench(|| splice_text(&WORKLOAD, &edits));
}

#[divan::bench]
fn verify_workload(bencher: Bencher<'_, '_>) {
    let parsed = Parsed::new();
    let edits = parsed.edits();
    let changes: Vec<ReplacedRange> = edits
        .iter()
        .map(|edit| (edit.at.clone(), edit.text.len()))
        .collect();
    let edited = splice_text(&WORKLOAD, &edits);
    let drafts = [(parsed.object().node, parsed.draft())];
    bencher.counter(bytes(&WORKLOAD)).bench_local(|| {
        let output = reparse(&parsed.tree, &edited, &changes).expect("the edited sample is YAML");
        verify(&output, &parsed.tree, &drafts, &[]).expect("it is what was planned");
    });
}

#[divan::bench(args = [1, 2])]
fn whole(bencher: Bencher<'_, '_>, threads: usize) {
    let threads = NonZeroUsize::new(threads).expect("not zero");
    let (name, inventory) = (Arc::from("sample.yaml"), Inventory::default());
    bencher.counter(bytes(&INPUT)).bench(|| {
        graft_on_threads(
            threads,
            &name,
            INPUT.as_bytes(),
            RunContext::new(&POLICIES, &OPTIONS, &inventory),
        )
        .edits
        .len()
    });
}
