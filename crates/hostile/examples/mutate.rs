//! Mutation fuzzer without coverage feedback, for machines without libFuzzer.
//!
//! `cargo run --release -p vervet-hostile --example mutate -- CORPUS ENTRY SECONDS [SEED]` mutates the seeds
//! of `CORPUS/ENTRY` (see `seeds.rs`), checks them, and writes the first failing input to `ENTRY-found`.

use std::path::Path;
use std::time::{Duration, Instant};
use std::{env, fs, panic};
use vervet_hostile::EntryPoint;

/// Maximum size of an input: longer ones are slow.
const BYTES_MAX: usize = 4 << 10;

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [corpus, name, seconds, rest @ ..] = arguments.as_slice() else {
        eprintln!("usage: mutate CORPUS ENTRY SECONDS [SEED]");
        std::process::exit(2);
    };
    let entry = EntryPoint::from_name(name).unwrap_or_else(|| panic!("no entry is called {name}"));
    let seconds = seconds.parse().expect("a number of seconds");
    let mut state: u64 = rest.first().map_or(1, |seed| seed.parse().expect("a number"));
    let mut below = move |bound: usize| {
        // SplitMix64.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) >> 1).unwrap_or(0) % bound.max(1)
    };
    let files = fs::read_dir(Path::new(corpus).join(name)).expect("the corpus has a folder of that name");
    let mut paths: Vec<_> = files.map(|file| file.expect("it can be listed").path()).collect();
    paths.sort();
    let seeds: Vec<Vec<u8>> = paths.iter().map(|path| fs::read(path).expect("it can be read")).collect();
    assert!(!seeds.is_empty(), "there are seeds");
    let (begin, limit) = (Instant::now(), Duration::from_secs(seconds));
    let mut count = 0_u64;
    while begin.elapsed() < limit {
        let mut bytes = seeds[below(seeds.len())].clone();
        for _ in 0..below(5) {
            change(&mut bytes, &seeds, &mut below);
        }
        bytes.truncate(BYTES_MAX);
        let started = Instant::now();
        if panic::catch_unwind(|| entry.check(&bytes)).is_err() || started.elapsed() > Duration::from_secs(10)
        {
            let found = format!("{name}-found");
            fs::write(&found, &bytes).expect("it can be written");
            eprintln!("{found} fails after {count} texts: {}", String::from_utf8_lossy(&bytes));
            std::process::exit(1);
        }
        count += 1;
    }
    println!("{name}: {count} texts in {seconds} s, nothing found");
}

/// One mutation: a changed byte, a deleted or duplicated slice, a slice of another seed.
fn change(bytes: &mut Vec<u8>, seeds: &[Vec<u8>], below: &mut impl FnMut(usize) -> usize) {
    let at = below(bytes.len() + 1);
    let length = 1 + below(12).min(bytes.len().saturating_sub(at));
    let end = (at + length).min(bytes.len());
    match below(6) {
        0 if at < bytes.len() => bytes[at] = u8::try_from(below(256)).unwrap_or(0),
        1 if at < bytes.len() => {
            bytes[at] = *b"0123456789{}[]()<>\"'.,:;|_-/\\ \n".get(below(31)).unwrap_or(&b' ')
        }
        2 => drop(bytes.drain(at..end)),
        3 => {
            let piece = bytes[at..end].to_vec();
            bytes.splice(at..at, piece);
        }
        _ => {
            let other = &seeds[below(seeds.len())];
            let from = below(other.len() + 1);
            let to = (from + 1 + below(40)).min(other.len());
            bytes.splice(at..end, other[from..to].iter().copied());
        }
    }
}
