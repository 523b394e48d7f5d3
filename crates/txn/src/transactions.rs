//! The transactions of one graph: composes the head of the commit order, the writer, commits and checkpoints.
//!
//! # Shape
//! * [`CommitHead`]: versions in commit order, recent commits, active transactions.
//! * [`Writer`]: write ownership of the directory, the log, and numbers of terms and edges.
//! * [`Committer`]: validates transactions and appends them to the log.
//! * [`Background`]: checkpoints and back-pressure.
//!
//! Each has private state and its own locks. The order of locks is: that of manifests, that of numbering, the
//! head, active transactions or the commit queue.
//! # Cost
//! A begin: one short lock. A commit: see `commit`.

use crate::background::Background;
use crate::backup;
use crate::base::{self, new_term_count};
use crate::commit::Committer;
use crate::commit_head::CommitHead;
use crate::commit_log::CommitLog;
use crate::constraint::Constraint;
use crate::constraints::Constraints;
use crate::feed_state::FeedState;
use crate::mutation::Timestamp;
use crate::options::Options;
use crate::published::Published;
use crate::recovery::{self, Recovered, version_of};
use crate::replacement::{self, ReplacementBase};
use crate::schema;
use crate::start::Start;
use crate::status::{CheckpointStatus, Counts, StorageStatus};
use crate::writer::{LogLocation, Writer};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use vervet_delta::Version;
use vervet_env::Environment;
use vervet_log::Durability;
use vervet_model::{Error, ErrorKind, Partitioning, Result, Watch};
use vervet_partition::{PartitionDirectory, PartitionedBase};
use vervet_store::{Base, Store};

/// See the header of this file.
#[derive(Debug)]
pub struct Transactions {
    options: Options,
    head: Arc<CommitHead>,
    writer: Arc<Writer>,
    committer: Committer,
    background: Arc<Background>,
    feed: FeedState,
}

impl Transactions {
    /// An empty graph in memory, which exists as long as a pointer to it.
    ///
    /// # Errors
    /// None at present.
    pub fn in_memory(environment: Environment, options: Options) -> Result<Arc<Self>> {
        let base: Arc<dyn Base> = match options.partitioning {
            Partitioning::WHOLE => Arc::new(Store::empty()?),
            several => Arc::new(PartitionedBase::empty(several)?),
        };
        let version = version_of(base);
        Ok(Self::new(environment, None, options, version, Timestamp::default(), Arc::default()))
    }

    /// The graph of `start`, which nothing changes: a transaction that would, a load and a new constraint
    /// fail with `refusal`.
    ///
    /// # Errors
    /// Corrupt: a constraint cannot be read.
    pub fn read_only(
        environment: Environment,
        start: &Start,
        options: Options,
        refusal: Error,
    ) -> Result<Arc<Self>> {
        let (version, timestamp, constraints) = recovery::state_of(start)?;
        let transactions = Self::new(environment, None, options, version, timestamp, constraints);
        transactions.writer.refuse(refusal);
        Ok(transactions)
    }

    /// The graph of `start`, whose files are elsewhere, and the changes in the log in `directory`, which this
    /// process writes. No checkpoint and no load replaces the base, so all changes stay in memory and in the
    /// log, within the limits of the options.
    ///
    /// # Errors
    /// Corrupt: the log is damaged, or of another base. Unavailable: another process writes to it. Io.
    pub fn over(
        environment: Environment,
        start: Start,
        directory: &Path,
        options: Options,
    ) -> Result<Arc<Self>> {
        let options = Options { checkpoints: false, ..options };
        let state = recovery::state_of(&start)?;
        let location = LogLocation {
            directory: Some(directory.to_owned()),
            over: Some(start),
            ..LogLocation::default()
        };
        let transactions = Self::with_log(environment, location, options, state);
        transactions.writer.take_ownership()?;
        Ok(transactions)
    }

    /// Opens the graph in a directory: everything committed at some moment during the call, also by a
    /// concurrent writer process. This process takes the directory when it first writes.
    ///
    /// # Errors
    /// [`ErrorKind::Input`]: there is no database. [`ErrorKind::Corrupt`]: it is damaged.
    pub fn open(environment: Environment, directory: &Path, options: Options) -> Result<Arc<Self>> {
        let Recovered { version, timestamp, constraints, .. } =
            recovery::recover_beside(&environment, directory)?;
        Ok(Self::new(environment, Some(directory), options, version, timestamp, constraints))
    }

    /// [`Transactions::open`] for a process that is going to write: it takes the directory at once, so log
    /// and base are read once, and not again by the first transaction.
    ///
    /// # Errors
    /// As [`Transactions::open`]; [`ErrorKind::Unavailable`]: another process writes to it.
    pub fn open_to_write(environment: Environment, directory: &Path, options: Options) -> Result<Arc<Self>> {
        // Without a database nothing is locked or created.
        Store::open(&environment, directory)?;
        let owner = Self::empty(environment, directory, options)?;
        owner.writer.take_ownership()?;
        Ok(owner)
    }

    /// [`Transactions::open_to_write`], or an empty graph that the first commit or load creates on disk.
    ///
    /// # Errors
    /// As [`Transactions::open_to_write`].
    pub fn open_or_create_to_write(
        environment: Environment,
        directory: &Path,
        options: Options,
    ) -> Result<Arc<Self>> {
        match Self::open_to_write(environment.clone(), directory, options.clone()) {
            Err(error) if error.kind() == ErrorKind::Input => Self::empty(environment, directory, options),
            opened => opened,
        }
    }

    /// An empty graph without files.
    fn empty(environment: Environment, directory: &Path, options: Options) -> Result<Arc<Self>> {
        let version = version_of(Arc::new(Store::empty()?));
        Ok(Self::new(environment, Some(directory), options, version, Timestamp::default(), Arc::default()))
    }

    /// [`Transactions::open`], or an empty graph that the first commit or load creates on disk.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`]: the database is damaged.
    pub fn open_or_create(environment: Environment, directory: &Path, options: Options) -> Result<Arc<Self>> {
        match Self::open(environment.clone(), directory, options.clone()) {
            Err(error) if error.kind() == ErrorKind::Input => Self::empty(environment, directory, options),
            opened => opened,
        }
    }

    /// Transactions over `version`, whose last commit is `timestamp`, and which satisfies `constraints`.
    fn new(
        environment: Environment,
        directory: Option<&Path>,
        options: Options,
        version: Version,
        timestamp: Timestamp,
        constraints: Arc<Constraints>,
    ) -> Arc<Self> {
        let location = LogLocation { directory: directory.map(Path::to_owned), ..LogLocation::default() };
        Self::with_log(environment, location, options, (version, timestamp, constraints))
    }

    /// [`Transactions::new`] with any log.
    pub(crate) fn with_log(
        environment: Environment,
        location: LogLocation,
        options: Options,
        (version, timestamp, constraints): (Version, Timestamp, Arc<Constraints>),
    ) -> Arc<Self> {
        let published = Published::new(version, timestamp, constraints);
        let head = Arc::new(CommitHead::new(published, options.load_wait));
        let terms_max = options.terms_max;
        let writer = Writer::new(environment, location, options.durability, terms_max, Arc::clone(&head));
        let writer = Arc::new(writer);
        let committer = Committer::new(Arc::clone(&head), Arc::clone(&writer), options.pre_read);
        let background = Background::new(Arc::clone(&head), Arc::clone(&writer), &options);
        Arc::new(Self {
            options,
            head,
            writer,
            committer,
            background: Arc::new(background),
            feed: FeedState::default(),
        })
    }

    pub(crate) fn head(&self) -> &CommitHead {
        &self.head
    }

    pub(crate) fn writer(&self) -> &Writer {
        &self.writer
    }

    pub(crate) fn committer(&self) -> &Committer {
        &self.committer
    }

    pub(crate) fn background(&self) -> &Arc<Background> {
        &self.background
    }

    pub(crate) fn feed_state(&self) -> &FeedState {
        &self.feed
    }

    /// The newest durable version.
    #[must_use]
    pub fn current(&self) -> Arc<Published> {
        self.head.visible()
    }

    /// Whether transactions begin at the newest validated version, and at what time it is.
    fn begin_parameters(&self) -> Result<(bool, Duration)> {
        let log = self.writer.log()?;
        if let Some(log) = log.filter(|log| log.refuses()) {
            // If there is room again, waiting commits become durable, and no transaction conflicts with them.
            let _ = log.sync();
        }
        // Versions that a full disk keeps from being durable are not read: a read-only transaction need not
        // wait for room.
        let pre_read = self.options.pre_read && !log.is_some_and(CommitLog::refuses);
        Ok((pre_read, self.writer.environment().clock.now()))
    }

    /// Registers an active transaction; returns the version that it begins with.
    pub(crate) fn register(&self) -> Result<Arc<Published>> {
        let (pre_read, now) = self.begin_parameters()?;
        Ok(self.head.register(pre_read, now))
    }

    /// Durability level: when a commit is acknowledged.
    #[must_use]
    pub fn durability(&self) -> Durability {
        self.writer.durability()
    }

    /// Transactions by outcome.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.committer.counts()
    }

    /// Describes this process to others that try to write to the directory, such as
    /// `vervet serve at http://…`; has no effect unless this process is the directory's writer.
    pub fn describe_owner(&self, text: &str) {
        self.writer.describe_owner(text);
    }

    /// Merges the delta into a new base, and cuts the log. `false` if there was nothing to do. Only one
    /// checkpoint runs at a time.
    ///
    /// # Errors
    /// A full disk and other I/O errors: nothing is changed. Damaged data.
    pub fn checkpoint(&self) -> Result<bool> {
        self.writer.check_replaceable()?;
        self.background.checkpointer().checkpoint()
    }

    /// Makes all commits so far durable, whatever [`crate::Options::durability`] says.
    ///
    /// # Errors
    /// I/O errors; as after any failed sync of the log, nothing is written until the graph is opened again.
    pub fn sync(&self) -> Result<()> {
        match self.writer.open_log() {
            Some(log) => log.sync(),
            None => Ok(()),
        }
    }

    /// Whether a checkpoint is due.
    #[must_use]
    pub fn wants_checkpoint(&self) -> bool {
        self.background.wants_checkpoint()
    }

    /// Waits for the end of a running background checkpoint.
    pub fn wait_background(&self) {
        self.background.wait();
    }

    /// Replaces the graph by the result of `build` for the newest version. Writers wait meanwhile, each for
    /// [`crate::Options::load_wait`] at most. Active transactions fail with a conflict if they have read
    /// anything. `build` finishes the new store by [`ReplacementBase::finish`]; terms keep their numbers.
    ///
    /// # Errors
    /// Those of `build`, and nothing is changed; as [`Transactions::begin`].
    pub fn replace_graph<T>(
        &self,
        build: impl FnOnce(&ReplacementBase<'_>) -> Result<(Arc<dyn Base>, T)>,
    ) -> Result<T> {
        self.writer.check_replaceable()?;
        replacement::replace_graph(&self.head, &self.writer, build)
    }

    /// Writes the current graph as a separate database; returns its number of statements. Blocks no
    /// transaction.
    ///
    /// # Errors
    /// [`ErrorKind::Input`]: `to` has a database, or foreign files. A full disk and other I/O errors: nothing
    /// of the copy remains.
    pub fn backup(&self, to: &Path) -> Result<u64> {
        self.backup_watched(to, &Watch::new("backup"))
    }

    /// [`Transactions::backup`] with progress and cancellation by `watch`.
    ///
    /// # Errors
    /// As [`Transactions::backup`]; those of `watch`, and then nothing of the copy remains.
    pub fn backup_watched(&self, to: &Path, watch: &Watch<'_>) -> Result<u64> {
        backup::backup(self.writer.environment(), &self.current(), to, watch)
    }

    /// Writes the current graph in several partitions to a directory without one. Blocks no transaction.
    ///
    /// # Errors
    /// [`ErrorKind::Input`]: the directory has such a graph. A full disk and other I/O errors; those of
    /// `watch`.
    pub fn write_partitions(
        &self,
        partitioning: Partitioning,
        directory: &Path,
        watch: &Watch<'_>,
    ) -> Result<PartitionDirectory> {
        let environment = self.writer.environment();
        let current = self.current();
        let (version, terms) = (&current.version, current.version.terms());
        let graph = (version, current.constraints.texts(), [terms.vertex_end(), terms.literal_end()]);
        base::write_partitions(environment, graph, partitioning, directory, watch)
    }

    /// The constraints of every version from the newest one on, ascending.
    #[must_use]
    pub fn constraints(&self) -> Vec<Constraint> {
        self.current().constraints()
    }

    /// Adds a constraint; the check of the graph runs concurrently with transactions. `false` if it exists
    /// already. Transactions that are about to change the graph conflict and must be repeated.
    ///
    /// # Errors
    /// [`ErrorKind::Constraint`]: the graph violates it; the message names the first vertices that do.
    /// [`ErrorKind::Conflict`]: repeated collisions with other constraint changes or loads. As
    /// [`Transactions::begin`].
    ///
    /// # Cost
    /// See `constraint_scan`.
    pub fn add_constraint(self: &Arc<Self>, constraint: &Constraint) -> Result<bool> {
        self.change_constraints(&mut |has| (!has.contains(constraint)).then(|| has.push(constraint.clone())))
    }

    /// Removes a constraint; `false` if it does not exist.
    ///
    /// # Errors
    /// As [`Transactions::add_constraint`], without the violation.
    pub fn remove_constraint(self: &Arc<Self>, constraint: &Constraint) -> Result<bool> {
        self.change_constraints(&mut |has| {
            let at = has.iter().position(|one| one == constraint)?;
            has.remove(at);
            Some(())
        })
    }

    fn change_constraints(&self, change: &mut dyn FnMut(&mut Vec<Constraint>) -> Option<()>) -> Result<bool> {
        let begin = || {
            let (pre_read, now) = self.begin_parameters()?;
            Ok(self.head.registration(pre_read, now))
        };
        schema::change_constraints(&self.head, &self.writer, &begin, change)
    }

    /// The directory of the log and, unless the graph is over another base, of the graph; `None`: in memory.
    #[must_use]
    pub fn directory(&self) -> Option<&Path> {
        self.writer.directory()
    }

    /// The status of storage. Cheap: it reads no file and takes no lock that is held during I/O.
    #[must_use]
    pub fn storage_status(&self) -> StorageStatus {
        let now = self.writer.environment().clock.now();
        let newest = self.head.newest();
        let version = &newest.version;
        let log = self.writer.open_log().and_then(CommitLog::status);
        let (active_transactions, oldest) = self.head.active_since();
        let history = self.background.checkpointer().history();
        let (slowed_commits, slowed_time) = self.background.slowed();
        StorageStatus {
            refusal: (self.writer.failure())
                .or_else(|| self.writer.open_log()?.check().err())
                .or_else(|| self.background.refusal()),
            log_bytes: self.writer.log_bytes(),
            log_files: log.as_ref().map_or(0, |log| log.files),
            log_syncs: log.as_ref().map_or(0, |log| log.syncs),
            log_sync_time: log.as_ref().map_or(Duration::ZERO, |log| log.sync_time),
            delta_cells: version.delta_cells(),
            delta_bytes: version.delta_bytes(),
            terms: version.terms().vertex_end() + version.terms().literal_end(),
            new_terms: new_term_count(version),
            active_transactions,
            oldest_transaction: oldest.map(|began| now.saturating_sub(began)),
            transactions: self.counts(),
            conflicts: self.committer.conflicts().read(),
            slowed_commits,
            slowed_time,
            checkpoints: CheckpointStatus {
                running: self.background.is_merging(),
                completed: history.completed,
                failed: history.failed,
                failed_in_row: history.failed_in_row,
                age: now.saturating_sub(history.last),
                took: history.took,
                last_failure: history.last_failure.map(|(error, at)| (error, now.saturating_sub(at))),
                next_try: history.next_try.map(|at| at.saturating_sub(now)).filter(|time| !time.is_zero()),
            },
        }
    }
}
