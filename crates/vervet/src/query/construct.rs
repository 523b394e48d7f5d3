//! `CONSTRUCT`: statements instantiated from solutions.
//!
//! # Shape
//! Statements are triples of ids, passed on batch by batch; their terms are read where they are written. Only
//! a statement with a blank node of the template, which is new for each solution, is made of terms.
//! # Cost
//! A set of all statements (32 bytes for each, counted against the memory cap) removes duplicates, unless the
//! template is one pattern whose solutions cannot repeat: then the graph streams in constant memory.

use crate::query::duplicates::are_distinct;
use crate::query::execute::Execution;
use crate::query::graph_sink::{EvaluatorTerms, GraphSink};
use oxrdf::{BlankNode, NamedOrBlankNode, Term, TermRef, Triple};
use rustc_hash::{FxHashMap, FxHashSet};
use vervet_algebra::{Pattern, Query, Slot, TripleTemplate, Variable};
use vervet_expression::Evaluator;
use vervet_kernel::plan::Profile;
use vervet_kernel::{Batch, Control, Flow};
use vervet_model::{Id, Result, TRIPLE_DEPTH_MAX, term_depth};
use vervet_snapshot::Snapshot;

/// Passes the statements of a template to `sink`, without duplicates.
pub(crate) fn construct(
    execution: &Execution<'_>,
    query: &Query,
    statements: &[Pattern],
    triples: &[TripleTemplate],
    control: &Control<'_>,
    sink: &mut dyn GraphSink,
) -> Result<Profile> {
    let template = Template::new(query, statements, triples);
    let mut ids = IdStatements::new(&template, query);
    let mut solutions = 0;
    let (_, profile) = execution.run_under(control, &mut |evaluator: &Evaluator<'_>, batch: &Batch| {
        ids.pass(&template, evaluator, batch, control, sink)?;
        if !template.with_blanks.is_empty() {
            for row in 0..batch.rows {
                let solution = Solution { evaluator, batch, row, number: solutions + row as u64 + 1 };
                pass_with_blanks(&template, &solution, sink)?;
            }
        }
        solutions += batch.rows as u64;
        Ok(Flow::More)
    })?;
    Ok(profile)
}

/// A position of a template.
enum Part {
    Constant(Term),
    /// A variable of the solutions.
    Variable(Variable),
    /// A blank node of the template.
    Blank(Variable),
    /// A triple term: an index into [`Template::triples`].
    Triple(usize),
}

struct Template {
    /// Statements without blank nodes of the template.
    plain: Vec<[Part; 3]>,
    /// Statements with such blank nodes.
    with_blanks: Vec<[Part; 3]>,
    /// Triple terms; an inner one comes first.
    triples: Vec<[Part; 3]>,
}

impl Template {
    fn new(query: &Query, statements: &[Pattern], triples: &[TripleTemplate]) -> Self {
        let places: FxHashMap<Variable, usize> =
            triples.iter().enumerate().map(|(place, triple)| (triple.variable, place)).collect();
        let part = |slot: &Slot| match slot {
            Slot::Constant(term) => Part::Constant(term.clone()),
            Slot::Variable(variable) => match places.get(variable) {
                Some(place) => Part::Triple(*place),
                None if query.variables[variable.index()].is_empty() => Part::Blank(*variable),
                None => Part::Variable(*variable),
            },
        };
        let mut template = Self { plain: Vec::new(), with_blanks: Vec::new(), triples: Vec::new() };
        let mut has_blank: Vec<bool> = Vec::new();
        let is_blank = |part: &Part, has_blank: &[bool]| match part {
            Part::Blank(_) => true,
            Part::Triple(place) => has_blank.get(*place).copied().unwrap_or(false),
            Part::Constant(_) | Part::Variable(_) => false,
        };
        for triple in triples {
            let parts = triple.parts.each_ref().map(part);
            has_blank.push(parts.iter().any(|part| is_blank(part, &has_blank)));
            template.triples.push(parts);
        }
        for statement in statements {
            let parts = [&statement.subject, &statement.predicate, &statement.object].map(part);
            match parts.iter().any(|part| is_blank(part, &has_blank)) {
                true => template.with_blanks.push(parts),
                false => template.plain.push(parts),
            }
        }
        template
    }
}

/// Statements of ids.
struct IdStatements {
    /// Statements so far; absent if none can repeat.
    seen: Option<FxHashSet<[Id; 3]>>,
    counted_bytes: u64,
    columns: [Vec<Id>; 3],
}

impl IdStatements {
    fn new(template: &Template, query: &Query) -> Self {
        let is_set = match template.plain.as_slice() {
            [] => true,
            [parts] => {
                let variables = parts.iter().filter_map(|part| match part {
                    Part::Variable(variable) => Some(*variable),
                    _ => None,
                });
                are_distinct(&query.root, &variables.collect::<Vec<Variable>>())
            }
            _ => false,
        };
        Self { seen: (!is_set).then(FxHashSet::default), counted_bytes: 0, columns: Default::default() }
    }

    /// Passes on the new statements of a batch.
    fn pass(
        &mut self,
        template: &Template,
        evaluator: &Evaluator<'_>,
        batch: &Batch,
        control: &Control<'_>,
        sink: &mut dyn GraphSink,
    ) -> Result<()> {
        let source = EvaluatorTerms(evaluator);
        let constants = |parts: &[Part; 3]| -> Result<[Id; 3]> {
            let mut ids = [Id::UNBOUND; 3];
            for (id, part) in ids.iter_mut().zip(parts) {
                if let Part::Constant(term) = part {
                    *id = evaluator.intern(term.as_ref())?;
                }
            }
            Ok(ids)
        };
        let plain = template.plain.iter().map(constants).collect::<Result<Vec<[Id; 3]>>>()?;
        if plain.is_empty() {
            return Ok(());
        }
        let mut triples = Vec::with_capacity(template.triples.len());
        self.columns.iter_mut().for_each(Vec::clear);
        for row in 0..batch.rows {
            triples.clear();
            for parts in &template.triples {
                triples.push(triple_id(parts, evaluator, batch, row, &triples)?);
            }
            for (parts, constants) in template.plain.iter().zip(&plain) {
                let mut ids = *constants;
                for (id, part) in ids.iter_mut().zip(parts) {
                    *id = part.id(batch, row, &triples, *id);
                }
                let is_bound = ids.iter().all(|id| id.is_bound());
                if is_bound && self.is_new(ids, control)? {
                    self.columns.iter_mut().zip(ids).for_each(|(column, id)| column.push(id));
                }
            }
            // A template can be long.
            if self.columns[0].len() >= COLUMN_ROWS {
                self.flush(control, sink, &source)?;
            }
        }
        self.flush(control, sink, &source)
    }

    /// Whether no earlier statement is equal.
    fn is_new(&mut self, ids: [Id; 3], control: &Control<'_>) -> Result<bool> {
        let Some(seen) = &mut self.seen else { return Ok(true) };
        if seen.len() == seen.capacity() {
            // While the table grows, it exists in the old and in the double size.
            let bytes = |capacity: usize| capacity as u64 * 8 / 7 * SEEN_BYTES;
            control.recount(&mut self.counted_bytes, 3 * bytes(seen.capacity()))?;
            seen.reserve(1);
            control.recount(&mut self.counted_bytes, bytes(seen.capacity()))?;
        }
        Ok(seen.insert(ids))
    }

    fn flush(
        &mut self,
        control: &Control<'_>,
        sink: &mut dyn GraphSink,
        source: &EvaluatorTerms<'_, '_>,
    ) -> Result<()> {
        control.check()?;
        if !self.columns[0].is_empty() {
            sink.batch(self.columns.each_ref().map(Vec::as_slice), source)?;
        }
        self.columns.iter_mut().for_each(Vec::clear);
        Ok(())
    }
}

/// Number of statements that are passed on together.
const COLUMN_ROWS: usize = 4096;
/// Bytes of a statement in the set: three ids, and the tag of the hash table.
const SEEN_BYTES: u64 = size_of::<[Id; 3]>() as u64 + 1;

impl Part {
    /// The id in a solution; `constant` is that of a constant. Unbound for a blank node of the template.
    fn id(&self, batch: &Batch, row: usize, triples: &[Id], constant: Id) -> Id {
        match self {
            Self::Constant(_) => constant,
            Self::Variable(variable) => batch.value(*variable, row),
            Self::Triple(place) => triples.get(*place).copied().unwrap_or(Id::UNBOUND),
            Self::Blank(_) => Id::UNBOUND,
        }
    }
}

/// The id of a triple term in a solution; unbound if a part is unbound or not allowed in its position, or if
/// it contains a blank node of the template.
fn triple_id(
    parts: &[Part; 3],
    evaluator: &Evaluator<'_>,
    batch: &Batch,
    row: usize,
    triples: &[Id],
) -> Result<Id> {
    let mut terms = [None, None, None];
    for (term, part) in terms.iter_mut().zip(parts) {
        *term = match part {
            Part::Constant(constant) => Some(constant.clone()),
            part => evaluator.term(part.id(batch, row, triples, Id::UNBOUND))?,
        };
    }
    triple_term_of(terms).map_or(Ok(Id::UNBOUND), |term| evaluator.intern(term.as_ref()))
}

/// One solution.
struct Solution<'a, 'e> {
    evaluator: &'a Evaluator<'e>,
    batch: &'a Batch,
    row: usize,
    /// Number of the solution in the result, from 1.
    number: u64,
}

impl Solution<'_, '_> {
    fn terms(&self, parts: &[Part; 3], triples: &[Option<Term>]) -> Result<[Option<Term>; 3]> {
        let mut terms = [None, None, None];
        for (term, part) in terms.iter_mut().zip(parts) {
            *term = match part {
                Part::Constant(term) => Some(term.clone()),
                Part::Variable(variable) => self.evaluator.term(self.batch.value(*variable, self.row))?,
                Part::Blank(variable) => {
                    Some(template_blank(*variable, self.number, self.evaluator.snapshot())?)
                }
                Part::Triple(place) => triples.get(*place).cloned().flatten(),
            };
        }
        Ok(terms)
    }
}

/// Passes on the statements of one solution that contain a blank node of the template. Those of other
/// solutions are different.
fn pass_with_blanks(
    template: &Template,
    solution: &Solution<'_, '_>,
    sink: &mut dyn GraphSink,
) -> Result<()> {
    let mut triples = Vec::with_capacity(template.triples.len());
    for parts in &template.triples {
        triples.push(triple_term_of(solution.terms(parts, &triples)?));
    }
    let mut seen: FxHashSet<Triple> = FxHashSet::default();
    for parts in &template.with_blanks {
        if let Some(triple) = triple_of(solution.terms(parts, &triples)?)
            && !seen.contains(&triple)
        {
            sink.triple(triple.as_ref())?;
            if template.with_blanks.len() > 1 {
                seen.insert(triple);
            }
        }
    }
    Ok(())
}

/// The triple of three terms, if all are bound and RDF allows them in their positions.
fn triple_of(terms: [Option<Term>; 3]) -> Option<Triple> {
    let [Some(subject), Some(Term::NamedNode(predicate)), Some(object)] = terms else { return None };
    let subject = match subject {
        Term::NamedNode(node) => NamedOrBlankNode::from(node),
        Term::BlankNode(node) => NamedOrBlankNode::from(node),
        Term::Literal(_) | Term::Triple(_) => return None,
    };
    Some(Triple { subject, predicate, object })
}

/// Like [`triple_of`], for a triple term. `None` if it is nested too deeply to be loaded again.
fn triple_term_of([subject, predicate, object]: [Option<Term>; 3]) -> Option<Term> {
    let object = object.filter(|object| term_depth(object.as_ref()) < TRIPLE_DEPTH_MAX);
    triple_of([subject, predicate, object]).map(Into::into)
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
