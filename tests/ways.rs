//! A text comes out the same whichever way it goes: a named file (read twice), stdin (held), kept in memory, a stream, in
//! place, into a folder, alone or beside others. The golden cases in which other objects count go every way.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use crate::program::{Place, succeeded};

/// The areas in which more counts than one workload.
const AREAS: [&str; 8] = [
    "checksums",
    "config-monitor",
    "env",
    "formats",
    "generate",
    "jmx-exporter",
    "kinds",
    "record",
];

/// A case of `testdata/cases` that is an `apply`.
struct Case {
    folder: PathBuf,
    input: String,
    args: Vec<String>,
}

fn folders(root: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(root)
        .expect("testdata is readable")
        .map(|entry| entry.expect("it is readable").path());
    let mut found: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    found.sort();
    found
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for folder in AREAS
        .iter()
        .flat_map(|area| folders(&Path::new("testdata/cases").join(area)))
    {
        let input = ["input.yaml", "input.json"]
            .into_iter()
            .find(|name| folder.join(name).exists());
        let words = |file: &str| fs::read_to_string(folder.join(file)).unwrap_or_default();
        let args: Vec<String> = words("args")
            .split_whitespace()
            .map(str::to_owned)
            .collect();
        // Others show what a stream refuses, or have the program read something else.
        let is_apply =
            !folder.join("command").exists() && !args.iter().any(|arg| arg == "--stream");
        if is_apply && let Some(input) = input {
            cases.push(Case {
                folder,
                input: input.to_owned(),
                args,
            });
        }
    }
    assert!(cases.len() > 100, "only {} cases were found", cases.len());
    cases
}

impl Case {
    /// A copy of the folder, to be written to.
    fn place(&self) -> Place {
        let place = Place::new();
        for entry in fs::read_dir(&self.folder).expect("the case is readable") {
            let path = entry.expect("it is readable").path();
            if path.is_file() {
                let name = path
                    .file_name()
                    .expect("a file has a name")
                    .to_string_lossy()
                    .into_owned();
                place.write(name, fs::read(&path).expect("it is readable"));
            }
        }
        place
    }

    fn apply(&self, place: &Place, more: &[&str], stdin: Stdio) -> Output {
        let of_case = self.args.iter().map(String::as_str);
        let args: Vec<&str> = ["apply", "-p", "policy.yaml"]
            .into_iter()
            .chain(of_case)
            .chain(more.iter().copied())
            .collect();
        place
            .command(&args)
            .stdin(stdin)
            .output()
            .expect("the program runs")
    }
}

/// What a way gave out; nothing when it refused.
type Given = Option<Vec<u8>>;

/// What every way gives.
fn ways(case: &Case, more: &[&str]) -> BTreeMap<&'static str, Given> {
    let place = case.place();
    let input = case.input.as_str();
    let stdout_of = |output: Output| (output.status.code() == Some(0)).then_some(output.stdout);
    let run =
        |way: &[&str], stdin: Stdio| stdout_of(case.apply(&place, &[more, way].concat(), stdin));
    let held = || Stdio::from(fs::File::open(place.path(input)).expect("the input is there"));
    let mut ways = BTreeMap::new();
    ways.insert("a named file", run(&["-q", input], Stdio::null()));
    ways.insert("stdin", run(&["-q", "-"], held()));
    ways.insert(
        "kept in memory for the report",
        run(&["-q", "--report", "r.json", input], Stdio::null()),
    );
    let stream = case.apply(
        &place,
        &[more, &["-q", "--diagnostics", "short", "--stream", input]].concat(),
        Stdio::null(),
    );
    // A stream knows nothing of what is to come, and not that one JSON object is all there is; then it says so, or the
    // object stays one.
    let is_said = ["too-late", "missing-object"]
        .iter()
        .any(|code| crate::program::stderr_of(&stream).contains(code));
    if !is_said && !input.ends_with("json") {
        ways.insert("a stream", stdout_of(stream));
    }
    // A second file with nothing in it that counts.
    place.write("empty.yaml", "# nothing\n");
    let is_refused = run(&["-q", "--in-place", "empty.yaml", input], Stdio::null()).is_none();
    let written = fs::read(place.path(input)).expect("the input is there");
    ways.insert(
        "in place beside another file",
        (!is_refused).then_some(written),
    );
    ways
}

/// `--record` is what `--in-place` does by itself.
fn is_the_same(case: &Case) -> Result<(), String> {
    let is_without = case
        .args
        .iter()
        .any(|arg| ["--no-record", "--no-marker"].contains(&arg.as_str()));
    let more: &[&str] = if is_without { &[] } else { &["--record"] };
    let ways = ways(case, more);
    let wanted = &ways["a named file"];
    let text = |given: &Given| {
        given
            .as_ref()
            .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    };
    match ways.iter().find(|(_, given)| *given != wanted) {
        None => Ok(()),
        Some((way, given)) => Err(format!(
            "{}, {way}: {:#?}\nnot\n{:#?}",
            case.folder.display(),
            text(given),
            text(wanted)
        )),
    }
}

#[test]
fn every_case_comes_out_the_same_whichever_way_it_goes() {
    let wrong: Vec<String> = cases()
        .iter()
        .filter_map(|case| is_the_same(case).err())
        .collect();
    assert!(
        wrong.is_empty(),
        "{} differ\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// A file of `--context` in another folder answers what a stream brings later, too, where both say the same.
#[test]
fn a_stream_takes_what_the_context_of_any_folder_says_already() {
    let place = Place::new();
    let policy = "\
apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: p}
spec:
  inject:
    checksums: [{annotation: sum, configMaps: [c]}]
    podAnnotations: {found: \"${lookup('v1', 'ConfigMap', 'c').?data[?'a'].orValue('none')}\"}
";
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: app, image: a}]}\n";
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: b}\n";
    place.write("policy.yaml", policy);
    place.write("all/of/them.yaml", format!("{pod}---\n{map}"));
    place.write("context/same.yaml", map);
    place.write("other/context.yaml", map.replace("a: b", "a: c"));
    let stream = |context: &str| {
        let args = [
            "apply",
            "-p",
            "policy.yaml",
            "--stream",
            "--context",
            context,
            "all/of/them.yaml",
        ];
        place.run(&args)
    };
    let whole = place.run(&["apply", "-p", "policy.yaml", "all/of/them.yaml"]);
    assert_eq!(succeeded(&stream("context")), succeeded(&whole));
    let late = stream("other");
    assert_eq!(late.status.code(), Some(2));
    assert!(crate::program::stderr_of(&late).contains("too-late"));
}
