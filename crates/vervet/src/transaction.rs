//! Transactions: atomic changes with snapshot reads.

use crate::database::Database;
use crate::query::adaptive::AdaptivePlan;
use crate::query::execute::Execution;
use crate::query::prepared;
use crate::query::reading::{PinnedVersion, plan_options, watched};
use crate::query::run::control;
use crate::update::{self, UpdateOptions, UpdateReport, UpdateTarget};
use crate::{Answer, Prepared, QueryOptions, Solutions};
use oxrdf::{GraphNameRef, QuadRef, TermRef};
use std::sync::Arc;
use std::time::{Duration, Instant};
use vervet_graph::Graph;
use vervet_kernel::Gate;
use vervet_model::{Direction, Error, ErrorKind, Id, Result, Statement};
use vervet_snapshot::Snapshot;
use vervet_txn::{Isolation, PendingCommit, Read, Timestamp, View};

/// The maximum attempts of [`Database::transact`] and [`Database::update`] under conflicts.
pub const ATTEMPTS_MAX: u32 = 100;
/// The longest pause between two attempts.
const PAUSE_MAX: Duration = Duration::from_millis(20);

/// How a transaction behaves.
#[derive(Clone, Copy, Debug, Default)]
pub struct TransactionOptions {
    /// The isolation level.
    pub isolation: Isolation,
}

/// A transaction. It reads the snapshot at its begin and its own changes. Dropping it without a commit rolls
/// it back.
///
/// ```
/// use vervet::Database;
///
/// # fn main() -> vervet::Result<()> {
/// let db = Database::in_memory();
/// let mut transaction = db.begin()?;
/// transaction.update("INSERT DATA { <urn:ann> <urn:knows> <urn:bob> }")?;
/// assert_eq!(transaction.select("SELECT * { ?a <urn:knows> ?b }")?.len(), 1);
/// assert_eq!(db.select("SELECT * { ?a <urn:knows> ?b }")?.len(), 0); // nobody else sees it yet
/// transaction.commit()?;
/// assert_eq!(db.select("SELECT * { ?a <urn:knows> ?b }")?.len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Transaction {
    pub(crate) database: Database,
    pub(crate) inner: vervet_txn::Transaction,
    /// Start of the time budget of all operations, in a further attempt; `None`: each operation has its own.
    pub(crate) started: Option<Instant>,
}

/// A point in a transaction to roll back to.
#[derive(Debug)]
pub struct Savepoint(vervet_txn::Savepoint);

impl Database {
    /// Begins a serializable transaction.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] if another process (the message names it) writes to the directory.
    pub fn begin(&self) -> Result<Transaction> {
        self.begin_with(TransactionOptions::default())
    }

    /// Begins a transaction.
    ///
    /// # Errors
    /// As [`Database::begin`].
    pub fn begin_with(&self, options: TransactionOptions) -> Result<Transaction> {
        let inner = self.transactions().begin(options.isolation)?;
        Ok(Transaction { database: self.clone(), inner, started: None })
    }

    /// Runs `work` in a serializable transaction and commits. Retries from the start when it conflicts with
    /// others, with at most [`ATTEMPTS_MAX`] attempts, so `work` must be repeatable. From the second attempt
    /// on, the timeouts of queries and updates in `work` count from the end of the first attempt, for all
    /// attempts together.
    ///
    /// # Errors
    /// Errors of `work` and of the commit.
    ///
    /// ```
    /// use vervet::Database;
    ///
    /// # fn main() -> vervet::Result<()> {
    /// let db = Database::in_memory();
    /// db.update("INSERT DATA { <urn:counter> <urn:value> 1 }")?;
    /// let count = db.transact(|transaction| {
    ///     let solutions = transaction.select("SELECT ?value { <urn:counter> <urn:value> ?value }")?;
    ///     let value = solutions.rows().next().expect("there is one").integer("value")?.expect("a number");
    ///     transaction.update(&format!(
    ///         "DELETE DATA {{ <urn:counter> <urn:value> {value} }} ;
    ///          INSERT DATA {{ <urn:counter> <urn:value> {} }}", value + 1
    ///     ))?;
    ///     Ok(value + 1)
    /// })?;
    /// assert_eq!(count, 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn transact<T>(&self, work: impl FnMut(&mut Transaction) -> Result<T>) -> Result<T> {
        let (value, commit) = self.transact_from(None, work)?;
        commit.wait()?;
        Ok(value)
    }

    /// Like [`Database::transact`], without the wait until the commit is durable; the timeouts of operations
    /// count from `started`, if given.
    fn transact_from<T>(
        &self,
        mut started: Option<Instant>,
        mut work: impl FnMut(&mut Transaction) -> Result<T>,
    ) -> Result<(T, PendingCommit)> {
        let mut attempt = 1;
        loop {
            let mut transaction = self.begin()?;
            transaction.started = started;
            let done = work(&mut transaction).and_then(|value| Ok((value, transaction.commit_pending()?)));
            match done {
                Err(error) if error.kind() == ErrorKind::Conflict && attempt < ATTEMPTS_MAX => {
                    // Jitter, so that the conflicting transactions do not retry at the same time.
                    let spread = self.environment().random.next_u64().unwrap_or_default() % 64;
                    let pause = Duration::from_micros(u64::from(attempt) * spread);
                    started.get_or_insert_with(Instant::now);
                    std::thread::sleep(pause.min(PAUSE_MAX));
                    attempt += 1;
                }
                done => return done,
            }
        }
    }

    /// Runs a SPARQL update request as one transaction; retries it when it conflicts with others.
    ///
    /// # Errors
    /// [`ErrorKind::Query`] with line, column and a caret; limits; [`ErrorKind::Conflict`] after
    /// [`ATTEMPTS_MAX`] attempts; as [`Database::begin`].
    pub fn update(&self, text: &str) -> Result<UpdateReport> {
        self.update_with(text, &mut UpdateOptions::default())
    }

    /// [`Database::update`] with options. All attempts share the time budget of the options.
    ///
    /// # Errors
    /// As [`Database::update`].
    pub fn update_with(&self, text: &str, options: &mut UpdateOptions<'_>) -> Result<UpdateReport> {
        let (report, commit) = self.update_pending(text, options)?;
        commit.wait()?;
        Ok(report)
    }

    /// [`Database::update_with`] without the wait until the changes are visible and durable: for callers that
    /// wait for many of them with one thread.
    ///
    /// # Errors
    /// As [`Database::update_with`].
    ///
    /// ```
    /// use vervet::Database;
    /// use vervet::update::UpdateOptions;
    ///
    /// # fn main() -> vervet::Result<()> {
    /// let db = Database::in_memory();
    /// let text = "INSERT DATA { <urn:ann> <urn:knows> <urn:bob> }";
    /// let (report, commit) = db.update_pending(text, &mut UpdateOptions::default())?;
    /// commit.wait()?;
    /// assert_eq!(report.inserted, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn update_pending(
        &self,
        text: &str,
        options: &mut UpdateOptions<'_>,
    ) -> Result<(UpdateReport, PendingCommit)> {
        self.transact_from(Some(Instant::now()), |transaction| transaction.update_with(text, options))
    }
}

impl Transaction {
    /// Runs a query of any form.
    ///
    /// # Errors
    /// As [`Database::query`].
    pub fn query(&self, text: &str) -> Result<Answer> {
        self.query_with(text, &QueryOptions::default())
    }

    /// Runs a query of any form with options.
    ///
    /// # Errors
    /// As [`Database::query`].
    pub fn query_with(&self, text: &str, options: &QueryOptions) -> Result<Answer> {
        self.run(&self.database.prepare_with(text, options)?, options)
    }

    /// Runs a `SELECT`.
    ///
    /// # Errors
    /// As [`Database::select`].
    pub fn select(&self, text: &str) -> Result<Solutions> {
        self.query(text)?.into_solutions().ok_or_else(|| {
            Error::new(ErrorKind::Query, "this query is not a SELECT").with_hint("use `query`")
        })
    }

    /// Runs a prepared query. It is planned anew, for what this transaction sees.
    ///
    /// # Errors
    /// As [`Prepared::run_with`].
    pub fn run(&self, prepared: &Prepared, options: &QueryOptions) -> Result<Answer> {
        self.execute(prepared, options, |execution| Ok(prepared::answer(execution, prepared.query())?.0))
    }

    /// Plans a query for what this transaction sees, and passes the plan to `run`.
    pub(crate) fn execute<T>(
        &self,
        prepared: &Prepared,
        options: &QueryOptions,
        run: impl FnOnce(&Execution<'_>) -> Result<T>,
    ) -> Result<T> {
        let view = self.inner.view()?;
        let snapshot = view.as_snapshot();
        // Counts from statistics would not enter the read set.
        let planning = plan_options(prepared.compiled().optimize, matches!(view, View::Plain(_)));
        let planning = watched(planning, options);
        let started = self.started.unwrap_or_else(|| options.begin());
        let control = control(options, started, None);
        let _limits = control.enter();
        let resolved;
        let query = match prepared.compiled().is_federated {
            true => {
                resolved = crate::query::federation::resolved(prepared.query(), options, &control)?;
                &resolved
            }
            false => prepared.query(),
        };
        let plan = Arc::new(vervet_planner::plan(query, snapshot, &planning, &control)?);
        let plan = AdaptivePlan::new(query, snapshot, planning, plan);
        let pinned = PinnedVersion::Private(Arc::new(self.inner.version()?.clone()));
        let database = &self.database;
        let prefixes = &prepared.compiled().prefixes[..];
        run(&Execution { database, pinned: &pinned, snapshot, plan, prefixes, options, started })
    }

    /// Calls `read` with the graph as this transaction sees it, for the typed interface.
    ///
    /// # Errors
    /// Errors of `read`.
    pub fn read<T>(&self, read: impl FnOnce(Graph<'_>) -> Result<T>) -> Result<T> {
        let view = self.inner.view()?;
        read(Graph::new(view.as_snapshot()))
    }

    /// Runs a SPARQL update request. If it fails half way, the transaction is rolled back to the state before
    /// it.
    ///
    /// # Errors
    /// As [`Database::update`].
    pub fn update(&mut self, text: &str) -> Result<UpdateReport> {
        self.update_with(text, &mut UpdateOptions::default())
    }

    /// [`Transaction::update`] with options.
    ///
    /// # Errors
    /// As [`Database::update`].
    pub fn update_with(&mut self, text: &str, options: &mut UpdateOptions<'_>) -> Result<UpdateReport> {
        let request = update::parse(text, &options.query)?;
        let before = self.inner.savepoint();
        let environment = self.database.environment().clone();
        let gate = self.database.driver().gate();
        let started = self.started.unwrap_or_else(|| options.query.begin());
        let control = control(&options.query, started, gate.clone());
        let _limits = control.enter();
        let mut target = TransactionTarget { inner: &mut self.inner, gate };
        let done = update::run_under(&request, &mut target, &environment, options, control);
        if done.is_err() {
            self.inner.roll_back_to(&before)?;
        }
        done
    }

    /// Adds a statement; `false`: it existed.
    ///
    /// # Errors
    /// Damaged data; a full disk.
    pub fn insert<'q>(&mut self, quad: impl Into<QuadRef<'q>>) -> Result<bool> {
        let statement = self.interned(quad.into())?;
        self.inner.insert(&statement)
    }

    /// Ensures that all these statements exist. Their former existence is not a read, so two transactions
    /// that add the same statements do not conflict. Much faster than single insertions.
    ///
    /// # Errors
    /// As [`Transaction::insert`].
    pub fn insert_all<'q>(&mut self, quads: impl IntoIterator<Item = QuadRef<'q>>) -> Result<()> {
        let statements: Vec<Statement> =
            quads.into_iter().map(|quad| self.interned(quad)).collect::<Result<_>>()?;
        self.inner.insert_all(&statements)
    }

    fn interned(&self, quad: QuadRef<'_>) -> Result<Statement> {
        Ok(Statement {
            subject: self.inner.intern(quad.subject.into())?,
            predicate: self.inner.intern(quad.predicate.into())?,
            object: self.inner.intern(quad.object)?,
            graph: match quad.graph_name {
                GraphNameRef::DefaultGraph => Id::UNBOUND,
                GraphNameRef::NamedNode(name) => self.inner.intern(name.into())?,
                GraphNameRef::BlankNode(node) => self.inner.intern(node.into())?,
            },
            edge: Id::UNBOUND,
        })
    }

    /// Removes a statement without an identity; `false`: it did not exist.
    ///
    /// # Errors
    /// Damaged data.
    pub fn remove<'q>(&mut self, quad: impl Into<QuadRef<'q>>) -> Result<bool> {
        let quad = quad.into();
        let view = self.inner.view()?;
        let lookup = |term: TermRef<'_>| view.as_snapshot().lookup(term);
        let graph = match quad.graph_name {
            GraphNameRef::DefaultGraph => Some(Id::UNBOUND),
            GraphNameRef::NamedNode(name) => lookup(name.into())?,
            GraphNameRef::BlankNode(node) => lookup(node.into())?,
        };
        let (subject, predicate) = (lookup(quad.subject.into())?, lookup(quad.predicate.into())?);
        let (Some(subject), Some(predicate), Some(object), Some(graph)) =
            (subject, predicate, lookup(quad.object)?, graph)
        else {
            return Ok(false);
        };
        drop(view);
        self.inner.remove(&Statement { subject, predicate, object, graph, edge: Id::UNBOUND })
    }

    /// Sets a savepoint.
    #[must_use]
    pub fn savepoint(&self) -> Savepoint {
        Savepoint(self.inner.savepoint())
    }

    /// Undoes all changes since `savepoint`.
    ///
    /// # Errors
    /// [`ErrorKind::Input`]: the savepoint belongs to another transaction, or was itself rolled back.
    pub fn roll_back_to(&mut self, savepoint: &Savepoint) -> Result<()> {
        self.inner.roll_back_to(&savepoint.0)
    }

    /// Makes all changes visible, and durable according to the durability of the database.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`]: a conflict with another transaction, which the message names; run it again.
    /// [`ErrorKind::Constraint`]: the changes would violate a constraint; nothing has changed.
    /// [`ErrorKind::Io`]: the log could not be written.
    pub fn commit(self) -> Result<Timestamp> {
        self.inner.commit()
    }

    /// [`Transaction::commit`] without the wait until the changes are visible and durable.
    ///
    /// # Errors
    /// As [`Transaction::commit`].
    pub fn commit_pending(self) -> Result<PendingCommit> {
        self.inner.commit_pending()
    }

    /// Discards all changes. Dropping the transaction does the same.
    pub fn roll_back(self) {
        self.inner.roll_back();
    }
}

/// A transaction as an [`UpdateTarget`]. An update fixes whether its statements exist afterwards, whatever
/// existed before, so its changes are not reads.
struct TransactionTarget<'a> {
    inner: &'a mut vervet_txn::Transaction,
    gate: Option<Arc<dyn Gate>>,
}

impl UpdateTarget for TransactionTarget<'_> {
    fn read(&mut self, with: &mut dyn FnMut(&dyn Snapshot) -> Result<()>) -> Result<()> {
        let view = self.inner.view()?;
        with(view.as_snapshot())
    }

    fn gate(&self) -> Option<Arc<dyn Gate>> {
        self.gate.clone()
    }

    fn intern(&mut self, term: TermRef<'_>) -> Result<Id> {
        self.inner.intern(term)
    }

    fn fresh_edge(&mut self) -> Result<Id> {
        Ok(self.inner.fresh_edge())
    }

    fn has_new_predicate(&mut self, statements: &[Statement]) -> Result<bool> {
        let Some(first) = statements.first() else { return Ok(true) };
        let is_new = self.inner.version()?.segment(first.predicate, Direction::Out)?.is_none();
        for statement in statements.iter().filter(|_| is_new) {
            self.inner.record_read(Read::Entry(statement.subject, statement.predicate, statement.object));
        }
        Ok(is_new)
    }

    fn insert(&mut self, statement: &Statement) -> Result<bool> {
        Ok(self.insert_all(std::slice::from_ref(statement))? > 0)
    }

    fn remove(&mut self, statement: &Statement) -> Result<bool> {
        Ok(self.remove_all(std::slice::from_ref(statement))? > 0)
    }

    fn insert_all(&mut self, statements: &[Statement]) -> Result<u64> {
        let before = self.inner.version()?.statement_count();
        self.inner.insert_all(statements)?;
        Ok(self.inner.version()?.statement_count().saturating_sub(before))
    }

    fn remove_all(&mut self, statements: &[Statement]) -> Result<u64> {
        let before = self.inner.version()?.statement_count();
        self.inner.remove_all(statements)?;
        Ok(before.saturating_sub(self.inner.version()?.statement_count()))
    }
}
