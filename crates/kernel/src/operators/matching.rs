//! Match: a statement pattern in general form, the slow path for any combination of bound positions.
//!
//! Any position may be a constant, bound, unbound, or bound in some rows only, and a variable may occur
//! twice. Rows are grouped by their bound positions; each group is expanded in batches, predicate by
//! predicate, from the bound side; conditions that the segment cannot test are tested afterwards. Rows that
//! bind no position scan the segments of all predicates ([`Scan`]).
//! # Cost
//! With an unbound predicate: one batch expansion for each predicate of the graph, or over several servers
//! one request to each for all predicates. With neither subject nor object bound: all entries of the
//! predicate, or those of the objects that a sargable condition leaves ([`CandidateKeyIter`]).

use crate::operators::candidate_keys::CandidateKeyIter;
use crate::operators::scan::Scan;
use crate::pipeline::batch::{BATCH_ROWS, Batch, Keep};
use crate::pipeline::chain::{Chain, Flow, Kernel, Run};
use crate::plan::{CandidateKeys, GraphOperand, Match, Operand};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use vervet_algebra::Variable;
use vervet_model::{Direction, Id, Result};
use vervet_snapshot::{
    Cursor, EntryFilter, Expansion, GraphFilter, KeyEntries, Segment, Snapshot, append_entries,
};

/// Work units of the expansion of a batch of keys in one predicate, which outputs up to [`BATCH_ROWS`]
/// entries.
const EXPANSION_WORK: usize = 1 << 7;

/// Maximum number of entries that are read in all predicates together.
const ENTRIES_TOGETHER: usize = 1 << 16;

/// Reads entries of keys as [`Segment::expand`] does.
type Expand<'e> = dyn FnMut(&[Id], EntryFilter, &mut Cursor, &mut Expansion) -> Result<()> + 'e;

/// The entries of the keys of a batch in several segments, from other servers.
struct Together {
    segments: Vec<(Id, Direction)>,
    /// Position of each key.
    positions: FxHashMap<Id, usize>,
    lists: Vec<KeyEntries>,
}

impl Together {
    /// Reads them; `None`: the snapshot has no other servers.
    fn read(snapshot: &dyn Snapshot, segments: Vec<(Id, Direction)>, keys: &[Id]) -> Result<Option<Self>> {
        let mut distinct = keys.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        let limit = ENTRIES_TOGETHER / segments.len().max(1);
        let Some(lists) = snapshot.entries_together(&segments, &distinct, limit)? else { return Ok(None) };
        let positions = distinct.into_iter().zip(0..).collect();
        Ok(Some(Self { segments, positions, lists }))
    }

    /// The entries in one segment.
    fn list(&self, segment: (Id, Direction)) -> Option<&KeyEntries> {
        self.lists.get(self.segments.iter().position(|of| *of == segment)?)
    }

    fn size_bytes(&self) -> u64 {
        let of = |list: &KeyEntries| 24 * list.entries.len() + 8 * list.ends.len();
        (24 * self.positions.len() + self.lists.iter().map(of).sum::<usize>()) as u64
    }

    /// [`Segment::expand`] for keys whose entries are in `list`.
    fn expand(
        &self,
        list: &KeyEntries,
        keys: &[Id],
        filter: EntryFilter,
        cursor: &mut Cursor,
        out: &mut Expansion,
    ) -> Result<()> {
        while let Some(key) = keys.get(cursor.row).filter(|_| out.remaining_capacity() > 0) {
            let entries = self.positions.get(key).and_then(|position| list.of(*position)).unwrap_or_default();
            let from = entries.partition_point(|entry| *entry < cursor.resume);
            let mut left = entries[from..].iter();
            append_entries(&mut || Ok(left.next().copied()), filter, cursor, out)?;
        }
        Ok(())
    }
}

/// Subject, predicate, object, graph, edge.
type Found = [Id; 5];
const POSITIONS: usize = 5;

pub(crate) struct Matching<'a> {
    pub pattern: Match,
    /// Candidate objects if neither subject nor object is bound; `None`: all.
    pub candidates: Option<CandidateKeyIter<'a>>,
    pub keep: Keep,
    /// The predicates that have been output, if each is output once.
    pub seen: FxHashSet<Id>,
    pub found: Vec<(u32, Found)>,
    pub rows: Vec<u32>,
    pub expansion: Expansion,
    pub out: Batch,
}

/// Access method for the rows of one group.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Group {
    /// The predicate, if bound.
    predicate: Id,
    subject_bound: bool,
    object_bound: bool,
    edge_bound: bool,
}

impl<'a> Matching<'a> {
    pub(crate) fn new(
        pattern: Match,
        candidates: Option<&'a CandidateKeys>,
        keep: Keep,
        variables: usize,
    ) -> Self {
        let mut expansion = Expansion::new(BATCH_ROWS);
        expansion.want_edges = pattern.edge.is_some();
        expansion.want_graphs = matches!(pattern.graph, GraphOperand::Variable(_));
        let out = Batch::new(variables);
        let candidates = candidates.map(CandidateKeyIter::new);
        let (seen, found, rows) = (FxHashSet::default(), Vec::new(), Vec::new());
        Self { pattern, candidates, keep, seen, found, rows, expansion, out }
    }

    /// The operand of each position; `None`: the pattern does not constrain it.
    fn operands(&self) -> [Option<Operand>; POSITIONS] {
        let graph = match self.pattern.graph {
            GraphOperand::Variable(variable) => Some(Operand::Variable(variable)),
            GraphOperand::Filter(_) => None,
        };
        let Match { subject, predicate, object, edge, .. } = self.pattern;
        [Some(subject), Some(predicate), Some(object), graph, edge]
    }

    /// The values that a row already binds; [`Id::UNBOUND`] elsewhere.
    fn wanted(&self, batch: &Batch, row: usize) -> Found {
        self.operands().map(|operand| match operand {
            Some(Operand::Constant(id)) => id,
            Some(Operand::Variable(variable)) => batch.value(variable, row),
            None => Id::UNBOUND,
        })
    }

    fn filter(&self) -> EntryFilter {
        let graph = match self.pattern.graph {
            GraphOperand::Filter(filter) => filter,
            GraphOperand::Variable(_) => GraphFilter::AnyNamed,
        };
        EntryFilter { graph, parallel: self.pattern.parallel }
    }

    /// Whether `found` agrees with `wanted`, and positions with the same variable agree with each other.
    fn agrees(&self, wanted: &Found, found: &Found) -> bool {
        let operands = self.operands();
        (0..POSITIONS).all(|i| {
            operands[i].is_none_or(|operand| {
                (!wanted[i].is_bound() || wanted[i] == found[i])
                    && (0..i).all(|j| {
                        !matches!(operand, Operand::Variable(_))
                            || operands[j] != Some(operand)
                            || found[i] == found[j]
                    })
            })
        })
    }

    fn add(&mut self, batch: &Batch, row: u32, found: Found, next: &mut Chain<'_, 'a>) -> Result<Flow> {
        self.found.push((row, found));
        if self.found.len() >= next.run().control.batch_rows() {
            self.flush(batch, next)
        } else {
            Ok(Flow::More)
        }
    }

    fn flush(&mut self, batch: &Batch, next: &mut Chain<'_, 'a>) -> Result<Flow> {
        self.rows.clear();
        self.rows.extend(self.found.iter().map(|found| found.0));
        self.out.gather(batch, &self.rows, &self.keep);
        for (position, operand) in self.operands().into_iter().enumerate() {
            if let Some(Operand::Variable(variable)) = operand {
                let column = &mut self.out.columns[variable.index()];
                column.clear();
                column.extend(self.found.iter().map(|found| found.1[position]));
            }
        }
        self.out.drop_all_but(&self.keep);
        self.found.clear();
        next.push(&mut self.out)
    }

    /// Matches the rows of one group by expanding the keys `keys` of one segment.
    fn expand(
        &mut self,
        batch: &Batch,
        rows: &[u32],
        keys: &[Id],
        (predicate, direction, segment): (Id, Direction, &dyn Segment),
        next: &mut Chain<'_, 'a>,
    ) -> Result<Flow> {
        let mut expand = |keys: &[Id], filter, cursor: &mut Cursor, out: &mut Expansion| {
            segment.expand(keys, filter, cursor, out)
        };
        self.expand_by(batch, rows, keys, (predicate, direction), &mut expand, next)
    }

    fn expand_by(
        &mut self,
        batch: &Batch,
        rows: &[u32],
        keys: &[Id],
        segment: (Id, Direction),
        expand: &mut Expand<'_>,
        next: &mut Chain<'_, 'a>,
    ) -> Result<Flow> {
        // Moved out, since `add` borrows `self`, and restored on every exit: batches may follow `Done`.
        let mut expansion = std::mem::take(&mut self.expansion);
        let flow = self.expand_into(&mut expansion, batch, (rows, keys), segment, expand, next);
        self.expansion = expansion;
        flow
    }

    fn expand_into(
        &mut self,
        expansion: &mut Expansion,
        batch: &Batch,
        (rows, keys): (&[u32], &[Id]),
        (predicate, direction): (Id, Direction),
        expand: &mut Expand<'_>,
        next: &mut Chain<'_, 'a>,
    ) -> Result<Flow> {
        assert!(expansion.capacity > 0, "an expansion without capacity would not terminate");
        let mut cursor = Cursor::default();
        while cursor.row < keys.len() {
            // A read of the clock for each predicate would take as long as the look-up of one key in it.
            next.run().control.work(EXPANSION_WORK)?;
            expansion.clear();
            expand(keys, self.filter(), &mut cursor, expansion)?;
            for i in 0..expansion.len() {
                let at = expansion.rows[i] as usize;
                let (key, neighbour) = (keys[at], expansion.neighbours[i]);
                let (subject, object) =
                    if direction == Direction::Out { (key, neighbour) } else { (neighbour, key) };
                let graph = expansion.graphs.get(i).copied().unwrap_or_default();
                let edge = expansion.edges.get(i).copied().unwrap_or_default();
                let found = [subject, predicate, object, graph, edge];
                let row = rows[at];
                if !self.agrees(&self.wanted(batch, row as usize), &found) {
                    continue;
                }
                if self.add(batch, row, found, next)? == Flow::Done {
                    return Ok(Flow::Done);
                }
                if self.pattern.predicates_once {
                    self.seen.insert(predicate);
                    return Ok(Flow::More);
                }
            }
        }
        Ok(Flow::More)
    }

    /// All entries of a segment, for each row.
    fn scan(
        &mut self,
        batch: &Batch,
        rows: &[u32],
        predicate: Id,
        segment: &dyn Segment,
        next: &mut Chain<'_, 'a>,
    ) -> Result<Flow> {
        let mut keys = Vec::new();
        let mut next_key = Some(Id::UNBOUND);
        while let Some(from) = next_key {
            keys.clear();
            next_key = segment.keys(from, BATCH_ROWS, &mut keys)?;
            for &row in rows {
                if self.seen.contains(&predicate) {
                    return Ok(Flow::More);
                }
                let same = vec![row; keys.len()];
                if self.expand(batch, &same, &keys, (predicate, Direction::Out, segment), next)? == Flow::Done
                {
                    return Ok(Flow::Done);
                }
            }
        }
        Ok(Flow::More)
    }

    /// Key, neighbour and direction of a scan of all segments, if neither subject, predicate nor object is a
    /// constant or restricts the others. A key whose neighbours are not needed is listed once, with its
    /// degree as multiplicity.
    fn open_scan(&self) -> Option<(Variable, Option<Variable>, Direction)> {
        let Match { subject, predicate, object, graph, edge, .. } = self.pattern;
        let (Operand::Variable(subject), Operand::Variable(predicate), Operand::Variable(object)) =
            (subject, predicate, object)
        else {
            return None;
        };
        let is_open = edge.is_none()
            && matches!(graph, GraphOperand::Filter(_))
            && subject != predicate
            && predicate != object
            && subject != object
            && self.candidates.is_none();
        let keeps = |variable: Variable| self.keep.columns.contains(&variable.index());
        is_open.then(|| match (keeps(subject), keeps(object)) {
            (true, true) => (subject, Some(object), Direction::Out),
            (false, true) => (object, None, Direction::In),
            (_, false) => (subject, None, Direction::Out),
        })
    }

    /// All statements, for each row.
    fn scan_all(
        &mut self,
        batch: &Batch,
        rows: &[u32],
        (key, neighbour, direction): (Variable, Option<Variable>, Direction),
        next: &mut Chain<'_, 'a>,
    ) -> Result<Flow> {
        let run = *next.run();
        let mut outer = Batch::new(run.variables);
        for &row in rows {
            outer.gather(batch, &[row], &self.keep);
            for &(predicate, _) in run.snapshot.predicates() {
                run.control.work(1)?;
                let Some(segment) = run.snapshot.segment(predicate, direction)? else { continue };
                if let Operand::Variable(variable) = self.pattern.predicate {
                    outer.columns[variable.index()] = vec![predicate];
                }
                let segment = (segment, self.filter());
                let mut scan = Scan::new(segment, None, key, neighbour, self.keep.clone(), &run);
                if scan.push_all(&outer, 0, next)? == Flow::Done {
                    return Ok(Flow::Done);
                }
            }
        }
        Ok(Flow::More)
    }

    /// The entries of some objects, for each row.
    fn seek(
        &mut self,
        candidates: &mut CandidateKeyIter<'a>,
        batch: &Batch,
        rows: &[u32],
        predicate: Id,
        next: &mut Chain<'_, 'a>,
    ) -> Result<Flow> {
        let snapshot = next.run().snapshot;
        let only_vertices = |segment: &dyn Segment| segment.statistics().vertices_only;
        if !candidates.has_vertices()
            && snapshot.segment(predicate, Direction::Out)?.is_none_or(only_vertices)
        {
            return Ok(Flow::More);
        }
        let Some(segment) = snapshot.segment(predicate, Direction::In)? else { return Ok(Flow::More) };
        let mut keys = Vec::new();
        candidates.restart();
        while candidates.next(segment, next.run(), &mut keys)? {
            for &row in rows {
                let same = vec![row; keys.len()];
                if self.expand(batch, &same, &keys, (predicate, Direction::In, segment), next)? == Flow::Done
                {
                    return Ok(Flow::Done);
                }
            }
        }
        Ok(Flow::More)
    }

    /// Matches rows whose edge is bound, by look-up in the edge table.
    fn by_edge(&mut self, batch: &Batch, rows: &[u32], next: &mut Chain<'_, 'a>) -> Result<Flow> {
        let run: &Run<'a> = next.run();
        for &row in rows {
            let wanted = self.wanted(batch, row as usize);
            let edge = wanted[4];
            if edge.tag() != vervet_model::Tag::Edge || edge.payload() >= run.snapshot.edge_count() {
                continue;
            }
            let [subject, predicate, object, graph] = run.snapshot.edge(edge)?;
            let found = [subject, predicate, object, graph, edge];
            let in_graph = match self.filter().graph {
                GraphFilter::Default => !graph.is_bound(),
                GraphFilter::Named(named) => graph == named,
                GraphFilter::AnyNamed => graph.is_bound(),
                GraphFilter::Any => true,
            };
            if in_graph && self.agrees(&wanted, &found) && self.add(batch, row, found, next)? == Flow::Done {
                return Ok(Flow::Done);
            }
        }
        Ok(Flow::More)
    }

    /// [`Self::expand`] with entries that were read together with those of other predicates.
    fn expand_together(
        &mut self,
        together: &Together,
        list: &KeyEntries,
        batch: &Batch,
        (rows, keys): (&[u32], &[Id]),
        (predicate, direction, segment): (Id, Direction, &dyn Segment),
        next: &mut Chain<'_, 'a>,
    ) -> Result<Flow> {
        let is_listed = |key: &Id| together.positions.get(key).is_some_and(|at| *at < list.ends.len());
        let pairs = || rows.iter().copied().zip(keys.iter().copied());
        let (listed, known): (Vec<u32>, Vec<Id>) = pairs().filter(|(_, key)| is_listed(key)).unzip();
        let mut expand = |keys: &[Id], filter, cursor: &mut Cursor, out: &mut Expansion| {
            together.expand(list, keys, filter, cursor, out)
        };
        let flow = self.expand_by(batch, &listed, &known, (predicate, direction), &mut expand, next)?;
        if flow == Flow::Done || known.len() == keys.len() || self.seen.contains(&predicate) {
            return Ok(flow);
        }
        let (left, keys): (Vec<u32>, Vec<Id>) = pairs().filter(|(_, key)| !is_listed(key)).unzip();
        self.expand(batch, &left, &keys, (predicate, direction, segment), next)
    }

    fn answer(
        &mut self,
        batch: &Batch,
        group: Group,
        rows: &[u32],
        next: &mut Chain<'_, 'a>,
    ) -> Result<Flow> {
        if group.edge_bound {
            return self.by_edge(batch, rows, next);
        }
        let is_open = !group.subject_bound && !group.object_bound && !group.predicate.is_bound();
        if is_open && let Some(scan) = self.open_scan() {
            return self.scan_all(batch, rows, scan, next);
        }
        let snapshot = next.run().snapshot;
        let (position, direction) = match group {
            Group { subject_bound: true, .. } => (0, Direction::Out),
            Group { object_bound: true, .. } => (2, Direction::In),
            _ => (POSITIONS, Direction::Out),
        };
        let keys: Vec<Id> = match position {
            POSITIONS => Vec::new(),
            _ => rows.iter().map(|&row| self.wanted(batch, row as usize)[position]).collect(),
        };
        let only_vertices = position == 2 && keys.iter().all(|key| key.is_vertex());
        let one = [(group.predicate, 0)];
        let predicates = if group.predicate.is_bound() { &one } else { snapshot.predicates() };
        let mut together = None;
        if position != POSITIONS && predicates.len() > 1 {
            let mut segments = Vec::with_capacity(predicates.len());
            for &(predicate, _) in predicates {
                if !(self.seen.contains(&predicate) || only_vertices && among_literals(snapshot, predicate)?)
                {
                    segments.push((predicate, direction));
                }
            }
            together = Together::read(snapshot, segments, &keys)?;
        }
        let held = together.as_ref().map_or(0, Together::size_bytes);
        next.run().control.grow(held)?;
        let from = (position, direction);
        let flow = self.answer_in(batch, (rows, &keys), from, predicates, together, next);
        next.run().control.shrink(held);
        flow
    }

    /// Matches rows in each of these predicates.
    fn answer_in(
        &mut self,
        batch: &Batch,
        (rows, keys): (&[u32], &[Id]),
        (position, direction): (usize, Direction),
        predicates: &[(Id, u64)],
        together: Option<Together>,
        next: &mut Chain<'_, 'a>,
    ) -> Result<Flow> {
        let snapshot = next.run().snapshot;
        let only_vertices = position == 2 && keys.iter().all(|key| key.is_vertex());
        for &(predicate, _) in predicates {
            next.run().control.work(1)?;
            if self.seen.contains(&predicate) || only_vertices && among_literals(snapshot, predicate)? {
                continue;
            }
            if position == POSITIONS
                && let Some(mut candidates) = self.candidates.take()
            {
                // Restored on every exit: batches may follow `Done`.
                let flow = self.seek(&mut candidates, batch, rows, predicate, next);
                self.candidates = Some(candidates);
                if flow? == Flow::Done {
                    return Ok(Flow::Done);
                }
                continue;
            }
            let Some(segment) = snapshot.segment(predicate, direction)? else { continue };
            let known = together.as_ref().and_then(|all| Some((all, all.list((predicate, direction))?)));
            let flow = if position == POSITIONS {
                self.scan(batch, rows, predicate, segment, next)?
            } else if let Some((together, list)) = known {
                let segment = (predicate, direction, segment);
                self.expand_together(together, list, batch, (rows, keys), segment, next)?
            } else {
                self.expand(batch, rows, keys, (predicate, direction, segment), next)?
            };
            if flow == Flow::Done {
                return Ok(Flow::Done);
            }
        }
        Ok(Flow::More)
    }
}

/// Whether a predicate has literals only, and so no vertex as object.
fn among_literals(snapshot: &dyn Snapshot, predicate: Id) -> Result<bool> {
    let segment = snapshot.segment(predicate, Direction::Out)?;
    Ok(segment.is_some_and(|segment| segment.statistics().literals_only))
}

impl<'a> Kernel<'a> for Matching<'a> {
    fn push(&mut self, batch: &mut Batch, next: &mut Chain<'_, 'a>) -> Result<Flow> {
        let mut groups: BTreeMap<Group, Vec<u32>> = BTreeMap::new();
        for row in 0..batch.rows {
            let [subject, predicate, object, _, edge] = self.wanted(batch, row);
            let group = Group {
                predicate,
                subject_bound: subject.is_bound(),
                object_bound: object.is_bound(),
                edge_bound: edge.is_bound(),
            };
            groups.entry(group).or_default().push(u32::try_from(row).unwrap_or(u32::MAX));
        }
        for (group, rows) in groups {
            if self.answer(batch, group, &rows, next)? == Flow::Done {
                return Ok(Flow::Done);
            }
        }
        self.flush(batch, next)
    }
}
