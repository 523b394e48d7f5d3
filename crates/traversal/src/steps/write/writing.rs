//! The step that runs a mutation once for each traverser of a bulk.

use crate::bulk::Bulk;
use crate::context::Context;
use crate::outputs::Outputs;
use crate::step::{Input, Step};
use crate::traverser::Traverser;
use vervet_gremlin::Value;
use vervet_model::Result;

/// A mutating flat-map step that runs once for each traverser of a bulk.
pub(super) fn writing(
    of: impl FnMut(&Traverser, &mut Context<'_>, &mut Outputs) -> Result<()> + Clone + 'static,
) -> Box<dyn Step> {
    Box::new(Writing { of, rest: None, values: Outputs::default(), from: None })
}

#[derive(Clone)]
struct Writing<F> {
    of: F,
    /// The rest of the bulk, for which the step has not run.
    rest: Option<Traverser>,
    from: Option<Traverser>,
    values: Outputs,
}

impl<F> Step for Writing<F>
where
    F: FnMut(&Traverser, &mut Context<'_>, &mut Outputs) -> Result<()> + Clone + 'static,
{
    fn next(&mut self, input: &mut Input<'_>, context: &mut Context<'_>) -> Result<Option<Traverser>> {
        loop {
            if let (Some(from), Some(value)) = (&self.from, self.values.pop()) {
                return Ok(Some(from.at(value.0)));
            }
            let Some(mut traverser) = (match self.rest.take() {
                Some(rest) => Some(rest),
                None => input.next(context)?,
            }) else {
                return Ok(None);
            };
            context.tick()?;
            if let Some(others) = traverser.bulk.minus(1) {
                self.rest = Some(Traverser { bulk: others, ..traverser.clone() });
                traverser.bulk = Bulk::ONE;
            }
            // The transaction holds the written data.
            context.keep(&Value::Null)?;
            self.values.clear();
            (self.of)(&traverser, context, &mut self.values)?;
            self.from = Some(traverser);
        }
    }

    fn reset(&mut self) {
        self.rest = None;
        self.from = None;
        self.values.clear();
    }

    fn moves(&self) -> bool {
        true
    }
}
