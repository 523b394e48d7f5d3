//! Gremlin, up to the border of the graph: what values there are, what may be done with them, and what a
//! traversal says, as text or as bytecode.
//!
//! # Shape
//! * `value`: [`Value`], everything that a traverser, an argument or a result can be.
//! * `bytecode`: [`Bytecode`], a traversal as the lists of its steps. Text and wire formats both end here.
//! * `token`: the enumerations of the language (`T.id`, `Order.desc`).
//! * `predicate`: [`P`], what `has` and `is` test.
//! * [`text`]: Gremlin as text, read and printed.
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
