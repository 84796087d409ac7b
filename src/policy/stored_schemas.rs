//! The JSON schemas of our own types and of those of Kubernetes, as `schemars` derives them from the Rust types. Deriving
//! them would be a sixth of the first build, and making them half of a short run, so they are files of this folder: JSON
//! with a definition on each line. `publish/stored_tests.rs` compares them with the types, and writes them.

use serde_json::Value;
use std::sync::OnceLock;

/// The definitions of a file. Each is read when it is first asked for.
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

/// A `podgraft.yaml`.
pub static CONFIG: Definitions = Definitions::new(include_str!("stored/Config.json"));
/// A `PodgraftFunction`.
pub static FUNCTION: Definitions = Definitions::new(include_str!("stored/PodgraftFunction.json"));
/// An `InjectionPolicy`.
pub static INJECTION_POLICY: Definitions =
    Definitions::new(include_str!("stored/InjectionPolicy.json"));
/// An `Instrumentation`.
pub static INSTRUMENTATION: Definitions =
    Definitions::new(include_str!("stored/Instrumentation.json"));
/// The types of Kubernetes.
pub static KUBERNETES: Definitions = Definitions::new(include_str!("stored/Kubernetes.json"));
/// A `PolicyTest`.
pub static POLICY_TEST: Definitions = Definitions::new(include_str!("stored/PolicyTest.json"));

impl Definitions {
    /// Those of a file.
    pub const fn new(text: &'static str) -> Self {
        Definitions {
            text,
            lines: OnceLock::new(),
        }
    }

    /// The names of all definitions, the one that leads to the others first.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.lines().iter().map(|line| line.name)
    }

    /// A definition of the file, or else of Kubernetes.
    ///
    /// # Panics
    /// On a name that no file has: what asks and what is stored are of one version.
    pub fn get(&'static self, name: &str) -> &'static Value {
        let found = |file: &'static Self| {
            let line = file.lines().iter().find(|line| line.name == name)?;
            let value = line.value.get_or_init(|| {
                serde_json::from_str(line.json).expect("what is stored was written as JSON")
            });
            Some(value).filter(|value| !value.is_null())
        };
        found(self)
            .or_else(|| found(&KUBERNETES))
            .unwrap_or_else(|| panic!("no schema is stored for {name}"))
    }

    fn lines(&self) -> &[Definition] {
        self.lines.get_or_init(|| {
            let ends = memchr::memchr_iter(b'\n', self.text.as_bytes());
            let mut start = 0;
            let lines = ends.filter_map(|end| {
                let line = &self.text[std::mem::replace(&mut start, end + 1)..end];
                let (name, json) = line.strip_prefix('"')?.split_once('"')?;
                let json = json.strip_prefix(": ")?;
                Some(Definition {
                    name,
                    json: json.strip_suffix(',').unwrap_or(json),
                    value: OnceLock::new(),
                })
            });
            lines.collect()
        })
    }
}
