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

fn read_as(role: SourceRole, texts: &[&str]) -> Inventory {
    let mut inventory = Inventory::default();
    for (at, text) in texts.iter().enumerate() {
        let name: Arc<str> = format!("{role:?}-{at}.yaml").into();
        let options = Options::default();
        let (found, problems) = read_part(&name, text.as_bytes(), 1, role, ALL, &options);
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

const ONE: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: shop}\ndata: {k: one}\n";
const OTHER: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: shop}\ndata: {k: other}\n";

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
        "the ConfigMap shop/a is defined twice with different content"
    );
    assert_eq!(doubt.labels.len(), 2);
}

#[test]
fn what_no_api_server_takes_is_a_doubt() {
    for (text, why) in [
        (
            "kind: ConfigMap\nmetadata: {name: a, namespace: shop}\ndata: {k: 1}\n",
            "`data.k` must be a string: quote it",
        ),
        (
            "kind: ConfigMap\nmetadata: {name: a, namespace: shop}\nbinaryData: {k: '?'}\n",
            "`binaryData.k` is not valid base64",
        ),
        (
            "kind: ConfigMap\nmetadata: {name: a, namespace: shop}\ndata: [k]\n",
            "`data` must be a mapping",
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

#[test]
fn a_namespace_is_in_no_namespace() {
    let needs = InventoryNeeds {
        looked_up: BTreeSet::from([(String::new(), "Namespace".to_owned())]),
        ..ALL.clone()
    };
    let options = Options {
        namespace: Some("shop".to_owned()),
        ..Options::default()
    };
    let mut inventory = Inventory::default();
    for (file, team) in [("a/shop.yaml", "a"), ("b/shop.yaml", "b")] {
        let text = format!(
            "apiVersion: v1\nkind: Namespace\nmetadata: {{name: shop, labels: {{team: {team}}}}}\n"
        );
        let role = SourceRole::Manifest;
        let (found, _) = read_part(&file.into(), text.as_bytes(), 1, role, &needs, &options);
        inventory.add(found);
        let labels = inventory.namespace_object("shop");
        let labels = labels.map(|found| found.map(|object| object["metadata"]["labels"].clone()));
        match team {
            "a" => assert_eq!(labels, Ok(Some(serde_json::json!({"team": "a"})))),
            _ => assert!(labels.is_err(), "{labels:?}"),
        }
    }
}
