//! The `by(…)` modulator: the projection that it applies to a traverser.

use crate::context::Context;
use crate::graph::element::token_value;
use crate::graph::read;
use crate::scope::select_one;
use crate::semantic::error_text;
use crate::step::Pipeline;
use crate::traverser::Traverser;
use std::borrow::Cow;
use std::sync::Arc;
use vervet_gremlin::{Bytecode, Column, Instruction, Set, T, Value};
use vervet_model::{Error, ErrorKind, Result};

/// The kind of a projection.
#[derive(Clone)]
pub(crate) enum By {
    /// The value itself.
    Identity,
    /// A property, or the value of a map.
    Key(Arc<str>),
    /// Id, label, key or value.
    Token(T),
    /// Keys or values.
    Column(Column),
    /// The first value of a traversal.
    Traversal(Pipeline),
    /// `values("key")` or `select("label").values("key")` of elements, read without a nested traverser.
    Values { label: Option<Arc<str>>, key: Arc<str>, otherwise: Pipeline },
    /// `select("label")`, read without a nested traverser.
    Selected { label: Arc<str>, steps: Pipeline },
}

impl By {
    /// The projected value; `None` if the projection is not productive.
    pub(crate) fn apply(
        &mut self,
        traverser: &Traverser,
        context: &mut Context<'_>,
    ) -> Result<Option<Value>> {
        let found = match self {
            Self::Identity => return Ok(Some(traverser.value.clone())),
            Self::Key(key) => of_key(&traverser.value, key, context)?,
            Self::Token(token) => token_value(&traverser.value, *token, context)?,
            Self::Column(column) => Some(column_of(&traverser.value, *column)?),
            Self::Traversal(traversal) => traversal.first(traverser, context)?,
            Self::Selected { label, .. } => select_one(traverser, label, context),
            Self::Values { label, key, otherwise } => {
                let selected = match label {
                    None => Some(Cow::Borrowed(&traverser.value)),
                    Some(label) => select_one(traverser, label, context).map(Cow::Owned),
                };
                match selected {
                    Some(value) if is_element(&value) => of_key(&value, key, context)?,
                    _ => otherwise.first(traverser, context)?,
                }
            }
        };
        Ok(match found {
            None if context.settings.productive => Some(Value::Null),
            found => found,
        })
    }

    /// As [`By::apply`], for a value without a traverser.
    pub(crate) fn of(
        &mut self,
        value: &Value,
        like: &Traverser,
        context: &mut Context<'_>,
    ) -> Result<Option<Value>> {
        if let Self::Identity = self {
            return Ok(Some(value.clone()));
        }
        self.apply(&like.at(value.clone()), context)
    }
}

fn is_element(value: &Value) -> bool {
    matches!(value, Value::Vertex(_) | Value::Edge(_) | Value::VertexProperty(_))
}

/// The label of `select("label")`.
pub(crate) fn selected(traversal: &Bytecode) -> Option<Arc<str>> {
    match traversal.steps.as_slice() {
        [select] if &*select.name == "select" => match select.arguments.as_slice() {
            [Value::String(label)] => Some(label.clone()),
            _ => None,
        },
        _ => None,
    }
}

/// The label and the key of `select("label").values("key")`, if the traversal has exactly that form.
pub(crate) fn values_of(traversal: &Bytecode) -> Option<(Option<Arc<str>>, Arc<str>)> {
    let one = |instruction: &Instruction, name: &str| match instruction.arguments.as_slice() {
        [Value::String(text)] if &*instruction.name == name => Some(text.clone()),
        _ => None,
    };
    match traversal.steps.as_slice() {
        [values] => Some((None, one(values, "values")?)),
        [select, values] => Some((Some(one(select, "select")?), one(values, "values")?)),
        _ => None,
    }
}

/// The property of an element, or the value of a map entry.
fn of_key(value: &Value, key: &Arc<str>, context: &mut Context<'_>) -> Result<Option<Value>> {
    match value {
        // A missing map key yields null, which is productive.
        Value::Map(map) => Ok(Some(map.get(&Value::String(key.clone())).cloned().unwrap_or_default())),
        Value::Entry(entry) => Ok((entry.0.as_text() == Some(&**key)).then(|| entry.1.clone())),
        Value::Vertex(_) | Value::Edge(_) | Value::VertexProperty(_) => {
            let keys = [key.clone()];
            context.read(|snapshot, names| {
                let mut first = None;
                read::values(snapshot, names, value, &keys, &mut |value| {
                    first.get_or_insert(value);
                })?;
                Ok(first)
            })
        }
        Value::Property(property) => Ok((property.key == *key).then(|| property.value.clone())),
        other => Err(Error::new(
            ErrorKind::Query,
            format!(
                "The by(\"{key}\") modulator can only be applied to a traverser that is an Element or Map - it is being applied to [{}] a {} class instead",
                error_text(other),
                other.type_name()
            ),
        )),
    }
}

/// The keys or values of a map; the objects or labels of a path.
pub(crate) fn column_of(value: &Value, column: Column) -> Result<Value> {
    Ok(match (value, column) {
        (Value::Entry(entry), Column::Keys) => entry.0.clone(),
        (Value::Entry(entry), Column::Values) => entry.1.clone(),
        (Value::Map(map), Column::Keys) => Value::Set(Arc::new(map.keys().cloned().collect::<Set>())),
        (Value::Map(map), Column::Values) => Value::list(map.values().cloned().collect()),
        (Value::Path(path), Column::Keys) => Value::list(
            path.labels
                .iter()
                .map(|labels| Value::set(labels.iter().map(|label| Value::String(label.clone()))))
                .collect(),
        ),
        (Value::Path(path), Column::Values) => Value::list(path.objects.clone()),
        (other, column) => {
            let message = format!(
                "The provided object does not have accessible {}: {}",
                column.name(),
                other.type_name()
            );
            return Err(Error::new(ErrorKind::Query, message));
        }
    })
}
