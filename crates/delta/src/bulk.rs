//! Bulk insertion of statements into a version.
//!
//! # Shape
//! Statements are grouped by predicate and sorted. Statements without any earlier trace, nearly all, become
//! cells that are merged into the trees in one pass; the others are inserted one by one. All fallible steps
//! come first, so that a version is changed whole or not at all.
//! # Cost
//! For each statement: two places in sorts, one check in a batch, two cells copied.

use crate::Version;
use crate::cell::Cell;
use crate::overlay::CellTransition;
use crate::predicate::segment;
use crate::tree::TreeItem;
use crate::version::largest_classes;
use rustc_hash::FxHashMap;
use vervet_model::{Direction, Id, Result, Statement, drop_plain_twins};
use vervet_snapshot::EntryFilter;

/// Minimum size of a bulk; fewer statements are inserted one by one.
const BULK_MIN: usize = 32;
/// Number of statements checked in one call.
const BATCH: usize = 1024;

/// The planned changes of one predicate.
struct PredicateInsertions {
    predicate: Id,
    /// Cells by subject, sorted.
    fresh: Vec<Cell>,
    single: Vec<(Statement, CellTransition)>,
    /// Some of `fresh` are parallel to existing edges.
    has_twins: bool,
    /// Number of entries in `single` that are additions, without the statements that they replace.
    came: u64,
}

impl Version {
    /// Adds statements, in any order, also statements about edges of the same batch; returns how many did not
    /// exist. Equivalent to as many calls of [`Version::insert`], but faster.
    ///
    /// # Errors
    /// As [`Version::insert`].
    pub fn insert_all(&mut self, statements: &[Statement]) -> Result<u64> {
        self.check_statements(statements)?;
        let mut groups: FxHashMap<Id, Vec<Cell>> = FxHashMap::default();
        for statement in statements {
            let Statement { subject, predicate, object, graph, edge } = *statement;
            let cell = Cell::new(subject, [object, graph, edge], true);
            groups.entry(predicate).or_default().push(cell);
        }
        let mut all = Vec::with_capacity(groups.len());
        for (predicate, cells) in groups {
            all.push(self.work(predicate, cells)?);
        }
        for work in &all {
            self.prepare(work.predicate)?;
        }
        let mut count = 0;
        for work in all {
            count += self.perform(work);
        }
        Ok(count)
    }

    /// Plans the changes that add these statements.
    fn work(&self, predicate: Id, mut cells: Vec<Cell>) -> Result<PredicateInsertions> {
        cells.sort_unstable_by_key(TreeItem::key);
        cells.dedup();
        let statement = |cell: &Cell| (cell.key, cell.neighbour, cell.graph);
        drop_plain_twins(
            &mut cells,
            |cell| !cell.entry()[2].is_bound(),
            |cell, next| statement(cell) == statement(next),
        );
        let mut work = PredicateInsertions {
            predicate,
            fresh: Vec::with_capacity(cells.len()),
            single: Vec::new(),
            has_twins: false,
            came: 0,
        };
        let changed = self.predicates.get(predicate);
        let Some(segment) = segment(changed, &*self.base, predicate, Direction::Out)?.or_else(|| {
            // A predicate without remaining entries still has cells for the removed ones.
            changed.map(|changed| -> &dyn vervet_snapshot::Segment { &**changed.side(Direction::Out) })
        }) else {
            work.fresh = cells;
            return Ok(work);
        };
        let (mut keys, mut neighbours, mut hits) = (Vec::new(), Vec::new(), Vec::new());
        for batch in cells.chunks(BATCH) {
            keys.clear();
            neighbours.clear();
            hits.clear();
            keys.extend(batch.iter().map(|cell| cell.key));
            neighbours.extend(batch.iter().map(|cell| cell.neighbour));
            segment.check(&keys, &neighbours, EntryFilter::ALL, &mut hits)?;
            let mut hits = hits.iter().copied().peekable();
            for (row, cell) in (0_u32..).zip(batch) {
                let hit = hits.next_if_eq(&row).is_some();
                // For a pair that does not exist, only a touched key can have cells.
                let touched = changed.is_some_and(|changed| changed.side(Direction::Out).touches(cell.key));
                if hit || touched {
                    self.work_single(cell, &mut work)?;
                } else {
                    work.fresh.push(*cell);
                }
            }
        }
        Ok(work)
    }

    /// Plans the insertion of one statement, like [`Version::insert`].
    fn work_single(&self, cell: &Cell, work: &mut PredicateInsertions) -> Result<()> {
        let [object, graph, edge] = cell.entry();
        let statement = Statement { subject: cell.key, predicate: work.predicate, object, graph, edge };
        if !edge.is_bound() {
            if self.has_any(&statement)? {
                return Ok(());
            }
        } else {
            let twin = Statement { edge: Id::UNBOUND, ..statement };
            // Several edges may replace the same statement without an edge.
            let known = work.single.iter().rev().take_while(|(other, _)| other.object == object);
            if !known.clone().any(|(other, _)| *other == twin)
                && let Some(change) = self.change(&twin, false)?
            {
                work.single.push((twin, change));
            }
        }
        match self.change(&statement, true)? {
            None => {}
            Some(CellTransition::Add) => {
                work.has_twins = work.has_twins || edge.is_bound() && self.has_edge(&statement)?;
                work.fresh.push(*cell);
            }
            Some(change) => {
                work.single.push((statement, change));
                work.came += 1;
            }
        }
        Ok(())
    }

    /// Performs the planned changes; returns the number of added statements.
    fn perform(&mut self, work: PredicateInsertions) -> u64 {
        let PredicateInsertions { predicate, fresh, single, has_twins, came } = work;
        let is_bulk = fresh.len() >= BULK_MIN;
        let strings = is_bulk && self.adds_strings(predicate, fresh.iter().map(|cell| cell.neighbour));
        if !is_bulk {
            for cell in &fresh {
                self.apply(&statement_of(predicate, cell), CellTransition::Add);
            }
        } else if let Some(changed) = self.predicates.get_mut(predicate) {
            let mut reverse: Vec<Cell> = fresh
                .iter()
                .map(|cell| {
                    let [object, graph, edge] = cell.entry();
                    Cell::new(object, [cell.key, graph, edge], true)
                })
                .collect();
            reverse.sort_unstable_by_key(TreeItem::key);
            let [out, into] = changed.sides_mut();
            out.add_all(&fresh, strings);
            into.add_all(&reverse, false);
            if has_twins {
                changed.set_parallel();
            }
            changed.refresh(|| largest_classes(&*self.base));
            self.count_all(predicate, &fresh);
        }
        for (statement, change) in &single {
            self.apply(statement, *change);
        }
        self.drop_unchanged(predicate);
        fresh.len() as u64 + came
    }

    /// Counts statements that were added.
    fn count_all(&mut self, predicate: Id, cells: &[Cell]) {
        for cell in cells {
            self.count(&statement_of(predicate, cell), CellTransition::Add);
        }
    }
}

fn statement_of(predicate: Id, cell: &Cell) -> Statement {
    let [object, graph, edge] = cell.entry();
    Statement { subject: cell.key, predicate, object, graph, edge }
}
