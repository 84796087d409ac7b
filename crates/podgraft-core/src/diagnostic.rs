//! Diagnostics as plain data: a stable code, a sentence, the places, and what to do next. Nothing is printed here.
//!
//! A new code needs its page `docs/errors/NAME.md` and a case that shows it (`tests/codes.rs`).

use std::sync::Arc;

use crate::source::Place;

/// The severity of a diagnostic, from harmless to fatal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// For information only.
    Note,
    /// The work is done, but somebody should look at it. Fails the run under `--strict`.
    Warning,
    /// The run fails and nothing is written.
    Error,
}

/// One problem, with its places.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Diagnostic {
    /// The stable code.
    pub code: Code,
    /// The severity; the same code may have several.
    pub severity: Severity,
    /// The problem in the user's terms, without a full stop.
    pub message: String,
    /// The places; the first is the primary one.
    pub labels: Vec<Label>,
    /// Advice on what to do next.
    pub help: Option<String>,
    /// The title of the workload that it is about: `Deployment shop/orders`.
    pub workload: Option<Arc<str>>,
    /// The identity of the policy that it is about.
    pub policy: Option<Arc<str>>,
}

/// A place in a source, with a short text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Label {
    /// The place.
    pub place: Place,
    /// What is at this place.
    pub text: String,
}

impl Diagnostic {
    /// An error without a place yet.
    pub fn error(code: Code, message: impl Into<String>) -> Self {
        Self::new(code, Severity::Error, message)
    }

    /// A warning without a place yet.
    pub fn warning(code: Code, message: impl Into<String>) -> Self {
        Self::new(code, Severity::Warning, message)
    }

    /// A note without a place yet.
    pub fn note(code: Code, message: impl Into<String>) -> Self {
        Self::new(code, Severity::Note, message)
    }

    fn new(code: Code, severity: Severity, message: impl Into<String>) -> Self {
        Diagnostic {
            code,
            severity,
            message: message.into(),
            labels: Vec::new(),
            help: None,
            workload: None,
            policy: None,
        }
    }

    /// Adds a label.
    pub fn at(mut self, place: Place, text: impl Into<String>) -> Self {
        self.labels.push(Label {
            place,
            text: text.into(),
        });
        self
    }

    /// Sets the advice.
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help = Some(text.into());
        self
    }

    /// Sets the workload that it is about.
    pub fn of_workload(mut self, title: impl Into<Arc<str>>) -> Self {
        self.workload = Some(title.into());
        self
    }

    /// Sets the policy that it is about.
    pub(crate) fn of_policy(mut self, identity: impl Into<Arc<str>>) -> Self {
        self.policy = Some(identity.into());
        self
    }

    /// The same diagnostic with another severity.
    pub fn with_severity(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }

    /// Whether the same message may come from many places and is reported only once.
    pub(crate) fn is_reported_once(&self) -> bool {
        match self.code {
            Code::NothingToWrite => true,
            Code::UnknownNamespace | Code::PartIgnored => self.severity == Severity::Note,
            _ => false,
        }
    }

    /// The primary place, if it has one.
    pub fn place(&self) -> Option<&Place> {
        self.labels.first().map(|label| &label.place)
    }

    /// The places behind the primary one, such as the item of the policy that a conflict is about.
    pub(crate) fn other_places(&self) -> &[Label] {
        self.labels.get(1..).unwrap_or_default()
    }

    /// Whether it is an error, which fails the run.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// A value, or all problems that keep it from being made.
pub type Diagnosed<T = ()> = Result<T, Vec<Diagnostic>>;

/// The value unless there are problems.
///
/// # Errors
/// The problems, of any severity, if there are any.
pub fn unless<T, P>(problems: Vec<P>, value: T) -> Result<T, Vec<P>> {
    match problems.is_empty() {
        true => Ok(value),
        false => Err(problems),
    }
}

macro_rules! codes {
    ($($(#[doc = $page:literal])+ $variant:ident = $name:literal,)+) => {
        /// The kind of a problem. Its name is stable.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $($(#[doc = $page])+ $variant,)+
        }

        impl Code {
            /// All codes, in the order of their declaration.
            pub const ALL: &'static [Code] = &[$(Code::$variant,)+];

            /// The name that users see and machines match.
            pub fn name(self) -> &'static str {
                match self { $(Code::$variant => $name,)+ }
            }
        }
    };
}

impl Code {
    /// The code with this name.
    pub fn find(name: &str) -> Option<Code> {
        Code::ALL.iter().copied().find(|code| code.name() == name)
    }

    /// The page of the code, `docs/errors/NAME.md`: what it means, with an example and what to do.
    pub fn page(self) -> &'static str {
        podgraft_docs::error(self.name()).expect("docs/lib.rs lists the page of each code")
    }

    /// Whether an error with this code is a finding about a workload. All others mean that the input or a policy cannot
    /// be used.
    pub fn is_finding(self) -> bool {
        !matches!(
            self,
            Code::NotYaml
                | Code::NotRendered
                | Code::NotUtf8
                | Code::TooDeep
                | Code::TooLong
                | Code::UnknownAlias
                | Code::NoManifests
                | Code::NoMatch
                | Code::File
                | Code::BadPolicy
                | Code::UnknownField
                | Code::WrongType
                | Code::DuplicatePolicy
                | Code::DigestMismatch
                | Code::UnknownPolicy
                | Code::UnknownParam
                | Code::BadParam
                | Code::NotSupported
                | Code::Internal
        )
    }
}

codes! {
    /// The text is not YAML. podgraft shows the place at which the parser gave up; nothing is written.
    NotYaml = "not-yaml",
    /// The manifest is a template that has not been rendered: `{{` stands where a value or a line begins. Render it
    /// first (`helm template`), then give podgraft the result.
    NotRendered = "not-rendered",
    /// The file's encoding is not UTF-8. kubectl reads UTF-16, so a workload may be in it: convert it first.
    NotUtf8 = "not-utf8",
    /// A document nests deeper than podgraft reads, or a patch would make one that does.
    TooDeep = "too-deep",
    /// A document is larger than podgraft reads (4 GiB), or a policy larger or more than it carries out.
    TooLong = "too-long",
    /// An alias `*name` has no anchor `&name` before it in its document.
    UnknownAlias = "unknown-alias",
    /// A key stands twice in one mapping. Readers disagree about which one counts, so nothing is edited there.
    DuplicateKey = "duplicate-key",
    /// Readers of YAML disagree about this text, or an edit of it could not be shown to be safe; podgraft does not edit
    /// where it would have to guess.
    CannotEdit = "cannot-edit",
    /// An anchor, an alias or a merge key stands on the way to the edit, so the edit would change more than the one place.
    SharedNode = "shared-node",
    /// There is nothing to read: no file, no document, or a folder without a manifest.
    NoManifests = "no-manifests",
    /// What was asked for by a flag is not there: a filter that nothing fits.
    NoMatch = "no-match",
    /// A workload was injected by a policy that is not among the given ones.
    Orphaned = "orphaned",
    /// A file or folder cannot be read or written.
    File = "file",
    /// The policy is not what it must be: a wrong type, a missing field, or a contradiction.
    BadPolicy = "bad-policy",
    /// A policy has a field that does not exist; usually a typing error.
    UnknownField = "unknown-field",
    /// A value has another type than its field.
    WrongType = "wrong-type",
    /// A policy's file is another than the one whose digest the configuration names.
    DigestMismatch = "digest-mismatch",
    /// Two given policies have the same identity.
    DuplicatePolicy = "duplicate-policy",
    /// No given or built-in policy has this name.
    UnknownPolicy = "unknown-policy",
    /// A parameter that no given policy declares, or that several declare.
    UnknownParam = "unknown-param",
    /// A value for a parameter that the policy does not accept, or a required one that is missing.
    BadParam = "bad-param",
    /// An expression `${...}` that cannot be read or evaluated.
    BadExpression = "bad-expression",
    /// The policy language has this, but this version of podgraft does not do it yet; it is refused rather than ignored.
    NotSupported = "not-supported",
    /// What the policy wants to put there is already there with other content.
    Conflict = "conflict",
    /// The result is nothing that an API server would take.
    Invalid = "invalid",
    /// The manifest had something that no API server would take before anything was injected, and still has it.
    InvalidBefore = "invalid-before",
    /// An item is to stand before or after another one that is not there.
    UnknownPosition = "unknown-position",
    /// The namespace of a workload decides, and it is not stated in the manifest. Give it with `--namespace`.
    UnknownNamespace = "unknown-namespace",
    /// `check`: a policy is for fewer workloads than a configuration or a flag requires.
    NotCovered = "not-covered",
    /// A policy asks for a ConfigMap, a Secret or a key that is not among the manifests. Give the file that holds it with
    /// `--context`: it is read for facts only, and never written.
    MissingObject = "missing-object",
    /// It cannot be told what an object says that a policy asks for: it stands twice with different content, or is
    /// something that no API server takes.
    UnclearObject = "unclear-object",
    /// With `--stream`, something comes behind what depends on it, or would have to be taken out of what is written
    /// already. Without `--stream` the order makes no difference.
    TooLate = "too-late",
    /// A variable is set, but the image's own variable of that name, or one that `envFrom` brings, cannot be seen here.
    HiddenEnv = "hidden-env",
    /// A workload is marked as injected by a policy that would now do something else to it, or no longer selects it. What
    /// the earlier run put there stays: start from the original manifest, or take it out by hand.
    AppliedBefore = "applied-before",
    /// Applied to its own result a policy would change more, so that a second run would not give the same.
    NotIdempotent = "not-idempotent",
    /// What a policy put into a workload was changed by somebody since, so it is not taken out without `--force`.
    ChangedSince = "changed-since",
    /// A workload is marked as injected, and nothing in it says what was injected: `undo` cannot take it out.
    NoRecord = "no-record",
    /// Undo of what was written would give back the values and not every byte.
    InexactUndo = "inexact-undo",
    /// A record, in `podgraft.lock` or the annotation `podgraft.dev/record`, is not what podgraft wrote there.
    BadRecord = "bad-record",
    /// An object of a kind that podgraft does not know holds something shaped like a pod template.
    UnknownKind = "unknown-kind",
    /// Items of a list do not state what they are.
    UntypedItems = "untyped-items",
    /// A text cannot be joined with a variable that comes from elsewhere (`valueFrom`): what is there is not known.
    CannotCompose = "cannot-compose",
    /// A policy has only ephemeral containers. They go into pods that run, never into a workload.
    NothingToWrite = "nothing-to-write",
    /// A JSON patch of a policy cannot be carried out: it is not written rightly, there is nothing where it wants to change
    /// something, it would change its own result again, or it would touch what podgraft goes by.
    BadPatch = "bad-patch",
    /// A `test` of a JSON patch does not hold, so the patch does not apply to this workload.
    PatchNotApplied = "patch-not-applied",
    /// Other content of the same identity stays, as the policy wants it.
    Kept = "kept",
    /// kustomize finds what it patches by its name, and an object has none or another one of the same.
    UnclearTarget = "unclear-target",
    /// `check`: the policies would change a workload, or its record in `podgraft.lock`.
    OutOfDate = "out-of-date",
    /// `check`: a workload opts in to a policy that does not apply to it.
    OptedIn = "opted-in",
    /// `check`: a policy nearly applies to a workload.
    NearMiss = "near-miss",
    /// `check`: a policy could not do its work on a workload, and ignores its failures.
    LeftAlone = "left-alone",
    /// `check`: an APIService's name is not its version and group.
    WrongName = "wrong-name",
    /// A policy would put something into a workload that `--forbid`, or `forbid` in the configuration, names.
    Forbidden = "forbidden",
    /// A parameter or a variable of a policy that nothing reads, or an accepted finding that is not there.
    Unused = "unused",
    /// A policy, or a rule of it, that fits no workload whatever the workload says.
    NeverMatches = "never-matches",
    /// A policy gives a container power beyond its pod.
    Privilege = "privilege",
    /// An image of a policy is named by a tag alone, which somebody may move.
    NoDigest = "no-digest",
    /// A patch without a `test` that has to change the same thing with every run, or is refused.
    PatchWithoutTest = "patch-without-test",
    /// `explain CODE` was given a code that no diagnostic has.
    UnknownCode = "unknown-code",
    /// A resource of another operator that does nothing: it chooses no workload, or says so in a way that its operator
    /// ignores.
    NothingToDo = "nothing-to-do",
    /// A part of a resource of another operator that has no effect there, and none here.
    PartIgnored = "part-ignored",
    /// An image without a digest whose tag is `latest`, or which has no tag: tomorrow it may be another one.
    LatestImage = "latest-image",
    /// A token or a password stands in clear text in a policy, and would stand so in every workload.
    ClearSecret = "clear-secret",
    /// An annotation asks for a resource that is not there, or says `true` where there are several, so its operator does
    /// nothing.
    UnresolvedResource = "unresolved-resource",
    /// An annotation names a container that is not there, names one twice or in a way that its operator does not take, or
    /// names none where it has to.
    UnknownContainer = "unknown-container",
    /// A workload asks for something that a flag of its operator has switched off.
    SwitchedOff = "switched-off",
    /// A container asks for an agent, and its operator gives it none without a word.
    NotInstrumented = "not-instrumented",
    /// What an operator does gives an odd result here. podgraft does the same, and says so.
    OddResult = "odd-result",
    /// A service is called after its container, because the operator does not take the workload's name.
    ServiceName = "service-name",
    /// The release of an operator whose work is done, and what is switched on or off in it.
    OperatorRelease = "operator-release",
    /// An agent that a JVM loads when it starts: pods restart, where the operator attaches to JVMs that run.
    PodsRestart = "pods-restart",
    /// Pods fetch something from elsewhere when they start.
    FetchedAtStart = "fetched-at-start",
    /// A part of a name fits more than one workload. The operator whose resource this is compares names so; it may be
    /// more than was meant.
    BroadName = "broad-name",
    /// The input of `podgraft fn` is no ResourceList, or its functionConfig is nothing that podgraft knows.
    BadResourceList = "bad-resource-list",
    /// podgraft's own check of its output failed. This is a bug of podgraft; nothing was written.
    Internal = "internal",
}
