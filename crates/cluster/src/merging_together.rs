//! Merging changes into new data where servers have different partitions of the graph.
//!
//! # Shape
//! The server that leads copies the partitions that its data lack, applies the log to them, and writes the
//! graph as new data with all partitions. The others see that it has them, and copy their own partitions of
//! them. When every server has its share, each goes over to the new data on its own, and answers the others
//! for the data before as long as one of them reads those.
//! # Why this is right
//! Terms and edges keep their numbers, so the records behind fit the new data. A request says the build that
//! it is for, so nobody reads two builds as one graph.
//! # Failures
//! A server that is away does not hold up the others, if they have its partitions. When it is back, it lacks
//! the data that the others read: it copies them, and is not ready before.
//! # Cost
//! The whole graph is written by one server, which has it twice on its disk meanwhile. The others copy their
//! share.

use crate::fetch::{self, Wanted};
use crate::generation::{self, Generation, remove_older};
use crate::map::ClusterMap;
use crate::merge::{Merge, Merged, Place};
use crate::peer_part::PeerPart;
use crate::serving::{self, Serving};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use vervet::{Database, Environment, Start};
use vervet_model::{Error, ErrorKind, Result, ThreadLimits, Watch, lock};
use vervet_partition::Remote;
use vervet_peer::Protocol;

/// How long to wait for what another server has.
const ASK_TIME: Duration = Duration::from_millis(500);

/// How long this server answers for older data after the last server that reads them was seen.
const RETIRE_TIME: Duration = Duration::from_secs(60);

/// Time until a leader tries again to go over to new data.
const AGAIN_TIME: Duration = Duration::from_secs(60);

/// Data that this server has opened.
#[derive(Clone, Debug)]
struct Held {
    position: u64,
    build: u64,
    /// Of the base over them.
    number: u64,
    start: Start,
    statements: u64,
}

/// What another server has: the positions of its newest data, and of those that it reads. `None`: it does not
/// answer.
type Other = (String, Option<(u64, u64)>);

/// See the header of this file.
pub(crate) struct Together {
    place: Place,
    serving: Arc<Serving>,
    database: Database,
    /// The newest last.
    held: Mutex<Vec<Held>>,
    /// Locked while data are copied or written.
    work: Mutex<()>,
    /// Since when no server that answers reads older data than this one.
    settled: Mutex<Option<Instant>>,
    /// The position of the data that this server went over to last, as the leader, and when.
    went_over: Mutex<Option<(u64, Instant)>>,
    /// Others read data that this server does not have.
    is_behind: AtomicBool,
}

impl Together {
    /// `start`: that of the data of `generation`, which the database reads.
    pub(crate) fn new(
        place: Place,
        serving: Arc<Serving>,
        database: Database,
        generation: &Generation,
        start: Start,
    ) -> Self {
        let held = Mutex::new(vec![Held::new(generation, start)]);
        Self {
            place,
            serving,
            database,
            held,
            work: Mutex::default(),
            settled: Mutex::default(),
            went_over: Mutex::default(),
            is_behind: AtomicBool::new(false),
        }
    }

    fn newest(&self) -> Result<Held> {
        lock(&self.held).last().cloned().ok_or_else(|| Error::internal("this server has no data"))
    }

    /// Statements of the newest data.
    pub(crate) fn statements(&self) -> u64 {
        lock(&self.held).last().map_or(0, |newest| newest.statements)
    }

    /// Position of the data that this server reads.
    pub(crate) fn reads(&self) -> u64 {
        let number = self.database.base_number();
        let held = lock(&self.held);
        held.iter().rev().find(|held| held.number == number).or(held.first()).map_or(0, |held| held.position)
    }

    /// Whether other servers read data that this one does not have.
    pub(crate) fn is_behind(&self) -> bool {
        self.is_behind.load(Ordering::Relaxed)
    }

    /// Copies data of other servers with the changes up to `least` at least, and answers for them from then
    /// on.
    pub(crate) fn fetch(&self, least: u64) -> Result<Start> {
        let _work = lock(&self.work);
        let newest = self.newest()?;
        if newest.position >= least {
            return Ok(newest.start);
        }
        let Place { environment, directory, origin, members } = &self.place;
        let map = members.map();
        let count = map.partitions().len();
        let wanted = Wanted { origin: *origin, least, partitions: &map.own()?.partitions, count };
        let report = |server: &str, bytes: u64| {
            tracing::info!(
                target: "vervet",
                "this server copies its share of merged data, {bytes} bytes, from server {server} and others"
            );
        };
        let generation = fetch::fetch(environment, directory, wanted, &members.parts(), &report)?;
        self.take(&generation)
    }

    /// Opens new data, and answers for them from then on.
    fn take(&self, generation: &Generation) -> Result<Start> {
        let members = &self.place.members;
        let opened = serving::open(generation, &members.map(), members)?;
        let start = generation.start(Arc::clone(&opened.reading));
        self.serving.add(&opened);
        lock(&self.held).push(Held::new(generation, start.clone()));
        Ok(start)
    }

    /// Takes the next step of those in the header of this file. `is_due`: whether changes are to be merged.
    pub(crate) fn step(
        &self,
        of: &dyn Merge,
        is_due: impl FnOnce() -> bool,
        cancelled: &AtomicBool,
    ) -> Result<()> {
        if self.earlier_version().is_some() {
            return Ok(());
        }
        let others = self.ask_others();
        let (newest, reads) = (self.newest()?, self.reads());
        let answers = || others.iter().filter_map(|(_, places)| *places);
        self.is_behind.store(answers().any(|(_, reads)| reads > newest.position), Ordering::Relaxed);
        if let Some(later) = answers().map(|(has, _)| has).filter(|has| *has > newest.position).max() {
            return self.fetch(later).map(drop);
        }
        if of.start_position() != newest.position {
            return self.go_over(of, &newest, reads, &others);
        }
        // A follower that has begun again still shows the data before.
        if reads == newest.position && answers().all(|(_, reads)| reads >= newest.position) {
            self.retire(&newest, &others);
            if of.leads() && is_due() {
                self.merge(of, cancelled)?;
            }
        } else {
            *lock(&self.settled) = None;
        }
        Ok(())
    }

    /// A server of an earlier version, whose requests do not say their build.
    fn earlier_version(&self) -> Option<String> {
        let parts = self.place.members.parts();
        let is_earlier = |part: &&Arc<PeerPart>| {
            part.peer().protocol().is_some_and(|protocol| protocol < Protocol::BUILDS)
        };
        parts.iter().find(is_earlier).map(|part| part.name().to_owned())
    }

    fn ask_others(&self) -> Vec<Other> {
        let ask = |source: &Arc<PeerPart>| {
            let deadline = Some((Instant::now() + ASK_TIME, ASK_TIME));
            let _limits = ThreadLimits { deadline, ..ThreadLimits::current() }.enter();
            (source.name().to_owned(), fetch::places(source).ok())
        };
        self.place.members.parts().iter().map(ask).collect()
    }

    /// Goes over to the newest data, if all servers have them.
    fn go_over(&self, of: &dyn Merge, newest: &Held, reads: u64, others: &[Other]) -> Result<()> {
        let has_failed = lock(&self.went_over)
            .is_some_and(|(position, at)| position == newest.position && at.elapsed() < AGAIN_TIME);
        if of.is_pending()
            || of.leads() && has_failed
            || !is_everywhere(newest, &self.place.members.map(), others)
        {
            return Ok(());
        }
        if of.leads() {
            *lock(&self.went_over) = Some((newest.position, Instant::now()));
        }
        of.go_on_from(Merged { start: newest.start.clone(), applied: None }, reads)
    }

    /// Forgets data that no server has read for a while.
    fn retire(&self, newest: &Held, others: &[Other]) {
        let since = *lock(&self.settled).get_or_insert_with(Instant::now);
        let has_older = lock(&self.held).len() > 1;
        if has_older && since.elapsed() > RETIRE_TIME {
            self.serving.keep_only(newest.build);
            lock(&self.held).retain(|held| held.build == newest.build);
        }
        let Place { environment, directory, members, .. } = &self.place;
        let is_at_all =
            others.iter().all(|(_, places)| places.is_some_and(|(has, _)| has >= newest.position));
        if !has_older && is_at_all {
            remove_older(environment, directory, newest.position);
            remove_foreign(environment, directory, newest.position, &members.map());
        }
    }

    /// Writes the graph of all committed entries as new data, at the server that leads; `false`: there is
    /// nothing to merge.
    pub(crate) fn merge(&self, of: &dyn Merge, cancelled: &AtomicBool) -> Result<bool> {
        let _work = lock(&self.work);
        if !of.leads() {
            let what = "the server that leads merges changes into the data of all";
            return Err(Error::new(ErrorKind::Unsupported, what)
                .with_hint("`vervet cluster status` says which server leads"));
        }
        if let Some(server) = self.earlier_version() {
            let what =
                format!("server {server} has an earlier version, which does not know merged partitions");
            return Err(Error::new(ErrorKind::Unavailable, what).with_hint("upgrade all servers first"));
        }
        let Place { environment, directory, origin, members } = &self.place;
        let begun = Instant::now();
        let before = Generation::open(environment, directory)?;
        if before.checkpoint.position != of.start_position() {
            let what = "the servers have not gone on yet from the data that were merged last";
            return Err(Error::new(ErrorKind::Unavailable, what).with_hint("try again later"));
        }
        fetch::complete(environment, &before, &before.all_partitions(), &members.parts())?;
        let applied = of.applied_over(before.whole()?, None)?;
        if applied.position <= before.checkpoint.position {
            return Ok(false);
        }
        let watch = Watch::new("merge").cancelled_by(cancelled);
        let generation = generation::write(environment, directory, *origin, &applied, &watch)?;
        self.take(&generation)?;
        tracing::info!(
            target: "vervet",
            "merged {} changes into {} statements in {:.1} s; the other servers copy their share",
            applied.change_count(),
            generation.files.statement_count(),
            begun.elapsed().as_secs_f64()
        );
        Ok(true)
    }
}

impl Held {
    fn new(generation: &Generation, start: Start) -> Self {
        Self {
            position: generation.checkpoint.position,
            build: generation.files.build(),
            number: start.base.number(),
            start,
            statements: generation.files.statement_count(),
        }
    }
}

/// Whether each partition of the data is at a server that answers, and each server that answers has its
/// share.
fn is_everywhere(newest: &Held, map: &ClusterMap, others: &[Other]) -> bool {
    let has = |name: &str| {
        let other = others.iter().find(|(other, _)| other == name);
        other.map_or(Some(true), |(_, places)| places.map(|(has, _)| has >= newest.position))
    };
    let all_have = map.servers.iter().all(|entry| has(&entry.name) != Some(false));
    all_have && map.partitions_without(|entry| has(&entry.name) != Some(true)).is_empty()
}

/// Removes the files of partitions of other servers.
fn remove_foreign(environment: &Environment, directory: &Path, position: u64, map: &ClusterMap) {
    let path = generation::data_path(directory, position);
    let (Ok(own), Ok(generation)) = (map.own(), Generation::open_at(environment, path)) else { return };
    let names = generation.file_names();
    for partition in generation.all_partitions() {
        if !own.partitions.contains(&partition) {
            // The next time, if not now.
            _ = environment.files.remove_file(&generation.path.join(&names[partition + 1]));
        }
    }
}

impl std::fmt::Debug for Together {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Together").field("held", &lock(&self.held)).finish_non_exhaustive()
    }
}
