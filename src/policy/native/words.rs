//! The words of the policy's types as the internal ones: the two sets may grow apart.

use super::types::*;
use crate::policy;

impl From<OnConflict> for policy::OnConflict {
    fn from(word: OnConflict) -> Self {
        match word {
            OnConflict::Error => Self::Error,
            OnConflict::Replace => Self::Replace,
            OnConflict::Keep => Self::Keep,
        }
    }
}

impl From<FailurePolicy> for policy::FailurePolicy {
    fn from(word: FailurePolicy) -> Self {
        match word {
            FailurePolicy::Fail => Self::Fail,
            FailurePolicy::Ignore => Self::Ignore,
        }
    }
}

impl From<SidecarType> for policy::SidecarType {
    fn from(word: SidecarType) -> Self {
        match word {
            SidecarType::Native => Self::Native,
            SidecarType::Container => Self::Container,
        }
    }
}

impl From<EnvOp> for policy::EnvOp {
    fn from(word: EnvOp) -> Self {
        match word {
            EnvOp::Set => Self::Set,
            EnvOp::SetIfAbsent => Self::SetIfAbsent,
            EnvOp::Append => Self::Append,
            EnvOp::Prepend => Self::Prepend,
            EnvOp::MergeKeys => Self::MergeKeys,
            EnvOp::Remove => Self::Remove,
        }
    }
}

impl From<TextOp> for policy::EnvOp {
    fn from(word: TextOp) -> Self {
        match word {
            TextOp::Set => Self::Set,
            TextOp::SetIfAbsent => Self::SetIfAbsent,
            TextOp::Append => Self::Append,
            TextOp::MergeKeys => Self::MergeKeys,
        }
    }
}

impl From<ContainerList> for policy::ContainerList {
    fn from(word: ContainerList) -> Self {
        match word {
            ContainerList::Containers => Self::Containers,
            ContainerList::InitContainers => Self::InitContainers,
            ContainerList::Sidecars => Self::Sidecars,
            ContainerList::Injected => Self::Injected,
        }
    }
}

impl From<ContainerMode> for policy::ContainerMode {
    fn from(word: ContainerMode) -> Self {
        match word {
            ContainerMode::All => Self::All,
            ContainerMode::First => Self::First,
        }
    }
}

impl From<Hooks> for policy::Hooks {
    fn from(word: Hooks) -> Self {
        match word {
            Hooks::Exclude => Self::Exclude,
            Hooks::Include => Self::Include,
            Hooks::Only => Self::Only,
        }
    }
}

impl From<Position> for policy::Position {
    fn from(word: Position) -> Self {
        match word {
            Position::First => Self::First,
            Position::Last => Self::Last,
            Position::Before(name) => Self::Before(name),
            Position::After(name) => Self::After(name),
        }
    }
}

impl From<PatchScope> for policy::PatchScope {
    fn from(word: PatchScope) -> Self {
        match word {
            PatchScope::Workload => Self::Workload,
            PatchScope::PodTemplate => Self::PodTemplate,
            PatchScope::Container => Self::Container,
        }
    }
}

impl From<OptFrom> for policy::OptFrom {
    fn from(word: OptFrom) -> Self {
        match word {
            OptFrom::Pod => Self::Pod,
            OptFrom::Workload => Self::Workload,
            OptFrom::Namespace => Self::Namespace,
        }
    }
}

impl From<ApplyRules> for policy::ApplyRules {
    fn from(word: ApplyRules) -> Self {
        match word {
            ApplyRules::All => Self::All,
            ApplyRules::One => Self::One,
        }
    }
}
