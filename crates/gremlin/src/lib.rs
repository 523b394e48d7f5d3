//! The Gremlin language without a graph: values and their functions, bytecode, and text.
//!
//! # Shape
//! * `value`: [`Value`], the type of every traverser, argument and result.
//! * `bytecode`: [`Bytecode`], a traversal as lists of instructions, the common form of text and wire
//!   formats.
//! * `token`: the enumerations of the language (`T.id`, `Order.desc`).
//! * `predicate`: [`P`], the predicates of `has` and `is`.
//! * [`text`]: the parser and printer of Gremlin text.
//! # Not here
//! Storage and execution (`vervet-traversal`), wire formats (`vervet-tinkerpop`).
#![forbid(unsafe_code)]

mod bytecode;
mod predicate;
pub mod semantics;
mod token;
mod value;

pub mod text;

pub use bytecode::{Bytecode, Instruction, Lambda, Span, Strategy};
pub use predicate::{Comparison, P, TextTest};
pub use token::{
    Barrier, Cardinality, Column, Direction, GType, Merge, Operator, Order, Pick, Pop, Scope, T, TimeUnit,
    Token,
};
pub use value::element::{
    Edge, EdgeDetail, EdgeKey, Path, Property, PropertyDetail, PropertyKey, Subgraph, Tree, Vertex,
    VertexDetail, VertexProperty,
};
pub use value::extended::{Duration, Extended};
pub use value::metrics::{Metric, Metrics};
pub use value::{Bulk, Hashing, Map, Set, Value};
