//! Speed of both parsers on Helm-style manifests, beside what `serde_yaml` needs to read them into values: `cargo bench
//! --bench parse`. `PODGRAFT_BENCH` names another input.

use divan::Bencher;
use divan::counter::BytesCount;
use podgraft_core::yaml::parse::{parse_fast, parse_with_granit};
use podgraft_core::yaml::stream::chunks;
use std::sync::LazyLock;
use std::{env, fs};

static INPUT: LazyLock<String> = LazyLock::new(|| match env::var("PODGRAFT_BENCH") {
    Ok(path) => fs::read_to_string(path).expect("PODGRAFT_BENCH names a text file"),
    Err(_) => include_str!("sample.yaml").repeat(1000),
});

static DOCUMENTS: LazyLock<Vec<&str>> = LazyLock::new(|| {
    chunks(INPUT.as_bytes())
        .map(|chunk| std::str::from_utf8(chunk.text).expect("UTF-8"))
        .collect()
});

fn main() {
    divan::main();
}

#[divan::bench(sample_count = 20)]
fn fast(bencher: Bencher) {
    let known = DOCUMENTS
        .iter()
        .filter(|text| parse_fast(text).is_some())
        .count();
    assert!(
        known * 100 > DOCUMENTS.len() * 97,
        "{known} of {} are known",
        DOCUMENTS.len()
    );
    bencher.counter(BytesCount::of_str(&**INPUT)).bench(|| {
        for text in &*DOCUMENTS {
            divan::black_box(parse_fast(text));
        }
    });
}

#[divan::bench(sample_count = 3)]
fn complete(bencher: Bencher) {
    bencher.counter(BytesCount::of_str(&**INPUT)).bench(|| {
        for text in &*DOCUMENTS {
            divan::black_box(parse_with_granit(text).is_ok());
        }
    });
}

/// A measure of the machine: these figures are known of others.
#[divan::bench(sample_count = 3)]
fn serde_yaml_values(bencher: Bencher) {
    bencher.counter(BytesCount::of_str(&**INPUT)).bench(|| {
        for text in &*DOCUMENTS {
            divan::black_box(serde_yaml::from_str::<serde_yaml::Value>(text).is_ok());
        }
    });
}
