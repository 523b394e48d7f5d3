//! Mutating steps.
//!
//! # Shape
//! * this file: shared parts: arguments, elements by id, validation of names, parsing of `property()`.
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
mod drop;
mod merge;
mod merge_edge;
mod merge_vertex;
mod put;

use crate::bulk::Bulk;
use crate::compile::Compiler;
use crate::context::Context;
use crate::error::illegal;
use crate::graph::computed::is_computed;
use crate::graph::ids;
use crate::graph::literal::literal;
use crate::graph::read::{is_vertex, properties};
use crate::host::Owner;
use crate::modulated::Modulated;
use crate::outputs::Outputs;
use crate::semantic::error_text;
use crate::step::{Input, Node, Pipeline, Step};
use crate::traverser::{Traverser, start_value};
use std::sync::Arc;
use vervet_gremlin::{Cardinality, EdgeKey, PropertyKey, T, Token, Value};
use vervet_model::{Error, Result};

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

/// An argument: a constant, or a traversal that computes it.
#[derive(Clone)]
enum WriteArgument {
    Value(Value),
    Traversal(Pipeline),
}

impl WriteArgument {
    fn new(argument: &Value, compiler: &mut Compiler) -> Result<Self> {
        Ok(match argument {
            Value::Traversal(traversal) => Self::Traversal(compiler.nested(traversal)?),
            value => Self::Value(value.clone()),
        })
    }

    fn get(&mut self, traverser: &Traverser, context: &mut Context<'_>) -> Result<Value> {
        match self {
            Self::Value(value) => Ok(value.clone()),
            Self::Traversal(traversal) => {
                traversal.first(traverser, context)?.ok_or_else(|| no_value(&traverser.value))
            }
        }
    }
}

fn no_value(from: &Value) -> Error {
    let from = if *from == start_value() { "the start".to_owned() } else { error_text(from) };
    illegal(format!("The provided traverser does not map to a value: {from}"))
}

/// Validates an element label.
fn legal_label(label: Value) -> Result<Arc<str>> {
    match label {
        Value::String(label) if label.is_empty() => Err(illegal("Label can not be empty")),
        Value::String(label) if label.starts_with('~') => {
            Err(illegal(format!("Label can not be a hidden key: {label}")))
        }
        Value::String(label) => Ok(label),
        Value::Null => Err(illegal("Label can not be null")),
        other => Err(illegal(format!("a label must be a String, found a {}", other.type_name()))),
    }
}

/// Validates a property key.
fn legal_key(key: Value) -> Result<Arc<str>> {
    match key {
        Value::String(key) if key.is_empty() => Err(illegal("Property key can not be the empty string")),
        Value::String(key) if key.starts_with('~') => {
            Err(illegal(format!("Property key can not be a hidden key: {key}")))
        }
        Value::String(key) => Ok(key),
        Value::Null => Err(illegal("Property key can not be null")),
        Value::Token(Token::T(token)) => {
            Err(illegal(format!("T.{} is immutable on existing elements", token.name())))
        }
        other => {
            Err(illegal(format!("the key of a property must be a String, found a {}", other.type_name())))
        }
    }
}

/// Adds a value to a vertex property; returns its key if it then exists.
fn put_on_vertex(
    vertex: u64,
    key: &Arc<str>,
    value: &Value,
    cardinality: Cardinality,
    context: &mut Context<'_>,
) -> Result<Option<PropertyKey>> {
    if *value != Value::Null {
        return context.host.put_vertex_property(vertex, key, &literal(value)?, cardinality).map(Some);
    }
    if cardinality == Cardinality::Single {
        let (vertex, keys) = (crate::graph::read::vertex_value(vertex), [key.clone()]);
        let mut found = Vec::new();
        context.read(|snapshot, names| {
            found.clear();
            properties(snapshot, names, &vertex, &keys, &mut |value| found.push(value))
        })?;
        for value in found {
            if let Value::VertexProperty(property) = value
                && !is_computed(property.key)
            {
                context.host.remove_vertex_property(property.key)?;
            }
        }
    }
    Ok(None)
}

/// Sets the only value of a property of an edge or of a vertex property.
fn put_on_owner(owner: Owner, key: &Arc<str>, value: &Value, context: &mut Context<'_>) -> Result<Owner> {
    if *value == Value::Null {
        context.host.remove_property(owner, key)?;
        return Ok(owner);
    }
    context.host.put_property(owner, key, &literal(value)?)
}

/// The vertex of a value, which is the vertex or its id.
fn find_vertex(value: &Value, context: &mut Context<'_>) -> Result<Option<u64>> {
    match value {
        Value::Vertex(vertex) if vertex.key != 0 => return Ok(Some(vertex.key)),
        Value::Null => return Ok(None),
        _ => {}
    }
    let id = match value {
        Value::Vertex(vertex) => vertex.id().clone(),
        id => id.clone(),
    };
    context.read(|snapshot, names| match ids::find_vertex(snapshot, &id)? {
        Some(found) if is_vertex(snapshot, names, found)? => Ok(Some(found.bits())),
        _ => Ok(None),
    })
}

/// The edge of a value, if it exists; an edge from a client is looked up by its id.
fn find_edge(edge: &vervet_gremlin::Edge, context: &mut Context<'_>) -> Result<Option<EdgeKey>> {
    if edge.key.is_known() {
        return Ok(Some(edge.key));
    }
    context.read(|snapshot, names| ids::find_edge(snapshot, names, edge.id()))
}

/// Whether a map key is this token, as opposed to a property key.
fn is_token(key: &Value, token: T) -> bool {
    *key == Value::Token(Token::T(token))
}

/// A mutating flat-map step that runs once for each traverser of a bulk.
fn writing(
    of: impl FnMut(&Traverser, &mut Context<'_>, &mut Outputs) -> Result<()> + Clone + 'static,
) -> Box<dyn Step> {
    Box::new(Writing { of, rest: None, values: Outputs::default(), from: None })
}

#[derive(Clone)]
struct Writing<F> {
    of: F,
    /// The rest of the bulk, for which the step has not run.
    rest: Option<Traverser>,
    from: Option<Traverser>,
    values: Outputs,
}

impl<F> Step for Writing<F>
where
    F: FnMut(&Traverser, &mut Context<'_>, &mut Outputs) -> Result<()> + Clone + 'static,
{
    fn next(&mut self, input: &mut Input<'_>, context: &mut Context<'_>) -> Result<Option<Traverser>> {
        loop {
            if let (Some(from), Some(value)) = (&self.from, self.values.pop()) {
                return Ok(Some(from.at(value.0)));
            }
            let Some(mut traverser) = (match self.rest.take() {
                Some(rest) => Some(rest),
                None => input.next(context)?,
            }) else {
                return Ok(None);
            };
            context.tick()?;
            if let Some(others) = traverser.bulk.minus(1) {
                self.rest = Some(Traverser { bulk: others, ..traverser.clone() });
                traverser.bulk = Bulk::ONE;
            }
            // The transaction holds the written data.
            context.keep(&Value::Null)?;
            self.values.clear();
            (self.of)(&traverser, context, &mut self.values)?;
            self.from = Some(traverser);
        }
    }

    fn reset(&mut self) {
        self.rest = None;
        self.from = None;
        self.values.clear();
    }

    fn moves(&self) -> bool {
        true
    }
}
