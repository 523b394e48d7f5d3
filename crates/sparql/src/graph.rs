//! `GRAPH`: evaluation of a group on one named graph.
//!
//! SPARQL evaluates the group once for each named graph `i` and then joins it with `?g = i`, so within the
//! group `?g` is an ordinary variable. Here each pattern has a graph slot, and patterns with the same
//! variable join on it. The slot of the group is a hidden variable, equal in all separately evaluated parts:
//! if a part contains no such pattern (`GRAPH ?g { VALUES ... }`), [`Parser::anchor_of`] adds one that
//! matches once for each graph. At the end of the group, [`Parser::named`] joins the hidden variable with
//! `?g`.

use crate::QueryError;
use crate::analysis::{filter, mark_possible, ordinary_variables};
use crate::lexer::{Lexeme, Token};
use crate::parser::Parser;
use oxrdf::Literal;
use vervet_algebra::{Aggregate, AggregateKind, Expression, GraphSlot, Node, Variable, VariableSet};

impl Parser<'_, '_> {
    /// The graph and group after `GRAPH`.
    pub(crate) fn graph_group(&mut self) -> Result<Node, QueryError> {
        let start = self.ahead;
        let (slot, name) = match start.token {
            Token::Variable => {
                let name = self.variable()?;
                (GraphSlot::Variable(self.new_variable("")?), Some(name))
            }
            Token::Iri | Token::Name => (GraphSlot::Named(self.iri()?), None),
            _ => return Err(self.expected("a variable or an IRI")),
        };
        let outer = std::mem::replace(&mut self.graph, slot);
        let node = self.group();
        let slot = std::mem::replace(&mut self.graph, outer);
        let node = node?;
        match (slot, name) {
            (GraphSlot::Variable(graph), Some(name)) => self.named(node, graph, name, start),
            _ => Ok(node),
        }
    }

    /// Joins the solutions of `node`, evaluated on the graph `graph`, with `name` = `graph`.
    fn named(
        &mut self,
        mut node: Node,
        graph: Variable,
        name: Variable,
        at: Lexeme,
    ) -> Result<Node, QueryError> {
        // A value from outside replaces the variable everywhere in the group.
        let is_given = self.is_parameter(name) || self.outer_certain.contains(name);
        if is_given || !mentions(&node, name) || agrees(&node, name) {
            node.rename(&[(graph, name)]);
            return Ok(node);
        }
        if node.certain().contains(name) {
            return Ok(filter(node, vec![same_term(name, graph)]));
        }
        if self.outer_rows.as_ref().is_some_and(|rows| rows.contains(name)) {
            let what = format!(
                "{} as a graph in an EXISTS, where rows may or may not bind it, and in an optional part of that \
                 GRAPH is",
                self.spelled(at)
            );
            return Err(self.unsupported(at, &what));
        }
        let of_group = self.new_variable("")?;
        node.rename(&[(name, of_group), (graph, name)]);
        let unbound = Expression::Not(Box::new(Expression::Bound(of_group)));
        let mut bound = VariableSet::default();
        mark_possible(&node, Some(name), &mut bound);
        let condition = match bound.contains(of_group) {
            true => Expression::Or(vec![unbound, same_term(of_group, name)]),
            false => unbound,
        };
        Ok(filter(node, vec![condition]))
    }

    /// Aggregates without keys: one solution for each graph, also for those without solutions of `input`.
    pub(crate) fn grouping_by_graph(
        &mut self,
        input: Node,
        graph: Variable,
        mut aggregates: Vec<(Variable, Aggregate)>,
    ) -> Result<Node, QueryError> {
        let Some(graphs) = self.anchor_of(&Node::unit())? else { return Ok(input) };
        // The values of an empty group; no value for other aggregates.
        let mut of_empty = Vec::new();
        for (variable, aggregate) in &mut aggregates {
            let value = match &aggregate.kind {
                AggregateKind::Count | AggregateKind::Sum | AggregateKind::Avg => Literal::from(0),
                AggregateKind::GroupConcat { .. } => Literal::new_simple_literal(""),
                AggregateKind::Min | AggregateKind::Max | AggregateKind::Sample => continue,
            };
            let of_group = self.new_variable("")?;
            let is_certain = aggregate.kind == AggregateKind::Count;
            of_empty.push((std::mem::replace(variable, of_group), of_group, value, is_certain));
        }
        // An aggregate may also have no value because of an error.
        let certain = match of_empty.iter().find(|(.., is_certain)| *is_certain) {
            Some((_, of_group, ..)) => *of_group,
            None => {
                let count = self.new_variable("")?;
                let aggregate = Aggregate { kind: AggregateKind::Count, expression: None, distinct: false };
                aggregates.push((count, aggregate));
                count
            }
        };
        let groups = Box::new(Node::Group { input: Box::new(input), keys: vec![graph], aggregates });
        let mut node = Node::LeftJoin { left: Box::new(graphs), right: groups, condition: None };
        for (variable, of_group, value, _) in of_empty {
            self.link()?;
            let expression = Expression::If(
                Box::new(Expression::Bound(certain)),
                Box::new(Expression::Variable(of_group)),
                Box::new(Expression::Constant(value.into())),
            );
            node = Node::Extend { input: Box::new(node), variable, expression };
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

/// `sameTerm(?a, ?b)`.
pub(crate) fn same_term(a: Variable, b: Variable) -> Expression {
    Expression::SameTerm(Box::new(Expression::Variable(a)), Box::new(Expression::Variable(b)))
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

/// Whether pre-binding `variable`, the name of the graph, inside `node` gives the same solutions as joining
/// it afterwards: all parts that mention it are joined, and expressions read it only where it is bound.
fn agrees(node: &Node, variable: Variable) -> bool {
    let mut reads = false;
    node.for_each_expression(&mut |expression| {
        reads |= expression.variable_set().contains(variable);
    });
    match node {
        Node::Patterns(_) | Node::Path(_) | Node::Service(_) | Node::Values { .. } => true,
        Node::Join(nodes) | Node::Union(nodes) => nodes.iter().all(|node| agrees(node, variable)),
        Node::Filter { input, .. } => {
            agrees(input, variable) && (!reads || input.certain().contains(variable))
        }
        Node::Extend { input, variable: new, .. } => {
            *new != variable && agrees(input, variable) && (!reads || input.certain().contains(variable))
        }
        Node::LeftJoin { left, right, .. } => {
            let on_right = mentions(right, variable);
            agrees(left, variable)
                && (!on_right || agrees(right, variable))
                && (!(on_right || reads) || left.certain().contains(variable))
        }
        Node::Minus { left, right } => agrees(left, variable) && !mentions(right, variable),
        Node::Distinct(_)
        | Node::Reduced(_)
        | Node::OrderBy { .. }
        | Node::Slice { .. }
        | Node::Project { .. }
        | Node::Group { .. } => !mentions(node, variable),
    }
}

/// Whether `variable` occurs in a pattern, a table or an expression of `node`, or is computed by it.
fn mentions(node: &Node, variable: Variable) -> bool {
    let mut found = match node {
        Node::Patterns(patterns) => patterns.iter().any(|pattern| {
            pattern.graph == GraphSlot::Variable(variable)
                || ordinary_variables(pattern).any(|of_pattern| of_pattern == variable)
        }),
        Node::Path(path) => path.variables().any(|of_path| of_path == variable),
        Node::Service(service) => service.bound().any(|bound| bound == variable),
        Node::Extend { variable: new, .. } => *new == variable,
        Node::Values { variables, .. } => variables.contains(&variable),
        Node::Group { aggregates, .. } => aggregates.iter().any(|(new, _)| *new == variable),
        _ => false,
    };
    node.for_each_expression(&mut |expression| {
        found = found || expression.variable_set().contains(variable);
    });
    node.for_each_child(&mut |child| found = found || mentions(child, variable));
    found
}
