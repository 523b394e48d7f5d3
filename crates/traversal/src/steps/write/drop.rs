//! `drop`: removes elements and properties, with their dependents. Computed properties are not in the graph.

use super::element::{find_edge, find_vertex};
use crate::error::query_error;
use crate::graph::computed::is_computed;
use crate::host::Owner;
use crate::semantic::error_text;
use crate::step::Step;
use crate::steps::make;
use vervet_gremlin::Value;

pub(super) fn build() -> Box<dyn Step> {
    make::filter(|traverser, context| {
        context.tick()?;
        match &traverser.value {
            value @ Value::Vertex(_) => {
                if let Some(vertex) = find_vertex(value, context)? {
                    context.host.remove_vertex(vertex)?;
                }
            }
            Value::Edge(edge) => {
                if let Some(edge) = find_edge(edge, context)? {
                    context.host.remove_edge(edge)?;
                }
            }
            Value::VertexProperty(property) => {
                if property.key.vertex != 0 && !is_computed(property.key) {
                    context.host.remove_vertex_property(property.key)?;
                }
            }
            Value::Property(property) => match &property.element {
                Value::Edge(edge) => {
                    if let Some(edge) = find_edge(edge, context)? {
                        context.host.remove_property(Owner::Edge(edge), &property.key)?;
                    }
                }
                Value::VertexProperty(owner) if owner.key.vertex != 0 => {
                    context.host.remove_property(Owner::VertexProperty(owner.key), &property.key)?;
                }
                _ => return Err(query_error("the owner of this property is not in the graph")),
            },
            other => {
                let message = format!("The incoming object is not removable: {}", error_text(other));
                return Err(query_error(message));
            }
        }
        Ok(false)
    })
}
