//! All transactions over one graph: who sees which version, and who may commit.
//!
//! # Shape
//! Two pointers to versions: the newest one that has been validated, and the newest one that is durable;
//! readers take the latter. Behind a lock, the head: the newest version again, with the recently committed
//! transactions.
//! # Invariants
//! 1. Versions are published in the order of their timestamps, and only when the log holds their commits as
//!    safely as the durability level says: nobody reads what a power failure would undo.
//! 2. The log holds commits in the order of their timestamps. So if a commit is durable, all those that
//!    it may have read from are.
//! 3. An active transaction is registered before anybody forgets a commit that it must be validated against.
//! # Cost
//! A begin: two short locks. A commit: see `commit`.
//! # Source
//! DESIGN §4; G-Tran (arXiv 2105.04449). Different: versions are values that share structure, in place of
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
use vervet_log::{Level, Log, Lsn};
use vervet_model::{Error, ErrorKind, Id, Result};
use vervet_snapshot::Snapshot;

/// How transactions behave.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// When a commit counts as done.
    pub durability: Level,
    /// Optimistic pre-read (G-Tran, §4.2): a transaction that writes begins at the newest validated version,
    /// on the condition that it becomes durable; its own commit waits for that in any case. `false`: it
    /// begins at the newest durable one, and conflicts with all that are on their way to the disk.
    pub pre_read: bool,
    /// Whether changes are merged in the background when there are enough (`wants_checkpoint`). `false`:
    /// calls of [`Transactions::checkpoint`] alone bound memory and log.
    pub checkpoints: bool,
    /// The most memory of changes that no checkpoint has, in bytes; commits are slowed, then refused, before
    /// it is exceeded by more than one transaction. No more than the memory that the machine has to spare.
    pub delta_bytes_max: u64,
    /// The most bytes of log that no checkpoint has made superfluous, likewise.
    pub log_bytes_max: u64,
    /// How many vertices, and how many literals, may have a number, ever: at most [`TERMS_MAX`].
    pub terms_max: u64,
    /// How long who wants to change something waits for a bulk load.
    pub load_wait: Duration,
}

/// What [`Options::delta_bytes_max`] is unless it is said.
pub const DELTA_BYTES_MAX_DEFAULT: u64 = 2 << 30;
/// What [`Options::log_bytes_max`] is unless it is said.
pub const LOG_BYTES_MAX_DEFAULT: u64 = 1 << 30;
/// What [`Options::load_wait`] is unless it is said.
pub const LOAD_WAIT_DEFAULT: Duration = Duration::from_secs(60);
/// The most vertices, and the most literals, that ever have a number: a base counts them in 32 bits. Numbers
/// are not used again, also those of terms that no statement has; an export that is loaded into a new
/// directory numbers what is left.
pub const TERMS_MAX: u64 = (1 << 32) - (1 << 20);
/// How often who waits for a load looks again.
const LOAD_LOOK_EVERY: Duration = Duration::from_millis(5);

impl Default for Options {
    fn default() -> Self {
        Self {
            durability: Level::default(),
            pre_read: true,
            checkpoints: true,
            delta_bytes_max: DELTA_BYTES_MAX_DEFAULT,
            log_bytes_max: LOG_BYTES_MAX_DEFAULT,
            terms_max: TERMS_MAX,
            load_wait: LOAD_WAIT_DEFAULT,
        }
    }
}

/// How many transactions ended how, since the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Committed, with changes.
    pub commits: u64,
    /// Refused for a conflict.
    pub conflicts: u64,
}

/// A version and when it was made.
#[derive(Debug)]
pub struct Published {
    /// The graph.
    pub version: Version,
    /// The last commit in it.
    pub timestamp: Timestamp,
    /// Number of changes of all commits since the start.
    pub(crate) changes: u64,
    /// What it keeps, and every transaction that begins with it must keep.
    pub(crate) constraints: Arc<Constraints>,
    /// Everything in it is durable once the log is up to here. Not set: it is durable.
    pub(crate) lsn: OnceLock<Lsn>,
}

impl Published {
    pub(crate) fn new(version: Version, timestamp: Timestamp, constraints: Arc<Constraints>) -> Arc<Self> {
        Arc::new(Self { version, timestamp, changes: 0, constraints, lsn: OnceLock::new() })
    }

    /// Another version in the place of this one.
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
    /// Validated, maybe not durable yet.
    newest: ArcSwap<Published>,
    /// Durable. Shared with the log, which moves it on.
    visible: Arc<ArcSwap<Published>>,
    pub(crate) head: Mutex<Head>,
    /// Those who wait for the head to commit.
    pub(crate) queue: Mutex<Vec<Request>>,
    /// Begins of active transactions: how many, and since when the first of them.
    active: Mutex<BTreeMap<Timestamp, (usize, Duration)>>,
    /// What makes the directory ours; none for a graph in memory, or while nobody has written.
    pub(crate) writer: OnceLock<Arc<Writer>>,
    /// Held while this becomes the writer.
    pub(crate) owning: Mutex<()>,
    /// Held for reading while a term is added; for writing while a bulk load numbers terms of its own.
    pub(crate) interning: RwLock<()>,
    /// Vertices and literals with numbers below these have a record in the log, or are in a base.
    logged: Mutex<[u64; 2]>,
    next_edge: AtomicU64,
    /// Set when it is not known what the directory holds: nobody writes any more.
    pub(crate) failure: OnceLock<Error>,
    pub(crate) checkpointing: Mutex<()>,
    pub(crate) background: Background,
    commits: AtomicU64,
    pub(crate) conflicts: Conflicts,
}

/// What commits change.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) published: Arc<Published>,
    pub(crate) committed: Committed,
    /// A bulk load makes a graph that takes the place of this one: no transaction commits.
    pub(crate) is_loading: bool,
}

impl Transactions {
    /// Transactions over `version`, whose last commit is `timestamp`, and which keeps `constraints`.
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
        let start = version.base().log_place().map_or(0, |place| place.lsn);
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
    /// [`ErrorKind::Unavailable`]: another process (the message says which) writes to the
    /// directory. [`ErrorKind::Io`], [`ErrorKind::Corrupt`]: the log could not be
    /// opened.
    pub fn begin(self: &Arc<Self>, isolation: Isolation) -> Result<Transaction> {
        let log = self.log()?;
        if let Some(log) = log.filter(|log| log.refuses()) {
            // If there is room again, waiting commits become durable, and no transaction conflicts with them.
            let _ = log.sync();
        }
        // What a full disk keeps from being durable is not read: who only reads need not wait for room.
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

    /// When a commit counts as done.
    #[must_use]
    pub fn durability(&self) -> Level {
        self.options.durability
    }

    /// How many transactions ended how.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts { commits: self.commits.load(Ordering::Relaxed), conflicts: self.conflicts.read().sum() }
    }

    /// A transaction that began then is no longer active.
    pub(crate) fn ended(&self, began: Timestamp) {
        let mut active = lock(&self.active);
        let (count, _) = active.get_mut(&began).expect("a transaction that ends has begun");
        *count -= 1;
        if *count == 0 {
            active.remove(&began);
        }
    }

    /// No active transaction began before this, and none will.
    pub(crate) fn oldest_active(&self) -> Timestamp {
        let active = lock(&self.active);
        let visible = self.visible.load().timestamp;
        active.first_key_value().map_or(visible, |(oldest, _)| visible.min(*oldest))
    }

    /// How many transactions are active, and since when the oldest one is.
    pub(crate) fn active_since(&self) -> (u64, Option<Duration>) {
        let active = lock(&self.active);
        let count: usize = active.values().map(|(count, _)| count).sum();
        (count as u64, active.values().map(|(_, began)| *began).min())
    }

    /// The head, locked, once no bulk load is at work.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`]: a load took longer than [`Options::load_wait`].
    pub(crate) fn head_for_writing(&self) -> Result<MutexGuard<'_, Head>> {
        self.wait_for_load(|| Some(lock(&self.head)).filter(|head| !head.is_loading))
    }

    /// What `attempt` returns, once it is something.
    fn wait_for_load<T>(&self, mut attempt: impl FnMut() -> Option<T>) -> Result<T> {
        let mut begin = None;
        loop {
            if let Some(found) = attempt() {
                return Ok(found);
            }
            if begin.get_or_insert_with(Instant::now).elapsed() >= self.options.load_wait {
                let wait = self.options.load_wait;
                let message = format!("a bulk load is running, and was not done in {wait:?}");
                return Err(Error::new(ErrorKind::Unavailable, message)
                    .with_hint("nothing was changed; try again when it is done"));
            }
            std::thread::sleep(LOAD_LOOK_EVERY);
        }
    }

    /// Refuses another term when there are as many as there may be.
    fn check_terms(&self, version: &Version) -> Result<()> {
        let terms = version.terms();
        let count = terms.vertex_end().max(terms.literal_end());
        if count < self.options.terms_max {
            return Ok(());
        }
        let message = format!("there are {count} vertices or literals, the most that ever may have a number");
        Err(Error::new(ErrorKind::Unavailable, message).with_hint(
            "numbers are never used again; export the graph and load it into a new directory, where only what is left is numbered",
        ))
    }

    /// The id of a term that `version` does not know.
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
            // A checkpoint leaves its terms where they were, too; a load numbers new ones that old versions
            // cannot know.
            return version.terms().lookup(term).ok_or_else(|| {
                let message = format!("this transaction conflicts with a bulk load, which brought {term}");
                Error::new(ErrorKind::Conflict, message).with_hint("run it again")
            });
        }
        // A transaction that numbers terms has a directory to write to.
        self.log()?;
        // A bulk load may have numbered it since `version`, in a dictionary of which its terms do not know.
        if let Some(id) = self.newest.load().version.base().dictionary().lookup(term)? {
            return Ok(id);
        }
        version.terms().intern(term)
    }

    /// Appends the records of all terms that have a number and no record, so that a commit that uses them may
    /// follow. Terms that no commit uses get none before another commit: numbers in the log have no gaps.
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
            // What is in a base needs no record: its manifest is durable before the base is used.
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

    /// Takes all terms for logged: the log has just been opened, behind what it and the base say.
    pub(crate) fn terms_are_logged(&self) {
        let newest = self.newest();
        let terms = newest.version.terms();
        *lock(&self.logged) = [terms.vertex_end(), terms.literal_end()];
    }

    pub(crate) fn fresh_edge(&self) -> Id {
        Id::edge(self.next_edge.fetch_add(1, Ordering::Relaxed))
    }

    /// Edge ids from here on are new.
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

    /// Makes a validated version the one that writers begin with. The caller holds the head.
    pub(crate) fn publish_newest(&self, published: &Arc<Published>) {
        let before = self.newest.load().timestamp;
        assert!(published.timestamp > before, "commit {} behind {before}", published.timestamp);
        self.newest.store(Arc::clone(published));
    }

    /// What makes a version visible once it is durable.
    pub(crate) fn publish_visible(&self, published: &Arc<Published>) -> vervet_log::Publish {
        let (visible, published) = (Arc::clone(&self.visible), Arc::clone(published));
        Box::new(move |_| visible.store(published))
    }

    /// Replaces both pointers by the same graph in another form. The caller holds the head, and nothing waits
    /// for the log.
    pub(crate) fn replace(&self, published: &Arc<Published>) {
        self.newest.store(Arc::clone(published));
        self.visible.store(Arc::clone(published));
    }

    /// Starts anew from what was found on disk. Nobody has written yet.
    pub(crate) fn reset(&self, version: Version, timestamp: Timestamp, constraints: Arc<Constraints>) {
        let mut head = lock(&self.head);
        self.reserve_edges(version.edge_count());
        let published = Published::new(version, timestamp, constraints);
        head.committed = Committed::new(timestamp);
        let start = published.version.base().log_place().map_or(0, |place| place.lsn);
        self.background.log_start.store(start, Ordering::Relaxed);
        self.replace(&published);
        head.published = published;
    }
}
