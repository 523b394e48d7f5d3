//! Updates, up to the border of storage: what a parsed request does to an [`UpdateTarget`].
//!
//! # Shape
//! A target is a graph that can be read as a snapshot, numbers terms, and takes and gives up statements: a
//! transaction, or a model in a test. Each operation reads the target as the one before has left it, finds
//! out everything that it will remove and then everything that it will add, and changes the target only then.
//!
//! * `modify`: patterns, templates, `DATA` (a template with the one empty solution).
//! * `remove`: which entries a statement that goes takes along.
//! * `graphs`: `CLEAR`, `DROP`, `CREATE`, `ADD`, `MOVE`, `COPY`.
//! * `documents`: `LOAD`.
//! # Edges
//! A statement that goes takes all its entries in that graph along, those with an identity too, and with an
//! identity the statements about it. `DELETE { ?s ?p ?o ~ ?e }` removes the one entry. What comes is plain,
//! and comes only if no entry of that statement is in the graph (with or without an identity): graphs are
//! sets. What comes with a reifier (`~`, `{| |}`) becomes an edge: see `reifiers`. Graphs with edges cannot
//! be copied or moved, since an edge is in one graph.
//! # Cost
//! Solutions are held as 8 bytes for each variable of a template; statements to remove as 40 bytes. Both
//! count against the memory cap. Constants are looked up once for an operation.
//! # Source
//! SPARQL 1.1 Update, W3C 2013, §3 and §4. Empty graphs are not kept, so `CREATE` only fails for a graph that
//! is there, and `DROP` is `CLEAR`.
//! # Not here
//! Transactions, and the way back: a request that fails leaves the target changed half way, and whoever owns
//! the target drops it.

mod documents;
mod graphs;
mod modify;
mod reifiers;
pub(crate) mod remove;
mod triples;

pub use documents::{Documents, file_source};

use crate::QueryOptions;
use crate::execute::{control, seed};
use oxrdf::{BlankNode, NamedNode, TermRef};
use std::sync::Arc;
use vervet_algebra::{Operation, Update};
use vervet_env::Environment;
use vervet_kernel::{Control, Gate};
use vervet_model::vocab::EDGE_NAMESPACE;
use vervet_model::{Error, ErrorKind, Id, Result, Statement};
use vervet_snapshot::Snapshot;

/// A graph that an update may change.
pub trait UpdateTarget {
    /// Calls `with` once, with the graph as it is now, earlier changes included.
    ///
    /// # Errors
    /// Those of `with`, and of making the snapshot.
    fn read(&mut self, with: &mut dyn FnMut(&dyn Snapshot) -> Result<()>) -> Result<()>;

    /// What an update passes that turns out to be heavy.
    fn gate(&self) -> Option<Arc<dyn Gate>> {
        None
    }

    /// The id of a term, new if need be. Never called with the name of an edge that is not there.
    ///
    /// # Errors
    /// Whatever the target cannot do.
    fn intern(&mut self, term: TermRef<'_>) -> Result<Id>;

    /// An edge id that nobody has.
    ///
    /// # Errors
    /// Unsupported, unless the target says otherwise: its edges have no ids that could be given out.
    fn fresh_edge(&mut self) -> Result<Id> {
        Err(Error::new(ErrorKind::Unsupported, "new identities of statements (~) are not supported here"))
    }

    /// Adds a statement; whether it was not there.
    ///
    /// # Errors
    /// As [`UpdateTarget::intern`].
    fn insert(&mut self, statement: &Statement) -> Result<bool>;

    /// Removes exactly this statement (graph and edge too); whether it was there.
    ///
    /// # Errors
    /// As [`UpdateTarget::intern`].
    fn remove(&mut self, statement: &Statement) -> Result<bool>;

    /// Adds statements, and returns how many were not there.
    ///
    /// # Errors
    /// As [`UpdateTarget::intern`].
    fn insert_all(&mut self, statements: &[Statement]) -> Result<u64> {
        statements.iter().try_fold(0, |count, statement| Ok(count + u64::from(self.insert(statement)?)))
    }

    /// Removes statements, and returns how many were there.
    ///
    /// # Errors
    /// As [`UpdateTarget::intern`].
    fn remove_all(&mut self, statements: &[Statement]) -> Result<u64> {
        statements.iter().try_fold(0, |count, statement| Ok(count + u64::from(self.remove(statement)?)))
    }
}

/// What a request may use.
#[derive(Default)]
pub struct UpdateOptions<'a> {
    /// Limits (for the whole request), parameters.
    pub query: QueryOptions,
    /// What `LOAD` may read; `None`: `LOAD` is an error.
    pub documents: Option<Documents<'a>>,
}

/// What a request has done. A statement that goes and comes again counts in both. Each identity of a
/// statement counts: `:s :p :o ~ :a ~ :b` inserts two parallel edges, which a query that does not ask for
/// reifiers sees as one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct UpdateReport {
    /// Statements that were not there before.
    pub inserted: u64,
    /// Statements that were there, those about edges that are gone included.
    pub removed: u64,
}

/// Parses a request.
pub(crate) fn parse(text: &str, options: &QueryOptions) -> Result<Update> {
    let names = options.parse_names();
    let mut update = vervet_sparql::parse_update(text, &names.options(options))?;
    if let Some(dataset) = &options.dataset {
        for operation in &mut update.operations {
            let Operation::Modify(modify) = operation else { continue };
            if !modify.dataset.is_whole() {
                let message = "the request chooses its graphs by USING or WITH, and its caller does so too";
                return Err(Error::new(ErrorKind::Query, message).with_hint("only one of them may"));
            }
            modify.dataset = dataset.clone();
        }
    }
    Ok(update)
}

/// Runs all operations of a request on `target`.
///
/// # Errors
/// Limits; a parameter without a value; an operation that cannot be done and does not say `SILENT`; damaged
/// data. The target may then hold a part of the changes.
pub fn run(
    update: &Update,
    target: &mut dyn UpdateTarget,
    environment: &Environment,
    options: &mut UpdateOptions<'_>,
) -> Result<UpdateReport> {
    let control = control(&options.query, options.query.begin(), target.gate());
    run_under(update, target, environment, options, control)
}

/// [`run`] under limits whose time may have begun before.
pub(crate) fn run_under(
    update: &Update,
    target: &mut dyn UpdateTarget,
    environment: &Environment,
    options: &mut UpdateOptions<'_>,
    control: Control<'static>,
) -> Result<UpdateReport> {
    let mut request = Request {
        target,
        environment,
        options: &options.query,
        documents: options.documents.as_mut(),
        control,
        report: UpdateReport::default(),
        seed: None,
        blanks: 0,
    };
    for operation in &update.operations {
        request.control.check()?;
        request.operation(operation)?;
    }
    Ok(request.report)
}

/// Statements that are added at a time, and keys that are expanded at a time.
const CHUNK: usize = 1 << 14;

/// A request that is running.
struct Request<'a, 'd> {
    target: &'a mut dyn UpdateTarget,
    environment: &'a Environment,
    options: &'a QueryOptions,
    documents: Option<&'a mut Documents<'d>>,
    control: Control<'static>,
    report: UpdateReport,
    /// Begins the labels of new blank nodes: `uSEED_1`, `uSEED_2`. The first of them was in no graph when
    /// the seed was drawn, so the others are not either.
    seed: Option<u64>,
    /// New blank nodes so far.
    blanks: u64,
}

impl Request<'_, '_> {
    fn operation(&mut self, operation: &Operation) -> Result<()> {
        let (silent, done) = match operation {
            Operation::InsertData(quads) => (false, self.insert_data(quads)),
            Operation::DeleteData(quads) => (false, self.delete_data(quads)),
            Operation::Modify(modify) => (false, self.modify(modify)),
            Operation::Load { silent, source, graph } => (*silent, self.load(source, graph.as_ref())),
            Operation::Clear { silent, target } | Operation::Drop { silent, target } => {
                (*silent, self.clear(target))
            }
            Operation::Create { silent, graph } => (*silent, self.create(graph)),
            Operation::Add(transfer) => (transfer.silent, self.add(transfer)),
            Operation::Move(transfer) => (transfer.silent, self.move_graph(transfer)),
            Operation::Copy(transfer) => (transfer.silent, self.copy(transfer).map(drop)),
        };
        match done {
            Err(error) if silent && is_forgivable(&error) => Ok(()),
            done => done,
        }
    }

    /// The answer of `ask` to the graph as it is now.
    fn read<T>(&mut self, ask: impl FnOnce(&dyn Snapshot, &Control<'_>) -> Result<T>) -> Result<T> {
        let (mut ask, mut answer) = (Some(ask), None);
        let control = &self.control;
        self.target.read(&mut |snapshot| {
            if let Some(ask) = ask.take() {
                answer = Some(ask(snapshot, control)?);
            }
            Ok(())
        })?;
        answer.ok_or_else(|| Error::internal("the target of an update did not show its graph"))
    }

    fn lookup(&mut self, term: TermRef<'_>) -> Result<Option<Id>> {
        self.read(|snapshot, _| snapshot.lookup(term))
    }

    /// The id of a term that a statement needs which is about to be added.
    fn intern(&mut self, term: TermRef<'_>) -> Result<Id> {
        if let TermRef::NamedNode(node) = term
            && node.as_str().starts_with(EDGE_NAMESPACE)
            && self.lookup(term)?.is_none()
        {
            let message = format!("there is no edge {node}");
            return Err(Error::new(ErrorKind::Query, message)
                .with_hint("edges get their names from the database; find them by ~ ?edge"));
        }
        self.target.intern(term)
    }

    /// A blank node that is nowhere yet.
    fn new_blank(&mut self) -> Result<Id> {
        let seed = match self.seed {
            Some(seed) => seed,
            None => self.new_seed()?,
        };
        self.blanks += 1;
        let node = BlankNode::new_unchecked(format!("u{seed}_{}", self.blanks));
        self.target.intern(TermRef::BlankNode(node.as_ref()))
    }

    fn new_seed(&mut self) -> Result<u64> {
        loop {
            let seed = seed(self.environment)?;
            let first = BlankNode::new_unchecked(format!("u{seed}_1"));
            if self.lookup(TermRef::BlankNode(first.as_ref()))?.is_none() {
                self.seed = Some(seed);
                return Ok(seed);
            }
        }
    }

    /// The beginning of labels of blank nodes, which no other labels have: letters and digits.
    fn new_scope(&mut self) -> Result<String> {
        self.new_blank()?;
        Ok(format!("u{}d{}x", self.seed.unwrap_or_default(), self.blanks))
    }

    /// Adds statements, those with an identity first. Those without are there already where an entry with an
    /// identity is. `statements` is empty afterwards.
    fn insert(&mut self, statements: &mut Vec<Statement>) -> Result<()> {
        let mut edges: Vec<Statement> = Vec::new();
        statements.retain(|statement| {
            if statement.edge.is_bound() {
                edges.push(*statement);
            }
            !statement.edge.is_bound()
        });
        statements.sort_unstable_by_key(|s| (s.predicate, s.graph, s.subject, s.object));
        statements.dedup();
        let there = self.read(|snapshot, _| remove::with_edges(snapshot, statements))?;
        let mut there = there.iter().peekable();
        let mut row = 0;
        statements.retain(|_| {
            row += 1;
            there.next_if_eq(&&(row - 1)).is_none()
        });
        if edges.is_empty() {
            self.report.inserted += self.target.insert_all(statements)?;
        } else {
            edges.append(statements);
            self.report.inserted += self.target.insert_all(&edges)?;
        }
        statements.clear();
        self.control.check()
    }

    fn remove(&mut self, mut statements: Vec<Statement>) -> Result<()> {
        remove::put_in_order(&mut statements);
        self.report.removed += self.target.remove_all(&statements)?;
        Ok(())
    }
}

/// Whether `SILENT` covers it: the caller's mistakes and what the outside world refuses, but no damage and
/// no limit.
fn is_forgivable(error: &Error) -> bool {
    use ErrorKind::{Input, Io, Query, Unavailable, Unsupported};
    matches!(error.kind(), Query | Input | Io | Unsupported | Unavailable)
}

fn no_such_graph(graph: &NamedNode) -> Error {
    Error::new(ErrorKind::Query, format!("there is no graph {graph}"))
        .with_hint("a graph is there as long as it has statements; SILENT makes this no error")
}
