//! `podgraft policy lint` and `podgraft policy images`: print findings, needs and images of policies.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;

use podgraft_core::diagnostic::{Code, Diagnostic};
use podgraft_core::lint::{ParamOrigin, has_findings};
use podgraft_core::manifest::workload::PodKinds;
use podgraft_core::options::Options;
use podgraft_core::outcome::needs::{Need, NeedKind};
use podgraft_core::policy::Policy;
use podgraft_core::policy::builtin::list_names;
use podgraft_core::policy::needs::needs_of;
use podgraft_core::report::json::problem;
use podgraft_core::wording::lines;
use serde_json::{Value, json};

use crate::args::tools::{ImagesArgs, LintArgs, LintFormat};
use crate::args::{ColorWhen, PolicyArgs, RunArgs};
use crate::diagnostics::Console;
use crate::exit::Exit;
use crate::policies::load_to_look_at;
use crate::settings::{Caller, complete};

/// `podgraft policy lint`.
pub fn lint(args: &LintArgs) -> Exit {
    let (run, policies, mut findings) = read(&args.policies, &args.files, MirrorUse::Used);
    let is_unread = findings.iter().any(Diagnostic::is_error);
    let options = Options {
        pod_templates: run.manifests.pod_templates,
        ..Options::default()
    };
    let (flags, configured) = (&run.policies.params, &run.policies.configured);
    let is_default = flags.is_empty() && configured.params.is_empty() && configured.uses.is_empty();
    let params = if is_default {
        ParamOrigin::Default
    } else {
        ParamOrigin::Set
    };
    findings.extend(podgraft_core::lint::lint(
        &policies,
        &PodKinds::of(&options),
        &run.policies.forbid,
        params,
    ));
    let is_refused = findings.iter().any(Diagnostic::is_error);
    let result = match args.output {
        LintFormat::Text if is_unread => String::new(),
        LintFormat::Text => lines(&policies.iter().map(needs_text).collect::<String>()),
        LintFormat::Json => format!("{:#}\n", json_result(&policies, &findings)),
    };
    let console = Console::plain(args.color);
    if args.output == LintFormat::Text {
        console.show(&findings);
    }
    let exit = match is_refused {
        true => Exit::Refused,
        false if has_findings(&findings) || args.strict && !findings.is_empty() => {
            Exit::Differences
        }
        false => Exit::Done,
    };
    console.print(result.as_bytes(), exit)
}

/// Whether `imageMirrors` are applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MirrorUse {
    /// Report the images that nodes pull.
    Used,
    /// Report the original images, which a mirror has to copy.
    LeftOut,
}

/// Reads the policies of the flags or of `podgraft.yaml`, with their problems.
fn read(
    args: &PolicyArgs,
    files: &[PathBuf],
    mirrors: MirrorUse,
) -> (RunArgs, Vec<Policy>, Vec<Diagnostic>) {
    let mut run = RunArgs {
        policies: args.clone(),
        ..RunArgs::default()
    };
    run.policies.given.extend_from_slice(files);
    let mut run = match complete(&run, Caller::CommandLine) {
        Ok(run) => run,
        Err(problems) => return (run, Vec::new(), problems),
    };
    if mirrors == MirrorUse::LeftOut {
        run.policies.configured.image_mirrors.clear();
    }
    if run.policies.given.is_empty() {
        let message = "no policy is given";
        let help = format!(
            "pass a file, a folder, or builtin:NAME, or list policies in podgraft.yaml; built-in \
             policies: {}",
            list_names()
        );
        let problem = Diagnostic::error(Code::UnknownPolicy, message).help(help);
        return (run, Vec::new(), vec![problem]);
    }
    let loaded = load_to_look_at(&run.policies);
    (run, loaded.policies, loaded.problems)
}

fn json_result(policies: &[Policy], findings: &[Diagnostic]) -> Value {
    let policies: Vec<Value> = policies.iter().map(needs_json).collect();
    let findings: Vec<Value> = findings.iter().map(problem).collect();
    json!({"policies": policies, "findings": findings})
}

fn needs_json(policy: &Policy) -> Value {
    let needs = needs_of(policy);
    let needs_of_kind = |kind: NeedKind| needs.iter().filter(move |need| need.kind == kind);
    let names = |kind: NeedKind| -> BTreeSet<&str> {
        needs_of_kind(kind).map(|need| &*need.name).collect()
    };
    let privileges: Vec<Value> = needs_of_kind(NeedKind::Privilege)
        .map(|need| json!({"danger": need.name, "what": need.detail}))
        .collect();
    json!({
        "policy": policy.identity,
        "file": &*policy.text.name,
        "params": policy.open_params,
        "images": names(NeedKind::Image),
        "secrets": names(NeedKind::Secret),
        "configMaps": names(NeedKind::ConfigMap),
        "persistentVolumeClaims": names(NeedKind::VolumeClaim),
        "serviceAccounts": names(NeedKind::ServiceAccount),
        "privileges": privileges,
    })
}

fn needs_text(policy: &Policy) -> String {
    let needs = needs_of(policy);
    let mut text = format!("{} needs from the cluster\n", policy.identity);
    if !policy.open_params.is_empty() {
        let names = policy.open_params.iter().map(String::as_str);
        let names = names.collect::<Vec<_>>().join(", ");
        let _ = writeln!(
            text,
            "  {:<17}{names} (from you, with --param)",
            "parameters"
        );
    }
    let lists = [
        ("images", NeedKind::Image),
        ("Secrets", NeedKind::Secret),
        ("ConfigMaps", NeedKind::ConfigMap),
        ("volume claims", NeedKind::VolumeClaim),
        ("service accounts", NeedKind::ServiceAccount),
        ("privileges", NeedKind::Privilege),
    ];
    for (heading, kind) in lists {
        let of_kind = needs.iter().filter(|need| need.kind == kind);
        let mut names: Vec<String> = of_kind.map(Need::words).collect();
        if names.is_empty() && kind == NeedKind::Privilege {
            names.push("none".to_owned());
        }
        if !names.is_empty() {
            let _ = writeln!(text, "  {heading:<17}{}", names.join(", "));
        }
    }
    text
}

/// `podgraft policy images`.
pub fn images(args: &ImagesArgs) -> Exit {
    let (_, policies, problems) = read(&args.policies, &args.files, MirrorUse::LeftOut);
    let console = Console::plain(ColorWhen::Auto);
    console.show(&problems);
    if problems.iter().any(Diagnostic::is_error) {
        return Exit::Refused;
    }
    let images: BTreeSet<String> = policies.iter().flat_map(images_of).collect();
    let missing: Vec<Diagnostic> = policies.iter().flat_map(missing_params).collect();
    if !missing.is_empty() {
        console.show(&missing);
        return Exit::Refused;
    }
    let (unknown, known): (Vec<&String>, Vec<&String>) =
        images.iter().partition(|image| image.contains("${"));
    for image in unknown {
        // A closed stderr leaves no way to report this.
        let _ = writeln!(
            std::io::stderr(),
            "podgraft: not listed because it depends on the workload: {image}"
        );
    }
    let lines: String = known.iter().map(|image| format!("{image}\n")).collect();
    console.print(lines.as_bytes(), Exit::Done)
}

fn images_of(policy: &Policy) -> impl Iterator<Item = String> {
    needs_of(policy)
        .into_iter()
        .filter(|need| need.kind == NeedKind::Image)
        .map(|need| need.name)
}

/// Whether an image with expressions reads a parameter, and not only one whose name begins with the same.
fn reads(image: &str, param: &str) -> bool {
    let reading = format!("params.{param}");
    let mut behind = image
        .match_indices(&reading)
        .map(|(at, _)| &image[at + reading.len()..]);
    behind.any(|rest| !rest.starts_with(|char: char| char.is_ascii_alphanumeric() || char == '_'))
}

/// Errors for parameters without a value on which the name of an image depends.
fn missing_params(policy: &Policy) -> Vec<Diagnostic> {
    let images: Vec<String> = images_of(policy)
        .filter(|image| image.contains("${"))
        .collect();
    let mut missing = Vec::new();
    for name in &policy.open_params {
        if images.iter().any(|image| reads(image, name)) {
            let message = format!(
                "an image of policy `{}` depends on the parameter `{name}`, which has no value",
                policy.identity
            );
            let problem = Diagnostic::error(Code::BadParam, message);
            missing.push(problem.help(format!("set it with `--param {name}=VALUE`")));
        }
    }
    missing
}
