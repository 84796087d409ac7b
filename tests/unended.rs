//! A block scalar whose last line ends the file without a line end. kubectl puts an end to each line before it parses YAML
//! (`LineReader` of k8s.io/apimachinery), so the value is that of the same file with a line end, wherever text comes behind it.

use podgraft_core::yaml::parse::{parse, parse_with_granit};
use podgraft_core::yaml::value::to_value;
use serde_json::Value;

use crate::program::{Place, succeeded, with_stdin};

const POLICY: &str = "\
apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: agent}
spec:
  inject:
    volumes: [{name: v, emptyDir: {}}]
    checksums:
    - {annotation: checksum/config, configMaps: [c]}
";

const CONFIG: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\ndata:\n  k: ";

const POD: &str = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\nspec:\n  containers:\n  - name: a\n    image: x\n    args:\n    - ";

/// Scalars at the end of a file, indented for both documents.
const SCALARS: [&str; 11] = [
    "|\n      x",
    "|\n      x\n      y",
    ">\n      x\n      y",
    "|+\n      x",
    "|+\n      x\n\n      y",
    "|+\n      x\n      ",
    ">+\n      x\n   ",
    "|-\n      x",
    "|+ ",
    ">+  ",
    "|+ # comment ",
];

fn texts(scalar: &str, line_end: &str) -> [String; 2] {
    [CONFIG, POD].map(|head| format!("{head}{scalar}").replace('\n', line_end))
}

fn values(text: &str) -> Vec<Value> {
    let [ours, others] = [parse(text), parse_with_granit(text)].map(|tree| {
        let tree = tree.unwrap_or_else(|why| panic!("{why:?}\n{text}"));
        let roots = tree.roots().iter();
        roots
            .map(|&root| to_value(&tree, root).expect("it has a value"))
            .collect::<Vec<Value>>()
    });
    assert_eq!(ours, others, "{text}");
    ours
}

fn each(look: impl Fn(&Place, [String; 2], &str)) {
    for line_end in ["\n", "\r\n"] {
        for scalar in SCALARS {
            let place = Place::new();
            place.write("policy.yaml", POLICY);
            look(&place, texts(scalar, line_end), line_end);
        }
    }
}

fn apply(place: &Place, args: &[&str]) -> String {
    let command = [&["apply", "-q", "-p", "policy.yaml"], args].concat();
    succeeded(&place.run(&command))
}

#[test]
fn values_and_sums_are_those_of_the_file_with_a_line_end() {
    each(|place, [config, pod], line_end| {
        for (folder, end) in [("without", ""), ("with", line_end)] {
            place.write(format!("{folder}/a.yaml"), format!("{config}{end}"));
            place.write(format!("{folder}/b.yaml"), format!("{pod}{end}"));
        }
        let [without, with] = ["without", "with"].map(|folder| {
            let files = [format!("{folder}/a.yaml"), format!("{folder}/b.yaml")];
            values(&apply(place, &files.each_ref().map(String::as_str)))
        });
        assert_eq!(without.len(), 2);
        assert_eq!(without, with, "{config:?}");
        assert_eq!(without[0], values(&format!("{config}{line_end}"))[0]);
    });
}

#[test]
fn text_from_stdin_reads_the_same() {
    each(|place, [config, pod], line_end| {
        let both = format!("{config}{line_end}---{line_end}{pod}");
        for from in ["-", "--stream"] {
            let args = ["apply", "-q", "-p", "policy.yaml", from];
            let output = |text| values(&succeeded(&with_stdin(place.command(&args), text)));
            let without = output(&both);
            assert_eq!(without.len(), 2);
            assert_eq!(without, output(&format!("{both}{line_end}")));
        }
    });
}

#[test]
fn undo_takes_the_line_end_out_again() {
    each(|place, [config, pod], _| {
        place.write("a.yaml", &config);
        place.write("b.yaml", &pod);
        apply(place, &["--in-place", "a.yaml", "b.yaml"]);
        let injected = place.read("b.yaml");
        assert!(injected.contains("emptyDir"), "{injected}");
        assert_eq!(place.read("a.yaml"), config);
        let undone = place.run(&["undo", "-q", "--in-place", "a.yaml", "b.yaml"]);
        succeeded(&undone);
        assert_eq!([place.read("a.yaml"), place.read("b.yaml")], [config, pod]);
    });
}
