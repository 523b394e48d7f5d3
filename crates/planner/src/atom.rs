//! A pattern with its constants looked up and the statistics of its segments at hand.

use crate::classes::{ClassSet, Collector, Distribution};
use crate::seek::Seek;
use crate::set::VariableSet;
use std::rc::Rc;
use vervet_algebra::Variable;
use vervet_kernel::plan::{Access, Match, Operand};
use vervet_model::{Direction, Id, Result};
use vervet_snapshot::{ClassId, GraphFilter, Segment, SegmentStatistics, Snapshot};

/// One end of a statement.
pub(crate) type End = Operand;

/// The variable of an operand.
pub(crate) fn variable_of(operand: Operand) -> Option<Variable> {
    match operand {
        Operand::Variable(variable) => Some(variable),
        Operand::Constant(_) => None,
    }
}

/// One direction of the segment of an atom.
#[derive(Clone)]
pub(crate) struct Side<'a> {
    /// The segment itself.
    pub(crate) segment: &'a dyn Segment,
    /// Its exact counts.
    pub(crate) statistics: &'a SegmentStatistics,
    /// For each class of keys: neighbours of a vertex of that class on average, and the fraction of its
    /// vertices that are keys at all. Sorted by class.
    pub(crate) fans: Rc<[Fan]>,
    /// For each flow the probability that a random vertex of the one class and a random one of the other
    /// are joined by an entry.
    pub(crate) densities: Rc<[f64]>,
}

/// See [`Side::fans`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fan {
    pub(crate) class: ClassId,
    /// Vertices of the class, or keys where the class has no size.
    pub(crate) size: f64,
    /// Neighbours of one vertex on average.
    pub(crate) degree: f64,
    /// Fraction of the vertices that have neighbours.
    pub(crate) keys: f64,
}

impl<'a> Side<'a> {
    /// Both directions of a predicate, by [`Direction`].
    pub(crate) fn both(predicate: Id, snapshot: &'a dyn Snapshot) -> Result<[Option<Self>; 2]> {
        let side = |direction| -> Result<Option<Self>> {
            Ok(snapshot.segment(predicate, direction)?.map(|segment| Self::new(segment, snapshot)))
        };
        let mut sides = [side(Direction::Out)?, side(Direction::In)?];
        for at in 0..2 {
            let Some(side) = &sides[at] else { continue };
            let mut targets: Vec<f64> = Vec::new();
            for fan in sides[1 - at].iter().flat_map(|other| other.fans.iter()) {
                let at = usize::from(fan.class.0);
                targets.resize(targets.len().max(at + 1), 0.0);
                targets[at] = fan.size;
            }
            let neighbours = side.statistics.neighbours.max(1) as f64;
            let keys = side.statistics.keys.max(1) as f64;
            let mut source = None;
            let densities: Rc<[f64]> = side
                .statistics
                .flows
                .iter()
                .map(|flow| {
                    let (class, size) = match source {
                        Some((class, size)) if class == flow.source => (class, size),
                        _ => (flow.source, side.fan(flow.source).map_or(keys, |fan| fan.size)),
                    };
                    source = Some((class, size));
                    let target = targets.get(usize::from(flow.target.0)).copied().filter(|size| *size > 0.0);
                    flow.entries as f64 / (size * target.unwrap_or(neighbours))
                })
                .collect();
            if let Some(side) = &mut sides[at] {
                side.densities = densities;
            }
        }
        Ok(sides)
    }

    fn new(segment: &'a dyn Segment, snapshot: &dyn Snapshot) -> Self {
        let statistics = segment.statistics();
        let mut flows = statistics.flows.iter().peekable();
        let fans = statistics
            .keys_of_class
            .iter()
            .map(|&(class, keys)| {
                let mut entries = 0;
                while let Some(flow) = flows.next_if(|flow| flow.source <= class) {
                    if flow.source == class {
                        entries += flow.entries;
                    }
                }
                // Literals, edges and strange data have no class size; then keys are all that is known.
                let size = snapshot.class_size(class).max(keys).max(1) as f64;
                Fan { class, size, degree: entries as f64 / size, keys: keys as f64 / size }
            })
            .collect();
        Self { segment, statistics, fans, densities: Rc::default() }
    }

    /// The fan of a class.
    pub(crate) fn fan(&self, class: ClassId) -> Option<&Fan> {
        self.fans.binary_search_by_key(&class, |fan| fan.class).ok().map(|at| &self.fans[at])
    }

    /// Neighbours of a random key.
    pub(crate) fn average_degree(&self) -> f64 {
        self.statistics.entries as f64 / self.statistics.keys.max(1) as f64
    }

    /// How much larger the degree of a key is when it comes as the end of a random entry and not as a random
    /// key: many entries end at the keys with many entries. Only the average and the largest degree are
    /// known, so this is a guess: a third of the square root of their ratio. It is 1 up to a ratio of 9
    /// (all of LUBM), and 10 for a power-law graph where sums over all entries give 15.
    pub(crate) fn skew(&self) -> f64 {
        ((self.statistics.degree_max as f64 / self.average_degree().max(1.0)).sqrt() / 3.0).max(1.0)
    }

    /// The classes of the keys and of the neighbours of random entries whose key passes.
    pub(crate) fn entry_classes(&self, key_passes: impl Fn(ClassId) -> bool) -> (Distribution, Distribution) {
        let (mut keys, mut neighbours) = (Collector::new(), Collector::new());
        for flow in self.statistics.flows.iter().filter(|flow| key_passes(flow.source)) {
            keys.add(flow.source, flow.entries as f64);
            neighbours.add(flow.target, flow.entries as f64);
        }
        (keys.finish(), neighbours.finish())
    }
}

/// A pattern of a join.
pub(crate) struct Atom<'a> {
    /// Subject and object; for atoms in general form those are in `general`.
    pub(crate) subject: End,
    /// See `subject`.
    pub(crate) object: End,
    /// Where its entries are; the direction is filled in by [`Atom::access`].
    pub(crate) predicate: Id,
    pub(crate) graph: GraphFilter,
    pub(crate) parallel: bool,
    /// By [`Direction`].
    pub(crate) sides: [Option<Side<'a>>; 2],
    /// Exact degree of the subject or object if it is constant, by [`Direction`].
    pub(crate) degrees: [Option<f64>; 2],
    /// A pattern that only [`vervet_kernel::plan::Step::Match`] can do.
    pub(crate) general: Option<(Match, f64)>,
    /// `?x rdf:type C`: the classes whose vertices have the type for certain.
    pub(crate) types: Option<ClassSet>,
    /// Whether an existing entry counts once at most, so that checks and intersections are right.
    pub(crate) counts_once: bool,
    /// What conditions on the object leave of its values.
    pub(crate) seek: Option<Seek>,
    /// Whether the other atoms imply it.
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

    pub(crate) fn side(&self, direction: Direction) -> Option<&Side<'a>> {
        self.sides[direction as usize].as_ref()
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
            },
        }
    }
}
