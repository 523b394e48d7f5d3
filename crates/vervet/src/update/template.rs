//! Insert templates, filled for each row of solutions.

use super::Request;
use super::rows::SolutionRows;
use super::triples::RowTerms;
use oxrdf::Term;
use oxrdf::vocab::rdf;
use rustc_hash::{FxHashMap, FxHashSet};
use vervet_algebra::{Quad, TemplateTerm};
use vervet_model::vocab::EDGE_NAMESPACE;
use vervet_model::{
    Error, ErrorKind, Id, LiteralKind, Result, Statement, TRIPLE_DEPTH_MAX, Tag, TermParts, term_depth,
    triple_depth,
};

/// A term of an insert template.
pub(super) enum InsertTerm<'a> {
    /// Not interned yet.
    Constant(&'a Term),
    Id(Id),
    Column(usize),
    Blank(usize),
    Triple,
}

impl<'a> InsertTerm<'a> {
    pub(super) fn of(term: &'a TemplateTerm, rows: &SolutionRows) -> Result<Self> {
        Ok(match term {
            TemplateTerm::Constant(term) => Self::Constant(term),
            TemplateTerm::Variable(variable) => Self::Column(rows.column(*variable)?),
            TemplateTerm::Blank(number) => Self::Blank(*number as usize),
            TemplateTerm::Triple(_) => Self::Triple,
        })
    }
}

/// The kind of a term in RDF.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TermKind {
    Unbound,
    Iri,
    Blank,
    Edge,
    Literal,
}

/// IRIs in the edge namespace are edges.
fn iri_kind(iri: &str) -> TermKind {
    if iri.starts_with(EDGE_NAMESPACE) { TermKind::Edge } else { TermKind::Iri }
}

/// State of filling an insert template.
pub(super) struct TemplateInstance<'a> {
    pub(super) terms: Vec<InsertTerm<'a>>,
    pub(super) template: &'a [TemplateTerm],
    /// Ids of terms that the query has computed, once they are interned in the target.
    pub(super) computed: FxHashMap<Id, Id>,
    /// Blank nodes of this row, by their number; unbound: not needed so far.
    pub(super) blanks: Vec<Id>,
    /// Reifiers of this row, by position, with their edges; `None`: the statement was skipped, and so are the
    /// statements about it.
    pub(super) edges: FxHashMap<u32, Option<Statement>>,
    pub(super) rows: &'a SolutionRows,
    pub(super) blank_predicates: FxHashSet<Id>,
    /// `rdf:reifies`, if the graph has it and a variable may be bound to it.
    pub(super) reifies: Option<Id>,
}

impl TemplateInstance<'_> {
    /// Whether RDF allows the statement.
    pub(super) fn allows(&self, quad: &Quad, row: usize) -> Result<bool> {
        let is_missing = |position: u32| self.edges.get(&position).is_some_and(Option::is_none);
        if is_missing(quad.subject) || is_missing(quad.object) {
            return Ok(false);
        }
        let kind = |position: u32| self.kind(position, row);
        Ok(matches!(kind(quad.subject)?, TermKind::Iri | TermKind::Blank | TermKind::Edge)
            && kind(quad.predicate)? == TermKind::Iri
            && kind(quad.object)? != TermKind::Unbound
            && match quad.graph {
                Some(graph) => matches!(kind(graph)?, TermKind::Iri | TermKind::Blank),
                None => true,
            })
    }

    pub(super) fn kind(&self, position: u32, row: usize) -> Result<TermKind> {
        let id = match &self.terms[position as usize] {
            InsertTerm::Constant(Term::NamedNode(node)) => return Ok(iri_kind(node.as_str())),
            InsertTerm::Constant(_) => return Ok(TermKind::Literal),
            InsertTerm::Blank(_) => return Ok(TermKind::Blank),
            InsertTerm::Triple => return self.kind_of_triple(position, row),
            InsertTerm::Id(id) => *id,
            InsertTerm::Column(column) => self.rows.row(row)[*column],
        };
        Ok(match id.tag() {
            Tag::Unbound => TermKind::Unbound,
            Tag::Vertex if self.blank_predicates.contains(&id) => TermKind::Blank,
            Tag::Vertex => TermKind::Iri,
            Tag::Edge => TermKind::Edge,
            Tag::Computed => {
                let mut kind = TermKind::Unbound;
                self.rows.computed.read(id, &mut String::new(), &mut |parts| {
                    kind = match parts {
                        TermParts::Iri { namespace, .. } => iri_kind(namespace),
                        TermParts::Blank(_) => TermKind::Blank,
                        TermParts::Edge(_) => TermKind::Edge,
                        TermParts::Literal { .. } => TermKind::Literal,
                    };
                })?;
                kind
            }
            _ => TermKind::Literal,
        })
    }

    /// Whether a predicate is `rdf:reifies`.
    fn is_reifies(&self, position: u32, row: usize) -> Result<bool> {
        let variable = match &self.template[position as usize] {
            TemplateTerm::Constant(Term::NamedNode(node)) => return Ok(*node == rdf::REIFIES),
            TemplateTerm::Variable(variable) => variable,
            _ => return Ok(false),
        };
        let id = self.rows.row(row)[self.rows.column(*variable)?];
        let mut is_reifies = Some(id) == self.reifies;
        if id.tag() == Tag::Computed {
            self.rows.computed.read(id, &mut String::new(), &mut |parts| {
                is_reifies = matches!(parts, TermParts::Iri { namespace, .. } if namespace == rdf::REIFIES.as_str());
            })?;
        }
        Ok(is_reifies)
    }

    /// Like a literal, a triple term cannot be subject or predicate; a triple term that cannot be built is
    /// unbound.
    fn kind_of_triple(&self, position: u32, row: usize) -> Result<TermKind> {
        let TemplateTerm::Triple([subject, predicate, object]) = self.template[position as usize] else {
            return Ok(TermKind::Unbound);
        };
        let fits = matches!(self.kind(subject, row)?, TermKind::Iri | TermKind::Blank | TermKind::Edge)
            && matches!(self.kind(predicate, row)?, TermKind::Iri | TermKind::Edge)
            && self.kind(object, row)? != TermKind::Unbound;
        Ok(if fits { TermKind::Literal } else { TermKind::Unbound })
    }

    /// Whether the nesting depth of a term may be stored, including the triple terms of the template around
    /// it.
    pub(super) fn is_shallow(
        &self,
        position: u32,
        row: usize,
        request: &mut Request<'_, '_>,
    ) -> Result<bool> {
        let (mut position, mut outer) = (position, 0);
        while let TemplateTerm::Triple([_, _, object]) = self.template[position as usize] {
            (position, outer) = (object, outer + 1);
        }
        if outer == 0 {
            return Ok(true);
        }
        let mut inner = 0;
        let mut read = |parts: TermParts<'_>| {
            if let TermParts::Literal { head, tail, kind: LiteralKind::Triple } = parts {
                inner = triple_depth(&[head, tail].concat());
            }
        };
        match &self.template[position as usize] {
            TemplateTerm::Constant(term) => inner = term_depth(term.as_ref()),
            TemplateTerm::Variable(variable) => match self.rows.row(row)[self.rows.column(*variable)?] {
                id if id.tag() == Tag::Computed => {
                    self.rows.computed.read(id, &mut String::new(), &mut read)?;
                }
                id if id.tag() == Tag::Literal => {
                    request.read(|snapshot, _| snapshot.read_term(id, &mut String::new(), &mut read))?;
                }
                _ => {}
            },
            TemplateTerm::Blank(_) | TemplateTerm::Triple(_) => {}
        }
        Ok(outer + inner <= TRIPLE_DEPTH_MAX)
    }

    pub(super) fn statement(
        &mut self,
        quad: &Quad,
        row: usize,
        request: &mut Request<'_, '_>,
    ) -> Result<Statement> {
        let statement = Statement {
            subject: self.node(quad.subject, row, request)?,
            predicate: self.id(quad.predicate, row, request)?,
            object: self.node(quad.object, row, request)?,
            graph: match quad.graph {
                Some(graph) => self.id(graph, row, request)?,
                None => Id::UNBOUND,
            },
            edge: Id::UNBOUND,
        };
        // A reifier is an edge, so it must be written with its statement.
        if statement.object.tag() == Tag::Literal
            && self.is_reifies(quad.predicate, row)?
            && request.is_triple(statement.object)?
        {
            let message = "rdf:reifies cannot be inserted with a triple term as a value";
            return Err(Error::new(ErrorKind::Unsupported, message)
                .with_hint("write the statement with its reifier: ?s ?p ?o ~ ?edge"));
        }
        Ok(statement)
    }

    /// Whether a term is a blank node of the template.
    pub(super) fn is_new(&self, position: u32) -> bool {
        matches!(self.terms[position as usize], InsertTerm::Blank(_))
    }

    /// Like [`TemplateInstance::id`], but the edge of a reifier.
    fn node(&mut self, position: u32, row: usize, request: &mut Request<'_, '_>) -> Result<Id> {
        match self.edges.get(&position) {
            Some(Some(statement)) => Ok(statement.edge),
            _ => self.id(position, row, request),
        }
    }

    pub(super) fn id(&mut self, position: u32, row: usize, request: &mut Request<'_, '_>) -> Result<Id> {
        let term = &mut self.terms[position as usize];
        match term {
            InsertTerm::Id(id) => Ok(*id),
            InsertTerm::Constant(constant) => {
                let id = request.intern(constant.as_ref())?;
                *term = InsertTerm::Id(id);
                Ok(id)
            }
            InsertTerm::Blank(number) => {
                if *number >= self.blanks.len() {
                    self.blanks.resize(*number + 1, Id::UNBOUND);
                }
                let blank = &mut self.blanks[*number];
                if !blank.is_bound() {
                    *blank = request.new_blank()?;
                }
                Ok(*blank)
            }
            InsertTerm::Triple => {
                let mut blanks = Vec::new();
                RowTerms::for_each_blank(self.template, position, &mut |number| blanks.push(number));
                for number in blanks {
                    if number >= self.blanks.len() {
                        self.blanks.resize(number + 1, Id::UNBOUND);
                    }
                    if !self.blanks[number].is_bound() {
                        self.blanks[number] = request.new_blank()?;
                    }
                }
                let term = request.read(|snapshot, _| {
                    let (terms, rows, blanks) = (self.template, self.rows, &self.blanks);
                    RowTerms { terms, rows, row, blanks, snapshot }.term(position)
                })?;
                let term = term.ok_or_else(|| Error::internal("a triple term with invalid components"))?;
                request.intern(term.as_ref())
            }
            InsertTerm::Column(column) => {
                let id = self.rows.row(row)[*column];
                if id.tag() != Tag::Computed {
                    return Ok(id);
                }
                if let Some(id) = self.computed.get(&id) {
                    return Ok(*id);
                }
                let mut term = None;
                self.rows.computed.read(id, &mut String::new(), &mut |parts| term = Some(parts.to_term()))?;
                let term = term.ok_or_else(|| Error::internal(format!("no term was read for {id:?}")))?;
                let new = request.intern(term.as_ref())?;
                self.computed.insert(id, new);
                Ok(new)
            }
        }
    }
}

impl Request<'_, '_> {
    /// Whether a literal of the dictionary is a triple term.
    fn is_triple(&mut self, id: Id) -> Result<bool> {
        self.read(|snapshot, _| {
            let mut triple = false;
            snapshot.read_term(id, &mut String::new(), &mut |parts| {
                triple = matches!(parts, TermParts::Literal { kind: LiteralKind::Triple, .. });
            })?;
            Ok(triple)
        })
    }
}
