//! The transaction manager of one graph: visible versions, the head, active transactions.
//!
//! # Shape
//! Two pointers to versions: the newest validated one, and the newest durable one; readers take the latter.
//! Behind a lock, the head: the newest version again, with the recently committed transactions.
//! # Invariants
//! 1. Versions are published in the order of their timestamps, and only when the log holds their commits as
//!    safely as the durability level promises: no reader sees what a power failure would undo.
//! 2. The log holds commits in the order of their timestamps. So if a commit is durable, all those that it
//!    may have read from are.
//! 3. An active transaction is registered before any commit that it must be validated against can be dropped.
//! # Cost
//! A begin: two short locks. A commit: see `commit`.
//! # Source
//! DESIGN §4; G-Tran (arXiv 2105.04449). Difference: versions are values that share structure, in place of
//! stamps in rows (see `vervet_delta`).

use crate::background::Background;
use crate::change::Timestamp;
use crate::commit::Request;
use crate::committed::Committed;
use crate::constraints::Constraints;
use crate::record;
use crate::status::Conflicts;
use crate::sync::{ArcSwap, AtomicU64, Mutex, MutexGuard, RwLock, lock};
use crate::transaction::{Isolation, Transaction};
use crate::writer::Writer;
use oxrdf::TermRef;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock, TryLockError};
use std::time::{Duration, Instant};
use vervet_delta::Version;
use vervet_env::Environment;
use vervet_log::{Durability, Log, Lsn};
use vervet_model::{Error, ErrorKind, Id, Result};
use vervet_snapshot::Snapshot;

/// Options of transactions.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Durability level: when a commit is acknowledged.
    pub durability: Durability,
    /// Optimistic pre-read (G-Tran, §4.2): a transaction that writes begins at the newest validated version,
    /// on the condition that it becomes durable; its own commit waits for that in any case. `false`: it
    /// begins at the newest durable version, and conflicts with commits that are not durable yet.
    pub pre_read: bool,
    /// Whether checkpoints run in the background when due ([`Transactions::wants_checkpoint`]). `false`: only
    /// calls of [`Transactions::checkpoint`] bound memory and log.
    pub checkpoints: bool,
    /// Maximum memory of changes without a checkpoint, in bytes; commits are delayed, then refused, before it
    /// is exceeded by more than one transaction. Choose at most the spare memory of the machine.
    pub delta_bytes_max: u64,
    /// Maximum size of the log without a checkpoint, in bytes; enforced likewise.
    pub log_bytes_max: u64,
    /// Maximum number of vertices, and of literals, that ever get a number: at most [`TERMS_MAX`].
    pub terms_max: u64,
    /// Maximum wait of a writer for a bulk load.
    pub load_wait: Duration,
}

/// Default of [`Options::delta_bytes_max`].
pub const DELTA_BYTES_MAX_DEFAULT: u64 = 2 << 30;
/// Default of [`Options::log_bytes_max`].
pub const LOG_BYTES_MAX_DEFAULT: u64 = 1 << 30;
/// Default of [`Options::load_wait`].
pub const LOAD_WAIT_DEFAULT: Duration = Duration::from_secs(60);
/// Maximum number of vertices, and of literals, that ever get a number: a base counts them in 32 bits.
/// Numbers are not reused, not even those of terms without statements; an export loaded into a new directory
/// numbers only the remaining terms.
pub const TERMS_MAX: u64 = (1 << 32) - (1 << 20);
/// Polling interval of writers that wait for a load.
const LOAD_LOOK_EVERY: Duration = Duration::from_millis(5);

impl Default for Options {
    fn default() -> Self {
        Self {
            durability: Durability::default(),
            pre_read: true,
            checkpoints: true,
            delta_bytes_max: DELTA_BYTES_MAX_DEFAULT,
            log_bytes_max: LOG_BYTES_MAX_DEFAULT,
            terms_max: TERMS_MAX,
            load_wait: LOAD_WAIT_DEFAULT,
        }
    }
}

/// Transactions by outcome, since the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Committed, with changes.
    pub commits: u64,
    /// Refused for a conflict.
    pub conflicts: u64,
}

/// A version with its timestamp.
#[derive(Debug)]
pub struct Published {
    /// The graph.
    pub version: Version,
    /// The last commit in it.
    pub timestamp: Timestamp,
    /// Number of changes of all commits since the start.
    pub(crate) changes: u64,
    /// The constraints that it satisfies, and that every transaction from it must satisfy.
    pub(crate) constraints: Arc<Constraints>,
    /// LSN at which everything in it is durable. Not set: it is durable.
    pub(crate) lsn: OnceLock<Lsn>,
}

impl Published {
    pub(crate) fn new(version: Version, timestamp: Timestamp, constraints: Arc<Constraints>) -> Arc<Self> {
        Arc::new(Self { version, timestamp, changes: 0, constraints, lsn: OnceLock::new() })
    }

    /// The same commit with another version and timestamp.
    pub(crate) fn with(&self, version: Version, timestamp: Timestamp) -> Self {
        let constraints = Arc::clone(&self.constraints);
        Self { version, timestamp, changes: self.changes, constraints, lsn: OnceLock::new() }
    }
}

/// See the header of this file.
#[derive(Debug)]
pub struct Transactions {
    pub(crate) environment: Environment,
    pub(crate) directory: Option<PathBuf>,
    pub(crate) options: Options,
    /// Validated, possibly not durable yet.
    newest: ArcSwap<Published>,
    /// Durable. Shared with the log, which advances it.
    visible: Arc<ArcSwap<Published>>,
    pub(crate) head: Mutex<Head>,
    /// Requests that wait for the head to commit.
    pub(crate) queue: Mutex<Vec<Request>>,
    /// Active transactions by begin timestamp: their number, and the start time of the first.
    active: Mutex<BTreeMap<Timestamp, (usize, Duration)>>,
    /// Write ownership of the directory; unset for a graph in memory, or before the first write.
    pub(crate) writer: OnceLock<Arc<Writer>>,
    /// Held while this process takes the directory.
    pub(crate) owning: Mutex<()>,
    /// Held for reading while a term is added; for writing while a bulk load numbers terms of its own.
    pub(crate) interning: RwLock<()>,
    /// Vertices and literals with numbers below these have a record in the log, or are in a base.
    logged: Mutex<[u64; 2]>,
    next_edge: AtomicU64,
    /// Set when the state of the directory is unknown: no further writes.
    pub(crate) failure: OnceLock<Error>,
    pub(crate) checkpointing: Mutex<()>,
    pub(crate) background: Background,
    commits: AtomicU64,
    pub(crate) conflicts: Conflicts,
}

/// The state that commits change.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) published: Arc<Published>,
    pub(crate) committed: Committed,
    /// A bulk load is building a replacement of this graph: no transaction commits.
    pub(crate) is_loading: bool,
}

impl Transactions {
    /// Transactions over `version`, whose last commit is `timestamp`, and which satisfies `constraints`.
    pub(crate) fn new(
        environment: Environment,
        directory: Option<PathBuf>,
        options: Options,
        version: Version,
        timestamp: Timestamp,
        constraints: Arc<Constraints>,
    ) -> Arc<Self> {
        let next_edge = AtomicU64::new(version.edge_count());
        let background = Background::default();
        let start = version.base().checkpoint_position().map_or(0, |place| place.lsn);
        background.log_start.store(start, Ordering::Relaxed);
        lock(&background.history).last = environment.clock.now();
        let published = Published::new(version, timestamp, constraints);
        Arc::new(Self {
            environment,
            directory,
            options,
            newest: ArcSwap::new(Arc::clone(&published)),
            visible: Arc::new(ArcSwap::new(Arc::clone(&published))),
            queue: Mutex::default(),
            head: Mutex::new(Head { published, committed: Committed::new(timestamp), is_loading: false }),
            active: Mutex::default(),
            writer: OnceLock::new(),
            owning: Mutex::default(),
            interning: RwLock::default(),
            logged: Mutex::default(),
            next_edge,
            failure: OnceLock::new(),
            checkpointing: Mutex::default(),
            background,
            commits: AtomicU64::new(0),
            conflicts: Conflicts::default(),
        })
    }

    /// The newest durable version.
    #[must_use]
    pub fn current(&self) -> Arc<Published> {
        self.visible.load_full()
    }

    /// Begins a transaction.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`]: another process (the message names it) writes to the directory.
    /// [`ErrorKind::Io`], [`ErrorKind::Corrupt`]: the log could not be opened.
    pub fn begin(self: &Arc<Self>, isolation: Isolation) -> Result<Transaction> {
        let log = self.log()?;
        if let Some(log) = log.filter(|log| log.refuses()) {
            // If there is room again, waiting commits become durable, and no transaction conflicts with them.
            let _ = log.sync();
        }
        // Versions that a full disk keeps from being durable are not read: a read-only transaction need not
        // wait for room.
        let pre_read = self.options.pre_read && !log.is_some_and(Log::refuses);
        let now = self.environment.clock.now();
        let began = {
            let mut active = lock(&self.active);
            let began = if pre_read { self.newest.load_full() } else { self.visible.load_full() };
            active.entry(began.timestamp).or_insert((0, now)).0 += 1;
            began
        };
        Ok(Transaction::new(Arc::clone(self), began, isolation))
    }

    /// Durability level: when a commit is acknowledged.
    #[must_use]
    pub fn durability(&self) -> Durability {
        self.options.durability
    }

    /// Transactions by outcome.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts { commits: self.commits.load(Ordering::Relaxed), conflicts: self.conflicts.read().sum() }
    }

    /// Unregisters an active transaction with this begin timestamp.
    pub(crate) fn ended(&self, began: Timestamp) {
        let mut active = lock(&self.active);
        let (count, _) = active.get_mut(&began).expect("a transaction that ends has begun");
        *count -= 1;
        if *count == 0 {
            active.remove(&began);
        }
    }

    /// Lower bound on the begin of all active and future transactions.
    pub(crate) fn oldest_active(&self) -> Timestamp {
        let active = lock(&self.active);
        let visible = self.visible.load().timestamp;
        active.first_key_value().map_or(visible, |(oldest, _)| visible.min(*oldest))
    }

    /// Number of active transactions, and the age of the oldest.
    pub(crate) fn active_since(&self) -> (u64, Option<Duration>) {
        let active = lock(&self.active);
        let count: usize = active.values().map(|(count, _)| count).sum();
        (count as u64, active.values().map(|(_, began)| *began).min())
    }

    /// Returns the head, locked, once no bulk load is running.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`]: a load took longer than [`Options::load_wait`].
    pub(crate) fn head_for_writing(&self) -> Result<MutexGuard<'_, Head>> {
        self.wait_for_load(|| Some(lock(&self.head)).filter(|head| !head.is_loading))
    }

    /// Polls `attempt` until it returns a value.
    fn wait_for_load<T>(&self, mut attempt: impl FnMut() -> Option<T>) -> Result<T> {
        let mut begin = None;
        loop {
            if let Some(found) = attempt() {
                return Ok(found);
            }
            if begin.get_or_insert_with(Instant::now).elapsed() >= self.options.load_wait {
                let wait = self.options.load_wait;
                let message = format!("a bulk load is running, and did not end within {wait:?}");
                return Err(Error::new(ErrorKind::Unavailable, message)
                    .with_hint("nothing was changed; try again when it has ended"));
            }
            std::thread::sleep(LOAD_LOOK_EVERY);
        }
    }

    /// Refuses a new term at the limit.
    fn check_terms(&self, version: &Version) -> Result<()> {
        let terms = version.terms();
        let count = terms.vertex_end().max(terms.literal_end());
        if count < self.options.terms_max {
            return Ok(());
        }
        let message = format!("there are {count} vertices or literals, the maximum that may have a number");
        Err(Error::new(ErrorKind::Unavailable, message).with_hint(
            "numbers are never used again; export the graph and load it into a new directory, which numbers only the remaining terms",
        ))
    }

    /// Creates or finds the id of a term that `version` does not know.
    pub(crate) fn intern(&self, version: &Version, term: TermRef<'_>) -> Result<Id> {
        let _gate = self.wait_for_load(|| match self.interning.try_read() {
            Ok(gate) => Some(gate),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        })?;
        self.check_terms(version)?;
        let newest = self.newest.load();
        if !Arc::ptr_eq(newest.version.base(), version.base())
            && newest.version.base().dictionary().lookup(term)?.is_some()
        {
            // A checkpoint keeps the ids of its terms; a load numbers new terms, which old versions cannot
            // see.
            return version.terms().lookup(term).ok_or_else(|| {
                let message = format!("this transaction conflicts with a bulk load, which added {term}");
                Error::new(ErrorKind::Conflict, message).with_hint("run it again")
            });
        }
        // A transaction that numbers terms must own the directory.
        self.log()?;
        // A bulk load may have numbered the term since `version`, in a dictionary that its terms do not
        // include.
        if let Some(id) = self.newest.load().version.base().dictionary().lookup(term)? {
            return Ok(id);
        }
        version.terms().intern(term)
    }

    /// Appends the records of all terms that have a number and no record, so that a commit that uses them may
    /// follow. Unused terms are written before the next commit, too: numbers in the log have no gaps.
    ///
    /// Interning does not append: it holds the lock of the terms, which readers take, and appending may wait
    /// for the disk.
    pub(crate) fn log_terms(&self, log: &Log) -> Result<()> {
        let mut logged = lock(&self.logged);
        let newest = self.newest();
        let (terms, dictionary) = (newest.version.terms(), newest.version.base().dictionary());
        let firsts = [dictionary.vertex_count(), dictionary.literal_count()];
        let ends = [terms.vertex_end(), terms.literal_end()];
        let make: [fn(u64) -> Id; 2] = [Id::vertex, Id::literal];
        let mut bytes = Vec::with_capacity(64);
        for (((logged, first), end), id) in logged.iter_mut().zip(firsts).zip(ends).zip(make) {
            // Terms of a base need no record: its manifest is durable before the base is used.
            *logged = first.max(*logged);
            while *logged < end {
                bytes.clear();
                let is_there = terms.read_term(id(*logged), &mut |parts| {
                    record::write_term(id(*logged), parts.to_term().as_ref(), &mut bytes);
                });
                assert!(is_there, "a number below the end of the terms has a term");
                log.append(record::TERM, &bytes)?;
                *logged += 1;
            }
        }
        Ok(())
    }

    /// Marks all terms as logged: the log has just been opened, and log and base contain them.
    pub(crate) fn terms_are_logged(&self) {
        let newest = self.newest();
        let terms = newest.version.terms();
        *lock(&self.logged) = [terms.vertex_end(), terms.literal_end()];
    }

    pub(crate) fn fresh_edge(&self) -> Id {
        Id::edge(self.next_edge.fetch_add(1, Ordering::Relaxed))
    }

    /// Reserves the edge ids below `end`.
    pub(crate) fn reserve_edges(&self, end: u64) {
        self.next_edge.fetch_max(end, Ordering::Relaxed);
    }

    pub(crate) fn random(&self) -> Result<u64> {
        self.environment.random.next_u64().map_err(|error| Error::io("draw a random number", &error))
    }

    pub(crate) fn count_commit(&self) {
        self.commits.fetch_add(1, Ordering::Relaxed);
    }

    /// The log, if it is open.
    pub(crate) fn open_log(&self) -> Option<&Log> {
        self.writer.get()?.log()
    }

    /// The newest validated version.
    pub(crate) fn newest(&self) -> Arc<Published> {
        self.newest.load_full()
    }

    /// Makes a validated version the begin version of writers. The caller holds the head.
    pub(crate) fn publish_newest(&self, published: &Arc<Published>) {
        let before = self.newest.load().timestamp;
        assert!(published.timestamp > before, "commit {} behind {before}", published.timestamp);
        self.newest.store(Arc::clone(published));
    }

    /// The callback that makes a version visible once it is durable.
    pub(crate) fn publish_visible(&self, published: &Arc<Published>) -> vervet_log::Publish {
        let (visible, published) = (Arc::clone(&self.visible), Arc::clone(published));
        Box::new(move |_| visible.store(published))
    }

    /// Replaces both pointers by the same graph in another form. The caller holds the head, and no commit
    /// waits for the log.
    pub(crate) fn replace(&self, published: &Arc<Published>) {
        self.newest.store(Arc::clone(published));
        self.visible.store(Arc::clone(published));
    }

    /// Restarts from the recovered state. This process has not written yet.
    pub(crate) fn reset(&self, version: Version, timestamp: Timestamp, constraints: Arc<Constraints>) {
        let mut head = lock(&self.head);
        self.reserve_edges(version.edge_count());
        let published = Published::new(version, timestamp, constraints);
        head.committed = Committed::new(timestamp);
        let start = published.version.base().checkpoint_position().map_or(0, |place| place.lsn);
        self.background.log_start.store(start, Ordering::Relaxed);
        self.replace(&published);
        head.published = published;
    }
}
