//! A transaction: a version of the graph of its own, and the sets that a commit needs.

use crate::change::{Change, Timestamp};
use crate::reads::ReadSet;
use crate::tracked::Tracked;
use crate::transactions::{Published, Transactions};
use oxrdf::{BlankNode, TermRef};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use vervet_delta::Version;
use vervet_model::{Direction, Error, ErrorKind, Id, Result, Statement, Tag};
use vervet_snapshot::Snapshot;

/// What a transaction may see of others, and others of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Isolation {
    /// As if transactions had run one after another, in the order of their commits. A transaction that read
    /// what another one has changed meanwhile, absence and counts included, fails with a conflict.
    #[default]
    Serializable,
    /// Every read sees the graph as it was at the begin; of two that change the same thing the second one
    /// fails with a conflict. Two that each read what the other one changes may both commit (write skew).
    Snapshot,
}

/// So many changes wait before a version of its own is made for them: a small transaction often needs none,
/// since it does not look at what it has changed, and its commit applies them to the newest version anyway.
const WAITING_MAX: usize = 8;

/// A transaction that reads and writes. Dropped without a commit, it leaves nothing behind.
///
/// It sees the graph as it was when it began, and its own changes.
#[derive(Debug)]
pub struct Transaction {
    transactions: Arc<Transactions>,
    pub(crate) began: Arc<Published>,
    pub(crate) isolation: Isolation,
    /// The version of its begin with all changes; not made while these wait.
    own: OnceLock<Version>,
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
    own: OnceLock<Version>,
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

    /// The graph as this transaction sees it; what is read from it is remembered where the isolation level
    /// asks for that.
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

    /// The same graph, for estimates and for who says himself what he reads ([`Transaction::note`]).
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
            apply(&mut version, change)?;
        }
        Ok(self.own.get_or_init(|| version))
    }

    /// The graph as it was when this transaction began.
    #[must_use]
    pub fn began_version(&self) -> &Version {
        &self.began.version
    }

    /// A version that has the same statements with this predicate and this subject ([`Direction::Out`]) or
    /// object as [`Transaction::version`], and is there without being made for it if no change waits that has
    /// to do with them.
    ///
    /// # Errors
    /// Damaged data.
    pub fn version_at(&self, predicate: Id, direction: Direction, key: Id) -> Result<&Version> {
        let meets = |change: &Change| {
            let Statement { subject, object, .. } = change.statement;
            let own = if direction == Direction::Out { subject } else { object };
            change.statement.predicate == predicate && own == key
        };
        if self.own.get().is_none() && !self.changes.iter().any(meets) {
            return Ok(&self.began.version);
        }
        self.version()
    }

    /// The same for what an edge is.
    ///
    /// # Errors
    /// Damaged data.
    pub fn version_of_edge(&self, edge: Id) -> Result<&Version> {
        // With a version of its own a transaction may have a million changes, which are not looked at here.
        if self.own.get().is_none() && !self.changes.iter().any(|change| change.statement.edge == edge) {
            return Ok(&self.began.version);
        }
        self.version()
    }

    /// The version of its own, if it was made: with all changes.
    pub(crate) fn own_version(&self) -> Option<&Version> {
        self.own.get()
    }

    fn version_mut(&mut self) -> Result<&mut Version> {
        if self.own.get().is_none() {
            let version = self.version()?.clone();
            self.own.get_or_init(|| version);
        }
        self.own.get_mut().ok_or_else(|| Error::internal("a transaction without a version"))
    }

    /// Remembers a read of [`Transaction::version`], which [`Transaction::view`] does by itself.
    pub fn note(&mut self, read: Read) {
        if self.untracked {
            return;
        }
        if read == Read::Predicates {
            // Changes that wait count: they may have emptied a predicate. What is damaged the caller finds,
            // too.
            if let Ok(seen) = self.version() {
                let mut reads = self.reads.lock().unwrap_or_else(PoisonError::into_inner);
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
        // What only changes that wait know is found by the second look.
        let version = self.own.get().unwrap_or(&self.began.version);
        if let Some(id) = version.lookup(term)? {
            return Ok(id);
        }
        let id = self.transactions.intern(version, term)?;
        if id.tag() == Tag::Edge {
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
            let is_edge = |id: &Id| id.tag() == Tag::Edge;
            if !change.added && is_edge(&statement.edge) {
                // Whether it is there is a question of this edge, not of others between the same two; whether
                // it may go, of who speaks of it.
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
        let changed = if self.may_wait(1, std::iter::once(change)) {
            let (version, statement) = (&self.began.version, &change.statement);
            if change.added { version.would_insert(statement)? } else { version.would_remove(statement)? }
        } else {
            let changed = apply(self.version_mut()?, &change);
            self.broken |= changed.is_err();
            changed?
        };
        if changed {
            self.changes.push(change);
        }
        Ok(changed)
    }

    /// Whether what so many changes do can be told from the version of the begin: they and the changes that
    /// wait have to do with different statements and different edges.
    fn may_wait(&self, count: usize, changes: impl Iterator<Item = Change> + Clone) -> bool {
        self.own.get().is_none()
            && self.changes.len() + count <= WAITING_MAX
            && changes.clone().enumerate().all(|(at, change)| {
                let before = self.changes.iter().copied().chain(changes.clone().take(at));
                before.into_iter().all(|other| !meet(&change.statement, &other.statement))
            })
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
        let changes = statements.iter().map(|&statement| Change { statement, added });
        if self.may_wait(statements.len(), changes.clone()) {
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
        // Also those that change nothing here: somebody else may have changed them meanwhile.
        self.changes.extend(changes);
        self.broken |= changed.is_err();
        changed
    }

    /// Marks this point.
    #[must_use]
    pub fn savepoint(&self) -> Savepoint {
        Savepoint {
            own: self.own.clone(),
            changes: self.changes.len(),
            returns: self.returns.len(),
            began: Arc::clone(&self.began),
        }
    }

    /// Undoes all changes since `savepoint`. What was read stays read. Later savepoints mean nothing any
    /// more.
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
    /// isolation, what it changed): run it again. [`ErrorKind::Constraint`]: it would break one.
    /// [`ErrorKind::Io`]: the log could not be written; if the disk was full just then, the transaction may
    /// still become visible when there is room again. [`ErrorKind::Unavailable`]: checkpoints are too far
    /// behind, or a bulk load takes too long.
    pub fn commit(self) -> Result<Timestamp> {
        self.check_whole()?;
        let transactions = Arc::clone(&self.transactions);
        if !self.changes.is_empty() {
            transactions.wait_for_room(self.changes.len())?;
        }
        transactions.commit(self)
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
        // Also of one that was rolled back: the terms that it brought stay.
        self.transactions.checkpoint_if_wanted();
    }
}

/// Whether a change of one may decide what a change of the other does.
fn meet(one: &Statement, other: &Statement) -> bool {
    let edges_of = |statement: &Statement| {
        let edges = [statement.subject, statement.object, statement.edge].into_iter();
        edges.filter(|id| id.tag() == Tag::Edge)
    };
    (one.subject, one.predicate, one.object) == (other.subject, other.predicate, other.object)
        || edges_of(one).any(|edge| edges_of(other).any(|other| edge == other))
}

/// Makes one change; whether it had an effect.
pub(crate) fn apply(version: &mut Version, change: &Change) -> Result<bool> {
    if change.added { version.insert(&change.statement) } else { version.remove(&change.statement) }
}
