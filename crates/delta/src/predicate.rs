//! The changes of one predicate: its two overlays, one for each direction.

use crate::estimates;
use crate::overlay::{CellTransition, Overlay};
use crate::tree::TreeItem;
use std::sync::Arc;
use vervet_model::{Direction, Id, Result, Statement, Tag};
use vervet_snapshot::{ClassId, Segment};
use vervet_store::Base;

/// Lower bound of all edges, above [`Id::UNBOUND`].
pub(crate) const FIRST_EDGE: Id = Id::new(Tag::Edge, 0);

/// A predicate with changes. A clone costs two atomic increments.
#[derive(Clone, Debug)]
pub(crate) struct PredicateDelta {
    pub(crate) id: Id,
    sides: [Arc<Overlay>; 2],
    /// Number of cells at which the statistics are recomputed.
    refresh_at: u64,
}

impl TreeItem for PredicateDelta {
    type Key = Id;

    /// Copying one item costs two atomic increments.
    const LEAF_MAX: usize = 4;

    fn key(&self) -> Id {
        self.id
    }
}

impl PredicateDelta {
    /// A predicate without changes.
    pub(crate) fn new(id: Id, base: &dyn Base) -> Result<Self> {
        let entries = entries_of(base, id);
        let side = |direction| -> Result<Arc<Overlay>> {
            Ok(Arc::new(Overlay::new(base.segment_arc(id, direction)?, entries)))
        };
        Ok(Self { id, sides: [side(Direction::Out)?, side(Direction::In)?], refresh_at: 1 })
    }

    pub(crate) fn side(&self, direction: Direction) -> &Arc<Overlay> {
        &self.sides[direction as usize]
    }

    /// Number of statements.
    pub(crate) fn entries(&self) -> u64 {
        self.sides[0].len()
    }

    /// Number of statements that differ from the store.
    pub(crate) fn cells(&self) -> u64 {
        self.sides[0].cells()
    }

    /// Applies a transition to both directions. `string`: the object of an added statement is certainly an
    /// `xsd:string`.
    pub(crate) fn apply(&mut self, statement: &Statement, change: CellTransition, string: bool) {
        for (side, direction) in self.sides.iter_mut().zip(Direction::BOTH) {
            let (key, entry) = entry_of(statement, direction);
            Arc::make_mut(side).apply(key, entry, change, string && direction == Direction::Out);
        }
        let [out, reverse] = &self.sides;
        debug_assert_eq!(
            (out.len(), out.cells()),
            (reverse.len(), reverse.cells()),
            "both have the same statements"
        );
        let comes = matches!(change, CellTransition::Add | CellTransition::Restore);
        if comes && statement.edge.is_bound() && self.sides[0].may_gain_parallel() {
            // A statement without an edge is no twin: it is about to be removed.
            let (key, entry) = entry_of(statement, Direction::Out);
            if self.sides[0].has_twin(key, entry, FIRST_EDGE) {
                self.set_parallel();
            }
        }
    }

    /// Sets the flag that there may be parallel edges, in both directions.
    pub(crate) fn set_parallel(&mut self) {
        self.sides_mut().into_iter().for_each(Overlay::set_parallel);
    }

    /// Both overlays, for equal changes.
    pub(crate) fn sides_mut(&mut self) -> [&mut Overlay; 2] {
        self.sides.each_mut().map(Arc::make_mut)
    }

    /// Recomputes the statistics if the number of cells has doubled since the last time.
    pub(crate) fn refresh(&mut self, classes: impl FnOnce() -> Vec<(ClassId, u64)>) {
        if self.cells() < self.refresh_at {
            return;
        }
        self.refresh_at = 2 * self.cells();
        let is_new = self.sides.iter().all(|side| side.lower.is_none());
        let classes = if is_new { classes() } else { Vec::new() };
        estimates::refresh(&mut self.sides, &classes);
    }
}

/// Key and entry of a statement in a direction.
pub(crate) fn entry_of(statement: &Statement, direction: Direction) -> (Id, [Id; 3]) {
    let Statement { subject, object, graph, edge, .. } = *statement;
    match direction {
        Direction::Out => (subject, [object, graph, edge]),
        Direction::In => (object, [subject, graph, edge]),
    }
}

/// Number of statements of a predicate in a store.
fn entries_of(base: &dyn Base, predicate: Id) -> u64 {
    let predicates = base.predicates();
    let at = predicates.binary_search_by_key(&predicate, |(id, _)| *id);
    at.ok().and_then(|at| predicates.get(at)).map_or(0, |(_, entries)| *entries)
}

/// The segment of a predicate: its overlay if it has changes, else that of the store.
pub(crate) fn segment<'a>(
    changed: Option<&'a PredicateDelta>,
    base: &'a dyn Base,
    id: Id,
    direction: Direction,
) -> Result<Option<&'a dyn Segment>> {
    let Some(changed) = changed else { return base.segment(id, direction) };
    let side = changed.side(direction);
    Ok((!side.is_empty()).then(|| -> &dyn Segment { &**side }))
}
