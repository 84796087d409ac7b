//! Groups findings that say the same about many workloads, so that they are shown once.

use std::collections::{BTreeMap, BTreeSet};

use crate::diagnostic::{Code, Diagnostic, Severity};

use crate::wording::{count, one_line};

/// Returns each first finding with those that say the same about other workloads.
pub fn group_alike<'d>(
    diagnostics: &[&'d Diagnostic],
) -> Vec<(&'d Diagnostic, Vec<&'d Diagnostic>)> {
    let mut folded: Vec<(&Diagnostic, Vec<&Diagnostic>)> = Vec::new();
    let mut known: BTreeMap<(Code, Severity, String, String), usize> = BTreeMap::new();
    for diagnostic in diagnostics {
        // Errors are not grouped: each of them has to be fixed.
        let Some(title) = diagnostic
            .workload
            .as_ref()
            .filter(|_| !diagnostic.is_error())
        else {
            folded.push((diagnostic, Vec::new()));
            continue;
        };
        let of_any = |text: &str| text.replace(&**title, "");
        // The help of this code names the container, so it does not count.
        let help = diagnostic.help.as_deref();
        let help = help.filter(|_| diagnostic.code != Code::HiddenEnv);
        let key = (
            diagnostic.code,
            diagnostic.severity,
            of_any(&diagnostic.message),
            without_file(diagnostic, help.unwrap_or_default()),
        );
        match known.get(&key) {
            Some(at) => folded[*at].1.push(diagnostic),
            None => {
                known.insert(key, folded.len());
                folded.push((diagnostic, Vec::new()));
            }
        }
    }
    folded
}

/// Removes the name of the finding's file from its help, so that findings of several files compare equal.
fn without_file(diagnostic: &Diagnostic, help: &str) -> String {
    match diagnostic.place() {
        Some(place) => help.replace(&*place.source, ""),
        None => help.to_owned(),
    }
}

/// The most workloads that are named for one finding.
const MAX_NAMED: usize = 5;

/// `the same of 86 more workloads: Deployment shop/a (a.yaml:3), ...`, and the flag that lists them all.
pub fn and_more_named(diagnostic: &Diagnostic, others: &[&Diagnostic], all_with: &str) -> String {
    let named = others.iter().take(MAX_NAMED).map(|other| {
        let title = other.workload.as_deref().unwrap_or_default();
        let place = other.place().map_or(String::new(), |place| {
            format!(" ({}:{})", place.source, place.line)
        });
        one_line(&format!("{title}{place}"))
    });
    let named: Vec<String> = named.collect();
    let rest = match others.len() > MAX_NAMED {
        true => format!(", ...; {all_with} lists all"),
        false => String::new(),
    };
    let more = count_of_others(diagnostic, others);
    format!("{more}: {}{rest}", named.join(", "))
}

/// `the same of 86 more workloads`, or `... more places` if a workload has several.
fn count_of_others(diagnostic: &Diagnostic, others: &[&Diagnostic]) -> String {
    let mut titles: BTreeSet<_> = others.iter().map(|other| &other.workload).collect();
    titles.insert(&diagnostic.workload);
    let noun = match titles.len() > others.len() {
        true => "more workload",
        false => "more place",
    };
    format!("the same for {}", count(others.len(), noun))
}

/// Like `count_of_others`, in parentheses; empty if there are none.
pub(super) fn and_more(diagnostic: &Diagnostic, others: &[&Diagnostic]) -> String {
    match others {
        [] => String::new(),
        others => format!(" ({})", count_of_others(diagnostic, others)),
    }
}
