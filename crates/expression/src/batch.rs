//! Expressions over batches.
//!
//! # Cost
//! A comparison or an equality of a column with a constant that both ids decide takes 2 to 7 ns a row.
//! Other expressions walk their tree for each row: about 10 ns for a comparison of two columns of integers,
//! 80 for a sum of two, 150 for `CONTAINS` on a text of 50 bytes (of which reading it is the larger part),
//! 600 where decimals are multiplied or divided (`tests/speed.rs`, 2026-11-20, two shared cores).
//! Rows whose inputs are those of the row before reuse its answer.

use crate::compile::{Node, compile};
use crate::context::{Context, Operand};
use crate::evaluate::{compare_ids, equal_ids};
use crate::evaluator::Evaluator;
use vervet_algebra::Expression;
use vervet_model::{Id, Result};

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
            Node::Compare(comparator, ab) => {
                if let [Node::Variable(variable), Node::Constant(constant)] = &**ab {
                    let quick = |id| compare_ids(*comparator, id, constant.id);
                    return self.filter_column(&mut context, *variable, rows, quick, selection);
                }
            }
            Node::Equal(ab) => {
                if let [Node::Variable(variable), Node::Constant(constant)]
                | [Node::Constant(constant), Node::Variable(variable)] = &**ab
                {
                    let quick = |id| equal_ids(id, constant.id);
                    return self.filter_column(&mut context, *variable, rows, quick, selection);
                }
            }
            _ => {}
        }
        let mut last = None;
        for row in 0..rows {
            let truth = match last {
                Some(truth) if self.repeats(&context, row) => truth,
                _ => {
                    context.row = row;
                    self.root.truth(&mut context)?
                }
            };
            last = Some(truth);
            if truth == Some(true) {
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
                let mut last = None;
                for row in 0..rows {
                    let id = match last {
                        Some(id) if self.repeats(&context, row) => id,
                        _ => {
                            context.row = row;
                            match self.root.evaluate(&mut context)? {
                                Some(operand) => context.intern(operand)?,
                                None => Id::UNBOUND,
                            }
                        }
                    };
                    last = Some(id);
                    out.push(id);
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

    /// Selects the rows of a column that `quick` says yes to, and asks the whole expression where it cannot say.
    fn filter_column(
        &self,
        context: &mut Context<'_>,
        variable: usize,
        rows: usize,
        quick: impl Fn(Id) -> Option<bool>,
        selection: &mut Vec<u32>,
    ) -> Result<()> {
        let columns = context.columns;
        let Some(column) = columns.get(variable) else { return Ok(()) };
        let mut last = (Id::UNBOUND, false);
        for (row, &id) in column.iter().enumerate().take(rows) {
            let selected = match quick(id) {
                Some(selected) => selected,
                None if id == last.0 => last.1,
                None => {
                    context.row = row;
                    let selected = self.root.truth(context)? == Some(true);
                    last = (id, selected);
                    selected
                }
            };
            if selected {
                selection.push(row_number(row));
            }
        }
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

/// A row of a batch as a number; batches have about a thousand rows.
fn row_number(row: usize) -> u32 {
    u32::try_from(row).unwrap_or(u32::MAX)
}
