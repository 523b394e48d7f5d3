//! RDF dataset of a query: the graphs that its patterns range over (`FROM`, `USING`, `WITH`).
//!
//! # Shape
//! A front end parses the clauses into a [`Dataset`]; [`Dataset::restrict`] rewrites the patterns, so that no
//! later operator handles datasets. A single default graph becomes another [`GraphSlot`]; several become a
//! distinct union; a selection of named graphs becomes a join with the list of their names.
//! # Cost
//! One traversal of the algebra. Merging several graphs creates one pattern for each pair of statement
//! pattern and graph, at most [`MERGED_MAX`] in all.

use crate::distinct::DistinctVariables;
use crate::{GraphSlot, Node, PathPattern, Pattern, Variable};
use oxrdf::NamedNode;
use std::collections::HashSet;
use std::fmt;

/// The graphs that patterns range over; the default value restricts nothing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Dataset {
    /// The default graph is the merge of these graphs (an empty list: an empty graph). `None`: the default
    /// graph of the store.
    pub default: Option<Vec<NamedNode>>,
    /// The graphs that `GRAPH` may name; `None`: all.
    pub named: Option<Vec<NamedNode>>,
}

impl Dataset {
    /// Whether the dataset restricts nothing.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.default.is_none() && self.named.is_none()
    }

    /// Restricts the patterns of `node` to these graphs. [`GraphSlot::Any`], which is not an RDF dataset, is
    /// unchanged.
    ///
    /// # Errors
    /// Merging the graphs would create more than [`MERGED_MAX`] patterns; `node` is then invalid.
    pub fn restrict(&self, node: &mut Node) -> Result<(), TooManyGraphs> {
        if self.is_whole() {
            return Ok(());
        }
        let named = self.named.as_ref().map(|named| named.iter().collect());
        let mut restriction = Restriction { dataset: self, named, made: 0 };
        restriction.restrict(node);
        if restriction.made > MERGED_MAX { Err(TooManyGraphs) } else { Ok(()) }
    }
}

/// Maximum number of patterns that the merge of default graphs may create in one query.
pub const MERGED_MAX: usize = 1 << 18;

/// Error: restricting a query to its dataset would create more than [`MERGED_MAX`] patterns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooManyGraphs;

impl fmt::Display for TooManyGraphs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the default graph merges too many graphs for this query (at most {MERGED_MAX} patterns in all)"
        )
    }
}

impl std::error::Error for TooManyGraphs {}

/// A restricting dataset, with its named graphs as a set.
struct Restriction<'d> {
    dataset: &'d Dataset,
    named: Option<HashSet<&'d NamedNode>>,
    /// Number of patterns created for merged graphs so far.
    made: usize,
}

impl Restriction<'_> {
    fn restrict(&mut self, node: &mut Node) {
        if self.made > MERGED_MAX {
            return;
        }
        node.for_each_child_mut(&mut |child| self.restrict(child));
        node.for_each_expression_mut(&mut |expression| {
            expression.for_each_exists_mut(&mut |exists| self.restrict(&mut exists.pattern));
        });
        match node {
            Node::Patterns(patterns) => *node = self.restricted(std::mem::take(patterns)),
            Node::Path(path) => {
                if let Some(other) = self.restricted_path(path) {
                    *node = other;
                }
            }
            _ => {}
        }
    }

    /// Whether the dataset does not contain this named graph.
    fn excludes(&self, graph: &NamedNode) -> bool {
        self.named.as_ref().is_some_and(|named| !named.contains(graph))
    }

    /// Restricts a path to these graphs; returns the replacement if the result is not a single path.
    fn restricted_path(&mut self, path: &mut PathPattern) -> Option<Node> {
        match (path.graphs.as_slice(), &self.dataset.default, &self.dataset.named) {
            ([GraphSlot::Default], Some(graphs), _) => {
                self.made = self.made.saturating_add(graphs.len());
                if self.made <= MERGED_MAX {
                    path.graphs = graphs.iter().cloned().map(GraphSlot::Named).collect();
                }
                None
            }
            ([GraphSlot::Named(graph)], ..) if self.excludes(graph) => {
                Some(nothing(path.variables().collect()))
            }
            ([GraphSlot::Variable(variable)], _, Some(named)) => {
                let names = named_graphs(*variable, named);
                Some(Node::Join(vec![names, Node::Path(path.clone())]))
            }
            _ => None,
        }
    }

    fn restricted(&mut self, patterns: Vec<Pattern>) -> Node {
        let mut all = Vec::new();
        let mut distinct = DistinctVariables::new(&mut all);
        patterns.iter().flat_map(Pattern::variables).for_each(|variable| distinct.add(variable));
        let mut kept = Vec::with_capacity(patterns.len());
        let mut parts = Vec::new();
        let mut chosen: HashSet<Variable> = HashSet::new();
        for mut pattern in patterns {
            match (&pattern.graph, &self.dataset.default, &self.dataset.named) {
                (GraphSlot::Default, Some(graphs), _) => match graphs.as_slice() {
                    [] => return nothing(all),
                    [graph] => {
                        pattern.graph = GraphSlot::Named(graph.clone());
                        kept.push(pattern);
                    }
                    graphs => {
                        self.made = self.made.saturating_add(graphs.len());
                        if self.made > MERGED_MAX {
                            return nothing(all);
                        }
                        parts.push(merged(&pattern, graphs));
                    }
                },
                (GraphSlot::Named(graph), ..) if self.excludes(graph) => return nothing(all),
                (GraphSlot::Variable(variable), _, Some(named)) => {
                    if chosen.insert(*variable) {
                        parts.push(named_graphs(*variable, named));
                    }
                    kept.push(pattern);
                }
                _ => kept.push(pattern),
            }
        }
        if parts.is_empty() {
            return Node::Patterns(kept);
        }
        if !kept.is_empty() {
            parts.insert(0, Node::Patterns(kept));
        }
        if parts.len() == 1 { parts.remove(0) } else { Node::Join(parts) }
    }
}

/// A table without rows.
fn nothing(variables: Vec<Variable>) -> Node {
    Node::Values { variables, rows: Vec::new() }
}

/// A table that binds `variable` to each graph name.
fn named_graphs(variable: Variable, named: &[NamedNode]) -> Node {
    let rows = named.iter().map(|graph| vec![Some(graph.clone().into())]).collect();
    Node::Values { variables: vec![variable], rows }
}

/// The pattern over the merge of several graphs: a statement in two of them counts once.
fn merged(pattern: &Pattern, graphs: &[NamedNode]) -> Node {
    let in_graph = |graph: &NamedNode| {
        Node::Patterns(vec![Pattern { graph: GraphSlot::Named(graph.clone()), ..pattern.clone() }])
    };
    Node::Distinct(Box::new(Node::Union(graphs.iter().map(in_graph).collect())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Slot;

    fn pattern(graph: GraphSlot) -> Pattern {
        let slot = |number| Slot::Variable(Variable(number));
        Pattern { subject: slot(0), predicate: slot(1), object: slot(2), graph, edge: None, parallel: false }
    }

    fn named(name: &str) -> NamedNode {
        NamedNode::new_unchecked(format!("http://a/{name}"))
    }

    fn check(dataset: &Dataset, graph: GraphSlot, expected: &Node) {
        let mut node = Node::Distinct(Box::new(Node::Patterns(vec![pattern(graph)])));
        dataset.restrict(&mut node).unwrap();
        assert_eq!(node, Node::Distinct(Box::new(expected.clone())));
    }

    #[test]
    fn patterns_are_restricted_to_the_dataset() {
        let in_graph = |name| Node::Patterns(vec![pattern(GraphSlot::Named(named(name)))]);
        let all = || vec![Variable(0), Variable(1), Variable(2)];
        let whole = Dataset::default();
        check(&whole, GraphSlot::Default, &Node::Patterns(vec![pattern(GraphSlot::Default)]));
        let one = Dataset { default: Some(vec![named("a")]), named: None };
        check(&one, GraphSlot::Default, &in_graph("a"));
        check(&one, GraphSlot::Named(named("b")), &in_graph("b"));
        let two = Dataset { default: Some(vec![named("a"), named("b")]), named: Some(vec![named("c")]) };
        let union = Node::Union(vec![in_graph("a"), in_graph("b")]);
        check(&two, GraphSlot::Default, &Node::Distinct(Box::new(union)));
        check(&two, GraphSlot::Named(named("a")), &nothing(all()));
        check(&two, GraphSlot::Named(named("c")), &in_graph("c"));
        let none = Dataset { default: Some(Vec::new()), named: Some(vec![named("c")]) };
        check(&none, GraphSlot::Default, &nothing(all()));
        let graph = Variable(3);
        let names = Node::Values { variables: vec![graph], rows: vec![vec![Some(named("c").into())]] };
        let patterns = Node::Patterns(vec![pattern(GraphSlot::Variable(graph))]);
        check(&none, GraphSlot::Variable(graph), &Node::Join(vec![patterns, names]));
    }

    /// Related to finding "query B4": the query text controls the number of graphs times patterns.
    #[test]
    fn b4_graphs_times_patterns_are_bounded() {
        let dataset = |count: usize| {
            let graphs = (0..count).map(|number| named(&number.to_string())).collect();
            Dataset { default: Some(graphs), named: None }
        };
        let patterns = || Node::Patterns(vec![pattern(GraphSlot::Default); 1_000]);
        assert_eq!(dataset(100).restrict(&mut patterns()), Ok(()));
        assert_eq!(dataset(1_000).restrict(&mut patterns()), Err(TooManyGraphs));
    }
}
