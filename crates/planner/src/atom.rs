//! Atoms of a join: statement patterns with resolved constants and the statistics of their segments.

use crate::classes::ClassSet;
use crate::seek::Seek;
use std::cell::OnceCell;
use std::rc::Rc;
use vervet_algebra::{Variable, VariableSet};
use vervet_kernel::plan::{Access, Match, Operand};
use vervet_model::{Direction, Id, Result};
use vervet_snapshot::{ClassId, ClassPairCount, GraphFilter, Segment, SegmentStatistics, Snapshot};

/// One end of a statement.
pub(crate) type End = Operand;

/// The variable of an operand.
pub(crate) fn variable_of(operand: Operand) -> Option<Variable> {
    match operand {
        Operand::Variable(variable) => Some(variable),
        Operand::Constant(_) => None,
    }
}

/// One direction of the segment of an atom. Derived statistics are computed on first use, since most patterns
/// of most plans need a part of them.
pub(crate) struct DirectedSegment<'a> {
    pub(crate) segment: &'a dyn Segment,
    /// Exact counts of the segment.
    pub(crate) statistics: &'a SegmentStatistics,
    snapshot: &'a dyn Snapshot,
    class_degrees: OnceCell<Box<[ClassDegree]>>,
}

/// Both directions of a predicate, by [`Direction`].
pub(crate) struct PredicateSegments<'a> {
    pub(crate) by_direction: [Option<DirectedSegment<'a>>; 2],
    shares: [OnceCell<Box<[f64]>>; 2],
}

/// Expected entries of a random vertex of one class.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClassDegree {
    pub(crate) class: ClassId,
    /// 1 / number of vertices of the class, or of keys if the class has no size.
    pub(crate) share: f64,
    /// Neighbours of one vertex on average.
    pub(crate) degree: f64,
    /// Fraction of the vertices that have neighbours.
    pub(crate) keys: f64,
    /// Class pairs of the class: the range `first..end` of [`SegmentStatistics::class_pairs`].
    first: u32,
    end: u32,
}

impl<'a> PredicateSegments<'a> {
    pub(crate) fn new(predicate: Id, snapshot: &'a dyn Snapshot) -> Result<Self> {
        let side = |direction| -> Result<Option<DirectedSegment<'a>>> {
            Ok(snapshot.segment(predicate, direction)?.map(|segment| DirectedSegment {
                segment,
                statistics: segment.statistics(),
                snapshot,
                class_degrees: OnceCell::new(),
            }))
        };
        let by_direction = [side(Direction::Out)?, side(Direction::In)?];
        Ok(Self { by_direction, shares: [OnceCell::new(), OnceCell::new()] })
    }

    pub(crate) fn side(&self, direction: Direction) -> Option<&DirectedSegment<'a>> {
        self.by_direction[direction as usize].as_ref()
    }

    /// 1 / the number of vertices of a class of neighbours, by class number. Classes without keys in the
    /// reverse direction get [`Sides::share_of_others`].
    pub(crate) fn neighbour_shares(&self, direction: Direction) -> &[f64] {
        self.shares[direction as usize].get_or_init(|| {
            let others = self.share_of_others(direction);
            let class_degrees =
                self.side(direction.reverse()).map_or(&[][..], DirectedSegment::class_degrees);
            let length = class_degrees.last().map_or(0, |class_degree| usize::from(class_degree.class.0) + 1);
            let mut shares = vec![others; length];
            class_degrees
                .iter()
                .for_each(|class_degree| shares[usize::from(class_degree.class.0)] = class_degree.share);
            shares.into()
        })
    }

    /// 1 / the number of distinct neighbours.
    pub(crate) fn share_of_others(&self, direction: Direction) -> f64 {
        1.0 / self.side(direction).map_or(1, |side| side.statistics.neighbours).max(1) as f64
    }
}

impl DirectedSegment<'_> {
    /// The degrees of each class of keys, ascending by class.
    pub(crate) fn class_degrees(&self) -> &[ClassDegree] {
        self.class_degrees.get_or_init(|| {
            let class_pairs = &self.statistics.class_pairs;
            let mut at = 0;
            let class_degree = |&(class, keys): &(ClassId, u64)| {
                while class_pairs.get(at).is_some_and(|class_pair| class_pair.source < class) {
                    at += 1;
                }
                let first = at;
                let mut entries = 0;
                while let Some(class_pair) =
                    class_pairs.get(at).filter(|class_pair| class_pair.source == class)
                {
                    entries += class_pair.entries;
                    at += 1;
                }
                // Literals, edges and irregular data have no class size; the number of keys replaces it.
                let share = 1.0 / self.snapshot.class_size(class).max(keys).max(1) as f64;
                let position = |at| u32::try_from(at).unwrap_or(u32::MAX);
                ClassDegree {
                    class,
                    share,
                    degree: entries as f64 * share,
                    keys: keys as f64 * share,
                    first: position(first),
                    end: position(at),
                }
            };
            self.statistics.keys_of_class.iter().map(class_degree).collect()
        })
    }

    /// The class pairs that start at the class of `class_degree`.
    pub(crate) fn class_pairs_of(&self, class_degree: &ClassDegree) -> &[ClassPairCount] {
        self.statistics
            .class_pairs
            .get(class_degree.first as usize..class_degree.end as usize)
            .unwrap_or_default()
    }

    /// Average number of neighbours of a key.
    pub(crate) fn average_degree(&self) -> f64 {
        self.statistics.entries as f64 / self.statistics.keys.max(1) as f64
    }

    /// Expected number of neighbours of the key of a random entry.
    pub(crate) fn size_biased_degree(&self) -> f64 {
        match self.statistics.degree_squares {
            0 => self.average_degree() * self.skew(),
            squares => squares as f64 / self.statistics.entries.max(1) as f64,
        }
    }

    /// Degree bias: the factor by which the expected degree of the endpoint of a random entry exceeds that of
    /// a random key, since high-degree keys are endpoints of many entries. Only the average and the largest
    /// degree are known, so this is a heuristic: a third of the square root of their ratio. It is 1 up to a
    /// ratio of 9 (all of LUBM), and 10 for a power-law graph where sums over all entries give 15.
    pub(crate) fn skew(&self) -> f64 {
        let ratio = self.statistics.degree_max as f64 / self.average_degree().max(1.0);
        if ratio <= 9.0 { 1.0 } else { ratio.sqrt() / 3.0 }
    }
}

/// A pattern of a join.
pub(crate) struct Atom<'a> {
    /// The subject; atoms in general form have it in `general`.
    pub(crate) subject: End,
    /// The object; see `subject`.
    pub(crate) object: End,
    /// Location of its entries; [`Atom::access`] sets the direction.
    pub(crate) predicate: Id,
    pub(crate) graph: GraphFilter,
    pub(crate) parallel: bool,
    /// Its segments, if its predicate is constant.
    pub(crate) sides: Option<Rc<PredicateSegments<'a>>>,
    /// Exact degree of the subject or object if it is constant, by [`Direction`].
    pub(crate) degrees: [Option<f64>; 2],
    /// Classes that the subject or object may have if it is constant, by [`Direction`].
    pub(crate) constant_classes: [ClassSet; 2],
    /// Average degree of the subject or object over the vertices that a condition leaves, by [`Direction`].
    pub(crate) listed: [Option<f64>; 2],
    /// Whether rows may bind the subject or object, by [`Direction`], so that only some of them leave it
    /// unbound.
    pub(crate) in_doubt: [bool; 2],
    /// The general form and its estimated rows, if only [`vervet_kernel::plan::Step::Match`] can evaluate the
    /// pattern (exception: see `edge`).
    pub(crate) general: Option<(Match, f64)>,
    /// The edge variable, if an expansion can bind it when one end is bound and the edge is not.
    pub(crate) edge: Option<Variable>,
    /// `?x rdf:type C`: the classes all of whose vertices have the type.
    pub(crate) types: Option<ClassSet>,
    /// Whether the multiplicity of an existing entry is at most 1, as checks and intersections require.
    pub(crate) counts_once: bool,
    /// Sargable conditions on the object: the range or list of values that they leave.
    pub(crate) seek: Option<Seek>,
    /// Whether the other atoms imply this atom.
    pub(crate) implied: bool,
    /// All its variables.
    pub(crate) variables: VariableSet,
}

impl<'a> Atom<'a> {
    pub(crate) fn access(&self, direction: Direction) -> Access {
        Access { predicate: self.predicate, direction, graph: self.graph, parallel: self.parallel }
    }

    /// Key and neighbour in this direction.
    pub(crate) fn ends(&self, direction: Direction) -> (End, End) {
        match direction {
            Direction::Out => (self.subject, self.object),
            Direction::In => (self.object, self.subject),
        }
    }

    pub(crate) fn side(&self, direction: Direction) -> Option<&DirectedSegment<'a>> {
        self.sides.as_ref()?.side(direction)
    }

    /// The statistics of both directions.
    pub(crate) fn statistics(&self) -> impl Iterator<Item = &'a SegmentStatistics> + '_ {
        self.sides.iter().flat_map(|sides| sides.by_direction.iter().flatten()).map(|side| side.statistics)
    }

    /// The general form of this atom.
    pub(crate) fn to_match(&self) -> Match {
        match self.general {
            Some((general, _)) => general,
            None => Match {
                subject: self.subject,
                predicate: Operand::Constant(self.predicate),
                object: self.object,
                graph: vervet_kernel::plan::GraphOperand::Filter(self.graph),
                edge: None,
                parallel: self.parallel,
                predicates_once: false,
            },
        }
    }
}
