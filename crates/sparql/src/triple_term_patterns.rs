//! Patterns on triple terms with variables: rewritten to a variable for each triple term, and conditions on
//! its value.
//!
//! # Shape
//! A pattern with a triple term is a separate part, joined with the others: the components of the triple term
//! are extracted from its value (`SUBJECT(?t)` and so on), or compared with it if the pattern itself binds
//! them. So `?s :p <<( ?a :b ?c )>>` is matched by its predicate, and joins other patterns on `?a` and `?c`.
//! Outer variables of an `EXISTS`, and parameters, are already bound and therefore compared. A triple term
//! without variables is a constant and needs no rewriting.
//! # Cost
//! Reads each statement of the pattern: there is no index of the components of triple terms.

use crate::analysis::join;
use vervet_algebra::{Expression, Function, Node, Pattern, Slot, TripleTemplate, Variable, VariableSet};

/// Joins `patterns` and `nodes`, in which variables represent the triple terms of `triples`.
pub(crate) fn with_triples(
    patterns: Vec<Pattern>,
    nodes: Vec<Node>,
    triples: &[TripleTemplate],
    outer: &VariableSet,
) -> Node {
    let position = |slot: &Slot| position_of_slot(slot, triples);
    let mut found = vec![false; triples.len()];
    let (own, rest): (Vec<Pattern>, Vec<Pattern>) = patterns
        .into_iter()
        .partition(|pattern| position(&pattern.subject).is_some() || position(&pattern.object).is_some());
    let mut all = Node::Patterns(rest);
    for pattern in own {
        let (subject, object) = (position(&pattern.subject), position(&pattern.object));
        let mut node = Node::Patterns(vec![pattern]);
        if let Some(subject) = subject {
            // No statement has a triple term as its subject.
            let none = Node::Values { variables: vec![triples[subject].variable], rows: Vec::new() };
            node = join(node, none);
        }
        for at in [subject, object].into_iter().flatten() {
            node = matched(node, at, triples, outer, &mut found);
        }
        all = join(all, node);
    }
    all = nodes.into_iter().fold(all, join);
    // Triple terms at the ends of paths, outer ones first, since inner ones are components of them.
    for at in (0..triples.len()).rev() {
        if !found[at] {
            all = matched(all, at, triples, outer, &mut found);
        }
    }
    all
}

fn position_of_slot(slot: &Slot, triples: &[TripleTemplate]) -> Option<usize> {
    // Variables are numbered in order of the text.
    triples.binary_search_by_key(&slot.variable()?, |triple| triple.variable).ok()
}

/// The solutions of `node` whose variable is such a triple term, extended by its components. Recursion is as
/// deep as triple terms are nested in the text.
fn matched(
    node: Node,
    at: usize,
    triples: &[TripleTemplate],
    outer: &VariableSet,
    found: &mut [bool],
) -> Node {
    let TripleTemplate { variable, parts } = &triples[at];
    found[at] = true;
    let call = |function| Expression::Call(function, vec![Expression::Variable(*variable)]);
    let same = |a, b| Expression::SameTerm(Box::new(a), Box::new(b));
    let mut bound = Vec::new();
    node.variables(&mut bound);
    let mut first = vec![call(Function::IsTriple)];
    let mut values: Vec<(Variable, Expression)> = Vec::new();
    let mut then = Vec::new();
    for (part, function) in parts.iter().zip([Function::Subject, Function::Predicate, Function::Object]) {
        match part {
            Slot::Constant(term) => first.push(same(call(function), Expression::Constant(term.clone()))),
            Slot::Variable(part) if bound.contains(part) || outer.contains(*part) => {
                then.push(same(call(function), Expression::Variable(*part)));
            }
            Slot::Variable(part) => {
                bound.push(*part);
                values.push((*part, call(function)));
            }
        }
    }
    let mut node = filter(node, first);
    for (variable, expression) in values {
        node = Node::Extend { input: Box::new(node), variable, expression };
    }
    node = filter(node, then);
    for part in parts {
        if let Some(inner) = position_of_slot(part, triples) {
            node = matched(node, inner, triples, outer, found);
        }
    }
    node
}

fn filter(input: Node, mut conditions: Vec<Expression>) -> Node {
    let condition = match conditions.len() {
        0 => return input,
        1 => conditions.remove(0),
        _ => Expression::And(conditions),
    };
    Node::Filter { input: Box::new(input), condition }
}
