//! `addV` and `addE`, with their `property()` modulators.
//!
//! All arguments are evaluated on the input traverser, before the element exists.

use super::argument::{WriteArgument, is_token, legal_key, legal_label, no_value};
use super::element::{find_vertex, put_on_owner, put_on_vertex};
use super::writing::writing;
use crate::compile::Compiler;
use crate::context::Context;
use crate::error::query_error;
use crate::graph::read::{edge_value, vertex_value};
use crate::host::Owner;
use crate::modulated::Modulated;
use crate::property_write::Write;
use crate::scope::scoped;
use crate::step::Step;
use crate::traverser::{Traverser, start_value};
use std::sync::Arc;
use vervet_gremlin::{Cardinality, Instruction, Pop, T, Value};
use vervet_model::Result;

const VERTEX_LABEL: &str = "vertex";

/// Description of a new element.
#[derive(Clone)]
struct NewElement {
    label: WriteArgument,
    id: Option<WriteArgument>,
    properties: Vec<(WriteArgument, WriteArgument)>,
}

impl NewElement {
    fn build(step: &Modulated<'_>, label: &Value, compiler: &mut Compiler) -> Result<Self> {
        let mut new = Self { label: WriteArgument::new(label, compiler)?, id: None, properties: Vec::new() };
        let mut labelled = !step.arguments().is_empty();
        for Write { key, value, .. } in &step.writes {
            if is_token(key, T::Label) {
                if labelled {
                    return Err(query_error("the label is already set"));
                }
                labelled = true;
                new.label = WriteArgument::new(value, compiler)?;
            } else if is_token(key, T::Id) {
                new.id = Some(WriteArgument::new(value, compiler)?);
            } else {
                new.properties
                    .push((WriteArgument::new(key, compiler)?, WriteArgument::new(value, compiler)?));
            }
        }
        if let Some(partition) = &compiler.strategies.partition {
            let (key, value) = (Value::String(partition.key.clone()), partition.write()?);
            new.properties.push((WriteArgument::Value(key), WriteArgument::Value(value)));
        }
        Ok(new)
    }

    fn id(&mut self, traverser: &Traverser, context: &mut Context<'_>) -> Result<Option<Value>> {
        match &mut self.id {
            Some(id) => match id.get(traverser, context)? {
                Value::Null => Err(query_error("Value of T cannot be null")),
                id => Ok(Some(id)),
            },
            None => Ok(None),
        }
    }

    fn properties(
        &mut self,
        traverser: &Traverser,
        context: &mut Context<'_>,
    ) -> Result<Vec<(Arc<str>, Value)>> {
        let mut all = Vec::with_capacity(self.properties.len());
        for (key, value) in &mut self.properties {
            all.push((legal_key(key.get(traverser, context)?)?, value.get(traverser, context)?));
        }
        Ok(all)
    }
}

pub(super) fn vertex(step: &Modulated<'_>, compiler: &mut Compiler) -> Result<Box<dyn Step>> {
    let label = match step.arguments() {
        [] => Value::text(VERTEX_LABEL),
        [label] => label.clone(),
        _ => return Err(query_error("addV() takes one label")),
    };
    let mut new = NewElement::build(step, &label, compiler)?;
    Ok(writing(move |traverser, context, out| {
        let label = legal_label(new.label.get(traverser, context)?)?;
        let (id, properties) = (new.id(traverser, context)?, new.properties(traverser, context)?);
        out.push_back(vertex_value(add_vertex(id.as_ref(), &label, &properties, context)?));
        Ok(())
    }))
}

/// Adds a vertex; a repeated key gets several values.
pub(super) fn add_vertex(
    id: Option<&Value>,
    label: &str,
    properties: &[(Arc<str>, Value)],
    context: &mut Context<'_>,
) -> Result<u64> {
    let vertex = context.host.add_vertex(id, label)?;
    for (key, value) in properties {
        let several = properties.iter().filter(|(other, _)| other == key).count() > 1;
        // The vertex is new, so the only value of a key needs no list cardinality.
        let cardinality = if several { Cardinality::List } else { Cardinality::Set };
        put_on_vertex(vertex, key, value, cardinality, context)?;
    }
    Ok(vertex)
}

/// An endpoint of a new edge.
#[derive(Clone)]
enum End {
    /// The current vertex.
    Here,
    Label(Arc<str>),
    Argument(WriteArgument),
}

impl End {
    fn build(given: Option<&Instruction>, compiler: &mut Compiler) -> Result<Self> {
        let Some(given) = given else { return Ok(Self::Here) };
        match given.arguments.as_slice() {
            [Value::String(label)] => Ok(Self::Label(label.clone())),
            [argument] => Ok(Self::Argument(WriteArgument::new(argument, compiler)?)),
            _ => Err(query_error(format!("{}() takes one vertex", given.name))),
        }
    }

    fn vertex(
        &mut self,
        edge_label: &str,
        end: &str,
        traverser: &Traverser,
        context: &mut Context<'_>,
    ) -> Result<u64> {
        let value = match self {
            Self::Here => Ok(traverser.value.clone()),
            Self::Label(label) => {
                scoped(traverser, label, Pop::Last, context).ok_or_else(|| no_value(&traverser.value))
            }
            Self::Argument(given) => given.get(traverser, context),
        };
        let value = value.map_err(|error| {
            let message = format!(
                "addE({edge_label}) failed because the {end}() traversal (which should give a Vertex) failed with: {}",
                error.message()
            );
            vervet_model::Error::new(error.kind(), message)
        })?;
        let must = format!(
            "The value given to addE({edge_label}).{end}() must resolve to a Vertex or the ID of a Vertex present in the graph"
        );
        if value == Value::Null || value == start_value() {
            return Err(query_error(format!("{must}, but null was specified instead")));
        }
        let found = match &value {
            Value::Edge(_) | Value::VertexProperty(_) | Value::Property(_) => None,
            value => find_vertex(value, context)?,
        };
        found.ok_or_else(|| {
            query_error(format!("{must}. The provided value does not match any vertices in the graph"))
        })
    }
}

pub(super) fn edge(step: &Modulated<'_>, compiler: &mut Compiler) -> Result<Box<dyn Step>> {
    let [label] = step.arguments() else {
        return Err(query_error("addE() takes one label"));
    };
    let mut new = NewElement::build(step, label, compiler)?;
    let (mut from, mut to) = (End::build(step.from, compiler)?, End::build(step.to, compiler)?);
    Ok(writing(move |traverser, context, out| {
        let label = legal_label(new.label.get(traverser, context)?)?;
        let target = to.vertex(&label, "to", traverser, context)?;
        let source = from.vertex(&label, "from", traverser, context)?;
        let (id, properties) = (new.id(traverser, context)?, new.properties(traverser, context)?);
        let edge = context.host.add_edge(source, &label, target, id.as_ref())?;
        for (key, value) in &properties {
            put_on_owner(Owner::Edge(edge), key, value, context)?;
        }
        out.push_back(edge_value(edge));
        Ok(())
    }))
}
