//! The impact of writers on readers: the light queries alone, over a version with a delta, and beside a
//! continuously committing writer.

use super::clients::{self, Load, Outcome};
use super::graphs::{Data, StorageLocation};
use super::options::TransactionOptions;
use crate::sections::{Section, SectionReport};
use crate::table::figure;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use vervet::{Database, Direction, Durability, NamedNode, Vertex};
use vervet_generate::Random;
use vervet_model::{Error, ErrorKind, Result};

/// A writer transaction adds this many edges, and the next one removes them.
const WRITES: usize = 1;

/// The concurrent load beside the readers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Beside {
    Nothing,
    /// No load, but an earlier transaction has changed another predicate.
    ChangedElsewhere,
    /// A thread that uses the processor without using the database: the cost of a second thread on this
    /// machine.
    Spin,
    /// A continuously committing writer of edges of a predicate that is not read.
    WriterElsewhere,
    /// A writer of the edges that are read.
    WriterHere,
}

impl Beside {
    const ALL: [Self; 5] =
        [Self::Nothing, Self::ChangedElsewhere, Self::Spin, Self::WriterElsewhere, Self::WriterHere];

    fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::ChangedElsewhere => "nothing; another predicate has changes",
            Self::Spin => "a thread that only computes",
            Self::WriterElsewhere => "a writer, of other edges",
            Self::WriterHere => "a writer, of the same kind of edges",
        }
    }
}

/// The number of interleaved rounds: the best counts, to exclude slow moments of the machine.
const ROUNDS: usize = 5;

pub(super) fn run(data: &Data, options: &TransactionOptions, report: &mut SectionReport) -> Result<()> {
    let made = data.database(StorageLocation::Directory(Durability::None), |_| {})?;
    let db = &made.db;
    let vertices = data.vertices(db)?;
    let label = busiest(db, &vertices)?;
    let elsewhere = NamedNode::new_unchecked("urn:bench:elsewhere");
    let mut best: Vec<(Beside, Option<Outcome>, f64)> =
        Beside::ALL.into_iter().map(|beside| (beside, None, 0.0)).collect();
    for _ in 0..ROUNDS {
        for (beside, best, commits) in &mut best {
            if *beside == Beside::ChangedElsewhere {
                write(db, &vertices, &elsewhere, 0, true)?;
            }
            let (outcome, rate) = measure(db, &vertices, &label, &elsewhere, *beside, options)?;
            *commits = commits.max(rate);
            if best.as_ref().is_none_or(|best| outcome.rate() > best.rate()) {
                *best = Some(outcome);
            }
            if *beside == Beside::WriterHere {
                // The next round starts without a delta again.
                db.checkpoint()?;
            }
        }
    }
    let mut section = Section::new(
        "Readers beside a writer",
        format!(
            "One thread reads, with a new snapshot for each read, the neighbours of a random vertex over {label} \
             in both directions; the best of {ROUNDS} rounds counts. The writer adds and removes {WRITES} edge in \
             each transaction, as fast as it can."
        ),
        &[
            "beside it",
            "reads/s",
            "of the reads beside nothing, %",
            "p50 µs",
            "p99 µs",
            "longest ms",
            "commits/s",
        ],
    );
    let alone =
        best.iter().find_map(|(beside, best, _)| (*beside == Beside::Nothing).then_some(best.as_ref()?));
    let alone = alone.map_or(1.0, Outcome::rate);
    for (beside, best, commits) in &best {
        let Some(best) = best else { continue };
        let share = best.rate() / alone;
        section.row(vec![
            beside.name().to_owned(),
            figure(best.rate()),
            figure(100.0 * share),
            figure(best.quantile_us(0.5)),
            figure(best.quantile_us(0.99)),
            figure(best.quantile_us(1.0) / 1e3),
            figure(*commits),
        ]);
        match beside {
            Beside::WriterHere => {
                report.target("readers slower beside a writer, %", 100.0 * (1.0 - share), 10.0, true);
            }
            Beside::ChangedElsewhere => {
                report.target(
                    "readers slower while another predicate has changes, %",
                    100.0 * (1.0 - share),
                    3.0,
                    true,
                );
            }
            _ => {}
        }
    }
    report.push(section);
    Ok(())
}

fn measure(
    db: &Database,
    vertices: &[NamedNode],
    label: &str,
    elsewhere: &NamedNode,
    beside: Beside,
    options: &TransactionOptions,
) -> Result<(Outcome, f64)> {
    let (stop, commits) = (AtomicBool::new(false), AtomicU64::new(0));
    let ids: Vec<Vertex> = {
        let snapshot = db.snapshot();
        let graph = snapshot.graph();
        let all = vertices.iter().map(|name| graph.vertex(name.as_str()));
        all.filter_map(Result::transpose).collect::<Result<_>>()?
    };
    let here = NamedNode::new_unchecked(label);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| -> Result<()> {
            let mut number = 0;
            while !stop.load(Ordering::Relaxed) {
                match beside {
                    Beside::Nothing | Beside::ChangedElsewhere => return Ok(()),
                    Beside::Spin => std::hint::spin_loop(),
                    Beside::WriterElsewhere => write(db, vertices, elsewhere, number / 2, number % 2 == 0)?,
                    Beside::WriterHere => write(db, vertices, &here, number / 2, number % 2 == 0)?,
                }
                number += 1;
                commits.store(number, Ordering::Relaxed);
            }
            Ok(())
        });
        let load = Load { clients: 1, time: options.time / 2, warm_up: 1000 };
        let outcome = clients::run(load, |_, number| read(db, &ids, label, number));
        stop.store(true, Ordering::Relaxed);
        writer.join().map_err(|_| Error::internal("the writer panicked"))??;
        let outcome = outcome?;
        let writes = matches!(beside, Beside::WriterElsewhere | Beside::WriterHere);
        let rate = if writes { commits.load(Ordering::Relaxed) as f64 / outcome.seconds } else { 0.0 };
        Ok((outcome, rate))
    })
}

fn read(db: &Database, vertices: &[Vertex], label: &str, number: u64) -> Result<()> {
    let mut random = Random::new(number);
    let vertex = *random.pick(vertices);
    let snapshot = db.snapshot();
    for direction in Direction::BOTH {
        std::hint::black_box(snapshot.graph().neighbours(vertex, label, direction)?);
    }
    Ok(())
}

fn write(db: &Database, vertices: &[NamedNode], link: &NamedNode, number: u64, adds: bool) -> Result<()> {
    let mut transaction = db.begin()?;
    let mut random = Random::new(number);
    for _ in 0..WRITES {
        let mut draw = || random.pick(vertices);
        let edge = oxrdf::QuadRef::new(draw(), link, draw(), oxrdf::GraphNameRef::DefaultGraph);
        if adds {
            transaction.insert(edge)?
        } else {
            transaction.remove(edge)?
        };
    }
    transaction.commit().map(drop)
}

/// The predicate, other than `rdf:type`, in which the first vertices have the most neighbours.
fn busiest(db: &Database, vertices: &[NamedNode]) -> Result<String> {
    let text = format!(
        "SELECT ?p (COUNT(?o) AS ?n) {{ VALUES ?s {{ {} }} ?s ?p ?o FILTER(isIRI(?o)) }} \
         GROUP BY ?p ORDER BY DESC(?n)",
        vertices.iter().take(100).map(ToString::to_string).collect::<Vec<_>>().join(" ")
    );
    let solutions = db.select(&text)?;
    for row in solutions.rows() {
        let found = row.text("p")?.filter(|label| label != oxrdf::vocab::rdf::TYPE.as_str());
        if let Some(label) = found {
            return Ok(label);
        }
    }
    Err(Error::new(ErrorKind::Input, "the vertices have no edges"))
}
