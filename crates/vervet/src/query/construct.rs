//! `CONSTRUCT` and `DESCRIBE`: triples built from solutions.
//!
//! # Cost
//! All triples are held in memory and count as texts against the memory cap of the query. `DESCRIBE` reads
//! each segment once for a batch of resources.

use crate::query::execute::Execution;
use oxrdf::{BlankNode, NamedOrBlankNode, Term, TermRef, Triple};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::HashSet;
use vervet_algebra::{Pattern, Query, Slot, TripleTemplate, Variable};
use vervet_expression::Evaluator;
use vervet_kernel::plan::Profile;
use vervet_kernel::{Batch, Control, Flow};
use vervet_model::{Direction, Id, Result, TRIPLE_DEPTH_MAX, Tag, term_depth, triple_text};
use vervet_snapshot::{Cursor, EntryFilter, Expansion, Snapshot};

/// Batch size: resources described at a time, and entries read at a time.
const CHUNK: usize = 1024;

/// The triples of a template, without duplicates, in order of first occurrence.
pub(crate) fn construct(
    execution: &Execution<'_>,
    query: &Query,
    template: &[Pattern],
    triples: &[TripleTemplate],
) -> Result<(Vec<Triple>, Profile)> {
    let control = execution.control();
    let mut list = Vec::new();
    let mut seen: HashSet<Triple> = HashSet::new();
    let mut solution = 0_u64;
    let places: FxHashMap<Variable, usize> =
        triples.iter().enumerate().map(|(at, triple)| (triple.variable, at)).collect();
    let place = |slot: &Slot| places.get(&slot.variable()?).copied();
    let (_, profile) = execution.run_under(&control, &mut |evaluator, batch| {
        for row in 0..batch.rows {
            solution += 1;
            let mut made: Vec<Option<Term>> = Vec::with_capacity(triples.len());
            for triple in triples {
                let [subject, predicate, object] = triple.parts.each_ref().map(|part| match place(part) {
                    Some(inner) => Ok(made.get(inner).cloned().flatten()),
                    None => slot_term(part, query, evaluator, batch, row, solution),
                });
                made.push(triple_term_of(subject?, predicate?, object?));
            }
            for pattern in template {
                let term = |slot: &Slot| match place(slot) {
                    Some(triple) => Ok(made[triple].clone()),
                    None => slot_term(slot, query, evaluator, batch, row, solution),
                };
                let (subject, predicate) = (term(&pattern.subject)?, term(&pattern.predicate)?);
                if let Some(triple) = triple_of(subject, predicate, term(&pattern.object)?)
                    && !seen.contains(&triple)
                {
                    // One copy in the list and one in the set.
                    control.grow(2 * size_bytes(&triple))?;
                    seen.insert(triple.clone());
                    list.push(triple);
                }
            }
        }
        Ok(Flow::More)
    })?;
    Ok((list, profile))
}

/// The triple of three terms, if all are bound and RDF allows them in their positions.
fn triple_of(subject: Option<Term>, predicate: Option<Term>, object: Option<Term>) -> Option<Triple> {
    let Some(Term::NamedNode(predicate)) = predicate else { return None };
    Some(Triple { subject: subject_of(subject?)?, predicate, object: object? })
}

/// Like [`triple_of`], for a triple term. `None` if it is nested too deeply to be loaded again.
fn triple_term_of(subject: Option<Term>, predicate: Option<Term>, object: Option<Term>) -> Option<Term> {
    let object = object.filter(|object| term_depth(object.as_ref()) < TRIPLE_DEPTH_MAX);
    triple_of(subject, predicate, object).map(Into::into)
}

/// The value at a template position. An unnamed variable is a blank node of the template, new for each
/// solution.
fn slot_term(
    slot: &Slot,
    query: &Query,
    evaluator: &Evaluator<'_>,
    batch: &Batch,
    row: usize,
    solution: u64,
) -> Result<Option<Term>> {
    Ok(match slot {
        Slot::Constant(term) => Some(term.clone()),
        Slot::Variable(variable) => match batch.value(*variable, row) {
            id if id.is_bound() => evaluator.term(id)?,
            _ if query.variables[variable.index()].is_empty() => {
                Some(template_blank(*variable, solution, evaluator.snapshot())?)
            }
            _ => None,
        },
    })
}

/// A blank node that is not in the graph.
fn template_blank(variable: Variable, solution: u64, snapshot: &dyn Snapshot) -> Result<Term> {
    let mut label = format!("c{solution}_{}", variable.0);
    loop {
        let node = BlankNode::new_unchecked(label);
        if snapshot.lookup(TermRef::BlankNode(node.as_ref()))?.is_none() {
            return Ok(node.into());
        }
        label = node.into_string() + "_";
    }
}

/// The description of each resource: its outgoing statements in all graphs, and those of the blank nodes
/// reachable through them.
pub(crate) fn describe(execution: &Execution<'_>, resources: &[Slot]) -> Result<(Vec<Triple>, Profile)> {
    let control = execution.control();
    let snapshot: &dyn Snapshot = execution.snapshot;
    let mut wanted = DescribedResources { list: Vec::new(), seen: FxHashSet::default(), control: &control };
    for resource in resources {
        if let Slot::Constant(term) = resource
            && let Some(id) = snapshot.lookup(term.as_ref())?
        {
            wanted.add(id)?;
        }
    }
    let (_, profile) = execution.run_under(&control, &mut |_, batch| {
        for resource in resources {
            if let Slot::Variable(variable) = resource {
                (0..batch.rows).try_for_each(|row| wanted.add(batch.value(*variable, row)))?;
            }
        }
        Ok(Flow::More)
    })?;
    let mut triples = Vec::new();
    let mut from = 0;
    while from < wanted.list.len() {
        let subjects = wanted.list[from..].iter().take(CHUNK).copied().collect::<Vec<Id>>();
        from += subjects.len();
        for (row, predicate, object) in statements_of(snapshot, &subjects, &control)? {
            if object.is_vertex() && snapshot.is_blank(object)? {
                wanted.add(object)?;
            }
            if let (Some(subject), Term::NamedNode(predicate)) =
                (subject_of(term(snapshot, subjects[row as usize])?), term(snapshot, predicate)?)
            {
                let triple = Triple { subject, predicate, object: term(snapshot, object)? };
                control.grow(size_bytes(&triple))?;
                triples.push(triple);
            }
        }
    }
    Ok((triples, profile))
}

/// Resources to describe, without duplicates.
struct DescribedResources<'a> {
    list: Vec<Id>,
    seen: FxHashSet<Id>,
    control: &'a Control<'a>,
}

impl DescribedResources<'_> {
    fn add(&mut self, id: Id) -> Result<()> {
        if matches!(id.tag(), Tag::Vertex | Tag::Edge) && self.seen.insert(id) {
            self.list.push(id);
            self.control.grow(4 * size_of::<Id>() as u64)?;
        }
        Ok(())
    }
}

/// Positions of the subject, predicate and object of all statements about `subjects`, without duplicates,
/// grouped by subject.
fn statements_of(
    snapshot: &dyn Snapshot,
    subjects: &[Id],
    control: &Control<'_>,
) -> Result<Vec<(u32, Id, Id)>> {
    let filter = EntryFilter::ANY_GRAPH;
    let mut statements = Vec::new();
    let mut expansion = Expansion::new(CHUNK);
    let mut counted = 0;
    for &(predicate, _) in snapshot.predicates() {
        let Some(segment) = snapshot.segment(predicate, Direction::Out)? else { continue };
        let mut cursor = Cursor::default();
        while cursor.row < subjects.len() {
            control.check()?;
            expansion.clear();
            segment.expand(subjects, filter, &mut cursor, &mut expansion)?;
            let entries = expansion.rows.iter().zip(&expansion.neighbours);
            statements.extend(entries.map(|(&row, &object)| (row, predicate, object)));
            control.recount(&mut counted, (statements.capacity() * size_of::<(u32, Id, Id)>()) as u64)?;
        }
    }
    statements.sort_unstable();
    // The same statement may be in several graphs.
    statements.dedup();
    control.recount(&mut counted, 0)?;
    Ok(statements)
}

fn term(snapshot: &dyn Snapshot, id: Id) -> Result<Term> {
    let mut term = None;
    snapshot.read_term(id, &mut String::new(), &mut |parts| term = Some(parts.to_term()))?;
    term.ok_or_else(|| vervet_model::Error::internal(format!("no term was read for {id:?}")))
}

fn subject_of(term: Term) -> Option<NamedOrBlankNode> {
    match term {
        Term::NamedNode(node) => Some(node.into()),
        Term::BlankNode(node) => Some(node.into()),
        _ => None,
    }
}

/// Approximate size of a triple in memory, in bytes.
fn size_bytes(triple: &Triple) -> u64 {
    let subject = match &triple.subject {
        NamedOrBlankNode::NamedNode(node) => node.as_str().len(),
        NamedOrBlankNode::BlankNode(node) => node.as_str().len(),
    };
    let object = match &triple.object {
        Term::NamedNode(node) => node.as_str().len(),
        Term::BlankNode(node) => node.as_str().len(),
        Term::Literal(literal) => literal.value().len() + literal.datatype().as_str().len(),
        Term::Triple(triple) => triple_text(triple.as_ref().as_ref()).map_or(0, |text| text.len()),
    };
    (size_of::<Triple>() + subject + triple.predicate.as_str().len() + object) as u64
}
