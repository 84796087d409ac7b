//! Opening mappings and lists of a draft, and changing what they hold. What an alias shows elsewhere is not opened.

use serde_json::Value;
use std::sync::Arc;

use crate::yaml::tree::{Kind, NodeId};
use crate::yaml::value::to_value;

use super::{Draft, Field, Key, OpenId, Opened, Part, Refusal, WhyNot};

impl Draft<'_> {
    /// Opens the object itself.
    ///
    /// # Errors
    /// When it may not be edited.
    pub fn open_root(&mut self) -> Result<OpenId, Refusal> {
        let root = self.root.clone();
        let (id, part) = self.open(root, Shape::Mapping)?;
        self.root = part;
        Ok(id)
    }

    /// Opens the mapping under a key, made where there is none, in the place that `order` gives its key.
    ///
    /// # Errors
    /// When it may not be edited.
    pub fn open_mapping(
        &mut self,
        within: OpenId,
        key: &str,
        order: &[&str],
    ) -> Result<OpenId, Refusal> {
        self.open_field(within, key, order, Shape::Mapping)
    }

    /// Opens the list under a key, made where there is none, in the place that `order` gives its key.
    ///
    /// # Errors
    /// When it may not be edited.
    pub fn open_list(
        &mut self,
        within: OpenId,
        key: &str,
        order: &[&str],
    ) -> Result<OpenId, Refusal> {
        self.open_field(within, key, order, Shape::List)
    }

    /// Opens an item of an opened list, which must be a mapping.
    ///
    /// # Errors
    /// When it may not be edited.
    pub fn open_item(&mut self, list: OpenId, index: usize) -> Result<OpenId, Refusal> {
        self.open_item_as(list, index, Shape::Mapping)
    }

    /// Opens an item of an opened list, which must be a list itself.
    ///
    /// # Errors
    /// When it may not be edited.
    pub fn open_item_list(&mut self, list: OpenId, index: usize) -> Result<OpenId, Refusal> {
        self.open_item_as(list, index, Shape::List)
    }

    fn open_item_as(
        &mut self,
        list: OpenId,
        index: usize,
        shape: Shape,
    ) -> Result<OpenId, Refusal> {
        let part = self.list_items(list)[index].clone();
        let (id, part) = self.open(part, shape)?;
        self.list_items(list)[index] = part;
        Ok(id)
    }

    fn open_field(
        &mut self,
        within: OpenId,
        key: &str,
        order: &[&str],
        shape: Shape,
    ) -> Result<OpenId, Refusal> {
        let Opened::Mapping { fields, .. } = self.opened(within) else {
            unreachable!("only mappings are opened by key")
        };
        if let Some(at) = self.position_of(fields, key) {
            if let Part::Open(id) = fields[at].value {
                return self.check_shape(id, shape).map(|()| id);
            }
            let part = fields[at].value.clone();
            let (id, part) = self.open(part, shape)?;
            self.fields(within)[at].value = part;
            return Ok(id);
        }
        self.refuse_merged(within, key)?;
        let at = self.place_in_order(within, key, order);
        let (id, part) = self.open_new(shape);
        self.fields(within).insert(
            at,
            Field {
                key: Key::New(key.into()),
                value: part,
            },
        );
        Ok(id)
    }

    fn open_new(&mut self, shape: Shape) -> (OpenId, Part) {
        let id = OpenId(self.opened.len());
        self.opened.push(match shape {
            Shape::Mapping => Opened::Mapping {
                origin: None,
                fields: Vec::new(),
            },
            Shape::List => Opened::List {
                origin: None,
                items: Vec::new(),
            },
        });
        (id, Part::Open(id))
    }

    /// A key that only a merge key brings stands elsewhere: changing it there changes other places, too.
    fn refuse_merged(&self, within: OpenId, key: &str) -> Result<(), Refusal> {
        let Opened::Mapping { fields, origin } = self.opened(within) else {
            return Ok(());
        };
        if self.position_of(fields, key).is_some() {
            return Ok(());
        }
        match (self.merged(*origin, fields, key), origin) {
            (Some(_), Some(origin)) => Err(Refusal {
                node: *origin,
                why: WhyNot::IsShown,
            }),
            _ => Ok(()),
        }
    }

    fn open(&mut self, part: Part, shape: Shape) -> Result<(OpenId, Part), Refusal> {
        let opened = match part {
            Part::Open(id) => {
                self.check_shape(id, shape)?;
                return Ok((id, part));
            }
            Part::Node(node) => self.open_node(node, shape)?,
            Part::New(value) => open_value(None, &value, shape),
            Part::Instead { of, value } => {
                if self.tree.is_null(of) {
                    self.replaced_nulls.push(of);
                }
                open_value(Some(of), &value, shape)
            }
        };
        let id = OpenId(self.opened.len());
        self.opened.push(opened);
        Ok((id, Part::Open(id)))
    }

    /// What was opened as one is not the other.
    fn check_shape(&self, id: OpenId, shape: Shape) -> Result<(), Refusal> {
        let (why, origin) = match (self.opened(id), shape) {
            (Opened::Mapping { .. }, Shape::Mapping) | (Opened::List { .. }, Shape::List) => {
                return Ok(());
            }
            (Opened::Mapping { origin, .. }, Shape::List) => (WhyNot::NoList, origin),
            (Opened::List { origin, .. }, Shape::Mapping) => (WhyNot::NoMapping, origin),
        };
        let node = origin
            .or_else(|| self.origin(&self.root))
            .expect("a draft begins with a node");
        Err(Refusal { node, why })
    }

    fn open_node(&self, node: NodeId, shape: Shape) -> Result<Opened, Refusal> {
        let tree = self.tree;
        let refuse = |why| Err(Refusal { node, why });
        if tree.kind(node) == Kind::Alias {
            return refuse(WhyNot::IsShown);
        }
        if tree.is_aliased(node) {
            return refuse(WhyNot::IsShared);
        }
        if tree.tag(node).is_some_and(|tag| tag != shape.tag()) {
            return refuse(WhyNot::Tagged);
        }
        let origin = Some(node);
        let kind = tree.kind(node);
        match shape {
            Shape::Mapping if kind.is_mapping() => match tree.duplicate_key(node) {
                Some(key) => Err(Refusal {
                    node: key,
                    why: WhyNot::DuplicateKey,
                }),
                None => {
                    let own = self.fields_in(node);
                    // What is opened gets something more.
                    let mut fields = Vec::with_capacity(own.clone().count() + 2);
                    fields.extend(own);
                    Ok(Opened::Mapping { origin, fields })
                }
            },
            Shape::List if kind.is_sequence() => {
                let children = tree.children(node);
                let mut items = Vec::with_capacity(children.clone().count() + 2);
                items.extend(children.map(Part::Node));
                Ok(Opened::List { origin, items })
            }
            Shape::Mapping if tree.is_null(node) => Ok(Opened::Mapping {
                origin,
                fields: Vec::new(),
            }),
            Shape::List if tree.is_null(node) => Ok(Opened::List {
                origin,
                items: Vec::new(),
            }),
            Shape::Mapping => refuse(WhyNot::NoMapping),
            Shape::List => refuse(WhyNot::NoList),
        }
    }

    pub(super) fn fields(&mut self, id: OpenId) -> &mut Vec<Field> {
        match &mut self.opened[id.0] {
            Opened::Mapping { fields, .. } => fields,
            Opened::List { .. } => unreachable!("a list was opened as a mapping"),
        }
    }

    pub(super) fn list_items(&mut self, id: OpenId) -> &mut Vec<Part> {
        match &mut self.opened[id.0] {
            Opened::List { items, .. } => items,
            Opened::Mapping { .. } => unreachable!("a mapping was opened as a list"),
        }
    }

    /// Where a new key goes: behind the nearest key that comes before it in `order` and is there, else first; a key that
    /// is not in `order` goes last.
    fn place_in_order(&self, within: OpenId, key: &str, order: &[&str]) -> usize {
        let Opened::Mapping { fields, .. } = self.opened(within) else {
            return 0;
        };
        let Some(own) = order.iter().position(|known| *known == key) else {
            return fields.len();
        };
        let before = order[..own]
            .iter()
            .rev()
            .find_map(|known| self.position_of(fields, known));
        before.map_or(0, |at| at + 1)
    }

    /// Sets a field: a new one goes where `order` says, one that is there is replaced.
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
        self.refuse_merged(within, key)?;
        let Opened::Mapping { fields, .. } = self.opened(within) else {
            unreachable!("only mappings are set by key")
        };
        let value = value.into();
        match self.position_of(fields, key) {
            Some(at) => {
                let part = self.replacement(&fields[at].value.clone(), value)?;
                self.fields(within)[at].value = part;
            }
            None => {
                let at = self.place_in_order(within, key, order);
                self.fields(within).insert(
                    at,
                    Field {
                        key: Key::New(key.into()),
                        value: Part::New(value),
                    },
                );
            }
        }
        Ok(())
    }

    fn replacement(&mut self, old: &Part, value: Arc<Value>) -> Result<Part, Refusal> {
        let Some(of) = self.origin(old) else {
            return Ok(Part::New(value));
        };
        // The value under a key may be an alias: the alias is what is written here, so it may go.
        self.refuse_shared(old)?;
        let is_back = !value.is_object()
            && !value.is_array()
            && to_value(self.tree, of).is_ok_and(|own| own == *value);
        self.has_removals |= is_back || value.is_object() || value.is_array();
        Ok(match is_back {
            true => Part::Node(of),
            false => Part::Instead { of, value },
        })
    }

    /// Puts a new field into an opened mapping, behind the field of another key, or first.
    pub fn insert_field(
        &mut self,
        within: OpenId,
        behind: Option<&str>,
        key: &str,
        value: impl Into<Arc<Value>>,
    ) {
        let Opened::Mapping { fields, .. } = self.opened(within) else {
            return;
        };
        let at = behind
            .and_then(|behind| self.position_of(fields, behind))
            .map_or(0, |at| at + 1);
        self.fields(within).insert(
            at,
            Field {
                key: Key::New(key.into()),
                value: Part::New(value.into()),
            },
        );
    }

    /// Puts a new item into an opened list.
    pub fn insert(&mut self, list: OpenId, index: usize, value: impl Into<Arc<Value>>) {
        self.list_items(list).insert(index, Part::New(value.into()));
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
        self.list_items(list)[index] = part;
        Ok(())
    }

    /// Takes an item out of an opened list.
    ///
    /// # Errors
    /// When an alias elsewhere shows it.
    pub fn remove(&mut self, list: OpenId, index: usize) -> Result<(), Refusal> {
        let item = self.list_items(list)[index].clone();
        self.refuse_shared(&item)?;
        self.has_removals = true;
        self.list_items(list).remove(index);
        Ok(())
    }

    /// Takes a field out of an opened mapping, if it is there.
    ///
    /// # Errors
    /// When an alias elsewhere shows it, or a merge key may bring another of its name.
    pub fn remove_field(&mut self, within: OpenId, key: &str) -> Result<(), Refusal> {
        self.refuse_merged(within, key)?;
        let Opened::Mapping { fields, origin } = self.opened(within) else {
            return Ok(());
        };
        let Some(at) = self.position_of(fields, key) else {
            return Ok(());
        };
        self.refuse_shared(&fields[at].value)?;
        // What a merge key brings under the same name would come to light.
        if let Some(node) = origin.filter(|&node| self.tree.is_brought_by_merge(node, key)) {
            return Err(Refusal {
                node,
                why: WhyNot::IsShown,
            });
        }
        self.has_removals = true;
        self.fields(within).remove(at);
        Ok(())
    }

    /// What goes must not be shown elsewhere.
    fn refuse_shared(&self, part: &Part) -> Result<(), Refusal> {
        let Some(node) = self.origin(part) else {
            return Ok(());
        };
        let mut within = self.tree.within(node);
        let is_shared = within.any(|id| self.tree.is_aliased(id));
        if is_shared {
            Err(Refusal {
                node,
                why: WhyNot::IsShared,
            })
        } else {
            Ok(())
        }
    }
}

fn open_value(origin: Option<NodeId>, value: &Value, shape: Shape) -> Opened {
    match (shape, value) {
        (Shape::Mapping, Value::Object(map)) => {
            let fields = map.iter().map(|(key, value)| Field {
                key: Key::New(key.as_str().into()),
                value: Part::New(Arc::new(value.clone())),
            });
            Opened::Mapping {
                origin,
                fields: fields.collect(),
            }
        }
        (Shape::List, Value::Array(items)) => Opened::List {
            origin,
            items: items
                .iter()
                .map(|item| Part::New(Arc::new(item.clone())))
                .collect(),
        },
        (Shape::Mapping, _) => Opened::Mapping {
            origin,
            fields: Vec::new(),
        },
        (Shape::List, _) => Opened::List {
            origin,
            items: Vec::new(),
        },
    }
}

#[derive(Debug, Clone, Copy)]
enum Shape {
    Mapping,
    List,
}

impl Shape {
    fn tag(self) -> &'static str {
        match self {
            Shape::Mapping => "tag:yaml.org,2002:map",
            Shape::List => "tag:yaml.org,2002:seq",
        }
    }
}
