//! Random graphs, and runs of steps on them: on one thread and, cut into the smallest morsels, on two and
//! four, which must find the same rows.

use oxrdf::NamedNode;
use oxsdatatypes::DateTime;
use std::sync::OnceLock;
use vervet_algebra::Variable;
use vervet_driver_local::{Driver, LocalDriver, Parallelism};
use vervet_expression::{ComputedTerms, Evaluator};
use vervet_kernel::plan::{Access, GraphOperand, Match, Operand, Pipeline, Plan, PlanStep, Step};
use vervet_kernel::{Batch, Control, Flow, execute};
use vervet_model::{Direction, Id, Result};
use vervet_snapshot::GraphFilter;
use vervet_testkit::{MemorySnapshot, Statement};

pub(crate) const A: Variable = Variable(0);
pub(crate) const B: Variable = Variable(1);
pub(crate) const C: Variable = Variable(2);
pub(crate) const D: Variable = Variable(3);
pub(crate) const ROW: Variable = Variable(4);
pub(crate) const E: Variable = Variable(5);
pub(crate) const VARIABLES: usize = 6;

pub(crate) const THREADS: [usize; 3] = [1, 2, 4];

pub(crate) static DRIVER: OnceLock<LocalDriver> = OnceLock::new();

pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

pub(crate) struct Sample {
    pub(crate) snapshot: MemorySnapshot,
    pub(crate) predicates: Vec<Id>,
    /// `[predicate][(subject, object)]`
    pub(crate) entries: Vec<Vec<(Id, Id)>>,
}

/// Some 12 vertices and three predicates, dense enough for triangles; more entries than a batch holds if
/// `large`.
pub(crate) fn sample(seed: u64, large: bool) -> Sample {
    let mut random = Random(seed);
    let mut snapshot = MemorySnapshot::default();
    let mut node = |name: String| snapshot.intern(&NamedNode::new_unchecked(name).into());
    let count = if large { 90 } else { 12 };
    let vertices: Vec<Id> = (0..count).map(|i| node(format!("urn:v{i}"))).collect();
    let predicates: Vec<Id> = (0..3).map(|i| node(format!("urn:p{i}"))).collect();
    let mut entries = Vec::new();
    for &predicate in &predicates {
        let mut of: Vec<(Id, Id)> = Vec::new();
        for _ in 0..count * if large { 40 } else { 4 } {
            let subject = vertices[usize::try_from(random.below(count)).expect("small")];
            let object = vertices[usize::try_from(random.below(count)).expect("small")];
            of.push((subject, object));
            snapshot.add(Statement { subject, predicate, object, graph: Id::UNBOUND, edge: Id::UNBOUND });
        }
        of.sort();
        of.dedup();
        entries.push(of);
    }
    Sample { snapshot: snapshot.finish(), predicates, entries }
}

impl Sample {
    pub(crate) fn access(&self, predicate: usize, direction: Direction) -> Access {
        Access {
            predicate: self.predicates[predicate],
            direction,
            graph: GraphFilter::Default,
            parallel: false,
        }
    }

    pub(crate) fn pattern(&self, subject: Variable, predicate: usize, object: Variable) -> Step {
        Step::Match(Match {
            subject: Operand::Variable(subject),
            predicate: Operand::Constant(self.predicates[predicate]),
            object: Operand::Variable(object),
            graph: GraphOperand::Filter(GraphFilter::Default),
            edge: None,
            parallel: false,
            predicates_once: false,
        })
    }

    pub(crate) fn scan(&self, predicate: usize, key: Variable, neighbour: Option<Variable>) -> Step {
        Step::Scan { access: self.access(predicate, Direction::Out), key, neighbour }
    }

    pub(crate) fn expand(
        &self,
        key: Variable,
        predicate: usize,
        direction: Direction,
        neighbour: Option<Variable>,
    ) -> Step {
        Step::Expand {
            key: Operand::Variable(key),
            access: self.access(predicate, direction),
            neighbour,
            edge: None,
        }
    }

    /// Rows as sorted vectors of bits.
    pub(crate) fn run(&self, steps: Vec<Step>, result: &[Variable]) -> Vec<Vec<u64>> {
        let run = |threads| {
            self.try_run(threads, pipeline(steps.clone()), result, &Control::default())
                .expect("nothing stops this query")
        };
        let rows = run(1);
        for threads in [2, 4] {
            assert!(run(threads) == rows, "{threads} threads find other rows: {steps:?}");
        }
        rows
    }

    pub(crate) fn try_run(
        &self,
        threads: usize,
        pipeline: Pipeline,
        result: &[Variable],
        control: &Control<'_>,
    ) -> Result<Vec<Vec<u64>>> {
        let plan = Plan {
            pipeline,
            variables: vec![String::new(); VARIABLES],
            result: result.to_vec(),
            parameters: Vec::new(),
            computed: Vec::new(),
            cost: 0.0,
            joined: Vec::new(),
        };
        let computed = ComputedTerms::new();
        let evaluator = Evaluator::new(&self.snapshot, &computed, DateTime::MIN, 0);
        let mut rows = Vec::new();
        let mut input = Batch::unit(VARIABLES);
        let mut sink = |batch: &Batch| {
            for row in 0..batch.rows {
                rows.push(result.iter().map(|&variable| batch.value(variable, row).bits()).collect());
            }
            Ok(Flow::More)
        };
        let profile = if threads == 1 {
            execute(&plan, &self.snapshot, &evaluator, control, &mut input, true, &mut sink)?
        } else {
            let parallelism = Parallelism::eager(threads);
            let driver = DRIVER.get_or_init(LocalDriver::default);
            let snapshot = &self.snapshot;
            driver.execute(&plan, snapshot, &evaluator, control, parallelism, &mut input, true, &mut sink)?
        };
        assert_eq!(profile.steps.len(), plan.pipeline.number_steps());
        let last = plan.pipeline.steps.len() - 1;
        let last: usize = plan.pipeline.steps[..last].iter().map(|step| step.step.number_steps()).sum();
        // A row that represents several solutions counts once in the profile.
        assert!(profile.steps[last].rows_out <= rows.len() as u64, "{threads} threads: {profile:?}");
        assert_eq!(profile.steps[last].rows_out == 0, rows.is_empty(), "{threads} threads: {profile:?}");
        rows.sort();
        Ok(rows)
    }
}

/// Every column is kept, so that the test compares all of them.
pub(crate) fn pipeline(steps: Vec<Step>) -> Pipeline {
    let keep: Vec<Variable> = vec![A, B, C, D, ROW, E];
    Pipeline {
        steps: steps
            .into_iter()
            .map(|step| PlanStep { step, keep: keep.clone(), rows: 0.0, validity: None })
            .collect(),
    }
}
