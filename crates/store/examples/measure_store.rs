//! Benchmark of a store.
//!
//! The store is built from N-Triples on standard input (plain lines without comments). Measured: build time,
//! bytes for each triple, and the cost of expansions and checks compared with plain arrays.
//!
//! `zstd -dc lubm-40.nt.zst | cargo run --release -p vervet-store --example measure_store`
//! With a number as an argument, it only builds into a directory with that many MiB for statements (0:
//! unlimited).
#![expect(clippy::print_stdout, clippy::cast_possible_truncation, reason = "a program for the terminal")]

use std::error::Error;
use std::hint::black_box;
use std::io::{BufRead, stdin};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;
use vervet_dictionary::DictionaryBuilder;
use vervet_env::Environment;
use vervet_model::{Direction, Id, LiteralKind};
use vervet_snapshot::{Cursor, EntryFilter, Expansion, Segment, Snapshot};
use vervet_store::{Base, BuildOptions, Store, StoreBuilder, Target};

fn main() -> Result<(), Box<dyn Error>> {
    let (triples, image) = read()?;
    println!("{} triples", triples.len());
    let options = BuildOptions {
        threads: 1,
        memory_bytes: u64::MAX,
        environment: Environment::real(),
        temp_dir: None,
        log: None,
        orders: Vec::new(),
    };
    if let Some(mebibytes) = std::env::args().nth(1) {
        return build_within(&triples, image, mebibytes.parse()?);
    }
    let mut best = f64::MAX;
    let mut store = Store::empty()?;
    for _ in 0..3 {
        let start = Instant::now();
        let mut builder = StoreBuilder::new(options.clone());
        for chunk in triples.chunks(10_000) {
            builder.add_triples(chunk)?;
        }
        let added = start.elapsed();
        store = builder.finish(image.clone(), &Target::Memory)?;
        best = best.min(start.elapsed().as_secs_f64());
        println!("added in {added:?}, all in {:?}", start.elapsed());
    }
    let mut bytes = [0_u64; 2];
    let mut parts = std::collections::BTreeMap::new();
    for part in store.parts()? {
        bytes[usize::from(part.segment.is_none())] += part.bytes;
        *parts.entry(part.part).or_insert(0) += part.bytes;
    }
    println!("built in {best:.3} s; {:.2} bytes a triple", bytes[0] as f64 / store.statement_count() as f64);
    println!("{parts:?}");
    for (predicate, _) in store.predicates() {
        for direction in Direction::BOTH {
            if let Some(segment) = store.segment(*predicate, direction)? {
                measure(&store, *predicate, direction, segment)?;
            }
        }
    }
    if let Some(predicate) = store.type_predicate()
        && let Some(types) = store.segment(predicate, Direction::Out)?
    {
        measure_types(&store, types)?;
    }
    Ok(())
}

/// Builds into a directory with this much memory for statements (0: unlimited), and prints the peak memory of
/// the process, which includes the input.
fn build_within(triples: &[[Id; 3]], image: Vec<u8>, mebibytes: u64) -> Result<(), Box<dyn Error>> {
    let dir = std::env::temp_dir().join(format!("vervet-measure-{}", std::process::id()));
    let memory_bytes = if mebibytes == 0 { u64::MAX } else { mebibytes << 20 };
    let environment = Environment::real();
    let options = BuildOptions {
        threads: 1,
        memory_bytes,
        environment,
        temp_dir: Some(dir.clone()),
        log: None,
        orders: Vec::new(),
    };
    let status = |what: &str| -> Result<String, Box<dyn Error>> {
        let text = std::fs::read_to_string("/proc/self/status")?;
        let find =
            |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
        Ok(format!("{what}: {}; {}", find("VmHWM"), find("RssAnon")).replace('\t', " "))
    };
    // Resets the peak after reading the input.
    std::fs::write("/proc/self/clear_refs", "5")?;
    println!("{}", status("before")?);
    // VmHWM includes mapped pages of temporary files; anonymous memory is therefore sampled.
    let (done, peak) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
                let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:"));
                let kilobytes = line.and_then(|line| line.trim().split(' ').next()?.parse().ok());
                peak.fetch_max(kilobytes.unwrap_or(0), Ordering::Relaxed);
                std::thread::sleep(std::time::Duration::from_micros(500));
            }
        });
        let built = build_measured(triples, image, options, &dir);
        done.store(true, Ordering::Relaxed);
        built
    })?;
    println!("{}; RssAnon at most {} kB", status("after")?, peak.into_inner());
    std::fs::remove_dir_all(&dir)?;
    Ok(())
}

fn build_measured(
    triples: &[[Id; 3]],
    image: Vec<u8>,
    options: BuildOptions,
    dir: &Path,
) -> Result<(), vervet_model::Error> {
    let start = Instant::now();
    let mut builder = StoreBuilder::new(options);
    for chunk in triples.chunks(10_000) {
        builder.add_triples(chunk)?;
    }
    builder.finish(image, &Target::Directory(dir.to_owned()))?;
    println!("built in {:?}", start.elapsed());
    Ok(())
}

/// Triples as ids, and the image of their dictionary.
type Input = (Vec<[Id; 3]>, Vec<u8>);

fn read() -> Result<Input, Box<dyn Error>> {
    let mut dictionary = DictionaryBuilder::new();
    let mut triples = Vec::new();
    let mut line = String::new();
    let mut input = stdin().lock();
    while {
        line.clear();
        input.read_line(&mut line)? > 0
    } {
        let words = line.trim_end().trim_end_matches('.').trim_end();
        let (subject, rest) = words.split_once(' ').ok_or("no predicate")?;
        let (predicate, object) = rest.split_once(' ').ok_or("no object")?;
        let mut term = |text: &str| {
            if let Some(text) = text.strip_prefix('"') {
                let value = text.split_once('"').map_or(text, |(value, _)| value);
                dictionary.intern_literal(value, LiteralKind::String)
            } else {
                dictionary.intern_iri(text.trim_start_matches('<').trim_end_matches('>'))
            }
        };
        triples.push([term(subject)?, term(predicate)?, term(object)?]);
    }
    Ok((triples, dictionary.finish()?))
}

/// The same entries as plain arrays: offsets over all vertices, neighbours of 32 bits.
struct Plain {
    offsets: Vec<u32>,
    neighbours: Vec<u32>,
}

impl Plain {
    fn new(store: &Store, segment: &dyn Segment) -> Result<Self, Box<dyn Error>> {
        let mut plain = Self { offsets: vec![0], neighbours: Vec::new() };
        let mut out = Vec::new();
        for vertex in 0..store.vertex_count() {
            out.clear();
            segment.neighbours(Id::vertex(vertex), EntryFilter::default(), &mut out)?;
            plain.neighbours.extend(out.iter().map(|id| id.payload() as u32));
            plain.offsets.push(plain.neighbours.len() as u32);
        }
        Ok(plain)
    }
}

fn nanoseconds(start: Instant, count: usize) -> f64 {
    start.elapsed().as_secs_f64() * 1e9 / count.max(1) as f64
}

fn measure(
    store: &Store,
    predicate: Id,
    direction: Direction,
    segment: &dyn Segment,
) -> Result<(), Box<dyn Error>> {
    let mut keys = Vec::new();
    segment.keys(Id::UNBOUND, usize::MAX, &mut keys)?;
    let mut name = Vec::new();
    store.write_terms(&[predicate], &mut name, &mut Vec::new())?;
    let name = String::from_utf8(name)?;
    let name = name.rsplit(['#', '/']).next().unwrap_or_default().trim_end_matches('>');
    let entries = segment.statistics().entries as usize;
    let filter = EntryFilter { parallel: true, ..EntryFilter::default() };
    let mut best = [f64::MAX; 4];
    let plain = if keys.iter().all(|key| key.is_vertex()) { Some(Plain::new(store, segment)?) } else { None };
    // Every seventh key, so that neither layout profits from sequential access.
    let count = keys.len();
    let step = if count % 7 == 0 { 11 } else { 7 };
    let shuffled: Vec<Id> = (0..count).map(|i| keys[i * step % count]).collect();
    for _ in 0..5 {
        for (order, keys) in [(0, &keys), (2, &shuffled)] {
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
            best[order] = best[order].min(nanoseconds(start, entries));
            let Some(plain) = &plain else { continue };
            let (mut rows, mut found): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
            let start = Instant::now();
            for batch in keys.chunks(1024) {
                rows.clear();
                found.clear();
                for (row, key) in (0_u32..).zip(batch) {
                    let key = key.payload() as usize;
                    let range = plain.offsets[key] as usize..plain.offsets[key + 1] as usize;
                    for neighbour in &plain.neighbours[range] {
                        rows.push(row);
                        found.push(*neighbour);
                    }
                }
                black_box((&rows, &found));
            }
            best[order + 1] = best[order + 1].min(nanoseconds(start, entries));
        }
    }
    let [a, b, c, d] = best.map(|time| if time == f64::MAX { f64::NAN } else { time });
    println!(
        "{name:>24} {direction:?}: {count} keys, {entries} entries; expand ns/entry: in order {a:.2} (plain {b:.2}), jumping {c:.2} (plain {d:.2})"
    );
    if entries > count {
        measure_pairs(&keys, segment)?;
    }
    Ok(())
}

/// Checks pairs of which half exist, in random order, and lists the neighbours of one key at a time.
fn measure_pairs(keys: &[Id], segment: &dyn Segment) -> Result<(), Box<dyn Error>> {
    let count = keys.len();
    let (mut sources, mut targets, mut found) = (Vec::new(), Vec::new(), Vec::new());
    for index in 0..count.max(10_000) {
        let source = keys[index * 7919 % count];
        found.clear();
        let other = if index % 2 == 0 { source } else { keys[index * 104_729 % count] };
        segment.neighbours(other, EntryFilter::default(), &mut found)?;
        sources.push(source);
        targets.push(found[index % found.len()]);
    }
    let mut best = [f64::MAX; 2];
    for _ in 0..5 {
        let mut rows = Vec::new();
        let start = Instant::now();
        for (sources, targets) in sources.chunks(1024).zip(targets.chunks(1024)) {
            rows.clear();
            segment.check(sources, targets, EntryFilter::default(), &mut rows)?;
            black_box(&rows);
        }
        best[0] = best[0].min(nanoseconds(start, sources.len()));
        let start = Instant::now();
        for source in &sources {
            found.clear();
            segment.neighbours(*source, EntryFilter::default(), &mut found)?;
            black_box(&found);
        }
        best[1] = best[1].min(nanoseconds(start, sources.len()));
    }
    println!("{:>28} check of pairs {:.2} ns/row, neighbours {:.2} ns/key", "", best[0], best[1]);
    Ok(())
}

fn measure_types(store: &Store, types: &dyn Segment) -> Result<(), Box<dyn Error>> {
    let plain = Plain::new(store, types)?;
    let wanted = plain.neighbours.first().copied().unwrap_or(0);
    let one: Vec<u8> = plain
        .offsets
        .windows(2)
        .map(|pair| u8::from(plain.neighbours[pair[0] as usize..pair[1] as usize].contains(&wanted)))
        .collect();
    let vertices: Vec<Id> = (0..store.vertex_count()).map(Id::vertex).collect();
    let mut best = [f64::MAX; 2];
    for _ in 0..5 {
        let mut rows = Vec::new();
        let start = Instant::now();
        for batch in vertices.chunks(1024) {
            rows.clear();
            types.check_constant(batch, Id::vertex(u64::from(wanted)), EntryFilter::default(), &mut rows)?;
            black_box(&rows);
        }
        best[0] = best[0].min(nanoseconds(start, vertices.len()));
        let start = Instant::now();
        for batch in vertices.chunks(1024) {
            rows.clear();
            for (row, vertex) in (0_u32..).zip(batch) {
                if one[vertex.payload() as usize] == 1 {
                    rows.push(row);
                }
            }
            black_box(&rows);
        }
        best[1] = best[1].min(nanoseconds(start, vertices.len()));
    }
    println!("type check: {:.2} ns/row (plain byte array {:.2})", best[0], best[1]);
    Ok(())
}
