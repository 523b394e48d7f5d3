//! Values of elements and of the ids in query rows, read in the context of a traversal.

use super::{ids, literal, read};
use crate::context::Context;
use vervet_gremlin::{T, Token, Value};
use vervet_model::{Error, Id, Result, Tag};

/// The id, label, key or value of an element; `None` if it has none.
pub(crate) fn token_value(value: &Value, token: T, context: &mut Context<'_>) -> Result<Option<Value>> {
    let key_name = |context: &mut Context<'_>, key: u64| {
        context.read(|snapshot, names| names.key_name(snapshot, Id::from_bits(key)))
    };
    Ok(match (token, value) {
        (T::Id, Value::Vertex(vertex)) if vertex.key != 0 => {
            Some(context.read(|snapshot, _| ids::vertex_id(snapshot, Id::from_bits(vertex.key)))?)
        }
        (T::Id, Value::Vertex(vertex)) => Some(vertex.id().clone()),
        (T::Id, Value::Edge(edge)) if edge.key.is_known() => {
            Some(context.read(|snapshot, names| ids::edge_id(snapshot, names, edge.key))?)
        }
        (T::Id, Value::Edge(edge)) => Some(edge.id().clone()),
        (T::Id, Value::VertexProperty(property)) => {
            Some(context.read(|snapshot, names| ids::property_id(snapshot, names, property.key))?)
        }
        (T::Label, Value::Vertex(vertex)) => Some(Value::String(
            context.read(|snapshot, names| read::vertex_label(snapshot, names, vertex.key))?,
        )),
        (T::Label, Value::Edge(edge)) => Some(Value::String(key_name(context, edge.key.label)?)),
        (T::Label | T::Key, Value::VertexProperty(property)) => Some(Value::String(property.label.clone())),
        (T::Key, Value::Property(property)) => Some(Value::String(property.key.clone())),
        (T::Value, Value::VertexProperty(property)) => Some(property.value.clone()),
        (T::Value, Value::Property(property)) => Some(property.value.clone()),
        (token, Value::Map(map)) => map.get(&Value::Token(Token::T(token))).cloned(),
        _ => None,
    })
}

/// The value of an id in a row.
pub(crate) fn value_of(id: Id, context: &mut Context<'_>) -> Result<Option<Value>> {
    match id.tag() {
        Tag::Vertex => Ok(Some(read::vertex_value(id.bits()))),
        Tag::Unbound | Tag::Edge | Tag::Computed => {
            Err(Error::internal("a query of a traversal gave what is no vertex and no value"))
        }
        _ => context.read(|snapshot, _| literal::value(snapshot, id)),
    }
}
