//! Property paths: regular expressions over predicates.
//!
//! # Shape
//! A front end turns sequences, alternatives and inverses at the top of a path into patterns, joins and
//! unions, since that is what they mean (SPARQL 1.1 §18.2.2.4), and the planner can order patterns. What is
//! left are closures: [`PathPattern`] has one for a whole, whose solutions are pairs of nodes, each once.

use crate::{GraphSlot, Slot, Variable};
use oxrdf::NamedNode;

/// A path between two nodes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Path {
    /// One statement with this predicate, from subject to object.
    Predicate(NamedNode),
    /// One statement with any other predicate than these.
    Except(Vec<NamedNode>),
    /// The path from its end to its start.
    Inverse(Box<Path>),
    /// One after the other.
    Sequence(Vec<Path>),
    /// Any of these.
    Alternative(Vec<Path>),
    /// No step, or the path once.
    ZeroOrOne(Box<Path>),
    /// The path any number of times.
    ZeroOrMore(Box<Path>),
    /// The path at least once.
    OneOrMore(Box<Path>),
}

impl Path {
    /// Whether the path leads from a node to itself without a statement.
    #[must_use]
    pub fn is_nullable(&self) -> bool {
        match self {
            Self::Predicate(_) | Self::Except(_) => false,
            Self::Inverse(path) | Self::OneOrMore(path) => path.is_nullable(),
            Self::Sequence(parts) => parts.iter().all(Self::is_nullable),
            Self::Alternative(parts) => parts.iter().any(Self::is_nullable),
            Self::ZeroOrOne(_) | Self::ZeroOrMore(_) => true,
        }
    }
}

/// All pairs of nodes that a path connects, each pair once.
///
/// A path without a step connects each node of the graphs with itself, and a term of the query with itself
/// even if no graph has it (SPARQL 1.1 §18.4).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct PathPattern {
    /// Where it starts.
    pub subject: Slot,
    /// Mostly a closure.
    pub path: Path,
    /// Where it ends.
    pub object: Slot,
    /// The graphs whose statements it may use, one beside the other; none: an empty graph. A variable stands
    /// alone: all statements are in the one graph that it is bound to.
    pub graphs: Vec<GraphSlot>,
}

impl PathPattern {
    /// The graph, if it is a variable.
    #[must_use]
    pub fn graph_variable(&self) -> Option<Variable> {
        match self.graphs.as_slice() {
            [GraphSlot::Variable(variable)] => Some(*variable),
            _ => None,
        }
    }

    /// All variables, that of the graph included; may repeat one.
    pub fn variables(&self) -> impl Iterator<Item = Variable> + '_ {
        self.ends().chain(self.graph_variable())
    }

    /// The variables at its ends.
    pub fn ends(&self) -> impl Iterator<Item = Variable> + '_ {
        [self.subject.variable(), self.object.variable()].into_iter().flatten()
    }
}
