//! Finds the places of new items in lists.

use serde_json::Value;

use crate::diagnostic::Code;
use crate::policy::{Injection, PolicyValue, Position};
use crate::yaml::value::field;

use super::containers::ListPlace;
use super::planner::{PlanResult, Planner};

/// An item that a rule put first, or after another one.
pub(super) struct InsertedItem {
    list: Vec<String>,
    position: Position,
    name: String,
}

impl Planner<'_, '_> {
    /// Notes that an item was inserted at its position: the next one of the same position goes behind it.
    pub(super) fn note_inserted(&mut self, list: ListPlace<'_>, position: &Position, name: &str) {
        if let Position::First | Position::After(_) = position {
            let path = list.path().into_iter();
            self.inserted.push(InsertedItem {
                list: path.map(str::to_owned).collect(),
                position: position.clone(),
                name: name.to_owned(),
            });
        }
    }

    /// The index at which a new item goes into a list of named items. Items of one position keep their order.
    pub(super) fn index_for(
        &self,
        position: &Position,
        list: ListPlace<'_>,
        item: &PolicyValue,
    ) -> PlanResult<usize> {
        let mut inserted = self.inserted.iter().rev();
        let previous = inserted
            .find(|inserted| inserted.position == *position && inserted.list == list.path());
        if let Some(at) = previous.and_then(|previous| self.index_called(list, &previous.name)) {
            return Ok(at + 1);
        }
        match position {
            Position::First => Ok(0),
            Position::Last => Ok(self
                .list_part(list)
                .map_or(0, |list| self.draft.count(&list))),
            Position::Before(name) => self.index_of(name, list, item),
            Position::After(name) => Ok(self.index_of(name, list, item)? + 1),
        }
    }

    fn index_called(&self, list: ListPlace<'_>, name: &str) -> Option<usize> {
        self.position_by(self.list_part(list).as_ref(), "name", name)
    }

    fn index_of(
        &self,
        neighbour: &str,
        list: ListPlace<'_>,
        item: &PolicyValue,
    ) -> PlanResult<usize> {
        self.index_called(list, neighbour).ok_or_else(|| {
            let title = self.workload.title();
            let place = match list {
                ListPlace::OfPod(key) => format!("the `{key}` of {title}"),
                ListPlace::OfContainer(container, key) => {
                    format!("the `{key}` of container `{}` of {title}", container.name)
                }
            };
            let message = format!(
                "`{neighbour}` is not in {place}, so nothing can be placed before or after it"
            );
            let problem = self.problem(Code::UnknownPosition, message, item);
            match self.help_for_later(neighbour, item) {
                Some(help) => problem.help(help).into(),
                None => problem.into(),
            }
        })
    }

    /// What to do if the rule itself adds the neighbour, but after the item.
    fn help_for_later(&self, neighbour: &str, item: &PolicyValue) -> Option<String> {
        let name = field(&item.value, "name").and_then(Value::as_str)?;
        let parts = self.expanded.injects().flat_map(Injection::parts);
        let mut names =
            parts.filter_map(|part| Some(field(&part.value, "name")?.as_str()? == neighbour));
        names.any(|is_neighbour| is_neighbour).then(|| {
            format!(
                "the rule adds `{neighbour}` after `{name}`: give `{neighbour}` the position instead, or add it in \
                 an earlier rule"
            )
        })
    }
}
