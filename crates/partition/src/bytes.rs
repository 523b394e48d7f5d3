//! Bytes of calls and answers between servers.
//!
//! # Shape
//! A request: a byte for its kind, its parameters. Numbers are LEB128 varints. A list of ids: its length,
//! then the difference of each id from the one before, zigzag-encoded: ascending keys take some 3 bytes. The
//! version of these bytes is the protocol number of the connection.
//! # Invariants
//! Whatever the bytes are, reading does not panic, and allocates at most in proportion to their number.
//! # Not here
//! Frames and connections (`vervet-peer`).

use crate::call::{Call, ENTRIES_MAX, EntriesRequest, LOOKUPS_MAX, ROWS_MAX, Reply, Shape};
use std::borrow::Cow;
use vervet_codec::{read_varint, write_varint};
use vervet_model::{Direction, Error, ErrorKind, Id, Result};
use vervet_snapshot::{Cursor, EntryFilter, Expansion, GraphFilter, KeyEntries, OrderRange, OrderedEntry};

/// The kinds of requests.
mod kind {
    pub(super) const EXPAND: u64 = 1;
    pub(super) const SPLIT: u64 = 2;
    pub(super) const DEGREES: u64 = 3;
    pub(super) const CHECK: u64 = 4;
    pub(super) const CHECK_CONSTANT: u64 = 5;
    pub(super) const KEYS: u64 = 6;
    pub(super) const ENTRIES: u64 = 7;
    pub(super) const KEYS_BELOW: u64 = 8;
    pub(super) const ORDERED: u64 = 9;
    pub(super) const FIND_EDGE: u64 = 10;
    pub(super) const ENTRIES_TOGETHER: u64 = 11;
    /// Before another request.
    pub(super) const OF_PARTITIONS: u64 = 12;
}

/// A request as it was read.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Request {
    Segment(Id, Direction, Call<'static>),
    FindEdge(Id),
    EntriesTogether(EntriesRequest),
}

fn write_id(id: Id, out: &mut Vec<u8>) {
    write_varint(id.bits(), out);
}

fn write_count(count: usize, out: &mut Vec<u8>) {
    write_varint(count as u64, out);
}

fn write_numbers(numbers: impl ExactSizeIterator<Item = u64>, out: &mut Vec<u8>) {
    write_count(numbers.len(), out);
    let mut before = 0_u64;
    for number in numbers {
        let difference = number.wrapping_sub(before).cast_signed();
        // Zigzag: small differences of either sign are small numbers.
        write_varint(((difference << 1) ^ (difference >> 63)).cast_unsigned(), out);
        before = number;
    }
}

fn write_ids(ids: &[Id], out: &mut Vec<u8>) {
    write_numbers(ids.iter().map(|id| id.bits()), out);
}

fn write_graph(graph: GraphFilter, out: &mut Vec<u8>) {
    let (number, name) = match graph {
        GraphFilter::Default => (0, None),
        GraphFilter::Any => (1, None),
        GraphFilter::AnyNamed => (2, None),
        GraphFilter::Named(name) => (3, Some(name)),
    };
    write_varint(number, out);
    name.into_iter().for_each(|name| write_id(name, out));
}

fn write_filter(filter: EntryFilter, out: &mut Vec<u8>) {
    write_varint(u64::from(filter.parallel), out);
    write_graph(filter.graph, out);
}

fn write_cursor(cursor: &Cursor, out: &mut Vec<u8>) {
    write_count(cursor.row, out);
    write_varint(cursor.offset, out);
    cursor.resume.iter().for_each(|id| write_id(*id, out));
}

/// Appends a request for a segment.
pub(crate) fn write_call(predicate: Id, direction: Direction, call: &Call<'_>, out: &mut Vec<u8>) {
    let number = match call {
        Call::Expand { .. } => kind::EXPAND,
        Call::Split { .. } => kind::SPLIT,
        Call::Degrees { .. } => kind::DEGREES,
        Call::Check { .. } => kind::CHECK,
        Call::CheckConstant { .. } => kind::CHECK_CONSTANT,
        Call::Keys { .. } => kind::KEYS,
        Call::Entries { .. } => kind::ENTRIES,
        Call::KeysBelow { .. } => kind::KEYS_BELOW,
        Call::Ordered { .. } => kind::ORDERED,
    };
    write_varint(number, out);
    write_id(predicate, out);
    write_varint(u64::from(direction as u8), out);
    match call {
        Call::Expand { keys, filter, cursor, shape } => {
            write_ids(keys, out);
            write_filter(*filter, out);
            write_cursor(cursor, out);
            write_varint(u64::from(shape.want_edges) | u64::from(shape.want_graphs) << 1, out);
            write_count(shape.capacity, out);
            // 0: no end.
            let (row, below) = shape.end.map_or((0, Id::UNBOUND), |(row, below)| (row + 1, below));
            write_count(row, out);
            write_id(below, out);
        }
        Call::Split { key, parts, entries_min } => {
            write_id(*key, out);
            write_count(*parts, out);
            write_count(*entries_min, out);
        }
        Call::Degrees { keys, filter } => {
            write_ids(keys, out);
            write_filter(*filter, out);
        }
        Call::Check { keys, neighbours, filter } => {
            write_ids(keys, out);
            write_ids(neighbours, out);
            write_filter(*filter, out);
        }
        Call::CheckConstant { keys, neighbour, filter } => {
            write_ids(keys, out);
            write_id(*neighbour, out);
            write_filter(*filter, out);
        }
        Call::Keys { from, limit } => {
            write_id(*from, out);
            write_count(*limit, out);
        }
        Call::Entries { key, from, limit } => {
            write_id(*key, out);
            from.iter().for_each(|id| write_id(*id, out));
            write_count(*limit, out);
        }
        Call::KeysBelow { key } => write_id(*key, out),
        Call::Ordered { key, range, graph, skip } => {
            write_id(*key, out);
            write_id(range.from, out);
            write_id(range.before, out);
            write_varint(u64::from(range.descending), out);
            write_count(range.limit, out);
            write_graph(*graph, out);
            write_count(*skip, out);
        }
    }
}

/// Appends a request for the statement of an edge.
pub(crate) fn write_find_edge(edge: Id, out: &mut Vec<u8>) {
    write_varint(kind::FIND_EDGE, out);
    write_id(edge, out);
}

/// Appends what says which partitions, of which build, the request behind it is for.
pub(crate) fn write_partitions(build: u64, partitions: &[usize], out: &mut Vec<u8>) {
    write_varint(kind::OF_PARTITIONS, out);
    write_varint(build, out);
    write_numbers(partitions.iter().map(|partition| *partition as u64), out);
}

/// Which partitions a request is for.
pub(crate) struct OfPartitions<'b> {
    pub(crate) build: u64,
    /// Ascending, at least one.
    pub(crate) partitions: Vec<usize>,
    pub(crate) request: &'b [u8],
}

/// Which partitions a request is for; `None`: it does not say.
///
/// # Errors
/// They are malformed, or more than `partitions_max`.
pub(crate) fn read_partitions(bytes: &[u8], partitions_max: usize) -> Result<Option<OfPartitions<'_>>> {
    let mut input = Input { bytes };
    if input.number()? != kind::OF_PARTITIONS {
        return Ok(None);
    }
    let build = input.number()?;
    let below = |number: u64| usize::try_from(number).ok().filter(|partition| *partition < partitions_max);
    let partitions = input.numbers(partitions_max, below)?;
    let is_set = !partitions.is_empty() && partitions.is_sorted_by(|one, next| one < next);
    let request = input.bytes;
    if is_set { Ok(Some(OfPartitions { build, partitions, request })) } else { Err(malformed()) }
}

/// Appends a request for the entries of keys in several segments.
pub(crate) fn write_entries_request(request: &EntriesRequest, out: &mut Vec<u8>) {
    write_varint(kind::ENTRIES_TOGETHER, out);
    write_ids(&request.segments.iter().map(|(predicate, _)| *predicate).collect::<Vec<_>>(), out);
    request.segments.iter().for_each(|(_, direction)| write_varint(u64::from(*direction as u8), out));
    write_ids(&request.keys, out);
    write_count(request.limit, out);
}

/// Appends the answer to it: for each segment the number of its keys, then positions and counts of those with
/// entries, then the entries. Columns of graphs and edges without any are empty.
pub(crate) fn write_entries_reply(found: &[KeyEntries], out: &mut Vec<u8>) {
    for found in found {
        write_count(found.ends.len(), out);
        let (mut rows, mut counts, mut before) = (Vec::new(), Vec::new(), 0);
        for (row, end) in found.ends.iter().enumerate() {
            if *end > before {
                rows.push(row as u64);
                counts.push((end - before) as u64);
                before = *end;
            }
        }
        write_numbers(rows.into_iter(), out);
        write_numbers(counts.into_iter(), out);
        let column = |column: usize| found.entries.iter().map(move |entry| entry[column].bits());
        write_numbers(column(0), out);
        for other in [1, 2] {
            match column(other).any(|bits| bits != 0) {
                true => write_numbers(column(other), out),
                false => write_count(0, out),
            }
        }
    }
}

/// Appends the answer to it.
pub(crate) fn write_edge(edge: Option<[Id; 4]>, out: &mut Vec<u8>) {
    write_ids(edge.as_ref().map_or(&[], |row| row.as_slice()), out);
}

/// Appends the answer to a call.
pub(crate) fn write_reply(reply: &Reply, out: &mut Vec<u8>) {
    match reply {
        Reply::Expansion(cursor, found) => {
            write_cursor(cursor, out);
            write_numbers(found.rows.iter().map(|row| u64::from(*row)), out);
            write_ids(&found.neighbours, out);
            write_ids(&found.edges, out);
            write_ids(&found.graphs, out);
        }
        Reply::Ids(ids) => write_ids(ids, out),
        Reply::Numbers(numbers) => write_numbers(numbers.iter().copied(), out),
        Reply::Rows(rows) => write_numbers(rows.iter().map(|row| u64::from(*row)), out),
        Reply::Keys(keys, next) => {
            write_ids(keys, out);
            write_id(next.unwrap_or(Id::UNBOUND), out);
        }
        Reply::Entries(entries) => {
            for column in 0..3 {
                write_numbers(entries.iter().map(|entry| entry[column].bits()), out);
            }
        }
        Reply::Ordered(entries) => {
            let columns: [fn(&OrderedEntry) -> Id; 4] =
                [|entry| entry.order_key, |entry| entry.neighbour, |entry| entry.graph, |entry| entry.edge];
            for column in columns {
                write_numbers(entries.iter().map(|entry| column(entry).bits()), out);
            }
        }
    }
}

/// Bytes that are read from the front.
struct Input<'b> {
    bytes: &'b [u8],
}

fn malformed() -> Error {
    Error::new(ErrorKind::Unavailable, "the bytes between two servers are not those of this protocol")
        .with_hint("all servers of a cluster must run the same version of Vervet")
}

impl Input<'_> {
    fn number(&mut self) -> Result<u64> {
        read_varint(&mut self.bytes).ok_or_else(malformed)
    }

    fn count(&mut self, max: usize) -> Result<usize> {
        usize::try_from(self.number()?).ok().filter(|count| *count <= max).ok_or_else(malformed)
    }

    fn flag(&mut self) -> Result<bool> {
        Ok(self.count(1)? == 1)
    }

    fn id(&mut self) -> Result<Id> {
        self.number().map(Id::from_bits)
    }

    /// A list of at most `max` numbers.
    fn numbers<T>(&mut self, max: usize, of: impl Fn(u64) -> Option<T>) -> Result<Vec<T>> {
        // Each number has a byte at least.
        let count = self.count(max.min(self.bytes.len()))?;
        let mut numbers = Vec::with_capacity(count);
        let mut before = 0_u64;
        for _ in 0..count {
            let zigzag = self.number()?;
            let difference = (zigzag >> 1) ^ (zigzag & 1).wrapping_neg();
            before = before.wrapping_add(difference);
            numbers.push(of(before).ok_or_else(malformed)?);
        }
        Ok(numbers)
    }

    fn ids(&mut self, max: usize) -> Result<Vec<Id>> {
        self.numbers(max, |bits| Some(Id::from_bits(bits)))
    }

    /// Rows below `end`, ascending.
    fn rows(&mut self, max: usize, end: usize, may_repeat: bool) -> Result<Vec<u32>> {
        let in_range = |row: u64| u32::try_from(row).ok().filter(|row| (*row as usize) < end);
        let rows = self.numbers(max, in_range)?;
        let is_sorted = rows.is_sorted_by(|one, next| one < next || may_repeat && one == next);
        if is_sorted { Ok(rows) } else { Err(malformed()) }
    }

    fn graph(&mut self) -> Result<GraphFilter> {
        Ok(match self.count(3)? {
            0 => GraphFilter::Default,
            1 => GraphFilter::Any,
            2 => GraphFilter::AnyNamed,
            _ => GraphFilter::Named(self.id()?),
        })
    }

    fn filter(&mut self) -> Result<EntryFilter> {
        Ok(EntryFilter { parallel: self.flag()?, graph: self.graph()? })
    }

    fn cursor(&mut self, row_max: usize) -> Result<Cursor> {
        let (row, offset) = (self.count(row_max)?, self.number()?);
        Ok(Cursor { row, offset, resume: [self.id()?, self.id()?, self.id()?] })
    }

    fn end<T>(self, value: T) -> Result<T> {
        if self.bytes.is_empty() { Ok(value) } else { Err(malformed()) }
    }
}

/// Reads a request.
///
/// # Errors
/// These bytes are no request, or ask for more than [`ROWS_MAX`] allows.
pub(crate) fn read_request(bytes: &[u8]) -> Result<Request> {
    let mut input = Input { bytes };
    let number = input.number()?;
    if number == kind::FIND_EDGE {
        let edge = input.id()?;
        return input.end(Request::FindEdge(edge));
    }
    if number == kind::ENTRIES_TOGETHER {
        let predicates = input.ids(LOOKUPS_MAX)?;
        let direction = |input: &mut Input<'_>| -> Result<Direction> {
            Ok(if input.flag()? { Direction::In } else { Direction::Out })
        };
        let segments = predicates.into_iter().map(|predicate| Ok((predicate, direction(&mut input)?)));
        let segments = segments.collect::<Result<Vec<_>>>()?;
        let (keys, limit) = (input.ids(ROWS_MAX)?, input.count(ENTRIES_MAX)?);
        let request = EntriesRequest { segments, keys, limit };
        return match request.is_within_limits() {
            true => input.end(Request::EntriesTogether(request)),
            false => Err(malformed()),
        };
    }
    let predicate = input.id()?;
    let direction = if input.flag()? { Direction::In } else { Direction::Out };
    let call = match number {
        kind::EXPAND => {
            let keys = input.ids(ROWS_MAX)?;
            let (filter, cursor) = (input.filter()?, input.cursor(keys.len())?);
            let wanted = input.count(3)?;
            let capacity = input.count(ROWS_MAX)?;
            let (row, below) = (input.count(keys.len())?, input.id()?);
            let end = row.checked_sub(1).map(|row| (row, below));
            let shape = Shape { want_edges: wanted & 1 != 0, want_graphs: wanted & 2 != 0, capacity, end };
            Call::Expand { keys: Cow::Owned(keys), filter, cursor, shape }
        }
        kind::SPLIT => Call::Split {
            key: input.id()?,
            parts: input.count(ROWS_MAX)?,
            entries_min: input.count(usize::MAX)?,
        },
        kind::DEGREES => Call::Degrees { keys: Cow::Owned(input.ids(ROWS_MAX)?), filter: input.filter()? },
        kind::CHECK => {
            let (keys, neighbours) = (input.ids(ROWS_MAX)?, input.ids(ROWS_MAX)?);
            if keys.len() != neighbours.len() {
                return Err(malformed());
            }
            let filter = input.filter()?;
            Call::Check { keys: Cow::Owned(keys), neighbours: Cow::Owned(neighbours), filter }
        }
        kind::CHECK_CONSTANT => Call::CheckConstant {
            keys: Cow::Owned(input.ids(ROWS_MAX)?),
            neighbour: input.id()?,
            filter: input.filter()?,
        },
        kind::KEYS => Call::Keys { from: input.id()?, limit: input.count(ROWS_MAX)? },
        kind::ENTRIES => {
            let key = input.id()?;
            let from = [input.id()?, input.id()?, input.id()?];
            Call::Entries { key, from, limit: input.count(ROWS_MAX)? }
        }
        kind::KEYS_BELOW => Call::KeysBelow { key: input.id()? },
        kind::ORDERED => {
            let (key, from, before) = (input.id()?, input.id()?, input.id()?);
            let range = OrderRange { from, before, descending: input.flag()?, limit: input.count(ROWS_MAX)? };
            Call::Ordered { key, range, graph: input.graph()?, skip: input.count(usize::MAX)? }
        }
        _ => return Err(malformed()),
    };
    input.end(Request::Segment(predicate, direction, call))
}

/// Reads the answer to [`write_find_edge`].
pub(crate) fn read_edge(bytes: &[u8]) -> Result<Option<[Id; 4]>> {
    let mut input = Input { bytes };
    let ids = input.ids(4)?;
    match ids.as_slice() {
        [] => input.end(None),
        ids => input.end(Some(ids.try_into().map_err(|_| malformed())?)),
    }
}

/// Reads the answer to [`write_entries_request`].
///
/// # Errors
/// These bytes are no answer to it.
pub(crate) fn read_entries_reply(bytes: &[u8], request: &EntriesRequest) -> Result<Vec<KeyEntries>> {
    let mut input = Input { bytes };
    let mut all = Vec::with_capacity(request.segments.len());
    for _ in &request.segments {
        let keys = input.count(request.keys.len())?;
        let rows = input.rows(keys, keys, false)?;
        let counts = input.numbers(rows.len(), |count| usize::try_from(count).ok())?;
        let neighbours = input.ids(request.limit)?;
        let (graphs, edges) = (input.ids(neighbours.len())?, input.ids(neighbours.len())?);
        let fits = |column: &[Id]| column.is_empty() || column.len() == neighbours.len();
        if counts.len() != rows.len() || !fits(&graphs) || !fits(&edges) {
            return Err(malformed());
        }
        let of = |column: &[Id], at: usize| column.get(at).copied().unwrap_or_default();
        let entries = (0..neighbours.len()).map(|at| [neighbours[at], of(&graphs, at), of(&edges, at)]);
        let mut found = KeyEntries { ends: Vec::with_capacity(keys), entries: entries.collect() };
        let mut end = 0_usize;
        for (row, count) in rows.iter().zip(counts) {
            found.ends.resize(*row as usize, end);
            end = end.checked_add(count).filter(|end| *end <= neighbours.len()).ok_or_else(malformed)?;
            found.ends.push(end);
        }
        found.ends.resize(keys, end);
        if end != neighbours.len() {
            return Err(malformed());
        }
        all.push(found);
    }
    input.end(all)
}

/// Reads the answer to `call`.
///
/// # Errors
/// These bytes are no answer to it.
pub(crate) fn read_reply(bytes: &[u8], call: &Call<'_>) -> Result<Reply> {
    let mut input = Input { bytes };
    let reply = match call {
        Call::Expand { keys, shape, .. } => {
            let cursor = input.cursor(keys.len())?;
            let mut found = Expansion::new(shape.capacity);
            (found.want_edges, found.want_graphs) = (shape.want_edges, shape.want_graphs);
            found.rows = input.rows(shape.capacity, keys.len(), true)?;
            let count = found.rows.len();
            found.neighbours = input.ids(count)?;
            found.edges = input.ids(count)?;
            found.graphs = input.ids(count)?;
            let fits = |ids: &[Id], wanted: bool| ids.len() == if wanted { count } else { 0 };
            if found.neighbours.len() != count
                || !fits(&found.edges, shape.want_edges)
                || !fits(&found.graphs, shape.want_graphs)
            {
                return Err(malformed());
            }
            Reply::Expansion(cursor, found)
        }
        Call::Split { .. } => Reply::Ids(input.ids(ROWS_MAX)?),
        Call::Degrees { keys, .. } => {
            let degrees = input.numbers(keys.len(), Some)?;
            if degrees.len() != keys.len() {
                return Err(malformed());
            }
            Reply::Numbers(degrees)
        }
        Call::Check { keys, .. } | Call::CheckConstant { keys, .. } => {
            Reply::Rows(input.rows(keys.len(), keys.len(), false)?)
        }
        Call::Keys { limit, .. } => {
            let keys = input.ids(*limit)?;
            let next = input.id()?;
            Reply::Keys(keys, Some(next).filter(|next| next.is_bound()))
        }
        Call::Entries { limit, .. } => {
            let columns = [input.ids(*limit)?, input.ids(*limit)?, input.ids(*limit)?];
            let [neighbours, graphs, edges] = &columns;
            if graphs.len() != neighbours.len() || edges.len() != neighbours.len() {
                return Err(malformed());
            }
            let entries = neighbours.iter().zip(graphs).zip(edges);
            Reply::Entries(entries.map(|((neighbour, graph), edge)| [*neighbour, *graph, *edge]).collect())
        }
        Call::KeysBelow { .. } => {
            let numbers = input.numbers(1, Some)?;
            if numbers.len() != 1 {
                return Err(malformed());
            }
            Reply::Numbers(numbers)
        }
        Call::Ordered { range, .. } => {
            let mut column = || input.ids(range.limit);
            let (order_keys, neighbours, graphs, edges) = (column()?, column()?, column()?, column()?);
            if [&neighbours, &graphs, &edges].iter().any(|ids| ids.len() != order_keys.len()) {
                return Err(malformed());
            }
            let entry = |index: usize| OrderedEntry {
                order_key: order_keys[index],
                neighbour: neighbours[index],
                graph: graphs[index],
                edge: edges[index],
            };
            Reply::Ordered((0..order_keys.len()).map(entry).collect())
        }
    };
    input.end(reply)
}
