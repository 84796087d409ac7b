//! `optIn` and `optOut`: what workloads say about themselves.

use std::ops::Range;

use crate::diagnostic::Diagnostic;
use crate::inventory::NamespaceMeta;
use crate::outcome::{Skip, SkipCause};
use crate::policy::{Mark, Opt, OptFrom, Policy};

use super::namespaces::{Unknown, does_not_hold, undecided};
use super::{No, View};

/// What says no without a policy's help.
const NOES: &[&str] = &["false", "disabled", "no", "off", "0"];

impl View<'_, '_> {
    /// Whether a policy applies by what the workload says. Where both `optIn` and `optOut` hold, the one that stands
    /// nearer to the pod wins; at the same place it is the no.
    pub(super) fn check_opts(
        &self,
        policy: &Policy,
        warnings: &mut Vec<Diagnostic>,
    ) -> Result<(), No> {
        if policy.opt_in.is_none() && policy.opt_out.is_none() {
            return Ok(());
        }
        let object = self.namespace_object();
        let namespace = object.as_ref().ok().copied().flatten();
        let find = |opt: &Option<Opt>| opt.as_ref().and_then(|opt| self.find_word(opt, namespace));
        let (said_in, said_out) = (find(&policy.opt_in), find(&policy.opt_out));
        let says = |said: &Option<(OptFrom, &str)>, opt: &Option<Opt>| {
            let is_meant = |value: &str| opt.as_ref().is_some_and(|opt| opt.is_said_by(value));
            said.filter(|(_, value)| is_meant(value))
                .map(|(from, _)| from)
        };
        let opted_in = says(&said_in, &policy.opt_in);
        let opted_out = says(&said_out, &policy.opt_out);
        if let (Some(out), Some(opt)) = (opted_out, &policy.opt_out)
            && opted_in.is_none_or(|opted_in| opted_in >= out)
        {
            let value = said_out.map(|(_, value)| value).unwrap_or_default();
            let reason = format!("opted out: {} has {}: {value}", whose(out), key_of(opt));
            let skip = Skip::because(SkipCause::OptedOut, reason);
            let skip = skip.found_at(self.mark_span(out, &opt.mark));
            return Err(No::Skip(Box::new(skip)));
        }
        let unknown = || self.unknown(&object);
        if let Some(opt) = policy.opt_in.as_ref().filter(|_| opted_in.is_none()) {
            return Err(match (said_in, unknown().filter(|_| asks_namespace(opt))) {
                (Some(said), _) => No::Skip(Box::new(self.other_word(opt, said))),
                (None, Some(unknown)) => does_not_hold(policy, self.workload, unknown, warnings),
                (None, None) => {
                    let reason = format!("not opted in: no `{}`", key_of(opt));
                    let skip = Skip::because(SkipCause::NotOptedIn, reason);
                    No::Skip(Box::new(skip.hint(self.near_mark(opt))))
                }
            });
        }
        // What stands nearer to the pod than a Namespace that may say no has decided.
        let is_open =
            said_out.is_none() && opted_in.is_none_or(|opted_in| opted_in >= OptFrom::Namespace);
        match unknown() {
            Some(unknown) if is_open && policy.opt_out.as_ref().is_some_and(asks_namespace) => Err(
                undecided(policy, self.workload, unknown, ("the `optOut`", None)),
            ),
            Some(_) | None => Ok(()),
        }
    }

    fn unknown(
        &self,
        object: &Result<Option<&NamespaceMeta>, crate::inventory::Doubt>,
    ) -> Option<Unknown> {
        match object {
            Ok(Some(_)) => None,
            Ok(None) if self.workload.namespace.is_none() => Some(Unknown::Name),
            Ok(None) => Some(Unknown::Object),
            Err(doubt) => Some(Unknown::Contradiction(Box::new(doubt.clone()))),
        }
    }

    /// The mark is there with another value.
    fn other_word(&self, opt: &Opt, (from, value): (OptFrom, &str)) -> Skip {
        let wanted = opt.values.join(" or ");
        let reason = format!(
            "not opted in: {} has {}: {value}, not {wanted}",
            whose(from),
            key_of(opt)
        );
        // Whoever writes the mark with anything but a clear no wants something.
        let is_no = value.is_empty() || NOES.contains(&value.to_ascii_lowercase().as_str());
        let near = opt.values.first().filter(|_| !is_no);
        let hint = near.map(|near| format!("did you mean `{}: \"{near}\"`?", key_of(opt)));
        Skip::because(SkipCause::NotOptedIn, reason)
            .found_at(self.mark_span(from, &opt.mark))
            .hint(hint)
    }

    /// Whether the workload says that it opts in, and not that it opts out, whatever else is the case.
    pub(super) fn opts_in_only(&self, policy: &Policy) -> bool {
        let Some(opt) = &policy.opt_in else {
            return false;
        };
        // A word of the Namespace is meant for all in it, not for this one.
        let said = self.find_word(opt, None);
        let is_yes = said.is_some_and(|(_, value)| opt.is_said_by(value));
        is_yes && self.check_opts(policy, &mut Vec::new()).is_ok()
    }

    /// Where the mark stands in the document.
    fn mark_span(&self, from: OptFrom, mark: &Mark) -> Option<Range<usize>> {
        let metadata = match from {
            OptFrom::Pod => self.workload.pod_metadata(),
            OptFrom::Workload => self.workload.metadata(),
            OptFrom::Namespace => None,
        };
        let (field, key) = match mark {
            Mark::Annotation(key) => ("annotations", key),
            Mark::Label(key) => ("labels", key),
        };
        self.span_in(self.texts_of(metadata, field), key)
    }

    /// A mark that is there under nearly the same key, or as a label instead of an annotation.
    fn near_mark(&self, opt: &Opt) -> Option<String> {
        let (own, other, key) = match &opt.mark {
            Mark::Annotation(key) => ("annotations", "labels", key),
            Mark::Label(key) => ("labels", "annotations", key),
        };
        let holders = [self.workload.pod_metadata(), self.workload.metadata()];
        let elsewhere = holders.iter().any(|&metadata| {
            self.text_under(self.texts_of(metadata, other), key)
                .is_some()
        });
        if elsewhere {
            return Some(format!("`{key}` stands in `{other}`: put it in `{own}`"));
        }
        holders
            .iter()
            .find_map(|&metadata| self.near_key(key, self.texts_of(metadata, own)))
    }

    /// The value of the mark where it decides: at the first place that has it.
    fn find_word<'n>(
        &'n self,
        opt: &Opt,
        namespace: Option<&'n NamespaceMeta>,
    ) -> Option<(OptFrom, &'n str)> {
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

/// Whether the policy names the Namespace itself: among all places it is looked at where it is there.
fn asks_namespace(opt: &Opt) -> bool {
    opt.is_from_stated && opt.from.contains(&OptFrom::Namespace)
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
