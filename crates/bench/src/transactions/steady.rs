//! A long mixed load: growth of memory and disk use, and waiting times of readers.
//!
//! # Shape
//! A writing client replaces property values, adds edges and removes old ones, so that the graph soon has its
//! final size. A reading client runs light queries. Samples record the resident set, the files and the
//! longest read since the last sample. Checkpoints run as in production.

use super::graphs::{Data, StorageLocation, TemporaryDatabase};
use super::options::TransactionOptions;
use crate::measure::resident_bytes;
use crate::sections::{Section, SectionReport};
use crate::table::{count, figure};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use vervet::{Database, Direction, Durability, Literal, NamedNode, Vertex};
use vervet_generate::Random;
use vervet_model::{Error, Result};

const MIB: f64 = 1_048_576.0;
/// Edges that the writer has added and not yet removed.
const EDGES: u64 = 20_000;
const SAMPLES: usize = 30;
/// Shorter pauses are not worth a sleep.
const PACE_MIN: Duration = Duration::from_millis(1);

/// The content of a sample.
struct Sample {
    seconds: f64,
    updates: u64,
    resident: u64,
    disk: u64,
    longest_read_ms: f64,
    longest_commit_ms: f64,
}

/// Counters that clients and sampler share.
#[derive(Default)]
struct Progress {
    stop: AtomicBool,
    updates: AtomicU64,
    reads: AtomicU64,
    longest_read_ns: AtomicU64,
    longest_commit_ns: AtomicU64,
}

pub(super) fn run(data: &Data, options: &TransactionOptions, report: &mut SectionReport) -> Result<()> {
    let made = data.database(StorageLocation::Directory(Durability::None), |_| {})?;
    let vertices = data.vertices(&made.db)?;
    let progress = Progress::default();
    let begin = Instant::now();
    let samples = std::thread::scope(|scope| -> Result<Vec<Sample>> {
        let writer = scope.spawn(|| write(&made.db, &vertices, &progress, options.rate));
        let reader = scope.spawn(|| read(&made.db, &vertices, &progress, options.rate));
        let samples =
            sample(&made, options, &progress, begin, || writer.is_finished() || reader.is_finished());
        progress.stop.store(true, Ordering::Relaxed);
        for client in [writer, reader] {
            client.join().map_err(|_| Error::internal("a client of the benchmark panicked"))??;
        }
        samples
    })?;
    let mut section = Section::new(
        "Steady load",
        format!(
            "One client replaces values of a property, adds edges and removes those that were added {EDGES} \
             before, one statement or value in each transaction (level `none`); another reads the neighbours of \
             random vertices. The first sample is taken when the graph has its final size. {} reads.",
            count(progress.reads.load(Ordering::Relaxed))
        ),
        &["after s", "updates", "memory MiB", "disk MiB", "longest read ms", "longest commit ms"],
    );
    for sample in &samples {
        section.row(vec![
            figure(sample.seconds),
            count(sample.updates),
            figure(sample.resident as f64 / MIB),
            figure(sample.disk as f64 / MIB),
            figure(sample.longest_read_ms),
            figure(sample.longest_commit_ms),
        ]);
    }
    report.push(section);
    if let [first, .., last] = &samples[..] {
        let growth = last.resident as f64 / first.resident as f64;
        report.target(
            format!("memory after {} updates, times the start", count(last.updates)),
            growth,
            1.5,
            true,
        );
        let longest = samples.iter().map(|sample| sample.longest_read_ms).fold(0.0, f64::max);
        report.target("longest read, ms", longest, 50.0, true);
    }
    Ok(())
}

/// Takes samples until the updates are done or the time is up.
fn sample(
    made: &TemporaryDatabase,
    options: &TransactionOptions,
    progress: &Progress,
    begin: Instant,
    mut failed: impl FnMut() -> bool,
) -> Result<Vec<Sample>> {
    // By then nearly every vertex has its value, and every added edge replaces a removed one.
    let settled = 4 * EDGES;
    let mut samples: Vec<Sample> = Vec::new();
    let step = options.updates.saturating_sub(settled) / SAMPLES as u64;
    loop {
        let updates = progress.updates.load(Ordering::Relaxed);
        let is_last = updates >= options.updates.max(2 * settled) || failed();
        let is_due = match (options.steady_time, samples.last()) {
            (_, None) => updates >= settled.min(options.updates),
            (Some(time), Some(last)) => {
                begin.elapsed().as_secs_f64() >= last.seconds + time.as_secs_f64() / SAMPLES as f64
            }
            (None, Some(last)) => updates >= last.updates + step,
        };
        let is_last = match options.steady_time {
            Some(time) => begin.elapsed() >= time || failed(),
            None => is_last,
        };
        if is_due || is_last {
            let milliseconds = |longest: &AtomicU64| longest.swap(0, Ordering::Relaxed) as f64 / 1e6;
            samples.push(Sample {
                seconds: begin.elapsed().as_secs_f64(),
                updates,
                resident: resident_bytes()?,
                disk: made.disk_bytes()?,
                longest_read_ms: milliseconds(&progress.longest_read_ns),
                longest_commit_ms: milliseconds(&progress.longest_commit_ns),
            });
        }
        if is_last {
            return Ok(samples);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn write(db: &Database, vertices: &[NamedNode], progress: &Progress, rate: Option<f64>) -> Result<()> {
    let pace = Pace::new(rate);
    let (value, link) =
        (NamedNode::new_unchecked("urn:bench:value"), NamedNode::new_unchecked("urn:bench:link"));
    let graph = oxrdf::GraphNameRef::DefaultGraph;
    let edge = |number: u64| {
        let mut random = Random::new(number);
        let from = random.pick(vertices);
        (from, random.pick(vertices))
    };
    let mut values: Vec<Option<Literal>> = vec![None; vertices.len()];
    let mut random = Random::new(1);
    for number in 0.. {
        if progress.stop.load(Ordering::Relaxed) {
            break;
        }
        let begin = Instant::now();
        let mut transaction = db.begin()?;
        let round = number / 2;
        if number % 2 == 0 {
            let at = random.index(vertices.len());
            // Some of these are terms that are new to the dictionary.
            let new = match number % 20 {
                0 => Literal::from(format!("value number {number}")),
                _ => Literal::from(i64::from(random.below(u32::MAX))),
            };
            if let Some(old) = values[at].replace(new.clone()) {
                transaction.remove(oxrdf::QuadRef::new(&vertices[at], &value, &old, graph))?;
            }
            transaction.insert(oxrdf::QuadRef::new(&vertices[at], &value, &new, graph))?;
        } else if round % 2 == 0 || round / 2 < EDGES {
            let (from, to) = edge(round / 2);
            transaction.insert(oxrdf::QuadRef::new(from, &link, to, graph))?;
        } else {
            let (from, to) = edge(round / 2 - EDGES);
            transaction.remove(oxrdf::QuadRef::new(from, &link, to, graph))?;
        }
        transaction.commit()?;
        note(&progress.longest_commit_ns, begin);
        pace.wait(1 + progress.updates.fetch_add(1, Ordering::Relaxed));
    }
    Ok(())
}

fn read(db: &Database, vertices: &[NamedNode], progress: &Progress, rate: Option<f64>) -> Result<()> {
    let pace = Pace::new(rate);
    let mut random = Random::new(2);
    let link = "urn:bench:link";
    while !progress.stop.load(Ordering::Relaxed) {
        let vertex = random.pick(vertices);
        let begin = Instant::now();
        let snapshot = db.snapshot();
        let graph = snapshot.graph();
        let vertex: Option<Vertex> = graph.vertex(vertex.as_str())?;
        let vertex = vertex.ok_or_else(|| Error::internal("a vertex is gone"))?;
        for direction in Direction::BOTH {
            std::hint::black_box(graph.neighbours(vertex, link, direction)?);
        }
        std::hint::black_box(graph.property(vertex, "urn:bench:value")?);
        note(&progress.longest_read_ns, begin);
        pace.wait(1 + progress.reads.fetch_add(1, Ordering::Relaxed));
    }
    Ok(())
}

/// Limits the rate of a client.
struct Pace {
    begin: Instant,
    rate: Option<f64>,
}

impl Pace {
    fn new(rate: Option<f64>) -> Self {
        Self { begin: Instant::now(), rate }
    }

    /// Returns once `done` operations are due.
    fn wait(&self, done: u64) {
        let Some(rate) = self.rate else { return };
        let due = Duration::try_from_secs_f64(done as f64 / rate).unwrap_or(Duration::MAX);
        // A client that is behind, or only slightly ahead, does not sleep.
        if let Some(ahead) = due.checked_sub(self.begin.elapsed()).filter(|ahead| *ahead > PACE_MIN) {
            std::thread::sleep(ahead);
        }
    }
}

fn note(longest: &AtomicU64, begin: Instant) {
    let time = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
    longest.fetch_max(time, Ordering::Relaxed);
}
