//! Measures the load of files: `measure FILE... [--threads N]`. Prints statements per second into a target
//! that only counts (parsing alone) and into one of hash tables (parsing, merging and numbering), and the
//! time that the second target took for itself.

use std::time::{Duration, Instant};
use vervet_load::testing::{CheapTarget, CountTarget};
use vervet_load::{LoadOptions, Source, Statement, Target, TermRef, load};
use vervet_model::{Error, ErrorKind, Id, LiteralKind, Result};

fn main() -> Result<()> {
    let mut threads = 1;
    let mut files = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        if argument == "--threads" {
            threads = arguments
                .next()
                .and_then(|number| number.parse().ok())
                .ok_or_else(|| Error::new(ErrorKind::Input, "--threads needs a number"))?;
        } else {
            files.push(argument);
        }
    }
    let options = LoadOptions { threads, ..LoadOptions::default() };
    let sources = || files.iter().map(Source::path).collect::<Vec<_>>();

    for _ in 0..3 {
        let start = Instant::now();
        let mut counter = CountTarget::default();
        let report = load(sources(), &options, &mut counter, &mut std::io::sink())?;
        print("parse", report.statements, start.elapsed());

        let start = Instant::now();
        let mut target = Timed { target: CheapTarget::default(), spent: Duration::ZERO };
        let report = load(sources(), &options, &mut target, &mut std::io::sink())?;
        print("parse and merge", report.statements, start.elapsed());
        print("  of it in the target", report.statements, target.spent);
        println!("  {} terms", target.target.term_count());
    }
    Ok(())
}

fn print(what: &str, statements: u64, time: Duration) {
    let seconds = time.as_secs_f64();
    let millions = u32::try_from(statements).map_or(f64::NAN, f64::from) / 1e6;
    println!("{what}: {statements} statements in {seconds:.3} s, {:.2} M/s", millions / seconds);
}

/// Sums the time spent in calls on blocks.
struct Timed {
    target: CheapTarget,
    spent: Duration,
}

impl Timed {
    fn time<R>(&mut self, work: impl FnOnce(&mut CheapTarget) -> R) -> R {
        let start = Instant::now();
        let result = work(&mut self.target);
        self.spent += start.elapsed();
        result
    }
}

impl Target for Timed {
    fn intern_iri(&mut self, iri: &str) -> Result<Id> {
        self.target.intern_iri(iri)
    }

    fn intern_blank(&mut self, label: &str) -> Result<Id> {
        self.target.intern_blank(label)
    }

    fn intern_literal(&mut self, value: &str, kind: LiteralKind<'_>) -> Result<Id> {
        self.target.intern_literal(value, kind)
    }

    fn intern_all(&mut self, terms: &[TermRef<'_>], ids: &mut Vec<Id>) -> Result<()> {
        self.time(|target| target.intern_all(terms, ids))
    }

    fn next_edge(&mut self) -> Result<Id> {
        self.target.next_edge()
    }

    fn add_triples(&mut self, triples: &[[Id; 3]]) -> Result<()> {
        self.time(|target| target.add_triples(triples))
    }

    fn add(&mut self, statements: &[Statement]) -> Result<()> {
        self.time(|target| target.add(statements))
    }
}
