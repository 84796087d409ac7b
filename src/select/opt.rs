//! `optIn` and `optOut`: what workloads say about themselves.

use crate::policy::{Mark, Opt, OptFrom, Policy};

use super::{NamespaceMeta, View};

impl View<'_, '_> {
    /// Why a policy does not apply by what the workload says, if so. Where both `optIn` and `optOut` hold, the one that
    /// stands nearer to the pod wins; at the same place it is the no.
    pub(super) fn check_opts(&self, policy: &Policy, namespace: Option<&NamespaceMeta>) -> Option<String> {
        let find = |opt: &Option<Opt>| opt.as_ref().and_then(|opt| self.find_word(opt, namespace));
        let (said_in, said_out) = (find(&policy.opt_in), find(&policy.opt_out));
        let says = |said: &Option<(OptFrom, &str)>, opt: &Option<Opt>| {
            let is_meant = |value: &str| opt.as_ref().is_some_and(|opt| opt.values.iter().any(|one| one == value));
            said.filter(|(_, value)| is_meant(value)).map(|(from, _)| from)
        };
        let (opted_in, opted_out) = (says(&said_in, &policy.opt_in), says(&said_out, &policy.opt_out));
        if let (Some(out), Some(opt)) = (opted_out, &policy.opt_out)
            && opted_in.is_none_or(|opted_in| opted_in >= out)
        {
            let value = said_out.map(|(_, value)| value).unwrap_or_default();
            return Some(format!("opted out: {} has {}: {value}", whose(out), key_of(opt)));
        }
        let opt = policy.opt_in.as_ref().filter(|_| opted_in.is_none())?;
        Some(match said_in {
            Some((from, value)) => {
                let wanted = opt.values.join(" or ");
                format!("not opted in: {} has {}: {value}, not {wanted}", whose(from), key_of(opt))
            }
            None => format!("not opted in: no `{}`", key_of(opt)),
        })
    }

    /// The value of the mark where it decides: at the first place that has it.
    fn find_word<'n>(&'n self, opt: &Opt, namespace: Option<&'n NamespaceMeta>) -> Option<(OptFrom, &'n str)> {
        opt.from.iter().find_map(|&from| {
            let value = match from {
                OptFrom::Pod => self.mark_in(self.workload.pod_metadata(), &opt.mark),
                OptFrom::Workload => self.mark_in(self.workload.metadata(), &opt.mark),
                OptFrom::Namespace => match &opt.mark {
                    Mark::Annotation(key) => namespace?.annotations.get(key).map(String::as_str),
                    Mark::Label(key) => namespace?.labels.get(key).map(String::as_str),
                },
            };
            Some((from, value?))
        })
    }
}

fn key_of(opt: &Opt) -> &str {
    match &opt.mark {
        Mark::Annotation(key) | Mark::Label(key) => key,
    }
}

fn whose(from: OptFrom) -> &'static str {
    match from {
        OptFrom::Pod => "the pod template",
        OptFrom::Workload => "the workload",
        OptFrom::Namespace => "the Namespace",
    }
}
