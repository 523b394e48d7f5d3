//! Class inference: arc consistency over the classes of variables proves empty joins and implied types.
//!
//! Every variable has a domain, a superset of the classes of its values. A pattern allows only those pairs of
//! classes between which its segment has entries; domains are narrowed to a fixed point (arc consistency:
//! Mackworth, "Consistency in Networks of Relations", Artificial Intelligence 1977). An empty domain proves
//! that there is no solution; a type that all classes of a domain have needs no check. A segment that has
//! changed since its pairs were counted proves nothing and narrows nothing. The class pairs of an unchanged
//! segment refer to the classes that its vertices had when the pairs were counted. Vertices of
//! [`ClassId::OTHER`] have unknown types, so that class implies nothing.
//! # Cost
//! A few passes over the class pairs of the segments: microseconds for six patterns.

use crate::atom::{Atom, variable_of};
use crate::classes::ClassSet;
use vervet_algebra::Variable;
use vervet_kernel::plan::Operand;
use vervet_model::Direction;
use vervet_snapshot::{ClassId, GraphFilter};

/// The domains of the restricted variables, sorted by variable.
pub(crate) type Domains = Vec<(Variable, ClassSet)>;

/// The domain of `variable`.
pub(crate) fn domain(domains: &[(Variable, ClassSet)], variable: Variable) -> ClassSet {
    match domains.binary_search_by_key(&variable, |(variable, _)| *variable) {
        Ok(at) => domains[at].1,
        Err(_) => ClassSet::ALL,
    }
}

/// The classes that an end of a pattern may have.
fn of_end(domains: &[(Variable, ClassSet)], end: Operand) -> ClassSet {
    variable_of(end).map_or(ClassSet::ALL, |variable| domain(domains, variable))
}

/// Restricts a variable to these classes; returns whether that changes its domain.
pub(crate) fn narrow(domains: &mut Domains, variable: Variable, to: &ClassSet) -> bool {
    match domains.binary_search_by_key(&variable, |(variable, _)| *variable) {
        Ok(at) => {
            let narrowed = domains[at].1.intersection(to);
            let changed = narrowed != domains[at].1;
            domains[at].1 = narrowed;
            changed
        }
        Err(at) => {
            domains.insert(at, (variable, *to));
            true
        }
    }
}

/// Narrows `domains` by all atoms except implied ones and `without`; `false`: provably no solution.
fn propagate(atoms: &[Atom<'_>], without: Option<usize>, domains: &mut Domains) -> bool {
    let used = |at: usize, atom: &Atom<'_>| !atom.implied && Some(at) != without && is_exact(atom);
    // Domains of both ends after the last visit of an atom; while they are unchanged, the atom narrows
    // nothing.
    let mut left_with = vec![(ClassSet::EMPTY, ClassSet::EMPTY); atoms.len()];
    loop {
        let mut changed = false;
        for (at, atom) in atoms.iter().enumerate().filter(|(at, atom)| used(*at, atom)) {
            if let (Some(types), Some(subject)) = (&atom.types, variable_of(atom.subject)) {
                changed |= narrow(domains, subject, &types.union(&unknown_types(atom)));
                continue;
            }
            let Some((direction, side)) =
                Direction::BOTH.into_iter().find_map(|direction| Some((direction, atom.side(direction)?)))
            else {
                continue;
            };
            if atom.general.is_some() {
                continue;
            }
            let (key, neighbour) = atom.ends(direction);
            let (keys, neighbours) = (of_end(domains, key), of_end(domains, neighbour));
            if left_with[at] == (keys, neighbours) {
                continue;
            }
            let (mut keys_left, mut neighbours_left) = (ClassSet::EMPTY, ClassSet::EMPTY);
            for class_pair in &side.statistics.class_pairs {
                if keys.contains(class_pair.source) && neighbours.contains(class_pair.target) {
                    keys_left.insert(class_pair.source);
                    neighbours_left.insert(class_pair.target);
                }
            }
            if keys_left.is_empty() {
                return false;
            }
            for (end, left) in [(key, keys_left), (neighbour, neighbours_left)] {
                if let Some(variable) = variable_of(end) {
                    changed |= narrow(domains, variable, &left);
                }
            }
            // A self-loop pattern may narrow its variable further.
            if variable_of(key) != variable_of(neighbour) {
                left_with[at] = (of_end(domains, key), of_end(domains, neighbour));
            }
        }
        if domains.iter().any(|(_, domain)| domain.is_empty()) {
            return false;
        }
        if !changed {
            return true;
        }
    }
}

/// Classes that do not determine the types of their vertices, by the keys of `atom`.
fn unknown_types(atom: &Atom<'_>) -> ClassSet {
    let mut set: ClassSet = [ClassId::OTHER].into_iter().collect();
    if let Some(side) = atom.side(Direction::Out) {
        for (class, _) in side.statistics.keys_of_class.iter().filter(|(class, _)| *class < ClassId::FIRST) {
            set.insert(*class);
        }
    }
    set
}

/// Narrows `domains` by `atoms` and marks the type patterns that the others imply; `false`: provably no
/// solution, and the content of `domains` is undefined.
pub(crate) fn infer(atoms: &mut [Atom<'_>], domains: &mut Domains) -> bool {
    let before = domains.clone();
    if !propagate(atoms, None, domains) {
        return false;
    }
    // The largest type first: it is the least selective, so its removal costs least.
    let mut candidates: Vec<(f64, usize)> = atoms
        .iter()
        .enumerate()
        .filter(|(_, atom)| atom.types.is_some() && atom.general.is_none())
        .filter(|(_, atom)| is_exact(atom) && can_be_implied(atom))
        .filter(|(_, atom)| variable_of(atom.subject).is_some())
        .map(|(at, atom)| (atom.degrees[Direction::In as usize].unwrap_or(0.0), at))
        .collect();
    candidates.sort_by(|a, b| b.0.total_cmp(&a.0));
    for (_, at) in candidates {
        let (Some(types), Some(subject)) = (atoms[at].types, variable_of(atoms[at].subject)) else {
            continue;
        };
        let certain = types.intersection(&ClassSet::KNOWN);
        // Quick rejection: the domain under all atoms must be within the type.
        if !domain(domains, subject).is_subset(&certain) {
            continue;
        }
        let mut others = before.clone();
        if propagate(atoms, Some(at), &mut others) && domain(&others, subject).is_subset(&certain) {
            atoms[at].implied = true;
        }
    }
    true
}

/// Whether the statistics of the pattern are exact for the snapshot. For a type pattern this implies that
/// classes are exact: if types have changed, the statistics of the type segments are not exact.
fn is_exact(atom: &Atom<'_>) -> bool {
    Direction::BOTH.into_iter().filter_map(|direction| atom.side(direction)).all(|side| side.statistics.exact)
}

/// Whether the pattern matches exactly once for each vertex whose class has the type.
fn can_be_implied(atom: &Atom<'_>) -> bool {
    matches!(atom.graph, GraphFilter::Default | GraphFilter::Any)
        && atom.counts_once
        && atom.side(Direction::Out).is_some_and(|side| !side.statistics.has_named_graphs)
}
