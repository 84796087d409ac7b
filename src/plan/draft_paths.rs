//! Resolves the paths of a record in a draft, and edits the draft there.

use foldhash::HashMap;
use serde_json::Value;
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::change::unescape;
use crate::record::{
    Record, RecordPaths, as_stated, escape, identity_of_item, identity_of_name, is_aligned,
    is_escaped, name_field, numbered,
};
use crate::yaml::tree::{NodeId, Tree};

use super::draft::{Draft, DraftValue, OpenId, Refusal};
use super::reconcile;

/// The length above which knowing the items of a list pays.
const LONG: usize = 64;

/// Resolves record paths in drafts of one object.
pub(crate) struct DraftPaths {
    paths: RecordPaths,
    /// The items of long lists, by list path. A pod can have thousands of containers, and its record several paths into
    /// each.
    long_lists: RefCell<HashMap<String, KnownItems>>,
}

/// The items of a long list, as they were at the last search.
struct KnownItems {
    list: DraftValue,
    /// The first item of each identity, with its index.
    items: HashMap<String, (usize, DraftValue)>,
}

/// Reads the places that record paths name in an object of the input.
pub(crate) struct RecordedPlaces<'t> {
    draft: Draft<'t>,
    paths: DraftPaths,
}

impl<'t> RecordedPlaces<'t> {
    pub(crate) fn of(tree: &'t Tree<'t>, node: NodeId, paths: RecordPaths) -> Self {
        RecordedPlaces {
            draft: Draft::new(tree, node),
            paths: DraftPaths::of(paths),
        }
    }

    /// Returns the value at a path. `None` if there is none.
    pub(crate) fn value(&self, path: &str) -> Option<Value> {
        self.paths.value(&self.draft, path)
    }

    pub(crate) fn has(&self, path: &str) -> bool {
        self.paths.get(&self.draft, path).is_some()
    }

    pub(super) fn has_empty_collection(&self, path: &str) -> bool {
        let part = self.paths.get(&self.draft, path);
        part.is_some_and(|part| !self.draft.is_null(&part) && self.draft.is_empty(&part))
    }
}

/// An item or field of a draft.
pub(super) struct LocatedPart {
    pub part: DraftValue,
    /// The key or identity of what it follows, empty for the first.
    pub after: String,
}

/// An opened mapping or list, and the last segment of a path below it.
enum Holder<'p> {
    Mapping(OpenId, Cow<'p, str>),
    /// With the key of the list.
    List(OpenId, &'p str),
}

/// An item or field that may be edited, in the opened list or mapping that holds it.
enum OpenedPlace<'p> {
    Field(OpenId, Cow<'p, str>),
    Item(OpenId, usize),
}

impl DraftPaths {
    pub(crate) fn of(paths: RecordPaths) -> Self {
        DraftPaths {
            paths,
            long_lists: RefCell::default(),
        }
    }

    /// Returns the part at a path. `None` if there is none.
    pub(super) fn get(&self, draft: &Draft<'_>, path: &str) -> Option<DraftValue> {
        self.walk(draft, &self.paths.segments(path))
    }

    /// Returns the value at a path. `None` if there is none.
    pub(crate) fn value(&self, draft: &Draft<'_>, path: &str) -> Option<Value> {
        draft.value(&self.get(draft, path)?)
    }

    fn walk(&self, draft: &Draft<'_>, segments: &[&str]) -> Option<DraftValue> {
        let mut depths = 0..segments.len();
        depths.try_fold(draft.root(), |part, depth| {
            let (_, next) = self.child(draft, &part, segments, depth)?;
            Some(next)
        })
    }

    /// The item or field that the segment at `depth` names, with its index.
    fn child(
        &self,
        draft: &Draft<'_>,
        part: &DraftValue,
        segments: &[&str],
        depth: usize,
    ) -> Option<(usize, DraftValue)> {
        if !draft.is_list(part) {
            return draft.field(part, &unescape(segments[depth]));
        }
        let key = list_key(segments, depth);
        let wanted = segments[depth];
        if wanted.contains("~#") || draft.item(part, LONG).is_none() {
            return find_item(draft, key, part, wanted);
        }
        let mut long_lists = self.long_lists.borrow_mut();
        let known = long_lists
            .entry(segments[..depth].join("/"))
            .or_insert_with(|| KnownItems::of(draft, key, part));
        if known.list != *part {
            *known = KnownItems::of(draft, key, part);
        }
        // A list of the input stays as it is. In an opened one, the item may have moved.
        let found = known.items.get(wanted).cloned();
        if matches!(part, DraftValue::Node(_)) {
            return found;
        }
        let current = found.and_then(|(at, _)| Some((at, draft.item(part, at)?)));
        let is_wanted = |(_, item): &(usize, DraftValue)| has_identity(draft, key, item, wanted);
        current.filter(is_wanted).or_else(|| {
            *known = KnownItems::of(draft, key, part);
            known.items.get(wanted).cloned()
        })
    }

    /// Returns the index at each level of a path. Comparing these lists compares positions: the lesser one is further
    /// ahead in the object.
    pub(super) fn place(&self, draft: &Draft<'_>, path: &str) -> Option<Vec<usize>> {
        self.places(draft, [path]).next()?
    }

    /// The place of each path. What a path has in common with the one before it is walked once.
    pub(super) fn places<'p>(
        &'p self,
        draft: &Draft<'_>,
        paths: impl IntoIterator<Item = &'p str>,
    ) -> impl Iterator<Item = Option<Vec<usize>>> {
        let mut walked: Vec<(&str, usize, DraftValue)> = Vec::new();
        paths.into_iter().map(move |path| {
            let segments = self.paths.segments(path);
            let steps = walked.iter().zip(&segments);
            let common = steps.take_while(|((walked, ..), segment)| walked == *segment);
            walked.truncate(common.count());
            for depth in walked.len()..segments.len() {
                let above = walked.last();
                let holder = above.map_or_else(|| draft.root(), |(.., part)| part.clone());
                let (index, part) = self.child(draft, &holder, &segments, depth)?;
                walked.push((segments[depth], index, part));
            }
            Some(walked.iter().map(|(_, index, _)| *index).collect())
        })
    }

    /// Reads the item or field at a place, and what it follows. `place` is where `path` led before something behind it
    /// was removed.
    pub(super) fn at(&self, draft: &Draft<'_>, path: &str, place: &[usize]) -> Option<LocatedPart> {
        let segments = self.paths.segments(path);
        let (&last, above) = place.split_last()?;
        let mut steps = above.iter().zip(&segments);
        let holder = steps.try_fold(draft.root(), |part, (&index, segment)| {
            part_at(draft, &part, index, segment)
        })?;
        let part = part_at(draft, &holder, last, segments.last()?)?;
        let before = last.checked_sub(1);
        let after = match draft.is_list(&holder) {
            true => before.and_then(|at| self.identity_at(draft, &holder, &segments, at)),
            false => before
                .and_then(|at| draft.key_at(&holder, at))
                .map(|key| escape(&key).into_owned()),
        };
        Some(LocatedPart {
            part,
            after: after.unwrap_or_default(),
        })
    }

    /// The identity of an item of the list that holds the last segment, with its number among its twins.
    fn identity_at(
        &self,
        draft: &Draft<'_>,
        list: &DraftValue,
        segments: &[&str],
        at: usize,
    ) -> Option<String> {
        let depth = segments.len() - 1;
        let key = list_key(segments, depth);
        let plain = identity(draft, key, &draft.item(list, at)?);
        let first = self.child(
            draft,
            list,
            &[&segments[..depth], &[&plain]].concat(),
            depth,
        );
        if first.is_some_and(|(first, _)| first == at) {
            return Some(plain);
        }
        let before = draft.items(list).into_iter().take(at);
        let twins = before.filter(|item| has_identity(draft, key, item, &plain));
        Some(numbered(&plain, twins.count() + 1))
    }

    /// Opens what holds the last segment of a path. `None` if it is not there.
    fn open_holder<'s>(
        &self,
        draft: &mut Draft<'_>,
        segments: &[&'s str],
    ) -> Result<Option<Holder<'s>>, Refusal> {
        let Some((&last, above)) = segments.split_last() else {
            return Ok(None);
        };
        let mut id = draft.open_root()?;
        let mut part = DraftValue::Open(id);
        for (depth, segment) in above.iter().enumerate() {
            // Opening a missing mapping would make it.
            let Some((index, next)) = self.child(draft, &part, segments, depth) else {
                return Ok(None);
            };
            if !draft.is_list(&next) && !draft.is_mapping(&next) {
                return Ok(None);
            }
            id = open_at(draft, id, index, segment)?;
            part = DraftValue::Open(id);
        }
        Ok(Some(match draft.is_list(&part) {
            true => Holder::List(id, list_key(segments, above.len())),
            false => Holder::Mapping(id, unescape(last)),
        }))
    }

    /// Opens what holds the item or field at a path. `None` if it or the item is not there.
    fn open<'p>(
        &'p self,
        draft: &mut Draft<'_>,
        path: &'p str,
    ) -> Result<Option<OpenedPlace<'p>>, Refusal> {
        let Some(place) = self.place(draft, path) else {
            return Ok(None);
        };
        self.open_place(draft, path, &place)
    }

    /// Like [`open`](Self::open), for a path that leads to this place.
    fn open_place<'p>(
        &'p self,
        draft: &mut Draft<'_>,
        path: &'p str,
        place: &[usize],
    ) -> Result<Option<OpenedPlace<'p>>, Refusal> {
        let segments = self.paths.segments(path);
        let (Some((&index, above)), Some(last)) = (place.split_last(), segments.last()) else {
            return Ok(None);
        };
        let mut id = draft.open_root()?;
        for (&index, segment) in above.iter().zip(&segments) {
            id = open_at(draft, id, index, segment)?;
        }
        Ok(Some(match draft.is_list(&DraftValue::Open(id)) {
            true => OpenedPlace::Item(id, index),
            false => OpenedPlace::Field(id, unescape(last)),
        }))
    }

    /// Removes the item or field at a path, if it is there.
    pub(super) fn remove(&self, draft: &mut Draft<'_>, path: &str) -> Result<(), Refusal> {
        match self.place(draft, path) {
            Some(place) => self.remove_at(draft, path, &place),
            None => Ok(()),
        }
    }

    /// Removes the item or field at a place, to which `path` leads.
    pub(super) fn remove_at(
        &self,
        draft: &mut Draft<'_>,
        path: &str,
        place: &[usize],
    ) -> Result<(), Refusal> {
        match self.open_place(draft, path, place)? {
            Some(OpenedPlace::Field(id, key)) => draft.remove_field(id, &key),
            Some(OpenedPlace::Item(id, index)) => draft.remove(id, index),
            None => Ok(()),
        }
    }

    /// Gives the part at a path another value. Equal parts inside stay as they are written.
    pub(super) fn set(
        &self,
        draft: &mut Draft<'_>,
        path: &str,
        existing: &Value,
        wanted: &Value,
    ) -> Result<(), Refusal> {
        match self.open(draft, path)? {
            Some(OpenedPlace::Field(id, key)) => {
                reconcile::field(draft, id, &key, existing, wanted)
            }
            Some(OpenedPlace::Item(id, index)) => {
                reconcile::item(draft, id, index, existing, wanted)
            }
            None => Ok(()),
        }
    }

    /// Edits the list of the item at a path, if the list is there.
    pub(super) fn edit_item<'t>(
        &self,
        draft: &mut Draft<'t>,
        path: &str,
        edit: impl FnOnce(&mut Draft<'t>, OpenId) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        match self.open_holder(draft, &self.paths.segments(path))? {
            Some(Holder::List(id, ..)) => edit(draft, id),
            Some(Holder::Mapping(..)) | None => Ok(()),
        }
    }

    /// Inserts a value at a path that has none, and creates missing mappings and lists above it. `after` is the key
    /// or identity that it follows, `Some("")` for the first position. If it is `None`, or names something that is
    /// not there any more, the value becomes the last. Items of lists are never created: then nothing is inserted.
    pub(super) fn insert(
        &self,
        draft: &mut Draft<'_>,
        path: &str,
        value: Value,
        after: Option<&str>,
    ) -> Result<(), Refusal> {
        let segments = self.paths.segments(path);
        self.make_holders(draft, &segments)?;
        match self.open_holder(draft, &segments)? {
            Some(Holder::Mapping(id, key)) => {
                let count = draft.count_fields(id);
                let index = match after {
                    None => count,
                    Some("") => 0,
                    Some(after) => {
                        let found = draft.field(&DraftValue::Open(id), &unescape(after));
                        found.map_or(count, |(at, _)| at.saturating_add(1).min(count))
                    }
                };
                draft.insert_field_at(id, index, &key, value);
            }
            Some(Holder::List(id, key)) => {
                let list = DraftValue::Open(id);
                let count = draft.count(&list);
                let index = match after {
                    None => count,
                    Some("") => 0,
                    Some(after) => {
                        let found = find_item(draft, key, &list, after);
                        found.map_or(count, |(index, _)| index + 1)
                    }
                };
                draft.insert(id, index, value);
            }
            None => {}
        }
        Ok(())
    }

    /// Creates the missing mappings and lists above the last segment, as far as no item of a list is missing.
    fn make_holders(&self, draft: &mut Draft<'_>, segments: &[&str]) -> Result<(), Refusal> {
        for depth in 1..segments.len() {
            let above = &segments[..depth];
            let is_there = match self.walk(draft, above) {
                Some(part) => !draft.is_null(&part),
                None => false,
            };
            if is_there {
                continue;
            }
            let Some(Holder::Mapping(id, key)) = self.open_holder(draft, above)? else {
                return Ok(());
            };
            match is_aligned(&key) {
                true => draft.open_list(id, &key, &[])?,
                false => draft.open_mapping(id, &key, &[])?,
            };
        }
        Ok(())
    }
}

/// The values of the variables that the policies of a record joined texts to, by record path.
pub(crate) fn joined_values(draft: &Draft<'_>, record: &Record) -> BTreeMap<String, String> {
    let paths = DraftPaths::of(record.paths());
    let policies = record.policies.iter();
    let joined = policies.flat_map(|policy| policy.effects.joined.keys());
    let values = joined.filter_map(|path| {
        let variable = paths.get(draft, path)?;
        let value = draft.string_at(&variable, "value")?;
        Some((path.clone(), value.into_owned()))
    });
    values.collect()
}

/// The field or item at an index, which the segment names. [`Draft::field`] gives a field that only a merge key brings
/// an index behind all.
fn part_at(
    draft: &Draft<'_>,
    part: &DraftValue,
    index: usize,
    segment: &str,
) -> Option<DraftValue> {
    match index {
        usize::MAX => draft.get(part, &unescape(segment)),
        _ => draft.part_at(part, index),
    }
}

/// Opens the field or item at an index, which the segment names. A field that a merge key brings is refused.
fn open_at(
    draft: &mut Draft<'_>,
    within: OpenId,
    index: usize,
    segment: &str,
) -> Result<OpenId, Refusal> {
    match index {
        usize::MAX => draft.open_mapping(within, &unescape(segment), &[]),
        _ => draft.open_at(within, index),
    }
}

/// The key of the list whose item the segment at `depth` names.
fn list_key<'s>(segments: &[&'s str], depth: usize) -> &'s str {
    depth.checked_sub(1).map_or("", |above| segments[above])
}

/// The identity of an item, without a number: other items may have the same.
fn identity(draft: &Draft<'_>, key: &str, item: &DraftValue) -> String {
    match name_field(key).and_then(|field| draft.string_at(item, field)) {
        Some(name) => identity_of_name(key, &name),
        None => identity_of_item(key, &draft.value(item).unwrap_or_default()),
    }
}

/// Whether an item has this identity, without a number.
fn has_identity(draft: &Draft<'_>, key: &str, item: &DraftValue, plain: &str) -> bool {
    match name_field(key).and_then(|field| draft.string_at(item, field)) {
        Some(name) => is_escaped(plain, as_stated(key, &name)),
        None => identity(draft, key, item) == plain,
    }
}

/// The item with this identity, with its index.
fn find_item(
    draft: &Draft<'_>,
    key: &str,
    list: &DraftValue,
    wanted: &str,
) -> Option<(usize, DraftValue)> {
    let (plain, number) = match wanted.split_once("~#") {
        Some((plain, text)) => {
            let number = text.parse().ok();
            let number =
                number.filter(|&number| number > 1 && numbered(plain, number) == wanted)?;
            (plain, number)
        }
        None => (wanted, 1),
    };
    let items = draft.items(list).into_iter().enumerate();
    let mut found = items.filter(|(_, item)| has_identity(draft, key, item, plain));
    found.nth(number - 1)
}

impl KnownItems {
    fn of(draft: &Draft<'_>, key: &str, list: &DraftValue) -> Self {
        let mut items = HashMap::default();
        for (at, item) in draft.items(list).into_iter().enumerate() {
            let identity = identity(draft, key, &item);
            items.entry(identity).or_insert((at, item));
        }
        KnownItems {
            list: list.clone(),
            items,
        }
    }
}
