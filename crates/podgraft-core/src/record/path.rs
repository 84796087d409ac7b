//! Record paths: mapping keys and identities of list items, which stay valid when other items come and go.

use foldhash::HashMap;
use serde_json::Value;
use std::borrow::Cow;

use super::digest;
use crate::change::{DIGEST, unescape};
use crate::yaml::value::field_in;

/// Lists and the field that identifies their items (the patchMergeKey of the Kubernetes API).
const NAMED: &[(&str, &str)] = &[
    ("containers", "name"),
    ("initContainers", "name"),
    ("ephemeralContainers", "name"),
    ("volumes", "name"),
    ("env", "name"),
    ("imagePullSecrets", "name"),
    ("resourceClaims", "name"),
    ("schedulingGates", "name"),
    ("volumeMounts", "mountPath"),
    ("volumeDevices", "devicePath"),
    ("hostAliases", "ip"),
    ("readinessGates", "conditionType"),
];

/// The lists whose containers a record names.
pub(super) const LISTS: [&str; 2] = ["containers", "initContainers"];

/// Lists whose items are identified by several fields, or by their whole content.
const OTHERS: &[&str] = &[
    "ports",
    "envFrom",
    "topologySpreadConstraints",
    "tolerations",
    "nameservers",
    "searches",
    "supplementalGroups",
    "hostnames",
];

/// Whether the items of a list under this key have identities. Any other list is treated as one value.
pub(crate) fn is_aligned(key: &str) -> bool {
    aligned_lists().any(|list| list == key)
}

/// The keys of the lists whose items have identities.
pub(crate) fn aligned_lists() -> impl Iterator<Item = &'static str> {
    let named = NAMED.iter().map(|(list, _)| *list);
    named.chain(OTHERS.iter().copied())
}

/// Returns the identities of a list's items. They are unique: the second item of a name is `name~#2`.
pub fn identities(key: &str, items: &[Value]) -> Vec<String> {
    numbered_identities(
        items
            .iter()
            .map(|item| identity_of_item(key, item))
            .collect(),
    )
}

/// Names up to this number are compared, which is faster than hashing them.
const FEW: usize = 16;

/// Makes identities unique.
pub(crate) fn numbered_identities(mut names: Vec<String>) -> Vec<String> {
    let is_twin = |at: usize| names[..at].contains(&names[at]);
    if names.len() < FEW && !(1..names.len()).any(is_twin) {
        return names;
    }
    let mut counts: HashMap<&str, usize> = HashMap::default();
    counts.reserve(names.len());
    let mut twins = Vec::new();
    for (at, name) in names.iter().enumerate() {
        let count = counts.entry(name).or_insert(0);
        *count += 1;
        if *count > 1 {
            twins.push((at, numbered(name, *count)));
        }
    }
    for (at, name) in twins {
        names[at] = name;
    }
    names
}

/// Finds names among others. Fast for names that are asked for in their order.
pub(crate) struct NamePlaces<'n> {
    names: Vec<&'n str>,
    /// The place behind the last name that was found.
    next: usize,
    /// Of many names: the place of each, once a name is not at the next place.
    places: Option<HashMap<&'n str, usize>>,
}

impl<'n> NamePlaces<'n> {
    pub(crate) fn of(names: impl Iterator<Item = &'n str>) -> Self {
        NamePlaces {
            names: names.collect(),
            next: 0,
            places: None,
        }
    }

    /// The index of a name.
    pub(crate) fn find(&mut self, name: &str) -> Option<usize> {
        let at = if self.names.get(self.next) == Some(&name) {
            self.next
        } else if self.names.len() < LONG {
            self.names.iter().position(|other| *other == name)?
        } else {
            let places = || self.names.iter().copied().zip(0..).collect();
            *self.places.get_or_insert_with(places).get(name)?
        };
        self.next = at + 1;
        Some(at)
    }
}

/// Makes an identity unique. Escaped names never contain `~#`, so the result is no other item's name.
pub(crate) fn numbered(plain: &str, number: usize) -> String {
    if number == 1 {
        plain.to_owned()
    } else {
        format!("{plain}~#{number}")
    }
}

/// Splits an identity into that without a number, and the number. `None` if it is no identity of an item.
pub(crate) fn split_number(identity: &str) -> Option<(&str, usize)> {
    let Some((plain, text)) = identity.split_once("~#") else {
        return Some((identity, 1));
    };
    let number = text.parse().ok();
    let number = number.filter(|&number| number > 1 && numbered(plain, number) == identity)?;
    Some((plain, number))
}

/// The index of the item with this identity.
fn index_in(key: &str, items: &[Value], identity: &str) -> Option<usize> {
    let (plain, number) = split_number(identity)?;
    let name = Some(unescape(plain)).filter(|name| escape(name) == plain);
    let is_same_identity = |item: &Value| match stated(key, item) {
        Some(stated_name) => name.as_deref() == Some(&*stated_name),
        None => plain.starts_with(DIGEST) && digest_identity(item) == plain,
    };
    let mut found = items
        .iter()
        .enumerate()
        .filter(|(_, item)| is_same_identity(item));
    found.nth(number - 1).map(|(index, _)| index)
}

/// The identity of an item, without a number: other items may have the same.
pub(crate) fn identity_of_item(key: &str, item: &Value) -> String {
    stated(key, item).map_or_else(|| digest_identity(item), |name| escape(&name).into_owned())
}

/// The identity of an item that has this name in the field that [`name_field`] gives.
pub(crate) fn identity_of_name(key: &str, name: &str) -> String {
    escape(as_stated(key, name)).into_owned()
}

/// The name of an item without what says nothing: `/data/` is the mount path `/data`.
pub(crate) fn as_stated<'n>(key: &str, name: &'n str) -> &'n str {
    match key {
        "volumeMounts" => name.trim_end_matches('/'),
        _ => name,
    }
}

/// The field that names the items of a list. `None` for lists whose items are identified otherwise.
pub(crate) fn name_field(key: &str) -> Option<&'static str> {
    NAMED
        .iter()
        .find(|(list, _)| *list == key)
        .map(|(_, field)| *field)
}

/// The name that identifies an item, from its own fields. `None` if it has none.
fn stated<'i>(key: &str, item: &'i Value) -> Option<Cow<'i, str>> {
    let text = |field: &str| item.get(field).and_then(Value::as_str);
    // The identifying field is usually the first one: no lookup needed.
    let first = item.as_object().and_then(|fields| fields.iter().next());
    let named = name_field(key).and_then(|field| match first {
        Some((key, value)) if key == field => value.as_str(),
        _ => text(field),
    });
    match key {
        "ports" => item
            .get("containerPort")
            .map(|port| match text("protocol") {
                Some(protocol) if protocol != "TCP" => Cow::Owned(format!("{port}-{protocol}")),
                _ => Cow::Owned(port.to_string()),
            }),
        "topologySpreadConstraints" => {
            let key = text("topologyKey")?;
            Some(match text("whenUnsatisfiable") {
                Some("ScheduleAnyway") => Cow::Owned(format!("{key}-ScheduleAnyway")),
                _ => Cow::Borrowed(key),
            })
        }
        "envFrom" => ["configMapRef", "secretRef"].into_iter().find_map(|kind| {
            let name = item.get(kind)?.get("name")?.as_str()?;
            Some(Cow::Owned(format!(
                "{}{}-{name}",
                text("prefix").unwrap_or_default(),
                kind.trim_end_matches("Ref")
            )))
        }),
        // At most one container of a list has no name where there is a record.
        _ if LISTS.contains(&key) => Some(Cow::Borrowed(named.unwrap_or_default())),
        _ => named.map(|name| Cow::Borrowed(as_stated(key, name))),
    }
}

/// The identity of an item without a name: a digest of its content.
fn digest_identity(item: &Value) -> String {
    format!("{DIGEST}{}", digest(item))
}

/// Escapes a key as a path segment, like RFC 6901: `~` as `~0`, `/` as `~1`.
pub(crate) fn escape(key: &str) -> Cow<'_, str> {
    let (mut segment, mut start) = (String::new(), 0);
    for (at, byte) in key.bytes().enumerate() {
        let code = match byte {
            b'~' => "~0",
            b'/' => "~1",
            _ => continue,
        };
        segment.push_str(&key[start..at]);
        segment.push_str(code);
        start = at + 1;
    }
    if start == 0 {
        return Cow::Borrowed(key);
    }
    segment.push_str(&key[start..]);
    Cow::Owned(segment)
}

/// Whether a segment is the escaped key.
pub(crate) fn is_escaped(segment: &str, key: &str) -> bool {
    // What is escaped gets longer, so few keys must be escaped to know it.
    match segment.len().checked_sub(key.len()) {
        None => false,
        Some(0) => segment == key && matches!(escape(key), Cow::Borrowed(_)),
        Some(_) => escape(key) == segment,
    }
}

/// What follows a path in one that is the same or leads below it.
pub(crate) fn rest_below<'p>(path: &'p str, above: &str) -> Option<&'p str> {
    let rest = path.strip_prefix(above)?;
    (rest.is_empty() || rest.starts_with('/')).then_some(rest)
}

/// Room for the segments of most paths below a pod template: `spec/containers/app/env/NAME`.
const USUAL_SEGMENTS: usize = 5;

/// Formats and resolves the paths of a record. Paths below the pod template begin with `pod`.
#[derive(Debug, Clone, Default)]
pub struct RecordPaths {
    template: Vec<String>,
    /// The same keys, escaped.
    escaped: Vec<String>,
}

/// The length from which caching the indices of a list pays.
const LONG: usize = 64;

impl RecordPaths {
    /// `template` are the keys that lead to the pod template.
    pub fn of(template: &[String]) -> Self {
        RecordPaths {
            template: template.to_vec(),
            escaped: escaped(template),
        }
    }

    /// The keys that lead to the pod template.
    pub(super) fn template_keys(&self) -> impl Iterator<Item = &str> {
        self.template.iter().map(String::as_str)
    }

    /// The path of the pod template, joined by dots: `spec.template`.
    pub fn template(&self) -> String {
        self.template.join(".")
    }

    /// Formats a path from escaped segments, with the prefix `pod` if it is below the pod template.
    pub(crate) fn write(&self, segments: &[String]) -> String {
        match segments.strip_prefix(self.escaped.as_slice()) {
            Some(rest) if !rest.is_empty() => format!("pod/{}", rest.join("/")),
            _ => segments.join("/"),
        }
    }

    /// Formats a path below the pod template from keys and names, which are escaped here.
    pub(crate) fn in_pod(&self, segments: &[&str]) -> String {
        format!("pod/{}", escaped(segments).join("/"))
    }

    /// Formats a path below the object from keys, which are escaped here.
    pub(crate) fn in_object(&self, segments: &[&str]) -> String {
        self.write(&escaped(segments))
    }

    /// Splits a path into its segments from the object's root, still escaped.
    pub(crate) fn segments<'p>(&'p self, path: &'p str) -> Vec<&'p str> {
        let (template, rest): (&[String], _) = match path.strip_prefix("pod/") {
            Some(rest) => (&self.escaped, rest),
            None => (&[], path),
        };
        let mut segments = Vec::with_capacity(template.len() + USUAL_SEGMENTS);
        segments.extend(template.iter().map(String::as_str));
        let mut start = 0;
        for end in memchr::memchr_iter(b'/', rest.as_bytes()) {
            segments.push(&rest[start..end]);
            start = end + 1;
        }
        segments.push(&rest[start..]);
        segments
    }

    /// Returns the value at a path. `None` if there is none.
    pub fn get<'v>(&self, object: &'v Value, path: &str) -> Option<&'v Value> {
        let mut value = object;
        let segments = self.segments(path);
        for (depth, segment) in segments.iter().enumerate() {
            value = match value {
                Value::Object(map) => field_in(map, &unescape(segment))?,
                Value::Array(items) => {
                    let list = depth.checked_sub(1).map_or("", |above| segments[above]);
                    &items[index_in(list, items, segment)?]
                }
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
            };
        }
        Some(value)
    }
}

fn escaped(segments: &[impl AsRef<str>]) -> Vec<String> {
    let segments = segments.iter();
    segments
        .map(|segment| escape(segment.as_ref()).into_owned())
        .collect()
}

/// Splits the path of a variable into the path of its list and its name.
pub(crate) fn split_last(path: &str) -> (&str, String) {
    let (list, name) = path.rsplit_once('/').unwrap_or(("", path));
    (
        list,
        unescape(name.split("~#").next().unwrap_or(name)).into_owned(),
    )
}

/// Appends a segment to a path and escapes it.
pub(crate) fn below(list: &str, name: &str) -> String {
    format!("{list}/{}", escape(name))
}
