//! A whole update: SPARQL 1.1 Update §3.
//!
//! # Shape
//! A request is a list of operations, each with its own table of variables (that of
//! [`Modify::solutions`]). Statements to add or remove are [`Quads`]: each different term once, statements as
//! positions in that list, so that a request with a million triples is compact and whoever runs it looks each
//! term up once.
//! # Not here
//! How a request changes a graph.

use crate::{Dataset, Query, Variable};
use oxrdf::{NamedNode, Term};

/// A request: operations that run one after the other, each on what the one before has left.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Update {
    /// The operations.
    pub operations: Vec<Operation>,
}

/// One operation. Where a graph is an `Option`, `None` is the default graph.
#[derive(Clone, PartialEq, Debug)]
pub enum Operation {
    /// `INSERT DATA`: statements without variables. Blank nodes are new.
    InsertData(Quads),
    /// `DELETE DATA`: statements without variables and blank nodes.
    DeleteData(Quads),
    /// `DELETE`, `INSERT`, both, or `DELETE WHERE`.
    Modify(Box<Modify>),
    /// `LOAD`: adds the statements of a document.
    Load {
        /// Go on if it fails.
        silent: bool,
        /// Where the document is.
        source: NamedNode,
        /// Where its statements go.
        graph: Option<NamedNode>,
    },
    /// `CLEAR`: removes all statements of graphs.
    Clear {
        /// Go on if it fails.
        silent: bool,
        /// Which graphs.
        target: GraphTarget,
    },
    /// `DROP`: removes graphs; the same as `CLEAR` for a store that does not keep empty graphs.
    Drop {
        /// Go on if it fails.
        silent: bool,
        /// Which graphs.
        target: GraphTarget,
    },
    /// `CREATE`: makes an empty graph.
    Create {
        /// Go on if it fails.
        silent: bool,
        /// Its name.
        graph: NamedNode,
    },
    /// `ADD`: all statements of one graph also to another.
    Add(Transfer),
    /// `MOVE`: all statements of one graph instead of those of another, and the first is gone.
    Move(Transfer),
    /// `COPY`: all statements of one graph instead of those of another.
    Copy(Transfer),
}

/// From one graph to another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transfer {
    /// Go on if it fails.
    pub silent: bool,
    /// Where the statements are.
    pub from: Option<NamedNode>,
    /// Where they go.
    pub to: Option<NamedNode>,
}

/// Which graphs `CLEAR` and `DROP` are about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum GraphTarget {
    /// This named graph.
    Graph(NamedNode),
    /// The default graph.
    Default,
    /// All named graphs.
    Named,
    /// The default graph and all named graphs.
    All,
}

/// `DELETE { } INSERT { } WHERE { }`: for each solution statements go and statements come. All solutions are
/// found before anything changes, and all statements go before any come.
#[derive(Clone, PartialEq, Debug)]
pub struct Modify {
    /// What goes; without blank nodes. `WITH` has been applied.
    pub delete: Quads,
    /// What comes. Blank nodes are new for each solution. `WITH` has been applied.
    pub insert: Quads,
    /// What `WITH`, `USING` and `USING NAMED` make of the graphs that the pattern sees. It has not been
    /// applied to the pattern: see [`Dataset::restrict`].
    pub dataset: Dataset,
    /// The pattern, as a `SELECT` of the variables that the templates mention.
    pub solutions: Query,
}

/// Statements, or templates of them.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Quads {
    /// Each different term once; each is in some statement, or in a triple term behind it that is.
    pub terms: Vec<TemplateTerm>,
    /// Statements over positions in `terms`.
    pub quads: Vec<Quad>,
}

/// A statement of a template: positions in [`Quads::terms`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Quad {
    /// Subject.
    pub subject: u32,
    /// Predicate.
    pub predicate: u32,
    /// Object.
    pub object: u32,
    /// Graph; `None`: the default graph.
    pub graph: Option<u32>,
    /// `~ ?e`: in what goes, only the statement with this identity; in what comes, the identity that it gets.
    pub edge: Option<u32>,
}

impl Quad {
    /// All positions.
    pub fn positions(&self) -> impl Iterator<Item = u32> {
        [self.subject, self.predicate, self.object].into_iter().chain(self.graph).chain(self.edge)
    }
}

/// A term of a template.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum TemplateTerm {
    /// This term; never a blank node.
    Constant(Term),
    /// The value of a variable of [`Modify::solutions`].
    Variable(Variable),
    /// A blank node of the template, by its number there: new for each solution.
    Blank(u32),
    /// A triple term that is no constant: positions of its parts in [`Quads::terms`], all before its own.
    Triple([u32; 3]),
}

impl Quads {
    /// Whether there are no statements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.quads.is_empty()
    }

    /// Adds to `out` the variables that the statements mention, each once.
    pub fn variables(&self, out: &mut Vec<Variable>) {
        let mut seen = vec![false; self.terms.len()];
        let mut inner = Vec::new();
        for position in self.quads.iter().flat_map(Quad::positions) {
            inner.push(position);
            while let Some(position) = inner.pop() {
                let position = position as usize;
                if std::mem::replace(&mut seen[position], true) {
                    continue;
                }
                match &self.terms[position] {
                    TemplateTerm::Variable(variable) if !out.contains(variable) => out.push(*variable),
                    TemplateTerm::Triple(parts) => inner.extend(parts.iter().rev()),
                    _ => {}
                }
            }
        }
    }
}
