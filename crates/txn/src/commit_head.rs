//! The head of the commit order: visible versions, recent commits, active transactions.
//!
//! # Shape
//! Two pointers to versions: the newest validated one, and the newest durable one; readers take the latter.
//! Behind a lock ([`HeadGuard`]): the newest version again, with the recently committed transactions.
//! # Invariants
//! 1. Versions are published in the order of their timestamps, and only when the log holds their commits as
//!    safely as the durability level promises: no reader sees what a power failure would undo.
//! 2. An active transaction is registered before any commit that it must be validated against can be dropped.
//! 3. The lock of the head is taken before that of the active transactions, and none is taken after the
//!    latter.
//! # Cost
//! A begin: one short lock.
//! # Source
//! DESIGN §4; G-Tran (arXiv 2105.04449). Difference: versions are values that share structure, in place of
//! stamps in rows (see `vervet_delta`).

use crate::mutation::Timestamp;
use crate::published::Published;
use crate::recent_commits::{CommitScope, RecentCommits};
use crate::sync::{ArcSwap, Mutex, MutexGuard, lock};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use vervet_model::{Error, ErrorKind, Result};

/// Maximum number of concurrent changes that are left to the lock of the head…
const LOCKED_CHANGES_MAX: u64 = 1 << 10;
/// … unless this many rounds without it have left more: commits are faster then.
const ROUNDS_MAX: usize = 8;
/// Polling interval of writers that wait for a load.
const LOAD_POLL_INTERVAL: Duration = Duration::from_millis(5);

/// See the header of this file.
#[derive(Debug)]
pub(crate) struct CommitHead {
    /// Validated, possibly not durable yet.
    newest: ArcSwap<Published>,
    /// Durable. Shared with the log, which advances it.
    visible: Arc<ArcSwap<Published>>,
    state: Mutex<HeadState>,
    /// Active transactions by begin timestamp: their number, and the start time of the first.
    active: Mutex<BTreeMap<Timestamp, (usize, Duration)>>,
    /// Maximum wait of a writer for a bulk load.
    load_wait: Duration,
}

/// The state that commits change.
#[derive(Debug)]
struct HeadState {
    published: Arc<Published>,
    recent_commits: RecentCommits,
    /// A bulk load is building a replacement of this graph: no transaction commits.
    is_loading: bool,
}

impl CommitHead {
    /// The head of a graph whose last commit is `published`, which is durable.
    pub(crate) fn new(published: Arc<Published>, load_wait: Duration) -> Self {
        let recent_commits = RecentCommits::new(published.timestamp);
        Self {
            newest: ArcSwap::new(Arc::clone(&published)),
            visible: Arc::new(ArcSwap::new(Arc::clone(&published))),
            state: Mutex::new(HeadState { published, recent_commits, is_loading: false }),
            active: Mutex::default(),
            load_wait,
        }
    }

    /// The newest durable version.
    pub(crate) fn visible(&self) -> Arc<Published> {
        self.visible.load_full()
    }

    /// The newest validated version.
    pub(crate) fn newest(&self) -> Arc<Published> {
        self.newest.load_full()
    }

    /// Calls `read` with the newest validated version, without a reference count of its own.
    pub(crate) fn with_newest<T>(&self, read: impl FnOnce(&Published) -> T) -> T {
        read(&self.newest.load())
    }

    /// Registers an active transaction, which begins at `now` with the newest version (`pre_read`) or the
    /// newest durable one. It must be unregistered by [`CommitHead::unregister`].
    pub(crate) fn register(&self, pre_read: bool, now: Duration) -> Arc<Published> {
        let mut active = lock(&self.active);
        let began = if pre_read { self.newest.load_full() } else { self.visible.load_full() };
        active.entry(began.timestamp).or_insert((0, now)).0 += 1;
        began
    }

    /// Unregisters an active transaction with this begin timestamp.
    pub(crate) fn unregister(&self, began: Timestamp) {
        let mut active = lock(&self.active);
        let (count, _) = active.get_mut(&began).expect("a transaction that ends has begun");
        *count -= 1;
        if *count == 0 {
            active.remove(&began);
        }
    }

    /// [`CommitHead::register`]; dropping the result unregisters.
    pub(crate) fn registration(&self, pre_read: bool, now: Duration) -> Registration<'_> {
        Registration { head: self, began: self.register(pre_read, now) }
    }

    /// Lower bound on the begin of all active and future transactions.
    fn oldest_active(&self) -> Timestamp {
        let active = lock(&self.active);
        let visible = self.visible.load().timestamp;
        active.first_key_value().map_or(visible, |(oldest, _)| visible.min(*oldest))
    }

    /// Number of active transactions, and the start time of the oldest.
    pub(crate) fn active_since(&self) -> (u64, Option<Duration>) {
        let active = lock(&self.active);
        let count: usize = active.values().map(|(count, _)| count).sum();
        (count as u64, active.values().map(|(_, began)| *began).min())
    }

    /// Locks the head.
    pub(crate) fn lock(&self) -> HeadGuard<'_> {
        HeadGuard { head: self, state: lock(&self.state) }
    }

    /// Locks the head once no bulk load is running.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`]: a load took longer than [`crate::Options::load_wait`].
    pub(crate) fn lock_for_writing(&self) -> Result<HeadGuard<'_>> {
        self.wait_for_load(|| Some(self.lock()).filter(|head| !head.is_loading()))
    }

    /// Polls `attempt` until it returns a value.
    ///
    /// # Errors
    /// As [`CommitHead::lock_for_writing`].
    pub(crate) fn wait_for_load<T>(&self, mut attempt: impl FnMut() -> Option<T>) -> Result<T> {
        let mut begin = None;
        loop {
            if let Some(found) = attempt() {
                return Ok(found);
            }
            if begin.get_or_insert_with(Instant::now).elapsed() >= self.load_wait {
                let wait = self.load_wait;
                let message = format!("a bulk load is running, and did not end within {wait:?}");
                return Err(Error::new(ErrorKind::Unavailable, message)
                    .with_hint("nothing was changed; try again when it has ended"));
            }
            std::thread::sleep(LOAD_POLL_INTERVAL);
        }
    }

    /// Makes writers wait, without holding the lock of the head, until the result is dropped.
    pub(crate) fn begin_load(&self) -> LoadGuard<'_> {
        let mut head = self.lock();
        assert!(!head.state.is_loading, "one load runs at a time");
        head.state.is_loading = true;
        LoadGuard(self)
    }

    /// Brings a consumer of commits up to date without the lock: `step` gets two versions in commit order,
    /// and handles the commits after the first, up to the second. Returns the version that was reached. At
    /// most [`LOCKED_CHANGES_MAX`] changes are left for the lock of the head, unless [`ROUNDS_MAX`] rounds
    /// have left more.
    ///
    /// # Errors
    /// Those of `step`.
    pub(crate) fn catch_up<E>(
        &self,
        from: &Arc<Published>,
        mut step: impl FnMut(&Published, &Published) -> std::result::Result<(), E>,
    ) -> std::result::Result<Arc<Published>, E> {
        let mut reached = Arc::clone(from);
        for _ in 0..ROUNDS_MAX {
            // The newest version may precede `from`: a version can become visible before it is the newest
            // for all.
            let is_near =
                |newest: &Published| newest.changes.saturating_sub(reached.changes) <= LOCKED_CHANGES_MAX;
            if self.with_newest(is_near) {
                break;
            }
            let newest = self.newest();
            step(&reached, &newest)?;
            reached = newest;
        }
        Ok(reached)
    }

    /// The commits after the first timestamp, up to the second, ascending; `None` if some of them have been
    /// dropped.
    pub(crate) fn commits_between(
        &self,
        after: Timestamp,
        last: Timestamp,
    ) -> Option<Vec<(Timestamp, CommitScope)>> {
        let head = self.lock();
        let commits = head.commits_after(after)?.take_while(|(at, _)| *at <= last);
        Some(commits.map(|(at, scope)| (at, scope.clone())).collect())
    }

    /// The callback that makes a version visible once it is durable.
    pub(crate) fn publish_visible(&self, published: &Arc<Published>) -> vervet_log::Publish {
        let (visible, published) = (Arc::clone(&self.visible), Arc::clone(published));
        Box::new(move |_| visible.store(published))
    }
}

/// The locked head.
#[derive(Debug)]
pub(crate) struct HeadGuard<'a> {
    head: &'a CommitHead,
    state: MutexGuard<'a, HeadState>,
}

impl HeadGuard<'_> {
    /// The newest validated version.
    pub(crate) fn published(&self) -> &Arc<Published> {
        &self.state.published
    }

    /// Whether a bulk load is running, so that no transaction may commit.
    pub(crate) fn is_loading(&self) -> bool {
        self.state.is_loading
    }

    /// Commits after this one, ascending; `None` if some of them have been dropped.
    pub(crate) fn commits_after(
        &self,
        begin: Timestamp,
    ) -> Option<impl Iterator<Item = (Timestamp, &CommitScope)>> {
        self.state.recent_commits.after(begin)
    }

    /// Enters a commit; timestamps ascend.
    pub(crate) fn push(&mut self, timestamp: Timestamp, scope: CommitScope) {
        self.state.recent_commits.push(timestamp, scope);
    }

    /// Removes the commits after this one: they were not applied.
    pub(crate) fn undo_after(&mut self, last: Timestamp) {
        self.state.recent_commits.undo_after(last);
    }

    /// Drops recent commits that no active transaction needs. Follows [`HeadGuard::advance`]: before it, a
    /// transaction could still begin with an older version than the visible one.
    pub(crate) fn forget(&mut self) {
        self.state.recent_commits.forget(self.head.oldest_active());
    }

    /// Makes a later, validated version the newest one, with which writers begin.
    pub(crate) fn advance(&mut self, published: Arc<Published>) {
        let before = self.head.newest.load().timestamp;
        assert!(published.timestamp > before, "commit {} behind {before}", published.timestamp);
        self.head.newest.store(Arc::clone(&published));
        self.state.published = published;
    }

    /// Makes a durable version the newest and the visible one. No commit waits for the log.
    pub(crate) fn replace(&mut self, published: Arc<Published>) {
        self.head.newest.store(Arc::clone(&published));
        self.head.visible.store(Arc::clone(&published));
        self.state.published = published;
    }

    /// Restarts from a recovered state. This process has not written yet.
    pub(crate) fn restart(&mut self, published: Arc<Published>) {
        self.state.recent_commits = RecentCommits::new(published.timestamp);
        self.replace(published);
    }
}

/// An active transaction; dropping this unregisters it.
#[derive(Debug)]
pub(crate) struct Registration<'a> {
    head: &'a CommitHead,
    began: Arc<Published>,
}

impl Registration<'_> {
    /// The version that the transaction began with.
    pub(crate) fn began(&self) -> &Arc<Published> {
        &self.began
    }
}

impl Drop for Registration<'_> {
    fn drop(&mut self) {
        self.head.unregister(self.began.timestamp);
    }
}

/// While it exists, committing transactions wait without holding the head.
#[derive(Debug)]
pub(crate) struct LoadGuard<'a>(&'a CommitHead);

impl Drop for LoadGuard<'_> {
    fn drop(&mut self) {
        self.0.lock().state.is_loading = false;
    }
}
