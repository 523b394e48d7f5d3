//! Mapping between elements and their `T.id`.
//!
//! # Shape
//! | element | its id |
//! | --- | --- |
//! | vertex `urn:vervet:vertex:X` | the long `X` if `X` is a number in canonical form, else the string `X` |
//! | vertex `urn:uuid:…` | the UUID |
//! | any other IRI, blank node | the IRI; `_:` and the label |
//! | edge with an external id | as for a vertex |
//! | edge with an identity | its name `urn:vervet:edge:N` |
//! | plain statement | `subject predicate object` in N-Triples |
//! | vertex property | the name of its identity, or `vertex key value`; of a computed one `vertex computed N` |

use super::computed::is_computed;
use super::literal::value_and_text;
use super::names::Names;
use oxrdf::{BlankNodeRef, Literal, NamedNodeRef, Term};
use std::str::FromStr;
use vervet_gremlin::{EdgeKey, PropertyKey, Value};
use vervet_model::vocab::{EDGE_NAMESPACE, VERTEX_NAMESPACE, iri_name, is_iri, name_iri};
use vervet_model::{Direction, Error, Id, Result, Tag};
use vervet_snapshot::{EntryFilter, Snapshot};
use vervet_tinkerpop::rdf_values::value_of_name;
pub use vervet_tinkerpop::rdf_values::vertex_name;

/// Filter that passes every statement.
pub(crate) const EVERY: EntryFilter = EntryFilter::ALL;

/// `T.id` of a vertex.
pub(crate) fn vertex_id(snapshot: &dyn Snapshot, vertex: Id) -> Result<Value> {
    let mut text = String::new();
    snapshot.read_term(vertex, &mut String::new(), &mut |parts| parts.write_str(&mut text))?;
    if snapshot.is_blank(vertex)? {
        return Ok(Value::text(format!("_:{text}")));
    }
    Ok(value_of_name(&iri_name(VERTEX_NAMESPACE, &text).unwrap_or(text)))
}

/// The vertex with this id, if the dictionary has its name.
pub(crate) fn find_vertex(snapshot: &dyn Snapshot, id: &Value) -> Result<Option<Id>> {
    let Ok(name) = vertex_name(id) else { return Ok(None) };
    let found = if let Some(label) = name.strip_prefix("_:") {
        snapshot.lookup(BlankNodeRef::new_unchecked(label).into())?
    } else {
        let iri = if is_iri(&name) { name } else { name_iri(VERTEX_NAMESPACE, &name) };
        snapshot.lookup(NamedNodeRef::new_unchecked(&iri).into())?
    };
    Ok(found.filter(|id| id.tag() == Tag::Vertex))
}

/// The term of an id.
pub(crate) fn term(snapshot: &dyn Snapshot, id: Id) -> Result<Term> {
    let mut term = None;
    snapshot.read_term(id, &mut String::new(), &mut |parts| term = Some(parts.to_term()))?;
    term.ok_or_else(|| Error::internal(format!("no term was read for {id:?}")))
}

/// `T.id` of an edge.
pub(crate) fn edge_id(snapshot: &dyn Snapshot, names: &mut Names, edge: EdgeKey) -> Result<Value> {
    let id = |bits| Id::from_bits(bits);
    if edge.edge == 0 {
        let [s, p, o] = [edge.source, edge.label, edge.target].map(|bits| term(snapshot, id(bits)));
        return Ok(Value::text(format!("{} {} {}", s?, p?, o?)));
    }
    if let Some(predicate) = names.edge_id(snapshot)?
        && let Some(segment) = snapshot.segment(predicate, Direction::Out)?
    {
        let mut found = Vec::new();
        match names.ahead.read(snapshot, &[(predicate, Direction::Out)], id(edge.edge))? {
            Some(entries) => found.extend(entries.into_iter().map(|(_, [name, ..])| name)),
            None => segment.neighbours(id(edge.edge), EVERY, &mut found)?,
        }
        if let Some(first) = found.first() {
            let mut text = String::new();
            snapshot.read_term(*first, &mut String::new(), &mut |parts| parts.write_str(&mut text))?;
            return Ok(value_of_name(&text));
        }
    }
    Ok(Value::text(format!("{EDGE_NAMESPACE}{}", id(edge.edge).payload())))
}

/// The edge with this id.
pub(crate) fn find_edge(
    snapshot: &dyn Snapshot,
    names: &mut Names,
    wanted: &Value,
) -> Result<Option<EdgeKey>> {
    let Ok(name) = vertex_name(wanted) else { return Ok(None) };
    if let Some(predicate) = names.edge_id(snapshot)?
        && let Some(segment) = snapshot.segment(predicate, Direction::In)?
        && let Some(value) = snapshot.lookup(Literal::new_simple_literal(&name).as_ref().into())?
    {
        let mut found = Vec::new();
        segment.neighbours(value, EVERY, &mut found)?;
        if let Some(edge) = found.into_iter().find(|id| id.tag() == Tag::Edge) {
            return known_edge(snapshot, edge);
        }
    }
    if let Some(number) = name.strip_prefix(EDGE_NAMESPACE) {
        let found = snapshot.lookup(NamedNodeRef::new_unchecked(&name).into())?;
        return match found {
            Some(edge) if edge.tag() == Tag::Edge && !number.is_empty() => known_edge(snapshot, edge),
            _ => Ok(None),
        };
    }
    // A plain statement.
    let mut parts = name.splitn(3, ' ');
    let (Some(s), Some(p), Some(o)) = (parts.next(), parts.next(), parts.next()) else { return Ok(None) };
    let mut ids = [0; 3];
    for (slot, text) in ids.iter_mut().zip([s, p, o]) {
        let Ok(term) = Term::from_str(text) else { return Ok(None) };
        match snapshot.lookup(term.as_ref())? {
            Some(id) if id.tag() == Tag::Vertex => *slot = id.bits(),
            _ => return Ok(None),
        }
    }
    let [source, label, target] = ids;
    let Some(segment) = snapshot.segment(Id::from_bits(label), Direction::Out)? else { return Ok(None) };
    let mut entries = Vec::new();
    let from = [Id::from_bits(target), Id::UNBOUND, Id::UNBOUND];
    segment.entries(Id::from_bits(source), from, 1, &mut entries)?;
    let is_there = entries.first().is_some_and(|[n, _, edge]| n.bits() == target && !edge.is_bound());
    Ok(is_there.then_some(EdgeKey { edge: 0, source, label, target }))
}

/// The edge with this identity, if both ends are vertices.
pub(crate) fn known_edge(snapshot: &dyn Snapshot, edge: Id) -> Result<Option<EdgeKey>> {
    let Ok([source, label, target, _]) = snapshot.edge(edge) else { return Ok(None) };
    let ends = source.tag() == Tag::Vertex && target.tag() == Tag::Vertex;
    Ok(ends.then_some(EdgeKey {
        edge: edge.bits(),
        source: source.bits(),
        label: label.bits(),
        target: target.bits(),
    }))
}

/// `T.id` of a vertex property.
pub(crate) fn property_id(
    snapshot: &dyn Snapshot,
    names: &mut Names,
    property: PropertyKey,
) -> Result<Value> {
    if property.edge != 0 {
        return Ok(Value::text(format!("{EDGE_NAMESPACE}{}", Id::from_bits(property.edge).payload())));
    }
    let id = |bits| Id::from_bits(bits);
    if is_computed(property) {
        let vertex = term(snapshot, id(property.vertex))?;
        return Ok(Value::text(format!("{vertex} computed {}", id(property.key).payload())));
    }
    Ok(plain_property(snapshot, names, id(property.vertex), id(property.key), id(property.value))?.0)
}

/// `T.id` and value of a vertex property without an identity; `None`: the object is not a value.
pub(crate) fn plain_property(
    snapshot: &dyn Snapshot,
    names: &mut Names,
    vertex: Id,
    key: Id,
    value: Id,
) -> Result<(Value, Option<Value>)> {
    let mut text = std::mem::take(&mut names.text);
    text.clear();
    names.write_subject(snapshot, vertex, &mut text)?;
    text.push(b' ');
    names.write_predicate(snapshot, key, &mut text)?;
    text.push(b' ');
    let value = value_and_text(snapshot, value, &mut names.scratch, &mut text)?;
    let id = match std::str::from_utf8(&text) {
        Ok(text) => Value::String(text.into()),
        Err(_) => return Err(Error::internal("the terms of a property are no text")),
    };
    names.text = text;
    Ok((id, value))
}

/// Whether the look-up of this text finds the only vertex that can have this id as text. Other ids that look
/// alike are numbers, UUIDs or blank nodes.
pub(crate) fn is_of_one_vertex(id: &str) -> bool {
    id.contains(':') && !id.starts_with("_:")
}
