//! Statement patterns, and their positions.

use crate::Variable;
use oxrdf::{NamedNode, Term};

/// One position of a pattern.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Slot {
    /// A variable, bound or not.
    Variable(Variable),
    /// A constant term.
    Constant(Term),
}

impl Slot {
    /// The variable, if it is one.
    #[must_use]
    pub fn variable(&self) -> Option<Variable> {
        match self {
            Self::Variable(variable) => Some(*variable),
            Self::Constant(_) => None,
        }
    }
}

/// The graph that a pattern ranges over.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum GraphSlot {
    /// The default graph.
    Default,
    /// This named graph.
    Named(NamedNode),
    /// Any named graph, bound to the variable.
    Variable(Variable),
    /// The default graph and all named graphs (the view of a property graph).
    Any,
}

/// A statement pattern.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Pattern {
    /// Subject: vertex or edge.
    pub subject: Slot,
    /// Predicate.
    pub predicate: Slot,
    /// Object: vertex or value.
    pub object: Slot,
    /// Graph.
    pub graph: GraphSlot,
    /// Edge identity of the statement, where the query mentions it (`rdf:reifies` in SPARQL, `outE()` in
    /// Gremlin). Then only statements with an identity match.
    pub edge: Option<Slot>,
    /// Whether parallel statements count separately (Gremlin) or once (SPARQL). Ignored if `edge` is set.
    pub parallel: bool,
}

impl Pattern {
    /// All variables, including those of graph and edge; may contain duplicates.
    pub fn variables(&self) -> impl Iterator<Item = Variable> + '_ {
        let graph = match self.graph {
            GraphSlot::Variable(variable) => Some(variable),
            _ => None,
        };
        [self.subject.variable(), self.predicate.variable(), self.object.variable()]
            .into_iter()
            .chain([graph, self.edge.as_ref().and_then(Slot::variable)])
            .flatten()
    }
}
