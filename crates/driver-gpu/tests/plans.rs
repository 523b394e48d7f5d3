//! Random plans on the simulated device, against the kernels of the CPU.
//!
//! Each seed makes a graph (named graphs, parallel edges, hubs), a plan and the sizes of the device: windows,
//! strips and memory small enough that segments do not fit. Results must be equal as multisets, also when
//! calls of the device fail.
#![allow(clippy::cast_possible_truncation, reason = "small numbers of a test")]

use fastrand::Rng;
use oxrdf::NamedNode;
use oxsdatatypes::DateTime;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use vervet_algebra::{Aggregate, AggregateKind, Variable};
use vervet_device::{FaultInjector, Faults, Simulated};
use vervet_driver_gpu::{DeviceCounts, GpuDriver, GpuOptions};
use vervet_driver_local::{Driver, LocalDriver, Parallelism, Placement};
use vervet_expression::{ComputedTerms, Evaluator};
use vervet_kernel::plan::{Access, Leg, Operand, Pipeline, Plan, PlanStep, Profile, Step};
use vervet_kernel::{Batch, Control, Flow, Limits};
use vervet_model::{Direction, ErrorKind, Id, Result};
use vervet_snapshot::GraphFilter;
use vervet_testkit::{MemorySnapshot, Statement};

const VARIABLES: usize = 7;

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
    for _ in 0..vertices.len() * random.usize(1..8) {
        let predicate = predicates[random.usize(0..3)];
        let skewed = random.usize(0..vertices.len()) * usize::from(random.u8(0..4) != 0);
        let (subject, object) = (vertices[skewed], vertices[random.usize(0..vertices.len())]);
        let named = !plain && random.u8(0..4) == 0;
        let in_graph = if named { graphs[random.usize(0..2)] } else { Id::UNBOUND };
        if !plain && random.u8(0..5) == 0 {
            graph.add_edge(subject, predicate, object, in_graph);
        } else {
            graph.add(Statement { subject, predicate, object, graph: in_graph, edge: Id::UNBOUND });
        }
    }
    Data { graph: graph.finish(), predicates, vertices, graphs }
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

fn case(seed: u64) -> Case {
    let random = &mut Rng::with_seed(seed);
    let data = data(random);
    let vertex = |random: &mut Rng| data.vertices[random.usize(0..data.vertices.len())];
    let mut bound: Vec<Variable> = Vec::new();
    let mut free: Vec<Variable> = (0..VARIABLES as u16).rev().map(Variable).collect();
    let mut steps = Vec::new();
    let mut fresh = |bound: &mut Vec<Variable>| {
        let variable = free.pop().expect("a variable is left");
        bound.push(variable);
        variable
    };
    if random.u8(0..3) == 0 {
        let variables = vec![fresh(&mut bound)];
        let rows = (0..random.usize(1..200)).map(|_| vec![vertex(random)]).collect::<Vec<_>>();
        steps.push(Step::Values { variables, rows: rows.into() });
    }
    if bound.is_empty() || random.u8(0..5) == 0 {
        let (access, key) = (access(&data, random), fresh(&mut bound));
        let neighbour = (random.u8(0..4) != 0).then(|| fresh(&mut bound));
        steps.push(Step::Scan { access, key, neighbour });
    }
    for _ in 0..random.usize(1..5) {
        if bound.len() == VARIABLES {
            break;
        }
        let operand = |random: &mut Rng| match random.u8(0..6) {
            0 => Operand::Constant(vertex(random)),
            _ => Operand::Variable(bound[random.usize(0..bound.len())]),
        };
        let (key, access_here) = (operand(random), access(&data, random));
        match random.u8(0..8) {
            0..=2 => {
                let neighbour = Some(fresh(&mut bound));
                steps.push(Step::Expand { key, access: access_here, neighbour, edge: None });
            }
            3 => steps.push(Step::Expand { key, access: access_here, neighbour: None, edge: None }),
            4 | 5 => steps.push(Step::Check { key, access: access_here, neighbour: operand(random) }),
            _ => {
                let legs = (0..random.usize(2..4))
                    .map(|_| Leg { key: operand(random), access: access_once(&data, random) })
                    .collect();
                let target = fresh(&mut bound);
                let count_only = random.u8(0..4) == 0;
                steps.push(Step::Intersect { target, legs, count_only });
                if count_only {
                    bound.pop();
                }
            }
        }
    }
    let result: Vec<Variable> = bound.iter().copied().filter(|_| random.bool()).collect();
    match random.u8(0..6) {
        0 => steps.push(Step::Distinct { variables: result.clone() }),
        1 => {
            let count = Aggregate { kind: AggregateKind::Count, expression: None, distinct: false };
            let keys = result.clone();
            steps.push(Step::Group { keys, aggregates: vec![(Variable(VARIABLES as u16), count)] });
        }
        _ => {}
    }
    let mut result = result;
    if matches!(steps.last(), Some(Step::Group { .. })) {
        result.push(Variable(VARIABLES as u16));
    }
    let mut live = result.clone();
    let mut planned = Vec::new();
    for step in steps.into_iter().rev() {
        planned.push(PlanStep { keep: live.clone(), rows: 1e6, validity: None, step: step.clone() });
        let operands: Vec<Operand> = match &step {
            Step::Expand { key, .. } => vec![*key],
            Step::Check { key, neighbour, .. } => vec![*key, *neighbour],
            Step::Intersect { legs, .. } => legs.iter().map(|leg| leg.key).collect(),
            _ => Vec::new(),
        };
        for operand in operands {
            if let Operand::Variable(variable) = operand
                && !live.contains(&variable)
            {
                live.push(variable);
            }
        }
    }
    planned.reverse();
    let plan = Plan {
        pipeline: Pipeline { steps: planned },
        variables: vec![String::new(); VARIABLES + 1],
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
        let driver = GpuDriver::new(LocalDriver::default(), Box::new(device), options);
        // Some products are above the number of rows that a test wants to compare.
        let Ok((expected, expected_profile)) = on_cpu(&case) else { continue };
        if expected.len() > 20_000 {
            continue;
        }
        for _ in 0..2 {
            let (found, profile) = on_device(&case, &driver, &Control::default()).expect("an answer");
            assert!(found == expected, "{} rows, expected {}: {:#?}", found.len(), expected.len(), case.plan);
            if let Some(device) = &profile.device {
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
    let sum = compare(0..250, |_| Faults::default());
    assert!(sum.queries_on_device > 300, "{sum:?}");
    assert!(sum.strips_unfit > 0 && sum.passes > 0 && sum.strips_failed == 0, "{sum:?}");
}

#[test]
fn failing_devices_change_no_result() {
    let sum = compare(1_000..1_200, |random| {
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
            GpuDriver::new(LocalDriver::default(), device, GpuOptions::TINY)
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
        let driver = GpuDriver::new(LocalDriver::default(), device(), options);
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
