//! Calls of a segment as values: what a part of a graph is asked, and what it answers, here or at another
//! server.

use crate::remote::Remote;
use std::borrow::Cow;
use std::sync::Arc;
use vervet_model::{Direction, Error, Id, Result, ThreadLimits};
use vervet_snapshot::{
    Cursor, EntryFilter, Expansion, GraphFilter, KeyEntries, OrderRange, OrderedEntry, Segment, Snapshot,
};

/// Maximum number of rows, keys or entries that one call to another server asks for, which bounds the size of
/// requests and answers.
pub(crate) const ROWS_MAX: usize = 1 << 16;

/// A call of a [`Segment`]; the parameters are those of its method. Lists are at most [`ROWS_MAX`] long for
/// another server.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Call<'a> {
    /// From the first row on.
    Expand {
        keys: Cow<'a, [Id]>,
        filter: EntryFilter,
        cursor: Cursor,
        shape: Shape,
    },
    Split {
        key: Id,
        parts: usize,
        entries_min: usize,
    },
    Degrees {
        keys: Cow<'a, [Id]>,
        filter: EntryFilter,
    },
    Check {
        keys: Cow<'a, [Id]>,
        neighbours: Cow<'a, [Id]>,
        filter: EntryFilter,
    },
    CheckConstant {
        keys: Cow<'a, [Id]>,
        neighbour: Id,
        filter: EntryFilter,
    },
    Keys {
        from: Id,
        limit: usize,
    },
    Entries {
        key: Id,
        from: [Id; 3],
        limit: usize,
    },
    KeysBelow {
        key: Id,
    },
    /// Without the first `skip` entries of the range.
    Ordered {
        key: Id,
        range: OrderRange,
        graph: GraphFilter,
        skip: usize,
    },
}

/// What an expansion shall fill, see [`Expansion`].
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Shape {
    pub(crate) want_edges: bool,
    pub(crate) want_graphs: bool,
    pub(crate) capacity: usize,
    pub(crate) end: Option<(usize, Id)>,
}

/// The answer to a [`Call`].
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    Expansion(Cursor, Expansion),
    /// Of `Split`.
    Ids(Vec<Id>),
    /// Of `Degrees` and `KeysBelow`.
    Numbers(Vec<u64>),
    /// Of `Check` and `CheckConstant`.
    Rows(Vec<u32>),
    Keys(Vec<Id>, Option<Id>),
    Entries(Vec<[Id; 3]>),
    Ordered(Vec<OrderedEntry>),
}

impl Call<'_> {
    /// The number of keys that it asks for.
    pub(crate) fn key_count(&self) -> usize {
        match self {
            Self::Expand { keys, .. }
            | Self::Degrees { keys, .. }
            | Self::Check { keys, .. }
            | Self::CheckConstant { keys, .. } => keys.len(),
            Self::Keys { .. } => 0,
            Self::Split { .. } | Self::Entries { .. } | Self::KeysBelow { .. } | Self::Ordered { .. } => 1,
        }
    }
}

/// One part of a segment.
#[derive(Clone)]
pub(crate) enum PartSegment {
    /// A partition of this process.
    Local(Arc<dyn Segment>),
    /// All partitions of another server.
    Remote(Arc<dyn Remote>, Id, Direction),
}

/// The answer of a segment of this process.
pub(crate) fn answer(segment: &dyn Segment, call: &Call<'_>) -> Result<Reply> {
    Ok(match call {
        Call::Expand { keys, filter, cursor, shape } => {
            let mut found = Expansion::new(shape.capacity);
            (found.want_edges, found.want_graphs, found.end) =
                (shape.want_edges, shape.want_graphs, shape.end);
            let mut reached = *cursor;
            segment.expand(keys, *filter, &mut reached, &mut found)?;
            Reply::Expansion(reached, found)
        }
        Call::Split { key, parts, entries_min } => {
            let mut points = Vec::new();
            segment.split(*key, *parts, *entries_min, &mut points)?;
            Reply::Ids(points)
        }
        Call::Degrees { keys, filter } => {
            let mut degrees = Vec::new();
            segment.degrees(keys, *filter, &mut degrees)?;
            Reply::Numbers(degrees)
        }
        Call::Check { keys, neighbours, filter } => {
            let mut rows = Vec::new();
            segment.check(keys, neighbours, *filter, &mut rows)?;
            Reply::Rows(rows)
        }
        Call::CheckConstant { keys, neighbour, filter } => {
            let mut rows = Vec::new();
            segment.check_constant(keys, *neighbour, *filter, &mut rows)?;
            Reply::Rows(rows)
        }
        Call::Keys { from, limit } => {
            let mut keys = Vec::new();
            let next = segment.keys(*from, *limit, &mut keys)?;
            Reply::Keys(keys, next)
        }
        Call::Entries { key, from, limit } => {
            let mut entries = Vec::new();
            segment.entries(*key, *from, *limit, &mut entries)?;
            Reply::Entries(entries)
        }
        Call::KeysBelow { key } => Reply::Numbers(vec![segment.keys_below(*key)?]),
        Call::Ordered { key, range, graph, skip } => {
            let mut entries = Vec::new();
            let range = OrderRange { limit: range.limit.saturating_add(*skip), ..*range };
            segment.ordered(*key, &range, *graph, &mut entries)?;
            entries.drain(..entries.len().min(*skip));
            Reply::Ordered(entries)
        }
    })
}

/// The answer of a predicate without entries.
pub(crate) fn empty_answer(call: &Call<'_>) -> Reply {
    match call {
        Call::Expand { keys, .. } => Reply::Expansion(Cursor::at(keys.len()), Expansion::default()),
        Call::Split { .. } => Reply::Ids(Vec::new()),
        Call::Degrees { keys, .. } => Reply::Numbers(vec![0; keys.len()]),
        Call::Check { .. } | Call::CheckConstant { .. } => Reply::Rows(Vec::new()),
        Call::Keys { .. } => Reply::Keys(Vec::new(), None),
        Call::Entries { .. } => Reply::Entries(Vec::new()),
        Call::KeysBelow { .. } => Reply::Numbers(vec![0]),
        Call::Ordered { .. } => Reply::Ordered(Vec::new()),
    }
}

/// Maximum number of look-ups of a request: of keys times segments.
pub(crate) const LOOKUPS_MAX: usize = 1 << 20;

/// Maximum number of entries of an answer.
pub(crate) const ENTRIES_MAX: usize = 1 << 20;

/// A request for the entries of keys in several segments.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct EntriesRequest {
    pub(crate) segments: Vec<(Id, Direction)>,
    pub(crate) keys: Vec<Id>,
    /// Maximum number of entries in each segment.
    pub(crate) limit: usize,
}

impl EntriesRequest {
    /// Whether a server answers it.
    pub(crate) fn is_within_limits(&self) -> bool {
        self.keys.len() <= ROWS_MAX
            && self.segments.len().saturating_mul(self.keys.len()) <= LOOKUPS_MAX
            && self.segments.len().saturating_mul(self.limit) <= ENTRIES_MAX
    }

    /// The answer of stores of this process.
    pub(crate) fn answer(&self, snapshot: &dyn Snapshot) -> Result<Vec<KeyEntries>> {
        let list = |(predicate, direction): &(Id, Direction)| -> Result<KeyEntries> {
            match snapshot.segment(*predicate, *direction)? {
                Some(segment) => key_entries(segment, &self.keys, self.limit),
                None => Ok(KeyEntries { ends: vec![0; self.keys.len()], entries: Vec::new() }),
            }
        };
        self.segments.iter().map(list).collect()
    }
}

/// The entries of the first of `keys`, as far as whole keys fit.
fn key_entries(segment: &dyn Segment, keys: &[Id], limit: usize) -> Result<KeyEntries> {
    let mut found = KeyEntries::default();
    for key in keys {
        ThreadLimits::check()?;
        let start = found.entries.len();
        // One more than fits shows that the key has more.
        let most = (limit + 1).saturating_sub(start);
        segment.entries(*key, [Id::UNBOUND; 3], most, &mut found.entries)?;
        if found.entries.len() > limit {
            found.entries.truncate(start);
            break;
        }
        found.ends.push(found.entries.len());
    }
    Ok(found)
}

/// The error of an answer that belongs to another kind of call.
pub(crate) fn another_kind() -> Error {
    Error::internal("an answer is not of the kind of its call")
}
