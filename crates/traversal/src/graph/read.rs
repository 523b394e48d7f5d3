//! Neighbours, edges, labels and properties of elements.
//!
//! # Cost
//! A hash look-up per name, and a segment call per requested predicate. Without names all predicates are
//! read.

use super::ids::EVERY;
use super::literal::value;
use super::names::{Names, has_stored_literals};
use std::ops::ControlFlow;
use std::sync::Arc;
use vervet_gremlin::semantics::compare::equal;
use vervet_gremlin::{
    Direction as Ends, Edge, EdgeKey, Property, PropertyKey, Value, Vertex, VertexProperty,
};
use vervet_model::{Direction, Id, Result, Tag};
use vervet_snapshot::{Cursor, Segment, Snapshot};

/// Maximum number of entries per read.
const CHUNK: usize = 1024;

/// Number of entries of the first read.
const FEW: usize = 32;

/// Names of requested edge labels or keys; empty: all.
pub(crate) type NameFilter = [Arc<str>];

/// The segment directions of `ends`.
fn directions(ends: Ends) -> &'static [Direction] {
    match ends {
        Ends::Out => &[Direction::Out],
        Ends::In => &[Direction::In],
        Ends::Both => &[Direction::Out, Direction::In],
    }
}

/// The predicates of edges with these labels.
pub(crate) fn edge_predicates(
    snapshot: &dyn Snapshot,
    names: &mut Names,
    labels: &NameFilter,
) -> Result<Vec<Id>> {
    if labels.is_empty() {
        return Ok(names.predicates(snapshot)?.edges.clone());
    }
    let mut found = Vec::with_capacity(labels.len());
    for label in labels {
        if let Some(id) = names.key(snapshot, label)?
            && !found.contains(&id)
        {
            found.push(id);
        }
    }
    Ok(found)
}

/// The segments of edges with these labels, in the order in which they are read.
pub(crate) fn edge_segments(
    snapshot: &dyn Snapshot,
    names: &mut Names,
    ends: Ends,
    labels: &NameFilter,
) -> Result<Vec<(Id, Direction)>> {
    let predicates = edge_predicates(snapshot, names, labels)?;
    let mut segments = Vec::with_capacity(2 * predicates.len());
    for direction in directions(ends) {
        segments.extend(predicates.iter().map(|predicate| (*predicate, *direction)));
    }
    Ok(segments)
}

/// Calls `add` with the other end of each edge of `vertex`, repeated for parallel edges. `add` checks limits,
/// since the number of edges is unbounded.
///
/// # Errors
/// Damaged data; those of `add`, which end the call.
pub(crate) fn neighbours(
    snapshot: &dyn Snapshot,
    names: &mut Names,
    vertex: u64,
    ends: Ends,
    labels: &NameFilter,
    add: &mut dyn FnMut(u64) -> Result<()>,
) -> Result<()> {
    if names.ahead.is_on() {
        let segments = edge_segments(snapshot, names, ends, labels)?;
        if let Some(entries) = names.ahead.read(snapshot, &segments, Id::from_bits(vertex))? {
            let of_vertices = entries.iter().filter(|(_, [neighbour, ..])| neighbour.is_vertex());
            return of_vertices.map(|(_, [neighbour, ..])| neighbour.bits()).try_for_each(add);
        }
    }
    let mut found = std::mem::take(&mut names.expansion);
    let mut visit = |predicate: Id, direction: Direction| -> Result<()> {
        let Some(segment) = snapshot.segment(predicate, direction)? else { return Ok(()) };
        let keys = [Id::from_bits(vertex)];
        let mut cursor = Cursor::default();
        found.capacity = 64;
        while cursor.row < 1 {
            found.clear();
            segment.expand(&keys, EVERY, &mut cursor, &mut found)?;
            for neighbour in &found.neighbours {
                if neighbour.tag() == Tag::Vertex {
                    add(neighbour.bits())?;
                }
            }
            found.capacity = CHUNK;
        }
        Ok(())
    };
    for &direction in directions(ends) {
        match labels {
            // Most walks have one label.
            [label] => {
                if let Some(predicate) = names.key(snapshot, label)? {
                    visit(predicate, direction)?;
                }
            }
            labels => {
                for predicate in edge_predicates(snapshot, names, labels)? {
                    visit(predicate, direction)?;
                }
            }
        }
    }
    names.expansion = found;
    Ok(())
}

/// Retains the vertices with one of these labels, each of which is the name of a single type.
pub(crate) fn retain_labelled(
    snapshot: &dyn Snapshot,
    names: &mut Names,
    labels: &NameFilter,
    vertices: &mut Vec<Id>,
) -> Result<()> {
    let mut rows = Vec::with_capacity(vertices.len());
    labelled_rows(snapshot, names, labels, vertices, &mut rows)?;
    for (to, from) in rows.iter().enumerate() {
        vertices[to] = vertices[*from as usize];
    }
    vertices.truncate(rows.len());
    Ok(())
}

/// Appends the row numbers of the vertices with one of these labels, as [`retain_labelled`]. `rows` is empty
/// on entry.
pub(crate) fn labelled_rows(
    snapshot: &dyn Snapshot,
    names: &mut Names,
    labels: &NameFilter,
    vertices: &[Id],
    rows: &mut Vec<u32>,
) -> Result<()> {
    if names.ahead.is_on() {
        let mut wanted = Vec::with_capacity(labels.len());
        for label in labels {
            wanted.extend(names.label(snapshot, label)?);
        }
        names.ahead.found(vertices.iter().copied());
        for (row, vertex) in (0_u32..).zip(vertices) {
            if types_of(snapshot, names, *vertex)?.iter().any(|id| wanted.contains(id)) {
                rows.push(row);
            }
        }
        return Ok(());
    }
    let types = match snapshot.type_predicate() {
        Some(predicate) => snapshot.segment(predicate, Direction::Out)?,
        None => None,
    };
    let Some(types) = types else { return Ok(()) };
    for label in labels {
        if let Some(label) = names.label(snapshot, label)? {
            types.check_constant(vertices, label, EVERY, rows)?;
        }
    }
    if labels.len() > 1 {
        rows.sort_unstable();
        rows.dedup();
    }
    Ok(())
}

/// Whether a label is the name of a single type: neither the default label nor a joined one.
pub(crate) fn is_of_one_type(label: &str) -> bool {
    label != LABEL_DEFAULT && !label.contains("::")
}

/// Calls `add` with the edges of `vertex`, as [`neighbours`].
///
/// # Errors
/// As [`neighbours`].
pub(crate) fn edges(
    snapshot: &dyn Snapshot,
    names: &mut Names,
    vertex: u64,
    ends: Ends,
    labels: &NameFilter,
    add: &mut dyn FnMut(EdgeKey) -> Result<()>,
) -> Result<()> {
    let segments = edge_segments(snapshot, names, ends, labels)?;
    let mut visit = |(predicate, direction): (Id, Direction), [neighbour, _, edge]: [Id; 3]| {
        if neighbour.tag() != Tag::Vertex {
            return Ok(());
        }
        let (source, target) = match direction {
            Direction::Out => (vertex, neighbour.bits()),
            Direction::In => (neighbour.bits(), vertex),
        };
        let edge = if edge.is_bound() { edge.bits() } else { 0 };
        add(EdgeKey { edge, source, label: predicate.bits(), target })
    };
    if let Some(entries) = names.ahead.read(snapshot, &segments, Id::from_bits(vertex))? {
        return entries.into_iter().try_for_each(|(of, entry)| visit(segments[of as usize], entry));
    }
    for of in segments {
        let Some(segment) = snapshot.segment(of.0, of.1)? else { continue };
        entries(segment, Id::from_bits(vertex), &mut |entry| visit(of, entry))?;
    }
    Ok(())
}

/// Calls `visit` with all entries of a key.
///
/// # Errors
/// Damaged data; those of `visit`, which end the call.
pub(crate) fn entries(
    segment: &dyn Segment,
    key: Id,
    visit: &mut dyn FnMut([Id; 3]) -> Result<()>,
) -> Result<()> {
    let mut visited = Ok(());
    entries_from(segment, key, [Id::UNBOUND; 3], &mut |entry| {
        visited = visit(entry);
        if visited.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    visited
}

/// Calls `visit` with the entries of a key, starting at `from`, until it breaks.
pub(crate) fn entries_from(
    segment: &dyn Segment,
    key: Id,
    mut from: [Id; 3],
    visit: &mut dyn FnMut([Id; 3]) -> ControlFlow<()>,
) -> Result<()> {
    let mut found = Vec::new();
    let mut limit = FEW;
    loop {
        found.clear();
        segment.entries(key, from, limit, &mut found)?;
        if found.iter().try_for_each(|entry| visit(*entry)).is_break() {
            return Ok(());
        }
        match found.last() {
            Some(&[neighbour, graph, edge]) if found.len() >= limit => {
                from = match edge.bits().checked_add(1) {
                    Some(next) => [neighbour, graph, Id::from_bits(next)],
                    None => [neighbour, Id::from_bits(graph.bits() + 1), Id::UNBOUND],
                };
            }
            _ => return Ok(()),
        }
        limit = CHUNK;
    }
}

/// The number of edges of a vertex.
pub(crate) fn degree(
    snapshot: &dyn Snapshot,
    names: &mut Names,
    vertex: u64,
    ends: Ends,
    labels: &NameFilter,
) -> Result<u64> {
    let mut count = 0;
    if names.ahead.is_on() {
        let segments = edge_segments(snapshot, names, ends, labels)?;
        if let Some(entries) = names.ahead.read(snapshot, &segments, Id::from_bits(vertex))? {
            let is_edge = |(of, [neighbour, ..]): &&(u32, [Id; 3])| {
                segments[*of as usize].1 == Direction::In || neighbour.is_vertex()
            };
            return Ok(entries.iter().filter(is_edge).count() as u64);
        }
    }
    for &direction in directions(ends) {
        for predicate in edge_predicates(snapshot, names, labels)? {
            let Some(segment) = snapshot.segment(predicate, direction)? else { continue };
            if direction == Direction::In || segment.statistics().exact && segment.statistics().vertices_only
            {
                let mut degrees = Vec::with_capacity(1);
                segment.degrees(&[Id::from_bits(vertex)], EVERY, &mut degrees)?;
                count += degrees.iter().sum::<u64>();
            } else {
                entries(segment, Id::from_bits(vertex), &mut |[neighbour, ..]| {
                    count += u64::from(neighbour.tag() == Tag::Vertex);
                    Ok(())
                })?;
            }
        }
    }
    Ok(count)
}

/// Label of a vertex without a type.
const LABEL_DEFAULT: &str = "vertex";

/// The types of a vertex, ascending and distinct.
fn types_of(snapshot: &dyn Snapshot, names: &mut Names, vertex: Id) -> Result<Vec<Id>> {
    let mut types = Vec::new();
    let Some(predicate) = snapshot.type_predicate() else { return Ok(types) };
    if let Some(entries) = names.ahead.read(snapshot, &[(predicate, Direction::Out)], vertex)? {
        types.extend(entries.into_iter().map(|(_, [id, ..])| id));
        types.dedup();
    } else if let Some(segment) = snapshot.segment(predicate, Direction::Out)? {
        segment.neighbours(vertex, EVERY, &mut types)?;
    }
    Ok(types)
}

/// `T.label` of a vertex: its types, joined by `::`; `vertex` if it has none.
pub(crate) fn vertex_label(snapshot: &dyn Snapshot, names: &mut Names, vertex: u64) -> Result<Arc<str>> {
    let types = types_of(snapshot, names, Id::from_bits(vertex))?;
    match types.as_slice() {
        [] => Ok(LABEL_DEFAULT.into()),
        [one] => names.label_name(snapshot, *one),
        many => {
            let mut all: Vec<Arc<str>> = Vec::with_capacity(many.len());
            for id in many {
                all.push(names.label_name(snapshot, *id)?);
            }
            all.sort_unstable();
            Ok(all.join("::").into())
        }
    }
}

/// Whether a vertex has this label; the joined form also matches.
pub(crate) fn vertex_has_label(
    snapshot: &dyn Snapshot,
    names: &mut Names,
    vertex: u64,
    label: &Arc<str>,
) -> Result<bool> {
    if names.ahead.is_on() {
        if let Some(wanted) = names.label(snapshot, label)?
            && types_of(snapshot, names, Id::from_bits(vertex))?.contains(&wanted)
        {
            return Ok(true);
        }
    } else if let (Some(predicate), Some(wanted)) = (snapshot.type_predicate(), names.label(snapshot, label)?)
        && let Some(segment) = snapshot.segment(predicate, Direction::Out)?
    {
        let mut rows = Vec::with_capacity(1);
        segment.check_constant(&[Id::from_bits(vertex)], wanted, EVERY, &mut rows)?;
        if !rows.is_empty() {
            return Ok(true);
        }
    }
    if !is_of_one_type(label) {
        return Ok(vertex_label(snapshot, names, vertex)? == *label);
    }
    Ok(false)
}

/// The predicates of these keys.
fn value_predicates(snapshot: &dyn Snapshot, names: &mut Names, keys: &NameFilter) -> Result<Vec<Id>> {
    if keys.is_empty() {
        return Ok(names.predicates(snapshot)?.values.clone());
    }
    let mut found = Vec::with_capacity(keys.len());
    for key in keys {
        if let Some(id) = names.key(snapshot, key)?
            && !found.contains(&id)
        {
            found.push(id);
        }
    }
    Ok(found)
}

/// Calls `add` with each property value of a vertex: the statement, the key, the value.
pub(crate) fn vertex_values(
    snapshot: &dyn Snapshot,
    names: &mut Names,
    vertex: u64,
    keys: &NameFilter,
    add: &mut dyn FnMut(PropertyKey, Arc<str>, Value),
) -> Result<()> {
    if let [key] = keys {
        // Fast path for one key, the most frequent call of this module.
        let Some(predicate) = names.key(snapshot, key)? else {
            return computed_values(names, vertex, keys, add);
        };
        return values_of(snapshot, names, vertex, keys, &[predicate], add);
    }
    let predicates = value_predicates(snapshot, names, keys)?;
    values_of(snapshot, names, vertex, keys, &predicates, add)
}

fn computed_values(
    names: &Names,
    vertex: u64,
    keys: &NameFilter,
    add: &mut dyn FnMut(PropertyKey, Arc<str>, Value),
) -> Result<()> {
    for (key, label, value) in names.computed.of(vertex, keys) {
        add(key, label, value);
    }
    Ok(())
}

/// As [`vertex_values`], for given predicates.
fn values_of(
    snapshot: &dyn Snapshot,
    names: &mut Names,
    vertex: u64,
    keys: &NameFilter,
    predicates: &[Id],
    add: &mut dyn FnMut(PropertyKey, Arc<str>, Value),
) -> Result<()> {
    let computed = names.computed.of(vertex, keys);
    let ahead = match names.ahead.is_on() {
        true => {
            let segments: Vec<_> = predicates.iter().map(|of| (*of, Direction::Out)).collect();
            names.ahead.read(snapshot, &segments, Id::from_bits(vertex))?
        }
        false => None,
    };
    for (position, &predicate) in (0_u32..).zip(predicates) {
        let Some(segment) = snapshot.segment(predicate, Direction::Out)? else { continue };
        if !computed.is_empty() {
            let label = names.key_name(snapshot, predicate)?;
            if computed.iter().any(|(_, computed, _)| *computed == label) {
                continue;
            }
        }
        let mut found = std::mem::take(&mut names.entries);
        if let Some(ahead) = &ahead {
            found.clear();
            found.extend(ahead.iter().filter(|(of, _)| *of == position).map(|(_, entry)| *entry));
            order_statements(&mut found);
        } else {
            value_statements(segment, Id::from_bits(vertex), &mut found)?;
        }
        if found.is_empty() {
            names.entries = found;
            continue;
        }
        let label = names.key_name(snapshot, predicate)?;
        for &[object, _, edge] in &found {
            let Some(value) = value(snapshot, object)? else { continue };
            let key = PropertyKey {
                vertex,
                key: predicate.bits(),
                value: object.bits(),
                edge: if edge.is_bound() { edge.bits() } else { 0 },
            };
            add(key, label.clone(), value);
        }
        names.entries = found;
    }
    for (key, label, value) in computed {
        add(key, label, value);
    }
    Ok(())
}

/// Fills `found` with the entries of an element in output order.
pub(crate) fn value_statements(segment: &dyn Segment, element: Id, found: &mut Vec<[Id; 3]>) -> Result<()> {
    found.clear();
    segment.entries(element, [Id::UNBOUND; 3], FEW, found)?;
    if found.len() >= FEW {
        found.clear();
        entries(segment, element, &mut |entry| {
            found.push(entry);
            Ok(())
        })?;
    }
    order_statements(found);
    Ok(())
}

/// Brings the entries of an element into output order.
pub(crate) fn order_statements(found: &mut Vec<[Id; 3]>) {
    if found.len() > 1 {
        // A statement in several graphs is one value.
        found.sort_unstable_by_key(|[object, _, edge]| (*object, *edge));
        found.dedup_by_key(|[object, _, edge]| (*object, *edge));
        // Values of list cardinality keep their insertion order.
        if found.iter().all(|[.., edge]| edge.is_bound()) {
            found.sort_unstable_by_key(|[.., edge]| *edge);
        }
    }
}

/// Calls `add` with the properties of an edge or of a vertex property, by its identity.
pub(crate) fn statement_values(
    snapshot: &dyn Snapshot,
    names: &mut Names,
    identity: u64,
    keys: &NameFilter,
    add: &mut dyn FnMut(Arc<str>, Value),
) -> Result<()> {
    if identity == 0 {
        return Ok(());
    }
    vertex_values(snapshot, names, identity, keys, &mut |_, label, value| add(label, value))
}

/// The properties of an element, as property elements.
pub(crate) fn properties(
    snapshot: &dyn Snapshot,
    names: &mut Names,
    element: &Value,
    keys: &NameFilter,
    add: &mut dyn FnMut(Value),
) -> Result<()> {
    match element {
        Value::Vertex(vertex) => {
            vertex_values(snapshot, names, vertex.key, keys, &mut |key, label, value| {
                add(Value::VertexProperty(Arc::new(VertexProperty { key, label, value, detail: None })));
            })
        }
        Value::Edge(edge) => statement_values(snapshot, names, edge.key.edge, keys, &mut |key, value| {
            add(Value::Property(Arc::new(Property { element: element.clone(), key, value })));
        }),
        Value::VertexProperty(property) => {
            statement_values(snapshot, names, property.key.edge, keys, &mut |key, value| {
                add(Value::Property(Arc::new(Property { element: element.clone(), key, value })));
            })
        }
        _ => Ok(()),
    }
}

/// The values of the properties of an element.
pub(crate) fn values(
    snapshot: &dyn Snapshot,
    names: &mut Names,
    element: &Value,
    keys: &NameFilter,
    add: &mut dyn FnMut(Value),
) -> Result<()> {
    match element {
        Value::Vertex(vertex) => {
            vertex_values(snapshot, names, vertex.key, keys, &mut |_, _, value| add(value))
        }
        Value::Edge(edge) => {
            statement_values(snapshot, names, edge.key.edge, keys, &mut |_, value| add(value))
        }
        Value::VertexProperty(property) => {
            statement_values(snapshot, names, property.key.edge, keys, &mut |_, value| add(value))
        }
        _ => Ok(()),
    }
}

/// The predicate of a key, and its objects equal to this value; `None`: no element matches.
pub(crate) fn objects_equal(
    snapshot: &dyn Snapshot,
    names: &mut Names,
    key: &Arc<str>,
    wanted: &Value,
) -> Result<Option<(Id, Vec<Id>)>> {
    let Some(predicate) = names.key(snapshot, key)? else { return Ok(None) };
    let Some(segment) = snapshot.segment(predicate, Direction::In)? else { return Ok(None) };
    let last = Id::new(Tag::Literal, Id::PAYLOAD_MAX);
    let literals = match super::literal::equal_literals(snapshot, wanted)? {
        // Dictionary literals may have this number in another lexical form.
        Some(mut literals) if wanted.is_number() && has_stored_literals(snapshot, predicate)? => {
            literals.extend(equal_objects(snapshot, segment, wanted, last)?);
            literals.sort_unstable();
            literals.dedup();
            literals
        }
        Some(literals) => literals,
        None => equal_objects(snapshot, segment, wanted, Id::END)?,
    };
    Ok(Some((predicate, literals)))
}

/// The objects of a predicate up to `last` that equal this value.
fn equal_objects(
    snapshot: &dyn Snapshot,
    objects: &dyn Segment,
    wanted: &Value,
    last: Id,
) -> Result<Vec<Id>> {
    let (mut found, mut keys, mut from) = (Vec::new(), Vec::new(), Some(Id::literal(0)));
    while let Some(first) = from {
        keys.clear();
        from = objects.keys_up_to(first, last, CHUNK, &mut keys)?;
        for &id in &keys {
            if wanted.is_number() && snapshot.is_plain_text(id)? {
                continue;
            }
            if value(snapshot, id)?.is_some_and(|value| equal(&value, wanted)) {
                found.push(id);
            }
        }
    }
    Ok(found)
}

/// The type predicate, and the existing types among these labels; `None`: the graph has no types.
pub(crate) fn labels_of(
    snapshot: &dyn Snapshot,
    names: &mut Names,
    labels: &NameFilter,
) -> Result<Option<(Id, Vec<Id>)>> {
    let Some(predicate) = snapshot.type_predicate() else { return Ok(None) };
    let mut found = Vec::with_capacity(labels.len());
    for label in labels {
        found.extend(names.label(snapshot, label)?);
    }
    Ok(Some((predicate, found)))
}

/// Whether a vertex exists: some statement contains it.
pub(crate) fn is_vertex(snapshot: &dyn Snapshot, names: &mut Names, vertex: Id) -> Result<bool> {
    let has = |predicate: Id, direction| -> Result<bool> {
        let Some(segment) = snapshot.segment(predicate, direction)? else { return Ok(false) };
        let mut found = Vec::with_capacity(1);
        segment.keys_up_to(vertex, vertex, 1, &mut found)?;
        if found.is_empty() {
            return Ok(false);
        }
        let mut degrees = Vec::with_capacity(1);
        segment.degrees(&[vertex], EVERY, &mut degrees)?;
        Ok(degrees.first().is_some_and(|degree| *degree > 0))
    };
    if let Some(types) = snapshot.type_predicate()
        && has(types, Direction::Out)?
    {
        return Ok(true);
    }
    let predicates = names.predicates(snapshot)?;
    if names.ahead.is_on() {
        let all = predicates.edges.iter().chain(&predicates.values);
        let segments: Vec<_> = all.flat_map(|of| Direction::BOTH.map(|direction| (*of, direction))).collect();
        if let Some(lists) = snapshot.entries_together(&segments, &[vertex], 1)? {
            // A list without the key: it has more than one entry.
            return Ok(lists.iter().any(|list| list.ends.is_empty() || !list.entries.is_empty()));
        }
    }
    for &predicate in predicates.edges.iter().chain(&predicates.values) {
        if has(predicate, Direction::Out)? || has(predicate, Direction::In)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// An edge as a value.
pub(crate) fn edge_value(key: EdgeKey) -> Value {
    Value::Edge(Arc::new(Edge { key, detail: None }))
}

/// A vertex as a value.
pub(crate) fn vertex_value(key: u64) -> Value {
    Value::Vertex(Vertex::from_key(key))
}
