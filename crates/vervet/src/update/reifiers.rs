//! New identities: `s p o ~ name` and `s p o {| key value |}` in `INSERT`.
//!
//! # Shape
//! A reifier makes the statement an edge, as in a load (docs/loading.md): the edge gets a new number, and in
//! subject or object position of the template the name denotes that edge. An IRI is stored: edge
//! `urn:vervet:id` IRI, in the graph of the statement. A blank node, or a missing name, is not stored.
//! # Invariants
//! 1. One name is one statement. If that statement already has an edge of this name, the name denotes this
//!    edge, so repeating a request adds the edge once; another statement with that name is an error.
//! 2. A blank node is a new edge for each solution.
//! 3. If the statement is skipped (unbound variable), the statements about its edge are skipped too. Without
//!    a valid name (unbound variable, or a literal) the statement is added as a plain one.

use super::Request;
use super::template::{TemplateInstance, TermKind};
use oxrdf::NamedNodeRef;
use rustc_hash::{FxHashMap, FxHashSet};
use vervet_algebra::Quad;
use vervet_model::vocab::EDGE_ID;
use vervet_model::{Direction, Error, ErrorKind, Id, Result, Statement, Tag};
use vervet_snapshot::EntryFilter;

/// Names of this operation, and their edges.
pub(super) type EdgesByName = FxHashMap<Id, Statement>;

/// Positions of the quads with reifiers, in topological order: a quad follows those whose reifiers it
/// mentions.
pub(super) fn in_order(quads: &[Quad]) -> Result<Vec<usize>> {
    let mut ahead: Vec<usize> = (0..quads.len()).filter(|at| quads[*at].edge.is_some()).collect();
    let mut ordered = Vec::with_capacity(ahead.len());
    while !ahead.is_empty() {
        let names: FxHashSet<Option<u32>> = ahead.iter().map(|at| quads[*at].edge).collect();
        let (later, now): (Vec<usize>, Vec<usize>) = ahead.iter().partition(|at| {
            let Quad { subject, object, .. } = quads[**at];
            names.contains(&Some(subject)) || names.contains(&Some(object))
        });
        if now.is_empty() {
            let message = "the reifiers refer to each other in a circle, so none of them can be added first";
            return Err(Error::new(ErrorKind::Query, message));
        }
        ordered.extend(now);
        ahead = later;
    }
    Ok(ordered)
}

impl Request<'_, '_> {
    /// Gives a statement the identity denoted by the term at `name`; appends the statements to add to `out`.
    pub(super) fn reify(
        &mut self,
        name: u32,
        statement: Option<Statement>,
        row: usize,
        instance: &mut TemplateInstance<'_>,
        named: &mut EdgesByName,
        out: &mut Vec<Statement>,
    ) -> Result<()> {
        let Some(statement) = statement else {
            instance.edges.entry(name).or_insert(None);
            return Ok(());
        };
        if let Some(Some(known)) = instance.edges.get(&name) {
            return same(*known, statement);
        }
        let edge = match instance.kind(name, row)? {
            TermKind::Unbound | TermKind::Literal => {
                out.push(statement);
                return Ok(());
            }
            // A blank node of the template, which no other operation can mention.
            TermKind::Blank if instance.is_new(name) => self.target.fresh_edge()?,
            _ => {
                let term = instance.id(name, row, self)?;
                match (term.tag(), named.get(&term)) {
                    (Tag::Edge, _) => {
                        let of = |[subject, predicate, object, graph]: [Id; 4]| Statement {
                            subject,
                            predicate,
                            object,
                            graph,
                            edge: term,
                        };
                        let known = self.read(|snapshot, _| snapshot.edge(term).map(of))?;
                        same(known, statement)?;
                        term
                    }
                    (_, Some(known)) => {
                        same(*known, statement)?;
                        known.edge
                    }
                    (_, None) => self.named_edge(term, statement, out)?,
                }
            }
        };
        let statement = Statement { edge, ..statement };
        if let TermKind::Iri | TermKind::Blank = instance.kind(name, row)?
            && !instance.is_new(name)
        {
            named.insert(instance.id(name, row, self)?, statement);
        }
        instance.edges.insert(name, Some(statement));
        out.push(statement);
        Ok(())
    }

    /// The edge of this name: the existing one, else a new one.
    fn named_edge(&mut self, name: Id, statement: Statement, out: &mut Vec<Statement>) -> Result<Id> {
        let predicate = self.target.intern(NamedNodeRef::new_unchecked(EDGE_ID).into())?;
        let known = self.read(|snapshot, _| {
            let mut edges = Vec::new();
            if let Some(segment) = snapshot.segment(predicate, Direction::In)? {
                let filter = EntryFilter::ANY_GRAPH;
                segment.neighbours(name, filter, &mut edges)?;
            }
            let edges = edges.into_iter().filter(|id| id.tag() == Tag::Edge);
            edges.map(|edge| Ok((edge, snapshot.edge(edge)?))).collect::<Result<Vec<_>>>()
        })?;
        let Statement { subject, predicate: verb, object, graph, .. } = statement;
        match known.iter().find(|(_, row)| *row == [subject, verb, object, graph]) {
            Some((edge, _)) => Ok(*edge),
            None if known.is_empty() => {
                let edge = self.target.fresh_edge()?;
                out.push(Statement { subject: edge, predicate, object: name, graph, edge: Id::UNBOUND });
                Ok(edge)
            }
            None => Err(two_statements()),
        }
    }
}

/// Checks that the edge of a name has this statement.
fn same(known: Statement, statement: Statement) -> Result<()> {
    if (Statement { edge: Id::UNBOUND, ..known }) == (Statement { edge: Id::UNBOUND, ..statement }) {
        return Ok(());
    }
    Err(two_statements())
}

fn two_statements() -> Error {
    Error::new(ErrorKind::Query, "one reifier cannot be the identity of two statements")
        .with_hint("use another name, or ~ without a name for a new identity")
}
