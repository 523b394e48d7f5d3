//! Path: evaluation of property paths by automaton search.
//!
//! # Shape
//! Rows are grouped by their bound ends. One end bound: one [`AutomatonSearch`] for each distinct node,
//! forwards or backwards, whose results are joined with all rows of that node. Both ends bound: bidirectional
//! search, which always advances the side with the smaller frontier, until the sides meet or one is
//! exhausted; or, if many rows share an end, one search from that end for all of them, which advances only
//! until all other ends are found. No end bound: a search from each node at which a path may start.
//! # Cost
//! See [`crate::operators::automaton_search`]. Once searches from single nodes at one end have visited some
//! times as many nodes as the path has statements, further ones share their work
//! ([`crate::operators::condensed_search`]). If the other end is not needed, results are counted, not
//! listed; under set semantics the question is only which nodes have a path. Single nodes search until the
//! first end. Once these searches have visited as many nodes as the path has statements, one search from all
//! nodes at the other end answers for all further nodes. Without a bound end that search is the result: its
//! time is linear in the statements, where pairs may be quadratic.
//!
//! Over other servers each level of a search is a round trip, so the nodes of a batch search together from
//! the beginning, and share their work.
//!
//! Rows with an unbound graph variable are evaluated graph by graph, so memory does not grow with the number
//! of graphs.
//! # Semantics
//! SPARQL 1.1 §18.4: a closure yields each pair of ends once. The empty path connects each node of the graphs
//! with itself, and a term of the query with itself.

use crate::operators::automaton_search::{AutomatonSearch, VisitedSet};
use crate::operators::condensed_search::CondensedSearch;
use crate::pipeline::batch::{BATCH_ROWS, Batch, Keep};
use crate::pipeline::chain::{Chain, Flow, Kernel, Run};
use crate::plan::{Move, Operand, PathGraphs, PathStep};
use vervet_model::{Direction, Id, Multiplicity, Result, Tag};
use vervet_snapshot::{EntryFilter, GraphFilter};

/// Minimum number of rows with one common end and distinct other ends for a shared search.
const SHARED_END_MIN: usize = 4;

/// Searches share their work once they have visited this multiple of the statements of the path, and at least
/// this number of nodes.
const REPEATED_VISITS: u64 = 4;
const REPEATED_VISITS_MIN: u64 = 1 << 10;

/// What a search from a single node counts as over other servers, in visited nodes: its round trips take as
/// long.
const REMOTE_SEARCH_VISITS: usize = 1 << 9;

/// Number of start nodes that are listed, and from which searches begin, together over other servers.
const REMOTE_STARTS: usize = 1 << 14;

/// Bound values of a row: graph, subject, object ([`Id::UNBOUND`] if unbound).
type BoundEnds = [Id; 3];

/// Searches from nodes at one end that share their work.
#[derive(Default)]
struct Condensing<'a> {
    /// Set once the work repeats.
    search: Option<CondensedSearch<'a>>,
    /// Nodes visited by searches that do not share their work.
    visited: u64,
    /// Whether there was too little memory.
    given_up: bool,
}

pub(crate) struct Paths<'a> {
    step: &'a PathStep,
    is_nullable: bool,
    is_remote: bool,
    forwards: AutomatonSearch<'a>,
    backwards: AutomatonSearch<'a>,
    /// Number of statements of the path.
    entries: u64,
    /// By the end at which searches start.
    condensing: [Condensing<'a>; 2],
    /// End, graph and start node of the current shared search.
    shared: Option<(usize, Id, Id)>,
    /// The graphs of the current row.
    graphs: Vec<GraphFilter>,
    keep: Keep,
    /// Whether subject and object are variables of the output.
    listed: [bool; 2],
    /// Value of the graph variable.
    graph: Id,
    rows: Vec<u32>,
    found_graphs: Vec<Id>,
    ends: [Vec<Id>; 2],
    times: Vec<u64>,
    /// Ends of paths from the current node, their number, and the bytes counted for them. They are listed
    /// only if they are output.
    found: Vec<Id>,
    found_count: usize,
    found_bytes: u64,
    /// The graph, end and node of which `found` has the results.
    found_of: Option<(Id, usize, Id)>,
    /// Under set semantics: the nodes with a path, by the end at which they are.
    connected: [Option<VisitedSet>; 2],
    connected_bytes: u64,
    /// Nodes visited by searches from single nodes for some path.
    tested: usize,
    out: Batch,
}

impl<'a> Paths<'a> {
    pub(crate) fn new(step: &'a PathStep, keep: Keep, run: &Run<'a>) -> Result<Self> {
        let listed = [step.subject, step.object].map(
            |end| matches!(end, Operand::Variable(variable) if keep.columns.contains(&variable.index())),
        );
        let forwards = AutomatonSearch::new(&step.automaton, false, run)?;
        Ok(Self {
            step,
            entries: forwards.entries(),
            condensing: [Condensing::default(), Condensing::default()],
            is_nullable: step.automaton.accepting.first() == Some(&true),
            is_remote: forwards.is_remote(),
            forwards,
            backwards: AutomatonSearch::new(&step.automaton, true, run)?,
            shared: None,
            graphs: match &step.graphs {
                PathGraphs::These(graphs) => graphs.clone(),
                PathGraphs::Variable(_) => Vec::new(),
            },
            keep,
            listed,
            graph: Id::UNBOUND,
            rows: Vec::new(),
            found_graphs: Vec::new(),
            ends: [Vec::new(), Vec::new()],
            times: Vec::new(),
            found: Vec::new(),
            found_count: 0,
            found_bytes: 0,
            found_of: None,
            connected: [None, None],
            connected_bytes: 0,
            tested: 0,
            out: Batch::new(run.variables),
        })
    }

    fn bound_ends(&self, batch: &Batch, row: usize) -> BoundEnds {
        let of = |operand| match operand {
            Operand::Constant(id) => id,
            Operand::Variable(variable) => batch.value(variable, row),
        };
        let graph = match self.step.graphs {
            PathGraphs::These(_) => Id::UNBOUND,
            PathGraphs::Variable(variable) => batch.value(variable, row),
        };
        [graph, of(self.step.subject), of(self.step.object)]
    }

    /// The bound values of a row after binding its graph, since an end may be the same variable.
    fn in_graph(&self, graph: Id, [_, subject, object]: BoundEnds) -> BoundEnds {
        let PathGraphs::Variable(variable) = self.step.graphs else { return [graph, subject, object] };
        let of = |end, bound| if end == Operand::Variable(variable) { graph } else { bound };
        [graph, of(self.step.subject, subject), of(self.step.object, object)]
    }

    fn enter_graph(&mut self, graph: Id) {
        self.graph = graph;
        if let PathGraphs::Variable(_) = self.step.graphs {
            self.graphs.clear();
            self.graphs.extend(graph.is_bound().then_some(GraphFilter::Named(graph)));
        }
    }

    fn add(
        &mut self,
        batch: &Batch,
        row: u32,
        (ends, times): ([Id; 2], u64),
        next: &mut Chain<'_, 'a>,
    ) -> Result<Flow> {
        self.rows.push(row);
        self.found_graphs.push(self.graph);
        self.ends[0].push(ends[0]);
        self.ends[1].push(ends[1]);
        self.times.push(times);
        if self.rows.len() >= next.run().control.batch_rows() {
            self.flush(batch, next)
        } else {
            Ok(Flow::More)
        }
    }

    fn flush(&mut self, batch: &Batch, next: &mut Chain<'_, 'a>) -> Result<Flow> {
        self.out.gather(batch, &self.rows, &self.keep);
        for (operand, ids) in [self.step.subject, self.step.object].into_iter().zip(&mut self.ends) {
            if let Operand::Variable(variable) = operand {
                let column = &mut self.out.columns[variable.index()];
                column.clear();
                column.extend_from_slice(ids);
            }
            ids.clear();
        }
        if let PathGraphs::Variable(variable) = self.step.graphs {
            self.out.columns[variable.index()].clone_from(&self.found_graphs);
        }
        self.found_graphs.clear();
        if self.times.iter().any(|&times| times != 1) {
            self.out.multiplicity.resize(self.out.rows, Multiplicity::ONE);
            for (of_row, times) in self.out.multiplicity.iter_mut().zip(&self.times) {
                *of_row = of_row.scale(*times)?;
            }
        }
        self.out.drop_all_but(&self.keep);
        self.rows.clear();
        self.times.clear();
        next.push(&mut self.out)
    }

    /// Whether the empty path connects the node with itself.
    fn has_zero_length_path(&self, node: Id, end: usize, run: &Run<'a>) -> Result<bool> {
        if !self.is_nullable {
            return Ok(false);
        }
        if self.step.zero_length[end] {
            return Ok(true);
        }
        if node.tag() == Tag::Computed {
            return Ok(false);
        }
        let mut degree = Vec::new();
        for (predicate, _) in run.snapshot.predicates() {
            for direction in Direction::BOTH {
                let Some(segment) = run.snapshot.segment(*predicate, direction)? else { continue };
                run.control.work(self.graphs.len())?;
                for &graph in &self.graphs {
                    degree.clear();
                    segment.degrees(&[node], EntryFilter { graph, parallel: true }, &mut degree)?;
                    if degree.first().is_some_and(|degree| *degree > 0) {
                        return Ok(true);
                    }
                }
            }
        }
        Ok(false)
    }

    /// Finds the ends of all paths from a node at one end, in `found`; `false`: the path may be empty, but
    /// the id is neither a node of the graphs nor a term of the query.
    fn find_all(&mut self, node: Id, end: usize, run: &Run<'a>) -> Result<bool> {
        self.found_of = None;
        let has_moved = match self.condensed_from(node, end, run)? {
            Some(search) => search.has_moved(node),
            None => {
                let search = if end == 0 { &mut self.forwards } else { &mut self.backwards };
                self.shared = None;
                search.begin_all(node, run)?;
                while search.advance(&self.graphs, run)? {}
                self.condensing[end].visited += search.size() as u64;
                search.has_moved()
            }
        };
        // An id with a move is certainly a node.
        if self.is_nullable && !has_moved && !self.has_zero_length_path(node, end, run)? {
            return Ok(false);
        }
        self.take_results(node, end, run)?;
        Ok(true)
    }

    /// The search that shares its work, after it has searched from `node`; `None`: searches do not repeat
    /// work so far, or there is too little memory.
    fn condensed_from(
        &mut self,
        node: Id,
        end: usize,
        run: &Run<'a>,
    ) -> Result<Option<&CondensedSearch<'a>>> {
        let condensing = &mut self.condensing[end];
        let repeated = self.entries.saturating_mul(REPEATED_VISITS).max(REPEATED_VISITS_MIN);
        if condensing.given_up || !matches!(self.step.graphs, PathGraphs::These(_)) {
            return Ok(None);
        }
        if condensing.search.is_none() && condensing.visited >= repeated {
            condensing.search = Some(CondensedSearch::new(&self.step.automaton, end == 1, run)?);
        }
        let Some(search) = &mut condensing.search else { return Ok(None) };
        if !search.reach(node, &self.graphs, run)? {
            search.release(run)?;
            *condensing = Condensing { given_up: true, ..Condensing::default() };
        }
        Ok(condensing.search.as_ref())
    }

    /// Searches from these nodes of a batch together, if single searches would take many round trips.
    fn search_together(&mut self, nodes: &mut Vec<Id>, end: usize, run: &Run<'a>) -> Result<()> {
        let condensing = &mut self.condensing[end];
        if !self.is_remote || condensing.given_up || !matches!(self.step.graphs, PathGraphs::These(_)) {
            return Ok(());
        }
        nodes.sort_unstable();
        nodes.dedup();
        if nodes.len() < 2 {
            return Ok(());
        }
        let search = match &mut condensing.search {
            Some(search) => search,
            none => none.insert(CondensedSearch::new(&self.step.automaton, end == 1, run)?),
        };
        if !search.reach_all(nodes, &self.graphs, run)? {
            search.release(run)?;
            *condensing = Condensing { given_up: true, ..Condensing::default() };
        }
        Ok(())
    }

    /// Paths of rows with one bound end.
    fn push_one_bound(
        &mut self,
        batch: &Batch,
        rows: &[(BoundEnds, u32)],
        end: usize,
        next: &mut Chain<'_, 'a>,
    ) -> Result<Flow> {
        let Some(&(bound, _)) = rows.first() else { return Ok(Flow::More) };
        let node = bound[1 + end];
        if self.only_tests(1 - end) {
            if self.is_connected(node, end, next.run())? {
                for &(_, row) in rows {
                    if self.add(batch, row, ([node, node], 1), next)? == Flow::Done {
                        return Ok(Flow::Done);
                    }
                }
            }
            return Ok(Flow::More);
        }
        // Consecutive batches often begin with the node that ended the last one.
        if self.found_of != Some((self.graph, end, node)) {
            if !self.find_all(node, end, next.run())? {
                return Ok(Flow::More);
            }
            self.found_of = Some((self.graph, end, node));
        }
        self.add_to_all(batch, rows, node, end, next)
    }

    /// Whether an end is only tested for existence.
    fn only_tests(&self, end: usize) -> bool {
        self.step.tested[end] && !self.listed[end] && self.step.subject != self.step.object
    }

    /// Whether some path has the node at one end.
    fn is_connected(&mut self, node: Id, end: usize, run: &Run<'a>) -> Result<bool> {
        if self.is_nullable && self.step.zero_length[end] {
            return Ok(true);
        }
        if let Some(set) = &self.connected[end] {
            return Ok(set.contains(node));
        }
        if matches!(self.step.graphs, PathGraphs::These(_)) && self.tested as u64 > self.forwards.entries() {
            self.connect_all(end, run)?;
            return Ok(self.connected[end].as_ref().is_some_and(|set| set.contains(node)));
        }
        if self.is_nullable {
            self.tested += run.snapshot.predicates().len();
            return self.has_zero_length_path(node, end, run);
        }
        self.shared = None;
        let search = if end == 0 { &mut self.forwards } else { &mut self.backwards };
        search.begin(node, run)?;
        while !search.has_ended() && search.advance(&self.graphs, run)? {}
        self.tested += search.size() + if self.is_remote { REMOTE_SEARCH_VISITS } else { 0 };
        Ok(search.has_ended())
    }

    /// Finds all nodes that have a path at one end.
    fn connect_all(&mut self, end: usize, run: &Run<'a>) -> Result<()> {
        let mut set = VisitedSet::default();
        let vertices = run.snapshot.vertex_count();
        if self.is_nullable {
            let mut bytes = 0;
            let nodes = self.start_nodes(run, &mut bytes)?;
            for nodes in nodes.chunks(BATCH_ROWS) {
                run.control.work(nodes.len())?;
                nodes.iter().for_each(|&node| set.insert(node, vertices));
            }
            run.control.recount(&mut bytes, 0)?;
        } else {
            self.shared = None;
            // Paths that start at a node are found from their ends.
            let (search, opposite) = match end {
                0 => (&mut self.backwards, &self.forwards),
                _ => (&mut self.forwards, &self.backwards),
            };
            search.begin_everywhere(opposite, &self.graphs, run)?;
            while search.advance(&self.graphs, run)? {}
            for nodes in search.results(run)?.chunks(BATCH_ROWS) {
                run.control.work(nodes.len())?;
                nodes.iter().for_each(|&node| set.insert(node, vertices));
            }
        }
        let bytes = self.connected_bytes + set.size_bytes();
        run.control.recount(&mut self.connected_bytes, bytes)?;
        self.connected[end] = Some(set);
        Ok(())
    }

    /// Keeps the rows whose node at one end is known to have a path; `None`: that is not known of all rows.
    fn select_connected(&self, batch: &Batch, run: &Run<'a>) -> Result<Option<Vec<u32>>> {
        for (end, operand) in [self.step.subject, self.step.object].into_iter().enumerate() {
            let (Operand::Variable(variable), Some(set)) = (operand, &self.connected[end]) else { continue };
            let other = if end == 0 { self.step.object } else { self.step.subject };
            let Operand::Variable(other) = other else { continue };
            let always = self.is_nullable && self.step.zero_length[end];
            // An empty column is unbound in all rows.
            let column = &batch.columns[variable.index()];
            let is_free = batch.columns[other.index()].is_empty();
            let is_bound = column.len() == batch.rows && column.iter().all(|id| id.is_bound());
            if always || !self.only_tests(1 - end) || !is_free || !is_bound {
                continue;
            }
            run.control.work(batch.rows)?;
            let rows = (0_u32..).zip(column).filter(|(_, id)| set.contains(**id)).map(|(row, _)| row);
            return Ok(Some(rows.collect()));
        }
        Ok(None)
    }

    /// Paths of rows without a bound end, if an end is only tested for existence.
    fn push_unbound_set(
        &mut self,
        batch: &Batch,
        rows: &[(BoundEnds, u32)],
        next: &mut Chain<'_, 'a>,
    ) -> Result<Flow> {
        let end = usize::from(!self.only_tests(1));
        let is_fixed = matches!(self.step.graphs, PathGraphs::These(_));
        if self.connected[end].is_none() {
            self.connect_all(end, next.run())?;
        }
        let Some(set) = self.connected[end].take() else { return Ok(Flow::More) };
        // One row counts the nodes if they are not listed, or stands for some node if they are only tested.
        let (count, times) = match set.members.len() {
            all if self.listed[end] => (all, 1),
            all if self.only_tests(end) => (all.min(1), 1),
            all => (all.min(1), all as u64),
        };
        let mut flow = Ok(Flow::More);
        'rows: for &(_, row) in rows {
            for &node in &set.members[..count] {
                flow = self.add(batch, row, ([node, node], times), next);
                if !matches!(flow, Ok(Flow::More)) {
                    break 'rows;
                }
            }
        }
        if is_fixed {
            self.connected[end] = Some(set);
        } else {
            next.run().control.recount(&mut self.connected_bytes, 0)?;
        }
        flow
    }

    /// Sets `found` to the results of the last search, from `node`.
    fn take_results(&mut self, node: Id, end: usize, run: &Run<'a>) -> Result<()> {
        self.found.clear();
        let is_loop = self.step.subject == self.step.object;
        let is_listed = self.listed[1 - end];
        match &self.condensing[end].search {
            Some(search) if is_loop => self.found.extend(search.connects(node, node).then_some(node)),
            Some(search) => {
                self.found_count = search.count(node);
                if is_listed {
                    let bytes = 8 * self.found_count.max(self.found.capacity()) as u64;
                    run.control.recount(&mut self.found_bytes, bytes)?;
                    search.append_ends(node, &mut self.found);
                }
            }
            None => {
                let search = if end == 0 { &mut self.forwards } else { &mut self.backwards };
                if is_loop {
                    self.found.extend(search.ends_at(node).then_some(node));
                } else {
                    let results = search.results(run)?;
                    self.found_count = results.len();
                    if is_listed {
                        // Counted before they are copied.
                        let bytes = 8 * results.len().max(self.found.capacity()) as u64;
                        run.control.recount(&mut self.found_bytes, bytes)?;
                        self.found.extend_from_slice(results);
                    }
                }
            }
        }
        if is_loop {
            self.found_count = self.found.len();
        }
        run.control.work(self.found.len())
    }

    /// Joins the results from `node` at one end with all of `rows`.
    fn add_to_all(
        &mut self,
        batch: &Batch,
        rows: &[(BoundEnds, u32)],
        node: Id,
        end: usize,
        next: &mut Chain<'_, 'a>,
    ) -> Result<Flow> {
        // Moved out, since `add` borrows `self`, and restored on every exit.
        let found = std::mem::take(&mut self.found);
        let mut flow = Ok(Flow::More);
        for &(_, row) in rows {
            flow = self.add_found(batch, row, node, end, &found, next);
            if !matches!(flow, Ok(Flow::More)) {
                break;
            }
        }
        self.found = found;
        flow
    }

    /// Joins the results from `node` at one end with one row.
    fn add_found(
        &mut self,
        batch: &Batch,
        row: u32,
        node: Id,
        end: usize,
        found: &[Id],
        next: &mut Chain<'_, 'a>,
    ) -> Result<Flow> {
        if self.found_count == 0 {
            return Ok(Flow::More);
        }
        if !self.listed[1 - end] {
            return self.add(batch, row, ([node, node], self.found_count as u64), next);
        }
        let mut rest = found;
        while !rest.is_empty() {
            let most = next.run().control.batch_rows();
            let (now, later) = rest.split_at(most.saturating_sub(self.rows.len()).clamp(1, rest.len()));
            rest = later;
            self.rows.extend(std::iter::repeat_n(row, now.len()));
            self.found_graphs.extend(std::iter::repeat_n(self.graph, now.len()));
            self.ends[end].extend(std::iter::repeat_n(node, now.len()));
            self.ends[1 - end].extend_from_slice(now);
            self.times.extend(std::iter::repeat_n(1, now.len()));
            if self.rows.len() >= most && self.flush(batch, next)? == Flow::Done {
                return Ok(Flow::Done);
            }
        }
        Ok(Flow::More)
    }

    /// Whether a path connects two nodes, by bidirectional search.
    fn connects(&mut self, [_, subject, object]: BoundEnds, run: &Run<'a>) -> Result<bool> {
        self.shared = None;
        self.forwards.begin(subject, run)?;
        self.backwards.begin(object, run)?;
        loop {
            let (forwards, backwards) = (&mut self.forwards, &mut self.backwards);
            if meets(forwards, backwards, run)? {
                self.condensing[0].visited += (self.forwards.size() + self.backwards.size()) as u64;
                return Ok(true);
            }
            // An exhausted side has visited all nodes it can reach, without meeting the other side.
            let (ahead, behind) = (forwards.waiting(), backwards.waiting());
            if ahead == 0 || behind == 0 {
                self.condensing[0].visited += (self.forwards.size() + self.backwards.size()) as u64;
                return Ok(false);
            }
            let search = if ahead <= behind { forwards } else { backwards };
            search.advance(&self.graphs, run)?;
        }
    }

    /// Whether a path connects two nodes, by a search from one end that other rows share.
    fn connects_by_shared_search(&mut self, end: usize, bound: BoundEnds, run: &Run<'a>) -> Result<bool> {
        let (node, other) = (bound[1 + end], bound[2 - end]);
        let search = if end == 0 { &mut self.forwards } else { &mut self.backwards };
        if self.shared != Some((end, self.graph, node)) {
            // The size of the search before.
            self.condensing[end].visited += search.size() as u64;
            search.begin(node, run)?;
            self.shared = Some((end, self.graph, node));
        }
        while !search.ends_at(other) {
            if !search.advance(&self.graphs, run)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether a path connects the two ends. `shared`: the end that other rows have in common.
    fn has_path(&mut self, bound: BoundEnds, shared: Option<usize>, run: &Run<'a>) -> Result<bool> {
        if self.is_nullable && bound[1] == bound[2] {
            return Ok(self.step.zero_length[1] || self.has_zero_length_path(bound[1], 0, run)?);
        }
        let end = shared.unwrap_or(0);
        if let Some(search) = self.condensed_from(bound[1 + end], end, run)? {
            return Ok(search.connects(bound[1 + end], bound[2 - end]));
        }
        match shared {
            Some(end) => self.connects_by_shared_search(end, bound, run),
            None => self.connects(bound, run),
        }
    }

    /// Paths of the rows of a graph with both ends bound, ordered by start.
    fn push_both_bound(
        &mut self,
        batch: &Batch,
        rows: &mut [(BoundEnds, u32)],
        next: &mut Chain<'_, 'a>,
    ) -> Result<Flow> {
        let starts = rows.chunk_by(|a, b| a.0[1] == b.0[1]).count();
        let mut objects: Vec<Id> = rows.iter().map(|(bound, _)| bound[2]).collect();
        objects.sort_unstable();
        objects.dedup();
        // The end with fewer distinct nodes is shared by more rows.
        let end = usize::from(objects.len() < starts);
        if end == 1 {
            rows.sort_unstable_by_key(|(bound, row)| (bound[2], bound[1], *row));
        }
        let mut nodes = rows.iter().map(|(bound, _)| bound[1 + end]).collect();
        self.search_together(&mut nodes, end, next.run())?;
        for rows in rows.chunk_by(|a, b| a.0[1 + end] == b.0[1 + end]) {
            let Some((first, _)) = rows.first() else { continue };
            let under_way = self.shared == Some((end, self.graph, first[1 + end]));
            let shared = (under_way || rows.len() >= SHARED_END_MIN).then_some(end);
            let mut last: Option<(BoundEnds, bool)> = None;
            for &(bound, row) in rows {
                let holds = match last {
                    Some((of, holds)) if of == bound => holds,
                    _ => self.has_path(bound, shared, next.run())?,
                };
                last = Some((bound, holds));
                if holds && self.add(batch, row, ([bound[1], bound[2]], 1), next)? == Flow::Done {
                    return Ok(Flow::Done);
                }
            }
        }
        Ok(Flow::More)
    }

    /// Paths of rows with no bound end.
    fn push_unbound(
        &mut self,
        batch: &Batch,
        rows: &[(BoundEnds, u32)],
        next: &mut Chain<'_, 'a>,
    ) -> Result<Flow> {
        if self.only_tests(0) || self.only_tests(1) {
            return self.push_unbound_set(batch, rows, next);
        }
        let control = next.run().control;
        let mut starts_bytes = 0;
        let starts = self.start_nodes(next.run(), &mut starts_bytes)?;
        let flow = self.search_from_all(batch, rows, &starts, next)?;
        control.recount(&mut starts_bytes, 0)?;
        Ok(flow)
    }

    fn search_from_all(
        &mut self,
        batch: &Batch,
        rows: &[(BoundEnds, u32)],
        starts: &[Id],
        next: &mut Chain<'_, 'a>,
    ) -> Result<Flow> {
        let is_one_step = self.forwards.is_one_step();
        for nodes in starts.chunks(self.starts_together()) {
            next.run().control.work(nodes.len())?;
            let flow = match is_one_step {
                true => self.add_first_ends(batch, rows, nodes, next)?,
                false => self.search_from_each(batch, rows, nodes, next)?,
            };
            if flow == Flow::Done {
                return Ok(Flow::Done);
            }
        }
        Ok(Flow::More)
    }

    /// Searches from each of these nodes. One without a move has at most the empty path.
    fn search_from_each(
        &mut self,
        batch: &Batch,
        rows: &[(BoundEnds, u32)],
        nodes: &[Id],
        next: &mut Chain<'_, 'a>,
    ) -> Result<Flow> {
        let moving = match self.is_nullable {
            true => self.forwards.have_first_moves(nodes, &self.graphs, next.run())?,
            false => vec![true; nodes.len()],
        };
        let mut together =
            nodes.iter().zip(&moving).filter(|(_, moves)| **moves).map(|(node, _)| *node).collect();
        self.search_together(&mut together, 0, next.run())?;
        for (&node, moves) in nodes.iter().zip(moving) {
            next.run().control.work(1)?;
            if !moves {
                self.set_found(&[node]);
            } else if !self.find_all(node, 0, next.run())? {
                continue;
            }
            if self.add_to_all(batch, rows, node, 0, next)? == Flow::Done {
                return Ok(Flow::Done);
            }
        }
        Ok(Flow::More)
    }

    /// The paths of at most one statement from these nodes.
    fn add_first_ends(
        &mut self,
        batch: &Batch,
        rows: &[(BoundEnds, u32)],
        nodes: &[Id],
        next: &mut Chain<'_, 'a>,
    ) -> Result<Flow> {
        let mut found = Vec::new();
        self.forwards.first_ends(nodes, &self.graphs, next.run(), &mut found)?;
        if self.step.subject == self.step.object {
            found.retain(|(at, end)| nodes[*at as usize] == *end);
        }
        if self.listed == [false, false] {
            for &(_, row) in rows {
                let (Some(&node), times) = (nodes.first(), found.len() as u64) else { break };
                if times > 0 && self.add(batch, row, ([node, node], times), next)? == Flow::Done {
                    return Ok(Flow::Done);
                }
            }
            return Ok(Flow::More);
        }
        let mut ends = Vec::new();
        for of_node in found.chunk_by(|a, b| a.0 == b.0) {
            ends.clear();
            ends.extend(of_node.iter().map(|(_, end)| *end));
            self.set_found(&ends);
            let node = nodes[of_node[0].0 as usize];
            if self.add_to_all(batch, rows, node, 0, next)? == Flow::Done {
                return Ok(Flow::Done);
            }
        }
        Ok(Flow::More)
    }

    /// How many start nodes are handled together.
    fn starts_together(&self) -> usize {
        if self.is_remote { REMOTE_STARTS } else { BATCH_ROWS }
    }

    /// Sets the ends of paths from a node that no search has found.
    fn set_found(&mut self, ends: &[Id]) {
        self.found_of = None;
        self.found.clear();
        self.found.extend_from_slice(ends);
        self.found_count = ends.len();
    }

    /// The nodes at which a path may start: all nodes of the graphs if it may be empty. `counted`: bytes
    /// counted for them.
    fn start_nodes(&self, run: &Run<'a>, counted: &mut u64) -> Result<Vec<Id>> {
        let mut all = VisitedSet::default();
        let mut keys = Vec::new();
        let mut degrees = Vec::new();
        let vertices = run.snapshot.vertex_count();
        let first = |predicate: Id, direction: Direction| {
            self.step.automaton.moves.first().is_some_and(|moves| {
                moves.iter().any(|(one, _)| match one {
                    Move::Predicate(of, along) => *of == predicate && *along == direction,
                    Move::Except(these, along) => {
                        these.binary_search(&predicate).is_err() && *along == direction
                    }
                })
            })
        };
        for (predicate, _) in run.snapshot.predicates() {
            for direction in Direction::BOTH {
                if !self.is_nullable && !first(*predicate, direction) {
                    continue;
                }
                let Some(segment) = run.snapshot.segment(*predicate, direction)? else { continue };
                let mut from = Some(Id::UNBOUND);
                while let Some(key) = from {
                    keys.clear();
                    from = segment.keys(key, self.starts_together(), &mut keys)?;
                    for &graph in &self.graphs {
                        run.control.work(keys.len() + 1)?;
                        if graph == GraphFilter::Any {
                            // A key has an entry.
                            keys.iter().for_each(|key| all.insert(*key, vertices));
                            continue;
                        }
                        degrees.clear();
                        segment.degrees(&keys, EntryFilter { graph, parallel: true }, &mut degrees)?;
                        for (key, degree) in keys.iter().zip(&degrees) {
                            if *degree > 0 {
                                all.insert(*key, vertices);
                            }
                        }
                    }
                    run.control.recount(counted, all.size_bytes())?;
                }
            }
        }
        run.control.recount(counted, 8 * all.members.capacity() as u64)?;
        Ok(all.members)
    }

    /// Evaluates rows whose graph is bound.
    fn answer(
        &mut self,
        batch: &Batch,
        rows: &mut [(BoundEnds, u32)],
        next: &mut Chain<'_, 'a>,
    ) -> Result<Flow> {
        let kind = |bound: &BoundEnds| 2 * u8::from(bound[1].is_bound()) + u8::from(bound[2].is_bound());
        rows.sort_unstable_by_key(|(bound, row)| (kind(bound), *bound, *row));
        // Rows of a graph with both ends bound form one group, whatever their ends.
        let group = |bound: &BoundEnds| match kind(bound) {
            3 => (3, bound[0], Id::UNBOUND),
            2 => (2, bound[0], bound[1]),
            1 => (1, bound[0], bound[2]),
            _ => (0, bound[0], Id::UNBOUND),
        };
        for end in [0, 1] {
            if self.is_remote && !self.only_tests(1 - end) {
                let of_kind = rows.iter().filter(|(bound, _)| kind(bound) == if end == 0 { 2 } else { 1 });
                let mut nodes = of_kind.map(|(bound, _)| bound[1 + end]).collect();
                self.search_together(&mut nodes, end, next.run())?;
            }
        }
        for rows in rows.chunk_by_mut(|a, b| group(&a.0) == group(&b.0)) {
            let Some((bound, _)) = rows.first() else { continue };
            self.enter_graph(bound[0]);
            let flow = match kind(bound) {
                0 => self.push_unbound(batch, rows, next)?,
                1 => self.push_one_bound(batch, rows, 1, next)?,
                2 => self.push_one_bound(batch, rows, 0, next)?,
                _ => self.push_both_bound(batch, rows, next)?,
            };
            if flow == Flow::Done {
                return Ok(flow);
            }
        }
        Ok(Flow::More)
    }
}

/// Whether two searches have met since the last call: both have reached the same node in the same state.
fn meets(
    forwards: &mut AutomatonSearch<'_>,
    backwards: &mut AutomatonSearch<'_>,
    run: &Run<'_>,
) -> Result<bool> {
    let mut any = false;
    for (ahead, behind) in forwards.visited.iter_mut().zip(&mut backwards.visited) {
        run.control.work(ahead.members.len() - ahead.seen + behind.members.len() - behind.seen)?;
        any |= ahead.members[ahead.seen..].iter().any(|id| behind.contains(*id));
        any |= behind.members[behind.seen..].iter().any(|id| ahead.contains(*id));
        (ahead.seen, behind.seen) = (ahead.members.len(), behind.members.len());
    }
    Ok(any)
}

impl<'a> Kernel<'a> for Paths<'a> {
    fn push(&mut self, batch: &mut Batch, next: &mut Chain<'_, 'a>) -> Result<Flow> {
        if let Some(selection) = self.select_connected(batch, next.run())? {
            batch.select(&selection, &self.keep);
            return next.push(batch);
        }
        // By bound ends: first none, then object, then subject, then both.
        let bound = |at: usize| self.bound_ends(batch, at);
        let needs_graph =
            |bound: &BoundEnds| matches!(self.step.graphs, PathGraphs::Variable(_)) && !bound[0].is_bound();
        let rows = (0_u32..).zip(0..batch.rows).map(|(row, at)| (bound(at), row));
        let (waiting, mut ready): (Vec<_>, Vec<_>) = rows.partition(|(bound, _)| needs_graph(bound));
        if self.answer(batch, &mut ready, next)? == Flow::Done {
            return Ok(Flow::Done);
        }
        // Rows with an unbound graph are evaluated graph by graph: rows times graphs would take unbounded
        // memory.
        if !waiting.is_empty() {
            let control = next.run().control;
            for (graph, _) in next.run().snapshot.graphs() {
                control.work(waiting.len())?;
                ready.clear();
                ready.extend(waiting.iter().map(|&(bound, row)| (self.in_graph(*graph, bound), row)));
                if self.answer(batch, &mut ready, next)? == Flow::Done {
                    return Ok(Flow::Done);
                }
            }
        }
        self.flush(batch, next)
    }
}
