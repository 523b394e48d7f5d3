//! `CONSTRUCT` and `DESCRIBE`: triples from solutions.

use crate::execute::Execution;
use oxrdf::{BlankNode, NamedOrBlankNode, Term, Triple};
use std::collections::HashSet;
use vervet_algebra::{Pattern, Query, Slot, Variable};
use vervet_expression::Evaluator;
use vervet_kernel::{Batch, Flow};
use vervet_model::{Direction, Id, Result, Tag};
use vervet_snapshot::{Cursor, EntryFilter, Expansion, GraphFilter, Snapshot};

/// The triples of a template, each once, in order of first sight.
pub(crate) fn construct(
    execution: &Execution<'_>,
    query: &Query,
    template: &[Pattern],
) -> Result<Vec<Triple>> {
    let mut triples = Collected::default();
    let mut solution = 0_u64;
    execution.run(&mut |evaluator, batch| {
        for row in 0..batch.rows {
            solution += 1;
            for pattern in template {
                let term = |slot: &Slot| slot_term(slot, query, evaluator, batch, row, solution);
                if let (Some(subject), Some(Term::NamedNode(predicate)), Some(object)) =
                    (term(&pattern.subject)?, term(&pattern.predicate)?, term(&pattern.object)?)
                    && let Some(subject) = subject_of(subject)
                {
                    triples.add(Triple { subject, predicate, object });
                }
            }
        }
        Ok(Flow::More)
    })?;
    Ok(triples.list)
}

/// The value of a position of a template; a variable without a name is a blank node of the template, new
/// for each solution.
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
            _ if query.variables[variable.index()].is_empty() => Some(template_blank(*variable, solution)),
            _ => None,
        },
    })
}

fn template_blank(variable: Variable, solution: u64) -> Term {
    BlankNode::new_unchecked(format!("c{solution}_{}", variable.0)).into()
}

/// What is stated about each resource: its outgoing statements in all graphs, and those of blank nodes
/// that they lead to.
pub(crate) fn describe(execution: &Execution<'_>, resources: &[Slot]) -> Result<Vec<Triple>> {
    let snapshot: &dyn Snapshot = &execution.version.store;
    let mut wanted: Vec<Id> = Vec::new();
    let mut seen: HashSet<Id> = HashSet::new();
    let mut want = |id: Id| {
        if matches!(id.tag(), Tag::Vertex | Tag::Edge) && seen.insert(id) {
            wanted.push(id);
        }
    };
    for resource in resources {
        if let Slot::Constant(term) = resource
            && let Some(id) = snapshot.lookup(term.as_ref())?
        {
            want(id);
        }
    }
    execution.run(&mut |_, batch| {
        for resource in resources {
            if let Slot::Variable(variable) = resource {
                (0..batch.rows).for_each(|row| want(batch.value(*variable, row)));
            }
        }
        Ok(Flow::More)
    })?;
    let mut triples = Collected::default();
    while let Some(subject) = wanted.pop() {
        for [predicate, object] in statements_of(snapshot, subject)? {
            if object.is_vertex() && snapshot.is_blank(object)? && seen.insert(object) {
                wanted.push(object);
            }
            if let (Some(subject), Term::NamedNode(predicate)) =
                (subject_of(term(snapshot, subject)?), term(snapshot, predicate)?)
            {
                triples.add(Triple { subject, predicate, object: term(snapshot, object)? });
            }
        }
    }
    Ok(triples.list)
}

fn statements_of(snapshot: &dyn Snapshot, subject: Id) -> Result<Vec<[Id; 2]>> {
    let filter = EntryFilter { graph: GraphFilter::Any, parallel: false };
    let mut statements = Vec::new();
    for &(predicate, _) in snapshot.predicates() {
        let Some(segment) = snapshot.segment(predicate, Direction::Out)? else { continue };
        let mut expansion = Expansion::new(1024);
        let mut cursor = Cursor::default();
        while cursor.row < 1 {
            expansion.clear();
            segment.expand(&[subject], filter, &mut cursor, &mut expansion)?;
            statements.extend(expansion.neighbours.iter().map(|&object| [predicate, object]));
        }
    }
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

/// Triples without repetition.
#[derive(Default)]
struct Collected {
    list: Vec<Triple>,
    seen: HashSet<Triple>,
}

impl Collected {
    fn add(&mut self, triple: Triple) {
        if self.seen.insert(triple.clone()) {
            self.list.push(triple);
        }
    }
}
