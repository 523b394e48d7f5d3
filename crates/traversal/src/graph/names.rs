//! Cache of the ids and names of labels and keys that a traversal has used, and its computed properties.
//!
//! # Invariants
//! The mapping between an id and a name never changes. The absence of a name and the set of predicates are
//! valid only until the graph changes.

use super::ahead::ReadAhead;
use super::computed::Computed;
use foldhash::HashMap as SeededMap;
use oxrdf::NamedNodeRef;
use rustc_hash::FxHashMap;
use std::rc::Rc;
use std::sync::Arc;
use vervet_model::vocab::{EDGE_ID, KEY_NAMESPACE, LABEL_NAMESPACE, RDF_REIFIES, iri_name, is_iri, name_iri};
use vervet_model::{Direction, Id, LiteralKind, Result, Tag, TermParts};
use vervet_snapshot::{Expansion, Segment, SegmentStatistics, Snapshot};

/// Predicates by the kinds of their objects.
#[derive(Debug, Default)]
pub(crate) struct Predicates {
    /// Predicates with objects that may be vertices: edge labels.
    pub(crate) edges: Vec<Id>,
    /// Predicates with objects that may be values: property keys.
    pub(crate) values: Vec<Id>,
    /// `rdf:type`.
    pub(crate) types: Option<Id>,
}

/// See the header of this file.
#[derive(Debug, Default)]
pub(crate) struct Names {
    changes: u64,
    /// Whether scans of all objects of a predicate are avoided.
    tracks_read_set: bool,
    edge_id: Option<Id>,
    names: FxHashMap<(Id, bool), Arc<str>>,
    ids: SeededMap<(bool, Arc<str>), Id>,
    predicates: Option<Rc<Predicates>>,
    /// Predicates in N-Triples, by id. `subject` beside it has the last vertex.
    keys: FxHashMap<Id, Rc<[u8]>>,
    subject: (Id, Vec<u8>),
    pub(crate) computed: Computed,
    pub(crate) ahead: ReadAhead,
    /// Reusable buffer for the entries of one vertex, empty between uses.
    pub(crate) entries: Vec<[Id; 3]>,
    /// Reusable buffer for the neighbours of one vertex, empty between uses.
    pub(crate) expansion: Expansion,
    /// Reusable buffer for the id of a property.
    pub(crate) text: Vec<u8>,
    /// Reusable buffer for reading a term.
    pub(crate) scratch: String,
}

impl Names {
    /// Drops what a change of the graph invalidates. With `tracks_read_set` (recorded reads) the objects of
    /// predicates are not scanned: every predicate may have vertices and values as objects.
    pub(crate) fn invalidate_if_changed(&mut self, changes: u64, tracks_read_set: bool) {
        self.tracks_read_set = tracks_read_set;
        if self.changes != changes {
            self.changes = changes;
            self.predicates = None;
            self.ahead.clear();
        }
    }

    /// The id of a key or edge label, if the graph has it.
    pub(crate) fn key(&mut self, snapshot: &dyn Snapshot, name: &Arc<str>) -> Result<Option<Id>> {
        self.find(snapshot, false, name)
    }

    /// The id of a vertex label, if the graph has it.
    pub(crate) fn label(&mut self, snapshot: &dyn Snapshot, name: &Arc<str>) -> Result<Option<Id>> {
        self.find(snapshot, true, name)
    }

    fn find(&mut self, snapshot: &dyn Snapshot, label: bool, name: &Arc<str>) -> Result<Option<Id>> {
        if let Some(id) = self.ids.get(&(label, name.clone())) {
            return Ok(Some(*id));
        }
        let namespace = if label { LABEL_NAMESPACE } else { KEY_NAMESPACE };
        let iri = if is_iri(name) { name.to_string() } else { name_iri(namespace, name) };
        let id = snapshot.lookup(NamedNodeRef::new_unchecked(&iri).into())?;
        if let Some(id) = id {
            self.ids.insert((label, name.clone()), id);
        }
        Ok(id)
    }

    /// The name of a key or edge label.
    pub(crate) fn key_name(&mut self, snapshot: &dyn Snapshot, id: Id) -> Result<Arc<str>> {
        self.name(snapshot, id, false)
    }

    /// The name of a vertex label.
    pub(crate) fn label_name(&mut self, snapshot: &dyn Snapshot, id: Id) -> Result<Arc<str>> {
        self.name(snapshot, id, true)
    }

    fn name(&mut self, snapshot: &dyn Snapshot, id: Id, label: bool) -> Result<Arc<str>> {
        if let Some(name) = self.names.get(&(id, label)) {
            return Ok(name.clone());
        }
        let mut text = String::new();
        snapshot.read_term(id, &mut String::new(), &mut |parts| parts.write_str(&mut text))?;
        let namespace = if label { LABEL_NAMESPACE } else { KEY_NAMESPACE };
        let name: Arc<str> = iri_name(namespace, &text).unwrap_or(text).into();
        self.names.insert((id, label), name.clone());
        Ok(name)
    }

    /// The predicate for external ids of edges, if the graph has it.
    pub(crate) fn edge_id(&mut self, snapshot: &dyn Snapshot) -> Result<Option<Id>> {
        if self.edge_id.is_none() {
            self.edge_id = snapshot.lookup(NamedNodeRef::new_unchecked(EDGE_ID).into())?;
        }
        Ok(self.edge_id)
    }

    /// Appends a vertex in N-Triples. Consecutive calls often have the same vertex, which is cached.
    pub(crate) fn write_subject(
        &mut self,
        snapshot: &dyn Snapshot,
        vertex: Id,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let (known, text) = &mut self.subject;
        if *known != vertex {
            text.clear();
            *known = Id::UNBOUND;
            snapshot.read_term(vertex, &mut self.scratch, &mut |parts| parts.write_nt(text))?;
            *known = vertex;
        }
        out.extend_from_slice(text);
        Ok(())
    }

    /// Appends a predicate in N-Triples.
    pub(crate) fn write_predicate(
        &mut self,
        snapshot: &dyn Snapshot,
        predicate: Id,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        if let Some(known) = self.keys.get(&predicate) {
            out.extend_from_slice(known);
            return Ok(());
        }
        let start = out.len();
        snapshot.read_term(predicate, &mut self.scratch, &mut |parts| parts.write_nt(out))?;
        self.keys.insert(predicate, out[start..].into());
        Ok(())
    }

    /// All predicates, grouped by the kinds of their objects.
    pub(crate) fn predicates(&mut self, snapshot: &dyn Snapshot) -> Result<Rc<Predicates>> {
        if let Some(known) = &self.predicates {
            return Ok(known.clone());
        }
        let mut found = Predicates { types: snapshot.type_predicate(), ..Predicates::default() };
        let reifies = snapshot.lookup(NamedNodeRef::new_unchecked(RDF_REIFIES).into())?;
        let excluded = [found.types, self.edge_id(snapshot)?, reifies];
        for &(predicate, _) in snapshot.predicates() {
            if excluded.contains(&Some(predicate)) {
                continue;
            }
            if self.tracks_read_set {
                found.edges.push(predicate);
                found.values.push(predicate);
                continue;
            }
            if has_vertex_objects(snapshot, predicate)? {
                found.edges.push(predicate);
            }
            if has_values(snapshot, predicate)? {
                found.values.push(predicate);
            }
        }
        let found = Rc::new(found);
        self.predicates = Some(found.clone());
        Ok(found)
    }
}

/// Whether an object of a predicate is a vertex or an edge. Reads only keys in that range.
pub(crate) fn has_vertex_objects(snapshot: &dyn Snapshot, predicate: Id) -> Result<bool> {
    if let Some(known) = known_objects(snapshot, predicate)? {
        return Ok(known.vertices_only);
    }
    has_objects(snapshot, predicate, Id::UNBOUND, Id::new(Tag::Edge, Id::PAYLOAD_MAX))
}

/// The statistics of a predicate with objects of one kind: vertices or literals.
fn known_objects(snapshot: &dyn Snapshot, predicate: Id) -> Result<Option<&SegmentStatistics>> {
    let known = snapshot.segment(predicate, Direction::Out)?.map(Segment::statistics);
    let is_sure = |known: &&SegmentStatistics| {
        known.exact && known.entries > 0 && (known.vertices_only || known.literals_only)
    };
    Ok(known.filter(is_sure))
}

/// Whether an object of a predicate is a value. Reads only keys in that range.
pub(crate) fn has_values(snapshot: &dyn Snapshot, predicate: Id) -> Result<bool> {
    if let Some(known) = known_objects(snapshot, predicate)? {
        return Ok(known.literals_only);
    }
    has_objects(snapshot, predicate, Id::literal(0), Id::END)
}

/// Whether all objects of a predicate are integers of one of the three inline types.
pub(crate) fn has_integers_only(snapshot: &dyn Snapshot, predicate: Id) -> Result<bool> {
    let between = |first: Tag, last: Tag| (Id::new(first, 0), Id::new(last, Id::PAYLOAD_MAX));
    for (first, last) in [
        between(Tag::Vertex, Tag::ShortString),
        between(Tag::Decimal, Tag::Date),
        between(Tag::Computed, Tag::Computed),
    ] {
        if has_objects(snapshot, predicate, first, last)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether the integer objects of a predicate all have one Gremlin type: int or long.
pub(crate) fn has_one_type_of_integers(snapshot: &dyn Snapshot, predicate: Id) -> Result<bool> {
    let has = |tag: Tag| has_objects(snapshot, predicate, Id::new(tag, 0), Id::new(tag, Id::PAYLOAD_MAX));
    Ok(!has(Tag::Int)? || !has(Tag::Integer)? && !has(Tag::Long)?)
}

/// Whether a predicate has an edge as a subject or an object. Gremlin has no such edges: its edges connect
/// vertices.
pub(crate) fn has_edge_terms(snapshot: &dyn Snapshot, predicate: Id) -> Result<bool> {
    let (first, last) = (Id::new(Tag::Edge, 0), Id::new(Tag::Edge, Id::PAYLOAD_MAX));
    Ok(has_objects(snapshot, predicate, first, last)?
        || has_segment_keys(snapshot, predicate, Direction::Out, first, last)?)
}

/// Whether an object of a predicate is a dictionary literal.
pub(crate) fn has_stored_literals(snapshot: &dyn Snapshot, predicate: Id) -> Result<bool> {
    has_objects(snapshot, predicate, Id::literal(0), Id::new(Tag::Literal, Id::PAYLOAD_MAX))
}

/// Whether an object of a predicate may be a number in only one of the two languages: integers and decimals
/// too long for an inline id, and XML Schema types without a Gremlin type. With many literals the answer is
/// `true` without a scan.
pub(crate) fn has_other_numbers(snapshot: &dyn Snapshot, predicate: Id) -> Result<bool> {
    const EXAMINED_MAX: usize = 256;
    let Some(objects) = snapshot.segment(predicate, Direction::In)? else { return Ok(false) };
    let last = Id::new(Tag::Literal, Id::PAYLOAD_MAX);
    let (mut literals, mut from) = (Vec::new(), Some(Id::literal(0)));
    while let Some(first) = from.filter(|_| literals.len() <= EXAMINED_MAX) {
        from = objects.keys_up_to(first, last, EXAMINED_MAX + 1, &mut literals)?;
    }
    if literals.len() > EXAMINED_MAX {
        return Ok(true);
    }
    let mut found = false;
    for id in literals {
        snapshot.read_term(id, &mut String::new(), &mut |parts| {
            if let TermParts::Literal { kind: LiteralKind::Typed(datatype), .. } = parts {
                found |= OTHER_NUMBERS.iter().any(|name| datatype.strip_prefix(XSD) == Some(name));
            }
        })?;
    }
    Ok(found)
}

const XSD: &str = "http://www.w3.org/2001/XMLSchema#";
const OTHER_NUMBERS: [&str; 10] = [
    "integer",
    "decimal",
    "nonPositiveInteger",
    "negativeInteger",
    "nonNegativeInteger",
    "positiveInteger",
    "unsignedLong",
    "unsignedInt",
    "unsignedShort",
    "unsignedByte",
];

/// In the incoming direction, keys are objects in the order of their tags.
fn has_objects(snapshot: &dyn Snapshot, predicate: Id, first: Id, last: Id) -> Result<bool> {
    has_segment_keys(snapshot, predicate, Direction::In, first, last)
}

fn has_segment_keys(
    snapshot: &dyn Snapshot,
    predicate: Id,
    direction: Direction,
    first: Id,
    last: Id,
) -> Result<bool> {
    let Some(segment) = snapshot.segment(predicate, direction)? else { return Ok(false) };
    let (mut one, mut from) = (Vec::with_capacity(1), Some(first));
    // A result shorter than requested does not mean the end of the keys.
    while let Some(first) = from.filter(|_| one.is_empty()) {
        from = segment.keys_up_to(first, last, 1, &mut one)?;
    }
    Ok(!one.is_empty())
}
