//! Benchmark of constraints: `cargo run --release -p vervet --example constraints`.
//!
//! Adds vertices of a class with a text and a number each, one per transaction, in memory, on one thread;
//! then adds a constraint to the existing graph.

use oxrdf::{GraphNameRef, Literal, NamedNode, NamedNodeRef, QuadRef, TermRef, vocab::rdf};
use std::time::{Duration, Instant};
use vervet::{Constraint, ConstraintKind, Database, Isolation, Result, TransactionOptions};

const VERTICES: u32 = 100_000;
/// Times are the best of this many parts, each divided by its number of transactions.
const PARTS: u32 = 20;

fn iri(name: &str) -> NamedNodeRef<'_> {
    NamedNodeRef::new_unchecked(name)
}

fn main() -> Result<()> {
    let property = |name: &str| NamedNode::new_unchecked(name);
    let class = || property("urn:Person");
    let unique = Constraint::new(ConstraintKind::Unique, class(), [property("urn:email")])?;
    let both = Constraint::new(ConstraintKind::Unique, class(), ["urn:email", "urn:age"].map(property))?;
    let required = Constraint::new(ConstraintKind::Required, class(), [property("urn:email")])?;
    let single = Constraint::new(ConstraintKind::Single, class(), [property("urn:age")])?;
    let elsewhere = Constraint::new(ConstraintKind::Unique, property("urn:Other"), [property("urn:code")])?;
    for isolation in [Isolation::Serializable, Isolation::Snapshot] {
        for (name, constraints) in [
            ("no constraint", vec![]),
            ("unique on another class", vec![&elsewhere]),
            ("unique", vec![&unique]),
            ("unique of two properties", vec![&both]),
            ("unique, required, single", vec![&unique, &required, &single]),
        ] {
            let database = Database::in_memory();
            for constraint in constraints {
                database.add_constraint(constraint)?;
            }
            println!("{isolation:?}, {name}: {:.2?} a commit", fill(&database, isolation)?);
        }
    }
    let database = Database::in_memory();
    fill(&database, Isolation::Serializable)?;
    for merged in [false, true] {
        if merged {
            database.checkpoint()?;
        }
        for constraint in [&unique, &both, &required, &single] {
            let started = Instant::now();
            database.add_constraint(constraint)?;
            println!(
                "adding {constraint} to {VERTICES} vertices, merged {merged}: {:.1?}",
                started.elapsed()
            );
            database.remove_constraint(constraint)?;
        }
    }
    Ok(())
}

/// The best time of a commit.
fn fill(database: &Database, isolation: Isolation) -> Result<Duration> {
    let (mut best, part) = (Duration::MAX, VERTICES / PARTS);
    for first in (0..VERTICES).step_by(part as usize) {
        let started = Instant::now();
        for number in first..first + part {
            let vertex = format!("urn:vertex:{number}");
            let email = Literal::new_simple_literal(format!("somebody.{number}@example.org"));
            let age = Literal::from(number % 100);
            let mut transaction = database.begin_with(TransactionOptions { isolation })?;
            let mut add = |predicate: NamedNodeRef<'_>, object: TermRef<'_>| {
                let quad = QuadRef::new(iri(&vertex), predicate, object, GraphNameRef::DefaultGraph);
                transaction.insert(quad)
            };
            add(rdf::TYPE, iri("urn:Person").into())?;
            add(iri("urn:email"), email.as_ref().into())?;
            add(iri("urn:age"), age.as_ref().into())?;
            transaction.commit()?;
        }
        best = best.min(started.elapsed() / part);
    }
    Ok(best)
}
