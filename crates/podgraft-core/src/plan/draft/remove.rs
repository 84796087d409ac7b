//! Removes entries of opened mappings and lists. What an alias elsewhere refers to stays.

use std::collections::BTreeSet;

use crate::yaml::tree::NodeId;

use super::{Draft, DraftValue, OpenId, OpenedCollection, Refusal, RefusalReason};

impl Draft<'_> {
    /// Removes an item of an opened list.
    ///
    /// # Errors
    /// When an alias elsewhere refers to it.
    pub fn remove(&mut self, list: OpenId, index: usize) -> Result<(), Refusal> {
        let item = self.list_items(list)[index].clone();
        self.refuse_shared(&item)?;
        self.has_removals = true;
        self.list_items(list).remove(index);
        self.indexes.forget(list);
        Ok(())
    }

    /// Removes the items of an opened list that are these nodes, and returns their number.
    ///
    /// # Errors
    /// When an alias elsewhere refers to one.
    pub fn remove_nodes(
        &mut self,
        list: OpenId,
        nodes: &BTreeSet<NodeId>,
    ) -> Result<usize, Refusal> {
        for &node in nodes {
            self.refuse_shared(&DraftValue::Node(node))?;
        }
        let items = self.list_items(list);
        let removed = items.extract_if(
            ..,
            |item| matches!(item, DraftValue::Node(node) if nodes.contains(node)),
        );
        let count = removed.count();
        self.has_removals = true;
        self.indexes.forget(list);
        Ok(count)
    }

    /// Removes a field of an opened mapping, if it has it.
    ///
    /// # Errors
    /// When an alias elsewhere refers to it, or a merge key brings the same key.
    pub(crate) fn remove_field(&mut self, within: OpenId, key: &str) -> Result<(), Refusal> {
        let OpenedCollection::Mapping { fields, origin } = self.opened(within) else {
            return Ok(());
        };
        let Some(at) = self.position_of(fields, key) else {
            return self.refuse_merged(within, key);
        };
        self.refuse_shared(&fields[at].value)?;
        // Without the explicit field, the value that the merge key brings would take effect.
        if let Some(node) = origin.filter(|&node| self.tree.is_brought_by_merge(node, key)) {
            return Err(Refusal {
                node,
                reason: RefusalReason::IsShown,
            });
        }
        self.has_removals = true;
        self.fields(within).remove(at);
        Ok(())
    }

    /// Refuses to remove a part if an alias elsewhere refers to something in it: the alias would lose its target.
    pub(super) fn refuse_shared(&self, part: &DraftValue) -> Result<(), Refusal> {
        let Some(node) = self.origin(part) else {
            return Ok(());
        };
        let mut within = self.tree.within(node);
        let is_shared = within.any(|id| self.tree.is_aliased(id));
        match is_shared {
            true => Err(Refusal {
                node,
                reason: RefusalReason::IsShared,
            }),
            false => Ok(()),
        }
    }
}
