//! Filter and extend: evaluation of expressions over rows.

use crate::pipeline::batch::{Batch, Keep};
use crate::pipeline::chain::{Chain, Flow, Kernel};
use vervet_algebra::Variable;
use vervet_expression::CompiledExpression;
use vervet_model::{Id, Result};

/// Keeps the rows for which an expression is true.
pub(crate) struct Filter {
    pub condition: CompiledExpression,
    pub keep: Keep,
    pub selection: Vec<u32>,
}

impl<'a> Kernel<'a> for Filter {
    fn push(&mut self, batch: &mut Batch, next: &mut Chain<'_, 'a>) -> Result<Flow> {
        self.selection.clear();
        let run = next.run();
        self.condition.filter(run.evaluator, &batch.columns, batch.rows, &mut self.selection)?;
        run.count_computed()?;
        batch.select(&self.selection, &self.keep);
        next.push(batch)
    }
}

/// Adds a column with the values of an expression.
pub(crate) struct Extend {
    pub variable: Variable,
    pub expression: CompiledExpression,
    pub keep: Keep,
    pub values: Vec<Id>,
}

impl<'a> Kernel<'a> for Extend {
    fn push(&mut self, batch: &mut Batch, next: &mut Chain<'_, 'a>) -> Result<Flow> {
        self.values.clear();
        let run = next.run();
        self.expression.evaluate(run.evaluator, &batch.columns, batch.rows, &mut self.values)?;
        run.count_computed()?;
        std::mem::swap(&mut batch.columns[self.variable.index()], &mut self.values);
        batch.drop_all_but(&self.keep);
        next.push(batch)
    }
}
