//! Load benchmark: `measure FILE... [--threads N]`. Prints statements per second for a counting target
//! (parsing only), a hash-table target (parsing, merging and numbering), and the builders of an in-memory
//! store, with the time spent in these targets.

use std::time::{Duration, Instant};
use vervet_dictionary::{DictionaryBuilder, hash_blank, hash_iri, hash_literal};
use vervet_load::testing::{CountTarget, HashTarget};
use vervet_load::{LoadOptions, Source, Statement, Target, TermRef, load};
use vervet_model::{Error, ErrorKind, Id, LiteralKind, Result};
use vervet_store::{BuildOptions, StoreBuilder};

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
        let mut target = Timed { target: HashTarget::default(), spent: Duration::ZERO };
        let report = load(sources(), &options, &mut target, &mut std::io::sink())?;
        print("parse and merge", report.statements, start.elapsed());
        print("  of it in the target", report.statements, target.spent);
        println!("  {} terms", target.target.term_count());

        let start = Instant::now();
        let mut target = Timed { target: Builders::new(threads), spent: Duration::ZERO };
        let report = load(sources(), &options, &mut target, &mut std::io::sink())?;
        let loaded = start.elapsed();
        print("into the builders", report.statements, loaded);
        print("  of it in the target", report.statements, target.spent);
        let Builders { dictionary, store, .. } = target.target;
        let image = dictionary.finish()?;
        println!("  dictionary finished after {:.3} s", (start.elapsed() - loaded).as_secs_f64());
        let store = store.finish(image, &vervet_store::Target::Memory)?;
        print("into a store in memory", report.statements, start.elapsed());
        drop(store);
    }
    Ok(())
}

/// Adapts the builders of dictionary and store to [`Target`].
struct Builders {
    dictionary: DictionaryBuilder,
    store: StoreBuilder<'static>,
    edges: u64,
    statements: Vec<vervet_store::Statement>,
}

impl Builders {
    fn new(threads: usize) -> Self {
        let options = BuildOptions {
            threads,
            memory_bytes: u64::MAX,
            environment: vervet_env::Environment::real(),
            temp_dir: None,
            log: None,
            orders: Vec::new(),
        };
        Self {
            dictionary: DictionaryBuilder::new(),
            store: StoreBuilder::new(options),
            edges: 0,
            statements: Vec::new(),
        }
    }
}

impl Target for Builders {
    fn intern_iri(&mut self, iri: &str) -> Result<Id> {
        self.dictionary.intern_iri(iri)
    }

    fn intern_blank(&mut self, label: &str) -> Result<Id> {
        self.dictionary.intern_blank(label)
    }

    fn intern_literal(&mut self, value: &str, kind: LiteralKind<'_>) -> Result<Id> {
        self.dictionary.intern_literal(value, kind)
    }

    fn intern_all(&mut self, terms: &[TermRef<'_>], ids: &mut Vec<Id>) -> Result<()> {
        let mut hashes = [0; 16];
        for terms in terms.chunks(hashes.len()) {
            for (hash, term) in hashes.iter_mut().zip(terms) {
                *hash = match *term {
                    TermRef::Iri(iri) => hash_iri(iri),
                    TermRef::Blank(label) => hash_blank(label),
                    TermRef::Literal { value, kind } => hash_literal(value, kind),
                };
            }
            self.dictionary.prefetch(&hashes[..terms.len()]);
            for (&hash, term) in hashes.iter().zip(terms) {
                ids.push(match *term {
                    TermRef::Iri(iri) => self.dictionary.intern_iri_hashed(iri, hash)?,
                    TermRef::Blank(label) => self.dictionary.intern_blank_hashed(label, hash)?,
                    TermRef::Literal { value, kind } => {
                        self.dictionary.intern_literal_hashed(value, kind, hash)?
                    }
                });
            }
        }
        Ok(())
    }

    fn next_edge(&mut self) -> Result<Id> {
        self.edges += 1;
        Ok(Id::edge(self.edges - 1))
    }

    fn add_triples(&mut self, triples: &[[Id; 3]]) -> Result<()> {
        self.store.add_triples(triples)
    }

    fn add(&mut self, statements: &[Statement]) -> Result<()> {
        self.statements.clear();
        self.statements.extend(statements.iter().map(
            |&Statement { subject, predicate, object, graph, edge }| vervet_store::Statement {
                subject,
                predicate,
                object,
                graph,
                edge,
            },
        ));
        self.store.add(&self.statements)
    }

    fn rewrite(&mut self, each: &mut dyn FnMut(&mut Statement) -> bool) -> Result<()> {
        self.store.rewrite(each)
    }
}

fn print(what: &str, statements: u64, time: Duration) {
    let seconds = time.as_secs_f64();
    let millions = u32::try_from(statements).map_or(f64::NAN, f64::from) / 1e6;
    println!("{what}: {statements} statements in {seconds:.3} s, {:.2} M/s", millions / seconds);
}

/// Measures the time in target calls on blocks.
struct Timed<T> {
    target: T,
    spent: Duration,
}

impl<T> Timed<T> {
    fn time<R>(&mut self, work: impl FnOnce(&mut T) -> R) -> R {
        let start = Instant::now();
        let result = work(&mut self.target);
        self.spent += start.elapsed();
        result
    }
}

impl<T: Target> Target for Timed<T> {
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

    fn rewrite(&mut self, each: &mut dyn FnMut(&mut Statement) -> bool) -> Result<()> {
        self.time(|target| target.rewrite(each))
    }
}
