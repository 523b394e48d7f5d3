//! Parallel execution preserves limits, errors, panics, early ends and back-pressure, and does use several
//! threads.
//!
//! Plans are cut into the smallest morsels. A snapshot in front of the graph counts, waits and panics on
//! demand. The step tests of `vervet-kernel` and the random queries of `vervet-conformance` compare the rows
//! for different numbers of threads.
#![allow(clippy::cast_possible_truncation, reason = "small numbers of a test")]

mod probe;

use oxrdf::NamedNode;
use oxsdatatypes::DateTime;
use probe::Probe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use vervet_algebra::{Aggregate, AggregateKind, Expression, OrderKey, Variable};
use vervet_driver_local::{Driver, LocalDriver, Parallelism};
use vervet_expression::{ComputedTerms, Evaluator};
use vervet_kernel::plan::{Access, JoinKind, Operand, Pipeline, Plan, PlanStep, Profile, Step};
use vervet_kernel::{Batch, Control, Flow, Limits};
use vervet_model::{Direction, Error, ErrorKind, Id, Inline, Result};
use vervet_snapshot::{GraphFilter, Snapshot};
use vervet_testkit::{MemorySnapshot, Statement};

const A: Variable = Variable(0);
const B: Variable = Variable(1);
const C: Variable = Variable(2);
const VARIABLES: [Variable; 3] = [A, B, C];

/// Vertices of the graph; each has an edge to each of [`DEGREE`] others.
const VERTICES: u64 = 400;
const DEGREE: u64 = 20;
const ENTRIES: u64 = VERTICES * DEGREE;

/// The graph and its predicate.
fn graph() -> (MemorySnapshot, Id) {
    let mut snapshot = MemorySnapshot::default();
    let predicate = snapshot.intern(&NamedNode::new_unchecked("urn:p").into());
    let vertices: Vec<Id> = (0..VERTICES)
        .map(|i| snapshot.intern(&NamedNode::new_unchecked(format!("urn:v{i}")).into()))
        .collect();
    for (i, &subject) in vertices.iter().enumerate() {
        for step in 1..=DEGREE as usize {
            let object = vertices[(i + step * 7) % vertices.len()];
            snapshot.add(Statement { subject, predicate, object, graph: Id::UNBOUND, edge: Id::UNBOUND });
        }
    }
    (snapshot.finish(), predicate)
}

fn access(predicate: Id) -> Access {
    Access { predicate, direction: Direction::Out, graph: GraphFilter::Default, parallel: false }
}

fn pipeline(steps: Vec<Step>) -> Pipeline {
    let step = |step| PlanStep { step, keep: VARIABLES.to_vec(), rows: ENTRIES as f64, validity: None };
    Pipeline { steps: steps.into_iter().map(step).collect() }
}

fn plan(steps: Vec<Step>) -> Plan {
    Plan {
        pipeline: pipeline(steps),
        variables: vec![String::new(); VARIABLES.len()],
        result: VARIABLES.to_vec(),
        parameters: Vec::new(),
        computed: Vec::new(),
        cost: 1e9,
        joined: Vec::new(),
    }
}

/// All paths of two edges: `ENTRIES * DEGREE` rows.
fn paths(predicate: Id) -> Vec<Step> {
    vec![
        Step::Scan { access: access(predicate), key: A, neighbour: Some(B) },
        Step::Expand { key: Operand::Variable(B), access: access(predicate), neighbour: Some(C), edge: None },
    ]
}

fn count() -> Step {
    let count = Aggregate { kind: AggregateKind::Count, expression: None, distinct: false };
    Step::Group { keys: Vec::new(), aggregates: vec![(A, count)] }
}

fn run(
    driver: &LocalDriver,
    threads: usize,
    plan: &Plan,
    snapshot: &dyn Snapshot,
    control: &Control<'_>,
    sink: &mut dyn FnMut(&Batch) -> Result<Flow>,
) -> Result<Profile> {
    let computed = ComputedTerms::new();
    let evaluator = Evaluator::new(snapshot, &computed, DateTime::MIN, 0);
    let parallelism = Parallelism::eager(threads);
    let mut input = Batch::unit(VARIABLES.len());
    driver.execute(plan, snapshot, &evaluator, control, parallelism, &mut input, true, sink)
}

fn rows(batches: &mut u64) -> impl FnMut(&Batch) -> Result<Flow> {
    |batch| {
        *batches += batch.rows as u64;
        Ok(Flow::More)
    }
}

#[test]
fn several_threads_share_one_query() {
    let (graph, predicate) = graph();
    let probe = Probe::new(&graph, predicate);
    let driver = LocalDriver::default();
    for steps in [paths(predicate), [paths(predicate), vec![count()]].concat()] {
        // On a busy machine a helper may come too late for one query, but hardly for twenty.
        let shared = (0..20).any(|_| {
            probe.forget();
            let mut found = 0;
            let plan = plan(steps.clone());
            let figures = run(&driver, 4, &plan, &probe, &Control::default(), &mut rows(&mut found))
                .expect("nothing stops this query");
            assert!(found == 1 || found == ENTRIES * DEGREE, "{found}");
            let outs: Vec<u64> = figures.steps.iter().map(|step| step.rows_out).collect();
            assert_eq!(outs[..2], [ENTRIES, ENTRIES * DEGREE], "the sums of all threads");
            probe.threads() > 1
        });
        assert!(shared, "one thread did everything");
    }
}

#[test]
fn a_light_plan_stays_on_its_thread() {
    let (graph, predicate) = graph();
    let probe = Probe::new(&graph, predicate);
    let driver = LocalDriver::default();
    let plan = Plan { cost: 1000.0, ..plan(paths(predicate)) };
    let light = Parallelism { threads: Some(4), ..Parallelism::default() };
    assert_eq!(driver.threads(&plan, light), 1);
    assert_eq!(driver.threads(&Plan { cost: 1e9, ..plan.clone() }, light), 4);
    assert!(!driver.steps_in_copies(&plan, light).contains(&true));
    // A row limit makes the plan cheap.
    let first = [paths(predicate), vec![Step::Slice { start: 0, length: Some(1) }]].concat();
    assert_eq!(driver.threads(&Plan { cost: 1e7, ..self::plan(first) }, light), 1);
    let computed = ComputedTerms::new();
    let evaluator = Evaluator::new(&probe, &computed, DateTime::MIN, 0);
    let (mut input, mut found) = (Batch::unit(VARIABLES.len()), 0);
    driver
        .execute(
            &plan,
            &probe,
            &evaluator,
            &Control::default(),
            light,
            &mut input,
            false,
            &mut rows(&mut found),
        )
        .expect("nothing stops this query");
    assert_eq!((found, probe.threads()), (ENTRIES * DEGREE, 1));
}

#[test]
fn a_panic_of_any_thread_is_an_error_and_the_driver_lives_on() {
    let (graph, predicate) = graph();
    let probe = Probe::new(&graph, predicate);
    let driver = LocalDriver::default();
    for fold in [vec![], vec![count()]] {
        let plan = plan([paths(predicate), fold].concat());
        // Only helpers panic, so that the error must reach the calling thread.
        let mut seen = None;
        for _ in 0..20 {
            probe.panic_unless(std::thread::current().id());
            let mut found = 0;
            match run(&driver, 4, &plan, &probe, &Control::default(), &mut rows(&mut found)) {
                Err(error) => seen = Some(error),
                Ok(_) => assert!(probe.threads() <= 1, "a panic was ignored"),
            }
            probe.calm();
        }
        let error = seen.expect("helpers come once in twenty times");
        assert_eq!(error.kind(), ErrorKind::Internal);
        assert!(error.to_string().contains("the probe panics"), "{error}");
        let mut found = 0;
        run(&driver, 4, &plan, &probe, &Control::default(), &mut rows(&mut found)).expect("all is calm");
        assert!(found > 0);
    }
}

#[test]
fn limits_hold_over_all_threads() {
    let (graph, predicate) = graph();
    let driver = LocalDriver::default();
    let order = Step::Order {
        keys: vec![OrderKey { expression: Expression::Variable(C), descending: false }],
        limit: None,
    };
    let ordered = plan([paths(predicate), vec![order]].concat());
    let mut found = 0;
    // Each of four threads alone stays below the cap.
    let needed = {
        let control = Control::default();
        run(&driver, 1, &ordered, &graph, &control, &mut rows(&mut found)).expect("no limit");
        control.memory_bytes()
    };
    let cap = |bytes| Control::new(Limits { memory_bytes: Some(bytes), ..Limits::default() });
    let error = run(&driver, 4, &ordered, &graph, &cap(needed / 2), &mut rows(&mut found));
    assert_eq!(error.expect_err("half is too little").kind(), ErrorKind::MemoryLimit);
    run(&driver, 4, &ordered, &graph, &cap(4 * needed), &mut rows(&mut found)).expect("enough");

    let endless = plan(vec![
        Step::Scan { access: access(predicate), key: A, neighbour: None },
        Step::Scan { access: access(predicate), key: B, neighbour: None },
        Step::Scan { access: access(predicate), key: C, neighbour: None },
        count(),
    ]);
    let timeout = Duration::from_millis(30);
    let deadline = Some((Instant::now() + timeout, timeout));
    let control = Control::new(Limits { deadline, ..Limits::default() });
    let error = run(&driver, 4, &endless, &graph, &control, &mut rows(&mut found)).expect_err("late");
    assert_eq!(error.kind(), ErrorKind::Deadline);

    // Cancels in the middle, after the first read. (Without any read it cancels at the end, so that the test
    // fails instead of hanging.)
    let probe = Probe::new(&graph, predicate);
    let (flag, ended) = (Arc::new(AtomicBool::new(false)), AtomicBool::new(false));
    let control = Control::new(Limits { cancelled: Some(Arc::clone(&flag)), ..Limits::default() });
    let error = std::thread::scope(|scope| {
        scope.spawn(|| {
            while probe.reads() == 0 && !ended.load(Relaxed) {
                std::thread::yield_now();
            }
            flag.store(true, Relaxed);
        });
        let done = run(&driver, 4, &endless, &probe, &control, &mut rows(&mut found));
        ended.store(true, Relaxed);
        done.expect_err("cancelled")
    });
    assert!(probe.reads() > 0, "it was cancelled before it began");
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert!(error.to_string().contains("the query was cancelled"), "{error}");
}

#[test]
fn a_satisfied_consumer_stops_all_threads() {
    let (graph, predicate) = graph();
    let driver = LocalDriver::default();
    let probe = Probe::new(&graph, predicate);
    for start in [0, 5] {
        let slice = Step::Slice { start, length: Some(10) };
        let mut found = 0;
        let plan = plan([paths(predicate), vec![slice]].concat());
        run(&driver, 4, &plan, &probe, &Control::default(), &mut rows(&mut found)).expect("it runs");
        assert_eq!(found, 10);
        assert!(probe.expanded_rows() < ENTRIES / 2, "{} rows for 10", probe.expanded_rows());
        probe.forget();
    }
    // A sink that ends early, and one that fails.
    let mut batches = 0;
    run(&driver, 4, &plan(paths(predicate)), &probe, &Control::default(), &mut |_| {
        batches += 1;
        Ok(Flow::Done)
    })
    .expect("it runs");
    assert_eq!(batches, 1);
    let error = run(&driver, 4, &plan(paths(predicate)), &probe, &Control::default(), &mut |_| {
        Err(Error::new(ErrorKind::Io, "the pipe is closed"))
    });
    assert_eq!(error.expect_err("the sink failed").kind(), ErrorKind::Io);
}

/// The source of an expansion is claimed without a lock around the work: for any degrees of the rows, each
/// entry is found once.
#[test]
fn b16_every_entry_of_an_expansion_is_claimed_once() {
    let (graph, predicate) = hubs();
    let driver = LocalDriver::default();
    let vertex = |number: u64| {
        let term = NamedNode::new_unchecked(format!("urn:v{number}"));
        graph.lookup(oxrdf::TermRef::NamedNode(term.as_ref())).expect("whole").expect("it is there")
    };
    let every: Vec<u64> = (0..VERTICES).collect();
    let among: Vec<u64> = (0..VERTICES).map(|number| if number % 150 == 90 { 0 } else { number }).collect();
    for head in [vec![0], vec![1, 0, 1, 0, 399], vec![399], every, among] {
        let rows: Vec<Vec<Id>> = head.iter().map(|number| vec![vertex(*number)]).collect();
        let to = |key, neighbour| Step::Expand {
            key: Operand::Variable(key),
            access: access(predicate),
            neighbour: Some(neighbour),
            edge: None,
        };
        let steps = vec![Step::Values { variables: vec![A], rows: rows.into() }, to(A, B), to(B, C)];
        let found = |threads| {
            let mut rows: Vec<[u64; 3]> = Vec::new();
            let mut sink = |batch: &Batch| {
                let value = |variable, row| batch.value(variable, row).bits();
                rows.extend((0..batch.rows).map(|row| VARIABLES.map(|variable| value(variable, row))));
                Ok(Flow::More)
            };
            run(&driver, threads, &plan(steps.clone()), &graph, &Control::default(), &mut sink)
                .expect("nothing stops this query");
            rows.sort_unstable();
            rows
        };
        let wanted = found(1);
        for threads in [2, 4, 8] {
            assert!(found(threads) == wanted, "{threads} threads, head of {} rows", head.len());
        }
    }
}

/// Vertex 0 has an edge to every vertex, 399 has none, and the others have 0 to 6.
fn hubs() -> (MemorySnapshot, Id) {
    let mut snapshot = MemorySnapshot::default();
    let predicate = snapshot.intern(&NamedNode::new_unchecked("urn:p").into());
    let vertices: Vec<Id> = (0..VERTICES)
        .map(|i| snapshot.intern(&NamedNode::new_unchecked(format!("urn:v{i}")).into()))
        .collect();
    let mut add = |subject: usize, object: usize| {
        let (subject, object) = (vertices[subject], vertices[object % vertices.len()]);
        snapshot.add(Statement { subject, predicate, object, graph: Id::UNBOUND, edge: Id::UNBOUND });
    };
    for number in 0..vertices.len() {
        add(0, number);
        (0..number % 7).filter(|_| number < 399).for_each(|step| add(number, number + 11 * step + 1));
    }
    (snapshot.finish(), predicate)
}

#[test]
fn a_slow_reader_causes_back_pressure() {
    let (graph, predicate) = graph();
    let probe = Probe::new(&graph, predicate);
    let driver = LocalDriver::default();
    let (mut found, mut ahead_max) = (0, 0);
    let mut count = 0;
    run(&driver, 2, &plan(paths(predicate)), &probe, &Control::default(), &mut |batch| {
        found += batch.rows as u64;
        count += 1;
        if count % 8 == 0 {
            std::thread::sleep(Duration::from_millis(2));
        }
        ahead_max = ahead_max.max((probe.expanded_rows() * DEGREE).saturating_sub(found));
        Ok(Flow::More)
    })
    .expect("nothing stops this query");
    assert_eq!(found, ENTRIES * DEGREE);
    // Two batches for each thread are in the channel, and each thread processes a morsel.
    assert!(ahead_max < found / 2, "{ahead_max} of {found} rows were computed ahead of the reader");
}

#[test]
fn queries_that_share_helpers_all_end() {
    let (graph, predicate) = graph();
    let driver = LocalDriver::default();
    let total = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                for _ in 0..10 {
                    let mut found = 0;
                    let plan = plan(paths(predicate));
                    run(&driver, 3, &plan, &graph, &Control::default(), &mut rows(&mut found))
                        .expect("it runs");
                    total.fetch_add(found, Relaxed);
                }
            });
        }
    });
    assert_eq!(total.into_inner(), 60 * ENTRIES * DEGREE);
}

/// Entries of the hub of the next test: several claims, of which each is returned once.
const HUB_DEGREE: u64 = 2_100;

/// A helper that expands the last claim returns the rest of it when the calling thread has seen that no claim
/// is left; if it then gives way to another query, the calling thread takes that rest.
#[test]
fn helpers_that_give_way_lose_no_rows() {
    let mut graph = MemorySnapshot::default();
    let mut vertex = |name: String| graph.intern(&NamedNode::new_unchecked(name).into());
    let (predicate, hub) = (vertex("urn:p".to_owned()), vertex("urn:hub".to_owned()));
    let others: Vec<Id> = (0..HUB_DEGREE).map(|number| vertex(format!("urn:v{number}"))).collect();
    for object in others {
        for [subject, object] in [[hub, object], [object, hub]] {
            graph.add(Statement { subject, predicate, object, graph: Id::UNBOUND, edge: Id::UNBOUND });
        }
    }
    let graph = graph.finish();
    let probe = Probe::new(&graph, predicate);
    // Longer than the time slice of a helper, so that each gives way after each of its claims.
    probe.slow_down(11_000);
    let access = access(predicate);
    let to = |key, neighbour| Step::Expand {
        key: Operand::Variable(key),
        access,
        neighbour: Some(neighbour),
        edge: None,
    };
    let steps = vec![Step::Values { variables: vec![A], rows: vec![vec![hub]].into() }, to(A, B), to(B, C)];
    let driver = LocalDriver::default();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..6 {
                    let mut found = 0;
                    let plan = plan(steps.clone());
                    run(&driver, 2, &plan, &probe, &Control::default(), &mut rows(&mut found))
                        .expect("it runs");
                    assert_eq!(found, HUB_DEGREE);
                }
            });
        }
    });
}

#[test]
fn the_right_side_of_a_join_is_cut_too() {
    let (graph, predicate) = graph();
    let driver = LocalDriver::default();
    let join = |kind| Step::Join {
        right: pipeline(vec![
            Step::Scan { access: access(predicate), key: A, neighbour: Some(B) },
            Step::Expand {
                key: Operand::Variable(B),
                access: access(predicate),
                neighbour: Some(C),
                edge: None,
            },
            Step::Distinct { variables: vec![A, C] },
        ]),
        kind,
        on: vec![A, C],
        compatible: vec![],
        adds: vec![B],
    };
    let left = Step::Scan { access: access(predicate), key: A, neighbour: Some(C) };
    for kind in [JoinKind::Inner(None), JoinKind::Left(None), JoinKind::Semi(None), JoinKind::Anti(None)] {
        let plan = plan(vec![left.clone(), join(kind.clone())]);
        let copies = driver.steps_in_copies(&plan, Parallelism::eager(4));
        assert_eq!(copies, [true; 5]);
        let mut found = [0; 2];
        for (threads, found) in [1, 4].into_iter().zip(&mut found) {
            let figures = run(&driver, threads, &plan, &graph, &Control::default(), &mut rows(found));
            let figures = figures.expect("nothing stops this query");
            assert_eq!(figures.steps[3].rows_out, ENTRIES * DEGREE, "{threads} threads, {kind:?}");
            assert_eq!(figures.steps[1].rows_out, *found);
        }
        assert_eq!(found[0], found[1], "{kind:?}");
    }
}

#[test]
fn a_head_with_many_rows_goes_in_rounds() {
    let (graph, _) = graph();
    let driver = LocalDriver::default();
    let table: Vec<Vec<Id>> =
        (0..150_000).map(|number| vec![Inline::Integer(number).to_id().expect("fits")]).collect();
    let three = Expression::Constant(oxrdf::Literal::from(3).into());
    let steps = vec![
        Step::Values { variables: vec![B], rows: table.into() },
        Step::Extend { variable: C, expression: three },
    ];
    for threads in [1, 2, 4] {
        let mut found = 0;
        run(&driver, threads, &plan(steps.clone()), &graph, &Control::default(), &mut rows(&mut found))
            .expect("nothing stops this query");
        assert_eq!(found, 150_000, "{threads} threads");
        // A full slice ends the head too.
        let slice = Step::Slice { start: 70_000, length: Some(10) };
        let mut found = 0;
        let cut = plan([steps.clone(), vec![slice]].concat());
        run(&driver, threads, &cut, &graph, &Control::default(), &mut rows(&mut found)).expect("it runs");
        assert_eq!(found, 10, "{threads} threads");
    }
}

#[test]
fn sums_of_partial_groups() {
    let (graph, predicate) = graph();
    let driver = LocalDriver::default();
    let of = |kind, distinct| Aggregate { kind, expression: Some(Expression::Variable(C)), distinct };
    let number =
        Step::Extend { variable: C, expression: Expression::Constant(oxrdf::Literal::from(3).into()) };
    for (kind, distinct, each) in [
        (AggregateKind::Sum, false, 3 * DEGREE),
        (AggregateKind::Sum, true, 3),
        (AggregateKind::Avg, false, 3),
        (AggregateKind::Count, false, DEGREE),
        (AggregateKind::Count, true, 1),
        (AggregateKind::Min, false, 3),
        (AggregateKind::Max, true, 3),
        (AggregateKind::Sample, false, 3),
    ] {
        // Grouped by neighbour: the rows of a group are in all morsels.
        let group = Step::Group { keys: vec![B], aggregates: vec![(A, of(kind.clone(), distinct))] };
        let scan = Step::Scan { access: access(predicate), key: A, neighbour: Some(B) };
        let plan = plan(vec![scan, number.clone(), group]);
        let expected = Inline::Integer(i64::try_from(each).expect("small")).to_id().expect("fits");
        let mut groups = 0;
        run(&driver, 4, &plan, &graph, &Control::default(), &mut |batch| {
            groups += batch.rows as u64;
            for &id in &batch.columns[A.index()] {
                let value = Inline::from_id(id).map(|value| {
                    let mut text = String::new();
                    value.write_lexical(&mut text);
                    text
                });
                assert_eq!(value.as_deref(), Some(each.to_string().as_str()), "{kind:?} {expected:?}");
            }
            Ok(Flow::More)
        })
        .expect("nothing stops this query");
        assert_eq!(groups, VERTICES, "{kind:?}");
    }
}
