//! `podgraft policy test`: runs the policies of each test on its manifests and compares the result with what is
//! expected.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use podgraft_core::diagnostic::{Code, Diagnosed, Diagnostic};
use podgraft_core::graft::companions::WrittenObjects;
use podgraft_core::graft::{Options, RunContext, run_notes};
use podgraft_core::options::parse_kube_version;
use podgraft_core::outcome::FileReport;
use podgraft_core::policy::Policy;
use podgraft_core::policy::params::ParamSetting;
use podgraft_core::policy::read::{PolicyFile, read};
use podgraft_core::policytest::{self, KIND, PolicyTest, TestResult, TestRun, judge, junit, table};
use podgraft_core::report::merge_repeated;
use podgraft_core::source::Place;
use podgraft_core::wording::shell_path;

use crate::args::parse_param;
use crate::args::tools::{TestArgs, TestFormat};
use crate::diagnostics::{Console, inform};
use crate::exit::Exit;
use crate::gather_inventory::{FactSources, gather};
use crate::grafted_file::{GraftedFile, prune_files};
use crate::grafting::Grafting;
use crate::locks::LockFiles;
use crate::path_filter::PathFilter;
use crate::paths::real;
use crate::policies::{files_of, no_policy};
use crate::problems::{not_utf8, not_written, unreadable};
use crate::protected_inputs::{InputFiles, overwrites};
use crate::settings::from_folder;
use crate::stdout::print;
use crate::stream::join;
use crate::texts::{InputBytes, source_text};
use crate::walk::{FileWalk, Input, walk};
use crate::write::write_whole;

/// `podgraft policy test PATH...`.
pub fn test(args: &TestArgs) -> Exit {
    let (tests, mut problems) = find(&args.paths);
    let mut judged = Vec::new();
    let mut updates = args.update.then(|| Updates::of(&tests));
    for test in tests {
        match run(&test, updates.as_mut()) {
            Ok((test_result, expected)) => {
                let verdicts = judge(&test.spec, &test_result, expected.as_deref());
                judged.push(TestResult { test, verdicts });
            }
            Err(found) => {
                let placed = |problem: Diagnostic| match problem.labels.is_empty() {
                    true => problem.at(test.at.clone(), "in this test"),
                    false => problem,
                };
                problems.extend(found.into_iter().map(placed));
            }
        }
    }
    let console = Console::plain(args.color);
    let result = match args.output {
        TestFormat::Table => table::render(&judged, console.stdout_paint()),
        TestFormat::Junit => junit::render(&judged),
    };
    if !judged.is_empty()
        && let Err(problem) = print(result.as_bytes())
    {
        problems.push(problem);
    }
    if let Some(updates) = updates {
        problems.extend(updates.finish(problems.iter().any(Diagnostic::is_error)));
    }
    console.show(&problems);
    let has_failed = judged.iter().any(|judged_test| judged_test.failures() > 0);
    match (problems.iter().any(Diagnostic::is_error), has_failed) {
        (true, _) => Exit::Refused,
        (false, true) => Exit::Differences,
        (false, false) => Exit::Done,
    }
}

/// Reads the tests in the paths, with their problems.
fn find(paths: &[PathBuf]) -> (Vec<PolicyTest>, Vec<Diagnostic>) {
    let walked = walk(paths, &PathFilter::default());
    let (mut tests, mut problems) = (Vec::new(), walked.problems);
    for input in &walked.inputs {
        match read_tests(input) {
            Ok((found, test_problems)) => {
                tests.extend(found);
                problems.extend(test_problems);
            }
            Err(problem) => problems.push(problem),
        }
    }
    if tests.is_empty() && !problems.iter().any(Diagnostic::is_error) {
        let names: Vec<String> = paths
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        let message = format!("there is no test in {}", names.join(", "));
        let help = "a test is an object of `apiVersion: podgraft.dev/v1alpha1`, `kind: PolicyTest`";
        problems.push(Diagnostic::error(Code::NoManifests, message).help(help));
    }
    (tests, problems)
}

/// Reads the tests of a file, with their problems. Manifests and policies may be in the same folder: only files that name
/// the kind are parsed here.
fn read_tests(input: &Input) -> Result<(Vec<PolicyTest>, Vec<Diagnostic>), Diagnostic> {
    let name = Arc::clone(&input.name);
    match String::from_utf8(input.read()?) {
        Ok(text) if text.contains(KIND) => Ok(policytest::read(PolicyFile { name, text })),
        Err(error) if names_kind(error.as_bytes()) => Err(not_utf8(&name)),
        Ok(_) | Err(_) => Ok(Default::default()),
    }
}

/// Whether bytes that are not UTF-8 name the kind. In UTF-16, each of its signs has a zero beside it.
fn names_kind(bytes: &[u8]) -> bool {
    let signs: Vec<u8> = bytes.iter().copied().filter(|&byte| byte != 0).collect();
    String::from_utf8_lossy(&signs).contains(KIND)
}

/// Runs a test, and reads its expected output unless that is to be updated.
fn run(test: &PolicyTest, updates: Option<&mut Updates>) -> Diagnosed<(TestRun, Option<String>)> {
    let folder = Path::new(&*test.file).parent().unwrap_or(Path::new(""));
    let spec = &test.spec;
    let expected = spec.expect.output.as_ref().filter(|_| updates.is_none());
    let expected = expected.map(|name| read_expected(&folder.join(name), test));
    let expected = expected.transpose()?;
    let (texts, mut problems) = read_inputs(&spec.inputs, folder)?;
    let mut files = policy_files(&spec.policies, folder, &texts)?;
    let settings = settings(test)?;
    let (policies, of_policies) = read(files.clone(), &settings);
    problems.extend(of_policies);
    let options = options(test, &policies)?;
    let lock_files = LockFiles::of(&texts)?;
    if files.is_empty() {
        problems.push(no_policy(&[]));
    }
    // Files of the input are read for facts as manifests, and must not count twice.
    files.retain(|file| !texts.iter().any(|(input, _)| input.name == file.name));
    let context = context(&spec.context, folder);
    let reads = updates.is_some().then(|| reads(&texts, &files, &context));
    let sources = FactSources {
        manifests: texts.iter().map(source_text).collect(),
        policy_files: &files,
        context,
        lock_files: &lock_files,
        is_stream: false,
    };
    let facts = gather(sources, &texts, &policies, &options, None);
    problems.extend(facts.problems);
    let mut result = TestRun::default();
    if !problems.iter().any(Diagnostic::is_error) {
        let run = RunContext::new(&policies, &options, &facts.inventory);
        let (grafted, found) = graft_all(&texts, run);
        result = grafted;
        problems.extend(found);
    }
    if problems.iter().any(Diagnostic::is_error) {
        result.output = None;
    }
    result.problems = merge_repeated(problems);
    if let (Some(name), Some(output)) = (&spec.expect.output, &result.output)
        && let (Some(updates), Some(reads)) = (updates, reads)
    {
        let updated = updates.update(&test.name, &folder.join(name), output, &reads);
        updated.map_err(|problem| vec![problem])?;
    }
    Ok((result, expected))
}

fn context(paths: &[String], folder: &Path) -> FileWalk {
    let paths: Vec<PathBuf> = paths.iter().map(|path| folder.join(path)).collect();
    match &paths[..] {
        [] => FileWalk::default(),
        paths => walk(paths, &PathFilter::default()),
    }
}

/// The files that a test reads.
fn reads(texts: &[InputBytes], policies: &[PolicyFile], context: &FileWalk) -> InputFiles {
    let inputs = texts.iter().map(|(input, _)| input).chain(&context.inputs);
    let policies = policies.iter().map(|file| PathBuf::from(&*file.name));
    InputFiles::of(inputs.filter_map(Input::path).chain(policies))
}

/// The files of a test's policies: `builtin:NAME`, `@input`, or paths relative to the test's folder.
fn policy_files(
    policies: &[String],
    folder: &Path,
    inputs: &[InputBytes],
) -> Diagnosed<Vec<PolicyFile>> {
    let mut files = Vec::new();
    for policy in policies {
        files.extend(files_of(&from_folder(folder, policy), inputs, &files)?);
    }
    Ok(files)
}

/// The texts of a test's inputs, and warnings about paths that are passed over.
fn read_inputs(inputs: &[String], folder: &Path) -> Diagnosed<(Vec<InputBytes>, Vec<Diagnostic>)> {
    let paths: Vec<PathBuf> = inputs.iter().map(|input| folder.join(input)).collect();
    let walked = walk(&paths, &PathFilter::default());
    if walked.problems.iter().any(Diagnostic::is_error) {
        return Err(walked.problems);
    }
    let texts = walked.inputs.into_iter();
    let texts = texts.map(|input| input.read().map(|text| (input, Arc::new(text))));
    let texts = texts.collect::<Result<_, _>>();
    let texts = texts.map_err(|problem| vec![problem])?;
    Ok((texts, walked.problems))
}

/// Grafts all inputs. Returns the joined output with the workloads, and the problems.
fn graft_all(texts: &[InputBytes], run: RunContext<'_>) -> (TestRun, Vec<Diagnostic>) {
    let grafting = Grafting {
        run,
        threads: Some(NonZeroUsize::MIN),
        tree: None,
    };
    let grafted = texts
        .iter()
        .cloned()
        .zip(grafting.graft(texts))
        .map(|(input, text)| GraftedFile::of(input, text));
    let mut files: Vec<GraftedFile> = grafted.collect();
    let mut written_objects = WrittenObjects::default();
    for file in &mut files {
        written_objects.write_companions(&mut file.report);
    }
    let mut problems = Vec::from_iter(prune_files(&mut files, run.options, run.inventory.locks()));
    for file in &mut files {
        problems.append(&mut file.report.diagnostics);
    }
    let reports: Vec<&FileReport> = files.iter().map(|file| &file.report).collect();
    problems.extend(run_notes::notes(run.policies, &reports));
    let output = Some(join(files.iter().map(GraftedFile::stream_text).collect()));
    let workloads = files.into_iter().flat_map(|file| file.report.workloads);
    let ran = TestRun {
        output,
        workloads: workloads.collect(),
        ..TestRun::default()
    };
    (ran, problems)
}

/// The expected outputs that a run with `--update` writes.
struct Updates {
    /// The files that hold the tests.
    tests: InputFiles,
    /// The outputs so far by their real paths, with the names of their tests.
    outputs: BTreeMap<PathBuf, String>,
    /// The files that were written, each with what it was before, if it was there.
    written: Vec<(PathBuf, Option<Vec<u8>>)>,
}

impl Updates {
    fn of(tests: &[PolicyTest]) -> Self {
        Updates {
            tests: InputFiles::of(tests.iter().map(|test| PathBuf::from(&*test.file))),
            outputs: BTreeMap::new(),
            written: Vec::new(),
        }
    }

    /// Writes the output of a test to its file, unless they are equal. A later test may read it.
    ///
    /// # Errors
    /// If the file is one that the run reads, or that another test has its output in, or if it cannot be written.
    fn update(
        &mut self,
        test: &str,
        path: &Path,
        output: &[u8],
        reads: &InputFiles,
    ) -> Result<(), Diagnostic> {
        let before = match std::fs::read(path) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(unreadable(&path.display().to_string(), &error)),
        };
        if before.as_deref() != Some(output) {
            self.check(test, path, reads)?;
            write_whole(path, output).map_err(|error| not_written(path.display(), error))?;
            self.written.push((path.to_path_buf(), before));
        }
        self.outputs.insert(real(path), test.to_owned());
        Ok(())
    }

    /// Says what was written, or puts it back as it was if the command fails.
    fn finish(self, has_failed: bool) -> Vec<Diagnostic> {
        let mut problems = Vec::new();
        for (path, before) in self.written {
            let name = path.display();
            if !has_failed {
                inform(&format!("wrote {name}\n"));
                continue;
            }
            let restored = match before {
                Some(text) => write_whole(&path, &text),
                None => std::fs::remove_file(&path),
            };
            problems.extend(restored.err().map(|error| not_written(&name, error)));
        }
        problems
    }

    fn check(&self, test: &str, path: &Path, reads: &InputFiles) -> Result<(), Diagnostic> {
        let help = format!("name another file in `expect.output` of the test `{test}`");
        if reads.holds(path) || self.tests.holds(path) {
            return Err(overwrites(path).help(help));
        }
        let Some(other) = self.outputs.get(&real(path)) else {
            return Ok(());
        };
        let message = format!(
            "`{}` is the expected output of the test `{other}`, and the output of `{test}` is another one",
            path.display()
        );
        Err(Diagnostic::error(Code::File, message).help(help))
    }
}

fn read_expected(path: &Path, test: &PolicyTest) -> Diagnosed<String> {
    std::fs::read_to_string(path).map_err(|error| {
        let file = shell_path(&test.file);
        let unreadable = unreadable(&path.display().to_string(), &error);
        let help = format!("`podgraft policy test --update {file}` writes what comes out into it");
        vec![unreadable.help(help)]
    })
}

fn settings(test: &PolicyTest) -> Diagnosed<Vec<ParamSetting>> {
    let params = test.spec.params.iter().zip(&test.params_at);
    params.map(|(text, at)| setting(test, text, at)).collect()
}

fn setting(test: &PolicyTest, text: &str, at: &Place) -> Diagnosed<ParamSetting> {
    let setting = parse_param(text).map_err(|reason| {
        let message = format!(
            "`{text}` in `params` of the test `{}` is no setting: {reason}",
            test.name
        );
        vec![Diagnostic::error(Code::BadParam, message).at(at.clone(), "here")]
    })?;
    Ok(ParamSetting {
        at: Some(at.clone()),
        ..setting
    })
}

fn options(test: &PolicyTest, policies: &[Policy]) -> Diagnosed<Options> {
    let kube_minor = match &test.spec.kube_version {
        None => None,
        Some(text) => Some(parse_kube_version(text).map_err(|reason| {
            let message = format!("`kubeVersion` of the test `{}`: {reason}", test.name);
            let problem = Diagnostic::error(Code::BadParam, message);
            vec![problem.at(test.kube_version_at.clone(), "here")]
        })?),
    };
    let given = policies.iter().map(|policy| policy.identity.clone());
    Ok(Options {
        given: Some(given.collect()),
        namespace: test.spec.namespace.clone(),
        kube_minor,
        ..Options::default()
    })
}
