//! Patterns with triple terms that have variables: a variable in place of each triple term, and conditions on
//! what it is.
//!
//! # Shape
//! A pattern with a triple term is a part of its own, joined with the others: its parts are taken from what
//! it finds (`SUBJECT(?t)` and so on), or compared with it where the pattern binds them itself. So `?s :p <<(
//! ?a :b ?c )>>` is found by its predicate, and joins others on `?a` and `?c`, as any pattern does. What rows
//! outside of an `EXISTS` bind, or parameters, has a value already and is compared too. A triple term without
//! variables is a constant, and not here.
//! # Cost
//! Each statement of the pattern is looked at: there is no index of what triple terms are about.

use crate::walk::{VariableSet, join};
use vervet_algebra::{Expression, Function, Node, Pattern, Slot, TripleTemplate, Variable};

/// `patterns` and `nodes` joined, where the variables of `triples` stand for triple terms.
pub(crate) fn with_triples(
    patterns: Vec<Pattern>,
    nodes: Vec<Node>,
    triples: &[TripleTemplate],
    outer: &VariableSet,
) -> Node {
    let place = |slot: &Slot| place_of(slot, triples);
    let mut found = vec![false; triples.len()];
    let (own, rest): (Vec<Pattern>, Vec<Pattern>) = patterns
        .into_iter()
        .partition(|pattern| place(&pattern.subject).is_some() || place(&pattern.object).is_some());
    let mut all = Node::Patterns(rest);
    for pattern in own {
        let (subject, object) = (place(&pattern.subject), place(&pattern.object));
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
    // Ends of paths. The outer ones first: inner ones are parts of them.
    for at in (0..triples.len()).rev() {
        if !found[at] {
            all = matched(all, at, triples, outer, &mut found);
        }
    }
    all
}

fn place_of(slot: &Slot, triples: &[TripleTemplate]) -> Option<usize> {
    // Variables are numbered as the text mentions them.
    triples.binary_search_by_key(&slot.variable()?, |triple| triple.variable).ok()
}

/// The solutions of `node` whose value of the variable is such a triple term, with its parts. As deep as
/// triple terms are in the text.
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
        if let Some(inner) = place_of(part, triples) {
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
