//! Stand-in for the ready-made policies; replaced when the branches are merged.

/// A ready-made policy.
#[derive(Debug, Clone, Copy)]
pub struct Builtin {
    /// `builtin:NAME`.
    pub name: &'static str,
    /// The file.
    pub text: &'static str,
}

/// All, sorted by name.
pub const BUILTINS: &[Builtin] = &[Builtin {
    name: "jmx-exporter",
    text: "apiVersion: podgraft.dev/v1alpha1\nkind: InjectionPolicy\nmetadata:\n  name: jmx-exporter\n",
}];

/// The one of this name.
pub fn find(name: &str) -> Option<&'static Builtin> {
    BUILTINS.iter().find(|builtin| builtin.name == name)
}

impl Builtin {
    /// One line on what it does.
    pub fn summary(&self) -> &'static str {
        "stand-in"
    }
}
