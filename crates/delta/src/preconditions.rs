//! Admission checks for statements: the rules of a store, which every version must keep.

use crate::Version;
use crate::predicate::entry_of;
use crate::version::two_statements;
use rustc_hash::FxHashMap;
use vervet_model::{Direction, Error, ErrorKind, Id, Result, Statement, Tag};
use vervet_snapshot::{EntryFilter, Snapshot};

impl Version {
    /// Checks that the ids of a statement are known and valid for their roles.
    pub(crate) fn check_statement(&self, statement: &Statement) -> Result<()> {
        self.check_ids(statement)?;
        for id in [statement.subject, statement.object] {
            // A statement may be about itself.
            if id.tag() == Tag::Edge && id != statement.edge && self.find_edge(id)?.is_none() {
                return Err(no_such_edge(id));
            }
        }
        Ok(())
    }

    /// [`Version::check_statement`] for many statements, which may be about each other.
    pub(crate) fn check_statements(&self, statements: &[Statement]) -> Result<()> {
        let mut edges: FxHashMap<Id, Statement> = FxHashMap::default();
        for statement in statements.iter().filter(|statement| statement.edge.is_bound()) {
            let known = *edges.entry(statement.edge).or_insert(*statement);
            if known != *statement {
                return Err(two_statements(statement.edge));
            }
            if statement.edge.tag() == Tag::Edge {
                self.edge_is_there(statement)?;
            }
        }
        for statement in statements {
            self.check_ids(statement)?;
            for id in [statement.subject, statement.object] {
                if id.tag() == Tag::Edge && !edges.contains_key(&id) && self.find_edge(id)?.is_none() {
                    return Err(no_such_edge(id));
                }
            }
        }
        Ok(())
    }

    fn check_ids(&self, statement: &Statement) -> Result<()> {
        let Statement { subject, predicate, object, graph, edge } = *statement;
        let about = |id: Id| id.is_vertex() || id.tag() == Tag::Edge;
        let roles = [
            (subject, about(subject), "subject"),
            (predicate, predicate.is_vertex(), "predicate"),
            (object, about(object) || object.is_stored_literal(), "object"),
            (graph, !graph.is_bound() || graph.is_vertex(), "graph"),
            (edge, !edge.is_bound() || edge.tag() == Tag::Edge, "edge"),
        ];
        for (id, fits, role) in roles {
            if !fits || !self.is_allocated(id) {
                return Err(Error::internal(format!("{id:?} cannot be the {role} of a statement")));
            }
        }
        Ok(())
    }

    /// Whether the id belongs to a term, if its kind needs one.
    fn is_allocated(&self, id: Id) -> bool {
        match id.tag() {
            Tag::Vertex => id.payload() < self.vertex_end || id.payload() < self.terms.vertex_end(),
            Tag::Literal => id.payload() < self.literal_end || id.payload() < self.terms.literal_end(),
            _ => true,
        }
    }

    /// Refuses if another statement is about the edge of `statement`.
    pub(crate) fn check_unused(&self, statement: &Statement) -> Result<()> {
        let edge = statement.edge;
        let mut degrees = Vec::new();
        for (predicate, _) in self.predicates() {
            for direction in Direction::BOTH {
                if let Some(segment) = self.segment(*predicate, direction)? {
                    segment.degrees(&[edge], EntryFilter::ALL, &mut degrees)?;
                    let (key, _) = entry_of(statement, direction);
                    let own = u64::from(key == edge && *predicate == statement.predicate);
                    if degrees.first().is_some_and(|degree| *degree > own) {
                        let number = edge.payload();
                        let message = format!("edge {number} is the subject or object of other statements");
                        return Err(Error::new(ErrorKind::Input, message).with_hint("remove those first"));
                    }
                }
            }
        }
        Ok(())
    }
}

fn no_such_edge(edge: Id) -> Error {
    let message = format!("a statement is about edge {}, which does not exist", edge.payload());
    Error::new(ErrorKind::Input, message).with_hint("insert the statement of the edge first")
}
