//! Random plans on the simulated device, against the kernels of the CPU.
//!
//! Each seed makes a graph (named graphs, parallel edges, hubs, literals of several kinds), a plan and the
//! sizes of the device: windows, strips and memory small enough that segments do not fit. Plans have filters
//! (with values that ids do not decide), `EXISTS`, optional parts, frontiers, distinct and groups. Results
//! must be equal as multisets, also when calls of the device fail.
#![allow(clippy::cast_possible_truncation, reason = "small numbers of a test")]

use fastrand::Rng;
use oxrdf::{Literal, NamedNode, Term};
use oxsdatatypes::DateTime;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use vervet_algebra::{Aggregate, AggregateKind, Comparator, Expression, Variable};
use vervet_device::{FaultInjector, Faults, Simulated};
use vervet_driver_gpu::{DeviceCounts, GpuDriver, GpuOptions};
use vervet_driver_local::{Driver, LocalDriver, Parallelism, Placement};
use vervet_expression::{ComputedTerms, Evaluator};
use vervet_kernel::plan::{Access, Leg, Operand, Pipeline, Plan, PlanStep, Profile, SemiJoinKind, Step};
use vervet_kernel::{Batch, Control, Flow, Limits};
use vervet_model::{Direction, ErrorKind, Id, Result};
use vervet_snapshot::GraphFilter;
use vervet_testkit::{MemorySnapshot, Statement};

const VARIABLES: usize = 12;

struct Case {
    graph: MemorySnapshot,
    plan: Plan,
}

/// A random graph with its predicates, vertices and named graphs.
struct Data {
    graph: MemorySnapshot,
    predicates: Vec<Id>,
    vertices: Vec<Id>,
    graphs: Vec<Id>,
    /// Terms of the graph, for filters.
    terms: Vec<Term>,
}

fn literals() -> Vec<Term> {
    let typed = |text: &str, name: &str| {
        Literal::new_typed_literal(
            text,
            NamedNode::new_unchecked(format!("http://www.w3.org/2001/XMLSchema#{name}")),
        )
    };
    let mut all: Vec<Literal> = (-3_i64..9).map(|i| typed(&i.to_string(), "integer")).collect();
    all.extend([typed("4", "int"), typed("5", "long"), typed("2.5", "decimal"), typed("2.50", "decimal")]);
    all.extend([
        typed("1.5E0", "double"),
        typed("3", "float"),
        typed("true", "boolean"),
        typed("05", "integer"),
    ]);
    all.extend([typed("2020-01-01", "date"), typed("2021-01-01", "date")]);
    all.extend(["", "ab", "b", "a text that is too long for an id"].map(Literal::new_simple_literal));
    all.push(Literal::new_language_tagged_literal_unchecked("ab", "en"));
    all.into_iter().map(Term::from).collect()
}

fn data(random: &mut Rng) -> Data {
    let mut graph = MemorySnapshot::default();
    let mut names = |prefix: &str, count: usize| -> Vec<Id> {
        let name = |i| NamedNode::new_unchecked(format!("urn:{prefix}{i}"));
        (0..count).map(|i| graph.intern(&name(i).into())).collect()
    };
    let predicates = names("p", 3);
    let graphs = names("g", 2);
    let vertices = names("v", [5, 30, 200][random.usize(0..3)]);
    let plain = random.bool();
    let mut terms = literals();
    let literals: Vec<Id> = terms.iter().map(|term| graph.intern(term)).collect();
    terms.extend((0..5).map(|i| Term::from(NamedNode::new_unchecked(format!("urn:v{i}")))));
    let has_literals = random.bool();
    for _ in 0..vertices.len() * random.usize(1..8) {
        let predicate = predicates[random.usize(0..3)];
        let skewed = random.usize(0..vertices.len()) * usize::from(random.u8(0..4) != 0);
        let (subject, mut object) = (vertices[skewed], vertices[random.usize(0..vertices.len())]);
        if has_literals && random.u8(0..3) == 0 {
            object = literals[random.usize(0..literals.len())];
        }
        let named = !plain && random.u8(0..4) == 0;
        let in_graph = if named { graphs[random.usize(0..2)] } else { Id::UNBOUND };
        if !plain && random.u8(0..5) == 0 {
            graph.add_edge(subject, predicate, object, in_graph);
        } else {
            graph.add(Statement { subject, predicate, object, graph: in_graph, edge: Id::UNBOUND });
        }
    }
    Data { graph: graph.finish(), predicates, vertices, graphs, terms }
}

fn access(data: &Data, random: &mut Rng) -> Access {
    let graph = match random.u8(0..8) {
        0 => GraphFilter::Named(data.graphs[random.usize(0..2)]),
        1 => GraphFilter::AnyNamed,
        2 | 3 => GraphFilter::Any,
        _ => GraphFilter::Default,
    };
    let direction = if random.bool() { Direction::Out } else { Direction::In };
    Access { predicate: data.predicates[random.usize(0..3)], direction, graph, parallel: random.bool() }
}

/// An access in which an entry counts once: the planner intersects no others.
fn access_once(data: &Data, random: &mut Rng) -> Access {
    let graph = match random.u8(0..3) {
        0 => GraphFilter::Named(data.graphs[random.usize(0..2)]),
        _ => GraphFilter::Default,
    };
    Access { graph, parallel: false, ..access(data, random) }
}

/// Variables of a plan.
struct Names {
    /// Bound in every row.
    bound: Vec<Variable>,
    /// Bound in some rows.
    optional: Vec<Variable>,
    free: Vec<Variable>,
    /// Whether rows carry their positions.
    has_rows: bool,
}

impl Names {
    fn fresh(&mut self) -> Option<Variable> {
        self.free.pop()
    }

    fn bind(&mut self) -> Option<Variable> {
        let variable = self.fresh()?;
        self.bound.push(variable);
        Some(variable)
    }

    fn operand(&self, data: &Data, random: &mut Rng) -> Operand {
        match random.u8(0..6) {
            0 => Operand::Constant(data.vertices[random.usize(0..data.vertices.len())]),
            _ => Operand::Variable(self.bound[random.usize(0..self.bound.len())]),
        }
    }

    fn any(&self, random: &mut Rng) -> Variable {
        let at = random.usize(0..self.bound.len() + self.optional.len());
        *self.bound.get(at).unwrap_or_else(|| &self.optional[at - self.bound.len()])
    }
}

/// A condition of a filter; half of them are of one variable.
fn condition(names: &Names, data: &Data, random: &mut Rng, depth: u8) -> Expression {
    let variable = |random: &mut Rng| Box::new(Expression::Variable(names.any(random)));
    let constant =
        |random: &mut Rng| Expression::Constant(data.terms[random.usize(0..data.terms.len())].clone());
    let comparator = |random: &mut Rng| {
        [Comparator::Less, Comparator::LessOrEqual, Comparator::Greater, Comparator::GreaterOrEqual]
            [random.usize(0..4)]
    };
    let other = |random: &mut Rng| match random.u8(0..3) {
        0 => variable(random),
        _ => Box::new(constant(random)),
    };
    match random.u8(0..if depth == 0 { 5 } else { 9 }) {
        0 => Expression::Equal(variable(random), other(random)),
        1 => Expression::SameTerm(variable(random), other(random)),
        2 => Expression::Compare(comparator(random), variable(random), other(random)),
        3 => Expression::In(variable(random), (0..random.usize(1..20)).map(|_| constant(random)).collect()),
        4 => Expression::Bound(names.any(random)),
        5 => Expression::Not(Box::new(condition(names, data, random, depth - 1))),
        6 => {
            // Of one variable.
            let name = Names {
                bound: vec![names.any(random)],
                optional: Vec::new(),
                free: Vec::new(),
                has_rows: false,
            };
            Expression::Or((0..2).map(|_| condition(&name, data, random, depth - 1)).collect())
        }
        _ => Expression::And((0..2).map(|_| condition(names, data, random, depth - 1)).collect()),
    }
}

/// Random steps, and whether a frontier is among them.
fn steps(
    count: usize,
    nested: u8,
    names: &mut Names,
    data: &Data,
    random: &mut Rng,
    out: &mut Vec<Step>,
) -> bool {
    let mut has_frontier = false;
    for _ in 0..count {
        let (key, access_here) = (names.operand(data, random), access(data, random));
        match random.u8(0..if nested > 0 { 18 } else { 12 }) {
            0..=2 => {
                let Some(neighbour) = names.bind() else { break };
                out.push(Step::Expand { key, access: access_here, neighbour: Some(neighbour), edge: None });
            }
            3 => out.push(Step::Expand { key, access: access_here, neighbour: None, edge: None }),
            4 | 5 => {
                let neighbour = names.operand(data, random);
                out.push(Step::Check { key, access: access_here, neighbour });
            }
            6 | 7 => {
                let legs = (0..random.usize(2..4))
                    .map(|_| Leg { key: names.operand(data, random), access: access_once(data, random) })
                    .collect();
                let Some(target) = names.fresh() else { break };
                let count_only = random.u8(0..4) == 0;
                if !count_only {
                    names.bound.push(target);
                }
                out.push(Step::Intersect { target, legs, count_only });
            }
            8..=10 => out.push(Step::Filter(condition(names, data, random, 2))),
            11 => {
                // Positions are those of a batch: the planner puts no frontier where they are carried.
                if names.has_rows {
                    continue;
                }
                has_frontier = true;
                out.push(Step::Frontier { variables: Vec::new() });
            }
            16 | 17 => {
                let outer = names.bound.len();
                let mut branches = Vec::new();
                for _ in 0..random.usize(1..4) {
                    let mut inner = Vec::new();
                    let count = random.usize(1..3);
                    has_frontier |= steps(count, nested - 1, names, data, random, &mut inner);
                    let planned = |step| PlanStep { step, keep: Vec::new(), rows: 1.0, validity: None };
                    if !inner.is_empty() {
                        branches.push(Pipeline { steps: inner.into_iter().map(planned).collect() });
                    }
                    // Bound in the rows of one branch.
                    let new = names.bound.split_off(outer);
                    names.optional.extend(new);
                }
                if !branches.is_empty() {
                    out.push(Step::Union { branches });
                }
            }
            kind => {
                let Some(row) = names.fresh() else { break };
                let outer = names.bound.len();
                let mut inner = Vec::new();
                let count = random.usize(1..4);
                let maybe = names.optional.len();
                let outer_rows = std::mem::replace(&mut names.has_rows, true);
                has_frontier |= steps(count, nested - 1, names, data, random, &mut inner);
                names.has_rows = outer_rows;
                if inner.is_empty() {
                    continue;
                }
                let inner = Pipeline {
                    steps: inner
                        .into_iter()
                        .map(|step| PlanStep { step, keep: Vec::new(), rows: 1.0, validity: None })
                        .collect(),
                };
                let new = names.bound.split_off(outer);
                if kind < 14 {
                    names.optional.truncate(maybe);
                    let kind = [SemiJoinKind::Semi, SemiJoinKind::Anti][random.usize(0..2)];
                    out.push(Step::Exists { inner, row, semi_join_kind: kind });
                } else {
                    names.optional.extend(new);
                    out.push(Step::Optional { inner, row });
                }
            }
        }
    }
    has_frontier
}

fn add_operands(operands: &[Operand], live: &mut Vec<Variable>) {
    for operand in operands {
        if let Operand::Variable(variable) = operand
            && !live.contains(variable)
        {
            live.push(*variable);
        }
    }
}

/// Fills in the live columns of steps; returns those before the first.
fn finish(steps: &mut [PlanStep], live: &[Variable]) -> Vec<Variable> {
    let mut live = live.to_vec();
    for planned in steps.iter_mut().rev() {
        live.sort_unstable();
        live.dedup();
        planned.keep.clone_from(&live);
        match &mut planned.step {
            Step::Expand { key, .. } => add_operands(&[*key], &mut live),
            Step::Check { key, neighbour, .. } => add_operands(&[*key, *neighbour], &mut live),
            Step::Intersect { legs, .. } => {
                let keys: Vec<Operand> = legs.iter().map(|leg| leg.key).collect();
                add_operands(&keys, &mut live);
            }
            Step::Filter(condition) => condition.variables(&mut live),
            Step::Frontier { variables } => variables.clone_from(&live),
            Step::Exists { inner, row, .. } => {
                live.extend(finish(&mut inner.steps, &[*row]));
                live.retain(|variable| variable != row);
            }
            Step::Union { branches } => {
                let after = std::mem::take(&mut live);
                branches.iter_mut().for_each(|branch| live.extend(finish(&mut branch.steps, &after)));
            }
            Step::Optional { inner, row } => {
                let after = [live.as_slice(), &[*row]].concat();
                live.extend(finish(&mut inner.steps, &after));
                live.retain(|variable| variable != row);
            }
            _ => {}
        }
    }
    live
}

fn case(seed: u64) -> Case {
    let random = &mut Rng::with_seed(seed);
    let data = data(random);
    let free = (0..VARIABLES as u16).rev().map(Variable).collect();
    let mut names = Names { bound: Vec::new(), optional: Vec::new(), free, has_rows: false };
    let mut all = Vec::new();
    if random.u8(0..3) == 0 {
        let variables = names.bind().into_iter().collect();
        let vertex = |random: &mut Rng| data.vertices[random.usize(0..data.vertices.len())];
        let rows = (0..random.usize(1..200)).map(|_| vec![vertex(random)]).collect::<Vec<_>>();
        all.push(Step::Values { variables, rows: rows.into() });
    }
    if names.bound.is_empty() || random.u8(0..5) == 0 {
        let (access, key) = (access(&data, random), names.bind().expect("a variable is left"));
        let neighbour = (random.u8(0..4) != 0).then(|| names.bind().expect("a variable is left"));
        all.push(Step::Scan { access, key, neighbour });
    }
    let has_frontier = steps(random.usize(1..6), 2, &mut names, &data, random, &mut all);
    let visible = names.bound.iter().chain(&names.optional).copied();
    let mut result: Vec<Variable> = visible.filter(|_| random.bool()).collect();
    match random.u8(0..6) {
        // A frontier is correct under set semantics only.
        kind if kind == 0 || has_frontier => all.push(Step::Distinct { variables: result.clone() }),
        1 => {
            let count = Aggregate { kind: AggregateKind::Count, expression: None, distinct: false };
            let keys = result.clone();
            let mut aggregates = vec![(Variable(VARIABLES as u16), count)];
            let kinds = [AggregateKind::Sum, AggregateKind::Avg, AggregateKind::Count, AggregateKind::Max];
            let distinct = random.bool();
            let kind = kinds[random.usize(0..4)].clone();
            let expression = Some(Expression::Variable(names.any(random)));
            aggregates.push((Variable(VARIABLES as u16 + 1), Aggregate { kind, expression, distinct }));
            all.push(Step::Group { keys, aggregates });
        }
        _ => {}
    }
    let mut before = result.clone();
    if let Some(Step::Group { aggregates, .. }) = all.last() {
        for (variable, aggregate) in aggregates {
            result.push(*variable);
            aggregate.expression.iter().for_each(|expression| expression.variables(&mut before));
        }
    }
    let planned = |step| PlanStep { step, keep: Vec::new(), rows: 1e6, validity: None };
    let mut planned: Vec<PlanStep> = all.into_iter().map(planned).collect();
    match planned.last_mut() {
        Some(PlanStep { step: Step::Group { .. } | Step::Distinct { .. }, keep, .. }) => {
            keep.clone_from(&result);
            let end = planned.len() - 1;
            finish(&mut planned[..end], &before);
        }
        _ => {
            finish(&mut planned, &result);
        }
    }
    let plan = Plan {
        pipeline: Pipeline { steps: planned },
        variables: vec![String::new(); VARIABLES + 2],
        result,
        parameters: Vec::new(),
        computed: Vec::new(),
        cost: 1e9,
        joined: Vec::new(),
    };
    Case { graph: data.graph, plan }
}

/// Sizes of the device and the driver.
fn options(random: &mut Rng) -> GpuOptions {
    GpuOptions {
        memory_bytes: [12 << 10, 20 << 10, 64 << 10, 1 << 20][random.usize(0..4)],
        window_bytes: [128, 256, 4_096, 1 << 20][random.usize(0..4)],
        strip_rows: [5, 40, 64, 5_000][random.usize(0..4)],
        result_rows_max: [40, 5_000, 1 << 20][random.usize(0..3)],
        force: true,
    }
}

type Rows = Vec<Vec<Id>>;
type Sink<'s> = dyn FnMut(&Batch) -> Result<Flow> + 's;
type Execute<'e> = dyn FnMut(&Evaluator<'_>, &mut Batch, &mut Sink<'_>) -> Result<Profile> + 'e;

fn run(case: &Case, control: &Control<'_>, execute: &mut Execute<'_>) -> Result<(Rows, Profile)> {
    let computed = ComputedTerms::new();
    let evaluator = Evaluator::new(&case.graph, &computed, DateTime::MIN, 0);
    let mut input = Batch::unit(case.plan.variables.len());
    let mut rows = Rows::new();
    let profile = execute(&evaluator, &mut input, &mut |batch| {
        control.check()?;
        let row = |row| case.plan.result.iter().map(|variable| batch.value(*variable, row)).collect();
        rows.extend((0..batch.rows).map(row));
        Ok(Flow::More)
    })?;
    rows.sort_unstable();
    Ok((rows, profile))
}

fn on_cpu(case: &Case) -> Result<(Rows, Profile)> {
    let control = Control::default();
    run(case, &control, &mut |evaluator, input, sink| {
        vervet_kernel::execute(&case.plan, &case.graph, evaluator, &control, input, true, sink)
    })
}

fn on_device(case: &Case, driver: &GpuDriver, control: &Control<'_>) -> Result<(Rows, Profile)> {
    let parallelism = Parallelism { placement: Placement::Gpu, ..Parallelism::eager(1) };
    run(case, control, &mut |evaluator, input, sink| {
        driver.execute(&case.plan, &case.graph, evaluator, control, parallelism, input, true, sink)
    })
}

fn add(sum: &mut DeviceCounts, counts: &DeviceCounts) {
    sum.queries_on_device += counts.queries_on_device;
    sum.strips_on_device += counts.strips_on_device;
    sum.strips_unfit += counts.strips_unfit;
    sum.strips_failed += counts.strips_failed;
    sum.passes += counts.passes;
    sum.rows_undecided += counts.rows_undecided;
}

fn compare(seeds: std::ops::Range<u64>, faults: fn(&mut Rng) -> Faults) -> DeviceCounts {
    let mut sum = DeviceCounts::default();
    for seed in seeds {
        // Shown if the case fails.
        println!("seed {seed}");
        let case = case(seed);
        let random = &mut Rng::with_seed(seed ^ 0x5EED);
        let options = options(random);
        let device = FaultInjector::new(Simulated::new(2 << 20, seed), faults(random));
        let driver = GpuDriver::new(Arc::new(LocalDriver::default()), Box::new(device), options);
        // Some products are above the number of rows that a test wants to compare.
        let Ok((expected, expected_profile)) = on_cpu(&case) else { continue };
        let rows: u64 = expected_profile.steps.iter().map(|step| step.rows_out).sum();
        if expected.len() > 10_000 || rows > 40_000 {
            continue;
        }
        for _ in 0..2 {
            let (found, profile) = on_device(&case, &driver, &Control::default()).expect("an answer");
            assert!(
                found == expected,
                "{} rows, expected {}: {:?}",
                found.len(),
                expected.len(),
                case.plan.pipeline
            );
            let has_nested = |step: &PlanStep| {
                matches!(step.step, Step::Frontier { .. }) || !step.step.nested().is_empty()
            };
            if let Some(device) = &profile.device
                && !case.plan.pipeline.steps.iter().any(has_nested)
            {
                let last = device.steps.end - 1;
                let outs = [&profile, &expected_profile].map(|profile| profile.steps[last].rows_out);
                assert_eq!(outs[0], outs[1], "rows of step {last}: {:#?}", case.plan);
            }
        }
        add(&mut sum, &driver.counts());
    }
    println!("{sum:?}");
    sum
}

#[test]
fn random_plans_have_the_results_of_the_cpu() {
    let sum = compare(0..300, |_| Faults::default());
    assert!(sum.queries_on_device > 300, "{sum:?}");
    assert!(sum.strips_unfit > 0 && sum.passes > 0 && sum.strips_failed == 0, "{sum:?}");
    assert!(sum.rows_undecided > 500, "{sum:?}");
}

#[test]
fn failing_devices_change_no_result() {
    let sum = compare(1_000..1_300, |random| {
        let every = [0, 0, 3, 50, 400];
        let mut one = || every[random.usize(0..every.len())];
        Faults { allocation: one(), copy: one(), launch: one(), lost_from: 0 }
    });
    assert!(sum.strips_failed > 100 && sum.strips_on_device > 100, "{sum:?}");
}

#[test]
fn a_device_that_is_lost_is_not_used_again() {
    let sum = compare(2_000..2_060, |random| Faults { lost_from: random.u64(1..200), ..Faults::default() });
    assert!(sum.strips_failed > 50, "{sum:?}");
}

#[test]
fn limits_of_a_query_apply_on_the_device() {
    let mut stopped = 0;
    for seed in 0..80 {
        let case = case(seed);
        let Ok((expected, _)) = on_cpu(&case) else { continue };
        if expected.is_empty() {
            continue;
        }
        let driver = || {
            let device = Box::new(Simulated::new(2 << 20, seed));
            GpuDriver::new(Arc::new(LocalDriver::default()), device, GpuOptions::TINY)
        };
        let flag = Arc::new(AtomicBool::new(true));
        let limits = Limits { cancelled: Some(flag), ..Limits::default() };
        let error = on_device(&case, &driver(), &Control::new(limits)).expect_err("it is cancelled");
        assert_eq!(error.kind(), ErrorKind::Cancelled);
        let limits = Limits { memory_bytes: Some(1), ..Limits::default() };
        match on_device(&case, &driver(), &Control::new(limits)) {
            Ok((found, _)) => assert_eq!(found, expected),
            Err(error) => {
                stopped += 1;
                assert_eq!(error.kind(), ErrorKind::MemoryLimit);
            }
        }
    }
    assert!(stopped > 10, "{stopped}");
}

#[test]
fn placement_decides_who_runs_a_plan() {
    let case = case(4);
    let device = || Box::new(Simulated::new(2 << 20, 1));
    let options = GpuOptions { force: false, ..GpuOptions::TINY };
    for (placement, cost, on_device) in [
        (Placement::Cpu, 1e12, false),
        (Placement::Gpu, 1.0, true),
        (Placement::Auto, 1.0, false),
        (Placement::Auto, 1e12, true),
    ] {
        let driver = GpuDriver::new(Arc::new(LocalDriver::default()), device(), options);
        let plan = Plan { cost, ..case.plan.clone() };
        let parallelism = Parallelism { placement, ..Parallelism::default() };
        let control = Control::default();
        let (_, profile) = run(&case, &control, &mut |evaluator, input, sink| {
            driver.execute(&plan, &case.graph, evaluator, &control, parallelism, input, true, sink)
        })
        .expect("an answer");
        assert_eq!(profile.device.is_some(), on_device, "{placement:?}, {cost} ns");
        let notes = driver.notes(&plan, parallelism, Some(&profile));
        assert_eq!(notes.len(), usize::from(on_device), "{notes:?}");
    }
}

/// A plan of these steps, whose last outputs `result`.
fn plan(steps: Vec<Step>, result: Vec<Variable>) -> Plan {
    let planned = |step| PlanStep { step, keep: Vec::new(), rows: 1e6, validity: None };
    let mut steps: Vec<PlanStep> = steps.into_iter().map(planned).collect();
    finish(&mut steps, &result);
    Plan {
        pipeline: Pipeline { steps },
        variables: vec![String::new(); VARIABLES],
        result,
        parameters: Vec::new(),
        computed: Vec::new(),
        cost: 1e9,
        joined: Vec::new(),
    }
}

/// Every relation of two values, and of a value and a constant, for all pairs of kinds of terms.
#[test]
fn filters_decide_as_on_the_cpu() {
    let mut graph = MemorySnapshot::default();
    let name = |text: &str| Term::from(NamedNode::new_unchecked(text));
    let terms = [literals(), vec![name("urn:a"), name("urn:b")]].concat();
    let mut ids: Vec<Id> = terms.iter().map(|term| graph.intern(term)).collect();
    ids.push(Id::UNBOUND);
    let (subject, predicate) = (ids[0], graph.intern(&name("urn:p")));
    graph.add(Statement { subject, predicate, object: subject, graph: Id::UNBOUND, edge: Id::UNBOUND });
    let graph = graph.finish();
    let access =
        Access { predicate, direction: Direction::Out, graph: GraphFilter::Default, parallel: false };
    let [a, b] = [Variable(0), Variable(1)];
    let value = |variable| Box::new(Expression::Variable(variable));
    let mut relations: Vec<Expression> = Vec::new();
    let others =
        std::iter::once(Expression::Variable(b)).chain(terms.iter().cloned().map(Expression::Constant));
    for other in others {
        let other = || Box::new(other.clone());
        relations.extend([
            Expression::Equal(value(a), other()),
            Expression::SameTerm(other(), value(a)),
            Expression::Compare(Comparator::Less, value(a), other()),
            Expression::Compare(Comparator::LessOrEqual, value(a), other()),
            Expression::Compare(Comparator::Greater, value(a), other()),
            Expression::Compare(Comparator::GreaterOrEqual, other(), value(a)),
        ]);
    }
    let constants: Vec<Expression> = terms.iter().cloned().map(Expression::Constant).collect();
    relations.extend(constants.windows(4).map(|list| Expression::In(value(a), list.to_vec())));
    relations.extend([Expression::In(value(a), constants), Expression::Variable(a), Expression::Bound(a)]);
    let pairs: Vec<Vec<Id>> = ids.iter().flat_map(|a| ids.iter().map(|b| vec![*a, *b])).collect();
    let options = GpuOptions { force: true, ..GpuOptions::default() };
    let driver =
        GpuDriver::new(Arc::new(LocalDriver::default()), Box::new(Simulated::new(8 << 20, 1)), options);
    let conditions: Vec<Expression> =
        relations.into_iter().flat_map(|one| [Expression::Not(Box::new(one.clone())), one]).collect();
    let mut case = Case { graph, plan: plan(Vec::new(), Vec::new()) };
    for condition in &conditions {
        let key = Operand::Constant(subject);
        let steps = vec![
            Step::Values { variables: vec![a, b], rows: pairs.clone().into() },
            Step::Expand { key, access, neighbour: None, edge: None },
            Step::Filter(condition.clone()),
        ];
        case.plan = plan(steps, vec![a, b]);
        let (expected, _) = on_cpu(&case).expect("an answer");
        let (found, profile) = on_device(&case, &driver, &Control::default()).expect("an answer");
        assert_eq!(found, expected, "{condition:?}");
        assert_eq!(profile.steps[2].rows_out, expected.len() as u64, "{condition:?}");
        let left = profile.device.as_ref().map_or(0, |device| device.rows_to_cpu);
        let notes = driver.notes(&case.plan, Parallelism::default(), Some(&profile)).concat();
        assert_eq!(notes.contains(&format!("{left} rows left for the CPU")), left > 0, "{notes}");
    }
    let counts = driver.counts();
    // The ids of doubles, decimals and long texts decide little.
    assert!(counts.queries_on_device as usize == conditions.len(), "{counts:?}");
    assert!(counts.rows_undecided < counts.queries * pairs.len() as u64 / 10 * 6, "{counts:?}");
}

/// Rows with and without an optional part, in many tables.
#[test]
fn optional_parts_of_many_tables_are_aligned() {
    let (mut several, mut differences) = (0, 0);
    for seed in 0..20 {
        let random = &mut Rng::with_seed(seed);
        let data = data(random);
        let [x, y, z, row] = [0, 1, 2, 3].map(Variable);
        let rows: Vec<Vec<Id>> = data.vertices.iter().map(|vertex| vec![*vertex]).collect();
        let expand = |key, neighbour, random: &mut Rng| {
            let access = access(&data, random);
            Step::Expand { key: Operand::Variable(key), access, neighbour: Some(neighbour), edge: None }
        };
        let inner = vec![expand(y, z, random)];
        let planned = |step| PlanStep { step, keep: Vec::new(), rows: 1.0, validity: None };
        let inner = Pipeline { steps: inner.into_iter().map(planned).collect() };
        let steps = vec![
            Step::Values { variables: vec![x], rows: rows.into() },
            expand(x, y, random),
            Step::Optional { inner, row },
        ];
        let case = Case { graph: data.graph, plan: plan(steps, vec![x, y, z]) };
        let options = GpuOptions { memory_bytes: 12 << 10, result_rows_max: 1 << 20, ..GpuOptions::TINY };
        let device = Box::new(Simulated::new(1 << 20, seed));
        let driver = GpuDriver::new(Arc::new(LocalDriver::default()), device, options);
        let expected = on_cpu(&case).expect("an answer").0;
        let found = on_device(&case, &driver, &Control::default()).expect("an answer").0;
        differences += usize::from(found != expected);
        several += driver.counts().launches / driver.counts().strips_on_device.max(1);
    }
    assert_eq!(differences, 0);
    assert!(several > 200, "{several} launches: too few tables to show anything");
}
