//! `INSERT`, `DELETE` and their `DATA` forms: statements built from solutions.
//!
//! # Shape
//! Solutions are rows of ids, one column for each variable of a template; `DATA` has one row without columns.
//! A template is resolved once (constants to ids), and then filled for each row. A statement with an unbound
//! variable, or that RDF does not allow, is skipped (SPARQL 1.1 Update §4.2.1). Constants, and terms that the
//! query has computed, are interned in the target when the first statement with them is added.

use super::reifiers;
use super::remove::{CascadeDelete, Removal};
use super::triples::RowTerms;
use super::{CHUNK, Request};
use crate::query::execute::{self, RunContext, seed};
use oxrdf::Term;
use oxrdf::vocab::rdf;
use rustc_hash::{FxHashMap, FxHashSet};
use vervet_algebra::{Form, Modify, Quad, Quads, TemplateTerm, Variable};
use vervet_expression::ComputedTerms;
use vervet_kernel::Flow;
use vervet_model::vocab::EDGE_NAMESPACE;
use vervet_model::{
    Error, ErrorKind, Id, LiteralKind, Result, Statement, TRIPLE_DEPTH_MAX, Tag, TermParts, depth_of_term,
    triple_depth,
};
use vervet_planner::PlanOptions;
use vervet_snapshot::Snapshot;

/// Solutions as rows of ids.
pub(super) struct SolutionRows {
    columns: Vec<Variable>,
    ids: Vec<Id>,
    count: usize,
    pub(super) computed: ComputedTerms,
    /// Bytes of `ids` charged to the memory cap.
    counted: u64,
}

impl SolutionRows {
    /// The one empty solution.
    fn unit() -> Self {
        Self { columns: Vec::new(), ids: Vec::new(), count: 1, computed: ComputedTerms::new(), counted: 0 }
    }

    pub(super) fn row(&self, row: usize) -> &[Id] {
        let width = self.columns.len();
        &self.ids[row * width..(row + 1) * width]
    }

    /// The column of a variable.
    pub(super) fn column(&self, variable: Variable) -> Result<usize> {
        self.columns
            .iter()
            .position(|column| *column == variable)
            .ok_or_else(|| Error::internal("a template mentions a variable that its pattern does not give"))
    }
}

impl Request<'_, '_> {
    pub(super) fn insert_data(&mut self, quads: &Quads) -> Result<()> {
        self.insert_rows(quads, &SolutionRows::unit(), &FxHashSet::default())
    }

    pub(super) fn delete_data(&mut self, quads: &Quads) -> Result<()> {
        self.remove_rows(quads, &SolutionRows::unit()).map(drop)
    }

    pub(super) fn modify(&mut self, modify: &Modify) -> Result<()> {
        if modify.delete.is_empty() && modify.insert.is_empty() {
            return Ok(());
        }
        let mut rows = self.solutions(modify)?;
        let gone = self.remove_rows(&modify.delete, &rows)?;
        let done = self.insert_rows(&modify.insert, &rows, &gone);
        self.control.recount(&mut rows.counted, 0)?;
        done
    }

    /// All solutions, collected before any change.
    fn solutions(&mut self, modify: &Modify) -> Result<SolutionRows> {
        let mut query = modify.solutions.clone();
        modify
            .dataset
            .restrict(&mut query.root)
            .map_err(|error| Error::new(ErrorKind::Query, error.to_string()))?;
        crate::query::service::resolve(&mut query.root, self.options, &self.control)?;
        let Form::Select(columns) = &query.form else {
            return Err(Error::internal("the pattern of an update is not a SELECT"));
        };
        let (environment, options) = (self.environment, self.options);
        let context = RunContext { environment, driver: None, seed: seed(environment)? };
        self.read(|snapshot, control| {
            // Counts from statistics would not enter the read set of a transaction.
            let planning = PlanOptions { known_counts: false, ..PlanOptions::default() };
            let plan = vervet_planner::plan(&query, snapshot, &planning, control)?;
            let (mut ids, mut count, mut counted) = (Vec::new(), 0, 0);
            let (computed, _) =
                execute::run(&context, snapshot, &plan, options, control, &mut |_, batch| {
                    count += batch.rows;
                    for row in 0..batch.rows {
                        ids.extend(columns.iter().map(|column| batch.value(*column, row)));
                    }
                    control.recount(&mut counted, (ids.capacity() * size_of::<Id>()) as u64)?;
                    Ok(Flow::More)
                })?;
            Ok(SolutionRows { columns: columns.clone(), ids, count, computed, counted })
        })
    }

    /// Removes the statements of the template for these rows; returns the removed identities.
    fn remove_rows(&mut self, quads: &Quads, rows: &SolutionRows) -> Result<FxHashSet<Id>> {
        if quads.is_empty() || rows.count == 0 {
            return Ok(FxHashSet::default());
        }
        let (removal, mut counted) = self.read(|snapshot, control| {
            let terms = quads.terms.iter().map(|term| DeleteTerm::new(term, rows, snapshot));
            let terms: Vec<DeleteTerm> = terms.collect::<Result<_>>()?;
            let mut cascade = CascadeDelete::default();
            let mut counted = 0;
            // Without columns, all rows are equal.
            let count = if rows.columns.is_empty() { 1 } else { rows.count };
            for row in 0..count {
                let ids = rows.row(row);
                for quad in &quads.quads {
                    let parts = RowTerms { terms: &quads.terms, rows, row, blanks: &[], snapshot };
                    if let Some(statement) = delete_statement(quad, &terms, ids, parts)? {
                        let list = match quad.edge {
                            Some(_) => &mut cascade.entries,
                            None => &mut cascade.statements,
                        };
                        list.push(statement);
                    }
                }
                if row % CHUNK == 0 {
                    let held = cascade.statements.capacity() + cascade.entries.capacity();
                    control.recount(&mut counted, (held * size_of::<Statement>()) as u64)?;
                    control.check()?;
                }
            }
            Ok((cascade.resolve(snapshot, control)?, counted))
        })?;
        let Removal { entries, edges } = removal;
        self.remove(entries)?;
        self.control.recount(&mut counted, 0)?;
        Ok(edges)
    }

    /// Adds the statements of the template for these rows, except statements about the identities in `gone`.
    fn insert_rows(&mut self, quads: &Quads, rows: &SolutionRows, gone: &FxHashSet<Id>) -> Result<()> {
        if quads.is_empty() || rows.count == 0 {
            return Ok(());
        }
        let is_variable =
            |quad: &Quad| matches!(quads.terms[quad.predicate as usize], TemplateTerm::Variable(_));
        let reifies = match quads.quads.iter().any(is_variable) {
            true => self.read(|snapshot, _| snapshot.lookup(rdf::REIFIES.into()))?,
            false => None,
        };
        let mut instance = TemplateInstance {
            terms: quads.terms.iter().map(|term| InsertTerm::of(term, rows)).collect::<Result<_>>()?,
            template: &quads.terms,
            computed: FxHashMap::default(),
            blanks: Vec::new(),
            edges: FxHashMap::default(),
            rows,
            blank_predicates: self.blank_predicates(quads, rows)?,
            reifies,
        };
        let reified = reifiers::in_order(&quads.quads)?;
        let mut named = reifiers::EdgesByName::default();
        let has_blanks = quads.terms.iter().any(|term| matches!(term, TemplateTerm::Blank(_)));
        let count = if rows.columns.is_empty() && !has_blanks { 1 } else { rows.count };
        let mut statements = Vec::with_capacity(CHUNK.min(count.saturating_mul(quads.quads.len())));
        for row in 0..count {
            instance.blanks.clear();
            instance.edges.clear();
            // The reified statements of this row resolve the reifier names first.
            let reified = reified.iter().map(|at| &quads.quads[*at]);
            for quad in reified.chain(quads.quads.iter().filter(|quad| quad.edge.is_none())) {
                let allowed = instance.allows(quad, row)? && instance.is_shallow(quad.object, row, self)?;
                let statement = match allowed {
                    true => Some(instance.statement(quad, row, self)?),
                    false => None,
                };
                let statement = statement.filter(|s| !gone.contains(&s.subject) && !gone.contains(&s.object));
                match quad.edge {
                    Some(name) => {
                        self.reify(name, statement, row, &mut instance, &mut named, &mut statements)?
                    }
                    None => statements.extend(statement),
                }
                if statements.len() >= CHUNK {
                    self.insert(&mut statements)?;
                }
            }
        }
        self.insert(&mut statements)
    }

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

    /// Blank nodes among the values of variables in predicate position.
    fn blank_predicates(&mut self, quads: &Quads, rows: &SolutionRows) -> Result<FxHashSet<Id>> {
        let mut columns: Vec<usize> = Vec::new();
        let inner = quads.terms.iter().filter_map(|term| match term {
            TemplateTerm::Triple([_, predicate, _]) => Some(*predicate),
            _ => None,
        });
        for predicate in quads.quads.iter().map(|quad| quad.predicate).chain(inner) {
            if let TemplateTerm::Variable(variable) = quads.terms[predicate as usize] {
                let column = rows.column(variable)?;
                if !columns.contains(&column) {
                    columns.push(column);
                }
            }
        }
        if columns.is_empty() {
            return Ok(FxHashSet::default());
        }
        let mut ids: FxHashSet<Id> = FxHashSet::default();
        for row in 0..rows.count {
            ids.extend(columns.iter().map(|column| rows.row(row)[*column]).filter(|id| id.is_vertex()));
        }
        self.read(|snapshot, _| {
            let mut blank = FxHashSet::default();
            for id in ids {
                if snapshot.is_blank(id)? {
                    blank.insert(id);
                }
            }
            Ok(blank)
        })
    }
}

/// A term of a delete template: only terms of the graph match.
#[derive(Clone, Copy)]
enum DeleteTerm {
    Id(Id),
    /// Not in the graph, so it matches no statement.
    Missing,
    Column(usize),
    Triple,
}

impl DeleteTerm {
    fn new(term: &TemplateTerm, rows: &SolutionRows, snapshot: &dyn Snapshot) -> Result<Self> {
        Ok(match term {
            TemplateTerm::Constant(term) => snapshot.lookup(term.as_ref())?.map_or(Self::Missing, Self::Id),
            TemplateTerm::Variable(variable) => Self::Column(rows.column(*variable)?),
            TemplateTerm::Triple(_) => Self::Triple,
            TemplateTerm::Blank(_) => return Err(Error::internal("a blank node in a delete template")),
        })
    }

    /// Terms computed by the query are not in the graph.
    fn value(self, ids: &[Id]) -> Option<Id> {
        match self {
            Self::Id(id) => Some(id),
            Self::Missing | Self::Triple => None,
            Self::Column(column) => Some(ids[column]).filter(|id| id.is_bound() && id.tag() != Tag::Computed),
        }
    }
}

fn delete_statement(
    quad: &Quad,
    terms: &[DeleteTerm],
    ids: &[Id],
    parts: RowTerms<'_>,
) -> Result<Option<Statement>> {
    let value = |position: u32| terms[position as usize].value(ids);
    let optional = |position: Option<u32>| position.map_or(Some(Id::UNBOUND), value);
    let object = match terms[quad.object as usize] {
        DeleteTerm::Triple => match parts.term(quad.object)? {
            Some(term) => parts.snapshot.lookup(term.as_ref())?,
            None => None,
        },
        known => known.value(ids),
    };
    let statement = || {
        Some(Statement {
            subject: value(quad.subject)?,
            predicate: value(quad.predicate)?,
            object: object?,
            graph: optional(quad.graph)?,
            edge: optional(quad.edge)?,
        })
    };
    // Only edges have entries with an identity.
    Ok(statement().filter(|statement| quad.edge.is_none() || statement.edge.tag() == Tag::Edge))
}

/// A term of an insert template.
enum InsertTerm<'a> {
    /// Not interned yet.
    Constant(&'a Term),
    Id(Id),
    Column(usize),
    Blank(usize),
    Triple,
}

impl<'a> InsertTerm<'a> {
    fn of(term: &'a TemplateTerm, rows: &SolutionRows) -> Result<Self> {
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
    terms: Vec<InsertTerm<'a>>,
    template: &'a [TemplateTerm],
    /// Ids of terms that the query has computed, once they are interned in the target.
    computed: FxHashMap<Id, Id>,
    /// Blank nodes of this row, by their number; unbound: not needed so far.
    blanks: Vec<Id>,
    /// Reifiers of this row, by position, with their edges; `None`: the statement was skipped, and so are the
    /// statements about it.
    pub(super) edges: FxHashMap<u32, Option<Statement>>,
    rows: &'a SolutionRows,
    blank_predicates: FxHashSet<Id>,
    /// `rdf:reifies`, if the graph has it and a variable may be bound to it.
    reifies: Option<Id>,
}

impl TemplateInstance<'_> {
    /// Whether RDF allows the statement.
    fn allows(&self, quad: &Quad, row: usize) -> Result<bool> {
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
    fn is_shallow(&self, position: u32, row: usize, request: &mut Request<'_, '_>) -> Result<bool> {
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
            TemplateTerm::Constant(term) => inner = depth_of_term(term.as_ref()),
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

    fn statement(&mut self, quad: &Quad, row: usize, request: &mut Request<'_, '_>) -> Result<Statement> {
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
