//! Merging changes into new data, and moving partitions, where servers have different partitions of the
//! graph.
//!
//! # Merging
//! The server that leads copies the partitions that its data lack, applies the log to them, and writes the
//! graph as new data with all partitions. The others see that it has them, and copy their own partitions of
//! them. When every server has its share, each goes over to the new data on its own, and answers the others
//! for the data before as long as one of them reads those.
//! # Moving
//! A server that is to have more partitions copies them, and answers for them ([`Together::gain`]). The log
//! then says where partitions are from now on (`moving.rs`). Each server opens its data again, with the parts
//! of the graph where they are now, and goes over to them as to new data. One that has given partitions away
//! answers for them as long as another one may read them there.
//! # Why this is right
//! Terms and edges keep their numbers, so the records behind fit the new data. A request says the build that
//! it is for, so no server reads two builds as one graph.
//! # Failures
//! A server that is away does not hold up the others, if they have its partitions. When it is back, it lacks
//! the data that the others read: it copies them, and is not ready before.
//! Data of which a partition is at no server any more are given up ([`Together::give_up`]): those that have
//! them go on from the latest ones that are whole, and the log has all that these lack. Data of which the
//! servers that answer lack a partition are not copied.
//! # Cost
//! The whole graph is written by one server, which has it twice on its disk meanwhile. The others copy their
//! share.

use crate::fetch::{self, DataPlace, Places, Wanted};
use crate::generation::{self, Generation, remove_older};
use crate::held::Held;
use crate::holdings::Holdings;
use crate::map::{ClusterMap, ServerEntry};
use crate::members;
use crate::merge::{Merge, Merged, Place};
use crate::peer_part::PeerPart;
use crate::serving::{self, Serving};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
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

/// Time in which all servers get their share of new data; else the leader writes others.
const STALLED_TIME: Duration = Duration::from_secs(300);

/// How long a partition of data must be at no server until this one gives the data up.
const LOST_TIME: Duration = Duration::from_secs(3);

/// How long servers are asked at each look which data they have, while they differ, …
const ASK_OFTEN_TIME: Duration = Duration::from_secs(60);
/// … and the time between two looks afterwards.
const ASK_INTERVAL: Duration = Duration::from_secs(5);

/// In place of what a server has that is late with its answer.
const LATE: DataPlace = (0, 0);

/// What another server has: [`LATE`] if it is that. `None`: it is unreachable.
type Other = (String, Option<Places>);

/// How long a server has partitions for which it was asked, and which are not its own yet.
const GAIN_TIME: Duration = Duration::from_secs(600);

/// Partitions that this server is to get.
struct Gain {
    partitions: BTreeSet<usize>,
    /// When it was asked last.
    asked: Instant,
    /// Why the last attempt to copy them has failed.
    failure: Option<Error>,
}

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
    /// Number of the base that this server went over to last, as the leader, and when.
    went_over: Mutex<Option<(u64, Instant)>>,
    /// Since when this server does not go over to newer data.
    stalled: Mutex<Option<Instant>>,
    /// Since when a partition of these data, the newest, is at no server.
    lost: Mutex<Option<(DataPlace, Instant)>>,
    /// Since when servers have different data, and when this one asked them last which.
    asked: Mutex<Option<(Instant, Instant)>>,
    /// Others read data that this server does not read, or may do so.
    is_behind: AtomicBool,
    gain: Mutex<Option<Gain>>,
}

impl Together {
    /// `held`: what the database reads. Later ones are to be taken ([`Together::take`]).
    pub(crate) fn new(place: Place, serving: Arc<Serving>, database: Database, held: Held) -> Self {
        Self {
            place,
            serving,
            database,
            held: Mutex::new(vec![held]),
            work: Mutex::default(),
            settled: Mutex::default(),
            went_over: Mutex::default(),
            stalled: Mutex::default(),
            lost: Mutex::default(),
            asked: Mutex::default(),
            is_behind: AtomicBool::new(true),
            gain: Mutex::default(),
        }
    }

    fn newest(&self) -> Result<Held> {
        lock(&self.held).last().cloned().ok_or_else(|| Error::internal("this server has no data"))
    }

    /// Waits until no data are copied or written; `None`: there are newer ones than these since then.
    fn begin_work(&self, newest: &Held) -> Result<Option<MutexGuard<'_, ()>>> {
        let work = lock(&self.work);
        let is_newest = self.newest()?.number == newest.number;
        Ok(Some(work).filter(|_| is_newest))
    }

    /// What this server has, and reads.
    pub(crate) fn places(&self) -> Places {
        // Before the map.
        let index = self.place.members.index();
        let map = self.place.members.map();
        let Some(reads) = self.reads() else { return Places { has: (0, 0), reads: (0, 0), index: 0 } };
        let has = lock(&self.held).last().map_or((0, 0), |newest| newest.place);
        let index = match map.voters.contains(&map.server) {
            true if reads.is_of(&map) => index,
            true => reads.index,
            // Partitions do not move where one does not vote.
            false => u64::MAX,
        };
        Places { has, reads: reads.place, index }
    }

    /// Statements of the newest data.
    pub(crate) fn statements(&self) -> u64 {
        lock(&self.held).last().map_or(0, |newest| newest.statements)
    }

    /// The data that this server reads.
    fn reads(&self) -> Option<Held> {
        let number = self.database.base_number();
        let held = lock(&self.held);
        held.iter().rev().find(|held| held.number == number).or(held.first()).cloned()
    }

    /// The partitions that this server is to have the files of.
    fn wanted(&self, map: &ClusterMap) -> Result<BTreeSet<usize>> {
        let mut gain = lock(&self.gain);
        if gain.as_ref().is_some_and(|gain| gain.asked.elapsed() > GAIN_TIME) {
            *gain = None;
        }
        let own = map.own()?.partitions.iter();
        Ok(own.chain(gain.iter().flat_map(|gain| &gain.partitions)).copied().collect())
    }

    /// Asks this server to copy partitions, and to have them until it is not asked any more; `true`: it has
    /// them, and answers for them.
    ///
    /// # Errors
    /// The last attempt to copy them has failed so. The next one follows.
    pub(crate) fn gain(&self, partitions: &BTreeSet<usize>) -> Result<bool> {
        let mut gain = lock(&self.gain);
        let failure = gain.take().filter(|gain| gain.partitions == *partitions).and_then(|gain| gain.failure);
        *gain = Some(Gain { partitions: partitions.clone(), asked: Instant::now(), failure: None });
        match failure {
            Some(failure) => Err(failure),
            // Those that this server goes over to may be given up.
            None => {
                let (newest, reads) = (self.newest()?, self.reads());
                let has_gone_over = reads.is_some_and(|reads| reads.place == newest.place);
                Ok(newest.here.is_superset(partitions) && has_gone_over)
            }
        }
    }

    /// Whether other servers read later data than this one, and may not answer for those that it reads.
    pub(crate) fn is_behind(&self) -> bool {
        self.is_behind.load(Ordering::Relaxed)
    }

    /// Copies data of other servers with the changes up to `least` at least, and answers for them from then
    /// on.
    pub(crate) fn fetch(&self, least: u64) -> Result<Start> {
        let _work = lock(&self.work);
        let newest = self.newest()?;
        if newest.place.0 >= least {
            return Ok(newest.start);
        }
        self.copy((least, 0), false)
    }

    /// Copies these data of other servers, or later ones. `is_whole`: only data of which the servers that
    /// answer have all partitions.
    fn copy(&self, least: DataPlace, is_whole: bool) -> Result<Start> {
        let Place { environment, directory, origin, members } = &self.place;
        let map = members.map();
        let partitions: Vec<usize> = self.wanted(&map)?.into_iter().collect();
        let count = map.partitions().len();
        let wanted = Wanted { origin: *origin, least, is_whole, partitions: &partitions, count };
        let report = |server: &str, bytes: u64| {
            tracing::info!(
                target: "vervet",
                "this server copies its share of merged data, {bytes} bytes, from server {server} and others"
            );
        };
        let generation = fetch::fetch(environment, directory, wanted, &members.parts(), &report)?;
        self.take(&generation)
    }

    /// Opens later data, and answers for them from then on.
    pub(crate) fn take(&self, generation: &Generation) -> Result<Start> {
        (*lock(&self.settled), *lock(&self.stalled)) = (None, None);
        let members = &self.place.members;
        // Before the map.
        let index = members.index();
        let map = members.map();
        let here = generation.present(&self.place.environment, &self.wanted(&map)?);
        let opened = serving::open(generation, &here, &map, members)?;
        let start = generation.start(Arc::clone(&opened.reading));
        self.serving.add(&opened);
        lock(&self.held).push(Held::new(generation, start.clone(), here, (&map, index)));
        Ok(start)
    }

    /// Copies partitions that this server is to have, and opens its data again if it has others now, or
    /// others have.
    fn adapt(&self) -> Result<()> {
        let Place { environment, directory, members, .. } = &self.place;
        let (newest, map) = (self.newest()?, members.map());
        let wanted = self.wanted(&map)?;
        if newest.here == wanted && newest.is_of(&map) {
            return Ok(());
        }
        let Some(_work) = self.begin_work(&newest)? else { return Ok(()) };
        let path = generation::data_path(environment, directory, newest.place.0);
        let generation = Generation::open_at(environment, path)?;
        if generation.place() != newest.place {
            return Ok(());
        }
        let lacking: Vec<usize> = wanted.difference(&newest.here).copied().collect();
        let copied = match lacking.as_slice() {
            [] => Ok(()),
            lacking => fetch::complete(environment, &generation, lacking, &members.parts()),
        };
        if let Err(error) = &copied
            && let Some(gain) = &mut *lock(&self.gain)
        {
            gain.failure = Some(error.clone());
        }
        if generation.present(environment, &wanted) != newest.here || !newest.is_of(&map) {
            self.take(&generation)?;
        }
        copied
    }

    /// Takes the next step of those in the header of this file. `is_due`: whether changes are to be merged.
    pub(crate) fn step(
        &self,
        of: &dyn Merge,
        is_due: impl FnOnce() -> bool,
        cancelled: &AtomicBool,
    ) -> Result<()> {
        if self.earlier_version().is_some() {
            self.is_behind.store(false, Ordering::Relaxed);
            return Ok(());
        }
        // Data that are not replaced are as good as before.
        let adapted = self.adapt();
        let others = self.ask_others();
        let (newest, own) = (self.newest()?, self.places());
        let answers = || others.iter().filter_map(|(_, places)| *places);
        let is_behind = |was_behind: bool| {
            let latest = answers().map(|places| places.reads).max().unwrap_or_default();
            let moved = answers().map(|places| places.index).filter(|index| *index < u64::MAX).max();
            latest > newest.place || was_behind && (latest > own.reads || moved > Some(own.index))
        };
        self.is_behind.store(is_behind(self.is_behind()), Ordering::Relaxed);
        let goes_over = of.start_number() != newest.number;
        let mut told = answers().map(|places| places.has).filter(|has| *has != LATE);
        let differ = adapted.is_err() || goes_over || told.any(|has| has != newest.place);
        if self.is_to_wait(differ) {
            return adapted;
        }
        let holdings = if differ {
            let Place { environment, directory, members, .. } = &self.place;
            Some(Holdings::ask(environment, directory, members)?)
        } else {
            None
        };
        if self.give_up(of, &newest, holdings.as_ref())? {
            return Ok(());
        }
        let is_later = |has: &DataPlace| {
            *has > newest.place && holdings.as_ref().is_none_or(|holdings| holdings.lost(*has).is_none())
        };
        if let Some(later) = answers().map(|places| places.has).filter(is_later).max() {
            let whole = holdings.as_ref().and_then(|holdings| holdings.latest_whole(None, None));
            let whole = whole.filter(|whole| *whole > newest.place);
            // Where others read them already, they can ask this server for its share.
            let is_read = answers().any(|places| places.reads == later);
            let copied = match whole.or(is_read.then_some(later)) {
                Some(least) => {
                    let Some(_work) = self.begin_work(&newest)? else { return Ok(()) };
                    self.copy(least, whole.is_some()).map(drop)
                }
                None => Err(not_whole(later)),
            };
            return match copied {
                Err(_) if of.leads() && self.is_stalled() && is_due() => self.merge(of, cancelled).map(drop),
                copied => copied,
            };
        }
        adapted?;
        if goes_over {
            if !is_everywhere(&newest, &self.place.members.map(), &others, holdings.as_ref()) {
                let is_stalled = self.is_stalled();
                return match of.leads() && is_stalled && is_due() {
                    true => self.merge(of, cancelled).map(drop),
                    false => Ok(()),
                };
            }
            return self.go_over(of, &newest, own.reads.0);
        }
        // A follower that has begun again still shows the data before.
        let is_over = self.reads().is_some_and(|reads| reads.number == newest.number);
        let has_gone_over = |places: Places| places.reads >= newest.place && places.index >= newest.index;
        if is_over && answers().all(has_gone_over) {
            self.retire(&newest, &others);
            if of.leads() && is_due() {
                self.merge(of, cancelled)?;
            }
        } else {
            *lock(&self.settled) = None;
        }
        Ok(())
    }

    /// Whether to look later what servers have, which differs for long: each asks all others.
    fn is_to_wait(&self, differ: bool) -> bool {
        let mut asked = lock(&self.asked);
        let now = Instant::now();
        let (since, last) = *asked.get_or_insert((now, now));
        let waits = differ && since.elapsed() > ASK_OFTEN_TIME && last.elapsed() < ASK_INTERVAL;
        if !waits {
            *asked = differ.then_some((since, now));
        }
        waits
    }

    /// Goes on from the latest data that are whole, in place of the newest ones, if a partition of those has
    /// been at no server for [`LOST_TIME`]. `holdings`: `None`: all servers have their shares. `true`: it
    /// does.
    fn give_up(&self, of: &dyn Merge, newest: &Held, holdings: Option<&Holdings>) -> Result<bool> {
        let lost = holdings.and_then(|holdings| Some((holdings, holdings.lost(newest.place)?)));
        let since = {
            let mut since = lock(&self.lost);
            let before = since.filter(|(place, _)| *place == newest.place);
            *since = lost.map(|_| before.unwrap_or((newest.place, Instant::now())));
            since.map(|(_, since)| since)
        };
        let is_due = since.is_some_and(|since| since.elapsed() > LOST_TIME);
        let Some((holdings, partition)) = lost.filter(|_| is_due && !of.is_pending()) else {
            return Ok(false);
        };
        // The log has what they lack.
        let has_log = |place: &DataPlace| place.0 >= of.purged();
        let latest = holdings.latest_whole(None, None).filter(|latest| *latest < newest.place);
        let Some(place) = latest.filter(has_log) else {
            return Ok(false);
        };
        let Some(_work) = self.begin_work(newest)?.filter(|_| !of.is_pending()) else {
            return Ok(false);
        };
        tracing::warn!(
            target: "vervet",
            "partition {partition} of the data up to entry {} is at no server: this server gives them up, and \
             goes on from those up to entry {}",
            newest.place.0,
            place.0
        );
        let Place { environment, directory, members, .. } = &self.place;
        let open = |place: DataPlace| {
            let path = generation::data_path(environment, directory, place.0);
            Generation::open_at(environment, path).ok().filter(|opened| opened.place() == place)
        };
        match open(place) {
            Some(own) => {
                let wanted: Vec<usize> = self.wanted(&members.map())?.into_iter().collect();
                fetch::complete(environment, &own, &wanted, &members.parts())?;
                self.take(&own)?;
            }
            None => drop(self.copy(place, true)?),
        }
        // Else this server would begin with them at its next start.
        open(newest.place)
            .map_or(Ok(true), |lost| generation::discard(environment, &lost.path).map(|()| true))
    }

    /// Whether newer data have not become usable for long.
    fn is_stalled(&self) -> bool {
        lock(&self.stalled).get_or_insert_with(Instant::now).elapsed() > STALLED_TIME
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
        let ask = |other: &Arc<members::Other>| {
            let deadline = Some((Instant::now() + ASK_TIME, ASK_TIME));
            let _limits = ThreadLimits { deadline, ..ThreadLimits::current() }.enter();
            let late = Places { has: LATE, reads: LATE, index: 0 };
            let late = other.reachability.reason().is_none().then_some(late);
            (other.part.name().to_owned(), fetch::places(&other.part).ok().or(late))
        };
        self.place.members.others().iter().map(ask).collect()
    }

    /// Goes over to the newest data, which all servers have.
    fn go_over(&self, of: &dyn Merge, newest: &Held, reads: u64) -> Result<()> {
        let has_failed = lock(&self.went_over)
            .is_some_and(|(number, at)| number == newest.number && at.elapsed() < AGAIN_TIME);
        if of.is_pending() || of.leads() && has_failed {
            return Ok(());
        }
        let mut applied = None;
        if of.leads() {
            *lock(&self.went_over) = Some((newest.number, Instant::now()));
            let number = of.start_number();
            let before = lock(&self.held).iter().find(|held| held.number == number).cloned();
            let are_moved = before.as_ref().is_some_and(|held| !held.is_of(&self.place.members.map()));
            // Records up to earlier data are no changes over later ones.
            let before = before.filter(|before| before.place.0 <= newest.place.0);
            applied = match before.map(|held| of.applied_over(held.start, Some(newest.place.0))).transpose() {
                // Servers have left that had partitions of the data before.
                Err(error) if error.kind() == ErrorKind::Unavailable && are_moved => None,
                applied => applied?,
            };
        }
        of.go_on_from(Merged { start: newest.start.clone(), applied }, reads)
    }

    /// Forgets data that no server has read for a while.
    fn retire(&self, newest: &Held, others: &[Other]) {
        // Data are being copied or written: the next time.
        let Ok(_work) = self.work.try_lock() else { return };
        let since = *lock(&self.settled).get_or_insert_with(Instant::now);
        let has_older = lock(&self.held).len() > 1;
        if has_older && since.elapsed() > RETIRE_TIME {
            self.serving.keep_newest();
            lock(&self.held).retain(|held| held.number == newest.number);
        }
        let Place { environment, directory, members, .. } = &self.place;
        // A server that is away copies its share from those that have it when it is back.
        let map = members.map();
        if !has_older && is_everywhere(newest, &map, others, None) {
            remove_older(environment, directory, newest.place.0);
            remove_foreign(environment, directory, newest);
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
        // Those that this server goes on from, though there may be later ones that do not become usable.
        let number = of.start_number();
        let held = lock(&self.held).iter().find(|held| held.number == number).cloned();
        let held = held.ok_or_else(|| Error::internal("the data of this server are not known"))?;
        let before =
            Generation::open_at(environment, generation::data_path(environment, directory, held.place.0))?;
        let reads = self.reads().map(|reads| reads.number);
        if before.place() != held.place || of.is_pending() || reads != Some(held.number) {
            let what = "the servers have not gone on yet from the data that were merged last";
            return Err(Error::new(ErrorKind::Unavailable, what).with_hint("try again later"));
        }
        fetch::complete(environment, &before, &before.all_partitions(), &members.parts())?;
        let applied = of.applied_over(before.whole()?, None)?;
        if applied.position <= self.places().has.0 {
            return Ok(false);
        }
        if !of.leads() {
            return Err(Error::new(ErrorKind::Unavailable, "this server does not lead any more"));
        }
        let watch = Watch::new("merge").cancelled_by(cancelled);
        let generation = generation::write(environment, directory, (*origin, true), &applied, &watch)?;
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

/// Whether each partition of the data is at a server that answers, and each server that answers has its
/// share. `holdings`: `None`: those that have taken these data have their shares.
fn is_everywhere(newest: &Held, map: &ClusterMap, others: &[Other], holdings: Option<&Holdings>) -> bool {
    let has = |entry: &ServerEntry| {
        let Some((name, places)) = others.iter().find(|(other, _)| *other == entry.name) else {
            return Some(true);
        };
        let has_files =
            || holdings.is_none_or(|holdings| holdings.has(name, newest.place, &entry.partitions));
        places.map(|places| places.has >= newest.place && has_files())
    };
    let all_have = map.servers.iter().all(|entry| has(entry) != Some(false));
    all_have && map.partitions_without(|entry| has(entry) != Some(true)).is_empty()
}

/// Why later data of others are not copied yet.
fn not_whole((position, _): DataPlace) -> Error {
    let what =
        format!("the servers that answer do not have all partitions of the data up to entry {position}");
    Error::new(ErrorKind::Unavailable, what).with_hint("start those that do not answer")
}

/// Removes the files of partitions that this server does not read there.
fn remove_foreign(environment: &Environment, directory: &Path, newest: &Held) {
    let path = generation::data_path(environment, directory, newest.place.0);
    let Ok(generation) = Generation::open_at(environment, path) else { return };
    let names = generation.file_names();
    for partition in generation.all_partitions() {
        if !newest.here.contains(&partition) {
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
