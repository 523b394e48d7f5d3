//! Batched reads of element properties, one predicate at a time.
//!
//! # Shape
//! Results with properties read every predicate that has values for each element. A batch does this for up to
//! [`ELEMENTS_MAX`] elements with one expansion per predicate. It stores ids; values are built when an
//! element is output.
//! # Invariants
//! A batch is valid for one version of the graph: only read-only traversals build one.
//! # Cost
//! 24 bytes per statement, at most [`STATEMENTS_MAX`] statements. If there are more, elements are read one
//! by one.

use super::ids::EVERY;
use super::names::Names;
use super::read::{order_statements, value_statements};
use rustc_hash::FxHashMap;
use std::ops::Range;
use vervet_gremlin::Value;
use vervet_kernel::Control;
use vervet_model::{Direction, Id, Result, Tag};
use vervet_snapshot::{Cursor, Expansion, Snapshot};

/// Maximum number of elements of one batch.
pub(crate) const ELEMENTS_MAX: usize = 1024;

/// Maximum number of statements of one batch.
const STATEMENTS_MAX: usize = 1 << 16;

/// Entries per expansion.
const CHUNK: usize = 4096;

/// A value of a property, with its predicate and the identity of its statement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ValueStatement {
    pub(crate) predicate: Id,
    pub(crate) value: Id,
    /// [`Id::UNBOUND`]: the statement has no identity.
    pub(crate) edge: Id,
}

/// See the header of this file.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// Statement ranges by vertex or edge id.
    ranges: FxHashMap<Id, Range<usize>>,
    statements: Vec<ValueStatement>,
}

impl Batch {
    /// Reads all value statements of the elements among `values`. The batch is empty for fewer than two
    /// elements, and beyond [`STATEMENTS_MAX`] statements.
    pub(crate) fn read<'v>(
        values: impl Iterator<Item = &'v Value>,
        snapshot: &dyn Snapshot,
        names: &mut Names,
        control: &Control<'_>,
    ) -> Result<Self> {
        let mut elements: Vec<Id> = values.filter_map(identity).collect();
        elements.sort_unstable();
        elements.dedup();
        if elements.len() < 2 || !names.computed.is_empty() {
            return Ok(Self::default());
        }
        let mut found: Vec<(u32, ValueStatement)> = Vec::with_capacity(elements.len() * 8);
        let mut expansion = Expansion::new(CHUNK);
        let mut entries = Vec::new();
        names.ahead.found(elements.iter().copied());
        let predicates = names.predicates(snapshot)?;
        for &predicate in &predicates.values {
            let Some(segment) = snapshot.segment(predicate, Direction::Out)? else { continue };
            control.work(elements.len())?;
            if segment.statistics().has_edges {
                for (row, element) in (0_u32..).zip(&elements) {
                    match names.ahead.read(snapshot, &[(predicate, Direction::Out)], *element)? {
                        Some(ahead) => {
                            entries.clear();
                            entries.extend(ahead.into_iter().map(|(_, entry)| entry));
                            order_statements(&mut entries);
                        }
                        None => value_statements(segment, *element, &mut entries)?,
                    }
                    let of = |&[value, _, edge]: &[Id; 3]| (row, ValueStatement { predicate, value, edge });
                    found.extend(entries.iter().filter(|[value, ..]| is_value(*value)).map(of));
                }
            } else {
                let mut cursor = Cursor::default();
                while cursor.row < elements.len() && found.len() <= STATEMENTS_MAX {
                    expansion.clear();
                    segment.expand(&elements, EVERY, &mut cursor, &mut expansion)?;
                    for (&row, &value) in expansion.rows.iter().zip(&expansion.neighbours) {
                        let one = (row, ValueStatement { predicate, value, edge: Id::UNBOUND });
                        // A statement in several graphs is one value.
                        if is_value(value) && found.last() != Some(&one) {
                            found.push(one);
                        }
                    }
                }
            }
            if found.len() > STATEMENTS_MAX {
                return Ok(Self::default());
            }
        }
        // A stable sort keeps the order of predicates and of the values of each.
        found.sort_by_key(|(row, _)| *row);
        let mut ranges = FxHashMap::default();
        let mut start = 0;
        for (row, element) in (0_u32..).zip(&elements) {
            let end = start + found[start..].partition_point(|(of, _)| *of <= row);
            ranges.insert(*element, start..end);
            start = end;
        }
        Ok(Self { ranges, statements: found.into_iter().map(|(_, statement)| statement).collect() })
    }

    /// The statements of an element; `None`: not in this batch.
    pub(crate) fn of(&self, element: Id) -> Option<&[ValueStatement]> {
        self.statements.get(self.ranges.get(&element)?.clone())
    }
}

/// Whether the details of a result are read in a batch.
pub(crate) fn is_element(value: &Value) -> bool {
    identity(value).is_some()
}

/// The subject id of the statements about an element.
fn identity(value: &Value) -> Option<Id> {
    let bits = match value {
        Value::Vertex(vertex) => vertex.key,
        Value::Edge(edge) => edge.key.edge,
        _ => 0,
    };
    (bits != 0).then(|| Id::from_bits(bits))
}

fn is_value(id: Id) -> bool {
    !matches!(id.tag(), Tag::Vertex | Tag::Edge)
}
