//! Opens mappings and lists of a draft and changes their entries. Nodes that an alias refers to are not opened.

use foldhash::HashMap;
use serde_json::Value;
use std::iter;
use std::sync::Arc;

use crate::yaml::tree::{NodeId, NodeKind};
use crate::yaml::value::to_value;

use super::super::order;
use super::{
    Draft, DraftField, DraftKey, DraftValue, OpenId, OpenedCollection, Refusal, RefusalReason,
};

impl Draft<'_> {
    /// Opens the object itself.
    ///
    /// # Errors
    /// When it may not be edited.
    pub(crate) fn open_root(&mut self) -> Result<OpenId, Refusal> {
        let id = self.open(self.root.clone(), CollectionKind::Mapping)?;
        self.root = DraftValue::Open(id);
        Ok(id)
    }

    /// Opens the mapping at a path of keys, which normally exists: it leads to the pod template.
    ///
    /// # Errors
    /// When it may not be edited.
    pub(crate) fn open_path(&mut self, keys: &[String]) -> Result<OpenId, Refusal> {
        let root = self.open_root()?;
        let mut keys = keys.iter();
        keys.try_fold(root, |id, key| self.open_mapping(id, key, order::OBJECT))
    }

    /// Opens the mapping under a key. If there is none, an empty one is created at the place of the key in `order`.
    ///
    /// # Errors
    /// When it may not be edited.
    pub(crate) fn open_mapping(
        &mut self,
        within: OpenId,
        key: &str,
        order: &[&str],
    ) -> Result<OpenId, Refusal> {
        self.open_field(within, key, order, CollectionKind::Mapping)
    }

    /// Opens the list under a key. If there is none, an empty one is created at the place of the key in `order`.
    ///
    /// # Errors
    /// When it may not be edited.
    pub(crate) fn open_list(
        &mut self,
        within: OpenId,
        key: &str,
        order: &[&str],
    ) -> Result<OpenId, Refusal> {
        self.open_field(within, key, order, CollectionKind::List)
    }

    /// Opens an item of an opened list, which must be a mapping.
    ///
    /// # Errors
    /// When it may not be edited.
    pub(crate) fn open_item(&mut self, list: OpenId, index: usize) -> Result<OpenId, Refusal> {
        self.open_entry(list, index, CollectionKind::Mapping)
    }

    /// Opens an item of an opened list, which must be a list itself.
    ///
    /// # Errors
    /// When it may not be edited.
    pub(crate) fn open_item_list(&mut self, list: OpenId, index: usize) -> Result<OpenId, Refusal> {
        self.open_entry(list, index, CollectionKind::List)
    }

    /// Opens the mapping or list at an index of an opened mapping or list.
    ///
    /// # Errors
    /// When it may not be edited.
    pub(crate) fn open_at(&mut self, within: OpenId, index: usize) -> Result<OpenId, Refusal> {
        let shape = match self.is_list(self.entry(within, index)) {
            true => CollectionKind::List,
            false => CollectionKind::Mapping,
        };
        self.open_entry(within, index, shape)
    }

    fn entry(&self, within: OpenId, index: usize) -> &DraftValue {
        match self.opened(within) {
            OpenedCollection::Mapping { fields, .. } => &fields[index].value,
            OpenedCollection::List { items, .. } => &items[index],
        }
    }

    fn open_entry(
        &mut self,
        within: OpenId,
        index: usize,
        shape: CollectionKind,
    ) -> Result<OpenId, Refusal> {
        let id = self.open(self.entry(within, index).clone(), shape)?;
        let opened = DraftValue::Open(id);
        match &mut self.opened[within.0] {
            OpenedCollection::Mapping { fields, .. } => fields[index].value = opened,
            OpenedCollection::List { .. } => self.change_item(within, index, opened),
        }
        Ok(id)
    }

    fn open_field(
        &mut self,
        within: OpenId,
        key: &str,
        order: &[&str],
        shape: CollectionKind,
    ) -> Result<OpenId, Refusal> {
        if let Some(at) = self.field_at(within, key) {
            return self.open_entry(within, at, shape);
        }
        self.refuse_merged(within, key)?;
        let at = self.place_in_order(within, key, order);
        let id = self.add_opened(OpenedCollection::empty(shape, None));
        let field = DraftField {
            key: DraftKey::New(key.into()),
            value: DraftValue::Open(id),
        };
        self.fields(within).insert(at, field);
        Ok(id)
    }

    fn add_opened(&mut self, opened: OpenedCollection) -> OpenId {
        if self.opened.is_empty() {
            // A policy opens about so many.
            self.opened.reserve(16);
        }
        self.opened.push(opened);
        OpenId(self.opened.len() - 1)
    }

    /// The index of a key among those of an opened mapping.
    fn field_at(&self, within: OpenId, key: &str) -> Option<usize> {
        match self.opened(within) {
            OpenedCollection::Mapping { fields, .. } => self.position_of(fields, key),
            OpenedCollection::List { .. } => None,
        }
    }

    /// Refuses a key that is not there and that a merge key brings: its value is written elsewhere, and other places
    /// use it, too.
    pub(super) fn refuse_merged(&self, within: OpenId, key: &str) -> Result<(), Refusal> {
        let OpenedCollection::Mapping { fields, origin } = self.opened(within) else {
            return Ok(());
        };
        match (self.merged(*origin, fields, key), origin) {
            (Some(_), Some(origin)) => Err(Refusal {
                node: *origin,
                reason: RefusalReason::IsShown,
            }),
            _ => Ok(()),
        }
    }

    fn open(&mut self, part: DraftValue, shape: CollectionKind) -> Result<OpenId, Refusal> {
        let opened = match part {
            DraftValue::Open(id) => return self.check_shape(id, shape).map(|()| id),
            DraftValue::Node(node) => self.open_node(node, shape)?,
            DraftValue::New(value) => open_value(None, &value, shape),
            DraftValue::Instead { of, value } => {
                if self.tree.is_null(of) {
                    self.replaced_nulls.push(of);
                }
                open_value(Some(of), &value, shape)
            }
        };
        Ok(self.add_opened(opened))
    }

    /// Refuses to use an opened mapping as a list, or a list as a mapping.
    fn check_shape(&self, id: OpenId, shape: CollectionKind) -> Result<(), Refusal> {
        let opened = self.opened(id);
        let reason = match (opened, shape) {
            (OpenedCollection::Mapping { .. }, CollectionKind::List) => RefusalReason::NoList,
            (OpenedCollection::List { .. }, CollectionKind::Mapping) => RefusalReason::NoMapping,
            _ => return Ok(()),
        };
        let node = opened.origin().or_else(|| self.origin(&self.root));
        let node = node.expect("a draft begins with a node");
        Err(Refusal { node, reason })
    }

    fn open_node(&self, node: NodeId, shape: CollectionKind) -> Result<OpenedCollection, Refusal> {
        let tree = self.tree;
        let refuse = |reason| Err(Refusal { node, reason });
        if tree.kind(node) == NodeKind::Alias {
            return refuse(RefusalReason::IsShown);
        }
        if tree.is_aliased(node) {
            return refuse(RefusalReason::IsShared);
        }
        if tree.tag(node).is_some_and(|tag| tag != shape.tag()) {
            return refuse(RefusalReason::Tagged);
        }
        let origin = Some(node);
        let kind = tree.kind(node);
        match shape {
            CollectionKind::Mapping if kind.is_mapping() => match tree.duplicate_key(node) {
                Some(key) => Err(Refusal {
                    node: key,
                    reason: RefusalReason::DuplicateKey,
                }),
                None => {
                    let entries = tree.entries(node);
                    // Collections are opened to be extended, so reserve some room.
                    let mut fields = Vec::with_capacity(entries.clone().count() + 2);
                    fields.extend(entries.map(|(key, value)| DraftField {
                        key: DraftKey::Node(key),
                        value: DraftValue::Node(value),
                    }));
                    Ok(OpenedCollection::Mapping { origin, fields })
                }
            },
            CollectionKind::List if kind.is_sequence() => {
                let children = tree.children(node);
                let mut items = Vec::with_capacity(children.clone().count() + 2);
                items.extend(children.map(DraftValue::Node));
                Ok(OpenedCollection::List { origin, items })
            }
            _ if tree.is_null(node) => Ok(OpenedCollection::empty(shape, origin)),
            CollectionKind::Mapping => refuse(RefusalReason::NoMapping),
            CollectionKind::List => refuse(RefusalReason::NoList),
        }
    }

    pub(super) fn fields(&mut self, id: OpenId) -> &mut Vec<DraftField> {
        match &mut self.opened[id.0] {
            OpenedCollection::Mapping { fields, .. } => fields,
            OpenedCollection::List { .. } => unreachable!("a list was opened as a mapping"),
        }
    }

    pub(super) fn list_items(&mut self, id: OpenId) -> &mut Vec<DraftValue> {
        match &mut self.opened[id.0] {
            OpenedCollection::List { items, .. } => items,
            OpenedCollection::Mapping { .. } => unreachable!("a mapping was opened as a list"),
        }
    }

    /// The index of a new key: behind the nearest existing key that comes before it in `order`, else first. A key that
    /// is not in `order` goes last.
    fn place_in_order(&self, within: OpenId, key: &str, order: &[&str]) -> usize {
        let Some(rank) = order.iter().position(|known| *known == key) else {
            return self.opened(within).len();
        };
        let mut before = order[..rank].iter().rev();
        let before = before.find_map(|known| self.field_at(within, known));
        before.map_or(0, |at| at + 1)
    }

    /// Sets a field. An existing value is replaced; a new field goes to its place in `order`.
    ///
    /// # Errors
    /// When what is there may not be edited.
    pub fn set(
        &mut self,
        within: OpenId,
        key: &str,
        value: impl Into<Arc<Value>>,
        order: &[&str],
    ) -> Result<(), Refusal> {
        let value = value.into();
        match self.field_at(within, key) {
            Some(at) => {
                let part = self.replacement(&self.entry(within, at).clone(), value)?;
                self.fields(within)[at].value = part;
            }
            None => {
                self.refuse_merged(within, key)?;
                let at = self.place_in_order(within, key, order);
                self.insert_field_at(within, at, key, value);
            }
        }
        Ok(())
    }

    fn replacement(&mut self, old: &DraftValue, value: Arc<Value>) -> Result<DraftValue, Refusal> {
        let Some(of) = self.origin(old) else {
            return Ok(DraftValue::New(value));
        };
        // An alias itself may be replaced: only the alias is written here, and its target stays.
        self.refuse_shared(old)?;
        // A scalar that gets the input's value back becomes the input's node again, so that nothing is edited.
        let is_back = !value.is_object()
            && !value.is_array()
            && to_value(self.tree, of).is_ok_and(|original| original == *value);
        self.has_removals |= is_back || value.is_object() || value.is_array();
        Ok(match is_back {
            true => DraftValue::Node(of),
            false => DraftValue::Instead { of, value },
        })
    }

    /// Inserts a new field into an opened mapping, behind the key `after`, or first.
    pub(crate) fn insert_field(
        &mut self,
        within: OpenId,
        after: Option<&str>,
        key: &str,
        value: impl Into<Arc<Value>>,
    ) {
        let after = after.and_then(|after| self.field_at(within, after));
        self.insert_field_at(within, after.map_or(0, |at| at + 1), key, value);
    }

    /// Inserts a new field into an opened mapping, at an index.
    pub(crate) fn insert_field_at(
        &mut self,
        within: OpenId,
        index: usize,
        key: &str,
        value: impl Into<Arc<Value>>,
    ) {
        let field = DraftField {
            key: DraftKey::New(key.into()),
            value: DraftValue::New(value.into()),
        };
        self.fields(within).insert(index, field);
    }

    /// Inserts a new item into an opened list.
    pub fn insert(&mut self, list: OpenId, index: usize, value: impl Into<Arc<Value>>) {
        let items = self.list_items(list);
        let is_behind = index == items.len();
        items.insert(index, DraftValue::New(value.into()));
        if !is_behind {
            self.indexes.forget(list);
        }
    }

    /// Inserts new items into an opened list, each behind a node of the input.
    pub(crate) fn insert_behind(
        &mut self,
        list: OpenId,
        mut new: HashMap<NodeId, Vec<Arc<Value>>>,
    ) {
        let items = self.list_items(list);
        let behind = |item: DraftValue| {
            let new = match item {
                DraftValue::Node(node) => new.remove(&node).unwrap_or_default(),
                _ => Vec::new(),
            };
            iter::once(item).chain(new.into_iter().map(DraftValue::New))
        };
        *items = std::mem::take(items).into_iter().flat_map(behind).collect();
        self.indexes.forget(list);
    }

    fn change_item(&mut self, list: OpenId, index: usize, part: DraftValue) {
        let item = &mut self.list_items(list)[index];
        if *item != part {
            *item = part;
            self.indexes.note_change(list, index);
        }
    }

    /// Replaces an item of an opened list.
    ///
    /// # Errors
    /// When what is there may not be edited.
    pub fn replace(
        &mut self,
        list: OpenId,
        index: usize,
        value: impl Into<Arc<Value>>,
    ) -> Result<(), Refusal> {
        let old = self.list_items(list)[index].clone();
        let part = self.replacement(&old, value.into())?;
        self.change_item(list, index, part);
        Ok(())
    }
}

fn open_value(origin: Option<NodeId>, value: &Value, shape: CollectionKind) -> OpenedCollection {
    let planned = |value: &Value| DraftValue::New(Arc::new(value.clone()));
    match (shape, value) {
        (CollectionKind::Mapping, Value::Object(map)) => {
            let fields = map.iter().map(|(key, value)| DraftField {
                key: DraftKey::New(key.as_str().into()),
                value: planned(value),
            });
            let fields = fields.collect();
            OpenedCollection::Mapping { origin, fields }
        }
        (CollectionKind::List, Value::Array(items)) => {
            let items = items.iter().map(planned).collect();
            OpenedCollection::List { origin, items }
        }
        _ => OpenedCollection::empty(shape, origin),
    }
}

impl OpenedCollection {
    fn empty(shape: CollectionKind, origin: Option<NodeId>) -> Self {
        match shape {
            CollectionKind::Mapping => OpenedCollection::Mapping {
                origin,
                fields: Vec::new(),
            },
            CollectionKind::List => OpenedCollection::List {
                origin,
                items: Vec::new(),
            },
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum CollectionKind {
    Mapping,
    List,
}

impl CollectionKind {
    fn tag(self) -> &'static str {
        match self {
            CollectionKind::Mapping => "tag:yaml.org,2002:map",
            CollectionKind::List => "tag:yaml.org,2002:seq",
        }
    }
}
