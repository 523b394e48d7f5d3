//! `property` of an existing element.

use super::argument::{WriteArgument, is_token, legal_key};
use super::element::{find_edge, find_vertex, put_on_owner, put_on_vertex};
use crate::compile::Compiler;
use crate::context::Context;
use crate::error::query_error;
use crate::host::Owner;
use crate::property_write::Write;
use crate::step::Step;
use crate::steps::make;
use std::sync::Arc;
use vervet_gremlin::{Cardinality, Edge, T, Value, VertexProperty};
use vervet_model::Result;

pub(super) fn build(write: &Write<'_>, compiler: &mut Compiler) -> Result<Box<dyn Step>> {
    let cardinality = write.cardinality;
    let (mut key, mut value) =
        (WriteArgument::new(write.key, compiler)?, WriteArgument::new(write.value, compiler)?);
    let mut about: Vec<(WriteArgument, WriteArgument)> = Vec::with_capacity(write.about.len() / 2);
    for pair in write.about.chunks_exact(2) {
        if is_token(&pair[0], T::Id) {
            return Err(
                query_error("a property cannot be given an id").with_hint("the database assigns the id")
            );
        }
        about.push((WriteArgument::new(&pair[0], compiler)?, WriteArgument::new(&pair[1], compiler)?));
    }
    Ok(make::with_each(move |mut traverser, context| {
        let key = legal_key(key.get(&traverser, context)?)?;
        let value = value.get(&traverser, context)?;
        let mut said = Vec::with_capacity(about.len());
        for (key, value) in &mut about {
            said.push((legal_key(key.get(&traverser, context)?)?, value.get(&traverser, context)?));
        }
        if let Some(changed) =
            put(&traverser.value, cardinality, &key, &value, &said, traverser.bulk.get(), context)?
        {
            traverser.value = changed;
        }
        Ok(Some(traverser))
    }))
}

/// Sets a property; returns the element if its identity changes.
fn put(
    element: &Value,
    cardinality: Option<Cardinality>,
    key: &Arc<str>,
    value: &Value,
    said: &[(Arc<str>, Value)],
    times: u64,
    context: &mut Context<'_>,
) -> Result<Option<Value>> {
    if cardinality.is_some() && !matches!(element, Value::Vertex(_)) {
        return Err(query_error(format!(
            "Property cardinality can only be set for a Vertex but the traversal encountered {} for key: {key}",
            element.type_name()
        )));
    }
    match element {
        Value::Vertex(_) => {
            let Some(vertex) = find_vertex(element, context)? else {
                return Err(missing_element_error(element));
            };
            let cardinality = cardinality.unwrap_or(Cardinality::Single);
            let times = if cardinality == Cardinality::List { times } else { 1 };
            for _ in 0..times {
                context.tick()?;
                context.keep(value)?;
                let Some(put) = put_on_vertex(vertex, key, value, cardinality, context)? else { continue };
                let mut owner = Owner::VertexProperty(put);
                for (key, value) in said {
                    owner = put_on_owner(owner, key, value, context)?;
                }
            }
            Ok(None)
        }
        Value::Edge(edge) => {
            let Some(known) = find_edge(edge, context)? else { return Err(missing_element_error(element)) };
            Ok(match put_on_owner(Owner::Edge(known), key, value, context)? {
                Owner::Edge(key) if key != edge.key => {
                    Some(Value::Edge(Arc::new(Edge { key, detail: None })))
                }
                _ => None,
            })
        }
        Value::VertexProperty(property) => {
            if property.key.vertex == 0 {
                return Err(missing_element_error(element));
            }
            Ok(match put_on_owner(Owner::VertexProperty(property.key), key, value, context)? {
                Owner::VertexProperty(key) if key != property.key => {
                    Some(Value::VertexProperty(Arc::new(VertexProperty { key, ..property.as_ref().clone() })))
                }
                _ => None,
            })
        }
        other => Err(query_error(format!("property() needs an element, found a {}", other.type_name()))),
    }
}

fn missing_element_error(element: &Value) -> vervet_model::Error {
    query_error(format!("this {} is not in the graph", element.type_name()))
}
