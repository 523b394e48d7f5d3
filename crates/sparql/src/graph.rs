//! `GRAPH`: the patterns inside look at one named graph.
//!
//! SPARQL evaluates the inside once for each named graph and then joins `?g`. Here each pattern carries the
//! graph, and patterns with the same variable meet on it. Both are the same if every part that is evaluated
//! on its own contains such a pattern. Where one does not (`GRAPH ?g { VALUES ... }`), [`Parser::anchor_of`]
//! adds a pattern that any statement of the graph matches, once for each graph. Where the two would differ
//! all the same, the query is refused.

use crate::QueryError;
use crate::lexer::Token;
use crate::parser::Parser;
use crate::walk::ordinary_variables;
use vervet_algebra::{GraphSlot, Node, Variable};

impl Parser<'_, '_> {
    /// What follows `GRAPH`.
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

    /// The existence of the current graph, unless `node` implies it.
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

/// Whether each solution of `node` needs a statement in this graph, and binds its variable.
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

/// Whether it makes no difference that `variable`, the graph, is bound already inside `node`: it is not
/// mentioned as anything else, or only where all parts are joined.
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

/// Whether `variable` occurs as something else than a graph.
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
