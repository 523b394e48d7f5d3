//! `group().by(…).by(traversal that reduces)`: traversers are kept by group; when all have come each group
//! goes through the traversal.

use crate::by::By;
use crate::context::{Context, SideEffect};
use crate::memory::{Held, Queue};
use crate::step::{Input, Pipeline, Step};
use crate::traverser::Traverser;
use std::sync::Arc;
use vervet_gremlin::{Map, Value};
use vervet_model::Result;

/// A traversal for each group, with what has been put to it.
pub(crate) type Groups = indexmap::IndexMap<Value, Pipeline, vervet_gremlin::Hashing>;

/// See the header of this file. Groups under a name are those of all steps with that name.
#[derive(Clone)]
pub(crate) struct Grouped {
    key: By,
    members: Pipeline,
    name: Option<Arc<str>>,
    /// The traversal asks for nothing but numbers.
    sums: bool,
    /// What has come for each group that has no name.
    groups: indexmap::IndexMap<Value, Vec<Traverser>, vervet_gremlin::Hashing>,
    /// Counts what is in `groups`.
    held: Held,
    /// Traversers that go on behind the side effect.
    ready: Queue,
    done: bool,
}

impl Grouped {
    /// `sums`: the traversal only sums numbers up, or counts.
    pub(crate) fn new(key: By, members: Pipeline, name: Option<Arc<str>>, sums: bool) -> Self {
        let groups = indexmap::IndexMap::default();
        Self { key, members, name, sums, groups, held: Held::default(), ready: Queue::default(), done: false }
    }

    fn add(&mut self, mut traverser: Traverser, context: &mut Context<'_>) -> Result<()> {
        let key = self.key.apply(&traverser, context)?;
        if self.sums
            && self.name.is_none()
            && let Some(key) = key
        {
            traverser.path = None;
            let members = self.groups.entry(key).or_default();
            // The same number again, as a constant is.
            match (members.last_mut(), &traverser.value) {
                (Some(last), Value::Int(_) | Value::Long(_)) if last.merges_with(&traverser) => {
                    last.bulk = last.bulk.plus(traverser.bulk)?;
                }
                _ => {
                    self.held.add_traverser(&traverser, &context.memory)?;
                    members.push(traverser);
                }
            }
            return Ok(());
        }
        match (&self.name, key) {
            (None, Some(key)) => {
                self.held.add_traverser(&traverser, &context.memory)?;
                self.groups.entry(key).or_default().push(traverser);
            }
            (None, None) => {}
            (Some(name), key) => {
                if let Some(key) = key {
                    let mut groups = context.groups.remove(name).unwrap_or_default();
                    let members = &self.members;
                    let group = groups.entry(key).or_insert_with(|| members.clone());
                    let started = group.start(traverser.clone(), context);
                    context.groups.insert(name.clone(), groups);
                    started?;
                }
                self.ready.push(traverser, &context.memory)?;
            }
        }
        Ok(())
    }

    /// The groups that have no name; one after the other goes through the same steps.
    fn finish(&mut self, context: &mut Context<'_>) -> Result<Value> {
        let mut all = Map::default();
        for (key, group) in std::mem::take(&mut self.groups) {
            self.members.reset();
            for traverser in group {
                self.members.start(traverser, context)?;
            }
            put(&mut all, key, self.members.next(context)?, context);
        }
        self.members.reset();
        self.held.clear();
        Ok(Value::map(all))
    }
}

/// Groups under a name, as they are now.
fn result(groups: &Groups, context: &mut Context<'_>) -> Result<Value> {
    let mut all = Map::default();
    for (key, members) in groups {
        // A copy, since more may come by the time it is asked again.
        let result = members.clone().next(context)?;
        put(&mut all, key.clone(), result, context);
    }
    Ok(Value::map(all))
}

fn put(all: &mut Map, key: Value, result: Option<Traverser>, context: &Context<'_>) {
    match result {
        Some(result) => _ = all.insert(key, result.value),
        None if context.settings.productive => _ = all.insert(key, Value::Null),
        None => {}
    }
}

impl Step for Grouped {
    fn next(&mut self, input: &mut Input<'_>, context: &mut Context<'_>) -> Result<Option<Traverser>> {
        let mut any = false;
        while let Some(traverser) = input.next(context)? {
            any = true;
            self.add(traverser, context)?;
        }
        if let Some(name) = self.name.clone() {
            if any {
                let groups = context.groups.remove(&name).unwrap_or_default();
                let value = result(&groups, context);
                context.groups.insert(name.clone(), groups);
                context.side_effects.insert(name, SideEffect { value: value?, operator: None });
            }
            return Ok(self.ready.pop());
        }
        if self.done && !any {
            return Ok(None);
        }
        self.done = true;
        let value = self.finish(context)?;
        let mut traverser = Traverser::new(value);
        traverser.sack = context.settings.sack.clone().map(Box::new);
        Ok(Some(traverser))
    }

    fn reset(&mut self) {
        // A side effect stays what it is.
        self.groups.clear();
        self.held.clear();
        self.ready.clear();
        self.done = false;
    }

    fn moves(&self) -> bool {
        self.name.is_none()
    }
}
