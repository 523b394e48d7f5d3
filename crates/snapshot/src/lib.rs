//! The snapshot interface (the "waist"): traits through which queries read a consistent view of a graph.
//!
//! Storage implements these traits, queries call them; neither depends on the other. Calls work on batches,
//! so that a call through a trait object costs nothing compared with its work, and so that compressed,
//! changed, remote or device data can implement the same calls.
//!
//! # Shape
//! A [`Snapshot`] has one [`Segment`] for each `[predicate, direction]` that has entries. A segment maps keys
//! (vertices, edges or values) to entries; the entries of one key are sorted by neighbour, then by graph,
//! then by edge. Nearly no method has a default: a wrapper such as the read-tracking snapshot of `vervet-txn`
//! then fails to compile when a method is added, instead of bypassing what it wraps. [`read_is_plain_text`],
//! [`keys_up_to`] and [`no_order_error`] are default implementations for segments and snapshots without a
//! better one.
//! # Not here
//! Versions and visibility: a snapshot is already a view at one read timestamp.
#![forbid(unsafe_code)]

mod content;
mod expansion;
mod overlaps;
mod sketch;
mod statistics;

pub use content::ContentId;
pub use expansion::{
    Cursor, EntryFilter, Expansion, GraphFilter, KeyEntries, OrderRange, OrderedEntry, append_entries,
    successor,
};
pub use overlaps::KeyOverlap;
pub use sketch::KeySketch;
pub use statistics::{ClassId, ClassPairCount, SegmentStatistics};

use oxrdf::TermRef;
use std::ops::Range;
use vervet_model::{Direction, Error, ErrorKind, Id, LiteralKind, Meter, Result, TermParts, TextSearch};

/// A consistent view of one graph.
pub trait Snapshot: Send + Sync {
    /// The id of `term`; `None` if the graph does not know it. Values that fit inside an id always have one.
    /// Edge terms (`urn:vervet:edge:N`) have one if that edge exists.
    ///
    /// # Errors
    /// Damaged dictionary.
    fn lookup(&self, term: TermRef<'_>) -> Result<Option<Id>>;

    /// Calls `read` with the parts of the term of `id`. `scratch` is working space that the caller keeps
    /// between calls, so that decoding does not allocate in the long run.
    ///
    /// # Errors
    /// Damaged dictionary; an id that this snapshot never assigned; [`vervet_model::Tag::Computed`] ids.
    fn read_term(&self, id: Id, scratch: &mut String, read: &mut dyn FnMut(TermParts<'_>)) -> Result<()>;

    /// Appends the N-Triples forms of the terms of `ids` to `out`; `ends[i]` receives the end of the i-th in
    /// `out`. The batch form of [`Snapshot::read_term`] for result writers.
    ///
    /// # Errors
    /// As [`Snapshot::read_term`].
    fn write_terms(&self, ids: &[Id], out: &mut Vec<u8>, ends: &mut Vec<usize>) -> Result<()>;

    /// The number of the base that it equals, if it has one and its reads are not recorded: a part of a query
    /// may read that base elsewhere instead, such as at another server.
    fn base_number(&self) -> Option<u64> {
        None
    }

    /// Whether some vertex may be a blank node; `false`: none is.
    fn may_have_blanks(&self) -> bool;

    /// Whether the vertex is a blank node (`false` for everything else).
    ///
    /// # Errors
    /// Damaged dictionary.
    fn is_blank(&self, id: Id) -> Result<bool>;

    /// Whether it is an `xsd:string`: two strings with different ids have different texts.
    ///
    /// # Errors
    /// Damaged dictionary.
    fn is_plain_text(&self, id: Id) -> Result<bool>;

    /// A rank of a literal: if two literals have ranks, both are of type `xsd:string`, and the lesser text
    /// (by code points) has the lesser rank. `None`: unknown; read the text. Ranks may become known by
    /// requests.
    ///
    /// # Errors
    /// Damaged dictionary.
    fn text_rank(&self, literal: Id) -> Result<Option<u64>>;

    /// Calls `read` with the kind of a term of the dictionary; `None`: not a literal. Dictionaries that can
    /// do it do not read the text.
    ///
    /// # Errors
    /// As [`Snapshot::read_term`].
    fn read_literal_kind(&self, id: Id, read: &mut dyn FnMut(Option<LiteralKind<'_>>)) -> Result<()> {
        self.read_term(id, &mut String::new(), &mut |parts| {
            read(match parts {
                TermParts::Literal { kind, .. } => Some(kind),
                _ => None,
            });
        })
    }

    /// Whether some id of [`vervet_model::Tag::Literal`] may be a triple term; `false`: none is, so no such
    /// term need be read to decide.
    fn may_have_triple_terms(&self) -> bool;

    /// The segment of this predicate and direction; `None` if it has no entries.
    ///
    /// # Errors
    /// Damaged segment (its checksum is verified on first use).
    fn segment(&self, predicate: Id, direction: Direction) -> Result<Option<&dyn Segment>>;

    /// The entries of `keys` in several segments, for a snapshot over other servers, where a call of a
    /// segment costs a round trip: one request for each server instead. For each segment the entries of the
    /// first keys, about `limit` entries; a key whose entries do not fit ends the list. `None`: calls of
    /// single segments cost no more.
    ///
    /// # Errors
    /// Damaged segment; limits of the calling thread; another server cannot be reached.
    fn entries_together(
        &self,
        segments: &[(Id, Direction)],
        keys: &[Id],
        limit: usize,
    ) -> Result<Option<Vec<KeyEntries>>> {
        let _ = (segments, keys, limit);
        Ok(None)
    }

    /// All predicates that have entries, ascending, with the number of their entries.
    fn predicates(&self) -> &[(Id, u64)];

    /// All named graphs, ascending, with the number of their statements.
    fn graphs(&self) -> &[(Id, u64)];

    /// The id of `rdf:type`, if it occurs.
    fn type_predicate(&self) -> Option<Id>;

    /// Upper bound of vertex numbers.
    fn vertex_count(&self) -> u64;

    /// Upper bound of edge numbers.
    fn edge_count(&self) -> u64;

    /// Upper bound of literal numbers.
    fn literal_count(&self) -> u64;

    /// Number of statements in the default graph and all named graphs. A statement about an edge (its
    /// properties) counts as one.
    fn statement_count(&self) -> u64;

    /// Subject, predicate (as ids), object and graph ([`Id::UNBOUND`]: default) of an edge.
    ///
    /// # Errors
    /// Damaged edge table; no such edge.
    fn edge(&self, edge: Id) -> Result<[Id; 4]>;

    /// The classes (see [`ClassId`]) whose vertices have the type `type_id`; ascending.
    fn classes_of_type(&self, type_id: Id) -> &[ClassId];

    /// Whether every vertex has the types that it had when classes were derived, so that classes prove the
    /// types of a vertex. If not, the statistics of the type segments are not exact either.
    fn classes_are_exact(&self) -> bool;

    /// Number of vertices of a class when classes were derived.
    fn class_size(&self, class: ClassId) -> u64;

    /// Positions, in the order of texts (code points), of the literals of the dictionary whose text is at
    /// least `from`, and below `to` if given, for [`Snapshot::literals_in_order`]: literals of any language
    /// or datatype, without those inside ids, and without those added after the order was built
    /// ([`Snapshot::unordered_literals`]). `None` if there is no such order. The bounds are UTF-8, or
    /// prefixes of UTF-8.
    /// # Errors
    /// Damaged dictionary.
    fn literal_range(&self, from: &[u8], to: Option<&[u8]>) -> Result<Option<Range<u64>>>;

    /// Appends the literals in these bounds that were added after the order of [`Snapshot::literal_range`]
    /// was built, by text. Together with the literals at its positions they are all literals in the bounds.
    ///
    /// # Errors
    /// Those of `meter`.
    fn unordered_literals(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        out: &mut Vec<Id>,
        meter: &mut Meter<'_>,
    ) -> Result<()>;

    /// Upper estimate of the number of results of [`Snapshot::unordered_literals`].
    ///
    /// # Errors
    /// None at present.
    fn unordered_literal_count(&self, from: &[u8], to: Option<&[u8]>) -> Result<u64>;

    /// Upper estimate of the number of results of [`Snapshot::search`]; `None` if this snapshot has no index
    /// of words.
    ///
    /// # Errors
    /// Damaged dictionary; those of `meter`.
    fn search_count(&self, search: &TextSearch, meter: &mut Meter<'_>) -> Result<Option<u64>>;

    /// Appends all strings, with or without language, that match `search`, and possibly other literals,
    /// without duplicates and without those inside ids.
    ///
    /// # Errors
    /// Damaged dictionary; no index of words ([`Snapshot::search_count`] is `None`); those of `meter`.
    fn search(&self, search: &TextSearch, out: &mut Vec<Id>, meter: &mut Meter<'_>) -> Result<()>;

    /// Appends the literals at these positions of the order of texts to `out`.
    ///
    /// # Errors
    /// Damaged dictionary; a position outside [`Snapshot::literal_range`].
    fn literals_in_order(&self, positions: Range<u64>, out: &mut Vec<Id>) -> Result<()>;
}

/// All entries of one `[predicate, direction]`.
pub trait Segment: Send + Sync {
    /// Counts and type-correlated class pairs; those of this snapshot only if [`SegmentStatistics::exact`].
    fn statistics(&self) -> &SegmentStatistics;

    /// Appends entries of `keys`, row after row from `cursor` on, to `out` until `out` is full
    /// ([`Expansion::remaining_capacity`] is 0) or all rows are done. Moves `cursor` after the appended
    /// entries; `cursor.row == keys.len()` means done. A key without entries contributes nothing.
    ///
    /// Only entries that pass `filter` are appended. `out.edges` and `out.graphs` are filled if `out`
    /// requests them ([`Id::UNBOUND`]: no edge id; default graph).
    ///
    /// # Errors
    /// Damaged segment.
    fn expand(
        &self,
        keys: &[Id],
        filter: EntryFilter,
        cursor: &mut Cursor,
        out: &mut Expansion,
    ) -> Result<()>;

    /// Appends split points among the neighbours of `key`, ascending and distinct, that divide its entries
    /// into at most about `parts` ranges of about equal length, with at least `entries_min` entries each: a
    /// range begins with the first neighbour that is not below a split point ([`Cursor::resume`]) and ends
    /// below the next one ([`Expansion::end`]). Appends nothing for a key with few entries. The time depends
    /// on the number of ranges, not of entries.
    ///
    /// # Errors
    /// Damaged segment.
    fn split(&self, key: Id, parts: usize, entries_min: usize, out: &mut Vec<Id>) -> Result<()>;

    /// Sets `out[i]` to the number of entries of `keys[i]` that pass `filter`.
    ///
    /// # Errors
    /// Damaged segment.
    fn degrees(&self, keys: &[Id], filter: EntryFilter, out: &mut Vec<u64>) -> Result<()>;

    /// Appends to `out` the rows `i` (ascending) for which the entry `keys[i] -> neighbours[i]` exists
    /// and passes `filter`.
    ///
    /// # Errors
    /// Damaged segment.
    fn check(&self, keys: &[Id], neighbours: &[Id], filter: EntryFilter, out: &mut Vec<u32>) -> Result<()>;

    /// Appends to `out` the rows `i` (ascending) for which the entry `keys[i] -> neighbour` exists and
    /// passes `filter`: [`Segment::check`] against one constant, such as a type.
    ///
    /// # Errors
    /// Damaged segment.
    fn check_constant(
        &self,
        keys: &[Id],
        neighbour: Id,
        filter: EntryFilter,
        out: &mut Vec<u32>,
    ) -> Result<()>;

    /// Appends the distinct neighbours of one key that pass `filter`, ascending: the sorted list that
    /// intersections gallop over.
    ///
    /// # Errors
    /// Damaged segment.
    fn neighbours(&self, key: Id, filter: EntryFilter, out: &mut Vec<Id>) -> Result<()>;

    /// Whether entries of one of these keys are at another server, so that a call takes a round trip: then
    /// one call for many keys is better than one for each. `None`: of any key.
    fn is_remote(&self, keys: Option<&[Id]>) -> bool;

    /// Identity of the entries, for caches of copies of them, such as that of a device. `None`: reads must
    /// not be replaced by a copy, since they are recorded or go to other servers, or because the entries have
    /// no identity.
    fn content_id(&self) -> Option<ContentId>;

    /// Appends up to `limit` keys that are not below `from`, ascending, and returns the key to continue with;
    /// `None` at the end. Fewer than `limit` do not mean the end. All keys are listed, also those whose
    /// entries all fail a filter.
    ///
    /// # Errors
    /// Damaged segment.
    fn keys(&self, from: Id, limit: usize, out: &mut Vec<Id>) -> Result<Option<Id>>;

    /// [`Segment::keys`] for keys up to `last`; `None`: there are no more of these.
    ///
    /// # Errors
    /// Damaged segment.
    fn keys_up_to(&self, from: Id, last: Id, limit: usize, out: &mut Vec<Id>) -> Result<Option<Id>>;

    /// Appends up to `limit` entries (neighbour, graph, edge) of one key that are not below `from`,
    /// ascending: all of them, no filter, parallel edges counted. Fewer than `limit`: there are no more.
    ///
    /// # Errors
    /// Damaged segment.
    fn entries(&self, key: Id, from: [Id; 3], limit: usize, out: &mut Vec<[Id; 3]>) -> Result<()>;

    /// Number of keys below `key`, which need not be a key: exact if [`SegmentStatistics::exact`], else an
    /// estimate for planning that proves nothing.
    ///
    /// # Errors
    /// Damaged segment.
    fn keys_below(&self, key: Id) -> Result<u64>;

    /// The property by which entries are ordered, if there is one. [`Segment::ordered`] uses it only while
    /// neither this segment nor that of the property has changed ([`SegmentStatistics::exact`]).
    fn order(&self) -> Option<Id>;

    /// Appends to `out` entries of `key` by their order keys; every statement counts, parallel edges too, of
    /// the graphs that pass. Equal order keys are ordered by neighbour, graph, edge. Takes `O(log(degree))`,
    /// and a step for each entry that is listed or belongs to another graph.
    ///
    /// # Errors
    /// Unsupported: there is no such order. Corrupt: damaged segment or order.
    fn ordered(
        &self,
        key: Id,
        range: &OrderRange,
        graph: GraphFilter,
        out: &mut Vec<OrderedEntry>,
    ) -> Result<()>;
}

/// [`Snapshot::is_plain_text`] by way of [`Snapshot::read_term`].
///
/// # Errors
/// As [`Snapshot::read_term`].
pub fn read_is_plain_text(snapshot: &(impl Snapshot + ?Sized), id: Id) -> Result<bool> {
    let mut is_plain = false;
    snapshot.read_term(id, &mut String::new(), &mut |parts| {
        is_plain = matches!(parts, TermParts::Literal { kind: LiteralKind::String, .. });
    })?;
    Ok(is_plain)
}

/// [`Segment::keys_up_to`] by way of [`Segment::keys`], for segments where the cost of listing keys does not
/// depend on the end.
///
/// # Errors
/// As [`Segment::keys`].
pub fn keys_up_to(
    segment: &(impl Segment + ?Sized),
    from: Id,
    last: Id,
    limit: usize,
    out: &mut Vec<Id>,
) -> Result<Option<Id>> {
    let first = out.len();
    let next = segment.keys(from, limit, out)?;
    debug_assert!(out.len() >= first, "`keys` appends");
    let count = out[first..].partition_point(|key| *key <= last);
    out.truncate(first + count);
    Ok(next.filter(|next| *next <= last))
}

/// The error of [`Segment::ordered`] for a segment whose [`Segment::order`] is `None`.
#[must_use]
pub fn no_order_error() -> Error {
    Error::new(ErrorKind::Unsupported, "the entries of this predicate have no order")
        .with_hint("declare one when loading, such as --order knows=since")
}
