//! Loading by all servers of a cluster together: each reads its own files and builds its own partitions.
//!
//! # Shape
//! Every server runs [`load`] with its share of the files. They are numbered by name; the first one has the
//! terms of all.
//!
//! | step | each server | the first server |
//! | --- | --- | --- |
//! | join | says what data it has | checks that the map is the same, and that there is no graph yet |
//! | read | parses its files with terms and edges numbered from 0 | |
//! | terms | sends its terms, gets their numbers | numbers them, server after server |
//! | counts | tells its counts | chooses the runs of partitions, the numbers of edges |
//! | exchange | sends halves of statements to the servers of their partitions | writes the dictionary, too |
//! | agree | surveys its partitions | plans splits and classes |
//! | write | writes its partitions | makes the catalog of all |
//! | publish | stores the catalog | |
//!
//! # Invariants
//! 1. Shares that are read by servers 0 to n give the same graph, with the same numbers, as their files in
//!    this order give in one load.
//! 2. All or nothing: servers answer each other only with the same build, and no catalog is written before
//!    the files of all servers are durable.
//! # Cost
//! A server has in memory the terms of its share and, within the cap, statements; the first one the terms of
//! all. A triple is sent twice, 8 bytes and a few more each time.
//! # Not here
//! Adding to a cluster that has a graph. Orders of entries.

mod exchange;
mod files;
mod link;
mod requests;
mod state;

pub(crate) use files::adopt;

use crate::beginning::mark_new;
use crate::generation::{DATA, Generation, newest_path};
use crate::identity::open_identity;
use crate::map::ClusterMap;
use exchange::{Numbers, Router, ShareCounts, edge_names};
use files::{PartialData, fetch_dictionary, write_record};
use link::Link;
use rustc_hash::FxHashMap;
use state::{Blob, Round};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use vervet::{LoadOptions, LoadReport, Share, Source, read_share};
use vervet_codec::{Reader, write_u64};
use vervet_env::{Bytes, Environment};
use vervet_model::vocab::{EDGE_ID, RDF_TYPE};
use vervet_model::{Error, ErrorKind, Id, Partitioning, Result, ThreadLimits, Watch};
use vervet_partition::{CatalogPiece, PartitionDirectory};
use vervet_store::{
    BuildOptions, BuildPlan, FileRecord, GraphCounts, NewDictionary, PartBuilder, SetPlan, SetSurvey, Survey,
    write_dictionary,
};

/// The default cap on the memory of statements, and of the terms of a share.
const MEMORY_DEFAULT_BYTES: u64 = 4 << 30;

/// Steps of a [`Watch`] for each statement: it is sent, and its halves are sorted and encoded.
const STATEMENT_STEPS: u64 = 5;

/// Options of [`load`].
pub struct ClusterLoadOptions<'a> {
    /// How files are read; without `orders`. A load is cancelled by `cancelled` of these options, not by that
    /// of the reading.
    pub reading: LoadOptions<'a>,
    /// Stops the load at all servers soon after it becomes `true`.
    pub cancelled: Option<&'static AtomicBool>,
    /// The cap on memory in bytes: half of it for the share, half for partitions. By default 4 GiB.
    pub memory_bytes: Option<u64>,
    /// Files and randomness.
    pub environment: Environment,
    /// Consecutive numbers of terms in one partition, as a power of two: see
    /// [`InitOptions::run_bits`](crate::InitOptions::run_bits). That of the first server counts.
    pub run_bits: Option<u32>,
    /// Whether the data that servers have are replaced; that of the first server counts.
    pub replace: bool,
    /// How long to wait for the other servers to begin.
    pub wait: Duration,
    /// Called once, from another thread, when the load stops here or at another server: a program may end if
    /// [`load`] does not return soon, since it waits for input.
    pub on_stop: Option<fn(&Error)>,
    /// Told what happens.
    pub report: &'a (dyn Fn(LoadEvent<'_>) + Sync),
}

/// What happens in a load.
#[derive(Clone, Copy, Debug)]
pub enum LoadEvent<'a> {
    /// These servers have not begun.
    WaitingFor(&'a str),
    /// A step has begun.
    Step(&'static str),
    /// Steps done, and all steps, of building.
    Built(u64, u64),
}

/// What [`load`] has done.
#[derive(Clone, Debug)]
pub struct ClusterLoadReport {
    /// What this server has read.
    pub share: LoadReport,
    /// Statements of the whole graph.
    pub statements: u64,
    /// Size of the files of this server.
    pub size_bytes: u64,
    /// Bytes sent to other servers.
    pub bytes_sent: u64,
    /// The steps and their times.
    pub steps: Vec<(&'static str, Duration)>,
}

/// Loads the share of the server in `directory`, while all other servers of its cluster load theirs.
/// `skipped`: see [`vervet::Database::load_with_report`].
///
/// # Errors
/// Input: servers have data already, and are not to replace them; a file is wrong, or what is said of an edge
/// at one server is about an edge of another. Unavailable: another server does not begin, is gone, or has
/// stopped. Unsupported: orders. As [`crate::Cluster::open`]. Nothing has changed then.
pub fn load(
    directory: &Path,
    sources: Vec<Source>,
    options: &ClusterLoadOptions<'_>,
    skipped: &mut dyn Write,
) -> Result<ClusterLoadReport> {
    if !options.reading.orders.is_empty() {
        return Err(Error::new(ErrorKind::Unsupported, "orders of entries in a load of a cluster")
            .with_hint(
                "load a database with them, and make the cluster from it (vervet cluster init --from)",
            ));
    }
    let map = ClusterMap::read(directory)?;
    let own = map.own()?;
    if own.partitions.is_empty() {
        return Err(Error::new(ErrorKind::Input, format!("server {} has no partition", own.name))
            .with_hint("correct the lists of partitions in cluster.toml"));
    }
    if map.fewest_replicas() > 1 {
        return Err(Error::new(ErrorKind::Unsupported, "a load by servers that have replicas of partitions")
            .with_hint(
                "load with one replica, and have more afterwards: vervet cluster rebalance DIR --replicas N",
            ));
    }
    let partitions: usize = map.servers.iter().map(|entry| entry.partitions.len()).sum();
    let partitioning = Partitioning::new(partitions)
        .ok_or_else(|| Error::new(ErrorKind::Input, "the number of partitions must be a power of two"))?;
    let mut placed: Vec<usize> = map.servers.iter().flat_map(|entry| entry.partitions.clone()).collect();
    placed.sort_unstable();
    if !placed.iter().copied().eq(0..partitions) {
        return Err(Error::new(ErrorKind::Input, "a partition is at two servers or at none")
            .with_hint("correct the lists of partitions in cluster.toml"));
    }
    let identity = Arc::new(open_identity(directory, &map)?);
    adopt(&options.environment, directory)?;
    // Dropped behind the connections, whose threads may write to it.
    let mut partial = PartialData::create(directory)?;
    let link = Link::start(&map, identity, (options.cancelled, options.on_stop))?;
    let stop = Arc::clone(&link.state.stop);
    let limits = ThreadLimits { cancelled: Some(Arc::clone(&stop)), ..ThreadLimits::default() }.enter();
    let report_building = |done, total| (options.report)(LoadEvent::Built(done, total));
    let watch = Watch::new("load").cancelled_by(&stop).reporting_to(&report_building);
    let load = Load { link: &link, map: &map, directory, options, watch: &watch, stop: &stop };
    let loaded = load.run(sources, partitioning, &mut partial, skipped);
    drop(limits);
    loaded.map_err(|error| {
        if error.kind() == ErrorKind::Unavailable {
            // A server may have ended because a third one has stopped: that one tells all.
            link.state.wait_for_stop(STOP_WAIT);
        }
        link.state.stop(error.clone());
        if !link.state.was_told() {
            link.stop_others(&link.state.reason(error.clone()));
        }
        let error = link.state.reason(error);
        match error.kind() {
            ErrorKind::Unavailable if partial.is_kept() => error.with_hint(
                "the files of this server are complete: start the servers; if they say that their data differ, \
                 load again with --replace",
            ),
            ErrorKind::Unavailable => error
                .with_hint("nothing has changed; remove the cause, and start the load at all servers again"),
            _ => error,
        }
    })
}

/// A load at one server.
struct Load<'a> {
    link: &'a Link,
    map: &'a ClusterMap,
    directory: &'a Path,
    options: &'a ClusterLoadOptions<'a>,
    watch: &'a Watch<'a>,
    stop: &'a AtomicBool,
}

/// Steps and their times.
struct Steps<'a> {
    done: Vec<(&'static str, Duration)>,
    current: (&'static str, Instant),
    report: &'a (dyn Fn(LoadEvent<'_>) + Sync),
}

impl<'a> Steps<'a> {
    fn new(report: &'a (dyn Fn(LoadEvent<'_>) + Sync)) -> Self {
        Self { done: Vec::new(), current: ("join", Instant::now()), report }
    }

    fn begin(&mut self, name: &'static str) {
        self.done.push((self.current.0, self.current.1.elapsed()));
        self.current = (name, Instant::now());
        (self.report)(LoadEvent::Step(name));
    }

    fn finish(mut self) -> Vec<(&'static str, Duration)> {
        self.done.push((self.current.0, self.current.1.elapsed()));
        self.done
    }
}

/// What the first server has chosen for all.
struct Agreed {
    partitioning: Partitioning,
    /// The first number of the edges of each server, and the end.
    edges: Vec<u64>,
    /// Names of edges, with the servers that read them.
    names: FxHashMap<u64, usize>,
}

fn damaged(damaged: vervet_codec::Damaged) -> Error {
    Error::corrupt("a piece of another server", damaged.0)
}

fn bytes_of(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&mut bytes);
    bytes
}

impl Load<'_> {
    fn run(
        &self,
        sources: Vec<Source>,
        partitioning: Partitioning,
        partial: &mut PartialData,
        skipped: &mut dyn Write,
    ) -> Result<ClusterLoadReport> {
        let (link, watch, options) = (self.link, self.watch, self.options);
        let mut steps = Steps::new(options.report);
        let build = self.join()?;
        steps.begin("read");
        let memory_bytes = options.memory_bytes.unwrap_or(MEMORY_DEFAULT_BYTES) / 2;
        let reading = LoadOptions {
            cancelled: Some(self.stop),
            blank_scope: format!("{}{}s{}x", options.reading.blank_scope, letters(build), link.own),
            ..options.reading.clone()
        };
        let resources = (&options.environment, partial.path(), Some(memory_bytes));
        let Share { dictionary, statements, edges, report } =
            read_share(sources, &reading, resources, watch, skipped)?;
        watch.expect(STATEMENT_STEPS * statements.count());
        steps.begin("terms");
        let names = edge_names(&dictionary, &statements);
        let edge_id = dictionary.lookup_iri(EDGE_ID);
        // Only messages about names of edges need the terms of the share from here on.
        let (mut numbers, texts) = if link.is_first() {
            link.state.set_terms(dictionary);
            (Numbers::default(), None)
        } else {
            (Numbers::of(&dictionary, link)?, Some(dictionary))
        };
        let names = names.into_iter().map(|name| Ok(numbers.id(name)?.bits())).collect::<Result<_>>()?;
        let counts = ShareCounts { statements: statements.count(), edges, names };
        let agreed = self.agree(&counts, partitioning)?;
        numbers.edges = agreed.edges[link.own];
        let foreign: FxHashMap<u64, usize> = agreed
            .names
            .iter()
            .filter(|(_, server)| **server != link.own)
            .map(|(id, of)| (*id, *of))
            .collect();
        let texts = texts.filter(|_| !foreign.is_empty());
        let texts_of_first = match link.is_first() && !foreign.is_empty() {
            true => link.state.texts_of(&foreign)?,
            false => FxHashMap::default(),
        };
        steps.begin("exchange");
        let parts = PartBuilder::new(
            self.build_options(memory_bytes, partial.path()),
            agreed.partitioning,
            self.own_partitions(),
            &UNWATCHED,
        );
        link.state.set_parts(parts);
        let router = Router::new(link, agreed.partitioning, &numbers, (foreign, edge_id));
        let name = |id: Id| {
            let own = texts.as_ref().and_then(|texts| texts.find_text(id));
            let text = own.or_else(|| texts_of_first.get(&id.bits()).map(AsRef::as_ref));
            text.map_or_else(|| "a term".to_owned(), |text| format!("<{text}>"))
        };
        let edge_end = agreed.edges.last().copied().unwrap_or_default();
        let (counts, record) = std::thread::scope(|scope| {
            let dictionary =
                link.is_first().then(|| scope.spawn(|| self.write_dictionary(partial.path(), edge_end)));
            router.send_all(statements, &name, watch).inspect_err(|error| link.state.stop(error.clone()))?;
            match dictionary {
                Some(thread) => {
                    thread.join().map_err(|_| Error::internal("the thread of the dictionary has panicked"))?
                }
                None => fetch_dictionary(link, &options.environment, partial.path()),
            }
        })?;
        drop((numbers, texts));
        link.gather(Round::Routed, Vec::new(), |_| Ok(Vec::new()))?;
        steps.begin("sort");
        let mut parts = link.state.take_parts()?.watched_by(watch).sort()?;
        steps.begin("agree");
        let survey = bytes_of(|out| parts.survey(counts.type_predicate).write(out));
        let plan = link.gather(Round::Survey, survey, |surveys| {
            let surveys = surveys.iter().map(|bytes| Survey::read(bytes).map_err(damaged));
            let plan = BuildPlan::new(surveys.collect::<Result<_>>()?, counts, agreed.partitioning)?;
            Ok(bytes_of(|out| plan.write(out)))
        })?;
        parts.apply_plan(BuildPlan::read(&plan).map_err(damaged)?)?;
        if let Some(survey) = parts.set_survey()? {
            let plan = link.gather(Round::Sets, bytes_of(|out| survey.write(out)), |surveys| {
                let surveys = surveys.iter().map(|bytes| SetSurvey::read(bytes).map_err(damaged));
                let plan = BuildPlan::read(&plan).map_err(damaged)?;
                let plan = SetPlan::new(&plan, surveys.collect::<Result<_>>()?, watch)?;
                Ok(bytes_of(|out| plan.write(out)))
            })?;
            parts.apply_sets(SetPlan::read(&plan).map_err(damaged)?);
        }
        link.state.publish(Blob::Classes, Bytes::from(parts.own_classes()));
        for (server, (_, partitions)) in link.servers.iter().enumerate().filter(|(at, _)| *at != link.own) {
            let mut classes = Vec::new();
            link.read(server, Blob::Classes, &mut |chunk| {
                classes.extend_from_slice(chunk);
                Ok(())
            })?;
            parts.set_classes(partitions, &classes)?;
        }
        steps.begin("write");
        let written = parts.write(&record, partial.path(), build)?;
        let size_bytes = written.files.iter().map(|(_, record)| record.length).sum::<u64>() + record.length;
        let piece = CatalogPiece::of(&options.environment, partial.path(), (build, &record), written)?;
        steps.begin("publish");
        let catalog = link.gather(Round::Catalog, bytes_of(|out| piece.write(out)), |pieces| {
            let pieces = pieces.iter().map(|bytes| CatalogPiece::read(bytes).map_err(damaged));
            let pieces = pieces.collect::<Result<_>>()?;
            PartitionDirectory::catalog_of(pieces, agreed.partitioning, build, record.clone())
        })?;
        PartitionDirectory::store_catalog(&options.environment, partial.path(), &catalog)?;
        // From here on nothing needs space.
        link.gather(Round::Stored, Vec::new(), |_| Ok(Vec::new()))?;
        // Before the data are complete: it has never had a log for them.
        if self.map.voters.contains(&self.map.server) {
            mark_new(self.directory, build)?;
        }
        partial.publish(&options.environment)?;
        self.leave()?;
        let data = PartitionDirectory::open(&options.environment, &self.directory.join(DATA))?;
        Ok(ClusterLoadReport {
            share: report,
            statements: data.statement_count(),
            size_bytes,
            bytes_sent: link.bytes_sent(),
            steps: steps.finish(),
        })
    }

    fn own_partitions(&self) -> Vec<usize> {
        let mut own = self.link.servers[self.link.own].1.clone();
        own.sort_unstable();
        own
    }

    fn build_options(&self, memory_bytes: u64, directory: &Path) -> BuildOptions {
        BuildOptions {
            threads: self.options.reading.threads.max(1),
            memory_bytes,
            environment: self.options.environment.clone(),
            temp_dir: Some(directory.to_owned()),
            log: None,
            orders: Vec::new(),
        }
    }

    /// Waits for all servers; returns the number of the build, the same at all.
    fn join(&self) -> Result<u64> {
        let link = self.link;
        let report = self.options.report;
        let environment = &self.options.environment;
        let newest = newest_path(environment, self.directory)?;
        let existing = match PartitionDirectory::is_published(environment, &newest) {
            true => Generation::open(environment, self.directory).map_or(1, |newest| newest.origin),
            false => 0,
        };
        if link.is_first() {
            self.wait_for_all()?;
        } else {
            let first = &link.servers[0].0;
            let waiting =
                |error: &Error| report(LoadEvent::WaitingFor(&format!("{first} ({})", error.message())));
            link.wait_for_first(self.options.wait, &waiting)?;
        }
        let piece = bytes_of(|out| write_u64(existing, out));
        let answer = link.gather(Round::Join, piece, |pieces| {
            let builds = pieces.iter().map(|bytes| Reader::new(bytes).u64().map_err(damaged));
            self.check_replaceable(&builds.collect::<Result<Vec<u64>>>()?)?;
            let build = self.options.environment.random.next_u64();
            let build = build.map_err(|error| Error::io("draw a random number", &error))?.max(2);
            // Before another server can know it.
            link.state.set_build(build);
            Ok(bytes_of(|out| write_u64(build, out)))
        })?;
        link.joined();
        let build = Reader::new(&answer).u64().map_err(damaged)?;
        link.state.set_build(build);
        Ok(build)
    }

    /// Checks that no graph would be lost. `builds`: of the data of each server, or 0.
    fn check_replaceable(&self, builds: &[u64]) -> Result<()> {
        let with_data = builds.iter().zip(&self.link.servers).filter(|(build, _)| **build != 0);
        let names: Vec<&str> = with_data.map(|(_, (name, _))| name.as_str()).collect();
        if names.is_empty() || self.options.replace {
            return Ok(());
        }
        if builds.iter().all(|build| *build == builds[0]) {
            let what = format!("cluster {} has a graph already", self.map.name);
            return Err(Error::new(ErrorKind::Input, what).with_hint(
                "make a new cluster (vervet cluster init), or replace the graph (--replace at the first server)",
            ));
        }
        let what = format!("servers {} have data that the others do not have", names.join(", "));
        Err(Error::new(ErrorKind::Input, what).with_hint(
            "a load was interrupted at its end, or files were lost; --replace at the first server replaces the data",
        ))
    }

    /// At the first server: waits until the others have joined.
    fn wait_for_all(&self) -> Result<()> {
        let (link, begun) = (self.link, Instant::now());
        let mut reported = Vec::new();
        loop {
            let missing = link.state.missing(Round::Join, link.count());
            if missing.is_empty() {
                return Ok(());
            }
            let names: Vec<&str> = missing.iter().map(|server| link.servers[*server].0.as_str()).collect();
            let names = names.join(", ");
            if begun.elapsed() >= self.options.wait {
                return Err(Error::new(ErrorKind::Unavailable, format!("servers have not begun: {names}"))
                    .with_hint("start `vervet cluster load` in the directory of each server"));
            }
            if missing != reported {
                (self.options.report)(LoadEvent::WaitingFor(&names));
                reported = missing;
            }
            link.state.wait_a_moment()?;
        }
    }

    /// Tells the counts of the share, and gets what the first server chooses.
    fn agree(&self, counts: &ShareCounts, partitioning: Partitioning) -> Result<Agreed> {
        let answer = self.link.gather(Round::Counts, bytes_of(|out| counts.write(out)), |pieces| {
            let read = |bytes: &Vec<u8>| ShareCounts::read(&mut Reader::new(bytes)).map_err(damaged);
            let all = pieces.iter().map(read).collect::<Result<Vec<_>>>()?;
            let statements = all.iter().fold(0_u64, |sum, one| sum.saturating_add(one.statements));
            let runs = match self.options.run_bits {
                Some(run_bits) => partitioning.with_runs(run_bits),
                None => Some(partitioning.for_vertices(statements / 4)),
            };
            let runs = runs.ok_or_else(|| {
                Error::new(ErrorKind::Input, "a run of numbers in one partition has at most 4,096")
            })?;
            let mut names: FxHashMap<u64, usize> = FxHashMap::default();
            for (server, one) in all.iter().enumerate() {
                for name in &one.names {
                    if let Some(other) = names.insert(*name, server).filter(|other| *other != server) {
                        return Err(self.named_twice(other, server));
                    }
                }
            }
            Ok(bytes_of(|out| {
                write_u64(u64::from(runs.run_bits()), out);
                all.iter().for_each(|one| one.write(out));
            }))
        })?;
        let mut reader = Reader::new(&answer);
        let run_bits = reader.u64().map_err(damaged)?;
        let partitioning = u32::try_from(run_bits).ok().and_then(|bits| partitioning.with_runs(bits));
        let partitioning =
            partitioning.ok_or_else(|| Error::corrupt("an answer of another server", "runs"))?;
        let mut agreed = Agreed { partitioning, edges: vec![0], names: FxHashMap::default() };
        let mut end = 0_u64;
        for server in 0..self.link.count() {
            let one = ShareCounts::read(&mut reader).map_err(damaged)?;
            end = end.saturating_add(one.edges);
            agreed.edges.push(end);
            agreed.names.extend(one.names.into_iter().map(|name| (name, server)));
        }
        Ok(agreed)
    }

    fn named_twice(&self, one: usize, other: usize) -> Error {
        let name = |server: usize| self.link.servers[server].0.as_str();
        let what = format!("files of servers {} and {} give edges the same name", name(one), name(other));
        Error::new(ErrorKind::Unsupported, what)
            .with_hint("load an edge and the statements about it at one server")
    }

    /// At the first server: writes the dictionary of all terms, and publishes it.
    fn write_dictionary(&self, directory: &Path, edges: u64) -> Result<(GraphCounts, FileRecord)> {
        let environment = &self.options.environment;
        let write = || {
            let builder = self.link.state.take_terms(self.link.count())?;
            let type_predicate = builder.lookup_iri(RDF_TYPE).unwrap_or(Id::UNBOUND);
            let counts = GraphCounts {
                vertices: builder.vertex_count(),
                literals: builder.literal_count(),
                type_predicate,
                edges,
            };
            self.watch.expect(builder.finish_steps());
            let image = builder.finish_watched(self.options.reading.threads.max(1), self.watch)?;
            let record = write_dictionary(NewDictionary::from(image), environment, directory, self.watch)?;
            let path = directory.join(&record.name);
            let file = environment.files.map(&path);
            let file = file.map_err(|error| Error::io(format_args!("read {}", path.display()), &error))?;
            Ok::<_, Error>((counts, record, file))
        };
        // Other servers wait for it, and this thread has no one who looks at it before its end.
        let (counts, record, file) = write().inspect_err(|error| self.link.state.stop(error.clone()))?;
        self.link.state.publish(Blob::Dictionary, file);
        self.link.state.publish(Blob::DictionaryRecord, Bytes::from(write_record(&counts, &record)));
        Ok((counts, record))
    }

    /// Waits until all servers have published; the first one until they know it.
    fn leave(&self) -> Result<()> {
        let link = self.link;
        let left = link.gather(Round::Published, Vec::new(), |_| Ok(Vec::new()));
        // From here on the others may end.
        link.leave();
        left?;
        let _limits = ThreadLimits {
            deadline: Instant::now().checked_add(LEAVE_TIMEOUT).map(|end| (end, LEAVE_TIMEOUT)),
            ..ThreadLimits::default()
        }
        .enter();
        // One that does not say so, or is not heard, has published all the same.
        if link.is_first() {
            _ = link.state.collect(Round::Left, link.count());
        } else {
            _ = link.ask(0, requests::piece((Round::Left, link.own), (0, 0), &[]));
        }
        Ok(())
    }
}

/// How long a server that has lost another one waits for the reason.
const STOP_WAIT: Duration = Duration::from_secs(5);

/// How long the first server waits for the others at the end.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(5);

/// Of builders that receive: their steps are not counted.
static UNWATCHED: Watch<'static> = Watch::new("load");

/// 64 bits as letters, for the labels of blank nodes.
fn letters(bits: u64) -> String {
    (0..u64::BITS).step_by(4).map(|shift| char::from(b'a' + (bits >> shift & 15) as u8)).collect()
}
