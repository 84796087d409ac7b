//! Evaluates `optIn` and `optOut`: marks on the pod template, the workload or the Namespace.

use std::ops::Range;

use crate::diagnostic::Diagnostic;
use crate::inventory::NamespaceMeta;
use crate::mask;
use crate::outcome::{Skip, SkipCause};
use crate::policy::{MetadataKey, OptFrom, OptRule};
use crate::yaml::tree::NodeId;

use super::namespaces::NamespaceUncertainty;
use super::{NotApplied, WorkloadFacts};

/// Values that clearly mean no, whatever the policy accepts.
const NEGATIVE_VALUES: &[&str] = &["false", "disabled", "no", "off", "0"];

impl WorkloadFacts<'_, '_> {
    fn opted_out(&self, opt: &OptRule, from: OptFrom, value: &str) -> Skip {
        let holder = holder_name(from);
        let (key, value) = (key_of(opt), mask::value(key_of(opt), value));
        let reason = format!("opted out: {holder} has {key}: {value}");
        Skip::because(SkipCause::OptedOut, reason).found_at(self.mark_span(from, &opt.mark))
    }

    /// Whether a policy applies according to the marks. If both `optIn` and `optOut` hold, the one nearer to the pod
    /// wins, and at the same place `optOut`.
    pub(super) fn check_opts(&self, warnings: &mut Vec<Diagnostic>) -> Result<(), NotApplied> {
        let policy = self.policy;
        if policy.opt_in.is_none() && policy.opt_out.is_none() {
            return Ok(());
        }
        let object = self.namespace_meta();
        let namespace = object.as_ref().ok().copied().flatten();
        let [opt_in_mark, opt_out_mark] =
            [&policy.opt_in, &policy.opt_out].map(|opt| self.find_mark(opt.as_ref()?, namespace));
        let accepted = |mark: &Option<(OptFrom, &str)>, opt: &Option<OptRule>| {
            let is_accepted = |value: &str| opt.as_ref().is_some_and(|opt| opt.accepts(value));
            mark.and_then(|(from, value)| is_accepted(value).then_some(from))
        };
        let opted_in = accepted(&opt_in_mark, &policy.opt_in);
        let opted_out = accepted(&opt_out_mark, &policy.opt_out);
        if let (Some(out), Some(opt)) = (opted_out, &policy.opt_out)
            // `OptFrom` is ordered from the pod outwards, so the lesser one is nearer.
            && opted_in.is_none_or(|opted_in| opted_in >= out)
        {
            let value = opt_out_mark.map(|(_, value)| value).unwrap_or_default();
            return Err(self.opted_out(opt, out, value).into());
        }
        let unknown = || self.unknown(&object);
        if let Some(opt) = policy.opt_in.as_ref().filter(|_| opted_in.is_none()) {
            let unknown = unknown().filter(|_| asks_namespace(opt));
            return Err(match (opt_in_mark, unknown) {
                (Some((from, value)), _) => self.other_value(opt, from, value).into(),
                (None, Some(unknown)) => self.does_not_hold(unknown, warnings),
                (None, None) => {
                    let reason = format!("not opted in: no `{}`", key_of(opt));
                    let skip = Skip::because(SkipCause::NotOptedIn, reason);
                    skip.hint(self.near_mark(opt)).into()
                }
            });
        }
        // An unknown Namespace may opt out, but only if no mark nearer to the pod has decided.
        let is_open = opt_out_mark.is_none()
            && opted_in.is_none_or(|opted_in| opted_in >= OptFrom::Namespace);
        match unknown() {
            Some(unknown) if is_open && policy.opt_out.as_ref().is_some_and(asks_namespace) => {
                Err(self.undecided(unknown, "the `optOut`", None))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn unknown(
        &self,
        object: &Result<Option<&NamespaceMeta>, Diagnostic>,
    ) -> Option<NamespaceUncertainty> {
        match object {
            Ok(Some(_)) => None,
            Ok(None) if self.workload.namespace.is_none() => Some(NamespaceUncertainty::Name),
            Ok(None) => Some(NamespaceUncertainty::Object),
            Err(doubt) => Some(NamespaceUncertainty::Contradiction(Box::new(doubt.clone()))),
        }
    }

    /// The skip for an `optIn` mark with another value.
    fn other_value(&self, opt: &OptRule, from: OptFrom, value: &str) -> Skip {
        let wanted = opt.values.join(" or ");
        let (holder, key) = (holder_name(from), key_of(opt));
        let shown = mask::value(key, value);
        let reason = format!("not opted in: {holder} has {key}: {shown}, not {wanted}");
        // A value that does not clearly mean no is probably meant as yes.
        let is_no =
            value.is_empty() || NEGATIVE_VALUES.contains(&value.to_ascii_lowercase().as_str());
        // A value with `*` in it can stand in a policy, but is no value of a label.
        let mut values = opt.values.iter();
        let near = values.find(|near| !is_no && !near.contains('*'));
        let hint = near.map(|near| format!("did you mean `{}: \"{near}\"`?", key_of(opt)));
        Skip::because(SkipCause::NotOptedIn, reason)
            .found_at(self.mark_span(from, &opt.mark))
            .hint(hint)
    }

    /// Whether the workload itself opts in, and does not opt out. No other conditions are considered.
    pub(super) fn opts_in_only(&self) -> bool {
        let Some(opt) = &self.policy.opt_in else {
            return false;
        };
        // A mark on the Namespace is for all workloads in it, not for this one in particular.
        let mark = self.find_mark(opt, None);
        let is_yes = mark.is_some_and(|(_, value)| opt.accepts(value));
        is_yes && self.check_opts(&mut Vec::new()).is_ok()
    }

    /// The byte range of the mark in the document.
    fn mark_span(&self, from: OptFrom, mark: &MetadataKey) -> Option<Range<usize>> {
        let metadata = match from {
            OptFrom::Pod => self.workload.pod_metadata(),
            OptFrom::Workload => self.workload.metadata(),
            OptFrom::Namespace => return None,
        };
        let (field, key) = mark.field_and_key();
        self.span_in(metadata.texts(field), key)
    }

    /// A hint if the mark exists under nearly the same key, or as a label instead of an annotation.
    fn near_mark(&self, opt: &OptRule) -> Option<String> {
        let (field, key) = opt.mark.field_and_key();
        let other = match field {
            "labels" => "annotations",
            _ => "labels",
        };
        let has_key = |texts: &Option<NodeId>| self.text_under(*texts, key).is_some();
        if self.any_texts(other).iter().any(has_key) {
            return Some(format!("`{key}` is in `{other}`: move it to `{field}`"));
        }
        let mut texts = self.any_texts(field).into_iter();
        texts.find_map(|texts| self.near_key(key, texts))
    }

    /// The place and value of the mark: the first place in the policy's order that has it decides.
    fn find_mark<'n>(
        &'n self,
        opt: &OptRule,
        namespace: Option<&'n NamespaceMeta>,
    ) -> Option<(OptFrom, &'n str)> {
        let mut places = opt.from.iter();
        places.find_map(|&from| Some((from, self.mark_at(from, &opt.mark, namespace)?)))
    }

    fn mark_at<'n>(
        &'n self,
        from: OptFrom,
        mark: &MetadataKey,
        namespace: Option<&'n NamespaceMeta>,
    ) -> Option<&'n str> {
        match from {
            OptFrom::Pod => self.mark_in(self.workload.pod_metadata(), mark),
            OptFrom::Workload => self.mark_in(self.workload.metadata(), mark),
            OptFrom::Namespace => match mark {
                MetadataKey::Annotation(key) => namespace?.annotations.get(key),
                MetadataKey::Label(key) => namespace?.labels.get(key),
            }
            .map(String::as_str),
        }
    }
}

/// Whether the policy states that the mark may be on the Namespace. By default it may, too, but then an unknown
/// Namespace is ignored.
fn asks_namespace(opt: &OptRule) -> bool {
    opt.is_from_stated && opt.from.contains(&OptFrom::Namespace)
}

fn key_of(opt: &OptRule) -> &str {
    opt.mark.field_and_key().1
}

fn holder_name(from: OptFrom) -> &'static str {
    match from {
        OptFrom::Pod => "the pod template",
        OptFrom::Workload => "the workload",
        OptFrom::Namespace => "the Namespace",
    }
}
