//! Implied conditions: list restrictions propagated from objects to subjects.
//!
//! # Shape
//! `?message :isLocatedIn ?place . ?place :name ?name FILTER(?name IN ("India", "China"))` implies `?place IN
//! (…)`, and the list of such places is short: planning looks them up, and messages elsewhere are dropped
//! before the names of their places are read. The original condition stays in the plan. The implied condition
//! may therefore pass rows that the original one rejects, but must pass all others.
//! # Invariants
//! Only segments with exact statistics are read: a plan is reused for later versions as long as all segments
//! that were exact are unchanged, and a changed segment is not exact.
//! # Cost
//! A look-up and a degree for each term of the list; no entries are read if there are more than
//! [`VERTICES_MAX`].

use crate::atom::{Atom, variable_of};
use crate::filter::Conjunct;
use crate::lower::Planner;
use crate::partial_plan::PartialPlan;
use oxrdf::{NamedNode, Term};
use vervet_algebra::{Expression, Variable};
use vervet_kernel::plan::Operand;
use vervet_model::{Direction, Id, Result, Tag, TermParts};
use vervet_snapshot::{EntryFilter, Snapshot};

/// Maximum length of an implied list; longer ones cost more than they save.
const VERTICES_MAX: usize = 16;

/// Maximum number of neighbours of a constant that are read for their degrees.
const NEIGHBOURS_READ_MAX: f64 = 4.0;

/// Maximum selectivity of an implied condition; a less selective test costs more than it saves.
const PASSING_MAX: f64 = 0.5;

impl<'a> Planner<'a> {
    /// Adds the conditions that `filters` and `atoms` imply together to `filters`; the implying condition
    /// then has an estimated selectivity of 1.
    pub(crate) fn imply(
        &self,
        atoms: &mut [Atom<'a>],
        partial: &PartialPlan,
        filters: &mut Vec<Conjunct>,
    ) -> Result<()> {
        for at in 0..filters.len() {
            let Some((object, terms)) = filters[at].as_one_of() else { continue };
            if terms.len() > VERTICES_MAX || partial.possible.contains(object) {
                continue;
            }
            let is_of = |atom: &&Atom<'a>| atom.general.is_none() && variable_of(atom.object) == Some(object);
            let Some(atom) = atoms.iter().find(is_of) else { continue };
            let Some(subject) = variable_of(atom.subject) else { continue };
            let Some(vertices) = self.subjects(atom, &terms)? else { continue };
            let selectivity = self.share(atoms, atom, subject, &vertices)?;
            if selectivity > PASSING_MAX {
                continue;
            }
            let mut list = Vec::with_capacity(vertices.len());
            for &vertex in &vertices {
                let name = name_of(self.snapshot, vertex)?;
                list.extend(name.map(|name| Expression::Constant(Term::NamedNode(name))));
            }
            if list.is_empty() || list.len() < vertices.len() {
                continue;
            }
            self.set_listed(atoms, subject, &vertices)?;
            let condition = Expression::In(Box::new(Expression::Variable(subject)), list);
            filters[at].selectivity = 1.0;
            filters.push(Conjunct { selectivity, ..Conjunct::new(condition) });
        }
        Ok(())
    }

    /// The distinct subjects of an atom whose objects are among `terms`. `None`: the statistics are not
    /// exact, there are more than [`VERTICES_MAX`] entries, or a subject is not an IRI.
    fn subjects(&self, atom: &Atom<'a>, terms: &[&Term]) -> Result<Option<Vec<Id>>> {
        let Some(side) = atom.side(Direction::In).filter(|side| side.statistics.exact) else {
            return Ok(None);
        };
        let mut keys = Vec::with_capacity(terms.len());
        for term in terms {
            keys.extend(self.snapshot.lookup(term.as_ref())?);
        }
        let filter = EntryFilter { graph: atom.graph, parallel: false };
        let mut degrees = Vec::new();
        side.segment.degrees(&keys, filter, &mut degrees)?;
        if degrees.iter().sum::<u64>() > VERTICES_MAX as u64 {
            return Ok(None);
        }
        let mut subjects = Vec::new();
        for key in keys {
            side.segment.neighbours(key, filter, &mut subjects)?;
        }
        subjects.sort_unstable();
        subjects.dedup();
        for &subject in &subjects {
            if subject.tag() != Tag::Vertex || self.snapshot.is_blank(subject)? {
                return Ok(None);
            }
        }
        Ok(Some(subjects))
    }

    /// Sets the average degrees of the few vertices that a pattern with a constant leaves for a variable.
    pub(crate) fn read_neighbours(&self, atoms: &mut [Atom<'a>]) -> Result<()> {
        if atoms.len() < 2 {
            return Ok(());
        }
        for at in 0..atoms.len() {
            for direction in Direction::BOTH {
                let atom = &atoms[at];
                let (Operand::Constant(key), Operand::Variable(variable)) = atom.ends(direction) else {
                    continue;
                };
                let is_few = atom.degrees[direction as usize]
                    .is_some_and(|degree| (1.0..=NEIGHBOURS_READ_MAX).contains(&degree));
                let Some(side) = atom.side(direction).filter(|side| is_few && side.statistics.exact) else {
                    continue;
                };
                let others = atoms.iter().enumerate().filter(|(other, _)| *other != at);
                if !others
                    .into_iter()
                    .any(|(_, other)| other.types.is_none() && other.variables.contains(variable))
                {
                    continue;
                }
                let mut vertices = Vec::new();
                let filter = EntryFilter { graph: atom.graph, parallel: false };
                side.segment.neighbours(key, filter, &mut vertices)?;
                if !vertices.is_empty() {
                    self.set_listed(atoms, variable, &vertices)?;
                }
            }
        }
        Ok(())
    }

    /// Sets the average degree of `subject` in each atom that contains it.
    fn set_listed(&self, atoms: &mut [Atom<'a>], subject: Variable, vertices: &[Id]) -> Result<()> {
        for atom in atoms.iter_mut().filter(|atom| atom.types.is_none()) {
            for direction in Direction::BOTH {
                let Some(side) = atom.side(direction).filter(|side| side.statistics.exact) else { continue };
                if variable_of(atom.ends(direction).0) != Some(subject) {
                    continue;
                }
                let filter = EntryFilter { graph: atom.graph, parallel: atom.parallel };
                let mut degrees = Vec::new();
                side.segment.degrees(vertices, filter, &mut degrees)?;
                let average = degrees.iter().sum::<u64>() as f64 / vertices.len().max(1) as f64;
                atom.listed[direction as usize] = Some(average);
            }
        }
        Ok(())
    }

    /// The fraction of the entries of the other atoms of `subject` that `vertices` have; 1 if there are none.
    fn share(&self, atoms: &[Atom<'a>], atom: &Atom<'a>, subject: Variable, vertices: &[Id]) -> Result<f64> {
        let mut most: f64 = 0.0;
        let mut is_used = false;
        for other in atoms.iter().filter(|other| !std::ptr::eq(*other, atom) && other.general.is_none()) {
            for direction in Direction::BOTH {
                let Some(side) = other.side(direction) else { continue };
                if variable_of(other.ends(direction).0) != Some(subject) || other.implied {
                    continue;
                }
                let filter = EntryFilter { graph: other.graph, parallel: other.parallel };
                let mut degrees = Vec::new();
                side.segment.degrees(vertices, filter, &mut degrees)?;
                let entries = side.statistics.entries.max(1) as f64;
                most = most.max(degrees.iter().sum::<u64>() as f64 / entries);
                is_used = true;
            }
        }
        Ok(if is_used { most.clamp(1e-6, 1.0) } else { 1.0 })
    }
}

fn name_of(snapshot: &dyn Snapshot, vertex: Id) -> Result<Option<NamedNode>> {
    let mut name = None;
    snapshot.read_term(vertex, &mut String::new(), &mut |parts| {
        if let TermParts::Iri { namespace, local } = parts {
            name = Some(NamedNode::new_unchecked(format!("{namespace}{local}")));
        }
    })?;
    Ok(name)
}
