//! `group().by(…).by(traversal that reduces)`: one traversal for each group, fed as traversers come.

use crate::by::By;
use crate::context::{Context, SideEffect};
use crate::step::{Input, Pipeline, Step};
use crate::traverser::Traverser;
use std::collections::VecDeque;
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
    groups: Groups,
    /// Traversers that go on behind the side effect.
    ready: VecDeque<Traverser>,
    done: bool,
}

impl Grouped {
    pub(crate) fn new(key: By, members: Pipeline, name: Option<Arc<str>>) -> Self {
        Self { key, members, name, groups: Groups::default(), ready: VecDeque::new(), done: false }
    }

    fn add(&mut self, traverser: &Traverser, context: &mut Context<'_>) -> Result<()> {
        let Some(key) = self.key.apply(traverser, context)? else { return Ok(()) };
        context.hold(1)?;
        let groups = match &self.name {
            Some(name) => context.groups.entry(name.clone()).or_default(),
            None => &mut self.groups,
        };
        let members = &self.members;
        groups.entry(key).or_insert_with(|| members.clone()).start(traverser.clone());
        Ok(())
    }
}

fn result(groups: &Groups, context: &mut Context<'_>) -> Result<Value> {
    let mut all = Map::default();
    for (key, members) in groups {
        // A copy, since more may come by the time it is asked again.
        match members.clone().next(context)? {
            Some(result) => {
                all.insert(key.clone(), result.value);
            }
            None if context.settings.productive => {
                all.insert(key.clone(), Value::Null);
            }
            None => {}
        }
    }
    Ok(Value::map(all))
}

impl Step for Grouped {
    fn next(&mut self, input: &mut Input<'_>, context: &mut Context<'_>) -> Result<Option<Traverser>> {
        let mut any = false;
        while let Some(traverser) = input.next(context)? {
            any = true;
            self.add(&traverser, context)?;
            if self.name.is_some() {
                self.ready.push_back(traverser);
            }
        }
        if let Some(name) = self.name.clone() {
            if any {
                let groups = context.groups.remove(&name).unwrap_or_default();
                let value = result(&groups, context);
                context.groups.insert(name.clone(), groups);
                context.side_effects.insert(name, SideEffect { value: value?, operator: None });
            }
            return Ok(self.ready.pop_front());
        }
        if self.done && !any {
            return Ok(None);
        }
        self.done = true;
        let value = result(&std::mem::take(&mut self.groups), context)?;
        let mut traverser = Traverser::new(value);
        traverser.sack = context.settings.sack.clone().map(Box::new);
        Ok(Some(traverser))
    }

    fn reset(&mut self) {
        // A side effect stays what it is.
        self.groups.clear();
        self.ready.clear();
        self.done = false;
    }

    fn moves(&self) -> bool {
        self.name.is_none()
    }
}
