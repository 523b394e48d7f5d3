//! A transaction: a version of the graph of its own, and the sets that a commit needs.

use crate::change::{Change, Timestamp};
use crate::reads::ReadSet;
use crate::tracked::Tracked;
use crate::transactions::{Published, Transactions};
use oxrdf::{BlankNode, TermRef};
use std::sync::{Arc, Mutex, PoisonError};
use vervet_delta::Version;
use vervet_model::{Direction, Error, ErrorKind, Id, Result, Statement};
use vervet_snapshot::Snapshot;

/// What a transaction may see of others, and others of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Isolation {
    /// As if transactions had run one after another, in the order of their commits. A transaction that read
    /// what another one has changed meanwhile, absence and counts included, fails with a conflict.
    #[default]
    Serializable,
    /// Every read sees the graph as it was at the begin; of two that change the same thing the second one fails with
    /// a conflict. Two that each read what the other one changes may both commit (write skew).
    Snapshot,
}

/// A transaction that reads and writes. Dropped without a commit, it leaves nothing behind.
///
/// It sees the graph as it was when it began, and its own changes.
#[derive(Debug)]
pub struct Transaction {
    transactions: Arc<Transactions>,
    pub(crate) began: Arc<Published>,
    pub(crate) isolation: Isolation,
    pub(crate) version: Version,
    pub(crate) changes: Vec<Change>,
    pub(crate) reads: Mutex<ReadSet>,
    /// Set when a read set is needed no more: under snapshot isolation.
    untracked: bool,
    blanks: u64,
    blank_scope: Option<u64>,
    /// A change failed half way: only rolling back is left.
    broken: bool,
    /// How many changes each return to a savepoint has left, in order.
    returns: Vec<usize>,
}

/// A point in a transaction to go back to.
#[derive(Debug)]
pub struct Savepoint {
    version: Version,
    changes: usize,
    /// How often the transaction had gone back when this was made.
    returns: usize,
    began: Arc<Published>,
}

/// What somebody has looked at in [`Transaction::version`] whose answer others must not change meanwhile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Read {
    /// All statements with this predicate and this subject ([`Direction::Out`]) or object.
    Key(Id, Direction, Id),
    /// Whether there are statements with this subject, predicate and object, in any graph, with any edge.
    Entry(Id, Id, Id),
    /// What an edge is.
    Edge(Id),
    /// Which predicates there are.
    Predicates,
}

/// The graph as a transaction sees it.
#[derive(Debug)]
pub enum View<'a> {
    /// Nobody asks later what was read.
    Plain(&'a Version),
    /// What is read is remembered.
    Tracked(Tracked<'a>),
}

impl View<'_> {
    /// What query engines read.
    #[must_use]
    pub fn as_snapshot(&self) -> &dyn Snapshot {
        match self {
            Self::Plain(version) => *version,
            Self::Tracked(tracked) => tracked,
        }
    }
}

impl Transaction {
    pub(crate) fn new(transactions: Arc<Transactions>, began: Arc<Published>, isolation: Isolation) -> Self {
        Self {
            transactions,
            isolation,
            version: began.version.clone(),
            began,
            changes: Vec::new(),
            reads: Mutex::default(),
            untracked: isolation == Isolation::Snapshot,
            blanks: 0,
            blank_scope: None,
            broken: false,
            returns: Vec::new(),
        }
    }

    /// The graph as this transaction sees it; what is read from it is remembered where the isolation level
    /// asks for that.
    #[must_use]
    pub fn view(&self) -> View<'_> {
        if self.untracked {
            View::Plain(&self.version)
        } else {
            View::Tracked(Tracked::new(&self.version, &self.reads))
        }
    }

    /// The same graph, for estimates and for who says himself what he reads ([`Transaction::note`]).
    #[must_use]
    pub fn version(&self) -> &Version {
        &self.version
    }

    /// Remembers a read of [`Transaction::version`], which [`Transaction::view`] does by itself.
    pub fn note(&mut self, read: Read) {
        if self.untracked {
            return;
        }
        let reads = self.reads.get_mut().unwrap_or_else(PoisonError::into_inner);
        match read {
            Read::Key(predicate, direction, key) => reads.add_keys(predicate, direction, &[key]),
            Read::Entry(subject, predicate, object) => {
                reads.add_entries(predicate, Direction::Out, std::iter::once((subject, object)));
            }
            Read::Edge(edge) => reads.add_edge(edge),
            Read::Predicates => reads.add_predicate_list(),
        }
    }

    /// The level that it was begun with.
    #[must_use]
    pub fn isolation(&self) -> Isolation {
        self.isolation
    }

    /// When it began: it sees all commits up to this one.
    #[must_use]
    pub fn began(&self) -> Timestamp {
        self.began.timestamp
    }

    /// Number of changes so far.
    #[must_use]
    pub fn change_count(&self) -> usize {
        self.changes.len()
    }

    /// The id of a term, a new one if nobody knows the term.
    ///
    /// # Errors
    /// Damaged dictionary; a full disk; a triple term; the IRI of an edge that does not exist.
    pub fn intern(&self, term: TermRef<'_>) -> Result<Id> {
        if let Some(id) = self.version.lookup(term)? {
            return Ok(id);
        }
        let id = self.transactions.intern(&self.version, term)?;
        if id.tag() == vervet_model::Tag::Edge {
            let message = format!("{term} is the name of an edge that does not exist");
            return Err(Error::new(ErrorKind::Input, message).with_hint("edges are made by adding them"));
        }
        Ok(id)
    }

    /// A blank node that nobody else has.
    ///
    /// # Errors
    /// As [`Transaction::intern`]; no randomness.
    pub fn fresh_blank(&mut self) -> Result<Id> {
        let scope = match self.blank_scope {
            Some(scope) => scope,
            None => *self.blank_scope.insert(self.transactions.random()?),
        };
        self.blanks += 1;
        let label = format!("t{scope:x}x{}", self.blanks);
        self.intern(BlankNode::new_unchecked(label).as_ref().into())
    }

    /// An edge id that nobody else has.
    #[must_use]
    pub fn fresh_edge(&self) -> Id {
        self.transactions.fresh_edge()
    }

    /// Adds a statement; `false`: it was there already.
    ///
    /// A statement without an edge is there if it is there with one, too. Whether it was there is a read.
    ///
    /// # Errors
    /// Damaged data; an edge id that has another statement.
    pub fn insert(&mut self, statement: &Statement) -> Result<bool> {
        self.change(Change { statement: *statement, added: true })
    }

    /// Removes a statement, with exactly this graph and edge; `false`: it was not there.
    ///
    /// # Errors
    /// Damaged data.
    pub fn remove(&mut self, statement: &Statement) -> Result<bool> {
        self.change(Change { statement: *statement, added: false })
    }

    fn change(&mut self, change: Change) -> Result<bool> {
        self.check_whole()?;
        let statement = &change.statement;
        if !self.untracked {
            let reads = self.reads.get_mut().unwrap_or_else(PoisonError::into_inner);
            let is_edge = |id: &Id| id.tag() == vervet_model::Tag::Edge;
            if !change.added && is_edge(&statement.edge) {
                // Whether it is there is a question of this edge, not of others between the same two; whether it may
                // go, of who speaks of it.
                reads.add_edge(statement.edge);
                reads.add_edge_uses(statement.edge);
            } else {
                let entry = std::iter::once((statement.subject, statement.object));
                reads.add_entries(statement.predicate, Direction::Out, entry);
                // Whether it may be added depends on these edges.
                let edges = [statement.subject, statement.object, statement.edge];
                edges
                    .into_iter()
                    .filter(|id| change.added && is_edge(id))
                    .for_each(|edge| reads.add_edge(edge));
            }
        }
        let changed = apply(&mut self.version, &change);
        match changed {
            Ok(true) => self.changes.push(change),
            Ok(false) => {}
            Err(_) => self.broken = true,
        }
        changed
    }

    /// Makes sure that all these statements are there. Whether they were is not a read, so two transactions
    /// that add the same do not conflict. Much faster than one at a time.
    ///
    /// # Errors
    /// As [`Transaction::insert`].
    pub fn insert_all(&mut self, statements: &[Statement]) -> Result<()> {
        self.change_all(statements, true)
    }

    /// Makes sure that none of these statements is there, with exactly this graph and edge.
    ///
    /// # Errors
    /// As [`Transaction::remove`].
    pub fn remove_all(&mut self, statements: &[Statement]) -> Result<()> {
        self.change_all(statements, false)
    }

    fn change_all(&mut self, statements: &[Statement], added: bool) -> Result<()> {
        self.check_whole()?;
        // Also those that change nothing here: somebody else may have changed them meanwhile.
        self.changes.extend(statements.iter().map(|&statement| Change { statement, added }));
        let changed = if added {
            self.version.insert_all(statements).map(|_| ())
        } else {
            statements.iter().try_for_each(|statement| self.version.remove(statement).map(|_| ()))
        };
        self.broken |= changed.is_err();
        changed
    }

    /// Marks this point.
    #[must_use]
    pub fn savepoint(&self) -> Savepoint {
        Savepoint {
            version: self.version.clone(),
            changes: self.changes.len(),
            returns: self.returns.len(),
            began: Arc::clone(&self.began),
        }
    }

    /// Undoes all changes since `savepoint`. What was read stays read. Later savepoints mean nothing any more.
    ///
    /// # Errors
    /// [`ErrorKind::Input`]: the savepoint is of another transaction, or of a part that was undone.
    pub fn roll_back_to(&mut self, savepoint: &Savepoint) -> Result<()> {
        let undone = |returns: &[usize]| returns.iter().any(|left| *left < savepoint.changes);
        let is_here = Arc::ptr_eq(&savepoint.began, &self.began) && savepoint.changes <= self.changes.len();
        // Else the list of changes would be another one than that of the version.
        if !is_here || self.returns.get(savepoint.returns..).is_none_or(undone) {
            let message = "this savepoint is not a point of this transaction";
            return Err(Error::new(ErrorKind::Input, message));
        }
        self.version = savepoint.version.clone();
        self.changes.truncate(savepoint.changes);
        self.returns.push(savepoint.changes);
        self.broken = false;
        Ok(())
    }

    /// Makes all changes visible and, at the durability level of the database, durable; or none of them.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`]: another transaction has changed what this one read (or, under snapshot isolation,
    /// what it changed): run it again. [`ErrorKind::Io`]: the log could not be written.
    pub fn commit(self) -> Result<Timestamp> {
        self.check_whole()?;
        let transactions = Arc::clone(&self.transactions);
        let committed = transactions.commit(self)?;
        transactions.checkpoint_if_wanted();
        Ok(committed)
    }

    /// Forgets all changes. Dropping the transaction does the same.
    pub fn roll_back(self) {
        drop(self);
    }

    fn check_whole(&self) -> Result<()> {
        if !self.broken {
            return Ok(());
        }
        let message = "a change of this transaction failed half way";
        Err(Error::new(ErrorKind::Unavailable, message).with_hint("roll back to a savepoint, or altogether"))
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        self.transactions.ended(self.began.timestamp);
    }
}

/// Makes one change; whether it had an effect.
pub(crate) fn apply(version: &mut Version, change: &Change) -> Result<bool> {
    if change.added { version.insert(&change.statement) } else { version.remove(&change.statement) }
}
