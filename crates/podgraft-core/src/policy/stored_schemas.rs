//! The JSON schemas of podgraft's types and of Kubernetes types. `schemars` derives them from the Rust types, but
//! deriving would take a sixth of a clean build, and building them half of a short run. So they are stored as files,
//! JSON with one definition per line. `publish/stored_tests.rs` compares them with the types and rewrites them.

use serde_json::Value;
use std::sync::OnceLock;

/// The definitions of a file. Each is parsed when it is first used.
#[derive(Debug)]
pub struct Definitions {
    text: &'static str,
    lines: OnceLock<Vec<Definition>>,
}

#[derive(Debug)]
struct Definition {
    name: &'static str,
    json: &'static str,
    value: OnceLock<Value>,
}

impl Definition {
    fn read(line: &'static str) -> Option<Self> {
        let (name, json) = line.strip_prefix('"')?.split_once('"')?;
        let json = json.strip_prefix(": ")?;
        Some(Definition {
            name,
            json: json.strip_suffix(',').unwrap_or(json),
            value: OnceLock::new(),
        })
    }
}

/// The definitions of `podgraft.yaml`.
pub static CONFIG: Definitions = Definitions::new(include_str!("stored/Config.json"));
/// The definitions of `PodgraftFunction`.
pub(crate) static FUNCTION: Definitions =
    Definitions::new(include_str!("stored/PodgraftFunction.json"));
/// The definitions of `InjectionPolicy`.
pub static INJECTION_POLICY: Definitions =
    Definitions::new(include_str!("stored/InjectionPolicy.json"));
/// The definitions of `Instrumentation`.
pub static INSTRUMENTATION: Definitions =
    Definitions::new(include_str!("stored/Instrumentation.json"));
/// The definitions of the Kubernetes types.
pub(crate) static KUBERNETES: Definitions =
    Definitions::new(include_str!("stored/Kubernetes.json"));
/// The definitions of `PolicyTest`.
pub(crate) static POLICY_TEST: Definitions =
    Definitions::new(include_str!("stored/PolicyTest.json"));

impl Definitions {
    /// The definitions in a text. Nothing is parsed yet.
    pub const fn new(text: &'static str) -> Self {
        Definitions {
            text,
            lines: OnceLock::new(),
        }
    }

    /// The names of all definitions. The root definition comes first.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.lines().iter().map(|line| line.name)
    }

    /// The definition of a name, in this file or else among those of Kubernetes.
    ///
    /// # Panics
    /// If no file has the name. Names and files are of the same version, so this is a bug.
    pub fn get(&'static self, name: &str) -> &'static Value {
        self.find(name)
            .or_else(|| KUBERNETES.find(name))
            .unwrap_or_else(|| panic!("no schema is stored for {name}"))
    }

    fn find(&'static self, name: &str) -> Option<&'static Value> {
        let line = self.lines().iter().find(|line| line.name == name)?;
        let value = line.value.get_or_init(|| {
            serde_json::from_str(line.json).expect("what is stored was written as JSON")
        });
        Some(value).filter(|value| !value.is_null())
    }

    fn lines(&self) -> &[Definition] {
        self.lines.get_or_init(|| {
            let ends = memchr::memchr_iter(b'\n', self.text.as_bytes());
            let mut start = 0;
            let lines = ends.map(|end| &self.text[std::mem::replace(&mut start, end + 1)..end]);
            lines.filter_map(Definition::read).collect()
        })
    }
}
