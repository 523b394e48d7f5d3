//! Traversers: a value with its bulk, path, loops and sack.
//!
//! # Cost
//! 64 bytes and a value. Paths and loops are persistent lists with shared tails, so a split is a few
//! increments.
//! # Invariants
//! A path of any length is dropped without recursion, and counts against the memory cap during its lifetime.

use crate::bulk::Bulk;
use crate::memory::{Account, Memory};
use crate::size;
use std::rc::Rc;
use std::sync::Arc;
use vervet_gremlin::{Barrier, Path, Pop, Token, Value};
use vervet_model::Result;

/// Labels of one step.
pub(crate) type Labels = Rc<[Arc<str>]>;

/// See the header of this file.
#[derive(Clone, Debug)]
pub(crate) struct Traverser {
    pub(crate) value: Value,
    /// The number of equal traversers that this one represents.
    pub(crate) bulk: Bulk,
    pub(crate) path: Option<Rc<PathNode>>,
    pub(crate) loops: Option<Rc<Loop>>,
    pub(crate) sack: Option<Box<Value>>,
}

/// An object of a path, and the objects before it.
#[derive(Debug)]
pub(crate) struct PathNode {
    before: Option<Rc<PathNode>>,
    value: Value,
    labels: Labels,
    /// The account of the object and its size.
    account: Rc<Account>,
    bytes: u64,
}

/// Accounted size of an object of a path.
const NODE_BYTES: u64 = 112;

impl Drop for PathNode {
    fn drop(&mut self) {
        self.account.release(self.bytes);
        // Takes each node out of its successor before the drop, which avoids recursion.
        let mut next = self.before.take();
        while let Some(mut node) = next.and_then(Rc::into_inner) {
            next = node.before.take();
        }
    }
}

/// Loop counters of the traverser, the innermost first.
#[derive(Clone, Debug)]
pub(crate) struct Loop {
    pub(crate) name: Option<Arc<str>>,
    pub(crate) count: u32,
    pub(crate) outer: Option<Rc<Loop>>,
}

impl PathNode {
    fn new(before: Option<Rc<Self>>, value: Value, labels: Labels, memory: &Memory<'_>) -> Result<Rc<Self>> {
        let bytes = NODE_BYTES + size::bytes(&value, memory.control)?;
        let account = memory.take(bytes)?.clone();
        Ok(Rc::new(Self { before, value, labels, account, bytes }))
    }
}

/// The value of the initial traverser, which no step can create.
pub(crate) fn start_value() -> Value {
    Value::Token(Token::Barrier(Barrier::NormSack))
}

pub(crate) fn is_start(value: &Value) -> bool {
    *value == start_value()
}

impl Traverser {
    pub(crate) fn new(value: Value) -> Self {
        Self { value, bulk: Bulk::ONE, path: None, loops: None, sack: None }
    }

    /// The same traverser with another value. The pipeline extends the path.
    pub(crate) fn at(&self, value: Value) -> Self {
        let (path, loops, sack) = (self.path.clone(), self.loops.clone(), self.sack.clone());
        Self { value, bulk: self.bulk, path, loops, sack }
    }

    /// The same traverser with a bulk of 1.
    pub(crate) fn single(&self) -> Self {
        Self { bulk: Bulk::ONE, ..self.clone() }
    }

    /// Appends its value to its path.
    ///
    /// # Errors
    /// The memory cap; cancellation.
    pub(crate) fn extend_path(&mut self, labels: &Labels, memory: &Memory<'_>) -> Result<()> {
        self.path = Some(PathNode::new(self.path.take(), self.value.clone(), labels.clone(), memory)?);
        Ok(())
    }

    /// Labels the last object of its path; an empty path first receives its value.
    ///
    /// # Errors
    /// As [`Traverser::extend_path`].
    pub(crate) fn label_path(&mut self, labels: &Labels, memory: &Memory<'_>) -> Result<()> {
        let Some(last) = &self.path else { return self.extend_path(labels, memory) };
        let mut all: Vec<Arc<str>> = last.labels.to_vec();
        for label in labels.iter() {
            if !all.contains(label) {
                all.push(label.clone());
            }
        }
        self.path = Some(PathNode::new(last.before.clone(), last.value.clone(), all.into(), memory)?);
        Ok(())
    }

    /// The objects of its path, the last one first.
    pub(crate) fn backwards(&self) -> impl Iterator<Item = (&Value, &Labels)> {
        let mut next = self.path.as_deref();
        std::iter::from_fn(move || {
            let node = next?;
            next = node.before.as_deref();
            Some((&node.value, &node.labels))
        })
    }

    /// The path of the traverser.
    pub(crate) fn path(&self) -> Path {
        let mut path = Path::default();
        for (value, labels) in self.backwards() {
            path.objects.push(value.clone());
            path.labels.push(labels.to_vec());
        }
        path.objects.reverse();
        path.labels.reverse();
        path
    }

    /// The objects of its path with a label; `None`: the label does not occur.
    pub(crate) fn select(&self, label: &str, pop: Pop) -> Option<Value> {
        let mut found = self.backwards().filter(|(_, labels)| labels.iter().any(|l| **l == *label));
        match pop {
            Pop::Last => found.next().map(|(value, _)| value.clone()),
            Pop::First => found.last().map(|(value, _)| value.clone()),
            Pop::All | Pop::Mixed => {
                let mut all: Vec<Value> = found.map(|(value, _)| value.clone()).collect();
                all.reverse();
                match (pop, all.len()) {
                    (Pop::Mixed, 0) => None,
                    (Pop::Mixed, 1) => all.pop(),
                    _ => Some(Value::list(all)),
                }
            }
        }
    }

    /// Whether a step of its path has this label.
    pub(crate) fn has_label(&self, label: &str) -> bool {
        self.backwards().any(|(_, labels)| labels.iter().any(|l| **l == *label))
    }

    /// The counter of the named loop, or of the innermost.
    pub(crate) fn loops(&self, name: Option<&str>) -> Option<u32> {
        let mut next = self.loops.as_deref();
        while let Some(found) = next {
            if name.is_none() || found.name.as_deref() == name {
                return Some(found.count);
            }
            next = found.outer.as_deref();
        }
        None
    }

    /// Whether two traversers can merge into one with the sum of their bulks.
    pub(crate) fn merges_with(&self, other: &Self) -> bool {
        let same_path = match (&self.path, &other.path) {
            (None, None) => true,
            (Some(a), Some(b)) => Rc::ptr_eq(a, b),
            _ => false,
        };
        let same_loops = match (&self.loops, &other.loops) {
            (None, None) => true,
            (Some(a), Some(b)) => {
                Rc::ptr_eq(a, b) || (a.count == b.count && a.outer.is_none() && b.outer.is_none())
            }
            _ => false,
        };
        same_path && same_loops && self.sack == other.sack && self.value == other.value
    }
}
