//! Logical algebra: the meaning of SPARQL and Gremlin queries, independent of storage and join order.
//!
//! A front end turns text into a [`Query`], which the planner turns into a plan of kernels, or into an
//! [`Update`], whose patterns are queries.
//!
//! # Invariants
//! 1. A [`Variable`] has one meaning in the whole query: variables hidden by a scope (those that a sub-query
//!    does not project, blank nodes of patterns) have numbers of their own. Hence operators are independent
//!    of scopes.
//! 2. An expression mentions only variables that its input may bind; the front end has replaced every
//!    other one by [`Expression::Unbound`].
//! 3. Solutions are bags; only [`Node::Distinct`] and the aggregates marked `distinct` make sets.
//! # Not here
//! Ids (constants are terms), join order, access paths.
#![forbid(unsafe_code)]

mod certain;
mod dataset;
mod distinct;
mod expression;
mod node;
mod path;
mod pattern;
mod query;
mod rename;
mod service;
mod update;
mod variable;
mod variable_set;

pub use dataset::{Dataset, MERGED_MAX, TooManyGraphs};
pub use expression::{Aggregate, AggregateKind, Comparator, Exists, Expression, Function};
pub use node::{Node, OrderKey};
pub use path::{Path, PathPattern};
pub use pattern::{GraphSlot, Pattern, Slot};
pub use query::{Form, Query, TripleTemplate};
pub use service::Service;
pub use update::{GraphTarget, Modify, Operation, Quad, Quads, TemplateTerm, Transfer, Update};
pub use variable::Variable;
pub use variable_set::VariableSet;
