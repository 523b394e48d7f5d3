//! Analysis of plans: steps with volatile expressions, and with expressions that depend on the solution.

use crate::plan::{Pipeline, Step};
use vervet_algebra::{Expression, Function};

/// Whether a step, nested pipelines excluded, evaluates a volatile function.
pub(crate) fn is_volatile(step: &Step) -> bool {
    calls(step, &|expression| matches!(expression, Expression::Call(function, _) if function.is_volatile()))
}

/// Whether an expression of this step, nested pipelines excluded, satisfies `is_one`.
fn calls(step: &Step, is_one: &dyn Fn(&Expression) -> bool) -> bool {
    let any = |expression: &Expression| contains(expression, is_one);
    match step {
        Step::Filter(expression) | Step::Extend { expression, .. } => any(expression),
        Step::Join { kind, .. } => kind.condition().is_some_and(any),
        Step::Order { keys, .. } => keys.iter().any(|key| any(&key.expression)),
        Step::Group { aggregates, .. } => {
            aggregates.iter().any(|(_, aggregate)| aggregate.expression.as_ref().is_some_and(any))
        }
        _ => false,
    }
}

/// Whether some expression of these steps depends on the identity of the solution.
pub(crate) fn needs_solution(pipeline: &Pipeline) -> bool {
    let is_one = |expression: &Expression| matches!(expression, Expression::Call(Function::BNode, arguments) if !arguments.is_empty());
    pipeline
        .steps
        .iter()
        .any(|step| calls(&step.step, &is_one) || step.step.nested().iter().any(needs_solution))
}

fn contains(expression: &Expression, is_one: &dyn Fn(&Expression) -> bool) -> bool {
    let mut found = is_one(expression);
    expression.for_each_child(&mut |child| found = found || contains(child, is_one));
    found
}
