use std::collections::BTreeSet;

use super::*;
use crate::options::Options;
use std::sync::Arc;

const ALL: &InventoryNeeds = &InventoryNeeds {
    namespaces: true,
    data: true,
    generated: BTreeSet::new(),
    looked_up: BTreeSet::new(),
};

fn read_as(standing: SourceRole, texts: &[&str]) -> Inventory {
    let mut inventory = Inventory::default();
    for (at, text) in texts.iter().enumerate() {
        let name: Arc<str> = format!("{standing:?}-{at}.yaml").into();
        let options = Options::default();
        let (found, problems) = read_part(&name, text.as_bytes(), 1, standing, ALL, &options);
        assert!(problems.is_empty(), "{problems:?}");
        inventory.add(found);
    }
    inventory
}

fn config_map(name: &str) -> ObjectName {
    ObjectName {
        group: String::new(),
        kind: "ConfigMap".to_owned(),
        namespace: Some("shop".to_owned()),
        name: name.to_owned(),
        folder: None,
    }
}

fn sum_of(text: &str, kind: DataKind) -> String {
    let inventory = read_as(SourceRole::Manifest, &[text]);
    let name = ObjectName {
        group: String::new(),
        kind: kind.name().to_owned(),
        namespace: None,
        name: "a".to_owned(),
        folder: Some(String::new()),
    };
    sum(&inventory
        .entries(&name)
        .expect("it is clear")
        .expect("it is there"))
}

const ONE: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: shop}\ndata: {k: one}\n";
const OTHER: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: shop}\ndata: {k: other}\n";

/// The wanted sums are those of `sha256sum` over the JSON texts in the comments.
#[test]
fn sums_are_those_of_compact_json() {
    let both = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {b: \"1\", a: \"x/ü\\n\\\"\"}\nbinaryData: {c: AAE=}\n";
    // {"binaryData":{"c":"AAE="},"data":{"a":"x/ü\n\"","b":"1"}}
    assert_eq!(
        sum_of(both, DataKind::ConfigMap),
        "bab143e008a2f79d5324de2daaffb5e0b43bad26db95404e20adf888bb1e1488"
    );
    let empty = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {}\n";
    // {}
    assert_eq!(
        sum_of(empty, DataKind::ConfigMap),
        "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    );
}

#[test]
fn a_secret_is_summed_decoded_with_its_string_data() {
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {p: c2VjcmV0, q: eA==, b: //4=}\nstringData: {q: z}\n";
    // {"binaryData":{"b":"//4="},"data":{"p":"secret","q":"z"}}
    assert_eq!(
        sum_of(secret, DataKind::Secret),
        "7fa0758fb4fa14fe43b020f01361faaf3c7b660f87ed1a3df51e4cd45257ed76"
    );
}

#[test]
fn metadata_makes_no_difference_to_a_sum() {
    let plain = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: v}\n";
    let labelled = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {chart: x-2}}\ndata: {k: v}\n";
    assert_eq!(
        sum_of(plain, DataKind::ConfigMap),
        sum_of(labelled, DataKind::ConfigMap)
    );
}

#[test]
fn the_order_of_texts_makes_no_difference() {
    let texts = [
        ONE,
        OTHER,
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, labels: {team: a}}\n",
    ];
    let parts: Vec<Inventory> = (0..3)
        .map(|at| {
            let name: Arc<str> = format!("{at}.yaml").into();
            read_part(
                &name,
                texts[at].as_bytes(),
                1,
                SourceRole::Manifest,
                ALL,
                &Options::default(),
            )
            .0
        })
        .collect();
    let joined = |order: [usize; 3]| {
        let mut inventory = Inventory::default();
        order
            .into_iter()
            .for_each(|at| inventory.add(parts[at].clone()));
        (inventory.namespaces, inventory.data, inventory.objects)
    };
    for order in [[0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        assert_eq!(joined(order), joined([0, 1, 2]));
    }
}

#[test]
fn what_stands_twice_is_a_doubt_unless_it_is_the_same() {
    assert!(
        read_as(SourceRole::Manifest, &[ONE, ONE])
            .entries(&config_map("a"))
            .expect("it is clear")
            .is_some()
    );
    let doubt = read_as(SourceRole::Manifest, &[ONE, OTHER])
        .entries(&config_map("a"))
        .unwrap_err();
    assert_eq!(
        doubt.message,
        "the ConfigMap shop/a stands twice, and does not say the same"
    );
    assert_eq!(doubt.places.len(), 2);
}

#[test]
fn a_manifest_counts_more_than_context() {
    let mut inventory = read_as(SourceRole::Context, &[ONE]);
    inventory.add(read_as(SourceRole::Manifest, &[OTHER]));
    let entries = inventory
        .entries(&config_map("a"))
        .expect("it is clear")
        .expect("it is there");
    assert_eq!(entries["k"], DataValue::Text("other".to_owned()));
}

#[test]
fn objects_of_lists_and_of_json_are_found() {
    let list = "{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": [{\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \
                \"metadata\": {\"name\": \"a\", \"namespace\": \"shop\"}, \"data\": {\"k\": \"v\"}}]}";
    assert!(
        read_as(SourceRole::Manifest, &[list])
            .entries(&config_map("a"))
            .expect("it is clear")
            .is_some()
    );
}

#[test]
fn what_no_api_server_takes_is_a_doubt() {
    for (text, why) in [
        (
            "kind: ConfigMap\nmetadata: {name: a, namespace: shop}\ndata: {k: 1}\n",
            "`data.k` is no text; it needs quotes",
        ),
        (
            "kind: ConfigMap\nmetadata: {name: a, namespace: shop}\nbinaryData: {k: '?'}\n",
            "`binaryData.k` is no base64",
        ),
        (
            "kind: ConfigMap\nmetadata: {name: a, namespace: shop}\ndata: [k]\n",
            "`data` is no mapping",
        ),
    ] {
        let inventory = read_as(SourceRole::Manifest, &[&format!("apiVersion: v1\n{text}")]);
        let doubt = inventory.entries(&config_map("a")).unwrap_err();
        assert!(doubt.message.ends_with(why), "{doubt:?}");
    }
}

#[test]
fn an_object_without_a_namespace_is_in_no_other() {
    let without = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: v}\n";
    let inventory = read_as(SourceRole::Manifest, &[without]);
    assert_eq!(inventory.entries(&config_map("a")), Ok(None));
    assert_eq!(
        inventory
            .namesake(&config_map("a"))
            .map(|(name, _)| name.to_string()),
        Some("ConfigMap a".to_owned())
    );
}
