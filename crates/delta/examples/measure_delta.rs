//! Benchmark of versions.
//!
//! Single and bulk insertion, with every version kept or replaced; reads of a segment whose delta is empty,
//! has other keys, or has the keys, compared with the store alone; memory.
//!
//! `cargo run --release -p vervet-delta --example measure_delta [writing|reading]`
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::error::Error;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use vervet_delta::Version;
use vervet_dictionary::{DictionaryBuilder, MutableDictionary};
use vervet_env::Environment;
use vervet_model::{Direction, Id, Statement};
use vervet_snapshot::{Cursor, EntryFilter, Expansion, Segment, Snapshot};
use vervet_store::{BuildOptions, Store, StoreBuilder, Target};
use vervet_testkit::Random;

/// The system's allocator with a count of allocated bytes.
struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);

#[expect(unsafe_code, reason = "an allocator that counts, for this program")]
// SAFETY: every call is passed to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const VERTICES: u64 = 200_000;
const PREDICATES: u64 = 16;

fn main() -> Result<(), Box<dyn Error>> {
    let mut dictionary = DictionaryBuilder::new();
    for number in 0..VERTICES {
        dictionary.intern_iri(&format!("http://example.org/{number}"))?;
    }
    let image = dictionary.finish()?;
    let base = build(&image, &[])?;
    let terms = Arc::new(MutableDictionary::new(base.vertex_count(), base.literal_count()));
    let empty = Version::new(base, Arc::clone(&terms));
    match std::env::args().nth(1).as_deref() {
        Some("writing") => writing(&empty)?,
        Some("reading") => reading(&image, &terms)?,
        _ => {
            writing(&empty)?;
            reading(&image, &terms)?;
        }
    }
    Ok(())
}

fn build(image: &[u8], triples: &[[Id; 3]]) -> Result<Arc<Store>, Box<dyn Error>> {
    let options = BuildOptions {
        threads: 1,
        memory_bytes: u64::MAX,
        environment: Environment::real(),
        temp_dir: None,
        log: None,
        orders: Vec::new(),
    };
    let mut builder = StoreBuilder::new(options);
    builder.add_triples(triples)?;
    Ok(Arc::new(builder.finish(image.to_vec(), &Target::Memory)?))
}

fn statements(count: u64, random: &mut Random) -> Vec<Statement> {
    (0..count)
        .map(|_| Statement {
            subject: Id::vertex(random.below(VERTICES)),
            predicate: Id::vertex(random.below(PREDICATES)),
            object: Id::vertex(random.below(VERTICES)),
            graph: Id::UNBOUND,
            edge: Id::UNBOUND,
        })
        .collect()
}

fn nanoseconds(start: Instant, count: usize) -> f64 {
    start.elapsed().as_secs_f64() * 1e9 / count.max(1) as f64
}

fn writing(empty: &Version) -> Result<(), Box<dyn Error>> {
    let mut random = Random(1);
    let some = statements(100_000, &mut random);
    let more = statements(20_000, &mut random);
    let before = HELD.load(Ordering::Relaxed);
    let mut version = empty.clone();
    version.insert_all(&some)?;
    let held = (HELD.load(Ordering::Relaxed) - before) as f64 / version.delta_cells() as f64;
    let reported = version.delta_bytes() as f64 / version.delta_cells() as f64;
    println!("bulk: {held:.0} bytes a statement ({reported:.0} by delta_bytes)");
    let (mut published, mut last, mut dropped) = (f64::MAX, f64::MAX, f64::MAX);
    for _ in 0..5 {
        let mut head = version.clone();
        let mut kept = Vec::with_capacity(more.len());
        let start = Instant::now();
        for statement in &more {
            black_box(head.insert(statement)?);
            kept.push(head.clone());
        }
        published = published.min(nanoseconds(start, more.len()));
        let start = Instant::now();
        drop(kept);
        dropped = dropped.min(nanoseconds(start, more.len()));
        // As in a database: the previous version is dropped when the next one is the head.
        let mut head = version.clone();
        let start = Instant::now();
        for statement in &more {
            let mut next = head.clone();
            black_box(next.insert(statement)?);
            head = next;
        }
        last = last.min(nanoseconds(start, more.len()));
    }
    println!(
        "insert into 100,000, each version kept: {published:.0} ns (dropping them {dropped:.0} ns); each replaced: {last:.0} ns"
    );
    let before = HELD.load(Ordering::Relaxed);
    let mut owned = f64::MAX;
    let mut bytes = 0.0;
    for _ in 0..3 {
        let mut head = empty.clone();
        let start = Instant::now();
        for statement in &some {
            black_box(head.insert(statement)?);
        }
        owned = owned.min(nanoseconds(start, some.len()));
        bytes = (HELD.load(Ordering::Relaxed) - before) as f64 / head.delta_cells() as f64;
    }
    println!("insert into one version: {owned:.0} ns; {bytes:.0} bytes a statement");
    let mut absent = f64::MAX;
    for _ in 0..3 {
        let mut head = version.clone();
        let start = Instant::now();
        for statement in &some {
            black_box(head.insert(statement)?);
        }
        absent = absent.min(nanoseconds(start, some.len()));
    }
    println!("insert what is there: {absent:.0} ns");
    let million = statements(1_000_000, &mut random);
    let mut best = f64::MAX;
    for _ in 0..3 {
        let mut head = empty.clone();
        let start = Instant::now();
        let count = head.insert_all(&million)?;
        best = best.min(start.elapsed().as_secs_f64());
        black_box(count);
    }
    println!("insert_all of a million: {best:.3} s");
    let start = Instant::now();
    let mut head = version.clone();
    head.insert_all(&million)?;
    println!("insert_all of a million into 100,000: {:.3} s", start.elapsed().as_secs_f64());
    let start = Instant::now();
    let count = head.statements().count();
    println!("statements: {:.0} ns each", nanoseconds(start, count));
    Ok(())
}

fn reading(image: &[u8], terms: &Arc<MutableDictionary>) -> Result<(), Box<dyn Error>> {
    let predicate = Id::vertex(1);
    let mut random = Random(2);
    // Four neighbours for each of the first half of the vertices.
    let mut triples = Vec::new();
    for subject in 0..VERTICES / 2 {
        for _ in 0..4 {
            triples.push([Id::vertex(subject), predicate, Id::vertex(random.below(VERTICES))]);
        }
    }
    let base = build(image, &triples)?;
    let version = Version::new(base, Arc::clone(terms));
    let statement = |subject: u64, object: u64| Statement {
        subject: Id::vertex(subject),
        predicate,
        object: Id::vertex(object),
        graph: Id::UNBOUND,
        edge: Id::UNBOUND,
    };
    let mut one = version.clone();
    one.insert(&statement(VERTICES - 1, 0))?;
    let mut others = version.clone();
    let beyond: Vec<_> = (VERTICES / 2..VERTICES).map(|vertex| statement(vertex, vertex / 2)).collect();
    others.insert_all(&beyond)?;
    let mut tenth = version.clone();
    tenth.insert_all(&(0..VERTICES / 20).map(|at| statement(at * 10 + 3, at)).collect::<Vec<_>>())?;
    let mut every = version.clone();
    every.insert_all(&(0..VERTICES / 2).map(|vertex| statement(vertex, vertex / 2)).collect::<Vec<_>>())?;
    let keys: Vec<Id> = (0..VERTICES / 2).map(|at| Id::vertex(at * 7919 % (VERTICES / 2))).collect();
    let targets: Vec<Id> = keys.iter().map(|_| Id::vertex(random.below(VERTICES))).collect();
    let all = [
        ("the store alone", &version),
        ("one other key changed", &one),
        ("100,000 other keys changed", &others),
        ("every tenth key changed", &tenth),
        ("every key changed", &every),
    ];
    // Interleaved, so that a slow moment of the machine affects all alike.
    let mut best = [[f64::MAX; 6]; 5];
    for _ in 0..7 {
        for ((_, version), best) in all.iter().zip(&mut best) {
            let Some(segment) = version.segment(predicate, Direction::Out)? else { continue };
            let found = read(segment, &keys, &targets)?;
            best.iter_mut().zip(found).for_each(|(best, found)| *best = best.min(found));
        }
    }
    println!("ns a row (100,000 keys in no order, 4 neighbours):");
    for ((name, _), [expand, degrees, check, constant, neighbours, listed]) in all.iter().zip(best) {
        println!(
            "{name:>28}: expand {expand:5.1}, degrees {degrees:5.1}, check {check:5.1}, check_constant {constant:5.1}, neighbours {neighbours:5.1}, keys {listed:4.1}"
        );
    }
    Ok(())
}

fn read(segment: &dyn Segment, keys: &[Id], targets: &[Id]) -> Result<[f64; 6], Box<dyn Error>> {
    let filter = EntryFilter::default();
    let mut out = Expansion::new(1024);
    let start = Instant::now();
    for batch in keys.chunks(1024) {
        let mut cursor = Cursor::default();
        while cursor.row < batch.len() {
            out.clear();
            segment.expand(batch, filter, &mut cursor, &mut out)?;
            black_box(&out);
        }
    }
    let expand = nanoseconds(start, keys.len());
    let mut degrees = Vec::new();
    let start = Instant::now();
    for batch in keys.chunks(1024) {
        segment.degrees(batch, filter, &mut degrees)?;
        black_box(&degrees);
    }
    let degrees = nanoseconds(start, keys.len());
    let mut rows = Vec::new();
    let start = Instant::now();
    for (keys, targets) in keys.chunks(1024).zip(targets.chunks(1024)) {
        rows.clear();
        segment.check(keys, targets, filter, &mut rows)?;
        black_box(&rows);
    }
    let check = nanoseconds(start, keys.len());
    let start = Instant::now();
    for keys in keys.chunks(1024) {
        rows.clear();
        segment.check_constant(keys, Id::vertex(5), filter, &mut rows)?;
        black_box(&rows);
    }
    let constant = nanoseconds(start, keys.len());
    let mut found = Vec::new();
    let start = Instant::now();
    for key in keys {
        found.clear();
        segment.neighbours(*key, filter, &mut found)?;
        black_box(&found);
    }
    let neighbours = nanoseconds(start, keys.len());
    let start = Instant::now();
    let (mut count, mut next) = (0, Some(Id::UNBOUND));
    while let Some(from) = next {
        found.clear();
        next = segment.keys(from, 1024, &mut found)?;
        count += found.len();
    }
    Ok([expand, degrees, check, constant, neighbours, nanoseconds(start, count)])
}
