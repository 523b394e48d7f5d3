//! Computed variables that only the next step reads, once: the step computes the value itself.
//!
//! # Shape
//! A pass over the finished plan, from its end. `BIND(f(?x) AS ?y) … SUM(g(?y))` becomes `SUM(g(f(?x)))`.
//! # Cost
//! A binding makes a term of each value: a look-up in the dictionary, an entry in the table of computed
//! terms, and decoding where it is read. `replace` of `vervet-bench outside --only sparqloscope`
//! (2026-11-24): 69 ms with a binding, 15.5 ms without.
//! # Invariants
//! An error in the inlined expression is an error where the variable would be unbound, which is an error too.
//! `BOUND` of the variable, `EXISTS` and volatile functions prevent it, and so do expressions deeper than
//! [`DEPTH_MAX`].

use vervet_algebra::{Expression, Variable};
use vervet_kernel::plan::{Pipeline, PlanStep, Step};

/// Maximum depth of an expression made here: the evaluation is recursive.
const DEPTH_MAX: usize = 16;

/// Inlines computed variables; the steps have their `keep` columns.
pub(crate) fn inline_computed(pipeline: &mut Pipeline) {
    let mut at = pipeline.steps.len();
    while at > 0 {
        at -= 1;
        while at > 0 && inline_previous(&mut pipeline.steps, at) {
            at -= 1;
        }
        match &mut pipeline.steps[at].step {
            Step::Join { right: one, .. }
            | Step::Optional { inner: one, .. }
            | Step::Seeded { inner: one, .. }
            | Step::Exists { inner: one, .. } => inline_computed(one),
            Step::Union { branches } => branches.iter_mut().for_each(inline_computed),
            _ => {}
        }
    }
}

/// Moves the expression of step `at - 1` into step `at`, and removes step `at - 1`, if that is possible.
fn inline_previous(steps: &mut Vec<PlanStep>, at: usize) -> bool {
    let (before, rest) = steps.split_at_mut(at);
    let (Some(PlanStep { step: Step::Extend { variable, expression }, .. }), [reader, ..]) =
        (before.last(), rest)
    else {
        return false;
    };
    if reader.keep.contains(variable) || expression.is_volatile() || expression.has_exists() {
        return false;
    }
    let readers: Vec<&mut Expression> = match &mut reader.step {
        Step::Filter(condition) => vec![condition],
        Step::Extend { expression, .. } => vec![expression],
        Step::Group { keys, aggregates } if !keys.contains(variable) => {
            // Rows count by their columns.
            if aggregates.iter().any(|(_, one)| one.expression.is_none() && one.distinct) {
                return false;
            }
            aggregates.iter_mut().filter_map(|(_, one)| one.expression.as_mut()).collect()
        }
        _ => return false,
    };
    let mut reading = readers.into_iter().filter(|reader| uses(reader, *variable) != Some(0));
    let (Some(reader), None) = (reading.next(), reading.next()) else { return false };
    let fits = depth(reader) + depth(expression) <= DEPTH_MAX;
    if uses(reader, *variable) != Some(1) || reader.has_exists() || !fits {
        return false;
    }
    let (variable, mut value) = (*variable, Some(expression.clone()));
    reader.for_each_variable_mut(&mut |one| {
        if *one == Expression::Variable(variable)
            && let Some(value) = value.take()
        {
            *one = value;
        }
    });
    steps.remove(at - 1);
    true
}

/// How often the expression reads the value of the variable; `None` if it needs the variable itself.
fn uses(expression: &Expression, variable: Variable) -> Option<usize> {
    match expression {
        Expression::Variable(other) => Some(usize::from(*other == variable)),
        Expression::Bound(other) => (*other != variable).then_some(0),
        Expression::Exists(exists) => (!exists.outer.contains(&variable)).then_some(0),
        _ => {
            let mut sum = Some(0);
            expression.for_each_child(&mut |child| {
                sum = sum.zip(uses(child, variable)).map(|(sum, more)| sum + more);
            });
            sum
        }
    }
}

fn depth(expression: &Expression) -> usize {
    let mut most = 0;
    expression.for_each_child(&mut |child| most = most.max(depth(child)));
    most + 1
}
