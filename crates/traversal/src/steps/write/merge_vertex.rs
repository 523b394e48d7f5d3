//! `mergeV`: the vertices that match a map, or a new vertex.

use super::add::add_vertex;
use super::argument::legal_key;
use super::element::put_on_vertex;
use super::merge::{ID, LABEL, MergeKind, Merging, split};
use super::writing::writing;
use crate::compile::Compiler;
use crate::graph::read::vertex_value;
use crate::modulated::Modulated;
use crate::step::Step;
use std::sync::Arc;
use vervet_gremlin::{Cardinality, Value};
use vervet_model::Result;

pub(super) fn build(step: &Modulated<'_>, compiler: &mut Compiler) -> Result<Box<dyn Step>> {
    let mut merging = Merging::build(MergeKind::Vertex, step, compiler)?;
    Ok(writing(move |traverser, context, out| {
        let search = merging.search(traverser, context)?;
        let found = merging.finder.vertices_like(&search, context)?;
        for vertex in &found {
            let Value::Vertex(known) = vertex else { continue };
            // onMatch is evaluated on the matched element.
            for (key, value) in merging.matched(&traverser.at(vertex.clone()), context)? {
                let (value, cardinality) = split(value, Cardinality::Single);
                put_on_vertex(known.key, &key, &value, cardinality, context)?;
            }
        }
        if !found.is_empty() {
            out.extend(found);
            return Ok(());
        }
        let mut map = merging.create(&search, traverser, context)?.unwrap_or_default();
        for (key, value) in search {
            map.entry(key).or_insert(value);
        }
        let id = map.shift_remove(&ID);
        let label: Arc<str> = match map.shift_remove(&LABEL) {
            Some(Value::String(label)) => label,
            _ => "vertex".into(),
        };
        let (mut plain, mut with_cardinality) = (Vec::new(), Vec::new());
        for (key, value) in map {
            let key = legal_key(key)?;
            match value {
                Value::WithCardinality(with) => with_cardinality.push((key, with)),
                value => plain.push((key, value)),
            }
        }
        let vertex = add_vertex(id.as_ref(), &label, &plain, context)?;
        for (key, with) in with_cardinality {
            put_on_vertex(vertex, &key, &with.1, with.0, context)?;
        }
        out.push_back(vertex_value(vertex));
        Ok(())
    }))
}
