//! Graph API: typed access to vertices, edges and properties of a property graph, without a query language.
//!
//! Names of labels, keys and edge labels are plain (`"airport"`); [`vervet_model::vocab`] maps them to IRIs.
//! A name that contains `://` or starts with `urn:` is itself an IRI, so the API also applies to graphs
//! loaded as RDF.
//!
//! # Cost
//! Each call takes one or two dictionary look-ups for the names and one batch call of a segment.
//! # Source
//! Based on Table 1 of A. Khandelwal et al., "ZipG: A Memory-efficient Graph Store for Interactive Queries",
//! SIGMOD 2017. Different: directions, degrees and reachability have separate calls; edges can be ordered by
//! any property that is declared at load; there are no writes.
#![forbid(unsafe_code)]

pub mod algorithm;
mod reach;

use oxrdf::{BlankNodeRef, Literal, NamedNodeRef, Term, TermRef};
use std::borrow::Cow;
use std::collections::HashMap;
pub use vervet_model::Direction;
use vervet_model::vocab::{
    EDGE_ID, KEY_NAMESPACE, LABEL_NAMESPACE, VERTEX_NAMESPACE, iri_name, is_iri, name_iri,
};
use vervet_model::{Error, ErrorKind, Id, Result, Tag, order_key};
use vervet_snapshot::{
    Cursor, EntryFilter, Expansion, GraphFilter, OrderRange, OrderedEntry, Segment, Snapshot, successor,
};

/// A vertex of a graph.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Vertex(Id);

impl Vertex {
    /// The vertex with this id; `None`: the id is not that of a vertex.
    #[must_use]
    pub fn from_id(id: Id) -> Option<Self> {
        id.is_vertex().then_some(Self(id))
    }

    /// The id, stable over the lifetime of the database.
    #[must_use]
    pub fn id(self) -> Id {
        self.0
    }
}

/// An edge of a graph.
///
/// Two edges are equal if their statements and their ids (if any) are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Edge {
    /// Source vertex.
    pub source: Vertex,
    label: Id,
    /// Target vertex.
    pub target: Vertex,
    id: Id,
}

impl Edge {
    /// The edge of the statement `source label target`, with its id ([`Id::UNBOUND`]: none).
    #[must_use]
    pub fn from_ids(source: Vertex, label: Id, target: Vertex, id: Id) -> Self {
        Self { source, label, target, id }
    }

    /// The id of the edge; `None`: a plain statement, which cannot have properties.
    #[must_use]
    pub fn id(self) -> Option<Id> {
        self.id.is_bound().then_some(self.id)
    }

    /// The id of the label.
    #[must_use]
    pub fn label_id(self) -> Id {
        self.label
    }
}

/// A vertex or an edge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AnyElement {
    /// A vertex.
    Vertex(Vertex),
    /// An edge.
    Edge(Edge),
}

/// Range and order for [`Graph::edges_in_order`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EdgeRange {
    /// Inclusive lower bound of the ordering property; `None`: no bound.
    pub from: Option<Literal>,
    /// Exclusive upper bound; `None`: no bound. Without bounds, edges without a value are included, as
    /// the oldest.
    pub before: Option<Literal>,
    /// Descending order.
    pub newest_first: bool,
    /// Maximum number of edges.
    pub limit: usize,
}

impl Default for EdgeRange {
    /// All edges, oldest first.
    fn default() -> Self {
        Self { from: None, before: None, newest_first: false, limit: usize::MAX }
    }
}

/// An element with properties: a vertex or an edge.
pub trait Element: Copy {
    #[doc(hidden)]
    fn subject(self) -> Option<Id>;

    /// The element as [`AnyElement`].
    fn any(self) -> AnyElement;
}

impl Element for Vertex {
    fn subject(self) -> Option<Id> {
        Some(self.0)
    }

    fn any(self) -> AnyElement {
        AnyElement::Vertex(self)
    }
}

impl Element for Edge {
    fn subject(self) -> Option<Id> {
        self.id.is_bound().then_some(self.id)
    }

    fn any(self) -> AnyElement {
        AnyElement::Edge(self)
    }
}

/// Property graph view of a snapshot: vertices, edges and properties, over the statements of all graphs.
#[derive(Clone, Copy)]
pub struct Graph<'a> {
    snapshot: &'a dyn Snapshot,
}

const CHUNK: usize = 4096;
/// Number of entries that are read at a time for a single vertex.
const FEW: usize = 64;

impl<'a> Graph<'a> {
    /// The graph of a snapshot.
    #[must_use]
    pub fn new(snapshot: &'a dyn Snapshot) -> Self {
        Self { snapshot }
    }

    /// The vertex with this external id, in the format of [`Graph::external_id`].
    ///
    /// # Errors
    /// Damaged data, as for every call here.
    pub fn vertex(&self, external_id: &str) -> Result<Option<Vertex>> {
        Ok(self.lookup(VERTEX_NAMESPACE, external_id)?.filter(|id| id.is_vertex()).map(Vertex))
    }

    /// The external id of a vertex: its name, or its IRI, or `_:` and the label of a blank node.
    ///
    /// # Errors
    /// Damaged data.
    pub fn external_id(&self, vertex: Vertex) -> Result<String> {
        self.name_of(VERTEX_NAMESPACE, vertex.0)
    }

    /// All vertices with a label, ascending by number.
    ///
    /// # Errors
    /// Damaged data.
    pub fn vertices_with_label(&self, label: &str) -> Result<Vec<Vertex>> {
        let (Some(type_predicate), Some(label)) =
            (self.snapshot.type_predicate(), self.lookup(LABEL_NAMESPACE, label)?)
        else {
            return Ok(Vec::new());
        };
        let mut vertices = Vec::new();
        if let Some(segment) = self.snapshot.segment(type_predicate, Direction::In)? {
            segment.neighbours(label, EntryFilter::ALL, &mut vertices)?;
        }
        Ok(vertices.into_iter().filter(|id| id.is_vertex()).map(Vertex).collect())
    }

    /// All vertices that have this value for this property, ascending by number.
    ///
    /// # Errors
    /// Damaged data.
    pub fn vertices_with_property<'t>(
        &self,
        key: &str,
        value: impl Into<TermRef<'t>>,
    ) -> Result<Vec<Vertex>> {
        let mut vertices = Vec::new();
        if let (Some(segment), Some(value)) =
            (self.segment(key, Direction::In)?, self.snapshot.lookup(value.into())?)
        {
            segment.neighbours(value, EntryFilter::ALL, &mut vertices)?;
        }
        Ok(vertices.into_iter().filter(|id| id.is_vertex()).map(Vertex).collect())
    }

    /// The labels of a vertex.
    ///
    /// # Errors
    /// Damaged data.
    pub fn labels(&self, vertex: Vertex) -> Result<Vec<String>> {
        let mut labels = Vec::new();
        if let Some(predicate) = self.snapshot.type_predicate()
            && let Some(segment) = self.snapshot.segment(predicate, Direction::Out)?
        {
            segment.neighbours(vertex.0, EntryFilter::ALL, &mut labels)?;
        }
        labels.into_iter().map(|label| self.name_of(LABEL_NAMESPACE, label)).collect()
    }

    /// The vertices at the other end of the edges with this label; parallel edges repeat them.
    ///
    /// # Errors
    /// Damaged data.
    pub fn neighbours(&self, vertex: Vertex, label: &str, direction: Direction) -> Result<Vec<Vertex>> {
        let Some(segment) = self.segment(label, direction)? else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        for_each_entry(segment, &[vertex.0], false, &mut |_, neighbour, _| found.push(neighbour))?;
        Ok(found.into_iter().filter(|id| id.is_vertex()).map(Vertex).collect())
    }

    /// The edges of a vertex with this label.
    ///
    /// # Errors
    /// Damaged data.
    pub fn edges(&self, vertex: Vertex, label: &str, direction: Direction) -> Result<Vec<Edge>> {
        let (Some(label), Some(segment)) =
            (self.lookup(KEY_NAMESPACE, label)?, self.segment(label, direction)?)
        else {
            return Ok(Vec::new());
        };
        self.edges_of(segment, vertex, label, direction)
    }

    fn edges_of(
        &self,
        segment: &dyn Segment,
        vertex: Vertex,
        label: Id,
        direction: Direction,
    ) -> Result<Vec<Edge>> {
        let mut edges = Vec::new();
        let mut add = |neighbour: Id, id: Id| {
            let (source, target) = match direction {
                Direction::Out => (vertex, Vertex(neighbour)),
                Direction::In => (Vertex(neighbour), vertex),
            };
            if neighbour.is_vertex() {
                edges.push(Edge { source, label, target, id });
            }
        };
        // Edges with an id first, then plain statements.
        let mut with_id: HashMap<Id, usize> = HashMap::new();
        for_each_entry(segment, &[vertex.0], true, &mut |_, neighbour, id| {
            *with_id.entry(neighbour).or_default() += 1;
            add(neighbour, id);
        })?;
        for_each_entry(
            segment,
            &[vertex.0],
            false,
            &mut |_, neighbour, _| match with_id.get_mut(&neighbour) {
                Some(left) if *left > 0 => *left -= 1,
                _ => add(neighbour, Id::UNBOUND),
            },
        )?;
        Ok(edges)
    }

    /// The edges from one vertex to another with this label, parallel ones too.
    ///
    /// # Errors
    /// Damaged data.
    pub fn edges_between(&self, source: Vertex, label: &str, target: Vertex) -> Result<Vec<Edge>> {
        let (Some(label), Some(segment)) =
            (self.lookup(KEY_NAMESPACE, label)?, self.segment(label, Direction::Out)?)
        else {
            return Ok(Vec::new());
        };
        let (mut edges, mut entries) = (Vec::new(), Vec::new());
        let mut from = [target.0, Id::UNBOUND, Id::UNBOUND];
        loop {
            entries.clear();
            segment.entries(source.0, from, CHUNK, &mut entries)?;
            let between = entries.iter().take_while(|[neighbour, ..]| *neighbour == target.0);
            edges.extend(between.map(|&[.., id]| Edge { source, label, target, id }));
            match entries.last() {
                Some(last) if entries.len() >= CHUNK && last[0] == target.0 => from = successor(*last),
                _ => return Ok(edges),
            }
        }
    }

    /// Calls `visit` with every edge that has this label, in unspecified order.
    ///
    /// # Cost
    /// Sources are decoded in batches: some ten nanoseconds for an edge.
    ///
    /// # Errors
    /// Damaged data.
    pub fn for_each_edge(&self, label: &str, visit: &mut dyn FnMut(Edge)) -> Result<()> {
        let (Some(label), Some(segment)) =
            (self.lookup(KEY_NAMESPACE, label)?, self.segment(label, Direction::Out)?)
        else {
            return Ok(());
        };
        let with_edges = segment.statistics().has_edges;
        let (mut sources, mut degrees) = (Vec::new(), Vec::new());
        let mut next = Some(Id::UNBOUND);
        while let Some(from) = next {
            sources.clear();
            next = segment.keys(from, CHUNK, &mut sources)?;
            sources.retain(|source| source.is_vertex());
            let mut count = 0;
            for_each_entry(segment, &sources, with_edges, &mut |row, target, id| {
                count += 1;
                if let (Some(source), true) = (sources.get(row), target.is_vertex()) {
                    visit(Edge { source: Vertex(*source), label, target: Vertex(target), id });
                }
            })?;
            if !with_edges {
                continue;
            }
            // Statements without an edge id are edges, too.
            segment.degrees(&sources, EntryFilter::ALL, &mut degrees)?;
            if degrees.iter().sum::<u64>() > count {
                for source in &sources {
                    let edges = self.edges_of(segment, Vertex(*source), label, Direction::Out)?;
                    edges.into_iter().filter(|edge| !edge.id.is_bound()).for_each(&mut *visit);
                }
            }
        }
        Ok(())
    }

    /// All edges that have this value for this property, ascending by number.
    ///
    /// # Errors
    /// Damaged data.
    pub fn edges_with_property<'t>(&self, key: &str, value: impl Into<TermRef<'t>>) -> Result<Vec<Edge>> {
        let (Some(segment), Some(value)) =
            (self.segment(key, Direction::In)?, self.snapshot.lookup(value.into())?)
        else {
            return Ok(Vec::new());
        };
        let mut ids = Vec::new();
        segment.neighbours(value, EntryFilter::ALL, &mut ids)?;
        let mut edges = Vec::new();
        for id in ids.into_iter().filter(|id| id.tag() == Tag::Edge) {
            let [source, label, target, _] = self.snapshot.edge(id)?;
            if source.is_vertex() && target.is_vertex() {
                edges.push(Edge { source: Vertex(source), label, target: Vertex(target), id });
            }
        }
        Ok(edges)
    }

    /// The edges of a vertex with this label in the order of the property declared for it at load (such as a
    /// time): ZipG's `get_edges(source, label, time range)`. Takes `O(log(degree) + limit)`, or a sort of all
    /// edges of the vertex if edges of this label or values of that property have changed since the last load
    /// or checkpoint.
    ///
    /// # Errors
    /// Unsupported: no order is declared for this label. Input: a bound that is neither a number nor a time
    /// that fits into an id. Otherwise damaged data.
    pub fn edges_in_order(
        &self,
        vertex: Vertex,
        label: &str,
        direction: Direction,
        range: &EdgeRange,
    ) -> Result<Vec<Edge>> {
        let bound = |bound: &Option<Literal>| match bound {
            None => Ok(Id::UNBOUND),
            Some(literal) => {
                let id = self.snapshot.lookup(literal.as_ref().into())?.map(order_key);
                id.filter(|id| id.is_bound()).ok_or_else(|| {
                    Error::new(ErrorKind::Input, format!("{literal} cannot be the bound of an order"))
                        .with_hint("use an integer, a date, or a date and time in UTC")
                })
            }
        };
        let (from, before) = (bound(&range.from)?, bound(&range.before)?);
        let (Some(label), Some(segment)) =
            (self.lookup(KEY_NAMESPACE, label)?, self.segment(label, direction)?)
        else {
            return Ok(Vec::new());
        };
        let wanted = OrderRange { from, before, descending: range.newest_first, limit: range.limit };
        let mut entries = Vec::new();
        segment.ordered(vertex.0, &wanted, GraphFilter::Any, &mut entries)?;
        let edge = |entry: OrderedEntry| {
            let neighbour = Vertex(entry.neighbour);
            let (source, target) = match direction {
                Direction::Out => (vertex, neighbour),
                Direction::In => (neighbour, vertex),
            };
            Edge { source, label, target, id: entry.edge }
        };
        Ok(entries.into_iter().filter(|entry| entry.neighbour.is_vertex()).map(edge).collect())
    }

    /// Number of edges of a vertex with this label (parallel edges count separately).
    ///
    /// # Errors
    /// Damaged data.
    pub fn degree(&self, vertex: Vertex, label: &str, direction: Direction) -> Result<u64> {
        let Some(segment) = self.segment(label, direction)? else { return Ok(0) };
        let mut degrees = Vec::new();
        segment.degrees(&[vertex.0], EntryFilter::ALL, &mut degrees)?;
        Ok(degrees.first().copied().unwrap_or(0))
    }

    /// The label of an edge.
    ///
    /// # Errors
    /// Damaged data.
    pub fn edge_label(&self, edge: Edge) -> Result<String> {
        self.name_of(KEY_NAMESPACE, edge.label)
    }

    /// The first value of a property (values are ordered by id).
    ///
    /// # Errors
    /// Damaged data.
    pub fn property(&self, element: impl Element, key: &str) -> Result<Option<Term>> {
        Ok(self.property_values(element, key)?.into_iter().next())
    }

    /// All values of a property.
    ///
    /// # Errors
    /// Damaged data.
    pub fn property_values(&self, element: impl Element, key: &str) -> Result<Vec<Term>> {
        let (Some(subject), Some(segment)) = (element.subject(), self.segment(key, Direction::Out)?) else {
            return Ok(Vec::new());
        };
        let mut values = Vec::new();
        segment.neighbours(subject, EntryFilter::ALL, &mut values)?;
        values.into_iter().map(|value| self.term(value)).collect()
    }

    /// All properties as pairs of key and value, in the order of predicate ids.
    ///
    /// # Errors
    /// Damaged data.
    pub fn properties(&self, element: impl Element) -> Result<Vec<(String, Term)>> {
        let Some(subject) = element.subject() else { return Ok(Vec::new()) };
        let external_id = self.lookup("", EDGE_ID)?;
        let mut properties = Vec::new();
        for &(predicate, _) in self.snapshot.predicates() {
            let is_property =
                Some(predicate) != self.snapshot.type_predicate() && Some(predicate) != external_id;
            let Some(segment) = self.snapshot.segment(predicate, Direction::Out)?.filter(|_| is_property)
            else {
                continue;
            };
            let mut values = Vec::new();
            segment.neighbours(subject, EntryFilter::ALL, &mut values)?;
            for value in values.into_iter().filter(|value| value.is_stored_literal()) {
                properties.push((self.name_of(KEY_NAMESPACE, predicate)?, self.term(value)?));
            }
        }
        Ok(properties)
    }

    /// The term of a vertex: its IRI or blank node.
    ///
    /// # Errors
    /// Damaged data.
    pub fn vertex_term(&self, vertex: Vertex) -> Result<Term> {
        self.term(vertex.0)
    }

    fn term(&self, id: Id) -> Result<Term> {
        let mut term = None;
        self.snapshot.read_term(id, &mut String::new(), &mut |parts| term = Some(parts.to_term()))?;
        term.ok_or_else(|| vervet_model::Error::internal(format!("no term was read for {id:?}")))
    }

    fn name_of(&self, namespace: &str, id: Id) -> Result<String> {
        let mut text = String::new();
        self.snapshot.read_term(id, &mut String::new(), &mut |parts| parts.write_str(&mut text))?;
        if id.tag() == Tag::Vertex && self.snapshot.is_blank(id)? {
            return Ok(format!("_:{text}"));
        }
        Ok(iri_name(namespace, &text).unwrap_or(text))
    }

    fn lookup(&self, namespace: &str, name: &str) -> Result<Option<Id>> {
        if let Some(label) = name.strip_prefix("_:").filter(|_| namespace == VERTEX_NAMESPACE) {
            return self.snapshot.lookup(BlankNodeRef::new_unchecked(label).into());
        }
        let iri = if is_iri(name) { Cow::Borrowed(name) } else { Cow::Owned(name_iri(namespace, name)) };
        self.snapshot.lookup(NamedNodeRef::new_unchecked(&iri).into())
    }

    fn segment(&self, key: &str, direction: Direction) -> Result<Option<&'a dyn Segment>> {
        match self.lookup(KEY_NAMESPACE, key)? {
            Some(predicate) => self.snapshot.segment(predicate, direction),
            None => Ok(None),
        }
    }
}

/// Calls `visit` with the position of the key, neighbour and edge id of each entry of `keys`; with
/// `with_edges` only entries with an edge id are visited.
fn for_each_entry(
    segment: &dyn Segment,
    keys: &[Id],
    with_edges: bool,
    visit: &mut dyn FnMut(usize, Id, Id),
) -> Result<()> {
    let mut expansion = Expansion::new(if keys.len() > 1 { CHUNK } else { FEW });
    expansion.want_edges = with_edges;
    let mut cursor = Cursor::default();
    while cursor.row < keys.len() {
        expansion.clear();
        segment.expand(keys, EntryFilter::ALL, &mut cursor, &mut expansion)?;
        for (i, (&row, &neighbour)) in expansion.rows.iter().zip(&expansion.neighbours).enumerate() {
            visit(row as usize, neighbour, expansion.edges.get(i).copied().unwrap_or_default());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use oxrdf::NamedNode;
    use vervet_model::vocab::RDF_TYPE;
    use vervet_testkit::{MemorySnapshot, Statement};

    fn iri(graph: &mut MemorySnapshot, namespace: &str, name: &str) -> Id {
        graph.intern(&NamedNode::new_unchecked(name_iri(namespace, name)).into())
    }

    /// Two airports with two parallel routes of different length, and a country.
    fn sample() -> MemorySnapshot {
        let mut graph = MemorySnapshot::default();
        let type_predicate = graph.intern(&NamedNode::new_unchecked(RDF_TYPE).into());
        let plain = |subject, predicate, object| Statement {
            subject,
            predicate,
            object,
            graph: Id::UNBOUND,
            edge: Id::UNBOUND,
        };
        let [a, b, c] = ["1", "2", "AT"].map(|name| iri(&mut graph, VERTEX_NAMESPACE, name));
        let [airport, country] = ["airport", "country"].map(|name| iri(&mut graph, LABEL_NAMESPACE, name));
        let [route, dist, code, contains] =
            ["route", "dist", "code", "contains"].map(|name| iri(&mut graph, KEY_NAMESPACE, name));
        for (vertex, label) in [(a, airport), (b, airport), (c, country)] {
            graph.add(plain(vertex, type_predicate, label));
        }
        for (vertex, text) in [(a, "VIE"), (b, "GRZ")] {
            let value = graph.intern(&Literal::from(text).into());
            graph.add(plain(vertex, code, value));
        }
        for length in [100, 200] {
            let edge = graph.add_edge(a, route, b, Id::UNBOUND);
            let value = graph.intern(&Literal::from(length).into());
            graph.add(plain(edge, dist, value));
        }
        graph.add(plain(c, contains, a));
        graph.finish()
    }

    #[test]
    fn vertices_edges_and_properties_are_found() -> Result<()> {
        let snapshot = sample();
        let graph = Graph::new(&snapshot);
        let vienna = graph.vertex("1")?.expect("vertex 1 was added");
        assert_eq!(graph.vertices_with_label("airport")?.len(), 2);
        assert_eq!(graph.vertices_with_property("code", &Literal::from("VIE"))?, [vienna]);
        assert_eq!(graph.external_id(vienna)?, "1");
        assert_eq!(graph.labels(vienna)?, ["airport"]);
        assert_eq!(graph.degree(vienna, "route", Direction::Out)?, 2);
        assert_eq!(graph.neighbours(vienna, "route", Direction::Out)?.len(), 2);
        assert_eq!(graph.neighbours(vienna, "contains", Direction::In)?.len(), 1);
        let edges = graph.edges(vienna, "route", Direction::Out)?;
        let mut lengths: Vec<String> = Vec::new();
        for edge in &edges {
            assert_eq!(graph.edge_label(*edge)?, "route");
            lengths.push(graph.property(*edge, "dist")?.expect("every route has a length").to_string());
        }
        lengths.sort();
        assert_eq!(lengths.len(), 2);
        assert!(lengths[0].starts_with("\"100\"") && lengths[1].starts_with("\"200\""), "{lengths:?}");
        let contains = graph.edges(vienna, "contains", Direction::In)?;
        assert_eq!(contains.len(), 1);
        let all = |label: &str| -> Result<Vec<Edge>> {
            let mut all = Vec::new();
            graph.for_each_edge(label, &mut |edge| all.push(edge))?;
            Ok(all)
        };
        assert_eq!(all("route")?, edges);
        assert_eq!(all("contains")?, contains);
        assert_eq!(all("dist")?, []);
        let graz = graph.vertex("2")?.expect("vertex 2 was added");
        assert_eq!(graph.edges_between(vienna, "route", graz)?, edges);
        assert_eq!(graph.edges_between(graz, "route", vienna)?, []);
        assert_eq!(graph.edges_with_property("dist", &Literal::from(200))?.len(), 1);
        assert_eq!(graph.edges_with_property("code", &Literal::from("VIE"))?, []);
        assert_eq!(graph.properties(contains[0])?, []);
        assert_eq!(graph.properties(vienna)?.len(), 1);
        Ok(())
    }

    #[test]
    fn external_ids_lead_back() -> Result<()> {
        let mut snapshot = sample();
        let knows = iri(&mut snapshot, KEY_NAMESPACE, "knows");
        let blank = snapshot.intern(&oxrdf::BlankNode::new_unchecked("b7").into());
        let named = snapshot.intern(&NamedNode::new_unchecked("http://example.org/x").into());
        for (subject, object) in [(blank, named), (named, blank)] {
            let statement =
                Statement { subject, predicate: knows, object, graph: Id::UNBOUND, edge: Id::UNBOUND };
            snapshot.add(statement);
        }
        let snapshot = snapshot.finish();
        let graph = Graph::new(&snapshot);
        for id in [blank, named] {
            let external_id = graph.external_id(Vertex(id))?;
            assert_eq!(graph.vertex(&external_id)?, Some(Vertex(id)), "{external_id}");
            // One edge in each direction, both without id.
            assert_eq!(graph.edges(Vertex(id), "knows", Direction::Out)?.len(), 1);
        }
        Ok(())
    }

    #[test]
    fn unknown_names_are_empty_answers() -> Result<()> {
        let snapshot = sample();
        let graph = Graph::new(&snapshot);
        let vienna = graph.vertex("1")?.expect("vertex 1 was added");
        assert_eq!(graph.vertex("7")?, None);
        assert!(graph.vertices_with_label("planet")?.is_empty());
        assert!(graph.neighbours(vienna, "likes", Direction::Out)?.is_empty());
        assert_eq!(graph.degree(vienna, "likes", Direction::In)?, 0);
        assert_eq!(graph.property(vienna, "colour")?, None);
        Ok(())
    }

    #[test]
    fn reach_follows_edges_to_the_end() -> Result<()> {
        let snapshot = sample();
        let graph = Graph::new(&snapshot);
        let country = graph.vertex("AT")?.expect("the country was added");
        let vienna = graph.vertex("1")?.expect("vertex 1 was added");
        assert_eq!(graph.reach(country, "contains", Direction::Out)?, [vienna]);
        assert_eq!(graph.reach(vienna, "route", Direction::Out)?.len(), 1);
        assert!(graph.reach(vienna, "contains", Direction::Out)?.is_empty());
        Ok(())
    }
}
