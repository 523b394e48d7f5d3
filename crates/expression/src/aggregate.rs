//! Aggregate functions: accumulators for all groups at once (SPARQL 1.1 §18.5).
//!
//! # Shape
//! One [`Accumulators`] for each aggregate of the query; one small state for each group, by group number.
//! `DISTINCT` adds one hash set of `(group, id)` for all groups.
//! # Semantics
//! A row with multiplicity `m` represents `m` equal solutions. Counts are exact up to 2^127 - 1, and an error
//! above. A `SUM` of integers and decimals is exact.
//! `COUNT` and `SAMPLE` skip errors of their expression; a single error makes every other aggregate an error
//! (unbound).
//!
//! For an empty group `SUM` and `AVG` are 0, `GROUP_CONCAT` is the empty string, and `MIN`, `MAX` and
//! `SAMPLE` are errors. `GROUP_CONCAT` concatenates the values of `STR`, also for IRIs and numbers, as Jena,
//! Virtuoso and RDFLib do. Its value is a simple literal without a language tag (§18.5.1.7).
//! # Not here
//! Grouping (see `vervet-kernel`).

mod concat;
mod merge;

use self::concat::Concat;
use crate::arithmetic::{Pair, apply, double_of, float_of, promote};
use crate::batch::CompiledExpression;
use crate::context::{Context, Operand};
use crate::evaluator::Evaluator;
use crate::operator::Operator;
use crate::order::{SortKey, order_of_ids};
use crate::value::Value;
use crate::wide::Wide;
use oxsdatatypes::{Decimal, Double, Float};
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;
use vervet_algebra::{Aggregate, AggregateKind, Variable};
use vervet_model::{Error, Id, Inline, Multiplicity, Result};

/// Units of work of a result without a check of the limits: a microsecond.
const UNITS_UNCHECKED: usize = 100;

/// Growth of texts and keys within a batch that is checked against the memory cap, in bytes.
const UNCHECKED_BYTES: usize = 1 << 20;

/// The accumulators of one aggregate for all groups. See the header.
pub struct Accumulators<'a> {
    evaluator: &'a Evaluator<'a>,
    expression: Option<CompiledExpression>,
    /// Values already aggregated, with `DISTINCT`.
    distinct: Option<FxHashSet<(u32, Id)>>,
    /// Solutions already counted, for `COUNT(DISTINCT *)`.
    solutions: FxHashSet<(u32, Box<[Id]>)>,
    /// The columns of a solution; `None`: all.
    solution: Option<Vec<Variable>>,
    states: States,
    /// Heap memory of the texts and keys in states, in bytes.
    heap_bytes: usize,
}

enum States {
    Count(Counts),
    Sum(Vec<Number>),
    Average(Vec<(Number, Multiplicity)>),
    Extreme { wanted: Ordering, states: Vec<Extreme> },
    Sample(Vec<Id>),
    Concat { separator: String, states: Vec<Concat> },
}

/// Exact counts by group.
#[derive(Default)]
struct Counts {
    /// Low 64 bits of each count.
    low: Vec<u64>,
    /// Higher bits of the counts that need more than 64.
    high: FxHashMap<u32, u64>,
}

impl Counts {
    fn get(&self, group: usize) -> Result<Multiplicity> {
        let low = Multiplicity::new(self.low[group]);
        match u32::try_from(group).ok().and_then(|group| self.high.get(&group)) {
            Some(&high) => Multiplicity::new(1 << 63).scale(2)?.scale(high)?.plus(low),
            None => Ok(low),
        }
    }

    #[inline]
    fn add(&mut self, group: usize, times: Multiplicity) -> Result<()> {
        if let Ok(times) = u64::try_from(times.get())
            && let Some(sum) = self.low[group].checked_add(times)
        {
            self.low[group] = sum;
            return Ok(());
        }
        self.add_large(group, times)
    }

    #[cold]
    fn add_large(&mut self, group: usize, times: Multiplicity) -> Result<()> {
        const MASK: u128 = u64::MAX as u128;
        let sum = self.get(group)?.plus(times)?.get();
        let group_number = u32::try_from(group).map_err(|_| Error::internal("a group above 2^32"))?;
        self.low[group] = u64::try_from(sum & MASK).unwrap_or(u64::MAX);
        self.high.insert(group_number, u64::try_from(sum >> 64).unwrap_or(u64::MAX));
        Ok(())
    }

    fn size_bytes(&self) -> usize {
        self.low.capacity() * size_of::<u64>() + self.high.capacity() * (size_of::<(u32, u64)>() + 1)
    }
}

#[derive(Clone)]
enum Number {
    Failed,
    Integer(i128),
    Decimal(Decimal),
    Wide(Arc<Wide>),
    Float(Float),
    Double(Double),
}

#[derive(Clone, Default)]
enum Extreme {
    #[default]
    Empty,
    Failed,
    /// The best value so far; its key is computed when ids alone do not decide.
    Value(Id, Option<Box<SortKey>>),
}

impl<'a> Accumulators<'a> {
    /// Accumulators of `aggregate`, without groups.
    ///
    /// # Errors
    /// As [`CompiledExpression::new`].
    pub fn new(aggregate: &Aggregate, evaluator: &'a Evaluator<'a>) -> Result<Self> {
        let expression = match &aggregate.expression {
            Some(expression) => Some(CompiledExpression::new(expression, evaluator)?),
            None if aggregate.kind == AggregateKind::Count => None,
            None => return Err(Error::internal(format!("{:?} without an expression", aggregate.kind))),
        };
        let states = match &aggregate.kind {
            AggregateKind::Count => States::Count(Counts::default()),
            AggregateKind::Sum => States::Sum(Vec::new()),
            AggregateKind::Avg => States::Average(Vec::new()),
            AggregateKind::Min => States::Extreme { wanted: Ordering::Less, states: Vec::new() },
            AggregateKind::Max => States::Extreme { wanted: Ordering::Greater, states: Vec::new() },
            AggregateKind::Sample => States::Sample(Vec::new()),
            AggregateKind::GroupConcat { separator } => {
                States::Concat { separator: separator.clone(), states: Vec::new() }
            }
        };
        let distinct = aggregate.distinct.then(FxHashSet::default);
        let solutions = FxHashSet::default();
        Ok(Self { evaluator, expression, distinct, solutions, solution: None, states, heap_bytes: 0 })
    }

    /// Restricts the solutions that `COUNT(DISTINCT *)` compares to these variables (default: all columns).
    #[must_use]
    pub fn with_solution(mut self, variables: Vec<Variable>) -> Self {
        self.solution = Some(variables);
        self
    }

    /// Adds a batch: row `i` belongs to group `groups[i]` and represents `multiplicities[i]` solutions
    /// (`None`: one each). Rows are as in [`CompiledExpression`]; groups are numbered densely from 0.
    ///
    /// # Errors
    /// Damaged data; a limit.
    pub fn update(
        &mut self,
        groups: &[u32],
        columns: &[Vec<Id>],
        multiplicities: Option<&[Multiplicity]>,
    ) -> Result<()> {
        let Some(most) = groups.iter().max() else { return Ok(()) };
        self.states.grow(*most as usize + 1);
        if let Some(all) = multiplicities {
            assert_eq!(all.len(), groups.len(), "one multiplicity for each row");
        }
        let times = |row: usize| multiplicities.map_or(Multiplicity::ONE, |all| all[row]);
        let Self { evaluator, expression, distinct, solutions, solution, states, heap_bytes } = self;
        let Some(expression) = expression else {
            let States::Count(counts) = states else { return Ok(()) };
            for (row, &group) in groups.iter().enumerate() {
                if distinct.is_none() {
                    counts.add(group as usize, times(row))?;
                } else if !times(row).is_zero() {
                    let ids = solution_ids(columns, solution.as_deref(), row);
                    let size_bytes = ids.len() * size_of::<Id>();
                    if solutions.insert((group, ids)) {
                        counts.add(group as usize, Multiplicity::ONE)?;
                        *heap_bytes += size_bytes;
                    }
                }
            }
            return Ok(());
        };
        if let (States::Count(counts), None, Some(variable)) =
            (&mut *states, &distinct, expression.variable())
        {
            let column = columns.get(variable).map_or(&[][..], Vec::as_slice);
            for ((row, &group), id) in groups.iter().enumerate().zip(column) {
                if id.is_bound() {
                    counts.add(group as usize, times(row))?;
                }
            }
            return Ok(());
        }
        let start_bytes = *heap_bytes;
        let mut checked_bytes = start_bytes;
        expression.for_each_row(evaluator, columns, groups.len(), &mut |row, operand, context| {
            let (group, times) = (groups[row], times(row));
            if times.is_zero() {
                return Ok(());
            }
            let Some(mut operand) = operand else {
                states.fail(group as usize);
                return Ok(());
            };
            let mut times = times;
            if let Some(distinct) = distinct {
                let id = context.intern(operand)?;
                if !distinct.insert((group, id)) {
                    return Ok(());
                }
                operand = Operand::Id(id);
                times = Multiplicity::ONE;
            }
            states.add(group as usize, operand, times, context, heap_bytes)?;
            // The caller counts the growth only after the batch.
            if *heap_bytes > checked_bytes.saturating_add(UNCHECKED_BYTES) {
                checked_bytes = *heap_bytes;
                context.evaluator.check_room(*heap_bytes - start_bytes.min(*heap_bytes))?;
            }
            Ok(())
        })
    }

    /// Sets the evaluator: accumulators may move to another thread of the query, with its own limits.
    pub fn set_evaluator(&mut self, evaluator: &'a Evaluator<'a>) {
        self.evaluator = evaluator;
    }

    /// The value of a group; [`Id::UNBOUND`] for an error. A group without rows has the value of an empty
    /// group.
    ///
    /// # Errors
    /// Damaged data; a limit.
    pub fn finish(&mut self, group: usize) -> Result<Id> {
        self.states.grow(group + 1);
        let value = match &self.states {
            States::Count(counts) => Some(Value::Integer(counts.get(group)?.signed())),
            States::Sum(sums) => sums[group].value(),
            States::Average(averages) => match &averages[group] {
                (Number::Failed, _) => None,
                (_, Multiplicity::ZERO) => Some(Value::Integer(0)),
                (sum, count) => {
                    sum.value().and_then(|sum| apply(Operator::Divide, &sum, &Value::Integer(count.signed())))
                }
            },
            States::Extreme { states, .. } => {
                return Ok(match &states[group] {
                    Extreme::Empty | Extreme::Failed => Id::UNBOUND,
                    Extreme::Value(id, _) => *id,
                });
            }
            States::Sample(samples) => return Ok(samples[group]),
            States::Concat { states, .. } => match &states[group] {
                Concat::Failed => None,
                Concat::Empty => Some(Value::String(Cow::Borrowed(""))),
                Concat::One(id) => return Ok(*id),
                Concat::Text(text) => Some(Value::String(Cow::Borrowed(text))),
            },
        };
        let Some(value) = value else { return Ok(Id::UNBOUND) };
        if value.work() > UNITS_UNCHECKED {
            self.evaluator.check()?;
        }
        value.intern(self.evaluator, &mut String::new())
    }

    /// Memory held, in bytes.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        let states = match &self.states {
            States::Count(counts) => counts.size_bytes(),
            States::Sum(states) => states.capacity() * size_of::<Number>(),
            States::Average(states) => states.capacity() * size_of::<(Number, Multiplicity)>(),
            States::Extreme { states, .. } => states.capacity() * size_of::<Extreme>(),
            States::Sample(states) => states.capacity() * size_of::<Id>(),
            States::Concat { states, .. } => states.capacity() * size_of::<Concat>(),
        };
        // A hash set has one control byte for each slot.
        let distinct = self.distinct.as_ref().map_or(0, |set| set.capacity() * (size_of::<(u32, Id)>() + 1));
        states + distinct + self.solutions.capacity() * (size_of::<(u32, Box<[Id]>)>() + 1) + self.heap_bytes
    }
}

/// The ids of the solution of a row.
fn solution_ids(columns: &[Vec<Id>], solution: Option<&[Variable]>, row: usize) -> Box<[Id]> {
    let id = |column: &Vec<Id>| column.get(row).copied().unwrap_or(Id::UNBOUND);
    match solution {
        None => columns.iter().map(id).collect(),
        Some(variables) => {
            variables.iter().map(|variable| columns.get(variable.index()).map_or(Id::UNBOUND, id)).collect()
        }
    }
}

impl States {
    fn grow(&mut self, groups: usize) {
        fn to<T: Clone>(states: &mut Vec<T>, groups: usize, empty: T) {
            if states.len() < groups {
                states.resize(groups, empty);
            }
        }
        match self {
            Self::Count(counts) => to(&mut counts.low, groups, 0),
            Self::Sum(states) => to(states, groups, Number::Integer(0)),
            Self::Average(states) => to(states, groups, (Number::Integer(0), Multiplicity::ZERO)),
            Self::Extreme { states, .. } => to(states, groups, Extreme::Empty),
            Self::Sample(states) => to(states, groups, Id::UNBOUND),
            Self::Concat { states, .. } => to(states, groups, Concat::Empty),
        }
    }

    /// Records an error of the expression for a row of `group`.
    fn fail(&mut self, group: usize) {
        match self {
            Self::Count(_) | Self::Sample(_) => {}
            Self::Sum(states) => states[group] = Number::Failed,
            Self::Average(states) => states[group].0 = Number::Failed,
            Self::Extreme { states, .. } => states[group] = Extreme::Failed,
            Self::Concat { states, .. } => states[group] = Concat::Failed,
        }
    }

    fn add(
        &mut self,
        group: usize,
        operand: Operand<'_>,
        times: Multiplicity,
        context: &mut Context<'_>,
        heap_bytes: &mut usize,
    ) -> Result<()> {
        match self {
            Self::Count(counts) => counts.add(group, times)?,
            Self::Sum(sums) => sums[group].add(operand, times, context, heap_bytes)?,
            Self::Average(averages) => {
                let (sum, count) = &mut averages[group];
                sum.add(operand, times, context, heap_bytes)?;
                *count = count.plus(times)?;
            }
            Self::Extreme { wanted, states } => states[group].add(*wanted, operand, context, heap_bytes)?,
            Self::Sample(samples) => {
                if !samples[group].is_bound() {
                    samples[group] = context.intern(operand)?;
                }
            }
            Self::Concat { separator, states } => {
                states[group].add(separator, operand, times, context, heap_bytes)?;
            }
        }
        Ok(())
    }
}

impl Number {
    fn value(&self) -> Option<Value<'static>> {
        Some(match self {
            Self::Failed => return None,
            Self::Integer(value) => Value::Integer(*value),
            Self::Decimal(value) => Value::Decimal(*value),
            Self::Wide(value) => Value::Wide(value.clone()),
            Self::Float(value) => Value::Float(*value),
            Self::Double(value) => Value::Double(*value),
        })
    }

    /// The number of a value; [`Self::Failed`] for `None` and for other values.
    fn of(value: Option<Value<'_>>) -> Self {
        match value {
            Some(Value::Integer(value)) => Self::Integer(value),
            Some(Value::Decimal(value)) => Self::Decimal(value),
            Some(Value::Wide(value)) => Self::Wide(value),
            Some(Value::Float(value)) => Self::Float(value),
            Some(Value::Double(value)) => Self::Double(value),
            _ => Self::Failed,
        }
    }

    /// Replaces this sum. `heap_bytes` counts the memory of wide sums.
    fn set(&mut self, sum: Self, heap_bytes: &mut usize) {
        let size = |number: &Self| if let Self::Wide(value) = number { value.size_bytes() } else { 0 };
        *heap_bytes = (*heap_bytes + size(&sum)).saturating_sub(size(self));
        *self = sum;
    }

    /// Adds `times` times the operand.
    fn add(
        &mut self,
        operand: Operand<'_>,
        times: Multiplicity,
        context: &mut Context<'_>,
        heap_bytes: &mut usize,
    ) -> Result<()> {
        if let (Self::Integer(sum), Operand::Id(id)) = (&mut *self, &operand)
            && let Some(Inline::Integer(value)) = Inline::from_id(*id)
            && let Some(product) = i128::from(value).checked_mul(times.signed())
            && let Some(total) = sum.checked_add(product)
        {
            *sum = total;
            return Ok(());
        }
        let Some(sum) = self.value() else { return Ok(()) };
        let value = context.decode(operand)?;
        context.work(2 * (sum.work() + value.work()))?;
        let times = times.signed();
        if times == 1 {
            self.set(Self::of(apply(Operator::Add, &sum, &value)), heap_bytes);
            return Ok(());
        }
        // Computes in the type of the sum, so that the product overflows only if the sum does.
        let total = promote(&sum, &value).and_then(|pair| {
            Some(match pair {
                Pair::Integer(sum, value) => Self::Integer(sum.checked_add(value.checked_mul(times)?)?),
                Pair::Decimal(sum, value) => {
                    Self::Decimal(sum.checked_add(value.checked_mul(Decimal::try_from(times).ok()?)?)?)
                }
                Pair::Float(sum, value) => Self::Float(sum + value * float_of(times)),
                Pair::Double(sum, value) => Self::Double(sum + value * double_of(times)),
            })
        });
        let total = total.unwrap_or_else(|| {
            let product = apply(Operator::Multiply, &value, &Value::Integer(times));
            Self::of(product.and_then(|product| apply(Operator::Add, &sum, &product)))
        });
        self.set(total, heap_bytes);
        Ok(())
    }
}

impl Extreme {
    fn add(
        &mut self,
        wanted: Ordering,
        operand: Operand<'_>,
        context: &mut Context<'_>,
        heap_bytes: &mut usize,
    ) -> Result<()> {
        let (best, best_key) = match self {
            Self::Failed => return Ok(()),
            Self::Empty => {
                *self = Self::Value(context.intern(operand)?, None);
                return Ok(());
            }
            Self::Value(best, best_key) => (best, best_key),
        };
        if let Some(id) = operand.known_id() {
            let order = match order_of_ids(id, *best) {
                None => context.order_of_texts(id, *best)?,
                order => order,
            };
            if let Some(order) = order {
                if order == wanted {
                    *best = id;
                    *heap_bytes -= best_key.take().map_or(0, |key| key_bytes(&key)).min(*heap_bytes);
                }
                return Ok(());
            }
        }
        let current = match best_key {
            Some(key) => key,
            None => {
                let key = Box::new(SortKey::new(context.evaluator, *best)?);
                *heap_bytes += key_bytes(&key);
                best_key.insert(key)
            }
        };
        let value = context.decode(operand.clone())?;
        context.work(value.work())?;
        let key = SortKey::of_value(&value);
        if key.cmp(current) == wanted {
            *heap_bytes = heap_bytes.saturating_sub(key_bytes(current)) + key_bytes(&key);
            **current = key;
            *best = context.intern(operand)?;
        }
        context.recycle_value(value);
        Ok(())
    }
}

fn key_bytes(key: &SortKey) -> usize {
    size_of::<SortKey>() + key.heap_bytes()
}
