use super::*;
use crate::change::unescape;
use serde_json::json;

fn paths() -> RecordPaths {
    RecordPaths::of(&["spec".to_owned(), "template".to_owned()])
}

fn workload(spec: Value) -> Value {
    json!({"kind": "Deployment", "metadata": {"name": "a"}, "spec": {"template": {"spec": spec}}})
}

#[test]
fn items_keep_the_order_in_which_they_stand() {
    let mut target =
        json!({"env": [{"name": "a"}, {"name": "c"}, {"name": "b", "value": "2"}, {"name": "n"}]});
    restore_order(
        &mut target,
        &json!({"env": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}),
    );
    let names: Vec<&str> = target["env"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|item| item["name"].as_str())
        .collect();
    assert_eq!(names, ["a", "b", "c", "n"]);
}

#[test]
fn every_item_of_a_list_has_a_path_of_its_own() {
    let env = json!([{"name": "a"}, {"name": "a/b~c"}, {"value": "x"}, {"name": "a"}, {"value": "x"}, {"name": "a~#2"}]);
    let items = env.as_array().unwrap();
    let names = identities("env", items);
    assert_eq!(
        (names[1].as_str(), names[3].as_str(), names[5].as_str()),
        ("a~1b~0c", "a~#2", "a~0#2")
    );
    assert_eq!(names[4], format!("{}~#2", names[2]));
    let object = workload(json!({"containers": [{"name": "app", "env": env}]}));
    let at = |name: &str| format!("pod/spec/containers/app/env/{name}");
    for (name, item) in names.iter().zip(items) {
        assert!(
            paths()
                .get(&object, &at(name))
                .is_some_and(|found| found == item),
            "{name}"
        );
    }
    for name in ["a~#1", "a~#3", "a~#02", "a~#+2", "~=", "a/b~c", "~=#2"] {
        assert_eq!(paths().get(&object, &at(name)), None, "{name}");
    }
}

#[test]
fn places_that_overlap_are_all_found() {
    use super::joined_text::places_of;
    assert_eq!(places_of("aa a a a", "a a"), [1, 3, 5]);
    assert_eq!(places_of("aabaabaa", "aabaa"), [0, 3]);
    assert_eq!(places_of("aaaa", "a"), [0, 1, 2, 3]);
    assert_eq!(places_of("aé aé", "é"), [1, 5]);
    assert!(places_of("ab", "abc").is_empty());
    let (long, part) = ("a".repeat(1 << 20), format!("{}b", "a".repeat(1 << 19)));
    assert!(places_of(&long, &part).is_empty());
}

#[test]
fn a_segment_is_the_escaped_key_and_gives_it_back() {
    for (key, segment) in [
        ("app", "app"),
        ("/var/lib", "~1var~1lib"),
        ("a~1b", "a~01b"),
        ("~", "~0"),
        ("~/~", "~0~1~0"),
        ("é/ü", "é~1ü"),
        ("", ""),
    ] {
        assert_eq!(path::escape(key), segment);
        assert_eq!(unescape(segment), key);
        assert!(path::is_escaped(segment, key));
        assert_eq!(path::is_escaped(key, key), key == segment);
    }
    assert!(!path::is_escaped("~1a", "/b"));
    // What no key is escaped to stays readable.
    assert_eq!(unescape("a~b~~1"), "a~b~/");
}
