//! Cardinality estimation: row counts and class distributions after each action of the join-order search.
//!
//! # Shape
//! A distribution is `width` weights by class number, in one array for the whole search. The *table* of a
//! state ([`ClassDistributions`]) is a range of pairs of a variable and the offset of its distribution. Both
//! arrays grow at the end only, so a new state copies a few pairs.
//! # Cost
//! A row count takes 10 to 100 ns: the number of classes present times their pairs. A new table takes twice
//! that.

use crate::atom::{Atom, ClassDegree, DirectedSegment, PredicateSegments, variable_of};
use crate::classes::{ClassSet, Classes, Distribution};
use crate::key_joins::{BoundEnds, Correction, ENDS_MAX, classes_tell_of, correction};
use std::cell::RefCell;
use std::rc::Rc;
use vervet_algebra::{Variable, VariableSet};
use vervet_kernel::plan::Operand;
use vervet_model::{Direction, Id};
use vervet_snapshot::{ClassId, ClassPairCount};

/// Class distributions of the variables of a state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClassDistributions {
    first: usize,
    count: usize,
}

/// See the header of this file.
pub(crate) struct Estimator<'s, 'a> {
    atoms: &'s [Atom<'a>],
    /// Number of weights of one distribution.
    width: usize,
    /// Distributions, `width` weights each.
    weights: Vec<f64>,
    /// Variables, with the offset of their distribution in `weights`.
    known: Vec<(Variable, usize)>,
    /// Ends that have bound variables before the join.
    ends: &'s [BoundEnds<'a>],
    /// For each variable that only atoms use: the bit mask of these atoms.
    uses: &'s [(Variable, u64)],
    /// Whether nothing is corrected: see [`classes_tell_of`].
    by_classes: bool,
    /// Corrections by a pair of ends of atoms; empty until one is needed.
    corrections: RefCell<Vec<Option<Option<Correction>>>>,
}

impl<'s, 'a> Estimator<'s, 'a> {
    /// An estimator, and the table of those of `classes` that the atoms read. `ends`: those that have bound
    /// variables before; `uses`: see [`crate::join_state::JoinOrderSearch::uses_of`].
    pub(crate) fn new(
        atoms: &'s [Atom<'a>],
        classes: &Classes,
        ends: &'s [BoundEnds<'a>],
        uses: &'s [(Variable, u64)],
    ) -> (Self, ClassDistributions) {
        // A neighbour of one direction is a key of the other.
        let of_keys = atoms.iter().flat_map(Atom::statistics).filter_map(|one| one.keys_of_class.last());
        let of_keys = of_keys.map(|(class, _)| usize::from(class.0) + 1).max().unwrap_or(0);
        let of_ends = ends.iter().flat_map(|(_, ends)| ends).filter_map(|(sides, direction, _)| {
            sides.side(*direction)?.statistics.keys_of_class.last().map(|(class, _)| usize::from(class.0) + 1)
        });
        let of_keys = of_ends.fold(of_keys, usize::max);
        let mut read = VariableSet::default();
        atoms.iter().for_each(|atom| read.add_all(&atom.variables));
        let classes = || classes.iter().filter(|(variable, _)| read.contains(*variable));
        let width = classes().map(|(_, weights)| weights.len()).fold(of_keys, usize::max);
        let mut new = Self {
            atoms,
            width,
            weights: Vec::new(),
            known: Vec::new(),
            ends,
            uses,
            by_classes: classes_tell_of(atoms),
            corrections: RefCell::default(),
        };
        // Two for each atom of a forced order.
        new.weights.reserve((width * (2 + 2 * atoms.len())).min(1 << 12));
        new.known.reserve(8 * atoms.len());
        for (variable, weights) in classes() {
            let at = new.weights.len();
            new.weights.extend_from_slice(weights);
            new.weights.resize(at + width, 0.0);
            new.known.push((*variable, at));
        }
        for (variable, shares) in ends {
            if !classes().any(|(of, _)| of == variable) {
                new.add_classes_of(*variable, shares);
            }
        }
        let count = new.known.len();
        (new, ClassDistributions { first: 0, count })
    }

    /// Adds the distribution of a variable that these ends have bound.
    fn add_classes_of(&mut self, variable: Variable, ends: &[(Rc<PredicateSegments<'a>>, Direction, f64)]) {
        let at = self.weights.len();
        self.weights.resize(at + self.width, 0.0);
        let mut sum = 0.0;
        for (sides, direction, share) in ends {
            let Some(side) = sides.side(*direction) else { continue };
            let entries = side.statistics.entries.max(1) as f64;
            for one in side.class_degrees() {
                let weight = share * one.degree / one.share / entries;
                add(&mut self.weights[at..], one.class, weight);
                sum += weight;
            }
        }
        if sum > 0.0 {
            self.weights[at..].iter_mut().for_each(|weight| *weight /= sum);
            self.known.push((variable, at));
        } else {
            self.weights.truncate(at);
        }
    }

    /// The distributions of a table, and those of `before` for other variables.
    pub(crate) fn into_classes(self, table: ClassDistributions, before: &Classes) -> Classes {
        let known = &self.known[table.first..table.first + table.count];
        let is_other = |(variable, _): &&(Variable, _)| known.iter().all(|(of, _)| of != variable);
        let mut classes = Classes::with_capacity(before.len() + known.len());
        classes.extend(before.iter().filter(is_other).cloned());
        if self.weights.len() <= SHARED_WEIGHTS_MAX {
            let all = Rc::new(self.weights);
            let part = |at: usize| Distribution::part_of(&all, at, at + self.width);
            classes.extend(known.iter().map(|&(variable, at)| (variable, part(at))));
        } else {
            let copy = |at: usize| self.weights[at..at + self.width].iter().copied().collect();
            classes.extend(known.iter().map(|&(variable, at)| (variable, copy(at))));
        }
        classes
    }

    fn position(&self, table: ClassDistributions, variable: Variable) -> Option<usize> {
        let known = &self.known[table.first..table.first + table.count];
        known.iter().find(|(of, _)| *of == variable).map(|(_, at)| *at)
    }

    fn distribution(&self, table: ClassDistributions, end: Operand) -> Option<&[f64]> {
        let at = self.position(table, variable_of(end)?)?;
        Some(&self.weights[at..at + self.width])
    }

    /// Average number of neighbours of the key of an atom, and the probability that it has any. `done`: the
    /// atoms that are joined.
    pub(crate) fn degree(
        &self,
        table: ClassDistributions,
        done: u64,
        index: usize,
        direction: Direction,
    ) -> (f64, f64) {
        let atom = &self.atoms[index];
        let Some(side) = atom.side(direction) else { return (0.0, 0.0) };
        let key = atom.ends(direction).0;
        if let Operand::Constant(_) = key {
            let degree = atom.degrees[direction as usize].unwrap_or_else(|| side.average_degree());
            return (degree, degree.min(1.0));
        }
        if let Some(average) = atom.listed[direction as usize] {
            return (average, average.min(1.0));
        }
        let Some(weights) = self.distribution(table, key) else {
            return (side.average_degree() * side.skew(), 1.0);
        };
        let (mut degree, mut keys) = (0.0, 0.0);
        for class_degree in side.class_degrees() {
            let weight = weights.get(usize::from(class_degree.class.0)).copied().unwrap_or(0.0);
            degree += weight * class_degree.degree;
            keys += weight * class_degree.keys;
        }
        if self.by_classes {
            if self.is_bound_by_same_end(done, key, index, direction) {
                return (side.size_biased_degree(), 1.0);
            }
            return (degree * if done == 0 { 1.0 } else { side.skew() }, keys);
        }
        // Values of nearly equal degrees, which every vertex of these classes has, need no correction.
        let is_even = || side.size_biased_degree() < EVEN_DEGREES_MAX * side.average_degree();
        if keys <= 0.0 || keys > 0.999 && is_even() {
            return (degree, keys);
        }
        let Some(key) = variable_of(key) else { return (degree, keys) };
        let mut all = [Correction::NONE; ENDS_MAX];
        match self.corrections(done, key, index, direction, &mut all) {
            Origin::Unknown if done == 0 => (degree, keys),
            Origin::Unknown => (degree * side.skew(), keys),
            Origin::Known(count) => {
                let degree_max = side.statistics.degree_max as f64;
                let (keys, fan_out) =
                    Correction::apply(&mut all[..count], keys, (degree / keys).max(1.0), degree_max);
                (keys * fan_out, keys)
            }
        }
    }

    /// Average number of neighbours of the key of an atom, without the exact bias towards popular keys.
    /// `done`: the atoms that are joined.
    pub(crate) fn leg_degree(
        &self,
        table: ClassDistributions,
        done: u64,
        index: usize,
        direction: Direction,
    ) -> f64 {
        let atom = &self.atoms[index];
        let Some(side) = atom.side(direction) else { return 0.0 };
        let key = atom.ends(direction).0;
        if let Operand::Constant(_) = key {
            return atom.degrees[direction as usize].unwrap_or_else(|| side.average_degree());
        }
        if let Some(average) = atom.listed[direction as usize] {
            return average;
        }
        let Some(weights) = self.distribution(table, key) else {
            return side.average_degree() * side.skew();
        };
        let (mut degree, mut keys) = (0.0, 0.0);
        for one in side.class_degrees() {
            let weight = weights.get(usize::from(one.class.0)).copied().unwrap_or(0.0);
            degree += weight * one.degree;
            keys += weight * one.keys;
        }
        let mut all = [Correction::NONE; ENDS_MAX];
        if keys > 0.0
            && let Some(key) = variable_of(key)
            && let Origin::Known(count) = self.corrections(done, key, index, direction, &mut all)
        {
            let (reached, _) = Correction::apply(&mut all[..count], keys, 1.0, 1.0);
            // Legs of nearly the same length keep their order.
            if !(LEG_CORRECTION_MIN..=1.0 / LEG_CORRECTION_MIN).contains(&(reached / keys)) {
                degree *= reached / keys;
            }
        }
        degree * if done == 0 { 1.0 } else { side.skew() }
    }

    /// Whether the key, which has no types, so that classes tell nothing about it, has been bound by the same
    /// end of the same predicate: the types of a vertex are those of many others.
    fn is_bound_by_same_end(&self, done: u64, key: Operand, index: usize, direction: Direction) -> bool {
        let Some(side) = self.atoms[index].side(direction) else { return false };
        let same = |other: usize| {
            let atom = &self.atoms[other];
            std::ptr::eq(self.segments_of(other), self.segments_of(index)) && atom.ends(direction).0 == key
        };
        variable_of(key).is_some()
            && side.statistics.untyped_keys == side.statistics.keys
            && (0..self.atoms.len()).any(|other| other != index && done >> other & 1 == 1 && same(other))
    }

    /// The corrections of an estimate about the entries of an atom for a value of `key`, by the ends that
    /// have bound it.
    fn corrections(
        &self,
        done: u64,
        key: Variable,
        index: usize,
        direction: Direction,
        out: &mut [Correction; ENDS_MAX],
    ) -> Origin {
        if self.by_classes {
            return Origin::Unknown;
        }
        let mut count = 0;
        let mut is_known = false;
        let mut rest = done & !(1 << index);
        while rest != 0 && count < ENDS_MAX {
            let other = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            let atom = &self.atoms[other];
            if !atom.variables.contains(key) || atom.implied {
                continue;
            }
            if atom.types.is_some() {
                is_known = true;
                continue;
            }
            for from in Direction::BOTH {
                if variable_of(atom.ends(from).0) != Some(key) || count == ENDS_MAX {
                    continue;
                }
                is_known = true;
                if let Some(one) = self.correction_of_pair((other, from), (index, direction)) {
                    out[count] = one;
                    count += 1;
                }
            }
        }
        let earlier = self.ends.iter().position(|(of, _)| *of == key);
        if let Some(at) = earlier.filter(|_| count < ENDS_MAX) {
            is_known = true;
            let to = (index, direction);
            let number = 2 * self.atoms.len() + at;
            if let Some(one) = self.cached(number, to, || self.correction_by_ends(at, to)) {
                out[count] = one;
                count += 1;
            }
        }
        if is_known { Origin::Known(count) } else { Origin::Unknown }
    }

    /// The correction by the ends that have bound a variable before the join.
    fn correction_by_ends(&self, at: usize, to: (usize, Direction)) -> Option<Correction> {
        let side = self.atoms[to.0].side(to.1)?;
        let (_, ends) = &self.ends[at];
        let mut all = Vec::with_capacity(ends.len());
        for (sides, from, share) in ends {
            let same = std::ptr::eq(Rc::as_ptr(sides), self.segments_of(to.0)) && *from == to.1;
            all.push((correction(sides.side(*from)?, false, side, same)?, *share));
        }
        Some(Correction::mean(all.into_iter()))
    }

    /// A correction by the end with this number, computed once.
    fn cached(
        &self,
        from: usize,
        to: (usize, Direction),
        compute: impl FnOnce() -> Option<Correction>,
    ) -> Option<Correction> {
        let width = 2 * self.atoms.len();
        let at = from * width + 2 * to.0 + to.1 as usize;
        if let Some(known) = self.corrections.borrow().get(at).copied().flatten() {
            return known;
        }
        let found = compute();
        let mut cache = self.corrections.borrow_mut();
        if cache.is_empty() {
            cache.resize((width + self.ends.len()) * width, None);
        }
        cache[at] = Some(found);
        found
    }

    fn segments_of(&self, index: usize) -> *const PredicateSegments<'a> {
        self.atoms[index].sides.as_ref().map_or(std::ptr::null(), Rc::as_ptr)
    }

    /// The correction for a value that one atom has bound, looked up in another one.
    fn correction_of_pair(&self, from: (usize, Direction), to: (usize, Direction)) -> Option<Correction> {
        self.cached(2 * from.0 + from.1 as usize, to, || {
            let (atom, other) = (&self.atoms[from.0], &self.atoms[to.0]);
            // A neighbour that nothing else reads is counted, not enumerated.
            let neighbour = variable_of(atom.ends(from.1).1);
            let uniform = neighbour.is_some_and(|variable| {
                self.uses.iter().any(|(of, uses)| *of == variable && *uses == 1 << from.0)
            });
            let same = std::ptr::eq(self.segments_of(from.0), self.segments_of(to.0)) && from.1 == to.1;
            correction(atom.side(from.1)?, uniform, other.side(to.1)?, same)
        })
    }

    /// Number of keys of a side in the classes that a variable may have.
    pub(crate) fn keys(
        &self,
        table: ClassDistributions,
        variable: Variable,
        side: &DirectedSegment<'_>,
    ) -> f64 {
        let Some(weights) = self.distribution(table, Operand::Variable(variable)) else {
            return side.statistics.keys as f64;
        };
        let may_be = |class: ClassId| weights.get(usize::from(class.0)).is_some_and(|weight| *weight > 0.0);
        let of_classes = side.statistics.keys_of_class.iter().filter(|(class, _)| may_be(*class));
        of_classes.map(|(_, count)| *count as f64).sum()
    }

    /// Selectivity of the check of an atom whose two ends are bound. `done`: the atoms that are joined.
    pub(crate) fn selectivity(&self, table: ClassDistributions, done: u64, index: usize) -> f64 {
        let atom = &self.atoms[index];
        if let (Some(types), Some(weights)) = (&atom.types, self.distribution(table, atom.subject)) {
            let of_type = (0..).map(ClassId).zip(weights).filter(|(class, _)| types.contains(*class));
            return of_types(of_type.map(|(_, weight)| weight).sum());
        }
        let pairs = EntryClassPairs::new(atom, |end| self.distribution(table, end));
        let Some(pairs) = pairs else { return 0.0 };
        let mut passed = pairs.passed();
        for direction in Direction::BOTH {
            let Some(key) = variable_of(atom.ends(direction).0) else { continue };
            let mut all = [Correction::NONE; ENDS_MAX];
            if let Origin::Known(count) = self.corrections(done, key, index, direction, &mut all) {
                passed *= Correction::factor(&mut all[..count]);
            }
        }
        of_entries(passed)
    }

    /// Rows and table after an intersection: the first leg expanded, the others checked.
    pub(crate) fn intersection(
        &mut self,
        table: ClassDistributions,
        mut done: u64,
        legs: impl Iterator<Item = (usize, Direction)>,
    ) -> (f64, ClassDistributions) {
        let (mut rows, mut now) = (1.0, table);
        for (number, (index, direction)) in legs.enumerate() {
            if number == 0 {
                rows = self.degree(table, done, index, direction).0;
                now = self.expanded(now, index, direction);
            } else {
                rows *= self.selectivity(now, done, index);
                now = self.checked(now, index);
            }
            done |= 1 << index;
        }
        (rows, now)
    }

    /// Lengths of the arrays, for [`Estimator::forget`].
    pub(crate) fn checkpoint(&self) -> (usize, usize) {
        (self.weights.len(), self.known.len())
    }

    /// Drops all tables created since `mark`.
    pub(crate) fn forget(&mut self, mark: (usize, usize)) {
        self.weights.truncate(mark.0);
        self.known.truncate(mark.1);
    }

    /// The table after a scan of all entries of an atom.
    pub(crate) fn scanned(
        &mut self,
        table: ClassDistributions,
        index: usize,
        direction: Direction,
    ) -> ClassDistributions {
        let atom = &self.atoms[index];
        let (key, neighbour) = atom.ends(direction);
        let class_pairs = atom.side(direction).map_or(&[][..], |side| &side.statistics.class_pairs);
        self.after(table, (key, neighbour), |_, keys, neighbours| {
            add_class_pairs(class_pairs, |_| true, keys, neighbours);
        })
    }

    /// The table after an expansion.
    pub(crate) fn expanded(
        &mut self,
        table: ClassDistributions,
        index: usize,
        direction: Direction,
    ) -> ClassDistributions {
        let atom = &self.atoms[index];
        let Some(side) = atom.side(direction) else { return table };
        let (key, neighbour) = atom.ends(direction);
        let class_pairs = &side.statistics.class_pairs;
        let known = variable_of(key).and_then(|key| self.position(table, key));
        let width = self.width;
        self.after(table, (key, neighbour), |weights, keys, neighbours| match (key, known) {
            (Operand::Variable(_), Some(at)) => {
                let known = &weights[at..at + width];
                for class_degree in side.class_degrees() {
                    let class = usize::from(class_degree.class.0);
                    let factor = known.get(class).copied().unwrap_or(0.0) * class_degree.share;
                    if factor > 0.0 {
                        let mut all = 0.0;
                        for class_pair in side.class_pairs_of(class_degree) {
                            let entries = factor * class_pair.entries as f64;
                            all += entries;
                            add(neighbours, class_pair.target, entries);
                        }
                        add(keys, class_degree.class, all);
                    }
                }
            }
            (Operand::Variable(_), None) => add_class_pairs(class_pairs, |_| true, keys, neighbours),
            (Operand::Constant(id), _) => match (&atom.types, direction) {
                // The classes of a type, weighted by their share of its index.
                (Some(types), Direction::In) => {
                    let of_keys = atom.side(Direction::Out).map(|side| &side.statistics.keys_of_class);
                    for (class, count) in of_keys.into_iter().flatten() {
                        if types.contains(*class) {
                            add(neighbours, *class, *count as f64);
                        }
                    }
                }
                _ => {
                    let classes = &atom.constant_classes[direction as usize];
                    let may_be = |class| could_be(id, class) && classes.contains(class);
                    add_class_pairs(class_pairs, may_be, keys, neighbours);
                }
            },
        })
    }

    /// The table after a check.
    pub(crate) fn checked(&mut self, table: ClassDistributions, index: usize) -> ClassDistributions {
        let atom = &self.atoms[index];
        if let (Some(types), Some(subject)) = (&atom.types, variable_of(atom.subject))
            && let Some(at) = self.position(table, subject)
        {
            let width = self.width;
            return self.after(table, (atom.subject, atom.object), |weights, subjects, _| {
                for ((class, weight), out) in (0..).map(ClassId).zip(&weights[at..at + width]).zip(subjects) {
                    *out = if types.contains(class) { *weight } else { 0.0 };
                }
            });
        }
        let Some(direction) = direction_of(atom) else { return table };
        let (first, second) = (self.weights.len(), self.weights.len() + self.width);
        // A separate buffer, since the traversal of the pairs reads the array that receives the result.
        self.weights.resize(second + self.width, 0.0);
        let (old, new) = self.weights.split_at_mut(first);
        let (keys, neighbours) = new.split_at_mut(self.width);
        let known = &self.known[table.first..table.first + table.count];
        if let Some(pairs) = EntryClassPairs::new(atom, |end| distribution(known, old, self.width, end)) {
            pairs.visit(&mut |source, target, weight| {
                add(keys, source, weight);
                add(neighbours, target, weight);
            });
        }
        self.adopt(table, atom.ends(direction), first)
    }

    /// A table in which `ends` have the distributions that `fill` accumulates from zero. `fill` also gets all
    /// existing distributions.
    fn after(
        &mut self,
        table: ClassDistributions,
        ends: (Operand, Operand),
        fill: impl FnOnce(&[f64], &mut [f64], &mut [f64]),
    ) -> ClassDistributions {
        let first = self.weights.len();
        self.weights.resize(first + 2 * self.width, 0.0);
        let (old, new) = self.weights.split_at_mut(first);
        let (keys, neighbours) = new.split_at_mut(self.width);
        fill(old, keys, neighbours);
        self.adopt(table, ends, first)
    }

    /// Normalises the two distributions at `first` to 1 and assigns them to `ends` in a new table. An end
    /// without weights keeps its distribution.
    fn adopt(
        &mut self,
        table: ClassDistributions,
        ends: (Operand, Operand),
        first: usize,
    ) -> ClassDistributions {
        let start = self.known.len();
        self.known.extend_from_within(table.first..table.first + table.count);
        for (end, at) in [(ends.0, first), (ends.1, first + self.width)] {
            let Some(variable) = variable_of(end) else { continue };
            let weights = &mut self.weights[at..at + self.width];
            let sum: f64 = weights.iter().sum();
            if sum <= 0.0 {
                continue;
            }
            let scale = 1.0 / sum;
            weights.iter_mut().for_each(|weight| *weight *= scale);
            match self.known[start..].iter_mut().find(|(of, _)| *of == variable) {
                Some((_, position)) => *position = at,
                None => self.known.push((variable, at)),
            }
        }
        ClassDistributions { first: start, count: self.known.len() - start }
    }
}

/// Maximum length of the array of a search that its distributions keep; a longer one has mostly those of
/// other orders.
const SHARED_WEIGHTS_MAX: usize = 1 << 12;

/// Maximum ratio of the size-biased degree to the average for which degrees count as even.
const EVEN_DEGREES_MAX: f64 = 1.5;

/// Corrections of the length of a leg between this and its inverse are ignored.
const LEG_CORRECTION_MIN: f64 = 0.8;

/// What is known about the way in which a variable was bound.
enum Origin {
    /// Nothing.
    Unknown,
    /// Ends of predicates or types, with this number of corrections.
    Known(usize),
}

/// The pairs of classes that the entries of an atom may connect, with the distributions of both ends.
struct EntryClassPairs<'e> {
    sides: &'e PredicateSegments<'e>,
    direction: Direction,
    /// Classes that constant ends may have.
    of_keys: ClassSet,
    of_neighbours: ClassSet,
    keys: Option<&'e [f64]>,
    neighbours: Option<&'e [f64]>,
    /// Fraction of the entries that belong to a constant key; for a variable of unknown classes, to an
    /// average key.
    key_share: f64,
    neighbour_share: f64,
}

impl<'e> EntryClassPairs<'e> {
    fn new<'a: 'e>(atom: &'e Atom<'a>, of: impl Fn(Operand) -> Option<&'e [f64]>) -> Option<Self> {
        let direction = direction_of(atom)?;
        let sides: &'e PredicateSegments<'a> = atom.sides.as_deref()?;
        let statistics = sides.side(direction)?.statistics;
        let classes_of = |end: Direction| atom.constant_classes[end as usize];
        let (of_keys, of_neighbours) = (classes_of(direction), classes_of(direction.reverse()));
        let may_be =
            |pair: &&ClassPairCount| of_keys.contains(pair.source) && of_neighbours.contains(pair.target);
        let share = |direction: Direction, count: u64| match atom.degrees[direction as usize] {
            Some(degree) => {
                let entries: u64 =
                    statistics.class_pairs.iter().filter(may_be).map(|pair| pair.entries).sum();
                degree / entries.max(1) as f64
            }
            None => 1.0 / count.max(1) as f64,
        };
        let (key, neighbour) = atom.ends(direction);
        Some(Self {
            sides,
            direction,
            of_keys,
            of_neighbours,
            keys: of(key),
            neighbours: of(neighbour),
            key_share: share(direction, statistics.keys),
            neighbour_share: share(direction.reverse(), statistics.neighbours),
        })
    }

    /// The selectivity: fraction of rows that pass.
    fn passed(&self) -> f64 {
        let entries = self.sides.side(self.direction).map_or(0, |side| side.statistics.entries) as f64;
        let mut passed = 0.0;
        match (self.keys, self.neighbours) {
            (None, None) => passed = self.key_share * self.neighbour_share * entries,
            (Some(_), None) if self.of_neighbours == ClassSet::ALL => {
                self.for_each_class_degree(|class_degree, weight, _| {
                    passed += weight * class_degree.degree * self.neighbour_share
                });
            }
            _ => self.visit(&mut |_, _, weight| passed += weight),
        }
        passed
    }

    /// Calls `visit` with each pair of classes and its share of the passing rows.
    fn visit(&self, visit: &mut impl FnMut(ClassId, ClassId, f64)) {
        let Some(side) = self.sides.side(self.direction) else { return };
        let shares = self.sides.neighbour_shares(self.direction);
        let others = self.sides.share_of_others(self.direction);
        let of_target = |class_pair: &ClassPairCount| match self.neighbours {
            None => self.neighbour_share,
            Some(weights) => {
                let class = usize::from(class_pair.target.0);
                let weight = weights.get(class).copied().unwrap_or(0.0);
                weight * shares.get(class).copied().unwrap_or(others)
            }
        };
        self.for_each_class_degree(|class_degree, _, source| {
            for class_pair in side.class_pairs_of(class_degree) {
                let weight = source * of_target(class_pair) * class_pair.entries as f64;
                let may_be = self.of_keys.contains(class_degree.class)
                    && self.of_neighbours.contains(class_pair.target);
                if weight > 0.0 && may_be {
                    visit(class_degree.class, class_pair.target, weight);
                }
            }
        });
    }

    /// Calls `visit` with the degrees of each class that the key may have, its weight, and the probability
    /// that the key is one given vertex of the class.
    fn for_each_class_degree(&self, mut visit: impl FnMut(&ClassDegree, f64, f64)) {
        let Some(side) = self.sides.side(self.direction) else { return };
        for class_degree in side.class_degrees() {
            match self.keys {
                None => visit(class_degree, 1.0, self.key_share),
                Some(weights) => {
                    let weight = weights.get(usize::from(class_degree.class.0)).copied().unwrap_or(0.0);
                    if weight > 0.0 {
                        visit(class_degree, weight, weight * class_degree.share);
                    }
                }
            }
        }
    }
}

fn distribution<'e>(
    known: &[(Variable, usize)],
    weights: &'e [f64],
    width: usize,
    end: Operand,
) -> Option<&'e [f64]> {
    let variable = variable_of(end)?;
    let (_, at) = known.iter().find(|(of, _)| *of == variable)?;
    weights.get(*at..*at + width)
}

/// The direction in which the class pairs of an atom are traversed.
fn direction_of(atom: &Atom<'_>) -> Option<Direction> {
    Direction::BOTH.into_iter().find(|direction| atom.side(*direction).is_some())
}

fn add(weights: &mut [f64], class: ClassId, weight: f64) {
    if let Some(slot) = weights.get_mut(usize::from(class.0)) {
        *slot += weight;
    }
}

fn add_class_pairs(
    class_pairs: &[ClassPairCount],
    passes: impl Fn(ClassId) -> bool,
    keys: &mut [f64],
    neighbours: &mut [f64],
) {
    for class_pair in class_pairs.iter().filter(|class_pair| passes(class_pair.source)) {
        add(keys, class_pair.source, class_pair.entries as f64);
        add(neighbours, class_pair.target, class_pair.entries as f64);
    }
}

/// Whether the tag of a key permits this class.
fn could_be(id: Id, class: ClassId) -> bool {
    (class == ClassId::LITERAL) == id.is_stored_literal()
}

/// Selectivity of a type check, bounded below: rare types have no class of their own.
fn of_types(passed: f64) -> f64 {
    passed.clamp(1e-4, 1.0)
}

fn of_entries(passed: f64) -> f64 {
    passed.clamp(1e-6, 1.0)
}
