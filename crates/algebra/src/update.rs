//! Update requests in logical form: SPARQL 1.1 Update §3.
//!
//! # Shape
//! A request is a list of operations, each with its own table of variables (that of [`Modify::solutions`]).
//! Statements to add or remove are [`Quads`]: a list of distinct terms, and statements as positions in that
//! list. A request with a million triples is thus compact, and its execution looks each term up once.
//! # Not here
//! Execution of a request.

use crate::{Dataset, Query, Variable};
use oxrdf::{NamedNode, Term};

/// A request: operations that run in sequence, each on the result of the previous one.
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
        /// `SILENT`: continue on failure.
        silent: bool,
        /// Location of the document.
        source: NamedNode,
        /// Target graph.
        graph: Option<NamedNode>,
    },
    /// `CLEAR`: removes all statements of graphs.
    Clear {
        /// `SILENT`: continue on failure.
        silent: bool,
        /// The graphs.
        target: GraphTarget,
    },
    /// `DROP`: removes graphs; the same as `CLEAR` for a store that does not keep empty graphs.
    Drop {
        /// `SILENT`: continue on failure.
        silent: bool,
        /// The graphs.
        target: GraphTarget,
    },
    /// `CREATE`: makes an empty graph.
    Create {
        /// `SILENT`: continue on failure.
        silent: bool,
        /// Its name.
        graph: NamedNode,
    },
    /// `ADD`: inserts the statements of one graph into another.
    Add(Transfer),
    /// `MOVE`: replaces the statements of the target by those of the source and clears the source.
    Move(Transfer),
    /// `COPY`: replaces the statements of the target by those of the source.
    Copy(Transfer),
}

/// Source and target of `ADD`, `MOVE`, `COPY`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transfer {
    /// `SILENT`: continue on failure.
    pub silent: bool,
    /// Source graph.
    pub from: Option<NamedNode>,
    /// Target graph.
    pub to: Option<NamedNode>,
}

/// The graphs that `CLEAR` or `DROP` affects.
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

/// `DELETE { } INSERT { } WHERE { }`: deletes and inserts statements for each solution. All solutions are
/// computed before the first change, and all deletions precede the insertions.
#[derive(Clone, PartialEq, Debug)]
pub struct Modify {
    /// Template of the deletions; without blank nodes. `WITH` has been applied.
    pub delete: Quads,
    /// Template of the insertions. Blank nodes are fresh for each solution. `WITH` has been applied.
    pub insert: Quads,
    /// The dataset that `WITH`, `USING` and `USING NAMED` define. It has not been applied to the pattern: see
    /// [`Dataset::restrict`].
    pub dataset: Dataset,
    /// The pattern, as a `SELECT` of the variables that the templates mention.
    pub solutions: Query,
}

/// Statements, or templates of statements.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Quads {
    /// Distinct terms; each occurs in a statement, or in a later triple term that does.
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
    /// `~ ?e`: a deletion removes only the statement with this edge identity; an insertion gives the
    /// statement this identity.
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
    /// A blank node of the template, by its number there; fresh for each solution.
    Blank(u32),
    /// A triple term with variables: positions of its parts in [`Quads::terms`], all before its own.
    Triple([u32; 3]),
}

impl Quads {
    /// Whether there are no statements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.quads.is_empty()
    }

    /// Appends to `out` the variables that the statements mention, without duplicates.
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
