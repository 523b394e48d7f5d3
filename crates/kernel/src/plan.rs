//! The physical plan: what the planner hands to the kernels.
//!
//! # Shape
//! A [`Pipeline`] is a list of steps. Each step turns an incoming batch of rows into outgoing rows; the
//! first step of the whole query receives one row that binds the parameters (usually nothing). So a scan
//! is an expansion of the empty row, an optional part or a branch of a union is a pipeline that receives
//! the outer rows, and intermediate results stay bounded, because a batch runs through all steps before
//! the next one starts (graph exploration with full-history pruning: Wukong, OSDI 2016, §4).
//!
//! Only columns in [`PlanStep::keep`] go on. Where a variable is no longer needed, a row can stand for
//! many equal solutions: rows have a *multiplicity* (Gremlin's bulk). Steps whose `neighbour` is `None`
//! multiply it instead of listing neighbours; that is how counts avoid enumeration.
//! # Not here
//! Threads, devices, placement: see [`crate::parallel`] for how a driver cuts a plan.

use oxrdf::Term;
use std::ops::Range;
use std::sync::Arc;
use vervet_algebra::{Aggregate, Expression, OrderKey, Path, Variable};
use vervet_model::{Direction, Id, TextSearch};
use vervet_snapshot::GraphFilter;

/// A constant or a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operand {
    /// The value of this variable in the row.
    Variable(Variable),
    /// This id.
    Constant(Id),
}

/// The graph of a [`Match`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GraphOperand {
    /// Entries that pass.
    Filter(GraphFilter),
    /// Named graphs; the variable is bound to the graph, or must be equal to it if bound.
    Variable(Variable),
}

/// One segment and the entries of it that count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    /// The predicate of the segment.
    pub predicate: Id,
    /// Its direction.
    pub direction: Direction,
    /// The graph of its entries.
    pub graph: GraphFilter,
    /// See [`vervet_snapshot::EntryFilter::parallel`].
    pub parallel: bool,
}

/// Some keys of a segment, each once.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Among {
    /// Keys between these ids, both included; ascending, apart from each other.
    pub keys: Vec<(Id, Id)>,
    /// Literals at these positions of the order of texts
    /// ([`vervet_snapshot::Snapshot::literals_in_order`]), as far as they are keys; none of these keys is
    /// in `keys`.
    pub literals: Range<u64>,
    /// The bounds of `literals`, if it is about texts: the literals in them that came later
    /// ([`vervet_snapshot::Snapshot::later_literals`]) count, too.
    pub texts: Option<Texts>,
    /// The literals that this may find ([`vervet_snapshot::Snapshot::search`]) count, too, as far as they are
    /// keys; then there are no `texts`.
    pub search: Option<TextSearch>,
    /// How many keys and literals these are, for people; an estimate where the segment has changed.
    pub count: u64,
}

/// Texts between two bounds, in bytes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Texts {
    /// The least.
    pub from: Vec<u8>,
    /// All are below this, if there is a bound.
    pub to: Option<Vec<u8>>,
}

/// One leg of an intersection: the neighbours of `key` in a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Leg {
    /// Whose neighbours; bound in every row.
    pub key: Operand,
    /// In which segment.
    pub access: Access,
}

/// A pattern in general form: any position may be constant, bound, unbound, or bound in some rows only.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Match {
    /// Subject.
    pub subject: Operand,
    /// Predicate.
    pub predicate: Operand,
    /// Object.
    pub object: Operand,
    /// Graph.
    pub graph: GraphOperand,
    /// The edge id; only statements that have one then.
    pub edge: Option<Operand>,
    /// See [`vervet_snapshot::EntryFilter::parallel`].
    pub parallel: bool,
}

/// A path and how to follow it.
#[derive(Clone, PartialEq, Debug)]
pub struct PathStep {
    /// Where it starts.
    pub subject: Operand,
    /// Where it ends.
    pub object: Operand,
    /// What it was made from, for people.
    pub path: Path,
    /// What a path looks like from its start.
    pub automaton: Arc<Automaton>,
    /// The graphs whose statements it may use.
    pub graphs: PathGraphs,
    /// Whether subject and object stand in the query, so that each has a path without a step to itself even
    /// if no statement mentions it.
    pub stand_alone: [bool; 2],
}

/// The graphs of a [`PathStep`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PathGraphs {
    /// Statements of any of these; none: an empty graph.
    These(Vec<GraphFilter>),
    /// The graph that the variable is bound to; any named graph where it is not, and then it is bound to
    /// that.
    Variable(Variable),
}

/// States and moves between them: a path is a walk over statements that the moves allow, from state 0 to an
/// accepting one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Automaton {
    /// By state: what leads on, and to which state.
    pub moves: Vec<Vec<(Move, u16)>>,
    /// By state: whether a path may end here.
    pub accepting: Vec<bool>,
}

/// The statements of one step of a path.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Move {
    /// Those with this predicate, walked in this direction.
    Predicate(Id, Direction),
    /// Those with any other predicate than these, which ascend.
    Except(Arc<[Id]>, Direction),
}

/// What a step of [`Step::Exists`] does with rows for which its pipeline gives a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Existence {
    /// They stay, the others go.
    Keep,
    /// They go, the others stay.
    Drop,
    /// All stay; the variable becomes a boolean.
    Mark(Variable),
}

/// How two sides of a join combine.
#[derive(Clone, PartialEq, Debug)]
pub enum JoinKind {
    /// Every compatible pair.
    Inner,
    /// Every compatible pair for which the condition holds; left rows without one stay, unextended.
    Left(Option<Expression>),
    /// Left rows without a compatible right row that shares a bound variable (`MINUS`).
    Minus,
    /// Left rows with a compatible right row (`EXISTS`, existence-only joins).
    Semi,
    /// Left rows without a compatible right row (`NOT EXISTS`).
    Anti,
}

/// What a step does to the rows that come in.
#[derive(Clone, PartialEq, Debug)]
pub enum Step {
    /// Provably nothing comes out.
    Empty,
    /// For each row all entries of a segment; binds `key` and `neighbour`, which are unbound before.
    /// Without `neighbour`: each key once, its degree in the multiplicity.
    Scan {
        /// The segment.
        access: Access,
        /// Receives the keys.
        key: Variable,
        /// Receives the neighbours.
        neighbour: Option<Variable>,
    },
    /// As [`Step::Scan`], for some keys: those that a condition can let through are among them. The
    /// condition itself is still to be tested.
    Seek {
        /// The segment.
        access: Access,
        /// Receives the keys.
        key: Variable,
        /// Receives the neighbours.
        neighbour: Option<Variable>,
        /// Which keys.
        among: Among,
    },
    /// For each row the neighbours of `key`, which is bound in every row; binds `neighbour`, which is
    /// unbound before. Without `neighbour`: the degree goes into the multiplicity, and rows without
    /// neighbours are dropped.
    Expand {
        /// Whose neighbours.
        key: Operand,
        /// The segment.
        access: Access,
        /// Receives the neighbours.
        neighbour: Option<Variable>,
        /// Receives the edge ids, and is unbound before: only entries that have one count then, each for
        /// itself whatever [`Access::parallel`] is. Needs `neighbour`.
        edge: Option<Variable>,
    },
    /// Keeps the rows for which the entry `key -> neighbour` exists; both are bound in every row.
    Check {
        /// The key.
        key: Operand,
        /// The segment.
        access: Access,
        /// The neighbour.
        neighbour: Operand,
    },
    /// For each row the vertices that are neighbours in every leg (at least two); binds `target`, which is
    /// unbound before. With `count_only` the size goes into the multiplicity instead.
    Intersect {
        /// Receives the common neighbours.
        target: Variable,
        /// The adjacencies to intersect.
        legs: Vec<Leg>,
        /// `target` is not needed afterwards.
        count_only: bool,
    },
    /// For each row the statements that match; slower than the steps above, and always right.
    Match(Match),
    /// As [`Step::Match`], for statements whose object a condition can let through; the condition itself is
    /// still to be tested. Where subject and object are unbound, objects are looked up in each predicate.
    SeekMatch {
        /// What matches.
        pattern: Match,
        /// Which objects.
        among: Among,
    },
    /// Keeps the rows for which the expression is true.
    Filter(Expression),
    /// Binds `variable` to the value of the expression; an error leaves it unbound.
    Extend {
        /// What is bound.
        variable: Variable,
        /// To what.
        expression: Expression,
    },
    /// For each row all compatible rows of a table; [`Id::UNBOUND`] is compatible with everything.
    Values {
        /// Columns of the table.
        variables: Vec<Variable>,
        /// Rows of the table, each as long as `variables`; copies of the plan share them.
        rows: Arc<[Vec<Id>]>,
    },
    /// Joins with the rows of another pipeline, which starts from one empty row and runs once.
    Join {
        /// The other pipeline.
        right: Pipeline,
        /// How to combine.
        kind: JoinKind,
        /// Shared variables bound in every row of both sides: the hash key.
        on: Vec<Variable>,
        /// All other shared variables: compared where both sides bind them.
        compatible: Vec<Variable>,
        /// Variables that the right side adds to the rows.
        adds: Vec<Variable>,
    },
    /// For each incoming row the rows that `inner` makes of it, or else the row itself with the new
    /// variables unbound. `inner` receives the incoming rows with their positions in `row`, and keeps it.
    Optional {
        /// What is optional.
        inner: Pipeline,
        /// A variable of the plan's own that holds row positions.
        row: Variable,
    },
    /// A left join whose right side starts from the values that rows have in `seed`: `inner` receives each of
    /// them once for some rows, and nothing else; a row that it makes joins with each of these that has the
    /// same values in `on`.
    Seeded {
        /// What is optional.
        inner: Pipeline,
        /// One of `on`.
        seed: Variable,
        /// All that both sides may bind; bound in every row of both.
        on: Vec<Variable>,
        /// Variables that `inner` adds to the rows.
        adds: Vec<Variable>,
    },
    /// For each row the ends of the paths that there are, each pair once; binds those ends that a row does
    /// not.
    Path(PathStep),
    /// Whether `inner` makes any row of an incoming one. `inner` receives the incoming rows with their
    /// positions in `row`, and keeps it.
    Exists {
        /// What is asked for.
        inner: Pipeline,
        /// A variable of the plan's own that holds row positions.
        row: Variable,
        /// What the answer is for.
        existence: Existence,
    },
    /// The rows that each branch makes of the incoming rows, one branch after the other.
    Union {
        /// The branches.
        branches: Vec<Pipeline>,
    },
    /// Barrier: one row for each distinct combination of `keys`.
    Group {
        /// Grouping variables.
        keys: Vec<Variable>,
        /// What is computed.
        aggregates: Vec<(Variable, Aggregate)>,
    },
    /// Each distinct combination of `variables` once, as soon as it comes.
    Distinct {
        /// What is compared.
        variables: Vec<Variable>,
    },
    /// Drops rows with a value that has come before, where how often a row comes does not matter for the
    /// result: rows may pass all the same.
    Frontier {
        /// The only column.
        variable: Variable,
    },
    /// Barrier: sorts; with `limit` keeps only the first so many (top-k). Equal rows keep their order.
    Order {
        /// The most significant key first.
        keys: Vec<OrderKey>,
        /// Solutions wanted at most.
        limit: Option<usize>,
    },
    /// Skips `start` solutions and ends the query after `length` more.
    Slice {
        /// How many to skip.
        start: usize,
        /// How many to keep.
        length: Option<usize>,
    },
}

/// A step and what the planner knows about it.
#[derive(Clone, PartialEq, Debug)]
pub struct PlanStep {
    /// What to do.
    pub step: Step,
    /// Columns that later steps, or the result, need.
    pub keep: Vec<Variable>,
    /// Estimated rows after this step.
    pub rows: f64,
}

/// Steps, one after the other. No steps: what comes in goes out.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Pipeline {
    /// The steps.
    pub steps: Vec<PlanStep>,
}

/// A plan for a whole query.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// What runs.
    pub pipeline: Pipeline,
    /// Names by [`Variable`] index: those of the query, then those that the planner added (`""`).
    pub variables: Vec<String>,
    /// Columns of the result.
    pub result: Vec<Variable>,
    /// Variables that the incoming row binds.
    pub parameters: Vec<Variable>,
    /// Terms of the query that the graph does not know, but that are values of solutions all the same
    /// (those of `VALUES`): the id of `computed[i]` is `Id::new(Tag::Computed, i)`. Whoever runs the plan
    /// starts its computed terms with these, in this order.
    pub computed: Vec<Term>,
    /// Estimated cost, in ns of one thread.
    pub cost: f64,
}

impl Step {
    /// The pipelines inside this step, in the order in which their steps are numbered.
    #[must_use]
    pub fn nested(&self) -> &[Pipeline] {
        match self {
            Self::Join { right: one, .. }
            | Self::Optional { inner: one, .. }
            | Self::Seeded { inner: one, .. }
            | Self::Exists { inner: one, .. } => std::slice::from_ref(one),
            Self::Union { branches } => branches,
            _ => &[],
        }
    }

    /// How many numbers this step takes: one, and those of the steps of its nested pipelines.
    #[must_use]
    pub fn number_steps(&self) -> usize {
        1 + self.nested().iter().map(Pipeline::number_steps).sum::<usize>()
    }
}

impl Pipeline {
    /// How many steps there are, those of nested pipelines included.
    ///
    /// Steps are numbered depth first: a step, then the steps of its nested pipelines
    /// ([`Step::nested`]), then the next step. So if a pipeline starts with number `n`, its steps have
    /// the numbers `n`, `n + steps[0].step.number_steps()`, and so on, and the first nested pipeline of
    /// the step with number `m` starts with `m + 1`.
    #[must_use]
    pub fn number_steps(&self) -> usize {
        self.steps.iter().map(|step| step.step.number_steps()).sum()
    }
}

/// What one step did in one run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StepProfile {
    /// Rows that came in.
    pub rows_in: u64,
    /// Rows that went out.
    pub rows_out: u64,
    /// Time spent in this step and in the pipelines inside it; where several threads ran it, the sum of
    /// their times.
    pub nanoseconds: u64,
}

impl StepProfile {
    /// Adds what another copy of the step did.
    pub fn add(&mut self, other: &Self) {
        self.rows_in += other.rows_in;
        self.rows_out += other.rows_out;
        self.nanoseconds += other.nanoseconds;
    }
}

/// What one run of a plan did.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Profile {
    /// For each step by its number (see [`Pipeline::number_steps`]).
    pub steps: Vec<StepProfile>,
}

impl Profile {
    /// A profile for this pipeline in which nothing has happened.
    #[must_use]
    pub fn new(pipeline: &Pipeline) -> Self {
        Self { steps: vec![StepProfile::default(); pipeline.number_steps()] }
    }
}
