//! A transaction: a private version of the graph, and the read and write sets for its validation.

use crate::commit::{CommitReceipt, CommitRequest};
use crate::mutation::{Mutation, Timestamp};
use crate::published::Published;
use crate::reads::ReadSet;
use crate::tracked::Tracked;
use crate::transactions::Transactions;
use crate::validation::Isolation;
use oxrdf::{BlankNode, TermRef};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use vervet_delta::Version;
use vervet_model::{Direction, Error, ErrorKind, Id, Result, Statement, Tag};
use vervet_snapshot::Snapshot;

/// Maximum number of pending changes before a private version is made for them: a small transaction often
/// needs none, since it does not read its own changes, and its commit applies them to the newest version
/// anyway.
const PENDING_MAX: usize = 8;

/// A transaction that reads and writes. Dropping it without a commit discards all changes.
///
/// It sees the graph as it was when it began, and its own changes.
#[derive(Debug)]
pub struct Transaction {
    transactions: Arc<Transactions>,
    began: Arc<Published>,
    isolation: Isolation,
    /// The version of the begin with all changes; not created while the changes are pending.
    own: OnceLock<Version>,
    changes: Vec<Mutation>,
    reads: Mutex<ReadSet>,
    /// Set when no read set is needed: under snapshot isolation.
    untracked: bool,
    blanks: u64,
    blank_scope: Option<u64>,
    /// A change failed half way: only a roll-back is possible.
    broken: bool,
    /// Number of changes left by each roll-back to a savepoint, in order.
    returns: Vec<usize>,
}

/// A commit that has its place among all others, and may not be durable yet. Readers see it once it is;
/// with [`crate::Options::pre_read`] transactions may begin with it before. Dropping it undoes nothing.
#[derive(Debug)]
#[must_use = "it may not be durable yet"]
pub struct PendingCommit {
    transactions: Arc<Transactions>,
    receipt: CommitReceipt,
}

impl PendingCommit {
    /// Returns once the commit is visible, and durable according to the durability of the graph. One such
    /// wait makes all commits before it durable, too.
    ///
    /// # Errors
    /// [`ErrorKind::Io`]: the log could not be written; if the disk was full just then, the transaction may
    /// still become visible when there is room again. [`ErrorKind::Unavailable`]: the outcome is unknown,
    /// since no majority of the servers answers.
    pub fn wait(self) -> Result<Timestamp> {
        self.transactions.committer().wait(self.receipt)
    }
}

/// A point in a transaction to roll back to.
#[derive(Debug)]
pub struct Savepoint {
    own: OnceLock<Version>,
    changes: usize,
    /// Number of roll-backs of the transaction when this savepoint was made.
    returns: usize,
    began: Arc<Published>,
}

/// A read of [`Transaction::version`] that validation must protect against concurrent changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Read {
    /// All statements with this predicate and this subject ([`Direction::Out`]) or object.
    Key(Id, Direction, Id),
    /// Whether there are statements with this subject, predicate and object, in any graph, with any edge.
    Entry(Id, Id, Id),
    /// The statement of an edge.
    Edge(Id),
    /// The list of predicates.
    Predicates,
}

/// The graph as a transaction sees it.
#[derive(Debug)]
pub enum View<'a> {
    /// Reads are not recorded.
    Plain(&'a Version),
    /// Reads are recorded.
    Tracked(Tracked<'a>),
}

impl View<'_> {
    /// The interface for query engines.
    #[must_use]
    pub fn as_snapshot(&self) -> &dyn Snapshot {
        match self {
            Self::Plain(version) => *version,
            Self::Tracked(tracked) => tracked,
        }
    }
}

impl Transactions {
    /// Begins a transaction.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`]: another process (the message names it) writes to the directory.
    /// [`ErrorKind::Io`], [`ErrorKind::Corrupt`]: the log could not be opened.
    pub fn begin(self: &Arc<Self>, isolation: Isolation) -> Result<Transaction> {
        let began = self.register()?;
        Ok(Transaction::new(Arc::clone(self), began, isolation))
    }
}

impl Transaction {
    fn new(transactions: Arc<Transactions>, began: Arc<Published>, isolation: Isolation) -> Self {
        Self {
            transactions,
            isolation,
            own: OnceLock::new(),
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

    /// The graph as this transaction sees it. Reads are recorded if the isolation level requires it.
    ///
    /// # Errors
    /// Damaged data.
    pub fn view(&self) -> Result<View<'_>> {
        let version = self.version()?;
        Ok(if self.untracked {
            View::Plain(version)
        } else {
            View::Tracked(Tracked::new(&self.began.version, version, &self.reads))
        })
    }

    /// The same graph without recorded reads, for estimates and for callers that record their reads by
    /// [`Transaction::record_read`].
    ///
    /// # Errors
    /// Damaged data.
    pub fn version(&self) -> Result<&Version> {
        if let Some(own) = self.own.get() {
            return Ok(own);
        }
        if self.changes.is_empty() {
            return Ok(&self.began.version);
        }
        let mut version = self.began.version.clone();
        for change in &self.changes {
            change.apply(&mut version)?;
        }
        Ok(self.own.get_or_init(|| version))
    }

    /// The graph at the begin of this transaction.
    #[must_use]
    pub fn began_version(&self) -> &Version {
        &self.began.version
    }

    /// A version with the same statements of this predicate and this subject ([`Direction::Out`]) or object
    /// as [`Transaction::version`]. It avoids creating a private version if no pending change concerns them.
    ///
    /// # Errors
    /// Damaged data.
    pub fn version_at(&self, predicate: Id, direction: Direction, key: Id) -> Result<&Version> {
        let meets = |change: &Mutation| {
            let Statement { subject, object, .. } = change.statement;
            let own = if direction == Direction::Out { subject } else { object };
            change.statement.predicate == predicate && own == key
        };
        if self.own.get().is_none() && !self.changes.iter().any(meets) {
            return Ok(&self.began.version);
        }
        self.version()
    }

    /// Same as [`Transaction::version_at`] for the statement of an edge.
    ///
    /// # Errors
    /// Damaged data.
    pub fn version_of_edge(&self, edge: Id) -> Result<&Version> {
        // A transaction with a private version may have a million changes; they are not scanned here.
        if self.own.get().is_none() && !self.changes.iter().any(|change| change.statement.edge == edge) {
            return Ok(&self.began.version);
        }
        self.version()
    }

    fn version_mut(&mut self) -> Result<&mut Version> {
        if self.own.get().is_none() {
            let version = self.version()?.clone();
            self.own.get_or_init(|| version);
        }
        self.own.get_mut().ok_or_else(|| Error::internal("a transaction without a version"))
    }

    /// Records a read of [`Transaction::version`]; [`Transaction::view`] does so by itself.
    pub fn record_read(&mut self, read: Read) {
        if self.untracked {
            return;
        }
        if read == Read::Predicates {
            // Pending changes count: they may have emptied a predicate. The caller finds damaged data, too.
            if let Ok(seen) = self.version() {
                let mut reads = vervet_model::lock(&self.reads);
                reads.add_predicate_list(&self.began.version, seen);
            }
            return;
        }
        let reads = self.reads.get_mut().unwrap_or_else(PoisonError::into_inner);
        match read {
            Read::Key(predicate, direction, key) => reads.add_keys(predicate, direction, &[key]),
            Read::Entry(subject, predicate, object) => {
                reads.add_entries(predicate, Direction::Out, std::iter::once((subject, object)));
            }
            Read::Edge(edge) => reads.add_edge(edge),
            Read::Predicates => {}
        }
    }

    /// The isolation level.
    #[must_use]
    pub fn isolation(&self) -> Isolation {
        self.isolation
    }

    /// The begin timestamp: the transaction sees all commits up to this one.
    #[must_use]
    pub fn began(&self) -> Timestamp {
        self.began.timestamp
    }

    /// Number of changes so far.
    #[must_use]
    pub fn change_count(&self) -> usize {
        self.changes.len()
    }

    /// The id of a term; creates one for an unknown term.
    ///
    /// # Errors
    /// Damaged dictionary; a full disk; a triple term; the IRI of an edge that does not exist.
    pub fn intern(&self, term: TermRef<'_>) -> Result<Id> {
        // The second look-up finds terms that only pending changes use.
        let version = self.own.get().unwrap_or(&self.began.version);
        if let Some(id) = version.lookup(term)? {
            return Ok(id);
        }
        let id = self.transactions.writer().intern(version, term)?;
        if id.tag() == Tag::Edge {
            let message = format!("{term} is the name of an edge that does not exist");
            return Err(Error::new(ErrorKind::Input, message).with_hint("insert its statement first"));
        }
        Ok(id)
    }

    /// A new, globally unique blank node.
    ///
    /// # Errors
    /// As [`Transaction::intern`]; no randomness.
    pub fn fresh_blank(&mut self) -> Result<Id> {
        let scope = match self.blank_scope {
            Some(scope) => scope,
            None => *self.blank_scope.insert(self.transactions.writer().random()?),
        };
        self.blanks += 1;
        let label = format!("t{scope:x}x{}", self.blanks);
        self.intern(BlankNode::new_unchecked(label).as_ref().into())
    }

    /// A new edge id.
    #[must_use]
    pub fn fresh_edge(&self) -> Id {
        self.transactions.writer().numbering().fresh_edge()
    }

    /// Adds a statement; `false` if it existed already.
    ///
    /// A statement without an edge also exists if it exists with one. The existence check is a read.
    ///
    /// # Errors
    /// Damaged data; an edge id that has another statement.
    pub fn insert(&mut self, statement: &Statement) -> Result<bool> {
        self.change(Mutation { statement: *statement, added: true })
    }

    /// Removes a statement with exactly this graph and edge; `false` if it did not exist.
    ///
    /// # Errors
    /// Damaged data.
    pub fn remove(&mut self, statement: &Statement) -> Result<bool> {
        self.change(Mutation { statement: *statement, added: false })
    }

    fn change(&mut self, change: Mutation) -> Result<bool> {
        self.check_whole()?;
        self.transactions.writer().check_failure()?;
        let statement = &change.statement;
        if !self.untracked {
            let reads = self.reads.get_mut().unwrap_or_else(PoisonError::into_inner);
            let is_edge = |id: &Id| id.tag() == Tag::Edge;
            if !change.added && is_edge(&statement.edge) {
                // Its existence depends on this edge, not on other edges between the same two vertices;
                // whether it may be removed depends on the statements about it.
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
        let changed = if self.may_buffer(1, std::iter::once(change)) {
            let (version, statement) = (&self.began.version, &change.statement);
            if change.added { version.would_insert(statement)? } else { version.would_remove(statement)? }
        } else {
            let changed = change.apply(self.version_mut()?);
            self.broken |= changed.is_err();
            changed?
        };
        if changed {
            self.changes.push(change);
        }
        Ok(changed)
    }

    /// Whether the effects of these changes can be decided from the version of the begin: they and the
    /// pending changes concern different statements and different edges.
    fn may_buffer(&self, count: usize, changes: impl Iterator<Item = Mutation> + Clone) -> bool {
        self.own.get().is_none()
            && self.changes.len() + count <= PENDING_MAX
            && changes.clone().enumerate().all(|(at, change)| {
                let before = self.changes.iter().copied().chain(changes.clone().take(at));
                before.into_iter().all(|other| !may_interact(&change.statement, &other.statement))
            })
    }

    /// Adds all these statements if they do not exist. The existence check is not a read, so two transactions
    /// that add the same statements do not conflict. Much faster than single insertions.
    ///
    /// # Errors
    /// As [`Transaction::insert`].
    pub fn insert_all(&mut self, statements: &[Statement]) -> Result<()> {
        self.change_all(statements, true)
    }

    /// Removes all these statements, with exactly this graph and edge, if they exist.
    ///
    /// # Errors
    /// As [`Transaction::remove`].
    pub fn remove_all(&mut self, statements: &[Statement]) -> Result<()> {
        self.change_all(statements, false)
    }

    fn change_all(&mut self, statements: &[Statement], added: bool) -> Result<()> {
        self.check_whole()?;
        self.transactions.writer().check_failure()?;
        let changes = statements.iter().map(|&statement| Mutation { statement, added });
        if self.may_buffer(statements.len(), changes.clone()) {
            let version = &self.began.version;
            for statement in statements {
                // Only for its error.
                if added {
                    version.would_insert(statement)?
                } else {
                    version.would_remove(statement)?
                };
            }
            self.changes.extend(changes);
            return Ok(());
        }
        let version = self.version_mut()?;
        let changed = if added {
            version.insert_all(statements).map(|_| ())
        } else {
            statements.iter().try_for_each(|statement| version.remove(statement).map(|_| ()))
        };
        // Includes changes without an effect here: a concurrent transaction may have changed the same
        // statements.
        self.changes.extend(changes);
        self.broken |= changed.is_err();
        changed
    }

    /// Makes a savepoint at the current state.
    #[must_use]
    pub fn savepoint(&self) -> Savepoint {
        Savepoint {
            own: self.own.clone(),
            changes: self.changes.len(),
            returns: self.returns.len(),
            began: Arc::clone(&self.began),
        }
    }

    /// Undoes all changes since `savepoint`. Recorded reads stay. Later savepoints become invalid.
    ///
    /// # Errors
    /// [`ErrorKind::Input`]: the savepoint is of another transaction, or of a part that was undone.
    pub fn roll_back_to(&mut self, savepoint: &Savepoint) -> Result<()> {
        let undone = |returns: &[usize]| returns.iter().any(|left| *left < savepoint.changes);
        let is_here = Arc::ptr_eq(&savepoint.began, &self.began) && savepoint.changes <= self.changes.len();
        // Otherwise the list of changes would not match the version.
        if !is_here || self.returns.get(savepoint.returns..).is_none_or(undone) {
            let message = "this savepoint is not a point of this transaction";
            return Err(Error::new(ErrorKind::Input, message));
        }
        self.own = savepoint.own.clone();
        self.changes.truncate(savepoint.changes);
        self.returns.push(savepoint.changes);
        self.broken = false;
        Ok(())
    }

    /// Makes all changes visible and, at the durability level of the database, durable; or none of them.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`]: another transaction has changed what this one read (or, under snapshot
    /// isolation, what it changed): run it again. [`ErrorKind::Constraint`]: it would violate one.
    /// [`ErrorKind::Io`]: the log could not be written; if the disk was full just then, the transaction may
    /// still become visible when there is room again. [`ErrorKind::Unavailable`]: checkpoints are too far
    /// behind, or a bulk load takes too long.
    pub fn commit(self) -> Result<Timestamp> {
        self.commit_pending()?.wait()
    }

    /// [`Transaction::commit`] without the wait until the commit is durable.
    ///
    /// # Errors
    /// As [`Transaction::commit`].
    pub fn commit_pending(mut self) -> Result<PendingCommit> {
        self.check_whole()?;
        let transactions = Arc::clone(&self.transactions);
        if self.changes.is_empty() {
            let receipt = transactions.committer().commit_unchanged(&self.began)?;
            return Ok(PendingCommit { transactions, receipt });
        }
        self.transactions.background().wait_for_room(self.changes.len())?;
        let constraint_check = self.check_constraints();
        let request = CommitRequest {
            isolation: self.isolation,
            began: Arc::clone(&self.began),
            own: self.own.take(),
            changes: std::mem::take(&mut self.changes),
            reads: std::mem::take(self.reads.get_mut().unwrap_or_else(PoisonError::into_inner)),
            constraint_check,
        };
        // Registered until this returns.
        let receipt = transactions.committer().commit(request)?;
        Ok(PendingCommit { transactions, receipt })
    }

    /// Checks the constraints that the transaction began with. The reads of the check are in its read set.
    fn check_constraints(&mut self) -> Result<()> {
        if self.began.constraints.is_empty() {
            return Ok(());
        }
        let mut reads = std::mem::take(self.reads.get_mut().unwrap_or_else(PoisonError::into_inner));
        let checked =
            self.version().and_then(|own| self.began.constraints.check(own, &self.changes, &mut reads));
        self.reads = Mutex::new(reads);
        checked
    }

    /// Discards all changes. Dropping the transaction does the same.
    pub fn roll_back(self) {
        drop(self);
    }

    fn check_whole(&self) -> Result<()> {
        if !self.broken {
            return Ok(());
        }
        let message = "a change of this transaction failed half way";
        Err(Error::new(ErrorKind::Unavailable, message).with_hint("roll back to a savepoint, or completely"))
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        self.transactions.head().unregister(self.began.timestamp);
        // Also after a roll-back: the terms that it added stay.
        self.transactions.background().start_if_wanted();
    }
}

/// Whether a change of one may affect the result of a change of the other.
fn may_interact(one: &Statement, other: &Statement) -> bool {
    let edges_of = |statement: &Statement| {
        let edges = [statement.subject, statement.object, statement.edge].into_iter();
        edges.filter(|id| id.tag() == Tag::Edge)
    };
    (one.subject, one.predicate, one.object) == (other.subject, other.predicate, other.object)
        || edges_of(one).any(|edge| edges_of(other).any(|other| edge == other))
}
