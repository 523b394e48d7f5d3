//! Triple terms of templates, built for each row.

use super::rows::SolutionRows;
use oxrdf::{NamedOrBlankNode, Term, Triple};
use vervet_algebra::TemplateTerm;
use vervet_model::{Error, Id, Result, Tag};
use vervet_snapshot::Snapshot;

/// The terms of a template in a row.
#[derive(Clone, Copy)]
pub(super) struct RowTerms<'a> {
    pub(super) terms: &'a [TemplateTerm],
    pub(super) rows: &'a SolutionRows,
    pub(super) row: usize,
    /// Blank nodes of the template, by their number.
    pub(super) blanks: &'a [Id],
    pub(super) snapshot: &'a dyn Snapshot,
}

impl RowTerms<'_> {
    /// The term at a template position; `None`: the row has no value for it or for a part of it, or a value
    /// that RDF does not allow there. Nests as deeply as the triple terms of the text.
    ///
    /// # Errors
    /// Damaged dictionary.
    pub(super) fn term(self, position: u32) -> Result<Option<Term>> {
        let id = match &self.terms[position as usize] {
            TemplateTerm::Constant(term) => return Ok(Some(term.clone())),
            TemplateTerm::Triple(parts) => {
                let [subject, predicate, object] = parts.map(|part| self.term(part));
                let subject = match subject? {
                    Some(Term::NamedNode(node)) => NamedOrBlankNode::from(node),
                    Some(Term::BlankNode(node)) => node.into(),
                    _ => return Ok(None),
                };
                let (Some(Term::NamedNode(predicate)), Some(object)) = (predicate?, object?) else {
                    return Ok(None);
                };
                return Ok(Some(Triple { subject, predicate, object }.into()));
            }
            TemplateTerm::Variable(variable) => self.rows.row(self.row)[self.rows.column(*variable)?],
            TemplateTerm::Blank(number) => self.blanks.get(*number as usize).copied().unwrap_or_default(),
        };
        let mut term = None;
        let mut read = |parts: vervet_model::TermParts<'_>| term = Some(parts.to_term());
        match id.tag() {
            Tag::Unbound => return Ok(None),
            Tag::Computed => self.rows.computed.read(id, &mut String::new(), &mut read)?,
            _ => self.snapshot.read_term(id, &mut String::new(), &mut read)?,
        }
        term.map(Some).ok_or_else(|| Error::internal(format!("no term was read for {id:?}")))
    }

    /// The blank nodes of the template in the term at a position, each at least once.
    pub(super) fn for_each_blank(terms: &[TemplateTerm], position: u32, visit: &mut dyn FnMut(usize)) {
        match &terms[position as usize] {
            TemplateTerm::Blank(number) => visit(*number as usize),
            TemplateTerm::Triple(parts) => {
                parts.iter().for_each(|part| Self::for_each_blank(terms, *part, visit));
            }
            _ => {}
        }
    }
}
