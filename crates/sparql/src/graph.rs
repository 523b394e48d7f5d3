//! `GRAPH`: evaluation of a group on one named graph.
//!
//! SPARQL evaluates the group once for each named graph and then joins `?g`. Here each pattern has a graph
//! slot, and patterns with the same variable join on it. Both are equivalent if every separately evaluated
//! part contains such a pattern. If one does not (`GRAPH ?g { VALUES ... }`), [`Parser::anchor_of`] adds a
//! pattern that matches once for each graph. If both would still differ, the query is rejected as
//! unsupported.

use crate::QueryError;
use crate::analysis::ordinary_variables;
use crate::lexer::Token;
use crate::parser::Parser;
use vervet_algebra::{GraphSlot, Node, Variable};

impl Parser<'_, '_> {
    /// The graph and group after `GRAPH`.
    pub(crate) fn graph_group(&mut self) -> Result<Node, QueryError> {
        let start = self.ahead;
        let slot = match start.token {
            Token::Variable => GraphSlot::Variable(self.variable()?),
            Token::Iri | Token::Name => GraphSlot::Named(self.iri()?),
            _ => return Err(self.expected("a variable or an IRI")),
        };
        let outer = std::mem::replace(&mut self.graph, slot);
        let node = self.group();
        let slot = std::mem::replace(&mut self.graph, outer);
        let node = node?;
        if let GraphSlot::Variable(variable) = slot
            && !agrees(&node, variable)
        {
            let what = format!(
                "{} both as a graph and in a part of that GRAPH that hides or extends it is",
                self.spelled(start)
            );
            return Err(self.unsupported(start, &what));
        }
        Ok(node)
    }

    /// A pattern for the existence of the current graph, unless `node` implies it.
    pub(crate) fn anchor_of(&mut self, node: &Node) -> Result<Option<Node>, QueryError> {
        if self.graph == GraphSlot::Default || implies(node, &self.graph) {
            return Ok(None);
        }
        let patterns = Node::Patterns(vec![self.any_statement()?]);
        Ok(Some(match self.graph {
            GraphSlot::Variable(variable) => Node::Distinct(Box::new(Node::Project {
                input: Box::new(patterns),
                variables: vec![variable],
            })),
            _ => {
                let empty = Node::Project { input: Box::new(patterns), variables: Vec::new() };
                Node::Slice { input: Box::new(empty), start: 0, length: Some(1) }
            }
        }))
    }
}

/// Whether each solution of `node` requires a statement in this graph, and binds its variable.
fn implies(node: &Node, graph: &GraphSlot) -> bool {
    let shown = |variables: &[Variable]| match graph {
        GraphSlot::Variable(variable) => variables.contains(variable),
        _ => true,
    };
    match node {
        Node::Patterns(patterns) => patterns.iter().any(|pattern| pattern.graph == *graph),
        Node::Path(path) => !path.path.is_nullable() && path.graphs == std::slice::from_ref(graph),
        Node::Join(nodes) => nodes.iter().any(|node| implies(node, graph)),
        Node::Union(nodes) => nodes.iter().all(|node| implies(node, graph)),
        Node::LeftJoin { left: input, .. }
        | Node::Minus { left: input, .. }
        | Node::Filter { input, .. }
        | Node::Extend { input, .. }
        | Node::Distinct(input)
        | Node::Reduced(input)
        | Node::OrderBy { input, .. }
        | Node::Slice { input, .. } => implies(input, graph),
        Node::Project { input, variables } => shown(variables) && implies(input, graph),
        Node::Group { input, keys, .. } => !keys.is_empty() && shown(keys) && implies(input, graph),
        Node::Values { .. } | Node::Service(_) => false,
    }
}

/// Whether pre-binding the graph `variable` inside `node` does not change the result: it does not occur in
/// another role, or only where all parts are joined.
fn agrees(node: &Node, variable: Variable) -> bool {
    match node {
        Node::Patterns(_) | Node::Path(_) | Node::Service(_) | Node::Values { .. } => true,
        Node::Join(nodes) | Node::Union(nodes) => nodes.iter().all(|node| agrees(node, variable)),
        Node::Filter { input, .. } => agrees(input, variable),
        Node::LeftJoin { left, right, .. } => agrees(left, variable) && !mentions(right, variable),
        Node::Minus { left, right } => agrees(left, variable) && !mentions(right, variable),
        Node::Extend { input, variable: new, .. } => *new != variable && agrees(input, variable),
        Node::Distinct(input)
        | Node::Reduced(input)
        | Node::OrderBy { input, .. }
        | Node::Slice { input, .. }
        | Node::Project { input, .. }
        | Node::Group { input, .. } => !mentions(input, variable),
    }
}

/// Whether `variable` occurs in a role other than graph.
fn mentions(node: &Node, variable: Variable) -> bool {
    match node {
        Node::Patterns(patterns) => patterns.iter().flat_map(ordinary_variables).any(|v| v == variable),
        Node::Path(path) => path.ends().any(|end| end == variable),
        Node::Service(service) => service.bound().any(|bound| bound == variable),
        Node::Join(nodes) | Node::Union(nodes) => nodes.iter().any(|node| mentions(node, variable)),
        Node::LeftJoin { left, right, .. } | Node::Minus { left, right } => {
            mentions(left, variable) || mentions(right, variable)
        }
        Node::Extend { input, variable: new, .. } => *new == variable || mentions(input, variable),
        Node::Values { variables, .. } => variables.contains(&variable),
        Node::Group { input, aggregates, .. } => {
            aggregates.iter().any(|(new, _)| *new == variable) || mentions(input, variable)
        }
        Node::Filter { input, .. }
        | Node::Distinct(input)
        | Node::Reduced(input)
        | Node::OrderBy { input, .. }
        | Node::Slice { input, .. }
        | Node::Project { input, .. } => mentions(input, variable),
    }
}
