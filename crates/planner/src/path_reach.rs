//! Estimated reach of searches along property paths, by class.
//!
//! # Shape
//! The simulation of a search from one node: the expected number of nodes of each class that each step finds
//! in each state. An entry leads from a class to a class as often as the entries of its predicate do; a
//! [`Correction`] adds what the samples of two ends know about their common values. If classes are unknown,
//! or there are too many moves, all nodes are one class.

use crate::atom::{DirectedSegment, PredicateSegments};
use crate::cost;
use crate::join_candidates::at_least;
use crate::key_joins::{conditional_degree, correction};
use crate::lower::Planner;
use crate::path_facts::ReachEstimate;
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;
use vervet_kernel::plan::{Automaton, Move};
use vervet_model::{Direction, Error, Id, Result};

/// Number of steps from a start node that an estimate simulates.
const STEPS_ESTIMATED: i32 = 6;

/// Maximum number of moves for which degrees depend on classes and on the move before; their pairs are
/// counted.
const CONDITIONAL_MAX: usize = 64;

/// Maximum number of pairs of classes of all moves, each counted once for each step.
const PAIRS_MAX: usize = 8_192;

/// Nodes that are reached where none are expected, but none are not proved.
const UNPROVED: f64 = 1e-3;

/// A move of an automaton in the direction of a search.
struct Traversal {
    /// Source state.
    from: usize,
    /// Target state.
    to: usize,
    /// Entries, distinct keys and distinct neighbours.
    entries: f64,
    keys: f64,
    /// The predicate, with the direction of the traversal.
    end: Option<(Id, Direction)>,
    /// Expected entries of a node of one class to nodes of another.
    degrees: Vec<(usize, usize, f64)>,
    /// Expected nodes of each class that an entry from a random key leads to; 0 in all others.
    first: Vec<(usize, f64)>,
    /// Distinct neighbours of each class.
    ends: Vec<(usize, f64)>,
}

/// Statistics of the predicates of a path.
type Segments<'a> = FxHashMap<Id, PredicateSegments<'a>>;

impl<'a> Planner<'a> {
    /// Estimated reach of a search from one node with a first move: the nodes reached in [`STEPS_ESTIMATED`]
    /// steps, of each class and in each state at most the number of distinct ends of its moves. `is_empty`:
    /// there provably is no path.
    pub(crate) fn reach(
        &self,
        automaton: &Automaton,
        backwards: bool,
        is_empty: bool,
    ) -> Result<ReachEstimate> {
        let states = automaton.moves.len();
        let mut segments = Segments::default();
        let (traversals, width) = self.traversals(automaton, backwards, &mut segments)?;
        let factors = self.factors(&traversals, &segments, width > 1)?;
        let starts = |state: usize| if backwards { automaton.accepting[state] } else { state == 0 };
        let is_end = |state: usize| if backwards { state == 0 } else { automaton.accepting[state] };
        self.control.grow((states * width * 4 * size_of::<f64>()) as u64)?;
        let at = |state: usize, class: usize| state * width + class;
        // The start node itself, whose class is unknown, counts as an extra node of the first class.
        let own = |state: usize| f64::from(u8::from(starts(state)));
        let mut most = vec![0.0; states * width];
        (0..states).for_each(|state| most[at(state, 0)] = own(state));
        for traversal in &traversals {
            for (class, ends) in &traversal.ends {
                most[at(traversal.to, *class)] += ends;
            }
        }
        let mut reached = vec![0.0; states * width];
        (0..states).for_each(|state| reached[at(state, 0)] = own(state));
        // Nodes of the last step, by the traversal that has found them and by class.
        let (mut now, mut cost) = (vec![0.0; traversals.len() * width], 0.0);
        let mut arriving = vec![0.0; width];
        for step in 0..STEPS_ESTIMATED {
            let mut found = vec![0.0; traversals.len() * width];
            for (number, traversal) in traversals.iter().enumerate() {
                let found = &mut found[number * width..(number + 1) * width];
                let (mut rows, mut of_rows) = (0.0, 0.0);
                if step == 0 {
                    if starts(traversal.from) {
                        (rows, of_rows) = (1.0, traversal.entries / traversal.keys.max(1.0));
                        traversal.first.iter().for_each(|(class, nodes)| found[*class] = *nodes);
                    }
                } else {
                    self.control.work(traversals.len() * width + traversal.degrees.len())?;
                    arriving.fill(0.0);
                    for (before, factor) in &factors[number] {
                        let nodes = &now[before * width..(before + 1) * width];
                        for (sum, nodes) in arriving.iter_mut().zip(nodes) {
                            *sum += nodes * factor;
                            rows += nodes;
                        }
                    }
                    for (source, target, degree) in &traversal.degrees {
                        let nodes = arriving[*source] * degree;
                        found[*target] += nodes;
                        of_rows += nodes;
                    }
                }
                cost += rows * cost::EXPAND_ROW + of_rows * cost::PATH_ENTRY;
            }
            // Probabilities below one are not independent.
            let (before, after): (f64, f64) = (now.iter().sum(), found.iter().sum());
            if step > 0 && after > 0.0 && before > 0.0 {
                let damped = at_least(before, after) / after;
                found.iter_mut().for_each(|found| *found *= damped);
            }
            let mut next = vec![0.0; states * width];
            for (traversal, found) in traversals.iter().zip(found.chunks(width)) {
                let next = &mut next[traversal.to * width..(traversal.to + 1) * width];
                next.iter_mut().zip(found).for_each(|(next, found)| *next += found);
            }
            // Some neighbours are equal, and visited nodes are not expanded again.
            for ((next, reached), most) in next.iter_mut().zip(&mut reached).zip(&most) {
                if *next > 0.0 {
                    let free = (most - *reached).max(0.0);
                    let new = -free * (-*next / most.max(1.0)).exp_m1();
                    *reached += new;
                    *next = new / *next;
                }
            }
            for (number, traversal) in traversals.iter().enumerate() {
                let kept = &next[traversal.to * width..(traversal.to + 1) * width];
                let nodes = &mut now[number * width..(number + 1) * width];
                let found = &found[number * width..(number + 1) * width];
                nodes.iter_mut().zip(found).zip(kept).for_each(|((now, found), kept)| *now = found * kept);
            }
        }
        // States may share nodes: assumes that the state with most nodes of a class contains all others.
        let (mut nodes, mut all) = (0.0, 0.0);
        let mut classes = vec![0.0; width];
        for (class, of_class) in classes.iter_mut().enumerate() {
            let ends = (0..states).filter(|&state| is_end(state)).map(|state| at(state, class));
            let (sum, largest) =
                ends.fold((0.0, 0.0_f64), |(sum, all), at| (sum + reached[at], all.max(most[at])));
            *of_class = sum.min(largest);
            nodes += *of_class;
            all += largest;
        }
        if !is_empty {
            nodes = nodes.max(UNPROVED.min(all));
        }
        let of_start = traversals
            .iter()
            .filter(|traversal| starts(traversal.from))
            .map(|traversal| traversal.keys)
            .sum();
        let is_known = width > 1 && nodes > UNPROVED && !automaton.accepting.first().is_some_and(|is| *is);
        let classes = is_known.then(|| classes.iter().map(|one| one / nodes).collect());
        Ok(ReachEstimate { nodes, most: all, cost, starts: of_start, classes })
    }

    /// The moves in the direction of a search, and the number of classes: 1 if they are unknown.
    fn traversals(
        &self,
        automaton: &Automaton,
        backwards: bool,
        segments: &mut Segments<'a>,
    ) -> Result<(Vec<Traversal>, usize)> {
        let mut traversals: Vec<Traversal> = Vec::new();
        let mut counts: FxHashMap<&Move, (f64, f64, f64)> = FxHashMap::default();
        for (from, moves) in automaton.moves.iter().enumerate() {
            self.control.work(moves.len() + 1)?;
            for (one, to) in moves {
                let (entries, keys, ends) = match counts.get(one) {
                    Some(counts) => *counts,
                    None => *counts.entry(one).or_insert(self.move_counts(one)?),
                };
                let (from, to, keys, ends) = match backwards {
                    false => (from, usize::from(*to), keys, ends),
                    true => (usize::from(*to), from, ends, keys),
                };
                let end = match one {
                    Move::Predicate(predicate, direction) if backwards => {
                        Some((*predicate, direction.reverse()))
                    }
                    Move::Predicate(predicate, direction) => Some((*predicate, *direction)),
                    Move::Except(..) => None,
                };
                let mean = entries / keys.max(1.0);
                let (degrees, first, ends) = (vec![(0, 0, mean)], vec![(0, mean)], vec![(0, ends)]);
                traversals.push(Traversal { from, to, entries, keys, end, degrees, first, ends });
            }
        }
        if traversals.len() > CONDITIONAL_MAX {
            return Ok((traversals, 1));
        }
        for (predicate, _) in traversals.iter().filter_map(|traversal| traversal.end) {
            if let Entry::Vacant(slot) = segments.entry(predicate) {
                slot.insert(PredicateSegments::new(predicate, self.snapshot)?);
            }
        }
        let side = |(predicate, direction)| segments.get(&predicate)?.side(direction);
        let sides: Option<Vec<[&DirectedSegment<'_>; 2]>> = traversals
            .iter()
            .map(|one| one.end.and_then(|(of, to)| Some([side((of, to))?, side((of, to.reverse()))?])))
            .collect();
        let Some(sides) = sides else { return Ok((traversals, 1)) };
        let pairs: usize = sides.iter().map(|[side, _]| side.statistics.class_pairs.len()).sum();
        if pairs > PAIRS_MAX {
            return Ok((traversals, 1));
        }
        self.control.work(pairs)?;
        for (traversal, [side, other]) in traversals.iter_mut().zip(&sides) {
            let mut first: Vec<(usize, f64)> = Vec::new();
            traversal.degrees.clear();
            for one in side.class_degrees() {
                for pair in side.class_pairs_of(one) {
                    let target = usize::from(pair.target.0);
                    let degree = pair.entries as f64 * one.share;
                    traversal.degrees.push((usize::from(one.class.0), target, degree));
                    let nodes = pair.entries as f64 / traversal.keys.max(1.0);
                    match first.iter_mut().find(|(class, _)| *class == target) {
                        Some((_, sum)) => *sum += nodes,
                        None => first.push((target, nodes)),
                    }
                }
            }
            traversal.first = first;
            let ends = other.statistics.keys_of_class.iter();
            traversal.ends = ends.map(|(class, keys)| (usize::from(class.0), *keys as f64)).collect();
        }
        let classes = traversals.iter().flat_map(|one| {
            let sources = one.degrees.iter().map(|(source, ..)| *source);
            sources
                .chain(one.first.iter().map(|(class, _)| *class))
                .chain(one.ends.iter().map(|(class, _)| *class))
        });
        let width = classes.max().unwrap_or(0) + 1;
        Ok((traversals, width))
    }

    /// For each traversal those that may come before it, with the factor of its degrees after them.
    fn factors(
        &self,
        traversals: &[Traversal],
        segments: &Segments<'a>,
        by_class: bool,
    ) -> Result<Vec<Vec<(usize, f64)>>> {
        let mut known: FxHashMap<[(Id, Direction); 2], f64> = FxHashMap::default();
        let mut all = Vec::with_capacity(traversals.len());
        for next in traversals {
            let mut factors = Vec::new();
            for (number, before) in traversals.iter().enumerate().filter(|(_, one)| one.to == next.from) {
                self.control.work(1)?;
                let factor = match before.end.zip(next.end) {
                    Some((end, to)) if traversals.len() <= CONDITIONAL_MAX => {
                        let from = (end.0, end.1.reverse());
                        match known.entry([from, to]) {
                            Entry::Occupied(known) => *known.get(),
                            Entry::Vacant(slot) => {
                                self.control.work(16)?;
                                *slot.insert(factor(from, to, next, segments, by_class))
                            }
                        }
                    }
                    _ => 1.0,
                };
                factors.push((number, factor));
            }
            all.push(factors);
        }
        Ok(all)
    }

    /// Entries, keys and ends of the statements of a move.
    pub(crate) fn move_counts(&self, one: &Move) -> Result<(f64, f64, f64)> {
        let (mut entries, mut keys, mut ends) = (0.0, 0.0, 0.0);
        let mut add = |predicate, direction: Direction| {
            let side = |direction| self.snapshot.segment(predicate, direction);
            if let (Some(segment), Some(other)) = (side(direction)?, side(direction.reverse())?) {
                entries += segment.statistics().entries as f64;
                keys += segment.statistics().keys as f64;
                ends += other.statistics().keys as f64;
            }
            Ok::<_, Error>(())
        };
        match one {
            Move::Predicate(predicate, direction) => add(*predicate, *direction)?,
            Move::Except(these, direction) => {
                for (predicate, _) in self.snapshot.predicates() {
                    self.control.work(1)?;
                    if these.binary_search(predicate).is_err() {
                        add(*predicate, *direction)?;
                    }
                }
            }
        }
        Ok((entries, keys, ends))
    }
}

/// The factor of the degrees of a node that has been reached at the end `from`, and continues at the end
/// `to`.
fn factor(
    from: (Id, Direction),
    to: (Id, Direction),
    next: &Traversal,
    segments: &Segments<'_>,
    by_class: bool,
) -> f64 {
    let side = |(predicate, direction)| segments.get(&predicate)?.side(direction);
    let (Some(first), Some(second)) = (side(from), side(to)) else { return 1.0 };
    if by_class {
        return correction(first, false, second, from == to).map_or(1.0, |one| one.reached * one.fan_out);
    }
    let degree = conditional_degree(first.statistics, second.statistics, from == to);
    degree.map_or(1.0, |degree| degree * next.keys.max(1.0) / next.entries.max(f64::MIN_POSITIVE))
}
