//! Reads `match`, `exclude` and `containers`: compiles globs, and turns label selectors into requirements.

use globset::GlobMatcher;
use serde_json::Value;
use std::collections::BTreeSet;

use super::expressions::ConditionSubject;
use super::{PolicyReader, types};
use crate::glob;
use crate::policy::template::ValueTemplate;
use crate::policy::{
    ComputedNames, ConditionWord, ConditionWords, ContainerChoice, ContainerList, KindPattern,
    LabelSelector, MetadataKey, OptFrom, OptRule, OtherInjector, Sample, WorkloadFilter, names,
};
use crate::yaml::value::Path;

/// The conditions of a filter, each with a field that states it.
const CONDITIONS: [(&str, &str); 12] = [
    ("kinds", "kinds"),
    ("names", "nameContains"),
    ("names", "names"),
    ("namespaces", "namespaceContains"),
    ("namespaces", "namespaces"),
    ("selector", "selector"),
    ("workloadSelector", "workloadSelector"),
    ("namespaceSelector", "namespaceSelector"),
    ("annotations", "annotations"),
    ("images", "images"),
    ("hooks", "hooks"),
    ("any", "any"),
];

impl PolicyReader<'_, '_> {
    pub(super) fn filter(&mut self, filter: &types::Filter, at: &Path) -> WorkloadFilter {
        let annotations = filter.annotations.iter().filter_map(|(key, glob)| {
            let path = at.key("annotations").key(key);
            self.report_invalid(&path, names::check_key(key));
            Some((key.clone(), self.glob(glob, &path)?))
        });
        WorkloadFilter {
            annotations: annotations.collect(),
            at: self.document.span(at),
            kinds: self.kinds(&filter.kinds, &at.key("kinds")),
            names: self.globs_or_part(
                &filter.names,
                &filter.name_contains,
                [&at.key("names"), &at.key("nameContains")],
            ),
            namespaces: self.globs_or_part(
                &filter.namespaces,
                &filter.namespace_contains,
                [&at.key("namespaces"), &at.key("namespaceContains")],
            ),
            selector: self.selector(&at.key("selector")),
            workload_selector: self.selector(&at.key("workloadSelector")),
            namespace_selector: self.selector(&at.key("namespaceSelector")),
            images: self.globs(&filter.images, &at.key("images")),
            hooks: filter.hooks,
            sample: filter
                .sample
                .as_ref()
                .map(|sample| self.sample(sample, &at.key("sample"))),
            any: self.filters(&filter.any, &at.key("any")),
            words: self.condition_words(at),
        }
    }

    /// What the conditions of a filter are called where their author wrote them.
    fn condition_words(&self, filter: &Path) -> ConditionWords {
        let mut words = ConditionWords::new();
        for (condition, key) in CONDITIONS {
            if let Some(word) = self.condition_word(&filter.key(key), key) {
                words.insert(condition, word);
            }
        }
        let Some(kind) = self.document.places.kind_of_resource() else {
            return words;
        };
        for (condition, key) in CONDITIONS {
            let word = || self.word_at(&filter.key(key), kind.to_owned());
            words.entry(condition).or_insert_with(word);
        }
        words
    }

    /// What a condition is called where its author wrote it, if not by its own name.
    fn condition_word(&self, at: &Path, key: &str) -> Option<ConditionWord> {
        let value = at.get(&self.document.value)?;
        let part = value.as_str().filter(|_| key.ends_with("Contains"));
        if part == Some("") {
            return None;
        }
        let field = self.document.places.field_of_resource(at);
        let field = field.or_else(|| part.map(|_| key.to_owned()))?;
        Some(ConditionWord {
            part: part.map(str::to_owned),
            ..self.word_at(at, field)
        })
    }

    fn word_at(&self, at: &Path, field: String) -> ConditionWord {
        ConditionWord {
            field,
            part: None,
            at: self.document.span(at),
        }
    }

    pub(super) fn filters(&mut self, filters: &[types::Filter], at: &Path) -> Vec<WorkloadFilter> {
        filters
            .iter()
            .enumerate()
            .map(|(index, filter)| self.filter(filter, &at.index(index)))
            .collect()
    }

    fn sample(&mut self, sample: &Sample, at: &Path) -> Sample {
        if !(0.0..=100.0).contains(&sample.percent) {
            self.report_error(
                &at.key("percent"),
                "`percent` must be between 0 and 100",
                "0 selects no workloads, 100 selects all",
            );
        }
        sample.clone()
    }

    fn globs(&mut self, globs: &[String], at: &Path) -> Vec<GlobMatcher> {
        globs
            .iter()
            .enumerate()
            .filter_map(|(index, glob)| self.glob(glob, &at.index(index)))
            .collect()
    }

    /// Compiles globs, or `*TEXT*` for the text of `nameContains` or `namespaceContains`.
    fn globs_or_part(&mut self, globs: &[String], part: &str, at: [&Path; 2]) -> Vec<GlobMatcher> {
        if part.is_empty() {
            return self.globs(globs, at[0]);
        }
        if !globs.is_empty() {
            let message = format!(
                "`{}` cannot be used together with `{}`",
                at[1].name(),
                at[0].name()
            );
            self.report_error(at[1], message, "use the glob `*TEXT*` instead");
        }
        let glob = format!("*{}*", globset::escape(part));
        self.glob(&glob, at[1]).into_iter().collect()
    }

    /// Compiles a glob. `*` also matches `/`, because images have paths.
    fn glob(&mut self, glob: &str, at: &Path) -> Option<GlobMatcher> {
        match glob::compile(glob, glob::GlobSubject::Text) {
            Ok(matcher) => Some(matcher),
            Err(message) => {
                self.report_error(
                    at,
                    message,
                    "`*` matches any text, `?` one character, `[ab]` either character, `{a,b}` \
                     either text",
                );
                None
            }
        }
    }

    fn kinds(&mut self, kinds: &[String], at: &Path) -> Vec<KindPattern> {
        let kinds = kinds.iter().enumerate();
        kinds
            .filter_map(|(index, pattern)| self.kind_pattern(pattern, &at.index(index)))
            .collect()
    }

    fn kind_pattern(&mut self, pattern: &str, at: &Path) -> Option<KindPattern> {
        let (api_version, kind) = match pattern.rsplit_once('/') {
            Some((api_version, kind)) => (Some(self.glob(api_version, at)?), kind),
            None => (None, pattern),
        };
        Some(KindPattern {
            at: self.document.span(at),
            api_version,
            kind: self.glob(kind, at)?,
        })
    }

    fn selector(&mut self, at: &Path) -> Option<LabelSelector> {
        LabelSelector::read(self.document, at, &mut self.problems)
    }

    pub(super) fn containers(
        &mut self,
        containers: &types::Containers,
        at: &Path,
    ) -> ContainerChoice {
        let include: Vec<ContainerList> = containers.include.clone();
        let is_emptied = self.unfilled.emptied.contains(&at.key("names"));
        let names = [&containers.names, &containers.exclude_names];
        let keys = ["names", "excludeNames"].map(|key| at.key(key));
        let computed_names = [0, 1].map(|index| self.computed_names(names[index], &keys[index]));
        let mut globs = [0, 1].map(|index| match &computed_names[index] {
            Some(_) => Vec::new(),
            None if index == 0 => {
                let part = [&keys[0], &at.key("nameContains")];
                self.globs_or_part(names[0], &containers.name_contains, part)
            }
            None => self.globs(names[index], &keys[index]),
        });
        let match_conditions = containers.match_conditions.clone();
        ContainerChoice {
            names: std::mem::take(&mut globs[0]),
            names_word: self.condition_word(&at.key("nameContains"), "nameContains"),
            exclude_names: std::mem::take(&mut globs[1]),
            computed_names,
            match_conditions: self.conditions(
                match_conditions,
                ConditionSubject::Container,
                &at.key("matchConditions"),
            ),
            images: self.globs(&containers.images, &at.key("images")),
            exclude_images: self.globs(&containers.exclude_images, &at.key("excludeImages")),
            with_env: containers.with_env.clone(),
            without_env: containers.without_env.clone(),
            names_from_annotation: containers.names_from_annotation.clone().inspect(|key| {
                self.report_invalid(&at.key("namesFromAnnotation"), names::check_key(key));
            }),
            include: match include.is_empty() {
                // An empty list of names would match all containers, but here it means that none is chosen.
                _ if is_emptied => Vec::new(),
                true => vec![ContainerList::Containers],
                false => include,
            },
            mode: containers.mode,
        }
    }

    /// `names` or `excludeNames` as a template; `None` if nothing in it waits for a workload.
    fn computed_names(&self, names: &[String], at: &Path) -> Option<ComputedNames> {
        let waiting = self.unfilled.templates.iter();
        let templates = waiting.filter(|(path, _)| path.starts_with(at));
        let within = |path: &Path| Path(path.0[at.0.len()..].to_vec());
        let texts: Vec<_> = templates
            .map(|(path, template)| (within(path), template.clone()))
            .collect();
        let names = names.iter().map(String::as_str).map(Value::from).collect();
        (!texts.is_empty()).then(|| ComputedNames {
            template: ValueTemplate::new(names, texts),
            at: self.document.span(at),
        })
    }

    pub(super) fn opt(
        &mut self,
        opt: Option<types::Opt>,
        default_values: [&str; 2],
        at: &Path,
    ) -> Option<OptRule> {
        let opt = opt?;
        let mark = match (opt.annotation, opt.label) {
            (Some(key), None) => MetadataKey::Annotation(key),
            (None, Some(key)) => MetadataKey::Label(key),
            (Some(_), Some(_)) | (None, None) => {
                let message = format!("`{}` must have either `annotation` or `label`", at.name());
                self.report_error(at, message, "set one of the two to a key");
                return None;
            }
        };
        self.check_mark(&mark, at);
        let values = match opt.values.is_empty() {
            true => default_values.map(str::to_owned).to_vec(),
            false => opt.values,
        };
        let from: BTreeSet<OptFrom> = opt.from.into_iter().collect();
        // As a sorted set, from the pod outwards: the nearest place with the mark decides.
        let everywhere = [OptFrom::Pod, OptFrom::Workload, OptFrom::Namespace];
        let is_from_stated = !from.is_empty();
        Some(OptRule {
            mark,
            values,
            from: if is_from_stated {
                from
            } else {
                everywhere.into()
            },
            ignores_case: opt.ignore_case,
            is_from_stated,
        })
    }

    pub(super) fn leave_alone(
        &mut self,
        entries: &[types::LeaveAlone],
        at: &Path,
    ) -> Vec<OtherInjector> {
        let read = |(index, entry)| self.left_alone_by(entry, &at.index(index));
        entries.iter().enumerate().filter_map(read).collect()
    }

    fn left_alone_by(&mut self, entry: &types::LeaveAlone, at: &Path) -> Option<OtherInjector> {
        let mark = match (&entry.annotation, &entry.label, &entry.container) {
            (Some(key), None, None) => MetadataKey::Annotation(key.clone()),
            (None, Some(key), None) => MetadataKey::Label(key.clone()),
            (None, None, Some(name)) if entry.values.is_empty() => {
                let name = self.glob(name, &at.key("container"))?;
                return Some(OtherInjector::Container(name));
            }
            _ => {
                let message = format!(
                    "`{}` must have exactly one of `annotation`, `label`, and `container`",
                    at.name()
                );
                let help = "use `values` only for globs on the value of an annotation or label";
                self.report_error(at, message, help);
                return None;
            }
        };
        self.check_mark(&mark, at);
        let values = self.globs(&entry.values, &at.key("values"));
        Some(OtherInjector::Mark(mark, values))
    }

    /// Checks the key that stands under `annotation` or `label` in the mapping at `at`.
    fn check_mark(&mut self, mark: &MetadataKey, at: &Path) {
        let (field, check) = match mark {
            MetadataKey::Annotation(key) => ("annotation", names::check_key(key)),
            MetadataKey::Label(key) => ("label", names::check_label_key(key)),
        };
        self.report_invalid(&at.key(field), check);
    }
}
