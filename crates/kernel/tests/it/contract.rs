//! Contract of `trait Kernel`, for every step of a plan: a kernel accepts batches after [`Flow::Done`] as
//! before, stops soon after cancellation, and counts all memory that it takes.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use oxrdf::NamedNode;
use oxsdatatypes::DateTime;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};
use vervet_algebra::{Aggregate, AggregateKind, Expression, Function, OrderKey, Path, Variable};
use vervet_expression::{ComputedTerms, Evaluator};
use vervet_kernel::parallel::Stages;
use vervet_kernel::plan::{
    Access, Automaton, CandidateKeys, GraphOperand, JoinKind, Leg, Match, Move, Operand, PathGraphs,
    PathStep, Pipeline, Plan, PlanStep, SemiJoinKind, Step,
};
use vervet_kernel::{Batch, Control, Flow, Limits, Run};
use vervet_model::{Direction, ErrorKind, Id, Inline, Result};
use vervet_snapshot::GraphFilter;
use vervet_testkit::{MemorySnapshot, Statement};

const A: Variable = Variable(0);
const B: Variable = Variable(1);
const C: Variable = Variable(2);
const D: Variable = Variable(3);
const ROW: Variable = Variable(4);
const VARIABLES: usize = 5;

/// Rows of an input batch.
const ROWS: usize = 300;

struct World {
    snapshot: MemorySnapshot,
    vertices: Vec<Id>,
    predicates: Vec<Id>,
    edges: Vec<Id>,
}

/// `count` vertices, each with `degree` neighbours by each of three predicates; some in named graphs, some
/// with edges.
fn world(count: usize, degree: usize) -> World {
    let mut snapshot = MemorySnapshot::default();
    let mut node = |name: String| snapshot.intern(&NamedNode::new_unchecked(name).into());
    let vertices: Vec<Id> = (0..count).map(|i| node(format!("urn:v{i}"))).collect();
    let predicates: Vec<Id> = (0..3).map(|i| node(format!("urn:p{i}"))).collect();
    let graphs: Vec<Id> = (0..3).map(|i| node(format!("urn:g{i}"))).collect();
    let mut edges = Vec::new();
    for (number, &subject) in vertices.iter().enumerate() {
        for (at, &predicate) in predicates.iter().enumerate() {
            for step in 0..degree {
                let object = vertices[(number * (at + 1) + step) % count];
                snapshot.add(Statement { subject, predicate, object, graph: Id::UNBOUND, edge: Id::UNBOUND });
            }
        }
        let object = vertices[(number + 1) % count];
        snapshot.add(Statement {
            subject,
            predicate: predicates[0],
            object,
            graph: graphs[number % 3],
            edge: Id::UNBOUND,
        });
        edges.push(snapshot.add_edge(subject, predicates[1], object, Id::UNBOUND));
    }
    World { snapshot: snapshot.finish(), vertices, predicates, edges }
}

/// A chain of steps under test, and the input of the first.
struct Case {
    name: &'static str,
    steps: Vec<Step>,
    /// One empty row; otherwise rows that bind `A` (vertices) and `D` (edges).
    from_unit: bool,
    /// The output for a batch depends on earlier batches.
    has_state: bool,
    /// Its memory grows with its input.
    holds: bool,
}

fn integer(number: usize) -> Id {
    Inline::Integer(i64::try_from(number).unwrap()).to_id().unwrap()
}

fn pipeline(steps: Vec<Step>) -> Pipeline {
    let keep = vec![A, B, C, D, ROW];
    Pipeline {
        steps: steps
            .into_iter()
            .map(|step| PlanStep { step, keep: keep.clone(), rows: 0.0, validity: None })
            .collect(),
    }
}

fn variable(variable: Variable) -> Expression {
    Expression::Variable(variable)
}

fn call(function: Function, arguments: Vec<Expression>) -> Expression {
    Expression::Call(function, arguments)
}

impl World {
    fn access(&self, predicate: usize, direction: Direction) -> Access {
        let predicate = self.predicates[predicate];
        Access { predicate, direction, graph: GraphFilter::Default, parallel: false }
    }

    fn pattern(&self, subject: Operand, predicate: Operand, object: Operand) -> Match {
        let graph = GraphOperand::Filter(GraphFilter::Default);
        Match { subject, predicate, object, graph, edge: None, parallel: false, predicates_once: false }
    }

    fn path(&self, subject: Operand, object: Operand, graphs: PathGraphs) -> Step {
        let step = |to| (Move::Predicate(self.predicates[0], Direction::Out), to);
        let automaton = Automaton { moves: vec![vec![step(1)], vec![step(1)]], accepting: vec![false, true] };
        let iri = NamedNode::new_unchecked("urn:p0");
        Step::Path(PathStep {
            subject,
            object,
            path: Path::OneOrMore(Box::new(Path::Predicate(iri))),
            automaton: Arc::new(automaton),
            graphs,
            zero_length: [false, false],
            tested: [false, false],
        })
    }

    /// A path of which one end is only tested.
    fn tested_path(&self, subject: Operand, object: Operand) -> Step {
        match self.path(subject, object, PathGraphs::These(vec![GraphFilter::Default])) {
            Step::Path(path) => Step::Path(PathStep { tested: [false, true], ..path }),
            step => step,
        }
    }

    fn table(&self, variables: Vec<Variable>, rows: usize) -> Step {
        let row = |number| vec![integer(number); variables.len()];
        Step::Values { rows: (0..rows).map(row).collect(), variables }
    }

    /// Every kind of step, and each method of its kernel. `size`: rows of tables.
    fn cases(&self, size: usize) -> Vec<Case> {
        let (a, b) = (Operand::Variable(A), Operand::Variable(B));
        let vertex = |number: usize| Operand::Constant(self.vertices[number]);
        let out = Direction::Out;
        let expand = || Step::Expand { key: a, access: self.access(0, out), neighbour: Some(B), edge: None };
        let scan = |neighbour| Step::Scan { access: self.access(0, out), key: B, neighbour };
        let candidates = || CandidateKeys {
            keys: vec![(self.vertices[0], self.vertices[3]), (self.vertices[7], self.vertices[20])],
            ..CandidateKeys::default()
        };
        let seek = |neighbour| Step::Seek {
            access: self.access(0, out),
            key: B,
            neighbour,
            candidates: candidates(),
        };
        let legs = |second| {
            let leg = |key, predicate| Leg { key, access: self.access(predicate, out) };
            vec![leg(a, 0), leg(b, second)]
        };
        let intersect = |count_only| Step::Intersect { target: C, legs: legs(1), count_only };
        let general = |pattern: Match| Step::Match(pattern);
        let any = Operand::Variable(C);
        let join = |kind, on: Vec<Variable>, compatible: Vec<Variable>| Step::Join {
            right: pipeline(vec![Step::Scan { access: self.access(0, out), key: A, neighbour: Some(B) }]),
            kind,
            on,
            compatible,
            adds: vec![B],
        };
        let sum = |kind, expression| (C, Aggregate { kind, expression, distinct: false });
        let order = |limit| Step::Order {
            keys: vec![OrderKey { expression: call(Function::Str, vec![variable(A)]), descending: false }],
            limit,
        };
        let exists = |semi_join_kind| Step::Exists {
            inner: pipeline(vec![general(self.pattern(a, any, b))]),
            row: ROW,
            semi_join_kind,
        };
        let default = || PathGraphs::These(vec![GraphFilter::Default]);
        let mut cases = Vec::new();
        let mut add = |name, steps: Vec<Step>| {
            cases.push(Case { name, steps, from_unit: false, has_state: false, holds: false });
        };
        add("empty", vec![Step::Empty]);
        add("scan", vec![scan(Some(C))]);
        add("scan of keys", vec![scan(None)]);
        add("seek", vec![seek(Some(C))]);
        add("seek of keys", vec![seek(None)]);
        add("expand", vec![expand()]);
        let of_edges =
            Step::Expand { key: a, access: self.access(1, out), neighbour: Some(B), edge: Some(C) };
        add("expand with edges", vec![of_edges]);
        let degree = Step::Expand { key: a, access: self.access(0, out), neighbour: None, edge: None };
        add("degree", vec![degree]);
        add("check", vec![expand(), Step::Check { key: a, access: self.access(2, out), neighbour: b }]);
        add(
            "check of a constant",
            vec![Step::Check { key: a, access: self.access(0, out), neighbour: vertex(5) }],
        );
        add("intersect", vec![expand(), intersect(false)]);
        add("intersect and count", vec![expand(), intersect(true)]);
        add("match by predicate", vec![general(self.pattern(a, Operand::Constant(self.predicates[0]), b))]);
        add("match of any predicate", vec![general(self.pattern(a, any, b))]);
        add("match by object", vec![general(self.pattern(b, any, a))]);
        let all = self.pattern(b, any, Operand::Variable(ROW));
        add("match of all statements", vec![general(all)]);
        add(
            "match of nothing known",
            vec![general(self.pattern(b, Operand::Constant(self.predicates[0]), any))],
        );
        add(
            "match by edge",
            vec![general(Match {
                edge: Some(Operand::Variable(D)),
                ..self.pattern(b, any, Operand::Variable(ROW))
            })],
        );
        add(
            "match of graphs",
            vec![general(Match {
                graph: GraphOperand::Variable(C),
                ..self.pattern(a, Operand::Constant(self.predicates[0]), b)
            })],
        );
        let seek_match = |pattern| Step::SeekMatch { pattern, candidates: candidates() };
        add("seek of any predicate", vec![seek_match(self.pattern(b, Operand::Variable(ROW), any))]);
        add("seek from a subject", vec![seek_match(self.pattern(a, any, b))]);
        let text = call(Function::Str, vec![variable(A)]);
        add(
            "filter",
            vec![Step::Filter(call(
                Function::Contains,
                vec![text.clone(), Expression::Constant(oxrdf::Literal::from("1").into())],
            ))],
        );
        add("values", vec![self.table(vec![B], size)]);
        add("values of a bound variable", vec![self.table(vec![B], 40), self.table(vec![B, C], size)]);
        add("inner join", vec![join(JoinKind::Inner(None), vec![A], vec![])]);
        add("join of what may be unbound", vec![join(JoinKind::Inner(None), vec![], vec![A])]);
        add("left join", vec![join(JoinKind::Left(None), vec![A], vec![])]);
        add(
            "left join with a condition",
            vec![join(
                JoinKind::Left(Some(Expression::Equal(Box::new(variable(A)), Box::new(variable(B))))),
                vec![A],
                vec![],
            )],
        );
        add("minus", vec![join(JoinKind::Minus, vec![A], vec![])]);
        add("semi-join", vec![join(JoinKind::Semi(None), vec![A], vec![])]);
        add("anti-join", vec![join(JoinKind::Anti(None), vec![A], vec![])]);
        add(
            "optional",
            vec![Step::Optional { inner: pipeline(vec![general(self.pattern(a, any, b))]), row: ROW }],
        );
        add(
            "optional from each value",
            vec![Step::Seeded { inner: pipeline(vec![expand()]), seed: A, on: vec![A], adds: vec![B] }],
        );
        add("exists", vec![exists(SemiJoinKind::Semi)]);
        add("not exists", vec![exists(SemiJoinKind::Anti)]);
        add("mark", vec![exists(SemiJoinKind::Mark(B))]);
        add(
            "union",
            vec![Step::Union {
                branches: vec![pipeline(vec![general(self.pattern(a, any, b))]), pipeline(vec![expand()])],
            }],
        );
        add("path from subjects", vec![self.path(a, b, default())]);
        add("path from objects", vec![self.path(b, a, default())]);
        add("path between", vec![expand(), self.path(a, b, default())]);
        add("path from anywhere", vec![self.path(b, any, default())]);
        add("tested path", vec![self.tested_path(a, b)]);
        add("tested path from anywhere", vec![self.tested_path(b, any)]);
        add("path in any graph", vec![self.path(a, b, PathGraphs::Variable(C))]);
        add(
            "once",
            vec![
                Step::Extend { variable: B, expression: call(Function::Rand, vec![]) },
                Step::Filter(Expression::Bound(B)),
                Step::Extend { variable: B, expression: Expression::Unbound },
            ],
        );
        let mut state = |name, from_unit, steps: Vec<Step>| {
            cases.push(Case { name, steps, from_unit, has_state: true, holds: true });
        };
        state(
            "extend",
            false,
            vec![Step::Extend {
                variable: B,
                expression: call(Function::Concat, vec![text.clone(), text.clone(), text]),
            }],
        );
        state(
            "group",
            false,
            vec![expand(), Step::Group { keys: vec![A], aggregates: vec![sum(AggregateKind::Count, None)] }],
        );
        state(
            "group of strings",
            false,
            vec![
                expand(),
                Step::Group {
                    keys: vec![B],
                    aggregates: vec![sum(
                        AggregateKind::GroupConcat { separator: " ".to_owned() },
                        Some(call(Function::Str, vec![variable(A)])),
                    )],
                },
            ],
        );
        state("distinct nodes", false, vec![Step::Distinct { variables: vec![A] }]);
        state("distinct", false, vec![expand(), Step::Distinct { variables: vec![A, B] }]);
        state(
            "grouped distinct",
            true,
            vec![
                Step::Scan { access: self.access(0, out), key: A, neighbour: Some(B) },
                Step::Distinct { variables: vec![A, B] },
            ],
        );
        state("frontier", false, vec![Step::Frontier { variables: vec![A] }]);
        state("frontier of two columns", false, vec![expand(), Step::Frontier { variables: vec![A, B] }]);
        state("order", false, vec![order(None)]);
        state("order with a limit", false, vec![order(Some(700))]);
        state("slice", false, vec![expand(), Step::Slice { start: 900, length: Some(100_000) }]);
        state("slice that ends", false, vec![expand(), Step::Slice { start: 10, length: Some(1_500) }]);
        cases
    }

    /// The `number`-th batch of a case. `fresh`: no value repeats, as far as the graph allows.
    fn input(&self, case: &Case, number: usize, fresh: bool) -> Batch {
        if case.from_unit {
            return Batch::unit(VARIABLES);
        }
        let mut batch = Batch::new(VARIABLES);
        let value = |row: usize| match fresh {
            true => integer(number * ROWS + row),
            // Equal values are consecutive, as earlier steps output them.
            false => self.vertices[(number * 7 + row / 5) % self.vertices.len()],
        };
        batch.columns[A.index()] = (0..ROWS).map(value).collect();
        batch.columns[D.index()] =
            (0..ROWS).map(|row| self.edges[(number + row) % self.edges.len()]).collect();
        batch.rows = ROWS;
        batch
    }
}

fn plan(steps: &[Step]) -> Plan {
    Plan {
        pipeline: pipeline(steps.to_vec()),
        variables: vec![String::new(); VARIABLES],
        result: vec![A, B, C, D],
        parameters: Vec::new(),
        computed: Vec::new(),
        cost: 0.0,
        joined: Vec::new(),
    }
}

/// Runs `work` with the kernels of `steps`.
fn with_stages<T>(
    world: &World,
    steps: &[Step],
    control: &Control<'_>,
    work: impl for<'a> FnOnce(Stages<'a>, &Run<'a>) -> T,
) -> Result<T> {
    let plan = plan(steps);
    let computed = ComputedTerms::new();
    let evaluator = Evaluator::new(&world.snapshot, &computed, DateTime::MIN, 0);
    let solutions = AtomicU64::new(0);
    let run = Run::new(&plan, &world.snapshot, &evaluator, control, &solutions, false);
    Ok(work(Stages::whole(&plan.pipeline, &run)?, &run))
}

type RowsWithMultiplicity = Vec<([u64; 4], u128)>;

fn push<'a>(
    stages: &mut Stages<'a>,
    run: &Run<'a>,
    batch: Option<&mut Batch>,
    answer: Flow,
) -> Result<RowsWithMultiplicity> {
    let mut rows = Vec::new();
    let mut sink = |batch: &mut Batch| {
        let ids = |row| [A, B, C, D].map(|variable| batch.value(variable, row).bits());
        rows.extend((0..batch.rows).map(|row| (ids(row), batch.times(row).get())));
        Ok(answer)
    };
    match batch {
        Some(batch) => _ = stages.push(batch, run, &mut sink)?,
        None => stages.finish(run, &mut sink)?,
    }
    rows.sort_unstable();
    Ok(rows)
}

/// Finding "query B3": the sink of `EXISTS` ends a batch as soon as each of its rows has a match, and the
/// next batch enters the same kernels.
#[test]
fn b3_kernels_take_batches_after_done() {
    let world = world(50, 9);
    let late = Some((Instant::now() + Duration::from_secs(20), Duration::from_secs(20)));
    for case in world.cases(400) {
        let control = Control::new(Limits { deadline: late, ..Limits::default() });
        let run = |ended: Flow| {
            with_stages(&world, &case.steps, &control, |mut stages, run| {
                // Only a stateful kernel must have processed the earlier batches.
                let before = if ended == Flow::Done || case.has_state { 2 } else { 0 };
                for number in 0..before {
                    push(&mut stages, run, Some(&mut world.input(&case, number, false)), ended)?;
                }
                let mut batch = world.input(&case, 2, false);
                let rows = push(&mut stages, run, Some(&mut batch), Flow::More)?;
                let last = push(&mut stages, run, None, Flow::More)?;
                Ok::<_, vervet_model::Error>((rows, last))
            })?
        };
        let expected = run(Flow::More).unwrap_or_else(|error| panic!("{}: {error}", case.name));
        let found = run(Flow::Done).unwrap_or_else(|error| panic!("{} after Done: {error}", case.name));
        // A step before a stateful one ends early too, so the stateful one has received less.
        if !case.has_state || case.steps.len() == 1 {
            assert!(found == expected, "{}: other rows after Done", case.name);
        }
        let rows = expected.0.len() + expected.1.len();
        let is_empty = matches!(
            case.name,
            "empty"
                | "slice that ends"
                | "minus"
                | "anti-join"
                | "not exists"
                | "distinct nodes"
                | "frontier"
                | "frontier of two columns"
                | "distinct"
                | "grouped distinct"
        );
        assert!(rows > 0 || is_empty, "{} finds nothing", case.name);
    }
}

/// Each kind of step has a case; a new kind without one does not compile.
#[test]
fn every_step_has_a_case() {
    fn kind(step: &Step) -> usize {
        match step {
            Step::Empty => 0,
            Step::Scan { .. } => 1,
            Step::Seek { .. } => 2,
            Step::Expand { .. } => 3,
            Step::Check { .. } => 4,
            Step::Intersect { .. } => 5,
            Step::Match(_) => 6,
            Step::Filter(_) => 7,
            Step::Extend { .. } => 8,
            Step::Values { .. } => 9,
            Step::Join { .. } => 10,
            Step::Optional { .. } => 11,
            Step::Path(_) => 12,
            Step::Exists { .. } => 13,
            Step::Union { .. } => 14,
            Step::Group { .. } => 15,
            Step::Distinct { .. } => 16,
            Step::Frontier { .. } => 17,
            Step::Order { .. } => 18,
            Step::Slice { .. } => 19,
            Step::SeekMatch { .. } => 20,
            Step::Seeded { .. } => 21,
        }
    }
    let world = world(60, 2);
    let cases = world.cases(10);
    let kinds: BTreeSet<usize> = cases.iter().flat_map(|case| &case.steps).map(kind).collect();
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), (0..22).collect::<Vec<_>>());
}

/// Time until each kernel, given an endless sequence of batches, stops after cancellation. The bound is for
/// slow machines; an idle one takes less than 10 ms.
#[test]
fn every_kernel_stops_when_it_is_cancelled() {
    let world = world(300, 150);
    for case in world.cases(100_000) {
        let cancelled = Arc::new(AtomicBool::new(false));
        let limits = Limits { cancelled: Some(Arc::clone(&cancelled)), ..Limits::default() };
        let started = AtomicBool::new(false);
        let (error, ended) = std::thread::scope(|scope| {
            let worker = scope.spawn(|| {
                let control = Control::new(limits);
                let error = with_stages(&world, &case.steps, &control, |mut stages, run| {
                    started.store(true, SeqCst);
                    (0..).find_map(|number| {
                        let mut batch = world.input(&case, number, false);
                        stages.push(&mut batch, run, &mut |_| Ok(Flow::More)).err()
                    })
                });
                (error.unwrap().unwrap(), Instant::now())
            });
            while !started.load(SeqCst) {
                std::thread::yield_now();
            }
            std::thread::sleep(Duration::from_millis(5));
            let begun = Instant::now();
            cancelled.store(true, SeqCst);
            let (error, ended) = worker.join().unwrap();
            (error, ended.saturating_duration_since(begun))
        });
        assert_eq!(error.kind(), ErrorKind::Cancelled, "{}", case.name);
        assert!(ended < Duration::from_millis(500), "{} ran for another {ended:?}", case.name);
    }
}

/// With a tiny cap a kernel that buffers its input fails, and any other takes no more than its batches.
#[test]
fn every_kernel_counts_its_memory() {
    const CAP_BYTES: u64 = 64 << 10;
    // Kernels that find the whole graph for each row take most of the time: a small graph suffices for those
    // without a table.
    let (large, small) = (world(300, 20), world(30, 6));
    for (case, of_small) in large.cases(200).into_iter().zip(small.cases(200)) {
        let has_table = case.name.contains("join")
            || case.name == "minus"
            || case.name.contains("path")
            || case.name.contains("intersect")
            // Values of RAND() are computed terms of the query.
            || case.name == "once";
        let is_small = !case.holds && !has_table || case.name == "path from anywhere";
        let (world, case) = if is_small { (&small, of_small) } else { (&large, case) };
        let control = Control::new(Limits { memory_bytes: Some(CAP_BYTES), ..Limits::default() });
        let error = with_stages(world, &case.steps, &control, |mut stages, run| {
            (0..60).find_map(|number| {
                let fresh = case.has_state && !matches!(case.steps[0], Step::Expand { .. });
                let mut batch = world.input(&case, number, fresh);
                stages.push(&mut batch, run, &mut |_| Ok(Flow::More)).err()
            })
        })
        .unwrap();
        // These hold tables of a fixed size, end by themselves, or stop deduplicating.
        let ends = matches!(
            case.name,
            "slice"
                | "slice that ends"
                | "frontier"
                | "frontier of two columns"
                | "order with a limit"
                | "group"
                | "grouped distinct"
        );
        match error {
            Some(error) => {
                assert_eq!(error.kind(), ErrorKind::MemoryLimit, "{}", case.name);
                assert!(case.holds || has_table || ends, "{} holds memory", case.name);
            }
            None => assert!(!case.holds || ends, "{} does not count its memory", case.name),
        }
    }
}

/// The bytes that a case counts for one batch.
fn bytes_of(world: &World, case: &Case) -> u64 {
    let control = Control::default();
    with_stages(world, &case.steps, &control, |mut stages, run| {
        let before = run.control().memory_bytes();
        stages.push(&mut world.input(case, 0, false), run, &mut |_| Ok(Flow::More)).unwrap();
        run.control().memory_bytes() - before
    })
    .unwrap()
}

fn case(steps: Vec<Step>, from_unit: bool) -> Case {
    Case { name: "", steps, from_unit, has_state: true, holds: true }
}

/// Finding "query B12": pairs of few rows took 4 bytes for each vertex of the graph.
#[test]
fn b12_distinct_pairs_of_few_rows_take_little_memory() {
    let world = world(40_000, 1);
    let candidates =
        CandidateKeys { keys: vec![(world.vertices[0], world.vertices[3])], ..CandidateKeys::default() };
    let access = world.access(0, Direction::Out);
    let few = Step::Seek { access, key: A, neighbour: Some(B), candidates };
    let all = Step::Scan { access, key: A, neighbour: Some(B) };
    let distinct = Step::Distinct { variables: vec![A, B] };
    let bytes = bytes_of(&world, &case(vec![few, distinct.clone()], true));
    assert!(bytes < 10_000, "{bytes} bytes for a few rows");
    // Many rows have stamps instead of a table: 4 bytes for each vertex instead of 21 for each row.
    let bytes = bytes_of(&world, &case(vec![all.clone(), distinct.clone()], true));
    assert!(bytes < 40_000 * 8, "{bytes} bytes for all rows");
    // Both variants output the same pairs; with edges, and with graphs in which a pair repeats.
    let rows = |steps: &[Step], memory_bytes: Option<u64>| {
        let control = Control::new(Limits { memory_bytes, ..Limits::default() });
        with_stages(&world, steps, &control, |mut stages, run| {
            push(&mut stages, run, Some(&mut Batch::unit(VARIABLES)), Flow::More)
        })
        .unwrap()
        .unwrap()
    };
    let anywhere = Access { graph: GraphFilter::Any, parallel: true, ..access };
    let all = Step::Scan { access: anywhere, key: A, neighbour: Some(B) };
    let mut expected = rows(std::slice::from_ref(&all), None);
    expected.dedup();
    assert!(rows(&[all, distinct.clone()], None) == expected);
    // Without memory for stamps the hash table remains in use.
    let candidates =
        CandidateKeys { keys: vec![(world.vertices[0], world.vertices[999])], ..CandidateKeys::default() };
    let some = Step::Seek { access: anywhere, key: A, neighbour: Some(B), candidates };
    let mut expected = rows(std::slice::from_ref(&some), None);
    expected.dedup();
    assert!(expected.len() > 40_000 / 64 && rows(&[some, distinct], Some(100_000)) == expected);
}

/// Finding "query B13": rows times graphs were listed first, 32 bytes each.
#[test]
fn b13_paths_in_any_graph_take_no_memory_for_graphs() {
    let mut snapshot = MemorySnapshot::default();
    let mut node = |name: String| snapshot.intern(&NamedNode::new_unchecked(name).into());
    let vertices: Vec<Id> = (0..20).map(|i| node(format!("urn:v{i}"))).collect();
    let graphs: Vec<Id> = (0..400).map(|i| node(format!("urn:g{i}"))).collect();
    let predicates = vec![node("urn:p0".to_owned())];
    for (number, &graph) in graphs.iter().enumerate() {
        let (subject, object) = (vertices[number % 20], vertices[(number + 1) % 20]);
        snapshot.add(Statement { subject, predicate: predicates[0], object, graph, edge: Id::UNBOUND });
    }
    let world = World { snapshot: snapshot.finish(), vertices, predicates, edges: vec![Id::UNBOUND] };
    let path = world.path(Operand::Variable(A), Operand::Variable(B), PathGraphs::Variable(C));
    let case = case(vec![path], false);
    let bytes = bytes_of(&world, &case);
    assert!(bytes < 32 * 400 * ROWS as u64 / 20, "{bytes} bytes for {ROWS} rows and 400 graphs");
    let found = with_stages(&world, &case.steps, &Control::default(), |mut stages, run| {
        push(&mut stages, run, Some(&mut world.input(&case, 0, false)), Flow::More)
    })
    .unwrap()
    .unwrap();
    // In each graph one statement, whose subject is in a twentieth of the rows.
    assert_eq!(found.len(), 400 * ROWS / 20);
}
