//! The reference implementation of a snapshot, made of sorted vectors.
//!
//! # Cost
//! Look-ups are binary searches in whole segments; building sorts everything. For tests only.

use oxrdf::vocab::xsd;
use oxrdf::{BlankNode, GraphName, Quad, Term, TermRef};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use vervet_model::{
    Direction, Error, Id, Inline, LiteralKind, Meter, Result, Statement, Tag, TermParts, TextSearch, Words,
    inline_id, triple_text,
    vocab::{EDGE_NAMESPACE, RDF_TYPE},
};
use vervet_snapshot::{
    ClassId, ClassPairCount, ContentId, Cursor, EntryFilter, Expansion, GraphFilter, KeySketch, OrderRange,
    OrderedEntry, Segment, SegmentStatistics, Snapshot,
};

/// A graph in memory. Queries see the state of the last [`MemorySnapshot::finish`].
#[derive(Default, Debug)]
pub struct MemorySnapshot {
    ids: HashMap<Term, Id>,
    vertices: Vec<Term>,
    literals: Vec<Term>,
    /// Indices into `literals`, ascending by text and index.
    order: Vec<usize>,
    edges: Vec<[Id; 4]>,
    statements: BTreeSet<Statement>,
    segments: BTreeMap<(Id, Direction), MemorySegment>,
    predicates: Vec<(Id, u64)>,
    graphs: Vec<(Id, u64)>,
    classes: BTreeMap<Id, Vec<ClassId>>,
    class_sizes: BTreeMap<ClassId, u64>,
}

#[derive(Debug)]
struct MemorySegment {
    /// `(key, neighbour, graph, edge)`, ascending.
    entries: Vec<[Id; 4]>,
    keys: Vec<Id>,
    statistics: SegmentStatistics,
    content: ContentId,
}

impl MemorySnapshot {
    /// A snapshot with these quads.
    pub fn from_quads(quads: impl IntoIterator<Item = Quad>) -> Self {
        let mut snapshot = Self::default();
        for quad in quads {
            let subject = snapshot.intern(&quad.subject.into());
            let predicate = snapshot.intern(&quad.predicate.into());
            let object = snapshot.intern(&quad.object);
            let graph = match quad.graph_name {
                GraphName::NamedNode(node) => snapshot.intern(&node.into()),
                GraphName::BlankNode(node) => snapshot.intern(&node.into()),
                GraphName::DefaultGraph => Id::UNBOUND,
            };
            snapshot.add(Statement { subject, predicate, object, graph, edge: Id::UNBOUND });
        }
        snapshot.finish()
    }

    /// The id of a term; assigns one to a new term.
    pub fn intern(&mut self, term: &Term) -> Id {
        if let Some(id) = fixed_id(term.as_ref()) {
            return id;
        }
        if let Some(&id) = self.ids.get(term) {
            return id;
        }
        let id = if matches!(term, Term::Literal(_) | Term::Triple(_)) {
            self.literals.push(term.clone());
            Id::literal(self.literals.len() as u64 - 1)
        } else {
            self.vertices.push(term.clone());
            Id::vertex(self.vertices.len() as u64 - 1)
        };
        self.ids.insert(term.clone(), id);
        id
    }

    /// Adds a statement; returns whether it was new. Call [`MemorySnapshot::finish`] after the last one.
    pub fn add(&mut self, statement: Statement) -> bool {
        self.statements.insert(statement)
    }

    /// Removes a statement; returns whether it existed. Call [`MemorySnapshot::finish`] after the last one.
    pub fn remove(&mut self, statement: &Statement) -> bool {
        self.statements.remove(statement)
    }

    /// All statements, ascending by subject.
    pub fn statements(&self) -> impl Iterator<Item = &Statement> {
        self.statements.iter()
    }

    /// Adds a statement with a new edge id and returns that id.
    pub fn add_edge(&mut self, subject: Id, predicate: Id, object: Id, graph: Id) -> Id {
        let edge = Id::edge(self.edges.len() as u64);
        self.edges.push([subject, predicate, object, graph]);
        self.add(Statement { subject, predicate, object, graph, edge });
        edge
    }

    /// Builds (or rebuilds) segments and statistics.
    #[must_use]
    pub fn finish(mut self) -> Self {
        self.segments.clear();
        self.predicates.clear();
        self.classes.clear();
        self.class_sizes.clear();
        let type_predicate =
            self.ids.get(&Term::NamedNode(oxrdf::NamedNode::new_unchecked(RDF_TYPE))).copied();
        let mut types: BTreeMap<Id, BTreeSet<Id>> = BTreeMap::new();
        let mut graphs: BTreeMap<Id, u64> = BTreeMap::new();
        let mut entries: BTreeMap<(Id, Direction), Vec<[Id; 4]>> = BTreeMap::new();
        for s in &self.statements {
            if Some(s.predicate) == type_predicate {
                types.entry(s.subject).or_default().insert(s.object);
            }
            if s.graph.is_bound() {
                *graphs.entry(s.graph).or_default() += 1;
            }
            for (direction, key, neighbour) in
                [(Direction::Out, s.subject, s.object), (Direction::In, s.object, s.subject)]
            {
                let entry = [key, neighbour, s.graph, s.edge];
                entries.entry((s.predicate, direction)).or_default().push(entry);
            }
        }
        let mut class_of_set: BTreeMap<&BTreeSet<Id>, ClassId> = BTreeMap::new();
        let mut class_of: BTreeMap<Id, ClassId> = BTreeMap::new();
        for (&vertex, set) in &types {
            let next = usize::from(ClassId::FIRST.0) + class_of_set.len();
            let fresh = ClassId(u16::try_from(next.min(ClassId::COUNT_MAX)).expect("few classes"));
            let class = if next < ClassId::COUNT_MAX || class_of_set.contains_key(set) {
                *class_of_set.entry(set).or_insert(fresh)
            } else {
                ClassId::OTHER
            };
            class_of.insert(vertex, class);
            *self.class_sizes.entry(class).or_default() += 1;
            for &type_id in set {
                let classes = self.classes.entry(type_id).or_default();
                if let Err(at) = classes.binary_search(&class) {
                    classes.insert(at, class);
                }
            }
        }
        let untyped = self.vertices.len() as u64 - class_of.keys().filter(|id| id.is_vertex()).count() as u64;
        self.class_sizes.insert(ClassId::UNTYPED, untyped);
        self.class_sizes.insert(ClassId::LITERAL, self.literals.len() as u64);
        let class = |id: Id| match id.tag() {
            Tag::Vertex | Tag::Edge => class_of.get(&id).copied().unwrap_or(ClassId::UNTYPED),
            _ => ClassId::LITERAL,
        };
        for (name, mut entries) in entries {
            entries.sort_unstable();
            entries.dedup();
            let mut segment = MemorySegment::new(entries, &class);
            segment.statistics.plain_strings_only =
                segment.entries.iter().all(|entry| self.is_string(entry[1]));
            if name.1 == Direction::Out {
                self.predicates.push((name.0, segment.statistics.entries));
            }
            self.segments.insert(name, segment);
        }
        self.graphs = graphs.into_iter().collect();
        let mut order: Vec<usize> = (0..self.literals.len()).collect();
        order.sort_by_key(|&at| self.text(at));
        self.order = order;
        self
    }

    fn is_string(&self, id: Id) -> bool {
        let at = usize::try_from(id.payload()).ok().filter(|_| id.tag() == Tag::Literal);
        let literal = at.and_then(|at| self.literals.get(at));
        let is_string = |term: &Term| match term {
            Term::Literal(literal) => literal.language().is_none() && literal.datatype() == xsd::STRING,
            _ => false,
        };
        id.tag() == Tag::ShortString || literal.is_some_and(is_string)
    }

    fn text(&self, literal: usize) -> Option<Cow<'_, str>> {
        match self.literals.get(literal) {
            Some(Term::Literal(literal)) => Some(Cow::Borrowed(literal.value())),
            Some(Term::Triple(triple)) => triple_text(triple.as_ref().as_ref()).map(Cow::Owned),
            _ => None,
        }
    }

    fn parts<'a>(&'a self, id: Id, scratch: &'a mut String) -> Result<TermParts<'a>> {
        let missing = || Error::internal(format!("no term has the id {id:?}"));
        let number = usize::try_from(id.payload()).map_err(|_| missing())?;
        let term = match id.tag() {
            Tag::Edge => return Ok(TermParts::Edge(id.payload())),
            Tag::Vertex => self.vertices.get(number).ok_or_else(missing)?,
            Tag::Literal => self.literals.get(number).ok_or_else(missing)?,
            _ => {
                let value = Inline::from_id(id).ok_or_else(missing)?;
                scratch.clear();
                value.write_lexical(scratch);
                let kind = match value {
                    Inline::ShortString { .. } => LiteralKind::String,
                    _ => LiteralKind::Typed(value.datatype()),
                };
                return Ok(TermParts::Literal { head: scratch, tail: "", kind });
            }
        };
        Ok(match term {
            Term::NamedNode(node) => TermParts::Iri { namespace: "", local: node.as_str() },
            Term::BlankNode(node) => TermParts::Blank(node.as_str()),
            Term::Literal(literal) => {
                let kind = if let Some(language) = literal.language() {
                    scratch.clear();
                    scratch.push_str(language);
                    if let Some(direction) = literal.direction() {
                        scratch.push_str("--");
                        scratch.push_str(if direction == oxrdf::BaseDirection::Rtl { "rtl" } else { "ltr" });
                    }
                    LiteralKind::Language(scratch)
                } else if literal.datatype() == oxrdf::vocab::xsd::STRING {
                    LiteralKind::String
                } else {
                    LiteralKind::Typed(literal.datatype().as_str())
                };
                TermParts::Literal { head: literal.value(), tail: "", kind }
            }
            Term::Triple(triple) => {
                scratch.clear();
                scratch.push_str(&triple_text(triple.as_ref().as_ref()).ok_or_else(missing)?);
                TermParts::Literal { head: scratch, tail: "", kind: LiteralKind::Triple }
            }
        })
    }
}

/// The id of a term that needs no dictionary entry.
fn fixed_id(term: TermRef<'_>) -> Option<Id> {
    match term {
        TermRef::NamedNode(node) => Some(Id::edge(node.as_str().strip_prefix(EDGE_NAMESPACE)?.parse().ok()?)),
        TermRef::Literal(literal) if literal.language().is_none() => {
            inline_id(literal.value(), literal.datatype().as_str())
        }
        _ => None,
    }
}

impl Snapshot for MemorySnapshot {
    fn lookup(&self, term: TermRef<'_>) -> Result<Option<Id>> {
        Ok(match fixed_id(term) {
            Some(id) if id.tag() == Tag::Edge && id.payload() >= self.edge_count() => None,
            Some(id) => Some(id),
            None => self.ids.get(&term.into_owned()).copied(),
        })
    }

    fn read_term(&self, id: Id, scratch: &mut String, read: &mut dyn FnMut(TermParts<'_>)) -> Result<()> {
        read(self.parts(id, scratch)?);
        Ok(())
    }

    fn write_terms(&self, ids: &[Id], out: &mut Vec<u8>, ends: &mut Vec<usize>) -> Result<()> {
        let mut scratch = String::new();
        for &id in ids {
            self.parts(id, &mut scratch)?.write_nt(out);
            ends.push(out.len());
        }
        Ok(())
    }

    fn is_blank(&self, id: Id) -> Result<bool> {
        Ok(id.is_vertex()
            && matches!(self.parts(id, &mut String::new())?.to_term(), Term::BlankNode(BlankNode { .. })))
    }

    fn segment(&self, predicate: Id, direction: Direction) -> Result<Option<&dyn Segment>> {
        Ok(self.segments.get(&(predicate, direction)).map(|segment| segment as &dyn Segment))
    }

    fn predicates(&self) -> &[(Id, u64)] {
        &self.predicates
    }

    fn graphs(&self) -> &[(Id, u64)] {
        &self.graphs
    }

    fn type_predicate(&self) -> Option<Id> {
        self.ids.get(&Term::NamedNode(oxrdf::NamedNode::new_unchecked(RDF_TYPE))).copied()
    }

    fn vertex_count(&self) -> u64 {
        self.vertices.len() as u64
    }

    fn edge_count(&self) -> u64 {
        self.edges.len() as u64
    }

    fn literal_count(&self) -> u64 {
        self.literals.len() as u64
    }

    fn statement_count(&self) -> u64 {
        self.statements.len() as u64
    }

    fn edge(&self, edge: Id) -> Result<[Id; 4]> {
        let number = usize::try_from(edge.payload()).unwrap_or(usize::MAX);
        self.edges.get(number).copied().ok_or_else(|| Error::internal(format!("there is no edge {edge:?}")))
    }

    fn is_plain_text(&self, id: Id) -> Result<bool> {
        vervet_snapshot::read_is_plain_text(self, id)
    }

    fn may_have_blanks(&self) -> bool {
        self.vertices.iter().any(Term::is_blank_node)
    }

    fn text_rank(&self, literal: Id) -> Result<Option<u64>> {
        // Each rank takes time proportional to the number of literals.
        const LITERALS_MAX: usize = 256;
        let text = |term: &Term| match term {
            Term::Literal(literal) if literal.datatype() == oxrdf::vocab::xsd::STRING => {
                Some(literal.value().to_owned())
            }
            _ => None,
        };
        let number = usize::try_from(literal.payload()).unwrap_or(usize::MAX);
        let own = (literal.tag() == Tag::Literal && self.literals.len() <= LITERALS_MAX)
            .then(|| self.literals.get(number).and_then(text))
            .flatten();
        Ok(own.map(|own| self.literals.iter().filter_map(text).filter(|other| *other < own).count() as u64))
    }

    fn may_have_triple_terms(&self) -> bool {
        true
    }

    fn unordered_literals(
        &self,
        _from: &[u8],
        _to: Option<&[u8]>,
        _out: &mut Vec<Id>,
        _meter: &mut Meter<'_>,
    ) -> Result<()> {
        Ok(())
    }

    fn unordered_literal_count(&self, _from: &[u8], _to: Option<&[u8]>) -> Result<u64> {
        Ok(0)
    }

    fn classes_are_exact(&self) -> bool {
        true
    }

    fn literal_range(&self, from: &[u8], to: Option<&[u8]>) -> Result<Option<Range<u64>>> {
        let below = |text: &[u8]| {
            self.order.partition_point(|&at| self.text(at).is_some_and(|found| found.as_bytes() < text))
                as u64
        };
        let start = below(from);
        Ok(Some(start..to.map_or(self.order.len() as u64, below).max(start)))
    }

    fn search_count(&self, search: &TextSearch, meter: &mut Meter<'_>) -> Result<Option<u64>> {
        let mut found = Vec::new();
        self.search(search, &mut found, meter)?;
        Ok(Some(found.len() as u64))
    }

    fn search(&self, search: &TextSearch, out: &mut Vec<Id>, meter: &mut Meter<'_>) -> Result<()> {
        let mut words = Words::default();
        for (at, literal) in self.literals.iter().enumerate() {
            meter(1)?;
            let Term::Literal(literal) = literal else { continue };
            words.take(literal.value());
            let is_text = literal.language().is_some() || literal.datatype() == oxrdf::vocab::xsd::STRING;
            if is_text && search.matches(&words) {
                out.push(Id::literal(at as u64));
            }
        }
        Ok(())
    }

    fn literals_in_order(&self, positions: Range<u64>, out: &mut Vec<Id>) -> Result<()> {
        for position in positions {
            let at = usize::try_from(position).ok().and_then(|position| self.order.get(position));
            let at = at.ok_or_else(|| Error::internal(format!("no literal at position {position}")))?;
            out.push(Id::literal(*at as u64));
        }
        Ok(())
    }

    fn classes_of_type(&self, type_id: Id) -> &[ClassId] {
        self.classes.get(&type_id).map_or(&[], Vec::as_slice)
    }

    fn class_size(&self, class: ClassId) -> u64 {
        self.class_sizes.get(&class).copied().unwrap_or_default()
    }
}

impl MemorySegment {
    fn new(entries: Vec<[Id; 4]>, class: &dyn Fn(Id) -> ClassId) -> Self {
        let mut keys: Vec<Id> = entries.iter().map(|entry| entry[0]).collect();
        keys.dedup();
        let mut class_pairs: BTreeMap<(ClassId, ClassId), u64> = BTreeMap::new();
        for entry in &entries {
            *class_pairs.entry((class(entry[0]), class(entry[1]))).or_default() += 1;
        }
        let mut keys_of_class: BTreeMap<ClassId, u64> = BTreeMap::new();
        for &key in &keys {
            *keys_of_class.entry(class(key)).or_default() += 1;
        }
        let neighbours: BTreeSet<Id> = entries.iter().map(|entry| entry[1]).collect();
        let degree_of = |run: &[[Id; 4]]| (run[0][0], run.len() as u64);
        let degrees: Vec<(Id, u64)> = entries.chunk_by(|a, b| a[0] == b[0]).map(degree_of).collect();
        let statistics = SegmentStatistics {
            exact: true,
            keys: keys.len() as u64,
            entries: entries.len() as u64,
            neighbours: neighbours.len() as u64,
            degree_max: degrees.iter().map(|(_, degree)| *degree).max().unwrap_or(0),
            degree_squares: degrees.iter().map(|(_, degree)| degree * degree).sum(),
            sketch: Some(KeySketch::new(degrees, KeySketch::SAMPLES_MAX)),
            has_named_graphs: entries.iter().any(|entry| entry[2].is_bound()),
            has_edges: entries.iter().any(|entry| entry[3].is_bound()),
            has_parallel: entries.windows(2).any(|pair| pair[0][..3] == pair[1][..3]),
            literals_only: neighbours.iter().all(|id| id.is_stored_literal()),
            plain_strings_only: false,
            vertices_only: neighbours.iter().all(|id| id.is_vertex()),
            class_pairs: class_pairs
                .into_iter()
                .map(|((source, target), entries)| ClassPairCount { source, target, entries })
                .collect(),
            untyped_keys: keys_of_class.get(&ClassId::UNTYPED).copied().unwrap_or_default(),
            keys_of_class: keys_of_class.into_iter().collect(),
        };
        Self { entries, keys, statistics, content: ContentId::new() }
    }

    /// The entries of `key` that pass `filter`.
    fn matching(&self, key: Id, filter: EntryFilter, edges: bool) -> Vec<[Id; 4]> {
        let start = self.entries.partition_point(|entry| entry[0] < key);
        let mut found: Vec<_> = self.entries[start..]
            .iter()
            .take_while(|entry| entry[0] == key)
            .filter(|entry| match filter.graph {
                GraphFilter::Default => !entry[2].is_bound(),
                GraphFilter::Named(graph) => entry[2] == graph,
                GraphFilter::AnyNamed => entry[2].is_bound(),
                GraphFilter::Any => true,
            })
            .filter(|entry| !edges || entry[3].is_bound())
            .copied()
            .collect();
        if !filter.parallel && !edges {
            found.dedup_by(|b, a| a[1..3] == b[1..3]);
        }
        found
    }
}

impl Segment for MemorySegment {
    fn statistics(&self) -> &SegmentStatistics {
        &self.statistics
    }

    fn expand(
        &self,
        keys: &[Id],
        filter: EntryFilter,
        cursor: &mut Cursor,
        out: &mut Expansion,
    ) -> Result<()> {
        while cursor.row < keys.len() {
            let mut found = self.matching(keys[cursor.row], filter, out.want_edges);
            if cursor.resume != Cursor::default().resume {
                let skipped = found.partition_point(|entry| entry[1..] < cursor.resume[..]);
                *cursor = Cursor { offset: skipped as u64, ..Cursor::at(cursor.row) };
            }
            if let Some((_, below)) = out.end.filter(|(row, _)| *row == cursor.row) {
                found.retain(|entry| entry[1] < below);
            }
            let offset = usize::try_from(cursor.offset).expect("an offset into memory");
            for entry in found.get(offset..).unwrap_or_default() {
                if out.remaining_capacity() == 0 {
                    return Ok(());
                }
                out.rows.push(u32::try_from(cursor.row).expect("a batch is small"));
                out.neighbours.push(entry[1]);
                if out.want_edges {
                    out.edges.push(entry[3]);
                }
                if out.want_graphs {
                    out.graphs.push(entry[2]);
                }
                cursor.offset += 1;
            }
            *cursor = Cursor::at(cursor.row + 1);
        }
        Ok(())
    }

    fn split(&self, key: Id, parts: usize, entries_min: usize, out: &mut Vec<Id>) -> Result<()> {
        let all = EntryFilter::ALL;
        let mut found: Vec<Id> = self.matching(key, all, false).into_iter().map(|entry| entry[1]).collect();
        let parts = parts.min(found.len() / entries_min.max(1)).max(1);
        let stretch = (found.len() / parts).max(1);
        found = found.into_iter().skip(stretch).step_by(stretch).take(parts - 1).collect();
        found.dedup();
        out.append(&mut found);
        Ok(())
    }

    fn degrees(&self, keys: &[Id], filter: EntryFilter, out: &mut Vec<u64>) -> Result<()> {
        out.clear();
        out.extend(keys.iter().map(|&key| self.matching(key, filter, false).len() as u64));
        Ok(())
    }

    fn check(&self, keys: &[Id], neighbours: &[Id], filter: EntryFilter, out: &mut Vec<u32>) -> Result<()> {
        for (row, (&key, &neighbour)) in keys.iter().zip(neighbours).enumerate() {
            if self.matching(key, filter, false).iter().any(|entry| entry[1] == neighbour) {
                out.push(u32::try_from(row).expect("a batch is small"));
            }
        }
        Ok(())
    }

    fn check_constant(
        &self,
        keys: &[Id],
        neighbour: Id,
        filter: EntryFilter,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        self.check(keys, &vec![neighbour; keys.len()], filter, out)
    }

    fn neighbours(&self, key: Id, filter: EntryFilter, out: &mut Vec<Id>) -> Result<()> {
        let start = out.len();
        out.extend(self.matching(key, filter, false).iter().map(|entry| entry[1]));
        let mut distinct: Vec<_> = out.drain(start..).collect();
        distinct.dedup();
        out.extend(distinct);
        Ok(())
    }

    fn keys_up_to(&self, from: Id, last: Id, limit: usize, out: &mut Vec<Id>) -> Result<Option<Id>> {
        vervet_snapshot::keys_up_to(self, from, last, limit, out)
    }

    fn order(&self) -> Option<Id> {
        None
    }

    fn ordered(
        &self,
        _key: Id,
        _range: &OrderRange,
        _graph: GraphFilter,
        _out: &mut Vec<OrderedEntry>,
    ) -> Result<()> {
        Err(vervet_snapshot::no_order_error())
    }

    fn content_id(&self) -> Option<ContentId> {
        Some(self.content)
    }

    fn is_remote(&self, _: Option<&[Id]>) -> bool {
        false
    }

    fn keys(&self, from: Id, limit: usize, out: &mut Vec<Id>) -> Result<Option<Id>> {
        let start = self.keys.partition_point(|key| *key < from);
        let end = start.saturating_add(limit).min(self.keys.len());
        out.extend_from_slice(&self.keys[start..end]);
        Ok(self.keys.get(end).copied())
    }

    fn keys_below(&self, key: Id) -> Result<u64> {
        Ok(self.keys.partition_point(|other| *other < key) as u64)
    }

    fn entries(&self, key: Id, from: [Id; 3], limit: usize, out: &mut Vec<[Id; 3]>) -> Result<()> {
        let all = EntryFilter::ALL;
        let found = self
            .matching(key, all, false)
            .into_iter()
            .map(|[_, neighbour, graph, edge]| [neighbour, graph, edge]);
        out.extend(found.filter(|entry| *entry >= from).take(limit));
        Ok(())
    }
}
