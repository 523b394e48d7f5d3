//! `INSERT`, `DELETE` and their `DATA` forms: statements built from solutions.
//!
//! # Shape
//! Solutions are rows of ids, one column for each variable of a template; `DATA` has one row without columns.
//! A template is resolved once (constants to ids), and then filled for each row. A statement with an unbound
//! variable, or that RDF does not allow, is skipped (SPARQL 1.1 Update §4.2.1). Constants, and terms that the
//! query has computed, are interned in the target when the first statement with them is added.

use super::Request;
use super::reifiers;
use super::remove::{CascadeDelete, Removal};
use super::rows::{CHUNK, SolutionRows};
use super::template::{InsertTerm, TemplateInstance};
use super::triples::RowTerms;
use crate::query::adaptive::AdaptivePlan;
use crate::query::reading::watched;
use crate::query::run::{RunContext, run, seed};
use oxrdf::vocab::rdf;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use vervet_algebra::{Form, Modify, Quad, Quads, TemplateTerm};
use vervet_expression::Evaluator;
use vervet_kernel::{Batch, Flow};
use vervet_model::{Error, ErrorKind, Id, Result, Statement, Tag};
use vervet_planner::PlanOptions;
use vervet_snapshot::Snapshot;

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
        crate::query::federation::resolve(&mut query.root, self.options, &self.control)?;
        let Form::Select(columns) = &query.form else {
            return Err(Error::internal("the pattern of an update is not a SELECT"));
        };
        let (environment, options) = (self.environment, self.options);
        let context = RunContext { environment, driver: None, seed: seed(environment)? };
        self.read(|snapshot, control| {
            // Counts from statistics would not enter the read set of a transaction.
            let planning = PlanOptions { known_counts: false, ..PlanOptions::default() };
            let planning = watched(planning, options);
            let plan = Arc::new(vervet_planner::plan(&query, snapshot, &planning, control)?);
            let plan = AdaptivePlan::new(&query, snapshot, planning, plan);
            let (mut ids, mut count, mut counted) = (Vec::new(), 0, 0);
            let control = control.for_run(&plan);
            let (computed, _) = plan.run(&control, &mut |plan| {
                (ids, count, counted) = (Vec::new(), 0, 0);
                run(&context, snapshot, plan, options, &control, &mut |_: &Evaluator<'_>, batch: &Batch| {
                    count += batch.rows;
                    for row in 0..batch.rows {
                        ids.extend(columns.iter().map(|column| batch.value(*column, row)));
                    }
                    control.recount(&mut counted, (ids.capacity() * size_of::<Id>()) as u64)?;
                    Ok(Flow::More)
                })
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
