//! `podgraft policy lint` and `podgraft policy images`: policies in, what is to be known about them out.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;

use podgraft::diagnostic::Diagnostic;
use podgraft::lint::has_findings;
use podgraft::manifest::workload::PodKinds;
use podgraft::options::Options;
use podgraft::policy::Policy;
use podgraft::policy::needs::needs_of;
use podgraft::report::json::render_diagnostic;
use podgraft::report::needs::{Need, NeedKind};
use serde_json::{Value, json};

use crate::args::Policies;
use crate::args::tools::{Images, Lint, LintFormat};
use crate::output::print;
use crate::policies::{builtin_names, load};
use crate::run::Exit;
use crate::show::show_in;

/// `podgraft policy lint`.
pub fn lint(args: &Lint) -> Exit {
    let (policies, mut findings) = read(&args.policies);
    let is_refused = findings.iter().any(Diagnostic::is_error);
    findings.extend(podgraft::lint::lint(&policies, &PodKinds::of(&Options::default())));
    let result = match args.output {
        LintFormat::Text => policies.iter().map(needs_text).collect(),
        LintFormat::Json => format!("{:#}\n", json_result(&policies, &findings)),
    };
    if args.output == LintFormat::Text {
        show_in(&findings, args.color);
    }
    if let Err(problem) = print(result.as_bytes()) {
        show_in(&[problem], args.color);
        return Exit::Refused;
    }
    match is_refused {
        true => Exit::Refused,
        false if has_findings(&findings) || args.strict && !findings.is_empty() => Exit::Differences,
        false => Exit::Done,
    }
}

fn read(args: &Policies) -> (Vec<Policy>, Vec<Diagnostic>) {
    if args.given.is_empty() {
        let message = "no policy is given";
        let help = format!("add -p FILE, -p FOLDER or -p builtin:NAME; the built-in policies are {}", builtin_names());
        let problem = Diagnostic::error(podgraft::diagnostic::Code::UnknownPolicy, message).help(help);
        return (Vec::new(), vec![problem]);
    }
    let loaded = load(args, &[]);
    (loaded.policies, loaded.problems)
}

fn json_result(policies: &[Policy], findings: &[Diagnostic]) -> Value {
    let policies: Vec<Value> = policies.iter().map(needs_json).collect();
    let as_value = |finding: &Diagnostic| serde_json::from_str(&render_diagnostic(finding)).unwrap_or(Value::Null);
    let findings: Vec<Value> = findings.iter().map(as_value).collect();
    json!({"policies": policies, "findings": findings})
}

fn needs_json(policy: &Policy) -> Value {
    let needs = needs_of(policy);
    let of = |kind: NeedKind| needs.iter().filter(move |need| need.kind == kind);
    let names = |kind: NeedKind| of(kind).map(|need| need.name.as_str()).collect::<BTreeSet<_>>();
    let privileges: Vec<Value> =
        of(NeedKind::Privilege).map(|need| json!({"danger": need.name, "what": need.detail})).collect();
    json!({
        "policy": policy.identity,
        "file": &*policy.text.name,
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
    let lists = [
        ("images", NeedKind::Image),
        ("Secrets", NeedKind::Secret),
        ("ConfigMaps", NeedKind::ConfigMap),
        ("volume claims", NeedKind::VolumeClaim),
        ("service accounts", NeedKind::ServiceAccount),
        ("privileges", NeedKind::Privilege),
    ];
    for (what, kind) in lists {
        let names: Vec<String> = needs.iter().filter(|need| need.kind == kind).map(Need::words).collect();
        if !names.is_empty() || kind == NeedKind::Privilege {
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            let _ = writeln!(text, "  {what:<17}{names}");
        }
    }
    text
}

/// `podgraft policy images`.
pub fn images(args: &Images) -> Exit {
    let (policies, problems) = read(&args.policies);
    show_in(&problems, crate::args::Color::Auto);
    if problems.iter().any(Diagnostic::is_error) {
        return Exit::Refused;
    }
    let images: BTreeSet<String> = policies.iter().flat_map(images_of).collect();
    let (unknown, known): (Vec<&String>, Vec<&String>) = images.iter().partition(|image| image.contains("${"));
    for image in unknown {
        // Nobody is left to tell when stderr is closed.
        let _ = writeln!(std::io::stderr(), "podgraft: not listed, for it depends on the workload: {image}");
    }
    let lines: String = known.iter().map(|image| format!("{image}\n")).collect();
    match print(lines.as_bytes()) {
        Ok(()) => Exit::Done,
        Err(problem) => {
            show_in(&[problem], crate::args::Color::Auto);
            Exit::Refused
        }
    }
}

fn images_of(policy: &Policy) -> impl Iterator<Item = String> {
    needs_of(policy).into_iter().filter(|need| need.kind == NeedKind::Image).map(|need| need.name)
}
