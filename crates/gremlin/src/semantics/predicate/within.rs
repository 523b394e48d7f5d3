//! Membership test of `within`, indexed for long lists.

use crate::Hashing;
use crate::Value;
use crate::semantics::compare;
use std::collections::HashSet;
use std::sync::Arc;

/// Maximum number of values for which a linear scan is faster than an index.
const SCANNED_COUNT: usize = 8;

/// Values of `within`, with an index if there are many.
///
/// A string equals only strings; a vertex with a key is looked up by key among vertices with keys; an integer
/// of at most 64 bits is looked up by value among integers; all other values are compared one by one.
#[derive(Clone, Debug)]
pub(super) struct Members {
    values: Vec<Value>,
    index: Option<Arc<Index>>,
}

#[derive(Debug, Default)]
struct Index {
    texts: HashSet<Arc<str>, Hashing>,
    integers: HashSet<i64, Hashing>,
    vertices: HashSet<u64, Hashing>,
    /// Values without an index.
    others: Vec<Value>,
}

impl Members {
    pub(super) fn new(values: &[Value]) -> Self {
        let index = (values.len() > SCANNED_COUNT).then(|| Arc::new(Index::new(values)));
        Self { values: values.to_vec(), index }
    }

    pub(super) fn contains(&self, value: &Value) -> bool {
        if let Some(index) = &self.index {
            match Entry::of(value) {
                Entry::Text(text) => return index.texts.contains(text),
                Entry::Integer(number) => return index.integers.contains(&number) || index.scan(value),
                Entry::Vertex(key) => return index.vertices.contains(&key) || index.scan(value),
                Entry::Other => {}
            }
        }
        self.values.iter().any(|other| compare::equal(value, other))
    }
}

impl Index {
    fn new(values: &[Value]) -> Self {
        let mut index = Self::default();
        for value in values {
            match Entry::of(value) {
                Entry::Text(text) => {
                    index.texts.insert(text.clone());
                }
                Entry::Integer(number) => {
                    index.integers.insert(number);
                }
                Entry::Vertex(key) => {
                    index.vertices.insert(key);
                }
                Entry::Other => index.others.push(value.clone()),
            }
        }
        index
    }

    fn scan(&self, value: &Value) -> bool {
        self.others.iter().any(|other| compare::equal(value, other))
    }
}

enum Entry<'v> {
    Text(&'v Arc<str>),
    Integer(i64),
    Vertex(u64),
    Other,
}

impl<'v> Entry<'v> {
    fn of(value: &'v Value) -> Self {
        match value {
            Value::String(text) => Self::Text(text),
            Value::Byte(_) | Value::Short(_) | Value::Int(_) | Value::Long(_) => {
                value.as_integer().map_or(Self::Other, Self::Integer)
            }
            Value::Vertex(vertex) if vertex.key != 0 => Self::Vertex(vertex.key),
            _ => Self::Other,
        }
    }
}
