//! The document as it will be: the nodes of the one parse, with planned values among them.
//!
//! A draft begins as its root node. Opening a mapping or a list copies only its entries, not what they hold, so the
//! draft grows with the plan and not with the document. Every later stage works from it: the next policy plans on it,
//! the edit stage writes it, verification compares the output with it.

use serde_json::Value;
use std::rc::Rc;

use crate::yaml::tree::{Kind, NodeId, Tree};
use crate::yaml::value::to_value;

/// A part of the draft.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// As it is in the input.
    Node(NodeId),
    /// An opened mapping or list.
    Open(OpenId),
    /// A new value.
    New(Rc<Value>),
    /// A new value in the place of an input's node: a scalar keeps its style where it can.
    Instead {
        /// What stood there.
        of: NodeId,
        /// What stands there now.
        value: Rc<Value>,
    },
}

/// An opened mapping or list of a draft.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct OpenId(usize);

/// What an opened mapping or list holds now.
#[derive(Debug, Clone)]
pub enum Opened {
    /// A mapping.
    Mapping {
        /// The input's node: a mapping, or null. `None` for a new one.
        origin: Option<NodeId>,
        /// Its fields in order.
        fields: Vec<Field>,
    },
    /// A list.
    List {
        /// The input's node: a sequence, or null. `None` for a new one.
        origin: Option<NodeId>,
        /// Its items in order.
        items: Vec<Part>,
    },
}

/// A field of an opened mapping.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Its key.
    pub key: Key,
    /// Its value.
    pub value: Part,
}

/// A key of an opened mapping.
#[derive(Debug, Clone, PartialEq)]
pub enum Key {
    /// As written in the input.
    Node(NodeId),
    /// A new one.
    New(Rc<str>),
}

/// Why a place cannot be edited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Where.
    pub node: NodeId,
    /// Why.
    pub why: WhyNot,
}

/// The kinds of [`Refusal`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhyNot {
    /// It stands elsewhere and is shown here by an alias or a merge key.
    IsShown,
    /// An alias shows it elsewhere, too.
    IsShared,
    /// It is no mapping.
    NoMapping,
    /// It is no list.
    NoList,
    /// A key of it stands there twice.
    DuplicateKey,
    /// Its tag says that it is something else.
    Tagged,
}

/// See the module's text.
#[derive(Debug, Clone)]
pub struct Draft<'t> {
    /// The input.
    pub tree: &'t Tree<'t>,
    opened: Vec<Opened>,
    root: Part,
}

impl<'t> Draft<'t> {
    /// The input's object, nothing changed.
    pub fn new(tree: &'t Tree<'t>, root: NodeId) -> Self {
        Draft { tree, opened: Vec::new(), root: Part::Node(root) }
    }

    /// The object.
    pub fn root(&self) -> Part {
        self.root.clone()
    }

    /// Whether anything was opened, which is done only to change it.
    pub fn is_changed(&self) -> bool {
        !self.opened.is_empty()
    }

    /// What an opened part holds.
    pub fn opened(&self, id: OpenId) -> &Opened {
        &self.opened[id.0]
    }

    /// The value under a key; aliases and merge keys are followed in what is the input's.
    pub fn get(&self, part: &Part, key: &str) -> Option<Part> {
        match part {
            Part::Node(node) => self.tree.get(*node, key).map(Part::Node),
            Part::New(value) | Part::Instead { value, .. } => {
                value.get(key).map(|value| Part::New(Rc::new(value.clone())))
            }
            Part::Open(id) => match self.opened(*id) {
                Opened::Mapping { origin, fields } => match self.position_of(fields, key) {
                    Some(at) => Some(self.followed(&fields[at].value)),
                    None => self.merged(*origin, fields, key),
                },
                Opened::List { .. } => None,
            },
        }
    }

    fn merged(&self, origin: Option<NodeId>, fields: &[Field], key: &str) -> Option<Part> {
        let has_merge = fields.iter().any(|field| matches!(field.key, Key::Node(node) if self.tree.is_merge_key(node)));
        let entry = self.tree.entry(origin.filter(|_| has_merge)?, key)?;
        entry.is_merged.then(|| Part::Node(self.tree.follow(entry.value)))
    }

    fn followed(&self, part: &Part) -> Part {
        match part {
            Part::Node(node) => Part::Node(self.tree.follow(*node)),
            other => other.clone(),
        }
    }

    fn position_of(&self, fields: &[Field], key: &str) -> Option<usize> {
        fields.iter().position(|field| self.key_text(&field.key) == Some(key))
    }

    /// The text of a key.
    pub fn key_text<'k>(&'k self, key: &'k Key) -> Option<&'k str> {
        match key {
            Key::Node(node) => self.tree.scalar(*node),
            Key::New(text) => Some(text),
        }
    }

    /// The items of a list; empty for anything else.
    pub fn items(&self, part: &Part) -> Vec<Part> {
        match part {
            Part::Node(node) => self.tree.items(*node).map(Part::Node).collect(),
            Part::Open(id) => match self.opened(*id) {
                Opened::List { items, .. } => items.iter().map(|item| self.followed(item)).collect(),
                Opened::Mapping { .. } => Vec::new(),
            },
            Part::New(value) | Part::Instead { value, .. } => {
                let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
                items.iter().map(|item| Part::New(Rc::new(item.clone()))).collect()
            }
        }
    }

    /// The items of an opened list as they stand there: aliases are not followed.
    pub fn raw_items(&self, list: OpenId) -> Vec<Part> {
        match self.opened(list) {
            Opened::List { items, .. } => items.clone(),
            Opened::Mapping { .. } => Vec::new(),
        }
    }

    /// The text of a scalar; `None` for collections and null.
    pub fn text(&self, part: &Part) -> Option<String> {
        match part {
            Part::Node(node) if self.tree.is_null(*node) => None,
            Part::Node(node) => self.tree.scalar(*node).map(str::to_owned),
            Part::New(value) | Part::Instead { value, .. } => match &**value {
                Value::String(text) => Some(text.clone()),
                Value::Number(number) => Some(number.to_string()),
                Value::Bool(bool) => Some(bool.to_string()),
                Value::Null | Value::Array(_) | Value::Object(_) => None,
            },
            Part::Open(_) => None,
        }
    }

    /// The text under a key.
    pub fn text_at(&self, part: &Part, key: &str) -> Option<String> {
        self.text(&self.get(part, key)?)
    }

    /// Whether nothing is there: null, or an empty collection.
    pub fn is_empty(&self, part: &Part) -> bool {
        match part {
            Part::Node(node) => {
                self.tree.is_null(*node)
                    || (self.tree.kind(*node).is_collection() && self.tree.children(*node).next().is_none())
            }
            Part::New(value) | Part::Instead { value, .. } => match &**value {
                Value::Null => true,
                Value::Array(items) => items.is_empty(),
                Value::Object(fields) => fields.is_empty(),
                Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
            },
            Part::Open(id) => match self.opened(*id) {
                Opened::Mapping { fields, .. } => fields.is_empty(),
                Opened::List { items, .. } => items.is_empty(),
            },
        }
    }

    /// The value of a part; `None` where a reader of Kubernetes would find none.
    pub fn value(&self, part: &Part) -> Option<Value> {
        match part {
            Part::Node(node) => to_value(self.tree, *node).ok(),
            Part::New(value) | Part::Instead { value, .. } => Some((**value).clone()),
            Part::Open(id) => match self.opened(*id) {
                Opened::List { items, .. } => {
                    items.iter().map(|item| self.value(item)).collect::<Option<_>>().map(Value::Array)
                }
                Opened::Mapping { fields, .. } => {
                    let pairs = fields
                        .iter()
                        .map(|field| Some((self.key_text(&field.key)?.to_owned(), self.value(&field.value)?)));
                    pairs.collect::<Option<_>>().map(Value::Object)
                }
            },
        }
    }

    /// The input's node that stands, or stood, where the part stands.
    pub fn origin(&self, part: &Part) -> Option<NodeId> {
        match part {
            Part::Node(node) | Part::Instead { of: node, .. } => Some(*node),
            Part::New(_) => None,
            Part::Open(id) => match self.opened(*id) {
                Opened::Mapping { origin, .. } | Opened::List { origin, .. } => *origin,
            },
        }
    }
}

/// Opening and changing.
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
    pub fn open_mapping(&mut self, within: OpenId, key: &str, order: &[&str]) -> Result<OpenId, Refusal> {
        self.open_field(within, key, order, Shape::Mapping)
    }

    /// Opens the list under a key, made where there is none, in the place that `order` gives its key.
    ///
    /// # Errors
    /// When it may not be edited.
    pub fn open_list(&mut self, within: OpenId, key: &str, order: &[&str]) -> Result<OpenId, Refusal> {
        self.open_field(within, key, order, Shape::List)
    }

    /// Opens an item of an opened list, which must be a mapping.
    ///
    /// # Errors
    /// When it may not be edited.
    pub fn open_item(&mut self, list: OpenId, index: usize) -> Result<OpenId, Refusal> {
        let part = self.list_items(list)[index].clone();
        let (id, part) = self.open(part, Shape::Mapping)?;
        self.list_items(list)[index] = part;
        Ok(id)
    }

    fn open_field(&mut self, within: OpenId, key: &str, order: &[&str], shape: Shape) -> Result<OpenId, Refusal> {
        self.refuse_merged(within, key)?;
        let Opened::Mapping { fields, .. } = self.opened(within) else {
            unreachable!("only mappings are opened by key")
        };
        let part = match self.position_of(fields, key) {
            Some(at) => fields[at].value.clone(),
            None => {
                let at = self.place_in_order(within, key, order);
                let value = Part::New(Rc::new(shape.empty()));
                let field = Field { key: Key::New(key.into()), value: value.clone() };
                self.fields(within).insert(at, field);
                value
            }
        };
        let (id, part) = self.open(part, shape)?;
        let Opened::Mapping { fields, .. } = self.opened(within) else { unreachable!("opened as a mapping above") };
        let at = self.position_of(fields, key).expect("the field was found or made above");
        self.fields(within)[at].value = part;
        Ok(id)
    }

    /// A key that only a merge key brings stands elsewhere: changing it there changes other places, too.
    fn refuse_merged(&self, within: OpenId, key: &str) -> Result<(), Refusal> {
        let Opened::Mapping { fields, origin } = self.opened(within) else { return Ok(()) };
        if self.position_of(fields, key).is_some() {
            return Ok(());
        }
        match (self.merged(*origin, fields, key), origin) {
            (Some(_), Some(origin)) => Err(Refusal { node: *origin, why: WhyNot::IsShown }),
            _ => Ok(()),
        }
    }

    fn open(&mut self, part: Part, shape: Shape) -> Result<(OpenId, Part), Refusal> {
        let opened = match part {
            Part::Open(id) => return Ok((id, part)),
            Part::Node(node) => self.open_node(node, shape)?,
            Part::New(value) => open_value(None, &value, shape),
            Part::Instead { of, value } => open_value(Some(of), &value, shape),
        };
        let id = OpenId(self.opened.len());
        self.opened.push(opened);
        Ok((id, Part::Open(id)))
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
                Some(key) => Err(Refusal { node: key, why: WhyNot::DuplicateKey }),
                None => {
                    let fields =
                        tree.entries(node).map(|(key, value)| Field { key: Key::Node(key), value: Part::Node(value) });
                    Ok(Opened::Mapping { origin, fields: fields.collect() })
                }
            },
            Shape::List if kind.is_sequence() => {
                Ok(Opened::List { origin, items: tree.children(node).map(Part::Node).collect() })
            }
            Shape::Mapping if tree.is_null(node) => Ok(Opened::Mapping { origin, fields: Vec::new() }),
            Shape::List if tree.is_null(node) => Ok(Opened::List { origin, items: Vec::new() }),
            Shape::Mapping => refuse(WhyNot::NoMapping),
            Shape::List => refuse(WhyNot::NoList),
        }
    }

    fn fields(&mut self, id: OpenId) -> &mut Vec<Field> {
        match &mut self.opened[id.0] {
            Opened::Mapping { fields, .. } => fields,
            Opened::List { .. } => unreachable!("a list was opened as a mapping"),
        }
    }

    fn list_items(&mut self, id: OpenId) -> &mut Vec<Part> {
        match &mut self.opened[id.0] {
            Opened::List { items, .. } => items,
            Opened::Mapping { .. } => unreachable!("a mapping was opened as a list"),
        }
    }

    /// Where a new key goes: behind the nearest key that comes before it in `order` and is there, else first; a key that
    /// is not in `order` goes last.
    fn place_in_order(&self, within: OpenId, key: &str, order: &[&str]) -> usize {
        let Opened::Mapping { fields, .. } = self.opened(within) else { return 0 };
        let Some(own) = order.iter().position(|known| *known == key) else { return fields.len() };
        let before = order[..own].iter().rev().find_map(|known| self.position_of(fields, known));
        before.map_or(0, |at| at + 1)
    }

    /// Sets a field: a new one goes where `order` says, one that is there is replaced.
    ///
    /// # Errors
    /// When what is there may not be edited.
    pub fn set(&mut self, within: OpenId, key: &str, value: Value, order: &[&str]) -> Result<(), Refusal> {
        self.refuse_merged(within, key)?;
        let Opened::Mapping { fields, .. } = self.opened(within) else { unreachable!("only mappings are set by key") };
        let value = Rc::new(value);
        match self.position_of(fields, key) {
            Some(at) => {
                let part = self.replacement(&fields[at].value.clone(), value)?;
                self.fields(within)[at].value = part;
            }
            None => {
                let at = self.place_in_order(within, key, order);
                self.fields(within).insert(at, Field { key: Key::New(key.into()), value: Part::New(value) });
            }
        }
        Ok(())
    }

    fn replacement(&self, old: &Part, value: Rc<Value>) -> Result<Part, Refusal> {
        let Some(of) = self.origin(old) else { return Ok(Part::New(value)) };
        // The value under a key may be an alias: the alias is what is written here, so it may go.
        if self.tree.is_aliased(of) {
            return Err(Refusal { node: of, why: WhyNot::IsShared });
        }
        Ok(Part::Instead { of, value })
    }

    /// Puts a new item into an opened list.
    pub fn insert(&mut self, list: OpenId, index: usize, value: Value) {
        self.list_items(list).insert(index, Part::New(Rc::new(value)));
    }

    /// Replaces an item of an opened list.
    ///
    /// # Errors
    /// When what is there may not be edited.
    pub fn replace(&mut self, list: OpenId, index: usize, value: Value) -> Result<(), Refusal> {
        let old = self.list_items(list)[index].clone();
        let part = self.replacement(&old, Rc::new(value))?;
        self.list_items(list)[index] = part;
        Ok(())
    }

    /// Takes an item out of an opened list.
    ///
    /// # Errors
    /// When an alias elsewhere shows it.
    pub fn remove(&mut self, list: OpenId, index: usize) -> Result<(), Refusal> {
        let item = self.list_items(list)[index].clone();
        if let Some(node) = self.origin(&item) {
            let within = node.0..self.tree.after(node).0;
            if within.into_iter().any(|id| self.tree.is_aliased(NodeId(id))) {
                return Err(Refusal { node, why: WhyNot::IsShared });
            }
        }
        self.list_items(list).remove(index);
        Ok(())
    }
}

fn open_value(origin: Option<NodeId>, value: &Value, shape: Shape) -> Opened {
    match (shape, value) {
        (Shape::Mapping, Value::Object(map)) => {
            let fields = map.iter().map(|(key, value)| Field {
                key: Key::New(key.as_str().into()),
                value: Part::New(Rc::new(value.clone())),
            });
            Opened::Mapping { origin, fields: fields.collect() }
        }
        (Shape::List, Value::Array(items)) => {
            Opened::List { origin, items: items.iter().map(|item| Part::New(Rc::new(item.clone()))).collect() }
        }
        (Shape::Mapping, _) => Opened::Mapping { origin, fields: Vec::new() },
        (Shape::List, _) => Opened::List { origin, items: Vec::new() },
    }
}

#[derive(Debug, Clone, Copy)]
enum Shape {
    Mapping,
    List,
}

impl Shape {
    fn empty(self) -> Value {
        match self {
            Shape::Mapping => Value::Object(serde_json::Map::new()),
            Shape::List => Value::Array(Vec::new()),
        }
    }

    fn tag(self) -> &'static str {
        match self {
            Shape::Mapping => "tag:yaml.org,2002:map",
            Shape::List => "tag:yaml.org,2002:seq",
        }
    }
}
