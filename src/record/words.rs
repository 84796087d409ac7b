//! Paths of a record in words, as reports name what a policy does, and the command that takes its work out.

use crate::report::shown::shell_word;

/// `pod/spec/containers/app/env/X` as `app: env X`, `pod/spec/volumes/agent` as `volume agent`.
pub fn words_of(path: &str) -> String {
    let segments: Vec<String> = path
        .split('/')
        .map(|part| part.replace("~1", "/").replace("~0", "~"))
        .collect();
    let parts: Vec<&str> = segments.iter().map(String::as_str).collect();
    match parts.as_slice() {
        [
            "pod",
            "spec",
            "containers" | "initContainers",
            name,
            rest @ ..,
        ] if !rest.is_empty() => {
            format!("{name}: {}", in_container(rest))
        }
        ["pod", "spec", "containers", name] => format!("sidecar {name}"),
        ["pod", "spec", "initContainers", name] => format!("init container {name}"),
        ["pod", "spec", "volumes", name] => format!("volume {name}"),
        ["pod", "spec", "imagePullSecrets", name] => format!("image pull secret {name}"),
        ["pod", "spec", rest @ ..] => format!("pod {}", rest.join(".")),
        ["pod", "metadata", field, key] => format!("pod {} {key}", field.trim_end_matches('s')),
        ["metadata", field, key] => format!("{} {key}", field.trim_end_matches('s')),
        other => other.join("."),
    }
}

/// The command that takes out what a policy injected into the workloads of a file, as a shell reads it; forced: what was
/// changed since, too.
pub fn undo_command(policy: &str, file: &str, is_forced: bool) -> String {
    let policy = shell_word(policy);
    let force = if is_forced { " --force" } else { "" };
    match file {
        "<stdin>" => format!("podgraft undo --only {policy}{force}"),
        _ => format!(
            "podgraft undo --only {policy}{force} --in-place {}",
            shell_word(file)
        ),
    }
}

fn in_container(parts: &[&str]) -> String {
    match parts {
        ["env", name, ..] => format!("env {name}"),
        ["volumeMounts", path, ..] => format!("mount {path}"),
        ["ports", port, ..] => format!("port {port}"),
        ["envFrom", source, ..] => format!("envFrom {}", source.replacen('-', " ", 1)),
        other => other.join("."),
    }
}
