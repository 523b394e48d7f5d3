//! Merging changes into new data, at a server that has the whole graph and follows a log or leads it.
//!
//! # Shape
//! A thread looks from time to time whether the changes over the data are many ([`Merging::is_due`]). It then
//! writes the graph of all applied records as later data (`generation.rs`), and hands the new start to the
//! thread that follows the log ([`Merged`]), which goes on from there. Each server does so on its own, since
//! terms and edges keep their numbers: the records behind fit the data of every server. Where servers have
//! different partitions, they do it together (`merging_together.rs`).
//! # Cost
//! The whole graph is written, about once for each time that the changes reach an eighth of it. Disk: twice
//! the graph meanwhile, and the log since the merge before. A leader reads its log again for it, and has the
//! changes in memory twice meanwhile.

use crate::fetch::{Places, Wanted, fetch};
use crate::generation::{self, Generation, remove_older};
use crate::merge::{Merge, Merged, Place};
use crate::merging_together::Together;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use vervet::Start;
use vervet_model::{Error, ErrorKind, Result, ThreadLimits, Watch, lock};

/// Changes over the data that are merged: this share of its statements, …
const CHANGES_SHARE: u64 = 8;
/// … and this many at least.
const CHANGES_MIN: u64 = 1 << 16;

/// Bytes of log that are merged, since their number bounds the time of a start…
const LOG_BYTES_MAX: u64 = 128 << 20;
/// … or this many, if they are more than the data, roughly.
const LOG_BYTES_MIN: u64 = 16 << 20;
/// About the bytes of a statement.
const STATEMENT_BYTES: u64 = 16;

/// Time between two looks.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Time after a failure until the next attempt.
const RETRY_INTERVAL: Duration = Duration::from_secs(60);

/// See the header of this file.
pub(crate) struct Data {
    place: Place,
    /// Position and statements of the newest data; locked while others are made.
    newest: Mutex<(u64, u64)>,
    /// The same position, for who does not wait.
    position: AtomicU64,
    /// The last copy that failed, and when.
    failure: Mutex<Option<(Error, Instant)>>,
    /// Where servers have different partitions.
    together: Option<Together>,
}

/// Longest wait for a server to go on from the data before, …
const PENDING_MAX: Duration = Duration::from_secs(60);
/// … at which this thread looks after this time.
const PENDING_INTERVAL: Duration = Duration::from_millis(5);

/// Time after a copy that failed until the next attempt.
const FETCH_INTERVAL: Duration = Duration::from_secs(10);

impl Data {
    pub(crate) fn new(place: Place, generation: &Generation) -> Self {
        let position = generation.checkpoint.position;
        let newest = Mutex::new((position, generation.files.statement_count()));
        let position = AtomicU64::new(position);
        Self { place, newest, position, failure: Mutex::default(), together: None }
    }

    /// The data of a server that has some of the partitions.
    pub(crate) fn together(place: Place, generation: &Generation, together: Together) -> Self {
        Self { together: Some(together), ..Self::new(place, generation) }
    }

    /// Position of the data that this server reads.
    pub(crate) fn position(&self) -> u64 {
        match &self.together {
            Some(together) => together.places().reads.0,
            None => self.position.load(Ordering::Relaxed),
        }
    }

    /// What this server has and reads, if others have other partitions.
    pub(crate) fn places(&self) -> Option<Places> {
        self.together.as_ref().map(Together::places)
    }

    /// The data of this server, if others have other partitions of them.
    pub(crate) fn as_together(&self) -> Option<&Together> {
        self.together.as_ref()
    }

    /// Whether other servers read data that this one does not have.
    pub(crate) fn is_behind(&self) -> bool {
        self.together.as_ref().is_some_and(Together::is_behind)
    }

    fn take_note(&self, newest: &mut (u64, u64), generation: &Generation) {
        *newest = (generation.checkpoint.position, generation.files.statement_count());
        self.position.store(newest.0, Ordering::Relaxed);
    }

    /// Copies data of another server with the changes up to `least` at least.
    pub(crate) fn fetch(&self, least: u64) -> Result<Start> {
        let Place { environment, directory, origin, members } = &self.place;
        if let Some((error, at)) = &*lock(&self.failure)
            && at.elapsed() < FETCH_INTERVAL
        {
            return Err(error.clone());
        }
        if let Some(together) = &self.together {
            return together.fetch(least).inspect_err(|error| {
                *lock(&self.failure) = Some((error.clone(), Instant::now()));
            });
        }
        let mut newest = lock(&self.newest);
        let report = |server: &str, bytes: u64| {
            tracing::info!(
                target: "vervet",
                "this server lacks entries that the log does not have any more; it copies {bytes} bytes of data from \
                 server {server}"
            );
        };
        let map = members.map();
        let partitions = &map.own()?.partitions;
        let (least, count) = ((least, 0), map.partitions().len());
        let wanted = Wanted { origin: *origin, least, is_whole: false, partitions, count };
        let generation = fetch(environment, directory, wanted, &members.parts(), &report);
        let generation =
            generation.inspect_err(|error| *lock(&self.failure) = Some((error.clone(), Instant::now())))?;
        self.take_note(&mut newest, &generation);
        remove_older(environment, directory, newest.0);
        generation.whole()
    }

    /// Merges the changes of `of` into new data; `false`: there are none.
    fn merge(&self, of: &dyn Merge, cancelled: &AtomicBool) -> Result<bool> {
        if let Some(together) = &self.together {
            return together.merge(of, cancelled);
        }
        let Place { environment, directory, origin, .. } = &self.place;
        let begun = Instant::now();
        while of.is_pending() {
            // Its changes are over the data before.
            if cancelled.load(Ordering::Relaxed) || begun.elapsed() > PENDING_MAX {
                let what = "this server has not gone on yet from the data that were merged last";
                return Err(Error::new(ErrorKind::Unavailable, what).with_hint("try again later"));
            }
            std::thread::sleep(PENDING_INTERVAL);
        }
        let (applied, before, start) = {
            let mut newest = lock(&self.newest);
            let applied = of.applied()?;
            if applied.position <= newest.0 {
                return Ok(false);
            }
            let begun = Instant::now();
            let watch = Watch::new("merge").cancelled_by(cancelled);
            let generation = generation::write(environment, directory, (*origin, false), &applied, &watch)?;
            let before = newest.0;
            self.take_note(&mut newest, &generation);
            remove_older(environment, directory, newest.0);
            let (statements, seconds) = (newest.1, begun.elapsed().as_secs_f64());
            tracing::info!(
                target: "vervet",
                "merged {} changes into {statements} statements in {seconds:.1} s",
                applied.change_count()
            );
            (applied, before, generation.whole()?)
        };
        of.go_on_from(Merged { start, applied: Some(applied) }, before)?;
        Ok(true)
    }

    /// Merges if changes are many.
    fn look(&self, of: &dyn Merge, cancelled: &AtomicBool) -> Result<()> {
        let is_due = || self.is_due(of.changes());
        match &self.together {
            Some(together) => together.step(of, is_due, cancelled),
            None if is_due() => self.merge(of, cancelled).map(drop),
            None => Ok(()),
        }
    }

    /// Whether changes are to be merged.
    fn is_due(&self, (changes, log_bytes): (u64, u64)) -> bool {
        let statements = self.together.as_ref().map_or_else(|| lock(&self.newest).1, Together::statements);
        let log_bytes_max = (statements * STATEMENT_BYTES).clamp(LOG_BYTES_MIN, LOG_BYTES_MAX);
        changes >= (statements / CHANGES_SHARE).max(CHANGES_MIN) || changes > 0 && log_bytes >= log_bytes_max
    }
}

/// The thread that merges. Dropping it ends it.
pub(crate) struct Merging {
    data: Arc<Data>,
    of: Arc<dyn Merge>,
    stop: Arc<Stop>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Stop {
    flag: Arc<AtomicBool>,
    is_stopped: Mutex<bool>,
    stopped: Condvar,
}

impl Stop {
    /// Waits; `true`: the thread has to end.
    fn wait(&self, time: Duration) -> bool {
        let is_stopped = lock(&self.is_stopped);
        let waited = self.stopped.wait_timeout_while(is_stopped, time, |stopped| !*stopped);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

impl Merging {
    pub(crate) fn start(data: Arc<Data>, of: Arc<dyn Merge>) -> Result<Self> {
        let stop = Arc::<Stop>::default();
        let (thread_data, thread_of, thread_stop) = (Arc::clone(&data), Arc::clone(&of), Arc::clone(&stop));
        let run = move || {
            let cancelled = Some(Arc::clone(&thread_stop.flag));
            let _limits = ThreadLimits { cancelled, ..ThreadLimits::default() }.enter();
            let mut wait = LOOK_INTERVAL;
            while !thread_stop.wait(wait) {
                wait = LOOK_INTERVAL;
                if let Err(error) = thread_data.look(&*thread_of, &thread_stop.flag)
                    && !thread_stop.flag.load(Ordering::Relaxed)
                {
                    tracing::warn!(target: "vervet", "changes were not merged into the data: {error}");
                    let is_away = error.kind() == ErrorKind::Unavailable;
                    wait = if is_away { FETCH_INTERVAL } else { RETRY_INTERVAL };
                }
            }
        };
        let thread = std::thread::Builder::new().name("merge".to_owned()).spawn(run);
        let failed = |error| Error::io("start a thread that merges changes", &error);
        let thread = Some(thread.map_err(failed)?);
        Ok(Self { data, of, stop, thread })
    }

    /// Merges now; `false`: there was nothing to merge.
    pub(crate) fn merge(&self) -> Result<bool> {
        self.data.merge(&*self.of, &self.stop.flag)
    }
}

impl std::fmt::Debug for Merging {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Merging").field("position", &self.data.position()).finish_non_exhaustive()
    }
}

impl Drop for Merging {
    fn drop(&mut self) {
        // Relaxed: the flag carries no data.
        self.stop.flag.store(true, Ordering::Relaxed);
        *lock(&self.stop.is_stopped) = true;
        self.stop.stopped.notify_all();
        if let Some(thread) = self.thread.take() {
            _ = thread.join();
        }
    }
}
