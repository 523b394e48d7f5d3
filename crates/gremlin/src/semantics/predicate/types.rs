//! `typeOf`: the types of values, and the subtype relation.

use crate::semantics::{Error, Result};
use crate::{Extended, GType, Token, Value};

/// The type of a `typeOf` predicate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Type(GType);

impl Type {
    /// Resolves a member of `GType`, a simple name of a Java class, a class, or null.
    ///
    /// # Errors
    /// An unknown type.
    pub fn new(wanted: &Value) -> Result<Self> {
        let unknown =
            |name: &str| Error::new(format!("{name} is not a registered type; GType has those that are"));
        match wanted {
            Value::Null => Ok(Self(GType::Null)),
            Value::Token(Token::GType(wanted)) => Ok(Self(*wanted)),
            Value::String(name) => named(name).map(Self).ok_or_else(|| unknown(name)),
            Value::Extended(extended) => match &**extended {
                Extended::Class(name) => {
                    let simple = name.rsplit(['.', '$']).next().unwrap_or_default();
                    named(simple).map(Self).ok_or_else(|| unknown(name))
                }
                _ => Err(unknown(wanted.type_name())),
            },
            _ => Err(unknown(wanted.type_name())),
        }
    }

    /// Whether the type of `value` is this type or a subtype.
    #[must_use]
    pub fn has(self, value: &Value) -> bool {
        match self.0 {
            GType::BigDecimal => matches!(value, Value::BigDecimal(_)),
            GType::BigInt => matches!(value, Value::BigInteger(_)),
            GType::Binary => {
                matches!(value, Value::Extended(extended) if matches!(**extended, Extended::Bytes(_)))
            }
            GType::Boolean => matches!(value, Value::Boolean(_)),
            GType::Byte => matches!(value, Value::Byte(_)),
            GType::Char => matches!(value, Value::Char(_)),
            GType::DateTime => match value {
                Value::DateTime(_) => true,
                Value::Extended(extended) => matches!(**extended, Extended::OffsetDateTime(..)),
                _ => false,
            },
            GType::Double => matches!(value, Value::Double(_)),
            GType::Duration => matches!(value, Value::Duration(_)),
            GType::Edge => matches!(value, Value::Edge(_)),
            GType::Float => matches!(value, Value::Float(_)),
            GType::Graph => matches!(value, Value::Subgraph(_)),
            GType::Int => matches!(value, Value::Int(_)),
            GType::List => matches!(value, Value::List(_)),
            GType::Long => matches!(value, Value::Long(_)),
            GType::Map => matches!(value, Value::Map(_) | Value::Tree(_)),
            GType::Null => matches!(value, Value::Null),
            GType::Number => value.is_number(),
            GType::Path => matches!(value, Value::Path(_)),
            GType::Property => matches!(value, Value::Property(_) | Value::VertexProperty(_)),
            GType::Set => matches!(value, Value::Set(_) | Value::Bulk(_)),
            GType::Short => matches!(value, Value::Short(_)),
            GType::String => matches!(value, Value::String(_)),
            GType::Tree => matches!(value, Value::Tree(_)),
            GType::Uuid => matches!(value, Value::Uuid(_)),
            GType::Vertex => matches!(value, Value::Vertex(_)),
            GType::VertexProperty => matches!(value, Value::VertexProperty(_)),
        }
    }
}

/// The type with this simple Java class name.
fn named(name: &str) -> Option<GType> {
    Some(match name {
        "BigDecimal" => GType::BigDecimal,
        "BigInteger" => GType::BigInt,
        "ByteBuffer" => GType::Binary,
        "Boolean" => GType::Boolean,
        "Byte" => GType::Byte,
        "Character" => GType::Char,
        "OffsetDateTime" => GType::DateTime,
        "Double" => GType::Double,
        "Duration" => GType::Duration,
        "Edge" => GType::Edge,
        "Float" => GType::Float,
        "Graph" => GType::Graph,
        "Integer" => GType::Int,
        "List" => GType::List,
        "Long" => GType::Long,
        "Map" => GType::Map,
        "Number" => GType::Number,
        "Path" => GType::Path,
        "Property" => GType::Property,
        "Set" => GType::Set,
        "Short" => GType::Short,
        "String" => GType::String,
        "Tree" => GType::Tree,
        "UUID" => GType::Uuid,
        "Vertex" => GType::Vertex,
        "VertexProperty" => GType::VertexProperty,
        _ => return None,
    })
}
