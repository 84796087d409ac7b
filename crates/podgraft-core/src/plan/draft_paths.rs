//! Resolves the paths of a record in a draft, and edits the draft there.

use foldhash::HashMap;
use serde_json::Value;
use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::change::unescape;
use crate::record::{
    Record, RecordPaths, as_stated, escape, identity_of_item, identity_of_name, is_aligned,
    is_escaped, name_field, numbered, split_number,
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

    /// The node at a path. `None` if there is none.
    pub(crate) fn node(&self, path: &str) -> Option<NodeId> {
        self.draft.origin(&self.paths.get(&self.draft, path)?)
    }

    /// The nodes on the way from the object to what a path names, as far as they are there.
    pub(super) fn nodes_to(&self, path: &str) -> Vec<NodeId> {
        let segments = self.paths.paths.segments(path);
        let mut part = self.draft.root();
        let parts = (0..segments.len()).map_while(|depth| {
            (_, part) = self.paths.child(&self.draft, &part, &segments, depth)?;
            Some(self.draft.origin(&part))
        });
        parts.flatten().collect()
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

    /// Opens the mapping or list that holds the last segment of a path. `None` if it is not there.
    fn open_holder(
        &self,
        draft: &mut Draft<'_>,
        segments: &[&str],
    ) -> Result<Option<OpenId>, Refusal> {
        let mut id = draft.open_root()?;
        for depth in 0..segments.len().saturating_sub(1) {
            // Opening a missing mapping would make it.
            let found = self.child(draft, &DraftValue::Open(id), segments, depth);
            let is_collection = |part: &DraftValue| draft.is_list(part) || draft.is_mapping(part);
            let Some((index, _)) = found.filter(|(_, part)| is_collection(part)) else {
                return Ok(None);
            };
            id = open_at(draft, id, index, segments[depth])?;
        }
        Ok(Some(id))
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
        let segments = self.paths.segments(path);
        let (Some(&index), Some(key)) = (place.last(), segments.last()) else {
            return Ok(());
        };
        let holder = open_holder_at(draft, &segments, place)?;
        match draft.is_list(&DraftValue::Open(holder)) {
            true => draft.remove(holder, index),
            false => draft.remove_field(holder, &unescape(key)),
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
        let place = self.place(draft, path).unwrap_or_default();
        let segments = self.paths.segments(path);
        let (Some(&index), Some(key)) = (place.last(), segments.last()) else {
            return Ok(());
        };
        let holder = open_holder_at(draft, &segments, &place)?;
        match draft.is_list(&DraftValue::Open(holder)) {
            true => reconcile::item(draft, holder, index, existing, wanted),
            false => reconcile::field(draft, holder, &unescape(key), existing, wanted),
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
            Some(id) if draft.is_list(&DraftValue::Open(id)) => edit(draft, id),
            Some(_) | None => Ok(()),
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
        let Some(id) = self.open_holder(draft, &segments)? else {
            return Ok(());
        };
        let holder = DraftValue::Open(id);
        let (is_list, depth) = (draft.is_list(&holder), segments.len() - 1);
        let find = |after: &str| match is_list {
            true => find_item(draft, list_key(&segments, depth), &holder, after),
            false => draft.field(&holder, &unescape(after)),
        };
        let count = draft.opened(id).len();
        let index = match after {
            None => count,
            Some("") => 0,
            Some(after) => find(after).map_or(count, |(at, _)| at.saturating_add(1).min(count)),
        };
        match is_list {
            true => draft.insert(id, index, value),
            false => draft.insert_field_at(id, index, &unescape(segments[depth]), value),
        }
        Ok(())
    }

    /// Creates the missing mappings and lists above the last segment, as far as no item of a list is missing.
    fn make_holders(&self, draft: &mut Draft<'_>, segments: &[&str]) -> Result<(), Refusal> {
        for depth in 1..segments.len() {
            let above = &segments[..depth];
            let part = self.walk(draft, above);
            if part.is_some_and(|part| !draft.is_null(&part)) {
                continue;
            }
            let holder = self.open_holder(draft, above)?;
            let Some(id) = holder.filter(|id| !draft.is_list(&DraftValue::Open(*id))) else {
                return Ok(());
            };
            let key = unescape(above[depth - 1]);
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

/// Opens the mapping or list that holds what is at a place, to which the segments lead.
fn open_holder_at(
    draft: &mut Draft<'_>,
    segments: &[&str],
    place: &[usize],
) -> Result<OpenId, Refusal> {
    let root = draft.open_root()?;
    let above = &place[..place.len().saturating_sub(1)];
    let mut steps = above.iter().zip(segments);
    steps.try_fold(root, |id, (&index, segment)| {
        open_at(draft, id, index, segment)
    })
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
    let (plain, number) = split_number(wanted)?;
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
