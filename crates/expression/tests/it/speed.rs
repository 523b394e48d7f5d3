//! Time for each row of an expression. Ignored by default because it is slow; run with
//! `cargo test --release -p vervet-expression --test it speed -- --ignored --nocapture`.

use crate::common::{Terms, now, parse};
use oxrdf::Literal;
use std::time::Instant;
use vervet_algebra::{Aggregate, AggregateKind};
use vervet_expression::{Accumulators, CompiledExpression, ComputedTerms, Evaluator, SortKey};
use vervet_model::{Id, Inline};

const ROWS: usize = 1000;
const BATCHES: usize = 1000;

#[test]
#[ignore = "a measurement, not a check"]
fn nanoseconds_per_row() {
    let texts =
        (0..ROWS).map(|n| Literal::from(format!("the quick brown fox number {n} jumps over a dog")).into());
    let snapshot = Terms::new(texts);
    let computed = ComputedTerms::new();
    let evaluator = Evaluator::new(&snapshot, &computed, now(), 1);
    let number = |n: usize| Inline::Integer(i64::try_from(n).unwrap()).to_id().unwrap();
    let columns = [
        (0..ROWS).map(|n| number(n * 7919 % ROWS)).collect::<Vec<Id>>(),
        (0..ROWS).map(number).collect(),
        (0..ROWS).map(|n| Id::literal(n as u64)).collect(),
    ];
    let report = |what: &str, start: Instant| {
        println!("{:8.1} ns  {what}", start.elapsed().as_nanos() as f64 / (ROWS * BATCHES) as f64);
    };
    for text in [
        "?v0 > 500",
        "?v0 = 500",
        "?v0 < ?v1",
        "?v0 > 100 && ?v1 < 900",
        "?v0 + ?v1 > 1000",
        "?v0 * 2.5 > 1000.0",
        "CONTAINS(?v2, '99')",
        "REGEX(?v2, 'number [0-9]*99 ')",
        "STRLEN(?v2) > 47",
    ] {
        let compiled = CompiledExpression::new(&parse(text), &evaluator).unwrap();
        let mut selection = Vec::new();
        let start = Instant::now();
        for _ in 0..BATCHES {
            selection.clear();
            compiled.filter(&evaluator, &columns, ROWS, &mut selection).unwrap();
        }
        report(&format!("FILTER({text}), {} rows", selection.len()), start);
    }
    for text in ["?v0 + ?v1", "?v0 / 3", "UCASE(?v2)"] {
        let compiled = CompiledExpression::new(&parse(text), &evaluator).unwrap();
        let mut out = Vec::new();
        let start = Instant::now();
        for _ in 0..BATCHES {
            out.clear();
            compiled.evaluate(&evaluator, &columns, ROWS, &mut out).unwrap();
        }
        report(&format!("BIND({text})"), start);
    }
    let groups: Vec<u32> = (0..ROWS).map(|n| u32::try_from(n % 64).unwrap()).collect();
    for (name, kind) in
        [("COUNT", AggregateKind::Count), ("SUM", AggregateKind::Sum), ("MAX", AggregateKind::Max)]
    {
        let aggregate = Aggregate { kind, expression: Some(parse("?v0")), distinct: false };
        let mut all = Accumulators::new(&aggregate, &evaluator).unwrap();
        let start = Instant::now();
        for _ in 0..BATCHES {
            all.update(&groups, &columns, None).unwrap();
        }
        report(&format!("{name}(?v0) in 64 groups"), start);
    }
    let start = Instant::now();
    let mut keys = Vec::new();
    for batch in 0..BATCHES {
        for &id in &columns[if batch % 2 == 0 { 0 } else { 2 }] {
            keys.push(SortKey::new(&evaluator, id).unwrap());
        }
        keys.clear();
    }
    report("SortKey of a number or a text", start);
}

/// Concurrent computed terms: a new term for each row of each thread, or the same thousand terms for all
/// threads.
#[test]
#[ignore = "a measurement, not a check"]
fn nanoseconds_per_term_by_threads() {
    let snapshot = Terms::default();
    for (what, text) in [
        ("new terms", "CONCAT('a text that is longer than an id ', STR(?v0))"),
        ("known terms", "CONCAT('a text that is longer than an id ', STR(?v1))"),
    ] {
        for threads in [1, 2, 4] {
            let computed = ComputedTerms::new();
            let evaluator = Evaluator::new(&snapshot, &computed, now(), 1);
            let start = Instant::now();
            std::thread::scope(|scope| {
                for thread in 0..threads {
                    let evaluator = &evaluator;
                    scope.spawn(move || {
                        let compiled = CompiledExpression::new(&parse(text), evaluator).unwrap();
                        let id = |n: usize| Inline::Integer(i64::try_from(n).unwrap()).to_id().unwrap();
                        let mut out = Vec::new();
                        for batch in thread * BATCHES..(thread + 1) * BATCHES {
                            let columns = [
                                (batch * ROWS..(batch + 1) * ROWS).map(id).collect::<Vec<Id>>(),
                                (0..ROWS).map(id).collect(),
                            ];
                            out.clear();
                            compiled.evaluate(evaluator, &columns, ROWS, &mut out).unwrap();
                        }
                    });
                }
            });
            let rows = (threads * ROWS * BATCHES) as f64;
            println!("{:8.1} ns  {what}, {threads} threads", start.elapsed().as_nanos() as f64 / rows);
        }
    }
}
