//! Expressions over batches.
//!
//! # Cost
//! A comparison of a column with one or two constants, or an equality with one, that both ids decide takes 1
//! to 3 ns a row. Other expressions walk their tree for each row: about 10 ns for a comparison of two columns
//! of integers, 80 for a sum of two, 150 for `CONTAINS` on a text of 50 bytes (of which reading it is the
//! larger part), 600 where decimals are multiplied or divided (`tests/speed.rs`, 2026-11-20, two shared
//! cores). Rows whose inputs are those of the row before reuse its answer; an expression of one variable
//! reuses those of [`SLOTS`] other values that came before in the batch, so walks to a few vertices do not
//! read their texts again and again.

use crate::bounds::Bounds;
use crate::compile::{Node, compile};
use crate::context::{Constant, Context, Operand};
use crate::evaluate::equal_ids;
use crate::evaluator::Evaluator;
use crate::value::Value;
use vervet_algebra::Expression;
use vervet_model::{Id, Result, Tag};

/// Values whose answers are kept while a batch runs: 1 KiB.
const SLOTS: usize = 64;

/// An expression that is ready to run over batches.
///
/// A batch is a list of columns, by [`vervet_algebra::Variable::index`], and a number of rows. A column
/// that is absent (or shorter than the batch) is unbound.
#[derive(Clone, Debug)]
pub struct CompiledExpression {
    root: Node,
    /// Variables that occur.
    inputs: Vec<usize>,
    /// Whether equal inputs give equal values.
    is_function: bool,
}

/// What is done with a row, its operand (`None`: an error) and the working space.
type Visit<'v> = dyn FnMut(usize, Option<Operand<'_>>, &mut Context<'_>) -> Result<()> + 'v;

impl CompiledExpression {
    /// Compiles `expression` for one query: looks constants up, compiles patterns, computes what is constant.
    ///
    /// # Errors
    /// A function that does not exist or cannot take so many arguments; a wrong base; an expression
    /// nested too deep; damaged data.
    pub fn new(expression: &Expression, evaluator: &Evaluator<'_>) -> Result<Self> {
        let root = compile(expression, evaluator, 0)?;
        let mut inputs = Vec::new();
        let is_function = root.inputs(&mut inputs);
        Ok(Self { root, inputs, is_function })
    }

    /// The term that the expression always has, if it is constant.
    #[must_use]
    pub fn constant(&self) -> Option<Id> {
        match &self.root {
            Node::Constant(constant) => Some(constant.id),
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
                if let Some((variable, bounds)) = Bounds::of(&self.root) {
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
                let mut recent = Recent::new(Id::UNBOUND);
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
        for row in 0..rows {
            context.row = row;
            let operand = self.root.evaluate(&mut context)?;
            visit(row, operand, &mut context)?;
        }
        Ok(())
    }

    /// Selects the rows of the one column that the expression is about: those that `quick` says yes to, and
    /// where it cannot say, those for which the whole expression is true.
    fn filter_column(
        &self,
        context: &mut Context<'_>,
        variable: usize,
        rows: usize,
        quick: impl Fn(Id) -> Option<bool>,
        selection: &mut Vec<u32>,
    ) -> Result<()> {
        let column = context.columns.get(variable).map_or(&[][..], Vec::as_slice);
        let mut recent = Recent::new(false);
        // Which rows pass is hard to foretell, so each is written, and the next one overwrites those that do
        // not.
        let mut count = selection.len();
        selection.resize(count + rows, 0);
        for row in 0..rows {
            let id = column.get(row).copied().unwrap_or(Id::UNBOUND);
            let selected = match quick(id).or_else(|| recent.get(id)) {
                Some(selected) => selected,
                None => {
                    context.row = row;
                    let known = match &self.root {
                        Node::In(item, list) if matches!(**item, Node::Variable(_)) => is_in(id, list),
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

    /// Whether `row` has the inputs of the row before.
    fn repeats(&self, context: &Context<'_>, row: usize) -> bool {
        self.is_function
            && row > 0
            && self.inputs.iter().all(|&variable| {
                context.columns.get(variable).is_none_or(|column| column.get(row) == column.get(row - 1))
            })
    }
}

/// What an expression of one variable was for the values that came last: one for each place, which the value
/// itself names.
struct Recent<T>([(Id, T); SLOTS]);

impl<T: Copy> Recent<T> {
    /// None yet; `unbound`: what stands beside no value.
    fn new(unbound: T) -> Self {
        Self([(Id::UNBOUND, unbound); SLOTS])
    }

    #[inline]
    fn place(id: Id) -> usize {
        // The high bits of a product by an odd number near 2^64 over the golden ratio.
        (id.bits().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize % SLOTS
    }

    #[inline]
    fn get(&self, id: Id) -> Option<T> {
        let (known, answer) = self.0[Self::place(id)];
        (known == id && id != Id::UNBOUND).then_some(answer)
    }

    fn put(&mut self, id: Id, answer: T) {
        self.0[Self::place(id)] = (id, answer);
    }
}

/// Whether `id = constant` is true, where the ids alone decide it; false stands for an error too. Beyond
/// [`equal_ids`]: a string is equal to no literal but itself, and has one id.
#[inline]
fn equals_constant(id: Id, constant: &Constant) -> Option<bool> {
    match equal_ids(id, constant.id) {
        None if matches!(constant.value, Value::String(_))
            && matches!(id.tag(), Tag::Literal | Tag::ShortString) =>
        {
            Some(id == constant.id)
        }
        answer => answer,
    }
}

/// The variable and the constant, on whichever sides they are.
fn of_constant(ab: &[Node; 2]) -> Option<(usize, &Constant)> {
    match ab {
        [Node::Variable(variable), Node::Constant(constant)]
        | [Node::Constant(constant), Node::Variable(variable)] => Some((*variable, constant)),
        _ => None,
    }
}

/// The constants of a list that has nothing but IRIs and blank nodes, which are equal to themselves alone.
fn vertices(list: &[Node]) -> Option<Vec<Id>> {
    let vertex = |node: &Node| match node {
        Node::Constant(constant) if constant.id.tag() == Tag::Vertex => Some(constant.id),
        _ => None,
    };
    list.iter().map(vertex).collect()
}

/// Whether `id IN (list)` is true, where ids and constants alone decide it.
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
