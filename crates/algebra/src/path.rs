//! Property paths: regular expressions over predicates.
//!
//! # Shape
//! A front end translates sequences, alternatives and inverses at the top of a path into patterns, joins and
//! unions (SPARQL 1.1 §18.2.2.4), whose order the planner chooses. The remaining paths are closures: the
//! solutions of a [`PathPattern`] are distinct pairs of nodes.

use crate::{GraphSlot, Slot, Variable};
use oxrdf::NamedNode;

/// A path between two nodes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Path {
    /// One statement with this predicate, from subject to object.
    Predicate(NamedNode),
    /// Negated property set: one statement with a predicate that is not in the list.
    Except(Vec<NamedNode>),
    /// The reversed path.
    Inverse(Box<Path>),
    /// Concatenation.
    Sequence(Vec<Path>),
    /// Alternation.
    Alternative(Vec<Path>),
    /// `?`: the empty path, or the path once.
    ZeroOrOne(Box<Path>),
    /// `*`: reflexive transitive closure.
    ZeroOrMore(Box<Path>),
    /// `+`: transitive closure.
    OneOrMore(Box<Path>),
}

impl Path {
    /// Whether the path matches the empty path.
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

/// A property path between two slots; its solutions are the distinct pairs of nodes that it connects.
///
/// The empty path connects each node of the graphs with itself, and a term of the query with itself even if
/// no graph contains it (SPARQL 1.1 §18.4).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct PathPattern {
    /// The start.
    pub subject: Slot,
    /// The path expression, usually a closure.
    pub path: Path,
    /// The end.
    pub object: Slot,
    /// The graphs whose union the path traverses; an empty list is an empty graph. A variable is the only
    /// entry: all statements of the path are in the graph that it is bound to.
    pub graphs: Vec<GraphSlot>,
}

impl PathPattern {
    /// The graph variable, if there is one.
    #[must_use]
    pub fn graph_variable(&self) -> Option<Variable> {
        match self.graphs.as_slice() {
            [GraphSlot::Variable(variable)] => Some(*variable),
            _ => None,
        }
    }

    /// All variables, including that of the graph; may contain duplicates.
    pub fn variables(&self) -> impl Iterator<Item = Variable> + '_ {
        self.ends().chain(self.graph_variable())
    }

    /// The variables at its ends.
    pub fn ends(&self) -> impl Iterator<Item = Variable> + '_ {
        [self.subject.variable(), self.object.variable()].into_iter().flatten()
    }
}
