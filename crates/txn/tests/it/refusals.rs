//! Exact validation: random transactions against a model that accepts or refuses each commit.
//!
//! Transactions overlap, in one thread; a small model decides for each commit whether it must be accepted or
//! refused.
//!
//! # The model
//! [`ModelRead`] is a read of a transaction, in the terms of `reads.rs`; [`ModelRead::is_changed_by`] defines
//! which concurrent changes invalidate it. A commit must be refused if and only if
//! * serializable: some change committed since its begin touches a read;
//! * snapshot: some change since then conflicts with a write: the same property (subject and predicate) of a
//!   vertex or edge, or the same statement between vertices, unless both add it;
//! * both: its changes cannot be applied to the current graph (an edge that is removed, in use, or has
//!   another statement).
//!
//! There is no third verdict ("may be refused"): the documented coarse reads (a predicate without statements
//! is read as a whole, ranges of texts count for all predicates whose objects were read) are kinds of their
//! own. So a refusal without a reason fails here, as does a reason without a refusal. `model.rs` verifies the
//! resulting graph, and this test does for every eighth commit.
//!
//! # Over a shared log
//! The same verdicts are those of a leader of voters, whose log makes commits durable later, and of the next
//! leaders, which take the graph from the log ([`Leaders`]).
#![allow(clippy::cast_possible_truncation, reason = "small numbers of a test")]

use crate::common::{EDGE, Model, Row, T, read, seed, statement, term};
use oxrdf::Term;
use oxrdf::vocab::xsd;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use vervet_env::{Environment, SeededRandom};
use vervet_model::{Direction, Error, ErrorKind, Id, Partitioning, Result, Statement, Tag, unmetered};
use vervet_partition::PartitionedBase;
use vervet_snapshot::{Cursor, EntryFilter, Expansion, SegmentStatistics, Snapshot};
use vervet_txn::{
    Follower, Isolation, LogRecord, Options, Read, SharedLog, Start, Transaction, Transactions,
};

const STEPS: usize = 40_000;
/// A change of one statement: its row, its ids, whether it was added.
type RowChange = (Row, Statement, bool);

/// A read of a transaction.
#[derive(Clone, PartialEq, Debug)]
enum ModelRead {
    /// Whether a statement with this subject, predicate and object exists, in any graph, with any edge.
    Entry(Id, Id, Id),
    /// The statements of a key.
    Key(Id, Direction, Id),
    /// The keys from the first to the second, both included.
    Range(Id, Direction, Id, Id),
    Predicate(Id),
    /// The list of predicates at the begin, and those that the transaction itself had emptied.
    Predicates(BTreeSet<T>, BTreeSet<T>),
    /// That statements with this predicate have neither named graphs, edges, objects nor subjects (by
    /// [`Direction`]) of certain kinds.
    Kind(Id, Direction, Excluded),
    Graphs,
    Edge(Id),
    /// Which statements are about an edge.
    Uses(Id),
    /// A term that did not exist.
    Absent(T),
    /// Literals in a range of texts that were new since the begin, as objects of these predicates.
    Texts(String, String, BTreeSet<Id>),
}

/// The flags of [`SegmentStatistics`], as exclusions.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Excluded {
    named_graphs: bool,
    edges: bool,
    but_literals: bool,
    but_strings: bool,
    but_vertices: bool,
}

impl From<&SegmentStatistics> for Excluded {
    fn from(statistics: &SegmentStatistics) -> Self {
        Self {
            named_graphs: !statistics.has_named_graphs,
            edges: !statistics.has_edges,
            but_literals: statistics.literals_only,
            but_strings: statistics.plain_strings_only,
            but_vertices: statistics.vertices_only,
        }
    }
}

impl ModelRead {
    fn is_changed_by(
        &self,
        (row, change, added): &RowChange,
        began: &BeginState,
        predicates: &BTreeSet<T>,
    ) -> bool {
        let Statement { subject, predicate, object, graph, edge } = *change;
        let key = |direction| if direction == Direction::Out { subject } else { object };
        match self {
            Self::Entry(s, p, o) => (*s, *p, *o) == (subject, predicate, object),
            Self::Key(p, direction, k) => (*p, *k) == (predicate, key(*direction)),
            Self::Range(p, direction, first, last) => {
                *p == predicate && (*first..=*last).contains(&key(*direction))
            }
            Self::Predicate(p) => *p == predicate,
            // Changed, and not changed back.
            Self::Predicates(seen, emptied) => {
                seen.contains(&row.p) != predicates.contains(&row.p) || *added && emptied.contains(&row.p)
            }
            Self::Kind(p, direction, excluded) => {
                let neighbour = if *direction == Direction::Out { object } else { subject };
                *p == predicate
                    && *added
                    && (excluded.named_graphs && graph.is_bound()
                        || excluded.edges && edge.is_bound()
                        || excluded.but_literals && !neighbour.is_stored_literal()
                        || excluded.but_strings && !(*direction == Direction::Out && is_string(row.o))
                        || excluded.but_vertices && !neighbour.is_vertex())
            }
            Self::Graphs => graph.is_bound(),
            Self::Edge(e) => *e == edge,
            Self::Uses(e) => [subject, object].contains(e),
            Self::Absent(t) => [row.s, row.p, row.o, row.g].contains(t),
            Self::Texts(from, to, asked) => {
                let is_in = |text: &str| (from.as_str()..to).contains(&text);
                let new = object.tag() == Tag::Literal && object.payload() >= began.literals;
                asked.contains(&predicate) && new && is_in(&text(row.o))
            }
        }
    }
}

/// State at the begin of a transaction.
struct BeginState {
    /// Number of commits.
    commits: usize,
    /// Literals had numbers below this.
    literals: u64,
    predicates: BTreeSet<T>,
    graph: Model,
}

struct OpenTransaction {
    transaction: Transaction,
    began: BeginState,
    seen: Vec<ModelRead>,
    /// Predicates whose objects were read.
    asked: BTreeSet<Id>,
    texts: Vec<(String, String)>,
    changes: Vec<RowChange>,
}

/// The text of a literal that is not encoded in its id.
fn text(t: T) -> String {
    match term(t) {
        Term::Literal(literal) => literal.value().to_owned(),
        _ => String::new(),
    }
}

fn is_string(t: T) -> bool {
    match term(t) {
        Term::Literal(literal) => literal.language().is_none() && literal.datatype() == xsd::STRING,
        _ => false,
    }
}

/// The graph with these changes; `None` if they cannot be applied. Consecutive additions may be about each
/// other.
fn applied(graph: &Model, changes: &[RowChange]) -> Option<Model> {
    let mut graph = graph.clone();
    for run in changes.chunk_by(|one, other| one.2 == other.2) {
        let rows: Vec<Row> = run.iter().map(|(row, _, _)| *row).collect();
        let done = match run.first()?.2 {
            true => graph.insert_all(&rows),
            false => rows.iter().try_for_each(|row| graph.remove(*row).map(drop)),
        };
        done.ok()?;
    }
    Some(graph)
}

fn predicates(model: &Model) -> BTreeSet<T> {
    model.0.iter().map(|row| row.p).collect()
}

impl OpenTransaction {
    /// The reason for which this transaction must be refused.
    fn refusal(&self, isolation: Isolation, commits: &[Vec<RowChange>], head: &Model) -> Option<String> {
        if self.changes.is_empty() {
            return None;
        }
        let later: Vec<&RowChange> = commits[self.began.commits..].iter().flatten().collect();
        let met = match isolation {
            Isolation::Serializable => self.unseen(&later, head),
            Isolation::Snapshot => self.overwritten(&later),
        };
        met.or_else(|| applied(head, &self.changes).is_none().then(|| "unfit".to_owned()))
    }

    fn unseen(&self, later: &[&RowChange], head: &Model) -> Option<String> {
        let now = predicates(head);
        let texts = self
            .texts
            .iter()
            .map(|(from, to)| ModelRead::Texts(from.clone(), to.clone(), self.asked.clone()));
        let mut seen = self.seen.iter().cloned().chain(texts);
        let met = seen.find(|seen| later.iter().any(|change| seen.is_changed_by(change, &self.began, &now)));
        met.map(|seen| {
            format!("{seen:?}").split(|c: char| !c.is_alphabetic()).next().unwrap_or("").to_owned()
        })
    }

    fn overwritten(&self, later: &[&RowChange]) -> Option<String> {
        let property = |of: &Statement| of.object.is_stored_literal().then_some((of.subject, of.predicate));
        let mine: BTreeSet<_> = self.changes.iter().filter_map(|(_, own, _)| property(own)).collect();
        // The last change of each statement counts.
        let last: BTreeMap<Row, bool> = self.changes.iter().map(|(row, _, added)| (*row, *added)).collect();
        later.iter().find_map(|(row, theirs, added)| match property(theirs) {
            Some(theirs) => mine.contains(&theirs).then(|| "property".to_owned()),
            None => last.get(row).filter(|own| !(**own && *added)).map(|_| "statement".to_owned()),
        })
    }

    fn statement(&self, row: Row) -> Statement {
        statement(row, &mut |term: &Term| self.transaction.intern(term.as_ref())).expect("new terms")
    }

    fn id(&mut self, t: T) -> Option<Id> {
        if t >= EDGE {
            return Some(Id::edge(t - EDGE));
        }
        let id =
            self.transaction.view().expect("sound").as_snapshot().lookup(term(t).as_ref()).expect("sound");
        if id.is_none() {
            self.seen.push(ModelRead::Absent(t));
        }
        id
    }

    /// Adds or removes a statement and checks the returned value.
    fn change(&mut self, row: Row, added: bool) {
        let one = self.statement(row);
        let savepoint = self.transaction.savepoint();
        let changed = if added { self.transaction.insert(&one) } else { self.transaction.remove(&one) };
        if one.edge.is_bound() && !added {
            self.seen.extend([ModelRead::Edge(one.edge), ModelRead::Uses(one.edge)]);
        } else {
            self.seen.push(ModelRead::Entry(one.subject, one.predicate, one.object));
            let edges = [one.subject, one.object, one.edge].into_iter().filter(|id| id.tag() == Tag::Edge);
            self.seen.extend(edges.filter(|_| added).map(ModelRead::Edge));
        }
        match changed {
            Ok(true) => self.changes.push((row, one, added)),
            Ok(false) => {}
            Err(_) => self.transaction.roll_back_to(&savepoint).expect("was made here"),
        }
    }

    /// The same without the returned value.
    fn change_blindly(&mut self, rows: &[Row], added: bool) {
        let all: Vec<Statement> = rows.iter().map(|row| self.statement(*row)).collect();
        let savepoint = self.transaction.savepoint();
        let done = if added { self.transaction.insert_all(&all) } else { self.transaction.remove_all(&all) };
        match done {
            Ok(()) => self.changes.extend(rows.iter().zip(all).map(|(row, one)| (*row, one, added))),
            Err(_) => self.transaction.roll_back_to(&savepoint).expect("was made here"),
        }
    }

    /// Makes one of the reads of a segment.
    fn read_segment(&mut self, random: &SeededRandom) {
        let row = row(random);
        let direction = if random.below(2) == 0 { Direction::Out } else { Direction::In };
        let (near, far) = if direction == Direction::Out { (row.s, row.o) } else { (row.o, row.s) };
        let Some(p) = self.id(row.p) else { return };
        let (key, other) = (self.id(near), self.id(far));
        let mut seen = Vec::new();
        let view = self.transaction.view().expect("sound");
        let Some(segment) = view.as_snapshot().segment(p, direction).expect("sound") else {
            self.seen.push(ModelRead::Predicate(p));
            return;
        };
        if direction == Direction::In {
            self.asked.insert(p);
        }
        let mut ids = Vec::new();
        match (random.below(10), key) {
            (9, _) => seen.push(ModelRead::Kind(p, direction, segment.statistics().into())),
            (0, Some(key)) => {
                segment.degrees(&[key], EntryFilter::ALL, &mut Vec::new()).expect("sound");
                seen.push(ModelRead::Key(p, direction, key));
            }
            (1, Some(key)) => {
                segment.neighbours(key, EntryFilter::ALL, &mut ids).expect("sound");
                seen.push(ModelRead::Key(p, direction, key));
            }
            (2, Some(key)) => {
                let mut out = Expansion::new(100);
                segment.expand(&[key], EntryFilter::ALL, &mut Cursor::default(), &mut out).expect("sound");
                seen.push(ModelRead::Key(p, direction, key));
            }
            (3..6, Some(key)) if other.is_some() => {
                let other = other.expect("asked above");
                segment.check(&[key], &[other], EntryFilter::ALL, &mut Vec::new()).expect("sound");
                let (s, o) = if direction == Direction::Out { (key, other) } else { (other, key) };
                seen.push(ModelRead::Entry(s, p, o));
            }
            (6 | 7, Some(key)) => {
                // Page by page, possibly not to the end.
                let (mut from, last) = (key, Id::from_bits(key.bits() + random.below(8)));
                for _ in 0..1 + random.below(3) {
                    let next = segment.keys_up_to(from, last, 1, &mut ids).expect("sound");
                    let end = next.map_or(last, |next| Id::from_bits(next.bits() - 1));
                    seen.push(ModelRead::Range(p, direction, from, end));
                    let Some(next) = next else { break };
                    from = next;
                }
            }
            _ if random.below(3) == 0 => {
                segment.keys(Id::UNBOUND, 1000, &mut ids).expect("sound");
                seen.push(ModelRead::Predicate(p));
            }
            _ => {}
        }
        drop(view);
        self.seen.extend(seen);
    }

    /// Lists the objects of a predicate whose texts are in a range, as `planner/src/seek.rs` does.
    fn read_texts(&mut self, random: &SeededRandom) {
        let Some(p) = self.id(10 + random.below(PREDICATES / 2)) else { return };
        let from = if random.below(2) == 0 { String::new() } else { text(100 + random.below(8)) };
        let to = if random.below(2) == 0 { "z".to_owned() } else { text(100 + random.below(8)) };
        let view = self.transaction.view().expect("sound");
        let snapshot = view.as_snapshot();
        let Some(segment) = snapshot.segment(p, Direction::In).expect("sound") else {
            self.seen.push(ModelRead::Predicate(p));
            return;
        };
        self.asked.insert(p);
        let mut known = Vec::new();
        let (first, last) = (from.as_bytes(), Some(to.as_bytes()));
        if let Some(positions) = snapshot.literal_range(first, last).expect("sound") {
            snapshot.literals_in_order(positions, &mut known).expect("sound");
        }
        snapshot.unordered_literals(first, last, &mut known, &mut unmetered).expect("sound");
        segment.degrees(&known, EntryFilter::ALL, &mut Vec::new()).expect("sound");
        drop(view);
        self.seen.extend(known.into_iter().map(|literal| ModelRead::Key(p, Direction::In, literal)));
        self.texts.push((from, to));
    }

    /// Reads the whole graph, or notes a read made elsewhere.
    fn read_graph(&mut self, random: &SeededRandom) {
        let row = row(random);
        let edge = Id::edge(random.below(EDGES));
        match random.below(6) {
            0 => {
                let _ = self.transaction.view().expect("sound").as_snapshot().predicates();
                let own = applied(&self.began.graph, &self.changes).expect("it has applied them");
                let emptied = self.began.predicates.difference(&predicates(&own)).copied().collect();
                self.seen.push(ModelRead::Predicates(self.began.predicates.clone(), emptied));
            }
            1 => {
                let _ = self.transaction.view().expect("sound").as_snapshot().graphs();
                self.seen.push(ModelRead::Graphs);
            }
            2 | 3 => {
                // Its absence is a result, too.
                let _ = self.transaction.view().expect("sound").as_snapshot().edge(edge);
                self.seen.push(ModelRead::Edge(edge));
            }
            4 => {
                if let Some((p, s)) = self.id(row.p).zip(self.id(row.s)) {
                    self.transaction.record_read(Read::Key(p, Direction::Out, s));
                    self.seen.push(ModelRead::Key(p, Direction::Out, s));
                }
            }
            _ => {
                self.id(1 + random.below(30));
            }
        }
    }
}

const PREDICATES: u64 = 8;
const EDGES: u64 = 40;

fn row(random: &SeededRandom) -> Row {
    let e = if random.below(4) == 0 { EDGE + random.below(EDGES) } else { 0 };
    let s = if random.below(10) == 0 { EDGE + random.below(EDGES) } else { 1 + random.below(8) };
    let o = match random.below(8) {
        0..4 => 1 + random.below(8),
        4..6 => 100 + random.below(30),
        6 => 200 + random.below(3),
        _ => 300 + random.below(3),
    };
    let g = if random.below(6) == 0 { 20 + random.below(2) } else { 0 };
    Row { s, p: 10 + random.below(PREDICATES), o, g, e }
}

fn begin(graph: &Arc<Transactions>, isolation: Isolation, commits: usize, head: &Model) -> OpenTransaction {
    let transaction = graph.begin(isolation).expect("begins");
    let literals = transaction.began_version().literal_count();
    let began = BeginState { commits, literals, predicates: predicates(head), graph: head.clone() };
    let (seen, asked, texts, changes) = (Vec::new(), BTreeSet::new(), Vec::new(), Vec::new());
    OpenTransaction { transaction, began, seen, asked, texts, changes }
}

type Publish = Box<dyn FnOnce() + Send>;

/// A log in memory, whose records become durable when a thread waits for them.
#[derive(Default)]
struct MemoryLog {
    records: Mutex<Vec<LogRecord>>,
    waiting: Mutex<Vec<Publish>>,
}

impl std::fmt::Debug for MemoryLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryLog").field("last", &self.last()).finish()
    }
}

impl SharedLog for MemoryLog {
    fn append(&self, kind: u8, payloads: &[&[u8]], publish: Option<Publish>) -> Result<u64> {
        let mut records = self.records.lock().expect("not poisoned");
        for payload in payloads {
            let lsn = records.len() as u64 + 1;
            records.push(LogRecord { lsn, kind, payload: payload.to_vec() });
        }
        self.waiting.lock().expect("not poisoned").extend(publish);
        Ok(records.len() as u64)
    }

    fn wait(&self, _: u64, _: Instant) -> Result<()> {
        let waiting = std::mem::take(&mut *self.waiting.lock().expect("not poisoned"));
        waiting.into_iter().for_each(|publish| publish());
        Ok(())
    }

    fn last(&self) -> u64 {
        self.records.lock().expect("not poisoned").len() as u64
    }

    fn check(&self) -> Result<()> {
        Ok(())
    }

    fn bytes(&self) -> u64 {
        0
    }
}

/// Where the transactions of a run are.
trait Graphs {
    /// An empty graph.
    fn new_graph(&mut self) -> Arc<Transactions>;

    /// Whether the graph can be written anew below its transactions.
    fn has_checkpoints(&self) -> bool;

    /// The same graph after a change of the leader; `None`: there are no leaders.
    fn next_leader(&mut self) -> Option<Arc<Transactions>>;
}

fn options() -> Options {
    let mut options = Options::default();
    options.checkpoints = false;
    options
}

/// Graphs of one process, in memory.
struct InMemory;

impl Graphs for InMemory {
    fn new_graph(&mut self) -> Arc<Transactions> {
        Transactions::in_memory(Environment::real(), options()).expect("works")
    }

    fn has_checkpoints(&self) -> bool {
        true
    }

    fn next_leader(&mut self) -> Option<Arc<Transactions>> {
        None
    }
}

/// Leaders of one log after another.
#[derive(Default)]
struct Leaders {
    log: Arc<MemoryLog>,
}

impl Graphs for Leaders {
    fn new_graph(&mut self) -> Arc<Transactions> {
        self.log = Arc::default();
        self.next_leader().expect("a leader")
    }

    fn has_checkpoints(&self) -> bool {
        false
    }

    fn next_leader(&mut self) -> Option<Arc<Transactions>> {
        let base = PartitionedBase::empty(Partitioning::new(1).expect("one")).expect("an empty graph");
        let start = Start::new(Arc::new(base), Vec::new());
        let refusal = Error::new(ErrorKind::Unsupported, "another server leads");
        let follower = Follower::new(Environment::real(), start, options(), refusal).expect("works");
        follower.apply(&self.log.records.lock().expect("not poisoned")).expect("the records of a log");
        Some(follower.lead(Arc::clone(&self.log) as _).expect("leads"))
    }
}

/// Runs random steps; returns the number of times of each verdict.
fn run(isolation: Isolation, seed: u64, graphs: &mut dyn Graphs) -> BTreeMap<String, u64> {
    let random = SeededRandom::new(seed);
    let mut graph = graphs.new_graph();
    let (mut head, mut commits, mut open) =
        (Model::default(), Vec::<Vec<RowChange>>::new(), Vec::<OpenTransaction>::new());
    let mut verdicts = BTreeMap::new();
    for step in 0..STEPS {
        if step % 1000 == 0 {
            // So that terms are unknown again.
            open.clear();
            commits.clear();
            (graph, head) = (graphs.new_graph(), Model::default());
        }
        if step % 137 == 0
            && let Some(next) = graphs.next_leader()
        {
            open.clear();
            graph = next;
            assert_eq!(read(&graph.current().version), head, "step {step}");
        }
        if open.len() < 2 || open.len() < 5 && random.below(6) == 0 {
            open.push(begin(&graph, isolation, commits.len(), &head));
            continue;
        }
        let at = random.below(open.len() as u64) as usize;
        let one = &mut open[at];
        match random.below(14) {
            0..3 | 11..14 => one.change(row(&random), random.below(3) > 0),
            3 => {
                let mut rows: Vec<Row> = (0..1 + random.below(2)).map(|_| row(&random)).collect();
                if random.below(4) == 0 {
                    // The first statement is about the edge of the second one.
                    let e = EDGE + random.below(EDGES);
                    rows = vec![Row { s: e, e: 0, ..row(&random) }, Row { e, ..row(&random) }];
                }
                one.change_blindly(&rows, random.below(3) > 0);
            }
            4 if !head.0.is_empty() => {
                let some = head.0.iter().nth(random.below(head.0.len() as u64) as usize).copied();
                one.change(some.expect("not empty"), false);
            }
            5 => one.read_segment(&random),
            6 => one.read_texts(&random),
            7 => one.read_graph(&random),
            8 if random.below(8) == 0 => drop(open.swap_remove(at)),
            8 if random.below(8) == 0 && graphs.has_checkpoints() => {
                graph.checkpoint().expect("works");
            }
            9 | 10 => {
                let one = open.swap_remove(at);
                let expected = one.refusal(isolation, &commits, &head);
                let OpenTransaction { transaction, changes, seen, texts, began, .. } = one;
                assert_eq!(transaction.change_count(), changes.len());
                let outcome = transaction.commit();
                let wrote = !changes.is_empty();
                let reported = outcome.as_ref().err().map(|error| (error.kind(), error.to_string()));
                let agree = reported.as_ref().map(|(kind, _)| *kind)
                    == expected.as_ref().map(|_| ErrorKind::Conflict);
                assert!(
                    agree,
                    "step {step}, {isolation:?}\nmodel: {expected:?}\ntold: {reported:?}\n\
                     changes {changes:?}\nseen {seen:?} {texts:?}\nsince its begin {:?}",
                    &commits[began.commits..]
                );
                if expected.is_none() {
                    head = applied(&head, &changes).expect("it fits");
                    if wrote {
                        commits.push(changes);
                    }
                }
                let verdict =
                    expected.unwrap_or_else(|| if wrote { "accepted" } else { "read only" }.to_owned());
                *verdicts.entry(verdict).or_insert(0) += 1;
                if step % 8 == 0 {
                    assert_eq!(read(&graph.current().version), head);
                }
            }
            _ => {}
        }
    }
    println!("{isolation:?}: {verdicts:?}");
    verdicts
}

/// Every reason has occurred.
fn all_of(verdicts: &BTreeMap<String, u64>, reasons: &[&str]) {
    for reason in reasons {
        assert!(verdicts.get(*reason).is_some_and(|count| *count > 1), "never {reason}: {verdicts:?}");
    }
    assert_eq!(verdicts.len(), reasons.len(), "{verdicts:?}");
}

const SERIALIZABLE: &str =
    "accepted,read only,Entry,Key,Range,Predicate,Kind,Predicates,Graphs,Edge,Uses,Absent,Texts,unfit";
const SNAPSHOT: &str = "accepted,read only,property,statement,unfit";

fn check(isolation: Isolation, graphs: &mut dyn Graphs, reasons: &str) {
    let verdicts = run(isolation, seed(), graphs);
    all_of(&verdicts, &reasons.split(',').collect::<Vec<_>>());
}

#[test]
fn serializable_commits_are_refused_for_what_they_read_alone() {
    check(Isolation::Serializable, &mut InMemory, SERIALIZABLE);
}

#[test]
fn snapshot_commits_are_refused_for_what_they_wrote_alone() {
    check(Isolation::Snapshot, &mut InMemory, SNAPSHOT);
}

#[test]
fn leaders_refuse_serializable_commits_for_what_they_read_alone() {
    check(Isolation::Serializable, &mut Leaders::default(), SERIALIZABLE);
}

#[test]
fn leaders_refuse_snapshot_commits_for_what_they_wrote_alone() {
    check(Isolation::Snapshot, &mut Leaders::default(), SNAPSHOT);
}
