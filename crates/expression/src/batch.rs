//! Compiled expressions, evaluated over batches.
//!
//! # Cost
//! A comparison of a column with one or two constants (or columns of one value, as parameters are), or an
//! equality with a constant, takes 1 to 3 ns a row if ids decide it. Other expressions are evaluated as a
//! tree for each row: about 10 ns for a comparison of two columns of integers, 80 for a sum of two, 150 for
//! `CONTAINS` on a text of 50 bytes (most of it for reading the text), 600 for a multiplication or division
//! of decimals (`tests/speed.rs`, 2026-11-20, two shared
//! cores). A row with the same inputs as the previous row reuses its result; an expression of one variable
//! also caches the results of [`SLOTS`] other values of the batch, so expansions to a few vertices do not
//! read the same texts repeatedly.

use crate::compile::{Node, compile};
use crate::context::{Constant, Context, Operand};
use crate::evaluator::Evaluator;
use crate::operands::equal_ids;
use crate::payload_range::PayloadRange;
use crate::value::Value;
use vervet_algebra::Expression;
use vervet_model::{Id, Result, Tag};

/// Number of values with cached results within a batch: 1 KiB.
const SLOTS: usize = 64;

/// Members of `IN` that one unit of work compares by their ids.
const IN_ITEMS_PER_UNIT: usize = 8;

/// An expression compiled for evaluation over batches.
///
/// A batch is a list of columns, by [`vervet_algebra::Variable::index`], and a number of rows. A column
/// that is absent (or shorter than the batch) is unbound.
#[derive(Clone, Debug)]
pub struct CompiledExpression {
    root: Node,
    /// Input variables.
    inputs: Vec<usize>,
    /// Whether the expression is deterministic: equal inputs give equal values.
    is_function: bool,
}

/// Callback for a row, its operand (`None`: an error) and the context.
type Visit<'v> = dyn FnMut(usize, Option<Operand<'_>>, &mut Context<'_>) -> Result<()> + 'v;

impl CompiledExpression {
    /// Compiles `expression` for one query: looks constants up, compiles patterns, folds constant parts.
    ///
    /// # Errors
    /// An unknown function or a wrong number of arguments; an invalid base IRI; an expression nested too
    /// deep; damaged data.
    pub fn new(expression: &Expression, evaluator: &Evaluator<'_>) -> Result<Self> {
        let root = compile(expression, evaluator, 0)?;
        let mut inputs = Vec::new();
        let is_function = root.inputs(&mut inputs);
        Ok(Self { root, inputs, is_function })
    }

    /// The term of a constant expression.
    #[must_use]
    pub fn constant(&self) -> Option<Id> {
        match &self.root {
            Node::Constant(constant) => Some(constant.id),
            _ => None,
        }
    }

    /// The compiled tree.
    pub(crate) fn root(&self) -> &Node {
        &self.root
    }

    /// The variable of an expression that is one.
    pub(crate) fn variable(&self) -> Option<usize> {
        match self.root {
            Node::Variable(variable) => Some(variable),
            _ => None,
        }
    }

    /// Appends to `selection` the rows, ascending, for which the effective boolean value is true.
    ///
    /// # Errors
    /// Damaged data; a limit.
    pub fn filter(
        &self,
        evaluator: &Evaluator<'_>,
        columns: &[Vec<Id>],
        rows: usize,
        selection: &mut Vec<u32>,
    ) -> Result<()> {
        let mut context = Context::new(evaluator, columns);
        match &self.root {
            Node::Constant(_) | Node::Error => {
                if self.root.truth(&mut context)? == Some(true) {
                    selection.extend((0..rows).map(row_number));
                }
                return Ok(());
            }
            Node::Compare(..) | Node::And(_) => {
                let uniform = |variable: usize| uniform(columns.get(variable)?.get(..rows)?);
                if let Some((variable, bounds)) = PayloadRange::of(&self.root, &uniform) {
                    let quick = |id| bounds.has(id);
                    return self.filter_column(&mut context, variable, rows, quick, selection);
                }
            }
            Node::In(item, list) => {
                if let (Node::Variable(variable), Some(vertices)) = (&**item, vertices(list)) {
                    let quick = |id: Id| (id.tag() == Tag::Vertex).then(|| vertices.contains(&id));
                    return self.filter_column(&mut context, *variable, rows, quick, selection);
                }
            }
            Node::InConstants(item, list, others) => {
                if let Node::Variable(variable) = &**item {
                    let quick = |id| list.has_id(id, others.is_empty());
                    return self.filter_column(&mut context, *variable, rows, quick, selection);
                }
            }
            Node::Equal(ab) => {
                if let Some((variable, constant)) = of_constant(ab) {
                    let quick = |id| equals_constant(id, constant);
                    return self.filter_column(&mut context, variable, rows, quick, selection);
                }
            }
            Node::Not(inner) => {
                if let Node::SameTerm(ab) = &**inner
                    && let Some((variable, constant)) = of_constant(ab)
                {
                    let quick = |id: Id| id.is_bound().then_some(id != constant.id);
                    return self.filter_column(&mut context, variable, rows, quick, selection);
                }
            }
            Node::SameTerm(ab) => {
                if let Some((variable, constant)) = of_constant(ab) {
                    let quick = |id: Id| Some(id == constant.id);
                    return self.filter_column(&mut context, variable, rows, quick, selection);
                }
            }
            _ => {}
        }
        if let ([variable], true) = (self.inputs.as_slice(), self.is_function) {
            return self.filter_column(&mut context, *variable, rows, |_| None, selection);
        }
        let mut last = false;
        for row in 0..rows {
            if !self.repeats(&context, row) {
                context.row = row;
                last = self.root.truth(&mut context)? == Some(true);
            }
            if last {
                selection.push(row_number(row));
            }
        }
        Ok(())
    }

    /// Pushes the value of each row to `out`; [`Id::UNBOUND`] where it is an error.
    ///
    /// # Errors
    /// Damaged data; a limit.
    pub fn evaluate(
        &self,
        evaluator: &Evaluator<'_>,
        columns: &[Vec<Id>],
        rows: usize,
        out: &mut Vec<Id>,
    ) -> Result<()> {
        out.reserve(rows);
        match &self.root {
            Node::Constant(constant) => out.extend(std::iter::repeat_n(constant.id, rows)),
            Node::Error => out.extend(std::iter::repeat_n(Id::UNBOUND, rows)),
            Node::Variable(variable) => {
                let column = columns.get(*variable).map_or(&[][..], |column| column.as_slice());
                let present = column.len().min(rows);
                out.extend_from_slice(&column[..present]);
                out.extend(std::iter::repeat_n(Id::UNBOUND, rows - present));
            }
            _ => {
                let mut context = Context::new(evaluator, columns);
                let column = match self.inputs.as_slice() {
                    [variable] if self.is_function => columns.get(*variable),
                    _ => None,
                };
                let mut recent = DirectMappedCache::new(Id::UNBOUND);
                let mut last = Id::UNBOUND;
                for row in 0..rows {
                    let input = column.and_then(|column| column.get(row).copied());
                    if let Some(known) = input.and_then(|input| recent.get(input)) {
                        last = known;
                    } else if !self.repeats(&context, row) {
                        context.row = row;
                        last = match self.root.evaluate(&mut context)? {
                            Some(operand) => context.intern(operand)?,
                            None => Id::UNBOUND,
                        };
                        if let Some(input) = input {
                            recent.put(input, last);
                        }
                    }
                    out.push(last);
                }
            }
        }
        Ok(())
    }

    /// Calls `visit` with the operand of each row, `None` for an error.
    pub(crate) fn for_each_row(
        &self,
        evaluator: &Evaluator<'_>,
        columns: &[Vec<Id>],
        rows: usize,
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        let mut context = Context::new(evaluator, columns);
        // Values of an expression of one variable are reused as long as the variable has the same value.
        let reuses = self.is_function && self.inputs.len() == 1 && self.variable().is_none();
        let mut last = None;
        for row in 0..rows {
            context.row = row;
            if reuses && last.is_some() && self.repeats(&context, row) {
                visit(row, last.clone().flatten(), &mut context)?;
                continue;
            }
            let operand = self.root.evaluate(&mut context)?;
            if reuses {
                last = Some(operand.clone());
            }
            visit(row, operand, &mut context)?;
        }
        Ok(())
    }

    /// Selects rows by the single input column: those accepted by `quick` or, if `quick` returns `None`,
    /// those for which the whole expression is true.
    fn filter_column(
        &self,
        context: &mut Context<'_>,
        variable: usize,
        rows: usize,
        quick: impl Fn(Id) -> Option<bool>,
        selection: &mut Vec<u32>,
    ) -> Result<()> {
        let column = context.columns.get(variable).map_or(&[][..], Vec::as_slice);
        let mut recent = DirectMappedCache::new(false);
        // Branch-free, since the result is unpredictable: every row number is written, and the next one
        // overwrites a rejected one.
        let mut count = selection.len();
        selection.resize(count + rows, 0);
        for row in 0..rows {
            let id = column.get(row).copied().unwrap_or(Id::UNBOUND);
            let selected = match quick(id).or_else(|| recent.get(id)) {
                Some(selected) => selected,
                None => {
                    context.row = row;
                    let known = match &self.root {
                        Node::In(item, list) if matches!(**item, Node::Variable(_)) => {
                            context.work(list.len() / IN_ITEMS_PER_UNIT)?;
                            is_in(id, list)
                        }
                        _ => None,
                    };
                    let selected = match known {
                        Some(known) => known,
                        None => self.root.truth(context)? == Some(true),
                    };
                    recent.put(id, selected);
                    selected
                }
            };
            if let Some(slot) = selection.get_mut(count) {
                *slot = row_number(row);
            }
            count += usize::from(selected);
        }
        selection.truncate(count);
        Ok(())
    }

    /// Whether `row` has the same inputs as the previous row.
    fn repeats(&self, context: &Context<'_>, row: usize) -> bool {
        self.is_function
            && row > 0
            && self.inputs.iter().all(|&variable| {
                context.columns.get(variable).is_none_or(|column| column.get(row) == column.get(row - 1))
            })
    }
}

/// Direct-mapped cache of the results of an expression of one variable; the value determines the slot.
struct DirectMappedCache<T>([(Id, T); SLOTS]);

impl<T: Copy> DirectMappedCache<T> {
    /// An empty cache; `unbound`: the result of empty slots.
    fn new(unbound: T) -> Self {
        Self([(Id::UNBOUND, unbound); SLOTS])
    }

    #[inline]
    fn slot(id: Id) -> usize {
        // Fibonacci hashing: high bits of the product with an odd number near 2^64 over the golden ratio.
        (id.bits().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize % SLOTS
    }

    #[inline]
    fn get(&self, id: Id) -> Option<T> {
        let (known, answer) = self.0[Self::slot(id)];
        (known == id && id != Id::UNBOUND).then_some(answer)
    }

    fn put(&mut self, id: Id, answer: T) {
        self.0[Self::slot(id)] = (id, answer);
    }
}

/// Whether `id = constant` is true, if the ids alone decide it; an error counts as false. Extends
/// [`equal_ids`]: a string equals no other literal, and has one id.
#[inline]
pub(crate) fn equals_constant(id: Id, constant: &Constant) -> Option<bool> {
    match equal_ids(id, constant.id) {
        None if matches!(constant.value, Value::String(_))
            && matches!(id.tag(), Tag::Literal | Tag::ShortString) =>
        {
            Some(id == constant.id)
        }
        answer => answer,
    }
}

/// The value of all rows, if there is one.
fn uniform(column: &[Id]) -> Option<Id> {
    let (&first, &last) = (column.first()?, column.last()?);
    // Most columns differ at their ends.
    (first == last && column.iter().all(|&id| id == first)).then_some(first)
}

/// The variable and the constant, in either order.
fn of_constant(ab: &[Node; 2]) -> Option<(usize, &Constant)> {
    match ab {
        [Node::Variable(variable), Node::Constant(constant)]
        | [Node::Constant(constant), Node::Variable(variable)] => Some((*variable, constant)),
        _ => None,
    }
}

/// The constants of a list of only IRIs and blank nodes, each of which equals only itself.
fn vertices(list: &[Node]) -> Option<Vec<Id>> {
    let vertex = |node: &Node| match node {
        Node::Constant(constant) if constant.id.tag() == Tag::Vertex => Some(constant.id),
        _ => None,
    };
    list.iter().map(vertex).collect()
}

/// Whether `id IN (list)` is true, if ids and constants alone decide it.
fn is_in(id: Id, list: &[Node]) -> Option<bool> {
    let mut found = Some(false);
    for item in list {
        let Node::Constant(constant) = item else { return None };
        match equals_constant(id, constant) {
            Some(true) => return Some(true),
            Some(false) => {}
            None => found = None,
        }
    }
    found
}

/// A row of a batch as a number; batches have about a thousand rows.
fn row_number(row: usize) -> u32 {
    u32::try_from(row).unwrap_or(u32::MAX)
}
