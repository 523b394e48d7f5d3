//! Lazy scans: the number of reads depends on the number of results, not on the size of the label.

use oxrdf::{NamedNode, Term, TermRef};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use vervet_gremlin::text::{ParseOptions, Statement, parse};
use vervet_kernel::{Control, Limits};
use vervet_model::vocab::{KEY_NAMESPACE, LABEL_NAMESPACE, RDF_TYPE};
use vervet_model::{Direction, ErrorKind, Id, Meter, Result, TermParts, TextSearch};
use vervet_snapshot::{
    ClassId, Cursor, EntryFilter, Expansion, GraphFilter, OrderRange, OrderedEntry, Segment,
    SegmentStatistics, Snapshot,
};
use vervet_testkit::{MemorySnapshot, Statement as Triple};
use vervet_traversal::{ReadOnly, Traversal};

/// Vertices with the label `thing`, and edges from the first of them to all.
const THINGS: u64 = 20_000;

/// A snapshot that counts the entries and keys that its segments return.
struct Counting<'a> {
    graph: &'a MemorySnapshot,
    segments: Vec<(Id, Direction, CountingSegment<'a>)>,
    read: Arc<AtomicU64>,
}

struct CountingSegment<'a> {
    inner: &'a dyn Segment,
    read: Arc<AtomicU64>,
    /// Sets the flag after this many reads.
    cancels: Option<(u64, Arc<AtomicBool>)>,
}

impl<'a> Counting<'a> {
    fn new(graph: &'a MemorySnapshot) -> Self {
        let read = Arc::new(AtomicU64::new(0));
        let mut segments = Vec::new();
        for (predicate, _) in graph.predicates() {
            for direction in Direction::BOTH {
                if let Some(inner) = graph.segment(*predicate, direction).expect("whole") {
                    let segment = CountingSegment { inner, read: Arc::clone(&read), cancels: None };
                    segments.push((*predicate, direction, segment));
                }
            }
        }
        Self { graph, segments, read }
    }

    /// The number of results, and the number of reads.
    fn run(&self, text: &str) -> (u64, u64) {
        self.read.store(0, Relaxed);
        let count = run(self, text, Limits::default()).unwrap_or_else(|error| panic!("{text}: {error}"));
        (count, self.read.load(Relaxed))
    }
}

fn run(snapshot: &dyn Snapshot, text: &str, limits: Limits) -> Result<u64> {
    let statement = parse(text, &ParseOptions::default()).expect("it is a traversal").into_iter().next();
    let Some(Statement::Traversal { bytecode, .. }) = statement else { panic!("{text}") };
    let mut host = ReadOnly(snapshot);
    let control = Control::new(limits);
    let mut run = Traversal::new(&bytecode)?.run(&mut host, &control);
    let mut count = 0;
    while let Some((_, bulk)) = run.advance()? {
        count += bulk;
    }
    Ok(count)
}

impl CountingSegment<'_> {
    fn counted<T>(&self, before: usize, found: &[T]) {
        self.add(found.len() - before);
    }

    fn add(&self, count: usize) {
        let read = self.read.fetch_add(count as u64, Relaxed);
        if let Some((most, flag)) = &self.cancels {
            flag.fetch_or(read >= *most, Relaxed);
        }
    }
}

impl Segment for CountingSegment<'_> {
    fn statistics(&self) -> &SegmentStatistics {
        self.inner.statistics()
    }

    fn expand(
        &self,
        keys: &[Id],
        filter: EntryFilter,
        cursor: &mut Cursor,
        out: &mut Expansion,
    ) -> Result<()> {
        let before = out.len();
        self.inner.expand(keys, filter, cursor, out)?;
        self.counted(before, &out.rows);
        Ok(())
    }

    fn content_id(&self) -> Option<vervet_snapshot::ContentId> {
        None
    }

    fn is_remote(&self, keys: Option<&[Id]>) -> bool {
        self.inner.is_remote(keys)
    }

    fn split(&self, key: Id, parts: usize, entries_min: usize, out: &mut Vec<Id>) -> Result<()> {
        self.inner.split(key, parts, entries_min, out)
    }

    fn degrees(&self, keys: &[Id], filter: EntryFilter, out: &mut Vec<u64>) -> Result<()> {
        self.add(keys.len());
        self.inner.degrees(keys, filter, out)
    }

    fn check(&self, keys: &[Id], neighbours: &[Id], filter: EntryFilter, out: &mut Vec<u32>) -> Result<()> {
        self.add(keys.len());
        self.inner.check(keys, neighbours, filter, out)
    }

    fn check_constant(
        &self,
        keys: &[Id],
        neighbour: Id,
        filter: EntryFilter,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        self.add(keys.len());
        self.inner.check_constant(keys, neighbour, filter, out)
    }

    fn neighbours(&self, key: Id, filter: EntryFilter, out: &mut Vec<Id>) -> Result<()> {
        let before = out.len();
        self.inner.neighbours(key, filter, out)?;
        self.counted(before, out);
        Ok(())
    }

    fn keys(&self, from: Id, limit: usize, out: &mut Vec<Id>) -> Result<Option<Id>> {
        let before = out.len();
        let next = self.inner.keys(from, limit, out)?;
        self.counted(before, out);
        Ok(next)
    }

    fn entries(&self, key: Id, from: [Id; 3], limit: usize, out: &mut Vec<[Id; 3]>) -> Result<()> {
        let before = out.len();
        self.inner.entries(key, from, limit, out)?;
        self.counted(before, out);
        Ok(())
    }

    fn keys_up_to(&self, from: Id, last: Id, limit: usize, out: &mut Vec<Id>) -> Result<Option<Id>> {
        vervet_snapshot::keys_up_to(self, from, last, limit, out)
    }

    fn order(&self) -> Option<Id> {
        self.inner.order()
    }

    fn ordered(
        &self,
        key: Id,
        range: &OrderRange,
        graph: GraphFilter,
        out: &mut Vec<OrderedEntry>,
    ) -> Result<()> {
        self.inner.ordered(key, range, graph, out)
    }

    fn keys_below(&self, key: Id) -> Result<u64> {
        self.inner.keys_below(key)
    }
}

impl Snapshot for Counting<'_> {
    fn lookup(&self, term: TermRef<'_>) -> Result<Option<Id>> {
        self.graph.lookup(term)
    }

    fn read_term(&self, id: Id, scratch: &mut String, read: &mut dyn FnMut(TermParts<'_>)) -> Result<()> {
        self.graph.read_term(id, scratch, read)
    }

    fn write_terms(&self, ids: &[Id], out: &mut Vec<u8>, ends: &mut Vec<usize>) -> Result<()> {
        self.graph.write_terms(ids, out, ends)
    }

    fn is_blank(&self, id: Id) -> Result<bool> {
        self.graph.is_blank(id)
    }

    fn segment(&self, predicate: Id, direction: Direction) -> Result<Option<&dyn Segment>> {
        let of =
            |(id, other, _): &&(Id, Direction, CountingSegment<'_>)| (*id, *other) == (predicate, direction);
        Ok(self.segments.iter().find(of).map(|(.., segment)| -> &dyn Segment { segment }))
    }

    fn predicates(&self) -> &[(Id, u64)] {
        self.graph.predicates()
    }

    fn graphs(&self) -> &[(Id, u64)] {
        self.graph.graphs()
    }

    fn is_plain_text(&self, id: Id) -> Result<bool> {
        self.graph.is_plain_text(id)
    }

    fn may_have_blanks(&self) -> bool {
        self.graph.may_have_blanks()
    }

    fn text_rank(&self, literal: Id) -> Result<Option<u64>> {
        self.graph.text_rank(literal)
    }

    fn may_have_triple_terms(&self) -> bool {
        self.graph.may_have_triple_terms()
    }

    fn classes_are_exact(&self) -> bool {
        self.graph.classes_are_exact()
    }

    fn literal_range(&self, from: &[u8], to: Option<&[u8]>) -> Result<Option<Range<u64>>> {
        self.graph.literal_range(from, to)
    }

    fn unordered_literals(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        out: &mut Vec<Id>,
        meter: &mut Meter<'_>,
    ) -> Result<()> {
        self.graph.unordered_literals(from, to, out, meter)
    }

    fn unordered_literal_count(&self, from: &[u8], to: Option<&[u8]>) -> Result<u64> {
        self.graph.unordered_literal_count(from, to)
    }

    fn search_count(&self, search: &TextSearch, meter: &mut Meter<'_>) -> Result<Option<u64>> {
        self.graph.search_count(search, meter)
    }

    fn search(&self, search: &TextSearch, out: &mut Vec<Id>, meter: &mut Meter<'_>) -> Result<()> {
        self.graph.search(search, out, meter)
    }

    fn literals_in_order(&self, positions: Range<u64>, out: &mut Vec<Id>) -> Result<()> {
        self.graph.literals_in_order(positions, out)
    }

    fn type_predicate(&self) -> Option<Id> {
        self.graph.type_predicate()
    }

    fn vertex_count(&self) -> u64 {
        self.graph.vertex_count()
    }

    fn edge_count(&self) -> u64 {
        self.graph.edge_count()
    }

    fn literal_count(&self) -> u64 {
        self.graph.literal_count()
    }

    fn statement_count(&self) -> u64 {
        self.graph.statement_count()
    }

    fn edge(&self, edge: Id) -> Result<[Id; 4]> {
        self.graph.edge(edge)
    }

    fn classes_of_type(&self, type_id: Id) -> &[ClassId] {
        self.graph.classes_of_type(type_id)
    }

    fn class_size(&self, class: ClassId) -> u64 {
        self.graph.class_size(class)
    }
}

/// Every second vertex is also blue; the first is a hub.
fn graph() -> MemorySnapshot {
    let mut graph = MemorySnapshot::default();
    let mut iri = |name: String| graph.intern(&Term::from(NamedNode::new_unchecked(name)));
    let kind = iri(RDF_TYPE.to_owned());
    let [thing, blue] = ["thing", "blue"].map(|label| iri(format!("{LABEL_NAMESPACE}{label}")));
    let [near, colour] = ["near", "colour"].map(|key| iri(format!("{KEY_NAMESPACE}{key}")));
    let vertices: Vec<Id> = (0..THINGS).map(|number| iri(format!("http://e/{number}"))).collect();
    let red = graph.intern(&oxrdf::Literal::from("red").into());
    for (number, &subject) in vertices.iter().enumerate() {
        let mut add = |predicate, object| {
            graph.add(Triple { subject, predicate, object, graph: Id::UNBOUND, edge: Id::UNBOUND });
        };
        add(kind, thing);
        add(colour, red);
        if number % 2 == 0 {
            add(kind, blue);
        }
    }
    for &object in &vertices {
        let subject = vertices[0];
        graph.add(Triple { subject, predicate: near, object, graph: Id::UNBOUND, edge: Id::UNBOUND });
    }
    graph.finish()
}

/// query B11: `V().hasLabel(l)` listed the whole label before its first result, and `E()` listed all edges of
/// 64 sources.
#[test]
fn b11_the_first_results_of_a_label_read_little() {
    let graph = graph();
    let counting = Counting::new(&graph);
    for text in [
        "g.V().hasLabel('thing').limit(3)",
        "g.V().hasLabel('thing', 'blue').limit(3)",
        "g.V().hasLabel('blue').hasLabel('thing').limit(3)",
        "g.V().has('colour', 'red').limit(3)",
        "g.V().has('thing', 'colour', 'red').limit(3)",
        "g.V().limit(3)",
        "g.E().limit(3)",
        "g.E().hasLabel('near').limit(3)",
    ] {
        let (count, read) = counting.run(text);
        assert_eq!(count, 3, "{text}");
        assert!(read < 300, "{text} reads {read} entries");
    }
    // Each is returned exactly once, for any chunk size.
    for (text, wanted) in [
        ("g.V().hasLabel('thing')", THINGS),
        ("g.V().hasLabel('blue')", THINGS / 2),
        ("g.V().hasLabel('blue', 'thing', 'nothing')", THINGS),
        ("g.V().hasLabel('nothing')", 0),
        ("g.V().has('colour', 'red')", THINGS),
        ("g.V().has('colour', 'blue')", 0),
        ("g.V()", THINGS),
        ("g.E()", THINGS),
        ("g.E().hasLabel('near')", THINGS),
        ("g.E().hasLabel('colour')", 0),
        ("g.E().hasLabel('nothing', 'near')", THINGS),
    ] {
        assert_eq!(counting.run(text).0, wanted, "{text}");
    }
}

/// query B11: the number of edges is a sum of degrees, without a read of each edge.
#[test]
fn b11_edges_are_counted_by_degrees() {
    let graph = graph();
    let counting = Counting::new(&graph);
    for (text, wanted) in [
        ("g.E().count()", THINGS),
        ("g.E().hasLabel('near').count()", THINGS),
        ("g.E().hasLabel('colour').count()", 0),
        ("g.E().hasLabel('nothing').count()", 0),
    ] {
        let (_, read) = counting.run(text);
        assert!(read < 300, "{text} reads {read} entries");
        let equal = format!("{text}.is({wanted})");
        assert_eq!(counting.run(&equal).0, 1, "{equal}");
    }
}

/// query B11: a scan of a label checks cancellation between its chunks, even if nothing passes.
#[test]
fn b11_a_scan_of_a_label_can_be_cancelled() {
    let graph = graph();
    for text in ["g.V().hasLabel('thing').has('colour', neq('red'))", "g.E().hasLabel('near').has('weight')"]
    {
        let flag = Arc::new(AtomicBool::new(false));
        let mut counting = Counting::new(&graph);
        for (.., segment) in &mut counting.segments {
            segment.cancels = Some((1_000, Arc::clone(&flag)));
        }
        let error =
            run(&counting, text, Limits { cancelled: Some(flag), ..Limits::default() }).expect_err(text);
        assert_eq!(error.kind(), ErrorKind::Cancelled, "{text}");
        let read = counting.read.load(Relaxed);
        assert!(read < THINGS, "{text} reads {read} entries");
    }
}
