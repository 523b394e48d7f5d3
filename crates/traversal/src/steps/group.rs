//! `group().by(…).by(reducing traversal)`: buffers traversers by group and reduces each group at the end of
//! the input.

use crate::by::By;
use crate::context::{Context, GroupReducer, Groups, SideEffect};
use crate::memory::Reservation;
use crate::queue::Queue;
use crate::step::{Input, Pipeline, Step};
use crate::traverser::Traverser;
use std::sync::Arc;
use vervet_gremlin::{Map, Value};
use vervet_model::Result;

/// See the header of this file. All steps with one name share its groups.
#[derive(Clone)]
pub(crate) struct Grouped {
    key: By,
    members: Pipeline,
    name: Option<Arc<str>>,
    /// Whether the traversal only sums or counts.
    sums: bool,
    /// Buffered traversers per group, if the step has no name.
    groups: indexmap::IndexMap<Value, Vec<Traverser>, vervet_gremlin::Hashing>,
    /// Counts `groups`.
    held: Reservation,
    /// Output traversers of the side-effect form.
    ready: Queue,
    done: bool,
}

impl Grouped {
    /// `sums`: whether the traversal only sums or counts.
    pub(crate) fn new(key: By, members: Pipeline, name: Option<Arc<str>>, sums: bool) -> Self {
        let groups = indexmap::IndexMap::default();
        Self {
            key,
            members,
            name,
            sums,
            groups,
            held: Reservation::default(),
            ready: Queue::default(),
            done: false,
        }
    }

    fn add(&mut self, mut traverser: Traverser, context: &mut Context<'_>) -> Result<()> {
        let key = self.key.apply(&traverser, context)?;
        if self.sums
            && self.name.is_none()
            && let Some(key) = key
        {
            traverser.path = None;
            let members = self.groups.entry(key).or_default();
            // A repeated number, such as a constant.
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
                    let group = groups.entry(key).or_insert_with(|| Box::new(members.clone()));
                    let started = group.push(traverser.clone(), context);
                    context.groups.insert(name.clone(), groups);
                    started?;
                }
                self.ready.push(traverser, &context.memory)?;
            }
        }
        Ok(())
    }

    /// Reduces the unnamed groups one by one with the same steps.
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

impl GroupReducer for Pipeline {
    fn push(&mut self, member: Traverser, context: &Context<'_>) -> Result<()> {
        self.start(member, context)
    }

    fn result(&self, context: &mut Context<'_>) -> Result<Option<Traverser>> {
        // A copy, since later traversers may be added.
        self.clone().next(context)
    }
}

/// The current results of named groups.
fn result(groups: &Groups, context: &mut Context<'_>) -> Result<Value> {
    let mut all = Map::default();
    for (key, members) in groups {
        let result = members.result(context)?;
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
        // A side effect survives the reset.
        self.groups.clear();
        self.held.clear();
        self.ready.clear();
        self.done = false;
    }

    fn moves(&self) -> bool {
        self.name.is_none()
    }
}
