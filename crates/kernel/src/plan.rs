//! Physical plan: the interface between planner and kernels.
//!
//! # Shape
//! A [`Pipeline`] is a list of steps. Each step maps an input batch of rows to output rows; the first step of
//! the whole query receives one row that binds the parameters (usually none). So a scan is an expansion of
//! the empty row, an optional part or a branch of a union is a pipeline that receives the outer rows, and
//! intermediate results are bounded, because a batch runs through all steps before the next one starts (graph
//! exploration with full-history pruning: Wukong, OSDI 2016, §4).
//!
//! A step outputs only the columns in [`PlanStep::keep`]. Without its dead columns, a row can represent many
//! equal solutions: rows have a *multiplicity* (Gremlin's bulk). Steps whose `neighbour` is `None` multiply
//! it by the degree instead of listing neighbours; thus counts avoid enumeration.
//! # Not here
//! Threads, devices, placement; [`crate::parallel`] describes how a driver cuts a plan.

use oxrdf::Term;
use std::ops::Range;
use std::sync::Arc;
use vervet_algebra::{Aggregate, Expression, OrderKey, Path, Variable};
use vervet_model::{Direction, Id, ReadCounts, TextSearch};
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
    /// The graphs that the filter admits.
    Filter(GraphFilter),
    /// Any named graph; the variable is bound to the graph, or must be equal to it if bound.
    Variable(Variable),
}

/// A segment, and a filter on its entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    /// The predicate of the segment.
    pub predicate: Id,
    /// The direction of the segment.
    pub direction: Direction,
    /// The graph of its entries.
    pub graph: GraphFilter,
    /// See [`vervet_snapshot::EntryFilter::parallel`].
    pub parallel: bool,
}

/// Distinct candidate keys of a segment.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CandidateKeys {
    /// Ranges of keys, both ends included; ascending and disjoint.
    pub keys: Vec<(Id, Id)>,
    /// Literals at these positions of the text order ([`vervet_snapshot::Snapshot::literals_in_order`]), if
    /// they are keys; disjoint from `keys`.
    pub literals: Range<u64>,
    /// The text bounds of `literals`, if there are any: unordered literals within them
    /// ([`vervet_snapshot::Snapshot::unordered_literals`]) are candidates, too.
    pub string_range: Option<StringRange>,
    /// A full-text search, whose results ([`vervet_snapshot::Snapshot::search`]) are candidates, too, if they
    /// are keys; excludes `string_range`.
    pub search: Option<TextSearch>,
    /// Number of keys and literals, for `EXPLAIN`; an estimate if the segment has changed.
    pub count: u64,
}

/// A range of texts, in byte order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StringRange {
    /// Lower bound, inclusive.
    pub from: Vec<u8>,
    /// Upper bound, exclusive; `None`: unbounded.
    pub to: Option<Vec<u8>>,
}

/// One leg of an intersection: the neighbours of `key` in a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Leg {
    /// The key; bound in every row.
    pub key: Operand,
    /// The segment.
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
    /// The edge id; if set, only statements with one match.
    pub edge: Option<Operand>,
    /// See [`vervet_snapshot::EntryFilter::parallel`].
    pub parallel: bool,
    /// Whether one row is enough for each predicate. Requires set semantics, an unbound predicate, and that
    /// no other column is kept.
    pub predicates_once: bool,
}

/// A property path and its automaton.
#[derive(Clone, PartialEq, Debug)]
pub struct PathStep {
    /// Start of the path.
    pub subject: Operand,
    /// End of the path.
    pub object: Operand,
    /// The path expression, for `EXPLAIN`.
    pub path: Path,
    /// The automaton, from the start of the path.
    pub automaton: Arc<Automaton>,
    /// The graphs whose statements the path may traverse.
    pub graphs: PathGraphs,
    /// Whether subject and object are terms of the query, so that each has an empty path to itself even if no
    /// statement contains it.
    pub zero_length: [bool; 2],
    /// Whether subject and object, if they are not kept, are only tested for existence: each row has a path,
    /// or has none. Otherwise the nodes at such an end are counted. Requires set semantics.
    pub tested: [bool; 2],
}

/// The graphs of a [`PathStep`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PathGraphs {
    /// The union of these graphs; an empty list is an empty graph.
    These(Vec<GraphFilter>),
    /// The graph that the variable is bound to; if it is unbound, any named graph, to which it is then bound.
    Variable(Variable),
}

/// Non-deterministic finite automaton of a path: a path is a walk over statements that the moves allow, from
/// state 0 to an accepting state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Automaton {
    /// Transitions by state: move and target state.
    pub moves: Vec<Vec<(Move, u16)>>,
    /// Whether each state accepts.
    pub accepting: Vec<bool>,
}

/// The statements that one transition of a path traverses.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Move {
    /// Statements with this predicate, traversed in this direction.
    Predicate(Id, Direction),
    /// Statements with a predicate that is not in the list, which ascends.
    Except(Arc<[Id]>, Direction),
}

/// How [`Step::Exists`] uses whether its pipeline outputs a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SemiJoinKind {
    /// Keeps rows with a match (`EXISTS`).
    Semi,
    /// Drops rows with a match (`NOT EXISTS`).
    Anti,
    /// Keeps all rows; binds the variable to a boolean.
    Mark(Variable),
}

/// How two sides of a join combine.
#[derive(Clone, PartialEq, Debug)]
pub enum JoinKind {
    /// Every compatible pair for which the condition holds.
    Inner(Option<Expression>),
    /// Every compatible pair for which the condition holds; left rows without such a pair are kept,
    /// unextended.
    Left(Option<Expression>),
    /// Left rows without a compatible right row that shares a bound variable (`MINUS`).
    Minus,
    /// Left rows with a compatible right row for which the condition holds (`EXISTS`, existence-only joins).
    Semi(Option<Expression>),
    /// Left rows without a compatible right row for which the condition holds (`NOT EXISTS`).
    Anti(Option<Expression>),
}

impl JoinKind {
    /// The condition on pairs.
    #[must_use]
    pub fn condition(&self) -> Option<&Expression> {
        match self {
            Self::Inner(condition)
            | Self::Left(condition)
            | Self::Semi(condition)
            | Self::Anti(condition) => condition.as_ref(),
            Self::Minus => None,
        }
    }
}

/// A physical operator on the input rows.
#[derive(Clone, PartialEq, Debug)]
pub enum Step {
    /// Provably empty output.
    Empty,
    /// For each row all entries of a segment; binds `key` and `neighbour`, which are unbound before. Without
    /// `neighbour`: each key once, with its degree as multiplicity.
    Scan {
        /// The segment.
        access: Access,
        /// Receives the keys.
        key: Variable,
        /// Receives the neighbours.
        neighbour: Option<Variable>,
    },
    /// As [`Step::Scan`], for the candidate keys of a sargable condition, a superset of the keys that pass. A
    /// later filter tests the condition itself.
    Seek {
        /// The segment.
        access: Access,
        /// Receives the keys.
        key: Variable,
        /// Receives the neighbours.
        neighbour: Option<Variable>,
        /// The candidate keys.
        candidates: CandidateKeys,
    },
    /// For each row the neighbours of `key`, which is bound in every row; binds `neighbour`, which is unbound
    /// before. Without `neighbour`: multiplies the multiplicity by the degree, and drops rows without
    /// neighbours.
    Expand {
        /// The key.
        key: Operand,
        /// The segment.
        access: Access,
        /// Receives the neighbours.
        neighbour: Option<Variable>,
        /// Receives the edge ids, and is unbound before: then only entries with an edge id count, each
        /// separately, whatever [`Access::parallel`] is. Requires `neighbour`.
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
    /// unbound before. With `count_only` multiplies the multiplicity by their number instead.
    Intersect {
        /// Receives the common neighbours.
        target: Variable,
        /// The adjacencies to intersect.
        legs: Vec<Leg>,
        /// Whether `target` is dead after the step.
        count_only: bool,
    },
    /// For each row the statements that match the general pattern; slower than the steps above, and always
    /// applicable.
    Match(Match),
    /// As [`Step::Match`], for statements whose object is a candidate of a sargable condition; a later filter
    /// tests the condition itself. If subject and object are unbound, the candidates are looked up in each
    /// predicate.
    SeekMatch {
        /// The pattern.
        pattern: Match,
        /// The candidate objects.
        candidates: CandidateKeys,
    },
    /// Keeps the rows for which the expression is true.
    Filter(Expression),
    /// Binds `variable` to the value of the expression; an error leaves it unbound.
    Extend {
        /// The new variable.
        variable: Variable,
        /// Its value.
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
        /// Variables that the right side adds to the rows; of a semi- or anti-join, to the pairs that its
        /// condition tests.
        adds: Vec<Variable>,
    },
    /// For each input row the output of `inner`, or the row itself with the new variables unbound if that is
    /// empty. `inner` receives the input rows with their positions in `row`, which it keeps.
    Optional {
        /// The optional part.
        inner: Pipeline,
        /// A variable added by the planner for row positions.
        row: Variable,
    },
    /// A left join whose right side starts from the values of `seed`: `inner` receives only the distinct
    /// values of a batch of rows; each of its output rows joins with the rows of the batch that have the same
    /// values in `on`.
    Seeded {
        /// The optional part.
        inner: Pipeline,
        /// The seed variable, one of `on`.
        seed: Variable,
        /// The shared variables, bound in every row of both sides.
        on: Vec<Variable>,
        /// Variables that `inner` adds to the rows.
        adds: Vec<Variable>,
    },
    /// For each row the ends of all paths, each pair once; binds the unbound ends.
    Path(PathStep),
    /// Whether `inner` outputs any row for an input row. `inner` receives the input rows with their positions
    /// in `row`, which it keeps.
    Exists {
        /// The pattern.
        inner: Pipeline,
        /// A variable added by the planner for row positions.
        row: Variable,
        /// Use of the result.
        semi_join_kind: SemiJoinKind,
    },
    /// Bag union: the output of each branch for the input rows, one branch after the other.
    Union {
        /// The branches.
        branches: Vec<Pipeline>,
    },
    /// Barrier: one row for each distinct combination of `keys`.
    Group {
        /// Grouping variables.
        keys: Vec<Variable>,
        /// Aggregates, by the variable that receives each.
        aggregates: Vec<(Variable, Aggregate)>,
    },
    /// Streaming distinct: each distinct combination of `variables` at its first occurrence.
    Distinct {
        /// The compared columns.
        variables: Vec<Variable>,
    },
    /// Best-effort deduplication under set semantics; duplicates may pass.
    Frontier {
        /// The compared columns: all that are kept.
        variables: Vec<Variable>,
    },
    /// Barrier: stable sort; with `limit` keeps only the first `limit` rows (top-k).
    Order {
        /// The most significant key first.
        keys: Vec<OrderKey>,
        /// Maximum number of solutions.
        limit: Option<usize>,
    },
    /// Skips `start` solutions and ends the query after `length` more.
    Slice {
        /// Number of solutions to skip.
        start: usize,
        /// Maximum number of solutions to output; `None`: all.
        length: Option<usize>,
    },
}

/// A step with its output columns and estimate.
#[derive(Clone, PartialEq, Debug)]
pub struct PlanStep {
    /// The operator.
    pub step: Step,
    /// Live columns: those that later steps or the result read.
    pub keep: Vec<Variable>,
    /// Estimated rows after this step.
    pub rows: f64,
    /// The rows for which the order of the later steps was chosen; `None`: any number.
    pub validity: Option<ValidityRange>,
}

/// Validity range of a step: the rows up to which the rest of the plan is worth running (V. Markl et al.,
/// "Robust Query Processing through Progressive Optimization", SIGMOD 2004).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ValidityRange {
    /// Maximum rows after the step.
    pub rows_max: u64,
    /// Estimated rows before the step.
    pub rows_before: f64,
    /// Start and end, in [`Plan::joined`], of what this step and earlier ones have joined.
    pub joined: (u32, u32),
}

/// A sequence of steps; without steps, the identity.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Pipeline {
    /// The steps.
    pub steps: Vec<PlanStep>,
}

/// A plan for a whole query.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// The root pipeline.
    pub pipeline: Pipeline,
    /// Names by [`Variable`] index: those of the query, then those that the planner added (`""`).
    pub variables: Vec<String>,
    /// Columns of the result.
    pub result: Vec<Variable>,
    /// Variables that the initial row binds.
    pub parameters: Vec<Variable>,
    /// Terms of the query that are not in the graph but may be values of solutions (those of `VALUES`): the
    /// id of `computed[i]` is `Id::new(Tag::Computed, i)`. The computed terms of an execution must start with
    /// these, in this order.
    pub computed: Vec<Term>,
    /// Estimated cost, in ns of one thread.
    pub cost: f64,
    /// Keys of the patterns of the query, in the order in which the steps join them: see [`ValidityRange`].
    pub joined: Vec<u64>,
}

impl Step {
    /// The nested pipelines, in the order in which their steps are numbered.
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

    /// Count of step numbers of this step: one, plus those of its nested pipelines.
    #[must_use]
    pub fn number_steps(&self) -> usize {
        1 + self.nested().iter().map(Pipeline::number_steps).sum::<usize>()
    }
}

impl Pipeline {
    /// Number of steps, including those of nested pipelines.
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

/// Profile of one step in one run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StepProfile {
    /// Input rows.
    pub rows_in: u64,
    /// Output rows.
    pub rows_out: u64,
    /// Time in this step and its nested pipelines, in ns, summed over all threads.
    pub nanoseconds: u64,
}

impl StepProfile {
    /// Adds the profile of another copy of the step.
    pub fn add(&mut self, other: &Self) {
        self.rows_in = self.rows_in.saturating_add(other.rows_in);
        self.rows_out = self.rows_out.saturating_add(other.rows_out);
        self.nanoseconds = self.nanoseconds.saturating_add(other.nanoseconds);
    }
}

/// Profile of one run of a plan.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Profile {
    /// Profile of each step, by step number (see [`Pipeline::number_steps`]).
    pub steps: Vec<StepProfile>,
    /// What was sent between servers before a step, by step number.
    pub sent: Vec<(usize, Sent)>,
    /// Reads of other servers, by server.
    pub reads: Vec<(String, ReadCounts)>,
    /// The part of the plan that ran on a device, if any did.
    pub device: Option<DeviceProfile>,
}

/// The part of a plan that ran on a device.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DeviceProfile {
    /// Its steps, by position in the root pipeline.
    pub steps: Range<usize>,
    /// Strips of input rows that ran on the device.
    pub strips: u64,
    /// Strips that ran on the CPU, since they did not fit or the device failed.
    pub strips_on_cpu: u64,
    /// Kernels that were launched.
    pub launches: u64,
    /// Rows that left the device for the CPU at a step in the middle.
    pub rows_to_cpu: u64,
}

/// Rows that were sent from server to server, and the bytes of the requests or answers with them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sent {
    /// Rows.
    pub rows: u64,
    /// Bytes before encryption.
    pub bytes: u64,
}

impl Sent {
    /// Adds what was sent elsewhere.
    pub fn add(&mut self, other: Self) {
        self.rows = self.rows.saturating_add(other.rows);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

impl Profile {
    /// Counts what was sent before the step with this number.
    pub fn add_sent(&mut self, number: usize, sent: Sent) {
        match self.sent.iter_mut().find(|(step, _)| *step == number) {
            Some((_, sum)) => sum.add(sent),
            None => self.sent.push((number, sent)),
        }
    }

    /// A profile of this pipeline with all counters zero.
    #[must_use]
    pub fn new(pipeline: &Pipeline) -> Self {
        Self { steps: vec![StepProfile::default(); pipeline.number_steps()], ..Self::default() }
    }
}
