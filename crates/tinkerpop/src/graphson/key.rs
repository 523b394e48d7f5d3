//! Text form of map keys where JSON requires string keys, as TinkerPop prints them.

use crate::limits::DEPTH_MAX;
use crate::{WriteError, iso8601, number};
use base64::Engine;
use vervet_gremlin::{Extended, Value};

type Result<T> = std::result::Result<T, WriteError>;

/// The text form of a map key, as TinkerPop prints it.
pub(super) fn key_text(key: &Value, version: u8, depth: usize) -> Result<String> {
    let depth = depth.checked_sub(1).ok_or_else(|| {
        WriteError::too_large(format!("cannot write keys with a nesting depth over {DEPTH_MAX}"))
    })?;
    let text = |value: &Value| key_text(value, version, depth);
    let all = |values: &mut dyn Iterator<Item = &Value>| -> Result<String> {
        Ok(values.map(text).collect::<Result<Vec<_>>>()?.join(", "))
    };
    let details = || WriteError::no_details("an element as a key");
    Ok(match key {
        Value::Null => "null".to_owned(),
        Value::Boolean(value) => value.to_string(),
        Value::Byte(number) => number.to_string(),
        Value::Short(number) => number.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Long(number) => number.to_string(),
        Value::Float(number) => format!("{number:?}"),
        Value::Double(number) => format!("{number:?}"),
        Value::BigInteger(number) => {
            number::checked_bits(number.bits())?;
            number.to_string()
        }
        Value::BigDecimal(number) => {
            let (unscaled, scale) = number.as_bigint_and_scale();
            number::checked_bits(unscaled.bits())?;
            number::checked_scale(scale).map_err(WriteError::too_large)?;
            number::decimal_text(number)
        }
        Value::Char(character) => character.to_string(),
        Value::String(text) => text.to_string(),
        Value::Uuid(uuid) => uuid.to_string(),
        Value::DateTime(time) => {
            let (y, m, d, t, o) = iso8601::date_time_parts(time);
            iso8601::date_time_text(y, m, d, t, o)
        }
        Value::Duration(duration) => iso8601::duration_text(*duration),
        Value::Token(token) => token.name().to_owned(),
        Value::List(values) => format!("[{}]", all(&mut values.iter())?),
        Value::Set(values) => format!("[{}]", all(&mut values.iter())?),
        Value::Map(map) => {
            let pairs = map.iter().map(|(key, value)| Ok(format!("{}={}", text(key)?, text(value)?)));
            format!("{{{}}}", pairs.collect::<Result<Vec<_>>>()?.join(", "))
        }
        Value::Vertex(vertex) => {
            let id = text(&vertex.detail.as_ref().ok_or_else(details)?.id)?;
            if version == 2 { id } else { format!("v[{id}]") }
        }
        Value::Edge(edge) => {
            let detail = edge.detail.as_ref().ok_or_else(details)?;
            let id = text(&detail.id)?;
            if version == 2 {
                id
            } else {
                let (source, target) = (text(detail.source.id())?, text(detail.target.id())?);
                format!("e[{id}][{source}-{}->{target}]", detail.label)
            }
        }
        Value::VertexProperty(property) if version == 2 => {
            text(&property.detail.as_ref().ok_or_else(details)?.id)?
        }
        Value::VertexProperty(property) => format!("vp[{}->{}]", property.label, text(&property.value)?),
        Value::Property(property) => format!("p[{}->{}]", property.key, text(&property.value)?),
        Value::Path(path) => format!("path[{}]", all(&mut path.objects.iter())?),
        Value::Extended(extended) => match extended.as_ref() {
            Extended::Date(number) | Extended::Timestamp(number) => number.to_string(),
            Extended::Class(name) => name.to_string(),
            Extended::InetAddress(address) => address.to_string(),
            Extended::Bytes(bytes) => base64::engine::general_purpose::STANDARD.encode(bytes),
            other => iso8601::text(other).unwrap_or_default(),
        },
        other => {
            let message = format!("could not write a value of type {} as a key of JSON", other.type_name());
            return Err(WriteError::unsupported(message));
        }
    })
}
