//! Reads `acknowledge` of a configuration: accepted findings, each with a reason.

use crate::diagnostic::{Code, Diagnostic};
use crate::options::{Acknowledgement, WorkloadPattern};
use crate::policy::schema::meant_code;
use crate::yaml::value::Path;

use super::read::ConfigReader;
use super::types::AcknowledgeEntry;

impl ConfigReader<'_, '_> {
    /// Reads the accepted findings and reports invalid entries.
    pub(super) fn acknowledged(
        &mut self,
        entries: &[AcknowledgeEntry],
        at: &Path,
    ) -> Vec<Acknowledgement> {
        let mut found = Vec::new();
        for (index, entry) in entries.iter().enumerate() {
            let at = at.index(index);
            let Some(code) = self.finding(&entry.code, &at.key("code")) else {
                continue;
            };
            if entry.reason.trim().is_empty() {
                self.report_error(
                    &at.key("reason"),
                    "`reason` must say why the finding is accepted",
                );
                continue;
            }
            let workload = match entry
                .workload
                .as_deref()
                .map(WorkloadPattern::parse)
                .transpose()
            {
                Ok(workload) => workload,
                Err(message) => {
                    self.report_error(&at.key("workload"), message);
                    continue;
                }
            };
            let place = self.document.place(&at);
            found.push(Acknowledgement::new(
                code,
                workload,
                entry.policy.clone(),
                place,
            ));
        }
        found
    }

    /// The code of a finding; `None`, with an error, for other codes.
    fn finding(&mut self, name: &str, at: &Path) -> Option<Code> {
        let (message, help) = match Code::find(name) {
            Some(code) if code.is_finding() => return Some(code),
            Some(_) => (
                format!("`{name}` cannot be accepted: it always ends the run"),
                format!("see `podgraft explain {name}`"),
            ),
            None => (
                format!("there is no diagnostic code `{name}`"),
                meant_code(name),
            ),
        };
        self.problems
            .push(self.document.error(Code::BadPolicy, at, message).help(help));
        None
    }
}

/// A warning for each entry that matched no finding: the finding is gone, or the entry is misspelt.
pub fn unused(acknowledged: &[Acknowledgement]) -> Vec<Diagnostic> {
    let unused = acknowledged.iter().filter(|entry| !entry.is_used());
    unused.map(covers_nothing).collect()
}

fn covers_nothing(entry: &Acknowledgement) -> Diagnostic {
    let message = format!("this entry covers no finding `{}`", entry.code.name());
    Diagnostic::warning(Code::Unused, message)
        .at(entry.at.clone(), "unused")
        .help("remove the entry, or correct its workload and policy")
}
