//! Mutating steps.
//!
//! # Shape
//! * `argument`: arguments, and validation of labels and keys; `element`: elements by id, and their
//!   properties; `writing`: the step that runs a mutation for each traverser of a bulk.
//! * `add`: `addV`, `addE`, with their `property()` modulators.
//! * `put`: `property` of existing elements.
//! * `drop`: `drop`.
//! * `merge`: maps of `mergeV` and `mergeE`; `merge_vertex`, `merge_edge`: these steps.
//! # Invariants
//! 1. The compiler inserts a barrier before a step that writes (also in a nested traversal) if earlier steps
//!    are still reading. So all reads precede the first write, and a traversal never visits its own
//!    additions.
//! 2. A traverser with a bulk of n writes n times.
//! 3. There are no null values: `property(k, null)` removes the value of a single-valued key and is otherwise
//!    a no-op.
//! # Source
//! Behaviour and messages are those of Apache TinkerPop 3.8.1. Different: invariant 1, where TinkerPop leaves
//! the outcome to the order of its steps; a step without a write, such as `property(null)`, is no step.

mod add;
mod argument;
mod drop;
mod element;
mod merge;
mod merge_edge;
mod merge_vertex;
mod put;
mod writing;

use crate::compile::Compiler;
use crate::modulated::Modulated;
use crate::step::Node;
use vervet_model::Result;

/// Appends the nodes of a mutating step.
pub(crate) fn build(step: &Modulated<'_>, compiler: &mut Compiler, nodes: &mut Vec<Node>) -> Result<()> {
    compiler.strategies.check_write(step)?;
    compiler.mutates = true;
    let built = match step.name() {
        "addV" => add::vertex(step, compiler)?,
        "addE" => add::edge(step, compiler)?,
        "drop" => drop::build(),
        "mergeV" => merge_vertex::build(step, compiler)?,
        "mergeE" => merge_edge::build(step, compiler)?,
        _ => {
            for write in &step.writes {
                let step = put::build(write, compiler)?;
                nodes.push(compiler.node(step));
            }
            return Ok(());
        }
    };
    nodes.push(compiler.node(built));
    Ok(())
}
