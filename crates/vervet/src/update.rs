//! SPARQL Update, independent of storage: executes a parsed request on an [`UpdateTarget`].
//!
//! # Shape
//! A target is a graph that can be read as a snapshot, interns terms, and inserts and removes statements: a
//! transaction, or a model in a test. Each operation reads the target as the previous one has left it. It
//! computes all its removals, then all its insertions, and only then changes the target.
//!
//! * `modify`: patterns and templates (`template`, filled for `rows`), `DATA` (a template with the one empty
//!   solution).
//! * `remove`: the entries that the removal of a statement affects.
//! * `graphs`: `CLEAR`, `DROP`, `CREATE`, `ADD`, `MOVE`, `COPY`.
//! * `load`: `LOAD`; `documents`: what it may read.
//! # Edges
//! Removing a statement removes all its entries in that graph, those with an identity included, and with an
//! identity the statements about it. `DELETE { ?s ?p ?o ~ ?e }` removes a single entry. An inserted statement
//! is plain, and is skipped if an entry of that statement (with or without an identity) is in the graph:
//! graphs are sets. An inserted statement with a reifier (`~`, `{| |}`) becomes an edge: see `reifiers`.
//! Graphs with edges cannot be copied or moved, since an edge is in one graph.
//! # Cost
//! Solutions are held as 8 bytes for each variable of a template; statements to remove as 40 bytes. Both
//! count against the memory cap. Constants are looked up once for an operation.
//! # Source
//! SPARQL 1.1 Update, W3C 2013, §3 and §4. Empty graphs are not stored, so `CREATE` only fails for an
//! existing graph, and `DROP` equals `CLEAR`.
//! # Not here
//! Transactions and rollback: a failed request leaves the target partly changed, and the owner of the target
//! discards it.

mod documents;
mod graphs;
mod load;
mod modify;
mod reifiers;
pub(crate) mod remove;
mod rows;
mod template;
mod triples;

pub use documents::{Documents, file_source};

use crate::QueryOptions;
use crate::query::run::{control, seed};
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
    /// Calls `with` once, with the current graph, earlier changes included.
    ///
    /// # Errors
    /// Errors of `with`, and of making the snapshot.
    fn read(&mut self, with: &mut dyn FnMut(&dyn Snapshot) -> Result<()>) -> Result<()>;

    /// The gate that a heavy update passes.
    fn gate(&self) -> Option<Arc<dyn Gate>> {
        None
    }

    /// The id of a term, interned if new. Never called with the name of an edge that does not exist.
    ///
    /// # Errors
    /// Errors of the target.
    fn intern(&mut self, term: TermRef<'_>) -> Result<Id>;

    /// A new edge id.
    ///
    /// # Errors
    /// Unsupported by default: the edges of the target have no ids to allocate.
    fn fresh_edge(&mut self) -> Result<Id> {
        Err(Error::new(ErrorKind::Unsupported, "new identities of statements (~) are not supported here"))
    }

    /// Whether no statement has the predicate of these statements, which is one. A transaction has then read
    /// that these statements are not there, and not that the predicate has none: transactions that add the
    /// first statements of a predicate do not conflict.
    ///
    /// # Errors
    /// Errors of the target.
    fn has_new_predicate(&mut self, _statements: &[Statement]) -> Result<bool> {
        Ok(false)
    }

    /// Adds a statement; returns whether it was new.
    ///
    /// # Errors
    /// As [`UpdateTarget::intern`].
    fn insert(&mut self, statement: &Statement) -> Result<bool>;

    /// Removes exactly this statement (graph and edge included); returns whether it existed.
    ///
    /// # Errors
    /// As [`UpdateTarget::intern`].
    fn remove(&mut self, statement: &Statement) -> Result<bool>;

    /// Adds statements; returns the number of new ones.
    ///
    /// # Errors
    /// As [`UpdateTarget::intern`].
    fn insert_all(&mut self, statements: &[Statement]) -> Result<u64> {
        statements.iter().try_fold(0, |count, statement| Ok(count + u64::from(self.insert(statement)?)))
    }

    /// Removes statements; returns how many existed.
    ///
    /// # Errors
    /// As [`UpdateTarget::intern`].
    fn remove_all(&mut self, statements: &[Statement]) -> Result<u64> {
        statements.iter().try_fold(0, |count, statement| Ok(count + u64::from(self.remove(statement)?)))
    }
}

/// Options of an update request.
#[derive(Default)]
pub struct UpdateOptions<'a> {
    /// Limits (for the whole request), parameters.
    pub query: QueryOptions,
    /// The documents that `LOAD` may read; `None`: `LOAD` is an error.
    pub documents: Option<Documents<'a>>,
}

/// Counts of the changes of a request. A statement that is removed and added again counts in both. Each
/// identity of a statement counts: `:s :p :o ~ :a ~ :b` inserts two parallel edges, which a query without
/// reifiers sees as one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct UpdateReport {
    /// Statements that were not there before.
    pub inserted: u64,
    /// Statements that existed, including those about removed edges.
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
/// Limits; a parameter without a value; a failed operation without `SILENT`; damaged data. The target may
/// then hold a part of the changes.
pub fn run(
    update: &Update,
    target: &mut dyn UpdateTarget,
    environment: &Environment,
    options: &mut UpdateOptions<'_>,
) -> Result<UpdateReport> {
    let control = control(&options.query, options.query.begin(), target.gate());
    let _limits = control.enter();
    run_under(update, target, environment, options, control)
}

/// [`run`] under limits whose time may already have begun.
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

/// A request that is running.
struct Request<'a, 'd> {
    target: &'a mut dyn UpdateTarget,
    environment: &'a Environment,
    options: &'a QueryOptions,
    documents: Option<&'a mut Documents<'d>>,
    control: Control<'static>,
    report: UpdateReport,
    /// Prefix of the labels of new blank nodes: `uSEED_1`, `uSEED_2`. No graph had the first of them when the
    /// seed was drawn, so none has the others.
    seed: Option<u64>,
    /// The number of new blank nodes so far.
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
            Err(error) if silent && is_ignorable_when_silent(&error) => Ok(()),
            done => done,
        }
    }

    /// The result of `ask` on the current graph.
    fn read<T>(&mut self, ask: impl FnOnce(&dyn Snapshot, &Control<'_>) -> Result<T>) -> Result<T> {
        let (mut ask, mut answer) = (Some(ask), None);
        let control = &self.control;
        self.target.read(&mut |snapshot| {
            if let Some(ask) = ask.take() {
                answer = Some(ask(snapshot, control)?);
            }
            Ok(())
        })?;
        answer.ok_or_else(|| Error::internal("the update target did not call back with a snapshot"))
    }

    fn lookup(&mut self, term: TermRef<'_>) -> Result<Option<Id>> {
        self.read(|snapshot, _| snapshot.lookup(term))
    }

    /// The id of a term of a statement that is about to be added.
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

    /// A new blank node.
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

    /// A unique prefix for blank-node labels: letters and digits.
    fn new_scope(&mut self) -> Result<String> {
        self.new_blank()?;
        Ok(format!("u{}d{}x", self.seed.unwrap_or_default(), self.blanks))
    }

    /// Adds statements, those with an identity first. A plain statement with an existing entry that has an
    /// identity is skipped. `statements` is empty afterwards.
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
        let mut new = Vec::new();
        for run in statements.chunk_by(|a, b| a.predicate == b.predicate) {
            if self.target.has_new_predicate(run)? {
                new.push(run[0].predicate);
            }
        }
        let there = self.read(|snapshot, _| remove::with_edges(snapshot, statements, &new))?;
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

/// Whether `SILENT` covers the error: mistakes of the caller and refusals of the outside world, but neither
/// damage nor limits.
fn is_ignorable_when_silent(error: &Error) -> bool {
    use ErrorKind::{Input, Io, Query, Unavailable, Unsupported};
    matches!(error.kind(), Query | Input | Io | Unsupported | Unavailable)
}

fn no_such_graph(graph: &NamedNode) -> Error {
    Error::new(ErrorKind::Query, format!("there is no graph {graph}"))
        .with_hint("a graph is there as long as it has statements; SILENT makes this no error")
}
