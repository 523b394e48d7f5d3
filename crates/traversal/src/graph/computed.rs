//! Computed properties: results of algorithms, visible to the rest of a traversal and never stored.
//!
//! A computed property shadows stored properties with the same key.

use rustc_hash::FxHashMap;
use std::sync::Arc;
use vervet_gremlin::{PropertyKey, Value};
use vervet_model::{Id, Tag};

/// See the header of this file.
#[derive(Debug, Default)]
pub(crate) struct Computed {
    /// Values by vertex, for each key.
    keys: Vec<(Arc<str>, FxHashMap<u64, Value>)>,
}

impl Computed {
    /// Sets a computed property; replaces the values of an earlier one with the same key.
    pub(crate) fn put(&mut self, key: &Arc<str>, values: FxHashMap<u64, Value>) {
        match self.keys.iter_mut().find(|(known, _)| known == key) {
            Some((_, old)) => *old = values,
            None => self.keys.push((key.clone(), values)),
        }
    }

    /// Whether there are no computed properties.
    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Whether there is a computed property with this key.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.keys.iter().any(|(known, _)| **known == *key)
    }

    /// The computed properties of a vertex with these keys; all if `wanted` is empty.
    pub(crate) fn of(&self, vertex: u64, wanted: &[Arc<str>]) -> Vec<(PropertyKey, Arc<str>, Value)> {
        let mut found = Vec::new();
        for (number, (key, values)) in (0..).zip(&self.keys) {
            if let Some(value) = values.get(&vertex)
                && (wanted.is_empty() || wanted.contains(key))
            {
                let id =
                    PropertyKey { vertex, key: Id::new(Tag::Computed, number).bits(), value: 0, edge: 0 };
                found.push((id, key.clone(), value.clone()));
            }
        }
        found
    }
}

/// Whether a property is computed rather than stored.
pub(crate) fn is_computed(property: PropertyKey) -> bool {
    Id::from_bits(property.key).tag() == Tag::Computed
}
